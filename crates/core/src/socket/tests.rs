use super::{
    Called, Errno, Events, Family, Fd, How, OptionValue, Outcome, Packet, RecvFlags, SendFlags, SocketOption,
    Stack, StackConfig,
};
use crate::tcp::{Config, Profile};
use crate::time::{Duration, Instant};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 8080;

/// Two hosts and a wire with a delay.
struct Pair {
    now: Instant,
    hosts: [Stack; 2],
    wire: Vec<(Instant, usize, Packet)>,
    delay: Duration,
    cut: bool,
    /// Time that data takes on the way from the server, one after the other.
    packet_time: Duration,
    /// When the last of it has passed.
    free: Instant,
    /// When data left, and from which host.
    data: Vec<(Instant, usize)>,
    /// Of so many data packets one is lost; 0: none is.
    loss: usize,
    /// Bytes of the longest packet.
    longest: u32,
    /// Packets with SACK blocks.
    sacks: usize,
}

fn done<T: core::fmt::Debug>(called: Called<T>) -> T {
    match called {
        Ok(Outcome::Done(value)) => value,
        other => panic!("not done: {other:?}"),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a call's result is handed over")]
fn blocked<T: core::fmt::Debug>(called: Called<T>) {
    assert!(matches!(called, Ok(Outcome::Blocked)), "{called:?}");
}

impl Pair {
    fn new() -> Pair {
        Pair::with(|_| {})
    }

    fn with(change: fn(&mut StackConfig)) -> Pair {
        let host = |address| {
            let mut config = StackConfig::new(vec![address], Config::profile(Profile::Linux));
            change(&mut config);
            Stack::new(config)
        };
        Pair {
            now: Instant::from_millis(1000),
            hosts: [host(CLIENT), host(SERVER)],
            wire: Vec::new(),
            delay: Duration::from_millis(10),
            cut: false,
            packet_time: Duration::ZERO,
            free: Instant::ZERO,
            data: Vec::new(),
            loss: 0,
            longest: 0,
            sacks: 0,
        }
    }

    fn drain(&mut self) {
        for (host, stack) in self.hosts.iter_mut().enumerate() {
            while let Some(packet) = stack.poll_transmit(self.now) {
                let mut at = self.now;
                if packet.segment.payload > 0 {
                    self.data.push((self.now, host));
                    if host == 1 {
                        self.free = self.free.max(self.now) + self.packet_time;
                        at = self.free;
                    }
                }
                self.longest = self
                    .longest
                    .max(u32::from(packet.segment.overhead) + packet.segment.payload);
                self.sacks += usize::from(packet.segment.sack_blocks() > 0);
                let lost =
                    packet.segment.payload > 0 && self.loss > 0 && self.data.len().is_multiple_of(self.loss);
                if !self.cut && !lost {
                    self.wire.push((at + self.delay, 1 - host, packet));
                }
            }
            assert!(
                stack.poll_timeout().is_none_or(|at| at > self.now),
                "drained, but a deadline has passed"
            );
        }
    }

    /// Everything that happens in the next `span`.
    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.drain();
            let arrival = self.wire.iter().map(|entry| entry.0).min();
            let timeout = self.hosts.iter().filter_map(Stack::poll_timeout).min();
            let next = [arrival, timeout].into_iter().flatten().min();
            let Some(next) = next.filter(|&at| at <= end) else {
                break;
            };
            self.now = next;
            let (due, later): (Vec<_>, Vec<_>) = self.wire.drain(..).partition(|entry| entry.0 <= next);
            self.wire = later;
            for (_, host, packet) in due {
                self.hosts[host].on_packet(next, &packet.header, &packet.segment);
            }
            for stack in &mut self.hosts {
                stack.on_timeout(next);
            }
        }
        self.now = end;
    }

    fn listener(&mut self, backlog: i32) -> Fd {
        let now = self.now;
        let host = &mut self.hosts[1];
        let fd = host.socket(now, Family::V4).expect("a socket");
        host.setsockopt(now, fd, SocketOption::ReuseAddress, &OptionValue::Int(1))
            .expect("open");
        host.bind(now, fd, SocketAddr::new(SERVER, PORT)).expect("bound");
        host.listen(now, fd, backlog).expect("listening");
        fd
    }

    /// A client and the server's end of one connection.
    fn connected(&mut self) -> (Fd, Fd) {
        let listener = self.listener(5);
        let (now, to) = (self.now, SocketAddr::new(SERVER, PORT));
        let client = self.hosts[0].socket(now, Family::V4).expect("a socket");
        blocked(self.hosts[0].connect(now, client, to));
        self.run(Duration::from_millis(50));
        done(self.hosts[0].connect(self.now, client, to));
        let (server, peer) = done(self.hosts[1].accept(self.now, listener));
        assert_eq!(peer.ip(), CLIENT);
        done(self.hosts[1].close(self.now, listener));
        (client, server)
    }
}

#[test]
fn data_goes_both_ways_and_the_end_is_read_as_zero() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    assert_eq!(done(pair.hosts[0].write(pair.now, client, 5000)).len, 5000);
    blocked(pair.hosts[1].read(pair.now, server, 100));
    pair.run(Duration::from_millis(15));
    let peek = RecvFlags {
        peek: true,
        ..RecvFlags::default()
    };
    assert_eq!(done(pair.hosts[1].recv(pair.now, server, 100, peek)).len, 100);
    let read = done(pair.hosts[1].read(pair.now, server, 2000));
    assert_eq!((read.start, read.len), (0, 2000));
    let read = done(pair.hosts[1].read(pair.now, server, 10_000));
    assert_eq!((read.start, read.len), (2000, 3000));
    blocked(pair.hosts[1].read(pair.now, server, 1));
    done(pair.hosts[0].close(pair.now, client));
    pair.run(Duration::from_millis(50));
    assert_eq!(done(pair.hosts[1].read(pair.now, server, 1)).len, 0);
    done(pair.hosts[1].close(pair.now, server));
    pair.run(Duration::from_secs(70));
    assert_eq!(pair.hosts.each_ref().map(Stack::slots_in_use), [0, 0]);
}

#[test]
fn nobody_listens() {
    let mut pair = Pair::new();
    let client = pair.hosts[0].socket(pair.now, Family::V4).expect("a socket");
    let to = SocketAddr::new(SERVER, PORT);
    pair.hosts[0].set_nonblocking(client, true).expect("open");
    assert_eq!(
        pair.hosts[0].connect(pair.now, client, to),
        Err(Errno::EINPROGRESS)
    );
    assert_eq!(pair.hosts[0].connect(pair.now, client, to), Err(Errno::EALREADY));
    pair.run(Duration::from_millis(50));
    let events = pair.hosts[0]
        .poll(pair.now, client, Events::IN.with(Events::OUT))
        .expect("open");
    assert_eq!(
        events,
        Events::IN.with(Events::OUT).with(Events::ERR).with(Events::HUP)
    );
    let error = |pair: &mut Pair| pair.hosts[0].getsockopt(pair.now, client, SocketOption::Error);
    assert_eq!(
        error(&mut pair),
        Ok(OptionValue::Int(Errno::ECONNREFUSED.number()))
    );
    assert_eq!(error(&mut pair), Ok(OptionValue::Int(0)));
    assert_eq!(
        pair.hosts[0].connect(pair.now, client, to),
        Err(Errno::ECONNABORTED)
    );
    // And again, from the same socket.
    pair.listener(1);
    assert_eq!(
        pair.hosts[0].connect(pair.now, client, to),
        Err(Errno::EINPROGRESS)
    );
    pair.run(Duration::from_millis(50));
    assert_eq!(pair.hosts[0].connect(pair.now, client, to), Ok(Outcome::Done(())));
    assert_eq!(pair.hosts[0].connect(pair.now, client, to), Err(Errno::EISCONN));
}

#[test]
fn a_reset_is_reported_once_then_the_pipe_is_broken() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    done(pair.hosts[0].write(pair.now, client, 10));
    pair.run(Duration::from_millis(50));
    done(pair.hosts[1].close(pair.now, server)); // unread data: RFC 2525 2.17
    pair.run(Duration::from_millis(50));
    assert_eq!(pair.hosts[0].write(pair.now, client, 1), Err(Errno::ECONNRESET));
    assert_eq!(pair.hosts[0].write(pair.now, client, 1), Err(Errno::EPIPE));
    assert_eq!(done(pair.hosts[0].read(pair.now, client, 1)).len, 0);
    assert_eq!(
        pair.hosts[0].shutdown(pair.now, client, How::Both),
        Err(Errno::ENOTCONN)
    );
}

#[test]
fn calls_on_a_socket_without_a_connection() {
    let mut pair = Pair::new();
    let now = pair.now;
    let host = &mut pair.hosts[0];
    let fd = host.socket(now, Family::V4).expect("a socket");
    assert_eq!(fd, Fd(3));
    assert_eq!(host.read(now, fd, 1), Err(Errno::ENOTCONN));
    assert_eq!(host.write(now, fd, 1), Err(Errno::EPIPE));
    assert_eq!(host.accept(now, fd), Err(Errno::EINVAL));
    assert_eq!(host.shutdown(now, fd, How::Write), Err(Errno::ENOTCONN));
    assert_eq!(host.remote_address(fd), Err(Errno::ENOTCONN));
    assert_eq!(
        host.poll(now, fd, Events::IN.with(Events::OUT)),
        Ok(Events::OUT.with(Events::HUP))
    );
    let elsewhere = SocketAddr::new(SERVER, 1);
    assert_eq!(host.bind(now, fd, elsewhere), Err(Errno::EADDRNOTAVAIL));
    let here = SocketAddr::new(CLIENT, 80);
    assert_eq!(host.bind(now, fd, here), Ok(()));
    assert_eq!(host.bind(now, fd, here), Err(Errno::EINVAL));
    let second = host.socket(now, Family::V4).expect("a socket");
    assert_eq!(host.bind(now, second, here), Err(Errno::EADDRINUSE));
    assert_eq!(host.listen(now, fd, 1), Ok(()));
    assert_eq!(host.read(now, fd, 1), Err(Errno::ENOTCONN));
    assert_eq!(host.input_queue(fd), Err(Errno::EINVAL));
    assert_eq!(host.connect(now, fd, elsewhere), Err(Errno::EISCONN));
    assert_eq!(host.close(now, fd), Ok(Outcome::Done(())));
    assert_eq!(host.close(now, fd), Err(Errno::EBADF));
    assert_eq!(host.bind(now, second, here), Ok(()));
    assert_eq!(host.socket(now, Family::V4), Ok(fd), "the lowest free number");
}

#[test]
fn a_blocking_write_returns_when_all_was_taken() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    let set = OptionValue::Int(10_000);
    pair.hosts[0]
        .setsockopt(pair.now, client, SocketOption::SendBuffer, &set)
        .expect("open");
    assert_eq!(
        pair.hosts[0].getsockopt(pair.now, client, SocketOption::SendBuffer),
        Ok(OptionValue::Int(20_000))
    );
    let total = 300_000;
    blocked(pair.hosts[0].write(pair.now, client, total));
    let (mut rounds, mut read) = (0, 0);
    let sent = loop {
        pair.run(Duration::from_millis(20));
        rounds += 1;
        if let Outcome::Done(taken) = pair.hosts[1].read(pair.now, server, u64::MAX).expect("open") {
            read += taken.len; // without a reader the window would shut
        }
        if let Outcome::Done(sent) = pair.hosts[0].write(pair.now, client, total).expect("no error") {
            break sent;
        }
        assert!(rounds < 100);
    };
    assert_eq!((sent.start, sent.len), (0, total));
    assert!(rounds > 3, "{rounds}: the buffer held it back");
    pair.run(Duration::from_millis(100));
    read += done(pair.hosts[1].read(pair.now, server, u64::MAX)).len;
    assert_eq!(read, total);
    let flags = SendFlags {
        dont_wait: true,
        ..SendFlags::default()
    };
    let part = done(pair.hosts[0].send(pair.now, client, total, flags, None)).len;
    assert!((20_000..100_000).contains(&part), "{part}");
    assert_eq!(
        pair.hosts[0].send(pair.now, client, 1, flags, None),
        Err(Errno::EAGAIN)
    );
}

const BOTH: Events = Events(Events::IN.0 | Events::OUT.0 | Events::RDHUP.0);

impl Pair {
    fn option(&mut self, host: usize, fd: Fd, option: SocketOption, value: i32) {
        let set = OptionValue::Int(value);
        self.hosts[host]
            .setsockopt(self.now, fd, option, &set)
            .expect("a good option");
    }

    fn client(&mut self, nonblocking: bool) -> Fd {
        let fd = self.hosts[0].socket(self.now, Family::V4).expect("a socket");
        self.hosts[0].set_nonblocking(fd, nonblocking).expect("open");
        fd
    }

    fn segments(&self) -> Vec<alloc::string::String> {
        let flags = |entry: &(Instant, usize, Packet)| {
            alloc::format!("{:?}", entry.2.segment.flags.without(crate::packet::Flags::DF))
        };
        self.wire.iter().map(flags).collect()
    }
}

/// RFC 9293: SHLD-4, MAY-2
#[test]
fn time_wait_is_a_small_record_that_a_new_syn_may_end() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    let names = pair.hosts[0].local_address(client).expect("open").expect("bound");
    done(pair.hosts[0].close(pair.now, client));
    pair.run(Duration::from_millis(50));
    assert_eq!(
        pair.hosts[0].slots_in_use(),
        0,
        "FIN-WAIT-2 of a closed socket is a record"
    );
    done(pair.hosts[1].close(pair.now, server));
    pair.run(Duration::from_secs(2));
    assert_eq!(
        (pair.hosts[0].time_wait_count(), pair.hosts[0].slots_in_use()),
        (1, 0)
    );
    // The port is held, unless the socket may reuse addresses.
    let again = pair.client(false);
    assert_eq!(pair.hosts[0].bind(pair.now, again, names), Err(Errno::EADDRINUSE));
    pair.option(0, again, SocketOption::ReuseAddress, 1);
    assert_eq!(pair.hosts[0].bind(pair.now, again, names), Ok(()));
    let listener = pair.listener(1);
    blocked(pair.hosts[0].connect(pair.now, again, SocketAddr::new(SERVER, PORT)));
    assert_eq!(pair.hosts[0].time_wait_count(), 0);
    pair.run(Duration::from_millis(50));
    done(pair.hosts[0].connect(pair.now, again, SocketAddr::new(SERVER, PORT)));
    let (server, _) = done(pair.hosts[1].accept(pair.now, listener));
    // Now the server closes first, and the client comes back from the same port.
    done(pair.hosts[1].close(pair.now, server));
    pair.run(Duration::from_millis(50));
    done(pair.hosts[0].close(pair.now, again));
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.hosts[1].time_wait_count(), 1);
    let third = pair.client(false);
    assert_eq!(pair.hosts[0].bind(pair.now, third, names), Ok(()));
    blocked(pair.hosts[0].connect(pair.now, third, SocketAddr::new(SERVER, PORT)));
    pair.run(Duration::from_millis(50));
    done(pair.hosts[0].connect(pair.now, third, SocketAddr::new(SERVER, PORT)));
    assert_eq!(pair.hosts[1].time_wait_count(), 0, "the SYN ended it");
    assert!(
        size_of::<super::time_wait::TimeWait>() <= 56,
        "{}",
        size_of::<super::time_wait::TimeWait>()
    );
}

#[test]
fn time_wait_lasts_a_minute() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    done(pair.hosts[0].close(pair.now, client));
    done(pair.hosts[1].close(pair.now, server)); // SYNs, and now FINs, cross
    pair.run(Duration::from_secs(59));
    assert_eq!(pair.hosts.each_ref().map(Stack::time_wait_count), [1, 1]);
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.hosts.each_ref().map(Stack::time_wait_count), [0, 0]);
    assert_eq!(pair.hosts.each_ref().map(Stack::poll_timeout), [None, None]);
}

#[test]
fn time_wait_holds_no_more_than_its_limit() {
    let mut pair = Pair::with(|config| config.time_wait_limit = 2);
    let listener = pair.listener(8);
    let mut ports = Vec::new();
    for _ in 0..3 {
        let client = pair.client(false);
        blocked(pair.hosts[0].connect(pair.now, client, SocketAddr::new(SERVER, PORT)));
        pair.run(Duration::from_millis(50));
        done(pair.hosts[0].connect(pair.now, client, SocketAddr::new(SERVER, PORT)));
        ports.push(pair.hosts[0].local_address(client).expect("open").expect("bound"));
        let (server, _) = done(pair.hosts[1].accept(pair.now, listener));
        done(pair.hosts[0].close(pair.now, client));
        pair.run(Duration::from_millis(50));
        done(pair.hosts[1].close(pair.now, server));
        pair.run(Duration::from_millis(50));
    }
    // The third had no record from FIN-WAIT-2 on: its peer's FIN was answered with a reset, and its port is free.
    assert_eq!(pair.hosts[0].time_wait_count(), 2);
    assert_eq!(
        (
            pair.hosts[0].refused().time_wait,
            pair.hosts[1].refused().time_wait
        ),
        (1, 0)
    );
    assert_eq!(
        pair.hosts.each_ref().map(Stack::slots_in_use),
        [0, 1],
        "only the listener is left"
    );
    for (port, free) in ports.into_iter().zip([false, false, true]) {
        let again = pair.client(false);
        assert_eq!(pair.hosts[0].bind(pair.now, again, port).is_ok(), free, "{port}");
    }
    pair.run(Duration::from_secs(61));
    assert_eq!(pair.hosts[0].time_wait_count(), 0);
}

#[test]
fn a_full_backlog_drops_syns_and_completing_acks() {
    let mut pair = Pair::with(|config| config.syn_cookies = super::SynCookies::Off);
    let listener = pair.listener(1);
    let to = SocketAddr::new(SERVER, PORT);
    let clients: Vec<Fd> = (0..4).map(|_| pair.client(true)).collect();
    for &fd in &clients {
        assert_eq!(pair.hosts[0].connect(pair.now, fd, to), Err(Errno::EINPROGRESS));
        pair.run(Duration::from_millis(50));
    }
    // One more than the backlog waits; the others' SYNs are dropped.
    let open = |pair: &mut Pair| {
        clients
            .iter()
            .filter(|&&fd| pair.hosts[0].poll(pair.now, fd, BOTH) == Ok(Events::OUT))
            .count()
    };
    assert_eq!(open(&mut pair), 2);
    for _ in 0..2 {
        done(pair.hosts[1].accept(pair.now, listener));
    }
    pair.run(Duration::from_secs(5));
    assert_eq!(open(&mut pair), 4, "their SYNs came again");
    let ready = pair.hosts[1].poll(pair.now, listener, Events::IN);
    assert_eq!(ready, Ok(Events::IN));
}

#[test]
fn cookies_open_connections_without_state() {
    let mut pair = Pair::with(|config| config.syn_cookies = super::SynCookies::Always);
    let listener = pair.listener(8);
    let client = pair.client(false);
    let to = SocketAddr::new(SERVER, PORT);
    blocked(pair.hosts[0].connect(pair.now, client, to));
    pair.run(Duration::from_millis(15));
    assert_eq!(pair.hosts[1].slots_in_use(), 1, "only the listener");
    pair.run(Duration::from_millis(15));
    done(pair.hosts[0].connect(pair.now, client, to));
    let (server, _) = done(pair.hosts[1].accept(pair.now, listener));
    let sent = done(pair.hosts[0].write(pair.now, client, 30_000)).len;
    pair.run(Duration::from_millis(300));
    assert_eq!(done(pair.hosts[1].read(pair.now, server, u64::MAX)).len, sent);
    let info = pair.hosts[1].info(pair.now, server).expect("open");
    assert_eq!(info.options & 7, 7, "timestamps, SACK and scale came back");
    assert_eq!(
        info.snd_wscale,
        pair.hosts[0].info(pair.now, client).expect("open").rcv_wscale
    );
}

#[test]
fn closing_a_listener_resets_what_nobody_accepted() {
    let mut pair = Pair::new();
    let listener = pair.listener(5);
    let client = pair.client(true);
    let to = SocketAddr::new(SERVER, PORT);
    assert_eq!(
        pair.hosts[0].connect(pair.now, client, to),
        Err(Errno::EINPROGRESS)
    );
    pair.run(Duration::from_millis(50));
    done(pair.hosts[1].close(pair.now, listener));
    pair.run(Duration::from_millis(50));
    assert_eq!(pair.hosts[0].read(pair.now, client, 1), Err(Errno::ECONNRESET));
    assert_eq!(pair.hosts[1].slots_in_use(), 0);
}

#[test]
fn lingering() {
    // Zero: a reset.
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    let linger = |seconds| OptionValue::Linger { on: true, seconds };
    pair.hosts[0]
        .setsockopt(pair.now, client, SocketOption::Linger, &linger(0))
        .expect("open");
    done(pair.hosts[0].close(pair.now, client));
    pair.drain();
    assert_eq!(pair.segments(), ["R.+ts"]);
    pair.run(Duration::from_millis(50));
    assert_eq!(pair.hosts[1].read(pair.now, server, 1), Err(Errno::ECONNRESET));
    assert_eq!(pair.hosts[0].slots_in_use(), 0);

    // Positive: until everything is acknowledged.
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    pair.hosts[0]
        .setsockopt(pair.now, client, SocketOption::Linger, &linger(5))
        .expect("open");
    done(pair.hosts[0].write(pair.now, client, 10));
    pair.run(Duration::from_millis(1)); // packets of one instant would be answered together
    blocked(pair.hosts[0].close(pair.now, client));
    pair.run(Duration::from_millis(55));
    blocked(pair.hosts[0].close(pair.now, client));
    pair.run(Duration::from_millis(10)); // the FIN is acknowledged with a delay
    done(pair.hosts[0].close(pair.now, client));
    assert_eq!(done(pair.hosts[1].read(pair.now, server, 100)).len, 10);

    // Or until the time is over.
    let mut pair = Pair::new();
    let (client, _) = pair.connected();
    pair.hosts[0]
        .setsockopt(pair.now, client, SocketOption::Linger, &linger(2))
        .expect("open");
    pair.cut = true;
    blocked(pair.hosts[0].close(pair.now, client));
    pair.run(Duration::from_millis(1990));
    blocked(pair.hosts[0].close(pair.now, client));
    pair.run(Duration::from_millis(10));
    done(pair.hosts[0].close(pair.now, client));
    assert_eq!(pair.hosts[0].close(pair.now, client), Err(Errno::EBADF));
}

#[test]
fn reading_shut_down_still_takes_data() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    pair.hosts[1]
        .shutdown(pair.now, server, How::Read)
        .expect("connected");
    assert_eq!(done(pair.hosts[1].read(pair.now, server, 10)).len, 0);
    done(pair.hosts[0].write(pair.now, client, 10));
    pair.run(Duration::from_millis(15));
    assert_eq!(done(pair.hosts[1].read(pair.now, server, 100)).len, 10);
    assert_eq!(done(pair.hosts[1].read(pair.now, server, 10)).len, 0);
    pair.hosts[1]
        .shutdown(pair.now, server, How::Write)
        .expect("connected");
    assert_eq!(pair.hosts[1].write(pair.now, server, 1), Err(Errno::EPIPE));
    pair.run(Duration::from_millis(50));
    // Both halves are shut down: data resets.
    done(pair.hosts[0].write(pair.now, client, 10));
    pair.run(Duration::from_millis(50));
    assert_eq!(pair.hosts[1].read(pair.now, server, 10), Err(Errno::ECONNRESET));
    assert_eq!(pair.hosts[0].write(pair.now, client, 10), Err(Errno::EPIPE));
}

#[test]
fn a_deferred_accept_waits_for_data_or_its_time() {
    for data in [true, false] {
        let mut pair = Pair::new();
        let listener = pair.listener(5);
        pair.option(1, listener, SocketOption::DeferAccept, 3);
        let client = pair.client(false);
        let to = SocketAddr::new(SERVER, PORT);
        blocked(pair.hosts[0].connect(pair.now, client, to));
        pair.run(Duration::from_millis(50));
        done(pair.hosts[0].connect(pair.now, client, to));
        blocked(pair.hosts[1].accept(pair.now, listener));
        if data {
            done(pair.hosts[0].write(pair.now, client, 1));
            pair.run(Duration::from_millis(15));
        } else {
            pair.run(Duration::from_millis(2950));
            blocked(pair.hosts[1].accept(pair.now, listener));
            pair.run(Duration::from_millis(100));
        }
        done(pair.hosts[1].accept(pair.now, listener));
    }
}

#[test]
fn fast_open_with_a_cookie_saves_a_round_trip() {
    let mut pair = Pair::with(|config| {
        config.fast_open = super::FastOpen::from_bits(0x3, [1, 2, 3, 4]);
    });
    let listener = pair.listener(5);
    pair.option(1, listener, SocketOption::FastOpen, 2);
    let to = SocketAddr::new(SERVER, PORT);
    let flags = SendFlags {
        fast_open: true,
        ..SendFlags::default()
    };
    // The first open asks for a cookie, the second uses it.
    for (round, at_once) in [(0, false), (1, true)] {
        let client = pair.client(true);
        let sent = pair.hosts[0].send(pair.now, client, 100, flags, Some(to));
        if at_once {
            assert_eq!(done(sent).len, 100);
        } else {
            assert_eq!(sent, Err(Errno::EINPROGRESS));
        }
        pair.run(Duration::from_millis(12));
        if at_once {
            // One way: the handshake is not over, the data can be read and answered.
            let (server, _) = done(pair.hosts[1].accept(pair.now, listener));
            assert_eq!(done(pair.hosts[1].read(pair.now, server, 1000)).len, 100);
            assert_eq!(done(pair.hosts[1].write(pair.now, server, 50)).len, 50);
            pair.run(Duration::from_millis(10));
            assert_eq!(done(pair.hosts[0].read(pair.now, client, 1000)).len, 50);
            let info = pair.hosts[0].info(pair.now, client).expect("open");
            assert_eq!(
                info.options & super::TcpInfo::OPTION_SYN_DATA,
                super::TcpInfo::OPTION_SYN_DATA
            );
        } else {
            blocked(pair.hosts[1].accept(pair.now, listener));
            pair.run(Duration::from_millis(50));
            done(pair.hosts[1].accept(pair.now, listener));
        }
        assert!(
            pair.hosts[0].send(pair.now, client, 1, flags, Some(to)).is_ok(),
            "{round}"
        );
        assert_eq!(
            pair.hosts[0].send(pair.now, client, 1, flags, Some(to)),
            Err(Errno::EISCONN)
        );
    }
}

#[test]
fn a_deferred_connect_opens_with_the_first_write() {
    let mut pair = Pair::with(|config| {
        config.fast_open = super::FastOpen::from_bits(0x207, [0; 4]); // nobody asks for cookies
    });
    let listener = pair.listener(5);
    pair.option(1, listener, SocketOption::FastOpen, 2);
    let to = SocketAddr::new(SERVER, PORT);
    let client = pair.client(true);
    pair.option(0, client, SocketOption::FastOpenConnect, 1);
    done(pair.hosts[0].connect(pair.now, client, to));
    pair.drain();
    assert!(pair.wire.is_empty());
    assert_eq!(pair.hosts[0].connect(pair.now, client, to), Err(Errno::EISCONN));
    assert_eq!(pair.hosts[0].poll(pair.now, client, BOTH), Ok(Events::OUT));
    assert_eq!(pair.hosts[0].read(pair.now, client, 1), Err(Errno::EAGAIN));
    assert_eq!(done(pair.hosts[0].write(pair.now, client, 10)).len, 10);
    pair.run(Duration::from_millis(12));
    let (server, _) = done(pair.hosts[1].accept(pair.now, listener));
    assert_eq!(done(pair.hosts[1].read(pair.now, server, 100)).len, 10);
}

#[test]
fn the_urgent_byte_is_read_apart() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    let oob = SendFlags {
        out_of_band: true,
        ..SendFlags::default()
    };
    let urgent = RecvFlags {
        out_of_band: true,
        ..RecvFlags::default()
    };
    assert_eq!(
        pair.hosts[1].recv(pair.now, server, 1, urgent),
        Err(Errno::EINVAL)
    );
    done(pair.hosts[0].write(pair.now, client, 5));
    done(pair.hosts[0].send(pair.now, client, 3, oob, None));
    done(pair.hosts[0].write(pair.now, client, 4));
    pair.run(Duration::from_millis(30));
    let ready = pair.hosts[1].poll(pair.now, server, Events::IN.with(Events::PRI));
    assert_eq!(ready, Ok(Events::IN.with(Events::PRI)));
    // Reading stops before it, and goes on behind it.
    assert_eq!(done(pair.hosts[1].read(pair.now, server, 100)).len, 7);
    let byte = done(pair.hosts[1].recv(pair.now, server, 1, urgent));
    assert_eq!((byte.start, byte.len), (7, 1));
    assert_eq!(
        pair.hosts[1].recv(pair.now, server, 1, urgent),
        Err(Errno::EINVAL),
        "once"
    );
    assert_eq!(done(pair.hosts[1].read(pair.now, server, 100)).len, 4);
}

#[test]
fn a_socket_that_was_disconnected_while_it_lingered_is_closed_like_any_other() {
    let mut pair = Pair::new();
    let (client, first) = pair.connected();
    let linger = OptionValue::Linger { on: true, seconds: 5 };
    pair.hosts[0]
        .setsockopt(pair.now, client, SocketOption::Linger, &linger)
        .expect("a known option");
    done(pair.hosts[0].write(pair.now, client, 1000));
    blocked(pair.hosts[0].close(pair.now, client));
    pair.hosts[0].disconnect(pair.now, client).expect("disconnected");
    let listener = pair.listener(5);
    blocked(pair.hosts[0].connect(pair.now, client, SocketAddr::new(SERVER, PORT)));
    pair.run(Duration::from_millis(50));
    done(pair.hosts[0].connect(pair.now, client, SocketAddr::new(SERVER, PORT)));
    let (server, _) = done(pair.hosts[1].accept(pair.now, listener));
    for fd in [first, server, listener] {
        done(pair.hosts[1].close(pair.now, fd));
    }
    pair.run(Duration::from_millis(50));
    // The peer has ended: a FIN is sent, and this end waits for its acknowledgement.
    blocked(pair.hosts[0].close(pair.now, client));
    pair.run(Duration::from_secs(300));
    done(pair.hosts[0].close(pair.now, client));
    pair.run(Duration::from_secs(300));
    assert_eq!(pair.hosts.each_ref().map(Stack::slots_in_use), [0, 0]);
}

mod blocking;
mod families;
mod notice;
mod options;
mod paths;
mod table;
mod two_way;

mod random {
    use super::{CLIENT, Pair, SERVER};
    use crate::socket::{Events, Family, Fd, How, OptionValue, RecvFlags, SendFlags, SocketOption, Stack};
    use crate::time::Duration;
    use core::net::SocketAddr;
    use proptest::prelude::*;

    fn call(pair: &mut Pair, host: usize, what: u8, fd: u8, number: u32) {
        let now = pair.now;
        let stack = &mut pair.hosts[host];
        let fd = Fd(3 + u32::from(fd % 5));
        let port = 8080 + (number % 2) as u16;
        let own = [CLIENT, SERVER][host];
        let other = SocketAddr::new([SERVER, CLIENT][host], port);
        // Every answer is a right one; what counts is what the stack does afterwards.
        match what % 16 {
            0 => _ = stack.socket(now, Family::V4),
            1 => _ = stack.bind(now, fd, SocketAddr::new(own, port)),
            2 => _ = stack.listen(now, fd, (number % 3) as i32),
            3 => _ = stack.accept(now, fd),
            4 => _ = stack.connect(now, fd, other),
            5 => _ = stack.read(now, fd, u64::from(number % 100_000)),
            6 => _ = stack.write(now, fd, u64::from(number % 100_000)),
            7 => _ = stack.shutdown(now, fd, [How::Read, How::Write, How::Both][number as usize % 3]),
            8 => _ = stack.close(now, fd),
            9 => _ = stack.set_nonblocking(fd, number.is_multiple_of(2)),
            10 => {
                let option = SocketOption::ALL[number as usize % SocketOption::ALL.len()];
                let value = OptionValue::Int((number >> 8) as i32 % 5000);
                let _ = stack.setsockopt(now, fd, option, &value);
                let _ = stack.getsockopt(now, fd, option);
            }
            11 => {
                let linger = OptionValue::Linger {
                    on: true,
                    seconds: (number % 3) as i32,
                };
                let _ = stack.setsockopt(now, fd, SocketOption::Linger, &linger);
            }
            12 => _ = stack.disconnect(now, fd),
            13 => {
                let flags = RecvFlags::from_bits((number % 0x200) as i32).unwrap_or_default();
                let _ = stack.recv(now, fd, u64::from(number % 5000), flags);
            }
            14 => {
                let flags = SendFlags::from_bits((number % 0x10000) as i32).unwrap_or_default();
                let _ = stack.send(now, fd, u64::from(number % 5000), flags, None);
            }
            _ => {
                let _ = stack.poll(now, fd, Events(0xffff));
                let _ = stack.info(now, fd);
                let _ = stack.input_queue(fd);
                let _ = stack.output_queue(now, fd);
                let _ = stack.unsent(now, fd);
                let _ = stack.remote_address(fd);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Whatever is called in whatever order: deadlines stay ahead, and when everything is closed nothing is left.
        #[test]
        fn nothing_is_left_of_closed_sockets(
            calls in prop::collection::vec((0_usize..2, any::<u8>(), any::<u8>(), any::<u32>(), 0_u64..60), 1..120),
            lossy in any::<bool>(),
        ) {
            let mut pair = Pair::new();
            let _ = pair.connected();
            let _ = pair.listener(1);
            for (at, (host, what, fd, number, wait)) in calls.into_iter().enumerate() {
                call(&mut pair, host, what, fd, number);
                pair.cut = lossy && at % 7 == 0;
                pair.run(Duration::from_millis(wait));
            }
            pair.cut = false;
            for _ in 0..3 {
                for host in 0..2 {
                    for fd in 3..130 {
                        let _ = pair.hosts[host].close(pair.now, Fd(fd));
                    }
                }
                pair.run(Duration::from_secs(5));
            }
            pair.run(Duration::from_secs(300));
            prop_assert_eq!(pair.hosts.each_ref().map(Stack::slots_in_use), [0, 0]);
            prop_assert_eq!(pair.hosts.each_ref().map(Stack::time_wait_count), [0, 0]);
            prop_assert_eq!(pair.hosts.each_ref().map(Stack::poll_timeout), [None, None]);
            for stack in &pair.hosts {
                prop_assert!(stack.tuples.is_empty() && stack.ports.is_empty() && stack.wait_ports.is_empty());
                prop_assert!(stack.output.is_empty() && stack.fds.is_empty());
            }
        }
    }
}
