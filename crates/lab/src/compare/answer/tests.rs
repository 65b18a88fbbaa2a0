//! Who is recommended where only some places matter, and what is left of it after the networks near.

use super::{keep_what_holds, recommended};
use crate::compare::parts::UNEVEN_LINE;
use crate::compare::ranking::Rows;
use crate::compare::{Choice, Plan};
use crate::result::{Document, Jittered, Recommended, SensitivityPoint, Variant};
use crate::scenario::Scenario;

/// What is recommended of FQ-CoDel and DRR, equal at both places, where they save and harm so much at the uplink alone.
fn of(uplink: [(f64, f64); 2]) -> Recommended {
    let scenario = Scenario::parse("line.toml", UNEVEN_LINE).expect("it is correct");
    let choice = Choice {
        only: ["fq-codel", "drr"].map(str::to_owned).to_vec(),
        places: vec![String::from("bottleneck")],
        ..Choice::default()
    };
    let mut plan = Plan::compare(scenario, &choice).expect("it resolves");
    plan.add_parts("fq-codel");
    plan.add_parts("drr");
    let figures = |name: &str| match name {
        "fq-codel at the uplink only" => uplink[0],
        "drr at the uplink only" => uplink[1],
        "fq-codel" => (0.80, 0.02),
        "drr" => (0.80, 0.03),
        _ => (0.0, 0.0),
    };
    let variants: Vec<Variant> = plan
        .variants
        .iter()
        .map(|planned| {
            let (win, harm) = figures(&planned.name);
            serde_json::from_value(serde_json::json!({
                "name": planned.name, "set": {}, "runs": 10, "turn_on": null, "groups": [], "links": [], "nodes": [],
                "headers_per_byte_delivered": null, "lookups_per_s": 0.0, "lookup_power_w": 0.0, "fairness_jain": null,
                "data_packets_delivered": 0, "bytes_sent_per_byte_delivered": null,
                "versus": {
                    "baseline": "as described", "rank": 1, "win": win, "win_ci95": [win - 0.01, win + 0.01], "cost": null, "worst_p99": null,
                    "harm": { "value": harm, "ci95": [harm, harm + 0.01], "significant": true }, "significant": true, "groups": []
                }
            }))
            .expect("the fields of a variant")
        })
        .collect();
    let rows = Rows {
        first: vec![1, 2],
        tier: 1,
        ..Rows::default()
    };
    recommended(&plan, &rows, &variants).expect("there is a first tier")
}

/// FQ-CoDel is first of its tier at both places. At the uplink, which is all that is advised, it harms more than DRR.
#[test]
fn a_queue_that_is_advised_at_one_place_is_chosen_by_what_it_does_there() {
    let chosen = of([(0.79, 0.05), (0.80, 0.0)]);
    assert_eq!(chosen.variant, "drr");
    assert_eq!(chosen.equals, [""; 0]);
    assert_eq!(chosen.matters.as_deref(), Some("the uplink, 5 Mbit/s"));
}

#[test]
fn where_they_are_equal_there_the_first_of_the_table_stays() {
    let chosen = of([(0.79, 0.01), (0.80, 0.0)]);
    assert_eq!(
        (chosen.variant.as_str(), chosen.equals.as_slice()),
        ("fq-codel", &[String::from("drr")][..])
    );
    // Nothing at one place comes near what both places save: the tier is that of the table.
    let chosen = of([(0.3, 0.2), (0.4, 0.0)]);
    assert_eq!((chosen.variant.as_str(), chosen.matters), ("fq-codel", None));
}

/// The best of six seeds saves 43 to 75 %, which is no chance by itself, but with so many comparisons it is not significant.
#[test]
fn what_only_the_correction_leaves_open_is_not_denied() {
    let scenario = || Scenario::parse("line.toml", UNEVEN_LINE).expect("it is correct");
    let of = |only: &[&str], win: f64, ends: [f64; 2]| {
        let choice = Choice {
            only: only.iter().map(|&name| name.to_owned()).collect(),
            places: vec![String::from("bottleneck:forward")],
            ..Choice::default()
        };
        let plan = Plan::compare(scenario(), &choice).expect("it resolves");
        let variants: Vec<Variant> = plan
            .variants
            .iter()
            .enumerate()
            .map(|(index, planned)| {
                let versus = (index > 0).then(|| {
                    serde_json::json!({
                        "baseline": "as described", "rank": index, "win": win, "win_ci95": ends, "cost": null, "worst_p99": null,
                        "significant": false, "groups": []
                    })
                });
                serde_json::from_value(serde_json::json!({
                    "name": planned.name, "set": {}, "runs": 6, "turn_on": null, "groups": [], "links": [], "nodes": [],
                    "headers_per_byte_delivered": null, "lookups_per_s": 0.0, "lookup_power_w": 0.0, "fairness_jain": null,
                    "data_packets_delivered": 0, "bytes_sent_per_byte_delivered": null, "versus": versus
                }))
                .expect("the fields of a variant")
            })
            .collect();
        let rows = Rows {
            top: Some(1),
            ..Rows::default()
        };
        super::nothing(&plan, &rows, &variants)
    };
    assert_eq!(
        of(&["fq-pie", "drr"], 0.64, [0.43, 0.75]),
        "Not decided: with 6 seeds none of 2 variants is significant after the correction for so many comparisons; the best estimate is \
         fq-pie with 64 % (95 % interval 43 to 75 %). More seeds (--seeds 20) or fewer variants (--only NAME,NAME) decide it."
    );
    assert_eq!(
        of(&["fq-pie"], 0.64, [0.43, 0.75]),
        "Not decided: with 6 seeds the difference is not significant; the estimate is fq-pie with 64 % (95 % interval 43 to 75 %). More seeds \
         (--seeds 20) decide it."
    );
    assert_eq!(
        of(&["fq-pie", "drr"], 0.09, [-0.04, 0.23]),
        "Nothing tried makes the short transfers finish significantly sooner over 6 seeds; the best estimate is fq-pie with 9 % (95 % interval \
         -4 to 23 %)."
    );
}

/// Simulated is the queue in the base station; what the user has is a shaper beside it, if anything.
#[test]
fn beside_a_line_of_varying_rate_the_answer_says_that_a_shaper_gets_a_part() {
    let folder = crate::testing::folder("varying");
    std::fs::create_dir_all(&folder).expect("a folder");
    let trace: String = (1..=1000).map(|at| format!("{at}\n")).collect();
    std::fs::write(folder.join("cell.trace"), trace).expect("a trace");
    let of = |rate: &str, name: &str| {
        let rate = format!("medium = \"cellular\"\nrate = {rate}");
        let file = folder.join("cell.toml");
        std::fs::write(&file, UNEVEN_LINE.replacen("rate = \"30 Mbit/s\"", &rate, 1)).expect("a scenario");
        let choice = Choice {
            only: vec![name.to_owned()],
            places: vec![String::from("bottleneck:forward")],
            ..Choice::default()
        };
        let scenario = Scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
        let plan = Plan::compare(scenario, &choice).expect("it resolves");
        let versus = |index: usize| {
            let own = serde_json::json!({
                "baseline": "as described", "rank": 1, "win": 0.7, "win_ci95": [0.6, 0.8], "cost": null, "worst_p99": null, "tier": 1,
                "significant": true, "groups": []
            });
            (index > 0).then_some(own)
        };
        let variants: Vec<Variant> = plan
            .variants
            .iter()
            .enumerate()
            .map(|(index, planned)| {
                serde_json::from_value(serde_json::json!({
                    "name": planned.name, "set": {}, "runs": 10, "turn_on": null, "groups": [], "links": [], "nodes": [],
                    "headers_per_byte_delivered": null, "lookups_per_s": 0.0, "lookup_power_w": 0.0, "fairness_jain": null,
                    "data_packets_delivered": 0, "bytes_sent_per_byte_delivered": null, "versus": versus(index)
                }))
                .expect("the fields of a variant")
            })
            .collect();
        let rows = Rows {
            first: vec![1],
            tier: 1,
            ..Rows::default()
        };
        let document = Document {
            recommended: recommended(&plan, &rows, &variants),
            variants,
            ..Document::default()
        };
        super::answer(&plan, &rows, &crate::run::Batch::default(), &document)
    };
    let part = " That is with the queue in the device at the line itself: a shaper next to it, which learns the rate only after a while, \
                gets a part of this.";
    let trace = "{ trace = \"cell.trace\" }";
    assert!(of(trace, "cake").contains(part), "{}", of(trace, "cake"));
    assert!(!of("\"30 Mbit/s\"", "cake").contains(part));
    assert!(!of(trace, "sfq").contains(part), "nobody can have it");
    let _ = std::fs::remove_dir_all(&folder);
}

/// What is left of the advice of DRR where one network near is as `near`, and what jitter says: of the table DRR, FQ-PIE (tier 1), FQ-CoDel and CoDel
/// (tier 2), over 24, 12, 6 and 3 seeds.
fn kept(near: SensitivityPoint, jittered: Option<Jittered>) -> Document {
    let scenario = Scenario::parse("line.toml", UNEVEN_LINE).expect("it is correct");
    let table = [
        ("drr", 24, 1),
        ("fq-pie", 12, 1),
        ("fq-codel", 6, 2),
        ("codel", 3, 2),
    ];
    let choice = Choice {
        only: table.map(|(name, ..)| name.to_owned()).to_vec(),
        places: vec![String::from("bottleneck")],
        ..Choice::default()
    };
    let plan = Plan::compare(scenario, &choice).expect("it resolves");
    let variant = |(rank, (name, runs, tier)): (usize, &(&str, u64, u64))| {
        serde_json::from_value(serde_json::json!({
            "name": name, "set": {}, "runs": runs, "turn_on": null, "groups": [], "links": [], "nodes": [],
            "headers_per_byte_delivered": null, "lookups_per_s": 0.0, "lookup_power_w": 0.0, "fairness_jain": null,
            "data_packets_delivered": 0, "bytes_sent_per_byte_delivered": null,
            "versus": {
                "baseline": "as described", "rank": rank + 1, "win": 0.6, "win_ci95": [0.5, 0.7], "cost": null, "worst_p99": null,
                "tier": tier, "significant": true, "groups": []
            }
        }))
        .expect("the fields of a variant")
    };
    let open = ["fq-pie", "fq-codel"].map(str::to_owned).to_vec();
    let mut document = Document {
        recommended: Some(Recommended {
            equals: vec![String::from("fq-pie")],
            seeds: 24,
            undecided: open.len() as u64,
            open,
            ..crate::testing::recommended("drr")
        }),
        variants: table.iter().enumerate().map(variant).collect(),
        sensitivity: vec![near],
        jittered,
        ..Document::default()
    };
    keep_what_holds(&plan, &mut document);
    document
}

/// A network near, of this first tier and these other wins.
fn near(first_tier: &[&str], others: &[&str]) -> SensitivityPoint {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    SensitivityPoint {
        change: String::from("load x 2"),
        places: Vec::new(),
        best: first_tier
            .first()
            .map(|&name| name.to_owned())
            .unwrap_or_default(),
        best_win: None,
        described_best_win: None,
        holds: false,
        first_tier: names(first_tier),
        wins: names(&[first_tier, others].concat()),
        harmless: Vec::new(),
    }
}

#[test]
fn what_stands_in_for_the_first_choice_has_seeds_and_open_questions_of_its_own() {
    let of = |near: SensitivityPoint| {
        let document = kept(near, None);
        let own = document.recommended.expect("something holds");
        (own.variant, own.equals, own.seeds, own.undecided, own.open)
    };
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    // One of the same tier: what is open about it is no matter any more.
    assert_eq!(
        of(near(&["fq-pie"], &["codel"])),
        (
            String::from("fq-pie"),
            names(&["drr"]),
            12,
            1,
            names(&["fq-codel"])
        )
    );
    // One of the next: nothing was asked about that tier.
    assert_eq!(
        of(near(&["cake"], &["fq-codel", "codel"])),
        (String::from("fq-codel"), names(&["codel"]), 3, 0, Vec::new())
    );
    // The first choice itself keeps what it has.
    assert_eq!(
        of(near(&["drr"], &[])),
        (
            String::from("drr"),
            names(&["fq-pie"]),
            24,
            2,
            names(&["fq-pie", "fq-codel"])
        )
    );
}

#[test]
fn with_jitter_holds_what_is_of_the_first_tier_there() {
    let of = |first_tier: &[&str], possible: Option<&[&str]>, near: SensitivityPoint| {
        let names = first_tier.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let jittered = Jittered {
            set: String::from("network.access.jitter = \"1 ms\""),
            recommended: names.first().cloned(),
            equals: names.iter().skip(1).cloned().collect(),
            holds: true,
            open_with_seeds: possible.map(|_| 24),
            possible: possible
                .unwrap_or_default()
                .iter()
                .map(|&name| name.to_owned())
                .collect(),
            wins: Vec::new(),
        };
        let document = kept(near, Some(jittered));
        let chosen = document.recommended.expect("something is a win near").variant;
        let jittered = document.jittered.expect("it stays");
        (chosen, jittered.holds, jittered.open_with_seeds)
    };
    let holds = |first_tier: &[&str], near: SensitivityPoint| {
        let (chosen, holds, _) = of(first_tier, None, near);
        (chosen, holds)
    };
    let all = || near(&["drr", "fq-pie", "fq-codel"], &[]);
    assert_eq!(holds(&["fq-pie", "drr"], all()), (String::from("drr"), true));
    assert_eq!(holds(&["fq-pie"], all()), (String::from("fq-pie"), true));
    // Of the first tier nothing is of the first tier there, or nothing is a win there.
    assert_eq!(holds(&["cake"], all()), (String::from("drr"), false));
    assert_eq!(holds(&[], all()), (String::from("drr"), false));
    // What could not be confirmed there is open, and of what takes its place only where that may save as much too.
    assert_eq!(
        of(&[], Some(&["drr"]), all()),
        (String::from("drr"), false, Some(24))
    );
    let seeds = Plan::compare(
        Scenario::parse("line.toml", UNEVEN_LINE).expect("it is correct"),
        &Choice::default(),
    );
    let seeds = seeds.expect("it resolves").seeds.len() as u64;
    let without_drr = || near(&["fq-pie", "fq-codel"], &[]);
    assert_eq!(
        of(&[], Some(&["drr", "fq-pie"]), without_drr()),
        (String::from("fq-pie"), false, Some(seeds))
    );
    assert_eq!(
        of(&[], Some(&["drr"]), without_drr()),
        (String::from("fq-pie"), false, None)
    );
}
