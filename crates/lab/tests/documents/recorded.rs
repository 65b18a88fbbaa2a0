//! Tables and paragraphs of the documents whose numbers are those of the record of full runs. A page carries the template of such a text in a
//! comment, and what is made of it stands between the comment and `<!-- end -->`:
//!
//! ```text
//! <!-- from the record of own-x
//! | setting | time over IW10 |
//! |---|---|
//! | 20 Mbit/s | <ratio, spread [rate = 20 Mbit/s]; 2> |
//! -->
//! | setting | time over IW10 |
//! |---|---|
//! | 20 Mbit/s | 0.69 (0.65 to 0.73) |
//! <!-- end -->
//! ```
//!
//! [`Format`] says what may stand behind the semicolon, [`places`] what a template may hold.

use fleetfoot_lab::experiment::record::{Record, Recorded, RecordedCheck};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- from the record of ";
const CLOSE: &str = "-->";
const END: &str = "<!-- end -->";

const FORMATS: &str = "a format is [DIGITS|~DIGITS] [in] [s|ms|us|Mbit/s|kbit/s|kB|MB|%] [comma|alone|interval|least|greatest|range|held|violated] [*|*0], or one of \
                       holds, count, below, above, undecided (see crates/lab/tests/documents/recorded.rs)";

/// How a value is written.
///
/// - A number is the digits after the point, `~2` two significant digits; without either there are three significant digits.
/// - A unit converts the value, which is in s, bit/s, bytes or a share of 1, and is written behind it; after `in` it is not written.
/// - The 95 % interval follows in brackets; `comma`: behind a comma, for what stands in brackets itself; `alone`: without it; `interval`: nothing but the interval.
/// - `*`: the value without its interval, and a star if the interval excludes 1; `*0`: if it excludes 0.
/// - `holds`: whether the check held, was violated or is undecided.
/// - `least`, `greatest`, `range` (`least` to `greatest`): of all checks that a name stands for in which `*` is anything.
/// - `held`, `violated`: how many of these held or were violated; with the unit `%` their share.
/// - `count`, `below`, `above`, `undecided`: how many these are, and how many of them have an interval that is below 1, above 1 or holds 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Format {
    digits: Option<Digits>,
    unit: Option<Unit>,
    bare: bool,
    shown: Shown,
    star: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Digits {
    AfterPoint(usize),
    Significant(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) factor: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Shown {
    #[default]
    WithInterval,
    Comma,
    Alone,
    Interval,
    Holds,
    Least,
    Greatest,
    Range,
    Held,
    Violated,
    Count,
    Below,
    Above,
    Undecided,
}

pub(super) const UNITS: [Unit; 8] = [
    unit("s", 1.0),
    unit("ms", 1e3),
    unit("us", 1e6),
    unit("Mbit/s", 1e-6),
    unit("kbit/s", 1e-3),
    unit("kB", 1e-3),
    unit("MB", 1e-6),
    unit("%", 1e2),
];

const fn unit(name: &'static str, factor: f64) -> Unit {
    Unit { name, factor }
}

#[test]
fn what_the_pages_take_from_the_record_is_current() {
    let record = Record::embedded().unwrap_or_else(|error| panic!("{error}"));
    let docs = PathBuf::from(format!("{}/../../docs", env!("CARGO_MANIFEST_DIR")));
    let mut texts = 0;
    let mut mistakes = Vec::new();
    for file in pages(&docs, &docs) {
        super::edit(&file, |page| match rendered(page, &file, &record) {
            Ok((made, count)) => {
                *page = made;
                texts += count;
            }
            Err(message) => mistakes.push(message),
        });
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(texts > 0, "no page has a template");
}

/// The pages in `folder` and below, as paths from `docs`.
pub(super) fn pages(folder: &Path, docs: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder of the documents can be read");
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            found.extend(pages(&path, docs));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let inside = path.strip_prefix(docs).expect("it is below docs");
            found.push(inside.to_string_lossy().into_owned());
        }
    }
    found.sort();
    found
}

/// The page with what its templates make of the record, and how many templates there are.
fn rendered(page: &str, file: &str, record: &Record) -> Result<(String, usize), String> {
    let mut made = String::new();
    let mut texts = 0;
    let mut lines = (1..).zip(page.split_inclusive('\n'));
    while let Some((first, line)) = lines.next() {
        made.push_str(line);
        let Some(id) = line.strip_prefix(BEGIN) else {
            continue;
        };
        let id = id.trim_end();
        let own = full(record, id).map_err(|message| format!("{file}:{first}: {message}"))?;
        let mut text = String::new();
        loop {
            let Some((number, line)) = lines.next() else {
                return Err(format!("{file}:{first}: the template has no line `{CLOSE}`"));
            };
            made.push_str(line);
            if line.trim_end() == CLOSE {
                break;
            }
            if line.contains(CLOSE) || line.starts_with("<!--") {
                return Err(format!(
                    "{file}:{first}: the template has no line `{CLOSE}`, or line {number} ends it too soon"
                ));
            }
            let filled = places(line, own, record);
            text.push_str(&filled.map_err(|message| format!("{file}:{number}: {message}"))?);
        }
        made.push_str(&text);
        loop {
            match lines.next() {
                Some((_, line)) if line.trim_end() == END => {
                    made.push_str(line);
                    break;
                }
                Some((_, line)) if !line.starts_with("<!--") => {}
                Some(_) | None => {
                    return Err(format!("{file}:{first}: no line `{END}` follows the template"));
                }
            }
        }
        texts += 1;
    }
    Ok((made, texts))
}

fn full<'a>(record: &'a Record, id: &str) -> Result<&'a Recorded, String> {
    record.full(id).ok_or_else(|| {
        let known = record.0.keys().map(String::as_str);
        format!(
            "no full run of `{id}` is recorded; nearest: {}",
            nearest(id, known)
        )
    })
}

/// One line of a template. `<CHECK; FORMAT>` is a value of the experiment of the template, `<ID: CHECK; FORMAT>` one of another experiment, `<verdict>` and
/// `<ID: verdict>` the verdict. Tags of HTML stay as they are; any other `<` must be followed by a space.
fn places(line: &str, own: &Recorded, record: &Record) -> Result<String, String> {
    let mut made = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('<') {
        made.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if rest.starts_with([' ', '=']) {
            made.push('<');
            continue;
        }
        let place =
            ends(rest).ok_or_else(|| format!("`<{}` does not end with `; FORMAT>`", rest.trim_end()))?;
        rest = &rest[place.len() + 1..];
        if tag(place) {
            let _ = write!(made, "<{place}>");
        } else if place == "verdict" {
            made.push_str(&own.verdict.name().replace('-', " "));
        } else if let Some(id) = place.strip_suffix(": verdict") {
            made.push_str(&full(record, id)?.verdict.name().replace('-', " "));
        } else {
            made.push_str(&value(place, own, record)?);
        }
    }
    made.push_str(rest);
    Ok(made)
}

/// What stands in the angle brackets: up to the first `>` before which there is something complete, as names of checks may hold any character.
fn ends(rest: &str) -> Option<&str> {
    let mut whole = rest.match_indices('>').map(|(at, _)| &rest[..at]);
    let first = whole.clone().next()?;
    let complete = |place: &&str| {
        tag(place)
            || *place == "verdict"
            || place.ends_with(": verdict")
            || place
                .rsplit_once("; ")
                .is_some_and(|(_, words)| Format::read(words).is_some())
    };
    Some(whole.find(complete).unwrap_or(first))
}

fn tag(place: &str) -> bool {
    matches!(
        place,
        "br" | "b" | "/b" | "i" | "/i" | "sub" | "/sub" | "sup" | "/sup" | "/a"
    ) || place.starts_with("a ")
}

fn value(place: &str, own: &Recorded, record: &Record) -> Result<String, String> {
    let (name, words) = place
        .rsplit_once("; ")
        .ok_or_else(|| format!("`<{place}>` has no `; FORMAT`: {FORMATS}"))?;
    let format = Format::read(words).ok_or_else(|| format!("`{words}`: {FORMATS}"))?;
    // A name that the experiment has is its own, also where it begins like that of another experiment.
    let (of, name) = match name.split_once(": ") {
        Some((id, of_other)) if !own.checks.contains_key(name) => {
            record.full(id).map_or((own, name), |other| (other, of_other))
        }
        _ => (own, name),
    };
    let checks = found(of, name);
    if checks.is_empty() {
        let known = of.checks.keys().map(String::as_str);
        return Err(format!("no check `{name}`; nearest: {}", nearest(name, known)));
    }
    format.of(&checks).ok_or_else(|| {
        format!(
            "`{name}` stands for {} checks, `{words}` is for one: {FORMATS}",
            checks.len()
        )
    })
}

/// The check `name`, or all checks whose names have anything in place of the stars in it.
fn found<'a>(of: &'a Recorded, name: &str) -> Vec<&'a RecordedCheck> {
    if let Some(check) = of.checks.get(name) {
        return vec![check];
    }
    let fitting = of.checks.iter().filter(|(known, _)| fits(known, name));
    fitting.map(|(_, check)| check).collect()
}

fn fits(known: &str, name: &str) -> bool {
    let mut pieces = name.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(last) = pieces.next_back() else {
        return false;
    };
    let inside = known.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
    let rest = pieces.try_fold(inside, |rest, piece| {
        let rest = rest?;
        let at = rest.find(piece)?;
        Some(Some(&rest[at + piece.len()..]))
    });
    rest.flatten().is_some()
}

/// The three that are most like `name`.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_by_key(|candidate| strsim::levenshtein(name, candidate));
    let first: Vec<String> = known.iter().take(3).map(|name| format!("`{name}`")).collect();
    first.join(", ")
}

impl Format {
    fn read(words: &str) -> Option<Format> {
        let mut format = Format::default();
        let mut words = words.split(' ').peekable();
        format.digits = words.peek().and_then(|word| Digits::read(word));
        if format.digits.is_some() {
            words.next();
        }
        format.bare = words.next_if_eq(&"in").is_some();
        if let Some(unit) = words
            .peek()
            .and_then(|word| UNITS.iter().find(|unit| unit.name == *word))
        {
            format.unit = Some(*unit);
            words.next();
        } else if format.bare {
            return None;
        }
        let shown = match words.peek().copied() {
            Some("comma") => Some(Shown::Comma),
            Some("alone") => Some(Shown::Alone),
            Some("interval") => Some(Shown::Interval),
            Some("holds") => Some(Shown::Holds),
            Some("least") => Some(Shown::Least),
            Some("greatest") => Some(Shown::Greatest),
            Some("range") => Some(Shown::Range),
            Some("held") => Some(Shown::Held),
            Some("violated") => Some(Shown::Violated),
            Some("count") => Some(Shown::Count),
            Some("below") => Some(Shown::Below),
            Some("above") => Some(Shown::Above),
            Some("undecided") => Some(Shown::Undecided),
            _ => None,
        };
        if let Some(shown) = shown {
            format.shown = shown;
            words.next();
        }
        format.star = match words.peek().copied() {
            Some("*") => Some(1.0),
            Some("*0") => Some(0.0),
            _ => None,
        };
        if format.star.is_some() {
            words.next();
            format.shown = Shown::Alone;
        }
        let nothing = words.next().is_none();
        (nothing && format != Format::default()).then_some(format)
    }

    /// The checks in words; none if the format is for one check and there are several.
    fn of(self, checks: &[&RecordedCheck]) -> Option<String> {
        let values = || checks.iter().filter_map(|check| check.measured);
        let least = values().reduce(f64::min);
        let greatest = values().reduce(f64::max);
        let counted = |wanted: fn([f64; 2]) -> bool| {
            let fits = |check: &&&RecordedCheck| check.ci95.is_some_and(wanted);
            checks.iter().filter(fits).count().to_string()
        };
        let judged = |wanted: bool| {
            let judged = checks.iter().filter(|check| check.holds == Some(wanted)).count();
            match self.unit {
                None => judged.to_string(),
                Some(_) => self.one(Some(judged as f64 / checks.len() as f64)),
            }
        };
        let text = match self.shown {
            Shown::Held => judged(true),
            Shown::Violated => judged(false),
            Shown::Count => checks.len().to_string(),
            Shown::Below => counted(|[_, high]| high < 1.0),
            Shown::Above => counted(|[low, _]| low > 1.0),
            Shown::Undecided => counted(|[low, high]| low <= 1.0 && high >= 1.0),
            Shown::Least => self.one(least),
            Shown::Greatest => self.one(greatest),
            Shown::Range => match (least, greatest) {
                (Some(least), Some(greatest)) => self.range(least, greatest) + &self.unit_behind(),
                _ => self.one(None),
            },
            Shown::WithInterval | Shown::Comma | Shown::Alone | Shown::Interval | Shown::Holds => {
                let [check] = checks else { return None };
                self.single(check)
            }
        };
        Some(text)
    }

    fn single(self, check: &RecordedCheck) -> String {
        match (self.shown, check.ci95) {
            (Shown::Holds, _) => String::from(match check.holds {
                Some(true) => "held",
                Some(false) => "violated",
                None => "undecided",
            }),
            (Shown::Interval, Some([low, high])) => self.range(low, high) + &self.unit_behind(),
            (Shown::WithInterval, Some([low, high])) => {
                let value = self.one(check.measured);
                format!("{value} ({})", self.range(low, high))
            }
            (Shown::Comma, Some([low, high])) => {
                let value = self.one(check.measured);
                format!("{value}, {}", self.range(low, high))
            }
            (Shown::Interval, None) => self.one(None),
            (_, ends) => {
                let mut value = self.one(check.measured);
                if let (Some(base), Some([low, high])) = (self.star, ends)
                    && (high < base || low > base)
                {
                    value.push('*');
                }
                value
            }
        }
    }

    fn one(self, value: Option<f64>) -> String {
        value.map_or_else(
            || String::from("-"),
            |value| self.number(value) + &self.unit_behind(),
        )
    }

    fn range(self, low: f64, high: f64) -> String {
        format!("{} to {}", self.number(low), self.number(high))
    }

    fn unit_behind(self) -> String {
        let unit = self.unit.filter(|_| !self.bare);
        unit.map_or_else(String::new, |unit| format!(" {}", unit.name))
    }

    fn number(self, value: f64) -> String {
        let value = value * self.unit.map_or(1.0, |unit| unit.factor);
        let digits = match self.digits.unwrap_or(Digits::Significant(3)) {
            Digits::AfterPoint(digits) => digits,
            Digits::Significant(digits) => after_point(value, digits),
        };
        let text = format!("{value:.digits$}");
        let nothing = text
            .trim_start_matches('-')
            .chars()
            .all(|digit| matches!(digit, '0' | '.'));
        text.trim_start_matches(if nothing { "-" } else { "" }).to_owned()
    }
}

impl Digits {
    fn read(word: &str) -> Option<Digits> {
        match word.strip_prefix('~') {
            Some(digits) => digits.parse().ok().map(Digits::Significant),
            None => word.parse().ok().map(Digits::AfterPoint),
        }
    }
}

/// How many digits after the point give `significant` ones.
fn after_point(value: f64, significant: usize) -> usize {
    let magnitude = if value.abs() < 1e-12 {
        0.0
    } else {
        value.abs().log10().floor()
    };
    (significant as f64 - 1.0 - magnitude).clamp(0.0, 6.0) as usize
}

/// A record of two experiments; the names are as odd as real ones.
fn example() -> Record {
    let file = |checks: &str| format!("[full]\nverdict = \"partly\"\nseeds = 3\n[full.checks]\n{checks}");
    let own = file(
        "'ratio [queue = { kind = \"drop-tail\", limit = \"25 packets\" }, a <= b; c]' = { measured = 0.8349, ci95 = [0.71, 0.9349], holds = true }\n\
         \"wait\" = { measured = 0.01234, ci95 = [-0.0001, 0.02] }\n\
         \"A1: goodput\" = { measured = 2346000.0 }\n\
         \"never\" = {}\n\
         \"cell [1]\" = { measured = 0.5, ci95 = [0.4, 0.6] }\n\
         \"cell [2]\" = { measured = 1.5, ci95 = [1.4, 1.6], holds = false }\n\
         \"cell [3]\" = { measured = 1.0, ci95 = [0.9, 1.1] }\n",
    );
    let other = file("\"wait\" = { measured = 7.0 }\n");
    let entries = [("own-x", own), ("own-y", other)].map(|(id, text)| {
        let parsed = fleetfoot_lab::experiment::record::OfExperiment::parse(&text);
        (id.to_owned(), parsed.expect("the example can be read"))
    });
    Record(entries.into())
}

#[test]
fn a_template_is_filled_in_every_format() {
    let record = example();
    let cases = [
        (
            "<ratio [queue = { kind = \"drop-tail\", limit = \"25 packets\" }, a <= b; c]; 2>",
            "0.83 (0.71 to 0.93)",
        ),
        (
            "<ratio [queue = { kind = \"drop-tail\", limit = \"25 packets\" }, a <= b; c]; 3 *>",
            "0.835*",
        ),
        ("<wait; 2 *>, <wait; 2 *0>", "0.01*, 0.01"),
        ("<cell [3]; 1 *>, <cell [3]; 1 *0>", "1.0, 1.0*"),
        ("<wait; 1 ms>", "12.3 ms (-0.1 to 20.0)"),
        ("(<wait; 1 ms comma>)", "(12.3 ms, -0.1 to 20.0)"),
        ("<wait; 1 in ms alone>", "12.3"),
        ("<wait; 2 interval>", "0.00 to 0.02"),
        (
            "<wait; alone>, <wait; ~2 alone>, <own-y: wait; ~1>",
            "0.0123, 0.012, 7",
        ),
        ("<wait; 0 % alone>", "1 %"),
        ("<A1: goodput; 2 Mbit/s>", "2.35 Mbit/s"),
        ("<own-y: wait; 1 s>", "7.0 s"),
        ("<never; 2>, <never; 2 interval>", "-, -"),
        ("<cell [1]; holds>, <cell [2]; holds>", "undecided, violated"),
        (
            "<cell [*]; count>: <cell [*]; below>, <cell [*]; above>, <cell [*]; undecided>",
            "3: 1, 1, 1",
        ),
        (
            "<ratio*; held>, <cell [*]; held>, <cell [*]; violated>, <cell [*]; 0 % violated>",
            "1, 0, 1, 33 %",
        ),
        (
            "<c*l [*]; count>, <*; count>, <*oo*; count>, <*ell* [2*; 1 range>",
            "3, 7, 1, 1.5 to 1.5",
        ),
        ("<cell [*]; 1 range>, <cell [*]; 2 greatest>", "0.5 to 1.5, 1.50"),
        ("<verdict> and <own-y: verdict>", "partly and partly"),
        ("1 < 2 <= 3<br><a id=\"x\"></a>", "1 < 2 <= 3<br><a id=\"x\"></a>"),
    ];
    for (template, made) in cases {
        let page = format!(
            "before\n<!-- from the record of own-x\n{template}\n-->\nold\n\nold\n<!-- end -->\nafter\n"
        );
        let expected =
            format!("before\n<!-- from the record of own-x\n{template}\n-->\n{made}\n<!-- end -->\nafter\n");
        assert_eq!(rendered(&page, "x.md", &record), Ok((expected.clone(), 1)));
        assert_eq!(rendered(&expected, "x.md", &record), Ok((expected.clone(), 1)));
    }
}

#[test]
fn a_mistake_in_a_template_is_named_with_its_page_and_line() {
    let record = example();
    let cases = [
        (
            "<!-- from the record of own-z\n-->\n<!-- end -->\n",
            "x.md:2: no full run of `own-z` is recorded; nearest: `own-x`",
        ),
        (
            "<!-- from the record of own-x\n<wait; 2>\n",
            "x.md:2: the template has no line `-->`",
        ),
        (
            "<!-- from the record of own-x\na --> b\n",
            "x.md:2: the template has no line `-->`, or line 3",
        ),
        (
            "<!-- from the record of own-x\n<!-- end -->\n",
            "x.md:2: the template has no line `-->`, or line 3",
        ),
        (
            "<!-- from the record of own-x\n-->\ntext\n",
            "x.md:2: no line `<!-- end -->`",
        ),
        (
            "<!-- from the record of own-x\n-->\n<!-- other -->\n<!-- end -->\n",
            "x.md:2: no line `<!-- end -->`",
        ),
        (
            "<!-- from the record of own-x\n\n<wail; 2>\n-->\n",
            "x.md:4: no check `wail`; nearest: `wait`",
        ),
        (
            "<!-- from the record of own-x\n<own-y: wail; 2>\n-->\n",
            "x.md:3: no check `wail`; nearest: `wait`",
        ),
        (
            "<!-- from the record of own-x\n<wait; two>\n-->\n",
            "x.md:3: `two`: a format is",
        ),
        (
            "<!-- from the record of own-x\n<wait; in>\n-->\n",
            "x.md:3: `in`: a format is",
        ),
        (
            "<!-- from the record of own-x\n<wait>\n-->\n",
            "x.md:3: `<wait>` has no `; FORMAT`",
        ),
        (
            "<!-- from the record of own-x\n<wait; 2\n-->\n",
            "x.md:3: `<wait; 2` does not end",
        ),
        (
            "<!-- from the record of own-x\n<cell [*]; 2>\n-->\n",
            "x.md:3: `cell [*]` stands for 3 checks",
        ),
    ];
    for (page, message) in cases {
        let said = rendered(&format!("first\n{page}"), "x.md", &record);
        let said = said.expect_err(page);
        assert!(said.starts_with(message), "{said}");
    }
}
