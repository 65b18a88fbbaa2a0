//! Ethernet frames as the packets that queue disciplines know, and back.
//!
//! A frame is read once, when it comes ([`read`]); its bytes wait in a slot while the packet that stands for them is in a queue, and
//! only what the queue changed is written back ([`Frames::remark`]). How many flows and hosts are told apart is limited, so a flood
//! of addresses takes no more memory than ordinary traffic does: ids are used again. Keys come from the network, so they are hashed
//! with a random seed.

use fleetfoot_core::flow::{FlowId, FlowKey, FlowTable, HostId};
use fleetfoot_core::packet::{BufId, Kind, Packet, Segment};
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::wire;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of an Ethernet header without a VLAN tag.
pub(crate) const HEADER: usize = 14;
/// Bytes of a VLAN tag.
pub(crate) const TAG: usize = 4;

/// What the headers of a frame say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// What queues look at. Frames that are no IP packets, and IP packets that cannot be read, count with their length.
    pub(crate) segment: Segment,
    /// Whose it is.
    pub(crate) ends: Ends,
    /// Where in the frame its network header begins.
    pub(crate) network: usize,
    /// Why the headers of an IP packet could not be read, if they could not.
    pub(crate) problem: Option<wire::Error>,
}

/// The two ends of a conversation, one direction of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    /// Addresses as numbers.
    pub(crate) source: u128,
    pub(crate) destination: u128,
    source_port: u16,
    destination_port: u16,
    /// 4, 6, or 0: not IP.
    pub(crate) version: u8,
    protocol: u8,
    /// Identifier of the VLAN.
    vlan: u16,
}

impl Ends {
    fn of_addresses(source: IpAddr, destination: IpAddr) -> Ends {
        let number = |address| match address {
            IpAddr::V4(four) => u128::from(four.to_bits()),
            IpAddr::V6(six) => six.to_bits(),
        };
        Ends {
            source: number(source),
            destination: number(destination),
            version: if source.is_ipv4() { 4 } else { 6 },
            ..Ends::default()
        }
    }

    /// An end's address; `None`: the frame is no IP packet.
    pub(crate) fn address(&self, number: u128) -> Option<IpAddr> {
        match self.version {
            4 => Some(IpAddr::V4(Ipv4Addr::from_bits(number as u32))),
            6 => Some(IpAddr::V6(Ipv6Addr::from_bits(number))),
            _ => None,
        }
    }
}

/// Reads the headers of a frame, from which the kernel took the VLAN tag `tag`.
pub(crate) fn read(frame: &[u8], tag: Option<[u8; TAG]>) -> Seen {
    let (network, kind, inner) = network_header(frame);
    let tagged = tag
        .map(|[_, _, high, low]| u16::from_be_bytes([high, low]))
        .or(inner);
    let vlan = tagged.unwrap_or(0) & 0x0fff;
    let bytes = frame.get(network..).unwrap_or_default();
    let version = bytes.first().map_or(0, |first| first >> 4);
    let ip = matches!((kind, version), (IPV4, 4) | (IPV6, 6));
    if !ip {
        let mut segment = Segment {
            payload: bytes.len() as u32,
            ttl: 64,
            ..Segment::default()
        };
        segment.set_kind(Kind::Datagram);
        let ends = Ends {
            vlan,
            ..Ends::default()
        };
        return Seen {
            segment,
            ends,
            network,
            // One that says it is IP has to be.
            problem: matches!(kind, IPV4 | IPV6).then_some(wire::Error::Version),
        };
    }
    let protocol = bytes.get(if version == 4 { 9 } else { 6 }).copied().unwrap_or(0);
    match wire::parse_headers(bytes) {
        Ok(parsed) => {
            // Not what stands in the fixed header of IPv6: packets with extension headers are of the flow of those without.
            let protocol = if parsed.segment.kind() == Kind::Tcp {
                TCP
            } else {
                UDP
            };
            let ends = Ends {
                source_port: parsed.source.port(),
                destination_port: parsed.destination.port(),
                protocol,
                vlan,
                ..Ends::of_addresses(
                    SocketAddr::ip(&parsed.source),
                    SocketAddr::ip(&parsed.destination),
                )
            };
            Seen {
                segment: parsed.segment,
                ends,
                network,
                problem: None,
            }
        }
        Err(problem) => Seen {
            segment: unread(bytes, protocol),
            ends: Ends {
                protocol,
                vlan,
                ..addresses(bytes).map_or_else(Ends::default, |(source, destination)| {
                    Ends::of_addresses(source, destination)
                })
            },
            network,
            problem: Some(problem),
        },
    }
}

/// An IP packet whose transport cannot be read: a fragment, ICMP, another protocol, or a damaged header.
fn unread(bytes: &[u8], protocol: u8) -> Segment {
    let mut segment = Segment {
        payload: bytes.len() as u32,
        ttl: bytes
            .get(if bytes[0] >> 4 == 4 { 8 } else { 7 })
            .copied()
            .unwrap_or(0),
        tos: traffic_class(bytes).unwrap_or_default(),
        ..Segment::default()
    };
    segment.set_kind(if protocol == 1 || protocol == 58 {
        Kind::Icmp
    } else {
        Kind::Datagram
    });
    segment
}

/// Where the network header of a frame begins, of which kind it is, and the VLAN tag before it that is nearest to the frame's begin.
fn network_header(frame: &[u8]) -> (usize, [u8; 2], Option<u16>) {
    let (mut at, mut vlan) = (12, None);
    // Provider and customer tags: two at most.
    for _ in 0..3 {
        match frame.get(at..at + 4) {
            Some(&[0x81, 0x00, high, low] | &[0x88, 0xa8, high, low]) => {
                vlan = vlan.or(Some(u16::from_be_bytes([high, low])));
                at += TAG;
            }
            _ => break,
        }
    }
    match frame.get(at..at + 2) {
        Some(&[high, low]) => (at + 2, [high, low], vlan),
        _ => (HEADER, [0, 0], vlan),
    }
}

/// Whether a tag, of a customer or of a provider (802.1ad), carries a priority alone: VLAN 0 is none (IEEE 802.1Q 9.6), and its frames are
/// of the interface itself, as Linux takes them.
pub(crate) const fn is_priority(tag: [u8; TAG]) -> bool {
    matches!(tag, [0x81, 0x00, high, 0] | [0x88, 0xa8, high, 0] if high & 0x0f == 0)
}

/// Makes `untagged` of a frame with a priority tag; false: the first tag is that of a VLAN, or there is none.
pub(crate) fn take_priority_off(frame: &[u8], untagged: &mut Vec<u8>) -> bool {
    let Some((addresses, rest)) = frame.split_at_checked(12) else {
        return false;
    };
    match rest.split_first_chunk::<TAG>() {
        Some((tag, rest)) if is_priority(*tag) => {
            untagged.clear();
            untagged.extend_from_slice(addresses);
            untagged.extend_from_slice(rest);
            true
        }
        _ => false,
    }
}

/// Protocol numbers of what has ports here.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// EtherTypes.
pub(crate) const IPV4: [u8; 2] = [0x08, 0x00];
pub(crate) const IPV6: [u8; 2] = [0x86, 0xdd];

/// The numbers that hosts got: who knows them and the hash key of a queue can choose what collides in its table.
pub(crate) type HostNumbers = Arc<Mutex<HashMap<IpAddr, HostId>>>;

/// Frames on their way through a link, and the flows that they belong to.
pub(crate) struct Frames {
    slots: Vec<Slot>,
    free: Vec<u32>,
    flows: FlowTable,
    ids: HashMap<Ends, FlowId, RandomState>,
    /// Whose each flow id is, and how many of its frames are on their way.
    known: Vec<Known>,
    hosts: HashMap<IpAddr, HostId, RandomState>,
    /// The number that the next new host gets.
    next_host: u32,
    /// Where the numbers of hosts are told, if anywhere.
    told: Option<HostNumbers>,
    /// The flow id that is looked at next for one that is no longer needed.
    next: u32,
    /// Frames that are kept at most.
    most: usize,
}

#[derive(Clone, Copy)]
struct Known {
    ends: Ends,
    under_way: u32,
}

#[derive(Default)]
struct Slot {
    bytes: Vec<u8>,
    /// How often it is still to be delivered.
    copies: u32,
    flow: u32,
    /// Where the network header begins, and whether it is one of IP.
    network: usize,
    ip: bool,
    /// Time in the queue, once it has left that.
    waited: Duration,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames::of_at_most(usize::MAX)
    }
}

impl Frames {
    /// Room for `most` frames at once.
    pub(crate) fn of_at_most(most: usize) -> Frames {
        Frames {
            slots: Vec::new(),
            free: Vec::new(),
            flows: FlowTable::default(),
            ids: HashMap::default(),
            known: Vec::new(),
            hosts: HashMap::default(),
            next_host: 1,
            told: None,
            next: 0,
            most,
        }
    }

    /// Tells the number of every host that comes from now on.
    pub(crate) fn tell_hosts(&mut self, numbers: HostNumbers) {
        self.told = Some(numbers);
    }

    /// Keeps a frame whose headers nobody looks at. `None`: there is no room.
    pub(crate) fn keep_unread(&mut self, frame: &[u8]) -> Option<Packet> {
        let seen = Seen {
            segment: Segment {
                payload: frame.len().saturating_sub(HEADER) as u32,
                ..Segment::default()
            },
            ends: Ends::default(),
            network: HEADER,
            problem: None,
        };
        self.keep(frame, None, &seen).map(|(packet, _)| packet)
    }

    /// Keeps a frame, of which `seen` was read, with its tag back in its place: the packet that stands for it, and the flow whose id
    /// it takes over, if that was another's. `None`: there is no room.
    pub(crate) fn keep(
        &mut self,
        frame: &[u8],
        tag: Option<[u8; TAG]>,
        seen: &Seen,
    ) -> Option<(Packet, Option<FlowId>)> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() >= self.most => return None,
            None => {
                self.slots.push(Slot::default());
                // Then giving it back needs no memory; nothing is free now.
                self.free.reserve(self.slots.len());
                (self.slots.len() - 1) as u32
            }
        };
        let (flow, taken_over) = self.flow(seen.ends);
        let slot = &mut self.slots[index as usize];
        slot.bytes.clear();
        // Not more than the longest frame needs, which would be up to twice as much.
        slot.bytes.reserve_exact(frame.len() + TAG);
        slot.network = seen.network;
        slot.ip = seen.ends.version != 0;
        match tag {
            None => slot.bytes.extend_from_slice(frame),
            Some(tag) => {
                let (addresses, rest) = frame.split_at(frame.len().min(12));
                slot.bytes.extend_from_slice(addresses);
                slot.bytes.extend_from_slice(&tag);
                slot.bytes.extend_from_slice(rest);
                slot.network += TAG;
            }
        }
        slot.copies = 1;
        slot.waited = Duration::ZERO;
        slot.flow = flow.0;
        self.known[flow.0 as usize].under_way += 1;
        let packet = Packet {
            enqueued_at: Instant::ZERO,
            flow,
            buf: BufId(index),
            segment: seen.segment,
        };
        Some((packet, taken_over))
    }

    /// A packet has left the queue.
    pub(crate) fn departed(&mut self, packet: &Packet, waited: Duration) {
        self.slots[packet.buf.0 as usize].waited = waited;
    }

    /// How long a packet was in the queue.
    pub(crate) fn waited(&self, packet: &Packet) -> Duration {
        self.slots[packet.buf.0 as usize].waited
    }

    /// A packet will arrive once more.
    pub(crate) fn duplicate(&mut self, packet: &Packet) {
        self.slots[packet.buf.0 as usize].copies += 1;
    }

    /// A packet was dropped, or delivered once.
    pub(crate) fn release(&mut self, packet: &Packet) {
        let slot = &mut self.slots[packet.buf.0 as usize];
        slot.copies -= 1;
        if slot.copies == 0 {
            self.known[slot.flow as usize].under_way -= 1;
            self.free.push(packet.buf.0);
        }
    }

    /// Writes what the queue changed in the header of a packet into its bytes.
    pub(crate) fn remark(&mut self, packet: &Packet) {
        let slot = &mut self.slots[packet.buf.0 as usize];
        let start = slot.network.min(slot.bytes.len());
        let network = &mut slot.bytes[start..];
        if slot.ip
            && let Some(tos) = traffic_class(network)
            && tos != packet.segment.tos
        {
            remark(network, packet.segment.tos);
        }
    }

    /// Writes the mark of a super-packet into the bytes of a packet, as its segment has it. One that does not fit stays as it is:
    /// whether it was written.
    pub(crate) fn mark(&mut self, packet: &Packet, layout: Layout) -> bool {
        let slot = &mut self.slots[packet.buf.0 as usize];
        let (bytes, network) = (&mut slot.bytes, slot.network);
        let Some(length) = bytes.len().checked_sub(network) else {
            return false;
        };
        let segment = &packet.segment;
        if layout != Layout::C {
            return wire::remark(&mut bytes[network..], segment.tos, segment.ip_id).is_ok();
        }
        bytes.resize(network + length + usize::from(layout.overhead()), 0);
        let done = wire::insert_option(&mut bytes[network..], length, segment);
        bytes.truncate(network + *done.as_ref().unwrap_or(&length));
        done.is_ok()
    }

    /// The bytes of a packet.
    pub(crate) fn bytes(&self, packet: &Packet) -> &[u8] {
        &self.slots[packet.buf.0 as usize].bytes
    }

    /// The bytes of a packet, to be changed, and where in them its network header begins.
    pub(crate) fn bytes_mut(&mut self, packet: &Packet) -> (&mut [u8], usize) {
        let slot = &mut self.slots[packet.buf.0 as usize];
        (&mut slot.bytes, slot.network)
    }

    /// Bytes that slots hold, whether in use or not.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.slots.iter().map(|slot| slot.bytes.capacity()).sum()
    }

    /// Frames that are on their way.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The flows seen so far.
    pub(crate) const fn flows(&self) -> &FlowTable {
        &self.flows
    }

    /// The ends of a flow, in words.
    pub(crate) fn ends(&self, flow: FlowId) -> String {
        let ends = self.known.get(flow.0 as usize).map(|known| known.ends);
        let Some(ends) = ends.filter(|ends| ends.version != 0) else {
            return String::from("no IP packet");
        };
        let of = |number, port| match ends.address(number) {
            Some(address) => SocketAddr::new(address, port).to_string(),
            None => String::new(),
        };
        let from = of(ends.source, ends.source_port);
        format!("{from} > {}", of(ends.destination, ends.destination_port))
    }

    /// The number of a host: an IPv4 address, or an IPv6 network of 64 bits. Zero is no host.
    fn host(&mut self, address: Option<IpAddr>) -> HostId {
        let address = match address {
            None => return HostId(0),
            Some(IpAddr::V6(six)) => IpAddr::from(Ipv6Addr::from_bits(six.to_bits() >> 64 << 64)),
            Some(four) => four,
        };
        if self.hosts.len() >= MOST_HOSTS {
            self.hosts.clear(); // a scan of addresses: hosts get new numbers when they come again
        }
        let next = HostId(self.next_host);
        let host = *self.hosts.entry(address).or_insert(next);
        if host == next {
            self.next_host = self.next_host.wrapping_add(1).max(1);
            if let Some(told) = &self.told {
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                told.insert(address, host);
            }
        }
        host
    }

    /// The id of a flow, and whether it was another's before.
    fn flow(&mut self, ends: Ends) -> (FlowId, Option<FlowId>) {
        match self.ids.get(&ends) {
            Some(&flow) => (flow, None),
            None => self.new_flow(ends),
        }
    }

    #[cold]
    fn new_flow(&mut self, ends: Ends) -> (FlowId, Option<FlowId>) {
        let key = FlowKey {
            source: self.host(ends.address(ends.source)),
            destination: self.host(ends.address(ends.destination)),
            source_port: ends.source_port,
            destination_port: ends.destination_port,
            protocol: ends.protocol,
        };
        if self.flows.len() < MOST_FLOWS {
            let flow = self.flows.push(key);
            self.known.push(Known { ends, under_way: 0 });
            self.ids.insert(ends, flow);
            return (flow, None);
        }
        // One of which nothing is under way; if there is none near, one that is used by two.
        let count = self.flows.len() as u32;
        let free = (0..count.min(LOOKED_AT))
            .map(|step| (self.next + step) % count)
            .find(|&id| self.known[id as usize].under_way == 0);
        let flow = FlowId(free.unwrap_or(self.next));
        self.next = (flow.0 + 1) % count;
        let known = &mut self.known[flow.0 as usize];
        self.ids.remove(&known.ends);
        known.ends = ends;
        self.flows.set(flow, key);
        self.ids.insert(ends, flow);
        (flow, Some(flow))
    }
}

/// Traffic class of an IPv4 or IPv6 packet.
fn traffic_class(network: &[u8]) -> Option<u8> {
    match network {
        [first, second, ..] if first >> 4 == 4 => Some(*second),
        [first, second, ..] if first >> 4 == 6 => Some(first << 4 | second >> 4),
        _ => None,
    }
}

/// Writes the traffic class; the checksum of an IPv4 header follows.
fn remark(network: &mut [u8], tos: u8) {
    if network[0] >> 4 == 6 {
        network[0] = network[0] & 0xf0 | tos >> 4;
        network[1] = network[1] & 0x0f | tos << 4;
        return;
    }
    if let Some(&[high, low]) = network.get(4..6) {
        let id = u16::from_be_bytes([high, low]);
        // A header that cannot be read stays as it is.
        let _ = wire::remark(network, tos, id);
    }
}

/// Source and destination of an IP packet whose transport is not read.
fn addresses(network: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let four = |at: usize| {
        let bytes: [u8; 4] = network.get(at..at + 4)?.try_into().ok()?;
        Some(IpAddr::from(bytes))
    };
    let sixteen = |at: usize| {
        let bytes: [u8; 16] = network.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::from(bytes))
    };
    match network.first()? >> 4 {
        4 => Some((four(12)?, four(16)?)),
        6 => Some((sixteen(8)?, sixteen(24)?)),
        _ => None,
    }
}

/// Flows that are told apart at most; then ids are used again.
pub(crate) const MOST_FLOWS: usize = 65_536;
/// Flow ids that are looked at for one that is no longer needed, at most.
const LOOKED_AT: u32 = 256;
/// Hosts that are told apart at most.
const MOST_HOSTS: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::{Frames, HEADER, MOST_FLOWS, MOST_HOSTS, read};
    use fleetfoot_core::flow::FlowId;
    use fleetfoot_core::packet::{Ecn, Flags, Packet, Segment};
    use fleetfoot_core::wire;
    use std::net::SocketAddr;

    fn frame(source: &str, destination: &str, segment: &Segment) -> Vec<u8> {
        let (source, destination): (SocketAddr, SocketAddr) = (
            source.parse().expect("an address"),
            destination.parse().expect("an address"),
        );
        let mut bytes = vec![0; HEADER + 2000];
        bytes[12..HEADER].copy_from_slice(if source.is_ipv4() {
            &[0x08, 0x00]
        } else {
            &[0x86, 0xdd]
        });
        let length =
            wire::encode(&mut bytes[HEADER..], segment, source, destination, b"abc").expect("it fits");
        bytes.truncate(HEADER + length);
        bytes
    }

    fn keep(frames: &mut Frames, frame: &[u8]) -> (Packet, Option<FlowId>) {
        frames
            .keep(frame, None, &read(frame, None))
            .expect("there is room")
    }

    fn data() -> Segment {
        let mut segment = Segment {
            payload: 3,
            flags: Flags::ACK,
            ttl: 64,
            ..Segment::default()
        };
        segment.set_ecn(Ecn::Ect0);
        segment
    }

    #[test]
    fn a_frame_comes_back_as_it_was() {
        let mut frames = Frames::default();
        let v4 = frame("10.0.0.1:80", "10.0.0.2:999", &data());
        let v6 = frame("[fd00::1]:80", "[fd00::2]:999", &data());
        let arp = [[0xff; 12].as_slice(), &[0x08, 0x06], &[0; 28]].concat();
        let short = vec![1, 2, 3];
        for bytes in [v4, v6, arp, short] {
            let (packet, _) = keep(&mut frames, &bytes);
            assert_eq!(packet.segment.len() as usize, bytes.len().saturating_sub(HEADER));
            frames.remark(&packet);
            assert_eq!(frames.bytes(&packet), bytes);
            frames.release(&packet);
        }
    }

    #[test]
    fn a_mark_is_written_into_both_headers() {
        for (source, destination) in [
            ("10.0.0.1:80", "10.0.0.2:999"),
            ("[fd00::1]:80", "[fd00:1::2]:999"),
        ] {
            let mut frames = Frames::default();
            let (mut packet, _) = keep(&mut frames, &frame(source, destination, &data()));
            packet.segment.set_ecn(Ecn::Ce);
            frames.remark(&packet);
            let bytes = frames.bytes(&packet).to_vec();
            let parsed = wire::parse(&bytes[HEADER..]).expect("checksums are right");
            assert_eq!(parsed.segment.ecn(), Ecn::Ce);
        }
    }

    #[test]
    fn directions_are_flows_and_a_slot_is_used_again() {
        let mut frames = Frames::default();
        let (there, _) = keep(&mut frames, &frame("10.0.0.1:80", "10.0.0.2:999", &data()));
        let (back, _) = keep(&mut frames, &frame("10.0.0.2:999", "10.0.0.1:80", &data()));
        assert_ne!(there.flow, back.flow);
        let key = frames.flows().key(there.flow);
        assert_eq!(
            (key.source_port, key.destination_port, key.protocol),
            (80, 999, 6)
        );
        frames.duplicate(&there);
        frames.release(&there);
        let (other, _) = keep(&mut frames, &frame("10.0.0.1:80", "10.0.0.2:999", &data()));
        assert_ne!(other.buf, there.buf, "one copy of the first is still under way");
        frames.release(&there);
        let (third, _) = keep(&mut frames, &frame("10.0.0.1:80", "10.0.0.2:999", &data()));
        assert_eq!((third.buf, third.flow), (there.buf, there.flow));
    }

    #[test]
    fn a_tag_that_the_kernel_took_out_is_put_back_and_queues_look_behind_it() {
        let mut frames = Frames::default();
        let bare = frame("10.0.0.1:80", "10.0.0.2:999", &data());
        let tag = [0x81, 0x00, 0x20, 0x07];
        let seen = read(&bare, Some(tag));
        let (mut packet, _) = frames.keep(&bare, Some(tag), &seen).expect("room");
        let tagged = [&bare[..12], &tag, &bare[12..]].concat();
        assert_eq!(frames.bytes(&packet), tagged);
        assert_eq!(packet.segment.len() as usize, bare.len() - HEADER);
        // The same frame with its tag in place is of the same flow, one of another VLAN is not.
        let (inside, _) = keep(&mut frames, &tagged);
        assert_eq!((inside.flow, inside.segment), (packet.flow, packet.segment));
        assert_ne!(keep(&mut frames, &bare).0.flow, packet.flow);
        packet.segment.set_ecn(Ecn::Ce);
        frames.remark(&packet);
        let parsed = wire::parse(&frames.bytes(&packet)[HEADER + 4..]).expect("checksums are right");
        assert_eq!(parsed.segment.ecn(), Ecn::Ce);
    }

    #[test]
    fn a_flood_of_flows_and_hosts_takes_bounded_memory_and_keeps_what_is_under_way() {
        let mut frames = Frames::of_at_most(100);
        let mut kept = Vec::new();
        let mut refused = 0;
        for number in 0..1_000_000_u32 {
            let mut syn = frame("10.0.0.1:80", "10.0.0.2:999", &data());
            // Spoofed sources: the address alone is changed, and the checksum with it.
            syn[HEADER + 12..HEADER + 16].copy_from_slice(&(number | 0x0b00_0000).to_be_bytes());
            let mut seen = read(&syn, None);
            seen.ends.source = u128::from(number);
            seen.ends.version = 4;
            match frames.keep(&syn, None, &seen) {
                Some((packet, _)) if kept.len() < 50 => kept.push(packet),
                Some((packet, _)) => frames.release(&packet),
                None => refused += 1,
            }
        }
        assert_eq!((refused, frames.len()), (0, 50));
        assert!(frames.slots.len() <= 51 && frames.flows.len() == MOST_FLOWS);
        assert!(frames.ids.len() <= MOST_FLOWS && frames.hosts.len() <= MOST_HOSTS);
        let own: std::collections::HashSet<u32> = kept.iter().map(|packet| packet.flow.0).collect();
        assert_eq!(own.len(), 50, "flows under way keep their ids");
        for packet in &kept {
            assert_eq!(frames.known[packet.flow.0 as usize].under_way, 1);
        }
        while let Some((packet, _)) = {
            let arp = [0; 42];
            frames.keep(&arp, None, &read(&arp, None))
        } {
            kept.push(packet);
        }
        assert_eq!(kept.len(), 100, "no more than there is room for");
    }

    #[test]
    fn any_bytes_can_be_read_and_kept() {
        let mut frames = Frames::default();
        let mut state = 1_u64;
        for round in 0..20_000 {
            let mut bytes = frame("[fd00::1]:80", "[fd00::2]:999", &data());
            for _ in 0..round % 5 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (state >> 33) as usize % bytes.len();
                bytes[at] = (state >> 20) as u8;
            }
            bytes.truncate((state >> 40) as usize % (bytes.len() + 1));
            let (packet, _) = keep(&mut frames, &bytes);
            frames.remark(&packet);
            assert_eq!(frames.bytes(&packet), bytes);
            frames.release(&packet);
        }
        assert_eq!(frames.len(), 0);
    }
}
