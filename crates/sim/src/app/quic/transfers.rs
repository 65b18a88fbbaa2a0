//! Transfers over QUIC by an arrival process: one connection each, opened by the data sender, as `transfer` does over TCP.
//!
//! The data is one stream. A flow record is a transfer, from the first packet of the handshake to the arrival of the last byte.

use super::{Lines, Load, Place, Quic};
use crate::app::group::{Member, whole_bytes};
use crate::app::record::happened;
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::quic::Heard;
use crate::spec;
use fleetfoot_core::rng::Sampler;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use quinn_proto::{Dir, StreamId};

/// The arrival processes of a group.
pub(crate) struct Transfers {
    size: Sampler,
    gap: Sampler,
    /// Transfers of each process at most.
    most: Option<u64>,
    processes: Vec<Process>,
    /// By number of the conversation.
    outgoing: Vec<Outgoing>,
}

struct Process {
    pair: u32,
    started: u32,
}

/// What a data sender has to write.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    stream: Option<StreamId>,
    left: u64,
}

impl Quic<Transfers> {
    pub(crate) fn transfers<O: Observer>(
        hosts: &mut Hosts<'_, O>,
        group: u32,
        spec: &spec::Quic,
    ) -> Quic<Transfers> {
        let mut gap = Sampler::new(spec.interarrival.clone(), hosts.stream(group, "gap"));
        let mut processes = Vec::new();
        for Member { number, pair, start } in hosts.processes(group) {
            processes.push(Process { pair, started: 0 });
            if spec.count != Some(0) {
                let at = start.saturating_add(Duration::from_secs_f64(gap.sample()));
                hosts.act_at(group, number, at);
            }
        }
        Quic {
            lines: Lines::new(hosts, group, 0, &spec.transport),
            load: Transfers {
                size: Sampler::new(spec.size.clone(), hosts.stream(group, "size")),
                gap,
                most: spec.count,
                processes,
                outgoing: Vec::new(),
            },
        }
    }
}

impl Transfers {
    /// Writes what the connection takes.
    fn write<O: Observer>(&mut self, lines: &mut Lines, hosts: &Hosts<'_, O>, slot: u32) {
        let number = hosts.slots[slot as usize].number;
        let outgoing = &mut self.outgoing[number as usize];
        let Some(pair) = lines.pair(hosts, slot) else {
            return;
        };
        if outgoing.stream.is_none() {
            outgoing.stream = pair.open(0, Dir::Uni);
        }
        if let Some(stream) = outgoing.stream.filter(|_| outgoing.left > 0) {
            outgoing.left -= pair.write(0, stream, outgoing.left);
        }
    }
}

impl Load for Transfers {
    fn act<O: Observer>(&mut self, lines: &mut Lines, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let process = &mut self.processes[actor as usize];
        let pair = hosts.pair_of_flow(lines.group, process.pair);
        process.started += 1;
        let more = self.most.is_none_or(|most| u64::from(process.started) < most);
        let bytes = whole_bytes(self.size.sample());
        let mut gap = Duration::from_secs_f64(self.gap.sample());
        if self.most.is_none() {
            gap = gap.max(Duration::from_nanos(1)); // time must pass
        }
        let slot = lines.open(hosts, now, actor, pair);
        let record = hosts.open_record(lines.group, pair, now, Bytes(bytes));
        let place = &mut hosts.slots[slot as usize];
        place.record = record;
        place.awaited = record != NONE;
        place.bytes = bytes;
        self.outgoing.push(Outgoing {
            stream: None,
            left: bytes,
        });
        if lines.pair(hosts, slot).is_some_and(|pair| pair.sends_early(0)) {
            self.write(lines, hosts, slot);
        }
        if more {
            hosts.act_at(lines.group, actor, now.saturating_add(gap));
        }
    }

    fn hear<O: Observer>(
        &mut self,
        lines: &mut Lines,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        place: Place,
        heard: Heard,
    ) {
        let Place { slot, side } = place;
        match heard {
            Heard::Connected | Heard::Writable(_) | Heard::Available if side == 0 => {
                self.write(lines, hosts, slot);
            }
            Heard::Stream => {
                while let Some(stream) = lines.pair(hosts, slot).and_then(|pair| pair.accept(side)) {
                    self.hear(lines, hosts, now, place, Heard::Readable(stream));
                }
            }
            Heard::Readable(stream) => {
                let (_, ended) = lines.read(hosts, now, place, stream);
                if ended {
                    hosts.slots[slot as usize].completed = now;
                }
            }
            Heard::Acknowledged(_) => {
                let conversation = &mut hosts.slots[slot as usize];
                conversation.acked = now;
                hosts.open -= u64::from(std::mem::take(&mut conversation.awaited));
                if let Some(pair) = lines.pair(hosts, slot) {
                    pair.close(now, side);
                }
            }
            Heard::Lost if side == 0 => {
                let conversation = &mut hosts.slots[slot as usize];
                hosts.open -= u64::from(std::mem::take(&mut conversation.awaited));
            }
            Heard::Connected | Heard::Writable(_) | Heard::Available | Heard::Lost => {}
        }
    }

    fn record<O: Observer>(&mut self, lines: &mut Lines, hosts: &mut Hosts<'_, O>, slot: u32) {
        let place = &hosts.slots[slot as usize];
        let (number, at) = (place.number, place.record);
        if at == NONE || lines.pairs[number as usize].is_none() {
            return;
        }
        let mut record = hosts.groups[lines.group as usize].records.edit(at);
        record.completed = happened(place.completed);
        record.acked = happened(place.acked);
        record.received = Bytes(place.ends[1].received);
        drop(record);
        lines.count(hosts, slot, at);
    }

    fn requests(&self) -> Vec<u32> {
        Vec::new()
    }
}
