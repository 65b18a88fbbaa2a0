//! PIE: drops arriving packets with a probability that a controller of proportional and integral parts holds to a target delay.
//!
//! Every `update_interval` the drop probability moves with the distance of the delay from its target and with its change; near
//! zero it moves in smaller steps. Bursts shorter than `max_burst` after a calm pass untouched. Drops are kept apart by a sum
//! of probabilities since the last one. The delay is what the last packet waited, or the queue over the measured drain rate.
//!
//! **Source.** RFC 8033: decisions 4.1, probability and auto-tuning 4.2, delay 4.3 and 5.2, bursts 4.4, marking 5.1,
//! de-randomisation 5.4, largest step 5.5. The pseudocode was transcribed from memory and checked against Linux
//! (`sch_pie.c`) and quotations of the RFC.
//!
//! **Promises.** Work conserving. Never drops early with two mean packets or fewer waiting, nor during `max_burst` after the
//! delay was below half its target with probability zero.
//!
//! **Deviations.** There is no timer: missed updates are made up at the next call, each as it would have been, until one
//! changes nothing; beyond 4096 in a row (a minute with a stalled packet) the rest are skipped. PIE is always active (RFC 8033
//! 5.3, switching on at a third of the buffer, is optional). The delay by time stamps is the wait of the packet that left
//! last, and 0 when it left nothing behind, as Linux takes it. The limit is tested before the early drop, and every drop
//! or mark resets the sum of probabilities (Linux). By the drain rate, the packet at whose departure a measurement begins is not
//! counted in it, since its transmission lies before that: so in Linux, but for its first measurement; a measurement that took no time goes on.
//! The probability decays by 2 % an update while the delay is 0 and was 0 before (4.2, and Linux); appendix A decays it below half of the target.
//! Linux's 2 % more above 250 ms is not in the RFC and not here.

use super::LinkContext;
use super::fifo::Fifo;
use super::{Backlog, DropPoint, DropReason, QueueContext, QueueDiscipline, QueueEventKind};
use crate::packet::{Ecn, Packet};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::queue::Limit;
use crate::rng::{Probability, Rng};
use crate::time::{Duration, Instant};
use crate::units::Bytes;

/// A PIE queue.
#[derive(Clone, Debug)]
pub struct Pie {
    limit: Limit,
    law: Law,
    state: State,
    rng: Rng,
    packets: Fifo,
}

/// The parameters of the law, shared with FQ-PIE.
pub(super) mod parameters {
    use super::{Bytes, Duration, Parameter, parameter};

    pub(in super::super) const TARGET: Parameter = parameter!(
        "target": Duration(Duration::from_micros(1), Duration::from_secs(10)) = Duration::from_millis(15),
        "Delay that the controller holds (RFC 8033 QDELAY_REF: 15 ms)"
    );
    pub(in super::super) const UPDATE_INTERVAL: Parameter = parameter!(
        "update_interval": Duration(Duration::from_micros(1), Duration::from_secs(10)) = Duration::from_millis(15),
        "Time between two computations of the probability (RFC 8033 T_UPDATE: 15 ms); with another one scale `alpha` along"
    );
    pub(in super::super) const ALPHA: Parameter = parameter!("alpha": Number(0.0, 1000.0) = 0.125,
        "Probability per update and second of delay above the target (RFC 8033 4.2: 1/8)");
    pub(in super::super) const BETA: Parameter = parameter!("beta": Number(0.0, 1000.0) = 1.25,
        "Probability per update and second of delay gained since the last one (RFC 8033 4.2: 1 1/4)");
    pub(in super::super) const MAX_BURST: Parameter = parameter!(
        "max_burst": Duration(Duration::ZERO, Duration::from_secs(10)) = Duration::from_millis(150),
        "How long after a calm nothing is dropped early (RFC 8033 MAX_BURST: 150 ms)"
    );
    pub(in super::super) const DELAY: Parameter = parameter!(
        "delay": Choice(&["timestamp", "rate"]) = "timestamp",
        "How the delay is known: what the last packet waited (Linux), or the queue over the measured drain rate (RFC 8033 5.2)"
    );
    pub(in super::super) const MEAN_PACKET: Parameter = parameter!(
        "mean_packet": Bytes(Bytes(1), Bytes(1_000_000)) = auto,
        "No early drop with less than two of these waiting (RFC 8033 MEAN_PKTSIZE); by default the link's MTU, as in Linux"
    );
    pub(in super::super) const DERANDOMISE: Parameter = parameter!("derandomise": Flag = true,
        "Keep drops apart: none before the probabilities since the last one sum to 0.85, one for sure at 8.5 (RFC 8033 5.4)");
    pub(in super::super) const ECN: Parameter = parameter!("ecn": Flag = false,
        "Mark ECN-capable packets instead of dropping them, up to `ecn_threshold` (RFC 8033 5.1; Linux: off)");
    pub(in super::super) const ECN_THRESHOLD: Parameter = parameter!("ecn_threshold": Number(0.0, 1.0) = 0.1,
        "Probability from which on packets are dropped, not marked (RFC 8033 mark_ecnth: 10 %)");
}
use parameters::{
    ALPHA, BETA, DELAY, DERANDOMISE, ECN, ECN_THRESHOLD, MAX_BURST, MEAN_PACKET, TARGET, UPDATE_INTERVAL,
};

impl Pie {
    /// `limit`, `target`, `update_interval`, `alpha`, `beta`, `max_burst`, `delay`, `mean_packet`, `derandomise`, `ecn`,
    /// `ecn_threshold`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(1000),
            "What may wait, not counting the packet being sent (Linux pie: 1000 packets)"),
        TARGET,
        UPDATE_INTERVAL,
        ALPHA,
        BETA,
        MAX_BURST,
        DELAY,
        MEAN_PACKET,
        DERANDOMISE,
        ECN,
        ECN_THRESHOLD,
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> Pie {
        let law = Law::new(values, link);
        Pie {
            limit: values.limit("limit"),
            state: State::new(&law),
            law,
            rng: Rng::for_element(link.seed, "queue", "pie"),
            packets: Fifo::new(),
        }
    }

    /// The drop probability as it was after the last update.
    pub fn probability(&self) -> f64 {
        self.state.drop_prob
    }

    /// Average time in which 16384 B leave, seconds, with `delay = "rate"`; 0 before the first measurement.
    pub fn drain_time(&self) -> f64 {
        self.state.avg_dq_time
    }
}

impl QueueDiscipline for Pie {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, mut packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        let waiting = self.packets.bytes();
        self.state.catch_up(now, &self.law, waiting);
        if !self.limit.admits(self.backlog(), packet.segment.len()) {
            self.state.accu_prob = 0.0;
            context.drops.push((packet, DropReason::Full));
            return;
        }
        match self.state.arrive(&self.law, waiting, &mut packet, &mut self.rng) {
            Verdict::Drop => {
                context.drops.push((packet, DropReason::Early));
                return;
            }
            Verdict::Mark => context.report(QueueEventKind::Marked, packet.flow),
            Verdict::Pass => {}
        }
        self.packets.push(packet, ());
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        self.state.catch_up(now, &self.law, self.packets.bytes());
        let (packet, ()) = self.packets.pop()?;
        self.state.depart(now, &self.law, &packet, self.packets.bytes());
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn drop_point(&self) -> DropPoint {
        DropPoint::Arrival
    }
}

/// The constants of the law.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    target: Duration,
    update_interval: Duration,
    alpha: f64,
    beta: f64,
    max_burst: Duration,
    by_rate: bool,
    /// Bytes that may always wait.
    spared: u64,
    derandomise: bool,
    ecn: bool,
    ecn_threshold: f64,
}

/// What becomes of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// The variables of RFC 8033 appendix B, one set per queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    drop_prob: f64,
    /// Sum of the probabilities of the packets since the last drop.
    pub(super) accu_prob: f64,
    current_qdelay: Duration,
    qdelay_old: Duration,
    burst_allowance: Duration,
    next_update: Instant,
    /// The departure with which a measurement began, and the bytes that have left after it.
    measurement: Option<(Instant, u64)>,
    /// Average time in which [`DQ_THRESHOLD`] bytes leave, seconds; 0 before the first measurement.
    avg_dq_time: f64,
}

/// Bytes of one measurement of the drain rate (RFC 8033 5.2: 2^14).
const DQ_THRESHOLD: u64 = 16_384;
/// Most updates that one call makes up.
const MOST_UPDATES: u64 = 4096;

impl Law {
    pub(super) fn new(values: &Values, link: &LinkContext) -> Law {
        Law {
            target: values.duration("target").unwrap_or(Duration::from_millis(15)),
            update_interval: values
                .duration("update_interval")
                .unwrap_or(Duration::from_millis(15)),
            alpha: values.number("alpha").unwrap_or(0.125),
            beta: values.number("beta").unwrap_or(1.25),
            max_burst: values.duration("max_burst").unwrap_or(Duration::from_millis(150)),
            by_rate: values.choice("delay") == "rate",
            spared: 2 * values
                .bytes("mean_packet")
                .map_or(u64::from(link.mtu), |bytes| bytes.0),
            derandomise: values.flag("derandomise"),
            ecn: values.flag("ecn"),
            ecn_threshold: values.number("ecn_threshold").unwrap_or(0.1),
        }
    }

    /// RFC 8033 4.2: small probabilities move in small steps.
    fn tuned(step: f64, drop_prob: f64) -> f64 {
        let divisor = match drop_prob {
            p if p < 0.000_001 => 2048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        step / divisor
    }
}

impl State {
    pub(super) fn new(law: &Law) -> State {
        State {
            drop_prob: 0.0,
            accu_prob: 0.0,
            current_qdelay: Duration::ZERO,
            qdelay_old: Duration::ZERO,
            burst_allowance: law.max_burst,
            next_update: Instant::ZERO.saturating_add(law.update_interval),
            measurement: None,
            avg_dq_time: 0.0,
        }
    }

    /// Makes up the updates that were due at or before `now`; `waiting` bytes have waited since the last call.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Instant, law: &Law, waiting: u64) {
        if now < self.next_update {
            return;
        }
        let missed = now.since(self.next_update).as_nanos() / law.update_interval.as_nanos().max(1) + 1;
        for _ in 0..missed.min(MOST_UPDATES) {
            super::work::step();
            // Between two calls an update sees the same queue: one that changes nothing is like all that follow.
            if !self.update(law, waiting) {
                break;
            }
        }
        self.next_update = self
            .next_update
            .saturating_add(law.update_interval.saturating_mul(missed));
    }

    /// One update (RFC 8033 4.2, calculate_drop_prob). Whether it changed anything.
    fn update(&mut self, law: &Law, waiting: u64) -> bool {
        let before = (self.drop_prob, self.qdelay_old, self.burst_allowance);
        if law.by_rate {
            let delay_s = waiting as f64 * self.avg_dq_time / DQ_THRESHOLD as f64;
            self.current_qdelay = Duration::from_secs_f64(delay_s);
        }
        let (delay_s, old_s) = (self.current_qdelay.as_secs_f64(), self.qdelay_old.as_secs_f64());
        let mut p = law.alpha * (delay_s - law.target.as_secs_f64()) + law.beta * (delay_s - old_s);
        p = Law::tuned(p, self.drop_prob);
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02; // RFC 8033 5.5
        }
        self.drop_prob += p;
        if self.current_qdelay.is_zero() && self.qdelay_old.is_zero() {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(law.update_interval);
        before != (self.drop_prob, self.qdelay_old, self.burst_allowance)
    }

    /// What becomes of a packet that finds `waiting` bytes; marks it if so decided.
    #[inline]
    pub(super) fn arrive(&mut self, law: &Law, waiting: u64, packet: &mut Packet, rng: &mut Rng) -> Verdict {
        // RFC 8033 4.4: the congestion is over.
        let calm = |delay: Duration| delay.saturating_mul(2) < law.target;
        if self.drop_prob == 0.0 && calm(self.current_qdelay) && calm(self.qdelay_old) {
            self.burst_allowance = law.max_burst;
        }
        if !self.burst_allowance.is_zero() || !self.drop_early(law, waiting, rng) {
            return Verdict::Pass;
        }
        self.accu_prob = 0.0;
        // RFC 8033 5.1
        if law.ecn && packet.segment.ecn_capable() && self.drop_prob < law.ecn_threshold {
            packet.segment.set_ecn(Ecn::Ce);
            return Verdict::Mark;
        }
        Verdict::Drop
    }

    /// RFC 8033 4.1 and 5.4.
    fn drop_early(&mut self, law: &Law, waiting: u64, rng: &mut Rng) -> bool {
        if self.qdelay_old.saturating_mul(2) < law.target && self.drop_prob < 0.2 || waiting <= law.spared {
            return false;
        }
        if law.derandomise {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        rng.chance(Probability::from_f64(self.drop_prob))
    }

    /// A packet left, and `left` bytes stay behind (RFC 8033 4.3 and 5.2).
    #[inline]
    pub(super) fn depart(&mut self, now: Instant, law: &Law, packet: &Packet, left: u64) {
        if !law.by_rate {
            self.current_qdelay = if left == 0 {
                Duration::ZERO
            } else {
                now.since(packet.enqueued_at)
            };
            return;
        }
        if let Some((start, count)) = &mut self.measurement {
            *count += u64::from(packet.segment.len());
            let dq_time = now.since(*start).as_secs_f64();
            if *count >= DQ_THRESHOLD && dq_time > 0.0 {
                let weight = DQ_THRESHOLD as f64 / 65_536.0;
                self.avg_dq_time = if self.avg_dq_time == 0.0 {
                    dq_time
                } else {
                    dq_time * weight + self.avg_dq_time * (1.0 - weight)
                };
                self.measurement = None;
            }
        }
        if self.measurement.is_none() && left >= DQ_THRESHOLD {
            self.measurement = Some((now, 0));
        }
    }
}
