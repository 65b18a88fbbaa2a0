//! The short ways: what most segments come to, without the questions whose answer is known beforehand.
//!
//! An established connection in which nothing is wrong gets an acknowledgment of new data, or the data expected next, and
//! sends full segments or acknowledgments. Each of these has a short way here, which does what the general one does
//! ([`Connection::arrive`], [`Sender::on_ack`], [`Connection::next_segment`]) with the steps left out that come to nothing then;
//! the comments say why they do. Which ways are open ([`Ways`](super::ways::Ways)) is worked out at the end of the general ones and holds until
//! something else happens. Tests step pairs of connections side by side, one of which takes the general ways only.
//!
//! **Source.** The idea is Van Jacobson's header prediction; what is done are the clauses of the general ways.
//! **Deviations.** None: nothing of it can be seen from outside.

use super::config::TailLossProbe;
use super::ways::Slot;
use super::{Accepted, Connection, Event, Shared};
use crate::cc::{Ack, CongestionKind, Progress, Reaction, Sent};
use crate::packet::{Ecn, Flags, Segment};
use crate::seq::SeqNumber;
use crate::tcp::ack::delivery::Delivery;
use crate::tcp::ack::rack::{least_timeout, on_tick};
use crate::tcp::ack::scoreboard::Record;
use crate::tcp::send::half::{CaState, Sender};
use crate::tcp::state::timers::Timer;
use crate::time::Instant;
use crate::units::Bytes;

impl Connection {
    /// A segment arrived.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Instant, segment: &Segment) -> Accepted {
        let accepted = match self.arrive_as_predicted(now, segment) {
            Some(accepted) => accepted,
            None => self.arrive(now, segment),
        };
        self.checked(false);
        accepted
    }

    /// Header prediction: a segment that lies within the window, acknowledges what is outstanding and carries neither FIN
    /// nor anything else to look at. What [`Connection::arrive`] does with it, without the checks that cannot fail for it.
    /// `None`: it is not such a segment, and nothing was done.
    #[inline(always)]
    fn arrive_as_predicted(&mut self, now: Instant, segment: &Segment) -> Option<Accepted> {
        let (shared, receive) = (&mut self.shared, &self.receive);
        if segment.flags.0 & LOOKED_AT.0 != shared.ways.arrivals || segment.ecn() == Ecn::Ce {
            return None;
        }
        // First: sequence number. Without payload only the next one is sure to be acceptable whatever the window.
        let nxt = SeqNumber::from_offset(shared.irs, receive.rcv_nxt);
        let ahead = u64::from(segment.seq.0.wrapping_sub(nxt.0));
        let payload = u64::from(segment.payload);
        if payload == 0 {
            if ahead != 0 {
                return None;
            }
        } else if ahead + payload > receive.window() {
            return None;
        }
        let seq = receive.rcv_nxt + ahead;
        // Fifth: ACK, between SND.UNA and SND.NXT.
        let (una, nxt) = self
            .sender
            .as_ref()
            .map_or((1, 1), |sender| (sender.una, sender.nxt));
        let wire = SeqNumber::from_offset(shared.iss, una);
        let news = u64::from(segment.ack.0.wrapping_sub(wire.0));
        if news > nxt - una {
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
        let ack = una + news;
        match &mut self.sender {
            Some(sender) if news > 0 && sender.is_quiet(shared, segment) => {
                // Something was out: no zero-window probes, and the answer to none.
                shared.take_window(segment, seq, ack);
                if shared.ways.ns2 {
                    sender.on_quiet_ack_sack1(now, shared, segment, ack);
                } else {
                    sender.on_quiet_ack(now, shared, segment, ack);
                }
                if sender.state != CaState::Open {
                    self.open_ways();
                }
                if self.write_blocked {
                    self.write_blocked = false;
                    self.shared.raise(Event::Writable);
                }
            }
            Some(sender) => {
                let repeats = news == 0 && payload == 0 && shared.ways.recovers;
                if repeats && sender.take_next_sacked(shared, segment, seq) {
                    return Some(self.nothing());
                }
                self.take_ack(now, segment, seq, ack);
                if news > 0 || payload == 0 || segment.sack_blocks() > 0 {
                    self.open_ways();
                }
            }
            None => {
                shared.take_window(segment, seq, ack);
            }
        }
        // Seventh: payload.
        if payload == 0 {
            return Some(self.nothing());
        }
        let (receive, config) = (&mut self.receive, &self.shared.config);
        if ahead > 0 && receive.take_beyond(config, seq, segment) {
            self.shared.timers.delayed_ack = Instant::FAR_FUTURE;
            return Some(Accepted {
                start: seq - 1,
                end: seq - 1 + payload,
                in_order: self.received(),
            });
        }
        if ahead > 0 || !receive.take_in_order(now, config, &self.shared.rtt, segment) {
            return Some(self.on_payload(now, segment, seq as i64));
        }
        let end = self.receive.rcv_nxt - 1; // no FIN is known
        if self.auto_read || self.read_shut {
            self.receive.read_in_order();
            if !self.receive.acking.now {
                self.receive.after_read(&self.shared.config);
            }
        } else {
            self.shared.raise(Event::Readable);
        }
        self.delay_ack(now);
        Some(Accepted {
            start: end - payload,
            end,
            in_order: end,
        })
    }

    /// What [`Connection::next_segment`] comes to in an established connection that has nothing to say but full new segments,
    /// or an acknowledgment. `None`: it is another case, and nothing was done.
    #[inline(always)]
    pub(super) fn plain_segment(
        &mut self,
        now: Instant,
        segment: &mut Segment,
    ) -> Option<Option<(u64, u64)>> {
        if !self.shared.ways.segments {
            let waits = self.shared.ways.recovers
                && !self.receive.acking.now
                && self
                    .sender
                    .as_mut()
                    .is_some_and(|sender| sender.lets_drain(now, &self.shared));
            return waits.then_some(None);
        }
        let (mut seq, mut payload, mut flags) = (1, 0, Flags(0));
        if let Some(sender) = &mut self.sender {
            seq = sender.nxt;
            if let Some((push, _)) = sender.plain_segment(now, &mut self.shared)? {
                payload = self.shared.mss;
                flags = if push { Flags::PSH } else { flags };
                if self.shared.ways.answers {
                    self.receive.acking.on_data_sent(now);
                }
            }
        }
        if payload == 0 && !self.receive.acking.now {
            return Some(None);
        }
        self.header(now, seq, payload, flags, segment);
        let start = if payload > 0 { seq - 1 } else { 0 };
        Some(Some((start, start + u64::from(payload))))
    }
}

impl Sender {
    /// Nothing is wrong: no loss, SACK, probe or episode to look at, and nothing but data to send.
    pub(super) fn is_calm(&self, shared: &Shared) -> bool {
        let agent = self.sack1.as_deref();
        shared.predict
            && self.state == CaState::Open
            && self.tempo.is_none()
            && self.board.is_calm(self.una)
            && self.tlp_end == 0
            && self.thin.is_none()
            && self.frto_new == 0
            && !(self.probe_due | self.zero_probe_due | self.zero_probe_out | self.cwr_pending)
            && !(self.fin_queued | self.fin_sent)
            && agent.is_none_or(|agent| agent.is_calm(self.nxt) && self.board.unit > 0)
            && self.rack.as_ref().is_none_or(|rack| rack.is_calm(self.una))
            && !self.undo_is_due(shared)
    }

    /// A retransmission of the last episode may yet be shown to have been a mistake.
    pub(super) fn may_undo(&self, shared: &Shared) -> bool {
        self.episode.undo_marker != 0 && shared.config.undo && self.episode.retrans_stamp != 0
    }

    /// The next acknowledgment takes the last episode back, whatever it says.
    fn undo_is_due(&self, shared: &Shared) -> bool {
        self.may_undo(shared) && self.episode.retrans_stamp == u32::MAX && self.episode.undo_retrans == 0
    }

    /// Whether a new acknowledgment is nothing but progress. ECE goes the general way in the segment's arrival.
    #[inline(always)]
    pub(super) fn is_quiet(&self, shared: &Shared, segment: &Segment) -> bool {
        let ways = shared.ways;
        ways.acks && segment.sack_blocks() == 0 && !(ways.undo && self.shows_mistake(shared, segment))
    }

    /// The same where no way was open: with ECN, for example. The segment has no ECE.
    pub(super) fn is_quiet_now(&self, shared: &Shared, segment: &Segment) -> bool {
        segment.sack_blocks() == 0
            && self.is_calm(shared)
            && !(self.may_undo(shared) && self.shows_mistake(shared, segment))
    }

    /// RFC 3522: the acknowledgment was sent before the retransmission came.
    fn shows_mistake(&self, shared: &Shared, segment: &Segment) -> bool {
        let stamp = self.episode.retrans_stamp;
        shared.timestamps && stamp != u32::MAX && (segment.tsecr.wrapping_sub(stamp & !1) as i32) < 0
    }

    /// What [`Sender::on_ack`] comes to for a quiet acknowledgment: delivery, a sample, growth, the timer.
    #[inline(never)]
    pub(super) fn on_quiet_ack(&mut self, now: Instant, shared: &mut Shared, segment: &Segment, ack: u64) {
        let prior_in_flight = self.board.out; // nothing is SACKed, lost or retransmitted: the pipe
        let Some(first) = self.board.pop_clean(ack) else {
            return self.on_ack(now, shared, segment, ack, false); // a part of a segment
        };
        // Every record was sent once, so each gives a sample (RFC 6298 3), and the last of them was sent last.
        let first_rtt = now.since(first.last_tx);
        let (mut latency, mut records, mut last) = (first_rtt, 1, first);
        while let Some(record) = self.board.pop_clean(ack) {
            latency += now.since(record.last_tx);
            records += 1;
            last = record;
        }
        let mut acked = prior_in_flight - self.board.out;
        if last.end() < ack {
            acked += self.board.cut_front(ack);
        }
        let stats = &mut *shared.stats;
        stats.ack_latency_sum += latency;
        stats.ack_latency_count += records;
        self.una = ack;
        self.dup_acks = 0;
        self.limited_sent = 0;
        self.retries = 0;
        self.wait_until = Instant::FAR_FUTURE; // RACK's: see below
        let newest_rtt = Some(now.since(last.last_tx));
        // RFC 8985 6.2, steps 1 to 5. All lie beyond what was delivered before. Nothing is lost or to be waited for if what is
        // out now was sent later.
        let mut in_order = true;
        if let Some(rack) = &mut self.rack {
            rack.on_newest(now, &last);
            in_order = self.board.ring.front().is_none_or(|head| rack.precedes(head));
        }
        let rtt = if self.sack1.is_some() {
            self.sample_sack1(now, shared)
        } else {
            self.sample_rtt(now, shared, segment, Some(first_rtt), true)
        };
        self.delivered_total += acked;
        let round_start = ack > self.round_end;
        if round_start {
            self.round_end = self.nxt;
        }
        if !in_order {
            let delivery = Delivery {
                acked,
                delivered: acked,
                rtt,
                newest_rtt,
                advanced: true,
                ..Delivery::default()
            };
            self.judge(now, shared, segment, &delivery, prior_in_flight, round_start);
            return;
        }
        let cwnd_limited = self.may_grow(shared);
        let progress = Progress {
            acked: Bytes(acked),
            rtt: newest_rtt,
            cwnd_limited,
        };
        let reaction = self.cc.on_progress(now, progress, || Ack {
            acked: Bytes(acked),
            sacked: Bytes::ZERO,
            sacked_total: Bytes::ZERO,
            segments: records as u32,
            delivered_total: Bytes(self.delivered_total),
            lost: Bytes::ZERO,
            in_flight: Bytes(self.board.out),
            prior_in_flight: Bytes(prior_in_flight),
            rtt,
            newest_rtt,
            one_way_delay: shared.one_way_delay(segment),
            rate: None,
            round_start,
            app_limited: !self.limited,
            cwnd_limited,
            recovering: false,
            ce_bytes: Bytes::ZERO,
            srtt: shared.rtt.srtt(),
            min_rtt: shared.rtt.min(),
        });
        if reaction == Reaction::ReduceWindow {
            let delivery = Delivery {
                acked,
                delivered: acked,
                rtt,
                advanced: true,
                ..Delivery::default()
            };
            self.enter_cwr(now, shared, CongestionKind::Delay, &delivery);
        }
        self.restart_timer(now, shared);
    }

    /// What [`Sender::set_timer`] comes to after a quiet acknowledgment.
    #[inline(always)]
    pub(super) fn restart_timer(&mut self, now: Instant, shared: &mut Shared) {
        let slot = shared.ways.slot;
        if slot == Slot::Any || self.board.out == 0 || self.state != CaState::Open {
            return self.conclude(now, shared, true);
        }
        shared.timers.rto_at = now + shared.rtt.rto(&shared.config.rto); // RFC 6298 5.3
        if slot == Slot::Rto {
            let at = shared.timers.rto_at;
            shared.timers.arm(Timer::Rto, at);
        } else {
            self.restart_probe(now, shared);
        }
    }

    /// What [`Sender::arm_probe`] comes to when nothing is wrong (RFC 8985 7.2).
    #[inline(always)]
    fn restart_probe(&mut self, now: Instant, shared: &mut Shared) {
        match shared.rtt.srtt() {
            Some(srtt) if self.board.segments() > 1 => {
                let tick = shared.config.rack_timer_tick;
                let at = on_tick(now, srtt.saturating_mul(2) + least_timeout(tick), tick);
                shared.timers.arm(Timer::Pto, at.min(shared.timers.rto_at));
                self.probed = now;
            }
            Some(_) | None => self.arm_probe(now, shared),
        }
    }

    /// What [`Sender::next`] comes to while nothing is wrong: a full new segment, whether it is the last of a group, and
    /// whether the window may hold more; or
    /// nothing because the window is full. The outer `None`: it is another case, and nothing was done.
    #[inline(always)]
    pub(super) fn plain_segment(
        &mut self,
        now: Instant,
        shared: &mut Shared,
    ) -> Option<Option<(bool, bool)>> {
        let (seq, mss) = (self.nxt, u64::from(shared.mss));
        let end = seq + mss;
        if end >= self.end || end > shared.snd_edge || self.board.out == 0 {
            return None;
        }
        let weight = self.board.weight(shared.mss);
        let window = self.cc.window().get().min(shared.ways.most);
        if self.board.out + weight > window {
            self.validate_full(now, shared);
            return Some(None);
        }
        if !matches!(shared.timers.kind(), Some(Timer::Rto | Timer::Pto)) {
            return None; // RFC 6298 5.1
        }
        let group_ends = match shared.config.offload_segments {
            Some(least) => self.group_ends(now, shared, least),
            None => false,
        };
        let record = Record::new(now, seq, shared.mss, 0);
        self.board.push_weighing(record, weight);
        self.nxt = end;
        self.sws_override = false;
        self.last_send = now;
        if let Some(agent) = &mut self.sack1 {
            agent.on_sent(now, end);
        }
        let board = &self.board;
        self.cc.on_sent(now, || Sent {
            bytes: Bytes(mss),
            in_flight: Bytes(board.out),
            retransmission: false,
        });
        let stats = &mut *shared.stats;
        stats.bytes_sent += mss;
        stats.segments_sent += 1;
        match shared.ways.slot {
            Slot::Rto => {}
            // Neither the RTT nor the RTO has changed since.
            Slot::Probe if self.probed == now && shared.timers.kind() == Some(Timer::Pto) => {}
            Slot::Probe => self.restart_probe(now, shared),
            Slot::Any if shared.config.tail_loss_probe != TailLossProbe::Off => self.arm_probe(now, shared),
            Slot::Any => {}
        }
        let next = end + mss;
        let full = self.board.out + weight > window && next < self.end && next <= shared.snd_edge;
        Some(Some((group_ends, !full)))
    }
}

/// Bits of which any but the expected ones takes a segment off the short way.
pub(super) const LOOKED_AT: Flags = Flags::SYN
    .with(Flags::FIN)
    .with(Flags::RST)
    .with(Flags::URG)
    .with(Flags::ACK)
    .with(Flags::ECE)
    .with(Flags::TIMESTAMPS)
    .with(Flags::CORRUPT);
