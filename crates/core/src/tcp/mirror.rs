//! Segments in a row at an end that only acknowledges them.
//!
//! What [`Connection::reflect`] did for one segment it does for the next ones too, if they are like it and follow each other:
//! in order, or each prolonging the last range beyond a hole. A [`Mirror`] knows what changes from one to the next, which
//! is little, and gives it back to the connection at the end.
//!
//! **Source.** The clauses of the general ways.
//! **Deviations.** None: nothing of it can be seen from outside.

use super::Connection;
use crate::packet::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::time::Instant;

/// A connection while it reflects segments that are alike.
#[derive(Clone, Copy, Debug)]
pub struct Mirror {
    /// What the next segment must be.
    seq: SeqNumber,
    ack: SeqNumber,
    payload: u32,
    window: u16,
    /// But for PSH.
    flags: Flags,
    tos: u8,
    /// They prolong what has arrived in order; otherwise the last range beyond a hole.
    in_order: bool,
    /// Where that ends.
    end: u64,
    /// The right edge of the window.
    edge: u64,
    /// The receive buffer, the most that a window field says, and its scale.
    buffer: u64,
    most: u64,
    scale: u8,
    step: u32,
    /// What answered the first; the rest differ in what follows from `seq`.
    answer: Segment,
}

impl Connection {
    /// After [`Connection::reflect`] made `answer` of `came`: what more like it come to. `None`: they are not alike enough.
    #[inline]
    pub fn mirror(&self, came: &Segment, answer: &Segment) -> Option<Mirror> {
        let (shared, receive) = (&self.shared, &self.receive);
        let after = came.seq.0.wrapping_add(came.payload);
        let in_order = answer.ack.0 == after;
        let end = if in_order {
            receive.rcv_nxt
        } else {
            let beyond = receive.beyond.as_ref()?;
            let last = beyond.ranges.back()?;
            // The first block is the last range, and nothing else changes.
            let first = beyond.recent[0] == (last.start, last.end) && beyond.duplicate.is_none();
            let told = answer.sack_blocks() > 0 && answer.options[1] == after;
            if !first || !told || SeqNumber::from_offset(shared.irs, last.end).0 != after {
                return None;
            }
            last.end
        };
        Some(Mirror {
            seq: SeqNumber(after),
            ack: came.ack,
            payload: came.payload,
            window: came.window,
            flags: came.flags.without(Flags::PSH),
            tos: came.tos,
            in_order,
            end,
            edge: receive.edge,
            buffer: shared.config.receive_buffer.get(),
            most: 65_535 << shared.rcv_scale,
            scale: shared.rcv_scale,
            step: shared.ways.step,
            answer: *answer,
        })
    }

    /// Takes over what a mirror did, the last of it at `now`.
    #[inline]
    pub fn take_mirror(&mut self, mirror: &Mirror, now: Instant) {
        let (shared, receive) = (&mut self.shared, &mut self.receive);
        let payload = u64::from(mirror.payload);
        if mirror.in_order {
            receive.rcv_nxt = mirror.end;
            receive.read = mirror.end;
            receive.edge = mirror.edge;
            receive.acking.start(now);
            shared.last_ack_sent = mirror.end;
        } else if let Some(beyond) = &mut receive.beyond
            && let Some(last) = beyond.ranges.back_mut()
        {
            last.end = mirror.end;
            beyond.recent[0].1 = mirror.end;
        }
        let came = Segment {
            window: mirror.window,
            ..Segment::default()
        };
        shared.take_window(&came, mirror.end - payload, 1);
        self.checked(true);
    }
}

impl Mirror {
    /// What answers the segments, but for what changes from one to the next.
    pub fn answer(&self) -> &Segment {
        &self.answer
    }

    /// [`Connection::reflect`] of one more segment. False: it is another case, and nothing was done.
    #[inline(always)]
    pub fn reflect(&mut self, segment: &mut Segment) -> bool {
        let after = self.end + u64::from(self.payload);
        if segment.seq != self.seq
            || segment.ack != self.ack
            || segment.payload != self.payload
            || segment.window != self.window
            || segment.flags.0 & !Flags::PSH.0 != self.flags.0
            || segment.tos != self.tos
            || after > self.edge
        {
            return false;
        }
        self.end = after;
        self.seq = SeqNumber(self.seq.0.wrapping_add(self.payload));
        if self.in_order {
            // What is read at once opens the window again: see `Receive::offer_buffer`.
            let wanted = after + self.buffer;
            if wanted >= self.edge + u64::from(self.step) {
                self.edge = after + self.buffer.min(self.most);
            }
            *segment = self.answer;
            segment.ack = self.seq;
            segment.window = ((self.edge - after) >> self.scale) as u16;
        } else {
            *segment = self.answer;
            segment.options[1] = self.seq.0;
        }
        true
    }
}
