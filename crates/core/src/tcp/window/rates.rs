//! Delivery rate samples: how fast data arrived between the transmission of a segment and its acknowledgment.
//!
//! Each transmission remembers how much had been delivered by then. When it is acknowledged, what was delivered since, over the
//! time it took to send or to acknowledge it, whichever is longer, is a sample of the rate of the path.
//!
//! **Source.** draft-cheng-iccrg-delivery-rate-estimation-02.
//! **Deviations.** Whether the application is the limit is asked when it writes, as in Linux (`tcp_rate_check_app_limited`), and not
//! also when acknowledgments and timers come (3.4). What leaves at the same time is one entry, which all of it has in common but the data in flight, of which
//! the last counts. An acknowledgment that delivers only what was sent before something delivered earlier gives no sample. Where the
//! draft does not say: without SACK a duplicate delivers a segment when it comes, which is not delivered again when it is acknowledged, as
//! in Linux (`tcp_add_reno_sack`, `tcp_remove_reno_sacks`), but for two things: a timeout does not forget what was counted (Linux counts
//! it again), and a duplicate during the repair after a timeout delivers nothing.

use crate::cc::RateSample;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::collections::VecDeque;

/// The connection's part (C.*) and the transmissions in flight (P.*), oldest first.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Rates {
    delivered: u64,
    delivered_at: Instant,
    /// When the segment left that was last acknowledged of those sent last.
    first_sent: Instant,
    /// Samples are limited by the application until more than this is delivered; 0: they are not.
    app_limited: u64,
    /// What duplicates without SACK stood for, and no acknowledgment of data has covered yet.
    credited: u64,
    /// Nothing beyond this offset was.
    credited_to: u64,
    sent: VecDeque<Departure>,
}

#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    in_flight: u64,
    app_limited: bool,
}

impl Rates {
    /// `in_flight` counts what left, `weight` of it.
    pub(in crate::tcp) fn on_sent(&mut self, now: Instant, weight: u64, in_flight: u64) {
        if in_flight <= weight {
            self.first_sent = now;
            self.delivered_at = now;
        }
        if let Some(last) = self.sent.back_mut()
            && last.at == now
        {
            last.in_flight = in_flight;
            return;
        }
        self.sent.push_back(Departure {
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            in_flight,
            app_limited: self.app_limited > 0,
        });
    }

    pub(in crate::tcp) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// A duplicate without SACK stands for `bytes` of what was sent before `nxt`, but all of them for no more than `most`. Returns
    /// what it delivers.
    pub(in crate::tcp) fn on_duplicate(&mut self, bytes: u64, most: u64, nxt: u64) -> u64 {
        let delivered = bytes.min(most.saturating_sub(self.credited));
        if delivered > 0 {
            self.credited += delivered;
            self.credited_to = nxt;
        }
        delivered
    }

    /// How much duplicates stood for of what an acknowledgment up to `una` covers, `delivered` bytes in so many segments: all but
    /// the one that was missing. `over`: no more repairs follow, and what is left of the credit is void.
    pub(in crate::tcp) fn counted_before(
        &mut self,
        delivered: u64,
        segments: u32,
        una: u64,
        over: bool,
    ) -> u64 {
        let missing = delivered / u64::from(segments.max(1));
        let before = self.credited.min(delivered - missing);
        self.credited -= before;
        if over || una >= self.credited_to {
            self.credited = 0;
        }
        before
    }

    /// `delivered` is new, of which the last sent left at `newest`; `None`: which segments it was is not known.
    pub(in crate::tcp) fn on_delivered(
        &mut self,
        now: Instant,
        delivered: u64,
        newest: Option<Instant>,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        if delivered == 0 {
            return None;
        }
        self.delivered += delivered;
        self.delivered_at = now;
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let newest = newest?;
        let index = self.sent.partition_point(|departure| departure.at < newest);
        let departure = *self.sent.get(index).filter(|departure| departure.at == newest)?;
        self.sent.drain(..index);
        self.first_sent = newest;
        let interval = newest
            .since(departure.first_sent)
            .max(now.since(departure.delivered_at));
        if interval.is_zero() || min_rtt.is_some_and(|min| interval < min) {
            return None; // 3.3: shorter than any round trip
        }
        Some(RateSample {
            delivered: Bytes(self.delivered - departure.delivered),
            prior_delivered: Bytes(departure.delivered),
            interval,
            in_flight: Bytes(departure.in_flight),
            app_limited: departure.app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Rates;
    use crate::time::{Duration, Instant};
    use crate::units::Bytes;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(1000 + ms)
    }

    /// Ten segments of 1000 bytes at once over a path of 100 ms that passes one a millisecond: after the first round trip
    /// samples are of one segment a millisecond, less the wait for the first.
    #[test]
    fn samples_approach_the_rate_of_the_bottleneck() {
        let mut rates = Rates::default();
        for index in 1..=10 {
            rates.on_sent(at(0), 1000, index * 1000);
        }
        let mut last = None;
        for index in 1..=10 {
            last = rates.on_delivered(
                at(100 + index),
                1000,
                Some(at(0)),
                Some(Duration::from_millis(101)),
            );
            rates.on_sent(at(100 + index), 1000, 10_000);
        }
        let first = last.expect("longer than the round trip");
        assert_eq!(
            (first.delivered, first.interval),
            (Bytes(10_000), Duration::from_millis(110)),
            "ten in a round trip, and what it took them to come"
        );
        for index in 1..=10 {
            let left = at(100 + index);
            let sample = rates.on_delivered(
                at(210 + index),
                1000,
                Some(left),
                Some(Duration::from_millis(101)),
            );
            let sample = sample.expect("as long as the round trip");
            assert_eq!(sample.delivered, Bytes(10_000), "{index}");
            assert_eq!(sample.interval, Duration::from_millis(110), "{index}");
            assert!(!sample.app_limited);
        }
    }

    #[test]
    fn what_the_application_limits_is_marked_until_it_is_delivered() {
        let mut rates = Rates::default();
        rates.on_sent(at(0), 1000, 1000);
        rates.on_app_limited(1000);
        rates.on_sent(at(1), 1000, 2000);
        assert!(
            !rates
                .on_delivered(at(100), 1000, Some(at(0)), None)
                .expect("a sample")
                .app_limited
        );
        assert!(
            rates
                .on_delivered(at(101), 1000, Some(at(1)), None)
                .expect("a sample")
                .app_limited
        );
        rates.on_sent(at(102), 1000, 1000);
        assert!(
            !rates
                .on_delivered(at(202), 1000, Some(at(102)), None)
                .expect("a sample")
                .app_limited
        );
    }

    #[test]
    fn what_comes_out_of_order_or_too_soon_gives_no_sample() {
        let mut rates = Rates::default();
        rates.on_sent(at(0), 1000, 1000);
        rates.on_sent(at(5), 1000, 2000);
        let min = Some(Duration::from_millis(100));
        assert!(rates.on_delivered(at(105), 1000, Some(at(5)), min).is_some());
        assert_eq!(
            rates.on_delivered(at(106), 1000, Some(at(0)), min),
            None,
            "it was overtaken"
        );
        rates.on_sent(at(110), 1000, 1000);
        assert_eq!(
            rates.on_delivered(at(150), 1000, Some(at(110)), min),
            None,
            "no round trip is so short"
        );
    }

    /// Ten segments, of which the first is lost. Nine duplicates stand for nine, a tenth, which the network made, for nothing; the
    /// acknowledgment of all ten, of which the first was sent again at 110 ms, delivers one.
    #[test]
    fn what_duplicates_stood_for_is_not_delivered_again() {
        let mut rates = Rates::default();
        for index in 1..=10 {
            rates.on_sent(at(0), 1000, index * 1000);
        }
        for index in 2..=11 {
            let new = rates.on_duplicate(1000, 9000, 10_001);
            assert_eq!(new, if index < 11 { 1000 } else { 0 });
            assert_eq!(rates.on_delivered(at(100 + index), new, None, None), None);
        }
        rates.on_sent(at(111), 1000, 1000);
        let before = rates.counted_before(10_000, 10, 10_001, false);
        assert_eq!(before, 9000);
        let sample = rates.on_delivered(at(211), 10_000 - before, Some(at(111)), None);
        assert_eq!(sample.expect("a sample").delivered, Bytes(1000));
        assert_eq!(rates.delivered, 10_000);
    }

    #[test]
    fn credit_lasts_until_all_that_it_may_stand_for_is_acknowledged_or_the_repair_is_over() {
        let mut rates = Rates::default();
        let mut credited = || {
            rates.credited = 0;
            assert_eq!(rates.on_duplicate(1000, 9000, 12_001), 1000);
            assert_eq!(
                rates.on_duplicate(1000, 1500, 12_001),
                500,
                "no more than is out beside the missing one"
            );
            assert_eq!(
                rates.counted_before(1000, 1, 11_001, false),
                0,
                "the segment that was missing"
            );
            rates.clone()
        };
        assert_eq!(credited().counted_before(3000, 3, 11_500, false), 1500);
        assert_eq!(credited().counted_before(2000, 2, 11_500, false), 1000);
        let mut reached = credited();
        assert_eq!(reached.counted_before(1000, 1, 12_001, false), 0);
        assert_eq!(
            reached.counted_before(9000, 9, 21_001, false),
            0,
            "nothing is left"
        );
        let mut over = credited();
        assert_eq!(over.counted_before(1000, 1, 11_500, true), 0);
        assert_eq!(over.counted_before(3000, 3, 11_900, false), 0, "nothing is left");
    }

    #[test]
    fn an_acknowledgment_that_delivers_nothing_changes_nothing() {
        let mut rates = Rates::default();
        rates.on_sent(at(0), 1000, 1000);
        rates.on_delivered(at(100), 1000, Some(at(0)), None);
        let before = rates.delivered_at;
        assert_eq!(rates.on_delivered(at(150), 0, None, None), None);
        assert_eq!((rates.delivered_at, rates.delivered), (before, 1000));
    }
}
