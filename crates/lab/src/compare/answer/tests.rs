//! Who is recommended where only some places matter.

use super::recommended;
use crate::compare::ranking::Rows;
use crate::compare::{Choice, Plan};
use crate::result::{Recommended, Variant};
use crate::scenario::Scenario;

const LINE: &str = r#"[network]
kind = "dumbbell"
pairs = 2
[network.bottleneck]
rate = "30 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "1 MB" }
reverse = { rate = "5 Mbit/s" }
[[traffic]]
name = "pages"
kind = "transfer"
size = "30 kB"
arrivals = { dist = "poisson", rate = "3 per second" }
"#;

/// What is recommended of FQ-CoDel and DRR, equal at both places, where they save and harm so much at the uplink alone.
fn of(uplink: [(f64, f64); 2]) -> Recommended {
    let scenario = Scenario::parse("line.toml", LINE).expect("it is correct");
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
    let scenario = || Scenario::parse("line.toml", LINE).expect("it is correct");
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
