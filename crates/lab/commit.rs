//! For build scripts: the commit that is built, which results name; empty outside a repository.

use std::process::Command;

/// Sets `FLEETFOOT_COMMIT`, and returns it.
pub(crate) fn emit() -> String {
    // The log of HEAD changes with every commit and checkout.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    println!("cargo::rustc-env=FLEETFOOT_COMMIT={commit}");
    commit
}

/// What git prints for `arguments`, unless it fails or prints nothing.
pub(crate) fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
