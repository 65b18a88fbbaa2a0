//! The parts of the report as data, for a page that arranges them itself: the explorer.

use super::answer;
use super::charts;
use super::html;
use crate::compare::words;
use crate::result::Comparison;
use serde_json::{Value, json};

/// `{top, described, turn_on, ranking, pareto, charts: [{id, title, text, groups, pictures, key, header, rows}], seeds}`: the texts of
/// the report and its drawings as SVG, whose colours come from the page's style sheet.
pub fn of(comparison: &Comparison) -> Value {
    let document = &comparison.document;
    let (variants, shown) = charts::ordered(comparison);
    let charts = charts::all(comparison, &variants[..shown]);
    json!({
        "top": answer::top(document),
        "described": answer::described(document),
        "turn_on": answer::turn_on(document),
        "ranking": answer::table(comparison),
        "pareto": answer::pareto(document),
        "charts": html::drawn(&charts),
        "seeds": words::seeds(document.seeds.len() as u64),
    })
}
