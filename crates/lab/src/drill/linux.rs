//! The kernel's TCP as the stack under test: a network namespace and a TUN device of the script's own, real system calls,
//! real time.
//!
//! The runner is proven here: a public script that passes on this kernel elsewhere has to pass here too. A call on a
//! blocking socket runs in a second thread; it counts as blocked once the kernel put that thread to sleep.

use super::backend::{
    Backend, Call, ConnectionState, Destination, Done, Handle, Info, OptionValue, Outbound, Output, Setting,
    Setup, Trouble,
};
use fleetfoot_core::time::Instant;
use fleetfoot_live::calls::{self, Errno, Fd};
use fleetfoot_live::{Clock, Error, Namespace, Tun};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, mpsc};

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
    fn collect(&mut self, deadline: Instant, one: bool) -> Result<(), Trouble> {
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

    fn wait(&mut self, until: Instant) -> Result<(), Trouble> {
        self.collect(until, false)
    }

    fn next_packet(&mut self, deadline: Instant) -> Result<Option<Outbound>, Trouble> {
        if self.out.is_empty() {
            self.collect(deadline, true)?;
        }
        Ok(self.out.pop_front())
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), Trouble> {
        self.tun.send(packet).map_err(|error| broken(&error))
    }

    fn call(&mut self, call: &Call) -> Result<Option<Done>, Trouble> {
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

    fn pending(&mut self) -> Result<Option<Done>, Trouble> {
        let Some(receiver) = &self.pending else {
            return Ok(None);
        };
        match receiver.try_recv() {
            Ok(done) => {
                self.pending = None;
                Ok(Some(done))
            }
            Err(mpsc::TryRecvError::Empty) => Ok(None),
            Err(mpsc::TryRecvError::Disconnected) => Err(Trouble::Broken("the calling thread died".into())),
        }
    }

    fn info(&mut self, socket: Handle) -> Result<Info, Trouble> {
        let bytes =
            calls::getsockopt(socket.0, libc::SOL_TCP, libc::TCP_INFO, 512).map_err(|Errno(errno)| {
                Trouble::Broken(format!("TCP_INFO of descriptor {}: errno {errno}", socket.0))
            })?;
        Ok(decode_info(&bytes))
    }

    fn configure(&mut self, setting: &Setting) -> Result<(), Trouble> {
        let unsupported = |error: Error| Trouble::Unsupported(error.to_string());
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
                Err(Trouble::Unsupported(format!(
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

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, Trouble> {
        let mut counters = BTreeMap::new();
        for table in ["netstat", "snmp"] {
            // The namespace of this thread, not of the process.
            let path = format!("/proc/thread-self/net/{table}");
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Trouble::Broken(format!("{path}: {error}")))?;
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

    fn count_state(&mut self, state: ConnectionState) -> Result<usize, Trouble> {
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

fn broken(error: &Error) -> Trouble {
    Trouble::Broken(error.to_string())
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

/// A call with everything it needs, ready for any thread.
struct Operation {
    call: Call,
    domain: i32,
    address: Option<SocketAddr>,
    congestion_control: Option<String>,
    quick_acks: bool,
}

impl Operation {
    fn new(linux: &Linux<'_>, call: &Call) -> Result<Operation, Trouble> {
        let address = match call {
            Call::Bind { address, .. } => Some(*address),
            Call::Connect {
                address: Destination::Address(address),
                ..
            } => Some(*address),
            Call::Write {
                to: Some(Destination::Address(address)),
                ..
            } => Some(*address),
            _ => None,
        };
        Ok(Operation {
            call: call.clone(),
            domain: linux.domain(),
            congestion_control: linux.congestion_control.clone(),
            quick_acks: linux.quick_acks,
            address: address.map(|address| linux.address(address)),
        })
    }

    fn run(&self, clock: &Clock) -> Done {
        let (result, output) = match self.perform() {
            Ok((result, output)) => (Ok(result), output),
            Err(errno) => (Err(errno), Output::None),
        };
        Done {
            at: clock.now(),
            result: result.map_or(-1, |value| value as i64),
            errno: result.err().map_or(0, |Errno(errno)| errno),
            output,
        }
    }

    fn perform(&self) -> Result<(usize, Output), Errno> {
        let plain = |result: Result<usize, Errno>| result.map(|value| (value, Output::None));
        let made = |result: Result<Fd, Errno>| result.map(|fd| (fd as usize, Output::None));
        match &self.call {
            Call::Socket { kind, protocol } => {
                let fd = calls::socket(self.domain, *kind, *protocol)?;
                if let Some(name) = &self.congestion_control {
                    // Sockets that are not TCP's refuse it.
                    let _ = calls::setsockopt(fd, libc::SOL_TCP, libc::TCP_CONGESTION, name.as_bytes());
                }
                made(Ok(fd))
            }
            Call::Bind { socket, address } => plain(calls::bind(socket.0, self.address.unwrap_or(*address))),
            Call::Listen { socket, backlog } => plain(calls::listen(socket.0, *backlog)),
            Call::Accept { socket, flags } => {
                let fd = calls::accept(socket.0, *flags)?;
                if !self.quick_acks {
                    calls::setsockopt(fd, libc::SOL_TCP, libc::TCP_QUICKACK, &0_i32.to_ne_bytes())?;
                }
                made(Ok(fd))
            }
            Call::Connect { socket, .. } => match self.address {
                Some(address) => plain(calls::connect(socket.0, address)),
                None => plain(calls::disconnect(socket.0)),
            },
            Call::Read {
                socket,
                buffers,
                flags,
            } => {
                let mut buffer = vec![0xff; buffers.iter().sum()];
                if flags & libc::MSG_ERRQUEUE != 0 {
                    let received = calls::recvmsg(socket.0, &mut buffer, *flags)?;
                    let error = received.control.iter().find_map(decode_error);
                    return Ok((received.bytes, error.unwrap_or_default()));
                }
                let length = if *flags == 0 {
                    calls::read(socket.0, &mut buffer)
                } else {
                    calls::recv(socket.0, &mut buffer, *flags)
                }?;
                let zeros = buffer.iter().take(length).all(|&byte| byte == 0);
                Ok((length, Output::Data { zeros }))
            }
            Call::Write {
                socket,
                buffers,
                flags,
                to,
            } => {
                let to_nowhere = *to == Some(Destination::Unspecified);
                let zeros: Vec<Vec<u8>> = buffers.iter().map(|&length| vec![0; length]).collect();
                let parts: Vec<&[u8]> = zeros.iter().map(Vec::as_slice).collect();
                match parts.as_slice() {
                    [one] if to.is_none() => plain(calls::send(socket.0, one, *flags, None)),
                    parts if to_nowhere => plain(calls::sendmsg_unspecified(socket.0, parts, *flags)),
                    parts => plain(calls::sendmsg(socket.0, parts, *flags, self.address)),
                }
            }
            Call::Shutdown { socket, how } => plain(calls::shutdown(socket.0, *how)),
            Call::Close { socket } => plain(calls::close(socket.0)),
            Call::Poll { entries, timeout_ms } => {
                let mut entries: Vec<(Fd, i16, i16)> = entries
                    .iter()
                    .map(|&(socket, events)| (socket.0, events, 0))
                    .collect();
                let ready = calls::poll(&mut entries, *timeout_ms)?;
                Ok((
                    ready,
                    Output::Events(entries.iter().map(|entry| entry.2).collect()),
                ))
            }
            Call::Ioctl { socket, request } => calls::ioctl(socket.0, u64::from(*request))
                .map(|value| (0, Output::Option(OptionValue::Integer(value)))),
            Call::Fcntl {
                socket,
                command,
                argument,
            } => plain(calls::fcntl(socket.0, *command, *argument)),
            Call::GetOption { socket, level, name } => {
                let value = calls::getsockopt(socket.0, *level, *name, 64)?;
                let integer = |at: usize| {
                    value.get(at..at + 4).map_or(0, |bytes| {
                        i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
                    })
                };
                Ok((
                    0,
                    Output::Option(if (*level, *name) == (libc::SOL_SOCKET, libc::SO_LINGER) {
                        OptionValue::Linger {
                            on: integer(0),
                            seconds: integer(4),
                        }
                    } else if value.len() == 4 {
                        OptionValue::Integer(integer(0))
                    } else {
                        let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
                        OptionValue::Text(String::from_utf8_lossy(&value[..end]).into_owned())
                    }),
                ))
            }
            Call::SetOption {
                socket,
                level,
                name,
                value,
            } => {
                let bytes = match value {
                    OptionValue::Integer(value) => value.to_ne_bytes().to_vec(),
                    OptionValue::Linger { on, seconds } => [on.to_ne_bytes(), seconds.to_ne_bytes()].concat(),
                    OptionValue::Text(text) => text.clone().into_bytes(),
                };
                plain(calls::setsockopt(socket.0, *level, *name, &bytes))
            }
            Call::EpollCreate => made(calls::epoll_create()),
            Call::EpollControl {
                epoll,
                operation,
                socket,
                events,
            } => plain(calls::epoll_ctl(
                epoll.0,
                *operation,
                socket.0,
                *events,
                socket.0 as u64,
            )),
            Call::EpollWait {
                epoll,
                most,
                timeout_ms,
            } => {
                let most = usize::try_from(*most).map_err(|_| Errno(libc::EINVAL))?;
                let ready = calls::epoll_wait(epoll.0, most.min(1024), *timeout_ms)?;
                Ok((
                    ready.len(),
                    Output::Ready(
                        ready
                            .iter()
                            .map(|&(events, data)| (Handle(data as i32), events))
                            .collect(),
                    ),
                ))
            }
        }
    }
}

/// `struct sock_extended_err` (linux/errqueue.h) of a control message.
fn decode_error((level, kind, data): &(i32, i32, Vec<u8>)) -> Option<Output> {
    let ours = [
        (libc::SOL_IP, libc::IP_RECVERR),
        (libc::SOL_IPV6, libc::IPV6_RECVERR),
    ];
    if !ours.contains(&(*level, *kind)) {
        return None;
    }
    let long = |at: usize| {
        let bytes = data.get(at..at + 4)?;
        Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    Some(Output::QueuedError {
        errno: long(0)? as i32,
        origin: *data.get(4)?,
        kind: *data.get(5)?,
        code: *data.get(6)?,
        info: long(8)?,
        data: long(12)?,
    })
}

/// The fields of `struct tcp_info` (linux/tcp.h): name, offset, size in bytes.
const INFO_FIELDS: &[(&str, usize, usize)] = &[
    ("tcpi_state", 0, 1),
    ("tcpi_ca_state", 1, 1),
    ("tcpi_retransmits", 2, 1),
    ("tcpi_probes", 3, 1),
    ("tcpi_backoff", 4, 1),
    ("tcpi_options", 5, 1),
    ("tcpi_rto", 8, 4),
    ("tcpi_ato", 12, 4),
    ("tcpi_snd_mss", 16, 4),
    ("tcpi_rcv_mss", 20, 4),
    ("tcpi_unacked", 24, 4),
    ("tcpi_sacked", 28, 4),
    ("tcpi_lost", 32, 4),
    ("tcpi_retrans", 36, 4),
    ("tcpi_fackets", 40, 4),
    ("tcpi_last_data_sent", 44, 4),
    ("tcpi_last_ack_sent", 48, 4),
    ("tcpi_last_data_recv", 52, 4),
    ("tcpi_last_ack_recv", 56, 4),
    ("tcpi_pmtu", 60, 4),
    ("tcpi_rcv_ssthresh", 64, 4),
    ("tcpi_rtt", 68, 4),
    ("tcpi_rttvar", 72, 4),
    ("tcpi_snd_ssthresh", 76, 4),
    ("tcpi_snd_cwnd", 80, 4),
    ("tcpi_advmss", 84, 4),
    ("tcpi_reordering", 88, 4),
    ("tcpi_rcv_rtt", 92, 4),
    ("tcpi_rcv_space", 96, 4),
    ("tcpi_total_retrans", 100, 4),
    ("tcpi_pacing_rate", 104, 8),
    ("tcpi_max_pacing_rate", 112, 8),
    ("tcpi_bytes_acked", 120, 8),
    ("tcpi_bytes_received", 128, 8),
    ("tcpi_segs_out", 136, 4),
    ("tcpi_segs_in", 140, 4),
    ("tcpi_notsent_bytes", 144, 4),
    ("tcpi_min_rtt", 148, 4),
    ("tcpi_data_segs_in", 152, 4),
    ("tcpi_data_segs_out", 156, 4),
    ("tcpi_delivery_rate", 160, 8),
    ("tcpi_busy_time", 168, 8),
    ("tcpi_rwnd_limited", 176, 8),
    ("tcpi_sndbuf_limited", 184, 8),
    ("tcpi_delivered", 192, 4),
    ("tcpi_delivered_ce", 196, 4),
    ("tcpi_bytes_sent", 200, 8),
    ("tcpi_bytes_retrans", 208, 8),
    ("tcpi_dsack_dups", 216, 4),
    ("tcpi_reord_seen", 220, 4),
    ("tcpi_rcv_ooopack", 224, 4),
    ("tcpi_snd_wnd", 228, 4),
    ("tcpi_rcv_wnd", 232, 4),
    ("tcpi_rehash", 236, 4),
    ("tcpi_total_rto", 240, 2),
    ("tcpi_total_rto_recoveries", 242, 2),
    ("tcpi_total_rto_time", 244, 4),
];

fn decode_info(bytes: &[u8]) -> Info {
    let mut info = Info::default();
    for &(name, offset, size) in INFO_FIELDS {
        // An older kernel gives fewer bytes: its missing fields stay unknown.
        let Some(field) = bytes.get(offset..offset + size) else {
            continue;
        };
        let mut value = [0; 8];
        value[..size].copy_from_slice(field);
        info.set(name, i64::from_le_bytes(value));
    }
    if let Some(&scales) = bytes.get(6) {
        info.set("tcpi_snd_wscale", i64::from(scales & 15));
        info.set("tcpi_rcv_wscale", i64::from(scales >> 4));
    }
    if let Some(&flags) = bytes.get(7) {
        info.set("tcpi_delivery_rate_app_limited", i64::from(flags & 1));
        info.set("tcpi_fastopen_client_fail", i64::from(flags >> 1 & 3));
    }
    info
}
