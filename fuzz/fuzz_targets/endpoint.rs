//! What it checks is in `fuzz/inputs/endpoint.rs`, which the replay of the kept inputs uses too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/endpoint.rs"]
mod endpoint;

fuzz_target!(|bytes: &[u8]| endpoint::run(bytes));
