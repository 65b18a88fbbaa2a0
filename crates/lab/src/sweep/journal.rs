//! Finished runs of a sweep on disk: one file that only grows, so that whatever ends the program loses nothing that was finished.
//!
//! An entry is a length, the entry as postcard, and the first bytes of its BLAKE3 hash. What a program that was killed left half written
//! at the end is cut off when the file is opened again. Keys follow from program, specification and seed ([`Store::key`](crate::run::Store::key)), so entries of an older program or another
//! scenario are not found, and points that two sweeps share are.

use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// First bytes of a file; the last is the version of the format.
const MAGIC: &[u8; 8] = b"ffsweep\x01";
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

/// The file and where its entries are.
#[derive(Debug)]
pub struct Journal(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    file: File,
    end: u64,
    places: FxHashMap<Key, u64>,
}

impl Journal {
    /// Opens the file at `path`, or makes it. With `retry` failures count as not there, with `fresh` nothing does.
    ///
    /// # Errors
    /// It cannot be read or written, another program works with it, or it is something else.
    pub fn open(path: &Path, retry: bool, fresh: bool) -> io::Result<Journal> {
        let mut file = File::options()
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
        let length = file.metadata()?.len();
        let mut places = FxHashMap::default();
        let mut end = MAGIC.len() as u64;
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
            while let Some((key, failed, size)) = read_entry(&mut reader)? {
                if failed && retry {
                    places.remove(&key);
                } else {
                    places.insert(key, end);
                }
                end += size;
            }
            file.set_len(end)?;
        } else {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(MAGIC)?;
        }
        file.seek(SeekFrom::Start(end))?;
        Ok(Journal(Mutex::new(Inner { file, end, places })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the entry with this key is.
    pub fn find(&self, key: &Key) -> Option<u64> {
        self.inner().places.get(key).copied()
    }

    /// The entry at this place.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, place: u64) -> io::Result<Outcome> {
        let mut inner = self.inner();
        let end = inner.end;
        inner.file.seek(SeekFrom::Start(place))?;
        let body = read_body(&mut inner.file);
        inner.file.seek(SeekFrom::Start(end))?;
        let body = body?.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "an entry is damaged"))?;
        let (_, outcome): (Key, Outcome) = postcard::from_bytes(&body).map_err(io::Error::other)?;
        Ok(outcome)
    }

    /// Appends an entry; returns its place.
    ///
    /// # Errors
    /// It cannot be written; what was there before still is.
    pub fn append(&self, key: &Key, outcome: &Outcome) -> io::Result<u64> {
        let body = postcard::to_stdvec(&(key, outcome)).map_err(io::Error::other)?;
        let length = u32::try_from(body.len())
            .ok()
            .filter(|&length| length < MOST_ENTRY)
            .ok_or_else(|| io::Error::other("the result of a run is too long"))?;
        let mut frame = Vec::with_capacity(4 + body.len() + SUM);
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(&body);
        frame.extend_from_slice(&blake3::hash(&body).as_bytes()[..SUM]);
        let mut inner = self.inner();
        let place = inner.end;
        if let Err(error) = inner.file.write_all(&frame) {
            // A disk that is full: the half that was written goes, so that what follows is readable.
            let _ = inner.file.set_len(place);
            let _ = inner.file.seek(SeekFrom::Start(place));
            return Err(error);
        }
        inner.end += frame.len() as u64;
        inner.places.insert(*key, place);
        Ok(place)
    }
}

/// The next body, if it is there and whole.
fn read_body(reader: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    if !filled(reader, &mut length)? {
        return Ok(None);
    }
    let length = u32::from_le_bytes(length);
    if length >= MOST_ENTRY {
        return Ok(None);
    }
    let mut body = Vec::new();
    // Not allocated before it is there: a damaged length says nothing.
    let read = reader.by_ref().take(u64::from(length)).read_to_end(&mut body)?;
    let mut sum = [0; SUM];
    let whole = read == length as usize && filled(reader, &mut sum)?;
    Ok((whole && blake3::hash(&body).as_bytes()[..SUM] == sum).then_some(body))
}

/// Key of the next entry, whether it is a failure, and its bytes in the file.
fn read_entry(reader: &mut impl Read) -> io::Result<Option<(Key, bool, u64)>> {
    let Some(body) = read_body(reader)? else {
        return Ok(None);
    };
    let Ok((key, outcome)) = postcard::from_bytes::<(Key, Outcome)>(&body) else {
        return Ok(None);
    };
    let failed = matches!(outcome, Outcome::Failed(_));
    Ok(Some((key, failed, (4 + body.len() + SUM) as u64)))
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
    use super::{Journal, Outcome, Value};
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

    #[test]
    fn whatever_the_length_at_which_it_is_cut_whole_entries_stay() {
        let folder = folder("journal");
        std::fs::create_dir_all(&folder).expect("it can be made");
        let path = folder.join("journal");
        let journal = Journal::open(&path, false, false).expect("it can be made");
        let places: Vec<u64> = (0..4_u8)
            .map(|key| {
                journal
                    .append(&[key; 16], &rows(u64::from(key)))
                    .expect("there is room")
            })
            .collect();
        drop(journal);
        let bytes = std::fs::read(&path).expect("it was just written");
        for length in 8..bytes.len() {
            std::fs::write(&path, &bytes[..length]).expect("it can be written");
            let journal = Journal::open(&path, false, false).expect("it is a journal");
            let ends = places.iter().skip(1).copied().chain([bytes.len() as u64]);
            let whole = ends.filter(|&end| end <= length as u64).count();
            for key in 0..4_u8 {
                let found = journal.find(&[key; 16]);
                assert_eq!(found.is_some(), usize::from(key) < whole, "{length}: {key}");
                if let Some(place) = found {
                    assert_eq!(journal.read(place).expect("it is whole"), rows(u64::from(key)));
                }
            }
            // It goes on behind the last whole entry.
            let place = journal.append(&[9; 16], &rows(9)).expect("there is room");
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
        journal
            .append(&[1; 16], &Outcome::Failed(String::from("no memory")))
            .expect("there is room");
        let second = journal.append(&[2; 16], &rows(2)).expect("there is room");
        assert!(
            Journal::open(&path, false, false).is_err(),
            "two programs work with one journal"
        );
        drop(journal);
        let again = Journal::open(&path, true, false).expect("it is a journal");
        assert!(again.find(&[1; 16]).is_none() && again.find(&[2; 16]).is_some());
        drop(again);
        let mut bytes = std::fs::read(&path).expect("it was just written");
        bytes[second as usize + 6] ^= 1;
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
}
