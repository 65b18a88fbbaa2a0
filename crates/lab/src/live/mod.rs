//! Real programs behind a described link: what was measured of them, and which queue they did best with.
//!
//! Read in this order: [`record`] (one run, as the result document has it), [`watch`] (what is made of the packets that pass),
//! [`timeline`] (the same over time), [`metric`] (what runs are compared by), [`study`] (runs of several variants become a ranked
//! result). Packets come from the crate `fleetfoot-live`; nothing here opens a socket.

pub mod metric;
pub mod record;
pub mod study;
pub mod timeline;
pub mod watch;

pub use metric::Metric;
pub use record::{Direction, Lateness, Run};
pub use study::{Studied, Study};
pub use timeline::Timeline;
pub use watch::{Happened, Watch};
