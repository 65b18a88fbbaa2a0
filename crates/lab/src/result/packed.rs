//! A comparison as bytes, for those who keep or send many of them.
//!
//! The document is its JSON text, since its fields may be absent; everything else is postcard, which is only read by the program
//! that wrote it.

use super::{
    Comparison, Document, FlowTrace, GroupInfo, Inapplicable, LinkInfo, PairInfo, RunData, VariantData,
};
use fleetfoot_sim::output::RunOutput;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// A [`Comparison`] in three parts, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The text of `result.json`.
    pub document: String,
    /// What is known beside it, without the runs.
    pub about: Vec<u8>,
    /// Runs and traces of every variant.
    pub runs: Vec<u8>,
}

/// What is known beside the document.
#[derive(Serialize, Deserialize)]
struct About {
    hash: String,
    scenario_toml: String,
    command: String,
    groups: Vec<GroupInfo>,
    links: Vec<LinkInfo>,
    bottleneck: Vec<String>,
    pairs: Vec<PairInfo>,
    warmup_s: f64,
    duration_s: f64,
    inapplicable: Vec<Inapplicable>,
}

/// Runs and traces of a variant.
#[derive(Serialize, Deserialize)]
struct Of {
    name: String,
    runs: Vec<Run>,
    traces: Vec<FlowTrace>,
}

#[derive(Serialize, Deserialize)]
struct Run {
    seed: u64,
    #[serde(serialize_with = "of_shared", deserialize_with = "shared")]
    output: Arc<RunOutput>,
}

fn of_shared<S: Serializer>(output: &Arc<RunOutput>, serializer: S) -> Result<S::Ok, S::Error> {
    RunOutput::serialize(output, serializer)
}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<RunOutput>, D::Error> {
    RunOutput::deserialize(deserializer).map(Arc::new)
}

impl Packed {
    /// All of `comparison`, its timing excepted.
    ///
    /// # Errors
    /// None that is known: every part can be written.
    pub fn of(comparison: Comparison) -> Result<Packed, String> {
        let document = comparison.document.to_file_text();
        let about = About {
            hash: comparison.hash,
            scenario_toml: comparison.scenario_toml,
            command: comparison.command,
            groups: comparison.groups,
            links: comparison.links,
            bottleneck: comparison.bottleneck,
            pairs: comparison.pairs,
            warmup_s: comparison.warmup_s,
            duration_s: comparison.duration_s,
            inapplicable: comparison.inapplicable,
        };
        let variants = comparison.variants.into_iter().map(|variant| Of {
            name: variant.name,
            runs: variant
                .runs
                .into_iter()
                .map(|run| Run {
                    seed: run.seed,
                    output: run.output,
                })
                .collect(),
            traces: variant.traces,
        });
        let variants: Vec<Of> = variants.collect();
        let bytes = |written: postcard::Result<Vec<u8>>| written.map_err(|error| error.to_string());
        Ok(Packed {
            document,
            about: bytes(postcard::to_stdvec(&about))?,
            runs: bytes(postcard::to_stdvec(&variants))?,
        })
    }

    /// The comparison again.
    ///
    /// # Errors
    /// Another version wrote it.
    pub fn unpack(&self) -> Result<Comparison, String> {
        let mut comparison = Packed::summary(&self.document, &self.about)?;
        let variants: Vec<Of> = postcard::from_bytes(&self.runs).map_err(|error| foreign(&error))?;
        let variants = variants.into_iter().map(|variant| VariantData {
            name: variant.name,
            runs: variant
                .runs
                .into_iter()
                .map(|run| RunData {
                    seed: run.seed,
                    output: run.output,
                })
                .collect(),
            traces: variant.traces,
        });
        comparison.variants = variants.collect();
        Ok(comparison)
    }

    /// The comparison of these two parts: without its runs.
    ///
    /// # Errors
    /// Another version wrote them.
    pub fn summary(document: &str, about: &[u8]) -> Result<Comparison, String> {
        let document: Document = serde_json::from_str(document).map_err(|error| foreign(&error))?;
        let about: About = postcard::from_bytes(about).map_err(|error| foreign(&error))?;
        Ok(Comparison {
            document,
            hash: about.hash,
            scenario_toml: about.scenario_toml,
            command: about.command,
            groups: about.groups,
            links: about.links,
            bottleneck: about.bottleneck,
            pairs: about.pairs,
            warmup_s: about.warmup_s,
            duration_s: about.duration_s,
            variants: Vec::new(),
            inapplicable: about.inapplicable,
        })
    }
}

fn foreign(error: &dyn std::fmt::Display) -> String {
    format!(
        "this result was not written by fleetfoot {}, which reads its own only: {error}",
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::Packed;
    use crate::compare::{Choice, Plan, build};
    use crate::report::csv;
    use crate::report::time_series::of_the_best;
    use crate::run::{Options, execute, simulate};
    use crate::scenario::{Scenario, Setting};
    use std::sync::atomic::AtomicBool;

    #[test]
    fn what_was_packed_is_unpacked_whole() {
        let set = Setting::from_origin("test").with("run.duration", "6 s");
        let scenario = Scenario::home_line().and_then(|scenario| scenario.with(&set));
        let choice = Choice {
            only: vec![String::from("codel")],
            seeds: Some(2),
            ..Choice::default()
        };
        let plan = scenario
            .and_then(|scenario| Plan::compare(scenario, &choice))
            .expect("it is valid");
        let stop = AtomicBool::new(false);
        let batch = execute(
            &plan.jobs(),
            &plan.seeds,
            &Options::default(),
            &stop,
            &simulate,
            &|_| (),
        )
        .expect("it runs");
        let mut comparison = build(&plan, &batch, "a command");
        of_the_best(&plan, &mut comparison, &stop);
        let packed = Packed::of(comparison.clone()).expect("it can be written");
        let again = packed.unpack().expect("it was just written");
        assert_eq!(again.document.to_file_text(), comparison.document.to_file_text());
        assert_eq!(again.variants.len(), 2);
        assert!(!again.variants[1].traces.is_empty());
        for (variant, other) in again.variants.iter().zip(&comparison.variants) {
            assert_eq!(variant.traces, other.traces);
        }
        let table = |comparison| {
            let mut text = Vec::new();
            csv::write_rows(&mut text, crate::report::table::samples(comparison)).expect("it is memory");
            text
        };
        assert_eq!(table(&again), table(&comparison));
        comparison.document.timing = None;
        comparison.variants.clear();
        let summary = Packed::summary(&packed.document, &packed.about).expect("it was just written");
        assert_eq!(format!("{summary:?}"), format!("{comparison:?}"));
    }
}
