//! From text to [`Script`]: a hand-written parser that refuses or reads any bytes and never panics.
//!
//! **Source.** The language of the packetdrill program (its documents and scripts), with the extensions of the FreeBSD
//! test suite (`seq!`, `...(n)`, `(tos 0x28)`, `#ifdef`).
//! **Deviations.** Encapsulation (GRE, MPLS, PSP), SCTP and UDP-Lite are refused as unsupported.

use super::ast::{Action, Command, Event, Script, ScriptOption, Time};
use cursor::{Cursor, is_word, text};

mod call;
mod cursor;
mod packet;
#[cfg(test)]
mod tests;

pub use cursor::ScriptError;

/// Words that are replaced before parsing, as `--define NAME=value` and `-D` say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definitions(Vec<(String, String)>);

impl Default for Definitions {
    /// What the runner of the public scripts defines for IPv4.
    fn default() -> Definitions {
        let mut definitions = Definitions(Vec::new());
        for (name, value) in [
            ("CMSG_LEVEL_IP", "SOL_IP"),
            ("CMSG_TYPE_RECVERR", "IP_RECVERR"),
            ("TFO_COOKIE", "3021b9d889017eeb"),
            ("TFO_COOKIE_ZERO", "b7c12350a90dc8f5"),
            // Of the codes that end a half-open connection, the one whose errno the scripts expect.
            ("CODE", "host_unreachable"),
        ] {
            definitions.define(name, value);
        }
        definitions
    }
}

impl Definitions {
    /// Defines `name`, replacing what it meant before.
    pub fn define(&mut self, name: &str, value: &str) {
        self.0.retain(|definition| definition.0 != name);
        self.0.push((name.to_owned(), value.to_owned()));
    }

    fn value(&self, name: &[u8]) -> Option<&str> {
        self.0
            .iter()
            .find(|definition| definition.0.as_bytes() == name)
            .map(|definition| definition.1.as_str())
    }
}

/// Reads a script.
///
/// # Errors
/// The text is not a script, or uses what is not supported.
pub fn parse(file: &[u8], definitions: &Definitions) -> Result<Script, ScriptError> {
    let mut definitions = definitions.clone();
    let mut cursor = Cursor::new(file);
    let options = script_options(&mut cursor, &mut definitions)?;
    let (replaced, origin) = replace(file, cursor.pos, &definitions)?;
    let mut cursor = Cursor::replaced(file, &replaced, &origin);
    let mut script = Script {
        options,
        init: None,
        events: Vec::new(),
        cleanup: None,
    };
    cursor.skip()?;
    if cursor.peek() == Some(b'`') {
        script.init = Some(bare_command(&mut cursor)?);
    }
    loop {
        cursor.skip()?;
        if cursor.at_end() {
            break;
        }
        if cursor.peek() == Some(b'`') && !script.events.is_empty() {
            script.cleanup = Some(bare_command(&mut cursor)?);
            cursor.skip()?;
            if !cursor.at_end() {
                return Err(cursor.expected("the end of the script after the command without a time"));
            }
            break;
        }
        script.events.push(event(&mut cursor)?);
    }
    if script.events.is_empty() {
        return Err(cursor.expected("an event, such as `0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3`"));
    }
    Ok(script)
}

fn script_options(
    cursor: &mut Cursor<'_>,
    definitions: &mut Definitions,
) -> Result<Vec<ScriptOption>, ScriptError> {
    let mut options = Vec::new();
    loop {
        cursor.skip()?;
        let line = cursor.line();
        let name = if cursor.take("--") {
            cursor.word()?
        } else if cursor.rest().starts_with(b"-D") {
            cursor.take("-D");
            "define".to_owned()
        } else {
            return Ok(options);
        };
        if name.is_empty() {
            return Err(cursor.expected("the name of an option after `--`"));
        }
        if name == "define" {
            cursor.take("=");
            let word = cursor.word()?;
            if word.is_empty() {
                return Err(cursor.expected("NAME=value after `--define`"));
            }
            cursor.expect("=", "between the name and its value")?;
            let value = option_value(cursor)?;
            definitions.define(&word, &value);
            continue;
        }
        let value = if cursor.take("=") {
            Some(option_value(cursor)?)
        } else {
            None
        };
        options.push(ScriptOption { name, value, line });
    }
}

/// A value: in quotes of either kind, or up to white space.
fn option_value(cursor: &mut Cursor<'_>) -> Result<String, ScriptError> {
    for quote in [b'"', b'`'] {
        if cursor.peek() == Some(quote) {
            cursor.pos += 1;
            let inside = text(cursor.run(|byte| byte != quote));
            if cursor.at_end() {
                return Err(cursor.expected("the closing quote of a value"));
            }
            cursor.pos += 1;
            return Ok(inside);
        }
    }
    Ok(text(cursor.run(|byte| !byte.is_ascii_whitespace())))
}

/// The text from `start` on with defined words replaced and without the lines between `#ifdef` of a word that is not
/// defined and `#endif`; and for each of its bytes the offset in the file.
fn replace(file: &[u8], start: usize, definitions: &Definitions) -> Result<(Vec<u8>, Vec<u32>), ScriptError> {
    let mut out = Vec::with_capacity(file.len());
    let mut origin = Vec::with_capacity(file.len());
    let mut pos = start;
    // For each open `#ifdef`: whether its lines count.
    let mut open: Vec<bool> = Vec::new();
    while let Some(rest) = file.get(pos..)
        && let Some(first) = rest.first()
    {
        let line_begins = pos == 0 || file.get(pos - 1) == Some(&b'\n');
        if *first == b'#' && line_begins {
            let len = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let line = text(&rest[..len]);
            let mut words = line.split_ascii_whitespace();
            let directive = words.next().unwrap_or_default();
            let defined = definitions
                .value(words.next().unwrap_or_default().as_bytes())
                .is_some();
            let known = match directive {
                "#ifdef" => {
                    open.push(defined);
                    true
                }
                "#ifndef" => {
                    open.push(!defined);
                    true
                }
                "#else" => open.last_mut().is_some_and(|counts| {
                    *counts = !*counts;
                    true
                }),
                "#endif" => open.pop().is_some(),
                _ => false,
            };
            if !known {
                let mut cursor = Cursor::new(file);
                cursor.pos = pos;
                return Err(cursor.expected("#ifdef, #ifndef, or an #else or #endif that belongs to one"));
            }
            pos += len;
            continue;
        }
        // What is taken as it is: comments, text, commands, code.
        let end = |open: usize, close: &[u8]| {
            rest.get(open..)
                .unwrap_or_default()
                .windows(close.len())
                .position(|window| window == close)
                .map_or(rest.len(), |at| open + at + close.len())
        };
        let len = match first {
            b'`' => end(1, b"`"),
            b'"' => end(1, b"\""),
            b'/' if rest.starts_with(b"//") => {
                rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
            }
            b'/' if rest.starts_with(b"/*") => end(2, b"*/"),
            b'%' if rest.starts_with(b"%{") => end(2, b"}%"),
            byte if is_word(*byte) => rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len()),
            _ => 1,
        };
        let piece = &rest[..len];
        match definitions.value(piece) {
            _ if open.contains(&false) => {}
            Some(value) => {
                out.extend_from_slice(value.as_bytes());
                origin.extend(std::iter::repeat_n(pos as u32, value.len()));
            }
            None => {
                out.extend_from_slice(piece);
                origin.extend((pos..pos + len).map(|at| at as u32));
            }
        }
        pos += len;
    }
    Ok((out, origin))
}

fn bare_command(cursor: &mut Cursor<'_>) -> Result<Command, ScriptError> {
    let line = cursor.line();
    let text = command(cursor)?;
    Ok(Command { text, line })
}

fn command(cursor: &mut Cursor<'_>) -> Result<String, ScriptError> {
    let begin = cursor.pos;
    cursor.take("`");
    let inside = text(cursor.run(|byte| byte != b'`'));
    if !cursor.take("`") {
        cursor.pos = begin;
        return Err(cursor.error("a command that begins here has no closing back quote"));
    }
    Ok(inside)
}

fn code(cursor: &mut Cursor<'_>) -> Result<String, ScriptError> {
    let begin = cursor.pos;
    cursor.take("%{");
    let Some(len) = cursor.rest().windows(2).position(|pair| pair == b"}%") else {
        cursor.pos = begin;
        return Err(cursor.error("code that begins here has no end (}%)"));
    };
    let inside = text(cursor.slice(cursor.pos, cursor.pos + len));
    cursor.pos += len + 2;
    Ok(inside)
}

fn event(cursor: &mut Cursor<'_>) -> Result<Event, ScriptError> {
    let line = cursor.line();
    let begin = cursor.pos;
    let time = event_time(cursor)?;
    let mut end = None;
    cursor.skip()?;
    if cursor.take("...") {
        end = Some(seconds(cursor)?);
    }
    cursor.skip()?;
    let action = match cursor.peek() {
        Some(b'`') => Action::Command(command(cursor)?),
        Some(b'%') if cursor.rest().starts_with(b"%{") => Action::Code(code(cursor)?),
        Some(b'<' | b'>') => Action::Packet(packet::packet(cursor)?),
        Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => Action::Call(call::call(cursor)?),
        _ => {
            return Err(cursor.expected(
                "an action: a packet (`<` or `>`), a system call, a command in back quotes or code (%{ }%)",
            ));
        }
    };
    if end.is_some() && !matches!(action, Action::Call(_)) {
        return Err(cursor.error("only a system call may have an end time"));
    }
    let source = text(cursor.slice(begin, cursor.pos));
    Ok(Event {
        line,
        text: source.split_whitespace().collect::<Vec<_>>().join(" "),
        time,
        end,
        action,
    })
}

fn event_time(cursor: &mut Cursor<'_>) -> Result<Time, ScriptError> {
    if cursor.take("*") {
        return Ok(Time::Any);
    }
    if cursor.take("+") {
        let from = seconds(cursor)?;
        if !cursor.eat("~")? {
            return Ok(Time::Relative(from));
        }
        cursor.expect("+", "before the later end of a relative time")?;
        let to = seconds(cursor)?;
        return ordered(cursor, from, to).map(|()| Time::RelativeRange(from, to));
    }
    let from = seconds(cursor)?;
    if !cursor.eat("~")? {
        return Ok(Time::Absolute(from));
    }
    let to = seconds(cursor)?;
    ordered(cursor, from, to).map(|()| Time::AbsoluteRange(from, to))
}

fn ordered(cursor: &Cursor<'_>, from: i64, to: i64) -> Result<(), ScriptError> {
    if from <= to {
        return Ok(());
    }
    Err(cursor.error("this range of times ends before it begins"))
}

/// Seconds with up to nine digits after the point, in nanoseconds.
fn seconds(cursor: &mut Cursor<'_>) -> Result<i64, ScriptError> {
    const WANTED: &str = "a time in seconds, such as 0.200, +.1 or *";
    cursor.skip()?;
    let begin = cursor.pos;
    let whole = cursor.run(|byte| byte.is_ascii_digit());
    let rest = cursor.rest();
    let mut fraction: &[u8] = &[];
    if rest.first() == Some(&b'.') && rest.get(1) != Some(&b'.') {
        cursor.pos += 1;
        fraction = cursor.run(|byte| byte.is_ascii_digit());
    }
    let value = || {
        if whole.is_empty() && fraction.is_empty() || whole.len() > 9 || fraction.len() > 9 {
            return None;
        }
        let number = |digits: &[u8]| {
            digits
                .iter()
                .fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0'))
        };
        let scale = 10_i64.pow(9 - fraction.len() as u32);
        Some(number(whole) * 1_000_000_000 + number(fraction) * scale)
    };
    let value = value();
    value.ok_or_else(|| {
        cursor.pos = begin;
        cursor.expected(WANTED)
    })
}
