use super::{FifoLink, FifoPacket, PacketSize, WaitMeter};
use crate::flow::{FlowId, FlowTable};
use crate::link::{Link, LinkConfig, LinkObserver};
use crate::packet::{BufId, Packet, Segment};
use crate::parameter::{Value, Values};
use crate::queue::{Backlog, DropReason, DropTail, Limit, QueueDiscipline};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};
use alloc::vec::Vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

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

/// What passes, with what the meter of its FIFO link heard of it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Walker(Instant, PacketSize);

impl FifoPacket for Walker {
    fn at(&self) -> Instant {
        self.0
    }
    fn set_at(&mut self, at: Instant) {
        self.0 = at;
    }
    fn size(&self) -> PacketSize {
        self.1
    }
}

#[derive(Default, Debug, PartialEq)]
struct Waits(Vec<(Duration, u32)>);

impl WaitMeter for Waits {
    fn on_wait(&mut self, waited: Duration, waiting: u32) {
        self.0.push((waited, waiting));
    }
}

#[test]
fn packets_of_one_size_go_together() {
    for (rate, gap) in [
        (1_000_000_000, 100),
        (1_000_000_000, 9_000),
        (7_777_777_777, 2_000),
    ] {
        let config = LinkConfig::new(Rate(rate), Duration::ZERO);
        let mut fifo = FifoLink::new(&config, Limit::Packets(20)).expect("a plain link");
        let segment = Segment {
            payload: 1000,
            overhead: 40,
            ..Segment::default()
        };
        let size = PacketSize::of(&segment);
        let at = |number: u64| Instant::from_nanos(gap * (1 + number));
        let mut run: Vec<Walker> = (0..9).map(|number| Walker(at(number), size)).collect();
        assert!(fifo.turn_to(at(0), size));
        assert_eq!(
            fifo.on_run(&mut run, Instant::FAR_FUTURE, &mut Waits::default()),
            9
        );
    }
}

proptest! {
    #[test]
    fn a_run_is_one_packet_after_the_other(seed in any::<u64>(), kind in 0_usize..12, end in 0_u64..2_000_000) {
        let mut rng = Rng::from_seed(seed);
        let rate = [1_000_000_000, 7_777_777_777, 8_000_000_000][kind % 3];
        let limit = [Limit::Bytes(Bytes(4000)), Limit::Packets(3), Limit::Packets(40), Limit::Unlimited][kind / 3];
        let mut config = LinkConfig::new(Rate(rate), Duration::from_nanos(rng.below(3000)));
        config.mtu = 1400;
        let mut single = FifoLink::new(&config, limit).expect("a plain link");
        let mut several = FifoLink::new(&config, limit).expect("a plain link");
        let (mut heard, mut expected) = (Waits::default(), Waits::default());
        let mut now = 0;
        let inside = Instant::from_nanos(if end % 3 == 0 { 1 << 60 } else { end });
        for _ in 0..60 {
            let (pace, mixed) = (rng.below(16_000), rng.below(3) == 0);
            let mut run: Vec<Walker> = (0..1 + rng.below(9)).map(|_| {
                now += rng.below(pace + 1);
                let payload = if mixed { [0, 500, 1000, 1348, 12, 24, 36][rng.below(7) as usize] } else { 1000 };
                let segment = Segment { payload, overhead: 40, ..Segment::default() };
                Walker(Instant::from_nanos(now), PacketSize::of(&segment))
            }).collect();
            let mut rest = &mut run[..];
            while !rest.is_empty() {
                if rng.below(2) == 0 {
                    several.turn_to(rest[0].0, rest[0].1);
                }
                let before = rest.to_vec();
                let done = if rng.below(3) == 0 {
                    several.on_idle_packets(rest, inside)
                } else {
                    several.on_run(rest, inside, &mut heard)
                };
                for (walker, came) in rest[..done].iter().zip(&before) {
                    let schedule = single.on_packet(came.0, came.1).expect("there was room");
                    prop_assert!(schedule.finish < inside);
                    single.count();
                    if schedule.start > came.0 {
                        expected.on_wait(schedule.start.since(came.0), schedule.waiting);
                    }
                    prop_assert_eq!(walker.0, schedule.arrival);
                }
                prop_assert_eq!(&rest[done..], &before[done..]);
                rest = &mut rest[done..];
                let Some((next, left)) = rest.split_first_mut() else { break };
                // Not by a run, by both in the same way.
                let (one, other) = (single.on_packet(next.0, next.1), several.on_packet(next.0, next.1));
                prop_assert_eq!(one, other);
                if one.is_ok() {
                    single.count();
                    several.count();
                }
                rest = left;
            }
        }
        prop_assert_eq!(heard, expected);
        prop_assert_eq!(single.counted(), several.counted());
    }

    #[test]
    fn a_lane_is_a_drop_tail_link(seed in any::<u64>(), bytes in any::<bool>(), delay in 0_u64..3000) {
        let mut rng = Rng::from_seed(seed);
        let limit = if bytes { Limit::Bytes(Bytes(4000)) } else { Limit::Packets(3) };
        // A nanosecond for each bit, or no whole number.
        let rate = [1_000_000_000, 7_777_777_777, 8_000_000_000][seed as usize % 3];
        let mut config = LinkConfig::new(Rate(rate), Duration::from_nanos(delay));
        config.mtu = 1400;
        config.framing = 18;
        let mut values = Values::defaults(DropTail::PARAMETERS);
        values.set("limit", Value::Limit(limit)).expect("a limit");
        let queue = DropTail::new(&values, &config.link_context(1));
        prop_assert_eq!(queue.limit(), limit);
        prop_assert_eq!(queue.backlog(), Backlog::default());
        let mut link = Link::new(queue, &config, 1, "test");
        let mut fifo = FifoLink::new(&config, limit).expect("a plain link");
        let (mut expected, mut log) = (Log::default(), Log::default());
        let flows = FlowTable::new();
        let mut now = 0;
        let mut busy = Duration::ZERO;
        for number in 0..300 {
            if rng.below(3) > 0 {
                now += rng.below(3000);
            }
            let at = Instant::from_nanos(now);
            let payload = [0, 1000, 60 + rng.below(1350) as u32][rng.below(3) as usize];
            let segment = Segment { payload, overhead: 40, ..Segment::default() };
            let mut packet = Packet { enqueued_at: Instant::ZERO, flow: FlowId(number), buf: BufId::NONE, segment };
            while let Some(due) = link.poll_timeout() && due <= at {
                while let Some(packet) = link.poll_delivery(due, &flows, &mut expected) {
                    expected.deliveries.push((due, packet.flow.0));
                }
            }
            link.on_packet(at, packet, &flows, &mut expected);
            packet.enqueued_at = at;
            match fifo.on_packet(at, PacketSize::of(&packet.segment)) {
                Err(refusal) => {
                    log.backlogs.push(refusal.waiting);
                    log.drops.push((number, refusal.reason));
                }
                Ok(schedule) => {
                    log.backlogs.push(schedule.waiting);
                    busy += schedule.finish.since(schedule.start);
                    fifo.count();
                    log.waits.push((schedule.start, schedule.start.since(packet.enqueued_at)));
                    log.deliveries.push((schedule.arrival, number));
                }
            }
        }
        while let Some(due) = link.poll_timeout() {
            while let Some(packet) = link.poll_delivery(due, &flows, &mut expected) {
                expected.deliveries.push((due, packet.flow.0));
            }
        }
        prop_assert_eq!(log, expected);
        link.on_timeout(Instant::FAR_FUTURE, &flows, &mut ());
        let (counted, statistics) = (fifo.counted(), link.statistics());
        prop_assert_eq!(
            (counted.packets, counted.data_packets, counted.bytes, counted.busy),
            (statistics.packets, statistics.data_packets, statistics.bytes, busy)
        );
    }
}
