//! Queue limits in time, amounts without a unit, values that cannot be meant.

use super::{refusal, resolved};
use crate::scenario::{Resolved, Setting};
use fleetfoot_core::queue::Limit;
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::units::Bytes;

const LINE: &str = r#"
[network]
kind = "dumbbell"

[network.bottleneck]
rate = "50 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "100 ms" }
reverse = { rate = "10 Mbit/s" }

[[traffic]]
kind = "bulk"
"#;

/// Limits of the bottleneck, forward and back.
fn limits(resolved: &Resolved) -> Vec<Limit> {
    let links = resolved.spec.links.iter();
    let bottleneck = links.filter(|link| link.name == "bottleneck");
    bottleneck.map(|link| link.queue_values.limit("limit")).collect()
}

fn bytes(forward: u64, back: u64) -> Vec<Limit> {
    vec![Limit::Bytes(Bytes(forward)), Limit::Bytes(Bytes(back))]
}

#[test]
fn a_limit_in_time_is_what_its_own_way_sends_in_it() {
    let none = Setting::none();
    assert_eq!(limits(&resolved(LINE, &none)), bytes(625_000, 125_000));
    // 1500 of 1518 bytes on the wire count.
    let framed = LINE.replace("delay", "framing = \"18 B\"\ndelay");
    let framed = limits(&resolved(&framed, &none));
    assert_eq!(framed, bytes(625_000 * 1500 / 1518, 125_000 * 1500 / 1518));
    let modem = "network.bottleneck.reverse.queue";
    let both = none
        .clone()
        .with(format!("{modem}.kind"), "drop-tail")
        .with(format!("{modem}.limit"), "300 ms");
    assert_eq!(limits(&resolved(LINE, &both)), bytes(625_000, 375_000));
    // Another discipline keeps the text, and so the time.
    let other = none.with("network.bottleneck.queue.kind", "fq-codel");
    assert_eq!(limits(&resolved(LINE, &other)), bytes(625_000, 125_000));
}

#[test]
fn amounts_may_stand_without_their_unit() {
    for (text, bare) in [
        ("framing = \"14 B\"", "framing = 14"),
        ("mtu = \"1400 B\"", "mtu = 1400"),
    ] {
        let spec = |key: &str| {
            let text = LINE.replace("delay", &format!("{key}\ndelay"));
            format!("{:?}", resolved(&text, &Setting::none()).spec)
        };
        assert_eq!(spec(text), spec(bare));
        assert_ne!(spec(text), format!("{:?}", resolved(LINE, &Setting::none()).spec));
    }
}

#[test]
fn what_cannot_be_meant_is_refused_where_it_stands() {
    let queue = |queue: &str| LINE.replace("kind = \"drop-tail\", limit = \"100 ms\"", queue);
    let cases = [
        LINE.replace("100 ms", "1 us"),
        LINE.replace("100 ms", "0 ms"),
        LINE.replace("50 Mbit/s", "1 bit/s"),
        LINE.replace("50 Mbit/s", "unlimited"),
        LINE.replace("delay", "loss = 1\ndelay"),
        LINE.replace("delay", "loss = 100\ndelay"),
        queue("kind = \"red\", min_threshold = 50, max_threshold = 5"),
        queue("kind = \"cake\", bandwidth = \"60 Mbit/s\""),
        LINE.replace("delay", "framing = -1\ndelay"),
        LINE.replace("delay", "mtu = true\ndelay"),
    ];
    let mut all = String::new();
    for text in &cases {
        all.push_str(&format!("{}\n\n", refusal(text)));
    }
    insta::assert_snapshot!(all);
    let folder = crate::testing::folder("trace-limit");
    std::fs::create_dir_all(&folder).expect("it can be made");
    std::fs::write(folder.join("line.trace"), "1\n2\n3\n4\n").expect("it can be written");
    let text = LINE.replace("\"50 Mbit/s\"", "{ trace = \"line.trace\" }");
    let name = folder.join("line.toml").display().to_string();
    let error = crate::scenario::Scenario::parse(&name, &text)
        .expect_err("no single number")
        .to_string();
    assert!(
        error.contains("at the mean of the trace, 12.032 Mbit/s, it would be \"150000 B\""),
        "{error}"
    );
    std::fs::remove_dir_all(&folder).expect("it was made here");
}

#[test]
fn the_least_of_a_normal_distribution_can_be_zero() {
    let jitter = "jitter = { dist = \"normal\", mean = \"2 ms\", deviation = \"1 ms\", min = \"0 s\" }";
    let text = LINE.replace("delay =", &format!("{jitter}\ndelay ="));
    let written = resolved(&text, &Setting::none());
    let jitter = written
        .spec
        .links
        .iter()
        .find_map(|link| link.impairments.jitter.as_ref());
    assert_eq!(
        jitter,
        Some(&Distribution::Normal {
            mean: 0.002,
            deviation: 0.001,
            min: 0.0
        })
    );
}

/// The line with this bottleneck queue and MTU, and why it is refused.
fn refused(queue: &str, mtu: u32) -> Option<String> {
    let text = LINE
        .replace("kind = \"drop-tail\", limit = \"100 ms\"", queue)
        .replace("delay", &format!("mtu = {mtu}\ndelay"));
    let refused = crate::scenario::Scenario::parse("line.toml", &text).err();
    refused.map(|error| {
        assert_eq!(error.line, 9, "{error}");
        error.message.to_string()
    })
}

#[test]
fn super_packets_of_a_limit_in_bytes_are_packets_of_the_mtu() {
    let plain = |limit: &str, mtu| refused(&format!("kind = \"superpacket\", limit = \"{limit}\""), mtu);
    // 80 kB are 53 packets of 1500 bytes and 8 of 9000; 14 kB are 9 of 1500 and 24 of 576.
    assert_eq!(plain("80 kB", 1500), None);
    let message = plain("80 kB", 9000).expect("ten packets have no room");
    assert!(
        message.contains("`max_length` is 10, but `limit` holds 8 packets"),
        "{message}"
    );
    assert!(
        message.contains("a limit of 80000 B is 8 packets of this link, mtu 9000"),
        "{message}"
    );
    let message = plain("14 kB", 1500).expect("ten packets have no room");
    assert!(message.contains("`limit` holds 9 packets"), "{message}");
    assert_eq!(plain("14 kB", 576), None);
}

#[test]
fn hardened_super_packets_ask_the_same_of_packets_bytes_and_time() {
    for kind in ["sp-h", "sp-fq"] {
        let queue = |keys: &str| refused(&format!("kind = \"{kind}\", {keys}"), 1500);
        let four_times = "`limit` must be at least four times `max_length`: 40 packets";
        let reach = "with a reserve of 10 packets a source reaches super-packets of 6";
        // 24 kB are 16 packets. 40 ms are 166 packets at 50 Mbit/s, and 33 at the 10 Mbit/s of the way back.
        for (keys, words) in [
            ("limit = \"16 packets\"", four_times),
            ("limit = \"24 kB\"", four_times),
            ("limit = \"40 ms\"", four_times),
            ("limit = \"100 packets\", reserve = 10", reach),
            ("limit = \"150 kB\", reserve = 10", reach),
        ] {
            let message = queue(keys).unwrap_or_else(|| panic!("{kind} took {keys}"));
            assert!(message.contains(words), "{message}");
        }
        for keys in ["limit = \"40 packets\"", "limit = \"60 kB\"", "limit = \"48 ms\""] {
            assert_eq!(queue(keys), None, "{kind}: {keys}");
        }
    }
    let message = refused("kind = \"sp-fq\", limit = \"75 kB\", flow_limit = 60", 1500);
    let message = message.expect("a flow has no more than all");
    assert!(
        message.contains("`flow_limit` must be at most `limit`"),
        "{message}"
    );
}

#[test]
fn a_jitter_that_does_not_vary_says_what_to_write() {
    let with = |jitter: &str| LINE.replace("delay =", &format!("jitter = {jitter}\ndelay ="));
    let error = refusal(&with("\"2 ms\"")).to_string();
    assert!(
        error.contains("{ dist = \"uniform\", min = \"0 s\", max = \"2 ms\" }"),
        "{error}"
    );
    for allowed in ["\"0 s\"", "{ dist = \"uniform\", min = \"0 s\", max = \"2 ms\" }"] {
        resolved(&with(allowed), &Setting::none());
    }
}

#[test]
fn a_key_of_a_table_of_a_group_is_shown_its_place() {
    let text = format!("{LINE}name = \"state\"\nnagle = false\n");
    let error = refusal(&text).to_string();
    assert!(
        error.contains("`nagle` belongs to the table `tcp` here: `traffic.state.tcp.nagle`"),
        "{error}"
    );
    // Each table that takes the key is named.
    let text = LINE.replace("\"dumbbell\"", "\"dumbbell\"\nreverse = { rate = \"1 Mbit/s\" }");
    let error = refusal(&text).to_string();
    let help = "`reverse` belongs to a table here: `network.access.reverse`, `network.bottleneck.reverse` or `network.egress.reverse`";
    assert!(error.contains(help), "{error}");
}
