//! CDG's back-off: its probability against the published one, and how often it happens.
//!
//! The probability is that of the core for the sum of eight gradients. Then a controller meets an RTT that rises by an eighth of the sum each
//! round trip, so that the sum is the same in each, and its back-offs are counted: the chi-square statistic over all sums has as many degrees of
//! freedom as there are sums. **Source.** specs/published-endpoint.toml (cdg-backoff). **Deviations.** None known.

use super::super::{Analysis, Curve, Measured, Metric, Outcome, Run, published};
use super::numbers;
use fleetfoot_core::cc::{Ack, Cdg, Config, CongestionController, CubicArithmetic, HyStart, Reaction};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Value, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("delay-back-off", OPTIONS, include_str!("backoff.rs")),
    metrics: &[
        Metric {
            name: "sums",
            doc: "Sums of gradients looked at.",
        },
        Metric {
            name: "largest_deviation",
            doc: "Largest difference between a probability and the published one.",
        },
        Metric {
            name: "chi_square",
            doc: "Chi-square statistic of the back-offs counted.",
        },
        Metric {
            name: "chi_square_p",
            doc: "Probability of a statistic as large or larger.",
        },
    ],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[parameter!("draws": Integer(100, 10_000_000) = 2000,
    "Round trips for each sum (a verdict: 100000)")];

fn run(options: &Values) -> Outcome {
    let draws = options.integer("draws").unwrap_or(2000);
    let table = published("cdg-backoff");
    let factor = numbers(&table, "factor")
        .first()
        .map_or(0, |factor| *factor as u64);
    let (sums, wanted) = (numbers(&table, "S"), numbers(&table, "P"));
    let (mut largest, mut statistic) = (0.0_f64, 0.0);
    let mut points = Vec::new();
    for (&sum_ms, &wanted) in sums.iter().zip(&wanted) {
        let sum_us = (sum_ms * 1000.0) as u64;
        let p = Cdg::back_off_probability(sum_us as i64, factor);
        largest = largest.max((p - wanted).abs());
        let seen = count(sum_us, factor, draws) as f64;
        let n = draws as f64;
        statistic += (seen - n * p) * (seen - n * p) / (n * p * (1.0 - p));
        points.push([sum_ms, seen / n]);
    }
    Outcome {
        values: [
            sums.len().min(wanted.len()) as f64,
            largest,
            statistic,
            upper_tail(statistic, sums.len()),
        ]
        .map(Measured::exact)
        .to_vec(),
        curves: vec![Curve {
            name: String::from("back-offs counted"),
            x: "sum of eight gradients (ms)",
            y: "share of round trips",
            points,
        }],
    }
}

/// Back-offs in `draws` round trips.
fn count(sum_us: u64, factor: u64, draws: u64) -> u64 {
    let config = Config {
        mss: Bytes(MSS),
        initial_window: Bytes(10 * MSS),
        hystart: HyStart::Off,
        paced: false,
        abc_limit: None,
        reduce_from_window: true,
        count_segments: true,
        fractions: false,
        cubic_arithmetic: CubicArithmetic::Rfc9438,
        handshake_rtt: None,
        passive: false,
        seed: 1,
    };
    let mut values = Values::defaults(Cdg::PARAMETERS);
    for (name, value) in [("ineffective", 0), ("backoff_factor", factor)] {
        values
            .set(name, Value::Integer(value))
            .expect("a parameter of CDG");
    }
    let mut cdg = Cdg::new(&values, &config);
    let (mut rtt_us, mut seen, mut now) = (100_000, 0, Instant::from_millis(1));
    for round in 0..FILLED + draws {
        now += Duration::from_millis(5);
        let rtt = Some(Duration::from_micros(rtt_us));
        let ack = Ack {
            acked: Bytes(MSS),
            delivered: Bytes(MSS),
            sacked: Bytes::ZERO,
            sacked_total: Bytes::ZERO,
            segments: 1,
            delivered_total: Bytes((round + 1) * MSS),
            lost: Bytes::ZERO,
            in_flight: Bytes::ZERO,
            prior_in_flight: Bytes(MSS),
            rtt,
            newest_rtt: rtt,
            one_way_delay: None,
            rate: None,
            round_start: true,
            app_limited: false,
            cwnd_limited: true,
            recovering: false,
            ce_bytes: Bytes::ZERO,
            srtt: rtt,
            min_rtt: Some(Duration::from_micros(100_000)),
        };
        seen += u64::from(cdg.on_ack(now, &ack) == Reaction::ReduceWindow && round >= FILLED);
        rtt_us += sum_us / 8;
    }
    seen
}

/// P(X >= x) of a chi-square variable with an even number of degrees of freedom.
fn upper_tail(x: f64, degrees: usize) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..degrees / 2 {
        term *= x / 2.0 / k as f64;
        sum += term;
    }
    libm::exp(-x / 2.0) * sum
}

const MSS: u64 = 1000;
/// Nothing to compare with in the first round trip, and eight fill the ring.
const FILLED: u64 = 9;

#[cfg(test)]
mod tests {
    use super::upper_tail;

    #[test]
    fn the_upper_tail_is_that_of_the_tables() {
        for (x, degrees, p) in [(16.812, 6, 0.01), (5.348, 6, 0.5), (5.991, 2, 0.05)] {
            assert!((upper_tail(x, degrees) - p).abs() < 1e-4, "{x} of {degrees}");
        }
    }
}
