//! Packetdrill scripts against a TCP: parser, runner, and the stacks they run on.
//!
//! Read in this order: [`ast`] (what a script says), [`parse`](parse()) (text to script), [`backend`] (the stack under
//! test as the runner sees it), [`run`](run()) (a script against a backend), [`virtual_time`] (our own stack), [`folder`]
//! (many scripts, by the rules of the place where each lies).
//!
//! The crate knows `core` and, on Linux, `live`, and nothing of the laboratory: whoever plays scripts passes the function that
//! sets a switch of our stack by its key in scenario files ([`folder::Options::set_switch`]).

pub mod ast;
pub mod backend;
mod call;
pub mod capture;
mod command;
pub mod constant;
pub mod exactness;
mod expression;
pub mod folder;
#[cfg(target_os = "linux")]
pub mod linux;
mod matching;
mod parse;
mod run;
mod sysctl;
mod track;
pub mod virtual_time;
mod wire;

pub use matching::Neutral;
pub use parse::{Definitions, ScriptError, parse};
pub use run::{Played, Rules, Timing, Verdict, run};
