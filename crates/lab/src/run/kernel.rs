//! Runs that this machine's kernel plays, in real time: none of the simulator's beside them.

use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{Spec, World};
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, PoisonError};

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

/// Plays a run with the kernel's TCP; `pulse` gets the time reached.
pub(super) fn play(
    spec: &Spec,
    stop: &AtomicBool,
    reached: &dyn Fn(fleetfoot_core::time::Instant),
) -> Result<RunOutput, String> {
    #[cfg(target_os = "linux")]
    return fleetfoot_live::kernel::run(spec, stop, reached);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (stop, reached);
        playable_by_kernel(spec).map(|()| RunOutput::default())
    }
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
