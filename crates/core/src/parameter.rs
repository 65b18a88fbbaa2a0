//! Parameters of registered mechanisms: one table per mechanism from which scenario files, their schema, `explain`
//! and the documents are made.
//!
//! A mechanism declares `PARAMETERS` and is built from [`Values`], which the caller made from that table (the laboratory
//! parses units and checks ranges). So adding a mechanism is one file and one registration.

use crate::queue::Limit;
use crate::time::Duration;
use crate::units::{Bytes, Rate};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Serialize, Serializer};

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

/// A row of a table of parameters: name, type with its range, default (`auto`: derived from the context) and one sentence.
///
/// ```
/// # use fleetfoot_core::parameter;
/// const BURST: parameter::Parameter = parameter!("burst": Integer(1, 64) = 8, "Packets that may leave at once (ours)");
/// ```
#[macro_export]
macro_rules! parameter {
    ($name:literal: $kind:ident $(($($range:expr),+))? = auto, $doc:expr) => {
        $crate::parameter!(@ $name, $kind $(($($range),+))?, $crate::parameter::Value::Auto, $doc)
    };
    ($name:literal: $kind:ident $(($($range:expr),+))? = $default:expr, $doc:expr) => {
        $crate::parameter!(@ $name, $kind $(($($range),+))?, $crate::parameter::Value::$kind($default), $doc)
    };
    (@ $name:literal, $kind:ident $(($($range:expr),+))?, $default:expr, $doc:expr) => {
        $crate::parameter::Parameter {
            name: $name,
            kind: $crate::parameter::ParameterKind::$kind $(($($range),+))?,
            default: $default,
            doc: $doc,
        }
    };
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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

impl Serialize for Values {
    /// As pairs of name and value.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.table.iter().map(|parameter| parameter.name);
        serializer.collect_map(names.zip(&self.values))
    }
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

/// A type of values that are written in scenario files.
pub(crate) trait Written: Sized {
    /// What may be written, where its place does not say more; empty: nothing, or only tables.
    const KINDS: &[ParameterKind] = &[];
    /// The word for the absence of a value, where its place has none.
    const NONE: &str = "none";

    /// The value that was written as `value`; `None`: it is of another type.
    fn read(value: Value) -> Option<Self> {
        let _ = value;
        None
    }

    /// The value as it is written where `kinds` may be written.
    fn shown(&self, kinds: &[ParameterKind]) -> String;
}

/// Implements [`Written`] for a type of which `$kind` holds the values.
macro_rules! written {
    ($($type:ty: $kind:ident($value:ident) => $read:expr, $kinds:expr;)+) => {
        $(
            impl Written for $type {
                const KINDS: &[ParameterKind] = $kinds;

                fn read(value: Value) -> Option<$type> {
                    match value {
                        Value::$kind($value) => $read,
                        _ => None,
                    }
                }

                fn shown(&self, _: &[ParameterKind]) -> String {
                    self.to_string()
                }
            }
        )+
    };
}

written! {
    bool: Flag(flag) => Some(flag), &[ParameterKind::Flag];
    u8: Integer(number) => number.try_into().ok(), &[];
    u32: Integer(number) => number.try_into().ok(), &[];
    Duration: Duration(span) => Some(span), &[];
    Rate: Rate(rate) => Some(rate), &[ParameterKind::Rate(Rate(1), Rate::UNLIMITED)];
}

impl Written for Bytes {
    fn read(value: Value) -> Option<Bytes> {
        match value {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn shown(&self, _: &[ParameterKind]) -> String {
        match *self {
            Bytes::MAX => String::from("unlimited"),
            bytes => bytes.to_string(),
        }
    }
}

impl Written for &'static str {
    fn shown(&self, _: &[ParameterKind]) -> String {
        String::from(*self)
    }
}

impl<T: Written> Written for Option<T> {
    fn read(value: Value) -> Option<Option<T>> {
        match value {
            Value::Choice(_) => Some(None),
            value => T::read(value).map(Some),
        }
    }

    fn shown(&self, kinds: &[ParameterKind]) -> String {
        let word = kinds.iter().find_map(|kind| match kind {
            ParameterKind::Choice(words) => words.first().copied(),
            _ => None,
        });
        match self {
            Some(value) => value.shown(kinds),
            None => String::from(word.unwrap_or(T::NONE)),
        }
    }
}

/// Makes enums whose values are written as words: with `ALL`, `NAMES`, `name` and `by_name`.
macro_rules! choice {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+ }
    )+) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
            pub enum $name {
                $($(#[doc = $doc])+ $variant,)+
            }

            impl $name {
                /// Every value, in the order of `NAMES`.
                pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

                /// The words for them in scenario files.
                pub const NAMES: [&'static str; [$($word),+].len()] = [$($word),+];

                /// The value that is written as `name`.
                pub fn by_name(name: &str) -> Option<$name> {
                    match name {
                        $($word => Some($name::$variant),)+
                        _ => None,
                    }
                }

                /// The word for it in scenario files.
                pub const fn name(self) -> &'static str {
                    $name::NAMES[self as usize]
                }

                /// What it is, as its documentation has it.
                pub fn document(self) -> &'static str {
                    match self {
                        $($name::$variant => concat!($($doc),+).trim_start(),)+
                    }
                }
            }

            impl $crate::parameter::Written for $name {
                const KINDS: &[$crate::parameter::ParameterKind] =
                    &[$crate::parameter::ParameterKind::Choice(&$name::NAMES)];

                fn read(value: $crate::parameter::Value) -> Option<$name> {
                    match value {
                        $crate::parameter::Value::Choice(word) => $name::by_name(word),
                        _ => None,
                    }
                }

                fn shown(&self, _: &[$crate::parameter::ParameterKind]) -> alloc::string::String {
                    alloc::string::String::from(self.name())
                }
            }
        )+
    };
}
pub(crate) use choice;
