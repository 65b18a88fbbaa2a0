//! What people call a link, and what kind of line it is. Nothing in a run depends on it: it is for answers that name the
//! place and say how to turn something on there.

use super::error::Error;
use super::read::Section;

/// What a scenario says of one direction of a link beside how it behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkInfo {
    /// What people call it: "the cable line". `None`: it has only its name.
    pub label: Option<String>,
    /// What kind of line it is; `None`: unknown.
    pub medium: Option<Medium>,
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

    fn called(name: &str) -> Option<Medium> {
        Medium::ALL
            .iter()
            .find(|(_, other)| *other == name)
            .map(|(medium, _)| *medium)
    }
}

impl LinkInfo {
    /// Reads `label` and `medium` of a link's table.
    pub(super) fn read(section: &Section) -> Result<LinkInfo, Error> {
        let label = section.find("label")?;
        let medium = section.find("medium")?;
        Ok(LinkInfo {
            label: label.map(|field| field.text().map(str::to_owned)).transpose()?,
            medium: match medium {
                Some(field) => Medium::called(field.choice()?),
                None => None,
            },
        })
    }

    /// This, with what it does not say taken from `other`.
    pub(super) fn or(self, other: &LinkInfo) -> LinkInfo {
        LinkInfo {
            label: self.label.or_else(|| other.label.clone()),
            medium: self.medium.or(other.medium),
        }
    }
}
