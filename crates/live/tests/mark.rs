//! Super-packets of hosts that know nothing of them, on real frames: between two interfaces, beside a command, in front of a queue that
//! knows the marks, and played again in virtual time. Needs namespaces; says so and skips without.
#![cfg(target_os = "linux")]

use fleetfoot_core::flow::FlowId;
use fleetfoot_core::link::{Link, LinkConfig};
use fleetfoot_core::packet::{BufId, Packet, Segment};
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{AnyQueue, QueueEventKind};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::superpacket::group::{Declare, Grouper, Grouping, Mode};
use fleetfoot_core::superpacket::marker::{Marker, Marking, obstacle};
use fleetfoot_core::superpacket::{Layout, Mark, Role};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use fleetfoot_core::wire;
use fleetfoot_live::{
    Between, Clock, Direction, Emulator, Error, Event, MarkRules, Namespace, Network, Passage, RING, Shell,
    Tapped, Unmarked, switch_off_offloads, tap, thread_id,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;

fn skips() -> bool {
    match Namespace::available() {
        Ok(()) => false,
        Err(reason) => {
            println!("skipped: {reason}");
            true
        }
    }
}

/// Long enough for a burst of the kernel's on a busy machine.
fn rules() -> MarkRules {
    MarkRules {
        marking: Marking {
            t_buffer: Duration::from_millis(5),
            hold: Duration::from_millis(20),
            max: 10,
            by_write: false,
        },
        four: Some(Layout::LOCAL),
        six: None,
        udp: false,
        ports: Vec::new(),
        networks: Vec::new(),
        mtu: 1500,
        seed: 11,
        lies: Vec::new(),
    }
}

const A: &str = "10.77.0.1";
const C: &str = "10.77.0.2";

/// What was seen in a row A - marker - link - C.
struct Row {
    marker: Passage,
    link: Direction,
    /// What passed the marker, and the link, from A to C.
    at_marker: Vec<Tapped>,
    at_link: Vec<Tapped>,
}

/// Runs `client` in A and `server` in C. Frames from A pass the marker, and then a link with this queue.
fn row(
    marker: Passage,
    queue: Direction,
    client: impl FnOnce() + Send,
    server: impl FnOnce() + Send,
) -> Result<Row, Error> {
    let host = |name: &'static str,
                address: &'static str,
                reports: std::sync::mpsc::Sender<i32>,
                go: std::sync::mpsc::Receiver<()>,
                work: Box<dyn FnOnce() + Send + '_>| {
        Namespace::run(move |namespace| {
            let _ = reports.send(thread_id());
            go.recv().expect("the row is made");
            namespace.ip(&format!("address add {address}/24 dev eth0\nlink set eth0 up"))?;
            switch_off_offloads("eth0")?;
            let up = || {
                namespace
                    .shell("ip -o link show eth0")
                    .is_ok_and(|line| line.contains("state UP"))
            };
            let clock = Clock::start();
            assert!(
                Namespace::wait(&clock, Duration::from_secs(10), up),
                "{name} comes up"
            );
            work();
            Ok(())
        })
    };
    Namespace::run(|middle| {
        let ((a_reports, a_there), (c_reports, c_there)) = (channel(), channel());
        let ((a_go, a_goes), (c_go, c_goes)) = (channel(), channel());
        let (stop_reading, stop_writing) = std::io::pipe().expect("a pipe");
        let (mut marker, mut queue) = (marker, queue);
        let ([to_marker, _], from_marker) = tap(RING);
        let ([to_link, _], from_link) = tap(RING);
        marker.observe(to_marker);
        queue.observe(to_link);
        let back = direction("drop-tail", &[], 1_000_000_000);
        std::thread::scope(|scope| {
            let a = scope.spawn(move || host("A", A, a_reports, a_goes, Box::new(client)));
            let c = scope.spawn(move || host("C", C, c_reports, c_goes, Box::new(server)));
            let ids = [
                a_there.recv().expect("A is there"),
                c_there.recv().expect("C is there"),
            ];
            middle.ip(&format!(
                "link add m0 type veth peer name eth0 netns {}\nlink add m1 type veth peer name l0\nlink add l1 type veth peer name eth0 netns {}",
                ids[0], ids[1]
            ))?;
            for name in ["m0", "m1", "l0", "l1"] {
                middle.sysctl(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1")?;
                middle.ip(&format!("link set {name} up"))?;
                switch_off_offloads(name)?;
            }
            let between = Between::prepare(["m0", "m1"])?;
            let stop = &stop_reading;
            let marking = scope.spawn(move || between.run([marker, Passage::plain()], stop));
            let linking = scope.spawn(move || {
                let mut emulator = Emulator::new(["l0", "l1"], 1500, [queue, back])?;
                emulator.run(&Clock::start(), stop)?;
                Ok::<_, Error>(emulator.into_directions())
            });
            for go in [c_go, a_go] {
                go.send(()).expect("it waits");
            }
            let ended = [a, c].map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            drop(stop_writing);
            let passed = marking.join().expect("no panic")?;
            let [link, _] = linking.join().expect("no panic")?;
            ended.into_iter().collect::<Result<Vec<()>, Error>>()?;
            assert_eq!(passed.missed, 0);
            let [marker, _] = passed.directions;
            assert_eq!((from_marker.lost(), from_link.lost()), (0, 0));
            Ok(Row {
                marker,
                link,
                at_marker: std::iter::from_fn(|| from_marker.next()).collect(),
                at_link: std::iter::from_fn(|| from_link.next()).collect(),
            })
        })
    })
}

fn direction(queue: &str, set: &[(&str, Value)], bps: u64) -> Direction {
    let config = LinkConfig::new(Rate::from_bps(bps), Duration::from_micros(100));
    let entry = AnyQueue::entry_among(&[], queue).expect("a registered queue");
    let mut values = Values::defaults(entry.parameters);
    for &(name, value) in set {
        values.set(name, value).expect("a parameter of the queue");
    }
    let queue = AnyQueue::build_among(&[], entry.name, &values, &config.link_context(1)).expect("a queue");
    Direction::new(Link::new(queue, &config, 1, "test"))
}

/// The strict form of the queue: every promise is kept, so super-packets are admitted or dropped as a whole
/// (docs/design/super-packets.md#i4).
fn strict() -> Direction {
    let set = [("weight", Value::Number(1.0)), ("need", Value::Choice("length"))];
    direction("superpacket", &set, 50_000_000)
}

const FLOWS: usize = 40;
/// Ten segments of 1448 bytes: an initial window.
const BURST: usize = 14_480;

/// Connections first, then a burst on each of them, one after the other, and another when all are through.
fn bursts() {
    let mut streams: Vec<TcpStream> = (0..FLOWS)
        .map(|_| TcpStream::connect((C, 7000)).expect("C listens"))
        .collect();
    for _ in 0..2 {
        for stream in &mut streams {
            stream.write_all(&[7; BURST]).expect("the window is open");
        }
        for stream in &mut streams {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("C has got it all");
        }
    }
}

fn takes_bursts() {
    let listener = TcpListener::bind("0.0.0.0:7000").expect("a port");
    std::thread::scope(|scope| {
        for _ in 0..FLOWS {
            let (mut stream, _) = listener.accept().expect("A comes");
            scope.spawn(move || {
                let mut burst = vec![0; BURST];
                for _ in 0..2 {
                    stream.read_exact(&mut burst).expect("all of it");
                    assert!(burst.iter().all(|&byte| byte == 7), "as it was sent");
                    stream.write_all(b".").expect("A listens");
                }
            });
        }
    });
}

/// The whole packet that a record stands for: what a tap cuts off is zero, and the checksum is made right.
fn packet(tapped: &Tapped) -> Option<wire::Parsed> {
    let mut bytes = tapped.frame().to_vec();
    bytes.resize(tapped.length as usize, 0);
    let network = bytes.get_mut(14..)?;
    if network.first()? >> 4 != 4 || network.get(9)? != &6 {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([network[2], network[3]]));
    let address =
        |at: usize| std::net::Ipv4Addr::new(network[at], network[at + 1], network[at + 2], network[at + 3]);
    let mut sum =
        wire::checksum::Sum::pseudo_header(address(12).into(), address(16).into(), 6, total as u32 - 20);
    network[36..38].fill(0);
    sum.add(&network[20..total]);
    let sum = sum.finish().to_be_bytes();
    network[36..38].copy_from_slice(&sum);
    wire::parse(network).ok()
}

/// A packet of a flow: port of A, sequence number, payload, mark.
type Seen = (u16, u32, u32, Mark);

fn seen(parsed: &wire::Parsed) -> Seen {
    let Segment { seq, payload, .. } = parsed.segment;
    (
        parsed.source.port(),
        seq.0,
        payload,
        Layout::LOCAL.decode(&parsed.segment),
    )
}

/// Super-packets that reached the link, or without marks the bursts: by the port and what they have in common, how many packets
/// entered and how many were dropped.
fn fates(records: &[Tapped], marked: bool) -> BTreeMap<(u16, u32), (u32, u32)> {
    let mut groups: BTreeMap<(u16, u32), (u32, u32)> = BTreeMap::new();
    // The group of a packet by its port, identifier and sequence number, and the newest group of a port and identifier.
    let (mut members, mut newest, mut count) = (BTreeMap::new(), BTreeMap::new(), 0);
    for tapped in records {
        let Some(parsed) = packet(tapped) else { continue };
        let (port, seq, payload, mark) = seen(&parsed);
        if payload == 0 || marked == mark.is_regular() {
            continue;
        }
        match tapped.event {
            Event::Entered => {
                if mark.role == Role::First {
                    count += 1;
                    newest.insert((port, mark.id), count);
                }
                // Without marks a burst is what a connection sent at first.
                let group = newest.get(&(port, mark.id)).copied().unwrap_or_default();
                if members.insert((port, mark.id, seq), group).is_none() || marked {
                    groups.entry((port, group)).or_default().0 += 1;
                }
            }
            Event::Dropped(_) => {
                if let Some(&group) = members.get(&(port, mark.id, seq)) {
                    groups.entry((port, group)).or_default().1 += 1;
                }
            }
            Event::Left { .. } | Event::Refused(_) => {}
        }
    }
    groups
}

#[test]
fn marked_bursts_are_admitted_or_dropped_whole_and_the_marks_are_those_of_virtual_time() {
    if skips() {
        return;
    }
    let row = row(Passage::marking(rules()), strict(), bursts, takes_bursts).expect("namespaces are there");
    let marked = row.marker.marked();
    println!(
        "lengths: {:?}",
        marked
            .groups
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .collect::<Vec<_>>()
    );
    assert_eq!(
        marked.packets + marked.unmarked_packets(),
        row.marker.measured().arrived
    );
    assert_eq!(
        marked.unmarked[Unmarked::Checksum as usize] + marked.unmarked[Unmarked::Malformed as usize],
        0
    );
    assert!(marked.packets > 0, "a burst of the kernel's is a super-packet");
    assert!(marked.held.max() <= rules().marking.hold.as_nanos());

    // At the queue: whole or not at all.
    let groups = fates(&row.at_link, true);
    let dropped: Vec<(u32, u32)> = groups
        .values()
        .copied()
        .filter(|&(_, dropped)| dropped > 0)
        .collect();
    let events = |kind| row.link.statistics().count(kind);
    println!(
        "{} super-packets at the queue, {} dropped; refused {}, orphans {}, broken promises {}",
        groups.len(),
        dropped.len(),
        events(QueueEventKind::Refused),
        events(QueueEventKind::Orphan),
        events(QueueEventKind::BrokenPromise)
    );
    assert_eq!(
        groups.len() as u64,
        marked.groups.iter().sum::<u64>(),
        "all of them came to the queue"
    );
    for (group, &(entered, dropped)) in &groups {
        assert!(
            dropped == 0 || dropped == entered,
            "{group:?}: {dropped} of {entered}"
        );
    }
    assert_eq!(events(QueueEventKind::BrokenPromise), 0);
    assert_eq!(events(QueueEventKind::Refused), dropped.len() as u64);
    let followers: u32 = dropped.iter().map(|(entered, _)| entered - 1).sum();
    assert_eq!(events(QueueEventKind::Orphan), u64::from(followers));

    replayed(&row.at_marker);
}

/// What entered the marker, played again in virtual time: the same packets leave in the same order with the same marks, and the
/// groups are those that the simulator's hosts make.
fn replayed(records: &[Tapped]) {
    let MarkRules { marking, seed, .. } = rules();
    let (mut marker, mut flows) = (Marker::new(marking, seed), BTreeMap::new());
    let mut groupers: BTreeMap<u16, Grouper> = BTreeMap::new();
    let grouping = Grouping {
        mode: Mode::BoundedTimer {
            t_buffer: marking.t_buffer,
            hold: marking.hold,
        },
        layout: Layout::LOCAL,
        max: marking.max,
        declare: Declare::Truth,
    };
    let (mut expected, mut left, mut simulated) = (Vec::new(), Vec::new(), Vec::new());
    let zero = records.first().map_or(0, |first| first.unix_ns);
    let mut end = Instant::ZERO;
    for tapped in records {
        let Some(parsed) = packet(tapped) else { continue };
        match tapped.event {
            Event::Entered => {}
            Event::Left { .. } => {
                expected.push(seen(&parsed));
                continue;
            }
            Event::Dropped(_) | Event::Refused(_) => unreachable!("no frame is lost here"),
        }
        let port = parsed.source.port();
        end = Instant::from_nanos(tapped.unix_ns - zero);
        let next = FlowId(flows.len() as u32);
        let packet = Packet {
            enqueued_at: Instant::ZERO,
            flow: *flows.entry(port).or_insert(next),
            buf: BufId::NONE,
            segment: parsed.segment,
        };
        let layout = obstacle(Layout::LOCAL, &parsed.segment)
            .is_none()
            .then_some(Layout::LOCAL);
        assert!(layout.is_some(), "TCP of Linux does not fragment: {parsed:?}");
        marker.on_packet(end, packet, layout);
        let grouper = groupers
            .entry(port)
            .or_insert_with(|| Grouper::new(grouping, Rng::from_seed(1)));
        while let Some(at) = grouper.poll_timeout().filter(|&at| at <= end) {
            let released = std::iter::from_fn(|| grouper.poll_transmit(at));
            simulated.extend(released.map(|outgoing| (port, outgoing.packet)));
        }
        grouper.on_packet(end, parsed.segment);
        simulated.extend(
            std::iter::from_fn(|| grouper.poll_transmit(end)).map(|outgoing| (port, outgoing.packet)),
        );
    }
    marker.on_timeout(end + marking.hold);
    while let Some(released) = marker.poll_packet() {
        let port = flows
            .iter()
            .find(|(_, flow)| **flow == released.packet.flow)
            .expect("a flow")
            .0;
        let Segment { seq, payload, .. } = released.packet.segment;
        left.push((*port, seq.0, payload, released.mark));
    }
    assert!(
        left.len() > 800,
        "two bursts of ten on forty connections: {}",
        left.len()
    );
    assert_eq!(left, expected, "in order, with their marks");
    for (port, grouper) in &mut groupers {
        let port = *port;
        let rest = std::iter::from_fn(|| grouper.poll_transmit(end + marking.hold));
        simulated.extend(rest.map(|outgoing| (port, outgoing.packet)));
    }
    let shape =
        |port: u16, seq: u32, payload: u32, mark: Mark| (port, seq, payload, mark.role as u8, mark.length);
    let mut simulated: Vec<_> = simulated
        .iter()
        .map(|(port, segment)| {
            shape(
                *port,
                segment.seq.0,
                segment.payload,
                Layout::LOCAL.decode(segment),
            )
        })
        .collect();
    let mut expected: Vec<_> = expected
        .iter()
        .map(|&(port, seq, payload, mark)| shape(port, seq, payload, mark))
        .collect();
    simulated.sort_unstable();
    expected.sort_unstable();
    assert_eq!(
        simulated, expected,
        "a host of the simulator makes the same groups"
    );
}

#[test]
fn unmarked_bursts_are_cut_by_the_same_queue() {
    if skips() {
        return;
    }
    let row = row(Passage::plain(), strict(), bursts, takes_bursts).expect("namespaces are there");
    assert_eq!(row.marker.marked().packets, 0);
    let bursts = fates(&row.at_link, false);
    let partly = bursts
        .values()
        .filter(|&&(entered, dropped)| dropped > 0 && dropped < entered)
        .count();
    let dropped: u32 = bursts.values().map(|&(_, dropped)| dropped).sum();
    println!(
        "{} connections, {partly} of them lost a part of what they sent, {dropped} packets in all",
        bursts.len()
    );
    if dropped < 20 {
        println!("not judged: the bursts came too slowly on this machine to overflow the queue");
        return;
    }
    assert!(partly > 0, "without marks the queue admits packet by packet");
}

#[test]
#[ignore = "a role of other tests"]
fn sends() {
    let port = std::env::var("FLEETFOOT_TEST_PORT").expect("set by the test");
    let host = std::env::var("FLEETFOOT_TEST_HOST").expect("set by the test");
    let host = std::env::var(host).expect("set inside");
    let to: SocketAddr = match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
    .parse()
    .expect("an address");
    let mut stream = TcpStream::connect(to).expect("the far end listens");
    stream.write_all(&pattern()).expect("room");
    stream.shutdown(std::net::Shutdown::Write).expect("it is open");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    assert_eq!(answer, b"all of it");
}

fn pattern() -> Vec<u8> {
    (0..300_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// Runs the role `sends` with its packets marked: what was marked.
fn sent(rules: MarkRules, host: &str) -> Passage {
    let listener = TcpListener::bind("[::]:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("all of it");
        assert!(bytes == pattern(), "as it was sent");
        stream.write_all(b"all of it").expect("it is open");
    });
    let program = std::env::current_exe().expect("this program has a path");
    let command = [
        OsString::from("env"),
        format!("FLEETFOOT_TEST_PORT={port}").into(),
        format!("FLEETFOOT_TEST_HOST={host}").into(),
        program.into(),
        "--exact".into(),
        "sends".into(),
        "--ignored".into(),
    ];
    let shell = Shell {
        command: command.into(),
        mtu: 1500,
        six_room: rules.six.map_or(0, |layout| layout.overhead().into()),
        ..Shell::default()
    };
    let finished = shell
        .run([Passage::marking(rules), Passage::plain()])
        .expect("namespaces are there");
    assert!(finished.status.success());
    server.join().expect("the server is content");
    assert_eq!(finished.missed, 0);
    let [passage, _] = finished.directions;
    let marked = passage.marked();
    assert_eq!(
        marked.packets + marked.unmarked_packets(),
        passage.measured().arrived
    );
    assert_eq!(passage.measured().refused_packets(), 0);
    passage
}

#[test]
fn a_command_s_packets_are_marked_in_each_layout_and_arrive() {
    if skips() {
        return;
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            Shell::isolate().expect("root may");
            let count = |passage: &Passage, reason: Unmarked| passage.marked().unmarked[reason as usize];
            for layout in [Layout::A, Layout::LOCAL] {
                let passage = sent(
                    MarkRules {
                        four: Some(layout),
                        ..rules()
                    },
                    "FLEETFOOT_FAR",
                );
                assert!(passage.marked().packets > 100, "{:?}", passage.marked());
            }
            let six = MarkRules {
                four: None,
                six: Some(Layout::C),
                ..rules()
            };
            let passage = sent(six.clone(), "FLEETFOOT_FAR6");
            assert!(passage.marked().packets > 100, "{:?}", passage.marked());
            assert_eq!(
                count(&passage, Unmarked::Room),
                0,
                "hosts leave room for the option"
            );
            // What was not chosen passes, and is counted.
            let passage = sent(six, "FLEETFOOT_FAR");
            assert_eq!(passage.marked().packets, 0);
            assert!(count(&passage, Unmarked::Family) > 100);
            let elsewhere = Network {
                address: "192.0.2.0".parse().expect("an address"),
                prefix: 24,
            };
            let passage = sent(
                MarkRules {
                    networks: vec![elsewhere],
                    ..rules()
                },
                "FLEETFOOT_FAR",
            );
            assert!(passage.marked().packets == 0 && count(&passage, Unmarked::NotSelected) > 100);
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
