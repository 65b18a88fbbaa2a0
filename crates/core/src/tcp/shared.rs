//! What both halves of a connection need: configuration, estimator, timers, what was negotiated.

use super::cold::Cold;
use super::config::{Config, InitialWindow, WindowUnit};
use super::error::{ConnectionError, Event};
use super::lazy::Lazy;
use super::rto::Rtt;
use super::spreading::PathNotes;
use super::timers::Timers;
use super::types::Stats;
use super::ways::Ways;
use crate::cc::{self, AnyController};
use crate::packet::{Flags, Segment};
use crate::parameter::Values;
use crate::rng::Rng;
use crate::seq::SeqNumber;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::boxed::Box;
use alloc::sync::Arc;

/// What both halves need.
pub(super) struct Shared {
    pub(super) config: Arc<Config>,
    pub(super) rtt: Rtt,
    pub(super) timers: Timers,
    pub(super) stats: Lazy<Stats>,
    /// Right edge of the peer's window, as an offset of ours.
    pub(super) snd_edge: u64,
    pub(super) max_snd_wnd: u64,
    pub(super) snd_wl1: u64,
    pub(super) snd_wl2: u64,
    /// RCV.NXT of the last acknowledgment sent.
    pub(super) last_ack_sent: u64,
    pub(super) iss: SeqNumber,
    pub(super) irs: SeqNumber,
    pub(super) ts_recent: u32,
    pub(super) ts_offset: u32,
    /// Payload bytes of a full segment: options are taken off.
    pub(super) mss: u32,
    pub(super) events: u16,
    pub(super) snd_scale: u8,
    pub(super) rcv_scale: u8,
    pub(super) failure: Option<ConnectionError>,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    pub(super) ecn: bool,
    pub(super) nagle: bool,
    /// The SYN or SYN-ACK was retransmitted.
    pub(super) syn_lost: u8,
    /// The peer's SYN carried a window scale.
    pub(super) peer_scales: bool,
    /// `Setting::HeaderPrediction`.
    pub(super) predict: bool,
    /// The owner closed both halves.
    pub(super) orphan: bool,
    /// `Setting::NoteLatencies`.
    pub(super) latencies: bool,
    /// Which short ways are open.
    pub(super) ways: Ways,
    /// What is known of the path, if the owner remembers.
    pub(super) path: Option<Box<PathNotes>>,
    /// What is rarely needed.
    pub(super) cold: Option<Box<Cold>>,
}

impl Shared {
    /// The window is reduced: a loss event, however many losses it has.
    #[cold]
    pub(super) fn count_congestion(&mut self, now: Instant) {
        let [from, until] = self.config.measured;
        if from <= now && now < until {
            self.stats.congestion_events += 1;
        }
    }

    /// Where the timestamp clock of an end with this initial sequence number starts.
    pub(super) const fn ts_offset(iss: SeqNumber) -> u32 {
        iss.0.rotate_left(16) | 1
    }

    /// Something happens on which the short ways may depend: the next general way works out which are open.
    #[inline]
    pub(super) fn shut_ways(&mut self) {
        self.ways = Ways::SHUT;
    }

    /// Takes SND.WND from a segment (RFC 9293 3.10.7.4, fifth). Says whether the peer changed it, and whether the right
    /// edge moved; `None`: an older segment.
    #[inline(always)]
    pub(super) fn take_window(&mut self, segment: &Segment, seq: u64, ack: u64) -> Option<(bool, bool)> {
        if self.snd_wl1 > seq || (self.snd_wl1 == seq && self.snd_wl2 > ack) {
            return None;
        }
        let window = u64::from(segment.window) << self.snd_scale;
        let edge = ack + window;
        let changed = edge != self.snd_edge && ack == self.snd_wl2;
        self.snd_wl1 = seq;
        self.snd_wl2 = ack;
        let opened = edge > self.snd_edge;
        self.snd_edge = edge;
        if window > self.max_snd_wnd {
            self.max_snd_wnd = window;
        }
        Some((changed, opened))
    }

    /// Notes an event.
    pub(super) fn raise(&mut self, event: Event) {
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
                Event::SoftError => 8,
                Event::Urgent => 9,
                Event::PathFound => 10,
            };
    }

    /// The timestamp clock: milliseconds from a per-connection offset (RFC 7323 5.4).
    #[inline]
    pub(super) fn timestamp(&self, now: Instant) -> u32 {
        ((now.as_nanos() / 1_000_000) as u32).wrapping_add(self.ts_offset)
    }

    /// Whether an echoed timestamp is not older than a transmission at `at`.
    #[inline]
    pub(super) fn echo_reaches(&self, echo: u32, at: Instant) -> bool {
        echo.wrapping_sub(self.timestamp(at)) as i32 >= 0
    }

    /// The time from a segment of ours to the acknowledgment of it, by the clocks of both ends: up to a constant the delay of
    /// the data path, modulo 2^32 ms.
    pub(super) fn one_way_delay(&self, segment: &Segment) -> Option<Duration> {
        let told = self.timestamps && segment.flags.contains(Flags::TIMESTAMPS) && segment.tsecr != 0;
        told.then(|| Duration::from_millis(u64::from(segment.tsval.wrapping_sub(segment.tsecr))))
    }

    /// A valid RTT sample. With `tick` it is the number of ticks that the connection's clock made meanwhile.
    #[inline]
    pub(super) fn sample(&mut self, now: Instant, rtt: Duration) {
        let config = &self.config.rto;
        let tick = config.tick.as_nanos();
        let mut counted = rtt;
        if tick > 0 {
            // How far into its first tick the segment left.
            let begin = if self.timestamps {
                tick / 2
            } else {
                let phase = (u64::from(self.iss.0) * tick) >> 32;
                (now.as_nanos() - rtt.as_nanos() + phase) % tick
            };
            let ticks = (begin + rtt.as_nanos()) / tick;
            counted = Duration::from_nanos(ticks.max(1) * tick);
        }
        self.rtt.sample(config, counted);
    }

    /// Initial window in bytes (RFC 6928 2, RFC 3390 1, RFC 5681 3.1).
    pub(super) fn initial_window(&self) -> u64 {
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

    pub(super) fn controller(&self, passive: bool) -> AnyController {
        let config = &self.config;
        let context = cc::Config {
            mss: Bytes(u64::from(self.mss)),
            initial_window: Bytes(self.initial_window()),
            hystart: config.hystart,
            abc_limit: config.abc_limit,
            reduce_from_window: config.reduce_from_window,
            count_segments: config.window_unit != WindowUnit::Bytes,
            fractions: config.window_unit == WindowUnit::Fractions,
            cubic_arithmetic: config.cubic_arithmetic,
            handshake_rtt: self.rtt.min().filter(|_| !passive),
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
    pub(super) fn challenge_allowance(&self, now: Instant) -> u16 {
        let seed = u64::from(self.iss.0) << 32 ^ u64::from(self.irs.0) ^ now.as_nanos();
        50 + Rng::from_seed(seed).below(100) as u16
    }
}
