//! Does the answer hold near the described network? The same comparison with the bottleneck's rate, the RTT, the load and the
//! buffer at half and at double, and with jitter. Where queue mechanisms act at several places, also with them at one place only
//! (`study`). What is best there is ranked as in the described network: within a tier, what can be had comes first.

use super::ranking::WORTHWHILE;
use super::{Plan, ranked};
use crate::result::{Comparison, SensitivityPoint, Variant, Versus};
use crate::run::{Batch, Demand, Job};
use crate::scenario::Resolved;
use fleetfoot_core::parameter::Value;
use fleetfoot_core::queue::Limit;
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::spec::{LinkRate, LinkSpec, Spec, Traffic};

/// A neighbouring network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// What is changed.
    pub what: Quantity,
    /// By how much.
    pub factor: f64,
}

/// What a neighbour changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Rate of the bottleneck.
    Bottleneck,
    /// Delay of every link.
    Rtt,
    /// Rate at which transfers arrive, and how often users ask.
    Load,
    /// Limit of the bottleneck's queue.
    Buffer,
    /// Jitter, in packet times of the bottleneck, at every link of a host that has none.
    Jitter,
}

/// The neighbours.
pub const NEIGHBOURS: [Neighbour; 9] = [
    neighbour(Quantity::Bottleneck, 0.5),
    neighbour(Quantity::Bottleneck, 2.0),
    neighbour(Quantity::Rtt, 0.5),
    neighbour(Quantity::Rtt, 2.0),
    neighbour(Quantity::Load, 0.5),
    neighbour(Quantity::Load, 2.0),
    neighbour(Quantity::Buffer, 0.5),
    neighbour(Quantity::Buffer, 2.0),
    neighbour(Quantity::Jitter, 1.0),
];

const fn neighbour(what: Quantity, factor: f64) -> Neighbour {
    Neighbour { what, factor }
}

impl Neighbour {
    /// As it is called in results.
    pub fn name(self) -> String {
        let what = match self.what {
            Quantity::Bottleneck => "bottleneck rate",
            Quantity::Rtt => "RTT",
            Quantity::Load => "load",
            Quantity::Buffer => "buffer",
            Quantity::Jitter => return String::from("jitter of one packet time"),
        };
        format!("{what} x {}", self.factor)
    }

    /// This network as it is described, without any mechanism. `bottleneck` are the names of its links.
    pub(super) fn described(self, plan: &Plan, bottleneck: &[String]) -> Resolved {
        let mut near = plan.described.clone();
        self.change(&mut near.spec, bottleneck);
        if self.what == Quantity::Rtt {
            near.scale_base_rtts(self.factor);
        }
        near
    }

    /// The run of it.
    pub(super) fn baseline(self, plan: &Plan, bottleneck: &[String]) -> Job {
        self.jobs(plan, bottleneck).swap_remove(0)
    }

    /// The runs of `plan` on this network. `bottleneck` are the names of its links.
    pub fn jobs(self, plan: &Plan, bottleneck: &[String]) -> Vec<Job> {
        let described = self.described(plan, bottleneck).spec;
        plan.variants
            .iter()
            .map(|variant| {
                let mut spec = variant.resolved.spec.clone();
                self.change(&mut spec, bottleneck);
                let demand = Demand::new(&variant.resolved.groups, &described);
                let demand = demand.filter(|demand| demand.identity != crate::identity::of(&spec));
                Job::new(&variant.name, spec, demand)
            })
            .collect()
    }

    fn change(self, spec: &mut Spec, bottleneck: &[String]) {
        match self.what {
            Quantity::Bottleneck => {
                for link in spec
                    .links
                    .iter_mut()
                    .filter(|link| bottleneck.contains(&link.name))
                {
                    match &mut link.rate {
                        LinkRate::Constant(rate) => {
                            *rate = Rate::from_bps((rate.bps() as f64 * self.factor) as u64);
                        }
                        LinkRate::Trace {
                            opportunities,
                            period,
                        } => {
                            let slower =
                                |at: Duration| Duration::from_secs_f64(at.as_secs_f64() / self.factor);
                            *opportunities = opportunities.iter().map(|at| slower(*at)).collect();
                            *period = slower(*period);
                        }
                    }
                }
            }
            Quantity::Buffer => {
                for link in spec
                    .links
                    .iter_mut()
                    .filter(|link| bottleneck.contains(&link.name))
                {
                    self.buffer(link);
                }
            }
            Quantity::Jitter => {
                let slowest = spec.links.iter().filter(|link| bottleneck.contains(&link.name));
                let times =
                    slowest.map(|link| f64::from(link.mtu) * 8.0 / link.rate.mean().bps().max(1) as f64);
                let longest = times.fold(0.0, f64::max);
                let hosts: Vec<bool> = spec.nodes.iter().map(|node| node.host).collect();
                let outward = |link: &&mut LinkSpec| hosts[link.from.0 as usize];
                for link in spec.links.iter_mut().filter(outward) {
                    link.impairments.jitter.get_or_insert(Distribution::Uniform {
                        min: 0.0,
                        max: longest * self.factor,
                    });
                }
            }
            Quantity::Rtt => {
                for link in &mut spec.links {
                    link.delay = Duration::from_secs_f64(link.delay.as_secs_f64() * self.factor);
                }
                for group in &mut spec.groups {
                    if let Traffic::Replay(replay) = &mut group.traffic {
                        let times =
                            |time: Duration| Duration::from_secs_f64(time.as_secs_f64() * self.factor);
                        replay.change(&format!("{self:?}"), |one| {
                            one.delay = times(one.delay);
                            one.rtt = times(one.rtt);
                        });
                    }
                }
            }
            Quantity::Load => {
                for group in &mut spec.groups {
                    group.traffic.scale_load(self.factor);
                }
            }
        }
    }
}

impl Neighbour {
    /// Changes the limit of a queue, if it has one; two packets always have room.
    fn buffer(self, link: &mut LinkSpec) {
        let has_limit = link
            .queue_values
            .table()
            .iter()
            .any(|parameter| parameter.name == "limit");
        if !has_limit {
            return;
        }
        let limit = match link.queue_values.limit("limit") {
            Limit::Packets(packets) => Limit::Packets(((f64::from(packets) * self.factor) as u32).max(2)),
            Limit::Bytes(bytes) => {
                let least = 2 * u64::from(link.mtu);
                Limit::Bytes(Bytes(((bytes.0 as f64 * self.factor) as u64).max(least)))
            }
            Limit::Unlimited => return,
        };
        // A limit outside the discipline's range stays as it is.
        let _ = link.queue_values.set("limit", Value::Limit(limit));
    }
}

/// What the runs of a network near `described` say of its answer; `change` is how the two differ.
pub fn judge(change: String, plan: &Plan, batch: &Batch, described: &Comparison) -> SensitivityPoint {
    let there = ranked(plan, batch);
    let win = |name: &str| {
        let variant = there.variants.iter().find(|variant| variant.name == name)?;
        variant.versus.as_ref()?.win
    };
    let top = |variant: &&Variant| variant.versus.as_ref().is_some_and(|versus| versus.rank == 1);
    let top = || Some(there.variants.iter().find(top)?.name.clone());
    let own = described.document.recommended.as_ref();
    let holds = super::answer::holds(own, there.recommended.as_ref());
    // What stands above it in the table cannot be had there.
    let chosen = there.recommended.as_ref().map(|best| best.variant.clone());
    let best = chosen.or_else(top).unwrap_or_default();
    let first_tier = there.recommended.iter();
    let first_tier = first_tier.flat_map(|one| std::iter::once(&one.variant).chain(&one.equals));
    let named = |which: fn(&Versus) -> bool| {
        let such = |variant: &&Variant| variant.versus.as_ref().is_some_and(which);
        let names = there.variants.iter().filter(such);
        names.map(|variant| variant.name.clone()).collect()
    };
    let mut point = SensitivityPoint {
        first_tier: first_tier.cloned().collect(),
        wins: named(|versus| versus.tier.is_some()),
        harmless: named(|versus| {
            let harm = versus.harm.map_or(0.0, |harm| harm.value);
            versus.win.is_some_and(|win| win - harm >= -WORTHWHILE)
        }),
        change,
        places: Vec::new(),
        best_win: win(&best),
        described_best_win: own.and_then(|own| win(&own.variant)),
        best,
        holds,
    };
    point.holds |= own.is_some_and(|own| point.needs_nothing(&own.variant));
    point
}
