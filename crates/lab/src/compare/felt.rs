//! What users of a group feel beside its times, in words.

use super::words::seconds;
use crate::metrics::GroupMetric;
use crate::result::Group;
use fleetfoot_sim::spec::{Losses, TrafficKind};

/// What users of a group feel beside its times: rounds, late frames, delay, loss.
pub fn felt(group: &Group) -> Option<String> {
    let share = |metric| group.more(metric).map(|share| 100.0 * share.mean);
    let mut parts = Vec::new();
    let kind = TrafficKind::by_name(&group.kind);
    if let (Some(TrafficKind::Cbr), Some(delay)) = (kind, &group.delivery_latency_s) {
        let (mean, p99) = (seconds(delay.mean), seconds(delay.p99));
        parts.push(format!("one-way delay mean {mean}, p99 {p99}"));
    }
    if let Some(rounds) = group.more(GroupMetric::Round) {
        let (mean, p99) = (seconds(rounds.mean), seconds(rounds.p99));
        parts.push(format!("a round, until the last is done, mean {mean}, p99 {p99}"));
    }
    let counted = group.more(GroupMetric::UntilNext).zip(group.fct_s.as_ref());
    if let Some((counted, _)) = counted.filter(|(counted, came)| counted.mean >= TOLD_APART * came.mean) {
        let lost = match kind.map(TrafficKind::facts) {
            Some(facts) if facts.losses == Losses::Flows => "those without an answer",
            _ => "lost frames",
        };
        let (mean, p99) = (seconds(counted.mean), seconds(counted.p99));
        parts.push(format!(
            "with {lost}, which count until the next one came, mean {mean}, p99 {p99}"
        ));
    }
    if let Some(late) = share(GroupMetric::LateOrLost) {
        parts.push(format!("{late:.1} % of the frames late or lost"));
    }
    if let Some(lost) = share(GroupMetric::LostShare) {
        parts.push(format!("{lost:.2} % of the datagrams lost"));
    }
    let never = without_picture(group);
    let any = never.is_some();
    parts.extend(never);
    let measures = kind.map_or(&[][..], |kind| kind.facts().measures);
    for measure in measures {
        if let Some(found) = group.more.get(measure.name) {
            // A player without a picture had no stalls either.
            if any && measure.name == "stalls" && found.mean == 0.0 {
                continue;
            }
            parts.extend(in_words(measure.name, found.mean));
        }
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// How many players showed no picture before the end; `None`: all of them did.
fn without_picture(group: &Group) -> Option<String> {
    let players = group.more.get("without_picture")?;
    let never = (players.mean * players.n as f64).round();
    (never > 0.0).then(|| {
        format!(
            "{never} of {} players showed no picture before the end",
            players.n
        )
    })
}

/// A measure that only some kinds have, by its name in results, with its mean; `None` where it says nothing.
fn in_words(measure: &str, mean: f64) -> Option<String> {
    let share = 100.0 * mean;
    let visible = share >= VISIBLE_PERCENT;
    match measure {
        "startup_delay_s" => Some(format!("the first picture after {} on average", seconds(mean))),
        "stalls" if mean == 0.0 => Some(String::from("no stalls")),
        "stalls" => Some(format!("{mean:.2} stalls of a player on average")),
        "stalled_share" => visible.then(|| format!("the picture stood still for {share:.1} % of the time")),
        // In numbers of players: `without_picture`.
        "without_picture" => None,
        "idle_share" => visible.then(|| format!("nothing to load for {share:.1} % of the time")),
        "window_after_pause" => Some(format!(
            "after a pause the window of a server is {share:.0} % of what it was when the request came"
        )),
        other => Some(format!("{} {mean:.3} on average", other.replace('_', " "))),
    }
}

/// A share of the time below this many per cent is written as 0.0.
const VISIBLE_PERCENT: f64 = 0.05;

/// Mean times with and without what was lost are both given where they differ by this factor: below it they read as the same.
const TOLD_APART: f64 = 1.05;

#[cfg(test)]
mod tests {
    use super::in_words;
    use fleetfoot_sim::spec::TrafficKind;

    #[test]
    fn measures_of_a_player_are_said_in_words_and_a_share_of_nothing_is_left_out() {
        assert_eq!(
            in_words("startup_delay_s", 4.111).as_deref(),
            Some("the first picture after 4.11 s on average")
        );
        assert_eq!(in_words("stalls", 0.0).as_deref(), Some("no stalls"));
        assert_eq!(
            in_words("stalls", 0.5).as_deref(),
            Some("0.50 stalls of a player on average")
        );
        assert_eq!(in_words("stalled_share", 0.0), None);
        assert_eq!(
            in_words("stalled_share", 0.073).as_deref(),
            Some("the picture stood still for 7.3 % of the time")
        );
    }

    #[test]
    fn no_name_of_a_field_is_shown() {
        for kind in TrafficKind::ALL {
            for measure in kind.facts().measures {
                if measure.name == "without_picture" {
                    continue;
                }
                let said = in_words(measure.name, 0.5).unwrap_or_default();
                assert!(
                    !said.contains('_') && !said.is_empty(),
                    "{}: {said}",
                    measure.name
                );
            }
        }
    }
}
