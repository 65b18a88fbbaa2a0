//! A single run as text.

use crate::layout::{align, fit, new_table, wrapped};
use crate::ranked::list;
use fleetfoot_lab::compare::words::{felt, rate, seconds};
use fleetfoot_lab::result::{Comparison, Group, Summary};
use fleetfoot_sim::spec::{Facts, TrafficKind};
use std::fmt::Write;

/// Groups, base RTTs, links and the flows of a single run.
pub(crate) fn single(comparison: &Comparison, colored: bool, width: usize) -> String {
    let document = &comparison.document;
    let variant = &document.variants[0];
    let mut text = String::new();
    line(
        &mut text,
        &format!(
            "\n{}: {}, runs: {}, first seed: {}",
            document.scenario, variant.name, variant.runs, document.seeds[0]
        ),
    );
    line(&mut text, "\nBase RTT (propagation and processing):");
    for (rtt, pairs) in rtts(comparison) {
        line(&mut text, &wrapped(&format!("{rtt}: {pairs}"), width, "  "));
    }

    let mut groups = new_table(
        colored,
        &[
            "group", "flows", "done", "mean", "p50", "p99", "max", "goodput", "rexmit", "RTO",
        ],
    );
    for group in &variant.groups {
        let fct = |value: fn(&Summary) -> f64| {
            let times = group.fct_s.as_ref().or(group.delivery_latency_s.as_ref());
            times.map_or_else(|| String::from("-"), |s| seconds(value(s)))
        };
        groups.add_row([
            group.name.clone(),
            group.flows.to_string(),
            group.completed.to_string(),
            fct(|s| s.mean),
            fct(|s| s.p50),
            fct(|s| s.p99),
            fct(|s| s.max),
            group
                .goodput_bps
                .as_ref()
                .map_or_else(|| String::from("-"), |s| rate(s.mean)),
            group.counters.text("retransmits"),
            group.counters.text("timeouts"),
        ]);
    }
    align(&mut groups, 1..10);
    fit(&mut groups, width, &[6, 4, 9, 8]);
    let _ = writeln!(text, "\n{groups}");
    let probes: Vec<String> = variant
        .groups
        .iter()
        .filter(|group| group.counters.get("probes") > Some(0))
        .map(|group| format!("{} of {}", group.counters.text("probes"), group.name))
        .collect();
    if !probes.is_empty() {
        let sent = format!(
            "tail loss probes (sent before an RTO, where the last of what was sent is not acknowledged): {}",
            probes.join(", ")
        );
        line(&mut text, &wrapped(&sent, width, "  "));
    }
    for group in &variant.groups {
        if let Some(felt) = felt(group) {
            line(
                &mut text,
                &wrapped(&format!("{}: {felt}", group.name), width, "  "),
            );
        }
    }

    if let Some(meaning) = goodput(&variant.groups) {
        line(&mut text, &wrapped(&meaning, width, "  "));
    }

    crate::links::write(&mut text, variant, comparison, colored, width);

    let mut flows = new_table(
        colored,
        &[
            "flow", "start", "bytes", "time", "goodput", "rexmit", "RTO", "probes", "min RTT",
        ],
    );
    let mut left_out = 0;
    if let Some(run) = comparison.variants[0].runs.first() {
        for (info, group) in comparison.groups.iter().zip(&run.output.groups) {
            left_out += group.flows.len().saturating_sub(FLOWS);
            for (number, flow) in group.flows.iter().take(FLOWS).enumerate() {
                let time = flow
                    .completed
                    .map(|completed| completed.since(flow.start).as_secs_f64());
                flows.add_row([
                    format!("{}/{number}", info.name),
                    seconds(flow.start.as_secs_f64()),
                    flow.bytes.0.to_string(),
                    time.map_or_else(|| String::from("open"), seconds),
                    time.filter(|time| *time > 0.0).map_or_else(
                        || String::from("-"),
                        |time| rate(flow.bytes.0 as f64 * 8.0 / time),
                    ),
                    flow.stats().retransmits.to_string(),
                    flow.stats().timeouts.to_string(),
                    flow.stats().probes.to_string(),
                    flow.min_rtt
                        .map_or_else(|| String::from("-"), |rtt| seconds(rtt.as_secs_f64())),
                ]);
            }
        }
    }
    align(&mut flows, 1..9);
    fit(&mut flows, width, &[7, 1, 8, 4]);
    let _ = writeln!(text, "\n{flows}");
    line(&mut text, &wrapped(OF_ALL_ITS_LIFE, width, " "));
    if left_out > 0 {
        line(
            &mut text,
            &wrapped(
                &format!("and {left_out} more flows in samples.csv (with --out FOLDER)"),
                width,
                " ",
            ),
        );
    }
    list(&mut text, "Notes:", &document.notes, width);
    if !document.answer.is_empty() {
        line(&mut text, &format!("\n{}", wrapped(&document.answer, width, "")));
    }
    text
}

/// Over which time the columns count.
const OF_ALL_ITS_LIFE: &str = "bytes, rexmit, RTO and probes count from the start of a flow until it or the run ends, warm-up and drain included; used, delay, drops and marks of links are those of the measured time";

/// What the column goodput says where a group has connections with pauses in them; `None` where none has.
fn goodput(groups: &[Group]) -> Option<String> {
    let of = |is: fn(&Facts) -> bool| {
        let kind = |group: &Group| TrafficKind::by_name(&group.kind).map(TrafficKind::facts);
        let such = groups
            .iter()
            .filter(|group| group.goodput_bps.is_some() && kind(group).is_some_and(is));
        let names: Vec<&str> = such.map(|group| group.name.as_str()).collect();
        Some(names.join(", ")).filter(|names| !names.is_empty())
    };
    let pausing = of(|facts| facts.closed_loop && !facts.flow_is_connection)?;
    let each = "per connection over the measured time, with its pauses";
    Some(match of(|facts| facts.flow_is_connection) {
        None => format!("goodput of {pausing}: {each}"),
        Some(single) => format!("goodput of {pausing}: {each}; of {single}: per transfer, while it ran"),
    })
}

/// Base RTTs and the pairs that have them.
fn rtts(comparison: &Comparison) -> Vec<(String, String)> {
    let mut by_rtt: Vec<(f64, Vec<String>)> = Vec::new();
    for pair in &comparison.pairs {
        let name = format!("{} to {}", pair.from, pair.to);
        match by_rtt
            .iter_mut()
            .find(|entry| (entry.0 - pair.base_rtt_s).abs() < 1e-12)
        {
            Some(entry) => entry.1.push(name),
            None => by_rtt.push((pair.base_rtt_s, vec![name])),
        }
    }
    by_rtt
        .into_iter()
        .map(|(rtt, names)| {
            let shown = match names.len() {
                0..=4 => names.join(", "),
                n => format!("{}, {}, ... {} ({n} pairs)", names[0], names[1], names[n - 1]),
            };
            (seconds(rtt), shown)
        })
        .collect()
}

pub(crate) fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

const FLOWS: usize = 20;

#[cfg(test)]
mod tests {
    use super::goodput;
    use fleetfoot_lab::result::{Group, Summary};

    /// A group of which only name and kind matter here.
    fn group(name: &str, kind: &str) -> Group {
        Group {
            name: name.to_owned(),
            kind: kind.to_owned(),
            latency_sensitive: true,
            flows: 1,
            completed: 1,
            censored: 0,
            undelivered: 0,
            fct_s: None,
            acked_s: None,
            delivery_latency_s: None,
            ack_latency_s: None,
            goodput_bps: Some(Summary {
                n: 1,
                mean: 1e6,
                p50: 1e6,
                p90: 1e6,
                p95: 1e6,
                p99: 1e6,
                max: 1e6,
                ci95: None,
                quantiles: Default::default(),
            }),
            by_size: Vec::new(),
            counters: Default::default(),
            dropped_units: 0,
            congestion_events: None,
            more: Default::default(),
        }
    }

    #[test]
    fn the_two_kinds_of_goodput_are_told_apart_where_both_stand() {
        let (pages, copies, backup) = (
            group("pages", "web"),
            group("copies", "transfer"),
            group("backup", "bulk"),
        );
        let each = "goodput of pages: per connection over the measured time, with its pauses";
        assert_eq!(
            goodput(&[pages.clone(), copies.clone()]),
            Some(format!("{each}; of copies: per transfer, while it ran"))
        );
        assert_eq!(goodput(&[pages, backup.clone()]), Some(each.to_owned()));
        assert_eq!(goodput(&[copies, backup]), None);
    }
}
