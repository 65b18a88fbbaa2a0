//! The program `fleetfoot`: one file per verb.
//!
//! Data goes to stdout, talk and progress to stderr; the exit codes are in `EXIT_CODES`. With `--json` stdout holds exactly
//! one JSON document, also for a failure.
//!
//! The program is a library so that another program can be it with mechanisms of its own: [`run`] with its plug-ins.

#![forbid(unsafe_code)]

mod attach;
mod bench;
mod beside;
mod compare;
mod completions;
mod doctor;
mod drill;
mod endpoint;
mod events;
mod explain;
mod failure;
mod forecast;
mod host;
mod import;
mod layout;
mod links;
mod list;
mod mark;
#[cfg(target_os = "linux")]
mod masquerade;
mod output;
mod progress;
mod proxy;
mod ranked;
mod recommend;
mod reproduce;
mod router;
mod run;
#[cfg(feature = "serve")]
mod serve;
mod session;
mod setup;
mod shell;
mod sweep;
mod table;
mod target;
mod testbed;
mod verdicts;
mod workers;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use fleetfoot_core::plugin::Plugins;
use fleetfoot_lab::{memory, plugins};
use std::io::Write as _;
use std::process::ExitCode;

/// What the program's exit codes mean, for its help.
const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    it began and failed: a script did not pass, memory or disk were not enough
  2    bad input or usage: a file, a flag, a place where nothing can be written
  130  stopped by Ctrl-C; finished runs are kept";

/// Where TCP latency mechanisms live, run and are compared.
#[derive(Debug, Parser)]
#[command(name = "fleetfoot", version = env!("FLEETFOOT_VERSION"), long_about = None, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    common: output::Common,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run every variant with common random numbers and rank them by what they win and cost.
    Compare(compare::Arguments),
    /// Run a scenario once: flows, links, traces, a capture.
    Run(run::Arguments),
    /// Published figures and tables: what was published beside what is measured, one verdict each.
    Reproduce(reproduce::Arguments),
    /// One setting to try first: searched for, compared, tried near the described network.
    Recommend(recommend::Arguments),
    /// One scenario at many points over all cores: a grid or a sample, resumable, one data set.
    Sweep(sweep::Arguments),
    /// A published testbed on this machine, between real hosts: measured on real packets, simulated, published.
    Testbed(testbed::Arguments),
    /// Make a scenario of a capture: links, round-trip times, sizes, think times.
    Import(import::Arguments),
    /// Run a command behind the described link: real packets through the simulator's queues.
    Shell(shell::Arguments),
    /// Mark super-packets for a command, or between two interfaces: hosts need not know of them.
    Mark(mark::Arguments),
    /// Our TCP as a host on real packets: serve files, fetch them.
    Host(host::Arguments),
    /// Forward between interfaces with a queue of choice before each: real packets.
    Router(router::Arguments),
    /// Put a mechanism into this machine's kernel: a congestion control, options of connections, marks.
    Attach(attach::Attach),
    /// Take it out again, and put back what was there.
    Detach(attach::Detach),
    /// Connections between the kernel's TCP and ours: over a bad link with any of its mechanisms.
    Proxy(proxy::Arguments),
    /// The explorer: a page that compares while one changes the network, at this machine's own address.
    #[cfg(feature = "serve")]
    Serve(serve::Arguments),
    /// What works on this machine for real packets, and what to do about what does not.
    Doctor(doctor::Arguments),
    /// Play packetdrill scripts against our TCP in virtual time.
    Drill(drill::Arguments),
    /// Mechanisms, queues, congestion controls, profiles, experiments and examples.
    List(list::Arguments),
    /// What one of them does, its source, parameters, evidence and how to turn it on.
    Explain(explain::Arguments),
    /// Measure the engine's speed.
    Bench(bench::Arguments),
    /// Print a completion script for a shell, or a manual page.
    Completions(completions::Arguments),
}

/// Runs the program with the arguments of the process. Scenario files may name what `plugins` brings, and `list`, `explain` and
/// the schema show it.
pub fn run(plugins: Plugins) -> ExitCode {
    // What stands behind `--` is the command's.
    let mut ours = std::env::args_os().take_while(|argument| argument != "--");
    let json = ours.any(|argument| argument == "--json");
    if let Err(problem) = plugins::install(plugins) {
        return Failure::other(problem).report(json);
    }
    let result = match Arguments::try_parse() {
        Ok(arguments) => {
            memory::limit_to(arguments.common.memory.unwrap_or_else(memory::default_ceiling));
            dispatch(&arguments)
        }
        Err(help) if help.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !json => {
            // Help, but nothing was done.
            let _ = write!(std::io::stderr(), "{}", help.render());
            return ExitCode::from(2);
        }
        Err(error) if error.use_stderr() => Err(Failure::usage(told(error))),
        Err(help) => output::print(&help.render().to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

/// What is wrong with the arguments; where a verb takes a command and its `--` was forgotten, that.
fn told(mut error: clap::Error) -> String {
    let arguments: Vec<String> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(word) = arguments
            .iter()
            .skip(1)
            .find(|word| CHECKS.contains(&word.as_str()))
    {
        let text = error.render().to_string();
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        return format!(
            "{first}\n\n  tip: there is no `{word}`: every verb that takes a scenario checks it first, `fleetfoot run FILE` runs it once\n{rest}"
        );
    }
    let runs = |verb: &clap::Command| verb.get_positionals().any(clap::Arg::is_last_set);
    let command = Arguments::command();
    let verb = arguments.iter().find_map(|name| command.find_subcommand(name));
    let forgotten =
        error.kind() == ErrorKind::UnknownArgument && !arguments.iter().any(|argument| argument == "--");
    let Some(verb) = verb.filter(|verb| forgotten && runs(verb)) else {
        return error.render().to_string();
    };
    // Its advice is to put `--` before this one argument.
    error.remove(ContextKind::Suggested);
    let text = error.render().to_string();
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let name = verb.get_name();
    format!(
        "{first}\n\n  tip: if a command begins before it, write `--` before the command: fleetfoot {name} [OPTIONS] -- COMMAND\n{rest}"
    )
}

/// Words with which users ask for a file to be checked.
const CHECKS: [&str; 4] = ["check", "validate", "lint", "verify"];

fn dispatch(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    match &arguments.verb {
        Verb::Compare(verb) => compare::execute(verb, common),
        Verb::Run(verb) => run::execute(verb, common),
        Verb::Reproduce(verb) => reproduce::execute(verb, common),
        Verb::Recommend(verb) => recommend::execute(verb, common),
        Verb::Sweep(verb) => sweep::execute(verb, common),
        Verb::Testbed(verb) => testbed::execute(verb, common),
        Verb::Import(verb) => import::execute(verb, common),
        Verb::Shell(verb) => shell::execute(verb, common),
        Verb::Mark(verb) => mark::execute(verb, common),
        Verb::Host(verb) => host::execute(verb, common),
        Verb::Router(verb) => router::execute(verb, common),
        Verb::Attach(verb) => attach::attach(verb, common),
        Verb::Detach(verb) => attach::detach(verb, common),
        Verb::Proxy(verb) => proxy::execute(verb, common),
        #[cfg(feature = "serve")]
        Verb::Serve(verb) => serve::execute(verb, common),
        Verb::Doctor(verb) => doctor::execute(verb, common),
        Verb::Drill(verb) => drill::execute(verb, common),
        Verb::List(verb) => list::execute(verb, common),
        Verb::Explain(verb) => explain::execute(verb, common),
        Verb::Bench(verb) => bench::execute(verb, common),
        Verb::Completions(verb) => completions::execute(verb, &mut Arguments::command()),
    }
}
