//! Our TCP as a host on real packets: [`Host`].
//!
//! The socket layer of `core` over a device that carries IP packets. Nothing here waits: [`Host::work`] does what there is to do,
//! [`Host::poll_event`] says what happened, and the caller sleeps (a [`Waiter`], or any other loop) until the device can be read
//! or [`Host::poll_timeout`] has come. So one loop serves thousands of connections beside whatever else it has.
//!
//! `mod` has the calls, `input` what arrives and leaves; `bytes` holds payload, `device` carries packets, `place` makes devices and
//! gives them addresses, `waiter` sleeps, `echo` answers pings, `counters` counts.

mod bytes;
mod counters;
mod device;
mod echo;
mod input;
mod place;
mod waiter;

pub use counters::Counters;
pub use device::{Device, Port};
pub use place::{Attached, Place};
pub(crate) use place::{ip_of, same_network};
pub use waiter::Waiter;

use crate::Clock;
use bytes::{Pool, Stream};
use fleetfoot_core::socket::{
    ConnectionId, Errno, Events, Family, Fd, How, Memory, OptionValue, Outcome, SocketOption, Stack,
    StackConfig,
};
use fleetfoot_core::tcp::{Config, Connection};
use fleetfoot_core::time::Instant;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// A connection or a listener of a host. One that was closed is never given out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle {
    index: u32,
    generation: u32,
}

impl Handle {
    /// A small number that no other open handle has, for tables.
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

/// What a connection is ready for. It is said once; again only after a call has found that there was nothing more
/// ([`Errno::EAGAIN`], or less written than offered).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// There is something to read, the end of the stream included; on a listener, a connection to accept.
    pub read: bool,
    /// There is room to write. Also said when a connection opened from here is established.
    pub write: bool,
    /// Both directions are over, or the connection failed: [`Host::take_error`].
    pub over: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// To whom.
    pub handle: Handle,
    /// What it is ready for.
    pub ready: Ready,
}

/// What a host is made of.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// The endpoint's switches. The MTU is that of the device.
    pub tcp: Config,
    /// Where ports and initial sequence numbers come from. Not to be guessed by others where others are on the network.
    pub seed: u64,
}

/// A host of our TCP.
pub struct Host {
    device: Box<dyn Device>,
    stack: Stack,
    clock: Clock,
    /// Packets are read into, and written from, these.
    arriving: Vec<u8>,
    leaving: Vec<u8>,
    /// What connections hold, by their slot.
    held: Vec<Held>,
    pool: Pool,
    sockets: Vec<Socket>,
    /// Indices in `sockets` that are free.
    free: Vec<u32>,
    /// Index in `sockets` of a descriptor of the stack.
    by_fd: Vec<u32>,
    events: VecDeque<Handle>,
    counters: Counters,
}

/// Bytes of a connection.
#[derive(Debug, Default)]
struct Held {
    generation: u32,
    /// Received and not yet read.
    received: Stream,
    /// Written and not yet acknowledged.
    written: Stream,
}

/// A socket as the owner of a host knows it.
#[derive(Clone, Copy, Debug)]
struct Socket {
    generation: u32,
    /// `None`: closed.
    fd: Option<Fd>,
    connection: Option<ConnectionId>,
    /// What was reported and not yet used up.
    reported: Ready,
    /// What is to be reported.
    news: Ready,
    /// The last write found no room, or the connection is not established yet.
    wants_room: bool,
}

impl Host {
    /// A host behind `device`.
    pub fn new(device: Box<dyn Device>, config: HostConfig) -> Host {
        let HostConfig { addresses, tcp, seed } = config;
        let (receive, send) = (tcp.receive_buffer.get(), tcp.send_buffer.get());
        let (mtu, memory) = (tcp.mtu as usize, tcp.receive_memory);
        let mut stack = StackConfig::new(addresses, tcp);
        stack.seed = seed;
        stack.receive_memory = Memory {
            min: 4096,
            default: memory.map_or(receive, |memory| memory.buffer),
            max: memory.map_or(receive, |memory| memory.most),
        };
        stack.send_memory.max = send.min(stack.send_memory.max);
        stack.send_memory.default = send.min(stack.send_memory.default);
        let mut stack = Stack::new(stack);
        stack.keep_notices(true);
        Host {
            device,
            stack,
            clock: Clock::start(),
            arriving: vec![0; 65_536],
            leaving: vec![0; mtu.max(1500) + 128],
            held: Vec::new(),
            pool: Pool::default(),
            sockets: Vec::new(),
            free: Vec::new(),
            by_fd: Vec::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// The clock that all times of this host are on.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The sockets of this host, to set what a socket of Linux has: options, time-outs, sysctls.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The sockets of this host, to change them. Sockets that are made there are not this host's.
    pub fn stack_mut(&mut self) -> &mut Stack {
        &mut self.stack
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        let refused = self.stack.refused();
        Counters {
            accept_queue_full: refused.accept_queue,
            syn_queue_full: refused.syn_queue,
            syn_cookies: refused.cookies,
            time_wait_full: refused.time_wait,
            most_bytes_held: self.pool.most_bytes(),
            ..self.counters
        }
    }

    /// Bytes of buffers in use.
    pub const fn bytes_held(&self) -> u64 {
        self.pool.bytes()
    }

    /// Listens at `address`; an unspecified one means every address, an unspecified IPv6 one IPv4 as well. `backlog`: how many
    /// connections may wait to be accepted (at most `somaxconn`, 4096). When as many wait, SYNs are dropped, and their senders try
    /// again; when as many are half-open, SYNs are answered with cookies.
    ///
    /// # Errors
    /// The port is taken, or the address is not of this host.
    pub fn listen(&mut self, address: SocketAddr, backlog: i32) -> Result<Handle, Errno> {
        let now = self.clock.now();
        let fd = self.stack.socket(now, family(address))?;
        let listening = self
            .stack
            .setsockopt(now, fd, SocketOption::ReuseAddress, &OptionValue::Int(1))
            .and_then(|()| self.stack.bind(now, fd, address))
            .and_then(|()| self.stack.listen(now, fd, backlog));
        if let Err(errno) = listening {
            let _ = self.stack.close(now, fd);
            return Err(errno);
        }
        self.stack.set_nonblocking(fd, true)?;
        Ok(self.know(fd, false))
    }

    /// The next connection that waits at a listener, and who opened it.
    ///
    /// # Errors
    /// `EAGAIN`: none waits.
    pub fn accept(&mut self, listener: Handle) -> Result<(Handle, SocketAddr), Errno> {
        let fd = self.fd(listener)?;
        let now = self.clock.now();
        match self.stack.accept(now, fd) {
            Ok(Outcome::Done((fd, peer))) => {
                self.stack.set_nonblocking(fd, true)?;
                self.counters.accepted += 1;
                let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                let handle = self.know(fd, false);
                self.look(now, fd); // what came before it was accepted
                Ok((handle, peer))
            }
            Ok(Outcome::Blocked) | Err(Errno::EAGAIN) => {
                self.used_up(listener, |reported| reported.read = false);
                Err(Errno::EAGAIN)
            }
            Err(errno) => Err(errno),
        }
    }

    /// Opens a connection. It is ready to write when it is established.
    ///
    /// # Errors
    /// There is no way to that address, or no port is free.
    pub fn connect(&mut self, to: SocketAddr) -> Result<Handle, Errno> {
        let now = self.clock.now();
        let fd = self.stack.socket(now, family(to))?;
        self.stack.set_nonblocking(fd, true)?;
        match self.stack.connect(now, fd, to) {
            Ok(_) | Err(Errno::EINPROGRESS) => {
                self.counters.opened += 1;
                Ok(self.know(fd, true))
            }
            Err(errno) => {
                let _ = self.stack.close(now, fd);
                Err(errno)
            }
        }
    }

    /// Reads what is there, up to the length of `room`; 0 is the end of the stream.
    ///
    /// # Errors
    /// `EAGAIN`: nothing is there. Else why the connection failed.
    pub fn read(&mut self, handle: Handle, room: &mut [u8]) -> Result<usize, Errno> {
        let fd = self.fd(handle)?;
        let now = self.clock.now();
        let received = match self.stack.read(now, fd, room.len() as u64) {
            Ok(Outcome::Done(received)) => received,
            Ok(Outcome::Blocked) | Err(Errno::EAGAIN) => {
                self.used_up(handle, |reported| reported.read = false);
                return Err(Errno::EAGAIN);
            }
            Err(errno) => return Err(errno),
        };
        let length = received.len as usize;
        if length == 0 {
            return Ok(0);
        }
        let Some(held) = self.held_of(handle) else {
            return Err(Errno::EFAULT);
        };
        if !held.received.get(received.start, &mut room[..length]) {
            return Err(Errno::EFAULT); // never: what can be read was kept
        }
        let end = received.start + received.len;
        let drained = self.stack.input_queue(fd).is_ok_and(|left| left == 0);
        let slot = self.sockets[handle.index()].connection;
        if let Some(slot) = slot {
            self.held[slot.slot as usize]
                .received
                .release(&mut self.pool, end);
        }
        if drained {
            self.used_up(handle, |reported| reported.read = false);
        }
        Ok(length)
    }

    /// Takes as much of `bytes` as there is room for.
    ///
    /// # Errors
    /// `EAGAIN`: there is no room. Else why nothing can be written.
    pub fn write(&mut self, handle: Handle, bytes: &[u8]) -> Result<usize, Errno> {
        let fd = self.fd(handle)?;
        let now = self.clock.now();
        let called = self.stack.write(now, fd, bytes.len() as u64);
        let sent = match called {
            Ok(Outcome::Done(sent)) => sent,
            Ok(Outcome::Blocked) | Err(Errno::EAGAIN) => {
                self.wants_room(handle);
                return Err(Errno::EAGAIN);
            }
            Err(errno) => return Err(errno),
        };
        let taken = (sent.len as usize).min(bytes.len());
        if taken > 0 {
            let id = self.sockets[handle.index()].connection;
            let Some(id) = id.or_else(|| self.stack.connection_id(fd)) else {
                return Err(Errno::ENOTCONN);
            };
            let pool = &mut self.pool;
            hold(&mut self.held, pool, id)
                .written
                .put(pool, sent.start, &bytes[..taken]);
        }
        if taken < bytes.len() {
            self.wants_room(handle);
        }
        Ok(taken)
    }

    /// Ends one direction, or both.
    ///
    /// # Errors
    /// There is no connection.
    pub fn shutdown(&mut self, handle: Handle, how: How) -> Result<(), Errno> {
        let fd = self.fd(handle)?;
        self.stack.shutdown(self.clock.now(), fd, how)
    }

    /// Closes a connection or a listener; what was written is still delivered. The handle is worth nothing afterwards.
    pub fn close(&mut self, handle: Handle) {
        let Ok(fd) = self.fd(handle) else { return };
        let socket = &mut self.sockets[handle.index()];
        socket.fd = None;
        socket.generation = socket.generation.wrapping_add(1);
        self.free.push(handle.index);
        let now = self.clock.now();
        let _ = self.stack.close(now, fd);
    }

    /// Ends a connection with a reset.
    pub fn abort(&mut self, handle: Handle) {
        let Ok(fd) = self.fd(handle) else { return };
        let linger = OptionValue::Linger { on: true, seconds: 0 };
        let _ = self
            .stack
            .setsockopt(self.clock.now(), fd, SocketOption::Linger, &linger);
        self.close(handle);
    }

    /// Why the connection failed, once.
    pub fn take_error(&mut self, handle: Handle) -> Option<Errno> {
        let fd = self.fd(handle).ok()?;
        match self.stack.getsockopt(self.clock.now(), fd, SocketOption::Error) {
            Ok(OptionValue::Int(number)) => Errno::ALL.iter().copied().find(|errno| errno.number() == number),
            Ok(_) | Err(_) => None,
        }
    }

    /// Own address and port.
    pub fn local(&self, handle: Handle) -> Option<SocketAddr> {
        self.stack.local_address(self.fd(handle).ok()?).ok()?
    }

    /// The endpoint itself, for what it measured.
    pub fn connection(&self, handle: Handle) -> Option<&Connection> {
        self.stack.connection(self.fd(handle).ok()?)
    }

    /// What happened; ask until `None` after [`Host::work`].
    pub fn poll_event(&mut self) -> Option<Event> {
        loop {
            let handle = self.events.pop_front()?;
            let socket = &mut self.sockets[handle.index()];
            if socket.generation == handle.generation {
                let ready = std::mem::take(&mut socket.news);
                if ready != Ready::default() {
                    return Some(Event { handle, ready });
                }
            }
        }
    }

    /// When [`Host::work`] is to be called next, at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.stack.poll_timeout()
    }

    fn fd(&self, handle: Handle) -> Result<Fd, Errno> {
        self.sockets
            .get(handle.index())
            .filter(|socket| socket.generation == handle.generation)
            .and_then(|socket| socket.fd)
            .ok_or(Errno::EBADF)
    }

    /// Gives a socket of the stack its handle.
    fn know(&mut self, fd: Fd, wants_room: bool) -> Handle {
        let socket = Socket {
            generation: 0,
            fd: Some(fd),
            connection: self.stack.connection_id(fd),
            reported: Ready::default(),
            news: Ready::default(),
            wants_room,
        };
        let index = match self.free.pop() {
            Some(index) => {
                let place = &mut self.sockets[index as usize];
                *place = Socket {
                    generation: place.generation,
                    ..socket
                };
                index
            }
            None => {
                self.sockets.push(socket);
                self.sockets.len() as u32 - 1
            }
        };
        let at = fd.0 as usize;
        if self.by_fd.len() <= at {
            self.by_fd.resize(at + 1, u32::MAX);
        }
        self.by_fd[at] = index;
        Handle {
            index,
            generation: self.sockets[index as usize].generation,
        }
    }

    /// Looks what a socket is ready for, and says what is new.
    fn look(&mut self, now: Instant, fd: Fd) {
        let Some(&index) = self.by_fd.get(fd.0 as usize) else {
            return;
        };
        let Some(socket) = self.sockets.get_mut(index as usize) else {
            return;
        };
        if socket.fd != Some(fd) {
            return;
        }
        let asked = if socket.wants_room {
            Events::IN.with(Events::OUT)
        } else {
            Events::IN
        };
        let Ok(found) = self.stack.poll(now, fd, asked) else {
            return;
        };
        let over = found.contains(Events::HUP) || found.contains(Events::ERR);
        let now = Ready {
            read: found.contains(Events::IN),
            write: found.contains(Events::OUT),
            over,
        };
        let fresh = Ready {
            read: now.read && !socket.reported.read,
            write: now.write && !socket.reported.write,
            over: now.over && !socket.reported.over,
        };
        if fresh == Ready::default() {
            return;
        }
        let was_silent = socket.news == Ready::default();
        for set in [&mut socket.reported, &mut socket.news] {
            set.read |= fresh.read;
            set.write |= fresh.write;
            set.over |= fresh.over;
        }
        socket.wants_room &= !fresh.write;
        if was_silent {
            self.events.push_back(Handle {
                index,
                generation: socket.generation,
            });
        }
    }

    /// A call found that there is no more of what was reported.
    fn used_up(&mut self, handle: Handle, change: impl FnOnce(&mut Ready)) {
        change(&mut self.sockets[handle.index()].reported);
    }

    fn wants_room(&mut self, handle: Handle) {
        let socket = &mut self.sockets[handle.index()];
        socket.wants_room = true;
        socket.reported.write = false;
    }

    fn held_of(&mut self, handle: Handle) -> Option<&mut Held> {
        let id = self.sockets[handle.index()].connection?;
        self.held
            .get_mut(id.slot as usize)
            .filter(|held| held.generation == id.generation)
    }
}

impl AsFd for Host {
    /// What can be read when packets wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.fd()
    }
}

/// The bytes of a connection; those of one that had its slot before are forgotten.
fn hold<'a>(all: &'a mut Vec<Held>, pool: &mut Pool, id: ConnectionId) -> &'a mut Held {
    let slot = id.slot as usize;
    if all.len() <= slot {
        all.resize_with(slot + 1, Held::default);
    }
    let held = &mut all[slot];
    if held.generation != id.generation {
        held.received.clear(pool);
        held.written.clear(pool);
        held.generation = id.generation;
    }
    held
}

fn family(address: SocketAddr) -> Family {
    if address.is_ipv4() { Family::V4 } else { Family::V6 }
}
