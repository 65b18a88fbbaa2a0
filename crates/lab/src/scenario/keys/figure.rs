//! Keys of figures: what was published, over which points it is run, what is checked and drawn.

use super::Default::{Described, Required, Value};
use super::{COUNT, Key, Kind, key};

/// `[figure]`.
pub(crate) static FIGURE: &[Key] = &[
    key("source", Kind::Table(SOURCE), Required, "Where it was published."),
    key(
        "claim",
        Kind::Text,
        Required,
        "What was published, in one sentence.",
    ),
    key(
        "kind",
        Kind::Choice(&["simulated", "closed-form", "live"]),
        Value("\"simulated\""),
        "`simulated`: runs are made. `closed-form`: only an analysis; the file has neither network nor traffic. `live`: runs with real packets are among them, so it is run only where it is named.",
    ),
    key(
        "primary",
        Kind::OneOrMore(&Kind::Text),
        Described("every check that counts"),
        "Names of the checks that carry the claim: when all of them are violated it is not reproduced. A name with placeholders stands for all checks of a `for` that it fits.",
    ),
    key(
        "analysis",
        Kind::Analysis,
        Described("none"),
        "A registered analysis, by name or as a table with `kind` and its options; it gives checks further metrics.",
    ),
    key(
        "not_comparable",
        Kind::Text,
        Described("none"),
        "Why published and measured values cannot be compared, whatever the checks say.",
    ),
    key(
        "note",
        Kind::Text,
        Described("none"),
        "What a reader of the verdict should know.",
    ),
    key(
        "as_described",
        Kind::Text,
        Value("\"as described\""),
        "What tables and checks call the file as it stands.",
    ),
    key(
        "sweep",
        Kind::Setting,
        Value("{}"),
        "Paths and lists of values: every combination is a point. With `zip = true` the lists go in step.",
    ),
    key(
        "points",
        Kind::Map(&Kind::Setting),
        Described("none"),
        "Names of points of the sweep, for checks: `\"busy\" = { \"traffic.long.start\" = \"0 s\" }`. Without a sweep these are the points.",
    ),
    key(
        "quick",
        Kind::Table(QUICK),
        Value("{}"),
        "What `reproduce --quick` changes.",
    ),
];

pub(crate) static SOURCE: &[Key] = &[
    key(
        "document",
        Kind::Text,
        Required,
        "Number of the published document: `000`; `own` for an experiment of this project.",
    ),
    key("where", Kind::Text, Required, "Figure, table or section."),
    key(
        "publication",
        Kind::Text,
        Described("none"),
        "Report number, journal or address.",
    ),
];

pub(crate) static QUICK: &[Key] = &[
    key(
        "seeds",
        COUNT,
        Described("3, or those of `run` if fewer"),
        "How many runs.",
    ),
    key(
        "set",
        Kind::Setting,
        Value("{}"),
        "Paths and their new values: a shorter run, fewer draws of an analysis.",
    ),
];

/// Statistics of a check.
const STATISTICS: &[&str] = &[
    "mean",
    "p40",
    "p50",
    "p60",
    "p70",
    "p80",
    "p89",
    "p90",
    "p91",
    "p95",
    "p97",
    "p99",
    "p99.9",
    "max",
    "min",
    "sum",
    "share",
    "slope",
    "trend",
    "size-slope",
    "jain",
];

/// `[[check]]`.
pub(crate) static CHECK: &[Key] = &[
    key("name", Kind::Text, Required, "Its name."),
    key(
        "for",
        Kind::Map(&Kind::Any),
        Described("none: one check"),
        "The check is made for every combination, the last entry varying fastest: `{ variant = [\"a\", \"b\"], point = \"each\" }`. A list holds values of the key it is named by; a table gives each value the word before it; `\"each\"` stands for all variants, groups or points. An entry named by no key of a check is a word for texts, or a table of words, each with keys of the check and further words. `{variant}` in any text of the check becomes the word.",
    ),
    key(
        "cases",
        Kind::List(&Kind::Map(&Kind::Any)),
        Value("[]"),
        "What some combinations of `for` have of their own: entries of `for` select by word or list of words, everything else is set: `{ variant = \"a\", expect = \"< 1\" }`. A later case takes precedence.",
    ),
    key(
        "claim",
        Kind::Text,
        Described("its name"),
        "What is checked, in one sentence.",
    ),
    key(
        "metric",
        Kind::Text,
        Described("none: it must be given here, in `for` or in `cases`"),
        "A field of the result JSON: of the group, of the link, or of the variant if neither is given (`fct_s`, `drops.data`, `counters.marked`, `fairness_jain`), or a name of the analysis. Numbers that the result adds up over runs count per run.",
    ),
    key(
        "statistic",
        Kind::Choice(STATISTICS),
        Value("\"mean\""),
        "Of the values of all runs together; `sum` is that of one run, on average; `share` is the group's of all groups; `slope` is that of the logarithms over the points of a sweep, `trend` that of the values themselves, both against the first setting of each point; `size-slope` that over all groups of the kind of `group`, against their `data_unit`; `jain` is the fairness index of each run's values, on average.",
    ),
    key(
        "per_run",
        Kind::Choice(STATISTICS),
        Described("none"),
        "Reduces each run to one number first: `max` with the statistic `p50` is the median of the largest values.",
    ),
    key("group", Kind::Text, Described("none"), "Traffic group."),
    key(
        "variant",
        Kind::Text,
        Described("the file as it stands"),
        "Variant.",
    ),
    key(
        "link",
        Kind::Text,
        Described("none"),
        "Link by name: its forward direction, or with `/reverse` behind the name the other one.",
    ),
    key(
        "point",
        POINT,
        Described("every point"),
        "Paths and values that select a point of the sweep, or its name. Without it the check is made at each.",
    ),
    key(
        "per",
        Kind::Table(PER),
        Described("none"),
        "What the value is divided by in the same variant: another metric, group or link.",
    ),
    key(
        "relative_to",
        Kind::Either(&[Kind::Text, Kind::Table(RELATIVE)]),
        Described("none"),
        "What the value is compared with as a ratio: the name of a variant, or a table with `variant`, `point` or `best`.",
    ),
    key(
        "base",
        ANY_NUMBER,
        Value("0"),
        "What is subtracted from the value before it is compared: the RTT of an empty path leaves what is induced.",
    ),
    key(
        "beyond",
        Kind::OneOrMore(&Kind::Text),
        Value("[]"),
        "Names of earlier checks whose values are subtracted in the end: differences, and differences of differences.",
    ),
    key(
        "expect",
        Kind::Either(&[Kind::Text, Kind::Table(EXPECT)]),
        Described("none: reported only"),
        "A bound such as `\"< 1\"`, or a table: `min` and `max`, or `value` with `tolerance` (share of it) or `absolute`, or `contains`. Bounds and `contains` are judged by the interval, a `value` by the estimate.",
    ),
    key(
        "published",
        Kind::Either(&[Kind::Text, Kind::Number(f64::MIN, f64::MAX)]),
        Described("none"),
        "What was published.",
    ),
    key(
        "calibrated",
        Kind::Flag,
        Value("false"),
        "Parameters were fitted to this value: it is shown and never counts.",
    ),
    key(
        "role",
        Kind::Choice(&["check", "condition", "report"]),
        Described("`check`, or `report` where nothing is expected"),
        "A condition that does not hold makes the experiment not comparable; a report never counts.",
    ),
];

pub(crate) static PER: &[Key] = &[
    key("metric", Kind::Text, Described("that of the check"), "Metric."),
    key(
        "group",
        Kind::Text,
        Described("that of the check"),
        "Traffic group.",
    ),
    key("link", Kind::Text, Described("that of the check"), "Link."),
];

pub(crate) static RELATIVE: &[Key] = &[
    key("variant", Kind::Text, Described("that of the check"), "Variant."),
    key(
        "point",
        POINT,
        Described("that of the check"),
        "Point of the sweep.",
    ),
    key(
        "best",
        Kind::Choice(&["smallest", "largest"]),
        Described("none"),
        "The smallest or largest value over all points of the sweep.",
    ),
];

pub(crate) static EXPECT: &[Key] = &[
    key("min", ANY_NUMBER, Described("none"), "Lower bound."),
    key("max", ANY_NUMBER, Described("none"), "Upper bound."),
    key("value", ANY_NUMBER, Described("none"), "The value itself."),
    key(
        "tolerance",
        Kind::Number(0.0, 1e9),
        Described("0"),
        "Deviation allowed, as a share of the value.",
    ),
    key(
        "absolute",
        Kind::Number(0.0, f64::MAX),
        Described("none"),
        "Deviation allowed, in the unit of the value, instead of `tolerance`.",
    ),
    key(
        "contains",
        ANY_NUMBER,
        Described("none"),
        "A number that the 95 % interval must hold, instead of all others: a difference from it was not found.",
    ),
    key("unit", Kind::Text, Described("none"), "Its unit, for tables."),
];

/// `[[plot]]`.
pub(crate) static PLOT: &[Key] = &[
    key(
        "name",
        Kind::Text,
        Required,
        "Its name, part of the name of its file: `a` to `z`, `0` to `9` and `-`.",
    ),
    key(
        "kind",
        Kind::Choice(&["dots", "heat-map", "sweep", "times", "time-series"]),
        Required,
        "`dots`: a row for each check, with its interval. `heat-map`: a panel for each check and a cell for each point of the sweep. `sweep`: checks against a path of the sweep. `times`: completion times of a group in ascending order, all runs together. `time-series`: the first run of some variants bin by bin, the throughput of each traffic group and the wait at a link.",
    ),
    key("title", Kind::Text, Described("its name"), "Its heading."),
    key("text", Kind::Text, Described("none"), "How to read it."),
    key(
        "checks",
        Kind::OneOrMore(&Kind::Text),
        Described("all; but in a heat map and against a sweep those made at every point"),
        "Names of the checks it shows, in this order. A name with placeholders stands for all checks of a `for` that it fits; its title may have placeholders too.",
    ),
    key(
        "titles",
        Kind::List(&Kind::Text),
        Described("their names"),
        "What the checks are called. Checks with the same words share a row of `dots`.",
    ),
    key(
        "series",
        Kind::Choice(&["point", "group", "variant"]),
        Value("\"point\""),
        "What distinguishes marks of one row of `dots`: the point of the sweep, or the group or variant of the check.",
    ),
    key(
        "rows",
        Kind::OneOrMore(&Kind::Text),
        Value("[]"),
        "Paths of the sweep that make the rows of a heat map, the outermost first.",
    ),
    key(
        "columns",
        Kind::OneOrMore(&Kind::Text),
        Value("[]"),
        "Paths of the sweep that make the columns of a heat map.",
    ),
    key(
        "x",
        Kind::Text,
        Described("the first of the sweep"),
        "Path of the sweep that is the axis of `sweep`.",
    ),
    key(
        "logarithmic",
        Kind::Flag,
        Value("false"),
        "Values of `sweep` on a logarithmic axis, down to a ten-thousandth of the largest; what is less lies at its end.",
    ),
    key(
        "group",
        Kind::Text,
        Described("none"),
        "Traffic group of `times`.",
    ),
    key(
        "variants",
        Kind::OneOrMore(&Kind::Text),
        Described("all"),
        "Variants of `times` and `time-series`.",
    ),
    key("link", Kind::Text, Described("none"), "Link of `time-series`."),
    key(
        "better",
        Kind::Choice(&["lower", "higher", "neither"]),
        Value("\"lower\""),
        "Which values are good: blue in a heat map.",
    ),
    key(
        "labels",
        Kind::Map(&Kind::Text),
        Described("none"),
        "Words to write instead of paths, values and points of the sweep, and of the axis of `sweep` (`value`): `{ \"traffic.short.size\" = \"size\" }`.",
    ),
];

const ANY_NUMBER: Kind = Kind::Number(f64::MIN, f64::MAX);

/// A point of the sweep: its name, or paths and values.
const POINT: Kind = Kind::Either(&[Kind::Text, Kind::Setting]);
