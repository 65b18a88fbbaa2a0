//! A comparison as text: the network as described, where packets wait, the ranked table, notes, the answer.

use crate::layout::{fit, new_table, wrapped};
use crate::table::line;
use comfy_table::{Cell, CellAlignment, Color};
use fleetfoot_lab::compare::words::{self, Remark, Row};
use fleetfoot_lab::metrics::GroupMetric;
use fleetfoot_lab::result::{Comparison, Document, Variant, Versus};
use std::collections::BTreeMap;

/// The whole text.
pub(crate) fn comparison(comparison: &Comparison, colored: bool, width: usize) -> String {
    let document = &comparison.document;
    let mut text = String::new();
    let Some(baseline) = document.variants.first() else {
        return text;
    };
    let heading = format!(
        "{}: as described, {}",
        document.scenario,
        words::seeds(baseline.runs)
    );
    let groups = baseline.groups.iter();
    let mut described: Vec<String> = groups.map(|group| words::group(group, baseline.runs)).collect();
    described.extend(words::queues(document));
    line(&mut text, &format!("\n{heading}"));
    for words in &described {
        line(&mut text, &wrapped(words, width, "  "));
    }
    text.push('\n');
    let rows = words::rows(document);
    let remarks = words::remarks(&rows);
    let rounds = with_rounds(baseline);
    let (table, hidden) = table(baseline, &rows, &remarks, rounds.as_deref(), colored, width);
    text.push_str(&table);
    // The marks have a column of their own after the variant.
    let column = |heading: &str| words::HEADINGS.iter().position(|other| *other == heading);
    let is_hidden = |heading: &str| column(heading).is_some_and(|index| hidden.contains(&(index + 1)));
    let legend = words::legend(|heading| !is_hidden(heading));
    line(&mut text, &wrapped(&legend, width, ""));
    if !hidden.contains(&BY_SIZE) {
        let legend = "By size: share saved per class of transfer size, small to large; _ none or worse, █ half or more.";
        line(&mut text, &wrapped(legend, width, ""));
    }
    if let Some(group) = &rounds {
        let legend = format!("Round: mean time until the last answer of a round of {group} is there.");
        line(&mut text, &wrapped(&legend, width, ""));
    }
    for remark in &remarks {
        let names = remark.variants.join(", ");
        let words = format!("{}: {}: {names}", remark.letter, remark.text);
        line(&mut text, &wrapped(&words, width, ""));
    }
    list(&mut text, "Not tried:", &words::not_tried(comparison), width);
    let near: Vec<String> = document.sensitivity.iter().map(words::near).collect();
    list(&mut text, "Near this network:", &near, width);
    let shown = document.notes.len().min(words::NOTES);
    list(&mut text, "Notes:", &document.notes[..shown], width);
    if document.notes.len() > shown {
        let more = document.notes.len() - shown;
        line(
            &mut text,
            &format!("  and {more} more in the report and in result.json"),
        );
    }
    line(&mut text, &format!("\n{}", wrapped(&document.answer, width, "")));
    how(&mut text, document, width);
    text
}

/// A heading and lines under it; nothing without lines.
pub(crate) fn list(text: &mut String, heading: &str, lines: &[String], width: usize) {
    if !lines.is_empty() {
        line(text, &format!("\n{heading}"));
    }
    for words in lines {
        line(text, &wrapped(words, width, "  "));
    }
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
    let instructions = variant.map_or(&[][..], |variant| &variant.instructions);
    if let Some(first) = words::not_advised(document).filter(|_| !instructions.is_empty()) {
        line(text, &format!("\n{}", wrapped(&first, width, "")));
    }
    for instruction in instructions {
        let heading = words::to_turn_on(instruction);
        line(text, &format!("\n{}", wrapped(&heading, width, "")));
        for command in &instruction.commands {
            line(text, &format!("  {command}"));
        }
        line(text, &wrapped(&instruction.why, width, "  "));
        line(text, &wrapped(&words::needs(instruction), width, "  "));
        if let Some(check) = words::afterwards(instruction) {
            line(text, &wrapped(&check, width, "  "));
        }
    }
}

/// The table, and the columns that found no room.
fn table(
    baseline: &Variant,
    rows: &[Row<'_>],
    remarks: &[Remark],
    rounds: Option<&str>,
    colored: bool,
    width: usize,
) -> (String, Vec<usize>) {
    let [tier, variant, headings @ ..] = words::HEADINGS;
    let mut heading = vec![tier, variant, ""];
    heading.extend(headings);
    heading.push("by size");
    heading.extend(rounds.map(|_| "round"));
    let mut table = new_table(colored, &heading);
    for row in rows {
        let cells = words::cells(row.versus);
        let win = row.versus.win.unwrap_or(0.0);
        let color = match (row.versus.significant, win > 0.0) {
            (true, true) => Some(Color::Green),
            (true, false) => Some(Color::Red),
            (false, _) => None,
        };
        let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let saved = right(cells.saved);
        let mut filled = vec![
            right(cells.tier),
            Cell::new(format!(
                "{}{}",
                if row.part { "  " } else { "" },
                row.variant.name
            )),
            Cell::new(format!("{}{}", cells.mark, words::letters(row, remarks))),
            match color {
                Some(color) if colored => saved.fg(color),
                _ => saved,
            },
            right(cells.harm),
            right(cells.goodput),
            right(cells.worst_tail),
            Cell::new(cells.significant),
            Cell::new(sparkline(baseline, row.versus)),
        ];
        filled.extend(rounds.map(|group| right(round(row.variant, group))));
        table.add_row(filled);
    }
    // Where there is no room: sparklines, significance, goodput and tail go, in this order.
    let hidden = fit(&mut table, width, &[BY_SIZE, SIGNIFICANT, GOODPUT, TAIL]);
    (format!("{table}\n"), hidden)
}

/// The first group whose users wait for rounds, if one does.
fn with_rounds(baseline: &Variant) -> Option<String> {
    let mut groups = baseline.groups.iter();
    let found = groups.find(|group| group.more(GroupMetric::Round).is_some())?;
    Some(found.name.clone())
}

/// How long a round of this group takes.
fn round(variant: &Variant, group: &str) -> String {
    let found = variant.groups.iter().find(|other| other.name == group);
    let round = found.and_then(|group| group.more(GroupMetric::Round));
    round.map_or_else(|| String::from("-"), |round| words::seconds(round.mean))
}

/// Share saved per class of size of the latency-sensitive groups, small to large, over the seeds that the variant and the baseline both finished.
fn sparkline(baseline: &Variant, versus: &Versus) -> String {
    const BARS: [char; 9] = ['_', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut classes: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    let groups = baseline.groups.iter().zip(&versus.groups);
    for (_, versus) in groups.filter(|(group, _)| group.latency_sensitive) {
        for class in &versus.by_size {
            let entry = classes.entry(class.from_bytes).or_default();
            entry.0 += class.baseline_mean_s * class.baseline_n as f64;
            entry.1 += class.mean_s * class.baseline_n as f64;
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

/// Columns that go where there is no room.
const GOODPUT: usize = 5;
const TAIL: usize = 6;
const SIGNIFICANT: usize = 7;
const BY_SIZE: usize = 8;

#[cfg(test)]
mod tests {
    use super::{round, table, with_rounds};
    use fleetfoot_lab::compare::words;
    use fleetfoot_lab::result::{Document, Variant, Versus};

    /// A group of answers whose rounds take so long (s); `None`: transfers that come by themselves.
    fn variant(name: &str, round_s: Option<f64>) -> Variant {
        let more = match round_s {
            None => serde_json::json!({}),
            Some(mean) => serde_json::json!({ "round_s": {
                "n": 8, "mean": mean, "p50": mean, "p90": mean, "p95": mean, "p99": mean, "max": mean, "ci95": null, "quantiles": {}
            } }),
        };
        let counters: serde_json::Map<String, serde_json::Value> =
            fleetfoot_lab::metrics::counters::reported()
                .map(|counter| (counter.name.to_owned(), 0.into()))
                .collect();
        let mut group = serde_json::json!({
            "name": "answers", "kind": "incast", "latency_sensitive": true, "flows": 8, "completed": 8, "censored": 0, "fct_s": null,
            "acked_s": null, "delivery_latency_s": null, "ack_latency_s": null, "goodput_bps": null, "by_size": [], "dropped_units": 0,
            "congestion_events": 0, "more": more
        });
        group.as_object_mut().expect("it is an object").extend(counters);
        let mut variant: Variant = serde_json::from_value(serde_json::json!({
            "name": name, "set": {}, "runs": 2, "turn_on": null, "groups": [group], "links": [], "nodes": [],
            "headers_per_byte_delivered": null, "lookups_per_s": 0.0, "lookup_power_w": 0.0, "fairness_jain": null,
            "data_packets_delivered": 0, "bytes_sent_per_byte_delivered": null, "versus": null
        }))
        .expect("the fields of a variant");
        let versus: Versus = serde_json::from_value(serde_json::json!({
            "baseline": "as described", "rank": 1, "win": 0.5, "cost": null, "worst_p99": null, "significant": true, "groups": []
        }))
        .expect("the fields of a comparison");
        variant.versus = (name != "as described").then_some(versus);
        variant
    }

    #[test]
    fn where_users_wait_for_rounds_the_table_says_how_long_they_take() {
        let shown = |rounds: [Option<f64>; 2]| {
            let [before, after] = rounds;
            let document = Document {
                variants: vec![variant("as described", before), variant("cake", after)],
                ..Document::default()
            };
            let rows = words::rows(&document);
            let baseline = &document.variants[0];
            let rounds = with_rounds(baseline);
            let (text, _) = table(baseline, &rows, &[], rounds.as_deref(), false, 160);
            (rounds, text)
        };
        let (group, text) = shown([Some(0.212), Some(0.017)]);
        assert_eq!(group.as_deref(), Some("answers"));
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(lines[0].ends_with("round"), "{text}");
        assert!(lines[1].ends_with("17 ms"), "{text}");
        let (group, text) = shown([None, None]);
        assert_eq!(group, None);
        assert!(!text.contains("round"), "{text}");
        assert_eq!(round(&variant("cake", None), "answers"), "-");
    }
}
