//! Marking real packets: beside a command, or between two interfaces.

use super::words::{Facts, document, summary};
use super::{Arguments, Layouts};
use crate::failure::Failure;
use crate::masquerade::{is_root, masquerade};
use crate::output::{Common, print};
use crate::shell::{code_of, ended_with_its_link};
use fleetfoot_live::{Between, MarkRules, Network, Passage, Shell, Signals, interfaces};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let marking = arguments.marking()?;
    let Layouts { four, six } = arguments.layouts()?;
    let rules = MarkRules {
        marking,
        four,
        six,
        udp: arguments.udp,
        ports: arguments.port.clone(),
        networks: arguments
            .to
            .iter()
            .map(|&(address, prefix)| Network { address, prefix })
            .collect(),
        mtu: arguments.mtu.unwrap_or(USUAL_MTU),
        seed: unpredictable(),
        lies: Vec::new(),
    };
    match &arguments.between {
        Some((inside, outside)) => between(&rules, inside, outside, common),
        None if arguments.command.is_empty() => Err(Failure::usage(
            "what is to be marked? fleetfoot mark -- COMMAND, or fleetfoot mark --between INSIDE,OUTSIDE",
        )),
        None => command(arguments, &rules, common),
    }
}

/// Runs a command whose packets are marked.
fn command(arguments: &Arguments, rules: &MarkRules, common: &Common) -> Result<(), Failure> {
    let isolated = arguments.far.is_some() || !is_root();
    let masquerade = match arguments.masquerade {
        true => Some(Arc::new(masquerade(
            common,
            "Without root both ends are inside: --far COMMAND",
        )?)),
        false => None,
    };
    let other = |error: fleetfoot_live::Error| Failure::other(error.to_string());
    if isolated {
        Shell::isolate().map_err(other)?;
        if arguments.far.is_none() {
            common.say("Without root the command is in a network of its own: what it shall reach is to be started by --far COMMAND.");
        }
    }
    let shell = Shell {
        command: arguments.command.clone(),
        far: arguments.far.clone(),
        mtu: rules.mtu,
        six_room: rules.six.map_or(0, |layout| layout.overhead().into()),
        to_stderr: common.json,
        masquerade,
        isolated,
        ..Shell::default()
    };
    let finished = shell
        .run([Passage::marking(rules.clone()), Passage::plain()])
        .map_err(other)?;
    let code = code_of(finished.status);
    if let Some(status) = finished.far {
        common.say(&format!(
            "The far command ended before the command, with exit status {}.",
            code_of(status)
        ));
    }
    let facts = Facts {
        between: None,
        exit_code: Some(code),
        missed: finished.missed,
    };
    report(rules, &finished.directions, &facts, common)?;
    // What --masquerade changed is undone before the program ends.
    drop(shell);
    match (code, &finished.broken) {
        (_, Some(error)) => Err(ended_with_its_link(error)),
        (0, None) => Ok(()),
        (code, None) => std::process::exit(code),
    }
}

/// Marks what passes from one interface to another.
fn between(rules: &MarkRules, inside: &str, outside: &str, common: &Common) -> Result<(), Failure> {
    let there = interfaces();
    if let Some(name) = [inside, outside]
        .iter()
        .find(|name| !there.iter().any(|other| other == *name))
    {
        return Err(Failure::usage(format!(
            "--between: there is no interface `{name}`; interfaces: {}",
            there.join(", ")
        )));
    }
    let other = |error: fleetfoot_live::Error| match error.cause.kind() {
        std::io::ErrorKind::InvalidInput => Failure::usage(format!("--between: {}", error.what)),
        _ => Failure::other(error.to_string()),
    };
    let signals = Signals::take().map_err(other)?;
    let between = Between::prepare([inside, outside]).map_err(other)?;
    for (name, offloads) in between.switched_off() {
        common.say(&format!(
            "Switched off at {name} until the end: {}.",
            offloads.join(", ")
        ));
    }
    let [_, mtu] = between.mtus();
    let rules = MarkRules { mtu, ..rules.clone() };
    let directions = [Passage::marking(rules.clone()), Passage::plain()];
    common.say(&format!("Marking from {inside} to {outside}; Ctrl-C ends it."));
    let passed = between.run(directions, &signals).map_err(other)?;
    drop(between);
    let facts = Facts {
        between: Some([inside, outside]),
        exit_code: None,
        missed: passed.missed,
    };
    report(&rules, &passed.directions, &facts, common)
}

fn report(
    rules: &MarkRules,
    directions: &[Passage; 2],
    facts: &Facts<'_>,
    common: &Common,
) -> Result<(), Failure> {
    if common.json {
        return print(&format!("{:#}\n", document(rules, directions, facts)));
    }
    common.say(&summary(directions, facts));
    Ok(())
}

/// A number that nobody can guess.
fn unpredictable() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// MTU of the command's interface where none is given.
const USUAL_MTU: u32 = 1500;
