//! `[[check]]`: what is measured, what it is compared with, what is expected.

use super::super::document::{Node, Table, Value};
use super::super::error::Error;
use super::super::keys;
use super::super::read::{Field, Section};
use super::super::value;
use super::sweep::point;
use super::{Check, Expect, Names, Published, Quantity, Relative, Role, unknown};
use crate::metrics::{Metric, Of, Statistic};

/// The checks of the document; those that `figure.primary` names carry the claim.
pub(super) fn checks(document: &Table, figure: &Section, names: &Names<'_>) -> Result<Vec<Check>, Error> {
    let nodes: &[Node] = match document.get("check").map(|node| &node.value) {
        Some(Value::List(nodes)) => nodes,
        _ => &[],
    };
    let mut checks: Vec<Check> = Vec::new();
    for node in nodes {
        let check = check(node, names, &checks)?;
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

fn check(node: &Node, names: &Names<'_>, earlier: &[Check]) -> Result<Check, Error> {
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
    let role = match section.find("role")? {
        None if expect.is_none() => Role::Report,
        None => Role::Check,
        Some(field) => match field.choice()? {
            "condition" => Role::Condition,
            "report" => Role::Report,
            _ => Role::Check,
        },
    };
    let mut beyond = Vec::new();
    for element in section.need("beyond")?.list()? {
        let wanted = element.text()?;
        let found = earlier.iter().position(|check| check.name == wanted);
        let known: Vec<&str> = earlier.iter().map(|check| check.name.as_str()).collect();
        beyond.push(
            found.ok_or_else(|| unknown(element.place(), &element.path, "earlier check", wanted, &known))?,
        );
    }
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
        base: section.need("base")?.number()?,
        beyond,
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
    if found.is_some_and(Metric::needs_bins) && !names.bins {
        return Err(metric
            .fail(format!("`{word}` is of connections that are kept in bins"))
            .help(metric.place(), "write `bins = \"1 s\"` under [run]"));
    }
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
    if let Some(value) = number("contains")? {
        let alone = ["min", "max", "value", "tolerance", "absolute"];
        if alone.iter().any(|key| table.get(key).is_some()) {
            return Err(field.fail("`contains` stands alone: the interval must hold that number"));
        }
        return Ok((Some(Expect::Contains { value }), unit));
    }
    match (number("value")?, min.is_some() || max.is_some()) {
        (Some(_), true) => Err(field.fail("either `value` or `min` and `max`")),
        (None, false) => Err(field.fail("`value`, `min`, `max` or `contains` is wanted")),
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
