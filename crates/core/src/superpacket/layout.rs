//! Where a mark stands in the headers.
//!
//! | layout | traffic class | identification or option |
//! | --- | --- | --- |
//! | A | `first` 1, `last` 1, length 6 (all eight bits) | reserved 4, identifier 12 |
//! | B | DSCP = codepoint, ECN untouched | `first` 1, `last` 1, length 6, identifier 8 |
//! | C | untouched | hop-by-hop option 0x1E: version 2, `first` 1, `last` 1, reserved 4, length 8, identifier 16 |
//!
//! A [`Segment`] has no field for layout C's option. It keeps the identifier in `ip_id`, which IPv6 does not have, and the
//! other sixteen bits in `urgent` when TCP leaves it free; the version bits 01 say that the option is there. `wire` writes and reads
//! it so.
//!
//! **Source.** Schinazi 2014, 3.2 (A); docs/design/super-packets.md#layout-a to #layout-c; RFC 2474 (codepoints), RFC 6864 (identification), RFC 4727
//! (option type), RFC 8200 4.2.
//! **Deviations.** The report does not say how it recognises regular packets: here length 0 or 1. A packet with
//! URG set, or with an Accurate ECN option beside three SACK blocks, cannot carry layout C.

use super::{Mark, MarkError, Role};
use crate::packet::{Flags, Segment};
use crate::parameter;
use crate::parameter::{Parameter, Values};
use serde::Serialize;

/// Where a mark stands in the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Layout {
    /// The report's: type of service and identification of IPv4. Ordinary traffic decodes as super-packets, ECN and
    /// differentiated services break it: for simulations and closed testbeds.
    A,
    /// IPv4 in one domain: a local codepoint says that the identification carries the mark.
    B {
        /// The codepoint, 1 to 63.
        dscp: u8,
    },
    /// IPv6 in one domain: a hop-by-hop option.
    C,
}

const FIRST: u8 = 0x80;
const LAST: u8 = 0x40;
const LENGTH: u8 = 0x3f;
const OPTION_VERSION: u16 = 0x4000;
const OPTION_VERSION_MASK: u16 = 0xc000;
const OPTION_FIRST: u16 = 0x2000;
const OPTION_LAST: u16 = 0x1000;
/// Layout C: bytes that the hop-by-hop header adds.
const OPTION_BYTES: u8 = 8;

impl Layout {
    /// Layout B with its default codepoint, 000011: pool 2, local use (RFC 2474 6).
    pub const LOCAL: Layout = Layout::B { dscp: 3 };

    /// Names in scenario files.
    pub const NAMES: &'static [&'static str] = &["A", "B", "C"];

    /// Parameter `layout` of mechanisms that read or write marks; see [`Layout::from_values`].
    pub const PARAMETER: Parameter = parameter!("layout": Choice(Layout::NAMES) = "B",
        "Where marks stand in the headers: A: type of service and identification (the report's), B: a codepoint and the identification, C: an IPv6 option (ours)");

    /// Parameter `codepoint` of mechanisms that read or write marks; see [`Layout::from_values`].
    pub const CODEPOINT: Parameter = parameter!("codepoint": Integer(1, 63) = 3,
        "Layout B: the DSCP that says that the identification carries a mark (000011: pool 2, local use, RFC 2474)");

    /// From the parameters [`Layout::PARAMETER`] and [`Layout::CODEPOINT`].
    pub fn from_values(values: &Values) -> Layout {
        let dscp = values.integer("codepoint").unwrap_or(3) as u8;
        Layout::from_name(values.choice("layout"), dscp).unwrap_or(Layout::LOCAL)
    }

    /// The layout called `name`; `dscp` is for layout B.
    pub fn from_name(name: &str, dscp: u8) -> Option<Layout> {
        Some(match name {
            "A" => Layout::A,
            "B" => Layout::B { dscp: dscp & 63 },
            "C" => Layout::C,
            _ => return None,
        })
    }

    /// The name in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::A => "A",
            Layout::B { .. } => "B",
            Layout::C => "C",
        }
    }

    /// The longest super-packet it can announce, in packets.
    pub const fn max_length(self) -> u8 {
        match self {
            Layout::A | Layout::B { .. } => 63,
            Layout::C => 255,
        }
    }

    /// The highest identifier; the lowest is 0.
    pub const fn max_id(self) -> u16 {
        match self {
            Layout::A => 0xfff,
            Layout::B { .. } => 0xff,
            Layout::C => 0xffff,
        }
    }

    /// Bytes that a mark adds to the headers.
    pub const fn overhead(self) -> u8 {
        match self {
            Layout::A | Layout::B { .. } => 0,
            Layout::C => OPTION_BYTES,
        }
    }

    /// What the headers say. Total: every header is some mark, a length of 0 or 1 is a regular packet.
    #[inline]
    pub const fn decode(self, segment: &Segment) -> Mark {
        let (first, last, length, id) = match self {
            Layout::A => (
                segment.tos & FIRST != 0,
                segment.tos & LAST != 0,
                segment.tos & LENGTH,
                segment.ip_id & 0xfff,
            ),
            Layout::B { dscp } => {
                // RFC 6864 4.1: the identification of a packet that may be fragmented means something else.
                if segment.tos >> 2 != dscp || !segment.flags.contains(Flags::DF) {
                    return Mark::REGULAR;
                }
                let high = (segment.ip_id >> 8) as u8;
                (
                    high & FIRST != 0,
                    high & LAST != 0,
                    high & LENGTH,
                    segment.ip_id & 0xff,
                )
            }
            Layout::C => {
                if !Layout::has_option(segment) {
                    return Mark::REGULAR;
                }
                (
                    segment.urgent & OPTION_FIRST != 0,
                    segment.urgent & OPTION_LAST != 0,
                    segment.urgent as u8,
                    segment.ip_id,
                )
            }
        };
        if length < 2 {
            return Mark::REGULAR;
        }
        Mark {
            role: if first { Role::First } else { Role::Follower },
            length,
            last,
            id,
        }
    }

    /// Writes `mark`; a regular mark strips. Nothing changes on an error.
    ///
    /// # Errors
    /// The layout cannot say it, or the packet has no place for it.
    pub const fn mark(self, segment: &mut Segment, mark: Mark) -> Result<(), MarkError> {
        if mark.is_regular() {
            self.strip(segment);
            return Ok(());
        }
        if mark.length < 2 || mark.length > self.max_length() {
            return Err(MarkError::Length);
        }
        if mark.id > self.max_id() {
            return Err(MarkError::Identifier);
        }
        let first = matches!(mark.role, Role::First);
        let bits = (if first { FIRST } else { 0 }) | (if mark.last { LAST } else { 0 });
        match self {
            Layout::A | Layout::B { .. } if !segment.flags.contains(Flags::DF) => {
                return Err(MarkError::Fragmentable);
            }
            Layout::A => {
                segment.tos = bits | mark.length;
                segment.ip_id = mark.id;
            }
            Layout::B { dscp } => {
                segment.tos = dscp << 2 | segment.tos & 3;
                segment.ip_id = ((bits | mark.length) as u16) << 8 | mark.id;
            }
            Layout::C => {
                if segment.urgent_in_use() {
                    return Err(MarkError::Urgent);
                }
                if !Layout::has_option(segment) {
                    if segment.overhead > u8::MAX - OPTION_BYTES {
                        return Err(MarkError::Room);
                    }
                    segment.overhead += OPTION_BYTES;
                }
                segment.urgent = OPTION_VERSION | (bits as u16) << 6 | mark.length as u16;
                segment.ip_id = mark.id;
            }
        }
        Ok(())
    }

    /// Takes the mark out, as an edge router does outbound: DSCP and identification zero, or the option gone. A packet that
    /// [`decode`](Layout::decode)s as regular is left alone, but for layout C, whose option goes whatever it says.
    pub const fn strip(self, segment: &mut Segment) {
        match self {
            Layout::A => {
                if !self.decode(segment).is_regular() {
                    segment.tos = 0;
                    segment.ip_id = 0;
                }
            }
            Layout::B { .. } => {
                if !self.decode(segment).is_regular() {
                    segment.tos &= 3;
                    segment.ip_id = 0;
                }
            }
            Layout::C => {
                if Layout::has_option(segment) {
                    segment.urgent = 0;
                    segment.ip_id = 0;
                    segment.overhead = segment.overhead.saturating_sub(OPTION_BYTES);
                }
            }
        }
    }

    /// Whether the segment stands for an IPv6 packet with the option of layout C.
    #[inline]
    pub(crate) const fn has_option(segment: &Segment) -> bool {
        !segment.urgent_in_use() && segment.urgent & OPTION_VERSION_MASK == OPTION_VERSION
    }
}
