//! What an acknowledgment means to the sender: delivery, loss, recovery, undo, timers.
//!
//! The order is that of RFC 9293 3.10.7.4 with the congestion states that Linux names: deliveries are counted and
//! sampled, losses are judged (RACK, or RFC 6675, or duplicate ACKs), the state changes, the controller is told, the
//! timer is set.
//!
//! **Source.** RFC 5681, 6582, 6675, 8985 (sections 6 and 7.4), 5827, 5682, 3522, 4015, 3708, 3168, 6298, 7765.
//! **Deviations.** Early retransmit's `Immediate` and `Delayed` are Linux's (2012 to 2017): with fewer than four segments
//! out one SACKed segment is enough. Undo by D-SACK counts retransmissions as Linux does. F-RTO waits for the second
//! acknowledgment also with SACK, as RFC 5682 section 3 has it.

use super::Shared;
use super::config::{EarlyRetransmit, EcnEcho, Growth, Prr as PrrVariant, RttSamples, TailLossProbe};
use super::error::{ConnectionError, Event};
use super::prr::{Entry, Prr, PrrAck};
use super::scoreboard::SACKED;
use super::send::{CaState, Sender};
use super::timers::Timer;
use crate::cc::{Ack, Congestion, CongestionController, CongestionKind, Reaction};
use crate::packet::{Flags, Segment};
use crate::time::{Duration, Instant};
use crate::units::Bytes;

/// What one acknowledgment delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Delivery {
    /// Newly cumulatively acknowledged, whether SACKed before or not.
    acked: u64,
    /// Newly SACKed.
    sacked: u64,
    /// Newly delivered: `sacked` and what `acked` had not been SACKed.
    delivered: u64,
    /// Segments newly delivered.
    segments: u32,
    rtt: Option<Duration>,
    /// A segment never retransmitted was acknowledged or SACKed that was sent before the timeout.
    original: bool,
    retransmitted: bool,
    dsack: bool,
    advanced: bool,
    duplicate: bool,
}

impl Sender {
    /// Processes an acceptable acknowledgment up to offset `ack` (at most SND.NXT).
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        duplicate: bool,
    ) {
        let prior_in_flight = self.board.pipe();
        let mut delivery = Delivery {
            advanced: ack > self.una,
            duplicate,
            ..Delivery::default()
        };
        if delivery.advanced {
            self.take_acked(now, shared, segment, ack, &mut delivery);
        }
        if segment.sack_blocks() > 0 && shared.sack {
            self.take_blocks(now, shared, segment, ack, &mut delivery);
        }
        self.sample_rtt(now, shared, segment, &mut delivery);
        self.delivered_total += delivery.delivered;
        if !shared.sack {
            self.count_duplicates(shared, &delivery);
        }
        // RFC 8257 3.3 and Linux's HyStart: a round begins with the first ACK *beyond* the end of the last, so that it
        // counts what the last ACK of a flight released, and a train does not begin before the pause.
        let round_start = delivery.advanced && self.una > self.round_end;
        if round_start {
            self.round_end = self.nxt;
        }
        self.probe_outcome(now, shared, ack, &delivery);

        let recovering_before = matches!(self.state, CaState::Recovery | CaState::Cwr);
        let may_grow = self.may_grow(shared);
        let lost = self.transition(now, shared, segment, &delivery);
        let echo = shared.ecn && segment.flags.contains(Flags::ECE);
        if echo {
            self.on_echo(now, shared, &delivery);
        }
        let recovering = matches!(self.state, CaState::Recovery | CaState::Cwr);
        if delivery.delivered > 0 || delivery.advanced {
            let reaction = self.cc.on_ack(
                now,
                &Ack {
                    // Linux grows by what was delivered: data SACKed before does not count again.
                    acked: Bytes(match shared.config.growth {
                        Growth::Linux if delivery.advanced => delivery.delivered,
                        Growth::Linux | Growth::Always | Growth::CwndLimited => delivery.acked,
                    }),
                    sacked: Bytes(delivery.sacked),
                    delivered_total: Bytes(self.delivered_total),
                    lost: Bytes(lost),
                    in_flight: Bytes(self.board.pipe()),
                    prior_in_flight: Bytes(prior_in_flight),
                    rtt: delivery.rtt,
                    one_way_delay: None,
                    rate: None,
                    round_start,
                    app_limited: !self.limited,
                    cwnd_limited: may_grow,
                    // In Linux the ACK that ends a recovery may already grow the window.
                    recovering: recovering || (recovering_before && shared.config.growth != Growth::Linux),
                    ce_bytes: Bytes(if echo { delivery.delivered } else { 0 }),
                    srtt: shared.rtt.srtt(),
                    min_rtt: shared.rtt.min(),
                },
            );
            if reaction == Reaction::ReduceWindow && matches!(self.state, CaState::Open | CaState::Disorder) {
                self.enter_cwr(now, shared, CongestionKind::Delay, &delivery);
            }
        }
        if recovering && shared.config.prr != PrrVariant::Off {
            self.reduce(shared, &delivery, lost);
        }
        self.set_timer(now, shared, &delivery);
    }

    fn take_acked(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        delivery: &mut Delivery,
    ) {
        let echo = (shared.timestamps && segment.flags.contains(Flags::TIMESTAMPS)).then_some(segment.tsecr);
        let min = shared.rtt.min();
        while let Some(record) = self.board.pop_acked(ack) {
            let weight = self.board.weight(record.len);
            delivery.acked += weight;
            shared.stats.ack_latency_sum += now.since(record.first_tx);
            shared.stats.ack_latency_count += 1;
            if record.is(SACKED) {
                continue;
            }
            delivery.delivered += weight;
            delivery.segments += 1;
            if record.tx_count == 1 {
                delivery.original |= record.end() <= self.high_seq;
                if delivery.rtt.is_none() {
                    delivery.rtt = Some(now.since(record.last_tx));
                }
            } else {
                delivery.retransmitted = true;
            }
            if let Some(rack) = &mut self.rack {
                let proves = echo.map(|echo| shared.echo_reaches(echo, record.last_tx));
                rack.on_delivered(now, &record, min, proves);
            }
        }
        let part = self.board.trim_front(ack);
        if part > 0 {
            delivery.acked += part;
            delivery.delivered += part;
        }
        self.una = ack;
        self.board.advance(ack);
        self.dup_acks = 0;
        self.retries = 0;
        if delivery.retransmitted {
            delivery.rtt = None; // RFC 6298 3 (Karn)
        }
    }

    fn take_blocks(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        delivery: &mut Delivery,
    ) {
        let iss = shared.iss;
        let offset = |edge: crate::seq::SeqNumber| edge.to_offset(iss, ack);
        let min = shared.rtt.min();
        let echo = (shared.timestamps && segment.flags.contains(Flags::TIMESTAMPS)).then_some(segment.tsecr);
        for index in 0..segment.sack_blocks() {
            let (left, right) = segment.sack_block(index);
            let (left, right) = (offset(left), offset(right));
            if left < 0 || right <= left || right as u64 > self.nxt {
                continue;
            }
            let (left, right) = (left as u64, right as u64);
            let inside_next = index == 0 && segment.sack_blocks() > 1 && {
                let (l, r) = segment.sack_block(1);
                offset(l) <= left as i64 && right as i64 <= offset(r)
            };
            if index == 0 && (right <= ack || inside_next) {
                self.take_dsack(shared, left, right);
                delivery.dsack = true;
                continue;
            }
            if right <= ack {
                continue;
            }
            let high_seq = self.high_seq;
            let rack = &mut self.rack;
            let shared = &*shared;
            let (mut rtt, mut original, mut count) = (None, false, 0);
            let before = self.board.sacked;
            self.board.sack(left.max(ack), right, |record| {
                count += 1;
                if record.tx_count == 1 {
                    original |= record.end() <= high_seq;
                    rtt = rtt.or(Some(now.since(record.last_tx)));
                }
                if let Some(rack) = rack {
                    let proves = echo.map(|echo| shared.echo_reaches(echo, record.last_tx));
                    rack.on_delivered(now, record, min, proves);
                }
            });
            delivery.segments += count;
            delivery.sacked += self.board.sacked - before;
            delivery.original |= original;
            if delivery.rtt.is_none() && !delivery.retransmitted {
                delivery.rtt = rtt;
            }
        }
        delivery.delivered += delivery.sacked;
    }

    /// A duplicate was received there: some transmission of ours was redundant (RFC 2883, RFC 3708).
    fn take_dsack(&mut self, shared: &mut Shared, left: u64, right: u64) {
        shared.stats.dsacks += 1;
        if let Some(rack) = &mut self.rack {
            rack.on_dsack(self.una, self.nxt);
        }
        if self.undo_marker != 0 && right > self.undo_marker && self.undo_retrans > 0 {
            self.undo_retrans -= 1;
            if self.undo_retrans == 0 && self.retrans_stamp != 0 {
                self.retrans_stamp = u32::MAX; // every retransmission was redundant
            }
        }
        if self.tlp_end != 0 && self.tlp_is_retrans && right == self.tlp_end && left < right {
            self.tlp_end = 0; // RFC 8985 7.4.2: the probe was redundant
            shared.stats.spurious_probes += 1;
        }
    }

    fn sample_rtt(&mut self, now: Instant, shared: &mut Shared, segment: &Segment, delivery: &mut Delivery) {
        if delivery.rtt.is_none()
            && delivery.advanced
            && shared.timestamps
            && segment.flags.contains(Flags::TIMESTAMPS)
            && segment.tsecr != 0
        {
            // RFC 7323 4.1: the echo tells which transmission is meant.
            let elapsed = shared.timestamp(now).wrapping_sub(segment.tsecr);
            delivery.rtt = Some(Duration::from_millis(u64::from(elapsed.max(1))));
        }
        let Some(rtt) = delivery.rtt else { return };
        match shared.config.rto.samples {
            RttSamples::EveryAck => {}
            RttSamples::OncePerRtt => {
                if self.una < self.rtt_seq {
                    return;
                }
                self.rtt_seq = self.nxt;
            }
        }
        let config = &shared.config.rto;
        shared.rtt.sample(config, rtt);
    }

    /// Without SACK duplicate ACKs stand for segments that arrived (RFC 6582 3.2).
    fn count_duplicates(&mut self, shared: &Shared, delivery: &Delivery) {
        if delivery.advanced {
            if matches!(self.state, CaState::Recovery) {
                let gone = (delivery.acked / u64::from(shared.mss)).saturating_sub(1) as u32;
                self.board.duplicates = self.board.duplicates.saturating_sub(gone);
            } else {
                self.board.duplicates = 0;
            }
        } else if delivery.duplicate && self.state != CaState::Loss {
            self.dup_acks += 1;
            self.board.duplicates = (self.board.duplicates + 1).min(self.board.segments());
        }
    }

    /// RFC 8985 7.4.2; the draft's rule is the same stated per episode.
    fn probe_outcome(&mut self, now: Instant, shared: &mut Shared, ack: u64, delivery: &Delivery) {
        if self.tlp_end == 0 || ack < self.tlp_end {
            return;
        }
        if !self.tlp_is_retrans {
            self.tlp_end = 0; // new data was the probe
        } else if ack > self.tlp_end {
            self.tlp_end = 0; // the probe repaired a loss: one reduction
            if matches!(self.state, CaState::Open | CaState::Disorder) {
                self.enter_cwr(now, shared, CongestionKind::Loss, delivery);
            }
        } else if !delivery.advanced && delivery.duplicate && delivery.sacked == 0 && !delivery.dsack {
            self.tlp_end = 0; // both copies arrived
            shared.stats.spurious_probes += 1;
        }
    }

    /// Loss detection and change of state. Returns what was newly judged lost.
    fn transition(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        delivery: &Delivery,
    ) -> u64 {
        if delivery.advanced && self.una >= self.high_seq && self.state != CaState::Open {
            self.finish_episode(now, shared);
        }
        if self.undo_marker != 0 {
            self.try_undo(now, shared, segment, delivery);
        }
        if self.state == CaState::Loss && self.frto != 0 {
            self.step_frto(now, shared, delivery);
        }
        if self.board.out == 0 {
            self.wait_until = None;
            if self.state == CaState::Disorder {
                self.state = CaState::Open;
            }
            return 0;
        }
        let mut lost = 0;
        if self.counts_acks(shared) {
            self.ack_pipe -= if delivery.advanced { 2 } else { 1 };
        }
        if self.state == CaState::Recovery && delivery.advanced && !shared.sack {
            lost += self.board.mark_lost(0); // RFC 6582 3.2 step 3: partial acknowledgment
            self.force = true;
        }
        if self.board.sacked_segments > 0 || self.board.duplicates > 0 || self.rack.is_some() {
            lost += self.detect(now, shared);
        }
        match self.state {
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if self.board.to_retransmit > 0 {
                    self.enter_recovery(now, shared, delivery);
                } else if self.state != CaState::Cwr {
                    let quiet = self.board.sacked_segments == 0 && self.board.duplicates == 0;
                    self.state = if quiet { CaState::Open } else { CaState::Disorder };
                }
            }
            CaState::Recovery | CaState::Loss => {}
        }
        lost
    }

    /// Judges losses by the mechanism that is on.
    fn detect(&mut self, now: Instant, shared: &Shared) -> u64 {
        let config = &shared.config;
        let recovering = matches!(self.state, CaState::Recovery | CaState::Loss);
        if let Some(rack) = &mut self.rack {
            let found = rack.detect(
                now,
                &mut self.board,
                recovering,
                shared.rtt.min(),
                shared.rtt.srtt(),
            );
            self.wait_until = found.wait_until;
            return found.lost;
        }
        let threshold = u32::from(config.dup_thresh.max(1));
        if !shared.sack {
            let early = self.early_threshold(shared);
            let needed = early.map_or(threshold, |early| early.min(threshold));
            // RFC 6582 3.2 step 1: not for what was sent before the last recovery.
            if !recovering
                && self.board.duplicates >= needed
                && (self.recover == 0 || self.una > self.recover)
            {
                return self.board.mark_lost(0);
            }
            return 0;
        }
        let mut lost = self.board.judge(threshold);
        let highest = self.board.highest_sacked();
        if config.fack && self.board.sacked_segments > 0 {
            let spread = self.board.index_from(highest) as u32;
            if spread > threshold {
                let upto = if self.tlp_end != 0 {
                    highest // a probe's SACK shows that everything before it is gone
                } else {
                    self.board.ring[(spread - threshold) as usize].seq
                };
                lost += self.board.judge_below(upto);
            }
        }
        if recovering {
            return lost;
        }
        if lost == 0 && self.dup_acks >= threshold && self.board.to_retransmit == 0 {
            lost += self.board.mark_lost(0); // RFC 6675 5 (4)
        }
        if lost == 0
            && let Some(needed) = self.early_threshold(shared)
            && self.board.sacked_segments >= needed
        {
            if config.early_retransmit == EarlyRetransmit::Delayed {
                let quarter = shared.rtt.srtt().unwrap_or_default().mul_div(1, 4);
                let at = now + quarter.max(Duration::from_millis(2));
                if at < shared.timers.rto_at {
                    self.wait_until = Some(self.wait_until.unwrap_or(at));
                    return 0;
                }
            }
            lost += self.board.judge_below(highest);
        }
        lost
    }

    /// SACKed segments (or duplicate ACKs) that are enough because few segments are out; `None`: the usual number.
    fn early_threshold(&self, shared: &Shared) -> Option<u32> {
        let out = self.board.segments();
        let blocked = self.unsent_segments(shared.mss) == 0 || shared.snd_edge <= self.nxt;
        if !(2..4).contains(&out) || !blocked {
            return None;
        }
        match shared.config.early_retransmit {
            EarlyRetransmit::Off => None,
            EarlyRetransmit::Rfc5827 => Some(out - 1), // RFC 5827 3.2
            EarlyRetransmit::Immediate | EarlyRetransmit::Delayed => Some(1),
        }
    }

    fn flight_event(&self, kind: CongestionKind) -> Congestion {
        Congestion {
            kind,
            flight_size: Bytes(self.board.out),
            in_flight: Bytes(self.board.pipe()),
        }
    }

    /// What was in flight when the acknowledgment arrived: FlightSize of RFC 5681 (4).
    fn reduction_event(&self, kind: CongestionKind, delivery: &Delivery) -> Congestion {
        let mut event = self.flight_event(kind);
        event.flight_size = Bytes(self.board.out + delivery.acked);
        event
    }

    fn enter_recovery(&mut self, now: Instant, shared: &mut Shared, delivery: &Delivery) {
        self.begin_episode(shared, false);
        if self.state != CaState::Cwr {
            let window = self.cc.window();
            self.cc
                .on_congestion(now, &self.reduction_event(CongestionKind::Loss, delivery));
            self.begin_reduction(shared, delivery, window);
        }
        shared.stats.recoveries += 1;
        self.state = CaState::Recovery;
        self.high_seq = self.nxt;
        self.recover = self.nxt;
        self.begin_recovery();
        self.force = true; // RFC 6675 5 (4.3)
        self.ack_pipe = self.board.segments() as i32 - i32::from(shared.config.dup_thresh);
        shared.timers.rto_at = now + shared.rtt.rto(&shared.config.rto);
    }

    fn begin_reduction(&mut self, shared: &Shared, delivery: &Delivery, window: Bytes) {
        self.prr = Prr::enter(
            shared.config.prr,
            Entry {
                flight: self.board.out,
                sacked_before: self.board.sacked + u64::from(self.board.duplicates) * u64::from(shared.mss)
                    - delivery.sacked.min(self.board.sacked),
                acked: delivery.acked,
                window: window.get(),
            },
        );
        self.recovery_window = self.board.pipe();
    }

    /// Reduces the window without a loss.
    fn enter_cwr(&mut self, now: Instant, shared: &mut Shared, kind: CongestionKind, delivery: &Delivery) {
        self.undo_marker = 0;
        let window = self.cc.window();
        self.cc.on_congestion(now, &self.reduction_event(kind, delivery));
        self.begin_reduction(shared, delivery, window);
        self.state = CaState::Cwr;
        self.high_seq = self.nxt;
        shared.stats.window_reductions += 1;
    }

    /// An ACK with ECE (RFC 3168 6.1.2; RFC 8257 3.3): at most one reduction per round trip.
    fn on_echo(&mut self, now: Instant, shared: &mut Shared, delivery: &Delivery) {
        shared.stats.ecn_echoes += 1;
        let free = matches!(self.state, CaState::Open | CaState::Disorder);
        if free && (delivery.advanced || delivery.delivered > 0) && self.una >= self.high_seq {
            self.enter_cwr(now, shared, CongestionKind::Ecn, delivery);
        }
        if shared.config.ecn_echo == EcnEcho::Rfc3168 && self.state == CaState::Cwr {
            self.cwr_pending = true;
        }
    }

    /// RFC 9937 6, each ACK of the episode.
    fn reduce(&mut self, shared: &Shared, delivery: &Delivery, lost: u64) {
        let emulated =
            u64::from(delivery.duplicate && !shared.sack && !delivery.advanced) * u64::from(shared.mss);
        let delivered = delivery.delivered + emulated;
        if delivered == 0 && !self.force {
            return;
        }
        let in_flight = self.board.pipe();
        let unit = self.board.weight(1);
        let ssthresh = self.cc.ssthresh().get() / unit * unit;
        let ack = PrrAck {
            delivered,
            in_flight,
            safe: delivery.advanced && lost == 0,
        };
        let count = self
            .prr
            .on_ack(shared.config.prr, ssthresh, u64::from(shared.mss), unit, ack);
        self.recovery_window = in_flight + count;
    }

    fn begin_episode(&mut self, shared: &Shared, timeout: bool) {
        self.undo_marker = if shared.config.undo || shared.config.frto {
            self.una.max(1)
        } else {
            0
        };
        self.undo_retrans = 0;
        self.retrans_stamp = 0;
        self.undo_is_timeout = timeout;
    }

    fn finish_episode(&mut self, now: Instant, shared: &mut Shared) {
        match self.state {
            CaState::Recovery | CaState::Cwr => {
                let event = self.flight_event(CongestionKind::RecoveryEnd);
                self.cc.on_congestion(now, &event);
                if self.state == CaState::Recovery
                    && let Some(rack) = &mut self.rack
                {
                    rack.on_recovery_end();
                }
            }
            CaState::Open | CaState::Disorder | CaState::Loss => {}
        }
        if self.state != CaState::Disorder {
            self.state = CaState::Open;
        }
        let _ = shared;
        self.board.duplicates = 0;
        self.frto = 0;
        self.frto_new = 0;
        self.force = false;
    }

    /// Was the episode a mistake? By timestamps (RFC 3522) or because every retransmission was redundant (RFC 3708).
    fn try_undo(&mut self, now: Instant, shared: &mut Shared, segment: &Segment, delivery: &Delivery) {
        if !shared.config.undo || self.retrans_stamp == 0 {
            return;
        }
        let redundant = self.retrans_stamp == u32::MAX && self.undo_retrans == 0;
        let earlier = shared.timestamps
            && delivery.advanced
            && self.retrans_stamp != u32::MAX
            && segment.flags.contains(Flags::TIMESTAMPS)
            && (segment.tsecr.wrapping_sub(self.retrans_stamp & !1) as i32) < 0;
        if redundant || earlier {
            self.undo(now, shared, delivery.rtt);
        }
    }

    fn undo(&mut self, now: Instant, shared: &mut Shared, rtt: Option<Duration>) {
        let event = self.flight_event(CongestionKind::Undo);
        self.cc.on_congestion(now, &event);
        shared.stats.undos += 1;
        if self.undo_is_timeout {
            shared.stats.spurious_timeouts += 1;
            shared.rtt.reset_backoff();
            if let Some(rtt) = rtt.or(shared.rtt.srtt()) {
                let config = &shared.config.rto;
                shared.rtt.after_spurious_timeout(config, rtt);
            }
        }
        self.undo_marker = 0;
        self.frto = 0;
        self.frto_new = 0;
        self.force = false;
        self.board.forget_losses();
        if let Some(rack) = &mut self.rack {
            rack.reconsider();
        }
        if matches!(self.state, CaState::Recovery | CaState::Loss | CaState::Cwr) {
            self.state = CaState::Open;
            self.board.duplicates = 0;
        }
    }

    /// F-RTO (RFC 5682 2.1 and 3.1).
    fn step_frto(&mut self, now: Instant, shared: &mut Shared, delivery: &Delivery) {
        match self.frto {
            1 if delivery.advanced => {
                // Step 2b: the retransmission, or the original, was acknowledged: try new data.
                if self.new_data_possible(shared) {
                    self.frto = 2;
                    self.frto_new = 2;
                } else {
                    self.frto = 0;
                }
            }
            1 => {
                if delivery.duplicate && !shared.sack {
                    self.frto = 0; // step 2a
                }
            }
            _ => {
                if delivery.original && (delivery.advanced || delivery.sacked > 0) {
                    self.undo(now, shared, delivery.rtt); // step 3b
                } else if delivery.duplicate || delivery.sacked > 0 {
                    self.frto = 0; // step 3a: the loss was real
                    self.frto_new = 0;
                }
            }
        }
    }

    fn new_data_possible(&self, shared: &Shared) -> bool {
        self.unsent() > 0 && shared.snd_edge > self.nxt
    }

    /// The retransmission slot after an acknowledgment.
    fn set_timer(&mut self, now: Instant, shared: &mut Shared, delivery: &Delivery) {
        if self.board.out == 0 {
            if shared.timers.kind() != Some(Timer::Persist) {
                shared.timers.disarm(); // RFC 6298 5.2
            }
            self.wait_until = None;
            self.board.release();
            return;
        }
        if delivery.advanced {
            let mut wait = shared.rtt.rto(&shared.config.rto); // RFC 6298 5.3
            let open = matches!(self.state, CaState::Open | CaState::Disorder);
            if shared.config.rto_restart && open {
                let segments = u64::from(self.board.segments()) + self.unsent_segments(shared.mss);
                if let Some(head) = self.board.ring.front()
                    && segments < 4
                {
                    // RFC 7765 4
                    let age = now.since(head.last_tx);
                    if age < wait {
                        wait -= age;
                    }
                }
            }
            shared.timers.rto_at = now + wait;
        }
        if let Some(at) = self.wait_until {
            let kind = if self.rack.is_some() {
                Timer::Reordering
            } else {
                Timer::EarlyRetransmit
            };
            if at < shared.timers.rto_at {
                shared.timers.arm(kind, at);
                return;
            }
        }
        let probing = shared.config.tail_loss_probe != TailLossProbe::Off;
        if probing && self.state == CaState::Open && self.board.sacked_segments == 0 && self.tlp_end == 0 {
            if !delivery.advanced && shared.timers.kind() == Some(Timer::Pto) {
                return; // a PTO runs from transmissions and cumulative acknowledgments
            }
            if shared.sack {
                self.arm_probe(now, shared);
                return;
            }
        }
        let at = shared.timers.rto_at;
        shared.timers.arm(Timer::Rto, at);
    }

    /// The retransmission slot fired. `Err` gives the connection up.
    pub(super) fn on_timer(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        kind: Timer,
    ) -> Result<(), ConnectionError> {
        match kind {
            Timer::Rto => return self.on_rto(now, shared),
            Timer::Pto => self.probe_due = true,
            Timer::Reordering | Timer::EarlyRetransmit => {
                self.wait_until = None;
                let before = self.board.to_retransmit;
                if kind == Timer::EarlyRetransmit {
                    let highest = self.board.highest_sacked();
                    self.board.judge_below(highest);
                } else {
                    self.detect(now, shared);
                }
                let delivery = Delivery::default();
                let found = self.board.to_retransmit > before;
                if found && !matches!(self.state, CaState::Recovery | CaState::Loss) {
                    self.enter_recovery(now, shared, &delivery);
                    if shared.config.prr != PrrVariant::Off {
                        self.reduce(shared, &delivery, 1);
                    }
                } else if found && self.state == CaState::Recovery {
                    self.force |= self.board.pipe() == 0;
                }
                self.set_timer(now, shared, &delivery);
            }
            Timer::Persist => {
                self.retries = 0; // RFC 9293 MUST-37: an answered zero window keeps the connection
                self.on_persist(shared);
            }
            Timer::Syn | Timer::DelayedAck | Timer::KeepAlive | Timer::TimeWait => {}
        }
        Ok(())
    }

    /// RFC 6298 5.4 to 5.6, RFC 5681 3.1, RFC 6675 5.1.
    fn on_rto(&mut self, now: Instant, shared: &mut Shared) -> Result<(), ConnectionError> {
        if self.board.out == 0 {
            return Ok(());
        }
        self.retries = self.retries.saturating_add(1);
        if self.retries > shared.config.retries {
            return Err(ConnectionError::TimedOut);
        }
        if self.retries == 3 {
            shared.raise(Event::Trouble); // RFC 9293 3.8.3: R1
        }
        shared.stats.timeouts += 1;
        if self.board.ring[0].is(SACKED) {
            self.board.forget_sacks(); // RFC 2018 8
        }
        let first = self.retries == 1;
        let mut event = self.flight_event(CongestionKind::Timeout { first });
        if !first {
            event.flight_size = event.flight_size.max(Bytes(u64::from(shared.mss)));
        }
        self.cc.on_congestion(now, &event);
        let new_episode = self.state != CaState::Loss && first;
        if new_episode {
            self.begin_episode(shared, true);
        }
        self.frto = u8::from(shared.config.frto && new_episode && self.board.segments() > 0);
        self.frto_new = 0;
        self.state = CaState::Loss;
        self.high_seq = self.nxt;
        self.recover = self.nxt;
        self.board.duplicates = 0;
        self.dup_acks = 0;
        self.tlp_end = 0;
        self.wait_until = None;
        self.begin_recovery();
        if let Some(rack) = &mut self.rack {
            rack.on_timeout(now, &mut self.board, shared.rtt.min(), shared.rtt.srtt());
        } else {
            self.board.mark_all_lost();
        }
        self.force = true;
        shared.rtt.back_off();
        let at = now + shared.rtt.rto(&shared.config.rto);
        shared.timers.arm(Timer::Rto, at);
        Ok(())
    }
}
