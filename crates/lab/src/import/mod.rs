//! `fleetfoot import`: a capture becomes connection vectors, a summary and a scenario.
//!
//! Read in this order: `reader` (frames of a file), `link_layer` (TCP headers), [`capture`] and `table` (connections at once),
//! `connection` (one of them), `units` (what was said), `delivery` (what ACKs tell), `rate`, `spans` and `recent` (the bottleneck), [`summary`], [`scenario`], [`files`] (what is
//! written), [`fit`] (how well it fits).
//!
//! Memory is bounded: so many connections are followed at once, of each so many units are kept, and finished ones are written
//! out; what remains of them is 24 bytes to put them in order. No address and no payload leaves this module unless it is
//! asked for: hosts are numbered as they come.

pub mod capture;
mod connection;
mod delivery;
pub mod files;
pub mod fit;
pub mod link_layer;
pub mod rate;
pub mod reader;
mod recent;
pub mod scenario;
mod spans;
pub mod summary;
mod table;
#[cfg(test)]
mod tests;
mod units;

pub use capture::{Options, Progress};
pub use files::{Imported, import};
pub use fit::{Fit, Trials};
pub use summary::{Quantiles, Summary};
