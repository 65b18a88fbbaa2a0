//! A comparison in words: the rows of the table and their cells, and every sentence around it.
//!
//! The terminal and the report both take their texts from here, so that they cannot say different things of one result.

use super::commanded::pays;
pub use super::felt::felt;
use super::numbers::{dash, dropped};
pub use super::numbers::{interval, percent, rate, seconds, signed};
use super::tail;
use crate::result::{
    Comparison, Document, Group, GroupVersus, Instruction, Jittered, Ratio, Recommended, SensitivityPoint,
    Standing, Tail, Variant, Versus,
};
use crate::statistics::{Summary, level_shown};
use fleetfoot_sim::spec::{Facts, TrafficKind};
use std::collections::BTreeMap;

/// Headings of the table, in the order of the cells of a row after the variant.
pub const HEADINGS: [&str; 7] = [
    "tier",
    "variant",
    "time saved",
    "harm",
    "goodput",
    "tail worst",
    "significant",
];

/// What a column says, in the order of the table. `*` stands behind the variant.
const LEGEND: [(&str, &str); 7] = [
    (
        "tier",
        "Tier: variants of one tier are equal within error in time saved less harm. No tier number means one of: no significant saving of 1 % or more; \
         harm as large as the saving; more transfers unfinished; over 3 % more datagrams lost.",
    ),
    (
        "time saved",
        "Time saved: 20 % means that the mean completion time is 0.8 of what it was [95 % interval], on average over the groups that wait.",
    ),
    (
        "harm",
        "Harm: the largest share that any group loses of what it could rightly keep (docs/trust.md, Harm).",
    ),
    (
        "goodput",
        "Goodput: change of the goodput of the group that loses most, of those that do not wait and of streams of datagrams.",
    ),
    (
        "tail worst",
        "Tail worst: change of the slowest completion times, of the group for which it is the worst: by the 99th percentile (p99), or by the 95th or 90th where fewer than 10 lie beyond it, or too many of them did not complete; two numbers are the ends of an interval where the seeds show no change; - with fewer than 100.",
    ),
    (
        "significant",
        "Significant: whether the time saved or lost is more than chance beside so many others; -: what acts at one place or side only is not tested.",
    ),
    ("variant", "*: no other saves as much for less harm."),
];

/// What a column of the table says, by its heading.
pub fn column(heading: &str) -> Option<&'static str> {
    let found = LEGEND.iter().find(|(own, _)| own.eq_ignore_ascii_case(heading));
    found.map(|(_, words)| *words)
}

/// How to read the table, of the columns that `shown` says are there.
pub fn legend(shown: impl Fn(&str) -> bool) -> String {
    let there = LEGEND.iter().filter(|(heading, _)| shown(heading));
    there.map(|(_, words)| *words).collect::<Vec<_>>().join(" ")
}

/// Notes that stand on the first screen.
pub const NOTES: usize = 3;

/// Rows of the largest table that is shown whole.
const WHOLE: usize = 12;

/// Rows that are shown where no variant is a significant win.
const FIRST: u64 = 8;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The variant.
    pub variant: &'a Variant,
    /// Against the baseline.
    pub versus: &'a Versus,
    /// Whether it is one place or one side of the row above it.
    pub part: bool,
    /// Whether it is shown at first: the first tier and that of the answer, the Pareto front, and the parts of them; all of a short table.
    pub shown: bool,
}

/// The rows in the order of the table: parts of a variant stand under it.
pub fn rows(document: &Document) -> Vec<Row<'_>> {
    let mut ranked: Vec<(&Variant, &Versus)> = document
        .variants
        .iter()
        .filter_map(|variant| Some((variant, variant.versus.as_ref()?)))
        .collect();
    ranked.sort_by_key(|(_, versus)| versus.rank);
    let known = |name: &str| ranked.iter().any(|(variant, _)| variant.name == name);
    let parent = |versus: &Versus| versus.part_of.clone().filter(|whole| known(whole));
    let tiers = ranked.iter().any(|(_, versus)| versus.tier.is_some());
    let whole = ranked.len() <= WHOLE;
    let answer = document.recommended.as_ref().map(|recommended| recommended.tier);
    let mut rows = Vec::with_capacity(ranked.len());
    for &(variant, versus) in ranked.iter().filter(|(_, versus)| parent(versus).is_none()) {
        let parts = ranked
            .iter()
            .filter(|(_, versus)| parent(versus).as_ref() == Some(&variant.name));
        let shown = whole
            || versus.tier.is_some_and(|tier| tier == 1 || Some(tier) == answer)
            || versus.pareto
            || parts.clone().any(|(_, part)| part.pareto)
            || (!tiers && versus.rank <= FIRST);
        rows.push(Row {
            variant,
            versus,
            part: false,
            shown,
        });
        rows.extend(parts.map(|&(variant, versus)| Row {
            variant,
            versus,
            part: true,
            shown,
        }));
    }
    rows
}

/// The cells of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    /// The tier; empty without one.
    pub tier: String,
    /// `*` on the Pareto front.
    pub mark: &'static str,
    /// Time saved with its interval.
    pub saved: String,
    /// Harm with its interval.
    pub harm: String,
    /// Change of goodput.
    pub goodput: String,
    /// Largest change of the slowest times, with their percentile: `+1.2 % p99`.
    pub worst_tail: String,
    /// `yes` or `no`.
    pub significant: &'static str,
}

/// The cells of a row.
pub fn cells(versus: &Versus) -> Cells {
    let or_dash = |share: Option<f64>| share.map_or_else(dash, signed);
    Cells {
        tier: versus.tier.map_or_else(String::new, |tier| tier.to_string()),
        mark: if versus.pareto { "*" } else { "" },
        saved: saved(versus),
        harm: harm(versus.harm),
        goodput: or_dash(versus.cost.map(|cost| -cost)),
        worst_tail: versus.worst_tail.map_or_else(dash, worst_tail),
        significant: match (versus.part_of.is_some(), versus.significant) {
            (true, _) => "-",
            (false, true) => "yes",
            (false, false) => "no",
        },
    }
}

/// A change of the slowest with its percentile, `+1.2 % p99`; where the seeds do not show one, between what it lies: `-5 to +31 % p95`.
fn worst_tail(worst: Tail) -> String {
    // What would be written as zero at both ends is no range.
    let open = worst
        .ci95
        .filter(|[low, high]| *low < 0.0 && *high > 0.0 && high.max(-low) >= 0.0005);
    let change = match open {
        Some([low, high]) => {
            let decimals = if high.max(-low) < 0.02 { 1 } else { 0 };
            let end = |share: f64| match format!("{:+.decimals$}", 100.0 * share) {
                zero if zero == "-0" || zero == "-0.0" => zero[1..].to_owned(),
                other => other,
            };
            format!("{} to {} %", end(low), end(high))
        }
        None => signed(worst.change),
    };
    format!("{change} {}", tail::short(worst.level))
}

/// Time saved with its interval: `58.1 % [55, 61]`.
pub fn saved(versus: &Versus) -> String {
    let saved = versus.win.map_or_else(dash, percent);
    format!("{saved} {}", interval(versus.win_ci95))
        .trim_end()
        .to_owned()
}

/// Harm with its interval.
pub fn harm(harm: Option<Ratio>) -> String {
    harm.map_or_else(dash, |harm| {
        format!("{} {}", percent(harm.value), interval(harm.ci95))
            .trim_end()
            .to_owned()
    })
}

/// Where a variant acts: the places whose queue it changes, and the senders.
pub fn places(versus: &Versus) -> String {
    let senders = versus.senders.map(|senders| senders.name().to_owned());
    versus
        .places
        .iter()
        .cloned()
        .chain(senders)
        .collect::<Vec<_>>()
        .join("; ")
}

/// A remark that is made of some rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The mark in those rows.
    pub letter: char,
    /// What it says.
    pub text: String,
    /// Names of the variants.
    pub variants: Vec<String>,
}

/// The remarks of all rows, with letters in the order of the table.
pub fn remarks(rows: &[Row<'_>]) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = Vec::new();
    for row in rows {
        for text in &row.versus.remarks {
            let name = row.variant.name.clone();
            match remarks.iter_mut().find(|remark| remark.text == *text) {
                Some(remark) => remark.variants.push(name),
                None => remarks.push(Remark {
                    letter: char::from(b'a' + (remarks.len() % 26) as u8),
                    text: text.clone(),
                    variants: vec![name],
                }),
            }
        }
    }
    remarks
}

/// The letters of the remarks that are made of a row.
pub fn letters(row: &Row<'_>, remarks: &[Remark]) -> String {
    let own = |remark: &&Remark| row.versus.remarks.contains(&remark.text);
    remarks.iter().filter(own).map(|remark| remark.letter).collect()
}

/// The number of seeds in words.
pub fn seeds(runs: u64) -> String {
    match runs {
        1 => String::from("1 seed"),
        runs => format!("{runs} seeds"),
    }
}

/// What a group gets over `runs` runs.
pub fn group(group: &Group, runs: u64) -> String {
    let facts = TrafficKind::by_name(&group.kind).map(TrafficKind::facts);
    let messages = facts.is_some_and(Facts::is_message_stream);
    let latency = match messages {
        true => group.delivery_latency_s.as_ref(),
        false => group.fct_s.as_ref(),
    };
    let waits = if group.latency_sensitive { ", waits" } else { "" };
    let of_a_run = |all: u64| ((all as f64 / runs.max(1) as f64).round() as u64).max(1);
    let detail = match (latency, &group.goodput_bps) {
        (Some(times), _) => {
            // A thin stream goes on until the run ends, so it is there once in each run: its times are those of its messages.
            let count = match messages {
                true => match of_a_run(group.flows) {
                    1 => String::from("1 stream, messages"),
                    each => format!("{each} streams, messages"),
                },
                false => format!("{} of {} done,", group.completed, group.flows),
            };
            let unfinished = match messages {
                true => group.undelivered,
                false => group.censored,
            };
            format!("{count} {}", waited(times, unfinished))
        }
        (None, Some(goodput)) => match of_a_run(goodput.n) {
            1 => format!("1 connection, {}", rate(goodput.mean)),
            each => format!("{each} connections, {} each", rate(goodput.mean)),
        },
        (None, None) => String::from("nothing measured"),
    };
    let detail = match felt(group) {
        Some(felt) => format!("{detail}; {felt}"),
        None => detail,
    };
    format!("{} ({}{waits}): {detail}", group.name, group.kind)
}

/// Mean, median and slowest of times, as far as they are known where so many are of what did not complete and may have taken any longer.
fn waited(times: &Summary, unfinished: u64) -> String {
    let bound = if 100 * unfinished >= times.n && unfinished > 0 {
        "over "
    } else {
        ""
    };
    let median = match 2 * unfinished < times.n {
        true => format!(", median {}", seconds(times.p50)),
        false => String::new(),
    };
    let slowest = match level_shown(times.n, unfinished) {
        Some(level) if level > 0.98 => format!(", p99 {}", seconds(times.p99)),
        Some(level) if unfinished > 0 => {
            let value = if level > 0.94 { times.p95 } else { times.p90 };
            format!(", {} {}", tail::short(level), seconds(value))
        }
        _ if unfinished == 0 => format!(", longest {}", seconds(times.max)),
        _ => String::new(),
    };
    format!("mean {bound}{}{median}{slowest}", seconds(times.mean))
}

/// Where packets wait: every queue that stands, or the busiest.
pub fn queues(document: &Document) -> Vec<String> {
    let standing: Vec<String> = document
        .queues
        .iter()
        .filter(|queue| queue.stands)
        .map(|queue| {
            format!(
                "a queue stands at {} ({}{}): {:.0} % used, mean wait {}, p99 {}, {}",
                queue.place,
                queue.queue,
                of_several(queue),
                100.0 * queue.utilisation,
                seconds(queue.wait_mean_s),
                seconds(queue.wait_p99_s),
                dropped(queue.drop_share)
            )
        })
        .collect();
    if !standing.is_empty() {
        return standing;
    }
    let busiest = document
        .queues
        .iter()
        .max_by(|a, b| a.utilisation.total_cmp(&b.utilisation));
    busiest
        .map(|busiest| {
            format!(
                "no queue stands; the busiest is {}{}: {:.0} % used, mean wait {}",
                busiest.place,
                of_several(busiest),
                100.0 * busiest.utilisation,
                seconds(busiest.wait_mean_s)
            )
        })
        .into_iter()
        .collect()
}

/// That figures of several links alike are those of one.
fn of_several(queue: &Standing) -> &'static str {
    match queue.link.contains(" to ") {
        true => ", the fullest of them",
        false => "",
    }
}

/// What was not tried: reasons, each with the names of the mechanisms.
pub fn not_tried(comparison: &Comparison) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in &comparison.inapplicable {
        reasons.entry(&entry.reason).or_default().push(&entry.name);
    }
    let sentence = |(reason, names): (&str, Vec<&str>)| format!("{reason}: {}", names.join(", "));
    reasons.into_iter().map(sentence).collect()
}

/// Whether the answer holds in a neighbouring network.
pub fn holds(holds: bool) -> &'static str {
    if holds {
        "the answer holds"
    } else {
        "another answer"
    }
}

/// Whether the answer holds in a neighbouring network, and whether there is a significant win at all.
pub fn found_near(point: &SensitivityPoint) -> String {
    let alone = match point.wins.is_empty() {
        true => "; no win there is significant",
        false => "",
    };
    format!("{}{alone}", holds(point.holds))
}

/// What is found in a neighbouring network.
pub fn near(point: &SensitivityPoint) -> String {
    let best = match point.wins.is_empty() {
        true => "best estimate",
        false => "best there",
    };
    format!(
        "{}{}: {}; {best} {} ({})",
        point.change,
        match point.places.as_slice() {
            [] => String::new(),
            places => format!(" (queue mechanisms then at {})", places.join(" and ")),
        },
        found_near(point),
        point.best,
        point.best_win.map_or_else(dash, percent)
    )
}

/// What is found with jitter, of the recommended setting.
pub fn jittered(jittered: &Jittered, own: Option<&Recommended>) -> String {
    let there = match &jittered.recommended {
        None => String::from("nothing is significantly sooner there"),
        Some(best) if jittered.equals.is_empty() => format!("recommended there: {best}"),
        Some(best) => format!(
            "recommended there: {best}; equal within error: {}",
            jittered.equals.join(", ")
        ),
    };
    let is_win = own.is_some_and(|own| jittered.wins.contains(&own.variant));
    let found = match jittered.open_with_seeds {
        Some(seeds) => format!("not confirmed with {seeds} seeds"),
        None if !jittered.holds && is_win => String::from("a win there too, but not the best"),
        None => holds(jittered.holds).to_owned(),
    };
    format!("with jitter ({}): {found}; {there}", jittered.set)
}

/// What stands before the instructions of the recommended variant where its command is not advised.
pub fn not_advised(document: &Document) -> Option<String> {
    let recommended = document.recommended.as_ref()?;
    let refused = document.as_commanded.as_ref().is_some_and(|there| !pays(there));
    let name = &recommended.variant;
    refused.then(|| {
        format!(
            "Not advised here: what follows turns on {name} with a shaper, and behind that shaper {name} is no improvement on this network. It becomes one \
             where the line has capacity to spare, or where the device that sends into the line has {name} itself."
        )
    })
}

/// The heading of an instruction.
pub fn to_turn_on(instruction: &Instruction) -> String {
    format!("To turn it on at {} ({}):", instruction.place, instruction.device)
}

/// What an instruction needs.
pub fn needs(instruction: &Instruction) -> String {
    format!("Needs: {}", instruction.needs)
}

/// What to check when an instruction was followed.
pub fn afterwards(instruction: &Instruction) -> Option<String> {
    let check = instruction.check.as_ref()?;
    Some(format!("Afterwards: {check}"))
}

/// What the user is advised to do, of which the headline and the report give the figures: the part of the recommended variant at the place
/// or places that matter, where not all do, or the whole.
pub fn done<'a>(document: &'a Document, recommended: &Recommended) -> Option<&'a Variant> {
    let acts_at = |versus: &Versus| super::parts::in_words(&versus.places, versus.senders);
    let part = |variant: &&Variant| {
        variant.versus.as_ref().is_some_and(|versus| {
            versus.part_of.as_ref() == Some(&recommended.variant) && acts_at(versus) == recommended.matters
        })
    };
    let variants = || document.variants.iter();
    let matters = recommended.matters.as_ref();
    matters
        .and_then(|_| variants().find(part))
        .or_else(|| variants().find(|variant| variant.name == recommended.variant))
}

/// How sure it is who belongs to its tier, and of which variants that is open.
pub fn how_sure(recommended: &Recommended) -> String {
    let over = format!("over {}", seeds(recommended.seeds));
    let is_equal = |name: &&String| recommended.equals.contains(name);
    let (equal, others): (Vec<&String>, Vec<&String>) = recommended.open.iter().partition(is_equal);
    let undecided = recommended.undecided - equal.len() as u64;
    let open = open_of(&others, undecided, ["belongs to the best", "belong to the best"]);
    let behind = open_of(&equal, equal.len() as u64, ["is behind", "are behind"]);
    match (open, behind) {
        (None, None) => over,
        (Some(open), None) => format!("{over}, which cannot tell whether {open}; more seeds can"),
        (None, Some(behind)) => format!("{over}; more seeds could show that {behind}"),
        (Some(open), Some(behind)) => {
            format!("{over}, which cannot tell whether {open}; more seeds can, and could show that {behind}")
        }
    }
}

/// What the seeds do not decide, as `is` says it of one variant or of several: `rdb is equally good`; `None`: nothing is open.
pub(super) fn open(recommended: &Recommended, is: [&str; 2]) -> Option<String> {
    let names: Vec<&String> = recommended.open.iter().collect();
    open_of(&names, recommended.undecided, is)
}

/// As [`open`], of so many variants, of which these names are known.
fn open_of(names: &[&String], undecided: u64, is: [&str; 2]) -> Option<String> {
    let are = match undecided {
        0 => return None,
        1 => is[0],
        _ => is[1],
    };
    let named: Vec<&str> = names.iter().take(MOST_OPEN).map(|name| name.as_str()).collect();
    let of = match (&named[..], undecided - named.len() as u64) {
        ([], 1) => String::from("1 variant"),
        ([], count) => format!("{count} variants"),
        ([one], 0) => String::from(*one),
        ([others @ .., last], 0) => format!("{} and {last}", others.join(", ")),
        (names, more) => format!("{} and {more} more", names.join(", ")),
    };
    Some(format!("{of} {are}"))
}

/// The groups that a variant harms, the most harmed first.
pub fn harmed(versus: &Versus) -> Vec<(&GroupVersus, Ratio)> {
    let mut harmed: Vec<(&GroupVersus, Ratio)> = versus
        .groups
        .iter()
        .filter_map(|group| Some((group, group.harm?)))
        .filter(|(_, harm)| harm.significant && harm.value >= LEAST_HARM)
        .collect();
    harmed.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    harmed
}

/// What a variant saves and whom it harms most, in short: `cake saves 47 % and harms download by 55 %`.
pub fn in_short(name: &str, versus: &Versus) -> String {
    let saved = match versus.win {
        Some(win) if win >= 0.0 => format!("{name} saves {:.0} %", 100.0 * win),
        Some(win) => format!("{name} takes {:.0} % longer", -100.0 * win),
        None => format!("{name} was not measured"),
    };
    match harmed(versus).first() {
        Some((group, harm)) => format!("{saved} and harms {} by {:.0} %", group.name, 100.0 * harm.value),
        None => format!("{saved}, and {}", unharmed(versus)),
    }
}

/// What is said where no group is harmed as far as can be shown: that nobody is, or how much harm the seeds leave possible.
pub fn unharmed(versus: &Versus) -> String {
    let possible = versus
        .groups
        .iter()
        .filter_map(|group| Some((group, group.harm?.ci95?[1])))
        .filter(|(_, most)| *most >= LEAST_POSSIBLE_HARM)
        .max_by(|a, b| a.1.total_cmp(&b.1));
    match possible {
        Some((group, most)) => format!(
            "no harm could be shown (that of {} may be up to {:.0} %)",
            group.name,
            100.0 * most
        ),
        None => String::from("nobody is harmed"),
    }
}

/// By how much less gets through the shapers of the instructions than over the lines, which were simulated without them; empty without one, or where
/// the table would round it away. `acknowledgments`: most of what crosses a line has no payload.
pub fn margin(done: &Variant, acknowledgments: bool) -> String {
    let Some((share, several)) = margin_share(done) else {
        return String::new();
    };
    let command = shapers(done);
    let (lines, line) = match several {
        false => ("the line", "the line"),
        true => ("the lines", "a line"),
    };
    let lost = match acknowledgments {
        false => format!("what fills {line} loses about as much"),
        true => format!("most of what fills {line} are acknowledgments, of which so many fewer get through"),
    };
    format!(
        " With {command} {lines} will carry {share} less than simulated, for what the shaper leaves free and counts beside packets: {lost}."
    )
}

/// What of the commands shapes: `its command`, or the shaper alone where the port itself may hold the line to its rate.
pub(super) fn shapers(done: &Variant) -> &'static str {
    let several = margin_share(done).is_some_and(|(_, several)| several);
    // Where the device that holds the line to its rate is not known, there are commands for both cases.
    let shapers = || done.instructions.iter().filter(|one| one.margin.is_some());
    let alternative = |shaper: &Instruction| {
        let others = done.instructions.iter();
        others
            .filter(|one| one.place == shaper.place && one.margin.is_none())
            .any(|one| !one.commands.is_empty())
    };
    match (shapers().all(alternative), several) {
        (true, false) => "the shaper of the commands below",
        (true, true) => "the shapers of the commands below",
        (false, false) => "its command",
        (false, true) => "its commands",
    }
}

/// The share that commands leave of lines, in words, and whether there are several lines; `None` without one that the table would show.
pub fn margin_share(done: &Variant) -> Option<(String, bool)> {
    let margins = done
        .instructions
        .iter()
        .filter_map(|instruction| instruction.margin);
    let shares: Vec<i64> = margins
        .filter(|share| *share >= LEAST_MARGIN)
        .map(|share| (100.0 * share).round() as i64)
        .collect();
    let (least, most) = (shares.iter().min()?, shares.iter().max()?);
    let share = match least == most {
        true => format!("{least} %"),
        false => format!("{least} to {most} %"),
    };
    Some((share, shares.len() > 1))
}

/// So many variants are named of which it is open whether they belong to the first tier.
const MOST_OPEN: usize = 6;

/// Smallest share of a line's rate that is mentioned.
pub(super) const LEAST_MARGIN: f64 = 0.01;

/// Harm that could be as large as this is reported even where none could be shown: less than a percentage point nobody notices (docs/trust.md, Tiers).
const LEAST_POSSIBLE_HARM: f64 = 0.01;

/// Harm below this is not mentioned in the answer; the table has it.
const LEAST_HARM: f64 = 0.005;

/// The first sentence of an answer, and the rest.
pub fn headline(answer: &str) -> (&str, &str) {
    match answer.find(". ") {
        Some(end) => (&answer[..=end], answer[end + 1..].trim_start()),
        None => (answer, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Instruction, Tail};

    fn variant(name: &str, versus: Versus) -> Variant {
        let mut variant: Variant = serde_json::from_value(serde_json::json!({
            "name": name, "set": {}, "runs": 2, "turn_on": null, "groups": [], "links": [], "nodes": [],
            "headers_per_byte_delivered": null, "lookups_per_s": 0.0, "lookup_power_w": 0.0, "fairness_jain": null,
            "data_packets_delivered": 0, "bytes_sent_per_byte_delivered": null, "versus": null
        }))
        .expect("the fields of a variant");
        variant.versus = Some(versus);
        variant
    }

    #[test]
    fn what_shapers_leave_free_is_said_of_all_of_them() {
        let mut done = variant("sfq", versus(1, Some(1), None));
        let leaving = |done: &mut Variant, margins: &[Option<f64>]| {
            done.instructions = margins
                .iter()
                .map(|margin| Instruction {
                    place: String::new(),
                    device: String::new(),
                    commands: Vec::new(),
                    why: String::new(),
                    needs: String::new(),
                    check: None,
                    nearest: None,
                    margin: *margin,
                })
                .collect();
            margin(done, false)
        };
        assert_eq!(leaving(&mut done, &[]), "");
        assert_eq!(
            leaving(&mut done, &[None, Some(0.004)]),
            "",
            "the table would round it away"
        );
        let one = " With its command the line will carry 5 % less than simulated, for what the shaper leaves free and counts beside packets: what fills the line loses about as much.";
        assert_eq!(leaving(&mut done, &[None, Some(0.05)]), one);
        done.instructions[0].commands.push(String::from("tc"));
        let shaper = margin(&done, false);
        let either = " With the shaper of the commands below the line will carry 5 % less than simulated,";
        assert!(
            shaper.starts_with(either),
            "the port's own command leaves nothing: {shaper}"
        );
        let same = leaving(&mut done, &[Some(0.05), Some(0.052)]);
        assert!(
            same.starts_with(" With its commands the lines will carry 5 % less than simulated,"),
            "{same}"
        );
        let two = leaving(&mut done, &[Some(0.1), Some(0.05), None]);
        assert!(
            two.starts_with(" With its commands the lines will carry 5 to 10 % less than simulated,"),
            "{two}"
        );
        assert!(two.ends_with("what fills a line loses about as much."), "{two}");
        let small = margin(&done, true);
        assert!(
            small.ends_with(
                "most of what fills a line are acknowledgments, of which so many fewer get through."
            ),
            "{small}"
        );
    }

    fn versus(rank: u64, tier: Option<u64>, part_of: Option<&str>) -> Versus {
        Versus {
            baseline: String::from("as described"),
            rank,
            tier,
            win: Some(0.5),
            win_ci95: Some([-0.004, 0.61]),
            cost: Some(0.012),
            harm: Some(Ratio {
                value: -0.0001,
                ci95: None,
                significant: false,
            }),
            pareto: rank == 30,
            worst_p99: None,
            worst_tail: None,
            significant: true,
            places: vec![String::from("the uplink, 10 Mbit/s")],
            senders: None,
            part_of: part_of.map(str::to_owned),
            remarks: vec![String::from("never acted")],
            groups: Vec::new(),
        }
    }

    #[test]
    fn that_nobody_is_harmed_is_said_where_every_interval_ends_below_a_percentage_point() {
        let of = |most: f64| {
            let mut versus = versus(1, Some(1), None);
            versus.groups = vec![
                serde_json::from_value(serde_json::json!({
                    "name": "backup", "fct_mean_ratio": null, "fct_p99_ratio": null, "goodput_ratio": null,
                    "harm": { "value": 0.002, "ci95": [0.0, most], "significant": false }
                }))
                .expect("the fields of a group"),
            ];
            unharmed(&versus)
        };
        assert_eq!(of(0.009), "nobody is harmed");
        for (most, shown) in [(0.02, 2), (0.049, 5), (0.06, 6)] {
            assert_eq!(
                of(most),
                format!("no harm could be shown (that of backup may be up to {shown} %)")
            );
        }
    }

    #[test]
    fn parts_stand_under_their_variant_and_a_long_table_shows_what_matters() {
        let mut document = Document::default();
        document
            .variants
            .push(variant("part", versus(1, None, Some("whole"))));
        document.variants.push(variant("whole", versus(2, Some(1), None)));
        for rank in 3..=40 {
            document.variants.push(variant(
                &format!("v{rank}"),
                versus(rank, Some(rank.min(4) - 1), None),
            ));
        }
        let mut at_one_place = versus(41, None, Some("v25"));
        at_one_place.pareto = true;
        document
            .variants
            .push(variant("v25 at the uplink only", at_one_place));
        let rows = rows(&document);
        let names: Vec<_> = rows.iter().map(|row| row.variant.name.as_str()).collect();
        assert_eq!(&names[..3], ["whole", "part", "v3"]);
        assert_eq!(names.len(), 41);
        let shown: Vec<_> = rows
            .iter()
            .filter(|row| row.shown)
            .map(|row| row.variant.name.as_str())
            .collect();
        assert_eq!(
            shown,
            ["whole", "part", "v25", "v25 at the uplink only", "v30"],
            "first tier, its part, the front"
        );
        assert!(rows[1].part && !rows[0].part);
        let remarks = remarks(&rows);
        assert_eq!(
            (remarks.len(), remarks[0].letter, remarks[0].variants.len()),
            (1, 'a', 41)
        );
        assert_eq!(letters(&rows[5], &remarks), "a");
    }

    #[test]
    fn without_a_significant_win_the_first_rows_are_shown() {
        let mut document = Document::default();
        for rank in 1..=20 {
            document
                .variants
                .push(variant(&format!("v{rank}"), versus(rank, None, None)));
        }
        assert_eq!(rows(&document).iter().filter(|row| row.shown).count(), 8);
        document.variants.truncate(12);
        assert!(rows(&document).iter().all(|row| row.shown));
    }

    #[test]
    fn what_is_done_is_the_part_at_the_place_that_matters_or_the_whole() {
        let (uplink, downlink) = ("the uplink, 10 Mbit/s", "the downlink, 50 Mbit/s");
        let mut at_the_downlink = versus(2, None, Some("drr"));
        at_the_downlink.places = vec![downlink.to_owned()];
        let document = Document {
            variants: vec![
                variant("drr", versus(1, Some(1), None)),
                variant("drr at the downlink only", at_the_downlink),
                variant("drr at the uplink only", versus(3, None, Some("drr"))),
                variant("cake at the uplink only", versus(4, None, Some("cake"))),
            ],
            ..Document::default()
        };
        let advised = |matters: Option<&str>| {
            let recommended = Recommended {
                places: vec![uplink.to_owned(), downlink.to_owned()],
                matters: matters.map(str::to_owned),
                ..crate::testing::recommended("drr")
            };
            done(&document, &recommended).map(|variant| variant.name.clone())
        };
        assert_eq!(advised(None).as_deref(), Some("drr"));
        assert_eq!(advised(Some(uplink)).as_deref(), Some("drr at the uplink only"));
        assert_eq!(
            advised(Some(downlink)).as_deref(),
            Some("drr at the downlink only")
        );
    }

    #[test]
    fn a_network_near_without_a_significant_win_says_so() {
        let mut point = SensitivityPoint {
            change: String::from("bottleneck rate x 0.5"),
            places: Vec::new(),
            best: String::from("min-rto-20ms"),
            best_win: Some(0.05),
            described_best_win: Some(0.05),
            holds: true,
            first_tier: Vec::new(),
            wins: Vec::new(),
            harmless: vec![String::from("min-rto-20ms")],
        };
        assert_eq!(
            near(&point),
            "bottleneck rate x 0.5: the answer holds; no win there is significant; best estimate min-rto-20ms (5.0 %)"
        );
        point.wins = point.harmless.clone();
        assert_eq!(
            near(&point),
            "bottleneck rate x 0.5: the answer holds; best there min-rto-20ms (5.0 %)"
        );
    }

    #[test]
    fn it_is_said_of_how_many_variants_the_seeds_do_not_decide() {
        let mut recommended = Recommended {
            seeds: 3,
            ..crate::testing::recommended("sfq")
        };
        assert_eq!(how_sure(&recommended), "over 3 seeds");
        recommended.undecided = 2;
        assert_eq!(
            how_sure(&recommended),
            "over 3 seeds, which cannot tell whether 2 variants belong to the best; more seeds can",
            "of a result that does not name them"
        );
        let mut open = |names: &[&str]| {
            recommended.open = names.iter().map(|&name| name.to_owned()).collect();
            recommended.undecided = names.len() as u64;
            how_sure(&recommended)
        };
        assert_eq!(
            open(&["drr"]),
            "over 3 seeds, which cannot tell whether drr belongs to the best; more seeds can"
        );
        assert!(open(&["drr", "pie"]).contains(" whether drr and pie belong to the best"));
        let many = open(&["a", "b", "c", "d", "e", "f", "g", "h"]);
        assert!(
            many.contains(" whether a, b, c, d, e, f and 2 more belong to the best"),
            "{many}"
        );
        // One that is called equal is not said to be open as if it were not.
        recommended.equals = vec![String::from("cake")];
        let mut open = |names: &[&str]| {
            recommended.open = names.iter().map(|&name| name.to_owned()).collect();
            recommended.undecided = names.len() as u64;
            how_sure(&recommended)
        };
        assert_eq!(
            open(&["cake"]),
            "over 3 seeds; more seeds could show that cake is behind"
        );
        assert_eq!(
            open(&["cake", "drr"]),
            "over 3 seeds, which cannot tell whether drr belongs to the best; more seeds can, and could show that cake is behind"
        );
    }

    #[test]
    fn the_legend_explains_every_column_that_is_there_and_no_other() {
        for heading in HEADINGS {
            let own = legend(|other| other == heading);
            assert!(own.ends_with('.'), "{heading}");
            let without = legend(|other| other != heading);
            assert!(!without.contains(&own), "{heading}: {without}");
        }
        let all = legend(|_| true);
        for start in [
            "Tier: ",
            "Time saved: ",
            "Harm: ",
            "Goodput: ",
            "Tail worst: ",
            "Significant: ",
            "*: ",
        ] {
            assert!(all.contains(start), "{start}");
        }
    }

    #[test]
    fn cells_have_no_negative_zero() {
        let cells = cells(&versus(1, Some(1), None));
        assert_eq!(cells.saved, "50.0 % [0, 61]");
        assert_eq!(cells.harm, "0.0 %");
        assert_eq!(
            (cells.goodput.as_str(), cells.worst_tail.as_str()),
            ("-1.2 %", "-")
        );
    }

    #[test]
    fn a_change_of_the_slowest_says_by_which_percentile() {
        let mut versus = versus(1, Some(1), None);
        let mut of = |change: f64, ci95: Option<[f64; 2]>| {
            versus.worst_tail = Some(Tail {
                level: 0.95,
                change,
                ci95,
            });
            cells(&versus).worst_tail
        };
        assert_eq!(of(-0.0001, None), "+0.0 % p95");
        assert_eq!(of(0.123, Some([0.05, 0.2])), "+12.3 % p95");
        assert_eq!(of(0.0, Some([0.0, 0.0])), "+0.0 % p95");
        // By chance.
        assert_eq!(of(0.123, Some([-0.05, 0.306])), "-5 to +31 % p95");
        assert_eq!(of(0.003, Some([-0.0004, 0.007])), "0.0 to +0.7 % p95");
        assert_eq!(of(0.1, Some([-0.004, 0.2])), "0 to +20 % p95");
        assert_eq!(of(0.0, Some([-0.0001, 0.0004])), "+0.0 % p95");
    }

    #[test]
    fn the_headline_ends_at_the_first_sentence_not_in_a_number() {
        assert_eq!(
            headline("Try x at the uplink, 1.5 Mbit/s: 58 % sooner. Equal: y. And z."),
            (
                "Try x at the uplink, 1.5 Mbit/s: 58 % sooner.",
                "Equal: y. And z."
            )
        );
        assert_eq!(headline("Nothing was compared"), ("Nothing was compared", ""));
    }
}
