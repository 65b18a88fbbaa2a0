//! Several networks beside each other: what each variant saves and harms in each of them.

use crate::layout::{fit, new_table, wrapped};
use crate::table::line;
use comfy_table::{Cell, CellAlignment};
use fleetfoot_lab::compare::words::percent;
use fleetfoot_lab::result::{Comparison, Variant};

/// A row for each variant that any of the networks has, in the order of the first; then the answers.
pub(crate) fn networks(comparisons: &[&Comparison], colored: bool, width: usize) -> String {
    let mut text = String::from("\n");
    let letters: Vec<String> = (0..comparisons.len())
        .map(|index| format!("{}", index + 1))
        .collect();
    for (letter, comparison) in letters.iter().zip(comparisons) {
        line(&mut text, &format!("{letter}: {}", comparison.document.scenario));
    }
    text.push('\n');
    let heading: Vec<String> = std::iter::once(String::from("variant"))
        .chain(letters.iter().flat_map(|letter| {
            [
                format!("tier {letter}"),
                format!("saved {letter}"),
                format!("harm {letter}"),
            ]
        }))
        .collect();
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let mut table = new_table(colored, &heading);
    for name in names(comparisons) {
        let mut row = vec![Cell::new(&name)];
        for comparison in comparisons {
            let found = comparison
                .document
                .variants
                .iter()
                .find(|variant| variant.name == name);
            let versus = found.and_then(|variant| variant.versus.as_ref());
            let none = || String::from("-");
            let cells = [
                versus
                    .and_then(|versus| versus.tier)
                    .map_or_else(String::new, |tier| tier.to_string()),
                versus.and_then(|versus| versus.win).map_or_else(none, percent),
                versus
                    .and_then(|versus| versus.harm)
                    .map_or_else(none, |harm| percent(harm.value)),
            ];
            row.extend(cells.map(|cell| Cell::new(cell).set_alignment(CellAlignment::Right)));
        }
        table.add_row(row);
    }
    fit(&mut table, width, &[]);
    text.push_str(&format!("{table}\n"));
    for (letter, comparison) in letters.iter().zip(comparisons) {
        let answer = format!("{letter}: {}", comparison.document.answer);
        line(&mut text, &format!("\n{}", wrapped(&answer, width, "")));
    }
    text
}

/// Names of all variants but the baseline, by rank in the first network that has them.
fn names(comparisons: &[&Comparison]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for comparison in comparisons {
        let mut variants: Vec<&Variant> = comparison
            .document
            .variants
            .iter()
            .filter(|variant| variant.versus.is_some())
            .collect();
        variants.sort_by_key(|variant| variant.versus.as_ref().map_or(0, |versus| versus.rank));
        for variant in variants {
            if !names.contains(&variant.name) {
                names.push(variant.name.clone());
            }
        }
    }
    names
}
