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
    /// Of what a connection writes, and of the time between two writes.
    sizes: Distribution,
    gaps: Distribution,
    /// By connection: its pair.
    pairs: Vec<u32>,
    /// By connection: from its first write until its last connection is over.
    courses: Vec<Option<Box<Course>>>,
}

/// What a connection draws, and what it has said.
struct Course {
    /// Sizes and gaps; `None`: both are constant.
    draws: Option<Box<[Draw; 2]>>,
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
        let mut pairs = Vec::new();
        for Member { number, pair, start } in hosts.members(group) {
            pairs.push(pair);
            hosts.act_at(group, number, start);
        }
        Bursts {
            group,
            thin,
            sizes: size.clone(),
            gaps: interval.clone(),
            courses: pairs.iter().map(|_| None).collect(),
            pairs,
        }
    }

    fn dialogue_of<O>(&mut self, hosts: &Hosts<'_, O>, slot: u32) -> Option<&mut Dialogue> {
        let actor = hosts.slots[slot as usize].actor;
        let course = self.courses[actor as usize].as_mut();
        course.map(|course| &mut course.dialogue)
    }
}

impl Application for Bursts {
    /// The next burst.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let pair = self.pairs[actor as usize];
        let constant = match (&self.sizes, &self.gaps) {
            (Distribution::Constant(size), Distribution::Constant(gap)) => Some([*size, *gap]),
            _ => None,
        };
        let Course { draws, dialogue } = &mut **self.courses[actor as usize].get_or_insert_with(|| {
            let stream = |purpose| hosts.stream_of(self.group, actor, purpose);
            let draws = || {
                Box::new([
                    Draw::new(&self.sizes, || stream("size")),
                    Draw::new(&self.gaps, || stream("gap")),
                ])
            };
            Box::new(Course {
                draws: constant.is_none().then(draws),
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
        let drawn = draws.as_mut().map(|draws| draws.each_mut().map(Draw::sample));
        let [size, gap] = drawn.or(constant).unwrap_or_default();
        let bytes = whole_bytes(size);
        let gap = Duration::from_secs_f64(gap).max(Duration::from_nanos(1));
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
                self.courses[actor as usize] = None;
            }
        }
    }

    fn on_last_event<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) -> bool {
        let actor = hosts.slots[slot as usize].actor;
        if self.thin || hosts.groups[self.group as usize].is_event_to_come(actor) {
            return false;
        }
        let course = self.courses[actor as usize].take_if(|course| course.dialogue.slot == slot);
        if let Some(course) = course {
            course.dialogue.finish(hosts, false);
        }
        true
    }

    fn record<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) {
        hosts.record_connection(slot, self.thin);
    }

    fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        let courses = self.courses.iter().flatten();
        courses.for_each(|course| course.dialogue.finish(hosts, self.thin));
        Vec::new()
    }
}
