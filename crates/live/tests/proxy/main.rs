//! The proxy between the kernel's TCP and ours: what one end sends, its end and its reset reach the other, in every protocol and over bad
//! paths, and a reader that stops stops its sender. Needs namespaces and TUN; says so and skips without.
//!
//! `refusals` is what clients are told, `pair` two proxies with a bad path between them, `thin` a thin stream over the emulated link.
#![cfg(target_os = "linux")]

#[path = "../host/damage.rs"]
mod damage;
mod pair;
#[expect(dead_code, reason = "the host's tests use the rest of it")]
#[path = "../host/peers.rs"]
mod peers;
mod refusals;
mod thin;

use damage::{Damage, Damaging};
use fleetfoot_core::tcp::{Config, Profile, ReceiveMemory};
use fleetfoot_live::host::{Host, HostConfig, Place};
use fleetfoot_live::proxy::{
    Front, Limits, Lookup, Prefix, Proxy, ProxyConfig, Target, descriptors, system_lookup,
};
use fleetfoot_live::{Error, Namespace, calls};
use peers::{KernelEcho, Noise, connected, read_to_end};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn skips() -> bool {
    match Namespace::available() {
        Ok(()) => false,
        Err(reason) => {
            println!("skipped: {reason}");
            true
        }
    }
}

/// A host on a device of its own, its addresses, and those of the kernel's side.
pub(crate) struct Attachment {
    pub(crate) host: Host,
    pub(crate) ours: Vec<IpAddr>,
    pub(crate) kernel: Vec<IpAddr>,
}

pub(crate) fn attach(number: u32, damage: Damage, tcp: Config) -> Result<Attachment, Error> {
    let place = Place::numbered(number);
    let attached = place.attach()?;
    let config = HostConfig {
        addresses: place.hosts(),
        tcp,
        seed: u64::from(number),
    };
    let device = Damaging::new(attached.device, damage, u64::from(number));
    Ok(Attachment {
        host: Host::new(Box::new(device), config),
        ours: place.hosts(),
        kernel: attached.kernel,
    })
}

pub(crate) fn tcp() -> Config {
    Config {
        nagle: false,
        ..Config::profile(Profile::Linux)
    }
}

/// Clients come from loopback, at a port that is free.
pub(crate) fn config(target: Option<Target>) -> ProxyConfig {
    let local = ["127.0.0.1:0", "[::1]:0"].map(|text| text.parse().expect("an address"));
    ProxyConfig {
        front: Front::Kernel(local.to_vec()),
        target,
        allow: Prefix::LOOPBACK.to_vec(),
        most: 2000,
        limits: Limits::default(),
        lookup: system_lookup(),
    }
}

/// Runs a proxy until `work`, which runs in a thread of the same namespace and is given where the proxy listens, is done.
pub(crate) fn proxying<T: Send>(
    host: Host,
    config: ProxyConfig,
    work: impl FnOnce(&[SocketAddr]) -> T + Send,
) -> Result<(T, Proxy), Error> {
    let mut proxy = Proxy::new(host, config)?;
    let at = proxy.listening_at();
    let (reading, writing) = std::io::pipe().expect("a pipe");
    let result = std::thread::scope(|scope| {
        let working = scope.spawn(move || {
            let result = work(&at);
            drop(writing);
            result
        });
        let ran = proxy.run(&reading, |_| false);
        let result = working
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ran.map(|()| result)
    })?;
    Ok((result, proxy))
}

/// Sends `bytes` of noise, ends, and compares what comes back until the end.
pub(crate) fn exchange(mut stream: TcpStream, seed: u64, bytes: u64) {
    let mut writer = stream.try_clone().expect("a descriptor");
    let sent = std::thread::spawn(move || {
        let (mut noise, mut hash) = (Noise(seed), blake3::Hasher::new());
        let mut buffer = vec![0; 65_536];
        let mut left = bytes;
        while left > 0 {
            let length = left.min(buffer.len() as u64) as usize;
            noise.fill(&mut buffer[..length]);
            hash.update(&buffer[..length]);
            writer.write_all(&buffer[..length]).expect("room");
            left -= length as u64;
        }
        writer.shutdown(Shutdown::Write).expect("open");
        hash.finalize()
    });
    let (hash, count) = read_to_end(&mut stream);
    assert_eq!(count, bytes);
    assert_eq!(hash, sent.join().expect("all was sent"));
}

/// A request of SOCKS5 for an address, or for a name.
pub(crate) fn socks_request(target: &Target) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0];
    let port = match target {
        Target::Address(SocketAddr::V4(four)) => {
            bytes.push(1);
            bytes.extend(four.ip().octets());
            four.port()
        }
        Target::Address(SocketAddr::V6(six)) => {
            bytes.push(4);
            bytes.extend(six.ip().octets());
            six.port()
        }
        Target::Name(name, port) => {
            bytes.extend([3, name.len() as u8]);
            bytes.extend(name.as_bytes());
            *port
        }
    };
    bytes.extend(port.to_be_bytes());
    bytes
}

/// Asks by SOCKS5: the code of the reply.
pub(crate) fn ask_socks(stream: &mut TcpStream, target: &Target) -> u8 {
    stream.write_all(&[5, 2, 0, 2]).expect("room");
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, [5, 0]);
    stream.write_all(&socks_request(target)).expect("room");
    let mut reply = [0; 4];
    stream.read_exact(&mut reply).expect("a reply");
    assert_eq!((reply[0], reply[2]), (5, 0));
    let rest = if reply[3] == 4 { 18 } else { 6 };
    stream.read_exact(&mut vec![0; rest]).expect("an address");
    reply[1]
}

/// Asks by CONNECT: the status.
pub(crate) fn ask_http(stream: &mut TcpStream, target: &Target) -> u16 {
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("room");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    head.split(' ')
        .nth(1)
        .expect("a status")
        .parse()
        .expect("a number")
}

/// Names that only the test knows.
pub(crate) fn lookup(names: Vec<(&'static str, Vec<IpAddr>)>) -> Lookup {
    Arc::new(move |name, port| {
        let found = names.iter().find(|(known, _)| *known == name);
        let (_, addresses) = found.ok_or(ErrorKind::NotFound)?;
        Ok(addresses.iter().map(|&ip| SocketAddr::new(ip, port)).collect())
    })
}

#[test]
fn what_is_sent_comes_back_in_every_protocol_and_family() {
    if skips() {
        return;
    }
    Namespace::run(|_| {
        for v6 in [0, 1] {
            let Attachment { host, kernel, .. } = attach(100 + v6, Damage::NONE, tcp())?;
            let to = SocketAddr::new(kernel[v6 as usize], 7);
            let echo = KernelEcho::start(to);
            let fixed = config(Some(Target::Address(to)));
            let ((), proxy) = proxying(host, fixed, |at| {
                for at in at {
                    exchange(connected(*at), 1, 20_000_000);
                }
            })?;
            let counters = proxy.counters();
            assert_eq!(
                (counters.bytes_to_target, counters.bytes_to_client),
                (40_000_000, 40_000_000)
            );
            assert_eq!((counters.finished, counters.plain, counters.open), (2, 2, 0));
            // The first proxy's device has the address of the echo.
            let Attachment { host, .. } = attach(102 + v6, Damage::NONE, tcp())?;
            let asked = ProxyConfig {
                lookup: lookup(vec![("echo.test", vec![to.ip()])]),
                ..config(None)
            };
            let ((), asked) = proxying(host, asked, |at| {
                for (number, target) in [Target::Address(to), Target::Name("echo.test".into(), 7)]
                    .iter()
                    .enumerate()
                {
                    let mut stream = connected(at[number]);
                    assert_eq!(ask_socks(&mut stream, target), 0);
                    exchange(stream, 2, 3_000_000);
                    let mut stream = connected(at[number]);
                    assert_eq!(ask_http(&mut stream, target), 200);
                    exchange(stream, 3, 3_000_000);
                }
            })?;
            echo.end();
            let counters = asked.counters();
            assert_eq!((counters.socks, counters.http, counters.finished), (2, 2, 4));
            assert_eq!(counters.bytes_to_client, 12_000_000);
            for proxy in [&proxy, &asked] {
                assert_eq!(proxy.host().counters().lost_bytes, 0);
            }
        }
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn what_follows_a_request_at_once_is_not_lost() {
    if skips() {
        return;
    }
    Namespace::run(|_| {
        let Attachment { host, kernel, .. } = attach(104, Damage::NONE, tcp())?;
        let to = SocketAddr::new(kernel[0], 7);
        let echo = KernelEcho::start(to);
        let (_, proxy) = proxying(host, config(None), |at| {
            let target = Target::Address(to);
            let mut early = vec![0; 5000];
            Noise(4).fill(&mut early);
            let requests = [
                [vec![5, 1, 0], socks_request(&target)].concat(),
                format!("CONNECT {target} HTTP/1.1\r\n\r\n").into_bytes(),
            ];
            for (request, answer) in requests.into_iter().zip([12, 39]) {
                let mut stream = connected(at[0]);
                stream
                    .write_all(&[request, early.clone()].concat())
                    .expect("room");
                stream.shutdown(Shutdown::Write).expect("open");
                let mut all = Vec::new();
                stream.read_to_end(&mut all).expect("an end");
                assert_eq!(all.len(), answer + early.len());
                assert!(all.ends_with(&early));
            }
        })?;
        echo.end();
        assert_eq!(proxy.counters().bytes_to_target, 10_000);
        Ok(())
    })
    .expect("a namespace");
}

/// A target whose one connection is played by `play`, and a client played by `work`.
fn with_target<T: Send>(
    number: u32,
    tcp: Config,
    play: impl FnOnce(TcpStream) + Send,
    work: impl FnOnce(TcpStream) -> T + Send,
) -> Result<(T, Proxy), Error> {
    let Attachment { host, kernel, .. } = attach(number, Damage::NONE, tcp)?;
    let listener = TcpListener::bind((kernel[0], 0)).expect("a port");
    let to = listener.local_addr().expect("bound");
    proxying(host, config(Some(Target::Address(to))), |at| {
        std::thread::scope(|scope| {
            let target = scope.spawn(move || {
                let (stream, _) = listener.accept().expect("a connection");
                stream
                    .set_read_timeout(Some(Duration::from_secs(60)))
                    .expect("an option");
                play(stream);
            });
            let result = work(connected(at[0]));
            // The proxy goes on until both ends are content.
            target
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result
        })
    })
}

/// Ends a connection with a reset.
fn reset(stream: TcpStream) {
    let linger = [1_i32.to_ne_bytes(), 0_i32.to_ne_bytes()].concat();
    calls::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger).expect("an option");
    drop(stream);
}

fn is_reset(stream: &mut TcpStream) {
    let error = loop {
        match stream.read(&mut [0; 65_536]) {
            Ok(0) => panic!("an end in place of a reset"),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

#[test]
fn either_end_may_finish_first_and_still_receives() {
    if skips() {
        return;
    }
    Namespace::run(|_| {
        let sample = |seed| {
            let mut bytes = vec![0; 3_000_000];
            Noise(seed).fill(&mut bytes);
            bytes
        };
        let talks_then_listens = |mut stream: TcpStream| {
            stream.write_all(&sample(5)).expect("room");
            stream.shutdown(Shutdown::Write).expect("open");
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("an end");
            assert!(all == sample(6));
        };
        let listens_then_talks = |mut stream: TcpStream| {
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("an end");
            assert!(all == sample(5));
            stream.write_all(&sample(6)).expect("room");
            stream.shutdown(Shutdown::Write).expect("open");
            let _ = stream.read(&mut [0]); // until the other end has closed, too
        };
        let ((), proxy) = with_target(105, tcp(), listens_then_talks, talks_then_listens)?;
        assert_eq!((proxy.counters().finished, proxy.counters().open), (1, 0));
        let ((), proxy) = with_target(106, tcp(), talks_then_listens, listens_then_talks)?;
        assert_eq!((proxy.counters().finished, proxy.counters().open), (1, 0));
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn resets_reach_the_other_end_also_while_nothing_is_read() {
    if skips() {
        return;
    }
    Namespace::run(|_| {
        let greeted = |stream: &mut TcpStream| {
            stream.write_all(b"hello").expect("room");
            stream.read_exact(&mut [0; 5]).expect("an answer");
        };
        let both = |mut stream: TcpStream, resets: bool| {
            greeted(&mut stream);
            if resets {
                reset(stream);
            } else {
                is_reset(&mut stream);
            }
        };
        let (_, proxy) = with_target(
            107,
            tcp(),
            |stream| both(stream, false),
            |stream| both(stream, true),
        )?;
        assert_eq!(proxy.counters().reset_by_client, 1);
        let (_, proxy) = with_target(
            108,
            tcp(),
            |stream| both(stream, true),
            |stream| both(stream, false),
        )?;
        assert_eq!(proxy.counters().reset_by_target, 1);
        // The sender breaks off while its window is closed, because the other end does not read.
        let fills_and_resets = |stream: TcpStream| {
            fill(&stream, &mut Noise(7));
            reset(stream);
        };
        let sleeps_until_reset = |mut stream: TcpStream| {
            let began = Instant::now();
            while stream.take_error().expect("it can be asked").is_none() {
                assert!(began.elapsed() < Duration::from_secs(60), "no reset came");
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = stream.read(&mut [0]);
        };
        let (_, proxy) = with_target(109, tcp(), sleeps_until_reset, fills_and_resets)?;
        assert_eq!(proxy.counters().reset_by_client, 1);
        let (_, proxy) = with_target(110, tcp(), fills_and_resets, sleeps_until_reset)?;
        assert_eq!(proxy.counters().reset_by_target, 1);
        Ok(())
    })
    .expect("a namespace");
}

/// Writes until nothing has gone for half a second: how much went, and its hash.
fn fill(stream: &TcpStream, noise: &mut Noise) -> (u64, blake3::Hasher) {
    let (mut hash, mut sent) = (blake3::Hasher::new(), 0_u64);
    stream.set_nonblocking(true).expect("an option");
    let mut block = vec![0; 10_000];
    noise.fill(&mut block);
    let mut at = 0;
    let mut blocked_since = Instant::now();
    while blocked_since.elapsed() < Duration::from_millis(500) {
        match (&mut &*stream).write(&block[at..]) {
            Ok(length) => {
                hash.update(&block[at..at + length]);
                at += length;
                sent += length as u64;
                blocked_since = Instant::now();
                if at == block.len() {
                    noise.fill(&mut block);
                    at = 0;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("{error}"),
        }
    }
    stream.set_nonblocking(false).expect("an option");
    (sent, hash)
}

#[test]
fn a_reader_that_stops_stops_its_sender_and_memory_stays_little() {
    if skips() {
        return;
    }
    // How far tuning raises a buffer depends on how fast a machine reads, so it ends here, far below what is sent.
    let memory = ReceiveMemory {
        most: 1 << 20,
        ..ReceiveMemory::LINUX
    };
    let config = Config {
        receive_memory: Some(memory),
        ..tcp()
    };
    // What one direction waits in is full; of each of the four streams a block may have been begun and another not be used up.
    let most_held = config.send_buffer.get() + memory.most + 8 * 16_384;
    Namespace::run(|_| {
        let (filled, told) = std::sync::mpsc::channel();
        let sends = |stream: TcpStream, filled: std::sync::mpsc::Sender<()>| {
            let (sent, hash) = fill(&stream, &mut Noise(8));
            filled.send(()).expect("the reader waits");
            stream.shutdown(Shutdown::Write).expect("open");
            let mut stream = stream;
            let _ = stream.read(&mut [0]);
            assert!(sent > 500_000, "windows were open at first: {sent}");
            // The sockets of the kernel at both ends hold up to 10 MB; the proxy, what is checked below.
            assert!(sent < 40_000_000, "and closed in time: {sent}");
            (sent, hash.finalize())
        };
        let sleeps_then_reads = |mut stream: TcpStream, told: std::sync::mpsc::Receiver<()>| {
            told.recv().expect("the sender says so");
            let (hash, count) = read_to_end(&mut stream);
            (count, hash)
        };
        let check = |proxy: &Proxy| {
            let held = proxy.host().counters().most_bytes_held;
            assert!(held <= most_held, "{held} bytes in buffers of our TCP");
            let waited = proxy.counters().most_buffered;
            assert!((1..=65_536).contains(&waited), "{waited} bytes between both ends");
            assert_eq!((proxy.counters().finished, proxy.counters().open), (1, 0));
        };
        let mut received = None;
        let receiver = &mut received;
        let (sent, proxy) = with_target(
            111,
            config.clone(),
            move |stream| *receiver = Some(sleeps_then_reads(stream, told)),
            |stream| sends(stream, filled),
        )?;
        assert_eq!(received, Some(sent));
        check(&proxy);
        let (filled, told) = std::sync::mpsc::channel();
        let mut sent = None;
        let sender = &mut sent;
        let (received, proxy) = with_target(
            112,
            config,
            move |stream| *sender = Some(sends(stream, filled)),
            |stream| sleeps_then_reads(stream, told),
        )?;
        assert_eq!(sent, Some(received));
        check(&proxy);
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn a_thousand_connections_at_once_and_nothing_is_left() {
    if skips() {
        return;
    }
    let permitted = descriptors(8192).expect("the system says");
    if permitted < 4096 {
        println!("skipped: {permitted} descriptors are not enough");
        return;
    }
    Namespace::run(|_| {
        let Attachment { host, kernel, .. } = attach(113, Damage::NONE, tcp())?;
        let to = SocketAddr::new(kernel[0], 7);
        let echo = KernelEcho::start(to);
        let fixed = ProxyConfig {
            most: 1000,
            ..config(Some(Target::Address(to)))
        };
        let ((), mut proxy) = proxying(host, fixed, |at| {
            peers::many_kernel_clients(at[0], 1000, 20_000);
        })?;
        echo.end();
        proxy.end()?;
        let counters = proxy.counters();
        assert_eq!((counters.accepted, counters.finished), (1000, 1000));
        assert_eq!(counters.most_open, 1000);
        assert_eq!(counters.bytes_to_client, 20_000_000);
        assert_eq!(proxy.host().bytes_held(), 0);
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn who_comes_when_all_places_are_taken_waits_for_one() {
    if skips() {
        return;
    }
    Namespace::run(|_| {
        let Attachment { host, kernel, .. } = attach(114, Damage::NONE, tcp())?;
        let to = SocketAddr::new(kernel[0], 7);
        let echo = KernelEcho::start(to);
        let few = ProxyConfig {
            most: 10,
            ..config(Some(Target::Address(to)))
        };
        let ((), proxy) = proxying(host, few, |at| {
            std::thread::scope(|scope| {
                for number in 0..50 {
                    scope.spawn(move || exchange(connected(at[0]), number, 20_000));
                }
            });
        })?;
        echo.end();
        let counters = proxy.counters();
        assert_eq!((counters.finished, counters.most_open), (50, 10));
        Ok(())
    })
    .expect("a namespace");
}
