//! When the segments of a first window leave under Initial Spreading.
//!
//! A connection that knows its RTT writes ten segments; the departure of the tenth after the first is compared with the published one, for
//! the bounded and the variable form. **Source.** specs/published-endpoint.toml (is-params). **Deviations.** None known.

use super::super::{Analysis, Curve, Measured, Metric, Outcome, Run, published};
use super::numbers;
use fleetfoot_core::parameter::Values;
use fleetfoot_core::registry::Entry;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{
    Config, Connection, EstablishedState, InitialSpreading, InitialWindow, Profile, WriteFlags,
};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use std::sync::Arc;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("spread-departures", &[], include_str!("spread.rs")),
    metrics: &[
        Metric {
            name: "cases",
            doc: "Departures compared: an RTT and a form of spreading each.",
        },
        Metric {
            name: "largest_deviation_ms",
            doc: "Largest difference between a departure and the published one (ms).",
        },
        Metric {
            name: "slowest_line_mbps",
            doc: "Slowest line on which the longest gap is at least a packet of 1500 bytes (Mbit/s).",
        },
    ],
    timed: false,
    run: Run::Alone(run),
};

fn run(_: &Values) -> Outcome {
    let table = published("is-params");
    let one = |key| numbers(&table, key).first().copied().unwrap_or(f64::MAX);
    let ms = |value: f64| Duration::from_secs_f64(value / 1e3);
    let mut config = Config::profile(Profile::Linux);
    config.initial_window = InitialWindow::Segments(one("iw") as u32);
    config.spreading_jiffy = ms(one("jiffy_ms"));
    config.spreading_gap = ms(one("tmax_ms"));
    let (mut cases, mut largest, mut curves) = (0_u32, 0.0_f64, Vec::new());
    for (kind, key) in [
        (InitialSpreading::Bounded, "last_departure_bounded"),
        (InitialSpreading::Variable, "last_departure_variable"),
    ] {
        config.initial_spreading = kind;
        let mut points = Vec::new();
        for (&rtt, &wanted) in numbers(&table, "rtt_ms").iter().zip(&numbers(&table, key)) {
            let found = last_departure(&config, ms(rtt), one("iw") as u64);
            cases += 1;
            largest = largest.max((found - wanted).abs());
            points.push([rtt, found]);
        }
        curves.push(Curve {
            name: key.trim_start_matches("last_departure_").to_owned(),
            x: "RTT (ms)",
            y: "departure of the tenth segment (ms)",
            points,
        });
    }
    // A gap of a packet's time and more makes losses independent, by the source.
    let slowest = 1500.0 * 8.0 / (one("tmax_ms") * 1e3);
    Outcome {
        values: [f64::from(cases), largest, slowest].map(Measured::exact).to_vec(),
        curves,
    }
}

/// When the last of `segments` leaves, after the first (ms).
fn last_departure(config: &Config, rtt: Duration, segments: u64) -> f64 {
    let state = EstablishedState {
        srtt: rtt,
        rttvar: Duration::ZERO,
        cwnd: Bytes(segments * MSS),
        ssthresh: Bytes::MAX,
        mss: MSS as u32,
        iss: SeqNumber(1),
        irs: SeqNumber(1),
        peer_window: Bytes(1 << 20),
    };
    let begin = Instant::from_millis(1);
    let mut sender = Connection::established(begin, &Arc::new(config.clone()), state);
    sender.write(begin, Bytes(segments * MSS), WriteFlags::default());
    let (mut now, mut sent) = (begin, 0);
    loop {
        while let Some(transmit) = sender.poll_transmit(now) {
            sent += u64::from(transmit.segment.payload) / MSS;
        }
        if sent >= segments {
            return now.since(begin).as_secs_f64() * 1e3;
        }
        match sender.poll_timeout() {
            Some(next) if next > now => now = next,
            Some(_) | None => return f64::MAX,
        }
        sender.on_timeout(now);
    }
}

const MSS: u64 = 1448;
