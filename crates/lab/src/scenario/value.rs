//! Single values: text with units, words, registered mechanisms; each mistake has its message.

use super::document::{Node, Table, Value};
use super::error::{Error, Place, alternatives, nearest};
use super::keys::Dimension;
use super::quantity::{self, Mistake};
use super::read::join;
use crate::plugins;
use fleetfoot_core::parameter::{Parameter, ParameterKind, Values};
use fleetfoot_core::queue::Limit;
use fleetfoot_core::registry;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};

pub(crate) fn unknown_word(node: &Node, path: &str, message: &str, word: &str, names: &[&str]) -> Error {
    let mut error = Error::at(&node.place, path, message);
    if let Some(near) = meant(word, names).or_else(|| nearest(word, names.iter().copied())) {
        error = error.help(&node.place, format!("did you mean `{near}`?"));
    }
    error.help(&node.place, format!("valid choices: {}", alternatives(names)))
}

/// What is called `word` in everyday language, of these names.
fn meant<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let called = EVERYDAY
        .iter()
        .find(|(words, _)| words.contains(&word.as_str()))?;
    names.iter().find(|name| **name == called.1).copied()
}

/// Everyday words, and what a scenario calls the same.
const EVERYDAY: [(&[&str], &str); 14] = [
    (&["cable", "coax", "cable-modem"], "docsis"),
    (&["dsl"], "vdsl"),
    (&["fiber", "fibre", "ftth", "pon", "xgs-pon", "epon"], "gpon"),
    (&["mobile", "lte", "4g", "5g", "umts"], "cellular"),
    (&["wlan", "wi-fi", "802.11"], "wifi"),
    (&["lan", "wired"], "ethernet"),
    (&["leo", "geo", "starlink"], "satellite"),
    (
        &["call", "video", "voice", "voip", "conference", "videocall"],
        "video-call",
    ),
    (&["download", "upload", "backup", "greedy", "long"], "bulk"),
    (&["page", "pages", "http", "https", "browsing"], "web"),
    (&["film", "stream", "video-on-demand", "vod"], "streaming"),
    (&["udp", "constant"], "cbr"),
    (&["request", "rpc", "api"], "request-response"),
    (&["fifo", "pfifo", "bfifo", "tail-drop"], "drop-tail"),
];

/// The registered discipline and its parameters.
pub(crate) fn queue(node: &Node, path: &str) -> Result<(&'static str, Values), Error> {
    let names: Vec<&str> = plugins::queues().iter().map(|entry| entry.name).collect();
    let read = registered(node, path, "queue discipline", &names, plugins::queue);
    let tag = match &node.value {
        Value::Table(table) => table.get("kind").unwrap_or(node),
        _ => node,
    };
    let policer = tag.as_text().is_some_and(|word| POLICERS.contains(&word));
    read.map_err(|error| match policer {
        true => error.note(String::from(NO_POLICER)),
        false => error,
    })
}

/// What people call a queue that drops or delays by a token bucket.
const POLICERS: [&str; 6] = ["policer", "police", "policing", "token-bucket", "tbf", "car"];

const NO_POLICER: &str = "there are no policers or token buckets (docs/trust.md, What is not modelled); nearest is a link of the policed \
                          rate with a short queue: kind = \"drop-tail\", limit = the bucket's bytes";

/// The queue at `node` with its limits in time replaced by bytes: `bytes_for` says how many are sent in that time.
pub(crate) fn with_limits_in_bytes(
    node: &Node,
    path: &str,
    bytes_for: &dyn Fn(Duration, &Place, &str) -> Result<Bytes, Error>,
) -> Result<Node, Error> {
    let mut node = node.clone();
    let Value::Table(table) = &mut node.value else {
        return Ok(node);
    };
    let kind = table.text("kind").and_then(plugins::queue);
    for entry in &mut table.entries {
        let is_limit = |parameter: &Parameter| {
            parameter.name == entry.key && matches!(parameter.kind, ParameterKind::Limit)
        };
        let timed = entry
            .node
            .as_text()
            .and_then(|text| quantity::duration(text).ok());
        let Some(time) = timed.filter(|_| kind.is_some_and(|kind| kind.parameters.iter().any(is_limit)))
        else {
            continue;
        };
        let bytes = bytes_for(time, &entry.node.place, &join(path, &entry.key))?;
        entry.node.value = Value::Text(format!("{} B", bytes.get()));
    }
    Ok(node)
}

/// The registered algorithm and its parameters.
pub(crate) fn congestion_control(node: &Node, path: &str) -> Result<(&'static str, Values), Error> {
    let names: Vec<&str> = plugins::controllers().iter().map(|entry| entry.name).collect();
    registered(node, path, "congestion control", &names, plugins::controller)
}

/// The registered analysis and its options.
pub(crate) fn analysis(node: &Node, path: &str) -> Result<(&'static str, Values), Error> {
    let names: Vec<&str> = crate::analysis::ENTRIES
        .iter()
        .map(|analysis| analysis.entry.name)
        .collect();
    let find = |name: &str| crate::analysis::find(name).map(|analysis| &analysis.entry);
    registered(node, path, "analysis", &names, find)
}

pub(crate) fn registered(
    node: &Node,
    path: &str,
    what: &str,
    names: &[&str],
    find: fn(&str) -> Option<&'static registry::Entry>,
) -> Result<(&'static str, Values), Error> {
    let (tag, tag_path, table) = match &node.value {
        Value::Table(table) => {
            let tag = table.get("kind").ok_or_else(|| {
                Error::at(
                    &node.place,
                    &join(path, "kind"),
                    format!("`kind` is missing: it says which {what} this is"),
                )
                .help(&node.place, format!("valid choices: {}", alternatives(names)))
            })?;
            (tag, join(path, "kind"), Some(table))
        }
        _ => (node, path.to_owned(), None),
    };
    let word = text(tag, &tag_path)?;
    let entry = find(word).ok_or_else(|| {
        let error = unknown_word(tag, &tag_path, &format!("unknown {what} `{word}`"), word, names);
        match plugins::hint().filter(|_| what != "analysis") {
            Some(hint) => error.note(hint.to_owned()),
            None => error,
        }
    })?;
    let mut values = Values::defaults(entry.parameters);
    for given in table.map_or(&[][..], |table| &table.entries) {
        if given.key == "kind" {
            continue;
        }
        let full = join(path, &given.key);
        let Some(parameter) = entry
            .parameters
            .iter()
            .find(|parameter| parameter.name == given.key)
        else {
            let place = &given.key_place;
            let keys: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name).collect();
            let mut error = Error::at(
                place,
                &full,
                format!("`{}` is no parameter of {what} `{word}`", given.key),
            );
            if let Some(near) = nearest(&given.key, keys.iter().copied()) {
                error = error.help(place, format!("did you mean `{near}`?"));
            }
            return Err(error.help(place, format!("valid keys here: kind, {}", keys.join(", "))));
        };
        let value = parameter_value(&given.node, parameter.kind, &full)?;
        values
            .set(parameter.name, value)
            .map_err(|error| Error::at(&given.node.place, &full, error.to_string()))?;
    }
    (entry.check)(&values).map_err(|sentence| Error::at(&node.place, path, sentence))?;
    Ok((entry.name, values))
}

pub(crate) fn parameter_value(
    node: &Node,
    kind: ParameterKind,
    path: &str,
) -> Result<fleetfoot_core::parameter::Value, Error> {
    use fleetfoot_core::parameter::Value;
    Ok(match kind {
        ParameterKind::Limit => Value::Limit(limit(node, path)?),
        ParameterKind::Duration(low, high) => Value::Duration(duration(node, path, low, high)?),
        ParameterKind::Bytes(low, high) => Value::Bytes(bytes(node, path, low.get(), high.get())?),
        ParameterKind::Rate(low, high) => {
            let rate = rate(node, path)?;
            if rate < low || high < rate {
                return Err(out_of_range(node, path, low, high));
            }
            Value::Rate(rate)
        }
        ParameterKind::Number(low, high) => Value::Number(number(node, path, low, high)?),
        ParameterKind::Integer(low, high) => Value::Integer(integer(node, path, low, high)?),
        ParameterKind::Flag => Value::Flag(flag(node, path)?),
        ParameterKind::Choice(words) => Value::Choice(choice(node, path, words)?),
    })
}

/// A value in bytes or seconds.
pub(crate) fn quantity(node: &Node, path: &str, dimension: Dimension) -> Result<f64, Error> {
    match dimension {
        Dimension::Bytes => Ok(bytes(node, path, 0, 1 << 50)?.get() as f64),
        Dimension::Time => {
            Ok(duration(node, path, Duration::ZERO, Duration::from_secs(86_400))?.as_secs_f64())
        }
    }
}

/// A point of an empirical distribution.
pub(crate) fn point(node: &Node, path: &str, dimension: Dimension) -> Result<(f64, f64), Error> {
    match list(node, path)? {
        [value, cumulative] => Ok((quantity(value, path, dimension)?, probability(cumulative, path)?)),
        _ => Err(Error::at(
            &node.place,
            path,
            "a point is a value and a cumulative probability",
        )
        .help(&node.place, "write [\"10 kB\", 0.5]")),
    }
}

pub(crate) fn text<'a>(node: &'a Node, path: &str) -> Result<&'a str, Error> {
    node.as_text()
        .ok_or_else(|| wrong_type(node, path, "text in quotes"))
}

/// Text that can stand in a line of a table: not empty, and without characters that steer a terminal.
pub(crate) fn line<'a>(node: &'a Node, path: &str) -> Result<&'a str, Error> {
    let text = text(node, path)?;
    let key = path.rsplit('.').next().unwrap_or(path);
    if text.trim().is_empty() {
        return Err(Error::at(&node.place, path, format!("`{key}` is empty"))
            .help(&node.place, "give it at least one letter or digit"));
    }
    let Some(character) = text.chars().find(|character| character.is_control()) else {
        return Ok(text);
    };
    let what = match character {
        '\n' | '\r' => String::from("a line break"),
        '\t' => String::from("a tabulator"),
        other => format!("the control character U+{:04X}", u32::from(other)),
    };
    Err(
        Error::at(&node.place, path, format!("`{key}` contains {what}")).help(
            &node.place,
            "write it in one line of letters, digits, spaces and signs",
        ),
    )
}

/// A line that does not begin as formulas of spreadsheets do: names stand in tables of results (CSV), which others open.
pub(crate) fn name<'a>(node: &'a Node, path: &str) -> Result<&'a str, Error> {
    let text = line(node, path)?;
    let Some(first) = text
        .trim_start()
        .chars()
        .next()
        .filter(|first| "=+-@".contains(*first))
    else {
        return Ok(text);
    };
    let key = path.rsplit('.').next().unwrap_or(path);
    let message =
        format!("`{key}` begins with `{first}`, which spreadsheets take for the beginning of a formula");
    Err(Error::at(&node.place, path, message).help(
        &node.place,
        "begin it with a letter or a digit: it stands in the tables of results",
    ))
}

pub(crate) fn flag(node: &Node, path: &str) -> Result<bool, Error> {
    match node.value {
        Value::Flag(flag) => Ok(flag),
        _ => Err(wrong_type(node, path, "true or false")),
    }
}

pub(crate) fn integer(node: &Node, path: &str, low: u64, high: u64) -> Result<u64, Error> {
    let number = match node.value {
        Value::Integer(number) => number,
        _ => return Err(wrong_type(node, path, "a whole number")),
    };
    match u64::try_from(number) {
        Ok(number) if low <= number && number <= high => Ok(number),
        _ => Err(out_of_range(node, path, low, high)),
    }
}

pub(crate) fn number(node: &Node, path: &str, low: f64, high: f64) -> Result<f64, Error> {
    let number = match node.value {
        Value::Integer(number) => number as f64,
        Value::Float(number) => number,
        _ => return Err(wrong_type(node, path, "a number")),
    };
    if low <= number && number <= high {
        Ok(number)
    } else {
        Err(out_of_range(node, path, low, high))
    }
}

pub(crate) fn probability(node: &Node, path: &str) -> Result<f64, Error> {
    let help = "write per cent as text, such as \"0.5 %\", or a share from 0 to 1 without a unit: 0.005 is the same, 0.5 is 50 %";
    match &node.value {
        Value::Text(text) => {
            let part = quantity::percent(text)
                .map_err(|mistake| explain(node, path, text, &mistake, "a probability", help))?;
            if part <= 1.0 {
                Ok(part)
            } else {
                Err(Error::at(
                    &node.place,
                    path,
                    format!("a probability is at most 100 %, found \"{text}\""),
                ))
            }
        }
        Value::Integer(_) | Value::Float(_) => number(node, path, 0.0, 1.0).map_err(|error| {
            let shown = node.shown();
            match shown.parse::<f64>() {
                Ok(number) if number > 1.0 && number <= 100.0 => error.help(
                    &node.place,
                    format!("per cent is written as text: \"{shown} %\" is {}", number / 100.0),
                ),
                _ => error,
            }
        }),
        _ => Err(wrong_type(node, path, "a probability").help(&node.place, help)),
    }
}

pub(crate) fn duration(node: &Node, path: &str, low: Duration, high: Duration) -> Result<Duration, Error> {
    let span = parsed(node, path, "a time", quantity::DURATION_HELP, quantity::duration)?;
    if low <= span && span <= high {
        Ok(span)
    } else {
        Err(out_of_range(node, path, low, high))
    }
}

pub(crate) fn bytes(node: &Node, path: &str, low: u64, high: u64) -> Result<Bytes, Error> {
    let amount = match node.value {
        Value::Integer(number) => {
            Bytes(u64::try_from(number).map_err(|_| out_of_range(node, path, Bytes(low), Bytes(high)))?)
        }
        _ => parsed(node, path, "an amount", quantity::BYTES_HELP, quantity::bytes)?,
    };
    if low <= amount.get() && amount.get() <= high {
        Ok(amount)
    } else {
        Err(out_of_range(node, path, Bytes(low), Bytes(high)))
    }
}

pub(crate) fn rate(node: &Node, path: &str) -> Result<Rate, Error> {
    let rate = parsed(node, path, "a speed", quantity::RATE_HELP, quantity::rate)?;
    if rate.bps() == 0 {
        return Err(
            Error::at(&node.place, path, "a rate of zero carries nothing").help(
                &node.place,
                "the smallest rate is \"1 bit/s\"; \"unlimited\" is also possible",
            ),
        );
    }
    Ok(rate)
}

pub(crate) fn frequency(node: &Node, path: &str) -> Result<f64, Error> {
    let frequency = parsed(
        node,
        path,
        "a frequency",
        quantity::FREQUENCY_HELP,
        quantity::frequency,
    )?;
    if (1e-6..=1e9).contains(&frequency) {
        Ok(frequency)
    } else {
        Err(
            Error::at(&node.place, path, format!("{} is out of range", node.shown()))
                .help(&node.place, "from 0.000001 to 1000000000 per second"),
        )
    }
}

pub(crate) fn limit(node: &Node, path: &str) -> Result<Limit, Error> {
    let limit = parsed(node, path, "a queue limit", quantity::LIMIT_HELP, quantity::limit)?;
    if matches!(limit, Limit::Packets(0) | Limit::Bytes(Bytes::ZERO)) {
        return Err(
            Error::at(&node.place, path, "a queue must hold at least one packet")
                .help(&node.place, quantity::LIMIT_HELP),
        );
    }
    Ok(limit)
}

pub(crate) fn choice(node: &Node, path: &str, words: &'static [&'static str]) -> Result<&'static str, Error> {
    let Some(word) = node.as_text() else {
        return Err(wrong_type(node, path, "a word in quotes")
            .help(&node.place, format!("valid choices: {}", alternatives(words))));
    };
    words
        .iter()
        .find(|candidate| **candidate == word)
        .copied()
        .ok_or_else(|| {
            unknown_word(
                node,
                path,
                &format!("`{}` cannot be `{word}`", path.rsplit('.').next().unwrap_or(path)),
                word,
                words,
            )
        })
}

pub(crate) fn table<'a>(node: &'a Node, path: &str) -> Result<&'a Table, Error> {
    node.as_table().ok_or_else(|| wrong_type(node, path, "a table"))
}

pub(crate) fn list<'a>(node: &'a Node, path: &str) -> Result<&'a [Node], Error> {
    match &node.value {
        Value::List(nodes) => Ok(nodes),
        Value::Table(_) => Err(wrong_type(node, path, "a list").help(
            &node.place,
            format!("write [[{path}]], with two brackets on each side: each of them begins an entry"),
        )),
        _ => Err(wrong_type(node, path, "a list")),
    }
}

pub(crate) fn parsed<T>(
    node: &Node,
    path: &str,
    what: &str,
    help: &str,
    parse: fn(&str) -> Result<T, Mistake>,
) -> Result<T, Error> {
    match &node.value {
        Value::Text(text) => parse(text).map_err(|mistake| explain(node, path, text, &mistake, what, help)),
        Value::Integer(_) | Value::Float(_) => Err(Error::at(
            &node.place,
            path,
            format!("{} has no unit: {what} is wanted", node.shown()),
        )
        .help(&node.place, help)),
        Value::Flag(_) | Value::List(_) | Value::Table(_) => {
            Err(wrong_type(node, path, what).help(&node.place, help))
        }
    }
}

pub(crate) fn explain(
    node: &Node,
    path: &str,
    text: &str,
    mistake: &Mistake,
    what: &str,
    help: &str,
) -> Error {
    let message = match mistake {
        Mistake::NoNumber => format!("\"{text}\" does not begin with a number"),
        Mistake::NoUnit => format!("\"{text}\" has no unit: {what} is wanted"),
        Mistake::WrongUnit(..) => format!("{what} is wanted, found \"{text}\""),
        Mistake::Negative => format!("\"{text}\" is negative: {what} is zero or more"),
        Mistake::TooLarge => format!("\"{text}\" is too large"),
    };
    let error = Error::at(&node.place, path, message);
    match mistake {
        Mistake::WrongUnit(_, Some(meant)) => error.help(&node.place, format!("did you mean `{meant}`?")),
        _ => error,
    }
    .help(&node.place, help)
}

pub(crate) fn wrong_type(node: &Node, path: &str, wanted: &str) -> Error {
    Error::at(
        &node.place,
        path,
        format!("{wanted} is wanted, found {}", node.shown()),
    )
}

pub(crate) fn out_of_range(
    node: &Node,
    path: &str,
    low: impl std::fmt::Display,
    high: impl std::fmt::Display,
) -> Error {
    Error::at(&node.place, path, format!("{} is out of range", node.shown()))
        .help(&node.place, format!("from {low} to {high}"))
}
