//! Where programs that are no congestion controls are attached: the tree of processes, or an interface.

use super::object::told;
use super::place::Found;
use super::{Program, Settings, missing};
use crate::Error;
use crate::ip::Facts;
use libbpf_rs::{AsRawLibbpf, Link, Object};
use nix::net::if_::if_nametoindex;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;

/// Where a program that is no congestion control is attached.
pub(super) enum Hook {
    /// The uppermost group of processes; connections are told apart by namespace.
    Processes(File),
    /// An interface, by number.
    Interface(String, u32),
}

impl Hook {
    pub(super) fn find(program: Program, found: &Found, settings: &Settings) -> Result<Hook, Error> {
        if program == Program::Options {
            return processes().map(Hook::Processes);
        }
        let invalid = |what: String| Error::new(what, io::ErrorKind::InvalidInput);
        let interface = settings
            .interface
            .clone()
            .ok_or_else(|| invalid(String::from("which interface is to mark is missing")))?;
        let (index, has_ethernet_header) = found.run(|| {
            let index = if_nametoindex(interface.as_str()).map_err(|_| {
                let names = nix::net::if_::if_nameindex();
                let names: Vec<String> = names
                    .iter()
                    .flat_map(|names| names.iter())
                    .map(|name| name.name().to_string_lossy().into_owned())
                    .collect();
                invalid(format!(
                    "there is no interface {interface:?} in that namespace, there are: {}",
                    names.join(", ")
                ))
            })?;
            Ok((index, Facts::of(&interface)?.has_ethernet_header()))
        })?;
        if !has_ethernet_header {
            return Err(invalid(format!(
                "{interface} has no Ethernet header, behind which marks are written (a tunnel): packets leave unmarked there"
            )));
        }
        Ok(Hook::Interface(interface, index))
    }

    /// What tells it from others of the same program.
    pub(super) fn key(&self, found: &Found) -> String {
        match self {
            Hook::Processes(_) => found.cookie.to_string(),
            Hook::Interface(_, index) => format!("{}-{index}", found.cookie),
        }
    }

    pub(super) fn attach(&self, program: Program, found: &Found, object: &Object) -> Result<Link, Error> {
        let loaded = object.progs_mut().next().ok_or_else(|| missing(program))?;
        let what = || format!("the kernel does not attach the program {}", program.name());
        match self {
            Hook::Processes(group) => loaded
                .attach_cgroup(group.as_raw_fd())
                .map_err(|error| told(what(), &error)),
            Hook::Interface(_, index) => {
                let index =
                    i32::try_from(*index).map_err(|_| Error::new(what(), io::ErrorKind::InvalidInput))?;
                let loaded = Loaded(loaded.as_libbpf_object());
                found.run(move || {
                    let loaded = loaded;
                    // SAFETY: the program is loaded and outlives the call; no options are given.
                    let link = unsafe {
                        libbpf_rs::libbpf_sys::bpf_program__attach_tcx(
                            loaded.0.as_ptr(),
                            index,
                            std::ptr::null(),
                        )
                    };
                    std::ptr::NonNull::new(link)
                        // SAFETY: libbpf gave this link to nobody else.
                        .map(|link| unsafe { Link::from_ptr(link) })
                        .ok_or_else(|| {
                            Error::new(
                                format!("{} (Linux 6.6 or later does)", what()),
                                io::Error::last_os_error(),
                            )
                        })
                })
            }
        }
    }
}

/// A loaded program on its way into another thread.
struct Loaded(std::ptr::NonNull<libbpf_rs::libbpf_sys::bpf_program>);

// SAFETY: the thread that lends it waits until the other one has ended.
unsafe impl Send for Loaded {}

/// The uppermost group of processes of the unified hierarchy.
fn processes() -> Result<File, Error> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let path = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&"cgroup2"))
        .and_then(|fields| fields.get(1).map(|path| (*path).to_owned()))
        .ok_or_else(|| {
            Error::new(
                "no cgroup2 is mounted: mount -t cgroup2 none /sys/fs/cgroup",
                io::ErrorKind::NotFound,
            )
        })?;
    File::open(&path).map_err(|cause| Error::new(format!("cannot open {path}"), cause))
}

/// Segments that TCP gives to an interface as one; more than one is cut after the marks are written.
pub(super) fn segments(interface: &str) -> Result<u32, Error> {
    let what = || format!("cannot ask for the properties of {interface}");
    let output = Command::new("ip")
        .args(["-d", "link", "show", "dev", interface])
        .output()
        .map_err(|cause| Error::new(format!("{} (Debian package iproute2)", what()), cause))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace().skip_while(|word| *word != "gso_max_segs");
    words
        .nth(1)
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| Error::new(what(), io::Error::other("no gso_max_segs is shown")))
}

/// Sets it.
pub(super) fn set_segments(interface: &str, count: u32) -> Result<(), Error> {
    crate::ip::ip(&format!("link set dev {interface} gso_max_segs {count}"))
}
