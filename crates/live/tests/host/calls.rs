//! Single calls against the kernel: refusals, resets, slow readers, full backlogs.

use crate::damage::Damage;
use crate::peers::{Noise, connected, read_to_end};
use crate::{Attachment, attach, serving, skips};
use fleetfoot_core::socket::Errno;
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_live::host::{Event, Host, HostConfig, Place};
use fleetfoot_live::service::Service;
use fleetfoot_live::{Error, Namespace, calls};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Works until `done` says so.
fn work_until(host: &mut Host, mut done: impl FnMut(&mut Host, Option<Event>) -> bool) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        host.work()?;
        while let Some(event) = host.poll_event() {
            if done(host, Some(event)) {
                return host.flush();
            }
        }
        if done(host, None) {
            return host.flush();
        }
        assert!(began.elapsed() < Duration::from_secs(20), "nothing happens");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn nobody_listens_on_either_side() {
    if skips() {
        return;
    }
    Namespace::run(|namespace| {
        let Attachment { host, ours, .. } = attach(70, false, Damage::NONE)?;
        let ((), server) = serving(host, Service::Echo, || {
            for &address in &ours {
                let error = TcpStream::connect(SocketAddr::new(address, 9999)).expect_err("nobody is there");
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            }
        })?;
        // The kernel sends a SYN again when no answer came for a second: each of them is answered.
        let counters = server.host().counters();
        let unanswered = counters.malformed() + counters.other_protocol + counters.other_address;
        assert!(counters.resets_out >= 2, "one for each address: {counters:?}");
        assert_eq!(
            counters.resets_out,
            counters.packets_in - unanswered,
            "{counters:?}"
        );
        let Attachment { mut host, kernel, .. } = attach(71, false, Damage::NONE)?;
        for &address in &kernel {
            let handle = host.connect(SocketAddr::new(address, 9999)).expect("a way");
            let mut error = None;
            work_until(&mut host, |host, event| {
                error = error.or_else(|| {
                    event
                        .filter(|event| event.ready.over)
                        .and_then(|_| host.take_error(handle))
                });
                error.is_some()
            })?;
            assert_eq!(error, Some(Errno::ECONNREFUSED));
            host.close(handle);
            assert_eq!(
                host.read(handle, &mut [0]),
                Err(Errno::EBADF),
                "the handle is worth nothing"
            );
        }
        // An address to which there is no way: the kernel says so by ICMP.
        namespace.sysctl("net.ipv4.ip_forward", "1")?;
        let Attachment { mut host, .. } = attach(72, false, Damage::NONE)?;
        let handle = host
            .connect("203.0.113.9:80".parse().expect("an address"))
            .expect("a way");
        work_until(&mut host, |host, _| host.counters().icmp_errors > 0)?;
        host.abort(handle);
        host.flush()
    })
    .expect("a namespace");
}

#[test]
fn resets_pass_in_both_directions() {
    if skips() {
        return;
    }
    Namespace::run(|_| {
        let Attachment { host, ours, .. } = attach(73, false, Damage::NONE)?;
        let to = SocketAddr::new(ours[0], 7);
        let ((), server) = serving(host, Service::Echo, || {
            let mut stream = connected(to);
            stream.write_all(b"hello").expect("room");
            let mut back = [0; 5];
            stream.read_exact(&mut back).expect("an echo");
            // SO_LINGER with zero seconds: a reset.
            let linger = [1_i32.to_ne_bytes(), 0_i32.to_ne_bytes()].concat();
            let fd = std::os::fd::AsRawFd::as_raw_fd(&stream);
            calls::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger).expect("an option");
            drop(stream);
            std::thread::sleep(Duration::from_millis(50));
        })?;
        assert_eq!((server.served().failed, server.open()), (1, 0));
        let Attachment { mut host, kernel, .. } = attach(74, false, Damage::NONE)?;
        let listener = TcpListener::bind((kernel[1], 0)).expect("a port");
        let handle = host
            .connect(listener.local_addr().expect("bound"))
            .expect("a way");
        work_until(&mut host, |_, event| event.is_some_and(|event| event.ready.write))?;
        let (mut stream, _) = listener.accept().expect("a connection");
        host.abort(handle);
        host.flush()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .expect("an option");
        let error = stream.read(&mut [0; 10]).expect_err("a reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn a_reader_that_sleeps_stops_the_sender_and_loses_nothing() {
    if skips() {
        return;
    }
    Namespace::run(|_| {
        for (number, v6) in [(75, false), (76, true)] {
            let Attachment { host, ours, .. } = attach(number, false, Damage::NONE)?;
            let to = SocketAddr::new(ours[usize::from(v6)], 7);
            let (sent, server) = serving(host, Service::Echo, || {
                // Writes until nothing goes any more: both windows are closed then.
                let mut stream = connected(to);
                let (mut noise, mut hash, mut sent) = (Noise(9), blake3::Hasher::new(), 0_u64);
                let mut block = vec![0; 10_000];
                stream.set_nonblocking(true).expect("an option");
                let mut blocked_since = Instant::now();
                noise.fill(&mut block);
                let mut at = 0;
                while blocked_since.elapsed() < Duration::from_millis(500) {
                    match stream.write(&block[at..]) {
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
                stream.shutdown(Shutdown::Write).expect("open");
                assert_eq!(read_to_end(&mut stream), (hash.finalize(), sent));
                sent
            })?;
            let held = server.host().counters().most_bytes_held;
            assert!(sent > 1_000_000, "windows were open at first: {sent}");
            assert!(held < 24_000_000, "and closed in time: {held} bytes were held");
        }
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn a_full_backlog_drops_syns_and_their_senders_come_again() {
    if skips() {
        return;
    }
    Namespace::run(|_| {
        let Attachment { mut host, ours, .. } = attach(77, false, Damage::NONE)?;
        let listener = host
            .listen("[::]:7".parse().expect("an address"), 2)
            .expect("a port");
        let taken = host.listen("0.0.0.0:7".parse().expect("an address"), 2);
        assert_eq!(taken, Err(Errno::EADDRINUSE));
        let to = SocketAddr::new(ours[0], 7);
        std::thread::scope(|scope| {
            // Each says something: who was answered with a cookie is known again only by what it sends.
            let client = move || {
                connected(to)
                    .write_all(b"here")
                    .map(|()| std::thread::sleep(Duration::from_secs(1)))
            };
            let clients: Vec<_> = (0..12).map(|_| scope.spawn(client)).collect();
            work_until(&mut host, |host, _| {
                let counters = host.counters();
                counters.accept_queue_full > 0
            })?;
            let mut accepted = Vec::new();
            work_until(&mut host, |host, _| {
                while let Ok((handle, peer)) = host.accept(listener) {
                    assert!(peer.is_ipv4());
                    accepted.push(handle);
                }
                accepted.len() == 12
            })?;
            for handle in accepted {
                host.close(handle);
            }
            for client in clients {
                client.join().expect("connected").expect("room");
            }
            assert_eq!(host.accept(listener), Err(Errno::EAGAIN));
            host.close(listener);
            host.flush()
        })
    })
    .expect("a namespace");
}

#[test]
fn chargen_and_discard_are_what_they_are_called() {
    if skips() {
        return;
    }
    Namespace::run(|_| {
        let Attachment { host, ours, .. } = attach(78, false, Damage::NONE)?;
        let to = SocketAddr::new(ours[1], 7);
        serving(host, Service::Chargen, || {
            let mut text = vec![0; 3_000_000];
            connected(to).read_exact(&mut text).expect("it never ends");
            assert!(text.starts_with(b" !\"#$%&'()*+,-./0123"));
            assert!(text.chunks_exact(74).all(|line| line.ends_with(b"\r\n")));
            assert_eq!(text[..95 * 74], text[95 * 74..2 * 95 * 74]);
        })?;
        let Attachment { host, ours, .. } = attach(79, false, Damage::NONE)?;
        let to = SocketAddr::new(ours[0], 7);
        let ((), server) = serving(host, Service::Discard, || {
            let mut stream = connected(to);
            stream.write_all(&vec![1; 3_000_000]).expect("room");
            stream.shutdown(Shutdown::Write).expect("open");
            assert_eq!(read_to_end(&mut stream).1, 0);
        })?;
        assert_eq!((server.served().received, server.served().sent), (3_000_000, 0));
        Ok(())
    })
    .expect("a namespace");
}

#[test]
fn a_path_with_a_smaller_mtu_is_found() {
    if skips() {
        return;
    }
    Namespace::run(|namespace| {
        namespace.sysctl("net.ipv4.ip_forward", "1")?;
        namespace.sysctl("net.ipv6.conf.all.forwarding", "1")?;
        for v6 in [false, true] {
            // Two hosts of ours; the kernel between them passes on what fits the second interface.
            let number = 80 + 2 * u32::from(v6);
            let Attachment { mut host, .. } = attach(number, false, Damage::NONE)?;
            let narrow = Place {
                mtu: 1300,
                ..Place::numbered(number + 1)
            };
            let config = HostConfig {
                addresses: narrow.hosts(),
                tcp: Config::profile(Profile::Linux),
                seed: 1,
            };
            let mut other = Host::new(narrow.attach()?.device, config);
            let to = SocketAddr::new(narrow.hosts()[usize::from(v6)], 7);
            let listener = other.listen(to, 5).expect("a port");
            let sender = host.connect(to).expect("a way");
            let mut sent = vec![0; 1_000_000];
            Noise(3).fill(&mut sent);
            let (mut offered, mut receiver) = (0, None);
            let (mut received, mut room) = (Vec::new(), vec![0; 65_536]);
            let began = Instant::now();
            while received.len() < sent.len() {
                host.work()?;
                other.work()?;
                match host.write(sender, &sent[offered..]) {
                    Ok(length) => offered += length,
                    Err(errno) => assert_eq!(errno, Errno::EAGAIN),
                }
                host.flush()?;
                receiver = receiver.or_else(|| other.accept(listener).ok());
                while let Some((handle, _)) = receiver
                    && let Ok(length) = other.read(handle, &mut room)
                {
                    received.extend_from_slice(&room[..length]);
                }
                other.flush()?;
                assert!(
                    began.elapsed() < Duration::from_secs(20),
                    "{} bytes came",
                    received.len()
                );
            }
            assert!(received == sent);
            assert!(host.counters().icmp_errors > 0, "the kernel said what fits");
        }
        Ok(())
    })
    .expect("a namespace");
}
