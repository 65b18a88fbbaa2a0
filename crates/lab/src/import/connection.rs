//! One connection as a capture shows it: sequence space of both ends, round-trip times to either side of the capture point,
//! retransmissions, and what was said.
//!
//! **Round-trip times** are those between the capture point and each end, so that their sum is the connection's wherever the
//! capture was made: from data to the ACK of its last byte, from SYN to SYN-ACK, from SYN-ACK to ACK. After a retransmission
//! only an echoed timestamp says which transmission was answered (Karn); without it the sample is left out.
//!
//! **Retransmissions** are segments without a new byte. Not counted: keep-alives, probes of a closed window, packets that were
//! captured twice (soon again, or at another place: of each direction only the interface that saw it first counts, unless another
//! one has what it missed), and segments that were overtaken on their way (`overtaken`).
//!
//! Bytes are counted by sequence numbers: what the capture missed, but the peer acknowledged, is there. So it is with an end that
//! the capture does not show at all: its peer's acknowledgments show how much it sent, though not when, nor in how many segments.

use super::adus::{Frame, Units};
use super::clock::{Clock, Rate, TICK_NS};
use super::delivery::{Delivered, Ledger};
use super::link_layer::{ACK, FIN, RST, SYN, Tcp};
use end::{CutLength, Edges};
use handshake::Handshake;
use missed::Missed;
use sightings::Sightings;
use std::collections::VecDeque;

mod ack_arrivals;
mod data;
mod end;
mod handshake;
mod missed;
mod overtaken;
mod sightings;

/// One end of a connection, and what it sent.
#[derive(Debug, Default)]
pub(super) struct End {
    /// The first sequence number of its data, once known.
    origin: Option<u32>,
    /// Stream offset behind its last byte that was seen.
    pub(super) next: u64,
    /// Stream offset that its peer has acknowledged.
    acked: u64,
    /// Since when nothing of it is unacknowledged.
    idle_since_ns: Option<u64>,
    /// When its last new byte came, and how long that segment was.
    last_data_ns: u64,
    last_length: u32,
    /// There was more to send behind that segment; the window ended there.
    unpushed: bool,
    held: bool,
    /// How far its peer lets it send.
    edges: Edges,
    /// Ranges that were passed over.
    holes: Vec<Hole>,
    /// Ranges of them that were filled by what was sent again, and the timestamps of that.
    repaired: VecDeque<Hole>,
    /// Ranges that were acknowledged and never seen.
    pub(super) missing: u64,
    /// What was acknowledged beyond `next`.
    missed: Missed,
    /// Stream offset behind its FIN.
    pub(super) fin: Option<u64>,
    /// Segments whose ACK is awaited.
    timed: VecDeque<Timed>,
    /// SYNs, or SYN-ACKs, sent; the last of them.
    syns: u32,
    syn: (u64, Option<u32>),
    /// The maximum segment size that it announced (what it takes), and what its peer did.
    mss: Option<u16>,
    peer_mss: Option<u16>,
    /// Length of its segments that were not all it had to send.
    cut: CutLength,
    /// Its segments have timestamps.
    stamps: bool,
    scale: Option<u8>,
    largest_window: u64,
    /// This end announced a window of zero.
    closed_window: bool,
    /// Largest payload seen, where no MSS was.
    largest: u32,
    recent: VecDeque<(u64, Print)>,
    sightings: Sightings,
    /// The interface that saw it first.
    interface: Option<u32>,
    /// Smallest and handshake's round-trip time between the capture point and it.
    pub(super) half_ns: Option<u64>,
    pub(super) handshake_half_ns: Option<u64>,
    /// What the peer's ACKs reported as delivered.
    ledger: Ledger,
    /// Its clock by the timestamps of its packets, and its peer's by those that it echoes.
    clock: Clock,
    echo: Clock,
    /// Layer-3 bytes of headers of its last data packet.
    headers: u32,
    /// What its last ACKs were late by, where only round-trip times show it.
    late_ns: u64,
    /// The last round-trip time to it without the wait of a delayed ACK.
    prompt: Option<Prompt>,
    /// When an ACK of it that was not delayed came last, and what the data that it acknowledged had waited.
    waited: Option<(u64, u64)>,
    /// The least that an ACK of a single segment took beyond the smallest round-trip time, where that may have been a delay.
    alone_ns: Option<u64>,
    pub(super) packets: u64,
    pub(super) segments: u64,
    pub(super) retransmitted: u64,
    pub(super) retransmitted_bytes: u64,
    /// Segments that its peer reported as received twice.
    pub(super) needless: u64,
}

/// A round-trip time to an end that no delay of its ACKs is in.
#[derive(Clone, Copy, Debug)]
struct Prompt {
    way_ns: u64,
    /// From the ACK before to this one.
    gap_ns: u64,
    /// When it came.
    at_ns: u64,
}

/// A range that was passed over.
#[derive(Clone, Copy, Debug)]
struct Hole {
    from: u64,
    to: u64,
    /// When, and the timestamp of the segment behind it (of a range that was filled: of what filled it).
    since_ns: u64,
    stamp: Option<u32>,
}

/// A segment whose ACK is awaited.
#[derive(Clone, Copy, Debug)]
struct Timed {
    start: u64,
    end: u64,
    /// When it was sent first, and last.
    first_ns: u64,
    last_ns: u64,
    stamp: Option<u32>,
    again: bool,
}

/// What distinguishes a packet from all others but its copies.
type Print = (u32, u32, u32, u16, u16, u8);

/// What a packet showed of its connection, for measures over all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Captured before.
    pub(super) duplicate: bool,
    /// A round-trip time to the sender of this packet (ns), and how much more than the smallest known.
    pub(super) sample_ns: Option<(u64, u64)>,
    /// What it reported as delivered of the other end's data, and the layer-3 bytes of that.
    pub(super) delivered: Option<(Delivered, u64)>,
    /// What the data that it acknowledges waited behind the capture point.
    pub(super) waited_ns: Option<u64>,
    /// What it waited in queues at least before it was captured, by its timestamp, and at most.
    pub(super) queued_ns: Option<(u64, u64)>,
    /// Behind it, or behind what it acknowledges, something is missing for the first time; what the packet next to that waited, by the side of
    /// the capture point (behind, before).
    pub(super) loss_waited_ns: [Option<u64>; 2],
    /// Sent before its turn and late.
    pub(super) reordered: bool,
    /// A keep-alive or a probe of a closed window.
    pub(super) probe: bool,
    /// The window of the other end had kept its sender from sending for as long as a pause.
    pub(super) window_wait: bool,
    /// Longer than its sender's maximum segment size.
    pub(super) aggregate: bool,
    /// The sequence number was out of all bounds.
    pub(super) lost_track: bool,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// The end that opened (as far as known), and the other.
    pub(super) ends: [End; 2],
    pub(super) units: Units,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    /// The first SYN.
    pub(super) opened_ns: Option<u64>,
    pub(super) answered: bool,
    handshake: Handshake,
    /// What was sent no later than this is from before a jump of the capture's clock: how long it took is not known.
    pub(super) void_ns: Option<u64>,
    /// What is known outside of it of the clocks of its hosts.
    rates: [Rate; 2],
    closed: Option<(u64, u8)>,
    /// The end that reset it first.
    pub(super) reset_by: Option<usize>,
    /// Numbers of the hosts.
    pub(super) hosts: [u32; 2],
    /// Small segments that were sent while a small one was not acknowledged.
    pub(super) unheld: u64,
    /// Whether the connection was opened from the other side of the line than the first one; `None`: the sides of its hosts are unknown.
    pub(super) back: Option<bool>,
    /// Time that counts as a pause.
    quiet_ns: u64,
}

impl Connection {
    pub(super) fn new(now_ns: u64, hosts: [u32; 2], quiet_ns: u64) -> Connection {
        Connection {
            ends: [End::default(), End::default()],
            units: Units::default(),
            first_ns: now_ns,
            last_ns: now_ns,
            opened_ns: None,
            answered: false,
            handshake: Handshake::default(),
            void_ns: None,
            rates: [Rate::Unknown; 2],
            closed: None,
            reset_by: None,
            hosts,
            unheld: 0,
            back: Some(false),
            quiet_ns,
        }
    }

    /// What other connections have shown of the clocks of its hosts.
    pub(super) fn know_clocks(&mut self, rates: [Rate; 2]) {
        self.rates = rates;
        for (side, rate) in rates.into_iter().enumerate() {
            self.ends[side].clock.know(rate);
            self.ends[1 - side].echo.know(rate);
        }
    }

    /// What a packet of `side` has proven of its host's clock, if that is new.
    pub(super) fn new_rate(&mut self, side: usize) -> Option<Rate> {
        let rate = self.ends[side].clock.rate();
        let new = std::mem::replace(&mut self.rates[side], rate) != rate;
        (new && matches!(rate, Rate::Milliseconds | Rate::Other)).then_some(rate)
    }

    /// Both ends are done, or one gave up.
    pub(super) fn is_over(&self) -> bool {
        // Of a hidden end there is nothing to wait for, and nothing that would acknowledge the other's FIN.
        let hidden = (self.ends[0].packets == 0) != (self.ends[1].packets == 0);
        let done = |end: &End| end.fin.is_some_and(|fin| end.acked >= fin);
        let ended = |end: &End| end.packets == 0 || end.fin.is_some();
        self.reset_by.is_some()
            || match hidden {
                true => self.ends.iter().all(ended),
                false => self.ends.iter().all(done),
            }
    }

    /// Whether a SYN begins another connection with the same addresses and ports.
    pub(super) fn is_reused_by(&self, tcp: &Tcp, side: usize) -> bool {
        let end = &self.ends[side];
        let another = end.origin.is_some_and(|origin| origin != tcp.seq.wrapping_add(1));
        tcp.has(SYN) && !tcp.has(ACK) && (self.is_over() || another && (side == 0 || !self.units.is_empty()))
    }

    /// Takes a packet that `side` sent.
    pub(super) fn on_packet(&mut self, now_ns: u64, side: usize, interface: u32, tcp: &Tcp) -> Seen {
        let mut seen = Seen::default();
        let now_ns = now_ns.max(self.last_ns); // captures of several interfaces are not in order
        if self.is_copy(now_ns, side, interface, tcp) {
            seen.duplicate = true;
            return seen;
        }
        self.last_ns = now_ns;
        self.ends[side].packets += 1;
        if tcp.has(SYN) {
            self.on_syn(now_ns, side, tcp);
        }
        self.note_window(now_ns, side, tcp);
        let late = tcp
            .timestamps
            .and_then(|stamps| self.ends[side].clock.late(now_ns, stamps.0));
        seen.queued_ns = late.map(|late| (late.saturating_sub(TICK_NS), late + TICK_NS));
        if tcp.has(ACK) && !tcp.has(RST) {
            self.on_ack(now_ns, side, tcp, late, &mut seen);
        }
        if tcp.has(RST) {
            self.reset_by.get_or_insert(side);
            self.closed.get_or_insert((now_ns, side as u8));
            return seen;
        }
        if side == 0 && tcp.payload > 0 && self.units.is_empty() {
            self.handshake.data(now_ns, self.ends[0].clock.difference());
        }
        self.on_data(now_ns, side, tcp, &mut seen);
        seen
    }

    fn is_copy(&mut self, now_ns: u64, side: usize, interface: u32, tcp: &Tcp) -> bool {
        let rtt = self.rtt_ns().unwrap_or(u64::MAX);
        let end = &mut self.ends[side];
        if *end.interface.get_or_insert(interface) != interface {
            let begins = tcp.seq.wrapping_add(u32::from(tcp.has(SYN)));
            let known = end.origin.and_then(|origin| offset(begins, origin, end.next));
            let new = known.is_some_and(|start| start + u64::from(tcp.payload) > end.next);
            return tcp.payload == 0 || !new;
        }
        if tcp.payload == 0 && !tcp.has(SYN) && !tcp.has(FIN) {
            return false;
        }
        let print = (tcp.seq, tcp.ack, tcp.payload, tcp.ip_id, tcp.checksum, tcp.flags);
        // Nobody retransmits sooner.
        let limit = COPY_NS.min(rtt / 2);
        let copy = |&(at, known): &(u64, Print)| known == print && now_ns.saturating_sub(at) <= limit;
        if end.recent.iter().any(copy) {
            return true;
        }
        if end.recent.len() == RECENT {
            end.recent.pop_front();
        }
        end.recent.push_back((now_ns, print));
        end.sightings.take(tcp);
        false
    }

    fn on_syn(&mut self, now_ns: u64, side: usize, tcp: &Tcp) {
        let end = &mut self.ends[side];
        end.origin = Some(tcp.seq.wrapping_add(1));
        end.mss = tcp.mss.or(end.mss);
        let mss = end.mss;
        end.scale = tcp.scale;
        end.syns += 1;
        end.syn = (now_ns, tcp.timestamps.map(|stamps| stamps.0));
        self.ends[1 - side].peer_mss = mss;
        if side == 0 && !tcp.has(ACK) {
            self.opened_ns.get_or_insert(now_ns);
        } else if side == 1 && tcp.has(ACK) {
            self.answered = true;
            let opener = &self.ends[0];
            let which = tcp.timestamps.map(|stamps| stamps.1);
            let known = opener.syns == 1 || opener.syn.1.is_some() && which == opener.syn.1;
            if known && Some(opener.syn.0) > self.void_ns {
                let half = now_ns.saturating_sub(opener.syn.0);
                self.ends[1].handshake(now_ns, half);
            }
        }
    }

    fn note_window(&mut self, now_ns: u64, side: usize, tcp: &Tcp) {
        let shift = if tcp.has(SYN) { Some(0) } else { self.scale(side) };
        let [own, other] = match &mut self.ends {
            [first, second] if side == 0 => [first, second],
            [first, second] => [second, first],
        };
        own.closed_window = tcp.window == 0 && !tcp.has(SYN) && !tcp.has(RST);
        let Some(shift) = shift else { return };
        let window = u64::from(tcp.window) << shift;
        own.largest_window = own.largest_window.max(window);
        let origin = other.origin.filter(|_| tcp.has(ACK) && !tcp.has(RST));
        let ack = origin.and_then(|origin| offset(tcp.ack, origin, other.acked));
        if let Some(ack) = ack {
            other
                .edges
                .announce(now_ns, ack.saturating_add(window), other.next);
        }
    }

    /// What the windows of an end are shifted by; `None`: the SYNs that say so were not seen.
    fn scale(&self, side: usize) -> Option<u8> {
        let [own, other] = [&self.ends[side], &self.ends[1 - side]];
        // An answer has the option only if the question had it (RFC 7323 2.2).
        let agreed = other.scale.is_some() || other.syns == 0 && side == 1;
        (own.syns > 0 && (other.syns > 0 || side == 1)).then_some(match agreed {
            true => own.scale.unwrap_or(0),
            false => 0,
        })
    }

    /// An acknowledgment of what the other end sent.
    fn on_ack(&mut self, now_ns: u64, side: usize, tcp: &Tcp, late_ns: Option<u64>, seen: &mut Seen) {
        let echoed = tcp.timestamps.map(|stamps| stamps.1);
        let hidden = self.ends[1 - side].packets == 0;
        if side == 0 && (self.answered || hidden) && !self.handshake.is_over() && !tcp.has(SYN) {
            self.handshake.ends(now_ns, self.ends[0].clock.difference());
            let [opener, answer] = &self.ends;
            let timed = |end: &End| Some(end.syn.0) > self.void_ns;
            if hidden && opener.syns == 1 && timed(opener) {
                // SYN and its sender's answer to the SYN-ACK pass the same place a round-trip time apart.
                let rtt = now_ns.saturating_sub(opener.syn.0);
                self.ends[0].handshake(now_ns, 0);
                self.ends[1].handshake(now_ns, rtt);
            } else if (answer.syns == 1 || answer.syn.1.is_some() && echoed == answer.syn.1) && timed(answer)
            {
                let half = now_ns.saturating_sub(answer.syn.0);
                self.ends[0].handshake(now_ns, half);
            }
        }
        let waiting = self.ends[1 - side].timed.front().copied();
        let before = match hidden {
            true => self.infer(now_ns, side, tcp.ack),
            false => self.acknowledge(now_ns, side, tcp, echoed, seen),
        };
        let Some(before) = before else { return };
        // Not all segments are remembered.
        let first = waiting.filter(|timed| timed.start <= before);
        let sent_ns = first.map(|timed| timed.first_ns);
        self.take_ack_arrivals(now_ns, side, tcp, (before, sent_ns, late_ns), seen);
    }

    /// An acknowledgment of an end that is seen. Where it acknowledged up to before.
    fn acknowledge(
        &mut self,
        now_ns: u64,
        side: usize,
        tcp: &Tcp,
        echoed: Option<u32>,
        seen: &mut Seen,
    ) -> Option<u64> {
        let other = &mut self.ends[1 - side];
        // A FIN takes a number too.
        let ack = offset(tcp.ack, other.origin?, other.acked)?;
        let acked = other.acked;
        if ack > other.next + 1 {
            self.note_missed(now_ns, 1 - side, ack);
            return None;
        }
        if ack < acked {
            return None;
        }
        if ack == acked {
            return Some(acked);
        }
        other.acked = ack;
        if ack >= other.next {
            other.idle_since_ns = Some(now_ns);
        }
        // Acknowledged, and not captured.
        let before = other.holes.len();
        other.holes.retain(|hole| hole.to > ack);
        other.missing += (before - other.holes.len()) as u64;
        let mut sample = None;
        while let Some(timed) = other.timed.front().copied().filter(|timed| timed.end <= ack) {
            other.timed.pop_front();
            let unambiguous = match (timed.stamp, echoed) {
                (Some(stamp), Some(echoed)) => stamp == echoed || !timed.again,
                _ => !timed.again,
            };
            if unambiguous && Some(timed.last_ns) > self.void_ns {
                sample = Some(now_ns.saturating_sub(timed.last_ns));
            }
        }
        if let Some(sample) = sample {
            let end = &mut self.ends[side];
            let least = end.half_ns.map_or(sample, |least| least.min(sample));
            end.half_ns = Some(least);
            end.late_ns = sample - least;
            seen.sample_ns = Some((sample, sample - least));
        }
        Some(acked)
    }

    /// What its units are timed by; `base_ns`: the smallest round-trip times that any connection between the same hosts
    /// had; `longest_ns`: what its first packet waited at most.
    pub(super) fn frame(&self, base_ns: [u64; 2], longest_ns: u64) -> Frame {
        let halves_ns = self.halves_ns();
        // What the end of the handshake waited, less what it waited more than the SYN did.
        let half_ns = self.ends[0].handshake_half_ns.unwrap_or(0);
        let waited = half_ns.saturating_sub(base_ns[0]);
        let believed = self.ends[0].clock.is_believed();
        let late_ns = waited.saturating_add_signed(-self.handshake.waited_more_ns(believed));
        Frame {
            opened_ns: self.opened_ns,
            established_ns: self.handshake.ready_ns(believed).unwrap_or(self.first_ns),
            closed: self.closed,
            halves_ns,
            base_ns,
            late_ns: late_ns.min(longest_ns),
        }
    }

    /// Smallest round-trip times between the capture point and the ends; 0: not known.
    pub(super) fn halves_ns(&self) -> [u64; 2] {
        [0, 1].map(|side| self.ends[side].half_ns.unwrap_or(0))
    }

    /// Smallest round-trip time from end to end, as far as both halves are known.
    pub(super) fn rtt_ns(&self) -> Option<u64> {
        Some(self.ends[0].half_ns? + self.ends[1].half_ns?)
    }

    /// That of the handshake.
    pub(super) fn handshake_ns(&self) -> Option<u64> {
        Some(self.ends[0].handshake_half_ns? + self.ends[1].handshake_half_ns?)
    }

    /// The end that the last byte was for.
    pub(super) fn last_listener(&self) -> usize {
        usize::from(self.ends[0].last_data_ns > self.ends[1].last_data_ns)
    }

    /// Packets with data that were looked at, and those of them that came a second time, too late for a copy on the same wire.
    pub(super) fn sightings(&self) -> [u64; 2] {
        let sum = |of: fn(&End) -> u64| self.ends.iter().map(of).sum();
        [sum(|end| end.sightings.once), sum(|end| end.sightings.again)]
    }

    /// Largest windows; 0: not known.
    pub(super) fn windows(&self) -> [u64; 2] {
        [0, 1].map(|side| self.ends[side].largest_window)
    }
}

/// The stream offset of a sequence number, near to `near`; `None`: before the first byte.
fn offset(seq: u32, origin: u32, near: u64) -> Option<u64> {
    let expected = origin.wrapping_add(near as u32);
    let distance = i64::from(seq.wrapping_sub(expected) as i32);
    near.checked_add_signed(distance)
}

/// A copy of a packet on the same interface comes within this.
const COPY_NS: u64 = 1_000_000;
/// Packets that are remembered to know copies.
const RECENT: usize = 8;
/// A jump beyond this is no loss.
const LOST_TRACK: u64 = 1 << 28;
