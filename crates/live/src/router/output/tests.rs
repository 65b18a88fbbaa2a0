//! Order, loss and memory of an output, with every registered queue.

use super::{MOST_BYTES, MOST_FRAMES, Output, most_frames};
use crate::frames::{Frames, HEADER, read};
use crate::packet_socket::{Refusal, Sent};
use crate::ring::Format;
use crate::router::{InterfaceConfig, Queue};
use fleetfoot_core::packet::{Ecn, Flags, Packet, Segment};
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::plugin::Plugins;
use fleetfoot_core::queue::{AnyQueue, DropReason, Limit, QueueEventKind};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::superpacket::{Layout, Mark, Role};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use fleetfoot_core::wire;
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::recorded::{Arrival, forward};
use fleetfoot_sim::spec::{Impairments, LinkIndex, LinkRate, LinkSpec, NodeId, Spec, World};
use fleetfoot_sim::world::Mode;
use std::net::SocketAddr;

fn queue(name: &str, limit: Option<u32>) -> Queue {
    let entry = AnyQueue::entry_among(&[], name).expect("a registered queue");
    let mut values = Values::defaults(entry.parameters);
    if let Some(limit) = limit {
        values
            .set("limit", Value::Limit(Limit::Packets(limit)))
            .expect("every queue has a limit");
    }
    Queue {
        name: entry.name,
        values,
        plugins: Plugins::NONE,
    }
}

fn output(queue: Queue, rate: Option<Rate>) -> Output {
    framed(queue, rate, 0)
}

/// Before a line that adds so many bytes to each packet.
fn framed(queue: Queue, rate: Option<Rate>, framing: u32) -> Output {
    let config = InterfaceConfig {
        name: String::from("out"),
        rate,
        framing,
        queue,
        ring: Format::Frames,
        device_buffer: 0,
        check_source: false,
    };
    Output::new(&config, 1500, 7).expect("the queue is registered")
}

fn frame(source: &str, segment: &Segment) -> Vec<u8> {
    let source: SocketAddr = source.parse().expect("an address");
    let destination: SocketAddr = if source.is_ipv4() {
        "10.0.2.7:9".parse().expect("an address")
    } else {
        "[fd00:2::7]:9".parse().expect("an address")
    };
    let mut bytes = vec![0; HEADER + 2000];
    bytes[12..HEADER].copy_from_slice(if source.is_ipv4() { &[8, 0] } else { &[0x86, 0xdd] });
    let length = wire::encode(&mut bytes[HEADER..], segment, source, destination, &[]).expect("it fits");
    bytes.truncate(HEADER + length);
    bytes
}

/// A segment that its number can be told from.
fn numbered(number: u32) -> Segment {
    Segment {
        seq: fleetfoot_core::seq::SeqNumber(number),
        payload: 960,
        flags: Flags::ACK.with(Flags::DF),
        ttl: 64,
        ..Segment::default()
    }
}

fn number(frame: &[u8]) -> u32 {
    wire::parse(&frame[HEADER..])
        .expect("a whole packet")
        .segment
        .seq
        .0
}

fn push(output: &mut Output, at: Instant, frame: &[u8]) -> bool {
    output.push(at, 0, frame, None, &read(frame, None), |_, _| {})
}

/// What leaves up to `now`, in order.
fn leaving(output: &mut Output, now: Instant) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    output
        .flush(now, |frames| {
            all.extend(frames.iter().map(|frame| frame.to_vec()));
            Ok(Sent::Taken(frames.len()))
        })
        .expect("nothing fails");
    all
}

#[test]
fn lateness_is_what_is_added_to_the_described_queue_and_rate() {
    // 1000 bytes take a millisecond; the second frame is due a millisecond after the first.
    let mut shaped = output(queue("drop-tail", None), Some(Rate::from_bps(8_000_000)));
    for number in 0..2 {
        assert!(push(
            &mut shaped,
            Instant::from_millis(10),
            &frame("10.0.0.5:80", &numbered(number))
        ));
    }
    assert_eq!(leaving(&mut shaped, Instant::from_micros(11_030)).len(), 1);
    assert_eq!(leaving(&mut shaped, Instant::from_micros(15_000)).len(), 1);
    let late = shaped.counters().lateness;
    assert_eq!(
        (late.n(), late.sum_ns, late.longest_ns, late.late),
        (2, 3_030_000, 3_000_000, 1)
    );
    // Without a rate a frame is due when it came.
    let mut line = output(queue("drop-tail", None), None);
    assert!(push(
        &mut line,
        Instant::from_millis(10),
        &frame("10.0.0.5:80", &numbered(0))
    ));
    assert_eq!(leaving(&mut line, Instant::from_micros(10_007)).len(), 1);
    let late = line.counters().lateness;
    assert_eq!((late.n(), late.sum_ns, late.late), (1, 7_000, 0));
}

/// HULL counts what the line adds. Worked by hand: a packet of 1000 bytes and 80 of framing takes the time of 1080 bytes, in which 95 % of them drain, 1026.
/// So after packet n of a full line its counter is 1080 + 54 n, and above 6000 bytes from packet 92 on; without the framing it would never grow.
#[test]
fn a_queue_knows_what_the_line_adds_to_packets() {
    let (rate, framing) = (Some(Rate::from_bps(10_000_000)), 80);
    let fresh = framed(queue("hull", None), rate, framing);
    let mut replaced = output(queue("drop-tail", None), None);
    replaced
        .replace(&queue("hull", None), rate, framing, 1500, 7)
        .expect("it is registered");
    for mut output in [fresh, replaced] {
        for number in 0..100 {
            let mut segment = numbered(number);
            segment.set_ecn(Ecn::Ect0);
            assert!(push(&mut output, Instant::ZERO, &frame("10.0.0.5:80", &segment)));
        }
        let frames = leaving(&mut output, Instant::from_millis(60_000));
        let marked = |frame: &Vec<u8>| {
            let packet = wire::parse(&frame[HEADER..]).expect("a whole packet");
            packet.segment.ecn() == Ecn::Ce
        };
        assert_eq!(frames.iter().position(marked), Some(92));
    }
}

#[test]
fn every_registered_queue_forwards_at_line_rate_and_shaped_in_order() {
    for entry in AnyQueue::ENTRIES {
        for rate in [None, Some(Rate::from_bps(8_000_000))] {
            let mut output = output(queue(entry.name, None), rate);
            let mut numbers = Vec::new();
            for number in 0..40 {
                let at = Instant::from_millis(u64::from(number));
                assert!(push(&mut output, at, &frame("10.0.0.5:80", &numbered(number))));
                numbers.extend(leaving(&mut output, at).iter().map(|frame| self::number(frame)));
            }
            numbers.extend(
                leaving(&mut output, Instant::from_millis(60_000))
                    .iter()
                    .map(|frame| number(frame)),
            );
            assert_eq!(numbers, (0..40).collect::<Vec<u32>>(), "{} {rate:?}", entry.name);
            let counters = output.counters();
            assert_eq!((counters.queued, counters.sent, counters.dropped()), (40, 40, 0));
            assert_eq!(counters.bytes, 40_000);
            assert_eq!(counters.delay.n(), 40);
            assert_eq!(
                (output.kept(), output.poll_timeout()),
                (0, None),
                "{}",
                entry.name
            );
        }
    }
}

#[test]
fn what_an_interface_does_not_take_waits_in_its_queue_and_nothing_is_lost_or_moved() {
    let mut output = output(queue("drop-tail", Some(100)), None);
    let mut numbers = Vec::new();
    let full = |output: &mut Output, now| {
        output
            .flush(now, |_| Ok(Sent::Refused(Refusal::Full)))
            .expect("nothing fails");
    };
    for number in 0..300 {
        let at = Instant::from_millis(u64::from(number));
        push(&mut output, at, &frame("10.0.0.5:80", &numbered(number)));
        full(&mut output, at);
    }
    let retry = output.poll_timeout().expect("frames wait");
    assert!(retry > Instant::from_millis(299));
    // The interface takes three at a time.
    let mut now = retry;
    while let Some(due) = output.poll_timeout() {
        now = now.max(due);
        output
            .flush(now, |frames| {
                let taken = frames.len().min(3);
                numbers.extend(frames[..taken].iter().map(|frame| number(frame)));
                Ok(Sent::Taken(taken))
            })
            .expect("nothing fails");
    }
    // The first went to the interface and was kept for it; of the others the queue held a hundred.
    let counters = output.counters();
    assert_eq!(counters.dropped() + counters.sent, 300);
    assert_eq!(counters.drops[DropReason::Full as usize], counters.dropped());
    assert_eq!(numbers, (0..counters.sent as u32).collect::<Vec<_>>());
    assert!((101..=164).contains(&counters.sent), "{}", counters.sent);
    assert_eq!(output.kept(), 0);
}

#[test]
fn a_frame_that_an_interface_refuses_is_counted_and_the_next_goes_on() {
    let mut output = output(queue("drop-tail", None), None);
    for number in 0..3 {
        push(
            &mut output,
            Instant::ZERO,
            &frame("10.0.0.5:80", &numbered(number)),
        );
    }
    let mut calls = 0;
    let mut taken = Vec::new();
    output
        .flush(Instant::ZERO, |frames| {
            calls += 1;
            if calls == 1 {
                return Ok(Sent::Refused(Refusal::Down));
            }
            taken.extend(frames.iter().map(|frame| number(frame)));
            Ok(Sent::Taken(frames.len()))
        })
        .expect("nothing fails");
    assert_eq!(taken, [1, 2]);
    assert_eq!(output.counters().refused[Refusal::Down as usize], 1);
    assert_eq!(output.kept(), 0);
}

#[test]
fn another_queue_and_rate_take_over_without_a_loss_and_in_order() {
    let rates = [
        None,
        Some(Rate::from_bps(8_000_000)),
        Some(Rate::from_bps(80_000_000)),
    ];
    for entry in AnyQueue::ENTRIES {
        for before in rates {
            for after in rates {
                let mut output = output(queue(entry.name, None), before);
                // Ten packets of a millisecond each at the lower rate, and a full interface.
                for number in 0..10 {
                    push(
                        &mut output,
                        Instant::ZERO,
                        &frame("10.0.0.5:80", &numbered(number)),
                    );
                    output
                        .flush(Instant::ZERO, |_| Ok(Sent::Refused(Refusal::Full)))
                        .expect("nothing fails");
                }
                let now = Instant::from_millis(1);
                for (round, name) in ["fq-codel", "drop-tail"].into_iter().enumerate() {
                    output
                        .replace(&queue(name, None), after, 0, 1500, 8)
                        .expect("registered");
                    for number in 10 + 10 * round as u32..20 + 10 * round as u32 {
                        push(&mut output, now, &frame("10.0.0.5:80", &numbered(number)));
                    }
                }
                let mut numbers = Vec::new();
                for step in 1..200 {
                    let now = Instant::from_millis(step);
                    let some = leaving(&mut output, now);
                    numbers.extend(some.iter().map(|frame| number(frame)));
                }
                let what = format!("{} {before:?} {after:?}", entry.name);
                assert_eq!(numbers, (0..30).collect::<Vec<u32>>(), "{what}");
                assert_eq!((output.kept(), output.counters().dropped()), (0, 0), "{what}");
                if after == Some(Rate::from_bps(8_000_000)) {
                    assert!(
                        output.counters().delay.sum_ns > 0,
                        "{what}: shaped after the change, too"
                    );
                }
            }
        }
    }
}

/// What waits when another rate is set leaves at that rate from then on, not all at once.
#[test]
fn what_waits_at_a_change_leaves_at_the_new_rate() {
    let mut output = output(queue("drop-tail", None), Some(Rate::from_bps(8_000)));
    let at = |ms: u64| Instant::from_millis(10_000 + ms);
    for number in 0..100 {
        push(&mut output, at(0), &frame("10.0.0.5:80", &numbered(number)));
    }
    let rate = Rate::from_bps(80_000);
    output
        .replace(&queue("drop-tail", None), Some(rate), 0, 1500, 8)
        .expect("registered");
    let mut bytes = 0;
    for ms in 0..200 {
        let left = leaving(&mut output, at(ms));
        bytes += left.iter().map(|frame| frame.len() - HEADER).sum::<usize>() as u64;
        // Beside what the rate carries the packet that was being sent at the change.
        assert!(bytes <= ms * 10 + 1500, "{bytes} in {ms} ms");
    }
    assert!(bytes > 1000, "{bytes}");
}

#[test]
fn super_packets_of_real_frames_are_admitted_as_a_whole() {
    for (layout, source) in [
        (Layout::A, "10.0.0.5:80"),
        (Layout::LOCAL, "10.0.0.5:80"),
        (Layout::C, "[fd00::5]:80"),
    ] {
        let mut queue = queue("superpacket", Some(20));
        queue
            .values
            .set("layout", Value::Choice(layout.name()))
            .expect("a layout");
        queue
            .values
            .set("max_length", Value::Integer(10))
            .expect("in range");
        let mut output = output(queue, Some(Rate::from_bps(8_000)));
        let mut counts = Vec::new();
        for id in 0..6_u16 {
            for place in 0..6_u8 {
                let mut segment = numbered(u32::from(id) * 6 + u32::from(place));
                let role = if place == 0 { Role::First } else { Role::Follower };
                let mark = Mark {
                    role,
                    last: place == 5,
                    length: 6,
                    id,
                };
                layout.mark(&mut segment, mark).expect("it can be marked");
                assert!(push(&mut output, Instant::ZERO, &frame(source, &segment)));
            }
            counts.push(output.counters().dropped());
        }
        // Each is in the queue with all its packets or with none of them.
        let dropped: Vec<u64> = counts
            .iter()
            .scan(0, |before, now| Some(now - std::mem::replace(before, *now)))
            .collect();
        assert!(
            dropped.iter().all(|count| *count == 0 || *count == 6),
            "{layout:?}: {dropped:?}"
        );
        assert!(dropped[0] == 0 && dropped[5] == 6, "{layout:?}: {dropped:?}");
        assert!(output.counters().events[QueueEventKind::Refused as usize] > 0);
    }
}

#[test]
fn a_mark_of_the_queue_is_all_that_changes() {
    let mut marking = queue("codel", None);
    marking.values.set("ecn", Value::Flag(true)).expect("codel can");
    let mut output = output(marking, Some(Rate::from_bps(8_000_000)));
    for number in 0..1000 {
        let mut segment = numbered(number);
        segment.set_ecn(Ecn::Ect0);
        push(&mut output, Instant::ZERO, &frame("10.0.0.5:80", &segment));
    }
    let now = Instant::from_nanos(500_500_000);
    let mut frames = leaving(&mut output, now);
    // Also of the packet that is being sent when another queue takes over.
    output
        .replace(&queue("drop-tail", None), None, 0, 1500, 8)
        .expect("registered");
    frames.extend(leaving(&mut output, now));
    assert_eq!(frames.len() as u64, output.counters().sent);
    assert_eq!(output.kept(), 0);
    let mut marked = 0;
    for bytes in &frames {
        // All checksums are right, and only the ECN field differs from what came.
        let parsed = wire::parse(&bytes[HEADER..]).expect("a right packet");
        let mut segment = numbered(number(bytes));
        segment.set_ecn(parsed.segment.ecn());
        assert_eq!(*bytes, frame("10.0.0.5:80", &segment));
        marked += u64::from(parsed.segment.ecn() == Ecn::Ce);
    }
    assert!(marked > 0);
    assert_eq!(output.counters().events[QueueEventKind::Marked as usize], marked);
}

#[test]
fn a_flood_into_a_queue_without_a_limit_takes_bounded_memory() {
    let mut unlimited = queue("drop-tail", None);
    unlimited
        .values
        .set("limit", Value::Limit(Limit::Unlimited))
        .expect("a limit");
    let mut output = output(unlimited, Some(Rate::from_bps(8_000)));
    let syn = Segment {
        flags: Flags::SYN,
        ttl: 64,
        ..Segment::default()
    };
    let bytes = frame("10.0.0.5:80", &syn);
    let mut refused = 0;
    for _ in 0..2 * MOST_FRAMES {
        refused += usize::from(!push(&mut output, Instant::ZERO, &bytes));
    }
    assert!(output.kept() == MOST_FRAMES && refused == MOST_FRAMES);
    assert!(
        output
            .poll_timeout()
            .is_some_and(|due| due.since(Instant::ZERO) > Duration::ZERO)
    );
}

#[test]
fn long_frames_take_no_more_memory_than_many_of_ordinary_length() {
    assert_eq!(most_frames(1500), MOST_FRAMES);
    let config = InterfaceConfig {
        name: String::from("out"),
        rate: Some(Rate::from_bps(8_000)),
        framing: 0,
        queue: queue("drop-tail", Some(100_000)),
        ring: Format::Frames,
        device_buffer: 0,
        check_source: false,
    };
    let mut output = Output::new(&config, 9000, 7).expect("the queue is registered");
    let bytes = vec![0; HEADER + 9000];
    let kept = (0..20_000)
        .filter(|_| push(&mut output, Instant::ZERO, &bytes))
        .count();
    assert_eq!((kept, output.kept()), (most_frames(9000), most_frames(9000)));
    let capacity = output.frames.capacity();
    assert!(
        capacity <= MOST_BYTES && capacity > MOST_BYTES * 9 / 10,
        "{capacity}"
    );
}

/// Every queue at a rate does what the link of the simulator does with it: the same packets leave in the same order with the same marks,
/// and as many are dropped for each reason.
#[test]
fn a_shaped_output_does_what_the_simulated_link_does() {
    for entry in AnyQueue::ENTRIES {
        let rate = Rate::from_bps(10_000_000);
        let queue = queue(entry.name, Some(30));
        let link = LinkSpec {
            name: String::from("output"),
            forward: true,
            from: NodeId(0),
            to: NodeId(1),
            rate: LinkRate::Constant(rate),
            delay: Duration::ZERO,
            queue: entry.name,
            queue_values: queue.values.clone(),
            impairments: Impairments::default(),
            mtu: 1500,
            framing: 0,
            processing: Duration::ZERO,
            overlap: false,
            host: false,
        };
        let spec = Spec {
            nodes: Vec::new(),
            links: Vec::new(),
            groups: Vec::new(),
            duration: Duration::ZERO,
            warmup: Duration::ZERO,
            drain: Duration::ZERO,
            plugins: Plugins::NONE,
            seed: 5,
            bins: None,
            world: World::Simulator,
        };
        let config = InterfaceConfig {
            name: String::from("out"),
            rate: Some(rate),
            framing: 0,
            queue,
            ring: Format::Frames,
            device_buffer: 0,
            check_source: false,
        };
        let seed = Rng::for_element(spec.seed, "output/forward", "queue").next_u64();
        let mut output = Output::new(&config, 1500, seed).expect("the queue is registered");
        let mut random = Rng::from_seed(9);
        let (mut now, mut left) = (Instant::from_millis(3), Vec::new());
        let (mut promised, mut id, mut source) = (0, 0, String::new());
        let (mut frames, mut arrivals) = (Frames::default(), Vec::new());
        for number in 0..3_000 {
            now += match random.below(8) {
                0 => Duration::from_nanos(random.below(15_000_000)),
                1..4 => Duration::ZERO,
                _ => Duration::from_nanos(random.below(1_000_000)),
            };
            let mut segment = numbered(number);
            segment.payload = [0, 960, 1_400][random.below(3) as usize];
            if random.below(2) == 0 {
                segment.set_ecn(Ecn::Ect0);
            }
            let begins = promised == 0;
            if begins {
                source = format!("10.0.0.{}:{}", random.below(3), 80 + random.below(4));
                (promised, id) = (7 * u32::from(random.below(5) == 0), number as u16 & 0xff);
            }
            let mark = match promised {
                0 => Mark::REGULAR,
                _ if begins => Mark::first(7, id),
                _ => Mark::follower(7, id),
            };
            promised = promised.saturating_sub(1);
            Layout::LOCAL.mark(&mut segment, mark).expect("it fits");
            let frame = frame(&source, &segment);
            assert!(push(&mut output, now, &frame));
            let (packet, _) = frames.keep(&frame, None, &read(&frame, None)).expect("room");
            frames.release(&packet);
            let Packet { flow, segment, .. } = packet;
            let at = now;
            arrivals.push(Arrival { at, flow, segment });
            if random.below(6) == 0 {
                left.extend(leaving(&mut output, now));
            }
        }
        left.extend(leaving(&mut output, now));
        let mut simulated = Simulated::default();
        let flows = frames.flows().clone();
        let forwarded = forward(&spec, &link, flows, &arrivals, now, Mode::Fast, &mut simulated);
        forwarded.expect("it is simulated");
        let ours = left.iter().map(|frame| {
            let segment = read(frame, None).segment;
            (segment.seq.0, segment.tos)
        });
        assert!(ours.eq(simulated.left.iter().copied()), "{}", entry.name);
        assert_eq!(output.counters().drops, simulated.dropped, "{}", entry.name);
        assert!(
            left.len() > 1_000 && left.len() < 3_000,
            "{}: {}",
            entry.name,
            left.len()
        );
    }
}

/// Sequence numbers and traffic classes of packets that left the simulated link, and how many it dropped.
#[derive(Default)]
struct Simulated {
    left: Vec<(u32, u8)>,
    dropped: [u64; DropReason::ALL.len()],
}

impl Observer for Simulated {
    fn on_deliver(&mut self, _: Instant, _: LinkIndex, packet: &Packet, _: Duration) {
        self.left.push((packet.segment.seq.0, packet.segment.tos));
    }

    fn on_drop(&mut self, _: Instant, _: LinkIndex, _: &Packet, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }
}
