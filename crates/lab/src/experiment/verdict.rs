//! The rules of verdicts.
//!
//! A bound holds when the whole interval satisfies it, is violated when the whole interval is on the other side, and is
//! undecided otherwise. A value holds when the estimate is within tolerance, else it is violated: it is for rules that allow an estimate a
//! deviation. Where a rule speaks of a confidence interval a check has bounds, or `contains`: that holds when the interval holds the number. All
//! checks hold: reproduced. All primary checks violated: not reproduced. Anything between: partly. An experiment that declares that
//! it cannot be compared, or a condition of which does not hold, is not comparable.
//!
//! A shorter run never says more than the full one: a check is decided only if it was decided the same way in the full
//! run, whose verdicts are checked in; without such a record it stays undecided.

use crate::scenario::Expect;
use serde::{Deserialize, Serialize};

/// What is said of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All checks hold.
    Reproduced,
    /// Some do.
    Partly,
    /// All primary checks are violated.
    NotReproduced,
    /// Published and measured values cannot be compared.
    NotComparable,
}

impl Verdict {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Partly => "partly",
            Verdict::NotReproduced => "not-reproduced",
            Verdict::NotComparable => "not-comparable",
        }
    }
}

/// How sure a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interval {
    /// The value is exact.
    Exact,
    /// 95 % interval.
    Between([f64; 2]),
    /// Nobody knows: one run.
    Unknown,
}

impl Interval {
    /// The interval, where there is one.
    pub fn ends(self) -> Option<[f64; 2]> {
        match self {
            Interval::Between(ends) => Some(ends),
            Interval::Exact | Interval::Unknown => None,
        }
    }
}

/// Whether what is expected holds for an estimate with this interval; `None`: undecided.
pub fn holds(expect: Expect, estimate: f64, interval: Interval) -> Option<bool> {
    match expect {
        Expect::Value { value, deviation } => Some((estimate - value).abs() <= deviation),
        Expect::Contains { value } => {
            let [low, high] = ends(estimate, interval)?;
            Some((low..=high).contains(&value))
        }
        Expect::Bounds { .. } => {
            let [low, high] = ends(estimate, interval)?;
            if satisfies(expect, low) && satisfies(expect, high) {
                Some(true)
            } else if outside(expect, low, high) {
                Some(false)
            } else {
                None
            }
        }
    }
}

/// Both ends of the interval; `None`: nobody knows them.
fn ends(estimate: f64, interval: Interval) -> Option<[f64; 2]> {
    match interval {
        Interval::Exact => Some([estimate; 2]),
        Interval::Between(ends) => Some(ends),
        Interval::Unknown => None,
    }
}

/// Whether a single value is as expected.
pub fn satisfies(expect: Expect, value: f64) -> bool {
    match expect {
        Expect::Value {
            value: wanted,
            deviation,
        } => (value - wanted).abs() <= deviation,
        Expect::Contains { value: wanted } => value.total_cmp(&wanted).is_eq(),
        Expect::Bounds {
            min,
            above,
            max,
            below,
        } => {
            min.is_none_or(|min| if above { value > min } else { value >= min })
                && max.is_none_or(|max| if below { value < max } else { value <= max })
        }
    }
}

/// Whether every value from `low` to `high` is beyond the same bound.
fn outside(expect: Expect, low: f64, high: f64) -> bool {
    let Expect::Bounds {
        min,
        above,
        max,
        below,
    } = expect
    else {
        return false;
    };
    min.is_some_and(|min| if above { high <= min } else { high < min })
        || max.is_some_and(|max| if below { low >= max } else { low > max })
}

/// What the verdict needs to know of a check that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Whether it holds.
    pub holds: Option<bool>,
    /// Whether the claim rests on it.
    pub primary: bool,
}

/// The verdict from the checks that count.
pub fn verdict(checks: &[Counted]) -> Verdict {
    if checks.is_empty() {
        return Verdict::NotComparable;
    }
    if checks.iter().all(|check| check.holds == Some(true)) {
        return Verdict::Reproduced;
    }
    let mut primary = checks.iter().filter(|check| check.primary).peekable();
    if primary.peek().is_some() && primary.all(|check| check.holds == Some(false)) {
        return Verdict::NotReproduced;
    }
    Verdict::Partly
}

/// What a shorter run may say of a check: what the full run said too, or nothing.
pub fn no_more_than(shorter: Option<bool>, full: Option<bool>) -> Option<bool> {
    if shorter == full { shorter } else { None }
}

#[cfg(test)]
mod tests {
    use super::{Counted, Expect, Interval, Verdict, holds, no_more_than, satisfies, verdict};

    const BELOW_ONE: Expect = Expect::Bounds {
        min: None,
        above: false,
        max: Some(1.0),
        below: true,
    };
    const AT_MOST_ONE: Expect = Expect::Bounds {
        min: None,
        above: false,
        max: Some(1.0),
        below: false,
    };
    const FROM_TWO_TO_THREE: Expect = Expect::Bounds {
        min: Some(2.0),
        above: false,
        max: Some(3.0),
        below: false,
    };
    const ABOVE_ZERO: Expect = Expect::Bounds {
        min: Some(0.0),
        above: true,
        max: None,
        below: false,
    };

    #[test]
    fn a_bound_needs_the_whole_interval() {
        let at = |expect, low, high| holds(expect, (low + high) / 2.0, Interval::Between([low, high]));
        assert_eq!(at(BELOW_ONE, 0.5, 0.9), Some(true));
        assert_eq!(at(BELOW_ONE, 0.5, 1.1), None);
        assert_eq!(at(BELOW_ONE, 1.05, 1.1), Some(false));
        assert_eq!(at(ABOVE_ZERO, 0.1, 5.0), Some(true));
        assert_eq!(at(ABOVE_ZERO, -0.1, 5.0), None);
        assert_eq!(at(ABOVE_ZERO, -5.0, -0.1), Some(false));
    }

    #[test]
    fn the_end_of_a_bound_belongs_to_it_only_if_it_says_so() {
        let at = |expect, low, high| holds(expect, low, Interval::Between([low, high]));
        assert_eq!(at(BELOW_ONE, 0.5, 1.0), None);
        assert_eq!(at(AT_MOST_ONE, 0.5, 1.0), Some(true));
        assert_eq!(at(BELOW_ONE, 1.0, 2.0), Some(false));
        assert_eq!(at(AT_MOST_ONE, 1.0, 2.0), None);
        assert_eq!(at(ABOVE_ZERO, 0.0, 1.0), None);
        assert_eq!(at(ABOVE_ZERO, -1.0, 0.0), Some(false));
        assert!(satisfies(AT_MOST_ONE, 1.0) && !satisfies(BELOW_ONE, 1.0));
    }

    #[test]
    fn two_bounds_are_violated_beyond_either() {
        let at = |low, high| holds(FROM_TWO_TO_THREE, low, Interval::Between([low, high]));
        assert_eq!(at(2.0, 3.0), Some(true));
        assert_eq!(at(0.0, 1.9), Some(false));
        assert_eq!(at(3.1, 9.0), Some(false));
        assert_eq!(at(1.9, 2.5), None);
        assert_eq!(at(2.5, 3.5), None);
        // On both sides at once: nothing is known.
        assert_eq!(at(1.0, 4.0), None);
    }

    #[test]
    fn without_an_interval_a_bound_is_undecided_unless_the_value_is_exact() {
        assert_eq!(holds(BELOW_ONE, 0.5, Interval::Unknown), None);
        assert_eq!(holds(BELOW_ONE, 1.5, Interval::Unknown), None);
        assert_eq!(holds(BELOW_ONE, 0.5, Interval::Exact), Some(true));
        assert_eq!(holds(BELOW_ONE, 1.0, Interval::Exact), Some(false));
        assert_eq!(holds(AT_MOST_ONE, 1.0, Interval::Exact), Some(true));
    }

    #[test]
    fn a_value_is_judged_by_its_estimate() {
        let expect = Expect::Value {
            value: 2.0,
            deviation: 0.1,
        };
        for interval in [Interval::Exact, Interval::Unknown, Interval::Between([0.0, 9.0])] {
            assert_eq!(holds(expect, 2.09, interval), Some(true));
            assert_eq!(holds(expect, 1.91, interval), Some(true));
            assert_eq!(holds(expect, 2.2, interval), Some(false));
        }
        let exact = Expect::Value {
            value: 60e-6,
            deviation: 0.0,
        };
        assert_eq!(holds(exact, 60e-6, Interval::Exact), Some(true));
        assert_eq!(holds(exact, 61e-6, Interval::Exact), Some(false));
    }

    #[test]
    fn a_number_that_the_interval_must_hold_is_judged_by_the_interval() {
        let expect = Expect::Contains { value: 1.0 };
        assert_eq!(holds(expect, 1.2, Interval::Between([0.9, 1.5])), Some(true));
        assert_eq!(holds(expect, 1.2, Interval::Between([1.0, 1.5])), Some(true));
        assert_eq!(holds(expect, 1.2, Interval::Between([1.01, 1.5])), Some(false));
        assert_eq!(holds(expect, 0.8, Interval::Between([0.7, 0.99])), Some(false));
        assert_eq!(holds(expect, 1.0, Interval::Exact), Some(true));
        assert_eq!(holds(expect, 1.1, Interval::Exact), Some(false));
        assert_eq!(holds(expect, 1.0, Interval::Unknown), None);
        assert!(satisfies(expect, 1.0) && !satisfies(expect, 1.1));
    }

    #[test]
    fn within_a_tenth_by_the_interval_is_two_bounds() {
        // is-fairness as it was recorded: the estimate is within 10 % of 1, its interval is not.
        let (estimate, interval) = (0.906739, Interval::Between([0.891608, 0.920919]));
        let by_estimate = Expect::Value {
            value: 1.0,
            deviation: 0.1,
        };
        let by_interval = Expect::Bounds {
            min: Some(0.9),
            above: false,
            max: Some(1.1),
            below: false,
        };
        assert_eq!(holds(by_estimate, estimate, interval), Some(true));
        assert_eq!(holds(by_interval, estimate, interval), None);
    }

    fn of(checks: &[(Option<bool>, bool)]) -> Verdict {
        let checks: Vec<Counted> = checks
            .iter()
            .map(|&(holds, primary)| Counted { holds, primary })
            .collect();
        verdict(&checks)
    }

    #[test]
    fn reproduced_needs_every_check() {
        let (yes, no, unclear) = (Some(true), Some(false), None);
        assert_eq!(of(&[(yes, true), (yes, false)]), Verdict::Reproduced);
        assert_eq!(of(&[(yes, true), (unclear, false)]), Verdict::Partly);
        assert_eq!(of(&[(yes, true), (no, false)]), Verdict::Partly);
        assert_eq!(of(&[(unclear, true)]), Verdict::Partly);
        assert_eq!(of(&[]), Verdict::NotComparable);
    }

    #[test]
    fn not_reproduced_needs_every_primary_check_violated() {
        let (yes, no, unclear) = (Some(true), Some(false), None);
        assert_eq!(of(&[(no, true), (no, true)]), Verdict::NotReproduced);
        // A secondary check that holds does not save the claim.
        assert_eq!(of(&[(no, true), (yes, false)]), Verdict::NotReproduced);
        assert_eq!(of(&[(no, true), (unclear, true)]), Verdict::Partly);
        assert_eq!(of(&[(no, true), (yes, true)]), Verdict::Partly);
        // Without a primary check nothing can be refuted.
        assert_eq!(of(&[(no, false)]), Verdict::Partly);
    }

    #[test]
    fn a_shorter_run_says_no_more_than_the_full_one() {
        for shorter in [Some(true), Some(false), None] {
            for full in [Some(true), Some(false), None] {
                let said = no_more_than(shorter, full);
                assert!(said.is_none() || (said == shorter && said == full));
            }
        }
        assert_eq!(no_more_than(Some(true), Some(true)), Some(true));
    }

    #[test]
    fn the_words_are_those_of_the_document() {
        for verdict in [
            Verdict::Reproduced,
            Verdict::Partly,
            Verdict::NotReproduced,
            Verdict::NotComparable,
        ] {
            assert_eq!(serde_json::to_value(verdict).ok(), Some(verdict.name().into()));
        }
    }
}
