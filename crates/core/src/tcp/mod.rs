//! The TCP endpoint: [`Connection`], and what answers when there is none ([`listener`]).
//!
//! Feed segments, writes and time; drain segments and events; sleep until `poll_timeout`. The connection routes;
//! the work is in `handshake` (SYN states), `receive` (reassembly, acknowledging), `send` (what leaves when),
//! `recovery` (what an acknowledgment means), `scoreboard`, `rack`, `prr`, `rto`, `timers`. [`Config`] holds every
//! switch, [`profile`] the named configurations and the table of their sources.
//!
//! **Source.** RFC 9293 with RFC 5961 (challenge ACKs), RFC 7323 (window scale, timestamps, PAWS).
//! **Deviations.** Urgent data is delivered as ordinary data. No path MTU discovery: the MTU is configured.

mod config;
mod error;
mod handshake;
pub mod listener;
pub mod profile;
mod prr;
mod rack;
mod receive;
mod recovery;
mod rto;
mod scoreboard;
mod segment;
mod send;
#[cfg(test)]
mod tests;
mod timers;

pub use config::{
    Config, DelayedAck, EarlyRetransmit, EcnEcho, Growth, InitialWindow, KeepAlive, Profile, Prr, RtoConfig,
    RtoFloor, RttSamples, TailLossProbe, WindowUnit, WindowValidation,
};
pub use error::{ConnectionError, Event};
pub use send::CaState;
pub use timers::Timer;

use crate::cc::{self, AnyController, CongestionController, Phase};
use crate::packet::{Flags, Segment};
use crate::parameter::Values;
use crate::rng::Rng;
use crate::seq::SeqNumber;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;
use receive::Receive;
use rto::Rtt;
use send::Sender;
use timers::Timers;

/// States of RFC 9293 3.3.2; LISTEN is [`listener`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No connection.
    Closed,
    /// Our SYN is out.
    SynSent,
    /// SYNs crossed or were answered, ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed; our FIN is not acknowledged.
    Closing,
    /// The peer closed first, then we; our FIN is not acknowledged.
    LastAck,
    /// Both FINs are acknowledged; old duplicates die out.
    TimeWait,
}

/// A segment to send, and which bytes of the stream it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Headers.
    pub segment: Segment,
    /// First stream offset of the payload.
    pub start: u64,
    /// One past its last.
    pub end: u64,
}

impl Transmit {
    /// Stream offsets of the payload.
    pub fn range(&self) -> Range<u64> {
        self.start..self.end
    }
}

/// What `on_segment` did with the payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Stream offsets that were taken and must be kept by the driver; empty if none.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Stream offset up to which everything has arrived in order.
    pub in_order: u64,
}

/// Which half of a connection to shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// No more writes: FIN after what was written.
    Write,
    /// No more reads: what arrives is taken and thrown away.
    Read,
}

/// How a write is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WriteFlags {
    /// More will follow at once: do not send a partial segment yet.
    pub more: bool,
}

/// What can be changed while a connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Nagle's algorithm on or off (RFC 9293 MUST-17).
    Nagle(bool),
    /// Keep-alive on or off (RFC 9293 MUST-24), with the parameters of `Config` or two hours.
    KeepAlive(bool),
    /// Every in-order byte counts as read at once, until turned off.
    AutoRead(bool),
}

/// A connection that exists already, for tests and hand-worked cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstablishedState {
    /// Smoothed RTT.
    pub srtt: Duration,
    /// RTT variation.
    pub rttvar: Duration,
    /// Congestion window, bytes.
    pub cwnd: Bytes,
    /// Slow-start threshold, bytes.
    pub ssthresh: Bytes,
    /// Maximum segment size in payload bytes.
    pub mss: u32,
    /// Our initial sequence number.
    pub iss: SeqNumber,
    /// The peer's.
    pub irs: SeqNumber,
    /// The peer's receive window, bytes.
    pub peer_window: Bytes,
}

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Payload bytes sent, retransmissions and probes included.
    pub bytes_sent: u64,
    /// Time from the first transmission of each segment to the ACK of its last byte, summed.
    pub ack_latency_sum: Duration,
    /// Segments in that sum.
    pub ack_latency_count: u64,
    /// Payload bytes received more than once.
    pub redundant_bytes: u64,
    /// Data segments sent, first transmissions and retransmissions.
    pub segments_sent: u64,
    /// Retransmitted segments, probes included.
    pub retransmits: u32,
    /// Expiries of the retransmission timer, SYNs included.
    pub timeouts: u32,
    /// Those shown to be spurious.
    pub spurious_timeouts: u32,
    /// Loss probes sent.
    pub probes: u32,
    /// Those shown to be redundant.
    pub spurious_probes: u32,
    /// Fast recoveries entered.
    pub recoveries: u32,
    /// Window reductions without retransmission: ECN, delay, a probe that repaired a loss.
    pub window_reductions: u32,
    /// ACKs with ECE received.
    pub ecn_echoes: u32,
    /// Segments received with CE.
    pub ce_received: u32,
    /// Reductions taken back.
    pub undos: u32,
    /// D-SACK blocks received.
    pub dsacks: u32,
    /// Challenge ACKs sent (RFC 5961).
    pub challenge_acks: u32,
}

/// A view of a connection, with the fields of Linux's `TCP_INFO` that a trace wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Connection state.
    pub state: State,
    /// Congestion state.
    pub ca_state: CaState,
    /// Phase of the controller.
    pub phase: Phase,
    /// Window in force, bytes.
    pub cwnd: Bytes,
    /// Slow-start threshold, bytes; `MAX` before the first congestion event.
    pub ssthresh: Bytes,
    /// Bytes in flight by the pipe estimate.
    pub pipe: Bytes,
    /// Bytes sent and not acknowledged.
    pub flight: Bytes,
    /// Bytes written and not sent.
    pub unsent: Bytes,
    /// The peer's window, bytes from SND.UNA.
    pub peer_window: Bytes,
    /// Bytes delivered, as far as known.
    pub delivered: Bytes,
    /// Stream bytes received in order.
    pub received: u64,
    /// Stream bytes acknowledged.
    pub acked: u64,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
    /// RTT variation.
    pub rttvar: Duration,
    /// Smallest RTT sample.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout, back-off included.
    pub rto: Duration,
    /// Maximum segment size in payload bytes.
    pub mss: u32,
    /// Counters.
    pub stats: Stats,
}

/// One end of a TCP connection, sans-IO.
///
/// The driver feeds [`on_segment`](Connection::on_segment), [`on_timeout`](Connection::on_timeout) and the calls of the
/// application, then drains [`poll_transmit`](Connection::poll_transmit) and
/// [`poll_event`](Connection::poll_event) until both say `None`, then sleeps until
/// [`poll_timeout`](Connection::poll_timeout). Bytes are counted, never held.
pub struct Connection {
    shared: Shared,
    receive: Receive,
    /// Made when there is something to send.
    sender: Option<Box<Sender>>,
    /// Bytes the application wrote.
    written: u64,
    /// Deadline of the second that the challenge budget is for.
    challenge_until: Instant,
    syn_sent_at: Instant,
    challenge_budget: u16,
    syn_attempts: u8,
    keep_alive_probes: u8,
    state: State,
    /// A SYN, SYN-ACK or RST to send.
    control: Control,
    close_queued: bool,
    read_shut: bool,
    auto_read: bool,
    passive: bool,
    write_blocked: bool,
    keep_alive_due: bool,
    keep_alive: bool,
}

/// A segment outside the data stream that is waiting to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
    None,
    Syn,
    Reset,
}

/// What both halves need.
struct Shared {
    config: Arc<Config>,
    rtt: Rtt,
    timers: Timers,
    stats: Stats,
    /// Right edge of the peer's window, as an offset of ours.
    snd_edge: u64,
    max_snd_wnd: u64,
    snd_wl1: u64,
    snd_wl2: u64,
    /// RCV.NXT of the last acknowledgment sent.
    last_ack_sent: u64,
    iss: SeqNumber,
    irs: SeqNumber,
    ts_recent: u32,
    ts_offset: u32,
    /// Payload bytes of a full segment: options are taken off.
    mss: u32,
    events: u16,
    snd_scale: u8,
    rcv_scale: u8,
    failure: Option<ConnectionError>,
    sack: bool,
    timestamps: bool,
    ecn: bool,
    nagle: bool,
    /// The SYN or SYN-ACK was retransmitted.
    syn_lost: u8,
    /// The peer's SYN carried a window scale.
    peer_scales: bool,
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
    /// configuration offers.
    pub fn established(now: Instant, config: &Arc<Config>, state: EstablishedState) -> Connection {
        let mut connection = Connection::new(config, state.iss);
        connection.state = State::Established;
        let shared = &mut connection.shared;
        shared.irs = state.irs;
        shared.last_ack_sent = 1;
        shared.mss = state.mss;
        shared.sack = config.sack;
        shared.timestamps = config.timestamps;
        shared.ecn = config.ecn;
        shared.snd_scale = config.window_scale.unwrap_or(0);
        shared.rcv_scale = shared.snd_scale;
        shared.snd_edge = 1 + state.peer_window.get();
        shared.max_snd_wnd = state.peer_window.get();
        shared.rtt = Rtt::with_state(&config.rto, state.srtt, state.rttvar);
        connection.receive.establish(config);
        let mut sender = Box::new(Sender::new(
            now,
            &connection.shared,
            connection.shared.controller(),
        ));
        sender.cc.set_window(now, state.cwnd, state.ssthresh);
        connection.sender = Some(sender);
        connection.start_keep_alive(now);
        connection
    }

    fn new(config: &Arc<Config>, iss: SeqNumber) -> Connection {
        Connection {
            shared: Shared {
                rtt: Rtt::new(&config.rto),
                timers: Timers::new(),
                stats: Stats::default(),
                snd_edge: 1,
                max_snd_wnd: 0,
                snd_wl1: 0,
                snd_wl2: 0,
                last_ack_sent: 0,
                iss,
                irs: SeqNumber(0),
                ts_recent: 0,
                ts_offset: iss.0.rotate_left(16) | 1,
                mss: config.mss(),
                events: 0,
                snd_scale: 0,
                rcv_scale: 0,
                failure: None,
                sack: false,
                timestamps: false,
                ecn: false,
                nagle: config.nagle,
                syn_lost: 0,
                peer_scales: false,
                config: Arc::clone(config),
            },
            receive: Receive::new(config),
            sender: None,
            written: 0,
            challenge_until: Instant::ZERO,
            syn_sent_at: Instant::ZERO,
            challenge_budget: 0,
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
        while let Some(kind) = self.shared.timers.take_due(now) {
            if kind == Timer::Syn {
                self.on_syn_timeout(now);
            } else if let Some(sender) = &mut self.sender
                && let Err(error) = sender.on_timer(now, &mut self.shared, kind)
            {
                self.fail(error);
            }
        }
        if self.shared.timers.delayed_ack <= now {
            self.shared.timers.delayed_ack = Instant::FAR_FUTURE;
            self.receive.ack_now = true;
        }
        if self.shared.timers.slow <= now {
            self.shared.timers.slow = Instant::FAR_FUTURE;
            match self.state {
                State::TimeWait => {
                    self.enter_closed();
                    self.shared.raise(Event::Closed);
                }
                State::Closed => {}
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
    }

    /// The next segment to send now; ask until `None`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.control != Control::None || self.keep_alive_due {
            return self.control_segment(now);
        }
        if matches!(self.state, State::Closed | State::SynSent | State::SynReceived) {
            return self.pending_ack(now);
        }
        if let Some(sender) = &mut self.sender
            && self.state != State::TimeWait
            && let Some(outgoing) = sender.next(now, &mut self.shared)
        {
            return Some(self.data_segment(now, outgoing));
        }
        self.pending_ack(now)
    }

    /// The next event; ask until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.shared.events == 0 {
            return None;
        }
        let bit = self.shared.events.trailing_zeros();
        self.shared.events &= self.shared.events - 1;
        Some(match bit {
            0 => Event::Established,
            1 => Event::Readable,
            2 => Event::Writable,
            3 => Event::PeerClosed,
            4 => Event::SendClosed,
            5 => Event::Trouble,
            6 => Event::Closed,
            _ => Event::Failed(self.shared.failure.unwrap_or(ConnectionError::Aborted)),
        })
    }

    /// When `on_timeout` wants to be called.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.shared.timers.next()
    }

    /// Which timer holds the retransmission slot, for observers.
    pub fn timer(&self) -> Option<Timer> {
        self.shared.timers.kind()
    }

    /// Writes up to `wanted` bytes; returns how many were taken (bounded by the send buffer).
    pub fn write(&mut self, now: Instant, wanted: Bytes, flags: WriteFlags) -> Bytes {
        if self.close_queued || !self.can_write() {
            return Bytes::ZERO;
        }
        let held = self.written - self.acked();
        let room = self.shared.config.send_buffer.get().saturating_sub(held);
        let taken = wanted.get().min(room);
        self.write_blocked = taken < wanted.get();
        self.written += taken;
        if taken > 0 {
            self.feed_sender(now);
            if let Some(sender) = &mut self.sender {
                sender.more = flags.more;
            }
        }
        Bytes(taken)
    }

    /// Reads up to `wanted` in-order bytes: the window may open.
    pub fn read(&mut self, _now: Instant, wanted: Bytes) -> Bytes {
        let (taken, update) = self
            .receive
            .read(&self.shared.config, self.shared.mss, wanted.get());
        if update && matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            self.receive.ack_now = true;
        }
        Bytes(taken)
    }

    /// Closes one half.
    pub fn shutdown(&mut self, now: Instant, half: Half) {
        match half {
            Half::Read => {
                self.read_shut = true;
                let _ = self.read(now, Bytes::MAX);
            }
            Half::Write => self.queue_fin(now),
        }
    }

    /// Closes: FIN after what was written. Unread data is thrown away.
    pub fn close(&mut self, now: Instant) {
        match self.state {
            State::SynSent => {
                self.enter_closed();
                self.shared.raise(Event::Closed);
            }
            State::Closed => {}
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => {
                self.read_shut = true;
                let _ = self.read(now, Bytes::MAX);
                self.queue_fin(now);
            }
        }
    }

    /// Aborts: RST if the peer knows the connection (RFC 9293 3.10.5).
    pub fn abort(&mut self, _now: Instant) {
        let tell = !matches!(self.state, State::Closed | State::SynSent | State::TimeWait);
        if self.state != State::Closed {
            self.fail(ConnectionError::Aborted);
            if tell {
                self.control = Control::Reset;
            }
        }
    }

    /// Changes a setting.
    pub fn set(&mut self, now: Instant, setting: Setting) {
        match setting {
            Setting::Nagle(on) => self.shared.nagle = on,
            Setting::KeepAlive(on) => {
                self.keep_alive = on;
                if self.state != State::TimeWait {
                    self.shared.timers.slow = Instant::FAR_FUTURE;
                    self.start_keep_alive(now);
                }
            }
            Setting::AutoRead(on) => self.auto_read = on,
        }
    }

    /// Everything an observer may want to know.
    pub fn info(&self, _now: Instant) -> Info {
        let shared = &self.shared;
        let sender = self.sender.as_deref();
        let una = sender.map_or(1, |sender| sender.una);
        Info {
            state: self.state,
            ca_state: sender.map_or(CaState::Open, |sender| sender.state),
            phase: sender.map_or(Phase::SlowStart, |sender| sender.cc.phase()),
            cwnd: Bytes(sender.map_or_else(|| shared.initial_window(), |sender| sender.window(shared))),
            ssthresh: sender.map_or(Bytes::MAX, |sender| sender.cc.ssthresh()),
            pipe: Bytes(sender.map_or(0, |sender| sender.board.pipe())),
            flight: Bytes(sender.map_or(0, |sender| sender.nxt - sender.una)),
            unsent: Bytes(sender.map_or(self.written, Sender::unsent)),
            peer_window: Bytes(shared.snd_edge.saturating_sub(una)),
            delivered: Bytes(sender.map_or(0, |sender| sender.delivered_total)),
            received: self.received(),
            acked: self.acked(),
            srtt: shared.rtt.srtt(),
            rttvar: shared.rtt.rttvar(),
            min_rtt: shared.rtt.min(),
            rto: shared.rtt.rto(&shared.config.rto),
            mss: shared.mss,
            stats: shared.stats,
        }
    }

    /// Counters.
    #[inline]
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
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

    /// Tells the sending half what was written; makes it when the handshake is over.
    fn feed_sender(&mut self, now: Instant) {
        if matches!(self.state, State::Closed | State::SynSent | State::SynReceived) {
            return;
        }
        if self.sender.is_none() {
            if self.written == 0 && !self.close_queued {
                return;
            }
            let cc = self.shared.controller();
            self.sender = Some(Box::new(Sender::new(now, &self.shared, cc)));
        }
        if let Some(sender) = &mut self.sender {
            sender.end = 1 + self.written;
            sender.fin_queued = self.close_queued;
            sender.more &= !self.close_queued;
        }
    }

    fn queue_fin(&mut self, now: Instant) {
        if self.close_queued {
            return;
        }
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            State::SynSent | State::SynReceived => {}
            State::Closed
            | State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait => return,
        }
        self.close_queued = true;
        self.feed_sender(now);
    }

    fn enter_closed(&mut self) {
        self.state = State::Closed;
        self.shared.timers.clear();
        self.sender_done();
        self.receive.ack_now = false;
        self.receive.beyond = None;
        self.control = Control::None;
        self.keep_alive_due = false;
    }

    /// Remembers what was acknowledged and frees the sending half's queues.
    fn sender_done(&mut self) {
        if let Some(sender) = &mut self.sender {
            let out = sender.board.ring.len();
            if out > 0 {
                sender.board = scoreboard::Scoreboard::default();
            }
            sender.board.release();
        }
    }

    fn fail(&mut self, error: ConnectionError) {
        self.enter_closed();
        self.shared.failure = Some(error);
        self.shared.raise(Event::Failed(error));
    }
}

impl Shared {
    /// Notes an event.
    fn raise(&mut self, event: Event) {
        self.events |= 1
            << match event {
                Event::Established => 0,
                Event::Readable => 1,
                Event::Writable => 2,
                Event::PeerClosed => 3,
                Event::SendClosed => 4,
                Event::Trouble => 5,
                Event::Closed => 6,
                Event::Failed(_) => 7,
            };
    }

    /// The timestamp clock: milliseconds from a per-connection offset (RFC 7323 5.4).
    #[inline]
    fn timestamp(&self, now: Instant) -> u32 {
        ((now.as_nanos() / 1_000_000) as u32).wrapping_add(self.ts_offset)
    }

    /// Whether an echoed timestamp is not older than a transmission at `at`.
    #[inline]
    fn echo_reaches(&self, echo: u32, at: Instant) -> bool {
        echo.wrapping_sub(self.timestamp(at)) as i32 >= 0
    }

    /// Initial window in bytes (RFC 6928 2, RFC 3390 1, RFC 5681 3.1).
    fn initial_window(&self) -> u64 {
        let mss = u64::from(self.mss);
        let window = match self.config.initial_window {
            InitialWindow::Segments(segments) => mss * u64::from(segments),
            InitialWindow::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
            InitialWindow::Rfc6928 => (10 * mss).min((2 * mss).max(14_600)),
        };
        // RFC 5681 3.1: one segment after a lost SYN; RFC 6928 2: only after more than one retransmission.
        if self.syn_lost > self.config.syn_losses_forgiven {
            mss
        } else {
            window
        }
    }

    fn controller(&self) -> AnyController {
        let config = &self.config;
        let context = cc::Config {
            mss: Bytes(u64::from(self.mss)),
            initial_window: Bytes(self.initial_window()),
            hystart: config.hystart,
            abc_limit: config.abc_limit,
            reduce_from_window: config.reduce_from_window,
            count_segments: config.window_unit == WindowUnit::Packets,
            seed: u64::from(self.iss.0) << 32 | u64::from(self.irs.0),
        };
        let name = config.congestion_control;
        let table = AnyController::entry(name).map_or(&[][..], |entry| entry.parameters);
        let defaults = Values::defaults(table);
        let values = config.congestion_control_values.as_ref().unwrap_or(&defaults);
        AnyController::build(name, values, &context)
            .unwrap_or_else(|| AnyController::Reno(cc::Reno::new(values, &context)))
    }

    /// A budget of challenge ACKs per second, drawn per connection and second (RFC 5961 7, against side channels).
    fn challenge_allowance(&self, now: Instant) -> u16 {
        let seed = u64::from(self.iss.0) << 32 ^ u64::from(self.irs.0) ^ now.as_nanos();
        50 + Rng::from_seed(seed).below(100) as u16
    }
}

/// The bits an established segment may carry that a fast check looks at.
const UNUSUAL: Flags = Flags(Flags::SYN.0 | Flags::RST.0 | Flags::URG.0);
