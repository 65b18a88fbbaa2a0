//! Windows that a recorded connection offered.

use crate::spec::{GroupSpec, Recorded};
use fleetfoot_core::tcp::Config;
use fleetfoot_core::units::Bytes;
use std::sync::Arc;

/// The group's configurations with the windows of the recording, if it has any.
pub(super) fn configs(spec: &GroupSpec, recorded: &Recorded) -> Option<Box<[Arc<Config>; 2]>> {
    if recorded.windows == [0; 2] {
        return None;
    }
    let own = |config: &Arc<Config>, window: u32| match window {
        0 => Arc::clone(config),
        window => Arc::new(Config {
            receive_buffer: Bytes(u64::from(window.max(LEAST_WINDOW))),
            receive_memory: None, // it would grow on its own
            window_scale: config.window_scale.map(|_| least_scale(window)),
            ..(**config).clone()
        }),
    };
    let [sender, receiver] = recorded.windows;
    Some(Box::new([
        own(&spec.sender, sender),
        own(&spec.receiver, receiver),
    ]))
}

/// The smallest shift with which a window fits its field: a larger one would cut it.
fn least_scale(window: u32) -> u8 {
    (window >> 16).checked_ilog2().map_or(0, |bits| bits as u8 + 1)
}

/// Smaller windows hold no segment.
const LEAST_WINDOW: u32 = 536;
