//! What to run: the scenario as described and what it is compared with.

use super::echo::Echo;
use super::parts::Part;
use super::place::{self, Place, contained, named};
use super::senders::senders;
use super::space::Wish;
use super::turn_on;
use super::unknown::unknown_in;
use crate::identity;
use crate::mechanisms::{self, Mechanism};
use crate::result::{Inapplicable, RunData, Senders, Standing};
use crate::run::{Demand, Job};
use crate::scenario::{BASELINE, Error, ErrorKind, Resolved, Scenario, Setting, Site};
use fleetfoot_sim::spec::Compared;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// As it stands.
    pub described: Resolved,
    /// What is compared; the first is the scenario as described.
    pub variants: Vec<Planned>,
    /// Mechanisms that do not apply, with the reason.
    pub inapplicable: Vec<Inapplicable>,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// Every place of the network.
    pub places: Vec<Place>,
    /// What waits at each place in the baseline; empty before it was run.
    pub standing: Vec<Standing>,
    /// Indices of the places that queue mechanisms are applied to.
    pub chosen: Vec<usize>,
    /// Whether the user chose the places.
    pub asked: bool,
    /// Whether links that are no bottleneck get no intervals: for a first look, which does not show them.
    pub brief: bool,
    /// What pings would show of what is recommended, as far as that was measured.
    pub(super) echoes: Vec<Echo>,
    choice: Choice,
}

/// A variant to run.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// What it changes.
    pub set: Setting,
    /// What it becomes.
    pub resolved: Resolved,
    /// The registered mechanisms it consists of; empty where it is none.
    pub mechanisms: Vec<&'static Mechanism>,
    /// Indices of the places whose queue it changes.
    pub places: Vec<usize>,
    /// The senders it changes.
    pub senders: Option<Senders>,
    /// Parameters of the queues it changes with another value than the mechanisms': in a search, and on long paths (`long_path`).
    pub tuned: Vec<(&'static str, toml::Value)>,
    /// Name of the variant of which it is a part: the same mechanism at some of its places only, or on one side only.
    pub part_of: Option<String>,
}

impl Planned {
    /// A variant of which only the runs are wanted: what it changes is not looked for.
    pub(crate) fn plain(name: String, set: Setting, resolved: Resolved) -> Planned {
        Planned {
            name,
            set,
            resolved,
            mechanisms: Vec::new(),
            places: Vec::new(),
            senders: None,
            tuned: Vec::new(),
            part_of: None,
        }
    }
}

/// What to compare.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Also the sensible pairs of mechanisms.
    pub pairs: bool,
    /// Only the scenario itself, or this variant or mechanism: for single runs.
    pub single: Option<String>,
    /// Only these variants, mechanisms, or mechanisms joined by `+`; empty: all.
    pub only: Vec<String>,
    /// Whether a queue that `only` names is not also tried with the values that suit a long path: where every network is to have the same
    /// variants.
    pub no_other_values: bool,
    /// The places that queue mechanisms are applied to, as LINK or LINK:DIRECTION; empty: where queues stand.
    pub places: Vec<String>,
    /// What is searched for; `None`: nothing, everything is compared.
    pub search: Option<Wish>,
    /// What the search is left with, in place of all these.
    pub candidates: Vec<Candidate>,
    /// The first seed, instead of the scenario's.
    pub seed: Option<u64>,
    /// Number of seeds, instead of the scenario's.
    pub seeds: Option<u32>,
}

/// Something that a search tries.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// A variant of the file; `None` for registered mechanisms.
    pub variant: Option<String>,
    /// The mechanisms, all together.
    pub mechanisms: Vec<&'static str>,
    /// Parameters of the queue with another value than the mechanism's own.
    pub tuned: Vec<(&'static str, toml::Value)>,
}

impl Plan {
    /// The runs of these variants, the first of them the scenario as described; without seeds.
    pub(crate) fn listed(scenario: Scenario, described: Resolved, variants: Vec<Planned>) -> Plan {
        Plan {
            scenario,
            described,
            variants,
            inapplicable: Vec::new(),
            seeds: Vec::new(),
            places: Vec::new(),
            standing: Vec::new(),
            chosen: Vec::new(),
            asked: false,
            brief: false,
            echoes: Vec::new(),
            choice: Choice::default(),
        }
    }

    /// Plans a comparison: the scenario's variants or, if it has none, every mechanism that applies. Queue mechanisms are
    /// applied to the places that `choice` names, else to the bottleneck as the scenario names it.
    ///
    /// # Errors
    /// A variant cannot be resolved, or there is nothing of a name that `choice` has.
    pub fn compare(scenario: Scenario, choice: &Choice) -> Result<Plan, Error> {
        let mut plan = Plan::described(scenario, choice)?;
        plan.add_variants()?;
        Ok(plan)
    }

    /// Plans the runs of the scenario as described alone, the first step of a comparison.
    ///
    /// # Errors
    /// The scenario cannot be resolved, or a name in `choice` does not exist.
    pub fn baseline(scenario: Scenario, choice: &Choice) -> Result<Plan, Error> {
        let plan = Plan::described(scenario, choice)?;
        plan.wanted()?; // A wrong name is an error before anything runs.
        Ok(plan)
    }

    /// The comparison of which this is the baseline, with queue mechanisms where its `runs` show that queues stand.
    ///
    /// # Errors
    /// A variant cannot be resolved.
    pub fn with_baseline(self, runs: &[RunData]) -> Result<Plan, Error> {
        self.with_standing(runs).with_variants()
    }

    /// The same with queue mechanisms where the `runs` of the baseline show that queues stand.
    #[must_use]
    pub fn with_standing(mut self, runs: &[RunData]) -> Plan {
        self.standing = place::standing(&self.described, &self.places, runs);
        if !self.asked {
            let standing: Vec<usize> = self.stands().collect();
            if !standing.is_empty() {
                self.chosen = standing;
            }
        }
        self
    }

    /// The comparison of which this is the baseline, with queue mechanisms at the places that it has.
    ///
    /// # Errors
    /// A variant cannot be resolved.
    pub fn with_variants(mut self) -> Result<Plan, Error> {
        self.add_variants()?;
        Ok(self)
    }

    /// Whether any group waits for its transfers.
    pub fn waits(&self) -> bool {
        self.described.groups.iter().any(|group| group.latency_sensitive)
    }

    /// The same with another choice, before anything is added.
    pub(super) fn choosing(mut self, choice: Choice) -> Plan {
        self.choice = choice;
        self
    }

    /// What was chosen.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Indices of the places where a queue stands in the baseline.
    pub fn stands(&self) -> impl Iterator<Item = usize> {
        self.standing
            .iter()
            .enumerate()
            .filter(|(_, standing)| standing.stands)
            .map(|(index, _)| index)
    }

    /// The place where packets wait longest in the baseline, if queue mechanisms are applied to several.
    pub(super) fn most_waits(&self) -> Option<usize> {
        let mean = |&&place: &&usize| {
            self.standing
                .get(place)
                .map_or(0.0, |standing| standing.wait_mean_s)
        };
        let longest = self.chosen.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)));
        longest.copied().filter(|_| self.chosen.len() > 1)
    }

    /// This comparison with queue mechanisms at these places, without parts of variants.
    pub(super) fn at(&self, chosen: Vec<usize>) -> Result<Plan, Error> {
        let mut plan = self.clone();
        plan.variants.truncate(1);
        plan.inapplicable.clear();
        plan.chosen = chosen;
        plan.add_variants()?;
        Ok(plan)
    }

    /// This comparison with queue mechanisms where queues stand in the `runs` of a network near this one, unless the user
    /// chose the places.
    pub(super) fn moved(&self, near: &Resolved, runs: &[RunData]) -> Result<Plan, Error> {
        let standing = place::standing(near, &self.places, runs);
        let there: Vec<usize> = (0..standing.len())
            .filter(|&place| standing[place].stands)
            .collect();
        let stay = self.asked || there.is_empty();
        self.at(if stay { self.chosen.clone() } else { there })
    }

    /// Plans runs of the scenario as described, or of the variant or mechanism `choice.single`, alone.
    ///
    /// # Errors
    /// The scenario cannot be resolved. `Ok(None)` if the name does not exist.
    pub fn single(scenario: Scenario, choice: &Choice) -> Result<Option<Plan>, Error> {
        let mut plan = Plan::described(scenario, choice)?;
        let Some(name) = choice.single.as_deref().filter(|name| *name != BASELINE) else {
            return Ok(Some(plan));
        };
        let variant = plan
            .scenario
            .variants()
            .iter()
            .find(|variant| variant.name == name);
        let (set, mechanisms) = match (variant, mechanisms::find(name)) {
            (Some(variant), _) => (variant.set.clone(), contained(&variant.set, &plan.described)),
            (None, Some(mechanism)) => {
                if let Some(reason) = mechanism.missing(&plan.described) {
                    let message = format!("`{name}` does not apply here: {reason}");
                    return Err(Error::of_file(plan.scenario.title(), message).of_kind(ErrorKind::Invalid));
                }
                let site = plan.site(&plan.chosen);
                (mechanism.setting(&plan.described, &site), vec![mechanism])
            }
            (None, None) => return Ok(None),
        };
        let resolved = plan.scenario.resolve(&set)?;
        plan.variants = vec![plan.planned(name.to_owned(), set, resolved, mechanisms)];
        Ok(Some(plan))
    }

    fn described(scenario: Scenario, choice: &Choice) -> Result<Plan, Error> {
        let described = scenario.resolve(&Setting::none())?;
        let first = choice.seed.unwrap_or(described.run.seed);
        let count = u64::from(choice.seeds.unwrap_or(described.run.seeds));
        let places = place::places(&described);
        let asked = !choice.places.is_empty();
        let chosen = if asked {
            place::selected(&places, &choice.places)
                .map_err(|message| Error::of_file("--where", message).of_kind(ErrorKind::Invalid))?
        } else {
            named(&described, &places)
        };
        Ok(Plan {
            variants: vec![Planned::plain(
                BASELINE.to_owned(),
                Setting::none(),
                described.clone(),
            )],
            seeds: (0..count).map(|number| first.wrapping_add(number)).collect(),
            inapplicable: Vec::new(),
            places,
            standing: Vec::new(),
            chosen,
            asked,
            brief: false,
            echoes: Vec::new(),
            choice: choice.clone(),
            described,
            scenario,
        })
    }

    /// How the queues of these places are set.
    pub(super) fn site(&self, places: &[usize]) -> Site {
        let links: Vec<usize> = places
            .iter()
            .flat_map(|&place| &self.places[place].links)
            .copied()
            .collect();
        Site::new(&self.described, &links)
    }

    /// The names of `choice.only`, each as a variant of the file or as mechanisms; `None`: all.
    fn wanted(&self) -> Result<Option<Vec<Wanted>>, Error> {
        if self.choice.only.is_empty() {
            return Ok(None);
        }
        let named = self.scenario.variants();
        let mut wanted = Vec::new();
        for (number, name) in self.choice.only.iter().enumerate() {
            if self.choice.only[..number].contains(name) {
                continue;
            }
            if let Some(index) = named.iter().position(|variant| variant.name == *name) {
                wanted.push(Wanted::Variant(index));
                continue;
            }
            let parts = name.split('+').map(str::trim);
            let parts: Option<Vec<_>> = parts.map(mechanisms::find).collect();
            wanted.push(Wanted::Mechanisms(
                parts.ok_or_else(|| unknown_in(&self.scenario, name))?,
            ));
        }
        Ok(Some(wanted))
    }

    /// Adds a variant of the file. One that a setting from outside the file, or the jitter of a check, has made the same as the
    /// network as described has nothing to show.
    fn add_variant(&mut self, index: usize) -> Result<(), Error> {
        let variant = self.scenario.variants()[index].clone();
        match self.scenario.resolve(&variant.set) {
            Ok(resolved) => {
                if let Some(error) = other_groups(&self.described, &resolved, &variant.set) {
                    return Err(error);
                }
                let mechanisms = contained(&variant.set, &self.described);
                let planned = self.planned(variant.name, variant.set, resolved, mechanisms);
                self.variants.push(planned);
                Ok(())
            }
            Err(error) if error.kind == ErrorKind::NoChange && self.scenario.is_changed() => {
                let reason = String::from("already so in this scenario");
                self.inapplicable.push(Inapplicable {
                    name: variant.name,
                    reason,
                });
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn add_variants(&mut self) -> Result<(), Error> {
        for candidate in self.choice.candidates.clone() {
            self.add_candidate(&candidate)?;
        }
        if !self.choice.candidates.is_empty() || self.choice.search.is_some() {
            return Ok(()); // A search that is left with nothing has nothing to run.
        }
        let named: Vec<_> = self.scenario.variants().to_vec();
        if let Some(wanted) = self.wanted()? {
            let mut alone = Vec::new();
            for one in wanted {
                match one {
                    Wanted::Variant(index) => self.add_variant(index)?,
                    Wanted::Mechanisms(parts) => {
                        self.add(&parts, &[], None);
                        alone.extend(parts.first().filter(|_| parts.len() == 1));
                    }
                }
            }
            if !self.choice.no_other_values {
                self.add_for_long_paths(alone);
            }
            return Ok(());
        }
        for index in 0..named.len() {
            self.add_variant(index)?;
        }
        if named.is_empty() {
            for mechanism in mechanisms::ENTRIES {
                self.add(&[mechanism], &[], None);
            }
            self.add_for_long_paths(mechanisms::ENTRIES);
        }
        if self.choice.pairs {
            for (first, second) in mechanisms::PAIRS {
                if let (Some(first), Some(second)) = (mechanisms::find(first), mechanisms::find(second)) {
                    self.add(&[first, second], &[], None);
                }
            }
        }
        Ok(())
    }

    fn add_candidate(&mut self, candidate: &Candidate) -> Result<(), Error> {
        if let Some(name) = &candidate.variant {
            let named = self.scenario.variants().iter();
            let index = named.clone().position(|variant| variant.name == *name);
            return index.map_or(Ok(()), |index| self.add_variant(index));
        }
        let names = candidate.mechanisms.iter();
        let parts: Vec<&'static Mechanism> = names.filter_map(|name| mechanisms::find(name)).collect();
        self.add(&parts, &candidate.tuned, None);
        Ok(())
    }

    /// `tuned` are parameters of the queues that the mechanisms change, with their values.
    pub(super) fn add(
        &mut self,
        parts: &[&'static Mechanism],
        tuned: &[(&'static str, toml::Value)],
        part: Option<(&str, Part)>,
    ) {
        let mut name = parts.iter().map(|part| part.name).collect::<Vec<_>>().join(" + ");
        if !tuned.is_empty() {
            let values = tuned.iter().map(|(key, value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                format!("{key} = {value}")
            });
            name = format!("{name} ({})", values.collect::<Vec<_>>().join(", "));
        }
        if let Some((_, part)) = &part {
            name = part.name(&name, self);
        }
        let places = match &part {
            Some((_, Part::Places(places))) => places.clone(),
            _ => self.chosen.clone(),
        };
        let site = self.site(&places);
        let set = parts.iter().fold(Setting::none(), |set, part| {
            set.and(&part.setting(&self.described, &site))
        });
        let set = tuned
            .iter()
            .fold(set, |set, (key, value)| site.with(set, key, value));
        let set = match &part {
            Some((_, Part::Side(side))) => self.on_side(&set, *side),
            _ => set,
        };
        let whole = part.map(|(whole, _)| whole.to_owned());
        let alone = parts.len() == 1 && tuned.is_empty();
        let mut applied = None;
        for one in parts.iter().filter(|_| whole.is_none()) {
            match one.apply(&self.scenario, &self.described, &site) {
                // What it becomes by itself is what is wanted.
                Ok(resolved) => applied = Some(resolved).filter(|_| alone),
                // With another value it may change something where by itself it does not.
                Err(_) if !tuned.is_empty() && one.missing(&self.described).is_none() => {}
                Err(reason) => {
                    let reason = if parts.len() == 1 {
                        reason
                    } else {
                        format!("{}: {reason}", one.name)
                    };
                    self.inapplicable.push(Inapplicable { name, reason });
                    return;
                }
            }
        }
        let resolved = applied.map_or_else(|| self.scenario.resolve(&set), Ok);
        match resolved {
            Ok(resolved) => {
                let mut planned = self.planned(name, set, resolved, parts.to_vec());
                if let Some(place) = turn_on::clash(self, &planned) {
                    if whole.is_none() {
                        let reason = turn_on::said_of_clash(&place);
                        let name = planned.name;
                        self.inapplicable.push(Inapplicable { name, reason });
                    }
                    return;
                }
                planned.part_of = whole;
                planned.tuned = tuned.to_vec();
                self.variants.push(planned);
            }
            // A part that changes nothing says nothing: the whole is the other part.
            Err(_) if whole.is_some() => {}
            Err(error) => self.inapplicable.push(Inapplicable {
                name,
                reason: error.message.into_string(),
            }),
        }
    }

    fn planned(
        &self,
        name: String,
        set: Setting,
        resolved: Resolved,
        mechanisms: Vec<&'static Mechanism>,
    ) -> Planned {
        Planned {
            places: place::changed(&self.described, &resolved, &self.places),
            senders: senders(&self.described, &resolved, &set),
            part_of: None,
            tuned: Vec::new(),
            name,
            set,
            resolved,
            mechanisms,
        }
    }

    /// The runs to make, without the seeds.
    pub fn jobs(&self) -> Vec<Job> {
        self.variants
            .iter()
            .map(|variant| {
                let resolved = &variant.resolved;
                let demand = Demand::of_variant(resolved, &self.described);
                Job::new(&variant.name, resolved.spec.clone(), demand)
            })
            .collect()
    }

    /// Identity of scenario, choice, seeds and program (hexadecimal): everything the comparison follows from.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let single = self.variants.first().map_or("", |variant| variant.name.as_str());
        let Choice {
            pairs, only, places, ..
        } = &self.choice;
        // Seeds and what is run come in below; the words are those of old, so that folders keep their names.
        let choice = format!(
            "Choice {{ pairs: {pairs}, single: None, only: {only:?}, places: {places:?}, seed: None, seeds: None }}"
        );
        let search = self
            .choice
            .search
            .map_or_else(String::new, |wish| format!("{wish:?}"));
        for text in [
            env!("CARGO_PKG_VERSION"),
            self.scenario.title(),
            single,
            &self.scenario.to_toml(),
            &identity::of(&self.described.spec),
            &choice,
        ] {
            hasher.update(text.as_bytes());
            hasher.update(&[0]);
        }
        hasher.update(search.as_bytes());
        for seed in &self.seeds {
            hasher.update(&seed.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// A name of `--only`.
enum Wanted {
    /// Index into the file's variants.
    Variant(usize),
    Mechanisms(Vec<&'static Mechanism>),
}
/// Why a variant cannot be compared that has other groups than the network as described: other names, or other times to compare.
fn other_groups(described: &Resolved, other: &Resolved, set: &Setting) -> Option<Error> {
    let compared = |resolved: &Resolved| -> Vec<(String, Compared, bool)> {
        let groups = resolved.groups.iter();
        let group = groups.map(|group| {
            let facts = group.kind.facts();
            (group.name.clone(), facts.compared, facts.completes)
        });
        group.collect()
    };
    let (own, described) = (compared(other), compared(described));
    if own == described {
        return None;
    }
    let mut places = set.places();
    let (path, node) = places.find(|(path, _)| path.ends_with(".kind") || path.ends_with(".name"))?;
    Some(Error::at(
        &node.place,
        path,
        String::from(
            "a variant of a comparison has the groups of the file, with times of the same kind: its own could not be held against them. Describe it as a file of its own",
        ),
    ))
}
