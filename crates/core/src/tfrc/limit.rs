//! What the receiver got lately: X_recv_set, whose largest member limits the sender to twice that.
//!
//! **Source.** RFC 5348 4.3 (Maximize and Update X_recv_set), 4.4 (Update_Limits).
//! **Deviations.**
//! - Members that can never be the largest again are not kept, and of more than eight that could, the eighth gives way to
//!   the newest: only with nine reports of falling rates within two round-trip times is the limit lower than the RFC's.

use crate::time::{Duration, Instant};

/// Receive rates in bytes per second, each with its time: falling, the oldest first.
#[derive(Clone, Debug)]
pub(super) struct ReceiveRates {
    members: [(Instant, f64); MOST],
    count: usize,
}

impl ReceiveRates {
    /// The set before the first report: infinity (RFC 5348 4.2).
    pub(super) fn unlimited(now: Instant) -> ReceiveRates {
        ReceiveRates::only(now, f64::INFINITY)
    }

    /// A set of one.
    pub(super) fn only(now: Instant, rate: f64) -> ReceiveRates {
        ReceiveRates {
            members: [(now, rate); MOST],
            count: 1,
        }
    }

    pub(super) fn max(&self) -> f64 {
        self.members[0].1
    }

    /// Adds a report and forgets those older than two round-trip times.
    pub(super) fn update(&mut self, now: Instant, rate: f64, rtt: Duration) {
        while self.count > 0 && self.members[self.count - 1].1 <= rate {
            self.count -= 1;
        }
        self.count = (self.count + 1).min(MOST);
        self.members[self.count - 1] = (now, rate);
        let old = self.members[..self.count - 1]
            .iter()
            .take_while(|(at, _)| now.since(*at) > rtt.saturating_mul(2))
            .count();
        self.members[..self.count].rotate_left(old);
        self.count -= old;
    }

    /// Adds a report and keeps only the largest member, but not infinity, as of now.
    pub(super) fn maximize(&mut self, now: Instant, rate: f64) {
        let known = self.members[..self.count].iter().map(|(_, rate)| *rate);
        let largest = known.filter(|rate| rate.is_finite()).fold(rate, f64::max);
        *self = ReceiveRates::only(now, largest);
    }

    pub(super) fn halve(&mut self) {
        for (_, rate) in &mut self.members[..self.count] {
            *rate *= 0.5;
        }
    }
}

const MOST: usize = 8;

#[cfg(test)]
mod tests {
    use super::ReceiveRates;
    use crate::time::{Duration, Instant};

    #[test]
    fn the_largest_of_two_round_trips_limits() {
        let at = Instant::from_millis;
        let rtt = Duration::from_millis(100);
        let mut rates = ReceiveRates::unlimited(at(0));
        rates.update(at(100), 500.0, rtt);
        assert_eq!(rates.max(), f64::INFINITY);
        rates.update(at(201), 400.0, rtt);
        assert_eq!(rates.max(), 500.0, "the beginning is forgotten");
        rates.update(at(300), 300.0, rtt);
        assert_eq!(rates.max(), 500.0, "exactly two round-trip times ago");
        rates.update(at(302), 350.0, rtt);
        assert_eq!(rates.max(), 400.0);
        rates.update(at(303), 900.0, rtt);
        assert_eq!(rates.max(), 900.0);
    }

    #[test]
    fn a_data_limited_sender_keeps_one() {
        let at = Instant::from_millis;
        let mut rates = ReceiveRates::unlimited(at(0));
        rates.maximize(at(10), 70.0);
        assert_eq!(rates.max(), 70.0, "infinity is not kept");
        rates.maximize(at(5000), 60.0);
        assert_eq!(rates.max(), 70.0, "older but larger, as of now");
        rates.halve();
        rates.maximize(at(6000), 51.0);
        assert_eq!(rates.max(), 51.0);
    }
}
