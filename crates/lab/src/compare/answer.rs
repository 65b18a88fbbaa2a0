//! The answer in words: what to try, where, what it wins, whom it harms, how sure that is, and how to turn it on.

use super::ranking::Rows;
use super::{Plan, words};
use crate::mechanisms::Effort;
use crate::result::{Document, GroupVersus, Recommended, Variant, Versus};

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
    let &first = rows.first.first()?;
    let name = |&index: &usize| variants[index].name.clone();
    let versus = variants[first].versus.as_ref()?;
    Some(Recommended {
        variant: variants[first].name.clone(),
        equals: rows.first[1..].iter().map(name).collect(),
        places: places(plan, first),
        matters: matters(plan, variants, first, versus),
        seeds: variants[first].runs,
        undecided: rows.open as u64,
    })
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

/// The one place, or side, that has at least nine tenths of what the whole variant saves.
fn matters(plan: &Plan, variants: &[Variant], whole: usize, versus: &Versus) -> Option<String> {
    let win = versus.win?;
    let name = &variants[whole].name;
    let parts = plan
        .variants
        .iter()
        .zip(variants)
        .filter(|(planned, _)| planned.part_of.as_ref() == Some(name));
    let mut best: Option<(f64, String)> = None;
    for (planned, variant) in parts {
        let Some(own) = variant.versus.as_ref().and_then(|versus| versus.win) else {
            continue;
        };
        let place = match (planned.places.first(), planned.senders) {
            (Some(&place), None) => plan.places[place].described(),
            (_, Some(senders)) => senders.name().to_owned(),
            (None, None) => continue,
        };
        if best.as_ref().is_none_or(|best| own > best.0) {
            best = Some((own, place));
        }
    }
    best.filter(|(own, _)| *own >= 0.9 * win).map(|(_, place)| place)
}

/// The answer of a comparison.
pub(super) fn answer(plan: &Plan, rows: &Rows, document: &Document) -> String {
    let variants = &document.variants;
    let waits = plan.described.groups.iter().any(|group| group.latency_sensitive);
    let measured = variants
        .iter()
        .filter_map(|variant| variant.versus.as_ref())
        .any(|versus| versus.win.is_some());
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
        return nothing(rows, variants);
    };
    let Some(variant) = variants
        .iter()
        .find(|variant| variant.name == recommended.variant)
    else {
        return String::new();
    };
    let Some(versus) = &variant.versus else {
        return String::new();
    };
    let mut text = format!("Try {}{}: ", recommended.variant, place_words(recommended));
    text.push_str(&format!(
        "{} {} shorter{}, {}.",
        waiting(plan, &versus.groups),
        saved(versus.win.unwrap_or(0.0)),
        interval(versus.win_ci95),
        harm_words(plan, versus)
    ));
    text.push_str(&equals(recommended));
    if let Some(jittered) = &document.jittered
        && !jittered.holds
    {
        text.push_str(&match &jittered.recommended {
            Some(other) => format!(
                " With jitter ({}) the best is {other} instead: without any jitter the order is a matter of phase (docs/trust.md), so go by that.",
                jittered.set
            ),
            None => format!(
                " With jitter ({}) nothing is significantly sooner: without any jitter the order is a matter of phase (docs/trust.md), so do not go by it.",
                jittered.set
            ),
        });
    }
    let refuted: Vec<&str> = document
        .sensitivity
        .iter()
        .filter(|point| !point.holds)
        .map(|point| point.change.as_str())
        .collect();
    if !refuted.is_empty() {
        text.push_str(&format!(
            " It does not hold near this network: not with {}.",
            refuted.join(", nor with ")
        ));
    } else if !document.sensitivity.is_empty() {
        text.push_str(" It holds in every network tried near this one.");
    }
    if let Some(other) = available(plan, variants, variant) {
        text.push_str(&format!(
            " {} is not to be had outside Fleetfoot; of what is, the best is {}.",
            variant.name, other
        ));
    }
    text
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

/// Whose times are shorter.
fn waiting(plan: &Plan, groups: &[GroupVersus]) -> String {
    let names: Vec<&str> = groups
        .iter()
        .zip(&plan.described.groups)
        .filter(|(group, info)| info.latency_sensitive && group.fct_mean_ratio.is_some())
        .map(|(group, _)| group.name.as_str())
        .collect();
    match names.as_slice() {
        [only] => format!("the times of {only} are"),
        [first @ .., last] if first.len() < 4 => {
            format!("the times of {} and {last} are on average", first.join(", "))
        }
        names => format!("the times of the {} groups that wait are on average", names.len()),
    }
}

fn saved(win: f64) -> String {
    format!("{:.0} %", 100.0 * win)
}

fn interval(ci95: Option<[f64; 2]>) -> String {
    ci95.map_or_else(String::new, |ci95| format!(" (95 % interval {})", range(ci95)))
}

/// Both ends of an interval in per cent, with a decimal where they would be one number without.
fn range([low, high]: [f64; 2]) -> String {
    let (low, high) = (100.0 * low, 100.0 * high);
    if format!("{low:.0}") == format!("{high:.0}") && high - low >= 0.05 {
        format!("{low:.1} to {high:.1} %")
    } else {
        format!("{low:.0} to {high:.0} %")
    }
}

/// Whom it harms, by how much.
fn harm_words(plan: &Plan, versus: &Versus) -> String {
    let harmed = words::harmed(versus);
    let slower = |name: &str| {
        plan.described
            .groups
            .iter()
            .any(|group| group.name == name && group.latency_sensitive)
    };
    let said: Vec<String> = harmed
        .iter()
        .take(3)
        .map(|(group, harm)| {
            let name = group.name.as_str();
            let of = harm
                .ci95
                .map_or_else(String::new, |ci95| format!(" ({})", range(ci95)));
            let share = 100.0 * harm.value;
            if slower(name) {
                format!("{name} waits longer, a harm of {share:.0} %{of}")
            } else {
                format!("{name} loses {share:.0} % of its fair share{of}")
            }
        })
        .collect();
    if said.is_empty() {
        format!("and {}", words::unharmed(versus))
    } else {
        format!("but {}", said.join("; "))
    }
}

fn equals(recommended: &Recommended) -> String {
    let mut text = match recommended.equals.as_slice() {
        [] => String::from(" Nothing else is equal to it"),
        [only] => format!(" Equal within error: {only}"),
        names if names.len() <= MOST_EQUALS => format!(" Equal within error: {}", names.join(", ")),
        names => format!(
            " Equal within error: {} and {} more (tier 1 of the table)",
            names[..MOST_EQUALS].join(", "),
            names.len() - MOST_EQUALS
        ),
    };
    text.push_str(&format!(", {}", words::how_sure(recommended)));
    text.push('.');
    text
}

/// The best variant that can be turned on, where the recommended one cannot.
fn available(plan: &Plan, variants: &[Variant], recommended: &Variant) -> Option<String> {
    let effort = |name: &str| {
        let planned = plan.variants.iter().find(|planned| planned.name == name)?;
        planned.mechanisms.iter().map(|mechanism| mechanism.effort).max()
    };
    if effort(&recommended.name)? != Effort::OnlyHere {
        return None;
    }
    let mut others: Vec<&Variant> = variants
        .iter()
        .filter(|variant| effort(&variant.name).is_some_and(|effort| effort < Effort::OnlyHere))
        .filter(|variant| {
            variant
                .versus
                .as_ref()
                .is_some_and(|versus| versus.tier.is_some())
        })
        .collect();
    others.sort_by_key(|variant| variant.versus.as_ref().map_or(u64::MAX, |versus| versus.rank));
    let best = others.first()?;
    let win = best.versus.as_ref()?.win?;
    Some(format!("{} with {}", best.name, saved(win)))
}

/// The answer where every seed of the baseline is the same run.
fn same_seeds(document: &Document) -> String {
    let told = match &document.jittered {
        Some(jittered) => match &jittered.recommended {
            Some(best) => {
                let equals = match jittered.equals.as_slice() {
                    [] => String::new(),
                    names => format!(" (equal within error: {})", names.join(", ")),
                };
                format!(
                    " With jitter ({}) seeds differ, and there the answer is {best}{equals}: put the jitter into the scenario and compare again.",
                    jittered.set
                )
            }
            None => format!(
                " With jitter ({}) seeds differ, and there nothing is significantly sooner.",
                jittered.set
            ),
        },
        None => String::from(" Give it jitter (network.access.jitter) or random arrivals."),
    };
    format!(
        "No winner can be named: nothing in this scenario is drawn at random, every seed is the same run, and so no difference can be called significant.{told}"
    )
}

/// The answer where no variant is a significant win.
fn nothing(rows: &Rows, variants: &[Variant]) -> String {
    let Some(variant) = rows.top.map(|top| &variants[top]) else {
        return String::from("Nothing was compared.");
    };
    let Some(versus) = &variant.versus else {
        return String::new();
    };
    let (win, seeds, name) = (versus.win.unwrap_or(0.0), variant.runs, &variant.name);
    let over = if seeds == 1 {
        String::from("over one seed")
    } else {
        format!("over {seeds} seeds")
    };
    if versus.significant && win > 0.0 {
        let harm = versus.harm.map_or(0.0, |harm| harm.value);
        let worst = words::harmed(versus).first().map(|(group, _)| group.name.clone());
        return format!(
            "Nothing tried wins more than it harms: {name} makes the short transfers finish {} sooner{} and harms {} by {:.0} %, {over}.",
            saved(win),
            interval(versus.win_ci95),
            worst.as_deref().unwrap_or("others"),
            100.0 * harm
        );
    }
    if win > 0.0 {
        format!(
            "Nothing tried makes the short transfers finish significantly sooner {over}; the best estimate is {name} with {}{}.",
            saved(win),
            interval(versus.win_ci95)
        )
    } else {
        format!(
            "Nothing tried makes the short transfers finish sooner; the least bad, {name}, makes them {:.0} % slower, {over}.",
            -100.0 * win
        )
    }
}

/// So many equals are named.
const MOST_EQUALS: usize = 6;
