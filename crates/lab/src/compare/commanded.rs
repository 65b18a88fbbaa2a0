//! The recommended variant at the rate of its command.
//!
//! A shaper that makes packets wait in one's own router takes a margin of the line, and variants are simulated without it. Greedy transfers lose about as
//! much, which the answer says. But where streams, calls, films and users need most of the line by themselves, nobody gives the margin back: what
//! does not fit is lost, stands still or waits. There the variant is run once more, with the same seeds, on lines that are slower by the margin, and the
//! answer goes by that.

use super::harm::Fair;
use super::study::{Runner, StudyError, count};
use super::{Plan, ranked, words};
use crate::identity;
use crate::result::{Comparison, RunData, Variant, Versus};
use crate::run::{Batch, Demand, Job};
use fleetfoot_core::units::Rate;
use fleetfoot_sim::spec::{LinkRate, Spec};

/// The recommended variant at the rate of its command against the network as described; `None` where there is nothing to recommend, no margin,
/// or the line has it to spare.
///
/// # Errors
/// A run fails.
pub(super) fn at_command(
    plan: &Plan,
    comparison: &Comparison,
    total: &mut Batch,
    run: &mut Runner<'_>,
) -> Result<Option<Versus>, StudyError> {
    let document = &comparison.document;
    let done = document.recommended.as_ref();
    let Some(done) = done.and_then(|recommended| words::done(document, recommended)) else {
        return Ok(None);
    };
    let Some(index) = plan.variants.iter().position(|variant| variant.name == done.name) else {
        return Ok(None);
    };
    let slower = slower(plan, done, &total.runs[0]);
    if slower.is_empty() {
        return Ok(None);
    }
    let mut planned = plan.variants[index].clone();
    slow_down(&mut planned.resolved.spec, &slower);
    let spec = planned.resolved.spec.clone();
    let demand = Demand::new(&planned.resolved.groups, &plan.described.spec);
    let demand = demand.filter(|demand| demand.identity != identity::of(&spec));
    let job = Job::new(&planned.name, spec, demand);
    let seeds: Vec<u64> = total.runs[index].iter().map(|run| run.seed).collect();
    let title = format!("{} at the rate of its command", planned.name);
    let batch = run(&title, &[job], &seeds)?;
    count(total, &batch);
    if batch.interrupted {
        total.interrupted = true;
        return Ok(None);
    }
    planned.part_of = None;
    let mut there = plan.clone();
    there.variants = vec![plan.variants[0].clone(), planned];
    let mut runs = vec![total.runs[0].clone()];
    runs.extend(batch.runs);
    let both = Batch {
        runs,
        ..Batch::default()
    };
    Ok(ranked(&there, &both).variants.swap_remove(1).versus)
}

/// The links that a command of `done` holds below their rate, each with the share that is missing; none where no such line is nearly full of what is
/// needed on it.
fn slower(plan: &Plan, done: &Variant, described: &[RunData]) -> Vec<(usize, f64)> {
    let fair = Fair::new(&plan.described);
    let (mut slower, mut tight): (Vec<(usize, f64)>, bool) = (Vec::new(), false);
    for instruction in &done.instructions {
        let margin = instruction.margin.filter(|margin| *margin >= words::LEAST_MARGIN);
        let mut places = plan.places.iter();
        let place = places.find(|place| place.described() == instruction.place);
        let (Some(margin), Some(place)) = (margin, place) else {
            continue;
        };
        for &link in &place.links {
            if slower.iter().all(|(other, _)| *other != link) {
                slower.push((link, margin));
                tight |= fair.needed(link, described) > NEARLY_FULL;
            }
        }
    }
    if tight { slower } else { Vec::new() }
}

fn slow_down(spec: &mut Spec, slower: &[(usize, f64)]) {
    for &(link, margin) in slower {
        // Nobody shapes a line that follows a trace.
        if let LinkRate::Constant(rate) = &mut spec.links[link].rate {
            *rate = Rate::from_bps((rate.bps() as f64 * (1.0 - margin)) as u64);
        }
    }
}

/// A line of which more than this share is needed has no margin to spare.
const NEARLY_FULL: f64 = 0.85;
