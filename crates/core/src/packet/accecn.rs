//! Accurate ECN in a segment: the ACE field and the byte counters of the option (RFC 9768 3.2.2, 3.2.3).
//!
//! The counters stand in words of [`Segment::options`] that SACK blocks and cookies leave free, and, without timestamps, in
//! their words. Where fewer fields fit than the option had, its last ones are left out, as the wire format permits.
//!
//! **Source.** RFC 9768 3.2.2, 3.2.3.
//! **Deviations.** An option beside four SACK blocks, beside three with timestamps, or beside a cookie of more than eight bytes is
//! not kept: no stack sends one.

use super::{Ecn, Flags, Segment};

/// The counters of an Accurate ECN option, as they stand on the wire: the low 24 bits of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccEcnOption {
    counters: [u32; 3],
    len: u8,
    ect1_first: bool,
}

impl AccEcnOption {
    /// Most fields.
    pub const FIELDS: usize = 3;
    /// Modulus of a counter (`DIVOPT`, RFC 9768 A.1).
    pub const MODULUS: u32 = 1 << 24;

    /// The option with at most three counters in their order on the wire: with `ect1_first` bytes of ECT(1), CE and ECT(0) (order 1,
    /// kind 174), otherwise ECT(0), CE and ECT(1) (order 0, kind 172).
    pub fn new(ect1_first: bool, counters: &[u32]) -> AccEcnOption {
        let mut option = AccEcnOption {
            counters: [0; 3],
            len: 0,
            ect1_first,
        };
        for (place, counter) in option.counters.iter_mut().zip(counters) {
            *place = counter % AccEcnOption::MODULUS;
            option.len += 1;
        }
        option
    }

    /// Whether the bytes of ECT(1) come first.
    pub const fn ect1_first(&self) -> bool {
        self.ect1_first
    }

    /// The counters in their order on the wire.
    pub fn counters(&self) -> &[u32] {
        &self.counters[..usize::from(self.len)]
    }

    /// The counter of the bytes that came with this codepoint, if it is there.
    pub fn counter(&self, ecn: Ecn) -> Option<u32> {
        let place = match (ecn, self.ect1_first) {
            (Ecn::NotEct, _) => return None,
            (Ecn::Ce, _) => 1,
            (Ecn::Ect0, false) | (Ecn::Ect1, true) => 0,
            (Ecn::Ect0, true) | (Ecn::Ect1, false) => 2,
        };
        self.counters().get(place).copied()
    }

    /// Bytes in the header, padded to a multiple of four.
    pub const fn padded(fields: u8) -> u8 {
        (2 + 3 * fields).next_multiple_of(4)
    }
}

impl Segment {
    /// The ACE field: AE, CWR and ECE as a number of three bits.
    #[inline]
    pub const fn ace(&self) -> u8 {
        (self.flags.0 >> 6) as u8 & 7
    }

    /// Sets the ACE field.
    #[inline]
    pub const fn set_ace(&mut self, ace: u8) {
        self.flags.0 = self.flags.0 & !(7 << 6) | (ace as u16 & 7) << 6;
    }

    /// The Accurate ECN option, if there is one.
    pub fn accecn(&self) -> Option<AccEcnOption> {
        if self.kind_sack & PRESENT == 0 {
            return None;
        }
        let places = self.places();
        let words = [0, 1, 2].map(|index| places[index].map_or(0, |place| self.word_at(place)));
        let head = words[0] >> 24;
        let len = (head & 3) as usize;
        let counters = words.map(|word| word % AccEcnOption::MODULUS);
        Some(AccEcnOption::new(head & 4 != 0, &counters[..len]))
    }

    /// Puts the option into the segment, after its SACK blocks and cookie: as many of its fields as there is room for in the
    /// segment, which is what it returns; `None`: it is not kept. Does not touch `overhead`.
    pub fn set_accecn(&mut self, option: &AccEcnOption) -> Option<u8> {
        let places = self.places();
        let room = places.iter().flatten().count();
        if room == 0 {
            return None;
        }
        let len = usize::from(option.len).min(room);
        let head = (len as u32 | u32::from(option.ect1_first) << 2) << 24;
        self.kind_sack |= PRESENT;
        for (index, place) in places.iter().take(len.max(1)).enumerate() {
            let counter = if index < len { option.counters[index] } else { 0 };
            let head = if index == 0 { head } else { 0 };
            if let Some(place) = place {
                self.set_word(*place, head | counter);
            }
        }
        Some(len as u8)
    }

    /// Whether `urgent` holds something of TCP: the urgent pointer, or part of a counter.
    #[inline]
    pub const fn urgent_in_use(&self) -> bool {
        self.flags.contains(Flags::URG)
            || self.kind_sack & PRESENT != 0 && self.has_three_blocks_alone() && self.tsval >> 24 & 3 == 3
    }

    /// Whether the third counter can only be kept beside the second, in `urgent`.
    const fn has_three_blocks_alone(&self) -> bool {
        !self.flags.contains(Flags::SYN) && self.sack_blocks() == 3 && !self.flags.contains(Flags::TIMESTAMPS)
    }

    /// Where the first, second and third counter are kept.
    fn places(&self) -> [Option<Place>; 3] {
        let timestamps = self.flags.contains(Flags::TIMESTAMPS);
        let behind = |third| [Some(Place::Option(5)), Some(Place::Option(4)), third];
        if self.flags.contains(Flags::SYN) {
            // The cookie begins in word 1.
            let long = self.flags.contains(Flags::COOKIE) && self.options[0] >> 24 & 0x7f > 8;
            return if long {
                [None; 3]
            } else {
                behind(Some(Place::Option(3)))
            };
        }
        match self.sack_blocks() {
            0 | 1 => behind(Some(Place::Option(3))),
            2 => behind((!timestamps).then_some(Place::TsVal)),
            3 if !timestamps => {
                let third = (!self.flags.contains(Flags::URG)).then_some(Place::Urgent);
                [Some(Place::TsVal), Some(Place::TsEcr), third]
            }
            _ => [None; 3],
        }
    }

    fn word_at(&self, place: Place) -> u32 {
        match place {
            Place::Option(index) => self.options[index],
            Place::TsVal => self.tsval,
            Place::TsEcr => self.tsecr & 0x00ff_ffff,
            Place::Urgent => self.tsecr >> 24 << 16 | u32::from(self.urgent),
        }
    }

    fn set_word(&mut self, place: Place, word: u32) {
        match place {
            Place::Option(index) => self.options[index] = word,
            Place::TsVal => self.tsval = word,
            Place::TsEcr => self.tsecr = self.tsecr & 0xff00_0000 | word,
            Place::Urgent => {
                self.tsecr = self.tsecr & 0x00ff_ffff | word >> 16 << 24;
                self.urgent = word as u16;
            }
        }
    }
}

/// A place for a counter; the first one's upper byte holds how many there are, and their order.
#[derive(Clone, Copy)]
enum Place {
    /// A word of `options`.
    Option(usize),
    /// `tsval`.
    TsVal,
    /// The lower 24 bits of `tsecr`.
    TsEcr,
    /// The upper byte of `tsecr`, and `urgent`.
    Urgent,
}

/// The bit of `kind_sack` that says that there is an option.
pub(super) const PRESENT: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::AccEcnOption;
    use crate::packet::{Ecn, Flags, Segment};
    use crate::seq::SeqNumber;
    use crate::tcp::Cookie;

    const COUNTERS: [u32; 3] = [0x00ab_cdef, 0x0012_3456, 0x00fe_dcba];

    fn acknowledgment(blocks: u32, timestamps: bool) -> Segment {
        let mut segment = Segment {
            flags: Flags::ACK,
            ..Segment::default()
        };
        if timestamps {
            segment.flags = segment.flags.with(Flags::TIMESTAMPS);
            (segment.tsval, segment.tsecr) = (7, 9);
        }
        for block in 0..blocks {
            assert!(segment.push_sack_block(SeqNumber(1000 * block), SeqNumber(1000 * block + 500)));
        }
        segment
    }

    #[test]
    fn the_ace_field_is_three_control_bits() {
        let mut segment = acknowledgment(0, false);
        for ace in 0..8 {
            segment.set_ace(ace);
            assert_eq!(segment.ace(), ace);
            assert_eq!(segment.flags.contains(Flags::AE), ace & 4 != 0);
            assert_eq!(segment.flags.contains(Flags::CWR), ace & 2 != 0);
            assert_eq!(segment.flags.contains(Flags::ECE), ace & 1 != 0);
            assert!(segment.flags.contains(Flags::ACK));
        }
    }

    /// RFC 9768: AE-53, AE-54
    #[test]
    fn both_orders_name_their_fields() {
        let one = AccEcnOption::new(true, &[1, 2, 3]);
        let zero = AccEcnOption::new(false, &[1, 2, 3]);
        let of = |option: AccEcnOption| [Ecn::Ect1, Ecn::Ce, Ecn::Ect0].map(|ecn| option.counter(ecn));
        assert_eq!(of(one), [Some(1), Some(2), Some(3)]);
        assert_eq!(of(zero), [Some(3), Some(2), Some(1)]);
        assert_eq!(one.counter(Ecn::NotEct), None);
        let short = AccEcnOption::new(true, &[1, 2]);
        assert_eq!(of(short), [Some(1), Some(2), None]);
        assert_eq!(of(AccEcnOption::new(false, &[])), [None; 3]);
    }

    #[test]
    fn the_option_stands_beside_sack_blocks_and_timestamps() {
        for blocks in 0..=4 {
            for timestamps in [false, true] {
                if timestamps && blocks == 4 {
                    continue;
                }
                for ect1_first in [false, true] {
                    for len in 0..=3 {
                        let plain = acknowledgment(blocks, timestamps);
                        let mut segment = plain;
                        let option = AccEcnOption::new(ect1_first, &COUNTERS[..len]);
                        let room = match (blocks, timestamps) {
                            (4, _) | (3, true) => None,
                            (2, true) => Some(2),
                            _ => Some(3),
                        };
                        let kept = room.map(|room: usize| room.min(len) as u8);
                        assert_eq!(segment.set_accecn(&option), kept, "{blocks} {timestamps}");
                        let expected =
                            kept.map(|kept| AccEcnOption::new(ect1_first, &COUNTERS[..usize::from(kept)]));
                        assert_eq!(segment.accecn(), expected, "{blocks} {timestamps}");
                        assert_eq!(segment.sack_blocks(), blocks as usize);
                        for block in 0..blocks as usize {
                            assert_eq!(segment.sack_block(block), plain.sack_block(block));
                        }
                        if timestamps {
                            assert_eq!((segment.tsval, segment.tsecr), (7, 9));
                        }
                        assert_eq!(segment.urgent_in_use(), blocks == 3 && !timestamps && len == 3);
                    }
                }
            }
        }
    }

    #[test]
    fn the_option_stands_beside_a_cookie() {
        for bytes in [&[1_u8; 8][..], &[2; 16]] {
            let mut syn = Segment {
                flags: Flags::SYN.with(Flags::ACK),
                ..Segment::default()
            };
            let cookie = Cookie::new(bytes, false).expect("a cookie");
            syn.set_cookie(&cookie);
            let option = AccEcnOption::new(true, &COUNTERS);
            let kept = (bytes.len() == 8).then_some(3);
            assert_eq!(syn.set_accecn(&option), kept);
            assert_eq!(syn.accecn(), kept.map(|_| option));
            assert_eq!(syn.cookie(), Some(cookie));
        }
    }

    #[test]
    fn counters_are_taken_modulo_24_bits() {
        let option = AccEcnOption::new(true, &[AccEcnOption::MODULUS + 5]);
        assert_eq!(option.counter(Ecn::Ect1), Some(5));
        assert_eq!([0, 1, 2, 3].map(AccEcnOption::padded), [4, 8, 8, 12]);
    }
}
