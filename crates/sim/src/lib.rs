//! Virtual time: the event loop and what stands around it.
//!
//! [`spec`] is what goes in, [`output`] what comes out.

#![forbid(unsafe_code)]

pub mod output;
pub mod spec;
