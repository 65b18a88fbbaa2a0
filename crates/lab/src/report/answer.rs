//! What the report says of the answer: the top of the page, how to turn things on, the table, the networks near this one.
//!
//! Every text comes from [`words`], like the terminal's.

use super::figures;
use super::text::rounded;
use crate::compare::words::{self, Row};
use crate::result::{Comparison, Document, Instruction, Variant, Versus};
use serde::Serialize;
use serde_json::{Value, json};

/// The answer, the facts behind it, and the notes.
pub(super) fn top(document: &Document) -> Value {
    let (headline, rest) = words::headline(&document.answer);
    let shown = document.notes.len().min(words::NOTES);
    json!({
        "headline": unbroken(headline),
        "rest": unbroken(rest),
        "facts": facts(document),
        "notes": document.notes[..shown].iter().map(|note| unbroken(note)).collect::<Vec<_>>(),
        "more_notes": document.notes[shown..].iter().map(|note| unbroken(note)).collect::<Vec<_>>(),
    })
}

/// No line ends between a number and its percent sign, and keys stand between quotation marks, not between what only a terminal shows.
fn unbroken(text: &str) -> String {
    let mut text = text.replace(" %", "\u{a0}%");
    while let Some((before, rest)) = text.split_once('`')
        && let Some((key, after)) = rest.split_once('`')
    {
        text = format!("{before}\u{201c}{key}\u{201d}{after}");
    }
    text
}

/// A fact about the recommended setting: what, its value, and what is to be said beside it.
#[derive(Serialize)]
struct Fact {
    what: &'static str,
    value: String,
    /// Whether the value is a number, in large type.
    number: bool,
    beside: Vec<String>,
}

fn facts(document: &Document) -> Vec<Fact> {
    let Some(recommended) = &document.recommended else {
        return Vec::new();
    };
    let done = words::done(document, recommended);
    let simulated = done.and_then(|variant| variant.versus.as_ref());
    // Where the answer goes by the rate of the command, so do the facts.
    let Some(versus) = document.as_commanded.as_ref().or(simulated) else {
        return Vec::new();
    };
    let waiting: Vec<String> = saved_by_group(versus_groups(done.map(|done| (done, versus))));
    let harmed: Vec<String> = words::harmed(versus)
        .into_iter()
        .map(|(group, harm)| format!("{} {}", group.name, words::harm(Some(harm))))
        .collect();
    let equals = match recommended.equals.as_slice() {
        [] if recommended.undecided > 0 => String::from("nothing else that is known"),
        [] => String::from("nothing else"),
        names => names.join(", "),
    };
    let mut facts = vec![
        Fact {
            what: "Time saved",
            value: words::saved(versus),
            number: true,
            beside: if waiting.len() > 1 { waiting } else { Vec::new() },
        },
        Fact {
            what: "Harm",
            value: words::harm(versus.harm),
            number: true,
            beside: if harmed.is_empty() {
                vec![words::unharmed(versus)]
            } else {
                harmed
            },
        },
        Fact {
            what: "Setting",
            value: recommended.variant.clone(),
            number: false,
            beside: vec![format!("equal on average: {equals}")],
        },
    ];
    if !recommended.places.is_empty() {
        let matters = recommended.matters.iter();
        facts.push(Fact {
            what: "Where",
            value: recommended.places.join("; "),
            number: false,
            beside: matters
                .map(|place| format!("it makes the difference at: {place}"))
                .collect(),
        });
    }
    facts.push(Fact {
        what: "How sure",
        value: words::how_sure(recommended),
        number: false,
        beside: Vec::new(),
    });
    facts
}

fn versus_groups<'a>(done: Option<(&'a Variant, &'a Versus)>) -> Vec<(&'a str, f64)> {
    let Some((variant, versus)) = done else {
        return Vec::new();
    };
    let waits = |name: &str| {
        let group = variant.groups.iter().find(|group| group.name == name);
        group.is_some_and(|group| group.latency_sensitive)
    };
    versus
        .groups
        .iter()
        .filter(|group| waits(&group.name))
        .filter_map(|group| Some((group.name.as_str(), 1.0 - group.fct_mean_ratio.as_ref()?.value)))
        .collect()
}

/// Time saved of each group that waits.
fn saved_by_group(groups: Vec<(&str, f64)>) -> Vec<String> {
    let said = |(name, saved): (&str, f64)| format!("{name} {}", words::percent(saved));
    groups.into_iter().map(said).collect()
}

/// The network as described: what each group gets, and where packets wait.
pub(super) fn described(document: &Document) -> Vec<String> {
    let Some(baseline) = document.variants.first() else {
        return Vec::new();
    };
    let groups = baseline.groups.iter();
    groups
        .map(|group| words::group(group, baseline.runs))
        .chain(words::queues(document))
        .collect()
}

/// What to do for the recommended setting, and for the others.
pub(super) fn turn_on(document: &Document) -> Value {
    let rows = words::rows(document);
    let (first, others): (Vec<&Row<'_>>, Vec<&Row<'_>>) = rows.iter().partition(|row| {
        let recommended = document.recommended.as_ref();
        recommended.is_some_and(|recommended| recommended.variant == row.variant.name)
    });
    // Steps that stand under the whole setting already are not written out again for its parts.
    let whole = |row: &Row<'_>| {
        let name = row.versus.part_of.as_deref().filter(|_| row.part)?;
        let whole = rows.iter().find(|other| other.variant.name == name)?;
        let there = |step: &Instruction| {
            whole
                .variant
                .instructions
                .iter()
                .any(|other| same_step(step, other))
        };
        row.variant
            .instructions
            .iter()
            .all(there)
            .then(|| name.to_owned())
    };
    let said = |row: &&Row<'_>| {
        let set = row.variant.set.iter();
        json!({
            "name": row.variant.name,
            "of": whole(row),
            "set": set.map(|(path, value)| setting(path, value)).collect::<Vec<_>>(),
            "instructions": row.variant.instructions.iter().map(instruction).collect::<Vec<_>>(),
        })
    };
    json!({
        "not_advised": words::not_advised(document),
        "first": first.first().map(said),
        "others": others.iter().map(said).collect::<Vec<_>>(),
    })
}

/// A setting as a line of `[variant.set]`: `"tcp.ecn" = true`.
fn setting(path: &str, value: &Value) -> String {
    let written = toml::Value::try_from(value).map_or_else(|_| value.to_string(), |value| value.to_string());
    format!("\"{path}\" = {written}")
}

/// Whether two steps are the same, whatever is measured afterwards.
fn same_step(one: &Instruction, other: &Instruction) -> bool {
    one.place == other.place
        && one.device == other.device
        && one.commands == other.commands
        && one.why == other.why
}

fn instruction(instruction: &Instruction) -> Value {
    json!({
        "heading": words::to_turn_on(instruction),
        "commands": instruction.commands,
        "why": unbroken(&instruction.why),
        "needs": unbroken(&words::needs(instruction)),
        "afterwards": words::afterwards(instruction),
    })
}

/// A row of the table.
#[derive(Serialize)]
struct TableRow<'a> {
    tier: String,
    name: &'a str,
    mark: &'static str,
    part: bool,
    saved: String,
    /// Length of the bar, of 100, and where it points.
    bar: f64,
    sign: &'static str,
    by_group: Vec<String>,
    harm: String,
    goodput: String,
    worst_tail: String,
    significant: &'static str,
    class: &'static str,
    places: String,
    control: &'static str,
    remarks: &'a [String],
}

fn table_row<'a>(row: &Row<'a>) -> TableRow<'a> {
    let cells = words::cells(row.versus);
    let win = row.versus.win.unwrap_or(0.0);
    let by_group = saved_by_group(versus_groups(Some((row.variant, row.versus))));
    TableRow {
        tier: cells.tier,
        name: &row.variant.name,
        mark: cells.mark,
        part: row.part,
        saved: cells.saved,
        bar: rounded(win.abs().min(1.0) * 100.0, 3),
        sign: if win < 0.0 { "minus" } else { "plus" },
        by_group: if by_group.len() > 1 { by_group } else { Vec::new() },
        harm: cells.harm,
        goodput: cells.goodput,
        worst_tail: cells.worst_tail,
        significant: cells.significant,
        class: match (row.versus.significant, win > 0.0) {
            (false, _) => "unsure",
            (true, true) => "good",
            (true, false) => "bad",
        },
        places: words::places(row.versus),
        control: control(row.variant),
        remarks: &row.versus.remarks,
    }
}

/// What has to be changed for a variant: `sender`, `router`, or `both`.
fn control(variant: &Variant) -> &'static str {
    let queues = |path: &str| path.contains("queue");
    let any = |of_queues: bool| variant.set.iter().any(|(path, _)| queues(path) == of_queues);
    match (any(true), any(false)) {
        (true, true) => "both",
        (true, false) => "router",
        (false, _) => "sender",
    }
}

/// The table: what is shown at first, and the rest.
pub(super) fn table(comparison: &Comparison) -> Value {
    let rows = words::rows(&comparison.document);
    let part = |shown: bool| -> Vec<TableRow<'_>> {
        let chosen = rows.iter().filter(|row| row.shown == shown);
        chosen.map(table_row).collect()
    };
    let has = |control_of: &str| rows.iter().any(|row| control(row.variant) == control_of);
    let choices = [
        ("sender", "hosts that send"),
        ("router", "routers and their queues"),
    ];
    let controls = choices.iter().filter(|choice| has(choice.0));
    json!({
        "controls": controls.map(|(value, words)| json!({ "value": value, "words": words })).collect::<Vec<_>>(),
        "headings": words::HEADINGS,
        "first": part(true),
        "rest": part(false),
        "legend": words::legend(|_| true),
        "not_tried": words::not_tried(comparison),
    })
}

/// The Pareto picture.
pub(super) fn pareto(document: &Document) -> Option<Value> {
    let picture = figures::pareto(document)?;
    Some(json!({
        "text": picture.text, "wide": picture.wide, "narrow": picture.narrow,
        "header": picture.header, "rows": picture.rows,
    }))
}

/// The networks near this one, and the same network with jitter.
pub(super) fn near(document: &Document) -> Value {
    let share = |share: Option<f64>| share.map_or_else(|| String::from("-"), words::percent);
    let rows: Vec<Value> = document
        .sensitivity
        .iter()
        .map(|point| {
            json!([
                point.change,
                words::found_near(point),
                point.best,
                share(point.best_win),
                share(point.described_best_win)
            ])
        })
        .collect();
    json!({ "rows": rows, "jittered": document.jittered.as_ref().map(|found| words::jittered(found, document.recommended.as_ref())) })
}

/// How well a scenario that was made of a recording fits it.
pub(super) fn fit(document: &Document) -> Option<Value> {
    let fit = document.fit.as_ref()?;
    let controllers = fit.controllers.iter();
    let controllers: Vec<[String; 2]> = controllers
        .map(|tried| [tried.name.clone(), words::percent(tried.difference)])
        .collect();
    Some(json!({ "verdict": fit.sentences(), "reasons": fit.reasons, "controllers": controllers }))
}

#[cfg(test)]
mod tests {
    use super::{setting, unbroken};

    #[test]
    fn settings_are_lines_of_toml() {
        let queue = serde_json::json!({ "kind": "drop-tail", "limit": "16 packets", "ecn": true });
        let line = setting("network.bottleneck.queue", &queue);
        let read: toml::Table = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(
            read["network.bottleneck.queue"]["limit"].as_str(),
            Some("16 packets"),
            "{line}"
        );
        assert_eq!(setting("tcp.ecn", &serde_json::json!(true)), "\"tcp.ecn\" = true");
    }

    #[test]
    fn keys_stand_between_quotation_marks_and_numbers_keep_their_percent_sign() {
        assert_eq!(
            unbroken("try `run.duration = \"9 s\"` or `framing`: 5 % less"),
            "try \u{201c}run.duration = \"9 s\"\u{201d} or \u{201c}framing\u{201d}: 5\u{a0}% less"
        );
        assert_eq!(unbroken("one ` alone stays"), "one ` alone stays");
    }
}
