//! One run over time: how long packets wait in the queues, which connections there were, and one of them packet by packet.

use crate::failure::Failure;
use crate::scenario::Described;
use crate::shared::plan_of;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::{Packet, Segment};
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_lab::compare::{BASELINE, Plan, unknown_variant};
use fleetfoot_lab::report::diagram::Diagram;
use fleetfoot_lab::report::waits::Waits;
use fleetfoot_lab::result::RunData;
use fleetfoot_lab::run::{observe, simulate};
use fleetfoot_lab::scenario::Resolved;
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::spec::LinkIndex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A run that is wanted over time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The scenario.
    pub scenario: Described,
    /// The variant or mechanism; `as described` is the scenario as it stands.
    pub variant: String,
    /// Indices of the places that queue mechanisms are applied to; `None`: where queues stand.
    #[serde(default)]
    pub chosen: Option<Vec<usize>>,
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
    let plan = placed(wanted, stop)?;
    let found = plan
        .variants
        .iter()
        .find(|variant| variant.name == wanted.variant);
    let Some(variant) = found else {
        let reason = plan.inapplicable.first().map(|entry| entry.reason.as_str());
        let name = &wanted.variant;
        return Err(Failure::new(match reason {
            Some(reason) => format!("`{name}` does not apply here: {reason}"),
            None => unknown_variant(name, &plan.scenario.variant_names()),
        }));
    };
    let resolved = &variant.resolved;
    let spec = resolved.spec(plan.seeds.first().copied().unwrap_or(0));
    if spec.world.is_real() {
        return Err(Failure::new("what the kernel plays cannot be looked into"));
    }
    let asked = match &wanted.group {
        Some(name) => {
            let group = resolved.groups.iter().position(|group| group.name == *name);
            Some(group.ok_or_else(|| Failure::new(format!("no group is called \"{name}\"")))?)
        }
        None => None,
    };
    // Which connection is drawn follows from the run where it is not said.
    let drawn = |(group, number): (usize, u32)| Diagram::new(resolved, group as u32, number);
    let mut seen = (Waits::new(resolved, BINS), Connections::new(resolved));
    let known = match asked.zip(wanted.number) {
        Some(place) => {
            let mut all = (seen, drawn(place));
            observe(&spec, stop, &mut all).map_err(Failure::new)?;
            seen = all.0;
            Some((place, all.1))
        }
        None => {
            observe(&spec, stop, &mut seen).map_err(Failure::new)?;
            None
        }
    };
    let (waits, connections) = seen;
    let ((group, number), diagram) = match known {
        Some(known) => known,
        None => {
            let Some(group) = asked.or_else(|| connections.interesting()) else {
                return Ok(
                    json!({ "waits": waits.to_json(resolved), "groups": [], "connections": [], "diagram": null }),
                );
            };
            let number = wanted.number.or_else(|| connections.worth_drawing(group));
            let place = (group, number.unwrap_or(0));
            let over = AtomicBool::new(false);
            let mut seen = (drawn(place), Ending::new(place, &over));
            observe(&spec, &over, &mut seen).map_err(Failure::new)?;
            (place, seen.0)
        }
    };
    Ok(json!({
        "waits": waits.to_json(resolved),
        "groups": connections.groups(),
        "group": resolved.groups[group].name,
        "number": number,
        "connections": connections.listed(group),
        "diagram": (!diagram.is_empty()).then(|| diagram.to_json()),
    }))
}

/// The plan in which the wanted variant stands as a comparison applies it: where queues stand in the baseline, there the mechanism is.
fn placed(wanted: &Wanted, stop: &AtomicBool) -> Result<Plan, Failure> {
    let described = &wanted.scenario;
    let plan = |variant: &str, chosen: &[usize]| plan_of(described, variant, chosen, wanted.seed);
    if wanted.variant == BASELINE {
        return plan(BASELINE, &[]);
    }
    if let Some(chosen) = &wanted.chosen {
        return plan(&wanted.variant, chosen);
    }
    let baseline = plan(BASELINE, &[])?;
    let seed = baseline.seeds.first().copied().unwrap_or(0);
    let spec = baseline.described.spec(seed);
    let output = crate::runs::get(&spec, || simulate(&spec, stop)).map_err(Failure::new)?;
    let run = RunData {
        seed,
        output: Arc::new(output),
    };
    plan(&wanted.variant, &baseline.with_standing(&[run]).chosen)
}

/// Ends a run when a connection is over, of which more is not wanted.
struct Ending<'a> {
    group: u32,
    number: u32,
    opened: u32,
    data: Option<FlowId>,
    over: &'a AtomicBool,
}

impl Ending<'_> {
    fn new((group, number): (usize, u32), over: &AtomicBool) -> Ending<'_> {
        Ending {
            group: group as u32,
            number,
            opened: 0,
            data: None,
            over,
        }
    }
}

impl Observer for Ending<'_> {
    fn on_app(&mut self, _now: Instant, event: &AppEvent) {
        match *event {
            AppEvent::Opened { group, data, .. } if group == self.group => {
                if self.opened == self.number {
                    self.data = Some(data);
                }
                self.opened += 1;
            }
            AppEvent::Closed { data } if self.data == Some(data) => {
                self.over.store(true, Ordering::Relaxed);
            }
            AppEvent::Opened { .. } | AppEvent::Closed { .. } | AppEvent::Relayed { .. } => {}
        }
    }
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
