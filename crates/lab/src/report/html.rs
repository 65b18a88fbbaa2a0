//! `report.html`: one file with data, style and script inside, for a colleague without this program or a network.
//!
//! Everything is readable as tables without JavaScript; the script adds charts. All text from the scenario is escaped by
//! the template, and a content security policy lets only the report's own script run and nothing be fetched.

use super::answer;
use super::charts::{self, Chart};
use super::text::{bits_per_second, chosen_seconds, rounded, seconds};
use crate::compare::words;
use crate::downsample::{distribution, downsample};
use crate::metrics::flows::completion_times;
use crate::result::{Comparison, FlowTrace, GroupInfo, Summary, Variant};
use minijinja::Environment;
use serde::Serialize;
use serde_json::{Value, json};

/// Points of one line of a distribution.
const DISTRIBUTION_POINTS: usize = 200;

/// Most points of one line over time.
const LINE_POINTS: usize = 2000;

/// Points of all lines over time together; with many variants each line gets fewer.
const ALL_LINE_POINTS: usize = 40_000;

const TEMPLATE: &str = include_str!("../../assets/report.html.j2");
pub(super) const SCRIPT: &str = include_str!("../../assets/report.bundle.js");
pub(super) const STYLE: &str = include_str!("../../assets/report.bundle.css");

/// The report as text.
///
/// # Errors
/// The template does not fit the data; a test renders it.
pub fn render(comparison: &Comparison) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("report.html", TEMPLATE)?;
    let document = &comparison.document;
    let (variants, shown) = charts::ordered(comparison);
    let charts = charts::all(comparison, &variants[..shown]);
    let data = embedded(comparison, &variants[..shown], &charts);
    // `<` never stands in the data, so nothing in it can end the script element.
    let data = data.to_string().replace('<', "\\u003c");
    let nonce = blake3::hash(data.as_bytes()).to_hex();
    let seeds = document.seeds.iter().map(u64::to_string).collect::<Vec<_>>();
    environment.get_template("report.html")?.render(minijinja::value::Serde(json!({
        "document": {
            "scenario": document.scenario, "question": document.question, "fleetfoot": document.fleetfoot,
            "schema": document.schema, "commit": document.commit, "interrupted": document.interrupted,
        },
        "compared": document.variants.len() > 1,
        "top": answer::top(document),
        "described": answer::described(document),
        "turn_on": answer::turn_on(document),
        "ranking": answer::table(comparison),
        "pareto": answer::pareto(document),
        "near": answer::near(document),
        "fit": answer::fit(document),
        "nonce": &nonce.as_str()[..24],
        "seeds": seeds.join(", "),
        "warmup": chosen_seconds(comparison.warmup_s),
        "duration": chosen_seconds(document.duration_s),
        "baseline": variants.first().map_or("", |variant| variant.name.as_str()),
        "finished": variants.iter().map(|variant| variant.runs).min().map(words::seeds),
        "groups": groups(comparison, &variants, shown),
        "network": network(comparison),
        "pairs": comparison.pairs.iter().map(|pair| (&pair.from, &pair.to, seconds(pair.base_rtt_s))).collect::<Vec<_>>(),
        "traces": trace_rows(comparison),
        "traced": traced(comparison),
        "charts": charts,
        "command": &comparison.command,
        "scenario_toml": &comparison.scenario_toml,
        "hash": &comparison.hash,
        "data": data,
        "script": SCRIPT,
        "style": STYLE,
    })))
}

#[derive(Serialize)]
struct GroupTable<'a> {
    name: &'a str,
    kind: &'a str,
    latency_sensitive: bool,
    first: Vec<GroupRow<'a>>,
    rest: Vec<GroupRow<'a>>,
}

#[derive(Serialize)]
struct GroupRow<'a> {
    variant: &'a str,
    cells: Vec<String>,
}

/// Per group a table of all variants: those that are shown at first, and the rest.
fn groups<'a>(comparison: &'a Comparison, variants: &[&'a Variant], shown: usize) -> Vec<GroupTable<'a>> {
    comparison
        .groups
        .iter()
        .map(|info| GroupTable {
            name: &info.name,
            kind: &info.kind,
            latency_sensitive: info.latency_sensitive,
            first: group_rows(info, &variants[..shown]),
            rest: group_rows(info, &variants[shown..]),
        })
        .collect()
}

fn group_rows<'a>(info: &GroupInfo, variants: &[&'a Variant]) -> Vec<GroupRow<'a>> {
    variants
        .iter()
        .filter_map(|variant| {
            let group = variant.groups.iter().find(|group| group.name == info.name)?;
            let time =
                |read: fn(&Summary) -> f64| group.fct_s.as_ref().map_or_else(none, |fct| seconds(read(fct)));
            let ends = |fct: &Summary| {
                fct.ci95.map_or_else(none, |[low, high]| {
                    format!("{} to {}", seconds(low), seconds(high))
                })
            };
            Some(GroupRow {
                variant: &variant.name,
                cells: vec![
                    group.flows.to_string(),
                    group.completed.to_string(),
                    group.censored.to_string(),
                    time(|fct| fct.mean),
                    group.fct_s.as_ref().map_or_else(none, ends),
                    time(|fct| fct.p50),
                    time(|fct| fct.p95),
                    time(|fct| fct.p99),
                    group
                        .delivery_latency_s
                        .as_ref()
                        .map_or_else(none, |delivery| seconds(delivery.p95)),
                    group
                        .goodput_bps
                        .as_ref()
                        .map_or_else(none, |goodput| bits_per_second(goodput.mean)),
                    group.counters.get("retransmits").to_string(),
                    group.counters.get("timeouts").to_string(),
                    group.counters.get("probes").to_string(),
                ],
            })
        })
        .collect()
}

fn network(comparison: &Comparison) -> Vec<Value> {
    comparison
        .links
        .iter()
        .map(|link| {
            let parameters = link
                .parameters
                .iter()
                .map(|(name, value)| format!("{name} {value}"))
                .collect::<Vec<_>>();
            json!({
                "name": link.name, "direction": link.direction, "rate": link.rate, "delay": chosen_seconds(link.delay_s),
                "queue": link.queue, "parameters": parameters.join(", "),
                "bottleneck": comparison.bottleneck.contains(&link.name),
            })
        })
        .collect()
}

fn none() -> String {
    "\u{2013}".to_owned()
}

/// The variants whose flows were recorded, in words.
fn traced(comparison: &Comparison) -> String {
    let recorded = comparison
        .variants
        .iter()
        .filter(|variant| !variant.traces.is_empty());
    let names: Vec<&str> = recorded.map(|variant| variant.name.as_str()).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// One row per recorded flow: what its lines show, in numbers.
fn trace_rows(comparison: &Comparison) -> Vec<Vec<String>> {
    comparison
        .variants
        .iter()
        .flat_map(|variant| variant.traces.iter().map(move |trace| (variant, trace)))
        .map(|(variant, trace)| {
            let times = trace
                .sends
                .iter()
                .map(|send| send.t_s)
                .chain(trace.states.iter().map(|state| state.t_s));
            let (first, last) = times.fold((f64::INFINITY, 0.0_f64), |(low, high), time| {
                (low.min(time), high.max(time))
            });
            vec![
                variant.name.clone(),
                format!("{} {}", trace.group, trace.number),
                if first.is_finite() { seconds(first) } else { none() },
                seconds((last - first).max(0.0)),
                trace.segments.to_string(),
                trace.retransmitted.to_string(),
                trace
                    .states
                    .iter()
                    .map(|state| state.cwnd_bytes)
                    .max()
                    .map_or_else(none, super::text::bytes),
            ]
        })
        .collect()
}

/// What the script reads: charts, distributions and lines over time, in columns.
fn embedded(comparison: &Comparison, variants: &[&Variant], charts: &[Chart]) -> Value {
    let names = variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect::<Vec<_>>();
    let lines = comparison
        .variants
        .iter()
        .map(|variant| variant.traces.len())
        .sum::<usize>()
        * 4;
    let points = (ALL_LINE_POINTS / lines.max(1)).clamp(100, LINE_POINTS);
    let mut traces = names
        .iter()
        .enumerate()
        .filter_map(|(index, name)| {
            let data = comparison.variants.iter().find(|data| data.name == **name)?;
            Some(
                data.traces
                    .iter()
                    .map(move |trace| lines_of(index, trace, points)),
            )
        })
        .flatten()
        .collect::<Vec<_>>();
    // The page begins with a flow of a group that waits.
    let waits = |trace: &Value| {
        let flow = trace["flow"].as_str().unwrap_or("");
        comparison.groups.iter().any(|group| {
            group.latency_sensitive && flow.rsplit_once(' ').is_some_and(|(name, _)| name == group.name)
        })
    };
    traces.sort_by_key(|trace| !waits(trace));
    json!({
        "variants": names,
        "colors": (0..names.len()).map(charts::color).collect::<Vec<_>>(),
        "dashes": (0..names.len()).map(charts::dash).collect::<Vec<_>>(),
        "charts": charts.iter().map(|chart| json!({ "id": chart.id, "spec": chart.spec })).collect::<Vec<_>>(),
        "distributions": distributions(comparison, &names),
        "traces": traces,
        "caption": format!(
            "fleetfoot {} \u{b7} {} \u{b7} {}",
            comparison.document.fleetfoot,
            words::seeds(comparison.document.seeds.len() as u64),
            comparison.document.scenario
        ),
    })
}

pub(super) fn distributions(comparison: &Comparison, names: &[&str]) -> Vec<Value> {
    let mut found = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let Some(data) = comparison.variants.iter().find(|data| data.name == **name) else {
            continue;
        };
        for (position, group) in comparison.groups.iter().enumerate() {
            let mut completed = Vec::new();
            let mut all = 0;
            for run in &data.runs {
                if let Some(output) = run.output.groups.get(position) {
                    let sample = completion_times(group.traffic_kind(), output, &run.output);
                    all += sample.len();
                    completed.extend(sample.completed);
                }
            }
            completed.sort_unstable_by(f64::total_cmp);
            let points = distribution(&completed, all, DISTRIBUTION_POINTS);
            if points.is_empty() {
                continue;
            }
            found.push(json!({
                "variant": index,
                "group": group.name,
                "fct_s": points.iter().map(|point| rounded(point.0, 4)).collect::<Vec<_>>(),
                "share": points.iter().map(|point| rounded(point.1, 5)).collect::<Vec<_>>(),
            }));
        }
    }
    found
}

fn lines_of(variant: usize, trace: &FlowTrace, points: usize) -> Value {
    let time = |t_s: f64| rounded(t_s, 7);
    let (again, first): (Vec<_>, Vec<_>) = trace.sends.iter().copied().partition(|send| send.retransmission);
    let end = |send: &crate::result::SendPoint| send.from_byte as f64 + f64::from(send.bytes);
    let sent = downsample(&first, points, |send| send.t_s, end);
    let again = downsample(&again, points, |send| send.t_s, end);
    let acked = downsample(
        &trace.states,
        points,
        |state| state.t_s,
        |state| state.acked_bytes as f64,
    );
    let window = downsample(
        &trace.states,
        points,
        |state| state.t_s,
        |state| state.cwnd_bytes as f64,
    );
    json!({
        "variant": variant,
        "flow": format!("{} {}", trace.group, trace.number),
        "sent": [sent.iter().map(|p| time(p.t_s)).collect::<Vec<_>>(), sent.iter().map(end).map(|b| b as u64).collect::<Vec<_>>()],
        "again": [again.iter().map(|p| time(p.t_s)).collect::<Vec<_>>(), again.iter().map(end).map(|b| b as u64).collect::<Vec<_>>()],
        "acked": [acked.iter().map(|p| time(p.t_s)).collect::<Vec<_>>(), acked.iter().map(|p| p.acked_bytes).collect::<Vec<_>>()],
        "window_t": window.iter().map(|p| time(p.t_s)).collect::<Vec<_>>(),
        "cwnd": window.iter().map(|p| p.cwnd_bytes).collect::<Vec<_>>(),
        "ssthresh": window.iter().map(|p| p.ssthresh_bytes).collect::<Vec<_>>(),
        "pipe": window.iter().map(|p| p.pipe_bytes).collect::<Vec<_>>(),
    })
}
