//! How long something takes. A browser has no clock of the standard library: there the page gives one, and without it every
//! span is zero. Results never depend on it.

#[cfg(not(target_family = "wasm"))]
pub use std::time::Instant;

#[cfg(target_family = "wasm")]
pub use in_a_page::{Instant, keep};

#[cfg(target_family = "wasm")]
mod in_a_page {
    use std::sync::OnceLock;
    use std::time::Duration;

    static CLOCK: OnceLock<fn() -> f64> = OnceLock::new();

    /// From now on `clock` says what time it is (s), from any moment on.
    pub fn keep(clock: fn() -> f64) {
        // The first one stays.
        let _ = CLOCK.set(clock);
    }

    /// A moment.
    #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
    pub struct Instant(f64);

    impl Instant {
        /// This moment.
        #[must_use]
        pub fn now() -> Instant {
            Instant(CLOCK.get().map_or(0.0, |clock| clock()))
        }

        /// Time since then.
        #[must_use]
        pub fn elapsed(&self) -> Duration {
            Duration::from_secs_f64((Instant::now().0 - self.0).max(0.0))
        }
    }
}
