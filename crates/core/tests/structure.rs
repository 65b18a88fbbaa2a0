//! The rooms of `tcp`: few doors on the ground floor, and no circle of files that import each other in which a reader gets lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Sources below `folder` by their place in it, without tests.
fn sources(folder: &Path, place: &str, all: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if name == "tests" {
            continue;
        }
        let inside = if place.is_empty() {
            name.clone()
        } else {
            format!("{place}::{name}")
        };
        if path.is_dir() {
            sources(&path, &inside, all);
        } else {
            let text = std::fs::read_to_string(&path).expect("a source");
            let text = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            all.insert(if name == "mod" { place.to_owned() } else { inside }, text);
        }
    }
}

/// The files that a source imports from, other than the room's own `mod`.
fn imports(text: &str, all: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    for line in code {
        for part in line.split("crate::tcp::").skip(1) {
            let end = part
                .find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == ':'))
                .unwrap_or(part.len());
            let mut path = part[..end].trim_end_matches(':');
            while !path.is_empty() && !all.contains_key(path) {
                path = path.rsplit_once("::").map_or("", |(before, _)| before);
            }
            if !path.is_empty() {
                found.insert(path.to_owned());
            }
        }
    }
    found
}

#[test]
fn no_circle_of_more_than_four_files_and_twelve_entries() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tcp");
    let entries = std::fs::read_dir(&root).expect("the folder").count();
    assert!(entries <= 12, "{entries} entries in src/tcp");
    let mut all = BTreeMap::new();
    sources(&root, "", &mut all);
    assert!(all.len() > 50, "{} sources", all.len());
    let direct: BTreeMap<&str, BTreeSet<String>> = all
        .iter()
        .map(|(place, text)| (place.as_str(), imports(text, &all)))
        .collect();
    let reached = |from: &str| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(place) = left.pop() {
            for next in direct.get(place.as_str()).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    left.push(next.clone());
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&str, BTreeSet<String>> =
        direct.keys().map(|&place| (place, reached(place))).collect();
    for (place, seen) in &reach {
        let circle: Vec<&String> = seen
            .iter()
            .filter(|other| reach[other.as_str()].contains(*place))
            .collect();
        assert!(circle.len() <= 4, "these import each other: {circle:?}");
    }
}
