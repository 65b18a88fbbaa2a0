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
    /// Of what it writes, and of the time between two writes.
    sizes: Distribution,
    gaps: Distribution,
    writers: Vec<Writer>,
}

struct Writer {
    pair: u32,
    /// From its first write until its last connection is over.
    course: Option<Box<Course>>,
}

/// What it draws, and what it has said.
struct Course {
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
            writers.push(Writer { pair, course: None });
            hosts.act_at(group, number, start);
        }
        Bursts {
            group,
            thin,
            sizes: size.clone(),
            gaps: interval.clone(),
            writers,
        }
    }

    fn dialogue_of<O>(&mut self, hosts: &Hosts<'_, O>, slot: u32) -> Option<&mut Dialogue> {
        let actor = hosts.slots[slot as usize].actor;
        let course = self.writers[actor as usize].course.as_mut();
        course.map(|course| &mut course.dialogue)
    }
}

impl Application for Bursts {
    /// The next burst.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let Writer { pair, course } = &mut self.writers[actor as usize];
        let pair = *pair;
        let Course { size, gap, dialogue } = &mut **course.get_or_insert_with(|| {
            Box::new(Course {
                size: Draw::new(&self.sizes, || hosts.stream_of(self.group, actor, "size")),
                gap: Draw::new(&self.gaps, || hosts.stream_of(self.group, actor, "gap")),
                dialogue: Dialogue::new(),
            })
        });
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
        let bytes = whole_bytes(size.sample());
        let gap = Duration::from_secs_f64(gap.sample()).max(Duration::from_nanos(1));
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
        let thin = self.thin;
        let dialogue = self.dialogue_of(hosts, slot);
        let Some(dialogue) = dialogue.filter(|dialogue| dialogue.slot == slot) else {
            // This connection was given up.
            hosts.slots[slot as usize].ends[side].goal = u64::MAX;
            return;
        };
        // Several bursts may be completed by one segment.
        while hosts.slots[slot as usize].ends[1].goal <= hosts.slots[slot as usize].ends[1].received {
            dialogue.arrived(hosts, now, slot, thin);
        }
    }

    fn on_acked<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        if let Some(dialogue) = self.dialogue_of(hosts, slot) {
            dialogue.acked(hosts, now, slot);
        } else {
            hosts.slots[slot as usize].acked_goal = u64::MAX;
        }
    }

    /// The next burst opens another connection.
    fn on_end<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, _now: Instant, slot: u32) {
        let thin = self.thin;
        if let Some(dialogue) = self.dialogue_of(hosts, slot) {
            dialogue.ended(hosts, slot, thin);
            let (actor, over) = (hosts.slots[slot as usize].actor, dialogue.slot == NONE);
            if over && !hosts.groups[self.group as usize].is_event_to_come(actor) {
                self.writers[actor as usize].course = None;
            }
        }
    }

    fn record<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) {
        hosts.record_connection(slot, self.thin);
    }

    fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        if !self.thin {
            let courses = self.writers.iter().filter_map(|writer| writer.course.as_ref());
            courses.for_each(|course| course.dialogue.finish(hosts));
        }
        Vec::new()
    }
}
