//! What it checks is in `fuzz/inputs/capture.rs`, which the replay of the kept inputs uses too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/capture.rs"]
mod capture;

fuzz_target!(|bytes: &[u8]| capture::run(bytes));
