//! A sweep as it travels to other processes and machines, and what its runs are known by.
//!
//! The description holds the scenario with the files it names, the axes, variants and seeds; it travels once to each worker. A
//! task (points and seeds) and its result are small. The key of a run follows from the program, from what of the scenario any
//! run follows from, from the values of its point, and from its seed: whoever hands out tasks need not resolve points.

use super::axes::{Axis, Points, Sampling};
use super::journal::Key;
use super::{Sweep, Until};
use crate::compare::Choice;
use crate::plugins;
use crate::run::Store;
use crate::scenario::{Error, ErrorKind, Files, Portable, Scenario, provide};
use serde::{Deserialize, Serialize};

/// A sweep as it is asked for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// What is swept.
    pub axes: Vec<Axis>,
    /// Not every combination.
    pub sample: Sampling,
    /// Variants and mechanisms beside the scenario as described.
    pub only: Vec<String>,
    /// Where queue mechanisms are applied.
    pub places: Vec<String>,
    /// The first seed, instead of the scenario's.
    pub seed: Option<u64>,
    /// Seeds of each point, instead of the scenario's; with `until` the most of them, by default 100.
    pub seeds: Option<u32>,
    /// When a point has enough seeds.
    pub until: Option<Until>,
}

/// Most seeds of a point with a rule of stopping.
const MOST_SEEDS: u32 = 100;

impl Wanted {
    /// The sweep of this scenario.
    ///
    /// # Errors
    /// What does not fit, in the words of the flags.
    pub fn of(self, scenario: Scenario) -> Result<Sweep, Error> {
        let choice = Choice {
            only: self.only,
            places: self.places,
            seed: self.seed,
            seeds: self.seeds.or(self.until.as_ref().map(|_| MOST_SEEDS)),
            ..Choice::default()
        };
        // Points that are drawn follow from the first seed.
        let points = Points::new(self.axes, self.sample, self.seed.unwrap_or(1))?;
        Sweep::new(scenario, points, choice, self.until)
    }
}

/// Version of the form in which descriptions, tasks and results travel.
const FORM: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Description {
    /// What identifies the program: keys and results of another one are others.
    program: String,
    /// The mechanisms from outside the tree that the sweep names, with what identifies each.
    foreign: Vec<(String, String)>,
    scenario: Portable,
    files: Files,
    axes: Vec<Axis>,
    sampling: Sampling,
    points_seed: u64,
    only: Vec<String>,
    places: Vec<String>,
    seeds: Vec<u64>,
    base: [u8; 32],
}

/// What the keys of a sweep follow from.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    base: [u8; 32],
    /// Mechanisms from outside the tree, with what identifies each.
    foreign: Vec<(String, String)>,
    /// The points with files named by their content, where values name files.
    points: Option<Points>,
}

impl Identity {
    pub(super) fn of(scenario: &Scenario, points: &Points, choice: &Choice) -> Identity {
        let mut hasher = blake3::Hasher::new();
        let lists = [&choice.only, &choice.places];
        let texts = lists.into_iter().flat_map(|list| {
            let list = list.iter().map(String::as_str);
            list.chain(std::iter::once(""))
        });
        let essence = scenario.essence(&choice.only);
        let named = |name: &str| {
            let in_values = || points.mentions(name);
            essence.contains(name) || choice.only.iter().any(|one| one.contains(name)) || in_values()
        };
        let foreign = foreign(named);
        let mechanisms = foreign
            .iter()
            .flat_map(|(name, source)| [name.as_str(), source.as_str()]);
        let texts = texts.chain(mechanisms);
        for text in std::iter::once(essence.as_str()).chain(texts) {
            hasher.update(text.as_bytes());
            hasher.update(&[0]);
        }
        // With the version of the program.
        let text = Store::key(&hasher.finalize().to_hex(), 0);
        Identity {
            base: *blake3::hash(text.as_bytes()).as_bytes(),
            foreign,
            points: points.travelling(&mut Files::new()),
        }
    }
}

/// The mechanisms from outside the tree whose name is wanted, with what identifies each.
fn foreign(wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let entries = plugins::installed().entries();
    let wanted = entries.filter(|entry| wanted(entry.name));
    wanted
        .map(|entry| (entry.name.to_owned(), entry.source.to_owned()))
        .collect()
}

impl Sweep {
    /// What the runs of a point are known by; [`PointKey::of_seed`] makes it that of one of them.
    pub(super) fn key(&self, point: usize) -> PointKey {
        let points = self.identity.points.as_ref().unwrap_or(&self.points);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.identity.base);
        for (axis, value) in points.axes().iter().zip(points.values(point)) {
            for text in [axis.path.as_str(), &value.to_string()] {
                hasher.update(text.as_bytes());
                hasher.update(&[0]);
            }
        }
        PointKey(hasher)
    }

    /// The sweep as it travels.
    ///
    /// # Errors
    /// None is known.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut files = Files::new();
        let scenario = self.scenario.portable(&mut files);
        let renamed = self.points.travelling(&mut files);
        let (axes, sampling, points_seed) = renamed.as_ref().unwrap_or(&self.points).parts();
        let description = Description {
            program: Store::key("", 0),
            foreign: self.identity.foreign.clone(),
            scenario,
            axes: axes.to_vec(),
            sampling,
            points_seed,
            only: self.choice.only.clone(),
            places: self.choice.places.clone(),
            seeds: self.seeds.clone(),
            base: self.identity.base,
            files,
        };
        postcard::to_stdvec(&(FORM, description)).map_err(|error| unreadable(&error.to_string()))
    }

    /// A sweep that travelled, for [`Worker`](super::Worker).
    ///
    /// # Errors
    /// It is no description, or one of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Sweep, Error> {
        let other = || unreadable("this is no description of a sweep, or one of another version");
        let (form, rest) = postcard::take_from_bytes::<u32>(bytes).map_err(|_| other())?;
        if form != FORM {
            return Err(other());
        }
        let (program, _) = postcard::take_from_bytes::<String>(rest).map_err(|_| other())?;
        if program != Store::key("", 0) {
            let message = format!(
                "this worker is another build of Fleetfoot ({}) than the program that drives the sweep; its results would be others",
                env!("CARGO_PKG_VERSION")
            );
            return Err(unreadable(&message));
        }
        let description: Description = postcard::from_bytes(rest).map_err(|_| other())?;
        provide(&description.files);
        let here = foreign(|name| description.foreign.iter().any(|(known, _)| known == name));
        if let Some((name, _)) = description.foreign.iter().find(|one| !here.contains(one)) {
            let message = format!(
                "this worker has no mechanism `{name}`, or another one of that name: mechanisms of a program are known in its own process, and in those that register them too"
            );
            return Err(unreadable(&message));
        }
        let choice = Choice {
            only: description.only,
            places: description.places,
            seed: description.seeds.first().copied(),
            seeds: u32::try_from(description.seeds.len()).ok(),
            ..Choice::default()
        };
        Ok(Sweep {
            scenario: description.scenario.scenario()?,
            points: Points::new(description.axes, description.sampling, description.points_seed)?,
            choice,
            seeds: description.seeds,
            until: None,
            identity: Identity {
                base: description.base,
                foreign: description.foreign,
                points: None,
            },
        })
    }
}

fn unreadable(message: &str) -> Error {
    Error::of_file("sweep", message.to_owned()).of_kind(ErrorKind::Invalid)
}

/// What the runs of one point are known by.
pub(super) struct PointKey(blake3::Hasher);

impl PointKey {
    pub(super) fn of_seed(&self, seed: u64) -> Key {
        let mut hasher = self.0.clone();
        hasher.update(&seed.to_le_bytes());
        let mut key = Key::default();
        key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        key
    }
}
