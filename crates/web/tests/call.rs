//! What a page asks, and what it is told.

use fleetfoot_web::{EXAMPLES, call};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SMALL: &str = include_str!("small.toml");

fn asked(request: &Value) -> Value {
    let answer = call(&request.to_string(), &AtomicBool::new(false), &|_| ());
    serde_json::from_str(&answer).expect("an answer is JSON")
}

fn answered(request: &Value) -> Value {
    let told = asked(request);
    assert!(told["error"].is_null(), "{told:#}");
    told["answer"].clone()
}

fn small(set: &[&str]) -> Value {
    json!({ "name": "small.toml", "toml": SMALL, "set": set })
}

#[test]
fn every_example_can_be_read_and_something_can_be_moved_in_it() {
    let hello = answered(&json!({ "do": "hello" }));
    let examples = hello["examples"].as_array().expect("a list");
    // Those of QUIC are there where the tests have it.
    assert!(examples.len() + 1 >= EXAMPLES.len(), "{}", examples.len());
    for example in examples {
        let (name, text) = (example["name"].as_str().expect("a text"), &example["text"]);
        let checked = answered(&json!({ "do": "check", "name": format!("{name}.toml"), "toml": text }));
        let controls = checked["controls"].as_array().expect("a list");
        assert!(
            controls.iter().any(|control| control["kind"] == "rate"),
            "{name}: {controls:?}"
        );
        assert!(
            checked["variants"].as_array().is_some_and(|all| !all.is_empty()),
            "{name}"
        );
    }
}

#[test]
fn a_mistake_has_its_place() {
    let broken = SMALL.replace("rate = \"4 Mbit/s\"", "rate = \"4 bananas\"");
    let told = asked(&json!({ "do": "check", "name": "small.toml", "toml": broken }));
    let error = &told["error"];
    assert_eq!(
        (&error["line"], &error["key"]),
        (&json!(7), &json!("network.bottleneck.rate"))
    );
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|words| words.contains("bananas"))
    );
    let mut moved = small(&["network.bottleneck.queue.limit=-3 packets"]);
    moved["do"] = json!("check");
    let told = asked(&moved);
    assert_eq!(told["error"]["key"], "network.bottleneck.queue.limit", "{told}");
    let told = asked(&json!({ "do": "check", "name": "a.toml", "toml": "\u{0}\u{1}not a file" }));
    assert_eq!(told["error"]["line"], 1, "{told}");
    let told = asked(&json!({ "do": "nothing" }));
    assert!(
        told["error"]["message"]
            .as_str()
            .is_some_and(|words| words.contains("not understood"))
    );
}

#[test]
fn absurd_values_are_refused_before_anything_runs() {
    fleetfoot_lab::memory::limit_to(2_000_000_000);
    let wanted = |set: &str| {
        asked(&json!({ "do": "estimate", "scenario": small(&[set]), "only": ["codel"], "seeds": 1 }))
    };
    let told = wanted("traffic.download.count=400000000");
    assert!(told["error"]["message"].is_string(), "{told}");
    let told = wanted("network.bottleneck.rate=0 bit/s");
    assert_eq!(told["error"]["key"], "network.bottleneck.rate", "{told}");
    let long = json!({ "do": "check", "name": "long.toml", "toml": " ".repeat(2 << 20) });
    assert!(
        asked(&long)["error"]["message"]
            .as_str()
            .is_some_and(|words| words.contains("longer"))
    );
}

/// More seeds add to what is there, and the page has what it shows.
#[test]
fn a_comparison_is_ranked_and_more_seeds_run_only_what_is_new() {
    let runs = AtomicUsize::new(0);
    let wanted = |seeds: u32, preview: bool| {
        let request = json!({ "do": "compare", "scenario": small(&["network.bottleneck.rate=5 Mbit/s"]), "only": ["fq-codel", "codel"], "seeds": seeds, "budget": 0, "preview": preview });
        let answer = call(&request.to_string(), &AtomicBool::new(false), &|progress| {
            if progress["done"].is_u64() {
                runs.fetch_add(1, Ordering::Relaxed);
            }
        });
        let told: Value = serde_json::from_str(&answer).expect("an answer is JSON");
        assert!(told["error"].is_null(), "{told}");
        told["answer"].clone()
    };
    let first = wanted(1, true);
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    let all = wanted(3, false);
    assert_eq!(
        all["command"],
        "fleetfoot compare small.toml --set 'network.bottleneck.rate=5 Mbit/s' --only fq-codel,codel --seeds 3 --budget 0"
    );
    let document: Value = serde_json::from_str(all["json"].as_str().expect("a text")).expect("JSON");
    assert_eq!(document["seeds"], json!([1, 2, 3]));
    assert_eq!(document["variants"][0]["name"], "as described");
    let rows = all["page"]["ranking"]["first"].as_array().expect("a list");
    assert_eq!(rows.len(), 2);
    let charts = first["page"]["charts"].as_array().expect("a list");
    let distribution = charts
        .iter()
        .find(|chart| chart["id"] == "distribution")
        .expect("it is there");
    assert!(
        distribution["pictures"][0]["wide"]
            .as_str()
            .is_some_and(|svg| svg.starts_with("<svg"))
    );
}

#[test]
fn a_run_is_shown_over_time_and_packet_by_packet() {
    let traced = answered(&json!({ "do": "trace", "scenario": small(&[]), "variant": "as described" }));
    assert_eq!(traced["group"], "pages");
    let waits = traced["waits"].as_array().expect("a list");
    assert_eq!((waits.len(), &waits[0]["label"]), (2, &json!("the line")));
    let arrows = traced["diagram"]["arrows"].as_array().expect("a list");
    assert!(arrows.len() > 20 && arrows.iter().any(|arrow| arrow["what"] == "new data"));
    for arrow in arrows {
        let sent = arrow["sent_s"].as_f64().expect("a number");
        assert!(arrow["arrived_s"].as_f64().is_none_or(|arrived| arrived >= sent));
    }
    let number = traced["number"].as_u64().expect("a number");
    let same = answered(
        &json!({ "do": "trace", "scenario": small(&[]), "variant": "fq-codel", "group": "pages", "number": number }),
    );
    assert_eq!(same["number"], number);
    let told = asked(&json!({ "do": "trace", "scenario": small(&[]), "variant": "fq-cobbel" }));
    assert!(told["error"]["message"].is_string(), "{told}");
}

#[test]
fn what_is_stopped_ends() {
    let request = json!({ "do": "compare", "scenario": small(&["network.bottleneck.rate=6 Mbit/s"]), "only": ["codel"], "seeds": 2, "budget": 0 });
    let told: Value =
        serde_json::from_str(&call(&request.to_string(), &AtomicBool::new(true), &|_| ())).expect("JSON");
    assert!(
        told["error"]["message"]
            .as_str()
            .is_some_and(|words| words.contains("stopped")),
        "{told}"
    );
}
