//! Which file a request means, and what is said about it. No request leaves the folder: not by `..`, not by a link.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A folder whose files are served.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

/// What a path leads to.
pub(super) enum Found {
    /// A file, its length and its type.
    File(File, u64, &'static str),
    /// A list of what a folder holds, as HTML.
    List(String),
    /// A folder named without its last slash.
    Moved(String),
    /// Nothing that is served.
    Nothing,
}

impl Folder {
    /// The folder at `path`.
    ///
    /// # Errors
    /// `path` does not exist, or is no folder.
    pub fn new(path: &Path) -> io::Result<Folder> {
        let root = path.canonicalize()?;
        std::fs::read_dir(&root)?;
        Ok(Folder { root })
    }

    /// What the target of a request leads to; `None`: it is not written as a path.
    pub(super) fn find(&self, target: &str) -> Option<Found> {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let text = decoded(path.strip_prefix('/')?)?;
        let mut wanted = self.root.clone();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => return Some(Found::Nothing),
                part => wanted.push(part),
            }
        }
        let Ok(real) = wanted.canonicalize() else {
            return Some(Found::Nothing);
        };
        if !real.starts_with(&self.root) {
            return Some(Found::Nothing); // a link that leads outside
        }
        if real.is_dir() {
            if !path.ends_with('/') {
                return Some(Found::Moved(format!("{path}/")));
            }
            let index = real.join("index.html");
            return Some(match open(&index) {
                Some((file, length)) if index.canonicalize().is_ok_and(|at| at.starts_with(&self.root)) => {
                    Found::File(file, length, kind(&index))
                }
                _ => list(&real, &text),
            });
        }
        Some(match open(&real) {
            Some((file, length)) => Found::File(file, length, kind(&real)),
            None => Found::Nothing,
        })
    }
}

/// Opens a regular file; never waits, as a pipe would let it.
fn open(path: &Path) -> Option<(File, u64)> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let about = file.metadata().ok()?;
    about.is_file().then_some((file, about.len()))
}

fn list(folder: &Path, shown: &str) -> Found {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Found::Nothing;
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| {
            let slash = if entry.path().is_dir() { "/" } else { "" };
            format!("{}{slash}", entry.file_name().to_string_lossy())
        })
        .collect();
    names.sort();
    let title = escaped(shown);
    let mut html =
        format!("<!doctype html><meta charset=utf-8><title>/{title}</title><h1>/{title}</h1>\n<ul>\n");
    for name in names {
        let _ = writeln!(
            html,
            "<li><a href=\"./{}\">{}</a>",
            encoded(&name),
            escaped(&name)
        );
    }
    html += "</ul>\n";
    Found::List(html)
}

/// `%41` becomes `A`; `None`: it is not UTF-8, or holds a zero byte.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|two| str::from_utf8(two).ok())?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// What browsers want to be told about a file.
fn kind(path: &Path) -> &'static str {
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "txt" | "md" | "toml" => "text/plain; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::{Folder, Found, decoded, encoded};

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let base = std::env::temp_dir().join(format!("fleetfoot-files-{}", std::process::id()));
        let root = base.join("root");
        std::fs::create_dir_all(root.join("inner")).expect("a folder");
        std::fs::write(base.join("secret"), "s").expect("a file");
        std::fs::write(root.join("inner/a b"), "four").expect("a file");
        std::os::unix::fs::symlink("../secret", root.join("link")).expect("a link");
        let folder = Folder::new(&root).expect("it is there");
        let nothing = |target: &str| matches!(folder.find(target), Some(Found::Nothing));
        for target in [
            "/../secret",
            "/inner/../../secret",
            "/%2e%2e/secret",
            "/..%2fsecret",
            "/link",
            "/inner/a b/",
            "/none",
            "//../secret",
        ] {
            assert!(nothing(target) || target == "/inner/a b/", "{target}");
        }
        for target in ["secret", "", "http://x/", "/%", "/%zz", "/%00", "/%+1", "/%ff"] {
            assert!(folder.find(target).is_none(), "{target}");
        }
        assert!(matches!(
            folder.find("/inner/a%20b?x=..#y"),
            Some(Found::File(_, 4, _))
        ));
        assert!(matches!(folder.find("/inner"), Some(Found::Moved(to)) if to == "/inner/"));
        assert!(matches!(folder.find("/"), Some(Found::List(text)) if text.contains("./inner/")));
        std::fs::remove_dir_all(&base).expect("nothing is left");
    }

    #[test]
    fn names_survive_being_written_as_paths() {
        for name in ["a b", "100%", "ü/\"<>", "plain.txt"] {
            assert_eq!(decoded(&encoded(name)).as_deref(), Some(name));
        }
    }
}
