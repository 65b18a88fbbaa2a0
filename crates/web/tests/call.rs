//! What a page asks, and what it is told.

use fleetfoot_web::{EXAMPLES, MOST_CAPTURE, call, call_with_record, parted};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SMALL: &str = include_str!("small.toml");

fn asked(request: &Value) -> Value {
    let answer = call(&request.to_string(), &[], &AtomicBool::new(false), &|_| ());
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
    for name in ["/etc/hosts", "../small.toml", "a/b", ""] {
        let mut beside = small(&[]);
        beside["do"] = json!("check");
        beside["files"] = json!([{ "name": name, "text": "" }]);
        let message = asked(&beside)["error"]["message"].to_string();
        assert!(message.contains("is no name of a file"), "{name}: {message}");
    }
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
        let answer = call(&request.to_string(), &[], &AtomicBool::new(false), &|progress| {
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
    // What is left out of a preview is not shown.
    let preview = wanted(3, true);
    assert!(preview["json"].is_null());
    for part in ["charts", "ranking", "described", "pareto", "seeds"] {
        assert_eq!(preview["page"][part], all["page"][part], "{part}");
    }
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

    // Where the connection is known beforehand, one run shows all; else the second one ends with the connection.
    let again = answered(
        &json!({ "do": "trace", "scenario": small(&[]), "variant": "as described", "group": "pages", "number": number }),
    );
    assert_eq!(again, traced);
    // Where places are known, no run of the baseline says where queues stand.
    let wanted =
        json!({ "do": "missing", "scenario": small(&[]), "only": ["fq-codel"], "seeds": 1, "preview": true });
    let placed = answered(
        &json!({ "do": "trace", "scenario": small(&[]), "variant": "fq-codel", "group": "pages", "number": number, "chosen": answered(&wanted)["chosen"] }),
    );
    assert_eq!(placed, same);
}

/// A name of the ranked table can be looked into, a mechanism at one place alone too.
#[test]
fn each_row_of_the_ranking_can_be_looked_into() {
    // With an upload queues stand on both ways.
    let toml = SMALL.replace("seeds = 3", "seeds = 10");
    let toml = format!("{toml}\n[[traffic]]\nname = \"upload\"\nkind = \"bulk\"\ndirection = \"up\"\n");
    let scenario = json!({ "name": "both.toml", "toml": toml });
    let compared = answered(
        &json!({ "do": "compare", "scenario": scenario, "only": ["fq-codel", "pie"], "seeds": 10, "budget": 0 }),
    );
    let ranking = &compared["page"]["ranking"];
    let rows = ["first", "rest"].map(|part| ranking[part].as_array().expect("a list"));
    let names: Vec<&Value> = rows.into_iter().flatten().map(|row| &row["name"]).collect();
    assert!(
        names.iter().any(|name| name.to_string().contains(" only")),
        "{names:?}"
    );
    for name in names {
        let traced = answered(
            &json!({ "do": "trace", "scenario": scenario, "variant": name, "chosen": compared["chosen"] }),
        );
        assert!(traced["diagram"].is_object(), "{name}");
    }
}

#[test]
fn what_is_stopped_ends() {
    let request = json!({ "do": "compare", "scenario": small(&["network.bottleneck.rate=6 Mbit/s"]), "only": ["codel"], "seeds": 2, "budget": 0 });
    let told: Value = serde_json::from_str(&call(&request.to_string(), &[], &AtomicBool::new(true), &|_| ()))
        .expect("JSON");
    assert!(
        told["error"]["message"]
            .as_str()
            .is_some_and(|words| words.contains("stopped")),
        "{told}"
    );
}

/// What `fleetfoot import` writes for the same file, byte for byte, and it can be compared as it is.
#[test]
fn a_capture_becomes_the_scenario_that_the_program_makes() {
    use fleetfoot_lab::import::replay::{Replay, When};
    const NAME: &str = "pages-at-client.pcap";
    let capture = include_bytes!("../../lab/tests/captures/pages-at-client.pcap");
    let request = json!({ "do": "import", "name": NAME }).to_string();
    let message = [request.as_bytes(), b"\n", capture].concat();
    let (request, attached) = parted(&message);
    let stop = AtomicBool::new(false);
    let answer = call(&request, attached, &stop, &|_| ());
    let told: Value = serde_json::from_str(&answer).expect("an answer is JSON");
    assert!(told["error"].is_null(), "{told}");
    let made = &told["answer"];

    let folder = std::env::temp_dir().join(format!("fleetfoot-web-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
    let (input, output) = (folder.join(NAME), folder.join("pages-at-client.toml"));
    std::fs::write(&input, capture).expect("it can be written");
    let imported = fleetfoot_lab::import::import(&input, &output, &Default::default(), |_| true);
    let imported = imported.expect("it is a capture");
    let replay = Replay {
        when: When::Auto,
        congestion_control: None,
        stop: &stop,
        progress: &|_| (),
    };
    let fit = replay
        .fit(&imported)
        .expect("it can be replayed")
        .expect("it was");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("it was written");
    assert_eq!(made["toml"], text("pages-at-client.toml"));
    assert_eq!(
        (made["summary"].as_str(), made["fit"].as_str()),
        (Some(&*imported.summary.to_text()), Some(&*fit.to_text()))
    );
    let files = made["files"].as_array().expect("a list");
    assert_eq!(files.len(), imported.vectors.len());
    for file in files {
        let name = file["name"].as_str().expect("a text");
        assert_eq!(file["text"], text(name), "{name}");
    }
    std::fs::remove_dir_all(&folder).expect("it was made here");

    let scenario = json!({ "name": made["name"], "toml": made["toml"], "files": files, "set": [] });
    let compared = answered(
        &json!({ "do": "compare", "scenario": scenario, "only": ["fq-codel"], "seeds": 1, "budget": 0 }),
    );
    assert_eq!(
        compared["command"],
        "fleetfoot compare pages-at-client.toml --only fq-codel --seeds 1 --budget 0"
    );
    let alone = asked(&json!({ "do": "check", "name": "a.toml", "toml": made["toml"] }));
    assert!(
        alone["error"]["message"]
            .as_str()
            .is_some_and(|words| words.contains("no such file")),
        "{alone}"
    );
}

#[test]
fn what_is_no_capture_is_told_in_the_words_of_the_program() {
    let told = |bytes: &[u8]| {
        let request = json!({ "do": "import", "name": "some.pcap" }).to_string();
        let answer = call(&request, bytes, &AtomicBool::new(false), &|_| ());
        let told: Value = serde_json::from_str(&answer).expect("an answer is JSON");
        told["error"]["message"].as_str().map(str::to_owned)
    };
    for (bytes, message) in [
        (&b""[..], "some.pcap: it is empty"),
        (
            b"no capture at all",
            "some.pcap: it is neither pcap nor pcapng, nor a file of connection vectors",
        ),
        (
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0],
            "some.pcap: it is pcap, but its header is damaged or cut off",
        ),
    ] {
        assert_eq!(told(bytes).as_deref(), Some(message));
    }
    let long = told(&vec![0; MOST_CAPTURE + 1]).expect("a message");
    assert!(long.contains("longer than 64000000"), "{long}");
}

/// Engines in other workers make the runs that one wants, which then makes none itself.
#[test]
fn runs_can_be_made_elsewhere_and_handed_over() {
    let quiet = AtomicBool::new(false);
    let not_here = |answer: &str| answer.contains("follows from more than the scenario");
    let scenario = small(&["network.bottleneck.rate=3.5 Mbit/s"]);
    let wanted = |more: Value| {
        let mut request =
            json!({ "scenario": scenario, "only": ["fq-codel", "pie"], "seeds": 2, "budget": 0 });
        for (key, value) in more.as_object().expect("an object") {
            request[key] = value.clone();
        }
        request
    };
    let task = |run: &Value, key: &Value, chosen: &Value| json!({ "do": "make", "scenario": scenario, "chosen": chosen, "variant": run["variant"], "seed": run["seed"], "key": key });
    let missing = || answered(&wanted(json!({ "do": "missing" })));
    let runs = |told: &Value, of: &str| told[of].as_array().expect("a list").clone();
    let made = |run: &Value, chosen: &Value| {
        let elsewhere = task(run, &json!("another 1"), chosen);
        assert!(not_here(&asked(&elsewhere).to_string()));
        let request = task(run, &run["key"], chosen).to_string();
        let (answer, record) = call_with_record(&request, &[], &quiet, &|_| ());
        assert!(
            answer.starts_with("{\"answer\"") && record.len() > 100,
            "{answer}"
        );
        let keep = json!({ "do": "keep", "key": run["key"] }).to_string();
        let cut = call(&keep, &record[..record.len() / 2], &quiet, &|_| ());
        assert!(cut.contains("no record of a run"), "{cut}");
        let kept = call(&keep, &record, &quiet, &|_| ());
        assert!(kept.starts_with("{\"answer\""), "{kept}");
    };
    // The baseline with two seeds.
    let first = missing();
    assert_eq!(runs(&first, "runs").len(), 2, "{first}");
    made(&first["runs"][0], &first["chosen"]);
    // One of them says where queues are likely to stand, and so what will be wanted.
    let second = missing();
    assert_eq!(
        (runs(&second, "runs").len(), runs(&second, "likely").len()),
        (1, 4),
        "{second}"
    );
    made(&second["runs"][0], &second["chosen"]);
    // Both variants with two seeds.
    let third = missing();
    assert_eq!(
        (&third["runs"], &third["likely"]),
        (&second["likely"], &json!([]))
    );
    for run in runs(&third, "runs") {
        made(&run, &third["chosen"]);
    }
    // The same with jitter, which only the engine that ranks can make.
    let last = missing();
    for run in runs(&last, "runs") {
        assert!(not_here(
            &asked(&task(&run, &run["key"], &last["chosen"])).to_string()
        ));
    }
    let compared = answered(&wanted(json!({ "do": "compare" })));
    let document: Value = serde_json::from_str(compared["json"].as_str().expect("a text")).expect("JSON");
    assert_eq!(document["seeds"], json!([1, 2]));
}
