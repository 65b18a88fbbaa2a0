//! The answer in words: what to try, where, what it wins, whom it harms, how sure that is, and how to turn it on.

use super::amounts::{harm_words, shorter};
use super::commanded::pays;
use super::parts::{acts_at, by_weight, is_behind, net, part_at, part_that_matters, part_to_begin_with};
use super::ranking::Rows;
use super::turn_on::{self, Missing};
use super::{Plan, tail, words};
use crate::mechanisms::Effort;
use crate::result::{Document, Jittered, Recommended, SensitivityPoint, TailRatio, Variant, Versus};
use crate::run::Batch;
use equals::{ChosenBy, equals};
use jittered::with_jitter;
use nothing::{not_near, nothing, same_seeds, starving};

mod equals;
mod jittered;
mod nothing;
#[cfg(test)]
mod tests;

pub(super) use nothing::nothing_to_try;

/// The setting to try first, if the table has one.
pub(super) fn recommended(plan: &Plan, rows: &Rows, variants: &[Variant]) -> Option<Recommended> {
    let poor = plan
        .described
        .fit
        .as_ref()
        .is_some_and(|fit| !fit.permits_an_answer());
    if rows.same_seeds || poor {
        return None;
    }
    let name = |&index: &usize| variants[index].name.clone();
    let (first, equals) = best_at_its_place(plan, rows, variants)?;
    // It is the one to try whatever more seeds say of it.
    let open: Vec<String> = rows
        .open
        .iter()
        .filter(|&&index| index != first)
        .map(name)
        .collect();
    let mut places = places(plan, first);
    places.sort_by(|a, b| by_weight(plan, variants, first, a, b));
    Some(Recommended {
        variant: variants[first].name.clone(),
        equals: equals.iter().map(name).collect(),
        places,
        matters: part_that_matters(plan, variants, first).map(|part| acts_at(plan, part)),
        seeds: variants[first].runs,
        undecided: open.len() as u64,
        open,
        tier: rows.tier,
    })
}

/// The variant to try of the tier to choose from, and its equals. Where the first of them is advised at some of its places only, it is chosen by what it
/// does there: the first of the table whose part at these places is not behind the best of such parts, and its equals are those that are not either.
fn best_at_its_place(plan: &Plan, rows: &Rows, variants: &[Variant]) -> Option<(usize, Vec<usize>)> {
    let (&first, others) = rows.first.split_first()?;
    let part = part_that_matters(plan, variants, first);
    let places = part.map(|part| &plan.variants[part].places);
    let Some(places) = places.filter(|places| !places.is_empty()) else {
        return Some((first, others.to_vec()));
    };
    let there = |&index: &usize| part_at(plan, variants, index, places);
    let net = |part: usize| net(&variants[part]);
    let parts = rows.first.iter().filter_map(there);
    let best = parts.max_by(|one, other| {
        let by_net = net(*one).partial_cmp(&net(*other));
        by_net.unwrap_or(std::cmp::Ordering::Equal).then(other.cmp(one))
    });
    // Of what was not run there nothing is known but what it does at all places.
    let keeps_up = |index: &&usize| match there(index).zip(best) {
        Some((part, best)) => !is_behind(&variants[part], &variants[best]),
        None => true,
    };
    let known = |index: &&usize| there(index).is_some();
    let chosen = *rows.first.iter().filter(known).find(keeps_up)?;
    let equals = rows.first.iter().filter(|&&index| index != chosen);
    Some((chosen, equals.filter(keeps_up).copied().collect()))
}

/// Leaves only a recommendation that the networks near the described one do not refute: the first of its tier that belongs to the
/// first tier there too, else the first in the table that is a win in all of them. A network in which nothing is a win refutes only what
/// costs something there. What nobody can have where it would act takes the place of nothing that can be had.
pub(super) fn keep_what_holds(plan: &Plan, document: &mut Document) {
    let Some(own) = document.recommended.take() else {
        return;
    };
    let versus = |variant: &Variant| {
        let versus = variant.versus.as_ref()?;
        Some((versus.rank, versus.tier?, variant.name.clone()))
    };
    let mut wins: Vec<(u64, u64, String)> = document.variants.iter().filter_map(versus).collect();
    wins.sort();
    if missing(plan, &own.variant).is_none() {
        wins.retain(|(_, _, name)| missing(plan, name).is_none());
    }
    let near = |name: &String, of: fn(&SensitivityPoint) -> &Vec<String>| {
        let stands = |point: &SensitivityPoint| of(point).contains(name) || point.needs_nothing(name);
        document.sensitivity.iter().all(stands)
    };
    let first_with_jitter = |jittered: &Jittered, name: &String| {
        let mut there = jittered.recommended.iter().chain(&jittered.equals);
        there.any(|other| other == name)
    };
    let open_with_jitter = |jittered: &Jittered, name: &String| {
        jittered.open_with_seeds.is_some() && jittered.possible.contains(name)
    };
    let with_jitter = |name: &String| {
        document
            .jittered
            .as_ref()
            .is_none_or(|jittered| open_with_jitter(jittered, name) || first_with_jitter(jittered, name))
    };
    let best = |name: &String| near(name, |point| &point.first_tier) && with_jitter(name);
    let first = wins
        .iter()
        .find(|(_, tier, name)| *tier == own.tier && best(name));
    // Jitter is one of the networks near.
    let chosen = first.or_else(|| wins.iter().find(|(_, _, name)| near(name, |point| &point.wins)));
    let Some((_, tier, chosen)) = chosen.cloned() else {
        document.refuted = Some(own.variant);
        return;
    };
    for point in &mut document.sensitivity {
        point.holds = point.first_tier.contains(&chosen) || point.needs_nothing(&chosen);
        if chosen != own.variant {
            // It is of the other one.
            point.described_best_win = None;
        }
    }
    if let Some(jittered) = &mut document.jittered {
        jittered.holds = first_with_jitter(jittered, &chosen);
        if chosen != own.variant {
            // It has the seeds of the first pass there.
            let open = jittered.recommended.is_none() && jittered.possible.contains(&chosen);
            jittered.open_with_seeds = open.then_some(plan.seeds.len() as u64);
        }
    }
    if tier > own.tier {
        document.refuted = Some(own.variant.clone());
    }
    let index = plan.variants.iter().position(|variant| variant.name == chosen);
    document.recommended = match index {
        Some(index) if chosen != own.variant => {
            let equals: Vec<String> = wins
                .into_iter()
                .filter(|(_, other, name)| *other == tier && *name != chosen)
                .map(|(_, _, name)| name)
                .collect();
            // Of another tier nobody asked who belongs to it.
            let mut open = own.open;
            open.retain(|name| tier == own.tier && *name != chosen);
            Some(Recommended {
                places: places(plan, index),
                matters: part_that_matters(plan, &document.variants, index).map(|part| acts_at(plan, part)),
                seeds: fewest_runs(&document.variants, &chosen, &equals),
                undecided: open.len() as u64,
                open,
                variant: chosen,
                equals,
                tier,
            })
        }
        _ => Some(own),
    };
}

/// The seeds that a variant and all of its equals have.
fn fewest_runs(variants: &[Variant], name: &str, equals: &[String]) -> u64 {
    let of_tier = |variant: &&Variant| variant.name == name || equals.contains(&variant.name);
    let runs = variants.iter().filter(of_tier).map(|variant| variant.runs);
    runs.min().unwrap_or(0)
}

/// Whether an answer holds elsewhere: the setting belongs to the first tier there too; without one, where there is none either.
pub(super) fn holds(own: Option<&Recommended>, there: Option<&Recommended>) -> bool {
    match (own, there) {
        (Some(own), Some(there)) => there.variant == own.variant || there.equals.contains(&own.variant),
        (None, None) => true,
        _ => false,
    }
}

/// Where a variant acts: places whose queue it changes, or the senders.
fn places(plan: &Plan, index: usize) -> Vec<String> {
    let planned = &plan.variants[index];
    let mut places: Vec<String> = planned
        .places
        .iter()
        .map(|&place| plan.places[place].described())
        .collect();
    if let Some(senders) = planned.senders {
        places.push(senders.name().to_owned());
    }
    places
}

/// The answer of a comparison.
pub(super) fn answer(plan: &Plan, rows: &Rows, batch: &Batch, document: &Document) -> String {
    let variants = &document.variants;
    let waits = plan.described.groups.iter().any(|group| group.latency_sensitive);
    let measured = variants
        .iter()
        .filter_map(|variant| variant.versus.as_ref())
        .any(|versus| versus.win.is_some());
    let finished = batch.runs.iter().map(Vec::len).min().unwrap_or(0);
    if waits && !measured && batch.interrupted {
        return String::from(
            "Nothing is compared yet: it was interrupted before any variant could be. The same command goes on where this one stopped.",
        );
    }
    if !waits || !measured {
        return String::from(
            "Nothing was compared: no transfer of a group that waits was measured (`latency_sensitive = true` makes a group one).",
        );
    }
    if let Some(fit) = plan.described.fit.as_ref().filter(|fit| !fit.permits_an_answer()) {
        return format!("No answer can be given for this recording. {}", fit.sentences());
    }
    if rows.same_seeds {
        return same_seeds(document);
    }
    let Some(recommended) = &document.recommended else {
        return match &document.refuted {
            Some(refuted) => not_near(refuted, document),
            None if batch.interrupted && finished < plan.seeds.len() => format!(
                "Nothing is decided yet: it was interrupted when {finished} of {} seeds were finished for every variant. The same command goes on where this one stopped.",
                plan.seeds.len()
            ),
            None => format!(
                "{}{}",
                nothing(plan, rows, variants),
                starving(plan, rows, variants)
            ),
        };
    };
    let Some(variant) = variants
        .iter()
        .find(|variant| variant.name == recommended.variant)
    else {
        return String::new();
    };
    let done = words::done(document, recommended);
    let Some((done, versus)) = done.and_then(|done| Some((done, done.versus.as_ref()?))) else {
        return String::new();
    };
    let mut text = match &document.as_commanded {
        Some(there) => commanded(plan, recommended, done, versus, there),
        None => format!(
            "{} {}{}: {}, {}.{}",
            match missing(plan, &recommended.variant) {
                None => "Try",
                Some(_) => "Nothing that can be had here wins more than it harms; the best would be",
            },
            recommended.variant,
            place_words(recommended),
            shorter(plan, versus),
            harm_words(plan, versus),
            slowest(plan, versus)
        ),
    };
    text.push_str(&begin_with(plan, variants, recommended));
    if document.as_commanded.is_none() {
        text.push_str(&words::margin(done, turn_on::carries_acknowledgments(plan, done)));
    }
    let advised = plan.variants.iter().position(|planned| planned.name == done.name);
    if missing(plan, &done.name).is_none() && advised.is_some_and(|index| turn_on::follows(plan, index)) {
        text.push_str(FOLLOWS);
    }
    text.push_str(&equals(
        recommended,
        done,
        variants,
        chosen_by(plan, batch, &recommended.variant),
        &|own, others| tail::differences(plan, batch, own, others),
    ));
    text.push_str(&with_jitter(
        document,
        &recommended.variant,
        plan.choice().search.is_some(),
    ));
    let name = &recommended.variant;
    let (idle, other): (Vec<&SensitivityPoint>, Vec<&SensitivityPoint>) = document
        .sensitivity
        .iter()
        .partition(|point| point.needs_nothing(name));
    let better: Vec<&SensitivityPoint> = other.into_iter().filter(|point| !point.holds).collect();
    text.push_str(&match (better.as_slice(), plan.choice().search) {
        ([], _) if document.sensitivity.is_empty() => String::new(),
        ([], _) if idle.len() < document.sensitivity.len() => format!(
            " It holds in every network tried near this one{}.",
            if idle.is_empty() {
                ""
            } else {
                " where any win is significant"
            }
        ),
        ([], _) => String::new(),
        (better, None) => {
            let changes: Vec<&str> = better.iter().map(|point| point.change.as_str()).collect();
            format!(
                " It does not hold near this network: not with {}.",
                changes.join(", nor with ")
            )
        }
        (better, Some(_)) => {
            let words = better
                .iter()
                .map(|point| format!("{} with {}", point.best, point.change));
            format!(
                " It saves time in every network tried near this one{}, though others save more in some: {}.",
                if idle.is_empty() {
                    ""
                } else {
                    " where any win is significant"
                },
                words.collect::<Vec<_>>().join(", ")
            )
        }
    });
    if !idle.is_empty() {
        let changes: Vec<&str> = idle.iter().map(|point| point.change.as_str()).collect();
        text.push_str(&format!(
            " With {} no win is significant, and this costs nothing.",
            changes.join(", and with ")
        ));
    }
    if let Some(refuted) = &document.refuted {
        let changes = no_win(refuted, document).map(|point| point.change.as_str());
        text.push_str(&format!(
            " {refuted} saves more here, less its harm, but is no win with {}.",
            changes.collect::<Vec<_>>().join(", nor with ")
        ));
    }
    if plan.choice().search.is_some() && document.interrupted {
        text.push_str(" The search was interrupted: not every network near this one was tried.");
    }
    text.extend(advised.and_then(|index| turn_on::needs_memory(plan, index)));
    text.push_str(&out_of_reach(plan, variants, variant));
    text.push_str(&elsewhere(plan, variants, variant));
    text
}

/// By which seeds a search chose the variant `name`; `None`: nothing was searched. A search that is interrupted before its finalists are compared has runs
/// with its own seeds only.
fn chosen_by(plan: &Plan, batch: &Batch, name: &str) -> Option<ChosenBy> {
    plan.choice().search?;
    let index = plan.variants.iter().position(|variant| variant.name == name)?;
    let own = batch.runs.get(index)?;
    Some(match own.iter().any(|run| plan.seeds.contains(&run.seed)) {
        true => ChosenBy::OtherSeeds,
        false => ChosenBy::TheseSeeds,
    })
}

/// What is said of figures that a shaper beside a line of varying rate does not reach.
const FOLLOWS: &str = " That is with the queue in the device at the line itself: a shaper next to it, which learns the rate only after a while, gets a part of this.";

/// Where a variant cannot be had by anybody.
fn missing(plan: &Plan, name: &str) -> Option<Missing> {
    let index = plan.variants.iter().position(|variant| variant.name == name)?;
    turn_on::missing_at(plan, index)
}

/// What stands above the recommended variant because nobody can have it where it would act.
fn out_of_reach(plan: &Plan, variants: &[Variant], recommended: &Variant) -> String {
    let Some(own) = recommended.versus.as_ref() else {
        return String::new();
    };
    let tier = |variant: &Variant| variant.versus.as_ref()?.tier;
    let above = variants
        .iter()
        .filter(|variant| tier(variant).is_some_and(|tier| own.tier.is_none_or(|own| tier < own)))
        .filter_map(|variant| {
            let versus = variant.versus.as_ref()?;
            Some((versus.rank, variant, versus, missing(plan, &variant.name)?))
        });
    let first = above.min_by_key(|(rank, ..)| *rank);
    first.map_or_else(String::new, |(_, variant, versus, missing)| {
        format!(
            " What saves more, less its harm, cannot be had at {}: {}.",
            missing.place,
            words::in_short(&variant.name, versus)
        )
    })
}

/// Of which groups that wait the slowest wait longer, although the mean may be shorter.
fn slowest(plan: &Plan, versus: &Versus) -> String {
    let longer: Vec<(f64, String)> = versus
        .groups
        .iter()
        .zip(&plan.described.groups)
        .filter(|(_, info)| info.latency_sensitive)
        .filter_map(|(group, _)| {
            let TailRatio { level, ratio } = group.fct_tail_ratio.filter(|tail| tail.ratio.significant)?;
            (ratio.value >= 1.0 + MUCH_LONGER).then(|| {
                (
                    level,
                    format!("{} {:.0} %", group.name, 100.0 * (ratio.value - 1.0)),
                )
            })
        })
        .collect();
    tail::longer(&longer)
}

/// What to try where somebody misses what the command leaves of the line: `there` is at the rate of the command, `versus` at the line's own.
fn commanded(
    plan: &Plan,
    recommended: &Recommended,
    done: &Variant,
    versus: &Versus,
    there: &Versus,
) -> String {
    let (name, place) = (&recommended.variant, place_words(recommended));
    let (share, several) = words::margin_share(done).unwrap_or_default();
    let [command, leaves, lines, carry] = match (words::shapers(done).starts_with("its"), several) {
        (true, false) => ["command", "leaves", "the line", "carries"],
        (false, false) => ["shaper", "leaves", "the line", "carries"],
        (true, true) => ["commands", "leave", "the lines", "carry"],
        (false, true) => ["shapers", "leave", "the lines", "carry"],
    };
    let small = turn_on::carries_acknowledgments(plan, done);
    // The slowest of each case are with the case.
    let said = |versus: &Versus| {
        let (shorter, harm) = (shorter(plan, versus), harm_words(plan, versus));
        format!("{shorter}, {harm}.{}", slowest(plan, versus))
    };
    if pays(there) {
        let leaves = match small {
            true => format!("with whose {command} {lines} {carry} {share} less, {SMALL}"),
            false => format!("whose {command} {leaves} {share} of {lines} unused"),
        };
        return format!(
            "Try {name}{place}, {leaves}: simulated at that rate, {} At the line's own rate {}",
            said(there),
            said(versus)
        );
    }
    let leaves = match small {
        true => format!("with the {command} of {name}{place} {lines} {carry} {share} less, {SMALL}"),
        false => format!(
            "what is sent here needs nearly all of the line, or of its share of it, and the {command} of {name}{place} {leaves} {share} of {lines} unused"
        ),
    };
    format!(
        "Nothing can be recommended by command: {leaves}; simulated at that rate, {} At the line's own rate, where the device that sends into the line has \
         {name} itself, {}",
        said(there),
        said(versus)
    )
}

/// Why a line that acknowledgments fill carries so much less behind a shaper.
const SMALL: &str =
    "since acknowledgments fill a line and the shaper counts more bytes with each than the scenario";

/// Of several places, the one that alone saves most of it.
fn begin_with(plan: &Plan, variants: &[Variant], recommended: &Recommended) -> String {
    let whole = variants
        .iter()
        .position(|variant| variant.name == recommended.variant);
    let part = whole
        .filter(|_| recommended.matters.is_none())
        .and_then(|whole| part_to_begin_with(plan, variants, whole));
    let done = part.and_then(|part| Some((part, variants[part].versus.as_ref()?)));
    done.map_or_else(String::new, |(part, versus)| {
        let (place, alone) = (acts_at(plan, part), words::in_short("there alone it", versus));
        format!(" Most of that is saved at one place, {place}: {alone}.")
    })
}

/// The networks near the described one in which a setting is no win.
fn no_win<'a>(name: &'a str, document: &'a Document) -> impl Iterator<Item = &'a SensitivityPoint> {
    let points = document.sensitivity.iter();
    points.filter(move |point| !point.wins.iter().any(|other| other == name) && !point.needs_nothing(name))
}

/// What to do where the recommended variant cannot be had.
fn elsewhere(plan: &Plan, variants: &[Variant], variant: &Variant) -> String {
    let name = &variant.name;
    if let Some((nowhere, best)) = available(plan, variants, variant) {
        let nowhere = match nowhere {
            Effort::OnlyHere => "is not to be had outside Fleetfoot",
            _ => "needs a patch or another system",
        };
        return format!(" {name} {nowhere}; the best that is to be had: {best}.");
    }
    let versus = |name: &str| variants.iter().find(|other| other.name == name)?.versus.as_ref();
    if let Some(missing) = missing(plan, name) {
        let near = &missing.nearest;
        let results = match versus(near) {
            Some(versus) => format!("in this comparison {}", words::in_short(near, versus)),
            None => format!("{near} was not compared"),
        };
        return format!(
            " {name} cannot be had at {}: the nearest there is {near}; {results}.",
            missing.place
        );
    }
    let nearest = variant
        .instructions
        .iter()
        .find_map(|one| Some((one, one.nearest.as_deref()?)));
    let Some((one, near)) = nearest else {
        return String::new();
    };
    if one.commands.is_empty() {
        return String::new();
    }
    let results = match versus(near) {
        Some(versus) => format!("in this comparison {}", words::in_short(near, versus)),
        None => format!("{near} was not compared"),
    };
    format!(" The commands turn on {near}, which is nearest to {name}; {results}.")
}

/// `at the uplink, 10 Mbit/s` or `on servers and clients`.
fn place_words(recommended: &Recommended) -> String {
    let (queues, senders): (Vec<&String>, Vec<&String>) =
        recommended.places.iter().partition(|place| place.contains(','));
    let mut words = String::new();
    match (queues.as_slice(), &recommended.matters) {
        ([], _) => {}
        (_, Some(place)) if queues.len() > 1 => {
            words.push_str(&format!(" at {place} (there it makes the difference)"));
        }
        (queues, _) => {
            let named: Vec<&str> = queues.iter().map(|place| place.as_str()).collect();
            words.push_str(&format!(" at {}", named.join(" and at ")));
        }
    }
    match (senders.first(), &recommended.matters) {
        (Some(_), Some(place)) if queues.is_empty() => {
            words.push_str(&format!(" on the {place} (there it makes the difference)"));
        }
        (Some(senders), _) => words.push_str(&format!(" on the {senders}")),
        (None, _) => {}
    }
    words
}

/// The best variant that can be turned on, where the recommended one cannot.
fn available(plan: &Plan, variants: &[Variant], recommended: &Variant) -> Option<(Effort, String)> {
    let effort = |name: &str| {
        let planned = plan.variants.iter().find(|planned| planned.name == name)?;
        planned.mechanisms.iter().map(|mechanism| mechanism.effort).max()
    };
    let own = effort(&recommended.name).filter(|effort| *effort >= Effort::Patch)?;
    let mut others: Vec<&Variant> = variants
        .iter()
        .filter(|variant| effort(&variant.name).is_some_and(|effort| effort < Effort::Patch))
        .filter(|variant| missing(plan, &variant.name).is_none())
        .filter(|variant| {
            variant
                .versus
                .as_ref()
                .is_some_and(|versus| versus.tier.is_some())
        })
        .collect();
    others.sort_by_key(|variant| variant.versus.as_ref().map_or(u64::MAX, |versus| versus.rank));
    let best = others.first()?;
    Some((own, words::in_short(&best.name, best.versus.as_ref()?)))
}

/// A percentile of the slowest that is longer by so much is mentioned.
const MUCH_LONGER: f64 = 0.1;
