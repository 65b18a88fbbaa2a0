//! What the applications of a traffic group do, with sockets: the kinds that the kernel can play.
//!
//! Sizes and times come from the streams of random numbers that the simulator's applications use (`app` in `fleetfoot-sim`), so
//! transfers that do not wait for each other start at the same times in both.

use super::hosts::Pairs;
use super::raw::{self, Known, Trains};
use crate::frames::HostNumbers;
use fleetfoot_core::rng::{Distribution, Rng, Sampler};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::collision;
use fleetfoot_sim::spec::{GroupSpec, PairPolicy, RawSource, Round, Spec, Traffic, TrafficKind};
use std::cell::RefCell;
use std::rc::Rc;

/// The kinds that can be played.
pub(super) const PLAYABLE: [TrafficKind; 8] = [
    TrafficKind::Bulk,
    TrafficKind::Transfer,
    TrafficKind::Flows,
    TrafficKind::Incast,
    TrafficKind::RequestResponse,
    TrafficKind::OnOff,
    TrafficKind::Thin,
    TrafficKind::Raw,
];

pub(super) fn is_playable(traffic: &Traffic) -> bool {
    PLAYABLE.contains(&traffic.kind())
}

/// What of it cannot, although its kind can.
pub(super) fn exception(spec: &Spec, traffic: &Traffic) -> Option<&'static str> {
    if let Traffic::RequestResponse { server_time, .. } = traffic
        && *server_time != Distribution::Constant(0.0)
    {
        return Some("its servers answer at once (server_time = \"0 s\"): only the simulator's take time");
    }
    let ours = spec.world.host_side().is_some();
    (ours && claims_a_victim(traffic)).then_some(
        "it does not know the connections of `victim` where one end is our TCP: that is for two kernels (run.world = \"kernel\")",
    )
}

/// Whether a group sends packets with the addresses of another's connections.
pub(super) fn forges(group: &GroupSpec) -> bool {
    claims_a_victim(&group.traffic)
}

fn claims_a_victim(traffic: &Traffic) -> bool {
    matches!(traffic, Traffic::Raw(raw) if matches!(raw.source, RawSource::Victim(_)))
}

impl Actor {
    /// Its trains, if it sends those.
    pub(super) fn trains(&mut self) -> Option<&mut Trains> {
        match &mut self.does {
            Does::Trains(trains) => Some(trains),
            _ => None,
        }
    }
}

/// Something of a group that acts at times of its own.
pub(super) struct Actor {
    pub(super) pair: u32,
    pub(super) start: Instant,
    pub(super) does: Does,
    /// Its connection, if it keeps one.
    pub(super) connection: Option<usize>,
    pub(super) begun: u32,
}

pub(super) enum Does {
    /// Has one connection that always has data.
    Bulk,
    /// Opens a connection for each transfer of an arrival process.
    Transfers {
        draws: Rc<RefCell<Draws>>,
        most: Option<u64>,
    },
    /// Opens connections as a list says.
    List,
    /// Opens many connections at once or one soon after the other, when those before are done.
    Rounds {
        size: Sampler,
        pause: Sampler,
        count: u32,
        rounds: u32,
        round: Round,
        /// Connections of this round that are not complete.
        remaining: u32,
    },
    /// Asks over one connection.
    Asks {
        request: Sampler,
        response: Sampler,
        think: Sampler,
        most: Option<u32>,
    },
    /// Writes bursts on one connection; a thin stream is one flow.
    Writes { size: Sampler, gap: Sampler, thin: bool },
    /// Sends trains of raw packets.
    Trains(Box<Trains>),
}

/// What all arrival processes of a group draw from.
pub(super) struct Draws {
    pub(super) size: Sampler,
    pub(super) gap: Sampler,
}

/// The actors of a group, in order of start.
pub(super) fn actors(
    spec: &Spec,
    group: &GroupSpec,
    dealt: &mut Pairs,
    numbers: Option<&HostNumbers>,
) -> Vec<Actor> {
    let each = group.spread == PairPolicy::Each;
    let pairs = dealt.count();
    let start = Instant::ZERO + group.start;
    let own = |distribution: &Distribution, purpose: &str| {
        Sampler::new(
            distribution.clone(),
            Rng::for_element(spec.seed, group.draws(), purpose),
        )
    };
    let of = |distribution: &Distribution, member: u32, purpose: &str| {
        let name = format!("{}/{member}", group.draws());
        Sampler::new(distribution.clone(), Rng::for_element(spec.seed, &name, purpose))
    };
    let actor = |pair: u32, start: Instant, does: Does| Actor {
        pair,
        start,
        does,
        connection: None,
        begun: 0,
    };
    let together = if each { pairs } else { 1 };
    // Their numbers, pairs and starts.
    let members = |dealt: &mut Pairs| -> Vec<(u32, u32, Instant)> {
        let count = group.traffic.members(each).unwrap_or(1) * together;
        let member = |number| {
            let spacing = group.start_spacing.saturating_mul(u64::from(number / together));
            (number, dealt.pick(number), start.saturating_add(spacing))
        };
        (0..count).map(member).collect()
    };
    match &group.traffic {
        Traffic::Bulk { .. } => members(dealt)
            .into_iter()
            .map(|(_, pair, at)| actor(pair, at, Does::Bulk))
            .collect(),
        Traffic::Transfer {
            size,
            interarrival,
            count,
        } => {
            let draws = Rc::new(RefCell::new(Draws {
                size: own(size, "size"),
                gap: own(interarrival, "gap"),
            }));
            let process = |number| {
                let first = Duration::from_secs_f64(draws.borrow_mut().gap.sample());
                let draws = Rc::clone(&draws);
                actor(
                    number,
                    start.saturating_add(first),
                    Does::Transfers { draws, most: *count },
                )
            };
            (0..together).map(process).collect()
        }
        Traffic::Flows { list } => list
            .first()
            .map(|line| actor(0, Instant::ZERO + line.start, Does::List))
            .into_iter()
            .collect(),
        Traffic::Incast {
            count,
            size,
            rounds,
            pause,
        } => {
            let count = if each { count * pairs } else { *count };
            let does = Does::Rounds {
                size: own(size, "size"),
                pause: own(pause, "gap"),
                count,
                rounds: *rounds,
                round: Round::default(),
                remaining: 0,
            };
            vec![actor(0, start, does)]
        }
        Traffic::RequestResponse {
            request,
            response,
            think,
            exchanges,
            ..
        } => members(dealt)
            .into_iter()
            .map(|(number, pair, at)| {
                let does = Does::Asks {
                    request: of(request, number, "request"),
                    response: of(response, number, "size"),
                    think: of(think, number, "gap"),
                    most: *exchanges,
                };
                actor(pair, at, does)
            })
            .collect(),
        Traffic::OnOff {
            burst: size,
            interval,
            ..
        }
        | Traffic::Thin {
            payload: size,
            interval,
            ..
        } => members(dealt)
            .into_iter()
            .map(|(number, pair, at)| {
                let does = Does::Writes {
                    size: of(size, number, "size"),
                    gap: of(interval, number, "gap"),
                    thin: group.traffic.kind() == TrafficKind::Thin,
                };
                actor(pair, at, does)
            })
            .collect(),
        Traffic::Raw(raw) => {
            let draws = Rc::new(RefCell::new(raw::Draws {
                gap: own(&raw.interarrival, "gap"),
                marks: Rng::for_element(spec.seed, &group.name, "marks"),
                conversations: 0,
            }));
            let process = |number| {
                let first = Duration::from_secs_f64(draws.borrow_mut().gap.sample());
                let begins = start.saturating_add(first);
                let known = numbers
                    .filter(|_| collision::collides(group))
                    .zip(collision::queue_with_table(spec, group));
                let known = known.map(|(hosts, queue)| Known::new(queue, HostNumbers::clone(hosts)));
                let trains = Trains::new(raw, begins, Rc::clone(&draws), known);
                actor(number, begins, Does::Trains(Box::new(trains)))
            };
            (0..together).map(process).collect()
        }
        _ => Vec::new(),
    }
}

/// Bytes of a drawn size, as the simulator rounds it.
pub(super) fn whole_bytes(size: f64) -> u64 {
    (size.round() as u64).max(1)
}
