//! How exactly a stack meets the times of the outbound lines.
//!
//! In virtual time a line is met to the nanosecond or it is not. `specs/packetdrill-times.toml` lists lines of the public
//! scripts whose time does not follow from the constants of profile linux (its author estimated a timer, or measured
//! another system), each group with its reason; they are not counted.

use super::folder::Outcome;
use serde::Deserialize;

/// Lines that are not counted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Excluded {
    group: Vec<Group>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    reason: String,
    lines: Vec<String>,
}

impl Excluded {
    /// The lines of the public scripts.
    pub fn public() -> Excluded {
        Excluded::parse(include_str!("../../../specs/packetdrill-times.toml")).unwrap_or_default()
    }

    /// Reads a list.
    ///
    /// # Errors
    /// The text is no such list, or gives no reason.
    pub fn parse(text: &str) -> Result<Excluded, String> {
        let excluded: Excluded = toml::from_str(text).map_err(|error| error.to_string())?;
        match excluded.group.iter().find(|group| group.reason.is_empty()) {
            Some(group) => Err(format!("no reason for {}", group.lines.join(", "))),
            None => Ok(excluded),
        }
    }

    /// Why the line does not count.
    pub fn reason(&self, file: &str, line: u32) -> Option<&str> {
        let found = self.group.iter().find(|group| {
            group.lines.iter().any(|listed| {
                listed.rsplit_once(':').is_some_and(|(listed, number)| {
                    number.parse() == Ok(line) && (file == listed || file.ends_with(&format!("/{listed}")))
                })
            })
        });
        found.map(|group| group.reason.as_str())
    }

    /// Every line, as `file:line`.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.group
            .iter()
            .flat_map(|group| &group.lines)
            .map(String::as_str)
    }
}

/// A line that was not met at its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// `file:line`.
    pub place: String,
    /// Seen less expected, nanoseconds.
    pub off: i64,
    /// Why it does not count, if it does not.
    pub excluded: Option<String>,
}

/// How exactly scripts were met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exactness {
    /// Outbound lines with a time that were met by a segment.
    pub timed: usize,
    /// Those that were not met at their time.
    pub missed: Vec<Missed>,
    /// Excluded lines that were met at their time: the list is out of date.
    pub stale: Vec<String>,
}

impl Exactness {
    /// Exactness of scripts that were played with their own tolerances: a script goes on after a line that is off by less.
    pub fn of(outcomes: &[Outcome], excluded: &Excluded) -> Exactness {
        let mut exactness = Exactness::default();
        for outcome in outcomes {
            for timing in &outcome.played.timing {
                let file = &outcome.item.file;
                let reason = excluded.reason(file, timing.line);
                let place = format!("{file}:{}", timing.line);
                exactness.timed += 1;
                match (timing.off, reason) {
                    (0, None) => {}
                    (0, Some(_)) => exactness.stale.push(place),
                    (off, reason) => exactness.missed.push(Missed {
                        place,
                        off,
                        excluded: reason.map(str::to_owned),
                    }),
                }
            }
        }
        exactness
    }

    /// Lines that are not counted.
    pub fn excluded(&self) -> usize {
        self.missed
            .iter()
            .filter(|missed| missed.excluded.is_some())
            .count()
            + self.stale.len()
    }

    /// Lines met at their time, of those counted.
    pub fn exact(&self) -> usize {
        self.timed - self.missed.len() - self.stale.len()
    }

    /// Lines counted.
    pub fn counted(&self) -> usize {
        self.timed - self.excluded()
    }

    /// Share of the counted lines that were met at their time, percent.
    pub fn percent(&self) -> f64 {
        100.0 * self.exact() as f64 / self.counted().max(1) as f64
    }

    /// The lines that missed their time, and the sum.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for missed in &self.missed {
            let excluded = if missed.excluded.is_some() {
                " (not counted)"
            } else {
                ""
            };
            text.push_str(&format!(
                "{} is off by {:+.3} ms{excluded}\n",
                missed.place,
                missed.off as f64 / 1e6
            ));
        }
        text.push_str(&format!(
            "{} of {} timed outbound lines are exact ({:.1} %); {} more are not counted (specs/packetdrill-times.toml)\n",
            self.exact(),
            self.counted(),
            self.percent(),
            self.excluded()
        ));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Exactness, Excluded, Missed};
    use crate::folder::{Item, Outcome};
    use crate::{Played, Timing, Verdict};
    use std::path::PathBuf;

    #[test]
    fn excluded_lines_are_not_counted_and_go_stale() {
        let excluded = Excluded::parse("[[group]]\nreason = 'a guess'\nlines = ['a/b.pkt:3', 'a/b.pkt:4']")
            .expect("a list");
        let off = [(1, 0), (2, 5), (3, -7), (4, 0)];
        let outcome = Outcome {
            item: Item {
                file: "x/a/b.pkt".to_owned(),
                topic: "a".to_owned(),
                path: PathBuf::new(),
            },
            played: Played {
                timing: off.iter().map(|&(line, off)| Timing { line, off }).collect(),
                ..Played::refused(Verdict::Pass, None, String::new())
            },
        };
        let exactness = Exactness::of(&[outcome], &excluded);
        assert_eq!(
            (exactness.timed, exactness.counted(), exactness.exact()),
            (4, 2, 1)
        );
        assert!((exactness.percent() - 50.0).abs() < 1e-9);
        assert_eq!(exactness.stale, ["x/a/b.pkt:4"]);
        assert_eq!(
            exactness.missed[1],
            Missed {
                place: "x/a/b.pkt:3".to_owned(),
                off: -7,
                excluded: Some("a guess".to_owned())
            }
        );
        assert!(exactness.report().contains("x/a/b.pkt:2 is off by +0.000 ms\n"));
    }

    #[test]
    fn a_list_without_reasons_is_refused() {
        let error = Excluded::parse("[[group]]\nreason = ''\nlines = ['a.pkt:3']").expect_err("no reason");
        assert_eq!(error, "no reason for a.pkt:3");
        assert!(Excluded::public().lines().count() > 0);
    }
}
