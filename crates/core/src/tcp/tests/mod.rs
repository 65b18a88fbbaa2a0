//! Tests of whole connections.

mod accurate_ecn;
mod closing;
mod fast_open;
mod header_prediction;
mod icmp;
mod interplay;
mod lifetime;
mod loss;
mod mended;
mod newcwv;
mod offload;
mod opening;
mod operations;
mod pacing;
mod pair;
mod path_mtu;
mod patience;
mod protocol;
mod rdb;
mod rest;
mod script;
mod small_queues;
mod spreading;
mod spreading_jitter;
mod spurious;
mod switched_off;
mod tables;
mod tail;
mod transfer;
mod urgent;
mod windows;

use super::Connection;

/// The invariants of a connection after a drain, checked from inside.
fn check(connection: &Connection) {
    connection.check(true);
}

#[test]
#[should_panic(expected = "a recount gives")]
fn a_wrong_sum_is_noticed() {
    let mut script = script::Script::open(&script::bare(), 10);
    script.write(4);
    if let Some(sender) = &mut script.connection.sender {
        sender.board.marks.retrans += 1;
    }
    script.ack(1, &[]);
}
