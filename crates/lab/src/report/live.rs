//! The report of `fleetfoot shell`: what a real program saw behind a link, over time, and under which queue it did best.

use super::charts::{Chart, Data, MeanValue, RunValue, TimeLine};
use super::figures::{self, Figure};
use super::table::Row;
use super::text::{bits_per_second, bytes, percent, seconds, signed_percent};
use super::{csv, html};
use crate::import::flows::Flow;
use crate::live::study::valued;
use crate::live::timeline::Series;
use crate::live::{Run, Timeline};
use crate::result::{Comparison, Document, Live, LiveVariant, Variant};
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
    let data = html::script_data(&json!({
        "variants": names,
        "traces": [],
        "caption": format!("fleetfoot {} \u{b7} {} \u{b7} {}", document.fleetfoot, live.kernel, document.scenario),
    }));
    let nonce = blake3::hash(data.as_bytes()).to_hex();
    let environment = html::environment("live.html", TEMPLATE)?;
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
            "charts": html::drawn(&charts),
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
    let runs = ranked.iter().flat_map(|(variant, live)| {
        let good = live.measured.iter().filter(|run| run.is_good());
        good.filter_map(move |run| {
            Some(RunValue {
                variant: variant.name.clone(),
                run: run.run,
                value: run.value?,
            })
        })
    });
    let means = ranked.iter().filter_map(|(variant, live)| {
        let value = live.value.as_ref()?;
        Some(MeanValue {
            variant: variant.name.clone(),
            mean: value.mean,
            ends: value.ci95,
        })
    });
    let quantity = match live.unit.as_str() {
        "" => live.metric_words.clone(),
        unit => format!("{} ({unit})", live.metric_words),
    };
    Some(Chart {
        id: "compared",
        title: String::from("Every run, and the means"),
        text: String::from(
            "A circle for each run that counts; the mean of each variant with its 95 % interval.",
        ),
        groups: Vec::new(),
        variants: ranked.iter().map(|(variant, _)| variant.name.clone()).collect(),
        data: Data::Runs {
            quantity,
            runs: runs.collect(),
            means: means.collect(),
        },
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

/// The variants of whose runs something was recorded, for a chart that shows one of them at a time.
fn recorded(drawn: &[(&str, &Timeline)]) -> Option<Vec<String>> {
    let any = drawn.iter().any(|(_, timeline)| !timeline.lateness_s.is_empty());
    any.then(|| drawn.iter().map(|(name, _)| (*name).to_owned()).collect())
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
    let groups = recorded(drawn)?;
    let mut lines = Vec::new();
    let mut rows = Vec::new();
    for (name, timeline) in drawn {
        for (direction, color, series) in [
            ("received", "#0072B2", &timeline.received),
            ("sent", "#D55E00", &timeline.sent),
        ] {
            let points = read(series);
            let known: Vec<f64> = points.iter().copied().flatten().collect();
            lines.push(TimeLine {
                group: (*name).to_owned(),
                name: direction.to_owned(),
                color,
                points: timeline.times().zip(points).collect(),
            });
            let n = known.len().max(1) as f64;
            rows.push(vec![
                (*name).to_owned(),
                direction.to_owned(),
                format!("{:.2} {unit}", known.iter().sum::<f64>() / n),
                format!("{:.2} {unit}", known.iter().copied().fold(0.0, f64::max)),
            ]);
        }
    }
    Some(Chart {
        id,
        title: title.to_owned(),
        text: text.to_owned(),
        variants: groups.clone(),
        groups,
        data: Data::OverTime {
            quantity: unit.to_owned(),
            reference: None,
            lines,
        },
        header: ["Variant", "Direction", "Mean", "Largest"]
            .map(String::from)
            .to_vec(),
        rows,
    })
}

fn lateness_chart(drawn: &[(&str, &Timeline)]) -> Option<Chart> {
    let groups = recorded(drawn)?;
    let lines = drawn.iter().map(|(name, timeline)| TimeLine {
        group: (*name).to_owned(),
        name: String::from("latest delivery"),
        color: "#CC79A7",
        points: timeline
            .times()
            .zip(timeline.lateness_s.iter().map(|late| Some(late * 1e3)))
            .collect(),
    });
    Some(Chart {
        id: "lateness",
        title: String::from("How late this machine was"),
        text: String::from(
            "The latest delivery of each moment, compared with the described link. Above one millisecond (line) it no longer is that link.",
        ),
        variants: groups.clone(),
        groups,
        data: Data::OverTime {
            quantity: String::from("ms"),
            reference: Some(1.0),
            lines: lines.collect(),
        },
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
