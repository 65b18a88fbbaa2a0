//! Fleetfoot's own TCP as the stack under test, in virtual time.
//!
//! Packets go through the codec of `core::wire` with real checksums, calls through `core::socket`. Time moves only when
//! the runner lets it, from one timer to the next; a call that blocks is made again after every packet and timer.

use super::backend::{
    Backend, BackendError, Call, ConnectionState, Destination, Done, Handle, Info, OptionValue, Outbound,
    Output, Setting, Setup,
};
use super::constant;
use fleetfoot_core::socket::{
    self, Called, Errno, Family, Fd, Header, How, Outcome, RecvFlags, SendFlags, SocketOption, Stack,
    StackConfig,
};
use fleetfoot_core::tcp::{Config, State};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::wire;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

mod datagram;
mod epoll;
mod icmp;

/// Our stack and its clock.
pub struct Virtual {
    stack: Stack,
    now: Instant,
    out: VecDeque<Outbound>,
    buffer: Vec<u8>,
    waiting: Option<Waiting>,
    returned: Option<Done>,
    /// The device takes nothing.
    device_full: bool,
    polls: BTreeMap<i32, Vec<epoll::Watched>>,
    datagrams: BTreeMap<i32, datagram::Opened>,
    setup: Setup,
    set_switch: fn(&mut Config, &str, &str) -> Result<(), String>,
}

/// A call that blocks.
struct Waiting {
    call: Call,
    /// When `poll` gives up.
    until: Option<Instant>,
}

impl Virtual {
    /// A fresh stack with the switches of `tcp`; `set_switch` sets one of them by its key of `[tcp]`.
    pub fn new(
        setup: &Setup,
        mut tcp: Config,
        set_switch: fn(&mut Config, &str, &str) -> Result<(), String>,
    ) -> Virtual {
        tcp.mtu = setup.mtu;
        Virtual {
            stack: Stack::new(StackConfig::new(vec![setup.local], tcp)),
            now: Instant::ZERO + Duration::from_secs(1),
            out: VecDeque::new(),
            buffer: vec![0; 65_535 + 40],
            waiting: None,
            returned: None,
            polls: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            device_full: false,
            setup: setup.clone(),
            set_switch,
        }
    }

    /// Takes what the stack has to send, and tries a blocking call again.
    fn turn(&mut self) -> Result<(), BackendError> {
        self.drain(false)?;
        if let Some(waiting) = self.waiting.take() {
            let done = self.attempt(&waiting.call)?;
            let expired = waiting.until.is_some_and(|until| until <= self.now);
            match done {
                Some(done) => self.returned = Some(done),
                None if expired => self.returned = Some(self.done(0, Output::None)),
                None => self.waiting = Some(waiting),
            }
            self.drain(false)?;
        }
        Ok(())
    }

    fn drain(&mut self, by_timer: bool) -> Result<(), BackendError> {
        if self.device_full {
            return Ok(()); // what a device refuses was not sent (Linux `tcp_transmit_skb`)
        }
        while let Some(packet) = self.stack.poll_transmit(self.now) {
            let Header { source, destination } = packet.header;
            let len = wire::encode(&mut self.buffer, &packet.segment, source, destination, &[])
                .map_err(|error| BackendError::Broken(format!("a packet cannot be written: {error}")))?;
            self.out.push_back(Outbound {
                at: self.now,
                bytes: self.buffer[..len].to_vec(),
                by_timer,
            });
        }
        Ok(())
    }

    /// Lets time pass to the next deadline, no further than `limit`. False: `limit` is reached.
    fn step(&mut self, limit: Instant) -> Result<bool, BackendError> {
        let wake = self.waiting.as_ref().and_then(|waiting| waiting.until);
        let next = [self.stack.poll_timeout(), wake].into_iter().flatten().min();
        match next {
            Some(at) if at <= limit => {
                self.now = self.now.max(at);
                if self.stack.poll_timeout().is_some_and(|at| at <= self.now) {
                    self.stack.on_timeout(self.now);
                    self.drain(true)?;
                }
                self.turn()?;
                Ok(true)
            }
            _ => {
                self.now = self.now.max(limit);
                Ok(false)
            }
        }
    }

    fn done(&self, result: i64, output: Output) -> Done {
        Done {
            at: self.now,
            result,
            errno: 0,
            output,
        }
    }

    fn failed(&self, errno: i32) -> Done {
        Done {
            at: self.now,
            result: -1,
            errno,
            output: Output::None,
        }
    }

    fn simple<T>(&self, result: Result<T, Errno>, value: impl FnOnce(T) -> i64) -> Done {
        match result {
            Ok(done) => self.done(value(done), Output::None),
            Err(errno) => self.failed(errno.number()),
        }
    }

    fn may_block<T>(&self, called: Called<T>, value: impl FnOnce(T) -> i64) -> Option<Done> {
        match called {
            Ok(Outcome::Done(done)) => Some(self.done(value(done), Output::None)),
            Ok(Outcome::Blocked) => None,
            Err(errno) => Some(self.failed(errno.number())),
        }
    }

    fn attempt(&mut self, call: &Call) -> Result<Option<Done>, BackendError> {
        if let Some(done) = self.datagram_call(call)? {
            return Ok(done);
        }
        let now = self.now;
        let unsupported = |what: String| Err(BackendError::Unsupported(what));
        Ok(Some(match call {
            Call::Socket { kind, protocol } => return self.socket(*kind, *protocol).map(Some),
            Call::Bind { socket, address } => {
                let bound = self.stack.bind(now, fd(*socket), *address);
                self.simple(bound, |()| 0)
            }
            Call::Listen { socket, backlog } => {
                let listening = self.stack.listen(now, fd(*socket), *backlog);
                self.simple(listening, |()| 0)
            }
            Call::Accept { socket, flags } => {
                let accepted = self.stack.accept(now, fd(*socket));
                if let (Ok(Outcome::Done((child, _))), true) = (&accepted, flags & SOCK_NONBLOCK != 0) {
                    let _ = self.stack.set_nonblocking(*child, true);
                }
                return Ok(self.may_block(accepted, |(child, _)| i64::from(child.0)));
            }
            Call::Connect { socket, address } => match address {
                Destination::Address(address) => {
                    let connected = self.stack.connect(now, fd(*socket), *address);
                    return Ok(self.may_block(connected, |()| 0));
                }
                Destination::Unspecified => {
                    let dissolved = self.stack.disconnect(now, fd(*socket));
                    self.simple(dissolved, |()| 0)
                }
            },
            Call::Read {
                socket,
                buffers,
                flags,
            } => {
                let len = buffers.iter().map(|len| *len as u64).sum();
                let flags = recv_flags(*flags)?;
                let read = self.stack.recv(now, fd(*socket), len, flags);
                // What the stack gives are stream offsets; the script's peer sends nothing but zeros.
                return Ok(self.may_block(read, |received| received.len as i64));
            }
            Call::Write {
                socket,
                buffers,
                flags,
                to,
            } => {
                let len = buffers.iter().map(|len| *len as u64).sum();
                let flags = send_flags(*flags)?;
                let to = match to {
                    Some(Destination::Unspecified) if flags.fast_open => {
                        return Ok(Some(self.failed(Errno::EOPNOTSUPP.number())));
                    }
                    Some(Destination::Address(address)) => Some(*address),
                    Some(Destination::Unspecified) | None => None,
                };
                let written = self.stack.send(now, fd(*socket), len, flags, to);
                return Ok(self.may_block(written, |sent| sent.len as i64));
            }
            Call::Shutdown { socket, how } => {
                let how = match how {
                    0 => How::Read,
                    1 => How::Write,
                    2 => How::Both,
                    _ => return Ok(Some(self.failed(Errno::EINVAL.number()))),
                };
                let shut = self.stack.shutdown(now, fd(*socket), how);
                self.simple(shut, |()| 0)
            }
            Call::Close { socket } => {
                if self.polls.remove(&socket.0).is_some() {
                    return Ok(Some(self.done(0, Output::None)));
                }
                let closed = self.stack.close(now, fd(*socket));
                return Ok(self.may_block(closed, |()| 0));
            }
            Call::Poll { entries, timeout_ms } => {
                let mut found = Vec::new();
                for (socket, events) in entries {
                    found.push(self.poll_one(*socket, *events).unwrap_or(POLLNVAL));
                }
                let ready = found.iter().filter(|events| **events != 0).count();
                if ready == 0 && *timeout_ms != 0 {
                    return Ok(None);
                }
                self.done(ready as i64, Output::Events(found))
            }
            Call::Ioctl { socket, request } => {
                let value = match *request {
                    SIOCINQ => self.stack.input_queue(fd(*socket)),
                    SIOCOUTQ => self.stack.output_queue(now, fd(*socket)),
                    SIOCOUTQNSD => self.stack.unsent(now, fd(*socket)),
                    other => return unsupported(format!("ioctl {other:#x}")),
                };
                match value {
                    Ok(value) => self.done(0, Output::Option(OptionValue::Integer(value as i32))),
                    Err(errno) => self.failed(errno.number()),
                }
            }
            Call::Fcntl {
                socket,
                command,
                argument,
            } => match command {
                3 => {
                    let flags = self.stack.nonblocking(fd(*socket));
                    self.simple(flags, |on| 2 | if on { i64::from(O_NONBLOCK) } else { 0 })
                }
                4 => {
                    let set = self
                        .stack
                        .set_nonblocking(fd(*socket), argument & O_NONBLOCK != 0);
                    self.simple(set, |()| 0)
                }
                other => return unsupported(format!("fcntl {other}")),
            },
            Call::GetOption { socket, level, name } => self.get_option(*socket, *level, *name)?,
            Call::SetOption {
                socket,
                level,
                name,
                value,
            } => self.set_option(*socket, *level, *name, value)?,
            Call::EpollCreate => {
                let handle = epoll::FIRST + self.polls.len() as i32;
                self.polls.insert(handle, Vec::new());
                self.done(i64::from(handle), Output::None)
            }
            Call::EpollControl {
                epoll,
                operation,
                socket,
                events,
            } => self.epoll_control(*epoll, *operation, *socket, *events),
            Call::EpollWait {
                epoll,
                most,
                timeout_ms,
            } => return Ok(self.epoll_wait(*epoll, *most, *timeout_ms)),
        }))
    }

    fn socket(&mut self, kind: i32, protocol: i32) -> Result<Done, BackendError> {
        let stream = kind & 0xf == 1;
        if stream && protocol != 0 && protocol != 6 {
            // A stream of another protocol does not exist.
            return Ok(self.failed(constant::errno("EPROTONOSUPPORT").unwrap_or(-1)));
        }
        if kind & 0xf == 2 && matches!(protocol, 0 | 17) {
            return Ok(self.open_datagram(kind & SOCK_NONBLOCK != 0));
        }
        if !stream {
            return Err(BackendError::Unsupported(
                "sockets other than TCP and UDP".to_owned(),
            ));
        }
        let family = match self.setup.local {
            IpAddr::V4(_) if !self.setup.mapped => Family::V4,
            IpAddr::V4(_) | IpAddr::V6(_) => Family::V6,
        };
        let made = self.stack.socket(self.now, family);
        if let (Ok(made), true) = (&made, kind & SOCK_NONBLOCK != 0) {
            let _ = self.stack.set_nonblocking(*made, true);
        }
        Ok(self.simple(made, |made| i64::from(made.0)))
    }

    fn get_option(&mut self, socket: Handle, level: i32, name: i32) -> Result<Done, BackendError> {
        let option = option(level, name)?;
        Ok(match self.stack.getsockopt(self.now, fd(socket), option) {
            Ok(value) => {
                let value = match value {
                    socket::OptionValue::Int(value) => OptionValue::Integer(value),
                    socket::OptionValue::Linger { on, seconds } => OptionValue::Linger {
                        on: i32::from(on),
                        seconds,
                    },
                    socket::OptionValue::Name(name) => OptionValue::Text(name),
                };
                self.done(0, Output::Option(value))
            }
            Err(errno) => self.failed(errno.number()),
        })
    }

    fn set_option(
        &mut self,
        socket: Handle,
        level: i32,
        name: i32,
        value: &OptionValue,
    ) -> Result<Done, BackendError> {
        let option = option(level, name)?;
        let value = match value {
            OptionValue::Integer(value) => socket::OptionValue::Int(*value),
            OptionValue::Linger { on, seconds } => socket::OptionValue::Linger {
                on: *on != 0,
                seconds: *seconds,
            },
            OptionValue::Text(text) => socket::OptionValue::Name(text.clone()),
        };
        let set = self.stack.setsockopt(self.now, fd(socket), option, &value);
        Ok(self.simple(set, |()| 0))
    }

    /// A packet that is no TCP segment: a datagram, or an ICMP message.
    fn other(&mut self, packet: &[u8]) {
        if self.datagram_in(packet) {
            return;
        }
        match icmp::read(packet) {
            Some((UDP, header, error)) => self.datagram_icmp(&header, &error),
            Some((_, header, error)) => self.stack.on_icmp(self.now, &header, &error),
            None => {}
        }
    }
}

impl Backend for Virtual {
    fn now(&self) -> Instant {
        self.now
    }

    fn wait(&mut self, until: Instant) -> Result<(), BackendError> {
        self.turn()?;
        while self.step(until)? {}
        Ok(())
    }

    fn next_packet(&mut self, deadline: Instant) -> Result<Option<Outbound>, BackendError> {
        self.turn()?;
        loop {
            if let Some(packet) = self.out.pop_front() {
                return Ok(Some(packet));
            }
            if !self.step(deadline)? {
                return Ok(None);
            }
        }
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), BackendError> {
        self.turn()?;
        match wire::parse(packet) {
            Ok(parsed) => {
                let header = Header {
                    source: parsed.source,
                    destination: parsed.destination,
                };
                self.stack.on_packet(self.now, &header, &parsed.segment);
            }
            Err(wire::Error::Protocol) => self.other(packet),
            Err(_) => {} // damaged: dropped, as any host does
        }
        self.turn()
    }

    fn call(&mut self, call: &Call) -> Result<Option<Done>, BackendError> {
        self.turn()?;
        let done = self.attempt(call)?;
        if done.is_none() {
            let timeout_ms = match call {
                Call::Poll { timeout_ms, .. } | Call::EpollWait { timeout_ms, .. } => *timeout_ms,
                _ => -1,
            };
            self.waiting = Some(Waiting {
                call: call.clone(),
                until: u64::try_from(timeout_ms)
                    .ok()
                    .map(|timeout| self.now + Duration::from_millis(timeout)),
            });
        }
        self.drain(false)?;
        Ok(done)
    }

    fn pending(&mut self) -> Result<Option<Done>, BackendError> {
        Ok(self.returned.take())
    }

    fn info(&mut self, socket: Handle) -> Result<Info, BackendError> {
        let fields = self
            .stack
            .info(self.now, fd(socket))
            .map_err(|errno| BackendError::Broken(format!("TCP_INFO: {errno}")))?;
        let mut info = Info::default();
        for (name, value) in fields.fields() {
            info.set(name, i64::try_from(value).unwrap_or(i64::MAX));
        }
        Ok(info)
    }

    fn configure(&mut self, setting: &Setting) -> Result<(), BackendError> {
        match setting {
            Setting::ForgetPeers => self.stack.forget_peers(),
            Setting::LinkQueue { packets } => self.device_full = *packets == 0,
            _ => {}
        }
        super::sysctl::apply(self.stack.config_mut(), setting, self.set_switch)?;
        if matches!(setting, Setting::Sysctl { name, .. } if name.ends_with("ecn_option")) {
            let when = self.stack.config().tcp.ecn_option;
            self.stack.set_ecn_option(self.now, when);
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, BackendError> {
        let ignored = self.stack.icmp_ignored();
        Ok(BTreeMap::from([("TcpExtOutOfWindowIcmps".to_owned(), ignored)]))
    }

    fn count_state(&mut self, state: ConnectionState) -> Result<usize, BackendError> {
        Ok(match state {
            ConnectionState::SynReceived => self.stack.count(State::SynReceived),
            ConnectionState::TimeWait => self.stack.count(State::TimeWait),
        })
    }
}

fn fd(handle: Handle) -> Fd {
    // Handles that were never given out name no socket.
    Fd(u32::try_from(handle.0).unwrap_or(u32::MAX))
}

fn option(level: i32, name: i32) -> Result<SocketOption, BackendError> {
    SocketOption::by_number(level, name)
        .ok_or_else(|| BackendError::Unsupported(format!("socket option {name} of level {level}")))
}

fn recv_flags(flags: i32) -> Result<RecvFlags, BackendError> {
    let has = |bit| flags & bit != 0;
    let known = MSG_OOB | MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT | MSG_WAITALL;
    if flags & !known != 0 {
        return Err(BackendError::Unsupported(format!(
            "the flags {:#x} of a read",
            flags & !known
        )));
    }
    Ok(RecvFlags {
        peek: has(MSG_PEEK),
        dont_wait: has(MSG_DONTWAIT),
        wait_all: has(MSG_WAITALL),
        truncate: has(MSG_TRUNC),
        out_of_band: has(MSG_OOB),
    })
}

fn send_flags(flags: i32) -> Result<SendFlags, BackendError> {
    let has = |bit| flags & bit != 0;
    let known = MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_FASTOPEN;
    if flags & !known != 0 {
        return Err(BackendError::Unsupported(format!(
            "the flags {:#x} of a write",
            flags & !known
        )));
    }
    Ok(SendFlags {
        more: has(MSG_MORE),
        dont_wait: has(MSG_DONTWAIT),
        out_of_band: has(MSG_OOB),
        fast_open: has(MSG_FASTOPEN),
        no_signal: has(MSG_NOSIGNAL),
    })
}

const UDP: u8 = 17;
const SOCK_NONBLOCK: i32 = 0o4000;
const O_NONBLOCK: i32 = 0o4000;
const POLLNVAL: i16 = 0x20;
const SIOCINQ: u32 = 0x541b;
const SIOCOUTQ: u32 = 0x5411;
const SIOCOUTQNSD: u32 = 0x894b;
const MSG_OOB: i32 = 1;
const MSG_PEEK: i32 = 2;
const MSG_TRUNC: i32 = 0x20;
const MSG_DONTWAIT: i32 = 0x40;
const MSG_WAITALL: i32 = 0x100;
const MSG_NOSIGNAL: i32 = 0x4000;
const MSG_MORE: i32 = 0x8000;
const MSG_FASTOPEN: i32 = 0x2000_0000;
