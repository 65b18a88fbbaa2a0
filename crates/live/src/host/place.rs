//! Where a host is: the device, the addresses on both sides of it, the routes.

use super::device::{Device, Port};
use crate::ip::{ip, quiet};
use crate::{Error, Tun, switch_off_offloads};
use nix::ifaddrs::getifaddrs;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::SockaddrStorage;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::mpsc::channel;

/// A device that is to be made, and who is on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the interface.
    pub name: String,
    /// Addresses of the host, with the length of the prefix that it shares with the kernel's side.
    pub addresses: Vec<(IpAddr, u8)>,
    /// MTU of the interface.
    pub mtu: u32,
    /// Whether to make a veth pair even where TUN is permitted.
    pub veth: bool,
}

/// A device that is there.
pub struct Attached {
    /// To be given to a [`Host`](super::Host).
    pub device: Box<dyn Device>,
    /// Addresses that the kernel has on its side.
    pub kernel: Vec<IpAddr>,
    /// Whether it is a TUN device.
    pub tun: bool,
}

impl Place {
    /// A place of its own for each `number`: four addresses of the network that RFC 2544 set aside for measurements, and a local IPv6
    /// network (RFC 4193).
    pub fn numbered(number: u32) -> Place {
        let four = 0xc612_0000 | (number & 0x7fff) << 2 | 2;
        let six = Ipv6Addr::new(
            0xfd66,
            0x6c74,
            0x8000 | (number >> 16) as u16,
            number as u16,
            0,
            0,
            0,
            2,
        );
        Place {
            name: format!("ffh{}", number % 1_000_000),
            addresses: vec![(IpAddr::V4(Ipv4Addr::from_bits(four)), 30), (IpAddr::V6(six), 64)],
            mtu: 1500,
            veth: false,
        }
    }

    /// The addresses of the host alone.
    pub fn hosts(&self) -> Vec<IpAddr> {
        self.addresses.iter().map(|&(address, _)| address).collect()
    }

    /// Makes the device in the namespace of this thread: a TUN device, or where that is not permitted one end of a veth pair, whose
    /// other end is in a namespace that nobody else is in. Either is gone when it is dropped, also after a kill.
    ///
    /// # Errors
    /// Neither can be made, or an address or name is taken.
    pub fn attach(&self) -> Result<Attached, Error> {
        for &(address, length) in &self.addresses {
            is_free(address, length)?;
        }
        let (device, tun): (Box<dyn Device>, _) = match self.veth.then(|| self.port()) {
            Some(port) => (Box::new(port?), false),
            None => self.tun_or_port()?,
        };
        let name = &self.name;
        ip(&format!(
            "link set dev {name} mtu {} txqueuelen {QUEUE} up",
            self.mtu
        ))?;
        let mut kernel = Vec::new();
        for &(address, length) in &self.addresses {
            let neighbour = neighbour(address, length);
            let nodad = if address.is_ipv6() { " nodad" } else { "" };
            let mut lines = match neighbour {
                Some(neighbour) => format!("address add {neighbour}/{length} dev {name}{nodad}\n"),
                None => format!("route add {address} dev {name}\n"),
            };
            if !tun {
                let own = hardware(OWN);
                lines += &format!("neighbour replace {address} lladdr {own} dev {name} nud permanent\n");
            }
            match ip(&lines) {
                Ok(()) => kernel.extend(neighbour),
                // Where there is no IPv6, there is none here.
                Err(_) if address.is_ipv6() && !std::fs::exists("/proc/sys/net/ipv6").unwrap_or(false) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Attached { device, kernel, tun })
    }

    fn tun_or_port(&self) -> Result<(Box<dyn Device>, bool), Error> {
        match Tun::open(&self.name) {
            Ok(tun) => Ok((Box::new(tun), true)),
            Err(refused) => match self.port() {
                Ok(port) => Ok((Box::new(port), false)),
                Err(also) => Err(Error::new(
                    format!("{refused}; and no veth pair in its place: {}", also.what),
                    also.cause,
                )),
            },
        }
    }

    /// One end of a veth pair. The namespace of the other lives as long as the socket on it.
    fn port(&self) -> Result<Port, Error> {
        let (place, placed) = channel();
        let (go_on, gone_on) = channel::<()>();
        let mtu = self.mtu;
        let made = std::thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|errno| Error::new("cannot make a network namespace", errno))?;
            let abandoned = || Error::new("the pair could not be set up", io::ErrorKind::BrokenPipe);
            place.send(crate::thread_id()).map_err(|_| abandoned())?;
            gone_on.recv().map_err(|_| abandoned())?;
            quiet("host");
            ip("link set dev host up")?;
            switch_off_offloads("host")?;
            Port::open("host", mtu, OWN, OTHER)
        });
        let name = &self.name;
        let joined = match placed.recv() {
            Ok(thread) => ip(&format!(
                "link add {name} address {} mtu {mtu} type veth peer name host address {} mtu {mtu} netns {thread}",
                hardware(OTHER),
                hardware(OWN),
                mtu = self.mtu
            ))
            .and_then(|()| switch_off_offloads(name)),
            Err(_) => Ok(()), // the thread has the reason
        };
        if joined.is_ok() {
            let _ = go_on.send(());
        }
        drop(go_on);
        let port = made
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        joined?;
        port
    }
}

/// Whether nothing of this machine is in a network.
fn is_free(address: IpAddr, length: u8) -> Result<(), Error> {
    let all = getifaddrs().map_err(|errno| Error::new("cannot list the addresses of this machine", errno))?;
    for interface in all {
        let Some(other) = interface.address.as_ref().and_then(ip_of) else {
            continue;
        };
        let own_length = interface
            .netmask
            .as_ref()
            .and_then(ip_of)
            .map_or(length, |mask| bits(mask).count_ones() as u8);
        let link_local = matches!(address, IpAddr::V6(six) if six.is_unicast_link_local());
        if address.is_ipv4() == other.is_ipv4()
            && !link_local
            && same_network(address, other, length.min(own_length))
        {
            return Err(Error::new(
                format!(
                    "{address}/{length} is taken: interface {} of this machine has {other}/{own_length}; choose a network that no interface is in",
                    interface.interface_name
                ),
                io::ErrorKind::AddrInUse,
            ));
        }
    }
    Ok(())
}

/// The IP address in an address of the kernel's, if it is one.
pub(crate) fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let four = address.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
    four.or_else(|| address.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip())))
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => u128::from(four.to_bits()),
        IpAddr::V6(six) => six.to_bits(),
    }
}

/// Whether two addresses of one family agree in so many bits.
pub(crate) fn same_network(one: IpAddr, other: IpAddr, length: u8) -> bool {
    let width: u8 = if one.is_ipv4() { 32 } else { 128 };
    let host_bits = u32::from(width.saturating_sub(length));
    (bits(one) ^ bits(other)).checked_shr(host_bits).unwrap_or(0) == 0
}

/// The address that the kernel takes in the network of a host's: the first, or the second where the host has the first.
fn neighbour(address: IpAddr, length: u8) -> Option<IpAddr> {
    let pick = |bits: u128, width: u8| {
        let host_bits = width
            .checked_sub(length)
            .filter(|&bits| bits > 0 && bits < width)?;
        let network = bits >> host_bits << host_bits;
        let first = if host_bits == 1 { network } else { network + 1 };
        Some(if bits == first { first + 1 } else { first })
    };
    match address {
        IpAddr::V4(four) => {
            let bits = pick(u128::from(four.to_bits()), 32)?;
            Some(IpAddr::V4(Ipv4Addr::from_bits(bits as u32)))
        }
        IpAddr::V6(six) => Some(IpAddr::V6(Ipv6Addr::from_bits(pick(six.to_bits(), 128)?))),
    }
}

fn hardware(address: [u8; 6]) -> String {
    let parts: Vec<String> = address.iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}

/// Hardware addresses of a veth pair: the host's, and that of the kernel's side. Locally administered.
const OWN: [u8; 6] = [0x02, 0x66, 0x66, 0, 0, 2];
const OTHER: [u8; 6] = [0x02, 0x66, 0x66, 0, 0, 1];
/// Packets that wait for the host to read them.
const QUEUE: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::{Place, neighbour};
    use std::net::IpAddr;

    #[test]
    fn the_kernel_takes_another_address_of_the_same_network() {
        for (host, length, kernel) in [
            ("10.0.0.2", 30, Some("10.0.0.1")),
            ("10.0.0.1", 24, Some("10.0.0.2")),
            ("10.0.0.77", 24, Some("10.0.0.1")),
            ("10.0.0.4", 31, Some("10.0.0.5")),
            ("10.0.0.5", 31, Some("10.0.0.4")),
            ("10.0.0.5", 32, None),
            ("fd00::2", 64, Some("fd00::1")),
            ("fd00::1", 127, Some("fd00::")),
            ("fd00::1", 128, None),
        ] {
            let address = |text: &str| text.parse::<IpAddr>().expect("an address");
            assert_eq!(
                neighbour(address(host), length),
                kernel.map(address),
                "{host}/{length}"
            );
        }
    }

    #[test]
    fn networks_that_share_an_address_are_one() {
        for (one, other, length, same) in [
            ("10.1.2.2", "10.1.2.200", 24, true),
            ("10.1.2.2", "10.1.3.2", 24, false),
            ("10.1.2.2", "10.1.3.2", 16, true),
            ("10.1.2.2", "10.1.2.2", 32, true),
            ("10.1.2.2", "10.1.2.3", 32, false),
            ("fd00::1", "fd00::2", 64, true),
            ("fd00::1", "fd01::1", 16, false),
        ] {
            let address = |text: &str| text.parse::<IpAddr>().expect("an address");
            assert_eq!(
                super::same_network(address(one), address(other), length),
                same,
                "{one} {other} {length}"
            );
        }
    }

    #[test]
    fn places_with_different_numbers_have_nothing_in_common() {
        let (a, b) = (Place::numbered(40_000), Place::numbered(7_233));
        assert!(a.name.len() <= 15 && a.name != b.name);
        assert!(a.addresses.iter().zip(&b.addresses).all(|(a, b)| a != b));
        assert_eq!(
            Place::numbered(1).hosts(),
            ["198.18.0.6", "fd66:6c74:8000:1::2"].map(|text| text.parse::<IpAddr>().expect("an address"))
        );
    }
}
