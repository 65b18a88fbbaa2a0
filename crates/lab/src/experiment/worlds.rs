//! The simulator beside a kernel: the checks of an experiment that has both, as one table.
//!
//! Such an experiment names its checks `median, POINT` (the ratio of the simulator to the kernel) and `median (s), simulator, POINT`
//! and `median (s), kernel, POINT` (what both measured); so it does for the others of [`Quantity::ALL`]. `ours` instead of `simulator`
//! is our TCP on real packets.

use super::Evaluated;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Name of the check that has the ratio, before its point.
    pub name: &'static str,
    /// Name of the checks that have the values, before their world.
    pub values: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// By how much the ratio may differ from 1; `None`: it is only shown.
    pub deviation: Option<f64>,
}

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bits per second.
    Rate,
    /// A number for each run.
    Count,
}

impl Quantity {
    /// All of them, in the order of tables.
    pub const ALL: [Quantity; 5] = [
        Quantity::new("median", "median (s)", Unit::Seconds, Some(0.05)),
        Quantity::new("p95", "p95 (s)", Unit::Seconds, Some(0.1)),
        Quantity::new("goodput", "goodput (bit/s)", Unit::Rate, Some(0.05)),
        Quantity::new(
            "retransmissions",
            "number of retransmissions",
            Unit::Count,
            Some(0.1),
        ),
        Quantity::new("timeouts", "number of timeouts", Unit::Count, None),
    ];

    const fn new(name: &'static str, values: &'static str, unit: Unit, deviation: Option<f64>) -> Quantity {
        Quantity {
            name,
            values,
            unit,
            deviation,
        }
    }
}

/// Share of packets delivered over a millisecond late above which a point says nothing.
pub const LATE: f64 = 0.002;

/// How a ratio stands to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// As near as asked for, or its interval holds 1.
    Near,
    /// Neither, but the interval is not all beyond what is allowed.
    Off,
    /// The whole interval is beyond what is allowed.
    SurelyOff,
}

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: Option<[f64; 2]>,
}

/// A quantity at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// What is compared.
    pub quantity: Quantity,
    /// What ours gave and what the kernel did, where that was measured.
    pub worlds: [Option<Estimate>; 2],
    /// Ours over the kernel's; `None` where both or one of them had nothing to divide.
    pub ratio: Option<Estimate>,
    /// Whether they agree; `None` where that is not asked.
    pub agreement: Option<Agreement>,
}

/// A point of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub point: String,
    /// Share of packets that this machine delivered over a millisecond late.
    pub late: f64,
    /// Its quantities, those that the experiment has.
    pub cells: Vec<Cell>,
}

impl Row {
    /// Whether this machine was too late for the point to say anything.
    pub fn is_late(&self) -> bool {
        self.late > LATE
    }
}

/// The points of an experiment that has both worlds; `None` of one that has not.
pub fn rows(evaluated: &Evaluated) -> Option<Vec<Row>> {
    let find = |name: &str| {
        let check = evaluated.checks.iter().find(|check| check.name == name)?;
        Some(Estimate {
            value: check.measured?,
            interval: check.interval.ends(),
        })
    };
    let points = evaluated
        .checks
        .iter()
        .filter_map(|check| check.name.strip_prefix("lateness, "));
    let rows: Vec<Row> = points
        .filter(|point| find(&format!("median, {point}")).is_some())
        .map(|point| Row {
            point: point.to_owned(),
            late: find(&format!("lateness, {point}")).map_or(0.0, |late| late.value),
            cells: Quantity::ALL
                .iter()
                .filter_map(|&quantity| cell(&find, quantity, point))
                .collect(),
        })
        .collect();
    (!rows.is_empty()).then_some(rows)
}

fn cell(find: &impl Fn(&str) -> Option<Estimate>, quantity: Quantity, point: &str) -> Option<Cell> {
    // Ours is the simulator, or our TCP on real packets.
    let of = |world: &str| find(&format!("{}, {world}, {point}", quantity.values));
    let worlds = [of("simulator").or_else(|| of("ours")), of("kernel")];
    let ratio = find(&format!("{}, {point}", quantity.name));
    let agreement = quantity.deviation.zip(ratio).map(|(deviation, ratio)| {
        let between = |low: f64, high: f64, value: f64| (low..=high).contains(&value);
        let allowed = [1.0 - deviation, 1.0 + deviation];
        match ratio.interval {
            _ if between(allowed[0], allowed[1], ratio.value) => Agreement::Near,
            Some([low, high]) if between(low, high, 1.0) => Agreement::Near,
            Some([low, high]) if low > allowed[1] || high < allowed[0] => Agreement::SurelyOff,
            // Without an interval nothing is sure.
            Some(_) | None => Agreement::Off,
        }
    });
    let cell = Cell {
        quantity,
        worlds,
        ratio,
        agreement,
    };
    (ratio.is_some() || worlds.iter().any(Option::is_some)).then_some(cell)
}

/// How many comparisons there are, and how they came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Comparisons at points that were not too late.
    pub judged: u32,
    /// Comparisons that agree.
    pub near: u32,
    /// Comparisons whose whole interval is beyond what is allowed.
    pub surely_off: u32,
    /// Points that were too late to be judged.
    pub late_points: u32,
}

impl Tally {
    /// Counts these rows too.
    pub fn add(&mut self, rows: &[Row]) {
        for row in rows {
            if row.is_late() {
                self.late_points += 1;
                continue;
            }
            for agreement in row.cells.iter().filter_map(|cell| cell.agreement) {
                self.judged += 1;
                self.near += u32::from(agreement == Agreement::Near);
                self.surely_off += u32::from(agreement == Agreement::SurelyOff);
            }
        }
    }

    /// In a sentence.
    pub fn words(&self) -> String {
        format!(
            "{} of {} comparisons agree, {} surely do not; {} points were too late to be judged.",
            self.near, self.judged, self.surely_off, self.late_points
        )
    }
}
