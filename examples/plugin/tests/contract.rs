//! Both mechanisms keep the contracts that hold for every registered one.

use fleetfoot_plugin_example::{drop_front, relentless};
use fleetfoot_testkit::contract;

#[test]
fn drop_front_is_a_queue_discipline() {
    contract::of_queue(&drop_front::PLUGIN);
}

#[test]
fn relentless_is_a_congestion_control() {
    contract::of_controller(&relentless::PLUGIN);
}
