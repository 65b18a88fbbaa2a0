//! The largest packets of a traffic group: what the links of its paths carry.

use super::error::Error;
use super::network::Network;
use super::read::{Field, Section};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::spec::{NodeId, TrafficKind, Transport};

/// Largest packets of the group: the path's, or smaller ones if it says so.
pub(super) fn data_unit(kind: TrafficKind, section: &Section, narrowest: &Narrowest) -> Result<u32, Error> {
    let Some(field) = section.find("data_unit")? else {
        return Ok(narrowest.mtu);
    };
    let key = match kind.facts().transport {
        Transport::Tcp => None,
        Transport::Quic => Some("largest_datagram"),
        Transport::Tfrc | Transport::Datagrams => Some("packet"),
    };
    if let Some(key) = key {
        return Err(field
            .fail(format!(
                "`data_unit` is for TCP: packets of `{}` have the size `{key}`",
                kind.name()
            ))
            .help(field.place(), format!("write {key} = \"...\" instead")));
    }
    let unit = field.bytes()?;
    narrowest.takes(&field, unit)?;
    Ok(unit.0 as u32)
}

/// Refuses datagrams that are larger than a link of their path carries: all of them would be lost.
pub(super) fn datagrams_fit(
    kind: TrafficKind,
    section: &Section,
    narrowest: &Narrowest,
) -> Result<(), Error> {
    match section.find("packet")? {
        Some(packet) if kind.facts().transport == Transport::Datagrams => {
            narrowest.takes(&packet, packet.bytes()?)
        }
        _ => Ok(()),
    }
}

/// The smallest MTU on the paths of a group, and where it is.
pub(super) struct Narrowest {
    pub(super) mtu: u32,
    /// The first link with it.
    link: String,
    /// The hosts of a pair that passes there.
    pair: String,
}

impl Narrowest {
    /// Refuses packets of `bytes`, as `field` says, that do not fit.
    fn takes(&self, field: &Field, bytes: Bytes) -> Result<(), Error> {
        let Narrowest { mtu, link, pair } = self;
        if bytes.0 <= u64::from(*mtu) {
            return Ok(());
        }
        Err(field
            .fail(format!(
                "packets of {bytes} from {pair} do not fit through link `{link}` (mtu {mtu})"
            ))
            .help(
                field.place(),
                format!(
                    "at most \"{mtu} B\", or give `{link}` and every other link of the path mtu = {}",
                    bytes.0
                ),
            ))
    }
}

/// The smallest MTU on the paths of `pairs`; that every pair has a path is found out on the way.
pub(super) fn narrowest(
    pairs: &[(NodeId, NodeId)],
    section: &Section,
    network: &Network,
) -> Result<Narrowest, Error> {
    let mut found = Narrowest {
        mtu: u32::MAX,
        link: String::new(),
        pair: String::new(),
    };
    let mut paths = network.paths();
    for &(a, b) in pairs {
        for (from, to) in [(a, b), (b, a)] {
            let name = |id: NodeId| network.nodes[id.0 as usize].name.as_str();
            let place = section.table.get("to").map_or(&section.place, |node| &node.place);
            if from == to {
                return Err(Error::at(
                    place,
                    &section.path,
                    format!("`{}` would send to itself", name(from)),
                ));
            }
            let links = paths.links(from, to).ok_or_else(|| {
                Error::at(
                    place,
                    &section.path,
                    format!(
                        "`{}` cannot be reached from `{}`: no links lead there",
                        name(to),
                        name(from)
                    ),
                )
                .help(
                    place,
                    "packets pass routers only; connect both with [[link]] entries",
                )
            })?;
            for link in links {
                if link.mtu < found.mtu {
                    found = Narrowest {
                        mtu: link.mtu,
                        link: link.name.clone(),
                        pair: format!("`{}` to `{}`", name(from), name(to)),
                    };
                }
            }
        }
    }
    if found.mtu == u32::MAX {
        found.mtu = 1500;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;

    fn read(keys: &str) -> Result<Scenario, String> {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\", mtu = 1400 }}\n\
             [[traffic]]\n{keys}\n"
        );
        Scenario::parse("test.toml", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn datagrams_that_no_link_carries_are_refused() {
        let raw = "kind = \"raw\"\narrivals = { dist = \"constant\", rate = \"10 per second\" }\nmark = \"regular\"";
        for (kind, keys) in [
            ("cbr", "kind = \"cbr\"\nrate = \"1 Mbit/s\""),
            ("video-call", "kind = \"video-call\""),
            ("ping", "kind = \"ping\""),
            ("raw", raw),
        ] {
            let with = |packet: u32| read(&format!("{keys}\npacket = \"{packet} B\""));
            assert!(with(1400).is_ok(), "{kind}");
            let error = with(1401).expect_err(kind);
            let key = format!("traffic.{kind}.packet");
            for said in [
                "packets of 1401 B",
                "link `bottleneck` (mtu 1400)",
                "at most \"1400 B\"",
                &key,
            ] {
                assert!(error.contains(said), "{said}: {error}");
            }
        }
        // The size that is not written does not fit, either.
        let error = read("kind = \"cbr\"\nrate = \"1 Mbit/s\"").expect_err("1500 B");
        assert!(error.contains("packets of 1500 B"), "{error}");
        assert!(read("kind = \"dns\"").is_ok());
    }
}
