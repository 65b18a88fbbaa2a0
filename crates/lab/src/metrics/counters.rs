//! The counters of TCP that results, checks and tables show: those that [`Stats::COUNTERS`] marks.

use fleetfoot_core::tcp::{Counter, Stats};
use fleetfoot_sim::output::FlowRecord;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// Counters that are reported, in their order.
pub fn reported() -> impl Iterator<Item = &'static Counter> {
    Stats::COUNTERS.iter().filter(|counter| counter.reported)
}

/// Totals of the reported counters over flows; in JSON a field for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(Vec<u64>);

impl Counters {
    /// Totals over `flows`.
    pub fn of<'a>(flows: impl IntoIterator<Item = &'a FlowRecord>) -> Counters {
        let mut totals = vec![0; reported().count()];
        for stats in flows.into_iter().map(FlowRecord::stats) {
            for (total, counter) in totals.iter_mut().zip(reported()) {
                *total += (counter.value)(&stats);
            }
        }
        Counters(totals)
    }

    /// These counters, by name; the others are zero.
    pub fn from_values(values: &[(&str, u64)]) -> Counters {
        let value = |name| values.iter().find(|value| value.0 == name);
        Counters(
            reported()
                .map(|counter| value(counter.name).map_or(0, |value| value.1))
                .collect(),
        )
    }

    /// The total of the counter called `name`; 0 if it is not reported.
    pub fn get(&self, name: &str) -> u64 {
        let place = reported().position(|counter| counter.name == name);
        place.and_then(|place| self.0.get(place)).copied().unwrap_or(0)
    }
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(reported().map(|counter| counter.name).zip(&self.0))
    }
}

impl<'de> Deserialize<'de> for Counters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Counters, D::Error> {
        let mut totals = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let counters = reported()
            .map(|counter| totals.remove(counter.name).unwrap_or(0))
            .collect();
        match totals.keys().next() {
            None => Ok(Counters(counters)),
            Some(name) => Err(D::Error::custom(format!("unknown field `{name}`"))),
        }
    }
}
