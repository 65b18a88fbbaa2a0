//! A congestion control and a queue discipline from outside Fleetfoot's tree, for its documents and tests.
//!
//! Copy this folder to begin one of your own; `docs/plugin.md` explains it.

pub mod drop_front;
pub mod relentless;

use fleetfoot_core::cc::{self, AnyController};
use fleetfoot_core::plugin::Plugins;
use fleetfoot_core::queue::{AnyQueue, LinkContext};
use fleetfoot_core::registry::Plugin;

static CONTROLLERS: [Plugin<AnyController, cc::Config>; 1] = [relentless::PLUGIN];
static QUEUES: [Plugin<AnyQueue, LinkContext>; 1] = [drop_front::PLUGIN];

/// Everything that this crate brings.
pub const PLUGINS: Plugins = Plugins {
    controllers: &CONTROLLERS,
    queues: &QUEUES,
};
