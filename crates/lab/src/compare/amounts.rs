//! How much a setting saves and whom it harms, in words.

use super::ranking::WORTHWHILE;
use super::{Plan, numbers, words};
use crate::result::{GroupVersus, Ratio, Versus};
use fleetfoot_sim::spec::{Losses, TrafficKind};

/// Whose times are shorter, by how much.
pub(super) fn shorter(plan: &Plan, versus: &Versus) -> String {
    let waiting: Vec<(&GroupVersus, f64)> = versus
        .groups
        .iter()
        .zip(&plan.described.groups)
        .filter(|(_, info)| info.latency_sensitive)
        .filter_map(|(group, _)| Some((group, 1.0 - group.fct_mean_ratio?.value)))
        .collect();
    let win = versus.win.unwrap_or(0.0);
    let (win, of) = match win < 0.0 {
        true => (format!("{} longer", saved(-win)), String::new()),
        false => (format!("{} shorter", saved(win)), interval(versus.win_ci95)),
    };
    if let [(only, _)] = waiting.as_slice() {
        return format!("the times of {} are {win}{of}", only.name);
    }
    let changed: Vec<String> = waiting
        .iter()
        .take(MOST_GROUPS)
        .map(|(group, win)| match win {
            win if *win >= WORTHWHILE => format!("{} {}", group.name, saved(*win)),
            win if *win <= -WORTHWHILE => format!("{} {} longer", group.name, saved(-win)),
            _ => format!("{} unchanged", group.name),
        })
        .collect();
    let more = match waiting.len().saturating_sub(MOST_GROUPS) {
        0 => String::new(),
        1 => String::from(" and one more group"),
        more => format!(" and {more} more groups"),
    };
    format!("times are on average {win}{of}: {}{more}", changed.join(", "))
}

pub(super) fn saved(win: f64) -> String {
    format!("{:.0} %", 100.0 * win)
}

pub(super) fn interval(ci95: Option<[f64; 2]>) -> String {
    ci95.map_or_else(String::new, |ci95| format!(" (95 % interval {})", range(ci95)))
}

fn range(ends: [f64; 2]) -> String {
    let [low, high] = numbers::ends_in_percent(ends);
    format!("{low} to {high} %")
}

/// Whom it harms, by how much.
pub(super) fn harm_words(plan: &Plan, versus: &Versus) -> String {
    let harmed = words::harmed(versus);
    let waiting = || {
        plan.described
            .groups
            .iter()
            .filter(|group| group.latency_sensitive)
    };
    let several = waiting().count() > 1;
    let said: Vec<String> = harmed
        .iter()
        .take(3)
        .map(|(group, harm)| {
            let info = plan.described.groups.iter().find(|info| info.name == group.name);
            let kind = info.map(|info| info.kind);
            harm_of(
                group,
                harm,
                lacks(kind),
                info.is_some_and(|info| info.latency_sensitive),
                several,
            )
        })
        .collect();
    if said.is_empty() {
        format!("and {}", words::unharmed(versus))
    } else {
        format!("but {}", said.join("; "))
    }
}

/// What a group that is harmed and waits no longer than before has less of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lacks {
    /// Throughput.
    FairShare,
    /// What it sends and nobody sends again.
    Datagrams,
    /// Throughput, or time in which its film plays.
    PlayingTime,
}

fn lacks(kind: Option<TrafficKind>) -> Lacks {
    match kind.map(TrafficKind::facts) {
        Some(facts) if facts.losses != Losses::Repaired => Lacks::Datagrams,
        Some(facts) if facts.stood_still.is_some() => Lacks::PlayingTime,
        _ => Lacks::FairShare,
    }
}

/// How much a group is harmed. One that waits may be sooner where it waits and yet lose datagrams. `named`: its times were reported.
fn harm_of(group: &GroupVersus, harm: &Ratio, lacks: Lacks, waits: bool, named: bool) -> String {
    let (name, share) = (&group.name, share(harm));
    let of = harm
        .ci95
        .map_or_else(String::new, |ci95| format!(" ({})", range(ci95)));
    let longer = group.fct_mean_ratio.as_ref().map(|ratio| ratio.value - 1.0);
    if !waits || longer.is_some_and(|longer| longer < 0.0) {
        match lacks {
            Lacks::Datagrams => format!("{share} of the datagrams of {name} are lost{of}"),
            Lacks::PlayingTime => format!("the harm to {name} is {share}{of}"),
            Lacks::FairShare => format!("{share} of the fair share of {name} is lost{of}"),
        }
    } else if named || longer.is_none_or(|longer| longer < WORTHWHILE) {
        format!("the harm to {name} is {share}{of}")
    } else {
        format!("longer waits harm {name} by {share}{of}")
    }
}

/// A share with as many digits as its interval.
fn share(ratio: &Ratio) -> String {
    let decimal = ratio
        .ci95
        .is_some_and(|ends| numbers::ends_in_percent(ends).iter().any(|end| end.contains('.')));
    let value = 100.0 * ratio.value;
    if decimal {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

/// Groups that wait whose times are reported.
const MOST_GROUPS: usize = 6;

#[cfg(test)]
mod tests {
    use super::{GroupVersus, Lacks, Ratio, harm_of};

    #[test]
    fn a_call_that_is_sooner_and_loses_frames_does_not_wait_longer() {
        let ratio = |value| Ratio {
            value,
            ci95: None,
            significant: true,
        };
        let call = |times| GroupVersus {
            name: String::from("call"),
            fct_mean_ratio: Some(ratio(times)),
            fct_p99_ratio: None,
            fct_tail_ratio: None,
            goodput_ratio: None,
            harm: None,
            by_size: Vec::new(),
        };
        let of = |times, waits| harm_of(&call(times), &ratio(0.02), Lacks::Datagrams, waits, false);
        assert_eq!(of(0.66, true), "2 % of the datagrams of call are lost");
        assert_eq!(of(1.02, true), "longer waits harm call by 2 %");
        assert_eq!(of(1.02, false), "2 % of the datagrams of call are lost");
        assert_eq!(of(1.002, true), "the harm to call is 2 %");
        let named = |times| harm_of(&call(times), &ratio(0.02), Lacks::Datagrams, true, true);
        assert_eq!(
            named(1.02),
            "the harm to call is 2 %",
            "that it waits longer was said"
        );
        assert_eq!(named(0.66), "2 % of the datagrams of call are lost");
        let of = |lacks| harm_of(&call(0.66), &ratio(0.02), lacks, false, true);
        assert_eq!(of(Lacks::FairShare), "2 % of the fair share of call is lost");
        assert_eq!(of(Lacks::PlayingTime), "the harm to call is 2 %");
    }
}
