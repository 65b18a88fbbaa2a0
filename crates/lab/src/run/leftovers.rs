//! What a program that was killed left in a folder: files and folders whose names say which process was making them.

use super::store::SUFFIX;
use crate::folder::WRITTEN;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How the name of a file ends that is being written; its process and a number stand before: `x.run.4711-0.part`.
pub(super) const PART: &str = ".part";
/// How the name of a file begins that finds out whether a folder can be written; its process follows.
pub(super) const PROBE: &str = ".probe-";
/// How the name of the folder begins in which a report is made; its process follows.
pub const MAKING: &str = ".making-";

/// A process of another machine or container is not seen from here, but goes on writing: what changed within this time stays.
const QUIET: Duration = Duration::from_secs(3600);

/// What is written beside its target by a process that is in sight changes at least this often.
const STILL: Duration = Duration::from_secs(60);

/// Removes what processes that have ended left of a file that they were writing beside `target`, under its name, `dot` or none before it, and with their number:
/// `.x.pcap.4711.part`. Nothing else has such a name.
pub fn remove_parts_of(target: &Path, dot: bool) {
    let (Some(folder), Some(name)) = (target.parent(), target.file_name().and_then(|name| name.to_str()))
    else {
        return;
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let before = if dot { "." } else { "" };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let process = found.to_str().and_then(|found| {
            let number = found
                .strip_prefix(before)?
                .strip_prefix(name)?
                .strip_prefix('.')?;
            number.strip_suffix(PART)?.parse().ok()
        });
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && process.is_some_and(|process| !lives(process)) && is_quiet(&entry, STILL) {
            // What cannot be removed is in nobody's way.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether nothing has written to it for so long.
fn is_quiet(entry: &fs::DirEntry, time: Duration) -> bool {
    let modified = entry.metadata().and_then(|about| about.modified());
    let quiet = modified
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok());
    quiet.is_some_and(|quiet| quiet >= time)
}

/// Removes what processes that have ended left in `folder`. What cannot be removed stays until it is next opened.
pub fn remove_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(maker) else {
            continue;
        };
        if !is_quiet(&entry, QUIET) || lives(process) {
            continue;
        }
        // A folder of a user's is never removed, whatever its name.
        let report = name.to_str().is_some_and(|name| name.starts_with(MAKING));
        let _ = match entry.file_type() {
            Ok(kind) if kind.is_dir() && report => fs::remove_dir_all(entry.path()),
            Ok(kind) if kind.is_file() && !report => fs::remove_file(entry.path()),
            _ => Ok(()),
        };
    }
}

/// The process that was making what has this name: a kept run or a file that the program writes into a folder. Other names are a user's.
fn maker(name: &str) -> Option<u32> {
    let number = match name.strip_suffix(PART) {
        Some(part) => {
            let (whole, number) = part.rsplit_once('.')?;
            let (process, number) = number.split_once('-')?;
            let ours = whole.ends_with(SUFFIX) || WRITTEN.contains(&whole);
            ours.then(|| number.parse::<u64>().ok()).flatten()?;
            process
        }
        None => name.strip_prefix(PROBE).or_else(|| name.strip_prefix(MAKING))?,
    };
    number.parse().ok()
}

/// Whether a process with this number runs here, as far as can be seen.
fn lives(process: u32) -> bool {
    process == std::process::id() || Path::new(&format!("/proc/{process}")).exists()
}

#[cfg(test)]
mod tests {
    use super::{maker, remove_leftovers, remove_parts_of};
    use crate::run::Store;
    use crate::testing::folder;
    use std::fs;
    use std::time::{Duration, SystemTime};

    #[test]
    fn of_a_target_only_parts_of_processes_that_ended_are_removed() {
        let place = folder("parts-of-a-target");
        fs::create_dir_all(&place).expect("it can be made");
        let own = format!(".x.pcap.{}.part", std::process::id());
        // No process has so high a number (the largest is 2^22).
        let names = [
            ".x.pcap.4199999999.part",
            ".x.pcap.4199999998.part",
            ".x.pcap.thesis.part",
            ".y.pcap.4199999999.part",
            "x.pcap.4199999999.part",
            "x.pcap",
            &own,
        ];
        let old = SystemTime::now() - Duration::from_secs(120);
        for name in names {
            let file = fs::File::create(place.join(name)).expect("it can be made");
            if name != ".x.pcap.4199999998.part" {
                file.set_modified(old).expect("it has a time");
            }
        }
        remove_parts_of(&place.join("x.pcap"), true);
        let left = |name: &&&str| place.join(name).exists();
        assert_eq!(
            names.iter().filter(left).collect::<Vec<_>>(),
            names[1..].iter().collect::<Vec<_>>()
        );
        remove_parts_of(&place.join("x.pcap"), false);
        assert!(!place.join("x.pcap.4199999999.part").exists() && place.join("x.pcap").exists());
        let _ = fs::remove_dir_all(&place);
    }

    #[test]
    fn a_name_says_who_was_making_it() {
        for (name, process) in [
            ("one.run.4711-12.part", Some(4711)),
            ("plan.7-0.part", Some(7)),
            ("result.json.7-3.part", Some(7)),
            ("one.run.4711.part", None),
            ("one.run.4711-x.part", None),
            ("thesis.20240101.part", None),
            ("thesis.20240101-2.part", None),
            (".making-4711", Some(4711)),
            (".probe-4711", Some(4711)),
            ("one.run", None),
            ("4711.part", None),
            ("one.run.mine.part", None),
            (".making-it", None),
            ("making-4711", None),
        ] {
            assert_eq!(maker(name), process, "{name}");
        }
    }

    #[test]
    fn what_a_killed_program_left_is_removed_when_a_folder_is_opened() {
        // No process has a number this large (`PID_MAX_LIMIT` is 4,194,304).
        let (dead, own) = (u32::MAX, std::process::id());
        let folder = folder("leftovers");
        let store = Store::open(&folder).expect("it can be made");
        let old = |name: String| {
            let path = folder.join(name);
            fs::write(&path, b"half").expect("it can be written");
            let file = fs::File::open(&path).expect("it was just written");
            file.set_modified(SystemTime::now() - Duration::from_secs(7200))
                .expect("it is ours");
        };
        old(format!("one.run.{dead}-3.part"));
        old(format!(".probe-{dead}"));
        old(format!("two.run.{own}-3.part"));
        old(String::from("mine.part"));
        old(format!("thesis.{dead}-1.part"));
        fs::write(folder.join(format!("new.run.{dead}-4.part")), b"half").expect("it can be written");
        // A report half made, and a user's folder.
        for name in [format!(".making-{dead}"), format!("data.run.{dead}-1.part")] {
            let made = folder.join(name);
            fs::create_dir(&made).expect("it can be made");
            fs::write(made.join("report.html"), b"half").expect("it can be written");
            let opened = fs::File::open(&made).expect("it was just made");
            opened
                .set_modified(SystemTime::now() - Duration::from_secs(7200))
                .expect("it is ours");
        }
        let there = || {
            let entries = fs::read_dir(&folder).expect("it is there").flatten();
            let mut names: Vec<String> = entries
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        };
        assert_eq!(there().len(), 8);
        let again = Store::open(&folder).expect("it can be opened");
        let stays = [
            format!("data.run.{dead}-1.part"),
            String::from("mine.part"),
            format!("new.run.{dead}-4.part"),
            format!("thesis.{dead}-1.part"),
            format!("two.run.{own}-3.part"),
        ];
        assert_eq!(there(), stays);
        assert_eq!(store.bytes() + again.bytes(), 0);
        remove_leftovers(&folder.join("none"));
        fs::remove_dir_all(&folder).expect("it was made here");
    }
}
