//! What `recommend` can recommend: variants of the file, mechanisms, registered pairs, every change of senders with every queue, and
//! the parameters of each queue mechanism halved and doubled, one at a time, where the command that turns it on takes them.

use super::plan::{Candidate, Planned};
use super::{Plan, long_path, turn_on};
use crate::mechanisms::{self, Effort, Mechanism};
use crate::scenario::Scenario;
use fleetfoot_core::parameter::{Parameter, ParameterKind, Value};
use fleetfoot_sim::spec::LinkSpec;

/// Where the user has power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// Over hosts that send.
    Sender,
    /// Over queues of routers.
    Router,
    /// Over both.
    #[default]
    Both,
}

/// What may be recommended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Where.
    pub control: Control,
    /// Only what a released Linux kernel has.
    pub only_linux: bool,
}

impl Wish {
    /// Whether this mechanism may be part of an answer.
    fn allows(self, mechanism: &Mechanism) -> bool {
        let queues = mechanism.changes_queues();
        let senders = mechanism.changes_senders();
        let where_ = match self.control {
            Control::Both => true,
            Control::Sender => !queues,
            Control::Router => !senders,
        };
        where_ && (!self.only_linux || mechanism.effort < Effort::Patch)
    }
}

/// What is tried first: variants of the file and mechanisms, one alone or as registered pairs.
pub fn candidates(scenario: &Scenario, wish: Wish) -> Vec<Candidate> {
    let alone = |names: Vec<&'static str>| Candidate {
        variant: None,
        mechanisms: names,
        tuned: Vec::new(),
    };
    let of_file = scenario.variants().iter().map(|variant| Candidate {
        variant: Some(variant.name.clone()),
        mechanisms: Vec::new(),
        tuned: Vec::new(),
    });
    let single = mechanisms::ENTRIES
        .iter()
        .filter(|mechanism| wish.allows(mechanism))
        .map(|mechanism| alone(vec![mechanism.name]));
    let allowed = |name: &str| mechanisms::find(name).is_some_and(|mechanism| wish.allows(mechanism));
    let pairs = mechanisms::PAIRS
        .iter()
        .filter(|(first, second)| allowed(first) && allowed(second))
        .map(|&(first, second)| alone(vec![first, second]));
    let everything = wish == Wish::default();
    // A variant of the file that is a mechanism is met as the mechanism, which can be joined and tuned.
    single
        .chain(pairs)
        .chain(of_file.filter(|_| everything))
        .collect()
}

/// A change of senders and a queue together.
pub(super) fn joined(sender: &'static str, queue: &'static str) -> Candidate {
    Candidate {
        variant: None,
        mechanisms: vec![sender, queue],
        tuned: Vec::new(),
    }
}

/// Whether these two are a registered pair, which is a candidate from the start.
pub(super) fn is_registered(one: &str, other: &str) -> bool {
    mechanisms::PAIRS
        .iter()
        .any(|&pair| pair == (one, other) || pair == (other, one))
}

/// The mechanism that a candidate is, if it is one alone as it is registered.
pub(super) fn single(candidate: &Candidate) -> Option<&'static Mechanism> {
    match (candidate.mechanisms.as_slice(), candidate.tuned.as_slice()) {
        ([one], []) => mechanisms::find(one),
        _ => None,
    }
}

/// Whether a mechanism changes queues and nothing else, or senders and nothing else: such two can be joined.
pub(super) fn changes_only(mechanism: &Mechanism, queues: bool) -> bool {
    mechanism.changes_queues() == queues && mechanism.changes_senders() != queues
}

/// A single mechanism with one parameter of its queue halved or doubled: as many candidates as its range has room for; and on a long path
/// with the interval that suits it.
pub(super) fn tuned(plan: &Plan, planned: &Planned) -> Vec<Candidate> {
    let [mechanism] = planned.mechanisms.as_slice() else {
        return Vec::new();
    };
    let link = planned
        .places
        .first()
        .and_then(|&place| plan.places[place].links.first());
    let Some(&link) = link.filter(|_| planned.tuned.is_empty()) else {
        return Vec::new();
    };
    let link = &planned.resolved.spec.links[link];
    let values = &link.queue_values;
    let parameters = values.table().iter();
    let for_path = long_path::values(&plan.described, values).map(|tuned| Candidate {
        variant: None,
        mechanisms: vec![mechanism.name],
        tuned,
    });
    parameters
        .flat_map(|parameter| {
            let changed = near(parameter, values.value(parameter.name)).into_iter();
            let taken = changed.filter(|&value| is_taken(link, parameter.name, value));
            taken.map(|value| Candidate {
                variant: None,
                mechanisms: vec![mechanism.name],
                tuned: vec![(parameter.name, written(value))],
            })
        })
        .chain(for_path)
        .collect()
}

/// Everything that a search can meet in the network of `singles`, the plan of its first candidates.
pub(super) fn whole(singles: &Plan, wish: Wish) -> Vec<Candidate> {
    let mut all = candidates(&singles.scenario, wish);
    let only = |queues: bool| {
        let entries = mechanisms::ENTRIES.iter();
        entries.filter(move |one| wish.allows(one) && changes_only(one, queues))
    };
    if wish.control == Control::Both {
        for sender in only(false) {
            all.extend(only(true).map(|queue| joined(sender.name, queue.name)));
        }
    }
    all.extend(
        singles
            .variants
            .iter()
            .flat_map(|planned| tuned(singles, planned)),
    );
    all
}

/// Whether what turns the queue of `link` on takes this value as well as the one that it has.
fn is_taken(link: &LinkSpec, name: &str, value: Value) -> bool {
    let mut changed = link.clone();
    let fits = changed.queue_values.set(name, value).is_ok();
    fits && turn_on::beyond_tc(&changed).len() <= turn_on::beyond_tc(link).len()
}

/// Half and double of a parameter's value, as far as its range has them.
fn near(parameter: &Parameter, value: Value) -> Vec<Value> {
    [0.5, 2.0]
        .into_iter()
        .filter_map(|factor| match (parameter.kind, value) {
            (ParameterKind::Duration(low, high), Value::Duration(span)) => {
                let changed = fleetfoot_core::time::Duration::from_secs_f64(span.as_secs_f64() * factor);
                (low <= changed && changed <= high && changed != span).then_some(Value::Duration(changed))
            }
            (ParameterKind::Bytes(low, high), Value::Bytes(bytes)) => {
                let changed = fleetfoot_core::units::Bytes((bytes.get() as f64 * factor) as u64);
                (low <= changed && changed <= high && changed != bytes).then_some(Value::Bytes(changed))
            }
            (ParameterKind::Number(low, high), Value::Number(number)) => {
                let changed = number * factor;
                ((low..=high).contains(&changed) && changed != number).then_some(Value::Number(changed))
            }
            (ParameterKind::Integer(low, high), Value::Integer(number)) => {
                let changed = (number as f64 * factor) as u64;
                let fits = (low..=high).contains(&changed) && changed != number;
                fits.then_some(Value::Integer(changed))
            }
            _ => None,
        })
        .collect()
}

/// As a scenario file has it.
fn written(value: Value) -> toml::Value {
    match value {
        Value::Number(number) => toml::Value::Float(number),
        Value::Integer(number) => toml::Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)),
        other => toml::Value::String(super::shown(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Choice;
    use std::collections::BTreeSet;

    #[test]
    fn what_a_command_cannot_take_is_not_tried() {
        let only = ["cake", "pie", "fq-codel"];
        let choice = Choice {
            only: only.iter().map(|&name| name.to_owned()).collect(),
            ..Choice::default()
        };
        let plan = Plan::compare(crate::testing::scenario(), &choice).expect("it resolves");
        let tried = |name: &str| -> BTreeSet<String> {
            let planned = plan.variants.iter().find(|planned| planned.name == name);
            let candidates = tuned(&plan, planned.expect("it applies"));
            let own = candidates.into_iter().flat_map(|candidate| candidate.tuned);
            own.map(|(name, value)| format!("{name} = {value}")).collect()
        };
        // rtt sets the target, too; the number of queues is Linux's.
        assert_eq!(tried("cake"), BTreeSet::new());
        let pie = tried("pie");
        assert!(
            pie.contains("beta = 0.625") && !pie.contains("beta = 2.5"),
            "{pie:?}"
        );
        assert!(!pie.iter().any(|one| one.starts_with("max_burst")), "{pie:?}");
        assert!(tried("fq-codel").contains("batch = 32"));
    }
}
