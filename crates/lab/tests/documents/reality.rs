//! The table of `docs/reality.md`: the record of the group `reality`.

use fleetfoot_lab::experiment::library;
use fleetfoot_lab::experiment::record::{Record, RecordedCheck};
use std::fmt::Write as _;

const PAGE: &str = "reality.md";

/// What is compared, with the deviation allowed.
const COMPARED: [(&str, f64); 4] = [
    ("median", 0.05),
    ("p95", 0.1),
    ("goodput", 0.05),
    ("retransmissions", 0.1),
];

/// Share of late packets above which a point says nothing.
const LATE: f64 = 0.002;

#[test]
fn the_table_of_reality_is_that_of_the_record() {
    let record = Record::embedded().unwrap_or_else(|error| panic!("{error}"));
    let path = format!("{}/../../docs/{PAGE}", env!("CARGO_MANIFEST_DIR"));
    let mut page = std::fs::read_to_string(path).expect("the page is there");
    let table = table(&record);
    let (begin, end) = ("<!-- recorded -->\n", "<!-- end -->");
    let from = page.find(begin).expect("the place of the table") + begin.len();
    let to = from + page[from..].find(end).expect("its end");
    page.replace_range(from..to, &table);
    super::current(PAGE, &page);
}

/// Whether an estimate is as near as asked for, or its interval holds 1; and whether the whole interval is beyond.
fn judged(check: &RecordedCheck, deviation: f64) -> Option<[bool; 2]> {
    let measured = check.measured?;
    let [low, high] = check.ci95.unwrap_or([measured; 2]);
    let near = (measured - 1.0).abs() <= deviation || (low..=high).contains(&1.0);
    Some([near, low > 1.0 + deviation || high < 1.0 - deviation])
}

fn table(record: &Record) -> String {
    let experiments = library::select(&[String::from("reality")]).unwrap_or_else(|error| panic!("{error}"));
    let mut rows = String::new();
    let (mut judgeable, mut near, mut beyond, mut late) = (0, 0, 0, 0);
    for experiment in &experiments {
        let Some(recorded) = record.full(&experiment.id) else {
            continue;
        };
        let title = experiment.file.figure.claim.as_str();
        let _ = writeln!(rows, "| **{title}** | | | | | |");
        let points = recorded
            .checks
            .keys()
            .filter_map(|name| name.strip_prefix("median, "));
        for point in points {
            let check = |what: &str| recorded.checks.get(&format!("{what}, {point}"));
            let lateness = check("lateness").and_then(|check| check.measured).unwrap_or(0.0);
            let mut cells = Vec::new();
            for (what, deviation) in COMPARED {
                let Some((check, [is_near, is_beyond])) =
                    check(what).and_then(|check| Some((check, judged(check, deviation)?)))
                else {
                    cells.push(String::new());
                    continue;
                };
                if lateness <= LATE {
                    judgeable += 1;
                    near += u32::from(is_near);
                    beyond += u32::from(is_beyond);
                }
                let interval = check
                    .ci95
                    .map_or_else(String::new, |[low, high]| format!(" ({low:.2} to {high:.2})"));
                let word = match (is_near, is_beyond) {
                    (true, _) => "",
                    (false, false) => " *off*",
                    (false, true) => " **off**",
                };
                cells.push(format!(
                    "{:.3}{interval}{word}",
                    check.measured.unwrap_or(f64::NAN)
                ));
            }
            late += u32::from(lateness > LATE);
            let _ = writeln!(
                rows,
                "| {point} | {} | {:.2} % |",
                cells.join(" | "),
                lateness * 100.0
            );
        }
    }
    format!(
        "{near} of {judgeable} comparisons agree, {beyond} surely do not; {late} points were too late to be judged.\n\n\
         | point | median | p95 | goodput | retransmissions | late |\n|---|---|---|---|---|---|\n{rows}"
    )
}
