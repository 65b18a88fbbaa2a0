//! A result in short, as a piece of HTML for a page that is not ours: a notebook.
//!
//! It has no script, no style sheet and no ids. Colours and fonts are those of the page around it.

use super::answer;
use crate::compare::words;
use crate::result::Comparison;
use minijinja::Environment;
use serde_json::json;

const TEMPLATE: &str = include_str!("../../assets/notebook.html.j2");

/// Answer, ranked table and notes; of a single variant what each group gets. The runs of `comparison` are not read.
///
/// # Errors
/// None in a release: the template is part of the program and a test renders it.
pub fn render(comparison: &Comparison) -> Result<String, minijinja::Error> {
    let document = &comparison.document;
    let mut environment = Environment::new();
    environment.add_template("notebook.html", TEMPLATE)?;
    let runs = document.variants.iter().map(|variant| variant.runs).min();
    environment
        .get_template("notebook.html")?
        .render(minijinja::value::Serde(json!({
            "scenario": document.scenario,
            "interrupted": document.interrupted,
            "seeds": runs.map(words::seeds),
            "top": answer::top(document),
            "described": answer::described(document),
            "ranking": answer::table(comparison),
            "variant": document.variants.first().map(|variant| &variant.name),
        })))
}
