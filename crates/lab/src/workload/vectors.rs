//! Connection vectors: what the two ends of a TCP connection said and how long each waited, as tmix writes them.
//!
//! One connection is a few lines. Times are in microseconds, sizes in bytes:
//!
//! ```text
//! SEQ 6851 1 21217 555382      start, number of exchanges, two identification numbers
//! w 64800 6432                 largest windows: of the end that opened, of the other
//! r 1176194                    smallest round-trip time; 0: not known
//! l 0.000000 0.000000          loss rates: from the end that opened, to it
//! > 245                        the opener says 245 bytes
//! t 51257                      the other end waits after they arrived
//! < 510                        and answers 510 bytes
//! t 6304943                    before the connection is closed
//! ```
//!
//! After two units in the same direction `t` counts from when the first was sent. `CONC start n m id id` begins a connection
//! whose ends speak independently: `c> 222`, `t> 62436302`, `c< 726`, `t< 62400173`.
//!
//! **Source.** Weigle, Adurthi, Hernandez-Campos, Jeffay and Smith, Tmix, CCR 36(3), 2006; the ns-2 manual, 44.2: both the
//! original and the alternate format (`S`, `C`, `I`, `A`) are read, the original one is written.
//! **Deviations.** A `t` before the first unit is the time from the handshake to it; `r 0` says that the round-trip time
//! is not known; the first identification number of files that we write is that of the host that opened. Where the counts in the first
//! line are not those of the units behind it, the units count, and a note reports it. In the alternate format a wait counts from what came before it, whichever of the two fields it is in.

use crate::input;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// One connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vector {
    /// When it begins.
    pub start_us: u64,
    /// The first identification number: in our files, of the host that opened.
    pub host: u64,
    /// The second.
    pub id: u64,
    /// Largest windows in bytes: of the end that opened, of the other.
    pub windows: [u64; 2],
    /// Smallest round-trip time; 0: not known.
    pub rtt_us: u64,
    /// Loss rates: from the end that opened, to it.
    pub loss: [f64; 2],
    /// Both ends speak independently.
    pub concurrent: bool,
    /// What is said, in order; of a concurrent connection the order between the ends means nothing.
    pub units: Vec<Unit>,
}

/// What one end says at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Whether the end that opened says it.
    pub opener: bool,
    /// Wait before it.
    pub wait_us: u64,
    /// Bytes; 0: this end closes.
    pub bytes: u64,
}

impl Vector {
    /// Payload bytes from the end that opened, and to it.
    pub fn bytes(&self) -> [u64; 2] {
        [true, false].map(|opener| {
            let own = self.units.iter().filter(|unit| unit.opener == opener);
            own.map(|unit| unit.bytes).sum()
        })
    }

    /// What the first line says of it: exchanges, or units of the opener and of the other end.
    fn counts(&self) -> [u64; 2] {
        let said = |opener| {
            let own = self.units.iter().filter(|unit| unit.opener == opener);
            own.filter(|unit| unit.bytes > 0).count() as u64
        };
        match self.concurrent {
            true => [said(true), said(false)],
            false => [self.exchanges() as u64, 0],
        }
    }

    /// Exchanges: a unit of the opener with the answer to it, or a unit of the other end that answers none.
    pub fn exchanges(&self) -> usize {
        let mut asked = false;
        let said = self.units.iter().filter(|unit| unit.bytes > 0);
        said.filter(|unit| {
            let answer = !unit.opener && asked;
            asked = unit.opener;
            !answer
        })
        .count()
    }
}

impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Vector {
            start_us, host, id, ..
        } = self;
        match (self.concurrent, self.counts()) {
            (true, [opener, other]) => writeln!(f, "CONC {start_us} {opener} {other} {host} {id}")?,
            (false, [exchanges, _]) => writeln!(f, "SEQ {start_us} {exchanges} {host} {id}")?,
        }
        writeln!(f, "w {} {}", self.windows[0], self.windows[1])?;
        writeln!(f, "r {}", self.rtt_us)?;
        writeln!(f, "l {:.6} {:.6}", self.loss[0], self.loss[1])?;
        let mut first = [true; 2];
        for unit in &self.units {
            let arrow = if unit.opener { '>' } else { '<' };
            let side = if self.concurrent {
                usize::from(unit.opener)
            } else {
                0
            };
            let begins = std::mem::replace(&mut first[side], false);
            // A wait stands between two units; before the first and after the last only if there is one.
            if unit.wait_us > 0 || !begins && unit.bytes > 0 {
                match self.concurrent {
                    true => writeln!(f, "t{arrow} {}", unit.wait_us)?,
                    false => writeln!(f, "t {}", unit.wait_us)?,
                }
            }
            if unit.bytes > 0 {
                match self.concurrent {
                    true => writeln!(f, "c{arrow} {}", unit.bytes)?,
                    false => writeln!(f, "{arrow} {}", unit.bytes)?,
                }
            }
        }
        Ok(())
    }
}

/// Reads a file of connection vectors; those that say nothing are left out.
///
/// # Errors
/// A sentence that names the file, and the line that is wrong.
pub fn read(path: &Path) -> Result<Vec<Vector>, String> {
    let file = input::open(path, input::MOST_FLOWS)
        .map_err(|error| format!("cannot read {}: {}", path.display(), input::reason(&error)))?;
    let mut vectors = Vec::new();
    read_from(BufReader::new(file), |vector| vectors.push(vector))
        .map_err(|message| format!("{}: {message}", path.display()))?;
    if vectors.is_empty() {
        return Err(format!(
            "{}: the file has no connection with data",
            path.display()
        ));
    }
    Ok(vectors)
}

/// What is to be known of a file that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Connections that say nothing: they are left out.
    pub silent: u64,
    /// Connections of which the first line announces another number of exchanges or units than there are.
    pub miscounted: u64,
    /// The first of them, in words.
    pub first: Option<String>,
}

/// Reads connection vectors one by one; those that say nothing are left out.
///
/// # Errors
/// A sentence that names the line.
pub fn read_from(text: impl BufRead, mut take: impl FnMut(Vector)) -> Result<Findings, String> {
    let mut parser = Parser::default();
    let mut findings = Findings::default();
    let mut finished = |ended: Option<(Vector, Announced)>| {
        let Some((vector, announced)) = ended else { return };
        let counts = vector.counts();
        if counts != announced.counts {
            findings.miscounted += 1;
            let ([one, other], [found, found_other]) = (announced.counts, counts);
            let line = announced.line;
            findings.first.get_or_insert_with(|| match vector.concurrent {
                true => {
                    format!("line {line}: {one} and {other} units announced, {found} and {found_other} there")
                }
                false => format!(
                    "line {line}: {one} exchange{} announced, {found} there",
                    if one == 1 { "" } else { "s" }
                ),
            });
        }
        match vector.units.iter().any(|unit| unit.bytes > 0) {
            true => take(vector),
            false => findings.silent += 1,
        }
    };
    for (number, line) in text.lines().enumerate() {
        let line = line.map_err(|error| format!("line {}: {error}", number + 1))?;
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let before = parser
            .line(line, number + 1)
            .map_err(|message| format!("line {}: {message}", number + 1))?;
        finished(before);
    }
    finished(parser.end());
    Ok(findings)
}

/// Whether a text begins like a file of connection vectors.
pub fn looks_like_vectors(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n');
    let first = lines.find(|line| !line.is_empty() && line[0] != b'#' && !line.trim_ascii().is_empty());
    let word = first.and_then(|line| line.split(u8::is_ascii_whitespace).next());
    matches!(word, Some(b"SEQ" | b"CONC" | b"S" | b"C"))
}

/// The first line of a connection.
#[derive(Clone, Copy, Default)]
struct Announced {
    counts: [u64; 2],
    line: usize,
}

#[derive(Default)]
struct Parser {
    vector: Option<Vector>,
    announced: Announced,
    /// Waits that belong to the next unit: of the end that did not open and of the one that did; a sequential connection
    /// uses the first.
    waits: [Option<u64>; 2],
}

impl Parser {
    /// Takes a line; returns the connection that it ends.
    fn line(&mut self, line: &str, at: usize) -> Result<Option<(Vector, Announced)>, String> {
        let mut words = line.split_ascii_whitespace();
        let word = words.next().unwrap_or("");
        let mut number = |what: &str| number(words.next(), what);
        if let "SEQ" | "S" | "CONC" | "C" = word {
            let start_us = number("a start time in microseconds")?;
            let mut counts = [number("a number of exchanges")?, 0];
            let concurrent = word.starts_with('C');
            if concurrent {
                counts[1] = number("a second number of units")?;
            }
            // Some files have fewer identification numbers.
            let host = number("").unwrap_or(0);
            let id = number("").unwrap_or(host);
            let before = self.end();
            self.announced = Announced { counts, line: at };
            self.vector = Some(Vector {
                start_us,
                host,
                id,
                concurrent,
                ..Vector::default()
            });
            return Ok(before);
        }
        let Some(vector) = &mut self.vector else {
            return Err(format!(
                "a connection begins with `SEQ` or `CONC` (or `S`, `C`), not with `{word}`"
            ));
        };
        let concurrent = vector.concurrent;
        let mut say = |waits: &mut [Option<u64>; 2], opener: bool, bytes: u64| {
            let wait = waits[usize::from(concurrent && opener)].take();
            vector.units.push(Unit {
                opener,
                wait_us: wait.unwrap_or(0),
                bytes,
            });
        };
        match (word, concurrent) {
            ("w", _) => vector.windows = [number("a window")?, number("a second window")?],
            ("r", _) => {
                let rtt_us = number("a round-trip time in microseconds")?;
                if rtt_us > MOST_RTT_US {
                    return Err(format!(
                        "a round-trip time of {rtt_us} microseconds is more than an hour"
                    ));
                }
                vector.rtt_us = rtt_us;
            }
            ("l", _) => vector.loss = [rate(words.next())?, rate(words.next())?],
            (">" | "<", false) => say(&mut self.waits, word == ">", number("a size in bytes")?),
            ("c>" | "c<", true) => say(&mut self.waits, word == "c>", number("a size in bytes")?),
            ("t", false) => self.wait(0, number("a time in microseconds")?),
            ("t>" | "t<", true) => self.wait(usize::from(word == "t>"), number("a time in microseconds")?),
            ("I" | "A", _) => {
                let waits = [number("a time after sending")?, number("a time after receiving")?];
                let bytes = number("a size in bytes")?;
                self.waits[usize::from(concurrent && word == "I")] = Some(waits[0].max(waits[1]));
                say(&mut self.waits, word == "I", bytes);
            }
            (">" | "<" | "t", true) => {
                return Err(format!(
                    "`{word}` is for sequential connections; this one is `CONC`"
                ));
            }
            ("c>" | "c<" | "t>" | "t<", false) => {
                return Err(format!(
                    "`{word}` is for concurrent connections; this one is `SEQ`"
                ));
            }
            _ => return Err(format!("`{word}` is none of `SEQ CONC w r l > < t c> c< t> t<`")),
        }
        Ok(None)
    }

    /// Two waits in a row are one.
    fn wait(&mut self, side: usize, time_us: u64) {
        let before = self.waits[side].unwrap_or(0);
        self.waits[side] = Some(before.saturating_add(time_us));
    }

    /// The connection ends here; what waits last closes it.
    fn end(&mut self) -> Option<(Vector, Announced)> {
        let mut vector = self.vector.take()?;
        let waits = std::mem::take(&mut self.waits);
        let last = |opener: bool| {
            let mut own = vector.units.iter().rev();
            own.find(|unit| !vector.concurrent || unit.opener == opener)
                .copied()
        };
        let ends: Vec<Unit> = [false, true]
            .into_iter()
            .zip(waits)
            .filter_map(|(opener, wait)| {
                let last = last(opener)?;
                Some(Unit {
                    opener: last.opener,
                    wait_us: wait?,
                    bytes: 0,
                })
            })
            .collect();
        vector.units.extend(ends);
        Some((vector, self.announced))
    }
}

fn number(word: Option<&str>, what: &str) -> Result<u64, String> {
    let Some(word) = word else {
        return Err(format!("{what} is missing"));
    };
    let whole = word.parse::<u64>().ok();
    let parsed = whole.or_else(|| {
        let value = word.parse::<f64>().ok()?;
        (value.is_finite() && value >= 0.0).then_some(libm::round(value) as u64)
    });
    parsed
        .filter(|value| *value <= MOST)
        .ok_or_else(|| format!("\"{word}\" is not {what}"))
}

fn rate(word: Option<&str>) -> Result<f64, String> {
    let word = word.ok_or("a loss rate is missing")?;
    let rate = word.parse::<f64>().ok();
    rate.filter(|rate| (0.0..=1.0).contains(rate))
        .ok_or_else(|| format!("\"{word}\" is not a loss rate from 0 to 1"))
}

/// Longest round-trip time: an hour.
const MOST_RTT_US: u64 = 3_600_000_000;

/// Largest number: 35 years in microseconds, a pebibyte.
const MOST: u64 = 1 << 50;

#[cfg(test)]
mod tests {
    use super::{Findings, Unit, Vector, looks_like_vectors, read_from};
    use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};

    const SEQUENTIAL: &str = "SEQ 6851 1 21217 555382       # starts at 6.851 ms and contains 1 exchange\n\
        w 64800 6432\nr 1176194\nl 0.000000 0.000000\n> 245\nt 51257\n< 510\nt 6304943\n";
    const CONCURRENT: &str = "CONC 1429381 2 2 26876 793318\nw 65535 5840\nr 36556\nl 0.000000 0.010000\n\
        c> 222\nt> 62436302\nc< 726\nt< 62400173\nc> 16\nt> 725\nc< 84\nt< 130\n";

    fn parse(text: &str) -> Result<Vec<Vector>, String> {
        let mut vectors = Vec::new();
        read_from(text.as_bytes(), |vector| vectors.push(vector))?;
        Ok(vectors)
    }

    fn unit(opener: bool, wait_us: u64, bytes: u64) -> Unit {
        Unit {
            opener,
            wait_us,
            bytes,
        }
    }

    #[test]
    fn the_examples_of_the_manual_are_read() {
        let vectors = parse(&format!("{SEQUENTIAL}\n{CONCURRENT}")).expect("vectors");
        let [one, two] = &vectors[..] else {
            panic!("two connections")
        };
        assert_eq!(
            (one.start_us, one.host, one.id, one.rtt_us),
            (6851, 21217, 555_382, 1_176_194)
        );
        assert_eq!(one.windows, [64_800, 6_432]);
        assert!(!one.concurrent && two.concurrent);
        // The end that spoke last closes.
        assert_eq!(
            one.units,
            [
                unit(true, 0, 245),
                unit(false, 51_257, 510),
                unit(false, 6_304_943, 0)
            ]
        );
        assert_eq!(one.bytes(), [245, 510]);
        assert_eq!(two.loss, [0.0, 0.01]);
        let said = |opener| {
            two.units
                .iter()
                .filter(move |unit| unit.opener == opener)
                .copied()
        };
        assert!(said(true).eq([unit(true, 0, 222), unit(true, 62_436_302, 16), unit(true, 725, 0)]));
        assert!(said(false).eq([
            unit(false, 0, 726),
            unit(false, 62_400_173, 84),
            unit(false, 130, 0)
        ]));
    }

    #[test]
    fn the_alternate_format_says_the_same() {
        let text = "S 6851 1 21217 555382\nw 64800 6432\nr 1176194\nl 0 0\nI 0 0 245\nA 0 51257 510\nA 6304943 0 0\n";
        assert_eq!(parse(text), parse(SEQUENTIAL));
        let text = "C 1429381 2 2 26876 793318\nw 65535 5840\nr 36556\nl 0 0.01\nI 0 0 222\nA 0 0 726\nI 62436302 0 16\n\
                    A 62400173 0 84\nA 130 0 0\nI 725 0 0\n";
        assert_eq!(parse(text), parse(CONCURRENT));
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, said) in [
            ("> 5\n", "line 1: a connection begins with `SEQ`"),
            ("SEQ\n", "line 1: a start time in microseconds is missing"),
            ("SEQ 0 1 1 1\n> many\n", "line 2: \"many\" is not a size in bytes"),
            (
                "SEQ 0 1 1 1\nc> 3\n",
                "line 2: `c>` is for concurrent connections",
            ),
            (
                "CONC 0 1 1 1 1\n\n# x\nt 3\n",
                "line 4: `t` is for sequential connections",
            ),
            (
                "SEQ 0 1 1 1\nr 99999999999999\n",
                "line 2: a round-trip time of 99999999999999 microseconds is more than an hour",
            ),
            ("SEQ 0 1 1 1\nl 2 0\n", "line 2: \"2\" is not a loss rate"),
            ("SEQ 0 1 1 1\n> -4\n", "line 2: \"-4\" is not a size"),
            ("SEQ 0 1 1 1\nfoo\n", "line 2: `foo` is none of"),
        ] {
            let message = parse(text).expect_err(text);
            assert!(message.starts_with(said), "{message}");
        }
    }

    #[test]
    fn connections_without_data_are_counted() {
        let mut taken = 0;
        let found = read_from("SEQ 0 0 1 1\nw 1 1\nSEQ 5 1 1 1\n> 1\n".as_bytes(), |_| {
            taken += 1;
        });
        assert_eq!((found.map(|found| found.silent), taken), (Ok(1), 1));
    }

    #[test]
    fn counts_that_are_not_those_of_the_units_are_reported() {
        let read = |text: &str| read_from(text.as_bytes(), |_| ()).expect("vectors");
        assert_eq!(read(&format!("{SEQUENTIAL}{CONCURRENT}")), Findings::default());
        let short = read("# cut off\nSEQ 0 7\n> 100\nt 5\n< 900\nSEQ 9 1\n> 1\nt 6\n> 2\n");
        assert_eq!(
            (short.miscounted, short.first.as_deref()),
            (2, Some("line 2: 7 exchanges announced, 1 there"))
        );
        let units = read(&CONCURRENT.replace("CONC 1429381 2 2", "CONC 1429381 2 3"));
        assert_eq!(
            (units.miscounted, units.first.as_deref()),
            (1, Some("line 1: 2 and 3 units announced, 2 and 2 there"))
        );
        // The other end spoke first, and an exchange without an answer: one each.
        assert_eq!(read("SEQ 0 3\n< 9\nt 1\n> 5\nt 1\n> 5\nt 1\n< 4\n").miscounted, 0);
    }

    #[test]
    fn a_file_of_vectors_is_known_by_its_first_line() {
        assert!(looks_like_vectors(b"# a comment\nSEQ 0 1 1 1\n"));
        assert!(looks_like_vectors(b"\nC 0 1 1 1 1\n"));
        assert!(!looks_like_vectors(b"\xd4\xc3\xb2\xa1"));
        assert!(!looks_like_vectors(b"title = \"x\"\n"));
    }

    fn vectors() -> impl Strategy<Value = Vector> {
        let units = proptest::collection::vec((any::<bool>(), 0..3_u64, 1..5000_u64), 1..12);
        (any::<bool>(), 0..1_u64 << 40, 0..9_u64, units, 0..2_u64).prop_map(
            |(concurrent, start_us, host, units, close)| {
                let mut units: Vec<Unit> = units
                    .into_iter()
                    .map(|(opener, wait, bytes)| unit(opener, wait * 1000, bytes))
                    .collect();
                if close > 0 {
                    let last = units[units.len() - 1].opener;
                    units.push(unit(last, 77, 0));
                }
                Vector {
                    start_us,
                    host,
                    id: 5,
                    windows: [65_535, 29_200],
                    rtt_us: 1234,
                    loss: [0.0, 0.25],
                    concurrent,
                    units,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(vector in vectors()) {
            let read = parse(&vector.to_string()).expect("our own text");
            prop_assert_eq!(read, vec![vector]);
        }

        #[test]
        fn nothing_panics(text in "[SEQCON><tcwrlIA#0-9. \n-]{0,200}") {
            if let Err(message) = parse(&text) {
                proptest::prop_assert!(message.starts_with("line "));
            }
        }
    }
}
