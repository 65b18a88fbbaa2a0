//! Messages that the end of a run cuts off are censored, never missing.

use crate::compare::{Choice, Plan, build};
use crate::report::table::{Cell, Cells, Row, RunRow, runs};
use crate::result::{Comparison, Group};
use crate::run::{Options, execute, simulate};
use crate::scenario::Scenario;
use std::sync::atomic::AtomicBool;

/// Two thin streams beside two transfers without end on a line of 256 kbit/s, whose queue of 200 packets or 3000 holds messages back for
/// longer than a short drain.
fn compared(drain: &str) -> Comparison {
    let text = format!(
        r#"title = "A slow line"
[network]
kind = "dumbbell"
pairs = 3
access = {{ rate = "1 Gbit/s", delay = "2 ms", jitter = {{ dist = "uniform", min = "0 ms", max = "5 ms" }} }}
bottleneck = {{ rate = "256 kbit/s", delay = "18 ms", queue = {{ kind = "drop-tail", limit = "200 packets" }} }}
[tcp]
profile = "linux"
[[traffic]]
name = "keys"
kind = "thin"
count = 2
payload = "100 B"
interval = {{ dist = "exponential", mean = "200 ms" }}
[[traffic]]
name = "backup"
kind = "bulk"
count = 2
[[variant]]
name = "longer"
set = {{ "network.bottleneck.queue.limit" = "3000 packets" }}
[run]
duration = "20 s"
warmup = "5 s"
drain = "{drain}"
seeds = 10
"#
    );
    let scenario = Scenario::parse("slow.toml", &text).expect("it is correct");
    let plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
    let (options, never) = (Options::default(), AtomicBool::new(false));
    let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &simulate, &|_| ());
    build(&plan, &batch.expect("it runs"), "")
}

/// The thin streams in each variant.
fn keys(comparison: &Comparison) -> Vec<&Group> {
    let variants = comparison.document.variants.iter();
    variants.map(|variant| &variant.groups[0]).collect()
}

/// Messages written in the measured time, and those of them that had not arrived.
fn counts(group: &Group) -> (u64, u64) {
    let all = group.delivery_latency_s.as_ref().map_or(0, |times| times.n);
    (all, group.undelivered)
}

#[test]
fn what_leaves_fewer_messages_under_way_is_not_slower_because_of_it() {
    let whole = compared("60 s");
    let (written, left) = counts(keys(&whole)[0]);
    assert_eq!(left, 0, "all arrive within a minute");
    assert_eq!(counts(keys(&whole)[1]), (written, 0));
    let quicker = |comparison: &Comparison| {
        let versus = comparison.document.variants[1].versus.as_ref();
        let ratio = versus.and_then(|versus| versus.groups[0].fct_mean_ratio);
        ratio.expect("there are messages").value
    };
    assert!(quicker(&whole) < 1.0);
    for drain in ["10 s", "0 s"] {
        let cut = compared(drain);
        let found: Vec<(u64, u64)> = keys(&cut).into_iter().map(counts).collect();
        assert!(found.iter().all(|(all, _)| *all == written), "{drain}: {found:?}");
        assert!(found.iter().all(|(_, left)| *left > 0), "{drain}: {found:?}");
        let document = &cut.document;
        let noted = format!(
            "keys: messages that had not arrived when the runs ended (means take their age, quantiles take them as the largest): \
             as described {} of {written}, longer {} of {written}",
            found[0].1, found[1].1
        );
        assert!(document.notes.contains(&noted), "{:#?}", document.notes);
        let short = format!("keys: {} of {written} messages had not finished", found[0].1);
        assert!(
            document.notes.iter().any(|note| note.starts_with(&short)),
            "{:#?}",
            document.notes
        );
        if drain == "10 s" {
            assert!(found[1].1 < found[0].1, "{found:?}");
            assert!(quicker(&cut) < 1.0, "{}", quicker(&cut));
            assert!(!document.answer.contains("slower"), "{}", document.answer);
        }
    }
}

#[test]
fn tables_count_messages_that_had_not_arrived_with_their_age() {
    let cut = compared("10 s");
    let mut rows = runs(&cut);
    for variant in &cut.variants {
        for run in &variant.runs {
            let row = rows.next().expect("a row for each run and group");
            rows.next(); // the transfers without end
            let group = &run.output.groups[0];
            let (came, left) = (&group.delivery_latency, &group.delivery_censored);
            let sum: f64 = came.iter().sum::<f64>() + left.iter().sum::<f64>();
            let mean = sum / (came.len() + left.len()) as f64;
            let columns = RunRow::table().columns;
            let mut cells = Vec::new();
            row.cells(&mut cells);
            let of = |name: &str| {
                columns
                    .iter()
                    .position(|column| column.name == name)
                    .map(|at| cells[at])
            };
            assert_eq!(of("undelivered"), Some(Cell::Integer(left.len() as u64)));
            let Some(Cell::Number(found)) = of("delivery_latency_mean_s") else {
                panic!("no mean of {} messages", came.len());
            };
            assert!((found - mean).abs() <= 1e-9 * mean, "{found} is not {mean}");
        }
    }
}
