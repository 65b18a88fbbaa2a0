//! How a session begins: a client is accepted, says where it wants to go, and is connected there or refused.

use super::leg::{self, Fault, Leg};
use super::request::{Progress, Refusal, Target};
use super::session::{Phase, Session};
use super::{Front, Next, Prefix, Proxy};
use crate::host::ip_of;
use fleetfoot_core::time::Duration;
use nix::ifaddrs::getifaddrs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

impl Proxy {
    /// Accepts who waits, as far as there is place; whether more may wait.
    pub(super) fn accept(&mut self) -> bool {
        let now = self.host.clock().now();
        if self.retry_at.is_some_and(|at| now < at) {
            return false;
        }
        self.retry_at = None;
        for _ in 0..AT_ONCE {
            if self.counters.open >= self.config.most as u64 {
                return false;
            }
            let waiting = self.listeners.iter_mut().find(|(_, waiting)| *waiting);
            if let Some((listener, waiting)) = waiting {
                match listener.accept() {
                    Ok((stream, peer)) => self.begin_with_kernel(stream, peer),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => *waiting = false,
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(_) => {
                        self.counters.accept_failures += 1;
                        self.retry_at = Some(now + RETRY);
                        return false;
                    }
                }
                continue;
            }
            let Some((listener, waiting @ true)) = &mut self.listening else {
                return false;
            };
            match self.host.accept(*listener) {
                Ok((handle, peer)) => {
                    self.counters.accepted += 1;
                    if self.is_allowed(peer.ip()) {
                        self.begin(Leg::ours(handle, true));
                    } else {
                        self.counters.not_allowed += 1;
                        self.host.abort(handle);
                    }
                }
                Err(_) => *waiting = false,
            }
        }
        true
    }

    fn begin_with_kernel(&mut self, stream: TcpStream, peer: SocketAddr) {
        self.counters.accepted += 1;
        // A target that leads back here was not recognised as such: an address of this machine that another one translates.
        if self.is_of_host(peer.ip()) {
            self.counters.own += 1;
            return leg::reset(stream);
        }
        if !self.is_allowed(peer.ip()) {
            self.counters.not_allowed += 1;
            return leg::reset(stream);
        }
        match Leg::accepted(stream) {
            Ok(front) => self.begin(front),
            Err(_) => self.counters.abandoned += 1, // it has gone already
        }
    }

    fn begin(&mut self, front: Leg) {
        let token = self.place();
        let watched = match &front {
            Leg::Kernel(kernel) => self.watch(&kernel.stream, token).is_ok(),
            Leg::Ours(ours) => {
                self.know(ours.handle, token);
                true
            }
        };
        let slot = super::slot_of(token);
        if !watched {
            self.leave(slot);
            self.counters.refuse(Refusal::Busy);
            return front.abort(&mut self.host);
        }
        let fixed = self.config.target.clone();
        let (phase, handshake) = match fixed {
            Some(_) => (Phase::Resolving, None),
            None => (Phase::Request, Some(Default::default())),
        };
        let session = Box::new(Session::new(front, phase, handshake));
        if let Some(place) = self.sessions.get_mut(slot) {
            place.session = Some(session);
        }
        let limit = self.config.limits.request;
        self.with(token, |proxy, session| match fixed {
            Some(target) => {
                proxy.counters.plain += 1;
                proxy.resolve(session, token, target)
            }
            None => {
                proxy.wait_at_most(session, token, limit);
                proxy.read_request(session, token)
            }
        });
    }

    pub(super) fn read_request(&mut self, session: &mut Session, token: u64) -> Next {
        loop {
            let Some(handshake) = &mut session.handshake else {
                return Next::Stays;
            };
            let mut room = std::mem::take(&mut self.buffers.read);
            let most = handshake.room().min(room.len());
            let found = session
                .front
                .read(&mut self.host, room.get_mut(..most).unwrap_or_default());
            let mut answer = Vec::new();
            let progress = match found {
                Ok(None) => None,
                Ok(Some(0)) | Err(_) => Some(Err(())),
                Ok(Some(length)) => {
                    let bytes = room.get(..length).unwrap_or_default();
                    Some(Ok(handshake.take(bytes, &mut answer)))
                }
            };
            let socks = handshake.is_socks();
            self.buffers.read = room;
            let progress = match progress {
                None => return Next::Stays,
                Some(Err(())) => return Next::Abandoned,
                Some(Ok(progress)) => progress,
            };
            if !answer.is_empty() && session.front.write(&mut self.host, &answer) != Ok(answer.len()) {
                return Next::Abandoned; // two bytes at the beginning always find room
            }
            match progress {
                Progress::More => {}
                Progress::Refused(refusal) => return self.refuse(session, token, refusal),
                Progress::Complete(target) => {
                    let count = if socks {
                        &mut self.counters.socks
                    } else {
                        &mut self.counters.http
                    };
                    *count += 1;
                    return self.resolve(session, token, target);
                }
            }
        }
    }

    /// Finds the addresses of the target, now or when its name is looked up.
    fn resolve(&mut self, session: &mut Session, token: u64, target: Target) -> Next {
        match target {
            Target::Address(address) => {
                session.candidates = vec![address];
                self.connect(session, token, Refusal::UnknownName)
            }
            Target::Name(name, port) => {
                session.phase = Phase::Resolving;
                self.wait_at_most(session, token, self.config.limits.connect);
                if self.names.ask(token, name, port) {
                    Next::Stays
                } else {
                    self.refuse(session, token, Refusal::Busy)
                }
            }
        }
    }

    /// Connects to the next address of the target that can be tried; where there is none, the client hears of the last failure, or
    /// `otherwise`.
    pub(super) fn connect(&mut self, session: &mut Session, token: u64, otherwise: Refusal) -> Next {
        let mut last = otherwise;
        while !session.candidates.is_empty() {
            let to = session.candidates.remove(0);
            let to = SocketAddr::new(to.ip().to_canonical(), to.port());
            match self.try_address(to, token) {
                Ok(leg) => {
                    let limits = self.config.limits;
                    let span = if session.candidates.is_empty() {
                        limits.connect
                    } else {
                        limits.attempt
                    };
                    session.back = Some(leg);
                    session.phase = Phase::Connecting;
                    self.wait_at_most(session, token, span);
                    return Next::Stays;
                }
                Err(refusal) => last = refusal,
            }
        }
        self.refuse(session, token, last)
    }

    fn try_address(&mut self, to: SocketAddr, token: u64) -> Result<Leg, Refusal> {
        self.permit(to)?;
        match self.config.front {
            Front::Kernel(_) => {
                let handle = self.host.connect(to).map_err(|errno| Fault(errno).refusal())?;
                self.know(handle, token);
                Ok(Leg::ours(handle, false))
            }
            Front::Ours(_) => {
                let leg = Leg::connecting(to).map_err(|error| Fault::from(&error).refusal())?;
                match &leg {
                    Leg::Kernel(kernel) if self.watch(&kernel.stream, token).is_err() => Err(Refusal::Busy),
                    Leg::Kernel(_) | Leg::Ours(_) => Ok(leg),
                }
            }
        }
    }

    /// What became of the attempt to connect.
    pub(super) fn look_at_attempt(&mut self, session: &mut Session, token: u64) -> Next {
        if session.front.broken(&mut self.host).is_some() {
            return Next::Abandoned;
        }
        let Some(back) = &session.back else {
            return Next::Stays;
        };
        if !back.may_read() && !back.may_write() {
            return Next::Stays;
        }
        if let Some(fault) = back.fault(&mut self.host) {
            if let Some(back) = session.back.take() {
                back.close(&mut self.host);
            }
            return self.connect(session, token, fault.refusal());
        }
        if !back.is_established() {
            return Next::Stays;
        }
        self.counters.connected += 1;
        session.phase = Phase::Relaying;
        session.deadline = None;
        if let Some(handshake) = session.handshake.take() {
            let answer = handshake.accepted(back.local(&self.host));
            session.to_client.keep(&answer, &mut self.buffers);
            let early = handshake.into_rest();
            self.counters.bytes_to_target += early.len() as u64;
            session.to_target.keep(&early, &mut self.buffers);
        }
        self.relay(session)
    }

    pub(super) fn out_of_time(&mut self, session: &mut Session, token: u64) -> Next {
        match session.phase {
            Phase::Request => self.refuse(session, token, Refusal::TooSlow),
            Phase::Resolving => self.refuse(session, token, Refusal::TimedOut),
            Phase::Connecting => {
                let mut why = Refusal::TimedOut;
                if let Some(back) = session.back.take() {
                    // An unreachable network may have said so meanwhile.
                    if let Some(fault) = back.fault(&mut self.host) {
                        why = fault.refusal();
                    }
                    back.abort(&mut self.host);
                }
                self.connect(session, token, why)
            }
            Phase::Refusing => Next::Closed,
            Phase::Relaying => Next::Stays,
        }
    }

    /// Refuses a client, in the words of its protocol if that has any.
    fn refuse(&mut self, session: &mut Session, token: u64, refusal: Refusal) -> Next {
        self.counters.refuse(refusal);
        if let Some(back) = session.back.take() {
            back.abort(&mut self.host);
        }
        let handshake = session.handshake.take();
        let words = handshake.map_or_else(Vec::new, |handshake| handshake.refused(refusal));
        if words.is_empty() {
            return match refusal {
                Refusal::TooSlow => Next::Closed,
                _ => Next::Refused, // a reset is what the target would have sent
            };
        }
        if session.front.write(&mut self.host, &words) != Ok(words.len()) {
            return Next::Refused;
        }
        session.front.finish(&mut self.host);
        session.phase = Phase::Refusing;
        self.wait_at_most(session, token, self.config.limits.farewell);
        self.advance(session, token)
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        let mut allowed = self.config.allow.iter();
        allowed.any(|prefix: &Prefix| prefix.contains(address))
    }

    fn is_of_host(&self, address: IpAddr) -> bool {
        let own = &self.host.stack().config().addresses;
        own.contains(&address.to_canonical())
    }

    /// Whether a target may be connected to.
    fn permit(&mut self, to: SocketAddr) -> Result<(), Refusal> {
        let ip = to.ip();
        let of_nobody = ip.is_unspecified()
            || ip.is_multicast()
            || ip == IpAddr::V4(Ipv4Addr::BROADCAST)
            || to.port() == 0;
        // Over our TCP no loopback address can be reached. Over the kernel's it can, and what listens there is not meant for others,
        // unless it is the one fixed target.
        let from_kernel = matches!(self.config.front, Front::Kernel(_));
        let loopback = ip.is_loopback() && (from_kernel || self.config.target.is_none());
        if of_nobody || loopback {
            return Err(Refusal::NotAllowed);
        }
        let own = self.is_of_host(ip)
            || self.listening_at().into_iter().any(|listener| {
                listener.port() == to.port()
                    && (listener.ip() == ip || listener.ip().is_unspecified() && is_of_machine(ip))
            });
        if own {
            self.counters.own += 1;
            return Err(Refusal::NotAllowed);
        }
        Ok(())
    }
}

/// Whether an address is one of this machine's.
fn is_of_machine(address: IpAddr) -> bool {
    let Ok(interfaces) = getifaddrs() else {
        return false;
    };
    interfaces
        .filter_map(|interface| interface.address.as_ref().and_then(ip_of))
        .any(|own| own == address)
}

/// Whether an error of `accept(2)` concerns only the connection that was to be accepted (its manual page, "Error handling").
fn is_of_one_connection(error: &std::io::Error) -> bool {
    let numbers = [
        libc::ECONNABORTED,
        libc::EINTR,
        libc::EPERM,
        libc::ENETDOWN,
        libc::EPROTO,
        libc::ENOPROTOOPT,
        libc::EHOSTDOWN,
        libc::ENONET,
        libc::EHOSTUNREACH,
        libc::EOPNOTSUPP,
        libc::ENETUNREACH,
        libc::ETIMEDOUT,
    ];
    error
        .raw_os_error()
        .is_some_and(|number| numbers.contains(&number))
}

/// Connections that are accepted in a row.
const AT_ONCE: usize = 256;
/// How long nobody is accepted after the process had no descriptor left.
const RETRY: Duration = Duration::from_millis(100);
