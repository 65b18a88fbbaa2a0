//! Our TCP at one side, in place of the kernel's: a [`Host`] on a TUN device in the namespace of that side, for which the
//! kernel there forwards packets between the device and the described link.

use super::place::{INTERFACE_OF_HOST, Place, address};
use crate::host::{Host, HostConfig};
use crate::{Error, host};
use fleetfoot_core::socket::Errno;
use fleetfoot_core::tcp::Config;
use fleetfoot_core::time::Duration;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The host, and whose its handles are.
pub(super) struct Ours {
    /// The side at which it is: 0, the data senders; 1, the receivers.
    pub(super) side: usize,
    pub(super) host: Host,
    /// The group of a listener.
    listeners: HashMap<host::Handle, usize>,
    /// The connection of a handle.
    connections: HashMap<host::Handle, usize>,
}

/// What the host has news about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Connections wait at the listener of a group.
    Listener(usize),
    /// A connection can be read or written, or is over.
    Connection(usize),
}

impl Ours {
    /// Makes the device and the host at `side`; the other side learns the way there. This thread is at that side afterwards.
    pub(super) fn make(place: &Place, side: usize, config: &Config, seed: u64) -> Result<Ours, Error> {
        place.way_to_host(1 - side, &network(), address(side, 0))?;
        place.enter(side)?;
        place.forwards()?;
        let there = host::Place {
            name: INTERFACE_OF_HOST.to_owned(),
            addresses: vec![(OWN, PREFIX)],
            mtu: config.mtu,
            veth: false,
        };
        let attached = there.attach()?;
        let config = HostConfig {
            addresses: there.hosts(),
            tcp: config.clone(),
            seed,
        };
        Ok(Ours {
            side,
            host: Host::new(attached.device, config),
            listeners: HashMap::new(),
            connections: HashMap::new(),
        })
    }

    /// Its address.
    pub(super) const fn address() -> IpAddr {
        OWN
    }

    /// Listens for the connections of a group.
    pub(super) fn listen(&mut self, group: usize, port: u16) -> Result<host::Handle, Error> {
        let handle = self
            .host
            .listen(SocketAddr::new(OWN, port), BACKLOG)
            .map_err(|errno| failed("our host cannot listen", errno))?;
        self.listeners.insert(handle, group);
        Ok(handle)
    }

    /// Opens a connection, which is number `index` of the loop: its handle and its own address.
    pub(super) fn connect(
        &mut self,
        index: usize,
        to: SocketAddr,
    ) -> Result<(host::Handle, SocketAddr), Error> {
        let handle = self
            .host
            .connect(to)
            .map_err(|errno| failed("our host cannot connect", errno))?;
        self.connections.insert(handle, index);
        let own = self.host.local(handle).unwrap_or(SocketAddr::new(OWN, 0));
        Ok((handle, own))
    }

    /// The next connection that waits at a listener: its handle, and the address of the end that opened it.
    pub(super) fn accept(
        &mut self,
        listener: host::Handle,
    ) -> Result<Option<(host::Handle, SocketAddr)>, Error> {
        match self.host.accept(listener) {
            Ok((handle, peer)) => Ok(Some((handle, peer))),
            Err(Errno::EAGAIN) => Ok(None),
            Err(errno) => Err(failed("our host cannot accept a connection", errno)),
        }
    }

    /// From now on what happens to the handle is news of connection `index`.
    pub(super) fn watch(&mut self, handle: host::Handle, index: usize) {
        self.connections.insert(handle, index);
    }

    /// Closes a handle, with a reset where `abort`.
    pub(super) fn release(&mut self, handle: host::Handle, abort: bool) {
        self.connections.remove(&handle);
        match abort {
            true => self.host.abort(handle),
            false => self.host.close(handle),
        }
    }

    /// How long the loop may sleep before the host must work again.
    pub(super) fn patience(&self) -> Option<Duration> {
        let due = self.host.poll_timeout()?;
        Some(due.since(self.host.clock().now()))
    }

    /// The next news.
    pub(super) fn news(&mut self) -> Option<News> {
        while let Some(event) = self.host.poll_event() {
            if let Some(&group) = self.listeners.get(&event.handle) {
                return Some(News::Listener(group));
            }
            if let Some(&index) = self.connections.get(&event.handle) {
                return Some(News::Connection(index));
            }
        }
        None
    }
}

/// The host's network: its address and that of the kernel on its device.
fn network() -> String {
    format!("{NETWORK}/{PREFIX}")
}

fn failed(what: &str, errno: Errno) -> Error {
    Error::new(what, std::io::Error::from_raw_os_error(errno.number()))
}

/// The network of both ends, out of the one that RFC 2544 set aside for measurements.
const NETWORK: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));
const PREFIX: u8 = 30;
/// Connections that may wait to be accepted: more than any group opens at once.
const BACKLOG: i32 = 4096;
