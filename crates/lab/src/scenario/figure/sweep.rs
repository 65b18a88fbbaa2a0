//! The sweep of a figure: its points, and how a table names one of them.

use super::super::Setting;
use super::super::document::Node;
use super::super::error::Error;
use super::super::read::Field;
use super::super::value;
use super::{Names, Point};

/// The points of `figure.sweep`; one without settings if there is no sweep.
pub(super) fn points(sweep: &Field) -> Result<Vec<Point>, Error> {
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

/// The index of the only point that the table at `node` fits.
pub(super) fn point(node: &Node, path: &str, names: &Names<'_>) -> Result<usize, Error> {
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
