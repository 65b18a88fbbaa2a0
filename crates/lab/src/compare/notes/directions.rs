//! A note where `direction = "both"` leaves one direction without a flow: flows are shared out, and there is one.

use fleetfoot_sim::spec::{GroupSpec, PairPolicy};

/// That the only flow of a group, which is to go both ways and does not by itself, goes the first of them.
pub(super) fn one_of_two(group: &GroupSpec) -> Option<String> {
    let [first, second, ..] = group.pairs[..] else {
        return None;
    };
    let mirrored = second == (first.1, first.0);
    (mirrored && group.spread == PairPolicy::RoundRobin && group.traffic.members(false) == Some(1)).then(|| {
        format!(
            "{}: `direction = \"both\"` shares flows out, and there is one, which goes down: with `count = 2` there is one each way",
            group.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::one_of_two;
    use crate::scenario::{Scenario, Setting};

    fn noted(direction: &str, count: u32) -> Option<String> {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\" }}\n[[traffic]]\nname = \"phone\"\n\
             kind = \"cbr\"\nrate = \"80 kbit/s\"\npacket = \"200 B\"\ndirection = \"{direction}\"\ncount = {count}\n"
        );
        let scenario = Scenario::parse("test.toml", &text).expect("well formed");
        let resolved = scenario.resolve(&Setting::none()).expect("complete");
        one_of_two(&resolved.spec.groups[0])
    }

    #[test]
    fn one_stream_does_not_go_both_ways() {
        let note = noted("both", 1).expect("nothing goes up");
        assert!(note.starts_with("phone: `direction = \"both\"`"), "{note}");
        assert_eq!(noted("both", 2), None);
        assert_eq!(noted("up", 1), None);
    }
}
