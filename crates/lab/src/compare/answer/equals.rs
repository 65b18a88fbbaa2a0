//! Who is equal to the recommended setting, and who is only on average.

use crate::compare::{amounts, words};
use crate::result::{Ratio, Recommended, Variant, Versus};

/// Who is equal to it; of those that save and harm otherwise, how much; and who is so on average, but not in the slowest hundredth. `done` is
/// what is to be done: the recommended variant, or its part at the place that matters.
pub(super) fn equals(
    recommended: &Recommended,
    done: &Variant,
    variants: &[Variant],
    searched: bool,
) -> String {
    let versus = |name: &str| variants.iter().find(|other| other.name == name)?.versus.as_ref();
    let harm = |versus: &Versus| versus.harm.map_or(0.0, |harm| harm.value);
    let own = versus(&recommended.variant);
    let differs = |name: &str| {
        own.zip(versus(name))
            .is_some_and(|(own, other)| (harm(own) - harm(other)).abs() >= ANOTHER_TRADE)
    };
    let tail = Tail::of(recommended, done, variants, &differs);
    let (same, other): (Vec<&String>, Vec<&String>) = recommended.equals.iter().partition(|name| {
        let tail = tail.as_ref();
        tail.is_none_or(|tail| tail.others.iter().all(|(other, _)| *other != *name))
    });
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
    let mut text = match same.len() - named.len() {
        0 if list.is_empty() && recommended.undecided > 0 => {
            String::from(" Nothing else is known to be equal to it")
        }
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
    text.push_str(&format!(", {}", words::how_sure(recommended)));
    text.push_str(if searched {
        "; the search had other seeds, so chance did not choose it."
    } else {
        "."
    });
    text.extend(tail.map(|tail| tail.in_words(&recommended.variant)));
    text
}

/// Where the slowest hundredth tells the recommended variant from those that are equal to it on average.
struct Tail<'a> {
    /// The group that waits.
    group: &'a str,
    /// Its 99th percentile over that of the network as described.
    own: f64,
    /// Names of the others, and their 99th percentile over that of the recommended variant.
    others: Vec<(&'a String, f64)>,
}

impl<'a> Tail<'a> {
    /// Of the first group that waits and of which the seeds tell them apart; `None`: they do of none.
    /// Those that are `another_trade` of time against harm are said to be so, and are not looked at.
    fn of(
        recommended: &'a Recommended,
        done: &'a Variant,
        variants: &'a [Variant],
        another_trade: &dyn Fn(&str) -> bool,
    ) -> Option<Tail<'a>> {
        let own = done.versus.as_ref()?;
        // Where it acts at one place only, the others are compared there too, as far as they were run there.
        let there = |name: &String| {
            let versus = || {
                variants
                    .iter()
                    .filter_map(|variant| Some((variant, variant.versus.as_ref()?)))
            };
            let part = own.part_of.as_ref().and_then(|_| {
                versus().find(|(_, other)| other.part_of.as_ref() == Some(name) && other.places == own.places)
            });
            part.or_else(|| versus().find(|(variant, _)| variant.name == *name))
        };
        let p99 =
            |versus: &Versus, index: usize| -> Option<Ratio> { versus.groups.get(index)?.fct_p99_ratio };
        let groups = done.groups.iter().enumerate();
        groups
            .filter(|(_, group)| group.latency_sensitive)
            .find_map(|(index, group)| {
                let mine = p99(own, index)?;
                let others: Vec<(&String, f64)> = recommended
                    .equals
                    .iter()
                    .filter(|name| !another_trade(name))
                    .filter_map(|name| {
                        let theirs = p99(there(name)?.1, index)?;
                        is_another(mine, theirs).then_some((name, theirs.value / mine.value))
                    })
                    .collect();
                (!others.is_empty()).then_some(Tail {
                    group: &group.name,
                    own: mine.value,
                    others,
                })
            })
    }

    fn in_words(&self, name: &str) -> String {
        let longer = |ratio: f64| match ratio >= 1.0 {
            true => format!("{:.0} % longer", 100.0 * (ratio - 1.0)),
            false => format!("{:.0} % shorter", 100.0 * (1.0 - ratio)),
        };
        let named = &self.others[..self.others.len().min(MOST_EQUALS)];
        let said: Vec<String> = named
            .iter()
            .map(|(other, ratio)| format!("{other} ({} than with {name})", longer(*ratio)))
            .collect();
        format!(
            " The 99th percentile of {} is {} with {name}; on average equal to it, but not there: {}.",
            self.group,
            longer(self.own),
            said.join(", ")
        )
    }
}

/// Whether two 99th percentiles, each against the network as described over the same seeds, differ by more than chance and enough to be noticed.
fn is_another(one: Ratio, other: Ratio) -> bool {
    let (Some([low, high]), Some([other_low, other_high])) = (one.ci95, other.ci95) else {
        return false;
    };
    let apart = high < other_low || other_high < low;
    let factor = other.value / one.value;
    apart && one.value > 0.0 && !(1.0 / NOTICED..NOTICED).contains(&factor)
}

/// 99th percentiles that differ by less than this factor count as the same.
const NOTICED: f64 = 1.1;

/// Equals whose harm differs by so much from that of the recommended variant are another trade of time against harm.
const ANOTHER_TRADE: f64 = 0.05;

/// So many equals are named.
const MOST_EQUALS: usize = 6;

#[cfg(test)]
mod tests {
    use super::equals;
    use crate::result::{Recommended, Variant};

    /// A variant with this 99th percentile against that of the network as described.
    fn variant(name: &str, p99: f64, error: f64) -> Variant {
        let ratio = |value: f64| serde_json::json!({ "value": value, "ci95": [value - error, value + error], "significant": true });
        let group = serde_json::json!({
            "name": "pages", "kind": "web", "latency_sensitive": true, "flows": 1, "completed": 1, "censored": 0, "fct_s": null,
            "acked_s": null, "delivery_latency_s": null, "ack_latency_s": null, "goodput_bps": null, "by_size": [],
            "dropped_units": 0, "congestion_events": null, "more": {}
        });
        serde_json::from_value(serde_json::json!({
            "name": name, "set": {}, "runs": 10, "turn_on": null, "groups": [group], "links": [], "nodes": [],
            "headers_per_byte_delivered": null, "lookups_per_s": 0.0, "lookup_power_w": 0.0, "fairness_jain": null,
            "data_packets_delivered": 0, "bytes_sent_per_byte_delivered": null,
            "versus": {
                "baseline": "as described", "rank": 1, "win": 0.5, "win_ci95": [0.49, 0.51], "cost": null, "worst_p99": null,
                "harm": null, "significant": true, "groups": [
                    { "name": "pages", "fct_mean_ratio": ratio(0.5), "fct_p99_ratio": ratio(p99), "goodput_ratio": null }
                ]
            }
        }))
        .expect("the fields of a variant")
    }

    fn said(sfq: (f64, f64), drr: (f64, f64)) -> String {
        let variants = [variant("drr", drr.0, drr.1), variant("sfq", sfq.0, sfq.1)];
        let recommended = Recommended {
            equals: vec![String::from("sfq")],
            ..crate::testing::recommended("drr")
        };
        equals(&recommended, &variants[0], &variants, false)
    }

    #[test]
    fn who_differs_in_the_slowest_hundredth_is_not_called_equal() {
        assert_eq!(
            said((0.6, 0.02), (0.4, 0.02)),
            " Nothing else is equal to it in all of that, over 10 seeds. The 99th percentile of pages is 60 % shorter with drr; \
             on average equal to it, but not there: sfq (50 % longer than with drr)."
        );
        assert_eq!(
            said((0.6, 0.2), (0.4, 0.2)),
            " Equal within error: sfq, over 10 seeds.",
            "within the error"
        );
        assert_eq!(
            said((0.41, 0.001), (0.4, 0.001)),
            " Equal within error: sfq, over 10 seeds.",
            "nobody notices it"
        );
    }
}
