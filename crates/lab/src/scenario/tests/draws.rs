//! Groups that draw the random numbers of another one.

use super::{HOME_LINE, refusal, resolved};
use crate::scenario::Setting;

/// The busy line with a second group of pages, whose keys are `keys`.
fn with(keys: &str) -> String {
    format!("{HOME_LINE}\n[[traffic]]\nname = \"second\"\nkind = \"web\"\nthink = \"1 s\"\n{keys}\n")
}

#[test]
fn a_group_may_draw_as_another_one() {
    let first = resolved(HOME_LINE, &Setting::none()).spec.groups[0].name.clone();
    let drawn = |keys: &str| {
        let groups = resolved(&with(keys), &Setting::none()).spec.groups;
        groups.last().expect("a group").draws().to_owned()
    };
    assert_eq!(drawn(""), "second");
    assert_eq!(drawn("draws = \"second\""), "second");
    assert_eq!(drawn(&format!("draws = \"{first}\"")), first);
}

#[test]
fn the_group_must_be_there_and_draw_its_own() {
    let message = refusal(&with("draws = \"nobody\"")).to_string();
    assert!(message.contains("no traffic group `nobody`"), "{message}");
    let chain = with("draws = \"third\"")
        + "[[traffic]]\nname = \"third\"\nkind = \"web\"\nthink = \"1 s\"\ndraws = \"second\"\n";
    let message = refusal(&chain).to_string();
    assert!(
        message.contains("itself draws the random numbers of `second`"),
        "{message}"
    );
}
