//! `[figure]`, `[[check]]` and `[[plot]]`: what was published, over which points it is run, what is checked and drawn.
//!
//! Every name a check uses (group, link, variant, metric, point) is looked up here, so that a mistake is reported with its
//! place before anything runs.

mod check;
mod expand;
mod plot;
mod sweep;
mod template;

pub(super) use expand::expand;
pub use plot::{Plot, PlotKind, Series, Shown};

use super::Setting;
use super::document::Table;
use super::error::{Error, Place, alternatives, nearest};
use super::keys;
use super::read::Section;
use super::resolve::Resolved;
use super::value;
use crate::analysis;
use crate::metrics::{GroupMetric, Metric, Of, Statistic};
use fleetfoot_core::parameter::Values;

/// A published figure, table or statement.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Where it was published.
    pub source: FigureSource,
    /// What was published.
    pub claim: String,
    /// An analysis instead of runs, or beside them.
    pub analysis: Option<(&'static analysis::Analysis, Values)>,
    /// Whether it is an analysis without runs.
    pub closed_form: bool,
    /// Whether runs with real packets are among its runs.
    pub live: bool,
    /// Why values cannot be compared, if they cannot.
    pub not_comparable: Option<String>,
    /// What a reader of the verdict should know.
    pub note: Option<String>,
    /// What tables and checks call the file as it stands.
    pub as_described: String,
    /// Points of the sweep, each with its settings; one without settings if there is no sweep.
    pub points: Vec<Point>,
    /// Seeds of a quick run.
    pub quick_seeds: Option<u32>,
    /// What a quick run changes.
    pub quick_set: Setting,
    /// Names of its variants, the file as it stands first.
    pub variants: Vec<String>,
    /// Names of its traffic groups.
    pub groups: Vec<String>,
    /// What is checked.
    pub checks: Vec<Check>,
    /// How it is drawn; empty: as suits its checks.
    pub plots: Vec<Plot>,
}

/// Where a figure was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureSource {
    /// Identity of the document; `own` for an experiment of this project.
    pub document: String,
    /// Figure, table or section.
    pub place: String,
    /// Report number, journal or address.
    pub publication: Option<String>,
}

/// A point of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// What is set there.
    pub set: Setting,
}

impl Point {
    /// The last key of each path and its value: `weight = 0.7`; empty without a sweep.
    pub fn label(&self) -> String {
        self.set.iter().map(words).collect::<Vec<_>>().join(", ")
    }

    /// The label without the setting of `path`.
    pub fn label_without(&self, path: &str) -> String {
        let others = self.set.iter().filter(|(other, _)| *other != path);
        others.map(words).collect::<Vec<_>>().join(", ")
    }

    /// The value of its first setting as a number, for slopes and axes: `"10 Mbit/s"` is 10.
    pub fn number(&self) -> Option<f64> {
        self.number_of(self.set.iter().next()?.0)
    }

    /// The value of `path` as a number.
    pub fn number_of(&self, path: &str) -> Option<f64> {
        let (_, value) = self.set.iter().find(|(other, _)| *other == path)?;
        match value {
            toml::Value::Integer(number) => Some(*number as f64),
            toml::Value::Float(number) => Some(*number),
            toml::Value::String(text) => text.split_whitespace().next()?.parse().ok(),
            _ => None,
        }
    }
}

fn words((path, value): (&str, &toml::Value)) -> String {
    let key = path.rsplit('.').next().unwrap_or(path);
    format!("{key} = {}", plain(value))
}

fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One check of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// What is checked, in one sentence.
    pub claim: String,
    /// What is measured.
    pub quantity: Quantity,
    /// Statistic of the values of all runs together.
    pub statistic: Statistic,
    /// Reduces each run to one number first.
    pub per_run: Option<Statistic>,
    /// Index of the variant; 0 is the file as it stands.
    pub variant: usize,
    /// Index of the point; `None`: each.
    pub point: Option<usize>,
    /// What the value is divided by in the same variant.
    pub per: Option<Quantity>,
    /// What the value is compared with as a ratio.
    pub relative_to: Option<Relative>,
    /// Subtracted from the value before it is compared.
    pub base: f64,
    /// Indices of earlier checks whose values are subtracted in the end.
    pub beyond: Vec<usize>,
    /// What is expected; `None`: reported only.
    pub expect: Option<Expect>,
    /// Unit for tables.
    pub unit: Option<String>,
    /// What was published.
    pub published: Option<Published>,
    /// Whether parameters were fitted to this value.
    pub calibrated: bool,
    /// What it is for.
    pub role: Role,
    /// Whether the claim of the figure rests on it.
    pub primary: bool,
}

impl Check {
    /// Whether the verdict depends on it.
    pub fn counts(&self) -> bool {
        self.role == Role::Check && !self.calibrated && self.expect.is_some()
    }
}

/// A metric and whose it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// The metric.
    pub metric: Metric,
    /// Whose.
    pub of: Of,
}

/// The other side of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relative {
    /// The metric at that place; `None`: that of the check.
    To {
        /// Index of the variant.
        variant: Option<usize>,
        /// Index of the point.
        point: Option<usize>,
    },
    /// The smallest or largest over all points.
    Best {
        /// Whether the largest is the best.
        largest: bool,
    },
}

/// What is expected of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expect {
    /// A lower and an upper bound.
    Bounds {
        /// The value must not be below this, ...
        min: Option<f64>,
        /// ... and, if this is set, not equal to it.
        above: bool,
        /// The value must not exceed this, ...
        max: Option<f64>,
        /// ... and, if this is set, not reach it.
        below: bool,
    },
    /// A value and the deviation allowed.
    Value {
        /// The value.
        value: f64,
        /// How far the estimate may be away.
        deviation: f64,
    },
    /// A number that the 95 % interval must hold: no difference from it was found.
    Contains {
        /// The number.
        value: f64,
    },
}

/// What was published.
#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    /// A number.
    Number(f64),
    /// Words.
    Text(String),
}

/// What a check is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The verdict depends on it.
    Check,
    /// Without it published and measured values cannot be compared.
    Condition,
    /// The check is shown and does not count.
    Report,
}

/// What the names in checks refer to.
struct Names<'a> {
    groups: Vec<&'a str>,
    /// Name and index of each direction.
    links: Vec<(String, usize)>,
    variants: Vec<&'a str>,
    points: &'a [Point],
    analysis: Option<&'static analysis::Analysis>,
    closed_form: bool,
    /// Whether runs keep connections in bins.
    bins: bool,
}

/// Reads the figure of a document, if it has one. `described` is absent for a closed form.
pub(super) fn read(
    document: &Table,
    described: Option<&Resolved>,
    variants: &[super::Variant],
) -> Result<Option<Figure>, Error> {
    let Some(node) = document.get("figure") else {
        if let Some(entry) = document.entry("check").or_else(|| document.entry("plot")) {
            return Err(Error::at(
                &entry.key_place,
                &entry.key,
                "a check or plot belongs to a figure",
            )
            .help(
                &entry.key_place,
                "add [figure] with `claim` and `source`, or leave the checks and plots out",
            ));
        }
        return Ok(None);
    };
    let section = Section::open(node, keys::FIGURE, "figure")?;
    let source = section.need("source")?;
    let source_table = value::table(&source.node, "figure.source")?;
    let source_text = |key: &str| source_table.text(key).unwrap_or("").to_owned();
    let kind = section.need("kind")?.choice()?;
    let (closed_form, live) = (kind == "closed-form", kind == "live");
    let analysis = match section.find("analysis")? {
        Some(field) => {
            let (name, values) = value::analysis(&field.node, "figure.analysis")?;
            analysis::find(name).map(|analysis| (analysis, values))
        }
        None if closed_form => {
            return Err(Error::at(
                &section.place,
                "figure.analysis",
                "a closed form needs an analysis",
            )
            .help(
                &section.place,
                "for example analysis = { kind = \"packet-time\", packets = 5 }",
            ));
        }
        None => None,
    };
    let sweep = section.need("sweep")?;
    let points = sweep::points(&sweep)?;
    let (quick_seeds, quick_set) = quick(&section)?;
    let as_described = section.need("as_described")?.text()?.to_owned();
    let names = Names {
        groups: described.map_or_else(Vec::new, |resolved| {
            resolved.groups.iter().map(|group| group.name.as_str()).collect()
        }),
        links: described.map_or_else(Vec::new, |resolved| {
            let links = resolved.spec.links.iter().enumerate();
            links
                .map(|(index, link)| {
                    let direction = if link.forward { "" } else { "/reverse" };
                    (format!("{}{direction}", link.name), index)
                })
                .collect()
        }),
        variants: std::iter::once(as_described.as_str())
            .chain(variants.iter().map(|variant| variant.name.as_str()))
            .collect(),
        points: &points,
        analysis: analysis.as_ref().map(|(analysis, _)| *analysis),
        closed_form,
        bins: described.is_some_and(|resolved| resolved.run.bins.is_some()),
    };
    let checks = check::checks(document, &section, &names)?;
    let normalised = |check: &&Check| check.quantity.metric == Metric::Group(GroupMetric::NormalisedFct);
    if let Some(check) = checks.iter().find(normalised)
        && described.is_some_and(|resolved| resolved.run.loss_free.is_none())
    {
        return Err(Error::at(
            &section.place,
            &format!("check.{}", check.name),
            "normalised times need a variant without loss",
        )
        .help(&section.place, "name it: [run] loss_free = \"no loss\""));
    }
    let plots = plot::plots(document, &names, &checks)?;
    let text = |key| -> Result<Option<String>, Error> {
        section
            .find(key)?
            .map(|field| field.text().map(str::to_owned))
            .transpose()
    };
    let figure = Figure {
        source: FigureSource {
            document: source_text("document"),
            place: source_text("where"),
            publication: source_table.text("publication").map(str::to_owned),
        },
        claim: section.need("claim")?.text()?.to_owned(),
        analysis,
        closed_form,
        live,
        not_comparable: text("not_comparable")?,
        note: text("note")?,
        as_described: as_described.clone(),
        points: points.clone(),
        quick_seeds,
        quick_set,
        variants: names.variants.iter().map(|name| (*name).to_owned()).collect(),
        groups: names.groups.iter().map(|name| (*name).to_owned()).collect(),
        checks,
        plots,
    };
    if figure.not_comparable.is_none() && !figure.checks.iter().any(Check::counts) {
        return Err(
            Error::at(&section.place, "figure", "no check of this figure counts").help(
                &section.place,
                "give a [[check]] an `expect`, or say why with `not_comparable`",
            ),
        );
    }
    Ok(Some(figure))
}

fn quick(section: &Section) -> Result<(Option<u32>, Setting), Error> {
    let field = section.need("quick")?;
    let table = value::table(&field.node, "figure.quick")?;
    let seeds = match table.get("seeds") {
        Some(node) => Some(value::integer(node, "figure.quick.seeds", 1, 1_000_000)? as u32),
        None => None,
    };
    let set = match table.get("set") {
        Some(node) => Setting::of_table(value::table(node, "figure.quick.set")?),
        None => Setting::none(),
    };
    Ok((seeds, set))
}

fn unknown(place: &Place, path: &str, what: &str, word: &str, known: &[&str]) -> Error {
    let mut error = Error::at(place, path, format!("there is no {what} called `{word}`"));
    if let Some(near) = nearest(word, known.iter().copied()) {
        error = error.help(place, format!("did you mean `{near}`?"));
    }
    // Many links are no help.
    if known.len() <= MOST_NAMED {
        error = error.help(place, format!("valid choices: {}", alternatives(known)));
    }
    error
}

/// Longest list of choices in a message.
const MOST_NAMED: usize = 60;
