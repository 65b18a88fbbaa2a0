//! Axes: from values to places, and the round values beside them.

/// A range of values, linear or logarithmic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    /// An axis on which `values` find room. A logarithmic one is of positive values only.
    pub(super) fn of(values: impl Iterator<Item = f64>, logarithmic: bool) -> Axis {
        let usable = |value: &f64| value.is_finite() && (!logarithmic || *value > 0.0);
        let (low, high) = values
            .filter(usable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        match (low < high, logarithmic) {
            (true, _) => Axis {
                low,
                high,
                logarithmic,
            },
            // Nothing to show, or one value.
            (false, true) => {
                let middle = if low.is_finite() { low } else { 1.0 };
                Axis {
                    low: middle / 2.0,
                    high: middle * 2.0,
                    logarithmic,
                }
            }
            (false, false) => {
                let middle = if low.is_finite() { low } else { 0.0 };
                Axis {
                    low: middle.min(0.0),
                    high: middle.max(0.0) + 1.0,
                    logarithmic,
                }
            }
        }
    }

    /// This axis with room for `share` of its length at both ends.
    pub(super) fn padded(self, share: f64) -> Axis {
        if self.logarithmic {
            let factor = libm::pow(self.high / self.low, share);
            Axis {
                low: self.low / factor,
                high: self.high * factor,
                ..self
            }
        } else {
            let more = (self.high - self.low) * share;
            Axis {
                low: self.low - more,
                high: self.high + more,
                ..self
            }
        }
    }

    /// This axis with a little room at the high end.
    pub(super) fn with_room_above(self) -> Axis {
        let more = if self.logarithmic {
            self.high * (libm::pow(self.high / self.low, 0.04) - 1.0)
        } else {
            (self.high - self.low) * 0.04
        };
        Axis {
            high: self.high + more,
            ..self
        }
    }

    /// Where `value` is: 0 at the low end, 1 at the high end, and no further.
    pub(super) fn at(self, value: f64) -> f64 {
        let share = if self.logarithmic {
            libm::log(value.max(f64::MIN_POSITIVE) / self.low) / libm::log(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    /// Round values within the range, not more than about `most`.
    pub(super) fn ticks(self, most: usize) -> Vec<f64> {
        if !self.logarithmic || self.high / self.low < 5.0 {
            return steps(self.low, self.high, most);
        }
        let decade = |value: f64| libm::floor(libm::log10(value)) as i32;
        for factors in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
            let ticks: Vec<f64> = (decade(self.low)..=decade(self.high))
                .flat_map(|power| {
                    factors
                        .iter()
                        .map(move |factor| factor * libm::pow(10.0, f64::from(power)))
                })
                .filter(|value| *value >= self.low * (1.0 - 1e-9) && *value <= self.high * (1.0 + 1e-9))
                .collect();
            if ticks.len() <= most || factors.len() == 1 {
                return ticks;
            }
        }
        Vec::new()
    }
}

/// Round values from `low` to `high`, about `most`.
fn steps(low: f64, high: f64, most: usize) -> Vec<f64> {
    let rough = (high - low) / most as f64;
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * (1.0 - 1e-9))
        .unwrap_or(rough);
    let first = libm::ceil(low / step - 1e-9) as i64;
    let last = libm::floor(high / step + 1e-9) as i64;
    (first..=last).map(|count| count as f64 * step).collect()
}

/// A tick's value without needless digits.
pub(super) fn tick(value: f64) -> String {
    if value == 0.0 {
        return String::from("0");
    }
    let size = value.abs();
    if !(1e-4..1e6).contains(&size) {
        return format!("{value:.0e}");
    }
    // Two digits are enough to distinguish round steps; more only for large numbers.
    let decimals = (2 - libm::floor(libm::log10(size)) as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    text.replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::{Axis, steps, tick};

    #[test]
    fn ticks_are_round_and_within_the_range() {
        assert_eq!(steps(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(steps(1.0, 50.0, 5), [10.0, 20.0, 30.0, 40.0, 50.0]);
        let words: Vec<String> = steps(0.0, 0.37, 5).into_iter().map(tick).collect();
        assert_eq!(words, ["0", "0.1", "0.2", "0.3"]);
        let of = |low, high| Axis::of([low, high].into_iter(), true).ticks(8);
        assert_eq!(of(0.5, 20.0), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(of(1.0, 1000.0), [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]);
        let words: Vec<String> = of(0.9, 1.3).into_iter().map(tick).collect();
        assert_eq!(
            words,
            ["0.9", "0.95", "1", "1.05", "1.1", "1.15", "1.2", "1.25", "1.3"]
        );
        assert_eq!(Axis::of([1e-4, 1e6].into_iter(), true).ticks(8).len(), 11);
    }

    #[test]
    fn places_run_from_end_to_end() {
        let axis = Axis::of([1.0, 100.0].into_iter(), true);
        assert_eq!(
            [1.0, 10.0, 100.0, 1000.0, 0.0].map(|value| axis.at(value)),
            [0.0, 0.5, 1.0, 1.0, 0.0]
        );
        let axis = Axis::of([0.0, 10.0].into_iter(), false);
        assert_eq!([-5.0, 0.0, 5.0].map(|value| axis.at(value)), [0.0, 0.0, 0.5]);
    }

    #[test]
    fn an_axis_without_values_or_with_one_has_room() {
        for logarithmic in [false, true] {
            for values in [vec![], vec![3.0], vec![f64::NAN]] {
                let axis = Axis::of(values.into_iter(), logarithmic).padded(0.05);
                assert!(axis.at(3.0).is_finite() && !axis.ticks(5).is_empty(), "{axis:?}");
            }
        }
    }

    #[test]
    fn ticks_are_written_short() {
        let words = [0.0, 0.5, 0.05, 1.0, 1.25, 20.0, 2500.0, -0.4, 1e-6, 2e7].map(tick);
        assert_eq!(
            words,
            [
                "0",
                "0.5",
                "0.05",
                "1",
                "1.25",
                "20",
                "2500",
                "\u{2212}0.4",
                "1e-6",
                "2e7"
            ]
        );
    }
}
