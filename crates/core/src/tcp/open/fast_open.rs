//! TCP Fast Open: data on the SYN, in both directions of an open.
//!
//! A client that holds a cookie of the server puts it and its first data on the SYN; otherwise it asks for one. A server
//! that finds its own cookie delivers the data at once and may answer with data before the handshake is over. What the
//! SYN-ACK does not acknowledge is sent again at once, not as a loss, and a retransmitted SYN carries neither cookie nor
//! data. [`FastOpenCache`] keeps per server the cookie, its MSS, and what failed.
//!
//! **Source.** RFC 7413 (kind 34) and its experimental predecessor (kind 254 with 0xf989); the space on a SYN (the cached
//! MSS less 40), alternating between both kinds after a refusal, the cookie (SipHash-2-4 of both addresses) and the reaction
//! to ICMP are Linux's (`tcp_send_syn_data`, `tcp_rcv_fastopen_synack`, `tcp_try_fastopen`, `__tcp_fastopen_cookie_gen_cipher`).
//! **Deviations.** Negative caching (RFC 7413 4.1.3.1) follows Linux 3.7 to 4.7: after a second lost SYN with data none is
//! sent for 60 s, doubled with each further loss. Linux's disabling of all of Fast Open after a black hole is not done.

use crate::packet::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::siphash::siphash;
use crate::tcp::{Accepted, Connection, Event, State};
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

/// A Fast Open option: a cookie, or without bytes the wish for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Cookie {
    bytes: [u8; Cookie::MAX],
    len: u8,
    /// Carried in the experimental option (kind 254).
    pub experimental: bool,
}

impl Cookie {
    /// Longest cookie (RFC 7413 4.1.1).
    pub const MAX: usize = 16;
    /// Shortest cookie.
    pub const MIN: usize = 4;

    /// The option that asks for a cookie.
    pub const fn request(experimental: bool) -> Cookie {
        Cookie {
            bytes: [0; Cookie::MAX],
            len: 0,
            experimental,
        }
    }

    /// A cookie of these bytes; `None` if there are too few, too many or an odd number (RFC 7413 4.1.1).
    pub fn new(bytes: &[u8], experimental: bool) -> Option<Cookie> {
        let fits = bytes.is_empty() || (Cookie::MIN..=Cookie::MAX).contains(&bytes.len());
        if !fits || !bytes.len().is_multiple_of(2) {
            return None;
        }
        let mut cookie = Cookie::request(experimental);
        cookie.bytes[..bytes.len()].copy_from_slice(bytes);
        cookie.len = bytes.len() as u8;
        Some(cookie)
    }

    /// Its bytes; empty for a request.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Whether it only asks for a cookie.
    pub const fn is_request(&self) -> bool {
        self.len == 0
    }

    /// Header bytes it takes on a SYN, padding included.
    pub const fn option_len(&self) -> u8 {
        let kind = if self.experimental { 4 } else { 2 };
        (self.len + kind).next_multiple_of(4)
    }
}

impl Segment {
    /// Fast Open option of a SYN, if present and well-formed.
    pub fn cookie(&self) -> Option<Cookie> {
        if !self.flags.contains(Flags::COOKIE.with(Flags::SYN)) {
            return None;
        }
        let word = self.options[0] >> 24;
        let len = (word & 0x7f) as usize;
        let mut bytes = [0; Cookie::MAX];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = (self.options[1 + index / 4] >> (24 - index % 4 * 8)) as u8;
        }
        Cookie::new(bytes.get(..len)?, word & 0x80 != 0)
    }

    /// Puts a Fast Open option on a SYN. Does not touch `overhead`.
    pub fn set_cookie(&mut self, cookie: &Cookie) {
        self.flags = self.flags.with(Flags::COOKIE);
        let word = u32::from(cookie.len) | if cookie.experimental { 0x80 } else { 0 };
        self.options[0] = self.options[0] & 0x00ff_ffff | word << 24;
        self.options[1..].fill(0);
        for (index, byte) in cookie.bytes().iter().enumerate() {
            self.options[1 + index / 4] |= u32::from(*byte) << (24 - index % 4 * 8);
        }
    }
}

/// What a client knows of a server when it opens (RFC 7413 4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenRequest {
    /// What the SYN carries; `None`: data without a cookie (Linux `TFO_CLIENT_NO_COOKIE`).
    pub option: Option<Cookie>,
    /// The server's MSS as last seen; `None`: unknown.
    pub mss: Option<u16>,
}

/// What an open taught about the server, for [`FastOpenCache::learn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenOutcome {
    /// The server's MSS option.
    pub mss: Option<u16>,
    /// A new cookie.
    pub cookie: Option<Cookie>,
    /// The SYN with data, or its answer, seems to have been dropped.
    pub dropped: bool,
    /// A cookie was asked for in this kind of option and none came.
    pub refused: Option<Kind>,
}

/// Kind of option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Kind 34.
    Standard,
    /// Kind 254 with the magic number.
    Experimental,
}

/// Fast Open's part of the cold state.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct FastOpen {
    /// What the first SYN or SYN-ACK carries.
    option: Option<Cookie>,
    /// Payload bytes the SYN may carry.
    space: u32,
    /// Payload bytes the SYN carried.
    pub(in crate::tcp) on_syn: u32,
    /// The SYN carried an option.
    asked: bool,
    /// All data of the SYN was acknowledged by the SYN-ACK, or delivered from it (`TCPI_OPT_SYN_DATA`).
    pub(in crate::tcp) accepted: bool,
    /// Opened by a SYN with a valid cookie.
    child: bool,
    outcome: Option<FastOpenOutcome>,
}

impl FastOpen {
    /// No data and no option from now on; true if there were data.
    pub(in crate::tcp) fn forget_data(&mut self) -> bool {
        self.option = None;
        self.space = 0;
        self.on_syn > 0
    }
}

impl Connection {
    /// An active open with Fast Open. What is written before the first drain goes on the SYN, up to
    /// [`syn_space`](Connection::syn_space).
    pub fn connect_fast_open(
        now: Instant,
        config: &Arc<crate::tcp::Config>,
        iss: SeqNumber,
        request: FastOpenRequest,
    ) -> Connection {
        let mut connection = Connection::connect(now, config, iss);
        connection.request_fast_open(request);
        connection
    }

    /// Asks for Fast Open on a connection whose SYN has not left yet.
    pub fn request_fast_open(&mut self, request: FastOpenRequest) {
        let usable = request.option.is_none_or(|cookie| !cookie.is_request());
        let own = self.shared.own_mss();
        let mss = own.min(request.mss.map_or(own, u32::from));
        let state = &mut self.shared.cold_mut().fast_open;
        state.option = request.option;
        // Linux: all option space is kept free.
        state.space = if usable { mss.saturating_sub(40) } else { 0 };
    }

    /// Payload bytes that the SYN, if it has not left, can still take.
    pub fn syn_space(&self) -> u32 {
        let space = self.shared.cold.as_ref().map_or(0, |cold| cold.fast_open.space);
        if self.state != State::SynSent || self.syn_attempts > 0 {
            return 0;
        }
        space.saturating_sub(self.written.min(u64::from(space)) as u32)
    }

    /// A passive open by a SYN whose cookie was found valid ([`FastOpenKey::judge`]): its data is taken at once, and may be
    /// read and answered before the handshake is over (RFC 7413 4.2.2).
    pub fn accept_fast_open(
        now: Instant,
        config: &Arc<crate::tcp::Config>,
        iss: SeqNumber,
        syn: &Segment,
    ) -> (Connection, Accepted) {
        let mut connection = Connection::accept(now, config, iss, syn);
        let state = &mut connection.shared.cold_mut().fast_open;
        state.child = true;
        state.accepted = syn.payload > 0;
        let mut data = *syn;
        data.flags = data.flags.without(Flags::SYN);
        let shared = &connection.shared;
        let taken = connection.receive.on_data::<false, false, false, false>(
            now,
            &shared.config,
            &shared.rtt,
            shared.sack,
            1,
            &data,
        );
        if taken.advanced {
            connection.shared.raise(Event::Readable);
        }
        let accepted = Accepted {
            start: taken.start.max(1) - 1,
            end: taken.end.max(1) - 1,
            in_order: connection.received(),
        };
        (connection, accepted)
    }

    /// The SYN-ACK carries this cookie (RFC 7413 4.2.1).
    pub fn grant_cookie(&mut self, cookie: Cookie) {
        self.shared.cold_mut().fast_open.option = Some(cookie);
    }

    /// Whether all data of the SYN was taken by the other end, or here.
    pub(in crate::tcp) fn syn_data_accepted(&self) -> bool {
        self.shared
            .cold
            .as_ref()
            .is_some_and(|cold| cold.fast_open.accepted)
    }

    /// Whether it was opened by a SYN with a valid cookie.
    pub(in crate::tcp) fn is_fast_open_child(&self) -> bool {
        self.shared.cold.as_ref().is_some_and(|cold| cold.fast_open.child)
    }

    /// The owner waits to write as soon as the handshake is over: the SYN-ACK's acknowledgment can go with the data, as
    /// Linux has it (`sk_write_pending`).
    pub fn expect_data(&mut self, waits: bool) {
        self.shared.cold_mut().writer_waits = waits;
    }

    /// The owner has taken this connection from the listener: errors no longer end it silently.
    pub fn on_accepted(&mut self) {
        if self.state == State::SynReceived {
            self.shared.cold_mut().accepted = true;
        }
    }

    /// What the open taught about the server, once (RFC 7413 4.1.3).
    pub fn take_fast_open_outcome(&mut self) -> Option<FastOpenOutcome> {
        self.shared
            .cold
            .as_mut()
            .and_then(|cold| cold.fast_open.outcome.take())
    }

    /// Option and data for a first SYN or SYN-ACK; returns how many payload bytes it carries.
    pub(in crate::tcp) fn put_fast_open(&mut self, segment: &mut Segment) -> u32 {
        let written = self.written;
        let first = self.syn_attempts == 0;
        let answer = self.state == State::SynReceived;
        let limit = self.shared.config.header() as u8 + 40; // forty bytes of options
        let Some(cold) = &mut self.shared.cold else {
            return 0;
        };
        let state = &mut cold.fast_open;
        if !first {
            return 0; // RFC 7413 4.1.3: a retransmitted SYN is an ordinary one
        }
        if let Some(cookie) = state.option {
            if segment.overhead + cookie.option_len() > limit {
                return 0;
            }
            segment.set_cookie(&cookie);
            segment.overhead += cookie.option_len();
            state.asked |= !answer;
        }
        if answer {
            return 0;
        }
        state.on_syn = state.on_syn.max(written.min(u64::from(state.space)) as u32);
        segment.payload = state.on_syn.min(state.space);
        segment.payload
    }

    /// The SYN-ACK, or the ACK after crossing SYNs, acknowledges `ack` (offset). What was on the SYN is done or is sent again.
    pub(in crate::tcp) fn settle_syn_data(&mut self, now: Instant, segment: &Segment, ack: u64) {
        let retransmitted = self.syn_attempts > 0;
        let sent_at = self.syn_sent_at;
        let Some(cold) = &mut self.shared.cold else { return };
        let state = &mut cold.fast_open;
        let on_syn = u64::from(state.on_syn);
        if !self.passive {
            let mut cookie = segment.cookie().filter(|cookie| !cookie.is_request());
            let (mut dropped, mut refused) = (false, None);
            if !state.asked {
                cookie = None; // not asked for: Linux does not trust it
            } else if retransmitted {
                dropped = cookie.is_none() && ack < 1 + on_syn;
            } else if cookie.is_none() && on_syn == 0 {
                let experimental = state.option.is_some_and(|option| option.experimental);
                refused = Some(if experimental {
                    Kind::Experimental
                } else {
                    Kind::Standard
                });
            }
            if state.asked || state.space > 0 {
                state.outcome = Some(FastOpenOutcome {
                    mss: segment.mss(),
                    cookie,
                    dropped,
                    refused,
                });
            }
        }
        if on_syn == 0 || self.passive {
            return;
        }
        state.accepted = ack > on_syn;
        self.feed_sender(now);
        let Some(sender) = &mut self.sender else { return };
        sender.after_syn_data(now, sent_at, ack, 1 + on_syn);
    }
}

/// The server's secret (RFC 7413 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenKey(u64, u64);

/// What a SYN gets from a server (RFC 7413 4.2.1, 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpenAnswer {
    /// An ordinary handshake.
    Ordinary,
    /// An ordinary handshake; the SYN-ACK carries this cookie.
    Grant(Cookie),
    /// [`Connection::accept_fast_open`].
    Open,
}

impl FastOpenKey {
    /// The key that Linux writes as four words of eight hexadecimal digits (`tcp_fastopen_key`).
    pub const fn new(words: [u32; 4]) -> FastOpenKey {
        FastOpenKey(
            words[0] as u64 | (words[1] as u64) << 32,
            words[2] as u64 | (words[3] as u64) << 32,
        )
    }

    /// The cookie of a client at one of our addresses.
    pub fn cookie(&self, client: IpAddr, server: IpAddr) -> Cookie {
        let mut message = [0; 32];
        let len = match (client, server) {
            (IpAddr::V4(client), IpAddr::V4(server)) => {
                message[..4].copy_from_slice(&client.octets());
                message[4..8].copy_from_slice(&server.octets());
                8
            }
            (IpAddr::V6(client), IpAddr::V6(server)) => {
                message[..16].copy_from_slice(&client.octets());
                message[16..].copy_from_slice(&server.octets());
                32
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => 0,
        };
        let mut cookie = Cookie::request(false);
        cookie.bytes[..8].copy_from_slice(&siphash([self.0, self.1], &message[..len]).to_le_bytes());
        cookie.len = 8;
        cookie
    }

    /// What `syn` gets. `cookie_needed` is false on a server that takes data from anybody.
    pub fn judge(
        &self,
        syn: &Segment,
        client: IpAddr,
        server: IpAddr,
        cookie_needed: bool,
    ) -> FastOpenAnswer {
        let option = syn.cookie();
        if option.is_none() && syn.payload == 0 {
            return FastOpenAnswer::Ordinary;
        }
        if !cookie_needed {
            return FastOpenAnswer::Open;
        }
        let Some(option) = option else {
            return FastOpenAnswer::Ordinary;
        };
        let mut ours = self.cookie(client, server);
        ours.experimental = option.experimental;
        if option == ours {
            FastOpenAnswer::Open
        } else {
            FastOpenAnswer::Grant(ours) // a request, or a cookie of an old key (RFC 7413 4.1.2)
        }
    }
}

/// What a client remembers of servers (RFC 7413 4.1.3).
#[derive(Clone, Debug, Default)]
pub struct FastOpenCache {
    entries: BTreeMap<IpAddr, Entry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    cookie: Option<Cookie>,
    mss: Option<u16>,
    losses: u8,
    lost_at: Option<Instant>,
    /// 0: the standard option; 1: try the experimental one next; 2: tried, back to the standard one.
    kind: u8,
}

/// Servers remembered; the one with the least address goes when there are more.
const CAPACITY: usize = 4096;

impl FastOpenCache {
    /// An empty cache.
    pub const fn new() -> FastOpenCache {
        FastOpenCache {
            entries: BTreeMap::new(),
        }
    }

    /// What to open with. `None`: an ordinary open, because SYNs with data get lost on this path.
    pub fn request(&self, now: Instant, server: IpAddr, cookie_needed: bool) -> Option<FastOpenRequest> {
        let entry = self.entries.get(&server).copied().unwrap_or_default();
        if let Some(at) = entry.lost_at
            && entry.losses > 1
            && now.since(at) < Duration::from_secs(60).saturating_mul(1 << entry.losses.min(16))
        {
            return None;
        }
        let option = cookie_needed.then(|| entry.cookie.unwrap_or(Cookie::request(entry.kind == 1)));
        Some(FastOpenRequest {
            option,
            mss: entry.mss,
        })
    }

    /// Takes in what an open taught.
    pub fn learn(&mut self, now: Instant, server: IpAddr, outcome: &FastOpenOutcome) {
        if !self.entries.contains_key(&server) && self.entries.len() >= CAPACITY {
            self.entries.pop_first();
        }
        let entry = self.entries.entry(server).or_default();
        entry.mss = outcome.mss.or(entry.mss);
        if outcome.cookie.is_some() {
            entry.cookie = outcome.cookie;
        } else if let Some(kind) = outcome.refused
            && entry.cookie.is_none()
        {
            let tried = match kind {
                Kind::Standard => 1,
                Kind::Experimental => 2,
            };
            entry.kind = entry.kind.max(tried);
        }
        if outcome.dropped {
            entry.losses = entry.losses.saturating_add(1);
            entry.lost_at = Some(now);
        } else {
            entry.losses = 0;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Servers remembered, in order of address.
    pub fn servers(&self) -> Vec<IpAddr> {
        self.entries.keys().copied().collect()
    }
}
