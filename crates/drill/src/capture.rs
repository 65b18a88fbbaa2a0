//! Captures of played scripts for Wireshark: raw IP with nanoseconds, both directions.
//!
//! **Source.** draft-ietf-opsawg-pcap.

use super::folder::Outcome;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a capture of `outcome` below `folder`, under the script's name with `.pcap`, and returns its path.
///
/// # Errors
/// What the file system says.
pub fn write(folder: &Path, outcome: &Outcome) -> io::Result<PathBuf> {
    let file = outcome.item.file.trim_start_matches(['/', '.']);
    let path = folder.join(file).with_extension("pcap");
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut output = BufWriter::new(File::create(&path)?);
    // Version 2.4, two fields that nobody uses, the most that is kept of a packet, and the link type.
    for field in [NANOSECONDS, 4 << 16 | 2, 0, 0, SNAP_LENGTH, RAW] {
        output.write_all(&field.to_le_bytes())?;
    }
    for (at, _, bytes) in &outcome.played.packets {
        let (seconds, rest) = (at / 1_000_000_000, at % 1_000_000_000);
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let seconds = u32::try_from(seconds).map_err(io::Error::other)?;
        if length > SNAP_LENGTH {
            return Err(io::Error::other("a packet is longer than captures can have"));
        }
        for field in [seconds, rest as u32, length, length] {
            output.write_all(&field.to_le_bytes())?;
        }
        output.write_all(bytes)?;
    }
    output.flush()?;
    Ok(path)
}

/// What a capture with nanoseconds begins with.
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const SNAP_LENGTH: u32 = 65_535;
/// The link type of IPv4 and IPv6 without a header before them.
const RAW: u32 = 101;
