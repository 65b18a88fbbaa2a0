//! Where kernels meet: two network namespaces and the described link between them.

use crate::ip::{ip, quiet};
use crate::{Error, switch_off_offloads};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

/// Interfaces of the link in the namespace in the middle, on the side of the data senders and on that of the receivers.
pub(super) const INTERFACES: [&str; 2] = ["sender", "receiver"];

/// Where senders' packets are marked, the pair of interfaces between the marker and the link: the marker's end, and the link's.
pub(super) const MARKER: &str = "marker";
pub(super) const BEHIND_MARKER: &str = "marked";

/// The device of a host of our TCP, at the side where one is.
pub(super) const INTERFACE_OF_HOST: &str = "host";

/// The namespaces of both ends. This thread is in the one in the middle when they have been made.
pub(super) struct Place {
    ends: [File; 2],
    middle: File,
}

impl Place {
    /// Makes three network namespaces in a row, which are gone when the threads and files that hold them are. `marker`: senders'
    /// packets are marked.
    pub(super) fn make(mtu: u32, marker: bool) -> Result<Place, Error> {
        let place = Place {
            ends: [namespace()?, namespace()?],
            middle: namespace()?,
        };
        let process = std::process::id();
        for (side, interface) in INTERFACES.iter().enumerate() {
            let end = place.ends[side].as_raw_fd();
            ip(&format!(
                "link add {interface} type veth peer name eth0 address {} netns /proc/{process}/fd/{end}\n\
                 link set dev {interface} mtu {mtu} up",
                text(hardware_address(side))
            ))?;
            switch_off_offloads(interface)?;
            quiet(interface);
        }
        if marker {
            ip(&format!(
                "link add {MARKER} type veth peer name {BEHIND_MARKER}\n\
                 link set dev {MARKER} mtu {mtu} up\nlink set dev {BEHIND_MARKER} mtu {mtu} up"
            ))?;
            for interface in [MARKER, BEHIND_MARKER] {
                switch_off_offloads(interface)?;
                quiet(interface);
            }
        }
        Ok(place)
    }

    /// Sets up both ends with so many hosts each, which are addresses of one kernel; afterwards this thread is in that of the
    /// senders.
    pub(super) fn furnish(&self, mtu: u32, ecn: bool, hosts: [usize; 2]) -> Result<(), Error> {
        for side in [1, 0] {
            self.enter(side)?;
            let other = 1 - side;
            quiet("eth0");
            let mut commands = format!("link set lo up\nlink set dev eth0 mtu {mtu} up\n");
            for host in 0..hosts[side] {
                commands += &format!("address add {}/{PREFIX} dev eth0\n", address(side, host));
            }
            for host in 0..hosts[other] {
                let (to, hardware) = (address(other, host), hardware_address(other));
                commands += &format!(
                    "neigh replace {to} lladdr {} dev eth0 nud permanent\n",
                    text(hardware)
                );
            }
            ip(&commands)?;
            switch_off_offloads("eth0")?;
            for (name, value) in [
                ("tcp_no_metrics_save", "1"),
                ("tcp_max_syn_backlog", "65535"),
                ("ip_local_port_range", "1024 65000"),
                ("tcp_ecn", if ecn { "1" } else { "2" }),
            ] {
                sysctl(&format!("net/ipv4/{name}"), value)?;
            }
            sysctl("net/core/somaxconn", "65535")?;
        }
        Ok(())
    }

    /// The way from a side to the network of a host at the other one.
    pub(super) fn way_to_host(&self, side: usize, network: &str, via: IpAddr) -> Result<(), Error> {
        self.enter(side)?;
        ip(&format!("route add {network} via {via} dev eth0\n"))
    }

    /// The kernel of this namespace forwards between the link and the device of a host.
    pub(super) fn forwards(&self) -> Result<(), Error> {
        sysctl("net/ipv4/ip_forward", "1")
    }

    /// Puts this thread into the namespace of a side.
    pub(super) fn enter(&self, side: usize) -> Result<(), Error> {
        enter(&self.ends[side])
    }

    /// Puts this thread into the namespace in the middle.
    pub(super) fn enter_middle(&self) -> Result<(), Error> {
        enter(&self.middle)
    }
}

fn enter(namespace: &File) -> Result<(), Error> {
    setns(namespace, CloneFlags::CLONE_NEWNET)
        .map_err(|errno| Error::new("cannot enter a network namespace", errno))
}

/// A new namespace, in which this thread is from now on.
fn namespace() -> Result<File, Error> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| {
        Error::new("cannot make a network namespace", errno).needing(crate::namespace::NAMESPACES)
    })?;
    File::open("/proc/thread-self/ns/net")
        .map_err(|cause| Error::new("cannot open a network namespace", cause))
}

fn sysctl(name: &str, value: &str) -> Result<(), Error> {
    let path = format!("/proc/sys/{name}");
    std::fs::write(&path, value).map_err(|cause| Error::new(format!("cannot set {path} to {value:?}"), cause))
}

/// The address of a host at a side.
pub(super) const fn address(side: usize, host: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(NETWORK + 1 + side as u32 + 2 * host as u32))
}

/// The hardware address of a side: locally administered.
pub(super) const fn hardware_address(side: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, 1 + side as u8]
}

/// As it is written.
fn text(hardware: [u8; 6]) -> String {
    hardware.map(|byte| format!("{byte:02x}")).join(":")
}

/// 100.64.0.0/10, which RFC 6598 sets aside.
const NETWORK: u32 = 0x6440_0000;
const PREFIX: u8 = 10;
