//! Routes: the longest prefix wins.

use super::config::Route;
use ipnet::{Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;
use std::net::IpAddr;

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    /// The interface, by its number.
    pub(super) interface: usize,
    /// The next router; `None`: the destination itself.
    pub(super) via: Option<IpAddr>,
}

/// Networks of both families.
#[derive(Default)]
pub(super) struct Routes {
    four: PrefixMap<Ipv4Net, Hop>,
    six: PrefixMap<Ipv6Net, Hop>,
}

impl Routes {
    pub(super) fn new(routes: &[Route]) -> Routes {
        let mut all = Routes::default();
        for route in routes {
            let hop = Hop {
                interface: route.interface,
                via: route.via,
            };
            // A prefix that is too long was refused by the reader of the file.
            match route.network {
                IpAddr::V4(network) => {
                    if let Ok(network) = Ipv4Net::new(network, route.prefix) {
                        all.four.insert(network.trunc(), hop);
                    }
                }
                IpAddr::V6(network) => {
                    if let Ok(network) = Ipv6Net::new(network, route.prefix) {
                        all.six.insert(network.trunc(), hop);
                    }
                }
            }
        }
        all
    }

    /// The way to an address.
    pub(super) fn find(&self, to: IpAddr) -> Option<Hop> {
        match to {
            IpAddr::V4(to) => self.four.get_lpm(&Ipv4Net::from(to)).map(|(_, hop)| *hop),
            IpAddr::V6(to) => self.six.get_lpm(&Ipv6Net::from(to)).map(|(_, hop)| *hop),
        }
    }

    /// Whether an address stands for all hosts of a network on one of the links, or for that network (RFC 1812 4.2.2.11).
    pub(super) fn is_broadcast(&self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else {
            return false;
        };
        let found = self.four.get_lpm(&Ipv4Net::from(address));
        found.is_some_and(|(network, hop)| {
            // Networks of one or two hosts have no such addresses (RFC 3021).
            hop.via.is_none()
                && (1..31).contains(&network.prefix_len())
                && (address == network.broadcast() || address == network.network())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Routes;
    use crate::router::Route;
    use fleetfoot_core::rng::Rng;
    use std::net::IpAddr;

    fn route(network: &str, interface: usize) -> Route {
        let (network, prefix) = network.split_once('/').expect("a prefix");
        Route {
            network: network.parse().expect("an address"),
            prefix: prefix.parse().expect("a length"),
            interface,
            via: None,
        }
    }

    #[test]
    fn the_longest_prefix_wins() {
        let routes = Routes::new(&[
            route("0.0.0.0/0", 0),
            route("10.0.0.0/8", 1),
            route("10.1.0.0/16", 2),
            route("10.1.2.3/32", 3),
            route("fd00::/8", 1),
            route("fd00:2::/32", 2),
        ]);
        for (to, interface) in [
            ("192.0.2.1", Some(0)),
            ("10.9.9.9", Some(1)),
            ("10.1.9.9", Some(2)),
            ("10.1.2.3", Some(3)),
            ("10.1.2.4", Some(2)),
            ("fd01::1", Some(1)),
            ("fd00:2::1", Some(2)),
            ("2001:db8::1", None),
        ] {
            let to: IpAddr = to.parse().expect("an address");
            assert_eq!(routes.find(to).map(|hop| hop.interface), interface, "{to}");
        }
    }

    #[test]
    fn broadcast_addresses_are_those_of_networks_on_links() {
        let mut behind = route("10.2.0.0/16", 0);
        behind.via = Some(IpAddr::from([10, 1, 0, 9]));
        let routes = Routes::new(&[
            route("0.0.0.0/0", 0),
            route("10.1.0.0/24", 1),
            behind,
            route("10.3.0.0/31", 1),
            route("10.4.0.1/32", 1),
            route("fd00::/64", 1),
        ]);
        for (address, expected) in [
            ("10.1.0.255", true),
            ("10.1.0.0", true),
            ("10.1.0.254", false),
            ("10.2.255.255", false), // who is behind another router is not known here
            ("10.3.0.1", false),
            ("10.4.0.1", false),
            ("192.0.2.255", false),
            ("fd00::ffff:ffff:ffff:ffff", false),
        ] {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(routes.is_broadcast(address), expected, "{address}");
        }
    }

    #[test]
    fn it_agrees_with_a_look_at_every_route() {
        let mut rng = Rng::from_seed(5);
        for _ in 0..200 {
            let mut list: Vec<Route> = Vec::new();
            for interface in 0..20 {
                let prefix = rng.below(33) as u8;
                // Few bits, so that networks lie in each other.
                let bits = (rng.below(4) << 30 | rng.below(4) << 20 | rng.below(4)) as u32;
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                let network = IpAddr::from((bits & mask).to_be_bytes());
                if !list
                    .iter()
                    .any(|other| (other.network, other.prefix) == (network, prefix))
                {
                    list.push(Route {
                        network,
                        prefix,
                        interface,
                        via: None,
                    });
                }
            }
            let routes = Routes::new(&list);
            for _ in 0..100 {
                let to = (rng.below(4) << 30 | rng.below(4) << 20 | rng.below(4)) as u32;
                let inside = |route: &&Route| {
                    let IpAddr::V4(network) = route.network else {
                        return false;
                    };
                    let mask = u32::MAX.checked_shl(32 - u32::from(route.prefix)).unwrap_or(0);
                    to & mask == network.to_bits()
                };
                let wanted = list.iter().filter(inside).max_by_key(|route| route.prefix);
                let found = routes.find(IpAddr::from(to.to_be_bytes()));
                assert_eq!(
                    found.map(|hop| hop.interface),
                    wanted.map(|route| route.interface)
                );
            }
        }
    }
}
