//! What a router is to do.

use crate::ring::Format;
use fleetfoot_core::parameter::Values;
use fleetfoot_core::plugin::Plugins;
use fleetfoot_core::queue::{AnyQueue, LinkContext};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Rate;
use std::net::{IpAddr, SocketAddr};

/// A router as its file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How frames find their way.
    pub mode: Mode,
    /// The interfaces, two at least; with [`Mode::Bridge`] two.
    pub interfaces: Vec<InterfaceConfig>,
    /// Routes of [`Mode::Route`]; no two are to the same network.
    pub routes: Vec<Route>,
    /// Where metrics can be fetched: a loopback address.
    pub metrics: Option<SocketAddr>,
    /// What is done about offloads of the interfaces.
    pub offloads: Offloads,
}

/// How frames find their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What enters one of two interfaces leaves by the other as it was.
    Bridge,
    /// IPv4 and IPv6 packets leave by the route with the longest prefix.
    Route,
}

/// What is done about offloads, with which frames are not those of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offloads {
    /// They are switched off, and stay so.
    SwitchOff,
    /// With one of them on, the router does not start.
    Refuse,
}

/// One interface and the queue before it.
#[derive(Clone, Debug, PartialEq)]
pub struct InterfaceConfig {
    /// Its name in the network namespace.
    pub name: String,
    /// Frames leave at this speed; `None`: as fast as the interface takes them.
    pub rate: Option<Rate>,
    /// Bytes per packet beyond layer 3 that take time at that speed.
    pub framing: u32,
    /// What waits where.
    pub queue: Queue,
    /// How frames come in.
    pub ring: Format,
    /// Frames, with what the kernel needs to keep them, that may wait in the interface itself, bytes.
    pub device_buffer: u32,
    /// Whether a packet whose source would not be reached by this interface is discarded.
    pub check_source: bool,
}

/// A registered queue discipline with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its name.
    pub name: &'static str,
    /// Its parameters.
    pub values: Values,
    /// What names may mean beside the registered ones.
    pub plugins: Plugins,
}

impl Queue {
    /// The queue before an interface whose line adds `framing` bytes to each packet; `seed` is not to be guessed by those who send.
    pub(crate) fn build(&self, mtu: u32, rate: Option<Rate>, framing: u32, seed: u64) -> Option<AnyQueue> {
        let context = LinkContext {
            mtu,
            rate: rate.unwrap_or(NOMINAL),
            framing,
            delay: Duration::ZERO,
            seed,
        };
        AnyQueue::build_among(self.plugins.queues, self.name, &self.values, &context)
    }
}

/// Where packets to a network go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Address of the network.
    pub network: IpAddr,
    /// Length of its prefix.
    pub prefix: u8,
    /// The interface by which it is reached, counted in [`Config::interfaces`].
    pub interface: usize,
    /// The next router; `None`: the hosts of the network are on the link.
    pub via: Option<IpAddr>,
}

/// What a discipline that asks for the speed of an interface without a rate of its own is given.
const NOMINAL: Rate = Rate::from_bps(10_000_000_000);
