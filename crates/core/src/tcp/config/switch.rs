//! What a switch of a connection is, and the macro that makes a table of switches into a configuration.

use super::{Config, Profile};
use crate::parameter::{ParameterKind, Value, ValueError};
use alloc::string::String;

/// One switch: a field of [`Config`], what it does, how it is written, and its value with the source in every profile.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Its path in [`Config`]: `sack`, `rto.min`.
    pub field: &'static str,
    /// Its key under `[tcp]` in scenario files; `None`: it cannot be written there.
    pub key: Option<&'static str>,
    /// What it does.
    pub doc: &'static str,
    /// What may be written.
    pub form: SwitchForm,
    /// Another switch that must have one of some values; with any other value this switch has no effect.
    pub only_with: Option<OnlyWith>,
    pub(super) cell: fn(Profile, &[ParameterKind]) -> (String, &'static str),
    pub(super) shown: fn(&Config, &[ParameterKind]) -> String,
    pub(super) set: fn(&mut Config, Value) -> Option<()>,
}

/// What may be written for a switch.
#[derive(Clone, Copy, Debug)]
pub enum SwitchForm {
    /// A value of one of these kinds.
    Values(&'static [ParameterKind]),
    /// A registered congestion control, by name or with its parameters.
    CongestionControl,
    /// A rule for delayed ACKs, by name or with its times.
    DelayedAck,
    /// Redundant data bundling, by a word or a table.
    Rdb,
}

/// The condition under which a switch has an effect.
#[derive(Clone, Copy, Debug)]
pub struct OnlyWith {
    /// Key of the other switch.
    pub key: &'static str,
    /// Its values that give this switch an effect, as they are written.
    pub words: &'static [&'static str],
}

impl Switch {
    /// Its name in lists: its key under `[tcp]`, or its field.
    pub fn name(&self) -> &'static str {
        self.key.unwrap_or(self.field)
    }

    /// Its value in a profile, as it is written in scenario files, and the source of that value.
    pub fn cell(&self, profile: Profile) -> (String, &'static str) {
        (self.cell)(profile, self.kinds())
    }

    /// Its value in `config`, as it is written in scenario files.
    pub fn shown(&self, config: &Config) -> String {
        (self.shown)(config, self.kinds())
    }

    /// Sets it in `config`.
    ///
    /// # Errors
    /// The value is of another type, or out of range.
    pub fn set(&self, config: &mut Config, value: Value) -> Result<(), ValueError> {
        let mut checks = self.kinds().iter().map(|kind| kind.check(value));
        if !checks.clone().any(|check| check.is_ok()) {
            return Err(checks
                .find_map(|check| check.err().filter(|error| *error == ValueError::Range))
                .unwrap_or(ValueError::Type));
        }
        (self.set)(config, value).ok_or(ValueError::Type)
    }

    const fn kinds(&self) -> &'static [ParameterKind] {
        match self.form {
            SwitchForm::Values(kinds) => kinds,
            SwitchForm::CongestionControl | SwitchForm::DelayedAck | SwitchForm::Rdb => &[],
        }
    }
}

/// How many switches `parts` hold.
pub(super) const fn count(parts: &[&[Switch]]) -> usize {
    let (mut part, mut count) = (0, 0);
    while part < parts.len() {
        count += parts[part].len();
        part += 1;
    }
    count
}

/// The switches of all `parts`, of which the first has one.
pub(super) const fn joined<const COUNT: usize>(parts: &[&[Switch]]) -> [Switch; COUNT] {
    let mut all = [parts[0][0]; COUNT];
    let (mut part, mut place, mut index) = (0, 0, 0);
    while index < COUNT {
        if place == parts[part].len() {
            (part, place) = (part + 1, 0);
        } else {
            all[index] = parts[part][place];
            (place, index) = (place + 1, index + 1);
        }
    }
    all
}

/// Makes a struct of switches from a table: its fields, `SWITCHES`, and its value in every profile.
///
/// A row is a doc comment, which documents the field and is the text of every generated page, and
/// `field: Type [what may be written] as "key" by SwitchForm with other: ["word"] = { cells }`:
///
/// - `[...]`: the [`ParameterKind`]s that may be written; left out, those of the type.
/// - `as "key"`: the key under `[tcp]`; left out, the switch cannot be written there.
/// - `by SwitchForm`: the key is read as this [`SwitchForm`], not as a plain value.
/// - `with other: ["word"]`: the switch has an effect only where the switch `other` is one of these words.
/// - Cells are `profile => value, "source";`, and the first that names a profile holds for it. `ns2` and `linux` name all
///   profiles of ns-2 and of Linux, `linux_old` those of 2012 and 2015, `_` all.
/// - Instead of cells, `(value)` makes a field that is no switch, and `[group]` one that has a table of its own.
macro_rules! switches {
    (
        $(#[$meta:meta])*
        pub struct $config:ident at $at:tt {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty $([$($kind:expr),+])?
                    $(as $key:literal $(by $form:ident)? $(with $other:ident: [$($word:literal),+])?)?
                    = $body:tt
            )+
        }
    ) => {
        $(#[$meta])*
        pub struct $config {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl $config {
            const PARTS: &[&[Switch]] = &[$(row!(
                @switches $at $field ($type) [$($($kind),+)?] [$($($form)?)?] $body
                key: row!(@option $($key)?),
                doc: concat!($($doc),+).trim_ascii_start(),
                only_with: row!(@option $($($crate::tcp::OnlyWith {
                    key: stringify!($other),
                    words: &[$($word),+],
                })?)?),
            )),+];

            /// Its switches, in the order of its fields.
            pub const SWITCHES: &[Switch] = &joined::<{ count($config::PARTS) }>($config::PARTS);

            /// Its value in a profile.
            pub fn profile(profile: Profile) -> $config {
                $config {
                    $($field: row!(@value profile ($type) $body)),+
                }
            }
        }
    };
}

/// Parts of a row of [`switches!`].
macro_rules! row {
    (@switches $at:tt $field:ident ($type:ty) $kinds:tt $form:tt
        { $($column:tt => $value:expr, $source:literal;)+ } $($rest:tt)+) => {
        &[Switch {
            field: row!(@path $at $field),
            form: row!(@form ($type) $kinds $form),
            cell: |profile, kinds| match profile {
                $(row!(@column $column) => {
                    let value: $type = $value;
                    (value.shown(kinds), $source)
                })+
            },
            shown: |config, kinds| row!(@place config $at $field).shown(kinds),
            set: |config, value| {
                row!(@place config $at $field) = Written::read(value)?;
                Some(())
            },
            $($rest)+
        }]
    };
    (@switches $at:tt $field:ident ($type:ty) [] [] ($value:expr) $($rest:tt)+) => { &[] };
    (@switches $at:tt $field:ident ($type:ty) [] [] [group] $($rest:tt)+) => { <$type>::SWITCHES };

    (@value $profile:ident ($type:ty) { $($column:tt => $value:expr, $source:literal;)+ }) => {
        match $profile {
            $(row!(@column $column) => $value,)+
        }
    };
    (@value $profile:ident ($type:ty) ($value:expr)) => { $value };
    (@value $profile:ident ($type:ty) [group]) => { <$type>::profile($profile) };

    (@column ns2) => { Profile::Ns2Sack | Profile::Ns2NewReno };
    (@column ns2_sack) => { Profile::Ns2Sack };
    (@column ns2_newreno) => { Profile::Ns2NewReno };
    (@column linux) => { Profile::Linux3_2 | Profile::Linux2015 | Profile::Linux };
    (@column linux_old) => { Profile::Linux3_2 | Profile::Linux2015 };
    (@column linux_3_2) => { Profile::Linux3_2 };
    (@column linux_2015) => { Profile::Linux2015 };
    (@column rfc) => { Profile::Rfc };
    (@column _) => { _ };

    (@form ($type:ty) [] [$form:ident]) => { SwitchForm::$form };
    (@form ($type:ty) [] []) => { SwitchForm::Values(<$type as Written>::KINDS) };
    (@form ($type:ty) [$($kind:expr),+] []) => { SwitchForm::Values(&[$($kind),+]) };

    (@path [] $field:ident) => { stringify!($field) };
    (@path [$group:ident] $field:ident) => { concat!(stringify!($group), ".", stringify!($field)) };

    (@place $config:ident [] $field:ident) => { $config.$field };
    (@place $config:ident [$group:ident] $field:ident) => { $config.$group.$field };

    (@option) => { None };
    (@option $value:expr) => { Some($value) };
}
