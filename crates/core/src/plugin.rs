//! What a program brings from outside the tree: congestion controls and queue disciplines that names may mean beside the
//! registered ones.
//!
//! A configuration of an endpoint ([`crate::tcp::Config::plugins`]) and a run of the simulator carry the set; names are looked
//! up in the registry first. The laboratory holds the set of the program; a run keeps the one that it began with.

use crate::registry::{Entry, Plugin};
use crate::{cc, queue};
use core::fmt;
use serde::{Serialize, Serializer};

/// A set of implementations from outside the tree.
#[derive(Clone, Copy, Default)]
pub struct Plugins {
    /// Congestion controls.
    pub controllers: &'static [Plugin<cc::AnyController, cc::Config>],
    /// Queue disciplines.
    pub queues: &'static [Plugin<queue::AnyQueue, queue::LinkContext>],
}

impl Plugins {
    /// No implementation from outside.
    pub const NONE: Plugins = Plugins {
        controllers: &[],
        queues: &[],
    };

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.controllers.is_empty() && self.queues.is_empty()
    }

    /// Those of these names, with what lies between them in the list of queue disciplines.
    #[must_use]
    pub fn named(self, controller: &str, queues: &[&str]) -> Plugins {
        let used = |plugin: &Plugin<queue::AnyQueue, queue::LinkContext>| queues.contains(&plugin.entry.name);
        let first = self.queues.iter().position(used);
        let end = self.queues.iter().rposition(used).map_or(0, |last| last + 1);
        let at = self
            .controllers
            .iter()
            .position(|plugin| plugin.entry.name == controller);
        Plugins {
            controllers: at.map_or(&[], |at| &self.controllers[at..=at]),
            queues: first.map_or(&[], |first| &self.queues[first..end]),
        }
    }

    /// Every entry, congestion controls first.
    pub fn entries(self) -> impl Iterator<Item = &'static Entry> {
        let controllers = self.controllers.iter().map(|plugin| &plugin.entry);
        controllers.chain(self.queues.iter().map(|plugin| &plugin.entry))
    }
}

/// Two sets are equal if they hold the same names and texts.
impl PartialEq for Plugins {
    fn eq(&self, other: &Plugins) -> bool {
        let texts = |plugins: Plugins| plugins.entries().map(|entry| (entry.name, entry.source));
        self.queues.len() == other.queues.len() && texts(*self).eq(texts(*other))
    }
}

/// The names.
impl fmt::Debug for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.entries().map(|entry| entry.name))
            .finish()
    }
}

/// Names and texts, so that the identity of a run changes with an implementation.
impl Serialize for Plugins {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.entries().map(|entry| (entry.name, entry.source)))
    }
}
