//! What it checks is in `fuzz/inputs/mark.rs`, which the replay of the kept inputs uses too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/mark.rs"]
mod mark;

fuzz_target!(|bytes: &[u8]| mark::run(bytes));
