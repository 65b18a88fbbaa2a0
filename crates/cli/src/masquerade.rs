//! What `--masquerade` needs.

use crate::failure::Failure;
use crate::output::Common;
use fleetfoot_live::Masquerade;

/// Prepares it, and reports what a start that was killed has left behind. `without`: what can be done without root.
pub(crate) fn masquerade(common: &Common, without: &str) -> Result<Masquerade, Failure> {
    needs_root(without)?;
    let masquerade = Masquerade::prepare().map_err(|error| Failure::other(error.to_string()))?;
    say_undone(&masquerade.undone, common);
    Ok(masquerade)
}

/// Refuses it without root.
pub(crate) fn needs_root(without: &str) -> Result<(), Failure> {
    if is_root() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--masquerade changes the network of this machine: it needs root. {without}"
    )))
}

/// Reports what a start that was killed had left behind and is undone now.
pub(crate) fn say_undone(undone: &[String], common: &Common) {
    if !undone.is_empty() {
        common.say(&format!(
            "A start before this one was killed; what it had left is undone: {}.",
            undone.join(", ")
        ));
    }
}

/// Whether this is root, perhaps of a user namespace: then network namespaces can be made.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}
