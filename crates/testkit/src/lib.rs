//! What tests share, outside the code that users run.
//!
//! [`rig`] steps two connections over a wire that the test commands. [`soak`] draws random transfers over random bad paths for
//! it. The tests of this crate hold a connection to what a peer can see of it: RFC 9293, attacks, a small world in which
//! everything happens that can.

pub mod rig;
pub mod soak;
