//! New-CWV's rules on a connection played by hand, against the published numbers.
//!
//! Segments of 1000 bytes, SRTT 100 ms unless said. A burst of a whole window of 40 of which the first 12 or 38 are lost: the window during
//! recovery and after it. A pause: when the window falls for the first and for the second time shows the sampling period and the period of the
//! non-validated phase, and by how much it falls. **Source.** specs/published-endpoint.toml (newcwv-rules). **Deviations.** None known.

use super::super::{Analysis, Measured, Metric, Outcome, Run, published};
use super::numbers;
use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::registry::Entry;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{
    Config, Connection, DelayedAck, EarlyRetransmit, EstablishedState, Info, Profile, Prr, TailLossProbe,
    WindowValidation, WriteFlags,
};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use std::sync::Arc;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("window-validation", &[], include_str!("validation.rs")),
    metrics: &[
        Metric {
            name: "cases",
            doc: "Numbers compared.",
        },
        Metric {
            name: "largest_deviation",
            doc: "Largest difference from a published number (segments, seconds).",
        },
        Metric {
            name: "nonvalidated_period_s",
            doc: "From the first fall of an idle window to the second (s).",
        },
        Metric {
            name: "sampling_period_ms",
            doc: "How long a sample of pipeACK counts at an RTT of 100 ms (ms).",
        },
        Metric {
            name: "sampling_period_rtts",
            doc: "The same at an RTT of 2 s, in RTTs.",
        },
    ],
    timed: false,
    run: Run::Alone(run),
};

fn run(_: &Values) -> Outcome {
    let table = published("newcwv-rules");
    let (mut cases, mut largest) = (0_u32, 0.0_f64);
    let mut compare = |wanted: &[f64], found: &[f64]| {
        for (place, found) in found.iter().enumerate() {
            cases += 1;
            largest = largest.max((wanted.get(place).copied().unwrap_or(f64::MAX) - found).abs());
        }
    };
    for (key, lost) in [("cwnd40_burst40_lost12", 12), ("cwnd40_burst40_lost38", 38)] {
        compare(&numbers(&table, key), &burst(lost));
    }
    let of = |key: &str| {
        let state = table.get(key).and_then(toml::Value::as_table);
        state.map_or_else(Vec::new, |state| {
            [numbers(state, "cwnd"), numbers(state, "ssthresh")].concat()
        })
    };
    let start = |pause_s: u64| {
        let info = idle(100, pause_s * 1000);
        [segments(info.cwnd), segments(info.ssthresh)]
    };
    compare(&of("after_one_nvp"), &start(302));
    compare(&of("after_two_nvp"), &start(602));
    let falls = |rtt_ms: u64, below: f64| {
        // The first pause, to the millisecond, after which the window is below.
        let (mut short, mut long) = (1_u64, 1_000_000_u64);
        while short + 1 < long {
            let middle = u64::midpoint(short, long);
            if segments(idle(rtt_ms, middle).cwnd) < below {
                long = middle;
            } else {
                short = middle;
            }
        }
        long as f64
    };
    let (first, second) = (falls(100, 40.0), falls(100, 20.0));
    let period_s = (second - first) / 1e3;
    let sampling_ms = first - 1e3 * period_s;
    let sampling_rtts = (falls(2000, 40.0) - 1e3 * period_s) / 2000.0;
    compare(&numbers(&table, "nvp_s"), &[period_s]);
    compare(&numbers(&table, "psp_ms_min"), &[sampling_ms]);
    compare(&numbers(&table, "psp_rtts"), &[sampling_rtts]);
    Outcome {
        values: [f64::from(cases), largest, period_s, sampling_ms, sampling_rtts]
            .map(Measured::exact)
            .to_vec(),
        curves: Vec::new(),
    }
}

fn segments(bytes: Bytes) -> f64 {
    bytes.0 as f64 / MSS as f64
}

/// A sender with a window of 40 segments and a threshold of 20.
struct Sender {
    connection: Connection,
}

impl Sender {
    fn new(rtt_ms: u64) -> Sender {
        let mut config = Config::profile(Profile::Rfc);
        config.timestamps = false;
        config.delayed_ack = DelayedAck::Off;
        config.rack = false;
        config.tail_loss_probe = TailLossProbe::Off;
        config.early_retransmit = EarlyRetransmit::Off;
        config.prr = Prr::Off;
        config.nagle = false;
        config.dup_thresh = 2; // two segments of the burst arrive in one case
        config.window_validation = WindowValidation::NewCwvUnpaced;
        let state = EstablishedState {
            srtt: Duration::from_millis(rtt_ms),
            rttvar: Duration::ZERO,
            cwnd: Bytes(40 * MSS),
            ssthresh: Bytes(20 * MSS),
            mss: MSS as u32,
            iss: FIRST,
            irs: PEER,
            peer_window: Bytes(1 << 20),
        };
        Sender {
            connection: Connection::established(BEGIN, &Arc::new(config), state),
        }
    }

    fn write(&mut self, at_ms: u64, count: u64) -> u64 {
        let now = BEGIN + Duration::from_millis(at_ms);
        self.connection
            .write(now, Bytes(count * MSS), WriteFlags::default());
        self.drain(now)
    }

    /// Segments that leave.
    fn drain(&mut self, now: Instant) -> u64 {
        let mut sent = 0;
        while let Some(transmit) = self.connection.poll_transmit(now) {
            sent += u64::from(transmit.segment.payload) / MSS;
        }
        while self.connection.poll_event().is_some() {}
        sent
    }

    /// Everything before segment `upto` arrived, and those of `block`. How many leave.
    fn ack(&mut self, at_ms: u64, upto: u32, block: Option<(u32, u32)>) -> u64 {
        let now = BEGIN + Duration::from_millis(at_ms);
        let place = |segment: u32| FIRST + 1 + segment * MSS as u32;
        let mut segment = Segment {
            seq: PEER + 1,
            ack: place(upto),
            flags: Flags::ACK,
            window: u16::MAX,
            overhead: 40,
            ..Segment::default()
        };
        if let Some((from, to)) = block {
            segment.push_sack_block(place(from), place(to));
        }
        self.connection.on_segment(now, &segment);
        self.drain(now)
    }

    fn info(&self, at_ms: u64) -> Info {
        self.connection.info(BEGIN + Duration::from_millis(at_ms))
    }
}

/// Ten segments, then a burst of 40 of which the first `lost` are lost: the window during recovery and after it.
fn burst(lost: u32) -> [f64; 2] {
    let mut sender = Sender::new(100);
    sender.write(0, 10);
    sender.ack(100, 10, None);
    sender.write(200, 40);
    let mut again = sender.ack(300, 10, Some((10 + lost, 50)));
    let during = segments(sender.info(300).cwnd);
    let (mut acked, mut at) = (10, 300);
    while acked < 10 + lost && at < 10_000 {
        at += 100;
        acked += again as u32;
        again = if acked >= 10 + lost {
            sender.ack(at, 50, None)
        } else {
            sender.ack(at, acked, Some((10 + lost, 50)))
        };
    }
    [during, segments(sender.info(at).cwnd)]
}

/// A window of 40 that was used whole, acknowledged after an RTT, then a pause: what a segment finds.
fn idle(rtt_ms: u64, pause_ms: u64) -> Info {
    let mut sender = Sender::new(rtt_ms);
    sender.write(0, 40);
    sender.ack(rtt_ms, 40, None);
    sender.write(rtt_ms + pause_ms, 1);
    sender.info(rtt_ms + pause_ms)
}

const MSS: u64 = 1000;
const BEGIN: Instant = Instant::from_millis(1000);
const FIRST: SeqNumber = SeqNumber(999);
const PEER: SeqNumber = SeqNumber(4999);
