//! Many variants side by side: ranking, answer.
