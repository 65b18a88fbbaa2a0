//! The output folder: made and checked before anything runs, written whole or not at all.

use crate::report;
use crate::result::Comparison;
use crate::run::{MAKING, Store, remove_leftovers, write_atomically};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Why a folder was not opened or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be this one: another is to be given.
    #[error("{0}")]
    Refused(String),
    /// It could not be written although it had been checked: a disk that filled up meanwhile.
    #[error("{0}")]
    Failed(String),
}

/// An output folder that belongs to one plan.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Whether it belonged to this plan before it was opened.
    was_of_plan: bool,
    /// Where finished runs are kept.
    pub store: Store,
}

impl Folder {
    /// Opens `path`, or the default folder for a plan with this title and hash.
    ///
    /// # Errors
    /// It holds something else and `force` is not set, or it cannot be written.
    pub fn open(path: Option<&Path>, title: &str, hash: &str, force: bool) -> Result<Folder, Error> {
        let path = place(path, title, hash);
        let was_of_plan = is_of_plan(&path, hash);
        let path = Folder::claim(Some(&path), title, hash, force)?;
        let store = Store::open(&path.join("runs")).map_err(|error| not_written(&path, &error))?;
        Ok(Folder {
            path,
            was_of_plan,
            store,
        })
    }

    /// Makes `path`, or the default folder, the one of the plan with this title and hash.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn claim(path: Option<&Path>, title: &str, hash: &str, force: bool) -> Result<PathBuf, Error> {
        let path = place(path, title, hash);
        let shown = path.display();
        let mark = path.join("plan");
        let full = fs::read_dir(&path).is_ok_and(|entries| entries.flatten().any(|entry| !is_begun(&entry)));
        if full && !is_of_plan(&path, hash) && !force {
            return Err(Error::Refused(format!(
                "the folder {shown} holds something else; choose another with --out, or overwrite with --force"
            )));
        }
        let made = match fs::create_dir_all(&path) {
            // A file, or a link to itself: writing into it says what is wrong.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
        made.and_then(|()| write_atomically(&mark, format!("{hash}\n").as_bytes()))
            .map_err(|error| not_written(&path, &error))?;
        remove_leftovers(&path);
        Ok(path)
    }

    /// Whether it had the result of a comparison or run of this plan that came to its end.
    pub fn is_complete(&self) -> bool {
        if !self.was_of_plan {
            return false;
        }
        let document = fs::read(self.path.join("result.json")).ok();
        let document: Option<Value> = document.and_then(|text| serde_json::from_slice(&text).ok());
        document.is_some_and(|document| document["interrupted"] == Value::Bool(false))
    }

    /// Writes everything.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, comparison: &Comparison) -> Result<(), Error> {
        self.write_with(comparison, |making, comparison| {
            report::write_csv(making, comparison)?;
            report::write_html(&making.join("report.html"), comparison)?;
            #[cfg(feature = "parquet")]
            report::write_parquet(making, comparison)?;
            Ok(())
        })
    }

    /// Writes the document and the like, and the tables and the report that `make` puts into a folder.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_with(
        &self,
        comparison: &Comparison,
        make: impl FnOnce(&Path, &Comparison) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let texts = [
            ("result.json", comparison.document.to_file_text()),
            ("scenario.toml", comparison.scenario_toml.clone()),
            ("command.txt", format!("{}\n", comparison.command)),
        ];
        self.write_texts(&texts)?;
        // Tables and report are made beside their places and moved there.
        let making = self.path.join(format!("{MAKING}{}", std::process::id()));
        let made = fs::create_dir_all(&making).and_then(|()| make(&making, comparison));
        let moved = made.and_then(|()| {
            for entry in fs::read_dir(&making)? {
                let entry = entry?;
                fs::rename(entry.path(), self.path.join(entry.file_name()))?;
            }
            Ok(())
        });
        // Nothing of value is left in it.
        let _ = fs::remove_dir_all(&making);
        moved.map_err(|error| self.failure("the report", &error))
    }

    /// Writes these files.
    ///
    /// # Errors
    /// One cannot be written.
    pub fn write_texts(&self, texts: &[(&str, String)]) -> Result<(), Error> {
        for (name, text) in texts {
            write_atomically(&self.path.join(name), text.as_bytes())
                .map_err(|error| self.failure(name, &error))?;
        }
        Ok(())
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failure(&self, what: &str, error: &std::io::Error) -> Error {
        Error::Failed(format!("cannot write {what} in {}: {error}", self.path.display()))
    }
}

/// The folder that is meant: `path`, or the default one.
fn place(path: Option<&Path>, title: &str, hash: &str) -> PathBuf {
    path.map_or_else(
        || Path::new("fleetfoot-out").join(format!("{}-{}", slug(title), &hash[..8])),
        Path::to_path_buf,
    )
}

/// Whether a folder belongs to the plan with this hash.
fn is_of_plan(path: &Path, hash: &str) -> bool {
    fs::read_to_string(path.join("plan")).is_ok_and(|text| text.trim() == hash)
}

fn not_written(path: &Path, error: &std::io::Error) -> Error {
    Error::Refused(format!(
        "cannot write to the output folder {}: {error}",
        path.display()
    ))
}

/// Whether an entry of a folder is what a start leaves that failed before anything ran.
fn is_begun(entry: &fs::DirEntry) -> bool {
    let empty = || fs::read_dir(entry.path()).is_ok_and(|mut entries| entries.next().is_none());
    let name = entry.file_name();
    name == "plan" || name == "runs" && empty()
}

/// Names of the files that are written into a folder.
pub const WRITTEN: &[&str] = &[
    "plan",
    "sweep.journal",
    "sweep.json",
    "points.csv",
    "points.parquet",
    "result.json",
    "scenario.toml",
    "command.txt",
    "report.html",
    "runs.csv",
    "samples.csv",
    "links.csv",
    "runs.parquet",
    "samples.parquet",
    "links.parquet",
];

/// A title as a folder name.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for character in title.chars().take(60) {
        if character.is_alphanumeric() {
            slug.extend(character.to_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        String::from("scenario")
    } else {
        slug.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Folder, WRITTEN};
    use crate::compare::{Choice, Plan, build};
    use crate::run::{Options, execute};
    use crate::sweep::{Axis, JOURNAL, Journal, Points, Sampling, Shown, Sweep, execute as swept, written};
    use crate::testing::{engine, folder, scenario};
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    /// Files of a folder that are not in the list.
    fn unknown(path: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(path).expect("it was written").flatten();
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let mut unknown: Vec<String> = names.filter(|name| !WRITTEN.contains(&name.as_str())).collect();
        unknown.sort();
        unknown
    }

    #[test]
    fn a_whole_result_is_one_of_the_same_plan() {
        let path = folder("whole");
        let open =
            |hash: &str, force: bool| Folder::open(Some(&path), "test", hash, force).expect("it can be made");
        let first = open("00112233", false);
        assert!(!first.is_complete());
        let result = path.join("result.json");
        std::fs::write(&result, "{\"interrupted\": true}").expect("it can be written");
        assert!(!open("00112233", false).is_complete());
        std::fs::write(&result, "{\"interrupted\": false}").expect("it can be written");
        assert!(open("00112233", false).is_complete());
        assert!(!open("44556677", true).is_complete(), "it is of another plan");
        std::fs::remove_dir_all(path).expect("it was made here");
    }

    /// What a run reads is compared with the list before anything runs, so the list has to have everything.
    #[test]
    fn every_file_that_is_written_into_a_folder_is_in_the_list() {
        let (compared, at_points) = (folder("written-compare"), folder("written-sweep"));
        let stop = AtomicBool::new(false);
        let plan = Plan::compare(scenario(), &Choice::default()).expect("it resolves");
        let batch = execute(
            &plan.jobs(),
            &plan.seeds,
            &Options::default(),
            &stop,
            &engine,
            &|_| (),
        );
        let comparison = build(&plan, &batch.expect("it runs"), "fleetfoot compare test.toml");
        let into = Folder::open(Some(&compared), "test", &plan.hash(), false).expect("it can be made");
        into.write(&comparison).expect("it can be written");
        assert_eq!(unknown(&compared), [""; 0]);

        let hash = plan.hash();
        let place = Folder::claim(Some(&at_points), "test", &hash, false).expect("it can be made");
        let axes = vec![Axis::list("tcp.initial_window=10,20").expect("a list")];
        let points = Points::new(axes, Sampling::Grid, 1).expect("they are right");
        let sweep = Sweep::new(scenario(), points, Choice::default(), None).expect("it fits");
        let journal = Journal::open(&place.join(JOURNAL), false, false).expect("it is a journal");
        let mut found = swept(&sweep, &journal, 1, &stop, &engine, &|_| ()).expect("it runs");
        let command = "fleetfoot sweep test.toml";
        written(&place, &sweep, &mut found, &journal, &Shown::default(), command).expect("it can be written");
        assert_eq!(unknown(&at_points), [""; 0]);
        for path in [compared, at_points] {
            std::fs::remove_dir_all(path).expect("it was made here");
        }
    }
}
