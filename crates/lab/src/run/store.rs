//! Finished runs on disk, one file each, named by a hash of all that determines them.

use super::leftovers::{PART, PROBE, remove_leftovers};
use crate::memory;
use fleetfoot_sim::output::RunOutput;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Changes whenever the same scenario and seed may give other results, or the file format changes: the build script
/// makes it from the sources.
const ENGINE: &str = concat!(
    "fleetfoot ",
    env!("CARGO_PKG_VERSION"),
    " ",
    env!("FLEETFOOT_ENGINE")
);

/// First bytes of a file; the last is the version of the format. A file of another one counts as not there, and its run is computed
/// again.
const MAGIC: &[u8; 8] = b"ffrun\0\0\x0a";

/// What stands behind [`MAGIC`]: how the run, which is postcard, is written.
const PLAIN: u8 = 0;
/// As one frame of zstd, by programs that have it (feature `parquet`); for others a compressed run counts as not there.
#[cfg(feature = "parquet")]
const ZSTD: u8 = 1;

/// The level of zstd: higher ones take many times as long for a twentieth less.
#[cfg(feature = "parquet")]
const LEVEL: i32 = 1;

/// The environment variable that sets how much a store may hold.
pub const LIMIT_VARIABLE: &str = "FLEETFOOT_STORE";

/// What a store may hold if nobody says otherwise (bytes).
const LIMIT: u64 = 8_000_000_000;

/// A folder of finished runs that holds no more than its limit: the oldest are removed for newer ones. Clones share what they know
/// of the folder.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    limit: u64,
    held: Arc<Mutex<Held>>,
}

/// What is in the folder.
#[derive(Debug, Default)]
struct Held {
    /// By age, the oldest first: names of files and their bytes.
    files: BTreeMap<u64, (String, u64)>,
    /// The age of each.
    ages: FxHashMap<String, u64>,
    /// Counts the files that came.
    newest: u64,
    bytes: u64,
    /// Removed to keep the limit, or never kept because one alone exceeds it.
    evicted: u64,
    evicted_bytes: u64,
}

impl Held {
    fn add(&mut self, name: String, bytes: u64) {
        self.forget(&name);
        self.newest += 1;
        self.ages.insert(name.clone(), self.newest);
        self.files.insert(self.newest, (name, bytes));
        self.bytes += bytes;
    }

    fn forget(&mut self, name: &str) {
        let age = self.ages.remove(name);
        if let Some((_, bytes)) = age.and_then(|age| self.files.remove(&age)) {
            self.bytes -= bytes;
        }
    }

    /// Takes the oldest files out until `more` bytes are within `limit`.
    fn make_room(&mut self, more: u64, limit: u64) -> Vec<String> {
        let mut gone = Vec::new();
        while self.bytes + more > limit
            && let Some((_, (name, bytes))) = self.files.pop_first()
        {
            self.ages.remove(&name);
            self.bytes -= bytes;
            self.evicted += 1;
            self.evicted_bytes += bytes;
            gone.push(name);
        }
        gone
    }
}

impl Store {
    /// Keeps runs in `folder`, which is made if it does not exist, up to the limit that the environment sets
    /// ([`LIMIT_VARIABLE`]), else 8 GB.
    ///
    /// # Errors
    /// The folder cannot be made or written, or the limit is no size.
    pub fn open(folder: &Path) -> io::Result<Store> {
        let limit = match std::env::var(LIMIT_VARIABLE) {
            Ok(text) => size(&text).ok_or_else(|| {
                let wanted = "a number and a unit are wanted: 500MB, 8GB, 2TiB";
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("{LIMIT_VARIABLE} is \"{text}\"; {wanted}"),
                )
            })?,
            Err(_) => LIMIT,
        };
        Store::with_limit(folder, limit)
    }

    /// Keeps at most `limit` bytes of runs in `folder`, which is made if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn with_limit(folder: &Path, limit: u64) -> io::Result<Store> {
        fs::create_dir_all(folder)?;
        let probe = folder.join(format!("{PROBE}{}", std::process::id()));
        fs::write(&probe, b"")?;
        fs::remove_file(&probe)?;
        remove_leftovers(folder);
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)?.flatten() {
            // What vanishes meanwhile was removed by another program.
            let (Ok(name), Ok(about)) = (entry.file_name().into_string(), entry.metadata()) else {
                continue;
            };
            if name.ends_with(SUFFIX) && about.is_file() {
                let modified = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((modified, name, about.len()));
            }
        }
        files.sort_unstable();
        let mut held = Held::default();
        for (_, name, bytes) in files {
            held.add(name, bytes);
        }
        let store = Store {
            folder: folder.to_owned(),
            limit,
            held: Arc::new(Mutex::new(held)),
        };
        store.make_room(0);
        Ok(store)
    }

    /// Key of a run: hash of the program's sources, resolved scenario and seed.
    pub fn key(identity: &str, seed: u64) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(ENGINE.as_bytes());
        hasher.update(&[0]);
        hasher.update(identity.as_bytes());
        hasher.update(&[0]);
        hasher.update(&seed.to_le_bytes());
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// Where the run with this key is kept.
    pub fn place(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}{SUFFIX}"))
    }

    /// The run with this key, if it is there and whole.
    pub fn load(&self, key: &str) -> Option<RunOutput> {
        let bytes = fs::read(self.place(key)).ok()?;
        let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
        if blake3::hash(body).as_bytes() != sum {
            return None;
        }
        match body.strip_prefix(MAGIC)?.split_first()? {
            (&PLAIN, run) => unpacked(run),
            #[cfg(feature = "parquet")]
            (&ZSTD, run) => unpacked(&zstd::decode_all(run).ok()?),
            _ => None,
        }
    }

    /// Keeps a run, compressed where the program can; the oldest are removed until it is within the limit. A run that exceeds it
    /// alone is not kept.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, key: &str, output: &RunOutput) -> io::Result<()> {
        // Not all of it as postcard first: a run of a million flows would need a third as much again.
        let mut bytes = MAGIC.to_vec();
        #[cfg(feature = "parquet")]
        {
            bytes.push(ZSTD);
            let compressed = io::BufWriter::new(zstd::Encoder::new(&mut bytes, LEVEL)?);
            let compressed = postcard::to_io(output, compressed).map_err(io::Error::other)?;
            compressed
                .into_inner()
                .map_err(io::IntoInnerError::into_error)?
                .finish()?;
        }
        #[cfg(not(feature = "parquet"))]
        {
            bytes.push(PLAIN);
            bytes = postcard::to_extend(output, bytes).map_err(io::Error::other)?;
        }
        let sum = blake3::hash(&bytes);
        bytes.extend_from_slice(sum.as_bytes());
        let length = bytes.len() as u64;
        if length > self.limit {
            let mut held = self.held();
            held.evicted += 1;
            held.evicted_bytes += length;
            return Ok(());
        }
        self.make_room(length);
        write_atomically(&self.place(key), &bytes)?;
        self.held().add(format!("{key}{SUFFIX}"), length);
        // Others wrote at the same time.
        self.make_room(0);
        Ok(())
    }

    /// Bytes of the runs that are kept.
    pub fn bytes(&self) -> u64 {
        self.held().bytes
    }

    /// Says how many runs were removed to keep the limit, if any were.
    pub fn remark(&self) -> Option<String> {
        let held = self.held();
        (held.evicted > 0).then(|| {
            format!(
                "{} holds at most {} of finished runs: {} of {}, the oldest, {} not kept. {LIMIT_VARIABLE} sets another limit.",
                self.folder.display(),
                memory::shown(self.limit),
                match held.evicted {
                    1 => String::from("1 run"),
                    runs => format!("{runs} runs"),
                },
                memory::shown(held.evicted_bytes),
                if held.evicted == 1 { "was" } else { "were" },
            )
        })
    }

    /// Removes the oldest runs until `more` bytes fit.
    fn make_room(&self, more: u64) {
        let gone = self.held().make_room(more, self.limit);
        for name in gone {
            // One that another program has removed is gone too; one that cannot be removed is looked at when the folder is next
            // opened.
            let _ = fs::remove_file(self.folder.join(name));
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the name of a run's file ends.
pub(super) const SUFFIX: &str = ".run";

fn unpacked(run: &[u8]) -> Option<RunOutput> {
    let (output, rest) = postcard::take_from_bytes(run).ok()?;
    rest.is_empty().then_some(output)
}

/// A size such as 500MB or 2 GiB, in bytes.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[end.len()..].to_ascii_lowercase().as_str() {
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "mib" => f64::from(1 << 20),
        "gib" => f64::from(1 << 30),
        "tib" => f64::from(1 << 30) * 1024.0,
        _ => return None,
    };
    let bytes = end.trim().parse::<f64>().ok()? * factor;
    (0.0..=1e18).contains(&bytes).then_some(bytes as u64)
}

/// The hash of everything that a run measured, hexadecimal: runs with the same hash have the same results. How many events the
/// engine took for them is left out.
pub fn digest(output: &RunOutput) -> String {
    let measured = RunOutput {
        events: 0,
        ..output.clone()
    };
    let bytes = postcard::to_stdvec(&measured).expect("a result has only values that can be written");
    blake3::hash(&bytes).to_hex().to_string()
}

/// Writes `bytes` to `path` by way of another name: the file is there whole or not at all, also if several threads write it at once.
///
/// # Errors
/// The file cannot be written or renamed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{number}{PART}", std::process::id()));
    let part = path.with_file_name(name);
    let written = fs::File::create(&part)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // The error that counts is the first one.
        let _ = fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::{MAGIC, Store, size};
    use crate::testing::folder;
    use fleetfoot_core::units::Bytes;
    use fleetfoot_sim::output::{FlowRecord, GroupOutput, RunOutput};

    #[test]
    fn a_run_reads_back_and_one_of_an_older_format_does_not() {
        let folder = folder("formats");
        let store = Store::open(&folder).expect("it can be made");
        let run = RunOutput {
            groups: vec![GroupOutput {
                flows: vec![FlowRecord {
                    bytes: Bytes(1 << 40),
                    ack_latency_sum: 0.1,
                    ..FlowRecord::default()
                }],
                ..GroupOutput::default()
            }],
            events: 7,
            ..RunOutput::default()
        };
        store.save("one", &run).expect("it can be written");
        let loaded = store.load("one").expect("it was just written");
        assert_eq!(format!("{loaded:?}"), format!("{run:?}"));

        let file = std::fs::read(store.place("one")).expect("it was just written");
        let mut older = file[..file.len() - 32].to_vec();
        older[MAGIC.len() - 1] = 7;
        let sum = blake3::hash(&older);
        older.extend_from_slice(sum.as_bytes());
        std::fs::write(store.place("one"), &older).expect("it can be written");
        assert!(store.load("one").is_none());
        std::fs::remove_dir_all(&folder).expect("it was made here");
    }

    fn run(number: u64) -> RunOutput {
        let flows = (0..200).map(|flow| FlowRecord {
            // As long for every number.
            bytes: Bytes((number + 100) << 20 | (flow * flow * 7919)),
            ..FlowRecord::default()
        });
        RunOutput {
            groups: vec![GroupOutput {
                flows: flows.collect(),
                ..GroupOutput::default()
            }],
            events: number,
            ..RunOutput::default()
        }
    }

    #[test]
    fn threads_that_keep_the_same_run_do_not_meet() {
        let folder = folder("same-key");
        let store = Store::open(&folder).expect("it can be made");
        let (begin, saved) = (std::sync::Barrier::new(8), run(3));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    begin.wait();
                    for _ in 0..40 {
                        store.save("one", &saved).expect("it can be written");
                    }
                });
            }
        });
        assert_eq!(store.load("one").map(|run| run.events), Some(3));
        assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 1);
        assert_eq!(store.bytes(), on_disk(&folder));
        std::fs::remove_dir_all(&folder).expect("it was made here");
    }

    fn on_disk(folder: &std::path::Path) -> u64 {
        let entries = std::fs::read_dir(folder).expect("it is there").flatten();
        entries
            .map(|entry| entry.metadata().map_or(0, |about| about.len()))
            .sum()
    }

    #[test]
    fn a_store_over_its_limit_removes_the_oldest_and_says_so() {
        let folder = folder("limit");
        let open = |limit| Store::with_limit(&folder, limit).expect("it can be made");
        let save = |store: &Store, number: u64| {
            let key = format!("run-{number:02}");
            store.save(&key, &run(number)).expect("it can be written");
            std::fs::metadata(store.place(&key)).map_or(0, |about| about.len())
        };
        let store = open(u64::MAX);
        let one = (0..12)
            .map(|number| save(&store, number))
            .max()
            .expect("there are twelve");
        assert_eq!(store.bytes(), on_disk(&folder));
        assert_eq!(open(0).bytes() + on_disk(&folder), 0);
        // Room for five, as their lengths are nearly the same.
        let limit = 5 * one;
        let store = open(limit);
        for number in 0..12 {
            save(&store, number);
            assert!(store.bytes() <= limit && store.bytes() == on_disk(&folder));
        }
        let kept = |store: &Store| {
            (0..12)
                .filter(|n| store.load(&format!("run-{n:02}")).is_some())
                .collect::<Vec<u64>>()
        };
        assert_eq!(kept(&store), [7, 8, 9, 10, 11]);
        assert_eq!(store.load("run-09").map(|run| run.events), Some(9));
        let remark = store.remark().expect("seven were removed");
        assert!(
            remark.contains(": 7 runs of ") && remark.lines().count() == 1,
            "{remark}"
        );

        // One that is written again is the newest, and is counted once.
        save(&store, 7);
        save(&store, 12);
        assert_eq!(kept(&store), [7, 9, 10, 11]);
        assert_eq!(store.bytes(), on_disk(&folder));

        // A smaller limit is kept from the begin, and what exceeds it alone is not kept.
        let store = open(one + one / 2);
        assert!(kept(&store).is_empty() && on_disk(&folder) == store.bytes());
        assert!(store.load("run-12").is_some());
        let store = open(one / 2);
        save(&store, 13);
        assert_eq!((store.bytes(), on_disk(&folder)), (0, 0));
        std::fs::remove_dir_all(&folder).expect("it was made here");
    }

    #[test]
    fn a_size_has_a_unit() {
        assert_eq!(size("8GB"), Some(8_000_000_000));
        assert_eq!(size(" 1.5 GiB "), Some(3 << 29));
        assert_eq!(size("0MB"), Some(0));
        for bad in ["", "8", "GB", "-1GB", "8 G", "inf GB", "nan MB"] {
            assert_eq!(size(bad), None, "{bad}");
        }
    }
}
