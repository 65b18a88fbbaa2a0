//! The kept inputs of a target, played by its own code without a fuzzer.

/// Plays every file; its name is the last thing printed when one fails.
pub(crate) fn replay(target: &str, least: usize, run: fn(&[u8])) {
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
