//! RFC 9293's requirements on a host: its calls, addresses, ICMP. Each test names what it stands for.

use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::socket::{
    Errno, Events, Family, Fd, Header, IcmpError, OptionValue, Outcome, Packet, SocketOption, Stack,
    StackConfig,
};
use fleetfoot_core::tcp::{Config, Profile, State};
use fleetfoot_core::time::{Duration, Instant};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 80;
const T0: Instant = Instant::from_millis(1000);

/// Two hosts, 10 ms apart; everything that was sent is kept.
struct Hosts {
    now: Instant,
    stacks: [Stack; 2],
    wire: Vec<(Instant, usize, Packet)>,
    log: Vec<(usize, Packet)>,
    cut: bool,
}

fn host(addresses: &[IpAddr], change: impl FnOnce(&mut StackConfig)) -> Stack {
    let mut config = StackConfig::new(addresses.to_vec(), Config::profile(Profile::Linux));
    change(&mut config);
    Stack::new(config)
}

impl Hosts {
    fn new() -> Hosts {
        Hosts {
            now: T0,
            stacks: [host(&[CLIENT, SECOND], |_| {}), host(&[SERVER], |_| {})],
            wire: Vec::new(),
            log: Vec::new(),
            cut: false,
        }
    }

    fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        loop {
            for index in 0..2 {
                while let Some(packet) = self.stacks[index].poll_transmit(self.now) {
                    self.log.push((index, packet.clone()));
                    if !self.cut {
                        self.wire
                            .push((self.now + Duration::from_millis(10), 1 - index, packet));
                    }
                }
            }
            let arrival = self.wire.iter().map(|entry| entry.0).min();
            let timeout = self.stacks.iter().filter_map(Stack::poll_timeout).min();
            let Some(next) = [arrival, timeout]
                .into_iter()
                .flatten()
                .min()
                .filter(|&at| at <= end)
            else {
                break;
            };
            self.now = next;
            let (due, later): (Vec<_>, Vec<_>) = self.wire.drain(..).partition(|entry| entry.0 <= next);
            self.wire = later;
            for (_, to, packet) in due {
                self.stacks[to].on_packet(next, &packet.header, &packet.segment);
            }
            for stack in &mut self.stacks {
                stack.on_timeout(next);
            }
        }
        self.now = end;
    }

    fn listen(&mut self) -> Fd {
        listen(&mut self.stacks[1], self.now)
    }

    fn socket(&mut self) -> Fd {
        self.stacks[0].socket(self.now, Family::V4).expect("a socket")
    }

    fn connect(&mut self, fd: Fd) -> Result<(), Errno> {
        match self.stacks[0].connect(self.now, fd, SocketAddr::new(SERVER, PORT)) {
            Ok(Outcome::Done(()) | Outcome::Blocked) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Both ends of a connection.
    fn connected(&mut self) -> (Fd, Fd) {
        let (listener, fd) = (self.listen(), self.socket());
        self.connect(fd).expect("under way");
        self.run(50);
        let Ok(Outcome::Done((peer, _))) = self.stacks[1].accept(self.now, listener) else {
            panic!("nothing to accept");
        };
        (fd, peer)
    }

    fn write(&mut self, fd: Fd, len: u64) {
        assert!(matches!(
            self.stacks[0].write(self.now, fd, len),
            Ok(Outcome::Done(_))
        ));
    }

    fn state(&self, fd: Fd) -> Option<State> {
        self.stacks[0]
            .connection(fd)
            .map(fleetfoot_core::tcp::Connection::state)
    }

    /// An ICMP message about the last data segment of the client.
    fn icmp(&mut self, kind: u8, code: u8) {
        let (_, packet) = self
            .log
            .iter()
            .rfind(|(from, _)| *from == 0)
            .expect("a packet")
            .clone();
        let message = IcmpError {
            kind,
            code,
            mtu: 0,
            seq: packet.segment.seq,
        };
        self.stacks[0].on_icmp(self.now, &packet.header, &message);
    }

    /// Whether `poll` reports an error.
    fn reports(&mut self, fd: Fd) -> bool {
        let events = self.stacks[0].poll(self.now, fd, Events(0)).expect("a socket");
        events.0 & Events::ERR.0 != 0
    }

    fn error(&mut self, fd: Fd) -> OptionValue {
        self.stacks[0]
            .getsockopt(self.now, fd, SocketOption::Error)
            .expect("an option")
    }
}

fn listen(stack: &mut Stack, now: Instant) -> Fd {
    let fd = stack.socket(now, Family::V4).expect("a socket");
    stack
        .setsockopt(now, fd, SocketOption::ReuseAddress, &OptionValue::Int(1))
        .expect("an option");
    stack.bind(now, fd, SocketAddr::new(SERVER, PORT)).expect("bound");
    stack.listen(now, fd, 10).expect("listening");
    fd
}

/// The sequence number of the SYN that a host with this seed sends at `now` to `port`.
fn iss(seed: u64, now: Instant, port: u16) -> u32 {
    let mut stack = host(&[CLIENT], |config| config.seed = seed);
    let fd = stack.socket(now, Family::V4).expect("a socket");
    stack.bind(now, fd, SocketAddr::new(CLIENT, 4000)).expect("bound");
    let _ = stack.connect(now, fd, SocketAddr::new(SERVER, port));
    stack.poll_transmit(now).expect("a SYN").segment.seq.0
}

/// RFC 9293: MUST-8, MUST-9, SHLD-1
#[test]
fn initial_sequence_numbers_follow_a_clock_and_a_secret() {
    let base = iss(7, T0, PORT);
    for us in [4, 400, 4_000_000, 60_000_000] {
        let later = iss(7, T0 + Duration::from_micros(us), PORT);
        assert_eq!(later.wrapping_sub(base), (us / 4) as u32, "a tick each 4 us");
    }
    // Other ports and other secrets: unrelated numbers, each bit as often set as not.
    let numbers: Vec<u32> = (0..2000)
        .map(|n| iss(7, T0, n + 1))
        .chain((0..2000).map(|n| iss(100 + n, T0, PORT)))
        .collect();
    assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len());
    for bit in 0..32 {
        let set = numbers.iter().filter(|&number| number >> bit & 1 == 1).count();
        assert!((1800..2200).contains(&set), "bit {bit}: {set} of 4000");
    }
}

/// RFC 9293: MUST-11
#[test]
fn a_reset_in_a_passive_handshake_returns_to_listening() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen();
    let from = SocketAddr::new(CLIENT, 999);
    let header = Header {
        source: from,
        destination: SocketAddr::new(SERVER, PORT),
    };
    let syn = Segment {
        seq: SeqNumber(50),
        window: 1000,
        flags: Flags::SYN,
        overhead: 40,
        ..Segment::default()
    };
    hosts.stacks[1].on_packet(T0, &header, &syn);
    assert!(hosts.stacks[1].poll_transmit(T0).is_some());
    let slots = hosts.stacks[1].slots_in_use();
    let mut reset = syn;
    (reset.seq, reset.flags) = (SeqNumber(51), Flags::RST);
    hosts.stacks[1].on_packet(T0, &header, &reset);
    assert_eq!(hosts.stacks[1].poll_transmit(T0), None);
    assert_eq!(hosts.stacks[1].slots_in_use(), slots - 1, "the embryo is gone");
    assert!(
        matches!(hosts.stacks[1].accept(T0, listener), Ok(Outcome::Blocked)),
        "and nobody was informed"
    );
    let fd = hosts.socket();
    hosts.connect(fd).expect("under way");
    hosts.run(50);
    assert_eq!(hosts.state(fd), Some(State::Established), "it listens");
}

/// RFC 9293: MUST-41
#[test]
fn listening_does_not_disturb_connections() {
    let mut hosts = Hosts::new();
    let (client, server) = hosts.connected();
    let second = hosts.stacks[1].socket(hosts.now, Family::V4).expect("a socket");
    hosts.stacks[1]
        .bind(hosts.now, second, SocketAddr::new(SERVER, 81))
        .expect("bound");
    hosts.stacks[1].listen(hosts.now, second, 5).expect("listening");
    hosts.write(client, 3000);
    hosts.run(100);
    let read = hosts.stacks[1].read(hosts.now, server, 10_000);
    assert!(
        matches!(read, Ok(Outcome::Done(ref read)) if read.len == 3000),
        "{read:?}"
    );
}

/// RFC 9293: MUST-42
#[test]
fn a_port_can_be_listened_on_while_connections_open_from_it() {
    let mut hosts = Hosts::new();
    hosts.cut = true;
    let now = hosts.now;
    let local = SocketAddr::new(CLIENT, 5000);
    let stack = &mut hosts.stacks[0];
    let mut reusable = || {
        let fd = stack.socket(now, Family::V4).expect("a socket");
        stack
            .setsockopt(now, fd, SocketOption::ReuseAddress, &OptionValue::Int(1))
            .expect("an option");
        stack.bind(now, fd, local).expect("bound");
        fd
    };
    let (opening, listening) = (reusable(), reusable());
    hosts.connect(opening).expect("under way");
    assert_eq!(hosts.state(opening), Some(State::SynSent));
    hosts.stacks[0].listen(now, listening, 5).expect("listening");
    assert_eq!(hosts.state(opening), Some(State::SynSent));
}

/// RFC 9293: MUST-43, MUST-44, MUST-45
#[test]
fn the_local_address_is_what_was_asked_for_or_chosen_and_stays() {
    for (wanted, expected) in [(Some(SECOND), SECOND), (Some(CLIENT), CLIENT), (None, CLIENT)] {
        let mut hosts = Hosts::new();
        let (listener, fd) = (hosts.listen(), hosts.socket());
        if let Some(address) = wanted {
            hosts.stacks[0]
                .bind(T0, fd, SocketAddr::new(address, 0))
                .expect("bound");
        }
        hosts.connect(fd).expect("under way");
        hosts.run(50);
        hosts.write(fd, 50_000);
        hosts.run(2000);
        let _ = hosts.stacks[0].close(hosts.now, fd);
        hosts.run(2000);
        assert!(matches!(
            hosts.stacks[1].accept(hosts.now, listener),
            Ok(Outcome::Done(_))
        ));
        let sources: BTreeSet<_> = hosts
            .log
            .iter()
            .filter(|(from, _)| *from == 0)
            .map(|(_, p)| p.header.source)
            .collect();
        assert_eq!(sources.len(), 1, "{sources:?}");
        assert_eq!(sources.first().map(SocketAddr::ip), Some(expected));
    }
    let mut hosts = Hosts::new();
    let fd = hosts.socket();
    assert_eq!(
        hosts.stacks[0].bind(T0, fd, SocketAddr::new(SERVER, 1)),
        Err(Errno::EADDRNOTAVAIL)
    );
}

/// RFC 9293: MUST-46
#[test]
fn nothing_is_opened_to_an_address_of_many() {
    for address in ["255.255.255.255:80", "224.0.0.1:80", "239.1.2.3:80"] {
        let mut hosts = Hosts::new();
        let fd = hosts.socket();
        let to = address.parse().expect("an address");
        assert!(
            matches!(hosts.stacks[0].connect(T0, fd, to), Err(Errno::ENETUNREACH)),
            "{address}"
        );
        assert_eq!(hosts.stacks[0].poll_transmit(T0), None);
    }
}

/// RFC 9293: MUST-57, MUST-63
#[test]
fn syns_to_or_from_addresses_of_many_are_dropped_silently() {
    let mut hosts = Hosts::new();
    hosts.listen();
    let slots = hosts.stacks[1].slots_in_use();
    let syn = Segment {
        seq: SeqNumber(50),
        window: 1000,
        flags: Flags::SYN,
        overhead: 40,
        ..Segment::default()
    };
    for (source, destination) in [
        ("10.0.0.1:9", "255.255.255.255:80"),
        ("10.0.0.1:9", "224.0.0.1:80"),
        ("255.255.255.255:9", "10.0.0.2:80"),
        ("224.0.0.1:9", "10.0.0.2:80"),
        ("0.0.0.0:9", "10.0.0.2:80"),
    ] {
        let header = Header {
            source: source.parse().expect("an address"),
            destination: destination.parse().expect("an address"),
        };
        hosts.stacks[1].on_packet(T0, &header, &syn);
        assert_eq!(hosts.stacks[1].poll_transmit(T0), None, "{source} {destination}");
        assert_eq!(hosts.stacks[1].slots_in_use(), slots);
    }
}

/// RFC 9293: MUST-48, MUST-49, SHLD-21, SHLD-22
#[test]
fn traffic_class_and_time_to_live_are_the_applications_and_can_change() {
    let mut hosts = Hosts::new();
    hosts.listen();
    let fd = hosts.socket();
    let set = |hosts: &mut Hosts, option, value| {
        hosts.stacks[0]
            .setsockopt(hosts.now, fd, option, &OptionValue::Int(value))
            .expect("an option");
    };
    set(&mut hosts, SocketOption::Tos, 0xb8);
    set(&mut hosts, SocketOption::Ttl, 33);
    hosts.connect(fd).expect("under way");
    hosts.run(50);
    hosts.write(fd, 5000);
    hosts.run(50);
    let sent = |hosts: &Hosts| {
        hosts
            .log
            .iter()
            .filter(|(from, _)| *from == 0)
            .map(|(_, p)| (p.segment.tos & !3, p.segment.ttl))
            .collect::<Vec<_>>()
    };
    let first = sent(&hosts);
    assert!(
        first.len() >= 4 && first.iter().all(|&seen| seen == (0xb8, 33)),
        "{first:?}"
    );
    set(&mut hosts, SocketOption::Tos, 0x20);
    set(&mut hosts, SocketOption::Ttl, 7);
    hosts.write(fd, 5000);
    hosts.run(50);
    let all = sent(&hosts);
    assert!(
        all.len() > first.len() && all[first.len()..].iter().all(|&seen| seen == (0x20, 7)),
        "{all:?}"
    );
}

/// RFC 9293: MUST-54, MUST-55, MUST-56
#[test]
fn icmp_reaches_its_connection_and_soft_errors_end_nothing() {
    let mut hosts = Hosts::new();
    let (first, _) = hosts.connected();
    let second = hosts.socket();
    hosts.connect(second).expect("under way");
    hosts.run(50);
    for fd in [first, second] {
        let on = OptionValue::Int(1);
        hosts.stacks[0]
            .setsockopt(hosts.now, fd, SocketOption::ReceiveErrors, &on)
            .expect("an option");
    }
    hosts.write(second, 1000);
    hosts.run(5);
    // Source quench is ignored; unreachable networks and hosts, failed source routes and exceeded time are soft.
    hosts.icmp(4, 0);
    assert_eq!(hosts.error(second), OptionValue::Int(0));
    for (kind, code, errno) in [
        (3, 0, Errno::ENETUNREACH),
        (3, 1, Errno::EHOSTUNREACH),
        (11, 0, Errno::EHOSTUNREACH),
        (3, 12, Errno::EHOSTUNREACH),
    ] {
        hosts.icmp(kind, code);
        assert_eq!(
            hosts.error(first),
            OptionValue::Int(0),
            "the other connection hears nothing"
        );
        assert_eq!(
            hosts.error(second),
            OptionValue::Int(errno.number()),
            "{kind} {code}"
        );
        assert_eq!(hosts.state(second), Some(State::Established));
    }
    hosts.run(1000);
    hosts.write(second, 1000);
    hosts.run(1000);
    assert_eq!(
        hosts.stacks[0]
            .connection(second)
            .map(fleetfoot_core::tcp::Connection::acked),
        Some(2000),
        "it goes on"
    );
}

/// RFC 9293: MUST-47, SHLD-20, SHLD-25
#[test]
fn soft_errors_are_reported_to_who_asks() {
    let mut hosts = Hosts::new();
    let (fd, _) = hosts.connected();
    hosts.cut = true;
    hosts.write(fd, 1000);
    hosts.run(1);
    // Not asked for: nothing is reported at once, but it is the reason given when the connection times out.
    hosts.icmp(3, 1);
    assert!(!hosts.reports(fd));
    hosts.run(2_000_000);
    assert_eq!(hosts.error(fd), OptionValue::Int(Errno::EHOSTUNREACH.number()));
    // Asked for: at once, until turned off again.
    let mut hosts = Hosts::new();
    let (fd, _) = hosts.connected();
    hosts.write(fd, 1000);
    hosts.run(1);
    for on in [1, 0] {
        let value = OptionValue::Int(on);
        hosts.stacks[0]
            .setsockopt(hosts.now, fd, SocketOption::ReceiveErrors, &value)
            .expect("an option");
        hosts.icmp(3, 1);
        let reported = hosts.reports(fd);
        assert_eq!(reported, on == 1);
        hosts.error(fd);
    }
}

/// RFC 9293: SHLD-26
#[test]
fn a_hard_error_ends_an_opening_but_not_a_synchronised_connection() {
    for code in [2, 3] {
        let mut hosts = Hosts::new();
        hosts.cut = true;
        let fd = hosts.socket();
        hosts.connect(fd).expect("under way");
        hosts.run(1);
        hosts.icmp(3, code);
        assert!(hosts.connect(fd).is_err(), "refused");
        // RFC 5461 4.1, RFC 5927 5.2: later it is taken for soft, since anyone can forge it.
        let mut hosts = Hosts::new();
        let (fd, _) = hosts.connected();
        hosts.write(fd, 1000);
        hosts.run(1);
        hosts.icmp(3, code);
        hosts.run(1000);
        assert_eq!(hosts.state(fd), Some(State::Established));
    }
}

/// RFC 9293: SHLD-3, MAY-1
#[test]
fn closing_with_unread_data_resets() {
    let mut hosts = Hosts::new();
    let (client, server) = hosts.connected();
    hosts.write(client, 500);
    hosts.run(30);
    let _ = hosts.stacks[1].close(hosts.now, server);
    hosts.run(30);
    let last = hosts.log.iter().rfind(|(from, _)| *from == 1).expect("a packet");
    assert!(
        last.1.segment.flags.contains(Flags::RST),
        "{:?}",
        last.1.segment.flags
    );
    // And data that comes after the close.
    let mut hosts = Hosts::new();
    let (client, server) = hosts.connected();
    let _ = hosts.stacks[1].close(hosts.now, server);
    hosts.run(30);
    hosts.write(client, 500);
    hosts.run(30);
    let last = hosts.log.iter().rfind(|(from, _)| *from == 1).expect("a packet");
    assert!(
        last.1.segment.flags.contains(Flags::RST),
        "{:?}",
        last.1.segment.flags
    );
}

/// RFC 9293: SHLD-4, MAY-2
#[test]
fn timestamps_let_a_port_be_used_again_within_time_wait() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen();
    for round in 0..3 {
        let fd = hosts.socket();
        let on = OptionValue::Int(1);
        hosts.stacks[0]
            .setsockopt(hosts.now, fd, SocketOption::ReuseAddress, &on)
            .expect("an option");
        hosts.stacks[0]
            .bind(hosts.now, fd, SocketAddr::new(CLIENT, 6000))
            .expect("bound");
        hosts.connect(fd).expect("under way");
        hosts.run(50);
        let Ok(Outcome::Done((server, _))) = hosts.stacks[1].accept(hosts.now, listener) else {
            panic!("round {round}: nothing to accept");
        };
        // The server closes first: TIME-WAIT is there.
        let _ = hosts.stacks[1].close(hosts.now, server);
        hosts.run(50);
        let _ = hosts.stacks[0].close(hosts.now, fd);
        hosts.run(1500);
        assert_eq!(hosts.stacks[1].time_wait_count(), 1);
    }
}
