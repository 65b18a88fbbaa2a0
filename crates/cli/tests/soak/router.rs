//! Kernel TCP and numbered datagrams both ways at once through `fleetfoot router`, which meanwhile is reloaded with other queues and rates,
//! loses an interface, and is killed and started again.

use crate::bytes::Stream;
use crate::datagrams::{self, Flow, stay_on_one_core};
use crate::parts::{self, Done};
use crate::program::{Program, nothing_is_left, own_descriptors, state_of};
use crate::row::{Row, skips};
use crate::{Folder, alone};
use nix::sys::signal::Signal;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What one part is made of.
#[derive(Clone, Copy)]
struct Part {
    routed: bool,
    ring: &'static str,
    mtu: u32,
    v6: bool,
    connections: usize,
    /// Bytes that pass each way at least.
    bytes: u64,
    /// Each reload takes the next queue for each interface; words of the table `queue` after `kind`.
    queues: &'static [&'static str],
    /// Each reload takes the next rate for each interface; an empty one is line rate.
    rates: &'static [&'static str],
    /// Between two reloads.
    reload: Duration,
    /// So many reloads from one cut of an interface, or one kill, to the next.
    cut: u64,
    kill: u64,
}

impl Part {
    /// Whether frames of this MTU fit into the memory of AF_XDP.
    const fn carried_by_xdp(&self) -> bool {
        self.mtu < 3800
    }
}

const MIB: u64 = 1 << 20;

/// Every queue that a kernel's traffic can be given to, at line rate and before links of several speeds.
const QUEUES: [&str; 17] = [
    "fq-codel",
    "favourtail",
    "drop-tail",
    "sp-h",
    "pie",
    "sp-fq",
    "drr",
    "superpacket",
    "codel",
    "cake",
    "red",
    "fq-pie",
    "dualpi2",
    "sfq",
    "two-queue",
    "least-attained",
    "hull",
];

const PART: Part = Part {
    routed: false,
    ring: "frames",
    mtu: 1500,
    v6: false,
    connections: 8,
    bytes: 2048 * MIB,
    queues: &QUEUES,
    rates: &[""],
    reload: Duration::from_secs(1),
    cut: 6,
    kill: 11,
};

/// One after the other, again and again.
const PARTS: [Part; 8] = [
    PART,
    Part {
        routed: true,
        ring: "blocks",
        connections: 4,
        ..PART
    },
    Part {
        mtu: 9000,
        v6: true,
        connections: 16,
        bytes: 4096 * MIB,
        ..PART
    },
    Part {
        rates: &["", "4 Gbit/s", "8 Gbit/s"],
        ring: "blocks",
        ..PART
    },
    Part {
        routed: true,
        mtu: 9000,
        connections: 2,
        bytes: 4096 * MIB,
        ..PART
    },
    Part {
        rates: &["400 Mbit/s", "200 Mbit/s", ""],
        routed: true,
        connections: 30,
        bytes: 512 * MIB,
        ..PART
    },
    Part {
        mtu: 9000,
        ring: "blocks",
        connections: 100,
        bytes: 4096 * MIB,
        ..PART
    },
    Part {
        rates: &["100 Mbit/s", "60 Mbit/s"],
        v6: true,
        bytes: 64 * MIB,
        ..PART
    },
];

#[test]
fn a_router_that_is_reloaded_cut_off_and_killed_carries_every_byte() {
    if skips() {
        return;
    }
    let part = Part {
        bytes: 24 * MIB,
        reload: Duration::from_millis(200),
        cut: 3,
        kill: 4,
        connections: 4,
        rates: &["", "800 Mbit/s"],
        ..PART
    };
    for routed in [false, true] {
        let done = play(part, 0, if routed { "routed" } else { "bridged" }, routed);
        println!("{}", done.what);
    }
    if cfg!(feature = "xdp") {
        let part = Part { ring: "xdp", ..part };
        for routed in [false, true] {
            let name = if routed { "xdp-routed" } else { "xdp" };
            println!("{}", play(part, 0, name, routed).what);
        }
    }
}

#[test]
#[ignore = "takes minutes: make test-all and make soak-path run it"]
fn gibibytes_through_a_router() {
    if skips() {
        return;
    }
    let (ring, mode) = (
        chosen("FLEETFOOT_SOAK_RING", &["frames", "blocks", "xdp"]),
        chosen("FLEETFOOT_SOAK_MODE", &["bridge", "route"]),
    );
    assert!(
        ring != Some("xdp") || cfg!(feature = "xdp"),
        "AF_XDP is not built in"
    );
    let parts: Vec<Part> = PARTS
        .into_iter()
        .filter(|part| ring != Some("xdp") || part.carried_by_xdp())
        .collect();
    parts::play("router", 4, |number| {
        let mut part = parts[number % parts.len()];
        // Where it is built, AF_XDP has every other part that it can carry.
        if cfg!(feature = "xdp") && part.carried_by_xdp() && (number / parts.len()).is_multiple_of(2) {
            part.ring = "xdp";
        }
        part.ring = ring.unwrap_or(part.ring);
        part.routed = mode.map_or(part.routed, |mode| mode == "route");
        play(part, number, "long", part.routed)
    });
}

/// The one of `words` that the environment asks for, if it asks for one.
fn chosen(variable: &str, words: &[&'static str]) -> Option<&'static str> {
    let asked = std::env::var(variable).ok()?;
    let found = words.iter().find(|word| **word == asked);
    Some(found.unwrap_or_else(|| panic!("{variable} is one of {words:?}, not {asked}")))
}

fn play(part: Part, number: usize, name: &str, routed: bool) -> Done {
    let _alone = alone();
    let before = own_descriptors();
    let part = Part { routed, ..part };
    let done = run(part, number, name);
    nothing_is_left(before);
    done
}

fn run(part: Part, number: usize, name: &str) -> Done {
    let folder = Folder::new(&format!("router-{name}"));
    let row = if part.routed {
        Row::routed()
    } else {
        Row::bridged()
    };
    for (place, name) in [
        (&row.near, "a0"),
        (&row.middle, "b0"),
        (&row.middle, "b1"),
        (&row.far, "c0"),
    ] {
        place.ip(&format!("link set {name} mtu {}", part.mtu));
    }
    // The addresses of an interface that is cut off stay, as an operator's network manager sees to.
    row.middle
        .run(|| std::fs::write("/proc/sys/net/ipv6/conf/all/keep_addr_on_down", "1").expect("root may"));
    let [near, far]: [IpAddr; 2] = match (part.routed, part.v6) {
        (false, false) => ["10.0.1.1", "10.0.1.3"],
        (false, true) => ["fd00:1::1", "fd00:1::3"],
        (true, false) => ["10.0.1.1", "10.0.2.1"],
        (true, true) => ["fd00:1::1", "fd00:2::1"],
    }
    .map(|text| text.parse().expect("an address"));
    let untouched = state_of(&row.middle);
    let mut router = Routing::start(&row, &folder, part, number);
    // While a kernel asks for a neighbour it lets datagrams wait, and one that is sent when the answer comes overtakes them: the
    // hosts know each other, or the router, for good.
    for (host, name, to) in [(&row.near, "a0", far), (&row.far, "c0", near)] {
        host.shell(&format!(
            "ping -c 1 -w 10 {to} >/dev/null && ip neighbour show dev {name} | while read address lladdr hardware state; do
                [ \"$lladdr\" = lladdr ] && ip neighbour replace $address lladdr $hardware dev {name} nud permanent
            done; ip neighbour show dev {name} | grep -q PERMANENT"
        ));
    }
    let (stop, moved) = (AtomicBool::new(false), [AtomicU64::new(0), AtomicU64::new(0)]);
    let began = Instant::now();
    let (flows, longest) = std::thread::scope(|scope| {
        let (row, stop, moved) = (&row, &stop, &moved);
        let streams = scope.spawn(move || streams(row, far, part.connections, stop, moved));
        let there = scope.spawn(move || datagrams::flow(&row.near, &row.far, far, 1, stop));
        let back = scope.spawn(move || datagrams::flow(&row.far, &row.near, near, 2, stop));
        // Whatever comes of this thread, the others end.
        let stopper = Stopper(stop);
        let longest = router.disturb(moved, part.bytes, &|| streams.is_finished());
        drop(stopper);
        streams.join().expect("every byte was right");
        let flows = [there, back].map(|flow| flow.join().expect("datagrams were in order"));
        (flows, longest)
    });
    let took = began.elapsed();
    for flow in flows {
        // Beside streams that fill every queue, and with nobody there for a while, some are lost.
        assert!(flow.arrived * 4 > flow.sent && flow.sent > 100, "{flows:?}");
    }
    let what = router.end(took, flows, longest);
    // The neighbours of a cut are asked for again, and what came up is up.
    row.wait_for("b0");
    row.wait_for("b1");
    let began = Instant::now();
    while state_of(&row.middle) != untouched {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "before: {untouched}\nafter: {}",
            state_of(&row.middle)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Done {
        bytes: [0, 1].map(|way| moved[way].load(Ordering::Relaxed)),
        what,
    }
}

struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The router and what is done to it.
struct Routing<'a> {
    row: &'a Row,
    folder: &'a Folder,
    part: Part,
    program: Option<Program>,
    /// Which queues and rates come next.
    next: usize,
    reloads: u64,
    cuts: u64,
    kills: u64,
    peak: u64,
}

impl<'a> Routing<'a> {
    fn start(row: &'a Row, folder: &'a Folder, part: Part, number: usize) -> Routing<'a> {
        let mut routing = Routing {
            row,
            folder,
            part,
            program: None,
            next: 3 * number,
            reloads: 0,
            cuts: 0,
            kills: 0,
            peak: 0,
        };
        routing.begin();
        routing
    }

    fn begin(&mut self) {
        self.write();
        let path = self.folder.path().join("router.toml");
        let path = path.to_str().expect("text");
        let started = "\"event\":\"started\"";
        let program = Program::start(
            &self.row.middle,
            self.folder,
            "router",
            &["router", path, "--json"],
            started,
        );
        // So that whatever overtakes something has done so in the router, and not in a queue that the kernel has for each core.
        stay_on_one_core(program.pid());
        self.program = Some(program);
    }

    fn program(&mut self) -> &mut Program {
        self.program.as_mut().expect("it runs")
    }

    /// The next file.
    fn write(&mut self) {
        let part = self.part;
        let mut text = format!(
            "mode = \"{}\"\n[log]\nformat = \"json\"\n[metrics]\nlisten = \"127.0.0.1:9105\"\n",
            if part.routed { "route" } else { "bridge" }
        );
        for (index, name) in ["b0", "b1"].iter().enumerate() {
            let queue = part.queues[(self.next * 2 + index * 5) % part.queues.len()];
            let rate = part.rates[(self.next + index) % part.rates.len()];
            let limit = 100 + 300 * (self.next % 4);
            let _ = write!(
                text,
                "[[interface]]\nname = \"{name}\"\nring = \"{}\"\nqueue = {{ kind = \"{queue}\", limit = \"{limit} packets\" }}\n",
                part.ring
            );
            if !rate.is_empty() {
                let _ = writeln!(text, "rate = \"{rate}\"");
            }
        }
        if part.routed {
            for (to, interface) in [
                ("10.0.1.0/24", "b0"),
                ("10.0.2.0/24", "b1"),
                ("fd00:1::/64", "b0"),
                ("fd00:2::/64", "b1"),
            ] {
                let _ = write!(text, "[[route]]\nto = \"{to}\"\ninterface = \"{interface}\"\n");
            }
        }
        self.next += 1;
        std::fs::write(self.folder.path().join("router.toml"), text).expect("a file");
    }

    /// Reloads, and cuts and kills what passes again, until `bytes` have passed each way and each has been done: the longest time in which
    /// nothing passed.
    fn disturb(&mut self, moved: &[AtomicU64; 2], bytes: u64, broken: &dyn Fn() -> bool) -> Duration {
        let begin = self.program().rests();
        let mut tick = 0;
        let (mut next_cut, mut next_kill, mut disturbed) = (self.part.cut, self.part.kill, [0; 2]);
        let (mut last, mut since, mut longest) = ([0; 2], Instant::now(), Duration::ZERO);
        loop {
            std::thread::sleep(self.part.reload);
            tick += 1;
            self.reload();
            let now = [0, 1].map(|way: usize| moved[way].load(Ordering::Relaxed));
            // On a slow machine neighbours are not found again before the next cut, and senders wait longer each time: only what passes
            // again is disturbed again.
            if [0, 1].iter().all(|&way: &usize| now[way] > disturbed[way]) {
                let cuts = tick >= next_cut;
                if cuts {
                    self.cut();
                    next_cut = tick + self.part.cut;
                }
                let kills = tick >= next_kill;
                if kills {
                    self.peak = self.peak.max(self.program().peak_memory());
                    self.kill();
                    next_kill = tick + self.part.kill;
                }
                if cuts || kills {
                    disturbed = now;
                }
            }
            if now != last {
                longest = longest.max(since.elapsed());
                (last, since) = (now, Instant::now());
            }
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "nothing passes any more"
            );
            assert!(!broken(), "streams ended before their time");
            if now.iter().all(|&way| way >= bytes) && self.cuts > 0 && self.kills > 0 {
                break;
            }
        }
        assert_eq!(self.program().rests(), begin, "descriptors and threads");
        longest
    }

    fn reload(&mut self) {
        self.write();
        let done = "\"event\":\"reloaded\"";
        let before = self.program().said(done);
        self.program().signal(Signal::SIGHUP);
        self.program().until(|program| program.said(done) > before, done);
        self.reloads += 1;
        if self.reloads.is_multiple_of(3) {
            self.metrics();
        }
    }

    /// What the router says of itself.
    fn metrics(&mut self) -> String {
        self.row.middle.run(|| {
            let mut stream = TcpStream::connect("127.0.0.1:9105").expect("it listens");
            stream
                .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            answer
        })
    }

    fn cut(&mut self) {
        let name = ["b1", "b0"][(self.cuts % 2) as usize];
        self.row.middle.ip(&format!("link set {name} down"));
        std::thread::sleep(Duration::from_millis(20));
        self.row.middle.ip(&format!("link set {name} up"));
        self.cuts += 1;
    }

    fn kill(&mut self) {
        self.program.take().expect("it runs").kill();
        let left = state_of(&self.row.middle);
        assert!(!left.contains("promiscuity 1"), "{left}");
        self.begin();
        self.kills += 1;
    }

    /// Ends the router, with nothing in it: what happened.
    fn end(mut self, took: Duration, flows: [Flow; 2], longest: Duration) -> String {
        let began = Instant::now();
        loop {
            // What the kernels of both ends say to each other may be under way.
            let metrics = self.metrics();
            let mut kept = metrics
                .lines()
                .filter(|line| line.starts_with("fleetfoot_router_kept_frames{"));
            if kept.all(|line| line.ends_with(" 0")) {
                break;
            }
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "frames are kept: {metrics}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        self.peak = self.peak.max(self.program().peak_memory());
        // Rings, two outputs of as many frames as the longest limits of two queues one behind the other, and the program.
        let most = (64 << 20) + 2 * 4 * 1000 * (u64::from(self.part.mtu) + 1000);
        assert!(self.peak < most, "{} MiB", parts::mib(self.peak));
        let document = self.program.take().expect("it runs").end();
        assert!(document.contains("\"refused_reloads\": 0"), "{document}");
        let Part {
            routed,
            ring,
            mtu,
            v6,
            connections,
            ..
        } = self.part;
        format!(
            "{}, {ring}, IPv{}, MTU {mtu}, {connections} connections: {} reloads, {} cuts, {} kills in {:.1} s, silent {:.1} s at most; \
             datagrams {} of {} there, {} of {} back, in order; {:.0} MiB of memory",
            if routed { "router" } else { "bridge" },
            if v6 { 6 } else { 4 },
            self.reloads,
            self.cuts,
            self.kills,
            took.as_secs_f64(),
            longest.as_secs_f64(),
            flows[0].arrived,
            flows[0].sent,
            flows[1].arrived,
            flows[1].sent,
            parts::mib(self.peak),
        )
    }
}

/// Connections from the near to the far end that carry bytes both ways until `stop`, and then what is still under way.
fn streams(row: &Row, far: IpAddr, connections: usize, stop: &AtomicBool, moved: &[AtomicU64; 2]) {
    let at = SocketAddr::new(far, 7000);
    let listener = row.far.run(|| TcpListener::bind(at).expect("a port"));
    std::thread::scope(|scope| {
        let accepting = scope.spawn(move || {
            let accepted = listener.incoming().take(connections);
            let accepted: Vec<TcpStream> = accepted.map(|stream| stream.expect("a connection")).collect();
            accepted
        });
        // Connections that wait for their first packets begin one after the other, but at once where none is lost.
        let connect = || TcpStream::connect_timeout(&at, PATIENCE).expect("the far end is reached");
        let near: Vec<TcpStream> = row.near.run(|| (0..connections).map(|_| connect()).collect());
        let far = accepting.join().expect("all came");
        for (number, (stream, way)) in near
            .into_iter()
            .zip(std::iter::repeat(0))
            .chain(far.into_iter().zip(std::iter::repeat(1)))
            .enumerate()
        {
            let reading = stream.try_clone().expect("a descriptor");
            // The ends of a connection find each other by the port of the near one.
            let port = if way == 0 {
                stream.local_addr()
            } else {
                stream.peer_addr()
            };
            let port = u64::from(port.expect("it has one").port());
            let name = |part: &str| {
                std::thread::Builder::new()
                    .name(format!("{part} {number}"))
                    .stack_size(256 << 10)
            };
            name("writer")
                .spawn_scoped(scope, move || write(stream, Stream::new(2 * port + way), stop))
                .expect("a thread");
            name("reader")
                .spawn_scoped(scope, move || {
                    read(reading, Stream::new(2 * port + 1 - way), &moved[1 - way as usize]);
                })
                .expect("a thread");
        }
    });
}

/// Writes until `stop`, tells how much it was, and ends.
#[expect(clippy::needless_pass_by_value, reason = "a descriptor of its own")]
fn write(stream: TcpStream, mut bytes: Stream, stop: &AtomicBool) {
    stream.set_write_timeout(Some(PATIENCE)).expect("an option");
    while !stop.load(Ordering::Relaxed) {
        let length = bytes.next().len();
        (&stream).write_all(bytes.next()).expect("room");
        bytes.advance(length);
    }
    (&stream)
        .write_all(&bytes.position().to_be_bytes())
        .expect("room");
    stream.shutdown(Shutdown::Write).expect("open");
}

/// Reads to the end, compares with what was sent, and counts.
fn read(mut stream: TcpStream, mut bytes: Stream, moved: &AtomicU64) {
    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
    let mut buffer = vec![0; 1 << 17];
    // The last eight bytes that came may be the sender's count.
    let mut held = 0;
    loop {
        let length = stream.read(&mut buffer[held..]).expect("an end");
        if length == 0 {
            break;
        }
        held += length;
        let ready = held.saturating_sub(8);
        bytes.check(&buffer[..ready]);
        moved.fetch_add(ready as u64, Ordering::Relaxed);
        buffer.copy_within(ready..held, 0);
        held -= ready;
    }
    assert_eq!(
        buffer[..held],
        bytes.position().to_be_bytes(),
        "what the sender counted"
    );
}

/// So long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn the_kernels_bridge_takes_over_as_the_guide_says() {
    if skips() {
        return;
    }
    let _alone = alone();
    let folder = Folder::new("way-back");
    let row = Row::bridged();
    let routing = Routing::start(&row, &folder, PART, 0);
    let at = SocketAddr::from(([10, 0, 1, 3], 7000));
    let _listener = row.far.run(|| TcpListener::bind(at).expect("a port"));
    let reaches = || {
        row.near
            .run(|| TcpStream::connect_timeout(&at, Duration::from_millis(300)))
            .is_ok()
    };
    assert!(reaches());
    drop(routing);
    assert!(!reaches(), "a bridge that has ended carries nothing");
    // docs/data-path.md, the way back.
    let guide = include_str!("../../../../docs/data-path.md");
    let line = "`ip link add br0 type bridge; ip link set lan0 master br0; ip link set wan0 master br0; ip link set br0 up`";
    assert!(guide.contains(line), "the guide says something else");
    let words = line.trim_matches('`').replace("lan0", "b0").replace("wan0", "b1");
    row.middle.ip(&words.replace("ip ", "").replace("; ", "\n"));
    let began = Instant::now();
    // A port of a bridge listens for a while before it forwards.
    while !reaches() {
        assert!(
            began.elapsed() < PATIENCE,
            "nothing comes through the kernel's bridge"
        );
    }
}
