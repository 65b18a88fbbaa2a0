//! Progress on stderr: a bar on a terminal, else a line at growing intervals; events as JSON lines in a file.

use crate::failure::Failure;
use crate::output::Common;
use fleetfoot_lab::run::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Shows how far a batch of runs is.
pub(crate) struct Reporter {
    bar: Option<ProgressBar>,
    lines: Option<Mutex<Lines>>,
    events: Option<Mutex<File>>,
}

struct Lines {
    started: Instant,
    next: Duration,
}

impl Reporter {
    /// A reporter for `total` runs.
    pub(crate) fn new(total: u64, common: &Common, events: Option<&Path>) -> Result<Reporter, Failure> {
        let terminal = std::io::stderr().is_terminal();
        let bar = (!common.quiet && terminal).then(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let style =
                ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {elapsed} gone, {eta} left  {msg}");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar
        });
        let lines = (!common.quiet && !terminal).then(|| {
            Mutex::new(Lines {
                started: Instant::now(),
                next: Duration::from_secs(2),
            })
        });
        let events = events
            .map(|path| {
                let file = File::create(path).map_err(|error| {
                    Failure::usage(format!("cannot write events to {}: {error}", path.display()))
                });
                file.map(Mutex::new)
            })
            .transpose()?;
        Ok(Reporter { bar, lines, events })
    }

    /// A run finished.
    pub(crate) fn run(&self, progress: &Progress) {
        if let Some(bar) = &self.bar {
            bar.set_position(progress.done);
            bar.set_message(progress.variant.clone());
        }
        if let Some(lines) = &self.lines
            && let Ok(mut lines) = lines.lock()
        {
            let elapsed = lines.started.elapsed();
            if elapsed >= lines.next {
                lines.next = elapsed.mul_f64(2.0);
                let left =
                    elapsed.as_secs_f64() / progress.done as f64 * (progress.total - progress.done) as f64;
                // Talk that nobody can read is no reason to stop.
                let _ = writeln!(
                    std::io::stderr(),
                    "{} of {} runs after {:.0} s, about {left:.0} s left",
                    progress.done,
                    progress.total,
                    elapsed.as_secs_f64()
                );
            }
        }
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
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows how much of a file is read.
pub(crate) struct ByteReporter {
    size: u64,
    bar: Option<ProgressBar>,
    lines: Option<Mutex<Lines>>,
}

impl ByteReporter {
    /// A reporter for a file of `size` bytes; 0: it is not known.
    pub(crate) fn new(size: u64, common: &Common) -> ByteReporter {
        let terminal = std::io::stderr().is_terminal();
        let bar = (!common.quiet && terminal).then(|| {
            let bar = ProgressBar::with_draw_target(
                Some(size).filter(|size| *size > 0),
                ProgressDrawTarget::stderr(),
            );
            let style = ProgressStyle::with_template(
                "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left  {msg}",
            );
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar
        });
        let lines = (!common.quiet && !terminal).then(|| {
            Mutex::new(Lines {
                started: Instant::now(),
                next: Duration::from_secs(2),
            })
        });
        ByteReporter { size, bar, lines }
    }

    /// So much is read.
    pub(crate) fn at(&self, progress: &fleetfoot_lab::import::Progress) {
        if let Some(bar) = &self.bar {
            bar.set_position(progress.bytes);
            bar.set_message(format!("{} connections", progress.connections));
        }
        if let Some(lines) = &self.lines
            && let Ok(mut lines) = lines.lock()
        {
            let elapsed = lines.started.elapsed();
            if elapsed >= lines.next {
                lines.next = elapsed.mul_f64(2.0);
                let share = match self.size {
                    0 => String::new(),
                    size => format!(" ({:.0} %)", progress.bytes as f64 / size as f64 * 100.0),
                };
                // Talk that nobody can read is no reason to stop.
                let _ = writeln!(
                    std::io::stderr(),
                    "{} packets, {} MB{share}, {} connections after {:.0} s",
                    progress.packets,
                    progress.bytes / 1_000_000,
                    progress.connections,
                    elapsed.as_secs_f64()
                );
            }
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
