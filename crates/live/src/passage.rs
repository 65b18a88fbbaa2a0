//! One direction between two interfaces in which packets are grouped into super-packets and marked, or merely pass.
//!
//! The grouping is [`Marker`] of `fleetfoot-core`, over the times at which the kernel received the frames: how late this program
//! looks changes when a group leaves, not what it is made of. Every frame leaves, in its flow's order, and each is counted once: as
//! marked, or with the reason why not.
//!
//! **Source.** docs/design/super-packets.md#marker, #outsiders and #class.

use crate::emulator::{Emulator, Way};
use crate::frames::{self, Frames, Seen};
use crate::outlet::{Measured, Outlet};
use crate::packet_socket::{Refusal, Sent};
use crate::{Clock, Error, Event, Tap};
use fleetfoot_core::flow::FlowKey;
use fleetfoot_core::packet::{Flags, Kind, Packet};
use fleetfoot_core::superpacket::group::Declare;
use fleetfoot_core::superpacket::marker::{Marker, Marking, Obstacle, Released, obstacle};
use fleetfoot_core::superpacket::{Layout, Role};
use fleetfoot_core::time::Instant;
use fleetfoot_core::wire;
use fleetfoot_sim::output::Histogram;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;

/// Which packets are marked, and how.
#[derive(Clone, Debug)]
pub struct MarkRules {
    /// How they are grouped.
    pub marking: Marking,
    /// Where marks stand in IPv4, layout A or B; `None`: IPv4 is not marked.
    pub four: Option<Layout>,
    /// Where marks stand in IPv6, layout C; `None`: IPv6 is not marked.
    pub six: Option<Layout>,
    /// UDP is marked like TCP.
    pub udp: bool,
    /// Only packets with one of these ports, at either end; all if there is none.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Only packets to one of these networks; all if there is none.
    pub networks: Vec<Network>,
    /// MTU of the interface at which packets leave: an option that layout C adds must fit.
    pub mtu: u32,
    /// Identifiers are drawn from it; not to be guessed on a real network.
    pub seed: u64,
    /// Ports of flows whose marks do not say how long a super-packet is but this: senders that lie, for experiments.
    pub lies: Vec<(RangeInclusive<u16>, Declare)>,
}

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// One of the addresses.
    pub address: IpAddr,
    /// How many bits they have in common.
    pub prefix: u8,
}

/// One direction of a bump in the wire.
pub struct Passage {
    outlet: Outlet,
    /// Up to when everything that arrived is known.
    known: Instant,
    what: What,
    marked: Marked,
}

enum What {
    /// Frames pass as they come.
    Passes(VecDeque<Packet>),
    Marks(Box<Marks>),
}

struct Marks {
    rules: MarkRules,
    marker: Marker,
}

/// What a passage has marked.
#[derive(Clone, Debug)]
pub struct Marked {
    /// Super-packets by their length.
    pub groups: [u64; 256],
    /// Members of super-packets.
    pub packets: u64,
    /// Packets that were not marked, by reason.
    pub unmarked: [u64; Unmarked::ALL.len()],
    /// How long each data packet that could be a member was held, nanoseconds, by the times at which packets came.
    pub held: Histogram,
    /// Packets held at most at one moment.
    pub most_held: usize,
}

/// Why a packet was not marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmarked {
    /// It carries no data, or opens or aborts a connection.
    NoData,
    /// Nothing of its flow came within the time that it was held.
    Alone,
    /// Its ports or its destination are not among those that are to be marked.
    NotSelected,
    /// Its transport is not one that is to be marked.
    Protocol,
    /// No layout was given for its version of IP.
    Family,
    /// It carries a mark already.
    Marked,
    /// It may be fragmented, so its identification is taken.
    Fragmentable,
    /// It is a fragment.
    Fragment,
    /// Its traffic class has a meaning that the mark would overwrite.
    TrafficClass,
    /// It carries urgent data, which layout C has no place beside.
    Urgent,
    /// It has IPv6 extension headers of its own.
    Headers,
    /// It would be longer than the MTU with the option of layout C.
    Room,
    /// A checksum is wrong, or was left to a device.
    Checksum,
    /// Its headers contradict themselves or its length.
    Malformed,
    /// It is no IP packet.
    NotIp,
}

impl Unmarked {
    /// All of them.
    pub const ALL: [Unmarked; 15] = [
        Unmarked::NoData,
        Unmarked::Alone,
        Unmarked::NotSelected,
        Unmarked::Protocol,
        Unmarked::Family,
        Unmarked::Marked,
        Unmarked::Fragmentable,
        Unmarked::Fragment,
        Unmarked::TrafficClass,
        Unmarked::Urgent,
        Unmarked::Headers,
        Unmarked::Room,
        Unmarked::Checksum,
        Unmarked::Malformed,
        Unmarked::NotIp,
    ];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Unmarked::NoData => "no_data",
            Unmarked::Alone => "alone",
            Unmarked::NotSelected => "not_selected",
            Unmarked::Protocol => "protocol",
            Unmarked::Family => "family",
            Unmarked::Marked => "already_marked",
            Unmarked::Fragmentable => "fragmentable",
            Unmarked::Fragment => "fragment",
            Unmarked::TrafficClass => "traffic_class",
            Unmarked::Urgent => "urgent",
            Unmarked::Headers => "extension_headers",
            Unmarked::Room => "no_room",
            Unmarked::Checksum => "checksum",
            Unmarked::Malformed => "malformed",
            Unmarked::NotIp => "not_ip",
        }
    }
}

impl From<Obstacle> for Unmarked {
    fn from(obstacle: Obstacle) -> Unmarked {
        match obstacle {
            Obstacle::Marked => Unmarked::Marked,
            Obstacle::Fragmentable => Unmarked::Fragmentable,
            Obstacle::TrafficClass => Unmarked::TrafficClass,
            Obstacle::Urgent => Unmarked::Urgent,
        }
    }
}

impl Network {
    /// Whether `address` is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        let alike = |own: u128, other: u128, bits: u32| {
            let rest = bits.saturating_sub(u32::from(self.prefix));
            rest >= 128 || own >> rest == other >> rest
        };
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                alike(own.to_bits().into(), other.to_bits().into(), u32::BITS)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => alike(own.to_bits(), other.to_bits(), u128::BITS),
            _ => false,
        }
    }
}

impl Network {
    /// Whether `address` stands for all hosts of this network, or for the network (RFC 1812 4.2.2.11). Networks of one or two hosts have no
    /// such addresses (RFC 3021), and neither has IPv6.
    pub(crate) fn is_broadcast(&self, address: IpAddr) -> bool {
        let IpAddr::V4(four) = address else { return false };
        let hosts = u32::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
        (1..31).contains(&self.prefix)
            && self.contains(address)
            && [0, hosts].contains(&(four.to_bits() & hosts))
    }
}

impl MarkRules {
    /// Where the mark of a frame stands, or why it gets none.
    fn layout(&self, frame: &[u8], key: FlowKey, seen: &Seen) -> Result<Layout, Unmarked> {
        let network = frame.get(seen.network..).unwrap_or_default();
        let read = match (seen.ends.version, seen.problem) {
            (0, None) => return Err(Unmarked::NotIp),
            (_, Some(problem)) => Err(problem),
            // Its payload too: what the receiver will throw away is in no group.
            (_, None) => wire::parse(network).map(|_| ()),
        };
        read.map_err(|error| match error {
            wire::Error::Protocol => Unmarked::Protocol,
            wire::Error::Fragment => Unmarked::Fragment,
            wire::Error::Checksum => Unmarked::Checksum,
            _ => Unmarked::Malformed,
        })?;
        let segment = &seen.segment;
        if segment.kind() != Kind::Tcp && !self.udp {
            return Err(Unmarked::Protocol);
        }
        if !self.selects(key, seen) {
            return Err(Unmarked::NotSelected);
        }
        let six = network.first().is_some_and(|first| first >> 4 == 6);
        let layout = if six { self.six } else { self.four };
        let layout = layout.ok_or(Unmarked::Family)?;
        if let Some(obstacle) = obstacle(layout, segment) {
            return Err(obstacle.into());
        }
        if six && network.get(6).is_none_or(|&next| next != TCP && next != UDP) {
            return Err(Unmarked::Headers);
        }
        if network.len() + usize::from(layout.overhead()) > self.mtu as usize {
            return Err(Unmarked::Room);
        }
        Ok(layout)
    }

    /// What the marks of a flow say of the lengths of its super-packets.
    fn declare(&self, key: FlowKey) -> Declare {
        let of = |(ports, _): &&(RangeInclusive<u16>, Declare)| {
            ports.contains(&key.source_port) || ports.contains(&key.destination_port)
        };
        self.lies
            .iter()
            .find(of)
            .map_or(Declare::Truth, |(_, declare)| *declare)
    }

    fn selects(&self, key: FlowKey, seen: &Seen) -> bool {
        let chosen = |port| self.ports.iter().any(|range| range.contains(&port));
        let port = self.ports.is_empty() || chosen(key.source_port) || chosen(key.destination_port);
        let to = |destination| self.networks.iter().any(|network| network.contains(destination));
        port && (self.networks.is_empty() || seen.ends.address(seen.ends.destination).is_some_and(to))
    }
}

impl Passage {
    /// Frames are marked as `rules` say.
    pub fn marking(rules: MarkRules) -> Passage {
        let marker = Marker::new(rules.marking, rules.seed);
        let marks = What::Marks(Box::new(Marks { rules, marker }));
        Passage::new(marks)
    }

    /// Frames pass as they come.
    pub fn plain() -> Passage {
        Passage::new(What::Passes(VecDeque::new()))
    }

    fn new(what: What) -> Passage {
        Passage {
            outlet: Outlet::new(Frames::default()),
            known: Instant::ZERO,
            what,
            marked: Marked {
                groups: [0; 256],
                packets: 0,
                unmarked: [0; Unmarked::ALL.len()],
                held: Histogram::new(),
                most_held: 0,
            },
        }
    }

    /// Shows every frame to `tap` from now on: when it entered, by the time that its group was made by, and when it left.
    pub fn observe(&mut self, tap: Tap) {
        self.outlet.tap = Some(tap);
    }

    /// What frames went through; their lateness is how much later they left than a program would have let them that is never late.
    pub const fn measured(&self) -> &Measured {
        &self.outlet.measured
    }

    /// What was marked, and what was not.
    pub const fn marked(&self) -> &Marked {
        &self.marked
    }

    /// Takes a batch of frames that are due: false if there are none.
    fn collect(&mut self) -> bool {
        match &mut self.what {
            What::Passes(packets) => {
                while !self.outlet.is_full()
                    && let Some(packet) = packets.pop_front()
                {
                    self.outlet.push(packet, packet.enqueued_at);
                }
            }
            What::Marks(marks) => {
                marks.marker.on_timeout(self.known);
                while !self.outlet.is_full()
                    && let Some(released) = marks.marker.poll_packet()
                {
                    self.marked.count(&released, &mut self.outlet.frames);
                    self.outlet.push(released.packet, released.at);
                }
            }
        }
        !self.outlet.is_empty()
    }
}

impl Way for Passage {
    fn work(emulator: &mut Emulator<Self>, clock: &Clock, stop: BorrowedFd<'_>) -> Result<(), Error> {
        emulator.work(clock, stop)
    }

    fn start(&mut self, clock: &Clock) {
        self.outlet.start(clock);
    }

    fn on_frame(&mut self, at: Instant, frame: &[u8]) {
        self.known = self.known.max(at);
        let now = self.known;
        self.outlet.measured.arrived += 1;
        let marks = match &mut self.what {
            What::Passes(packets) => {
                let Some(mut packet) = self.outlet.frames.keep_unread(frame) else {
                    return;
                };
                packet.enqueued_at = now;
                self.outlet.report(now, Event::Entered, &packet);
                packets.push_back(packet);
                return;
            }
            What::Marks(marks) => marks,
        };
        let seen = frames::read(frame, None);
        let Some((packet, taken_over)) = self.outlet.frames.keep(frame, None, &seen) else {
            return;
        };
        self.outlet.report(now, Event::Entered, &packet);
        if marks.marker.held() >= MOST_HELD {
            marks.marker.release_all(now);
        }
        if let Some(flow) = taken_over {
            marks.marker.on_flow_end(now, flow);
        }
        let key = self.outlet.frames.flows().key(packet.flow);
        let layout = marks.rules.layout(frame, key, &seen);
        if let Err(reason) = layout {
            self.marked.unmarked[reason as usize] += 1;
            // What cannot be read may belong to any flow.
            if matches!(
                reason,
                Unmarked::Fragment | Unmarked::Checksum | Unmarked::Malformed
            ) {
                marks.marker.release_all(now);
            }
        }
        let declare = marks.rules.declare(key);
        marks.marker.on_packet_of(now, packet, layout.ok(), declare);
        self.marked.most_held = self.marked.most_held.max(marks.marker.held());
    }

    fn on_cut(&mut self) {
        self.outlet.measured.refused[Refusal::TooLong as usize] += 1;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.what {
            What::Passes(_) => None,
            What::Marks(marks) => marks.marker.poll_timeout(),
        }
    }

    fn poll_frames<E>(
        &mut self,
        until: Instant,
        now: impl Fn() -> Instant,
        mut send: impl FnMut(&[IoSlice<'_>]) -> Result<Sent, E>,
    ) -> Result<(), E> {
        self.known = self.known.max(until);
        while self.collect() {
            self.outlet.send(&now, &mut send)?;
        }
        Ok(())
    }

    /// What is held leaves.
    fn end(&mut self) {
        if let What::Marks(marks) = &mut self.what {
            marks.marker.release_all(self.known);
        }
    }
}

impl Marked {
    /// Packets that were not marked, for whatever reason.
    pub fn unmarked_packets(&self) -> u64 {
        self.unmarked.iter().sum()
    }

    /// Counts a packet that leaves, and writes its mark into its bytes.
    fn count(&mut self, released: &Released, frames: &mut Frames) {
        let Released {
            packet,
            mark,
            layout,
            group,
            ..
        } = released;
        frames.departed(packet, released.held());
        // What could not be a member was counted when it came.
        let Some(layout) = *layout else { return };
        let segment = &packet.segment;
        let carries = segment.payload > 0 || segment.flags.contains(Flags::FIN);
        if segment.flags.intersects(Flags::SYN.with(Flags::RST)) || !carries {
            self.unmarked[Unmarked::NoData as usize] += 1;
            return;
        }
        self.held.record(released.held().as_nanos());
        if mark.is_regular() {
            self.unmarked[Unmarked::Alone as usize] += 1;
            return;
        }
        // The rules let no packet be a member that has no place for its mark.
        if !frames.mark(packet, layout) {
            self.unmarked[Unmarked::Room as usize] += 1;
            return;
        }
        self.packets += 1;
        // Not what the mark says, which may be a lie: of a sender that lies a FIN alone is marked, too, whose group has no data.
        self.groups[usize::from(*group).max(1)] += u64::from(mark.role == Role::First);
    }
}

/// Protocol numbers (RFC 9293, RFC 768).
const TCP: u8 = 6;
const UDP: u8 = 17;
/// When so many packets are held, all of them leave.
const MOST_HELD: usize = 16_384;

#[cfg(test)]
mod tests;
