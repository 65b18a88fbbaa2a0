//! Transfers that a file lists, in order of start.

use super::Application;
use crate::endpoint::Hosts;
use crate::observe::Observer;
use crate::spec::{FlowLine, GroupSpec};
use fleetfoot_core::time::Instant;
use std::collections::HashMap;

/// The list of a group.
pub(crate) struct Flows<'a> {
    group: u32,
    spec: &'a GroupSpec,
    list: &'a [FlowLine],
    /// Pair of each line.
    pairs: Vec<u32>,
    /// Transfers started.
    started: usize,
}

impl<'a> Flows<'a> {
    pub(super) fn new<O: Observer>(hosts: &mut Hosts<'a, O>, group: u32, list: &'a [FlowLine]) -> Flows<'a> {
        let spec = &hosts.spec.groups[group as usize];
        let routes = &hosts.groups[group as usize].routes;
        let known: HashMap<_, _> = routes.iter().map(|route| route.hosts).zip(0..).collect();
        let pair = |line: &FlowLine| known[&[line.source, line.destination]];
        let pairs = list.iter().map(pair).collect();
        if let Some(line) = list.first() {
            hosts.act_at(group, 0, (Instant::ZERO + spec.start).saturating_add(line.start));
        }
        Flows {
            group,
            spec,
            list,
            pairs,
            started: 0,
        }
    }
}

impl Application for Flows<'_> {
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        while let Some(line) = self.list.get(self.started) {
            let at = Instant::ZERO + self.spec.start + line.start;
            if at > now {
                hosts.act_at(self.group, actor, at);
                return;
            }
            hosts.transfer(now, self.group, actor, self.pairs[self.started], line.bytes.get());
            self.started += 1;
        }
    }

    fn on_message<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, _side: usize) {
        hosts.transfer_arrived(now, slot);
    }

    fn on_end<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, _now: Instant, slot: u32) {
        hosts.transfer_ended(slot);
    }

    fn on_last_event<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) -> bool {
        self.record(hosts, slot);
        true
    }
}
