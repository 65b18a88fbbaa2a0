//! Sequential stopping: seeds until the interval of a metric is narrow enough.
//!
//! **Source.** The mean over seeds has Student's t interval (a run is the unit of independence). It is looked at several times: after 10,
//! 20, 40... seeds. Each of L looks at a level of 1 - 0.05/L keeps all of them together at 95 % (Bonferroni), so stopping at the
//! first narrow one does not spoil it. Singham and Schruben 2012 show what happens without: intervals that stop when they happen to
//! be narrow cover less than they say.

use crate::statistics::{ENOUGH_SEEDS, LEVEL};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::fmt;

/// When a point has enough seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Until {
    /// Traffic group; `None`: every group that has the column.
    pub group: Option<String>,
    /// Column of the table `runs`.
    pub column: String,
    /// Half of the interval's width.
    pub half_width: HalfWidth,
}

/// A half width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HalfWidth {
    /// As a share of the mean.
    Share(f64),
    /// In the unit of the column.
    Absolute(f64),
}

impl Until {
    /// Reads `COLUMN=5%` or `GROUP.COLUMN=0.01`; `columns` are those that have numbers.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str, columns: &[&str]) -> Result<Until, String> {
        let wanted = "[GROUP.]COLUMN=WIDTH is wanted, for example fct_mean_s=5% or web.fct_mean_s=0.01";
        let (name, width) = text.split_once('=').ok_or(wanted)?;
        let (group, column) = match name.trim().rsplit_once('.') {
            Some((group, column)) => (Some(group.to_owned()), column),
            None => (None, name.trim()),
        };
        if !columns.contains(&column) {
            return Err(format!(
                "the table of runs has no column of numbers called \"{column}\"; it has {}",
                columns.join(", ")
            ));
        }
        let width = width.trim();
        let positive = |text: &str| {
            let number = text.trim().parse().ok();
            number
                .filter(|number: &f64| number.is_finite() && *number > 0.0)
                .ok_or(format!("\"{width}\" is no width; {wanted}"))
        };
        let half_width = match width.strip_suffix('%') {
            Some(percent) => HalfWidth::Share(positive(percent)? / 100.0),
            None => HalfWidth::Absolute(positive(width)?),
        };
        Ok(Until {
            group,
            column: column.to_owned(),
            half_width,
        })
    }

    /// Whether the interval of these values, one of each seed, is narrow enough at one of `looks` looks.
    pub fn settled(&self, values: &[f64], looks: usize) -> bool {
        let Some((mean, half)) = interval(values, looks) else {
            return false;
        };
        match self.half_width {
            HalfWidth::Share(share) => half <= share * mean.abs(),
            HalfWidth::Absolute(width) => half <= width,
        }
    }
}

impl fmt::Display for Until {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(group) = &self.group {
            write!(f, "{group}.")?;
        }
        match self.half_width {
            HalfWidth::Share(share) => {
                // To thirteen digits: a hundredth times a hundred differs from what was written in the last.
                let written = format!("{:.12e}", share * 100.0);
                let percent: f64 = written.parse().map_err(|_| fmt::Error)?;
                write!(f, "{}={percent}%", self.column)
            }
            HalfWidth::Absolute(width) => write!(f, "{}={width}", self.column),
        }
    }
}

/// Mean and half width at one of `looks` looks; `None` with fewer than two values.
pub(super) fn interval(values: &[f64], looks: usize) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum::<f64>();
    let error = libm::sqrt(squares / (n - 1.0) / n);
    Some((mean, student(n - 1.0, looks)? * error))
}

/// Half width, in standard errors, of an interval with so many degrees of freedom at one of `looks` looks; `None` without a degree of freedom.
pub(super) fn student(freedom: f64, looks: usize) -> Option<f64> {
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let level = LEVEL / looks.max(1) as f64;
    Some(student.inverse_cdf(1.0 - level / 2.0))
}

/// After how many seeds is looked, of at most `most`.
pub(super) fn looks(most: usize) -> Vec<usize> {
    let mut looks: Vec<usize> = std::iter::successors(Some(ENOUGH_SEEDS), |seeds| seeds.checked_mul(2))
        .take_while(|&seeds| seeds < most)
        .collect();
    looks.push(most);
    looks
}

#[cfg(test)]
mod tests {
    use super::{HalfWidth, Until, interval, looks};

    /// Quantiles of Student's t with 4 degrees of freedom at 0.975 and 1 - 0.05/6: its density integrated by Simpson's rule gives
    /// 2.776445105 and 3.960786483.
    #[test]
    fn the_interval_is_that_of_the_density_integrated() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let (mean, half) = interval(&values, 1).expect("five values");
        assert!(
            (mean - 3.0).abs() < 1e-12 && (half - 1.963_243_161_4).abs() < 1e-8,
            "{half}"
        );
        let (_, half) = interval(&values, 3).expect("five values");
        assert!((half - 2.800_698_980_8).abs() < 1e-8, "{half}");
        assert!(interval(&[1.0], 1).is_none());
    }

    #[test]
    fn looks_double_up_to_the_most() {
        assert_eq!(looks(100), [10, 20, 40, 80, 100]);
        assert_eq!(looks(10), [10]);
        assert_eq!(looks(3), [3]);
        assert_eq!(looks(11), [10, 11]);
    }

    #[test]
    fn a_rule_is_read_and_mistakes_are_named() {
        let columns = ["fct_mean_s", "goodput_bps"];
        let until = Until::parse("web.v2.fct_mean_s=5%", &columns).expect("it is right");
        assert_eq!(until.group.as_deref(), Some("web.v2"));
        assert_eq!(until.half_width, HalfWidth::Share(0.05));
        let until = Until::parse("goodput_bps = 1e3", &columns).expect("it is right");
        assert_eq!((until.group, until.half_width), (None, HalfWidth::Absolute(1e3)));
        for text in [
            "fct_mean_s",
            "fct=5%",
            "fct_mean_s=",
            "fct_mean_s=-1",
            "fct_mean_s=x%",
        ] {
            assert!(Until::parse(text, &columns).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_is_of_the_mean() {
        let until = |text| Until::parse(text, &["x"]).expect("it is right");
        let values = [99.0, 100.0, 101.0, 100.0];
        // Standard error 0.408, t(3, 0.975) = 3.182: 1.3.
        assert!(until("x=1.4%").settled(&values, 1) && !until("x=1.2%").settled(&values, 1));
        assert!(until("x=1.4").settled(&values, 1) && !until("x=1.2").settled(&values, 1));
        // With four looks the level is 0.0125: t(3, 0.99375) = 5.392, and 2.2.
        assert!(!until("x=1.4").settled(&values, 4));
    }
}
