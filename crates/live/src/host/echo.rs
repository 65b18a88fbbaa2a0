//! Answers to pings (RFC 792, RFC 4443 4.2), so that one can look whether a host is there.

use crate::router::packet::{is_for_several, is_martian};
use fleetfoot_core::wire::checksum::Sum;
use std::net::IpAddr;

/// Makes the answer of the echo request in `packet`, in place; its length, or `None` if it is something else. Only what one host has
/// sent to one of `addresses` is answered: an answer to a group would reach all of it (RFC 1122 3.2.1.3).
pub(super) fn answer(packet: &mut [u8], addresses: &[IpAddr]) -> Option<usize> {
    match packet.first()? >> 4 {
        4 => answer_v4(packet, addresses),
        6 => answer_v6(packet, addresses),
        _ => None,
    }
}

fn answer_v4(packet: &mut [u8], addresses: &[IpAddr]) -> Option<usize> {
    let header = usize::from(packet.first()? & 15) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff;
    if header < 20 || fragment != 0 || *packet.get(9)? != ICMP {
        return None;
    }
    let from = <[u8; 4]>::try_from(packet.get(12..16)?).ok()?;
    let to = <[u8; 4]>::try_from(packet.get(16..20)?).ok()?;
    if !addresses.contains(&IpAddr::from(to)) || !is_host(from.into()) {
        return None;
    }
    let packet = packet.get_mut(..total)?;
    let (network, message) = packet.split_at_mut_checked(header)?;
    if !right(Sum::default(), network) || !right(Sum::default(), message) {
        return None;
    }
    if *message.first()? != 8 {
        return None;
    }
    let (before, after) = network.split_at_mut(16);
    before[12..16].swap_with_slice(&mut after[..4]);
    // A time to live of its own (RFC 1122 3.2.1.7): that of the request is what its way here has left.
    before[8] = TTL;
    network[10..12].fill(0);
    let sum = Sum::default().over(network);
    network[10..12].copy_from_slice(&sum.to_be_bytes());
    message[0] = 0;
    change_checksum(message, 0x0800)?;
    Some(total)
}

fn answer_v6(packet: &mut [u8], addresses: &[IpAddr]) -> Option<usize> {
    let total = 40 + usize::from(u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]));
    if *packet.get(6)? != ICMP_V6 {
        return None;
    }
    let from = <[u8; 16]>::try_from(packet.get(8..24)?).ok()?;
    let to = <[u8; 16]>::try_from(packet.get(24..40)?).ok()?;
    if !addresses.contains(&IpAddr::from(to)) || !is_host(from.into()) {
        return None;
    }
    let packet = packet.get_mut(..total)?;
    let (network, message) = packet.split_at_mut_checked(40)?;
    let sum = Sum::pseudo_header(from.into(), to.into(), ICMP_V6, message.len() as u32);
    if !right(sum, message) || *message.first()? != 128 {
        return None;
    }
    network[8..24].copy_from_slice(&to);
    network[24..40].copy_from_slice(&from);
    network[7] = TTL;
    message[0] = 129;
    change_checksum(message, 0xfeff)?; // 0x0100 more in the message
    Some(total)
}

/// Whether an address can be that of one host on a network.
fn is_host(address: IpAddr) -> bool {
    !is_martian(&address) && !is_for_several(&address)
}

fn right(mut sum: Sum, bytes: &[u8]) -> bool {
    sum.add(bytes);
    sum.finish() == 0
}

/// Adds to the checksum of an ICMP message, which stands at 2 (RFC 1624).
fn change_checksum(message: &mut [u8], more: u16) -> Option<()> {
    let old = u16::from_be_bytes([*message.get(2)?, *message.get(3)?]);
    let (sum, carry) = old.overflowing_add(more);
    let new = sum.wrapping_add(u16::from(carry));
    message.get_mut(2..4)?.copy_from_slice(&new.to_be_bytes());
    Some(())
}

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// As of everything that this host sends (RFC 1700).
const TTL: u8 = 64;

#[cfg(test)]
mod tests {
    use super::{ICMP, ICMP_V6, answer, right};
    use fleetfoot_core::wire::checksum::Sum;
    use std::net::IpAddr;

    /// A ping with three hops left.
    fn request(v6: bool) -> (Vec<u8>, [IpAddr; 2]) {
        request_from(if v6 { "fd00::1" } else { "10.0.0.1" })
    }

    fn request_from(source: &str) -> (Vec<u8>, [IpAddr; 2]) {
        let source: IpAddr = source.parse().expect("an address");
        let v6 = source.is_ipv6();
        let destination = if v6 { "fd00::2" } else { "10.0.0.2" };
        let ends = [source, destination.parse().expect("an address")];
        let mut message = vec![if v6 { 128 } else { 8 }, 0, 0, 0, 1, 2, 3, 4, 9, 9, 200];
        let mut sum = if v6 {
            Sum::pseudo_header(ends[0], ends[1], ICMP_V6, message.len() as u32)
        } else {
            Sum::default()
        };
        sum.add(&message);
        message[2..4].copy_from_slice(&sum.finish().to_be_bytes());
        let mut packet = if v6 {
            let mut header = vec![0x60, 0, 0, 0, 0, message.len() as u8, ICMP_V6, 3];
            for end in &ends {
                let IpAddr::V6(end) = end else { panic!("IPv6") };
                header.extend(end.octets());
            }
            header
        } else {
            let mut header = vec![0x45, 0, 0, 20 + message.len() as u8, 0, 7, 0x40, 0, 3, ICMP, 0, 0];
            for end in &ends {
                let IpAddr::V4(end) = end else { panic!("IPv4") };
                header.extend(end.octets());
            }
            let mut sum = Sum::default();
            sum.add(&header);
            header[10..12].copy_from_slice(&sum.finish().to_be_bytes());
            header
        };
        packet.extend(message);
        (packet, ends)
    }

    #[test]
    fn a_ping_comes_back_with_right_checksums() {
        for v6 in [false, true] {
            let (mut packet, ends) = request(v6);
            let header = packet.len() - 11;
            assert_eq!(answer(&mut packet.clone(), &ends[..1]), None, "for somebody else");
            for bit in 0..8 * packet.len() {
                let mut damaged = packet.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let _ = answer(&mut damaged, &ends);
            }
            for end in 0..packet.len() {
                assert_eq!(answer(&mut packet[..end].to_vec(), &ends), None);
            }
            assert_eq!(answer(&mut packet, &ends[1..]), Some(header + 11));
            let sum = if v6 {
                Sum::pseudo_header(ends[1], ends[0], ICMP_V6, 11)
            } else {
                assert!(right(Sum::default(), &packet[..20]));
                Sum::default()
            };
            assert!(right(sum, &packet[header..]));
            assert_eq!(packet[header], if v6 { 129 } else { 0 });
            assert_eq!(packet[if v6 { 7 } else { 8 }], 64, "a time to live of its own");
            assert_eq!(answer(&mut packet, &ends), None, "an answer is not answered");
        }
    }

    #[test]
    fn a_ping_that_comes_from_no_single_host_is_not_answered() {
        for source in [
            "224.0.0.1",
            "255.255.255.255",
            "0.0.0.0",
            "127.0.0.1",
            "ff02::1",
            "::",
            "::1",
        ] {
            let (mut packet, ends) = request_from(source);
            assert_eq!(answer(&mut packet, &ends[1..]), None, "{source}");
        }
    }
}
