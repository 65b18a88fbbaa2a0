//! The observer of a link: a thread that makes flows, a capture and a line on the terminal of what passes.

use crate::output::Common;
use fleetfoot_lab::live::watch::Watched;
use fleetfoot_lab::live::{Happened, Watch};
use fleetfoot_lab::report::pcapng::{FrameWriter, Interface, RealFrame};
use fleetfoot_live::{Event, SNAP_LENGTH, TapReader, Tapped};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// What an observer does beside watching.
pub(super) struct Observer<'a> {
    /// Writes a capture.
    pub(super) capture: Option<Capture>,
    /// Shows a line on the terminal.
    pub(super) line: bool,
    /// Who is told of a capture that ends early.
    pub(super) common: &'a Common,
}

/// What an observer has seen.
pub(super) struct Observed {
    pub(super) watched: Watched,
    /// Records that the observer was too slow for.
    pub(super) unobserved: u64,
    /// The capture could not be written to its end.
    pub(super) cut: bool,
}

impl Observer<'_> {
    /// Watches until `done`, in a thread of its own.
    pub(super) fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        reader: TapReader,
        done: &'scope AtomicBool,
    ) -> ScopedJoinHandle<'scope, Observed>
    where
        Self: 'scope,
    {
        scope.spawn(move || self.watch(&reader, done))
    }

    fn watch(mut self, reader: &TapReader, done: &AtomicBool) -> Observed {
        let mut watch = Watch::default();
        let mut shown = Instant::now();
        let mut flushed = shown;
        let mut cut = false;
        loop {
            // Asked first: what came before the end is still in the ring.
            let last = done.load(Ordering::Acquire);
            while let Some(tapped) = reader.next() {
                on_frame(&mut watch, &tapped);
                self.capture(&tapped, &mut cut);
            }
            if last || flushed.elapsed() >= FLUSH {
                flushed = Instant::now();
                self.flush(&mut cut);
            }
            if last {
                break;
            }
            if self.line && shown.elapsed() >= REDRAW {
                let line = watch.line(shown.elapsed().as_secs_f64());
                shown = Instant::now();
                let width = crate::layout::width() - 1;
                let line: String = line.chars().take(width).collect();
                // What the command prints next begins at the left: it writes over this line.
                let _ = write!(std::io::stderr(), "\r\x1b[2K{line}\r");
            }
            thread::sleep(PAUSE);
        }
        if self.line {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
        Observed {
            watched: watch.finish(),
            unobserved: reader.lost(),
            cut,
        }
    }

    fn capture(&mut self, tapped: &Tapped, cut: &mut bool) {
        if let Some(capture) = &mut self.capture
            && let Err(error) = capture.write(tapped)
        {
            self.give_up(&error, cut);
        }
    }

    fn flush(&mut self, cut: &mut bool) {
        if let Some(capture) = &mut self.capture
            && let Err(error) = capture.writer.flush()
        {
            self.give_up(&error, cut);
        }
    }

    /// The capture ends, the command goes on.
    fn give_up(&mut self, error: &std::io::Error, cut: &mut bool) {
        *cut = true;
        if let Some(capture) = self.capture.take() {
            let line = if self.line { "\r\x1b[2K" } else { "" };
            // An error, which --quiet does not silence.
            let _ = writeln!(
                std::io::stderr(),
                "{line}cannot write {}: {error}; the capture ends early, the command goes on",
                capture.name,
            );
        }
    }
}

/// Whether a line may be shown: there is a terminal, and it belongs to nobody else.
pub(super) fn may_show_line(interactive: bool, common: &Common) -> bool {
    !interactive && !common.quiet && std::io::stderr().is_terminal()
}

fn on_frame(watch: &mut Watch, tapped: &Tapped) {
    let happened = match tapped.event {
        Event::Entered => Happened::Entered,
        Event::Left { waited, late } => Happened::Left {
            waited_ns: waited.as_nanos(),
            late_ns: late.as_nanos(),
        },
        Event::Dropped(_) | Event::Refused(_) => Happened::Dropped,
    };
    let by_command = tapped.direction == 0;
    watch.on_frame(
        tapped.unix_ns,
        by_command,
        happened,
        tapped.frame(),
        tapped.length,
    );
}

/// A capture that is being written.
pub(super) struct Capture {
    writer: FrameWriter,
    name: String,
}

impl Capture {
    /// Begins a capture in `file`, which messages call `path`.
    pub(super) fn begin(file: File, path: &Path, command: &str) -> std::io::Result<Capture> {
        let interface = |name: &str, description: &str| Interface {
            name: name.to_owned(),
            description: description.to_owned(),
        };
        let interfaces = [
            interface("command", "the link's end at the command"),
            interface("far", "the link's far end"),
            interface("dropped", "what the link did not deliver, with the reason"),
        ];
        let writer = FrameWriter::new(file, &interfaces, command, SNAP_LENGTH as u32)?;
        Ok(Capture {
            writer,
            name: path.display().to_string(),
        })
    }

    fn write(&mut self, tapped: &Tapped) -> std::io::Result<()> {
        let by_command = tapped.direction == 0;
        let (interface, comment) = match tapped.event {
            Event::Entered => (u32::from(!by_command), None),
            Event::Left { .. } => (u32::from(by_command), None),
            Event::Dropped(reason) => (2, Some(reason.name())),
            Event::Refused(refusal) => (2, Some(refusal.name())),
        };
        self.writer.write(&RealFrame {
            unix_ns: tapped.unix_ns,
            interface,
            // As a capture on the interface of that end has it.
            inbound: matches!(tapped.event, Event::Left { .. }),
            data: tapped.frame(),
            length: tapped.length,
            comment,
        })
    }
}

/// How long the observer sleeps when there is nothing to see.
const PAUSE: Duration = Duration::from_millis(3);
/// How often a capture is handed to the system.
const FLUSH: Duration = Duration::from_millis(200);
/// How often the line is drawn.
const REDRAW: Duration = Duration::from_millis(500);
