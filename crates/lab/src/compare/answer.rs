//! The answer in words: what to try, where, what it wins, whom it harms, how sure that is, and how to turn it on.

use super::amounts::{harm_words, interval, saved, shorter};
use super::parts::{acts_at, by_weight, part_that_matters, part_to_begin_with};
use super::ranking::{Rows, WORTHWHILE};
use super::{Plan, words};
use crate::mechanisms::Effort;
use crate::result::{Document, Recommended, SensitivityPoint, Variant, Versus};

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
    let mut places = places(plan, first);
    places.sort_by(|a, b| by_weight(plan, variants, first, a, b));
    Some(Recommended {
        variant: variants[first].name.clone(),
        equals: rows.first[1..].iter().map(name).collect(),
        places,
        matters: part_that_matters(plan, variants, first).map(|part| acts_at(plan, part)),
        seeds: variants[first].runs,
        undecided: rows.open.len() as u64,
        open: rows.open.iter().map(name).collect(),
    })
}

/// Leaves only a recommendation that the networks near the described one do not refute: the first of the first tier that belongs to the
/// first tier there too, else the first in the table that is a win in all of them. A network in which nothing is a win refutes only what
/// costs something there.
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
    let near = |name: &String, of: fn(&SensitivityPoint) -> &Vec<String>| {
        let stands = |point: &SensitivityPoint| of(point).contains(name) || point.needs_nothing(name);
        document.sensitivity.iter().all(stands)
    };
    let with_jitter = |name: &String| {
        document.jittered.as_ref().is_none_or(|jittered| {
            let mut there = jittered.recommended.iter().chain(&jittered.equals);
            there.any(|other| other == name)
        })
    };
    let best = |name: &String| near(name, |point| &point.first_tier) && with_jitter(name);
    let first = wins.iter().find(|(_, tier, name)| *tier == 1 && best(name));
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
        jittered.holds = true;
    }
    if tier > 1 {
        document.refuted = Some(own.variant.clone());
    }
    let index = plan.variants.iter().position(|variant| variant.name == chosen);
    document.recommended = match index {
        Some(index) if chosen != own.variant => Some(Recommended {
            equals: wins
                .into_iter()
                .filter(|(_, other, name)| *other == tier && *name != chosen)
                .map(|(_, _, name)| name)
                .collect(),
            places: places(plan, index),
            matters: part_that_matters(plan, &document.variants, index).map(|part| acts_at(plan, part)),
            variant: chosen,
            ..own
        }),
        _ => Some(own),
    };
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
        return match &document.refuted {
            Some(refuted) => not_near(refuted, document),
            None => format!("{}{}", nothing(rows, variants), starving(plan, rows, variants)),
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
            "Try {}{}: {}, {}.",
            recommended.variant,
            place_words(recommended),
            shorter(plan, versus),
            harm_words(plan, versus)
        ),
    };
    text.push_str(&begin_with(plan, variants, recommended));
    if document.as_commanded.is_none() {
        text.push_str(&words::margin(done));
    }
    text.push_str(&equals(recommended, plan.choice().search.is_some()));
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
    text.push_str(&elsewhere(plan, variants, variant));
    text
}

/// What to try where what groups need leaves no margin to spare: `there` is at the rate of the command, `versus` at the line's own.
fn commanded(
    plan: &Plan,
    recommended: &Recommended,
    done: &Variant,
    versus: &Versus,
    there: &Versus,
) -> String {
    let (name, place) = (&recommended.variant, place_words(recommended));
    let share = words::margin_share(done).map_or_else(String::new, |(share, _)| share);
    let said = |versus: &Versus| format!("{}, {}", shorter(plan, versus), harm_words(plan, versus));
    let net = there.win.unwrap_or(0.0) - there.harm.map_or(0.0, |harm| harm.value);
    if there.significant && there.win.unwrap_or(0.0) >= WORTHWHILE && net > 0.0 {
        return format!(
            "Try {name}{place}, whose command leaves {share} of the line unused: simulated at that rate, {}. At the line's own rate {}.",
            said(there),
            said(versus)
        );
    }
    format!(
        "Nothing can be recommended by command: what is sent here needs nearly all of the line, and the command of {name}{place} leaves {share} of it unused; \
         simulated at that rate, {}. At the line's own rate, where the device that sends into the line has {name} itself, {}.",
        said(there),
        said(versus)
    )
}

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
    let nearest = variant
        .instructions
        .iter()
        .find_map(|one| Some((one, one.nearest.as_deref()?)));
    let Some((one, near)) = nearest else {
        return String::new();
    };
    let results = versus(near).map(|versus| format!("in this comparison {}", words::in_short(near, versus)));
    if !one.commands.is_empty() {
        let results = results.unwrap_or_else(|| format!("{near} was not compared"));
        return format!(" The commands turn on {near}, which is nearest to {name}; {results}.");
    }
    let Some(results) = results else {
        return String::new();
    };
    let places = variant.versus.as_ref().map(|versus| &versus.places);
    let at = match places.is_some_and(|places| places.contains(&one.place)) {
        true => "at",
        false => "on the",
    };
    format!(
        " {name} cannot be had {at} {}: the nearest there is {near}; {results}.",
        one.place
    )
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

fn equals(recommended: &Recommended, searched: bool) -> String {
    let mut text = match recommended.equals.as_slice() {
        [] if recommended.undecided > 0 => String::from(" Nothing else is known to be equal to it"),
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
    text.push_str(if searched {
        "; the search had other seeds, so chance did not choose it."
    } else {
        "."
    });
    text
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

/// The answer of a search that was left with nothing to try.
pub(super) fn nothing_to_try() -> String {
    String::from(
        "Nothing is recommended: of what may be changed, nothing applies here or changes anything. Without --control and --only-linux more is tried.",
    )
}

/// The answer where what is best here is not among the best near here.
fn not_near(best: &str, document: &Document) -> String {
    let versus = document.variants.iter().find(|variant| variant.name == best);
    let versus = versus.and_then(|variant| variant.versus.as_ref());
    let here = versus.map_or_else(String::new, |versus| {
        format!(" ({})", words::in_short(best, versus))
    });
    let against: Vec<String> = no_win(best, document)
        .map(|point| match point.wins.is_empty() {
            true => format!("with {} nothing is one", point.change),
            false => format!("with {} the best is {}", point.change, point.best),
        })
        .collect();
    format!(
        "Nothing is recommended: {best} is best in the described network{here}, and neither it nor anything else is a win in every network near it: {}. Measure rate, round-trip time and load, and describe them closer.",
        against.join("; ")
    )
}

/// The answer where every seed of the baseline is the same run.
fn same_seeds(document: &Document) -> String {
    let jittered = match &document.jittered {
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
        "No winner can be named: nothing in this scenario is drawn at random, every seed is the same run, and so no difference can be called significant.{jittered}"
    )
}

/// The answer where no variant is a significant win.
fn nothing(rows: &Rows, variants: &[Variant]) -> String {
    let over = |variant: &Variant| match variant.runs {
        1 => String::from("over one seed"),
        seeds => format!("over {seeds} seeds"),
    };
    let win = |variant: &Variant| {
        variant
            .versus
            .as_ref()
            .and_then(|versus| versus.win)
            .unwrap_or(0.0)
    };
    let costly = variants
        .iter()
        .filter_map(|variant| Some((variant, variant.versus.as_ref()?)))
        .filter(|(variant, versus)| {
            versus.significant && versus.part_of.is_none() && win(variant) >= WORTHWHILE
        })
        .min_by_key(|(_, versus)| versus.rank);
    if let Some((variant, versus)) = costly {
        let harm = versus.harm.map_or(0.0, |harm| harm.value);
        let worst = words::harmed(versus).first().map(|(group, _)| group.name.clone());
        return format!(
            "Nothing tried wins more than it harms: {} makes the short transfers finish {} sooner{} and harms {} by {:.0} %, {}.",
            variant.name,
            saved(win(variant)),
            interval(versus.win_ci95),
            worst.as_deref().unwrap_or("others"),
            100.0 * harm,
            over(variant)
        );
    }
    let Some(variant) = rows.top.map(|top| &variants[top]) else {
        return String::from("Nothing was compared.");
    };
    let (win, over, name) = (win(variant), over(variant), &variant.name);
    if win.abs() < WORTHWHILE {
        format!(
            "Nothing tried makes those who wait finish noticeably sooner (by 1 % or more) without doing as much harm, {over}."
        )
    } else if win > 0.0 {
        let of = interval(variant.versus.as_ref().and_then(|versus| versus.win_ci95));
        format!(
            "Nothing tried makes the short transfers finish significantly sooner {over}; the best estimate is {name} with {}{of}.",
            saved(win)
        )
    } else {
        format!(
            "Nothing tried makes the short transfers finish sooner; the least bad, {name}, makes them {:.0} % slower, {over}.",
            -100.0 * win
        )
    }
}

/// With what those who wait would be quickest, if not over 3 % more were lost of what one of them waits for.
fn starving(plan: &Plan, rows: &Rows, variants: &[Variant]) -> String {
    let found = || {
        let variant = &variants[rows.starving?];
        Some((variant, variant.versus.as_ref()?))
    };
    found().map_or_else(String::new, |(variant, versus)| {
        format!(
            " {} would make times {} shorter, {}, which is no help to those who need all of it.",
            variant.name,
            saved(versus.win.unwrap_or(0.0)),
            harm_words(plan, versus)
        )
    })
}

/// So many equals are named.
const MOST_EQUALS: usize = 6;
