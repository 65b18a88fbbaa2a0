//! Loss intervals: the lengths of the last nine, their weighted mean, and how much older ones still count.
//!
//! An interval is the distance in packets from the first loss of one loss event to the first loss of the next. The loss
//! event rate is the inverse of their weighted mean; the open interval counts only if it makes the mean larger. When the
//! open interval is more than twice the mean, older ones count less (history discounting).
//!
//! **Source.** RFC 5348 5.3 to 5.5; RFC 4828 section 3 for short intervals.
//! **Deviations.**
//! - The mean that the open interval is compared with for discounting (5.5) is that of the complete intervals with their
//!   discount factors. With the open interval in it, the recommended threshold of 0.25 could never be reached.

/// Complete intervals that are kept: n of RFC 5348 5.4.
pub const INTERVALS: usize = 8;

/// Weights of the intervals, the newest first (RFC 5348 5.4).
pub const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Least discount factor (RFC 5348 5.5).
pub const THRESHOLD: f64 = 0.25;

/// The complete intervals, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// I_1 and older, in packets.
    lengths: [f64; INTERVALS],
    /// DF_1 and older.
    discounts: [f64; INTERVALS],
    /// How many there are.
    count: usize,
    discounting: bool,
}

impl History {
    /// No interval yet; `discounting`: older intervals count less after a long time without loss.
    pub const fn new(discounting: bool) -> History {
        History {
            lengths: [0.0; INTERVALS],
            discounts: [1.0; INTERVALS],
            count: 0,
            discounting,
        }
    }

    /// Whether there was no loss event yet.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A new loss event: the open interval had `open` packets as the discount sees it, and is kept with `length`. (Both
    /// are the same but for short intervals of small packets, RFC 4828 section 3.)
    pub fn close(&mut self, open: f64, length: f64) {
        let discount = self.discount(open);
        for known in &mut self.discounts[..self.count] {
            *known *= discount; // RFC 5348 5.5: DF_i = DF DF_i, before the shift
        }
        self.count = (self.count + 1).min(INTERVALS);
        self.lengths[..self.count].rotate_right(1);
        self.discounts[..self.count].rotate_right(1);
        self.lengths[0] = length.max(1.0);
        self.discounts[0] = 1.0;
    }

    /// I_mean: packets per loss event, with the open interval of `open` packets if that has to count. `None` before the
    /// first loss event.
    pub fn mean(&self, open: Option<f64>) -> Option<f64> {
        let complete = self.mean_of_complete()?;
        let Some(open) = open else {
            return Some(complete);
        };
        let discount = self.discount(open);
        let (mut total, mut weight) = (open * WEIGHTS[0], WEIGHTS[0]);
        // RFC 5348 5.4: as many as without it, so the oldest gives way.
        for place in 0..self.count - 1 {
            let counts = WEIGHTS[place + 1] * self.discounts[place] * discount;
            total += self.lengths[place] * counts;
            weight += counts;
        }
        Some(complete.max(total / weight)) // p = min(W_tot0 / I_tot0, W_tot1 / I_tot1)
    }

    /// The loss event rate.
    pub fn rate(&self, open: Option<f64>) -> f64 {
        self.mean(open).map_or(0.0, |mean| 1.0 / mean)
    }

    fn mean_of_complete(&self) -> Option<f64> {
        let (mut total, mut weight) = (0.0, 0.0);
        for ((counts, length), discount) in WEIGHTS
            .iter()
            .zip(&self.lengths)
            .zip(&self.discounts)
            .take(self.count)
        {
            total += length * counts * discount;
            weight += counts * discount;
        }
        (self.count > 0).then(|| total / weight)
    }

    /// DF: how much older intervals count beside an open interval of `open` packets.
    fn discount(&self, open: f64) -> f64 {
        match self.mean_of_complete() {
            // RFC 5348 5.5
            Some(mean) if self.discounting && open > 2.0 * mean => (2.0 * mean / open).max(THRESHOLD),
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{History, INTERVALS};

    fn with(discounting: bool, oldest_first: &[f64]) -> History {
        let mut history = History::new(discounting);
        for &length in oldest_first {
            history.close(length, length);
        }
        history
    }

    #[test]
    fn equal_intervals_have_their_own_mean() {
        let history = with(false, &[100.0; INTERVALS]);
        assert_eq!(
            history.mean(Some(1.0)),
            Some(100.0),
            "a short open interval does not count"
        );
        assert_eq!(history.rate(Some(0.0)), 0.01);
        assert_eq!(History::new(true).rate(Some(50.0)), 0.0, "no loss event, no rate");
    }

    #[test]
    fn hand_worked_means() {
        // Newest first 10, 20, ..., 80: (10 + 20 + 30 + 40 + .8*50 + .6*60 + .4*70 + .2*80) / 6 = 220 / 6.
        let history = with(false, &[80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0]);
        assert!((history.mean(Some(1.0)).expect("intervals") - 220.0 / 6.0).abs() < 1e-12);
        // The open one counts as soon as (I_0 + 10 + 20 + 30 + .8*40 + .6*50 + .4*60 + .2*70) / 6 is larger: I_0 > 60.
        assert!((history.mean(Some(60.0)).expect("intervals") - 220.0 / 6.0).abs() < 1e-12);
        assert!((history.mean(Some(66.0)).expect("intervals") - 226.0 / 6.0).abs() < 1e-12);
        // Two intervals only: weights of those there are, (30 + 10) / 2 against (I_0 + 30) / 2.
        let history = with(false, &[10.0, 30.0]);
        assert_eq!(history.mean(Some(4.0)), Some(20.0));
        assert_eq!(history.mean(Some(50.0)), Some(40.0));
        // Short intervals of small packets may not let the open one count (RFC 4828).
        assert_eq!(history.mean(None), Some(20.0));
    }

    #[test]
    fn hand_worked_discounts() {
        let history = with(true, &[100.0; INTERVALS]);
        // I_0 = 200 is not more than twice the mean: (200 + 5 * 100) / 6.
        assert!((history.mean(Some(200.0)).expect("intervals") - 700.0 / 6.0).abs() < 1e-12);
        // I_0 = 400: DF = 2 * 100 / 400 = 0.5: (400 + 0.5 * 5 * 100) / (1 + 0.5 * 5) = 650 / 3.5.
        assert!((history.mean(Some(400.0)).expect("intervals") - 650.0 / 3.5).abs() < 1e-9);
        // I_0 = 1600: 2 / 16 is held at 0.25: (1600 + 0.25 * 500) / (1 + 0.25 * 5) = 1725 / 2.25.
        assert!((history.mean(Some(1600.0)).expect("intervals") - 1725.0 / 2.25).abs() < 1e-9);
        // Without discounting the same I_0 gives (1600 + 500) / 6.
        let plain = with(false, &[100.0; INTERVALS]);
        assert!((plain.mean(Some(1600.0)).expect("intervals") - 350.0).abs() < 1e-9);
        // At the next loss event the factor stays with the older intervals.
        let mut history = history;
        history.close(400.0, 400.0);
        let expected = (400.0 + 0.5 * 5.0 * 100.0) / (1.0 + 0.5 * 5.0);
        assert!((history.mean(Some(1.0)).expect("intervals") - expected).abs() < 1e-9);
    }

    #[test]
    fn only_eight_are_kept() {
        let mut lengths = [7.0; INTERVALS + 3];
        lengths[0] = 1e6;
        lengths[1] = 1e6;
        lengths[2] = 1e6;
        assert!((with(false, &lengths).mean(None).expect("intervals") - 7.0).abs() < 1e-12);
    }
}
