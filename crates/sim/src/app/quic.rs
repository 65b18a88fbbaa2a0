//! Traffic over QUIC: connections as conversations of datagrams, and how packets and timers reach their ends.
//!
//! A conversation has two ends of `quinn-proto`; what is done with the connection is a [`Load`]: transfers or pages. The slot of a
//! conversation is free when both ends are over: the one that closed waits for stragglers as RFC 9000 10.2 says. What
//! the network does to a packet is not asked.

use super::Application;
use super::datagrams::datagram;
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::quic::{Datagrams, Heard, Pair, Prepared};
use crate::spec::QuicTransport;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::tcp::Stats;
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

mod pages;
mod transfers;

pub(crate) use pages::Pages;
pub(crate) use transfers::Transfers;

/// A group whose connections do what `L` says.
pub(crate) struct Quic<L> {
    lines: Lines,
    load: L,
}

/// What the connections of a group are used for.
pub(crate) trait Load {
    /// The event of an actor is due.
    fn act<O: Observer>(&mut self, lines: &mut Lines, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant);

    /// Something happened at an end of a connection.
    fn hear<O: Observer>(
        &mut self,
        lines: &mut Lines,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        place: Place,
        heard: Heard,
    );

    /// A conversation or the run is over: its flow record is filled.
    fn record<O: Observer>(&mut self, lines: &mut Lines, hosts: &mut Hosts<'_, O>, slot: u32);

    /// Requests of each user of a closed loop.
    fn requests(&self) -> Vec<u32>;
}

/// An end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) slot: u32,
    pub(crate) side: usize,
}

/// The connections of a group.
pub(crate) struct Lines {
    group: u32,
    /// The end that opens.
    client: usize,
    prepared: Prepared,
    datagrams: Datagrams,
    /// By number of the conversation, while it lasts.
    pairs: Vec<Option<Box<Pair>>>,
    /// Ends at which something was done.
    touched: Vec<Place>,
}

impl Lines {
    fn new<O: Observer>(hosts: &Hosts<'_, O>, group: u32, client: usize, transport: &QuicTransport) -> Lines {
        let name = &hosts.spec.groups[group as usize].name;
        let seed = Rng::for_element(hosts.spec.seed, name, "controller").next_u64();
        Lines {
            group,
            client,
            prepared: Prepared::new(transport, seed),
            datagrams: Datagrams::default(),
            pairs: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Opens a connection between the hosts of a pair; its slot.
    fn open<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32, pair: u32) -> u32 {
        let slot = hosts.open_pair(now, self.group, actor, pair, None);
        let number = hosts.slots[slot as usize].number;
        debug_assert_eq!(number as usize, self.pairs.len(), "numbered in order");
        let name = &hosts.spec.groups[self.group as usize].name;
        let mut rng = Rng::for_element(hosts.spec.seed, &format!("{name}/{number}"), "quic");
        let connection = Pair::connect(now, &self.prepared, self.client, &mut rng);
        self.pairs.push(Some(Box::new(connection)));
        self.touch(Place {
            slot,
            side: self.client,
        });
        slot
    }

    /// The connection of a conversation, while it lasts.
    fn pair<O>(&mut self, hosts: &Hosts<'_, O>, slot: u32) -> Option<&mut Pair> {
        let number = hosts.slots[slot as usize].number;
        self.pairs.get_mut(number as usize)?.as_deref_mut()
    }

    /// Something was done at an end: it may have to send.
    fn touch(&mut self, place: Place) {
        self.touched.push(place);
    }

    /// Reads what is there of a stream, at the receiver of the data as goodput. Bytes, and whether the stream has ended.
    fn read<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        place: Place,
        stream: quinn_proto::StreamId,
    ) -> (u64, bool) {
        let Some(pair) = self.pair(hosts, place.slot) else {
            return (0, false);
        };
        let (bytes, ended) = pair.read(place.side, stream);
        if place.side == 1 && bytes > 0 {
            let slot = &mut hosts.slots[place.slot as usize];
            let before = slot.ends[1].received;
            slot.ends[1].received += bytes;
            let data = FlowId(2 * place.slot);
            hosts.observer.on_receive(now, data, before..before + bytes);
            if hosts.window.contains(now) {
                let group = &mut hosts.groups[self.group as usize];
                group.goodput += Bytes(bytes);
                group.goodput_per_connection[slot.number as usize] += Bytes(bytes);
            }
        }
        (bytes, ended)
    }

    /// Lets an end send what it may, and arms its timer. Whether both ends are over.
    fn leave<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, place: Place) -> bool {
        let number = hosts.slots[place.slot as usize].number;
        let Some(Some(pair)) = self.pairs.get_mut(number as usize) else {
            return false;
        };
        let datagrams = &mut self.datagrams;
        while pair.poll_transmit(now, place.side, |leaving| {
            let number = datagrams.insert(leaving.bytes);
            let mut segment = datagram(now, number, leaving.bytes.len() as u32, number);
            segment.set_ecn(leaving.ecn);
            hosts.send_from(now, place.slot, place.side, segment);
        }) {}
        let wanted = pair.poll_timeout(place.side).unwrap_or(Instant::FAR_FUTURE);
        let over = pair.is_over(place.side);
        // An end that was never reached has nothing to wait for when its peer has gone.
        let all_over = pair.is_over(0) && pair.is_over(1);
        hosts.slots[place.slot as usize].ends[place.side].closed = over;
        hosts.arm(
            now,
            place.slot,
            place.side,
            if over {
                Instant::FAR_FUTURE
            } else {
                wanted.max(now)
            },
        );
        all_over
    }

    /// Adds what a connection's data sender has counted to the record of a flow.
    fn count<O>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32, record: u32) {
        let Some((counted, least)) = self.pair(hosts, slot).and_then(|pair| pair.counted(0)) else {
            return;
        };
        if record == NONE {
            return;
        }
        let mut record = hosts.groups[self.group as usize].records.edit(record);
        record.add(&Stats {
            bytes_sent: counted.udp_tx.bytes,
            segments_sent: counted.udp_tx.datagrams,
            retransmits: counted.path.lost_packets as u32,
            congestion_events: counted.path.congestion_events as u32,
            ..Stats::default()
        });
        record.min_rtt = record.min_rtt.into_iter().chain([least]).min();
    }
}

impl<L: Load> Quic<L> {
    /// Drives the ends at which something was done, until nothing is left to do.
    fn settle<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant) {
        while let Some(place) = self.lines.touched.pop() {
            while let Some(heard) = self
                .lines
                .pair(hosts, place.slot)
                .and_then(|pair| pair.poll(place.side))
            {
                self.load.hear(&mut self.lines, hosts, now, place, heard);
            }
            let over = self.lines.leave(hosts, now, place);
            if over && hosts.is_over(place.slot) {
                self.record(hosts, place.slot);
                hosts.free(now, place.slot);
            }
        }
    }
}

impl<L: Load> Application for Quic<L> {
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        self.load.act(&mut self.lines, hosts, actor, now);
        self.settle(hosts, now);
    }

    fn on_packet<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        side: usize,
        segment: &Segment,
    ) {
        let bytes = self.lines.datagrams.take(segment.options[2]);
        if let Some(pair) = self.lines.pair(hosts, slot) {
            pair.receive(now, side, segment.ecn(), bytes);
            self.lines.touch(Place { slot, side });
            self.settle(hosts, now);
        }
    }

    fn on_datagram_lost<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>, segment: &Segment) {
        self.lines.datagrams.take(segment.options[2]);
    }

    fn on_datagram_doubled<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>, segment: &Segment) {
        self.lines.datagrams.double(segment.options[2]);
    }

    fn on_timer<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        if let Some(pair) = self.lines.pair(hosts, slot) {
            pair.on_timeout(now, side);
            self.lines.touch(Place { slot, side });
            self.settle(hosts, now);
        }
    }

    fn record<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) {
        self.load.record(&mut self.lines, hosts, slot);
        let number = hosts.slots[slot as usize].number;
        if let Some(pair) = self.lines.pairs.get_mut(number as usize) {
            *pair = None;
        }
    }

    fn finish<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        self.load.requests()
    }
}
