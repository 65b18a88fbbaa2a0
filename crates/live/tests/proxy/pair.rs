//! Two proxies with a bad path between them: clients and targets are the kernel's, both ends of the path ours.

use crate::damage::Damage;
use crate::peers::{KernelEcho, connected};
use crate::{Attachment, ask_http, ask_socks, attach, config, exchange, is_reset, proxying, skips, tcp};
use fleetfoot_live::host::Place;
use fleetfoot_live::proxy::{Counters, Front, Proxy, ProxyConfig, Target};
use fleetfoot_live::{Error, Namespace};
use std::net::SocketAddr;

/// Counts of a proxy and of its TCP.
struct Counted {
    proxy: Counters,
    retransmits: u32,
}

impl Counted {
    fn of(proxy: &Proxy) -> Counted {
        assert_eq!(proxy.host().counters().lost_bytes, 0);
        Counted {
            proxy: proxy.counters(),
            retransmits: proxy.host().stack().totals().retransmits,
        }
    }
}

/// Runs `work` at the near side of a pair; the near and the far proxy when it is done.
fn with_pair(
    number: u32,
    damage: Damage,
    v6: bool,
    target: Option<Target>,
    work: impl FnOnce(SocketAddr) + Send,
) -> Result<[Counted; 2], Error> {
    let accepted = SocketAddr::new(Place::numbered(number + 1).hosts()[usize::from(v6)], 7000);
    let near = attach(number, damage, tcp())?;
    let allow = near
        .ours
        .iter()
        .map(|ip| ip.to_string().parse().expect("an address"));
    let far_config = ProxyConfig {
        front: Front::Ours(7000),
        allow: allow.collect(),
        ..config(target)
    };
    let (stop, stopping) = std::io::pipe().expect("a pipe");
    std::thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let far = scope.spawn(move || {
            let Attachment { host, .. } = attach(number + 1, damage, tcp())?;
            let mut proxy = Proxy::new(host, far_config)?;
            let _ = ready.send(());
            proxy.run(&stop, |_| false)?;
            Ok::<_, Error>(Counted::of(&proxy))
        });
        let _ = is_ready.recv();
        let near = proxying(near.host, config(Some(Target::Address(accepted))), |at| {
            work(at[0]);
        })
        .map(|((), proxy)| Counted::of(&proxy));
        drop(stopping);
        let far = far
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok([near?, far?])
    })
}

fn passes_packets_on(namespace: &Namespace) -> Result<(), Error> {
    namespace.sysctl("net.ipv4.ip_forward", "1")?;
    namespace.sysctl("net.ipv6.conf.all.forwarding", "1")
}

#[test]
fn a_pair_carries_many_connections_over_a_path_that_loses() {
    if skips() {
        return;
    }
    let lossy = Damage {
        loss: 0.03,
        ..Damage::NONE
    };
    Namespace::run(|namespace| {
        passes_packets_on(namespace)?;
        for v6 in [false, true] {
            // A fixed target may be a loopback address of the far machine.
            let to: SocketAddr = "127.0.0.1:7".parse().expect("an address");
            let echo = KernelEcho::start(to);
            let number = 130 + 2 * u32::from(v6);
            let [near, far] = with_pair(number, lossy, v6, Some(Target::Address(to)), |at| {
                std::thread::scope(|scope| {
                    for seed in 0..30 {
                        scope.spawn(move || exchange(connected(at), seed, 200_000));
                    }
                });
            })?;
            echo.end();
            for counted in [&near, &far] {
                assert_eq!(counted.proxy.finished, 30);
                assert_eq!(counted.proxy.bytes_to_target, 6_000_000);
                assert_eq!(counted.proxy.bytes_to_client, 6_000_000);
                assert!(counted.retransmits > 0, "the path lost packets both ways");
            }
        }
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn the_far_side_of_a_pair_can_be_asked_for_targets() {
    if skips() {
        return;
    }
    Namespace::run(|namespace| {
        passes_packets_on(namespace)?;
        namespace.ip("address add 10.77.0.1/24 dev lo")?;
        let to: SocketAddr = "10.77.0.1:7".parse().expect("an address");
        let echo = KernelEcho::start(to);
        let [near, far] = with_pair(134, Damage::NONE, false, None, |at| {
            let mut stream = connected(at);
            assert_eq!(ask_socks(&mut stream, &Target::Address(to)), 0);
            exchange(stream, 1, 1_000_000);
            let mut stream = connected(at);
            assert_eq!(ask_http(&mut stream, &Target::Address(to)), 200);
            exchange(stream, 2, 1_000_000);
            for (refused, code) in [("10.77.0.1:9", 5), ("127.0.0.1:7", 2)] {
                let target = Target::Address(refused.parse().expect("an address"));
                assert_eq!(ask_socks(&mut connected(at), &target), code, "{refused}");
            }
        })?;
        echo.end();
        assert_eq!((near.proxy.accepted, far.proxy.accepted), (4, 4));
        assert_eq!((far.proxy.socks, far.proxy.http), (3, 1));
        assert_eq!((far.proxy.refused, far.proxy.forbidden), (1, 1));
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn a_pair_passes_resets_and_refusals_through_both_proxies() {
    if skips() {
        return;
    }
    Namespace::run(|namespace| {
        passes_packets_on(namespace)?;
        let nobody = Target::Address("127.0.0.1:9".parse().expect("an address"));
        let [near, far] = with_pair(136, Damage::NONE, true, Some(nobody), |at| {
            is_reset(&mut connected(at));
        })?;
        assert_eq!((near.proxy.reset_by_target, far.proxy.refused), (1, 1));
        Ok(())
    })
    .expect("a namespace");
}
