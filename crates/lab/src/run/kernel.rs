//! Runs that this machine's kernel plays, in real time: none of the simulator's beside them.

#[cfg(target_os = "linux")]
use super::Pulse;
#[cfg(target_os = "linux")]
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{Spec, World};
#[cfg(target_os = "linux")]
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, PoisonError};
#[cfg(target_os = "linux")]
use std::time::Instant;

/// Whether the kernel can play this; else why not.
///
/// # Errors
/// One sentence.
#[cfg(target_os = "linux")]
pub fn playable_by_kernel(spec: &Spec) -> Result<(), String> {
    fleetfoot_live::kernel::playable(spec).map(|_| ())
}

/// Whether the kernel can play this; else why not.
///
/// # Errors
/// One sentence.
#[cfg(not(target_os = "linux"))]
pub fn playable_by_kernel(_: &Spec) -> Result<(), String> {
    Err(String::from(
        "`kernel` needs Linux: it is built on network namespaces",
    ))
}

/// The name of the link whose packets pass here in real time: the bottleneck of a run that the kernel plays.
///
/// # Errors
/// As [`playable_by_kernel`].
#[cfg(target_os = "linux")]
pub fn link_of_kernel(spec: &Spec) -> Result<&str, String> {
    fleetfoot_live::kernel::playable(spec).map(|links| spec.links[links[0]].name.as_str())
}

/// Plays a run with the kernel's TCP, when no simulation works any more, and calls `pulse` now and then with its progress; `taps` are
/// shown every frame at the bottleneck, towards the receivers and back.
///
/// # Errors
/// The kernel cannot play it, or not here.
#[cfg(target_os = "linux")]
pub fn play(
    spec: &Spec,
    stop: &AtomicBool,
    pulse: &dyn Fn(&Pulse),
    taps: Option<[fleetfoot_live::Tap; 2]>,
) -> Result<RunOutput, String> {
    let _turn = Turn::take(spec.world);
    let begin = Instant::now();
    let reached = |now: fleetfoot_core::time::Instant| {
        pulse(&Pulse {
            worker: rayon::current_thread_index().unwrap_or(0),
            seed: spec.seed,
            at_s: now.as_secs_f64(),
            end_s: spec.duration.as_secs_f64(),
            wall_s: begin.elapsed().as_secs_f64(),
        });
    };
    fleetfoot_live::kernel::run(spec, stop, &reached, taps)
}

/// Who works: simulations, or runs in real time, which need the machine for themselves. As many of either as there are threads.
static TURNS: Mutex<[usize; 2]> = Mutex::new([0; 2]);
static CHANGED: Condvar = Condvar::new();

/// A turn of a run, until it is dropped.
pub(super) struct Turn(usize);

impl Turn {
    /// Waits until no run of the other world works.
    pub(super) fn take(world: World) -> Turn {
        let mut working = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        let own = usize::from(world.is_real());
        while working[1 - own] > 0 {
            working = CHANGED.wait(working).unwrap_or_else(PoisonError::into_inner);
        }
        working[own] += 1;
        Turn(own)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.lock().unwrap_or_else(PoisonError::into_inner)[self.0] -= 1;
        CHANGED.notify_all();
    }
}
