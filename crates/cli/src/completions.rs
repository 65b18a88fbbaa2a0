//! `fleetfoot completions`: scripts for shells, and the manual pages.

use crate::explain;
use crate::failure::Failure;
use crate::output::print;
use clap::builder::PossibleValuesParser;
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use fleetfoot_lab::experiment::library;
use fleetfoot_lab::mechanisms::ENTRIES;

/// Flags of `completions`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A shell, or `man` for a manual page.
    what: What,
    /// With `man`: the page of this verb.
    verb: Option<String>,
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
            // Builds names such as `fleetfoot-compare`, and gives verbs the flags that all have.
            command.build();
            let page = match arguments.verb.as_deref() {
                None => &*command,
                Some(verb) => command
                    .find_subcommand(verb)
                    .ok_or_else(|| unknown(verb, command))?,
            };
            let name = page.get_display_name().unwrap_or_else(|| page.get_name());
            clap_mangen::Man::new(page.clone())
                .title(name.to_uppercase())
                .date(env!("FLEETFOOT_DATE"))
                .source(concat!("Fleetfoot ", env!("CARGO_PKG_VERSION")))
                .manual("Fleetfoot")
                .render(&mut bytes)
                .map_err(|error| Failure::other(error.to_string()))?;
            return print(&String::from_utf8_lossy(&bytes));
        }
    };
    if let Some(verb) = &arguments.verb {
        return Err(Failure::usage(format!(
            "a completion script is for all verbs: leave `{verb}` out"
        )));
    }
    let mut command = with_names(command.clone());
    clap_complete::generate(shell, &mut command, "fleetfoot", &mut bytes);
    print(&String::from_utf8_lossy(&bytes))
}

/// The command with the names that its arguments take, which a shell then completes too.
fn with_names(command: Command) -> Command {
    let mechanisms = || ENTRIES.iter().map(|entry| entry.name.to_owned()).collect();
    [
        ("explain", "name", explain::names()),
        ("compare", "only", mechanisms()),
        ("run", "variant", mechanisms()),
        ("reproduce", "names", library::ids().map(str::to_owned).collect()),
    ]
    .into_iter()
    .fold(
        command,
        |command, (verb, argument, mut names): (_, _, Vec<String>)| {
            names.sort();
            names.dedup();
            command.mut_subcommand(verb, |verb| {
                verb.mut_arg(argument, |argument| {
                    argument.value_parser(PossibleValuesParser::new(names))
                })
            })
        },
    )
}

fn unknown(verb: &str, command: &Command) -> Failure {
    let verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    Failure::usage(format!("there is no verb `{verb}`; verbs: {}", verbs.join(", ")))
}
