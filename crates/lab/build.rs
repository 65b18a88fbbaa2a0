//! A fingerprint of everything that determines a run: the sources of the mechanisms, the simulator and this crate but for
//! what evaluates runs and its reports, and the versions of the libraries. Kept runs carry it, so that none is reused after one of them changed.
//! Those in real time carry one of the sources that play them, too.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = sources(&here, &["src", "../core/src", "../sim/src", "../../Cargo.lock"]);
    // What only evaluates or shows runs does not change them.
    for evaluates in ["experiment", "metrics", "report"] {
        let folder = here.join("src").join(evaluates);
        files.retain(|path| !path.starts_with(&folder));
    }
    println!("cargo::rustc-env=FLEETFOOT_ENGINE={}", fingerprint(&here, files));
    let live = sources(&here, &["../live/src"]);
    println!("cargo::rustc-env=FLEETFOOT_LIVE={}", fingerprint(&here, live));
    experiments(&here);
}

/// The files in these folders, of which a change runs this script again.
fn sources(here: &Path, folders: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders {
        let path = here.join(folder);
        println!("cargo::rerun-if-changed={}", path.display());
        collect(&path, &mut files);
    }
    files
}

/// A hash of the names and contents of files.
fn fingerprint(here: &Path, mut files: Vec<PathBuf>) -> String {
    files.sort();
    let mut hasher = DefaultHasher::new();
    for path in &files {
        let name = path.strip_prefix(here).unwrap_or(path);
        let text = fs::read(path).unwrap_or_default();
        hasher.write(name.to_string_lossy().as_bytes());
        hasher.write_u64(text.len() as u64);
        hasher.write(&text);
    }
    format!("{:016x}", hasher.finish())
}

/// The table of experiments: path and text of every file below `experiments`, so that the program has them wherever it
/// is started.
fn experiments(here: &Path) {
    let root = here.join("../../experiments");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut table = String::from("&[\n");
    for path in files {
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        table.push_str(&format!(
            "(\"experiments/{name}\", include_str!({:?})),\n",
            path.display().to_string()
        ));
    }
    table.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("experiments.rs"), table).expect("the build folder can be written");
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(path) else {
        files.push(path.to_owned());
        return;
    };
    for entry in entries.flatten() {
        collect(&entry.path(), files);
    }
}
