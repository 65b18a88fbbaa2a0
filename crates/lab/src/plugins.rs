//! Names of congestion controls and queue disciplines: the registered ones, and those that this program brings.
//!
//! Which names exist is settled once for the process, by [`install`] before the first scenario is read, like the ceiling of
//! [`crate::memory`]. Scenario files, the schema, `list` and `explain` then know the implementations of the program, and runs
//! carry them.

use fleetfoot_core::cc::AnyController;
use fleetfoot_core::parameter::Value;
use fleetfoot_core::plugin::Plugins;
use fleetfoot_core::queue::AnyQueue;
use fleetfoot_core::registry::Entry;
use std::sync::OnceLock;

static INSTALLED: OnceLock<Plugins> = OnceLock::new();

/// Makes `plugins` known to everything that reads names. May be called once.
///
/// # Errors
/// A sentence: a name is taken or not well formed, a text or a default is missing, or plug-ins were installed before.
pub fn install(plugins: Plugins) -> Result<(), String> {
    check(plugins)?;
    INSTALLED
        .set(plugins)
        .map_err(|_| String::from("plug-ins are installed once, before the first scenario is read"))
}

/// What was installed; nothing in most programs.
pub fn installed() -> Plugins {
    INSTALLED.get().copied().unwrap_or(Plugins::NONE)
}

/// The entries of all queue disciplines, the registered ones first.
pub fn queues() -> Vec<&'static Entry> {
    let foreign = installed().queues.iter().map(|plugin| &plugin.entry);
    AnyQueue::ENTRIES.iter().chain(foreign).collect()
}

/// The entries of all congestion controls, the registered ones first.
pub fn controllers() -> Vec<&'static Entry> {
    let foreign = installed().controllers.iter().map(|plugin| &plugin.entry);
    AnyController::ENTRIES.iter().chain(foreign).collect()
}

/// The queue discipline called `name`.
pub fn queue(name: &str) -> Option<&'static Entry> {
    AnyQueue::entry_among(installed().queues, name)
}

/// The congestion control called `name`.
pub fn controller(name: &str) -> Option<&'static Entry> {
    AnyController::entry_among(installed().controllers, name)
}

fn check(plugins: Plugins) -> Result<(), String> {
    let mut taken: Vec<&str> = AnyController::ENTRIES.iter().map(|entry| entry.name).collect();
    taken.extend(AnyQueue::ENTRIES.iter().map(|entry| entry.name));
    for entry in plugins.entries() {
        let name = entry.name;
        let is_word = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(format!(
                "the plug-in name `{name}` has other characters than a-z, 0-9 and -"
            ));
        }
        if taken.contains(&name) {
            return Err(format!("the plug-in name `{name}` is taken"));
        }
        taken.push(name);
        if entry.document().next().is_none() {
            return Err(format!(
                "the plug-in `{name}` has no document: its source begins with `//!` lines"
            ));
        }
        for parameter in entry.parameters {
            if parameter.default != Value::Auto
                && let Err(error) = parameter.kind.check(parameter.default)
            {
                return Err(format!(
                    "the default of the parameter `{}` of the plug-in `{name}`: {error}",
                    parameter.name
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;
    use fleetfoot_core::parameter;
    use fleetfoot_core::parameter::Parameter;
    use fleetfoot_core::plugin::Plugins;
    use fleetfoot_core::queue::{AnyQueue, DropTail};
    use fleetfoot_core::registry::{Entry, Plugin};

    fn refusal(name: &'static str, source: &'static str, parameters: &'static [Parameter]) -> Option<String> {
        let queues = Vec::leak(vec![Plugin {
            entry: Entry::new(name, parameters, source),
            build: |values, around| AnyQueue::DropTail(DropTail::new(values, around)),
        }]);
        let plugins = Plugins {
            queues,
            ..Plugins::NONE
        };
        check(plugins).err()
    }

    #[test]
    fn what_is_wrong_with_a_plug_in_is_said() {
        const WRONG: &[Parameter] = &[parameter!("share": Number(0.0, 1.0) = 2.0, "Too much.")];
        assert_eq!(refusal("mine", "//! Mine.", DropTail::PARAMETERS), None);
        for (name, source, parameters, said) in [
            ("codel", "//! Mine.", &[][..], "`codel` is taken"),
            ("reno", "//! Mine.", &[], "`reno` is taken"),
            ("My queue", "//! Mine.", &[], "other characters"),
            ("mine", "use core;", &[], "has no document"),
            (
                "mine",
                "//! Mine.",
                WRONG,
                "`share` of the plug-in `mine`: the value is out of range",
            ),
        ] {
            let refused = refusal(name, source, parameters).unwrap_or_default();
            assert!(refused.contains(said), "{refused}");
        }
    }
}
