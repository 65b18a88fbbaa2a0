use crate::Error;
use crate::contained::Contained;
use crate::shell::attend;
use crate::signals::Signals;
use std::io::PipeReader;
use std::process::{Command, ExitStatus};

/// Runs `command` in the network namespace of this thread while `serve` works, which is to end when what it is given can be read:
/// then the command has ended. If `serve` ends before, the command is asked to end, too. Signals that come meanwhile are the
/// command's. Nothing that it started is left.
///
/// # Errors
/// The command cannot be started, or those of `serve`.
pub fn beside<T>(
    command: Command,
    serve: impl FnOnce(&PipeReader) -> Result<T, Error>,
) -> Result<(T, ExitStatus), Error> {
    let pipe = || std::io::pipe().map_err(|cause| Error::new("cannot make a pipe", cause));
    let signals = Signals::take()?;
    let (command_ended, command_ends) = pipe()?;
    let (serving_ended, serving_ends) = pipe()?;
    let command = Contained::start(command)?;
    std::thread::scope(|scope| {
        let signals = &signals;
        let attending = scope.spawn(move || {
            let ended = attend(command, signals, &serving_ended, false);
            drop(command_ends);
            ended
        });
        let served = serve(&command_ended);
        drop(serving_ends);
        let ended = attending
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((served?, ended.status?))
    })
}
