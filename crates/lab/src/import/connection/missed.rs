//! Data that the capture missed, known from its acknowledgment alone.
//!
//! Of an end that the capture does not show at all each ACK is believed at once. Else an ACK of more than was seen may have
//! overtaken the data (captures of several interfaces are not in order). So it is remembered, and believed when the turn is over:
//! when the other end speaks, at a FIN behind the missed bytes or an ACK of it, at the end of the connection. Where the FIN was
//! missed too, its number counts as a byte.

use super::{Connection, End, LOST_TRACK, offset};

/// What was acknowledged of an end and not captured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Missed {
    /// The highest ACK beyond what was seen, and when it came.
    ack: Option<(u64, u64)>,
    /// The last range that was taken as missed.
    taken: Option<(u64, u64)>,
}

impl Connection {
    /// An acknowledgment of an end of which the capture shows nothing. Where it acknowledged up to before.
    pub(super) fn infer(&mut self, now_ns: u64, side: usize, ack: u32) -> Option<u64> {
        let hidden = &mut self.ends[1 - side];
        let origin = *hidden.origin.get_or_insert(ack);
        let ack = offset(ack, origin, hidden.next)?;
        // A FIN takes a number too: one that stands alone at the end is no byte.
        let before = hidden.next;
        let new = ack.saturating_sub(before);
        if (2..LOST_TRACK).contains(&new) {
            (hidden.next, hidden.acked) = (ack, ack);
            hidden.last_data_ns = now_ns;
            self.units.add((1 - side) as u8, now_ns, new, false, ack);
        }
        Some(before)
    }

    /// `ack` is beyond what was seen of `side`.
    pub(super) fn note_missed(&mut self, now_ns: u64, side: usize, ack: u64) {
        let end = &mut self.ends[side];
        if ack - end.next >= LOST_TRACK {
            return; // of what was never sent
        }
        if end.missed.ack.is_none_or(|known| known.0 < ack) {
            end.missed.ack = Some((ack, now_ns));
        }
        if end.fin == Some(ack) {
            self.take_missed(side, ack);
            self.ends[side].acked = ack;
        }
    }

    /// What `side` sent up to `limit` was said, as far as it is acknowledged.
    pub(super) fn take_missed(&mut self, side: usize, limit: u64) {
        let half_ns = self.ends[1 - side].half_ns.unwrap_or(0);
        let end = &mut self.ends[side];
        let Some((ack, at_ns)) = end.missed.ack else {
            return;
        };
        // A FIN takes a number too.
        let last = end.fin.map_or(u64::MAX, |fin| fin - 1);
        let to = ack.min(limit).min(last);
        if to <= end.next {
            return;
        }
        // What was acknowledged before is the turn before.
        if self.ends[1 - side]
            .missed
            .ack
            .is_some_and(|other| other.1 < at_ns)
        {
            self.take_missed(1 - side, u64::MAX);
        }
        let end = &mut self.ends[side];
        if to >= ack.min(last) {
            end.missed.ack = None;
        }
        let new = to - end.next;
        end.missed.taken = Some((end.next, to));
        // All that is in holes was acknowledged too.
        end.missing += 1 + end.holes.len() as u64;
        end.holes.clear();
        end.timed.clear();
        (end.next, end.acked) = (to, to);
        end.idle_since_ns = Some(at_ns);
        // It passed as long before its ACK as the way from here to the other end and back takes, behind all that was seen.
        let sent_ns = at_ns.saturating_sub(half_ns).max(end.last_data_ns);
        (end.last_data_ns, end.last_length) = (sent_ns, u32::try_from(new).unwrap_or(u32::MAX));
        (end.unpushed, end.held) = (false, false);
        self.units.add(side as u8, sent_ns, new, false, to);
    }

    /// Nothing more comes.
    pub(in crate::import) fn conclude(&mut self) {
        for side in [0, 1] {
            self.take_missed(side, u64::MAX);
        }
    }
}

impl End {
    /// Whether a segment was taken as missed and is only late. Its sender has no reason to retransmit what was acknowledged.
    pub(super) fn is_late(&mut self, start: u64, stop: u64) -> bool {
        let taken = self.missed.taken;
        let taken = taken.filter(|taken| taken.0 <= start && stop <= taken.1);
        if taken.is_some_and(|taken| taken.1 == stop) {
            // With its last segment all of it is there.
            self.missing -= 1;
            self.missed.taken = None;
        }
        taken.is_some()
    }
}
