//! Users who think, transfer on a new connection, and think again.

use super::Application;
use super::compact::Draw;
use super::group::{Member, whole_bytes};
use crate::endpoint::Hosts;
use crate::observe::Observer;
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::time::{Duration, Instant};

/// The users of a group.
pub(crate) struct ClosedLoop {
    group: u32,
    users: Vec<User>,
}

struct User {
    pair: u32,
    /// Transfers begun.
    begun: u32,
    size: Draw,
    think: Draw,
}

impl ClosedLoop {
    pub(super) fn new<O: Observer>(
        hosts: &mut Hosts<'_, O>,
        group: u32,
        size: &Distribution,
        think: &Distribution,
    ) -> ClosedLoop {
        let mut users = Vec::new();
        for Member { number, pair, start } in hosts.members(group) {
            let mut think = Draw::new(think, || hosts.stream_of(group, number, "gap"));
            let at = start.saturating_add(Duration::from_secs_f64(think.sample()));
            users.push(User {
                pair,
                begun: 0,
                size: Draw::new(size, || hosts.stream_of(group, number, "size")),
                think,
            });
            hosts.act_at(group, number, at);
        }
        ClosedLoop { group, users }
    }

    fn over<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let actor = hosts.slots[slot as usize].actor;
        let think = Duration::from_secs_f64(self.users[actor as usize].think.sample());
        hosts.act_at(self.group, actor, now.saturating_add(think));
    }
}

impl Application for ClosedLoop {
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let user = &mut self.users[actor as usize];
        if hosts.has_asked_enough(self.group, actor, user.begun) {
            return;
        }
        user.begun += 1;
        let bytes = whole_bytes(user.size.sample());
        hosts.transfer(now, self.group, actor, user.pair, bytes);
    }

    fn on_message<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, _side: usize) {
        if hosts.transfer_arrived(now, slot) {
            self.over(hosts, now, slot);
        }
    }

    fn on_end<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        if hosts.transfer_ended(slot) {
            self.over(hosts, now, slot);
        }
    }

    fn on_last_event<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) -> bool {
        self.record(hosts, slot);
        true
    }

    fn finish<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        self.users.iter().map(|user| user.begun).collect()
    }
}
