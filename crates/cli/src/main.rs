//! The program `fleetfoot`, without plug-ins.

#![forbid(unsafe_code)]

use fleetfoot_core::plugin::Plugins;
use std::process::ExitCode;

fn main() -> ExitCode {
    fleetfoot_cli::run(Plugins::NONE)
}
