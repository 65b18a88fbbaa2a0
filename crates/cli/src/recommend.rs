//! `fleetfoot recommend`: one setting to try first, with its command and how sure it is.

use crate::compare::{Task, described};
use crate::failure::Failure;
use crate::import::is_capture;
use crate::output::Common;
use crate::session::{BatchFlags, command};
use clap::{Args, ValueEnum};
use fleetfoot_lab::compare::Choice;
use fleetfoot_lab::compare::search::recommend;
use fleetfoot_lab::compare::space::{Control, Wish, candidates};
use std::path::PathBuf;

/// Flags of `recommend`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The scenario, or a capture (pcap, pcapng) to make one of; without one, the built-in home line.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Where you can change something: hosts that send, queues of routers, or both.
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = Where::Both)]
    control: Where,
    /// Only what a released Linux kernel has.
    #[arg(long)]
    only_linux: bool,
    /// Number of seeds of the finalists, instead of the scenario's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seeds: Option<u32>,
    /// The first seed, instead of the scenario's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Apply queue mechanisms here, not where queues stand: LINK or LINK:DIRECTION (forward, reverse, down, up).
    #[arg(long = "where", value_name = "LINK[:DIRECTION]", value_delimiter = ',')]
    places: Vec<String>,
    /// Change the scenario: a path and a value, such as network.bottleneck.rate="20 Mbit/s"; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Output folder; by default fleetfoot-out/TITLE-HASH.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    batch: BatchFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Where {
    /// Hosts that send.
    Sender,
    /// Queues of routers.
    Router,
    /// Both.
    Both,
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let file = arguments.file.as_deref();
    let wish = Wish {
        control: match arguments.control {
            Where::Sender => Control::Sender,
            Where::Router => Control::Router,
            Where::Both => Control::Both,
        },
        only_linux: arguments.only_linux,
    };
    let scenario = described(&arguments.set, file, arguments.out.as_deref(), common)?;
    let choice = Choice {
        places: arguments.places.clone(),
        seed: arguments.seed,
        seeds: arguments.seeds,
        search: Some(wish),
        ..Choice::default()
    };
    let task = Task {
        likely: Choice {
            candidates: candidates(&scenario, wish),
            ..choice.clone()
        },
        scenario,
        // A capture is imported again by nobody: the scenario has what is needed of it.
        file: file.filter(|file| !is_capture(file)),
        built_in: file.is_none(),
        choice,
        batch: &arguments.batch,
        out: arguments.out.as_deref(),
        search: Some(wish),
    };
    let made = task.carried_out(common, |plan, step| recommend(&plan, wish, &command(), step))?;
    made.show(common)
}
