//! The result document.
