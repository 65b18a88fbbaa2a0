//! Network namespaces by name, by process, and by the number that the kernel gives each of them once.

use crate::Error;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The network namespace that something is attached in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// That of this process.
    Here,
    /// Made by `ip netns add`.
    Named(String),
    /// That of the process with this number.
    Process(u32),
}

/// A namespace that can be entered.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) cookie: u64,
    file: File,
}

impl Place {
    /// As the user would say it.
    pub fn label(&self) -> String {
        match self {
            Place::Here => String::from("this namespace"),
            Place::Named(name) => format!("namespace {name}"),
            Place::Process(id) => format!("namespace of process {id}"),
        }
    }

    pub(super) fn find(&self) -> Result<Found, Error> {
        let path = match self {
            Place::Here => PathBuf::from(HERE),
            Place::Named(name) if name.is_empty() || name.contains('/') || name.starts_with('.') => {
                return Err(Error::new(
                    format!("{name:?} is no name of a network namespace"),
                    io::ErrorKind::InvalidInput,
                ));
            }
            Place::Named(name) => Path::new(NAMED).join(name),
            Place::Process(id) => PathBuf::from(format!("/proc/{id}/ns/net")),
        };
        Found::open(&path).map_err(|error| match (self, error.cause.kind()) {
            (Place::Named(name), io::ErrorKind::NotFound) => {
                let mut names: Vec<_> = entries(NAMED).filter_map(|path| name_of(&path)).collect();
                names.sort();
                let there = match names.as_slice() {
                    [] => String::from("none is there; ip netns add makes one"),
                    names => format!("there are: {}", names.join(", ")),
                };
                Error::new(
                    format!("there is no network namespace {name:?} ({there})"),
                    io::ErrorKind::InvalidInput,
                )
            }
            (Place::Process(id), io::ErrorKind::NotFound) => {
                Error::new(format!("there is no process {id}"), io::ErrorKind::InvalidInput)
            }
            _ => error,
        })
    }
}

impl Found {
    fn open(path: &Path) -> Result<Found, Error> {
        let file =
            File::open(path).map_err(|cause| Error::new(format!("cannot open {}", path.display()), cause))?;
        let cookie = inside(&file, cookie)?;
        Ok(Found {
            path: path.to_owned(),
            cookie,
            file,
        })
    }

    /// The namespace with this number, if a name, a process or `path` leads to it.
    pub(super) fn by_cookie(cookie: u64, path: &Path) -> Option<Found> {
        Found::all([path.to_owned()]).find(|found| found.cookie == cookie)
    }

    /// Every namespace to which a name or a process leads, that of this thread, and those at `paths`, each once.
    fn all(paths: impl IntoIterator<Item = PathBuf>) -> impl Iterator<Item = Found> {
        let here = PathBuf::from(HERE);
        let named = entries(NAMED);
        let processes = entries("/proc")
            .filter(|path| name_of(path).is_some_and(|name| name.bytes().all(|digit| digit.is_ascii_digit())))
            .map(|path| path.join("ns/net"));
        let mut seen = Vec::new();
        std::iter::once(here)
            .chain(paths)
            .chain(named)
            .chain(processes)
            .filter(move |path| {
                // Each namespace is entered once.
                let inode = std::fs::metadata(path)
                    .map(|file| std::os::unix::fs::MetadataExt::ino(&file))
                    .ok();
                let new = inode.is_some_and(|inode| !seen.contains(&inode));
                seen.extend(inode.filter(|_| new));
                new
            })
            .filter_map(|path| Found::open(&path).ok())
    }

    /// Namespaces whose default is `control` and whose numbers are not `but`.
    ///
    /// A namespace that is made inherits the default of the first one, that of the machine (`tcp_sk_init`).
    pub(super) fn with_default(control: &str, but: &[String]) -> Vec<Found> {
        let has = |found: &Found| found.default_control().is_ok_and(|default| default == control);
        Found::all([])
            .filter(|found| !but.contains(&found.cookie.to_string()) && has(found))
            .collect()
    }

    /// The default that a new namespace gets, if the first process is in the first one.
    pub(super) fn default_of_new_ones() -> Option<String> {
        Found::open(Path::new("/proc/1/ns/net"))
            .ok()?
            .default_control()
            .ok()
    }

    /// As a user would say it.
    pub(super) fn label(&self) -> String {
        let parts: Vec<_> = self.path.iter().map(|part| part.to_string_lossy()).collect();
        match parts.as_slice() {
            _ if self.path == Path::new(HERE) => Place::Here.label(),
            [.., process, ns, _] if ns == "ns" => format!("namespace of process {process}"),
            _ => format!("namespace {}", name_of(&self.path).unwrap_or_default()),
        }
    }

    /// Runs `work` in the namespace.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
        inside(&self.file, work)
    }

    /// The congestion control that new connections have.
    pub(super) fn default_control(&self) -> Result<String, Error> {
        self.run(|| {
            std::fs::read_to_string(DEFAULT)
                .map(|name| name.trim().to_owned())
                .map_err(|cause| Error::new(format!("cannot read {DEFAULT}"), cause))
        })
    }

    pub(super) fn set_default_control(&self, name: &str) -> Result<(), Error> {
        self.run(|| {
            std::fs::write(DEFAULT, name)
                .map_err(|cause| Error::new(format!("cannot write {name} to {DEFAULT}"), cause))
        })
    }
}

fn inside<T: Send>(namespace: &File, work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            setns(namespace, CloneFlags::CLONE_NEWNET)
                .map_err(|errno| Error::new("cannot enter a network namespace", errno))?;
            work()
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The number of this thread's namespace, which no other has until the machine restarts.
fn cookie() -> Result<u64, Error> {
    let error = || {
        Error::new(
            "cannot ask for the number of a network namespace (Linux 5.14 or later knows it)",
            io::Error::last_os_error(),
        )
    };
    let fd = crate::offload::socket()?;
    let (mut cookie, mut size) = (0_u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: both pointers are to variables of the size that is given.
    let done = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut size,
        )
    };
    if done < 0 { Err(error()) } else { Ok(cookie) }
}

fn entries(folder: &str) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
}

fn name_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// The namespace of this thread.
const HERE: &str = "/proc/thread-self/ns/net";
/// Where `ip netns` keeps names.
const NAMED: &str = "/run/netns";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// From asm-generic/socket.h.
const SO_NETNS_COOKIE: libc::c_int = 71;
