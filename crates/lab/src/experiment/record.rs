//! `experiments/GROUP/verdicts/ID.toml`: what the full and the quick run of an experiment said, checked in, so that a changed
//! verdict or number is a diff that somebody reads.

use super::verdict::Verdict;
use super::{Evaluated, Experiment, Level};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// What is recorded of experiments, by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record(pub BTreeMap<String, OfExperiment>);

/// The file of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfExperiment {
    /// Why the numbers changed, written by whoever changed them.
    pub reason: Option<String>,
    /// The full run.
    pub full: Option<Recorded>,
    /// The quick run.
    pub quick: Option<Recorded>,
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCheck {
    /// The estimate, to six digits.
    pub measured: Option<f64>,
    /// Its interval.
    pub ci95: Option<[f64; 2]>,
    /// Whether it holds.
    pub holds: Option<bool>,
}

impl Record {
    /// The record that is part of the program.
    ///
    /// # Errors
    /// A file is not as this program writes it.
    pub fn embedded() -> Result<Record, toml::de::Error> {
        let files = super::library::verdicts();
        let record = files.map(|(id, text)| Ok((id.to_owned(), OfExperiment::parse(text)?)));
        Ok(Record(record.collect::<Result<_, toml::de::Error>>()?))
    }

    /// What the full run of the experiment said.
    pub fn full(&self, id: &str) -> Option<&Recorded> {
        self.0.get(id)?.full.as_ref()
    }
}

impl OfExperiment {
    /// Where the file of the experiment is, below the folder `experiments`.
    pub fn path(experiment: &Experiment) -> PathBuf {
        let file = format!("{}.toml", experiment.id);
        [&experiment.group, FOLDER, &file].iter().collect()
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// The text is not as this program writes it.
    pub fn parse(text: &str) -> Result<OfExperiment, toml::de::Error> {
        toml::from_str(text)
    }

    /// Enters what a run said. The usual level is not recorded: it is a shorter full run.
    pub fn enter(&mut self, evaluated: &Evaluated, level: Level, seeds: u32) {
        let recorded = Recorded::of(evaluated, seeds);
        match level {
            Level::Full => self.full = Some(recorded),
            Level::Quick => self.quick = Some(recorded),
            Level::Usual => {}
        }
    }

    /// The text of the file: one line for each check.
    pub fn to_text(&self) -> String {
        let mut text = String::from(HEADER);
        if let Some(reason) = &self.reason {
            let _ = writeln!(text, "reason = {}", quoted(reason));
        }
        for (level, recorded) in [("full", &self.full), ("quick", &self.quick)] {
            let Some(recorded) = recorded else { continue };
            let (verdict, seeds) = (recorded.verdict.name(), recorded.seeds);
            let _ = writeln!(
                text,
                "\n[{level}]\nverdict = \"{verdict}\"\nseeds = {seeds}\n\n[{level}.checks]"
            );
            for (name, check) in &recorded.checks {
                let _ = writeln!(text, "{} = {}", quoted(name), check.inline());
            }
        }
        text
    }
}

impl RecordedCheck {
    /// The check as an inline table.
    fn inline(&self) -> String {
        let number = |value: f64| toml::Value::Float(value).to_string();
        let measured = self.measured.map(|value| format!("measured = {}", number(value)));
        let ci95 = self
            .ci95
            .map(|[low, high]| format!("ci95 = [{}, {}]", number(low), number(high)));
        let holds = self.holds.map(|holds| format!("holds = {holds}"));
        let parts: Vec<String> = [measured, ci95, holds].into_iter().flatten().collect();
        format!("{{ {} }}", parts.join(", "))
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

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The folder of these files in that of a group.
pub(super) const FOLDER: &str = "verdicts";

const HEADER: &str = "# Written by `fleetfoot reproduce --record`, with --full and --quick; `reason` says why a changed number is right.\n";

#[cfg(test)]
mod tests {
    use super::super::library;
    use super::{OfExperiment, six_digits};

    #[test]
    fn the_checked_in_files_are_as_the_program_writes_them() {
        for (id, text) in library::verdicts() {
            let record = OfExperiment::parse(text).unwrap_or_else(|error| panic!("{id}: {error}"));
            assert_eq!(record.to_text(), text, "{id}");
        }
    }

    #[test]
    fn every_file_is_of_an_experiment_of_its_group() {
        for experiment in library::all().unwrap_or_else(|error| panic!("{error}")) {
            let path = OfExperiment::path(&experiment).display().to_string();
            assert!(library::text(&format!("experiments/{path}")).is_some(), "{path}");
        }
        assert_eq!(library::verdicts().count(), library::ids().count());
    }

    #[test]
    fn numbers_are_kept_to_six_digits() {
        assert_eq!(six_digits(0.123_456_789), 0.123_457);
        assert_eq!(six_digits(60e-6), 60e-6);
        assert_eq!(six_digits(0.0), 0.0);
    }
}
