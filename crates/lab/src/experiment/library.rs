//! Which experiments there are: those of the tree, which are part of the program, and files by path.

use super::record::FOLDER;
use crate::scenario::{Error, ExperimentFile, Setting, Texts};
use fleetfoot_sim::spec::Spec;
use std::path::Path;

/// A published figure, table or statement, or one of our own.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its id: the name of its file.
    pub id: String,
    /// Its group: the name of the folder.
    pub group: String,
    /// What it says.
    pub file: ExperimentFile,
}

/// Why a selection failed.
#[derive(Debug, thiserror::Error)]
pub enum UnknownName {
    /// Nothing is called so.
    #[error("there is no experiment or group called `{name}`{}; groups: {}; `fleetfoot reproduce --list` shows all ids", nearest_words(.nearest), .groups.join(", "))]
    Name {
        /// What was asked for.
        name: String,
        /// What looks most like it.
        nearest: Vec<String>,
        /// All groups.
        groups: Vec<String>,
    },
    /// A file has a mistake.
    #[error(transparent)]
    File(#[from] Error),
}

fn nearest_words(nearest: &[String]) -> String {
    if nearest.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = nearest.iter().map(|id| format!("`{id}`")).collect();
    format!(", nearest: {}", quoted.join(", "))
}

/// Every experiment of the tree, by group and id.
///
/// # Errors
/// None in a release: a test reads them.
pub fn all() -> Result<Vec<Experiment>, Error> {
    names()
        .map(|(path, id, group)| {
            Ok(Experiment {
                id: id.to_owned(),
                group: group.to_owned(),
                file: ExperimentFile::embedded(path, TEXTS)?,
            })
        })
        .collect()
}

/// Ids of the experiments of the tree, without reading them.
pub fn ids() -> impl Iterator<Item = &'static str> {
    names().map(|(_, id, _)| id)
}

/// The file of the experiment called `id`, as it stands.
pub fn file(id: &str) -> Option<&'static str> {
    let (path, ..) = names().find(|(_, other, _)| *other == id)?;
    text(path)
}

/// The experiments that `wanted` names: ids, groups, or paths of files and folders. If it names nothing, all of the tree but
/// those with real packets, which take real time and rights.
///
/// # Errors
/// Nothing is called so, or a file has a mistake.
pub fn select(wanted: &[String]) -> Result<Vec<Experiment>, UnknownName> {
    if wanted.is_empty() {
        let mut all = all()?;
        all.retain(|experiment| !experiment.file.figure.live);
        return Ok(all);
    }
    let mut chosen: Vec<Experiment> = Vec::new();
    for name in wanted {
        let known: Vec<_> = names()
            .filter(|(_, id, group)| id == name || group == name)
            .collect();
        if known.is_empty() {
            for experiment in from_disk(Path::new(name)).unwrap_or_else(|| Err(unknown(name)))? {
                push(&mut chosen, experiment);
            }
            continue;
        }
        for (path, id, group) in known {
            let file = ExperimentFile::embedded(path, TEXTS)?;
            let experiment = Experiment {
                id: id.to_owned(),
                group: group.to_owned(),
                file,
            };
            push(&mut chosen, experiment);
        }
    }
    Ok(chosen)
}

/// The runs of an experiment of the tree with its first seed: as described, and of each variant.
pub(crate) fn runs(id: &str) -> Vec<Spec> {
    let experiments = select(&[id.to_owned()]).expect("it is part of the program");
    let scenario = experiments[0].file.scenario.as_ref().expect("it has runs");
    let variants = scenario.variants().iter().map(|variant| variant.set.clone());
    let resolved = |set| scenario.resolve(&set).expect("a test resolves every variant");
    let all = std::iter::once(Setting::none()).chain(variants).map(resolved);
    all.map(|resolved| resolved.spec(resolved.run.seed)).collect()
}

/// Adds an experiment that is not there yet.
fn push(chosen: &mut Vec<Experiment>, experiment: Experiment) {
    let known = |other: &Experiment| other.id == experiment.id && other.group == experiment.group;
    if !chosen.iter().any(known) {
        chosen.push(experiment);
    }
}

/// The experiment or folder of experiments at `path`; `None` if nothing there looks like one.
fn from_disk(path: &Path) -> Option<Result<Vec<Experiment>, UnknownName>> {
    let one = |path: &Path| -> Result<Experiment, UnknownName> {
        let name = |part: Option<&std::ffi::OsStr>| {
            part.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        };
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        Ok(Experiment {
            id: name(path.file_stem()),
            group: name(folder.as_deref().and_then(Path::file_name)),
            file: ExperimentFile::load(path)?,
        })
    };
    let is_toml = |path: &Path| path.extension().is_some_and(|extension| extension == "toml");
    if path.is_dir() {
        let mut files: Vec<_> = std::fs::read_dir(path)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| is_toml(path))
            .collect();
        files.sort();
        return Some(files.iter().map(|path| one(path)).collect());
    }
    (is_toml(path) || path.is_file()).then(|| one(path).map(|experiment| vec![experiment]))
}

fn unknown(name: &str) -> UnknownName {
    let mut groups: Vec<String> = names().map(|(_, _, group)| group.to_owned()).collect();
    groups.dedup();
    let mut near: Vec<(usize, &str)> = names()
        .flat_map(|(_, id, group)| [id, group])
        .map(|word| (strsim::damerau_levenshtein(name, word), word))
        .filter(|(distance, word)| *distance <= word.len() / 2)
        .collect();
    near.sort_unstable();
    near.dedup();
    UnknownName::Name {
        name: name.to_owned(),
        nearest: near.iter().take(3).map(|(_, word)| (*word).to_owned()).collect(),
        groups,
    }
}

/// Path, id and group of every experiment of the tree.
fn names() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TEXTS.iter().filter_map(|(path, _)| {
        let (group, file) = path.strip_prefix("experiments/")?.split_once('/')?;
        // What several experiments extend, and their verdicts, stand in folders below.
        let id = file.strip_suffix(".toml").filter(|id| !id.contains('/'))?;
        Some((*path, id, group))
    })
}

/// Id and text of every file of verdicts.
pub fn verdicts() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXTS.iter().filter_map(|(path, text)| {
        let (folder, file) = path.rsplit_once('/')?;
        let is_folder = folder.rsplit_once('/').is_some_and(|(_, name)| name == FOLDER);
        Some((file.strip_suffix(".toml").filter(|_| is_folder)?, *text))
    })
}

/// The text of a file of the tree's folder `experiments`.
pub fn text(path: &str) -> Option<&'static str> {
    TEXTS
        .iter()
        .find(|(name, _)| *name == path)
        .map(|(_, text)| *text)
}

/// Written by the build script from the folder `experiments`.
static TEXTS: &Texts = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));
