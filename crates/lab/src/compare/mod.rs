//! From a scenario to a ranked answer: what to run ([`Plan`]), the result document ([`build`]), the ranking, and whether
//! it holds near the described network ([`sensitivity`]).

mod amounts;
mod answer;
mod asked;
mod buffers;
mod commanded;
mod crowded;
mod early;
mod echo;
pub mod exhaustive;
mod fair;
mod felt;
pub(crate) mod groups;
mod harm;
mod jitter;
mod ladder;
mod long_path;
mod losses;
mod lost;
mod notes;
pub(crate) mod numbers;
pub mod parts;
pub mod place;
mod plan;
mod ranking;
mod remarks;
pub mod search;
mod senders;
pub mod sensitivity;
mod sent;
mod significance;
mod sizes;
pub mod space;
mod step;
pub mod study;
pub(crate) mod tail;
#[cfg(test)]
mod tests;
mod tiers;
mod times;
pub mod turn_on;
mod unknown;
pub mod words;

pub use early::early;
pub use groups::json;
pub use plan::{Candidate, Choice, Plan, Planned};
pub use unknown::{nearest, unknown_variant};

use crate::metrics::units::LOOKUP_SOURCE;
use crate::result::{
    Comparison, Document, GroupInfo, Instruction, LinkInfo, PairInfo, Recommended, RunData, SCHEMA, Timing,
    Variant, VariantData,
};
use crate::run::Batch;
pub use crate::scenario::{BASELINE, shown};
use crate::statistics::{RESAMPLES, Resamples};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A result and what the ranking found beside it.
#[derive(Debug)]
struct Evaluation {
    comparison: Comparison,
    rows: ranking::Rows,
}

/// The ranking alone, without the intervals that the rest of the result needs.
struct Ranked {
    rows: ranking::Rows,
    variants: Vec<Variant>,
    recommended: Option<Recommended>,
}

fn ranked(plan: &Plan, batch: &Batch) -> Ranked {
    let mut variants = summaries(plan, batch, &[], &|runs| Arc::new(Resamples::none(runs)));
    let rows = ranking::rank(plan, batch, &Resampling::new(plan), &mut variants);
    Ranked {
        recommended: answer::recommended(plan, &rows, &variants),
        rows,
        variants,
    }
}

/// Every variant over its runs; `resamples` of so many runs give the intervals.
fn summaries(
    plan: &Plan,
    batch: &Batch,
    bottleneck: &[String],
    resamples: &(dyn Fn(usize) -> Arc<Resamples> + Sync),
) -> Vec<Variant> {
    let loss_free = plan.described.run.loss_free.as_deref();
    let loss_free = loss_free.and_then(|name| plan.variants.iter().position(|variant| variant.name == name));
    let loss_free = loss_free
        .and_then(|index| batch.runs.get(index))
        .map(Vec::as_slice);
    let mut variants: Vec<Variant> = plan
        .variants
        .par_iter()
        .zip(batch.runs.par_iter())
        .map(|(planned, runs)| {
            let resamples = resamples(runs.len());
            let coarse = plan.brief.then(|| Resamples::none(runs.len()));
            let elsewhere = coarse.as_ref().unwrap_or(&resamples);
            groups::variant(planned, runs, loss_free, bottleneck, [&resamples, elsewhere])
        })
        .collect();
    sizes::leave_out_empty(&mut variants);
    variants
}

/// Builds the result from finished runs, one list per variant of `plan`.
pub fn build(plan: &Plan, batch: &Batch, command: &str) -> Comparison {
    evaluate(plan, batch, command).comparison
}

/// Answer and notes, when everything else is known.
fn conclude(plan: &Plan, rows: &ranking::Rows, batch: &Batch, comparison: &mut Comparison) {
    let document = &mut comparison.document;
    document.timing = Some(timing(batch));
    document.answer = match plan.variants.len() {
        1 if plan.choice().search.is_some() && !document.interrupted => answer::nothing_to_try(),
        1 => groups::answer(&document.variants[0]),
        _ => answer::answer(plan, rows, batch, document),
    };
    document.notes = notes::notes(plan, batch, document);
}

fn evaluate(plan: &Plan, batch: &Batch, command: &str) -> Evaluation {
    let bottleneck = groups::bottleneck(&plan.described, batch.runs.first().map_or(&[], Vec::as_slice));
    let resampling = Resampling::new(plan);
    let mut variants = summaries(plan, batch, &bottleneck, &|runs| resampling.of(runs));
    let rows = ranking::rank(plan, batch, &resampling, &mut variants);
    sizes::fill(plan, batch, &resampling, &mut variants);
    remarks::fill(plan, batch, &mut variants);
    let recommended = answer::recommended(plan, &rows, &variants);
    let instructions: Vec<_> = (0..variants.len())
        .map(|index| instructions(plan, index, &variants))
        .collect();
    for (variant, instructions) in variants.iter_mut().zip(instructions) {
        variant.instructions = instructions;
    }

    let single = plan.variants.len() == 1;
    let title = plan.scenario.title();
    let document = Document {
        live: None,
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
        lookup_energy_source: LOOKUP_SOURCE.to_owned(),
        answer: String::new(),
        recommended,
        refuted: None,
        notes: Vec::new(),
        fit: plan.described.fit.clone(),
        interrupted: batch.interrupted,
        commit: String::new(),
        queues: plan.standing.clone(),
        sensitivity: Vec::new(),
        jittered: None,
        as_commanded: None,
        timing: Some(timing(batch)),
        variants,
    };
    // The scenario as described, or the only variant that was run.
    let first = plan
        .variants
        .first()
        .map_or(&plan.described, |first| &first.resolved);
    let mut comparison = Comparison {
        hash: plan.hash(),
        scenario_toml: plan.scenario.to_toml(),
        command: command.to_owned(),
        groups: plan.described.groups.iter().map(GroupInfo::of).collect(),
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
        document,
    };
    conclude(plan, &rows, batch, &mut comparison);
    Evaluation { comparison, rows }
}

/// How to turn a variant on: where some places alone make the difference, there; what the others add is optional.
fn instructions(plan: &Plan, index: usize, variants: &[Variant]) -> Vec<Instruction> {
    let of = |index: usize| {
        let mut instructions = turn_on::instructions_of(plan, index, &variants[index], &variants[0]);
        let planned = &plan.variants[index];
        let places = planned.part_of.as_ref().map(|_| planned.places.clone());
        let part = places
            .filter(|places| !places.is_empty())
            .map(parts::Part::Places);
        turn_on::give_results_of_nearest(&mut instructions, plan, variants, part.as_ref());
        instructions
    };
    let mut all = of(index);
    // What saves most by itself comes first.
    all.sort_by(|a, b| parts::by_weight(plan, variants, index, &a.place, &b.place));
    let win = |index: usize| variants[index].versus.as_ref().and_then(|versus| versus.win);
    let Some(part) = parts::part_that_matters(plan, variants, index) else {
        turn_on::check_together(&mut all);
        return all;
    };
    let mut instructions = of(part);
    instructions.sort_by(|a, b| parts::by_weight(plan, variants, index, &a.place, &b.place));
    turn_on::check_together(&mut instructions);
    let [one, all_of_it] = [win(part), win(index)].map(|win| win.unwrap_or(0.0));
    all.retain(|one| instructions.iter().all(|first| first.place != one.place));
    if all_of_it < one + parts::LEAST_SAVED || parts::adds_nothing_sure(variants, part, index) {
        return instructions; // The others add nothing.
    }
    let idle = |other: &Instruction| parts::saves_nothing_alone(plan, variants, index, &other.place);
    if !all.iter().all(idle) {
        all.retain(|other| !idle(other));
    }
    let versus = |index: usize| variants[index].versus.as_ref();
    let cost = versus(part).zip(versus(index));
    let cost = cost.map_or_else(String::new, |(one, all)| parts::cost_of_the_rest(plan, one, all));
    let places = plan.variants[index].places.len();
    let with = if places > 2 {
        "with all places"
    } else {
        "with this place too"
    };
    let [one, all_of_it] = [one, all_of_it].map(words::percent);
    for other in &mut all {
        other.check = None;
        other.why = format!(
            "Optional: {with} {all_of_it} are saved instead of {one}{cost}. {}",
            other.why
        );
    }
    instructions.extend(all);
    instructions
}

/// What results show of a directed link.
pub fn link_info(link: &fleetfoot_sim::spec::LinkSpec) -> LinkInfo {
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
    made: std::sync::Mutex<BTreeMap<usize, Arc<Resamples>>>,
}

impl Resampling {
    fn new(plan: &Plan) -> Resampling {
        Resampling {
            seed: plan.seeds.first().copied().unwrap_or(0),
            made: std::sync::Mutex::default(),
        }
    }

    pub(crate) fn of(&self, seeds: usize) -> Arc<Resamples> {
        let mut made = self
            .made
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let resamples = || Arc::new(Resamples::new(self.seed, seeds, RESAMPLES));
        made.entry(seeds).or_insert_with(resamples).clone()
    }
}
