//! Finished runs on disk, one file each, named by a hash of all that determines them.

use fleetfoot_sim::output::RunOutput;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Changes whenever the same scenario and seed may give other results, or the file format changes: the build script
/// makes it from the sources.
const ENGINE: &str = concat!(
    "fleetfoot ",
    env!("CARGO_PKG_VERSION"),
    " ",
    env!("FLEETFOOT_ENGINE")
);

/// First bytes of a file. The last is the version of the format (7: postcard): a file of another one counts as not there, and its
/// run is computed again.
const MAGIC: &[u8; 8] = b"ffrun\0\0\x07";

/// A folder of finished runs.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Keeps runs in `folder`, which is made if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn open(folder: &Path) -> io::Result<Store> {
        fs::create_dir_all(folder)?;
        let probe = folder.join(format!(".probe-{}", std::process::id()));
        fs::write(&probe, b"")?;
        fs::remove_file(&probe)?;
        Ok(Store {
            folder: folder.to_owned(),
        })
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
        self.folder.join(format!("{key}.run"))
    }

    /// The run with this key, if it is there and whole.
    pub fn load(&self, key: &str) -> Option<RunOutput> {
        let bytes = fs::read(self.place(key)).ok()?;
        let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
        if blake3::hash(body).as_bytes() != sum {
            return None;
        }
        let (output, rest) = postcard::take_from_bytes(body.strip_prefix(MAGIC)?).ok()?;
        rest.is_empty().then_some(output)
    }

    /// Keeps a run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, key: &str, output: &RunOutput) -> io::Result<()> {
        let mut bytes = postcard::to_extend(output, MAGIC.to_vec()).map_err(io::Error::other)?;
        let sum = blake3::hash(&bytes);
        bytes.extend_from_slice(sum.as_bytes());
        write_atomically(&self.place(key), &bytes)
    }
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

/// Writes `bytes` to `path` by way of another name: the file is there whole or not at all.
///
/// # Errors
/// The file cannot be written or renamed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
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
    use super::{MAGIC, Store};
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
        older[MAGIC.len() - 1] = 6;
        let sum = blake3::hash(&older);
        older.extend_from_slice(sum.as_bytes());
        std::fs::write(store.place("one"), &older).expect("it can be written");
        assert!(store.load("one").is_none());
        std::fs::remove_dir_all(&folder).expect("it was made here");
    }
}
