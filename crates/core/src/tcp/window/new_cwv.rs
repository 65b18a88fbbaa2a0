//! New-CWV: a sender that its application limits keeps the window it earned, and answers a loss by what it really used.
//!
//! pipeACK, the most acknowledged in a round trip of the last second or three round trips, shows what is used. While it is below
//! half of the window the window is not validated: it stays, grows only where it is full, and a loss halves what was used
//! instead. After five minutes of that it halves.
//!
//! **Source.** RFC 7661.
//! **Deviations.** A sample spans what was sent in a round trip as the first ACK after a pause finds it; a pause gives none
//! (RFC 7661 leaves it open). A window that is full stays validated until a sampling period after the last ACK: in slow start
//! pipeACK is half of the window or less although nothing but the window is the limit. Samples are kept in five bins of a fifth of the period (4.5.1 allows it). Samples that all expired are a
//! pipeACK of zero. A pause that begins while pipeACK is undefined, right after a recovery or a timeout, ages the window too, from a sampling period after
//! the last ACK: 4.2 calls such a window validated until the next sample, so an hour of silence would cost it nothing. ECN counts as a loss with nothing lost (4.4.1 names no R for it); a delay-based reduction is the controller's own.
//! Retransmitted bytes count once each (4.4.1's R), not with each retransmission. In the non-validated phase segments leave at
//! window / SRTT after the first ten (4.4.3: SHOULD; the numbers are ours). `Probing` is not in the RFC: after a pause it sends at the
//! rate that pipeACK had, for one sampling period, and at half of it if the first RTTs are a quarter above the smallest known.
//! Whatever it sets in the controller's place begins an epoch of CUBIC anew, under Linux's arithmetic too (the RFC is silent; RFC 9438 4.2
//! begins one at every congestion event). A pause only moves the epoch by its length, as RFC 9438 4.2 and Linux have it.

use crate::cc::CongestionKind;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::config::WindowValidation;
use crate::tcp::window::usage::View;
use crate::time::{Duration, Instant};
use crate::units::Bytes;

/// New-CWV's state; amounts are in what the window counts.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Validation {
    probing: bool,
    /// Largest sample of each bin with its begin, newest last.
    bins: [(Instant, u64); BINS],
    used: usize,
    /// pipeACK is defined.
    defined: bool,
    /// Acknowledged so far.
    acked: u64,
    /// `acked` when this sample's round trip began.
    prior_acked: u64,
    /// The sample ends when this offset is acknowledged.
    prior_nxt: u64,
    /// Data left after a pause: the next ACK begins a round trip.
    fresh: bool,
    /// Since when the window is not validated.
    since: Option<Instant>,
    /// When the last ACK of new data came.
    acked_at: Instant,
    /// Until when the window has aged while pipeACK was undefined.
    aged: Instant,
    episode: Option<Episode>,
    /// A loss or a mark is being answered, by whomever.
    answering: bool,
    /// Window and threshold before the last episode, which an acknowledgment that comes with its end or later may show to be a mistake.
    prior: Option<(Bytes, Bytes)>,
    /// The largest pipeACK before the pause.
    earned: u64,
    restart: Option<Restart>,
    /// What the last loss probe sent again.
    probed: u64,
}

/// A loss or a mark in the non-validated phase.
#[derive(Clone, Copy, Debug)]
struct Episode {
    begin: Instant,
    /// max(pipeACK, LossFlightSize).
    used: u64,
    /// R: what was retransmitted, each byte once, also by the loss probe whose outcome began it.
    lost: u64,
    /// Window and threshold before it.
    prior: (Bytes, Bytes),
}

/// After a pause (`Probing`).
#[derive(Clone, Copy, Debug)]
struct Restart {
    at: Instant,
    known: Option<Duration>,
    seen: Duration,
}

impl Validation {
    pub(in crate::tcp) fn new(kind: WindowValidation) -> Option<Validation> {
        let probing = match kind {
            WindowValidation::None | WindowValidation::Rfc5681 | WindowValidation::Rfc2861 => return None,
            WindowValidation::NewCwv | WindowValidation::NewCwvUnpaced => false,
            WindowValidation::NewCwvProbing => true,
        };
        Some(Validation {
            probing,
            bins: [(Instant::ZERO, 0); BINS],
            used: 0,
            defined: false,
            acked: 0,
            prior_acked: 0,
            prior_nxt: 0,
            fresh: true,
            since: None,
            acked_at: Instant::ZERO,
            aged: Instant::ZERO,
            episode: None,
            answering: false,
            prior: None,
            earned: 0,
            restart: None,
            probed: 0,
        })
    }

    pub(in crate::tcp) const fn is_nonvalidated(&self) -> bool {
        self.since.is_some()
    }

    /// pipeACK; `None`: undefined.
    pub(in crate::tcp) fn pipe_ack(&self, now: Instant, period: Duration) -> Option<u64> {
        let recent = |bin: &&(Instant, u64)| now.since(bin.0) < period;
        let bins = self.bins[..self.used].iter();
        self.defined
            .then(|| bins.filter(recent).map(|bin| bin.1).max().unwrap_or(0))
    }

    fn take(&mut self, now: Instant, period: Duration, sample: u64) {
        self.defined = true;
        if let Some(bin) = self.bins[..self.used].last_mut()
            && now.since(bin.0) < period.mul_div(1, BINS as u64)
        {
            bin.1 = bin.1.max(sample);
            return;
        }
        if self.used == BINS {
            self.bins.rotate_left(1);
            self.used -= 1;
        }
        self.bins[self.used] = (now, sample);
        self.used += 1;
    }

    /// After a recovery or a timeout pipeACK is undefined, and the window validated (RFC 7661 4.2).
    fn forget(&mut self) {
        self.used = 0;
        self.defined = false;
        self.since = None;
        self.fresh = true;
    }

    /// RFC 7661 4.3. Equality keeps the phase, and a window that is `full` is in use as long as ACKs come: pipeACK lags behind slow start.
    fn judge(&mut self, now: Instant, period: Duration, window: u64, full: bool) {
        // What was full before a pause is not in use during the pause.
        let used_until = self.acked_at + if full { period } else { Duration::ZERO };
        match self.pipe_ack(now, period) {
            None => self.since = None,
            Some(pipe) if 2 * pipe > window => self.since = None,
            Some(pipe) if 2 * pipe < window && self.since.is_none() && used_until <= now => {
                // It fell when the last sample expired that was large enough, and the window was no longer in use.
                let bins = self.bins[..self.used].iter();
                let large = bins.filter(|bin| 2 * bin.1 >= window).map(|bin| bin.0 + period);
                self.since = large.chain([used_until]).max().map(|at| at.min(now));
            }
            Some(_) => {}
        }
    }

    /// What a round trip may carry after a pause.
    pub(in crate::tcp) fn restart_window(&self, now: Instant, window: u64, srtt: Duration) -> u64 {
        match self.restart {
            Some(restart) if now.since(restart.at) < period(Some(srtt)) => {
                let risen = restart
                    .known
                    .is_some_and(|known| restart.seen != Duration::MAX && restart.seen > known.mul_div(5, 4));
                let earned = self.earned.clamp(1, window);
                if risen { earned / 2 } else { earned }
            }
            Some(_) | None => window,
        }
    }

    /// The first data after nothing was out.
    pub(in crate::tcp) fn on_first_out(&mut self) {
        self.fresh = true;
    }

    /// The first data after a pause longer than the RTO; `min_rtt`: the smallest RTT, if known.
    pub(in crate::tcp) fn on_pause(&mut self, now: Instant, min_rtt: Option<Duration>) {
        if self.probing {
            self.restart = Some(Restart {
                at: now,
                known: min_rtt,
                seen: Duration::MAX,
            });
        }
    }

    /// An acknowledgment up to `una`, with data sent up to `nxt`: a sample, if it ends a round trip. While `recovering`
    /// from a loss there is none (RFC 7661 4.2).
    pub(in crate::tcp) fn on_ack(
        &mut self,
        now: Instant,
        view: &View,
        delivery: &Delivery,
        (una, nxt): (u64, u64),
        recovering: bool,
    ) {
        if let (Some(restart), Some(rtt)) = (&mut self.restart, delivery.rtt) {
            restart.seen = restart.seen.min(rtt);
        }
        if !delivery.advanced {
            return;
        }
        self.acked_at = now;
        let before = self.acked;
        self.acked += delivery.acked;
        if recovering {
            return;
        }
        let period = period(view.srtt);
        if self.fresh {
            self.fresh = false;
            (self.prior_acked, self.prior_nxt) = (before, nxt);
        }
        if una >= self.prior_nxt {
            let sample = self.acked - self.prior_acked;
            (self.prior_acked, self.prior_nxt) = (self.acked, nxt);
            self.take(now, period, sample);
            // What follows a pause at the pace of before it does not set that pace.
            if self.restart.is_none_or(|restart| now.since(restart.at) >= period) {
                self.earned = self.pipe_ack(now, period).unwrap_or(0);
            }
        }
        self.judge(now, period, view.window.get(), view.full);
    }

    /// Before data leaves: the phase, and the window and the threshold that five minutes of it make, if they change
    /// (RFC 7661 4.4.2).
    pub(in crate::tcp) fn before_sending(&mut self, now: Instant, view: &View) -> Option<(Bytes, Bytes)> {
        let period = period(view.srtt);
        self.judge(now, period, view.window.get(), view.full);
        let since = match self.since {
            Some(since) => since,
            // Not validated by what is known, but by not knowing: a pause is a pause.
            None if !self.defined && self.acked > 0 => self.aged.max(self.acked_at + period),
            None => return None,
        };
        let (mut reduced, mut ssthresh) = (view.window, view.ssthresh);
        let periods = now.since(since).as_nanos() / NONVALIDATED_PERIOD.as_nanos();
        for _ in 0..periods.min(64) {
            ssthresh = ssthresh.max(reduced * 3 / 4);
            reduced = (reduced / 2).max(view.restart.min(reduced));
        }
        let aged = since + NONVALIDATED_PERIOD.saturating_mul(periods);
        match &mut self.since {
            Some(since) => *since = aged,
            None => self.aged = aged,
        }
        (reduced != view.window || ssthresh != view.ssthresh).then(|| (view.whole(reduced), ssthresh))
    }

    /// A loss or a mark with `flight` outstanding: in the non-validated phase the answer is half of what was used
    /// (RFC 7661 4.4.1). `None`: the answer is the controller's.
    pub(in crate::tcp) fn on_congestion(
        &mut self,
        now: Instant,
        view: &View,
        kind: CongestionKind,
        flight: u64,
    ) -> Option<Bytes> {
        // What an earlier one left behind is no answer to this one.
        (self.episode, self.prior) = (None, None);
        self.answering = matches!(kind, CongestionKind::Loss | CongestionKind::Ecn);
        if !self.answering {
            return None;
        }
        let period = period(view.srtt);
        self.judge(now, period, view.window.get(), view.full);
        self.since?;
        let used = self.pipe_ack(now, period).unwrap_or(0).max(flight);
        self.episode = Some(Episode {
            begin: now,
            used,
            lost: 0,
            prior: (view.window, view.ssthresh),
        });
        Some(at_least_a_segment(view, used / 2))
    }

    /// A recovery begins that an earlier reduction answers: pipeACK is undefined after it.
    pub(in crate::tcp) fn on_recovery_begin(&mut self) {
        self.answering = true;
    }

    /// A segment that left at `sent_at` leaves again.
    pub(in crate::tcp) fn on_lost_again(&mut self, sent_at: Instant, weight: u64) {
        if let Some(episode) = &mut self.episode
            && sent_at < episode.begin
        {
            episode.lost += weight;
        }
    }

    /// A loss probe sent `weight` again before any answer.
    pub(in crate::tcp) fn on_probe(&mut self, weight: u64) {
        self.probed = weight;
    }

    /// What the last loss probe sent again was lost: R counts it, too.
    pub(in crate::tcp) fn count_probe(&mut self) {
        if let Some(episode) = &mut self.episode {
            episode.lost += self.probed;
        }
    }

    /// Recovery, or the answer to a mark, is over: the window that is left, if the answer was New-CWV's.
    pub(in crate::tcp) fn on_recovery_end(&mut self, view: &View) -> Option<Bytes> {
        // A reduction for delay is no congestion in the sense of RFC 7661: what is known stays.
        if !core::mem::take(&mut self.answering) {
            return None;
        }
        let episode = self.episode.take();
        self.prior = episode.map(|episode| episode.prior);
        self.forget();
        // RFC 7661 4.4.1: (max(pipeACK, LossFlightSize) - R) / 2
        episode.map(|episode| at_least_a_segment(view, episode.used.saturating_sub(episode.lost) / 2))
    }

    /// The reduction was a mistake: window and threshold of before it, if the answer was New-CWV's.
    pub(in crate::tcp) fn take_back(&mut self) -> Option<(Bytes, Bytes)> {
        let episode = self.episode.take().map(|episode| episode.prior);
        episode.or(self.prior.take())
    }

    /// A timeout: the standard answer, and nothing is known any more.
    pub(in crate::tcp) fn on_timeout(&mut self) {
        (self.episode, self.prior, self.answering) = (None, None, false);
        self.forget();
    }
}

fn at_least_a_segment(view: &View, amount: u64) -> Bytes {
    view.whole(Bytes(amount)).max(Bytes(u64::from(view.mss)))
}

/// The sampling period (RFC 7661 4.2).
fn period(srtt: Option<Duration>) -> Duration {
    srtt.unwrap_or_default()
        .saturating_mul(3)
        .max(Duration::from_secs(1))
}

const BINS: usize = 5;
/// RFC 7661 4.4.2: NVP.
const NONVALIDATED_PERIOD: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::{NONVALIDATED_PERIOD, Validation};
    use crate::tcp::WindowValidation;
    use crate::time::{Duration, Instant};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const PERIOD: Duration = Duration::from_secs(1);

    fn at(ms: u64) -> Instant {
        Instant::from_millis(1_000_000 + ms)
    }

    fn fresh() -> Validation {
        Validation::new(WindowValidation::NewCwv).expect("New-CWV")
    }

    /// Samples 5, 3, none, 4, 2 in a period; then the first expires (docs/design/window-validation.md#pipeack-example).
    #[test]
    fn pipe_ack_is_the_largest_sample_of_a_period() {
        let mut validation = fresh();
        assert_eq!(validation.pipe_ack(at(0), PERIOD), None);
        for (ms, sample) in [(0, 5), (200, 3), (600, 4), (800, 2)] {
            validation.take(at(ms), PERIOD, sample);
            assert_eq!(validation.pipe_ack(at(ms), PERIOD), Some(5), "{ms}");
        }
        assert_eq!(validation.pipe_ack(at(999), PERIOD), Some(5));
        assert_eq!(validation.pipe_ack(at(1000), PERIOD), Some(4));
        assert_eq!(validation.pipe_ack(at(1600), PERIOD), Some(2));
        assert_eq!(
            validation.pipe_ack(at(1800), PERIOD),
            Some(0),
            "all expired: idle, not unknown"
        );
    }

    /// RFC 7661 4.2 and 4.3 by hand: every bin that ever was, and phases looked at millisecond by millisecond.
    #[derive(Default)]
    struct Naive {
        bins: Vec<(u64, u64)>,
        nonvalidated_since: Option<u64>,
        /// When the last ACK came.
        acked: u64,
        looked: u64,
    }

    impl Naive {
        fn pipe_ack(&self, ms: u64) -> Option<u64> {
            if self.bins.is_empty() {
                return None;
            }
            let recent = self.bins.iter().filter(|bin| ms - bin.0 < 1000);
            Some(recent.map(|bin| bin.1).max().unwrap_or(0))
        }

        fn look(&mut self, until: u64, window: u64, full: bool) {
            // The window is what it is now also for the time before.
            for ms in self.looked..=until {
                let full = full && ms - self.acked < 1000;
                match self.pipe_ack(ms) {
                    None => self.nonvalidated_since = None,
                    Some(pipe) if pipe * 2 > window && ms == until => self.nonvalidated_since = None,
                    Some(pipe) if pipe * 2 < window && self.nonvalidated_since.is_none() && !full => {
                        self.nonvalidated_since = Some(ms);
                    }
                    Some(_) => {}
                }
            }
            self.looked = until;
        }
    }

    proptest! {
        #[test]
        fn phases_are_those_of_the_naive_transcription(
            window in 1_u64..100,
            steps in prop::collection::vec((0_u64..700, prop::option::weighted(0.7, 0_u64..100), 0_u8..40), 1..60),
        ) {
            let (mut validation, mut naive, mut now, mut full) = (fresh(), Naive::default(), 0, false);
            for (step, sample, event) in steps {
                now += step;
                if event == 0 {
                    validation.forget();
                    naive = Naive { looked: now, acked: naive.acked, ..Naive::default() };
                }
                if let Some(sample) = sample {
                    // A look before the sample, as the endpoint has when data leaves.
                    validation.judge(at(now), PERIOD, window, full);
                    naive.look(now, window, full);
                    (validation.acked_at, naive.acked) = (at(now), now);
                    full = (full || event >= 34) && event >= 4; // a drain follows
                    validation.take(at(now), PERIOD, sample);
                    match naive.bins.last_mut() {
                        Some(bin) if now - bin.0 < 200 => bin.1 = bin.1.max(sample),
                        _ => naive.bins.push((now, sample)),
                    }
                }
                validation.judge(at(now), PERIOD, window, full);
                naive.look(now, window, full);
                prop_assert_eq!(validation.pipe_ack(at(now), PERIOD), naive.pipe_ack(now));
                prop_assert_eq!(validation.since, naive.nonvalidated_since.map(at), "at {}", now);
            }
        }
    }

    #[test]
    fn the_non_validated_period_is_five_minutes() {
        assert_eq!(NONVALIDATED_PERIOD, Duration::from_secs(300));
    }
}
