//! Lines whose rate nobody can write into a command: a shaper follows them, and no figures are promised.

use super::*;
use crate::compare::turn_on::follows;

/// A mobile cell of this rate downwards.
fn cell(name: &str, rate: &str, ping: bool) -> (Plan, Vec<Vec<Instruction>>) {
    let folder = crate::testing::folder(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let trace: String = (1..=1000).map(|at| format!("{at}\n")).collect();
    std::fs::write(folder.join("cell.trace"), trace).expect("a trace");
    let mut text = line("10 Mbit/s", "10 Mbit/s", "medium = \"cellular\"").replacen(
        "rate = \"10 Mbit/s\"",
        &format!("rate = {rate}"),
        1,
    );
    if ping {
        text = text.replacen("[run]", "[[traffic]]\nname = \"ping\"\nkind = \"ping\"\n[run]", 1);
    }
    let file = folder.join("cell.toml");
    std::fs::write(&file, text).expect("a scenario");
    let scenario = Scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
    let choice = Choice {
        only: ["cake", "fq-codel", "westwood"].map(str::to_owned).to_vec(),
        places: vec![DOWN.to_owned()],
        ..Choice::default()
    };
    let plan = Plan::compare(scenario, &choice).expect("it resolves");
    let [before, after] = [(0.27, 0.3), (0.005, 0.02)].map(|(mean, p99)| measured(&plan, mean, p99));
    let of = |name| {
        let index = plan.variants.iter().position(|variant| variant.name == name);
        instructions_of(&plan, index.expect("it applies"), &after, &before)
    };
    let all = ["cake", "fq-codel", "westwood"].map(of).to_vec();
    let _ = std::fs::remove_dir_all(&folder);
    (plan, all)
}

#[test]
fn beside_a_line_of_varying_rate_a_shaper_gets_a_part_and_no_figures_are_promised() {
    for ping in [false, true] {
        let (plan, all) = cell("cell", "{ trace = \"cell.trace\" }", ping);
        let cake = &all[0][0];
        assert!(cake.commands[0].contains("cake autorate-ingress"), "{cake:?}");
        assert!(
            cake.why.ends_with("Simulated as if the base station itself had this queue; a shaper next to it, which learns the rate only after a while, gets a part of this."),
            "{}",
            cake.why
        );
        assert!(
            cake.needs.starts_with("Linux 4.19")
                && cake.needs.contains("Instead of it, the script cake-autorate"),
            "{}",
            cake.needs
        );
        let check = cake.check.as_deref().expect("what was before is known");
        assert!(check.contains(" Average before: about "), "{check}");
        assert!(
            !check.contains("afterwards:") && !check.contains("99 of 100"),
            "{check}"
        );
        let fq_codel = &all[1][0];
        assert_ne!(
            cake.why, fq_codel.why,
            "one can be had and the other cannot: not for the same reason"
        );
        assert!(
            fq_codel
                .why
                .contains("none that follows the rate can be had with fq-codel"),
            "{}",
            fq_codel.why
        );
        assert_eq!(
            (fq_codel.commands.len(), fq_codel.nearest.as_deref()),
            (0, Some("cake"))
        );
        assert!(
            fq_codel.needs.contains("nearest to fq-codel here"),
            "{}",
            fq_codel.needs
        );
        let senders = all[2][0].check.as_deref().expect("it is known");
        assert!(senders.contains(" expected afterwards"), "{senders}");
        assert_eq!(
            (0..4)
                .map(|index| follows(&plan, index))
                .filter(|follows| *follows)
                .count(),
            2
        );
    }
    let (plan, all) = cell("cell-constant", "\"10 Mbit/s\"", false);
    assert!((0..4).all(|index| !follows(&plan, index)));
    let check = all[0][0].check.as_deref().expect("it is known");
    assert!(check.contains("; afterwards: "), "{check}");
}
