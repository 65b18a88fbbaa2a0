//! `[import]`: how well a scenario that was made of a recording fits it when it is replayed.
//!
//! `fleetfoot import` measures the fit and writes it into the file, so that every later comparison of that file knows it. The fit is
//! that of the network, the hosts and the traffic as they were written: [`identity`] shows whether they still are. Length and seeds
//! of the run, variants and title may change.

use super::document::{Node, Table};
use super::error::Error;
use super::keys;
use super::read::Section;
use fleetfoot_sim::spec::{GroupSpec, Traffic};
use serde::{Deserialize, Serialize};

/// How well a scenario, replayed, fits the recording it was made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayFit {
    /// All measures together: that of the worst.
    pub verdict: Verdict,
    /// The measure that differs most for what it may; `None`: nothing was measured.
    pub measure: Option<String>,
    /// By how much that one differs, as a share: 0.1 is a tenth.
    pub difference: Option<f64>,
    /// Everything that is not close, in words.
    pub reasons: Vec<String>,
    /// What would probably make the fit better, one sentence each.
    pub advice: Vec<String>,
    /// Congestion controls that were tried, the one that fits best (and that the scenario has) first.
    pub controllers: Vec<ControllerFit>,
    /// Network, hosts or traffic were changed since: the fit is that of the file as it was imported.
    pub changed: bool,
}

/// How well a replay fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing differs by much.
    Close,
    /// Something does.
    Fair,
    /// Something is quite different: no answer can be given.
    Poor,
    /// The scenario was not replayed.
    Unknown,
}

/// What a replay with another congestion control differs by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerFit {
    /// The congestion control, with what one group had instead, the scale of round-trip times, and random losses, where those were tried.
    pub name: String,
    /// Difference between recording and replay, as a share, on average over all measures.
    pub difference: f64,
}

impl Verdict {
    /// Its word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Close => "close",
            Verdict::Fair => "fair",
            Verdict::Poor => "poor",
            Verdict::Unknown => "unknown",
        }
    }
}

impl ReplayFit {
    /// The fit of a scenario that was not replayed, for this reason.
    pub fn unknown(reason: &str) -> ReplayFit {
        ReplayFit {
            verdict: Verdict::Unknown,
            measure: None,
            difference: None,
            reasons: vec![reason.to_owned()],
            advice: vec![String::from("`fleetfoot import --fit always` measures it.")],
            controllers: Vec::new(),
            changed: false,
        }
    }

    /// Whether a comparison of this scenario may name a winner: not while its replay is known to be quite different from the recording.
    pub fn permits_an_answer(&self) -> bool {
        self.changed || self.verdict != Verdict::Poor
    }

    /// What a reader of a comparison must know, in sentences: the verdict, its worst measure, and what to try.
    pub fn sentences(&self) -> String {
        let mut text = match (self.verdict, self.changed) {
            (Verdict::Unknown, _) => {
                String::from("How well this scenario fits the recording it was made of is not known.")
            }
            (verdict, false) => format!(
                "The fit of this scenario to the recording it was made of is {}",
                verdict.name()
            ),
            (verdict, true) => format!(
                "The fit of this scenario to the recording was {} when it was imported; network, hosts or traffic were changed since",
                verdict.name()
            ),
        };
        if self.verdict != Verdict::Unknown {
            match (&self.measure, self.difference) {
                (Some(measure), Some(difference)) if self.verdict > Verdict::Close => {
                    text.push_str(&format!(
                        " (worst: {measure}, {:.0} % apart).",
                        difference * 100.0
                    ));
                }
                _ => text.push('.'),
            }
        }
        if self.verdict > Verdict::Close {
            for advice in &self.advice {
                text.push(' ');
                text.push_str(advice);
            }
        }
        text
    }

    /// The table of a file; `identity` is what it was measured with.
    pub fn to_toml(&self, identity: &str) -> String {
        let quoted = |text: &str| {
            let text = serde_json::Value::from(text).to_string();
            text.replace('\u{7f}', "\\u007f")
        };
        let list = |texts: &[String]| {
            let texts: Vec<String> = texts
                .iter()
                .map(|text| format!("    {},\n", quoted(text)))
                .collect();
            match texts.is_empty() {
                true => String::from("[]"),
                false => format!("[\n{}]", texts.concat()),
            }
        };
        let share = |share: f64| format!("{:.3}", share.clamp(0.0, 1e9));
        let mut text = format!(
            "[import] # how well this file, replayed, fits the recording; `compare` names no winner while it is poor\nfit = \"{}\"\n",
            self.verdict.name()
        );
        if let (Some(measure), Some(difference)) = (&self.measure, self.difference) {
            text.push_str(&format!(
                "measure = {} # what differs most for what it may\ndifference = {}\n",
                quoted(measure),
                share(difference)
            ));
        }
        for (key, texts) in [("reasons", &self.reasons), ("try", &self.advice)] {
            if !texts.is_empty() {
                text.push_str(&format!("{key} = {}\n", list(texts)));
            }
        }
        if !self.controllers.is_empty() {
            text.push_str("controllers = [ # tried, by how much the replay differs with each\n");
            for one in &self.controllers {
                text.push_str(&format!(
                    "    {{ name = {}, difference = {} }},\n",
                    quoted(&one.name),
                    share(one.difference)
                ));
            }
            text.push_str("]\n");
        }
        text.push_str(&format!(
            "of = \"{identity}\" # network, hosts and traffic that it was measured with\n"
        ));
        text
    }
}

/// Reads `[import]`, if there is one, of a file whose network, hosts and traffic are `identity`.
pub(super) fn read(document: &Table, identity: &str) -> Result<Option<ReplayFit>, Error> {
    let Some(node) = document.get("import") else {
        return Ok(None);
    };
    let section = Section::open(node, keys::IMPORT, "import")?;
    let texts = |name: &'static str| -> Result<Vec<String>, Error> {
        let fields = section.need(name)?.list()?;
        fields
            .iter()
            .map(|field| field.text().map(str::to_owned))
            .collect()
    };
    let text = |name: &str| -> Result<Option<String>, Error> {
        section
            .find(name)?
            .map(|field| field.text().map(str::to_owned))
            .transpose()
    };
    let controllers = section.need("controllers")?.list()?;
    let controllers = controllers.iter().map(|field| {
        let entry = Section::open(&field.node, keys::CONTROLLER, &field.path)?;
        Ok(ControllerFit {
            name: entry.need("name")?.text()?.to_owned(),
            difference: entry.need("difference")?.number()?,
        })
    });
    Ok(Some(ReplayFit {
        verdict: match section.need("fit")?.choice()? {
            "close" => Verdict::Close,
            "fair" => Verdict::Fair,
            "poor" => Verdict::Poor,
            _ => Verdict::Unknown,
        },
        measure: text("measure")?,
        difference: section
            .find("difference")?
            .map(|field| field.number())
            .transpose()?,
        reasons: texts("reasons")?,
        advice: texts("try")?,
        controllers: controllers.collect::<Result<_, Error>>()?,
        changed: text("of")?.is_some_and(|of| of != identity),
    }))
}

/// A hash (hexadecimal) of the network, hosts and traffic of a file, the recordings that it replays included.
pub(super) fn identity(document: &Table, groups: &[GroupSpec]) -> String {
    let mut hasher = blake3::Hasher::new();
    for name in MEASURED {
        let table: toml::Table = document
            .get(name)
            .map(|node: &Node| (String::from(name), node.to_toml()))
            .into_iter()
            .collect();
        hasher.update(table.to_string().as_bytes());
        hasher.update(&[0]);
    }
    for group in groups {
        if let Traffic::Replay(replay) = &group.traffic {
            // The first word is the hash of the file.
            let file = replay.identity.split(' ').next().unwrap_or_default();
            hasher.update(file.as_bytes());
            hasher.update(&[0]);
        }
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The tables of a file that decide what a replay gives.
const MEASURED: [&str; 5] = ["network", "link", "node", "tcp", "traffic"];

#[cfg(test)]
mod tests {
    use super::{ControllerFit, ReplayFit, Verdict};
    use crate::scenario::{Scenario, Setting};

    const FILE: &str = "title = \"t\"\n[network]\nkind = \"dumbbell\"\nbottleneck = { rate = \"10 Mbit/s\", delay = \"10 ms\" }\n\
        [[traffic]]\nkind = \"transfer\"\nsize = \"10 kB\"\narrivals = { dist = \"poisson\", rate = \"1 per second\" }\n\
        [run]\nduration = \"5 s\"\n";

    fn fit() -> ReplayFit {
        ReplayFit {
            verdict: Verdict::Poor,
            measure: Some(String::from("exchanges")),
            difference: Some(1.72),
            reasons: vec![String::from("exchanges \"differ\" by 172 %")],
            advice: vec![String::from("Capture both directions.")],
            controllers: vec![
                ControllerFit {
                    name: String::from("bbr"),
                    difference: 0.125,
                },
                ControllerFit {
                    name: String::from("cubic"),
                    difference: 0.5,
                },
            ],
            changed: false,
        }
    }

    fn resolved(text: &str, set: &Setting) -> crate::scenario::Resolved {
        let scenario = Scenario::parse("test.toml", text).unwrap_or_else(|error| panic!("{error}"));
        scenario.resolve(set).unwrap_or_else(|error| panic!("{error}"))
    }

    fn with_fit() -> String {
        let identity = resolved(FILE, &Setting::none()).identity;
        format!("{FILE}\n{}", fit().to_toml(&identity))
    }

    #[test]
    fn what_is_written_is_read_again() {
        assert_eq!(resolved(FILE, &Setting::none()).fit, None);
        assert_eq!(resolved(&with_fit(), &Setting::none()).fit, Some(fit()));
        // Through the whole file that goes with a result, too.
        let scenario = Scenario::parse("test.toml", &with_fit()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(resolved(&scenario.to_toml(), &Setting::none()).fit, Some(fit()));
    }

    #[test]
    fn a_change_of_the_network_ends_what_is_known_of_the_fit() {
        let changed = |text: &str, set: &Setting| {
            let fit = resolved(text, set).fit.expect("it has one");
            assert_eq!(fit.changed, fit.permits_an_answer(), "it was poor");
            fit.changed
        };
        let text = with_fit();
        assert!(!changed(&text, &Setting::none()));
        let rate = Setting::none().with("network.bottleneck.rate", "20 Mbit/s");
        assert!(changed(&text, &rate));
        assert!(changed(&text.replace("10 kB", "11 kB"), &Setting::none()));
        let free = text
            .replace("duration = \"5 s\"", "duration = \"6 s\" # longer")
            .replace("title = \"t\"", "title = \"u\"");
        assert!(!changed(&free, &Setting::none()));
    }

    #[test]
    fn a_poor_fit_says_what_to_try() {
        assert_eq!(
            fit().sentences(),
            "The fit of this scenario to the recording it was made of is poor (worst: exchanges, 172 % apart). Capture both directions."
        );
        let close = ReplayFit {
            verdict: Verdict::Close,
            ..fit()
        };
        assert_eq!(
            close.sentences(),
            "The fit of this scenario to the recording it was made of is close."
        );
    }

    #[test]
    fn mistakes_are_reported() {
        let message_of = |from: &str, to: &str| {
            let text = with_fit().replace(from, to);
            let error = Scenario::parse("test.toml", &text).expect_err("a mistake");
            error.to_string()
        };
        let message = message_of("fit = \"poor\"", "fit = \"good\"");
        assert!(
            message.contains("import.fit") && message.contains("`fair`"),
            "{message}"
        );
        let message = message_of("difference = 1.720", "difference = -1");
        assert!(message.contains("import.difference"), "{message}");
        let message = message_of("measure =", "mesure =");
        assert!(message.contains("did you mean `measure`"), "{message}");
    }
}
