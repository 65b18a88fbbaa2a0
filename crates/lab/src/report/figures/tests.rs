use super::{by_rank, grouped, of, slug};
use crate::experiment::{Evaluated, library};

#[test]
fn times_of_all_runs_stand_in_one_ascending_line() {
    // Also where a run has fewer: the line goes on to the flows that completed in a run on average.
    let points = by_rank(&[vec![0.004, 0.001], vec![0.002]]);
    assert_eq!(points, [[0.5, 1.0], [1.0, 2.0], [1.5, 4.0]]);
    assert!(by_rank(&[]).is_empty() && by_rank(&[vec![]]).is_empty());
    let many = by_rank(&[(0..1001).map(f64::from).collect()]);
    assert!(many.len() <= 202 && many.first() == Some(&[1.0, 0.0]) && many.last() == Some(&[1001.0, 1e6]));
}

#[test]
fn names_of_files_have_no_strange_letters() {
    assert_eq!(slug("FCT of 3 packets, need(L + 5)"), "fct-of-3-packets-need-l-5");
}

#[test]
fn keys_with_the_same_beginning_stand_together() {
    let key = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
    let keys = vec![key("2", "x"), key("1", "x"), key("2", "y"), key("1", "y")];
    assert_eq!(
        grouped(keys),
        [key("2", "x"), key("2", "y"), key("1", "x"), key("1", "y")]
    );
}

/// Every experiment whose full run is recorded can be drawn from the record, under names of their own.
#[test]
fn what_is_recorded_can_be_drawn() {
    let record = crate::experiment::record::Record::embedded().unwrap_or_else(|error| panic!("{error}"));
    let mut drawn = 0;
    for experiment in library::all().unwrap_or_else(|error| panic!("{error}")) {
        let Some(recorded) = record.full(&experiment.id) else {
            continue;
        };
        let figures = of(&Evaluated::recorded(&experiment, recorded), None);
        let mut names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), figures.len(), "{}", experiment.id);
        for figure in &figures {
            let file = figure.standalone();
            assert!(
                !file.contains("NaN") && !file.contains("inf"),
                "{}: {file}",
                figure.name
            );
            // A map has two elements in each cell.
            let most = 60_000.max(250 * file.matches("<rect").count());
            assert!(file.len() < most, "{}: {} bytes", figure.name, file.len());
        }
        drawn += figures.len();
    }
    assert!(drawn > 0);
}
