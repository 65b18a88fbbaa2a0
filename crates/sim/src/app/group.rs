//! What the applications of every traffic group do: the choice of pairs, events, conversations.

use crate::endpoint::{CutOff, Group, Hosts, NONE, Opening, Route};
use crate::error::RunError;
use crate::event::{EventKey, EventKind};
use crate::observe::Observer;
use crate::output::{Datagrams, FlowRecords, Histogram};
use crate::spec::{GroupSpec, PairPolicy, QUIC_BUILT, Transport};
use fleetfoot_core::cc::AnyController;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::superpacket::group::Mode;
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;
use std::collections::HashSet;

/// Where and when a member of a group begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) number: u32,
    pub(super) pair: u32,
    pub(super) start: Instant,
}

impl<O: Observer> Hosts<'_, O> {
    /// Makes what every group has.
    pub(crate) fn set_up_group(&mut self, index: usize, spec: &GroupSpec) -> Result<(), RunError> {
        for config in [&spec.sender, &spec.receiver] {
            let name = config.congestion_control;
            if AnyController::entry_among(config.plugins.controllers, name).is_none() {
                return Err(RunError::UnknownController(name.to_owned()));
            }
        }
        if spec.traffic.facts().transport == Transport::Quic && !QUIC_BUILT {
            return Err(RunError::NoQuic(spec.name.clone()));
        }
        let stream = |purpose| Rng::for_element(self.spec.seed, &spec.name, purpose);
        let [pairs, iss, marks] = ["spread", "iss", "marks"].map(stream);
        let mut ends = spec.pairs.clone();
        let mut known: HashSet<_> = ends.iter().copied().collect();
        let listed = spec.traffic.listed().iter();
        let listed = listed.map(|line| (line.source, line.destination));
        ends.extend(listed.filter(|ends| known.insert(*ends)));
        if ends.is_empty() && !(spec.traffic.facts().lists_hosts && spec.traffic.listed().is_empty()) {
            return Err(RunError::NoPairs(spec.name.clone()));
        }
        let grouping = spec.interface.super_packets;
        if grouping.is_some_and(|grouping| matches!(grouping.mode, Mode::Segment { .. })) {
            self.interfaces.join_pieces();
        }
        let mut routes = Vec::with_capacity(ends.len());
        for &(from, to) in &ends {
            let mut paths = [self.path(index, from, to)?, self.path(index, to, from)?];
            let relay = spec.relay.as_ref().filter(|_| spec.traffic.facts().relayable);
            let relay = relay.map(|relay| relay.node);
            let relay = relay.map(|node| self.onward(index, node, [from, to], &mut paths));
            routes.push(Route {
                hosts: [from, to],
                paths,
                relay: relay.transpose()?,
                receive_queues: [from, to].map(|node| self.interfaces.queue(node, spec.interface.coalesce)),
            });
        }
        self.groups.push(Group {
            pairs,
            next_pair: 0,
            iss,
            marks,
            routes,
            conversations: 0,
            stop: Instant::ZERO + spec.stop.unwrap_or(self.spec.duration).min(self.spec.duration),
            records: FlowRecords::new(),
            stream_of_record: Vec::new(),
            datagrams: Datagrams::default(),
            delivery_latency: Vec::new(),
            ack_latency: Vec::new(),
            cut_off: CutOff::default(),
            super_packet_length: Histogram::new(),
            streams: Vec::new(),
            connections: Vec::new(),
            measures: vec![Vec::new(); spec.traffic.facts().measures.len()],
            dropped: 0,
            goodput: Bytes::ZERO,
            goodput_per_connection: Vec::new(),
            pair_of_connection: Vec::new(),
            pending: Vec::new(),
        });
        Ok(())
    }

    /// The processes of a group: one, or one on each pair.
    pub(super) fn processes(&self, group: u32) -> Vec<Member> {
        let spec = &self.spec.groups[group as usize];
        let count = match spec.spread {
            PairPolicy::Each => self.groups[group as usize].routes.len() as u32,
            PairPolicy::RoundRobin | PairPolicy::Random => 1,
        };
        let process = |number| Member {
            number,
            pair: number,
            start: Instant::ZERO + spec.start,
        };
        (0..count).map(process).collect()
    }

    /// The members of a group, dealt to its pairs; each begins some time after the one before.
    pub(super) fn members(&mut self, group: u32) -> Vec<Member> {
        let spec = &self.spec.groups[group as usize];
        let each = spec.spread == PairPolicy::Each;
        let pairs = self.groups[group as usize].routes.len() as u32;
        let together = if each { pairs } else { 1 };
        let count = spec.traffic.members(each).unwrap_or(1) * together;
        let member = |number| {
            let spacing = spec.start_spacing.saturating_mul(u64::from(number / together));
            Member {
                number,
                pair: if each {
                    number % pairs.max(1)
                } else {
                    self.pick_pair(group)
                },
                start: (Instant::ZERO + spec.start).saturating_add(spacing),
            }
        };
        (0..count).map(member).collect()
    }

    /// Random numbers of a group for sizes and times, the same in all groups that draw alike.
    pub(super) fn stream(&self, group: u32, purpose: &str) -> Rng {
        Rng::for_element(self.spec.seed, self.spec.groups[group as usize].draws(), purpose)
    }

    /// Random numbers of a member of a group for sizes and times, the same in all groups that draw alike.
    pub(super) fn stream_of(&self, group: u32, member: u32, purpose: &str) -> Rng {
        let name = self.spec.groups[group as usize].draws();
        Rng::for_element(self.spec.seed, &format!("{name}/{member}"), purpose)
    }

    /// Which pair the next flow of the group gets.
    pub(super) fn pick_pair(&mut self, group: u32) -> u32 {
        let spread = self.spec.groups[group as usize].spread;
        let group = &mut self.groups[group as usize];
        let pairs = group.routes.len() as u32;
        match spread {
            PairPolicy::RoundRobin | PairPolicy::Each => {
                let pair = group.next_pair;
                group.next_pair = (pair + 1) % pairs;
                pair
            }
            PairPolicy::Random => group.pairs.below(u64::from(pairs)) as u32,
        }
    }

    /// Which pair the next flow of a process gets that stands on pair `own` if every pair has one.
    pub(super) fn pair_of_flow(&mut self, group: u32, own: u32) -> u32 {
        match self.spec.groups[group as usize].spread {
            PairPolicy::Each => own,
            PairPolicy::RoundRobin | PairPolicy::Random => self.pick_pair(group),
        }
    }

    /// When the group stops starting anything.
    pub(super) fn stop_of(&self, group: u32) -> Instant {
        self.groups[group as usize].stop
    }

    /// Schedules an actor, unless its group stops before.
    pub(super) fn act_at(&mut self, group: u32, actor: u32, at: Instant) {
        if at < self.stop_of(group) {
            self.push_event(group, actor, at);
        }
    }

    /// Schedules an actor.
    pub(super) fn push_event(&mut self, group: u32, actor: u32, at: Instant) {
        self.groups[group as usize].event_is_to_come(actor);
        self.remind(group, actor, at);
    }

    /// Schedules an actor that may have several events to come.
    pub(super) fn remind(&mut self, group: u32, actor: u32, at: Instant) {
        self.network
            .queue
            .push(EventKey::new(at, EventKind::App, group, actor));
    }

    /// Whether a user who has `begun` so many requests has made all of them.
    pub(super) fn has_asked_enough(&self, group: u32, actor: u32, begun: u32) -> bool {
        let most = self.spec.groups[group as usize].most_requests.as_ref();
        most.and_then(|most| most.get(actor as usize))
            .is_some_and(|most| begun >= *most)
    }

    /// Opens a conversation of a pair.
    pub(super) fn open_pair(
        &mut self,
        now: Instant,
        group: u32,
        actor: u32,
        pair: u32,
        opener: Option<usize>,
    ) -> u32 {
        let opening = self.opening(group, actor, pair, opener);
        self.open(now, &opening, None)
    }

    /// A new conversation of a pair.
    pub(super) fn opening(&self, group: u32, actor: u32, pair: u32, opener: Option<usize>) -> Opening {
        let Route {
            hosts, paths, relay, ..
        } = self.groups[group as usize].routes[pair as usize];
        Opening {
            group,
            actor,
            pair,
            hosts,
            paths,
            relay,
            opener,
            key: None,
        }
    }

    /// A new flow record, if the flow begins in the measured time, which the run waits for; `NONE` otherwise.
    pub(super) fn open_record(&mut self, group: u32, pair: u32, start: Instant, bytes: Bytes) -> u32 {
        if !self.window.contains(start) {
            return NONE;
        }
        self.open += 1;
        self.new_record(group, pair, start, bytes)
    }
}

/// A drawn size in whole bytes, at least one.
pub(super) fn whole_bytes(size: f64) -> u64 {
    (libm::round(size) as u64).max(1)
}

/// More than any run can send.
pub(super) const ENDLESS: u64 = 1 << 62;
