//! Who is equal to the recommended setting, and who is only on average.

use crate::compare::tail::{Difference, percentile};
use crate::compare::{amounts, words};
use crate::result::{Recommended, Variant, Versus};

/// The seeds by which a search chose a variant.
#[derive(Clone, Copy)]
pub(super) enum ChosenBy {
    /// Others than those that it is compared over.
    OtherSeeds,
    /// Those that it is compared over.
    TheseSeeds,
}

/// In which groups the slowest differ between a variant and each of some others, by name.
type Differences<'a> = dyn Fn(&str, &[&str]) -> Vec<Vec<Difference>> + 'a;

/// Who is equal to it; of those that save and harm otherwise, how much; and who is so on average, but not for the slowest of a group. `done` is
/// what is to be done: the recommended variant, or its part at the place that matters.
pub(super) fn equals(
    recommended: &Recommended,
    done: &Variant,
    variants: &[Variant],
    chosen_by: Option<ChosenBy>,
    differences: &Differences<'_>,
) -> String {
    let versus = |name: &str| variants.iter().find(|other| other.name == name)?.versus.as_ref();
    let harm = |versus: &Versus| versus.harm.map_or(0.0, |harm| harm.value);
    let own = versus(&recommended.variant);
    let differs = |name: &str| {
        own.zip(versus(name))
            .is_some_and(|(own, other)| (harm(own) - harm(other)).abs() >= ANOTHER_TRADE)
    };
    let candidates: Vec<&String> = recommended.equals.iter().filter(|name| !differs(name)).collect();
    let there: Vec<&str> = candidates
        .iter()
        .map(|name| there(done, variants, name).unwrap_or(name))
        .collect();
    let found = candidates.into_iter().zip(differences(&done.name, &there));
    let tails: Vec<(&String, Vec<Difference>)> = found.filter(|(_, found)| !found.is_empty()).collect();
    let (same, other): (Vec<&String>, Vec<&String>) = recommended
        .equals
        .iter()
        .partition(|name| tails.iter().all(|(other, _)| other != name));
    let said = |name: &&String| match versus(name).filter(|_| differs(name)) {
        Some(other) => format!(
            "{name} (saves {} and harms by {})",
            amounts::saved(other.win.unwrap_or(0.0)),
            amounts::saved(harm(other))
        ),
        None => (*name).clone(),
    };
    let named = &same[..same.len().min(MOST_EQUALS)];
    let how = match named.iter().any(|name| differs(name)) {
        true => "Equal within error in time saved less harm",
        false => "Equal within error",
    };
    let list = named.iter().map(said).collect::<Vec<_>>().join(", ");
    let undecided = words::open(recommended, ["is equally good", "are equally good"]);
    let mut text = match same.len() - named.len() {
        0 if list.is_empty() && undecided.is_some() => String::new(),
        0 if list.is_empty() && !other.is_empty() => {
            String::from(" Nothing else is equal to it in all of that")
        }
        0 if list.is_empty() => String::from(" Nothing else is equal to it"),
        0 => format!(" {how}: {list}"),
        more => format!(
            " {how}: {list} and {more} more (tier {} of the table)",
            recommended.tier
        ),
    };
    text.push_str(&match undecided.filter(|_| text.is_empty()) {
        Some(open) => format!(
            " {} cannot tell whether {open}; more seeds can",
            words::seeds(recommended.seeds)
        ),
        None => format!(", {}", words::how_sure(recommended)),
    });
    text.push_str(match chosen_by {
        None => ".",
        Some(ChosenBy::OtherSeeds) => "; the search had other seeds, so chance did not choose it.",
        Some(ChosenBy::TheseSeeds) => "; these are the seeds that chose it, so chance may have helped.",
    });
    text.push_str(&in_words(&tails, &recommended.variant));
    text
}

/// What is compared with `done` of the variant called `name`: where `done` acts at one place only the other is compared there too, as far as it was run
/// there.
fn there<'a>(done: &Variant, variants: &'a [Variant], name: &str) -> Option<&'a str> {
    let own = done.versus.as_ref()?;
    own.part_of.as_ref()?;
    let part = variants.iter().find(|variant| {
        let versus = variant.versus.as_ref();
        versus.is_some_and(|other| other.part_of.as_deref() == Some(name) && other.places == own.places)
    })?;
    Some(&part.name)
}

/// Who is equal to the variant `name` on average, and for the slowest of which groups it is not.
fn in_words(tails: &[(&String, Vec<Difference>)], name: &str) -> String {
    let change = |found: &Difference| {
        let ratio = found.ratio;
        let change = match ratio >= 1.0 {
            true => format!("{:.0} % longer", 100.0 * (ratio - 1.0)),
            false => format!("{:.0} % shorter", 100.0 * (1.0 - ratio)),
        };
        format!("{} of {} {change}", percentile(found.level), found.group)
    };
    let of = |(other, found): &(&String, Vec<Difference>)| {
        let changes: Vec<String> = found.iter().map(change).collect();
        format!("{other} ({})", changes.join(", "))
    };
    let named = &tails[..tails.len().min(MOST_EQUALS)];
    let more = match tails.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match named {
        [] => String::new(),
        named => format!(
            " On average equal to {name}, but not for the slowest: {}{more}.",
            named.iter().map(of).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// Equals whose harm differs by so much from that of the recommended variant are another trade of time against harm.
const ANOTHER_TRADE: f64 = 0.05;

/// So many equals are named.
const MOST_EQUALS: usize = 6;

#[cfg(test)]
mod tests {
    use super::{Difference, equals};
    use crate::result::{Recommended, Variant};

    fn variant(name: &str) -> Variant {
        serde_json::from_value(serde_json::json!({
            "name": name, "set": {}, "runs": 10, "turn_on": null, "groups": [], "links": [], "nodes": [],
            "headers_per_byte_delivered": null, "lookups_per_s": 0.0, "lookup_power_w": 0.0, "fairness_jain": null,
            "data_packets_delivered": 0, "bytes_sent_per_byte_delivered": null,
            "versus": {
                "baseline": "as described", "rank": 1, "win": 0.5, "win_ci95": [0.49, 0.51], "cost": null, "worst_p99": null,
                "harm": null, "significant": true, "groups": []
            }
        }))
        .expect("the fields of a variant")
    }

    /// What is said of drr and its equal sfq, with which the percentiles of these groups are so many times those with drr.
    fn said(found: &[(&str, f64, f64)]) -> String {
        let variants = ["drr", "sfq"].map(variant);
        let recommended = Recommended {
            equals: vec![String::from("sfq")],
            ..crate::testing::recommended("drr")
        };
        let differences = |own: &str, others: &[&str]| {
            assert_eq!((own, others), ("drr", &["sfq"][..]));
            let found = found.iter().map(|&(group, level, ratio)| Difference {
                group: group.to_owned(),
                level,
                ratio,
            });
            vec![found.collect()]
        };
        equals(&recommended, &variants[0], &variants, None, &differences)
    }

    #[test]
    fn who_differs_for_the_slowest_is_not_called_equal() {
        assert_eq!(said(&[]), " Equal within error: sfq, over 10 seeds.");
        assert_eq!(
            said(&[("pages", 0.99, 1.5)]),
            " Nothing else is equal to it in all of that, over 10 seeds. On average equal to drr, but not for the slowest: sfq (99th percentile of pages 50 % longer)."
        );
        assert_eq!(
            said(&[("pages", 0.99, 1.5), ("calls", 0.95, 0.8)]),
            " Nothing else is equal to it in all of that, over 10 seeds. On average equal to drr, but not for the slowest: sfq (99th percentile of pages 50 % longer, 95th percentile of calls 20 % shorter)."
        );
    }
}
