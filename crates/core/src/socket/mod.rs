//! Socket calls over [`Connection`]: blocking, errno, options, polling, as Linux has them, sans-IO.
//!
//! A [`Stack`] is one host. Its calls take the time first, like every state machine here, and never wait: a call that a
//! kernel would put to sleep returns [`Outcome::Blocked`], and the driver calls again with the same arguments after each
//! packet or timeout until the call is done or fails. Packets enter by [`on_packet`](Stack::on_packet) and leave by
//! [`poll_transmit`](Stack::poll_transmit). Data is counted, not held: results give stream offsets, so a driver can keep
//! the bytes beside it.
//!
//! `mod` has the state, `calls` what makes, names and ends sockets; `data` reads and writes; `datagram` is UDP's sockets, apart; `option`; `poll`; `input` takes packets,
//! ICMP and time and gives packets; `backlog` is listeners; `time_wait` what is left of connections; `names` finds ports and addresses; `notice` what happened, for drivers with many sockets; `memory` is what buffers hold; `info` is `TCP_INFO`.
//!
//! **Source.** `socket(7)`, `tcp(7)`, `ip(7)`, `listen(2)`, `connect(2)`, `accept(2)`, `shutdown(2)`, `close(2)`, `poll(2)`;
//! RFC 9293 3.9.1 for the states each call may meet; RFC 2525 2.17 for close with unread data.
//! **Deviations.** No signals (`SIGPIPE`, `EINTR`). No ancillary data.

mod backlog;
mod calls;
mod config;
mod data;
mod datagram;
mod errno;
mod fast_open;
mod info;
mod input;
mod memory;
mod names;
mod notice;
mod option;
mod poll;
#[cfg(test)]
mod tests;
mod time_wait;

pub use backlog::Refused;
pub use config::{FastOpen, Memory, StackConfig, SynCookies};
pub use data::{Received, RecvFlags, SendFlags, Sent};
pub use datagram::{Datagram, QueuedError};
pub use errno::Errno;
pub use info::TcpInfo;
pub use input::{Arrival, Header, IcmpError, Packet};
pub use notice::Notice;
pub use option::{OptionValue, SocketOption};
pub use poll::Events;

use crate::rng::Rng;
use crate::tcp::{Connection, EcnOption, FastOpenCache, PathMemory, Setting, State, Stats, listener};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use memory::SendMemory;
use option::Options;

/// A socket, as a process names it: small numbers, the lowest free one is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fd(pub u32);

/// A connection, for a driver that keeps its bytes. Never given out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId {
    /// Slot, reused.
    pub slot: u32,
    /// Which use of the slot.
    pub generation: u32,
}

/// Address family of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// `AF_INET`.
    V4,
    /// `AF_INET6`; unless `IPV6_V6ONLY`, also IPv4 with mapped addresses.
    V6,
}

/// What a call that may wait says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// Done.
    Done(T),
    /// The caller would sleep: call again, with the same arguments, after the next input or timeout.
    Blocked,
}

/// Result of a call that may wait.
pub type Called<T> = Result<Outcome<T>, Errno>;

/// Which halves `shutdown` closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// `SHUT_RD`.
    Read,
    /// `SHUT_WR`.
    Write,
    /// `SHUT_RDWR`.
    Both,
}

/// Four numbers that name a connection, seen from here.
pub(super) type Tuple = (SocketAddr, SocketAddr);

/// One host's sockets and connections.
pub struct Stack {
    config: StackConfig,
    rng: Rng,
    /// `fds[n]` is the slot of fd n + 3.
    fds: Vec<Option<u32>>,
    socks: Vec<Sock>,
    free: Vec<u32>,
    tuples: BTreeMap<Tuple, u32>,
    /// Ports, and slots of the listeners, bound sockets and connections that hold them.
    ports: BTreeSet<(u16, u32)>,
    /// Slots of the listeners alone, by port: no segment looks for one among their connections.
    listeners: BTreeMap<u16, Vec<u32>>,
    /// Listeners that were looked at for a segment.
    work: u64,
    timers: BTreeSet<(Instant, u32)>,
    output: VecDeque<input::Queued>,
    /// Connections in TIME-WAIT, and those whose socket was closed and whose peer has not.
    waits: BTreeMap<Tuple, time_wait::TimeWait>,
    wait_timers: BTreeSet<(Instant, Tuple)>,
    /// How many of them hold a port.
    wait_ports: BTreeMap<u16, u32>,
    cookies: listener::SynCookies,
    /// When a SYN cookie was last sent.
    cookie_sent_at: Option<Instant>,
    secret: [u64; 2],
    /// Fast Open cookies of servers.
    peers: FastOpenCache,
    /// What connections learnt about paths, by the other end.
    paths: PathMemory<IpAddr>,
    notices: notice::Notices,
    refused: Refused,
    /// Counters of connections that have ended.
    ended: Stats,
}

/// A socket: options, names, and a connection or a listener. It may have no fd (not yet accepted, or closed).
struct Sock {
    options: Options,
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
    body: Body,
    fd: Option<Fd>,
    /// Listener this waits in.
    parent: Option<u32>,
    error: Option<Errno>,
    soft_error: Option<Errno>,
    memory: SendMemory,
    /// Bytes that the blocking write, or read, in progress has moved.
    writing: u64,
    reading: u64,
    /// Stream offsets read and written up to now.
    read: u64,
    written: u64,
    /// Where `TCP_FASTOPEN_CONNECT` will connect at the first write.
    deferred_to: Option<SocketAddr>,
    /// Where the peer's urgent byte is, until it is read as such.
    urgent: Option<u64>,
    /// Listener that counts this among its Fast Open connections.
    fast_open_of: Option<u32>,
    /// When `close` stops lingering.
    deadline: Option<Instant>,
    /// Deadline under which `Stack::timers` knows this.
    armed: Option<Instant>,
    generation: u32,
    phase: Phase,
    family: Family,
    shut_read: bool,
    shut_write: bool,
    /// The stream has ended (the peer's FIN).
    done: bool,
    /// A blocking `send` with `MSG_FASTOPEN` sleeps.
    fast_opening: bool,
    /// Opened by Fast Open: data may flow before the handshake is over.
    fast_open: bool,
    /// The handshake was completed once.
    established: bool,
    /// The port was chosen by the caller: it stays when the connection ends.
    port_chosen: bool,
    nonblocking: bool,
    quick_ack: bool,
    /// `close` waits for what was written to be acknowledged.
    lingering: bool,
    queued: bool,
    /// A notice about it waits.
    noted: bool,
    /// The last write found the buffer full.
    no_space: bool,
    /// A blocking write waits for room.
    write_sleeps: bool,
    clock: info::Clock,
    /// This slot holds a socket; otherwise it is in `Stack::free`.
    used: bool,
}

/// What a socket is.
enum Body {
    /// Neither connected nor listening.
    Idle,
    /// Listening.
    Listen(Box<Backlog>),
    /// Has, or had, a connection.
    Open(Box<Connection>),
}

/// Linux's `sock->state`: the outcome of the last `connect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Unconnected,
    Connecting,
    Connected,
}

/// Queues of a listener.
#[derive(Debug, Default)]
struct Backlog {
    /// Complete connections that may wait: `listen`'s argument; one more fits, as in Linux.
    limit: u32,
    /// Half-open connections.
    half_open: u32,
    /// Connections of Fast Open whose handshake is not complete, accepted or not.
    fast_open: u32,
    ready: VecDeque<u32>,
}

impl Sock {
    fn new(config: &StackConfig, family: Family) -> Sock {
        Sock {
            options: Options::new(config),
            local: None,
            remote: None,
            body: Body::Idle,
            fd: None,
            parent: None,
            error: None,
            soft_error: None,
            memory: SendMemory::default(),
            writing: 0,
            reading: 0,
            read: 0,
            written: 0,
            deferred_to: None,
            urgent: None,
            fast_open_of: None,
            deadline: None,
            armed: None,
            generation: 0,
            phase: Phase::Unconnected,
            family,
            shut_read: false,
            shut_write: false,
            done: false,
            fast_opening: false,
            fast_open: false,
            established: false,
            port_chosen: false,
            nonblocking: false,
            quick_ack: true,
            lingering: false,
            queued: false,
            noted: false,
            no_space: false,
            write_sleeps: false,
            clock: info::Clock::default(),
            used: true,
        }
    }

    /// State of the connection, if there is or was one.
    fn state(&self) -> Option<State> {
        match &self.body {
            Body::Open(connection) => Some(connection.state()),
            Body::Idle | Body::Listen(_) => None,
        }
    }

    fn take_error(&mut self) -> Option<Errno> {
        self.error.take()
    }
}

/// An IPv4 address in its own form, whichever family's socket named it (RFC 4291 2.5.5.2).
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// An address as a socket of `family` names it: IPv4 is mapped on an IPv6 socket (RFC 3493 3.7).
fn shown(address: SocketAddr, family: Family) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if family == Family::V6 => {
            SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
        }
        _ => address,
    }
}

impl Stack {
    /// A host without sockets.
    pub fn new(config: StackConfig) -> Stack {
        let mut rng = Rng::for_element(config.seed, "socket", "ports and sequence numbers");
        let secret = [rng.next_u64(), rng.next_u64()];
        let cookies = listener::SynCookies::new([rng.next_u64(), rng.next_u64()]);
        Stack {
            config,
            rng,
            fds: Vec::new(),
            socks: Vec::new(),
            free: Vec::new(),
            tuples: BTreeMap::new(),
            ports: BTreeSet::new(),
            listeners: BTreeMap::new(),
            work: 0,
            timers: BTreeSet::new(),
            output: VecDeque::new(),
            waits: BTreeMap::new(),
            wait_timers: BTreeSet::new(),
            wait_ports: BTreeMap::new(),
            cookies,
            cookie_sent_at: None,
            secret,
            peers: FastOpenCache::new(),
            paths: PathMemory::new(),
            notices: notice::Notices::default(),
            refused: Refused::default(),
            ended: Stats::default(),
        }
    }

    /// The host's configuration.
    pub fn config(&self) -> &StackConfig {
        &self.config
    }

    /// Changes the host's configuration, as writing a sysctl does: sockets made later start from it.
    pub fn config_mut(&mut self) -> &mut StackConfig {
        &mut self.config
    }

    /// Changes when connections with Accurate ECN send its option, also those that exist, as writing `tcp_ecn_option` does.
    pub fn set_ecn_option(&mut self, now: Instant, when: EcnOption) {
        self.config.tcp.ecn_option = when;
        for sock in &mut self.socks {
            if let Body::Open(connection) = &mut sock.body {
                connection.set(now, Setting::EcnOption(when));
            }
        }
    }

    /// `socket(2)`, `SOCK_STREAM`.
    pub fn socket(&mut self, _now: Instant, family: Family) -> Result<Fd, Errno> {
        let index = self.allocate(family);
        Ok(self.give_fd(index))
    }

    /// `fcntl(2)`, `F_SETFL` with or without `O_NONBLOCK`.
    pub fn set_nonblocking(&mut self, fd: Fd, on: bool) -> Result<(), Errno> {
        let index = self.index_of(fd)?;
        self.socks[index].nonblocking = on;
        Ok(())
    }

    /// `fcntl(2)`, `F_GETFL`: whether `O_NONBLOCK` is set.
    pub fn nonblocking(&self, fd: Fd) -> Result<bool, Errno> {
        Ok(self.socks[self.index_of(fd)?].nonblocking)
    }

    /// `getsockname(2)`.
    pub fn local_address(&self, fd: Fd) -> Result<Option<SocketAddr>, Errno> {
        let sock = &self.socks[self.index_of(fd)?];
        Ok(sock.local.map(|address| shown(address, sock.family)))
    }

    /// `getpeername(2)`.
    pub fn remote_address(&self, fd: Fd) -> Result<SocketAddr, Errno> {
        let sock = &self.socks[self.index_of(fd)?];
        match sock.state() {
            None | Some(State::Closed | State::SynSent) => Err(Errno::ENOTCONN),
            Some(_) => {
                let remote = sock.remote.ok_or(Errno::ENOTCONN)?;
                Ok(shown(remote, sock.family))
            }
        }
    }

    /// `ioctl(2)`, `SIOCINQ` (`FIONREAD`): bytes that can be read, the FIN not counted.
    pub fn input_queue(&self, fd: Fd) -> Result<u64, Errno> {
        match &self.socks[self.index_of(fd)?].body {
            Body::Listen(_) => Err(Errno::EINVAL),
            Body::Idle => Ok(0),
            Body::Open(connection) => Ok(connection.readable().get()),
        }
    }

    /// `ioctl(2)`, `SIOCOUTQ`: sequence space written and not acknowledged, the FIN counted.
    pub fn output_queue(&self, _now: Instant, fd: Fd) -> Result<u64, Errno> {
        match &self.socks[self.index_of(fd)?].body {
            Body::Listen(_) => Err(Errno::EINVAL),
            Body::Idle => Ok(0),
            Body::Open(connection) => {
                let sock = &self.socks[self.index_of(fd)?];
                let held = sock.written - connection.acked();
                Ok(match connection.state() {
                    State::SynSent | State::SynReceived => 0,
                    State::FinWait1 | State::Closing | State::LastAck => held + 1,
                    State::Closed if !sock.established => held + 1, // the SYN
                    _ => held,
                })
            }
        }
    }

    /// `ioctl(2)`, `SIOCOUTQNSD`: bytes written and not sent.
    pub fn unsent(&self, now: Instant, fd: Fd) -> Result<u64, Errno> {
        match &self.socks[self.index_of(fd)?].body {
            Body::Listen(_) => Err(Errno::EINVAL),
            Body::Idle => Ok(0),
            Body::Open(connection) => Ok(connection.info(now).unsent.get()),
        }
    }

    /// The endpoint under `fd`, if it has one.
    pub fn connection(&self, fd: Fd) -> Option<&Connection> {
        match &self.socks[self.index_of(fd).ok()?].body {
            Body::Open(connection) => Some(connection),
            Body::Idle | Body::Listen(_) => None,
        }
    }

    /// Forgets what was learnt about peers (Fast Open cookies, rates of paths).
    pub fn forget_peers(&mut self) {
        self.peers.clear();
        self.paths.clear();
    }

    /// ICMP errors about connections that are there which quoted nothing in flight (`OutOfWindowIcmps`).
    pub fn icmp_ignored(&self) -> u64 {
        let counts = self.socks.iter().map(|sock| match &sock.body {
            Body::Open(connection) => u64::from(connection.icmp_ignored()),
            Body::Idle | Body::Listen(_) => 0,
        });
        counts.sum()
    }

    /// Counters of all connections up to now together, of those that have ended as well.
    pub fn totals(&self) -> Stats {
        self.socks.iter().fold(self.ended, |sum, sock| match &sock.body {
            Body::Open(connection) => sum.plus(connection.stats()),
            Body::Idle | Body::Listen(_) => sum,
        })
    }

    /// Connections in TIME-WAIT.
    pub fn time_wait_count(&self) -> usize {
        self.waits.values().filter(|wait| !wait.half_closed()).count()
    }

    /// Slots in use: sockets, connections waiting to be accepted, connections nobody holds any more.
    pub fn slots_in_use(&self) -> usize {
        self.socks.len() - self.free.len()
    }

    /// How many connections are in this state, with a process behind them or not.
    pub fn count(&self, state: State) -> usize {
        let used = self.socks.iter().filter(|sock| sock.used);
        let open = used.filter(|sock| sock.state() == Some(state)).count();
        let waiting = self.waits.values().filter(|wait| match state {
            State::TimeWait => !wait.half_closed(),
            State::FinWait2 => wait.half_closed(),
            _ => false,
        });
        open + waiting.count()
    }

    fn id_of(&self, index: usize) -> ConnectionId {
        ConnectionId {
            slot: index as u32,
            generation: self.socks[index].generation,
        }
    }

    fn index_of(&self, fd: Fd) -> Result<usize, Errno> {
        let slot = (fd.0 as usize).checked_sub(3).and_then(|at| self.fds.get(at));
        match slot {
            Some(Some(index)) => Ok(*index as usize),
            Some(None) | None => Err(Errno::EBADF),
        }
    }

    fn give_fd(&mut self, index: usize) -> Fd {
        let at = match self.fds.iter().position(Option::is_none) {
            Some(at) => at,
            None => {
                self.fds.push(None);
                self.fds.len() - 1
            }
        };
        self.fds[at] = Some(index as u32);
        let fd = Fd(at as u32 + 3);
        self.socks[index].fd = Some(fd);
        fd
    }

    fn release_fd(&mut self, fd: Fd) {
        if let Ok(index) = self.index_of(fd) {
            self.socks[index].fd = None;
            self.fds[fd.0 as usize - 3] = None;
        }
        while self.fds.last() == Some(&None) {
            self.fds.pop();
        }
    }

    fn allocate(&mut self, family: Family) -> usize {
        let fresh = Sock::new(&self.config, family);
        match self.free.pop() {
            Some(index) => {
                let slot = &mut self.socks[index as usize];
                let generation = slot.generation;
                *slot = fresh;
                slot.generation = generation;
                index as usize
            }
            None => {
                self.socks.push(fresh);
                self.socks.len() - 1
            }
        }
    }

    /// A connection is about to be dropped: its counters stay.
    fn keep_counters(&mut self, index: usize) {
        if let Body::Open(connection) = &self.socks[index].body {
            self.ended = self.ended.plus(connection.stats());
        }
    }

    fn free(&mut self, index: usize) {
        self.note_end(index);
        self.keep_counters(index);
        self.unlink(index);
        self.leave_listeners(index);
        self.leave_port(index);
        self.disarm(index);
        let slot = &mut self.socks[index];
        slot.body = Body::Idle;
        slot.memory = SendMemory::default();
        slot.used = false;
        slot.queued = false;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index as u32);
    }

    /// Packets for the connection no longer find it.
    fn unlink(&mut self, index: usize) {
        let sock = &self.socks[index];
        if let (Some(local), Some(remote)) = (sock.local, sock.remote)
            && self.tuples.get(&(local, remote)) == Some(&(index as u32))
        {
            self.tuples.remove(&(local, remote));
        }
    }
}

impl Sock {
    /// A new connection begins.
    fn reset_stream(&mut self) {
        self.memory = SendMemory::default();
        self.clock = info::Clock::default();
        self.no_space = false;
        self.write_sleeps = false;
        self.established = false;
        self.fast_opening = false;
        self.fast_open = false;
        self.deferred_to = None;
        self.urgent = None;
        (self.writing, self.reading, self.read, self.written) = (0, 0, 0, 0);
        self.shut_read = false;
        self.shut_write = false;
        self.done = false;
        self.error = None;
        self.soft_error = None;
    }
}
