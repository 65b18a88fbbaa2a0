//! What is said of a name that nothing has.

use crate::mechanisms::ENTRIES;
use crate::scenario::{Error, ErrorKind, Scenario};

/// The name that is nearest to what was written, if one is near.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= name.len() / 2)
        .map(|(_, candidate)| candidate)
}

/// There is no variant called `name` in a file whose variants have these `names`, and no mechanism: the message.
pub fn unknown_variant(name: &str, names: &[String]) -> String {
    let mut message = format!("there is no variant or mechanism called `{name}`");
    let mechanisms = ENTRIES.iter().map(|entry| entry.name);
    if let Some(near) = nearest(name, names.iter().map(String::as_str).chain(mechanisms)) {
        message.push_str(&format!(", did you mean `{near}`?"));
    }
    if !names.is_empty() {
        message.push_str(&format!("; this file has {}", names.join(", ")));
    }
    message.push_str("; `fleetfoot list mechanisms` shows the mechanisms");
    message
}

/// A comparison of `scenario` is to have `name`, which is neither a variant of the file nor mechanisms.
pub(super) fn unknown_in(scenario: &Scenario, name: &str) -> Error {
    let variants = scenario.variants().iter().map(|variant| variant.name.as_str());
    let names: Vec<&str> = variants.chain(ENTRIES.iter().map(|entry| entry.name)).collect();
    let near = names
        .iter()
        .map(|other| (strsim::damerau_levenshtein(name, other), other))
        .min();
    let near = match near {
        Some((distance, other)) if distance <= 3 => format!("; did you mean `{other}`?"),
        _ => String::new(),
    };
    let message = format!(
        "no variant or mechanism is called `{name}`{near} (`fleetfoot list mechanisms` lists them; `a + b` is a and b together)"
    );
    Error::of_file("--only", message).of_kind(ErrorKind::Invalid)
}
