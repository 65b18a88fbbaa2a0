//! A proxy between the kernel's TCP and ours: [`Proxy`].
//!
//! It takes connections of clients on one of the two and connects to targets on the other, so that a bad link is crossed by our TCP
//! with any of its mechanisms. The target is fixed, or each client asks for one by SOCKS5 or HTTP CONNECT. What one end sends, the
//! end of its stream and a reset are passed on to the other; a reader that stops stops its sender.
//!
//! Everything happens in one loop that sleeps while there is nothing to do: descriptors are watched by edges of epoll, connections of
//! ours by the events of the [`Host`]. Only names are looked up in threads of their own.
//!
//! `mod` has the loop, `open` takes clients and connects to targets; `session` passes bytes on, `leg` is one end of it; `request`
//! reads what clients ask for (`socks`, `http`), `prefix` is who may, `names` looks names up, `counters` counts.
//!
//! **Source.** RFC 3135 (performance enhancing proxies: what splitting a connection means for its ends), RFC 1928, RFC 9110 9.3.6.
//! **Deviations.** Urgent data is passed on as ordinary data.

mod counters;
mod http;
mod leg;
mod names;
mod open;
mod prefix;
mod request;
mod session;
mod socks;

pub use counters::Counters;
pub use names::{Lookup, system_lookup};
pub use prefix::Prefix;
pub use request::{Handshake, MOST, Progress, Refusal, Target};

use crate::Error;
use crate::host::{Event, Handle, Host, Waiter};
use fleetfoot_core::tcp::KeepAlive;
use fleetfoot_core::time::{Duration, Instant};
use names::Names;
use nix::sys::epoll::EpollFlags;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use session::{Buffers, End, Phase, Session};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd;

/// Where clients come from; targets are reached by the other TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Front {
    /// From sockets of the kernel's that listen here. Targets are reached by our TCP.
    Kernel(Vec<SocketAddr>),
    /// From our TCP, which listens at this port of all its addresses. Targets are reached by the kernel's.
    Ours(u16),
}

/// What a proxy does.
#[derive(Clone)]
pub struct ProxyConfig {
    /// Where clients come from.
    pub front: Front,
    /// Where all of them go; `None`: each asks, by SOCKS5 or HTTP CONNECT.
    pub target: Option<Target>,
    /// Who may connect; nobody else may.
    pub allow: Vec<Prefix>,
    /// The most clients at once. Others wait to be accepted.
    pub most: usize,
    /// How long things may take.
    pub limits: Limits,
    /// How names are looked up.
    pub lookup: Lookup,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the connection of a client to the end of its request.
    pub request: Duration,
    /// From a request to the connection with the target: to look its name up, and to try the last of its addresses.
    pub connect: Duration,
    /// To try an address of several, before the next one is.
    pub attempt: Duration,
    /// To read why one is refused.
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            request: Duration::from_secs(10),
            connect: Duration::from_secs(30),
            attempt: Duration::from_secs(10),
            farewell: Duration::from_secs(2),
        }
    }
}

/// See the [module](self).
pub struct Proxy {
    host: Host,
    waiter: Waiter,
    config: ProxyConfig,
    /// Listening sockets of the kernel's, and whether connections may wait there.
    listeners: Vec<(TcpListener, bool)>,
    /// Where our TCP listens, and whether connections may wait there.
    listening: Option<(Handle, bool)>,
    names: Names,
    sessions: Vec<Slot>,
    free: Vec<u32>,
    /// Tokens of sessions by the index of their connection of ours.
    by_handle: Vec<u64>,
    /// When phases end, with the tokens of their sessions. What has changed since is passed over.
    deadlines: BinaryHeap<Reverse<(Instant, u64)>>,
    /// When connections are accepted again after the process had no descriptor left.
    retry_at: Option<Instant>,
    buffers: Buffers,
    counters: Counters,
}

/// A place for a session.
#[derive(Default)]
struct Slot {
    generation: u32,
    session: Option<Box<Session>>,
}

impl Proxy {
    /// A proxy on `host`. Connections of this host get the settings of a proxy: the process behind it decides when small segments leave
    /// only if `nagle` is set in its configuration, silent peers are asked whether they are still there, little waits unsent in its
    /// buffers, and any port may be its own.
    ///
    /// # Errors
    /// An address cannot be listened at.
    pub fn new(mut host: Host, config: ProxyConfig) -> Result<Proxy, Error> {
        let stack = host.stack_mut().config_mut();
        stack.tcp.keep_alive = Some(KeepAlive {
            idle: Duration::from_secs(leg::KEEP_IDLE.into()),
            interval: Duration::from_secs(leg::KEEP_INTERVAL.into()),
            probes: leg::KEEP_COUNT,
        });
        stack.notsent_lowat = UNSENT;
        stack.ephemeral_ports = 1024..=65_535;
        stack.syn_backlog = BACKLOG;
        let waiter = Waiter::new()?;
        waiter.add(&host, DEVICE)?;
        let names = Names::new(config.lookup.clone())?;
        waiter.add(&names, NAMES)?;
        let mut listeners = Vec::new();
        let mut listening = None;
        match &config.front {
            Front::Kernel(addresses) => {
                for &address in addresses {
                    let listener = listen(address)
                        .map_err(|cause| Error::new(format!("cannot listen at {address}"), cause))?;
                    let token = LISTENERS + listeners.len() as u64;
                    waiter.add_for(&listener, token, EpollFlags::EPOLLIN | EpollFlags::EPOLLET)?;
                    listeners.push((listener, true));
                }
            }
            Front::Ours(port) => {
                let six = host.stack().config().addresses.iter().any(IpAddr::is_ipv6);
                let any = if six { "::" } else { "0.0.0.0" };
                let any = SocketAddr::new(any.parse().expect("an address"), *port);
                let handle = host.listen(any, BACKLOG as i32).map_err(|errno| {
                    Error::new(
                        format!("cannot listen at port {port} of the host"),
                        std::io::Error::from_raw_os_error(errno.number()),
                    )
                })?;
                listening = Some((handle, false));
            }
        }
        Ok(Proxy {
            host,
            waiter,
            config,
            listeners,
            listening,
            names,
            sessions: Vec::new(),
            free: Vec::new(),
            by_handle: Vec::new(),
            deadlines: BinaryHeap::new(),
            retry_at: None,
            buffers: Buffers::new(),
            counters: Counters::default(),
        })
    }

    /// Works, and sleeps while there is nothing to do. When `wake` can be read, `on_wake` is called, and says whether to go on.
    ///
    /// # Errors
    /// The device is gone.
    pub fn run(
        &mut self,
        wake: &impl AsFd,
        mut on_wake: impl FnMut(&mut Proxy) -> bool,
    ) -> Result<(), Error> {
        self.waiter.add(wake, WAKE)?;
        let result = self.work_until(|proxy| on_wake(proxy));
        self.waiter.remove(wake)?;
        result
    }

    fn work_until(&mut self, mut on_wake: impl FnMut(&mut Proxy) -> bool) -> Result<(), Error> {
        let mut ready = Vec::new();
        loop {
            let more = self.step()?;
            let now = self.host.clock().now();
            let deadline = if more { Some(now) } else { self.poll_timeout() };
            ready.clear();
            self.waiter.wait(self.host.clock(), deadline, &mut ready)?;
            for &token in &ready {
                match token {
                    WAKE => {
                        if !on_wake(self) {
                            return Ok(());
                        }
                    }
                    DEVICE => {} // the next step reads it
                    NAMES => self.on_names(),
                    LISTENERS..SESSIONS => {
                        let listener = self.listeners.get_mut((token - LISTENERS) as usize);
                        if let Some((_, waiting)) = listener {
                            *waiting = true;
                        }
                    }
                    _ => self.on_kernel(token),
                }
            }
        }
    }

    /// Does what there is to do apart from news of descriptors; whether packets may still wait.
    fn step(&mut self) -> Result<bool, Error> {
        let more = self.host.work()?;
        while let Some(event) = self.host.poll_event() {
            self.on_ours(event);
        }
        self.expire();
        let waiting = self.accept();
        self.host.flush()?;
        Ok(more || waiting)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = self.deadlines.peek().map(|Reverse((at, _))| *at);
        [self.host.poll_timeout(), own, self.retry_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Ends every connection with a reset, so that nobody waits for it, and listens no more.
    ///
    /// # Errors
    /// The device is gone.
    pub fn end(&mut self) -> Result<(), Error> {
        for slot in 0..self.sessions.len() {
            if let Some(session) = self.take(slot) {
                self.abort(*session);
            }
        }
        self.listeners.clear();
        if let Some((handle, _)) = self.listening.take() {
            self.host.close(handle);
        }
        self.host.flush()
    }

    /// The host, for what it counted.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        Counters {
            most_buffered: self.buffers.most,
            ..self.counters
        }
    }

    /// Where clients of the kernel's may connect to, with the port that was chosen for port 0.
    pub fn listening_at(&self) -> Vec<SocketAddr> {
        let addresses = self.listeners.iter();
        addresses
            .filter_map(|(listener, _)| listener.local_addr().ok())
            .collect()
    }

    fn on_names(&mut self) {
        self.names.heard();
        while let Some(answer) = self.names.next() {
            let Some(session) = self.session(answer.token) else {
                continue; // it has gone meanwhile
            };
            if session.phase == Phase::Resolving {
                session.candidates = answer.addresses;
                self.with(answer.token, |proxy, session| {
                    proxy.connect(session, answer.token, Refusal::UnknownName)
                });
            }
        }
    }

    fn on_kernel(&mut self, token: u64) {
        self.with(token, |proxy, session| {
            session.front.news_of_kernel();
            if let Some(back) = &mut session.back {
                back.news_of_kernel();
            }
            proxy.advance(session, token)
        });
    }

    fn on_ours(&mut self, event: Event) {
        if let Some((handle, waiting)) = &mut self.listening
            && *handle == event.handle
        {
            *waiting = true;
            return;
        }
        let Some(&token) = self.by_handle.get(event.handle.index()) else {
            return;
        };
        self.with(token, |proxy, session| {
            session.front.news_of_ours(event.ready);
            if let Some(back) = &mut session.back {
                back.news_of_ours(event.ready);
            }
            proxy.advance(session, token)
        });
    }

    fn expire(&mut self) {
        let now = self.host.clock().now();
        while let Some(&Reverse((at, token))) = self.deadlines.peek() {
            let waits = self
                .session(token)
                .is_some_and(|session| session.deadline == Some(at));
            if waits && at > now {
                return;
            }
            self.deadlines.pop();
            if waits {
                self.with(token, |proxy, session| proxy.out_of_time(session, token));
            }
        }
    }

    /// Goes on with a session as far as it goes; whether it is still there.
    fn advance(&mut self, session: &mut Session, token: u64) -> Next {
        match session.phase {
            Phase::Request => self.read_request(session, token),
            Phase::Resolving => match session.front.broken(&mut self.host) {
                Some(_) => Next::Abandoned,
                None => Next::Stays,
            },
            Phase::Connecting => self.look_at_attempt(session, token),
            Phase::Relaying => self.relay(session),
            Phase::Refusing => loop {
                match session.front.read(&mut self.host, &mut self.buffers.read) {
                    Ok(None) => return Next::Stays,
                    Ok(Some(0)) | Err(_) => return Next::Closed,
                    Ok(Some(_)) => {}
                }
            },
        }
    }

    fn relay(&mut self, session: &mut Session) -> Next {
        let counters = &mut self.counters;
        let passed = [&mut counters.bytes_to_target, &mut counters.bytes_to_client];
        match session.relay(&mut self.host, &mut self.buffers, passed) {
            Ok(()) if session.is_over() => Next::Finished,
            Ok(()) => Next::Stays,
            Err(end) => Next::Broken(end),
        }
    }

    /// Works on a session, which is put back unless it has ended.
    fn with(&mut self, token: u64, work: impl FnOnce(&mut Proxy, &mut Session) -> Next) {
        if self.session(token).is_none() {
            return;
        }
        let slot = slot_of(token);
        let Some(mut session) = self.sessions.get_mut(slot).and_then(|slot| slot.session.take()) else {
            return;
        };
        let next = work(self, &mut session);
        if next == Next::Stays {
            if let Some(place) = self.sessions.get_mut(slot) {
                place.session = Some(session);
            }
            return;
        }
        self.leave(slot);
        let count = &mut self.counters;
        match next {
            Next::Stays | Next::Closed | Next::Refused => {}
            Next::Finished => count.finished += 1,
            Next::Abandoned => count.abandoned += 1,
            Next::Broken(End::Client) => count.reset_by_client += 1,
            Next::Broken(End::Target) => count.reset_by_target += 1,
        }
        match next {
            Next::Finished | Next::Closed => {
                session.release(&mut self.buffers);
                session.front.close(&mut self.host);
                if let Some(back) = session.back {
                    back.close(&mut self.host);
                }
            }
            Next::Stays | Next::Abandoned | Next::Refused | Next::Broken(_) => self.abort(*session),
        }
    }

    fn abort(&mut self, mut session: Session) {
        session.release(&mut self.buffers);
        session.front.abort(&mut self.host);
        if let Some(back) = session.back {
            back.abort(&mut self.host);
        }
    }

    /// The session of a token, if it is still that one's.
    fn session(&mut self, token: u64) -> Option<&mut Session> {
        let slot = self.sessions.get_mut(slot_of(token))?;
        let current = u64::from(slot.generation) == token >> 32;
        slot.session.as_deref_mut().filter(|_| current)
    }

    fn take(&mut self, slot: usize) -> Option<Box<Session>> {
        let session = self.sessions.get_mut(slot)?.session.take()?;
        self.leave(slot);
        Some(session)
    }

    /// Gives a slot back whose session was taken.
    fn leave(&mut self, slot: usize) {
        if let Some(place) = self.sessions.get_mut(slot) {
            place.generation = place.generation.wrapping_add(1);
            self.free.push(slot as u32);
            self.counters.open -= 1;
        }
    }

    /// A free slot: its token.
    fn place(&mut self) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.sessions.push(Slot::default());
            self.sessions.len() as u32 - 1
        });
        self.counters.open += 1;
        self.counters.most_open = self.counters.most_open.max(self.counters.open);
        let generation = self.sessions.get(slot as usize).map_or(0, |slot| slot.generation);
        u64::from(generation) << 32 | (SESSIONS + u64::from(slot))
    }

    fn know(&mut self, handle: Handle, token: u64) {
        let index = handle.index();
        if self.by_handle.len() <= index {
            self.by_handle.resize(index + 1, 0);
        }
        if let Some(place) = self.by_handle.get_mut(index) {
            *place = token;
        }
    }

    fn watch(&self, fd: &impl AsFd, token: u64) -> Result<(), Error> {
        let edges = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        self.waiter.add_for(fd, token, edges)
    }

    fn wait_at_most(&mut self, session: &mut Session, token: u64, span: Duration) {
        let at = self.host.clock().now() + span;
        session.deadline = Some(at);
        self.deadlines.push(Reverse((at, token)));
    }
}

/// What becomes of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The session waits for news.
    Stays,
    /// Both ends had finished.
    Finished,
    /// The client was refused and has read that, or has said nothing for too long.
    Closed,
    /// The client was refused, and its protocol has no words for that.
    Refused,
    /// The client went before it was connected.
    Abandoned,
    /// An end broke off.
    Broken(End),
}

/// Raises the number of descriptors that this process may have to `wanted`, as far as the system permits it: what it may have then.
///
/// # Errors
/// The system does not say.
pub fn descriptors(wanted: u64) -> Result<u64, Error> {
    let fail = |errno| Error::new("cannot read the limit of descriptors", errno);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(fail)?;
    let raised = wanted.min(hard);
    if raised <= soft || setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_err() {
        return Ok(soft);
    }
    Ok(raised)
}

/// A socket that listens, and does not wait.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    // The kernel takes less where `somaxconn` is less.
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(BACKLOG as i32)?)?;
    Ok(listener)
}

/// The slot of a token; one that is no session's has a slot that nobody has.
fn slot_of(token: u64) -> usize {
    let low = token & 0xffff_ffff;
    low.checked_sub(SESSIONS).map_or(usize::MAX, |slot| slot as usize)
}

const WAKE: u64 = 0;
const DEVICE: u64 = 1;
const NAMES: u64 = 2;
const LISTENERS: u64 = 3;
/// Tokens of sessions begin here; the upper half is the generation of the slot.
const SESSIONS: u64 = 1 << 10;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;
/// Bytes that a connection of ours takes before they can be sent: what waits longer waits at the client.
const UNSENT: u64 = 262_144;
