//! A link whose future is known on arrival: drop-tail, one constant rate, nothing that damages packets.
//!
//! FIFO order and admission on arrival settle when a packet departs and when it is delivered at the moment it is admitted,
//! so no packet is stored here: what waits is a ring of departure times and lengths. A driver that feeds a lane in order
//! of time may do so ahead of its own clock. Everything is as [`Link`](super::Link) with a drop-tail queue does it, which a
//! test compares packet by packet.

use super::serialiser::Serialiser;
use super::{LinkConfig, LinkRate};
use crate::packet::Packet;
use crate::queue::{Backlog, DropReason, Limit};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::collections::VecDeque;

/// A drop-tail link at a constant rate.
#[derive(Debug)]
pub struct Lane {
    /// When the last admitted packet will have been sent.
    free_at: Instant,
    serialiser: Serialiser,
    delay: Duration,
    limit: Limit,
    mtu: u32,
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
        (constant && config.impairments.is_none()).then(|| Lane {
            free_at: Instant::ZERO,
            serialiser: Serialiser::new(&config.rate, config.framing, config.processing),
            delay: config.delay,
            limit,
            mtu: config.mtu,
            bytes: 0,
            waiting: VecDeque::new(),
        })
    }

    /// Propagation delay: no packet takes less time.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// A packet arrives at the sending end, not earlier than the one before. Sets its `enqueued_at`; says what waits in
    /// front of it and what becomes of it.
    #[inline]
    pub fn on_packet(&mut self, now: Instant, packet: &mut Packet) -> (Backlog, Result<Passage, DropReason>) {
        packet.enqueued_at = now;
        let len = packet.segment.len();
        if self.free_at <= now {
            if self.free_at < now {
                self.serialiser.idle();
                self.free_at = now;
            }
            if !self.waiting.is_empty() {
                self.waiting.clear();
                self.bytes = 0;
            }
        } else {
            while let Some(&(start, len)) = self.waiting.front()
                && start <= now
            {
                self.waiting.pop_front();
                self.bytes -= u64::from(len);
            }
        }
        let backlog = Backlog {
            packets: self.waiting.len() as u32,
            bytes: Bytes(self.bytes),
        };
        if len > self.mtu {
            return (backlog, Err(DropReason::TooBig));
        }
        if !self.limit.admits(backlog, len) {
            return (backlog, Err(DropReason::Full));
        }
        let start = self.free_at;
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
        (backlog, Ok(passage))
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
        backlogs: Vec<Backlog>,
        waits: Vec<(Instant, Duration)>,
        drops: Vec<(u32, DropReason)>,
        deliveries: Vec<(Instant, u32)>,
    }

    impl LinkObserver for Log {
        fn on_arrival(&mut self, _now: Instant, _packet: &Packet, waiting: Backlog) {
            self.backlogs.push(waiting);
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
                let (backlog, fate) = lane.on_packet(at, &mut packet);
                log.backlogs.push(backlog);
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
