//! The report of a real program: what stands in it, and that nothing breaks out of it.

use crate::fixture::HOSTILE;
use fleetfoot_core::time::Duration;
use fleetfoot_lab::import::flows::{Flow, RoundTrips, Sent};
use fleetfoot_lab::import::reader;
use fleetfoot_lab::live::study::Made;
use fleetfoot_lab::live::timeline::Bins;
use fleetfoot_lab::live::{Metric, Run, Studied, Study, record};
use fleetfoot_lab::report::live;
use fleetfoot_lab::report::pcapng::{FrameWriter, Interface, RealFrame};
use fleetfoot_lab::result::{Comparison, LinkInfo};
use fleetfoot_sim::output::Histogram;

/// A result of variants with these names, each with `rounds` runs.
pub(crate) fn result(names: &[&str], rounds: u64) -> Comparison {
    let study = Study {
        scenario: HOSTILE.to_owned(),
        command: HOSTILE.to_owned(),
        far: Some(String::from("serve")),
        metric: (Metric::parse("wall").expect("it is one"), String::from("wall")),
        more_is_better: false,
        kernel: String::from("Linux 6.18"),
        seed: 1,
        link: String::from("bottleneck"),
    };
    let studied: Vec<Studied> = (1..)
        .zip(names)
        .map(|(slow, name)| studied(name, f64::from(slow), rounds))
        .collect();
    study.result(&studied, false)
}

fn studied(name: &str, slow: f64, rounds: u64) -> Studied {
    let info = |direction: &str| LinkInfo {
        name: String::from("bottleneck"),
        direction: direction.to_owned(),
        rate: String::from("10 Mbit/s"),
        delay_s: Duration::from_millis(10).as_secs_f64(),
        queue: name.to_owned(),
        parameters: Vec::new(),
    };
    Studied {
        name: name.to_owned(),
        set: serde_json::Map::new(),
        links: [info("reverse"), info("forward")],
        rates: [Some(10e6); 2],
        sender: vec![String::from("sysctl net.ipv4.tcp_ecn=1")],
        runs: (1..=rounds).map(|number| made(number, slow)).collect(),
    }
}

fn made(number: u64, slow: f64) -> Made {
    let mut delays = Histogram::new();
    let mut bins = Bins::default();
    for step in 0..100 {
        delays.record(step * 1_000_000);
        bins.delivered(
            step * 20_000_000,
            (step % 2) as usize,
            1500,
            step * 1_000_000,
            40_000,
        );
    }
    let direction = record::Direction {
        delivered_packets: 100,
        delivered_bytes: 150_000,
        throughput_bps: 1e6,
        queue_delay_s: record::summary(&delays),
        lateness_s: record::summary(&delays),
        ..record::Direction::default()
    };
    let wall_s = slow + number as f64 * 0.01 * (1.0 + slow * (number % 3) as f64);
    Made {
        queue_delay: [delays.clone(), delays],
        run: Run {
            run: number,
            seed: number,
            wall_s,
            value: Some(wall_s),
            kept: number != 2,
            sent: direction.clone(),
            received: direction,
            flows_seen: 1,
            flows: vec![Flow {
                protocol: String::from("tcp"),
                source: HOSTILE.to_owned(),
                destination: String::from("100.64.0.1:80"),
                completion_s: Some(slow),
                completed: Some(true),
                rtt: Some(RoundTrips::default()),
                received: Sent {
                    payload_bytes: 1_000_000,
                    ..Sent::default()
                },
                ..Flow::default()
            }],
            timeline: bins.timeline(),
            ..Run::default()
        },
    }
}

#[test]
fn it_has_the_ranking_the_flows_and_the_lateness_and_nothing_breaks_out() {
    let result = result(&["drop-tail", HOSTILE, "fq-codel"], 10);
    let page = live::render(&result).expect("the template fits");
    assert!(
        !page.contains(HOSTILE),
        "a text of the user stands there as it is"
    );
    for part in [
        "id=\"ranking\"",
        "id=\"chart-compared\"",
        "id=\"chart-queue\"",
        "id=\"chart-throughput\"",
        "id=\"chart-lateness\"",
        "Best: drop-tail with ",
        " (wall time of the command)",
        "This machine was busy: of 30 runs the link was not kept in ",
        "The described link was not kept in 1 of 10 runs of drop-tail",
        "sysctl net.ipv4.tcp_ecn",
        "Linux 6.18",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let drawing = live::compared(&result.document).expect("there is something to compare");
    let drawing = drawing.standalone();
    assert!(drawing.contains("fq-codel") && !drawing.contains(HOSTILE));
}

#[test]
fn a_single_run_has_no_ranking() {
    let result = result(&["drop-tail"], 1);
    let page = live::render(&result).expect("the template fits");
    assert!(!page.contains("id=\"ranking\"") && page.contains("Own lateness"));
    assert!(live::compared(&result.document).is_none());
}

#[test]
fn its_tables_have_a_row_for_each_flow_and_run() {
    let result = result(&["drop-tail", "codel"], 3);
    let folder = crate::scratch("live");
    live::write(&folder, &result).expect("writable");
    for name in ["flows", "measured"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.csv"))).expect("it was written");
        assert_eq!(text.lines().count(), 1 + 6, "{name}");
    }
    assert!(folder.join("compared.svg").exists() && folder.join("report.html").exists());
}

#[test]
fn a_capture_has_nanoseconds_directions_and_reasons() {
    let path = crate::scratch("live-capture").join("a.pcapng");
    let interfaces = ["command", "far", "dropped"].map(|name| Interface {
        name: name.to_owned(),
        description: String::new(),
    });
    let file = std::fs::File::create(&path).expect("writable");
    let mut writer = FrameWriter::new(file, &interfaces, "by hand", 128).expect("writable");
    let frame = |unix_ns, interface, inbound, comment| RealFrame {
        unix_ns,
        interface,
        inbound,
        data: &[7; 60],
        length: 1514,
        comment,
    };
    let frames = [
        frame(1_700_000_000_123_456_789, 0, false, None),
        frame(1_700_000_000_133_456_790, 1, true, None),
        frame(1_700_000_000_133_456_791, 2, false, Some("dropped: full")),
    ];
    for frame in &frames {
        writer.write(frame).expect("writable");
    }
    writer.flush().expect("writable");
    // The time stands at the resolution that the interface states: read by the other library.
    let mut seen = Vec::new();
    let file = std::fs::File::open(&path).expect("readable");
    let stop = reader::read(file, |frame, _| {
        seen.push((
            frame.time_ns,
            frame.interface,
            frame.link_type,
            frame.data.len(),
            frame.length,
        ));
        true
    })
    .expect("it is a capture");
    assert_eq!((stop.damage, stop.frames), (None, 3));
    let expected = frames.map(|frame| (frame.unix_ns, frame.interface, 1, 60, 1514));
    assert_eq!(seen, expected);
    let bytes = std::fs::read(&path).expect("readable");
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(has(b"dropped: full") && has(b"command") && has(b"by hand"));
}
