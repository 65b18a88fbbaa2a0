//! Examples, generated documents, messages, merging, paths.

use super::{Error, ErrorKind, Scenario, Setting, json_schema, reference};
use crate::testing::BUSY_LINE as HOME_LINE;
use fleetfoot_core::queue::Limit;
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::spec::Traffic;
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

mod calls;
mod complete;
mod draws;
mod idle;
mod limits;
mod listed;
mod places;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn examples() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root().join("examples"))
        .expect("the tree has examples")
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .filter(|path| fleetfoot_sim::spec::QUIC_BUILT || !path.ends_with("quic-home.toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_example_resolves_and_says_what_it_asks() {
    let files = examples();
    assert!(files.len() >= 5);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("an example can be read");
        assert!(
            text.starts_with("# ") && text.contains("The question:"),
            "{}",
            file.display()
        );
        let scenario = Scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
        let resolved = scenario
            .resolve(&Setting::none())
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(resolved.run.seeds >= 10 && resolved.uses_tcp());
        // Written and read again it is the same scenario.
        let again =
            Scenario::parse("again.toml", &scenario.to_toml()).unwrap_or_else(|error| panic!("{error}"));
        let again = again
            .resolve(&Setting::none())
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(resolved.describes_the_same(&again), "{}", file.display());
    }
}

#[test]
fn the_busy_line_is_what_its_file_says() {
    let scenario = Scenario::parse("home-line.toml", HOME_LINE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.title(), "A busy home line");
    let resolved = scenario
        .resolve(&Setting::none())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(resolved.spec.nodes.len(), 26);
    assert_eq!(resolved.spec.links.len(), 50);
    assert_eq!(resolved.run.bottleneck, ["bottleneck"]);
    assert_eq!(resolved.bottleneck_queues(), ["drop-tail"]);
    assert_eq!(resolved.base_rtts().len(), 12);
    assert!(
        resolved
            .base_rtts()
            .iter()
            .all(|pair| pair.rtt == Duration::from_millis(40))
    );
    let Traffic::Transfer {
        size, interarrival, ..
    } = &resolved.spec.groups[0].traffic
    else {
        panic!("pages are transfers")
    };
    // Mean 40 kB with shape 1.2: scale = mean (shape - 1).
    let Distribution::Lomax { scale, shape } = size else {
        panic!("sizes are Lomax")
    };
    assert!((scale - 8000.0).abs() < 1e-6 && (shape - 1.2).abs() < 1e-12);
    assert_eq!(*interarrival, Distribution::Exponential { mean: 0.25 });
    assert_eq!(
        resolved
            .groups
            .iter()
            .map(|group| group.latency_sensitive)
            .collect::<Vec<_>>(),
        [true, false, false]
    );
}

#[test]
fn the_home_line_is_a_cable_line_whose_modem_holds_300_ms() {
    let scenario = Scenario::home_line().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.title(), "A busy home line");
    let resolved = scenario
        .resolve(&Setting::none())
        .unwrap_or_else(|error| panic!("{error}"));
    let bottleneck: Vec<_> = resolved.bottleneck_links().collect();
    let rates: Vec<String> = bottleneck.iter().map(|link| format!("{:?}", link.rate)).collect();
    assert!(
        rates[0].contains("50000000") && rates[1].contains("10000000"),
        "{rates:?}"
    );
    let limits: Vec<Limit> = bottleneck
        .iter()
        .map(|link| link.queue_values.limit("limit"))
        .collect();
    // 100 ms and 300 ms of packets of 1500 bytes that take 1518 on the line.
    let sent = |bytes: u64| Limit::Bytes(Bytes(bytes * 1500 / 1518));
    assert_eq!(limits, [sent(625_000), sent(375_000)]);
    let waits: Vec<bool> = resolved
        .groups
        .iter()
        .map(|group| group.latency_sensitive)
        .collect();
    assert_eq!(waits, [true, true, true, true, false, false]);
    // Nothing runs in step: both sides have jitter.
    for name in ["access-0", "egress-0"] {
        let mut link = resolved.spec.links.iter().filter(|link| link.name == name);
        assert!(link.any(|link| link.impairments.jitter.is_some()), "{name}");
    }
}

/// Compares with a checked-in file; `FLEETFOOT_BLESS=1` writes it.
fn is_current(file: &str, text: &str) {
    let path = root().join(file);
    if std::env::var_os("FLEETFOOT_BLESS").is_some() {
        std::fs::write(&path, text).expect("the tree can be written");
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == text,
        "{file} is not current: run FLEETFOOT_BLESS=1 cargo test -p fleetfoot-lab scenario and commit it"
    );
}

#[test]
fn the_schema_and_the_reference_are_current() {
    let schema = serde_json::to_string_pretty(&json_schema()).expect("a schema is JSON");
    is_current("docs/scenario.schema.json", &format!("{schema}\n"));
    assert!(
        schema.len() < 400_000,
        "subschemas are shared, so editors load it at once: {}",
        schema.len()
    );
    is_current("docs/scenario-reference.md", &reference());
}

const STILL: &str = "[network]\nkind = \"dumbbell\"\naccess = { rate = \"unlimited\", delay = \"0 s\" }\n\
    bottleneck = { rate = \"unlimited\", delay = \"0 s\" }\n\n\
    [[traffic]]\nkind = \"closed-loop\"\nsize = \"1 B\"\nthink = \"PAUSE\"\n";

/// What needs time somewhere is accepted.
#[test]
fn a_closed_loop_needs_time_in_one_place_only() {
    let texts = [
        STILL.replace("PAUSE", "1 us"),
        STILL.replace("\"PAUSE\"", "{ dist = \"exponential\", mean = \"1 us\" }"),
        STILL.replace("PAUSE", "0 s").replacen("\"0 s\"", "\"1 ns\"", 1),
        STILL.replace("PAUSE", "0 s").replacen("unlimited", "1 Gbit/s", 1),
    ];
    for text in texts {
        resolved(&text, &Setting::none());
    }
}

/// RFC 9293 3.7.1: the segment size follows from the packets a group may send.
#[test]
fn the_data_unit_is_the_packet_size_of_a_group() {
    let text = home("kind = \"bulk\"", "kind = \"bulk\"\ndata_unit = \"576 B\"");
    let groups = resolved(&text, &Setting::none()).spec.groups;
    let sizes: Vec<(u32, u32)> = groups
        .iter()
        .map(|group| (group.sender.mtu, group.receiver.mtu))
        .collect();
    assert_eq!(sizes, [(1500, 1500), (576, 576), (1500, 1500)]);
}

fn refusal(text: &str) -> Error {
    match Scenario::parse("line.toml", text) {
        Ok(_) => panic!("this was accepted:\n{text}"),
        Err(error) => error,
    }
}

/// The home line with one text replaced.
fn home(from: &str, to: &str) -> String {
    assert!(HOME_LINE.contains(from), "{from}");
    HOME_LINE.replacen(from, to, 1)
}

/// An access tree in which everybody sends to everybody.
fn tree(keys: &str) -> String {
    format!(
        "[network]\nkind = \"access-tree\"\n{keys}\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\" }}\n\
         access = {{ delay = \"3 ms\" }}\n[[link]]\nname = \"uplink-0\"\nmtu = 1400\n\
         [[traffic]]\nkind = \"transfer\"\nfrom = \"hosts\"\nto = \"hosts\"\npairing = \"all\"\nspread = \"random\"\n\
         size = \"10 kB\"\narrivals = {{ dist = \"poisson\", rate = \"10 per second\" }}\n"
    )
}

#[test]
fn an_access_tree_has_the_hosts_and_paths_of_its_definition() {
    let plain = resolved(&tree(""), &Setting::none());
    let spec = &plain.spec;
    assert_eq!(spec.nodes.iter().filter(|node| node.host).count(), 48);
    // Ring of four and a chord, eight uplinks, sixteen lines, 48 hosts; both ways.
    assert_eq!(spec.links.len(), 2 * (5 + 8 + 16 + 48));
    assert_eq!(spec.groups[0].pairs.len(), 48 * 47);
    assert_eq!(spec.groups[0].sender.mtu, 1400, "the uplink's own entry");
    let rtt = |from: &str, to: &str| {
        let pair = plain
            .base_rtts()
            .iter()
            .find(|pair| pair.from == from && pair.to == to);
        pair.expect("every pair has a path").rtt.as_millis()
    };
    // One DSLAM; one edge router; one core router; neighbours; across the chord; two links of the ring.
    assert_eq!(rtt("host-0-0-0", "host-0-0-1"), 2 * 6);
    assert_eq!(rtt("host-0-0-0", "host-0-1-0"), 2 * 26);
    assert_eq!(rtt("host-0-0-0", "host-1-0-0"), 2 * 46);
    assert_eq!(rtt("host-0-0-0", "host-2-0-0"), 2 * 56);
    assert_eq!(rtt("host-0-0-0", "host-5-1-2"), 2 * 56);
    assert_eq!(rtt("host-2-0-0", "host-7-1-2"), 2 * 66);
    let queue = Setting::none().with("network.bottleneck.queue.kind", "favourtail");
    let all = resolved(&tree(""), &queue);
    assert!(all.spec.links.iter().all(|link| link.queue == "favourtail"));
    let site = resolved(
        &tree(""),
        &Setting::none().with("traffic.transfer.from", "site-3"),
    );
    assert_eq!(site.spec.groups[0].pairs.len(), 6 * 47);
}

#[test]
fn messages_name_file_line_key_and_choices() {
    let pages = "[[traffic]]\nname = \"pages\"\n";
    let cases: &[(&str, String)] = &[
        ("not TOML", home("pairs = 12", "pairs = = 12")),
        ("chords of a triangle", tree("cores = 3\nchords = 1")),
        ("a tree too large", tree("edges = 1000\ndslams = 1000")),
        ("a sender that is the only receiver", tree("cores = 1\nedges = 1\ndslams = 1\nhosts = 1")),
        ("unknown key", home("pairs = 12", "pears = 12")),
        ("unknown key of the file", home("[run]", "[runs]")),
        ("key of a table above all tables", format!("seeds = 3\n{HOME_LINE}")),
        ("unknown key in a link", home("delay = \"16 ms\"", "dealy = \"16 ms\"")),
        ("key of another kind of traffic", home("count = 2", "rounds = 2")),
        ("key of several other kinds of traffic", home("count = 2", "arrivals = { dist = \"poisson\", rate = \"1 per second\" }")),
        ("what others call a key", home("rate = \"10 Mbit/s\", delay", "bandwidth = \"10 Mbit/s\", delay")),
        ("what follows from other keys", home("[tcp]", "[tcp]\nmss = \"1360 B\"")),
        ("unit left out", home("\"20 s\"", "20")),
        ("negative time", home("delay = \"16 ms\"", "delay = \"-43 ms\"")),
        ("time beyond all counting", home("delay = \"16 ms\"", "delay = \"99999999999999 s\"")),
        ("loss in words", home("delay = \"16 ms\"", "delay = \"16 ms\", loss = \"half\"")),
        ("loss above one", home("delay = \"16 ms\"", "delay = \"16 ms\", loss = 2")),
        ("medium by its everyday name", home("delay = \"16 ms\"", "delay = \"16 ms\", medium = \"cable\"")),
        ("traffic by its everyday name", home("kind = \"bulk\"", "kind = \"call\"")),
        ("one bracket for an entry of a list", home("[[traffic]]", "[traffic]")),
        ("one bracket for the only entry of a list", String::from("[network]\nkind = \"dumbbell\"\nbottleneck = { rate = \"1 Mbit/s\", delay = \"1 ms\" }\n[traffic]\nkind = \"bulk\"\n")),
        ("wrong unit", home("10 Mbit/s\", delay", "10 ms\", delay")),
        ("unit in another case", home("10 Mbit/s\", delay", "10 MBit/s\", delay")),
        ("wrong type", home("pairs = 12", "pairs = \"twelve\"")),
        ("zero rate", home("10 Mbit/s\", delay", "0 Mbit/s\", delay")),
        ("empty queue", home("100 packets", "0 packets")),
        ("queue smaller than a packet", home("100 packets", "1000 B")),
        ("queue of a flow smaller than a packet", home("\"drop-tail\", limit = \"100 packets\"", "\"drr\", flow_limit = \"1000 B\"")),
        ("queue that holds nothing", home("limit = \"100 packets\"", "limit = \"1 packets\", ns2_compat = true")),
        ("window that cannot be announced", home("[tcp]", "[tcp]\nwindow_scale = 14\nreceive_buffer = \"9000 B\"")),
        ("relay without room", home("count = 2", "count = 2\ntcp = { window_scale = 14 }\nrelay = { node = \"router-0\", buffer = \"9000 B\" }")),
        ("run shorter than its warm-up", home("duration = \"20 s\"", "duration = \"2 s\"")),
        ("unknown network", home("\"dumbbell\"", "\"dumbell\"")),
        ("network of a later version", home("\"dumbbell\"", "\"fat-tree\"")),
        ("unknown queue", home("kind = \"drop-tail\"", "kind = \"droptail\"")),
        ("policer", home("kind = \"drop-tail\"", "kind = \"policer\"")),
        ("unknown parameter", home("limit = \"100 packets\"", "limits = \"100 packets\"")),
        ("unknown traffic", home("kind = \"bulk\"", "kind = \"bulky\"")),
        ("unknown distribution", home("\"lomax\"", "\"lognorm\"")),
        ("two means", home("mean = \"40 kB\"", "mean = \"40 kB\", scale = \"8 kB\"")),
        ("no mean", home("shape = 1.2", "shape = 0.9")),
        ("missing key", home("size = { dist", "# size = { dist")),
        ("missing bottleneck rate", home("rate = \"10 Mbit/s\", delay = \"16 ms\"", "delay = \"16 ms\"")),
        ("unknown profile", home("\"linux\"", "\"linux-6\"")),
        ("unknown congestion control", home("profile = \"linux\"", "congestion_control = \"cubik\"")),
        ("unknown host", home("kind = \"bulk\"", "kind = \"bulk\"\nfrom = \"lefft\"")),
        ("unknown pair", home("kind = \"bulk\"", "kind = \"bulk\"\nto = [0, 12]")),
        ("two groups of one name", home("name = \"backup\"", "name = \"pages\"")),
        ("probability", home("delay = \"16 ms\"", "delay = \"16 ms\", loss = \"1.5 %%\"")),
        ("unknown bottleneck", home("seeds = 10", "bottleneck = \"bottelneck\"")),
        ("variant with an unknown path", format!("{HOME_LINE}\n[[variant]]\nname = \"x\"\nset = {{ \"network.bottlenek.queue.kind\" = \"drop-tail\" }}\n")),
        ("variant of an unknown group", format!("{HOME_LINE}\n[[variant]]\nname = \"x\"\nset = {{ \"traffic.page.size\" = \"1 kB\" }}\n")),
        ("variant that changes nothing", format!("{HOME_LINE}\n[[variant]]\nname = \"x\"\nset = {{ \"tcp.profile\" = \"linux\" }}\n")),
        ("variant with an impossible value", format!("{HOME_LINE}\n[[variant]]\nname = \"x\"\nset = {{ run.duration = \"1 s\" }}\n")),
        ("file that is not there", home(pages, &format!("[[traffic]]\nkind = \"flows\"\nfile = \"flows.csv\"\n{pages}"))),
        ("extends a file that is not there", format!("extends = \"base.toml\"\n{HOME_LINE}")),
        (
            "unreachable destination",
            "[network]\nkind = \"graph\"\nhosts = [\"a\", \"b\", \"c\"]\nrouters = [\"r\"]\n\n[[link]]\nname = \"l0\"\nfrom = \"a\"\nto = \"r\"\n\n[[link]]\nname = \"l1\"\nfrom = \"r\"\nto = \"b\"\n\n[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"c\"\n".to_owned(),
        ),
        ("closed loop without time", STILL.replace("PAUSE", "0 s")),
        ("bulk without time", STILL.replace("kind = \"closed-loop\"\nsize = \"1 B\"\nthink = \"PAUSE\"", "kind = \"bulk\"")),
        ("packets larger than the path's", home("kind = \"bulk\"", "kind = \"bulk\"\ndata_unit = \"9000 B\"")),
        ("known spreading without a rate", home("[tcp]", "[tcp]\ninitial_spreading = \"known\"")),
        ("estimated spreading without pairs and memory", home("[tcp]", "[tcp]\ninitial_spreading = \"estimated\"\nspreading_pair = false\nspreading_memory = \"0 s\"")),
        ("estimated spreading where nobody measures", home("[tcp]", "[tcp]\ninitial_spreading = \"estimated\"\nspreading_pair = false")),
        ("Prague with ECT(0)", home("[tcp]", "[tcp]\ncongestion_control = \"prague\"\necn = true\necn_codepoint = \"ect0\"")),
        ("Prague with one echo per round trip", home("[tcp]", "[tcp]\ncongestion_control = \"prague\"\necn = true\necn_echo = \"rfc3168\"")),
        ("data unit of a ping", home("kind = \"ping\"", "kind = \"ping\"\ndata_unit = \"200 B\"")),
        ("nothing", String::new()),
    ];
    let mut all = String::new();
    for (what, text) in cases {
        let error = refusal(text);
        all.push_str(&format!(
            "== {what}\n{error}\n[{}:{}:{} key `{}`]\n\n",
            error.file, error.line, error.column, error.key
        ));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn settings_from_outside_a_file_are_shown_as_written() {
    let scenario = Scenario::parse("home-line.toml", HOME_LINE).unwrap_or_else(|error| panic!("{error}"));
    let mut all = String::new();
    for argument in [
        "network.bottleneck.rate=10 ms",
        "network.bottleneck.rat=\"1 Mbit/s\"",
        "traffic.pages.size.mean=0",
        "traffic.pages.arrivals=4 per second",
        "run.warmup=\"1 h\"",
        "network..rate=1",
        "run.seeds=10",
        "link.bottelneck.delay=\"1 ms\"",
    ] {
        let set = Setting::from_origin("--set")
            .with_argument(argument)
            .unwrap_or_else(|error| panic!("{error}"));
        match scenario.resolve(&set) {
            Ok(_) => panic!("{argument} was accepted"),
            Err(error) => all.push_str(&format!(
                "{error}\n[{:?} {}:{}:{}]\n\n",
                error.kind, error.file, error.line, error.column
            )),
        }
    }
    let error = Setting::from_origin("--set")
        .with_argument("run.duration")
        .expect_err("there is no value");
    all.push_str(&format!("{error}\n"));
    insta::assert_snapshot!(all);
}

fn resolved(text: &str, set: &Setting) -> super::Resolved {
    let scenario = Scenario::parse("test.toml", text).unwrap_or_else(|error| panic!("{error}"));
    scenario.resolve(set).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_setting_that_is_already_so_is_distinguished() {
    let scenario = Scenario::parse("home-line.toml", HOME_LINE).unwrap_or_else(|error| panic!("{error}"));
    let kind = |path: &str, value: &str| {
        scenario
            .resolve(&Setting::from_origin("mechanism").with(path, value))
            .err()
            .map(|error| error.kind)
    };
    // Already so by the file, by a default, and by the profile.
    assert_eq!(
        kind("network.bottleneck.queue.kind", "drop-tail"),
        Some(ErrorKind::NoChange)
    );
    assert_eq!(
        kind("network.access.queue.kind", "drop-tail"),
        Some(ErrorKind::NoChange)
    );
    assert_eq!(kind("tcp.congestion_control", "cubic"), Some(ErrorKind::NoChange));
    assert_eq!(kind("tcp.congestion_control", "reno"), None);
    assert_eq!(kind("tcp.congestion_control", "rno"), Some(ErrorKind::Invalid));
}

#[test]
fn values_that_contradict_each_other_are_refused_where_they_stand() {
    let text = home(
        "kind = \"drop-tail\", limit",
        "kind = \"superpacket\", max_length = 63, limit",
    );
    let scenario = Scenario::parse("test.toml", &text);
    assert!(scenario.is_ok(), "63 of 100 packets");
    let small = text.replace("100 packets", "50 packets");
    assert_ne!(small, text);
    let message = Scenario::parse("test.toml", &small)
        .expect_err("63 of 50 packets")
        .to_string();
    assert!(
        message.contains("`max_length` is 63, but `limit` holds 50 packets"),
        "{message}"
    );
    assert!(message.contains("network.bottleneck.queue"), "{message}");
}

#[test]
fn a_host_opens_the_connections_of_a_round_one_after_the_other() {
    let file = |pairs: u32, keys: &str| {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\npairs = {pairs}\naccess = {{ rate = \"1 Gbit/s\", delay = \"0 ms\" }}\n\
             bottleneck = {{ rate = \"20 Mbit/s\", delay = \"20 ms\", queue = {{ kind = \"drop-tail\", limit = \"50 packets\" }} }}\n\
             [[traffic]]\nname = \"answers\"\nkind = \"incast\"\nsize = \"6 kB\"\n{keys}\n[run]\nduration = \"1 s\"\n"
        );
        let scenario = Scenario::parse("test.toml", &text).unwrap_or_else(|error| panic!("{error}"));
        let resolved = scenario.resolve(&Setting::none());
        let resolved = resolved.unwrap_or_else(|error| panic!("{error}"));
        resolved.spec.groups[0].start_spacing.as_nanos() / 1000
    };
    assert_eq!(file(1, "count = 10"), 40);
    assert_eq!(file(10, ""), 0, "hosts of their own are ready together");
    assert_eq!(file(10, "count = 10"), 0);
    assert_eq!(file(10, "count = 11"), 40);
    assert_eq!(file(10, "count = 2\nspread = \"each\""), 40);
    assert_eq!(file(10, "count = 1\nspread = \"each\""), 0);
    assert_eq!(file(1, "count = 10\nstart_spacing = \"0 s\""), 0);
}

/// When the transfers of a round begin (us), by pair, unless the file says it.
#[test]
fn hosts_of_a_round_begin_together_however_many_transfers_each_has() {
    let begun = |pairs: u32, keys: &str| -> Vec<(u32, u64)> {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\npairs = {pairs}\nbottleneck = {{ rate = \"1 Gbit/s\", delay = \"20 us\" }}\n\
             [[traffic]]\nname = \"answers\"\nkind = \"incast\"\nsize = \"4 kB\"\n{keys}\n[run]\nduration = \"1 s\"\n"
        );
        let scenario = Scenario::parse("test.toml", &text).unwrap_or_else(|error| panic!("{error}"));
        let resolved = scenario.resolve(&Setting::none());
        let spec = resolved.unwrap_or_else(|error| panic!("{error}")).spec;
        let output = run(&spec, Mode::Fast, &mut (), |_| ControlFlow::Continue(())).expect("it can run");
        let flows = output.groups[0].flows.iter();
        flows
            .map(|flow| (flow.pair, flow.start.as_nanos() / 1_000))
            .collect()
    };
    assert_eq!(begun(3, ""), [(0, 0), (1, 0), (2, 0)]);
    assert_eq!(begun(3, "count = 4"), [(0, 0), (1, 0), (2, 0), (0, 40)]);
    assert_eq!(
        begun(2, "count = 2\nspread = \"each\""),
        [(0, 0), (1, 0), (0, 40), (1, 40)]
    );
    // Two hosts send to both others: pairs 0 and 1 begin at the first, pairs 2 and 3 at the second.
    assert_eq!(begun(2, "pairing = \"all\""), [(0, 0), (2, 0), (1, 40), (3, 40)]);
    // One host answers two.
    assert_eq!(begun(2, "from = \"left-0\""), [(0, 0), (1, 40)]);
    assert_eq!(
        begun(2, "from = \"left-0\"\nspread = \"each\"\ncount = 1"),
        [(0, 0), (1, 40)]
    );
    // What is written is between all transfers.
    assert_eq!(
        begun(2, "count = 3\nstart_spacing = \"40 us\""),
        [(0, 0), (1, 40), (0, 80)]
    );
}

#[test]
fn another_kind_keeps_only_what_every_kind_has() {
    let text = home(
        "kind = \"drop-tail\", limit",
        "kind = \"drop-tail\", ns2_compat = true, limit",
    );
    let scenario = Scenario::parse("test.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let others = fleetfoot_core::queue::AnyQueue::ENTRIES
        .iter()
        .filter(|entry| entry.name != "drop-tail");
    for entry in others {
        let set = Setting::none().with("network.bottleneck.queue.kind", entry.name);
        let resolved = scenario.resolve(&set).unwrap_or_else(|error| panic!("{error}"));
        let link = resolved
            .bottleneck_links()
            .next()
            .expect("a dumbbell has a bottleneck");
        assert_eq!(link.queue, entry.name);
        if entry.parameters.iter().any(|parameter| parameter.name == "limit") {
            assert_eq!(link.queue_values.limit("limit"), Limit::Packets(100));
        }
    }
    // Traffic of another kind keeps its common keys and lacks the new ones.
    let set = Setting::none().with("traffic.backup.kind", "ping");
    let resolved = scenario.resolve(&set).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(resolved.spec.groups[1].start_spacing, Duration::from_millis(500));
    assert!(matches!(resolved.spec.groups[1].traffic, Traffic::Ping { .. }));
    // A table replaces the whole table.
    let rate = toml::Table::from_iter([
        (String::from("rate"), "1 Mbit/s".into()),
        (String::from("delay"), "1 ms".into()),
    ]);
    let resolved = scenario
        .resolve(&Setting::none().with("network.bottleneck", rate))
        .unwrap_or_else(|error| panic!("{error}"));
    let link = resolved
        .bottleneck_links()
        .next()
        .expect("a dumbbell has a bottleneck");
    assert_eq!(link.queue_values.limit("limit"), Limit::Packets(1000));
}

#[test]
fn a_file_is_laid_over_the_one_it_extends() {
    let folder = std::env::temp_dir().join(format!("fleetfoot-extends-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a temporary file can be written");
        path
    };
    write("home.toml", HOME_LINE);
    let over = write(
        "over.toml",
        "extends = \"home.toml\"\ntitle = \"More\"\n[network.bottleneck]\ndelay = \"36 ms\"\n[[traffic]]\nname = \"pages\"\n\
         arrivals.rate = \"8 per second\"\n[[traffic]]\nname = \"extra\"\nkind = \"bulk\"\n",
    );
    let scenario = Scenario::load(&over).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(scenario.title(), "More");
    let resolved = scenario
        .resolve(&Setting::none())
        .unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = resolved.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["pages", "backup", "ping", "extra"]);
    assert_eq!(resolved.base_rtts()[0].rtt, Duration::from_millis(80));
    let Traffic::Transfer { interarrival, .. } = &resolved.spec.groups[0].traffic else {
        panic!("pages are transfers")
    };
    assert_eq!(*interarrival, Distribution::Exponential { mean: 0.125 });

    // A mistake in the file below is shown there.
    write("home.toml", &home("pairs = 12", "pears = 12"));
    let error = Scenario::load(&over).expect_err("the base has a mistake");
    assert!(error.file.ends_with("home.toml"), "{error}");

    write("a.toml", "extends = \"b.toml\"\n");
    let b = write("b.toml", "extends = \"a.toml\"\n");
    let error = Scenario::load(&b).expect_err("a cycle");
    assert!(error.message.contains("extends itself"), "{error}");
    assert_eq!((&*error.key, error.line), ("extends", 1));
    for number in 0..80 {
        write(
            &format!("c{number}.toml"),
            &format!("extends = \"c{}.toml\"\n", number + 1),
        );
    }
    let error = Scenario::load(&folder.join("c0.toml")).expect_err("a long chain");
    assert!(
        error.file.ends_with("c63.toml") && error.message.contains("at most 64"),
        "{error}"
    );
    let error = Scenario::load(&folder.join("none.toml")).expect_err("there is no such file");
    assert_eq!(error.kind, ErrorKind::Unreadable);
    let error = Scenario::load(&folder).expect_err("a folder");
    assert_eq!(error.kind, ErrorKind::Unreadable);

    let flows = "start,source,destination,bytes\n1,left-0,right-1,5000\n0.25,right-2,left-3,10\n";
    write("flows.csv", flows);
    write("link.mahi", "1\n2\n4\n");
    let listed = write(
        "listed.toml",
        "[network]\nkind = \"dumbbell\"\npairs = 4\nbottleneck = { rate = { trace = \"link.mahi\" }, delay = \"5 ms\" }\n\
         [[traffic]]\nkind = \"flows\"\nfile = \"flows.csv\"\n",
    );
    let scenario = Scenario::load(&listed).unwrap_or_else(|error| panic!("{error}"));
    let resolved = scenario
        .resolve(&Setting::none())
        .unwrap_or_else(|error| panic!("{error}"));
    // Packets are as long as in mahimahi where it is a trace of it that carries them.
    for link in &resolved.spec.links {
        assert_eq!(
            link.framing,
            if link.name == "bottleneck" { 4 } else { 0 },
            "{}",
            link.name
        );
    }
    let Traffic::Flows { list } = &resolved.spec.groups[0].traffic else {
        panic!("flows")
    };
    assert_eq!(
        list.iter().map(|line| line.start.as_millis()).collect::<Vec<_>>(),
        [250, 1000]
    );
    write(
        "flows.csv",
        "start,source,destination,bytes\n1,left-0,right-9,5000\n",
    );
    let error = Scenario::load(&listed).expect_err("there is no right-9");
    assert!(
        error.message.contains("right-9") && error.message.contains("flows.csv"),
        "{error}"
    );
    std::fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
}

#[test]
fn other_networks_have_the_links_and_paths_they_should() {
    let chain = resolved(
        "[network]\nkind = \"chain\"\nhops = 3\npairs = 2\nbottleneck = { rate = \"10 Mbit/s\", delay = \"10 ms\" }\n\
         [[link]]\nname = \"hop-1\"\ndelay = \"30 ms\"\n[[traffic]]\nkind = \"bulk\"\n",
        &Setting::none(),
    );
    assert_eq!(
        chain.base_rtts()[0].rtt,
        Duration::from_millis(2 * (1 + 10 + 30 + 10 + 1))
    );
    assert!(chain.run.bottleneck.is_empty());
    let lot = resolved(
        "[network]\nkind = \"parking-lot\"\nhops = 2\nbottleneck = { rate = \"10 Mbit/s\", delay = \"10 ms\" }\n\
         [[traffic]]\nname = \"through\"\nkind = \"bulk\"\n[[traffic]]\nname = \"cross\"\nkind = \"bulk\"\nfrom = \"enter\"\n\
         to = \"leave\"\n",
        &Setting::none(),
    );
    assert_eq!(lot.spec.groups[1].pairs.len(), 2);
    let rtts: Vec<u64> = lot.base_rtts().iter().map(|pair| pair.rtt.as_millis()).collect();
    assert_eq!(rtts, [44, 24, 24]);
    let graph = "[network]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nrouters = [\"r\", \"s\"]\n\
         [[link]]\nname = \"in\"\nfrom = \"a\"\nto = \"r\"\n[[link]]\nname = \"mid\"\nfrom = \"r\"\nto = \"s\"\nrate = \"5 Mbit/s\"\n\
         reverse = { delay = \"7 ms\" }\n[[link]]\nname = \"out\"\nfrom = \"s\"\nto = \"b\"\nmtu = 1400\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";
    let plain = resolved(graph, &Setting::none());
    assert_eq!(plain.base_rtts()[0].rtt, Duration::from_millis(3 + 1 + 7 + 1));
    assert_eq!(plain.spec.groups[0].sender.mtu, 1400);
    // A variant reaches the links between routers by the same path as in a dumbbell.
    let changed = resolved(
        graph,
        &Setting::none()
            .with("network.bottleneck.queue.limit", "7 packets")
            .with("network.bottleneck.queue.kind", "drop-tail"),
    );
    let limits: Vec<_> = changed
        .spec
        .links
        .iter()
        .map(|link| link.queue_values.limit("limit"))
        .collect();
    assert_eq!(
        limits.iter().filter(|limit| **limit == Limit::Packets(7)).count(),
        2
    );
    // With one router there is none between two: it must be named.
    let star = graph
        .replace("\"s\"", "\"r\"")
        .replace("[\"r\", \"r\"]", "[\"r\"]\nbottleneck = { queue = { kind = \"fq-codel\" } }")
        .replace("[[link]]\nname = \"mid\"\nfrom = \"r\"\nto = \"r\"\nrate = \"5 Mbit/s\"\nreverse = { delay = \"7 ms\" }\n", "");
    let error = refusal(&star);
    assert_eq!((&*error.key, error.line), ("network.bottleneck", 5), "{error}");
    assert!(error.message.contains("name one in `run.bottleneck`"), "{error}");
    let named = resolved(&format!("{star}[run]\nbottleneck = \"out\"\n"), &Setting::none());
    let queues: Vec<&str> = named.spec.links.iter().map(|link| link.queue).collect();
    assert_eq!(
        queues.iter().filter(|queue| **queue == "fq-codel").count(),
        2,
        "{queues:?}"
    );
    let both = resolved(
        &home("kind = \"bulk\"", "kind = \"bulk\"\ndirection = \"both\""),
        &Setting::none(),
    );
    assert_eq!(both.spec.groups[1].pairs.len(), 24);
}

mod random {
    use super::{examples, home};
    use crate::scenario::{Scenario, Setting};
    use crate::testing::BUSY_LINE as HOME_LINE;
    use proptest::prelude::{ProptestConfig, any, proptest};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
            let _ = Scenario::parse("random.toml", &text);
        }

        #[test]
        fn no_change_of_an_example_makes_the_reader_panic(
            which in any::<usize>(),
            cuts in proptest::collection::vec((any::<usize>(), 0_usize..12, "[ -~é\\n]{0,6}"), 1..4),
        ) {
            let files = examples();
            let mut text = std::fs::read_to_string(&files[which % files.len()]).expect("an example can be read");
            for (at, len, insert) in cuts {
                let mut start = at % (text.len() + 1);
                while !text.is_char_boundary(start) {
                    start -= 1;
                }
                let mut end = (start + len).min(text.len());
                while !text.is_char_boundary(end) {
                    end += 1;
                }
                text.replace_range(start..end, &insert);
            }
            if let Err(error) = Scenario::parse("random.toml", &text) {
                assert!(!error.to_string().is_empty() && !error.message.is_empty());
            }
        }

        #[test]
        fn no_value_makes_the_reader_panic(value in "[0-9a-zA-Z\\.\\-% /{}\\[\\]\",=]{0,16}") {
            for from in ["12", "\"10 Mbit/s\"", "\"100 packets\"", "\"20 s\"", "\"lomax\"", "\"40 kB\""] {
                let _ = Scenario::parse("random.toml", &home(from, &value));
            }
        }

        #[test]
        fn no_setting_makes_the_reader_panic(path in "(network|traffic|link|run|tcp|pages|bottleneck|queue|kind|size|\\.|[a-z]){1,8}", value in "[0-9a-z \"{}=\\.]{0,10}") {
            let scenario = Scenario::parse("home.toml", HOME_LINE).expect("the home line is a scenario");
            let set = Setting::from_origin("--set").with_argument(&format!("{path}={value}")).expect("there is an =");
            let _ = scenario.resolve(&set);
        }
    }
}
