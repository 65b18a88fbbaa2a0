//! The table of links that `run` prints: those where packets waited, many alike in one row.

use crate::layout::{align, fit, new_table, wrapped};
use crate::table::line;
use fleetfoot_lab::compare::words::seconds;
use fleetfoot_lab::result::{Comparison, Link, LinkInfo, Variant};
use std::fmt::Write;

/// Most links that differ only in their number and are listed one by one; more share a row.
const SINGLY: usize = 6;

/// A row: one link direction, or several that are alike.
struct Row<'a> {
    links: Vec<&'a Link>,
    info: &'a LinkInfo,
}

/// The name without its number: `access-` of `access-12`.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|digit: char| digit.is_ascii_digit())
}

impl Row<'_> {
    fn takes(&self, link: &Link, info: &LinkInfo) -> bool {
        let first = self.links[0];
        stem(&link.name) == stem(&first.name)
            && stem(&link.name) != link.name
            && link.direction == first.direction
            && info.rate == self.info.rate
            && info.queue == self.info.queue
            && info.parameters == self.info.parameters
    }

    /// Largest use and delays, sums of drops and marks.
    fn cells(&self) -> [String; 9] {
        let links = &self.links;
        let first = links[0];
        let name = match links.as_slice() {
            [one] => one.name.clone(),
            [.., last] => format!("{}..{}", first.name, &last.name[stem(&last.name).len()..]),
            [] => String::new(),
        };
        let limit = self.info.parameters.iter().find(|(name, _)| name == "limit");
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let delays = || links.iter().filter_map(|link| link.queue_delay_s.as_ref());
        let drops: u64 = links.iter().map(|link| dropped(link)).sum();
        let marks: u64 = links.iter().map(|link| link.marks).sum();
        [
            name,
            first.direction.clone(),
            self.info.rate.clone(),
            format!("{} {}", self.info.queue, limit.map_or("", |(_, value)| value)),
            format!(
                "{:.0} %",
                100.0 * largest(&mut links.iter().map(|link| link.utilisation))
            ),
            seconds(largest(&mut delays().map(|delay| delay.mean))),
            seconds(largest(&mut delays().map(|delay| delay.p99))),
            drops.to_string(),
            marks.to_string(),
        ]
    }
}

fn dropped(link: &Link) -> u64 {
    link.drops.data + link.drops.ack + link.drops.other
}

/// The rows, and how many link directions are left out because hardly a packet waited.
fn rows<'a>(links: &'a [Link], infos: &'a [LinkInfo]) -> (Vec<Row<'a>>, usize) {
    let mut idle = 0;
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (link, info) in links.iter().zip(infos) {
        if dropped(link) == 0 && link.queue_delay_s.as_ref().is_none_or(|delay| delay.p99 <= 0.0) {
            idle += 1;
            continue;
        }
        match rows.iter_mut().find(|row| row.takes(link, info)) {
            Some(row) => row.links.push(link),
            None => rows.push(Row {
                links: vec![link],
                info,
            }),
        }
    }
    let rows = rows.into_iter().flat_map(|row| {
        let alone = row.links.len() <= SINGLY;
        let size = if alone { 1 } else { row.links.len() };
        let parts: Vec<_> = row.links.chunks(size).map(<[_]>::to_vec).collect();
        parts.into_iter().map(move |links| Row {
            links,
            info: row.info,
        })
    });
    (rows.collect(), idle)
}

/// Writes the table.
pub(crate) fn write(
    text: &mut String,
    variant: &Variant,
    comparison: &Comparison,
    colored: bool,
    width: usize,
) {
    let mut table = new_table(
        colored,
        &[
            "link",
            "direction",
            "rate",
            "queue",
            "used",
            "delay",
            "p99",
            "drops",
            "marks",
        ],
    );
    let (rows, idle) = rows(&variant.links, &comparison.links);
    for row in &rows {
        table.add_row(row.cells());
    }
    align(&mut table, 4..9);
    fit(&mut table, width, &[2, 8, 6, 3]);
    if rows.is_empty() {
        line(text, "\nNo packet waited anywhere.");
        return;
    }
    let _ = writeln!(text, "\n{table}");
    if rows.iter().any(|row| row.links.len() > 1) {
        let note = "Of several links in a row: the largest use and delays, all drops and marks.";
        line(text, &wrapped(note, width, " "));
    }
    if idle > 0 {
        let note = format!("and {idle} link directions where hardly a packet waited (all are in the JSON)");
        line(text, &wrapped(&note, width, " "));
    }
}

#[cfg(test)]
mod tests {
    use super::{rows, stem};
    use fleetfoot_lab::result::{Drops, Link, LinkInfo};
    use std::collections::BTreeMap;

    fn link(name: String, drops: u64) -> (Link, LinkInfo) {
        let link = Link {
            name: name.clone(),
            direction: String::from("forward"),
            utilisation: 0.01 * drops as f64,
            queue_delay_s: None,
            queue_packets: None,
            drops: Drops {
                data: drops,
                ..Drops::default()
            },
            marks: 1,
            data_units: 0,
            units: 0,
            bytes: 0,
            counters: BTreeMap::new(),
        };
        let info = LinkInfo {
            name,
            direction: String::from("forward"),
            rate: String::from("1 Gbit/s"),
            delay_s: 0.001,
            queue: String::from("drop-tail"),
            parameters: vec![(String::from("limit"), String::from("100 packets"))],
        };
        (link, info)
    }

    fn cells(count: u64) -> (Vec<[String; 9]>, usize) {
        let mut all: Vec<_> = (0..count)
            .map(|number| link(format!("access-{number}"), number))
            .collect();
        all.push(link(String::from("bottleneck"), 7));
        let (links, infos): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let (rows, idle) = rows(&links, &infos);
        (rows.iter().map(super::Row::cells).collect(), idle)
    }

    #[test]
    fn many_alike_share_a_row() {
        let (table, idle) = cells(51);
        assert_eq!((table.len(), idle), (2, 1)); // access-0 drops nothing
        assert_eq!(table[0][0], "access-1..50");
        assert_eq!(&table[0][3..5], ["drop-tail 100 packets", "50 %"]);
        assert_eq!(&table[0][7..], ["1275", "50"]);
        assert_eq!(table[1][0], "bottleneck");
    }

    #[test]
    fn a_few_stand_alone() {
        let (table, _) = cells(5);
        let names: Vec<_> = table.iter().map(|cells| cells[0].as_str()).collect();
        assert_eq!(
            names,
            ["access-1", "access-2", "access-3", "access-4", "bottleneck"]
        );
        assert_eq!(stem("left-10"), "left-");
    }
}
