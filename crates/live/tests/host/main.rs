//! Our TCP as a host against the kernel's, in both roles: what was sent is what arrives, byte for byte, whatever the path does.
//! Needs namespaces and TUN; says so and skips without.
//!
//! `damage` is a bad path in front of a host, `peers` the applications on both sides, `calls` what single calls do, `link` the same
//! through the emulated link; `soak` the long runs.
#![cfg(target_os = "linux")]

mod calls;
mod damage;
mod link;
mod malformed;
mod peers;
mod soak;

use damage::{Damage, Damaging};
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_live::host::{Host, HostConfig, Place};
use fleetfoot_live::service::{Server, Service};
use fleetfoot_live::{Error, Namespace};
use std::net::{IpAddr, SocketAddr};

fn skips() -> bool {
    match Namespace::available() {
        Ok(()) => false,
        Err(reason) => {
            println!("skipped: {reason}");
            true
        }
    }
}

/// A host on a device of its own behind a bad path, its addresses, and those of the kernel's side.
struct Attachment {
    host: Host,
    ours: Vec<IpAddr>,
    kernel: Vec<IpAddr>,
}

fn attach(number: u32, veth: bool, damage: Damage) -> Result<Attachment, Error> {
    let place = Place {
        veth,
        ..Place::numbered(number)
    };
    let attached = place.attach()?;
    let config = HostConfig {
        addresses: place.hosts(),
        tcp: Config::profile(Profile::Linux),
        seed: u64::from(number),
    };
    let device = Damaging::new(attached.device, damage, u64::from(number));
    Ok(Attachment {
        host: Host::new(Box::new(device), config),
        ours: place.hosts(),
        kernel: attached.kernel,
    })
}

/// Serves until `work`, which runs in a thread of the same namespace, is done.
fn serving<T: Send>(
    host: Host,
    service: Service,
    work: impl FnOnce() -> T + Send,
) -> Result<(T, Server), Error> {
    let any: SocketAddr = "[::]:7".parse().expect("an address");
    let mut server = Server::new(host, any, 1000, service).expect("a free port");
    let (reading, writing) = std::io::pipe().expect("a pipe");
    let result = std::thread::scope(|scope| {
        let working = scope.spawn(move || {
            let result = work();
            drop(writing);
            result
        });
        let served = server.run(&reading);
        let result = working
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        served.map(|()| result)
    })?;
    Ok((result, server))
}

/// A transfer over a bad path: how it was, for those who want to know.
struct Transferred {
    packets: u64,
    bad_checksums: u64,
}

/// The kernel sends through our echo.
fn kernel_to_ours(
    number: u32,
    veth: bool,
    damage: Damage,
    v6: bool,
    connections: usize,
    bytes: u64,
) -> Transferred {
    Namespace::run(|_| {
        let Attachment { host, ours, .. } = attach(number, veth, damage)?;
        let to = SocketAddr::new(ours[usize::from(v6)], 7);
        let ((), server) = serving(host, Service::Echo, || {
            peers::kernel_clients(to, connections, bytes);
        })?;
        let served = server.served();
        assert_eq!(served.received, bytes * connections as u64);
        assert_eq!((served.sent, served.failed), (served.received, 0));
        let counters = server.host().counters();
        assert_eq!(counters.lost_bytes, 0);
        Ok(Transferred {
            packets: counters.packets_in + counters.packets_out,
            bad_checksums: counters.bad_checksum,
        })
    })
    .expect("a namespace")
}

/// We send through an echo of the kernel's.
fn ours_to_kernel(
    number: u32,
    veth: bool,
    damage: Damage,
    v6: bool,
    connections: usize,
    bytes: u64,
) -> Transferred {
    Namespace::run(|_| {
        let Attachment { mut host, kernel, .. } = attach(number, veth, damage)?;
        let to = SocketAddr::new(kernel[usize::from(v6)], 7);
        let echo = peers::KernelEcho::start(to);
        peers::our_clients(&mut host, to, connections, bytes)?;
        echo.end();
        let counters = host.counters();
        assert_eq!(counters.lost_bytes, 0);
        assert_eq!(host.bytes_held(), 0, "everything was read and acknowledged");
        Ok(Transferred {
            packets: counters.packets_in + counters.packets_out,
            bad_checksums: counters.bad_checksum,
        })
    })
    .expect("a namespace")
}

#[test]
fn what_is_sent_arrives_in_both_roles_and_families() {
    if skips() {
        return;
    }
    for v6 in [false, true] {
        kernel_to_ours(1, false, Damage::NONE, v6, 1, 60_000_000);
        ours_to_kernel(2, false, Damage::NONE, v6, 1, 60_000_000);
        kernel_to_ours(3, true, Damage::NONE, v6, 2, 5_000_000);
        ours_to_kernel(4, true, Damage::NONE, v6, 2, 5_000_000);
    }
}

#[test]
fn what_is_sent_arrives_over_bad_paths() {
    if skips() {
        return;
    }
    for (number, damage) in [
        Damage {
            loss: 0.01,
            ..Damage::NONE
        },
        Damage {
            loss: 0.05,
            ..Damage::NONE
        },
        Damage {
            loss: 0.10,
            ..Damage::NONE
        },
        Damage {
            twice: 0.05,
            ..Damage::NONE
        },
        Damage {
            late: 0.05,
            ..Damage::NONE
        },
        Damage {
            bits: 0.02,
            ..Damage::NONE
        },
    ]
    .into_iter()
    .enumerate()
    {
        let number = number as u32;
        // As many at once as share the waits for timers.
        let bytes = if damage.loss > 0.02 { 100_000 } else { 500_000 };
        let there = kernel_to_ours(20 + number, false, damage, number.is_multiple_of(2), 20, bytes);
        let back = ours_to_kernel(40 + number, false, damage, !number.is_multiple_of(2), 20, bytes);
        if damage.bits > 0.0 {
            assert!(
                there.bad_checksums > 0 && back.bad_checksums > 0,
                "damage was noticed"
            );
        }
    }
}

#[test]
fn a_thousand_connections_at_once_and_nothing_is_left() {
    if skips() {
        return;
    }
    let descriptors = || std::fs::read_dir("/proc/self/fd").expect("it is there").count();
    let interfaces = || {
        std::fs::read_to_string("/proc/net/dev")
            .expect("it is there")
            .lines()
            .count()
    };
    let before = interfaces();
    Namespace::run(|_| {
        let Attachment { host, ours, .. } = attach(60, false, Damage::NONE)?;
        let to = SocketAddr::new(ours[0], 7);
        let ((), mut server) = serving(host, Service::Echo, || {
            peers::many_kernel_clients(to, 1000, 20_000);
        })?;
        assert_eq!(server.served().connections, 1000);
        assert_eq!(server.served().sent, 20_000_000);
        // What is left of them ends by itself.
        for _ in 0..200 {
            server.step()?;
            if server.host().bytes_held() == 0 && server.host().stack().slots_in_use() == 1 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!((server.open(), server.host().bytes_held()), (0, 0));
        assert_eq!(server.host().stack().slots_in_use(), 1, "the listener");
        Ok(())
    })
    .expect("a namespace");
    Namespace::run(|_| {
        let Attachment { mut host, kernel, .. } = attach(61, false, Damage::NONE)?;
        let to = SocketAddr::new(kernel[1], 7);
        let open = descriptors();
        let echo = peers::KernelEcho::start(to);
        peers::our_clients(&mut host, to, 1000, 5000)?;
        echo.end();
        assert!(
            descriptors() <= open + 1,
            "sockets of the kernel's side were closed"
        );
        Ok(())
    })
    .expect("a namespace");
    assert_eq!(interfaces(), before);
}
