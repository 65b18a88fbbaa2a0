//! Progress on stderr: a bar on a terminal, else a line at growing intervals; events as JSON lines in a file.

use crate::failure::Failure;
use crate::forecast::Forecast;
use crate::output::Common;
use crate::session::about;
use fleetfoot_lab::run::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A bar on a terminal, else lines at growing intervals; nothing if it is to be quiet.
enum Display {
    Bar(ProgressBar),
    Lines(Mutex<Lines>),
    Nothing,
}

struct Lines {
    started: Instant,
    next: Duration,
}

impl Display {
    /// `total`: where it ends, if that is known.
    fn new(total: Option<u64>, template: &str, common: &Common) -> Display {
        if common.quiet {
            return Display::Nothing;
        }
        if !std::io::stderr().is_terminal() {
            return Display::Lines(Mutex::new(Lines {
                started: Instant::now(),
                next: Duration::from_secs(2),
            }));
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Display::Bar(bar)
    }

    /// Shows `position` with a message on a bar, or a line, if one is due; each is told the seconds gone.
    fn show(&self, position: u64, message: impl FnOnce(f64) -> String, line: impl FnOnce(f64) -> String) {
        match self {
            Display::Bar(bar) => {
                bar.set_position(position);
                bar.set_message(message(bar.elapsed().as_secs_f64()));
            }
            Display::Lines(lines) => {
                let Ok(mut lines) = lines.lock() else { return };
                let elapsed = lines.started.elapsed();
                if elapsed >= lines.next {
                    lines.next = elapsed.mul_f64(2.0);
                    // Talk that nobody can read is no reason to stop.
                    let _ = writeln!(std::io::stderr(), "{}", line(elapsed.as_secs_f64()));
                }
            }
            Display::Nothing => {}
        }
    }

    /// Takes the bar away.
    fn finish(&self) {
        if let Display::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Shows how far a batch of runs is.
pub(crate) struct Reporter {
    display: Display,
    forecast: Mutex<Forecast>,
    events: Option<Mutex<File>>,
}

impl Reporter {
    /// A reporter for the runs that are forecast.
    pub(crate) fn new(
        forecast: Forecast,
        common: &Common,
        events: Option<&Path>,
    ) -> Result<Reporter, Failure> {
        let template = "{bar:30} {pos}/{len} runs, {elapsed} gone{wide_msg}";
        let display = Display::new(Some(forecast.runs()), template, common);
        let events = events
            .map(|path| {
                let file = File::create(path).map_err(|error| {
                    Failure::usage(format!("cannot write events to {}: {error}", path.display()))
                });
                file.map(Mutex::new)
            })
            .transpose()?;
        Ok(Reporter {
            display,
            forecast: Mutex::new(forecast),
            events,
        })
    }

    /// A run of this part finished.
    pub(crate) fn run(&self, part: usize, progress: &Progress) {
        let (done, total) = (progress.done, progress.total);
        let left = match self.forecast.lock() {
            Ok(mut forecast) => {
                let computed = progress.wall_s > 0.0;
                forecast.on_run(part, progress.job, computed.then_some(progress.wall_s));
                left(&forecast)
            }
            Err(_) => String::new(),
        };
        self.display.show(
            done,
            |_| format!("{left}  {}", progress.variant),
            |elapsed_s| format!("{done} of {total} runs after {elapsed_s:.0} s{left}"),
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

    /// Appends an event, if events are wanted.
    pub(crate) fn event(&self, event: &serde_json::Value) {
        if let Some(file) = &self.events
            && let Ok(mut file) = file.lock()
        {
            // A full disk must not stop the runs; the result's own writing will tell.
            let _ = writeln!(file, "{event}");
            let _ = file.flush();
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.display.finish();
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
        let template = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left  {msg}";
        let display = Display::new(Some(size).filter(|size| *size > 0), template, common);
        ByteReporter { size, display }
    }

    /// So much is read.
    pub(crate) fn at(&self, progress: &fleetfoot_lab::import::Progress) {
        self.display.show(
            progress.bytes,
            |_| format!("{} connections", progress.connections),
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

#[cfg(test)]
mod tests {
    use super::left;
    use crate::forecast::{Forecast, Part};

    #[test]
    fn what_is_left_is_about_so_much_until_something_is_measured() {
        let mut forecast = Forecast::new(vec![Part::expecting([3.0], 4)], 1);
        assert_eq!(left(&forecast), ", about 12 s left");
        forecast.on_run(0, 0, None);
        assert_eq!(left(&forecast), ", about 9 s left");
        forecast.on_run(0, 0, Some(3.0));
        assert_eq!(left(&forecast), ", 6 s left");
        forecast.on_run(0, 0, Some(3.0));
        forecast.on_run(0, 0, Some(3.0));
        assert_eq!(left(&forecast), "");
    }
}
