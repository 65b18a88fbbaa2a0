//! A comparison as text: the network as described, where packets wait, the ranked table, notes, the answer.

use crate::layout::{fit, new_table, wrapped};
use crate::table::line;
use comfy_table::{Cell, CellAlignment, Color};
use fleetfoot_lab::compare::words::{self, Remark, Row};
use fleetfoot_lab::metrics::GroupMetric;
use fleetfoot_lab::result::{Comparison, Document, Variant};
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
fn list(text: &mut String, heading: &str, lines: &[String], width: usize) {
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
    for instruction in variant.map_or(&[][..], |variant| &variant.instructions) {
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
            right(cells.worst_p99),
            Cell::new(cells.significant),
            Cell::new(sparkline(baseline, row.variant)),
        ];
        filled.extend(rounds.map(|group| right(round(row.variant, group))));
        table.add_row(filled);
    }
    // Where there is no room: sparklines, significance, goodput and p99 go, in this order.
    let hidden = fit(&mut table, width, &[BY_SIZE, SIGNIFICANT, GOODPUT, P99]);
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

/// Columns that go where there is no room.
const GOODPUT: usize = 5;
const P99: usize = 6;
const SIGNIFICANT: usize = 7;
const BY_SIZE: usize = 8;
