//! The same through the emulated link, whose far end is the host's side.

use crate::damage::Damage;
use crate::peers::{KernelEcho, kernel_clients, our_clients};
use crate::{Attachment, attach, serving, skips};
use fleetfoot_core::link::{Impairments, Link, LinkConfig, Loss};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::queue::AnyQueue;
use fleetfoot_core::rng::Probability;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Rate;
use fleetfoot_live::service::Service;
use fleetfoot_live::{Direction, Error, Finished, Shell};
use std::ffi::OsString;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};

fn direction(config: &LinkConfig, seed: u64) -> Direction {
    let entry = AnyQueue::entry_among(&[], "fq-codel").expect("a registered queue");
    let values = Values::defaults(entry.parameters);
    let queue = AnyQueue::build_among(&[], entry.name, &values, &config.link_context(seed)).expect("a queue");
    Direction::new(Link::new(queue, config, seed, "test"))
}

/// Runs the test `role` of this program behind the link, with `words` in its environment.
fn behind(config: &LinkConfig, role: &str, words: &[(&str, String)]) -> Result<Finished, Error> {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command: Vec<OsString> = vec!["env".into()];
    command.extend(words.iter().map(|(name, value)| format!("{name}={value}").into()));
    command.push(program.into());
    command.extend(["--exact", role, "--ignored", "--nocapture"].map(OsString::from));
    let shell = Shell {
        command,
        mtu: config.mtu,
        to_stderr: true,
        ..Shell::default()
    };
    let finished = shell.run([direction(config, 1), direction(config, 2)])?;
    assert!(finished.status.success(), "{role}: {}", finished.status);
    Ok(finished)
}

/// Runs `work` where the far end is a namespace of its own that passes packets on.
fn isolated(work: impl FnOnce() -> Result<(), Error> + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            Shell::isolate().expect("root may");
            for path in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                std::fs::write(format!("/proc/sys/net/{path}"), "1").expect("a sysctl");
            }
            work().expect("the machine gives what it gave before");
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn word(name: &str) -> String {
    std::env::var(name).expect("set by the test")
}

#[test]
#[ignore = "a role of other tests"]
fn sends_to_the_host() {
    let Ok(to) = std::env::var("TO") else { return };
    let to: SocketAddr = to.parse().expect("an address");
    let number = |name| word(name).parse::<u64>().expect("a number");
    kernel_clients(to, number("CONNECTIONS") as usize, number("BYTES"));
}

#[test]
#[ignore = "a role of other tests"]
fn echoes_to_the_host() {
    let Ok(family) = std::env::var("FAMILY") else {
        return;
    };
    let far = word(if family == "6" {
        "FLEETFOOT_FAR6"
    } else {
        "FLEETFOOT_FAR"
    });
    // Says from where it can be reached, and is told when it is no longer needed.
    let mut line = TcpStream::connect((far, 7000)).expect("the far end listens");
    let echo = KernelEcho::start(SocketAddr::new(line.local_addr().expect("connected").ip(), 7));
    std::io::Write::write_all(&mut line, &[1]).expect("connected");
    let _ = line.read(&mut [0]);
    echo.end();
}

/// Both roles over a link.
fn both(config: &LinkConfig, v6: bool, connections: usize, bytes: u64) {
    isolated(|| {
        let Attachment { host, ours, .. } = attach(90, false, Damage::NONE)?;
        let to = SocketAddr::new(ours[usize::from(v6)], 7);
        let words = [
            ("TO", to.to_string()),
            ("CONNECTIONS", connections.to_string()),
            ("BYTES", bytes.to_string()),
        ];
        // In this thread's namespace: the link is joined to it.
        let (finished, server) = serving(host, Service::Echo, || {
            behind(config, "link::sends_to_the_host", &words)
        })?;
        finished?;
        assert_eq!(server.served().sent, bytes * connections as u64);
        let Attachment { mut host, .. } = attach(91, false, Damage::NONE)?;
        let listener = TcpListener::bind(if v6 { "[::]:7000" } else { "0.0.0.0:7000" }).expect("a port");
        let words = [("FAMILY", String::from(if v6 { "6" } else { "4" }))];
        std::thread::scope(|scope| {
            let role = scope.spawn(|| behind(config, "link::echoes_to_the_host", &words));
            let (mut line, from) = listener.accept().expect("the role calls");
            line.read_exact(&mut [0]).expect("it is ready");
            our_clients(&mut host, SocketAddr::new(from.ip(), 7), connections, bytes)?;
            drop(line);
            role.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                .map(|_| ())
        })?;
        let counters = host.counters();
        assert_eq!((counters.lost_bytes, host.bytes_held()), (0, 0));
        Ok(())
    });
}

fn link(mbit: u64, delay_ms: u64, impairments: Impairments) -> LinkConfig {
    LinkConfig {
        impairments,
        ..LinkConfig::new(Rate::from_bps(mbit * 1_000_000), Duration::from_millis(delay_ms))
    }
}

#[test]
fn both_roles_through_the_emulated_link() {
    if skips() {
        return;
    }
    let clean = Impairments::default();
    let lossy = Impairments {
        loss: Loss::Random(Probability::from_f64(0.02)),
        ..clean.clone()
    };
    both(&link(200, 2, clean), false, 4, 2_000_000);
    both(&link(100, 5, lossy), true, 8, 200_000);
}
