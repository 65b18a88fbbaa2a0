//! The commit the program was built from, for `--version`; none outside a repository.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The log of HEAD changes with every commit and checkout.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit =
        git(&["rev-parse", "--short=12", "HEAD"]).map_or_else(String::new, |commit| format!(" ({commit})"));
    println!(
        "cargo::rustc-env=FLEETFOOT_VERSION={}{commit}",
        std::env::var("CARGO_PKG_VERSION").unwrap_or_default()
    );
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
