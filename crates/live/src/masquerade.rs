//! The command reaches the networks of this machine, and nothing of that is left.
//!
//! Packets of the link get this machine's address when they leave it (`nft`), and interfaces forward. Both belong to the machine
//! and not to a namespace of ours, so they are undone three times over: when the run ends; by a process that waits for the end of
//! this one, also of a kill; and, if that is killed too, by the next start, which reports it. A folder in `/run` notes which
//! interfaces are in use (each file is locked by its process) and how the switches stood before the first of them.

use crate::Error;
use crate::ip::batch;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{DirBuilder, File, OpenOptions, read_dir, read_to_string, remove_dir, remove_file, write};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Masquerading for the links of this process.
#[derive(Debug)]
pub struct Masquerade {
    folder: PathBuf,
    /// What a start before this one left behind and this one has undone.
    pub undone: Vec<String>,
    /// Closed at the end, by whatever end.
    writer: Option<PipeWriter>,
    guardian: libc::pid_t,
}

/// Masquerading for one interface, until this is dropped.
#[derive(Debug)]
pub struct Masqueraded<'a> {
    masquerade: &'a Masquerade,
    instance: Option<Flock<File>>,
}

impl Masquerade {
    /// Undoes what a killed start has left, and starts the process that waits for the end of this one. Call it before any thread is
    /// started, in the namespace whose networks are to be reached.
    ///
    /// # Errors
    /// `nft` is not there, or nothing can be noted.
    pub fn prepare() -> Result<Masquerade, Error> {
        nft("list tables")?;
        let folder = folder()?;
        let undone = sweep(&folder)?;
        let (reader, writer) = io::pipe().map_err(|cause| Error::new("cannot make a pipe", cause))?;
        // SAFETY: this process has one thread, so the copy of it may do what a program may.
        let guardian = unsafe { libc::fork() };
        if guardian == 0 {
            drop(writer);
            guard(reader, &folder);
        }
        if guardian < 0 {
            return Err(Error::new("cannot start a process", io::Error::last_os_error()));
        }
        Ok(Masquerade {
            folder,
            undone,
            writer: Some(writer),
            guardian,
        })
    }

    /// Undoes what a killed start has left in the namespace of this thread, and says what; a start that goes on is left alone.
    pub fn repair() -> Vec<String> {
        let Ok(own) = Path::new("/proc/thread-self/ns/net").metadata() else {
            return Vec::new();
        };
        let name = format!("fleetfoot-{}", own.ino());
        let noted = [PathBuf::from("/run"), std::env::temp_dir()]
            .iter()
            .any(|parent| parent.join(&name).join(LOCK).exists());
        match noted {
            true => folder().and_then(|folder| sweep(&folder)).unwrap_or_default(),
            false => Vec::new(),
        }
    }

    /// Begins for what is behind `interface`, whose name begins with "ff": the networks or addresses `four` and `six`.
    ///
    /// # Errors
    /// `nft` refuses, or nothing can be noted.
    pub fn begin(
        &self,
        interface: &str,
        four: Option<&str>,
        six: Option<&str>,
    ) -> Result<Masqueraded<'_>, Error> {
        let lock = lock(&self.folder)?;
        let path = self.folder.join(interface);
        let file = File::create(&path).map_err(|cause| note(&path, cause))?;
        let instance = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, errno)| note(&path, errno.into()))?;
        // From here on a failure is undone like an end.
        let begun = Masqueraded {
            masquerade: self,
            instance: Some(instance),
        };
        let done = switch_on(&self.folder).and_then(|()| {
            let table = |family: &str, network: &str| {
                format!(
                    "table {family} fleetfoot_{interface} {{\nchain out {{\ntype nat hook postrouting priority 100\n\
                     {family} saddr {network} oifname != \"{interface}\" masquerade\n}}\n}}\n"
                )
            };
            if let Some(four) = four {
                nft(&table("ip", four))?;
            }
            if let Some(six) = six {
                // Where there is no IPv6, there is none beyond this machine.
                let _ = nft(&table("ip6", six));
            }
            Ok(())
        });
        // An end takes the lock again.
        drop(lock);
        done.map(|()| begun)
    }
}

impl Drop for Masqueraded<'_> {
    fn drop(&mut self) {
        // Without its lock the note is that of a link that has ended.
        drop(self.instance.take());
        let _ = sweep(&self.masquerade.folder);
    }
}

impl Drop for Masquerade {
    fn drop(&mut self) {
        drop(self.writer.take());
        // SAFETY: takes a number and a pointer that may be null; the process is a child of this one.
        unsafe { libc::waitpid(self.guardian, std::ptr::null_mut(), 0) };
    }
}

/// Waits until the other end of the pipe is closed, and undoes what is left then.
fn guard(mut reader: PipeReader, folder: &Path) -> ! {
    // SAFETY: all calls take numbers or constant strings. The pipe becomes descriptor 3; what else this copy of the program has open
    // is closed, so that nobody waits for it.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"fleetfoot-undo".as_ptr());
        // Those that end the program, and the one that asks a proxy for its report: all processes of a unit get it.
        for signal in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGQUIT,
            libc::SIGUSR1,
        ] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for descriptor in 0..3 {
            libc::dup2(null, descriptor);
        }
        let pipe = reader.as_raw_fd() as u32;
        libc::syscall(libc::SYS_close_range, 3_u32, pipe.saturating_sub(1).max(2), 0_u32);
        libc::syscall(libc::SYS_close_range, pipe + 1, u32::MAX, 0_u32);
    }
    let mut nothing = [0; 1];
    while matches!(reader.read(&mut nothing), Err(error) if error.kind() == io::ErrorKind::Interrupted) {}
    let _ = sweep(folder);
    // SAFETY: takes a number. What the program would do at its end is not this copy's.
    unsafe { libc::_exit(0) }
}

/// Undoes what links left that have ended: what was undone.
fn sweep(folder: &Path) -> Result<Vec<String>, Error> {
    let _lock = lock(folder)?;
    let mut undone = Vec::new();
    let mut in_use = false;
    for entry in read_dir(folder).map_err(|cause| note(folder, cause))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with("ff") {
            continue;
        }
        let path = entry.path();
        let Ok(file) = File::open(&path) else { continue };
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Err((_, Errno::EWOULDBLOCK)) => in_use = true,
            Err(_) => {}
            Ok(_ended) => {
                for family in ["ip", "ip6"] {
                    if nft(&format!("delete table {family} fleetfoot_{name}")).is_ok() {
                        undone.push(format!("nft table {family} fleetfoot_{name}"));
                    }
                }
                let _ = remove_file(&path);
            }
        }
    }
    let switches = folder.join(SWITCHES);
    if !in_use && let Ok(text) = read_to_string(&switches) {
        // Who has switched forwarding on for all interfaces since wants it on for each.
        let wanted = text.lines().any(|line| line == format!("{WHOLE} 0"))
            && read_to_string(sysctl(WHOLE)).is_ok_and(|now| now.trim() == "1");
        for line in text.lines() {
            // One that somebody else has changed since is theirs, and one of an interface that is gone is nobody's.
            if let Some((name, before)) = line.split_once(' ')
                && name != WHOLE
                && !(wanted && name.starts_with("net/ipv4"))
                && read_to_string(sysctl(name)).is_ok_and(|now| now.trim() == "1")
                && write(sysctl(name), before).is_ok()
            {
                undone.push(format!("{} is {before} again", name.replace('/', ".")));
            }
        }
        remove_file(&switches).map_err(|cause| note(&switches, cause))?;
    }
    if !in_use {
        let _ = remove_file(folder.join(LOCK));
        let _ = remove_dir(folder);
    }
    Ok(undone)
}

/// Interfaces forward; how they stood before is noted first.
fn switch_on(folder: &Path) -> Result<(), Error> {
    let mut names = Vec::new();
    let interfaces = sysctl("net/ipv4/conf");
    for entry in read_dir(&interfaces)
        .map_err(|cause| note(&interfaces, cause))?
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !matches!(name.as_str(), "all" | "default" | "lo") {
            names.push(format!("net/ipv4/conf/{name}/forwarding"));
        }
    }
    // A host that forwards no longer listens to routers: where it has its default route from them, it stays as it is.
    if !routers_are_heard() {
        names.push("net/ipv6/conf/all/forwarding".into());
    }
    let path = folder.join(SWITCHES);
    let mut switches = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .map_err(|cause| note(&path, cause))?;
    // Only to be compared with at the end: it is not changed here.
    let whole = read_to_string(sysctl(WHOLE)).map_err(|cause| note(Path::new(WHOLE), cause))?;
    writeln!(switches, "{WHOLE} {}", whole.trim()).map_err(|cause| note(&path, cause))?;
    for name in names {
        if !read_to_string(sysctl(&name)).is_ok_and(|value| value.trim() == "0") {
            continue;
        }
        let link = name.contains("/ff");
        // What is an interface of ours goes with it.
        if !link {
            writeln!(switches, "{name} 0").map_err(|cause| note(&path, cause))?;
        }
        let done = write(sysctl(&name), "1");
        if name.starts_with("net/ipv4") {
            done.map_err(|cause| Error::new(format!("cannot switch {} on", name.replace('/', ".")), cause))?;
        }
    }
    Ok(())
}

/// Whether a default route of IPv6 came from a router's advertisement.
fn routers_are_heard() -> bool {
    let text = read_to_string("/proc/thread-self/net/ipv6_route").unwrap_or_default();
    text.lines().any(|line| {
        let flags = line
            .split_whitespace()
            .nth(8)
            .and_then(|flags| u32::from_str_radix(flags, 16).ok());
        flags.is_some_and(|flags| flags & DEFAULT_FROM_ROUTER == DEFAULT_FROM_ROUTER)
    })
}

fn sysctl(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name)
}

/// The folder of this network namespace, for root in `/run`; nobody else may write into it.
fn folder() -> Result<PathBuf, Error> {
    let own = Path::new("/proc/thread-self/ns/net");
    let namespace = own.metadata().map_err(|cause| note(own, cause))?.ino();
    let mut last = None;
    for parent in [PathBuf::from("/run"), std::env::temp_dir()] {
        let folder = parent.join(format!("fleetfoot-{namespace}"));
        let made = DirBuilder::new().mode(0o700).create(&folder);
        match folder.symlink_metadata() {
            Ok(found)
                if found.is_dir()
                    && found.uid() == nix::unistd::geteuid().as_raw()
                    && found.permissions().mode() & 0o077 == 0 =>
            {
                return Ok(folder);
            }
            Ok(_) => last = Some(note(&folder, io::ErrorKind::PermissionDenied.into())),
            Err(cause) => last = Some(note(&folder, made.err().unwrap_or(cause))),
        }
    }
    Err(last.unwrap_or_else(|| note(own, io::ErrorKind::NotFound.into())))
}

/// Only one process at a time reads and changes the notes.
fn lock(folder: &Path) -> Result<Flock<File>, Error> {
    let path = folder.join(LOCK);
    loop {
        // The one before may have removed both.
        let _ = DirBuilder::new().mode(0o700).create(folder);
        let file = File::create(&path).map_err(|cause| note(&path, cause))?;
        let file =
            Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| note(&path, errno.into()))?;
        let own = file.metadata().map_err(|cause| note(&path, cause))?.ino();
        if path.metadata().is_ok_and(|found| found.ino() == own) {
            return Ok(file);
        }
    }
}

fn note(path: &Path, cause: io::Error) -> Error {
    Error::new(
        format!("cannot note in {} what masquerading changes", path.display()),
        cause,
    )
}

/// Runs lines of `nft`.
fn nft(lines: &str) -> Result<(), Error> {
    let missing = "--masquerade needs nft (Debian package nftables), which cannot be run";
    batch(Command::new("nft").args(["-f", "-"]), lines, missing)
}

/// How the switches stood.
const SWITCHES: &str = "switches";
/// Forwarding of all interfaces of IPv4 (`net.ipv4.ip_forward`).
const WHOLE: &str = "net/ipv4/conf/all/forwarding";
/// What is locked by whoever reads or changes the notes.
const LOCK: &str = "lock";
/// `RTF_DEFAULT` and `RTF_ADDRCONF` of linux/ipv6_route.h.
const DEFAULT_FROM_ROUTER: u32 = 0x0005_0000;
