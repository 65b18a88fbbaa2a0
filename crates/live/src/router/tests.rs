//! The path of a frame through [`Plane`] and [`Output`] allocates nothing once everything has its size, with every registered queue.

use super::interfaces::Interface;
use super::output::Output;
use super::plane::Plane;
use super::{Config, InterfaceConfig, Mode, Offloads, Queue, Route};
use crate::frames::HEADER;
use crate::packet_socket::{Refusal, Sent};
use crate::ring::Format;
use fleetfoot_core::packet::{Ecn, Flags, Segment};
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::plugin::Plugins;
use fleetfoot_core::queue::{AnyQueue, Limit};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use fleetfoot_core::wire;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};

/// The system's allocator, which counts what each thread asks of it.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

fn asked() -> u64 {
    ASKED.get()
}

fn count() {
    // A thread that ends has nothing left to count.
    let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
}

// SAFETY: everything is the system's allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A router without sockets: frames come by the first interface and leave by the second.
struct Path {
    plane: Plane,
    outputs: [Output; 2],
    now: Instant,
    flushes: u64,
    /// Of a thousand times that frames are due so many find the interface full.
    full: u64,
    sent: u64,
}

impl Path {
    fn new(mode: Mode, queue: &'static str, rate: Option<Rate>) -> Path {
        let entry = AnyQueue::entry_among(&[], queue).expect("a registered queue");
        let mut values = Values::defaults(entry.parameters);
        values
            .set("limit", Value::Limit(Limit::Packets(200)))
            .expect("every queue has a limit");
        let interface = |name: &str| InterfaceConfig {
            name: name.to_owned(),
            rate,
            framing: 0,
            queue: Queue {
                name: entry.name,
                values: values.clone(),
                plugins: Plugins::NONE,
            },
            ring: Format::Blocks,
            device_buffer: 0,
            check_source: true,
        };
        let route = |network: &str, prefix, interface| Route {
            network: network.parse().expect("an address"),
            prefix,
            interface,
            via: None,
        };
        let config = Config {
            mode,
            interfaces: vec![interface("in"), interface("out")],
            routes: vec![
                route("10.0.0.0", 8, 0),
                route("10.0.2.0", 24, 1),
                route("fd00:1::", 64, 0),
                route("fd00:2::", 64, 1),
            ],
            metrics: None,
            offloads: Offloads::Refuse,
        };
        let facts = [1, 2].map(|index| Interface {
            name: String::from("one"),
            index,
            mtu: 1500,
            hardware: Some([2, 0, 0, 0, 0, index as u8]),
            addresses: Vec::new(),
            networks: Vec::new(),
            up: true,
        });
        let mut plane = Plane::of(&config, facts.to_vec()).expect("a socket for the kernel's news");
        for host in ["10.0.2.7", "fd00:2::7"] {
            let address: IpAddr = host.parse().expect("an address");
            plane.learn((2, address), [2, 0, 0, 0, 0, 7]);
        }
        let output = |at: usize| Output::new(&config.interfaces[at], 1500, 7).expect("registered");
        Path {
            plane,
            outputs: [output(0), output(1)],
            now: Instant::ZERO,
            flushes: 0,
            full: 300,
            sent: 0,
        }
    }

    /// A frame comes `after` the one before; the interface takes what is due, but is full now and then.
    fn pass(&mut self, after: Duration, frame: &[u8]) {
        self.now += after;
        let fate = self
            .plane
            .pass(self.now, 0, frame, None, false, &mut self.outputs);
        assert_eq!(fate, Ok(()));
        self.flushes += 1;
        let (full, sent) = (self.flushes % 1000 < self.full, &mut self.sent);
        self.outputs[1]
            .flush(self.now, |frames| {
                if full {
                    return Ok(Sent::Refused(Refusal::Full));
                }
                let taken = frames.len().min(7);
                *sent += taken as u64;
                Ok(Sent::Taken(taken))
            })
            .expect("nothing fails");
    }
}

/// What leaves of a frame that came with this tag beside it.
fn routed(frame: &[u8], tag: Option<[u8; 4]>) -> (Result<(), Option<super::Discard>>, Vec<Vec<u8>>) {
    let mut path = Path::new(Mode::Route, "drop-tail", None);
    let fate = path.plane.pass(path.now, 0, frame, tag, false, &mut path.outputs);
    let mut left = Vec::new();
    path.outputs[1]
        .flush(path.now, |frames| {
            left.extend(frames.iter().map(|frame| frame.to_vec()));
            Ok(Sent::Taken(frames.len()))
        })
        .expect("nothing fails");
    (fate, left)
}

/// IEEE 802.1Q 9.6: VLAN 0 is no VLAN, the tag carries a priority alone. Linux takes such a frame as the interface's own.
#[test]
fn a_frame_with_a_priority_is_forwarded_without_its_tag() {
    for number in [1, 4] {
        let plain = frame(number, 100, false);
        let wanted = routed(&plain, None);
        assert_eq!((&wanted.0, wanted.1.len()), (&Ok(()), 1));
        let tagged = |tag: [u8; 4]| [&plain[..12], &tag, &plain[12..]].concat();
        // Of customers, and of providers (802.1ad).
        for [a, b] in [[0x81, 0], [0x88, 0xa8]] {
            for priority in [0, 0xa0, 0xf0] {
                let tag = [a, b, priority, 0];
                assert_eq!(routed(&tagged(tag), None), wanted, "in the frame");
                assert_eq!(routed(&plain, Some(tag)), wanted, "taken out");
            }
            for tag in [[a, b, 0xa0, 7], [a, b, 1, 0]] {
                assert_eq!(routed(&tagged(tag), None), (Err(None), Vec::new()));
                assert_eq!(routed(&plain, Some(tag)), (Err(None), Vec::new()));
            }
        }
    }
}

fn frame(number: u32, payload: u32, spoofed: bool) -> Vec<u8> {
    let six = !spoofed && number.is_multiple_of(4);
    let port = 1024 + (number % 61) as u16;
    let [_, b, c, d] = number.to_be_bytes();
    let (source, destination): (SocketAddr, SocketAddr) = if six {
        (
            format!("[fd00:1::5]:{port}").parse().expect("an address"),
            "[fd00:2::7]:80".parse().expect("an address"),
        )
    } else {
        let source = if spoofed {
            [10, 128 + b, c, d]
        } else {
            [10, 0, 1, 5]
        };
        (
            SocketAddr::from((source, port)),
            "10.0.2.7:80".parse().expect("an address"),
        )
    };
    let mut segment = Segment {
        seq: SeqNumber(number.wrapping_mul(1000)),
        payload,
        flags: if spoofed { Flags::SYN } else { Flags::ACK },
        ttl: 64,
        ..Segment::default()
    };
    if number.is_multiple_of(3) {
        segment.set_ecn(Ecn::Ect0);
    }
    let mut bytes = vec![0; HEADER + 1600];
    bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    bytes[12..HEADER].copy_from_slice(if six { &[0x86, 0xdd] } else { &[8, 0] });
    let length = wire::encode(&mut bytes[HEADER..], &segment, source, destination, &[]).expect("it fits");
    bytes.truncate(HEADER + length);
    bytes
}

const RATES: [Option<Rate>; 2] = [None, Some(Rate::from_bps(100_000_000))];

#[test]
fn the_path_of_a_frame_allocates_nothing_with_any_queue() {
    let longest: Vec<Vec<u8>> = (0..61).map(|number| frame(number, 1440, false)).collect();
    let mixed: Vec<Vec<u8>> = (0..1009)
        .map(|number| frame(number, number * 7 % 1440, false))
        .collect();
    for entry in AnyQueue::ENTRIES {
        for mode in [Mode::Bridge, Mode::Route] {
            for rate in RATES {
                let mut path = Path::new(mode, entry.name, rate);
                // Everything that may wait waits once, longer than later, and is as long as it may be.
                path.full = 700;
                for frame in longest.iter().cycle().take(20_000) {
                    path.pass(Duration::from_micros(60), frame);
                }
                path.full = 300;
                for frame in mixed.iter().cycle().take(30_000) {
                    path.pass(Duration::from_micros(55), frame);
                }
                // A queue whose limit is met by whole frames of several packets finds its longest wait late: a buffer may still grow
                // then. What asks with every frame never comes to nothing.
                let window = |path: &mut Path| {
                    let before = asked();
                    for frame in mixed.iter().cycle().take(30_000) {
                        path.pass(Duration::from_micros(55), frame);
                    }
                    asked() - before
                };
                let count = (0..5).map(|_| window(&mut path)).find(|&count| count == 0);
                let what = format!("{} {mode:?} {rate:?}", entry.name);
                assert_eq!(count, Some(0), "{what}");
                assert!(path.sent > 20_000, "{what}: {} were sent", path.sent);
            }
        }
    }
}

#[test]
fn new_flows_allocate_nothing_once_as_many_are_known_as_are_told_apart() {
    // Frames are made before they are counted.
    let known: Vec<Vec<u8>> = (0..150_000).map(|number| frame(number, 0, true)).collect();
    let new: Vec<Vec<u8>> = (150_000..200_000).map(|number| frame(number, 0, true)).collect();
    for entry in AnyQueue::ENTRIES {
        let mut path = Path::new(Mode::Route, entry.name, RATES[1]);
        for syn in &known {
            path.pass(Duration::from_micros(3), syn);
        }
        let before = asked();
        for syn in &new {
            path.pass(Duration::from_micros(3), syn);
        }
        let count = asked() - before;
        assert_eq!(count, 0, "{}", entry.name);
    }
}
