//! The program `fleetfoot` with the mechanisms of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    fleetfoot_cli::run(fleetfoot_plugin_example::PLUGINS)
}
