//! Hardware addresses of next hops: those that the kernel knows.
//!
//! The kernel owns the addresses of the interfaces, answers ARP and neighbour discovery, and asks for the addresses of others. This
//! follows its table over rtnetlink and has it ask where an address is missing (`NTF_USE`, as if the kernel itself had a packet
//! for that neighbour). A few packets wait for the answer. An entry that is in use and that the kernel has not confirmed lately is
//! confirmed in the same way.

use crate::Error;
use crate::frames::Seen;
use crate::netlink::{Message, NEIGHBOUR_BYTES, Request, messages};
use fleetfoot_core::time::{Duration, Instant};
use foldhash::fast::RandomState;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// An address on the link of the interface with this number.
pub(super) type Key = (u32, IpAddr);

/// The kernel's table, as far as it is known here.
pub(super) struct Neighbours {
    socket: Socket,
    buffer: Vec<u8>,
    known: HashMap<Key, Known, RandomState>,
    pending: HashMap<Key, Pending, RandomState>,
    /// When entries are looked through next.
    tick: Instant,
    /// One that the kernel has not heard of lately is in use.
    unconfirmed: bool,
}

struct Known {
    hardware: [u8; 6],
    /// The kernel has not heard of the neighbour lately.
    stale: bool,
    /// The entry was needed since entries were last looked through.
    used: bool,
}

struct Pending {
    since: Instant,
    held: Vec<Held>,
}

/// A packet that waits for the hardware address of its next hop.
pub(super) struct Held {
    /// The interface by which it came, and that by which it leaves.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) frame: Vec<u8>,
    pub(super) seen: Seen,
    /// The checksum of its transport is still to be made.
    pub(super) unfinished: bool,
}

/// What the kernel reported.
#[derive(Default)]
pub(super) struct News {
    /// Packets whose next hop has the address with them.
    pub(super) resolved: Vec<(Held, [u8; 6])>,
    /// Packets whose next hop does not answer.
    pub(super) given_up: Vec<Held>,
    /// Interfaces, their addresses or their settings have changed.
    pub(super) interfaces: bool,
}

impl Neighbours {
    /// Begins to follow the table of the network namespace of this thread.
    ///
    /// # Errors
    /// The kernel does not give a socket for it.
    pub(super) fn follow() -> Result<Neighbours, Error> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind(&SocketAddr::new(0, GROUPS))?;
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        let neighbours = Neighbours {
            socket: open().map_err(|cause| Error::new("cannot follow the kernel's neighbours", cause))?,
            buffer: vec![0; 1 << 16],
            known: HashMap::default(),
            pending: HashMap::default(),
            tick: Instant::ZERO,
            unconfirmed: false,
        };
        neighbours.ask_for_all();
        Ok(neighbours)
    }

    /// As if the kernel had reported this one.
    #[cfg(test)]
    pub(super) fn know(&mut self, key: Key, hardware: [u8; 6]) {
        let known = Known {
            hardware,
            stale: false,
            used: false,
        };
        self.known.insert(key, known);
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the socket, which the borrow keeps.
        unsafe { BorrowedFd::borrow_raw(self.socket.as_raw_fd()) }
    }

    /// The hardware address of a neighbour, if it is known.
    #[inline]
    pub(super) fn find(&mut self, key: &Key) -> Option<[u8; 6]> {
        let known = self.known.get_mut(key)?;
        known.used = true;
        self.unconfirmed |= known.stale;
        Some(known.hardware)
    }

    /// Has the kernel ask for a neighbour, while `make` is held. False if too much waits already.
    pub(super) fn hold(&mut self, key: Key, now: Instant, make: impl FnOnce() -> Held) -> bool {
        if let Some(pending) = self.pending.get_mut(&key) {
            if pending.held.len() >= MOST_HELD {
                return false;
            }
            pending.held.push(make());
            return true;
        }
        if self.pending.len() >= MOST_PENDING {
            return false;
        }
        let held = vec![make()];
        self.pending.insert(key, Pending { since: now, held });
        self.confirm(key);
        true
    }

    /// When [`Neighbours::read`] is to be called next, also without news.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (self.unconfirmed || !self.pending.is_empty()).then_some(self.tick)
    }

    /// Reads what the kernel reports, and looks after entries.
    pub(super) fn read(&mut self, now: Instant) -> News {
        let mut news = News::default();
        loop {
            let length = match self.socket.recv(&mut &mut self.buffer[..], 0) {
                Ok(length) => length.min(self.buffer.len()),
                Err(cause) if cause.raw_os_error() == Some(libc::ENOBUFS) => {
                    // Reports were lost: all of it once more.
                    self.known.clear();
                    self.ask_for_all();
                    news.interfaces = true;
                    continue;
                }
                Err(_) => break,
            };
            let buffer = std::mem::take(&mut self.buffer);
            self.understand(&buffer[..length], &mut news);
            self.buffer = buffer;
        }
        if now >= self.tick {
            self.tick = now + TICK;
            self.look_through(now, &mut news);
        }
        news
    }

    fn understand(&mut self, bytes: &[u8], news: &mut News) {
        for message in messages(bytes) {
            match message.kind {
                libc::RTM_NEWNEIGH => self.learn(&message, news),
                libc::RTM_DELNEIGH => {
                    if let Some(key) = key(&message) {
                        self.known.remove(&key);
                    }
                }
                libc::RTM_NEWLINK
                | libc::RTM_DELLINK
                | libc::RTM_NEWADDR
                | libc::RTM_DELADDR
                | libc::RTM_NEWNETCONF => news.interfaces = true,
                _ => {}
            }
        }
    }

    fn learn(&mut self, entry: &Message<'_>, news: &mut News) {
        let Some(key) = key(entry) else { return };
        let hardware = entry.attribute(NEIGHBOUR_BYTES, libc::NDA_LLADDR);
        let hardware = hardware.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
        let state = entry.body.get(STATE..).and_then(<[u8]>::first_chunk);
        match (state.map_or(0, |bytes| u16::from_ne_bytes(*bytes)), hardware) {
            (
                state @ (libc::NUD_REACHABLE
                | libc::NUD_STALE
                | libc::NUD_DELAY
                | libc::NUD_PROBE
                | libc::NUD_PERMANENT),
                Some(hardware),
            ) => {
                let stale = state == libc::NUD_STALE;
                let used = self.known.get(&key).is_some_and(|known| known.used);
                self.unconfirmed |= stale && used;
                let known = Known {
                    hardware,
                    stale,
                    used,
                };
                self.known.insert(key, known);
                let pending = self.pending.remove(&key);
                let held = pending.into_iter().flat_map(|pending| pending.held);
                news.resolved.extend(held.map(|held| (held, hardware)));
            }
            (state @ (libc::NUD_FAILED | libc::NUD_INCOMPLETE), _) => {
                self.known.remove(&key);
                if state == libc::NUD_FAILED
                    && let Some(pending) = self.pending.remove(&key)
                {
                    news.given_up.extend(pending.held);
                }
            }
            _ => {}
        }
    }

    fn look_through(&mut self, now: Instant, news: &mut News) {
        self.unconfirmed = false;
        let mut unconfirmed = Vec::new();
        for (key, known) in &mut self.known {
            if known.used && known.stale {
                unconfirmed.push(*key);
            }
            known.used = false;
        }
        for key in unconfirmed {
            self.confirm(key);
        }
        let late: Vec<Key> = self
            .pending
            .iter()
            .filter(|(_, pending)| now.since(pending.since) >= LONGEST_PENDING)
            .map(|(key, _)| *key)
            .collect();
        for key in late {
            if let Some(pending) = self.pending.remove(&key) {
                news.given_up.extend(pending.held);
            }
        }
    }

    /// Has the kernel look for a neighbour, or see whether it is still there.
    fn confirm(&self, (index, address): Key) {
        let (family, octets): (i32, &[u8]) = match &address {
            IpAddr::V4(four) => (libc::AF_INET, &four.octets()),
            IpAddr::V6(six) => (libc::AF_INET6, &six.octets()),
        };
        // Family, index, state, flags and type (`struct ndmsg`).
        let mut fixed = [0; NEIGHBOUR_BYTES];
        fixed[0] = family as u8;
        fixed[INDEX..STATE].copy_from_slice(&index.to_ne_bytes());
        fixed[FLAGS] = libc::NTF_USE;
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_CREATE;
        self.send(Request::new(libc::RTM_NEWNEIGH, flags, &fixed).attribute(libc::NDA_DST, octets));
    }

    fn ask_for_all(&self) {
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_DUMP;
        self.send(Request::new(libc::RTM_GETNEIGH, flags, &[0; NEIGHBOUR_BYTES]));
    }

    fn send(&self, request: Request) {
        // What the kernel refuses stays unknown, and its packets are counted.
        let _ = self.socket.send_to(&request.bytes(), &SocketAddr::new(0, 0), 0);
    }
}

fn key(entry: &Message<'_>) -> Option<Key> {
    let address = entry.attribute(NEIGHBOUR_BYTES, libc::NDA_DST)?;
    let address = match i32::from(*entry.body.first()?) {
        libc::AF_INET => IpAddr::from(*address.first_chunk::<4>()?),
        libc::AF_INET6 => IpAddr::from(*address.first_chunk::<16>()?),
        _ => return None,
    };
    let index = entry.body.get(INDEX..)?.first_chunk()?;
    Some((u32::from_ne_bytes(*index), address))
}

/// Places in `struct ndmsg`: the interface, the state of the neighbour, and flags.
const INDEX: usize = 4;
const STATE: usize = 8;
const FLAGS: usize = 10;

/// Reports of neighbours, links, addresses of both families, and of what the kernel forwards (RTMGRP_NEIGH, RTMGRP_LINK,
/// RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR, RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF).
const GROUPS: u32 = 0x4 | 0x1 | 0x10 | 0x100 | 1 << 23 | 1 << 24;
/// Packets that wait for one neighbour at most.
const MOST_HELD: usize = 3;
/// Neighbours that are waited for at most: a scan of a network must not take memory.
const MOST_PENDING: usize = 256;
/// A neighbour that has not answered after so long does not (the kernel asks three times, a second apart).
const LONGEST_PENDING: Duration = Duration::from_millis(4000);
/// How often entries are looked through.
const TICK: Duration = Duration::from_millis(2000);
