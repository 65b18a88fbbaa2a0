//! From a scenario to a ranked answer: what to run ([`Plan`]), the result document ([`build`]), the ranking, and whether
//! it holds near the described network ([`sensitivity`]).

pub(crate) mod groups;
mod notes;
mod ranking;
pub mod sensitivity;
#[cfg(test)]
mod tests;
pub mod units;

use crate::mechanisms::{self, Mechanism};
use crate::result::{
    Comparison, Document, GroupInfo, Inapplicable, LinkInfo, PairInfo, RunData, SCHEMA, Timing, Variant,
    VariantData,
};
use crate::run::{Batch, Demand, Job};
use crate::scenario::{Error, ErrorKind, Resolved, Scenario, Setting};
use crate::statistics::{RESAMPLES, Resamples};
use std::collections::BTreeMap;

/// Name of the first variant of every comparison.
pub const BASELINE: &str = "as described";

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// As it stands.
    pub described: Resolved,
    /// What is compared; the first is the scenario as described.
    pub variants: Vec<Planned>,
    /// Mechanisms that do not apply, with the reason.
    pub inapplicable: Vec<Inapplicable>,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
}

/// A variant to run.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// What it changes.
    pub set: Setting,
    /// What it becomes.
    pub resolved: Resolved,
    /// How to switch it on outside Fleetfoot, if known.
    pub turn_on: Option<String>,
}

/// What to compare.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Also the sensible pairs of mechanisms.
    pub pairs: bool,
    /// Only the scenario itself, or this variant or mechanism: for single runs.
    pub single: Option<String>,
    /// The first seed, instead of the scenario's.
    pub seed: Option<u64>,
    /// Number of seeds, instead of the scenario's.
    pub seeds: Option<u32>,
}

impl Plan {
    /// Plans a comparison: the scenario's variants or, if it has none, every mechanism that applies.
    ///
    /// # Errors
    /// A variant cannot be resolved.
    pub fn compare(scenario: Scenario, choice: &Choice) -> Result<Plan, Error> {
        let mut plan = Plan::described(scenario, choice)?;
        let named: Vec<_> = plan.scenario.variants().to_vec();
        for variant in &named {
            let resolved = plan.scenario.resolve(&variant.set)?;
            plan.variants.push(Planned {
                name: variant.name.clone(),
                turn_on: turn_on(&variant.set, &plan.described),
                set: variant.set.clone(),
                resolved,
            });
        }
        if named.is_empty() {
            for mechanism in mechanisms::ENTRIES {
                plan.add(&[mechanism]);
            }
        }
        if choice.pairs {
            for (first, second) in mechanisms::PAIRS {
                if let (Some(first), Some(second)) = (mechanisms::find(first), mechanisms::find(second)) {
                    plan.add(&[first, second]);
                }
            }
        }
        Ok(plan)
    }

    /// Plans runs of the scenario as described, or of the variant or mechanism `choice.single`, alone.
    ///
    /// # Errors
    /// It cannot be resolved. `Ok(None)` if there is nothing of this name.
    pub fn single(scenario: Scenario, choice: &Choice) -> Result<Option<Plan>, Error> {
        let mut plan = Plan::described(scenario, choice)?;
        let Some(name) = choice.single.as_deref().filter(|name| *name != BASELINE) else {
            return Ok(Some(plan));
        };
        let variant = plan
            .scenario
            .variants()
            .iter()
            .find(|variant| variant.name == name);
        let set = match (variant, mechanisms::find(name)) {
            (Some(variant), _) => variant.set.clone(),
            (None, Some(mechanism)) => {
                if let Some(reason) = mechanism.missing(&plan.described) {
                    let message = format!("`{name}` does not apply here: {reason}");
                    return Err(Error::of_file(plan.scenario.title(), message).of_kind(ErrorKind::Invalid));
                }
                mechanism.setting(&plan.described)
            }
            (None, None) => return Ok(None),
        };
        plan.variants = vec![Planned {
            name: name.to_owned(),
            resolved: plan.scenario.resolve(&set)?,
            turn_on: turn_on(&set, &plan.described),
            set,
        }];
        Ok(Some(plan))
    }

    fn described(scenario: Scenario, choice: &Choice) -> Result<Plan, Error> {
        let described = scenario.resolve(&Setting::none())?;
        let first = choice.seed.unwrap_or(described.run.seed);
        let count = u64::from(choice.seeds.unwrap_or(described.run.seeds));
        Ok(Plan {
            variants: vec![Planned {
                name: BASELINE.to_owned(),
                set: Setting::none(),
                resolved: described.clone(),
                turn_on: None,
            }],
            seeds: (0..count).map(|number| first.wrapping_add(number)).collect(),
            inapplicable: Vec::new(),
            described,
            scenario,
        })
    }

    fn add(&mut self, parts: &[&'static Mechanism]) {
        let name = parts.iter().map(|part| part.name).collect::<Vec<_>>().join(" + ");
        let set = parts.iter().fold(Setting::none(), |set, part| {
            set.and(&part.setting(&self.described))
        });
        for part in parts {
            if let Err(reason) = part.apply(&self.scenario, &self.described) {
                let reason = if parts.len() == 1 {
                    reason
                } else {
                    format!("{}: {reason}", part.name)
                };
                self.inapplicable.push(Inapplicable { name, reason });
                return;
            }
        }
        match self.scenario.resolve(&set) {
            Ok(resolved) => self.variants.push(Planned {
                name,
                turn_on: Some(
                    parts
                        .iter()
                        .map(|part| part.turn_on)
                        .collect::<Vec<_>>()
                        .join("; "),
                ),
                set,
                resolved,
            }),
            Err(error) => self.inapplicable.push(Inapplicable {
                name,
                reason: error.message.into_string(),
            }),
        }
    }

    /// The runs to make, without the seeds.
    pub fn jobs(&self) -> Vec<Job> {
        self.variants
            .iter()
            .map(|variant| {
                let resolved = &variant.resolved;
                let demand = Demand::of_variant(resolved, &self.described);
                Job::new(&variant.name, resolved.spec.clone(), demand)
            })
            .collect()
    }

    /// Identity of scenario, variants, seeds and program (hexadecimal).
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for text in [env!("CARGO_PKG_VERSION"), self.scenario.title()] {
            hasher.update(text.as_bytes());
            hasher.update(&[0]);
        }
        for job in self.jobs() {
            for text in [&job.name, &job.identity] {
                hasher.update(text.as_bytes());
                hasher.update(&[0]);
            }
        }
        for seed in &self.seeds {
            hasher.update(&seed.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// How to switch on the mechanisms whose settings a setting contains.
fn turn_on(set: &Setting, described: &Resolved) -> Option<String> {
    let given: Vec<(String, toml::Value)> = set
        .iter()
        .map(|(path, value)| (path.to_owned(), value.clone()))
        .collect();
    let contains = |wanted: &Setting| {
        wanted
            .iter()
            .all(|(path, value)| given.iter().any(|(other, has)| other == path && has == value))
    };
    let texts: Vec<&str> = mechanisms::ENTRIES
        .iter()
        .filter(|entry| {
            // An entry that a larger matching entry contains adds nothing.
            contains(&entry.setting(described))
                && !mechanisms::ENTRIES.iter().any(|larger| {
                    larger.set.len() > entry.set.len()
                        && contains(&larger.setting(described))
                        && entry.set.iter().all(|pair| larger.set.contains(pair))
                })
        })
        .map(|entry| entry.turn_on)
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Builds the result from finished runs, one list per variant of `plan`.
pub fn build(plan: &Plan, batch: &Batch, command: &str) -> Comparison {
    let resampling = Resampling::new(plan);
    let bottleneck = groups::bottleneck(&plan.described, batch.runs.first().map_or(&[], Vec::as_slice));
    let loss_free = plan.described.run.loss_free.as_deref();
    let loss_free = loss_free.and_then(|name| plan.variants.iter().position(|variant| variant.name == name));
    let loss_free = loss_free
        .and_then(|index| batch.runs.get(index))
        .map(Vec::as_slice);
    let mut variants: Vec<Variant> = plan
        .variants
        .iter()
        .zip(&batch.runs)
        .map(|(planned, runs)| {
            let resamples = resampling.of(runs.len());
            groups::variant(planned, runs, loss_free, &bottleneck, &resamples)
        })
        .collect();
    groups::leave_out_empty_sizes(&mut variants);
    let rows = ranking::rank(plan, batch, &resampling, &mut variants);

    let single = plan.variants.len() == 1;
    let title = plan.scenario.title();
    let document = Document {
        schema: SCHEMA.to_owned(),
        fleetfoot: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: title.to_owned(),
        seeds: plan.seeds.clone(),
        duration_s: plan.described.run.duration.as_secs_f64(),
        question: if single {
            format!("How long do the transfers of \"{title}\" take?")
        } else {
            format!(
                "What would make the short transfers of \"{title}\" finish sooner, and what would it cost?"
            )
        },
        lookup_energy_source: units::LOOKUP_SOURCE.to_owned(),
        answer: if single {
            groups::answer(&variants[0])
        } else {
            rows.answer(&variants)
        },
        timing: Some(timing(batch)),
        variants,
    };
    // The scenario as described, or the only variant that was run.
    let first = plan
        .variants
        .first()
        .map_or(&plan.described, |first| &first.resolved);
    Comparison {
        hash: plan.hash(),
        scenario_toml: plan.scenario.to_toml(),
        command: command.to_owned(),
        groups: plan
            .described
            .groups
            .iter()
            .map(|group| GroupInfo {
                name: group.name.clone(),
                kind: group.kind.to_owned(),
                latency_sensitive: group.latency_sensitive,
            })
            .collect(),
        links: first.spec.links.iter().map(link_info).collect(),
        bottleneck,
        pairs: first
            .base_rtts()
            .iter()
            .map(|pair| PairInfo {
                from: pair.from.clone(),
                to: pair.to.clone(),
                base_rtt_s: pair.rtt.as_secs_f64(),
            })
            .collect(),
        warmup_s: plan.described.run.warmup.as_secs_f64(),
        duration_s: plan.described.run.duration.as_secs_f64(),
        variants: plan
            .variants
            .iter()
            .zip(&batch.runs)
            .map(|(planned, runs)| VariantData {
                name: planned.name.clone(),
                runs: runs.clone(),
                traces: Vec::new(),
            })
            .collect(),
        inapplicable: plan.inapplicable.clone(),
        sensitivity: Vec::new(),
        notes: notes::notes(plan, batch, &document),
        document,
    }
}

fn link_info(link: &fleetfoot_sim::spec::LinkSpec) -> LinkInfo {
    let rate = match &link.rate {
        fleetfoot_sim::spec::LinkRate::Constant(rate) => rate.to_string(),
        fleetfoot_sim::spec::LinkRate::Trace { .. } => String::from("trace"),
    };
    let values = &link.queue_values;
    LinkInfo {
        name: link.name.clone(),
        direction: direction(link.forward).to_owned(),
        rate,
        delay_s: link.delay.as_secs_f64(),
        queue: link.queue.to_owned(),
        parameters: values
            .table()
            .iter()
            .map(|parameter| (parameter.name.to_owned(), shown(values.value(parameter.name))))
            .collect(),
    }
}

/// A parameter's value as text.
pub fn shown(value: fleetfoot_core::parameter::Value) -> String {
    use fleetfoot_core::parameter::Value;
    use fleetfoot_core::queue::Limit;
    match value {
        Value::Auto => String::from("automatic"),
        Value::Limit(Limit::Packets(packets)) => format!("{packets} packets"),
        Value::Limit(Limit::Bytes(bytes)) | Value::Bytes(bytes) => bytes.to_string(),
        Value::Limit(Limit::Unlimited) => String::from("unlimited"),
        Value::Duration(span) => span.to_string(),
        Value::Rate(rate) => rate.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Choice(word) => word.to_owned(),
    }
}

fn direction(forward: bool) -> &'static str {
    if forward { "forward" } else { "reverse" }
}

fn timing(batch: &Batch) -> Timing {
    let runs = || batch.runs.iter().flatten();
    Timing {
        cpu_s: batch.cpu_s,
        wall_s: batch.wall_s,
        events: runs().map(|run: &RunData| run.output.events).sum(),
        simulated_s: runs().map(|run| run.output.ended.as_secs_f64()).sum(),
    }
}

/// Resamples for the numbers of seeds that occur.
pub(crate) struct Resampling {
    seed: u64,
    made: std::sync::Mutex<BTreeMap<usize, std::sync::Arc<Resamples>>>,
}

impl Resampling {
    fn new(plan: &Plan) -> Resampling {
        Resampling {
            seed: plan.seeds.first().copied().unwrap_or(0),
            made: std::sync::Mutex::default(),
        }
    }

    pub(crate) fn of(&self, seeds: usize) -> std::sync::Arc<Resamples> {
        let mut made = self
            .made
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let resamples = || std::sync::Arc::new(Resamples::new(self.seed, seeds, RESAMPLES));
        made.entry(seeds).or_insert_with(resamples).clone()
    }
}
