//! What it checks is in `fuzz/inputs/wire.rs`, which the replay of the kept inputs uses too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/wire.rs"]
mod wire;

fuzz_target!(|bytes: &[u8]| wire::run(bytes));
