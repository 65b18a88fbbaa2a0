//! When a program is killed, what went through it may break off; at any other time nothing may.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts kills: an odd number while a program is gone.
#[derive(Default)]
pub(crate) struct Outages(AtomicU64);

impl Outages {
    /// A program is about to be killed, or works again.
    pub(crate) fn turn(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of now.
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until everything works: the number then.
    pub(crate) fn over(&self) -> u64 {
        loop {
            let now = self.now();
            if now.is_multiple_of(2) {
                return now;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
