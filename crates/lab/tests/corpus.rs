//! The kept inputs of the fuzz targets for files, played by the targets' own code without a fuzzer.

#[path = "../../../fuzz/inputs/scenario.rs"]
mod scenario;
#[path = "../../../fuzz/inputs/script.rs"]
mod script;

/// Plays every file; its name is the last thing printed when one fails.
fn replay(target: &str, least: usize, run: fn(&[u8])) {
    let directory = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(&directory).expect("the corpus is in the tree");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    assert!(paths.len() >= least, "{directory}: {}", paths.len());
    for path in paths {
        println!("{}", path.display());
        run(&std::fs::read(&path).expect("readable"));
    }
}

#[test]
fn scenario_inputs() {
    replay("scenario", 5, scenario::run);
}

#[test]
fn script_inputs() {
    replay("script", 1, script::run);
}
