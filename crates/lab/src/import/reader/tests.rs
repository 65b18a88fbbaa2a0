//! Files of pcapng made by hand, in either byte order.

use super::{Stop, read};

/// Builds a section; `big`: numbers have their high byte first.
#[derive(Clone, Copy)]
struct Maker {
    big: bool,
}

impl Maker {
    fn word(self, value: u32) -> [u8; 4] {
        match self.big {
            true => value.to_be_bytes(),
            false => value.to_le_bytes(),
        }
    }

    fn half(self, value: u16) -> [u8; 2] {
        match self.big {
            true => value.to_be_bytes(),
            false => value.to_le_bytes(),
        }
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let length = self.word(body.len() as u32 + 12);
        [&self.word(kind)[..], &length, body, &length].concat()
    }

    /// An option of eight bytes, and the end of options.
    fn option(self, code: u16, value: i64) -> Vec<u8> {
        let value = match self.big {
            true => value.to_be_bytes(),
            false => value.to_le_bytes(),
        };
        [&self.half(code)[..], &self.half(8), &value, &[0; 4]].concat()
    }

    fn section(self) -> Vec<u8> {
        self.block(
            0x0a0d_0d0a,
            &[&self.word(0x1a2b_3c4d)[..], &self.half(1), &[0; 2], &[0xff; 8]].concat(),
        )
    }

    /// An interface whose times are microseconds and, if there is an offset (`if_tsoffset`), so many seconds later.
    fn interface(self, offset_s: Option<i64>) -> Vec<u8> {
        let options = offset_s.map_or_else(Vec::new, |offset| self.option(14, offset));
        self.block(1, &[&self.half(101)[..], &[0; 6], &options].concat())
    }

    /// A packet of four bytes at so many microseconds.
    fn packet(self, units: u64) -> Vec<u8> {
        let words = [0, (units >> 32) as u32, units as u32, 4, 4].map(|word| self.word(word));
        self.block(6, &[&words.concat()[..], &[0; 4]].concat())
    }

    /// Statistics of an interface that has dropped so many (`isb_ifdrop`).
    fn statistics(self, interface: u32, dropped: i64) -> Vec<u8> {
        self.block(
            5,
            &[&self.word(interface)[..], &[0; 8], &self.option(5, dropped)].concat(),
        )
    }
}

fn stop_and_times(blocks: &[Vec<u8>]) -> (Stop, Vec<u64>) {
    let mut times = Vec::new();
    let stop = read(&blocks.concat()[..], |frame, _| {
        times.push(frame.time_ns);
        true
    });
    let stop = stop.expect("a capture");
    assert_eq!(stop.damage, None);
    (stop, times)
}

#[test]
fn an_offset_of_times_has_the_byte_order_of_its_section() {
    for big in [false, true] {
        let make = Maker { big };
        for (offset_s, expected) in [
            (None, 5_000_000_000),
            (Some(1), 6_000_000_000),
            (Some(-2), 3_000_000_000),
            (Some(1_700_000_000), 1_700_000_005_000_000_000),
        ] {
            let file = [make.section(), make.interface(offset_s), make.packet(5_000_000)];
            let (stop, times) = stop_and_times(&file);
            assert_eq!(
                (times, stop.out_of_time),
                (vec![expected], 0),
                "{big} {offset_s:?}"
            );
        }
    }
}

#[test]
fn times_that_cannot_be_are_counted() {
    let make = Maker { big: true };
    for (offset_s, expected) in [(-6, 0), (1 << 40, u64::MAX)] {
        let file = [
            make.section(),
            make.interface(Some(offset_s)),
            make.packet(5_000_000),
        ];
        let (stop, times) = stop_and_times(&file);
        assert_eq!((times, stop.out_of_time), (vec![expected], 1), "{offset_s}");
    }
}

#[test]
fn drops_are_summed_over_interfaces_and_sections() {
    for big in [false, true] {
        let make = Maker { big };
        let part = [
            make.section(),
            make.interface(None),
            make.interface(None),
            // Counters since the start: the later one has the earlier one in it.
            make.statistics(0, 100),
            make.statistics(1, 200),
            make.statistics(0, 300),
        ]
        .concat();
        let (stop, _) = stop_and_times(std::slice::from_ref(&part));
        assert_eq!(stop.dropped, 500, "{big}");
        let (stop, _) = stop_and_times(&[part, make.section(), make.interface(None), make.statistics(0, 7)]);
        assert_eq!(stop.dropped, 507, "{big}");
    }
}
