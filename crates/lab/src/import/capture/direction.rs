//! The direction of a connection: on which side of the line its hosts are, that of the host that opened the first connection or the other.
//!
//! A connection leads from one side to the other: where one of its hosts is known, the other one is on the other side. Where neither is,
//! the link layer decides: only packets of one side come in by an interface, or from a station.
//! Where that says nothing, a connection counts as opened from the first side.

use super::counts::counted;
use crate::import::link_layer::{self, Station};
use crate::import::summary::Counted;
use rustc_hash::FxHashMap;

/// Where a packet was captured first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    pub(super) interface: u32,
    /// Stations that sent and received the frame.
    pub(super) stations: [Option<Station>; 2],
}

impl Passage {
    pub(super) fn of(link_type: i32, interface: u32, data: &[u8]) -> Passage {
        Passage {
            interface,
            stations: link_layer::stations(link_type, data),
        }
    }
}

/// Sides of hosts, stations and interfaces; `true` is the other side than that of the first that opened.
#[derive(Debug, Default)]
pub(super) struct Directions {
    hosts: FxHashMap<u32, bool>,
    /// Whether stations were seen on the first side, and on the other.
    stations: FxHashMap<Station, [bool; 2]>,
    /// Whether packets from the first side, and from the other, came in by interfaces.
    interfaces: FxHashMap<u32, [bool; 2]>,
    /// Pairs of hosts of one side that spoke with each other.
    same: Vec<[u32; 2]>,
    /// Whether there are more pairs than are kept.
    more_same: bool,
    /// Connections whose hosts nothing places on a side.
    guessed: u64,
}

impl Directions {
    /// Whether a connection between these hosts (which opened, which was asked) is opened from the other side; `None`: both are on one
    /// side. The first packet that was seen of it, and whether the host that opened sent it.
    pub(super) fn opened(&mut self, hosts: [u32; 2], passage: &Passage, by_opener: bool) -> Option<bool> {
        let [opener, answerer] = hosts;
        if opener == answerer {
            return Some(false);
        }
        let [sender, receiver] = match by_opener {
            true => hosts,
            false => [answerer, opener],
        };
        let sent = self.hosts.get(&sender).copied();
        let received = self.hosts.get(&receiver).copied();
        let side = match (sent, received) {
            (Some(one), Some(other)) if one == other => {
                let (pair, _) = pair(hosts);
                if !self.same.contains(&pair) {
                    match self.same.len() {
                        MOST_SAME => self.more_same = true,
                        _ => self.same.push(pair),
                    }
                }
                return None;
            }
            (Some(side), _) => side,
            (None, Some(other)) => !other,
            (None, None) => self.origin(passage).unwrap_or_else(|| {
                self.guessed += u64::from(!self.hosts.is_empty());
                !by_opener
            }),
        };
        // All hosts beyond so many share a number.
        for (host, side) in [(sender, side), (receiver, !side)] {
            if host < super::MOST_HOSTS {
                self.hosts.insert(host, side);
            }
        }
        Some(side == by_opener)
    }

    /// The first packet of one end of a connection, from this side.
    pub(super) fn passed(&mut self, side: bool, passage: &Passage) {
        for (station, side) in passage.stations.iter().zip([side, !side]) {
            if let Some(station) = station
                && (self.stations.len() < MOST_STATIONS || self.stations.contains_key(station))
            {
                self.stations.entry(*station).or_default()[usize::from(side)] = true;
            }
        }
        self.interfaces.entry(passage.interface).or_default()[usize::from(side)] = true;
    }

    /// Notes on directions; `connections` are those between hosts of one side.
    pub(super) fn notes(&self, connections: u64) -> impl Iterator<Item = Counted> {
        let guessed = (self.guessed > 0).then(|| {
            counted(
                self.guessed,
                "connection[s were| was] between hosts whose side nothing shows: taken as opened from the first one's side. If some were not, \
                 rates and queues mix both directions: capture with link-layer headers, or on an interface for each side",
            )
        });
        guessed.into_iter().chain(self.same_side(connections))
    }

    fn same_side(&self, connections: u64) -> Option<Counted> {
        let mut pairs: Vec<String> = self
            .same
            .iter()
            .map(|[one, other]| format!("{one} and {other}"))
            .collect();
        if self.more_same {
            pairs.push(String::from("and others"));
        }
        (connections > 0).then(|| {
            counted(
                connections,
                format!(
                    "connection[s were| was] between hosts of one side (hosts {}): [they are|it is] replayed as opened from the first side, \
                     and count in no reported rate or queue. `--keep-addresses` names hosts; a filter leaves out what never crosses the line",
                    pairs.join(", "),
                ),
            )
        })
    }

    /// The side that a packet comes from, by how it was captured.
    fn origin(&self, passage: &Passage) -> Option<bool> {
        let [sent, received] = passage.stations.map(|station| self.station(station));
        sent.or(received.map(|side| !side))
            .or_else(|| one_side(self.interfaces.get(&passage.interface)?))
    }

    fn station(&self, station: Option<Station>) -> Option<bool> {
        one_side(self.stations.get(&station?)?)
    }
}

/// The side that something was seen on, if it is only one.
fn one_side(seen: &[bool; 2]) -> Option<bool> {
    (seen[0] != seen[1]).then_some(seen[1])
}

/// Two hosts, the smaller number first, and whether they changed places.
pub(super) fn pair([one, other]: [u32; 2]) -> ([u32; 2], bool) {
    ([one.min(other), one.max(other)], one > other)
}

/// Two values of a pair of hosts that changed places, or did not.
pub(super) fn in_order(two: [u64; 2], turned: bool) -> [u64; 2] {
    match turned {
        true => [two[1], two[0]],
        false => two,
    }
}

/// Stations that are remembered.
const MOST_STATIONS: usize = 1 << 16;

/// Pairs of hosts of one side that a note names.
const MOST_SAME: usize = 4;

#[cfg(test)]
mod tests {
    use super::{Directions, Passage};

    fn passage(interface: u32, stations: [u8; 2]) -> Passage {
        Passage {
            interface,
            stations: stations.map(|last| (last > 0).then_some([2, 0, 0, 0, 0, last])),
        }
    }

    /// Host 0 opened to host 1, and both were seen.
    fn begun(there: &Passage, back: &Passage) -> Directions {
        let mut directions = Directions::default();
        assert_eq!(directions.opened([0, 1], there, true), Some(false));
        directions.passed(false, there);
        directions.passed(true, back);
        directions
    }

    #[test]
    fn hosts_tell_hosts() {
        let nothing = passage(0, [0, 0]);
        let mut directions = begun(&nothing, &nothing);
        assert_eq!(directions.opened([1, 2], &nothing, true), Some(true));
        assert_eq!(directions.opened([2, 1], &nothing, true), Some(false));
        // Of a connection that was open before, the first packet may be the other end's.
        assert_eq!(directions.opened([3, 0], &nothing, false), Some(true));
        assert_eq!(
            directions.opened([2, 0], &nothing, true),
            None,
            "both are on one side"
        );
        assert_eq!(directions.opened([0, 2], &nothing, true), None);
        let note = directions.notes(2).next().expect("a note").what;
        assert!(
            note.starts_with("connections were between hosts of one side (hosts 0 and 2): "),
            "{note}"
        );
        assert_eq!(
            directions.opened([8, 9], &nothing, true),
            Some(false),
            "nothing shows it"
        );
        let guessed = directions.notes(0).next().expect("a note");
        assert!(
            guessed.what.contains("whose side nothing shows"),
            "{}",
            guessed.what
        );
    }

    #[test]
    fn stations_and_interfaces_tell_hosts_that_are_not_known() {
        // At a host or in its network: all that is beyond comes from the gateway, 9.
        let mut directions = begun(&passage(0, [1, 9]), &passage(0, [9, 1]));
        assert_eq!(directions.opened([10, 11], &passage(0, [9, 2]), true), Some(true));
        assert_eq!(
            directions.opened([12, 13], &passage(0, [3, 9]), true),
            Some(false)
        );
        assert_eq!(
            directions.opened([14, 15], &passage(0, [9, 4]), false),
            Some(false)
        );
        // At a router: packets of each side come in by an interface of their own.
        let mut directions = begun(&passage(1, [0, 0]), &passage(2, [0, 0]));
        assert_eq!(directions.opened([10, 11], &passage(2, [0, 0]), true), Some(true));
        assert_eq!(
            directions.opened([12, 13], &passage(1, [0, 0]), true),
            Some(false)
        );
        // A station of both sides shows nothing.
        let mut directions = begun(&passage(0, [5, 5]), &passage(0, [5, 5]));
        assert_eq!(
            directions.opened([10, 11], &passage(0, [5, 5]), true),
            Some(false)
        );
    }
}
