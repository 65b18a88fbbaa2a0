//! Examples, generated documents, messages, merging, paths.

use super::{Error, ErrorKind, HOME_LINE, Scenario, Setting, json_schema, reference};
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::time::Duration;
use fleetfoot_sim::spec::Traffic;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn examples() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root().join("examples"))
        .expect("the tree has examples")
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_example_resolves_and_says_what_it_asks() {
    let files = examples();
    assert!(files.len() >= 5);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("an example can be read");
        assert!(
            text.starts_with("# ") && text.contains("The question:"),
            "{}",
            file.display()
        );
        let scenario = Scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
        let resolved = scenario
            .resolve(&Setting::none())
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(resolved.run.seeds >= 10 && resolved.uses_tcp());
        // Written and read again it is the same scenario.
        let again =
            Scenario::parse("again.toml", &scenario.to_toml()).unwrap_or_else(|error| panic!("{error}"));
        let again = again
            .resolve(&Setting::none())
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(resolved.describes_the_same(&again), "{}", file.display());
    }
}

#[test]
fn the_home_line_is_what_its_file_says() {
    let scenario = Scenario::home_line().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.title(), "A busy home line");
    let resolved = scenario
        .resolve(&Setting::none())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(resolved.spec.nodes.len(), 26);
    assert_eq!(resolved.spec.links.len(), 50);
    assert_eq!(resolved.run.bottleneck, ["bottleneck"]);
    assert_eq!(resolved.bottleneck_queues(), ["drop-tail"]);
    assert_eq!(resolved.base_rtts().len(), 12);
    assert!(
        resolved
            .base_rtts()
            .iter()
            .all(|pair| pair.rtt == Duration::from_millis(40))
    );
    let Traffic::Transfer {
        size, interarrival, ..
    } = &resolved.spec.groups[0].traffic
    else {
        panic!("pages are transfers")
    };
    // Mean 40 kB with shape 1.2: scale = mean (shape - 1).
    let Distribution::Lomax { scale, shape } = size else {
        panic!("sizes are Lomax")
    };
    assert!((scale - 8000.0).abs() < 1e-6 && (shape - 1.2).abs() < 1e-12);
    assert_eq!(*interarrival, Distribution::Exponential { mean: 0.25 });
    assert_eq!(
        resolved
            .groups
            .iter()
            .map(|group| group.latency_sensitive)
            .collect::<Vec<_>>(),
        [true, false, false]
    );
}

/// Compares with a checked-in file; `FLEETFOOT_BLESS=1` writes it.
fn is_current(file: &str, text: &str) {
    let path = root().join(file);
    if std::env::var_os("FLEETFOOT_BLESS").is_some() {
        std::fs::write(&path, text).expect("the tree can be written");
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == text,
        "{file} is not current: run FLEETFOOT_BLESS=1 cargo test -p fleetfoot-lab scenario and commit it"
    );
}

#[test]
fn the_schema_and_the_reference_are_current() {
    let schema = serde_json::to_string_pretty(&json_schema()).expect("a schema is JSON");
    is_current("docs/scenario.schema.json", &format!("{schema}\n"));
    is_current("docs/scenario-reference.md", &reference());
}

fn refusal(text: &str) -> Error {
    match Scenario::parse("line.toml", text) {
        Ok(_) => panic!("this was accepted:\n{text}"),
        Err(error) => error,
    }
}

/// The home line with one text replaced.
fn home(from: &str, to: &str) -> String {
    assert!(HOME_LINE.contains(from), "{from}");
    HOME_LINE.replacen(from, to, 1)
}
