//! The laboratory: from a scenario file to a ranked answer.
//!
//! Read in this order: [`scenario`] (the file and what it resolves to), [`mechanisms`] (what users choose between), [`run`]
//! (one run, and many in parallel), [`statistics`], [`result`] (the JSON that everything is made from), [`compare`] (ranking
//! and answer), [`metrics`] (the table of what is measured), [`report`] (HTML, CSV, Parquet, captures). [`workload`] reads sizes of flows. [`experiment`] puts published values beside measured ones;
//! [`analysis`] holds what its figures compute beyond that. [`import`] makes a scenario of a capture; [`sweep`] runs one scenario at many points; [`live`] compares real programs behind a link; [`plugins`] are mechanisms that a program brings; [`steer`] lets somebody outside decide the window of a flow; [`folder`] is where results are written; [`explain`] is what is known of a name.

pub mod analysis;
pub mod clock;
pub mod compare;
mod downsample;
pub mod experiment;
pub mod explain;
pub mod folder;
mod identity;
pub mod import;
pub mod input;
pub mod live;
pub mod mechanisms;
pub mod memory;
pub mod metrics;
pub mod plugins;
pub mod report;
pub mod result;
pub mod run;
pub mod scenario;
pub mod steer;
pub mod sweep;
#[cfg(test)]
pub(crate) mod testing;
pub mod workload;

pub use fleetfoot_statistics as statistics;
