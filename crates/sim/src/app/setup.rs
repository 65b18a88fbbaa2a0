//! What exists at the start of a run: groups, their routes and their actors.

use super::compact::{Counted, Draw, Queue};
use super::dns::Resolver;
use super::raw::Trains;
use super::video::Frames;
use super::{Actor, Dialogue, Group, NONE, Route};
use crate::observe::Observer;
use crate::output::{Datagrams, Histogram};
use crate::spec::{GroupSpec, PairPolicy, Traffic};
use crate::world::{RunError, World};
use fleetfoot_core::cc::AnyController;
use fleetfoot_core::rng::{Distribution, Rng, Sampler};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use std::collections::HashMap;

impl<O: Observer> World<'_, O> {
    pub(crate) fn set_up_groups(&mut self) -> Result<(), RunError> {
        let spec = self.spec;
        for (index, group) in spec.groups.iter().enumerate() {
            for config in [&group.sender, &group.receiver] {
                let name = config.congestion_control;
                if !AnyController::ENTRIES.iter().any(|entry| entry.name == name) {
                    return Err(RunError::UnknownController(name.to_owned()));
                }
            }
            let stream = |purpose| Rng::for_element(spec.seed, &group.name, purpose);
            let none = || Distribution::Constant(0.0);
            let (size, gap) = match &group.traffic {
                Traffic::Transfer {
                    size, interarrival, ..
                } => (size.clone(), interarrival.clone()),
                Traffic::Incast { size, pause, .. } => (size.clone(), pause.clone()),
                Traffic::Ping { interval, .. } => (none(), interval.clone()),
                Traffic::Raw(raw) => (none(), raw.interarrival.clone()),
                Traffic::Dns(dns) => (none(), dns.interarrival.clone()),
                Traffic::Tfrc(tfrc) => (
                    tfrc.size.clone().unwrap_or_else(none),
                    tfrc.interarrival.clone().unwrap_or_else(none),
                ),
                Traffic::Bulk { .. }
                | Traffic::ClosedLoop { .. }
                | Traffic::RequestResponse { .. }
                | Traffic::OnOff { .. }
                | Traffic::Thin { .. }
                | Traffic::Web(_)
                | Traffic::Cbr { .. }
                | Traffic::Video(_)
                | Traffic::Flows { .. }
                | Traffic::Replay(_) => (none(), none()),
            };
            let mut pairs = group.pairs.clone();
            let mut listed = Vec::new();
            if let Traffic::Flows { list } = &group.traffic {
                let mut known: HashMap<_, _> = pairs.iter().copied().zip(0_u32..).collect();
                for line in list.iter() {
                    let ends = (line.source, line.destination);
                    listed.push(*known.entry(ends).or_insert_with(|| {
                        pairs.push(ends);
                        (pairs.len() - 1) as u32
                    }));
                }
            }
            let mut routes = Vec::with_capacity(pairs.len());
            for &(from, to) in &pairs {
                let mut paths = [self.path(index, from, to)?, self.path(index, to, from)?];
                let relay = group.relay.as_ref().filter(|_| group.traffic.facts().relayable);
                let relay = relay.map(|relay| relay.node);
                let relay = relay.map(|node| self.onward(index, node, [from, to], &mut paths));
                routes.push(Route {
                    hosts: [from, to],
                    paths,
                    relay: relay.transpose()?,
                    receive_queues: [from, to]
                        .map(|node| self.interfaces.queue(node, group.interface.coalesce)),
                });
            }
            if routes.is_empty() && !matches!(&group.traffic, Traffic::Flows { list } if list.is_empty()) {
                return Err(RunError::NoPairs(group.name.clone()));
            }
            self.groups.push(Group {
                actors: Vec::new(),
                size: Sampler::new(size, stream("size")),
                gap: Sampler::new(gap, stream("gap")),
                spread: stream("spread"),
                next_pair: 0,
                iss: stream("iss"),
                marks: stream("marks"),
                super_packet_length: Histogram::new(),
                streams: Vec::new(),
                connections: Vec::new(),
                playing: Vec::new(),
                routes,
                listed,
                conversations: 0,
                started: 0,
                remaining: 0,
                stop: Instant::ZERO + group.stop.unwrap_or(spec.duration).min(spec.duration),
                records: Vec::new(),
                pages: Vec::new(),
                pings: Vec::new(),
                frames: Frames::default(),
                datagrams: Datagrams::default(),
                delivery_latency: Vec::new(),
                ack_latency: Vec::new(),
                dropped: 0,
                goodput: Bytes::ZERO,
                goodput_per_connection: Vec::new(),
                pair_of_connection: Vec::new(),
            });
            self.set_up_actors(index as u32, group);
        }
        Ok(())
    }

    fn set_up_actors(&mut self, index: u32, spec: &GroupSpec) {
        let start = Instant::ZERO + spec.start;
        let each = spec.spread == PairPolicy::Each;
        let pairs = self.groups[index as usize].routes.len() as u32;
        let processes = if each { pairs } else { 1 };
        let (members, one_per_member) = match &spec.traffic {
            Traffic::Transfer { .. } | Traffic::Ping { .. } | Traffic::Raw(_) | Traffic::Dns(_) => {
                (processes, false)
            }
            Traffic::Incast { .. } | Traffic::Flows { .. } | Traffic::Replay(_) => (1, false),
            Traffic::Tfrc(tfrc) if tfrc.interarrival.is_some() => (processes, false),
            Traffic::Tfrc(tfrc) => (tfrc.count.unwrap_or(1) * processes, true),
            Traffic::Bulk { count }
            | Traffic::ClosedLoop { count, .. }
            | Traffic::RequestResponse { count, .. }
            | Traffic::OnOff { count, .. }
            | Traffic::Thin { count, .. }
            | Traffic::Cbr { count, .. } => (count * processes, true),
            Traffic::Web(web) => (web.count * processes, true),
            // Each call has two streams; where the group is repeated on every pair, one on each.
            Traffic::Video(video) if video.both_ways && !each => (2 * video.count, true),
            Traffic::Video(video) => (video.count * processes, true),
        };
        for member in 0..members {
            let way_back =
                matches!(&spec.traffic, Traffic::Video(video) if video.both_ways) && member % 2 == 1;
            let pair = if one_per_member && !each && way_back && spec.spread == PairPolicy::Random {
                let there = self.groups[index as usize].actors.last();
                there.map_or(0, |there| there.pair ^ 1)
            } else if one_per_member && !each {
                self.pick_pair(index, spec)
            } else {
                member % pairs.max(1)
            };
            let dialogue = self.dialogue(spec, member);
            let group = &mut self.groups[index as usize];
            group.actors.push(Actor {
                pair,
                slot: NONE,
                started: 0,
                pending: false,
                dialogue,
                trains: None,
                resolver: None,
            });
            let spacing = spec.start_spacing.saturating_mul(u64::from(if one_per_member {
                let both = !each && matches!(&spec.traffic, Traffic::Video(video) if video.both_ways);
                member / if both { 2 } else { processes }
            } else {
                0
            }));
            let mut at = start.saturating_add(spacing);
            match &spec.traffic {
                Traffic::Transfer { count: Some(0), .. } => continue,
                Traffic::Transfer { .. } => {
                    at = at.saturating_add(Duration::from_secs_f64(group.gap.sample()));
                }
                Traffic::Tfrc(tfrc) if tfrc.interarrival.is_some() => {
                    if tfrc.count == Some(0) {
                        continue;
                    }
                    at = at.saturating_add(Duration::from_secs_f64(group.gap.sample()));
                }
                Traffic::Raw(_) => {
                    at = at.saturating_add(Duration::from_secs_f64(group.gap.sample()));
                    group.actors[member as usize].trains = Some(Box::new(Trains::new(at)));
                }
                Traffic::Dns(dns) => {
                    at = at.saturating_add(Duration::from_secs_f64(group.gap.sample()));
                    let name = format!("{}/{member}", spec.name);
                    let seed = self.spec.seed;
                    let stream = |purpose: &str| Rng::for_element(seed, &name, purpose);
                    let resolver = Box::new(Resolver::new(at, dns, stream));
                    group.actors[member as usize].resolver = Some(resolver);
                }
                Traffic::Video(video) => {
                    // Cameras do not run in step: each stream begins at a random moment of a frame's time.
                    let name = format!("{}/{member}", spec.name);
                    let phase = Rng::for_element(self.spec.seed, &name, "phase").uniform();
                    at = at.saturating_add(Duration::from_secs_f64(phase / video.frame_rate));
                }
                Traffic::ClosedLoop { .. } | Traffic::Web(_) => {
                    if let Some(dialogue) = &mut group.actors[member as usize].dialogue {
                        at = at.saturating_add(Duration::from_secs_f64(dialogue.gap.sample()));
                    }
                }
                Traffic::Flows { list } => match list.first() {
                    Some(line) => at = at.saturating_add(line.start),
                    None => continue,
                },
                Traffic::Replay(replay) => {
                    group.playing = vec![NONE; replay.connections.len()];
                    self.delays |= replay
                        .connections
                        .iter()
                        .any(|one| !one.delay.is_zero() || one.losses_ppm != [0; 2]);
                    match replay.connections.first() {
                        Some(first) => at = at.saturating_add(first.start),
                        None => continue,
                    }
                }
                Traffic::Bulk { .. }
                | Traffic::Incast { .. }
                | Traffic::RequestResponse { .. }
                | Traffic::OnOff { .. }
                | Traffic::Thin { .. }
                | Traffic::Cbr { .. }
                | Traffic::Ping { .. }
                | Traffic::Tfrc(_) => {}
            }
            self.act_at(index, member, at);
        }
    }

    /// What a user or a persistent connection draws from.
    fn dialogue(&self, spec: &GroupSpec, member: u32) -> Option<Box<Dialogue>> {
        let (size, request, gap) = match &spec.traffic {
            Traffic::ClosedLoop { size, think, .. } => (size, None, think),
            Traffic::RequestResponse {
                request,
                response,
                think,
                ..
            } => (response, Some(request), think),
            Traffic::OnOff { burst, interval, .. } => (burst, None, interval),
            Traffic::Thin {
                payload, interval, ..
            } => (payload, None, interval),
            // Requests are constant: the stream of their sizes is that of documents.
            Traffic::Web(web) => (&web.object, Some(&web.document), &web.think),
            // A rate has no gaps to draw: their stream is that of the sizes.
            Traffic::Video(video) => (&video.frame, Some(&video.key_frame), &video.frame),
            Traffic::Bulk { .. }
            | Traffic::Transfer { .. }
            | Traffic::Incast { .. }
            | Traffic::Cbr { .. }
            | Traffic::Flows { .. }
            | Traffic::Ping { .. }
            | Traffic::Dns(_)
            | Traffic::Raw(_)
            | Traffic::Tfrc(_)
            | Traffic::Replay(_) => return None,
        };
        let name = format!("{}/{member}", spec.name);
        let stream = |purpose| Rng::for_element(self.spec.seed, &name, purpose);
        Some(Box::new(Dialogue {
            size: Draw::new(size, || stream("size")),
            request: request.map(|request| Draw::new(request, || stream("request"))),
            gap: Draw::new(gap, || stream("gap")),
            begun: 0,
            messages: Queue::new(),
            unacked: Queue::new(),
            counted: Counted::default(),
            written: [0; 2],
        }))
    }
}
