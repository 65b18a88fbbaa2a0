//! What to measure afterwards, with the values of the simulation.

use super::super::Plan;
use super::super::place::{Place, base_rtt};
use super::super::words::seconds;
use super::Results;
use crate::result::{Group, Summary, Variant};
use fleetfoot_sim::spec::Traffic;

/// A ping under load: the base RTT and what waits at both directions of the link, before and after.
///
/// Where the scenario has pings, their times are the values; else those of echo requests that were measured beside the traffic (`super::super::echo`).
/// Of a variant for which neither is there, the waits of all packets give a coarse value: with `fair` queues a ping does not stand behind
/// others' packets, so what packets wait on average is the most it waits. Where a shaper follows a rate that varies (`promised` is false), only
/// what was before is said.
pub(super) fn ping(
    plan: &Plan,
    place: &Place,
    fair: bool,
    Results { variant, baseline }: Results<'_>,
    promised: bool,
) -> Option<String> {
    let base = base_rtt(&plan.described).as_secs_f64();
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
    if let Some((name, before, after)) = pings(plan, variant, baseline) {
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

/// The times of the first group that waits, before and, where they can be promised, after.
pub(super) fn transfers(variant: &Variant, baseline: &Variant, promised: bool) -> Option<String> {
    let waiting = baseline
        .groups
        .iter()
        .zip(&variant.groups)
        .find_map(|(before, after)| {
            let of = |group: &Group| -> Option<f64> {
                let times = group.fct_s.as_ref().or(group.delivery_latency_s.as_ref())?;
                Some(times.mean)
            };
            before
                .latency_sensitive
                .then_some((before.name.as_str(), of(before)?, of(after)?))
        });
    let (name, before, after) = waiting?;
    let before = seconds(before);
    Some(match promised {
        true => format!(
            "Measure how long {name} takes at the same load: {before} on average before, about {} expected afterwards.",
            seconds(after)
        ),
        false => format!(
            "Measure how long {name} takes at the same load: {before} on average before. {UNPROMISED}"
        ),
    })
}

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
