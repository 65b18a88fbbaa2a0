//! Options of an import, and what it hands out on the way.

use crate::workload::vectors::Vector;
use fleetfoot_core::time::Duration;

/// How to import.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Addresses stand in the summary.
    pub keep_addresses: bool,
    /// Connections that are followed at once.
    pub most_open: usize,
    /// A connection that is silent for longer is taken as over.
    pub idle: Duration,
    /// An end that sends nothing for as long, though it could, pauses.
    pub quiet: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            keep_addresses: false,
            most_open: 200_000,
            idle: Duration::from_secs(900),
            quiet: Duration::from_millis(10),
        }
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the file.
    pub bytes: u64,
    /// Frames.
    pub packets: u64,
    /// Connections written.
    pub connections: u64,
}

/// A connection that is over, and what its vector does not say.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// What was said.
    pub vector: Vector,
    /// Number of the host that did not open it.
    pub answerer: u32,
    /// The connection was opened from the other side of the line than the first one.
    pub back: bool,
    /// The connection may be a long transfer: if it is one, [`crate::import::Summary::long_ids`] has its number.
    pub may_be_long: bool,
}
