//! Look-ups of names: a request and an answer of one datagram each, with a resolver's retries. A flow record is a look-up: it
//! starts with its first request and is complete when the first answer is there, whichever request it answers.
//!
//! **Source.** resolv.conf(5) and the resolver of the GNU C library with one name server: an unanswered request is sent again after
//! `timeout`, `attempts` requests in all, each with the same identifier on the same port, so that a late answer still counts;
//! then the application gets an error. Every look-up has a port of its own (RFC 5452), so queues that keep flows apart
//! see a new flow. **Deviation.** The server remembers nothing: it answers each request after the same time.
//!
//! The client is the receiver of the data: answers flow the group's way. Sizes and the server's time are drawn when the look-up
//! begins, so that they are the same whatever is lost.

use super::Application;
use super::datagrams::datagram;
use super::group::{Member, whole_bytes};
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::spec;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::rng::Sampler;
use fleetfoot_core::tcp::Stats;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// The processes of look-ups of a group. An actor may have several events to come.
pub(crate) struct Dns<'a> {
    group: u32,
    dns: &'a spec::Dns,
    gap: Sampler,
    resolvers: Vec<Resolver>,
}

/// What one process of look-ups holds.
struct Resolver {
    pair: u32,
    /// When the next look-up begins.
    next: Instant,
    begun: u32,
    /// Bytes of requests and answers, time of the server.
    request: Sampler,
    response: Sampler,
    server: Sampler,
    /// Not answered, in the order of their deadlines: all have the same timeout.
    open: Vec<Lookup>,
    /// Answers that the server is about to give.
    answers: Vec<Answer>,
}

#[derive(Clone, Copy, Debug)]
struct Lookup {
    number: u32,
    slot: u32,
    record: u32,
    /// Requests sent.
    asked: u32,
    deadline: Instant,
    request: u32,
    response: u32,
    server: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    at: Instant,
    slot: u32,
    number: u32,
    bytes: u32,
}

impl<'a> Dns<'a> {
    pub(super) fn new<O: Observer>(hosts: &mut Hosts<'a, O>, group: u32, dns: &'a spec::Dns) -> Dns<'a> {
        let mut gap = Sampler::new(dns.interarrival.clone(), hosts.stream(group, "gap"));
        let mut resolvers = Vec::new();
        for Member { number, pair, start } in hosts.processes(group) {
            let next = start.saturating_add(Duration::from_secs_f64(gap.sample()));
            let sampler = |distribution: &fleetfoot_core::rng::Distribution, purpose| {
                Sampler::new(distribution.clone(), hosts.stream_of(group, number, purpose))
            };
            resolvers.push(Resolver {
                pair,
                next,
                begun: 0,
                request: sampler(&dns.request, "request"),
                response: sampler(&dns.response, "response"),
                server: sampler(&dns.server_time, "server"),
                open: Vec::new(),
                answers: Vec::new(),
            });
            hosts.act_at(group, number, next);
        }
        Dns {
            group,
            dns,
            gap,
            resolvers,
        }
    }

    fn begin_lookup<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32) -> Lookup {
        let resolver = &mut self.resolvers[actor as usize];
        let pair = hosts.pair_of_flow(self.group, resolver.pair);
        let number = resolver.begun;
        resolver.begun += 1;
        let bytes = |size: f64| whole_bytes(size).min(self.dns.most.get()) as u32;
        let mut lookup = Lookup {
            number,
            slot: hosts.open_pair(now, self.group, actor, pair, None),
            record: NONE,
            asked: 0,
            deadline: now,
            request: bytes(resolver.request.sample()),
            response: bytes(resolver.response.sample()),
            server: Duration::from_secs_f64(resolver.server.sample()),
        };
        lookup.record = hosts.open_record(self.group, pair, now, Bytes(u64::from(lookup.response)));
        lookup
    }

    /// Sends the request of a look-up, the first time or again.
    fn ask_server<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        actor: u32,
        mut lookup: Lookup,
    ) {
        lookup.asked += 1;
        lookup.deadline = now.saturating_add(self.dns.timeout);
        if lookup.record != NONE {
            let mut record = hosts.groups[self.group as usize].records.edit(lookup.record);
            let again = u32::from(lookup.asked > 1);
            record.add(&Stats {
                segments_sent: 1,
                bytes_sent: u64::from(lookup.request),
                retransmits: again,
                timeouts: again,
                ..Stats::default()
            });
        }
        self.resolvers[actor as usize].open.push(lookup);
        hosts.remind(self.group, actor, lookup.deadline);
        let segment = datagram(now, lookup.asked, lookup.request, lookup.number);
        hosts.send_from(now, lookup.slot, 1, segment);
    }

    /// The application gets an error.
    fn give_up<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, lookup: Lookup) {
        if lookup.record != NONE {
            let mut record = hosts.groups[self.group as usize].records.edit(lookup.record);
            record.given_up = Some(Box::new(now));
        }
        close_lookup(hosts, now, lookup);
    }
}

fn close_lookup<O: Observer>(hosts: &mut Hosts<'_, O>, now: Instant, lookup: Lookup) {
    hosts.open -= u64::from(lookup.record != NONE);
    for end in &mut hosts.slots[lookup.slot as usize].ends {
        end.closed = true;
    }
    if hosts.is_over(lookup.slot) {
        hosts.free(now, lookup.slot);
    }
}

impl Application for Dns<'_> {
    /// A look-up begins, a request is sent again or given up, or the server answers: whatever is due.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let due = |answer: &Answer| answer.at <= now;
        while let Some(at) = self.resolvers[actor as usize].answers.iter().position(due) {
            let answer = self.resolvers[actor as usize].answers.remove(at);
            hosts.slots[answer.slot as usize].in_network -= 1; // it was kept for this
            let segment = datagram(now, 0, answer.bytes, answer.number);
            hosts.send_from(now, answer.slot, 0, segment);
        }
        let due = |lookup: &&mut Lookup| lookup.deadline <= now;
        while let Some(&mut lookup) = self.resolvers[actor as usize].open.first_mut().filter(due) {
            self.resolvers[actor as usize].open.remove(0);
            if lookup.asked < self.dns.attempts {
                self.ask_server(hosts, now, actor, lookup);
            } else {
                self.give_up(hosts, now, lookup);
            }
        }
        if self.resolvers[actor as usize].next <= now {
            let lookup = self.begin_lookup(hosts, now, actor);
            self.ask_server(hosts, now, actor, lookup);
            let gap = Duration::from_secs_f64(self.gap.sample());
            let next = now.saturating_add(gap.max(Duration::from_nanos(1))); // time must pass
            let resolver = &mut self.resolvers[actor as usize];
            resolver.next = Instant::FAR_FUTURE;
            if next < hosts.stop_of(self.group) {
                resolver.next = next;
                hosts.remind(self.group, actor, next);
            }
        }
    }

    /// A request has reached the server, or an answer the client.
    fn on_packet<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        side: usize,
        segment: &Segment,
    ) {
        hosts.count_datagram(now, slot, side, segment);
        let actor = hosts.slots[slot as usize].actor;
        let number = segment.options[2];
        let resolver = &mut self.resolvers[actor as usize];
        let Some(at) = resolver.open.iter().position(|lookup| lookup.number == number) else {
            return; // answered, or given up
        };
        let lookup = resolver.open[at];
        if side == 0 {
            let at = now.saturating_add(lookup.server);
            resolver.answers.push(Answer {
                at,
                slot,
                number,
                bytes: lookup.response,
            });
            hosts.slots[slot as usize].in_network += 1; // the conversation is not over
            hosts.remind(self.group, actor, at);
            return;
        }
        resolver.open.remove(at);
        if lookup.record != NONE {
            let mut record = hosts.groups[self.group as usize].records.edit(lookup.record);
            record.completed = Some(now);
            record.acked = Some(now);
            record.received = Bytes(u64::from(segment.payload));
        }
        close_lookup(hosts, now, lookup);
    }
}
