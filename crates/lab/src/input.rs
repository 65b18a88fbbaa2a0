//! Reading the files that a user names: no device that never ends, no folder, nothing larger than stated, and never more than
//! memory allows.

use crate::memory;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest scenario file (bytes).
pub const MOST_SCENARIO: u64 = 8 << 20;

/// The longest trace of a link's rate (bytes).
pub const MOST_TRACE: u64 = 256 << 20;

/// The longest list of flows, or file of connection vectors (bytes).
pub const MOST_FLOWS: u64 = 4 << 30;

/// Opens a file that is to be read once, of at most `most` bytes. Pipes that somebody else has opened (`/dev/stdin`,
/// `<(command)`) may be read; pipes with a name may have nobody who writes, so they are refused.
///
/// # Errors
/// In words: it is not there, it is no file, it is too long.
pub fn open(path: &Path, most: u64) -> io::Result<Bounded> {
    if let Some(bytes) = provided(path) {
        return Ok(Bounded {
            source: Source::Memory(Cursor::new(bytes)),
            left: most,
            most,
            unseen: 0,
        });
    }
    let metadata = path.metadata()?;
    if let Some(what) = unusual(path, &metadata) {
        return Err(io::Error::other(what));
    }
    if metadata.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if metadata.len() > most {
        return Err(too_long(most));
    }
    Ok(Bounded {
        source: Source::Disk(File::open(path)?),
        left: most,
        most,
        unseen: 0,
    })
}

/// How the names of files begin that came with a description from another machine.
const PROVIDED: &str = "fleetfoot-";

/// Files that are held in memory, by name.
static HELD: Mutex<BTreeMap<PathBuf, Arc<[u8]>>> = Mutex::new(BTreeMap::new());

fn provided(path: &Path) -> Option<Arc<[u8]>> {
    // Names on disk do not cost the lock.
    let first = path.components().next()?;
    first
        .as_os_str()
        .to_str()
        .filter(|part| part.starts_with(PROVIDED))?;
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.get(path).cloned()
}

/// The name under which a file with this content travels: content and last part of its name.
pub(crate) fn travelling_name(path: &Path, bytes: &[u8]) -> String {
    let hash = blake3::hash(bytes).to_hex();
    let name = path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    format!("{PROVIDED}{}/{name}", &hash[..32])
}

/// From now on `name`, one of [`travelling_name`], is a file with these bytes, whatever is on disk.
pub(crate) fn provide(name: &str, bytes: &[u8]) {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.entry(PathBuf::from(name)).or_insert_with(|| bytes.into());
}

/// The text of such a file.
///
/// # Errors
/// As [`open`], and where the text is not UTF-8.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(path, most)?.read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// As [`text`], with the reason in words, for messages that name the file.
///
/// # Errors
/// As [`text`].
pub fn text_or_reason(path: &Path, most: u64) -> Result<String, String> {
    text(path, most).map_err(|error| format!("cannot read {}: {}", path.display(), reason(&error)))
}

/// Why a file cannot be read, in words.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => String::from("there is no such file"),
        ErrorKind::PermissionDenied => String::from("permission denied"),
        ErrorKind::IsADirectory => String::from("it is a folder"),
        _ => error.to_string(),
    }
}

/// What a path leads to that is neither file nor folder nor open pipe.
#[cfg(unix)]
fn unusual(path: &Path, metadata: &std::fs::Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = metadata.file_type();
    let named = || path.symlink_metadata().is_ok_and(|own| own.file_type().is_fifo());
    if kind.is_char_device() {
        // A terminal on the standard input is read to its end.
        let input = path == Path::new("/dev/stdin") || path.starts_with("/dev/fd");
        (!input).then_some("it is a device, not a file")
    } else if kind.is_block_device() {
        Some("it is a device, not a file")
    } else if kind.is_socket() {
        Some("it is a socket, not a file")
    } else if kind.is_fifo() && named() {
        Some("it is a pipe with a name, not a file: give /dev/stdin and send it there")
    } else {
        None
    }
}

#[cfg(not(unix))]
fn unusual(_: &Path, _: &std::fs::Metadata) -> Option<&'static str> {
    None
}

fn too_long(most: u64) -> io::Error {
    io::Error::other(format!(
        "it is longer than {}, the most that is read",
        memory::shown(most)
    ))
}

/// A file that is read up to its bound and while there is memory.
#[derive(Debug)]
pub struct Bounded {
    source: Source,
    left: u64,
    most: u64,
    /// Bytes read since memory was looked at.
    unseen: u64,
}

#[derive(Debug)]
enum Source {
    Disk(File),
    Memory(Cursor<Arc<[u8]>>),
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = match &mut self.source {
            Source::Disk(file) => file.read(buffer)?,
            Source::Memory(bytes) => bytes.read(buffer)?,
        };
        self.left = self
            .left
            .checked_sub(length as u64)
            .ok_or_else(|| too_long(self.most))?;
        self.unseen += length as u64;
        if self.unseen >= BETWEEN_LOOKS {
            self.unseen = 0;
            if memory::reached() {
                return Err(io::Error::other(format!(
                    "what it holds does not fit into the memory this program may take ({}; --memory changes it)",
                    memory::shown(memory::ceiling())
                )));
            }
        }
        Ok(length)
    }
}

/// Bytes read between two looks at memory.
const BETWEEN_LOOKS: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::text;
    use std::path::Path;

    #[test]
    fn what_is_too_long_or_never_ends_is_refused() {
        let file = std::env::temp_dir().join(format!("fleetfoot-input-{}", std::process::id()));
        std::fs::write(&file, "12345").expect("the temporary folder can be written");
        assert_eq!(text(&file, 5).expect("it fits"), "12345");
        let message = text(&file, 4).expect_err("one byte too many").to_string();
        assert!(message.contains("longer than"), "{message}");
        std::fs::remove_file(&file).expect("it was made here");
        assert!(text(&std::env::temp_dir(), 5).is_err());
        if cfg!(unix) {
            let message = text(Path::new("/dev/zero"), 5)
                .expect_err("it never ends")
                .to_string();
            assert!(message.contains("device"), "{message}");
        }
    }
}
