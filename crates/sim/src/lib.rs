//! Virtual time: the event loop and what stands around it.
//!
//! [`spec`] is what goes in, [`world::run`] the loop, [`output`] what comes out, [`observe`] who may listen. [`event`]
//! holds the order of events, [`routing`] the paths, `endpoint` the connections, `app` what uses them,
//! `interface` what may stand between both and their links, `relay` what may end connections on the way.

#![forbid(unsafe_code)]

mod app;
pub mod bench;
mod endpoint;
pub mod event;
mod histogram;
mod interface;
pub mod observe;
pub mod output;
pub mod record;
mod relay;
pub mod routing;
pub mod spec;
pub mod watch;
pub mod world;
