//! `docs/findings.md`: ten findings, each with a figure that is drawn from the record, the command that makes it again, and the numbers
//! of the record, which stand in the page as a table.

use fleetfoot_lab::experiment::library;
use fleetfoot_lab::experiment::record::{Record, RecordedCheck};
use std::fmt::Write as _;

const PAGE: &str = "findings.md";

/// The experiment of each finding in the order of the page, and the checks that are shown.
const FINDINGS: [(&str, &[(&str, &str)]); 10] = [
    (
        "own-attacks-superpackets",
        &[
            (
                "long flows, the published queue, 100 firsts a second",
                "seed A1 100/s: goodput",
            ),
            ("time of short flows there", "seed A1 100/s: FCT"),
            ("long flows, SP-H, 100 firsts a second", "SP-H A1 100/s: goodput"),
            ("time of short flows there", "SP-H A1 100/s: FCT"),
            (
                "long flows, SP-H, 3000 firsts a second",
                "SP-H A1 3000/s: goodput",
            ),
        ],
    ),
    (
        "own-ft-gaming",
        &[
            (
                "FavourTail: short flows, one host sends as much as the line carries",
                "FCT, favourtail, one host, 100 %",
            ),
            ("FQ-CoDel: the same", "FCT, fq-codel, one host, 100 %"),
            ("DRR: the same", "FCT, drr, one host, 100 %"),
            (
                "FavourTail with a budget: the same",
                "FCT, budget, one host, 100 %",
            ),
            ("FavourTail with a budget, no attack", "FCT, budget, no attack"),
        ],
    ),
    (
        "own-sp-decoupling",
        &[
            (
                "the published rule, super-packets of 10",
                r#"need(M) [super_packets = { mode = "accumulate", max = 10 }]"#,
            ),
            (
                "the announced length, super-packets of 10",
                r#"need(L) [super_packets = { mode = "accumulate", max = 10 }]"#,
            ),
            (
                "the longest announced lately, super-packets of 10",
                r#"need(longest) [super_packets = { mode = "accumulate", max = 10 }]"#,
            ),
            (
                "packets waiting, the published rule with M = 63",
                r#"waiting, need(M), M 63 [super_packets = { mode = "accumulate", max = 10 }]"#,
            ),
            (
                "packets waiting, the longest announced lately with M = 63",
                r#"waiting, need(longest), M 63 [super_packets = { mode = "accumulate", max = 10 }]"#,
            ),
            (
                "packets waiting, drop-tail",
                r#"waiting, drop-tail [super_packets = { mode = "accumulate", max = 10 }]"#,
            ),
        ],
    ),
    (
        "own-testbed-syns",
        &[
            ("mean time (s), opened at once", "mean (s), 0 us"),
            ("mean time (s), 20 us apart", "mean (s), 20 us"),
            ("mean time (s), 40 us apart", "mean (s), 40 us"),
            ("40 us apart over at once", "mean, 40 us"),
        ],
    ),
    (
        "own-law-g",
        &[
            ("exponent, drop-tail that counts packets", "drop-tail, packets"),
            ("exponent, drop-tail that counts bytes", "drop-tail, bytes"),
            ("exponent, CoDel", "CoDel"),
            ("exponent, DRR", "DRR"),
            (
                "g of loss events, drop-tail that counts bytes",
                "drop-tail, bytes, events",
            ),
            ("g of loss events, CoDel", "CoDel, events"),
        ],
    ),
    (
        "own-greedy-share",
        &[
            ("25 packets, 20 ms", "CDG [limit = 25 packets, delay = 8 ms]"),
            ("100 packets, 20 ms", "CDG [limit = 100 packets, delay = 8 ms]"),
            ("400 packets, 20 ms", "CDG [limit = 400 packets, delay = 8 ms]"),
            ("25 packets, 100 ms", "CDG [limit = 25 packets, delay = 48 ms]"),
            ("100 packets, 100 ms", "CDG [limit = 100 packets, delay = 48 ms]"),
            ("400 packets, 100 ms", "CDG [limit = 400 packets, delay = 48 ms]"),
        ],
    ),
    (
        "own-is-map",
        &[
            (
                "spread, drop-tail of 25 packets",
                r#"no jiffy [queue = { kind = "drop-tail", limit = "25 packets" }, delay = 38 ms, initial_window = 40]"#,
            ),
            (
                "spread, CoDel",
                r#"no jiffy [queue = { kind = "codel" }, delay = 38 ms, initial_window = 40]"#,
            ),
            (
                "spread, PIE",
                r#"no jiffy [queue = { kind = "pie" }, delay = 38 ms, initial_window = 40]"#,
            ),
            (
                "spread, FQ-CoDel",
                r#"no jiffy [queue = { kind = "fq-codel" }, delay = 38 ms, initial_window = 40]"#,
            ),
            (
                "paced as Linux does, drop-tail of 25 packets",
                r#"pacing [queue = { kind = "drop-tail", limit = "25 packets" }, delay = 38 ms, initial_window = 40]"#,
            ),
            (
                "paced as Linux does, CoDel",
                r#"pacing [queue = { kind = "codel" }, delay = 38 ms, initial_window = 40]"#,
            ),
            (
                "paced as Linux does, PIE",
                r#"pacing [queue = { kind = "pie" }, delay = 38 ms, initial_window = 40]"#,
            ),
        ],
    ),
    (
        "own-tail-map",
        &[
            (
                "restart and learned delay, one lost of ten, RTT 10 ms",
                "rack-tlpr [delay = 4 ms, delayed_ack = off, segments = 1]",
            ),
            (
                "the same, RTT 100 ms",
                "rack-tlpr [delay = 49 ms, delayed_ack = off, segments = 1]",
            ),
            (
                "the same, three lost",
                "rack-tlpr [delay = 49 ms, delayed_ack = off, segments = 3]",
            ),
            (
                "in their place a FIN of its own behind the tail, three lost",
                "closes [delay = 49 ms, delayed_ack = off, segments = 3]",
            ),
            (
                "both, over that FIN alone",
                "closes, rack-tlpr [delay = 49 ms, delayed_ack = off, segments = 3]",
            ),
        ],
    ),
    (
        "own-ft-routers",
        &[
            ("one router", "gain, 1 router"),
            ("two routers", "gain, 2 routers"),
            ("three routers", "gain, 3 routers"),
            ("six routers", "gain, 6 routers"),
            ("FQ-CoDel, one router", "fq-codel, 1 router"),
            ("FQ-CoDel, six routers", "fq-codel, 6 routers"),
        ],
    ),
    (
        "own-newcwv-losses",
        &[
            (
                "New-CWV, buffer of 40 packets, bursts of 60 kB",
                "New-CWV [limit = 40 packets, burst = 60 kB]",
            ),
            (
                "no validation, the same",
                "none [limit = 40 packets, burst = 60 kB]",
            ),
            (
                "New-CWV, buffer of 500 packets, bursts of 60 kB",
                "New-CWV [limit = 500 packets, burst = 60 kB]",
            ),
            (
                "no validation, the same",
                "none [limit = 500 packets, burst = 60 kB]",
            ),
        ],
    ),
];

#[test]
fn each_finding_has_a_figure_a_command_and_the_numbers_of_the_record() {
    let record = Record::embedded().unwrap_or_else(|error| panic!("{error}"));
    let tables = FINDINGS.map(|(id, rows)| {
        let recorded = record
            .full(id)
            .unwrap_or_else(|| panic!("no full run of {id} is recorded"));
        let mut table = String::from("| of the record | measured | 95 % interval |\n|---|---|---|\n");
        for (words, name) in rows {
            let check = recorded.checks.get(*name);
            let check = check.unwrap_or_else(|| panic!("{id} has no check {name}"));
            let _ = writeln!(table, "| {words} | {} |", cells(check));
        }
        (id, table)
    });
    super::edit(PAGE, |page| {
        for (id, table) in &tables {
            super::put_recorded(page, PAGE, id, table);
        }
    });
}

#[test]
fn the_findings_are_ten_in_order_and_their_figures_are_those_of_their_commands() {
    let page = read("docs/findings.md");
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert_eq!(sections.len(), FINDINGS.len(), "ten findings, no other section");
    for (number, (section, (id, _))) in (1..).zip(sections.iter().zip(FINDINGS)) {
        assert!(section.starts_with(&format!("{number}. ")), "{section}");
        let experiment = library::all()
            .unwrap_or_else(|error| panic!("{error}"))
            .into_iter()
            .find(|experiment| experiment.id == id)
            .unwrap_or_else(|| panic!("there is no experiment {id}"));
        let command = format!("\n```\nfleetfoot reproduce {id} --full --figures pictures\n```\n");
        assert_eq!(section.matches("```").count(), 2, "{number}: one command");
        assert!(section.contains(&command), "{number}: {command}");
        let images: Vec<&str> = section.split("](images/").skip(1).collect();
        assert_eq!(images.len(), 1, "{number}: one figure");
        let file = images[0].split(')').next().unwrap_or_default();
        let plots = &experiment.file.figure.plots;
        let drawn = plots
            .iter()
            .any(|plot| format!("{}/{id}-{}.svg", experiment.group, plot.name) == file);
        assert!(drawn, "{number}: {id} does not draw {file}");
        assert!(!read(&format!("docs/images/{file}")).is_empty());
    }
    for (file, link) in [
        ("docs/README.md", "(findings.md)"),
        ("README.md", "(docs/findings.md)"),
    ] {
        assert!(read(file).contains(link), "{file} does not link the findings");
    }
}

/// Value and interval, three digits each.
fn cells(check: &RecordedCheck) -> String {
    let value = check.measured.map_or_else(|| String::from("-"), three);
    let interval = check.ci95.map_or_else(
        || String::from("-"),
        |[low, high]| format!("{} to {}", three(low), three(high)),
    );
    format!("{value} | {interval}")
}

fn three(value: f64) -> String {
    let magnitude = if value.abs() < 1e-12 {
        0.0
    } else {
        value.abs().log10().floor()
    };
    format!("{value:.*}", (2.0 - magnitude).clamp(0.0, 6.0) as usize)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR")))
        .unwrap_or_else(|error| panic!("{file}: {error}"))
}
