//! `report.html`: one file with data, style and script inside, for a colleague without this program or a network.
//!
//! Charts and tables are there without JavaScript. The script chooses what a chart shows, saves it, sorts and filters the table,
//! and draws recorded flows. All text from the scenario is escaped by the template, and a content security policy lets only the
//! report's own script run and nothing be fetched.

use super::answer;
use super::charts::{self, Chart};
use super::figures::page;
use super::text::{bits_per_second, chosen_seconds, seconds};
use crate::compare::words;
use crate::downsample::downsample;
use crate::result::{Comparison, FlowTrace, GroupInfo, Summary, Variant};
use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use serde::Serialize;
use serde_json::{Value, json};

/// Most points of one line over time.
const LINE_POINTS: usize = 2000;

/// Points of all lines over time together; with many variants each line gets fewer.
const ALL_LINE_POINTS: usize = 16_000;

const TEMPLATE: &str = include_str!("../../assets/report.html.j2");
pub(super) const SCRIPT: &str = include_str!("../../assets/report.bundle.js");
pub(super) const STYLE: &str = include_str!("../../assets/report.bundle.css");

/// The report as text.
///
/// # Errors
/// The template does not fit the data; a test renders it.
pub fn render(comparison: &Comparison) -> Result<String, minijinja::Error> {
    let environment = environment("report.html", TEMPLATE)?;
    let document = &comparison.document;
    let (variants, shown) = charts::ordered(comparison);
    let charts = charts::all(comparison, &variants[..shown]);
    let data = script_data(&json!({
        "variants": variants[..shown].iter().map(|variant| &variant.name).collect::<Vec<_>>(),
        "traces": traces(comparison, &variants[..shown]),
        "caption": format!(
            "fleetfoot {} \u{b7} {} \u{b7} {}",
            document.fleetfoot,
            words::seeds(document.seeds.len() as u64),
            document.scenario
        ),
    }));
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
        "own_seeds": charts::own_seeds(&variants),
        "network": network(comparison),
        "pairs": comparison.pairs.iter().map(|pair| (&pair.from, &pair.to, seconds(pair.base_rtt_s))).collect::<Vec<_>>(),
        "traces": trace_rows(comparison),
        "traced": traced(comparison),
        "charts": drawn(&charts),
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
                    group.counters.text("retransmits"),
                    group.counters.text("timeouts"),
                    group.counters.text("probes"),
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

/// Templates whose tags leave no empty lines behind: a report has thousands of rows.
pub(super) fn environment(
    name: &'static str,
    template: &'static str,
) -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    environment.set_syntax(syntax);
    environment.add_template(name, template)?;
    Ok(environment)
}

/// What the script reads, as text for its element: `<` never stands in it, so nothing in it can end the element.
pub(super) fn script_data(data: &Value) -> String {
    data.to_string().replace('<', "\\u003c")
}

/// The charts with their pictures, for a template.
pub(super) fn drawn(charts: &[Chart]) -> Vec<Value> {
    let drawn = charts.iter().map(|chart| {
        json!({
            "id": chart.id, "title": chart.title, "text": chart.text, "groups": chart.groups,
            "pictures": page::pictures(chart), "key": page::key(chart), "header": chart.header, "rows": chart.rows,
        })
    });
    drawn.collect()
}

/// Recorded flows, for the script.
fn traces(comparison: &Comparison, variants: &[&Variant]) -> Vec<Value> {
    let recorded = |variant: &Variant| comparison.variants.iter().find(|data| data.name == variant.name);
    let lines = comparison
        .variants
        .iter()
        .map(|variant| variant.traces.len())
        .sum::<usize>()
        * 4;
    let points = (ALL_LINE_POINTS / lines.max(1)).clamp(100, LINE_POINTS);
    let mut traces: Vec<Value> = variants
        .iter()
        .enumerate()
        .filter_map(|(index, variant)| Some((index, recorded(variant)?)))
        .flat_map(|(index, data)| {
            data.traces
                .iter()
                .map(move |trace| lines_of(index, trace, points))
        })
        .collect();
    // The page begins with a flow of a group that waits.
    let waits = |trace: &Value| {
        let flow = trace["flow"].as_str().unwrap_or("");
        comparison.groups.iter().any(|group| {
            group.latency_sensitive && flow.rsplit_once(' ').is_some_and(|(name, _)| name == group.name)
        })
    };
    traces.sort_by_key(|trace| !waits(trace));
    traces
}

/// A column of whole numbers, each as its difference from the last one known.
fn steps<T>(values: impl Iterator<Item = T>) -> Vec<Option<i64>>
where
    Option<u64>: From<T>,
{
    let mut before = 0;
    values
        .map(|value| {
            let value = i64::try_from(Option::from(value)?).unwrap_or(i64::MAX);
            Some(value - std::mem::replace(&mut before, value))
        })
        .collect()
}

fn lines_of(variant: usize, trace: &FlowTrace, points: usize) -> Value {
    // Microseconds.
    let times = |points: &[f64]| steps(points.iter().map(|t_s| libm::round(t_s.max(0.0) * 1e6) as u64));
    let sent_at =
        |sends: &[crate::result::SendPoint]| times(&sends.iter().map(|send| send.t_s).collect::<Vec<_>>());
    let seen_at = |states: &[crate::result::StatePoint]| {
        times(&states.iter().map(|state| state.t_s).collect::<Vec<_>>())
    };
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
        "sent": [sent_at(&sent), steps(sent.iter().map(|send| end(send) as u64))],
        "again": [sent_at(&again), steps(again.iter().map(|send| end(send) as u64))],
        "acked": [seen_at(&acked), steps(acked.iter().map(|state| state.acked_bytes))],
        "window_t": seen_at(&window),
        "cwnd": steps(window.iter().map(|state| state.cwnd_bytes)),
        "ssthresh": steps(window.iter().map(|state| state.ssthresh_bytes)),
        "pipe": steps(window.iter().map(|state| state.pipe_bytes)),
    })
}
