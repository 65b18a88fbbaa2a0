//! The flows that passed a link whose both ends are seen: what `fleetfoot shell` reports.
//!
//! A packet is seen where it enters the link and where it leaves it. So each end of a TCP connection is looked at as a capture at
//! that very end would show it, with the analysis of [`super::capture`]: what it sent when it entered the link, what it received
//! when it left the link. Round-trip times are those that the sender of the data sees, queue of the link and all; a segment that
//! the link dropped counts as sent. Other protocols are packets, bytes and times.
//!
//! Memory is bounded: so many flows are followed at once, and so many are kept; the rest is counted.

use super::connection::Connection;
use super::link_layer::{self, Other, Parsed, RST, SYN, Tcp};
use super::table::{self, Followed, Key, Table};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Where on its way through the link a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Before the queue.
    Entered,
    /// At the other end.
    Left,
    /// The packet does not reach the other end.
    Dropped,
}

/// A flow that was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// `tcp`, `quic`, `udp`, `icmp`, or the number of the protocol.
    pub protocol: String,
    /// Whether the command's side opened it (TCP), or sent first.
    pub by_command: bool,
    /// Address and port of the end that opened it.
    pub source: String,
    /// Address and port of the other end.
    pub destination: String,
    /// When its first packet entered the link, from the first packet of all (s).
    pub start_s: f64,
    /// When its last packet entered or left the link (s).
    pub end_s: f64,
    /// From the first packet to the arrival of the last new payload byte (TCP; s); `null` without payload.
    pub completion_s: Option<f64>,
    /// Whether every payload byte that was sent arrived, and the connection was not aborted; `null` where this is not known (not TCP).
    pub completed: Option<bool>,
    /// Why it is not complete.
    #[serde(default)]
    pub incomplete: Option<Incomplete>,
    /// Round-trip time of the handshake as the end that opened saw it (s).
    pub handshake_rtt_s: Option<f64>,
    /// Smallest, mean and largest round-trip time of data, queue included, as its sender saw it (s), and their number.
    pub rtt: Option<RoundTrips>,
    /// What the command's side sent.
    pub sent: Sent,
    /// What the command's side received: what the far end sent.
    pub received: Sent,
}

/// Why a TCP flow is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Incomplete {
    /// A reset answered its SYN: nothing listens there, or a filter does not want it.
    Refused,
    /// Nothing answered its SYN.
    Unanswered,
    /// The flow carried no data.
    NoData,
    /// Data that was sent had not arrived when the flow was last seen.
    DataMissing,
    /// All data arrived, but one end aborted the connection (RST) before the other had closed it.
    Reset,
}

impl Incomplete {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Incomplete::Refused => "refused: a reset answered its SYN",
            Incomplete::Unanswered => "nothing answered its SYN",
            Incomplete::NoData => "no data",
            Incomplete::DataMissing => "not all data arrived",
            Incomplete::Reset => "reset",
        }
    }

    /// As it is written in results.
    pub const fn name(self) -> &'static str {
        match self {
            Incomplete::Refused => "refused",
            Incomplete::Unanswered => "unanswered",
            Incomplete::NoData => "no-data",
            Incomplete::DataMissing => "data-missing",
            Incomplete::Reset => "reset",
        }
    }
}

/// Round-trip times of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundTrips {
    /// How many were measured.
    pub n: u64,
    /// The smallest (s).
    pub min_s: f64,
    /// Their mean (s).
    pub mean_s: f64,
    /// The largest (s).
    pub max_s: f64,
}

/// What one end of a flow sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    /// Packets that entered the link.
    pub packets: u64,
    /// Layer-3 bytes of the packets that entered the link.
    pub bytes: u64,
    /// Bytes of the stream (TCP).
    pub payload_bytes: u64,
    /// Data segments, those sent again included (TCP).
    pub segments: u64,
    /// Data segments without a new byte (TCP).
    pub retransmits: u64,
    /// Packets that the link dropped.
    pub dropped: u64,
}

/// All flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Flows that are kept, in order of their first packet.
    pub flows: Vec<Flow>,
    /// How many flows there were.
    pub total: u64,
    /// Frames that belong to no flow: not IP, fragments, of neighbour discovery, or cut off.
    pub other_frames: u64,
}

/// Follows the flows of a link.
#[derive(Debug)]
pub struct Flows {
    tcp: Table<Both>,
    others: Table<Plain>,
    kept: Vec<Flow>,
    total: u64,
    other_frames: u64,
    /// Flows that are followed at once, of TCP and of the rest; those that are kept when they are over.
    most_open: usize,
    most_kept: usize,
    first_ns: Option<u64>,
}

/// A TCP connection as each end sees it.
#[derive(Debug)]
struct Both {
    /// At the command, and at the far end.
    views: [Connection; 2],
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    /// Which side of a view the command is: 0 opened.
    command: usize,
    first_ns: u64,
    last_ns: u64,
    /// When the last new payload byte arrived.
    arrived_ns: Option<u64>,
    rtt: Samples,
    sent: [Sent; 2],
}

/// A flow of another protocol.
#[derive(Debug)]
struct Plain {
    first: Other,
    quic: bool,
    by_command: bool,
    first_ns: u64,
    last_ns: u64,
    sent: [Sent; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    n: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Followed for Both {
    fn last_ns(&self) -> u64 {
        self.last_ns
    }

    fn is_over(&self) -> bool {
        self.views.iter().all(Connection::is_over)
    }
}

impl Followed for Plain {
    fn last_ns(&self) -> u64 {
        self.last_ns
    }

    fn is_over(&self) -> bool {
        false
    }
}

impl Default for Flows {
    fn default() -> Flows {
        Flows::new(MOST_OPEN, MOST_KEPT)
    }
}

impl Flows {
    /// Follows so many flows at once, and keeps so many.
    pub fn new(most_open: usize, most_kept: usize) -> Flows {
        Flows {
            tcp: Table::new(),
            others: Table::new(),
            kept: Vec::new(),
            total: 0,
            other_frames: 0,
            most_open: most_open.max(1),
            most_kept,
            first_ns: None,
        }
    }

    /// A frame was seen. `by_command`: it goes from the command's side to the far end; `length`: that of the whole frame, of
    /// which `data` was kept.
    pub fn on_frame(&mut self, now_ns: u64, by_command: bool, passage: Passage, data: &[u8], length: u32) {
        let since = now_ns.saturating_sub(*self.first_ns.get_or_insert(now_ns));
        match link_layer::parse(link_layer::ETHERNET, data, length) {
            Parsed::Tcp(tcp) => self.on_tcp(since, by_command, passage, &tcp),
            Parsed::OtherProtocol(other) if !is_of_the_link(&other) => {
                self.on_other(since, by_command, passage, &other);
            }
            _ => self.other_frames += u64::from(passage == Passage::Entered),
        }
    }

    fn on_tcp(&mut self, now_ns: u64, by_command: bool, passage: Passage, tcp: &Tcp) {
        let (key, smaller_sent) = table::key(tcp.source, tcp.destination);
        let mut place = self.tcp.find(&key);
        if passage == Passage::Entered {
            if let Some(found) = place
                && let Some(entry) = self.tcp.entry(found)
                && entry.connection.views[usize::from(!by_command)]
                    .is_reused_by(tcp, usize::from(entry.smaller_opened != smaller_sent))
            {
                self.give_up(found);
                place = None;
            }
            if place.is_none() && (tcp.has(SYN) || tcp.payload > 0 && !tcp.has(RST)) {
                place = Some(self.open(now_ns, key, smaller_sent, by_command, tcp));
            }
        }
        let Some(place) = place else { return };
        let Some(entry) = self.tcp.entry(place) else {
            return;
        };
        let side = usize::from(entry.smaller_opened != smaller_sent);
        entry.connection.on_packet(now_ns, by_command, side, passage, tcp);
        self.tcp.touch(place);
    }

    fn open(&mut self, now_ns: u64, key: Key, smaller_sent: bool, by_command: bool, tcp: &Tcp) -> u32 {
        if self.tcp.len() >= self.most_open
            && let Some((oldest, _)) = self.tcp.oldest(true).or_else(|| self.tcp.oldest(false))
        {
            self.give_up(oldest);
        }
        let opened = tcp.sender_opened();
        let view = || Connection::new(now_ns, [0, 1], QUIET_NS);
        let (source, destination) = match opened {
            true => (tcp.source, tcp.destination),
            false => (tcp.destination, tcp.source),
        };
        let both = Both {
            views: [view(), view()],
            source,
            destination,
            command: usize::from(opened != by_command),
            first_ns: now_ns,
            last_ns: now_ns,
            arrived_ns: None,
            rtt: Samples::default(),
            sent: [Sent::default(); 2],
        };
        self.tcp.insert(key, opened == smaller_sent, both)
    }

    fn on_other(&mut self, now_ns: u64, by_command: bool, passage: Passage, other: &Other) {
        let (key, smaller_sent) = table::key(other.source, other.destination);
        // Ports of different protocols are different flows; those of UDP are as they are.
        let key = match other.protocol {
            UDP => key,
            number => ((key.0.0, u16::from(number)), (key.1.0, u16::from(number))),
        };
        let place = match self.others.find(&key) {
            Some(place) => place,
            None if passage != Passage::Entered => return,
            None => {
                if self.others.len() >= self.most_open
                    && let Some((oldest, _)) = self.others.oldest(false)
                    && let Some(entry) = self.others.remove(oldest)
                {
                    self.keep(entry.connection.flow());
                }
                let plain = Plain {
                    first: *other,
                    quic: false,
                    by_command,
                    first_ns: now_ns,
                    last_ns: now_ns,
                    sent: [Sent::default(); 2],
                };
                self.others.insert(key, smaller_sent, plain)
            }
        };
        if let Some(entry) = self.others.entry(place) {
            let plain = &mut entry.connection;
            plain.last_ns = plain.last_ns.max(now_ns);
            plain.quic |= other.quic;
            plain.sent[usize::from(!by_command)].count(passage, other.length);
        }
        self.others.touch(place);
    }

    fn give_up(&mut self, place: u32) {
        if let Some(entry) = self.tcp.remove(place) {
            self.keep(entry.connection.flow());
        }
    }

    fn keep(&mut self, flow: Flow) {
        self.total += 1;
        if self.kept.len() < self.most_kept {
            self.kept.push(flow);
        }
    }

    /// All flows, those that are still open included.
    pub fn finish(mut self) -> Seen {
        while let Some((place, _)) = self.tcp.oldest(true).or_else(|| self.tcp.oldest(false)) {
            self.give_up(place);
        }
        while let Some((place, _)) = self.others.oldest(false) {
            if let Some(entry) = self.others.remove(place) {
                self.keep(entry.connection.flow());
            }
        }
        self.kept.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
        Seen {
            flows: self.kept,
            total: self.total,
            other_frames: self.other_frames,
        }
    }
}

impl Both {
    fn on_packet(&mut self, now_ns: u64, by_command: bool, side: usize, passage: Passage, tcp: &Tcp) {
        self.last_ns = self.last_ns.max(now_ns);
        self.sent[usize::from(!by_command)].count(passage, tcp.length);
        // The end at which the packet is seen.
        let at = match passage {
            Passage::Entered => usize::from(!by_command),
            Passage::Left => usize::from(by_command),
            Passage::Dropped => return,
        };
        let view = &mut self.views[at];
        let before = view.ends[side].seen_bytes();
        let seen = view.on_packet(now_ns, side, 0, tcp);
        if passage == Passage::Left {
            if view.ends[side].seen_bytes() > before {
                self.arrived_ns = Some(now_ns);
            }
            if let Some((sample_ns, _)) = seen.sample_ns {
                self.rtt.add(sample_ns);
            }
        }
    }

    fn flow(&self) -> Flow {
        let mut sent = self.sent;
        let mut whole = true;
        for (who, sent) in sent.iter_mut().enumerate() {
            // 0: the command. Its own view shows what it sent, the other one what arrived.
            let side = self.command ^ who;
            let end = &self.views[who].ends[side];
            sent.payload_bytes = end.next;
            sent.segments = end.segments;
            sent.retransmits = end.retransmitted;
            whole &= self.views[1 - who].ends[side].seen_bytes() >= end.next;
        }
        // Who resets after the other end's FIN has heard all of it; before, the other end may have had more to say.
        let is_closed = |side: usize| self.views.iter().any(|view| view.ends[side].fin.is_some());
        let cut_off = self
            .views
            .iter()
            .filter_map(|view| view.reset_by)
            .any(|side| !is_closed(1 - side));
        let opened = self.views.iter().any(|view| view.opened_ns.is_some());
        let answered = self.views.iter().any(|view| view.answered);
        let incomplete = match self.arrived_ns {
            None if opened && !answered => match self.views.iter().any(|view| view.reset_by.is_some()) {
                true => Some(Incomplete::Refused),
                false => Some(Incomplete::Unanswered),
            },
            None => Some(Incomplete::NoData),
            Some(_) if !whole => Some(Incomplete::DataMissing),
            Some(_) if cut_off => Some(Incomplete::Reset),
            Some(_) => None,
        };
        let opener = &self.views[self.command];
        let seconds = |ns: u64| ns as f64 / 1e9;
        Flow {
            protocol: String::from("tcp"),
            by_command: self.command == 0,
            source: socket(self.source),
            destination: socket(self.destination),
            start_s: seconds(self.first_ns),
            end_s: seconds(self.last_ns),
            completion_s: self.arrived_ns.map(|ns| seconds(ns - self.first_ns)),
            completed: Some(incomplete.is_none()),
            incomplete,
            handshake_rtt_s: opener.ends[1].handshake_half_ns.map(seconds),
            rtt: self.rtt.summary(),
            sent: sent[0],
            received: sent[1],
        }
    }
}

impl Plain {
    fn flow(&self) -> Flow {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let protocol = match self.first.protocol {
            UDP if self.quic => String::from("quic"),
            UDP => String::from("udp"),
            1 | 58 => String::from("icmp"),
            number => format!("protocol {number}"),
        };
        Flow {
            protocol,
            by_command: self.by_command,
            source: socket(self.first.source),
            destination: socket(self.first.destination),
            start_s: seconds(self.first_ns),
            end_s: seconds(self.last_ns),
            sent: self.sent[0],
            received: self.sent[1],
            ..Flow::default()
        }
    }
}

impl Sent {
    fn count(&mut self, passage: Passage, length: u32) {
        match passage {
            Passage::Entered => {
                self.packets += 1;
                self.bytes += u64::from(length);
            }
            Passage::Left => {}
            Passage::Dropped => self.dropped += 1,
        }
    }
}

impl Samples {
    fn add(&mut self, ns: u64) {
        self.min_ns = if self.n == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.n += 1;
        self.sum_ns += u128::from(ns);
    }

    fn summary(self) -> Option<RoundTrips> {
        (self.n > 0).then(|| RoundTrips {
            n: self.n,
            min_s: self.min_ns as f64 / 1e9,
            mean_s: self.sum_ns as f64 / self.n as f64 / 1e9,
            max_s: self.max_ns as f64 / 1e9,
        })
    }
}

/// Whether a packet is for everybody on the link, or of addresses that hold on the link only: neighbour discovery and the like.
fn is_of_the_link(other: &Other) -> bool {
    let local = |address: IpAddr| match address {
        IpAddr::V4(four) => four.is_multicast() || four.is_broadcast(),
        IpAddr::V6(six) => six.is_multicast() || six.is_unicast_link_local(),
    };
    local(other.source.0) || local(other.destination.0)
}

/// An address with its port, if there is one.
fn socket((address, port): (IpAddr, u16)) -> String {
    match port {
        0 => address.to_string(),
        port => SocketAddr::new(address, port).to_string(),
    }
}

/// Flows that are followed at once.
const MOST_OPEN: usize = 16_384;
/// Flows that are kept.
const MOST_KEPT: usize = 20_000;
/// Nothing here depends on pauses of applications.
const QUIET_NS: u64 = 10_000_000;
/// Number of UDP.
const UDP: u8 = 17;

#[cfg(test)]
mod tests;
