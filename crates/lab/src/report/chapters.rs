//! `reproduce.html`: a chapter per experiment with its verdict, its checks and its figure drawn again.
//!
//! Figures are plain SVG (see `figures`), so that the page needs no script.

use super::figures::Figure;
use super::text::short;
use crate::experiment::verdict::Verdict;
use crate::experiment::{CheckResult, Evaluated};
use crate::scenario::Published;
use minijinja::Environment;
use serde_json::json;

const TEMPLATE: &str = include_str!("../../assets/chapters.html.j2");
/// Style of pages whose figures are plain SVG.
pub(crate) const STYLE: &str = concat!(
    include_str!("../../assets/report.bundle.css"),
    "\n",
    include_str!("../../assets/figures.css")
);

/// An experiment with its figures.
#[derive(Clone, Copy, Debug)]
pub struct Chapter<'a> {
    /// Its verdict.
    pub evaluated: &'a Evaluated,
    /// Its figures.
    pub figures: &'a [Figure],
    /// File name of a report with all measurements, if one was written.
    pub detail: Option<&'a str>,
}

/// The page as text.
///
/// # Errors
/// The template does not fit the data; a test renders it.
pub fn render(chapters: &[Chapter<'_>], command: &str) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("chapters.html", TEMPLATE)?;
    let shown: Vec<_> = chapters.iter().map(chapter).collect();
    environment
        .get_template("chapters.html")?
        .render(minijinja::value::Serde(json!({
            "fleetfoot": env!("CARGO_PKG_VERSION"),
            "style": STYLE,
            "summary": summary(chapters),
            "chapters": shown,
            "command": command,
        })))
}

fn summary(chapters: &[Chapter<'_>]) -> String {
    let count = |verdict| {
        chapters
            .iter()
            .filter(|chapter| chapter.evaluated.verdict == verdict)
            .count()
    };
    let parts: Vec<String> = [
        Verdict::Reproduced,
        Verdict::Partly,
        Verdict::NotReproduced,
        Verdict::NotComparable,
    ]
    .into_iter()
    .filter(|verdict| count(*verdict) > 0)
    .map(|verdict| format!("{} {}", count(verdict), verdict.name()))
    .collect();
    format!("{} experiments: {}", chapters.len(), parts.join(", "))
}

fn chapter(chapter: &Chapter<'_>) -> serde_json::Value {
    let Evaluated {
        experiment,
        verdict,
        note,
        checks,
        ..
    } = chapter.evaluated;
    let figure = &experiment.file.figure;
    let figures: Vec<_> = chapter
        .figures
        .iter()
        .map(|figure| json!({ "title": figure.title, "text": figure.text, "drawing": figure.inline() }))
        .collect();
    json!({
        "id": experiment.id,
        "claim": figure.claim,
        "verdict": verdict.name(),
        "document": figure.source.document,
        "place": figure.source.place,
        "publication": figure.source.publication,
        "note": note,
        "checks": checks.iter().map(row).collect::<Vec<_>>(),
        "figures": figures,
        "detail": chapter.detail,
    })
}

fn row(check: &CheckResult) -> serde_json::Value {
    let published = match &check.published {
        None => String::new(),
        Some(Published::Number(number)) => number.to_string(),
        Some(Published::Text(text)) => text.clone(),
    };
    let ends = check.interval.ends();
    let holds = match (check.holds, &check.expected) {
        (_, None) => "",
        (Some(true), _) => "yes",
        (Some(false), _) => "no",
        (None, _) => "undecided",
    };
    json!({
        "claim": check.claim,
        "published": published,
        "expected": check.expected.as_deref().unwrap_or(""),
        "measured": check.measured.map_or_else(none, short),
        "interval": ends.map_or_else(none, |[low, high]| format!("{} to {}", short(low), short(high))),
        "holds": holds,
        "counts": check.counts,
    })
}

fn none() -> String {
    "\u{2013}".to_owned()
}
