//! What sources and pages cite is in the tree: rules of our own stand in `docs/design`, at an anchor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folders of text that people write; what a build leaves behind is elsewhere.
const FOLDERS: &[&str] = &[
    "bench",
    "conformance",
    "crates",
    "docs",
    "examples",
    "experiments",
    "fuzz",
    "scripts",
    "specs",
    "web",
];
/// Files beside those folders.
const FILES: &[&str] = &["CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "README.md"];
/// Documents that were never in the tree, by the words that cited them. Written in two parts, or this file would cite them.
const FOREIGN: &[[&str; 2]] = &[
    ["router ", "digest"],
    ["endpoint ", "digest"],
    ["the ", "digest"],
    ["engine ", "rule"],
    ["specs/", "engine.md"],
    ["specs/", "endpoint.md"],
    ["specs/", "live.md"],
    ["specs/", "router.md"],
];

#[test]
fn nothing_cites_a_document_that_is_not_here() {
    let mut found = Vec::new();
    for (path, text) in texts() {
        for (number, line) in text.lines().enumerate() {
            let lower = line.to_lowercase();
            let foreign = FOREIGN.iter().any(|parts| lower.contains(&parts.concat()));
            if foreign || cites_a_decision(line) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert!(
        found.is_empty(),
        "rules of our own stand in docs/design:\n{}",
        found.join("\n")
    );
}

#[test]
fn every_rule_that_is_cited_exists() {
    let anchors = anchors();
    let mut cited = 0;
    for (path, text) in texts() {
        for (page, anchor) in citations(&text) {
            cited += 1;
            let known = anchors
                .get(page)
                .unwrap_or_else(|| panic!("{}: there is no docs/design/{page}", path.display()));
            assert!(
                anchor.is_none_or(|anchor| known.contains(anchor)),
                "{}: docs/design/{page} has no anchor {anchor:?}",
                path.display()
            );
        }
    }
    assert!(cited > 100, "{cited} citations were found: the search is broken");
    let index = std::fs::read_to_string(root().join("docs/README.md")).expect("docs/README.md");
    for page in anchors.keys() {
        assert!(
            index.contains(&format!("(design/{page})")),
            "docs/README.md does not list design/{page}"
        );
    }
}

/// Whether a line cites a numbered decision: D, a hyphen and digits as a word.
fn cites_a_decision(line: &str) -> bool {
    line.match_indices("D-").any(|(at, _)| {
        let word_begins = !line[..at].ends_with(|c: char| c.is_alphanumeric() || "-_/.".contains(c));
        let rest = line[at + 2..].trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = line.len() - at - 2 - rest.len();
        let word_ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
        word_begins && word_ends && (1..=2).contains(&digits)
    })
}

/// Pages and anchors of the form `docs/design/PAGE.md#ANCHOR`, and of links between pages.
fn citations(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    text.split("design/").skip(1).filter_map(|rest| {
        let end = rest.find(".md")? + 3;
        let page = &rest[..end];
        if !page
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b == b'-' || b == b'.')
        {
            return None;
        }
        let anchor = rest[end..].strip_prefix('#').map(|anchor| {
            let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            anchor.split(|c| !word(c)).next().unwrap_or_default()
        });
        Some((page, anchor))
    })
}

/// Anchors of each page in `docs/design`.
fn anchors() -> BTreeMap<String, BTreeSet<String>> {
    let mut pages = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("docs/design")).expect("docs/design") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a page");
        let mut anchors = BTreeSet::new();
        for rest in text.split("<a id=\"").skip(1) {
            let name = rest.split('"').next().unwrap_or_default();
            assert!(
                anchors.insert(name.to_owned()),
                "{}: {name} twice",
                path.display()
            );
        }
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        for link in text.split("](").skip(1) {
            if let Some(anchor) = link.strip_prefix('#') {
                let anchor = anchor.split(')').next().unwrap_or_default();
                assert!(
                    text.contains(&format!("<a id=\"{anchor}\">")),
                    "{name} has no anchor {anchor}"
                );
            }
        }
        pages.insert(name, anchors);
    }
    pages
}

/// Every text file of the tree that people write.
fn texts() -> Vec<(PathBuf, String)> {
    let mut paths: Vec<PathBuf> = FILES.iter().map(|file| root().join(file)).collect();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let generated = ["target", "assets", "node_modules"]
                .iter()
                .any(|name| path.ends_with(name));
            if path.is_dir() && !generated {
                folders.push(path);
            } else if !generated {
                paths.push(path);
            }
        }
    }
    let read = |path: PathBuf| std::fs::read_to_string(&path).ok().map(|text| (path, text));
    paths.into_iter().filter_map(read).collect()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
