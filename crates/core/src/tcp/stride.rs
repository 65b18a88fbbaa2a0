//! Acknowledgments in a row of a window that is full.
//!
//! Where an endpoint sends as ns-2's agent does, an acknowledgment of one segment lets one or two new ones go, and the next
//! acknowledgment does the same. What changes from one to the next is little; the rest is done once for all of them.
//!
//! **Source.** The clauses of the general ways.
//! **Deviations.** None: nothing of it can be seen from outside.

use super::Connection;
use super::scoreboard::Record;
use super::send::CaState;
use super::timers::Timer;
use super::ways::Slot;
use crate::packet::Segment;
use crate::seq::SeqNumber;
use crate::time::{Duration, Instant};

/// Where acknowledgments come from, and where what they let go is written.
pub trait Acknowledgments {
    /// The next one and when it comes, if it is for this connection and nothing else happens to it before.
    fn next(&mut self) -> Option<(Instant, &mut Segment)>;
    /// A segment that leaves stands in its place.
    fn answered(&mut self);
    /// Another segment leaves at that time: where to write it.
    fn another(&mut self) -> &mut Segment;
}

impl Connection {
    /// After [`Connection::progress`] made `sent` of `came`, and the window was full again: acknowledgments like it, as long as
    /// each lets one or two full segments go. How many these were: of the next nothing was done.
    #[inline]
    pub fn stride<A: Acknowledgments>(&mut self, came: &Segment, sent: &Segment, acks: &mut A) -> usize {
        let (shared, receive) = (&mut self.shared, &mut self.receive);
        let Some(sender) = self.sender.as_deref_mut() else {
            return 0;
        };
        let ways = shared.ways;
        let (Some(agent), false) = (sender.sack1.as_deref_mut(), self.write_blocked) else {
            return 0;
        };
        let usual = ways.acks
            && ways.ns2
            && ways.segments
            && !(ways.undo | ways.answers | shared.timestamps | receive.acking.now)
            && ways.slot == Slot::Rto
            && shared.events == 0
            && shared.timers.kind() == Some(Timer::Rto)
            && shared.config.offload_segments.is_none()
            && receive.beyond.is_none()
            && sender.state == CaState::Open
            && sender.limited
            && sent.payload == shared.mss
            && sent.seq == SeqNumber::from_offset(shared.iss, sender.nxt - u64::from(shared.mss));
        if !usual {
            return 0;
        }
        let (mss, unit) = (u64::from(shared.mss), u64::from(sender.board.unit));
        let window_field = u64::from(came.window) << shared.snd_scale;
        // Segments end before this, and ACKs before that of what is timed.
        let (end, timed) = (sender.end, agent.timed_until());
        let (mut una, mut nxt, mut out) = (sender.una, sender.nxt, sender.board.out);
        let (mut latency, mut left, mut taken) = (Duration::ZERO, 0, 0);
        let mut last = Instant::ZERO;
        while let Some((now, segment)) = acks.next() {
            let Some(first) = sender.board.ring.front() else {
                break;
            };
            let ack = first.end();
            let after = nxt + 2 * mss;
            let alike = segment.ack == SeqNumber::from_offset(shared.iss, ack)
                && segment.seq == came.seq
                && segment.payload == 0
                && segment.window == came.window
                && segment.flags.0 == came.flags.0
                && segment.tos == came.tos
                && segment.kind_sack == came.kind_sack
                && ack < timed
                && after < end
                && after <= ack + window_field;
            if !alike {
                break;
            }
            let grown = sender.cc.fraction_after_ack();
            let window = grown.window.min(ways.most);
            // One or two segments, then the window is full.
            let full_after = out + 2 * unit;
            if out > window || full_after <= window {
                break;
            }
            let two = out + unit <= window;
            sender.cc.take_fraction(grown);
            latency += now.since(first.last_tx);
            sender.board.ring.drop_front();
            una = ack;
            if ack > sender.round_end {
                sender.round_end = nxt;
            }
            let record = Record::new(now, nxt, shared.mss, 0);
            *segment = *sent;
            segment.seq = SeqNumber::from_offset(shared.iss, nxt);
            sender.board.push_weighing(record, 0);
            nxt += mss;
            acks.answered();
            if two {
                let record = Record { seq: nxt, ..record };
                let segment = acks.another();
                *segment = *sent;
                segment.seq = SeqNumber::from_offset(shared.iss, nxt);
                sender.board.push_weighing(record, 0);
                nxt += mss;
                out += unit;
            }
            left += 1 + u64::from(two);
            last = now;
            taken += 1;
        }
        if taken == 0 {
            return 0;
        }
        sender.board.out = out;
        sender.board.work.add(taken);
        let stats = &mut *shared.stats;
        stats.ack_latency_sum += latency;
        stats.ack_latency_count += taken as u64;
        stats.bytes_sent += left * mss;
        stats.segments_sent += left;
        sender.delivered_total += taken as u64 * unit;
        (sender.una, sender.nxt) = (una, nxt);
        (sender.dup_acks, sender.limited_sent, sender.retries) = (0, 0, 0);
        sender.sws_override = false;
        sender.last_send = last;
        agent.on_sent(last, nxt);
        sender.validate_full(last, shared);
        shared.take_window(came, receive.rcv_nxt, una);
        shared
            .timers
            .arm(Timer::Rto, last + shared.rtt.rto(&shared.config.rto));
        self.checked(true);
        taken
    }
}
