//! Every call in every state of a socket, against what Linux 6.18 answered (`linux-6.18.txt`).

use super::Pair;
use crate::socket::{Called, Errno, Events, Fd, How, OptionValue, Outcome, RecvFlags, SocketOption};
use crate::time::Duration;
use alloc::format;
use alloc::string::{String, ToString};
use core::net::SocketAddr;

use super::{CLIENT, PORT, SERVER};

const STEP: Duration = Duration::from_millis(50);

fn connected() -> (Pair, Fd, Fd) {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    pair.hosts[0].set_nonblocking(client, true).expect("open");
    pair.hosts[1].set_nonblocking(server, true).expect("open");
    (pair, client, server)
}

fn reset(pair: &mut Pair, server: Fd) {
    let linger = OptionValue::Linger { on: true, seconds: 0 };
    pair.hosts[1]
        .setsockopt(pair.now, server, SocketOption::Linger, &linger)
        .expect("open");
    pair.hosts[1].close(pair.now, server).expect("open");
    pair.run(STEP);
}

/// Two hosts of which the first has a socket in state `name`.
fn state(name: &str) -> (Pair, Fd) {
    let target = SocketAddr::new(SERVER, PORT);
    match name {
        "fresh" | "bound" | "listening" => {
            let mut pair = Pair::new();
            let fd = pair.client(true);
            if name != "fresh" {
                pair.hosts[0]
                    .bind(pair.now, fd, SocketAddr::new(CLIENT, 0))
                    .expect("bound");
            }
            if name == "listening" {
                pair.hosts[0].listen(pair.now, fd, 1).expect("listening");
            }
            pair.listener(5);
            (pair, fd)
        }
        "connecting" | "refused" => {
            let mut pair = Pair::new();
            let fd = pair.client(true);
            pair.cut = name == "connecting";
            assert_eq!(
                pair.hosts[0].connect(pair.now, fd, target),
                Err(Errno::EINPROGRESS)
            );
            pair.run(STEP);
            if name == "refused" {
                pair.listener(5);
            }
            (pair, fd)
        }
        _ => {
            let (mut pair, client, server) = connected();
            let now = pair.now;
            if name.starts_with("data") {
                pair.hosts[1].write(now, server, 100).expect("room");
                pair.run(STEP);
            }
            let now = pair.now;
            match name {
                "connected" | "data" => {}
                "peer_closed" | "data_and_end" => drop(pair.hosts[1].close(now, server)),
                "shut_write" => pair.hosts[0]
                    .shutdown(now, client, How::Write)
                    .expect("connected"),
                "shut_read" => pair.hosts[0].shutdown(now, client, How::Read).expect("connected"),
                "shut_both" => pair.hosts[0].shutdown(now, client, How::Both).expect("connected"),
                "was_reset" | "data_and_reset" => reset(&mut pair, server),
                "end_and_reset" => {
                    pair.hosts[1]
                        .shutdown(now, server, How::Write)
                        .expect("connected");
                    pair.run(STEP);
                    reset(&mut pair, server);
                }
                "ended" => {
                    pair.hosts[0]
                        .shutdown(now, client, How::Write)
                        .expect("connected");
                    pair.run(STEP);
                    pair.hosts[1].close(pair.now, server).expect("open");
                }
                other => panic!("no state {other}"),
            }
            pair.run(STEP);
            (pair, client)
        }
    }
}

fn may_wait<T>(called: Called<T>, value: impl Fn(T) -> u64) -> String {
    match called {
        Ok(Outcome::Done(done)) => value(done).to_string(),
        Ok(Outcome::Blocked) => "blocked".to_string(),
        Err(errno) => errno.name().to_string(),
    }
}

fn at_once<T>(result: Result<T, Errno>, value: impl Fn(T) -> u64) -> String {
    may_wait(result.map(Outcome::Done), value)
}

fn once(pair: &mut Pair, fd: Fd, call: &str) -> String {
    let now = pair.now;
    let host = &mut pair.hosts[0];
    let target = SocketAddr::new(SERVER, PORT);
    match call {
        "read" => may_wait(host.read(now, fd, 1000), |read| read.len),
        "peek" => {
            let peek = RecvFlags {
                peek: true,
                ..RecvFlags::default()
            };
            may_wait(host.recv(now, fd, 1000, peek), |read| read.len)
        }
        "write" => may_wait(host.write(now, fd, 10), |sent| sent.len),
        "poll" => {
            let asked = Events::IN.with(Events::PRI).with(Events::OUT).with(Events::RDHUP);
            let events = host.poll(now, fd, asked).expect("open");
            let names = [
                (Events::IN, "IN"),
                (Events::PRI, "PRI"),
                (Events::OUT, "OUT"),
                (Events::ERR, "ERR"),
                (Events::HUP, "HUP"),
                (Events::RDHUP, "RDHUP"),
            ];
            let mut text = String::new();
            for (event, name) in names {
                if events.contains(event) {
                    text = format!("{text}{}{name}", if text.is_empty() { "" } else { "|" });
                }
            }
            if text.is_empty() { "-".to_string() } else { text }
        }
        "SO_ERROR" => match host.getsockopt(now, fd, SocketOption::Error).expect("open") {
            OptionValue::Int(number) => Errno::ALL
                .iter()
                .find(|errno| errno.number() == number)
                .map_or("0", |errno| errno.name())
                .to_string(),
            other => panic!("{other:?}"),
        },
        "accept" => may_wait(host.accept(now, fd), |_| 0),
        "listen" => at_once(host.listen(now, fd, 1), |()| 0),
        "connect" => may_wait(host.connect(now, fd, target), |()| 0),
        "bind" => at_once(host.bind(now, fd, SocketAddr::new(CLIENT, 0)), |()| 0),
        "shutdown(RD)" => at_once(host.shutdown(now, fd, How::Read), |()| 0),
        "shutdown(WR)" => at_once(host.shutdown(now, fd, How::Write), |()| 0),
        "SIOCINQ" => at_once(host.input_queue(fd), |bytes| bytes),
        "SIOCOUTQ" => at_once(host.output_queue(now, fd), |bytes| bytes),
        "getpeername" => at_once(host.remote_address(fd), |_| 0),
        other => panic!("no call {other}"),
    }
}

#[test]
fn every_call_in_every_state_answers_as_linux_does() {
    let recorded = include_str!("linux-6.18.txt");
    let mut checked = 0;
    let mut wrong = String::new();
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(call), Some(expected)) = (words.next(), words.next(), words.next()) else {
            panic!("not a line of the table: {line}");
        };
        let (mut pair, fd) = state(name);
        let mut answer = once(&mut pair, fd, call);
        if expected.contains(',') {
            pair.run(STEP);
            answer = format!("{answer},{}", once(&mut pair, fd, call));
        }
        if answer != expected {
            wrong = format!("{wrong}{name} {call}: {answer}, Linux {expected}\n");
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert_eq!(checked, 16 * 14);
}
