//! The recommended variant at the rate of its command.
//!
//! A shaper that makes packets wait in one's own router takes a margin of the line, and variants are simulated without it. Greedy transfers lose about as
//! much, which the answer says. But where streams, calls, films and users need most of the line by themselves, or most of their share of it under a fair
//! queue, nobody gives the margin back: what does not fit is lost, stands still or waits. So the variant is run once more, with the same seeds, on lines of
//! the rate of the command, which count the bytes that the shaper counts. The answer goes by that where the line is needed whole, where
//! acknowledgments fill it, or where a group fares worse than a line that is slower by the margin explains.

use super::harm::Fair;
use super::ranking::WORTHWHILE;
use super::study::{Runner, StudyError, count};
use super::{Plan, ranked, turn_on, words};
use crate::identity;
use crate::result::{Comparison, Ratio, Variant, Versus};
use crate::run::{Batch, Demand, Job};
use fleetfoot_sim::spec::{LinkRate, Losses, Spec};

/// The recommended variant at the rate of its command against the network as described; `None` where there is nothing to recommend, no margin,
/// or nobody misses it. `may` is asked where it is to be run.
///
/// # Errors
/// A run fails.
pub(super) fn at_command(
    plan: &Plan,
    comparison: &Comparison,
    total: &mut Batch,
    may: impl FnOnce() -> bool,
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
    let slower = slower(plan, done, index);
    if slower.is_empty() || !may() {
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
    let there = ranked(&there, &both).variants.swap_remove(1).versus;
    let fair = Fair::new(&plan.described);
    let needed_whole = slower
        .iter()
        .any(|line| fair.needed(line.link, &total.runs[0]) > MOST_NEEDED);
    let missed = |there: &Versus| {
        let margin = slower.iter().map(|line| line.margin).fold(0.0, f64::max);
        let own = done.versus.as_ref();
        own.is_some_and(|own| is_missed(plan, own, there, margin))
    };
    let goes_by_it =
        |there: &Versus| needed_whole || turn_on::carries_acknowledgments(plan, done) || missed(there);
    Ok(there.filter(goes_by_it))
}

/// Whether the recommended variant wins more than it harms at the rate of its command too.
pub(super) fn pays(there: &Versus) -> bool {
    let win = there.win.unwrap_or(0.0);
    let net = win - there.harm.map_or(0.0, |harm| harm.value);
    there.significant && win >= WORTHWHILE && net > 0.0
}

/// A link behind a shaper.
struct Slower {
    link: usize,
    /// What it carries less, as a share.
    margin: f64,
    shaped: turn_on::Shaped,
}

/// The links that a command of `done`, the variant at `index`, holds below their rate.
fn slower(plan: &Plan, done: &Variant, index: usize) -> Vec<Slower> {
    let mut slower: Vec<Slower> = Vec::new();
    for instruction in &done.instructions {
        let margin = instruction.margin.filter(|margin| *margin >= words::LEAST_MARGIN);
        let mut places = plan.places.iter();
        let place = places.find(|place| place.described() == instruction.place);
        let shaped = place.and_then(|place| turn_on::shaped(plan, index, place, done));
        let (Some(margin), Some(place), Some(shaped)) = (margin, place, shaped) else {
            continue;
        };
        for &link in &place.links {
            if slower.iter().all(|other| other.link != link) {
                slower.push(Slower { link, margin, shaped });
            }
        }
    }
    slower
}

fn slow_down(spec: &mut Spec, slower: &[Slower]) {
    for line in slower {
        let link = &mut spec.links[line.link];
        // Nobody shapes a line that follows a trace.
        if let LinkRate::Constant(rate) = &mut link.rate {
            *rate = line.shaped.rate;
            link.framing = line.shaped.framing;
        }
    }
}

/// Whether a group that waits has times at the rate of the command, or any group a harm, beyond what a line that is slower by `margin` explains. `own` is the
/// variant at the line's rate.
fn is_missed(plan: &Plan, own: &Versus, there: &Versus, margin: f64) -> bool {
    let groups = own.groups.iter().zip(&there.groups);
    let known = plan.described.groups.iter().zip(&plan.described.spec.groups);
    groups.zip(known).any(|((own, there), (info, spec))| {
        let times = own.fct_mean_ratio.zip(there.fct_mean_ratio);
        let later = times.is_some_and(|(own, there)| {
            let visible =
                there.value - own.value >= VISIBLE && there.value >= own.value * (1.0 + margin + VISIBLE);
            visible || there.value >= own.value * MUCH_LATER
        });
        // Greedy transfers lose what is left unused for all.
        let explained = match spec.traffic.is_elastic() {
            true => GREEDY * margin,
            false => 0.0,
        };
        let harmed = |harm: Option<Ratio>| harm.map_or(0.0, |harm| harm.value.max(0.0));
        let more = there.harm.is_some_and(|harm| harm.significant)
            && harmed(there.harm) >= harmed(own.harm) + explained + MORE_HARM;
        let is_late = info.latency_sensitive && later;
        is_late || more && (!info.latency_sensitive || info.kind.facts().losses != Losses::Repaired)
    })
}

/// A line of which more than this share is needed by those who cannot do with less has no margin to spare.
const MOST_NEEDED: f64 = 0.85;

/// Times that grow by this share of those of the network as described, and as much more than the margin explains, are later.
const VISIBLE: f64 = 0.05;

/// Times that grow by this factor are later, however short they are beside those of the network as described.
const MUCH_LATER: f64 = 1.5;

/// Greedy transfers lose up to so many times the margin of a shaper: what is left unused is theirs first.
const GREEDY: f64 = 1.5;

/// Harm that grows by this much, beside what greedy transfers lose anyway, is not explained.
const MORE_HARM: f64 = 0.02;
