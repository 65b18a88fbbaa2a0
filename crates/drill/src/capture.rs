//! Captures of played scripts for Wireshark: raw IP with nanoseconds, both directions.

use super::folder::Outcome;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    let header = PcapHeader {
        datalink: DataLink::RAW,
        ts_resolution: TsResolution::NanoSecond,
        endianness: Endianness::Little,
        snaplen: 65_535,
        ..PcapHeader::default()
    };
    let mut writer =
        PcapWriter::with_header(BufWriter::new(File::create(&path)?), header).map_err(io::Error::other)?;
    for (at, _, bytes) in &outcome.played.packets {
        let packet = PcapPacket::new(Duration::from_nanos(*at), bytes.len() as u32, bytes);
        writer.write_packet(&packet).map_err(io::Error::other)?;
    }
    io::Write::flush(&mut writer.into_writer())?;
    Ok(path)
}
