//! The folder that results go into.

use crate::failure::Failure;
use fleetfoot_lab::folder::Folder;
use fleetfoot_lab::report::live;
use fleetfoot_lab::result::Comparison;
use std::path::{Path, PathBuf};

/// A folder for the results of one command behind one link.
pub(super) struct Output {
    folder: Folder,
}

impl Output {
    /// Opens `path` for results with this identity.
    pub(super) fn open(path: &Path, identity: &str, force: bool) -> Result<Output, Failure> {
        let hash = live::identity(identity);
        Ok(Output {
            folder: Folder::open(Some(path), "", &hash, force)?,
        })
    }

    /// Where files of single runs go.
    pub(super) fn runs(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// Where the report is.
    pub(super) fn report(&self) -> PathBuf {
        self.folder.path().join("report.html")
    }

    /// Writes everything.
    pub(super) fn write(&self, result: &Comparison) -> Result<(), Failure> {
        Ok(self.folder.write_with(result, live::write)?)
    }
}
