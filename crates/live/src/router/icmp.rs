//! ICMP errors about packets that are not passed on, at a limited rate.
//!
//! **Source.** RFC 792, RFC 1812 4.3.2 (what is quoted, when none is sent, limit of the rate), RFC 1191 4 (the next hop's MTU),
//! RFC 4443 2.4, 3.1 to 3.3.
//! **Deviations.** The limit is one for the whole router, not one for each kind of error.

use super::packet::total_length;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::wire::checksum::Sum;
use std::net::IpAddr;

/// What an error says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The time to live ran out.
    TimeExceeded,
    /// The packet is longer than the MTU of the next link, and must not be fragmented.
    TooBig {
        /// That MTU.
        mtu: u32,
    },
    /// No route leads to the destination.
    NoRoute,
    /// The next hop does not answer.
    HostUnreachable,
}

impl Kind {
    /// Type, code and second word of the header.
    const fn header(self, v6: bool) -> (u8, u8, u32) {
        match (self, v6) {
            (Kind::TimeExceeded, false) => (11, 0, 0),
            (Kind::TimeExceeded, true) => (3, 0, 0),
            (Kind::TooBig { mtu }, false) => (3, 4, mtu & 0xffff),
            (Kind::TooBig { mtu }, true) => (2, 0, mtu),
            (Kind::NoRoute, false) => (3, 0, 0),
            (Kind::NoRoute, true) => (1, 0, 0),
            (Kind::HostUnreachable, false) => (3, 1, 0),
            (Kind::HostUnreachable, true) => (1, 3, 0),
        }
    }
}

/// Writes the packet that reports `kind` about `packet` into `buffer`, from this router's address `from` to the source of the packet.
/// False if the packet cannot be answered so: another family, or no whole header.
pub(crate) fn error(packet: &[u8], kind: Kind, from: IpAddr, buffer: &mut Vec<u8>) -> bool {
    buffer.clear();
    let Some(length) = total_length(packet) else {
        return false;
    };
    let packet = &packet[..length.min(packet.len())];
    match (packet.first().map(|first| first >> 4), from) {
        (Some(4), IpAddr::V4(from)) => {
            let quoted = &packet[..packet.len().min(MOST_V4 - 28)];
            let (Some(to), total) = (packet.get(12..16), 28 + quoted.len()) else {
                return false;
            };
            // Precedence of network control, as RFC 1812 4.3.2.5 has it.
            buffer.extend_from_slice(&[0x45, 0xc0]);
            buffer.extend_from_slice(&(total as u16).to_be_bytes());
            buffer.extend_from_slice(&[0, 0, 0, 0, TTL, 1, 0, 0]);
            buffer.extend_from_slice(&from.octets());
            buffer.extend_from_slice(to);
            put_sum(&mut buffer[..], 10, Sum::default());
            message(buffer, kind.header(false), quoted, Sum::default());
            true
        }
        (Some(6), IpAddr::V6(from)) => {
            let quoted = &packet[..packet.len().min(MOST_V6 - 48)];
            let Some(to) = packet.get(8..24) else {
                return false;
            };
            let size = 8 + quoted.len();
            buffer.extend_from_slice(&[0x60, 0, 0, 0]);
            buffer.extend_from_slice(&(size as u16).to_be_bytes());
            buffer.extend_from_slice(&[58, TTL]);
            buffer.extend_from_slice(&from.octets());
            buffer.extend_from_slice(to);
            let Ok(to) = <[u8; 16]>::try_from(to) else {
                return false;
            };
            let pseudo = Sum::pseudo_header(IpAddr::V6(from), IpAddr::from(to), 58, size as u32);
            message(buffer, kind.header(true), quoted, pseudo);
            true
        }
        _ => false,
    }
}

/// Adds the message; `sum` is that of what its checksum covers before it.
fn message(buffer: &mut Vec<u8>, (kind, code, rest): (u8, u8, u32), quoted: &[u8], sum: Sum) {
    let begin = buffer.len();
    buffer.extend_from_slice(&[kind, code, 0, 0]);
    buffer.extend_from_slice(&rest.to_be_bytes());
    buffer.extend_from_slice(quoted);
    put_sum(&mut buffer[begin..], 2, sum);
}

/// Writes the checksum of `bytes` and of what `sum` holds already into them at `at`, where zeros are.
fn put_sum(bytes: &mut [u8], at: usize, sum: Sum) {
    let sum = sum.over(bytes).to_be_bytes();
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&sum);
    }
}

/// How many errors may be sent: so many at once, and one more after every interval.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u32,
    at: Instant,
}

impl Budget {
    pub(crate) const fn full() -> Budget {
        Budget {
            left: BURST,
            at: Instant::ZERO,
        }
    }

    /// Whether one more may be sent at `now`.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let earned = now.since(self.at).as_nanos() / INTERVAL.as_nanos();
        if earned > 0 {
            self.left = u32::try_from(earned)
                .unwrap_or(BURST)
                .saturating_add(self.left)
                .min(BURST);
            self.at = now;
        }
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }
}

/// The longest error: RFC 1812 4.3.2.3 and RFC 4443 2.4 (c).
const MOST_V4: usize = 576;
const MOST_V6: usize = 1280;
const TTL: u8 = 64;
/// Errors that may be sent at once.
const BURST: u32 = 50;
/// One more may be sent every so long.
const INTERVAL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::{BURST, Budget, Kind, MOST_V4, MOST_V6, error};
    use fleetfoot_core::packet::{Flags, Segment};
    use fleetfoot_core::seq::SeqNumber;
    use fleetfoot_core::tcp::IcmpKind;
    use fleetfoot_core::time::Instant;
    use fleetfoot_core::wire::{encode, parse_icmp};
    use std::net::{IpAddr, SocketAddr};

    #[test]
    fn an_error_is_understood_by_our_own_tcp() {
        for (source, destination, router) in [
            ("10.0.0.5:80", "10.0.2.7:999", "10.0.0.1"),
            ("[fd00::5]:80", "[fd00:2::7]:999", "fd00::1"),
        ] {
            let (source, destination): (SocketAddr, SocketAddr) = (
                source.parse().expect("an address"),
                destination.parse().expect("an address"),
            );
            let router: IpAddr = router.parse().expect("an address");
            let segment = Segment {
                seq: SeqNumber(77),
                payload: 1300,
                flags: Flags::ACK,
                ttl: 1,
                ..Segment::default()
            };
            let mut packet = vec![0; 1500];
            let length = encode(&mut packet, &segment, source, destination, &[]).expect("it fits");
            packet.truncate(length);
            for (kind, wanted) in [
                (Kind::TimeExceeded, IcmpKind::TimeExceeded),
                (Kind::TooBig { mtu: 1280 }, IcmpKind::TooBig { mtu: 1280 }),
                (Kind::NoRoute, IcmpKind::NetUnreachable),
                (Kind::HostUnreachable, IcmpKind::HostUnreachable),
            ] {
                let mut buffer = Vec::new();
                assert!(error(&packet, kind, router, &mut buffer));
                let read = parse_icmp(&buffer).expect("checksums are right");
                assert_eq!((read.icmp.kind, read.icmp.seq), (wanted, SeqNumber(77)));
                assert_eq!(
                    (read.from, read.source, read.destination),
                    (router, source, destination)
                );
                let most = if router.is_ipv4() { MOST_V4 } else { MOST_V6 };
                assert!(
                    buffer.len() <= most && buffer.len() <= packet.len() + 48,
                    "{}",
                    buffer.len()
                );
            }
            let other = if router.is_ipv4() { "fd00::1" } else { "10.0.0.1" };
            let other = other.parse().expect("an address");
            assert!(!error(&packet, Kind::NoRoute, other, &mut Vec::new()));
        }
        assert!(!error(
            &[0x45, 0],
            Kind::NoRoute,
            IpAddr::from([10, 0, 0, 1]),
            &mut Vec::new()
        ));
    }

    #[test]
    fn a_flood_is_answered_at_a_limited_rate() {
        let mut budget = Budget::full();
        let mut sent = 0;
        for step in 0..1_000_000_u64 {
            sent += u32::from(budget.take(Instant::from_nanos(step * 1000)));
        }
        assert!(
            (BURST + 95..=BURST + 101).contains(&sent),
            "a hundred in the second: {sent}"
        );
    }
}
