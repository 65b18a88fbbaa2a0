//! Bulk: connections that always have data. A flow record is a connection.

use super::Application;
use super::group::{ENDLESS, Member};
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::spec::GroupSpec;
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

/// The connections of a group.
pub(crate) struct Bulk<'a> {
    group: u32,
    spec: &'a GroupSpec,
    lines: Vec<Line>,
}

struct Line {
    pair: u32,
    /// Its conversation, once it is open.
    slot: Option<u32>,
}

impl<'a> Bulk<'a> {
    pub(super) fn new<O: Observer>(hosts: &mut Hosts<'a, O>, group: u32) -> Bulk<'a> {
        let members = hosts.members(group);
        for Member { number, start, .. } in &members {
            hosts.act_at(group, *number, *start);
        }
        let line = |member: Member| Line {
            pair: member.pair,
            slot: None,
        };
        Bulk {
            group,
            spec: &hosts.spec.groups[group as usize],
            lines: members.into_iter().map(line).collect(),
        }
    }
}

impl Application for Bulk<'_> {
    /// A connection opens, or closes at the end.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let line = &mut self.lines[actor as usize];
        if let Some(slot) = line.slot.replace(NONE) {
            // It may have died before.
            if slot != NONE {
                hosts.abort(now, slot);
            }
            return;
        }
        let slot = hosts.open_pair(now, self.group, actor, line.pair, Some(0));
        line.slot = Some(slot);
        // Long-lived background is reported whenever it began.
        hosts.slots[slot as usize].record = hosts.new_record(self.group, line.pair, now, Bytes::ZERO);
        hosts.write(slot, 0, ENDLESS);
        hosts.push(now, slot, 0);
        if let Some(stop) = self.spec.stop {
            hosts.push_event(self.group, actor, (Instant::ZERO + stop).max(now));
        }
    }

    fn on_end<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, _now: Instant, slot: u32) {
        let line = &mut self.lines[hosts.slots[slot as usize].actor as usize];
        if line.slot == Some(slot) {
            line.slot = Some(NONE);
        }
    }

    fn on_last_event<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) -> bool {
        let actor = hosts.slots[slot as usize].actor;
        let stays_open = !hosts.groups[self.group as usize].is_event_to_come(actor);
        if stays_open {
            self.record(hosts, slot);
        }
        stays_open
    }

    fn record<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) {
        hosts.record_connection(slot, true);
    }
}
