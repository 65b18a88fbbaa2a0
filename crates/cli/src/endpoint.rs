//! What `host` and `proxy` share: our TCP behind a device, its flags, its place on the network, and what it counted.

use crate::failure::Failure;
use clap::Args;
use fleetfoot_core::tcp::Config;
use fleetfoot_lab::scenario::{Setting, endpoint};
use std::net::IpAddr;
use std::path::PathBuf;

/// The host itself.
#[derive(Debug, Args)]
pub(crate) struct Endpoint {
    /// Address of the host, with the length of the prefix that it shares with this machine: 10.9.0.2/24; once for each family. Without
    /// it $FLEETFOOT_ADDRESS, or addresses that belong to this process.
    #[arg(long, value_name = "ADDRESS/PREFIX", value_parser = address)]
    address: Vec<(IpAddr, u8)>,
    /// Name of the interface.
    #[arg(long, value_name = "NAME", value_parser = interface)]
    pub(crate) tun: Option<String>,
    /// A veth pair even where a TUN device could be made.
    #[arg(long)]
    veth: bool,
    /// MTU of the interface.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=65_535))]
    mtu: u32,
    /// A scenario file, or one with nothing but [tcp]: its [tcp] is the host's.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Change a switch, as in a scenario file: --set tcp.congestion_control=cubic.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Endpoint {
    /// Whether the address of the host was given, by a flag or by a shell that has a place for it.
    pub(crate) fn has_address(&self) -> bool {
        !self.address.is_empty() || std::env::var_os("FLEETFOOT_ADDRESS").is_some()
    }

    /// Whether a switch is set by a flag.
    pub(crate) fn sets(&self, switch: &str) -> bool {
        let sets = |argument: &String| {
            argument
                .split_once('=')
                .is_some_and(|(path, _)| path.trim() == switch)
        };
        self.set.iter().any(sets)
    }

    /// The switches of our TCP.
    pub(crate) fn tcp(&self) -> Result<Config, Failure> {
        let mut set = Setting::from_origin("--set");
        for argument in &self.set {
            set = set.with_argument(argument)?;
        }
        if let Some((path, _)) = set.iter().find(|(path, _)| !path.starts_with("tcp.")) {
            return Err(Failure::usage(format!(
                "--set {path}: a host has the switches under tcp, such as --set tcp.congestion_control=cubic"
            )));
        }
        let mut config = endpoint(self.config.as_deref(), &set)?;
        config.mtu = self.mtu;
        Ok(config)
    }
}

/// An address and the length of its prefix.
fn address(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || String::from("an address and the length of its prefix are wanted: 10.9.0.2/24");
    let (ip, length) = text.split_once('/').ok_or_else(wrong)?;
    let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
    let length: u8 = length.parse().map_err(|_| wrong())?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    if length == 0 || length > most {
        return Err(format!("the length of the prefix is 1 to {most}"));
    }
    if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
        return Err(String::from("this is not the address of one host on a network"));
    }
    if let IpAddr::V4(four) = ip
        && length < 31
    {
        let mask = u32::MAX >> length;
        if four.to_bits() & mask == 0 || four.to_bits() & mask == mask {
            return Err(String::from(
                "this is the address of a network, not of a host in it",
            ));
        }
    }
    Ok((ip, length))
}

fn interface(text: &str) -> Result<String, String> {
    let fits = (1..=15).contains(&text.len())
        && text != "."
        && text != ".."
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"/:%".contains(&byte));
    fits.then(|| text.to_owned())
        .ok_or_else(|| String::from("1 to 15 letters are wanted, without space, slash, colon and percent"))
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{attach, counters_json, host, list, packets};

#[cfg(target_os = "linux")]
mod linux {
    use super::{Endpoint, address};
    use crate::failure::Failure;
    use fleetfoot_core::tcp::Config;
    use fleetfoot_live::host::{Attached, Counters, Host, HostConfig, Place};

    impl Endpoint {
        /// The place of the host: who it is on the network.
        pub(crate) fn place(&self) -> Result<Place, Failure> {
            let mut place = Place::numbered(unpredictable() as u32);
            place.mtu = self.mtu;
            place.veth = self.veth;
            if let Some(name) = &self.tun {
                place.name.clone_from(name);
            }
            if !self.address.is_empty() {
                place.addresses.clone_from(&self.address);
            } else if let Ok(given) = std::env::var("FLEETFOOT_ADDRESS") {
                let read: Result<Vec<_>, _> = given.split_whitespace().map(address).collect();
                place.addresses =
                    read.map_err(|why| Failure::usage(format!("$FLEETFOOT_ADDRESS {given:?}: {why}")))?;
            }
            let same = |four: bool| {
                place
                    .addresses
                    .iter()
                    .filter(|(ip, _)| ip.is_ipv4() == four)
                    .count()
            };
            if same(true) > 1 || same(false) > 1 {
                return Err(Failure::usage(
                    "--address: one of each family is what a host has here",
                ));
            }
            Ok(place)
        }

        /// A host with the switches of the flags at this place.
        pub(crate) fn host(&self, place: &Place, attached: Attached) -> Result<Host, Failure> {
            Ok(host(place, attached, self.tcp()?))
        }
    }

    /// A host with these switches.
    pub(crate) fn host(place: &Place, attached: Attached, tcp: Config) -> Host {
        let config = HostConfig {
            addresses: place.hosts(),
            tcp,
            seed: unpredictable(),
        };
        Host::new(attached.device, config)
    }

    /// Makes the device; `hint` says what helps where that is not permitted.
    pub(crate) fn attach(place: &Place, hint: &str) -> Result<Attached, Failure> {
        place.attach().map_err(|error| {
            let denied = error.cause.kind() == std::io::ErrorKind::PermissionDenied;
            if denied || error.to_string().contains("not permitted") {
                Failure::other(format!("{error}\n{hint}"))
            } else {
                Failure::other(error.to_string())
            }
        })
    }

    /// What others on the network cannot know: sequence numbers and ports come from it.
    fn unpredictable() -> u64 {
        use std::hash::{BuildHasher, Hasher};
        std::collections::hash_map::RandomState::new()
            .build_hasher()
            .finish()
    }

    /// Packets, and whatever else was counted.
    pub(crate) fn packets(counters: &Counters) -> String {
        let others: Vec<String> = counters
            .all()
            .filter(|(name, _, value)| {
                let usual = [
                    "packets_in",
                    "bytes_in",
                    "packets_out",
                    "bytes_out",
                    "accepted",
                    "opened",
                    "most_bytes_held",
                ];
                *value > 0 && !usual.contains(name)
            })
            .map(|(name, _, value)| format!("{name} {value}"))
            .collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            format!("; {}", others.join(", "))
        };
        format!(
            "packets: {} in, {} out{others}",
            counters.packets_in, counters.packets_out
        )
    }

    /// All counters of a host by name.
    pub(crate) fn counters_json(counters: &Counters) -> serde_json::Value {
        counters
            .all()
            .map(|(name, _, value)| (name.to_owned(), value.into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// Items of a list for people.
    pub(crate) fn list(items: &[String]) -> String {
        items.join(" and ")
    }
}
