//! Fleetfoot's mechanisms, sans-IO: the same code runs in the simulator and on real packets.
//!
//! Read in this order: [`time`], [`units`], [`seq`], [`packet`], [`flow`] (the words), then [`queue`] and [`cc`] (the two
//! traits and their registries), [`link`] (a queue and a wire), then [`tcp`] (the endpoint: [`tcp::Connection`]), [`tfrc`] (the
//! other transport), [`superpacket`] (groups of packets that routers admit as a whole), [`wire`] (headers as bytes), [`socket`] (the calls of
//! an application over `tcp`), then [`rng`], [`parameter`](mod@parameter),
//! [`registry`](mod@registry) and [`plugin`] (mechanisms from outside this tree).
//!
//! Every state machine obeys one convention: time is the first argument; `on_*` feeds an input; `poll_*` takes an
//! output, call it until it says `None`; `poll_timeout` gives the next deadline and `on_timeout` is called at or after
//! it. After a drain the deadline is later than `now` or absent.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
// Unit tests include files of the crate testkit, which name this one from outside.
#[cfg(test)]
extern crate self as fleetfoot_core;
#[cfg(test)]
extern crate std;

pub mod cc;
pub mod flow;
pub mod link;
pub mod packet;
pub mod parameter;
pub mod plugin;
pub mod queue;
pub mod registry;
pub mod ring;
pub mod rng;
pub mod seq;
mod siphash;
pub mod socket;
pub mod superpacket;
pub mod tcp;
pub mod tfrc;
pub mod time;
pub mod units;
pub mod wire;
