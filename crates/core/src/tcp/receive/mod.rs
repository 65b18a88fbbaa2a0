//! What arrives: the arrival procedure, reassembly, the receive buffer, the window offered, and when to acknowledge.

pub(in crate::tcp) mod ack_policy;
pub(in crate::tcp) mod half;
pub(in crate::tcp) mod held_back;
mod payload;
pub(in crate::tcp) mod rcvbuf;
pub(in crate::tcp) mod reassembly;
mod reset;
pub(in crate::tcp) mod right_sizing;
pub(in crate::tcp) mod segment_in;
pub(in crate::tcp) mod urgent;
pub(in crate::tcp) mod window;
