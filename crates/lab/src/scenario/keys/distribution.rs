//! Keys of arrivals and distributions.

use super::Default::{Described, Required, Value};
use super::{Dimension, Kind, KindKeys, KindTable, key};

/// Arrival processes.
pub(crate) static ARRIVALS: KindTable = KindTable {
    tag: "dist",
    what: "arrival process",
    common: &[],
    kinds: &[
        KindKeys {
            name: "poisson",
            doc: "Independent arrivals.",
            keys: &[key("rate", Kind::Frequency, Required, "Mean number per time.")],
        },
        KindKeys {
            name: "constant",
            doc: "Evenly spaced.",
            keys: &[key("rate", Kind::Frequency, Required, "Number per time.")],
        },
        KindKeys {
            name: "lognormal",
            doc: "Gaps are log-normal: burstier than Poisson for `sigma` above about 0.8.",
            keys: &[
                key("rate", Kind::Frequency, Required, "Mean number per time."),
                key(
                    "sigma",
                    Kind::Number(0.0, 10.0),
                    Required,
                    "Deviation of the logarithm of the gaps.",
                ),
            ],
        },
        KindKeys {
            name: "weibull",
            doc: "Gaps are Weibull-distributed.",
            keys: &[
                key("rate", Kind::Frequency, Required, "Mean number per time."),
                key("shape", Kind::Number(0.05, 100.0), Required, "Below 1: bursty."),
            ],
        },
        KindKeys {
            name: "pareto",
            doc: "Gaps are Pareto-distributed.",
            keys: &[
                key("rate", Kind::Frequency, Required, "Mean number per time."),
                key("shape", Kind::Number(1.01, 100.0), Required, "Tail index."),
            ],
        },
        KindKeys {
            name: "list",
            doc: "Gaps from a list, again from its beginning at its end.",
            keys: &[key(
                "values",
                Kind::List(&Kind::Quantity(Dimension::Time)),
                Required,
                "Gaps, the first before the first arrival.",
            )],
        },
    ],
};

/// Distributions of amounts.
pub(crate) static SIZE_DISTRIBUTION: KindTable = distributions(Dimension::Bytes, SIZE_VARIETIES);
/// Distributions of times.
pub(crate) static TIME_DISTRIBUTION: KindTable = distributions(Dimension::Time, TIME_VARIETIES);

const fn distributions(_dimension: Dimension, kinds: &'static [KindKeys]) -> KindTable {
    KindTable {
        tag: "dist",
        what: "distribution",
        common: &[],
        kinds,
    }
}

macro_rules! varieties {
    ($name:ident, $dimension:expr, [$($extra:expr),*]) => {
        static $name: &[KindKeys] = &[
            KindKeys { name: "constant", doc: "Always the same.", keys: &[
                key("value", Kind::Quantity($dimension), Required, "The value."),
            ] },
            KindKeys { name: "uniform", doc: "Between two values.", keys: &[
                key("min", Kind::Quantity($dimension), Required, "Smallest."),
                key("max", Kind::Quantity($dimension), Required, "Largest."),
            ] },
            KindKeys { name: "exponential", doc: "Memoryless.", keys: &[
                key("mean", Kind::Quantity($dimension), Required, "Mean."),
            ] },
            KindKeys { name: "pareto", doc: "P(X > x) = (scale / x)^shape for x above scale.", keys: &[
                key("scale", Kind::Quantity($dimension), Described("from `mean`"), "Smallest value; give this or `mean`."),
                key("mean", Kind::Quantity($dimension), Described("from `scale`"), "Mean; needs a shape above 1."),
                key("shape", Kind::Number(0.05, 100.0), Required, "Tail index."),
            ] },
            KindKeys { name: "lomax", doc: "P(X > x) = (1 + x / scale)^-shape: a Pareto that begins at zero.", keys: &[
                key("scale", Kind::Quantity($dimension), Described("from `mean`"), "Scale; give this or `mean`."),
                key("mean", Kind::Quantity($dimension), Described("from `scale`"), "Mean; needs a shape above 1."),
                key("shape", Kind::Number(0.05, 100.0), Required, "Tail index."),
            ] },
            KindKeys { name: "lognormal", doc: "The logarithm is normal.", keys: &[
                key("mean", Kind::Quantity($dimension), Described("from the others"), "Mean; give this, `median` or `mu`."),
                key("median", Kind::Quantity($dimension), Described("from the others"), "Median."),
                key("mu", Kind::Number(-50.0, 50.0), Described("from the others"), "Mean of the natural logarithm of bytes or seconds."),
                key("sigma", Kind::Number(0.0, 10.0), Required, "Deviation of the logarithm."),
            ] },
            KindKeys { name: "normal", doc: "Normal; draws below `min` are drawn again.", keys: &[
                key("mean", Kind::Quantity($dimension), Required, "Mean before truncation."),
                key("deviation", Kind::Quantity($dimension), Required, "Deviation before truncation."),
                key("min", Kind::Quantity($dimension), Described("0"), "Smallest value; not above the mean."),
            ] },
            KindKeys { name: "weibull", doc: "P(X > x) = exp(-(x / scale)^shape).", keys: &[
                key("scale", Kind::Quantity($dimension), Described("from `mean`"), "Scale; give this or `mean`."),
                key("mean", Kind::Quantity($dimension), Described("from `scale`"), "Mean."),
                key("shape", Kind::Number(0.05, 100.0), Required, "Below 1: heavier tail than exponential."),
            ] },
            KindKeys { name: "empirical", doc: "A table of values and cumulative probabilities, linear between them.", keys: &[
                $($extra,)*
                key("points", Kind::List(&Kind::Point($dimension)), Described("none"), "Pairs `[value, probability]`, ascending, the last probability 1."),
            ] },
            KindKeys { name: "list", doc: "Values in turn, then again from the beginning.", keys: &[
                key("values", Kind::List(&Kind::Quantity($dimension)), Required, "The values."),
                key("shuffle", Kind::Flag, Value("false"), "Draw at random with replacement instead of in turn."),
            ] },
        ];
    };
}

varieties!(
    SIZE_VARIETIES,
    Dimension::Bytes,
    [key(
        "table",
        Kind::Choice(crate::workload::NAMES),
        Described("none"),
        "A distribution the field uses, by name; give this or `points`."
    )]
);
varieties!(TIME_VARIETIES, Dimension::Time, []);
