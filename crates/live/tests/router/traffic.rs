//! What is sent through a router and compared at the other end.

use crate::row::{Place, Row, has};
use fleetfoot_live::router::Snapshot;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes that look like nothing and can be made again.
fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.extend_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

pub(crate) const SIZE: usize = 3_000_000;
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Both ends send at once, and compare what came with what was sent.
pub(crate) fn transfer(row: &Row, to: IpAddr) {
    transfer_between(&row.near, &row.far, to);
}

pub(crate) fn transfer_between(client: &Place, server: &Place, to: IpAddr) {
    let (ready, listens) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            server.run(move || {
                let listener = TcpListener::bind((to, 7000)).expect("a port");
                ready.send(()).expect("the test waits");
                let (stream, _) = listener.accept().expect("a client");
                both_ways(&stream, 1, 2);
            });
        });
        listens.recv().expect("the server listens");
        client.run(move || {
            let address = SocketAddr::from((to, 7000));
            let stream = TcpStream::connect_timeout(&address, LIMIT).expect("the far end is reached");
            both_ways(&stream, 2, 1);
        });
        serving.join().expect("the server is content");
    });
}

fn both_ways(stream: &TcpStream, own: u64, other: u64) {
    stream.set_read_timeout(Some(LIMIT)).expect("a socket");
    stream.set_write_timeout(Some(LIMIT)).expect("a socket");
    let mut reading = stream.try_clone().expect("a socket");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        reading.read_to_end(&mut bytes).expect("all of it comes");
        assert!(bytes == pattern(SIZE, other), "{} bytes came", bytes.len());
    });
    let mut writing = stream;
    writing.write_all(&pattern(SIZE, own)).expect("all of it leaves");
    stream.shutdown(std::net::Shutdown::Write).expect("a socket");
    reader.join().expect("what came is what was sent");
}

/// Datagrams of all lengths come back as they were.
pub(crate) fn echo(row: &Row, to: IpAddr) {
    let done = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&done);
    let (ready, listens) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            row.far.run(move || {
                let socket = UdpSocket::bind((to, 7001)).expect("a port");
                socket
                    .set_read_timeout(Some(Duration::from_millis(50)))
                    .expect("a socket");
                ready.send(()).expect("the test waits");
                let mut buffer = [0; 2000];
                while !ended.load(Ordering::Relaxed) {
                    if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                        socket.send_to(&buffer[..length], from).expect("it leaves");
                    }
                }
            });
        });
        listens.recv().expect("the server listens");
        row.near.run(move || {
            let any: IpAddr = if to.is_ipv4() {
                IpAddr::from([0; 4])
            } else {
                IpAddr::from([0_u16; 8])
            };
            let socket = UdpSocket::bind((any, 0)).expect("a port");
            socket.connect((to, 7001)).expect("an address");
            socket.set_read_timeout(Some(LIMIT)).expect("a socket");
            let mut buffer = [0; 2000];
            for length in [0, 1, 2, 17, 18, 19, 100, 1000, 1400, 1452] {
                let sent = pattern(length, length as u64);
                socket.send(&sent).expect("it leaves");
                let came = socket.recv(&mut buffer).expect("it comes back");
                assert_eq!(buffer[..came], sent);
            }
        });
        done.store(true, Ordering::Relaxed);
        server.join().expect("the server is content");
    });
}

fn pings(row: &Row, to: IpAddr) {
    if !has("ping") {
        return;
    }
    let output = row.near.run(move || {
        std::process::Command::new("ping")
            .args(["-n", "-c", "3", "-i", "0.05", "-W", "10", "-s", "1400"])
            .arg(to.to_string())
            .output()
            .expect("ping is there")
    });
    assert!(output.status.success(), "{output:?}");
}

pub(crate) fn everything(row: &Row, addresses: [&str; 2]) {
    for address in addresses {
        let to: IpAddr = address.parse().expect("an address");
        echo(row, to);
        pings(row, to);
        transfer(row, to);
    }
}

pub(crate) fn no_loss(snapshot: &Snapshot) {
    for at in &snapshot.interfaces {
        assert_eq!(
            (at.input.missed, at.output.dropped(), at.kept),
            (0, 0, 0),
            "{at:?}"
        );
        assert_eq!(at.output.queued, at.output.sent, "{at:?}");
        assert_eq!(at.output.refused, [0; 4], "{at:?}");
    }
}

/// Sends numbered datagrams, so many in every millisecond, from the near end; those that the far end got, in their order.
pub(crate) fn numbered(row: &Row, to: &str, count: u32, between: impl Fn(u32)) -> Vec<u32> {
    let to: IpAddr = to.parse().expect("an address");
    let (ready, listens) = std::sync::mpsc::channel();
    let done = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&done);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            row.far.run(move || {
                let socket = UdpSocket::bind((to, 7002)).expect("a port");
                // All of them, so that none is lost here while this thread waits for a core.
                setsockopt(&socket, sockopt::RcvBufForce, &(64 << 20)).expect("root may");
                socket
                    .set_read_timeout(Some(Duration::from_millis(500)))
                    .expect("a socket");
                ready.send(()).expect("the test waits");
                let (mut got, mut buffer) = (Vec::new(), [0; 2000]);
                loop {
                    match socket.recv(&mut buffer) {
                        Ok(length) if length >= 4 => {
                            got.push(u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]));
                        }
                        Ok(_) => {}
                        Err(_) if ended.load(Ordering::Relaxed) => return got,
                        Err(_) => {}
                    }
                }
            })
        });
        listens.recv().expect("the receiver is there");
        let socket = row.near.run(move || {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
            socket.connect((to, 7002)).expect("an address");
            socket
        });
        for number in 0..count {
            let mut bytes = [0; 1000];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            socket.send(&bytes).expect("it leaves");
            between(number);
            if number % 4 == 3 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        done.store(true, Ordering::Relaxed);
        receiver.join().expect("the receiver is content")
    })
}
