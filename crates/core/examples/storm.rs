//! Random inputs in a plain loop, without a fuzzer's instrumentation: many times faster than libFuzzer, and blind.
//!
//! `cargo run --release -p fleetfoot-core --example storm -- parse|endpoint [--runs N] [--seconds N] [--seed N]`.
//! `parse` changes valid packets (IPv4, IPv6, TCP, UDP, ICMP), mends their checksums half of the time and reads them; what is
//! read is written and read again, and must be the same. `endpoint` makes calls and segments that are mostly plausible for
//! `fuzz/inputs/endpoint.rs`; build it with `--profile ci`, so that the invariants are checked.
//!
//! Input `n` of seed `s` is made from `s` and `n` alone. Progress goes to stderr, the line for the log to stdout, after
//! Ctrl-C too. A failure prints the arguments that repeat it.

#[path = "storm/calls.rs"]
mod calls;
#[path = "../../../fuzz/inputs/endpoint.rs"]
#[expect(dead_code, reason = "the fuzzer's way in")]
mod endpoint;
#[path = "storm/packets.rs"]
mod packets;
#[path = "storm/runner.rs"]
mod runner;

use runner::{Draw, Storm, fail, run};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut storm: Box<dyn Storm> = match arguments.next().as_deref() {
        Some("parse") => Box::new(packets::Packets::new()),
        Some("endpoint") => Box::new(calls::Calls::default()),
        other => fail(&format!("choose parse or endpoint, not {other:?}")),
    };
    run(storm.as_mut(), arguments);
}
