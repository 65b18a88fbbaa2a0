//! A run in steps: it pauses where a mechanism in it asks for a decision, and its caller holds it meanwhile.

use super::{Advance, World};
use crate::error::RunError;
use crate::network::Mode;
use crate::observe::Behind;
use crate::output::RunOutput;
use crate::spec::Spec;
use fleetfoot_core::time::Instant;
use self_cell::{MutBorrow, self_cell};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to pause, shared by the run and whoever asks for the pause: a congestion control in it.
#[derive(Clone, Debug, Default)]
pub struct Pause(Arc<AtomicBool>);

impl Pause {
    /// The run stops after what happens now.
    #[inline]
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn pauses(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The world of a run until its output is taken.
struct Running<'a>(Option<World<'a, Behind<'static>>>);

self_cell!(
    /// A specification and the run that borrows it.
    struct Held {
        owner: MutBorrow<(Spec, Behind<'static>)>,
        #[not_covariant]
        dependent: Running,
    }
);

/// A run that goes on when [`Steps::advance`] is called and stops at every [`Pause`]. It has the results of [`super::run`].
pub struct Steps {
    held: Held,
    pause: Pause,
}

impl Steps {
    /// A run that has not begun. `pause` stops it.
    ///
    /// # Errors
    /// As [`super::run`].
    pub fn new(spec: Spec, mode: Mode, pause: Pause) -> Result<Steps, RunError> {
        let held = Held::try_new(MutBorrow::new((spec, Behind::Pause(pause.clone()))), |owner| {
            let (spec, observer) = owner.borrow_mut();
            World::new(spec, mode, observer).map(|world| Running(Some(world)))
        })?;
        Ok(Steps { held, pause })
    }

    /// Goes on until the next pause, or to the end.
    pub fn advance(&mut self) -> Advance {
        self.pause.0.store(false, Ordering::Relaxed);
        self.held.with_dependent_mut(|_, running| match &mut running.0 {
            Some(world) => world.advance(&mut |_, _| ControlFlow::Continue(())),
            None => Advance::Ended,
        })
    }

    /// The time of the last event.
    pub fn now(&self) -> Instant {
        self.held
            .with_dependent(|_, running| running.0.as_ref().map_or(Instant::ZERO, World::now))
    }

    /// What was measured. Before the end: of a run that is cut here without a mark of that, so call it at the end.
    pub fn finish(mut self) -> Option<RunOutput> {
        self.held
            .with_dependent_mut(|_, running| running.0.take().map(World::finish))
    }
}
