//! `[[plot]]`: how the figure of an experiment is drawn again.

use super::super::document::{Node, Table, Value};
use super::super::error::Error;
use super::super::keys;
use super::super::read::{Field, Section};
use super::super::value;
use super::{Check, Names, Point, plain, unknown};
use std::collections::BTreeMap;

/// A drawing that an experiment asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    /// Its name, part of the name of its file.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// How to read it.
    pub text: Option<String>,
    /// What it shows.
    pub kind: PlotKind,
    /// Whether a small value is a good one; `None`: it is neither.
    pub lower_is_better: Option<bool>,
    /// Words to write instead of paths and values of the sweep.
    pub labels: BTreeMap<String, String>,
}

/// Forms of drawings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlotKind {
    /// A row for each check, with its interval.
    Dots {
        /// Checks and their words; those with the same words share a row.
        checks: Vec<Shown>,
        /// What distinguishes marks of a row.
        series: Series,
    },
    /// A panel for each check, with a cell for each point of the sweep.
    HeatMap {
        /// Checks and the headings of their panels.
        checks: Vec<Shown>,
        /// Paths of the sweep that make rows, the outermost first.
        rows: Vec<String>,
        /// Paths of the sweep that make columns.
        columns: Vec<String>,
    },
    /// Checks against a path of the sweep.
    Sweep {
        /// Checks and their words.
        checks: Vec<Shown>,
        /// The path.
        x: String,
        /// Whether values lie on a logarithmic axis.
        logarithmic: bool,
    },
    /// The first run of some variants bin by bin: the throughput of each traffic group, and the wait at a link.
    TimeSeries {
        /// Index of the link.
        link: usize,
        /// Indices of the variants.
        variants: Vec<usize>,
    },
    /// Completion times of a group in ascending order.
    Times {
        /// Index of the traffic group.
        group: usize,
        /// Indices of the variants.
        variants: Vec<usize>,
    },
}

/// A check in a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its index.
    pub check: usize,
    /// What it is called there.
    pub title: String,
}

/// What distinguishes marks of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// Points of the sweep.
    Point,
    /// The traffic group of the check.
    Group,
    /// The variant of the check.
    Variant,
}

impl Plot {
    /// The words for a path or a value.
    pub fn label<'a>(&'a self, text: &'a str) -> &'a str {
        self.labels.get(text).map_or_else(
            // A path is known by its last key.
            || match text.rsplit_once('.') {
                Some((path, key)) if path.contains('.') => key,
                _ => text,
            },
            String::as_str,
        )
    }

    /// The words for the value of `path` at `point`.
    pub fn value_label(&self, point: &Point, path: &str) -> String {
        let found = point.set.iter().find(|(other, _)| *other == path);
        let text = found.map_or_else(String::new, |(_, value)| plain(value));
        self.labels.get(&text).cloned().unwrap_or(text)
    }
}

/// The drawings of the document.
pub(super) fn plots(document: &Table, names: &Names<'_>, checks: &[Check]) -> Result<Vec<Plot>, Error> {
    let nodes: &[Node] = match document.get("plot").map(|node| &node.value) {
        Some(Value::List(nodes)) => nodes,
        _ => &[],
    };
    let mut plots: Vec<Plot> = Vec::new();
    for node in nodes {
        let plot = plot(node, names, checks)?;
        if plots.iter().any(|other| other.name == plot.name) {
            return Err(Error::at(
                &node.place,
                "plot.name",
                format!("two plots are called `{}`", plot.name),
            ));
        }
        plots.push(plot);
    }
    Ok(plots)
}

fn plot(node: &Node, names: &Names<'_>, checks: &[Check]) -> Result<Plot, Error> {
    let name = node.as_table().and_then(|table| table.text("name")).unwrap_or("");
    let section = Section::open(node, keys::PLOT, &format!("plot.{name}"))?;
    let field = section.need("name")?;
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if name.is_empty() || !name.chars().all(fits) {
        return Err(field.fail("a name of a plot is part of a file name: a to z, 0 to 9 and `-`"));
    }
    let path_of = |field: &Field| -> Result<String, Error> {
        let word = field.text()?;
        let known: Vec<&str> = names
            .points
            .first()
            .map_or_else(Vec::new, |point| point.set.iter().map(|(path, _)| path).collect());
        if known.contains(&word) {
            return Ok(word.to_owned());
        }
        Err(unknown(
            field.place(),
            &field.path,
            "path of the sweep",
            word,
            &known,
        ))
    };
    let paths = |key: &'static str| -> Result<Vec<String>, Error> {
        section.need(key)?.list()?.iter().map(path_of).collect()
    };
    let position = |known: &[&str], word: &str| known.iter().position(|name| *name == word);
    let variants = || -> Result<Vec<usize>, Error> {
        match section.find("variants")? {
            None => Ok((0..names.variants.len()).collect()),
            Some(list) => list
                .list()?
                .iter()
                .map(|field| {
                    let word = field.text()?;
                    position(&names.variants, word)
                        .ok_or_else(|| unknown(field.place(), &field.path, "variant", word, &names.variants))
                })
                .collect(),
        }
    };
    let kind = match section.need("kind")?.choice()? {
        "dots" => PlotKind::Dots {
            checks: shown(&section, checks, |_| true)?,
            series: match section.need("series")?.choice()? {
                "group" => Series::Group,
                "variant" => Series::Variant,
                _ => Series::Point,
            },
        },
        "heat-map" => {
            let (rows, columns) = (paths("rows")?, paths("columns")?);
            let all = names.points.first().map_or(0, |point| point.set.iter().count());
            if rows.is_empty() || columns.is_empty() || rows.len() + columns.len() != all {
                return Err(Error::at(
                    &section.place,
                    &section.path,
                    "`rows` and `columns` of a heat map name every path of the sweep once",
                ));
            }
            PlotKind::HeatMap {
                checks: shown(&section, checks, |check| check.point.is_none())?,
                rows,
                columns,
            }
        }
        "sweep" => PlotKind::Sweep {
            checks: shown(&section, checks, |check| check.point.is_none())?,
            logarithmic: section.need("logarithmic")?.flag()?,
            x: match section.find("x")? {
                Some(field) => path_of(&field)?,
                None => names
                    .points
                    .first()
                    .and_then(|point| point.set.iter().next())
                    .map(|(path, _)| path.to_owned())
                    .ok_or_else(|| Error::at(&section.place, &section.path, "this figure has no sweep"))?,
            },
        },
        "time-series" => {
            let field = section.need("link")?;
            let word = field.text()?;
            let known: Vec<&str> = names.links.iter().map(|(name, _)| name.as_str()).collect();
            let found = names.links.iter().find(|(name, _)| name == word);
            let (_, link) = found.ok_or_else(|| unknown(field.place(), &field.path, "link", word, &known))?;
            PlotKind::TimeSeries {
                link: *link,
                variants: variants()?,
            }
        }
        _ => {
            let field = section.need("group")?;
            let word = field.text()?;
            let group = position(&names.groups, word)
                .ok_or_else(|| unknown(field.place(), &field.path, "traffic group", word, &names.groups))?;
            let variants = variants()?;
            PlotKind::Times { group, variants }
        }
    };
    let labels = match section.find("labels")? {
        None => BTreeMap::new(),
        Some(field) => value::table(&field.node, &field.path)?
            .entries
            .iter()
            .map(|entry| {
                Ok((
                    entry.key.clone(),
                    value::text(&entry.node, &field.path)?.to_owned(),
                ))
            })
            .collect::<Result<_, Error>>()?,
    };
    Ok(Plot {
        name: name.to_owned(),
        title: match section.find("title")? {
            Some(field) => field.text()?.to_owned(),
            None => name.to_owned(),
        },
        text: section
            .find("text")?
            .map(|field| field.text().map(str::to_owned))
            .transpose()?,
        kind,
        lower_is_better: match section.need("better")?.choice()? {
            "lower" => Some(true),
            "higher" => Some(false),
            _ => None,
        },
        labels,
    })
}

/// The checks that a plot names, or all that suit it.
fn shown(section: &Section, checks: &[Check], suits: fn(&Check) -> bool) -> Result<Vec<Shown>, Error> {
    let Some(list) = section.find("checks")? else {
        let all = checks.iter().enumerate().filter(|(_, check)| suits(check));
        return Ok(all
            .map(|(index, check)| Shown {
                check: index,
                title: check.name.clone(),
            })
            .collect());
    };
    let fields = list.list()?;
    let titles = match section.find("titles")? {
        None => None,
        Some(titles) => {
            let words = titles.list()?;
            if words.len() != fields.len() {
                return Err(titles.fail("`titles` has a text for each of `checks`"));
            }
            Some(words)
        }
    };
    let known: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    let mut shown = Vec::new();
    for (number, field) in fields.iter().enumerate() {
        let word = field.text()?;
        let Some(index) = known.iter().position(|name| *name == word) else {
            return Err(unknown(field.place(), &field.path, "check", word, &known));
        };
        if !suits(&checks[index]) {
            return Err(field.fail("this check is made at one point of the sweep only"));
        }
        let title = match titles.as_ref().and_then(|titles| titles.get(number)) {
            Some(title) => title.text()?.to_owned(),
            None => word.to_owned(),
        };
        shown.push(Shown { check: index, title });
    }
    Ok(shown)
}
