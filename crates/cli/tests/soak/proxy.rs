//! Conversations through `fleetfoot proxy`, alone and in a pair, with `fleetfoot router` on the way: both ends at once, either end first,
//! resets from either end. Meanwhile proxies are asked for reports, killed and started again, and what is said of the router in
//! [`router`](crate::router) happens to it.

use crate::bytes::Stream;
use crate::outages::Outages;
use crate::parts::{self, Done};
use crate::program::{Holds, Program, nothing_is_left, own_descriptors, state_of};
use crate::row::{Place, Row, skips};
use crate::{Folder, alone};
use nix::sys::signal::Signal;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What one part is made of.
#[derive(Clone, Copy)]
struct Part {
    pair: bool,
    v6: bool,
    connections: usize,
    /// Bytes that pass each way at least.
    bytes: u64,
    /// Most bytes of a conversation each way.
    longest: u64,
    /// Switches of our TCP.
    set: &'static [&'static str],
    /// The rate of the router's outputs; an empty one is line rate.
    rate: &'static str,
    /// Between two reports and reloads.
    tick: Duration,
    /// So many of them from one cut of an interface, or one kill, to the next.
    cut: u64,
    kill: u64,
}

const MIB: u64 = 1 << 20;

const PART: Part = Part {
    pair: false,
    v6: false,
    connections: 8,
    bytes: 512 * MIB,
    longest: 32 * MIB,
    set: &[],
    rate: "",
    tick: Duration::from_secs(1),
    cut: 5,
    kill: 4,
};

/// One after the other, again and again.
const PARTS: [Part; 6] = [
    PART,
    Part { pair: true, ..PART },
    Part {
        connections: 64,
        longest: MIB,
        v6: true,
        set: &["tcp.rdb=one", "tcp.tail_loss_probe_restart=true"],
        ..PART
    },
    Part {
        pair: true,
        connections: 32,
        longest: 4 * MIB,
        v6: true,
        set: &["tcp.congestion_control=cdg"],
        ..PART
    },
    Part {
        connections: 2,
        longest: 128 * MIB,
        set: &["tcp.congestion_control=reno", "tcp.window_validation=newcwv"],
        ..PART
    },
    Part {
        pair: true,
        rate: "80 Mbit/s",
        longest: MIB,
        bytes: 64 * MIB,
        set: &["tcp.initial_spreading=bounded"],
        ..PART
    },
];

#[test]
fn proxies_that_are_killed_carry_every_byte_of_what_goes_on() {
    if skips() {
        return;
    }
    for pair in [false, true] {
        let part = Part {
            pair,
            bytes: 16 * MIB,
            longest: 2 * MIB,
            tick: Duration::from_millis(200),
            cut: 3,
            kill: 2,
            ..PART
        };
        println!("{}", play(part, if pair { "pair" } else { "single" }).what);
    }
}

#[test]
#[ignore = "takes minutes: make test-all and make soak-path run it"]
fn gibibytes_through_proxies() {
    if skips() {
        return;
    }
    parts::play("proxy", 1, |number| play(PARTS[number % PARTS.len()], "long"));
}

fn play(part: Part, name: &str) -> Done {
    let _alone = alone();
    let before = own_descriptors();
    let done = run(part, name);
    nothing_is_left(before);
    done
}

fn run(part: Part, name: &str) -> Done {
    let folder = Folder::new(&format!("proxy-{name}"));
    let row = Row::bridged();
    for (place, other, address) in [(&row.near, "9", "3"), (&row.far, "8", "1")] {
        place.run(|| {
            for path in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                std::fs::write(format!("/proc/sys/net/{path}"), "1").expect("root may");
            }
        });
        place.ip(&format!(
            "route add 10.{other}.0.0/24 via 10.0.1.{address}\n-6 route add fd00:{other}::/64 via fd00:1::{address}"
        ));
    }
    let target: SocketAddr = match (part.pair, part.v6) {
        (true, _) => "127.0.0.1:7",
        (false, false) => "10.0.1.3:7",
        (false, true) => "[fd00:1::3]:7",
    }
    .parse()
    .expect("an address");
    let listener = row.far.run(|| TcpListener::bind(target).expect("a port"));
    let way = Way {
        stop: AtomicBool::new(false),
        target_stops: AtomicBool::new(false),
        outages: Outages::default(),
        moved: [AtomicU64::new(0), AtomicU64::new(0)],
        conversations: AtomicU64::new(0),
        broken: AtomicU64::new(0),
    };
    let mut proxies = Proxies::start(&row, &folder, part, target);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let (row, way) = (&row, &way);
        let served = scope.spawn(move || serve(&listener, way));
        let clients: Vec<_> = (0..part.connections as u64)
            .map(|worker| scope.spawn(move || row.near.run(|| converse(worker, part, way))))
            .collect();
        let stopper = [Stopper(&way.target_stops), Stopper(&way.stop)];
        proxies.disturb(way, || {
            served.is_finished() || clients.iter().any(std::thread::ScopedJoinHandle::is_finished)
        });
        let [target_stops, stop] = stopper;
        drop(stop);
        for client in clients {
            client.join().expect("every byte was right");
        }
        drop(target_stops);
        served.join().expect("every byte was right");
    });
    let took = began.elapsed();
    let what = proxies.end(&way, took);
    Done {
        bytes: [0, 1].map(|at: usize| way.moved[at].load(Ordering::Relaxed)),
        what,
    }
}

struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The proxies, the router between them, and what is done to them.
struct Proxies<'a> {
    row: &'a Row,
    folder: &'a Folder,
    part: Part,
    target: SocketAddr,
    near: Option<Program>,
    far: Option<Program>,
    router: Option<Program>,
    /// The places of the near and of the far proxy before one ran.
    untouched: [String; 2],
    cuts: u64,
    kills: u64,
    reports: u64,
    peak: u64,
}

impl<'a> Proxies<'a> {
    fn start(row: &'a Row, folder: &'a Folder, part: Part, target: SocketAddr) -> Proxies<'a> {
        let mut proxies = Proxies {
            row,
            folder,
            part,
            target,
            near: None,
            far: None,
            router: None,
            untouched: [state_of(&row.near), state_of(&row.far)],
            cuts: 0,
            kills: 0,
            reports: 0,
            peak: 0,
        };
        proxies.router = Some(proxies.begin_router());
        if part.pair {
            proxies.far = Some(proxies.begin_far());
        }
        proxies.near = Some(proxies.begin_near());
        proxies
    }

    fn begin_router(&self) -> Program {
        self.write_router(0);
        let path = self.folder.path().join("router.toml");
        let path = path.to_str().expect("text");
        Program::start(
            &self.row.middle,
            self.folder,
            "router",
            &["router", path],
            " started ",
        )
    }

    fn write_router(&self, round: u64) {
        let queue = ["fq-codel", "favourtail", "drop-tail", "sp-fq"][(round % 4) as usize];
        let rate = if self.part.rate.is_empty() {
            String::new()
        } else {
            format!("rate = \"{}\"\n", self.part.rate)
        };
        let one = |name: &str| {
            format!(
                "[[interface]]\nname = \"{name}\"\nqueue = {{ kind = \"{queue}\", limit = \"400 packets\" }}\n{rate}"
            )
        };
        let text = format!("mode = \"bridge\"\n{}{}", one("b0"), one("b1"));
        std::fs::write(self.folder.path().join("router.toml"), text).expect("a file");
    }

    fn begin(&self, place: &Place, name: &str, arguments: &[&str]) -> Program {
        let mut all = vec!["proxy", "--json"];
        all.extend_from_slice(arguments);
        for set in self.part.set {
            all.extend_from_slice(&["--set", set]);
        }
        Program::start(place, self.folder, name, &all, "proxy at ")
    }

    fn begin_near(&self) -> Program {
        let target = match (self.part.pair, self.part.v6) {
            (true, false) => String::from("10.9.0.2:7000"),
            (true, true) => String::from("[fd00:9::2]:7000"),
            (false, _) => self.target.to_string(),
        };
        let own = ["--address", "10.8.0.2/24", "--address", "fd00:8::2/64"];
        self.begin(
            &self.row.near,
            "near",
            &[&own[..], &["--listen", "1080", "--to", &target]].concat(),
        )
    }

    fn begin_far(&self) -> Program {
        let own = ["--address", "10.9.0.2/24", "--address", "fd00:9::2/64"];
        let target = self.target.to_string();
        let allow = ["--allow", "10.8.0.2", "--allow", "fd00:8::2"];
        self.begin(
            &self.row.far,
            "far",
            &[&own[..], &allow, &["--accept", "7000", "--to", &target]].concat(),
        )
    }

    fn proxies(&self) -> impl Iterator<Item = &Program> {
        self.near.iter().chain(&self.far)
    }

    fn holds(&self) -> Vec<Holds> {
        self.proxies().map(Program::rests).collect()
    }

    fn note_memory(&mut self) {
        let most = self.proxies().map(Program::peak_memory).max();
        self.peak = self.peak.max(most.unwrap_or_default());
    }

    /// Asks for reports, reloads, cuts and kills until enough has passed each way and each has been done.
    fn disturb(&mut self, way: &Way, broken: impl Fn() -> bool) {
        let (mut last, mut since) = ([0; 2], Instant::now());
        let mut tick = 0;
        loop {
            std::thread::sleep(self.part.tick);
            tick += 1;
            for proxy in self.proxies() {
                proxy.signal(Signal::SIGUSR1);
            }
            self.reports += 1;
            self.write_router(tick);
            self.router.as_ref().expect("it runs").signal(Signal::SIGHUP);
            if tick % self.part.cut == 0 {
                let name = ["b1", "b0"][(self.cuts % 2) as usize];
                self.row.middle.ip(&format!("link set {name} down"));
                std::thread::sleep(Duration::from_millis(20));
                self.row.middle.ip(&format!("link set {name} up"));
                self.cuts += 1;
            }
            if tick % self.part.kill == 0 {
                self.kill(way);
            }
            let now = [0, 1].map(|at: usize| way.moved[at].load(Ordering::Relaxed));
            if now != last {
                (last, since) = (now, Instant::now());
            }
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "nothing passes any more"
            );
            assert!(!broken(), "a conversation ended before its time");
            let enough = now.iter().all(|&bytes| bytes >= self.part.bytes);
            if enough && self.cuts > 0 && self.kills > u64::from(self.part.pair) {
                return;
            }
        }
    }

    /// Kills one, which leaves nothing, and starts it again.
    fn kill(&mut self, way: &Way) {
        self.note_memory();
        let which = self.kills % (2 + u64::from(self.part.pair));
        self.kills += 1;
        if which == 1 {
            // TCP goes on over that.
            self.router.take().expect("it runs").kill();
            self.router = Some(self.begin_router());
            return;
        }
        way.outages.turn();
        let (place, before) = if which == 0 {
            self.near.take().expect("it runs").kill();
            (&self.row.near, &self.untouched[0])
        } else {
            self.far.take().expect("it runs").kill();
            (&self.row.far, &self.untouched[1])
        };
        assert_eq!(state_of(place), *before);
        if which == 0 {
            self.near = Some(self.begin_near());
        } else {
            self.far = Some(self.begin_far());
        }
        way.outages.turn();
    }

    /// Ends all, with nothing in them: what happened.
    fn end(mut self, way: &Way, took: Duration) -> String {
        // Nothing is open any more; what is left of connections ends by itself.
        let began = Instant::now();
        loop {
            let open: Vec<usize> = self.proxies().map(|proxy| proxy.said(" (0 open)")).collect();
            for proxy in self.proxies() {
                proxy.signal(Signal::SIGUSR1);
            }
            std::thread::sleep(Duration::from_millis(100));
            if self
                .proxies()
                .zip(open)
                .all(|(proxy, before)| proxy.said(" (0 open)") > before)
            {
                break;
            }
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "{}",
                self.proxies().map(Program::log).collect::<String>()
            );
        }
        // One that has just begun holds as much as one that has served.
        let served = self.holds();
        self.note_memory();
        for proxy in [self.near.take(), self.far.take()].into_iter().flatten() {
            let document: serde_json::Value = serde_json::from_str(&proxy.end()).expect("one document");
            assert_eq!(document["proxy"]["open"], 0, "{document}");
            assert_eq!(document["counters"]["lost_bytes"], 0, "{document}");
        }
        assert_eq!(
            [state_of(&self.row.near), state_of(&self.row.far)],
            self.untouched
        );
        if self.part.pair {
            self.far = Some(self.begin_far());
        }
        self.near = Some(self.begin_near());
        assert_eq!(served, self.holds(), "descriptors and threads");
        let most = (64 << 20) + self.part.connections as u64 * MOST_EACH;
        assert!(self.peak < most, "{:.0} MiB", parts::mib(self.peak));
        let Part {
            pair,
            v6,
            connections,
            set,
            ..
        } = self.part;
        format!(
            "{}, IPv{}, {connections} connections, {}: {} conversations, {} cut off by kills; {} reports, {} cuts, {} kills in {:.1} s; \
             {:.0} MiB of memory",
            if pair { "pair" } else { "one proxy" },
            if v6 { 6 } else { 4 },
            if set.is_empty() {
                String::from("as it comes")
            } else {
                set.join(" ")
            },
            way.conversations.load(Ordering::Relaxed),
            way.broken.load(Ordering::Relaxed),
            self.reports,
            self.cuts,
            self.kills,
            took.as_secs_f64(),
            parts::mib(self.peak),
        )
    }
}

/// What a connection may take: what waits in both directions between both TCPs and in their buffers.
const MOST_EACH: u64 = 4 << 20;

/// What both ends know.
struct Way {
    /// No conversation begins any more.
    stop: AtomicBool,
    /// No conversation is under way any more.
    target_stops: AtomicBool,
    outages: Outages,
    moved: [AtomicU64; 2],
    conversations: AtomicU64,
    broken: AtomicU64,
}

/// How a conversation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Both ends send at once, then end.
    Both,
    /// The client sends and ends, then the target.
    ClientFirst,
    /// The other way round.
    TargetFirst,
    /// Both send; the client resets when it has read enough.
    ClientResets,
    /// The other way round.
    TargetResets,
}

impl Kind {
    const ALL: [Kind; 5] = [
        Kind::Both,
        Kind::ClientFirst,
        Kind::TargetFirst,
        Kind::ClientResets,
        Kind::TargetResets,
    ];
}

/// One end of a conversation.
struct End<'a> {
    stream: &'a TcpStream,
    way: &'a Way,
    /// The outage before which it began.
    epoch: u64,
    /// The direction in which this end reads: 0 from the client to the target.
    reads: usize,
    /// Stream it writes, stream it reads.
    numbers: [u64; 2],
}

/// Why an end could not go on.
#[derive(Debug)]
enum Gone {
    /// What went before it, a program, was killed.
    Outage,
    Error(std::io::Error),
}

impl End<'_> {
    /// Nothing moves: whether to go on waiting.
    fn waits(&self, since: Instant) -> Result<(), Gone> {
        if self.way.outages.now() != self.epoch {
            return Err(Gone::Outage);
        }
        assert!(since.elapsed() < PATIENCE, "a conversation hangs");
        Ok(())
    }

    fn write(&self, count: u64) -> Result<(), Gone> {
        let (mut stream, mut bytes) = (self.stream, Stream::new(self.numbers[0]));
        let mut since = Instant::now();
        while bytes.position() < count {
            let length = bytes.next().len().min((count - bytes.position()) as usize);
            match stream.write(&bytes.next()[..length]) {
                Ok(length) => {
                    bytes.advance(length);
                    since = Instant::now();
                }
                Err(error) if waiting(&error) => self.waits(since)?,
                Err(error) => return Err(Gone::Error(error)),
            }
        }
        Ok(())
    }

    /// Reads up to `count` bytes, or to the end: how many came.
    fn read(&self, count: u64, to_the_end: bool) -> Result<u64, Gone> {
        let (mut stream, mut bytes) = (self.stream, Stream::new(self.numbers[1]));
        let mut buffer = vec![0; 1 << 16];
        let mut since = Instant::now();
        while to_the_end || bytes.position() < count {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    bytes.check(&buffer[..length]);
                    self.way.moved[self.reads].fetch_add(length as u64, Ordering::Relaxed);
                    since = Instant::now();
                }
                Err(error) if waiting(&error) => self.waits(since)?,
                Err(error) => return Err(Gone::Error(error)),
            }
        }
        Ok(bytes.position())
    }

    fn end(&self) -> Result<(), Gone> {
        self.stream.shutdown(Shutdown::Write).map_err(Gone::Error)
    }

    /// Reads to the end, where `count` bytes are to have come.
    fn read_all(&self, count: u64) -> Result<(), Gone> {
        let came = self.read(count, true)?;
        if came == count {
            return Ok(());
        }
        // A program that is killed ends its connections, some of them in order.
        Err(Gone::Error(std::io::Error::other(format!(
            "the end came after {came} of {count} bytes"
        ))))
    }

    /// Writes without an end and reads, until the other end resets.
    fn until_reset(&self) -> Result<(), Gone> {
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| self.write(u64::MAX));
            let read = self.read(u64::MAX, true);
            let written = writing
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // The system reports a reset once, to whoever asks first.
            let is_reset = |gone: &Gone| matches!(gone, Gone::Error(error) if error.kind() == ErrorKind::ConnectionReset);
            let reset = read.as_ref().is_err_and(is_reset) || written.as_ref().is_err_and(is_reset);
            match (reset, read, written) {
                (true, ..) => Ok(()),
                (_, Err(gone), _) | (_, Ok(_), Err(gone)) => Err(gone),
                (_, Ok(_), Ok(())) => Err(Gone::Error(std::io::Error::other("an end in place of a reset"))),
            }
        })
    }

    /// Plays one end: `sends` and `awaits` bytes.
    fn play(&self, kind: Kind, sends: u64, awaits: u64) -> Result<(), Gone> {
        let client = self.reads == 1;
        match kind {
            Kind::Both => std::thread::scope(|scope| {
                let writing = scope.spawn(|| self.write(sends).and_then(|()| self.end()));
                let read = self.read_all(awaits);
                let written = writing
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                read.and(written)
            }),
            Kind::ClientFirst | Kind::TargetFirst if client == (kind == Kind::ClientFirst) => {
                self.write(sends)?;
                self.end()?;
                self.read_all(awaits)
            }
            Kind::ClientFirst | Kind::TargetFirst => {
                self.read_all(awaits)?;
                self.write(sends)?;
                self.end()
            }
            Kind::ClientResets | Kind::TargetResets if client == (kind == Kind::ClientResets) => {
                std::thread::scope(|scope| {
                    let writing = scope.spawn(|| self.write(sends));
                    let read = self.read(awaits, false);
                    let written = writing
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                    read.and(written)
                })?;
                reset_at_close(self.stream);
                Ok(())
            }
            Kind::ClientResets | Kind::TargetResets => self.until_reset(),
        }
    }
}

fn waiting(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// The other end gets a reset when the last descriptor of it is closed.
fn reset_at_close(stream: &TcpStream) {
    let at_once = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    setsockopt(stream, sockopt::Linger, &at_once).expect("an option");
}

fn prepare(stream: &TcpStream) {
    for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
        set(stream, Some(Duration::from_millis(200))).expect("an option");
    }
}

/// Conversations of one client, one after the other.
fn converse(worker: u64, part: Part, way: &Way) {
    let near: SocketAddr = "127.0.0.1:1080".parse().expect("an address");
    let mut round = 0;
    while !way.stop.load(Ordering::Relaxed) {
        let number = worker << 32 | round;
        round += 1;
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number << 7;
        let kind = (number as usize + worker as usize) % Kind::ALL.len();
        let (up, down) = (1 + (mixed >> 20) % part.longest, 1 + (mixed >> 13) % part.longest);
        let epoch = way.outages.over();
        let result = TcpStream::connect(near).map_err(Gone::Error).and_then(|stream| {
            prepare(&stream);
            let head = [number, kind as u64, epoch, up, down]
                .map(u64::to_be_bytes)
                .concat();
            (&stream).write_all(&head).map_err(Gone::Error)?;
            let end = End {
                stream: &stream,
                way,
                epoch,
                reads: 1,
                numbers: [2 * number, 2 * number + 1],
            };
            let played = end.play(Kind::ALL[kind], up, down);
            if played.is_err() {
                reset_at_close(&stream);
            }
            played
        });
        judge(result, way, epoch, || {
            format!("client {number}, {:?}", Kind::ALL[kind])
        });
        way.conversations.fetch_add(1, Ordering::Relaxed);
    }
}

/// What breaks off while nothing is killed is a failure.
fn judge(result: Result<(), Gone>, way: &Way, epoch: u64, what: impl Fn() -> String) {
    let Err(gone) = result else { return };
    // A kill is noted before it happens.
    assert!(way.outages.now() != epoch, "{}: {gone:?}", what());
    way.broken.fetch_add(1, Ordering::Relaxed);
}

/// The target: plays what clients ask for until none is left.
fn serve(listener: &TcpListener, way: &Way) {
    listener.set_nonblocking(true).expect("an option");
    std::thread::scope(|scope| {
        while !way.target_stops.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).expect("an option");
                    scope.spawn(move || answer(&stream, way));
                }
                Err(error) if waiting(&error) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => panic!("{error}"),
            }
        }
    });
}

fn answer(stream: &TcpStream, way: &Way) {
    prepare(stream);
    let Some([number, kind, epoch, up, down]) = head(stream, way) else {
        // A client whose proxy was killed before it could say what it wants: before the connection came, or since.
        assert!(way.outages.now() > 0, "a connection without a request");
        reset_at_close(stream);
        return;
    };
    let kind = Kind::ALL[kind as usize % Kind::ALL.len()];
    let end = End {
        stream,
        way,
        epoch,
        reads: 0,
        numbers: [2 * number + 1, 2 * number],
    };
    let played = end.play(kind, down, up);
    if played.is_err() {
        reset_at_close(stream);
    }
    judge(played, way, epoch, || format!("target of {number}, {kind:?}"));
}

/// The request of a client; `None`: the connection broke off before it was there.
fn head(mut stream: &TcpStream, way: &Way) -> Option<[u64; 5]> {
    let (mut bytes, mut have) = ([0; 40], 0);
    let (began, epoch) = (Instant::now(), way.outages.now());
    while have < bytes.len() {
        match stream.read(&mut bytes[have..]) {
            Ok(0) => return None,
            Ok(length) => have += length,
            Err(error) if waiting(&error) => {
                if way.outages.now() != epoch || epoch > 0 && began.elapsed() > Duration::from_secs(20) {
                    return None;
                }
                assert!(began.elapsed() < PATIENCE, "a request does not come");
            }
            Err(_) => return None,
        }
    }
    let mut words = bytes
        .chunks(8)
        .map(|word| u64::from_be_bytes(word.try_into().unwrap_or_default()));
    Some(std::array::from_fn(|_| words.next().unwrap_or_default()))
}

/// So long a conversation may stand still.
const PATIENCE: Duration = Duration::from_secs(60);
