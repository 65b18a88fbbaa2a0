//! The stack under test, as the runner sees it: packets as bytes, a clock, system calls, `TCP_INFO`, settings.
//!
//! One runner and one set of matching rules serve every [`Backend`]: Fleetfoot's own TCP in virtual time and a kernel in
//! a namespace. A backend is made fresh for each script and dropped after it. Numbers of system calls (options, flags,
//! errno) are Linux's everywhere.
//!
//! **Time.** [`Backend::now`] counts from an origin of the backend's own. A backend queues what its stack sends with the
//! time it was sent, whatever else is going on; [`Backend::next_packet`] hands it out in order. A blocking call goes on in
//! the background while the runner waits for time or packets, and carries the time at which it returned.

use fleetfoot_core::time::Instant;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A stack under test.
pub trait Backend {
    /// The time now.
    fn now(&self) -> Instant;

    /// Lets time pass until `until`. Packets that come out meanwhile are kept for [`next_packet`](Backend::next_packet).
    ///
    /// # Errors
    /// The backend broke; the script's verdict is then "unsupported" with this reason.
    fn wait(&mut self, until: Instant) -> Result<(), BackendError>;

    /// The next packet the stack sent and nobody took: one that is waiting, or the first that appears until `deadline`,
    /// letting time pass no further than to its appearance. `None`: time reached `deadline` without one.
    ///
    /// # Errors
    /// The backend broke.
    fn next_packet(&mut self, deadline: Instant) -> Result<Option<Outbound>, BackendError>;

    /// Gives the stack an IP packet.
    ///
    /// # Errors
    /// The backend broke.
    fn inject(&mut self, packet: &[u8]) -> Result<(), BackendError>;

    /// Makes a system call, on a blocking or non-blocking socket, as the application would. `None`: it blocks; at most
    /// one call does at a time, and [`pending`](Backend::pending) says when it is done.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] for calls, options or flags that the backend does not know.
    fn call(&mut self, call: &Call) -> Result<Option<Done>, BackendError>;

    /// The blocking call, if it has returned by now. Asked after every wait; it answers once.
    ///
    /// # Errors
    /// The backend broke.
    fn pending(&mut self) -> Result<Option<Done>, BackendError>;

    /// `TCP_INFO` of a socket.
    ///
    /// # Errors
    /// The socket does not exist.
    fn info(&mut self, socket: Handle) -> Result<Info, BackendError>;

    /// Changes a setting of the machine, before or between events.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] for what the backend does not know.
    fn configure(&mut self, setting: &Setting) -> Result<(), BackendError>;

    /// Sockets in this state, where the backend knows them (for the scripts that ask `sockstat`).
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] where it does not know.
    fn count_state(&mut self, state: ConnectionState) -> Result<usize, BackendError>;

    /// Counters of the machine, under the names that `nstat` gives them: those that it has.
    ///
    /// # Errors
    /// The backend broke.
    fn counters(&mut self) -> Result<BTreeMap<String, u64>, BackendError>;
}

/// What a stack is made for: fixed for the whole script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Address of the stack under test.
    pub local: IpAddr,
    /// Address of the peer the script plays.
    pub remote: IpAddr,
    /// Largest IP packet of the link between them.
    pub mtu: u32,
    /// Scripts in IPv4-mapped mode use IPv6 sockets over IPv4 packets.
    pub mapped: bool,
}

/// A packet that the stack sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// When.
    pub at: Instant,
    /// From the IP header on.
    pub bytes: Vec<u8>,
    /// A timer of the stack sent it, as far as the backend knows.
    pub by_timer: bool,
}

/// A socket of the backend: its file descriptor, or the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub i32);

/// A system call with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `socket` of the script's address family; `kind` and `protocol` are Linux's numbers.
    Socket {
        /// `SOCK_STREAM` and the like, with `SOCK_NONBLOCK`.
        kind: i32,
        /// `IPPROTO_TCP` and the like.
        protocol: i32,
    },
    /// `bind`.
    Bind {
        /// Which socket.
        socket: Handle,
        /// Where to.
        address: SocketAddr,
    },
    /// `listen`.
    Listen {
        /// Which socket.
        socket: Handle,
        /// How many may wait.
        backlog: i32,
    },
    /// `accept` and `accept4`.
    Accept {
        /// Which socket.
        socket: Handle,
        /// `SOCK_NONBLOCK` or 0.
        flags: i32,
    },
    /// `connect`.
    Connect {
        /// Which socket.
        socket: Handle,
        /// Where to.
        address: Destination,
    },
    /// `read`, `readv`, `recv`, `recvfrom`, `recvmsg`.
    Read {
        /// Which socket.
        socket: Handle,
        /// Lengths of the buffers.
        buffers: Vec<usize>,
        /// `MSG_PEEK` and the like.
        flags: i32,
    },
    /// `write`, `writev`, `send`, `sendto`, `sendmsg`: zero bytes.
    Write {
        /// Which socket.
        socket: Handle,
        /// Lengths of the buffers.
        buffers: Vec<usize>,
        /// `MSG_MORE` and the like.
        flags: i32,
        /// Where to, for the calls that say it.
        to: Option<Destination>,
    },
    /// `shutdown`.
    Shutdown {
        /// Which socket.
        socket: Handle,
        /// `SHUT_RD` 0, `SHUT_WR` 1, `SHUT_RDWR` 2.
        how: i32,
    },
    /// `close`.
    Close {
        /// Which socket.
        socket: Handle,
    },
    /// `poll`.
    Poll {
        /// Sockets and the events asked for.
        entries: Vec<(Handle, i16)>,
        /// Milliseconds; negative: for ever.
        timeout_ms: i32,
    },
    /// `ioctl` that yields an integer.
    Ioctl {
        /// Which socket.
        socket: Handle,
        /// `SIOCINQ` and the like.
        request: u32,
    },
    /// `fcntl`.
    Fcntl {
        /// Which socket.
        socket: Handle,
        /// `F_GETFL` 3, `F_SETFL` 4.
        command: i32,
        /// Flags.
        argument: i32,
    },
    /// `getsockopt`.
    GetOption {
        /// Which socket.
        socket: Handle,
        /// `SOL_SOCKET` and the like.
        level: i32,
        /// Which option.
        name: i32,
    },
    /// `setsockopt`.
    SetOption {
        /// Which socket.
        socket: Handle,
        /// `SOL_SOCKET` and the like.
        level: i32,
        /// Which option.
        name: i32,
        /// Its new value.
        value: OptionValue,
    },
    /// `epoll_create` and `epoll_create1`.
    EpollCreate,
    /// `epoll_ctl`.
    EpollControl {
        /// The epoll instance.
        epoll: Handle,
        /// `EPOLL_CTL_ADD` 1, `DEL` 2, `MOD` 3.
        operation: i32,
        /// Which socket.
        socket: Handle,
        /// Events.
        events: u32,
    },
    /// `epoll_wait`.
    EpollWait {
        /// The epoll instance.
        epoll: Handle,
        /// Most events wanted.
        most: i32,
        /// Milliseconds; negative: for ever.
        timeout_ms: i32,
    },
}

/// An address argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A peer.
    Address(SocketAddr),
    /// `AF_UNSPEC`.
    Unspecified,
}

/// Value of a socket option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// Most of them.
    Integer(i32),
    /// `SO_LINGER`.
    Linger {
        /// Whether it is on.
        on: i32,
        /// Seconds.
        seconds: i32,
    },
    /// `TCP_CONGESTION`; `TCP_FASTOPEN_KEY`.
    Text(String),
}

/// A call that returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// When.
    pub at: Instant,
    /// What: -1 for an error; the handle's number for calls that make a socket.
    pub result: i64,
    /// Linux's number of the error, if it is -1.
    pub errno: i32,
    /// What it wrote to its arguments.
    pub output: Output,
}

/// What a call wrote to its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Nothing.
    #[default]
    None,
    /// The value of an option or an ioctl.
    Option(OptionValue),
    /// `revents` of each entry of `poll`.
    Events(Vec<i16>),
    /// Ready sockets of `epoll_wait` with their events.
    Ready(Vec<(Handle, u32)>),
    /// What a queued error says (`MSG_ERRQUEUE`).
    QueuedError {
        /// `ee_errno`.
        errno: i32,
        /// `ee_origin`.
        origin: u8,
        /// `ee_type`.
        kind: u8,
        /// `ee_code`.
        code: u8,
        /// `ee_info`.
        info: u32,
        /// `ee_data`.
        data: u32,
    },
    /// Data was read: whether every byte was zero, as the script's peer sent it.
    Data {
        /// Every byte was zero.
        zeros: bool,
    },
}

/// The fields of `TCP_INFO`, under their Linux names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info(Vec<(&'static str, i64)>);

impl Info {
    /// Sets a field.
    pub fn set(&mut self, name: &'static str, value: i64) {
        match self.0.iter_mut().find(|field| field.0 == name) {
            Some(field) => field.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// A field's value.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.0.iter().find(|field| field.0 == name).map(|field| field.1)
    }

    /// All fields in the order they were set.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        self.0.iter().copied()
    }
}

/// A setting of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `net.ipv4.tcp_ecn` and the like, name with dots.
    Sysctl {
        /// Name with dots.
        name: String,
        /// Value.
        value: String,
    },
    /// `/sys/module/MODULE/parameters/NAME`.
    Module {
        /// Module.
        module: String,
        /// Parameter.
        name: String,
        /// Value.
        value: String,
    },
    /// `ip route change` of the route to the peer: what it says, the rest is default.
    Route {
        /// `advmss`.
        advmss: Option<u32>,
        /// `mtu`, perhaps locked.
        mtu: Option<u32>,
        /// Whether the MTU is locked.
        lock: bool,
        /// `initcwnd`.
        initial_window: Option<u32>,
        /// `rto_min`, milliseconds.
        rto_min_ms: Option<u32>,
    },
    /// `initrwnd` of the route to the peer: segments that the first receive window holds at most.
    FirstWindow {
        /// Segments.
        segments: u32,
    },
    /// `ip tcp_metrics flush`: forget what was learned about peers.
    ForgetPeers,
    /// Length of the device's queue; with 0 every packet is dropped before it leaves, and the sender gets an error.
    LinkQueue {
        /// Packets.
        packets: u32,
    },
    /// Whether a connection begins with a phase of immediate acknowledgments, as Linux does. Other systems do not, and
    /// scripts written for them are played with this off.
    QuickAcks(bool),
}

/// A state that a script may count sockets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// SYN-RECEIVED.
    SynReceived,
    /// TIME-WAIT.
    TimeWait,
}

/// Why a backend cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendError {
    /// The stack does not know this: the script's verdict is "unsupported".
    Unsupported(String),
    /// The stack broke.
    Broken(String),
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackendError::Unsupported(what) => write!(f, "unsupported: {what}"),
            BackendError::Broken(what) => write!(f, "the stack under test broke: {what}"),
        }
    }
}

impl std::error::Error for BackendError {}
