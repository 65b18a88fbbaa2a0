//! What is known of kinds of lines: whose device holds the queue, what it is called, and what packets carry there.

use super::carried::Carried;
use crate::scenario::Medium;
use fleetfoot_core::units::Rate;

/// A kind of line whose queue stands in a device nobody but the provider can log in to.
pub(super) struct Access {
    /// The device at the user's end.
    pub modem: &'static str,
    /// The provider's device at the other end.
    pub provider: &'static str,
    /// Whether its rate changes from moment to moment.
    pub variable: bool,
}

/// `None`: the queue is at a port of the device itself, or in a radio.
pub(super) fn access(medium: Medium) -> Option<Access> {
    let (modem, provider, variable) = match medium {
        Medium::Docsis => ("the cable modem", "the provider's head end (CMTS)", false),
        Medium::Adsl | Medium::Vdsl => ("the DSL modem", "the provider's DSLAM", false),
        Medium::Gpon => (
            "the fibre terminal (ONT)",
            "the provider's line terminal (OLT)",
            false,
        ),
        Medium::Satellite => ("the satellite terminal", "the provider's gateway", false),
        Medium::Cellular => ("the mobile modem", "the base station", true),
        Medium::Ethernet | Medium::Wifi | Medium::Host | Medium::Switch => return None,
    };
    Some(Access {
        modem,
        provider,
        variable,
    })
}

/// Whether the other end of a network with such a line is usually not the user's: a line to a provider, or a radio by which users reach one.
pub(super) fn leads_to_others(medium: Medium) -> bool {
    medium == Medium::Wifi || access(medium).is_some()
}

/// What a line adds to a packet, as `tc` takes it.
pub(super) struct Framing {
    /// Keyword or keywords of cake.
    pub cake: String,
    /// Bytes beyond layer 3.
    pub overhead: u32,
    /// Least bytes that a packet takes.
    pub least: u32,
    /// Whether packets travel in ATM cells.
    pub atm: bool,
    /// Whether 64 of 65 bytes carry packets (PTM), which `stab` does not know.
    pub ptm: bool,
    /// Where the line is DSL with PPPoE: keyword of cake, and bytes beyond layer 3, of the line without PPPoE.
    pub without_pppoe: Option<(&'static str, u32)>,
    /// Whether PPPoE, if the line has it, is among the bytes.
    pub with_pppoe: bool,
}

/// Bytes of an Ethernet header, which Linux counts at a port of Ethernet (tc-stab(8)).
pub(super) const ETHERNET: i64 = 14;

impl Framing {
    /// What the line adds to the header that is counted already.
    pub(super) fn beyond_ethernet(&self) -> i64 {
        i64::from(self.overhead) - ETHERNET
    }

    /// The words of cake with another number of bytes beyond layer 3; `overhead` behind a keyword takes the place of the keyword's own.
    pub(super) fn with_overhead(&self, bytes: i64) -> String {
        let own = format!("overhead {}", self.overhead);
        match self.cake.contains(&own) {
            true => self.cake.replace(&own, &format!("overhead {bytes}")),
            false => format!("{} overhead {bytes}", self.cake),
        }
    }

    /// What of the line's rate carries packets.
    pub(super) fn carried(&self, rate: Rate) -> Rate {
        match self.ptm {
            true => Rate::from_bps(rate.bps() / 65 * 64),
            false => rate,
        }
    }

    /// The line's own rate, of which `net` carries packets and what the line adds to them.
    pub(super) fn of_line(&self, net: Rate) -> Rate {
        let medium = match (self.atm, self.ptm) {
            (true, _) => Some(Medium::Adsl),
            (false, true) => Some(Medium::Vdsl),
            (false, false) => None,
        };
        let share = medium.and_then(Medium::carried_share);
        share.map_or(net, |(carried, whole)| {
            Rate::from_bps((u128::from(net.bps()) * u128::from(whole) / u128::from(carried)) as u64)
        })
    }

    /// What a shaper at `rate` sends, as a link of the simulation has it, which adds the same bytes to every packet: of cells, those that the packets
    /// which crossed the line (`carried`) take on average; where nothing did, those of a packet of `full` bytes. `mean`: where the shaper itself
    /// counts cells on average.
    pub(super) fn as_a_link(&self, rate: Rate, mean: bool, carried: Option<&Carried>, full: u32) -> Shaped {
        if !self.atm {
            return Shaped {
                rate: self.carried(rate),
                framing: self.overhead,
            };
        }
        let added = |bytes: f64| self.cells(bytes.round() as u32) - bytes;
        let added = match carried {
            _ if mean => f64::from(self.overhead + HALF_A_CELL),
            Some(carried) => carried.bytes(added) / carried.packets(),
            None => added(f64::from(full)),
        };
        Shaped {
            // Of 53 bytes of a cell 48 carry packets.
            rate: Rate::from_bps(rate.bps() / 53 * 48),
            framing: added.round() as u32,
        }
    }

    /// Bytes in cells, without their headers, of a packet of `bytes` at layer 3: the last cell is filled up.
    fn cells(&self, bytes: u32) -> f64 {
        f64::from((bytes + self.overhead).max(self.least).div_ceil(48) * 48)
    }

    /// Bytes of the line's rate that a packet of `bytes` at layer 3 is counted with. `mean`: where cells are counted on average, as a file
    /// of the router does.
    pub(super) fn counted(&self, bytes: u32, mean: bool) -> f64 {
        let whole = (bytes + self.overhead).max(self.least);
        match (self.atm, self.ptm) {
            (true, _) if mean => f64::from(whole + HALF_A_CELL) * 53.0 / 48.0,
            (true, _) => self.cells(bytes) * 53.0 / 48.0,
            (false, true) => f64::from(whole) * 65.0 / 64.0,
            (false, false) => f64::from(whole),
        }
    }
}

/// What the last cell of a packet lacks on average (bytes), where packets have all sizes.
const HALF_A_CELL: u32 = 24;

/// What a shaper sends into a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Shaped {
    /// The rate at which it sends packets with what it counts beside them.
    pub(in super::super) rate: Rate,
    /// Bytes that it counts with each packet.
    pub(in super::super) framing: u32,
}

/// What a link of this kind adds, or what the scenario says (`described`) where that is more: a tunnel, for example.
pub(super) fn framing(medium: Option<Medium>, described: u32) -> Framing {
    let usual = usual(medium, described);
    if described <= usual.overhead {
        return usual;
    }
    let cells = match (usual.atm, usual.ptm) {
        (true, _) => "atm",
        (false, true) => "ptm",
        (false, false) => "noatm",
    };
    let least = match usual.least {
        0 => String::new(),
        least => format!(" mpu {least}"),
    };
    Framing {
        cake: format!("{cells} overhead {described}{least}"),
        overhead: described,
        without_pppoe: None,
        ..usual
    }
}

/// Numbers of tc-cake(8). Of DSL the framing with PPPoE is taken unless the scenario's `framing` is that of a line without:
/// a few bytes too many cost less than one per cent, a few too few bring the modem's queue back.
fn usual(medium: Option<Medium>, described: u32) -> Framing {
    let of = |cake: &str, overhead, least| Framing {
        cake: cake.to_owned(),
        overhead,
        least,
        atm: false,
        ptm: false,
        without_pppoe: None,
        with_pppoe: false,
    };
    let without_pppoe = |bytes: u32| described > 0 && described <= bytes;
    match medium {
        Some(Medium::Docsis) => of("docsis", 18, 64),
        Some(Medium::Vdsl) if without_pppoe(22) => Framing {
            ptm: true,
            ..of("bridged-ptm", 22, 0)
        },
        Some(Medium::Vdsl) => Framing {
            ptm: true,
            without_pppoe: Some(("bridged-ptm", 22)),
            with_pppoe: true,
            ..of("pppoe-ptm", 30, 0)
        },
        Some(Medium::Adsl) if without_pppoe(32) => Framing {
            atm: true,
            ..of("bridged-llcsnap", 32, 0)
        },
        Some(Medium::Adsl) => Framing {
            atm: true,
            without_pppoe: Some(("bridged-llcsnap", 32)),
            with_pppoe: true,
            ..of("pppoe-llcsnap", 40, 0)
        },
        None if described > 0 => of(&format!("overhead {described}"), described, 0),
        Some(
            Medium::Gpon
            | Medium::Satellite
            | Medium::Cellular
            | Medium::Ethernet
            | Medium::Wifi
            | Medium::Host
            | Medium::Switch,
        )
        | None => of("ethernet", 38, 84),
    }
}

/// Whether a network port runs at this rate by itself: the speeds of Ethernet.
pub(super) fn is_port_rate(rate: Rate) -> bool {
    const MBIT: [u64; 12] = [
        10, 100, 1000, 2500, 5000, 10_000, 25_000, 40_000, 50_000, 100_000, 200_000, 400_000,
    ];
    MBIT.iter().any(|&mbit| rate.bps() == mbit * 1_000_000)
}

/// A rate that was computed, to the kilobit as the command has it.
pub(super) fn whole(rate: Rate) -> Rate {
    match rate.bps() {
        bps if bps >= 1000 => Rate::from_bps(bps / 1000 * 1000),
        _ => rate,
    }
}

/// A rate as `tc` reads it: `9500kbit`; a part of a kilobit is left out.
pub(super) fn tc_rate(rate: Rate) -> String {
    match rate.bps() {
        bps if bps >= 1_000_000 && bps % 1_000_000 == 0 => format!("{}mbit", bps / 1_000_000),
        bps if bps >= 1000 => format!("{}kbit", bps / 1000),
        bps => format!("{}bit", bps.max(8)),
    }
}
