//! What is transferred: named size distributions, files of real flows, connection vectors, link traces.

use fleetfoot_core::time::Duration;
use std::sync::Arc;

pub mod flows;
mod thin;
pub mod vectors;

pub use thin::{APPLICATION_NAMES, APPLICATIONS, ThinApplication};

/// Names of the size distributions in [`TABLES`].
pub const NAMES: &[&str] = &["web-search", "data-mining", "cache", "web-objects"];

/// A size distribution that the field uses.
#[derive(Clone, Copy, Debug)]
pub struct SizeTable {
    /// Its name in scenario files.
    pub name: &'static str,
    /// Its file: comment lines with the source, then `bytes,cumulative`.
    pub text: &'static str,
}

/// All of them, in the order of [`NAMES`].
pub const TABLES: &[SizeTable] = &[
    SizeTable {
        name: "web-search",
        text: include_str!("../../../../specs/workloads/web-search.csv"),
    },
    SizeTable {
        name: "data-mining",
        text: include_str!("../../../../specs/workloads/data-mining.csv"),
    },
    SizeTable {
        name: "cache",
        text: include_str!("../../../../specs/workloads/cache.csv"),
    },
    SizeTable {
        name: "web-objects",
        text: include_str!("../../../../specs/workloads/web-objects.csv"),
    },
];

impl SizeTable {
    /// The table called `name`.
    pub fn find(name: &str) -> Option<&'static SizeTable> {
        TABLES.iter().find(|table| table.name == name)
    }

    /// Its source, as its file states it.
    pub fn source(&self) -> String {
        let lines: Vec<&str> = self
            .text
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .map(str::trim)
            .collect();
        lines.join(" ")
    }

    /// Sizes in bytes and cumulative probabilities.
    pub fn points(&self) -> Arc<[(f64, f64)]> {
        self.text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(','))
            .filter_map(|(bytes, cumulative)| {
                Some((bytes.trim().parse().ok()?, cumulative.trim().parse().ok()?))
            })
            .collect()
    }
}

/// Reads a mahimahi trace: one line per opportunity to deliver 1504 bytes, in milliseconds from the start, ascending.
/// The last one is the period after which the trace repeats.
///
/// # Errors
/// A sentence that names the line.
pub fn mahimahi(text: &str) -> Result<(Arc<[Duration]>, Duration), String> {
    let mut opportunities = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let at: u64 = line.parse().ok().filter(|at| *at <= 86_400_000).ok_or_else(|| {
            format!(
                "line {}: \"{line}\" is not a time in whole milliseconds within a day",
                index + 1
            )
        })?;
        let at = Duration::from_millis(at);
        if opportunities.last().is_some_and(|last| *last > at) {
            return Err(format!(
                "line {}: {line} ms is earlier than the line before",
                index + 1
            ));
        }
        opportunities.push(at);
    }
    match opportunities.last().copied() {
        Some(period) if !period.is_zero() => Ok((opportunities.into(), period)),
        _ => Err(String::from(
            "a trace needs at least one line with a time above zero",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES, SizeTable, TABLES, mahimahi};
    use fleetfoot_core::time::Duration;

    #[test]
    fn every_table_rises_to_one_and_names_its_source() {
        assert!(TABLES.iter().map(|table| table.name).eq(NAMES.iter().copied()));
        for table in TABLES {
            let points = table.points();
            assert!(points.len() > 5, "{}", table.name);
            assert!(
                points
                    .windows(2)
                    .all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1),
                "{}",
                table.name
            );
            assert_eq!(points.last().map(|point| point.1), Some(1.0), "{}", table.name);
            assert!(table.source().contains("Source:"), "{}", table.name);
            assert_eq!(
                SizeTable::find(table.name).map(|found| found.name),
                Some(table.name)
            );
        }
    }

    #[test]
    fn a_mahimahi_trace_repeats_after_its_last_line() {
        let (opportunities, period) = mahimahi("0\n5\n5\n12\n").expect("this is a trace");
        assert_eq!(opportunities.len(), 4);
        assert_eq!(period, Duration::from_millis(12));
        assert_eq!(
            mahimahi("5\n4\n"),
            Err("line 2: 4 ms is earlier than the line before".into())
        );
        assert!(mahimahi("").is_err());
        assert!(mahimahi("-1").is_err());
    }
}
