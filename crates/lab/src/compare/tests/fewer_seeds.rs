//! Variants that have fewer seeds than the baseline are compared with it over their own.

use crate::compare::{Choice, Plan, build};
use crate::report::charts::{self, Data};
use crate::report::html;
use crate::result::Comparison;
use crate::run::{Options, execute};
use crate::scenario::Scenario;
use crate::testing::{TEXT, engine};
use std::sync::atomic::AtomicBool;

/// A variant that changes nothing of the made-up results, with the first three of twelve seeds.
fn identical() -> Comparison {
    let text = TEXT.replace(
        "[run]",
        "[[variant]]\nname = \"same\"\nset = { \"tcp.timestamps\" = false }\n[run]",
    );
    let scenario = Scenario::parse("test.toml", &text).expect("it is correct");
    let choice = Choice {
        only: vec![String::from("same")],
        ..Choice::default()
    };
    let plan = Plan::compare(scenario, &choice).expect("it resolves");
    let options = Options::default();
    let stop = AtomicBool::new(false);
    let batch = execute(&plan.jobs(), &plan.seeds, &options, &stop, &engine, &|_| ());
    let mut batch = batch.expect("it runs");
    batch.runs[1].truncate(3);
    build(&plan, &batch, "fleetfoot compare test.toml")
}

#[test]
fn what_is_the_same_with_fewer_seeds_saves_nothing_in_any_class_of_size() {
    let comparison = identical();
    let [baseline, same] = comparison.document.variants.as_slice() else {
        panic!("two variants");
    };
    assert_eq!((baseline.runs, same.runs), (12, 3));
    // Over their own seeds they differ.
    let mean = |variant: &crate::result::Variant| {
        variant.groups[0].by_size[0]
            .fct_s
            .as_ref()
            .map(|times| times.mean)
    };
    assert_ne!(mean(baseline), mean(same));
    let versus = same.versus.as_ref().expect("it was compared");
    let classes = &versus.groups[0].by_size;
    assert_eq!(classes.len(), 1, "all have 20 kB");
    for class in classes {
        assert_eq!((class.mean_ratio, class.ci95), (1.0, Some([1.0, 1.0])));
        assert_eq!((class.n, class.baseline_n), (600, 600));
        assert_eq!(class.mean_s, class.baseline_mean_s);
        assert_eq!(Some(class.mean_s), mean(same));
    }
    let all = charts::all(&comparison, &[baseline, same]);
    let chart = |id: &str| all.iter().find(|chart| chart.id == id).expect("it is drawn");
    let Data::Sizes { cells, .. } = &chart("size").data else {
        panic!("classes of size");
    };
    assert_eq!(cells.len(), 1);
    assert!(cells.iter().all(|cell| cell.change == 0.0), "{cells:?}");
    // The same lines, and the same rows of the table.
    let Data::Distribution(lines) = &chart("distribution").data else {
        panic!("distributions");
    };
    let [one, other] = lines.as_slice() else {
        panic!("a line for each: {lines:?}");
    };
    assert_eq!((&one.fct_s, &one.share), (&other.fct_s, &other.share));
    let rows = &chart("distribution").rows;
    assert_eq!(rows[0][1..], rows[1][1..]);
    assert!(
        chart("distribution")
            .text
            .contains("Only the 3 seeds that all of these variants finished"),
        "{}",
        chart("distribution").text
    );
    let page = html::render(&comparison).expect("it is drawn");
    assert!(page.contains("over all of its own seeds, 3 to 12"));
}
