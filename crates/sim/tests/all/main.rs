//! The simulator as a whole. One program: every further one would compile the simulator again.

mod ahead;
mod calls;
mod codel_sizes;
mod common;
mod common_random_numbers;
mod cut_off;
mod determinism;
mod golden;
mod interface;
mod laws;
mod line;
mod links;
mod observers;
mod order;
mod paths;
mod queues;
#[cfg(feature = "quic")]
mod quic;
mod relay;
mod replay;
mod small_queues;
mod streaming;
mod tfrc;
mod tls;
mod traffic;
