//! What every entry must have.

use super::{ENTRIES, PAIRS, find};

#[test]
fn every_entry_is_complete_and_its_name_is_its_own() {
    for (index, entry) in ENTRIES.iter().enumerate() {
        for (what, text) in [
            ("turn_on", entry.turn_on),
            ("document", entry.document),
            ("source", entry.source),
            ("evidence", entry.evidence),
        ] {
            assert!(!text.trim().is_empty(), "{} has no {what}", entry.name);
        }
        assert!(!entry.set.is_empty(), "{} sets nothing", entry.name);
        assert!(
            ENTRIES[..index].iter().all(|other| other.name != entry.name),
            "{} is there twice",
            entry.name
        );
        assert!(
            entry
                .name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{}",
            entry.name
        );
    }
}

#[test]
fn pairs_name_entries() {
    for (first, second) in PAIRS {
        assert!(
            find(first).is_some() && find(second).is_some(),
            "{first} + {second}"
        );
    }
}
