//! Tables that leave the program: their columns with unit and definition, and the rows behind them.
//!
//! One macro line defines a column and the value in it, so the header, the CSV and Parquet writers and the data dictionary
//! cannot disagree; counters of TCP that are reported have columns by themselves. Rows borrow from the [`Comparison`] and are made one at a time.

use crate::metrics::counters::{Counters, reported};
use crate::metrics::flows::{acked_times, completion_times, delivery_times};
use crate::result::{Comparison, GroupInfo, LinkInfo, RunData, Summary};
use crate::statistics::{self, Resamples};
use fleetfoot_core::queue::{DropReason, QueueEventKind};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::output::{FlowRecord, GroupOutput, LinkOutput};
use std::borrow::Cow;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text; also enumerations and `true` or `false`.
    Text,
    /// A whole number, not negative.
    Integer,
    /// A 64-bit floating-point number.
    Number,
}

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name, with the unit where there is one.
    pub name: Cow<'static, str>,
    /// What it holds.
    pub kind: Kind,
    /// Its unit, empty for text and counts.
    pub unit: &'static str,
    /// What it means and where it is measured.
    pub definition: Cow<'static, str>,
}

/// A column for each reported counter of TCP.
pub(crate) fn counter_columns() -> impl Iterator<Item = Column> {
    reported().map(|counter| {
        let sentence = counter.definition.trim();
        let (first, rest) = sentence.split_at(sentence.len().min(1));
        Column {
            name: counter.name.into(),
            kind: Kind::Integer,
            unit: if counter.name.ends_with("_bytes") { "B" } else { "" },
            definition: (first.to_lowercase() + rest.trim_end_matches('.')).into(),
        }
    })
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name of the file without its ending.
    pub name: &'static str,
    /// What one row is.
    pub row: &'static str,
    /// Its columns, in order.
    pub columns: Vec<Column>,
}

/// A value of a row; `Empty` where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Empty,
    /// Text.
    Text(&'a str),
    /// A whole number.
    Integer(u64),
    /// A floating-point number.
    Number(f64),
}

/// The values of a row.
pub trait Cells {
    /// Appends the values, in the order of the columns.
    fn cells<'a>(&'a self, cells: &mut Vec<Cell<'a>>);
}

/// A row of a table.
pub trait Row: Cells {
    /// Its table.
    fn table() -> Table;
}

/// Defines a table: for each column its name, kind, unit, definition and value; at `counters(x)` a column for each reported
/// counter, with its value in the row for `x`.
macro_rules! table {
    ($row:ty, $this:ident, $name:literal, $what:literal, $( $column:literal $kind:ident $unit:literal $definition:literal = $value:expr; )*
        $( counters($counter:ident) = $count:expr;
        $( $later:literal $later_kind:ident $later_unit:literal $later_definition:literal = $later_value:expr; )* )?) => {
        impl $crate::report::table::Row for $row {
            fn table() -> $crate::report::table::Table {
                use $crate::report::table::{Column, Kind};
                let column = |name: &'static str, kind, unit, definition: &'static str| Column {
                    name: name.into(),
                    kind,
                    unit,
                    definition: definition.into(),
                };
                let columns = [$( column($column, Kind::$kind, $unit, $definition), )*].into_iter();
                $( let later = [$( column($later, Kind::$later_kind, $later_unit, $later_definition), )*];
                let columns = columns.chain($crate::report::table::counter_columns()).chain(later); )?
                $crate::report::table::Table {
                    name: $name,
                    row: $what,
                    columns: columns.collect(),
                }
            }
        }

        impl $crate::report::table::Cells for $row {
            fn cells<'a>(&'a self, cells: &mut Vec<$crate::report::table::Cell<'a>>) {
                let $this = self;
                cells.extend([$( $crate::report::table::Cell::from($value), )*]);
                $( cells.extend($crate::metrics::counters::reported().map(|$counter| $crate::report::table::Cell::from($count)));
                $( cells.push($crate::report::table::Cell::from($later_value)); )* )?
            }
        }
    };
}
pub(crate) use table;

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Cell<'a> {
        Cell::Text(text)
    }
}

impl From<bool> for Cell<'_> {
    fn from(value: bool) -> Self {
        Cell::Text(if value { "true" } else { "false" })
    }
}

impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        Cell::Integer(value)
    }
}

impl From<u32> for Cell<'_> {
    fn from(value: u32) -> Self {
        Cell::Integer(u64::from(value))
    }
}

impl From<f64> for Cell<'_> {
    /// What is not finite is no value.
    fn from(value: f64) -> Self {
        if value.is_finite() {
            Cell::Number(value)
        } else {
            Cell::Empty
        }
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Empty, Into::into)
    }
}

/// A row of `samples`: one flow.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Name of the variant.
    pub variant: &'a str,
    /// Seed of the run.
    pub seed: u64,
    /// Name of the group.
    pub group: &'a str,
    /// Number within group and run, from 0 in order of start.
    pub number: u64,
    /// What happened.
    pub record: &'a FlowRecord,
}

impl Sample<'_> {
    /// Time from the start of the flow (s).
    fn since_start(&self, end: Option<Instant>) -> Option<f64> {
        end.map(|end| end.since(self.record.start).as_secs_f64())
    }
}

table! { Sample<'_>, s, "samples", "one flow of one run: a transfer, a bulk connection, an exchange, a burst or a ping; what it sent and received and the counters of TCP are of all its life, warm-up and drain included",
    "variant" Text "" "name of the variant" = s.variant;
    "seed" Integer "" "seed of the run" = s.seed;
    "group" Text "" "name of the traffic group" = s.group;
    "flow" Integer "" "number of the flow within group and run, from 0 in order of start among those that start after the warm-up; `trace` counts those within it, too" = s.number;
    "pair" Integer "" "which of the group's pairs of hosts it ran between, from 0" = s.record.pair;
    "size_bytes" Integer "B" "payload to transfer; for bulk connections the payload received" = s.record.bytes.get();
    "start_s" Number "s" "first SYN sent (exchanges and bursts: first byte written; pings and datagrams: sent), from the start of the run" = s.record.start.as_secs_f64();
    "completed" Text "" "`true` when the last payload byte was received in order before the run ended" = s.record.completed.is_some();
    "fct_s" Number "s" "flow completion time, measured at the receiver: `start_s` to last payload byte received in order; empty when not completed" = s.since_start(s.record.completed);
    "acked_s" Number "s" "`start_s` to last payload byte acknowledged, measured at the sender" = s.since_start(s.record.acked);
    "received_bytes" Integer "B" "payload received in order until the end of the run" = s.record.received.get();
    "sent_bytes" Integer "B" "payload sent, retransmissions and probes included, measured at the sender" = s.record.stats().bytes_sent;
    "data_segments_sent" Integer "" "data segments sent, retransmissions included" = s.record.stats().segments_sent;
    counters(counter) = (counter.value)(&s.record.stats());
    "min_rtt_s" Number "s" "smallest round-trip time sampled by the sender" = s.record.min_rtt.map(Duration::as_secs_f64);
    "ack_latency_s" Number "s" "mean time from the first transmission of a segment to its acknowledgment" = s.record.mean_ack_latency();
}

/// Every flow of every run, in the order variant, seed, group, start.
pub fn samples(comparison: &Comparison) -> impl Iterator<Item = Sample<'_>> {
    comparison.variants.iter().flat_map(move |variant| {
        variant.runs.iter().flat_map(move |run| {
            comparison
                .groups
                .iter()
                .zip(&run.output.groups)
                .flat_map(move |(group, output)| {
                    (0..).zip(&output.flows).map(move |(number, record)| Sample {
                        variant: &variant.name,
                        seed: run.seed,
                        group: &group.name,
                        number,
                        record,
                    })
                })
        })
    })
}

/// A row of `runs`: one traffic group of one run.
#[derive(Clone, Debug)]
pub struct RunRow<'a> {
    variant: &'a str,
    seed: u64,
    group: &'a GroupInfo,
    output: &'a GroupOutput,
    completed: u64,
    censored: u64,
    undelivered: u64,
    fct: Option<Summary>,
    delivery: Option<Summary>,
    acked_mean_s: Option<f64>,
    ack_latency_mean_s: Option<f64>,
    goodput_bps: f64,
    fairness_jain: Option<f64>,
    counters: Counters,
}

table! { RunRow<'_>, r, "runs", "one traffic group of one run (variant and seed); the counters of TCP are of all the life of its flows, warm-up and drain included, `goodput_bps` and `fairness_jain` of the time between warm-up and end of arrivals",
    "variant" Text "" "name of the variant" = r.variant;
    "seed" Integer "" "seed of the run" = r.seed;
    "group" Text "" "name of the traffic group" = r.group.name.as_str();
    "kind" Text "" "kind of the traffic group" = r.group.kind.as_str();
    "latency_sensitive" Text "" "`true` when its users wait for each transfer" = r.group.latency_sensitive;
    "flows" Integer "" "flows that started between warm-up and end of arrivals" = r.output.flows.len() as u64;
    "completed" Integer "" "those of `flows` that completed" = r.completed;
    "censored" Integer "" "those that should have completed and did not; kinds without an end (bulk, constant bit rate) have none, nor have pings: a lost one is a loss, counted in `flows` and not in `completed`" = r.censored;
    "fct_mean_s" Number "s" "mean flow completion time; a flow that did not complete enters with its age at the end of the run" = r.fct.as_ref().map(|s| s.mean);
    "fct_p50_s" Number "s" "median; in this and the other quantiles a flow that did not complete counts with its age, but as no shorter than the longest that did" = r.fct.as_ref().map(|s| s.p50);
    "fct_p90_s" Number "s" "90th percentile of the flow completion time" = r.fct.as_ref().map(|s| s.p90);
    "fct_p95_s" Number "s" "95th percentile of the flow completion time" = r.fct.as_ref().map(|s| s.p95);
    "fct_p99_s" Number "s" "99th percentile of the flow completion time" = r.fct.as_ref().map(|s| s.p99);
    "fct_max_s" Number "s" "longest flow completion time, by the same rule" = r.fct.as_ref().map(|s| s.max);
    "acked_mean_s" Number "s" "mean time from start to last payload byte acknowledged; a flow that did not complete enters with its age at the end of the run" = r.acked_mean_s;
    "undelivered" Integer "" "application writes between warm-up and end of arrivals that had not arrived when the run ended" = r.undelivered;
    "delivery_latency_mean_s" Number "s" "mean time from an application's write to its in-order arrival; a write that had not arrived enters with its age at the end of the run" = r.delivery.as_ref().map(|s| s.mean);
    "delivery_latency_p50_s" Number "s" "median of the same; in quantiles a write that had not arrived counts with its age, but as no shorter than the longest that had" = r.delivery.as_ref().map(|s| s.p50);
    "delivery_latency_p99_s" Number "s" "99th percentile of the same" = r.delivery.as_ref().map(|s| s.p99);
    "ack_latency_mean_s" Number "s" "mean over all first transmissions of the time to their acknowledgment" = r.ack_latency_mean_s;
    "goodput_bps" Number "bit/s" "payload of the whole group received in order between warm-up and end of arrivals, per second" = r.goodput_bps;
    "fairness_jain" Number "" "Jain's index of the goodput of the group's connections; empty with fewer than two" = r.fairness_jain;
    counters(counter) = r.counters.get(counter.name);
}

/// Every group of every run.
pub fn runs(comparison: &Comparison) -> impl Iterator<Item = RunRow<'_>> {
    let measured_s = comparison.duration_s - comparison.warmup_s;
    comparison.variants.iter().flat_map(move |variant| {
        let of_run = move |run| groups_of_run(&variant.name, run, &comparison.groups, measured_s);
        variant.runs.iter().flat_map(of_run)
    })
}

/// Every group of one run, measured for so long (s).
pub(crate) fn groups_of_run<'a>(
    variant: &'a str,
    run: &'a RunData,
    groups: &'a [GroupInfo],
    measured_s: f64,
) -> impl Iterator<Item = RunRow<'a>> {
    let groups = groups.iter().zip(&run.output.groups);
    groups.map(move |(group, output)| run_row(variant, run, group, output, measured_s))
}

fn run_row<'a>(
    variant: &'a str,
    run: &'a RunData,
    group: &'a GroupInfo,
    output: &'a GroupOutput,
    measured_s: f64,
) -> RunRow<'a> {
    let flows = &output.flows;
    let sample = completion_times(group.traffic_kind(), output, &run.output);
    let single = Resamples::new(0, 1, 0);
    let acked = acked_times(group.traffic_kind(), output, &run.output);
    let acks = flows
        .iter()
        .map(|flow| flow.stats().ack_latency_count)
        .sum::<u64>();
    let shares = output
        .goodput_bytes_per_connection
        .iter()
        .map(|bytes| bytes.get() as f64)
        .collect::<Vec<_>>();
    RunRow {
        variant,
        seed: run.seed,
        group,
        output,
        completed: sample.completed.len() as u64,
        censored: sample.censored.len() as u64,
        fct: statistics::summarize(&[sample], &single),
        undelivered: output.delivery_censored.len() as u64,
        delivery: statistics::summarize(&[delivery_times(output)], &single),
        acked_mean_s: (!acked.is_empty()).then(|| acked.sum() / acked.len() as f64),
        ack_latency_mean_s: (acks > 0)
            .then(|| flows.iter().map(|flow| flow.ack_latency_sum).sum::<f64>() / acks as f64),
        goodput_bps: output.goodput_bytes.get() as f64 * 8.0 / measured_s,
        fairness_jain: statistics::jain(&shares),
        counters: Counters::of(flows),
    }
}

/// A row of `links`: one direction of one link of one run.
#[derive(Clone, Copy, Debug)]
pub struct LinkRow<'a> {
    variant: &'a str,
    seed: u64,
    link: &'a LinkInfo,
    output: &'a LinkOutput,
    measured_s: f64,
}

impl LinkRow<'_> {
    fn dropped(&self, kind: usize) -> u64 {
        self.output.drops.iter().map(|by_kind| by_kind[kind]).sum()
    }

    fn dropped_for(&self, reasons: &[DropReason]) -> u64 {
        DropReason::ALL
            .iter()
            .zip(&self.output.drops)
            .filter(|(reason, _)| reasons.contains(reason))
            .flat_map(|(_, by_kind)| by_kind)
            .sum()
    }

    fn marked(&self) -> u64 {
        QueueEventKind::ALL
            .iter()
            .zip(&self.output.events)
            .find(|(kind, _)| **kind == QueueEventKind::Marked)
            .map_or(0, |(_, count)| *count)
    }
}

table! { LinkRow<'_>, l, "links", "one direction of one link of one run, measured between warm-up and end of arrivals",
    "variant" Text "" "name of the variant" = l.variant;
    "seed" Integer "" "seed of the run" = l.seed;
    "link" Text "" "name of the link" = l.link.name.as_str();
    "direction" Text "" "`forward` as the scenario names it, or `reverse`" = l.link.direction.as_str();
    "utilisation" Number "" "share of the time the link was sending" = l.output.busy.as_secs_f64() / l.measured_s;
    "packets" Integer "" "packets that left" = l.output.packets;
    "data_packets" Integer "" "packets with payload that left" = l.output.data_packets;
    "bytes" Integer "B" "layer-3 bytes that left" = l.output.bytes.get();
    "drops_data" Integer "" "packets with payload that were dropped, for whatever reason" = l.dropped(0);
    "drops_ack" Integer "" "pure acknowledgments that were dropped" = l.dropped(1);
    "drops_other" Integer "" "other packets that were dropped" = l.dropped(2);
    "drops_queue" Integer "" "drops by the queue: full, early, pushed out or orphan" = l.dropped_for(&crate::compare::place::BY_QUEUE);
    "drops_wire" Integer "" "drops by the wire: loss model or bit errors" = l.dropped_for(&[DropReason::RandomLoss, DropReason::BitError]);
    "marks" Integer "" "packets marked congestion experienced" = l.marked();
}

/// Every link of every run.
pub fn links(comparison: &Comparison) -> impl Iterator<Item = LinkRow<'_>> {
    let measured_s = comparison.duration_s - comparison.warmup_s;
    comparison.variants.iter().flat_map(move |variant| {
        let of_run = move |run| links_of_run(&variant.name, run, &comparison.links, measured_s);
        variant.runs.iter().flat_map(of_run)
    })
}

/// Every link of one run, measured for so long (s).
pub(crate) fn links_of_run<'a>(
    variant: &'a str,
    run: &'a RunData,
    links: &'a [LinkInfo],
    measured_s: f64,
) -> impl Iterator<Item = LinkRow<'a>> {
    let links = links.iter().zip(&run.output.links);
    links.map(move |(link, output)| LinkRow {
        variant,
        seed: run.seed,
        link,
        output,
        measured_s,
    })
}
