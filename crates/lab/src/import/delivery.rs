//! What acknowledgments show of deliveries: how many bytes arrived at the receiver, and within what time.
//!
//! A byte counts once, when it was first acknowledged, be it selectively (RFC 2018), cumulatively, or by a duplicate ACK of
//! a connection without selective ones (a segment each, RFC 5681 3.2). An ACK that ends a recovery adds only what no earlier one reported.

use super::clock::TICK_NS;

/// What is known of the deliveries of what one end sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Ranges beyond the cumulative ACK that were acknowledged selectively, in order.
    ranges: Vec<(u64, u64)>,
    /// Bytes that duplicate ACKs spoke of.
    presumed: u64,
    /// There were selective ACKs.
    selective: bool,
    /// The last ACK, and by how much it was late.
    last_ack: Option<(u64, u64)>,
    /// The first ACK with a hole before it, and what had been sent when the last one came.
    hole_ns: Option<u64>,
    sent: u64,
    /// The last ACK was of less than two segments.
    small: bool,
    /// Selective ACKs were cut off: ranges that nobody knows of, up to what had been sent.
    unread: bool,
}

/// An ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ack<'a> {
    /// Stream offsets acknowledged before, and now.
    pub(super) before: u64,
    pub(super) ack: u64,
    /// Stream offset of all that was sent, as far as it was seen.
    pub(super) sent: u64,
    /// Selectively acknowledged ranges.
    pub(super) blocks: &'a [(u64, u64)],
    /// The ACK repeats the last one, and there is something to acknowledge.
    pub(super) duplicate: bool,
    /// When the first byte that it acknowledges for the first time was sent, where that is known.
    pub(super) sent_ns: Option<u64>,
    /// How late the ACK is; 0 if that is not known.
    pub(super) late_ns: u64,
    /// The shortest time that the acknowledged data waited in queues, and the longest if that is known.
    pub(super) queued_ns: u64,
    pub(super) within_ns: Option<u64>,
    /// Payload of a full segment.
    pub(super) full: u64,
    /// The options of the ACK were cut off.
    pub(super) cut: bool,
}

/// What an ACK reported as delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delivered {
    /// Bytes that were reported for the first time.
    pub(super) bytes: u64,
    /// The bytes arrived after this and before the ACK; `None`: unknown.
    pub(super) since_ns: Option<u64>,
    /// When the previous ACK came.
    pub(super) previous_ack_ns: Option<u64>,
    /// The shortest time that they waited in queues, and the longest time behind the capture point.
    pub(super) queued_ns: u64,
    pub(super) within_ns: Option<u64>,
    /// The ACK was not delayed for want of a second segment, as far as the capture shows.
    pub(super) prompt: bool,
    /// The ACK covered two segments or more.
    pub(super) double: bool,
    /// How late the ACK was by its timestamp.
    pub(super) late_ns: Option<u64>,
    /// How late the ACK was is unknown: there are neither timestamps nor round-trip times.
    pub(super) blind: bool,
}

impl Ledger {
    /// Whether something beyond the cumulative ACK has arrived.
    pub(super) fn has_hole(&self) -> bool {
        !self.ranges.is_empty() || self.presumed > 0
    }

    /// Takes an ACK; `None`: it reported nothing new.
    pub(super) fn on_ack(&mut self, now_ns: u64, ack: &Ack<'_>) -> Option<Delivered> {
        let mut bytes = 0;
        for block in ack.blocks {
            self.selective |= block.0 < block.1;
            bytes += self.add(block.0.max(ack.ack), block.1);
        }
        let (mut recovered, mut guessed) = (false, false);
        if ack.ack > ack.before {
            recovered = self.hole_ns.is_some();
            let known = self.pass(ack.before, ack.ack).saturating_add(self.presumed);
            bytes += (ack.ack - ack.before).saturating_sub(known);
            self.presumed = self.presumed.saturating_sub(ack.ack - ack.before);
        } else if ack.duplicate && !self.selective {
            self.presumed += ack.full;
            self.sent = ack.sent;
            bytes += ack.full;
            guessed = true; // it may have been a short one
        }
        if ack.cut && ack.duplicate {
            (self.unread, self.sent) = (true, ack.sent);
        } else if ack.ack >= self.sent {
            self.unread = false;
        }
        // Where holes were, what an ACK adds may have come since the first of them.
        let since_hole = self.hole_ns.filter(|_| recovered);
        // Duplicate ACKs do not say how many holes there are.
        let unclear = self.unread || !self.selective && (ack.ack < self.sent || bytes > 2 * ack.full);
        self.hole_ns = match self.hole_ns {
            Some(hole) if self.has_hole() || unclear => Some(hole),
            None if self.has_hole() || self.unread => Some(now_ns),
            Some(_) | None => None,
        };
        let before = self.last_ack.replace((now_ns, ack.late_ns));
        if bytes == 0 {
            return None;
        }
        let reported_since = before.map(|(at, late)| at.saturating_sub(late + TICK_NS));
        let since_ns = since_hole.or(reported_since).into_iter().chain(ack.sent_ns).max();
        let small = bytes < 2 * ack.full;
        let prompt = !small || self.small;
        self.small = small;
        Some(Delivered {
            bytes,
            since_ns: since_ns.filter(|_| !guessed).map(|since| match since_hole {
                Some(hole) => since.min(hole),
                None => since,
            }),
            previous_ack_ns: before.map(|before| before.0),
            queued_ns: ack.queued_ns,
            within_ns: ack.within_ns,
            prompt: prompt && !recovered,
            double: !small,
            late_ns: None,
            blind: false,
        })
    }

    /// The range is known now; how much of it was not before.
    fn add(&mut self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let begin = self.ranges.partition_point(|range| range.1 < from);
        let end = self.ranges.partition_point(|range| range.0 <= to);
        let touched = self.ranges.get(begin..end).unwrap_or(&[]);
        let known: u64 = touched
            .iter()
            .map(|range| range.1.min(to).saturating_sub(range.0.max(from)))
            .sum();
        let all = (
            touched.first().map_or(from, |first| first.0.min(from)),
            touched.last().map_or(to, |last| last.1.max(to)),
        );
        self.ranges.splice(begin..end, [all]);
        if self.ranges.len() > MOST_RANGES {
            // The gap between the first two is not counted any more: rather too little than too much.
            let second = self.ranges.remove(1);
            self.ranges[0].1 = second.1;
        }
        to - from - known
    }

    /// All up to `ack` is acknowledged; how much of it was known.
    fn pass(&mut self, before: u64, ack: u64) -> u64 {
        let mut known = 0;
        self.ranges.retain_mut(|range| {
            known += range.1.min(ack).saturating_sub(range.0.max(before));
            range.0 = range.0.max(ack);
            range.0 < range.1
        });
        known
    }
}

/// Ranges that are remembered.
const MOST_RANGES: usize = 256;

#[cfg(test)]
mod tests {
    use super::{Ack, Delivered, Ledger};

    fn ack(before: u64, ack: u64) -> Ack<'static> {
        Ack {
            before,
            ack,
            sent: ack,
            full: 1000,
            ..Ack::default()
        }
    }

    #[test]
    fn a_byte_counts_when_it_was_reported_first() {
        let mut ledger = Ledger::default();
        let bytes = |delivered: Option<Delivered>| delivered.map_or(0, |delivered| delivered.bytes);
        assert_eq!(bytes(ledger.on_ack(1, &ack(0, 2000))), 2000);
        // 2000..3000 is lost; three segments behind it come one by one.
        for (at, end) in [(2, 4000), (3, 5000), (4, 6000)] {
            let blocks = [(3000, end)];
            let delivered = ledger.on_ack(
                at,
                &Ack {
                    blocks: &blocks,
                    duplicate: true,
                    ..ack(2000, 2000)
                },
            );
            assert_eq!(bytes(delivered), 1000, "{end}");
        }
        // The hole is filled: only it is new.
        let delivered = ledger.on_ack(50, &ack(2000, 6000)).expect("something new");
        assert_eq!(
            (delivered.bytes, delivered.since_ns, delivered.previous_ack_ns),
            (1000, Some(2), Some(4))
        );
        assert!(!ledger.has_hole());
    }

    #[test]
    fn duplicate_acks_tell_of_a_segment_each() {
        let mut ledger = Ledger::default();
        ledger.on_ack(1, &ack(0, 2000));
        let duplicate = Ack {
            duplicate: true,
            ..ack(2000, 2000)
        };
        for at in 2..7 {
            assert_eq!(ledger.on_ack(at, &duplicate).expect("a segment").bytes, 1000);
        }
        assert_eq!(ledger.on_ack(9, &ack(2000, 8000)).expect("the hole").bytes, 1000);
        assert_eq!(ledger.on_ack(10, &ack(8000, 10_000)).expect("more").bytes, 2000);
    }

    #[test]
    fn ranges_that_were_cut_off_are_no_burst() {
        let mut ledger = Ledger::default();
        ledger.on_ack(1, &ack(0, 2000));
        for (at, end) in [(20, 4000), (30, 5000)] {
            let blocks = [(3000, end)];
            ledger.on_ack(
                at,
                &Ack {
                    blocks: &blocks,
                    duplicate: true,
                    cut: true,
                    sent: 90_000,
                    ..ack(2000, 2000)
                },
            );
        }
        // What is reported now came since the first range was cut off.
        for end in [6000, 80_000] {
            let all = Ack {
                sent: 90_000,
                ..ack(2000, end)
            };
            let delivered = ledger.on_ack(50_000_000, &all).expect("something new");
            assert_eq!(delivered.since_ns, Some(20), "{end}");
        }
    }

    #[test]
    fn ranges_are_joined_and_bounded() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.add(10, 20), 10);
        assert_eq!(ledger.add(30, 40), 10);
        assert_eq!(ledger.add(15, 35), 10);
        assert_eq!(ledger.ranges, [(10, 40)]);
        assert_eq!(ledger.pass(0, 25), 15);
        assert_eq!(ledger.ranges, [(25, 40)]);
        let mut sum = 0;
        for number in 0..2000 {
            sum += ledger.add(100 + 10 * number, 105 + 10 * number);
        }
        assert!(ledger.ranges.len() <= 256 && sum <= 10_000);
    }
}
