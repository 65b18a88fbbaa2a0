//! One table makes the fields of a set of counters and the list from which results take them.

/// Makes a struct of counters from rows of name and meaning.
macro_rules! counters {
    ($(#[doc = $about:literal])+ $type:ident { $($name:ident, $text:literal;)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $type {
            $(#[doc = $text] pub $name: u64,)+
        }

        impl $type {
            /// Name, meaning and value of each, in order.
            pub fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), $text, self.$name),)+].into_iter()
            }
        }
    };
}
