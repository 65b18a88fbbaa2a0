//! The text being parsed, with places for messages, and the error.

use std::fmt;

/// Why a script could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Line in the file, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// What was wrong.
    pub message: String,
    /// The script is well formed, but says something this runner does not do.
    pub unsupported: bool,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ScriptError {}

/// A place in the text.
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    /// Offset of each byte in the file, if words were replaced.
    origin: Option<&'a [u32]>,
    /// The file.
    file: &'a [u8],
    pub(super) pos: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(file: &'a [u8]) -> Cursor<'a> {
        Cursor {
            text: file,
            origin: None,
            file,
            pos: 0,
        }
    }

    /// A cursor over `text`, which was made from `file` by replacing words.
    pub(super) fn replaced(file: &'a [u8], text: &'a [u8], origin: &'a [u32]) -> Cursor<'a> {
        Cursor {
            text,
            origin: Some(origin),
            file,
            pos: 0,
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.get(self.pos..).unwrap_or_default()
    }

    pub(super) fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.text.get(from..to).unwrap_or_default()
    }

    pub(super) fn at_end(&self) -> bool {
        self.pos >= self.text.len()
    }

    /// Takes `what` if it is next.
    pub(super) fn take(&mut self, what: &str) -> bool {
        let is = self.rest().starts_with(what.as_bytes());
        if is {
            self.pos += what.len();
        }
        is
    }

    /// Skips white space and comments.
    ///
    /// # Errors
    /// A comment without an end.
    pub(super) fn skip(&mut self) -> Result<(), ScriptError> {
        loop {
            let rest = self.rest();
            if rest.first().is_some_and(u8::is_ascii_whitespace) {
                self.pos += 1;
            } else if rest.starts_with(b"//") {
                self.pos += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            } else if rest.starts_with(b"/*") {
                match rest.windows(2).skip(2).position(|pair| pair == b"*/") {
                    Some(length) => self.pos += length + 4,
                    None => return Err(self.error("a comment that begins here has no end (*/)")),
                }
            } else {
                return Ok(());
            }
        }
    }

    /// Skips, then takes `what` if it is next.
    pub(super) fn eat(&mut self, what: &str) -> Result<bool, ScriptError> {
        self.skip()?;
        Ok(self.take(what))
    }

    /// Skips, then takes `what`.
    pub(super) fn expect(&mut self, what: &str, meaning: &str) -> Result<(), ScriptError> {
        if self.eat(what)? {
            return Ok(());
        }
        Err(self.expected(&format!("`{what}` {meaning}")))
    }

    /// The bytes that satisfy `is`, from here.
    pub(super) fn run(&mut self, is: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let len = rest.iter().position(|byte| !is(*byte)).unwrap_or(rest.len());
        self.pos += len;
        &rest[..len]
    }

    /// A name: letters, digits and underscores, not beginning with a digit. Empty if none is here.
    pub(super) fn word(&mut self) -> Result<String, ScriptError> {
        self.skip()?;
        if self.peek().is_none_or(|byte| byte.is_ascii_digit()) {
            return Ok(String::new());
        }
        Ok(text(self.run(is_word)))
    }

    /// The word here, left where it is.
    pub(super) fn peek_word(&mut self) -> Result<String, ScriptError> {
        self.skip()?;
        let before = self.pos;
        let word = self.word()?;
        self.pos = before;
        Ok(word)
    }

    /// An integer: decimal or `0x` hexadecimal, perhaps negative.
    pub(super) fn integer(&mut self, meaning: &str) -> Result<i64, ScriptError> {
        self.skip()?;
        let before = self.pos;
        let negative = self.take("-");
        let hexadecimal = self.take("0x") || self.take("0X");
        let digits = text(self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
        let value = i64::from_str_radix(&digits, if hexadecimal { 16 } else { 10 });
        match value {
            Ok(value) if negative => Ok(-value),
            Ok(value) => Ok(value),
            Err(_) => {
                self.pos = before;
                Err(self.expected(meaning))
            }
        }
    }

    /// An integer from 0 to `most`.
    pub(super) fn unsigned(&mut self, most: u32, meaning: &str) -> Result<u32, ScriptError> {
        self.skip()?;
        let before = self.pos;
        let value = self.integer(meaning)?;
        match u32::try_from(value) {
            Ok(value) if value <= most => Ok(value),
            _ => {
                self.pos = before;
                Err(self.expected(&format!("{meaning} from 0 to {most}")))
            }
        }
    }

    /// Line in the file, from 1.
    pub(super) fn line(&self) -> u32 {
        self.place(self.pos).0
    }

    /// An error here: what was expected, and what is found.
    pub(super) fn expected(&self, what: &str) -> ScriptError {
        let rest = self.rest();
        let found = rest
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b')' | b']' | b'}'))
            .map_or(rest, |end| &rest[..end.max(1)]);
        let found = match found {
            [] => "the end of the file".to_owned(),
            [b'\n' | b'\r'] => "the end of the line".to_owned(),
            found => format!("`{}`", text(&found[..found.len().min(40)])),
        };
        self.error(&format!("expected {what}, found {found}"))
    }

    pub(super) fn error(&self, message: &str) -> ScriptError {
        let (line, column) = self.place(self.pos);
        ScriptError {
            line,
            column,
            message: message.to_owned(),
            unsupported: false,
        }
    }

    pub(super) fn unsupported(&self, what: &str) -> ScriptError {
        ScriptError {
            unsupported: true,
            ..self.error(&format!("{what} is not supported"))
        }
    }

    fn place(&self, pos: usize) -> (u32, u32) {
        let offset = match self.origin {
            None => pos.min(self.file.len()),
            Some(origin) => origin.get(pos).map_or(self.file.len(), |offset| *offset as usize),
        };
        let before = self.file.get(..offset).unwrap_or(self.file);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        (line as u32, (before.len() - start + 1) as u32)
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Bytes as text; what is not UTF-8 is replaced.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
