//! When what may be sent leaves: pacing.
//!
//! Pacing lets a segment go every SRTT / window, divided by a factor: each window is spread over a round trip. Linux's form runs
//! ahead of the window: twice as fast in slow start, 1.2 times after it. The first window alone is
//! [spread](crate::tcp::send::spreading). A controller that computes a rate of its own is paced by it, and may send several segments at once
//! (`send_quantum`), as Linux hands them down (`tcp_tso_autosize`).
//!
//! **Source.** Aggarwal, Savage and Anderson, INFOCOM 2000; Linux `tcp_update_pacing_rate`, `tcp_update_skb_after_send`;
//! RFC 7661 4.4.3 (pacing in the non-validated phase).
//! **Deviations.** Where the rate follows the window, a gap follows each segment; Linux lets two segments or a millisecond of the rate go as
//! one, and more towards a near peer (`tcp_tso_rtt_log`). After a pause it shortens the next gap by half at most; here by nothing, or where
//! segments leave one by one by a millisecond.

use crate::tcp::Shared;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::config::{Pacing, WindowValidation};
use crate::tcp::send::half::Sender;
use crate::tcp::send::tempo::Tempo;
use crate::tcp::state::types::CaState;
use crate::tcp::window::rates::Rates;
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};

/// How fast segments may follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    /// Between full segments.
    gap: Duration,
    /// Segments that may leave together after a pause.
    quantum: u64,
    /// Segments that leave together, with the gaps of all of them behind the last.
    group: u64,
}

impl Sender {
    /// Whether something may be sent, but not yet; then the timer is set.
    pub(in crate::tcp) fn is_held(&mut self, now: Instant, shared: &mut Shared) -> bool {
        if !self.could_send(shared) {
            return false;
        }
        self.refresh_validation(now, shared);
        if self.is_held_by_host(now, shared) {
            let full = self.in_flight(shared) + self.board.weight(shared.mss) > self.window(shared);
            self.validate(now, shared, full);
            return true;
        }
        let Some(until) = self.held_until(now, shared) else {
            return false;
        };
        shared.timers.pace = until;
        // Linux's pacing runs ahead of the window, which is the limit if what is in flight fills it (`tcp_write_xmit`). Under a pacer that
        // follows the window it is the limit if what waits would fill it, too: what the application writes below that is limited by the
        // application (RFC 9438 5.8). A preserved window is another matter (RFC 7661 4.3).
        let follows = shared.config.pacing != Pacing::Linux && !self.is_nonvalidated();
        let waiting = if follows { self.waiting(shared) } else { 0 };
        let limited = self.in_flight(shared) + waiting + self.board.weight(shared.mss) > self.window(shared);
        self.validate(now, shared, limited);
        true
    }

    /// What the peer's window admits now of what is to be sent, or sent again, as the window counts it.
    fn waiting(&self, shared: &Shared) -> u64 {
        let end = self.end.min(shared.peer.edge());
        let new = match self.board.unit {
            0 => end.saturating_sub(self.nxt),
            unit => self.segments_until(end, shared.mss) * u64::from(unit),
        };
        new + u64::from(self.board.marks.to_retransmit) * self.board.weight(shared.mss)
    }

    fn could_send(&self, shared: &Shared) -> bool {
        if self.recovery.is_ns2() {
            return self.unsent() > 0 || self.board.out > 0;
        }
        let fits = |len| {
            self.recovery.is_forced()
                || self.in_flight(shared) + self.board.weight(len) <= self.window(shared)
        };
        (self.board.marks.to_retransmit > 0 && !self.recovery.is_holding() && fits(shared.mss))
            || self.new_or_full_length(shared).is_some_and(|(len, _)| fits(len))
    }

    fn held_until(&mut self, now: Instant, shared: &Shared) -> Option<Instant> {
        let tempo = self.tempo.as_deref_mut()?;
        if let Some(spread) = tempo.spread {
            if spread.is_over(now) {
                tempo.spread = None;
            } else {
                return spread.held_until(now);
            }
        }
        if tempo.is_in_group(now) {
            return None;
        }
        let next_at = tempo.next_at;
        (next_at > now && self.pace(now, shared).is_some()).then_some(next_at)
    }

    /// Whether segments leave one by one, or in quanta of the controller.
    pub(super) fn is_spaced(&self, shared: &Shared) -> bool {
        self.tempo.as_deref().is_some_and(|tempo| {
            tempo.spread.is_some()
                || tempo.is_nonvalidated()
                || shared.config.pacing != Pacing::Off
                || self.cc.pacing_rate().is_some()
        })
    }

    /// `None`: whenever the window allows.
    fn pace(&self, now: Instant, shared: &Shared) -> Option<Pace> {
        let tempo = self.tempo.as_deref()?;
        let mss = self.board.weight(shared.mss);
        if let Some(rate) = self.cc.pacing_rate() {
            if rate == Rate::UNLIMITED || rate.bps() == 0 {
                return None;
            }
            let group = self.cc.send_quantum().get() / mss.max(1);
            return Some(Pace {
                gap: rate.time_for(Bytes(mss)),
                // Who hands segments down in groups saves up no more than a group.
                quantum: if group < 2 { burst(rate, mss) } else { 1 },
                group,
            });
        }
        let srtt = shared.rtt.srtt()?;
        let window = self.cc.window().get().max(mss);
        if shared.config.window_validation != WindowValidation::NewCwvUnpaced
            && let Some(validation) = &tempo.validation
            && validation.is_nonvalidated()
            && shared.config.pacing == Pacing::Off
        {
            let per_rtt = validation.restart_window(now, window, srtt).max(mss);
            return Some(Pace {
                gap: srtt.mul_div(mss, per_rtt),
                quantum: NONVALIDATED_QUANTUM,
                group: 1,
            });
        }
        match shared.config.pacing {
            Pacing::Off => None,
            Pacing::Full => Some(Pace {
                gap: srtt.mul_div(mss, window),
                quantum: 1,
                group: 1,
            }),
            Pacing::Linux => {
                if shared.stats.segments_sent < UNPACED {
                    return None;
                }
                let growing = window < self.cc.ssthresh().get() / 2;
                let percent = if growing { 200 } else { 120 };
                Some(Pace {
                    gap: srtt.mul_div(mss * 100, window.max(self.board.out) * percent),
                    quantum: 1,
                    group: 1,
                })
            }
        }
    }

    /// A segment left.
    pub(in crate::tcp) fn on_paced(&mut self, now: Instant, shared: &Shared, weight: u64, new: bool) {
        let pace = self.pace(now, shared);
        let mss = self.board.weight(shared.mss);
        let in_flight = self.board.pipe();
        let Some(tempo) = self.tempo.as_deref_mut() else {
            return;
        };
        if let Some(rates) = &mut tempo.rates {
            rates.on_sent(now, weight, in_flight);
        }
        if let Some(pace) = pace {
            // Time that passed in silence counts, as far as the quantum goes.
            let credit = pace.gap.saturating_mul(pace.quantum.saturating_sub(1));
            let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos()));
            tempo.next_at = tempo.next_at.max(earliest) + pace.gap.mul_div(weight, mss.max(1));
            tempo.count_in_group(now, pace.group);
        }
        if let Some(spread) = &mut tempo.spread
            && new
        {
            spread.on_sent(now, shared);
            if spread.is_over(now) {
                tempo.spread = None;
            }
        }
        if tempo.is_over(&shared.config) {
            self.tempo = None;
        }
    }

    /// A loss or a timeout ends the spreading of the first window, and what is learnt from it.
    pub(in crate::tcp) fn end_spreading(&mut self) {
        if let Some(tempo) = &mut self.tempo {
            tempo.spread = None;
            tempo.train = None;
        }
    }

    /// Nothing was sent yet, and more is known about the path.
    pub(in crate::tcp) fn begin_spreading(&mut self, now: Instant, shared: &Shared) {
        if self.nxt == 1 {
            self.tempo = Tempo::new(now, shared, self.cc.uses_rates());
        }
    }

    /// What an acknowledgment of `bytes` in order, or of none, says of the path.
    pub(in crate::tcp) fn observe_path(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        delivery: &Delivery,
        bytes: u64,
    ) {
        let more = self.nxt > self.una;
        let calm = self.recovery.state() == CaState::Open;
        if let Some(tempo) = self.tempo.as_deref_mut() {
            tempo.observe_path(now, shared, delivery, bytes, more, calm);
        }
        self.forget_host(now);
        self.end_tempo(shared);
    }

    /// After the last segment that was to be spread or measured nothing is left to ask.
    fn end_tempo(&mut self, shared: &Shared) {
        if self
            .tempo
            .as_deref()
            .is_some_and(|tempo| tempo.is_over(&shared.config))
        {
            self.tempo = None;
        }
    }

    /// The delivery rates, if the controller asks for them.
    pub(in crate::tcp) fn rates(&mut self) -> Option<&mut Rates> {
        self.tempo.as_deref_mut()?.rates.as_mut()
    }

    /// The rate sample of an acknowledgment.
    pub(in crate::tcp) fn sample_rate(&mut self, now: Instant, shared: &Shared, delivery: &mut Delivery) {
        let una = self.una;
        let over = delivery.advanced && !matches!(self.recovery.state(), CaState::Recovery | CaState::Loss);
        let Some(rates) = self.rates() else {
            return;
        };
        let before = rates.counted_before(delivery.delivered, delivery.segments, una, over);
        let new = delivery.delivered + delivery.credited - before;
        delivery.rate = rates.on_delivered(now, new, delivery.newest_tx, shared.rtt.min());
        let total = &mut self.recovery.delivered_total;
        *total = total.saturating_sub(before) + delivery.credited;
    }

    /// The application is about to write. It was the limit (Linux `tcp_rate_check_app_limited`) if all was sent, what is out does not
    /// fill the window, and nothing is still to be sent again.
    pub(in crate::tcp) fn note_app_limited(&mut self, shared: &Shared) {
        let pipe = self.board.pipe();
        let idle = self.unsent() < u64::from(shared.mss)
            && pipe < self.window(shared)
            && self.board.marks.to_retransmit == 0;
        if idle && let Some(rates) = self.rates() {
            rates.on_app_limited(pipe);
        }
    }
}

/// Segments of a burst: a millisecond of the rate.
fn burst(rate: Rate, mss: u64) -> u64 {
    let bytes = rate.bytes_in(Duration::from_millis(1)).get().min(LARGEST_BURST);
    (bytes / mss.max(1)).max(1)
}

/// Segments that leave at once in the non-validated phase (docs/design/window-validation.md#paced).
const NONVALIDATED_QUANTUM: u64 = 10;
/// Linux holds nothing back before the tenth segment.
const UNPACED: u64 = 10;
/// 64 KiB: what offload takes.
const LARGEST_BURST: u64 = 65_536;
