//! The report's charts as Vega-Lite specifications, for notebooks: each with its data, its size, and a line that says where it is
//! from.

use super::charts::{self, BASELINE, Chart, Data, Distribution, LINES_SHOWN, Use, Verdict, Wait};
use crate::compare::words;
use crate::result::Comparison;
use serde::Serialize;
use serde_json::{Value, json};

/// Width of a chart whose columns do not give one (pixels).
const WIDTH: u32 = 520;

/// Height of a row of bars (pixels).
const STEP: u32 = 24;

/// A chart for another program's page.
#[derive(Clone, Debug, Serialize)]
pub struct Specification {
    /// A short name: `change`, `size`...
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// How to read it.
    pub text: String,
    /// Values of the parameter `group`; empty without one.
    pub groups: Vec<String>,
    /// The Vega-Lite specification.
    pub spec: Value,
    /// Header of the table that says the same.
    pub header: Vec<String>,
    /// Its rows; the first cell names the row.
    pub rows: Vec<Vec<String>>,
}

/// The charts for which there is data, in the order of the page. Of a comparison without its runs the distributions are missing.
pub fn charts(comparison: &Comparison) -> Vec<Specification> {
    let (variants, shown) = charts::ordered(comparison);
    let document = &comparison.document;
    let caption = format!(
        "fleetfoot {} \u{b7} {} \u{b7} {}",
        document.fleetfoot,
        words::seeds(document.seeds.len() as u64),
        document.scenario
    );
    let drawn = charts::all(comparison, &variants[..shown]).into_iter();
    drawn
        .filter_map(|chart| {
            let mut spec = specification(&chart)?;
            spec["title"] = json!({ "text": caption, "orient": "bottom", "anchor": "start", "fontSize": 10, "fontWeight": "normal" });
            Some(Specification {
                id: chart.id,
                title: chart.title,
                text: chart.text,
                groups: chart.groups,
                spec,
                header: chart.header,
                rows: chart.rows,
            })
        })
        .collect()
}

/// The specification; `None` where there is nothing to draw, and for the measurements of real programs.
fn specification(chart: &Chart) -> Option<Value> {
    let (description, height, mut rest) = match &chart.data {
        Data::Change { baseline, rows } => (
            format!("Change of the mean completion time against {baseline}"),
            json!({ "step": STEP }),
            change(chart, rows),
        ),
        Data::Sizes { classes, cells } => (
            String::from("Change of the mean completion time by transfer size"),
            json!({ "step": STEP }),
            sizes(chart, classes, cells),
        ),
        Data::Distribution(lines) if lines.is_empty() => return None,
        Data::Distribution(lines) => (
            String::from("Cumulative distribution of the completion time"),
            json!(340),
            distribution(chart, lines),
        ),
        Data::Waits(waits) => (
            String::from("Queue delay at the bottleneck"),
            json!({ "step": STEP }),
            delay(chart, waits),
        ),
        Data::Use(uses) => (
            String::from("Utilisation of the bottleneck"),
            json!({ "step": STEP }),
            utilisation(chart, uses),
        ),
        Data::Runs { .. } | Data::OverTime { .. } => return None,
    };
    let mut group = json!({ "name": "group", "value": chart.groups.first()? });
    if chart.groups.len() > 1 {
        group["bind"] = json!({ "input": "select", "options": chart.groups, "name": "Group: " });
    }
    let mut parameters = vec![group];
    if let Some(Value::Array(own)) = rest.get_mut("params").map(Value::take) {
        parameters.extend(own);
    }
    let mut spec = json!({
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": description,
        "width": WIDTH,
        "height": height,
    });
    if let (Value::Object(spec), Value::Object(rest)) = (&mut spec, rest) {
        spec.extend(rest);
        spec.insert(String::from("params"), Value::Array(parameters));
    }
    Some(spec)
}

fn variant_axis(chart: &Chart) -> Value {
    json!({ "field": "variant", "type": "nominal", "sort": chart.variants, "title": null, "axis": { "labelLimit": 320 }, "scale": { "domain": chart.variants } })
}

const OF_GROUP: &str = "datum.group == group";

fn change(chart: &Chart, rows: &[charts::Change]) -> Value {
    let color = json!({ "field": "verdict", "type": "nominal", "title": null,
        "scale": { "domain": Verdict::ALL.map(Verdict::word), "range": Verdict::ALL.map(Verdict::color) },
        "legend": { "orient": "top" } });
    let y = variant_axis(chart);
    let title = "change of the mean (%)";
    // One variant that ruins everything would hide the differences between the others.
    let edge = match rows.iter().any(|row| row.high.unwrap_or(row.change) > 100.0) {
        true => json!({ "domainMax": 100, "clamp": true }),
        false => json!({}),
    };
    json!({
        "data": { "values": rows },
        "transform": [{ "filter": OF_GROUP }],
        "layer": [
            { "mark": { "type": "rule", "strokeDash": [3, 3], "color": BASELINE }, "encoding": { "x": { "datum": 0 } } },
            { "mark": { "type": "rule", "strokeWidth": 2 }, "encoding": { "x": { "field": "low", "type": "quantitative", "title": title, "scale": edge }, "x2": { "field": "high" }, "y": y, "color": color } },
            { "mark": { "type": "point", "filled": true, "size": 70, "opacity": 1 }, "encoding": {
                "x": { "field": "change", "type": "quantitative", "title": title, "scale": edge }, "y": y, "color": color,
                "tooltip": [ { "field": "variant" }, { "field": "change", "title": "change (%)" }, { "field": "low", "title": "95 % from" }, { "field": "high", "title": "to" }, { "field": "verdict" } ] } },
        ],
    })
}

fn sizes(chart: &Chart, classes: &[String], cells: &[charts::SizeChange]) -> Value {
    let x = json!({ "field": "size", "type": "ordinal", "sort": classes, "title": null, "axis": { "orient": "top", "labelAngle": 0, "domain": false, "ticks": false } });
    json!({
        "data": { "values": cells },
        "transform": [{ "filter": OF_GROUP }],
        "encoding": { "x": x, "y": variant_axis(chart) },
        "layer": [
            { "mark": { "type": "rect", "cornerRadius": 2 }, "encoding": {
                "color": { "field": "change", "type": "quantitative", "legend": null, "scale": { "domain": [-50, 0, 50], "range": ["#56B4E9", "#f3f4f6", "#E69F00"], "clamp": true, "interpolate": "lab" } },
                "tooltip": [ { "field": "variant" }, { "field": "size" }, { "field": "change", "title": "change (%)" }, { "field": "before", "title": "before" }, { "field": "after", "title": "after" }, { "field": "n", "title": "transfers" } ] } },
            { "mark": { "type": "text", "fontSize": 11, "color": "#1b1f24" }, "encoding": { "text": { "field": "text", "type": "nominal" } } },
        ],
    })
}

fn distribution(chart: &Chart, lines: &[Distribution]) -> Value {
    let values: Vec<Value> = lines
        .iter()
        .flat_map(|line| {
            let points = line.fct_s.iter().zip(&line.share);
            points.map(move |(fct_s, share)| {
                json!({ "variant": chart.variants.get(line.variant), "group": line.group, "fct_s": fct_s, "share": share })
            })
        })
        .collect();
    let domain = &chart.variants;
    let visible: Vec<&String> = domain.iter().take(LINES_SHOWN).collect();
    let colors: Vec<&str> = (0..domain.len()).map(charts::color).collect();
    let dashes: Vec<&[u8]> = (0..domain.len()).map(charts::dash).collect();
    json!({
        "params": [ { "name": "visible", "value": visible } ],
        "data": { "values": values },
        "transform": [{ "filter": format!("{OF_GROUP} && indexof(visible, datum.variant) >= 0") }],
        "mark": { "type": "line", "strokeWidth": 2, "clip": true },
        "encoding": {
            "x": { "field": "fct_s", "type": "quantitative", "title": "completion time", "scale": { "type": "log", "nice": false },
                "axis": { "labelExpr": "datum.value < 0.001 ? format(datum.value * 1e6, '~r') + ' \u{b5}s' : datum.value < 1 ? format(datum.value * 1000, '~r') + ' ms' : format(datum.value, '~r') + ' s'", "labelOverlap": true, "tickCount": 8 } },
            "y": { "field": "share", "type": "quantitative", "title": "share complete", "axis": { "format": "%" }, "scale": { "domain": [0, 1] } },
            "color": { "field": "variant", "type": "nominal", "legend": null, "scale": { "domain": domain, "range": colors } },
            "strokeDash": { "field": "variant", "type": "nominal", "legend": null, "scale": { "domain": domain, "range": dashes } },
            "tooltip": [ { "field": "variant" }, { "field": "fct_s", "title": "completion time (s)" }, { "field": "share", "format": ".2%" } ],
        },
    })
}

fn delay(chart: &Chart, waits: &[Wait]) -> Value {
    let scale = match charts::longest_wait_shown(waits) {
        Some(limit) => json!({ "zero": true, "domainMax": limit, "clamp": true }),
        None => json!({ "zero": true }),
    };
    let x = |field: &str| json!({ "field": field, "type": "quantitative", "title": "waiting time (ms)", "scale": scale });
    json!({
        "data": { "values": waits },
        "transform": [{ "filter": OF_GROUP }],
        "encoding": { "y": variant_axis(chart),
            "tooltip": [ { "field": "variant" }, { "field": "p50", "title": "median (ms)" }, { "field": "p95", "title": "95th percentile (ms)" }, { "field": "p99", "title": "99th percentile (ms)" } ] },
        "layer": [
            { "mark": { "type": "bar", "height": 12, "color": "#0072B2", "cornerRadiusEnd": 2 }, "encoding": { "x": x("p50") } },
            { "mark": { "type": "rule", "strokeWidth": 2, "color": "#56B4E9" }, "encoding": { "x": x("p50"), "x2": { "field": "p95" } } },
            { "mark": { "type": "tick", "thickness": 2, "size": 14, "color": "#D55E00" }, "encoding": { "x": x("p99") } },
        ],
    })
}

fn utilisation(chart: &Chart, uses: &[Use]) -> Value {
    json!({
        "data": { "values": uses },
        "transform": [{ "filter": OF_GROUP }],
        "mark": { "type": "bar", "height": 12, "color": "#009E73", "cornerRadiusEnd": 2 },
        "encoding": {
            "y": variant_axis(chart),
            "x": { "field": "utilisation", "type": "quantitative", "title": "utilisation (%)", "scale": { "domain": [0, 100] } },
            "tooltip": [ { "field": "variant" }, { "field": "utilisation", "title": "utilisation (%)" }, { "field": "drops", "title": "packets dropped" }, { "field": "marks", "title": "packets marked" } ],
        },
    })
}
