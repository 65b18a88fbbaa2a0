//! What it checks is in `fuzz/inputs/router.rs`, which the replay of the kept inputs uses too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/router.rs"]
mod router;

fuzz_target!(|bytes: &[u8]| router::run(bytes));
