//! What all parts of a connection share: negotiated values, timers, counters, and how an idle connection is stored.

pub(in crate::tcp) mod detail;
pub(in crate::tcp) mod error;
pub(in crate::tcp) mod grid;
pub(in crate::tcp) mod hibernation;
pub(in crate::tcp) mod invariants;
pub(in crate::tcp) mod lazy;
pub(in crate::tcp) mod look;
mod numbers;
pub(in crate::tcp) mod shared;
pub(in crate::tcp) mod stats;
pub(in crate::tcp) mod timers;
pub(in crate::tcp) mod types;
pub(in crate::tcp) mod work;
