//! Workers of a sweep in another process: the Python package with Ray.

use crate::failure::Failure;
use fleetfoot_lab::sweep::{Journal, PipeError, Step, Sweep, Swept, execute_over};
use std::io::{BufWriter, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What installs the package with Ray. It is on no registry.
const INSTALL: &str = "pip install \".[ray]\" in a checkout of Fleetfoot, or pip install \"PATH[ray]\" with the path of a wheel";
/// What the package says of a library that it misses.
const NOT_INSTALLED: &str = " is not installed: pip install ";
/// How long the process may take to end once it was told.
const FAREWELL: Duration = Duration::from_secs(10);

/// Runs the sweep over Ray, by way of the Python package. The error is a message of its own, or one of the sweep.
pub(crate) fn sweep_over_ray(
    sweep: &Sweep,
    journal: &Journal,
    address: Option<&str>,
    stop: &AtomicBool,
    progress: &dyn Fn(&Step),
) -> Result<Swept, Result<Failure, PipeError>> {
    let mut command = Command::new("python3");
    command.args(["-m", "fleetfoot.ray"]);
    command.args(address.iter().flat_map(|address| ["--address", address]));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Ctrl-C is for this program, which tells the other.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let missing = |why: &str| {
        Ok(Failure::usage(format!(
            "--engine ray needs the Python package with Ray, for the python3 that is first in PATH: {INSTALL} ({why})"
        )))
    };
    let mut child = command
        .spawn()
        .map_err(|error| missing(&format!("python3 cannot be started: {error}")))?;
    let (Some(input), Some(output), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(missing("python3 has no standard streams"));
    };
    let told = Mutex::new(String::new());
    let ended = std::thread::scope(|scope| {
        // What Python and Ray tell is kept for the case that it goes wrong.
        scope.spawn(|| {
            let mut text = Vec::new();
            let mut errors = errors;
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = errors.read(&mut piece) {
                text.extend_from_slice(&piece[..length]);
                let from = text.len().saturating_sub(MOST_TOLD);
                text.drain(..from);
            }
            if let Ok(mut told) = told.lock() {
                *told = String::from_utf8_lossy(&text).into_owned();
            }
        });
        execute_over(
            sweep,
            journal,
            output,
            BufWriter::new(input),
            stop,
            progress,
            || end(&mut child),
        )
    });
    let told = told.into_inner().unwrap_or_default();
    let last = told.lines().rev().find(|line| !line.trim().is_empty());
    ended.map_err(|error| match error {
        PipeError::NotStarted => {
            let last = last.unwrap_or("nothing was said").trim();
            match told.contains("No module named") || told.contains(NOT_INSTALLED) {
                true => missing(last),
                false => Ok(Failure::other(format!(
                    "the workers of Ray ended before they began: {last}"
                ))),
            }
        }
        PipeError::Said(message) => Ok(Failure::usage(message)),
        PipeError::Execute(_) => Err(error),
    })
}

/// What is kept of what the process tells (bytes).
const MOST_TOLD: usize = 64 << 10;

/// Waits until the process has ended, and ends it if it does not.
fn end(child: &mut Child) {
    let begin = Instant::now();
    while begin.elapsed() < FAREWELL {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Ok(Some(_)) | Err(_) => return,
        }
    }
    // It has ended meanwhile, or is ended now.
    let _ = child.kill();
    let _ = child.wait();
}
