//! Files: what is read, and the scenario and the vectors that are written.

use super::capture::{self, Options, Progress};
use super::rate::RateEstimate;
use super::scenario::{self, Controllers, Part};
use super::spill::Spill;
use super::summary::{Quantiles, Segments, Summary};
use crate::input::{self, reason};
use crate::scenario::{ReplayFit, Scenario, Setting};
use crate::workload::vectors;
use fleetfoot_sim::output::Histogram;
use rustc_hash::FxHashSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// What an import wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The scenario.
    pub scenario: PathBuf,
    /// What it is called.
    pub title: String,
    /// The files of connection vectors beside it, one for each group.
    pub vectors: Vec<(Part, PathBuf)>,
    /// What was found.
    pub summary: Summary,
}

impl Imported {
    /// Writes the scenario, with these congestion controls; without them it has those of its TCP profile.
    ///
    /// # Errors
    /// The scenario cannot be written.
    pub fn write(&self, controllers: &Controllers) -> Result<(), Error> {
        let name = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let names: Vec<String> = self.vectors.iter().map(|(_, path)| name(path)).collect();
        let text = scenario::text(&self.title, &names, &self.summary, controllers);
        input::write(&self.scenario, text.as_bytes())
            .map_err(|error| Error::Output(self.scenario.display().to_string(), error))
    }

    /// Writes into the scenario how well it fits, in the place of what it said of that before.
    ///
    /// # Errors
    /// The scenario cannot be read or written.
    pub fn write_fit(&self, fit: &ReplayFit) -> Result<(), Error> {
        let shown = self.scenario.display().to_string();
        let failed = |error| Error::Output(shown.clone(), error);
        let mut text = input::text(&self.scenario, input::MOST_SCENARIO).map_err(failed)?;
        if let Some(before) = text.find("\n[import]") {
            text.truncate(before);
        }
        let resolved = Scenario::parse(&shown, &text).and_then(|scenario| scenario.resolve(&Setting::none()));
        let resolved = resolved.map_err(|error| Error::Input(error.to_string()))?;
        text.push('\n');
        text.push_str(&fit.to_toml(&resolved.identity));
        input::write(&self.scenario, text.as_bytes()).map_err(failed)
    }
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input is of no use.
    #[error("{0}")]
    Input(String),
    /// The output cannot be written.
    #[error("cannot write {0}: {1}")]
    Output(String, io::Error),
}

/// Imports `input` (`-`: the standard input), a capture or a file of connection vectors, and writes the scenario `output`
/// and the vectors beside it ([`vectors_beside`]). `progress` says whether to go on.
///
/// # Errors
/// The input holds nothing usable, or the output cannot be written.
pub fn import(
    input: &Path,
    output: &Path,
    options: &Options,
    progress: impl FnMut(Progress) -> bool,
) -> Result<Imported, Error> {
    let shown = if input == Path::new("-") {
        String::from("the standard input")
    } else {
        input.display().to_string()
    };
    let source: Box<dyn Read + Send> = match input == Path::new("-") {
        true => Box::new(io::stdin()),
        false => {
            let file = File::open(input);
            let file =
                file.map_err(|error| Error::Input(format!("cannot read {shown}: {}", reason(&error))))?;
            Box::new(BufReader::with_capacity(1 << 16, file))
        }
    };
    let title = match input.file_name() {
        Some(name) if input != Path::new("-") => format!("Traffic of {}", name.to_string_lossy()),
        _ => String::from("Traffic of a capture"),
    };
    import_from(source, &shown, title, output, options, progress)
}

/// As [`import`], from `source`, which messages call `shown`. The scenario gets this title; where `output` is in a folder in memory
/// ([`input::Folder`]), so is all that is written.
///
/// # Errors
/// As [`import`].
pub fn import_from(
    mut source: impl Read + Send,
    shown: &str,
    title: String,
    output: &Path,
    options: &Options,
    progress: impl FnMut(Progress) -> bool,
) -> Result<Imported, Error> {
    let wrong = |message: String| Error::Input(format!("{shown}: {message}"));
    let mut head = Vec::new();
    let begun = source.by_ref().take(4096).read_to_end(&mut head);
    begun.map_err(|error| Error::Input(format!("cannot read {shown}: {}", reason(&error))))?;
    let is_text = vectors::looks_like_vectors(&head);
    let source = io::Cursor::new(head).chain(source);

    let beside = vectors_beside(output);
    let [vectors, ..] = &beside;
    let failed = |error| Error::Output(vectors.display().to_string(), error);
    let mut spill = Spill::create(vectors).map_err(failed)?;
    let result = match is_text {
        true => read_vectors(BufReader::new(source), &mut spill),
        false => capture::read(
            source,
            options,
            |over| {
                spill.take(&over.vector, Some(over.answerer), over.back, over.may_be_long);
            },
            progress,
        ),
    };
    let mut summary = result.map_err(wrong)?;
    let parts = scenario::parts(&summary);
    let place = |(number, part): (usize, Part)| {
        let own = match number {
            0 => 0,
            _ => 2 * usize::from(part.long) + usize::from(part.back),
        };
        (part, beside[own].clone())
    };
    let vectors: Vec<(Part, PathBuf)> = parts.into_iter().enumerate().map(place).collect();
    let starts = spill.finish(&vectors, &summary.long_ids);
    let starts = starts.map_err(|error| Error::Output(output.display().to_string(), error))?;
    summary.interarrival_s = Quantiles::of(&starts, 1e-6);
    let imported = Imported {
        scenario: output.to_owned(),
        title,
        vectors,
        summary,
    };
    imported.write(&Controllers::default())?;
    Ok(imported)
}

/// Whether an import into the scenario `output` would write over `input`, by whatever name or link: the scenario or the connection vectors
/// beside it are the same file.
pub fn writes_over(input: &Path, output: &Path) -> bool {
    let place = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let input = place(input);
    let vectors = vectors_beside(output);
    std::iter::once(output)
        .chain(vectors.iter().map(PathBuf::as_path))
        .any(|written| place(written) == input)
}

/// What is said where an import [`writes_over`] its input; `option` is how another name is given.
pub fn would_be_overwritten(input: &Path, option: &str) -> String {
    format!(
        "{} would be overwritten: give another name with {option}",
        input.display()
    )
}

/// The files of connection vectors that may belong to the scenario `output`: of the first group ([`scenario::parts`]); else of connections
/// opened from the other side, of long transfers, and of both. Only those are written of which there are some.
pub fn vectors_beside(output: &Path) -> [PathBuf; 4] {
    let other = |ending: &str| {
        let mut name = output.file_stem().unwrap_or_default().to_owned();
        name.push(ending);
        output.with_file_name(name)
    };
    [
        output.with_extension("cvec"),
        other("-back.cvec"),
        other("-long.cvec"),
        other("-long-back.cvec"),
    ]
}

/// A file of connection vectors: what it says, without a network.
fn read_vectors(text: impl io::BufRead, spill: &mut Spill) -> Result<Summary, String> {
    let mut samples: [Histogram; 8] = Default::default();
    let (mut connections, mut concurrent, mut last_us) = (0, 0, 0);
    let mut bytes = [0_u64; 2];
    let mut openers = FxHashSet::default();
    let found = vectors::read_from(text, |vector| {
        let [rtt, size, ask, answer, exchanges, answer_wait, ask_wait, pause] = &mut samples;
        connections += 1;
        concurrent += u64::from(vector.concurrent);
        let waits: u64 = vector.units.iter().map(|unit| unit.wait_us).sum();
        last_us = last_us.max(vector.start_us.saturating_add(waits));
        openers.insert(vector.host);
        if vector.rtt_us > 0 {
            rtt.record(vector.rtt_us);
        }
        let both = vector.bytes();
        size.record(both[0].saturating_add(both[1]));
        for (sum, own) in bytes.iter_mut().zip(both) {
            *sum = sum.saturating_add(own);
        }
        exchanges.record(vector.exchanges() as u64);
        let mut before: Option<bool> = None;
        for unit in vector.units.iter().filter(|unit| unit.bytes > 0) {
            (if unit.opener { &mut *ask } else { &mut *answer }).record(unit.bytes);
            match before {
                None => {}
                Some(before) if vector.concurrent || before == unit.opener => pause.record(unit.wait_us),
                Some(true) => answer_wait.record(unit.wait_us),
                Some(false) => ask_wait.record(unit.wait_us),
            }
            before = Some(unit.opener);
        }
        spill.take(&vector, None, false, false);
    })?;
    if connections == 0 {
        return Err(String::from("no connection in it has data"));
    }
    let [rtt, size, ask, answer, exchanges, answer_wait, ask_wait, pause] = &samples;
    let list = |count: u64, what: &str| match count {
        0 => Vec::new(),
        _ => vec![capture::counted(count, what)],
    };
    Ok(Summary {
        source: "vectors",
        span_s: last_us as f64 / 1e6,
        connections,
        concurrent,
        openers: openers.len() as u64,
        left_out: list(found.silent, "connection[s] on which nothing was said"),
        notes: list(
            found.miscounted,
            &format!(
                "connection[s announce| announces] another number in [their first lines|its first line] than there [are|is] ({}): what is \
                 there counts; a file that was cut off has such an end",
                found.first.unwrap_or_default()
            ),
        ),
        rtt_s: Quantiles::of(rtt, 1e-6),
        connection_bytes: Quantiles::of(size, 1.0),
        unit_bytes: [Quantiles::of(ask, 1.0), Quantiles::of(answer, 1.0)],
        exchanges: Quantiles::of(exchanges, 1.0),
        answer_wait_s: Quantiles::of(answer_wait, 1e-6),
        ask_wait_s: Quantiles::of(ask_wait, 1e-6),
        pause_s: Quantiles::of(pause, 1e-6),
        segments: bytes.map(|bytes| Segments::of(bytes, 0, 0)),
        rate: [RateEstimate::default(); 2],
        ..Summary::default()
    })
}
