//! A command from which nothing is left when it ends, or when this program does.
//!
//! The command runs in a process namespace, below a first process of it that is a copy of this one. When the command ends, the
//! first process ends, and the kernel kills whatever else was started in that namespace. The kernel also kills the first process
//! when the thread that keeps it ends, which a kill of this program cannot prevent. The namespace has its own `/proc` where the
//! kernel permits that.

use crate::Error;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Instant;

/// A command with everything that it starts. Dropping it kills all of that.
pub(crate) struct Contained {
    /// The first process.
    first: Pid,
    keeper: Option<JoinHandle<io::Result<ExitStatus>>>,
    ended: PipeReader,
    began: Instant,
}

impl Contained {
    /// Starts `command` in the network namespace of this thread.
    pub(crate) fn start(mut command: Command) -> Result<Contained, Error> {
        let (ended, ends) = io::pipe().map_err(|cause| Error::new("cannot make a pipe", cause))?;
        let (started, starts) = channel();
        let keeper = std::thread::spawn(move || {
            let _ends = ends;
            let (child, began) = begin(&mut command);
            // What the command was made with is not held open for it.
            drop(command);
            let mut child = match child {
                Ok(child) => child,
                Err(error) => {
                    let _ = started.send(Err(error));
                    return Err(io::ErrorKind::NotFound.into());
                }
            };
            let _ = started.send(Ok((Pid::from_raw(child.id().cast_signed()), began)));
            child.wait()
        });
        let (first, began) = starts
            .recv()
            .map_err(|_| Error::new("cannot start a command", io::ErrorKind::BrokenPipe))??;
        Ok(Contained {
            first,
            keeper: Some(keeper),
            ended,
            began,
        })
    }

    /// When it was started: before it could do anything.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Passes a signal on to the command.
    pub(crate) fn signal(&self, signal: Signal) {
        // It may have ended meanwhile; its number is not used again before it was waited for, which is the end of the keeper.
        if self.keeper.as_ref().is_some_and(|keeper| !keeper.is_finished()) {
            let _ = kill(self.first, signal);
        }
    }

    /// Whether the command has ended.
    pub(crate) fn has_ended(&self) -> bool {
        let mut wanted = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        poll(&mut wanted, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }

    /// Waits for the end: the command's exit status, 128 and the signal's number where a signal ended it.
    pub(crate) fn wait(mut self) -> Result<ExitStatus, Error> {
        self.join()
            .map_err(|cause| Error::new("cannot wait for the command", cause))
    }

    fn join(&mut self) -> io::Result<ExitStatus> {
        match self.keeper.take() {
            Some(keeper) => keeper
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl AsFd for Contained {
    /// Shows an end of file when the command has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        let _ = self.join();
    }
}

/// Starts the command below a first process, and when that was; this thread is the keeper.
fn begin(command: &mut Command) -> (Result<Child, Error>, Instant) {
    if let Err(errno) = unshare(CloneFlags::CLONE_NEWPID) {
        let error = Error::new("cannot make a process namespace", errno);
        return (Err(error), Instant::now());
    }
    // Only for a /proc of its own.
    let own_mounts = unshare(CloneFlags::CLONE_NEWNS).is_ok();
    // SAFETY: between fork and exec only calls of the kernel are made, on values of the stack.
    unsafe {
        command.pre_exec(move || {
            let done = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if done < 0 {
                return Err(io::Error::last_os_error());
            }
            // The link's threads have a slack of 1 ns; the command's timers are those of any program.
            libc::prctl(libc::PR_SET_TIMERSLACK, USUAL_SLACK);
            if own_mounts {
                mount_proc();
            }
            divide()
        });
    }
    let began = Instant::now();
    let child = command.spawn().map_err(|cause| {
        // Not for want of rights of ours: with those of root, too.
        let cause = match cause.raw_os_error() {
            Some(libc::EACCES) => io::Error::other("it is not an executable file"),
            _ => cause,
        };
        let program = command.get_program().to_string_lossy().into_owned();
        Error::new(format!("cannot run {program}"), cause)
    });
    (child, began)
}

/// Shows the processes of this namespace, and no others, in `/proc`. A refusal leaves that of the namespace above.
///
/// # Safety
/// This process has mounts of its own.
unsafe fn mount_proc() {
    let none = std::ptr::null();
    let (root, proc) = (c"/".as_ptr(), c"proc".as_ptr());
    // What is mounted here is not seen outside; what is mounted outside is seen here.
    // SAFETY: the pointers are to constant strings.
    unsafe {
        if libc::mount(none, root, none, libc::MS_REC | libc::MS_SLAVE, none.cast()) == 0 {
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            libc::mount(proc, c"/proc".as_ptr(), proc, flags, none.cast());
        }
    }
}

/// Returns in the process that becomes the command; the one that calls it stays the first of its namespace, and ends with it.
///
/// # Safety
/// Called between fork and exec.
unsafe fn divide() -> io::Result<()> {
    // SAFETY: all calls take numbers, or pointers to values of this stack.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        let command = libc::fork();
        if command < 0 {
            return Err(io::Error::last_os_error());
        }
        if command == 0 {
            libc::sigemptyset(&raw mut all);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
            return Ok(());
        }
        watch(command, &all)
    }
}

/// The first process of the namespace: takes in what ended, passes signals on that another process sent it (those of the terminal
/// reach the command anyway), and ends with the command.
///
/// # Safety
/// Called between fork and exec, in a process that has no use for its descriptors.
unsafe fn watch(command: libc::pid_t, all: &libc::sigset_t) -> ! {
    // SAFETY: all calls take numbers, or pointers to values of this stack.
    unsafe {
        // Nobody shall wait for an end of file because of this process.
        if libc::syscall(libc::SYS_close_range, 0_u32, u32::MAX, 0_u32) < 0 {
            for descriptor in 0..1024 {
                libc::close(descriptor);
            }
        }
        loop {
            let mut information: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigwaitinfo(all, &raw mut information);
            if signal == libc::SIGCHLD {
                loop {
                    let mut status = 0;
                    let ended = libc::waitpid(-1, &raw mut status, libc::WNOHANG);
                    if ended == command {
                        libc::_exit(if libc::WIFSIGNALED(status) {
                            128 + libc::WTERMSIG(status)
                        } else {
                            libc::WEXITSTATUS(status)
                        });
                    }
                    if ended <= 0 {
                        break;
                    }
                }
            } else if signal > 0 && information.si_code <= 0 {
                // As Ctrl-C on a terminal does, these reach everything that the command has started, not a shell that waits for it alone.
                let all = signal == libc::SIGINT || signal == libc::SIGQUIT;
                libc::kill(if all { -1 } else { command }, signal);
            }
        }
    }
}

/// Timer slack of a program that asks for none (ns): the kernel's default.
const USUAL_SLACK: libc::c_ulong = 50_000;
