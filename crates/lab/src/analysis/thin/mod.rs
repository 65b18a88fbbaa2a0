//! Closed forms of thin streams: what a bundle holds, when a stream is thin, what applications write.

pub(super) mod bundles;
pub(super) mod limit;
pub(super) mod models;

use fleetfoot_core::tcp::{Config, DelayedAck, Profile, Rdb};

/// A sender that bundles by `rdb`; each write is a segment, each segment is acknowledged.
fn config(rdb: Rdb) -> Config {
    let mut config = Config::profile(Profile::Linux2015);
    config.congestion_control = "reno";
    config.delayed_ack = DelayedAck::Off;
    config.nagle = false;
    config.timestamps = false;
    config.coalesce_unsent = false;
    config.rdb = Some(rdb);
    config
}

/// Payload of a full packet of 1500 bytes without options.
const MSS: u32 = 1460;
