//! Names of congestion controls and queue disciplines: the registered ones, and those that this program brings.
//!
//! Which names exist is a table of the process, like the ceiling of [`crate::memory`]: a program fills it by [`install`] before the
//! first scenario is read, a notebook adds, replaces and removes at any time. Scenario files, the schema, `list` and `explain`
//! know what is there when they are read; a resolved scenario keeps what was there then, and so do its runs.

use fleetfoot_core::cc::{self, AnyController};
use fleetfoot_core::parameter::Value;
use fleetfoot_core::plugin::Plugins;
use fleetfoot_core::queue::{AnyQueue, LinkContext};
use fleetfoot_core::registry::{Entry, Plugin};
use std::cell::RefCell;
use std::sync::{OnceLock, PoisonError, RwLock};

static INSTALLED: RwLock<Plugins> = RwLock::new(Plugins::NONE);

static HINT: OnceLock<&'static str> = OnceLock::new();

thread_local! {
    /// Why the run of this thread cannot go on.
    static FAULT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A mechanism to [`add`].
#[derive(Clone, Copy)]
pub enum Mechanism {
    /// A congestion control.
    Controller(Plugin<AnyController, cc::Config>),
    /// A queue discipline.
    Queue(Plugin<AnyQueue, LinkContext>),
}

/// Makes `plugins` known to everything that reads names, in place of what was installed before.
///
/// # Errors
/// A sentence: a name is taken or not well formed, or a text or a default is missing.
pub fn install(plugins: Plugins) -> Result<(), String> {
    check(plugins)?;
    *INSTALLED.write().unwrap_or_else(PoisonError::into_inner) = plugins;
    Ok(())
}

/// Makes a mechanism known, in place of an installed one with its name. What scenarios hold that were read before stays alive:
/// each call keeps a table of all installed mechanisms for the rest of the process.
///
/// # Errors
/// As [`install`].
pub fn add(mechanism: Mechanism) -> Result<(), String> {
    let mut installed = INSTALLED.write().unwrap_or_else(PoisonError::into_inner);
    *installed = with(*installed, mechanism)?;
    Ok(())
}

/// Takes the installed mechanism `name` away. Whether there was one.
pub fn remove(name: &str) -> bool {
    let mut installed = INSTALLED.write().unwrap_or_else(PoisonError::into_inner);
    let found = installed.entries().any(|entry| entry.name == name);
    if found {
        *installed = without(*installed, name);
    }
    found
}

fn with(plugins: Plugins, mechanism: Mechanism) -> Result<Plugins, String> {
    let name = match &mechanism {
        Mechanism::Controller(plugin) => plugin.entry.name,
        Mechanism::Queue(plugin) => plugin.entry.name,
    };
    let mut plugins = without(plugins, name);
    match mechanism {
        Mechanism::Controller(plugin) => {
            plugins.controllers = [plugins.controllers, &[plugin]].concat().leak();
        }
        Mechanism::Queue(plugin) => plugins.queues = [plugins.queues, &[plugin]].concat().leak(),
    }
    check(plugins)?;
    Ok(plugins)
}

fn without(plugins: Plugins, name: &str) -> Plugins {
    let (mut controllers, mut queues) = (plugins.controllers.to_vec(), plugins.queues.to_vec());
    controllers.retain(|plugin| plugin.entry.name != name);
    queues.retain(|plugin| plugin.entry.name != name);
    Plugins {
        controllers: controllers.leak(),
        queues: queues.leak(),
    }
}

/// What is installed; nothing in most programs.
pub fn installed() -> Plugins {
    *INSTALLED.read().unwrap_or_else(PoisonError::into_inner)
}

/// What messages about an unknown name add, in a program where names come and go. The first call counts.
pub fn set_hint(hint: &'static str) {
    let _ = HINT.set(hint);
}

/// What messages about an unknown name add, if anything.
pub(crate) fn hint() -> Option<&'static str> {
    HINT.get().copied()
}

/// A mechanism reports that it cannot go on: the run of this thread ends soon and fails with the first reason given. The mechanism
/// may do anything that keeps its contract until then.
pub fn fail(reason: String) {
    FAULT.with_borrow_mut(|fault| {
        fault.get_or_insert(reason);
    });
}

/// Whether a mechanism of the run of this thread has failed.
pub fn has_failed() -> bool {
    FAULT.with_borrow(Option::is_some)
}

/// Why a mechanism of the run of this thread failed, if one did. The next run begins without.
pub fn take_failure() -> Option<String> {
    FAULT.with_borrow_mut(Option::take)
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
    use super::{Mechanism, check, with, without};
    use fleetfoot_core::cc::{AnyController, Reno};
    use fleetfoot_core::parameter;
    use fleetfoot_core::parameter::Parameter;
    use fleetfoot_core::plugin::Plugins;
    use fleetfoot_core::queue::{AnyQueue, DropTail};
    use fleetfoot_core::registry::{Entry, Plugin};

    fn refusal(name: &'static str, source: &'static str, parameters: &'static [Parameter]) -> Option<String> {
        let queues = Vec::leak(vec![Plugin {
            entry: Entry::new(name, parameters, source),
            build: &|values, around| AnyQueue::DropTail(DropTail::new(values, around)),
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

    fn of_reno(name: &'static str, source: &'static str) -> Mechanism {
        Mechanism::Controller(Plugin {
            entry: Entry::new(name, Reno::PARAMETERS, source),
            build: &|values, config| AnyController::Reno(Reno::new(values, config)),
        })
    }

    fn of_drop_tail(name: &'static str) -> Mechanism {
        Mechanism::Queue(Plugin {
            entry: Entry::new(name, DropTail::PARAMETERS, "//! A queue."),
            build: &|values, around| AnyQueue::DropTail(DropTail::new(values, around)),
        })
    }

    #[test]
    fn mechanisms_come_and_go_and_what_was_read_before_keeps_its_own() {
        // As values: the table of the process belongs to the other tests, too.
        let first = with(Plugins::NONE, of_reno("mine", "//! The first.")).expect("the name is free");
        let first = with(first, of_drop_tail("line")).expect("the name is free");
        let second = with(first, of_reno("mine", "//! The second.")).expect("the name is free");
        let document = |plugins: Plugins| {
            let entry = AnyController::entry_among(plugins.controllers, "mine");
            entry.and_then(|entry| entry.document().next())
        };
        assert_eq!(document(second), Some("The second."));
        assert_eq!(document(first), Some("The first."));
        assert_ne!(first, second);
        // A name means one thing: the queue takes it from the congestion control.
        let third = with(second, of_drop_tail("mine")).expect("the name is free");
        assert_eq!(document(third), None);
        let names: Vec<&str> = third.entries().map(|entry| entry.name).collect();
        assert_eq!(names, ["line", "mine"]);
        assert_eq!(without(third, "mine").entries().count(), 1);
        let refused = with(first, of_reno("codel", "//! Mine.")).expect_err("the name is taken");
        assert!(refused.contains("`codel` is taken"), "{refused}");
    }
}
