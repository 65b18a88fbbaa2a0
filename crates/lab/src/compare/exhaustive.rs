//! The search that `recommend` saves: every candidate of its space with all seeds. To judge the search by, in tests; the search itself
//! takes [`planned`] of it.

use super::plan::Candidate;
use super::space::{self, Wish};
use super::study::{Runner, StudyError};
use super::{Choice, Plan, ranked, turn_on};
use crate::result::RunData;
use crate::run::Batch;

/// Candidates that are run at a time, so that few runs are in memory.
const AT_A_TIME: usize = 16;

/// A candidate over all seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Worth {
    /// What it is.
    pub candidate: Candidate,
    /// What it is called.
    pub name: String,
    /// Share of the time of those who wait that it saves.
    pub win: f64,
    /// Share that the group which it harms most loses.
    pub harm: f64,
    /// Time saved less harm; -inf where more of those who wait wait in vain.
    pub net: f64,
}

/// Everything that a search can meet in a network: resolved, different from each other and from the network as described.
///
/// # Errors
/// A variant cannot be resolved.
pub fn space(baseline: &Plan, described: &[RunData], wish: Wish) -> Result<Vec<Candidate>, StudyError> {
    let singles = space::candidates(&baseline.scenario, wish);
    let singles = planned(baseline, described, singles)?;
    let mut identities = vec![crate::identity::of(&baseline.described.spec)];
    let mut all = Vec::new();
    for candidate in space::whole(&singles, wish) {
        let alone = planned(baseline, described, vec![candidate.clone()])?;
        let identity = alone
            .variants
            .get(1)
            .map(|variant| crate::identity::of(&variant.resolved.spec));
        let missing = || turn_on::missing_at(&alone, 1).is_some();
        if let Some(identity) = identity.filter(|identity| !identities.contains(identity) && !missing()) {
            identities.push(identity);
            all.push(candidate);
        }
    }
    Ok(all)
}

/// The plan of these candidates in the network of `baseline`, of which `described` are the runs.
///
/// # Errors
/// A variant cannot be resolved.
pub fn planned(
    baseline: &Plan,
    described: &[RunData],
    candidates: Vec<Candidate>,
) -> Result<Plan, StudyError> {
    let choice = Choice {
        candidates,
        ..baseline.choice().clone()
    };
    Ok(baseline.clone().choosing(choice).with_baseline(described)?)
}

/// Runs these candidates with all seeds of `baseline`, of which `described` are the runs; the best first.
///
/// # Errors
/// A variant cannot be resolved, or a run fails.
pub fn exhaustive(
    baseline: &Plan,
    described: &[RunData],
    candidates: &[Candidate],
    run: &mut Runner<'_>,
) -> Result<Vec<Worth>, StudyError> {
    let mut all = Vec::new();
    for some in candidates.chunks(AT_A_TIME) {
        let plan = planned(baseline, described, some.to_vec())?;
        let mut batch = run("every candidate", &plan.jobs()[1..], &plan.seeds)?;
        batch.runs.insert(0, described.to_vec());
        let there = ranked(&plan, &batch);
        for ((candidate, variant), net) in some.iter().zip(&there.variants[1..]).zip(&there.rows.nets) {
            let versus = variant.versus.as_ref();
            all.push(Worth {
                candidate: candidate.clone(),
                name: variant.name.clone(),
                win: versus.and_then(|versus| versus.win).unwrap_or(0.0),
                harm: versus
                    .and_then(|versus| versus.harm)
                    .map_or(0.0, |harm| harm.value),
                net: net.as_ref().map_or(f64::NEG_INFINITY, |net| net.value),
            });
        }
    }
    all.sort_by(|one, other| other.net.total_cmp(&one.net));
    Ok(all)
}

/// How far one candidate is behind another, in time saved less harm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Estimate.
    pub value: f64,
    /// 95 % interval, paired by seed.
    pub ci95: Option<[f64; 2]>,
    /// By how much one may be behind and count as equal.
    pub margin: f64,
}

/// How far the second variant of `plan` but the baseline is behind the first. `None` where one of them has no net.
pub fn difference(plan: &Plan, batch: &Batch) -> Option<Difference> {
    let rows = ranked(plan, batch).rows;
    let [Some(best), Some(other)] = rows.nets.as_slice() else {
        return None;
    };
    let behind = other.behind(best);
    Some(Difference {
        value: behind.value,
        ci95: behind.ci95,
        margin: super::tiers::margin(best.value),
    })
}
