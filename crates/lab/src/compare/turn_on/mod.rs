//! How to turn a variant on in the network that was described: at which device, by which command with the network's own
//! numbers, why there, and what to measure afterwards.
//!
//! A queue is changed where packets wait. Where that is a modem or a device of the provider, nobody can log in: a shaper in
//! one's own router, a little slower than the line, makes them wait there instead (`shaper`; docs/turn-on.md). What a
//! variant does to queues and endpoints is read off its own settings, so that variants of a file get their commands too.

mod carried;
mod check;
mod controllers;
mod endpoints;
mod htb;
mod idle;
mod line;
mod one_port;
mod queues;
mod router;
mod routes;
mod shaper;
#[cfg(test)]
mod tests;

use super::parts::Part;
use super::place::Place;
use super::{Plan, Planned, words};
use crate::mechanisms::Effort;
use crate::memory;
use crate::result::{Instruction, Variant};
use crate::scenario::Medium;
use carried::Carried;
use fleetfoot_sim::spec::LinkSpec;
pub(super) use line::Shaped;
pub(super) use one_port::{clash, said as said_of_clash};
pub(super) use queues::beyond_tc;

/// Where a variant cannot be had, or the commands turn on another one, the results of that one stand in the instruction: what is typed is
/// what is expected.
pub(super) fn give_results_of_nearest(
    instructions: &mut [Instruction],
    plan: &Plan,
    variants: &[Variant],
    part: Option<&Part>,
) {
    for one in instructions {
        let Some(name) = &one.nearest else { continue };
        // Of a part, the same part of the nearest one.
        let place = part.map(|part| part.name(name, plan));
        let wanted = place.as_ref().unwrap_or(name);
        let named = |variant: &&Variant| variant.name == *wanted;
        let Some((variant, baseline)) = variants.iter().find(named).zip(variants.first()) else {
            one.check = None;
            continue;
        };
        let there = plan
            .variants
            .iter()
            .position(|planned| planned.name == *wanted)
            .map_or_else(Vec::new, |index| instructions_of(plan, index, variant, baseline));
        let same = there.into_iter().find(|other| other.place == one.place);
        one.check = same.and_then(|other| other.check);
        if let Some(versus) = &variant.versus {
            one.needs
                .push_str(&format!(" In this comparison {}.", words::in_short(name, versus)));
        }
    }
}

/// Says what to check once, after the last place, where several are to be changed: what was simulated is all of them together.
pub fn check_together(instructions: &mut [Instruction]) {
    let several = instructions
        .first()
        .is_some_and(|first| instructions.iter().any(|one| one.place != first.place));
    let Some((last, others)) = instructions.split_last_mut().filter(|_| several) else {
        return;
    };
    for one in others {
        one.check = None;
    }
    last.check = last
        .check
        .take()
        .map(|check| format!("With all of it turned on: {check}"));
}

/// What to do for the variant at `index` of `plan`, of which these are the results.
pub fn instructions_of(plan: &Plan, index: usize, variant: &Variant, baseline: &Variant) -> Vec<Instruction> {
    with_results(plan, index, Some(Results { variant, baseline }))
}

/// What the commands of the variant at `index`, of which these are the results, send into the line at `place`; `None` without a shaper.
pub(super) fn shaped(plan: &Plan, index: usize, place: &Place, results: &Variant) -> Option<Shaped> {
    shaper::shaped_at(
        plan,
        plan.variants.get(index)?,
        place,
        Carried::crossing(plan, place, results),
    )
}

/// Whether most of what crosses a line behind a shaper of `done` has no payload.
pub(super) fn carries_acknowledgments(plan: &Plan, done: &Variant) -> bool {
    let mut shapers = done.instructions.iter().filter(|one| one.margin.is_some());
    shapers.any(|one| {
        let mut places = plan.places.iter();
        let place = places.find(|place| place.described() == one.place);
        let carried = place.and_then(|place| Carried::at(plan, place, done));
        carried.is_some_and(|carried| carried.is_mostly_empty())
    })
}

/// Whether the queue of the variant at `index` is had by a shaper beside a line whose rate varies, which it can only follow: simulated is the
/// device at the line, which knows the rate.
pub(super) fn follows(plan: &Plan, index: usize) -> bool {
    plan.variants.get(index).is_some_and(|planned| {
        let mut places = planned.places.iter().filter_map(|&place| plan.places.get(place));
        places.any(|place| shaper::follows_at(plan, planned, place))
    })
}

/// What was measured of a variant and of the network as described.
#[derive(Clone, Copy)]
struct Results<'a> {
    variant: &'a Variant,
    baseline: &'a Variant,
}

/// Whether the user can turn a variant on: none of its mechanisms needs a patch or exists nowhere but in Fleetfoot, and
/// each place where it acts takes it, or a command turns on what stands in for it, and no port needs two queues.
pub(super) fn can_be_had(plan: &Plan, index: usize) -> bool {
    let mechanisms = plan
        .variants
        .get(index)
        .map_or(&[][..], |planned| &planned.mechanisms);
    let patch = |mechanism: &&crate::mechanisms::Mechanism| mechanism.effort >= Effort::Patch;
    let clashes = plan
        .variants
        .get(index)
        .is_some_and(|planned| clash(plan, planned).is_some());
    !clashes && !mechanisms.iter().any(patch) && missing_at(plan, index).is_none()
}

/// The first place where nobody can have a variant, whatever they install: the device there is another's, or has queues of its own.
pub(super) fn missing_at(plan: &Plan, index: usize) -> Option<Missing> {
    let instructions = with_results(plan, index, None);
    let mut missing = instructions.into_iter().filter(|one| one.commands.is_empty());
    missing.find_map(|one| {
        Some(Missing {
            place: one.place,
            nearest: one.nearest?,
            follows: follows(plan, index),
        })
    })
}

/// That the variant at `index` needs more memory at the port of a switch than the scenario gives it; `None`: it does not.
pub(super) fn needs_memory(plan: &Plan, index: usize) -> Option<String> {
    let planned = plan.variants.get(index)?;
    let mut places = planned.places.iter().filter_map(|&place| plan.places.get(place));
    places.find_map(|place| {
        let &link = place.links.first()?;
        memory_beyond(plan, planned.resolved.spec.links.get(link)?, place)
    })
}

/// That `link` as a variant has it, at `place`, needs more memory of a switch than as described: a port has what its switch gives it.
fn memory_beyond(plan: &Plan, link: &LinkSpec, place: &Place) -> Option<String> {
    let &index = place.links.first()?;
    let medium = plan.described.links_info.get(index)?.medium;
    let has = queues::room_of(plan.described.spec.links.get(index)?)?;
    let needs = queues::room_of(link)?;
    let beyond = medium == Some(Medium::Switch) && needs > has;
    beyond.then(|| {
        format!(
            " It needs {} of memory at {}, to which the scenario gives {}: only a switch that can give one port so much has it.",
            memory::shown(needs),
            place.described(),
            memory::shown(has)
        )
    })
}

/// Where a variant cannot be had.
pub(super) struct Missing {
    /// The place, in the user's words.
    pub(super) place: String,
    /// The variant that is nearest there.
    pub(super) nearest: String,
    /// Whether it is because nothing but that follows a rate that varies.
    follows: bool,
}

impl Missing {
    /// What is said of the variant.
    pub(super) fn reason(&self) -> String {
        if self.follows {
            return format!(
                "would need a shaper that follows the rate at {}, which can be had with {} alone",
                self.place, self.nearest
            );
        }
        format!(
            "cannot be had at {}; the nearest there is {}",
            self.place, self.nearest
        )
    }
}

/// The name of the variant that has `queue` in place of the queue of `planned` and changes the senders alike.
fn with_queue(planned: &Planned, queue: &str) -> String {
    let names = planned
        .mechanisms
        .iter()
        .map(|mechanism| match mechanism.changes_queues() {
            true => queue,
            false => mechanism.name,
        });
    match planned.mechanisms.len() {
        0 => queue.to_owned(),
        _ => names.collect::<Vec<_>>().join(" + "),
    }
}

/// What to do for a variant; with results also what to check, and the margin of the packets that were carried.
fn with_results(plan: &Plan, index: usize, results: Option<Results<'_>>) -> Vec<Instruction> {
    let Some(planned) = plan.variants.get(index) else {
        return Vec::new();
    };
    let mut found: Vec<(&str, Instruction)> = Vec::new();
    let promised = !follows(plan, index);
    for place in planned.places.iter().filter_map(|&place| plan.places.get(place)) {
        let ping = |fair| check::ping(plan, place, fair, results?, promised);
        let carried = results.and_then(|results| Carried::at(plan, place, results.variant));
        let mut here = shaper::at_place(plan, planned, place, ping, carried);
        for (_, before) in found.iter_mut().filter(|(line, _)| *line == place.link) {
            for now in &mut here {
                one_router(before, now);
            }
        }
        found.extend(here.into_iter().map(|one| (place.link.as_str(), one)));
    }
    let mut found: Vec<Instruction> = found.into_iter().map(|(_, one)| one).collect();
    let transfers = results.and_then(|results| check::transfers(results.variant, results.baseline, promised));
    found.extend(endpoints::at_hosts(plan, planned, transfers.as_deref()));
    found
}

/// One router for both directions of a line, with both queues in its file: the first instruction starts it.
fn one_router(first: &mut Instruction, second: &mut Instruction) {
    let ([one], [other]) = (first.commands.as_mut_slice(), second.commands.as_slice()) else {
        return;
    };
    if let Some(both) = router::both_ways(one, other) {
        *one = both;
        second.commands.clear();
        let elsewhere = format!(
            "The command for {} starts one router for both directions. ",
            first.place
        );
        second.needs.insert_str(0, &elsewhere);
    }
}
