//! The answer where nothing is recommended.

use super::super::amounts::{harm_words, interval, saved};
use super::super::ranking::{Rows, WORTHWHILE};
use super::super::{Plan, words};
use super::no_win;
use crate::result::{Document, Group, Variant, Versus};

/// The answer of a search that was left with nothing to try.
pub(in super::super) fn nothing_to_try() -> String {
    String::from(
        "Nothing is recommended: of what may be changed, nothing that can be had here applies or changes anything. Without --control and --only-linux more is tried.",
    )
}

/// The answer where what is best here is not among the best near here.
pub(super) fn not_near(best: &str, document: &Document) -> String {
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
pub(super) fn same_seeds(document: &Document) -> String {
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
pub(super) fn nothing(plan: &Plan, rows: &Rows, variants: &[Variant]) -> String {
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
        return format!(
            "Nothing tried wins more than it harms: {} makes the short transfers finish {} sooner{} and {}, {}.",
            variant.name,
            saved(win(variant)),
            interval(versus.win_ci95),
            most_harmed(versus),
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
        let ends = variant.versus.as_ref().and_then(|versus| versus.win_ci95);
        let of = interval(ends);
        if ends.is_some_and(|[low, _]| low > 0.0) {
            return undecided(
                plan,
                variant,
                variants,
                &format!("{name} with {}{of}", saved(win)),
            );
        }
        format!(
            "Nothing tried makes the short transfers finish significantly sooner {over}; the best estimate is {name} with {}{of}.",
            saved(win)
        )
    } else {
        // What did not complete enters with its age.
        let unfinished = |group: &Group| group.latency_sensitive && 20 * group.censored > group.flows;
        let bound = match variant.groups.iter().any(unfinished) {
            true => "at least ",
            false => "",
        };
        let ends = variant.versus.as_ref().and_then(|versus| versus.win_ci95);
        let ends = ends
            .filter(|_| bound.is_empty())
            .map_or_else(String::new, |[low, high]| {
                let ends = format!("95 % interval {:.0} to {:.0} %", -100.0 * high, -100.0 * low);
                match high > 0.0 {
                    true => format!(" ({ends}: not more than chance)"),
                    false => format!(" ({ends})"),
                }
            });
        format!(
            "Nothing tried makes the short transfers finish sooner; the least bad, {name}, makes them {bound}{:.0} % slower{ends}, {over}.",
            -100.0 * win
        )
    }
}

/// Whom a variant harms most by its estimates, by how much, and whether that could be shown.
fn most_harmed(versus: &Versus) -> String {
    let harms = versus
        .groups
        .iter()
        .filter_map(|group| Some((&group.name, group.harm?)));
    let Some((name, harm)) = harms.max_by(|a, b| a.1.value.total_cmp(&b.1.value)) else {
        return String::from("harms others as much");
    };
    let doubt = match harm.significant {
        true => String::new(),
        false => format!("{}, which is not significant", interval(harm.ci95)),
    };
    format!("harms {name} by {:.0} %{doubt}", 100.0 * harm.value)
}

/// That so many variants are too many for so few seeds: by its own interval the best one surely saves time.
fn undecided(plan: &Plan, best: &Variant, variants: &[Variant], estimate: &str) -> String {
    let seeds = words::seeds(best.runs);
    let compared = variants.iter().filter_map(|variant| variant.versus.as_ref());
    let count = compared
        .filter(|versus| versus.part_of.is_none() && versus.win.is_some())
        .count();
    let more = format!("(--seeds {})", best.runs.saturating_mul(2).max(20));
    if count < 2 {
        return format!(
            "Not decided: with {seeds} the difference is not significant; the estimate is {estimate}. More seeds {more} decide it."
        );
    }
    // A search has no list of variants to shorten.
    let fewer = match plan.choice().search {
        Some(_) => "",
        None => " or fewer variants (--only NAME,NAME)",
    };
    format!(
        "Not decided: with {seeds} none of {count} variants is significant after the correction for so many comparisons; the best estimate is {estimate}. More seeds {more}{fewer} decide it."
    )
}

/// With what those who wait would be quickest, if not over 3 % more were lost of what one of them waits for.
pub(super) fn starving(plan: &Plan, rows: &Rows, variants: &[Variant]) -> String {
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

#[cfg(test)]
mod tests {
    use super::most_harmed;
    use crate::result::Versus;

    fn versus(voice: bool, backup: bool) -> Versus {
        let group = |name: &str, value: f64, ci95: [f64; 2], significant: bool| {
            serde_json::json!({
                "name": name, "fct_mean_ratio": null, "fct_p99_ratio": null, "goodput_ratio": null,
                "harm": { "value": value, "ci95": ci95, "significant": significant }
            })
        };
        serde_json::from_value(serde_json::json!({
            "baseline": "as described", "rank": 1, "win": 0.5, "cost": null, "worst_p99": null, "significant": true,
            "groups": [group("voice", 0.021, [0.01, 0.03], voice), group("backup", 0.993, [0.0, 0.999], backup)]
        }))
        .expect("the fields of a variant's ratios")
    }

    #[test]
    fn who_is_harmed_most_is_named_with_its_own_figure() {
        assert_eq!(most_harmed(&versus(true, true)), "harms backup by 99 %");
        assert_eq!(
            most_harmed(&versus(true, false)),
            "harms backup by 99 % (95 % interval 0 to 100 %), which is not significant"
        );
        let mut nobody = versus(true, true);
        nobody.groups.clear();
        assert_eq!(most_harmed(&nobody), "harms others as much");
    }
}
