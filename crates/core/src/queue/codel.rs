//! CoDel: drops from the head when packets have waited too long for too long.
//!
//! When every packet of the last `interval` waited longer than `target`, CoDel drops one, and then more and more often,
//! each after interval / sqrt(count), until the wait falls below the target. With `ce_threshold` it also marks every
//! ECN-capable packet that waited longer than that: the step that DCTCP wants.
//!
//! **Source.** RFC 8289, pseudocode of section 5; defaults from its 4.2 and 4.3. `ce_threshold`: Linux (`codel_dequeue`);
//! the step is RFC 8257 3.1's, by time instead of length.
//!
//! **Deviations.** `ecn` marks instead of dropping, as Linux does and RFC 8289 leaves open: a mark counts as a drop for the
//! control law, and the marked packet is delivered at once. The largest packet of 5.4 ("no drop when backlog is at most
//! one packet") is the link's MTU, as the RFC suggests and Linux does.
//!
//! Where the sources disagree, `details` says who is followed. RFC 8289: nanoseconds and a square root. Linux and ns-3: ticks of
//! 1024 ns and, for 1 / sqrt(count), one Newton step per drop in 16 bits, whose second drop comes after 0.5 intervals instead
//! of 0.71, later ones within 3 %; the first drop needs more than an interval above the target, not at least one. ns-3 alone
//! counts the time to the next mark from the mark before, not from when that was due, so its marks come a little late.
//! `docs/trust.md` has the differences in figures.

use super::LinkContext;
use super::fifo::Fifo;
use super::{Backlog, DropReason, Limit, QueueContext, QueueDiscipline, QueueEventKind};
use crate::packet::{Ecn, Packet};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::{Duration, Instant};

/// A CoDel queue.
#[derive(Clone, Debug)]
pub struct CoDel {
    limit: Limit,
    law: Law,
    state: State,
    packets: Fifo,
}

pub(super) const TARGET: Parameter = parameter!(
    "target": Duration(Duration::from_nanos(1), Duration::from_secs(10)) = Duration::from_millis(5),
    "Wait that is acceptable as a standing queue (RFC 8289 4.2: 5 ms)"
);

pub(super) const INTERVAL: Parameter = parameter!(
    "interval": Duration(Duration::from_nanos(1), Duration::from_secs(100)) = Duration::from_millis(100),
    "How long the wait must exceed the target before the first drop (RFC 8289 4.3: 100 ms, a large RTT)"
);

pub(super) const CE_THRESHOLD: Parameter = parameter!(
    "ce_threshold": Duration(Duration::from_nanos(1), Duration::from_secs(10)) = auto,
    "Mark every ECN-capable packet that waited longer than this, whatever `ecn` says; by default none (RFC 8290 5.2.7; Linux: for DCTCP)"
);

pub(super) const DETAILS: Parameter = parameter!("details": Choice(&["rfc", "linux", "ns-3"]) = "rfc",
    "Who is followed where the RFCs, Linux and ns-3 differ in details (arithmetic, ties; see `docs/trust.md`)");

impl CoDel {
    /// `limit`, `target`, `interval`, `ecn`, `ce_threshold`, `details`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(1000),
            "What may wait, not counting the packet being sent (Linux codel: 1000 packets)"),
        TARGET,
        INTERVAL,
        parameter!("ecn": Flag = false,
            "Mark ECN-capable packets instead of dropping them (Linux codel: off)"),
        CE_THRESHOLD,
        DETAILS,
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> CoDel {
        CoDel {
            limit: values.limit("limit"),
            law: Law::new(values, link),
            state: State::default(),
            packets: Fifo::new(),
        }
    }
}

impl QueueDiscipline for CoDel {
    #[inline(never)]
    fn enqueue(&mut self, _now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        let len = packet.segment.len();
        if self.limit.admits(self.backlog(), len) {
            self.packets.push(packet, ());
        } else {
            context.drops.push((packet, DropReason::Full));
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<Packet> {
        let packets = &mut self.packets;
        self.state.dequeue(now, &self.law, context, || {
            let (packet, ()) = packets.pop()?;
            Some((packet, packets.bytes()))
        })
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }
}

/// The constants of the control law.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    target: Duration,
    interval: Duration,
    ecn: bool,
    ce_threshold: Option<Duration>,
    max_packet: u32,
    pub(super) details: Details,
}

/// Who is followed where the sources differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Details {
    /// RFC 8289 and RFC 8290.
    Rfc,
    /// `codel_impl.h` and `sch_fq_codel.c` of Linux 6.1.
    Linux,
    /// `CoDelQueueDisc` and `FqCoDelQueueDisc` of ns-3.37.
    Ns3,
}

/// Bits that Linux's clock of CoDel leaves out of the nanoseconds (`CODEL_SHIFT`).
const TICK_BITS: u32 = 10;

impl Law {
    pub(super) fn new(values: &Values, link: &LinkContext) -> Law {
        let chooses = values.table().iter().any(|entry| entry.name == DETAILS.name);
        let details = match if chooses { values.choice(DETAILS.name) } else { "" } {
            "linux" => Details::Linux,
            "ns-3" => Details::Ns3,
            _ => Details::Rfc,
        };
        Law {
            target: details.rounded(values.duration("target").unwrap_or(Duration::from_millis(5))),
            interval: details.rounded(values.duration("interval").unwrap_or(Duration::from_millis(100))),
            ecn: values.flag("ecn"),
            ce_threshold: values
                .duration("ce_threshold")
                .map(|threshold| details.rounded(threshold)),
            max_packet: link.mtu,
            details,
        }
    }

    /// How long a packet has waited.
    fn sojourn(&self, now: Instant, packet: &Packet) -> Duration {
        match self.details {
            Details::Linux => self
                .details
                .tick(now)
                .since(self.details.tick(packet.enqueued_at)),
            Details::Rfc | Details::Ns3 => self.details.rounded(now.since(packet.enqueued_at)),
        }
    }

    /// Whether a wait that will have been above the target for an interval at `at` has been.
    fn long_enough(&self, now: Instant, at: Instant) -> bool {
        match self.details {
            Details::Rfc => now >= at,
            Details::Linux | Details::Ns3 => now > at,
        }
    }
}

impl Details {
    /// The clock of the control law.
    fn tick(self, at: Instant) -> Instant {
        Instant::from_nanos(self.rounded(at.since(Instant::ZERO)).as_nanos())
    }

    fn rounded(self, time: Duration) -> Duration {
        match self {
            Details::Rfc => time,
            Details::Linux | Details::Ns3 => Duration::from_nanos(time.as_nanos() >> TICK_BITS << TICK_BITS),
        }
    }
}

/// The variables of RFC 8289 5.3, one set per queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// When the wait will have been above the target for an interval; `None` while it is below.
    first_above: Option<Instant>,
    /// When to drop next.
    drop_next: Instant,
    /// Drops since the drop state was entered.
    count: u32,
    /// `count` when the drop state was entered last.
    last_count: u32,
    dropping: bool,
    /// Linux's and ns-3's estimate of 1 / sqrt(count), in units of 2^-16.
    reciprocal_root: u16,
}

impl State {
    /// The next packet. `pop` takes the head of the queue and says how many bytes are left behind it.
    #[inline]
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        law: &Law,
        context: &mut QueueContext<'_>,
        pop: impl FnMut() -> Option<(Packet, u64)>,
    ) -> Option<Packet> {
        self.dequeue_sparing(now, law, context, pop, |_, _| false)
    }

    /// Whether it is in the drop state; an empty queue never is.
    pub(super) const fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// As [`State::dequeue`], for queues with packets that must not be dropped: `spare` says whether the packet popped last is one, and
    /// remembers that it would have been dropped. For the control law it was.
    #[inline]
    pub(super) fn dequeue_sparing(
        &mut self,
        now: Instant,
        law: &Law,
        context: &mut QueueContext<'_>,
        pop: impl FnMut() -> Option<(Packet, u64)>,
        spare: impl FnMut(&Packet, &mut QueueContext<'_>) -> bool,
    ) -> Option<Packet> {
        let mut packet = self.control(now, law, context, pop, spare)?;
        // Linux's `ce_threshold`: the packet's own wait, after the control law and independent of it.
        if let Some(threshold) = law.ce_threshold
            && law.sojourn(now, &packet) > threshold
            && packet.segment.ecn() != Ecn::Ce
            && packet.segment.ecn_capable()
        {
            Law::set_ce(&mut packet, context);
        }
        Some(packet)
    }

    #[inline]
    fn control(
        &mut self,
        now: Instant,
        law: &Law,
        context: &mut QueueContext<'_>,
        mut pop: impl FnMut() -> Option<(Packet, u64)>,
        mut spare: impl FnMut(&Packet, &mut QueueContext<'_>) -> bool,
    ) -> Option<Packet> {
        let (mut packet, mut ok_to_drop) = self.take(now, law, pop())?;
        let tick = law.details.tick(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            // RFC 8289 5.5: drops are caught up with when the dequeue comes late.
            while self.dropping && tick >= self.drop_next {
                self.count = self.count.saturating_add(1);
                self.counted();
                if law.mark(&mut packet, context) || spare(&packet, context) {
                    let from = match law.details {
                        Details::Rfc | Details::Linux => self.drop_next,
                        Details::Ns3 => tick,
                    };
                    self.drop_next = self.next(from, law);
                    return Some(packet);
                }
                context.drops.push((packet, DropReason::Early));
                super::work::step();
                let Some(next) = self.take(now, law, pop()) else {
                    self.dropping = false;
                    return None;
                };
                (packet, ok_to_drop) = next;
                if ok_to_drop {
                    self.drop_next = self.next(self.drop_next, law);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let mut next = None;
            if law.mark(&mut packet, context) || spare(&packet, context) {
                next = Some(packet);
            } else {
                context.drops.push((packet, DropReason::Early));
                super::work::step();
                if let Some((packet, _)) = self.take(now, law, pop()) {
                    next = Some(packet);
                }
            }
            self.dropping = true;
            // RFC 8289 5.5: begin near the rate that controlled the queue last time, if that was recently.
            let delta = self.count.saturating_sub(self.last_count);
            if delta > 1 && tick.since(self.drop_next) < law.interval.saturating_mul(16) {
                self.count = delta;
                self.counted();
            } else {
                self.count = 1;
                self.reciprocal_root = u16::MAX;
            }
            self.drop_next = self.next(tick, law);
            self.last_count = self.count;
            return next;
        }
        Some(packet)
    }

    /// RFC 8289 5.4: whether the packet may be dropped.
    fn take(&mut self, now: Instant, law: &Law, popped: Option<(Packet, u64)>) -> Option<(Packet, bool)> {
        let Some((packet, left)) = popped else {
            self.first_above = None;
            // An empty queue is not ok to drop from, so the drop state ends.
            self.dropping = false;
            return None;
        };
        if law.sojourn(now, &packet) < law.target || left <= u64::from(law.max_packet) {
            self.first_above = None;
            return Some((packet, false));
        }
        let tick = law.details.tick(now);
        match self.first_above {
            None => {
                self.first_above = Some(tick.saturating_add(law.interval));
                Some((packet, false))
            }
            Some(at) => Some((packet, law.long_enough(tick, at))),
        }
    }

    /// `dropped` packets were dropped from the queue because there was no room: for Linux they count.
    pub(super) fn overflowed(&mut self, law: &Law, dropped: u32) {
        if law.details == Details::Linux {
            self.count = self.count.wrapping_add(dropped);
        }
    }

    /// One Newton step of 1 / sqrt(count), x (3 - count x^2) / 2, in Linux's fixed point.
    fn counted(&mut self) {
        let x = u64::from(self.reciprocal_root) << 16;
        let square = (x * x) >> 32;
        // May be below zero when `count` grew much at once: Linux wraps there, too.
        let rest = (3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square));
        let root = (rest >> 2).wrapping_mul(x) >> 31;
        self.reciprocal_root = (root >> 16) as u16;
    }

    /// Time of the next drop after `from`.
    fn next(&self, from: Instant, law: &Law) -> Instant {
        let wait = match law.details {
            Details::Rfc => {
                let wait = law.interval.as_nanos() as f64 / libm::sqrt(f64::from(self.count.max(1)));
                Duration::from_nanos(wait as u64)
            }
            Details::Linux | Details::Ns3 => {
                let ticks = ((law.interval.as_nanos() >> TICK_BITS) * u64::from(self.reciprocal_root)) >> 16;
                Duration::from_nanos(ticks << TICK_BITS)
            }
        };
        from.saturating_add(wait)
    }
}

impl Law {
    /// Whether this packet is marked where another one is dropped.
    pub(super) const fn marks(&self, packet: &Packet) -> bool {
        self.ecn && packet.segment.ecn_capable()
    }

    /// Marks the packet if marking is on and it is ECN-capable.
    fn mark(&self, packet: &mut Packet, context: &mut QueueContext<'_>) -> bool {
        let marks = self.marks(packet);
        if marks {
            Law::set_ce(packet, context);
        }
        marks
    }

    fn set_ce(packet: &mut Packet, context: &mut QueueContext<'_>) {
        packet.segment.set_ecn(Ecn::Ce);
        context.report(QueueEventKind::Marked, packet.flow);
    }
}
