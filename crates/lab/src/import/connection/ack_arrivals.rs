//! What an acknowledgment reports as delivered, and how long the data waited in queues.

use super::{Connection, LOST_TRACK, Prompt, Seen, offset};
use crate::import::clock::TICK_NS;
use crate::import::delivery::{Ack, Delivered};
use crate::import::link_layer::{FIN, SYN, Tcp};

impl Connection {
    /// Takes in what an ACK reports as delivered. The tuple holds where the previous ACK ended, when the first byte was sent that was
    /// not acknowledged yet, and how late the ACK is by its timestamp.
    pub(super) fn take_ack_arrivals(
        &mut self,
        now_ns: u64,
        side: usize,
        tcp: &Tcp,
        (before, sent_ns, late_ns): (u64, Option<u64>, Option<u64>),
        seen: &mut Seen,
    ) {
        let [own, other] = match &mut self.ends {
            [first, second] if side == 0 => [first, second],
            [first, second] => [second, first],
        };
        let Some(origin) = other.origin else { return };
        let mut blocks = [(0, 0); 4];
        for (block, sack) in blocks.iter_mut().zip(tcp.sack) {
            let edges = [sack.0, sack.1].map(|edge| offset(edge, origin, other.acked));
            if let [Some(from), Some(to)] = edges
                && (other.packets == 0 || to <= other.next)
                && to.saturating_sub(from) < LOST_TRACK
            {
                *block = (from, to);
            }
        }
        // RFC 2883: a first range that is acknowledged already came twice.
        let [first, ..] = blocks;
        other.needless += u64::from(first.0 < first.1 && first.1 <= other.acked.min(other.next));
        let had_hole = other.ledger.has_hole();
        let rides = tcp.payload > 0;
        let advances = other.acked > before;
        // In a recovery the timestamp echoed stays what it was.
        let echoed = tcp
            .timestamps
            .filter(|_| advances && !other.ledger.has_hole() && !tcp.has(SYN))
            .and_then(|stamps| own.echo.late(now_ns, stamps.1));
        let waited = echoed.map_or(0, |late| late.saturating_sub(TICK_NS));
        let beyond = seen.sample_ns.map_or(0, |sample| sample.1);
        let hidden = other.packets == 0;
        let full = match hidden {
            true => u64::from(1500_u32.saturating_sub(tcp.headers())).max(1),
            false => u64::from(other.full()),
        };
        let headers = match hidden {
            true => tcp.headers(),
            false => other.headers,
        };
        let delivered = other.ledger.on_ack(
            now_ns,
            &Ack {
                before: before.min(other.next),
                ack: other.acked.min(other.next),
                // Unknown where the capture does not show that end.
                sent: if hidden { u64::MAX } else { other.next },
                blocks: &blocks,
                duplicate: !advances
                    && tcp.payload == 0
                    && !tcp.has(SYN)
                    && !tcp.has(FIN)
                    && (hidden || other.next > other.acked),
                sent_ns,
                late_ns: late_ns.unwrap_or(own.late_ns),
                // What the ACK itself waited is not the data's.
                queued_ns: waited.max(beyond).saturating_sub(late_ns.unwrap_or(0)),
                within_ns: match seen.sample_ns {
                    Some((_, beyond)) => Some(beyond),
                    None => echoed.filter(|_| hidden).map(|late| late + TICK_NS),
                },
                full,
                cut: tcp.cut,
            },
        );
        let delivered = delivered.map(|delivered| Delivered {
            late_ns,
            blind: hidden && late_ns.is_none(),
            // One that rides on data may have been held back until the application spoke: it shows no queue. A second full segment
            // is acknowledged at once (RFC 1122 4.2.3.2).
            queued_ns: match rides && !delivered.double {
                true => 0,
                false => delivered.queued_ns,
            },
            ..delivered
        });
        // The last packet that arrived before a hole came into the queue just before those that it dropped.
        if !had_hole && other.ledger.has_hole() {
            let near = own
                .waited
                .filter(|waited| now_ns.saturating_sub(waited.0) < DELAYED_NS);
            seen.loss_waited_ns[0] = near.map(|waited| waited.1);
        }
        if let (Some(delivered), Some((sample, _))) = (&delivered, seen.sample_ns) {
            let least = own.half_ns.unwrap_or(sample);
            // The ACK of a single segment may have been delayed, one with data waited for the application.
            let gap = delivered
                .previous_ack_ns
                .map(|before| now_ns.saturating_sub(before));
            let gap = gap.filter(|gap| *gap < DELAYED_NS);
            let known = !rides && (delivered.double || beyond < DELAYED_NS);
            let way = match own.prompt {
                _ if known => sample,
                // It bounds the way from above only. What it waited itself is known, what the data waited only if an ACK came shortly before they left.
                _ if rides => {
                    let left_ns = now_ns.saturating_sub(sample);
                    let before = own
                        .prompt
                        .filter(|before| left_ns.saturating_sub(before.at_ns) < DELAYED_NS);
                    let late = late_ns.map_or(0, |late| late.saturating_sub(TICK_NS));
                    let before = before.map_or(least, |before| before.way_ns);
                    sample.min(before.max(least + late))
                }
                // A value from long ago shows nothing.
                Some(_) if gap.is_none() && delivered.previous_ack_ns.is_some() => sample.min(least),
                Some(before) => sample.min(before.way_ns + gap.unwrap_or(before.gap_ns)),
                None => 0,
            };
            // No timer of a delayed ACK runs longer than the shortest delay that one had.
            let alone = !rides && !known;
            if alone {
                own.alone_ns = Some(own.alone_ns.map_or(beyond, |least| least.min(beyond)));
            }
            let delayed = own.alone_ns.unwrap_or(u64::MAX);
            let settled = way.max(if alone { sample.saturating_sub(delayed) } else { 0 });
            let waited = way.saturating_sub(own.half_ns.unwrap_or(0));
            if known || !rides && gap.is_some() {
                own.prompt = Some(Prompt {
                    way_ns: way,
                    gap_ns: gap.unwrap_or(0),
                    at_ns: now_ns,
                });
                // What the ACK itself waited is not the data's.
                let late = late_ns.map_or(0, |late| late.saturating_sub(TICK_NS));
                let waited = waited.saturating_sub(late);
                seen.waited_ns = Some(waited);
                if !had_hole && !other.ledger.has_hole() {
                    own.waited = Some((now_ns, waited));
                }
            }
            self.units.settle((1 - side) as u8, other.acked, settled);
        }
        seen.delivered = delivered.map(|delivered| {
            (
                delivered,
                delivered.bytes + delivered.bytes.div_ceil(full) * u64::from(headers),
            )
        });
    }
}

/// ACKs are delayed by this at least (Linux: 40 ms).
const DELAYED_NS: u64 = 38_000_000;
