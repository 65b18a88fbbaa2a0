//! Every key of a scenario file: its type, range, default and meaning.
//!
//! The only list. The reader refuses what is not in it, the JSON schema and the reference page are made from it, and
//! defaults are read from it by the same code that reads files. Keys of queue disciplines and congestion controls come
//! from the parameter tables of their registries.

use fleetfoot_core::parameter::ParameterKind;
use fleetfoot_core::time::Duration;

mod distribution;
mod figure;
mod import;
mod network;
#[cfg(target_os = "linux")]
mod router;
mod tcp;
mod traffic;

pub(crate) use distribution::{ARRIVALS, SIZE_DISTRIBUTION, TIME_DISTRIBUTION};
pub(crate) use figure::{CHECK, EXPECT, FIGURE, PER, PLOT, QUICK, RELATIVE, SOURCE};
pub(crate) use import::{CONTROLLER, IMPORT};
pub(crate) use network::{ARQ, FEC, LINK, LINK_ENTRY, LOSS, NETWORK, NODE, REORDER, REVERSE, TRACE};
#[cfg(target_os = "linux")]
pub(crate) use router::{LOG, METRICS, ROUTE, ROUTER, ROUTER_INTERFACE};
pub(crate) use tcp::{DELAYED_ACK, RDB, SUPER_PACKETS, TCP};
pub(crate) use traffic::{RELAY, TRAFFIC, TRAFFIC_COMMON};

/// One key of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Default,
    /// One sentence.
    pub(crate) doc: &'static str,
}

/// What a key is when it is not written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Default {
    /// The key must be written.
    Required,
    /// This TOML value.
    Value(&'static str),
    /// Decided elsewhere, in these words.
    Described(&'static str),
}

/// Type and permitted range of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// Text of one line with something in it: titles, labels.
    Line,
    /// A line that stands in tables of results, where spreadsheets must not take it for a formula.
    Name,
    Flag,
    /// A whole number in this range.
    Integer(u64, u64),
    /// A number in this range.
    Number(f64, f64),
    /// A number from 0 to 1, or per cent as text.
    Probability,
    /// A time span in this range.
    Duration(Duration, Duration),
    /// An amount in bytes in this range.
    Bytes(u64, u64),
    /// A speed above zero.
    Rate,
    /// How often per time, above zero.
    Frequency,
    /// Packets, bytes or unlimited.
    Limit,
    Choice(&'static [&'static str]),
    /// A table with these keys.
    Table(&'static [Key]),
    /// A table whose keys depend on one of them.
    Tagged(&'static KindTable),
    /// A table of free keys, each with a value of this type.
    Map(&'static Kind),
    /// A list of values of this type.
    List(&'static Kind),
    /// One value of this type, or a list of them.
    OneOrMore(&'static Kind),
    /// One of these forms.
    Either(&'static [Kind]),
    /// One of these forms, as the core lists them.
    Forms(&'static [ParameterKind]),
    /// A registered queue discipline: `kind` and its parameters.
    Queue,
    /// A registered congestion control: its name, or `kind` and its parameters.
    CongestionControl,
    /// A constant quantity or a distribution of this dimension.
    Distribution(Dimension),
    /// A point of an empirical distribution: value and cumulative probability.
    Point(Dimension),
    /// A value of this dimension.
    Quantity(Dimension),
    /// Paths and values of a variant.
    Setting,
    /// Any value: what reads it says which.
    Any,
    /// A registered analysis: its name, or `kind` and its options.
    Analysis,
}

impl Kind {
    /// A parameter's type in scenario files.
    pub(crate) const fn of(parameter: ParameterKind) -> Kind {
        match parameter {
            ParameterKind::Limit => Kind::Limit,
            ParameterKind::Duration(low, high) => Kind::Duration(low, high),
            ParameterKind::Bytes(low, high) => Kind::Bytes(low.0, high.0),
            ParameterKind::Rate(..) => Kind::Rate,
            ParameterKind::Number(low, high) => Kind::Number(low, high),
            ParameterKind::Integer(low, high) => Kind::Integer(low, high),
            ParameterKind::Flag => Kind::Flag,
            ParameterKind::Choice(words) => Kind::Choice(words),
        }
    }

    /// The forms that a value may have: one, except for [`Kind::Either`] and [`Kind::Forms`].
    pub(crate) fn forms(self) -> Vec<Kind> {
        match self {
            Kind::Either(forms) => forms.to_vec(),
            Kind::Forms(forms) => forms.iter().copied().map(Kind::of).collect(),
            kind => vec![kind],
        }
    }
}

/// What a distribution is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dimension {
    Bytes,
    Time,
}

/// A table whose keys depend on the value of `tag`.
#[derive(Debug)]
pub(crate) struct KindTable {
    pub(crate) tag: &'static str,
    /// What the tag says, for messages and documents.
    pub(crate) what: &'static str,
    /// Keys of every kind.
    pub(crate) common: &'static [Key],
    pub(crate) kinds: &'static [KindKeys],
}

/// One kind of a tagged table.
#[derive(Debug)]
pub(crate) struct KindKeys {
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [Key],
    pub(crate) doc: &'static str,
}

const fn key(name: &'static str, kind: Kind, default: Default, doc: &'static str) -> Key {
    Key {
        name,
        kind,
        default,
        doc,
    }
}

use self::Default::{Described, Required, Value};

/// A day: longer spans are a mistake in a scenario.
const DAY: Duration = Duration::from_secs(86_400);
const NANOSECOND: Duration = Duration::from_nanos(1);
const MILLISECOND: Duration = Duration::from_millis(1);
const TIME: Kind = Kind::Duration(Duration::ZERO, DAY);
const POSITIVE_TIME: Kind = Kind::Duration(NANOSECOND, DAY);
const COUNT: Kind = Kind::Integer(1, 1_000_000);
const SIZES: Kind = Kind::Distribution(Dimension::Bytes);
const TIMES: Kind = Kind::Distribution(Dimension::Time);
/// Hosts: a group's or a host's name, or the index of a pair.
pub(crate) const HOSTS: Kind = Kind::OneOrMore(&Kind::Either(&[Kind::Text, Kind::Integer(0, 1_000_000)]));

/// The file.
pub(crate) static FILE: &[Key] = &[
    key(
        "title",
        Kind::Line,
        Described("the file's name"),
        "What the scenario is called in every output.",
    ),
    key(
        "description",
        Kind::Text,
        Described("none"),
        "The question it asks, in a sentence or two.",
    ),
    key(
        "extends",
        Kind::Text,
        Described("none"),
        "Another scenario file, relative to this one, that this one is laid upon: tables merge, named entries merge by name, other lists replace.",
    ),
    key(
        "network",
        Kind::Tagged(&NETWORK),
        Required,
        "Hosts, routers and links.",
    ),
    key(
        "link",
        Kind::List(&Kind::Table(LINK_ENTRY)),
        Value("[]"),
        "Links by name: all of a graph's, or what single links of another network have of their own.",
    ),
    key(
        "node",
        Kind::List(&Kind::Table(NODE)),
        Value("[]"),
        "Hosts and routers by name: what single ones have of their own.",
    ),
    key(
        "tcp",
        Kind::Table(TCP),
        Value("{}"),
        "Switches of every host's TCP; a traffic group may have its own.",
    ),
    key(
        "traffic",
        Kind::List(&Kind::Tagged(&TRAFFIC)),
        Required,
        "Groups of flows.",
    ),
    key(
        "variant",
        Kind::List(&Kind::Table(VARIANT)),
        Value("[]"),
        "What to compare with the file as it stands. Without any, `compare` tries every mechanism that applies.",
    ),
    key("run", Kind::Table(RUN), Value("{}"), "How long and how often."),
    key(
        "import",
        Kind::Table(IMPORT),
        Described("none"),
        "How well the scenario fits the recording it was made of, as `fleetfoot import` writes it.",
    ),
    key(
        "figure",
        Kind::Table(FIGURE),
        Described("none"),
        "Makes the file an experiment: what was published, and over which points it is run.",
    ),
    key(
        "check",
        Kind::List(&Kind::Table(CHECK)),
        Value("[]"),
        "What of a figure is checked.",
    ),
    key(
        "plot",
        Kind::List(&Kind::Table(PLOT)),
        Value("[]"),
        "How the figure is drawn again. Without any it is drawn as suits its checks.",
    ),
];

/// The file of a closed form: an analysis without runs.
pub(crate) static CLOSED_FORM: &[Key] = &[
    key(
        "title",
        Kind::Line,
        Described("the file's name"),
        "What it is called in every output.",
    ),
    key("description", Kind::Text, Described("none"), "What it computes."),
    key(
        "extends",
        Kind::Text,
        Described("none"),
        "Another file that this one is laid upon.",
    ),
    key("figure", Kind::Table(FIGURE), Required, "What was published."),
    key(
        "check",
        Kind::List(&Kind::Table(CHECK)),
        Required,
        "What is checked.",
    ),
    key(
        "plot",
        Kind::List(&Kind::Table(PLOT)),
        Value("[]"),
        "How the figure is drawn again. Without any it is drawn as suits its checks.",
    ),
];

/// `[run]`.
pub(crate) static RUN: &[Key] = &[
    key(
        "duration",
        Kind::Duration(MILLISECOND, DAY),
        Value("\"60 s\""),
        "Arrivals stop here; links and goodput are measured until here.",
    ),
    key(
        "warmup",
        TIME,
        Value("\"0 s\""),
        "Flows that start earlier are not counted, and links are measured from here on.",
    ),
    key(
        "drain",
        TIME,
        Value("\"60 s\""),
        "How long after `duration` unfinished flows may go on.",
    ),
    key(
        "seeds",
        Kind::Integer(1, 100_000),
        Value("10"),
        "How many runs of each variant, with seeds counting up from `seed`.",
    ),
    key(
        "seed",
        Kind::Integer(0, i64::MAX as u64),
        Value("1"),
        "The first seed.",
    ),
    key(
        "bottleneck",
        Kind::OneOrMore(&Kind::Text),
        Described(
            "`bottleneck` in a dumbbell; else every link above 90 % utilisation in the file as it stands",
        ),
        "Names of the links whose queue and utilisation are reported as the bottleneck's.",
    ),
    key(
        "loss_free",
        Kind::Text,
        Described("none"),
        "Name of the variant without loss and without mechanisms: completion times are given as multiples of its times too, flow by flow (`more.normalised_fct`).",
    ),
    key(
        "bins",
        Kind::Duration(MILLISECOND, DAY),
        Described("none"),
        "Keep bulk connections in bins of so long, and which of the first segments of every connection were lost: for checks of fairness over time, of losses that come together, and of first windows.",
    ),
    key(
        "world",
        Kind::Choice(&["simulator", "kernel", "host-sends", "host-receives"]),
        Value("\"simulator\""),
        "Whose TCP plays the traffic: ours in the simulator, or that of this machine's Linux kernel, in real time, between two network namespaces through the described link. The kernel is profile `linux`; what it cannot play is refused. With `host-sends` and `host-receives` our TCP is at the data senders or at the receivers, on a TUN device, with the switches of `[tcp]`, and the kernel's at the other end.",
    ),
];

/// `[[variant]]`.
pub(crate) static VARIANT: &[Key] = &[
    key("name", Kind::Name, Required, "Its name in the table."),
    key(
        "set",
        Kind::Setting,
        Required,
        "Paths and their new values: `{ \"network.bottleneck.queue.kind\" = \"codel\" }`.",
    ),
];
