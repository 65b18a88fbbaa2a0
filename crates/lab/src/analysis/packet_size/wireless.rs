//! Which packet size gives TCP the most over a channel with independent bit errors.
//!
//! A packet of N bits is lost with P = 1 - (1 - p)^N, and the rate is proportional to 1 / sqrt(P): goodput N (1 - P) / sqrt(P). With
//! theta = N p the best is where 1 / theta - 1 = 1 / (2 (e^theta - 1)), whatever p. Beside it stands the formula of Padhye
//! et al., which knows timeouts and headers: there the best size is smaller, because at the optimum of the first half of all
//! packets is lost and TCP lives on timeouts.
//!
//! **Source.** Divakaran et al., INFOCOM Workshops 2009, section VII-A, equations (1) to (3) and lemma 7.1;
//! docs/design/packet-size.md#bit-errors. The formula: Padhye, Firoiu, Towsley,
//! Kurose, SIGCOMM 1998, equation (32). **Deviations.** None known. The model has neither headers nor link-layer
//! retransmission: it is reproduced as mathematics, not as advice.

use super::super::{Analysis, Curve, Measured, Outcome, Run, metric};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Bytes;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("wireless-optimum", OPTIONS, include_str!("wireless.rs")),
    metrics: &[
        metric("theta", "Best N p."),
        metric("maximum", "Goodput there, in units of c / p."),
        metric("band_low", "Smallest N p with at least 90 % of the maximum."),
        metric("band_high", "Largest such N p."),
        metric(
            "optimum_bits_1e2",
            "Best whole N at p = 0.01, from the exact loss probability (bit).",
        ),
        metric("optimum_bits_1e3", "The same at p = 0.001."),
        metric("optimum_bits_1e4", "The same at p = 0.0001."),
        metric("loss_at_optimum", "Share of packets lost at the optimum."),
        metric(
            "error_rate_1500",
            "Bit error rate at which 1500 B is the best size.",
        ),
        metric(
            "error_rate_19500",
            "Bit error rate at which 19500 B is the best size.",
        ),
        metric(
            "padhye_theta",
            "Best N p by Padhye's formula with headers, at `bit_errors`.",
        ),
        metric(
            "padhye_bytes",
            "Best packet by Padhye's formula, at `bit_errors` (B).",
        ),
        metric(
            "root_bytes",
            "Best packet by the square root, at `bit_errors` (B).",
        ),
    ],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[
    parameter!("bit_errors": Number(1e-12, 0.1) = 1e-5, "Bit error rate for Padhye's formula (ours: 1e-5)"),
    parameter!("rtt": Duration(Duration::from_micros(1), Duration::from_secs(100)) = Duration::from_millis(100),
        "Round-trip time for Padhye's formula (ours: 100 ms)"),
    parameter!("timeout": Duration(Duration::from_micros(1), Duration::from_secs(100)) = Duration::from_millis(400),
        "First retransmission timeout for Padhye's formula (RFC 5348: 4 round-trip times)"),
    parameter!("header": Bytes(Bytes(0), Bytes(1000)) = Bytes(40),
        "Headers of a packet for Padhye's formula (IPv4 and TCP: 40 B)"),
];

fn run(options: &Values) -> Outcome {
    let theta = bisect(|theta| 1.0 / theta - 1.0 - 0.5 / libm::expm1(theta), 0.01, 3.0);
    let maximum = goodput(theta);
    let below = |theta: f64| goodput(theta) - 0.9 * maximum;
    let low = bisect(|x| -below(x), 1e-6, theta);
    let high = bisect(below, theta, 10.0);
    let p = options.number("bit_errors").unwrap_or(1e-5);
    let formula = Formula {
        p,
        rtt: options.duration("rtt").map_or(0.1, Duration::as_secs_f64),
        timeout: options.duration("timeout").map_or(0.4, Duration::as_secs_f64),
        header: options.bytes("header").map_or(0.0, |bytes| bytes.0 as f64),
    };
    let smallest = formula.header as u64 + 1;
    let padhye_bytes = largest(|bytes| formula.goodput(bytes as f64), smallest, 1_000_000_000) as f64;
    let exact = |p: f64| largest(|bits| exact(p, bits as f64), 1, (100.0 / p) as u64) as f64;
    let values = [
        theta,
        maximum,
        low,
        high,
        exact(1e-2),
        exact(1e-3),
        exact(1e-4),
        -libm::expm1(-theta),
        theta / (8.0 * 1500.0),
        theta / (8.0 * 19_500.0),
        8.0 * padhye_bytes * p,
        padhye_bytes,
        largest(|bytes| self::exact(p, 8.0 * bytes as f64), 1, 1_000_000_000) as f64,
    ];
    Outcome {
        values: values.map(Measured::exact).to_vec(),
        curves: curves(&formula, padhye_bytes),
    }
}

/// Both goodputs over theta, each as a share of its own maximum.
fn curves(formula: &Formula, best: f64) -> Vec<Curve> {
    let thetas = || (1..=60).map(|step| 0.05 * f64::from(step));
    let top = formula.goodput(best);
    let curve = |name: &str, of: &dyn Fn(f64) -> f64| Curve {
        name: name.to_owned(),
        x: "theta = bits in a packet * bit error rate",
        y: "goodput (in c/p; Padhye: share of its maximum)",
        points: thetas().map(|theta| [theta, of(theta)]).collect(),
    };
    vec![
        curve("1 / sqrt(loss), equation (3)", &goodput),
        curve("Padhye's formula, with headers", &|theta| {
            (formula.goodput(theta / (8.0 * formula.p)) / top).max(0.0)
        }),
    ]
}

/// Equation (3), in units of c / p.
fn goodput(theta: f64) -> f64 {
    theta * libm::exp(-theta) / libm::sqrt(-libm::expm1(-theta))
}

/// Equation (2) with the exact loss probability, c = 1.
fn exact(p: f64, bits: f64) -> f64 {
    let log = bits * libm::log1p(-p);
    bits * libm::exp(log) / libm::sqrt(-libm::expm1(log))
}

/// Goodput by Padhye's formula.
struct Formula {
    p: f64,
    rtt: f64,
    timeout: f64,
    header: f64,
}

impl Formula {
    /// Payload bytes per second with packets of this size.
    fn goodput(&self, bytes: f64) -> f64 {
        let loss = -libm::expm1(8.0 * bytes * libm::log1p(-self.p));
        // Equation (32), b = 1: an ACK for each packet.
        let round = self.rtt * libm::sqrt(2.0 * loss / 3.0);
        let waits = (3.0 * libm::sqrt(3.0 * loss / 8.0)).min(1.0);
        let timeouts = self.timeout * waits * loss * (1.0 + 32.0 * loss * loss);
        (bytes - self.header).max(0.0) * (1.0 - loss) / (round + timeouts)
    }
}

/// Where `f`, which falls from positive to negative, is zero.
fn bisect(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if f(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The whole number at which `f`, which rises and then falls, is largest; the first of equals.
fn largest(f: impl Fn(u64) -> f64, mut low: u64, mut high: u64) -> u64 {
    while low < high {
        let middle = low.midpoint(high);
        if f(middle) < f(middle + 1) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::{exact, goodput};

    #[test]
    fn the_optimum_found_by_search_is_one_of_all() {
        let best = (1..2000).max_by(|&a, &b| exact(1e-2, f64::from(a)).total_cmp(&exact(1e-2, f64::from(b))));
        assert_eq!(best, Some(64));
        let best =
            (1..20_000).max_by(|&a, &b| exact(1e-3, f64::from(a)).total_cmp(&exact(1e-3, f64::from(b))));
        assert_eq!(best, Some(643));
    }

    #[test]
    fn the_limit_of_small_errors_is_the_closed_form() {
        for theta in [0.1, 0.64, 2.0] {
            let p = 1e-7;
            let ratio = exact(p, theta / p) * p / goodput(theta);
            assert!((ratio - 1.0).abs() < 1e-5, "{ratio}");
        }
    }
}
