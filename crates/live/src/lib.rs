//! Real packets on Linux.
//!
//! [`Namespace`] is a network namespace that lives as long as the closure that runs in it; [`Tun`] a device whose packets are
//! read and written here; [`Clock`] the one clock; [`calls`] the socket calls of the kernel by number, for the script
//! runner. This is the only crate that may use `unsafe`, and it does so only to call the kernel.
//!
//! On other systems the crate is empty: the verbs that need it say so.
#![cfg(target_os = "linux")]

pub mod calls;
mod clock;
mod error;
mod namespace;
mod thread;
mod tun;

pub use clock::Clock;
pub use error::Error;
pub use namespace::Namespace;
pub use thread::{sleeps, thread_id};
pub use tun::Tun;
