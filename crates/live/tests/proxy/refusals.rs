//! What clients are told that do not get what they ask for, and who is not served at all.

use crate::damage::Damage;
use crate::peers::{KernelEcho, connected};
use crate::{
    Attachment, ask_http, ask_socks, attach, config, exchange, is_reset, lookup, proxying, skips, tcp,
};
use fleetfoot_core::time;
use fleetfoot_live::Namespace;
use fleetfoot_live::proxy::{Front, Limits, MOST, ProxyConfig, Target};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// A network that sends packets nowhere, and one that says it has no way.
const SILENT: &str = "203.0.113.9:80";
const UNREACHABLE: &str = "192.0.2.9:80";

fn address(text: &str) -> Target {
    Target::Address(text.parse().expect("an address"))
}

#[test]
fn clients_hear_why_a_target_is_not_reached() {
    if skips() {
        return;
    }
    Namespace::run(|namespace| {
        namespace.sysctl("net.ipv4.ip_forward", "1")?;
        namespace.ip("route add blackhole 203.0.113.0/24\nroute add unreachable 192.0.2.0/24")?;
        // A blackhole answers a forwarded packet with nothing, an unreachable route with ICMP 3/1.
        let Attachment { host, ours, kernel } = attach(120, Damage::NONE, tcp())?;
        let nobody = SocketAddr::new(kernel[0], 9);
        let hasty = ProxyConfig {
            limits: Limits {
                // A refusal is heard well before that, also on a machine with other work.
                connect: time::Duration::from_secs(3),
                ..Limits::default()
            },
            lookup: lookup(vec![("empty.test", Vec::new()), ("own.test", vec![ours[0]])]),
            ..config(None)
        };
        let ((), proxy) = proxying(host, hasty, |at| {
            for (target, code, status) in [
                (Target::Address(nobody), 5, 502),
                (Target::Address(SocketAddr::new(kernel[1], 9)), 5, 502),
                (address(UNREACHABLE), 4, 502),
                (address(SILENT), 4, 504),
                (address("127.0.0.1:22"), 2, 403),
                (address("[::1]:22"), 2, 403),
                (address("[::ffff:127.0.0.1]:22"), 2, 403),
                (address("0.0.0.0:22"), 2, 403),
                (address("224.0.0.1:22"), 2, 403),
                (address("255.255.255.255:22"), 2, 403),
                (Target::Address(SocketAddr::new(ours[0], 7)), 2, 403),
                (Target::Name("own.test".into(), 7), 2, 403),
                (Target::Name("empty.test".into(), 80), 4, 502),
                (Target::Name("unknown.test".into(), 80), 4, 502),
            ] {
                let mut stream = connected(at[0]);
                assert_eq!(ask_socks(&mut stream, &target), code, "{target}");
                assert_eq!(stream.read(&mut [0]).expect("an end"), 0, "{target}");
                let mut stream = connected(at[1]);
                assert_eq!(ask_http(&mut stream, &target), status, "{target}");
                let mut words = String::new();
                stream.read_to_string(&mut words).expect("an end");
                assert!(words.starts_with("fleetfoot proxy: "), "{words}");
            }
        })?;
        let counters = proxy.counters();
        assert_eq!(
            (counters.refused, counters.unreachable, counters.timed_out),
            (4, 2, 2)
        );
        assert_eq!(
            (counters.forbidden, counters.own, counters.unknown_name),
            (16, 4, 4)
        );
        assert_eq!((counters.connected, counters.open), (0, 0));
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn the_next_address_of_a_name_is_tried() {
    if skips() {
        return;
    }
    Namespace::run(|namespace| {
        namespace.sysctl("net.ipv4.ip_forward", "1")?;
        namespace.ip("route add blackhole 203.0.113.0/24\nroute add unreachable 192.0.2.0/24")?;
        let Attachment { host, kernel, .. } = attach(121, Damage::NONE, tcp())?;
        let echo = KernelEcho::start(SocketAddr::new(kernel[0], 7));
        let ip = |text: &str| text.parse::<SocketAddr>().expect("an address").ip();
        let several = vec![
            ip(UNREACHABLE),
            IpAddr::from([127, 0, 0, 1]),
            ip(SILENT),
            kernel[0],
        ];
        let patient = ProxyConfig {
            limits: Limits {
                attempt: time::Duration::from_millis(200),
                ..Limits::default()
            },
            lookup: lookup(vec![("several.test", several)]),
            ..config(None)
        };
        let ((), proxy) = proxying(host, patient, |at| {
            let mut stream = connected(at[0]);
            assert_eq!(ask_socks(&mut stream, &Target::Name("several.test".into(), 7)), 0);
            exchange(stream, 1, 10_000);
        })?;
        echo.end();
        assert_eq!((proxy.counters().connected, proxy.counters().finished), (1, 1));
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn a_refusal_of_the_fixed_target_is_a_reset() {
    if skips() {
        return;
    }
    Namespace::run(|_| {
        let Attachment { host, kernel, .. } = attach(122, Damage::NONE, tcp())?;
        let fixed = config(Some(Target::Address(SocketAddr::new(kernel[0], 9))));
        let ((), proxy) = proxying(host, fixed, |at| is_reset(&mut connected(at[0])))?;
        assert_eq!((proxy.counters().refused, proxy.counters().open), (1, 0));
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn who_says_nothing_or_too_little_is_closed_in_time() {
    if skips() {
        return;
    }
    Namespace::run(|_| {
        let Attachment { host, .. } = attach(123, Damage::NONE, tcp())?;
        let strict = ProxyConfig {
            limits: Limits {
                request: time::Duration::from_millis(300),
                farewell: time::Duration::from_millis(200),
                ..Limits::default()
            },
            ..config(None)
        };
        let ((), proxy) = proxying(host, strict, |at| {
            let mut silent = connected(at[0]);
            assert_eq!(silent.read(&mut [0]).expect("an end"), 0);
            // One that sends a byte now and then gets no more time than others.
            let mut slow = connected(at[0]);
            let mut written = 0;
            for byte in b"CONNECT example.org:443 HTTP/1.1\r\n".iter().cycle() {
                if slow.write_all(&[*byte]).is_err() {
                    break;
                }
                written += 1;
                std::thread::sleep(Duration::from_millis(20));
                assert!(written < 2000, "it is never closed");
            }
            let mut half = connected(at[0]);
            half.write_all(&[5, 1]).expect("room");
            assert_eq!(half.read(&mut [0]).expect("an end"), 0);
            let mut late = connected(at[0]);
            late.write_all(b"CONNECT").expect("room");
            let mut words = String::new();
            late.read_to_string(&mut words).expect("an end");
            assert!(words.starts_with("HTTP/1.1 408 "), "{words}");
            // One that leaves is not waited for.
            drop(connected(at[0]));
            let mut long = connected(at[0]);
            long.write_all(b"CONNECT a:1 HTTP/1.1\r\nX: ").expect("room");
            let _ = long.write_all(&vec![b'x'; 4 * MOST]);
            let mut words = Vec::new();
            let _ = long.read_to_end(&mut words);
            assert!(words.starts_with(b"HTTP/1.1 431 "));
        })?;
        let counters = proxy.counters();
        assert_eq!((counters.too_slow, counters.malformed), (4, 1));
        assert_eq!((counters.abandoned, counters.open), (1, 0));
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn only_who_is_on_the_list_is_served_and_no_proxy_serves_itself() {
    if skips() {
        return;
    }
    Namespace::run(|namespace| {
        let Attachment { host, kernel, .. } = attach(124, Damage::NONE, tcp())?;
        namespace.ip("address add 10.77.0.1/24 dev lo")?;
        let everywhere = ProxyConfig {
            front: Front::Kernel(vec!["0.0.0.0:0".parse().expect("an address")]),
            allow: vec!["10.77.0.0/24".parse().expect("a network")],
            ..config(None)
        };
        let ((), proxy) = proxying(host, everywhere, |at| {
            let port = at[0].port();
            // From 127.0.0.1, which is not on the list.
            let mut stranger = connected(SocketAddr::new([127, 0, 0, 1].into(), port));
            is_reset(&mut stranger);
            // From 10.77.0.1 to the same address; the target is the proxy, by each of its addresses.
            for own in [kernel[0], IpAddr::from([10, 77, 0, 1])] {
                let mut stream = connected(SocketAddr::new([10, 77, 0, 1].into(), port));
                let target = Target::Address(SocketAddr::new(own, port));
                assert_eq!(ask_socks(&mut stream, &target), 2, "{own}");
            }
            let other: Result<TcpStream, _> = TcpStream::connect((kernel[0], port + 1));
            assert!(other.is_err());
        })?;
        let counters = proxy.counters();
        assert_eq!((counters.not_allowed, counters.own), (1, 2));
        Ok(())
    })
    .expect("a namespace");
}
