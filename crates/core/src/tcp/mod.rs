//! The TCP endpoint: [`Connection`], and [`listener`], which answers segments that belong to no connection.
//!
//! Feed segments, writes and time; drain segments and events; sleep until `poll_timeout`. [`Connection`] routes each call to
//! one of these folders:
//!
//! | folder | what is decided there |
//! |---|---|
//! | `config` | every switch, the named profiles and the source of each value |
//! | `open` | how a connection begins and ends: listener, handshake, Fast Open, closing, TIME-WAIT, giving up |
//! | `receive` | what arrives: arrival procedure, reassembly, receive buffer, window offered, when to acknowledge |
//! | `ack` | what an acknowledgment means: delivery, loss detection, recovery, undo, retransmission timer |
//! | `send` | what leaves, and when: segments, probes, Nagle, offload, pacing, spreading, thin streams |
//! | `window` | how much may be in flight: congestion controller, validation, delivery rates, memory of paths |
//! | `accecn` | Accurate ECN: its negotiation, which marks a receiver counts and how it reports them to the sender |
//! | `path` | what the path reports: ICMP errors, path MTU |
//! | `state` | what all of these share: negotiated values, timers, counters, storage of idle connections |
//!
//! A segment enters at `on_segment` (`receive/segment_in.rs`); its acknowledgment goes through `on_ack_field` and `take_ack` there to
//! `Sender::on_ack` (`ack/pipeline.rs`). What leaves is chosen by `next_segment` here: SYN, RST and keep-alive probes, else data, which
//! `Sender::next` chooses (`send/half.rs`), else a bare acknowledgment. Timers fire at `on_timeout`, those of the sender in
//! `Sender::on_timer` (`ack/timeout.rs`); a write enters at `write` here, which hands it to the sender (`send/feed.rs`).
//!
//! `fast.rs` recognises the usual case of arrival and of sending. Functions with the const parameter `QUIET` (sending, acknowledgments)
//! or `PREDICTED` (arrival) are compiled once for each value, and `true` is the version for the usual case. `fast.rs` explains the other
//! parameters of this kind, `ack/state.rs` the values of `AGENT`.
//!
//! **Source.** RFC 9293 with RFC 5961 (challenge ACKs), RFC 7323 (window scale, timestamps, PAWS); each file names its own sources.
//! **Deviations.** Source routes (RFC 9293 MUST-51 to MUST-53) are not offered. Other deviations stand in the file that has them.

mod accecn;
mod ack;
mod config;
mod fast;
mod open;
mod path;
mod receive;
mod send;
mod state;
#[cfg(test)]
mod tests;
mod window;

pub use config::{
    Config, DelayedAck, DsackRules, EarlyRetransmit, EcnCodepoint, EcnEcho, EcnFeedback, EcnOption,
    IcmpAbort, InitialSpreading, InitialWindow, IpVersion, KeepAlive, MtuProbing, OnlyWith, Pacing,
    PathConfig, Profile, Prr, RetryLimits, RtoConfig, RtoFloor, RttEstimator, RttSamples, Switch, SwitchForm,
    TailLossProbe, TimeoutRules, TimerGrid, UrgentPointer, WindowGrowth, WindowUnit, WindowValidation,
    ZeroWindowProbe,
};
pub use open::fast_open::{
    Cookie, FastOpenAnswer, FastOpenCache, FastOpenKey, FastOpenOutcome, FastOpenRequest, Kind as CookieKind,
};
pub use open::listener;
pub use open::time_wait::TimeWaitState;
pub use path::icmp::{Icmp, IcmpKind};
pub use receive::rcvbuf::ReceiveMemory;
pub use send::rdb::{HiddenLoss, InFlight, Rdb, ThinRule};
pub use state::detail::{Detail, EcnCounts};
pub use state::error::NetworkError;
pub use state::error::{ConnectionError, Event, EventKinds};
pub use state::hibernation::{Models, StoredConnection};
pub use state::stats::{Counter, Stats};
pub use state::timers::Timer;
pub use state::types::CaState;
pub use state::types::{Accepted, EstablishedState, Half, Info, Setting, State, Transmit, WriteFlags};
pub use window::path_memory::{PathMemory, PathSample};
pub use window::standalone::{NewCwv, NewCwvView};

use crate::packet::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use accecn::AccEcn;
use ack::rto::Rtt;
use alloc::boxed::Box;
use alloc::sync::Arc;
use fast::FastPath;
use receive::half::Receive;
use send::half::Sender;
use send::peer_window::PeerWindow;
use serde::{Deserialize, Serialize};
use state::shared::Shared;
use window::path_memory::PathNotes;

/// One end of a TCP connection, sans-IO.
///
/// The driver feeds [`on_segment`](Connection::on_segment), [`on_timeout`](Connection::on_timeout) and the calls of the
/// application, then drains [`poll_transmit`](Connection::poll_transmit) and
/// [`poll_event`](Connection::poll_event) until both return `None`, then sleeps until
/// [`poll_timeout`](Connection::poll_timeout). The connection counts the bytes of the stream and never stores them.
#[derive(Serialize, Deserialize)]
pub struct Connection {
    shared: Shared,
    receive: Receive,
    /// The sending half; `None` until there is something to send.
    sender: Option<Box<Sender>>,
    /// Bytes the application wrote.
    written: u64,
    syn_sent_at: Instant,
    syn_attempts: u8,
    keep_alive_probes: u8,
    state: State,
    /// A segment without data that is sent before any other; see [`Control`].
    control: Control,
    close_queued: bool,
    read_shut: bool,
    auto_read: bool,
    passive: bool,
    write_blocked: bool,
    keep_alive_due: bool,
    keep_alive: bool,
}

/// A segment outside the data stream that is waiting to be sent, before any data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Control {
    None,
    Syn,
    /// The acknowledgment of a SYN-ACK.
    Ack,
    Reset,
    /// A reset that answers a stray segment; its sequence numbers are kept in `Cold`.
    Answer,
}

impl Connection {
    /// An active open: the first drain sends the SYN.
    ///
    /// `iss` is the initial sequence number; its generator is the driver's (RFC 9293 3.4.1).
    pub fn connect(now: Instant, config: &Arc<Config>, iss: SeqNumber) -> Connection {
        let mut connection = Connection::new(config, iss);
        connection.state = State::SynSent;
        connection.send_syn(now);
        connection
    }

    /// A passive open: answers `syn`, which the [`listener`] found acceptable.
    pub fn accept(now: Instant, config: &Arc<Config>, iss: SeqNumber, syn: &Segment) -> Connection {
        let mut connection = Connection::new(config, iss);
        connection.passive = true;
        connection.on_syn(now, syn);
        connection.state = State::SynReceived;
        connection.send_syn(now);
        connection
    }

    /// A connection whose handshake is over, for tests and hand-worked cases. Both ends use every option their
    /// configuration offers, and the receive buffer is [`Config::receive_buffer`] whatever [`Config::receive_memory`] says.
    pub fn established(now: Instant, config: &Arc<Config>, state: EstablishedState) -> Connection {
        let mut connection = Connection::new(config, state.iss);
        connection.state = State::Established;
        let shared = &mut connection.shared;
        shared.irs = state.irs;
        shared.last_ack_sent = 1;
        shared.set_ts_recent(now, Shared::ts_offset(state.irs)); // what its SYN would have carried
        shared.mss = state.mss;
        shared.sack = config.sack;
        shared.timestamps = config.timestamps;
        shared.ecn = config.ecn.is_on();
        shared.accecn = (config.ecn == EcnFeedback::Accurate).then(|| Box::new(AccEcn::established()));
        shared.snd_scale = config.window_scale.unwrap_or(0);
        shared.rcv_scale = shared.snd_scale;
        shared.peer = PeerWindow::of_syn(state.peer_window.get(), false);
        shared.rtt = Rtt::with_state(&config.rto, state.srtt, state.rttvar);
        connection.receive.establish(config, shared.rcv_scale);
        let mut sender = Box::new(Sender::new(
            now,
            &connection.shared,
            connection.shared.controller(connection.passive),
        ));
        sender.cc.set_window(now, state.cwnd, state.ssthresh);
        connection.sender = Some(sender);
        connection.start_keep_alive(now);
        connection.checked(false);
        connection
    }

    fn new(config: &Arc<Config>, iss: SeqNumber) -> Connection {
        Connection {
            shared: Shared::new(config, iss),
            receive: Receive::new(config),
            sender: None,
            written: 0,
            syn_sent_at: Instant::ZERO,
            syn_attempts: 0,
            keep_alive_probes: 0,
            state: State::Closed,
            control: Control::None,
            close_queued: false,
            read_shut: false,
            auto_read: false,
            passive: false,
            write_blocked: false,
            keep_alive_due: false,
            keep_alive: config.keep_alive.is_some(),
        }
    }

    /// A timer expired; call at or after `poll_timeout`.
    pub fn on_timeout(&mut self, now: Instant) {
        self.shared.fast = FastPath::NONE;
        if let Some(sender) = &mut self.sender {
            sender.full_at = Instant::FAR_FUTURE; // what the timer is for may leave
        }
        self.shared.timers.fire(true);
        while let Some(kind) = self.shared.timers.take_due(now) {
            if kind == Timer::Syn {
                self.on_syn_timeout(now);
            } else if let Some(sender) = &mut self.sender
                && let Err(error) = sender.on_timer(now, &mut self.shared, self.state, kind)
            {
                self.fail(error);
            }
        }
        if self.shared.timers.delayed_ack <= now {
            self.shared.timers.delayed_ack = Instant::FAR_FUTURE;
            let rto = self.shared.rtt.rto(&self.shared.config.rto);
            self.receive.on_ack_timer(&self.shared.config, rto);
        }
        if self.shared.timers.pace <= now {
            self.shared.timers.pace = Instant::FAR_FUTURE; // the drain does the rest
        }
        if self.shared.timers.slow <= now {
            self.shared.timers.slow = Instant::FAR_FUTURE;
            match self.state {
                State::TimeWait => {
                    self.enter_closed();
                    self.shared.raise(Event::Closed);
                }
                State::Closed => {}
                State::FinWait2 if self.shared.orphan => {
                    self.enter_closed();
                    self.shared.raise(Event::Closed);
                }
                State::SynSent
                | State::SynReceived
                | State::Established
                | State::FinWait1
                | State::FinWait2
                | State::CloseWait
                | State::Closing
                | State::LastAck => self.on_keep_alive(now),
            }
        }
        self.shared.timers.fire(false);
        self.checked(false);
    }

    /// The next segment to send now; call it until it returns `None`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let mut segment = Segment::default();
        let (start, end) = self.poll_segment(now, &mut segment)?;
        Some(Transmit { segment, start, end })
    }

    /// Whether [`Connection::poll_segment`] surely has nothing to send now; false where finding out takes that call. `RECEIVES`:
    /// the connection [only receives](Connection::only_receives).
    #[inline(always)]
    pub fn is_drained<const RECEIVES: bool>(&mut self, now: Instant) -> bool {
        if !self.shared.fast.silent() || self.receive.acking.now {
            return false;
        }
        if !RECEIVES && let Some(sender) = &mut self.sender {
            if sender.full_at != now {
                return false;
            }
            if sender.shut {
                sender.end_drain(now, &self.shared);
            }
        }
        self.checked(true);
        true
    }

    /// As [`Connection::poll_transmit`], but writes the headers into `segment` and returns the stream offsets that it carries.
    #[inline(always)]
    pub fn poll_segment(&mut self, now: Instant, segment: &mut Segment) -> Option<(u64, u64)> {
        self.poll_segment_as::<false>(now, segment)
    }

    /// [`Connection::poll_segment`]. `RECEIVES`: the connection [only receives](Connection::only_receives).
    #[inline(always)]
    pub fn poll_segment_as<const RECEIVES: bool>(
        &mut self,
        now: Instant,
        segment: &mut Segment,
    ) -> Option<(u64, u64)> {
        let range = if self.shared.fast.sends() {
            self.next_segment::<true, RECEIVES>(now, segment)
        } else {
            self.unusual_segment(now, segment)
        };
        self.checked(range.is_none());
        range
    }

    #[inline(never)]
    fn unusual_segment(&mut self, now: Instant, segment: &mut Segment) -> Option<(u64, u64)> {
        self.settle();
        let range = self.next_segment::<false, false>(now, segment);
        let sender = self.sender.as_ref();
        // During loss recovery no segment is a usual one, so the fast path is not worked out anew.
        if range.is_some() && sender.is_none_or(|sender| sender.recovery.state() == CaState::Open) {
            self.shared.fast = self.fast_path();
        }
        range
    }

    /// The next segment: control, data, or a bare acknowledgment. `QUIET`: [`FastPath::sends`] holds. `RECEIVES`: this end
    /// [only receives](Connection::only_receives).
    #[inline(always)]
    fn next_segment<const QUIET: bool, const RECEIVES: bool>(
        &mut self,
        now: Instant,
        segment: &mut Segment,
    ) -> Option<(u64, u64)> {
        if !QUIET {
            if self.control != Control::None || self.keep_alive_due {
                return Some(self.control_segment(now, segment));
            }
            if matches!(self.state, State::Closed | State::SynSent | State::SynReceived) {
                return self.transmit_early(now, segment);
            }
        }
        if !RECEIVES && let Some(sender) = &mut self.sender {
            if QUIET && sender.may_send_full(&self.shared) {
                if let Some(outgoing) = sender.next::<true, true>(now, &mut self.shared) {
                    return Some(self.data_segment::<true, true>(now, outgoing, segment));
                }
            } else if QUIET {
                if let Some(range) = self.short_segment(now, segment) {
                    return Some(range);
                }
            } else if self.state != State::TimeWait
                && let Some(outgoing) = sender.next::<false, false>(now, &mut self.shared)
            {
                return Some(self.data_segment::<false, false>(now, outgoing, segment));
            }
        }
        self.pending_ack::<QUIET, RECEIVES>(now, segment)
    }

    /// The next data segment in the usual case where it may be shorter than a full one, or is the last that waits.
    #[inline(never)]
    fn short_segment(&mut self, now: Instant, segment: &mut Segment) -> Option<(u64, u64)> {
        self.settle();
        let outgoing = self.sender.as_mut()?.next::<true, false>(now, &mut self.shared)?;
        Some(self.data_segment::<true, false>(now, outgoing, segment))
    }

    /// The next event; call it until it returns `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.shared.events == 0 {
            return None;
        }
        let bit = self.shared.events.trailing_zeros();
        self.shared.events &= self.shared.events - 1;
        let failure = self.shared.failure.unwrap_or(ConnectionError::Aborted);
        Some(Event::of_bit(bit, failure))
    }

    /// Drops the events of these kinds: for a driver that does nothing about them.
    #[inline(always)]
    pub fn discard(&mut self, kinds: EventKinds) {
        if self.shared.events != 0 {
            self.shared.events &= !kinds.0;
        }
    }

    /// Stream offsets of a further piece of the last segment that was taken, after the one `on_segment` returned. A driver that
    /// stores bytes calls this until it returns `None`.
    pub fn poll_accepted(&mut self) -> Option<core::ops::Range<u64>> {
        let piece = self.receive.next_piece()?;
        Some(piece.start - 1..piece.end - 1)
    }

    /// The deadline at or after which `on_timeout` is to be called; `None`: no timer runs.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.shared.timers.next()
    }

    /// Which timer holds the retransmission slot, for observers.
    pub fn timer(&self) -> Option<Timer> {
        self.shared.timers.kind()
    }

    /// Writes up to `wanted` bytes; returns how many were taken (bounded by the send buffer). Of no bytes: the cork is taken out, if
    /// `flags` says so.
    #[inline]
    pub fn write(&mut self, now: Instant, wanted: Bytes, flags: WriteFlags) -> Bytes {
        let established = self.state == State::Established;
        if self.close_queued || !(established || self.can_write()) {
            return Bytes::ZERO;
        }
        let held = self.written - self.acked();
        let room = self.shared.config.send_buffer.get().saturating_sub(held);
        let taken = wanted.get().min(room);
        self.write_blocked = taken < wanted.get();
        self.written += taken;
        if taken > 0 {
            if self.shared.cold.is_some() {
                self.refresh_mtu(now);
            }
            if let Some(sender) = &mut self.sender
                && sender.tempo.is_some()
            {
                sender.note_app_limited(&self.shared);
            }
            match &mut self.sender {
                Some(sender) if established => sender.on_write(1 + self.written),
                Some(_) | None => self.feed_sender(now),
            }
            if let Some(thin) = self.sender.as_mut().and_then(|sender| sender.thin.as_mut()) {
                thin.on_write(1 + self.written);
            }
            if let Some(sender) = &mut self.sender {
                sender.hold_back(flags.more, flags.corked);
                if flags.more {
                    self.shared.fast = FastPath::NONE; // the next acknowledgment sends what is held back
                }
            }
        } else if let Some(sender) = self.sender.as_mut().filter(|_| !flags.corked) {
            sender.uncork();
        }
        self.checked(false);
        Bytes(taken)
    }

    /// Reads up to `wanted` in-order bytes, which may open the window offered to the peer.
    pub fn read(&mut self, _now: Instant, wanted: Bytes) -> Bytes {
        let (taken, update) = self.receive.read(
            &self.shared.config,
            self.shared.mss,
            self.shared.rcv_scale,
            wanted.get(),
        );
        if update && matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            self.receive.acking.now = true;
        }
        Bytes(taken)
    }

    /// Changes a setting.
    pub fn set(&mut self, now: Instant, setting: Setting) {
        self.shared.fast = FastPath::NONE;
        match setting {
            Setting::Nagle(on) => {
                self.shared.nagle = on;
                if let Some(sender) = self.sender.as_mut().filter(|_| !on) {
                    sender.uncork();
                }
            }
            Setting::KeepAlive(on) => {
                self.keep_alive = on;
                if self.state != State::TimeWait {
                    self.shared.timers.slow = Instant::FAR_FUTURE;
                    self.start_keep_alive(now);
                }
            }
            Setting::AutoRead(on) => self.auto_read = on,
            Setting::Path(given) => {
                self.shared.path = Some(Box::new(PathNotes {
                    began: now,
                    given,
                    found: None,
                }));
                if let Some(sender) = &mut self.sender {
                    sender.begin_spreading(now, &self.shared);
                }
            }
            Setting::ClockPhase(phase) => {
                self.shared.timers.set_phase(phase);
                if self.shared.timers.kind() == Some(Timer::Syn) {
                    let at = self.syn_sent_at + self.shared.rtt.rto(&self.shared.config.rto);
                    self.shared.arm(now, Timer::Syn, at);
                }
            }
            Setting::NoteLatencies(on) => self.shared.latencies = on,
            Setting::HeaderPrediction(on) => self.shared.predict = on,
            // As in Linux, which reads this setting whenever it sends.
            Setting::EcnOption(when) => Arc::make_mut(&mut self.shared.config).ecn_option = when,
            Setting::QuickAck(on) => self.receive.set_quick(&self.shared.config, on),
            Setting::KeepAliveValues(_) => {
                self.set_cold(setting);
                self.start_keep_alive(now);
            }
            Setting::UserTimeout(_)
            | Setting::SynRetries(_)
            | Setting::MaxSegment(_)
            | Setting::Tos(_)
            | Setting::Ttl(_)
            | Setting::FinWait2(_) => self.set_cold(setting),
        }
    }

    /// After [`Event::PathFound`], once: when [`Setting::Path`] was applied, and what the connection has measured since. For
    /// [`PathMemory::learn`].
    pub fn take_path(&mut self) -> Option<(Instant, PathSample)> {
        let path = self.shared.path.as_mut()?;
        let found = (path.began, path.found.take()?);
        self.shared.path = None;
        Some(found)
    }

    /// Counters.
    #[inline]
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// For each acknowledged segment the time of its first transmission, and how long its acknowledgment took. Empty without
    /// [`Setting::NoteLatencies`].
    pub fn ack_latencies(&self) -> &[(Instant, Duration)] {
        let thin = self.sender.as_ref().and_then(|sender| sender.thin.as_ref());
        thin.and_then(|thin| thin.latencies.as_deref())
            .unwrap_or_default()
    }

    /// The first transmission of each segment with data that is not acknowledged, in no order; after the end of the connection of those that never
    /// were. Empty without [`Setting::NoteLatencies`].
    pub fn unacknowledged(&self) -> impl Iterator<Item = Instant> {
        self.sender.iter().flat_map(|sender| sender.unacknowledged())
    }

    /// Connection state.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Stream offset up to which everything written was acknowledged: the driver may free it.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.sender
            .as_ref()
            .map_or(0, |sender| (sender.una - 1).min(self.written))
    }

    /// Stream offset up to which everything was received in order.
    #[inline]
    pub fn received(&self) -> u64 {
        self.receive.in_order()
    }

    /// Bytes that can be read now.
    pub fn readable(&self) -> Bytes {
        Bytes(self.receive.readable())
    }

    /// Stream offset of the first byte that a segment of the peer carries; negative if the segment begins before the stream.
    /// Together with the range that [`on_segment`](Connection::on_segment) returned it says which bytes of the payload to keep.
    pub fn payload_offset(&self, segment: &Segment) -> i64 {
        let syn = u32::from(segment.flags.contains(Flags::SYN));
        (segment.seq + syn).to_offset(self.shared.irs + 1, self.received())
    }

    /// The configuration.
    pub fn config(&self) -> &Arc<Config> {
        &self.shared.config
    }

    fn can_write(&self) -> bool {
        matches!(
            self.state,
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
        )
    }

    /// Passes what was written to the sending half; makes it when the handshake is over.
    fn feed_sender(&mut self, now: Instant) {
        if matches!(self.state, State::Closed | State::SynSent) {
            return;
        }
        if self.state == State::SynReceived && !self.is_fast_open_child() {
            return;
        }
        if self.sender.is_none() {
            self.shared.fast = FastPath::NONE;
            if self.written == 0 && !self.close_queued {
                return;
            }
            let cc = self.shared.controller(self.passive);
            self.sender = Some(Box::new(Sender::new(now, &self.shared, cc)));
        }
        if let Some(sender) = &mut self.sender {
            sender.feed(&self.shared, 1 + self.written, self.close_queued);
        }
    }
}

/// Flags that make a segment of a synchronised connection unusual: without them neither RST nor SYN is looked for.
const UNUSUAL: Flags = Flags(Flags::SYN.0 | Flags::RST.0 | Flags::URG.0);
