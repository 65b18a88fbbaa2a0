//! What is reported of marking: a document, or a few lines.

use crate::output::counted;
use fleetfoot_core::superpacket::Layout;
use fleetfoot_live::{MarkRules, Marked, Passage, Refusal, Unmarked};
use fleetfoot_sim::output::Histogram;
use serde_json::{Map, Value, json};

/// What happened beside the marking.
pub(super) struct Facts<'a> {
    /// The interfaces between which packets passed.
    pub(super) between: Option<[&'a str; 2]>,
    /// That of the command.
    pub(super) exit_code: Option<i32>,
    /// Frames that were not read in time.
    pub(super) missed: u32,
}

/// The document of `--json`.
pub(super) fn document(rules: &MarkRules, directions: &[Passage; 2], facts: &Facts<'_>) -> Value {
    let [there, back] = directions;
    let (marked, measured) = (there.marked(), there.measured());
    let named = |layout: Option<Layout>| layout.map(Layout::name);
    json!({
        "schema": "fleetfoot-mark", "version": 1, "between": facts.between, "exit_code": facts.exit_code,
        "layouts": { "ipv4": named(rules.four), "ipv6": named(rules.six) },
        "t_buffer_s": rules.marking.t_buffer.as_secs_f64(), "hold_s": rules.marking.hold.as_secs_f64(),
        "max_packets": rules.marking.max, "by_write": rules.marking.by_write,
        "packets": measured.arrived, "bytes": measured.bytes,
        "marked_packets": marked.packets, "super_packets": super_packets(marked),
        "super_packets_by_length": by_length(marked)
            .map(|(length, count)| (length.to_string(), count.into()))
            .collect::<Map<_, _>>(),
        "mean_length": mean_length(marked),
        "unmarked": unmarked(marked).map(|(reason, count)| (reason.name().to_owned(), count.into())).collect::<Map<_, _>>(),
        "held_s": held(&marked.held), "most_held_packets": marked.most_held,
        "lateness_s": quantiles(&measured.lateness),
        "refused": refused(there), "refused_back": refused(back), "packets_back": back.measured().arrived,
        "missed_packets": facts.missed,
    })
}

fn super_packets(marked: &Marked) -> u64 {
    marked.groups.iter().sum()
}

/// Mean length of super-packets; nothing where there are none.
fn mean_length(marked: &Marked) -> Option<f64> {
    let count = super_packets(marked);
    (count > 0).then(|| marked.packets as f64 / count as f64)
}

/// Lengths that there were, and how often.
fn by_length(marked: &Marked) -> impl Iterator<Item = (usize, u64)> + '_ {
    let lengths = marked.groups.iter().copied().enumerate();
    lengths.filter(|&(_, count)| count > 0)
}

/// Reasons that were given, and how often.
fn unmarked(marked: &Marked) -> impl Iterator<Item = (Unmarked, u64)> + '_ {
    let all = Unmarked::ALL.iter();
    all.map(|&reason| (reason, marked.unmarked[reason as usize]))
        .filter(|&(_, count)| count > 0)
}

fn refused(passage: &Passage) -> Map<String, Value> {
    let all = Refusal::ALL.iter();
    all.map(|&reason| {
        let count = passage.measured().refused[reason as usize];
        (reason.name().to_owned(), count.into())
    })
    .collect()
}

fn quantiles(values: &Histogram) -> Value {
    let at = |quantile| values.quantile(quantile).map(|value| value as f64 / 1e9);
    json!({
        "n": values.n(), "mean": values.mean().map(|mean| mean / 1e9), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0),
    })
}

/// Quantiles, and how many packets were held for up to 1, 2, 4, ... microseconds.
fn held(values: &Histogram) -> Value {
    let mut classes: Vec<(u64, u64)> = Vec::new();
    for (value, count) in values.counts() {
        let up_to = value.max(1000).div_ceil(1000).next_power_of_two() * 1000;
        match classes.last_mut() {
            Some((class, sum)) if *class == up_to => *sum += count,
            _ => classes.push((up_to, count)),
        }
    }
    let mut document = quantiles(values);
    document["histogram"] = classes
        .iter()
        .map(|&(up_to, packets)| json!({ "up_to": up_to as f64 / 1e9, "packets": packets }))
        .collect();
    document
}

/// A few lines for people.
pub(super) fn summary(directions: &[Passage; 2], facts: &Facts<'_>) -> String {
    let [there, back] = directions;
    let (marked, measured) = (there.marked(), there.measured());
    let mut lines = Vec::new();
    let mut first = format!(
        "{} of {} marked",
        marked.packets,
        counted(measured.arrived, "packet")
    );
    if let Some(mean) = mean_length(marked) {
        let lengths: Vec<String> = by_length(marked)
            .map(|(length, count)| format!("{count} of {length}"))
            .collect();
        first += &format!(
            ", in {}, {mean:.1} packets long on average ({})",
            counted(super_packets(marked), "super-packet"),
            lengths.join(", ")
        );
    }
    lines.push(first);
    let reasons: Vec<String> = unmarked(marked)
        .map(|(reason, count)| format!("{count} {}", words(reason)))
        .collect();
    if !reasons.is_empty() {
        lines.push(format!("not marked: {}", reasons.join(", ")));
    }
    let us = |values: &Histogram, quantile| values.quantile(quantile).unwrap_or(0) as f64 / 1e3;
    if marked.held.n() > 0 {
        lines.push(format!(
            "held: {:.1} us (median), {:.1} us (99 %), {:.1} us (longest)",
            us(&marked.held, 0.5),
            us(&marked.held, 0.99),
            us(&marked.held, 1.0)
        ));
    }
    if measured.lateness.n() > 0 {
        lines.push(format!(
            "own lateness: {:.1} us (median), {:.1} us (99 %), {:.1} us (longest)",
            us(&measured.lateness, 0.5),
            us(&measured.lateness, 0.99),
            us(&measured.lateness, 1.0)
        ));
    }
    if marked.unmarked[Unmarked::Checksum as usize] > 0 {
        lines.push(String::from(
            "Where hosts leave checksums to their device, switch that off there: ethtool -K DEVICE tx off",
        ));
    }
    if marked.unmarked[Unmarked::Family as usize] > 0 {
        lines.push(String::from(
            "For the version of IP that was not marked, name a layout: --layout B,C",
        ));
    }
    for (passage, way) in [(there, "out"), (back, "back")] {
        for refusal in Refusal::ALL {
            let count = passage.measured().refused[refusal as usize];
            if count > 0 {
                lines.push(format!(
                    "{} on the way {way} refused: {}",
                    counted(count, "packet"),
                    refusal.words()
                ));
            }
        }
    }
    if facts.missed > 0 {
        lines.push(format!(
            "{} lost because this machine did not read them in time",
            counted(facts.missed.into(), "packet")
        ));
    }
    lines.join("\n")
}

/// Why, in words that go on "12 ...".
const fn words(reason: Unmarked) -> &'static str {
    match reason {
        Unmarked::NoData => "without data",
        Unmarked::Alone => "alone",
        Unmarked::NotSelected => "of other ports or networks",
        Unmarked::Protocol => "of other protocols",
        Unmarked::Family => "of a version of IP without a layout",
        Unmarked::Marked => "marked already",
        Unmarked::Fragmentable => "that may be fragmented",
        Unmarked::Fragment => "fragments",
        Unmarked::TrafficClass => "with a traffic class of their own",
        Unmarked::Urgent => "with urgent data",
        Unmarked::Headers => "with extension headers of their own",
        Unmarked::Room => "without room for the option",
        Unmarked::Checksum => "with a wrong checksum",
        Unmarked::Malformed => "malformed",
        Unmarked::NotIp => "not of IP",
    }
}
