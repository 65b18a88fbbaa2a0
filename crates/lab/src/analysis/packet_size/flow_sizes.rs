//! How many data units transfers need when large ones travel in large frames.
//!
//! Sizes of transfers are Pareto or Lomax distributed. A transfer above `threshold` takes ceil(size / frame) data units, any other
//! ceil(size / packet); compared with ceil(size / packet) for all. Each data unit is acknowledged by one more, and each
//! transfer has `control` packets besides. Expectations are exact sums over the survival function; samples of `flows`
//! transfers show how far one sample may be from them, since the variance is infinite.
//!
//! **Source.** Divakaran et al., INFOCOM Workshops 2009, section V-A and figure 2; docs/design/packet-size.md#lomax. **Deviations.** None known.

use super::super::{Analysis, Curve, Measured, Outcome, Run, metric};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, ParameterKind, Value, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::rng::{Distribution, Rng, Sampler};
use fleetfoot_core::units::Bytes;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("flow-sizes", OPTIONS, include_str!("flow_sizes.rs")),
    metrics: &[
        metric(
            "byte_share",
            "Share of all bytes that is in transfers above the threshold, expected.",
        ),
        metric(
            "ratio_data",
            "Data units with frames over those with packets alone, expected.",
        ),
        metric(
            "ratio_control",
            "The same with the control packets of each transfer.",
        ),
        metric(
            "ratio_all",
            "The same with control packets and one ACK for each data unit.",
        ),
        metric("floor", "Smallest possible ratio: packet over frame."),
        metric(
            "sampled_byte_share",
            "Median over the samples of the share of bytes above the threshold.",
        ),
        metric(
            "sampled_ratio",
            "Median over the samples of the ratio of data units.",
        ),
        metric(
            "sampled_ratio_all",
            "Median over the samples of the ratio with ACKs and control packets.",
        ),
        metric("sampled_total_bytes", "Median over the samples of all bytes."),
        metric("drawn", "Transfers drawn."),
    ],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[
    parameter!("form": Choice(&["lomax", "pareto"]) = "lomax",
        "Lomax begins at zero and fits both published shares; the classical Pareto begins at mean * (shape - 1) / shape"),
    size(
        "mean",
        1_000_000,
        "Mean size of a transfer (Divakaran et al. 2009: 100 kB and 1 MB)",
    ),
    parameter!("shape": Number(1.01, 100.0) = 1.2, "Tail index (Divakaran et al. 2009: 1.2)"),
    size(
        "threshold",
        50_000,
        "Transfers above it travel in frames (Divakaran et al. 2009: 50 kB)",
    ),
    size(
        "packet",
        1_500,
        "Bytes of a transfer in a packet (Divakaran et al. 2009: 1500 B)",
    ),
    size(
        "frame",
        19_500,
        "Bytes of a transfer in a frame (Divakaran et al. 2009: 13 packets)",
    ),
    parameter!("control": Integer(0, 1000) = 7,
        "Control packets of a transfer: three to open, four to close (RFC 9293)"),
    parameter!("flows": Integer(1, 100_000_000) = 20_000,
        "Transfers of a sample (200000 make the published 20 GB and 200 GB)"),
    parameter!("samples": Integer(1, 10_000) = 12, "Samples"),
];

const fn size(name: &'static str, default: u64, doc: &'static str) -> Parameter {
    Parameter {
        name,
        kind: ParameterKind::Bytes(Bytes(1), Bytes(1_000_000_000_000)),
        default: Value::Bytes(Bytes(default)),
        doc,
    }
}

/// Mean sizes of the curves (bytes).
const MEANS: [f64; 7] = [50e3, 100e3, 200e3, 500e3, 1e6, 2e6, 5e6];

/// What is asked.
#[derive(Clone, Copy)]
struct Question {
    lomax: bool,
    mean: f64,
    shape: f64,
    threshold: f64,
    packet: f64,
    frame: f64,
    control: f64,
}

/// Data units of some transfers, or of one on average.
#[derive(Clone, Copy, Default)]
struct Units {
    bytes: f64,
    /// Bytes of transfers above the threshold.
    large_bytes: f64,
    /// With packets alone.
    packets: f64,
    /// With frames for transfers above the threshold.
    frames: f64,
    /// Transfers.
    flows: f64,
}

fn run(options: &Values) -> Outcome {
    let bytes = |name| options.bytes(name).map_or(1.0, |bytes| bytes.0 as f64);
    let question = Question {
        lomax: options.choice("form") == "lomax",
        mean: bytes("mean"),
        shape: options.number("shape").unwrap_or(1.2),
        threshold: bytes("threshold"),
        packet: bytes("packet"),
        frame: bytes("frame"),
        control: options.integer("control").unwrap_or(0) as f64,
    };
    let expected = question.expected();
    let (flows, samples) = (
        options.integer("flows").unwrap_or(1),
        options.integer("samples").unwrap_or(1),
    );
    let drawn: Vec<Units> = (0..samples).map(|sample| question.draw(sample, flows)).collect();
    let median = |of: &dyn Fn(&Units) -> f64| spread(drawn.iter().map(of).collect());
    let mut outcome = Outcome {
        values: vec![
            Measured::exact(expected.large_bytes / expected.bytes),
            Measured::exact(question.ratio(&expected, 1.0, 0.0)),
            Measured::exact(question.ratio(&expected, 1.0, question.control)),
            Measured::exact(question.ratio(&expected, 2.0, question.control)),
            Measured::exact(question.packet / question.frame),
            median(&|units| units.large_bytes / units.bytes),
            median(&|units| question.ratio(units, 1.0, 0.0)),
            median(&|units| question.ratio(units, 2.0, question.control)),
            median(&|units| units.bytes),
            Measured::exact((flows * samples) as f64),
        ],
        curves: Vec::new(),
    };
    for (name, lomax) in [("Lomax", true), ("classical Pareto", false)] {
        let points = MEANS.map(|mean| {
            let at = Question {
                lomax,
                mean,
                ..question
            };
            [mean, at.ratio(&at.expected(), 2.0, at.control)]
        });
        outcome.curves.push(Curve {
            name: format!("data units, ACKs and control packets, {name}"),
            x: "mean size of a transfer (B)",
            y: "with frames over packets alone",
            points: points.to_vec(),
        });
    }
    outcome
}

/// The median of samples, and the interval that 95 % of them lie in.
fn spread(mut values: Vec<f64>) -> Measured {
    values.sort_by(f64::total_cmp);
    let at = |level: f64| values[((values.len() - 1) as f64 * level).round() as usize];
    Measured {
        value: at(0.5),
        ci95: Some([at(0.025), at(0.975)]),
    }
}

impl Question {
    /// Headers with frames over headers with packets alone: `per` for each data unit, `more` for each transfer.
    fn ratio(&self, units: &Units, per: f64, more: f64) -> f64 {
        (per * units.frames + more * units.flows) / (per * units.packets + more * units.flows)
    }

    /// The scale of the distribution.
    fn scale(&self) -> f64 {
        if self.lomax {
            self.mean * (self.shape - 1.0)
        } else {
            self.mean * (self.shape - 1.0) / self.shape
        }
    }

    /// P(X > x).
    fn survival(&self, x: f64) -> f64 {
        let scale = self.scale();
        if self.lomax {
            libm::pow(1.0 + x / scale, -self.shape)
        } else if x <= scale {
            1.0
        } else {
            libm::pow(x / scale, -self.shape)
        }
    }

    /// The integral of the survival function from `x` on.
    fn rest(&self, x: f64) -> f64 {
        let scale = self.scale();
        if self.lomax {
            (x + scale) / (self.shape - 1.0) * self.survival(x)
        } else if x < scale {
            scale - x + scale / (self.shape - 1.0)
        } else {
            x / (self.shape - 1.0) * self.survival(x)
        }
    }

    /// E[ceil(X / unit); X > from]: the sum of P(X > max(k unit, from)) over k.
    fn units_above(&self, unit: f64, from: f64) -> f64 {
        let survival = |k: f64| self.survival((k * unit).max(from));
        let sum: f64 = (0..TERMS).map(|k| survival(f64::from(k))).sum();
        // Euler and Maclaurin for the rest of the sum, which is smooth there.
        let start = (f64::from(TERMS) * unit).max(from);
        sum + self.rest(start) / unit + self.survival(start) / 2.0
    }

    /// A transfer on average.
    fn expected(&self) -> Units {
        let Question {
            threshold,
            packet,
            frame,
            ..
        } = *self;
        let packets = self.units_above(packet, 0.0);
        let small = packets - self.units_above(packet, threshold);
        Units {
            bytes: self.mean,
            large_bytes: threshold * self.survival(threshold) + self.rest(threshold),
            packets,
            frames: small + self.units_above(frame, threshold),
            flows: 1.0,
        }
    }

    /// Draws this number of transfers.
    fn draw(&self, sample: u64, flows: u64) -> Units {
        let (scale, shape) = (self.scale(), self.shape);
        let distribution = if self.lomax {
            Distribution::Lomax { scale, shape }
        } else {
            Distribution::Pareto { scale, shape }
        };
        let mut sampler = Sampler::new(distribution, Rng::for_element(sample, "flow-sizes", "transfers"));
        let mut units = Units {
            flows: flows as f64,
            ..Units::default()
        };
        for _ in 0..flows {
            let size = libm::ceil(sampler.sample()).max(1.0);
            let packets = libm::ceil(size / self.packet);
            units.bytes += size;
            units.packets += packets;
            if size > self.threshold {
                units.large_bytes += size;
                units.frames += libm::ceil(size / self.frame);
            } else {
                units.frames += packets;
            }
        }
        units
    }
}

/// Terms that are summed one by one.
const TERMS: u32 = 20_000;

#[cfg(test)]
mod tests {
    use super::Question;

    fn question(lomax: bool, mean: f64) -> Question {
        Question {
            lomax,
            mean,
            shape: 1.2,
            threshold: 50e3,
            packet: 1500.0,
            frame: 19_500.0,
            control: 7.0,
        }
    }

    #[test]
    fn shares_and_ratios_are_the_computed_ones() {
        let cases = [
            (true, 100e3, 0.8896, 0.185),
            (false, 100e3, 0.8027, 0.2645),
            (true, 1e6, 0.9946, 0.0826),
            (false, 1e6, 1.0, 0.0776),
        ];
        for (lomax, mean, share, ratio) in cases {
            let question = question(lomax, mean);
            let units = question.expected();
            let found = units.large_bytes / units.bytes;
            assert!((found - share).abs() < 0.0001, "{lomax} {mean}: {found}");
            let found = question.ratio(&units, 1.0, 0.0);
            assert!((found - ratio).abs() < 0.0003, "{lomax} {mean}: {found}");
        }
        let units = question(true, 1e6).expected();
        let all = question(true, 1e6).ratio(&units, 2.0, 7.0);
        assert!((all - 0.0874).abs() < 0.0001, "{all}");
    }

    #[test]
    fn sums_agree_with_draws_where_the_variance_is_finite() {
        let question = Question {
            shape: 4.0,
            ..question(true, 100e3)
        };
        let (expected, drawn) = (question.expected(), question.draw(1, 400_000));
        for (a, b) in [
            (expected.bytes, drawn.bytes),
            (expected.large_bytes, drawn.large_bytes),
            (expected.packets, drawn.packets),
            (expected.frames, drawn.frames),
        ] {
            assert!((b / drawn.flows / a - 1.0).abs() < 0.01, "{a} {b}");
        }
    }
}
