//! Equal demand: users of a variant ask for no more than they did in the file as it stands.
//!
//! Users who are answered sooner ask again sooner, so a variant that helps them makes them carry more, at the expense of others.
//! Where a group asks for `demand = "as baseline"`, each of its users makes in a variant at most the requests that the same
//! user made in the baseline's run of the same seed. Sizes and think times come from the user's own streams, so they are the
//! same. **What stays different.** A user who is served later may not get to all of them before the run ends.

use super::{Error, Finished, Job};
use crate::identity;
use crate::scenario::{Group, Resolved};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The run that says how much is asked for.
#[derive(Clone, Debug)]
pub struct Demand {
    /// What identifies it besides the seed.
    pub identity: String,
    /// What it runs; the seed is filled in.
    pub spec: Spec,
    /// The groups whose users are held to it.
    groups: Vec<usize>,
}

impl Demand {
    /// What `groups` ask for is that of `baseline`; `None` if none of them wants that.
    pub fn new(groups: &[Group], baseline: &Spec) -> Option<Demand> {
        let groups: Vec<usize> = groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.equal_demand)
            .map(|(index, _)| index)
            .collect();
        (!groups.is_empty()).then(|| Demand {
            identity: identity::of(baseline),
            spec: baseline.clone(),
            groups,
        })
    }

    /// The demand of a variant of `described`; none for the file as it stands.
    pub(crate) fn of_variant(variant: &Resolved, described: &Resolved) -> Option<Demand> {
        Demand::new(&variant.groups, &described.spec)
            .filter(|demand| demand.identity != identity::of(&variant.spec))
    }

    /// `spec` with the requests of its users limited to those that `baseline`, the run of the same seed, counted.
    pub fn applied_to(&self, spec: &Spec, baseline: &RunOutput) -> Spec {
        let mut spec = spec.clone();
        for &index in &self.groups {
            let made = baseline.groups.get(index).map(|group| &group.requests);
            if let (Some(group), Some(made)) = (spec.groups.get_mut(index), made) {
                group.most_requests = Some(made.as_slice().into());
            }
        }
        spec
    }
}

/// Runs that are made once and asked for by many, by identity and seed: those of the baselines that jobs take their demand from, and those
/// that several jobs have in common.
#[derive(Debug, Default)]
pub(super) struct Shared(BTreeMap<(String, u64), Mutex<Option<Finished>>>);

impl Shared {
    /// The runs that more than one of `jobs` may ask for.
    pub(super) fn of(jobs: &[Job], seeds: &[u64]) -> Shared {
        let wanted = jobs.iter().filter_map(|job| job.demand.as_ref());
        let mut identities: BTreeSet<&String> = wanted.map(|demand| &demand.identity).collect();
        let mut seen = BTreeSet::new();
        identities.extend(
            jobs.iter()
                .map(|job| &job.identity)
                .filter(|identity| !seen.insert(*identity)),
        );
        let places = identities.into_iter().flat_map(|identity| {
            let place = |seed: &u64| ((identity.clone(), *seed), Mutex::default());
            seeds.iter().map(place)
        });
        Shared(places.collect())
    }

    /// The run with this identity and seed: the one that is there, or what `make` returns. Whoever else asks for it waits.
    pub(super) fn get(
        &self,
        identity: &str,
        seed: u64,
        make: impl FnOnce() -> Result<Option<Finished>, Error>,
    ) -> Result<Option<Finished>, Error> {
        if self.0.is_empty() {
            return make();
        }
        let Some(place) = self.0.get(&(identity.to_owned(), seed)) else {
            return make();
        };
        // A thread that panicked left nothing half made.
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.is_none() {
            *place = make()?;
        }
        Ok(place.clone())
    }

    /// Nobody will ask again: what is held here need not stay in memory.
    pub(super) fn forget(&self) {
        for place in self.0.values() {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}
