//! What people call a link, and what kind of line it is. Nothing in a run depends on it: it is for answers that name the
//! place and say how to turn something on there.

use super::error::Error;
use super::read::{Field, Section};

/// What a scenario says of one direction of a link beside how it behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkInfo {
    /// What people call it: "the cable line". `None`: it has only its name.
    pub label: Option<String>,
    /// What kind of line it is; `None`: unknown.
    pub medium: Option<Medium>,
    /// Whether its rate is what of the rate of a line of DSL carries packets and framing ([`Medium::carried_share`]), not the line's own. `None`: not said, so
    /// that it is the line's own.
    pub rate_is_net: Option<bool>,
}

/// The kind of a line: which device holds its queue, and what its packets carry beyond layer 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Medium {
    /// An Ethernet port of a router.
    Ethernet,
    /// Cable: the modem holds the queue upstream, the provider's CMTS downstream.
    Docsis,
    /// ADSL over ATM cells: modem upstream, DSLAM downstream.
    Adsl,
    /// VDSL2 with packet framing: modem upstream, DSLAM downstream.
    Vdsl,
    /// A passive optical network: terminal upstream, line terminal downstream.
    Gpon,
    /// Wireless LAN: station and access point.
    Wifi,
    /// A mobile network: phone and base station.
    Cellular,
    /// A satellite: terminal and gateway.
    Satellite,
    /// A host's own interface.
    Host,
    /// A port of a switch in a data centre or an office.
    Switch,
}

impl Medium {
    /// Every medium with its name in scenario files.
    pub const ALL: [(Medium, &'static str); 10] = [
        (Medium::Ethernet, "ethernet"),
        (Medium::Docsis, "docsis"),
        (Medium::Adsl, "adsl"),
        (Medium::Vdsl, "vdsl"),
        (Medium::Gpon, "gpon"),
        (Medium::Wifi, "wifi"),
        (Medium::Cellular, "cellular"),
        (Medium::Satellite, "satellite"),
        (Medium::Host, "host"),
        (Medium::Switch, "switch"),
    ];

    /// The names alone.
    pub const NAMES: [&'static str; Medium::ALL.len()] = {
        let mut names = [""; Medium::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Medium::ALL[at].1;
            at += 1;
        }
        names
    };

    /// Its name in scenario files: "docsis".
    pub fn name(self) -> &'static str {
        Medium::ALL
            .iter()
            .find(|(medium, _)| *medium == self)
            .map_or("", |(_, name)| name)
    }

    /// Of the line's own rate, what carries packets and their framing, as a fraction: of 53 bytes of a cell of ATM 48 (ITU-T I.361), of 65 bytes of PTM 64
    /// (IEEE 802.3, 61.3.3). `None`: all of it.
    pub const fn carried_share(self) -> Option<(u64, u64)> {
        match self {
            Medium::Adsl => Some((48, 53)),
            Medium::Vdsl => Some((64, 65)),
            Medium::Ethernet
            | Medium::Docsis
            | Medium::Gpon
            | Medium::Wifi
            | Medium::Cellular
            | Medium::Satellite
            | Medium::Host
            | Medium::Switch => None,
        }
    }

    fn called(name: &str) -> Option<Medium> {
        Medium::ALL
            .iter()
            .find(|(_, other)| *other == name)
            .map(|(medium, _)| *medium)
    }
}

impl LinkInfo {
    /// Reads `label`, `medium` and `rate_is_net` of a link's table; what it does not say is that of `forward`, the other direction.
    pub(super) fn read(section: &Section, forward: Option<&LinkInfo>) -> Result<LinkInfo, Error> {
        let label = section.find("label")?;
        let medium = section.find("medium")?;
        let net = section.find("rate_is_net")?.filter(|field| field.given);
        let own = LinkInfo {
            label: label.map(|field| field.text().map(str::to_owned)).transpose()?,
            medium: match medium {
                Some(field) => Medium::called(field.choice()?),
                None => None,
            },
            rate_is_net: net.as_ref().map(Field::flag).transpose()?,
        };
        let said = own.rate_is_net == Some(true);
        let info = forward.map_or(own.clone(), |forward| own.or(forward));
        let known = info.medium.is_some_and(|medium| medium.carried_share().is_some());
        match net.filter(|_| said && !known) {
            Some(field) => Err(field
                .fail("`rate_is_net` is for links with `medium = \"adsl\"` or `\"vdsl\"`, of whose rate a part carries no packets")),
            None => Ok(info),
        }
    }

    /// Whether its queue is in the host that sends over it: `medium = "host"`, or a link that only `attaches` a host and is no line of another
    /// kind, which a modem or an access point sends over.
    pub(super) fn is_interface(&self, attaches: bool) -> bool {
        match self.medium {
            Some(Medium::Host) => true,
            None | Some(Medium::Ethernet) => attaches,
            Some(_) => false,
        }
    }

    /// This, with what it does not say taken from `other`.
    fn or(self, other: &LinkInfo) -> LinkInfo {
        LinkInfo {
            label: self.label.or_else(|| other.label.clone()),
            medium: self.medium.or(other.medium),
            rate_is_net: self.rate_is_net.or(other.rate_is_net),
        }
    }
}
