//! For build scripts: the scenarios to start from.

use std::fs;
use std::path::PathBuf;

/// Writes `examples.rs` into the build folder, the table of examples: name and text of every scenario in `examples`.
pub(crate) fn write() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = here.join("../../examples");
    println!("cargo::rerun-if-changed={}", root.display());
    let entries = fs::read_dir(&root)
        .expect("the folder of examples is there")
        .flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    let mut table = String::from("&[\n");
    for path in files {
        println!("cargo::rerun-if-changed={}", path.display());
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        table.push_str(&format!(
            "({name:?}, include_str!({:?})),\n",
            path.display().to_string()
        ));
    }
    table.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("examples.rs"), table).expect("the build folder can be written");
}
