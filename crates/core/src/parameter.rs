//! Parameters of registered mechanisms: one table per mechanism from which scenario files, their schema, `explain`
//! and the documents are made.
//!
//! A mechanism declares `PARAMETERS` and is built from [`Values`], which the caller made from that table (the laboratory
//! parses units and checks ranges). So adding a mechanism is one file and one registration.

use crate::queue::Limit;
use crate::time::Duration;
use crate::units::{Bytes, Rate};
use alloc::vec::Vec;

/// One parameter of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Key in scenario files.
    pub name: &'static str,
    /// Type and permitted range.
    pub kind: ParameterKind,
    /// What it is when not given.
    pub default: Value,
    /// One sentence, with the source of the default.
    pub doc: &'static str,
}

/// Type and permitted range (both ends included) of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterKind {
    /// Packets, bytes or unlimited: `"50 packets"`, `"64 kB"`, `"unlimited"`.
    Limit,
    /// A time span: `"5 ms"`.
    Duration(Duration, Duration),
    /// An amount: `"1514 B"`.
    Bytes(Bytes, Bytes),
    /// A speed: `"10 Mbit/s"`.
    Rate(Rate, Rate),
    /// A plain number.
    Number(f64, f64),
    /// A whole number.
    Integer(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// Value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Derived from the context (link, MSS); the parameter's `doc` says how. Only as a default.
    Auto,
    /// A value of [`ParameterKind::Limit`].
    Limit(Limit),
    /// A value of [`ParameterKind::Duration`].
    Duration(Duration),
    /// A value of [`ParameterKind::Bytes`].
    Bytes(Bytes),
    /// A value of [`ParameterKind::Rate`].
    Rate(Rate),
    /// A value of [`ParameterKind::Number`].
    Number(f64),
    /// A value of [`ParameterKind::Integer`].
    Integer(u64),
    /// A value of [`ParameterKind::Flag`].
    Flag(bool),
    /// A value of [`ParameterKind::Choice`].
    Choice(&'static str),
}

/// The values a mechanism is built from: those given, over the defaults of its table.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    table: &'static [Parameter],
    values: Vec<Value>,
}

impl Values {
    /// All defaults of `table`.
    pub fn defaults(table: &'static [Parameter]) -> Values {
        Values {
            table,
            values: table.iter().map(|parameter| parameter.default).collect(),
        }
    }

    /// The table these values belong to.
    pub fn table(&self) -> &'static [Parameter] {
        self.table
    }

    /// Sets parameter `name`.
    ///
    /// # Errors
    /// The parameter does not exist, or the value has the wrong type or is out of range.
    pub fn set(&mut self, name: &str, value: Value) -> Result<(), ValueError> {
        let index = self
            .table
            .iter()
            .position(|parameter| parameter.name == name)
            .ok_or(ValueError::Unknown)?;
        self.table[index].kind.check(value)?;
        self.values[index] = value;
        Ok(())
    }

    /// The value of `name`.
    ///
    /// # Panics
    /// If the mechanism asks for a parameter its table does not have: a mistake in the mechanism's own file.
    pub fn value(&self, name: &str) -> Value {
        let index = self.table.iter().position(|parameter| parameter.name == name);
        self.values[index.expect("a mechanism asks only for parameters of its own table")]
    }

    /// Value of a limit; `Unlimited` when automatic.
    pub fn limit(&self, name: &str) -> Limit {
        match self.value(name) {
            Value::Limit(limit) => limit,
            _ => Limit::Unlimited,
        }
    }

    /// Value of a time span; `None` when automatic.
    pub fn duration(&self, name: &str) -> Option<Duration> {
        match self.value(name) {
            Value::Duration(span) => Some(span),
            _ => None,
        }
    }

    /// Value of an amount; `None` when automatic.
    pub fn bytes(&self, name: &str) -> Option<Bytes> {
        match self.value(name) {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Value of a speed; `None` when automatic.
    pub fn rate(&self, name: &str) -> Option<Rate> {
        match self.value(name) {
            Value::Rate(rate) => Some(rate),
            _ => None,
        }
    }

    /// Value of a plain number; `None` when automatic.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.value(name) {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Value of a whole number; `None` when automatic.
    pub fn integer(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Value::Integer(integer) => Some(integer),
            _ => None,
        }
    }

    /// Whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        self.value(name) == Value::Flag(true)
    }

    /// The word chosen; empty when automatic.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Choice(word) => word,
            _ => "",
        }
    }
}

impl ParameterKind {
    /// Whether `value` has this type and lies in range.
    ///
    /// # Errors
    /// [`ValueError::Type`] or [`ValueError::Range`].
    pub fn check(self, value: Value) -> Result<(), ValueError> {
        let within = match (self, value) {
            (ParameterKind::Limit, Value::Limit(limit)) => {
                !matches!(limit, Limit::Packets(0) | Limit::Bytes(Bytes(0)))
            }
            (ParameterKind::Duration(low, high), Value::Duration(x)) => low <= x && x <= high,
            (ParameterKind::Bytes(low, high), Value::Bytes(x)) => low <= x && x <= high,
            (ParameterKind::Rate(low, high), Value::Rate(x)) => low <= x && x <= high,
            (ParameterKind::Number(low, high), Value::Number(x)) => low <= x && x <= high,
            (ParameterKind::Integer(low, high), Value::Integer(x)) => low <= x && x <= high,
            (ParameterKind::Flag, Value::Flag(_)) => true,
            (ParameterKind::Choice(words), Value::Choice(word)) => words.contains(&word),
            _ => return Err(ValueError::Type),
        };
        if within { Ok(()) } else { Err(ValueError::Range) }
    }
}

/// Why a value was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// No such parameter.
    Unknown,
    /// Another type is wanted.
    Type,
    /// Outside the permitted range.
    Range,
}

impl core::fmt::Display for ValueError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            ValueError::Unknown => "no such parameter",
            ValueError::Type => "a value of another type is wanted",
            ValueError::Range => "the value is out of range",
        })
    }
}

impl core::error::Error for ValueError {}
