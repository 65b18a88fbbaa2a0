//! What travels: `Packet` (72 bytes, `Copy`) and the `Segment` inside it.
//!
//! TCP needs lengths, not contents, and queues need headers, so one concrete type serves the simulator and real
//! packets. `buf` names a slot in the driver's pool and is [`BufId::NONE`] in the simulator. Sizes are asserted below.

mod accecn;

pub use accecn::AccEcnOption;

use crate::flow::FlowId;
use crate::seq::SeqNumber;
use crate::time::Instant;

/// A segment on its way, with what a queue wants to know about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When the link accepted it; set by the link.
    pub enqueued_at: Instant,
    /// Which flow and direction.
    pub flow: FlowId,
    /// Where its bytes are kept.
    pub buf: BufId,
    /// Its headers.
    pub segment: Segment,
}

/// A slot of the driver's buffer pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufId(pub u32);

impl BufId {
    /// No bytes are kept: the simulator's packets.
    pub const NONE: BufId = BufId(u32::MAX);
}

/// Headers of one packet, host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segment {
    /// First sequence number. TFRC and datagrams: packet number.
    pub seq: SeqNumber,
    /// Acknowledgment number, valid with [`Flags::ACK`].
    pub ack: SeqNumber,
    /// TSval with [`Flags::TIMESTAMPS`]; otherwise left edge of the fourth SACK block. TFRC: time sent.
    pub tsval: u32,
    /// TSecr with [`Flags::TIMESTAMPS`]; otherwise right edge of the fourth SACK block. TFRC feedback: the time echoed.
    pub tsecr: u32,
    /// Three SACK blocks, or on a SYN: word 0 = MSS | window scale << 16 | cookie length << 24 |
    /// experimental kind << 31, words 1..5 = cookie; what they leave free may hold an [`AccEcnOption`]. TFRC: what [`crate::tfrc`] says.
    pub options: [u32; 6],
    /// Payload length in bytes; above 65,535 only in the simulator.
    pub payload: u32,
    /// Window field as on the wire (unscaled).
    pub window: u16,
    /// Urgent pointer, valid with [`Flags::URG`]; without it the super-packet option of IPv6, or 0
    /// ([`crate::superpacket::Layout::C`]).
    pub urgent: u16,
    /// IPv4 identification (super-packet mark); with IPv6 the identifier of the super-packet option.
    pub ip_id: u16,
    /// TCP control bits and which options are present.
    pub flags: Flags,
    /// Traffic class: DSCP << 2 | ECN.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// IP and transport header bytes, options included.
    pub overhead: u8,
    /// Kind in the low four bits, number of SACK blocks in the next three; the highest says that there is an
    /// [`AccEcnOption`].
    pub kind_sack: u8,
}

impl AsRef<Segment> for Segment {
    fn as_ref(&self) -> &Segment {
        self
    }
}

impl AsMut<Segment> for Segment {
    fn as_mut(&mut self) -> &mut Segment {
        self
    }
}

const _: () = assert!(size_of::<Packet>() == 72);
const _: () = assert!(size_of::<Segment>() == 56);

/// Nine TCP control bits and seven presence bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(1);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(1 << 1);
    /// Reset.
    pub const RST: Flags = Flags(1 << 2);
    /// Push.
    pub const PSH: Flags = Flags(1 << 3);
    /// The acknowledgment number is valid.
    pub const ACK: Flags = Flags(1 << 4);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(1 << 5);
    /// ECN echo (RFC 3168).
    pub const ECE: Flags = Flags(1 << 6);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Flags = Flags(1 << 7);
    /// Accurate ECN, formerly the nonce sum.
    pub const AE: Flags = Flags(1 << 8);
    /// Timestamps option present (RFC 7323).
    pub const TIMESTAMPS: Flags = Flags(1 << 9);
    /// MSS option present.
    pub const MSS: Flags = Flags(1 << 10);
    /// Window scale option present (RFC 7323).
    pub const SCALE: Flags = Flags(1 << 11);
    /// SACK-permitted option present (RFC 2018).
    pub const SACK_PERMITTED: Flags = Flags(1 << 12);
    /// Fast Open cookie option present (RFC 7413), perhaps empty.
    pub const COOKIE: Flags = Flags(1 << 13);
    /// Do not fragment.
    pub const DF: Flags = Flags(1 << 14);
    /// Damaged on the way: the receiver's checksum fails.
    pub const CORRUPT: Flags = Flags(1 << 15);
    /// The nine bits that are control bits on the wire.
    pub const CONTROL: Flags = Flags(0x1ff);

    /// Whether every bit of `other` is set.
    #[inline]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets of bits.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// These bits but for `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

impl core::fmt::Debug for Flags {
    /// As packetdrill and tcpdump write control bits, then `+` and the option bits: `S.+mss,sackOK`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        const CONTROL: [(Flags, &str); 9] = [
            (Flags::FIN, "F"),
            (Flags::SYN, "S"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::ACK, "."),
            (Flags::URG, "U"),
            (Flags::ECE, "E"),
            (Flags::CWR, "W"),
            (Flags::AE, "A"),
        ];
        const PRESENT: [(Flags, &str); 7] = [
            (Flags::TIMESTAMPS, "+ts"),
            (Flags::MSS, "+mss"),
            (Flags::SCALE, "+wscale"),
            (Flags::SACK_PERMITTED, "+sackOK"),
            (Flags::COOKIE, "+fo"),
            (Flags::DF, "+df"),
            (Flags::CORRUPT, "+corrupt"),
        ];
        for (bit, letter) in CONTROL.into_iter().chain(PRESENT) {
            if self.contains(bit) {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

/// What a packet is to the endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A TCP segment.
    Tcp = 0,
    /// A datagram without feedback: constant bit rate, ping.
    Datagram = 1,
    /// TFRC data (RFC 5348).
    TfrcData = 2,
    /// TFRC feedback.
    TfrcFeedback = 3,
    /// An ICMP message.
    Icmp = 4,
}

/// ECN field of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand ECN.
    NotEct = 0,
    /// ECN-capable, codepoint 1 (L4S).
    Ect1 = 1,
    /// ECN-capable, codepoint 0.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Segment {
    /// Header bytes of IPv4 and TCP without options.
    pub const IPV4_TCP_HEADER: u8 = 40;

    /// Length at layer 3 in bytes: what links serialise and queues count.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.payload.saturating_add(self.overhead as u32)
    }

    /// Whether nothing would be on the wire. Never true for a segment made by this crate.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sequence space it takes: payload, SYN and FIN.
    #[inline]
    pub const fn sequence_len(&self) -> u32 {
        self.payload + (self.flags.0 & 1) as u32 + ((self.flags.0 >> 1) & 1) as u32
    }

    /// What it is to the endpoints.
    #[inline]
    pub const fn kind(&self) -> Kind {
        match self.kind_sack & 15 {
            0 => Kind::Tcp,
            1 => Kind::Datagram,
            2 => Kind::TfrcData,
            3 => Kind::TfrcFeedback,
            _ => Kind::Icmp,
        }
    }

    /// Sets what it is to the endpoints.
    #[inline]
    pub const fn set_kind(&mut self, kind: Kind) {
        self.kind_sack = self.kind_sack & 0xf0 | kind as u8;
    }

    /// Number of SACK blocks: at most 3 with timestamps, 4 without.
    #[inline]
    pub const fn sack_blocks(&self) -> usize {
        (self.kind_sack >> 4 & 7) as usize
    }

    /// Sets the number of SACK blocks in `options`.
    #[inline]
    pub(crate) const fn set_sack_blocks(&mut self, count: u8) {
        self.kind_sack = self.kind_sack & 0x8f | count << 4;
    }

    /// SACK block `index`: left edge and right edge (one past the last byte).
    #[inline]
    pub const fn sack_block(&self, index: usize) -> (SeqNumber, SeqNumber) {
        if index < 3 {
            (
                SeqNumber(self.options[2 * index]),
                SeqNumber(self.options[2 * index + 1]),
            )
        } else {
            (SeqNumber(self.tsval), SeqNumber(self.tsecr))
        }
    }

    /// Appends a SACK block if there is room (3 with timestamps, 4 without). Does not touch `overhead`.
    #[inline]
    pub const fn push_sack_block(&mut self, left: SeqNumber, right: SeqNumber) -> bool {
        let count = self.sack_blocks();
        if count < 3 {
            self.options[2 * count] = left.0;
            self.options[2 * count + 1] = right.0;
        } else if count == 3 && !self.flags.contains(Flags::TIMESTAMPS) {
            self.tsval = left.0;
            self.tsecr = right.0;
        } else {
            return false;
        }
        self.kind_sack += 16;
        true
    }

    /// Takes the last of at least one SACK blocks out. Does not touch `overhead`.
    pub(crate) const fn pop_sack_block(&mut self) {
        let last = self.sack_blocks() - 1;
        if last < 3 {
            (self.options[2 * last], self.options[2 * last + 1]) = (0, 0);
        } else {
            (self.tsval, self.tsecr) = (0, 0);
        }
        self.kind_sack -= 16;
    }

    /// MSS option of a SYN, if present.
    #[inline]
    pub const fn mss(&self) -> Option<u16> {
        if self.flags.contains(Flags::MSS) {
            Some(self.options[0] as u16)
        } else {
            None
        }
    }

    /// Window scale option of a SYN, if present, as sent (may exceed 14).
    #[inline]
    pub const fn window_scale(&self) -> Option<u8> {
        if self.flags.contains(Flags::SCALE) {
            Some((self.options[0] >> 16) as u8)
        } else {
            None
        }
    }

    /// ECN field.
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        match self.tos & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Sets the ECN field.
    #[inline]
    pub const fn set_ecn(&mut self, ecn: Ecn) {
        self.tos = self.tos & !3 | ecn as u8;
    }

    /// Whether a router may mark it instead of dropping it.
    #[inline]
    pub const fn ecn_capable(&self) -> bool {
        self.tos & 3 != 0
    }

    /// Whether it carries payload (data packets are what throughput counts).
    #[inline]
    pub const fn is_data(&self) -> bool {
        self.payload > 0
    }
}
