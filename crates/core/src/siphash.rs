//! SipHash-2-4: a keyed hash that outsiders cannot predict, for sequence numbers and cookies.
//!
//! **Source.** Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), sections 2.1 to 2.4 and appendix A.

/// The hash of `bytes` under `key`.
pub(crate) fn siphash(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut words = bytes.chunks_exact(8);
    let mut absorb = |word: u64| {
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    };
    for word in &mut words {
        let mut full = [0; 8];
        full.copy_from_slice(word);
        absorb(u64::from_le_bytes(full));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    last[7] = bytes.len() as u8;
    absorb(u64::from_le_bytes(last));
    v[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

#[inline]
fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::siphash;

    #[test]
    fn the_paper_s_example() {
        // Appendix A: key 00 01 .. 0f, message 00 01 .. 0e.
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let message: [u8; 15] = core::array::from_fn(|at| at as u8);
        assert_eq!(siphash(key, &message), 0xa129_ca61_49be_45e5);
    }
}
