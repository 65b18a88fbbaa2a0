//! The receiving half: reassembly as ranges, the window offered, SACK and D-SACK, when to acknowledge.
//!
//! In-order data moves `rcv_nxt`; data beyond a hole is kept as sorted ranges of offsets (`beyond`). The first SACK block is the
//! range that holds the newest segment, then those reported most recently; a duplicate comes before them all. The right
//! edge of the window never moves left, and moves right by at least min(MSS, buffer / 2).
//!
//! **Source.** RFC 9293 3.8.6, 3.10.7.4; RFC 2018 4; RFC 2883 4; RFC 5681 4.2; RFC 8257 3.2; with `DelayedAck::Linux` `tcp_data_ecn_check`. `ack_policy`
//! decides when to acknowledge.
//! **Deviations.** Linux's receive memory is modelled (`rcvbuf`) if `Config::receive_memory` says so: else the buffer is what
//! `Config::receive_buffer` says from the start. There, of `tcp_grow_window` only the effect on acknowledgments is kept: it raises
//! `rcv_ssthresh` by two segments per segment received, from 64 KiB to the buffer, and each step is acknowledged at once
//! (seen in `specs/linux-6.18`: far more than the 16 quick ACKs of the start). The window offered is the buffer from the start.

use crate::packet::{Ecn, Flags, Segment};
use crate::tcp::ack::rto::Rtt;
use crate::tcp::config::{Config, DelayedAck, EcnEcho};
#[cfg(doc)]
use crate::tcp::fast::FastPath;
use crate::tcp::receive::ack_policy::Acking;
use crate::tcp::receive::held_back::HeldBack;
use crate::tcp::receive::rcvbuf::Room;
use crate::tcp::receive::reassembly::Beyond;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use core::ops::Range;
use serde::{Deserialize, Serialize};

/// State of the receiving half. Offsets count from the peer's initial sequence number: 0 is its SYN, 1 its first byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Receive {
    /// Next offset expected.
    pub(in crate::tcp) rcv_nxt: u64,
    /// Right edge of the window offered.
    pub(in crate::tcp) edge: u64,
    /// Offset up to which the application has read.
    pub(in crate::tcp) read: u64,
    /// Offset of the peer's FIN, `u64::MAX` while unknown.
    pub(in crate::tcp) fin_at: u64,
    /// Data beyond a hole; allocated when the first such segment arrives.
    pub(in crate::tcp) beyond: Option<Box<Beyond>>,
    /// When to acknowledge.
    pub(in crate::tcp) acking: Acking,
    /// Linux's `rcv_ssthresh`: while it grows towards the buffer, every segment is acknowledged at once.
    pub(in crate::tcp) grown: u32,
    /// Linux's receive memory, if the window is to follow it.
    pub(in crate::tcp) room: Option<Box<Room>>,
    /// ECE is to be set on what we send.
    pub(in crate::tcp) echo: bool,
    /// Data came with ECT or CE.
    ect_seen: bool,
    /// The window field of what leaves next, if nothing that it follows from has changed since it was offered.
    #[serde(skip)]
    pub(in crate::tcp) standing: Option<u16>,
}

/// What became of the payload of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) struct Taken {
    /// Offsets newly taken (in order or beyond a hole), empty if none.
    pub(in crate::tcp) start: u64,
    /// End of it.
    pub(in crate::tcp) end: u64,
    /// Bytes already held.
    pub(in crate::tcp) redundant: u32,
    /// Whether `rcv_nxt` moved.
    pub(in crate::tcp) advanced: bool,
    /// Whether the peer's FIN is now in order.
    pub(in crate::tcp) fin: bool,
}

impl Receive {
    pub(in crate::tcp) fn new(config: &Config) -> Receive {
        Receive {
            rcv_nxt: 0,
            edge: 0,
            read: 1,
            fin_at: u64::MAX,
            beyond: None,
            acking: Acking::new(config),
            grown: GROWTH_START,
            room: None,
            echo: false,
            ect_seen: false,
            standing: None,
        }
    }

    /// The peer's SYN arrived.
    ///
    /// `first` is the payload of a full segment as far as it is known when the first window is chosen, `full` that of a segment of
    /// the connection.
    pub(in crate::tcp) fn on_syn(&mut self, config: &Config, first: u32, full: u32, scale: u8) {
        self.standing = None;
        self.rcv_nxt = 1;
        self.edge = 1 + config.receive_buffer.get().min(65_535); // a SYN's window is not scaled (RFC 7323 2.2)
        if let Some(memory) = config.receive_memory {
            let room = Room::new(memory, full, first, scale);
            self.edge = 1 + room.first_window();
            self.room = Some(Box::new(room));
        }
        self.acking.expect(config, full, self.edge - 1);
    }

    /// The connection is established.
    pub(in crate::tcp) fn start(&mut self, now: Instant) {
        self.acking.start(now);
        if let Some(room) = &mut self.room {
            room.start(now, self.read);
        }
    }

    /// The window field of a SYN-ACK.
    pub(in crate::tcp) fn first_window(&self, config: &Config) -> u64 {
        let buffer = config.receive_buffer.get();
        let window = self.room.as_ref().map_or(buffer, |room| room.first_window());
        window.min(65_535)
    }

    /// As if the handshake were over, with a buffer that stays as it is.
    pub(in crate::tcp) fn establish(&mut self, config: &Config, scale: u8) {
        self.standing = None;
        self.rcv_nxt = 1;
        self.edge = 1 + config.receive_buffer.get().min(65_535 << scale);
    }

    /// Bytes that can be read.
    #[inline(always)]
    pub(in crate::tcp) fn readable(&self) -> u64 {
        self.rcv_nxt.min(self.fin_at).saturating_sub(self.read)
    }

    /// Offset up to which the application has read.
    pub(in crate::tcp) fn read_offset(&self) -> u64 {
        self.read
    }

    /// Stream offset up to which everything arrived.
    #[inline]
    pub(in crate::tcp) fn in_order(&self) -> u64 {
        self.rcv_nxt.min(self.fin_at).max(1) - 1
    }

    /// A further piece that the last segment filled; ask until `None`.
    pub(in crate::tcp) fn next_piece(&mut self) -> Option<Range<u64>> {
        let piece = self.beyond.as_mut()?.pieces.pop()?;
        Some(piece.start.min(self.fin_at)..piece.end.min(self.fin_at))
    }

    /// Takes everything that can be read. `PREDICTED`: no FIN is known. `PLAIN`: a segment [is plain](Receive::is_plain) that just
    /// came. `ANSWERED`: as in [`Receive::on_data`].
    #[inline(always)]
    pub(in crate::tcp) fn read_all<const PREDICTED: bool, const PLAIN: bool, const ANSWERED: bool>(
        &mut self,
    ) {
        if PREDICTED {
            self.read = self.rcv_nxt;
        } else {
            self.read += self.readable();
        }
        if !ANSWERED && let Some(room) = &mut self.room {
            let span = || span(self.beyond.as_deref(), self.rcv_nxt);
            room.on_read::<PLAIN>(self.read, self.rcv_nxt, span);
        }
    }

    /// A segment echoes the timestamp `echo`, which was sent `elapsed` milliseconds ago.
    #[inline(always)]
    pub(in crate::tcp) fn on_echo(&mut self, echo: u32, elapsed: impl FnOnce() -> u32, payload: u32) {
        if let Some(room) = &mut self.room {
            let all_read = self.read == self.rcv_nxt;
            room.on_echo(echo, elapsed, payload >= self.acking.full(), all_read);
        }
    }

    /// Schedules an acknowledgment after [`Receive::read_all`] if one is due.
    #[inline]
    pub(in crate::tcp) fn after_read(&mut self, config: &Config) {
        self.acking.on_read(config, true);
    }

    /// Takes up to `wanted` bytes; the flag says that a window update is worth a segment (RFC 9293 MUST-39).
    pub(in crate::tcp) fn read(&mut self, config: &Config, mss: u32, scale: u8, wanted: u64) -> (u64, bool) {
        let count = wanted.min(self.readable());
        self.standing = None;
        self.read += count;
        if count > 0 {
            let all = self.readable() == 0;
            self.acking.on_read(config, all);
        }
        if let Some(room) = &mut self.room {
            if count > 0 {
                let span = || span(self.beyond.as_deref(), self.rcv_nxt);
                room.on_read::<false>(self.read, self.rcv_nxt, span);
            }
            let left = self.edge.saturating_sub(self.rcv_nxt);
            let update = count > 0 && room.worth_update(left, self.acking.full());
            room.decided &= !update;
            return (count, update);
        }
        // Without scaling the field may hold less than the buffer.
        let largest = config.receive_buffer.get().min(65_535 << scale);
        let edge = self.wanted_edge(config).min(self.rcv_nxt + largest);
        let grown = edge.saturating_sub(self.edge);
        let shut = self.edge - self.rcv_nxt.min(self.edge);
        let step = u64::from(mss).min(largest / 2);
        // Inform the peer when it could be blocked: the window offered is below half the buffer and can double.
        (count, grown >= step && shut < largest / 2 && grown >= shut)
    }

    /// A segment with data already received: say so (RFC 2883). `more`: it brings something new, too, and then Linux is in no hurry
    /// (`tcp_data_queue`).
    pub(in crate::tcp) fn note_old(&mut self, config: &Config, seq: i64, len: u32, more: bool) -> u32 {
        let start = seq.max(1);
        let end = (seq + i64::from(len)).min(self.rcv_nxt as i64);
        if end <= start {
            return 0;
        }
        if config.dsack {
            self.beyond.get_or_insert_default().duplicate = Some((start as u64, end as u64));
        }
        if !more {
            let window = self.window_for_quick();
            self.acking.enter_quick(config, window, u8::MAX);
        }
        (end - start) as u32
    }

    /// Takes the payload and FIN of an acceptable segment that begins at offset `seq`, and decides on acknowledging.
    /// `PREDICTED`: it carries no FIN, and none is known. `NEXT` implies `PREDICTED`: the segment also [is next](Receive::is_next).
    /// `PLAIN` implies `NEXT`: the segment also [is plain](Receive::is_plain). `ANSWERED`:
    /// [it is answered at once](FastPath::answers), and if it is plain, [the window is as wide as before](Receive::is_as_wide). `sack`: both ends use SACK.
    #[inline(always)]
    pub(in crate::tcp) fn on_data<
        const PREDICTED: bool,
        const NEXT: bool,
        const PLAIN: bool,
        const ANSWERED: bool,
    >(
        &mut self,
        now: Instant,
        config: &Config,
        rtt: &Rtt,
        sack: bool,
        seq: i64,
        segment: &Segment,
    ) -> Taken {
        let payload = segment.payload;
        let fin = !PREDICTED && segment.flags.contains(Flags::FIN);
        let end = seq + i64::from(payload);
        let before = self.rcv_nxt;
        let limit = if NEXT {
            u64::MAX
        } else {
            self.limit::<PREDICTED>(seq, payload)
        };
        let compress = !ANSWERED && compresses(config, sack);
        let mut taken = if NEXT || (seq == before as i64 && self.beyond_is_empty() && end as u64 <= limit) {
            // The common case: in order, nothing beyond.
            self.rcv_nxt = end as u64;
            Taken {
                start: before,
                end: end as u64,
                advanced: NEXT || payload > 0,
                ..Taken::default()
            }
        } else {
            self.take_any::<ANSWERED>(config, compress, seq, payload, fin, limit)
        };
        if !PLAIN
            && !ANSWERED
            && let Some(room) = &mut self.room
        {
            if room.overflows() {
                self.acking.quick = 0;
                self.acking.now |= room.stretch(self.rcv_nxt > before || fin);
            }
            if NEXT || taken.end > taken.start {
                room.keep(taken.end.min(end as u64), payload, u32::from(segment.overhead));
            }
            if !NEXT {
                self.edge = self.edge.max(self.rcv_nxt);
            }
        }
        if PLAIN && ANSWERED {
            self.edge += u64::from(payload); // the acknowledgment offers as much as the one before
        } else if NEXT || !ANSWERED && self.room.is_some() || self.rcv_nxt != before {
            self.standing = None;
        }
        if !PREDICTED && (fin || self.fin_at != u64::MAX) {
            taken = self.meet_fin(fin && end as u64 <= limit, before, end, taken);
            self.acking.now |= fin && self.rcv_nxt < self.fin_at;
        }
        if NEXT || payload > 0 && taken.advanced {
            self.schedule::<PLAIN, ANSWERED>(now, config, rtt, segment);
            if ANSWERED {
                self.acking.now = true;
            } else if PREDICTED || !taken.fin {
                self.decide::<PLAIN>(config);
            }
        } else if payload > 0 {
            self.schedule_disorder::<ANSWERED>(config, sack, segment, taken.end > taken.start);
        }
        taken
    }

    /// Without receive memory: whether Linux's `rcv_ssthresh` still grows towards the buffer.
    #[inline(always)]
    pub(super) fn grows(&self, config: &Config) -> bool {
        matches!(config.delayed_ack, DelayedAck::Linux { .. })
            && u64::from(self.grown) < config.receive_buffer.get()
    }

    /// The peer's FIN is at the end of what came (`here`), or known from before.
    #[cold]
    fn meet_fin(&mut self, here: bool, before: u64, end: i64, mut taken: Taken) -> Taken {
        self.standing = None;
        if here && self.fin_at == u64::MAX && end >= before as i64 {
            self.fin_at = end as u64;
        }
        taken.start = taken.start.min(self.fin_at);
        taken.end = taken.end.min(self.fin_at);
        if self.rcv_nxt == self.fin_at {
            self.rcv_nxt += 1;
        }
        if before <= self.fin_at && self.rcv_nxt > self.fin_at {
            self.edge = self.edge.max(self.rcv_nxt);
            self.acking.waits = true;
            self.beyond = None; // nothing lies beyond a FIN, and Linux no longer reports duplicates (`tcp_fin`)
            taken.fin = true;
        }
        taken
    }

    #[inline]
    pub(in crate::tcp) fn beyond_is_empty(&self) -> bool {
        self.beyond.as_ref().is_none_or(|beyond| beyond.ranges.is_empty())
    }

    /// When to acknowledge data that just arrived in order. `PLAIN`: it [is plain](Receive::is_plain). `ANSWERED`: as in
    /// [`Receive::on_data`].
    #[inline(always)]
    fn schedule<const PLAIN: bool, const ANSWERED: bool>(
        &mut self,
        now: Instant,
        config: &Config,
        rtt: &Rtt,
        segment: &Segment,
    ) {
        let grows = !PLAIN && segment.payload >= 128 && self.grows(config);
        let left = self.window();
        let acking = &mut self.acking;
        acking.unacked = acking.unacked.saturating_add(segment.payload);
        if !PLAIN
            && let Some(room) = &mut self.room
            && segment.payload > acking.full()
        {
            room.measure(segment.payload, u32::from(segment.overhead));
        }
        acking.measure::<PLAIN>(config, segment);
        if ANSWERED {
            return acking.start(now);
        }
        let window = || self.room.as_ref().map_or(left, |room| room.offered());
        acking.on_data(now, config, window, || rtt.rto(&config.rto));
        // `tcp_grow_window` asks for a quick ACK with each of its steps; segments below 128 bytes do not count.
        if let Some(room) = &mut self.room {
            room.on_data(now, self.rcv_nxt);
            if !PLAIN {
                let grew = room.grow(segment.payload, u32::from(segment.overhead), acking.full());
                acking.quick |= u8::from(grew); // as in Linux, which sets bit 0 here: 16 quick acknowledgments become 17
            }
        } else if grows {
            self.grown = self.grown.saturating_add(2 * acking.full());
            acking.quick = acking.quick.max(1);
        }
    }

    /// After [`schedule`](Receive::schedule): now or later.
    #[inline(always)]
    fn decide<const PLAIN: bool>(&mut self, config: &Config) {
        let full = self.acking.full();
        let mut keeps_up = true;
        if !PLAIN
            && let Some(room) = &mut self.room
            && self.acking.unacked > full
        {
            let tight;
            (keeps_up, tight) = room.keeps_up(full);
            if tight {
                self.acking.quick = 0;
            }
        }
        self.acking.decide(config, keeps_up);
    }

    /// Data arrived that leaves or has left a hole, or came again: RFC 5681 4.2. `new`: some of it did not come before. `ANSWERED`:
    /// as in [`Receive::on_data`].
    #[inline(always)]
    fn schedule_disorder<const ANSWERED: bool>(
        &mut self,
        config: &Config,
        sack: bool,
        segment: &Segment,
        new: bool,
    ) {
        let compress = !ANSWERED && new && compresses(config, sack);
        self.acking.now |= !compress;
        if compress {
            self.acking.waits = true;
        } else {
            self.acking.unacked = self.acking.unacked.saturating_add(segment.payload);
        }
        if !ANSWERED && let Some(room) = &mut self.room {
            if new {
                if segment.payload > self.acking.full() {
                    room.measure(segment.payload, u32::from(segment.overhead));
                }
                self.acking.measure::<false>(config, segment);
                if sack {
                    let full = self.acking.full();
                    let grew = room.grow_beyond(segment.payload, u32::from(segment.overhead), full);
                    self.acking.quick |= u8::from(grew);
                }
                room.on_disorder(span(self.beyond.as_deref(), self.rcv_nxt));
            }
        } else if ANSWERED || !matches!(config.delayed_ack, DelayedAck::Linux { .. }) {
            self.acking.measure::<false>(config, segment);
        }
        if compress {
            self.decide::<false>(config);
            self.acking.now = self.acking.now
                || !(self.beyond.as_mut()).is_some_and(|beyond| beyond.held_back.hold(self.rcv_nxt));
        }
    }

    /// Whether an acknowledgment of disorder is held back.
    #[inline(always)]
    pub(in crate::tcp) fn holds_back(&self) -> bool {
        self.beyond
            .as_deref()
            .is_some_and(|beyond| beyond.held_back.waits())
    }

    /// When an acknowledgment is due that is held back, if there is one that no timer waits for.
    #[inline]
    pub(in crate::tcp) fn held_back_until(&self, now: Instant, srtt: Option<Duration>) -> Option<Instant> {
        let beyond = self.beyond.as_deref()?;
        if !beyond.held_back.waits() {
            return None;
        }
        let own = self.room.as_ref().map_or(srtt, |room| room.rtt());
        let rtt = own.map_or(Duration::ZERO, |own| srtt.unwrap_or(own).min(own));
        Some(now + HeldBack::delay(rtt))
    }

    /// The timer of acknowledgments is due.
    pub(in crate::tcp) fn on_ack_timer(&mut self, config: &Config, rto: Duration) {
        if self.holds_back() {
            self.acking.now = true;
        } else {
            self.acking.on_timer(config, rto);
        }
    }

    /// The peer's FIN came in order. `answered` says that nothing more will be sent.
    pub(in crate::tcp) fn on_fin(&mut self, config: &Config, answered: bool) {
        if matches!(config.delayed_ack, DelayedAck::Linux { .. }) && !answered {
            self.acking.enter_pingpong(); // `tcp_fin`
            self.acking.unacked = self.acking.unacked.saturating_add(1);
            self.decide::<false>(config);
        } else {
            self.acking.now = true;
        }
    }

    /// `TCP_QUICKACK`.
    pub(in crate::tcp) fn set_quick(&mut self, config: &Config, on: bool) {
        let all_read = self.readable() == 0;
        self.acking.set_quick(config, on, all_read);
    }

    /// Congestion marks and the sender's answer to them.
    #[inline]
    pub(in crate::tcp) fn on_ecn(&mut self, config: &Config, segment: &Segment) {
        if segment.payload > 0 {
            if segment.ecn() != Ecn::NotEct {
                self.ect_seen = true;
            } else if self.ect_seen {
                // It was probably sent again, so the sender waits for the answer (Linux `tcp_data_ecn_check`).
                let window = self.window_for_quick();
                self.acking.enter_quick(config, window, 2);
            }
        }
        match config.ecn_echo {
            EcnEcho::Rfc3168 => {
                if segment.flags.contains(Flags::CWR) {
                    self.echo = false;
                    self.acking.now |=
                        segment.payload > 0 && matches!(config.delayed_ack, DelayedAck::Linux { .. });
                }
                if segment.ecn() == Ecn::Ce && !self.echo {
                    self.echo = true; // RFC 3168 6.1.3
                    let window = self.window_for_quick();
                    self.acking.enter_quick(config, window, 2);
                }
            }
            EcnEcho::Rfc8257 => {
                let marked = segment.ecn() == Ecn::Ce;
                if segment.payload > 0 && marked != self.echo {
                    self.echo = marked;
                    self.acking.now = true; // RFC 8257 3.2
                }
            }
        }
    }

    /// Bytes received and not read, or beyond a hole.
    pub(in crate::tcp) fn held(&self) -> u64 {
        let beyond = self.beyond.as_ref();
        let beyond: u64 = beyond.map_or(0, |b| b.ranges.iter().map(|range| range.end - range.start).sum());
        self.readable() + beyond
    }

    /// Bytes of its own structures beyond the connection's.
    pub(in crate::tcp) fn overhead(&self) -> usize {
        let room = self.room.as_ref().map_or(0, |room| room.size());
        let beyond = self.beyond.as_ref().map_or(0, |beyond| {
            size_of::<Beyond>()
                + (beyond.ranges.capacity() + beyond.pieces.capacity()) * size_of::<Range<u64>>()
        });
        room + beyond
    }

    /// Counted work of the reassembly queue.
    pub(in crate::tcp) fn work(&self) -> u64 {
        self.beyond.as_ref().map_or(0, |beyond| beyond.work.count())
    }

    /// The invariants of this half.
    pub(in crate::tcp) fn check(&self) {
        let edge = self.edge.max(self.fin_at.saturating_add(1).min(self.rcv_nxt)); // a FIN needs no room
        assert!(
            self.read <= self.rcv_nxt.max(1) && self.rcv_nxt <= edge.max(1),
            "read {}, RCV.NXT {}, right edge {}",
            self.read,
            self.rcv_nxt,
            self.edge
        );
        let Some(beyond) = &self.beyond else { return };
        let mut at = self.rcv_nxt;
        for range in &beyond.ranges {
            assert!(
                at < range.start
                    && range.start < range.end
                    && (range.end <= self.edge || self.room.is_some()),
                "{range:?} after {at}, right edge {}",
                self.edge
            );
            at = range.end;
        }
    }
}

/// Whether acknowledgments of disorder may be held back.
pub(super) const fn compresses(config: &Config, sack: bool) -> bool {
    sack && config.sack_compression && matches!(config.delayed_ack, DelayedAck::Linux { .. })
}

/// Bytes from what came in order to the end of what came beyond it.
fn span(beyond: Option<&Beyond>, rcv_nxt: u64) -> u64 {
    let last = beyond.and_then(|beyond| beyond.ranges.back());
    last.map_or(0, |range| range.end.saturating_sub(rcv_nxt))
}

/// Where Linux's `rcv_ssthresh` starts (`tcp_select_initial_window`: at most 65,535).
const GROWTH_START: u32 = 65_535;
