//! What is measured over all connections.

use super::waits::Waits;
use fleetfoot_sim::output::Histogram;

/// Times in nanoseconds, and sizes.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) handshake: Histogram,
    pub(super) rtt: Histogram,
    pub(super) half: [Histogram; 2],
    pub(super) beyond: Histogram,
    pub(super) waits: Waits,
    pub(super) bytes: Histogram,
    pub(super) units: [Histogram; 2],
    pub(super) exchanges: Histogram,
    pub(super) exchange: Histogram,
    pub(super) connection: Histogram,
    pub(super) answer: Histogram,
    pub(super) ask: Histogram,
    pub(super) pause: Histogram,
}
