//! What is attached, as files below /sys/fs/bpf: it stays when the program ends, and is gone when the machine restarts.
//!
//! A folder for each program holds `link` (a congestion control) and `settings`, and for each place, by the number of its namespace
//! and of its interface, `place-N`, `link-N` and `counters-N`. `place-N` and `settings` are maps with one entry of text. A record is
//! pinned before what it records is done, so that a kill in between leaves something that `attach` completes and `detach` removes.

use super::Program;
use super::object::told;
use crate::Error;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::collections::{BTreeMap, HashSet};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lines `name=value`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record(pub(super) BTreeMap<String, String>);

/// The folder of one program, which nobody else changes meanwhile.
pub(super) struct Pins {
    folder: PathBuf,
    lock: Arc<Flock<File>>,
}

impl Pins {
    /// Makes the folder, and mounts the file system if it is not there.
    pub(super) fn make(program: Program) -> Result<Pins, Error> {
        mount()?;
        let folder = Path::new(ROOT).join(program.name());
        loop {
            let make = |folder: &Path| DirBuilder::new().recursive(true).mode(0o700).create(folder);
            make(Path::new(ROOT)).map_err(|cause| Error::new(format!("cannot make {ROOT}"), cause))?;
            is_roots()?;
            make(&folder).map_err(|cause| Error::new(format!("cannot make {}", folder.display()), cause))?;
            // Who detached meanwhile may have removed it.
            if let Some(pins) = Pins::open(program)? {
                return Ok(pins);
            }
        }
    }

    /// `None`: nothing of it is attached.
    pub(super) fn open(program: Program) -> Result<Option<Pins>, Error> {
        let root = match File::open(ROOT) {
            Ok(root) => root,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(Error::new(format!("cannot open {ROOT}"), cause)),
        };
        is_roots()?;
        let lock = Flock::lock(root, FlockArg::LockExclusive)
            .map_err(|(_, errno)| Error::new(format!("cannot lock {ROOT}"), errno))?;
        let lock = Arc::new(lock);
        let folder = Path::new(ROOT).join(program.name());
        Ok(folder.is_dir().then_some(Pins { folder, lock }))
    }

    /// The folder of another program, if it is there, behind the same lock.
    pub(super) fn beside(&self, program: Program) -> Option<Pins> {
        let folder = Path::new(ROOT).join(program.name());
        let lock = Arc::clone(&self.lock);
        folder.is_dir().then_some(Pins { folder, lock })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// What stands after `prefix` in names of files.
    pub(super) fn keys(&self, prefix: &str) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
        let mut keys: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| Some(name.strip_prefix(prefix)?.to_owned()))
            .collect();
        keys.sort();
        keys
    }

    pub(super) fn pin_link(&self, name: &str, mut link: Link) -> Result<(), Error> {
        link.pin(self.path(name))
            .map_err(|error| told(format!("cannot pin {}", self.path(name).display()), &error))
    }

    /// Takes a link away and removes its pin. The kernel lets go of a pin's link when it finds the time; this does not wait for that.
    pub(super) fn remove_link(&self, name: &str) -> Result<(), Error> {
        // libbpf writes a warning about one that is not there.
        if self.has(name)
            && let Ok(link) = Link::open(self.path(name))
        {
            // Where the kernel cannot (congestion controls before 6.10), the last descriptor takes it away.
            let _ = link.detach();
        }
        self.remove(name)
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        match std::fs::remove_file(self.path(name)) {
            Ok(()) => Ok(()),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(cause) => Err(Error::new(
                format!("cannot remove {}", self.path(name).display()),
                cause,
            )),
        }
    }

    /// Removes the folder if nothing is in it, and the one above.
    pub(super) fn tidy(self) {
        let _ = std::fs::remove_dir(&self.folder);
        let _ = std::fs::remove_dir(ROOT);
    }

    pub(super) fn write(&self, name: &str, record: &Record) -> Result<(), Error> {
        let what = || format!("cannot write {}", self.path(name).display());
        let text = record
            .bytes()
            .ok_or_else(|| Error::new(what(), io::ErrorKind::InvalidInput))?;
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let mut map = MapHandle::create(MapType::Array, Some("fleetfoot"), 4, RECORD, 1, &options)
            .map_err(|error| told(what(), &error))?;
        map.update(&[0; 4], &text, MapFlags::ANY)
            .map_err(|error| told(what(), &error))?;
        map.pin(self.path(name)).map_err(|error| told(what(), &error))
    }

    /// Writes over a record that is there, which at no moment is not there.
    pub(super) fn rewrite(&self, name: &str, record: &Record) -> Result<(), Error> {
        let what = || format!("cannot write {}", self.path(name).display());
        let text = record
            .bytes()
            .ok_or_else(|| Error::new(what(), io::ErrorKind::InvalidInput))?;
        let map = MapHandle::from_pinned_path(self.path(name)).map_err(|error| told(what(), &error))?;
        map.update(&[0; 4], &text, MapFlags::ANY)
            .map_err(|error| told(what(), &error))
    }

    /// `None`: it is not there, or nothing that was written here.
    pub(super) fn read(&self, name: &str) -> Option<Record> {
        let map = MapHandle::from_pinned_path(self.path(name)).ok()?;
        let bytes = map.lookup(&[0; 4], MapFlags::ANY).ok()??;
        Record::parse(&bytes)
    }

    /// Pins a map of a program.
    pub(super) fn pin_map(&self, name: &str, map: &mut libbpf_rs::MapMut<'_>) -> Result<(), Error> {
        map.pin(self.path(name))
            .map_err(|error| told(format!("cannot pin {}", self.path(name).display()), &error))
    }

    /// The counters, in their order; empty if they are not there.
    pub(super) fn counters(&self, name: &str) -> Vec<u64> {
        let Ok(map) = MapHandle::from_pinned_path(self.path(name)) else {
            return Vec::new();
        };
        (0..map.max_entries())
            .filter_map(|at| map.lookup(&at.to_ne_bytes(), MapFlags::ANY).ok()?)
            .filter_map(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?)))
            .collect()
    }
}

impl Record {
    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Record {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Its text with zeros behind it; `None`: it is too long.
    fn bytes(&self) -> Option<Vec<u8>> {
        let mut text = self.text().into_bytes();
        if text.len() > RECORD as usize {
            return None;
        }
        text.resize(RECORD as usize, 0);
        Some(text)
    }

    fn text(&self) -> String {
        let line = |(name, value): (&String, &String)| format!("{name}={value}\n");
        self.0.iter().map(line).collect()
    }

    /// Text up to the first zero byte.
    fn parse(bytes: &[u8]) -> Option<Record> {
        let text = bytes.split(|&byte| byte == 0).next()?;
        let text = std::str::from_utf8(text).ok()?;
        let line = |line: &str| {
            let (name, value) = line.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        text.lines().map(line).collect::<Option<_>>().map(Record)
    }
}

fn mount() -> Result<(), Error> {
    let is_there = || statfs(MOUNT).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC);
    if is_there() {
        return Ok(());
    }
    if ends_with_its_command() {
        return Err(Error::new(PRIVATE, io::ErrorKind::InvalidInput));
    }
    let name = c"bpf";
    // SAFETY: the strings, of which the last one holds options, end with zero and outlive the call.
    let done = unsafe {
        libc::mount(
            name.as_ptr(),
            c"/sys/fs/bpf".as_ptr(),
            name.as_ptr(),
            libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
            c"mode=0700".as_ptr().cast(),
        )
    };
    if done < 0 {
        return Err(Error::new(
            format!("cannot mount the file system bpf at {MOUNT}"),
            io::Error::last_os_error(),
        ));
    }
    Ok(())
}

/// Whether this process has mounts of its own, apart from those of the machine (or container), that nobody else sees.
fn ends_with_its_command() -> bool {
    // Who may not trace the first process may not read which namespace it has; but no two namespaces share the number of a mount.
    let mounts = |process: &str| std::fs::read_to_string(format!("/proc/{process}/mountinfo"));
    let (Ok(own), Ok(first)) = (mounts("self"), mounts("1")) else {
        return false;
    };
    let number = |line: &str| line.split(' ').next().map(str::to_owned);
    let first: HashSet<String> = first.lines().filter_map(number).collect();
    !own.lines().filter_map(number).any(|own| first.contains(&own))
}

/// The folder holds programs of the kernel: nobody but root may have made or may change it.
fn is_roots() -> Result<(), Error> {
    let found = match std::fs::symlink_metadata(ROOT) {
        Ok(found) => found,
        // Who detached has just removed it.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(Error::new(format!("cannot look at {ROOT}"), cause)),
    };
    if found.is_dir() && found.uid() == 0 && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(Error::new(
        format!("{ROOT} is not a folder of root that others cannot change: look who made it, and remove it"),
        io::ErrorKind::InvalidInput,
    ))
}

/// Where the file system is by convention.
const MOUNT: &str = "/sys/fs/bpf";
const ROOT: &str = "/sys/fs/bpf/fleetfoot";
const PRIVATE: &str = "/sys/fs/bpf is not mounted here, in mounts that end with this command (`ip netns exec` makes such): what is \
    attached could not be listed or detached any more. Run it from outside, with --namespace NAME or --pid PID";
/// Bytes of a record.
const RECORD: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::Record;

    #[test]
    fn a_record_is_read_as_it_was_written_and_rubbish_is_not_read() {
        let record = Record::default()
            .with("path", "/run/netns/a=b")
            .with("previous", "cubic");
        let mut bytes = record.text().into_bytes();
        bytes.resize(1024, 0);
        assert_eq!(Record::parse(&bytes), Some(record));
        assert_eq!(Record::parse(b"no equals sign\n"), None);
        assert_eq!(Record::parse(&[0xff, 0xfe]), None);
        assert_eq!(Record::parse(&[]), Some(Record::default()));
    }
}
