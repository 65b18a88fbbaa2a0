//! A thin stream over a link that loses one packet in ten: with redundant data bundling in the proxy, what is lost need not be sent
//! again. Held to the counters, since times on a shared machine prove nothing.

use crate::peers::connected;
use crate::{config, proxying, skips, tcp};
use fleetfoot_core::link::{Impairments, Link, LinkConfig, Loss};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::queue::AnyQueue;
use fleetfoot_core::rng::Probability;
use fleetfoot_core::tcp::{Config, Rdb};
use fleetfoot_core::time;
use fleetfoot_core::units::Rate;
use fleetfoot_live::host::{Host, HostConfig, Place};
use fleetfoot_live::proxy::Target;
use fleetfoot_live::{Direction, Shell};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::time::Duration;

/// Messages, their length, and the time between them.
const MESSAGES: usize = 300;
const LENGTH: usize = 100;
const INTERVAL: Duration = Duration::from_millis(15);

fn direction(config: &LinkConfig, seed: u64) -> Direction {
    let entry = AnyQueue::entry_among(&[], "drop-tail").expect("a registered queue");
    let values = Values::defaults(entry.parameters);
    let queue = AnyQueue::build_among(&[], entry.name, &values, &config.link_context(seed)).expect("a queue");
    Direction::new(Link::new(queue, config, seed, "test"))
}

fn bundling(on: bool) -> Config {
    Config {
        rdb: on.then_some(Rdb::STANDARD),
        ..tcp()
    }
}

/// Inside of the link: a proxy, and a client that sends a message every few milliseconds. Its counters go to standard output.
#[test]
#[ignore = "a role of other tests"]
fn sends_messages_through_a_proxy() {
    let Ok(bundles) = std::env::var("BUNDLES") else {
        return;
    };
    let word = |name| std::env::var(name).expect("set by the link");
    let address = word("FLEETFOOT_ADDRESS");
    let own = address.split_whitespace().map(|text| {
        let (ip, length) = text.split_once('/').expect("a prefix");
        (ip.parse().expect("an address"), length.parse().expect("a length"))
    });
    let place = Place {
        addresses: own.collect(),
        ..Place::numbered(140)
    };
    let attached = place.attach().expect("a device");
    let host = Host::new(
        attached.device,
        HostConfig {
            addresses: place.hosts(),
            tcp: bundling(bundles == "on"),
            seed: 1,
        },
    );
    let far = SocketAddr::new(word("FLEETFOOT_FAR").parse().expect("an address"), 7000);
    let ((), proxy) = proxying(host, config(Some(Target::Address(far))), |at| {
        let mut stream = connected(at[0]);
        for number in 0..MESSAGES {
            stream.write_all(&[number as u8; LENGTH]).expect("room");
            std::thread::sleep(INTERVAL);
        }
        stream.shutdown(Shutdown::Write).expect("open");
        assert_eq!(stream.read(&mut [0]).expect("an end"), 0);
    })
    .expect("a proxy");
    assert_eq!(proxy.counters().bytes_to_target, (MESSAGES * LENGTH) as u64);
    let totals = proxy.host().stack().totals();
    let text = format!(
        "{} {} {}",
        totals.rdb_packets, totals.rdb_bytes, totals.retransmits
    );
    std::fs::write(word("COUNTED"), text).expect("a file");
}

/// Packets and bytes that were bundled, and retransmissions.
fn counted(bundles: &str) -> [u64; 3] {
    let config = LinkConfig {
        impairments: Impairments {
            loss: Loss::Random(Probability::from_f64(0.10)),
            ..Impairments::default()
        },
        ..LinkConfig::new(Rate::from_bps(100_000_000), time::Duration::from_millis(30))
    };
    let file = std::env::temp_dir().join(format!("fleetfoot-proxy-{bundles}-{}", std::process::id()));
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            Shell::isolate().expect("root may");
            let listener = TcpListener::bind("[::]:7000").expect("a port");
            let target = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut all = Vec::new();
                stream.read_to_end(&mut all).expect("an end");
                let expected = (0..MESSAGES).flat_map(|number| [number as u8; LENGTH]);
                assert!(all.into_iter().eq(expected));
            });
            let program = std::env::current_exe().expect("this program has a path");
            let mut command: Vec<OsString> = vec!["env".into(), format!("BUNDLES={bundles}").into()];
            command.push(format!("COUNTED={}", file.display()).into());
            command.push(program.into());
            let role = [
                "--exact",
                "thin::sends_messages_through_a_proxy",
                "--ignored",
                "--nocapture",
            ];
            command.extend(role.map(OsString::from));
            let shell = Shell {
                command,
                mtu: config.mtu,
                to_stderr: true,
                ..Shell::default()
            };
            let finished = shell
                .run([direction(&config, 1), direction(&config, 2)])
                .expect("a link");
            assert!(finished.status.success(), "{}", finished.status);
            target.join().expect("every message came");
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let text = std::fs::read_to_string(&file).expect("the role wrote it");
    let _ = std::fs::remove_file(&file);
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    println!("bundles {bundles}: {text} (packets and bytes bundled, retransmissions)");
    numbers.try_into().expect("three numbers")
}

#[test]
fn bundles_repair_a_thin_stream_without_retransmissions() {
    if skips() {
        return;
    }
    let [packets, bytes, with] = counted("on");
    let [no_packets, no_bytes, without] = counted("off");
    assert_eq!((no_packets, no_bytes), (0, 0));
    assert!(
        packets > 100 && bytes >= packets * LENGTH as u64,
        "{packets} with {bytes} bytes"
    );
    assert!(without >= 10, "about one segment in ten is lost: {without}");
    assert!(
        2 * with < without,
        "{with} retransmissions with bundles, {without} without"
    );
}
