//! The report of `fleetfoot shell`: what a real program saw behind a link, over time, and under which queue it did best.

use super::charts::{self, Chart};
use super::figures::{self, Figure};
use super::table::Row;
use super::text::{bits_per_second, bytes, percent, seconds, signed_percent};
use super::{csv, html};
use crate::import::flows::Flow;
use crate::live::study::valued;
use crate::live::timeline::Series;
use crate::live::{Run, Timeline};
use crate::result::{Comparison, Document, Live, LiveVariant, Variant};
use minijinja::Environment;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

mod tables;

pub use tables::{FlowRow, MeasuredRow, flows, measured};

const TEMPLATE: &str = include_str!("../../assets/live.html.j2");

/// Writes `report.html`, `flows.csv`, `measured.csv` (Parquet too where that is built), and for a comparison `compared.svg` into
/// the folder `directory`.
///
/// # Errors
/// What the file system says.
pub fn write(directory: &Path, comparison: &Comparison) -> io::Result<()> {
    let page = render(comparison).map_err(io::Error::other)?;
    std::fs::write(directory.join("report.html"), page)?;
    if let Some(figure) = compared(&comparison.document) {
        std::fs::write(directory.join("compared.svg"), figure.standalone())?;
    }
    write_table(directory, flows(comparison), comparison)?;
    write_table(directory, measured(comparison), comparison)
}

fn write_table<R: Row>(
    directory: &Path,
    rows: impl Iterator<Item = R> + Clone,
    comparison: &Comparison,
) -> io::Result<()> {
    let file = |ending: &str| File::create(directory.join(format!("{}.{ending}", R::table().name)));
    csv::write_rows(BufWriter::new(file("csv")?), rows.clone())?;
    #[cfg(feature = "parquet")]
    super::parquet::write_rows(file("parquet")?, rows, &super::parquet::provenance(comparison))?;
    // Without Parquet nothing more is made of them.
    #[cfg(not(feature = "parquet"))]
    let _ = (rows, comparison);
    Ok(())
}

/// The identity of what is measured, for a folder that belongs to it.
pub fn identity(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Variants with what was measured of them, the best first; those without a run that counts are last.
pub fn ranked(document: &Document) -> Vec<(&Variant, &LiveVariant)> {
    let variants = document.variants.iter();
    let mut ranked: Vec<_> = variants
        .filter_map(|variant| Some((variant, variant.live.as_ref()?)))
        .collect();
    ranked.sort_by_key(|(_, live)| live.rank.unwrap_or(u64::MAX));
    ranked
}

/// The headings of [`compared_row`].
pub const HEADINGS: [&str; 8] = [
    "tier",
    "variant",
    "mean",
    "95 % interval",
    "median",
    "against the first",
    "runs",
    "remarks",
];

/// A row of the ranked table.
pub fn compared_row(document: &Document, variant: &Variant, live: &LiveVariant) -> Vec<String> {
    let unit = document.live.as_ref().map_or("", |live| live.unit.as_str());
    let dash = || String::from("-");
    let value = live.value.as_ref();
    let change = live.ratio.map_or_else(dash, |ratio| {
        let ends = ratio.ci95.map_or_else(String::new, |[low, high]| {
            format!(" [{}, {}]", signed_percent(low - 1.0), signed_percent(high - 1.0))
        });
        let sure = if ratio.significant { "" } else { ", not sure" };
        format!("{}{ends}{sure}", signed_percent(ratio.value - 1.0))
    });
    let mut remarks = Vec::new();
    if live.failed > 0 {
        remarks.push(format!("{} failed", live.failed));
    }
    if live.not_kept > 0 {
        remarks.push(format!("link not kept in {}", live.not_kept));
    }
    vec![
        live.tier.map_or_else(dash, |tier| tier.to_string()),
        variant.name.clone(),
        value.map_or_else(dash, |value| valued(value.mean, unit)),
        value
            .and_then(|value| value.ci95)
            .map_or_else(dash, |[low, high]| {
                format!("{} to {}", valued(low, unit), valued(high, unit))
            }),
        value.map_or_else(dash, |value| valued(value.p50, unit)),
        change,
        variant.runs.to_string(),
        match remarks.is_empty() {
            true => dash(),
            false => remarks.join("; "),
        },
    ]
}

/// The comparison as a drawing; `None` where nothing is compared.
pub fn compared(document: &Document) -> Option<Figure> {
    let live = document.live.as_ref().filter(|live| live.compared)?;
    let rows: Vec<(String, f64, Option<[f64; 2]>)> = ranked(document)
        .into_iter()
        .filter_map(|(variant, live)| {
            let value = live.value.as_ref()?;
            Some((variant.name.clone(), value.mean, value.ci95))
        })
        .collect();
    let unit = match live.unit.as_str() {
        "" => String::new(),
        unit => format!(" ({unit})"),
    };
    figures::values(
        "compared",
        &format!("{}{unit}, {}", live.metric_words, document.scenario),
        &document.answer,
        &rows,
    )
}

/// The report as text.
///
/// # Errors
/// The template does not fit the data; a test renders it.
pub fn render(comparison: &Comparison) -> Result<String, minijinja::Error> {
    let document = &comparison.document;
    let fallback = Live::default();
    let live = document.live.as_ref().unwrap_or(&fallback);
    let ranked = ranked(document);
    let charts = charts_of(&ranked, live);
    let names: Vec<&str> = ranked.iter().map(|(variant, _)| variant.name.as_str()).collect();
    let data = json!({
        "variants": names,
        "colors": (0..names.len()).map(charts::color).collect::<Vec<_>>(),
        "dashes": (0..names.len()).map(charts::dash).collect::<Vec<_>>(),
        "charts": charts.iter().map(|chart| json!({ "id": chart.id, "spec": chart.spec })).collect::<Vec<_>>(),
        "distributions": [],
        "traces": [],
        "caption": format!("fleetfoot {} \u{b7} {} \u{b7} {}", document.fleetfoot, live.kernel, document.scenario),
    });
    // `<` never stands in the data, so nothing in it can end the script element.
    let data = data.to_string().replace('<', "\\u003c");
    let nonce = blake3::hash(data.as_bytes()).to_hex();
    let mut environment = Environment::new();
    environment.add_template("live.html", TEMPLATE)?;
    let rows: Vec<Vec<String>> = ranked
        .iter()
        .map(|(variant, live)| compared_row(document, variant, live))
        .collect();
    let sender: Vec<_> = ranked
        .iter()
        .filter(|(_, live)| !live.sender.is_empty())
        .map(|(variant, live)| json!({ "name": variant.name, "commands": live.sender }))
        .collect();
    environment
        .get_template("live.html")?
        .render(minijinja::value::Serde(json!({
            "document": { "scenario": document.scenario, "question": document.question, "answer": document.answer,
                "fleetfoot": document.fleetfoot, "schema": document.schema, "commit": document.commit,
                "interrupted": document.interrupted, "notes": document.notes },
            "live": live,
            "seeds": document.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
            "headings": HEADINGS,
            "ranking": rows,
            "facts": facts(&ranked),
            "links": ranked.iter().map(|(variant, live)| json!({ "name": variant.name, "link": live.link })).collect::<Vec<_>>(),
            "sender": sender,
            "directions": directions(&ranked),
            "flows": flow_tables(&ranked),
            "lateness": lateness(&ranked),
            "charts": charts,
            "command": comparison.command,
            "scenario_toml": comparison.scenario_toml,
            "nonce": &nonce.as_str()[..24],
            "data": data,
            "script": html::SCRIPT,
            "style": html::STYLE,
        })))
}

/// The most important figures of a single run.
fn facts(ranked: &[(&Variant, &LiveVariant)]) -> Vec<Value> {
    let [(_, live)] = ranked else {
        return Vec::new();
    };
    let Some(run) = live.measured.first() else {
        return Vec::new();
    };
    let fact =
        |what: &str, value: String, beside: String| json!({ "what": what, "value": value, "beside": beside });
    let delay = |direction: &crate::live::Direction| {
        direction
            .queue_delay_s
            .as_ref()
            .map_or_else(none, |delay| seconds(delay.p95))
    };
    vec![
        fact(
            "Took",
            seconds(run.wall_s),
            format!("exit code {}", run.exit_code),
        ),
        fact(
            "Received",
            bits_per_second(run.received.throughput_bps),
            format!("time in the queue {} (95th percentile)", delay(&run.received)),
        ),
        fact(
            "Sent",
            bits_per_second(run.sent.throughput_bps),
            format!("time in the queue {} (95th percentile)", delay(&run.sent)),
        ),
        fact(
            "Packets dropped",
            run.dropped().to_string(),
            format!("{} marked", run.sent.marks + run.received.marks),
        ),
        fact("Flows", run.flows_seen.to_string(), String::new()),
        fact(
            "Own lateness",
            seconds(run.lateness.mean_s),
            format!(
                "99 % below {}, at most {}",
                seconds(run.lateness.p99_s),
                seconds(run.lateness.max_s)
            ),
        ),
    ]
}

/// Both directions of each variant, all runs together.
fn directions(ranked: &[(&Variant, &LiveVariant)]) -> Vec<Vec<String>> {
    ranked
        .iter()
        .flat_map(|(variant, live)| {
            variant.links.iter().map(move |link| {
                let towards = link.direction == "forward";
                let rates = live.measured.iter().map(|run| match towards {
                    true => run.received.throughput_bps,
                    false => run.sent.throughput_bps,
                });
                let n = live.measured.len().max(1) as f64;
                let delay = |read: fn(&crate::statistics::Summary) -> f64| {
                    link.queue_delay_s
                        .as_ref()
                        .map_or_else(none, |delay| seconds(read(delay)))
                };
                let drops: Vec<String> = link
                    .counters
                    .iter()
                    .map(|(name, count)| format!("{count} {}", name.trim_start_matches("drop_")))
                    .collect();
                vec![
                    variant.name.clone(),
                    if towards { "received" } else { "sent" }.to_owned(),
                    link.units.to_string(),
                    bits_per_second(rates.sum::<f64>() / n),
                    delay(|delay| delay.p50),
                    delay(|delay| delay.p95),
                    delay(|delay| delay.p99),
                    delay(|delay| delay.max),
                    if drops.is_empty() {
                        none()
                    } else {
                        drops.join(", ")
                    },
                    link.marks.to_string(),
                ]
            })
        })
        .collect()
}

/// The longest flows of the first run that counts of each variant.
fn flow_tables(ranked: &[(&Variant, &LiveVariant)]) -> Vec<Value> {
    ranked
        .iter()
        .filter_map(|(variant, live)| {
            let run = chosen(live)?;
            let mut longest: Vec<&Flow> = run.flows.iter().collect();
            longest.sort_by(|a, b| (b.end_s - b.start_s).total_cmp(&(a.end_s - a.start_s)));
            let rows: Vec<Vec<String>> = longest.iter().take(FLOWS_SHOWN).map(|flow| flow_row(flow)).collect();
            Some(json!({ "name": variant.name, "run": run.run, "seen": run.flows_seen, "shown": rows.len(), "rows": rows }))
        })
        .collect()
}

fn flow_row(flow: &Flow) -> Vec<String> {
    let amount = |sent: &crate::import::flows::Sent| match flow.protocol.as_str() {
        "tcp" => bytes(sent.payload_bytes),
        _ => bytes(sent.bytes),
    };
    let time = |value: Option<f64>| value.map_or_else(none, seconds);
    vec![
        format!("{} {} > {}", flow.protocol, flow.source, flow.destination),
        seconds(flow.start_s),
        match (flow.completion_s, flow.completed) {
            (Some(time), Some(true)) => seconds(time),
            (Some(_), _) => match flow.incomplete {
                Some(why) => format!("not complete: {}", why.words()),
                None => String::from("not complete"),
            },
            (None, _) => none(),
        },
        amount(&flow.sent),
        amount(&flow.received),
        time(flow.handshake_rtt_s),
        time(flow.rtt.map(|rtt| rtt.min_s)),
        time(flow.rtt.map(|rtt| rtt.mean_s)),
        time(flow.rtt.map(|rtt| rtt.max_s)),
        (flow.sent.retransmits + flow.received.retransmits).to_string(),
        (flow.sent.dropped + flow.received.dropped).to_string(),
    ]
}

/// How late this machine was in each run.
fn lateness(ranked: &[(&Variant, &LiveVariant)]) -> Vec<Vec<String>> {
    let runs = ranked
        .iter()
        .flat_map(|(variant, live)| live.measured.iter().map(move |run| (variant, run)));
    runs.map(|(variant, run)| {
        vec![
            variant.name.clone(),
            run.run.to_string(),
            seconds(run.wall_s),
            seconds(run.lateness.mean_s),
            seconds(run.lateness.p99_s),
            seconds(run.lateness.max_s),
            percent(run.lateness.share_above_1ms),
            run.missed_packets.to_string(),
            if run.kept { "yes" } else { "no" }.to_owned(),
            run.problem.clone().unwrap_or_else(none),
        ]
    })
    .collect()
}

/// The run that is drawn over time.
fn chosen(live: &LiveVariant) -> Option<&Run> {
    let good = live.measured.iter().find(|run| run.is_good());
    good.or(live.measured.first())
}

fn charts_of(ranked: &[(&Variant, &LiveVariant)], live: &Live) -> Vec<Chart> {
    let mut charts = Vec::new();
    charts.extend(compared_chart(ranked, live));
    let drawn: Vec<(&str, &Timeline)> = ranked
        .iter()
        .filter_map(|(variant, live)| Some((variant.name.as_str(), &chosen(live)?.timeline)))
        .collect();
    charts.extend(over_time(
        &drawn,
        "throughput",
        "Throughput over time",
        "Layer-3 bits delivered, of the first run.",
        "Mbit/s",
        |series| series.throughput_bps.iter().map(|bps| Some(bps / 1e6)).collect(),
    ));
    charts.extend(over_time(
        &drawn,
        "queue",
        "Time in the queue over time",
        "Mean time in the queue of what was delivered, of the first run.",
        "ms",
        |series| {
            series
                .queue_delay_s
                .iter()
                .map(|delay| Some(delay.as_ref()? * 1e3))
                .collect()
        },
    ));
    charts.extend(lateness_chart(&drawn));
    charts
}

/// Values of each run with the mean of each variant.
fn compared_chart(ranked: &[(&Variant, &LiveVariant)], live: &Live) -> Option<Chart> {
    if !live.compared {
        return None;
    }
    let order: Vec<&str> = ranked.iter().map(|(variant, _)| variant.name.as_str()).collect();
    let runs: Vec<Value> = ranked
        .iter()
        .flat_map(|(variant, live)| {
            let good = live.measured.iter().filter(|run| run.is_good());
            good.map(move |run| json!({ "variant": variant.name, "run": run.run, "value": run.value }))
        })
        .collect();
    let means: Vec<Value> = ranked
        .iter()
        .filter_map(|(variant, live)| {
            let value = live.value.as_ref()?;
            Some(json!({ "variant": variant.name, "mean": value.mean,
                "low": value.ci95.map(|ends| ends[0]), "high": value.ci95.map(|ends| ends[1]) }))
        })
        .collect();
    let title = match live.unit.as_str() {
        "" => live.metric_words.clone(),
        unit => format!("{} ({unit})", live.metric_words),
    };
    let y = json!({ "field": "variant", "type": "nominal", "sort": order, "title": null });
    let x = |field: &str| json!({ "field": field, "type": "quantitative", "title": title, "scale": { "zero": true } });
    Some(Chart {
        id: "compared",
        title: String::from("Every run, and the means"),
        text: String::from(
            "A circle for each run that counts; the mean of each variant with its 95 % interval.",
        ),
        groups: Vec::new(),
        spec: charts::specification(
            "Values of every run by variant",
            json!({ "step": 30 }),
            json!({
                "data": { "values": [] },
                "layer": [
                    { "data": { "values": runs }, "mark": { "type": "point", "size": 40, "color": "#56B4E9", "opacity": 0.8 }, "encoding": { "x": x("value"), "y": y,
                        "tooltip": [ { "field": "variant" }, { "field": "run" }, { "field": "value" } ] } },
                    { "data": { "values": means }, "mark": { "type": "rule", "strokeWidth": 3, "color": "#D55E00" }, "encoding": { "x": x("low"), "x2": { "field": "high" }, "y": y } },
                    { "data": { "values": means }, "mark": { "type": "point", "filled": true, "shape": "diamond", "size": 90, "opacity": 1, "color": "#D55E00" }, "encoding": { "x": x("mean"), "y": y,
                        "tooltip": [ { "field": "variant" }, { "field": "mean" }, { "field": "low", "title": "95 % from" }, { "field": "high", "title": "to" } ] } },
                ],
            }),
        ),
        header: ["Variant", "Mean", "95 % interval", "Runs"]
            .map(String::from)
            .to_vec(),
        rows: ranked
            .iter()
            .filter_map(|(variant, measured)| {
                let value = measured.value.as_ref()?;
                Some(vec![
                    variant.name.clone(),
                    valued(value.mean, &live.unit),
                    value.ci95.map_or_else(none, |[low, high]| {
                        format!("{} to {}", valued(low, &live.unit), valued(high, &live.unit))
                    }),
                    variant.runs.to_string(),
                ])
            })
            .collect(),
    })
}

/// Lines over time, one for each direction; a group for each variant.
fn over_time(
    drawn: &[(&str, &Timeline)],
    id: &'static str,
    title: &str,
    text: &str,
    unit: &str,
    read: impl Fn(&Series) -> Vec<Option<f64>>,
) -> Option<Chart> {
    let mut values = Vec::new();
    let mut rows = Vec::new();
    for (name, timeline) in drawn {
        for (direction, series) in [("received", &timeline.received), ("sent", &timeline.sent)] {
            let points = read(series);
            let known: Vec<f64> = points.iter().copied().flatten().collect();
            values.extend(timeline.times().zip(&points).map(|(t_s, value)| {
                json!({ "group": name, "direction": direction, "t": (t_s * 1e3).round() / 1e3,
                    "value": value.map(|value| (value * 1e3).round() / 1e3) })
            }));
            let n = known.len().max(1) as f64;
            rows.push(vec![
                (*name).to_owned(),
                direction.to_owned(),
                format!("{:.2} {unit}", known.iter().sum::<f64>() / n),
                format!("{:.2} {unit}", known.iter().copied().fold(0.0, f64::max)),
            ]);
        }
    }
    let first = drawn
        .iter()
        .find(|(_, timeline)| !timeline.lateness_s.is_empty())?
        .0;
    Some(Chart {
        id,
        title: title.to_owned(),
        text: text.to_owned(),
        groups: drawn.iter().map(|(name, _)| (*name).to_owned()).collect(),
        spec: charts::specification(
            title,
            json!(220),
            json!({
                "params": [{ "name": "group", "value": first }],
                "data": { "values": values },
                "transform": [{ "filter": "datum.group == group" }],
                "mark": { "type": "line", "strokeWidth": 1.6, "interpolate": "step" },
                "encoding": {
                    "x": { "field": "t", "type": "quantitative", "title": "time from the first packet (s)" },
                    "y": { "field": "value", "type": "quantitative", "title": unit },
                    "color": { "field": "direction", "type": "nominal", "title": null, "legend": { "orient": "top" },
                        "scale": { "domain": ["received", "sent"], "range": ["#0072B2", "#D55E00"] } },
                    "tooltip": [ { "field": "direction" }, { "field": "t", "title": "time (s)" }, { "field": "value", "title": unit } ],
                },
            }),
        ),
        header: ["Variant", "Direction", "Mean", "Largest"]
            .map(String::from)
            .to_vec(),
        rows,
    })
}

fn lateness_chart(drawn: &[(&str, &Timeline)]) -> Option<Chart> {
    let first = drawn
        .iter()
        .find(|(_, timeline)| !timeline.lateness_s.is_empty())?
        .0;
    let values: Vec<Value> = drawn
        .iter()
        .flat_map(|(name, timeline)| {
            timeline.times().zip(&timeline.lateness_s).map(move |(t_s, late)| {
                json!({ "group": name, "t": (t_s * 1e3).round() / 1e3, "value": (late * 1e6).round() / 1e3 })
            })
        })
        .collect();
    Some(Chart {
        id: "lateness",
        title: String::from("How late this machine was"),
        text: String::from(
            "The latest delivery of each moment, compared with the described link. Above one millisecond (line) it no longer is that link.",
        ),
        groups: drawn.iter().map(|(name, _)| (*name).to_owned()).collect(),
        spec: charts::specification(
            "Lateness over time",
            json!(160),
            json!({
                "params": [{ "name": "group", "value": first }],
                "data": { "values": values },
                "transform": [{ "filter": "datum.group == group" }],
                "layer": [
                    { "mark": { "type": "line", "strokeWidth": 1.4, "interpolate": "step", "color": "#CC79A7" }, "encoding": {
                        "x": { "field": "t", "type": "quantitative", "title": "time from the first packet (s)" },
                        "y": { "field": "value", "type": "quantitative", "title": "ms" },
                        "tooltip": [ { "field": "t", "title": "time (s)" }, { "field": "value", "title": "late (ms)" } ] } },
                    { "mark": { "type": "rule", "strokeDash": [4, 4], "color": "#808790" }, "encoding": { "y": { "datum": 1 } } },
                ],
            }),
        ),
        header: ["Variant", "Largest"].map(String::from).to_vec(),
        rows: drawn
            .iter()
            .map(|(name, timeline)| {
                let most = timeline.lateness_s.iter().copied().fold(0.0, f64::max);
                vec![(*name).to_owned(), seconds(most)]
            })
            .collect(),
    })
}

fn none() -> String {
    "\u{2013}".to_owned()
}

/// Flows in the table of the report.
const FLOWS_SHOWN: usize = 50;
