//! The report's charts for other places than its page: each with its data, its size and a line that says where it is from.

use super::charts::{self, Chart};
use super::html::distributions;
use crate::compare::words;
use crate::result::Comparison;
use serde_json::{Value, json};

/// Width of a chart whose bars do not give one (pixels).
const WIDTH: u32 = 520;

/// The charts for which there is data, in the order of the page. Of a comparison without its runs the distributions are missing.
pub fn charts(comparison: &Comparison) -> Vec<Chart> {
    let (variants, shown) = charts::ordered(comparison);
    let variants = &variants[..shown];
    let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    let document = &comparison.document;
    let caption = format!(
        "fleetfoot {} \u{b7} {} \u{b7} {}",
        document.fleetfoot,
        words::seeds(document.seeds.len() as u64),
        document.scenario
    );
    let mut drawn = charts::all(comparison, variants);
    drawn.retain(|chart| !needs_distributions(&chart.spec) || !comparison.variants.is_empty());
    for chart in &mut drawn {
        let spec = &mut chart.spec;
        spec["title"] = json!({ "text": caption, "orient": "bottom", "anchor": "start", "fontSize": 10, "fontWeight": "normal" });
        if spec["width"] == "container" {
            spec["width"] = WIDTH.into();
        }
        if needs_distributions(spec) {
            spec["data"] = json!({ "values": values(comparison, &names) });
        }
        let parameters = spec["params"].as_array_mut();
        for parameter in parameters.into_iter().flatten() {
            if parameter["name"] == "group" && chart.groups.len() > 1 {
                parameter["bind"] = json!({ "input": "select", "options": chart.groups, "name": "Group: " });
            }
        }
    }
    drawn
}

fn needs_distributions(spec: &Value) -> bool {
    spec["data"]["name"] == "distributions"
}

/// The distributions in rows.
fn values(comparison: &Comparison, names: &[&str]) -> Vec<Value> {
    let mut values = Vec::new();
    for line in distributions(comparison, names) {
        let variant = line["variant"]
            .as_u64()
            .and_then(|index| names.get(index as usize));
        let column = |name: &str| line[name].as_array().cloned().unwrap_or_default();
        for (fct_s, share) in column("fct_s").into_iter().zip(column("share")) {
            values
                .push(json!({ "variant": variant, "group": line["group"], "fct_s": fct_s, "share": share }));
        }
    }
    values
}
