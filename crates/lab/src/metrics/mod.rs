//! What is measured, in one table.

pub mod counters;
