//! `fleetfoot completions`: scripts for shells, and the manual page.

use crate::failure::Failure;
use crate::output::print;
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;

/// Flags of `completions`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A shell, or `man` for the manual page.
    what: What,
}

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
    Man,
}

pub(crate) fn execute(arguments: &Arguments, command: &mut Command) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    let shell = match arguments.what {
        What::Bash => Shell::Bash,
        What::Elvish => Shell::Elvish,
        What::Fish => Shell::Fish,
        What::Powershell => Shell::PowerShell,
        What::Zsh => Shell::Zsh,
        What::Man => {
            clap_mangen::Man::new(command.clone())
                .render(&mut bytes)
                .map_err(|error| Failure::other(error.to_string()))?;
            return print(&String::from_utf8_lossy(&bytes));
        }
    };
    clap_complete::generate(shell, command, "fleetfoot", &mut bytes);
    print(&String::from_utf8_lossy(&bytes))
}
