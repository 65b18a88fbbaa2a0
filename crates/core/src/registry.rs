//! `registry!`: one list of implementations of a trait becomes an enum with static dispatch, names, parameter tables,
//! documents and construction by name.

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
    /// The text of its source file, whose module comment is its document.
    pub source: &'static str,
}

impl Entry {
    /// The module comment: what it does, its source, deviations and parameters.
    pub fn document(&self) -> impl Iterator<Item = &'static str> {
        self.source
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .map(|line| line.trim_start_matches("//!").strip_prefix(' ').unwrap_or(""))
    }
}

/// Makes the enum `$any` over the listed types, which delegates every method of its trait, `$any::ENTRIES`, and
/// `$any::build(name, values, context)`. Each listed type has `PARAMETERS` and `new(&Values, &Context)`.
///
/// The list is the only place that names a mechanism: programs, documents and tests read it. After it each method of
/// the trait stands once, those that change the implementation first.
#[macro_export]
macro_rules! registry {
    (
        $(#[$meta:meta])*
        $any:ident for $trait:ident from $context:ty
        { $($variant:ident($type:ty) = $name:literal in $file:literal,)+ }
        mut { $($mut_methods:tt)* }
        ref { $($ref_methods:tt)* }
    ) => {
        $(#[$meta])*
        pub enum $any {
            $(#[doc = concat!("`", $name, "`")] $variant($type),)+
            /// Code from outside the tree.
            Custom(alloc::boxed::Box<dyn $trait + Send>),
        }

        impl $any {
            /// Every registered entry, in the order of the list.
            pub const ENTRIES: &'static [$crate::registry::Entry] = &[$($crate::registry::Entry {
                name: $name,
                parameters: <$type>::PARAMETERS,
                check: <$type as $trait>::check,
                source: include_str!($file),
            }),+];

            /// The entry called `name`.
            pub fn entry(name: &str) -> Option<&'static $crate::registry::Entry> {
                Self::ENTRIES.iter().find(|entry| entry.name == name)
            }

            /// The implementation registered as `name`, or `None`. `values` must be of that entry's table.
            pub fn build(name: &str, values: &$crate::parameter::Values, context: &$context) -> Option<Self> {
                match name {
                    $($name => Some($any::$variant(<$type>::new(values, context))),)+
                    _ => None,
                }
            }

            /// The registered name, `custom` for code from outside the tree.
            pub fn name(&self) -> &'static str {
                match self {
                    $($any::$variant(_) => $name,)+
                    $any::Custom(_) => "custom",
                }
            }
        }

        impl $trait for $any {
            $crate::registry!(@mut $any [$($variant)+] $($mut_methods)*);
            $crate::registry!(@ref $any [$($variant)+] $($ref_methods)*);
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
