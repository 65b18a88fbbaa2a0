//! `fleetfoot testbed`: what a document measured between hosts, played here by Linux hosts in namespaces, beside its simulation and what
//! was published. The runs are experiments of the group `testbed`, which `reproduce` knows too.

use crate::failure::Failure;
use crate::layout::{fit, new_table, wrapped};
use crate::output::Common;
use crate::reproduce::{self, execute_with};
use crate::session::BatchFlags;
use crate::verdicts::{folded, published, short};
use clap::Args;
use fleetfoot_lab::experiment::{CheckResult, Evaluated};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Flags of `testbed`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Which: seed-000 (super-packets between A, B and C), favourtail, rdb, spreading, cdg, newcwv.
    #[arg(default_value = "seed-000")]
    name: String,
    /// One short run of each; says no more than the full run.
    #[arg(long, conflicts_with = "recorded")]
    quick: bool,
    /// Do not run: show what the full runs said that came with the program.
    #[arg(long, conflicts_with = "out")]
    recorded: bool,
    /// Output folder; by default fleetfoot-out/reproduce.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    batch: BatchFlags,
}

/// The testbeds: the name of each and its experiments.
const TESTBEDS: &[(&str, &[&str])] = &[
    (
        "seed-000",
        &[
            "own-testbed-incast",
            "own-testbed-at-once",
            "own-testbed-short-and-long",
            "own-testbed-attack",
            "own-testbed-attacks",
            "own-testbed-forgers",
        ],
    ),
    ("favourtail", &["own-testbed-favourtail"]),
    ("rdb", &["own-testbed-rdb"]),
    ("spreading", &["own-testbed-spreading"]),
    ("cdg", &["own-testbed-cdg"]),
    ("newcwv", &["own-testbed-newcwv"]),
];

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let known = TESTBEDS.iter().find(|(name, _)| *name == arguments.name);
    let Some((_, experiments)) = known else {
        let names: Vec<&str> = TESTBEDS.iter().map(|(name, _)| *name).collect();
        return Err(Failure::usage(format!(
            "there is no testbed called `{}`; there are {}",
            arguments.name,
            names.join(", ")
        )));
    };
    let names = experiments.iter().map(|&id| id.to_owned()).collect();
    let level = (arguments.quick, arguments.recorded);
    let reproduced = reproduce::Arguments::of(names, level, arguments.out.clone(), arguments.batch.clone());
    execute_with(&reproduced, common, &table)
}

/// A line of the table: what was measured on real packets, and the same in the simulator.
struct Row<'a> {
    real: Option<&'a CheckResult>,
    simulated: Option<&'a CheckResult>,
}

/// What a check is of, the same for real packets and the simulator.
fn subject(check: &CheckResult) -> String {
    check.name.replace(SIMULATED, "")
}

/// What checks of an experiment compare, real packets and simulator side by side.
fn rows(checks: &[CheckResult]) -> Vec<Row<'_>> {
    let mut rows: Vec<(String, Row<'_>)> = Vec::new();
    // Times and lateness alone say nothing: they are in the report.
    let compared = |check: &&CheckResult| check.expected.is_some() || check.published.is_some();
    for check in checks.iter().filter(compared) {
        let subject = subject(check);
        let place = rows.iter().position(|(other, _)| *other == subject);
        let place = place.unwrap_or_else(|| {
            let (real, simulated) = (None, None);
            rows.push((subject, Row { real, simulated }));
            rows.len() - 1
        });
        let row = &mut rows[place].1;
        match check.name.contains(SIMULATED) {
            true => row.simulated = Some(check),
            false => row.real = Some(check),
        }
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

fn table(evaluated: &[&Evaluated], colored: bool, width: usize) -> String {
    let mut table = new_table(
        colored,
        &[
            "what",
            "real packets",
            "simulated",
            "published",
            "expected",
            "holds",
        ],
    );
    let (mut notes, mut late) = (String::new(), None::<f64>);
    for experiment in evaluated {
        for row in rows(&experiment.checks) {
            let Some(check) = row.real.or(row.simulated) else {
                continue;
            };
            let claim = check.claim.replace(" on real packets", "");
            table.add_row([
                folded(&claim, CLAIM_WIDTH),
                row.real.map_or_else(String::new, measured),
                row.simulated.map_or_else(String::new, measured),
                folded(&published(check), PUBLISHED_WIDTH),
                check.expected.clone().unwrap_or_default(),
                [row.real, row.simulated]
                    .into_iter()
                    .flatten()
                    .filter(|check| check.expected.is_some())
                    .map(|check| match check.holds {
                        Some(true) => "yes",
                        Some(false) => "no",
                        None => "undecided",
                    })
                    .collect::<Vec<_>>()
                    .join(", "),
            ]);
        }
        let shares = experiment
            .checks
            .iter()
            .filter(|check| check.name.starts_with("lateness"));
        late = shares
            .filter_map(|check| check.measured)
            .fold(late, |most, share| {
                Some(most.map_or(share, |most| most.max(share)))
            });
        let verdict = format!("{}: {}", experiment.experiment.id, experiment.verdict.name());
        let note = experiment
            .note
            .as_ref()
            .map_or_else(String::new, |note| format!(". {note}"));
        let _ = writeln!(
            notes,
            "{}",
            wrapped(&format!("{verdict}{note}"), width, "  ").trim_start()
        );
    }
    fit(&mut table, width, &[4, 5]);
    let late = late.map_or_else(String::new, |share| {
        format!(
            "At most {:.2} % of the packets were more than a millisecond late. ",
            share * 100.0
        )
    });
    format!("\n{table}\n{notes}{late}95 % intervals; the page with all figures is docs/testbed.md.\n")
}

/// A value and its interval.
fn measured(check: &CheckResult) -> String {
    let value = check.measured.map_or_else(|| String::from("-"), short);
    match check.interval.ends() {
        Some([low, high]) => format!("{value} ({} to {})", short(low), short(high)),
        None => value,
    }
}

/// In the name of a check of simulated runs, beside which one of real packets stands.
const SIMULATED: &str = ", simulated";

const CLAIM_WIDTH: usize = 26;
const PUBLISHED_WIDTH: usize = 18;

#[cfg(test)]
mod tests {
    use super::{SIMULATED, TESTBEDS, rows};
    use fleetfoot_lab::experiment::record::Record;
    use fleetfoot_lab::experiment::{Evaluated, Experiment, library};

    /// Experiments of the group with real packets.
    fn played() -> Vec<Experiment> {
        let mut group = library::select(&[String::from("testbed")]).expect("there is such a group");
        group.retain(|experiment| experiment.file.figure.live);
        group
    }

    #[test]
    fn every_experiment_with_real_packets_is_of_one_testbed() {
        let group = played();
        for experiment in &group {
            let of = TESTBEDS
                .iter()
                .filter(|(_, ids)| ids.contains(&experiment.id.as_str()));
            assert_eq!(of.count(), 1, "{}", experiment.id);
        }
        let all = TESTBEDS.iter().flat_map(|(_, ids)| *ids);
        assert_eq!(all.count(), group.len());
    }

    #[test]
    fn what_is_measured_on_real_packets_has_its_simulation_beside_it() {
        let record = Record::embedded().expect("the records can be read");
        for experiment in played() {
            let Some(recorded) = record.full(&experiment.id) else {
                continue;
            };
            let evaluated = Evaluated::recorded(&experiment, recorded);
            let rows = rows(&evaluated.checks);
            let both = rows
                .iter()
                .filter(|row| row.real.is_some() && row.simulated.is_some());
            assert!(
                both.count() > 0,
                "{}: a pair of checks `X` and `X{SIMULATED}`",
                experiment.id
            );
        }
    }
}
