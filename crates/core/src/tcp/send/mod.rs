//! What leaves, and when: new data, retransmissions, probes, pacing, spreading, thin streams.

pub(in crate::tcp) mod bundling;
pub(in crate::tcp) mod feed;
pub(in crate::tcp) mod half;
mod host_queue;
pub(in crate::tcp) mod mtu_probe;
pub(in crate::tcp) mod offload;
pub(in crate::tcp) mod pacing;
pub(in crate::tcp) mod path_probe;
pub(in crate::tcp) mod peer_window;
pub(in crate::tcp) mod persist;
pub(in crate::tcp) mod rdb;
pub(in crate::tcp) mod segment_out;
mod small_queues;
pub(in crate::tcp) mod spreading;
pub(in crate::tcp) mod tempo;
pub(in crate::tcp) mod thin;
pub(in crate::tcp) mod window_use;
