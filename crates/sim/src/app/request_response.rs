//! Persistent connections with requests and responses: request, response, think, repeat. A flow record is one exchange.

use super::Application;
use super::compact::Draw;
use super::dialogue::Dialogue;
use super::group::{Member, whole_bytes};
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// The clients of a group.
pub(crate) struct RequestResponse {
    group: u32,
    /// Exchanges of a connection at most.
    exchanges: Option<u32>,
    clients: Vec<Client>,
}

struct Client {
    pair: u32,
    request: Draw,
    response: Draw,
    think: Draw,
    dialogue: Dialogue,
}

impl RequestResponse {
    pub(super) fn new<O: Observer>(
        hosts: &mut Hosts<'_, O>,
        group: u32,
        [request, response, think]: [&Distribution; 3],
        exchanges: Option<u32>,
    ) -> RequestResponse {
        let mut clients = Vec::new();
        for Member { number, pair, start } in hosts.members(group) {
            let draw =
                |distribution, purpose| Draw::new(distribution, || hosts.stream_of(group, number, purpose));
            clients.push(Client {
                pair,
                request: draw(request, "request"),
                response: draw(response, "size"),
                think: draw(think, "gap"),
                dialogue: Dialogue::new(),
            });
            hosts.act_at(group, number, start);
        }
        RequestResponse {
            group,
            exchanges,
            clients,
        }
    }
}

impl Application for RequestResponse {
    /// The next request.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let client = &mut self.clients[actor as usize];
        let dialogue = &mut client.dialogue;
        if hosts.has_asked_enough(self.group, actor, dialogue.begun) {
            return;
        }
        if dialogue.slot == NONE {
            // The client, who receives the data, opens.
            dialogue.slot = hosts.open_pair(now, self.group, actor, client.pair, Some(1));
        }
        let slot = dialogue.slot;
        let record = hosts.open_record(self.group, client.pair, now, Bytes::ZERO);
        dialogue.begun += 1;
        let bytes = whole_bytes(client.request.sample());
        let end = dialogue.ask(now, bytes, record);
        let last = self.exchanges.is_some_and(|most| dialogue.begun >= most);
        hosts.write(slot, 1, bytes);
        let place = &mut hosts.slots[slot as usize];
        place.ends[0].goal = end;
        place.ends[1].closing = last;
        hosts.push(now, slot, 1);
    }

    fn on_message<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        let actor = hosts.slots[slot as usize].actor;
        let client = &mut self.clients[actor as usize];
        let dialogue = &mut client.dialogue;
        if dialogue.slot != slot {
            // This connection was given up.
            hosts.slots[slot as usize].ends[side].goal = u64::MAX;
            return;
        }
        if side == 0 {
            dialogue.respond(hosts, now, slot, whole_bytes(client.response.sample()));
            return;
        }
        dialogue.arrived(hosts, now, slot, false);
        let more = self.exchanges.is_none_or(|most| dialogue.begun < most);
        let next = now.saturating_add(Duration::from_secs_f64(client.think.sample()));
        if more && next < hosts.stop_of(self.group) {
            hosts.act_at(self.group, actor, next);
        } else {
            hosts.slots[slot as usize].ends[1].closing = true;
        }
    }

    fn on_acked<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let actor = hosts.slots[slot as usize].actor;
        self.clients[actor as usize].dialogue.acked(hosts, now, slot);
    }

    /// The client opens another connection if it was interrupted.
    fn on_end<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let actor = hosts.slots[slot as usize].actor;
        let client = &mut self.clients[actor as usize];
        let interrupted = client.dialogue.ended(hosts, slot, false);
        if interrupted && self.exchanges.is_none_or(|most| client.dialogue.begun < most) {
            let gap = Duration::from_secs_f64(client.think.sample()).max(Duration::from_nanos(1));
            hosts.act_at(self.group, actor, now.saturating_add(gap));
        }
    }

    fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        let clients = self.clients.iter();
        let begun = clients.map(|client| {
            client.dialogue.finish(hosts);
            client.dialogue.begun
        });
        begun.collect()
    }
}
