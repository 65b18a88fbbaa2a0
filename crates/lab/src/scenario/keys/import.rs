//! Keys of `[import]`: what `fleetfoot import` says of the scenario that it wrote.

use super::Default::{Described, Required, Value};
use super::{Key, Kind, key};

/// `[import]`.
pub(crate) static IMPORT: &[Key] = &[
    key(
        "fit",
        Kind::Choice(&["close", "fair", "poor", "unknown"]),
        Required,
        "How well a replay of this file fits the recording; `unknown` where it was not replayed. `compare` names no winner while it is poor.",
    ),
    key(
        "measure",
        Kind::Text,
        Described("none"),
        "The measure that differs most for what it may.",
    ),
    key(
        "difference",
        Kind::Number(0.0, MOST_DIFFERENCE),
        Described("none"),
        "By how much that measure differs between recording and replay, as a share: 0.1 is a tenth.",
    ),
    key(
        "reasons",
        Kind::List(&Kind::Text),
        Value("[]"),
        "Everything that is not close, in words.",
    ),
    key(
        "try",
        Kind::List(&Kind::Text),
        Value("[]"),
        "What would probably make the fit better.",
    ),
    key(
        "controllers",
        Kind::List(&Kind::Table(CONTROLLER)),
        Value("[]"),
        "Congestion controls that were tried, the one that fits best first.",
    ),
    key(
        "of",
        Kind::Text,
        Described("none"),
        "Identity of network, hosts and traffic that the fit was measured with. After a change to them it holds no longer, and `compare` says so.",
    ),
];

/// An entry of `import.controllers`.
pub(crate) static CONTROLLER: &[Key] = &[
    key(
        "name",
        Kind::Text,
        Required,
        "The congestion control, with what one group had instead, the `rtt_scale` and the `losses` of all groups, where those were tried.",
    ),
    key(
        "difference",
        Kind::Number(0.0, MOST_DIFFERENCE),
        Required,
        "By how much the replay differs from the recording with it, as a share, on average over all measures.",
    ),
];

/// More is no measurement.
const MOST_DIFFERENCE: f64 = 1e9;
