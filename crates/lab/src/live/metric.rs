//! What runs of a command are compared by: wall time, completion times of the flows seen, or a number that the command prints.

use super::record::Run;
use crate::statistics::Sample;
use regex_lite::Regex;

/// A measure of a run.
#[derive(Clone, Debug)]
pub enum Metric {
    /// Time from the start of the command to its end.
    Wall,
    /// Completion times of the TCP flows that carried data.
    Flows,
    /// The first capture group of the first match in what the command prints.
    Printed(Box<Regex>),
}

impl Metric {
    /// `wall`, `flows`, or a regular expression with one group.
    ///
    /// # Errors
    /// Why the text is none of these.
    pub fn parse(text: &str) -> Result<Metric, String> {
        const WANTED: &str = "wall, flows, or a regular expression with one group in parentheses around a number is wanted, such as \"time=([0-9.]+)\"";
        match text {
            "wall" => return Ok(Metric::Wall),
            "flows" => return Ok(Metric::Flows),
            _ => {}
        }
        let expression = Regex::new(text).map_err(|error| {
            let why = error.to_string();
            let last = why.lines().last().unwrap_or("").trim_start_matches("found ");
            format!("not a regular expression ({last}); {WANTED}")
        })?;
        if expression.captures_len() < 2 {
            return Err(WANTED.to_owned());
        }
        Ok(Metric::Printed(Box::new(expression)))
    }

    /// The unit of its values; empty for numbers that the command prints.
    pub const fn unit(&self) -> &'static str {
        match self {
            Metric::Wall | Metric::Flows => "s",
            Metric::Printed(_) => "",
        }
    }

    /// What is measured, in words.
    pub fn words(&self) -> String {
        match self {
            Metric::Wall => String::from("wall time of the command"),
            Metric::Flows => String::from("mean completion time of its TCP flows"),
            Metric::Printed(expression) => format!("number found by {:?}", expression.as_str()),
        }
    }

    /// The number in what a command printed.
    ///
    /// # Errors
    /// Nothing matches, or what does is no number.
    pub fn printed(&self, output: &str) -> Result<Option<f64>, String> {
        let Metric::Printed(expression) = self else {
            return Ok(None);
        };
        let found = expression
            .captures(output)
            .ok_or("nothing that it printed matches")?;
        let text = found.get(1).map_or("", |group| group.as_str());
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(format!("it printed {text:?}, which is no number")),
        }
    }

    /// The values of a run, and why there is none.
    ///
    /// # Errors
    /// The run has no value of this kind.
    pub fn sample(&self, run: &Run) -> Result<Sample, &'static str> {
        match self {
            Metric::Wall => Ok(Sample::of(vec![run.wall_s])),
            Metric::Printed(_) => match run.value {
                Some(value) => Ok(Sample::of(vec![value])),
                None => Err("it printed no number"),
            },
            Metric::Flows => {
                let mut sample = Sample::default();
                for flow in &run.flows {
                    match flow.completion_s {
                        Some(completion_s) if flow.completed == Some(true) => {
                            sample.completed.push(completion_s);
                        }
                        Some(_) => sample.censored.push(flow.end_s - flow.start_s),
                        None => {}
                    }
                }
                match sample.is_empty() {
                    true => Err("no TCP flow with data was seen"),
                    false => Ok(sample),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Metric;
    use crate::import::flows::Flow;
    use crate::live::Run;

    #[test]
    fn a_printed_number_is_the_first_group_of_the_first_match() {
        let metric = Metric::parse(r"avg = ([\d.]+) ms").expect("it has a group");
        assert_eq!(
            metric.printed("min = 1 ms\navg = 21.5 ms\navg = 9 ms"),
            Ok(Some(21.5))
        );
        assert_eq!(
            metric.printed("nothing"),
            Err(String::from("nothing that it printed matches"))
        );
        let metric = Metric::parse("rate (.*)").expect("it has a group");
        assert_eq!(metric.printed("rate 3e6"), Ok(Some(3e6)));
        assert_eq!(
            metric.printed("rate fast"),
            Err(String::from("it printed \"fast\", which is no number"))
        );
        assert!(metric.printed("rate inf").is_err(), "no mean could be made of it");
    }

    #[test]
    fn what_is_no_metric_is_refused() {
        for (text, begin) in [
            ("wal", "wall, flows, or a regular expression"),
            ("time=[0-9", "not a regular expression (unclosed character class)"),
        ] {
            let message = Metric::parse(text).expect_err("it is none");
            assert!(message.starts_with(begin), "{message}");
        }
    }

    #[test]
    fn flows_that_did_not_complete_are_censored() {
        let flow = |completion_s, completed| Flow {
            completion_s,
            completed,
            end_s: 9.0,
            ..Flow::default()
        };
        let mut run = Run {
            flows: vec![
                flow(Some(0.5), Some(true)),
                flow(Some(0.1), Some(false)),
                flow(None, None),
            ],
            ..Run::default()
        };
        let metric = Metric::parse("flows").expect("it is one");
        let sample = metric.sample(&run).expect("there are flows");
        assert_eq!((sample.completed, sample.censored), (vec![0.5], vec![9.0]));
        run.flows.clear();
        assert!(metric.sample(&run).is_err());
    }
}
