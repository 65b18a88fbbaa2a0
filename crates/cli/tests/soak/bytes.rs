//! What a stream carries: noise, with the number of the stream and of the block in every block, so that a byte which is lost, doubled or
//! moved is seen where it happened.

use std::sync::OnceLock;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 1 << 16;
/// Bytes of noise from which blocks are cut.
const NOISE: usize = 4 << 20;

fn noise() -> &'static [u8] {
    static NOISE_ONCE: OnceLock<Vec<u8>> = OnceLock::new();
    NOISE_ONCE.get_or_init(|| {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut bytes = Vec::with_capacity(NOISE);
        while bytes.len() < NOISE {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            bytes.extend_from_slice(&(state ^ state >> 29).to_le_bytes());
        }
        bytes
    })
}

/// A block of a stream.
pub(crate) fn block(stream: u64, number: u64, bytes: &mut [u8; BLOCK]) {
    let mixed = (stream.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let at = (mixed >> 40) as usize % (NOISE - BLOCK);
    bytes.copy_from_slice(&noise()[at..at + BLOCK]);
    bytes[..8].copy_from_slice(&stream.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
}

/// The bytes of a stream in their order.
pub(crate) struct Stream {
    number: u64,
    position: u64,
    block: Box<[u8; BLOCK]>,
}

impl Stream {
    pub(crate) fn new(number: u64) -> Stream {
        let mut bytes = Box::new([0; BLOCK]);
        block(number, 0, &mut bytes);
        Stream {
            number,
            position: 0,
            block: bytes,
        }
    }

    /// How many have gone.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// Those that come next, as far as the block goes.
    pub(crate) fn next(&self) -> &[u8] {
        &self.block[self.position as usize % BLOCK..]
    }

    /// `count` of those that come next have gone.
    pub(crate) fn advance(&mut self, count: usize) {
        self.position += count as u64;
        if self.position.is_multiple_of(BLOCK as u64) {
            block(self.number, self.position / BLOCK as u64, &mut self.block);
        }
    }

    /// These came next.
    ///
    /// # Panics
    /// They are not those of the stream.
    pub(crate) fn check(&mut self, mut came: &[u8]) {
        while !came.is_empty() {
            let wanted = self.next();
            let count = wanted.len().min(came.len());
            if came[..count] != wanted[..count] {
                let at = (0..count).find(|&at| came[at] != wanted[at]).unwrap_or_default();
                panic!(
                    "byte {} of stream {} is {:#04x} and not {:#04x}",
                    self.position + at as u64,
                    self.number,
                    came[at],
                    wanted[at]
                );
            }
            self.advance(count);
            came = &came[count..];
        }
    }
}

#[test]
fn a_byte_that_was_changed_lost_or_doubled_is_noticed() {
    let whole = |length: usize| {
        let mut stream = Stream::new(3);
        let mut bytes = Vec::new();
        while bytes.len() < length {
            bytes.extend_from_slice(stream.next());
            stream.advance(stream.next().len());
        }
        bytes.truncate(length);
        bytes
    };
    let good = whole(3 * BLOCK + 5);
    let mut stream = Stream::new(3);
    for piece in good.chunks(1000) {
        stream.check(piece);
    }
    assert_eq!(stream.position(), good.len() as u64);
    let spoilt: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes[2 * BLOCK + 77] ^= 1,
        |bytes| drop(bytes.drain(BLOCK..2 * BLOCK)),
        |bytes| bytes.insert(900, 0),
        |bytes| {
            let (a, b) = bytes.split_at_mut(BLOCK);
            a.swap_with_slice(&mut b[..BLOCK]);
        },
    ];
    for spoil in spoilt {
        let mut bytes = good.clone();
        spoil(&mut bytes);
        let noticed = std::panic::catch_unwind(|| Stream::new(3).check(&bytes));
        assert!(noticed.is_err());
    }
}
