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

/// Totals of the reported counters over flows; in JSON a field for each, `null` where nobody could count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(Vec<Option<u64>>);

impl Counters {
    /// Totals over `flows`.
    pub fn of<'a>(flows: impl IntoIterator<Item = &'a FlowRecord>) -> Counters {
        let mut totals = vec![0; reported().count()];
        for stats in flows.into_iter().map(FlowRecord::stats) {
            for (total, counter) in totals.iter_mut().zip(reported()) {
                *total += (counter.value)(&stats);
            }
        }
        Counters(totals.into_iter().map(Some).collect())
    }

    /// These counters, by name; the others are not known.
    pub fn from_values(values: &[(&str, u64)]) -> Counters {
        let value = |name| values.iter().find(|value| value.0 == name);
        Counters(
            reported()
                .map(|counter| value(counter.name).map(|value| value.1))
                .collect(),
        )
    }

    /// The total of the counter called `name`; `None` if it is not reported, or nobody could count it.
    pub fn get(&self, name: &str) -> Option<u64> {
        let place = reported().position(|counter| counter.name == name);
        place.and_then(|place| *self.0.get(place)?)
    }

    /// [`Counters::get`] in words, a dash where it is not known.
    pub fn text(&self, name: &str) -> String {
        self.get(name)
            .map_or_else(|| String::from("-"), |total| total.to_string())
    }
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(reported().map(|counter| counter.name).zip(&self.0))
    }
}

impl<'de> Deserialize<'de> for Counters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Counters, D::Error> {
        let mut totals = BTreeMap::<String, Option<u64>>::deserialize(deserializer)?;
        let counters = reported()
            .map(|counter| totals.remove(counter.name).unwrap_or(Some(0)))
            .collect();
        match totals.keys().next() {
            None => Ok(Counters(counters)),
            Some(name) => Err(D::Error::custom(format!("unknown field `{name}`"))),
        }
    }
}
