//! With which congestion control a scenario fits its recording best.
//!
//! A capture does not say what its senders run. The scenario is replayed with each congestion control that a Linux sender may have had,
//! once each and with the same seed, and held against the recording: exchanges, long transfers, waits in the queue, round-trip times and
//! retransmissions, each as the logarithm of a ratio, on average over those that were recorded. The smallest difference is taken. Where others
//! differ by hardly more, the recording does not distinguish them, and the commonest of them is taken. Where several groups have much of the data and
//! the best of all is not close, each group is tried with others too: a server's transfers and an uploading host need not be alike.
//!
//! Where hosts may have taken a queue that stood for distance (`capture/standing`), all of them are tried with the round-trip times
//! scaled to the nearest as well. This, and another congestion control for a group, is taken only where the replay is clearly closer.
//!
//! Where something was retransmitted and none is close, all of them are tried with the recorded shares as random losses (`losses = true`) as well:
//! a path that loses at random holds a sender back without a queue, which no congestion control explains. This too is taken only where the
//! replay is clearly closer, since losses of a queue come again by themselves.
//!
//! Where nothing was retransmitted, no queue of the recording was ever full, so what was seen to wait is only the least that it has room for. Where the
//! replays lose packets all the same, all of them are tried with twice and four times the room, and those that lose none come first.
//!
//! The limits at the end of this file are ours: docs/import.md says on which recordings they were tried, and what they name.
//!
//! That is four to twenty-six replays, beside the one that shows what is chance.

use super::{Fit, queues};
use crate::import::files::Imported;
use crate::import::scenario::Controllers;
use crate::import::summary::{Quantiles, Summary};
use crate::run::{self, Job, simulate};
use crate::scenario::{ControllerFit, ErrorKind, Resolved, Scenario, Setting};
use fleetfoot_core::parameter::Value;
use fleetfoot_core::queue::Limit;
use fleetfoot_sim::output::{Histogram, RunOutput};
use fleetfoot_sim::spec::Spec;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a Linux sender may have, the commonest first.
pub const LINUX: [&str; 4] = ["cubic", "bbr", "reno", "bbr3"];

/// How to look for the congestion control that fits best.
pub struct Trials<'a> {
    /// What is tried; the first is preferred where others fit hardly better.
    pub names: &'a [&'static str],
    /// Ends the search when it is set.
    pub stop: &'a AtomicBool,
    /// Called for every replay that is finished.
    pub progress: &'a (dyn Fn(&run::Progress) + Sync),
}

/// What is tried.
#[derive(Clone, Copy, PartialEq)]
struct Tried {
    /// What all hosts have, and one group instead.
    all: &'static str,
    group: Option<(&'static str, &'static str)>,
    /// Scale of round-trip times, if not 1.
    rtt_scale: Option<f64>,
    /// With the recorded shares as random losses.
    losses: bool,
    /// So many times the room of the queues.
    room: Option<u32>,
}

/// One replay.
struct Trial {
    tried: Tried,
    resolved: Resolved,
    output: Arc<RunOutput>,
    difference: f64,
    /// It loses packets, and the recording lost none.
    loses: bool,
}

impl Trials<'_> {
    /// Replays what was imported with each, writes the scenario with the one that fits best, and returns its fit; `None`: of a file of
    /// vectors no times are known, or the search was ended.
    ///
    /// # Errors
    /// The scenario cannot be run or written.
    pub fn best(&self, imported: &Imported) -> Result<Option<Fit>, String> {
        let summary = &imported.summary;
        if summary.connection_counts.is_empty() {
            return Ok(None);
        }
        let scenario = Scenario::load(&imported.scenario).map_err(|error| error.to_string())?;
        let scales = std::iter::once(None).chain(summary.standing.map(|standing| Some(standing.scale())));
        let alike: Vec<Tried> = scales
            .flat_map(|rtt_scale| {
                self.names.iter().map(move |name| Tried {
                    all: name,
                    group: None,
                    rtt_scale,
                    losses: false,
                    room: None,
                })
            })
            .collect();
        let Some(mut trials) = self.replay(imported, &scenario, &alike)? else {
            return Ok(None);
        };
        if trials.iter().all(|trial| trial.loses) {
            let roomier = ROOMS.iter().flat_map(|&times| {
                let room = Some(times);
                alike.iter().map(move |tried| Tried { room, ..*tried })
            });
            let roomier: Vec<Tried> = roomier.collect();
            let Some(more) = self.replay(imported, &scenario, &roomier)? else {
                return Ok(None);
            };
            trials.extend(more);
        }
        let Some(first) = preferred(&trials) else {
            return Ok(None);
        };
        if trials[first].difference > CLOSE {
            let alike = trials[first].tried;
            let groups = large(imported, &trials[first]);
            let others = groups.iter().flat_map(|group| {
                let names = self.names.iter().filter(|name| **name != alike.all);
                names.map(|name| Tried {
                    group: Some((*group, *name)),
                    ..alike
                })
            });
            let lossy = self.names.iter().filter(|_| lossy(summary)).map(|name| Tried {
                all: name,
                losses: true,
                ..alike
            });
            let others: Vec<Tried> = others.chain(lossy).collect();
            let Some(more) = self.replay(imported, &scenario, &others)? else {
                return Ok(None);
            };
            trials.extend(more);
        }
        let best = preferred(&trials).unwrap_or(first);
        let best = trials.swap_remove(best);
        trials.sort_by(|one, other| one.difference.total_cmp(&other.difference));
        let fits: Vec<ControllerFit> = std::iter::once(&best).chain(&trials).map(Trial::fit).collect();
        let chosen = Controllers {
            all: Some(best.tried.all),
            groups: best.tried.group.into_iter().collect(),
            rtt_scale: best.tried.rtt_scale,
            losses: best.tried.losses,
            room: best.tried.room,
            why: why(&fits),
        };
        imported.write(&chosen).map_err(|error| error.to_string())?;
        let beside = self.run(imported, &scenario, &[best.tried], super::neighbour)?;
        let Some((_, beside)) = beside.and_then(|mut beside| beside.pop()) else {
            return Ok(None);
        };
        let mut fit = Fit::between(summary, &best.resolved, &best.output);
        fit.controllers = fits;
        fit.judge(summary, &best.resolved, &best.output, &beside);
        Ok(Some(fit))
    }

    /// Replays with these; `None`: it was ended.
    fn replay(
        &self,
        imported: &Imported,
        scenario: &Scenario,
        tried: &[Tried],
    ) -> Result<Option<Vec<Trial>>, String> {
        let Some(outputs) = self.run(imported, scenario, tried, Spec::clone)? else {
            return Ok(None);
        };
        let trials = tried.iter().zip(outputs);
        let trials = trials.map(|(tried, (resolved, output))| Trial {
            tried: *tried,
            difference: apart(&imported.summary, &resolved, &output),
            loses: loses(&imported.summary, &resolved, &output),
            resolved,
            output,
        });
        Ok(Some(trials.collect()))
    }

    /// The replays, one for each of `tried`, of what `line` makes of it.
    fn run(
        &self,
        imported: &Imported,
        scenario: &Scenario,
        tried: &[Tried],
        line: fn(&Spec) -> Spec,
    ) -> Result<Option<Vec<Replayed>>, String> {
        let mut variants = Vec::new();
        for one in tried {
            let mut set = Setting::none().with("tcp.congestion_control", one.all);
            if let Some((group, name)) = one.group {
                set = set.with(format!("traffic.{group}.tcp.congestion_control"), name);
            }
            for (part, _) in &imported.vectors {
                if let Some(scale) = one.rtt_scale {
                    set = set.with(format!("traffic.{}.rtt_scale", part.name), scale);
                }
                if one.losses {
                    set = set.with(format!("traffic.{}.losses", part.name), true);
                }
            }
            let resolved = match scenario.resolve(&set) {
                Err(error) if error.kind == ErrorKind::NoChange => scenario.resolve(&Setting::none()),
                resolved => resolved,
            };
            let mut resolved = resolved.map_err(|error| error.to_string())?;
            if let Some(times) = one.room {
                give_room(&mut resolved.spec, times);
            }
            variants.push(resolved);
        }
        let jobs = tried
            .iter()
            .zip(&variants)
            .map(|(one, resolved)| Job::new(one.name(), line(&resolved.spec), None));
        let jobs: Vec<Job> = jobs.collect();
        let batch = run::execute(
            &jobs,
            &[SEED],
            &run::Options::default(),
            self.stop,
            &simulate,
            self.progress,
        );
        let batch = batch.map_err(|error| error.to_string())?;
        if batch.interrupted {
            return Ok(None);
        }
        let outputs = batch
            .runs
            .into_iter()
            .filter_map(|mut runs| Some(runs.pop()?.output));
        Ok(Some(variants.into_iter().zip(outputs).collect()))
    }
}

/// What was replayed, and what came out.
type Replayed = (Resolved, Arc<RunOutput>);

impl Trial {
    fn fit(&self) -> ControllerFit {
        ControllerFit {
            name: self.tried.name(),
            difference: self.difference,
        }
    }
}

impl Tried {
    /// `cubic`, or `cubic, long: bbr, rtt_scale 0.5`, or `cubic, losses`.
    fn name(&self) -> String {
        let group = self.group.map(|(group, name)| format!(", {group}: {name}"));
        let scale = self.rtt_scale.map(|scale| format!(", rtt_scale {scale}"));
        let room = self.room.map(|times| format!(", room x {times}"));
        format!(
            "{}{}{}{}{}",
            self.all,
            group.unwrap_or_default(),
            scale.unwrap_or_default(),
            room.unwrap_or_default(),
            if self.losses { ", losses" } else { "" }
        )
    }
}

/// Gives the queues of the line so many times their room.
fn give_room(spec: &mut Spec, times: u32) {
    for link in spec.links.iter_mut().filter(|link| link.name == "bottleneck") {
        if let Limit::Packets(packets) = link.queue_values.limit("limit") {
            let more = Value::Limit(Limit::Packets(packets.saturating_mul(times)));
            // A limit of packets is what it has already.
            let _ = link.queue_values.set("limit", more);
        }
    }
}

/// Whether a replay loses packets of a recording that lost none.
fn loses(summary: &Summary, resolved: &Resolved, output: &RunOutput) -> bool {
    let [recorded, replayed] = Fit::between(summary, resolved, output).retransmitted;
    recorded == 0.0 && replayed > LOSSY
}

/// The first of all hosts alike that differs by hardly more than the one that differs least; with scaled round-trip times, then with
/// another for one group, and then with random losses, where that is clearly closer.
fn preferred(trials: &[Trial]) -> Option<usize> {
    let all_lose = trials.iter().all(|trial| trial.loses);
    let best = |grouped: bool, lossy: bool, scaled: Option<bool>| {
        let kind = |trial: &Trial| {
            (all_lose || !trial.loses)
                && trial.tried.group.is_some() == grouped
                && trial.tried.losses == lossy
                && scaled.is_none_or(|scaled| trial.tried.rtt_scale.is_some() == scaled)
        };
        let own = trials.iter().filter(|trial| kind(trial));
        let least = own.map(|trial| trial.difference).min_by(f64::total_cmp)?;
        let margin = least + MARGIN.max(RELATIVE * least);
        trials
            .iter()
            .position(|trial| kind(trial) && trial.difference <= margin)
    };
    let plain = [
        best(false, false, Some(false)),
        best(false, false, Some(true)),
        best(true, false, None),
        best(false, true, None),
    ];
    let mut plain = plain.into_iter().flatten();
    let mut taken = plain.next()?;
    for other in plain {
        let difference = trials[taken].difference;
        if trials[other].difference + CLEAR.max(CLEAR_SHARE * difference) <= difference {
            taken = other;
        }
    }
    Some(taken)
}

/// Why the first of these was taken, for a comment.
fn why(fits: &[ControllerFit]) -> String {
    let percent = |one: &ControllerFit| format!("{} {:.1} %", one.name, one.difference * 100.0);
    match fits {
        [] | [_] => String::from("as it was asked for"),
        [first, others @ ..] => {
            let list: Vec<String> = others.iter().map(percent).collect();
            let margin = first.difference + MARGIN.max(RELATIVE * first.difference);
            let words = if others.iter().all(|one| one.difference <= margin) {
                "the recording does not show which: its replay differs by"
            } else if others.iter().all(|one| first.difference <= one.difference) {
                "of those tried the one whose replay fits best: it differs by"
            } else {
                "nothing else that was tried fits clearly better: its replay differs by"
            };
            format!(
                "{words} {:.1} %; with {}",
                first.difference * 100.0,
                list.join(", ")
            )
        }
    }
}

/// Groups with much of the data, if there are several.
fn large(imported: &Imported, trial: &Trial) -> Vec<&'static str> {
    let bytes: Vec<u64> = trial
        .output
        .groups
        .iter()
        .map(|group| group.goodput_bytes.0)
        .collect();
    let all: u64 = bytes.iter().sum();
    let parts = imported.vectors.iter().map(|(part, _)| part.name);
    let large = parts
        .zip(bytes)
        .filter(|(_, own)| *own as f64 >= LARGE * all as f64);
    let large: Vec<&'static str> = large.map(|(name, _)| name).collect();
    match large.len() {
        0 | 1 => Vec::new(),
        _ => large,
    }
}

/// Whether enough was retransmitted to try it as random losses.
fn lossy(summary: &Summary) -> bool {
    let sums = summary.segments.iter().fold((0, 0), |sums, one| {
        (sums.0 + one.segments, sums.1 + one.retransmitted)
    });
    sums.1 as f64 >= LOSSY * sums.0.max(1) as f64
}

/// By how much a replay differs from the recording, as a share, on average over what was recorded.
fn apart(summary: &Summary, resolved: &Resolved, output: &RunOutput) -> f64 {
    let fit = Fit::between(summary, resolved, output);
    let mut logarithms: Vec<f64> = [&fit.exchange_s, &fit.long_s]
        .into_iter()
        .filter(|likeness| likeness.recorded.is_some())
        // Nothing of it ended in the replay.
        .map(|likeness| libm::log1p(likeness.difference.unwrap_or(NOTHING)))
        .collect();
    let rtt_s = summary.rtt_s.map_or(0.0, |rtt| rtt.p50).max(LEAST_RTT_S);
    let all: u64 = summary.segments.iter().map(|one| one.bytes).sum();
    for (direction, queue) in queues(resolved, output) {
        if let Some(recorded) = summary.wait_s[direction]
            && summary.segments[direction].bytes as f64 >= LARGE * all as f64
        {
            logarithms.push(waits(&recorded, queue, rtt_s));
        }
    }
    if let [Some(recorded), Some(replayed)] = fit.rtt_s {
        let longer = (replayed + LEAST_RTT_S) / (recorded + LEAST_RTT_S);
        logarithms.push(libm::fabs(libm::log(longer)));
    }
    let [recorded, replayed] = fit.retransmitted.map(|share| share + FLOOR);
    logarithms.push(LOSS_WEIGHT * libm::fabs(libm::log(recorded / replayed)));
    libm::expm1(logarithms.iter().sum::<f64>() / logarithms.len() as f64)
}

/// The mean difference of quantiles of what packets waited, as parts of a round-trip time with that wait.
fn waits(recorded: &Quantiles, replayed: &Histogram, rtt_s: f64) -> f64 {
    let quantiles = [
        (0.1, recorded.p10),
        (0.5, recorded.p50),
        (0.9, recorded.p90),
        (0.99, recorded.p99),
    ];
    let differences = quantiles.map(|(at, recorded)| {
        let replayed = replayed.quantile(at).unwrap_or(0) as f64 * 1e-9;
        libm::fabs(libm::log((rtt_s + recorded) / (rtt_s + replayed)))
    });
    differences.iter().sum::<f64>() / differences.len() as f64
}

/// Up to this others than the first are not looked for group by group.
const CLOSE: f64 = 0.05;
/// One that differs by no more than this, or this part of the least, beyond the least fits as well.
const MARGIN: f64 = 0.005;
const RELATIVE: f64 = 0.1;
/// A replay whose difference is smaller by this, and by this share, is clearly closer.
const CLEAR: f64 = 0.03;
const CLEAR_SHARE: f64 = 0.3;
/// A group, or a direction, with this share of the data has much of it.
const LARGE: f64 = 0.2;
/// Less than this share of retransmitted segments decides little.
const LOSSY: f64 = 0.001;
/// The difference of what cannot be compared.
const NOTHING: f64 = 9.0;
/// A round-trip time below this is none that waits are felt by.
const LEAST_RTT_S: f64 = 0.005;
/// Shares of retransmissions are compared from here on, and count less than times: a few more or less are chance.
const FLOOR: f64 = 0.002;
const LOSS_WEIGHT: f64 = 0.25;
/// How many times the room that was seen is tried where nothing shows how much there was.
const ROOMS: [u32; 2] = [2, 4];
/// The seed of every replay.
const SEED: u64 = 1;

#[cfg(test)]
mod tests {
    use super::{ControllerFit, why};

    #[test]
    fn the_comment_says_what_was_tried_and_whether_it_tells() {
        let fit = |name: &str, difference| ControllerFit {
            name: name.to_owned(),
            difference,
        };
        assert_eq!(
            why(&[fit("bbr", 0.021), fit("cubic", 0.5), fit("cubic, long: bbr", 0.3)]),
            "of those tried the one whose replay fits best: it differs by 2.1 %; with cubic 50.0 %, cubic, long: bbr 30.0 %"
        );
        assert_eq!(
            why(&[fit("cubic", 0.021), fit("reno", 0.022)]),
            "the recording does not show which: its replay differs by 2.1 %; with reno 2.2 %"
        );
        assert_eq!(
            why(&[
                fit("bbr3", 0.13),
                fit("cubic, rtt_scale 0.4", 0.1),
                fit("reno", 0.2)
            ]),
            "nothing else that was tried fits clearly better: its replay differs by 13.0 %; with cubic, rtt_scale 0.4 10.0 %, reno 20.0 %"
        );
        assert_eq!(why(&[fit("reno", 0.3)]), "as it was asked for");
    }
}
