//! Numbered datagrams: those that arrive are in order, none of them twice, each as it was sent.

use crate::bytes::{BLOCK, Stream};
use crate::row::Place;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::Pid;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What came of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
}

/// Sends from one place to the other until `stop`; `number` tells flows apart and is the port, counted from 8000.
///
/// The sender stays on one core: the kernel has a queue for each core between the two ends of a veth pair, and packets of a thread that
/// moves may overtake each other there.
pub(crate) fn flow(from: &Place, to: &Place, address: IpAddr, number: u16, stop: &AtomicBool) -> Flow {
    let at = SocketAddr::new(address, 8000 + number);
    let receiving = to.run(|| UdpSocket::bind(at).expect("a port"));
    // More than comes while this thread waits for a core.
    setsockopt(&receiving, sockopt::RcvBufForce, &(16 << 20)).expect("root may");
    let sending = from.run(|| {
        let any: IpAddr = if address.is_ipv4() {
            IpAddr::from([0; 4])
        } else {
            IpAddr::from([0_u16; 8])
        };
        let socket = UdpSocket::bind((any, 0)).expect("a port");
        socket.connect(at).expect("an address");
        socket
    });
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            stay_on_one_core(Pid::from_raw(0));
            send(&sending, number, stop)
        });
        let receiver = scope.spawn(move || receive(&receiving, number, stop));
        Flow {
            sent: sender.join().expect("the sender is content"),
            arrived: receiver.join().expect("what came was in order"),
        }
    })
}

/// A thread or process uses only the first core of those that it may use.
pub(crate) fn stay_on_one_core(process: Pid) {
    let may = sched_getaffinity(process).expect("the system says");
    let first = (0..CpuSet::count()).find(|&core| may.is_set(core).unwrap_or(false));
    let mut one = CpuSet::new();
    one.set(first.expect("a core")).expect("it is one");
    sched_setaffinity(process, &one).expect("it may use that core");
}

fn send(socket: &UdpSocket, flow: u16, stop: &AtomicBool) -> u64 {
    let noise = Stream::new(u64::from(flow));
    let mut number = 0_u64;
    let mut bytes = [0; 1400];
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..4 {
            let length = length_of(number);
            let at = place_of(number);
            bytes[..length].copy_from_slice(&noise.next()[at..at + length]);
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            // One that does not leave, because the interface is down, is one that does not arrive.
            let _ = socket.send(&bytes[..length]);
            number += 1;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    number
}

fn receive(socket: &UdpSocket, flow: u16, stop: &AtomicBool) -> u64 {
    let noise = Stream::new(u64::from(flow));
    socket
        .set_read_timeout(Some(Duration::from_millis(300)))
        .expect("an option");
    let (mut next, mut count) = (0_u64, 0);
    let mut bytes = [0; 2000];
    loop {
        let Ok(length) = socket.recv(&mut bytes) else {
            if stop.load(Ordering::Relaxed) {
                return count;
            }
            continue;
        };
        assert!(length >= 8, "{length} bytes came on flow {flow}");
        let (head, rest) = bytes[..length].split_at(8);
        let number = u64::from_be_bytes(head.try_into().expect("eight bytes"));
        assert!(
            number >= next,
            "flow {flow}: datagram {number} came behind {}",
            next - 1
        );
        let at = place_of(number);
        assert_eq!(length, length_of(number), "flow {flow}, datagram {number}");
        assert!(
            rest == &noise.next()[at + 8..at + length],
            "flow {flow}, datagram {number}"
        );
        next = number + 1;
        count += 1;
    }
}

fn length_of(number: u64) -> usize {
    8 + (number * 389 % 1390) as usize
}

fn place_of(number: u64) -> usize {
    (number * 7919) as usize % (BLOCK - 1400)
}
