//! Frames collected by destination: hand traces, drop-tail where nothing is held, and a naive second transcription compared call by
//! call.

use super::*;
use crate::time::Duration;

fn jumbo(limit: Limit, size: u64, hold_us: u64) -> Jumbo {
    let hold = Value::Duration(Duration::from_micros(hold_us));
    let mut values = Values::defaults(Jumbo::PARAMETERS);
    values.set("limit", Value::Limit(limit)).expect("a limit");
    values.set("size", Value::Bytes(Bytes(size))).expect("an amount");
    values.set("hold", hold).expect("a time");
    Jumbo::new(&values, &LINK)
}

/// Flow `i` goes to host 100 + `i` modulo 3.
fn to_three_hosts() -> FlowTable {
    let mut table = FlowTable::new();
    for i in 0..12 {
        table.push(FlowKey {
            source: HostId(i),
            destination: HostId(100 + i % 3),
            source_port: i as u16,
            destination_port: 80,
            protocol: 6,
        });
    }
    table
}

fn bench(limit: Limit, size: u64, hold_us: u64) -> Bench<Jumbo> {
    Bench::new(jumbo(limit, size, hold_us), to_three_hosts(), limit)
}

fn dropped(bench: &mut Bench<Jumbo>) -> Vec<u32> {
    let log = core::mem::take(&mut bench.log);
    log.into_iter().filter_map(|(number, _, _)| number).collect()
}

#[test]
fn packets_to_one_host_leave_in_a_row_and_the_first_waits_for_the_hold() {
    let mut bench = bench(Limit::Unlimited, 3000, 1000);
    // Flows 0 and 3 go to one host, flow 1 to another.
    for (number, flow) in [0, 1, 3].into_iter().enumerate() {
        bench.enqueue(
            Instant::from_micros(number as u64),
            packet(flow, number as u32, 1500, 0),
        );
    }
    let now = Instant::from_micros(2);
    assert_eq!(bench.queue.ready_at(), Some(Instant::ZERO), "a frame is full");
    let mut next = |now: Instant| bench.dequeue(now).map(|packet| packet.segment.seq.0);
    assert_eq!((next(now), next(now)), (Some(0), Some(2)));
    // The other frame has one packet, which came after a microsecond.
    let until = Instant::from_micros(1001);
    assert_eq!(bench.queue.ready_at(), Some(until));
    assert_eq!(bench.dequeue(until).map(|packet| packet.segment.seq.0), Some(1));
    assert_eq!(bench.queue.ready_at(), None);
}

#[test]
fn every_closed_frame_is_counted_once() {
    let mut queue = jumbo(Limit::Unlimited, 4500, 1000);
    let table = to_three_hosts();
    let (mut drops, mut events) = (Vec::new(), Vec::new());
    let mut context = QueueContext {
        flows: &table,
        ingress: 0,
        drops: &mut drops,
        events: &mut events,
    };
    // Seven packets to one host: two full frames and one of a packet, which the hold closes.
    for number in 0..7 {
        queue.enqueue(Instant::ZERO, packet(0, number, 1500, 0), &mut context);
    }
    let frames = |context: &QueueContext<'_>| {
        let assembled = |event: &&QueueEvent| event.kind == QueueEventKind::Assembled;
        context.events.iter().filter(assembled).count()
    };
    assert_eq!(frames(&context), 2);
    queue.enqueue(Instant::from_millis(1), packet(1, 7, 1500, 0), &mut context);
    assert_eq!(frames(&context), 3);
}

#[test]
fn a_frame_that_finds_no_room_is_lost_whole() {
    let mut bench = bench(Limit::Packets(3), 4500, 1000);
    for (number, flow) in [0, 0, 1].into_iter().enumerate() {
        bench.enqueue(Instant::ZERO, packet(flow, number as u32, 1500, 0));
    }
    bench.enqueue(Instant::ZERO, packet(1, 3, 1500, 0));
    assert_eq!(dropped(&mut bench), [2, 3]);
    // Its third packet would have closed it; it is lost, too, although there is room now.
    bench.enqueue(Instant::ZERO, packet(1, 4, 1500, 0));
    assert_eq!(dropped(&mut bench), [4]);
    bench.enqueue(Instant::ZERO, packet(1, 5, 1500, 0));
    assert_eq!(dropped(&mut bench), []);
    assert_eq!(bench.queue.backlog().packets, 3);
}

#[test]
fn what_is_lost_of_a_frame_ends_with_its_hold() {
    let mut bench = bench(Limit::Packets(1), 19_500, 1000);
    for number in 0..2 {
        bench.enqueue(Instant::ZERO, packet(0, number, 1500, 0));
    }
    assert_eq!(dropped(&mut bench), [0, 1]);
    bench.enqueue(Instant::from_micros(999), packet(0, 2, 1500, 0));
    assert_eq!(dropped(&mut bench), [2]);
    bench.enqueue(Instant::from_micros(1000), packet(0, 3, 1500, 0));
    assert_eq!(dropped(&mut bench), []);
}

/// A frame of the naive model.
struct Frame {
    host: u32,
    until: Instant,
    bytes: u64,
    packets: Vec<u32>,
    lost: bool,
}

/// All frames that are collected, the oldest first, and what leaves next.
#[derive(Default)]
struct Model {
    frames: Vec<Frame>,
    out: VecDeque<u32>,
}

impl Model {
    fn close(&mut self, place: usize) {
        let frame = self.frames.remove(place);
        self.out.extend(frame.packets);
    }

    fn expire(&mut self, now: Instant) {
        while let Some(place) = self.frames.iter().position(|frame| frame.until <= now) {
            self.close(place);
        }
    }

    fn enqueue(
        &mut self,
        now: Instant,
        parameters: (usize, u64, Duration),
        host: u32,
        number: u32,
        len: u64,
    ) -> Vec<u32> {
        let (limit, size, hold) = parameters;
        self.expire(now);
        let place = self.frames.iter().position(|frame| frame.host == host);
        if let Some(place) = place.filter(|&place| self.frames[place].bytes + len > size) {
            self.close(place);
        }
        let waiting = self.out.len() + self.frames.iter().map(|frame| frame.packets.len()).sum::<usize>();
        let place = self
            .frames
            .iter()
            .position(|frame| frame.host == host)
            .unwrap_or_else(|| {
                let until = now + hold;
                self.frames.push(Frame {
                    host,
                    until,
                    bytes: 0,
                    packets: Vec::new(),
                    lost: false,
                });
                self.frames.len() - 1
            });
        let frame = &mut self.frames[place];
        frame.bytes += len;
        frame.packets.push(number);
        frame.lost |= waiting >= limit;
        let dropped = if frame.lost {
            core::mem::take(&mut frame.packets)
        } else {
            Vec::new()
        };
        if frame.bytes >= size {
            self.close(place);
        }
        dropped
    }

    fn ready_at(&self) -> Option<Instant> {
        let held = self.frames.iter().find(|frame| !frame.lost);
        let held = held.map(|frame| frame.until);
        if self.out.is_empty() {
            held
        } else {
            Some(Instant::ZERO)
        }
    }

    fn dequeue(&mut self, now: Instant) -> Option<u32> {
        self.expire(now);
        if self.out.is_empty()
            && let Some(place) = self.frames.iter().position(|frame| !frame.lost)
        {
            self.close(place);
        }
        self.out.pop_front()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn frames_agree_with_a_naive_model(
        limit in 1_usize..40,
        size in 1_u64..12_000,
        hold_us in 0_u64..2000,
        calls in prop::collection::vec((0_u64..300, prop::option::weighted(0.6, (0_u32..12, 40_u32..1501))), 200..1500),
    ) {
        let parameters = (limit, size, Duration::from_micros(hold_us));
        let mut bench = bench(Limit::Packets(limit as u32), size, hold_us);
        let mut model = Model::default();
        let mut now = Instant::ZERO;
        for (number, (step, call)) in calls.into_iter().enumerate() {
            now += Duration::from_micros(step);
            match call {
                Some((flow, len)) => {
                    bench.enqueue(now, packet(flow, number as u32, len, 0));
                    let expected = model.enqueue(now, parameters, flow % 3, number as u32, u64::from(len));
                    prop_assert_eq!(dropped(&mut bench), expected);
                }
                None => {
                    let out = bench.dequeue(now).map(|packet| packet.segment.seq.0);
                    prop_assert_eq!(out, model.dequeue(now));
                    bench.log.clear();
                }
            }
            prop_assert_eq!(bench.queue.ready_at(), model.ready_at());
        }
    }

    #[test]
    fn without_hold_it_is_drop_tail(
        limit in limit(),
        operations in prop::collection::vec(operation(), 200..2000),
    ) {
        let held = AnyQueue::Jumbo(jumbo(limit, 19_500, 0));
        prop_assert_eq!(play_on(held, limit, &operations), play("drop-tail", limit, false, &operations));
    }
}
