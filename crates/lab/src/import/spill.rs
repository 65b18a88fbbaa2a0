//! Connections as an import finds them, and in order of start as it writes them.

use super::scenario::Part;
use crate::input;
use crate::workload::vectors::Vector;
use fleetfoot_sim::output::Histogram;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Vectors as they come, on disk or in memory as the files that are written, and where each begins, to put them in order.
pub(super) struct Spill {
    store: Store,
    /// Start of the connection, place and length in the file, pair of hosts: of those that were opened from the side of the first, and
    /// from the other.
    index: [Vec<Place>; 2],
    /// Number and place in the file of connections that may be long transfers.
    may_be_long: Vec<(u64, u64)>,
    /// Pairs of hosts, whichever opened, and the smallest round-trip time between each: a queue that one connection always found is not
    /// part of the path.
    pairs: FxHashMap<(u32, u32), u32>,
    least_us: Vec<u64>,
    written: u64,
    failed: Option<io::Error>,
}

/// Where they are meanwhile.
enum Store {
    Disk { part: PathBuf, file: BufWriter<File> },
    Memory(Vec<u8>),
}

impl Store {
    fn create(vectors: &Path) -> io::Result<Store> {
        if input::is_in_memory(vectors) {
            return Ok(Store::Memory(Vec::new()));
        }
        crate::run::remove_parts_of(vectors, false);
        let mut part = vectors.file_name().unwrap_or_default().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = vectors.with_file_name(part);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&part)?;
        Ok(Store::Disk {
            part,
            file: BufWriter::new(file),
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Store::Disk { file, .. } => file.write_all(bytes),
            Store::Memory(all) => all.write_all(bytes),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Store::Disk { part, .. } = self {
            // It may be gone already.
            let _ = std::fs::remove_file(part);
        }
    }
}

impl Spill {
    /// `vectors`: the first of the files that will be written.
    pub(super) fn create(vectors: &Path) -> io::Result<Spill> {
        Ok(Spill {
            store: Store::create(vectors)?,
            index: [Vec::new(), Vec::new()],
            may_be_long: Vec::new(),
            pairs: FxHashMap::default(),
            least_us: Vec::new(),
            written: 0,
            failed: None,
        })
    }

    /// Writes a connection; a full disk is reported at the end.
    pub(super) fn take(&mut self, vector: &Vector, other: Option<u32>, back: bool, may_be_long: bool) {
        let next = self.least_us.len() as u32;
        let pair = other.map_or(NO_PAIR, |other| {
            let own = vector.host as u32;
            *self
                .pairs
                .entry((own.min(other), own.max(other)))
                .or_insert_with(|| {
                    self.least_us.push(0);
                    next
                })
        });
        if let Some(least) = self.least_us.get_mut(pair as usize)
            && vector.rtt_us > 0
            && (*least == 0 || vector.rtt_us < *least)
        {
            *least = vector.rtt_us;
        }
        if may_be_long {
            self.may_be_long.push((vector.id, self.written));
        }
        let text = vector.to_string();
        match self.store.write_all(text.as_bytes()) {
            Ok(()) => {
                let place = (vector.start_us, self.written, text.len() as u32, pair);
                self.index[usize::from(back)].push(place);
            }
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
        self.written += text.len() as u64;
    }

    /// Writes them in order of start, those of each part into its file, and returns the times between starts (us). `long_ids`: numbers of the
    /// long transfers, in ascending order.
    pub(super) fn finish(mut self, parts: &[(Part, PathBuf)], long_ids: &[u64]) -> io::Result<Histogram> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if let Store::Disk { file, .. } = &mut self.store {
            file.flush()?;
        }
        let index = std::mem::take(&mut self.index);
        let mut starts: Vec<u64> = index.iter().flatten().map(|place| place.0).collect();
        starts.sort_unstable();
        let mut between = Histogram::new();
        for pair in starts.windows(2) {
            between.record(pair[1] - pair[0]);
        }
        drop(starts);
        let long: FxHashSet<u64> = std::mem::take(&mut self.may_be_long)
            .into_iter()
            .filter(|(id, _)| long_ids.binary_search(id).is_ok())
            .map(|(_, place)| place)
            .collect();
        let [first, back] = index.map(|side| {
            let (long, short) = side
                .into_iter()
                .partition::<Vec<_>, _>(|(_, place, ..)| long.contains(place));
            [short, long]
        });
        let mut sides = [first, back];
        for (part, file) in parts {
            let mut index = std::mem::take(&mut sides[usize::from(part.back)][usize::from(part.long)]);
            index.sort_unstable();
            self.write(file, &index)?;
        }
        Ok(between)
    }

    /// Writes those of `index` to `path`, in its order.
    fn write(&self, path: &Path, index: &[Place]) -> io::Result<()> {
        match &self.store {
            Store::Memory(all) => {
                let mut output = Vec::new();
                self.copy(BufReader::new(Cursor::new(all)), &mut output, index)?;
                input::write(path, &output)
            }
            Store::Disk { part, file } => {
                let mut ordered = part.as_os_str().to_owned();
                ordered.push("2");
                let ordered = PathBuf::from(ordered);
                let mut input = BufReader::new(file.get_ref().try_clone()?);
                input.seek(SeekFrom::Start(0))?;
                let written = File::create(&ordered).map(BufWriter::new).and_then(|mut output| {
                    self.copy(input, &mut output, index)?;
                    output.flush()
                });
                if let Err(error) = written.and_then(|()| std::fs::rename(&ordered, path)) {
                    // The error that counts is the first one.
                    let _ = std::fs::remove_file(&ordered);
                    return Err(error);
                }
                Ok(())
            }
        }
    }

    fn copy(
        &self,
        mut input: BufReader<impl Read + Seek>,
        output: &mut impl Write,
        index: &[Place],
    ) -> io::Result<()> {
        let (mut at, mut text) = (0_u64, Vec::new());
        for &(_, place, length, pair) in index {
            // Mostly they are in order: stay within the buffer.
            input.seek_relative(place as i64 - at as i64)?;
            text.resize(length as usize, 0);
            input.read_exact(&mut text)?;
            match self.least_us.get(pair as usize) {
                None | Some(0) => output.write_all(&text)?,
                Some(least) => write_with_rtt(output, &text, *least)?,
            }
            at = place + u64::from(length);
        }
        Ok(())
    }
}

/// Writes a connection with another round-trip time.
fn write_with_rtt(output: &mut impl Write, text: &[u8], rtt_us: u64) -> io::Result<()> {
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        match line.starts_with(b"r ") {
            true => writeln!(output, "r {rtt_us}")?,
            false => output.write_all(line)?,
        }
    }
    Ok(())
}

/// Start of a connection (us), its place and length in the store, its pair of hosts.
type Place = (u64, u64, u32, u32);

/// In a file of vectors hosts are not known.
const NO_PAIR: u32 = u32::MAX;
