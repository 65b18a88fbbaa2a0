//! Persistent connections with requests and responses: request, response, think, repeat. A flow record is one exchange; the time of the
//! first on a connection has that of its handshakes, TCP's and that of TLS.
//!
//! A server may need time for an answer; its host acknowledges the request meanwhile. Then a client that asks for the last time
//! closes with the answer, not with the request: applications here never half-close for long.

use super::Application;
use super::compact::Draw;
use super::dialogue::Dialogue;
use super::group::{Member, whole_bytes};
use super::tls::Session;
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use fleetfoot_core::rng::{Distribution, Sampler};
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
    /// What its connection does for TLS.
    session: Session,
    /// The server, if it needs time. Then the client's events are also those of the answers.
    server: Option<Box<Server>>,
}

/// A server that needs time for its answers.
struct Server {
    time: Sampler,
    /// What it needs for the exchange that has begun: drawn with the request, so that it is the same whatever is lost.
    needs: Duration,
    /// When the client asks next.
    asks_at: Instant,
    /// When it answers, on which connection.
    answers: Option<(Instant, u32)>,
}

impl RequestResponse {
    pub(super) fn new<O: Observer>(
        hosts: &mut Hosts<'_, O>,
        group: u32,
        [request, response, think, server]: [&Distribution; 4],
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
                session: Session::PLAIN,
                server: (*server != Distribution::Constant(0.0)).then(|| {
                    Box::new(Server {
                        time: Sampler::new(server.clone(), hosts.stream_of(group, number, "server")),
                        needs: Duration::ZERO,
                        asks_at: start,
                        answers: None,
                    })
                }),
            });
            hosts.act_at(group, number, start);
        }
        RequestResponse {
            group,
            exchanges,
            clients,
        }
    }

    /// The client asks at `at`, unless its group stops before.
    fn ask_at<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, at: Instant) {
        let in_time = at < hosts.stop_of(self.group);
        if let Some(server) = &mut self.clients[actor as usize].server {
            server.asks_at = if in_time { at } else { Instant::FAR_FUTURE };
        }
        hosts.act_at(self.group, actor, at);
    }
}

impl Client {
    /// The server answers if it is time; whether the client asks.
    fn serve<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant) -> bool {
        let Some(server) = &mut self.server else {
            return true;
        };
        if let Some((at, slot)) = server.answers
            && at <= now
        {
            server.answers = None;
            hosts.wake(slot, 0);
            self.answer(hosts, now, slot);
            hosts.push(now, slot, 0);
        }
        let Some(server) = self.server.as_mut().filter(|server| server.asks_at <= now) else {
            return false;
        };
        server.asks_at = Instant::FAR_FUTURE;
        true
    }

    /// The server answers what it was asked.
    fn answer<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let bytes = whole_bytes(self.response.sample());
        let added = self.session.add_answer(bytes);
        hosts.write(slot, 0, added);
        let end = self.session.written(0);
        self.dialogue.goes_on_at(0, end - bytes);
        self.dialogue.answer(hosts, now, slot, bytes);
        self.session.expect(hosts, slot, 1, end);
    }
}

impl Application for RequestResponse {
    /// The next request, or an answer.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let client = &mut self.clients[actor as usize];
        if !client.serve(hosts, now) {
            return;
        }
        let dialogue = &mut client.dialogue;
        if hosts.has_asked_enough(self.group, actor, dialogue.begun) {
            return;
        }
        if dialogue.slot == NONE {
            // The client, who receives the data, opens.
            dialogue.slot = hosts.open_pair(now, self.group, actor, client.pair, Some(1));
            client.session = Session::begin(hosts, self.group, dialogue.slot);
        }
        let slot = dialogue.slot;
        let record = hosts.open_record(self.group, client.pair, now, Bytes::ZERO);
        dialogue.begun += 1;
        let bytes = whole_bytes(client.request.sample());
        let end = client.session.request(hosts, slot, bytes);
        dialogue.goes_on_at(1, end - bytes);
        dialogue.ask(now, bytes, record);
        let mut last = self.exchanges.is_some_and(|most| dialogue.begun >= most);
        if let Some(server) = &mut client.server {
            server.needs = Duration::from_secs_f64(server.time.sample());
            last = false;
        }
        client.session.expect(hosts, slot, 0, end);
        client.session.close_after(hosts, slot, last);
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
        if !client.session.hear(hosts, slot, side) {
            return;
        }
        if side == 0 {
            dialogue.requested(hosts, now, slot);
        }
        if side == 0
            && let Some(server) = &mut client.server
        {
            let at = now.saturating_add(server.needs);
            server.answers = Some((at, slot));
            hosts.remind(self.group, actor, at);
            return;
        }
        if side == 0 {
            client.answer(hosts, now, slot);
            return;
        }
        dialogue.arrived(hosts, now, slot, false);
        let more = self.exchanges.is_none_or(|most| dialogue.begun < most);
        let next = now.saturating_add(Duration::from_secs_f64(client.think.sample()));
        if more && next < hosts.stop_of(self.group) {
            self.ask_at(hosts, actor, next);
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
        if let Some(server) = &mut client.server {
            server.answers = server.answers.filter(|answer| answer.1 != slot);
        }
        let interrupted = client.dialogue.ended(hosts, slot, false);
        if interrupted && self.exchanges.is_none_or(|most| client.dialogue.begun < most) {
            let gap = Duration::from_secs_f64(client.think.sample()).max(Duration::from_nanos(1));
            self.ask_at(hosts, actor, now.saturating_add(gap));
        }
    }

    fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        let clients = self.clients.iter();
        let begun = clients.map(|client| {
            client.dialogue.finish(hosts, false);
            client.dialogue.begun
        });
        begun.collect()
    }
}
