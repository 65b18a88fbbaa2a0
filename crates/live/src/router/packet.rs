//! What a router looks at in a packet before it passes it on, and what it changes.
//!
//! Nothing here has state or touches the network. A packet that must not be passed on has one reason, by which it is counted.
//!
//! **Source.** RFC 1812 5.2.2 (checks of the header), 5.2.4 (source routes), 5.3.7 (martian addresses), RFC 6890 (special addresses),
//! RFC 4291 2.5 (IPv6 addresses), RFC 5095 (the routing header of type 0), RFC 1624 (the checksum when the time to live changes).
//! **Deviations.** Source routes are refused, not followed. IPv4 packets that are too long are not fragmented.

use super::icmp;
use crate::frames::{self, Ends, Frames, HEADER, Seen};
use fleetfoot_core::packet::Ecn;
use fleetfoot_core::wire::checksum::Sum;
use fleetfoot_core::wire::{self, Error};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why a frame that came in goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Discard {
    /// Shorter than an Ethernet header.
    Runt,
    /// Not all of it was there.
    Truncated,
    /// Longer than the MTU of the interface on which it came: several segments that a device or the kernel has put together.
    Aggregate,
    /// Longer than the MTU of the interface by which it is to leave.
    LongerThanMtu,
    /// A header that cannot be: its version, its lengths, its options.
    Malformed,
    /// The checksum of the IPv4 header is wrong.
    HeaderChecksum,
    /// The packet asks for a route of its own (source routing).
    SourceRouted,
    /// Its source is no host that can send it: loopback, multicast, broadcast, unspecified, reserved, or its own destination.
    MartianSource,
    /// Its source is an address of this router.
    OwnSource,
    /// It is for this machine, and the kernel did not get it: AF_XDP gave it to the router before it was told of the address.
    OwnDestination,
    /// Its source would be reached by another interface.
    WrongInterface,
    /// Its destination is no host on any network: loopback, unspecified, reserved, or all hosts of a network on a link (RFC 2644).
    MartianDestination,
    /// Its source or destination is valid on one link only.
    LinkLocal,
    /// Its time to live or hop limit ran out here.
    TtlExpired,
    /// No route leads to its destination.
    NoRoute,
    /// The hardware address of the next hop is not known, and did not become known in time.
    NoNeighbour,
    /// No memory is left for frames that wait.
    NoBuffer,
}

impl Discard {
    /// All of them, in order.
    pub const ALL: [Discard; 17] = [
        Discard::Runt,
        Discard::Truncated,
        Discard::Aggregate,
        Discard::LongerThanMtu,
        Discard::Malformed,
        Discard::HeaderChecksum,
        Discard::SourceRouted,
        Discard::MartianSource,
        Discard::OwnSource,
        Discard::OwnDestination,
        Discard::WrongInterface,
        Discard::MartianDestination,
        Discard::LinkLocal,
        Discard::TtlExpired,
        Discard::NoRoute,
        Discard::NoNeighbour,
        Discard::NoBuffer,
    ];

    /// Its name in metrics and statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Discard::Runt => "runt",
            Discard::Truncated => "truncated",
            Discard::Aggregate => "aggregate",
            Discard::LongerThanMtu => "longer_than_mtu",
            Discard::Malformed => "malformed",
            Discard::HeaderChecksum => "header_checksum",
            Discard::SourceRouted => "source_routed",
            Discard::MartianSource => "martian_source",
            Discard::OwnSource => "own_source",
            Discard::OwnDestination => "own_destination",
            Discard::WrongInterface => "wrong_interface",
            Discard::MartianDestination => "martian_destination",
            Discard::LinkLocal => "link_local",
            Discard::TtlExpired => "ttl_expired",
            Discard::NoRoute => "no_route",
            Discard::NoNeighbour => "no_neighbour",
            Discard::NoBuffer => "no_buffer",
        }
    }
}

/// Who is to have a frame that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The next hop on the way to this address.
    Forward(IpAddr),
    /// The kernel of this machine, which has it already; AF_XDP leaves it that frame alone (`xdp/program.rs`).
    Kernel,
    /// Nobody.
    Discard(Discard),
}

/// What becomes of a frame of which `seen` was read, on an interface with the hardware address `own` and the MTU `mtu`; `is_ours`
/// knows the addresses of this machine. Routes, and whether the packet fits the next link, are not looked at.
pub(crate) fn fate(
    frame: &[u8],
    seen: &Seen,
    own: [u8; 6],
    mtu: u32,
    is_ours: impl Fn(&IpAddr) -> bool,
) -> Fate {
    let Some(to) = frame.get(..6) else {
        return Fate::Discard(Discard::Runt);
    };
    if frame.len() < HEADER {
        return Fate::Discard(Discard::Runt);
    }
    if to != own {
        return Fate::Kernel; // broadcast, multicast, another host's
    }
    let ends = &seen.ends;
    if ends.version == 0 && seen.problem.is_none() {
        return Fate::Kernel; // ARP and the like
    }
    let packet = frame.get(seen.network..).unwrap_or_default();
    if let Err(reason) = header(packet, seen.problem) {
        return Fate::Discard(reason);
    }
    let (Some(source), Some(destination)) = (ends.address(ends.source), ends.address(ends.destination))
    else {
        return Fate::Discard(Discard::Malformed);
    };
    // Loopback addresses are this machine's, too, but not for packets from outside.
    if is_martian(&destination) && !is_for_several(&destination) {
        return Fate::Discard(Discard::MartianDestination);
    }
    if is_ours(&destination) || is_for_several(&destination) {
        return Fate::Kernel;
    }
    if packet.len() > mtu as usize {
        return Fate::Discard(Discard::Aggregate);
    }
    if is_martian(&source) || is_for_several(&source) || source == destination {
        return Fate::Discard(Discard::MartianSource);
    }
    if is_link_local(&source) || is_link_local(&destination) {
        return Fate::Discard(Discard::LinkLocal);
    }
    if is_ours(&source) {
        return Fate::Discard(Discard::OwnSource);
    }
    if let Err(reason) = source_route(packet) {
        return Fate::Discard(reason);
    }
    if ttl(packet) <= 1 {
        return Fate::Discard(Discard::TtlExpired);
    }
    Fate::Forward(destination)
}

/// Whether the network header is sound; `problem` is what was wrong with the headers of the packet, if anything was.
fn header(packet: &[u8], problem: Option<Error>) -> Result<(), Discard> {
    // What is wrong with the transport, or not known of it, is a matter of the receiver.
    match problem {
        None | Some(Error::Protocol | Error::Fragment | Error::Option) => return Ok(()),
        Some(Error::Version) => return Err(Discard::Malformed),
        Some(_) => {}
    }
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let Some(length) = total_length(packet) else {
                return Err(Discard::Malformed);
            };
            let header = usize::from(packet[0] & 15) * 4;
            if header < 20 || length < header {
                return Err(Discard::Malformed);
            }
            if length > packet.len() {
                return Err(Discard::Truncated);
            }
            let checksum = Sum::default().over(packet.get(..header).unwrap_or_default());
            if checksum != 0 {
                return Err(Discard::HeaderChecksum);
            }
            Ok(())
        }
        Some(6) => match total_length(packet) {
            None => Err(Discard::Malformed),
            Some(length) if length > packet.len() => Err(Discard::Truncated),
            Some(_) => Ok(()),
        },
        _ => Err(Discard::Malformed),
    }
}

/// Bytes of a packet as its header has it; `None`: there is no whole header.
pub(crate) fn total_length(packet: &[u8]) -> Option<usize> {
    let word = |at: usize| {
        let bytes: [u8; 2] = packet.get(at..at + 2)?.try_into().ok()?;
        Some(usize::from(u16::from_be_bytes(bytes)))
    };
    match packet.first()? >> 4 {
        4 if packet.len() >= 20 => word(2),
        6 if packet.len() >= 40 => Some(40 + word(4)?),
        _ => None,
    }
}

fn ttl(packet: &[u8]) -> u8 {
    let at = if packet.first().is_some_and(|first| first >> 4 == 4) {
        8
    } else {
        7
    };
    packet.get(at).copied().unwrap_or(0)
}

/// Whether an IPv4 packet must not be fragmented; one of IPv6 never is.
pub(crate) fn must_stay_whole(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(6).is_some_and(|flags| flags & 0x40 != 0),
        _ => true,
    }
}

/// Group addresses and the broadcast of the link.
pub(crate) fn is_for_several(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_multicast() || four.is_broadcast(),
        IpAddr::V6(six) => six.is_multicast(),
    }
}

/// Addresses that no packet between hosts has.
pub(crate) fn is_martian(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => {
            let [first, ..] = four.octets();
            first == 0 || first == 127 || first >= 240
        }
        IpAddr::V6(six) => six.is_unspecified() || six.is_loopback() || six.to_ipv4_mapped().is_some(),
    }
}

fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}

/// Whether a packet is free of source routes, and its options are well formed.
fn source_route(packet: &[u8]) -> Result<(), Discard> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => options(packet),
        Some(6) => extensions(packet).map(|_| ()),
        _ => Err(Discard::Malformed),
    }
}

/// Looks through the options of an IPv4 header.
fn options(packet: &[u8]) -> Result<(), Discard> {
    let header = usize::from(packet.first().map_or(0, |first| first & 15)) * 4;
    let mut rest = packet.get(20..header).unwrap_or_default();
    while let [kind, behind @ ..] = rest {
        rest = match *kind {
            0 => break,
            1 => behind,
            LOOSE_ROUTE | STRICT_ROUTE => return Err(Discard::SourceRouted),
            _ => {
                let length = usize::from(*behind.first().ok_or(Discard::Malformed)?);
                if length < 2 {
                    return Err(Discard::Malformed);
                }
                rest.get(length..).ok_or(Discard::Malformed)?
            }
        };
    }
    Ok(())
}

/// Looks through the extension headers of an IPv6 packet: where what follows them begins, and which protocol that is.
fn extensions(packet: &[u8]) -> Result<(usize, u8), Discard> {
    let mut protocol = *packet.get(6).ok_or(Discard::Malformed)?;
    let mut at = 40;
    // More headers than any packet has would only cost time.
    for _ in 0..MOST_EXTENSIONS {
        match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => {
                let (Some(&next), Some(&units)) = (packet.get(at), packet.get(at + 1)) else {
                    return Err(Discard::Malformed);
                };
                if protocol == ROUTING && packet.get(at + 2) == Some(&0) {
                    return Err(Discard::SourceRouted);
                }
                protocol = next;
                at += (usize::from(units) + 1) * 8;
            }
            _ => return Ok((at, protocol)),
        }
    }
    Err(Discard::Malformed)
}

/// Writes the addresses of the next link into a frame whose network header begins at `network`, and takes one from the time to live.
pub(crate) fn forward(frame: &mut [u8], network: usize, from: [u8; 6], to: [u8; 6]) {
    if let Some(addresses) = frame.get_mut(..12) {
        addresses[..6].copy_from_slice(&to);
        addresses[6..].copy_from_slice(&from);
    }
    if let Some(packet) = frame.get_mut(network..) {
        // Its header was read when it came.
        let _ = wire::decrement_ttl(packet);
    }
}

/// Puts the checksum of the transport in where the sender's kernel has left that to a device: the field holds the sum of the pseudo
/// header. False if the packet is not one that can have been left so.
pub(crate) fn finish_checksum(packet: &mut [u8]) -> bool {
    let Some(length) = total_length(packet) else {
        return false;
    };
    let (begin, protocol) = match packet.first().map(|first| first >> 4) {
        Some(4) => (
            usize::from(packet[0] & 15) * 4,
            packet.get(9).copied().unwrap_or(0),
        ),
        _ => match extensions(packet) {
            Ok(found) => found,
            Err(_) => return false,
        },
    };
    let field = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return false,
    };
    let Some(transport) = packet.get_mut(begin..length) else {
        return false;
    };
    let sum = match Sum::default().over(transport) {
        0 if protocol == UDP => 0xffff, // zero means that there is none
        sum => sum,
    };
    let Some(place) = transport.get_mut(field..field + 2) else {
        return false;
    };
    place.copy_from_slice(&sum.to_be_bytes());
    true
}

/// Whether an ICMP error may be sent about a packet (RFC 1812 4.3.2.7, RFC 4443 2.4): not about errors, nor about fragments but the first.
pub(crate) fn may_be_answered(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let header = usize::from(packet[0] & 15) * 4;
            let first = packet
                .get(6..8)
                .is_some_and(|word| word[0] & 0x1f == 0 && word[1] == 0);
            let error = packet.get(9) == Some(&ICMP) && !matches!(packet.get(header), Some(0 | 8 | 13 | 14)); // echo and timestamp
            first && !error
        }
        Some(6) => match extensions(packet) {
            Ok((at, ICMP_V6)) => packet.get(at).is_some_and(|kind| kind & 0x80 != 0),
            Ok((at, FRAGMENT)) => packet
                .get(at + 2..at + 4)
                .is_some_and(|word| word[0] == 0 && word[1] & 0xf8 == 0),
            Ok(_) => true,
            Err(_) => false,
        },
        _ => false,
    }
}

impl Ends {
    /// Both addresses of an IP packet.
    pub(crate) fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        Some((self.address(self.source)?, self.address(self.destination)?))
    }
}

const LOOSE_ROUTE: u8 = 131;
const STRICT_ROUTE: u8 = 137;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;
const MOST_EXTENSIONS: usize = 16;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;

/// Reads and judges any bytes as a router does, and rewrites those it would pass on; for the fuzzer. Whether it would be passed on.
///
/// # Errors
/// What is wrong with what would come out: a time to live that is not less by one, a header checksum that is not right, a packet that is
/// not whole, for nobody or of another flow, or bytes that changed and should not have.
pub fn try_frame(frame: &[u8]) -> Result<bool, String> {
    let own = [2, 0, 0, 0, 0, 1];
    let ours = [
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
    ];
    let seen = frames::read(frame, None);
    kept(frame, &seen)?;
    let Fate::Forward(to) = fate(frame, &seen, own, 1500, |address| ours.contains(address)) else {
        return Ok(false);
    };
    let mut copy = frame.to_vec();
    forward(&mut copy, seen.network, own, [2, 0, 0, 0, 0, 2]);
    let (before, after) = (&frame[seen.network..], &copy[seen.network..]);
    if ttl(after) + 1 != ttl(before) || ttl(after) == 0 {
        return Err(format!("time to live {} became {}", ttl(before), ttl(after)));
    }
    if !has_right_checksum(after) {
        return Err(String::from("the header's checksum became wrong"));
    }
    if total_length(after).is_none_or(|length| length > after.len()) {
        return Err(String::from("a packet that is not whole was passed on"));
    }
    if is_martian(&to) || is_for_several(&to) || ours.contains(&to) {
        return Err(format!("{to} is nobody's to be forwarded to"));
    }
    if frames::read(&copy, None).ends != seen.ends {
        return Err(String::from("it became another flow's"));
    }
    let mut error = Vec::new();
    for kind in [icmp::Kind::TimeExceeded, icmp::Kind::TooBig { mtu: 1280 }] {
        let from = ours[usize::from(to.is_ipv6())];
        if icmp::error(after, kind, from, &mut error) && !has_right_checksum(&error) {
            return Err(String::from("an error has a wrong checksum"));
        }
    }
    finish_checksum(&mut copy[seen.network..]);
    Ok(true)
}

/// A frame comes back as it was, and with its tag where the kernel took one out; a mark changes the ECN field and the header's checksum
/// alone.
fn kept(frame: &[u8], seen: &Seen) -> Result<(), String> {
    let tag = [0x81, 0, 0x20, 7];
    for tag in [None, Some(tag)] {
        let mut frames = Frames::of_at_most(1);
        let (mut packet, _) = frames.keep(frame, tag, seen).ok_or("there was room")?;
        frames.remark(&packet);
        let (addresses, rest) = frame.split_at(frame.len().min(12));
        let wanted = [addresses, tag.as_ref().map_or(&[], |tag| &tag[..]), rest].concat();
        if frames.bytes(&packet) != wanted {
            return Err(String::from("a frame changed while it was kept"));
        }
        packet.segment.set_ecn(Ecn::Ce);
        frames.remark(&packet);
        let (bytes, network) = frames.bytes_mut(&packet);
        let changed = bytes.iter().zip(&wanted).enumerate();
        let changed: Vec<usize> = changed.filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect();
        if changed
            .iter()
            .any(|at| ![1, 10, 11].contains(&at.wrapping_sub(network)))
        {
            return Err(format!(
                "a mark changed the bytes {changed:?}, the packet begins at {network}"
            ));
        }
    }
    Ok(())
}

/// Whether the header of an IPv4 packet has its right checksum; one of IPv6 has none.
fn has_right_checksum(packet: &[u8]) -> bool {
    match packet.first() {
        Some(first) if first >> 4 == 4 => {
            let header = packet.get(..usize::from(first & 15) * 4);
            header.is_some_and(|header| Sum::default().over(header) == 0)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests;
