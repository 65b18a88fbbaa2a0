//! The program with both mechanisms: scenario files name them, `list`, `explain` and the schema show them, runs use them.

use fleetfoot_core::cc::{Config, CongestionController as _};
use fleetfoot_core::packet::Segment;
use fleetfoot_core::time::Instant;
use fleetfoot_lab::scenario::{Scenario, Setting};
use fleetfoot_lab::{plugins, scenario};
use fleetfoot_plugin_example::{PLUGINS, relentless};
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("random-loss.toml")
}

fn example() -> Scenario {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| plugins::install(PLUGINS).expect("the names are free"));
    Scenario::load(&file()).expect("a scenario")
}

/// The standard output of the program.
fn program(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fleetfoot-plugin-example"))
        .args(arguments)
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_list_of_names_has_both() {
    let file = file();
    let file = file.to_str().expect("a path that is text");
    assert!(program(&["list", "queues"]).contains("\n  drop-front "));
    assert!(program(&["list", "congestion-controls"]).contains("\n  relentless "));
    let explained = program(&["explain", "relentless"]);
    assert!(
        explained.contains("Mathis") && explained.contains("weight: "),
        "{explained}"
    );
    assert!(program(&["explain", "drop-front", "--scenario", file]).contains("no bound"));
    example();
    let schema = scenario::json_schema().to_string();
    assert!(schema.contains("\"drop-front\"") && schema.contains("\"relentless\""));
}

#[test]
fn compare_and_run_use_what_the_scenario_names() {
    let file = file();
    let file = file.to_str().expect("a path that is text");
    let json = program(&["compare", file, "--json", "--quiet", "--force"]);
    let result: serde_json::Value = serde_json::from_str(&json).expect("one document");
    let of = |variant: &str| {
        let variants = result["variants"].as_array().expect("variants");
        let found = variants.iter().find(|one| one["name"] == variant);
        found.unwrap_or_else(|| panic!("no variant {variant}")).clone()
    };
    let goodput = |variant: &str| {
        let groups = of(variant)["groups"].as_array().expect("groups").clone();
        let downloads = groups.iter().find(|group| group["name"] == "downloads");
        downloads.expect("the group")["goodput_bps"]["mean"]
            .as_f64()
            .expect("a number")
    };
    let pushed_out = |variant: &str| of(variant)["links"].to_string().contains("pushed_out");
    // Random losses cost a relentless sender little, where CUBIC takes three tenths off each time.
    assert!(goodput("relentless") > 1.1 * goodput("as described"));
    assert!(goodput("both, twice as careful") > 1.1 * goodput("as described"));
    assert!(pushed_out("drop from front") || of("drop from front")["links"] != of("as described")["links"]);
    let run = program(&[
        "run",
        file,
        "--variant",
        "relentless",
        "--seed",
        "3",
        "--quiet",
        "--force",
    ]);
    assert!(run.contains("downloads"), "{run}");
}

/// Segments with payload that senders handed to the network.
#[derive(Default)]
struct Count(u64);

impl Observer for Count {
    fn on_send(&mut self, _: Instant, _: fleetfoot_core::flow::FlowId, segment: &Segment) {
        self.0 += u64::from(segment.payload);
    }
}

#[test]
fn runs_repeat_and_observers_change_nothing() {
    let set = Setting::none()
        .with("network.bottleneck.queue.kind", "drop-front")
        .with("tcp.congestion_control", "relentless");
    let resolved = example().resolve(&set).expect("both are known");
    let spec = resolved.spec(7);
    let keep_on = |_| ControlFlow::Continue(());
    let mut count = Count::default();
    let watched = run(&spec, Mode::Fast, &mut count, keep_on).expect("a run");
    let plain = run(&spec, Mode::Plain, &mut (), keep_on).expect("a run");
    let fast = run(&spec, Mode::Fast, &mut (), keep_on).expect("a run");
    assert!(count.0 > 10_000_000, "{}", count.0);
    let groups = |output: &fleetfoot_sim::output::RunOutput| format!("{:?}", output.groups);
    assert_eq!(groups(&watched), groups(&fast));
    assert_eq!(groups(&plain), groups(&fast));
}

#[test]
fn a_retransmission_takes_its_bytes_from_the_window() {
    use fleetfoot_core::cc::{Congestion, CongestionKind, CubicArithmetic, HyStart, Sent};
    use fleetfoot_core::parameter::Values;
    use fleetfoot_core::units::Bytes;
    let config = Config {
        mss: Bytes(1000),
        initial_window: Bytes(20_000),
        hystart: HyStart::Off,
        paced: false,
        abc_limit: None,
        reduce_from_window: false,
        count_segments: false,
        fractions: false,
        cubic_arithmetic: CubicArithmetic::Rfc9438,
        handshake_rtt: None,
        passive: false,
        seed: 1,
    };
    let mut cc = relentless::Relentless::new(&Values::defaults(relentless::Relentless::PARAMETERS), &config);
    let now = Instant::ZERO;
    let sent = |bytes, retransmission| Sent {
        bytes: Bytes(bytes),
        in_flight: Bytes(20_000),
        retransmission,
    };
    let event = |kind| Congestion {
        kind,
        flight_size: Bytes(20_000),
        in_flight: Bytes(17_000),
    };
    cc.on_sent(now, &sent(1000, true)); // no recovery: a probe
    assert_eq!(cc.window(), Bytes(20_000));
    cc.on_congestion(now, &event(CongestionKind::Loss));
    for (bytes, retransmission, window) in [(1000, true, 19_000), (1000, false, 19_000), (400, true, 18_600)]
    {
        cc.on_sent(now, &sent(bytes, retransmission));
        assert_eq!((cc.window(), cc.ssthresh()), (Bytes(window), Bytes(window)));
    }
    cc.on_congestion(now, &event(CongestionKind::RecoveryEnd));
    cc.on_sent(now, &sent(1000, true));
    assert_eq!(cc.window(), Bytes(18_600));
    cc.on_congestion(now, &event(CongestionKind::Undo));
    assert_eq!((cc.window(), cc.ssthresh()), (Bytes(20_000), Bytes::MAX));
}
