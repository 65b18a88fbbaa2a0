//! The Internet checksum.
//!
//! **Source.** RFC 1071; pseudo headers of RFC 9293 3.1 and RFC 8200 8.1.
//! **Deviations.** None known.

use core::net::IpAddr;

/// A one's complement sum in progress. Every part but the last must have an even length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of a pseudo header: addresses, protocol and length of header and payload.
    pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, len: u32) -> Sum {
        let mut sum = Sum(u64::from(protocol) + u64::from(len >> 16) + u64::from(len & 0xffff));
        for address in [source, destination] {
            match address {
                IpAddr::V4(address) => sum.add(&address.octets()),
                IpAddr::V6(address) => sum.add(&address.octets()),
            }
        }
        sum
    }

    /// Adds bytes; an odd one at the end counts as the high half of a word.
    pub fn add(&mut self, bytes: &[u8]) {
        // RFC 1071 2 (B), (C): in the machine's byte order and in larger words the sum is the same, its bytes apart.
        let mut words = bytes.chunks_exact(4);
        let mut native = 0_u64;
        for word in &mut words {
            native += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
        self.0 += u64::from(folded(native).to_be());
        let mut rest = words.remainder().chunks_exact(2);
        for word in &mut rest {
            self.0 += u64::from(u16::from_be_bytes([word[0], word[1]]));
        }
        if let [last] = rest.remainder() {
            self.0 += u64::from(*last) << 8;
        }
    }

    /// The checksum when `bytes` are added too.
    pub fn over(mut self, bytes: &[u8]) -> u16 {
        self.add(bytes);
        self.finish()
    }

    /// The checksum: the complement of the folded sum. Zero over bytes that contain their right checksum.
    pub const fn finish(self) -> u16 {
        !folded(self.0)
    }
}

/// The one's complement sum of the 16-bit words of `sum`.
const fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::Sum;
    use alloc::vec::Vec;

    #[test]
    fn the_example_of_rfc_1071() {
        let mut sum = Sum::default();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn every_length_is_summed_as_by_words() {
        let bytes: Vec<u8> = (0..200_u32).map(|n| ((n * 167) >> 2) as u8).collect();
        for end in 0..bytes.len() {
            let (mut sum, mut words) = (Sum::default(), 0_u64);
            sum.add(&bytes[..end]);
            for pair in bytes[..end].chunks(2) {
                words += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
            }
            while words > 0xffff {
                words = (words & 0xffff) + (words >> 16);
            }
            assert_eq!(sum.finish(), !(words as u16), "{end} bytes");
        }
    }

    #[test]
    fn an_odd_byte_is_the_high_half() {
        let (mut odd, mut even) = (Sum::default(), Sum::default());
        odd.add(&[1, 2, 3]);
        even.add(&[1, 2, 3, 0]);
        assert_eq!(odd.finish(), even.finish());
    }
}
