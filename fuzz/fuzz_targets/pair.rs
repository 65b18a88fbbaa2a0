//! What it checks is in `fuzz/inputs/pair.rs`, which the replay of the kept inputs uses too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/pair.rs"]
mod pair;

fuzz_target!(|bytes: &[u8]| pair::run(bytes));
