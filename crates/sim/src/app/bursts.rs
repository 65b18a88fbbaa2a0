//! Persistent connections that write bursts (`on-off`), a flow record each, and streams of small writes (`thin`), where a flow
//! record is a stream, writes have their delivery latencies and segments their ACK latencies.

use super::Application;
use super::compact::Draw;
use super::dialogue::Dialogue;
use super::group::{Member, whole_bytes};
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::tcp::Setting;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// The connections of a group.
pub(crate) struct Bursts {
    group: u32,
    /// A connection is a flow, not each burst.
    thin: bool,
    writers: Vec<Writer>,
}

struct Writer {
    pair: u32,
    size: Draw,
    gap: Draw,
    dialogue: Dialogue,
}

impl Bursts {
    pub(super) fn new<O: Observer>(
        hosts: &mut Hosts<'_, O>,
        group: u32,
        size: &Distribution,
        interval: &Distribution,
        thin: bool,
    ) -> Bursts {
        let mut writers = Vec::new();
        for Member { number, pair, start } in hosts.members(group) {
            writers.push(Writer {
                pair,
                size: Draw::new(size, || hosts.stream_of(group, number, "size")),
                gap: Draw::new(interval, || hosts.stream_of(group, number, "gap")),
                dialogue: Dialogue::new(),
            });
            hosts.act_at(group, number, start);
        }
        Bursts { group, thin, writers }
    }
}

impl Application for Bursts {
    /// The next burst.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let writer = &mut self.writers[actor as usize];
        let (pair, dialogue) = (writer.pair, &mut writer.dialogue);
        if dialogue.slot == NONE {
            dialogue.slot = hosts.open_pair(now, self.group, actor, pair, Some(0));
            if self.thin {
                let record = hosts.new_record(self.group, pair, now, Bytes::ZERO);
                let place = &mut hosts.slots[dialogue.slot as usize];
                place.record = record;
                if let Some(connection) = &mut place.ends[0].connection {
                    connection.set(now, Setting::NoteLatencies(true));
                }
            }
        }
        let slot = dialogue.slot;
        dialogue.begun += 1;
        let bytes = whole_bytes(writer.size.sample());
        let gap = Duration::from_secs_f64(writer.gap.sample()).max(Duration::from_nanos(1));
        let record = match hosts.window.contains(now) {
            true if self.thin => {
                hosts.open += 1;
                hosts.slots[slot as usize].record
            }
            _ => hosts.open_record(self.group, pair, now, Bytes(bytes)),
        };
        let [end, goal, acked_goal] = dialogue.tell(now, bytes, record);
        let next = now.saturating_add(gap);
        let last = next >= hosts.stop_of(self.group);
        let place = &mut hosts.slots[slot as usize];
        place.ends[1].goal = goal;
        place.acked_goal = acked_goal;
        place.ends[0].closing = last;
        hosts.write(slot, 0, bytes);
        hosts.stream_ends(now, slot, end);
        hosts.push(now, slot, 0);
        hosts.act_at(self.group, actor, next);
    }

    fn on_message<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        let actor = hosts.slots[slot as usize].actor;
        let dialogue = &mut self.writers[actor as usize].dialogue;
        if dialogue.slot != slot {
            // This connection was given up.
            hosts.slots[slot as usize].ends[side].goal = u64::MAX;
            return;
        }
        // Several bursts may be completed by one segment.
        while hosts.slots[slot as usize].ends[1].goal <= hosts.slots[slot as usize].ends[1].received {
            dialogue.arrived(hosts, now, slot, self.thin);
        }
    }

    fn on_acked<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let actor = hosts.slots[slot as usize].actor;
        self.writers[actor as usize].dialogue.acked(hosts, now, slot);
    }

    /// The next burst opens another connection.
    fn on_end<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, _now: Instant, slot: u32) {
        let actor = hosts.slots[slot as usize].actor;
        let dialogue = &mut self.writers[actor as usize].dialogue;
        dialogue.ended(hosts, slot, self.thin);
    }

    fn record<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) {
        hosts.record_connection(slot, self.thin);
    }

    fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        if !self.thin {
            let writers = self.writers.iter();
            writers.for_each(|writer| writer.dialogue.finish(hosts));
        }
        Vec::new()
    }
}
