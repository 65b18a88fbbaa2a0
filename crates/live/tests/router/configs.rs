//! Routers between the interfaces of a [`Row`](crate::row::Row), as their files would describe them.

use crate::row;
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::plugin::Plugins;
use fleetfoot_core::queue::{AnyQueue, Limit};
use fleetfoot_core::units::Rate;
use fleetfoot_live::Format;
use fleetfoot_live::router::{Config, InterfaceConfig, Mode, Offloads, Queue, Route};

pub(crate) fn queue(name: &str, limit: Option<Limit>) -> Queue {
    let entry = AnyQueue::entry_among(&[], name).expect("a registered queue");
    let mut values = Values::defaults(entry.parameters);
    if let Some(limit) = limit {
        values
            .set("limit", Value::Limit(limit))
            .expect("every queue has a limit");
    }
    Queue {
        name: entry.name,
        values,
        plugins: Plugins::NONE,
    }
}

pub(crate) fn interface(name: &str, queue: Queue, rate: Option<Rate>, ring: Format) -> InterfaceConfig {
    InterfaceConfig {
        name: name.to_owned(),
        rate,
        framing: 0,
        queue,
        ring,
        device_buffer: 212_992,
        check_source: false,
    }
}

pub(crate) fn bridge(left: Queue, right: Queue, rate: Option<Rate>, ring: Format) -> Config {
    Config {
        mode: Mode::Bridge,
        interfaces: vec![
            interface("b0", left, rate, ring),
            interface("b1", right, rate, ring),
        ],
        routes: Vec::new(),
        metrics: None,
        offloads: Offloads::SwitchOff,
    }
}

pub(crate) fn route(to: &str, interface: usize, via: Option<&str>) -> Route {
    let (network, prefix) = to.split_once('/').expect("a prefix");
    Route {
        network: network.parse().expect("an address"),
        prefix: prefix.parse().expect("a length"),
        interface,
        via: via.map(|via| via.parse().expect("an address")),
    }
}

pub(crate) fn routed(left: Queue, right: Queue, rate: Option<Rate>, ring: Format) -> Config {
    Config {
        mode: Mode::Route,
        routes: vec![
            route("10.0.1.0/24", 0, None),
            route("10.0.2.0/24", 1, None),
            // A network behind the far host.
            route("10.0.3.0/24", 1, Some("10.0.2.1")),
            route("fd00:1::/64", 0, None),
            route("fd00:2::/64", 1, None),
        ],
        ..bridge(left, right, rate, ring)
    }
}

/// Ways in which frames may come in here; what is left out is said.
pub(crate) fn rings() -> Vec<Format> {
    let mut rings = vec![Format::Frames, Format::Blocks];
    rings.extend(xdp());
    rings
}

/// AF_XDP, if this kernel has it and it was built.
pub(crate) fn xdp() -> Option<Format> {
    if !cfg!(feature = "xdp") {
        println!("skipped: `xdp`, built without the feature");
        return None;
    }
    if let Err(cause) = row::xdp_sockets() {
        println!("skipped: `xdp`: {cause}");
        return None;
    }
    Some(Format::Xdp)
}
