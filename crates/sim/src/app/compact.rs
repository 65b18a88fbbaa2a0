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

/// A queue that takes a word while it is empty, and little while it holds one.
pub(super) struct Queue<T>(Option<Box<Held<T>>>);

struct Held<T> {
    first: T,
    #[expect(clippy::box_collection, reason = "a word, not four, while it is empty")]
    later: Option<Box<VecDeque<T>>>,
}

impl<T> Queue<T> {
    pub(super) const fn new() -> Queue<T> {
        Queue(None)
    }

    pub(super) fn push_back(&mut self, value: T) {
        match &mut self.0 {
            Some(held) => held.later.get_or_insert_default().push_back(value),
            None => {
                let held = Held {
                    first: value,
                    later: None,
                };
                self.0 = Some(Box::new(held));
            }
        }
    }

    pub(super) fn pop_front(&mut self) -> Option<T> {
        let held = self.0.as_mut()?;
        match held.later.as_mut().and_then(|later| later.pop_front()) {
            Some(next) => Some(std::mem::replace(&mut held.first, next)),
            None => self.0.take().map(|held| held.first), // idle for long, maybe
        }
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.0.as_ref().map(|held| &held.first)
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut().map(|held| &mut held.first)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let held = self.0.iter();
        held.flat_map(|held| {
            std::iter::once(&held.first).chain(held.later.iter().flat_map(|later| later.iter()))
        })
    }

    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}
