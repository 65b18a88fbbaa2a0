//! What tests share, outside the code that users run.
//!
//! [`rig`] steps two connections over a wire that the test commands. [`soak`] draws random transfers over random bad paths for
//! it. [`contract`] holds a queue discipline or a congestion control from outside the tree to what holds for every registered one, by
//! the calls of [`queues`] and [`controllers`]. The tests of this crate hold a connection to what a peer can see of it: RFC 9293, attacks, a small world in which
//! everything happens that can.

pub mod contract;
pub mod controllers;
pub mod queues;
pub mod rig;
pub mod soak;
