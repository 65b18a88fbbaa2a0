//! Prints the table of the open-loop model of super-packets under attack, ours beside the published one, and what the
//! parameters of SP-H do: `cargo run --release -p fleetfoot-core --example superpacket_model [seconds] [seed]`.

#[path = "superpacket_model/model.rs"]
mod model;

use fleetfoot_core::parameter::Value;
use fleetfoot_core::time::Duration;
use model::{Assumed, Attack, Model, Outcome, as_published, attacks, hardened, table};

fn main() {
    let argument = |at, default: f64| {
        std::env::args()
            .nth(at)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (seconds, seed) = (argument(1, 18.0), argument(2, 1.0) as u64);
    println!(
        "{seconds} s, seed {seed}; regular loss, super-packets intact, partial in %; published in brackets"
    );
    for (name, published, model) in table(seconds, seed) {
        print(&name, published, &model.run());
    }
    println!("\nsp-h, spoofed firsts behind a port of honest sources, by rate (30000/s are 1 % of the link)");
    let model = |given, attack| Model {
        queue: "sp-h",
        given,
        attack,
        counted: (0.0, seconds),
        seed,
        assumed: Assumed::default(),
    };
    for rate in [20.0, 200.0, 2000.0, 10_000.0, 30_000.0] {
        let [_, _, (name, attack)] = attacks(rate);
        print(
            &format!("{rate} firsts/s, {name}"),
            None,
            &model(hardened(), attack).run(),
        );
    }
    println!(
        "\nsp-h as published, no attack, by what the source leaves open: sources, ns between members and between firsts"
    );
    for (sources, spacing_ns, spread_ns) in [
        (56, 12_000, 24_000),
        (14, 12_000, 24_000),
        (20, 12_000, 24_000),
        (1000, 12_000, 24_000),
        (56, 12_000, 0),
        (56, 12_000, 120_000),
        (56, 1_200, 0),
        (56, 1_200, 12_000),
        (56, 1_200, 120_000),
        (56, 24_000, 24_000),
        (56, 0, 0),
    ] {
        let assumed = Assumed {
            sources,
            spacing_ns,
            spread_ns,
        };
        for (name, given) in [("sp-h", as_published()), ("drop-tail", vec![hardened_limit()])] {
            let mut model = model(given, Attack::default());
            (model.queue, model.assumed) = (name, assumed);
            print(
                &format!("{name}, {sources}, {spacing_ns}, {spread_ns}"),
                None,
                &model.run(),
            );
        }
    }
    println!("\nsp-h as published by reserve and share, no attack");
    for (reserve, share) in [
        (50, 1.0),
        (70, 1.0),
        (70, 1.25),
        (70, 1.5),
        (70, 2.0),
        (70, 4.0),
        (90, 1.0),
    ] {
        let mut given = as_published();
        given.push(("reserve", Value::Integer(reserve)));
        given.push(("share", Value::Number(share)));
        given.push((
            "newcomers",
            Value::Integer(if reserve == 70 { 18 } else { reserve / 4 }),
        ));
        print(
            &format!("reserve {reserve}, share {share}"),
            None,
            &model(given, Attack::default()).run(),
        );
    }
    println!("\nsp-h with an epoch that follows the traffic, 1 to 200 ms, and ports that refill in 10 s");
    let adaptive = || {
        let mut given = hardened();
        given.push(("min_epoch", Value::Duration(Duration::from_millis(1))));
        given.push(("max_epoch", Value::Duration(Duration::from_millis(200))));
        given.push(("port_refill", Value::Duration(Duration::from_secs(10))));
        given
    };
    print("no attack", None, &model(adaptive(), Attack::default()).run());
    for (name, attack) in attacks(2000.0) {
        print(
            &format!("2000 firsts/s, {name}"),
            None,
            &model(adaptive(), attack).run(),
        );
    }
}

fn hardened_limit() -> (&'static str, Value) {
    ("limit", Value::Limit(fleetfoot_core::queue::Limit::Packets(100)))
}

fn print(name: &str, published: Option<[f64; 3]>, outcome: &Outcome) {
    let ours = [outcome.regular_loss, outcome.intact, outcome.partial];
    print!("{name:<46}");
    for (at, value) in ours.into_iter().enumerate() {
        let other = published.map_or(String::new(), |published| format!("({})", published[at]));
        print!(" {value:6.2} {other:<7}");
    }
    println!(" broken promises {}", outcome.broken_promises);
}
