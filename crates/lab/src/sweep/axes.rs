//! The axes of a sweep: paths of the scenario with the values that they take, and the points between them.
//!
//! **Source.** Latin hypercube: McKay, Beckman and Conover 1979: each axis is divided into as many parts of equal probability as
//! there are points, and every part is met once. Each axis has a random stream of its own, named by its path, so another
//! axis changes nothing in it.

mod effect;

use crate::scenario::{Error, ErrorKind, Files, Setting, travelling};
use fleetfoot_core::rng::Rng;
use serde::{Deserialize, Serialize};

/// Most points of a sweep.
pub const MOST_POINTS: u64 = 10_000_000;

/// A path and the values that it takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// The path in the scenario.
    pub path: String,
    values: Values,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Values {
    List(#[serde(with = "texts")] Vec<toml::Value>),
    Range(Range),
}

/// Values as TOML texts, for formats that do not say what comes next.
mod texts {
    use serde::{Deserialize, Deserializer, Serializer, de, ser::SerializeSeq};

    pub(super) fn serialize<S: Serializer>(values: &[toml::Value], to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(values.len()))?;
        for value in values {
            list.serialize_element(&value.to_string())?;
        }
        list.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<toml::Value>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        let value = |text: &String| -> Option<toml::Value> {
            toml::from_str::<toml::Table>(&format!("value = {text}"))
                .ok()?
                .remove("value")
        };
        let values = texts.iter().map(value).collect::<Option<_>>();
        values.ok_or_else(|| de::Error::custom("a value of an axis is no TOML"))
    }
}

/// Numbers between two ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Range {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// How many, ends included; sampling needs no number.
    steps: Option<u32>,
    /// As it is written behind the numbers; empty without one.
    unit: String,
    /// Both ends are whole numbers without a unit: so are the values.
    whole: bool,
}

/// How points are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sampling {
    /// Every combination of the values of all axes.
    #[default]
    Grid,
    /// So many points of a Latin hypercube.
    LatinHypercube(u32),
    /// So many points, each axis by itself at random.
    Random(u32),
}

impl Sampling {
    /// Reads `latin-hypercube=N` or `random=N`.
    ///
    /// # Errors
    /// What is wanted, in words.
    pub fn parse(text: &str) -> Result<Sampling, String> {
        let wanted = || {
            format!(
                "latin-hypercube=N or random=N is wanted, with N from 1 to {MOST_POINTS}; without it there is every combination"
            )
        };
        let (name, count) = text.split_once('=').ok_or_else(wanted)?;
        let count = count
            .trim()
            .parse()
            .ok()
            .filter(|&count| (1..=MOST_POINTS as u32).contains(&count))
            .ok_or_else(wanted)?;
        match name.trim() {
            "latin-hypercube" => Ok(Sampling::LatinHypercube(count)),
            "random" => Ok(Sampling::Random(count)),
            _ => Err(wanted()),
        }
    }
}

fn refused(origin: &str, message: impl Into<String>) -> Error {
    Error::of_file(origin, message.into()).of_kind(ErrorKind::Invalid)
}

impl Axis {
    /// An axis of listed values: `PATH=VALUE,VALUE,...`. A value is TOML, or text; commas in brackets, braces and quotes are part of it.
    ///
    /// # Errors
    /// There is no `=`, a value is empty, or one stands there twice.
    pub fn list(argument: &str) -> Result<Axis, Error> {
        const ORIGIN: &str = "--set";
        let Some((path, list)) = argument.split_once('=') else {
            // The message of a setting without `=`.
            Setting::from_origin(ORIGIN).with_argument(argument)?;
            return Err(refused(ORIGIN, "PATH=VALUE,VALUE,... is wanted"));
        };
        let path = path.trim().to_owned();
        let mut values: Vec<toml::Value> = Vec::new();
        for part in parts(list) {
            if part.trim().is_empty() {
                return Err(refused(
                    ORIGIN,
                    format!("{path}: a value is missing in \"{}\"", list.trim()),
                ));
            }
            let set = Setting::from_origin(ORIGIN).with_argument(&format!("{path}={part}"))?;
            values.extend(set.iter().map(|(_, value)| value.clone()));
        }
        Axis::listed(path, values)
    }

    /// An axis of these values.
    ///
    /// # Errors
    /// There is none, or one stands there twice.
    pub fn listed(path: String, values: Vec<toml::Value>) -> Result<Axis, Error> {
        const ORIGIN: &str = "--set";
        if values.is_empty() {
            return Err(refused(ORIGIN, format!("{path}: a value is missing")));
        }
        for (number, value) in values.iter().enumerate() {
            if values[..number].contains(value) {
                return Err(refused(
                    ORIGIN,
                    format!("{path}: {} stands there twice", shown(value)),
                ));
            }
        }
        Ok(Axis {
            path,
            values: Values::List(values),
        })
    }

    /// An axis between two ends: `PATH=LOW:HIGH`, `PATH=LOW:HIGH:N`, `PATH=LOW:HIGH:log:N`. Both ends have the same unit or none;
    /// values between whole numbers without a unit are whole, others have six digits.
    ///
    /// # Errors
    /// What of it is wrong.
    pub fn range(argument: &str) -> Result<Axis, Error> {
        const ORIGIN: &str = "--range";
        let wrong = |what: String| {
            refused(
                ORIGIN,
                format!(
                    "{what}; PATH=LOW:HIGH[:log|:lin][:N] is wanted, for example network.bottleneck.rate=\"1 Mbit/s:1000 Mbit/s:log:7\""
                ),
            )
        };
        let Some((path, text)) = argument.split_once('=') else {
            return Err(wrong(format!("\"{argument}\" has no =")));
        };
        let path = path.trim().to_owned();
        let text = text.trim().trim_matches('"');
        let parts: Vec<&str> = text.split(':').map(str::trim).collect();
        let ([low, high], rest) = match parts.as_slice() {
            [low, high, rest @ ..] if rest.len() <= 2 => ([*low, *high], rest),
            _ => return Err(wrong(format!("{path}: \"{text}\" is no range"))),
        };
        let begin = |text: &str| wrong(format!("{path}: \"{text}\" does not begin with a number"));
        let ((low_value, low_unit), (high_value, high_unit)) = (
            quantity(low).ok_or_else(|| begin(low))?,
            quantity(high).ok_or_else(|| begin(high))?,
        );
        if low_unit != high_unit {
            return Err(wrong(format!(
                "{path}: both ends need the same unit, not \"{low_unit}\" and \"{high_unit}\""
            )));
        }
        if low_value >= high_value {
            return Err(wrong(format!("{path}: {low} is not below {high}")));
        }
        let (scale, steps) = match rest {
            [] => ("lin", None),
            [one] if one.parse::<u32>().is_ok() => ("lin", Some(*one)),
            [scale] => (*scale, None),
            [scale, steps] => (*scale, Some(*steps)),
            _ => return Err(wrong(format!("{path}: \"{text}\" is no range"))),
        };
        let logarithmic = match scale {
            "lin" => false,
            "log" if low_value > 0.0 => true,
            "log" => return Err(wrong(format!("{path}: a logarithmic range begins above zero"))),
            other => return Err(wrong(format!("{path}: \"{other}\" is neither lin nor log"))),
        };
        let steps = steps
            .map(|steps| {
                let number = steps.parse().ok().filter(|steps| (2..=100_000).contains(steps));
                number.ok_or_else(|| {
                    wrong(format!(
                        "{path}: \"{steps}\" is no number of values from 2 to 100000"
                    ))
                })
            })
            .transpose()?;
        let whole = |text: &str| text.parse::<i64>().is_ok();
        Ok(Axis {
            path,
            values: Values::Range(Range {
                low: low_value,
                high: high_value,
                logarithmic,
                steps,
                unit: low_unit.to_owned(),
                whole: whole(low) && whole(high),
            }),
        })
    }

    /// Its values in a grid.
    fn grid(&self) -> Result<Vec<toml::Value>, Error> {
        let range = match &self.values {
            Values::List(values) => return Ok(values.clone()),
            Values::Range(range) => range,
        };
        let steps = range.steps.ok_or_else(|| {
            let message = format!(
                "{}: how many values? LOW:HIGH:N or LOW:HIGH:log:N says it, or take points at random with --sample",
                self.path
            );
            refused("--range", message)
        })?;
        let mut values: Vec<toml::Value> = Vec::new();
        for step in 0..steps {
            let value = range.at(f64::from(step) / f64::from(steps - 1));
            // Whole numbers near each other may be the same one.
            if values.last() != Some(&value) {
                values.push(value);
            }
        }
        Ok(values)
    }

    /// The value at this share of the way from the first to the last.
    fn at(&self, share: f64) -> toml::Value {
        match &self.values {
            Values::List(values) => {
                let index = (share * values.len() as f64) as usize;
                values[index.min(values.len() - 1)].clone()
            }
            Values::Range(range) => range.at(share),
        }
    }

    /// The axis with files named by their content, which are added to `files`; `None` if its values name none.
    fn travelling(&self, files: &mut Files) -> Option<Axis> {
        let Values::List(values) = &self.values else {
            return None;
        };
        let renamed = values.iter().map(|value| travelling(&self.path, value, files));
        let renamed: Vec<toml::Value> = renamed.collect();
        (renamed != *values).then(|| Axis {
            path: self.path.clone(),
            values: Values::List(renamed),
        })
    }

    /// The values that are tried before anything runs: all of a list, the ends of a range.
    fn tried(&self) -> Vec<toml::Value> {
        match &self.values {
            Values::List(values) => values.clone(),
            Values::Range(range) => vec![range.at(0.0), range.at(1.0)],
        }
    }
}

impl Range {
    fn at(&self, share: f64) -> toml::Value {
        let value = match (share, self.logarithmic) {
            // The ends exactly as they are written.
            (0.0, _) => self.low,
            (1.0, _) => self.high,
            (_, false) => self.low + (self.high - self.low) * share,
            (_, true) => self.low * libm::pow(self.high / self.low, share),
        };
        if self.whole {
            return toml::Value::Integer(libm::round(value) as i64);
        }
        let value: f64 = format!("{value:.5e}").parse().unwrap_or(value);
        match self.unit.as_str() {
            "" => toml::Value::Float(value),
            unit => toml::Value::String(format!("{value} {unit}")),
        }
    }
}

/// The parts of a list: commas inside brackets, braces and quotes do not separate.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start) = (0_i32, None, 0);
    let mut parts = Vec::new();
    for (at, c) in list.char_indices() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth -= 1,
            (',', None) if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

/// A number and what stands behind it.
pub(super) fn quantity(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let mut ends = text.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
    // The longest beginning that is a number: "1e3 kbit/s", "10ms".
    ends.find_map(|end| {
        let number: f64 = text[..end].parse().ok()?;
        number.is_finite().then(|| (number, text[end..].trim()))
    })
}

/// The number of a value, and its unit: 5, 0.1, "10 ms".
pub(super) fn number_and_unit(value: &toml::Value) -> Option<(f64, &str)> {
    match value {
        toml::Value::Integer(number) => Some((*number as f64, "")),
        toml::Value::Float(number) => Some((*number, "")),
        toml::Value::String(text) => quantity(text).filter(|(_, unit)| !unit.is_empty()),
        _ => None,
    }
}

/// A value as people write it.
pub(super) fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The points of a sweep, made one at a time.
#[derive(Clone, Debug)]
pub struct Points {
    axes: Vec<Axis>,
    sampling: Sampling,
    /// What points that are drawn follow from.
    seed: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The values of each axis; the last axis changes first.
    Grid(Vec<Vec<toml::Value>>),
    /// For each axis, how far on its way each point is.
    Drawn(Vec<Vec<f64>>),
}

impl Points {
    /// The points on these axes; those that are drawn follow from `seed`.
    ///
    /// # Errors
    /// There is no axis, two have the same path, a range lacks its number of values, or there are too many points.
    pub fn new(axes: Vec<Axis>, sampling: Sampling, seed: u64) -> Result<Points, Error> {
        if axes.is_empty() {
            return Err(refused(
                "--set",
                "nothing is swept: give --set PATH=VALUE,VALUE,... or --range PATH=LOW:HIGH:N",
            ));
        }
        for (number, axis) in axes.iter().enumerate() {
            if axes[..number].iter().any(|other| other.path == axis.path) {
                return Err(refused("--set", format!("{} stands there twice", axis.path)));
            }
        }
        let kind = match sampling {
            Sampling::Grid => {
                let grid = axes.iter().map(Axis::grid).collect::<Result<Vec<_>, Error>>()?;
                let count = grid
                    .iter()
                    .try_fold(1_u64, |count, values| count.checked_mul(values.len() as u64));
                if count.is_none_or(|count| count > MOST_POINTS) {
                    return Err(refused(
                        "--set",
                        format!(
                            "more than {MOST_POINTS} points; --sample latin-hypercube=N takes so many of them"
                        ),
                    ));
                }
                Kind::Grid(grid)
            }
            Sampling::LatinHypercube(count) => Kind::Drawn(
                axes.iter()
                    .map(|axis| {
                        latin_hypercube(&mut Rng::for_element(seed, &axis.path, "latin-hypercube"), count)
                    })
                    .collect(),
            ),
            Sampling::Random(count) => Kind::Drawn(
                axes.iter()
                    .map(|axis| {
                        let mut rng = Rng::for_element(seed, &axis.path, "random");
                        (0..count).map(|_| rng.uniform()).collect()
                    })
                    .collect(),
            ),
        };
        Ok(Points {
            axes,
            sampling,
            seed,
            kind,
        })
    }

    /// Whether a listed value mentions this name.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.axes.iter().any(|axis| match &axis.values {
            Values::List(values) => values.iter().any(|value| value.to_string().contains(name)),
            Values::Range(_) => false,
        })
    }

    /// What they are made from: axes, kind of points, and the seed of those that are drawn.
    pub(super) fn parts(&self) -> (&[Axis], Sampling, u64) {
        (&self.axes, self.sampling, self.seed)
    }

    /// The points with files named by their content, which are added to `files`; `None` if no value names one.
    pub(super) fn travelling(&self, files: &mut Files) -> Option<Points> {
        let renamed: Vec<Option<Axis>> = self.axes.iter().map(|axis| axis.travelling(files)).collect();
        if renamed.iter().all(Option::is_none) {
            return None;
        }
        let axes = renamed.into_iter().zip(&self.axes);
        let axes = axes.map(|(renamed, axis)| renamed.unwrap_or_else(|| axis.clone()));
        Points::new(axes.collect(), self.sampling, self.seed).ok()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Grid(grid) => grid.iter().map(Vec::len).product(),
            Kind::Drawn(shares) => shares.first().map_or(0, Vec::len),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The axes.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The values of the point with this index, one for each axis.
    pub fn values(&self, point: usize) -> Vec<toml::Value> {
        match &self.kind {
            Kind::Grid(grid) => {
                let mut rest = point;
                let mut values: Vec<toml::Value> = grid
                    .iter()
                    .rev()
                    .map(|axis| {
                        let value = axis[rest % axis.len()].clone();
                        rest /= axis.len();
                        value
                    })
                    .collect();
                values.reverse();
                values
            }
            Kind::Drawn(shares) => self
                .axes
                .iter()
                .zip(shares)
                .map(|(axis, shares)| axis.at(shares[point]))
                .collect(),
        }
    }

    /// The value of the point with this index on one axis.
    pub(super) fn value(&self, point: usize, axis: usize) -> toml::Value {
        match &self.kind {
            Kind::Grid(grid) => {
                let behind: usize = grid[axis + 1..].iter().map(Vec::len).product();
                grid[axis][point / behind % grid[axis].len()].clone()
            }
            Kind::Drawn(shares) => self.axes[axis].at(shares[axis][point]),
        }
    }

    /// What the point with this index sets.
    pub fn setting(&self, point: usize) -> Setting {
        let values = self.values(point);
        self.axes
            .iter()
            .zip(values)
            .fold(Setting::from_origin("sweep"), |set, (axis, value)| {
                set.with(axis.path.clone(), value)
            })
    }

    /// The point in words: `path = value, path = value`.
    pub fn label(&self, point: usize) -> String {
        let values = self.values(point);
        let parts = self.axes.iter().zip(&values);
        let parts: Vec<String> = parts
            .map(|(axis, value)| format!("{} = {}", axis.path, shown(value)))
            .collect();
        parts.join(", ")
    }

    /// Every value that is tried alone before anything runs, as a setting.
    pub fn tried(&self) -> impl Iterator<Item = Setting> {
        self.axes.iter().flat_map(|axis| {
            let values = axis.tried().into_iter();
            values.map(move |value| Setting::from_origin("sweep").with(axis.path.clone(), value))
        })
    }

    /// The unit of the numbers on the axis with this index, empty for numbers without one; `None` for text.
    pub fn unit(&self, axis: usize) -> Option<&str> {
        let values = match &self.axes[axis].values {
            Values::Range(range) => return Some(&range.unit),
            Values::List(values) => values,
        };
        let unit = |value| number_and_unit(value).map(|(_, unit)| unit);
        let first = unit(values.first()?)?;
        values
            .iter()
            .all(|value| unit(value) == Some(first))
            .then_some(first)
    }

    /// The name of the axis with this index, with the unit of its numbers.
    pub fn name(&self, axis: usize) -> String {
        let path = &self.axes[axis].path;
        match self.unit(axis) {
            None | Some("") => path.clone(),
            Some(unit) => format!("{path} ({unit})"),
        }
    }

    /// All values of the axis with this index that occur, in order; `None` if each point has its own.
    pub fn listed(&self, axis: usize) -> Option<&[toml::Value]> {
        match (&self.kind, &self.axes[axis].values) {
            (Kind::Grid(grid), _) => Some(&grid[axis]),
            (Kind::Drawn(_), Values::List(values)) => Some(values),
            (Kind::Drawn(_), Values::Range(_)) => None,
        }
    }
}

/// One share in each of `count` equal parts, in random order.
fn latin_hypercube(rng: &mut Rng, count: u32) -> Vec<f64> {
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
        .into_iter()
        .map(|part| (f64::from(part) + rng.uniform()) / f64::from(count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Axis, Points, Sampling, quantity, shown};

    fn texts(points: &Points) -> Vec<String> {
        (0..points.len()).map(|point| points.label(point)).collect()
    }

    fn grid(axes: Vec<Axis>) -> Points {
        Points::new(axes, Sampling::Grid, 1).expect("they are right")
    }

    #[test]
    fn the_last_axis_changes_first() {
        let axes = vec![
            Axis::list("a=1,2").expect("a list"),
            Axis::range("b=10 ms:30 ms:3").expect("a range"),
        ];
        assert_eq!(
            texts(&grid(axes)),
            [
                "a = 1, b = 10 ms",
                "a = 1, b = 20 ms",
                "a = 1, b = 30 ms",
                "a = 2, b = 10 ms",
                "a = 2, b = 20 ms",
                "a = 2, b = 30 ms"
            ]
        );
    }

    #[test]
    fn commas_in_brackets_and_quotes_belong_to_a_value() {
        let axis = Axis::list("q={kind=\"codel\", limit=5},\"a,b\",c").expect("a list");
        let values = grid(vec![axis]);
        assert_eq!(values.len(), 3);
        assert_eq!(shown(&values.values(1)[0]), "a,b");
        assert!(values.values(0)[0].is_table());
    }

    #[test]
    fn logarithmic_values_have_equal_ratios_and_exact_ends() {
        let axis = Axis::range("r=1 Mbit/s:1000 Mbit/s:log:4").expect("a range");
        assert_eq!(
            texts(&grid(vec![axis])),
            [
                "r = 1 Mbit/s",
                "r = 10 Mbit/s",
                "r = 100 Mbit/s",
                "r = 1000 Mbit/s"
            ]
        );
        // 1, 10^(1/3)... rounded; 1 and 2 are met once each.
        let axis = Axis::range("n=1:4:log:9").expect("a range");
        assert_eq!(texts(&grid(vec![axis])), ["n = 1", "n = 2", "n = 3", "n = 4"]);
    }

    #[test]
    fn a_latin_hypercube_meets_each_part_of_each_axis_once() {
        let axes = || {
            vec![
                Axis::range("a=0.0:1.0").expect("a range"),
                Axis::list("b=x,y").expect("a list"),
            ]
        };
        let points = Points::new(axes(), Sampling::LatinHypercube(40), 7).expect("they are right");
        let mut parts: Vec<usize> = (0..40)
            .map(|point| (points.values(point)[0].as_float().expect("a number") * 40.0) as usize)
            .collect();
        parts.sort_unstable();
        assert_eq!(parts, (0..40).collect::<Vec<_>>());
        let count = |word| texts(&points).iter().filter(|text| text.ends_with(word)).count();
        assert_eq!((count("x"), count("y")), (20, 20));
        let again = Points::new(axes(), Sampling::LatinHypercube(40), 7).expect("they are right");
        assert_eq!(texts(&points), texts(&again));
        let other = Points::new(axes(), Sampling::LatinHypercube(40), 8).expect("they are right");
        assert_ne!(texts(&points), texts(&other));
    }

    #[test]
    fn mistakes_are_named() {
        let message =
            |result: Result<Axis, crate::scenario::Error>| result.expect_err("it is wrong").to_string();
        for (argument, part) in [
            ("a", "has no ="),
            ("a=1", "is no range"),
            ("a=1:2:log:3:4", "is no range"),
            ("a=x:2:3", "\"x\" does not begin with a number"),
            ("a=1 ms:2 s:3", "the same unit"),
            ("a=2:1:3", "2 is not below 1"),
            ("a=0:1:log:3", "begins above zero"),
            ("a=1:2:cubic:3", "neither lin nor log"),
            ("a=1:2:lin:1", "number of values"),
        ] {
            let message = message(Axis::range(argument));
            assert!(message.contains(part), "{argument}: {message}");
        }
        for (argument, part) in [
            ("a=1,1", "1 stands there twice"),
            ("a=1,,2", "a value is missing"),
        ] {
            let message = message(Axis::list(argument));
            assert!(message.contains(part), "{argument}: {message}");
        }
        for text in ["latin-hypercube", "latin-hypercube=0", "sobol=5", "random=x"] {
            assert!(Sampling::parse(text).is_err(), "{text}");
        }
        assert_eq!(Sampling::parse("random=5"), Ok(Sampling::Random(5)));
    }

    #[test]
    fn a_quantity_is_a_number_and_a_unit() {
        assert_eq!(quantity("10 Mbit/s"), Some((10.0, "Mbit/s")));
        assert_eq!(quantity("1.5ms"), Some((1.5, "ms")));
        assert_eq!(quantity("1e3 kB"), Some((1000.0, "kB")));
        assert_eq!(quantity("5"), Some((5.0, "")));
        assert_eq!(quantity("fast"), None);
        // "1e" is no number, so `e` would be the unit; "inf" is no quantity.
        assert_eq!(quantity("inf"), None);
    }
}
