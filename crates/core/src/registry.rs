//! `registry!`: one list of implementations of a trait becomes an enum with static dispatch, names, parameter tables,
//! requirements, documents and construction by name.

use crate::parameter::{Parameter, Values};
use alloc::string::String;

/// What a registry knows of one entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in scenario files.
    pub name: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether values of these parameters make sense together; the error is a sentence for the user.
    pub check: fn(&Values) -> Result<(), String>,
    /// The settings it needs besides its name.
    pub needs: fn() -> &'static [Need],
    /// The text of its source file, whose module comment is its document.
    pub source: &'static str,
}

/// A setting that a mechanism needs besides its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Path of the key in a scenario file: `tcp.ecn`.
    pub path: &'static str,
    /// The value needed, as it is written there.
    pub value: &'static str,
    /// Another value that meets the need.
    pub or: Option<&'static str>,
    /// What it is for, and whether it is required.
    pub purpose: &'static str,
    /// The parameter of the mechanism, and its value, with which alone the setting is needed.
    pub when: Option<(&'static str, &'static str)>,
    /// Whether the mechanism sets it where nothing else is written.
    pub by_itself: bool,
    /// Why the mechanism is refused without it; `None`: it works without, and less well.
    pub refusal: Option<&'static str>,
}

impl Need {
    /// A setting without which the mechanism works less well.
    pub const fn new(path: &'static str, value: &'static str, purpose: &'static str) -> Need {
        Need {
            path,
            value,
            or: None,
            purpose,
            when: None,
            by_itself: false,
            refusal: None,
        }
    }

    /// The same need, which another value meets, too.
    pub const fn or_value(mut self, value: &'static str) -> Need {
        self.or = Some(value);
        self
    }

    /// The same need, if the mechanism's parameter `name` is `word`.
    pub const fn when(mut self, name: &'static str, word: &'static str) -> Need {
        self.when = Some((name, word));
        self
    }

    /// The same need, met by the mechanism itself where nothing else is written.
    pub const fn by_itself(mut self) -> Need {
        self.by_itself = true;
        self
    }

    /// The same need, without which the mechanism is refused for this reason.
    pub const fn or_refused(mut self, reason: &'static str) -> Need {
        self.refusal = Some(reason);
        self
    }
}

impl Entry {
    /// An entry that takes any values of its parameters and needs nothing.
    pub const fn new(name: &'static str, parameters: &'static [Parameter], source: &'static str) -> Entry {
        Entry {
            name,
            parameters,
            check: |_| Ok(()),
            needs: || &[],
            source,
        }
    }

    /// The module comment: what it does, its source, deviations and parameters.
    pub fn document(&self) -> impl Iterator<Item = &'static str> {
        self.source
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .map(|line| line.trim_start_matches("//!").strip_prefix(' ').unwrap_or(""))
    }
}

/// An implementation from outside the tree.
pub struct Plugin<Any: 'static, Context: 'static> {
    /// What scenario files and documents say of it.
    pub entry: Entry,
    /// Builds it from values of `entry.parameters`: mostly `Any::Custom`, or a registered one with other parameters. Called once
    /// for each connection or link.
    pub build: &'static (dyn Fn(&Values, &Context) -> Any + Sync),
}

impl<Any, Context> Clone for Plugin<Any, Context> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Any, Context> Copy for Plugin<Any, Context> {}

/// Makes the enum `$any` over the listed types and exports them: it delegates every method of its trait, `$any::ENTRIES`, and
/// `$any::build(name, values, context)`. Each listed type has `PARAMETERS` and `new(&Values, &Context)`.
///
/// What is `boxed` is large, and would make all others as large. The list is the only place that names a mechanism: programs, documents and tests read it. After it each method of the
/// trait stands once: first the short steps for what happens with nearly every packet (`fast`: always inlined, and not taken
/// by code from outside the tree, since the call would cost what the step saves), then others that change the
/// implementation (`mut`), then those that do not (`ref`).
#[macro_export]
macro_rules! registry {
    (
        $(#[$meta:meta])*
        $any:ident for $trait:ident from $context:ty
        { $($module:ident::$type:ident = $name:literal in $file:literal $($boxed:ident)?,)+ $(#[$foreign:meta] ..)? }
        fast { $($fast_methods:tt)* }
        mut { $($mut_methods:tt)* }
        ref { $($ref_methods:tt)* }
    ) => {
        $(pub use $module::$type;)+

        $(#[$meta])*
        pub enum $any {
            $(#[doc = concat!("`", $name, "`")] $type($crate::registry!(@held $type $($boxed)?)),)+
            /// Code from outside the tree.
            $(#[$foreign])?
            Custom(alloc::boxed::Box<dyn $trait + Send>),
        }

        impl $any {
            /// Every registered entry, in the order of the list.
            pub const ENTRIES: &'static [$crate::registry::Entry] = &[$($crate::registry::Entry {
                name: $name,
                parameters: <$type>::PARAMETERS,
                check: <$type as $trait>::check,
                needs: <$type as $trait>::needs,
                source: include_str!($file),
            }),+];

            /// The entry called `name`.
            pub fn entry(name: &str) -> Option<&'static $crate::registry::Entry> {
                Self::ENTRIES.iter().find(|entry| entry.name == name)
            }

            /// The entry called `name`, registered or of `plugins`.
            pub fn entry_among(
                plugins: &'static [$crate::registry::Plugin<Self, $context>],
                name: &str,
            ) -> Option<&'static $crate::registry::Entry> {
                let foreign = || plugins.iter().map(|plugin| &plugin.entry).find(|entry| entry.name == name);
                Self::entry(name).or_else(foreign)
            }

            /// The implementation called `name`, registered or of `plugins`, or `None`. `values` must be of its table.
            pub fn build_among(
                plugins: &'static [$crate::registry::Plugin<Self, $context>],
                name: &str,
                values: &$crate::parameter::Values,
                context: &$context,
            ) -> Option<Self> {
                Self::build(name, values, context).or_else(|| {
                    let plugin = plugins.iter().find(|plugin| plugin.entry.name == name)?;
                    Some((plugin.build)(values, context))
                })
            }

            /// The implementation registered as `name`, or `None`. `values` must be of that entry's table.
            pub fn build(name: &str, values: &$crate::parameter::Values, context: &$context) -> Option<Self> {
                match name {
                    $($name => Some($any::$type(<$type>::new(values, context).into())),)+
                    _ => None,
                }
            }

            /// The registered name, `custom` for code from outside the tree.
            pub fn name(&self) -> &'static str {
                match self {
                    $($any::$type(_) => $name,)+
                    $any::Custom(_) => "custom",
                }
            }
        }

        impl $trait for $any {
            $crate::registry!(@fast $any [$($type)+] $($fast_methods)*);
            $crate::registry!(@mut $any [$($type)+] $($mut_methods)*);
            $crate::registry!(@ref $any [$($type)+] $($ref_methods)*);
        }
    };
    (@held $type:ident) => { $type };
    (@held $type:ident boxed) => { alloc::boxed::Box<$type> };
    (@fast $any:ident $list:tt
        $(fn $method:ident(&mut $this:ident)($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(
            #[inline(always)]
            fn $method(&mut $this, $($argument: $type),*) $(-> $result)? {
                $crate::registry!(@step $any $list $this $method($($argument),*))
            }
        )*
    };
    (@step $any:ident [$($variant:ident)+] $this:ident $method:ident $arguments:tt) => {
        match $this {
            $($any::$variant(inner) => inner.$method $arguments,)+
            $any::Custom(_) => Default::default(),
        }
    };
    (@mut $any:ident $list:tt
        $(fn $method:ident(&mut $this:ident)($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(
            #[inline]
            fn $method(&mut $this, $($argument: $type),*) $(-> $result)? {
                $crate::registry!(@call $any $list $this $method($($argument),*))
            }
        )*
    };
    (@ref $any:ident $list:tt
        $(fn $method:ident(&$this:ident)($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(
            #[inline]
            fn $method(&$this, $($argument: $type),*) $(-> $result)? {
                $crate::registry!(@call $any $list $this $method($($argument),*))
            }
        )*
    };
    (@call $any:ident [$($variant:ident)+] $this:ident $method:ident $arguments:tt) => {
        match $this {
            $($any::$variant(inner) => inner.$method $arguments,)+
            $any::Custom(inner) => inner.$method $arguments,
        }
    };
}
