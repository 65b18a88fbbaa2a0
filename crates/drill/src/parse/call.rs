//! System call lines.

use super::cursor::{Cursor, ScriptError, text};
use crate::ast::{Argument, CallLine};

pub(super) fn call(cursor: &mut Cursor<'_>) -> Result<CallLine, ScriptError> {
    let name = cursor.word()?;
    cursor.expect("(", "after the name of a system call")?;
    let arguments = list(cursor, ")", MAX_DEPTH)?;
    cursor.expect("=", "and the result of the call")?;
    cursor.skip()?;
    let result = if cursor.take("...") {
        None
    } else {
        Some(cursor.integer("the result of the call, a number or ...")?)
    };
    let word = cursor.peek_word()?;
    let mut errno = None;
    if !word.is_empty() {
        if !word.starts_with('E') {
            return Err(cursor.expected("the name of an error, such as EINPROGRESS, or the next event"));
        }
        errno = Some(cursor.word()?);
    }
    cursor.skip()?;
    if cursor.take("(") {
        cursor.run(|byte| byte != b')' && byte != b'\n');
        if !cursor.take(")") {
            return Err(cursor.expected("`)` after a note"));
        }
    }
    Ok(CallLine {
        name,
        arguments,
        result,
        errno,
    })
}

/// Items up to `close`, separated by commas.
fn list(cursor: &mut Cursor<'_>, close: &str, depth: usize) -> Result<Vec<Argument>, ScriptError> {
    let mut items = Vec::new();
    if cursor.eat(close)? {
        return Ok(items);
    }
    loop {
        items.push(argument(cursor, depth)?);
        if cursor.eat(close)? {
            return Ok(items);
        }
        if !cursor.eat(",")? {
            return Err(cursor.expected(&format!("`,` or `{close}` after an argument")));
        }
    }
}

fn argument(cursor: &mut Cursor<'_>, depth: usize) -> Result<Argument, ScriptError> {
    const WANTED: &str = "an argument (a number, a constant, \"text\", [list], {struct} or ...)";
    let Some(depth) = depth.checked_sub(1) else {
        return Err(cursor.error("arguments are nested too deeply"));
    };
    cursor.skip()?;
    if cursor.take("...") {
        return Ok(Argument::Any);
    }
    match cursor.peek() {
        Some(b'[') => {
            cursor.pos += 1;
            Ok(Argument::List(list(cursor, "]", depth)?))
        }
        Some(b'{') => {
            cursor.pos += 1;
            structure(cursor, depth)
        }
        Some(b'"') => {
            cursor.pos += 1;
            let inside = text(cursor.run(|byte| byte != b'"' && byte != b'\n'));
            if !cursor.take("\"") {
                return Err(cursor.expected("the closing quote of a text"));
            }
            Ok(Argument::Text(inside))
        }
        Some(byte) if byte.is_ascii_digit() || byte == b'-' => {
            let number = cursor.integer(WANTED)?;
            if cursor.eat("|")? {
                return joined(cursor, vec![number.to_string()]);
            }
            Ok(Argument::Number(number))
        }
        Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
            let word = cursor.word()?;
            if cursor.eat("(")? {
                // htons(8080), inet_addr("192.0.2.1"): byte order is not the script's business.
                let mut inside = list(cursor, ")", depth)?;
                return match (word.as_str(), inside.pop()) {
                    ("htons" | "htonl" | "inet_addr", Some(argument)) if inside.is_empty() => Ok(argument),
                    _ => Err(cursor.unsupported(&format!("`{word}(...)` as an argument"))),
                };
            }
            if cursor.eat("|")? {
                return joined(cursor, vec![word]);
            }
            Ok(Argument::Words(vec![word]))
        }
        _ => Err(cursor.expected(WANTED)),
    }
}

/// What follows `A |`.
fn joined(cursor: &mut Cursor<'_>, mut words: Vec<String>) -> Result<Argument, ScriptError> {
    loop {
        cursor.skip()?;
        let word = text(cursor.run(super::is_word));
        if word.is_empty() {
            return Err(cursor.expected("a constant after `|`"));
        }
        words.push(word);
        if !cursor.eat("|")? {
            return Ok(Argument::Words(words));
        }
    }
}

/// Members up to `}`: `name=value`, `name(length)=value` or a value alone.
fn structure(cursor: &mut Cursor<'_>, depth: usize) -> Result<Argument, ScriptError> {
    let mut members = Vec::new();
    if cursor.eat("}")? {
        return Ok(Argument::Struct(members));
    }
    loop {
        let begin = cursor.pos;
        let name = cursor.word()?;
        if !name.is_empty() && cursor.eat("(")? {
            list(cursor, ")", depth)?;
        }
        let name = if !name.is_empty() && cursor.eat("=")? {
            name
        } else {
            cursor.pos = begin;
            String::new()
        };
        members.push((name, argument(cursor, depth)?));
        if cursor.eat("}")? {
            return Ok(Argument::Struct(members));
        }
        if !cursor.eat(",")? {
            return Err(cursor.expected("`,` or `}` after a member"));
        }
        if cursor.eat("}")? {
            return Ok(Argument::Struct(members)); // a comma after the last member
        }
    }
}

/// Deepest nesting of lists and structures.
const MAX_DEPTH: usize = 16;
