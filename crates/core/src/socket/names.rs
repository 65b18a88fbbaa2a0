//! Ports, own addresses, initial sequence numbers.
//!
//! **Source.** `bind(2)`, `socket(7)` (SO_REUSEADDR, SO_REUSEPORT); RFC 6056 3.3.1 (random ports); RFC 9293 3.4.1.

use super::{Body, Errno, Stack, Tuple};
use crate::seq::SeqNumber;
use crate::siphash::siphash;
use crate::time::Instant;
use core::net::{IpAddr, SocketAddr};

impl Stack {
    pub(super) fn take_port(&mut self, index: usize, address: SocketAddr) {
        self.socks[index].local = Some(address);
        self.ports.insert((address.port(), index as u32));
    }

    pub(super) fn leave_port(&mut self, index: usize) {
        if let Some(address) = self.socks[index].local {
            self.ports.remove(&(address.port(), index as u32));
        }
    }

    /// Who holds a port.
    fn holders(&self, port: u16) -> impl Iterator<Item = u32> {
        self.ports
            .range((port, 0)..=(port, u32::MAX))
            .map(|&(_, holder)| holder)
    }

    /// Whether another socket keeps `index` from binding, or listening at, `address` (`socket(7)`, SO_REUSEADDR: only a
    /// listener stands in the way of sockets that all allow it).
    pub(super) fn port_conflict(&self, index: usize, address: SocketAddr) -> bool {
        let me = &self.socks[index].options;
        if self.wait_ports.contains_key(&address.port()) && !me.reuse_address {
            return true; // TIME-WAIT holds the port (socket(7))
        }
        self.holders(address.port()).any(|holder| {
            let other = &self.socks[holder as usize];
            let Some(held) = other.local.filter(|_| holder as usize != index) else {
                return false;
            };
            let overlap = if held.is_ipv4() == address.is_ipv4() {
                held.ip() == address.ip() || held.ip().is_unspecified() || address.ip().is_unspecified()
            } else {
                // ipv6(7): only an IPv6 socket that is bound to any address, without IPV6_V6ONLY, takes IPv4 too.
                let (six, options) = if held.is_ipv6() {
                    (held, &other.options)
                } else {
                    (address, me)
                };
                six.ip().is_unspecified() && !options.v6_only
            };
            let listens = matches!(other.body, Body::Listen(_));
            let shared = me.reuse_address && other.options.reuse_address && !listens
                || me.reuse_port && other.options.reuse_port;
            overlap && !shared
        })
    }

    pub(super) fn free_port(&mut self) -> Option<u16> {
        let (low, high) = (
            *self.config.ephemeral_ports.start(),
            *self.config.ephemeral_ports.end(),
        );
        let count = u32::from(high.saturating_sub(low)) + 1;
        let first = self.rng.below(u64::from(count)) as u32;
        (0..count)
            .map(|step| low + ((first + step) % count) as u16)
            .find(|port| self.holders(*port).next().is_none() && !self.wait_ports.contains_key(port))
    }

    /// Own address from which `remote` is reached.
    pub(super) fn source_for(&self, remote: IpAddr) -> Result<IpAddr, Errno> {
        let mut own = self.config.addresses.iter();
        own.find(|own| own.is_ipv4() == remote.is_ipv4())
            .copied()
            .ok_or(Errno::ENETUNREACH)
    }

    /// RFC 9293 3.4.1: a clock that ticks every 4 us plus a secret function of the names.
    pub(super) fn initial_sequence(&self, now: Instant, tuple: Tuple) -> SeqNumber {
        let mut bytes = [0_u8; 36];
        for (at, address) in [tuple.0, tuple.1].into_iter().enumerate() {
            let ip = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            bytes[16 * at..16 * at + 16].copy_from_slice(&ip);
            bytes[32 + 2 * at..34 + 2 * at].copy_from_slice(&address.port().to_be_bytes());
        }
        let hash = siphash(self.secret, &bytes) as u32;
        SeqNumber(hash.wrapping_add((now.as_nanos() / 4000) as u32))
    }
}
