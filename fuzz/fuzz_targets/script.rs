//! What it checks is in `fuzz/inputs/script.rs`, which the replay of the kept inputs uses too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/script.rs"]
mod script;

fuzz_target!(|bytes: &[u8]| script::run(bytes));
