//! What it checks is in `fuzz/inputs/requests.rs`, which the replay of the kept inputs uses too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/requests.rs"]
mod requests;

fuzz_target!(|bytes: &[u8]| requests::run(bytes));
