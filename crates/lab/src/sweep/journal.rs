//! Finished runs of a sweep on disk: one file that only grows, so that whatever ends the program loses nothing that was finished.
//!
//! An entry is a length, the entry as postcard (key, remark, outcome), and the first bytes of its BLAKE3 hash. What a program that was
//! killed left half written at the end is cut off when the file is opened again. Keys follow from program, scenario, point and seed, so
//! entries of an older program or another scenario are not found, and points that two sweeps share are. When a sweep is
//! complete its entries are brought into the order of points and seeds: the file then follows from the sweep alone.

use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// First bytes of a file; the last is the version of the format.
const MAGIC: &[u8; 8] = b"ffsweep\x02";
/// Bytes of the hash behind an entry.
const SUM: usize = 8;
/// An entry is never so long: a length beyond it is damage.
const MOST_ENTRY: u32 = 1 << 30;

/// What identifies a run of a point: all variants with one seed.
pub(super) type Key = [u8; 16];

/// A value of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// No value.
    Empty,
    /// Text.
    Text(String),
    /// A whole number.
    Integer(u64),
    /// A floating-point number.
    Number(f64),
}

/// What came of one seed of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// Rows of the tables `runs` and `links`, variant by variant.
    Rows {
        /// A traffic group of a variant each.
        runs: Vec<Vec<Value>>,
        /// A direction of a link of a variant each.
        links: Vec<Vec<Value>>,
    },
    /// The run failed, and why.
    Failed(String),
}

/// Number of [`Outcome::Failed`] where an outcome begins.
const FAILED: u32 = 1;

/// An entry as it is written: key, what is to be said of the point, and what came of the run.
pub(super) fn body(key: &Key, remark: &str, outcome: &Outcome) -> Result<Vec<u8>, String> {
    postcard::to_stdvec(&(key, remark, outcome)).map_err(|error| error.to_string())
}

/// What an entry says at its beginning.
pub(super) struct Head<'a> {
    pub(super) key: Key,
    pub(super) remark: &'a str,
    pub(super) failed: bool,
    outcome: &'a [u8],
}

impl<'a> Head<'a> {
    pub(super) fn of(body: &'a [u8]) -> Option<Head<'a>> {
        let ((key, remark), outcome) = postcard::take_from_bytes::<(Key, &str)>(body).ok()?;
        let (kind, _) = postcard::take_from_bytes::<u32>(outcome).ok()?;
        Some(Head {
            key,
            remark,
            failed: kind == FAILED,
            outcome,
        })
    }

    pub(super) fn outcome(&self) -> io::Result<Outcome> {
        postcard::from_bytes(self.outcome).map_err(io::Error::other)
    }
}

/// Where an entry is, and what must be known of it at every turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u64);

impl Place {
    /// Nowhere: not yet run.
    pub const NONE: Place = Place(u64::MAX);
    const FAILED: u64 = 1 << 63;
    const REMARKED: u64 = 1 << 62;

    fn new(at: u64, head: &Head<'_>) -> Place {
        let failed = if head.failed { Place::FAILED } else { 0 };
        let remarked = if head.remark.is_empty() {
            0
        } else {
            Place::REMARKED
        };
        Place(at | failed | remarked)
    }

    /// Whether there is an entry.
    pub fn is_some(self) -> bool {
        self != Place::NONE
    }

    pub(super) fn failed(self) -> bool {
        self.is_some() && self.0 & Place::FAILED != 0
    }

    pub(super) fn remarked(self) -> bool {
        self.is_some() && self.0 & Place::REMARKED != 0
    }

    fn at(self) -> u64 {
        self.0 & !(Place::FAILED | Place::REMARKED)
    }
}

/// The file and where its entries are.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    end: u64,
    /// Entries of the file, those that no key leads to any more included.
    entries: usize,
    places: FxHashMap<Key, Place>,
}

impl Journal {
    /// Opens the file at `path`, or makes it. With `retry` failures count as not there, with `fresh` nothing does.
    ///
    /// # Errors
    /// It cannot be read or written, another program works with it, or it is something else.
    pub fn open(path: &Path, retry: bool, fresh: bool) -> io::Result<Journal> {
        let mut file = locked(path)?;
        let length = file.metadata()?.len();
        let mut places = FxHashMap::default();
        let mut end = MAGIC.len() as u64;
        let mut entries = 0;
        let whole = length >= end && {
            let mut magic = [0; MAGIC.len()];
            file.read_exact(&mut magic)?;
            if magic[..MAGIC.len() - 1] != MAGIC[..MAGIC.len() - 1] {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it is no journal of a sweep",
                ));
            }
            magic == *MAGIC && !fresh
        };
        if whole {
            let mut reader = io::BufReader::with_capacity(1 << 20, &file);
            let mut body = Vec::new();
            while read_body(&mut reader, &mut body)? {
                let Some(head) = Head::of(&body) else { break };
                if head.failed && retry {
                    places.remove(&head.key);
                } else {
                    places.insert(head.key, Place::new(end, &head));
                }
                entries += 1;
                end += (4 + body.len() + SUM) as u64;
            }
            file.set_len(end)?;
        } else {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(MAGIC)?;
        }
        file.seek(SeekFrom::Start(end))?;
        Ok(Journal {
            path: path.to_owned(),
            inner: Mutex::new(Inner {
                file,
                end,
                entries,
                places,
            }),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the entry with this key is.
    pub(super) fn find(&self, key: &Key) -> Option<Place> {
        self.inner().places.get(key).copied()
    }

    /// The outcome at this place.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, place: Place) -> io::Result<Outcome> {
        self.reading().outcome(place)
    }

    /// Reads entries one after the other.
    pub(super) fn reading(&self) -> Reading<'_> {
        Reading {
            journal: self,
            window: Vec::new(),
            start: 0,
        }
    }

    /// Appends an entry ([`body`]); returns its place.
    ///
    /// # Errors
    /// It cannot be written; what was there before still is.
    pub(super) fn append(&self, body: &[u8]) -> io::Result<Place> {
        let head = Head::of(body).ok_or_else(damaged)?;
        let frame = frame(body)?;
        let mut inner = self.inner();
        let at = inner.end;
        if let Err(error) = inner.file.write_all(&frame) {
            // A disk that is full: the half that was written goes, so that what follows is readable.
            let _ = inner.file.set_len(at);
            let _ = inner.file.seek(SeekFrom::Start(at));
            return Err(error);
        }
        inner.end += frame.len() as u64;
        inner.entries += 1;
        let place = Place::new(at, &head);
        inner.places.insert(head.key, place);
        Ok(place)
    }

    /// Writes the file anew: the entries at `places` in their order, behind them the others that have a key, ordered by it.
    /// `places` become the new ones. Nothing is done where it is so already.
    ///
    /// # Errors
    /// What the file system says; the file is then as it was.
    pub(super) fn bring_into_order(&self, places: &mut [Place]) -> io::Result<()> {
        {
            let inner = self.inner();
            let ascending = places.windows(2).all(|pair| pair[0].at() < pair[1].at());
            if ascending && places.len() == inner.entries {
                return Ok(());
            }
        }
        let part = self.path.with_extension("part");
        let written = self.written_in_order(&part, places);
        if written.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        written
    }

    fn written_in_order(&self, part: &Path, places: &mut [Place]) -> io::Result<()> {
        let listed: rustc_hash::FxHashSet<u64> = places.iter().map(|place| place.at()).collect();
        let mut others: Vec<(Key, Place)> = self
            .inner()
            .places
            .iter()
            .filter(|(_, place)| !listed.contains(&place.at()))
            .map(|(key, place)| (*key, *place))
            .collect();
        others.sort_unstable_by_key(|(key, _)| *key);
        // The same lock as on the file that it replaces.
        let file = locked(part)?;
        file.set_len(0)?;
        let mut writer = BufWriter::with_capacity(1 << 20, &file);
        writer.write_all(MAGIC)?;
        let mut reading = self.reading();
        let mut end = MAGIC.len() as u64;
        let mut known = FxHashMap::default();
        let mut moved = Vec::with_capacity(places.len());
        for (number, place) in places
            .iter()
            .copied()
            .chain(others.into_iter().map(|(_, place)| place))
            .enumerate()
        {
            let body = reading.body(place)?;
            let head = Head::of(body).ok_or_else(damaged)?;
            let place = Place::new(end, &head);
            known.insert(head.key, place);
            let frame = frame(body)?;
            writer.write_all(&frame)?;
            end += frame.len() as u64;
            if number < places.len() {
                moved.push(place);
            }
        }
        writer.flush()?;
        drop(writer);
        std::fs::rename(part, &self.path)?;
        let mut inner = self.inner();
        inner.entries = known.len();
        inner.places = known;
        inner.file = file;
        inner.file.seek(SeekFrom::Start(end))?;
        inner.end = end;
        places.copy_from_slice(&moved);
        Ok(())
    }

    /// Reads from a place in the file, as much as there is.
    fn fill(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let mut inner = self.inner();
        let end = inner.end;
        inner.file.seek(SeekFrom::Start(at))?;
        let wanted = buffer
            .len()
            .min(usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX));
        let read = inner.file.read_exact(&mut buffer[..wanted]);
        inner.file.seek(SeekFrom::Start(end))?;
        read.map(|()| wanted)
    }
}

/// Opens the file at `path`, or makes it, for this program alone.
fn locked(path: &Path) -> io::Result<File> {
    loop {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(
                    io::ErrorKind::WouldBlock,
                    "another sweep is at work in this folder",
                ));
            }
            // A file system without locks.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Another program may have replaced it between opening and locking.
        if is_at(&file, path)? {
            return Ok(file);
        }
    }
}

/// Whether `path` still leads to this file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let here = file.metadata()?;
    Ok(path
        .metadata()
        .is_ok_and(|there| (there.dev(), there.ino()) == (here.dev(), here.ino())))
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an entry is damaged")
}

/// An entry with its length and hash.
fn frame(body: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(body.len())
        .ok()
        .filter(|&length| length < MOST_ENTRY)
        .ok_or_else(|| io::Error::other("the result of a run is too long"))?;
    let mut frame = Vec::with_capacity(4 + body.len() + SUM);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(body);
    frame.extend_from_slice(&blake3::hash(body).as_bytes()[..SUM]);
    Ok(frame)
}

/// Reads entries; those near each other with one access to the file.
pub(super) struct Reading<'a> {
    journal: &'a Journal,
    window: Vec<u8>,
    start: u64,
}

/// Bytes read at once, and how far before the entry that is asked for: threads end out of order.
const WINDOW: usize = 256 << 10;
const BACK: u64 = 32 << 10;

impl Reading<'_> {
    fn body(&mut self, place: Place) -> io::Result<&[u8]> {
        let at = place.at();
        if self.whole(at).is_none() {
            self.load(at.saturating_sub(BACK), WINDOW)?;
        }
        if self.whole(at).is_none() {
            // It ends behind the window.
            let mut length = [0; 4];
            self.journal.fill(&mut length, at)?;
            let length = u32::from_le_bytes(length);
            if length >= MOST_ENTRY {
                return Err(damaged());
            }
            self.load(at, 4 + length as usize + SUM)?;
        }
        let range = self.whole(at).ok_or_else(damaged)?;
        let (body, sum) = self.window[range.clone()].split_at(range.len() - SUM);
        if blake3::hash(body).as_bytes()[..SUM] != *sum {
            return Err(damaged());
        }
        Ok(body)
    }

    /// Where in the window the entry at this place is with its hash, if all of it is there.
    fn whole(&self, at: u64) -> Option<std::ops::Range<usize>> {
        let offset = usize::try_from(at.checked_sub(self.start)?).ok()?;
        let (length, rest) = self.window.get(offset..)?.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length))
            .ok()?
            .checked_add(SUM)?;
        (length <= rest.len()).then(|| offset + 4..offset + 4 + length)
    }

    fn load(&mut self, start: u64, bytes: usize) -> io::Result<()> {
        self.start = start;
        self.window.resize(bytes, 0);
        let read = self.journal.fill(&mut self.window, start)?;
        self.window.truncate(read);
        Ok(())
    }

    /// The outcome at this place.
    pub(super) fn outcome(&mut self, place: Place) -> io::Result<Outcome> {
        Head::of(self.body(place)?).ok_or_else(damaged)?.outcome()
    }

    /// What is to be said of the point of the entry at this place.
    pub(super) fn remark(&mut self, place: Place) -> io::Result<String> {
        let head = Head::of(self.body(place)?).ok_or_else(damaged)?;
        Ok(head.remark.to_owned())
    }
}

/// Reads the next body, if it is there and whole.
fn read_body(reader: &mut impl Read, body: &mut Vec<u8>) -> io::Result<bool> {
    let mut length = [0; 4];
    if !filled(reader, &mut length)? {
        return Ok(false);
    }
    let length = u32::from_le_bytes(length);
    if length >= MOST_ENTRY {
        return Ok(false);
    }
    body.clear();
    // Not allocated before it is there: a damaged length says nothing.
    let read = reader.by_ref().take(u64::from(length)).read_to_end(body)?;
    let mut sum = [0; SUM];
    let whole = read == length as usize && filled(reader, &mut sum)?;
    Ok(whole && blake3::hash(body).as_bytes()[..SUM] == sum)
}

/// Whether there was as much as `bytes` wants.
fn filled(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::{Journal, Outcome, Place, Value, body};
    use crate::testing::folder;

    fn rows(number: u64) -> Outcome {
        Outcome::Rows {
            runs: vec![vec![
                Value::Integer(number),
                Value::Text(String::from("web")),
                Value::Number(0.5),
                Value::Empty,
            ]],
            links: Vec::new(),
        }
    }

    fn append(journal: &Journal, key: u8, outcome: &Outcome) -> Place {
        let body = body(&[key; 16], "", outcome).expect("it can be written");
        journal.append(&body).expect("there is room")
    }

    #[test]
    fn whatever_the_length_at_which_it_is_cut_whole_entries_stay() {
        let folder = folder("journal");
        std::fs::create_dir_all(&folder).expect("it can be made");
        let path = folder.join("journal");
        let journal = Journal::open(&path, false, false).expect("it can be made");
        let places: Vec<Place> = (0..4_u8)
            .map(|key| append(&journal, key, &rows(u64::from(key))))
            .collect();
        drop(journal);
        let bytes = std::fs::read(&path).expect("it was just written");
        for length in 8..bytes.len() {
            std::fs::write(&path, &bytes[..length]).expect("it can be written");
            let journal = Journal::open(&path, false, false).expect("it is a journal");
            let starts = places.iter().skip(1).map(|place| place.at());
            let ends = starts.chain([bytes.len() as u64]);
            let whole = ends.filter(|&end| end <= length as u64).count();
            for key in 0..4_u8 {
                let found = journal.find(&[key; 16]);
                assert_eq!(found.is_some(), usize::from(key) < whole, "{length}: {key}");
                if let Some(place) = found {
                    assert_eq!(journal.read(place).expect("it is whole"), rows(u64::from(key)));
                }
            }
            // It goes on behind the last whole entry.
            let place = append(&journal, 9, &rows(9));
            assert_eq!(journal.read(place).expect("it is whole"), rows(9));
        }
        std::fs::remove_dir_all(&folder).expect("it was made here");
    }

    #[test]
    fn a_damaged_entry_ends_the_journal_and_a_retry_forgets_failures() {
        let folder = folder("journal-damage");
        std::fs::create_dir_all(&folder).expect("it can be made");
        let path = folder.join("journal");
        let journal = Journal::open(&path, false, false).expect("it can be made");
        append(&journal, 1, &Outcome::Failed(String::from("no memory")));
        let second = append(&journal, 2, &rows(2));
        assert!(
            Journal::open(&path, false, false).is_err(),
            "two programs work with one journal"
        );
        drop(journal);
        let again = Journal::open(&path, true, false).expect("it is a journal");
        assert!(again.find(&[1; 16]).is_none() && again.find(&[2; 16]).is_some());
        drop(again);
        let mut bytes = std::fs::read(&path).expect("it was just written");
        bytes[second.at() as usize + 6] ^= 1;
        std::fs::write(&path, &bytes).expect("it can be written");
        let again = Journal::open(&path, false, false).expect("it is a journal");
        assert!(again.find(&[1; 16]).is_some() && again.find(&[2; 16]).is_none());
        drop(again);
        let fresh = Journal::open(&path, false, true).expect("it is a journal");
        assert!(fresh.find(&[1; 16]).is_none());
        drop(fresh);
        std::fs::write(&path, b"something else").expect("it can be written");
        let error = Journal::open(&path, false, false).expect_err("it is something else");
        assert_eq!(error.to_string(), "it is no journal of a sweep");
        std::fs::remove_dir_all(&folder).expect("it was made here");
    }

    #[test]
    fn entries_are_brought_into_order_and_stay_readable() {
        let folder = folder("journal-order");
        std::fs::create_dir_all(&folder).expect("it can be made");
        let path = folder.join("journal");
        let long = Outcome::Failed("x".repeat(600_000));
        let outcome = |key: u8| {
            if key == 3 {
                long.clone()
            } else {
                rows(u64::from(key))
            }
        };
        let write = |order: &[u8]| {
            let journal = Journal::open(&path, false, true).expect("it can be made");
            for &key in order {
                append(&journal, key, &outcome(key));
            }
            // Keys 7 and 8 belong to another sweep.
            let mut places: Vec<Place> = (1..6_u8)
                .map(|key| journal.find(&[key; 16]).expect("it is there"))
                .collect();
            journal.bring_into_order(&mut places).expect("there is room");
            for (key, place) in (1..6_u8).zip(&places) {
                assert_eq!(journal.read(*place).expect("it is whole"), outcome(key));
            }
            let place = append(&journal, 9, &rows(9));
            assert_eq!(journal.read(place).expect("it is whole"), rows(9));
            assert!(Journal::open(&path, false, false).is_err(), "it is still locked");
            std::fs::read(&path).expect("it was just written")
        };
        let first = write(&[5, 8, 1, 2, 2, 7, 3, 4]);
        let second = write(&[1, 2, 3, 4, 5, 7, 8]);
        assert!(first == second);
        let again = Journal::open(&path, false, false).expect("it is a journal");
        assert!(
            [1, 2, 3, 4, 5, 7, 8, 9]
                .iter()
                .all(|&key| again.find(&[key; 16]).is_some())
        );
        std::fs::remove_dir_all(&folder).expect("it was made here");
    }
}
