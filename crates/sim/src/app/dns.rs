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

use super::{NONE, PairPolicy, datagram, whole_bytes};
use crate::event::{EventKey, EventKind};
use crate::observe::Observer;
use crate::output::Repairs;
use crate::spec::{Dns, GroupSpec};
use crate::world::World;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::rng::{Rng, Sampler};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// What one process of look-ups holds.
pub(super) struct Resolver {
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

impl Resolver {
    /// The first look-up begins at `next`.
    pub(super) fn new(next: Instant, dns: &Dns, stream: impl Fn(&str) -> Rng) -> Resolver {
        Resolver {
            next,
            begun: 0,
            request: Sampler::new(dns.request.clone(), stream("request")),
            response: Sampler::new(dns.response.clone(), stream("response")),
            server: Sampler::new(dns.server_time.clone(), stream("server")),
            open: Vec::new(),
            answers: Vec::new(),
        }
    }
}

impl<O: Observer> World<'_, O> {
    /// A look-up begins, a request is sent again or given up, or the server answers: whatever is due.
    pub(super) fn act_dns(&mut self, index: u32, actor: u32, now: Instant, spec: &GroupSpec, dns: &Dns) {
        let Some(mut resolver) = self.groups[index as usize].actors[actor as usize].resolver.take() else {
            return;
        };
        while let Some(at) = resolver.answers.iter().position(|answer| answer.at <= now) {
            let answer = resolver.answers.remove(at);
            self.slots[answer.slot as usize].in_network -= 1; // it was kept for this
            let segment = datagram(now, 0, answer.bytes, answer.number);
            self.send_from(now, answer.slot, 0, segment);
        }
        while let Some(&lookup) = resolver.open.first().filter(|lookup| lookup.deadline <= now) {
            resolver.open.remove(0);
            if lookup.asked < dns.attempts {
                self.ask_server(now, index, actor, &mut resolver, lookup, dns);
            } else {
                self.give_up(now, index, lookup);
            }
        }
        if resolver.next <= now {
            let pair = match spec.spread {
                PairPolicy::Each => self.groups[index as usize].actors[actor as usize].pair,
                PairPolicy::RoundRobin | PairPolicy::Random => self.pick_pair(index, spec),
            };
            let lookup = self.begin_lookup(now, index, actor, pair, &mut resolver, dns);
            self.ask_server(now, index, actor, &mut resolver, lookup, dns);
            let gap = Duration::from_secs_f64(self.groups[index as usize].gap.sample());
            let next = now.saturating_add(gap.max(Duration::from_nanos(1))); // time must pass
            resolver.next = Instant::FAR_FUTURE;
            if next < self.groups[index as usize].stop {
                resolver.next = next;
                self.remind(index, actor, next);
            }
        }
        self.groups[index as usize].actors[actor as usize].resolver = Some(resolver);
    }

    fn begin_lookup(
        &mut self,
        now: Instant,
        index: u32,
        actor: u32,
        pair: u32,
        resolver: &mut Resolver,
        dns: &Dns,
    ) -> Lookup {
        let number = resolver.begun;
        resolver.begun += 1;
        let bytes = |size: f64| whole_bytes(size).min(dns.most.get()) as u32;
        let mut lookup = Lookup {
            number,
            slot: self.open_pair(now, index, actor, pair, None),
            record: NONE,
            asked: 0,
            deadline: now,
            request: bytes(resolver.request.sample()),
            response: bytes(resolver.response.sample()),
            server: Duration::from_secs_f64(resolver.server.sample()),
        };
        if self.window.contains(now) {
            lookup.record = self.new_record(index, pair, now, Bytes(u64::from(lookup.response)));
            self.open += 1;
        }
        lookup
    }

    /// Sends the request of a look-up, the first time or again.
    fn ask_server(
        &mut self,
        now: Instant,
        index: u32,
        actor: u32,
        resolver: &mut Resolver,
        mut lookup: Lookup,
        dns: &Dns,
    ) {
        lookup.asked += 1;
        lookup.deadline = now.saturating_add(dns.timeout);
        if lookup.record != NONE {
            let record = &mut self.groups[index as usize].records[lookup.record as usize];
            record.segments_sent += 1;
            record.bytes_sent += Bytes(u64::from(lookup.request));
            record.retransmits += u32::from(lookup.asked > 1);
            record.timeouts += u32::from(lookup.asked > 1);
        }
        resolver.open.push(lookup);
        self.remind(index, actor, lookup.deadline);
        let segment = datagram(now, lookup.asked, lookup.request, lookup.number);
        self.send_from(now, lookup.slot, 1, segment);
    }

    /// The application gets an error.
    fn give_up(&mut self, now: Instant, index: u32, lookup: Lookup) {
        if lookup.record != NONE {
            let record = &mut self.groups[index as usize].records[lookup.record as usize];
            record.repairs = Some(Box::new(Repairs {
                given_up: Some(now),
                ..Repairs::default()
            }));
        }
        self.close_lookup(now, lookup);
    }

    fn close_lookup(&mut self, now: Instant, lookup: Lookup) {
        self.open -= u64::from(lookup.record != NONE);
        for end in &mut self.slots[lookup.slot as usize].ends {
            end.closed = true;
        }
        self.free_if_over(now, lookup.slot);
    }

    /// A request has reached the server, or an answer the client.
    pub(super) fn on_dns_datagram(&mut self, now: Instant, slot: u32, side: usize, segment: &Segment) {
        let place = &self.slots[slot as usize];
        let (index, actor) = (place.group, place.actor);
        let number = segment.options[2];
        let Some(resolver) = &mut self.groups[index as usize].actors[actor as usize].resolver else {
            return;
        };
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
            self.slots[slot as usize].in_network += 1; // the conversation is not over
            self.remind(index, actor, at);
            return;
        }
        resolver.open.remove(at);
        if lookup.record != NONE {
            let record = &mut self.groups[index as usize].records[lookup.record as usize];
            record.completed = Some(now);
            record.acked = Some(now);
            record.received = Bytes(u64::from(segment.payload));
        }
        self.close_lookup(now, lookup);
    }

    /// The process looks at what is due at `at`, beside whatever else it is called for.
    fn remind(&mut self, index: u32, actor: u32, at: Instant) {
        self.network
            .queue
            .push(EventKey::new(at, EventKind::App, index, actor));
    }
}
