//! Transfers by an arrival process: one connection each, opened whether or not earlier ones are done.

use super::Application;
use super::group::{Member, whole_bytes};
use crate::endpoint::Hosts;
use crate::observe::Observer;
use fleetfoot_core::rng::{Distribution, Sampler};
use fleetfoot_core::time::{Duration, Instant};

/// The arrival processes of a group.
pub(crate) struct Transfer {
    group: u32,
    size: Sampler,
    gap: Sampler,
    /// Transfers of each process at most.
    most: Option<u64>,
    processes: Vec<Process>,
}

struct Process {
    pair: u32,
    started: u32,
}

impl Transfer {
    pub(super) fn new<O: Observer>(
        hosts: &mut Hosts<'_, O>,
        group: u32,
        size: &Distribution,
        interarrival: &Distribution,
        most: Option<u64>,
    ) -> Transfer {
        let mut gap = Sampler::new(interarrival.clone(), hosts.stream(group, "gap"));
        let mut processes = Vec::new();
        for Member { number, pair, start } in hosts.processes(group) {
            processes.push(Process { pair, started: 0 });
            if most != Some(0) {
                let at = start.saturating_add(Duration::from_secs_f64(gap.sample()));
                hosts.act_at(group, number, at);
            }
        }
        Transfer {
            group,
            size: Sampler::new(size.clone(), hosts.stream(group, "size")),
            gap,
            most,
            processes,
        }
    }
}

impl Application for Transfer {
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let process = &mut self.processes[actor as usize];
        let pair = hosts.pair_of_flow(self.group, process.pair);
        process.started += 1;
        let more = self.most.is_none_or(|most| u64::from(process.started) < most);
        let bytes = whole_bytes(self.size.sample());
        let mut gap = Duration::from_secs_f64(self.gap.sample());
        if self.most.is_none() {
            gap = gap.max(Duration::from_nanos(1)); // time must pass
        }
        hosts.transfer(now, self.group, actor, pair, bytes);
        if more {
            hosts.act_at(self.group, actor, now.saturating_add(gap));
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
