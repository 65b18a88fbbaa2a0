//! What goes to stdout and stderr, and the flags that every verb has.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use fleetfoot_lab::run::Store;
use std::io::{ErrorKind, IsTerminal, Write};

/// Flags of every verb.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Print exactly one JSON document on stdout, also for a failure.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No talk and no progress on stderr.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to use colour; `NO_COLOR` is honoured.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    /// Memory that the program may take: 500MB, 2GB; a run that needs more is stopped and says what grew. By default half of
    /// what the machine, its control groups and limits allow.
    #[arg(long, global = true, value_name = "SIZE", value_parser = memory_size)]
    pub(crate) memory: Option<u64>,
}

/// A size such as 500MB or 2 GiB, in bytes.
fn memory_size(text: &str) -> Result<u64, String> {
    let end = text
        .trim_end()
        .trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[end.len()..].trim().to_ascii_lowercase();
    let factor = match unit.as_str() {
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "mib" => f64::from(1 << 20),
        "gib" => f64::from(1 << 30),
        _ => return Err(String::from("a number and a unit are wanted: 500MB, 2GB, 4GiB")),
    };
    let number: f64 = end
        .trim()
        .parse()
        .map_err(|_| format!("\"{}\" is not a number", end.trim()))?;
    let bytes = number * factor;
    if !(LEAST_MEMORY..=1e18).contains(&bytes) {
        return Err(String::from("64MB are needed at least"));
    }
    Ok(bytes as u64)
}

/// What the program itself needs, with some room (bytes).
const LEAST_MEMORY: f64 = 64e6;

/// A count with its noun: 1 run, 2 runs.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A text of somebody else on one line without control characters: a terminal would obey them.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(shown).collect()
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Common {
    /// Whether stdout gets colour.
    pub(crate) fn colored(&self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                std::io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
            }
        }
    }

    /// Says something on stderr.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            // Talk that nobody can read is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// Says what a store of finished runs removed, if it had to.
    pub(crate) fn say_of_store(&self, store: &Store) {
        if let Some(remark) = store.remark() {
            self.say(&remark);
        }
    }
}

/// Prints data on stdout. A closed pipe ends the program quietly.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::closed_pipe()),
        Err(error) => Err(Failure::other(format!("cannot write to stdout: {error}"))),
    }
}
