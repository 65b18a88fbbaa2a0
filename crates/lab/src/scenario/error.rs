//! One message for one mistake: file, line, key, what was found and what would be right.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a scenario was refused.
///
/// `Display` is the whole message with the line it is about; the fields are for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What kind of mistake it is.
    pub kind: ErrorKind,
    /// The file, or what stands for it (`--set`, the name of a mechanism).
    pub file: Box<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The key, written as a path: `network.bottleneck.rate`; empty for the file as a whole.
    pub key: Box<str>,
    /// One sentence: what was found and what is wrong with it.
    pub message: Box<str>,
    /// What would be right: valid choices, units, the nearest name.
    pub help: Vec<String>,
    rendered: Box<str>,
}

/// Kinds of mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The file is missing or cannot be read.
    Unreadable,
    /// The text is not TOML.
    Syntax,
    /// An unknown key, a wrong type or unit, an impossible value.
    Invalid,
    /// A setting that leaves everything as it is: the mechanism is already on.
    NoChange,
    /// Something that this program was built without.
    NotBuilt,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rendered)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// A mistake in the text at `place`.
    pub(crate) fn at(place: &Place, key: &str, message: impl Into<String>) -> Error {
        let (line, column) = place.line_and_column();
        let mut error = Error {
            kind: ErrorKind::Invalid,
            file: place.source.name.as_str().into(),
            line,
            column,
            key: key.into(),
            message: message.into().into(),
            help: Vec::new(),
            rendered: "".into(),
        };
        error.render(Some(place));
        error
    }

    /// A mistake that concerns a file as a whole.
    pub(crate) fn of_file(file: &str, message: impl Into<String>) -> Error {
        let mut error = Error {
            kind: ErrorKind::Unreadable,
            file: file.into(),
            line: 0,
            column: 0,
            key: "".into(),
            message: message.into().into(),
            help: Vec::new(),
            rendered: "".into(),
        };
        error.render(None);
        error
    }

    /// Adds one line of help; `place` is the one given to [`Error::at`].
    pub(crate) fn help(mut self, place: &Place, help: impl Into<String>) -> Error {
        self.help.push(help.into());
        self.render(Some(place));
        self
    }

    /// Adds a line to the finished message.
    pub(crate) fn note(mut self, note: String) -> Error {
        let margin = self.line.to_string().len() + 1;
        self.rendered = format!("{}\n{:margin$}= note: {note}", self.rendered, "").into();
        self.help.push(note);
        self
    }

    pub(crate) fn of_kind(mut self, kind: ErrorKind) -> Error {
        self.kind = kind;
        self
    }

    fn render(&mut self, place: Option<&Place>) {
        let title = Level::ERROR.primary_title(&*self.message);
        let label = if self.key.is_empty() {
            String::new()
        } else {
            format!("key `{}`", self.key)
        };
        let rendered = match place {
            Some(place) => {
                let mut annotation = AnnotationKind::Primary.span(place.visible_span());
                if !label.is_empty() {
                    annotation = annotation.label(&label);
                }
                let snippet = Snippet::source(place.source.text.as_str())
                    .path(place.source.name.as_str())
                    .annotation(annotation);
                let mut group = title.element(snippet);
                for help in &self.help {
                    group = group.element(Level::HELP.message(help.as_str()));
                }
                Renderer::plain().render(&[group])
            }
            None => format!("error: {}\n --> {}", self.message, self.file),
        };
        self.rendered = rendered.into();
    }
}

/// A text that was read: a file, or one setting from elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// What to call it in messages.
    pub(crate) name: String,
    /// All of it.
    pub(crate) text: String,
    /// Where the file names in it start from.
    pub(crate) folder: PathBuf,
    /// Files named in it that were read.
    pub(super) files: super::replay::Files,
}

/// A range of bytes in a source.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) source: Arc<Source>,
    pub(crate) span: Range<usize>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.source.name, self.span)
    }
}

impl Place {
    pub(crate) fn new(source: &Arc<Source>, span: Range<usize>) -> Place {
        Place {
            source: Arc::clone(source),
            span,
        }
    }

    fn line_and_column(&self) -> (u32, u32) {
        let before = &self.source.text[..self.visible_span().start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        (line as u32, column as u32)
    }

    /// The span held within the text, on character boundaries, and within its first line.
    fn visible_span(&self) -> Range<usize> {
        let text = &self.source.text;
        let floor = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = floor(self.span.start);
        let end = floor(self.span.end.max(start));
        let first_line = text[start..end].find('\n').map_or(end, |at| start + at);
        start..first_line
    }
}

/// The candidate that looks most like `word`, if any looks alike enough to be meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// "`a`, `b` or `c`".
pub(crate) fn alternatives<S: AsRef<str>>(words: &[S]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{}`", word.as_ref())).collect();
    match quoted.split_last() {
        None => String::from("none"),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}
