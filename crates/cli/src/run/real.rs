//! A run that this machine's kernel plays (`run.world`): what can be asked of it, and its capture.
//!
//! The frames are those of the very run that is measured: the kernel does nothing twice in the same way.

use super::Arguments;
use crate::failure::Failure;
use crate::output::Common;
use crate::target::{Part, Target};
use fleetfoot_lab::report::pcapng::{FrameWriter, Interface, RealFrame};
use fleetfoot_lab::report::time_series::Tap;
use fleetfoot_lab::run::{Pulse, link_of_kernel, play, replay};
use fleetfoot_live::{Event, RING, SNAP_LENGTH, TapReader, Tapped, tap};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What cannot be asked of a run in real time is refused before it begins.
pub(super) fn check(arguments: &Arguments, spec: &Spec, tap: Option<(&str, Tap)>) -> Result<(), Failure> {
    let bottleneck = link_of_kernel(spec).map_err(Failure::usage)?;
    let inside = [
        ("--trace", arguments.trace.is_some()),
        ("--diagram", arguments.diagram.is_some()),
    ];
    if let Some((flag, _)) = inside.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{flag} shows what happens inside our TCP, and this machine's kernel plays this run (run.world): --pcap writes the packets at link `{bottleneck}`"
        )));
    }
    match tap {
        Some((name, _)) if name != bottleneck => Err(Failure::usage(format!(
            "--pcap-at {name}: where the kernel plays a run (run.world), packets can be captured at link `{bottleneck}` only"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// A capture of one run, for an engine that many threads call.
pub(super) struct Capture {
    writer: Mutex<Option<Writer>>,
    outcome: Mutex<Outcome>,
    seed: u64,
    path: String,
    part: Part,
}

#[derive(Default)]
struct Outcome {
    error: Option<io::Error>,
    lost: u64,
}

struct Writer {
    frames: FrameWriter,
    at: Option<Tap>,
    /// No frame has been written yet.
    begins: bool,
}

impl Capture {
    /// Begins the capture of the run with this seed, into `target`; `about` stands in the file.
    pub(super) fn begin(
        target: &Target,
        path: String,
        at: Option<(&str, Tap)>,
        spec: &Spec,
        about: &str,
    ) -> Result<Capture, Failure> {
        let link = link_of_kernel(spec).map_err(Failure::usage)?;
        let (file, part) = target.begin()?;
        let interfaces = interfaces(link, at.map(|(_, tap)| tap));
        let frames = FrameWriter::new(file, &interfaces, about, SNAP_LENGTH as u32)
            .map_err(|error| Failure::output(format!("cannot write {path}: {error}")))?;
        Ok(Capture {
            writer: Mutex::new(Some(Writer {
                frames,
                at: at.map(|(_, tap)| tap),
                begins: true,
            })),
            outcome: Mutex::default(),
            seed: spec.seed,
            path,
            part,
        })
    }

    /// Plays a run, and captures it if it is the one to be captured.
    pub(super) fn play(
        &self,
        spec: &Spec,
        stop: &AtomicBool,
        pulse: &dyn Fn(&Pulse),
    ) -> Result<RunOutput, String> {
        let writer = match spec.seed == self.seed {
            true => self.writer.lock().unwrap_or_else(PoisonError::into_inner).take(),
            false => None,
        };
        let Some(writer) = writer else {
            return play(spec, stop, pulse, None);
        };
        let (taps, reader) = tap(RING);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let of_writer = &over;
            let thread = scope.spawn(move || writer.write_all(&reader, of_writer));
            let output = {
                // Also if the run panics, the writer ends.
                let _ends = Ends(&over);
                play(spec, stop, pulse, Some(taps))
            };
            let outcome = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
            output
        })
    }

    /// The run is over: the capture is whole and takes its place. Where this is not called, nothing is left of it.
    pub(super) fn finish(self, common: &Common) -> Result<(), Failure> {
        let outcome = self.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = outcome.error {
            return Err(Failure::output(format!("cannot write {}: {error}", self.path)));
        }
        if outcome.lost > 0 {
            common.say(&format!(
                "{} lacks {} frames: writing was slower than the link.",
                self.path, outcome.lost
            ));
        }
        self.part.keep()
    }
}

/// Says that a run is over when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Writer {
    fn write_all(mut self, reader: &TapReader, over: &AtomicBool) -> Outcome {
        let mut error = None;
        loop {
            // Asked first: what came before the end is still in the ring.
            let last = over.load(Ordering::Acquire);
            while let Some(tapped) = reader.next() {
                if error.is_none() {
                    error = self.write(&tapped).err();
                }
            }
            if last {
                let lost = reader.lost();
                if error.is_none() && lost > 0 {
                    error = self.frames.lacks(lost).err();
                }
                let error = error.or_else(|| self.frames.flush().err());
                return Outcome { error, lost };
            }
            thread::sleep(PAUSE);
        }
    }

    fn write(&mut self, tapped: &Tapped) -> io::Result<()> {
        let forward = tapped.direction == 0;
        let interface = match (self.at, tapped.event) {
            (None, event) => Some(replay::point(tapped.direction, event)),
            (Some(_), Event::Dropped(_) | Event::Refused(_)) => None,
            (Some(at), event) => {
                let near = forward == matches!(event, Event::Entered);
                (near == (at == Tap::Near)).then_some(0)
            }
        };
        let Some(interface) = interface else {
            return Ok(());
        };
        // One point says too little for a replay.
        let begins = std::mem::take(&mut self.begins) && self.at.is_none();
        let comment = replay::remark(tapped, begins);
        self.frames.write(&RealFrame {
            unix_ns: tapped.unix_ns,
            interface,
            inbound: matches!(tapped.event, Event::Left { .. }),
            data: tapped.frame(),
            length: tapped.length,
            comment: comment.as_deref(),
        })
    }
}

/// The points of a capture, named as those of a simulated run.
fn interfaces(link: &str, at: Option<Tap>) -> Vec<Interface> {
    if let Some(at) = at {
        let (end, place) = match at {
            Tap::Near => ("near", "before the queue of the forward direction"),
            Tap::Far => ("far", "at the far end of the forward direction"),
        };
        return vec![Interface {
            name: format!("{link}-{end}"),
            description: format!("link {link}, both directions, {place}"),
        }];
    }
    let mut interfaces = Vec::new();
    for direction in ["forward", "reverse"] {
        for (end, place) in [
            ("in", "before its queue"),
            ("out", "at its far end"),
            ("drop", "where it drops packets"),
        ] {
            interfaces.push(Interface {
                name: format!("{link}-{direction}-{end}"),
                description: format!("link {link}, {direction}, {place}"),
            });
        }
    }
    interfaces
}

/// How long the writer sleeps when there is nothing to write.
const PAUSE: Duration = Duration::from_millis(3);
