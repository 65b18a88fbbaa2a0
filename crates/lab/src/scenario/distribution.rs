//! Distributions and arrivals, wherever a scenario has them.

use super::error::Error;
use super::keys::{self, Dimension};
use super::read::{Field, Section};
use super::value;
use crate::workload::SizeTable;
use fleetfoot_core::rng::Distribution;
use std::sync::Arc;

/// Times between events: never always zero, else time would stand still.
pub(super) fn positive(field: &Field) -> Result<Distribution, Error> {
    let distribution = distribution(field, Dimension::Time)?;
    if largest_hint(&distribution).is_some_and(|largest| largest <= 0.0) {
        return Err(field.fail("the interval must be above zero"));
    }
    Ok(distribution)
}

/// The times between arrivals.
pub(super) fn arrivals(field: &Field) -> Result<Distribution, Error> {
    let (dist, section) = Section::open_tagged(&field.node, &keys::ARRIVALS, &field.path)?;
    if dist == "list" {
        let values = list_values(&section.need("values")?, Dimension::Time)?;
        if values.iter().all(|gap| *gap <= 0.0) {
            return Err(field.fail("at least one gap must be above zero"));
        }
        return Ok(Distribution::List {
            values,
            shuffle: false,
        });
    }
    let gap = 1.0 / section.need("rate")?.frequency()?;
    let number = |key| section.need(key)?.number();
    Ok(match dist {
        "poisson" => Distribution::Exponential { mean: gap },
        "constant" => Distribution::Constant(gap),
        "lognormal" => {
            let sigma = number("sigma")?;
            Distribution::LogNormal {
                mu: libm::log(gap) - sigma * sigma / 2.0,
                sigma,
            }
        }
        "weibull" => {
            let shape = number("shape")?;
            Distribution::Weibull {
                scale: gap / libm::tgamma(1.0 + 1.0 / shape),
                shape,
            }
        }
        _ => {
            let shape = number("shape")?;
            Distribution::Pareto {
                scale: gap * (shape - 1.0) / shape,
                shape,
            }
        }
    })
}

/// A quantity or a distribution of quantities, in bytes or seconds.
pub(crate) fn distribution(field: &Field, dimension: Dimension) -> Result<Distribution, Error> {
    if field.node.as_table().is_none() {
        let value = value::quantity(&field.node, &field.path, dimension)?;
        if dimension == Dimension::Bytes && value < 1.0 {
            return Err(field.fail("a size is at least one byte"));
        }
        return Ok(Distribution::Constant(value));
    }
    let (dist, section) = Section::open_tagged(&field.node, dimension.distributions(), &field.path)?;
    let optional = |key| -> Result<Option<f64>, Error> {
        let Some(field) = section.find(key)? else {
            return Ok(None);
        };
        let value = value::quantity(&field.node, &field.path, dimension)?;
        if value <= 0.0 {
            return Err(field.fail(format!("`{key}` must be above zero")));
        }
        Ok(Some(value))
    };
    let need = |key| read_any(&section.need(key)?, dimension);
    let shape = || section.need("shape")?.number();
    // Scale and mean exclude each other.
    let scale = |of_mean: &dyn Fn(f64) -> Result<f64, Error>| match (optional("scale")?, optional("mean")?) {
        (Some(scale), None) => Ok(scale),
        (None, Some(mean)) => of_mean(mean),
        _ => Err(field.fail(format!(
            "a {dist} distribution takes `scale` or `mean`, one of them"
        ))),
    };
    let heavy = || -> Result<f64, Error> {
        let shape = shape()?;
        if shape > 1.0 {
            return Ok(shape);
        }
        Err(section
            .need("shape")?
            .fail("a shape of 1 or less has no mean: give `scale`"))
    };
    Ok(match dist {
        "constant" => Distribution::Constant(need("value")?),
        "uniform" => {
            let (min, max) = (need("min")?, need("max")?);
            if min > max {
                return Err(section.need("min")?.fail("`min` is above `max`"));
            }
            Distribution::Uniform { min, max }
        }
        "exponential" => match optional("mean")? {
            Some(mean) => Distribution::Exponential { mean },
            None => return Err(field.fail("`mean` is missing")),
        },
        "pareto" => Distribution::Pareto {
            scale: scale(&|mean| heavy().map(|shape| mean * (shape - 1.0) / shape))?,
            shape: shape()?,
        },
        "lomax" => Distribution::Lomax {
            scale: scale(&|mean| heavy().map(|shape| mean * (shape - 1.0)))?,
            shape: shape()?,
        },
        "lognormal" => {
            let sigma = section.need("sigma")?.number()?;
            let mu = section.find("mu")?.map(|mu| mu.number()).transpose()?;
            let mu = match (mu, optional("median")?, optional("mean")?) {
                (Some(mu), None, None) => mu,
                (None, Some(median), None) => libm::log(median),
                (None, None, Some(mean)) => libm::log(mean) - sigma * sigma / 2.0,
                _ => {
                    return Err(
                        field.fail("a lognormal distribution takes `mean`, `median` or `mu`, one of them")
                    );
                }
            };
            Distribution::LogNormal { mu, sigma }
        }
        "normal" => {
            let (mean, deviation) = (need("mean")?, need("deviation")?);
            let min = section.find("min")?;
            let min = min.map_or(Ok(0.0), |field| read_any(&field, dimension))?;
            if min > mean {
                return Err(section.need("min")?.fail("`min` is above `mean`"));
            }
            Distribution::Normal { mean, deviation, min }
        }
        "weibull" => {
            let shape = shape()?;
            Distribution::Weibull {
                scale: scale(&|mean| Ok(mean / libm::tgamma(1.0 + 1.0 / shape)))?,
                shape,
            }
        }
        "empirical" => empirical(field, &section, dimension)?,
        _ => Distribution::List {
            values: list_values(&section.need("values")?, dimension)?,
            shuffle: section.need("shuffle")?.flag()?,
        },
    })
}

fn read_any(field: &Field, dimension: Dimension) -> Result<f64, Error> {
    value::quantity(&field.node, &field.path, dimension)
}

fn list_values(field: &Field, dimension: Dimension) -> Result<Arc<[f64]>, Error> {
    let mut values = Vec::new();
    for element in field.list()? {
        values.push(read_any(&element, dimension)?);
    }
    if values.is_empty() {
        return Err(field.fail("the list is empty"));
    }
    Ok(values.into())
}

fn empirical(field: &Field, section: &Section, dimension: Dimension) -> Result<Distribution, Error> {
    let (table, points) = (section.find("table")?, section.find("points")?);
    let field = match (table, points) {
        (Some(table), None) => {
            let name = table.choice()?;
            let found =
                SizeTable::find(name).ok_or_else(|| table.fail(format!("there is no table `{name}`")))?;
            return Ok(Distribution::Empirical(found.points()));
        }
        (None, Some(points)) => points,
        _ => {
            return Err(field.fail("an empirical distribution takes `table` or `points`, one of them"));
        }
    };
    let mut points: Vec<(f64, f64)> = Vec::new();
    for element in field.list()? {
        let point = value::point(&element.node, &element.path, dimension)?;
        if points
            .last()
            .is_some_and(|last| point.0 < last.0 || point.1 < last.1)
        {
            return Err(element.fail("the points must ascend, in value and in probability"));
        }
        points.push(point);
    }
    if points.last().is_none_or(|last| last.1 < 1.0) {
        return Err(field.fail("the last point must have the cumulative probability 1"));
    }
    Ok(Distribution::Empirical(points.into()))
}

/// A value that is zero only if every draw is zero; `None`: never.
pub(crate) fn largest_hint(distribution: &Distribution) -> Option<f64> {
    match distribution {
        Distribution::Constant(value) => Some(*value),
        Distribution::Uniform { max, .. } => Some(*max),
        Distribution::List { values, .. } => Some(values.iter().copied().fold(0.0, f64::max)),
        Distribution::Empirical(points) => points.last().map(|last| last.0),
        Distribution::Normal { mean, deviation, .. } => Some(mean + deviation),
        Distribution::Exponential { .. }
        | Distribution::Pareto { .. }
        | Distribution::Lomax { .. }
        | Distribution::LogNormal { .. }
        | Distribution::Weibull { .. } => None,
    }
}
