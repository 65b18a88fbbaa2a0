//! In which share of a range a claim holds: the verdicts of a check that is made at many points, counted.

use super::Evaluated;

/// Points from which on a share says more than the list.
const ENOUGH_POINTS: usize = 6;

/// How often a check holds over the points of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The check; `None`: all that count, together.
    pub check: Option<String>,
    /// Points at which it holds.
    pub holds: usize,
    /// Points at which it is violated.
    pub violated: usize,
    /// Points at which it is made.
    pub points: usize,
}

impl Share {
    /// "mean" holds at 7 of 36 points (19 %), is violated at 20, undecided at 9.
    pub fn words(&self) -> String {
        let what = match &self.check {
            Some(name) => format!("\"{name}\" holds"),
            None => String::from("all together hold"),
        };
        let percent = 100.0 * self.holds as f64 / self.points as f64;
        let (violated, undecided) = (self.violated, self.points - self.holds - self.violated);
        let (is, are) = match self.check {
            Some(_) => ("is violated", "undecided"),
            None => ("one is violated", "one undecided"),
        };
        format!(
            "{what} at {} of {} points ({percent:.0} %), {is} at {violated}, {are} at {undecided}",
            self.holds, self.points
        )
    }
}

/// A point, and whether a check holds there; `None`: undecided.
type Judged<'a> = (&'a str, Option<bool>);

/// The shares of an experiment: each check that counts and is made at many points, and all of them together if they are
/// made at the same points. Together they hold where each does, and are violated where one is.
pub fn of(evaluated: &Evaluated) -> Vec<Share> {
    let mut checks: Vec<(&str, Vec<Judged>)> = Vec::new();
    for check in evaluated.checks.iter().filter(|check| check.counts) {
        let Some((name, point)) = check.name.split_once(" [") else {
            continue;
        };
        match checks.iter_mut().find(|(other, _)| *other == name) {
            Some((_, points)) => points.push((point, check.holds)),
            None => checks.push((name, vec![(point, check.holds)])),
        }
    }
    checks.retain(|(_, points)| points.len() >= ENOUGH_POINTS);
    let mut shares: Vec<Share> = checks
        .iter()
        .map(|(name, points)| count(Some((*name).to_owned()), points.iter().map(|&(_, holds)| holds)))
        .collect();
    let labels = |points: &[Judged]| points.iter().map(|(label, _)| (*label).to_owned()).collect();
    let alike = checks.windows(2).all(|pair| {
        let [a, b]: [Vec<String>; 2] = [labels(&pair[0].1), labels(&pair[1].1)];
        a == b
    });
    if checks.len() > 1 && alike {
        let together = (0..checks[0].1.len()).map(|point| {
            let all = || checks.iter().map(|(_, points)| points[point].1);
            if all().any(|holds| holds == Some(false)) {
                Some(false)
            } else {
                all().all(|holds| holds == Some(true)).then_some(true)
            }
        });
        shares.push(count(None, together));
    }
    shares
}

fn count(check: Option<String>, judgements: impl Iterator<Item = Option<bool>>) -> Share {
    let (mut holds, mut violated, mut points) = (0, 0, 0);
    for judgement in judgements {
        points += 1;
        match judgement {
            Some(true) => holds += 1,
            Some(false) => violated += 1,
            None => {}
        }
    }
    Share {
        check,
        holds,
        violated,
        points,
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::{Interval, Verdict};
    use super::super::{CheckResult, library};
    use super::{Evaluated, of};

    fn evaluated(checks: &[(&str, Option<bool>, bool)]) -> Evaluated {
        let experiment = library::all().expect("the library reads").swap_remove(0);
        let check = |&(name, holds, counts): &(&str, Option<bool>, bool)| CheckResult {
            name: name.to_owned(),
            claim: String::new(),
            published: None,
            expected: None,
            unit: None,
            measured: None,
            interval: Interval::Unknown,
            holds,
            counts,
            primary: true,
        };
        Evaluated {
            experiment,
            verdict: Verdict::Partly,
            note: None,
            checks: checks.iter().map(check).collect(),
            curves: Vec::new(),
            timed: false,
        }
    }

    #[test]
    fn a_check_at_six_points_is_counted_and_one_at_five_is_listed_only() {
        let (yes, no) = (Some(true), Some(false));
        let names: Vec<String> = (0..11)
            .map(|point| format!("{} [rate = {point}]", if point < 6 { "mean" } else { "few" }))
            .collect();
        let holds = [yes, yes, no, None, no, no, yes, yes, yes, yes, yes];
        let checks: Vec<_> = names
            .iter()
            .zip(holds)
            .map(|(name, holds)| (name.as_str(), holds, true))
            .collect();
        let shares = of(&evaluated(&checks));
        assert_eq!(shares.len(), 1);
        assert_eq!(
            shares[0].words(),
            "\"mean\" holds at 2 of 6 points (33 %), is violated at 3, undecided at 1"
        );
        // What does not count is not counted.
        let reports: Vec<_> = checks
            .iter()
            .map(|&(name, holds, _)| (name, holds, false))
            .collect();
        assert!(of(&evaluated(&reports)).is_empty());
    }

    #[test]
    fn together_they_hold_where_each_does() {
        let (yes, no) = (Some(true), Some(false));
        let names: Vec<String> = ["a", "b"]
            .iter()
            .flat_map(|check| (0..6).map(move |point| format!("{check} [x = {point}]")))
            .collect();
        let holds = [yes, yes, yes, no, None, yes, yes, no, None, no, yes, yes];
        let checks: Vec<_> = names
            .iter()
            .zip(holds)
            .map(|(name, holds)| (name.as_str(), holds, true))
            .collect();
        let shares = of(&evaluated(&checks));
        assert_eq!(shares.len(), 3);
        assert_eq!(
            shares[2].words(),
            "all together hold at 2 of 6 points (33 %), one is violated at 2, one undecided at 2"
        );
        // At other points than each other nothing is put together.
        let mut apart = checks.clone();
        apart[6].0 = "b [x = 9]";
        assert_eq!(of(&evaluated(&apart)).len(), 2);
    }
}
