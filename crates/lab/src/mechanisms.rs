//! What users choose between.
