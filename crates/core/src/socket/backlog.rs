//! Listeners: which one a SYN is for, the two queues, SYN cookies.
//!
//! **Source.** `listen(2)`, `tcp(7)`; RFC 9293 3.10.7.2; RFC 4987 3.6. A full accept queue drops SYNs and the
//! acknowledgments that would complete connections; a full SYN queue is answered with cookies.
//! **Deviations.** A child of a listener is a whole connection from its SYN on.

use super::{Arrival, Backlog, Body, Stack, SynCookies, Tuple};
use crate::packet::Segment;
use crate::seq::SeqNumber;
use crate::tcp::{Config, Connection, listener};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::net::SocketAddr;

impl Stack {
    /// The listener of a port: the one bound to this address before one bound to any.
    pub(super) fn listener_for(&mut self, local: SocketAddr) -> Option<usize> {
        let mut any = None;
        for &listener in self.listeners.get(&local.port())? {
            self.work += 1;
            let sock = &self.socks[listener as usize];
            let Some(ip) = sock.local.map(|address| address.ip()) else {
                continue;
            };
            if ip == local.ip() {
                return Some(listener as usize);
            }
            let family = ip.is_ipv4() == local.is_ipv4() || ip.is_ipv6() && !sock.options.v6_only;
            if ip.is_unspecified() && family {
                any = Some(listener as usize);
            }
        }
        any
    }

    /// A socket listens.
    pub(super) fn join_listeners(&mut self, index: usize, port: u16) {
        self.listeners.entry(port).or_default().push(index as u32);
    }

    /// A socket listens no more, if it did.
    pub(super) fn leave_listeners(&mut self, index: usize) {
        let sock = &self.socks[index];
        let (Body::Listen(_), Some(local)) = (&sock.body, sock.local) else {
            return;
        };
        if let Some(listeners) = self.listeners.get_mut(&local.port()) {
            listeners.retain(|&listener| listener as usize != index);
            if listeners.is_empty() {
                self.listeners.remove(&local.port());
            }
        }
    }

    /// RFC 9293 3.10.7.2, with the two queues of `listen(2)`.
    pub(super) fn on_listen(
        &mut self,
        now: Instant,
        index: usize,
        tuple: Tuple,
        segment: &Segment,
        iss: Option<SeqNumber>,
    ) -> Arrival {
        match listener::on_listen(segment) {
            listener::Answer::Accept => {}
            other => {
                if let Some(arrival) = self.on_cookie(now, index, tuple, segment) {
                    return arrival;
                }
                self.answer(tuple.0, tuple.1, other, Some(index));
                return Arrival::default();
            }
        }
        let sock = &self.socks[index];
        let Body::Listen(queue) = &sock.body else {
            return Arrival::default();
        };
        if queue.is_full() {
            self.refused.accept_queue += 1;
            return Arrival::default(); // no new SYN while the accept queue is full
        }
        let crowded = queue.half_open >= self.config.syn_backlog.min(queue.limit.max(1));
        let cookie = match self.config.syn_cookies {
            SynCookies::Off if crowded => {
                self.refused.syn_queue += 1;
                return Arrival::default();
            }
            SynCookies::Off => false,
            SynCookies::OnOverflow => crowded && iss.is_none(),
            SynCookies::Always => iss.is_none(),
        };
        let config = Arc::new(self.config.for_socket(&sock.options, tuple.1.is_ipv6()));
        if cookie {
            self.refused.cookies += 1;
            self.send_cookie(now, index, tuple, segment, &config);
            return Arrival::default();
        }
        let iss = iss.unwrap_or_else(|| self.initial_sequence(now, tuple));
        let (connection, accepted) = self.answer_fast_open(now, index, tuple, segment, &config, iss);
        let origin = connection.payload_offset(segment);
        let child = self.adopt(now, index, tuple, connection);
        let mut arrival = Arrival {
            origin,
            connection: Some(self.id_of(child)),
            ..Arrival::default()
        };
        if let Some(accepted) = accepted {
            self.offer_fast_open(index, child);
            arrival.accepted = accepted.start..accepted.end;
            arrival.in_order = accepted.in_order;
        }
        arrival
    }

    /// A connection of a listener, half-open.
    fn adopt(&mut self, now: Instant, index: usize, tuple: Tuple, mut connection: Connection) -> usize {
        self.give_path(now, tuple.1, &mut connection);
        let sock = &self.socks[index];
        let (options, family) = (sock.options.clone(), sock.family);
        let child = self.allocate(family);
        let fresh = &mut self.socks[child];
        fresh.options = options;
        fresh.local = Some(tuple.0);
        fresh.remote = Some(tuple.1);
        fresh.body = Body::Open(Box::new(connection));
        fresh.phase = super::Phase::Connected;
        fresh.parent = Some(index as u32);
        self.ports.insert((tuple.0.port(), child as u32));
        self.tuples.insert(tuple, child as u32);
        if let Body::Listen(queue) = &mut self.socks[index].body {
            queue.half_open += 1;
        }
        self.touch(now, child);
        child
    }

    /// Answers a SYN without keeping state (RFC 4987 3.6).
    fn send_cookie(&mut self, now: Instant, index: usize, tuple: Tuple, syn: &Segment, config: &Arc<Config>) {
        let syn = listener::SynCookies::reduce(syn);
        let iss = self.cookies.issue(now, tuple, &syn);
        let mut connection = Connection::accept(now, config, iss, &syn);
        if let Some(transmit) = connection.poll_transmit(now) {
            let mut answer = transmit.segment;
            listener::SynCookies::mark(&mut answer, &syn);
            self.cookie_sent_at = Some(now);
            self.queue_built(tuple, answer, index);
        }
    }

    /// An acknowledgment that may carry a cookie back.
    fn on_cookie(&mut self, now: Instant, index: usize, tuple: Tuple, segment: &Segment) -> Option<Arrival> {
        let sent = self.cookie_sent_at?;
        if now.since(sent) > Duration::from_secs(120) {
            return None;
        }
        let Body::Listen(queue) = &self.socks[index].body else {
            return None;
        };
        let full = queue.is_full();
        let (iss, syn) = self.cookies.redeem(now, tuple, segment)?;
        if full {
            self.refused.accept_queue += 1;
            return Some(Arrival::default());
        }
        let config = self
            .config
            .for_socket(&self.socks[index].options, tuple.1.is_ipv6());
        let connection = Connection::restore(now, &Arc::new(config), iss, &syn);
        let child = self.adopt(now, index, tuple, connection);
        Some(self.deliver(now, child, segment))
    }
}

/// What a host had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// SYNs and last acknowledgments of handshakes that were dropped because too many connections waited to be accepted.
    pub accept_queue: u64,
    /// SYNs that were dropped because too many connections were half-open.
    pub syn_queue: u64,
    /// SYNs that were answered with a cookie, without keeping state.
    pub cookies: u64,
    /// Connections that ended without TIME-WAIT because too many others were in it.
    pub time_wait: u64,
}

impl Stack {
    /// What this host had no room for.
    pub const fn refused(&self) -> Refused {
        self.refused
    }

    /// Listeners that were looked at so far to find those that segments are for.
    pub const fn work(&self) -> u64 {
        self.work
    }
}

impl Backlog {
    /// Linux lets one more than the backlog wait.
    pub(super) fn is_full(&self) -> bool {
        self.ready.len() > self.limit as usize
    }
}
