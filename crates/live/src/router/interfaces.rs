//! What the kernel says of the interfaces of this network namespace.

use crate::Error;
use crate::netlink::{LINK_BYTES, Request, messages};
use crate::offload::{request_for, socket};
use crate::passage::Network;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::fs::read_to_string;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// An interface as the kernel has it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number in the namespace.
    pub index: u32,
    /// Longest packet at layer 3, bytes.
    pub mtu: u32,
    /// Its Ethernet address; `None`: it has none.
    pub hardware: Option<[u8; 6]>,
    /// Its IP addresses.
    pub addresses: Vec<IpAddr>,
    /// The networks that its addresses are in.
    pub networks: Vec<Network>,
    /// Whether it is up.
    pub up: bool,
}

impl Interface {
    fn add(&mut self, address: IpAddr, bits: u32) {
        self.addresses.push(address);
        self.networks.push(Network {
            address,
            prefix: bits as u8,
        });
    }
}

/// All interfaces of the namespace of this thread.
///
/// # Errors
/// The kernel does not list them.
pub fn interfaces() -> Result<Vec<Interface>, Error> {
    let fail = |cause: io::Error| Error::new("cannot list the interfaces", cause);
    let fd = socket()?;
    let mut all: Vec<Interface> = Vec::new();
    for found in getifaddrs().map_err(|errno| fail(errno.into()))? {
        let at = match all.iter().position(|known| known.name == found.interface_name) {
            Some(at) => at,
            None => {
                // One that went meanwhile has no MTU any more.
                let Some(mtu) = mtu(&fd, &found.interface_name) else {
                    continue;
                };
                all.push(Interface {
                    name: found.interface_name.clone(),
                    index: 0,
                    mtu,
                    hardware: None,
                    addresses: Vec::new(),
                    networks: Vec::new(),
                    up: found.flags.contains(InterfaceFlags::IFF_UP),
                });
                all.len() - 1
            }
        };
        let Some(address) = found.address else { continue };
        if let Some(link) = address.as_link_addr() {
            all[at].index = link.ifindex() as u32;
            if u32::from(link.hatype()) == u32::from(libc::ARPHRD_ETHER) {
                all[at].hardware = link.addr();
            }
        } else if let Some(four) = address.as_sockaddr_in() {
            let mask = found.netmask.as_ref().and_then(|mask| mask.as_sockaddr_in());
            let bits = mask.map_or(u32::BITS, |mask| mask.ip().to_bits().leading_ones());
            all[at].add(IpAddr::V4(four.ip()), bits);
        } else if let Some(six) = address.as_sockaddr_in6() {
            let mask = found.netmask.as_ref().and_then(|mask| mask.as_sockaddr_in6());
            let bits = mask.map_or(u128::BITS, |mask| mask.ip().to_bits().leading_ones());
            all[at].add(IpAddr::V6(six.ip()), bits);
        }
    }
    Ok(all)
}

fn mtu(fd: &OwnedFd, name: &str) -> Option<u32> {
    let mut request = request_for(name)?;
    // SAFETY: the request is live, and of the form that this command asks for.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    if done < 0 {
        return None;
    }
    // SAFETY: the kernel has filled this field.
    u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok()
}

/// The number of the bridge, bond or the like that the interface `index` belongs to.
pub(super) fn master(index: u32) -> io::Result<Option<u32>> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    // Family, type, index, flags and change mask (`struct ifinfomsg`).
    let mut fixed = [0; LINK_BYTES];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    let request = Request::new(libc::RTM_GETLINK, libc::NLM_F_REQUEST, &fixed);
    socket.send_to(&request.bytes(), &SocketAddr::new(0, 0), 0)?;
    let (answer, _) = socket.recv_from_full()?;
    let answer = messages(&answer).next().ok_or(io::ErrorKind::InvalidData)?;
    let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
    match answer.kind {
        libc::RTM_NEWLINK => {
            let master = answer.attribute(LINK_BYTES, libc::IFLA_MASTER);
            Ok(master.and_then(number).map(i32::cast_unsigned))
        }
        ERROR => Err(io::Error::from_raw_os_error(
            number(answer.body).map_or(0, i32::wrapping_neg),
        )),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The kernel refuses a request (`NLMSG_ERROR`); the body begins with the error number, negated.
const ERROR: u16 = libc::NLMSG_ERROR as u16;

/// The settings with which the kernel forwards what comes by the interface `name` itself: those that are on.
///
/// In IPv4 the setting of the interface decides. In IPv6 that of all interfaces does (`ip6_forward`), whatever the interface's own
/// `forwarding` says, which only makes the kernel a router in neighbour discovery; since Linux 6.17 also `force_forwarding` of the interface.
pub(super) fn forwarding(name: &str) -> Vec<String> {
    let on = |setting: &String| {
        // What the kernel does not have is not on.
        let path = format!("/proc/sys/net/{setting}");
        read_to_string(path).is_ok_and(|text| text.trim() != "0")
    };
    [
        format!("ipv4/conf/{name}/forwarding"),
        String::from("ipv6/conf/all/forwarding"),
        format!("ipv6/conf/{name}/force_forwarding"),
    ]
    .into_iter()
    .filter(on)
    // The name of an interface may have dots, which sysctl writes as slashes and the reverse.
    .map(|setting| match name.contains('.') {
        true => format!("net/{setting}"),
        false => format!("net.{}", setting.replace('/', ".")),
    })
    .collect()
}

/// Which of the capabilities that a router needs this process does not have.
pub fn missing_capabilities() -> Vec<&'static str> {
    let status = read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    // Where the kernel does not say, the calls that need them do.
    let Some(effective) = effective else {
        return Vec::new();
    };
    [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13)]
        .into_iter()
        .filter(|(_, bit)| effective >> bit & 1 == 0)
        .map(|(name, _)| name)
        .collect()
}
