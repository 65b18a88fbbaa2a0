//! Progress on stderr: a bar on a terminal, else a line at growing intervals; events as JSON lines in a file.

use crate::events::Events;
use crate::failure::Failure;
use crate::forecast::{Forecast, Part};
use crate::layout::columns_of_stderr;
use crate::output::{Common, counted, plain};
use crate::session::{about, grouped};
use fleetfoot_lab::run::{Job, Progress, Pulse};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A bar on a terminal, else lines at growing intervals; nothing if it is to be quiet.
enum Display {
    Bar(ProgressBar, Mutex<Option<Instant>>),
    Lines(Mutex<Lines>),
    Nothing,
}

/// What a bar shows. A line that is longer than the terminal is wide stays there when the next one is drawn.
#[derive(Clone, Copy)]
struct Template {
    wide: &'static str,
    narrow: &'static str,
}

/// Terminals of fewer columns get no bar, but words.
const WIDE: u16 = 72;

struct Lines {
    /// Title of the step, in front of each line; may be empty.
    title: String,
    started: Instant,
    next: Duration,
}

impl Display {
    /// `total`: where it ends, if that is known.
    fn new(total: Option<u64>, template: Template, common: &Common) -> Display {
        if common.quiet {
            return Display::Nothing;
        }
        if !std::io::stderr().is_terminal() {
            return Display::Lines(Mutex::new(Lines {
                title: String::new(),
                started: Instant::now(),
                next: Duration::from_secs(2),
            }));
        }
        let narrow = columns_of_stderr().is_some_and(|width| width < WIDE);
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        let template = if narrow { template.narrow } else { template.wide };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Display::Bar(bar, Mutex::new(None))
    }

    /// Shows `position` with a message on a bar, or a line, if one is due; each receives the seconds gone.
    fn show(&self, position: u64, message: impl FnOnce(f64) -> String, line: impl FnOnce(f64) -> String) {
        match self {
            Display::Bar(bar, shown) => {
                let Ok(mut shown) = shown.lock() else { return };
                // Messages take time to make: more often than this nobody could read them.
                if shown.is_some_and(|shown| shown.elapsed() < REDRAW) {
                    return;
                }
                *shown = Some(Instant::now());
                bar.set_position(position);
                bar.set_message(message(bar.elapsed().as_secs_f64()));
            }
            Display::Lines(lines) => {
                let Ok(mut lines) = lines.lock() else { return };
                let elapsed = lines.started.elapsed();
                if elapsed >= lines.next {
                    lines.next = next_line(elapsed);
                    // Talk that nobody can read is no reason to stop.
                    let line = line(elapsed.as_secs_f64());
                    let _ = match lines.title.as_str() {
                        "" => writeln!(std::io::stderr(), "{line}"),
                        title => writeln!(std::io::stderr(), "{title}: {line}"),
                    };
                }
            }
            Display::Nothing => {}
        }
    }

    /// Shows these words, whatever the interval.
    fn write(&self, words: &str) {
        match self {
            Display::Bar(bar, _) => bar.set_message(format!("  {words}")),
            Display::Lines(_) => {
                // Talk that nobody can read is no reason to stop.
                let _ = writeln!(std::io::stderr(), "{words}");
            }
            Display::Nothing => {}
        }
    }

    /// Begins anew, with another end.
    fn restart(&self, total: u64, title: &str) {
        match self {
            Display::Bar(bar, _) => {
                bar.reset();
                bar.set_length(total);
                bar.set_message(format!("  {title}"));
            }
            Display::Lines(lines) => {
                if let Ok(mut lines) = lines.lock() {
                    title.clone_into(&mut lines.title);
                }
            }
            Display::Nothing => {}
        }
    }

    /// Takes the bar away.
    fn finish(&self) {
        if let Display::Bar(bar, _) = self {
            bar.finish_and_clear();
        }
    }
}

/// When the line after one at `elapsed` is due: at growing intervals, of which none is longer than anybody waits without a word.
fn next_line(elapsed: Duration) -> Duration {
    elapsed + elapsed.min(SILENCE)
}

/// Longest time without a line.
const SILENCE: Duration = Duration::from_secs(20);

/// How often it is looked whether a line is due although no run has anything to report.
const LOOK: Duration = Duration::from_secs(1);

/// Time between two changes of a bar.
const REDRAW: Duration = Duration::from_millis(100);

/// Shows how far a batch of runs is.
pub(crate) struct Reporter {
    display: Display,
    forecast: Mutex<Forecast>,
    events: Option<Events>,
    /// A single run: its bar shows virtual time.
    single: bool,
    underway: Mutex<Underway>,
}

/// What is known of the runs that are under way.
#[derive(Debug, Default)]
struct Underway {
    /// Runs that are finished, and all.
    done: u64,
    total: u64,
    /// By thread, where its run is.
    runs: Vec<Option<Pulse>>,
}

impl Underway {
    /// The run that has taken the longest so far.
    fn longest(&self) -> Option<&Pulse> {
        let runs = self.runs.iter().flatten();
        runs.max_by(|one, other| one.wall_s.total_cmp(&other.wall_s))
    }
}

impl Reporter {
    /// A reporter for the runs that are forecast.
    pub(crate) fn new(
        forecast: Forecast,
        common: &Common,
        events: Option<&Path>,
    ) -> Result<Reporter, Failure> {
        let total = forecast.runs();
        let display = match total {
            1 => {
                let template = Template {
                    wide: "{bar:30} {elapsed} gone, {wide_msg}",
                    narrow: "{elapsed}, {wide_msg}",
                };
                Display::new(Some(PARTS), template, common)
            }
            _ => {
                let template = Template {
                    wide: "{bar:30} {pos}/{len} runs, {elapsed} gone{wide_msg}",
                    narrow: "{pos}/{len}{wide_msg}",
                };
                Display::new(Some(total), template, common)
            }
        };
        let events = events.map(Events::open).transpose()?;
        Ok(Reporter {
            display,
            forecast: Mutex::new(forecast),
            events,
            single: total == 1,
            underway: Mutex::new(Underway {
                total,
                ..Underway::default()
            }),
        })
    }

    /// Another step begins: returns the number of its part.
    pub(crate) fn step(&self, title: &str, jobs: &[Job], seeds: usize) -> usize {
        let part = Part::new(jobs, seeds);
        self.display.restart((jobs.len() * seeds) as u64, title);
        self.event(&serde_json::json!({ "event": "step", "step": title, "runs": jobs.len() * seeds }));
        if let Ok(mut underway) = self.underway.lock() {
            *underway = Underway {
                total: (jobs.len() * seeds) as u64,
                ..Underway::default()
            };
        }
        self.forecast.lock().map_or(0, |mut forecast| forecast.add(part))
    }

    /// A run of this part finished.
    pub(crate) fn run(&self, part: usize, progress: &Progress) {
        let (done, total) = (progress.done, progress.total);
        if let Ok(mut forecast) = self.forecast.lock() {
            forecast.on_run(part, progress.job, progress.wall_s > 0.0);
        }
        if let Ok(mut underway) = self.underway.lock() {
            (underway.done, underway.total) = (done, total);
        }
        // What is left takes time to work out: only when it is shown.
        let left = || {
            self.forecast
                .lock()
                .map_or_else(|_| String::new(), |forecast| left(&forecast))
        };
        self.display.show(
            if self.single { PARTS } else { done },
            |_| format!("{}  {}", left(), plain(&progress.variant)),
            |elapsed_s| {
                let runs = counted(total, "run");
                format!("{done} of {runs} after {elapsed_s:.0} s{}", left())
            },
        );
        self.event(&serde_json::json!({
            "event": "run",
            "variant": progress.variant,
            "seed": progress.seed,
            "done": progress.done,
            "total": progress.total,
            "reused": progress.reused,
            "wall_s": progress.wall_s,
        }));
    }

    /// A run is where the pulse says.
    pub(crate) fn pulse(&self, pulse: &Pulse) {
        let Ok(mut underway) = self.underway.lock() else {
            return;
        };
        if underway.runs.len() <= pulse.worker {
            underway.runs.resize(pulse.worker + 1, None);
        }
        underway.runs[pulse.worker] = Some(*pulse);
        if self.single {
            let position = (PARTS as f64 * (pulse.at_s / pulse.end_s).min(1.0)) as u64;
            let line = |_| run_in_words(pulse);
            self.display.show(position, line, |elapsed_s| {
                format!("{} after {elapsed_s:.0} s", run_in_words(pulse))
            });
            return;
        }
        let (done, total, longest) = (underway.done, underway.total, underway.longest().copied());
        let longest = longest.unwrap_or(*pulse);
        drop(underway);
        // Between the ends of runs: how far the longest is.
        let left = || match self.forecast.lock() {
            Ok(forecast) => left(&forecast),
            Err(_) => String::new(),
        };
        self.display.show(
            done,
            |_| format!("{}  a run is {}", left(), run_in_words(&longest)),
            |elapsed_s| {
                format!(
                    "{done} of {} after {elapsed_s:.0} s{}; a run is {}",
                    counted(total, "run"),
                    left(),
                    run_in_words(&longest)
                )
            },
        );
    }

    /// Does the work, and writes the line that is due while no run reports anything: where runs are being evaluated, which may take longer than them.
    pub(crate) fn watched<T>(&self, work: impl FnOnce() -> T) -> T {
        let Display::Lines(_) = self.display else {
            return work();
        };
        std::thread::scope(|scope| {
            let (done, waiting) = std::sync::mpsc::channel::<()>();
            let watching = move || {
                // It ends when the work has, and the sender is gone.
                while let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = waiting.recv_timeout(LOOK) {
                    self.at_work();
                }
            };
            // Where no thread can be had, nothing is said.
            let _ = std::thread::Builder::new().spawn_scoped(scope, watching);
            let result = work();
            drop(done);
            result
        })
    }

    /// Writes how many runs are done, if a line is due.
    fn at_work(&self) {
        let Ok(underway) = self.underway.lock() else {
            return;
        };
        let (done, total) = (underway.done, underway.total);
        drop(underway);
        self.display.show(
            done,
            |_| String::new(),
            |elapsed_s| at_work(done, total, elapsed_s),
        );
    }

    /// How far a run that was stopped had come, in words; nothing if none was under way.
    pub(crate) fn stopped(&self) -> Option<String> {
        let underway = self.underway.lock().ok()?;
        let pulse = underway.longest()?;
        Some(format!(
            "Stopped at {} of {} s of simulated time, after {:.1} s. Nothing is kept of a run that did not end.",
            grouped(pulse.at_s),
            grouped(pulse.end_s),
            pulse.wall_s
        ))
    }

    /// Appends an event, if events are wanted.
    pub(crate) fn event(&self, event: &serde_json::Value) {
        if let Some(events) = &self.events {
            events.append(event);
        }
    }

    /// Whether all events could be written.
    pub(crate) fn told(&self) -> Result<(), Failure> {
        self.events.as_ref().map_or(Ok(()), Events::end)
    }

    /// Does what comes after the runs; while it takes longer than a second, says what is being done.
    pub(crate) fn writing<T>(&self, work: impl FnOnce(&Writing) -> T) -> T {
        let writing = Writing::default();
        let started = Instant::now();
        self.display.restart(1, "");
        std::thread::scope(|scope| {
            let (done, waiting) = std::sync::mpsc::channel::<()>();
            let shown = &writing;
            let telling = move || {
                let mut pause = UNTOLD;
                // It ends when the work has, and the sender is gone.
                while let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = waiting.recv_timeout(pause) {
                    let step = shown.step();
                    self.display
                        .write(&written(step, started.elapsed().as_secs_f64()));
                    pause = match self.display {
                        Display::Bar(..) => REDRAW,
                        Display::Lines(_) | Display::Nothing => started.elapsed().min(SILENCE),
                    };
                }
            };
            // Where no thread can be had, nothing is said.
            let _ = std::thread::Builder::new().spawn_scoped(scope, telling);
            let result = work(&writing);
            drop(done);
            result
        })
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.display.finish();
    }
}

/// What is being written.
#[derive(Debug, Default)]
pub(crate) struct Writing(Mutex<&'static str>);

impl Writing {
    /// This comes now: `time series of single flows`.
    pub(crate) fn now(&self, step: &'static str) {
        if let Ok(mut own) = self.0.lock() {
            *own = step;
        }
    }

    fn step(&self) -> &'static str {
        self.0.lock().map_or("", |step| *step)
    }
}

/// How far a step is of which no run reports anything.
fn at_work(done: u64, total: u64, elapsed_s: f64) -> String {
    let runs = counted(total, "run");
    let what = match done < total {
        true => "",
        false => ", comparing them",
    };
    format!("{done} of {runs} after {elapsed_s:.0} s{what}")
}

/// What is being written, in words.
fn written(step: &str, elapsed_s: f64) -> String {
    format!("writing the report: {step}, {elapsed_s:.0} s")
}

/// Writing that takes no longer is not reported.
const UNTOLD: Duration = Duration::from_secs(1);

/// Steps of the bar of a single run.
const PARTS: u64 = 1000;

/// Where a run is, its speed, and how long it still takes.
fn run_in_words(pulse: &Pulse) -> String {
    let speed = pulse.at_s / pulse.wall_s.max(1e-9);
    let at = format!(
        "at {} of {} s, {} times real time",
        grouped(pulse.at_s),
        grouped(pulse.end_s),
        grouped(speed)
    );
    match pulse.end_s > pulse.at_s && speed > 0.0 {
        true => format!("{at}, {} left", about((pulse.end_s - pulse.at_s) / speed)),
        false => format!("{at}, waiting for the last flows"),
    }
}

/// What is left, for people; nothing at the end.
fn left(forecast: &Forecast) -> String {
    match (forecast.left_s(), forecast.is_rough()) {
        (0.0, _) => String::new(),
        (left_s, true) => format!(", about {} left", about(left_s)),
        (left_s, false) => format!(", {} left", about(left_s)),
    }
}

/// Shows how much of a file is read.
pub(crate) struct ByteReporter {
    size: u64,
    display: Display,
}

impl ByteReporter {
    /// A reporter for a file of `size` bytes; 0: it is not known.
    pub(crate) fn new(size: u64, common: &Common) -> ByteReporter {
        let template = Template {
            wide: "{bar:30} {bytes} of {total_bytes}, {eta} left  {wide_msg}",
            narrow: "{bytes}, {wide_msg}",
        };
        let display = Display::new(Some(size).filter(|size| *size > 0), template, common);
        ByteReporter { size, display }
    }

    /// Reports how many bytes have been read.
    pub(crate) fn at(&self, progress: &fleetfoot_lab::import::Progress) {
        self.display.show(
            progress.bytes,
            |_| counted(progress.connections, "connection"),
            |elapsed_s| {
                let share = match self.size {
                    0 => String::new(),
                    size => format!(" ({:.0} %)", progress.bytes as f64 / size as f64 * 100.0),
                };
                format!(
                    "{} packets, {} MB{share}, {} connections after {elapsed_s:.0} s",
                    progress.packets,
                    progress.bytes / 1_000_000,
                    progress.connections
                )
            },
        );
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.display.finish();
    }
}

/// Shows how many replays of an import are done.
pub(crate) struct ReplayReporter {
    display: Display,
    done: AtomicU64,
}

impl ReplayReporter {
    /// A reporter for replays whose number is not known before some are done.
    pub(crate) fn new(common: &Common) -> ReplayReporter {
        ReplayReporter {
            display: Display::new(
                None,
                Template {
                    wide: "{spinner} replay {pos}, {elapsed} gone  {wide_msg}",
                    narrow: "replay {pos}  {wide_msg}",
                },
                common,
            ),
            done: AtomicU64::new(0),
        }
    }

    /// A replay is done.
    pub(crate) fn done(&self, progress: &Progress) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.display.show(
            done,
            |_| progress.variant.clone(),
            |elapsed_s| {
                format!(
                    "Replays to see how it fits: {done} after {elapsed_s:.0} s, the last with {}",
                    progress.variant
                )
            },
        );
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.display.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, SILENCE, Writing, at_work, left, next_line, run_in_words, written};
    use crate::forecast::tests::forecast;
    use fleetfoot_lab::run::Pulse;

    #[test]
    fn a_run_says_where_it_is_how_fast_and_how_long_it_still_takes() {
        let mut pulse = Pulse {
            worker: 0,
            seed: 1,
            at_s: 21_600.0,
            end_s: 86_400.0,
            wall_s: 10.0,
        };
        assert_eq!(
            run_in_words(&pulse),
            "at 21,600 of 86,400 s, 2,160 times real time, 30 s left"
        );
        pulse.at_s = 86_410.0;
        assert!(run_in_words(&pulse).ends_with("waiting for the last flows"));
    }

    #[test]
    fn lines_come_at_growing_intervals_of_at_most_twenty_seconds() {
        let mut at = Duration::from_secs(2);
        let mut lines = Vec::new();
        while at < Duration::from_secs(600) {
            lines.push(at);
            at = next_line(at);
        }
        assert_eq!(lines[..5], [2, 4, 8, 16, 32].map(Duration::from_secs));
        assert!(lines.windows(2).all(|pair| pair[1] - pair[0] <= SILENCE));
        assert!(lines.len() < 40, "{}", lines.len());
    }

    #[test]
    fn a_step_without_a_run_that_reports_says_how_far_it_is() {
        assert_eq!(at_work(3, 10, 41.2), "3 of 10 runs after 41 s");
        assert_eq!(at_work(10, 10, 61.0), "10 of 10 runs after 61 s, comparing them");
    }

    #[test]
    fn what_is_being_written_is_reported_with_the_time_it_took() {
        let writing = Writing::default();
        writing.now("tables and page");
        assert_eq!(
            written(writing.step(), 34.2),
            "writing the report: tables and page, 34 s"
        );
    }

    #[test]
    fn what_is_left_is_about_so_much_until_something_is_measured() {
        let mut forecast = forecast(&[&[3.0]], 4, 1);
        assert_eq!(left(&forecast), ", about 12 s left");
        forecast.on_run(0, 0, false);
        assert_eq!(left(&forecast), ", about 9 s left");
        std::thread::sleep(Duration::from_millis(20));
        forecast.on_run(0, 0, true);
        let words = left(&forecast);
        assert!(words.ends_with(" left") && !words.contains("about"), "{words}");
        forecast.on_run(0, 0, true);
        forecast.on_run(0, 0, true);
        assert_eq!(left(&forecast), "");
    }
}
