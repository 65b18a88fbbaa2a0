//! `[figure]` and `[[check]]`: what was published, over which points it is run, what is checked.
//!
//! Every name a check uses (group, link, variant, metric, point) is looked up here, so that a mistake is told with its
//! place before anything runs.

use super::Setting;
use super::document::{Node, Table, Value};
use super::error::{Error, Place, alternatives, nearest};
use super::keys;
use super::read::{Field, Section};
use super::resolve::Resolved;
use super::value;
use crate::analysis;
use crate::experiment::metric::{Metric, Of, Statistic};
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
    /// What is checked.
    pub checks: Vec<Check>,
}

/// Where a figure was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureSource {
    /// Identity of the document; `own` for an experiment of this project.
    pub seed: String,
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
        let parts = self.set.iter().map(|(path, value)| {
            let key = path.rsplit('.').next().unwrap_or(path);
            format!("{key} = {}", plain(value))
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    /// The value of its first setting as a number, for slopes and axes: `"10 Mbit/s"` is 10.
    pub fn number(&self) -> Option<f64> {
        match self.set.iter().next()?.1 {
            toml::Value::Integer(number) => Some(*number as f64),
            toml::Value::Float(number) => Some(*number),
            toml::Value::String(text) => text.split_whitespace().next()?.parse().ok(),
            _ => None,
        }
    }
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
    /// The same quantity there; `None`: that of the check.
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
    /// It is shown.
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
}

/// Reads the figure of a document, if it has one. `described` is absent for a closed form.
pub(super) fn read(
    document: &Table,
    described: Option<&Resolved>,
    variants: &[super::Variant],
) -> Result<Option<Figure>, Error> {
    let Some(node) = document.get("figure") else {
        if let Some(entry) = document.entry("check") {
            return Err(
                Error::at(&entry.key_place, "check", "a check belongs to a figure").help(
                    &entry.key_place,
                    "add [figure] with `claim` and `source`, or leave the checks out",
                ),
            );
        }
        return Ok(None);
    };
    let section = Section::open(node, keys::FIGURE, "figure")?;
    let source = section.need("source")?;
    let source_table = value::table(&source.node, "figure.source")?;
    let source_text = |key: &str| source_table.text(key).unwrap_or("").to_owned();
    let closed_form = section.need("kind")?.choice()? == "closed-form";
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
    let points = points(&sweep)?;
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
    };
    let checks = checks(document, &section, &names)?;
    let text = |key| -> Result<Option<String>, Error> {
        section
            .find(key)?
            .map(|field| field.text().map(str::to_owned))
            .transpose()
    };
    let figure = Figure {
        source: FigureSource {
            seed: source_text("seed"),
            place: source_text("where"),
            publication: source_table.text("publication").map(str::to_owned),
        },
        claim: section.need("claim")?.text()?.to_owned(),
        analysis,
        closed_form,
        not_comparable: text("not_comparable")?,
        note: text("note")?,
        as_described: as_described.clone(),
        points: points.clone(),
        quick_seeds,
        quick_set,
        checks,
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

fn points(sweep: &Field) -> Result<Vec<Point>, Error> {
    let mut table = value::table(&sweep.node, "figure.sweep")?.clone();
    let zip = match table.get("zip") {
        Some(node) => value::flag(node, "figure.sweep.zip")?,
        None => false,
    };
    table.entries.retain(|entry| entry.key != "zip");
    let setting = Setting::of_table(&table);
    let mut axes: Vec<(&str, &[toml::Value])> = Vec::new();
    for (path, value) in setting.iter() {
        match value {
            toml::Value::Array(list) if !list.is_empty() => axes.push((path, list)),
            _ => {
                return Err(Error::at(
                    sweep.place(),
                    &format!("figure.sweep.{path}"),
                    "a list of values is wanted",
                )
                .help(sweep.place(), format!("for example \"{path}\" = [1, 2]")));
            }
        }
    }
    let with = |point: &Point, path: &str, value: &toml::Value| Point {
        set: point.set.clone().with(path, value.clone()),
    };
    let start = Point {
        set: Setting::from_origin("figure.sweep"),
    };
    if zip {
        let length = axes.first().map_or(0, |axis| axis.1.len());
        if axes.iter().any(|axis| axis.1.len() != length) {
            return Err(Error::at(
                sweep.place(),
                "figure.sweep",
                "with `zip` all lists must be equally long",
            ));
        }
        return Ok((0..length)
            .map(|index| {
                axes.iter().fold(start.clone(), |point, (path, list)| {
                    with(&point, path, &list[index])
                })
            })
            .collect());
    }
    Ok(axes.iter().fold(vec![start], |points, (path, list)| {
        points
            .iter()
            .flat_map(|point| list.iter().map(move |value| with(point, path, value)))
            .collect()
    }))
}

fn checks(document: &Table, figure: &Section, names: &Names<'_>) -> Result<Vec<Check>, Error> {
    let nodes: &[Node] = match document.get("check").map(|node| &node.value) {
        Some(Value::List(nodes)) => nodes,
        _ => &[],
    };
    let mut checks: Vec<Check> = Vec::new();
    for node in nodes {
        let check = check(node, names)?;
        if checks.iter().any(|other| other.name == check.name) {
            return Err(Error::at(
                &node.place,
                "check.name",
                format!("two checks are called `{}`", check.name),
            ));
        }
        checks.push(check);
    }
    match figure.find("primary")? {
        None => checks.iter_mut().for_each(|check| check.primary = check.counts()),
        Some(field) => {
            let known: Vec<String> = checks.iter().map(|check| check.name.clone()).collect();
            for element in field.list()? {
                let wanted = element.text()?;
                let Some(check) = checks.iter_mut().find(|check| check.name == wanted) else {
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    return Err(unknown(element.place(), &element.path, "check", wanted, &known));
                };
                check.primary = true;
            }
        }
    }
    Ok(checks)
}

fn check(node: &Node, names: &Names<'_>) -> Result<Check, Error> {
    let name = node.as_table().and_then(|table| table.text("name")).unwrap_or("");
    let section = Section::open(node, keys::CHECK, &format!("check.{name}"))?;
    let quantity = quantity(&section, None, names)?;
    let per = match section.find("per")? {
        None => None,
        Some(field) => {
            let below = Section::open(&field.node, keys::CHECK, &field.path)?;
            Some(self::quantity(&below, Some(&section), names)?)
        }
    };
    let statistic = |key| -> Result<Option<Statistic>, Error> {
        let Some(field) = section.find(key)? else {
            return Ok(None);
        };
        Ok(Statistic::parse(field.choice()?))
    };
    let variant = match section.find("variant")? {
        Some(field) => variant(&field, names)?,
        None => 0,
    };
    let point = match section.find("point")? {
        Some(field) => Some(point(&field.node, &field.path, names)?),
        None => None,
    };
    let (expect, unit) = match section.find("expect")? {
        Some(field) => expect(&field)?,
        None => (None, None),
    };
    let published = section.find("published")?.map(|field| match &field.node.value {
        Value::Text(text) => Published::Text(text.clone()),
        Value::Integer(number) => Published::Number(*number as f64),
        Value::Float(number) => Published::Number(*number),
        other => Published::Text(format!("{other:?}")),
    });
    let claim = match section.find("claim")? {
        Some(field) => field.text()?.to_owned(),
        None => name.to_owned(),
    };
    let role = match section.need("role")?.choice()? {
        "condition" => Role::Condition,
        "report" => Role::Report,
        _ => Role::Check,
    };
    if role == Role::Condition && expect.is_none() {
        return Err(Error::at(
            &node.place,
            &format!("check.{name}.expect"),
            "a condition must expect something",
        ));
    }
    Ok(Check {
        name: name.to_owned(),
        claim,
        quantity,
        statistic: statistic("statistic")?.unwrap_or(Statistic::Mean),
        per_run: statistic("per_run")?,
        variant,
        point,
        per,
        relative_to: relative(&section, names)?,
        expect,
        unit,
        published,
        calibrated: section.need("calibrated")?.flag()?,
        role,
        primary: false,
    })
}

/// Metric and owner in `section`; what it does not say is as in `or`.
fn quantity(section: &Section, or: Option<&Section>, names: &Names<'_>) -> Result<Quantity, Error> {
    let text = |key: &str| -> Result<Option<Field>, Error> {
        if section.table.get(key).is_some() {
            return section.find(key);
        }
        or.map_or(Ok(None), |or| {
            if or.table.get(key).is_some() {
                or.find(key)
            } else {
                Ok(None)
            }
        })
    };
    let Some(metric) = text("metric")? else {
        return Err(Error::at(&section.place, "check.metric", "`metric` is missing"));
    };
    let word = metric.text()?;
    if let Some(analysis) = names.analysis
        && let Some(index) = analysis.metrics.iter().position(|metric| metric.name == word)
    {
        return Ok(Quantity {
            metric: Metric::Analysis(index),
            of: Of::Variant,
        });
    }
    // A link given here takes the place of a group given above, and the other way round.
    let (group, link) = match (section.table.get("group"), section.table.get("link")) {
        (Some(_), None) => (text("group")?, None),
        (None, Some(_)) => (None, text("link")?),
        _ => (text("group")?, text("link")?),
    };
    let of =
        match (group, link) {
            (Some(_), Some(link)) => {
                return Err(link.fail("a check is of a group or of a link, not of both"));
            }
            (Some(group), None) => {
                let word = group.text()?;
                let index = names.groups.iter().position(|name| *name == word);
                Of::Group(index.ok_or_else(|| {
                    unknown(group.place(), &group.path, "traffic group", word, &names.groups)
                })?)
            }
            (None, Some(link)) => {
                let word = link.text()?;
                let known: Vec<&str> = names.links.iter().map(|(name, _)| name.as_str()).collect();
                let found = names.links.iter().find(|(name, _)| name == word);
                Of::Link(
                    found
                        .ok_or_else(|| unknown(link.place(), &link.path, "link", word, &known))?
                        .1,
                )
            }
            (None, None) => Of::Variant,
        };
    let found = if names.closed_form {
        None
    } else {
        Metric::parse(word, of)
    };
    found.map(|metric| Quantity { metric, of }).ok_or_else(|| {
        let mut known = if names.closed_form {
            Vec::new()
        } else {
            Metric::names(of)
        };
        known.extend(
            names
                .analysis
                .iter()
                .flat_map(|analysis| analysis.metrics.iter().map(|metric| metric.name.to_owned())),
        );
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let mut error = unknown(
            metric.place(),
            &metric.path,
            &format!("metric of a {}", of.name()),
            word,
            &known,
        );
        if let Some(other) = Metric::home(word).filter(|_| !names.closed_form) {
            error = error.help(
                metric.place(),
                format!("`{word}` is a metric of a {other}: add `{other} = ...`"),
            );
        }
        error
    })
}

fn relative(section: &Section, names: &Names<'_>) -> Result<Option<Relative>, Error> {
    let Some(field) = section.find("relative_to")? else {
        return Ok(None);
    };
    let Some(table) = field.node.as_table() else {
        return Ok(Some(Relative::To {
            variant: Some(variant(&field, names)?),
            point: None,
        }));
    };
    match table.text("best") {
        Some(_) if table.entries.len() > 1 => {
            return Err(field.fail("`best` stands alone: it is over all points"));
        }
        Some(word) => {
            return Ok(Some(Relative::Best {
                largest: word == "largest",
            }));
        }
        None => {}
    }
    let named = |key: &str| {
        table.get(key).map(|node| Field {
            node: node.clone(),
            path: format!("{}.{key}", field.path),
            kind: keys::Kind::Text,
            given: true,
        })
    };
    let to = Relative::To {
        variant: named("variant").map(|field| variant(&field, names)).transpose()?,
        point: named("point")
            .map(|field| point(&field.node, &field.path, names))
            .transpose()?,
    };
    if to
        == (Relative::To {
            variant: None,
            point: None,
        })
    {
        return Err(field.fail("name a variant, a point, or `best`"));
    }
    Ok(Some(to))
}

fn variant(field: &Field, names: &Names<'_>) -> Result<usize, Error> {
    let word = field.text()?;
    names
        .variants
        .iter()
        .position(|name| *name == word)
        .ok_or_else(|| unknown(field.place(), &field.path, "variant", word, &names.variants))
}

fn point(node: &Node, path: &str, names: &Names<'_>) -> Result<usize, Error> {
    let wanted = Setting::of_table(value::table(node, path)?);
    let fits = |point: &Point| {
        wanted.iter().all(|(path, value)| {
            point
                .set
                .iter()
                .any(|(other, has)| other == path && same(has, value))
        })
    };
    let mut fitting = names.points.iter().enumerate().filter(|(_, point)| fits(point));
    match (fitting.next(), fitting.next()) {
        (Some((index, _)), None) => Ok(index),
        (None, _) => {
            let known: Vec<String> = names.points.iter().map(Point::label).collect();
            Err(Error::at(&node.place, path, "the sweep has no such point")
                .help(&node.place, format!("its points: {}", known.join("; "))))
        }
        (Some(_), Some(_)) => Err(Error::at(
            &node.place,
            path,
            "this is so at several points of the sweep: name more of its paths",
        )),
    }
}

/// 1 and 1.0 are the same value.
fn same(a: &toml::Value, b: &toml::Value) -> bool {
    let number = |value: &toml::Value| match value {
        toml::Value::Integer(number) => Some(*number as f64),
        toml::Value::Float(number) => Some(*number),
        _ => None,
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn expect(field: &Field) -> Result<(Option<Expect>, Option<String>), Error> {
    let Some(table) = field.node.as_table() else {
        let text = field.text()?;
        return match bound(text) {
            Some(expect) => Ok((Some(expect), None)),
            None => Err(field
                .fail(format!("\"{text}\" is not a bound"))
                .help(field.place(), "write \"< 1\", \"<= 1.05\", \"> 0\" or \">= 3\"")),
        };
    };
    let number = |key: &str| match table.get(key) {
        Some(node) => value::number(node, &format!("{}.{key}", field.path), f64::MIN, f64::MAX).map(Some),
        None => Ok(None),
    };
    let unit = table.text("unit").map(str::to_owned);
    let (min, max) = (number("min")?, number("max")?);
    match (number("value")?, min.is_some() || max.is_some()) {
        (Some(_), true) => Err(field.fail("either `value` or `min` and `max`")),
        (None, false) => Err(field.fail("`value`, `min` or `max` is wanted")),
        (None, true) => Ok((
            Some(Expect::Bounds {
                min,
                above: false,
                max,
                below: false,
            }),
            unit,
        )),
        (Some(value), false) => {
            let deviation = match (number("tolerance")?, number("absolute")?) {
                (Some(_), Some(_)) => return Err(field.fail("either `tolerance` or `absolute`")),
                (Some(share), None) => share * value.abs(),
                (None, Some(absolute)) => absolute,
                (None, None) => 0.0,
            };
            Ok((Some(Expect::Value { value, deviation }), unit))
        }
    }
}

/// `< 1`, `<= 1`, `> 1`, `>= 1`.
fn bound(text: &str) -> Option<Expect> {
    let text = text.trim();
    let (rest, upper) = match text.strip_prefix('<') {
        Some(rest) => (rest, true),
        None => (text.strip_prefix('>')?, false),
    };
    let (rest, strict) = match rest.strip_prefix('=') {
        Some(rest) => (rest, false),
        None => (rest, true),
    };
    let number: f64 = rest
        .trim()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())?;
    Some(Expect::Bounds {
        min: (!upper).then_some(number),
        above: !upper && strict,
        max: upper.then_some(number),
        below: upper && strict,
    })
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
const MOST_NAMED: usize = 40;
