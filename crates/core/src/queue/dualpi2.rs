//! DualPI2: two coupled queues, one for senders that want many early marks (L4S) and one for the others.
//!
//! Packets with ECT(1) or CE wait in the L queue, all others in the C queue; a conditional priority serves L first and keeps
//! a share for C. One controller of the classic delay (PI2) moves a base probability p': C packets are dropped or marked with
//! p' squared, L packets marked with `coupling` times p', or all of them when L itself exceeds a shallow threshold. So flows
//! of both kinds get similar rates at very different delays.
//!
//! **Source.** RFC 9332: structure 2.4 and 2.5, appendix A.1 (parameters, enqueue, dequeue, PI2, the L queue's own marking)
//! and A.2 (overload); identifier: RFC 9331 4.1. Transcribed from memory and checked against Linux `sch_dualpi2.c`; where
//! a default names Linux it is from there. PI2: De Schepper et al., CoNEXT 2016.
//!
//! **Promises.** Work conserving; keeps the order of a flow that stays in one class. With `wrr` a backlogged C queue gets its share
//! of the bytes whatever L does, up to one packet of each. No packet of an ECN-capable sender is dropped below overload.
//!
//! **Deviations.** Missed updates are made up at the next call, each with the head's wait at its own time; beyond 4096 in a row
//! the rest are skipped. Under overload L packets count for drops apart from marks: one counter, as the RFC prints, would be
//! filled by the certain marks. The delay of a queue is the wait of its head; the L queue's own marking looks at the wait
//! of the packet that leaves and spares one that leaves nothing behind. The ramp of A.1 (0.8 to 1.2 ms) is
//! `step = "800 us"`, `ramp = "400 us"`; the default is the step in its middle, as in Linux, but never less than two of the
//! largest packets take on the link: one that leaves a packet behind has waited for one, and on a line of 10 Mbit/s that is
//! 1.2 ms, so a step of 1 ms would mark all of a flow that has two packets here. DOCSIS 3.1 has the same floor for its L queue (from
//! memory); RFC 9332 leaves it to the operator. Linux spares all packets while less
//! than two wait; the RFC does not. The scheduler's credit starts anew when the last packet leaves or is dropped, in Linux when the next dequeue
//! finds nothing.

use super::fifo::Fifo;
use super::{Backlog, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, QueueEventKind};
use crate::packet::{Ecn, Packet};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};

/// A DualPI2 queue.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    limit: Limit,
    low_latency: Class,
    classic: Class,
    scheduler: Scheduler,
    controller: Controller,
    coupling: f64,
    step: Duration,
    ramp: Duration,
    drops: bool,
}

/// One of the two queues.
#[derive(Clone, Debug)]
struct Class {
    packets: Fifo,
    /// q.count of the RFC, for marks in L and for all decisions in C.
    count: f64,
    /// Accumulated probability of drops in L under overload.
    drop_count: f64,
}

/// Which queue is next when both wait.
#[derive(Clone, Copy, Debug)]
enum Scheduler {
    /// Weighted round robin as in Linux: L is served while the credit is not above 0.
    Weighted {
        /// Percent of the bytes for C.
        share: i64,
        /// Bytes times percent.
        credit: i64,
        /// What an empty queue begins with.
        initial: i64,
    },
    /// The longest wait, L's counted longer by this (RFC 9332's time-shifted FIFO).
    TimeShifted(Duration),
}

/// PI2's base controller.
#[derive(Clone, Copy, Debug)]
struct Controller {
    target: Duration,
    update_interval: Duration,
    /// Probability per update and second.
    alpha: f64,
    beta: f64,
    /// Largest p'.
    most: f64,
    /// p' of the RFC.
    base: f64,
    previous: Duration,
    next_update: Instant,
}

/// Most updates that one call makes up.
const MOST_UPDATES: u64 = 4096;

impl DualPi2 {
    /// `limit`, `target`, `update_interval`, `alpha`, `beta`, `coupling`, `step`, `ramp`, `scheduler`, `classic_share`,
    /// `time_shift`, `drop_on_overload`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(10_000),
            "What may wait in both queues together (Linux dualpi2: 10000 packets)"),
        parameter!("target": Duration(Duration::from_micros(1), Duration::from_secs(10)) = Duration::from_millis(15),
            "Delay of the classic queue that the controller holds (RFC 9332 A.1: 15 ms)"),
        parameter!("update_interval": Duration(Duration::from_micros(1), Duration::from_secs(10)) = Duration::from_millis(16),
            "Time between two computations of the probability (Linux: 16 ms)"),
        parameter!("alpha": Number(0.0, 1000.0) = 0.16,
            "Base probability per update and second of delay above the target (RFC 9332 A.1: 0.16 Hz)"),
        parameter!("beta": Number(0.0, 1000.0) = 3.2,
            "Base probability per update and second of delay gained since the last one (RFC 9332 A.1: 3.2 Hz)"),
        parameter!("coupling": Number(1.0, 100.0) = 2.0,
            "k: an L packet is marked with k times the base probability, a C packet with its square (RFC 9332 A.1: 2)"),
        parameter!("step": Duration(Duration::ZERO, Duration::from_secs(10)) = auto,
            "Wait above which L packets are marked on their own account; by default 1 ms (Linux; RFC 9332 A.1: from 0.8 ms on), or what two of the link's largest packets take with what it adds to them, if that is longer (DOCSIS's floor)"),
        parameter!("ramp": Duration(Duration::ZERO, Duration::from_secs(10)) = Duration::ZERO,
            "Further wait over which that marking grows from none to all (Linux: a step; RFC 9332 A.1: 0.4 ms)"),
        parameter!("scheduler": Choice(&["wrr", "time-shifted"]) = "wrr",
            "Who is next when both wait: weighted round robin (Linux), or the longer wait with L's prolonged (RFC 9332 2.5)"),
        parameter!("classic_share": Number(0.0, 1.0) = 0.1,
            "Share of the bytes that the C queue gets at least, with `wrr` (Linux: 10 %)"),
        parameter!("time_shift": Duration(Duration::ZERO, Duration::from_secs(10)) = Duration::from_millis(40),
            "By how much L's wait counts longer, with `time-shifted` (RFC 9332: beyond C's target; 40 ms is ours)"),
        parameter!("drop_on_overload": Flag = true,
            "Drop ECN-capable packets too when the L marking reaches 100 %; else let the buffer overflow (RFC 9332 4.2.3)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> DualPi2 {
        let coupling = values.number("coupling").unwrap_or(2.0);
        let drops = values.flag("drop_on_overload");
        let share = libm::round(100.0 * values.number("classic_share").unwrap_or(0.1)) as i64;
        let initial = i64::from(link.mtu) * (2 * share - 100);
        DualPi2 {
            limit: values.limit("limit"),
            low_latency: Class::new(),
            classic: Class::new(),
            scheduler: if values.choice("scheduler") == "time-shifted" {
                Scheduler::TimeShifted(values.duration("time_shift").unwrap_or(Duration::from_millis(40)))
            } else {
                Scheduler::Weighted {
                    share,
                    credit: initial,
                    initial,
                }
            },
            controller: Controller {
                target: values.duration("target").unwrap_or(Duration::from_millis(15)),
                update_interval: values
                    .duration("update_interval")
                    .unwrap_or(Duration::from_millis(16)),
                alpha: values.number("alpha").unwrap_or(0.16),
                beta: values.number("beta").unwrap_or(3.2),
                // Without drops p' stays where the marking of L reaches 100 %.
                most: if drops { 1.0 } else { 1.0 / coupling },
                base: 0.0,
                previous: Duration::ZERO,
                next_update: Instant::ZERO.saturating_add(
                    values
                        .duration("update_interval")
                        .unwrap_or(Duration::from_millis(16)),
                ),
            },
            coupling,
            step: values
                .duration("step")
                .unwrap_or_else(|| DualPi2::automatic_step(link.rate, link.mtu, link.framing)),
            ramp: values.duration("ramp").unwrap_or(Duration::ZERO),
            drops,
        }
    }

    /// The step by default: what two of the largest packets (`mtu` bytes each) take with what the link adds to each (`framing` bytes), at least 1 ms.
    pub fn automatic_step(rate: Rate, mtu: u32, framing: u32) -> Duration {
        let two = Bytes(2 * (u64::from(mtu) + u64::from(framing)));
        rate.time_for(two).max(Duration::from_millis(1))
    }

    /// p' as it was after the last update.
    pub fn base_probability(&self) -> f64 {
        self.controller.base
    }

    fn catch_up(&mut self, now: Instant) {
        let heads = [&self.low_latency, &self.classic].map(Class::head_since);
        self.controller.catch_up(now, heads);
    }

    /// RFC 9332 A.1: native marking probability of a packet that waited this long, with `left` packets behind it.
    fn native(&self, wait: Duration, left: usize) -> f64 {
        if left == 0 || wait <= self.step {
            return 0.0;
        }
        let beyond = wait.saturating_sub(self.step);
        if beyond >= self.ramp {
            return 1.0;
        }
        beyond.as_secs_f64() / self.ramp.as_secs_f64()
    }

    /// What becomes of an L packet that leaves. True: it is dropped.
    fn judge_low_latency(
        &mut self,
        now: Instant,
        packet: &mut Packet,
        context: &mut QueueContext<'_>,
    ) -> bool {
        let base = self.controller.base;
        let coupled = self.coupling * base;
        let native = self.native(now.since(packet.enqueued_at), self.low_latency.packets.len());
        // RFC 9332 A.2: the marking is saturated, so delay is bounded by drops as in the C queue.
        if self.drops && coupled >= 1.0 && recur(&mut self.low_latency.drop_count, base * base) {
            return true;
        }
        let probability = native.max(coupled).min(1.0);
        if probability > 0.0 && recur(&mut self.low_latency.count, probability) {
            mark(packet, context);
        }
        false
    }

    /// Marks or drops a C packet; whether it was dropped.
    fn judge_classic(&mut self, packet: &mut Packet, context: &mut QueueContext<'_>) -> bool {
        let base = self.controller.base;
        if base == 0.0 || !recur(&mut self.classic.count, base * base) {
            return false;
        }
        // p_Cmax = 1 / k^2: beyond it the L queue is saturated, and marks are not enough here either.
        let overload = self.drops && self.coupling * base >= 1.0;
        if !packet.segment.ecn_capable() || overload {
            return true;
        }
        mark(packet, context);
        false
    }

    /// Whether the L queue is next.
    fn low_latency_is_next(&self, now: Instant) -> bool {
        let (Some(low), Some(classic)) = (self.low_latency.head_since(), self.classic.head_since()) else {
            return !self.low_latency.packets.is_empty();
        };
        match self.scheduler {
            Scheduler::Weighted { credit, .. } => credit <= 0,
            Scheduler::TimeShifted(shift) => {
                now.since(low).as_nanos().saturating_add(shift.as_nanos()) >= now.since(classic).as_nanos()
            }
        }
    }

    /// Accounts for a packet that was sent. `other_waits`: the other queue could have been served.
    fn served(&mut self, low_latency: bool, other_waits: bool, len: u32) {
        if let (true, Scheduler::Weighted { share, credit, .. }) = (other_waits, &mut self.scheduler) {
            let weight = if low_latency { *share } else { *share - 100 };
            *credit = credit.saturating_add(weight * i64::from(len));
        }
        self.starts_over_if_empty();
    }

    /// An empty queue has the credit that it began with.
    fn starts_over_if_empty(&mut self) {
        let empty = self.backlog().packets == 0;
        if let (true, Scheduler::Weighted { credit, initial, .. }) = (empty, &mut self.scheduler) {
            *credit = *initial;
        }
    }
}

/// RFC 9332 A.1: true as often as `likelihood` says, evenly spaced.
fn recur(count: &mut f64, likelihood: f64) -> bool {
    *count += likelihood;
    if *count > 1.0 {
        *count -= 1.0;
        return true;
    }
    false
}

fn mark(packet: &mut Packet, context: &mut QueueContext<'_>) {
    if packet.segment.ecn() != Ecn::Ce {
        packet.segment.set_ecn(Ecn::Ce);
        context.report(QueueEventKind::Marked, packet.flow);
    }
}

impl Class {
    fn new() -> Class {
        Class {
            packets: Fifo::new(),
            count: 0.0,
            drop_count: 0.0,
        }
    }

    /// Since when its head waits.
    fn head_since(&self) -> Option<Instant> {
        self.packets.head().map(|packet| packet.enqueued_at)
    }
}

impl Controller {
    /// Makes up the updates that were due at or before `now`; the heads have waited since the last call.
    fn catch_up(&mut self, now: Instant, heads: [Option<Instant>; 2]) {
        if now < self.next_update {
            return;
        }
        let missed = now.since(self.next_update).as_nanos() / self.update_interval.as_nanos().max(1) + 1;
        let due = |tick: u64| {
            self.next_update
                .saturating_add(self.update_interval.saturating_mul(tick))
        };
        // RFC 9332 A.2: the longer delay of the two.
        let delay = |at: Instant| heads.map(|head| head.map_or(Duration::ZERO, |since| at.since(since)));
        let delay = |at: Instant| delay(at)[0].max(delay(at)[1]);
        let (first, last, next) = (self.next_update, due(missed - 1), due(missed));
        let period = self.update_interval;
        let mut at = first;
        for _ in 0..missed.min(MOST_UPDATES) {
            super::work::step();
            let now = delay(at);
            let before = (self.base, self.previous);
            self.update(now);
            at = at.saturating_add(period);
            // Nothing changes any more: an empty queue at 0, or one that only grows at the top.
            let steady = before == (self.base, self.previous) && heads == [None, None];
            if steady || self.base >= self.most && now >= self.target {
                break;
            }
        }
        self.previous = delay(last);
        self.next_update = next;
    }

    /// RFC 9332 A.1, dualpi2_update.
    fn update(&mut self, delay: Duration) {
        let seconds = delay.as_secs_f64();
        let error = seconds - self.target.as_secs_f64();
        let growth = seconds - self.previous.as_secs_f64();
        self.base = (self.base + self.alpha * error + self.beta * growth).clamp(0.0, self.most);
        self.previous = delay;
    }
}

impl QueueDiscipline for DualPi2 {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        super::work::step();
        self.catch_up(now);
        if !self.limit.admits(self.backlog(), packet.segment.len()) {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        // RFC 9331 4.1: ECT(1) and CE are the L4S identifier.
        match packet.segment.ecn() {
            Ecn::Ect1 | Ecn::Ce => self.low_latency.packets.push(packet, ()),
            Ecn::NotEct | Ecn::Ect0 => self.classic.packets.push(packet, ()),
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<Packet> {
        self.catch_up(now);
        loop {
            super::work::step();
            let low_latency = self.low_latency_is_next(now);
            let (packet, dropped) = if low_latency {
                let (mut packet, ()) = self.low_latency.packets.pop()?;
                let dropped = self.judge_low_latency(now, &mut packet, context);
                (packet, dropped)
            } else {
                let (mut packet, ()) = self.classic.packets.pop()?;
                let dropped = self.judge_classic(&mut packet, context);
                (packet, dropped)
            };
            if dropped {
                context.drops.push((packet, DropReason::Early));
                self.starts_over_if_empty();
                continue;
            }
            let other = if low_latency {
                &self.classic
            } else {
                &self.low_latency
            };
            let other_waits = !other.packets.is_empty();
            self.served(low_latency, other_waits, packet.segment.len());
            return Some(packet);
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        let (low, classic) = (self.low_latency.packets.backlog(), self.classic.packets.backlog());
        Backlog {
            packets: low.packets + classic.packets,
            bytes: low.bytes + Bytes(classic.bytes.0),
        }
    }
}
