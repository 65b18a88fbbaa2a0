//! What it checks is in `fuzz/inputs/scenario.rs`, which the replay of the kept inputs uses too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/scenario.rs"]
mod scenario;

fuzz_target!(|bytes: &[u8]| scenario::run(bytes));
