//! The sending half: what may be sent now, and which segment that is.
//!
//! A drain asks `next` until it says `None`: a probe that is due, then retransmissions, then new data, within the
//! congestion window (or recovery's) and the peer's window; then RFC 6675's last resorts.
//!
//! **Source.** RFC 9293 3.7.4, 3.8.6; RFC 5681; RFC 6675 `NextSeg`; RFC 3042.
//! **Deviations.** Fast retransmits may leave although the pipe exceeds the window (RFC 6675 4.3); a zero-window probe
//! carries one new octet that is not counted as sent until it is acknowledged, or nothing.

use crate::cc::{AnyController, CongestionController, Sent};
use crate::tcp::Shared;
use crate::tcp::ack::ns2_sack1::Sack1;
use crate::tcp::ack::prr::Prr;
use crate::tcp::ack::rack::Rack;
use crate::tcp::ack::scoreboard::{FIN, PUSH, Record, Scoreboard};
use crate::tcp::config::{Prr as PrrVariant, TailLossProbe, WindowUnit};
use crate::tcp::send::pacing::Tempo;
use crate::tcp::send::thin::Thin;
use crate::tcp::state::lazy::{Blank, Lazy};
use crate::tcp::state::timers::Timer;
use crate::tcp::window::controller::Controller;
use crate::time::Instant;
use crate::units::Bytes;
use alloc::boxed::Box;

/// Congestion state, with Linux's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CaState {
    /// Nothing is wrong.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs came, nothing is judged lost.
    Disorder,
    /// The window is being reduced without a loss (ECN, delay).
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// State of the sending half; offsets count from our initial sequence number: 0 is the SYN, 1 the first byte.
pub(in crate::tcp) struct Sender {
    pub(in crate::tcp) board: Scoreboard,
    pub(in crate::tcp) cc: Controller,
    pub(in crate::tcp) rack: Option<Box<Rack>>,
    pub(in crate::tcp) sack1: Option<Box<Sack1>>,
    /// If it bundles, or keeps writes apart.
    pub(in crate::tcp) thin: Option<Box<Thin>>,
    /// What holds segments back, validates the window or measures rates, if anything does.
    pub(in crate::tcp) tempo: Option<Box<Tempo>>,
    /// First offset not acknowledged.
    pub(in crate::tcp) una: u64,
    /// End of the last segment sent that was not full.
    pub(in crate::tcp) small_end: u64,
    /// Next offset to send.
    pub(in crate::tcp) nxt: u64,
    /// One past the last offset the application wrote, without FIN.
    pub(in crate::tcp) end: u64,
    /// Recovery ends when this is acknowledged.
    pub(in crate::tcp) high_seq: u64,
    /// Blank until something is lost or marked.
    pub(in crate::tcp) episode: Lazy<Episode>,
    /// End of the outstanding loss probe; 0: none.
    pub(in crate::tcp) tlp_end: u64,
    /// RACK's or early retransmit's pending deadline; `FAR_FUTURE`: none.
    pub(in crate::tcp) wait_until: Instant,
    /// A sample is taken when this is acknowledged (one per round trip).
    pub(in crate::tcp) rtt_seq: u64,
    /// End of the round trip.
    pub(in crate::tcp) round_end: u64,
    pub(in crate::tcp) delivered_total: u64,
    /// New data sent on duplicate ACKs since SND.UNA moved (RFC 3042).
    pub(in crate::tcp) limited_sent: u64,
    /// Most in flight in the current window.
    pub(in crate::tcp) max_out: u64,
    pub(in crate::tcp) usage_seq: u64,
    /// Most in flight since `window_stamp` (RFC 2861).
    pub(in crate::tcp) used: u64,
    pub(in crate::tcp) window_stamp: Instant,
    pub(in crate::tcp) last_send: Instant,
    /// When the probe timer was set while several segments were out: at that moment it need not be set again.
    pub(in crate::tcp) probed: Instant,
    pub(in crate::tcp) dup_acks: u32,
    pub(in crate::tcp) retries: u8,
    /// When the timer first expired for what is out now, milliseconds of the clock, wrapping.
    pub(in crate::tcp) first_timeout_ms: u32,
    pub(in crate::tcp) persist_backoff: u8,
    /// New segments F-RTO may still send.
    pub(in crate::tcp) frto_new: u8,
    /// F-RTO's step, 0 when not running.
    pub(in crate::tcp) frto: u8,
    pub(in crate::tcp) state: CaState,
    pub(in crate::tcp) fin_queued: bool,
    pub(in crate::tcp) fin_sent: bool,
    /// The next segment leaves whatever the window says.
    pub(in crate::tcp) force: bool,
    pub(in crate::tcp) limited: bool,
    pub(in crate::tcp) tlp_is_retrans: bool,
    pub(in crate::tcp) probe_due: bool,
    pub(in crate::tcp) zero_probe_due: bool,
    pub(in crate::tcp) zero_probe_out: bool,
    pub(in crate::tcp) cwr_pending: bool,
    pub(in crate::tcp) sws_override: bool,
    /// Segments left in the group for offload.
    pub(in crate::tcp) group_left: u8,
    pub(in crate::tcp) rescued: bool,
    /// The episode that may be undone began with a timeout.
    pub(in crate::tcp) undo_is_timeout: bool,
    /// More will be written at once: a partial segment waits.
    pub(in crate::tcp) more: bool,
    /// The end of what was written asks for no PSH.
    pub(in crate::tcp) unpushed: bool,
}

/// The last episode of recovery, CWR or timeout, as long as something follows from it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Episode {
    /// Window during recovery and CWR, set by PRR.
    pub(in crate::tcp) recovery_window: u64,
    pub(in crate::tcp) prr: Prr,
    /// Window before which a fast retransmit is not entered without SACK (RFC 6582 `recover`); 0: none.
    pub(in crate::tcp) recover: u64,
    /// Start of the episode if it may be undone; 0: it may not.
    pub(in crate::tcp) undo_marker: u64,
    /// Highest offset retransmitted in this recovery (RFC 6675 HighRxt).
    pub(in crate::tcp) high_rxt: u64,
    /// Retransmissions not shown redundant.
    pub(in crate::tcp) undo_retrans: u32,
    /// TSval of the first retransmission.
    pub(in crate::tcp) retrans_stamp: u32,
}

impl Blank for Episode {
    fn blank() -> &'static Episode {
        static BLANK: Episode = Episode {
            recovery_window: 0,
            prr: Prr::NONE,
            recover: 0,
            undo_marker: 0,
            high_rxt: 0,
            undo_retrans: 0,
            retrans_stamp: 0,
        };
        &BLANK
    }
}

/// A segment of ours to be put together.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Outgoing {
    pub(in crate::tcp) seq: u64,
    pub(in crate::tcp) payload: u32,
    pub(in crate::tcp) fin: bool,
    pub(in crate::tcp) push: bool,
    pub(in crate::tcp) retransmission: bool,
    pub(in crate::tcp) cwr: bool,
}

impl Sender {
    pub(in crate::tcp) fn new(now: Instant, shared: &Shared, mut cc: AnyController) -> Sender {
        let config = &shared.config;
        let sack1 = Sack1::new(config, shared.sack);
        if sack1.is_some() && shared.syn_lost > 0 {
            let segment = Bytes(u64::from(shared.mss));
            cc.set_window(now, cc.window(), segment + segment); // ns-2 halves the SYN's window of one
        }
        Sender {
            board: Scoreboard::new(shared.mss, config.window_unit != WindowUnit::Bytes),
            tempo: Tempo::new(now, shared, cc.uses_rates()),
            cc: Controller::new(cc),
            rack: (config.rack && shared.sack).then(|| Box::new(Rack::new(config.dup_thresh))),
            thin: if sack1.is_none() {
                Thin::new(config, shared.latencies)
            } else {
                None
            },
            sack1,
            una: 1,
            small_end: 0,
            nxt: 1,
            end: 1,
            high_seq: 0,
            episode: Lazy::default(),
            tlp_end: 0,
            wait_until: Instant::FAR_FUTURE,
            rtt_seq: 0,
            round_end: 0,
            delivered_total: 0,
            limited_sent: 0,
            max_out: 0,
            usage_seq: 0,
            used: 0,
            window_stamp: now,
            last_send: now,
            probed: Instant::FAR_FUTURE,
            dup_acks: 0,
            retries: 0,
            first_timeout_ms: 0,
            persist_backoff: 0,
            frto_new: 0,
            frto: 0,
            state: CaState::Open,
            fin_queued: false,
            fin_sent: false,
            force: false,
            limited: false,
            tlp_is_retrans: false,
            probe_due: false,
            zero_probe_due: false,
            zero_probe_out: false,
            cwr_pending: false,
            sws_override: false,
            group_left: 0,
            rescued: false,
            undo_is_timeout: false,
            more: false,
            unpushed: false,
        }
    }

    /// The window in force: recovery's or the controller's, at most `max_window`.
    #[inline]
    pub(in crate::tcp) fn window(&self, shared: &Shared) -> u64 {
        let reducing = matches!(self.state, CaState::Recovery | CaState::Cwr);
        let window = if reducing && shared.config.prr != PrrVariant::Off {
            self.episode.recovery_window
        } else {
            self.cc.window().get()
        };
        Sender::bounded(shared, window)
    }

    /// `window`, at most `max_window`.
    #[inline(always)]
    fn bounded(shared: &Shared, window: u64) -> u64 {
        match shared.config.max_window_segments {
            Some(segments) => window.min(u64::from(segments) * u64::from(shared.mss)),
            None => window,
        }
    }

    /// What counts against the window.
    #[inline]
    pub(in crate::tcp) fn in_flight(&self, shared: &Shared) -> u64 {
        if self.state == CaState::Disorder && !shared.config.limited_transmit {
            return self.board.out; // RFC 3042 off: duplicate ACKs free nothing
        }
        self.board.pipe()
    }

    /// Bytes written and not sent.
    #[inline]
    pub(in crate::tcp) fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.nxt)
    }

    #[inline]
    pub(in crate::tcp) fn fin_waits(&self) -> bool {
        self.fin_queued && !self.fin_sent
    }

    /// Segments that what is unsent would make.
    pub(in crate::tcp) fn unsent_segments(&self, mss: u32) -> u64 {
        let unsent = self.unsent();
        let segments = match &self.thin {
            Some(thin) => thin.segments(self.nxt, self.end, mss),
            None => unsent.div_ceil(u64::from(mss)),
        };
        segments + u64::from(unsent == 0 && self.fin_waits())
    }

    /// The next segment to send now. `QUIET`: [`Sender::is_calm`], so that new data is all there may be.
    #[inline(always)]
    pub(in crate::tcp) fn next<const QUIET: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
    ) -> Option<Outgoing> {
        debug_assert!(!QUIET || self.is_calm(shared), "only while nothing is wrong");
        if !QUIET {
            if (self.probe_due | self.zero_probe_due)
                && let Some(probe) = self.probe(now, shared)
            {
                return Some(probe);
            }
            if self.tempo.is_some() && self.is_held(now, shared) {
                return None;
            }
            if self.sack1.is_some() {
                let sent = self.next_sack1(now, shared);
                if sent.is_none() {
                    self.await_window(now, shared);
                    self.validate(now, shared, self.unsent() > 0);
                }
                return sent;
            }
            if self.board.marks.to_retransmit > 0 && !(self.frto_new > 0 && self.new_length(shared).is_some())
            {
                return self.next_lost(now, shared);
            }
        }
        let mut limited = false;
        if let Some((payload, fin)) = self.new_or_full_length(shared) {
            if !QUIET
                && shared.cold.is_some()
                && let Some(probe) = self.mtu_probe(now, shared)
            {
                return Some(probe);
            }
            // ns-2's agent takes nothing for a pause.
            if self.board.out == 0 && self.una == self.nxt && self.sack1.is_none() {
                self.after_idle(now, shared);
            }
            // The FIN needs no room: a last segment that is full must fit a window of one segment.
            let (window, in_flight) = if QUIET {
                (Sender::bounded(shared, self.cc.window().get()), self.board.out)
            } else {
                (self.window(shared), self.in_flight(shared))
            };
            if !QUIET && self.frto_new > 0 || in_flight + self.board.weight(payload) <= window {
                if !QUIET {
                    self.frto_new = self.frto_new.saturating_sub(1);
                }
                return Some(self.transmit::<QUIET>(now, shared, payload, fin));
            }
            limited = true;
        } else if !QUIET && self.state == CaState::Recovery && self.rack.is_none() && shared.sack {
            let (rescued, high_rxt) = (self.rescued, self.episode.high_rxt);
            if let Some(index) = self.last_resort(shared) {
                let sent = self.retransmit(now, shared, index);
                if self.rescued && !rescued {
                    self.episode.high_rxt = high_rxt; // RFC 6675 4, NextSeg (4)
                }
                return sent;
            }
        } else {
            self.await_window(now, shared);
        }
        limited |= QUIET && self.sack1.is_some() && self.unsent() > 0;
        self.validate(now, shared, limited);
        None
    }

    /// The lowest segment that is judged lost, if the window has room for it.
    #[inline(never)]
    fn next_lost(&mut self, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        if let Some(index) = self.board.next_lost() {
            let weight = self.board.weight(self.board.ring[index].payload());
            if self.force || self.in_flight(shared) + weight <= self.window(shared) {
                return self.retransmit(now, shared, index);
            }
        }
        self.validate(now, shared, true);
        None
    }

    /// The probe that is due, if there is something to probe with.
    #[cold]
    fn probe(&mut self, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        if core::mem::take(&mut self.probe_due)
            && let Some(probe) = self.loss_probe(now, shared)
        {
            return Some(probe);
        }
        if core::mem::take(&mut self.zero_probe_due) {
            return self.zero_window_probe(shared);
        }
        None
    }

    /// [`Sender::new_length`], with its most frequent answer first.
    #[inline(always)]
    pub(in crate::tcp) fn new_or_full_length(&self, shared: &Shared) -> Option<(u32, bool)> {
        let mss = u64::from(shared.mss);
        if self.nxt + mss < self.end && self.nxt + mss <= shared.snd_edge && self.thin.is_none() {
            return Some((shared.mss, false)); // more than a full segment waits
        }
        self.new_length(shared)
    }

    /// Length of the next new segment the peer's window, Nagle and silly-window avoidance permit.
    pub(in crate::tcp) fn new_length(&self, shared: &Shared) -> Option<(u32, bool)> {
        let mut unsent = self.unsent();
        let mut last = true; // what is looked at is the end of what was written
        if let Some(thin) = &self.thin {
            let boundary = thin.boundary(self.nxt, self.end);
            last = boundary >= self.end;
            unsent = unsent.min(boundary - self.nxt.min(boundary));
        }
        let usable = shared.snd_edge.saturating_sub(self.nxt);
        let mss = u64::from(shared.mss);
        if unsent == 0 {
            return (self.fin_waits() && usable > 0).then_some((0, true));
        }
        if unsent >= mss && usable >= mss {
            // RFC 9293 3.8.6.2.1 (1): a full segment.
            return Some((
                shared.mss,
                last && self.fin_waits() && unsent == mss && usable > mss,
            ));
        }
        let length = unsent.min(usable).min(mss);
        if length == 0 {
            return None;
        }
        let fin = last && self.fin_waits() && length == unsent && usable > length;
        let idle = self.una == self.nxt;
        let free = idle || !shared.nagle || (shared.config.nagle_minshall && self.small_end <= self.una);
        let pushed = length == unsent && free && !(self.more && last); // (2)
        let half = length >= shared.max_snd_wnd / 2 && length == usable; // (3)
        let grouped = self.group_left > 0 && length == usable && free; // the end of a group (Linux `tcp_mss_split_point`)
        // The last segment is never held back (Linux `tcp_nagle_test`).
        (pushed || fin || half || grouped || self.sws_override).then_some((length as u32, fin))
    }

    /// New data leaves: `payload` bytes, and the FIN if it goes along.
    #[inline(always)]
    pub(in crate::tcp) fn transmit<const QUIET: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        payload: u32,
        fin: bool,
    ) -> Outgoing {
        let seq = self.nxt;
        let len = payload + u32::from(fin);
        if self.board.pipe_if::<QUIET>() == 0 {
            self.cc.on_restart(now, now.since(self.last_send));
            if self.board.out == 0 {
                self.on_first_out();
            }
        }
        let group_ends = match shared.config.offload_segments {
            Some(least) => self.group_ends(now, shared, least),
            None => false,
        };
        // What an older segment leaves room for goes along.
        let start = match &self.thin {
            Some(_) if !QUIET => self.bundle(now, shared, payload, fin),
            Some(_) | None => seq,
        };
        self.sws_override = false;
        self.last_send = now;
        let pushed = seq + u64::from(len) >= self.end && !self.unpushed;
        let mark = |on: bool, flag: u8| if on { flag } else { 0 };
        let flags = mark(fin, FIN) | mark(pushed, PUSH);
        self.board.push(Record::new(now, seq, len, flags));
        self.nxt += u64::from(len);
        if payload < shared.mss {
            self.small_end = self.nxt;
        }
        let weight = self.board.weight(len);
        if !QUIET {
            if let Some(thin) = &mut self.thin {
                thin.on_sent(self.nxt);
            }
            self.fin_sent |= fin;
            self.zero_probe_out = false;
            self.prr_sent(weight);
            if self.state == CaState::Disorder {
                self.limited_sent += weight;
            }
        } else if let Some(agent) = &mut self.sack1 {
            agent.on_sent(now, self.nxt);
        }
        let board = &self.board;
        self.cc.on_sent(now, || Sent {
            bytes: Bytes(u64::from(payload)),
            in_flight: Bytes(board.pipe()),
            retransmission: false,
        });
        let stats = &mut *shared.stats;
        stats.bytes_sent += u64::from(payload);
        stats.segments_sent += 1;
        if !QUIET && self.tempo.is_some() {
            self.on_paced(now, shared, weight, true);
        }
        self.after_transmit(now, shared);
        Outgoing {
            seq: start,
            payload: payload + (seq - start) as u32,
            fin,
            push: group_ends || pushed,
            retransmission: false,
            cwr: !QUIET && core::mem::take(&mut self.cwr_pending),
        }
    }

    #[inline(never)]
    pub(in crate::tcp) fn retransmit(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        index: usize,
    ) -> Option<Outgoing> {
        if self.board.ring.get(index)?.len > shared.mss {
            self.board.split(index, shared.mss);
        }
        let alone = self.board.pipe() == 0;
        let before = self.board.ring.get(index)?.last_tx;
        let record = self.board.on_retransmit(now, index)?;
        if alone {
            self.cc.on_restart(now, now.since(self.last_send));
        }
        self.force = false;
        if self.thin.is_some() {
            self.note_loss(1, false);
        }
        self.episode.high_rxt = self.episode.high_rxt.max(record.end());
        if let Some(rack) = &mut self.rack {
            rack.on_retransmit(now, record.seq);
        }
        if self.episode.undo_marker != 0 {
            if self.episode.retrans_stamp == 0 {
                self.episode.retrans_stamp = shared.timestamp(now) | 1;
            }
            self.episode.undo_retrans += 1;
        }
        let weight = self.board.weight(record.len);
        self.prr_sent(weight);
        if self.tempo.is_some() {
            self.on_lost_again(before, weight);
        }
        let fin = record.is(FIN);
        let payload = record.len - u32::from(fin);
        self.last_send = now;
        let board = &self.board;
        self.cc.on_sent(now, || Sent {
            bytes: Bytes(u64::from(payload)),
            in_flight: Bytes(board.pipe()),
            retransmission: true,
        });
        shared.stats.bytes_sent += u64::from(payload);
        shared.stats.segments_sent += 1;
        shared.stats.retransmits += 1;
        if self.tempo.is_some() {
            self.on_paced(now, shared, weight, false);
        }
        if !shared.timers.armed() {
            let at = now + shared.rtt.rto(&shared.config.rto);
            shared.timers.arm(Timer::Rto, at); // RFC 6298 5.1
        } else if index == 0 && shared.timers.kind() == Some(Timer::Rto) && self.sack1.is_none() {
            // The timer is that of the first segment: what just left has all of it (Linux `tcp_xmit_retransmit_queue`).
            let at = now + self.clamped_rto(now, shared);
            if at > shared.timers.rto_at {
                shared.timers.arm(Timer::Rto, at);
            }
        }
        Some(Outgoing {
            seq: record.seq,
            payload,
            fin,
            push: match shared.config.offload_segments {
                Some(_) => record.is(PUSH),
                None => record.end() >= self.end,
            },
            retransmission: true,
            cwr: false,
        })
    }

    #[inline]
    fn prr_sent(&mut self, weight: u64) {
        if matches!(self.state, CaState::Recovery | CaState::Cwr) {
            self.episode.prr.on_sent(weight);
        }
    }

    /// Timers after new data left: RFC 6298 5.1, RFC 8985 7.2.
    #[inline]
    fn after_transmit(&mut self, now: Instant, shared: &mut Shared) {
        match shared.timers.kind() {
            None | Some(Timer::Persist) => {
                let at = now + shared.rtt.rto(&shared.config.rto);
                shared.timers.arm(Timer::Rto, at);
            }
            Some(_) => {}
        }
        if shared.config.tail_loss_probe != TailLossProbe::Off {
            let due = shared.config.tail_loss_probe_restart && shared.timers.is_due(Timer::Pto, now);
            let runs = self.probed == now && shared.timers.kind() == Some(Timer::Pto);
            if !due && !runs {
                self.arm_probe(now, shared);
            }
        }
    }
}
