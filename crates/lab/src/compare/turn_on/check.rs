//! What to measure afterwards, with the values of the simulation.

use super::super::Plan;
use super::super::place::Place;
use super::super::words::seconds;
use super::{Results, idle};
use crate::result::{Group, Summary, Variant};
use fleetfoot_sim::spec::Traffic;

/// A ping under load: what it takes on the idle network, and with what waits at both directions of the link, before and after.
///
/// Where the scenario has pings, their times are the values; else those of echo requests that were measured beside the traffic (`super::super::echo`).
/// Of a variant for which neither is there, the waits of all packets give a coarse value: with `fair` queues a ping does not stand behind
/// others' packets, so what packets wait on average is the most it waits. Where a shaper follows a rate that varies (`promised` is false), only
/// what was before is said. Where a ping takes about as long afterwards, it shows nothing, and the times of the group that gains most are to be checked.
pub(super) fn ping(
    plan: &Plan,
    place: &Place,
    fair: bool,
    Results { variant, baseline }: Results<'_>,
    promised: bool,
) -> Option<String> {
    let base = idle::ping(&plan.described);
    let order = |base: f64| {
        format!(
            "While the line is as busy as before, run: ping -c 60 ADDRESS (ADDRESS: a server that answers in about {} when nothing else uses the line).",
            seconds(base)
        )
    };
    let together = plan
        .places
        .iter()
        .filter(|other| other.link == place.link)
        .count()
        > 1;
    let together = if together {
        " (waits of both directions together)"
    } else {
        ""
    };
    let measured = plan
        .echo(&baseline.name, &place.link)
        .zip(plan.echo(&variant.name, &place.link));
    if !promised {
        let before = match (pings(plan, variant, baseline), measured) {
            (Some((_, before, _)), _) => seconds(before.mean),
            (None, Some((before, _))) => seconds(before.mean),
            (None, None) => format!(
                "{}{together}{COARSE}",
                seconds(base + waits(plan, place, baseline)?.mean)
            ),
        };
        return Some(format!(
            "{} Average before: about {before}. {UNPROMISED}",
            order(base)
        ));
    }
    let pinged = pings(plan, variant, baseline);
    let means = match (&pinged, &measured) {
        (Some((_, before, after)), _) => Some((before.mean, after.mean)),
        (None, Some((before, after))) => Some((before.mean, after.mean)),
        (None, None) => None,
    };
    if means.is_some_and(|(before, after)| after > UNCHANGED * before)
        && let Some((name, before, after)) = gains_most(variant, baseline)
    {
        return Some(expected(name, before, after));
    }
    if let Some((name, before, after)) = pinged {
        return Some(format!(
            "{} Average before: about {}; afterwards: about {}, 99 of 100 below {}, as {name} saw in the simulation.",
            order(base),
            seconds(before.mean),
            seconds(after.mean),
            seconds(after.p99),
        ));
    }
    if let Some((before, after)) = measured {
        return Some(format!(
            "{} Average before: about {}; afterwards: about {}, 99 of 100 below {}, as pings beside this traffic saw in the simulation.",
            order(base),
            seconds(before.mean),
            seconds(after.mean),
            seconds(after.p99),
        ));
    }
    let before = waits(plan, place, baseline)?;
    let after = waits(plan, place, variant)?;
    // Where long transfers fill queues of their own, the mean over all packets says nothing of a ping.
    if fair && after.mean > USEFUL * before.mean {
        return transfers(variant, baseline, true);
    }
    let afterwards = if fair {
        format!("at most about {}", seconds(base + after.mean))
    } else {
        format!(
            "about {}, 99 of 100 below {}",
            seconds(base + after.mean),
            seconds(base + after.p99)
        )
    };
    Some(format!(
        "{} Average before: about {}; afterwards: {afterwards}{together}{COARSE}.",
        order(base),
        seconds(base + before.mean),
    ))
}

/// Name and round-trip times (s) before and after of the first group of pings that was measured.
fn pings<'a>(plan: &'a Plan, variant: &Variant, baseline: &Variant) -> Option<(&'a str, Waits, Waits)> {
    let groups = plan
        .described
        .spec
        .groups
        .iter()
        .zip(&baseline.groups)
        .zip(&variant.groups);
    groups
        .filter(|((spec, _), _)| matches!(spec.traffic, Traffic::Ping { .. }))
        .find_map(|((spec, before), after)| {
            let of = |group: &Group| {
                let times = group.fct_s.as_ref()?;
                Some(Waits {
                    mean: times.mean,
                    p99: times.p99,
                })
            };
            Some((spec.name.as_str(), of(before)?, of(after)?))
        })
}

/// The times of the group that gains most of those that wait, before and, where they can be promised, after.
pub(super) fn transfers(variant: &Variant, baseline: &Variant, promised: bool) -> Option<String> {
    let waiting = waiting(variant, baseline);
    let (name, before, after) =
        waiting.min_by(|one, other| (one.2 / one.1).total_cmp(&(other.2 / other.1)))?;
    Some(match promised {
        true => expected(name, before, after),
        false => format!(
            "Measure the times of {name} at the same load: {} on average before. {UNPROMISED}",
            seconds(before)
        ),
    })
}

fn expected(name: &str, before: f64, after: f64) -> String {
    format!(
        "Measure the times of {name} at the same load: {} on average before, about {} expected afterwards.",
        seconds(before),
        seconds(after)
    )
}

/// Name and mean times (s) before and after of the group that gains most of those that wait, if it gains enough to be seen.
fn gains_most<'a>(variant: &'a Variant, baseline: &'a Variant) -> Option<(&'a str, f64, f64)> {
    let seen = waiting(variant, baseline).filter(|(_, before, after)| *after <= UNCHANGED * before);
    seen.min_by(|one, other| (one.2 / one.1).total_cmp(&(other.2 / other.1)))
}

/// Groups that wait: their names and mean times (s) before and after.
fn waiting<'a>(variant: &'a Variant, baseline: &'a Variant) -> impl Iterator<Item = (&'a str, f64, f64)> {
    let of = |group: &Group| -> Option<f64> {
        let times = group.fct_s.as_ref().or(group.delivery_latency_s.as_ref())?;
        Some(times.mean).filter(|mean| *mean > 0.0)
    };
    let groups = baseline.groups.iter().zip(&variant.groups);
    let waiting = groups.filter(|(before, _)| before.latency_sensitive);
    waiting.filter_map(move |(before, after)| Some((before.name.as_str(), of(before)?, of(after)?)))
}

/// Times that fall to no less than this share are about the same for who measures them.
const UNCHANGED: f64 = 0.9;

/// What is said in place of figures for afterwards.
const UNPROMISED: &str = "How much less it is afterwards depends on how soon the shaper follows the line, which was not simulated.";

/// What is said of values that are no ping's.
const COARSE: &str =
    " (from the waits of the traffic's packets: a ping comes at other times, and often waits less)";

/// An upper bound of the waits afterwards that is more than this share of those before is not worth reporting.
const USEFUL: f64 = 0.5;

/// Waits, or times, of a round trip (s).
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    mean: f64,
    /// Sum over the directions: not less than the quantile of the sum would be if they waited together.
    p99: f64,
}

/// At both directions of the link of `place`. `None`: nothing was measured there.
fn waits(plan: &Plan, place: &Place, variant: &Variant) -> Option<Waits> {
    let ways = plan.places.iter().filter(|other| other.link == place.link);
    let of = |way: &Place| -> Option<Waits> {
        let measured: Vec<&Summary> = way
            .links
            .iter()
            .filter_map(|&link| variant.links.get(link)?.queue_delay_s.as_ref())
            .collect();
        let count = measured.len() as f64;
        (!measured.is_empty()).then(|| Waits {
            mean: measured.iter().map(|waits| waits.mean).sum::<f64>() / count,
            p99: measured.iter().map(|waits| waits.p99).sum::<f64>() / count,
        })
    };
    of(place)?;
    Some(ways.filter_map(of).fold(Waits::default(), |sum, way| Waits {
        mean: sum.mean + way.mean,
        p99: sum.p99 + way.p99,
    }))
}

#[cfg(test)]
mod tests {
    use super::{gains_most, transfers};
    use crate::compare::{Choice, Plan, build};
    use crate::result::Variant;
    use crate::run::{Options, execute};
    use crate::testing::{engine, scenario};
    use std::sync::atomic::AtomicBool;

    /// A variant with a group that waits for each of these mean times (s).
    fn waiting(means: &[f64]) -> Variant {
        let plan = Plan::compare(scenario(), &Choice::default()).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let batch = execute(&plan.jobs(), &plan.seeds[..2], &options, &never, &engine, &|_| ());
        let document = build(&plan, &batch.expect("it runs"), "").document;
        let mut variant = document.variants.into_iter().next().expect("as described");
        let pages = variant.groups.swap_remove(0);
        let group = |(number, &mean): (usize, &f64)| {
            let mut group = pages.clone();
            group.name = format!("group {number}");
            group.fct_s = group.fct_s.map(|mut times| {
                times.mean = mean;
                times
            });
            group
        };
        variant.groups = means.iter().enumerate().map(group).collect();
        variant
    }

    #[test]
    fn what_is_checked_is_the_group_that_gains_most() {
        let before = waiting(&[0.01, 0.208, 0.1]);
        let after = waiting(&[0.01, 0.0012, 0.05]);
        assert_eq!(
            transfers(&after, &before, true).as_deref(),
            Some(
                "Measure the times of group 1 at the same load: 208 ms on average before, about 1.2 ms expected afterwards."
            )
        );
        assert_eq!(gains_most(&after, &before), Some(("group 1", 0.208, 0.0012)));
        let hardly = waiting(&[0.01, 0.2, 0.095]);
        assert_eq!(
            gains_most(&hardly, &before),
            None,
            "less than a tenth is not seen"
        );
    }
}
