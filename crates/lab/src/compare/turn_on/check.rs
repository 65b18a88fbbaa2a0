//! What to measure afterwards, with the values of the simulation.

use super::super::Plan;
use super::super::place::Place;
use crate::result::{Summary, Variant};
use fleetfoot_core::time::Duration;

/// A ping under load: the base RTT and what waits at both directions of the link, before and after.
///
/// With `fair` queues a ping does not stand behind others' packets, so what packets wait on average is the most it waits.
pub(super) fn ping(
    plan: &Plan,
    place: &Place,
    fair: bool,
    variant: &Variant,
    baseline: &Variant,
) -> Option<String> {
    let base = base_rtt(plan).as_secs_f64();
    let before = waits(plan, place, baseline)?;
    let after = waits(plan, place, variant)?;
    let ways = plan
        .places
        .iter()
        .filter(|other| other.link == place.link)
        .count();
    let most = if fair { "at most about" } else { "about" };
    Some(format!(
        "While the line is as busy as before, run: ping -c 60 ADDRESS (ADDRESS: a server that answers in about {} when nothing else uses the line). Average before: about {}; afterwards: {most} {}, 99 of 100 below {}{}.",
        span(base),
        span(base + before.mean),
        span(base + after.mean),
        span(base + after.p99),
        if ways > 1 {
            " (waits of both directions together)"
        } else {
            ""
        },
    ))
}

/// The times of the first group that waits, before and after.
pub(super) fn transfers(variant: &Variant, baseline: &Variant) -> Option<String> {
    let waiting = baseline
        .groups
        .iter()
        .zip(&variant.groups)
        .find_map(|(before, after)| {
            let of = |group: &crate::result::Group| -> Option<f64> {
                let times = group.fct_s.as_ref().or(group.delivery_latency_s.as_ref())?;
                Some(times.mean)
            };
            before
                .latency_sensitive
                .then_some((before.name.as_str(), of(before)?, of(after)?))
        });
    let (name, before, after) = waiting?;
    Some(format!(
        "Measure how long {name} takes at the same load: {} on average before, about {} expected afterwards.",
        span(before),
        span(after)
    ))
}

/// Waits of a round trip (s).
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

/// Median over the pairs with traffic.
fn base_rtt(plan: &Plan) -> Duration {
    let mut rtts: Vec<Duration> = plan.described.base_rtts().iter().map(|pair| pair.rtt).collect();
    rtts.sort_unstable();
    rtts.get(rtts.len() / 2).copied().unwrap_or(Duration::ZERO)
}

/// A time (s) with two or three digits.
pub(super) fn span(seconds: f64) -> String {
    match seconds {
        s if s >= 9.95 => format!("{s:.0} s"),
        s if s >= 0.9995 => format!("{s:.1} s"),
        s if s >= 0.00995 => format!("{:.0} ms", s * 1e3),
        s if s >= 0.000_999_5 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.0} us", s * 1e6),
    }
}
