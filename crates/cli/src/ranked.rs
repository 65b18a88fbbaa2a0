//! A comparison as text: the network as described, where packets wait, the ranked table, notes, the answer.

use crate::layout::{fit, new_table, wrapped};
use crate::table::{felt, line, rate, seconds};
use comfy_table::{Cell, CellAlignment, Color};
use fleetfoot_lab::result::{Comparison, Document, Ratio, Variant};
use std::collections::BTreeMap;

/// The whole text.
pub(crate) fn comparison(comparison: &Comparison, colored: bool, width: usize) -> String {
    let document = &comparison.document;
    let mut text = String::new();
    let Some(baseline) = document.variants.first() else {
        return text;
    };
    described(&mut text, document, baseline, width);
    queues(&mut text, document, width);
    text.push('\n');
    let shown = ranked(document, colored, width);
    text.push_str(&shown.table);
    for legend in [
        Some(String::from(
            "Tier: variants of one tier are equal within error; no number: no significant win. Time saved: 20 % means that the mean \
             completion time is 0.8 of what it was [95 % interval]. Harm: the largest share that any group loses of what it could \
             rightly keep (docs/trust.md, Harm). Goodput: change of the goodput of the group that loses most. *: no other saves as \
             much for less harm.",
        )),
        shown.by_size.then(|| {
            String::from(
                "By size: share saved per class of transfer size, small to large; _ none or worse, █ half or more.",
            )
        }),
    ]
    .into_iter()
    .flatten()
    {
        line(&mut text, &wrapped(&legend, width, ""));
    }
    for (letter, remark, names) in &shown.remarks {
        line(
            &mut text,
            &wrapped(&format!("{letter}: {remark}: {}", names.join(", ")), width, ""),
        );
    }
    not_tried(&mut text, comparison, width);
    near(&mut text, document, width);
    if !document.notes.is_empty() {
        line(&mut text, "\nNotes:");
        for note in document.notes.iter().take(NOTES) {
            line(&mut text, &wrapped(note, width, "  "));
        }
        if document.notes.len() > NOTES {
            line(
                &mut text,
                &format!(
                    "  and {} more in the report and in result.json",
                    document.notes.len() - NOTES
                ),
            );
        }
    }
    line(&mut text, &format!("\n{}", wrapped(&document.answer, width, "")));
    how(&mut text, document, width);
    text
}

/// How to turn on what is recommended: each command on a line of its own, however long, so that it can be copied.
fn how(text: &mut String, document: &Document, width: usize) {
    let recommended = document.recommended.as_ref();
    let variant = recommended.and_then(|recommended| {
        document
            .variants
            .iter()
            .find(|variant| variant.name == recommended.variant)
    });
    for instruction in variant.map_or(&[][..], |variant| &variant.instructions) {
        let heading = format!("To turn it on at {} ({}):", instruction.place, instruction.device);
        line(text, &format!("\n{}", wrapped(&heading, width, "")));
        for command in &instruction.commands {
            line(text, &format!("  {command}"));
        }
        line(text, &wrapped(&instruction.why, width, "  "));
        line(
            text,
            &wrapped(&format!("Needs: {}", instruction.needs), width, "  "),
        );
        if let Some(check) = &instruction.check {
            line(text, &wrapped(&format!("Afterwards: {check}"), width, "  "));
        }
    }
}

/// Groups in the baseline.
fn described(text: &mut String, document: &Document, baseline: &Variant, width: usize) {
    let seeds = match baseline.runs {
        1 => String::from("1 seed"),
        runs => format!("{runs} seeds"),
    };
    line(text, &format!("\n{}: as described, {seeds}", document.scenario));
    for group in &baseline.groups {
        let latency = match group.kind.as_str() {
            "thin" => group.delivery_latency_s.as_ref(),
            _ => group.fct_s.as_ref(),
        };
        let waits = if group.latency_sensitive { ", waits" } else { "" };
        let detail = match (latency, &group.goodput_bps) {
            (Some(fct), _) => format!(
                "{} of {} done, mean {}, median {}, p99 {}",
                group.completed,
                group.flows,
                seconds(fct.mean),
                seconds(fct.p50),
                seconds(fct.p99)
            ),
            (None, Some(goodput)) => {
                let each = (goodput.n as f64 / baseline.runs.max(1) as f64).round() as u64;
                match each {
                    0 | 1 => format!("1 connection, {}", rate(goodput.mean)),
                    each => format!("{each} connections, {} each", rate(goodput.mean)),
                }
            }
            (None, None) => String::from("nothing measured"),
        };
        let detail = match felt(group) {
            Some(felt) => format!("{detail}; {felt}"),
            None => detail,
        };
        line(
            text,
            &wrapped(
                &format!("{} ({}{waits}): {detail}", group.name, group.kind),
                width,
                "  ",
            ),
        );
    }
}

/// Where packets wait.
fn queues(text: &mut String, document: &Document, width: usize) {
    let standing: Vec<_> = document.queues.iter().filter(|queue| queue.stands).collect();
    if document.queues.is_empty() {
        return;
    }
    if standing.is_empty() {
        let busiest = document
            .queues
            .iter()
            .max_by(|a, b| a.utilisation.total_cmp(&b.utilisation));
        if let Some(busiest) = busiest {
            let detail = format!(
                "no queue stands; the busiest is {}: {:.0} % used, mean wait {}",
                busiest.place,
                100.0 * busiest.utilisation,
                seconds(busiest.wait_mean_s)
            );
            line(text, &wrapped(&detail, width, "  "));
        }
        return;
    }
    for queue in standing {
        let detail = format!(
            "a queue stands at {} ({}): {:.0} % used, mean wait {}, p99 {}, {} of packets dropped",
            queue.place,
            queue.queue,
            100.0 * queue.utilisation,
            seconds(queue.wait_mean_s),
            seconds(queue.wait_p99_s),
            small_percent(queue.drop_share)
        );
        line(text, &wrapped(&detail, width, "  "));
    }
}

fn not_tried(text: &mut String, comparison: &Comparison, width: usize) {
    if comparison.inapplicable.is_empty() {
        return;
    }
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in &comparison.inapplicable {
        reasons.entry(&entry.reason).or_default().push(&entry.name);
    }
    line(text, "\nNot tried:");
    for (reason, names) in reasons {
        line(
            text,
            &wrapped(&format!("{reason}: {}", names.join(", ")), width, "  "),
        );
    }
}

fn near(text: &mut String, document: &Document, width: usize) {
    if document.sensitivity.is_empty() {
        return;
    }
    line(text, "\nNear this network:");
    for point in &document.sensitivity {
        let verdict = if point.holds {
            "the answer holds"
        } else {
            "another answer"
        };
        let detail = format!(
            "{}: {verdict}; best there {} ({})",
            point.change,
            point.best,
            point.best_win.map_or_else(|| String::from("-"), percent)
        );
        line(text, &wrapped(&detail, width, "  "));
    }
}

/// The table, and what stands under it.
struct Shown {
    table: String,
    /// Whether the sparklines found room.
    by_size: bool,
    /// Remarks with their letters and the variants they are made of.
    remarks: Vec<(char, String, Vec<String>)>,
}

fn ranked(document: &Document, colored: bool, width: usize) -> Shown {
    let baseline = &document.variants[0];
    let mut table = new_table(
        colored,
        &[
            "tier",
            "variant",
            "",
            "time saved",
            "harm",
            "goodput",
            "p99 worst",
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
    let mut remarks: Vec<(char, String, Vec<String>)> = Vec::new();
    for variant in order {
        let Some(versus) = &variant.versus else { continue };
        let mut marks = String::from(if versus.pareto { "*" } else { "" });
        for remark in &versus.remarks {
            let known = remarks.iter().position(|(_, text, _)| text == remark);
            let index = known.unwrap_or_else(|| {
                let letter = char::from(b'a' + (remarks.len() % 26) as u8);
                remarks.push((letter, remark.clone(), Vec::new()));
                remarks.len() - 1
            });
            marks.push(remarks[index].0);
            remarks[index].2.push(variant.name.clone());
        }
        let win = versus.win.unwrap_or(0.0);
        let color = match (versus.significant, win > 0.0) {
            (true, true) => Some(Color::Green),
            (true, false) => Some(Color::Red),
            (false, _) => None,
        };
        let saved = Cell::new(format!(
            "{} {}",
            versus.win.map_or_else(|| String::from("-"), percent),
            interval(versus.win_ci95)
        ))
        .set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(versus.tier.map_or_else(String::new, |tier| tier.to_string()))
                .set_alignment(CellAlignment::Right),
            Cell::new(&variant.name),
            Cell::new(marks),
            match color {
                Some(color) if colored => saved.fg(color),
                _ => saved,
            },
            Cell::new(harm(versus.harm)).set_alignment(CellAlignment::Right),
            Cell::new(
                versus
                    .cost
                    .map_or_else(|| String::from("-"), |cost| signed(-cost)),
            )
            .set_alignment(CellAlignment::Right),
            Cell::new(versus.worst_p99.map_or_else(|| String::from("-"), signed))
                .set_alignment(CellAlignment::Right),
            Cell::new(if versus.significant { "yes" } else { "no" }),
            Cell::new(sparkline(baseline, variant)),
        ]);
    }
    let hidden = fit(&mut table, width, &[BY_SIZE, 7, 5, 6]);
    Shown {
        table: format!("{table}\n"),
        by_size: !hidden.contains(&BY_SIZE),
        remarks,
    }
}

pub(crate) fn harm(harm: Option<Ratio>) -> String {
    match harm {
        None => String::from("-"),
        Some(harm) => format!("{} {}", percent(harm.value), interval(harm.ci95)),
    }
}

/// `[57, 71]`, in per cent.
pub(crate) fn interval(ci95: Option<[f64; 2]>) -> String {
    ci95.map_or_else(String::new, |[low, high]| {
        format!("[{:.0}, {:.0}]", 100.0 * low + 0.0, 100.0 * high + 0.0)
    })
    .replace("-0,", "0,")
    .replace("-0]", "0]")
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

pub(crate) fn percent(share: f64) -> String {
    let value = 100.0 * share;
    // No "-0.0 %".
    format!("{:.1} %", if value.abs() < 0.05 { 0.0 } else { value })
}

/// With more digits where it is small.
fn small_percent(share: f64) -> String {
    match 100.0 * share {
        0.0 => String::from("none"),
        value if value < 0.1 => format!("{value:.2} %"),
        value => format!("{value:.1} %"),
    }
}

fn signed(share: f64) -> String {
    let value = 100.0 * share;
    format!("{:+.1} %", if value.abs() < 0.05 { 0.0 } else { value })
}

/// Column of the sparklines.
const BY_SIZE: usize = 8;

/// So many notes stand on the screen.
const NOTES: usize = 3;
