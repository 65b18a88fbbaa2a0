//! Tests of whole connections.

mod lifetime;
mod loss;
mod pair;
mod protocol;
mod script;
mod spurious;
mod switched_off;
mod tables;
mod transfer;
mod windows;

use super::Connection;

/// The invariants of a connection, checked from inside.
fn check(connection: &Connection) {
    if let Some(sender) = &connection.sender {
        assert!(sender.una <= sender.nxt);
        assert_eq!(
            sender.board.recount(),
            sender.board.sums(),
            "the scoreboard's sums are what a recount gives"
        );
        if sender.board.out > 0 && connection.state != super::State::Closed {
            assert!(
                connection.shared.timers.armed(),
                "a timer runs while data is out: {:?}",
                sender.state
            );
        }
    }
}
