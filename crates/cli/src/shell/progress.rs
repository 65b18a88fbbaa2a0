//! How far a comparison of real runs is.

use crate::output::Common;
use crate::session::about;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;

/// How far it is: a bar on a terminal, a line now and then elsewhere.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    done: u64,
    all: u64,
    started: Instant,
    shown: Instant,
}

impl Progress {
    pub(super) fn new(common: &Common, all: u64) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let bar = (terminal && !common.quiet).then(|| {
            let bar = ProgressBar::new(all);
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Progress {
            bar,
            lines: !terminal && !common.quiet,
            done: 0,
            all,
            started: Instant::now(),
            shown: Instant::now(),
        }
    }

    pub(super) fn begin(&mut self, variant: &str, number: u64) {
        let what = match number {
            0 => String::from("warming up"),
            number => format!("run {number} of {variant}"),
        };
        let left = (self.done > 0).then(|| {
            let each = self.started.elapsed().as_secs_f64() / self.done as f64;
            format!(
                ", about {} left",
                about(each * self.all.saturating_sub(self.done) as f64)
            )
        });
        let left = left.unwrap_or_default();
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
            bar.set_message(format!("{what}{left}"));
        } else if self.lines && self.shown.elapsed().as_secs() >= LINES_S {
            self.shown = Instant::now();
            // Talk that nobody can read is no reason to stop.
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("{} of {} done{left}\n", self.done, self.all),
            );
        }
    }

    pub(super) fn end(&mut self) {
        self.done += 1;
    }

    pub(super) fn say(&self, common: &Common, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| common.say(text)),
            None => common.say(text),
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Seconds between two lines of progress where there is no terminal.
const LINES_S: u64 = 30;
