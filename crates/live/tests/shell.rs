//! Commands behind a described link. Needs namespaces; says so and skips without.
#![cfg(target_os = "linux")]

use fleetfoot_core::link::{Link, LinkConfig, LinkRate, OPPORTUNITY_BYTES};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::queue::{AnyQueue, DropReason};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Rate;
use fleetfoot_live::{Direction, Finished, Namespace, Shell};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

fn skips() -> bool {
    match Namespace::available() {
        Ok(()) => false,
        Err(reason) => {
            println!("skipped: {reason}");
            true
        }
    }
}

fn direction(config: &LinkConfig, queue: &str) -> Direction {
    let entry = AnyQueue::entry_among(&[], queue).expect("a registered queue");
    let values = Values::defaults(entry.parameters);
    let queue = AnyQueue::build_among(&[], entry.name, &values, &config.link_context(1)).expect("a queue");
    Direction::new(Link::new(queue, config, 1, "test"))
}

/// Runs the test `role` of this program behind the link.
fn behind(config: &LinkConfig, queue: &str, role: &str) -> Finished {
    let program = std::env::current_exe().expect("this program has a path");
    let command = [program.into(), OsString::from("--exact"), role.into()];
    let shell = Shell {
        command: command.into_iter().chain(["--ignored".into()]).collect(),
        mtu: config.mtu,
        ..Shell::default()
    };
    shell
        .run([direction(config, queue), direction(config, queue)])
        .expect("the link can be set up")
}

fn far() -> String {
    std::env::var("FLEETFOOT_FAR").expect("set inside")
}

/// Runs `work` where the far end is a namespace of its own.
fn isolated(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            Shell::isolate().expect("root may");
            work();
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
#[ignore = "a role of other tests"]
fn fetches() {
    let mut stream = TcpStream::connect((far(), 7000)).expect("the far end listens");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("all of it");
    assert_eq!(bytes.len(), SIZE);
}

const SIZE: usize = 1_000_000;

#[test]
fn a_download_takes_the_time_that_the_link_needs_and_not_less() {
    if skips() {
        return;
    }
    isolated(|| {
        let listener = TcpListener::bind("0.0.0.0:7000").expect("a port");
        let config = LinkConfig::new(Rate::from_bps(20_000_000), Duration::from_millis(10));
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.write_all(&vec![7; SIZE]).expect("room");
        });
        let began = Instant::now();
        let finished = behind(&config, "fq-codel", "fetches");
        server.join().expect("the server is content");
        assert!(finished.status.success());
        let [sent, received] = finished.directions;
        let (sent, received) = (sent.measured(), received.measured());
        // A megabyte at 20 Mbit/s; how late this machine was only adds to it.
        assert!(began.elapsed().as_millis() >= 400, "{:?}", began.elapsed());
        assert!(received.bytes >= SIZE as u64);
        assert!(received.delivered <= received.arrived && sent.delivered > 0);
        assert!(received.queue_delay.max() > 0, "the download waited in the queue");
        assert_eq!(received.drops[DropReason::TooBig as usize], 0, "no aggregates");
        assert_eq!(finished.missed, 0);
    });
}

#[test]
#[ignore = "a role of other tests"]
fn echoes() {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
    socket.connect((far(), 7001)).expect("an address");
    let began = Instant::now();
    socket.send(b"ping").expect("it leaves");
    let mut buffer = [0; 100];
    assert_eq!(socket.recv(&mut buffer).expect("it comes back"), 4);
    assert!(began.elapsed().as_millis() >= 60, "{:?}", began.elapsed());
}

#[test]
fn datagrams_take_the_delay_in_both_directions() {
    if skips() {
        return;
    }
    isolated(|| {
        let socket = UdpSocket::bind("0.0.0.0:7001").expect("a port");
        let config = LinkConfig::new(Rate::from_bps(100_000_000), Duration::from_millis(30));
        let server = std::thread::spawn(move || {
            let mut buffer = [0; 100];
            let (length, from) = socket.recv_from(&mut buffer).expect("a datagram");
            socket.send_to(&buffer[..length], from).expect("it leaves");
        });
        let finished = behind(&config, "drop-tail", "echoes");
        assert!(finished.status.success());
        server.join().expect("the server is content");
    });
}

#[test]
fn the_status_is_that_of_the_command_and_a_missing_one_is_named() {
    if skips() {
        return;
    }
    isolated(|| {
        let config = LinkConfig::new(Rate::from_bps(100_000_000), Duration::ZERO);
        let run = |command: &[&str]| {
            let shell = Shell {
                command: command.iter().map(OsString::from).collect(),
                mtu: 1500,
                ..Shell::default()
            };
            shell.run([direction(&config, "drop-tail"), direction(&config, "drop-tail")])
        };
        let status = run(&["sh", "-c", "exit 7"]).expect("it runs").status;
        assert_eq!(status.code(), Some(7));
        let error = run(&["no-such-program"]).err().expect("it cannot run");
        assert!(error.to_string().contains("no-such-program"), "{error}");
    });
}

#[test]
#[ignore = "a role of other tests"]
fn floods() {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
    socket.connect((far(), 7002)).expect("an address");
    for _ in 0..60 {
        socket.send(&[0; 1472]).expect("it leaves");
    }
    // Until the last of them has crossed the link.
    let mut buffer = [0; 100];
    assert_eq!(socket.recv(&mut buffer).expect("it comes back"), 4);
}

#[test]
fn a_trace_is_kept_to_the_millisecond_where_this_machine_was_not_late() {
    if skips() {
        return;
    }
    isolated(|| {
        let socket = UdpSocket::bind("0.0.0.0:7002").expect("a port");
        // One packet in every ten milliseconds.
        let mut config = LinkConfig::new(Rate::from_bps(1_000_000), Duration::ZERO);
        config.framing = OPPORTUNITY_BYTES - 1500;
        config.rate = LinkRate::Trace {
            opportunities: [Duration::from_millis(10)].into(),
            period: Duration::from_millis(10),
        };
        let server = std::thread::spawn(move || {
            let mut buffer = [0; 2000];
            let mut arrivals = Vec::new();
            loop {
                let (_, from) = socket.recv_from(&mut buffer).expect("a datagram");
                arrivals.push(Instant::now());
                if arrivals.len() == 60 {
                    socket.send_to(b"done", from).expect("it leaves");
                    return arrivals;
                }
            }
        });
        let finished = behind(&config, "drop-tail", "floods");
        assert!(finished.status.success());
        let arrivals = server.join().expect("the server is content");
        let lateness = &finished.directions[0].measured().lateness;
        if lateness.quantile(0.9).is_none_or(|late| late > 500_000) {
            println!("not judged: this machine was late");
            return;
        }
        // Medians: when the receiver itself wakes, sometimes late, is not what is tested.
        let median_gap = |apart: usize| {
            let mut gaps: Vec<f64> = arrivals
                .windows(apart + 1)
                .map(|run| (run[apart] - run[0]).as_secs_f64() * 1e3)
                .collect();
            gaps.sort_by(f64::total_cmp);
            gaps[gaps.len() / 2]
        };
        assert!((median_gap(1) - 10.0).abs() < 1.0, "{arrivals:?}");
        // No opportunity carries two of them; one that carries a small packet of neighbour discovery carries none.
        let gap = median_gap(30);
        assert!((299.0..331.0).contains(&gap), "{gap} ms, {arrivals:?}");
    });
}
