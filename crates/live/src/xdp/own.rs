//! What is for this machine itself, where the program in the kernel sees it: it leaves that to the kernel, and counts it.

use super::calls::{map, remove, update};
use super::memory::Mapping;
use std::collections::HashSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// The addresses by which an interface and this machine are known.
pub(crate) struct Addresses {
    /// The Ethernet address of the interface.
    pub(crate) hardware: [u8; 6],
    /// Destinations whose packets are the kernel's.
    pub(crate) destinations: HashSet<IpAddr>,
}

/// The same in maps of the kernel.
pub(super) struct Own {
    /// A hash table whose keys are destinations ([`key`]).
    destinations: OwnedFd,
    /// Those that are in it.
    known: HashSet<IpAddr>,
    /// An array of one value, which is shared with the kernel: the Ethernet address at [`HARDWARE`], what was left to the kernel at [`FRAMES`] and
    /// [`BYTES`].
    facts: OwnedFd,
    shared: Mapping,
    /// What was counted up to the last call of [`Own::passed`].
    passed: [u64; 2],
}

impl Own {
    /// Maps of what `addresses` has.
    ///
    /// # Errors
    /// A right is missing, or these are more addresses than fit.
    pub(super) fn new(addresses: &Addresses) -> io::Result<Own> {
        const ARRAY: u32 = 2;
        const HASH: u32 = 1;
        const NO_PREALLOC: u32 = 1;
        const MMAPABLE: u32 = 1 << 10;
        let facts = map(ARRAY, [4, FACTS as u32], 1, MMAPABLE)?;
        let mut own = Own {
            destinations: map(HASH, [KEY as u32, 1], MOST, NO_PREALLOC)?,
            known: HashSet::new(),
            shared: Mapping::new(FACTS, facts.as_raw_fd(), 0)?,
            facts,
            passed: [0; 2],
        };
        own.set(addresses)?;
        Ok(own)
    }

    /// The addresses are these from now on; those that stay are known all the time.
    ///
    /// # Errors
    /// Not all of them fit: those that do not are tried again at the next call.
    pub(super) fn set(&mut self, addresses: &Addresses) -> io::Result<()> {
        let mut hardware = [0; 8];
        hardware[..6].copy_from_slice(&addresses.hardware);
        self.at(HARDWARE)
            .store(u64::from_ne_bytes(hardware), Ordering::Relaxed);
        let table = &self.destinations;
        // The old ones make room first.
        self.known.retain(|address| {
            addresses.destinations.contains(address) || remove(table, &key(address)).is_err()
        });
        let mut done = Ok(());
        for address in &addresses.destinations {
            if self.known.contains(address) {
                continue;
            }
            match update(table, &key(address), &[1]) {
                Ok(()) => drop(self.known.insert(*address)),
                Err(cause) => done = Err(cause),
            }
        }
        done
    }

    /// Frames that were left to the kernel, and their bytes, since the last call.
    pub(super) fn passed(&mut self) -> [u64; 2] {
        let now = [FRAMES, BYTES].map(|at| self.at(at).load(Ordering::Relaxed));
        let before = std::mem::replace(&mut self.passed, now);
        [now[0] - before[0], now[1] - before[1]]
    }

    fn at(&self, place: i16) -> &AtomicU64 {
        // SAFETY: an aligned place of memory that the kernel and this process change atomically only, and that lives as long as this.
        unsafe { AtomicU64::from_ptr(self.shared.at(place as usize).cast()) }
    }

    /// The table of destinations, and the array, for the program.
    pub(super) fn maps(&self) -> [i32; 2] {
        [self.destinations.as_raw_fd(), self.facts.as_raw_fd()]
    }
}

/// A destination as the program looks it up: the version as a number of the machine, then the address as it is in the packet, zeros behind it.
fn key(address: &IpAddr) -> [u8; KEY] {
    let mut key = [0; KEY];
    let (version, rest) = key.split_at_mut(4);
    match address {
        IpAddr::V4(four) => {
            version.copy_from_slice(&4_u32.to_ne_bytes());
            rest[..4].copy_from_slice(&four.octets());
        }
        IpAddr::V6(six) => {
            version.copy_from_slice(&6_u32.to_ne_bytes());
            rest.copy_from_slice(&six.octets());
        }
    }
    key
}

/// Bytes of a key.
pub(super) const KEY: usize = 20;
/// Places in the array's value.
pub(super) const HARDWARE: i16 = 0;
pub(super) const FRAMES: i16 = 8;
pub(super) const BYTES: i16 = 16;
/// Bytes of the array's value.
const FACTS: usize = 24;
/// Addresses that fit.
const MOST: u32 = 65_536;
