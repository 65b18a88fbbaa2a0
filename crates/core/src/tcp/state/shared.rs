//! What both halves of a connection need: configuration, estimator, timers, what was negotiated.

use crate::cc::{self, AnyController};
use crate::packet::{Flags, Segment};
use crate::parameter::Values;
use crate::rng::Rng;
use crate::seq::SeqNumber;
use crate::tcp::accecn::AccEcn;
use crate::tcp::ack::rto::Rtt;
use crate::tcp::config::{Config, InitialWindow, Profile, WindowUnit};
use crate::tcp::fast::FastPath;
use crate::tcp::path::cold::Cold;
use crate::tcp::send::peer_window::PeerWindow;
use crate::tcp::state::error::{ConnectionError, Event};
use crate::tcp::state::lazy::Lazy;
use crate::tcp::state::stats::Stats;
use crate::tcp::state::timers::{Timer, Timers};
use crate::tcp::window::path_memory::PathNotes;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::sync::Arc;
use serde::{Deserialize, Serialize};

/// What both halves need.
#[derive(Serialize, Deserialize)]
pub(in crate::tcp) struct Shared {
    #[serde(skip, default = "blank")]
    pub(in crate::tcp) config: Arc<Config>,
    pub(in crate::tcp) rtt: Rtt,
    pub(in crate::tcp) timers: Timers,
    pub(in crate::tcp) stats: Lazy<Stats>,
    /// The window that the peer offers.
    pub(in crate::tcp) peer: PeerWindow,
    /// RCV.NXT of the last acknowledgment sent.
    pub(in crate::tcp) last_ack_sent: u64,
    pub(in crate::tcp) iss: SeqNumber,
    pub(in crate::tcp) irs: SeqNumber,
    pub(in crate::tcp) ts_recent: u32,
    /// When TS.Recent was set ([`coarse`]).
    pub(in crate::tcp) ts_recent_at: u32,
    pub(in crate::tcp) ts_offset: u32,
    /// Payload bytes of a full segment: options are taken off.
    pub(in crate::tcp) mss: u32,
    pub(in crate::tcp) events: u16,
    pub(in crate::tcp) snd_scale: u8,
    pub(in crate::tcp) rcv_scale: u8,
    #[serde(skip)]
    pub(in crate::tcp) failure: Option<ConnectionError>,
    pub(in crate::tcp) sack: bool,
    pub(in crate::tcp) timestamps: bool,
    pub(in crate::tcp) ecn: bool,
    pub(in crate::tcp) nagle: bool,
    /// The SYN or SYN-ACK was retransmitted.
    pub(in crate::tcp) syn_lost: u8,
    /// TSval of the first SYN once it was sent again; 0: it was not.
    pub(in crate::tcp) first_syn: u32,
    /// The peer's SYN carried a window scale.
    pub(in crate::tcp) peer_scales: bool,
    /// `Setting::HeaderPrediction`.
    pub(in crate::tcp) predict: bool,
    /// The owner closed both halves.
    pub(in crate::tcp) orphan: bool,
    /// `Setting::NoteLatencies`.
    pub(in crate::tcp) latencies: bool,
    /// Which steps are the usual ones.
    #[serde(skip)]
    pub(in crate::tcp) fast: FastPath,
    /// What is known of the path, if the owner remembers.
    pub(in crate::tcp) path: Option<Box<PathNotes>>,
    /// Accurate ECN, if both ends agreed to it; then `ecn` is set.
    pub(in crate::tcp) accecn: Option<Box<AccEcn>>,
    /// What is rarely needed.
    #[serde(skip)]
    pub(in crate::tcp) cold: Option<Box<Cold>>,
}

/// In the place of the configuration, which whoever wakes a connection has.
fn blank() -> Arc<Config> {
    Arc::new(Config::profile(Profile::Rfc))
}

impl Shared {
    /// Before a SYN was sent or came.
    pub(in crate::tcp) fn new(config: &Arc<Config>, iss: SeqNumber) -> Shared {
        Shared {
            rtt: Rtt::new(&config.rto),
            timers: Timers::new(),
            stats: Lazy::default(),
            peer: PeerWindow::NONE,
            last_ack_sent: 0,
            iss,
            irs: SeqNumber(0),
            ts_recent: 0,
            ts_recent_at: 0,
            ts_offset: Shared::ts_offset(iss),
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
            first_syn: 0,
            peer_scales: false,
            predict: true,
            orphan: false,
            latencies: false,
            fast: FastPath::NONE,
            path: None,
            accecn: None,
            cold: None,
            config: Arc::clone(config),
        }
    }

    /// Takes over a timestamp of the peer.
    #[inline(always)]
    pub(in crate::tcp) fn set_ts_recent(&mut self, now: Instant, tsval: u32) {
        self.ts_recent = tsval;
        self.ts_recent_at = coarse(now);
    }

    /// Whether TS.Recent is too old to refuse a segment for: the peer's clock may have gone half around (RFC 7323 5.5). `linux`: as
    /// Linux has it.
    #[cold]
    pub(in crate::tcp) fn ts_recent_is_outdated(&self, now: Instant, linux: bool) -> bool {
        let age = coarse(now).wrapping_sub(self.ts_recent_at);
        age >= if linux {
            HALF_ROUND_OF_MICROSECONDS
        } else {
            TWENTY_FOUR_DAYS
        }
    }

    /// The window is reduced: a loss event, however many losses it has.
    #[cold]
    pub(in crate::tcp) fn count_congestion(&mut self, now: Instant) {
        let [from, until] = self.config.measured;
        if from <= now && now < until {
            self.stats.congestion_events += 1;
        }
    }

    /// Sets the retransmission slot at `now` for `at`.
    #[inline]
    pub(in crate::tcp) fn arm(&mut self, now: Instant, kind: Timer, at: Instant) {
        self.timers.arm(self.config.timer_grid, now, kind, at);
    }

    /// When a timer set at `now` for `wait` later fires.
    #[inline]
    pub(in crate::tcp) fn expiry(&self, now: Instant, wait: Duration) -> Instant {
        self.timers.expiry(self.config.timer_grid, now, now + wait)
    }

    /// Where the timestamp clock of an end with this initial sequence number starts.
    pub(in crate::tcp) const fn ts_offset(iss: SeqNumber) -> u32 {
        iss.0.rotate_left(16) | 1
    }

    /// Bytes of the headers of an established segment without SACK blocks.
    #[inline]
    pub(in crate::tcp) fn overhead(&self) -> u8 {
        let options = if self.timestamps { 12 } else { 0 };
        self.config.header() as u8 + options
    }

    /// Notes an event.
    pub(in crate::tcp) fn raise(&mut self, event: Event) {
        self.events |= 1 << event.bit();
    }

    /// The timestamp clock: milliseconds from a per-connection offset (RFC 7323 5.4).
    #[inline]
    pub(in crate::tcp) fn timestamp(&self, now: Instant) -> u32 {
        // The offset is added first, so that who may send several segments does not work it out for none.
        let offset = u64::from(self.ts_offset) * 1_000_000;
        (now.as_nanos().wrapping_add(offset) / 1_000_000) as u32
    }

    /// Whether an echoed timestamp is not older than a transmission at `at`.
    #[inline]
    pub(in crate::tcp) fn echo_reaches(&self, echo: u32, at: Instant) -> bool {
        echo.wrapping_sub(self.timestamp(at)) as i32 >= 0
    }

    /// The time from a segment of ours to the acknowledgment of it, by the clocks of both ends: up to a constant the delay of
    /// the data path, modulo 2^32 ms.
    pub(in crate::tcp) fn one_way_delay(&self, segment: &Segment) -> Option<Duration> {
        let echoed = self.timestamps && segment.flags.contains(Flags::TIMESTAMPS) && segment.tsecr != 0;
        echoed.then(|| Duration::from_millis(u64::from(segment.tsval.wrapping_sub(segment.tsecr))))
    }

    /// A valid RTT sample. With `tick` it is the number of ticks that the connection's clock made meanwhile. `round_over`:
    /// what was out when the estimator's round trip began is acknowledged.
    #[inline(always)]
    pub(in crate::tcp) fn sample(&mut self, now: Instant, rtt: Duration, round_over: bool) {
        let counted = match self.config.rto.tick {
            Duration::ZERO => rtt,
            tick => self.in_ticks(now, rtt, tick.as_nanos()),
        };
        self.rtt.sample(&self.config.rto, counted, round_over);
    }

    /// The ticks that the connection's clock made from `rtt` before `now` until `now`.
    #[inline(never)]
    fn in_ticks(&self, now: Instant, rtt: Duration, tick: u64) -> Duration {
        // How far into its first tick the segment left.
        let begin = if self.timestamps {
            tick / 2
        } else {
            let phase = (u64::from(self.iss.0) * tick) >> 32;
            (now.as_nanos() - rtt.as_nanos() + phase) % tick
        };
        let ticks = (begin + rtt.as_nanos()) / tick;
        Duration::from_nanos(ticks.max(1) * tick)
    }

    /// The window after a pause in bytes, above which it stays (RFC 5681 4.1): the initial one, as if no SYN had been lost. A loss long ago
    /// says nothing of the path now (Linux: `tcp_init_cwnd`; the RFC can be read either way).
    pub(in crate::tcp) fn restart_window(&self) -> u64 {
        let mss = u64::from(self.mss);
        match self.config.initial_window {
            InitialWindow::Segments(segments) => mss * u64::from(segments),
            InitialWindow::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
            InitialWindow::Rfc6928 => (10 * mss).min((2 * mss).max(14_600)),
        }
    }

    /// Initial window in bytes (RFC 6928 2, RFC 3390 1, RFC 5681 3.1).
    pub(in crate::tcp) fn initial_window(&self) -> u64 {
        // RFC 5681 3.1: one segment after a lost SYN; RFC 6928 2: only after more than one retransmission. RFC 5562 3.2: after a
        // marked one, too.
        let marked = self.accecn.as_deref().is_some_and(AccEcn::syn_was_marked);
        if marked || self.syn_lost > self.config.syn_losses_forgiven {
            u64::from(self.mss)
        } else {
            self.restart_window()
        }
    }

    pub(in crate::tcp) fn controller(&self, passive: bool) -> AnyController {
        let config = &self.config;
        let context = cc::Config {
            mss: Bytes(u64::from(self.mss)),
            initial_window: Bytes(self.initial_window()),
            hystart: config.hystart,
            paced: config.hystart_knows_pacing(),
            abc_limit: config.abc_limit,
            reduce_from_window: config.reduce_from_window,
            count_segments: config.window_unit != WindowUnit::Bytes,
            fractions: config.window_unit == WindowUnit::Fractions,
            cubic_arithmetic: config.cubic_arithmetic,
            handshake_rtt: self.rtt.min(),
            passive,
            seed: u64::from(self.iss.0) << 32 | u64::from(self.irs.0),
        };
        let (name, plugins) = (config.congestion_control, config.plugins.controllers);
        let table = AnyController::entry_among(plugins, name).map_or(&[][..], |entry| entry.parameters);
        let defaults = Values::defaults(table);
        let values = config.congestion_control_values.as_ref().unwrap_or(&defaults);
        AnyController::build_among(plugins, name, values, &context)
            .unwrap_or_else(|| AnyController::Reno(cc::Reno::new(values, &context)))
    }

    /// A budget of challenge ACKs per second, drawn per connection and second (RFC 5961 7, against side channels).
    pub(in crate::tcp) fn challenge_allowance(&self, now: Instant) -> u16 {
        let seed = u64::from(self.iss.0) << 32 ^ u64::from(self.irs.0) ^ now.as_nanos();
        50 + Rng::from_seed(seed).below(100) as u16
    }
}

impl Shared {
    /// The rarely used state, made when first needed.
    #[cold]
    pub(in crate::tcp) fn cold_mut(&mut self) -> &mut Cold {
        self.fast = FastPath::NONE;
        self.cold.get_or_insert_default()
    }
}

/// A moment in units of 2^30 ns (1.07 s).
#[inline(always)]
pub(in crate::tcp) fn coarse(now: Instant) -> u32 {
    (now.as_nanos() >> 30) as u32
}

/// 2^31 microseconds, 2147 s, in units of [`coarse`]: `TCP_PAWS_WRAP` of Linux since 6.7.
const HALF_ROUND_OF_MICROSECONDS: u32 = 2_000;

/// 24 days in units of [`coarse`] (RFC 7323 5.5).
const TWENTY_FOUR_DAYS: u32 = ((24 * 86_400 * 1_000_000_000_u64) >> 30) as u32;
