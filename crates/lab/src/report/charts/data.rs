//! What a chart is: the rows, cells and lines that are drawn, and the table beside them.

use super::BASELINE;
use serde::Serialize;

/// A chart and the same as a table.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Names the element in the page.
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// How to read it.
    pub text: String,
    /// What it shows one at a time: groups of traffic, or links; empty where it shows everything at once.
    pub groups: Vec<String>,
    /// The variants in their order, the baseline first where it is shown.
    pub variants: Vec<String>,
    /// What is drawn.
    pub data: Data,
    /// Header of the table.
    pub header: Vec<String>,
    /// Rows of the table; the first cell names the row.
    pub rows: Vec<Vec<String>>,
}

/// What a chart draws, all groups together.
#[derive(Clone, Debug)]
pub enum Data {
    /// Change of the mean completion time of each variant, with its interval.
    Change {
        /// What the change is against.
        baseline: String,
        /// One for each variant and group.
        rows: Vec<Change>,
    },
    /// The same by payload size.
    Sizes {
        /// Size classes, ascending.
        classes: Vec<String>,
        /// One for each variant, group and class.
        cells: Vec<SizeChange>,
    },
    /// Distribution of completion times.
    Distribution(Vec<Distribution>),
    /// Waiting times at a bottleneck.
    Waits(Vec<Wait>),
    /// Utilisation of a bottleneck.
    Use(Vec<Use>),
    /// Values that runs of a real program gave.
    Runs {
        /// What was measured, with its unit.
        quantity: String,
        /// The runs that count.
        runs: Vec<RunValue>,
        /// The mean of each variant.
        means: Vec<MeanValue>,
    },
    /// Quantities over time.
    OverTime {
        /// What is measured, with its unit.
        quantity: String,
        /// A value worth a line across.
        reference: Option<f64>,
        /// Lines of all groups.
        lines: Vec<TimeLine>,
    },
}

/// Verdict on the change of one variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Transfers complete sooner; significant in the whole table.
    #[serde(rename = "sooner")]
    Sooner,
    /// Not significant.
    #[serde(rename = "not significant")]
    Undecided,
    /// Transfers complete later; significant in the whole table.
    #[serde(rename = "later")]
    Later,
}

impl Verdict {
    /// All of them, in the order of the legend.
    pub const ALL: [Verdict; 3] = [Verdict::Sooner, Verdict::Undecided, Verdict::Later];

    /// As a word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Sooner => "sooner",
            Verdict::Undecided => "not significant",
            Verdict::Later => "later",
        }
    }

    /// Its colour.
    pub fn color(self) -> &'static str {
        match self {
            Verdict::Sooner => "#009E73",
            Verdict::Undecided => BASELINE,
            Verdict::Later => "#D55E00",
        }
    }
}

/// Change of the mean completion time (per cent; negative is sooner).
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The variant.
    pub variant: String,
    /// The group of traffic, or the link.
    pub group: String,
    /// The change.
    pub change: f64,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Change of the mean completion time of one size class (per cent).
#[derive(Clone, Debug, Serialize)]
pub struct SizeChange {
    /// The variant.
    pub variant: String,
    /// The group of traffic, or the link.
    pub group: String,
    /// The size class.
    pub size: String,
    /// The change.
    pub change: f64,
    /// The change as it is written into the cell.
    pub text: String,
    /// Transfers.
    pub n: u64,
    /// Mean of the baseline.
    pub before: String,
    /// Mean of the variant.
    pub after: String,
}

/// One line of a distribution: completion times (seconds, ascending) and the share complete by then.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Index of the variant.
    pub variant: usize,
    /// The group of traffic, or the link.
    pub group: String,
    /// Completion times.
    pub fct_s: Vec<f64>,
    /// Shares, of 0 to 1.
    pub share: Vec<f64>,
}

/// Waiting times at a link (milliseconds).
#[derive(Clone, Debug, Serialize)]
pub struct Wait {
    /// The variant.
    pub variant: String,
    /// The link.
    pub group: String,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Use of a link.
#[derive(Clone, Debug, Serialize)]
pub struct Use {
    /// The variant.
    pub variant: String,
    /// The link.
    pub group: String,
    /// Per cent of the time.
    pub utilisation: f64,
    /// Packets.
    pub drops: u64,
    /// Packets.
    pub marks: u64,
}

/// What one run of a real program gave.
#[derive(Clone, Debug)]
pub struct RunValue {
    /// The variant.
    pub variant: String,
    /// Number of the run.
    pub run: u64,
    /// What it gave.
    pub value: f64,
}

/// The mean over runs, with the ends of its 95 % interval.
#[derive(Clone, Debug)]
pub struct MeanValue {
    /// The variant.
    pub variant: String,
    /// The mean.
    pub mean: f64,
    /// Ends of the interval.
    pub ends: Option<[f64; 2]>,
}

/// A quantity over time; each value holds until the next point.
#[derive(Clone, Debug)]
pub struct TimeLine {
    /// The group of traffic, or the link.
    pub group: String,
    /// Name in the legend.
    pub name: String,
    /// Its colour.
    pub color: &'static str,
    /// Seconds, and the value where there is one.
    pub points: Vec<(f64, Option<f64>)>,
}
