//! Sweeps of a small scenario, most of them with an engine that makes up its results.

mod elsewhere;

use super::{
    Axis, Counts, Journal, Outcome, Points, Sampling, Shown, State, Sweep, Swept, Until, execute, render,
    write,
};
use crate::compare::{Choice, build};
use crate::report::table::{self, Cells};
use crate::run::{Batch, Options, execute as run_all, simulate};
use crate::scenario::{Scenario, Setting};
use crate::sweep::columns_of_numbers;
use crate::sweep::data::owned;
use crate::testing::{engine, folder, scenario};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn sweep_of(scenario: Scenario, lists: &[&str], choice: Choice, until: Option<&str>) -> Sweep {
    let axes = lists
        .iter()
        .map(|text| Axis::list(text).expect("a list"))
        .collect();
    let points = Points::new(axes, Sampling::Grid, 1).expect("they are right");
    let until = until.map(|text| Until::parse(text, &columns_of_numbers()).expect("a rule"));
    Sweep::new(scenario, points, choice, until).expect("it fits")
}

fn seeds(count: u32) -> Choice {
    Choice {
        seeds: Some(count),
        ..Choice::default()
    }
}

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let place = folder(name);
        std::fs::create_dir_all(&place).expect("it can be made");
        Place(place)
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.0.join("journal"), false, false).expect("it is a journal")
    }

    fn files(&self) -> Vec<Vec<u8>> {
        let ending = if cfg!(feature = "parquet") {
            "parquet"
        } else {
            "csv"
        };
        let names = ["points", "runs", "links"];
        let read = |name| std::fs::read(self.0.join(format!("{name}.{ending}"))).expect("it was written");
        names.map(read).to_vec()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(sweep: &Sweep, journal: &Journal, engine: &crate::run::Engine<'_>) -> Swept {
    execute(sweep, journal, 2, &AtomicBool::new(false), engine, &|_| ()).expect("it runs")
}

/// The rows of a point with a seed.
fn rows(swept: &Swept, journal: &Journal, point: usize, seed: usize) -> Vec<Vec<super::Value>> {
    match journal
        .read(swept.points[point].places[seed])
        .expect("it is there")
    {
        Outcome::Rows { runs, .. } => runs,
        Outcome::Failed(reason) => panic!("{reason}"),
    }
}

#[test]
fn rows_are_those_of_a_comparison_at_the_point() {
    let small = scenario()
        .with(&Setting::from_origin("test").with("run.duration", "2 s"))
        .expect("it fits");
    let choice = Choice {
        only: vec![String::from("better"), String::from("fq-codel")],
        seeds: Some(2),
        ..Choice::default()
    };
    let sweep = sweep_of(
        small,
        &["network.bottleneck.rate=5 Mbit/s,20 Mbit/s"],
        choice,
        None,
    );
    let place = Place::new("sweep-rows");
    let journal = place.journal();
    let swept = run(&sweep, &journal, &simulate);
    for point in 0..2 {
        let plan = sweep.plan(&sweep.points.setting(point)).expect("it fits");
        let stop = AtomicBool::new(false);
        let batch: Batch = run_all(
            &plan.jobs(),
            &plan.seeds,
            &Options::default(),
            &stop,
            &simulate,
            &|_| (),
        )
        .expect("it runs");
        let comparison = build(&plan, &batch, "");
        for (index, seed) in plan.seeds.iter().enumerate() {
            let mut cells: Vec<Vec<super::Value>> = Vec::new();
            for row in table::runs(&comparison) {
                let mut row_cells = Vec::new();
                row.cells(&mut row_cells);
                let row: Vec<super::Value> = row_cells.into_iter().map(owned).collect();
                if row[1] == super::Value::Integer(*seed) {
                    cells.push(row);
                }
            }
            assert_eq!(rows(&swept, &journal, point, index), cells, "{point} {seed}");
            assert_eq!(cells.len(), 6, "three variants with two groups");
        }
    }
}

/// A long path among short ones, where `compare` would also try the queue with the values that suit it.
#[test]
fn every_point_has_the_variants_that_are_named() {
    let choice = Choice {
        only: vec![String::from("fq-codel")],
        ..Choice::default()
    };
    let sweep = sweep_of(
        scenario(),
        &["network.bottleneck.delay=10 ms,300 ms"],
        choice,
        None,
    );
    for point in 0..2 {
        let plan = sweep.plan(&sweep.points.setting(point)).expect("it fits");
        assert_eq!(plan.variants.len(), sweep.variants(), "{point}");
    }
}

#[test]
fn a_sweep_that_is_stopped_ten_times_ends_in_the_same_files() {
    let sweep = sweep_of(
        scenario(),
        &[
            "tcp.initial_window=10,20,40,5",
            "network.bottleneck.rate=5 Mbit/s,10 Mbit/s,20 Mbit/s",
        ],
        seeds(7),
        None,
    );
    let whole = Place::new("sweep-whole");
    let journal = whole.journal();
    let swept = run(&sweep, &journal, &engine);
    let computed = |computed, reused| Counts {
        computed,
        reused,
        failed: 0,
    };
    assert_eq!((swept.counts, swept.interrupted), (computed(84, 0), false));
    write(&whole.0, &sweep, &swept, &journal).expect("it can be written");

    let cut = Place::new("sweep-cut");
    let runs = AtomicU64::new(0);
    for stopped in 1..=10 {
        let journal = cut.journal();
        let stop = AtomicBool::new(false);
        let counting = |spec: &Spec, flag: &AtomicBool| {
            // The run during which it is stopped is not kept.
            if runs.fetch_add(1, Ordering::Relaxed) + 1 == stopped * 7 {
                stop.store(true, Ordering::Relaxed);
                return Ok(RunOutput {
                    interrupted: true,
                    ..RunOutput::default()
                });
            }
            engine(spec, flag)
        };
        let swept = execute(&sweep, &journal, 2, &stop, &counting, &|_| ()).expect("it runs");
        assert!(swept.interrupted);
        write(&cut.0, &sweep, &swept, &journal).expect("it can be written");
    }
    let journal = cut.journal();
    let swept = run(&sweep, &journal, &|spec, stop| {
        runs.fetch_add(1, Ordering::Relaxed);
        engine(spec, stop)
    });
    assert_eq!(swept.counts.computed + swept.counts.reused, 84);
    // Each of the ten runs that were cut was begun twice, all others once.
    assert_eq!(runs.load(Ordering::Relaxed), 94);
    write(&cut.0, &sweep, &swept, &journal).expect("it can be written");
    assert!(whole.files() == cut.files());
    let again = run(&sweep, &journal, &|_, _| {
        Err(String::from("nothing is left to run"))
    });
    assert_eq!(again.counts, computed(0, 84));
}

#[test]
fn a_point_that_fails_is_kept_with_its_reason_and_run_again_when_asked() {
    let sweep = sweep_of(scenario(), &["tcp.initial_window=10,20"], seeds(3), None);
    let place = Place::new("sweep-failure");
    let calls = AtomicU64::new(0);
    let broken = |spec: &Spec, stop: &AtomicBool| {
        calls.fetch_add(1, Ordering::Relaxed);
        use fleetfoot_core::tcp::InitialWindow;
        match spec.groups[0].sender.initial_window {
            InitialWindow::Segments(20) => Err(String::from("it broke")),
            _ => engine(spec, stop),
        }
    };
    let reason = String::from("variant `as described`, seed 1: it broke");
    for (calls_then, reused) in [(6, 0), (6, 6)] {
        let journal = place.journal();
        let swept = execute(&sweep, &journal, 1, &AtomicBool::new(false), &broken, &|_| ()).expect("it runs");
        assert_eq!(calls.load(Ordering::Relaxed), calls_then);
        assert_eq!((swept.counts.reused, swept.counts.failed), (reused, 3));
        assert_eq!(swept.points[0].state, State::Done);
        assert_eq!(swept.points[1].state, State::Failed(reason.clone()));
        write(&place.0, &sweep, &swept, &journal).expect("it can be written");
    }
    let journal = Journal::open(&place.0.join("journal"), true, false).expect("it is a journal");
    let swept = run(&sweep, &journal, &engine);
    assert_eq!(
        (swept.counts.computed, swept.counts.reused, swept.counts.failed),
        (3, 3, 0)
    );
    assert_eq!(swept.points[1].state, State::Done);
}

#[test]
fn values_that_do_not_fit_together_fail_alone_and_wrong_ones_before_anything_runs() {
    let sweep = |lists: &[&str]| {
        let axes = lists
            .iter()
            .map(|text| Axis::list(text).expect("a list"))
            .collect();
        let points = Points::new(axes, Sampling::Grid, 1).expect("they are right");
        Sweep::new(scenario(), points, seeds(2), None)
    };
    for (text, part) in [
        ("tcp.initial_windo=10,20", "initial_window"),
        ("network.bottleneck.rate=10 Mbit/s,fast", "fast"),
        ("run.seeds=0", "seeds"),
    ] {
        let message = sweep(&[text]).expect_err("it is wrong").to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
    // Points have the seeds of the sweep, and no word about a scenario is run.
    for (text, part) in [
        ("run.seed=1,2,3", "--seed"),
        ("run.seeds=2,3", "--seeds"),
        ("title=a,b", "title"),
        ("description=a,b", "description"),
    ] {
        let message = sweep(&[text]).expect_err("nothing differs").to_string();
        assert!(
            message.contains("no effect here") && message.contains(part),
            "{text}: {message}"
        );
    }
    // A warm-up of 8 s fits the 10 s of the file, and 5 s fit its warm-up; both together do not fit.
    let sweep = sweep(&["run.warmup=1 s,8 s", "run.duration=10 s,5 s"]).expect("each fits alone");
    let place = Place::new("sweep-misfit");
    let journal = place.journal();
    let swept = run(&sweep, &journal, &engine);
    let failed = |point: usize| matches!(swept.points[point].state, State::Failed(_));
    assert_eq!([0, 1, 2, 3].map(failed), [false, false, false, true]);
    assert_eq!((swept.counts.computed, swept.interrupted), (6, false));
    write(&place.0, &sweep, &swept, &journal).expect("it can be written");
}

#[test]
fn a_point_gets_seeds_until_its_interval_is_narrow() {
    let choice = seeds(40);
    let rule = "pages.fct_mean_s=3%";
    let sweep = sweep_of(scenario(), &["tcp.initial_window=10,20,40"], choice, Some(rule));
    let place = Place::new("sweep-until");
    let journal = place.journal();
    let swept = run(&sweep, &journal, &engine);
    let until = sweep.until.clone().expect("there is a rule");
    let (mut taken, mut best) = (Vec::new(), None);
    for (number, point) in swept.points.iter().enumerate() {
        let values: Vec<f64> = (0..point.places.len())
            .map(|seed| {
                let rows = rows(&swept, &journal, number, seed);
                super::data::watched(&until, &rows)[0].expect("pages complete")
            })
            .collect();
        // Looks after 10, 20 and 40 seeds: it stopped at the first that is narrow enough.
        let narrow = |seeds: usize| until.settled(&values[..seeds], 3);
        match values.len() {
            10 => assert!(narrow(10)),
            20 => assert!(!narrow(10) && narrow(20)),
            40 => assert!(!narrow(10) && !narrow(20)),
            other => panic!("{other} seeds"),
        }
        assert_eq!(point.state == State::Done, narrow(values.len()));
        taken.push(values.len());
        best = super::stopping::interval(&values, 3);
    }
    // What is shown is the interval that ended the sampling, here of the last point, which is the best.
    let page = render(&sweep, &swept, &journal, &Shown::default(), "").expect("it is drawn");
    let (mean, half) = best.expect("it has seeds");
    let [low, high] = [mean - half, mean + half].map(crate::report::text::short);
    let shown = format!("({low} to {high}) at ");
    assert!(
        page.lines
            .iter()
            .any(|line| line.starts_with("Best fct_mean_s of pages: ") && line.contains(&shown)),
        "{shown}: {:?}",
        page.lines
    );
    assert!(page.html.contains("each of 3 looks at a level of 1 - 0.05/3"));
    assert!(taken.iter().any(|&seeds| seeds < 40), "{taken:?}");
    let again = run(&sweep, &journal, &|_, _| {
        Err(String::from("nothing is left to run"))
    });
    assert_eq!(again.counts.reused, taken.iter().sum::<usize>() as u64);
    // What is never narrow enough takes all seeds, and says so.
    let sweep = sweep_of(
        scenario(),
        &["tcp.initial_window=10"],
        seeds(12),
        Some("fct_mean_s=0.001%"),
    );
    let swept = run(&sweep, &journal, &engine);
    assert_eq!(
        (&swept.points[0].state, swept.points[0].places.len()),
        (&State::Wide, 12)
    );
    // A group that is not there is a mistake.
    let until = Until::parse("page.fct_mean_s=5%", &columns_of_numbers()).expect("a rule");
    let axes = vec![Axis::list("tcp.initial_window=10,20").expect("a list")];
    let points = Points::new(axes, Sampling::Grid, 1).expect("they are right");
    let error = Sweep::new(scenario(), points, seeds(2), Some(until)).expect_err("it is wrong");
    assert!(error.to_string().contains("there are pages, backup"), "{error}");
}

fn page(sweep: &Sweep, place: &Path, shown: &Shown) -> super::Page {
    let journal = Journal::open(&place.join("journal"), false, false).expect("it is a journal");
    let swept = run(sweep, &journal, &engine);
    render(sweep, &swept, &journal, shown, "fleetfoot sweep").expect("it can be drawn")
}

#[test]
fn the_report_draws_each_pair_of_axes_and_names_the_best_point() {
    let lists = [
        "tcp.initial_window=10,20,40",
        "network.bottleneck.rate=5 Mbit/s,10 Mbit/s",
        "network.bottleneck.delay=10 ms,20 ms",
    ];
    let choice = Choice {
        only: vec![String::from("better")],
        ..seeds(4)
    };
    let sweep = sweep_of(scenario(), &lists, choice, None);
    let place = Place::new("sweep-report");
    let three = page(&sweep, &place.0, &Shown::default());
    // Three pairs for the pages that wait, three for the goodput of the backup.
    assert_eq!(three.html.matches("<svg").count(), 6);
    assert!(
        three
            .html
            .contains("fct_mean_s of pages: tcp.initial_window and network.bottleneck.rate (Mbit/s)")
    );
    // A window of 40 halves the times of the made-up results.
    let best = &three.lines[0];
    assert!(
        best.starts_with("Best fct_mean_s of pages") && best.contains("initial_window = 40"),
        "{best}"
    );
    let shown = Shown {
        columns: vec![String::from("goodput_bps")],
        axes: Some((1, 0)),
    };
    let one = page(&sweep, &place.0, &shown);
    assert_eq!(one.html.matches("<svg").count(), 2);

    let sweep = sweep_of(
        scenario(),
        &["network.bottleneck.rate=5 Mbit/s,10 Mbit/s,20 Mbit/s"],
        seeds(4),
        None,
    );
    let lines = page(&sweep, &place.0, &Shown::default());
    assert_eq!(lines.html.matches("<svg").count(), 2);
    let sweep = sweep_of(scenario(), &["tcp.profile=linux,ns2-sack"], seeds(2), None);
    let words = page(&sweep, &place.0, &Shown::default());
    assert!(words.html.contains(">ns2-sack<"));
}
