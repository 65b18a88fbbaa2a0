//! Answers to pings (RFC 792, RFC 4443 4.2), so that one can look whether a host is there.

use fleetfoot_core::wire::checksum::Sum;
use std::net::IpAddr;

/// Makes the answer of the echo request in `packet`, in place; its length, or `None` if it is something else. Only what is for
/// one of `addresses` is answered.
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
    let to = <[u8; 4]>::try_from(packet.get(16..20)?).ok()?;
    if !addresses.contains(&IpAddr::from(to)) {
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
    before[12..16].swap_with_slice(&mut after[..4]); // its sum stays as it is
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
    if !addresses.contains(&IpAddr::from(to)) {
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
    network[7] = 64;
    message[0] = 129;
    change_checksum(message, 0xfeff)?; // 0x0100 more in the message
    Some(total)
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

#[cfg(test)]
mod tests {
    use super::{ICMP, ICMP_V6, answer, right};
    use fleetfoot_core::wire::checksum::Sum;
    use std::net::IpAddr;

    fn request(v6: bool) -> (Vec<u8>, [IpAddr; 2]) {
        let ends: [IpAddr; 2] = if v6 {
            [
                "fd00::1".parse().expect("an address"),
                "fd00::2".parse().expect("an address"),
            ]
        } else {
            [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()]
        };
        let mut message = vec![if v6 { 128 } else { 8 }, 0, 0, 0, 1, 2, 3, 4, 9, 9, 200];
        let mut sum = if v6 {
            Sum::pseudo_header(ends[0], ends[1], ICMP_V6, message.len() as u32)
        } else {
            Sum::default()
        };
        sum.add(&message);
        message[2..4].copy_from_slice(&sum.finish().to_be_bytes());
        let mut packet = if v6 {
            let mut header = vec![0x60, 0, 0, 0, 0, message.len() as u8, ICMP_V6, 64];
            for end in &ends {
                let IpAddr::V6(end) = end else { panic!("IPv6") };
                header.extend(end.octets());
            }
            header
        } else {
            let mut header = vec![
                0x45,
                0,
                0,
                20 + message.len() as u8,
                0,
                7,
                0x40,
                0,
                64,
                ICMP,
                0,
                0,
            ];
            header.extend([10, 0, 0, 1, 10, 0, 0, 2]);
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
            assert_eq!(answer(&mut packet, &ends), None, "an answer is not answered");
        }
    }
}
