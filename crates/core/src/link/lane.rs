//! A link whose future is known on arrival: drop-tail, one constant rate, nothing that damages packets.
//!
//! FIFO order and admission on arrival settle when a packet departs and when it is delivered at the moment it is admitted,
//! so no packet is stored here: what waits is a ring of departure times and lengths. A driver that feeds a lane in order
//! of time may do so ahead of its own clock. Everything is as [`Link`](super::Link) with a drop-tail queue does it, which a
//! test compares packet by packet.

use super::serialiser::Constant;
use super::{LinkConfig, LinkRate};
use crate::queue::{DropReason, Limit};
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;

/// A drop-tail link at a constant rate.
#[derive(Debug)]
pub struct Lane {
    /// When the last admitted packet will have been sent.
    free_at: Instant,
    serialiser: Constant,
    delay: Duration,
    mtu: u32,
    /// Packets that may wait.
    most_packets: u32,
    /// Bytes that may wait.
    most_bytes: u64,
    /// Bytes in `waiting`.
    bytes: u64,
    /// When each waiting packet begins to be sent, and its length.
    waiting: VecDeque<(Instant, u32)>,
}

/// What becomes of a packet that a lane admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// It leaves the queue and begins to be serialised.
    pub start: Instant,
    /// Its last bit leaves.
    pub finish: Instant,
    /// It reaches the far end.
    pub arrival: Instant,
}

impl Lane {
    /// The lane that is the same as a link of this configuration with a drop-tail queue; `None` if the link is damaged in
    /// any way or its rate varies.
    pub fn new(config: &LinkConfig, limit: Limit) -> Option<Lane> {
        let constant = matches!(config.rate, LinkRate::Constant(_));
        let (most_packets, most_bytes) = match limit {
            Limit::Packets(packets) => (packets, u64::MAX),
            Limit::Bytes(bytes) => (u32::MAX, bytes.get()),
            Limit::Unlimited => (u32::MAX, u64::MAX),
        };
        (constant && config.impairments.is_none()).then(|| Lane {
            free_at: Instant::ZERO,
            serialiser: Constant::new(&config.rate, config.framing, config.processing),
            delay: config.delay,
            mtu: config.mtu,
            most_packets,
            most_bytes,
            bytes: 0,
            waiting: VecDeque::new(),
        })
    }

    /// Propagation delay: no packet takes less time.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// A packet of `len` bytes at layer 3 arrives at the sending end, not earlier than the one before: how many wait in
    /// front of it, and what becomes of it.
    #[inline(always)]
    pub fn on_packet(&mut self, now: Instant, len: u32) -> (u32, Result<Passage, DropReason>) {
        let start = self.free_at.max(now);
        if self.free_at <= now {
            if self.free_at < now {
                self.serialiser.idle();
            }
            if !self.waiting.is_empty() {
                self.waiting.clear();
                self.bytes = 0;
            }
        } else {
            self.let_go(now);
        }
        let waiting = self.waiting.len() as u32;
        // Subtraction: a sum could overflow, what waits never exceeds the limit.
        if len > self.mtu || waiting >= self.most_packets || u64::from(len) > self.most_bytes - self.bytes {
            self.free_at = start;
            let too_big = len > self.mtu;
            let reason = if too_big {
                DropReason::TooBig
            } else {
                DropReason::Full
            };
            return (waiting, Err(reason));
        }
        let finish = self.serialiser.send(start, len);
        self.free_at = finish;
        if start > now {
            self.waiting.push_back((start, len));
            self.bytes += u64::from(len);
        }
        let passage = Passage {
            start,
            finish,
            arrival: finish.saturating_add(self.delay),
        };
        (waiting, Ok(passage))
    }

    /// Forgets what has begun to be sent.
    #[inline(always)]
    fn let_go(&mut self, now: Instant) {
        while let Some(&(start, len)) = self.waiting.front()
            && start <= now
        {
            self.waiting.pop_front();
            self.bytes -= u64::from(len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Link, LinkConfig, LinkObserver};
    use super::Lane;
    use crate::flow::{FlowId, FlowTable};
    use crate::packet::{BufId, Packet, Segment};
    use crate::parameter::{Value, Values};
    use crate::queue::{Backlog, DropReason, DropTail, Limit, QueueDiscipline};
    use crate::rng::Rng;
    use crate::time::{Duration, Instant};
    use crate::units::{Bytes, Rate};
    use alloc::vec::Vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[derive(Default, Debug, PartialEq)]
    struct Log {
        backlogs: Vec<u32>,
        waits: Vec<(Instant, Duration)>,
        drops: Vec<(u32, DropReason)>,
        deliveries: Vec<(Instant, u32)>,
    }

    impl LinkObserver for Log {
        fn on_arrival(&mut self, _now: Instant, _packet: &Packet, waiting: Backlog) {
            self.backlogs.push(waiting.packets);
        }
        fn on_departure(&mut self, now: Instant, _packet: &Packet, waited: Duration) {
            self.waits.push((now, waited));
        }
        fn on_drop(&mut self, _now: Instant, packet: &Packet, reason: DropReason) {
            self.drops.push((packet.flow.0, reason));
        }
    }

    proptest! {
        #[test]
        fn a_lane_is_a_drop_tail_link(seed in any::<u64>(), bytes in any::<bool>(), delay in 0_u64..3000) {
            let mut rng = Rng::from_seed(seed);
            let limit = if bytes { Limit::Bytes(Bytes(4000)) } else { Limit::Packets(3) };
            let mut config = LinkConfig::new(Rate(7_777_777_777), Duration::from_nanos(delay));
            config.mtu = 1400;
            config.framing = 18;
            let mut values = Values::defaults(DropTail::PARAMETERS);
            values.set("limit", Value::Limit(limit)).expect("a limit");
            let queue = DropTail::new(&values, &config.surroundings(1));
            prop_assert_eq!(queue.limit(), limit);
            prop_assert_eq!(queue.backlog(), Backlog::default());
            let mut link = Link::new(queue, &config, 1, "test");
            let mut lane = Lane::new(&config, limit).expect("a plain link");
            let (mut expected, mut log) = (Log::default(), Log::default());
            let flows = FlowTable::new();
            let mut now = 0;
            for number in 0..300 {
                if rng.below(3) > 0 {
                    now += rng.below(3000);
                }
                let at = Instant::from_nanos(now);
                let segment = Segment { payload: 60 + rng.below(1350) as u32, overhead: 40, ..Segment::default() };
                let mut packet = Packet { enqueued_at: Instant::ZERO, flow: FlowId(number), buf: BufId::NONE, segment };
                while let Some(due) = link.poll_timeout() && due <= at {
                    while let Some(packet) = link.poll_delivery(due, &flows, &mut expected) {
                        expected.deliveries.push((due, packet.flow.0));
                    }
                }
                link.on_packet(at, packet, &flows, &mut expected);
                packet.enqueued_at = at;
                let (waiting, fate) = lane.on_packet(at, packet.segment.len());
                log.backlogs.push(waiting);
                match fate {
                    Err(reason) => log.drops.push((number, reason)),
                    Ok(passage) => {
                        log.waits.push((passage.start, passage.start.since(packet.enqueued_at)));
                        log.deliveries.push((passage.arrival, number));
                    }
                }
            }
            while let Some(due) = link.poll_timeout() {
                while let Some(packet) = link.poll_delivery(due, &flows, &mut expected) {
                    expected.deliveries.push((due, packet.flow.0));
                }
            }
            prop_assert_eq!(log, expected);
        }
    }
}
