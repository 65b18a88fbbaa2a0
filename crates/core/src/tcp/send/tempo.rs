//! What a sender needs that does more than send when the window opens: pacing, spreading, validation, rates, queues of its host.
//!
//! **Source.** That of each part.
//! **Deviations.** None known.

use crate::tcp::Shared;
use crate::tcp::config::{Config, Pacing};
use crate::tcp::send::host_queue::HostQueue;
use crate::tcp::send::spreading::{Spread, Train};
use crate::tcp::window::new_cwv::Validation;
use crate::tcp::window::rates::Rates;
use crate::time::Instant;
use alloc::boxed::Box;

/// What a sender needs that does more than send when the window opens.
pub(in crate::tcp) struct Tempo {
    /// When the next segment is due, were it not for the quantum.
    pub(super) next_at: Instant,
    /// When the group of segments began that leave together, and how many of it are left.
    group: (Instant, u64),
    pub(super) spread: Option<Spread>,
    /// Looks for the rate of the bottleneck.
    pub(super) train: Option<Train>,
    pub(super) validation: Option<Validation>,
    pub(super) rates: Option<Rates>,
    /// What waits in the host.
    pub(super) host: Option<HostQueue>,
    /// What a timer judged lost and no acknowledgment has reported to the controller.
    unreported: u64,
}

impl Tempo {
    /// `None`: the sender sends when the window opens.
    pub(in crate::tcp) fn new(now: Instant, shared: &Shared, uses_rates: bool) -> Option<Box<Tempo>> {
        let config = &shared.config;
        let validation = Validation::new(config.window_validation);
        let (spread, train) = (Spread::new(now, shared), Train::new(shared));
        let needed = uses_rates
            || config.pacing != Pacing::Off
            || validation.is_some()
            || spread.is_some()
            || train.is_some();
        needed.then(|| {
            Box::new(Tempo {
                spread,
                train,
                validation,
                rates: uses_rates.then(Rates::default),
                ..*Tempo::idle()
            })
        })
    }

    /// Nothing of it is needed.
    pub(super) fn idle() -> Box<Tempo> {
        Box::new(Tempo {
            next_at: Instant::ZERO,
            group: (Instant::ZERO, 0),
            spread: None,
            train: None,
            validation: None,
            rates: None,
            host: None,
            unreported: 0,
        })
    }

    /// Whether a group is under way whose segments leave together.
    pub(super) fn is_in_group(&self, now: Instant) -> bool {
        self.group.1 > 0 && self.group.0 == now
    }

    /// A segment left, of a group under way or as the first of one of `most`.
    pub(super) fn count_in_group(&mut self, now: Instant, most: u64) {
        self.group = match self.group {
            (began, left @ 1..) if began == now => (now, left - 1),
            _ => (now, most.saturating_sub(1)),
        };
    }

    /// New-CWV, if it validates the window.
    pub(super) fn validation(&mut self) -> Option<&mut Validation> {
        self.validation.as_mut()
    }

    /// Whether New-CWV holds the window for not validated.
    pub(super) fn is_nonvalidated(&self) -> bool {
        self.validation.as_ref().is_some_and(Validation::is_nonvalidated)
    }

    /// A timer judged `lost` to be lost: the next acknowledgment reports it.
    pub(in crate::tcp) fn on_timer_loss(&mut self, lost: u64) {
        self.unreported += lost;
    }

    /// What a timer judged lost since this was asked last.
    pub(in crate::tcp) fn take_unreported(&mut self) -> u64 {
        core::mem::take(&mut self.unreported)
    }

    /// Nothing is left to do.
    pub(super) fn is_over(&self, config: &Config) -> bool {
        self.spread.is_none()
            && self.train.is_none()
            && self.validation.is_none()
            && self.rates.is_none()
            && self.host.is_none()
            && config.pacing == Pacing::Off
    }
}
