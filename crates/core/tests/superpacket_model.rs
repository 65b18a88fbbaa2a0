//! The open-loop model of super-packets under attack, short; `cargo run --release -p fleetfoot-core --example superpacket_model`
//! prints the whole table beside the published one.

#[path = "../examples/superpacket_model/model.rs"]
mod model;

use model::{Assumed, Attack, Model, Outcome, attacks, hardened, table};

/// Rows of a short table by the beginning of their names.
fn rows(seconds: f64) -> Vec<(String, Outcome)> {
    let rows = table(seconds, 1).into_iter();
    rows.map(|(name, _, model)| (name, model.run())).collect()
}

#[test]
fn an_attack_on_the_report_s_rule_harms_everybody_and_on_sp_h_nobody() {
    let rows = rows(3.0);
    let of = |name: &str| {
        let found = rows.iter().find(|row| row.0 == name);
        found.unwrap_or_else(|| panic!("no row {name}")).1
    };
    for (name, outcome) in &rows {
        println!("{name:<46} {outcome:?}");
    }
    let (plain, none) = (of("drop-tail"), of("sp-h, no attack"));
    // Published: intact 6.4 % and 44 %, regular loss 2.7 % and 1.7 %.
    assert!(none.intact > 3.0 * plain.intact);
    assert!(none.regular_loss < plain.regular_loss);
    assert_eq!(none.broken_promises, 0);
    assert!(of("superpacket, no attack").broken_promises > 0);
    // The negative control: the attack works.
    assert!(of("superpacket, E 200 ms, 200 firsts/s").regular_loss > 50.0);
    assert!(of("superpacket, E 200 ms, 2000 firsts/s").regular_loss > 90.0);
    for (name, _) in attacks(2000.0) {
        let attacked = of(&format!("sp-h, 2000 firsts/s, {name}"));
        let extra = attacked.regular_loss - none.regular_loss;
        let fewer = none.intact - attacked.intact;
        // Published: nothing but on a shared port, 1.4 points of loss more there.
        let shared = name.contains("shared");
        assert!(
            extra < if shared { 2.0 } else { 0.5 },
            "{name}: {extra} points more loss"
        );
        assert!(
            fewer < if shared { 6.0 } else { 2.0 },
            "{name}: {fewer} points fewer intact"
        );
        assert_eq!(attacked.broken_promises, 0);
    }
}

#[test]
fn ten_seconds_after_an_attack_everything_is_as_before() {
    let run = |attack| {
        let model = Model {
            queue: "sp-h",
            given: hardened(),
            attack,
            counted: (12.0, 16.0),
            seed: 3,
            assumed: Assumed::default(),
        };
        model.run()
    };
    let [_, _, (_, attack)] = attacks(2000.0);
    let (before, after) = (run(Attack::default()), run(Attack { until: 2.0, ..attack }));
    println!("without: {before:?}\nafter:   {after:?}");
    assert!((before.intact - after.intact).abs() < 2.0);
    assert!((before.regular_loss - after.regular_loss).abs() < 0.5);
}
