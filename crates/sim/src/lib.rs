//! Virtual time: the event loop and what stands around it.
//!
//! [`spec`] is what goes in, [`output`] what comes out. [`event`] holds the order of events, [`routing`] the paths.

#![forbid(unsafe_code)]

pub mod event;
mod histogram;
pub mod output;
pub mod routing;
pub mod spec;
