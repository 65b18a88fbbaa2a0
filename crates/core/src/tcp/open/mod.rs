//! How a connection begins and ends: listening, handshake, Fast Open, closing, TIME-WAIT, and when to give up.

pub(in crate::tcp) mod attempts;
pub(in crate::tcp) mod closing;
pub(in crate::tcp) mod fast_open;
pub(in crate::tcp) mod give_up;
pub(in crate::tcp) mod handshake;
pub mod listener;
pub(in crate::tcp) mod time_wait;
