//! The tables of `docs/favourtail.md` that come from the record of full runs: what `reproduce --recorded` says, put together.

use fleetfoot_lab::experiment::record::{Record, Recorded, RecordedCheck};
use std::fmt::Write as _;

const PAGE: &str = "favourtail.md";

#[test]
fn the_tables_of_favourtail_are_those_of_the_record() {
    let record = Record::embedded().unwrap_or_else(|error| panic!("{error}"));
    let mut tables = vec![
        ("compare", compare(&record)),
        ("assumed", assumed(&record)),
        ("rivals", rivals(&record)),
        ("today", today(&record)),
    ];
    for (name, id) in [
        ("gaming", "own-ft-gaming"),
        ("paced", "own-ft-paced"),
        ("syn", "own-ft-syn"),
    ] {
        tables.push((name, attacks(of(&record, id))));
    }
    tables.push(("syn-bytes", in_bytes(of(&record, "own-ft-syn"))));
    super::edit(PAGE, |page| {
        for (name, table) in tables {
            super::put_recorded(page, PAGE, name, &table);
        }
    });
}

fn of<'a>(record: &'a Record, id: &str) -> &'a Recorded {
    record
        .full(id)
        .unwrap_or_else(|| panic!("no full run of {id} is recorded"))
}

fn check<'a>(recorded: &'a Recorded, name: &str) -> &'a RecordedCheck {
    recorded
        .checks
        .get(name)
        .unwrap_or_else(|| panic!("no check {name}"))
}

/// A value as `words` puts it; a dash if there is none.
fn cell(recorded: &Recorded, name: &str, words: fn(f64) -> String) -> String {
    check(recorded, name)
        .measured
        .map_or_else(|| String::from("-"), words)
}

fn seconds(value: f64) -> String {
    if value < 1.0 {
        format!("{} ms", three(value * 1e3))
    } else {
        format!("{} s", three(value))
    }
}

fn megabits(value: f64) -> String {
    format!("{:.2} Mbit/s", value / 1e6)
}

fn percent(value: f64) -> String {
    format!("{:.0} %", value * 100.0)
}

fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

/// Three digits.
fn three(value: f64) -> String {
    let digits = if value > 0.0 {
        value.log10().floor() as i32
    } else {
        0
    };
    format!("{value:.*}", (2 - digits).clamp(0, 6) as usize)
}

const QUEUES: [(&str, &str); 6] = [
    ("drop-tail", "drop-tail"),
    ("favourtail", "FavourTail"),
    ("budget", "FavourTail, budget"),
    ("fq-codel", "FQ-CoDel"),
    ("cake", "CAKE-like"),
    ("drr", "DRR"),
];

fn compare(record: &Record) -> String {
    let mut table = String::from(
        "| line | queue | short: mean | p99 | long | worst host | attack: short mean | long | worst host | attacker gets through |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (id, line) in [
        ("home", "home line"),
        ("incast", "incast"),
        ("mobile", "lossy mobile"),
        ("satellite", "satellite"),
        ("game", "thin game"),
    ] {
        let recorded = of(record, &format!("own-ft-compare-{id}"));
        // Where there are no bulk transfers, the long ones are those of the background, and their time is measured.
        let long = if id == "incast" { seconds } else { megabits };
        for (row, (name, words)) in QUEUES.into_iter().enumerate() {
            let cell = |what: &str, words| cell(recorded, &format!("{what}, {name}"), words);
            let _ = writeln!(
                table,
                "| {} | {words} | {} | {} | {} | {} | {} | {} | {} | {} |",
                if row == 0 { line } else { "" },
                cell("short mean", seconds),
                cell("short p99", seconds),
                cell("long", long),
                cell("worst host", percent),
                cell("short under attack", seconds),
                cell("long under attack", long),
                cell("worst host under attack", percent),
                cell("attacker's share", percent),
            );
        }
    }
    table
}

/// Goodput of the long flows and mean time of the short ones over drop-tail's, a row for each attack in order of appearance.
fn attacks(recorded: &Recorded) -> String {
    let mut table = String::from(
        "| attack | FavourTail | budget | interval | FQ-CoDel | CAKE-like | DRR |\n|---|---|---|---|---|---|---|\n",
    );
    let rows = [
        "no attack",
        "one host, 10 %",
        "one host, 50 %",
        "one host, 100 %",
        "one host, 200 %",
        "100 hosts, 10 %",
        "100 hosts, 50 %",
        "100 hosts, 100 %",
        "100 hosts, 200 %",
        "1 flow, 10 %",
        "1 flow, 25 %",
        "1 flow, 50 %",
        "10 flows, 50 %",
        "10 flows, 100 %",
        "100 flows, 100 %",
        "1000 flows, 100 %",
        "1000 flows, 200 %",
        "10 %",
        "50 %",
        "100 %",
        "200 %",
    ];
    for row in rows {
        if !recorded.checks.contains_key(&format!("FCT, budget, {row}")) {
            continue;
        }
        let both = |queue: &str| {
            let one = |what: &str| cell(recorded, &format!("{what}, {queue}, {row}"), ratio);
            format!("{}, {}", one("goodput"), one("FCT"))
        };
        let ends = check(recorded, &format!("FCT, budget, {row}")).ci95;
        let interval = ends.map_or_else(
            || String::from("-"),
            |[low, high]| format!("{low:.2} to {high:.2}"),
        );
        let [plain, budget, fq, cake, drr] = ["favourtail", "budget", "fq-codel", "cake", "drr"].map(both);
        let _ = writeln!(
            table,
            "| {row} | {plain} | {budget} | {interval} | {fq} | {cake} | {drr} |"
        );
    }
    table
}

/// The SYN flood with queues that count packets and queues that count bytes.
fn in_bytes(recorded: &Recorded) -> String {
    let mut table = String::from(
        "| flood | drop-tail, packets | budget, packets | drop-tail, bytes | budget, bytes | ratio, packets | ratio, bytes |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in ["no attack", "10 %", "50 %", "100 %", "200 %"] {
        let both = |queue: &str| {
            let one = |what: &str| cell(recorded, &format!("{what}, {queue}, {row}"), seconds);
            format!("{}, {}", one("FCT in all"), one("queue delay"))
        };
        let [tail, budget, tail_bytes, budget_bytes] =
            ["drop-tail", "budget", "drop-tail-bytes", "budget-bytes"].map(both);
        let _ = writeln!(
            table,
            "| {row} | {tail} | {budget} | {tail_bytes} | {budget_bytes} | {} | {} |",
            cell(recorded, &format!("FCT, budget, {row}"), ratio),
            cell(recorded, &format!("FCT, bytes, {row}"), ratio),
        );
    }
    table
}

fn with_interval(recorded: &Recorded, name: &str) -> String {
    let check = check(recorded, name);
    match (check.measured, check.ci95) {
        (Some(value), Some([low, high])) => format!("{value:.2} ({low:.2} to {high:.2})"),
        (Some(value), None) => ratio(value),
        (None, _) => String::from("-"),
    }
}

fn rivals(record: &Record) -> String {
    let recorded = of(record, "own-ft-rivals");
    let simple = of(record, "own-ft-rivals-simple");
    let mut table = String::from(
        "| queue | sum of times | median | lost packets | lost data packets | timeouts | short flow of the simple network |\n|---|---|---|---|---|---|---|\n",
    );
    for row in [
        "favourtail",
        "least attained",
        "two queues",
        "two queues, sequence",
        "two queues, mark",
        "low TTL",
    ] {
        let one = |what: &str| with_interval(recorded, &format!("{what}, {row}"));
        let start = "start = 1.2005 s";
        let short = cell(simple, &format!("time, {row} [{start}]"), seconds);
        let _ = writeln!(
            table,
            "| {row} | {} | {} | {} | {} | {} | {short} |",
            one("time"),
            one("median"),
            one("lost packets"),
            one("lost data packets"),
            one("timeouts"),
        );
    }
    table
}

fn assumed(record: &Record) -> String {
    let recorded = of(record, "own-ft-assumed");
    let mut table =
        String::from("| assumption | sum of times | lost packets | lost data packets |\n|---|---|---|---|\n");
    for row in [
        "as ft-global",
        "half the load",
        "load and a half",
        "packets of 540 B",
        "packets of 1500 B",
        "window 10",
        "window 64",
        "delayed ACKs",
        "no chord",
        "6 core routers",
        "2 ms a link",
        "20 ms a link",
        "50 packets, not 49",
        "packet in service counts",
        "push out",
    ] {
        let one = |what: &str| with_interval(recorded, &format!("{what}, {row}"));
        let _ = writeln!(
            table,
            "| {row} | {} | {} | {} |",
            one("time"),
            one("lost packets"),
            one("lost data packets"),
        );
    }
    table
}

fn today(record: &Record) -> String {
    let recorded = of(record, "own-ft-today");
    let mut table = String::from(
        "| queue | sum of times | median | lost packets | lost data packets |\n|---|---|---|---|---|\n",
    );
    for row in [
        "favourtail",
        "budget",
        "push out",
        "fq-codel",
        "cake",
        "favourtail, ECN",
        "fq-codel, ECN",
    ] {
        let one = |what: &str| with_interval(recorded, &format!("{what}, {row}"));
        let _ = writeln!(
            table,
            "| {row} | {} | {} | {} | {} |",
            one("time"),
            one("median"),
            one("lost"),
            one("lost data"),
        );
    }
    table
}
