//! Virtual time: the event loop and what stands around it.
//!
//! [`spec`] is what goes in, [`world::run`] the loop, [`output`] what comes out, [`observe`] who may listen. Each room
//! knows those before it: [`event`] holds the order of events and [`routing`] the paths, `network` the links and the packets
//! on their way, `endpoint` the connections at hosts with their interfaces and relays, `app` what uses them (`quic` is the
//! transport of one of its kinds, `tls` the sizes of a handshake), [`world`]
//! the loop that drives all.

#![forbid(unsafe_code)]

mod app;
pub mod bench;
pub mod collision;
mod endpoint;
mod error;
pub mod event;
mod histogram;
mod network;
pub mod observe;
pub mod output;
#[cfg(feature = "quic")]
mod quic;
pub mod record;
pub mod recorded;
pub mod routing;
pub mod spec;
mod tls;
pub mod watch;
pub mod world;
