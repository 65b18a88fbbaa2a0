//! Files: what is read, and the scenario and the vectors that are written.

use super::capture::{self, Options, Progress};
use super::rate::RateEstimate;
use super::scenario::{self, Controllers, Part};
use super::summary::{Quantiles, Segments, Summary};
use crate::input::reason;
use crate::run::write_atomically;
use crate::scenario::{ReplayFit, Scenario, Setting};
use crate::workload::vectors::{self, Vector};
use fleetfoot_sim::output::Histogram;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
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
        write_atomically(&self.scenario, text.as_bytes())
            .map_err(|error| Error::Output(self.scenario.display().to_string(), error))
    }

    /// Writes into the scenario how well it fits, in the place of what it said of that before.
    ///
    /// # Errors
    /// The scenario cannot be read or written.
    pub fn write_fit(&self, fit: &ReplayFit) -> Result<(), Error> {
        let shown = self.scenario.display().to_string();
        let failed = |error| Error::Output(shown.clone(), error);
        let mut text = std::fs::read_to_string(&self.scenario).map_err(failed)?;
        if let Some(before) = text.find("\n[import]") {
            text.truncate(before);
        }
        let resolved = Scenario::parse(&shown, &text).and_then(|scenario| scenario.resolve(&Setting::none()));
        let resolved = resolved.map_err(|error| Error::Input(error.to_string()))?;
        text.push('\n');
        text.push_str(&fit.to_toml(&resolved.identity));
        write_atomically(&self.scenario, text.as_bytes()).map_err(failed)
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
    let wrong = |message: String| Error::Input(format!("{shown}: {message}"));
    let mut source: Box<dyn Read + Send> = match input == Path::new("-") {
        true => Box::new(io::stdin()),
        false => {
            let file = File::open(input);
            let file =
                file.map_err(|error| Error::Input(format!("cannot read {shown}: {}", reason(&error))))?;
            Box::new(BufReader::with_capacity(1 << 16, file))
        }
    };
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
        title: match input.file_name() {
            Some(name) if input != Path::new("-") => format!("Traffic of {}", name.to_string_lossy()),
            _ => String::from("Traffic of a capture"),
        },
        vectors,
        summary,
    };
    imported.write(&Controllers::default())?;
    Ok(imported)
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

/// Vectors as they come, on disk, and where each begins, to put them in order.
struct Spill {
    part: PathBuf,
    file: BufWriter<File>,
    /// Start of the connection, place and length in the file, pair of hosts: of those that were opened from the side of the first, and
    /// from the other.
    index: [Vec<(u64, u64, u32, u32)>; 2],
    /// Number and place in the file of connections that may be long transfers.
    may_be_long: Vec<(u64, u64)>,
    /// Pairs of hosts, whichever opened, and the smallest round-trip time between each: a queue that one connection always found is not
    /// part of the path.
    pairs: FxHashMap<(u32, u32), u32>,
    least_us: Vec<u64>,
    written: u64,
    failed: Option<io::Error>,
}

impl Spill {
    fn create(vectors: &Path) -> io::Result<Spill> {
        let mut part = vectors.file_name().unwrap_or_default().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = vectors.with_file_name(part);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&part)?;
        Ok(Spill {
            part,
            file: BufWriter::new(file),
            index: [Vec::new(), Vec::new()],
            may_be_long: Vec::new(),
            pairs: FxHashMap::default(),
            least_us: Vec::new(),
            written: 0,
            failed: None,
        })
    }

    /// Writes a connection; a full disk is reported at the end.
    fn take(&mut self, vector: &Vector, other: Option<u32>, back: bool, may_be_long: bool) {
        let next = self.least_us.len() as u32;
        let pair = other.map_or(NO_PAIR, |other| {
            let own = vector.host as u32;
            *self
                .pairs
                .entry((own.min(other), own.max(other)))
                .or_insert_with(|| {
                    self.least_us.push(0);
                    next
                })
        });
        if let Some(least) = self.least_us.get_mut(pair as usize)
            && vector.rtt_us > 0
            && (*least == 0 || vector.rtt_us < *least)
        {
            *least = vector.rtt_us;
        }
        if may_be_long {
            self.may_be_long.push((vector.id, self.written));
        }
        let text = vector.to_string();
        match self.file.write_all(text.as_bytes()) {
            Ok(()) => {
                let place = (vector.start_us, self.written, text.len() as u32, pair);
                self.index[usize::from(back)].push(place);
            }
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
        self.written += text.len() as u64;
    }

    /// Writes them in order of start, those of each part into its file, and returns the times between starts (us). `long_ids`: numbers of the
    /// long transfers, in ascending order.
    fn finish(mut self, parts: &[(Part, PathBuf)], long_ids: &[u64]) -> io::Result<Histogram> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.file.flush()?;
        let index = std::mem::take(&mut self.index);
        let mut starts: Vec<u64> = index.iter().flatten().map(|place| place.0).collect();
        starts.sort_unstable();
        let mut between = Histogram::new();
        for pair in starts.windows(2) {
            between.record(pair[1] - pair[0]);
        }
        drop(starts);
        let long: FxHashSet<u64> = std::mem::take(&mut self.may_be_long)
            .into_iter()
            .filter(|(id, _)| long_ids.binary_search(id).is_ok())
            .map(|(_, place)| place)
            .collect();
        let [first, back] = index.map(|side| {
            let (long, short) = side
                .into_iter()
                .partition::<Vec<_>, _>(|(_, place, ..)| long.contains(place));
            [short, long]
        });
        let mut sides = [first, back];
        for (part, file) in parts {
            let mut index = std::mem::take(&mut sides[usize::from(part.back)][usize::from(part.long)]);
            index.sort_unstable();
            let mut ordered = self.part.as_os_str().to_owned();
            ordered.push("2");
            let ordered = PathBuf::from(ordered);
            let sorted = self.sort_into(&ordered, &index);
            if let Err(error) = sorted.and_then(|()| std::fs::rename(&ordered, file)) {
                // The error that counts is the first one.
                let _ = std::fs::remove_file(&ordered);
                return Err(error);
            }
        }
        Ok(between)
    }

    fn sort_into(&mut self, ordered: &Path, index: &[(u64, u64, u32, u32)]) -> io::Result<()> {
        let mut output = BufWriter::new(File::create(ordered)?);
        let mut input = BufReader::new(self.file.get_ref().try_clone()?);
        input.seek(SeekFrom::Start(0))?;
        let (mut at, mut text) = (0_u64, Vec::new());
        for &(_, place, length, pair) in index {
            // Mostly they are in order: stay within the buffer.
            input.seek_relative(place as i64 - at as i64)?;
            text.resize(length as usize, 0);
            input.read_exact(&mut text)?;
            match self.least_us.get(pair as usize) {
                None | Some(0) => output.write_all(&text)?,
                Some(least) => write_with_rtt(&mut output, &text, *least)?,
            }
            at = place + u64::from(length);
        }
        output.flush()
    }
}

/// Writes a connection with another round-trip time.
fn write_with_rtt(output: &mut impl Write, text: &[u8], rtt_us: u64) -> io::Result<()> {
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        match line.starts_with(b"r ") {
            true => writeln!(output, "r {rtt_us}")?,
            false => output.write_all(line)?,
        }
    }
    Ok(())
}

/// In a file of vectors hosts are not known.
const NO_PAIR: u32 = u32::MAX;

impl Drop for Spill {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.part);
    }
}
