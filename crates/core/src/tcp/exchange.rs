//! A segment that arrives and what answers it, in one step.
//!
//! A driver that knows that nothing else happens to a connection meanwhile may give it a segment and have the answer
//! written in its place. The short ways ([`super::short`]) are joined here: what a segment decided need not be asked again for
//! the answer.
//!
//! **Source.** The clauses of the general ways.
//! **Deviations.** None: nothing of it can be seen from outside.

use super::Connection;
use super::receive::Receive;
use super::send::CaState;
use super::short::LOOKED_AT;
use super::{Event, Shared};
use crate::packet::{Ecn, Flags, Segment};
use crate::seq::SeqNumber;
use crate::time::Instant;

/// What became of a segment and of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Stream offset up to which everything has arrived in order.
    pub in_order: u64,
    /// A segment leaves now, and stands in the place.
    pub answers: bool,
    /// There may be more to send, or events to take.
    pub more: bool,
    /// No deadline is earlier than before.
    pub settled: bool,
}

impl Connection {
    /// A segment arrived whose place may be taken by the one that answers it: [`Connection::on_segment`] and what a drain
    /// begins with. With `more` the rest of the drain, and events, are left to
    /// the caller. Only where the application does nothing in between.
    #[inline(always)]
    pub fn exchange(&mut self, now: Instant, segment: &mut Segment) -> Exchange {
        if self.reflect(now, segment) {
            return Exchange {
                in_order: self.receive.rcv_nxt - 1,
                answers: true,
                more: false,
                settled: true,
            };
        }
        match self.progress(now, segment) {
            Some(exchange) => exchange,
            None => self.exchange_any(now, segment),
        }
    }

    /// [`Connection::exchange`] where neither [`Connection::reflect`] nor [`Connection::progress`] has done it.
    #[inline]
    pub fn exchange_any(&mut self, now: Instant, segment: &mut Segment) -> Exchange {
        let in_order = self.on_segment(now, segment).in_order;
        let mut exchange = Exchange {
            in_order,
            answers: false,
            more: true,
            settled: false,
        };
        if self.shared.events == 0
            && let Some(answer) = self.plain_segment(now, segment)
        {
            exchange.answers = answer.is_some();
            exchange.more = answer.is_some() && self.may_send_more(now);
        }
        exchange
    }

    /// Data comes to an end that never sent any, reads at once and delays no acknowledgment: what
    /// [`Connection::on_segment`] and [`Connection::poll_segment`] come to where it is expected next, or comes behind a hole
    /// after all that came so far. False: it is another case, and nothing was done.
    #[inline(always)]
    pub fn reflect(&mut self, now: Instant, segment: &mut Segment) -> bool {
        let (shared, receive) = (&mut self.shared, &mut self.receive);
        let (nxt, payload) = (receive.rcv_nxt, u64::from(segment.payload));
        let reflects = shared.ways.echoes
            && segment.flags.0 & LOOKED_AT.0 == shared.ways.arrivals
            && segment.ecn() != Ecn::Ce
            && segment.ack == SeqNumber::from_offset(shared.iss, 1)
            && receive.takes_usual(segment.payload);
        if !reflects {
            return false;
        }
        let wire = SeqNumber::from_offset(shared.irs, nxt);
        let ahead = u64::from(segment.seq.0.wrapping_sub(wire.0));
        if ahead + payload > receive.window() {
            return false;
        }
        if ahead == 0 {
            if !receive.beyond_is_empty() {
                return false;
            }
            receive.rcv_nxt = nxt + payload;
            receive.read = nxt + payload;
            receive.acking.start(now);
        } else if !receive.takes_beyond(shared, nxt + ahead, payload) {
            return false;
        }
        shared.take_window(segment, nxt + ahead, 1);
        let window = receive.offer_buffer(&shared.config, shared.ways.step, shared.rcv_scale);
        *segment = Segment {
            seq: segment.ack,
            ack: SeqNumber::from_offset(shared.irs, receive.rcv_nxt),
            window: (window >> shared.rcv_scale) as u16,
            flags: Flags(Flags::ACK.0 | Flags::DF.0),
            ttl: 64,
            overhead: shared.ways.overhead,
            ..Segment::default()
        };
        shared.last_ack_sent = receive.rcv_nxt;
        receive.acking.settle();
        if receive.beyond.is_some() {
            self.report_blocks(segment);
        }
        self.checked(true);
        true
    }

    /// An acknowledgment without payload that is news and nothing else, with the segment that it lets go; or, in a recovery as
    /// ns-2 has it, one that tells of one more segment and lets nothing go. `None`: it is another case, and nothing was done.
    #[inline(always)]
    pub fn progress(&mut self, now: Instant, segment: &mut Segment) -> Option<Exchange> {
        let exchange = self.progress_unchecked(now, segment)?;
        self.checked(!exchange.more);
        Some(exchange)
    }

    #[inline(always)]
    fn progress_unchecked(&mut self, now: Instant, segment: &mut Segment) -> Option<Exchange> {
        let (shared, receive) = (&mut self.shared, &self.receive);
        let sender = self.sender.as_deref_mut()?;
        let seq = receive.rcv_nxt;
        if segment.payload > 0
            || segment.flags.0 & LOOKED_AT.0 != shared.ways.arrivals
            || segment.ecn() == Ecn::Ce
            || segment.seq != SeqNumber::from_offset(shared.irs, seq)
        {
            return None;
        }
        let una = sender.una;
        let news = u64::from(
            segment
                .ack
                .0
                .wrapping_sub(SeqNumber::from_offset(shared.iss, una).0),
        );
        if news > sender.nxt - una {
            return None;
        }
        if shared.timestamps {
            if (segment.tsval.wrapping_sub(shared.ts_recent) as i32) < 0 {
                return None; // PAWS
            }
            if seq <= shared.last_ack_sent {
                shared.ts_recent = segment.tsval; // RFC 7323 4.3 (2)
            }
        }
        let mut exchange = Exchange {
            in_order: seq - 1, // no FIN is known
            answers: false,
            more: true,
            settled: false,
        };
        if news == 0 {
            if !shared.ways.recovers || !sender.take_next_sacked(shared, segment, seq) {
                return None;
            }
            exchange.more = receive.acking.now || shared.events != 0 || !sender.lets_drain(now, shared);
            exchange.settled = true;
            return Some(exchange);
        }
        if !sender.is_quiet(shared, segment) {
            return None;
        }
        let ack = una + news;
        shared.take_window(segment, seq, ack);
        if shared.ways.ns2 {
            sender.on_quiet_ack_sack1(now, shared, segment, ack);
        } else {
            sender.on_quiet_ack(now, shared, segment, ack);
        }
        if self.write_blocked || sender.state != CaState::Open {
            self.after_progress();
            return Some(exchange);
        }
        if !shared.ways.segments || shared.events != 0 {
            return Some(exchange);
        }
        let seq = sender.nxt;
        match sender.plain_segment(now, shared) {
            None => {}
            Some(None) => exchange.more = self.receive.acking.now,
            Some(Some((push, more))) => {
                exchange.answers = true;
                exchange.more = more;
                if !more {
                    sender.validate_full(now, shared);
                }
                if shared.ways.answers {
                    self.receive.acking.on_data_sent(now);
                }
                let payload = shared.mss;
                let flags = if push { Flags::PSH } else { Flags(0) };
                self.header(now, seq, payload, flags, segment);
            }
        }
        Some(exchange)
    }

    /// [`Connection::poll_segment`] in a drain that goes on, and whether it is worth while to ask for more.
    #[inline(always)]
    pub fn poll_more(&mut self, now: Instant, segment: &mut Segment) -> Option<bool> {
        if self.shared.ways.segments
            && let Some(sender) = &mut self.sender
        {
            let seq = sender.nxt;
            if let Some(Some((push, more))) = sender.plain_segment(now, &mut self.shared) {
                if !more {
                    sender.validate_full(now, &self.shared);
                }
                if self.shared.ways.answers {
                    self.receive.acking.on_data_sent(now);
                }
                let flags = if push { Flags::PSH } else { Flags(0) };
                self.header(now, seq, self.shared.mss, flags, segment);
                self.checked(!more);
                return Some(more);
            }
        }
        self.poll_segment(now, segment)?;
        Some(self.may_send_more(now))
    }

    /// Whether it only receives, and [`Connection::reflect`] is for what it receives.
    #[inline(always)]
    pub fn reflects(&self) -> bool {
        self.shared.ways.echoes
    }

    /// Whether it has sent, so that [`Connection::progress`] is for the acknowledgments.
    #[inline(always)]
    pub fn has_sent(&self) -> bool {
        self.sender.is_some()
    }

    /// Whether events wait to be taken.
    #[inline(always)]
    pub fn has_events(&self) -> bool {
        self.shared.events != 0
    }

    /// What follows from an acknowledgment of new data that is not quite usual.
    #[cold]
    fn after_progress(&mut self) {
        if self
            .sender
            .as_ref()
            .is_some_and(|sender| sender.state != CaState::Open)
        {
            self.open_ways();
        }
        if self.write_blocked {
            self.write_blocked = false;
            self.shared.raise(Event::Writable);
        }
    }
}

impl Receive {
    /// [`Receive::take_beyond`] of a usual segment ([`Receive::takes_usual`]) where no acknowledgment is delayed and one
    /// leaves at once: it begins at `seq`. False: it is another case, and nothing was done.
    #[inline(always)]
    fn takes_beyond(&mut self, shared: &Shared, seq: u64, payload: u64) -> bool {
        match &mut self.beyond {
            Some(beyond) => beyond.append(seq, seq + payload, shared.config.sack_blocks),
            None => false,
        }
    }
}
