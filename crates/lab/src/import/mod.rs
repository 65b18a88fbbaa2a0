//! `fleetfoot import`: a capture becomes connection vectors, a summary and a scenario.
//!
//! Read in this order: `reader` (frames of a file), `link_layer` (TCP headers), [`capture`] and `table` (connections at once),
//! `connection` (one of them), `adus` (application data units: what the ends said), `delivery` (what ACKs report), `clock` (what
//! timestamps show), `rate`, `windowed_bytes` and `sliding_max` (the
//! bottleneck), [`summary`], [`scenario`], [`files`] and `spill` (what is
//! written), [`fit`] (how well it fits), [`replay`] (what follows an import).
//!
//! Memory is bounded: so many connections are followed at once, of each so many units are kept, and finished ones are written
//! out; what remains of them is 24 bytes to put them in order. No address and no payload leaves this module unless it is
//! asked for: hosts are numbered as they come.

mod adus;
pub mod capture;
mod clock;
mod connection;
mod delivery;
pub mod files;
pub mod fit;
pub mod flows;
pub mod link_layer;
pub mod rate;
pub mod reader;
pub mod replay;
pub mod scenario;
mod sliding_max;
mod spill;
pub mod summary;
mod table;
#[cfg(test)]
mod tests;
mod windowed_bytes;

pub use capture::{Options, Progress};
pub use files::{Imported, import, import_from};
pub use fit::{Fit, Trials};
pub use summary::{Quantiles, Summary};
