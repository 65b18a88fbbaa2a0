//! The report's charts: Vega-Lite specifications as JSON, each with the table that says the same.
//!
//! A specification carries its own data, so it also draws outside the report (notebooks, documents). Two things come from
//! the page: the parameter `group`, bound to a selection above the chart, and the data set of the distributions,
//! which is stored once in columns because rows would be several times larger.

use super::text::{percent, rounded, seconds, short, signed_percent, size_class};
use crate::compare::words;
use crate::result::{Comparison, Group, Link, Ratio, Summary, Variant};
use serde::Serialize;
use serde_json::{Value, json};

/// Okabe and Ito's colours without black, grey and yellow, which do not show on one of the two backgrounds.
const PALETTE: [&str; 6] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

/// The baseline is grey in both colour schemes.
const BASELINE: &str = "#808790";

/// When the colours are used up the line is dashed.
const DASHES: [&[u8]; 4] = [&[], &[6, 3], &[2, 2], &[8, 3, 2, 3]];

/// A chart and the same as a table.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    /// Names the element in the page.
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// How to read it.
    pub text: String,
    /// Values of the parameter `group`; empty without one.
    pub groups: Vec<String>,
    /// The Vega-Lite specification.
    pub spec: Value,
    /// Header of the table.
    pub header: Vec<String>,
    /// Rows of the table; the first cell names the row.
    pub rows: Vec<Vec<String>>,
}

/// Colour of the variant at `index`; the first is the baseline.
pub fn color(index: usize) -> &'static str {
    match index {
        0 => BASELINE,
        _ => PALETTE[(index - 1) % PALETTE.len()],
    }
}

/// Dashes of the line of the variant at `index`.
pub fn dash(index: usize) -> &'static [u8] {
    match index {
        0 => DASHES[0],
        _ => DASHES[(index - 1) / PALETTE.len() % DASHES.len()],
    }
}

/// The variants in the order of the table, the baseline first; how many of them are shown at first.
pub fn ordered(comparison: &Comparison) -> (Vec<&Variant>, usize) {
    let rows = words::rows(&comparison.document);
    let baseline = comparison
        .document
        .variants
        .iter()
        .filter(|variant| variant.versus.is_none());
    let part = |shown: bool| {
        let chosen = rows.iter().filter(move |row| row.shown == shown);
        chosen.map(|row| row.variant)
    };
    let mut variants: Vec<&Variant> = baseline.chain(part(true)).collect();
    let shown = variants.len();
    variants.extend(part(false));
    (variants, shown)
}

/// All charts for which there is data, in the order of the page, of these variants, the baseline first.
pub fn all(comparison: &Comparison, variants: &[&Variant]) -> Vec<Chart> {
    [
        change(variants),
        by_size(variants),
        distribution(variants),
        queue_delay(comparison, variants),
        utilisation(comparison, variants),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub(super) fn specification(description: &str, height: impl Into<Value>, rest: Value) -> Value {
    let mut spec = json!({
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": description,
        "width": "container",
        "height": height.into(),
    });
    if let (Value::Object(spec), Value::Object(rest)) = (&mut spec, rest) {
        spec.extend(rest);
    }
    spec
}

fn names(variants: &[&Variant]) -> Vec<String> {
    variants.iter().map(|variant| variant.name.clone()).collect()
}

fn variant_axis(variants: &[&Variant]) -> Value {
    json!({ "field": "variant", "type": "nominal", "sort": names(variants), "title": null, "scale": { "domain": names(variants) } })
}

const STEP: u32 = 24;

/// The verdict on a difference that is not significant.
const UNDECIDED: &str = "not significant";

fn interval(ratio: &Ratio) -> Option<(f64, f64)> {
    ratio
        .ci95
        .map(|[low, high]| ((low - 1.0) * 100.0, (high - 1.0) * 100.0))
}

/// Change of the mean FCT per latency-sensitive group, with its interval.
fn change(variants: &[&Variant]) -> Option<Chart> {
    let (baseline, others) = variants.split_first()?;
    let mut values = Vec::new();
    let mut rows = Vec::new();
    let mut groups: Vec<String> = Vec::new();
    for variant in others {
        let versus = variant.versus.as_ref()?;
        let waits = |name: &str| {
            let group = variant.groups.iter().find(|group| group.name == name);
            group.is_some_and(|group| group.latency_sensitive)
        };
        let waiting = versus.groups.iter().filter(|group| waits(&group.name)).count();
        for group in versus.groups.iter().filter(|group| waits(&group.name)) {
            let Some(ratio) = &group.fct_mean_ratio else {
                continue;
            };
            // Of a single group the whole table's verdict is also this one's.
            let significant = ratio.significant && (versus.significant || waiting > 1);
            let ends = interval(ratio);
            values.push(json!({
                "variant": variant.name, "group": group.name,
                "change": rounded((ratio.value - 1.0) * 100.0, 4),
                "low": ends.map(|ends| rounded(ends.0, 4)), "high": ends.map(|ends| rounded(ends.1, 4)),
                "verdict": match (significant, ratio.value < 1.0) {
                    (false, _) => UNDECIDED,
                    (true, true) => "sooner",
                    (true, false) => "later",
                },
            }));
            if !groups.contains(&group.name) {
                groups.push(group.name.clone());
            }
            rows.push(vec![
                variant.name.clone(),
                group.name.clone(),
                signed_percent(ratio.value - 1.0),
                ends.map_or_else(dash_text, |ends| {
                    format!(
                        "{} to {}",
                        signed_percent(ends.0 / 100.0),
                        signed_percent(ends.1 / 100.0)
                    )
                }),
                if significant { "yes" } else { "no" }.to_owned(),
                group
                    .fct_p99_ratio
                    .map_or_else(dash_text, |p99| signed_percent(p99.value - 1.0)),
            ]);
        }
    }
    let first = groups.first()?.clone();
    let description = format!("Change of the mean completion time against {}", baseline.name);
    let color = json!({ "field": "verdict", "type": "nominal", "title": null,
        "scale": { "domain": ["sooner", UNDECIDED, "later"], "range": ["#009E73", BASELINE, "#D55E00"] },
        "legend": { "orient": "top" } });
    let y = variant_axis(others);
    let title = "change of the mean (%)";
    let ends = values
        .iter()
        .filter(|value| value["high"].as_f64().or(value["change"].as_f64()).unwrap_or(0.0) > 100.0)
        .count();
    // One variant that ruins everything would hide the differences between the others.
    let edge = if ends > 0 {
        json!({ "domainMax": 100, "clamp": true })
    } else {
        json!({})
    };
    Some(Chart {
        id: "change",
        title: "How much sooner, and how sure".to_owned(),
        text: format!(
            "Mean completion time against \u{201c}{}\u{201d}, with the 95 % interval of the difference. Left is sooner. Green and orange are significant in the whole table; grey is not, whatever its interval. What is beyond the axis is drawn at its edge.",
            baseline.name
        ),
        spec: specification(
            &description,
            json!({ "step": STEP }),
            json!({
                "params": [{ "name": "group", "value": first }],
                "data": { "values": values },
                "transform": [{ "filter": "datum.group == group" }],
                "layer": [
                    { "mark": { "type": "rule", "strokeDash": [3, 3], "color": BASELINE }, "encoding": { "x": { "datum": 0 } } },
                    { "mark": { "type": "rule", "strokeWidth": 2 }, "encoding": { "x": { "field": "low", "type": "quantitative", "title": title, "scale": edge }, "x2": { "field": "high" }, "y": y.clone(), "color": color.clone() } },
                    { "mark": { "type": "point", "filled": true, "size": 70, "opacity": 1 }, "encoding": {
                        "x": { "field": "change", "type": "quantitative", "title": title, "scale": edge }, "y": y, "color": color,
                        "tooltip": [ { "field": "variant" }, { "field": "change", "title": "change (%)" }, { "field": "low", "title": "95 % from" }, { "field": "high", "title": "to" }, { "field": "verdict" } ] } },
                ],
            }),
        ),
        groups,
        header: header(&[
            "Variant",
            "Group",
            "Mean",
            "95 % interval",
            "Significant in the whole table",
            "99th percentile",
        ]),
        rows,
    })
}

/// Change of the mean FCT by transfer size.
fn by_size(variants: &[&Variant]) -> Option<Chart> {
    let (baseline, others) = variants.split_first()?;
    let mut values = Vec::new();
    let mut rows = Vec::new();
    let mut groups = Vec::new();
    let mut classes: Vec<(u64, String)> = Vec::new();
    for group in baseline.groups.iter().filter(|group| group.latency_sensitive) {
        for class in &group.by_size {
            let Some(before) = &class.fct_s else { continue };
            let label = size_class(class.from_bytes, class.to_bytes);
            if !classes.iter().any(|(_, known)| *known == label) {
                classes.push((class.from_bytes, label.clone()));
            }
            if !groups.contains(&group.name) {
                groups.push(group.name.clone());
            }
            for variant in others {
                let Some(after) = summary_of_class(variant, group, class.from_bytes) else {
                    continue;
                };
                let change = after.mean / before.mean - 1.0;
                values.push(json!({
                    "variant": variant.name, "group": group.name, "size": label, "change": rounded(change * 100.0, 3),
                    "text": signed_percent(change).replace(" %", ""), "n": after.n,
                    "before": seconds(before.mean), "after": seconds(after.mean),
                }));
                rows.push(vec![
                    variant.name.clone(),
                    group.name.clone(),
                    label.clone(),
                    after.n.to_string(),
                    seconds(before.mean),
                    seconds(after.mean),
                    signed_percent(change),
                ]);
            }
        }
    }
    classes.sort();
    let order = classes.into_iter().map(|class| class.1).collect::<Vec<_>>();
    let first = groups.first()?.clone();
    let y = variant_axis(others);
    let x = json!({ "field": "size", "type": "ordinal", "sort": order, "title": null, "axis": { "orient": "top", "labelAngle": 0, "domain": false, "ticks": false } });
    Some(Chart {
        id: "size",
        title: "Benefit by transfer size".to_owned(),
        text: format!(
            "Change of the mean completion time in per cent against \u{201c}{}\u{201d}, by payload size. Blue is sooner, orange is later.",
            baseline.name
        ),
        spec: specification(
            "Change of the mean completion time by transfer size",
            json!({ "step": STEP }),
            json!({
                "params": [{ "name": "group", "value": first }],
                "data": { "values": values },
                "transform": [{ "filter": "datum.group == group" }],
                "encoding": { "x": x, "y": y },
                "layer": [
                    { "mark": { "type": "rect", "cornerRadius": 2 }, "encoding": {
                        "color": { "field": "change", "type": "quantitative", "legend": null, "scale": { "domain": [-50, 0, 50], "range": ["#56B4E9", "#f3f4f6", "#E69F00"], "clamp": true, "interpolate": "lab" } },
                        "tooltip": [ { "field": "variant" }, { "field": "size" }, { "field": "change", "title": "change (%)" }, { "field": "before", "title": "before" }, { "field": "after", "title": "after" }, { "field": "n", "title": "transfers" } ] } },
                    { "mark": { "type": "text", "fontSize": 11, "color": "#1b1f24" }, "encoding": { "text": { "field": "text", "type": "nominal" } } },
                ],
            }),
        ),
        groups,
        header: header(&[
            "Variant",
            "Group",
            "Payload",
            "Transfers",
            "Before",
            "After",
            "Change",
        ]),
        rows,
    })
}

fn summary_of_class<'a>(variant: &'a Variant, group: &Group, from_bytes: u64) -> Option<&'a Summary> {
    variant
        .groups
        .iter()
        .find(|candidate| candidate.name == group.name)?
        .by_size
        .iter()
        .find(|class| class.from_bytes == from_bytes)?
        .fct_s
        .as_ref()
}

/// Distribution of the FCT; the page brings the data set `distributions`.
fn distribution(variants: &[&Variant]) -> Option<Chart> {
    let baseline = variants.first()?;
    let groups = baseline
        .groups
        .iter()
        .filter(|group| {
            variants
                .iter()
                .any(|v| v.groups.iter().any(|g| g.name == group.name && g.fct_s.is_some()))
        })
        .map(|group| group.name.clone())
        .collect::<Vec<_>>();
    let first = groups.first()?.clone();
    let mut rows = Vec::new();
    for variant in variants {
        for group in &variant.groups {
            let Some(fct) = &group.fct_s else { continue };
            rows.push(vec![
                variant.name.clone(),
                group.name.clone(),
                fct.n.to_string(),
                group.censored.to_string(),
                seconds(fct.p50),
                seconds(fct.p90),
                seconds(fct.p95),
                seconds(fct.p99),
                seconds(fct.max),
            ]);
        }
    }
    let visible = names(variants).into_iter().take(5).collect::<Vec<_>>();
    let domain = names(variants);
    let colors = (0..variants.len()).map(color).collect::<Vec<_>>();
    let dashes = (0..variants.len()).map(dash).collect::<Vec<_>>();
    Some(Chart {
        id: "distribution",
        title: "Distribution of completion times".to_owned(),
        text: "Share of transfers that were complete after a time (logarithmic axis); further left is better. A line that ends below 100 % has transfers that did not complete.".to_owned(),
        spec: specification("Cumulative distribution of the completion time", json!(340), json!({
            "params": [ { "name": "group", "value": first }, { "name": "visible", "value": visible } ],
            "data": { "name": "distributions" },
            "transform": [{ "filter": "datum.group == group && indexof(visible, datum.variant) >= 0" }],
            "mark": { "type": "line", "strokeWidth": 2, "clip": true },
            "encoding": {
                "x": { "field": "fct_s", "type": "quantitative", "title": "completion time", "scale": { "type": "log", "nice": false },
                    "axis": { "labelExpr": "datum.value < 0.001 ? format(datum.value * 1e6, '~r') + ' \u{b5}s' : datum.value < 1 ? format(datum.value * 1000, '~r') + ' ms' : format(datum.value, '~r') + ' s'", "labelOverlap": true, "tickCount": 8 } },
                "y": { "field": "share", "type": "quantitative", "title": "share complete", "axis": { "format": "%" }, "scale": { "domain": [0, 1] } },
                "color": { "field": "variant", "type": "nominal", "legend": null, "scale": { "domain": domain, "range": colors } },
                "strokeDash": { "field": "variant", "type": "nominal", "legend": null, "scale": { "domain": domain, "range": dashes } },
                "tooltip": [ { "field": "variant" }, { "field": "fct_s", "title": "completion time (s)" }, { "field": "share", "format": ".2%" } ],
            },
        })),
        groups,
        header: header(&["Variant", "Group", "n", "Not completed", "Median", "90 %", "95 %", "99 %", "Longest"]),
        rows,
    })
}

/// Every directed bottleneck link of a variant as a user calls it, the one with the longest wait in the baseline first.
pub(super) fn bottlenecks<'a>(comparison: &Comparison, variant: &'a Variant) -> Vec<(String, &'a Link)> {
    let standing = |link: &Link| {
        let mut queues = comparison.document.queues.iter();
        queues.find(|queue| queue.link == link.name && queue.direction == link.direction)
    };
    let mut links: Vec<(f64, String, &Link)> = variant
        .links
        .iter()
        .filter(|link| comparison.bottleneck.contains(&link.name))
        .map(|link| match standing(link) {
            Some(queue) => (queue.wait_mean_s, queue.place.clone(), link),
            None => (0.0, format!("{} {}", link.name, link.direction), link),
        })
        .collect();
    links.sort_by(|one, other| other.0.total_cmp(&one.0));
    links.into_iter().map(|(_, name, link)| (name, link)).collect()
}

fn queue_delay(comparison: &Comparison, variants: &[&Variant]) -> Option<Chart> {
    let mut values = Vec::new();
    let mut rows = Vec::new();
    let mut groups: Vec<String> = Vec::new();
    for variant in variants {
        for (name, link) in bottlenecks(comparison, variant) {
            let Some(delay) = &link.queue_delay_s else {
                continue;
            };
            let ms = |value: f64| rounded(value * 1e3, 4);
            values.push(json!({ "variant": variant.name, "group": name, "p50": ms(delay.p50), "p95": ms(delay.p95), "p99": ms(delay.p99) }));
            rows.push(vec![
                variant.name.clone(),
                name.clone(),
                seconds(delay.mean),
                seconds(delay.p50),
                seconds(delay.p95),
                seconds(delay.p99),
                seconds(delay.max),
            ]);
            if !groups.contains(&name) {
                groups.push(name);
            }
        }
    }
    let first = groups.first()?.clone();
    let y = variant_axis(variants);
    let tooltip = json!([ { "field": "variant" }, { "field": "p50", "title": "median (ms)" }, { "field": "p95", "title": "95th percentile (ms)" }, { "field": "p99", "title": "99th percentile (ms)" } ]);
    let top = |value: &Value| value["p99"].as_f64().unwrap_or(0.0);
    let limit = values.first().map_or(0.0, |baseline| top(baseline) * 4.0);
    let scale = if limit > 0.0 && values.iter().any(|value| top(value) > limit) {
        json!({ "zero": true, "domainMax": limit, "clamp": true })
    } else {
        json!({ "zero": true })
    };
    let x = |field: &str| json!({ "field": field, "type": "quantitative", "title": "waiting time (ms)", "scale": scale.clone() });
    Some(Chart {
        id: "delay",
        title: "Waiting at the bottleneck".to_owned(),
        text: "Time that packets wait in the queue of the bottleneck: bar to the median, line to the 95th, tick at the 99th percentile. What is beyond the axis is drawn at its edge. This delay is added to everybody\u{2019}s round trip.".to_owned(),
        groups,
        spec: specification("Queue delay at the bottleneck", json!({ "step": STEP }), json!({
            "params": [{ "name": "group", "value": first }],
            "data": { "values": values },
            "transform": [{ "filter": "datum.group == group" }],
            "encoding": { "y": y, "tooltip": tooltip },
            "layer": [
                { "mark": { "type": "bar", "height": 12, "color": "#0072B2", "cornerRadiusEnd": 2 }, "encoding": { "x": x("p50") } },
                { "mark": { "type": "rule", "strokeWidth": 2, "color": "#56B4E9" }, "encoding": { "x": x("p50"), "x2": { "field": "p95" } } },
                { "mark": { "type": "tick", "thickness": 2, "size": 14, "color": "#D55E00" }, "encoding": { "x": x("p99") } },
            ],
        })),
        header: header(&["Variant", "Link", "Mean", "Median", "95 %", "99 %", "Longest"]),
        rows,
    })
}

fn utilisation(comparison: &Comparison, variants: &[&Variant]) -> Option<Chart> {
    let mut values = Vec::new();
    let mut rows = Vec::new();
    let mut groups: Vec<String> = Vec::new();
    for variant in variants {
        for (name, link) in bottlenecks(comparison, variant) {
            let dropped = link.drops.data + link.drops.ack + link.drops.other;
            values.push(json!({ "variant": variant.name, "group": name, "utilisation": rounded(link.utilisation * 100.0, 4), "drops": dropped, "marks": link.marks }));
            rows.push(vec![
                variant.name.clone(),
                name.clone(),
                percent(link.utilisation),
                link.drops.data.to_string(),
                link.drops.ack.to_string(),
                link.drops.other.to_string(),
                link.marks.to_string(),
                link.queue_packets
                    .as_ref()
                    .map_or_else(dash_text, |packets| short(packets.mean)),
            ]);
            if !groups.contains(&name) {
                groups.push(name);
            }
        }
    }
    let first = groups.first()?.clone();
    Some(Chart {
        id: "utilisation",
        title: "Use of the bottleneck".to_owned(),
        text: "Share of the time the bottleneck was sending. A cure that empties the line shows here."
            .to_owned(),
        groups,
        spec: specification(
            "Utilisation of the bottleneck",
            json!({ "step": STEP }),
            json!({
                "params": [{ "name": "group", "value": first }],
                "data": { "values": values },
                "transform": [{ "filter": "datum.group == group" }],
                "mark": { "type": "bar", "height": 12, "color": "#009E73", "cornerRadiusEnd": 2 },
                "encoding": {
                    "y": variant_axis(variants),
                    "x": { "field": "utilisation", "type": "quantitative", "title": "utilisation (%)", "scale": { "domain": [0, 100] } },
                    "tooltip": [ { "field": "variant" }, { "field": "utilisation", "title": "utilisation (%)" }, { "field": "drops", "title": "packets dropped" }, { "field": "marks", "title": "packets marked" } ],
                },
            }),
        ),
        header: header(&[
            "Variant",
            "Link",
            "Utilisation",
            "Data drops",
            "ACK drops",
            "Other drops",
            "Marks",
            "Mean queue (packets)",
        ]),
        rows,
    })
}

fn header(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn dash_text() -> String {
    "\u{2013}".to_owned()
}
