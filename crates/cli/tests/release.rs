//! One version: that of the workspace stands in the citation, the changelog, the Python package and every manual page.

use std::path::Path;
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The value of the line of `text` that begins with `key`, without quotation marks.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(value.trim().trim_matches('"'))
}

/// Version and date of the newest release that the changelog has: the heading after `## Unreleased`.
fn newest_release(changelog: &str) -> Option<(&str, &str)> {
    let mut headings = changelog.lines().filter_map(|line| line.strip_prefix("## "));
    assert_eq!(
        headings.next(),
        Some("Unreleased"),
        "CHANGELOG.md: the first section is that of the next release"
    );
    let heading = headings.next()?;
    let parts = heading
        .strip_suffix(')')
        .and_then(|heading| heading.split_once(" ("));
    Some(parts.unwrap_or_else(|| panic!("CHANGELOG.md: `## {heading}` is not `## VERSION (YYYY-MM-DD)`")))
}

#[test]
fn the_citation_has_the_version_and_date_of_the_release() {
    let citation = read("CITATION.cff");
    assert_eq!(value(&citation, "version:"), Some(VERSION), "CITATION.cff");
    let changelog = read("CHANGELOG.md");
    let released = newest_release(&changelog);
    assert_eq!(
        value(&citation, "date-released:"),
        released.map(|(_, date)| date),
        "CITATION.cff: the date of the newest release in CHANGELOG.md"
    );
}

#[test]
fn the_newest_release_of_the_changelog_is_the_version() {
    let changelog = read("CHANGELOG.md");
    if let Some((version, date)) = newest_release(&changelog) {
        assert_eq!(version, VERSION, "CHANGELOG.md");
        let digits: Vec<usize> = date.split('-').map(str::len).collect();
        assert_eq!(digits, [4, 2, 2], "CHANGELOG.md: the date of {version} is {date}");
    }
}

#[test]
fn the_python_package_takes_its_version_from_the_workspace() {
    let project = read("pyproject.toml");
    assert_eq!(
        value(&project, "dynamic ="),
        Some("[\"version\"]"),
        "pyproject.toml"
    );
    assert_eq!(value(&project, "version ="), None, "pyproject.toml");
    let python = read("crates/python/Cargo.toml");
    assert_eq!(
        value(&python, "version.workspace ="),
        Some("true"),
        "crates/python"
    );
}

fn page(verb: Option<&str>) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .args(["completions", "man"])
        .args(verb)
        .output()
        .expect("the program was built");
    assert!(output.status.success(), "completions man {verb:?}");
    String::from_utf8(output.stdout).expect("a manual page is UTF-8")
}

#[test]
fn every_manual_page_has_the_version() {
    let all = page(None);
    let verbs: Vec<String> = all
        .lines()
        .filter_map(|line| line.strip_prefix("fleetfoot\\-")?.strip_suffix("(1)"))
        .map(str::to_owned)
        .collect();
    assert!(verbs.len() > 15, "the main page names {verbs:?}");
    let pages = verbs
        .iter()
        .map(|verb| (format!("FLEETFOOT-{}", verb.to_uppercase()), page(Some(verb))));
    for (title, text) in pages.chain([("FLEETFOOT".to_owned(), all)]) {
        let header = value(&text, ".TH ").unwrap_or_else(|| panic!("{title}: no header"));
        assert!(
            header.starts_with(&format!("{title} 1 ")),
            "{title}: the header is `{header}`"
        );
        assert!(
            header.contains(&format!("\"Fleetfoot {VERSION}\"")),
            "{title}: the header is `{header}`"
        );
    }
}
