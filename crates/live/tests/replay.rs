//! The link on real packets held to the simulator's, in virtual time: any frames, read and carried on at any moments.
#![cfg(target_os = "linux")]

use fleetfoot_core::packet::{Ecn, Flags, Segment};
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::plugin::Plugins;
use fleetfoot_core::queue::{AnyQueue, DropReason, Limit};
use fleetfoot_core::rng::{Distribution, Probability, Rng};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::superpacket::{Layout, Mark};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use fleetfoot_core::wire;
use fleetfoot_live::{Direction, Event, Held, Recording, Refusal, Sent, Tapped, tap};
use fleetfoot_sim::spec::{Impairments, LinkRate, LinkSpec, Loss, NodeId, Spec, World};
use fleetfoot_sim::world::Mode;
use std::convert::Infallible;
use std::net::SocketAddr;

/// 10 Mbit/s and 3 ms behind a queue.
fn link(queue: &'static str, changes: &[(&str, Value)]) -> LinkSpec {
    let mut queue_values = Values::defaults(AnyQueue::entry(queue).expect("registered").parameters);
    for &(name, value) in changes {
        queue_values.set(name, value).expect("a parameter");
    }
    LinkSpec {
        name: String::from("bottleneck"),
        forward: true,
        from: NodeId(0),
        to: NodeId(1),
        rate: LinkRate::Constant(Rate::from_bps(10_000_000)),
        delay: Duration::from_millis(3),
        queue,
        queue_values,
        impairments: Impairments::default(),
        mtu: 1_500,
        framing: 0,
        processing: Duration::ZERO,
        overlap: false,
        host: false,
    }
}

fn spec(seed: u64) -> Spec {
    Spec {
        nodes: Vec::new(),
        links: Vec::new(),
        groups: Vec::new(),
        duration: Duration::from_secs(1),
        warmup: Duration::ZERO,
        drain: Duration::ZERO,
        plugins: Plugins::NONE,
        seed,
        bins: None,
        world: World::Kernel,
    }
}

/// A super-packet of which more is to come: packets, their number at the beginning, its identifier, its ports.
type Promised = (u8, u8, u16, [u8; 2]);

/// An Ethernet frame of one of forty flows: small and large, with and without ECN, in super-packets or not.
fn frame(random: &mut Rng, promised: &mut Promised) -> Vec<u8> {
    let mut segment = Segment {
        payload: [0, 100, 1_000, 1_448][random.below(4) as usize],
        seq: SeqNumber(random.next_u32()),
        ttl: 64,
        ip_id: 0,
        flags: Flags::ACK.with(Flags::DF),
        ..Segment::default()
    };
    if random.below(3) == 0 {
        segment.set_ecn(Ecn::Ect0);
    }
    let mut ends = [random.below(5) as u8, random.below(8) as u8];
    let mark = match promised {
        (0, ..) if random.below(4) == 0 => {
            let length = 2 + random.below(8) as u8;
            *promised = (length - 1, length, random.below(256) as u16, ends);
            Mark::first(length, promised.2)
        }
        (0, ..) => Mark::REGULAR,
        (more, length, id, flow) => {
            *more -= 1;
            ends = *flow;
            Mark::follower(*length, *id)
        }
    };
    Layout::LOCAL.mark(&mut segment, mark).expect("it fits");
    let source = SocketAddr::from(([10, 0, 0, ends[0]], 80));
    let destination = SocketAddr::from(([10, 1, 0, 1], 1000 + u16::from(ends[1])));
    let mut bytes = vec![0; 14 + 100 + 1_448];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    let length = wire::encode(&mut bytes[14..], &segment, source, destination, &[]);
    bytes.truncate(14 + length.expect("it fits"));
    bytes
}

/// Frames come over the link on real packets in bursts, and it is carried on at moments that have nothing to do with it: what a tap saw.
fn passes(spec: &Spec, link: &LinkSpec, frames: u32) -> Vec<Tapped> {
    let mut random = Rng::for_element(spec.seed, "frames", "test");
    let mut direction = Direction::new(link.link(spec).expect("a link"));
    let ([tap, _], reader) = tap(1 << 16);
    direction.observe(tap);
    let mut now = Instant::from_millis(50);
    let mut promised = (0, 0, 0, [0, 0]);
    let mut refuses = false;
    let mut carry = |direction: &mut Direction, random: &mut Rng, until: Instant| {
        let late = until + Duration::from_nanos(random.below(2_000_000));
        let Ok(()) = direction.poll_frames::<Infallible>(
            until,
            || late,
            |frames| {
                refuses = !refuses && random.below(50) == 0;
                Ok(match refuses {
                    true => Sent::Refused(Refusal::Full),
                    false => Sent::Taken(1 + random.below(frames.len() as u64) as usize),
                })
            },
        );
    };
    for _ in 0..frames {
        now += match random.below(10) {
            0 => Duration::from_nanos(random.below(5_000_000)),
            1..4 => Duration::ZERO,
            _ => Duration::from_nanos(random.below(500_000)),
        };
        let frame = frame(&mut random, &mut promised);
        // One that came a little earlier, on another core, than what was read before.
        let came = now - Duration::from_nanos(random.below(3) * 500);
        direction.on_frame(came, &frame);
        if random.below(8) == 0 {
            carry(&mut direction, &mut random, now);
        }
    }
    now += Duration::from_millis(random.below(100));
    carry(&mut direction, &mut random, now);
    assert_eq!(reader.lost(), 0);
    std::iter::from_fn(|| reader.next()).collect()
}

fn recorded(tapped: &[Tapped]) -> Recording {
    let mut recording = Recording::new();
    for one in tapped {
        recording
            .add(one.at, one.event, one.frame(), one.length)
            .expect("a tap saw it");
    }
    recording
}

fn held(spec: &Spec, link: &LinkSpec, tapped: &[Tapped]) -> [Held; 2] {
    [Mode::Fast, Mode::Plain].map(|mode| recorded(tapped).hold(spec, link, mode).expect("it is simulated"))
}

#[test]
fn every_queue_does_the_same_in_the_simulator() {
    let mut saw = [0; DropReason::ALL.len()];
    let mut marked = 0;
    for entry in AnyQueue::ENTRIES {
        let sets: &[&[(&str, Value)]] = match entry.name {
            "favourtail" => &[
                &[],
                &[("push_out", Value::Flag(true))],
                &[("budget", Value::Flag(true)), ("push_out", Value::Flag(true))],
            ],
            _ => &[&[]],
        };
        for (number, changes) in sets.iter().enumerate() {
            for seed in 1..4 {
                let limit = ("limit", Value::Limit(Limit::Packets(30)));
                let changes: Vec<_> = changes.iter().copied().chain([limit]).collect();
                let (spec, link) = (spec(seed), link(entry.name, &changes));
                let tapped = passes(&spec, &link, 3_000);
                for held in held(&spec, &link, &tapped) {
                    let what = format!("{} {number}, seed {seed}", entry.name);
                    assert_eq!(held.difference, None, "{what}");
                    assert_eq!(held.arrived, 3_000, "{what}");
                    assert!(held.left > 1_000 && held.left < 3_000, "{what}: {}", held.left);
                    for (sum, count) in saw.iter_mut().zip(held.dropped) {
                        *sum += count;
                    }
                    marked += held.marked;
                }
            }
        }
    }
    let seen = |reason: DropReason| saw[reason as usize] > 0;
    for reason in [
        DropReason::Full,
        DropReason::Early,
        DropReason::PushedOut,
        DropReason::Orphan,
    ] {
        assert!(seen(reason), "{reason:?}");
    }
    assert!(marked > 0);
}

#[test]
fn damage_on_the_wire_is_the_same() {
    let third = Probability::from_f64(0.3);
    let some = Probability::from_f64(0.05);
    let delay = Duration::from_millis(2);
    let wires = [
        Impairments {
            loss: Loss::Random(some),
            duplicate: some,
            ..Impairments::default()
        },
        Impairments {
            loss: Loss::Burst {
                enter: some,
                leave: third,
                good: Probability::from_f64(0.001),
                bad: third,
            },
            reorder: Some((some, delay)),
            ..Impairments::default()
        },
        Impairments {
            jitter: Some(Distribution::Uniform { min: 0.0, max: 0.004 }),
            bit_error_rate: 1e-5,
            ..Impairments::default()
        },
    ];
    for (number, impairments) in wires.into_iter().enumerate() {
        for queue in ["drop-tail", "fq-codel"] {
            let link = LinkSpec {
                impairments: impairments.clone(),
                ..link(queue, &[("limit", Value::Limit(Limit::Packets(30)))])
            };
            let spec = spec(7);
            for held in held(&spec, &link, &passes(&spec, &link, 3_000)) {
                assert_eq!(held.difference, None, "wire {number}, {queue}");
            }
        }
    }
}

/// What is compared is compared: a recording in which one thing is otherwise differs.
#[test]
fn any_other_recording_differs() {
    let (spec, link) = (spec(3), link("red", &[("ecn", Value::Flag(true))]));
    let whole = passes(&spec, &link, 3_000);
    let differs = |what: &str, tapped: &[Tapped]| {
        for held in held(&spec, &link, tapped) {
            let difference = held.difference.unwrap_or_else(|| panic!("{what} is found"));
            assert!(difference.contains("10.0.0."), "{what}: {difference}");
        }
    };
    let place = |wanted: &dyn Fn(&Tapped) -> bool| {
        let found = whole.iter().skip(whole.len() / 2).position(wanted);
        whole.len() / 2 + found.expect("there is one")
    };
    let left = |tapped: &Tapped| matches!(tapped.event, Event::Left { .. });
    let dropped = |tapped: &Tapped| matches!(tapped.event, Event::Dropped(_));
    let entered = |tapped: &Tapped| tapped.event == Event::Entered;
    for (what, wanted) in [
        ("an arrival", &entered as &dyn Fn(&Tapped) -> bool),
        ("a departure", &left),
        ("a drop", &dropped),
    ] {
        let mut without = whole.clone();
        without.remove(place(wanted));
        differs(&format!("{what} less"), &without);
    }
    let mut later = whole.clone();
    let at = place(&left);
    later[at].at += Duration::from_nanos(1);
    differs("a departure one nanosecond later", &later);
    let mut marked = whole.clone();
    let unmarked = |tapped: &Tapped| left(tapped) && tapped.frame()[15] == 0;
    let at = place(&unmarked);
    marked[at].bytes[15] |= Ecn::Ce as u8;
    // The checksum of the header, which the mark changes, too.
    let sum = u16::from_be_bytes([marked[at].bytes[24], marked[at].bytes[25]]);
    let sum = !sum;
    let changed = u32::from(sum) + Ecn::Ce as u32;
    let sum = !(((changed >> 16) + (changed & 0xffff)) as u16);
    marked[at].bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    differs("another mark", &marked);
    let mut reason = whole;
    let at = reason.iter().position(dropped).expect("there is one");
    reason[at].event = Event::Dropped(DropReason::NoRoute);
    differs("another reason", &reason);
}

#[test]
fn what_no_tap_saw_is_refused() {
    let (spec, link) = (spec(3), link("drop-tail", &[]));
    let tapped = passes(&spec, &link, 10);
    let frame = tapped[0].frame();
    let mut recording = Recording::new();
    let add = |recording: &mut Recording, at, length| {
        recording.add(Instant::from_millis(at), Event::Entered, frame, length)
    };
    assert_eq!(add(&mut recording, 2, tapped[0].length), Ok(()));
    let earlier = add(&mut recording, 1, tapped[0].length).expect_err("time runs forwards");
    assert!(earlier.contains("arrived before"), "{earlier}");
    let short = add(&mut recording, 3, 20).expect_err("more is kept than there was");
    assert!(short.contains("no frame"), "{short}");
    let long = add(&mut recording, 3, 1 << 30).expect_err("no frame is so long");
    assert!(long.contains("no frame"), "{long}");
}
