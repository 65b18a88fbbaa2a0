//! What of a replay is close to the recording, what is not, and what to try.
//!
//! Each measure has two limits: up to the first it is close, up to the second fair, beyond it poor. The verdict is that of the worst;
//! the measure that is reported with it is, of those with this verdict, the one that is farthest beyond its first limit.

use super::{Fit, Likeness, Verdict, difference, exchanges};
use crate::import::capture::QUIET;
use crate::import::scenario;
use crate::import::summary::{Summary, count, time};
use crate::scenario::{ReplayFit, Resolved};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::Spec;
use serde::Serialize;

/// One thing that recording and replay are compared by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// What.
    pub name: &'static str,
    /// By how much they differ, as a share; `None`: unknown.
    pub difference: Option<f64>,
    /// Up to these it is close, and fair.
    pub limits: [f64; 2],
    /// By them.
    pub verdict: Verdict,
}

impl Fit {
    /// Fills in measures, verdict, reasons and advice from what was replayed, also on a line that is faster by a ten-thousandth (`beside`).
    pub(super) fn judge(
        &mut self,
        summary: &Summary,
        resolved: &Resolved,
        output: &RunOutput,
        beside: &RunOutput,
    ) {
        let busy = summary.busy();
        // Long transfers count alone where there is nothing else.
        let short = self.exchange_s.recorded.is_some();
        let [own, other] = [output, beside].map(|output| exchanges(resolved, output, !short));
        self.chance = difference(&own.counts(), &other.counts()).map(|quantiles| {
            let means = [&own, &other].map(|times| times.mean().unwrap_or(1.0).max(1.0));
            quantiles.max(apart(means[0], means[1]))
        });
        let unfinished = unfinished(summary, &resolved.spec, output);
        if short {
            let likeness = self.exchange_s.clone();
            self.hold("exchanges", "exchanges differ by", likeness.difference, TIMES);
            self.hold_ended(&likeness, "exchanges did not end", &unfinished);
            self.hold_moments(
                &likeness,
                ["mean of exchanges", "90th percentile of exchanges"],
                "their",
            );
        }
        if self.long_s.recorded.is_some() {
            let likeness = self.long_s.clone();
            self.hold(
                "long transfers",
                "long transfers differ by",
                likeness.difference,
                TIMES,
            );
            self.hold_ended(&likeness, "long transfers did not end", &unfinished);
        }
        if let Some(chance) = self.chance.filter(|chance| *chance > TIMES[0]) {
            self.hold("chance", "chance alone makes", Some(chance), [TIMES[0], f64::MAX]);
        }
        self.hold_network(summary, busy);
        let [recorded, replayed] = self.retransmitted;
        let difference = libm::fabs(recorded - replayed);
        // Some segments more or less are chance.
        let relative = difference / recorded.max(replayed).max(1e-9);
        let relative = if difference <= CHANCE_LOST { 0.0 } else { relative };
        self.hold(
            "retransmissions",
            "retransmissions differ by",
            Some(relative),
            [0.25, 0.5],
        );
        let farther =
            matches!(self.rtt_s, [Some(recorded), Some(replayed)] if replayed > (1.0 + TIMES[0]) * recorded);
        if let Some(standing) = summary.standing.filter(|_| farther) {
            self.reasons.push(format!(
                "{} of {} pairs of hosts are probably nearer than recorded: what they have more is a queue, see rtt_scale",
                standing.pairs, standing.of
            ));
        }
        if summary.sideless_share > SIDELESS_SHARE {
            self.verdict = self.verdict.max(Verdict::Fair);
            self.reasons.push(format!(
                "{:.0} % of the payload is between hosts of one side, but replayed over the line",
                summary.sideless_share * 100.0
            ));
        }
        if self.verdict > Verdict::Close {
            self.advice = self.advise(summary, busy);
        }
    }

    /// Round-trip times and waits in the queues of both directions.
    fn hold_network(&mut self, summary: &Summary, busy: usize) {
        if let [Some(recorded), Some(replayed)] = self.rtt_s {
            let difference = Some(apart(recorded, replayed));
            self.hold(
                "round-trip times",
                "round-trip times differ by",
                difference,
                TIMES,
            );
        } else {
            // Without distance exchanges are those that were made up with it.
            let likeness = self.connection_s.clone();
            self.hold("connections", "connections differ by", likeness.difference, TIMES);
        }
        let rtt_s = match self.rtt_s {
            [Some(recorded), Some(_)] => recorded,
            _ => 0.0,
        };
        // Where both have much data, each one's recorded waits have some of the other's.
        let quiet = summary.segments[1 - busy].bytes.saturating_mul(QUIET) < summary.segments[busy].bytes;
        for (direction, name, words) in [
            (busy, "waits in the queue", "waits in the queue differ by"),
            (
                1 - busy,
                "waits in the queue of the other direction",
                "waits in the queue of the direction with less data differ by",
            ),
        ] {
            if let [Some(before), Some(after)] = self.wait_s[direction]
                && (quiet || direction == busy)
            {
                let difference = libm::fabs(after - before) / (rtt_s + before).max(LEAST_TIME_S);
                self.hold(name, words, Some(difference), TIMES);
            }
        }
        if hiccup(summary, busy) {
            self.verdict = self.verdict.max(Verdict::Fair);
            self.reasons.push(String::from(
                "a hiccup held some packets up for longer than the queue does, which is not replayed",
            ));
        }
        if self.rtt_s[0].is_none() {
            self.verdict = self.verdict.max(Verdict::Fair);
            self.reasons.push(String::from(
                "no round-trip time is known: the distance in the scenario is made up",
            ));
        }
    }

    /// Exchanges that did not end in the replay.
    fn hold_ended(&mut self, likeness: &Likeness, words: &'static str, unfinished: &str) {
        if let (Some(recorded), Some(replayed)) = (likeness.recorded, likeness.replayed) {
            let missing = 1.0 - replayed.n as f64 / recorded.n.max(1) as f64;
            self.hold(
                words,
                &format!("{words}{unfinished}:"),
                Some(missing),
                [0.02, 0.1],
            );
        }
    }

    /// Mean and 90th percentile.
    fn hold_moments(&mut self, likeness: &Likeness, names: [&'static str; 2], whose: &str) {
        if let (Some(recorded), Some(replayed)) = (likeness.recorded, likeness.replayed) {
            let [mean, p90] = names;
            let words = [
                format!("{whose} mean differs by"),
                format!("{whose} 90th percentile differs by"),
            ];
            self.hold(mean, &words[0], Some(apart(recorded.mean, replayed.mean)), TIMES);
            self.hold(p90, &words[1], Some(apart(recorded.p90, replayed.p90)), TIMES);
        }
    }

    /// Takes a measure into the verdict; `words` begin the reason that is given where it is not close.
    fn hold(&mut self, name: &'static str, words: &str, difference: Option<f64>, limits: [f64; 2]) {
        let verdict = match difference {
            Some(difference) if difference <= limits[0] => Verdict::Close,
            Some(difference) if difference <= limits[1] => Verdict::Fair,
            Some(_) | None => Verdict::Poor,
        };
        self.measures.push(Measure {
            name,
            difference,
            limits,
            verdict,
        });
        if verdict > Verdict::Close {
            self.verdict = self.verdict.max(verdict);
            self.reasons.push(match difference {
                Some(difference) => format!("{words} {:.0} %", difference * 100.0),
                None => format!("{words} an unknown amount"),
            });
        }
    }

    /// The measure that differs most for what it may.
    pub fn worst(&self) -> Option<&Measure> {
        let beyond = |measure: &Measure| measure.difference.unwrap_or(f64::MAX) / measure.limits[0];
        self.measures.iter().max_by(|one, other| {
            (one.verdict.cmp(&other.verdict)).then(beyond(one).total_cmp(&beyond(other)))
        })
    }

    /// What would probably make the fit better, the likeliest first.
    fn advise(&self, summary: &Summary, busy: usize) -> Vec<String> {
        let mut advice = Vec::new();
        if summary.one_way > 0 {
            advice.push(format!(
                "{} connection{} only one direction in the capture: capture where both directions pass.",
                count(summary.one_way),
                if summary.one_way == 1 { " has" } else { "s have" }
            ));
        }
        if !self.rate_known {
            advice.push(String::from(
                "The rate of the line is a guess: write what you know of it into [network.bottleneck], or capture while the line is full.",
            ));
        }
        let [recorded, replayed] = self.retransmitted;
        let lossy = recorded - replayed > CHANCE_LOST;
        if lossy && self.wait_s[busy][0].is_some_and(|wait| wait < SHORT_WAIT_S) {
            advice.push(String::from(
                "More was lost than a queue explains: losses = true in [[traffic]] replays the recorded shares as random losses.",
            ));
        } else if replayed - recorded > CHANCE_LOST && self.lost_at_random() {
            advice.push(String::from(
                "The replay retransmits more than was recorded, and no queue drops it: the random losses of `losses = true` are more than the path's. Write smaller \
                 shares into the lines `l` of the .cvec, or losses = false.",
            ));
        } else if replayed - recorded > CHANCE_LOST {
            advice.push(String::from(
                "The replay loses more than was recorded: a larger `limit` of the bottleneck's queue, or a congestion control that fills it less.",
            ));
        }
        if let (Some(standing), [Some(recorded), Some(replayed)]) = (summary.standing, self.rtt_s)
            && replayed > (1.0 + TIMES[0]) * recorded
        {
            advice.push(format!(
                "Some hosts never saw the queue empty: rtt_scale = {} takes its length off their round-trip times.",
                standing.scale()
            ));
        }
        if hiccup(summary, busy) {
            advice.push(String::from(
                "What senders did after the hiccup tells little of their congestion control: say it with --congestion-control NAME where you know it, or capture again.",
            ));
        }
        let exchanges = self.exchange_s.recorded.map_or(0, |sample| sample.n);
        if summary.span_s < SHORT_S || exchanges < FEW {
            advice.push(format!(
                "The capture is short ({}, {} exchange{}): a longer one has more to compare.",
                time(summary.span_s),
                count(exchanges),
                if exchanges == 1 { "" } else { "s" }
            ));
        }
        if let Some(chance) = self.chance.filter(|chance| *chance > TIMES[0]) {
            advice.push(format!(
                "Two replays that differ by a ten-thousandth of the line's rate are {:.0} % apart: a longer capture has more exchanges, over \
                 which chance evens out.",
                chance * 100.0
            ));
        }
        if summary.crowded {
            advice.push(String::from(
                "Much of the capture is no TCP: add it as traffic of kind cbr, or capture without it.",
            ));
        }
        if advice.is_empty() {
            advice.push(String::from(
                "Write what you know of the line (rate, queue, its kind and limit, jitter) and of other traffic on it into the scenario, \
                 or another congestion_control in [tcp].",
            ));
        }
        advice
    }

    /// Whether the replay has random losses, and no queue that stood.
    fn lost_at_random(&self) -> bool {
        let losses = self
            .controllers
            .first()
            .is_some_and(|first| first.name.ends_with(", losses"));
        let waits = self.wait_s.iter().filter_map(|wait| wait[1]);
        losses && waits.fold(0.0, f64::max) < SHORT_WAIT_S
    }

    /// The fit as the scenario carries it.
    pub fn statement(&self) -> ReplayFit {
        let worst = self.worst();
        ReplayFit {
            verdict: self.verdict,
            measure: worst.map(|measure| measure.name.to_owned()),
            difference: worst.and_then(|measure| measure.difference),
            reasons: self.reasons.clone(),
            advice: self.advice.clone(),
            controllers: self.controllers.clone(),
            changed: false,
        }
    }

    /// The verdict in a sentence.
    pub(super) fn sentence(&self) -> String {
        let reasons = self.reasons.join(", ");
        let advice = self.advice.join(" ");
        match self.verdict {
            Verdict::Close if self.rate_known => String::from("The fit is close."),
            Verdict::Close => String::from(
                "The fit is close at this load; the rate of the line is a guess, and more would show it: write what you know of it.",
            ),
            Verdict::Fair | Verdict::Unknown => {
                format!("The fit is fair ({reasons}): rate and queue in the scenario are estimates. {advice}")
            }
            Verdict::Poor => format!(
                "The fit is poor ({reasons}): `compare` names no winner for this scenario as it stands. {advice}"
            ),
        }
    }
}

/// Whether a few packets were held up elsewhere than in the queue.
fn hiccup(summary: &Summary, direction: usize) -> bool {
    scenario::full_s(summary, direction).is_some_and(|(_, few)| few)
}

/// Why exchanges of a replay may not have ended, in words.
fn unfinished(summary: &Summary, spec: &Spec, output: &RunOutput) -> String {
    let mut causes = Vec::new();
    let ended: usize = output.groups.iter().map(|group| group.connections.len()).sum();
    let open = summary.connections.saturating_sub(ended as u64);
    if open > 0 {
        causes.push(format!(
            "the run of {} was over before {} connection{} had said all",
            time(spec.duration.as_secs_f64()),
            count(open),
            if open == 1 { "" } else { "s" },
        ));
    }
    // Units of one end behind each other, closer than a round-trip time.
    let follow = match (summary.pause_s, summary.rtt_s) {
        (Some(pause), Some(rtt)) => pause.p10 < rtt.p50,
        _ => false,
    };
    if follow && spec.groups.iter().any(|group| group.sender.nagle) {
        causes.push(String::from(
            "Nagle's algorithm holds small segments while others are not acknowledged, which nagle = false in [tcp] ends",
        ));
    }
    match causes.is_empty() {
        true => String::new(),
        false => format!(" ({})", causes.join("; ")),
    }
}

/// How much more the larger of two values is than the smaller, as a share.
pub(super) fn apart(one: f64, other: f64) -> f64 {
    one.max(other).max(1e-12) / one.min(other).max(1e-12) - 1.0
}

/// Differences of times up to which a fit is close, and fair.
const TIMES: [f64; 2] = [0.1, 0.3];
/// Less than this of time is nothing to compare with.
const LEAST_TIME_S: f64 = 0.005;
/// What may be replayed the wrong way and does not matter.
const SIDELESS_SHARE: f64 = 0.01;
/// Shares of retransmitted segments that differ by no more than this are alike.
const CHANCE_LOST: f64 = 0.005;
/// A queue that data wait no longer for loses little.
const SHORT_WAIT_S: f64 = 0.02;
/// A shorter capture, or one with fewer exchanges, shows little.
const SHORT_S: f64 = 10.0;
const FEW: u64 = 20;

#[cfg(test)]
mod tests {
    use super::{Fit, Likeness, Verdict};
    use crate::import::summary::{Segments, Summary};
    use crate::scenario::ControllerFit;

    fn likeness(difference: f64) -> Likeness {
        Likeness {
            recorded: None,
            replayed: None,
            difference: Some(difference),
        }
    }

    /// All is alike.
    fn alike() -> Fit {
        Fit {
            exchange_s: likeness(0.0),
            long_s: likeness(0.0),
            connection_s: likeness(0.0),
            rtt_s: [Some(0.04); 2],
            wait_s: [[None; 2], [Some(0.01); 2]],
            retransmitted: [0.0; 2],
            chance: None,
            rate_known: true,
            verdict: Verdict::Close,
            measures: Vec::new(),
            reasons: Vec::new(),
            advice: Vec::new(),
            controllers: Vec::new(),
        }
    }

    #[test]
    fn without_a_round_trip_time_waits_and_connections_are_compared_all_the_same() {
        let judged = |fit: &Fit| {
            let mut fit = fit.clone();
            fit.hold_network(&Summary::default(), 1);
            (fit.verdict, fit.reasons.join(", "))
        };
        assert_eq!(judged(&alike()), (Verdict::Close, String::new()));
        let mut blind = Fit {
            rtt_s: [None, Some(0.0715)],
            ..alike()
        };
        let (verdict, reasons) = judged(&blind);
        assert!(
            verdict == Verdict::Fair && reasons.contains("no round-trip time is known"),
            "{reasons}"
        );
        // Half of what data waited is missing, and connections are far too short.
        blind.wait_s[1] = [Some(0.218), Some(0.109)];
        blind.connection_s = likeness(0.7);
        let (verdict, reasons) = judged(&blind);
        assert!(
            verdict == Verdict::Poor
                && reasons.contains("connections differ by 70 %, waits in the queue differ by 50 %"),
            "{reasons}"
        );
    }

    #[test]
    fn the_direction_with_less_data_is_compared_too() {
        let mut fit = alike();
        fit.wait_s[0] = [Some(0.005), Some(0.024)];
        let mut summary = Summary {
            segments: [2_000_000, 5_000_000].map(|bytes| Segments::of(bytes, 1, 0)),
            ..Summary::default()
        };
        fit.hold_network(&summary, 1);
        assert_eq!(
            fit.verdict,
            Verdict::Close,
            "both directions are in the waits of either"
        );
        summary.segments[0] = Segments::of(1_000_000, 1, 0);
        fit.hold_network(&summary, 1);
        assert_eq!(fit.verdict, Verdict::Poor);
        assert_eq!(
            fit.reasons,
            ["waits in the queue of the direction with less data differ by 42 %"]
        );
    }

    #[test]
    fn advice_against_losses_is_what_the_record_shows() {
        let mut fit = alike();
        fit.retransmitted = [0.06, 0.11];
        fit.wait_s[1] = [Some(0.0), Some(0.0)];
        let queue = fit.advise(&Summary::default(), 1).join(" ");
        assert!(
            queue.contains("a larger `limit` of the bottleneck's queue"),
            "{queue}"
        );
        fit.controllers = vec![ControllerFit {
            name: String::from("cubic, losses"),
            difference: 0.07,
        }];
        let losses = fit.advise(&Summary::default(), 1).join(" ");
        assert!(
            losses.contains("no queue drops it") && !losses.contains("`limit`"),
            "{losses}"
        );
    }
}
