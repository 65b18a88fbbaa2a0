//! The kernel's TCP as the stack under test: a network namespace and a TUN device of the script's own, real system calls,
//! real time.
//!
//! The runner is proven here: a public script that passes on this kernel elsewhere has to pass here too. A call on a
//! blocking socket runs in a second thread; it counts as blocked once the kernel put that thread to sleep.

use super::backend::{
    Backend, BackendError, Call, ConnectionState, Done, Handle, Info, Outbound, Setting, Setup,
};
use fleetfoot_core::time::Instant;
use fleetfoot_live::calls::{self, Errno, Fd};
use fleetfoot_live::{Clock, Error, Namespace, Tun};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, mpsc};

mod info;
mod operation;

use operation::Operation;

/// Name of the device in the namespace, as public scripts call it.
const DEVICE: &str = "tun0";

/// The kernel of this machine.
pub struct Linux<'n> {
    namespace: &'n Namespace,
    tun: Tun,
    clock: Clock,
    setup: Setup,
    /// Packets that came out and nobody took.
    out: VecDeque<Outbound>,
    buffer: Vec<u8>,
    /// Every socket that was made and not closed.
    open: Vec<Fd>,
    pending: Option<mpsc::Receiver<Done>>,
    /// Set on each socket, where the namespace's default cannot be.
    congestion_control: Option<String>,
    /// Whether accepted sockets begin with a phase of immediate acknowledgments.
    quick_acks: bool,
}

impl Linux<'_> {
    /// Runs `work` with a fresh kernel stack: no state is shared with any other.
    ///
    /// # Errors
    /// What this machine does not allow (namespaces, TUN), or that iproute2 is missing.
    pub fn run<T: Send>(setup: &Setup, work: impl FnOnce(&mut dyn Backend) -> T + Send) -> Result<T, Error> {
        Namespace::run(|namespace| {
            let clock = Clock::start();
            // No duplicate address detection: addresses are usable at once. No router solicitations.
            for setting in ["accept_dad", "router_solicitations", "autoconf"] {
                // A kernel without IPv6 runs the IPv4 scripts.
                let _ = namespace.sysctl(&format!("net.ipv6.conf.default.{setting}"), "0");
            }
            let tun = namespace.tun(DEVICE, setup.mtu)?;
            namespace.ip(&match setup.local {
                IpAddr::V4(local) => {
                    format!("address add {local}/32 dev {DEVICE}\nroute add default dev {DEVICE}")
                }
                IpAddr::V6(local) => {
                    format!("address add {local}/128 dev {DEVICE} nodad\n-6 route add default dev {DEVICE}")
                }
            })?;
            let mut linux = Linux {
                namespace,
                tun,
                clock,
                setup: setup.clone(),
                out: VecDeque::new(),
                buffer: vec![0; 65_536],
                open: Vec::new(),
                pending: None,
                congestion_control: None,
                quick_acks: true,
            };
            Ok(work(&mut linux))
        })
    }

    /// Takes what the device holds until `deadline`, or until one packet of ours if `one`.
    fn collect(&mut self, deadline: Instant, one: bool) -> Result<(), BackendError> {
        loop {
            let received = self
                .tun
                .receive(&self.clock, deadline, &mut self.buffer)
                .map_err(|error| broken(&error))?;
            let Some(length) = received else {
                return Ok(());
            };
            let bytes = &self.buffer[..length];
            if self.is_ours(bytes) {
                self.out.push_back(Outbound {
                    at: self.clock.now(),
                    bytes: bytes.to_vec(),
                    by_timer: false,
                });
                if one {
                    return Ok(());
                }
            }
        }
    }

    /// Whether a packet belongs to the script: from the stack under test to the peer.
    fn is_ours(&self, bytes: &[u8]) -> bool {
        match (self.setup.local, self.setup.remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                bytes.len() >= 20
                    && bytes[0] >> 4 == 4
                    && bytes[12..16] == local.octets()
                    && bytes[16..20] == remote.octets()
            }
            (IpAddr::V6(local), IpAddr::V6(remote)) => {
                bytes.len() >= 40
                    && bytes[0] >> 4 == 6
                    && bytes[8..24] == local.octets()
                    && bytes[24..40] == remote.octets()
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// The address in the family of the script's sockets.
    fn address(&self, address: SocketAddr) -> SocketAddr {
        match address.ip() {
            IpAddr::V4(ip) if self.setup.mapped => {
                SocketAddr::new(ip.to_ipv6_mapped().into(), address.port())
            }
            IpAddr::V4(_) | IpAddr::V6(_) => address,
        }
    }

    fn domain(&self) -> i32 {
        if self.setup.mapped || self.setup.local.is_ipv6() {
            libc::AF_INET6
        } else {
            libc::AF_INET
        }
    }

    /// Remembers the socket a call made, forgets the one it closed.
    fn note(&mut self, call: &Call, done: &Done) {
        match call {
            Call::Socket { .. } | Call::Accept { .. } | Call::EpollCreate if done.result >= 0 => {
                self.open.push(done.result as Fd);
            }
            Call::Close { socket } => self.open.retain(|&fd| fd != socket.0),
            _ => {}
        }
    }
}

impl Backend for Linux<'_> {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wait(&mut self, until: Instant) -> Result<(), BackendError> {
        self.collect(until, false)
    }

    fn next_packet(&mut self, deadline: Instant) -> Result<Option<Outbound>, BackendError> {
        if self.out.is_empty() {
            self.collect(deadline, true)?;
        }
        Ok(self.out.pop_front())
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), BackendError> {
        self.tun.send(packet).map_err(|error| broken(&error))
    }

    fn call(&mut self, call: &Call) -> Result<Option<Done>, BackendError> {
        let operation = Operation::new(self, call)?;
        if !blocks(call) {
            let done = operation.run(&self.clock);
            self.note(call, &done);
            return Ok(Some(done));
        }
        let (sender, receiver) = mpsc::channel();
        let thread = Arc::new(AtomicI32::new(0));
        let (clock, identity) = (self.clock, Arc::clone(&thread));
        std::thread::spawn(move || {
            identity.store(fleetfoot_live::thread_id(), Ordering::Release);
            // The script may be over: nobody wants the result then.
            let _ = sender.send(operation.run(&clock));
        });
        // Asleep twice in a row, apart by more than a lock is held: it blocks.
        let mut asleep = 0;
        while asleep < 2 {
            if let Ok(done) = receiver.recv_timeout(std::time::Duration::from_micros(100)) {
                self.note(call, &done);
                return Ok(Some(done));
            }
            match thread.load(Ordering::Acquire) {
                0 => {}
                id if fleetfoot_live::sleeps(id) => asleep += 1,
                _ => asleep = 0,
            }
        }
        self.pending = Some(receiver);
        if let Call::Close { socket } = call {
            self.open.retain(|&fd| fd != socket.0);
        }
        Ok(None)
    }

    fn pending(&mut self) -> Result<Option<Done>, BackendError> {
        let Some(receiver) = &self.pending else {
            return Ok(None);
        };
        match receiver.try_recv() {
            Ok(done) => {
                self.pending = None;
                Ok(Some(done))
            }
            Err(mpsc::TryRecvError::Empty) => Ok(None),
            Err(mpsc::TryRecvError::Disconnected) => {
                Err(BackendError::Broken("the calling thread died".into()))
            }
        }
    }

    fn info(&mut self, socket: Handle) -> Result<Info, BackendError> {
        let bytes =
            calls::getsockopt(socket.0, libc::SOL_TCP, libc::TCP_INFO, 512).map_err(|Errno(errno)| {
                BackendError::Broken(format!("TCP_INFO of descriptor {}: errno {errno}", socket.0))
            })?;
        Ok(info::decode(&bytes))
    }

    fn configure(&mut self, setting: &Setting) -> Result<(), BackendError> {
        let unsupported = |error: Error| BackendError::Unsupported(error.to_string());
        match setting {
            // Some settings belong to the whole machine and cannot be written here: fine if they are as wanted.
            Setting::Sysctl { name, value } => match self.namespace.sysctl(name, value) {
                Ok(()) if name == "net.ipv4.tcp_congestion_control" => {
                    self.congestion_control = None;
                    Ok(())
                }
                // Only algorithms that the machine's own namespace allows can be a namespace's default. Each socket may have any.
                Err(_) if name == "net.ipv4.tcp_congestion_control" => {
                    self.congestion_control = Some(value.clone());
                    Ok(())
                }
                Err(error) if !self.namespace.sysctl_is(name, value) => Err(unsupported(error)),
                Ok(()) | Err(_) => Ok(()),
            },
            Setting::Module { module, name, value } => {
                let path = format!("/sys/module/{module}/parameters/{name}");
                if std::fs::read_to_string(path).is_ok_and(|set| set.trim() == value) {
                    return Ok(());
                }
                Err(BackendError::Unsupported(format!(
                    "parameter {name} of module {module}: it would change the whole machine"
                )))
            }
            Setting::Route {
                advmss,
                mtu,
                lock,
                initial_window,
                rto_min_ms,
            } => {
                let mut line = format!("route replace {} dev {DEVICE}", self.setup.remote);
                let mut add = |name: &str, value: &Option<u32>, unit: &str| {
                    if let Some(value) = value {
                        line.push_str(&format!(" {name} {value}{unit}"));
                    }
                };
                add(if *lock { "mtu lock" } else { "mtu" }, mtu, "");
                add("advmss", advmss, "");
                add("initcwnd", initial_window, "");
                add("rto_min", rto_min_ms, "ms");
                self.namespace.ip(&line).map_err(unsupported)
            }
            Setting::FirstWindow { segments } => {
                let remote = self.setup.remote;
                let line = format!("route replace {remote} dev {DEVICE} initrwnd {segments}");
                self.namespace.ip(&line).map_err(unsupported)
            }
            Setting::LinkQueue { packets } => self
                .namespace
                .shell(&format!(
                    "tc qdisc replace dev {DEVICE} root pfifo limit {packets}"
                ))
                .map(|_| ())
                .map_err(unsupported),
            Setting::QuickAcks(on) => {
                self.quick_acks = *on;
                Ok(())
            }
            Setting::ForgetPeers => self.namespace.ip("tcp_metrics flush all").map_err(unsupported),
        }
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, BackendError> {
        let mut counters = BTreeMap::new();
        for table in ["netstat", "snmp"] {
            // The namespace of this thread, not of the process.
            let path = format!("/proc/thread-self/net/{table}");
            let text = std::fs::read_to_string(&path)
                .map_err(|error| BackendError::Broken(format!("{path}: {error}")))?;
            let lines: Vec<_> = text.lines().collect();
            // A line of names, then one of values; both begin with the group.
            for pair in lines.chunks_exact(2) {
                let (names, values) = (pair[0].split_whitespace(), pair[1].split_whitespace());
                let group = pair[0].split(':').next().unwrap_or_default();
                for (name, value) in names.zip(values).skip(1) {
                    if let Ok(value) = value.parse() {
                        counters.insert(format!("{group}{name}"), value);
                    }
                }
            }
        }
        Ok(counters)
    }

    fn count_state(&mut self, state: ConnectionState) -> Result<usize, BackendError> {
        let wanted = match state {
            ConnectionState::SynReceived => "03",
            ConnectionState::TimeWait => "06",
        };
        let mut count = 0;
        for table in ["tcp", "tcp6"] {
            // The namespace of this thread, not of the process.
            let path = format!("/proc/thread-self/net/{table}");
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            count += text
                .lines()
                .skip(1)
                .filter(|line| line.split_whitespace().nth(3) == Some(wanted))
                .count();
        }
        Ok(count)
    }
}

impl Drop for Linux<'_> {
    fn drop(&mut self) {
        for &fd in &self.open {
            // Wakes a call that still blocks on it; errors have no reader any more.
            let _ = calls::shutdown(fd, libc::SHUT_RDWR);
            let _ = calls::close(fd);
        }
    }
}

fn broken(error: &Error) -> BackendError {
    BackendError::Broken(error.to_string())
}

/// Whether the call can put its caller to sleep.
fn blocks(call: &Call) -> bool {
    let by_socket = |socket: &Handle| {
        calls::fcntl(socket.0, libc::F_GETFL, 0).is_ok_and(|flags| flags as i32 & libc::O_NONBLOCK == 0)
    };
    match call {
        Call::Accept { socket, .. } | Call::Connect { socket, .. } | Call::Close { socket } => {
            by_socket(socket)
        }
        Call::Read { socket, flags, .. } | Call::Write { socket, flags, .. } => {
            flags & libc::MSG_DONTWAIT == 0 && by_socket(socket)
        }
        Call::Poll { timeout_ms, .. } | Call::EpollWait { timeout_ms, .. } => *timeout_ms != 0,
        Call::Socket { .. }
        | Call::Bind { .. }
        | Call::Listen { .. }
        | Call::Shutdown { .. }
        | Call::Ioctl { .. }
        | Call::Fcntl { .. }
        | Call::GetOption { .. }
        | Call::SetOption { .. }
        | Call::EpollCreate
        | Call::EpollControl { .. } => false,
    }
}
