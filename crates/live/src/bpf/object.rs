//! The programs as clang compiled them, and their way into the kernel.

use super::{Program, Settings};
use crate::Error;
use libbpf_rs::{Object, ObjectBuilder, PrintLevel};
use std::io;
use std::sync::{Mutex, PoisonError};

/// An ELF file at an address that libbpf can read.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

macro_rules! elf {
    ($name:literal) => {{
        static FILE: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")));
        &FILE.0
    }};
}

impl Program {
    fn elf(self) -> &'static [u8] {
        match self {
            Program::Cdg => elf!("cdg"),
            Program::NewCwv => elf!("newcwv"),
            Program::Spread => elf!("spread"),
            Program::Options => elf!("options"),
            Program::Mark => elf!("mark"),
        }
    }
}

/// Loads `program`; `cookie`: of the network namespace whose connections it concerns, 0: of every one.
pub(super) fn load(program: Program, settings: &Settings, cookie: u64) -> Result<Object, Error> {
    let what = || format!("the kernel does not take the program {}", program.name());
    listen();
    let mut builder = ObjectBuilder::default();
    let mut open = builder
        .open_memory(program.elf())
        .map_err(|error| told(what(), &error))?;
    for mut map in open.maps_mut() {
        if map.name() == "trace" && !settings.trace {
            map.set_autocreate(false).map_err(|error| told(what(), &error))?;
        }
        if map.name().to_string_lossy().ends_with(".settings") {
            let bytes = settings.bytes(cookie);
            map.set_initial_value(&bytes)
                .map_err(|error| told(what(), &error))?;
        }
    }
    open.load().map_err(|error| told(what(), &error))
}

impl Settings {
    /// `struct settings` of `bpf/settings.h`.
    fn bytes(&self, cookie: u64) -> [u8; 32] {
        let words = [
            self.initial_window.unwrap_or(0),
            self.rto_min_us.unwrap_or(0),
            self.delayed_ack_max_us.unwrap_or(0),
            u32::from(self.length),
            u32::from(self.codepoint),
            u32::from(self.trace),
        ];
        let mut bytes = [0; 32];
        let (head, rest) = bytes.split_at_mut(8);
        head.copy_from_slice(&cookie.to_ne_bytes());
        for (place, word) in rest.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// What libbpf had to say since the last load.
static SAID: Mutex<String> = Mutex::new(String::new());

fn listen() {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, message| {
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < MOST_SAID {
            said.push_str(&message);
        }
    })));
}

/// An error of libbpf with the line in which it says why.
pub(super) fn told(what: impl Into<String>, error: &libbpf_rs::Error) -> Error {
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let line = said
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("libbpf:"));
    let kind = match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        libbpf_rs::ErrorKind::AlreadyExists => io::ErrorKind::AlreadyExists,
        libbpf_rs::ErrorKind::NotFound => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    let text = match line {
        Some(line) => format!("{error} ({line})"),
        None => error.to_string(),
    };
    Error::new(what, io::Error::new(kind, text))
}

/// Bytes of libbpf's messages that are kept.
const MOST_SAID: usize = 16 * 1024;
