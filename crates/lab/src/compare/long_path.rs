//! Queues of the CoDel family on paths that are longer than their default interval is for.
//!
//! CoDel drops when packets waited too long for a whole `interval`, so that one round trip of a sender that has just been told to slow down does not
//! count as a standing queue. By default it is 100 ms, near the longest round trips on land. RFC 8289 (4.3) wants it about as long as the
//! longest round trip of those that share the queue, and `target` 5 to 10 % of it (4.4). Where the base RTT is at least [`FAR_ABOVE`] defaults, as over a satellite,
//! such a queue is compared with these values too, and recommended with them if the simulation shows that they help.

use super::Plan;
use crate::mechanisms::Mechanism;
use crate::scenario::Resolved;
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::time::Duration;

impl Plan {
    /// Adds every queue of the CoDel family among `mechanisms`, alone, with the interval of the longest path, where its default is far too short.
    pub(super) fn add_for_long_paths(&mut self, mechanisms: impl IntoIterator<Item = &'static Mechanism>) {
        if long(&self.described).is_none() {
            return;
        }
        let queues: Vec<&'static Mechanism> = mechanisms
            .into_iter()
            .filter(|entry| {
                entry.changes_queues() && !entry.changes_senders() && entry.missing(&self.described).is_none()
            })
            .collect();
        let site = self.site(&self.chosen.clone());
        for queue in queues {
            // As it is by itself, or already stands there.
            let set = queue.setting(&self.described, &site);
            let resolved = self.scenario.resolve(&set);
            let there = resolved.as_ref().unwrap_or(&self.described);
            let mut chosen = self.chosen.iter().flat_map(|&place| &self.places[place].links);
            let tuned =
                chosen.find_map(|&link| values(&self.described, &there.spec.links.get(link)?.queue_values));
            if let Some(tuned) = tuned {
                self.add(&[queue], &tuned, None);
            }
        }
    }
}

/// `interval` and `target` for the longest path of `described`, where `values` are of the CoDel family with an interval far below its round trip.
pub(super) fn values(described: &Resolved, values: &Values) -> Option<Vec<(&'static str, toml::Value)>> {
    let rtt = long(described)?;
    let of = |name: &str| {
        let known = values.table().iter().any(|parameter| parameter.name == name);
        known.then(|| values.value(name))
    };
    let (Some(Value::Duration(interval)), Some(Value::Duration(_))) = (of("interval"), of("target")) else {
        return None;
    };
    let text = |span: Duration| toml::Value::String(super::shown(Value::Duration(span)));
    let target = Duration::from_nanos(rtt.as_nanos() / TARGET_PART);
    (rtt.as_nanos() >= FAR_ABOVE * interval.as_nanos())
        .then(|| vec![("interval", text(rtt)), ("target", text(target))])
}

/// The longest base RTT of `described` in whole hundredths of a second, where that is far above the default interval.
fn long(described: &Resolved) -> Option<Duration> {
    let longest = described.base_rtts().iter().map(|pair| pair.rtt).max()?;
    let hundredth = Duration::from_millis(10);
    let whole =
        Duration::from_nanos(longest.as_nanos().div_ceil(hundredth.as_nanos()) * hundredth.as_nanos());
    (whole.as_nanos() >= FAR_ABOVE * DEFAULT.as_nanos() && whole <= MOST).then_some(whole)
}

/// So many intervals make a round trip that is far above one.
const FAR_ABOVE: u64 = 2;

/// The interval that CoDel, FQ-CoDel and CAKE have by default.
pub(super) const DEFAULT: Duration = Duration::from_millis(100);

/// `target` is this part of the interval (RFC 8289, 4.4: 5 to 10 % of it).
const TARGET_PART: u64 = 20;

/// What no path on Earth reaches.
const MOST: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use crate::compare::{Choice, Plan};
    use crate::scenario::Scenario;

    fn names(delay: &str, queue: &str) -> Vec<String> {
        names_of(delay, queue, &[])
    }

    /// Names of what is compared where only these are to be.
    fn names_of(delay: &str, queue: &str, only: &[&str]) -> Vec<String> {
        let text = format!(
            r#"[network]
kind = "dumbbell"
pairs = 2
access = {{ rate = "1 Gbit/s", delay = "5 ms" }}
bottleneck = {{ rate = "20 Mbit/s", delay = "{delay}", queue = {{ kind = "{queue}" }} }}
[[traffic]]
name = "pages"
kind = "transfer"
size = "30 kB"
arrivals = {{ dist = "poisson", rate = "3 per second" }}
"#
        );
        let scenario = Scenario::parse("long.toml", &text).expect("it is correct");
        let choice = Choice {
            only: only.iter().map(|&name| name.to_owned()).collect(),
            ..Choice::default()
        };
        let plan = Plan::compare(scenario, &choice).expect("it resolves");
        plan.variants.into_iter().map(|planned| planned.name).collect()
    }

    #[test]
    fn a_queue_that_is_named_is_tried_with_the_interval_of_a_long_path_too() {
        let only = ["fq-codel", "pie", "bbr", "cake + bbr"];
        let tuned = "fq-codel (interval = 600 ms, target = 30 ms)";
        assert_eq!(
            names_of("288 ms", "drop-tail", &only),
            ["as described", "fq-codel", "pie", "bbr", "cake + bbr", tuned]
        );
        assert_eq!(
            names_of("40 ms", "drop-tail", &only),
            ["as described", "fq-codel", "pie", "bbr", "cake + bbr"]
        );
    }

    #[test]
    fn on_a_long_path_the_codel_family_is_also_tried_with_an_interval_of_a_round_trip() {
        let satellite = names("288 ms", "drop-tail");
        for name in ["codel", "fq-codel", "cake"] {
            let tuned = format!("{name} (interval = 600 ms, target = 30 ms)");
            assert!(satellite.contains(&tuned), "{tuned}: {satellite:?}");
        }
        assert!(
            !satellite.iter().any(|name| name.starts_with("pie (")),
            "{satellite:?}"
        );
        let land = names("40 ms", "drop-tail");
        assert!(!land.iter().any(|name| name.contains("interval =")), "{land:?}");
    }

    #[test]
    fn a_line_that_has_fq_codel_already_is_tried_with_the_interval_that_suits_it() {
        let satellite = names("290 ms", "fq-codel");
        assert!(
            satellite.contains(&String::from("fq-codel (interval = 600 ms, target = 30 ms)")),
            "{satellite:?}"
        );
    }
}
