//! The public scripts: every one of them parses.

use fleetfoot_lab::drill::{Definitions, parse};
use std::path::{Path, PathBuf};

/// Where the public scripts are; absent on most machines.
fn folder() -> PathBuf {
    std::env::var_os("FLEETFOOT_PACKETDRILL").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/packetdrill"),
        PathBuf::from,
    )
}

fn scripts(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            scripts(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            found.push(path);
        }
    }
    found.sort();
}

#[test]
fn every_public_script_parses() {
    let mut found = Vec::new();
    scripts(&folder(), &mut found);
    println!("{} public scripts", found.len());
    let mut mistakes = Vec::new();
    for path in &found {
        let text = std::fs::read(path).expect("a file that was listed can be read");
        if let Err(error) = parse(&text, &Definitions::default()) {
            mistakes.push(format!("{}: {error}", path.display()));
        }
    }
    println!("{}", mistakes.join("\n"));
    // Two scripts need a word that their own runner defines on its command line.
    assert!(
        mistakes.iter().all(|mistake| mistake.contains("`CODE`")),
        "{mistakes:#?}"
    );
}
