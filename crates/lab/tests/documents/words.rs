//! Words about an interval say what the interval beside them says: what is decided has an interval without 1 (of a ratio) and without 0 (of a difference), what
//! is undecided or within the error has one of them in it. Numbers in pages are renewed by themselves, words around them are not.
//!
//! Only what stands right beside a word is looked at, and only numbers without a unit. A note may say that a check is undecided against a bound of its own; it
//! then names the bound, or puts the number behind a colon.

use super::recorded::pages;
use fleetfoot_lab::experiment::library;
use std::path::PathBuf;

const UNDECIDED: [&str; 6] = [
    "undecided",
    "not decided",
    "nothing that is decided",
    "within error",
    "within the error",
    "no more than the error",
];
const DECIDED: [&str; 2] = ["decided", "decidedly"];
/// "No way is decidedly sooner" says nothing about the next number.
const NEGATIONS: [&str; 7] = ["no", "not", "nothing", "none", "neither", "nowhere", "never"];
/// Behind these the text speaks of something else.
const TURNS: [&str; 7] = ["and", "but", "against", "than", "while", "instead", "nor"];
/// How far behind a word its number may stand, in bytes.
const FAR: usize = 120;

/// `1.08 (0.98 to 1.21)`, `1.08, 0.98 to 1.21` or `1.08 [0.98, 1.21]`, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    from: usize,
    to: usize,
    low: f64,
    high: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Word {
    from: usize,
    to: usize,
    decided: bool,
}

#[test]
fn words_beside_an_interval_say_what_it_says() {
    let root = PathBuf::from(format!("{}/../..", env!("CARGO_MANIFEST_DIR")));
    let docs = root.join("docs");
    let mut files: Vec<PathBuf> = pages(&docs, &docs).iter().map(|page| docs.join(page)).collect();
    files.push(root.join("README.md"));
    let mut looked_at = 0;
    let mut wrong = Vec::new();
    let mut look = |name: &str, text: &str, colon: bool| {
        for block in blocks(text) {
            for (word, interval) in pairs(&block, colon) {
                looked_at += 1;
                if !agrees(word, interval) {
                    let (from, to) = (word.from.min(interval.from), word.to.max(interval.to));
                    wrong.push(format!("{name}: {}", &block[from..to]));
                }
            }
        }
    };
    for file in files {
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        look(&name, &without_comments(&text), true);
    }
    for experiment in library::all().unwrap_or_else(|error| panic!("{error}")) {
        let note = experiment.file.figure.note.as_deref().unwrap_or_default();
        look(&experiment.id, note, false);
    }
    assert!(
        wrong.is_empty(),
        "the words do not say what the interval beside them says:\n{}",
        wrong.join("\n")
    );
    assert!(
        looked_at > 10,
        "{looked_at} words beside an interval were found: the search is broken"
    );
}

fn agrees(word: Word, interval: Interval) -> bool {
    let holds = |value: f64| interval.low <= value && interval.high >= value;
    word.decided != (holds(1.0) || holds(0.0))
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, behind)| behind);
    }
    kept + rest
}

/// Paragraphs, points of a list and rows of a table, each as one line.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['|', '-', '#']) {
            blocks.push(String::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push_str(line);
            block.push(' ');
        }
    }
    blocks
}

/// Each word with the interval right before and right behind it. A colon between them parts them unless `colon`.
fn pairs(block: &str, colon: bool) -> Vec<(Word, Interval)> {
    let (words, intervals) = (words(block), intervals(block));
    let mut pairs = Vec::new();
    for word in &words {
        let before = intervals.iter().rev().find(|interval| interval.to <= word.from);
        if let Some(interval) = before
            && block[interval.to..word.from]
                .chars()
                .all(|letter| " ,()".contains(letter))
        {
            pairs.push((*word, *interval));
        }
        if let Some(interval) = intervals.iter().find(|interval| interval.from >= word.to)
            && !words
                .iter()
                .any(|other| other.from >= word.to && other.from < interval.from)
            && one_thought(&block[word.to..interval.from], colon)
        {
            pairs.push((*word, *interval));
        }
    }
    pairs
}

fn one_thought(between: &str, colon: bool) -> bool {
    let between = between.strip_suffix('(').unwrap_or(between);
    let parted =
        between.contains([';', '|', '(']) || between.contains(". ") || !colon && between.contains(':');
    let mut words = between.split(|letter: char| !letter.is_alphanumeric());
    between.len() <= FAR && !parted && !words.any(|word| TURNS.contains(&word))
}

/// The words about being decided in order.
fn words(block: &str) -> Vec<Word> {
    let all = |list: &[&str], decided: bool| -> Vec<Word> {
        let found = list.iter().flat_map(|phrase| {
            let whole = block.match_indices(phrase).filter(|(at, _)| {
                let letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
                !letter(block[..*at].chars().next_back())
                    && !letter(block[at + phrase.len()..].chars().next())
            });
            whole.map(move |(from, _)| Word {
                from,
                to: from + phrase.len(),
                decided,
            })
        });
        found.collect()
    };
    let undecided = all(&UNDECIDED, false);
    let mut words = all(&DECIDED, true);
    words.retain(|word| {
        let inside = undecided
            .iter()
            .any(|other| other.from <= word.from && word.to <= other.to);
        !inside && !negated(&block[..word.from])
    });
    words.extend(undecided);
    words.sort_by_key(|word| word.from);
    words
}

/// Whether the clause that `before` ends with has a negation.
fn negated(before: &str) -> bool {
    let clause = before
        .rsplit([',', ';', ':', '.', '('])
        .next()
        .unwrap_or_default();
    let mut words = clause.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| NEGATIONS.contains(&word.to_lowercase().as_str()))
}

fn intervals(block: &str) -> Vec<Interval> {
    let mut found: Vec<Interval> = Vec::new();
    for (from, _) in block.char_indices() {
        let begins =
            !block[..from].ends_with(|letter: char| letter.is_alphanumeric() || ".-".contains(letter));
        if !begins || found.last().is_some_and(|interval| from < interval.to) {
            continue;
        }
        found.extend(interval(block, from));
    }
    found
}

/// The interval whose value begins at `from`.
fn interval(block: &str, from: usize) -> Option<Interval> {
    let (_, rest) = number(&block[from..])?;
    let (rest, between) = match rest.strip_prefix(" [") {
        Some(rest) => (rest, ", "),
        None => {
            let opened = [", (", " (", ", "]
                .iter()
                .find_map(|open| rest.strip_prefix(open));
            (opened?, " to ")
        }
    };
    let (low, rest) = number(rest)?;
    let (high, rest) = number(rest.strip_prefix(between)?)?;
    let rest = match between {
        ", " => &rest[rest.find(']')? + 1..],
        _ => rest,
    };
    Some(Interval {
        from,
        to: block.len() - rest.len(),
        low,
        high,
    })
}

/// The number that `text` begins with, and what stands behind it.
fn number(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| {
        text.len()
            - text
                .trim_start_matches(|digit: char| digit.is_ascii_digit())
                .len()
    };
    let sign = usize::from(text.starts_with('-'));
    let whole = sign + digits(&text[sign..]);
    let part = text[whole..].strip_prefix('.').map_or(0, digits);
    let end = if part > 0 { whole + 1 + part } else { whole };
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[test]
fn a_word_is_compared_with_the_interval_right_beside_it() {
    let wrong = |text: &str, colon: bool| {
        let blocks = blocks(&without_comments(text));
        let pairs = blocks.iter().flat_map(|block| pairs(block, colon));
        let judged: Vec<bool> = pairs.map(|(word, interval)| agrees(word, interval)).collect();
        (judged.len(), judged.iter().filter(|agrees| !**agrees).count())
    };
    for text in [
        "decidedly faster for bursts of 20 kB alone (0.96, 0.61 to 1.36; all sizes less)",
        "1.19 (1.10 to 1.33) and, undecided, 1.360 (1.181 to\n1.605) at 500 ms",
        "4 ms at random are decidedly\nlater, 1.00 (0.90 to 1.12).",
        "it changes nothing that is decided: 1.47 (1.21 to 1.77)",
        "later is decided at 80 ms: with IW 20 1.08 (0.98 to 1.21)",
        "bursts take 1.31 (1.11 to 1.62), within error",
        "the share (0.74, 0.62 to 0.90, undecided)",
        "by no more than the error, -0.30 [-0.4, -0.2]",
        "a difference, decided, -0.01 [-0.2, 0.1; copy]",
    ] {
        assert_eq!(wrong(text, true), (1, 1), "{text}");
    }
    for text in [
        "sooner, 0.82 (0.77 to 0.87), decidedly",
        "undecided, 1.04 [0.98, 1.11; other runs]",
        "a difference, decided, -0.26 (-0.37 to -0.17)",
    ] {
        assert_eq!(wrong(text, true), (1, 0), "{text}");
    }
    for text in [
        "no way of spreading is decidedly sooner, 0.99 (0.88 to 1.11)",
        "later at 4, 1.07 (1.03 to 1.12), and undecided at 10",
        "undecided. At 4 ms 1.07 (1.03 to 1.12)",
        "| decided | 0.99 (0.90 to 1.11) |",
        "undecided against 0.9, 0.94 [0.92, 0.98]",
        "undecided, 99.8 % (99.7 to 99.9)",
        "decidedly worse, by up to 29 % (the greatest estimate, 1.43 (0.82 to 2.25))",
        "<!-- undecided, 1.360 (1.181 to 1.605) -->",
    ] {
        assert_eq!(wrong(text, true), (0, 0), "{text}");
    }
    assert_eq!(wrong("undecided: 0.70 [0.66, 0.84]", false), (0, 0));
}
