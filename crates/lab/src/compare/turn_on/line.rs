//! What is known of kinds of lines: whose device holds the queue, what it is called, and what packets carry there.

use super::super::place::Place;
use crate::result::Variant;
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

    /// What of the line's rate carries packets.
    pub(super) fn carried(&self, rate: Rate) -> Rate {
        match self.ptm {
            true => Rate::from_bps(rate.bps() / 65 * 64),
            false => rate,
        }
    }

    /// What a shaper at `rate` sends, as a link of the simulation has it: cells are counted on average.
    pub(super) fn as_a_link(&self, rate: Rate) -> Shaped {
        match self.atm {
            // The last cell of a packet is half empty on average; of 53 bytes of a cell 48 carry packets.
            true => Shaped {
                rate: Rate::from_bps(rate.bps() / 53 * 48),
                framing: self.overhead + 24,
            },
            false => Shaped {
                rate: self.carried(rate),
                framing: self.overhead,
            },
        }
    }

    /// Bytes of the line's rate that a packet of `bytes` at layer 3 is counted with. `mean`: where cells are counted on average, as a file
    /// of the router does.
    pub(super) fn counted(&self, bytes: u32, mean: bool) -> f64 {
        let bytes = (bytes + self.overhead).max(self.least);
        match (self.atm, self.ptm) {
            (true, _) if mean => f64::from(bytes + 24) * 53.0 / 48.0,
            (true, _) => f64::from(bytes.div_ceil(48) * 53),
            (false, true) => f64::from(bytes) * 65.0 / 64.0,
            (false, false) => f64::from(bytes),
        }
    }
}

/// The packets that filled a line in a simulation, as two kinds of one size each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Carried {
    /// Those with payload, and their mean size at layer 3 (bytes).
    pub(super) data: (f64, f64),
    /// Those without: acknowledgments and handshakes.
    pub(super) empty: f64,
}

impl Carried {
    /// What filled the links of `place` in `variant`; `None`: nothing did.
    pub(super) fn at(place: &Place, variant: &Variant) -> Option<Carried> {
        let (mut data, mut bytes, mut empty) = (0.0, 0.0, 0.0);
        for link in place.links.iter().filter_map(|&link| variant.links.get(link)) {
            data += link.data_units as f64;
            empty += link.units.saturating_sub(link.data_units) as f64;
            bytes += link.bytes as f64;
        }
        let links = place.links.iter().filter_map(|&link| variant.links.get(link));
        let used = links.map(|link| link.utilisation).fold(0.0, f64::max);
        if data + empty == 0.0 || used < FULL {
            return None;
        }
        let payload = (bytes - empty * f64::from(EMPTY)).max(0.0);
        let size = if data > 0.0 { payload / data } else { 0.0 };
        Some(Carried {
            data: (data, size),
            empty,
        })
    }

    /// Whether more of the bytes were those of packets without payload.
    pub(super) fn is_mostly_empty(&self) -> bool {
        self.empty * f64::from(EMPTY) > self.data.0 * self.data.1
    }

    /// Bytes of all of them, where a packet of so many bytes at layer 3 takes what `of` says.
    pub(super) fn bytes(&self, of: impl Fn(f64) -> f64) -> f64 {
        let (data, size) = self.data;
        data * of(size) + self.empty * of(f64::from(EMPTY))
    }

    /// How many there were.
    pub(super) fn packets(&self) -> f64 {
        self.data.0 + self.empty
    }
}

/// A line that is busy for this share of the time or more is full: what crosses it is what a shaper has to carry. (How much of a line is *needed*,
/// which decides whether its margin is missed, is another measure with a bound of its own: `commanded::MOST_NEEDED`.)
const FULL: f64 = 0.85;

/// Bytes of a packet without payload at layer 3: IPv4, TCP and timestamps.
const EMPTY: u32 = 52;

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

/// A rate as `tc` reads it: `9500kbit`; a part of a kilobit is left out.
pub(super) fn tc_rate(rate: Rate) -> String {
    match rate.bps() {
        bps if bps >= 1_000_000 && bps % 1_000_000 == 0 => format!("{}mbit", bps / 1_000_000),
        bps if bps >= 1000 => format!("{}kbit", bps / 1000),
        bps => format!("{}bit", bps.max(8)),
    }
}
