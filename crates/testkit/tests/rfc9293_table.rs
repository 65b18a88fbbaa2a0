//! Every MUST and SHOULD of RFC 9293 has a test that names it, or a reason; `docs/rfc9293.md` is the table.
//!
//! A test names requirements on a line `/// RFC 9293: MUST-1, SHLD-2` above its `#[test]`. `FLEETFOOT_BLESS=1` writes the table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Why a requirement has no test.
const REASONS: [(&str, &str); 6] = [
    (
        "MUST-51",
        "Source routes are not offered: networks drop packets that carry one (RFC 7126 4.3).",
    ),
    (
        "MUST-52",
        "Source routes are not offered: networks drop packets that carry one (RFC 7126 4.3).",
    ),
    (
        "MUST-53",
        "Source routes are not offered: networks drop packets that carry one (RFC 7126 4.3).",
    ),
    (
        "SHLD-13",
        "Advice to applications; nothing here uses urgent data.",
    ),
    (
        "SHLD-23",
        "Advice to applications; nothing here changes the traffic class of a connection.",
    ),
    ("SHLD-24", "Source routes are not offered."),
];

/// Requirements whose mechanism is not there yet. Empty is the aim; a test that appears makes an entry an error.
const MISSING: &[&str] = &[];

struct Requirement {
    id: String,
    level: String,
    section: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn requirements() -> Vec<Requirement> {
    let text = std::fs::read_to_string(root().join("specs/rfc9293-requirements.csv"))
        .expect("the list of requirements");
    text.lines()
        .skip(1)
        .map(|line| {
            let fields = fields(line);
            Requirement {
                id: fields[0].clone(),
                level: fields[1].clone(),
                section: fields[2].clone(),
                text: fields[4].clone(),
            }
        })
        .collect()
}

/// The fields of a line of CSV; quotes hold commas.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().expect("never empty").push(letter),
        }
    }
    fields
}

/// Every Rust source below `at`.
fn sources(at: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(at)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Tests by the requirement they name.
fn tests() -> BTreeMap<String, Vec<String>> {
    let mut files = Vec::new();
    for folder in ["core", "testkit", "drill", "live", "lab", "sim"] {
        let folder = root().join("crates").join(folder);
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    let mut tests: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source file");
        let name = file
            .strip_prefix(root())
            .expect("inside")
            .to_string_lossy()
            .replace('\\', "/");
        let mut named: Vec<String> = Vec::new();
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            if let Some(ids) = line.strip_prefix("/// RFC 9293: ") {
                named.extend(ids.split(", ").map(|id| id.trim_end_matches('.').to_owned()));
            } else if line == "#[test]" {
                is_test = true;
            } else if let Some(function) = line.strip_prefix("fn ") {
                let function = function.split('(').next().unwrap_or_default();
                assert!(
                    named.is_empty() || is_test,
                    "{name}: {function} names requirements and is no test"
                );
                for id in named.drain(..) {
                    tests
                        .entry(id)
                        .or_default()
                        .push(format!("`{}` {function}", name.trim_start_matches("crates/")));
                }
                is_test = false;
            }
        }
    }
    tests
}

#[test]
fn every_must_and_should_has_a_test_or_a_reason() {
    let (requirements, tests) = (requirements(), tests());
    for id in tests.keys() {
        assert!(
            requirements.iter().any(|requirement| requirement.id == *id),
            "{id} is not in RFC 9293"
        );
    }
    let mut counts = BTreeMap::new();
    for requirement in &requirements {
        let (id, level) = (requirement.id.as_str(), requirement.level.as_str());
        let tested = tests.contains_key(id);
        let reason = REASONS.iter().any(|(of, _)| *of == id);
        let missing = MISSING.contains(&id);
        assert!(
            u8::from(tested) + u8::from(reason) + u8::from(missing) <= 1,
            "{id} has both a test and a reason"
        );
        assert!(
            level == "MAY" || tested || reason || missing,
            "{id} has neither a test nor a reason: {}",
            requirement.text
        );
        let (done, all) = counts.entry(level).or_insert((0, 0));
        *done += u32::from(tested);
        *all += 1;
    }
    println!("tested by name: {counts:?}");
    assert!(counts["MUST"].0 >= 66 && counts["SHOULD"].0 >= 28, "{counts:?}");
    assert!(
        counts["MUST"].0 + MISSING.len() as u32 >= 66 && counts["SHOULD"].0 + MISSING.len() as u32 >= 28,
        "{counts:?}"
    );
}

#[test]
fn the_table_is_current() {
    let tests = tests();
    let mut page = String::from(
        "# RFC 9293, requirement by requirement\n\nGenerated by `crates/testkit/tests/rfc9293_table.rs`, which fails when a MUST or SHOULD has neither a test nor a reason.\n\
         Identifiers are those of the RFC's appendix B; the words are ours. A test names its requirements in its comment.\n\n| id | section | requirement | tests, or why there is none |\n|---|---|---|---|\n",
    );
    for requirement in requirements() {
        let id = requirement.id.as_str();
        let where_to = match (tests.get(id), REASONS.iter().find(|(of, _)| *of == id)) {
            (Some(tests), _) => tests.join("<br>"),
            (None, Some((_, reason))) => (*reason).to_owned(),
            (None, None) if MISSING.contains(&id) => "Not there yet.".to_owned(),
            (None, None) => "Optional.".to_owned(),
        };
        writeln!(
            page,
            "| {id} | {} | {} | {where_to} |",
            requirement.section, requirement.text
        )
        .expect("a string");
    }
    let path = root().join("docs/rfc9293.md");
    if std::env::var_os("FLEETFOOT_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the table is written");
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        current == page,
        "docs/rfc9293.md is stale: FLEETFOOT_BLESS=1 cargo test -p fleetfoot-testkit --test rfc9293_table"
    );
}
