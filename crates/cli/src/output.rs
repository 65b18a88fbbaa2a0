//! What goes to stdout and stderr, and the flags that every verb has.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
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
