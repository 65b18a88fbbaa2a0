//! `fleetfoot router` and `fleetfoot proxy` as programs under load, while they are reloaded, cut off and killed: every byte that arrives
//! is the one that was sent, datagrams keep their order, and nothing is left behind. Needs root; says so and skips without.
//!
//! `router` and `proxy` have a part of some seconds each that always runs, and the long run in parts that `make soak-path` starts.
//! `flood` is a million flows and the memory they take.
//! `bytes` is what streams carry, `datagrams` what shows order, `program` a program that runs, `parts` the long run's book-keeping.
#![cfg(target_os = "linux")]

mod bytes;
mod datagrams;
mod flood;
#[path = "../folder/mod.rs"]
mod folder;
mod outages;
mod parts;
mod program;
mod proxy;
mod router;
#[path = "../../../live/tests/router/row.rs"]
#[expect(dead_code, reason = "the router's own tests use the rest of it")]
mod row;

use folder::Folder;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by what counts descriptors and children of this process, and loads the machine.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
