//! One run over time: how long packets wait in the queues, which connections there were, and one of them packet by packet.

use crate::failure::Failure;
use crate::scenario::Described;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::{Packet, Segment};
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_lab::compare::{Choice, Plan, unknown_variant};
use fleetfoot_lab::report::diagram::Diagram;
use fleetfoot_lab::report::waits::Waits;
use fleetfoot_lab::run::observe;
use fleetfoot_lab::scenario::Resolved;
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::spec::LinkIndex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// A run that is wanted over time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The scenario.
    pub scenario: Described,
    /// The variant or mechanism; `as described` is the scenario as it stands.
    pub variant: String,
    /// Seed; `None`: the scenario's first.
    #[serde(default)]
    pub seed: Option<u64>,
    /// The group of the connection that is shown packet by packet; `None`: any that waits.
    #[serde(default)]
    pub group: Option<String>,
    /// Its number in the group; `None`: the one with most losses among those that are short enough to be drawn.
    #[serde(default)]
    pub number: Option<u32>,
}

/// Connections of a group that are listed.
const LISTED: usize = 200;

/// Points in time of the waits.
const BINS: usize = 400;

/// `{waits, group, number, connections, diagram}`.
pub(crate) fn trace(wanted: &Wanted, stop: &AtomicBool) -> Result<Value, Failure> {
    let (scenario, _files) = wanted.scenario.scenario()?;
    let choice = Choice {
        single: Some(wanted.variant.clone()),
        seed: wanted.seed,
        seeds: Some(1),
        ..Choice::default()
    };
    let names = scenario.variant_names();
    // As in a comparison: where queues stand in the baseline, there the mechanism is.
    let Some(plan) = placed(scenario, wanted, &choice)? else {
        return Err(Failure::new(unknown_variant(&wanted.variant, &names)));
    };
    let index = plan
        .variants
        .iter()
        .position(|variant| variant.name == wanted.variant)
        .unwrap_or(0);
    let resolved = &plan.variants[index].resolved;
    let spec = resolved.spec(plan.seeds.first().copied().unwrap_or(0));
    if spec.world.is_real() {
        return Err(Failure::new("what the kernel plays cannot be looked into"));
    }
    let mut seen = (Waits::new(resolved, BINS), Connections::new(resolved));
    observe(&spec, stop, &mut seen).map_err(Failure::new)?;
    let (waits, connections) = seen;
    let group = match &wanted.group {
        Some(name) => resolved.groups.iter().position(|group| group.name == *name),
        None => connections.interesting(),
    };
    let Some(group) = group else {
        return match &wanted.group {
            Some(name) => Err(Failure::new(format!("no group is called \"{name}\""))),
            None => Ok(
                json!({ "waits": waits.to_json(resolved), "groups": [], "connections": [], "diagram": null }),
            ),
        };
    };
    let number = wanted
        .number
        .or_else(|| connections.worth_drawing(group))
        .unwrap_or(0);
    let mut diagram = Diagram::new(resolved, group as u32, number);
    observe(&spec, stop, &mut diagram).map_err(Failure::new)?;
    Ok(json!({
        "waits": waits.to_json(resolved),
        "groups": connections.groups(),
        "group": resolved.groups[group].name,
        "number": number,
        "connections": connections.listed(group),
        "diagram": (!diagram.is_empty()).then(|| diagram.to_json()),
    }))
}

/// The plan in which the wanted variant stands as a comparison applies it.
fn placed(
    scenario: fleetfoot_lab::scenario::Scenario,
    wanted: &Wanted,
    single: &Choice,
) -> Result<Option<Plan>, Failure> {
    if wanted.variant == fleetfoot_lab::compare::BASELINE {
        return Ok(Plan::single(scenario, single)?);
    }
    let choice = Choice {
        single: None,
        only: vec![wanted.variant.clone()],
        ..single.clone()
    };
    let plan = Plan::baseline(scenario.clone(), &choice)?;
    let jobs = plan.jobs();
    let Some((job, seed)) = jobs.first().zip(plan.seeds.first()) else {
        return Ok(None);
    };
    let spec = fleetfoot_sim::spec::Spec {
        seed: *seed,
        ..job.spec.clone()
    };
    let output = crate::runs::get(&spec, || {
        fleetfoot_lab::run::simulate(&spec, &AtomicBool::new(false))
    })
    .map_err(Failure::new)?;
    let run = fleetfoot_lab::result::RunData {
        seed: *seed,
        output: std::sync::Arc::new(output),
    };
    let plan = plan.with_baseline(&[run])?;
    if plan.variants.iter().any(|variant| variant.name == wanted.variant) {
        return Ok(Some(plan));
    }
    Ok(Plan::single(scenario, single)?)
}

/// The connections of every group of a run.
#[derive(Debug)]
struct Connections {
    names: Vec<String>,
    waits: Vec<bool>,
    tcp: Vec<bool>,
    warmup: Instant,
    found: Vec<Vec<Connection>>,
    /// Group and place in `found` by flow, both directions.
    holders: BTreeMap<u32, (usize, usize)>,
}

#[derive(Debug)]
struct Connection {
    number: u32,
    start: Instant,
    last: Instant,
    segments: u32,
    lost: u32,
}

impl Connections {
    fn new(resolved: &Resolved) -> Connections {
        let groups = &resolved.groups;
        Connections {
            names: groups.iter().map(|group| group.name.clone()).collect(),
            waits: groups.iter().map(|group| group.latency_sensitive).collect(),
            tcp: vec![false; groups.len()],
            warmup: Instant::ZERO + resolved.run.warmup,
            found: groups.iter().map(|_| Vec::new()).collect(),
            holders: BTreeMap::new(),
        }
    }

    fn holder(&mut self, flow: FlowId) -> Option<&mut Connection> {
        let &(group, place) = self.holders.get(&flow.0)?;
        self.found.get_mut(group)?.get_mut(place)
    }

    /// The group whose users wait and whose connections lost most; else any that has connections.
    fn interesting(&self) -> Option<usize> {
        let lost = |group: &usize| self.found[*group].iter().map(|one| one.lost).sum::<u32>();
        let shown = (0..self.names.len()).filter(|&group| self.tcp[group]);
        let shown: Vec<usize> = shown.collect();
        let waiting = shown.iter().copied().filter(|&group| self.waits[group]);
        waiting.max_by_key(lost).or_else(|| shown.first().copied())
    }

    /// The connection of the group with most losses among those that can be drawn whole.
    fn worth_drawing(&self, group: usize) -> Option<u32> {
        let after = |one: &&Connection| one.start >= self.warmup && one.segments > 4;
        let whole = |one: &&Connection| after(one) && one.segments <= 240;
        let of = &self.found[group];
        let most = of.iter().filter(whole).max_by_key(|one| (one.lost, one.segments));
        most.or_else(|| of.iter().find(after))
            .or_else(|| of.first())
            .map(|one| one.number)
    }

    fn groups(&self) -> Vec<&str> {
        let shown = (0..self.names.len()).filter(|&group| self.tcp[group]);
        shown.map(|group| self.names[group].as_str()).collect()
    }

    /// Those of a group: the first after the warm-up.
    fn listed(&self, group: usize) -> Vec<Value> {
        let of = &self.found[group];
        let later = of.iter().filter(|one| one.start >= self.warmup);
        let earlier = of.iter().filter(|one| one.start < self.warmup);
        let mut listed: Vec<&Connection> = later.chain(earlier).take(LISTED).collect();
        listed.sort_by_key(|one| one.number);
        let shown = |one: &Connection| {
            json!({
                "number": one.number,
                "start_s": one.start.as_secs_f64(),
                "span_s": one.last.since(one.start).as_secs_f64(),
                "segments": one.segments,
                "lost": one.lost,
            })
        };
        listed.into_iter().map(shown).collect()
    }
}

impl Observer for Connections {
    fn on_app(&mut self, now: Instant, event: &AppEvent) {
        match *event {
            AppEvent::Opened {
                group,
                number,
                data,
                acks,
                ..
            } => {
                let _ = number;
                let of = &mut self.found[group as usize];
                let place = of.len();
                of.push(Connection {
                    number: place as u32,
                    start: now,
                    last: now,
                    segments: 0,
                    lost: 0,
                });
                for flow in [data, acks] {
                    self.holders.insert(flow.0, (group as usize, place));
                }
            }
            AppEvent::Closed { data } => {
                if let Some(holder) = self.holders.remove(&data.0) {
                    self.holders.retain(|_, other| *other != holder);
                }
            }
            AppEvent::Relayed { .. } => {}
        }
    }

    fn on_send(&mut self, now: Instant, flow: FlowId, _segment: &Segment) {
        if let Some(&(group, place)) = self.holders.get(&flow.0) {
            self.tcp[group] = true;
            let one = &mut self.found[group][place];
            one.segments += 1;
            one.last = now;
        }
    }

    fn on_deliver(&mut self, now: Instant, _at: LinkIndex, packet: &Packet, _sojourn: Duration) {
        if let Some(one) = self.holder(packet.flow) {
            one.last = one.last.max(now);
        }
    }

    fn on_drop(&mut self, _now: Instant, _at: LinkIndex, packet: &Packet, _reason: DropReason) {
        if let Some(one) = self.holder(packet.flow) {
            one.lost += 1;
        }
    }
}
