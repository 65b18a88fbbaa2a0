//! A million flows and a flood of SYNs from invented addresses through `fleetfoot router`, and how much memory it takes.

use crate::program::{Program, nothing_is_left, own_descriptors};
use crate::row::{Row, skips};
use crate::{Folder, alone, parts};
use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::wire;
use fleetfoot_live::{PacketSocket, Sent};
use std::io::IoSlice;
use std::net::SocketAddr;

/// Bytes of an Ethernet header.
const HEADER: usize = 14;
/// Frames that are handed to the interface at once.
const BATCH: usize = 64;

/// What a router took.
struct Taken {
    /// Bytes when it began, and each time that so many flows more had come.
    memory: Vec<u64>,
    /// Frames that came to the router.
    received: u64,
}

#[test]
fn a_flood_of_flows_takes_bounded_memory() {
    if skips() {
        return;
    }
    // More than are told apart.
    let taken = flood("favourtail", false, 90_000);
    check("favourtail", 90_000, &taken);
}

#[test]
#[ignore = "takes a minute: make test-all runs it"]
fn a_million_flows_and_a_flood_of_syns_take_bounded_memory() {
    if skips() {
        return;
    }
    const FLOWS: u32 = 1_000_000;
    println!("MiB: at the start, after a million flows, after each million others");
    for queue in ["favourtail", "sp-h", "fq-codel", "sp-fq", "drr"] {
        for routed in [false, true] {
            let taken = flood(queue, routed, FLOWS);
            let memory: Vec<String> = taken
                .memory
                .iter()
                .map(|&bytes| format!("{:.1}", parts::mib(bytes)))
                .collect();
            println!(
                "{queue} ({}): {}; {} frames came",
                if routed { "router" } else { "bridge" },
                memory.join(" "),
                taken.received
            );
            check(queue, FLOWS, &taken);
        }
    }
}

/// More memory than this for so many flows more (bytes) says that it still grows: of the fewest flows of a test, 93 bytes each.
const GROWS: u64 = 8 << 20;
/// Times that the flows come. On a machine that has no time for the router the queue is filled late, so that it is not the second time that
/// shows how much is kept; what grew with the flows would grow every time.
const TIMES: u32 = 6;

/// At last as many flows again take nothing more, and all of them together what the router's page says.
fn check(queue: &str, flows: u32, taken: &Taken) {
    let Taken { memory, received } = taken;
    let mib: Vec<f64> = memory.iter().map(|&bytes| parts::mib(bytes)).collect();
    let [start, .., before, last] = memory[..] else {
        panic!("{queue}: {mib:?}");
    };
    assert!(*received > u64::from(flows), "{queue}: {received} frames came");
    assert!(last - start < 128 << 20, "{queue}: {mib:?} MiB");
    // A frame may still come to be kept in a place where a shorter one was.
    assert!(last - before < GROWS, "{queue}: {mib:?} MiB");
}

fn flood(queue: &str, routed: bool, flows: u32) -> Taken {
    let _alone = alone();
    let before = own_descriptors();
    let taken = through(queue, routed, flows);
    nothing_is_left(before);
    taken
}

fn through(queue: &str, routed: bool, flows: u32) -> Taken {
    let folder = Folder::new(&format!("flood-{queue}-{routed}"));
    let row = if routed { Row::routed() } else { Row::bridged() };
    let (mode, routes) = if routed {
        (
            "route",
            "[[route]]\nto = \"10.0.1.0/24\"\ninterface = \"b0\"\n[[route]]\nto = \"10.0.2.0/24\"\ninterface = \"b1\"\n",
        )
    } else {
        ("bridge", "")
    };
    // Slower than the flood, so that the queue is full of flows all the time.
    let one = |name: &str| {
        format!(
            "[[interface]]\nname = \"{name}\"\nrate = \"50 Mbit/s\"\nqueue = {{ kind = \"{queue}\", limit = \"10000 packets\" }}\n"
        )
    };
    let text = format!(
        "mode = \"{mode}\"\n{}{}{routes}[log]\nformat = \"json\"\n",
        one("b0"),
        one("b1")
    );
    let path = folder.path().join("router.toml");
    std::fs::write(&path, text).expect("a file");
    let path = path.to_str().expect("text");
    let program = Program::start(
        &row.middle,
        &folder,
        "router",
        &["router", path, "--json"],
        "\"event\":\"started\"",
    );
    // In a bridge a host that is not there, so that nobody answers.
    let to = if routed {
        row.hardware("b0")
    } else {
        [2, 0, 0, 0, 0, 7]
    };
    let mut memory = vec![program.peak_memory()];
    for time in 0..TIMES {
        row.near.run(|| send(to, routed, time * flows, flows));
        memory.push(program.peak_memory());
        if let [_, .., before, last] = memory[..]
            && time > 0
            && last - before < GROWS
        {
            break;
        }
    }
    let document: serde_json::Value = serde_json::from_str(&program.end()).expect("one document");
    Taken {
        memory,
        received: document["interfaces"][0]["received_frames"]
            .as_u64()
            .unwrap_or_default(),
    }
}

/// Sends the first packet of each of `count` flows: by turns a SYN from an address that nobody has, and data of a known network.
fn send(to: [u8; 6], routed: bool, first: u32, count: u32) {
    let socket = PacketSocket::open("a0", 1500).expect("root may");
    let mut frames = vec![vec![0; HEADER + 2000]; BATCH];
    let destination = if routed { "10.0.2.1" } else { "10.0.1.77" };
    for begin in (first..first + count).step_by(BATCH) {
        let batch = &mut frames[..BATCH.min((first + count - begin) as usize)];
        for (frame, number) in batch.iter_mut().zip(begin..) {
            make(frame, to, number, destination);
        }
        let slices: Vec<IoSlice<'_>> = batch.iter().map(|frame| IoSlice::new(frame)).collect();
        let mut rest = &slices[..];
        while !rest.is_empty() {
            match socket.send(rest).expect("the interface is there") {
                Sent::Taken(count) => rest = &rest[count..],
                Sent::Refused(_) => std::thread::yield_now(),
            }
        }
    }
}

fn make(frame: &mut Vec<u8>, to: [u8; 6], number: u32, destination: &str) {
    let syn = number.is_multiple_of(2);
    let [a, b, c, d] = number.to_be_bytes();
    let source: SocketAddr = if syn {
        SocketAddr::from(([11 + a, b, c, d], 1000 + (number >> 8) as u16 % 60_000))
    } else {
        SocketAddr::from(([10, 0, 1, 9 + a], number as u16))
    };
    // Ports of the destination tell the flows of one host apart.
    let port = if syn { 80 } else { 1024 + (number >> 16) as u16 };
    let destination = SocketAddr::new(destination.parse().expect("an address"), port);
    let segment = Segment {
        seq: SeqNumber(number),
        payload: if syn { 0 } else { 200 + number % 1200 },
        flags: if syn { Flags::SYN } else { Flags::ACK },
        ttl: 64,
        ..Segment::default()
    };
    frame.resize(HEADER + 2000, 0);
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[12..HEADER].copy_from_slice(&[8, 0]);
    let length = wire::encode(&mut frame[HEADER..], &segment, source, destination, &[]).expect("it fits");
    frame.truncate(HEADER + length);
}
