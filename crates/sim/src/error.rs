//! Why a run does not begin.

use fleetfoot_core::time::Duration;
use std::fmt;

/// Why a specification cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// There is no path between two nodes.
    Unreachable {
        /// Name of the traffic group.
        group: String,
        /// Name of the sending node.
        from: String,
        /// Name of the receiving node.
        to: String,
    },
    /// No queue discipline has this name.
    UnknownQueue(String),
    /// No congestion control has this name.
    UnknownController(String),
    /// A traffic group has nobody to send.
    NoPairs(String),
    /// Time and number of links do not fit into one number of the event queue.
    TooLong(Duration),
    /// This traffic group uses QUIC, which was not built in.
    NoQuic(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Unreachable { group, from, to } => {
                write!(f, "traffic `{group}`: no path from `{from}` to `{to}`")
            }
            RunError::UnknownQueue(name) => write!(f, "no queue discipline is called `{name}`"),
            RunError::UnknownController(name) => write!(f, "no congestion control is called `{name}`"),
            RunError::TooLong(longest) => {
                write!(
                    f,
                    "with so many links, duration and drain may take {longest} at most"
                )
            }
            RunError::NoQuic(group) => {
                write!(
                    f,
                    "traffic `{group}` uses QUIC, and this was built without the feature `quic`"
                )
            }
            RunError::NoPairs(group) => write!(f, "traffic `{group}` has no pair of hosts"),
        }
    }
}

impl std::error::Error for RunError {}
