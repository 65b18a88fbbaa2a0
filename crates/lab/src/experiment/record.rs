//! `experiments/verdicts.toml`: what full and quick runs said, checked in, so that a changed verdict or number is a diff
//! that somebody reads.

use super::verdict::Verdict;
use super::{Evaluated, Level};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file: experiments by id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Record(pub BTreeMap<String, OfExperiment>);

/// What is recorded of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfExperiment {
    /// Why the numbers changed, written by whoever changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The full run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Recorded>,
    /// The quick run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick: Option<Recorded>,
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Its verdict.
    pub verdict: Verdict,
    /// How many seeds; 0 for a closed form.
    pub seeds: u32,
    /// Checks by name.
    pub checks: BTreeMap<String, RecordedCheck>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCheck {
    /// The estimate, to six digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// Its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Whether it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
}

impl Record {
    /// The record that is part of the program.
    ///
    /// # Errors
    /// The text is not as this program writes it.
    pub fn embedded() -> Result<Record, toml::de::Error> {
        super::library::text("experiments/verdicts.toml").map_or_else(|| Ok(Record::default()), Record::parse)
    }

    /// Reads the text of a record.
    ///
    /// # Errors
    /// The text is not as this program writes it.
    pub fn parse(text: &str) -> Result<Record, toml::de::Error> {
        toml::from_str(text)
    }

    /// What the full run of the experiment said.
    pub fn full(&self, id: &str) -> Option<&Recorded> {
        self.0.get(id)?.full.as_ref()
    }

    /// Enters what a run said. The usual level is not recorded: it is a shorter full run.
    pub fn enter(&mut self, evaluated: &Evaluated, level: Level, seeds: u32) {
        let recorded = Recorded::of(evaluated, seeds);
        let entry = self.0.entry(evaluated.experiment.id.clone()).or_default();
        match level {
            Level::Full => entry.full = Some(recorded),
            Level::Quick => entry.quick = Some(recorded),
            Level::Usual => {}
        }
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let body = toml::to_string(self).expect("numbers and text can be written as TOML");
        format!("{HEADER}{body}")
    }
}

impl Recorded {
    /// What is recorded of an evaluated experiment.
    pub fn of(evaluated: &Evaluated, seeds: u32) -> Recorded {
        let checks = evaluated.checks.iter().map(|check| {
            let recorded = RecordedCheck {
                measured: check.measured.filter(|_| !evaluated.timed).map(six_digits),
                ci95: check
                    .interval
                    .ends()
                    .filter(|_| !evaluated.timed)
                    .map(|ends| ends.map(six_digits)),
                holds: check.holds.filter(|_| !evaluated.timed),
            };
            (check.name.clone(), recorded)
        });
        Recorded {
            verdict: evaluated.verdict,
            seeds,
            checks: checks.collect(),
        }
    }
}

/// The number to six digits: what is recorded is compared exactly.
fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

const HEADER: &str = "\
# What the experiments said: `fleetfoot reproduce --full --record experiments/verdicts.toml`, and the same with --quick.
# A test compares quick runs with it. A changed verdict or number is reviewed; `reason` says why it is right.

";

#[cfg(test)]
mod tests {
    use super::{Record, six_digits};

    #[test]
    fn the_checked_in_record_is_as_the_program_writes_it() {
        let record = Record::embedded().unwrap_or_else(|error| panic!("{error}"));
        let again: Record = toml::from_str(&record.to_text()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(record, again);
        let text = super::super::library::text("experiments/verdicts.toml").unwrap_or("");
        assert_eq!(record.to_text(), text);
    }

    #[test]
    fn numbers_are_kept_to_six_digits() {
        assert_eq!(six_digits(0.123_456_789), 0.123_457);
        assert_eq!(six_digits(60e-6), 60e-6);
        assert_eq!(six_digits(0.0), 0.0);
    }
}
