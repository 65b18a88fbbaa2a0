//! Ethernet frames as the packets that queue disciplines know, and back.

use fleetfoot_core::flow::{FlowId, FlowKey, FlowTable, HostId};
use fleetfoot_core::packet::{BufId, Kind, Packet, Segment};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::wire;
use std::collections::HashMap;
use std::net::IpAddr;

/// Bytes of an Ethernet header without a VLAN tag.
pub(crate) const HEADER: usize = 14;

/// Frames on their way through a link, and the flows that they belong to.
#[derive(Default)]
pub(crate) struct Frames {
    slots: Vec<Slot>,
    free: Vec<u32>,
    flows: FlowTable,
    ids: HashMap<FlowKey, FlowId>,
    hosts: HashMap<IpAddr, HostId>,
    /// Frames on their way of each flow.
    under_way: Vec<u32>,
    /// The flow id that is looked at next for one that is no longer needed.
    next: u32,
}

#[derive(Default)]
struct Slot {
    bytes: Vec<u8>,
    /// How often it is still to be delivered.
    copies: u32,
    flow: u32,
    /// Time in the queue, once it has left that.
    waited: Duration,
}

impl Frames {
    /// Keeps a frame: the packet that stands for it, and the flow whose id it takes over, if that was another's.
    pub(crate) fn keep(&mut self, frame: &[u8]) -> (Packet, Option<FlowId>) {
        let (segment, key) = self.read(frame);
        let (flow, taken_over) = self.flow(key);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.bytes.clear();
        slot.bytes.extend_from_slice(frame);
        slot.copies = 1;
        slot.waited = Duration::ZERO;
        slot.flow = flow.0;
        self.under_way[flow.0 as usize] += 1;
        let packet = Packet {
            enqueued_at: Instant::ZERO,
            flow,
            buf: BufId(index),
            segment,
        };
        (packet, taken_over)
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
            self.under_way[slot.flow as usize] -= 1;
            self.free.push(packet.buf.0);
        }
    }

    /// Writes what the queue changed in the header of a packet into its bytes.
    pub(crate) fn remark(&mut self, packet: &Packet) {
        let bytes = &mut self.slots[packet.buf.0 as usize].bytes;
        let start = HEADER.min(bytes.len());
        let network = &mut bytes[start..];
        if let Some(tos) = traffic_class(network)
            && tos != packet.segment.tos
        {
            remark(network, packet.segment.tos);
        }
    }

    /// The bytes of a packet.
    pub(crate) fn bytes(&self, packet: &Packet) -> &[u8] {
        &self.slots[packet.buf.0 as usize].bytes
    }

    /// The flows seen so far.
    pub(crate) const fn flows(&self) -> &FlowTable {
        &self.flows
    }

    /// What queues look at. Frames that are no IP packets, and IP packets that cannot be read, count with their length.
    fn read(&mut self, frame: &[u8]) -> (Segment, FlowKey) {
        let network = frame.get(HEADER..).unwrap_or_default();
        let ip = match frame.get(12..HEADER) {
            Some([0x08, 0x00]) => network.first().is_some_and(|first| first >> 4 == 4),
            Some([0x86, 0xdd]) => network.first().is_some_and(|first| first >> 4 == 6),
            _ => false,
        };
        let protocol = match network.first().map(|first| first >> 4) {
            Some(4) if ip => network.get(9),
            Some(6) if ip => network.get(6),
            _ => None,
        };
        let protocol = protocol.copied().unwrap_or_default();
        if ip && let Ok(parsed) = wire::parse(network) {
            let key = FlowKey {
                source: self.host(parsed.source.ip()),
                destination: self.host(parsed.destination.ip()),
                source_port: parsed.source.port(),
                destination_port: parsed.destination.port(),
                protocol,
            };
            return (parsed.segment, key);
        }
        let mut segment = Segment {
            payload: network.len() as u32,
            ttl: 64,
            ..Segment::default()
        };
        segment.set_kind(if protocol == 1 || protocol == 58 {
            Kind::Icmp
        } else {
            Kind::Datagram
        });
        segment.tos = if ip {
            traffic_class(network).unwrap_or_default()
        } else {
            0
        };
        let (source, destination) = if ip { addresses(network) } else { None }
            .map_or((HostId(0), HostId(0)), |(source, destination)| {
                (self.host(source), self.host(destination))
            });
        let key = FlowKey {
            source,
            destination,
            source_port: 0,
            destination_port: 0,
            protocol,
        };
        (segment, key)
    }

    /// The number of a host: an IPv4 address, or an IPv6 network of 64 bits. Zero is no host.
    fn host(&mut self, address: IpAddr) -> HostId {
        let address = match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(six) => {
                let mut octets = six.octets();
                octets[8..].fill(0);
                IpAddr::from(octets)
            }
        };
        if self.hosts.len() >= MOST_HOSTS {
            self.hosts.clear(); // a scan of addresses: numbers are given anew
        }
        let next = HostId(self.hosts.len() as u32 + 1);
        *self.hosts.entry(address).or_insert(next)
    }

    /// The id of a flow, and whether it was another's before.
    fn flow(&mut self, key: FlowKey) -> (FlowId, Option<FlowId>) {
        if let Some(&flow) = self.ids.get(&key) {
            return (flow, None);
        }
        if self.flows.len() < MOST_FLOWS {
            let flow = self.flows.push(key);
            self.under_way.push(0);
            self.ids.insert(key, flow);
            return (flow, None);
        }
        // One of which nothing is under way; if there is none, one that is used by two.
        let count = self.flows.len() as u32;
        let free = (0..count)
            .map(|step| (self.next + step) % count)
            .find(|&id| self.under_way[id as usize] == 0);
        let flow = FlowId(free.unwrap_or(self.next));
        self.next = (flow.0 + 1) % count;
        self.ids.remove(&self.flows.key(flow));
        self.flows.set(flow, key);
        self.ids.insert(key, flow);
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
const MOST_FLOWS: usize = 65_536;
/// Hosts that are told apart at most.
const MOST_HOSTS: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::{Frames, HEADER};
    use fleetfoot_core::packet::{Ecn, Flags, Segment};
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
            let (packet, _) = frames.keep(&bytes);
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
            let (mut packet, _) = frames.keep(&frame(source, destination, &data()));
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
        let (there, _) = frames.keep(&frame("10.0.0.1:80", "10.0.0.2:999", &data()));
        let (back, _) = frames.keep(&frame("10.0.0.2:999", "10.0.0.1:80", &data()));
        assert_ne!(there.flow, back.flow);
        let key = frames.flows().key(there.flow);
        assert_eq!(
            (key.source_port, key.destination_port, key.protocol),
            (80, 999, 6)
        );
        frames.duplicate(&there);
        frames.release(&there);
        let (other, _) = frames.keep(&frame("10.0.0.1:80", "10.0.0.2:999", &data()));
        assert_ne!(other.buf, there.buf, "one copy of the first is still under way");
        frames.release(&there);
        let (third, _) = frames.keep(&frame("10.0.0.1:80", "10.0.0.2:999", &data()));
        assert_eq!((third.buf, third.flow), (there.buf, there.flow));
    }
}
