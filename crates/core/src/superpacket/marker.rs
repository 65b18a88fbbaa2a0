//! Marking at an interface: the packets of many flows, grouped flow by flow on their way out.
//!
//! A [`Marker`] has a [`Grouper`] for each flow and one queue of packets that may leave. It is what `fleetfoot mark` runs for
//! hosts that know nothing of super-packets; the groups are cut by the same code as those of the simulator's hosts. Which
//! packets can carry a mark at all says [`obstacle`]; the others leave at once, behind what is held of their flow.
//!
//! **Source.** Schinazi, UCB/EECS-2014-80 (2014), 3.1 and 4; docs/design/super-packets.md#marker and #bound; RFC 6864 4 (identification),
//! RFC 2474 6 (codepoints), RFC 3168 5 (the ECN field).
//! **Deviations.** Those of the grouping ([`group`](super::group)). A packet whose traffic class has a meaning of its own is not marked, while a
//! simulated host marks it: layouts A and B would overwrite that class.
//!
//! Time may be what a clock shows or what stamps of packets say: all that happens depends on the times at which packets came,
//! not on when a driver looks.

use super::group::{Declare, Grouper, Grouping, Mode};
use super::{Layout, Mark};
use crate::flow::FlowId;
use crate::packet::{Flags, Kind, Packet, Segment};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

/// How packets of hosts are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marking {
    /// A group is complete when nothing came for this long: T_buffer.
    pub t_buffer: Duration,
    /// Longest time that a packet is held.
    pub hold: Duration,
    /// Most packets of a group; a layout may allow fewer.
    pub max: u8,
    /// A segment with PSH, which ends what a program wrote at once, completes its group.
    pub by_write: bool,
}

/// Groups and marks the packets of many flows.
#[derive(Clone, Debug)]
pub struct Marker {
    marking: Marking,
    /// The groupers of flows that have sent data, by flow.
    groupers: Vec<Option<Grouper<Member>>>,
    /// When to look at a flow again: one entry for each flow that holds packets, not later than its deadline.
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Whether a flow has an entry there.
    armed: Vec<bool>,
    released: VecDeque<Released>,
    /// Packets that wait for their group to be complete.
    held: usize,
    random: Rng,
}

/// A packet with the layout that its mark is written in.
#[derive(Clone, Copy, Debug)]
struct Member {
    packet: Packet,
    layout: Option<Layout>,
}

impl AsRef<Segment> for Member {
    fn as_ref(&self) -> &Segment {
        &self.packet.segment
    }
}

impl AsMut<Segment> for Member {
    fn as_mut(&mut self) -> &mut Segment {
        &mut self.packet.segment
    }
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// The packet with its mark; `enqueued_at` is when it came.
    pub packet: Packet,
    /// Its mark; regular where nothing was written into it.
    pub mark: Mark,
    /// Where a mark would stand; `None`: the packet could not be a member.
    pub layout: Option<Layout>,
    /// Packets of the group that begins with it, 1 if it is alone; 0 if it begins none.
    pub group: u8,
    /// When it was to leave.
    pub at: Instant,
}

impl Released {
    const fn regular(packet: Packet, layout: Option<Layout>, at: Instant) -> Released {
        Released {
            packet,
            mark: Mark::REGULAR,
            layout,
            group: 0,
            at,
        }
    }

    /// How long it was held.
    pub const fn held(&self) -> Duration {
        self.at.since(self.packet.enqueued_at)
    }
}

/// Why a packet cannot be a member of a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Obstacle {
    /// The packet carries a mark already.
    Marked,
    /// The packet may be fragmented, so its identification field is in use (RFC 6864).
    Fragmentable,
    /// The traffic class of the packet has a meaning that the mark would overwrite; with layout A also its ECN field.
    TrafficClass,
    /// The packet carries urgent data.
    Urgent,
}

impl Obstacle {
    /// All of them.
    pub const ALL: [Obstacle; 4] = [
        Obstacle::Marked,
        Obstacle::Fragmentable,
        Obstacle::TrafficClass,
        Obstacle::Urgent,
    ];
}

/// What keeps `layout` from marking a packet. Nothing: then [`Layout::mark`] succeeds for every length and identifier that the
/// layout can say, and no bit is overwritten that means something to somebody else.
pub const fn obstacle(layout: Layout, segment: &Segment) -> Option<Obstacle> {
    let atomic = segment.flags.contains(Flags::DF);
    match layout {
        Layout::A if segment.tos != 0 => return Some(Obstacle::TrafficClass),
        // The codepoint is there for marks alone, whatever the identification says.
        Layout::B { dscp } if segment.tos >> 2 == dscp => return Some(Obstacle::Marked),
        Layout::B { .. } if segment.tos >> 2 != 0 => return Some(Obstacle::TrafficClass),
        Layout::C if Layout::has_option(segment) => return Some(Obstacle::Marked),
        Layout::C if segment.urgent_in_use() => return Some(Obstacle::Urgent),
        Layout::C => return None,
        Layout::A | Layout::B { .. } => {}
    }
    if atomic {
        None
    } else {
        Some(Obstacle::Fragmentable)
    }
}

impl Marker {
    /// Holds nothing yet. `seed`: identifiers are drawn from it, and must not be guessed on a real network.
    pub fn new(marking: Marking, seed: u64) -> Marker {
        Marker {
            marking,
            groupers: Vec::new(),
            timers: BinaryHeap::new(),
            armed: Vec::new(),
            released: VecDeque::new(),
            held: 0,
            random: Rng::from_seed(seed),
        }
    }

    /// A packet is to leave. `layout`: where its mark would stand; `None`: it carries none, and what is held of its flow leaves
    /// before it, but not before a pure ACK. Packets of a flow have the same layout.
    pub fn on_packet(&mut self, now: Instant, packet: Packet, layout: Option<Layout>) {
        self.on_packet_of(now, packet, layout, Declare::Truth);
    }

    /// As [`Marker::on_packet`], for a flow whose marks say `declare` of the lengths of its groups: a sender that lies, for experiments.
    /// The first data packet of a flow settles it.
    pub fn on_packet_of(&mut self, now: Instant, packet: Packet, layout: Option<Layout>, declare: Declare) {
        self.on_timeout(now);
        let index = packet.flow.0 as usize;
        let packet = Packet {
            enqueued_at: now,
            ..packet
        };
        let Segment { payload, flags, .. } = packet.segment;
        let tcp = packet.segment.kind() == Kind::Tcp;
        // docs/design/super-packets.md#control
        let alone = flags.intersects(Flags::SYN.with(Flags::RST)) || payload == 0 && !tcp;
        let pure_ack = payload == 0 && tcp && !flags.contains(Flags::FIN) && !alone;
        let given = layout;
        let layout = given.filter(|_| !alone);
        let member = Member {
            packet,
            layout: given,
        };
        match (self.grouper(index), layout) {
            (Some(grouper), layout) if layout.is_some() || pure_ack => grouper.on_packet(now, member),
            (Some(grouper), _) => grouper.on_outsider(member),
            (None, Some(layout)) if !pure_ack => self.begin(index, layout, declare).on_packet(now, member),
            (None, _) => {
                // Flows without data have no state.
                self.released.push_back(Released::regular(packet, given, now));
                return;
            }
        }
        self.held += 1;
        if self.marking.by_write
            && flags.contains(Flags::PSH)
            && let Some(grouper) = self.grouper(index)
        {
            grouper.end_of_burst();
        }
        self.drain(index, now);
    }

    /// From now on a flow's number is another flow's.
    pub fn on_flow_end(&mut self, now: Instant, flow: FlowId) {
        let index = flow.0 as usize;
        if let Some(grouper) = self.grouper(index) {
            grouper.end_of_burst();
            self.drain(index, now);
            self.groupers[index] = None;
        }
    }

    /// Lets everything go: a packet comes whose flow is not known, and must not overtake.
    pub fn release_all(&mut self, now: Instant) {
        self.on_timeout(now);
        while let Some(Reverse((_, flow))) = self.timers.pop() {
            let index = flow as usize;
            self.armed[index] = false;
            if let Some(grouper) = self.grouper(index) {
                grouper.end_of_burst();
                self.drain(index, now);
            }
        }
    }

    /// When [`Marker::on_timeout`] may have something to do; `None`: nothing is held.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Completes the groups whose time has come, each at its own time.
    pub fn on_timeout(&mut self, now: Instant) {
        while let Some(&Reverse((at, flow))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            let index = flow as usize;
            self.armed[index] = false;
            let deadline = self.grouper(index).and_then(|grouper| grouper.poll_timeout());
            match deadline {
                // More packets have come since, or the group was complete and another is being collected.
                Some(deadline) if deadline > at => self.arm(index, deadline),
                Some(_) => self.drain(index, at),
                None => {}
            }
        }
    }

    /// The next packet that leaves.
    pub fn poll_packet(&mut self) -> Option<Released> {
        self.released.pop_front()
    }

    /// Packets that wait for their groups to be complete.
    pub const fn held(&self) -> usize {
        self.held
    }

    fn grouper(&mut self, index: usize) -> Option<&mut Grouper<Member>> {
        self.groupers.get_mut(index)?.as_mut()
    }

    /// A flow sends its first data.
    fn begin(&mut self, index: usize, layout: Layout, declare: Declare) -> &mut Grouper<Member> {
        if self.groupers.len() <= index {
            self.groupers.resize_with(index + 1, || None);
            self.armed.resize(index + 1, false);
        }
        let grouping = Grouping {
            mode: Mode::BoundedTimer {
                t_buffer: self.marking.t_buffer,
                hold: self.marking.hold,
            },
            layout,
            max: self.marking.max,
            declare,
        };
        let random = Rng::from_seed(self.random.next_u64());
        self.groupers[index].insert(Grouper::new(grouping, random))
    }

    /// Takes from a flow what may leave, and sees to it that the rest is looked at in time.
    fn drain(&mut self, index: usize, now: Instant) {
        let Some(grouper) = self.groupers.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        while let Some(outgoing) = grouper.poll_transmit(now) {
            let Member { packet, layout } = outgoing.packet;
            self.held -= 1;
            self.released.push_back(Released {
                packet,
                mark: layout.map_or(Mark::REGULAR, |layout| layout.decode(&packet.segment)),
                layout,
                group: outgoing.group,
                at: now,
            });
        }
        let deadline = grouper.poll_timeout();
        if let Some(deadline) = deadline.filter(|_| !self.armed[index]) {
            self.arm(index, deadline);
        }
    }

    fn arm(&mut self, index: usize, deadline: Instant) {
        self.armed[index] = true;
        self.timers.push(Reverse((deadline, index as u32)));
    }
}

#[cfg(test)]
mod tests;
