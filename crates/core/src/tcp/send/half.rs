//! The sending half: what may be sent now, and which segment that is.
//!
//! A drain asks `next` until it says `None`: a probe that is due, then retransmissions, then new data, within the
//! congestion window (or recovery's) and the peer's window; then RFC 6675's last resorts.
//!
//! **Source.** RFC 9293 3.7.4, 3.8.6; RFC 5681; RFC 6675 `NextSeg`; RFC 3042; with `lone_fin` Linux `tcp_send_fin`.
//! **Deviations.** Fast retransmits may leave although the pipe exceeds the window (RFC 6675 4.3); a zero-window probe
//! carries one new octet that is not counted as sent until it is acknowledged, or nothing. `fin_beyond_window` lets a FIN
//! pass a full congestion window, but not a retransmission that waits. With `timeout_rules` of Linux no more is sent again than was lost
//! (`tcp_xmit_retransmit_queue`).

use crate::cc::{AnyController, CongestionController, Sent};
use crate::packet::Flags;
use crate::packet::Segment;
use crate::tcp::Shared;
use crate::tcp::ack::records::{FIN, PUSH, Record};
use crate::tcp::ack::scoreboard::Scoreboard;
use crate::tcp::ack::state::Recovery;
use crate::tcp::config::{TailLossProbe, TimeoutRules, WindowUnit};
use crate::tcp::open::attempts::Attempts;
use crate::tcp::send::offload::Wait;
use crate::tcp::send::tempo::Tempo;
use crate::tcp::send::thin::Thin;
use crate::tcp::state::lazy::Lazy;
use crate::tcp::state::timers::Timer;
use crate::tcp::state::types::CaState;
use crate::tcp::window::controller::Controller;
use crate::tcp::window::usage::Usage;
use crate::time::Instant;
use crate::units::Bytes;
use alloc::boxed::Box;
use serde::{Deserialize, Serialize};

/// State of the sending half; offsets count from our initial sequence number: 0 is the SYN, 1 the first byte.
#[derive(Serialize, Deserialize)]
pub(in crate::tcp) struct Sender {
    pub(in crate::tcp) board: Scoreboard,
    pub(in crate::tcp) cc: Controller,
    /// Loss detection and recovery.
    pub(in crate::tcp) recovery: Recovery,
    /// Whether the window is in use.
    pub(in crate::tcp) usage: Usage,
    /// State of bundling, separate writes or noted latencies; `None` if none of them is on.
    #[serde(skip)]
    pub(in crate::tcp) thin: Option<Box<Thin>>,
    /// What holds segments back, validates the window or measures rates, if anything does.
    #[serde(skip)]
    pub(in crate::tcp) tempo: Option<Box<Tempo>>,
    /// First offset not acknowledged.
    pub(in crate::tcp) una: u64,
    /// End of the last segment sent that was not full.
    pub(super) small_end: u64,
    /// Next offset to send.
    pub(in crate::tcp) nxt: u64,
    /// One past the last offset the application wrote, without FIN.
    pub(super) end: u64,
    pub(super) last_send: Instant,
    /// When a drain found the congestion window full, if no acknowledgment arrived since; `FAR_FUTURE`: it did not.
    pub(in crate::tcp) full_at: Instant,
    /// `full_at` was set before this drain began: the window is still to be validated when the drain ends.
    pub(in crate::tcp) shut: bool,
    /// How often the retransmission timer fired in a row.
    pub(in crate::tcp) attempts: Attempts,
    pub(super) persist_backoff: u8,
    pub(super) fin_queued: bool,
    pub(super) fin_sent: bool,
    /// The FIN waits: what was written before it is sent first, without it, until a drain can send no more.
    pub(super) fin_apart: bool,
    pub(super) probe_due: bool,
    pub(super) zero_probe_due: bool,
    pub(super) zero_probe_out: bool,
    pub(super) cwr_pending: bool,
    pub(super) sws_override: bool,
    /// Segments left in the group for offload.
    pub(super) group_left: u8,
    /// When it surely waits for a longer group.
    #[serde(skip)]
    pub(super) wait: Lazy<Wait>,
    /// More will be written at once: a partial segment waits for the next write or acknowledgment.
    pub(super) more: bool,
    /// A partial segment waits until the cork is taken out.
    pub(super) corked: bool,
    /// The end of what was written asks for no PSH.
    pub(super) unpushed: bool,
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
        let recovery = Recovery::new(shared, cc.keeps_window());
        if recovery.is_ns2() && shared.syn_lost > 0 {
            let segment = Bytes(u64::from(shared.mss));
            cc.set_window(now, cc.window(), segment + segment); // ns-2 halves the SYN's window of one
        }
        Sender {
            board: Scoreboard::new(shared.mss, config.window_unit != WindowUnit::Bytes),
            tempo: Tempo::new(now, shared, cc.uses_rates()),
            cc: Controller::new(cc),
            thin: if recovery.is_ns2() {
                None
            } else {
                Thin::new(config, shared.latencies)
            },
            recovery,
            usage: Usage::new(now),
            una: 1,
            small_end: 0,
            nxt: 1,
            end: 1,
            last_send: now,
            full_at: Instant::FAR_FUTURE,
            shut: false,
            attempts: Attempts::default(),
            persist_backoff: 0,
            fin_queued: false,
            fin_sent: false,
            fin_apart: false,
            probe_due: false,
            zero_probe_due: false,
            zero_probe_out: false,
            cwr_pending: false,
            sws_override: false,
            group_left: 0,
            wait: Lazy::default(),
            more: false,
            corked: false,
            unpushed: false,
        }
    }

    /// The window in force: recovery's or the controller's, at most `max_window`.
    #[inline]
    pub(in crate::tcp) fn window(&self, shared: &Shared) -> u64 {
        let window = match self.recovery.window() {
            Some(window) => window,
            None => self.cc.window().get(),
        };
        Sender::bounded(shared, window)
    }

    /// `window`, at most `max_window`.
    #[inline(always)]
    pub(in crate::tcp) fn bounded(shared: &Shared, window: u64) -> u64 {
        match shared.config.max_window_segments {
            Some(segments) => window.min(u64::from(segments) * u64::from(shared.mss)),
            None => window,
        }
    }

    /// What counts against the window.
    #[inline]
    pub(in crate::tcp) fn in_flight(&self, shared: &Shared) -> u64 {
        if self.recovery.state() == CaState::Disorder && !shared.config.limited_transmit {
            return self.board.out; // RFC 3042 off: duplicate ACKs free nothing
        }
        self.board.pipe()
    }

    /// The window in force, and what counts against it. `QUIET`: [`Sender::is_calm`].
    #[inline(always)]
    pub(in crate::tcp) fn window_and_in_flight<const QUIET: bool>(&self, shared: &Shared) -> (u64, u64) {
        if QUIET {
            (Sender::bounded(shared, self.cc.window().get()), self.board.out)
        } else {
            (self.window(shared), self.in_flight(shared))
        }
    }

    /// The next segment to send now. `QUIET`: [`Sender::is_calm`], so that new data is all there may be. `FULL`: so it is, and it
    /// [may send a full segment](Sender::may_send_full).
    #[inline(always)]
    pub(in crate::tcp) fn next<const QUIET: bool, const FULL: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
    ) -> Option<Outgoing> {
        let sent = self.allowed::<QUIET, FULL>(now, shared);
        if !QUIET && sent.is_none() && self.fin_apart {
            return self.place_fin(now, shared);
        }
        sent
    }

    #[inline(always)]
    fn allowed<const QUIET: bool, const FULL: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
    ) -> Option<Outgoing> {
        debug_assert!(!QUIET || self.is_calm(shared), "only while nothing is wrong");
        if QUIET {
            if self.full_at == now {
                return None;
            }
        } else {
            if self.probes_soon()
                && let Some(probe) = self.probe(now, shared)
            {
                return Some(probe);
            }
            if self.tempo.is_some() && self.is_held(now, shared) {
                return None;
            }
            if self.recovery.is_ns2() {
                let sent = self.next_sack1(now, shared);
                if sent.is_none() {
                    self.await_window(now, shared);
                    self.validate(now, shared, self.unsent() > 0);
                }
                return sent;
            }
            if self.recovery.frto_begins() && shared.config.timeout_rules == TimeoutRules::Linux {
                let fits =
                    |(payload, _)| self.in_flight(shared) + self.board.weight(payload) <= self.window(shared);
                if !self.new_length_if::<true>(shared).is_some_and(fits) {
                    self.recovery.end_frto(); // Linux `tcp_xmit_recovery`
                }
            }
            if self.board.marks.to_retransmit > 0
                && !(self.recovery.is_holding()
                    || self.has_resent_enough(shared)
                    || self.recovery.frto_sends() && self.new_length_if::<true>(shared).is_some())
            {
                return self.next_lost(now, shared);
            }
        }
        let mut limited = false;
        let length = if FULL {
            Some((shared.mss, false))
        } else if !QUIET && self.recovery.frto_sends() {
            self.new_length_if::<true>(shared) // Linux `tcp_xmit_recovery`: neither Nagle nor a cork holds anything back
        } else {
            self.new_or_full_length(shared)
        };
        if let Some((payload, fin)) = length {
            if !QUIET
                && shared.cold.is_some()
                && let Some(probe) = self.mtu_probe(now, shared)
            {
                return Some(probe);
            }
            if shared.config.offload_deferral
                && let Some(full) = self.deferred::<QUIET>(now, shared)
            {
                self.validate(now, shared, full);
                return None;
            }
            // ns-2's agent takes nothing for a pause.
            if self.board.out == 0 && self.una == self.nxt && !self.recovery.is_ns2() {
                self.after_idle(now, shared);
            }
            // The FIN needs no room: a last segment that is full must fit a window of one segment.
            let (window, in_flight) = self.window_and_in_flight::<QUIET>(shared);
            let regardless = !QUIET && (self.recovery.frto_sends() || fin && shared.config.fin_beyond_window);
            let weight = self.board.weight(payload);
            if regardless || in_flight + weight <= window {
                let sent = self.transmit::<QUIET, FULL>(now, shared, payload, fin);
                if QUIET && self.is_full::<FULL>(shared, weight) && self.may_send_full(shared) {
                    self.full_at = now; // nothing else may leave before an acknowledgment: the drain ends here
                    self.validate(now, shared, true);
                }
                return Some(sent);
            }
            limited = true;
        } else if !QUIET
            && !self.recovery.is_holding()
            && let Some(sent) = self.last_resort(now, shared)
        {
            return Some(sent);
        } else {
            self.await_window(now, shared);
        }
        limited |= QUIET && self.recovery.is_ns2() && self.unsent() > 0;
        self.validate(now, shared, limited);
        None
    }

    /// Whether as much is under way again as was lost: after a timeout that was taken back its retransmission counts for a later loss
    /// (Linux `tcp_xmit_retransmit_queue`).
    fn has_resent_enough(&self, shared: &Shared) -> bool {
        let marks = &self.board.marks;
        shared.config.timeout_rules == TimeoutRules::Linux
            && marks.retrans >= marks.lost
            && !(self.recovery.state() == CaState::Loss && self.recovery.is_forced()) // a timeout sends the first again regardless
    }

    /// The lowest segment that is judged lost, if the window has room for it.
    #[inline(never)]
    fn next_lost(&mut self, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        let mut limited = true;
        if let Some(index) = self.board.next_lost() {
            let weight = self.board.weight(self.board.ring[index].payload());
            let fits = self.recovery.is_forced() || self.in_flight(shared) + weight <= self.window(shared);
            if fits && self.may_resend(shared, index).is_some() {
                return self.retransmit(now, shared, index);
            }
            limited = !fits; // or the peer's window is the limit
        }
        self.validate(now, shared, limited);
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

    /// What is sent when nothing is known to be lost, there is no new data, and the window has room.
    #[inline(never)]
    fn last_resort(&mut self, now: Instant, shared: &mut Shared) -> Option<Outgoing> {
        if !self.recovery.has_last_resort(shared.sack)
            || self.in_flight(shared) + u64::from(shared.mss) > self.window(shared)
        {
            return None;
        }
        let chosen = self.recovery.last_resort(&mut self.board, self.una)?;
        if self.may_resend(shared, chosen.index).is_none() {
            self.recovery.keep_last_resort(&chosen); // until the window opens
            return None;
        }
        let sent = self.retransmit(now, shared, chosen.index);
        self.recovery.after_last_resort(chosen);
        sent
    }

    /// Whether the congestion window has no room for a full segment, while nothing is wrong, after one that weighs `last`. `FULL`:
    /// that was a full one, too.
    #[inline(always)]
    fn is_full<const FULL: bool>(&self, shared: &Shared, last: u64) -> bool {
        let weight = if FULL { last } else { self.board.weight(shared.mss) };
        self.board.out + weight > Sender::bounded(shared, self.cc.window().get())
    }

    /// New data leaves: `payload` bytes, and the FIN if it goes along. `FULL`: these are a full segment, and more waits.
    #[inline(always)]
    pub(in crate::tcp) fn transmit<const QUIET: bool, const FULL: bool>(
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
            Some(least) => self.group_ends::<QUIET>(now, shared, least),
            None => false,
        };
        // What an older segment leaves room for goes along.
        let start = match &self.thin {
            Some(_) if !QUIET => self.bundle(now, shared, payload, fin),
            Some(_) | None => seq,
        };
        let woken = core::mem::take(&mut self.sws_override);
        self.last_send = now;
        // Also what the timer of a shut window sends (Linux `tcp_write_wakeup`).
        let pushed = !FULL && (woken || seq + u64::from(len) >= self.end && !self.unpushed);
        let mark = |on: bool, flag: u8| if on { flag } else { 0 };
        let flags = mark(fin, FIN) | mark(pushed, PUSH);
        self.board.push(Record::new(now, seq, len, flags));
        self.nxt += u64::from(len);
        if !FULL && payload < shared.mss {
            self.small_end = self.nxt;
        }
        let weight = self.board.weight(len);
        if !QUIET {
            if let Some(thin) = &mut self.thin {
                thin.on_sent(self.nxt);
            }
            self.fin_sent |= fin;
            self.zero_probe_out = false;
        }
        self.recovery.on_sent::<QUIET>(now, self.nxt, weight);
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
        self.after_transmit::<QUIET>(now, shared);
        if !QUIET && woken && shared.config.timeout_rules == TimeoutRules::Linux {
            self.leave_unprobed(now, shared);
        }
        Outgoing {
            seq: start,
            payload: payload + (seq - start) as u32,
            fin,
            push: group_ends || pushed,
            retransmission: false,
            cwr: !QUIET && core::mem::take(&mut self.cwr_pending),
        }
    }

    /// What is at `index` was lost and leaves again.
    pub(in crate::tcp) fn retransmit(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        index: usize,
    ) -> Option<Outgoing> {
        if self.thin.is_some() {
            self.note_loss(1, false);
        }
        self.resend(now, shared, index)
    }

    #[inline(never)]
    pub(in crate::tcp) fn resend(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        index: usize,
    ) -> Option<Outgoing> {
        let most = self.may_resend(shared, index)?;
        if self.board.ring.get(index)?.len > most {
            self.board.split(index, most);
        } else if shared.config.collapse_retransmissions {
            self.board.join(index, shared.mss, shared.peer.edge());
        }
        let alone = self.board.pipe() == 0;
        let before = self.board.ring.get(index)?.last_tx;
        let record = self.board.on_retransmit(now, index)?;
        if alone {
            self.cc.on_restart(now, now.since(self.last_send));
        }
        let weight = self.board.weight(record.len);
        self.recovery.on_retransmit(now, shared, &record, weight);
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
            shared.arm(now, Timer::Rto, at); // RFC 6298 5.1
        } else if index == 0 && shared.timers.kind() == Some(Timer::Rto) && !self.recovery.is_ns2() {
            // The timer is that of the first segment: what just left has all of it (Linux `tcp_xmit_retransmit_queue`).
            let at = now + self.attempts.clamped_rto(now, shared);
            if at > shared.timers.rto_at() {
                shared.arm(now, Timer::Rto, at);
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

    /// Data left on the SYN up to `nxt`, of which the peer took what is before `una`.
    pub(in crate::tcp) fn after_syn_data(&mut self, now: Instant, sent_at: Instant, una: u64, nxt: u64) {
        (self.una, self.nxt) = (una, nxt);
        if una < nxt {
            // PSH whatever else was written (Linux `tcp_send_syn_data`).
            self.board
                .push(Record::new(sent_at, una, (nxt - una) as u32, PUSH));
            // RFC 7413 4.1.3: at once, and it says nothing about congestion.
            self.board.mark_lost(0);
            self.resend_without_reduction(now);
        }
    }

    /// A tail loss probe is due at the next drain.
    pub(in crate::tcp) fn request_probe(&mut self) {
        self.probe_due = true;
    }

    /// The next new segment carries CWR (RFC 3168 6.1.2).
    pub(in crate::tcp) fn announce_reduction(&mut self) {
        self.cwr_pending = true;
    }

    /// The reduction was a mistake.
    pub(in crate::tcp) fn withdraw_announcement(&mut self) {
        self.cwr_pending = false;
    }

    /// Timers after new data left: RFC 6298 5.1, RFC 8985 7.2.
    #[inline(always)]
    fn after_transmit<const QUIET: bool>(&mut self, now: Instant, shared: &mut Shared) {
        if shared.timers.is_put_off_at(now) {
            shared.timers.note_sent();
            return; // what is sent at the moment of the acknowledgment has no timer but the one that this sets
        }
        self.settle_timer(shared);
        if matches!(shared.timers.kind(), None | Some(Timer::Persist)) {
            let at = now + shared.rtt.rto(&shared.config.rto);
            shared.arm(now, Timer::Rto, at);
        }
        if shared.config.tail_loss_probe != TailLossProbe::Off
            && !(self.recovery.probe_set_at(now) && shared.timers.kind() == Some(Timer::Pto))
        {
            self.probe_after_transmit(now, shared);
        }
    }

    /// A probe timer that is due and counts from the first segment stays.
    #[inline(never)]
    fn probe_after_transmit(&mut self, now: Instant, shared: &mut Shared) {
        if !(shared.config.tail_loss_probe_restart && shared.timers.is_due(Timer::Pto, now)) {
            self.recovery.arm_probe::<false>(now, shared, &self.board, true);
        }
    }
}

impl Sender {
    /// Whether nothing is wrong: no loss, SACK, probe or episode to look at, and nothing but data to send.
    pub(in crate::tcp) fn is_calm(&self, shared: &Shared) -> bool {
        shared.predict
            && self.recovery.is_calm(shared, self.una, self.nxt)
            && self.tempo.is_none()
            && self.thin.is_none()
            && self.board.is_calm(self.una)
            && !(self.probe_due | self.zero_probe_due | self.zero_probe_out | self.cwr_pending)
            && !(self.fin_queued | self.fin_sent)
            && (!self.recovery.is_ns2() || self.board.unit > 0)
    }

    /// Whether an acknowledgment up to offset `ack` is nothing but progress of whole segments.
    #[inline(always)]
    pub(in crate::tcp) fn is_quiet(&self, shared: &Shared, segment: &Segment, ack: u64) -> bool {
        shared.fast.acks()
            && segment.sack_blocks() == 0
            && self.board.ring.front().is_some_and(|first| first.end() <= ack)
            && !(shared.fast.undo() && self.recovery.shows_mistake(shared, segment))
            && !(shared.ecn && (shared.accecn.is_some() || segment.flags.contains(Flags::ECE)))
    }

    /// Asserts what holds after every event, `written` bytes of the application included.
    pub(in crate::tcp) fn check(&self, shared: &Shared, written: u64) {
        let (una, nxt) = (self.una, self.nxt);
        assert!(
            1 <= una && una <= nxt && nxt <= self.end + u64::from(self.fin_sent) && self.end <= 1 + written,
            "SND.UNA {una}, SND.NXT {nxt}, end {}, written {written}",
            self.end
        );
        self.recovery.check(nxt);
        assert!(
            self.cc.window().get() >= u64::from(shared.mss),
            "the window is at least one segment: {}",
            self.cc.window()
        );
        self.board.check_ends(una, nxt);
    }
}
