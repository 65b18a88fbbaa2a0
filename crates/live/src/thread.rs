//! What a thread asks of the scheduler.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Duration;

/// The kernel's number of this thread.
pub fn thread_id() -> i32 {
    nix::unistd::gettid().as_raw()
}

/// Runs this thread, and those it starts, before ordinary ones: it sleeps most of the time and has to wake on time. A refusal
/// costs punctuality only. Whether it was permitted.
pub(crate) fn prefer() -> bool {
    // What the kernel reads is one integer. The function of this name in musl always fails.
    let lowest: libc::c_int = 1;
    // SAFETY: the pointer is to a live parameter; 0 is this thread.
    unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_FIFO,
            &raw const lowest,
        ) == 0
    }
}

/// Keeps idle cores from sleeping so deeply that they wake late, until the file is closed; the kernel ends the request with this
/// process. Without the permission nothing is asked for, which costs punctuality only.
pub(crate) fn stay_awake() -> Option<File> {
    let mut request = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    // The longest wake-up that is wanted, in microseconds.
    request.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(request)
}

/// How long, since this machine started, something that could run waited for a core (pressure stall information); `None` where the
/// kernel does not count it.
pub fn waited_for_cores() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total = some.rsplit_once("total=")?.1.trim().parse().ok()?;
    Some(Duration::from_micros(total))
}

/// Whether the kernel has put a thread of this process to sleep (state S or D).
pub fn sleeps(thread: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")) else {
        return false;
    };
    // The name, in parentheses, may hold anything: the state follows the last one.
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with(['S', 'D']))
}
