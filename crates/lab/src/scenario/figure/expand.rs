//! Short forms of a figure, replaced by what they stand for before anything is read: a `[[check]]` with `for` becomes a check for
//! each combination, a named point becomes its settings, a name with placeholders in `primary` and `[[plot]]` becomes the
//! names of all checks it fits.
//!
//! Every value keeps its place, so a mistake found later is reported where it was written.

use super::super::Setting;
use super::super::document::{Node, Table, Value};
use super::super::error::{Error, Place, alternatives};
use super::super::value;
use super::template::{Expanded, expand_template};
use super::unknown;

/// The document with every short form of its figure written out.
pub(in super::super) fn expand(mut document: Table) -> Result<Table, Error> {
    let points = points(&mut document)?;
    let templates = match document.get_mut("check").map(|node| &mut node.value) {
        Some(Value::List(nodes)) => std::mem::take(nodes),
        _ => Vec::new(),
    };
    let mut checks: Vec<Expanded> = Vec::new();
    for template in templates {
        let mut expanded = expand_template(template, &document, &points)?;
        for check in &mut expanded {
            name_points(&mut check.node, &points)?;
        }
        checks.append(&mut expanded);
    }
    let figure = document.get_mut("figure");
    if let Some(primary) = figure.and_then(|node| entry_of(node, "primary")) {
        let names = listed(primary, &checks)?.into_iter().map(|(node, _)| node);
        primary.value = Value::List(names.collect());
    }
    if let Some(Value::List(plots)) = document.get_mut("plot").map(|node| &mut node.value) {
        for plot in plots {
            expand_plot(plot, &checks)?;
        }
    }
    if let Some(Value::List(nodes)) = document.get_mut("check").map(|node| &mut node.value) {
        nodes.extend(checks.into_iter().map(|check| check.node));
    }
    Ok(document)
}

/// Names of the points of `figure.points` with their settings.
pub(super) type NamedPoints = Vec<(String, Node)>;

/// Takes `figure.points` out of the document. Without a sweep the named points become the sweep.
fn points(document: &mut Table) -> Result<NamedPoints, Error> {
    let Some(Value::Table(figure)) = document.get_mut("figure").map(|node| &mut node.value) else {
        return Ok(Vec::new());
    };
    let Some(at) = figure.entries.iter().position(|entry| entry.key == "points") else {
        return Ok(Vec::new());
    };
    let entry = figure.entries.remove(at);
    let named: NamedPoints = value::table(&entry.node, POINTS)?
        .entries
        .iter()
        .map(|point| (point.key.clone(), point.node.clone()))
        .collect();
    if named.is_empty() {
        return Err(Error::at(&entry.key_place, POINTS, "no point is named here"));
    }
    let settings: Vec<Setting> = named
        .iter()
        .map(|(name, node)| {
            Ok(Setting::of_table(value::table(
                node,
                &format!("{POINTS}.{name}"),
            )?))
        })
        .collect::<Result<_, Error>>()?;
    if figure.get("sweep").is_some() {
        return Ok(named);
    }
    let paths: Vec<&str> = settings[0].iter().map(|(path, _)| path).collect();
    let mut lists: Vec<Vec<Node>> = vec![Vec::new(); paths.len()];
    for (setting, (name, node)) in settings.iter().zip(&named) {
        for (path, list) in paths.iter().zip(&mut lists) {
            let found = setting.iter().find(|(other, _)| other == path);
            let (_, value) = found
                .filter(|_| setting.iter().count() == paths.len())
                .ok_or_else(|| {
                    Error::at(
                        &node.place,
                        &format!("{POINTS}.{name}"),
                        "without a sweep every point sets the same paths",
                    )
                    .help(
                        &node.place,
                        format!("the first point sets {}", alternatives(&paths)),
                    )
                })?;
            list.push(Node::from_toml(value, &node.place));
        }
    }
    let place = &entry.node.place;
    let node = |value| Node {
        value,
        place: place.clone(),
    };
    let mut zipped = Table::default();
    zipped.put("zip", place.clone(), node(Value::Flag(true)));
    for (path, list) in paths.iter().zip(lists) {
        zipped.put(path, place.clone(), node(Value::List(list)));
    }
    figure.put("sweep", entry.key_place.clone(), node(Value::Table(zipped)));
    Ok(named)
}

/// Replaces the names of points in a check by their settings.
fn name_points(check: &mut Node, points: &NamedPoints) -> Result<(), Error> {
    let replace = |node: &mut Node| -> Result<(), Error> {
        if let Some(word) = node.as_text() {
            node.value = named_point(word, &node.place, points)?.value;
        }
        Ok(())
    };
    if let Some(point) = entry_of(check, "point") {
        replace(point)?;
    }
    match entry_of(check, "relative_to").and_then(|node| entry_of(node, "point")) {
        Some(point) => replace(point),
        None => Ok(()),
    }
}

fn named_point(word: &str, place: &Place, points: &NamedPoints) -> Result<Node, Error> {
    let found = points.iter().find(|(name, _)| name == word);
    found.map(|(_, node)| node.clone()).ok_or_else(|| {
        let known: Vec<&str> = points.iter().map(|(name, _)| name.as_str()).collect();
        let error = unknown(place, "check.point", "point", word, &known);
        if points.is_empty() {
            return error.help(place, "[figure.points] gives points of the sweep their names");
        }
        error
    })
}

fn entry_of<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    match &mut node.value {
        Value::Table(table) => table.get_mut(key),
        _ => None,
    }
}

/// Writes out the names of checks in a plot, and their titles with them.
fn expand_plot(plot: &mut Node, checks: &[Expanded]) -> Result<(), Error> {
    let Some(names) = entry_of(plot, "checks") else {
        return Ok(());
    };
    let names = listed(names, checks)?;
    let titles = match entry_of(plot, "titles").map(|node| &node.value) {
        Some(Value::List(titles)) => Some(titles.clone()),
        _ => None,
    };
    if let Some(titles) = titles
        && let Some(node) = entry_of(plot, "titles")
    {
        let last = names.iter().map(|(_, from)| from.number + 1).max().unwrap_or(0);
        if last != titles.len() {
            return Err(Error::at(
                &node.place,
                "plot.titles",
                "`titles` has a text for each of `checks`",
            ));
        }
        let filled = names.iter().map(|(_, from)| {
            let mut title = titles[from.number].clone();
            if let (Some(check), Some(text)) = (from.check, title.as_text())
                && let Some(text) = check.fill(text)
            {
                title.value = Value::Text(text);
            }
            title
        });
        node.value = Value::List(filled.collect());
    }
    if let Some(node) = entry_of(plot, "checks") {
        node.value = Value::List(names.into_iter().map(|(node, _)| node).collect());
    }
    Ok(())
}

/// Which element of a list a name comes from, and the check it fits if that element has placeholders.
struct From<'a> {
    number: usize,
    check: Option<&'a Expanded>,
}

/// The names at `node`, those with placeholders replaced by the names of all checks they fit.
fn listed<'a>(node: &Node, checks: &'a [Expanded]) -> Result<Vec<(Node, From<'a>)>, Error> {
    let nodes = match &node.value {
        Value::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut names = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        let Some(text) = node.as_text().filter(|text| text.contains('{')) else {
            names.push((node.clone(), From { number, check: None }));
            continue;
        };
        let before = names.len();
        for check in checks {
            if check.fill(text).is_some_and(|name| name == check.name()) {
                let mut node = node.clone();
                node.value = Value::Text(check.name().to_owned());
                let from = From {
                    number,
                    check: Some(check),
                };
                names.push((node, from));
            }
        }
        if names.len() == before {
            return Err(Error::at(
                &node.place,
                "checks",
                format!("there is no check whose name is like `{text}`"),
            ));
        }
    }
    Ok(names)
}

const POINTS: &str = "figure.points";
