//! The explorer's engine: the laboratory behind one function, [`call`], that takes a request as JSON, a capture with it if
//! one is to be read, and returns an answer as JSON.
//!
//! A page in a browser calls it in a worker (module `wasm`, built by `make explorer`), `fleetfoot serve` behind HTTP. Read in this order:
//! `request` (what can be asked), `scenario` (checking a file, and what can be changed in it), `capture` (a scenario of a capture), `study` (comparisons), `shared` (runs that several engines make), `trace`
//! (one run over time). Numbers are those of the program: for the same scenario, seeds and choice [`call`] returns the JSON text that
//! `fleetfoot compare --json` prints, but for `timing`.

mod capture;
mod failure;
#[cfg(not(target_family = "wasm"))]
mod page;
mod request;
mod runs;
mod scenario;
mod shared;
mod study;
mod trace;
#[cfg(target_family = "wasm")]
pub mod wasm;

pub use capture::MOST_CAPTURE;
#[cfg(not(target_family = "wasm"))]
pub use page::page;
pub use request::{Request, call, call_with_record, parted};
pub use scenario::{MOST_FILES, MOST_TEXT};

/// Scenarios to start from: name and text of every file in `examples`.
pub const EXAMPLES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/examples.rs"));
