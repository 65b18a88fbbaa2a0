//! Segments that were overtaken on their way, told from those that were sent again.
//!
//! A clock does not go back (RFC 7323 4.1): a segment that was sent before the one that overtook it has no younger timestamp than that, and one that is sent again
//! because of it has, by a round-trip time or more. So the timestamp of the segment that opened a hole says what fills it, and that of what was sent again and filled it
//! says what comes behind that. Where both are of one tick, or there are no timestamps, a segment that fills the hole sooner than its sender can have heard
//! of it is the original: a round-trip time between the capture point and the sender.

use super::{End, Hole};

impl End {
    /// Whether data without a new byte was not sent again, but late.
    pub(super) fn is_overtaken(
        &mut self,
        now_ns: u64,
        (start, stop): (u64, u64),
        stamp: Option<u32>,
    ) -> bool {
        let within = |hole: &Hole| hole.from <= start && stop <= hole.to;
        if let Some(place) = self.holes.iter().position(within) {
            let hole = self.holes.swap_remove(place);
            for (from, to) in [(hole.from, start), (stop, hole.to)] {
                if from < to {
                    self.holes.push(Hole { from, to, ..hole });
                }
            }
            let soon = now_ns.saturating_sub(hole.since_ns) < self.half_ns.unwrap_or(REORDERING_NS);
            let original = hole.sent_before(stamp).unwrap_or(soon);
            if !original && stamp.is_some() {
                if self.repaired.len() == MOST_REPAIRED {
                    self.repaired.pop_front();
                }
                self.repaired.push_back(Hole {
                    from: start,
                    to: stop,
                    stamp,
                    ..hole
                });
            }
            return original;
        }
        // What was sent again came first.
        let place = self.repaired.iter().position(within);
        let original = place.and_then(|place| self.repaired.get(place)?.sent_before(stamp));
        if original == Some(true)
            && let Some(place) = place
        {
            self.repaired.remove(place);
        }
        original == Some(true)
    }
}

impl Hole {
    /// Whether a segment with this timestamp was sent before the one that the hole remembers; `None`: in the same tick, or nothing shows it.
    fn sent_before(&self, stamp: Option<u32>) -> Option<bool> {
        match self.stamp?.wrapping_sub(stamp?).cast_signed() {
            0 => None,
            older => Some(older > 0),
        }
    }
}

/// A segment fills a hole of reordering within this, where no round-trip time is known.
const REORDERING_NS: u64 = 3_000_000;
/// Repaired ranges that are remembered.
const MOST_REPAIRED: usize = 32;
