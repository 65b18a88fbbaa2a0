//! What jitter says of the recommended setting, where it does not hold there.

use crate::result::Document;

/// Whether the variant `name` is the one to try with jitter too, where it is not the answer there. Of a search (`searched`) it may be a win there without
/// being the best.
pub(super) fn with_jitter(document: &Document, name: &str, searched: bool) -> String {
    let Some(jittered) = document.jittered.as_ref().filter(|jittered| !jittered.holds) else {
        return String::new();
    };
    let set = &jittered.set;
    match (&jittered.recommended, jittered.open_with_seeds) {
        (Some(other), _) if searched && jittered.wins.iter().any(|win| win == name) => format!(
            " With jitter ({set}) it is a win too, but not the best: {other} saves more there, less its harm."
        ),
        (Some(other), _) => format!(
            " With jitter ({set}) the best is {other} instead: without any jitter the order is a matter of phase (docs/trust.md), so go by that."
        ),
        (None, Some(seeds)) => format!(
            " With jitter ({set}) it could not be confirmed with {seeds} seeds: there it may save as much, or nothing. More seeds (--seeds) would tell."
        ),
        (None, None) => format!(
            " With jitter ({set}) nothing is significantly sooner: without any jitter the order is a matter of phase (docs/trust.md), so do not go by it."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::with_jitter;
    use crate::result::{Document, Jittered};

    #[test]
    fn a_win_with_jitter_that_is_not_the_best_there_is_called_so() {
        let of = |wins: &[&str], holds: bool, searched: bool| {
            let document = Document {
                jittered: Some(Jittered {
                    set: String::from("j"),
                    recommended: Some(String::from("sfq")),
                    equals: Vec::new(),
                    holds,
                    open_with_seeds: None,
                    possible: Vec::new(),
                    wins: wins.iter().map(|&name| name.to_owned()).collect(),
                }),
                ..Document::default()
            };
            with_jitter(&document, "fq-pie", searched)
        };
        assert_eq!(
            of(&["sfq", "fq-pie"], false, true),
            " With jitter (j) it is a win too, but not the best: sfq saves more there, less its harm."
        );
        for (wins, searched) in [(&["sfq"][..], true), (&["sfq", "fq-pie"], false)] {
            let text = of(wins, false, searched);
            assert!(
                text.starts_with(" With jitter (j) the best is sfq instead"),
                "{text}"
            );
        }
        assert_eq!(of(&["sfq", "fq-pie"], true, true), "");
    }
}
