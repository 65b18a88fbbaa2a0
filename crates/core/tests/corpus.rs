//! The kept inputs of the fuzz targets for core, played by the targets' own code without a fuzzer.

#[path = "../../../fuzz/inputs/endpoint.rs"]
mod endpoint;
#[path = "../../../fuzz/inputs/pair.rs"]
mod pair;
#[path = "../../../fuzz/inputs/queues.rs"]
mod queues;
#[path = "../../../fuzz/inputs/wire.rs"]
mod wire;

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
fn endpoint_inputs() {
    replay("endpoint", 4, endpoint::run);
}

#[test]
fn pair_inputs() {
    replay("pair", 8, pair::run);
}

#[test]
fn queue_inputs() {
    replay("queues", 3, queues::run);
}

#[test]
fn wire_inputs() {
    replay("wire", 4, wire::run);
}
