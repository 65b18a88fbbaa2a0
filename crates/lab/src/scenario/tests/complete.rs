//! The reference has every key that the reader takes.

use crate::scenario::keys::{self, Key, Kind, KindTable};
use crate::scenario::{Scenario, reference};
use std::collections::BTreeSet;

/// Adds the names of `keys` and of all below them. Lists of keys that were seen are not looked at again.
fn collect(keys: &'static [Key], seen: &mut BTreeSet<usize>, names: &mut BTreeSet<&'static str>) {
    if !seen.insert(keys.as_ptr() as usize) {
        return;
    }
    for key in keys {
        names.insert(key.name);
        collect_kind(&key.kind, seen, names);
    }
}

fn collect_kind(kind: &Kind, seen: &mut BTreeSet<usize>, names: &mut BTreeSet<&'static str>) {
    match *kind {
        Kind::Table(keys) => collect(keys, seen, names),
        Kind::Tagged(tagged) => collect_tagged(tagged, seen, names),
        Kind::Map(inner) | Kind::List(inner) | Kind::OneOrMore(inner) => collect_kind(inner, seen, names),
        Kind::Either(forms) => forms.iter().for_each(|form| collect_kind(form, seen, names)),
        Kind::Distribution(dimension) => collect_tagged(dimension.distributions(), seen, names),
        _ => {}
    }
}

fn collect_tagged(
    tagged: &'static KindTable,
    seen: &mut BTreeSet<usize>,
    names: &mut BTreeSet<&'static str>,
) {
    collect(tagged.common, seen, names);
    for kind in tagged.kinds {
        collect(kind.keys, seen, names);
    }
}

#[test]
fn the_reference_has_every_key() {
    let (mut seen, mut names) = (BTreeSet::new(), BTreeSet::new());
    collect(keys::FILE, &mut seen, &mut names);
    assert!(names.len() > 150 && names.contains("retransmissions") && names.contains("overhead"));
    let page = reference();
    let missing: Vec<&&str> = names
        .iter()
        .filter(|name| !page.contains(&format!("| `{name}` |")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(
        !page.contains("17976931348623157"),
        "a range without bounds is none"
    );
}

#[test]
fn what_the_reference_shows_is_a_scenario() {
    let page = reference();
    let mut examples = page.split("```toml\n").skip(1);
    let example = examples.next().and_then(|rest| rest.split("```").next());
    let example = example.expect("a graph is shown");
    Scenario::parse("graph.toml", example).unwrap_or_else(|error| panic!("{error}"));
}
