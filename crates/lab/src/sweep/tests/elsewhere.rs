//! Sweeps whose runs are made elsewhere: in any order, with tasks that get lost, over a pipe.

use super::{Place, rows, run, seeds, sweep_of};
use crate::compare::Choice;
use crate::run::simulate;
use crate::scenario::{Scenario, Setting};
use crate::sweep::{
    Driver, Journal, PipeError, Shown, Sweep, Swept, Worker, execute_over, read_frame, write_frame, written,
};
use crate::testing::{engine, folder, scenario};
use fleetfoot_core::rng::Rng;
use std::io::{BufReader, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Everything that follows from the sweep alone.
fn files(place: &Place) -> Vec<Vec<u8>> {
    let mut files = place.files();
    files.push(std::fs::read(place.0.join("journal")).expect("it was written"));
    files.push(std::fs::read(place.0.join("sweep.json")).expect("it was written"));
    files
}

fn put(place: &Place, sweep: &Sweep, swept: &mut Swept, journal: &Journal) {
    written(
        &place.0,
        sweep,
        swept,
        journal,
        &Shown::default(),
        "fleetfoot sweep",
    )
    .expect("it can be written");
}

/// A sweep with a rule of stopping, a mechanism that does not apply everywhere, and points that fail.
fn eventful() -> Sweep {
    let choice = Choice {
        only: vec![String::from("better")],
        ..seeds(40)
    };
    sweep_of(
        scenario(),
        &[
            "tcp.initial_window=10,20,40",
            "run.warmup=1 s,8 s",
            "run.duration=10 s,5 s",
        ],
        choice,
        Some("pages.fct_mean_s=3%"),
    )
}

#[test]
fn whatever_the_order_and_whatever_is_lost_the_files_are_those_of_threads() {
    let sweep = eventful();
    let (here, there) = (Place::new("sweep-here"), Place::new("sweep-there"));
    let journal = here.journal();
    let mut swept = run(&sweep, &journal, &engine);
    put(&here, &sweep, &mut swept, &journal);

    let worker = Worker::new(Box::new(
        Sweep::from_bytes(&sweep.to_bytes().expect("it can travel")).expect("it has travelled"),
    ));
    let stop = AtomicBool::new(false);
    let mut rng = Rng::for_element(7, "sweep", "order");
    // Stopped twice on the way.
    for most in [20, 50, usize::MAX] {
        let journal = there.journal();
        let mut driver = Driver::new(&sweep, &journal);
        let mut underway = Vec::new();
        let mut entered = 0;
        while entered < most {
            while underway.len() < 6 {
                match driver.take_bytes(3, &mut |_| ()).expect("it can be read") {
                    Some(task) => underway.push(task),
                    None => break,
                }
            }
            if underway.is_empty() {
                break;
            }
            let (units, task) = underway.swap_remove(rng.below(underway.len() as u64) as usize);
            if rng.below(5) == 0 {
                driver.give_back(&units);
                continue;
            }
            let result = worker.run_bytes(&task, &stop, &engine).expect("it is a task");
            driver
                .enter_bytes(&units, &result, &mut |_| ())
                .expect("it can be kept");
            entered += 1;
        }
        let done = driver.is_done();
        let mut again = driver.finish();
        assert_eq!(done, !again.interrupted);
        put(&there, &sweep, &mut again, &journal);
        if most == usize::MAX {
            assert!(done);
            let all = |swept: &Swept| swept.counts.computed + swept.counts.reused;
            assert_eq!(
                (all(&again), again.counts.failed),
                (all(&swept), swept.counts.failed)
            );
        }
    }
    for (number, (one, other)) in files(&here).iter().zip(&files(&there)).enumerate() {
        assert!(one == other, "file {number} differs");
    }
    let rule = sweep.until.as_ref().expect("it has one");
    let mean = crate::sweep::data::watched(rule, &rows(&swept, &journal, 0, 0));
    assert_eq!(mean.len(), 2, "two variants are watched");
}

#[test]
fn a_description_carries_the_files_that_scenario_and_values_name() {
    let folder = folder("sweep-travels");
    std::fs::create_dir_all(&folder).expect("it can be made");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("it can be written");
    write("steady.trace", "1\n2\n3\n4\n5\n6\n");
    write("slow.trace", "5\n10\n");
    let text = crate::testing::TEXT.replace("\"10 Mbit/s\"", "{ trace = \"steady.trace\" }");
    write("line.toml", &text);
    let scenario = Scenario::load(&folder.join("line.toml")).expect("it is right");
    let slow = folder.join("slow.trace");
    let list = format!(
        "network.bottleneck.rate={{trace = \"{}\"}},\"10 Mbit/s\"",
        slow.display()
    );
    let sweep = sweep_of(scenario, &[&list, "run.duration=1 s"], seeds(1), None);
    let bytes = sweep.to_bytes().expect("it can travel");
    let jobs = |sweep: &Sweep, point: usize| {
        let plan = sweep.plan(&sweep.points.setting(point)).expect("it fits");
        plan.jobs()[0].identity.clone()
    };
    let here = [jobs(&sweep, 0), jobs(&sweep, 1)];
    let key = sweep.key(0).of_seed(1);
    std::fs::remove_dir_all(&folder).expect("it was made here");
    let there = Sweep::from_bytes(&bytes).expect("it has travelled");
    assert_eq!([jobs(&there, 0), jobs(&there, 1)], here);
    assert_ne!(here[0], here[1]);
    assert_eq!(there.key(0).of_seed(1), key);
    assert!(Sweep::from_bytes(b"something else").is_err());
}

#[test]
fn every_example_is_the_same_after_it_has_travelled() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(examples).expect("there are examples").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let Ok(scenario) = Scenario::load(&path) else {
            continue;
        };
        count += 1;
        let sweep = sweep_of(scenario, &["run.duration=2 min"], seeds(1), None);
        let there = Sweep::from_bytes(&sweep.to_bytes().expect("it can travel")).expect("it has travelled");
        let jobs = |sweep: &Sweep| {
            let plan = sweep.plan(&Setting::none()).expect("it fits");
            let described = plan.jobs()[0].identity.clone();
            (described, plan.variants.len(), sweep.scenario.variants().len())
        };
        assert_eq!(jobs(&there), jobs(&sweep), "{}", path.display());
    }
    assert!(count > 5, "{count} examples");
}

#[test]
fn a_title_another_variant_or_more_seeds_change_no_key() {
    let key = |text: &str, only: &[&str]| {
        let scenario = Scenario::parse("test.toml", text).expect("it is right");
        let choice = Choice {
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            ..Choice::default()
        };
        sweep_of(scenario, &["tcp.initial_window=10,20"], choice, None)
            .key(1)
            .of_seed(1)
    };
    let text = crate::testing::TEXT;
    let same = key(text, &["better"]);
    assert_eq!(key(&text.replace("A test line", "Another"), &["better"]), same);
    assert_eq!(key(&text.replace("seeds = 12", "seeds = 13"), &["better"]), same);
    let costly = "set = { \"tcp.initial_window\" = 40 }";
    let dearer = "set = { \"tcp.initial_window\" = 41 }";
    assert_eq!(key(&text.replace(costly, dearer), &["better"]), same);
    let better = "set = { \"tcp.initial_window\" = 20 }";
    assert_ne!(key(&text.replace(better, dearer), &["better"]), same);
    assert_ne!(key(&text.replace("20 kB", "21 kB"), &["better"]), same);
    assert_ne!(key(text, &[]), same);
}

/// A process with two workers that answers in odd order; `loses` every so many tasks, and ends after so many.
fn peer(mut from: impl std::io::Read, mut to: impl Write, loses: usize, ends: usize) {
    let mut from = BufReader::new(&mut from);
    let Ok(Some((b'd', description))) = read_frame(&mut from) else {
        return;
    };
    let worker = Worker::new(Box::new(
        Sweep::from_bytes(&description).expect("it has travelled"),
    ));
    let stop = AtomicBool::new(false);
    write_frame(&mut to, b'h', &[b"2"]).expect("it is read");
    let mut waits: Option<Vec<u8>> = None;
    let mut count = 0;
    while let Ok(Some((_, task))) = read_frame(&mut from) {
        count += 1;
        if count == ends {
            return;
        }
        // Every other task is answered behind the next one; the last when nothing comes any more is not waited for.
        let answer = |task: &[u8]| {
            let result = worker
                .run_bytes(&task[8..], &stop, &simulate)
                .expect("it is a task");
            [&task[..8], &result].concat()
        };
        let (kind, frame) = match count % loses {
            0 => (b'l', task[..8].to_vec()),
            _ => (b'r', answer(&task)),
        };
        if kind == b'r' && count % 4 == 1 && waits.is_none() && count < 8 {
            waits = Some(frame);
            continue;
        }
        if write_frame(&mut to, kind, &[&frame]).is_err() {
            return;
        }
        if let Some(frame) = waits.take()
            && write_frame(&mut to, b'r', &[&frame]).is_err()
        {
            return;
        }
    }
}

/// Runs over such a process.
fn over(sweep: &Sweep, place: &Place, loses: usize, ends: usize) -> Result<Swept, PipeError> {
    let (tasks, to) = std::io::pipe().expect("there are pipes");
    let (from, results) = std::io::pipe().expect("there are pipes");
    let peer = std::thread::spawn(move || peer(tasks, results, loses, ends));
    let journal = place.journal();
    let stop = AtomicBool::new(false);
    let made = execute_over(sweep, &journal, from, to, &stop, &|_| (), || {
        peer.join().expect("it does not panic");
    });
    assert!(!stop.load(Ordering::Relaxed));
    let mut swept = made?;
    put(place, sweep, &mut swept, &journal);
    Ok(swept)
}

#[test]
fn over_a_pipe_the_files_are_those_of_threads() {
    let small = scenario()
        .with(&Setting::from_origin("test").with("run.duration", "1 s"))
        .expect("it fits");
    let sweep = sweep_of(
        small,
        &["tcp.initial_window=3,10,20", "run.warmup=0 s,100 ms"],
        seeds(3),
        None,
    );
    let (here, there) = (Place::new("sweep-threads"), Place::new("sweep-pipe"));
    let journal = here.journal();
    let mut swept = run(&sweep, &journal, &simulate);
    put(&here, &sweep, &mut swept, &journal);
    // It ends in the middle: what came is kept.
    let error = over(&sweep, &there, 100, 6).expect_err("it ended");
    assert!(error.to_string().contains("ended"), "{error}");
    let again = over(&sweep, &there, 3, usize::MAX).expect("it runs");
    assert!(again.counts.reused >= 3, "{:?}", again.counts);
    assert_eq!(again.counts.computed + again.counts.reused, 18);
    for (number, (one, other)) in files(&here).iter().zip(&files(&there)).enumerate() {
        assert!(one == other, "file {number} differs");
    }
    // Nobody answers.
    let (from, results) = std::io::pipe().expect("there are pipes");
    drop(results);
    let silent = Place::new("sweep-silent");
    let stop = AtomicBool::new(false);
    let made = execute_over(&sweep, &silent.journal(), from, Vec::new(), &stop, &|_| (), || ());
    assert!(matches!(made, Err(PipeError::NotStarted)));
    // It says what is wrong.
    let mut said = Vec::new();
    write_frame(&mut said, b'e', &[b"no cluster"]).expect("memory takes it");
    let made = execute_over(
        &sweep,
        &silent.journal(),
        said.as_slice(),
        Vec::new(),
        &stop,
        &|_| (),
        || (),
    );
    assert!(matches!(made, Err(PipeError::Said(message)) if message == "no cluster"));
}
