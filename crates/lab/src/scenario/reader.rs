//! Reads files and those that they extend, from the disk or from the program.

use super::document::{Node, Table};
use super::{Error, ErrorKind, Texts, path};
use crate::input;
use std::path::{Path, PathBuf};

/// Reads files and what they extend.
pub(super) struct Reader {
    /// Files being read.
    open: Vec<PathBuf>,
    /// Where they are read from; `None`: the disk.
    texts: Option<&'static Texts>,
}

/// Files that extend one another, in one chain: nobody writes so many.
const MOST_EXTENDED: usize = 64;

impl Reader {
    /// From the disk.
    pub(super) fn disk() -> Reader {
        Reader {
            open: Vec::new(),
            texts: None,
        }
    }

    /// From the program itself.
    pub(super) fn embedded(texts: &'static Texts) -> Reader {
        Reader {
            open: Vec::new(),
            texts: Some(texts),
        }
    }

    /// Reads a file; `from` is where its name stands.
    pub(super) fn load(&mut self, path: &Path, from: Option<&Node>) -> Result<Table, Error> {
        let shown = path.display().to_string();
        let unreadable = |message: String| match from {
            Some(node) => Error::at(&node.place, "extends", message).of_kind(ErrorKind::Unreadable),
            None => Error::of_file(&shown, message),
        };
        let (identity, text) = match self.texts {
            Some(texts) => {
                let name = input::without_dots(path);
                let text = texts.iter().find(|(path, _)| Path::new(path) == name);
                let text = text.ok_or_else(|| unreadable(format!("there is no {shown} in the program")))?;
                (name, text.1.to_owned())
            }
            None => {
                let cannot = |error: &std::io::Error| {
                    unreadable(format!("cannot read {shown}: {}", input::reason(error)))
                };
                // First: it decides what may be read at all.
                let text = input::text(path, input::MOST_SCENARIO).map_err(|error| match error.kind() {
                    std::io::ErrorKind::InvalidData => unreadable(format!("{shown} is not UTF-8 text")),
                    _ => cannot(&error),
                })?;
                let identity = match input::is_in_memory(path) {
                    true => path.to_owned(),
                    false => path.canonicalize().map_err(|error| cannot(&error))?,
                };
                (identity, text)
            }
        };
        if self.open.contains(&identity) {
            let message = format!("{shown} extends itself, directly or by way of others");
            return Err(match from {
                Some(node) => Error::at(&node.place, "extends", message),
                None => Error::of_file(&shown, message),
            });
        }
        if self.open.len() >= MOST_EXTENDED {
            let message = format!(
                "{shown} would be the {}th file of a chain of `extends`: at most {MOST_EXTENDED} are read",
                MOST_EXTENDED + 1
            );
            return Err(match from {
                Some(node) => Error::at(&node.place, "extends", message),
                None => Error::of_file(&shown, message),
            });
        }
        self.open.push(identity);
        let table = self.extended(path, &shown, &text)?;
        self.open.pop();
        Ok(table)
    }

    /// Parses `text` and lays it over what it extends.
    pub(super) fn extended(&mut self, path: &Path, name: &str, text: &str) -> Result<Table, Error> {
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let over = path::read_text(name, text, folder.clone())?;
        if over.entries.is_empty() {
            return Err(Error::of_file(name, format!("{name} describes nothing"))
                .of_kind(ErrorKind::Invalid)
                .note("a scenario begins with [network] and [[traffic]]".into()));
        }
        let Some(node) = over.get("extends") else {
            return Ok(over);
        };
        let Some(base) = node.as_text() else {
            return Err(Error::at(
                &node.place,
                "extends",
                "the name of a file in quotes is wanted",
            ));
        };
        let mut table = self.load(&folder.join(base), Some(node))?;
        table.merge(over);
        Ok(table)
    }
}
