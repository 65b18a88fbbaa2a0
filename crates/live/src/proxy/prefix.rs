//! Who may use a proxy: networks by address and length of the prefix (RFC 4632 3.1, RFC 4291 2.3).

use crate::host::same_network;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network: an address, and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The addresses of this machine that no other machine can have.
    pub const LOOPBACK: [Prefix; 2] = [
        Prefix {
            address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)),
            length: 8,
        },
        Prefix {
            address: IpAddr::V6(Ipv6Addr::LOCALHOST),
            length: 128,
        },
    ];

    /// Whether `address` belongs to the network. An IPv4 address that is written as an IPv6 one (RFC 4291 2.5.5.2) is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.address.is_ipv4() == address.is_ipv4() && same_network(self.address, address, self.length)
    }

    /// This network with the bits beyond its length at zero.
    fn network(self) -> Prefix {
        let address = match self.address {
            IpAddr::V4(four) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(four.to_bits() & mask))
            }
            IpAddr::V6(six) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() & mask))
            }
        };
        Prefix { address, ..self }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Prefix, String> {
        let wanted =
            || String::from("an address or a network is wanted: 192.0.2.7, 192.0.2.0/24, 2001:db8::/32");
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wanted())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            Some(length) => length.parse().map_err(|_| wanted())?,
            None => most,
        };
        if length > most {
            return Err(format!("the length of the prefix is 0 to {most}"));
        }
        let prefix = Prefix { address, length };
        let network = prefix.network();
        if network != prefix {
            return Err(format!(
                "bits after the prefix are set; the network is {network}, the one address {address}"
            ));
        }
        Ok(prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::Prefix;
    use std::net::IpAddr;

    #[test]
    fn an_address_belongs_to_the_networks_that_share_its_bits() {
        for (prefix, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("128.0.0.0/1", "200.1.2.3", "127.255.255.255"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::/0", "2001:db8::1", "192.0.2.1"),
            ("::1", "::1", "::2"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::ffff:128.0.0.1"),
        ] {
            let found: Prefix = prefix.parse().expect(prefix);
            let address = |text: &str| text.parse::<IpAddr>().expect(text);
            assert!(found.contains(address(inside)), "{inside} in {prefix}");
            assert!(!found.contains(address(outside)), "{outside} in {prefix}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, why) in [
            ("", "wanted"),
            ("here", "wanted"),
            ("10.0.0.0/", "wanted"),
            ("10.0.0.0/x", "wanted"),
            ("10.0.0.0/33", "0 to 32"),
            ("::/129", "0 to 128"),
            ("10.0.0.5/24", "the network is 10.0.0.0/24"),
            ("2001:db8::1/32", "the network is 2001:db8::/32"),
        ] {
            let error = text.parse::<Prefix>().expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
