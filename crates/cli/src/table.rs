//! Results as text.

use crate::layout::{align, fit, new_table, wrapped};
use comfy_table::{Cell, CellAlignment, Color};
use fleetfoot_lab::result::{Comparison, Group, GroupVersus, Summary, Variant};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The ranked table, what does not apply, notes, and the answer.
pub(crate) fn comparison(comparison: &Comparison, colored: bool, width: usize) -> String {
    let document = &comparison.document;
    let mut text = String::new();
    let Some(baseline) = document.variants.first() else {
        return text;
    };
    line(
        &mut text,
        &format!("\n{}: as described, {} seeds", document.scenario, baseline.runs),
    );
    for group in &baseline.groups {
        let detail = match (&group.fct_s, &group.goodput_bps) {
            (Some(fct), _) => format!(
                "{} of {} done, mean {}, median {}, p99 {}",
                group.completed,
                group.flows,
                seconds(fct.mean),
                seconds(fct.p50),
                seconds(fct.p99)
            ),
            (None, Some(goodput)) => format!("{} connections, {} each", goodput.n, rate(goodput.mean)),
            (None, None) => String::from("nothing measured"),
        };
        let detail = match felt(group) {
            Some(felt) => format!("{detail}; {felt}"),
            None => detail,
        };
        line(
            &mut text,
            &wrapped(&format!("{} ({}): {detail}", group.name, group.kind), width, "  "),
        );
    }
    for link in baseline
        .links
        .iter()
        .filter(|link| comparison.bottleneck.contains(&link.name))
    {
        if let Some(delay) = &link.queue_delay_s {
            let detail = format!(
                "{} {}: {:.0} % used, queue delay mean {}, p99 {}, {} drops",
                link.name,
                link.direction,
                100.0 * link.utilisation,
                seconds(delay.mean),
                seconds(delay.p99),
                link.drops.data + link.drops.ack + link.drops.other
            );
            line(&mut text, &wrapped(&detail, width, "  "));
        }
    }
    text.push('\n');
    let (table, by_size) = ranked(comparison, colored, width);
    text.push_str(&table);
    for legend in [
        Some("Time saved: 20 % means the mean completion time is 0.8 of what it was; [95 % interval]."),
        by_size.then_some(
            "By size: share saved per class of transfer size, small to large; _ none or worse, █ half or more.",
        ),
    ]
    .into_iter()
    .flatten()
    {
        line(&mut text, &wrapped(legend, width, ""));
    }
    if !comparison.inapplicable.is_empty() {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for entry in &comparison.inapplicable {
            reasons.entry(&entry.reason).or_default().push(&entry.name);
        }
        line(&mut text, "\nNot tried:");
        for (reason, names) in reasons {
            line(
                &mut text,
                &wrapped(&format!("{reason}: {}", names.join(", ")), width, "  "),
            );
        }
    }
    if !comparison.sensitivity.is_empty() {
        line(&mut text, "\nNear this network:");
        for point in &comparison.sensitivity {
            let verdict = if point.holds {
                "the ranking holds"
            } else {
                "another order"
            };
            let detail = format!(
                "{}: {verdict}; best there {} ({})",
                point.change,
                point.best,
                point.best_win.map_or_else(|| String::from("-"), percent)
            );
            line(&mut text, &wrapped(&detail, width, "  "));
        }
    }
    if !comparison.notes.is_empty() {
        line(&mut text, "\nNotes:");
        for note in comparison.notes.iter().take(NOTES) {
            line(&mut text, &wrapped(note, width, "  "));
        }
        if comparison.notes.len() > NOTES {
            line(
                &mut text,
                &format!("  and {} more in the report", comparison.notes.len() - NOTES),
            );
        }
    }
    line(&mut text, &format!("\n{}", wrapped(&document.answer, width, "")));
    text
}

/// What users of a group without retransmission feel beside its times: late frames, delay, loss.
fn felt(group: &Group) -> Option<String> {
    let share = |name: &str| group.more.get(name).map(|share| 100.0 * share.mean);
    let mut parts = Vec::new();
    if let (None, Some(delay)) = (&group.fct_s, &group.delivery_latency_s) {
        let (mean, p99) = (seconds(delay.mean), seconds(delay.p99));
        parts.push(format!("one-way delay mean {mean}, p99 {p99}"));
    }
    if let Some(late) = share("late_or_lost") {
        parts.push(format!("{late:.1} % of the frames late or lost"));
    }
    if let Some(lost) = share("lost_share") {
        parts.push(format!("{lost:.2} % of the datagrams lost"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

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
            group.retransmits.to_string(),
            group.timeouts.to_string(),
        ]);
    }
    align(&mut groups, 1..10);
    fit(&mut groups, width, &[6, 4, 9, 8]);
    let _ = writeln!(text, "\n{groups}");
    for group in &variant.groups {
        if let Some(felt) = felt(group) {
            line(
                &mut text,
                &wrapped(&format!("{}: {felt}", group.name), width, "  "),
            );
        }
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
                    flow.retransmits.to_string(),
                    flow.timeouts.to_string(),
                    flow.probes.to_string(),
                    flow.min_rtt
                        .map_or_else(|| String::from("-"), |rtt| seconds(rtt.as_secs_f64())),
                ]);
            }
        }
    }
    align(&mut flows, 1..9);
    fit(&mut flows, width, &[7, 1, 8, 4]);
    let _ = writeln!(text, "\n{flows}");
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
    line(&mut text, &format!("\n{}", wrapped(&document.answer, width, "")));
    text
}

/// The ranking, and whether its sparklines found room.
fn ranked(comparison: &Comparison, colored: bool, width: usize) -> (String, bool) {
    let document = &comparison.document;
    let baseline = &document.variants[0];
    let mut table = new_table(
        colored,
        &[
            "#",
            "variant",
            "time saved",
            "",
            "p99 worst",
            "cost",
            "significant",
            "by size",
        ],
    );
    let mut order: Vec<&Variant> = document
        .variants
        .iter()
        .filter(|variant| variant.versus.is_some())
        .collect();
    order.sort_by_key(|variant| variant.versus.as_ref().map_or(0, |versus| versus.rank));
    for variant in order {
        let Some(versus) = &variant.versus else { continue };
        let win = versus.win.unwrap_or(0.0);
        let color = match (versus.significant, win > 0.0) {
            (true, true) => Some(Color::Green),
            (true, false) => Some(Color::Red),
            (false, _) => None,
        };
        let saved = Cell::new(versus.win.map_or_else(|| String::from("-"), percent))
            .set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(versus.rank).set_alignment(CellAlignment::Right),
            Cell::new(&variant.name),
            match color {
                Some(color) if colored => saved.fg(color),
                _ => saved,
            },
            Cell::new(interval(comparison, &versus.groups)),
            Cell::new(versus.worst_p99.map_or_else(|| String::from("-"), signed))
                .set_alignment(CellAlignment::Right),
            Cell::new(versus.cost.map_or_else(|| String::from("-"), percent))
                .set_alignment(CellAlignment::Right),
            Cell::new(if versus.significant { "yes" } else { "no" }),
            Cell::new(sparkline(baseline, variant)),
        ]);
    }
    let hidden = fit(&mut table, width, &[BY_SIZE, 6, 3, 4]);
    (format!("{table}\n"), !hidden.contains(&BY_SIZE))
}

/// Interval of the share saved, where one group decides it.
fn interval(comparison: &Comparison, groups: &[GroupVersus]) -> String {
    let sensitive: Vec<&GroupVersus> = groups
        .iter()
        .zip(&comparison.groups)
        .filter(|(group, info)| info.latency_sensitive && group.fct_mean_ratio.is_some())
        .map(|(group, _)| group)
        .collect();
    match sensitive.as_slice() {
        [only] => only
            .fct_mean_ratio
            .and_then(|ratio| ratio.ci95)
            .map_or_else(String::new, |[low, high]| {
                let percent = |ratio: f64| (100.0 * (1.0 - ratio)).round() as i64;
                format!("[{}, {}]", percent(high), percent(low))
            }),
        _ => String::new(),
    }
}

/// Share saved per class of size of the latency-sensitive groups, small to large.
fn sparkline(baseline: &Variant, variant: &Variant) -> String {
    const BARS: [char; 9] = ['_', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut classes: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for (before, after) in baseline
        .groups
        .iter()
        .zip(&variant.groups)
        .filter(|(group, _)| group.latency_sensitive)
    {
        for (old, new) in before.by_size.iter().zip(&after.by_size) {
            if let (Some(old_fct), Some(new_fct)) = (&old.fct_s, &new.fct_s) {
                let entry = classes.entry(old.from_bytes).or_default();
                entry.0 += old_fct.mean * old_fct.n as f64;
                entry.1 += new_fct.mean * old_fct.n as f64;
            }
        }
    }
    classes
        .values()
        .map(|&(before, after)| {
            let saved = if before > 0.0 { 1.0 - after / before } else { 0.0 };
            BARS[(saved * 16.0).round().clamp(0.0, 8.0) as usize]
        })
        .collect()
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

fn percent(share: f64) -> String {
    let value = 100.0 * share;
    // No "-0.0 %".
    format!("{:.1} %", if value.abs() < 0.05 { 0.0 } else { value })
}

fn signed(share: f64) -> String {
    let value = 100.0 * share;
    format!("{:+.1} %", if value.abs() < 0.05 { 0.0 } else { value })
}

pub(crate) fn seconds(value: f64) -> String {
    match value.abs() {
        0.0 => String::from("0"),
        v if v >= 10.0 => format!("{value:.1} s"),
        v if v >= 1.0 => format!("{value:.2} s"),
        v if v >= 0.01 => format!("{:.0} ms", value * 1e3),
        v if v >= 0.001 => format!("{:.1} ms", value * 1e3),
        _ => format!("{:.0} us", value * 1e6),
    }
}

fn rate(bps: f64) -> String {
    match bps {
        b if b >= 1e9 => format!("{:.2} Gbit/s", b / 1e9),
        b if b >= 1e6 => format!("{:.2} Mbit/s", b / 1e6),
        b => format!("{:.0} kbit/s", b / 1e3),
    }
}

const FLOWS: usize = 20;
/// Column of the sparklines.
const BY_SIZE: usize = 7;
const NOTES: usize = 6;
