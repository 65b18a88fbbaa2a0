//! The sweep over another process, which has workers of its own: the Python package with Ray.
//!
//! **Protocol.** Frames in both directions: length (4 bytes, little-endian), kind (1 byte), content. To the process: `d` the description, then
//! tasks `t` (number, 8 bytes, and what [`Worker::run_bytes`](super::Worker::run_bytes) takes), until the stream is closed. From it: `h` once, how many workers there
//! are (decimal); `r` results (number of the task, and what a worker returned), in any order; `l` a task (number) that was lost for good and
//! is to be handed out again; `e` an error in words, the last frame. At most two tasks for each worker are under way.

use super::driver::{Driver, ExecuteError, Step, Swept};
use super::work::Unit;
use super::{Journal, Sweep};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Tasks under way for each worker: one that is run, one that waits for it.
const PER_WORKER: usize = 2;
/// A frame is never so long.
const MOST_FRAME: u32 = 1 << 30;
/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long finished runs are waited for when the sweep is stopped.
const FAREWELL: u32 = 50;

/// Why a sweep over another process ended.
#[derive(Debug, thiserror::Error)]
pub enum PipeError {
    /// The process ended before it said how many workers there are.
    #[error("it did not start")]
    NotStarted,
    /// It said what is wrong.
    #[error("{0}")]
    Said(String),
    /// Anything else.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
}

/// Writes a frame.
///
/// # Errors
/// What `to` says.
pub fn write_frame(to: &mut impl Write, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length)
        .ok()
        .filter(|&length| length < MOST_FRAME)
        .ok_or_else(|| io::Error::other("too long for a frame"))?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&[kind])?;
    for part in parts {
        to.write_all(part)?;
    }
    to.flush()
}

/// Reads a frame: kind and content; `None` at the end of the stream.
///
/// # Errors
/// What `from` says; the stream ends within a frame.
pub fn read_frame(from: &mut impl Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; 5];
    match from.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let [a, b, c, d, kind] = head;
    let length = u32::from_le_bytes([a, b, c, d]);
    if length >= MOST_FRAME {
        return Err(io::Error::other("too long for a frame"));
    }
    let mut content = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut content)?;
    match content.len() == length as usize {
        true => Ok(Some((kind, content))),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Runs the sweep over a process that reads `to` and writes `from`. `to` is closed at the end, and when the sweep is stopped; then
/// `end` sees to it that the process ends.
///
/// # Errors
/// As [`execute`](super::execute); the process did not start, or said what is wrong.
pub fn execute_over(
    sweep: &Sweep,
    journal: &Journal,
    mut from: impl Read + Send,
    to: impl Write,
    stop: &AtomicBool,
    progress: &dyn Fn(&Step),
    end: impl FnOnce(),
) -> Result<Swept, PipeError> {
    let description = sweep
        .to_bytes()
        .map_err(|error| ExecuteError::Worker(error.to_string()))?;
    let (send, frames) = mpsc::sync_channel(64);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let frame = read_frame(&mut from);
                let over = !matches!(frame, Ok(Some(_)));
                if send.send(frame).is_err() || over {
                    return;
                }
            }
        });
        let mut over = Over {
            driver: Driver::new(sweep, journal),
            to: Some(to),
            workers: None,
            next: 0,
            underway: BTreeMap::new(),
            progress,
        };
        over.write(b'd', &[&description]);
        let mut farewell = 0;
        let ended = loop {
            if stop.load(Ordering::Relaxed) {
                over.to = None;
                farewell += 1;
            }
            if over.driver.is_done() || farewell > FAREWELL {
                break Ok(());
            }
            match frames.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Err(over.gone(stop)),
                Ok(Ok(Some((kind, content)))) => {
                    if let Err(error) = over.frame(kind, &content) {
                        break Err(error);
                    }
                }
                Ok(Ok(None) | Err(_)) => break Err(over.gone(stop)),
            }
        };
        over.to = None;
        // The thread that reads goes on to the end of the stream.
        drop(frames);
        end();
        match ended {
            Err(PipeError::Execute(ExecuteError::Worker(_))) | Ok(()) if stop.load(Ordering::Relaxed) => {
                Ok(over.driver.finish())
            }
            Ok(()) => Ok(over.driver.finish()),
            Err(error) => Err(error),
        }
    })
}

struct Over<'a, W> {
    driver: Driver<&'a Sweep, &'a Journal>,
    /// Closed when there is nothing more to say.
    to: Option<W>,
    workers: Option<usize>,
    next: u64,
    underway: BTreeMap<u64, Vec<Unit>>,
    progress: &'a dyn Fn(&Step),
}

impl<W: Write> Over<'_, W> {
    /// A process that reads no more says why in a frame, or ends: that is heard.
    fn write(&mut self, kind: u8, parts: &[&[u8]]) {
        if let Some(to) = &mut self.to
            && write_frame(to, kind, parts).is_err()
        {
            self.to = None;
        }
    }

    fn frame(&mut self, kind: u8, content: &[u8]) -> Result<(), PipeError> {
        let progress = self.progress;
        let number = content.split_first_chunk::<8>();
        match (kind, number) {
            (b'h', _) => {
                let text = String::from_utf8_lossy(content);
                let workers = text.trim().parse().unwrap_or(1);
                self.workers = Some(std::cmp::max(workers, 1));
            }
            (b'r', Some((number, result))) => {
                let units = self.underway.remove(&u64::from_le_bytes(*number));
                let units = units.ok_or_else(strange)?;
                self.driver
                    .enter_bytes(&units, result, &mut |step| progress(step))?;
            }
            (b'l', Some((number, _))) => {
                let units = self.underway.remove(&u64::from_le_bytes(*number));
                self.driver.give_back(&units.ok_or_else(strange)?);
            }
            (b'e', _) => return Err(PipeError::Said(String::from_utf8_lossy(content).into_owned())),
            _ => return Err(strange().into()),
        }
        self.hand_out()
    }

    fn hand_out(&mut self) -> Result<(), PipeError> {
        let progress = self.progress;
        let Some(workers) = self.workers else {
            return Ok(());
        };
        while self.to.is_some() && self.underway.len() < workers * PER_WORKER {
            let taken = self.driver.take_bytes(workers, &mut |step| progress(step));
            let Some((units, task)) = taken.map_err(ExecuteError::Journal)? else {
                return Ok(());
            };
            let number = self.next;
            self.next += 1;
            self.write(b't', &[&number.to_le_bytes(), &task]);
            self.underway.insert(number, units);
        }
        Ok(())
    }

    /// Why nothing more comes.
    fn gone(&self, stop: &AtomicBool) -> PipeError {
        match self.workers {
            None if !stop.load(Ordering::Relaxed) => PipeError::NotStarted,
            _ => ExecuteError::Worker(String::from("the process that has the workers ended")).into(),
        }
    }
}

fn strange() -> ExecuteError {
    ExecuteError::Worker(String::from(
        "the process that has the workers said something that is not understood",
    ))
}
