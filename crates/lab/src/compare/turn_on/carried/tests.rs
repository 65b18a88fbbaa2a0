use super::{Carried, Size, split};
use crate::compare::turn_on::shaped;
use crate::compare::{Choice, Plan, build};
use crate::run::{Options, execute, observe, simulate};
use crate::scenario::Scenario;
use fleetfoot_core::packet::Packet;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::spec::LinkIndex;
use std::sync::atomic::AtomicBool;

/// A line of ADSL with PPPoE: calls, an upload and the acknowledgments of a download go up. Without SACK all acknowledgments have one size.
const ADSL: &str = r#"title = "ADSL"
[network]
kind = "dumbbell"
pairs = 2
access = { rate = "1 Gbit/s", delay = "5 ms" }
[network.bottleneck]
rate = "7.25 Mbit/s"
delay = "12 ms"
mtu = "1492 B"
framing = "40 B"
medium = "adsl"
queue = { kind = "drop-tail", limit = "200 ms" }
reverse = { rate = "0.72 Mbit/s", queue = { kind = "drop-tail", limit = "800 ms" } }
[tcp]
profile = "linux"
sack = false
[[traffic]]
name = "download"
kind = "bulk"
[[traffic]]
name = "voip"
kind = "cbr"
rate = "80 kbit/s"
packet = "200 B"
latency_sensitive = true
direction = "up"
[[traffic]]
name = "upload"
kind = "bulk"
direction = "up"
[run]
duration = "10 s"
warmup = "2 s"
seeds = 2
"#;

/// Packets that leave a link, and the bytes that they take in cells of 48 beyond their own, with 40 bytes that the line adds to each.
#[derive(Default)]
struct Cells {
    link: u32,
    packets: u64,
    added: u64,
}

impl Observer for Cells {
    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, _sojourn: Duration) {
        if at.0 == self.link && now >= Instant::ZERO + Duration::from_secs(2) {
            let bytes = u64::from(packet.segment.len());
            self.packets += 1;
            self.added += (bytes + 40).div_ceil(48) * 48 - bytes;
        }
    }
}

#[test]
fn cells_of_the_packets_that_crossed_are_counted_as_a_shaper_counts_them() {
    let scenario = Scenario::parse("adsl.toml", ADSL).expect("it is correct");
    for (place, name) in [("bottleneck:reverse", "cake"), ("bottleneck:forward", "fq-codel")] {
        let choice = Choice {
            only: vec![name.to_owned()],
            places: vec![place.to_owned()],
            ..Choice::default()
        };
        let plan = Plan::compare(scenario.clone(), &choice).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &simulate, &|_| ());
        let document = build(&plan, &batch.expect("it runs"), "").document;
        let here = &plan.places[plan.chosen[0]];
        let mut exact = Cells {
            link: here.links[0] as u32,
            ..Cells::default()
        };
        let spec = plan.variants[1].resolved.spec(plan.seeds[0]);
        observe(&spec, &never, &mut exact).expect("it runs");
        let added = exact.added as f64 / exact.packets as f64;
        let sent = shaped(&plan, 1, here, &document.variants[1]).expect("a shaper");
        assert!(
            (f64::from(sent.framing) - added).abs() < 1.0,
            "{place}: {} bytes, {added:.2} in the cells of {} packets",
            sent.framing,
            exact.packets
        );
    }
}

/// Up go 50 packets of a call a second and about as many full ones; their mean, 830 bytes, is the size of none of them.
#[test]
fn datagrams_are_told_apart_from_full_packets() {
    let scenario = Scenario::parse("adsl.toml", ADSL).expect("it is correct");
    let plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
    let (options, never) = (Options::default(), AtomicBool::new(false));
    let batch = execute(
        &plan.jobs()[..1],
        &plan.seeds,
        &options,
        &never,
        &simulate,
        &|_| (),
    );
    let document = build(&plan, &batch.expect("it runs"), "").document;
    let place = plan
        .places
        .iter()
        .find(|place| place.selector() == "bottleneck:reverse");
    let carried = Carried::at(&plan, place.expect("it is there"), &document.variants[0]);
    let carried = carried.expect("the line is full");
    let [(calls, Size::One(200.0)), (full, Size::One(1492.0)), rest @ ..] = carried.data.as_slice() else {
        panic!("{carried:?}");
    };
    // Two runs of eight seconds; the queue drops few.
    assert!((760.0..=801.0).contains(calls), "{carried:?}");
    let rest: f64 = rest.iter().map(|(number, _)| number).sum();
    assert!(*full > 20.0 * rest && carried.empty > *full, "{carried:?}");
}

/// Worked by hand: the middle of 52 and 1500 bytes is 776.
#[test]
fn packets_of_unknown_sizes_are_full_ones_and_smaller_ones() {
    assert_eq!(
        split(100.0, 100.0 * 1138.0, 1500.0),
        [(50.0, Size::One(1500.0)), (50.0, Size::Mean(776.0))]
    );
    assert_eq!(split(10.0, 3000.0, 1500.0), [(10.0, Size::Mean(300.0))]);
    assert_eq!(split(10.0, 15_000.0, 1500.0), [(10.0, Size::One(1500.0))]);
    assert_eq!(split(0.0, 0.0, 1500.0), []);
}

/// Sizes that are all alike likely need half a cell more on average: from none to 47 bytes.
#[test]
fn packets_of_any_size_leave_half_of_the_last_cell_empty() {
    let cells = |size: f64| (size / 48.0).ceil() * 48.0;
    for mean in [60.0, 300.0, 776.0] {
        let any = Carried {
            data: vec![(10.0, Size::Mean(mean))],
            empty: 0.0,
        };
        let added = any.bytes(cells) / 10.0 - mean;
        assert!((added - 23.5).abs() <= 0.5, "{mean}: {added}");
        assert!((any.bytes(|size| size) - 10.0 * mean).abs() < 1e-9);
    }
}
