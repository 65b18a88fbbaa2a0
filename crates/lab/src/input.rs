//! Reading the files that a user names: no device that never ends, no folder, nothing larger than stated, and never more than
//! memory allows.

use crate::memory;
use crate::run::write_atomically;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
    Ok(Bounded {
        source: Source::Disk(on_disk(path, most)?),
        left: most,
        most,
        unseen: 0,
    })
}

/// Opens a file on disk of at most `most` bytes.
fn on_disk(path: &Path, most: u64) -> io::Result<File> {
    if let Some(bounds) = BOUNDS.get().filter(|bounds| !bounds.hold(path)) {
        return Err(bounds.refusal());
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
    File::open(path)
}

/// What this process reads from disk, if not everything.
static BOUNDS: OnceLock<Bounds> = OnceLock::new();

/// From now on this process reads only `files` and what is below `folder`, whatever names a scenario gives: those of a server come
/// from anybody who reaches it, and messages quote lines. Files in memory are as before. The first call counts.
///
/// # Errors
/// There is no such folder or file.
pub fn confine(folder: Option<&Path>, files: &[PathBuf]) -> io::Result<()> {
    let bounds = Bounds::of(folder, files)?;
    let _ = BOUNDS.set(bounds);
    Ok(())
}

/// A folder and single files, without links in their paths.
#[derive(Debug)]
struct Bounds {
    folder: Option<PathBuf>,
    files: Vec<PathBuf>,
}

impl Bounds {
    fn of(folder: Option<&Path>, files: &[PathBuf]) -> io::Result<Bounds> {
        // The folder of a name alone is the empty path.
        let place = |path: &Path| Path::new(".").join(path).canonicalize();
        Ok(Bounds {
            folder: folder.map(place).transpose()?,
            files: files.iter().map(|file| place(file)).collect::<io::Result<_>>()?,
        })
    }

    /// Whether `path` leads to something that may be read. Of what is not there the path itself decides, so that a name elsewhere
    /// does not show whether there is such a file.
    fn hold(&self, path: &Path) -> bool {
        let below = |place: &Path| {
            self.folder
                .as_ref()
                .is_some_and(|folder| place.starts_with(folder))
        };
        match path.canonicalize() {
            Ok(place) => below(&place) || self.files.contains(&place),
            Err(_) => std::path::absolute(path).is_ok_and(|place| below(&without_dots(&place))),
        }
    }

    fn refusal(&self) -> io::Error {
        io::Error::other(match &self.folder {
            Some(folder) => format!("only files below {} are read", folder.display()),
            None => {
                String::from("no file is read: `fleetfoot serve FILE` reads those below the folder of FILE")
            }
        })
    }
}

/// The path without `.` and `..`.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
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

/// Files in memory for as long as this lives, in a folder of their own: what stands there is read and written as on disk
/// ([`open`], [`write()`]), on machines that have no disk too.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

/// Number of the next [`Folder`].
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Folder {
    /// A folder with these files, by name. A name is one part of a path.
    pub fn with<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Folder {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = Folder {
            path: PathBuf::from(format!("{PROVIDED}folder-{number}")),
        };
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        // The folder itself: what is in it is in memory.
        held.insert(folder.path.clone(), [].into());
        for (name, bytes) in files {
            held.insert(folder.path.join(name), bytes.into());
        }
        drop(held);
        folder
    }

    /// What the names of its files begin with.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|name, _| !name.starts_with(&self.path));
    }
}

/// Whether `path` names something in a [`Folder`].
pub fn is_in_memory(path: &Path) -> bool {
    path.parent().is_some_and(|folder| provided(folder).is_some())
}

/// Writes a file, on disk by way of another name, so that it is there whole or not at all.
///
/// # Errors
/// The file cannot be written or renamed.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if !is_in_memory(path) {
        return write_atomically(path, bytes);
    }
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.insert(path.to_owned(), bytes.into());
    Ok(())
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
    use super::{Bounds, Folder, is_in_memory, text, write};
    use std::path::Path;

    #[test]
    fn a_folder_in_memory_is_read_and_written_and_goes() {
        let [one, other] = ["1", "2"].map(|text| Folder::with([("a", text.as_bytes())]));
        let [first, second] = [&one, &other].map(|folder| folder.path().join("a"));
        assert_eq!(text(&first, 5).expect("it is there"), "1");
        assert_eq!(text(&second, 5).expect("it is there"), "2");
        write(&first, b"345").expect("memory can be written");
        assert_eq!(text(&first, 5).expect("it is there"), "345");
        assert!(text(&first, 2).is_err());
        assert!(is_in_memory(&first) && !is_in_memory(Path::new("fleetfoot-out/a")));
        let gone = one.path().join("b");
        write(&gone, b"6").expect("memory can be written");
        drop(one);
        assert!(text(&gone, 5).is_err() && text(&first, 5).is_err());
        assert_eq!(text(&second, 5).expect("it is there"), "2");
    }

    #[test]
    fn a_server_reads_below_its_folder_and_what_its_file_names() {
        let root = std::env::temp_dir().join(format!("fleetfoot-bounds-{}", std::process::id()));
        let inner = root.join("inner");
        std::fs::create_dir_all(&inner).expect("the temporary folder can be written");
        for name in ["outside", "base", "inner/own"] {
            std::fs::write(root.join(name), "text").expect("the temporary folder can be written");
        }
        let bounds = Bounds::of(Some(&inner), &[root.join("base")]).expect("they are there");
        for held in ["inner/own", "inner/../inner/own", "base", "inner/nothing"] {
            assert!(bounds.hold(&root.join(held)), "{held}");
        }
        for other in [
            "outside",
            "inner/../outside",
            "nothing",
            "inner/../nothing",
            "inner-too/own",
        ] {
            assert!(!bounds.hold(&root.join(other)), "{other}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.join("outside"), inner.join("link")).expect("a link can be made");
            assert!(!bounds.hold(&inner.join("link")));
        }
        assert!(bounds.refusal().to_string().starts_with("only files below"));
        let none = Bounds::of(None, &[]).expect("nothing is looked for");
        assert!(!none.hold(&inner.join("own")) && none.refusal().to_string().contains("no file"));
        std::fs::remove_dir_all(root).expect("it was made here");
    }

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
