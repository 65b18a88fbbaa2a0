//! Small forms of what every persistent connection has and few use at a time: an idle flow should be cheap.

use fleetfoot_core::rng::{Distribution, Rng, Sampler};
use std::collections::VecDeque;

/// A source of values; one that is constant needs no stream.
pub(super) enum Draw {
    Constant(f64),
    Random(Box<Sampler>),
}

impl Draw {
    pub(super) fn new(distribution: &Distribution, stream: impl FnOnce() -> Rng) -> Draw {
        match distribution {
            Distribution::Constant(value) => Draw::Constant(*value),
            other => Draw::Random(Box::new(Sampler::new(other.clone(), stream()))),
        }
    }

    pub(super) fn sample(&mut self) -> f64 {
        match self {
            Draw::Constant(value) => *value,
            Draw::Random(sampler) => sampler.sample(),
        }
    }
}

/// A queue that takes a word while it is empty.
#[expect(clippy::box_collection, reason = "a word, not four, while it is empty")]
pub(super) struct Queue<T>(Option<Box<VecDeque<T>>>);

impl<T> Queue<T> {
    pub(super) const fn new() -> Queue<T> {
        Queue(None)
    }

    pub(super) fn push_back(&mut self, value: T) {
        self.0.get_or_insert_default().push_back(value);
    }

    pub(super) fn pop_front(&mut self) -> Option<T> {
        let queue = self.0.as_mut()?;
        let value = queue.pop_front();
        if queue.is_empty() {
            self.0 = None; // idle for long, maybe
        }
        value
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.0.as_ref()?.front()
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut()?.front_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|queue| queue.iter())
    }

    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}
