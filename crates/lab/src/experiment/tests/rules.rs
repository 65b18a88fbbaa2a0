//! The checks of published figures against the rules that `specs/published-*.toml` give for them, and what a reader is told of those
//! that are not reproduced.

use super::super::library;
use super::super::record::Record;
use super::super::verdict::Verdict;
use crate::metrics::Metric;
use crate::scenario::Expect;

const PUBLISHED: [&str; 2] = [
    include_str!("../../../../../specs/published-endpoint.toml"),
    include_str!("../../../../../specs/published-router.toml"),
];

/// Id and tolerance of every published result; a tolerance that is a table is the words in it.
fn rules() -> Vec<(String, String)> {
    let mut rules = Vec::new();
    for text in PUBLISHED {
        let document: toml::Table = toml::from_str(text).unwrap_or_else(|error| panic!("{error}"));
        for result in document["result"].as_array().expect("a list of results") {
            let id = result["id"].as_str().expect("an id").to_owned();
            let words = match &result["tolerance"] {
                toml::Value::String(text) => text.clone(),
                toml::Value::Table(table) => {
                    let texts = table.values().filter_map(toml::Value::as_str);
                    texts.collect::<Vec<_>>().join("; ")
                }
                other => other.to_string(),
            };
            rules.push((id, words));
        }
    }
    rules
}

#[test]
fn what_a_rule_judges_by_a_confidence_interval_has_bounds() {
    let mut judged = Vec::new();
    for (id, _) in rules().into_iter().filter(|(_, rule)| rule.contains("95 % CI")) {
        let experiments =
            library::select(std::slice::from_ref(&id)).unwrap_or_else(|error| panic!("{error}"));
        for check in &experiments[0].file.figure.checks {
            let exact = matches!(check.quantity.metric, Metric::Analysis(_));
            let by_estimate = matches!(check.expect, Some(Expect::Value { .. }));
            assert!(
                exact || !check.counts() || !by_estimate,
                "{id}, {}: a value is judged by its estimate, the rule asks for the interval",
                check.name
            );
        }
        judged.push(id);
    }
    assert_eq!(
        judged,
        [
            "rdb-fair-itt30",
            "rdb-fair-itt10",
            "newcwv-burst",
            "cdg-rpc",
            "is-fct-40ms",
            "is-fct-250ms",
            "is-fairness"
        ]
    );
}

/// Of these experiments the number that is not reproduced; each of them must have a `note` that names the cause.
fn explained(ids: impl Iterator<Item = String>) -> usize {
    let record = Record::embedded().unwrap_or_else(|error| panic!("{error}"));
    let experiments = library::all().unwrap_or_else(|error| panic!("{error}"));
    let mut explained = 0;
    let mut silent = Vec::new();
    for id in ids {
        let experiment = experiments.iter().find(|experiment| experiment.id == id);
        let figure = &experiment
            .unwrap_or_else(|| panic!("no experiment is called {id}"))
            .file
            .figure;
        let full = record
            .full(&id)
            .unwrap_or_else(|| panic!("no full run of {id} is recorded"));
        if full.verdict == Verdict::Reproduced {
            continue;
        }
        let note = figure.note.as_ref().or(figure.not_comparable.as_ref());
        if note.is_none_or(|text| text.trim().is_empty()) {
            silent.push(format!("{id} ({})", full.verdict.name()));
        }
        explained += 1;
    }
    assert!(
        silent.is_empty(),
        "no `note` names the cause: {}",
        silent.join(", ")
    );
    explained
}

#[test]
fn a_published_figure_that_is_not_reproduced_says_why() {
    assert!(
        explained(rules().into_iter().map(|(id, _)| id)) > 0,
        "nothing was asked"
    );
}

#[test]
fn an_experiment_of_our_own_that_is_not_reproduced_says_why() {
    let own = library::ids()
        .filter(|id| id.starts_with("own-"))
        .map(str::to_owned);
    assert!(explained(own) > 0, "nothing was asked");
}
