//! Packetdrill scripts against a TCP: parser, runner, and the stacks they run on.
//!
//! Read in this order: [`ast`] (what a script says), [`parse`](parse()) (text to script), [`backend`] (the stack under
//! test as the runner sees it).

pub mod ast;
pub mod backend;
#[cfg(target_os = "linux")]
pub mod linux;
mod parse;

pub use parse::{Definitions, ScriptError, parse};
