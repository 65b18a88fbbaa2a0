use super::Program;
use crate::frames::{self, HEADER};
use crate::router::packet::{self, Discard, Fate};
use crate::xdp::calls::{bpf, check, halves, owned};
use crate::xdp::memory::Rings;
use crate::xdp::own::{Addresses, Own};
use fleetfoot_core::packet::{Flags, Kind, Segment};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::wire;
use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PASS: u32 = 2;
const REDIRECT: u32 = 4;

fn ours() -> HashSet<IpAddr> {
    let texts = ["10.0.0.1", "192.0.2.77", "fd00::1", "fe80::1"];
    texts.map(|text| text.parse().expect("an address")).into()
}

fn addresses() -> Addresses {
    let mut destinations = ours();
    destinations.insert(Ipv4Addr::BROADCAST.into());
    Addresses {
        hardware: OWN,
        destinations,
    }
}

/// The program of a router in the kernel, at no interface.
struct Loaded {
    program: Program,
    own: Own,
    _socket: OwnedFd,
    _rings: Rings,
}

impl Loaded {
    /// `None`: this process may not, or the kernel cannot, which is said.
    fn new() -> Option<Loaded> {
        let loaded = Loaded::load();
        if let Err(cause) = &loaded
            && matches!(
                cause.raw_os_error(),
                Some(libc::EPERM | libc::EACCES | libc::EAFNOSUPPORT | libc::ENOSYS)
            )
        {
            println!("skipped: no program of AF_XDP can be loaded: {cause}");
            return None;
        }
        Some(loaded.expect("the program is sound"))
    }

    fn load() -> io::Result<Loaded> {
        // SAFETY: takes numbers only.
        let socket = owned(unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })?;
        let rings = Rings::new(&socket, 2048)?;
        let own = Own::new(&addresses())?;
        let program = Program::load(socket.as_raw_fd(), Some(&own)).map_err(|(_, cause)| cause)?;
        Ok(Loaded {
            program,
            own,
            _socket: socket,
            _rings: rings,
        })
    }

    /// What the program says of a frame.
    fn verdict(&self, frame: &[u8]) -> u32 {
        const TEST_RUN: i32 = 10;
        let mut out = [0_u8; 4096];
        let [data, copy] = [frame.as_ptr() as u64, out.as_mut_ptr() as u64].map(halves);
        let mut words = [0_u32; 20];
        words[..9].copy_from_slice(&[
            self.program.fd.as_raw_fd() as u32,
            0,
            frame.len() as u32,
            out.len() as u32,
            data[0],
            data[1],
            copy[0],
            copy[1],
            1, // once
        ]);
        check(bpf(TEST_RUN, &mut words)).expect("the program runs");
        assert_eq!(&out[..frame.len()], frame, "it changes nothing");
        words[1]
    }
}

fn frame(destination: &str) -> Vec<u8> {
    let source = if destination.contains(':') {
        "[fd00:9::1]:1"
    } else {
        "10.9.0.1:1"
    };
    let destination: IpAddr = destination.parse().expect("an address");
    let source: SocketAddr = source.parse().expect("an address");
    let mut segment = Segment {
        payload: 40,
        ttl: 9,
        flags: Flags::DF,
        ..Segment::default()
    };
    segment.set_kind(Kind::Datagram);
    let mut bytes = vec![0; HEADER + 200];
    bytes[..6].copy_from_slice(&OWN);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    bytes[12..HEADER].copy_from_slice(if source.is_ipv4() {
        &frames::IPV4
    } else {
        &frames::IPV6
    });
    let to = SocketAddr::new(destination, 2);
    let length = wire::encode(&mut bytes[HEADER..], &segment, source, to, &[]).expect("it fits");
    bytes.truncate(HEADER + length);
    bytes
}

/// The same with other bytes from `at` on.
fn with(destination: &str, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame(destination);
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

fn short(destination: &str, length: usize) -> Vec<u8> {
    let mut frame = frame(destination);
    frame.truncate(length);
    frame
}

fn tagged(destination: &str) -> Vec<u8> {
    behind([0x81, 0, 0, 7], frame(destination))
}

/// With priority 5 and VLAN 0.
fn with_priority(frame: Vec<u8>) -> Vec<u8> {
    behind([0x81, 0, 0xa0, 0], frame)
}

fn behind(tag: [u8; 4], mut frame: Vec<u8>) -> Vec<u8> {
    frame.splice(12..12, tag);
    frame
}

#[test]
fn what_is_for_this_machine_is_the_kernels_and_nothing_else() {
    let Some(mut loaded) = Loaded::new() else { return };
    let (mut count, mut bytes) = (0, 0);
    for (what, frame, wanted) in [
        ("forwarded", frame("10.0.2.1"), REDIRECT),
        ("forwarded, IPv6", frame("fd00:2::1"), REDIRECT),
        ("its address", frame("10.0.0.1"), PASS),
        ("its address, IPv6", frame("fd00::1"), PASS),
        ("one of another interface", frame("192.0.2.77"), PASS),
        ("its address on the link", frame("fe80::1"), PASS),
        ("another's on the link", frame("fe80::2"), REDIRECT),
        ("a group", frame("224.0.0.1"), PASS),
        ("the last group", frame("239.255.255.255"), PASS),
        ("below groups", frame("223.255.255.255"), REDIRECT),
        ("reserved", frame("240.0.0.1"), REDIRECT),
        ("all hosts", frame("255.255.255.255"), PASS),
        ("a group, IPv6", frame("ff02::1"), PASS),
        ("below groups, IPv6", frame("feff::1"), REDIRECT),
        ("itself, from outside", frame("127.0.0.1"), REDIRECT),
        ("itself, from outside, IPv6", frame("::1"), REDIRECT),
        (
            "its address in the other family",
            frame("::ffff:10.0.0.1"),
            REDIRECT,
        ),
        ("the same, without a mark", frame("a00:1::"), REDIRECT),
        ("another host's frame", with("10.0.2.1", 5, &[2]), PASS),
        ("the same, first bytes", with("10.0.2.1", 0, &[6]), PASS),
        ("a frame for all", with("10.0.2.1", 0, &[0xff; 6]), PASS),
        ("ARP", with("10.0.2.1", 12, &[8, 6]), PASS),
        ("nobody knows what", with("10.0.2.1", 12, &[0x88, 0xb5]), PASS),
        ("a tag", tagged("10.0.2.1"), PASS),
        ("a tag, to it", tagged("10.0.0.1"), PASS),
        (
            "a tag, VLAN 256",
            behind([0x81, 0, 1, 0], frame("10.0.2.1")),
            PASS,
        ),
        (
            "a tag of a provider",
            behind([0x88, 0xa8, 0, 7], frame("10.0.2.1")),
            PASS,
        ),
        (
            "a provider's priority",
            behind([0x88, 0xa8, 0xa0, 0], frame("10.0.2.1")),
            REDIRECT,
        ),
        (
            "a provider's priority, to it",
            behind([0x88, 0xa8, 0xa0, 0], frame("10.0.0.1")),
            PASS,
        ),
        ("a priority", with_priority(frame("10.0.2.1")), REDIRECT),
        ("a priority, IPv6", with_priority(frame("fd00:2::1")), REDIRECT),
        ("a priority, to it", with_priority(frame("10.0.0.1")), PASS),
        ("a priority, to it, IPv6", with_priority(frame("fd00::1")), PASS),
        ("a priority, to a group", with_priority(frame("224.0.0.1")), PASS),
        (
            "a priority, ARP",
            with_priority(with("10.0.2.1", 12, &[8, 6])),
            PASS,
        ),
        ("a priority and a tag", with_priority(tagged("10.0.2.1")), PASS),
        (
            "a priority, no whole header",
            with_priority(short("10.0.0.1", HEADER + 19)),
            REDIRECT,
        ),
        (
            "a priority, the shortest",
            with_priority(short("fd00::1", HEADER + 40)),
            PASS,
        ),
        (
            "half a tag",
            short("10.0.2.1", HEADER + 2)[..12]
                .iter()
                .copied()
                .chain([0x81, 0, 0])
                .collect(),
            PASS,
        ),
        ("a version", with("10.0.0.1", HEADER, &[0x65]), REDIRECT),
        ("a version, IPv6", with("fd00::1", HEADER, &[0x45]), REDIRECT),
        ("options", with("10.0.0.1", HEADER, &[0x4f]), PASS),
        ("a fragment", with("10.0.0.1", HEADER + 6, &[0x20, 9]), PASS),
        (
            "a fragment to be forwarded",
            with("10.0.2.1", HEADER + 6, &[0x20, 9]),
            REDIRECT,
        ),
        ("no whole header", short("10.0.0.1", HEADER + 19), REDIRECT),
        ("the shortest", short("10.0.0.1", HEADER + 20), PASS),
        ("no whole header, IPv6", short("fd00::1", HEADER + 39), REDIRECT),
        ("the shortest, IPv6", short("fd00::1", HEADER + 40), PASS),
    ] {
        assert_eq!(loaded.verdict(&frame), wanted, "{what}: {frame:02x?}");
        if wanted == PASS {
            count += 1;
            bytes += frame.len() as u64;
        }
    }
    assert_eq!(loaded.own.passed(), [count, bytes]);
    assert_eq!(loaded.own.passed(), [0, 0]);
}

#[test]
fn addresses_come_and_go_and_too_many_are_reported() {
    let Some(mut loaded) = Loaded::new() else { return };
    let to = |loaded: &Loaded, address: &str| loaded.verdict(&frame(address));
    let mut addresses = addresses();
    addresses
        .destinations
        .extend(["10.0.7.7", "fd00:7::7"].map(|text| text.parse::<IpAddr>().expect("an address")));
    assert_eq!([to(&loaded, "10.0.7.7"), to(&loaded, "fd00:7::7")], [REDIRECT; 2]);
    loaded.own.set(&addresses).expect("there is room");
    assert_eq!([to(&loaded, "10.0.7.7"), to(&loaded, "fd00:7::7")], [PASS; 2]);
    addresses.destinations = ours();
    loaded.own.set(&addresses).expect("there is room");
    assert_eq!([to(&loaded, "10.0.7.7"), to(&loaded, "fd00:7::7")], [REDIRECT; 2]);
    assert_eq!([to(&loaded, "10.0.0.1"), to(&loaded, "fd00::1")], [PASS; 2]);
    // Another Ethernet address.
    addresses.hardware = [2, 0, 0, 0, 1, 1];
    loaded.own.set(&addresses).expect("there is room");
    assert_eq!(to(&loaded, "10.0.2.1"), PASS);
    addresses.hardware = OWN;
    // One more than fit: which one is out is the table's matter.
    addresses.destinations = (0..=65_536)
        .map(|number| IpAddr::from(Ipv6Addr::from_bits(number)))
        .collect();
    assert!(loaded.own.set(&addresses).is_err());
    let out = |loaded: &Loaded| {
        let all = (0..=65_536).map(Ipv6Addr::from_bits);
        all.filter(|address| to(loaded, &address.to_string()) != PASS)
            .collect::<Vec<_>>()
    };
    let missing = out(&loaded);
    assert_eq!(missing.len(), 1);
    let leaves = Ipv6Addr::from_bits(if missing[0] == Ipv6Addr::from_bits(5) {
        6
    } else {
        5
    });
    addresses.destinations.remove(&IpAddr::from(leaves));
    loaded.own.set(&addresses).expect("there is room");
    assert_eq!(out(&loaded), [leaves]);
}

/// Frames of the fuzzer's corpus, damaged, judged by the program and by [`packet::fate`]: what the one leaves to the kernel is what the other does, but for
/// packets to this machine whose header is damaged.
#[test]
fn the_program_agrees_with_the_router_about_damaged_frames() {
    let Some(loaded) = Loaded::new() else { return };
    let folder = format!("{}/../../fuzz/corpus/router", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus is in the tree")
        .map(|file| file.expect("a file").path())
        .collect();
    paths.sort();
    let mut seeds: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| std::fs::read(path).expect("readable"))
        .collect();
    seeds.extend(
        [
            "10.0.0.1",
            "192.0.2.77",
            "fd00::1",
            "fe80::1",
            "224.0.0.9",
            "ff02::9",
        ]
        .map(frame),
    );
    seeds.extend(["10.0.0.1", "10.0.2.1", "fd00:2::1"].map(|to| with_priority(frame(to))));
    let mut rng = Rng::from_seed(1);
    let (mut kernel, mut socket, mut damaged) = (0_u32, 0_u32, 0_u32);
    for run in 0..40_000 {
        let mut frame = seeds[rng.below(seeds.len() as u64) as usize].clone();
        for _ in 0..rng.below(4) {
            let at = if rng.below(2) == 0 { 12 } else { 0 } + rng.below(48) as usize;
            if let Some(byte) = frame.get_mut(at) {
                *byte = match rng.below(3) {
                    0 => *byte ^ 1 << rng.below(8),
                    1 => [0, 4, 6, 8, 0x45, 0x60, 0xe0, 0xff][rng.below(8) as usize],
                    _ => rng.below(256) as u8,
                };
            }
        }
        if rng.below(8) == 0 {
            frame.truncate(rng.below(frame.len() as u64 + 1) as usize);
        }
        // Shorter ones the kernel does not run programs with.
        frame.resize(frame.len().clamp(HEADER, 2000), 0);
        // As the plane of a router.
        let mut untagged = Vec::new();
        let (mut read, mut seen) = (&frame, frames::read(&frame, None));
        if seen.network > HEADER && frames::take_priority_off(&frame, &mut untagged) {
            (read, seen) = (&untagged, frames::read(&untagged, None));
        }
        let fate = if seen.network > HEADER {
            Fate::Kernel
        } else {
            packet::fate(read, &seen, OWN, 1500, |address| ours().contains(address))
        };
        let verdict = loaded.verdict(&frame);
        let right = match fate {
            Fate::Kernel => verdict == PASS,
            Fate::Discard(Discard::Malformed | Discard::Truncated | Discard::HeaderChecksum) => {
                damaged += u32::from(verdict == PASS);
                verdict == PASS || verdict == REDIRECT
            }
            Fate::Discard(_) | Fate::Forward(_) => verdict == REDIRECT,
        };
        assert!(right, "input {run}: {fate:?}, but {verdict}: {frame:02x?}");
        kernel += u32::from(fate == Fate::Kernel);
        socket += u32::from(verdict == REDIRECT);
    }
    println!("{kernel} the kernel's, {socket} the router's, {damaged} damaged ones to this machine");
    assert!(
        kernel > 2000 && socket > 2000 && damaged > 20,
        "{kernel}, {socket}, {damaged}"
    );
}
