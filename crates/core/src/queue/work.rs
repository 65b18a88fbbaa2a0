//! Counts the steps that disciplines take, so that the tests can hold them to constant work per call. Nothing outside tests.

#[cfg(test)]
extern crate std;

#[cfg(test)]
std::thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
    static PROBES: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// One turn of a loop, or one call.
#[inline]
pub(super) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// Counts slots of a hash table that were looked at.
#[inline]
pub(super) fn probes(n: usize) {
    #[cfg(test)]
    PROBES.with(|probes| probes.set(probes.get() + n as u64));
    #[cfg(not(test))]
    let _ = n;
}

/// Slots that this thread looked at so far.
#[cfg(test)]
pub(super) fn probed() -> u64 {
    PROBES.with(core::cell::Cell::get)
}

/// Steps taken by this thread so far.
#[cfg(test)]
pub(super) fn steps() -> u64 {
    STEPS.with(core::cell::Cell::get)
}
