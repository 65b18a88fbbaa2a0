//! Features of a network device by their names, as `ethtool -K` sets them.
//!
//! **Source.** linux/ethtool.h: `ETHTOOL_GSTRINGS` of `ETH_SS_FEATURES`, `ETHTOOL_GFEATURES`, `ETHTOOL_SFEATURES`.

use super::request;
use std::io;
use std::os::fd::OwnedFd;

/// The features of an interface as they were when they were read.
pub(super) struct Features {
    names: Vec<String>,
    /// For each 32 of them: which can be changed, are wanted, are on.
    words: Vec<[u32; 3]>,
}

impl Features {
    /// Reads them.
    ///
    /// # Errors
    /// The interface is not there, or the kernel does not know the request.
    pub(super) fn read(fd: &OwnedFd, interface: &str) -> io::Result<Features> {
        // `struct ethtool_sset_info`: command, reserved, a mask of 64 bits, a count for each set asked for.
        let mut info = [GET_SET_INFO, 0, 1 << SET_OF_FEATURES, 0, 0];
        request(fd, interface, info.as_mut_ptr().cast())?;
        let count = info[4].min(MOST) as usize;
        // `struct ethtool_gstrings`: command, set, how many, names of 32 bytes.
        let mut names = vec![0_u32; 3 + count * NAME / 4];
        names[..3].copy_from_slice(&[GET_STRINGS, SET_OF_FEATURES, count as u32]);
        request(fd, interface, names.as_mut_ptr().cast())?;
        let bytes: Vec<u8> = names[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let name = |bytes: &[u8]| {
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        // `struct ethtool_gfeatures`: command, how many words, and in each what can be changed, is wanted, is on, never changes.
        let size = count.div_ceil(32);
        let mut words = vec![0_u32; 2 + 4 * size];
        words[..2].copy_from_slice(&[GET_FEATURES, size as u32]);
        request(fd, interface, words.as_mut_ptr().cast())?;
        let there = (words[1] as usize).min(size);
        Ok(Features {
            names: bytes.chunks_exact(NAME).map(name).collect(),
            words: words[2..]
                .chunks_exact(4)
                .take(there)
                .map(|word| [word[0], word[1], word[2]])
                .collect(),
        })
    }

    /// Its word, and its bit in that.
    fn place(&self, name: &str) -> Option<(usize, u32)> {
        let at = self.names.iter().position(|known| known == name)?;
        (at / 32 < self.words.len()).then_some((at / 32, 1 << (at % 32)))
    }

    /// Whether a feature is on; one that the kernel does not know is off.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.place(name)
            .is_some_and(|(word, bit)| self.words[word][2] & bit != 0)
    }

    /// Switches a feature off, if it can be changed.
    pub(super) fn switch_off(&self, fd: &OwnedFd, interface: &str, name: &str) -> io::Result<()> {
        let Some((word, bit)) = self.place(name) else {
            return Ok(());
        };
        let mut changes = vec![[0; 2]; self.words.len()];
        changes[word] = [bit, 0];
        set(fd, interface, &changes)
    }

    /// Has the same features wanted again as when these were read, and no others.
    pub(super) fn restore(&self, fd: &OwnedFd, interface: &str) -> io::Result<()> {
        let now = Features::read(fd, interface)?;
        let both = self.words.iter().zip(&now.words);
        // Only what can be changed, and differs.
        let changes: Vec<[u32; 2]> = both
            .map(|(before, now)| [(before[1] ^ now[1]) & now[0], before[1]])
            .collect();
        set(fd, interface, &changes)
    }
}

/// For each 32 features, which are to change, and what those are to be.
fn set(fd: &OwnedFd, interface: &str, changes: &[[u32; 2]]) -> io::Result<()> {
    // `struct ethtool_sfeatures`.
    let mut words = vec![SET_FEATURES, changes.len() as u32];
    words.extend(changes.iter().flatten());
    request(fd, interface, words.as_mut_ptr().cast())
}

const GET_STRINGS: u32 = 0x1b;
const GET_SET_INFO: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
const SET_OF_FEATURES: u32 = 4;
/// Bytes of a name.
const NAME: usize = 32;
/// Linux has some 64.
const MOST: u32 = 1024;
