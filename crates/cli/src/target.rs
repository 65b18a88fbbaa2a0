//! Files that a verb writes: checked before anything runs, written beside their place and moved there.
//!
//! A file that the verb reads is never written; any other that exists is written over with `--force` only. What is there stays
//! as it is until the new file is whole.

use crate::failure::Failure;
use crate::session::BatchFlags;
use fleetfoot_lab::folder::WRITTEN;
use fleetfoot_lab::scenario::Scenario;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a verb reads, and what it will write.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    force: bool,
    /// Paths without links, with what each is for.
    read: Vec<PathBuf>,
    written: Vec<(String, PathBuf)>,
}

/// A file to write.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    path: PathBuf,
    /// Something that takes what is written as it comes: a pipe, a terminal.
    stream: bool,
}

impl Targets {
    /// Targets of a verb that reads `scenario`, from `file` if that is a file.
    pub(crate) fn of(file: Option<&Path>, scenario: &Scenario, force: bool) -> Targets {
        let mut targets = Targets {
            force,
            ..Targets::default()
        };
        let read = scenario.files().into_iter().chain(file.map(Path::to_path_buf));
        targets
            .read
            .extend(read.filter_map(|path| path.canonicalize().ok()));
        targets
    }

    /// Targets of a verb that reads these files.
    pub(crate) fn reading<'a>(files: impl IntoIterator<Item = &'a Path>, force: bool) -> Targets {
        let files = files.into_iter();
        Targets {
            force,
            read: files.filter_map(|path| path.canonicalize().ok()).collect(),
            written: Vec::new(),
        }
    }

    /// Checks the file that `flag` names, and that it can be written.
    pub(crate) fn file(&mut self, flag: &str, path: &Path) -> Result<Target, Failure> {
        let shown = path.display();
        let refused = |why: String| Err(Failure::usage(format!("{flag} {shown}: {why}")));
        if path == Path::new("-") {
            return refused(String::from(
                "it takes the name of a file; /dev/stderr is the standard error, ./- a file called -",
            ));
        }
        if path.as_os_str().is_empty() {
            return refused(String::from("the name of a file is wanted"));
        }
        let known = fs::metadata(path);
        if known.as_ref().is_ok_and(fs::Metadata::is_dir) {
            return refused(String::from("it is a folder; the name of a file is wanted"));
        }
        if let Ok(metadata) = &known
            && !metadata.is_file()
        {
            return Ok(Target {
                path: path.to_owned(),
                stream: true,
            });
        }
        let place = match &known {
            Ok(_) => path.canonicalize(),
            Err(error) if fs::symlink_metadata(path).is_ok() => {
                return refused(format!("it is a link that leads to no file ({error})"));
            }
            Err(_) => beside(path),
        };
        let place = match place {
            Ok(place) => place,
            Err(error) => return refused(format!("it cannot be written there: {}", reason(path, &error))),
        };
        if self.read.iter().any(|read| same(read, &place)) {
            return refused(String::from(
                "this run reads that file, so it is not written over",
            ));
        }
        if let Some((other, _)) = self.written.iter().find(|(_, written)| *written == place) {
            return refused(format!(
                "{other} writes that file too: give each a name of its own"
            ));
        }
        if known.is_ok() && !self.force {
            return refused(String::from(
                "it exists: give another name, or --force to write over it",
            ));
        }
        let target = Target {
            path: place.clone(),
            stream: false,
        };
        fleetfoot_lab::run::remove_parts_of(path, true);
        let probe = target.part();
        if let Err(error) = fs::File::create(&probe).and_then(|_| fs::remove_file(&probe)) {
            return refused(format!("it cannot be written there: {}", reason(path, &error)));
        }
        self.written.push((flag.to_owned(), place));
        Ok(target)
    }

    /// Checks what every batch of runs writes: events, and the files in its output folder.
    pub(crate) fn of_batch(&mut self, batch: &BatchFlags, out: Option<&Path>) -> Result<(), Failure> {
        if let Some(path) = &batch.events {
            self.file("--events", path)?;
        }
        out.map_or(Ok(()), |out| self.folder("--out", out, WRITTEN))
    }

    /// Refuses an output folder in which one of the files that are read would be written over.
    fn folder(&self, flag: &str, path: &Path, names: &[&str]) -> Result<(), Failure> {
        let Ok(folder) = path.canonicalize() else {
            return Ok(()); // it will be made
        };
        let read = |name: &&&str| self.read.iter().any(|read| same(read, &folder.join(name)));
        match names.iter().find(read) {
            Some(name) => Err(Failure::usage(format!(
                "{flag} {}: this run reads {}, which would be written over: choose another folder",
                path.display(),
                path.join(name).display()
            ))),
            None => Ok(()),
        }
    }
}

impl Target {
    /// Writes the file: `write` is given the name to write to.
    pub(crate) fn write(&self, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Failure> {
        let written = if self.stream {
            write(&self.path)
        } else {
            let part = self.part();
            let written = write(&part).and_then(|()| fs::rename(&part, &self.path));
            if written.is_err() {
                // The error that counts is the first one.
                let _ = fs::remove_file(&part);
            }
            written
        };
        written.map_err(|error| Failure::output(format!("cannot write {}: {error}", self.path.display())))
    }

    /// Opens the file for what is written line by line: it is there from now on.
    pub(crate) fn open(&self) -> Result<fs::File, Failure> {
        let mut options = fs::OpenOptions::new();
        let file = match self.stream {
            true => options.append(true).open(&self.path),
            false => options.write(true).create(true).truncate(true).open(&self.path),
        };
        file.map_err(|error| Failure::usage(format!("cannot write {}: {error}", self.path.display())))
    }

    /// Takes away a file that was opened and into which nothing came. A pipe or a device is nobody's to take away.
    #[cfg(target_os = "linux")]
    pub(crate) fn discard(&self) {
        if !self.stream {
            // Nobody misses it.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Begins a file that is written over a long time: what is there stays until [`Part::keep`]. A stream takes everything at once.
    #[cfg(target_os = "linux")]
    pub(crate) fn begin(&self) -> Result<(fs::File, Part), Failure> {
        if self.stream {
            let part = Part { moves: None };
            return Ok((self.open()?, part));
        }
        let part = self.part();
        let file = fs::File::create(&part)
            .map_err(|error| Failure::output(format!("cannot write {}: {error}", self.path.display())))?;
        let moves = Some((part, self.path.clone()));
        Ok((file, Part { moves }))
    }

    /// Where it is written before it is whole.
    fn part(&self) -> PathBuf {
        let mut name = std::ffi::OsString::from(".");
        name.push(self.path.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        self.path.with_file_name(name)
    }
}

/// A file that is not whole yet.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Part {
    /// From where to where it moves when it is; `None`: it is a stream.
    moves: Option<(PathBuf, PathBuf)>,
}

#[cfg(target_os = "linux")]
impl Part {
    /// The file is whole.
    pub(crate) fn keep(mut self) -> Result<(), Failure> {
        let Some((part, path)) = self.moves.take() else {
            return Ok(());
        };
        fs::rename(&part, &path)
            .map_err(|error| Failure::output(format!("cannot write {}: {error}", path.display())))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Part {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.moves {
            // Nobody misses what is not whole.
            let _ = fs::remove_file(part);
        }
    }
}

/// The place of a file that does not exist yet, without links.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = folder.canonicalize()?;
    if !folder.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(folder.join(name))
}

/// Whether two names are of one file, by whatever link.
fn same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |path: &Path| fs::metadata(path).ok().map(|data| (data.dev(), data.ino()));
        if identity(one).is_some_and(|identified| identity(other) == Some(identified)) {
            return true;
        }
    }
    one == other
}

fn reason(path: &Path, error: &io::Error) -> String {
    let folder = path
        .parent()
        .map_or_else(String::new, |folder| folder.display().to_string());
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no folder {folder}"),
        io::ErrorKind::NotADirectory => format!("{folder} is no folder"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::Targets;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("fleetfoot-target-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be written");
        folder
    }

    #[test]
    fn what_is_read_is_never_written_and_what_exists_only_with_force() {
        let place = folder("force");
        let (input, other) = (place.join("in.toml"), place.join("other.csv"));
        fs::write(&input, "in")
            .and_then(|()| fs::write(&other, "old"))
            .expect("it can be written");
        for force in [false, true] {
            let mut targets = Targets::reading([input.as_path()], force);
            assert!(targets.file("--pcap", &input).is_err());
            assert_eq!(targets.file("--trace", &other).is_ok(), force);
            // Twice the same.
            assert!(targets.file("--pcap", &other).is_err());
            let new = targets
                .file("--diagram", &place.join("new.svg"))
                .expect("nothing is there");
            assert!(targets.file("--events", &place.join("./new.svg")).is_err());
            new.write(|path| fs::write(path, "drawn"))
                .expect("it can be written");
            assert_eq!(fs::read(place.join("new.svg")).expect("it is there"), b"drawn");
            fs::remove_file(place.join("new.svg")).expect("it was written");
        }
        fs::hard_link(&input, place.join("link.toml")).expect("a second name");
        let mut targets = Targets::reading([input.as_path()], true);
        assert!(targets.file("--pcap", &place.join("link.toml")).is_err());
        assert!(targets.file("--pcap", Path::new("-")).is_err());
        assert!(targets.file("--pcap", &place).is_err());
        assert!(targets.file("--pcap", &input.join("below")).is_err());
        assert_eq!(fs::read(&input).expect("it is there"), b"in");
        fs::remove_dir_all(&place).expect("it was made here");
    }

    #[test]
    fn a_file_that_cannot_be_written_whole_leaves_the_old_one() {
        let place = folder("half");
        let file = place.join("old.csv");
        fs::write(&file, "old").expect("it can be written");
        let target = Targets::reading([], true).file("--trace", &file).expect("forced");
        let failed = target.write(|path| {
            fs::write(path, "half")?;
            Err(std::io::Error::other("no space"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&file).expect("it is there"), b"old");
        assert_eq!(fs::read_dir(&place).expect("a folder").count(), 1);
        fs::remove_dir_all(&place).expect("it was made here");
    }
}
