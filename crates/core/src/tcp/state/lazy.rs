//! State that few connections need: a word until it is written to.

use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};
use serde::{Deserialize, Serialize};

/// State with a value that stands for "nothing yet".
pub(in crate::tcp) trait Blank: Default + 'static {
    /// The value, which equals the default.
    fn blank() -> &'static Self;
}

/// Reads as blank and takes a word until it is written to; then it is on the heap.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::tcp) struct Lazy<T>(Option<Box<T>>);

impl<T> Default for Lazy<T> {
    fn default() -> Lazy<T> {
        Lazy(None)
    }
}

impl<T> Lazy<T> {
    /// What was written, if anything was.
    pub(in crate::tcp) fn written(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Whether nothing was written yet.
    #[inline]
    pub(in crate::tcp) const fn is_blank(&self) -> bool {
        self.0.is_none()
    }
}

impl<T: Blank> Deref for Lazy<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => T::blank(),
        }
    }
}

impl<T: Blank> DerefMut for Lazy<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(first)
    }
}

#[cold]
fn first<T: Blank>() -> Box<T> {
    Box::default()
}
