//! Frames through one direction of the link, or past the marker, in virtual time: what is late, what is refused, what is allocated.
#![cfg(target_os = "linux")]

use fleetfoot_core::link::{Link, LinkConfig, LinkRate};
use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::queue::{AnyQueue, DropReason};
use fleetfoot_core::superpacket;
use fleetfoot_core::superpacket::marker::Marking;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use fleetfoot_core::wire;
use fleetfoot_live::{Direction, MarkRules, Passage, Refusal, Sent, Way, tap};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::convert::Infallible;
use std::io::IoSlice;
use std::net::SocketAddr;

/// Counts allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as asked by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as asked by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn direction(config: &LinkConfig, queue: &str) -> Direction {
    let entry = AnyQueue::entry_among(&[], queue).expect("a registered queue");
    let values = Values::defaults(entry.parameters);
    let queue = AnyQueue::build_among(&[], entry.name, &values, &config.link_context(1)).expect("a queue");
    Direction::new(Link::new(queue, config, 1, "test"))
}

fn link(mbit: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_bps(mbit * 1_000_000), Duration::ZERO)
}

/// An Ethernet frame with a TCP segment, `payload` bytes long.
fn frame(port: u16, payload: usize) -> Vec<u8> {
    let segment = Segment {
        payload: payload as u32,
        flags: Flags::ACK,
        ttl: 64,
        ..Segment::default()
    };
    let source = SocketAddr::from(([10, 0, 0, 1], 80));
    let destination = SocketAddr::from(([10, 0, 0, 2], port));
    let mut bytes = vec![0; 14 + 100 + payload];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    let length = wire::encode(&mut bytes[14..], &segment, source, destination, &vec![0; payload]);
    bytes.truncate(14 + length.expect("it fits"));
    bytes
}

fn takes(frames: &[IoSlice<'_>]) -> Result<Sent, Infallible> {
    Ok(Sent::Taken(frames.len()))
}

#[test]
fn a_wait_in_the_socket_is_lateness_and_no_time_on_the_link() {
    // 1040 bytes at 8.32 Mbit/s take a millisecond.
    let mut direction = direction(
        &LinkConfig::new(Rate::from_bps(8_320_000), Duration::ZERO),
        "drop-tail",
    );
    let frame = frame(999, 1000);
    // Both came at 1 ms and were read at 5 ms.
    for _ in 0..2 {
        direction.on_frame(Instant::from_millis(1), &frame);
    }
    let read = Instant::from_millis(5);
    let Ok(()) = direction.poll_frames(read, || read, takes);
    let measured = direction.measured();
    assert_eq!(measured.delivered, 2);
    assert_eq!(
        measured.queue_delay.max(),
        1_000_000,
        "the second waited for the first"
    );
    assert_eq!(measured.lateness.max(), 3_000_000, "the first was due at 2 ms");
    assert_eq!(measured.lateness.sum(), 5_000_000, "the second at 3 ms");
    assert_eq!(measured.late, 2);
}

#[test]
fn frames_of_a_batch_leave_one_after_the_other() {
    let mut direction = direction(&link(1_000_000), "drop-tail");
    let frame = frame(999, 1000);
    for _ in 0..10 {
        direction.on_frame(Instant::from_millis(1), &frame);
    }
    let (began, ended) = (Instant::from_millis(2), Instant::from_millis(3));
    let times = Cell::new(false);
    let clock = || if times.replace(true) { ended } else { began };
    let mut batches = Vec::new();
    let Ok(()) = direction.poll_frames(began, clock, |frames| {
        batches.push(frames.len());
        takes(frames)
    });
    assert_eq!(batches, [10]);
    let lateness = &direction.measured().lateness;
    let mean = lateness.mean().expect("ten were delivered");
    assert!(
        (1.4e6..1.5e6).contains(&mean),
        "{mean}: the last left 0.9 ms after the first"
    );
}

#[test]
fn what_is_refused_and_what_is_too_long_is_counted_by_reason() {
    let mut direction = direction(&link(1000), "fq-codel");
    for payload in [1000, 1000, 1000, 1000, 1461] {
        direction.on_frame(Instant::ZERO, &frame(999, payload));
    }
    let at = Instant::from_millis(10);
    let mut call = 0;
    let Ok(()) = direction.poll_frames::<Infallible>(
        at,
        || at,
        |_| {
            call += 1;
            Ok(match call {
                1 => Sent::Taken(1),
                2 => Sent::Refused(Refusal::Down),
                3 => Sent::Refused(Refusal::Full),
                _ => Sent::Taken(1),
            })
        },
    );
    let measured = direction.measured();
    assert_eq!((measured.arrived, measured.delivered), (5, 2));
    assert_eq!(measured.refused, [1, 1, 0, 0]);
    assert_eq!(measured.refused_packets(), 2);
    assert_eq!(measured.drops[DropReason::TooBig as usize], 1);
}

#[test]
fn frames_beyond_the_room_are_refused_and_counted() {
    let mut direction = direction(&link(1000), "drop-tail").with_room_for(3);
    for _ in 0..5 {
        direction.on_frame(Instant::ZERO, &frame(999, 1000));
    }
    let measured = direction.measured();
    assert_eq!((measured.arrived, measured.refused), (3, [0, 0, 0, 2]));
    // What leaves makes room.
    let at = Instant::from_millis(10);
    let Ok(()) = direction.poll_frames::<Infallible>(at, || at, |frames| Ok(Sent::Taken(frames.len())));
    direction.on_frame(at, &frame(999, 1000));
    let measured = direction.measured();
    assert_eq!((measured.arrived, measured.delivered), (4, 3));
    assert_eq!(measured.refused_packets(), 2);
}

#[test]
fn opportunities_of_a_trace_are_kept_to_the_millisecond() {
    // mahimahi's notation: whole milliseconds, several opportunities in one, gaps, then all over again.
    let milliseconds = [1, 1, 2, 5, 5, 5, 9, 20];
    let mut config = link(1);
    config.rate = LinkRate::Trace {
        opportunities: milliseconds.map(Duration::from_millis).into(),
        period: Duration::from_millis(20),
    };
    let mut direction = direction(&config, "drop-tail");
    let frame = frame(999, 1460);
    for _ in 0..40 {
        direction.on_frame(Instant::ZERO, &frame);
    }
    let mut deliveries = Vec::new();
    while let Some(due) = direction.poll_timeout() {
        let Ok(()) = direction.poll_frames(
            due,
            || due,
            |frames| {
                deliveries.extend(frames.iter().map(|_| due.as_nanos() as f64 / 1e6));
                takes(frames)
            },
        );
    }
    let expected: Vec<f64> = (0..5_u32)
        .flat_map(|period| milliseconds.map(|at| f64::from(period) * 20.0 + at as f64))
        .collect();
    assert_eq!(deliveries.len(), expected.len());
    for (delivered, opportunity) in deliveries.iter().zip(&expected) {
        assert!((delivered - opportunity).abs() < 1.0, "{deliveries:?}");
    }
    assert_eq!(direction.measured().lateness.max(), 0);
}

#[test]
fn a_warm_direction_allocates_nothing() {
    for (queue, observed) in [
        ("drop-tail", false),
        ("fq-codel", false),
        ("favourtail", false),
        ("fq-codel", true),
    ] {
        let mut direction = direction(&link(100), queue);
        // A ring that is full soon, emptied, and full again.
        let ([tap, _], reader) = tap(1000);
        if observed {
            direction.observe(tap);
        }
        let frames = [frame(999, 1000), frame(1000, 300), frame(1001, 0)];
        let mut now = Instant::from_millis(1);
        let mut step = |direction: &mut Direction, rounds: u32| {
            for round in 0..rounds {
                // More than the link carries, so that packets are dropped too.
                for frame in &frames {
                    direction.on_frame(now, frame);
                    direction.on_frame(now, frame);
                }
                now += Duration::from_micros(u64::from(round % 300));
                let Ok(()) = direction.poll_frames(now, || now, takes);
            }
        };
        step(&mut direction, 20_000);
        let before = ALLOCATIONS.get();
        step(&mut direction, 2_500);
        while reader.next().is_some() {}
        step(&mut direction, 2_500);
        assert_eq!(ALLOCATIONS.get(), before, "{queue}");
        assert_eq!(reader.lost() > 0, observed, "a full ring loses, and counts");
        assert!(
            direction.measured().drops.iter().sum::<u64>() > 0,
            "{queue} dropped"
        );
    }
}

#[test]
fn a_warm_passage_allocates_nothing() {
    let mut passage = Passage::marking(MarkRules {
        marking: Marking {
            t_buffer: Duration::from_micros(60),
            hold: Duration::from_micros(200),
            max: 10,
            by_write: false,
        },
        four: Some(superpacket::Layout::LOCAL),
        six: Some(superpacket::Layout::C),
        udp: false,
        ports: vec![0..=65_535],
        networks: Vec::new(),
        mtu: 1500,
        seed: 1,
        lies: Vec::new(),
    });
    // Data of two flows that may not be fragmented and of one that may, of IPv6, acknowledgments, and what is no IP.
    let mut other = frame(999, 1000);
    other[12..14].copy_from_slice(&[0x08, 0x06]);
    let frames = [
        atomic(1000, 1000),
        atomic(1001, 300),
        frame(1002, 1000),
        atomic(1003, 0),
        other,
        data_of_six(),
    ];
    let mut now = Instant::from_millis(1);
    let mut step = |passage: &mut Passage, rounds: u32| {
        for round in 0..rounds {
            for (index, frame) in frames.iter().enumerate() {
                if (round as usize + index) % 7 > 1 {
                    passage.on_frame(now, frame);
                    passage.on_frame(now, frame);
                }
            }
            now += Duration::from_micros(u64::from(round % 100));
            let Ok(()) = passage.poll_frames(now, || now, takes);
        }
    };
    step(&mut passage, 20_000);
    let before = ALLOCATIONS.get();
    step(&mut passage, 5_000);
    assert_eq!(ALLOCATIONS.get(), before);
    let groups = &passage.marked().groups;
    assert!(groups[2] > 0 && groups[4] > 0 && groups[10] > 0, "{groups:?}");
}

/// As [`frame`], with DF.
fn atomic(port: u16, payload: usize) -> Vec<u8> {
    let mut bytes = frame(port, payload);
    bytes[20] |= 0x40;
    // The checksum of the header, whose flags are another word now (RFC 1624).
    let sum = u16::from_be_bytes([bytes[24], bytes[25]]);
    let (sum, over) = sum.overflowing_sub(0x4000);
    bytes[24..26].copy_from_slice(&sum.wrapping_sub(u16::from(over)).to_be_bytes());
    bytes
}

/// A frame of IPv6.
fn data_of_six() -> Vec<u8> {
    let segment = Segment {
        payload: 100,
        flags: Flags::ACK,
        ttl: 64,
        ..Segment::default()
    };
    let address = |host| SocketAddr::from(([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host], 80));
    let mut bytes = vec![0; 14 + 200];
    bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
    let length = wire::encode(&mut bytes[14..], &segment, address(1), address(2), &[]);
    bytes.truncate(14 + length.expect("it fits"));
    bytes
}
