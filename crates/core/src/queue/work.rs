//! Counts the steps that disciplines take, so that the tests can hold them to constant work per call. Nothing outside tests.

#[cfg(test)]
extern crate std;

#[cfg(test)]
std::thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// One turn of a loop, or one call.
#[inline]
pub(super) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// Steps taken by this thread so far.
#[cfg(test)]
pub(super) fn steps() -> u64 {
    STEPS.with(core::cell::Cell::get)
}
