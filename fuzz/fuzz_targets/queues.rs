//! What it checks is in `fuzz/inputs/queues.rs`, which the replay of the kept inputs uses too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../inputs/queues.rs"]
mod queues;

fuzz_target!(|bytes: &[u8]| queues::run(bytes));
