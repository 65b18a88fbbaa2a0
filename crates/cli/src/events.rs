//! `--events`: what happens, as JSON lines in a file that others follow.

use crate::failure::Failure;
use crate::target::Targets;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The file, and what became of it.
pub(crate) struct Events {
    path: PathBuf,
    written: Mutex<Written>,
}

struct Written {
    file: File,
    /// Bytes of whole lines.
    whole: u64,
    /// Why no more are written.
    failed: Option<std::io::Error>,
}

impl Events {
    /// Events into the file that `--events` names.
    pub(crate) fn open(path: &Path) -> Result<Events, Failure> {
        let file = Targets::reading([], true).file("--events", path)?.open()?;
        let written = Written {
            file,
            whole: 0,
            failed: None,
        };
        Ok(Events {
            path: path.to_owned(),
            written: Mutex::new(written),
        })
    }

    /// Appends an event. A full disk does not stop the runs: [`Events::end`] says it. No part of a line is left where the file can be cut.
    pub(crate) fn append(&self, event: &serde_json::Value) {
        let Ok(mut written) = self.written.lock() else {
            return;
        };
        if written.failed.is_some() {
            return;
        }
        let line = format!("{event}\n");
        match written.file.write_all(line.as_bytes()) {
            Ok(()) => written.whole += line.len() as u64,
            Err(error) => {
                // What is no file, such as a pipe, cannot be cut.
                let _ = written.file.set_len(written.whole);
                written.failed = Some(error);
            }
        }
    }

    /// Whether all of them were written. That their reader has gone is no error.
    pub(crate) fn end(&self) -> Result<(), Failure> {
        let Ok(mut written) = self.written.lock() else {
            return Ok(());
        };
        match written.failed.take() {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::output(format!(
                "--events {}: {error}; the events after that are missing, and all else is written",
                self.path.display()
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Events;
    use std::path::Path;

    #[test]
    fn events_that_cannot_be_written_are_an_error_at_the_end() {
        let full = Path::new("/dev/full");
        if full.exists() {
            let events = Events::open(full).expect("it opens");
            events.append(&serde_json::json!({ "event": "started" }));
            let failed = events.end().expect_err("it is full");
            assert!(
                failed.text().starts_with("--events /dev/full: No space left"),
                "{}",
                failed.text()
            );
        }
        let path = std::env::temp_dir().join(format!("fleetfoot-events-{}", std::process::id()));
        let events = Events::open(&path).expect("it opens");
        for step in 1..=2 {
            events.append(&serde_json::json!({ "step": step }));
        }
        assert!(events.end().is_ok());
        let text = std::fs::read_to_string(&path).expect("it is there");
        let _ = std::fs::remove_file(&path);
        assert_eq!(text, "{\"step\":1}\n{\"step\":2}\n");
    }
}
