//! RED: drops arriving packets with a probability that grows with the average queue.
//!
//! The average follows the queue slowly and decays while the link is idle. Below the lower threshold nothing is dropped;
//! between the thresholds the probability grows linearly, spread out by the number of packets since the last drop; above
//! the upper threshold it grows to 1 at twice the threshold (gentle), or is 1.
//!
//! **Source.** Floyd and Jacobson, "Random early detection gateways", IEEE/ACM ToN 1993, figure 2; gentle: Floyd, note of
//! 2000; automatic thresholds and weight: ns-2.35's rules. Marking: RFC 3168 section 7; `hard_drop = false`: Linux's `sch_red.c`, which above the
//! upper threshold marks what is ECN-capable unless it has `harddrop`.
//!
//! **Deviations.** Byte mode is ns-2's: the average counts bytes, drops are spread out over bytes, and what was spread out grows
//! with the size of the packet over the mean size. The paper scales p_b first and spreads it out over packets; among packets
//! of 1500 and 19500 bytes that drops the large ones not 13 but some 200 times as often (measured with TCP), because
//! 1 / (1 - count * p_b) is large for them alone. Drops are spread out as in the paper; ns-2 by default also keeps them apart (`wait_`). While an idle queue is being refilled the average takes the idle time
//! in mean-size packets at the link's rate; ns-2 in packets of 100 B. The queue counts what waits, without the packet being
//! sent, as in ns-2. The idle time begins when the last packet leaves the queue, as in the
//! paper, which is one transmission before the device of ns-2 or Linux finds it empty. As there, an arrival that is dropped ends it and
//! begins the next; by the letter of the paper the next arrival would count the time before once more. The slow adaptation of `max_probability` (Adaptive RED, 2001) is not there.

use super::LinkContext;
use super::fifo::Fifo;
use super::{Backlog, DropPoint, DropReason, Limit, QueueContext, QueueDiscipline, QueueEventKind};
use crate::packet::{Ecn, Packet};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::rng::{Probability, Rng};
use crate::time::Instant;
use crate::units::{Bytes, Rate};

/// A RED queue.
#[derive(Clone, Debug)]
pub struct Red {
    limit: Limit,
    law: EarlyDrop,
    ecn: bool,
    hard_drop: bool,
    packets: Fifo,
}

/// RED's average and its decision, apart from the queue they are about.
#[derive(Clone, Debug)]
pub(super) struct EarlyDrop {
    /// Thresholds in packets, or in bytes in byte mode.
    min_threshold: f64,
    max_threshold: f64,
    max_probability: f64,
    weight: f64,
    gentle: bool,
    byte_mode: bool,
    mean_packet: f64,
    /// Packets of mean size per second.
    packets_per_second: f64,
    rng: Rng,
    /// avg of the paper, in the unit of the thresholds.
    average: f64,
    /// count of the paper: packets since the last drop while the average is above the lower threshold, else -1. In byte
    /// mode packets of mean size.
    since_drop: f64,
    /// q_time of the paper: since when the queue is empty, or when a packet came and was dropped if that is later.
    empty_since: Option<Instant>,
}

/// What [`EarlyDrop`] is made from; `None` is the automatic value of `Red::PARAMETERS`.
pub(super) struct EarlyDropConfig {
    pub(super) min_threshold: Option<f64>,
    pub(super) max_threshold: Option<f64>,
    pub(super) max_probability: f64,
    pub(super) weight: Option<f64>,
    pub(super) gentle: bool,
    pub(super) byte_mode: bool,
    pub(super) mean_packet: f64,
}

impl Red {
    /// `limit`, thresholds, `max_probability`, `weight`, `gentle`, `byte_mode`, `mean_packet`, `ecn`,
    /// `hard_drop`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(1000),
            "What may wait, not counting the packet being sent (as drop-tail)"),
        parameter!("min_threshold": Number(0.0, 1e9) = auto,
            "Average queue in packets of mean size below which nothing is dropped; by default 5, or 2.5 ms of queue if that is more (ns-2)"),
        parameter!("max_threshold": Number(0.0, 1e9) = auto,
            "Average queue in packets of mean size at which `max_probability` is reached; by default 3 times `min_threshold` (ns-2)"),
        parameter!("max_probability": Number(0.0, 1.0) = 0.1,
            "Drop probability at `max_threshold` (ns-2: 0.1; the paper: 0.02)"),
        parameter!("weight": Number(0.0, 1.0) = auto,
            "Weight of a new sample in the average; by default 1 - exp(-1 / (packets of mean size in ten RTTs)), where the RTT is three times the link's delay and a packet's time, but at least 100 ms (ns-2; the paper: 0.002)"),
        parameter!("gentle": Flag = true,
            "Raise the probability to 1 at twice `max_threshold` instead of at once (ns-2: on)"),
        parameter!("byte_mode": Flag = false,
            "Average bytes, and drop large packets more often (ns-2: on; RFC 7141 advises against it)"),
        parameter!("mean_packet": Bytes(Bytes(1), Bytes(1_000_000)) = Bytes(1000),
            "Mean size of packets, for idle times and byte mode (ns-2's data packets: 1000 B)"),
        parameter!("ecn": Flag = false,
            "Mark ECN-capable packets instead of dropping them, up to `max_threshold` (RFC 3168 7; ns-2: off)"),
        parameter!("hard_drop": Flag = true,
            "With `ecn`, drop from `max_threshold` on instead of marking (RFC 3168 7; Linux only with `harddrop`)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> Red {
        let config = EarlyDropConfig {
            min_threshold: values.number("min_threshold"),
            max_threshold: values.number("max_threshold"),
            max_probability: values.number("max_probability").unwrap_or(0.1),
            weight: values.number("weight"),
            gentle: values.flag("gentle"),
            byte_mode: values.flag("byte_mode"),
            mean_packet: values
                .bytes("mean_packet")
                .map_or(1000.0, |bytes| bytes.0 as f64)
                .max(1.0),
        };
        Red {
            limit: values.limit("limit"),
            law: EarlyDrop::new(&config, link),
            ecn: values.flag("ecn"),
            hard_drop: values.flag("hard_drop"),
            packets: Fifo::new(),
        }
    }

    /// The lower threshold by default, in packets of `mean_packet` bytes: half of ns-2's target queue of 5 ms, at least 5 packets.
    pub fn automatic_threshold(rate: Rate, mean_packet: f64) -> f64 {
        let packets_per_second = rate.bps() as f64 / (8.0 * mean_packet);
        (0.005 * packets_per_second / 2.0).max(5.0)
    }

    /// The average as it was after the last arrival: packets, or bytes in byte mode.
    pub fn average(&self) -> f64 {
        self.law.average
    }
}

impl EarlyDrop {
    pub(super) fn new(config: &EarlyDropConfig, link: &LinkContext) -> EarlyDrop {
        let packets_per_second = link.rate.bps() as f64 / (8.0 * config.mean_packet);
        let min = config
            .min_threshold
            .unwrap_or_else(|| Red::automatic_threshold(link.rate, config.mean_packet));
        let max = config.max_threshold.unwrap_or(3.0 * min).max(min);
        let unit = if config.byte_mode { config.mean_packet } else { 1.0 };
        EarlyDrop {
            min_threshold: min * unit,
            max_threshold: max * unit,
            max_probability: config.max_probability,
            weight: config
                .weight
                .unwrap_or_else(|| automatic_weight(link.delay.as_secs_f64(), packets_per_second)),
            gentle: config.gentle,
            byte_mode: config.byte_mode,
            mean_packet: config.mean_packet,
            packets_per_second,
            rng: Rng::for_element(link.seed, "queue", "red"),
            average: 0.0,
            since_drop: -1.0,
            empty_since: Some(Instant::ZERO),
        }
    }

    /// Figure 2 of the paper, first part: the average on an arrival that finds `queue`, in the unit of the thresholds.
    pub(super) fn estimate(&mut self, now: Instant, queue: f64) {
        if let Some(since) = self.empty_since {
            if self.average > 0.0 {
                let packets = now.since(since).as_secs_f64() * self.packets_per_second;
                self.average *= libm::pow(1.0 - self.weight, packets);
            }
            // This time is counted, whatever becomes of the packet.
            self.empty_since = Some(now.max(since));
            return;
        }
        self.average += self.weight * (queue - self.average);
    }

    /// Whether the average is at the upper threshold or above it.
    pub(super) fn is_above(&self) -> bool {
        self.average >= self.max_threshold
    }

    /// A packet was queued.
    pub(super) fn filled(&mut self) {
        self.empty_since = None;
    }

    /// The last packet has left.
    pub(super) fn emptied(&mut self, now: Instant) {
        self.empty_since = Some(now);
    }

    /// Probability p_b of dropping, before it is spread out; `None` below the lower threshold.
    fn base_probability(&self) -> Option<f64> {
        let (min, max, top) = (self.min_threshold, self.max_threshold, self.max_probability);
        if self.average < min {
            None
        } else if self.average < max {
            Some(top * (self.average - min) / (max - min))
        } else if self.gentle && self.average < 2.0 * max {
            Some(top + (1.0 - top) * (self.average - max) / max)
        } else {
            Some(1.0)
        }
    }

    /// Figure 2 of the paper, second part: whether the arriving packet is to be marked or dropped.
    pub(super) fn decide(&mut self, len: u32) -> bool {
        let Some(base) = self.base_probability() else {
            self.since_drop = -1.0;
            return false;
        };
        let size = if self.byte_mode {
            f64::from(len) / self.mean_packet
        } else {
            1.0
        };
        self.since_drop = if self.since_drop < 0.0 {
            0.0
        } else {
            self.since_drop + size
        };
        let mut p = base;
        if p < 1.0 {
            let spread = 1.0 - self.since_drop * p;
            p = if spread > p { p / spread * size } else { 1.0 };
        }
        let chosen = p >= 1.0 || self.rng.chance(Probability::from_f64(p));
        if chosen {
            self.since_drop = 0.0;
        }
        chosen
    }
}

/// The weight that ns-2.35 takes with its default `q_weight_` = -1, of a link with this delay in seconds.
fn automatic_weight(delay_s: f64, packets_per_second: f64) -> f64 {
    let packets_per_second = packets_per_second.max(1e-9);
    let rtt = (3.0 * (delay_s + 1.0 / packets_per_second)).max(0.1);
    -libm::expm1(-1.0 / (10.0 * rtt * packets_per_second))
}

impl QueueDiscipline for Red {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, mut packet: Packet, context: &mut QueueContext<'_>) {
        let len = packet.segment.len();
        super::work::step();
        let queue = if self.law.byte_mode {
            self.packets.bytes() as f64
        } else {
            self.packets.len() as f64
        };
        self.law.estimate(now, queue);
        let mut marked = false;
        if self.law.decide(len) {
            // RFC 3168 7: above the upper threshold packets are dropped, not marked.
            let hard = self.hard_drop && self.law.is_above();
            if !self.ecn || !packet.segment.ecn_capable() || hard {
                context.drops.push((packet, DropReason::Early));
                return;
            }
            packet.segment.set_ecn(Ecn::Ce);
            marked = true;
        }
        if !self.limit.admits(self.backlog(), len) {
            context.drops.push((packet, DropReason::Full));
            return;
        }
        if marked {
            context.report(QueueEventKind::Marked, packet.flow);
        }
        self.law.filled();
        self.packets.push(packet, ());
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, _context: &mut QueueContext<'_>) -> Option<Packet> {
        let (packet, ()) = self.packets.pop()?;
        if self.packets.is_empty() {
            self.law.emptied(now);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{FlowId, FlowTable};
    use crate::packet::{BufId, Segment};
    use crate::parameter::Value;
    use crate::time::Duration;
    use crate::units::Rate;

    #[test]
    fn idle_time_is_counted_once_while_arrivals_are_dropped() {
        // 10 Mbit/s and packets of 1000 B: one in 0.8 ms.
        let link = LinkContext {
            mtu: 1500,
            rate: Rate(10_000_000),
            framing: 0,
            delay: Duration::ZERO,
            seed: 1,
        };
        let mut values = Values::defaults(Red::PARAMETERS);
        for (name, value) in [("min_threshold", 5.0), ("max_threshold", 15.0), ("weight", 0.002)] {
            values.set(name, Value::Number(value)).expect("a number");
        }
        values.set("gentle", Value::Flag(false)).expect("a flag");
        let mut red = Red::new(&values, &link);
        red.law.average = 20.0;
        red.law.emptied(Instant::ZERO);
        // Two arrivals after ten idle packet times each: 20 * 0.998^10, then 20 * 0.998^20, above 15 both.
        for (at_ms, average) in [(8, 19.603_581), (16, 19.215_019)] {
            let packet = Packet {
                enqueued_at: Instant::ZERO,
                flow: FlowId(0),
                buf: BufId::NONE,
                segment: Segment {
                    payload: 960,
                    overhead: 40,
                    ..Segment::default()
                },
            };
            let mut drops = alloc::vec::Vec::new();
            let mut context = QueueContext {
                flows: &FlowTable::new(),
                ingress: 0,
                drops: &mut drops,
                events: &mut alloc::vec::Vec::new(),
            };
            red.enqueue(Instant::from_millis(at_ms), packet, &mut context);
            assert_eq!(drops.len(), 1);
            assert!((red.average() - average).abs() < 1e-6, "{}", red.average());
        }
    }
}
