//! Nothing that comes from the network stops a host.

use crate::peers::Noise;
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_live::Error;
use fleetfoot_live::host::{Device, Host, HostConfig};
use std::collections::VecDeque;
use std::io::PipeReader;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

/// Packets from nowhere, and what is sent kept.
struct Nowhere {
    packets: VecDeque<Vec<u8>>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    fd: PipeReader,
}

impl Device for Nowhere {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        Ok(self.packets.pop_front().map(|packet| {
            buffer[..packet.len()].copy_from_slice(&packet);
            packet.len()
        }))
    }

    fn send(&mut self, packet: &[u8]) -> Result<bool, Error> {
        self.sent.lock().expect("no panic").push(packet.to_vec());
        Ok(true)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A SYN to 10.0.0.2 port 7, checksums right.
fn syn() -> Vec<u8> {
    use fleetfoot_core::packet::{Flags, Segment};
    let segment = Segment {
        flags: Flags::SYN.with(Flags::DF),
        overhead: 40,
        window: 1000,
        ttl: 64,
        ..Segment::default()
    };
    let mut buffer = vec![0; 100];
    let from = "10.0.0.1:4000".parse().expect("an address");
    let to = "10.0.0.2:7".parse().expect("an address");
    let length = fleetfoot_core::wire::encode(&mut buffer, &segment, from, to, &[]).expect("it fits");
    buffer.truncate(length);
    buffer
}

#[test]
fn any_bytes_are_counted_and_harm_nothing() {
    let (fd, _kept) = std::io::pipe().expect("a pipe");
    let mut noise = Noise(5);
    let mut packets = VecDeque::new();
    for _ in 0..20_000 {
        let mut packet = vec![0; noise.draw() as usize % 200];
        noise.fill(&mut packet);
        packets.push_back(packet);
        let mut packet = syn();
        for _ in 0..noise.draw() % 3 {
            let at = noise.draw() as usize % packet.len();
            packet[at] ^= 1 << (noise.draw() % 8);
        }
        packet.truncate(noise.draw() as usize % (2 * packet.len()));
        packets.push_back(packet);
    }
    let sent = Arc::new(Mutex::new(Vec::new()));
    let device = Nowhere {
        packets,
        sent: Arc::clone(&sent),
        fd,
    };
    let config = HostConfig {
        addresses: vec!["10.0.0.2".parse().expect("an address")],
        tcp: Config::profile(Profile::Linux),
        seed: 1,
    };
    let mut host = Host::new(Box::new(device), config);
    while host.work().expect("no device fails here") {
        while host.poll_event().is_some() {}
    }
    let counters = host.counters();
    assert_eq!(counters.packets_in, 40_000);
    for (name, count) in [
        ("truncated", counters.truncated),
        ("not IP", counters.not_ip),
        ("header", counters.bad_header),
        ("checksum", counters.bad_checksum),
        ("malformed", counters.malformed()),
    ] {
        assert!(count > 0, "{name}");
    }
    // Whole ones among them were answered: nobody listens.
    assert!(counters.resets_out > 100 && counters.malformed() < 40_000);
    assert_eq!(sent.lock().expect("no panic").len() as u64, counters.packets_out);
}
