//! What of a queue's parameters `tc` cannot take, or takes otherwise: it is said beside the command, and `recommend` does not vary it.

use super::{Queue, tc_time};
use crate::compare::shown;
use fleetfoot_core::parameter::Value;
use fleetfoot_core::time::Duration;
use fleetfoot_sim::spec::LinkSpec;

/// A phrase for each value of the queue of `link` with which Linux's discipline does something else; none for a queue that Linux does not have.
pub(in crate::compare) fn beyond_tc(link: &LinkSpec) -> Vec<String> {
    Queue::plain(link).beyond_tc()
}

impl Queue<'_> {
    /// As a sentence behind what the command needs; empty where the command says all.
    pub(super) fn said_beyond(&self) -> String {
        match self.beyond_tc().as_slice() {
            [] => String::new(),
            phrases => format!(" tc cannot take all that was simulated: {}.", phrases.join("; ")),
        }
    }

    fn beyond_tc(&self) -> Vec<String> {
        let (unknown, mut phrases): (&[&str], Vec<String>) = match self.link.queue {
            "red" => (&["byte_mode"], Vec::new()),
            "pie" => {
                let ecn: &[&str] = &["max_burst", "mean_packet", "derandomise", "ecn_threshold"];
                (if self.flag("ecn") { ecn } else { &ecn[..3] }, self.gains())
            }
            "fq-pie" => (&["max_burst", "mean_packet", "derandomise"], self.gains()),
            "dualpi2" => (&["ramp", "scheduler"], self.rounded()),
            "cake" => {
                let phrases = self.details("").into_iter().chain(self.target());
                (&["bandwidth", "queues", "quantum", "ecn"], phrases.collect())
            }
            "codel" => (&[], self.details("").into_iter().collect()),
            "fq-codel" => {
                let more = " (with many flows on a slow line it also drops the only packet of a flow, which RFC 8289 5.4 spares: docs/trust.md)";
                (&[], self.details(more).into_iter().collect())
            }
            "drr" => (&["flow_limit", "key"], self.turns()),
            "sfq" => (&[], self.perturbation()),
            _ => (&[], Vec::new()),
        };
        phrases.extend(unknown.iter().filter_map(|name| self.unknown(name)));
        phrases
    }

    /// A value other than the default, for which there is no word.
    fn unknown(&self, name: &str) -> Option<String> {
        let mut table = self.link.queue_values.table().iter();
        let default = table.find(|parameter| parameter.name == name)?.default;
        let own = self.value(name)?;
        let theirs = match default {
            Value::Auto => String::from("what Linux chooses"),
            value => shown(value),
        };
        (own != default).then(|| other(name, &theirs, &shown(own)))
    }

    /// Whose details are simulated, where they are not Linux's, and `more` about it.
    fn details(&self, more: &str) -> Option<String> {
        match self.value("details")? {
            Value::Choice("linux") => None,
            own => Some(format!(
                "it was simulated with details = \"{}\", and Linux does what details = \"linux\" simulates{more}",
                shown(own)
            )),
        }
    }

    /// PIE's alpha and beta as Linux counts them.
    fn gains(&self) -> Vec<String> {
        let rounded = |name: &str| {
            let own = self.number(name)?;
            let taken = sixteenths(own) / 16.0;
            (taken != own).then(|| format!("{} (sixteenths up to 2)", other(name, &taken, &own)))
        };
        ["alpha", "beta"].into_iter().filter_map(rounded).collect()
    }

    /// What DualPI2 takes in whole numbers, per cent or 256ths.
    fn rounded(&self) -> Vec<String> {
        let parts = [
            ("coupling", 1.0),
            ("classic_share", 100.0),
            ("alpha", 256.0),
            ("beta", 256.0),
        ];
        let rounded = |(name, parts): (&str, f64)| {
            let own = self.number(name)?;
            let taken = (own * parts)
                .round()
                .max(if name == "coupling" { 1.0 } else { 0.0 })
                / parts;
            // A default is its own, whatever it is counted in.
            let default = self.unknown(name).is_none();
            (!default && (taken - own).abs() > NEAR * own).then(|| other(name, &taken, &own))
        };
        parts.into_iter().filter_map(rounded).collect()
    }

    /// Cake's `rtt` sets the target, too: to a twentieth.
    fn target(&self) -> Vec<String> {
        let (Some(Value::Duration(interval)), Some(Value::Duration(target))) =
            (self.value("interval"), self.value("target"))
        else {
            return Vec::new();
        };
        let taken = Duration::from_nanos(interval.as_nanos() / 20);
        let phrase = || {
            let (taken, own) = (shown(Value::Duration(taken)), shown(Value::Duration(target)));
            format!("{}, a twentieth of rtt", other("target", &taken, &own))
        };
        match tc_time(taken) == tc_time(target) {
            true => Vec::new(),
            false => vec![phrase()],
        }
    }

    /// DRR's, as `sfq` takes them.
    fn turns(&self) -> Vec<String> {
        let mut phrases = Vec::new();
        if let Some(Value::Bytes(quantum)) = self.value("quantum")
            && quantum.0 < self.mtu()
        {
            phrases.push(other(
                "quantum",
                &format!("{} B", self.mtu()),
                &shown(Value::Bytes(quantum)),
            ));
        }
        if let Some(Value::Integer(buckets)) = self.value("buckets")
            && !buckets.is_power_of_two()
        {
            phrases.push(other("buckets", &buckets.next_power_of_two(), &buckets));
        }
        phrases
    }

    fn perturbation(&self) -> Vec<String> {
        let Some(Value::Duration(span)) = self.value("perturb") else {
            return Vec::new();
        };
        let seconds = span.as_millis().div_ceil(1000);
        match Duration::from_secs(seconds) == span {
            true => Vec::new(),
            false => vec![other(
                "perturb",
                &format!("{seconds} s"),
                &shown(Value::Duration(span)),
            )],
        }
    }
}

/// PIE's alpha or beta as `tc` takes it.
pub(super) fn sixteenths(gain: f64) -> f64 {
    (gain * 16.0).round().min(32.0)
}

fn other(name: &str, theirs: &dyn std::fmt::Display, own: &dyn std::fmt::Display) -> String {
    format!("{name} is {theirs} in Linux, not {own}")
}

/// A gain that is taken as near is the same.
const NEAR: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::super::Discipline;
    use super::*;
    use fleetfoot_core::parameter::Values;
    use fleetfoot_core::queue::AnyQueue;
    use fleetfoot_core::units::Bytes;

    /// Arguments and needs of a discipline with these values.
    fn of(kind: &str, values: &[(&str, Value)]) -> (String, String) {
        let entry = AnyQueue::entry(kind).expect("it is registered");
        let scenario = crate::testing::scenario().resolve(&crate::scenario::Setting::none());
        let mut link = LinkSpec {
            queue: entry.name,
            queue_values: Values::defaults(entry.parameters),
            ..scenario.expect("it resolves").spec.links[0].clone()
        };
        for &(name, value) in values {
            link.queue_values.set(name, value).expect("it fits");
        }
        let discipline = Discipline::of(&link, None);
        (discipline.arguments.expect("Linux has it"), discipline.needs)
    }

    const fn ms(span: u64) -> Value {
        Value::Duration(Duration::from_millis(span))
    }

    #[test]
    fn defaults_are_those_of_linux() {
        for entry in AnyQueue::ENTRIES {
            let scenario = crate::testing::scenario().resolve(&crate::scenario::Setting::none());
            let mut link = LinkSpec {
                queue: entry.name,
                queue_values: Values::defaults(entry.parameters),
                ..scenario.expect("it resolves").spec.links[0].clone()
            };
            // Where an RFC or a paper differs from Linux the default is not Linux's, and is said.
            if entry
                .parameters
                .iter()
                .any(|parameter| parameter.name == "details")
            {
                assert_eq!(
                    beyond_tc(&link).len(),
                    1,
                    "{}: {:?}",
                    entry.name,
                    beyond_tc(&link)
                );
                let linux = link.queue_values.set("details", Value::Choice("linux"));
                linux.expect("Linux has it");
            }
            assert!(
                beyond_tc(&link).is_empty(),
                "{}: {:?}",
                entry.name,
                beyond_tc(&link)
            );
        }
    }

    #[test]
    fn what_tc_takes_is_written() {
        let linux = ("details", Value::Choice("linux"));
        let (arguments, needs) = of("fq-codel", &[("batch", Value::Integer(1)), linux]);
        assert!(arguments.contains(" drop_batch 1"), "{arguments}");
        assert!(!needs.contains("cannot take"), "{needs}");
        // In 256ths: 0.08 are 20.48, and 20 / 256 = 0.078125.
        let (arguments, needs) = of(
            "dualpi2",
            &[("alpha", Value::Number(0.08)), ("beta", Value::Number(6.4))],
        );
        assert!(
            arguments.contains(" alpha 0.078125 beta 6.3984375"),
            "{arguments}"
        );
        assert!(!needs.contains("cannot take"), "{needs}");
        let (arguments, needs) = of("cake", &[("interval", ms(600)), ("target", ms(30)), linux]);
        assert!(
            arguments.contains(" rtt 600ms") && !needs.contains("cannot take"),
            "{needs}"
        );
    }

    #[test]
    fn what_tc_takes_otherwise_is_said() {
        let said = |kind: &str, values: &[(&str, Value)]| {
            let needs = of(kind, values).1;
            let (_, said) = needs
                .split_once(" tc cannot take all that was simulated: ")
                .expect("it is said");
            said.to_owned()
        };
        let linux = ("details", Value::Choice("linux"));
        assert_eq!(
            said("fq-codel", &[("details", Value::Choice("rfc"))]),
            "it was simulated with details = \"rfc\", and Linux does what details = \"linux\" simulates (with many flows on a slow line it also drops the only packet of a flow, which RFC 8289 5.4 spares: docs/trust.md)."
        );
        assert_eq!(
            said("codel", &[("details", Value::Choice("ns-3"))]),
            "it was simulated with details = \"ns-3\", and Linux does what details = \"linux\" simulates."
        );
        assert_eq!(
            said("cake", &[("target", ms(40)), linux]),
            "target is 5 ms in Linux, not 40 ms, a twentieth of rtt."
        );
        assert_eq!(
            said("cake", &[("interval", ms(20))]),
            "it was simulated with details = \"paper\", and Linux does what details = \"linux\" simulates; target is 1 ms in Linux, not 5 ms, a twentieth of rtt."
        );
        assert_eq!(
            said(
                "fq-pie",
                &[("max_burst", ms(300)), ("derandomise", Value::Flag(false))]
            ),
            "max_burst is 150 ms in Linux, not 300 ms; derandomise is true in Linux, not false."
        );
        // 40 sixteenths, and Linux takes 32.
        assert_eq!(
            said("pie", &[("beta", Value::Number(2.5))]),
            "beta is 2 in Linux, not 2.5 (sixteenths up to 2)."
        );
        assert_eq!(
            said("dualpi2", &[("ramp", ms(1)), ("coupling", Value::Number(1.5))]),
            "coupling is 2 in Linux, not 1.5; ramp is 0 ns in Linux, not 1 ms."
        );
        assert_eq!(
            said("drr", &[("quantum", Value::Bytes(Bytes(250)))]),
            "quantum is 1500 B in Linux, not 250 B."
        );
        let (_, needs) = of("pie", &[("ecn_threshold", Value::Number(0.2))]);
        assert!(
            !needs.contains("cannot take"),
            "without ecn nothing is marked: {needs}"
        );
    }
}
