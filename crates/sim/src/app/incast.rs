//! Incast: in each round the senders transfer at the same moment, or each some time after the one before, or each host so with its
//! own transfers; the next round begins when all are done. Of a round that the stop of the group cuts off the rest does not begin. Whoever asks for rounds is one user, so
//! with a limit on requests (`GroupSpec::most_requests`) the first number is that of rounds.

use super::Application;
use super::group::whole_bytes;
use crate::endpoint::Hosts;
use crate::observe::Observer;
use crate::spec::{GroupSpec, PairPolicy, Round};
use fleetfoot_core::rng::{Distribution, Sampler};
use fleetfoot_core::time::{Duration, Instant};

/// The rounds of a group.
pub(crate) struct Incast<'a> {
    group: u32,
    spec: &'a GroupSpec,
    size: Sampler,
    pause: Sampler,
    /// Transfers of a round: in all, or on each pair.
    count: u32,
    rounds: u32,
    begun: u32,
    round: Round,
    /// Transfers of this round that are not complete.
    remaining: u32,
}

impl<'a> Incast<'a> {
    pub(super) fn new<O: Observer>(
        hosts: &mut Hosts<'a, O>,
        group: u32,
        size: &Distribution,
        pause: &Distribution,
        [count, rounds]: [u32; 2],
    ) -> Incast<'a> {
        let spec = &hosts.spec.groups[group as usize];
        hosts.act_at(group, 0, Instant::ZERO + spec.start);
        Incast {
            group,
            spec,
            size: Sampler::new(size.clone(), hosts.stream(group, "size")),
            pause: Sampler::new(pause.clone(), hosts.stream(group, "gap")),
            count,
            rounds,
            begun: 0,
            round: Round::default(),
            remaining: 0,
        }
    }

    fn over<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant) {
        self.remaining -= 1;
        if self.remaining == 0 && self.begun < self.rounds {
            let pause = Duration::from_secs_f64(self.pause.sample());
            hosts.act_at(self.group, 0, now.saturating_add(pause));
        }
    }
}

impl Application for Incast<'_> {
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        if self.remaining == 0 {
            if hosts.has_asked_enough(self.group, actor, self.begun) {
                return;
            }
            self.begun += 1;
            let (group, size) = (self.group, &mut self.size);
            let pairs = hosts.groups[group as usize].routes.len() as u32;
            let each = self.spec.spread == PairPolicy::Each;
            self.remaining = if each { self.count * pairs } else { self.count };
            let transfer = |number| {
                let pair = hosts.pair_of_flow(group, number % pairs);
                (pair, whole_bytes(size.sample()))
            };
            self.round.begin(self.spec, (0..self.remaining).map(transfer));
        }
        while let Some((pair, bytes)) = self.round.next_now() {
            hosts.transfer(now, self.group, actor, pair, bytes);
        }
        if self.round.next_turn() {
            hosts.act_at(self.group, actor, now.saturating_add(self.spec.start_spacing));
        }
    }

    fn on_message<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, _side: usize) {
        if hosts.transfer_arrived(now, slot) {
            self.over(hosts, now);
        }
    }

    fn on_end<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        if hosts.transfer_ended(slot) {
            self.over(hosts, now);
        }
    }

    fn on_last_event<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) -> bool {
        self.record(hosts, slot);
        true
    }

    fn finish<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        vec![self.begun]
    }
}
