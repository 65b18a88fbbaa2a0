//! The report's charts: what each shows, and the table that says the same.
//!
//! A chart is data. The page draws it ([`super::figures::page`]); for notebooks the same data becomes a Vega-Lite
//! specification ([`super::vega`]).

use super::text::{percent, rounded, seconds, short, signed_percent, size_class};
use crate::compare::tail::percentile;
use crate::compare::words;
use crate::result::{Comparison, Link, Ratio, SizeVersus, Variant};

mod data;
mod distribution;

pub use data::{
    Change, Chart, Data, Distribution, MeanValue, RunValue, SizeChange, TimeLine, Use, Verdict, Wait,
};

/// Okabe and Ito's colours without black, grey and yellow, which do not show on one of the two backgrounds.
const PALETTE: [&str; 6] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

/// The baseline is grey in both colour schemes.
pub const BASELINE: &str = "#808790";

/// When the colours are used up the line is dashed.
const DASHES: [&[u8]; 4] = [&[], &[6, 3], &[2, 2], &[8, 3, 2, 3]];

/// Lines of a distribution that are shown at first.
pub const LINES_SHOWN: usize = 5;

/// Colour of the variant at `index`; the first is the baseline.
pub fn color(index: usize) -> &'static str {
    match index {
        0 => BASELINE,
        _ => PALETTE[(index - 1) % PALETTE.len()],
    }
}

/// Dashes of the line of the variant at `index`.
pub fn dash(index: usize) -> &'static [u8] {
    match index {
        0 => DASHES[0],
        _ => DASHES[(index - 1) / PALETTE.len() % DASHES.len()],
    }
}

fn is_part(variant: &Variant) -> bool {
    let versus = variant.versus.as_ref();
    versus.is_some_and(|versus| versus.part_of.is_some())
}

/// The variants in the order of the table, the baseline first; how many of them are shown at first.
pub fn ordered(comparison: &Comparison) -> (Vec<&Variant>, usize) {
    let rows = words::rows(&comparison.document);
    let baseline = comparison
        .document
        .variants
        .iter()
        .filter(|variant| variant.versus.is_none());
    let part = |shown: bool| {
        let chosen = rows.iter().filter(move |row| row.shown == shown);
        chosen.map(|row| row.variant)
    };
    let mut variants: Vec<&Variant> = baseline.chain(part(true)).collect();
    let shown = variants.len();
    variants.extend(part(false));
    (variants, shown)
}

/// All charts for which there is data, in the order of the page, of these variants, the baseline first.
pub fn all(comparison: &Comparison, variants: &[&Variant]) -> Vec<Chart> {
    [
        change(variants),
        by_size(variants),
        distribution::chart(comparison, variants),
        queue_delay(comparison, variants),
        utilisation(comparison, variants),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn names(variants: &[&Variant]) -> Vec<String> {
    variants.iter().map(|variant| variant.name.clone()).collect()
}

fn interval(ratio: &Ratio) -> Option<(f64, f64)> {
    ratio
        .ci95
        .map(|[low, high]| ((low - 1.0) * 100.0, (high - 1.0) * 100.0))
}

/// Change of the mean FCT per latency-sensitive group, with its interval.
fn change(variants: &[&Variant]) -> Option<Chart> {
    let (baseline, others) = variants.split_first()?;
    let mut changes = Vec::new();
    let mut rows = Vec::new();
    let mut groups: Vec<String> = Vec::new();
    for variant in others {
        let versus = variant.versus.as_ref()?;
        let waits = |name: &str| {
            let group = variant.groups.iter().find(|group| group.name == name);
            group.is_some_and(|group| group.latency_sensitive)
        };
        let waiting = versus.groups.iter().filter(|group| waits(&group.name)).count();
        for group in versus.groups.iter().filter(|group| waits(&group.name)) {
            let Some(ratio) = &group.fct_mean_ratio else {
                continue;
            };
            // Of a single group the whole table's verdict is also this one's.
            let significant = ratio.significant && (versus.significant || waiting > 1);
            let ends = interval(ratio);
            changes.push(Change {
                variant: variant.name.clone(),
                group: group.name.clone(),
                change: rounded((ratio.value - 1.0) * 100.0, 4),
                low: ends.map(|ends| rounded(ends.0, 4)),
                high: ends.map(|ends| rounded(ends.1, 4)),
                verdict: match (significant, ratio.value < 1.0) {
                    (false, _) => Verdict::Undecided,
                    (true, true) => Verdict::Sooner,
                    (true, false) => Verdict::Later,
                },
            });
            if !groups.contains(&group.name) {
                groups.push(group.name.clone());
            }
            rows.push(vec![
                variant.name.clone(),
                group.name.clone(),
                signed_percent(ratio.value - 1.0),
                ratio.ci95.map_or_else(dash_text, ends_in_words),
                match (is_part(variant), significant) {
                    (true, _) => dash_text(),
                    (false, true) => "yes".to_owned(),
                    (false, false) => "no".to_owned(),
                },
                group.fct_tail_ratio.map_or_else(dash_text, |tail| {
                    let change = signed_percent(tail.ratio.value - 1.0);
                    format!("{change} ({})", percentile(tail.level))
                }),
            ]);
        }
    }
    groups.first()?;
    Some(Chart {
        id: "change",
        title: "How much sooner, and how sure".to_owned(),
        text: format!(
            "Mean completion time against \u{201c}{}\u{201d}, with the 95 % interval of the difference. Left is sooner. Green and orange are significant in the whole table; grey is not, whatever its interval.{} What is beyond the axis is drawn at its edge.",
            baseline.name,
            match others.iter().any(|variant| is_part(variant)) {
                true =>
                    " Parts of a variant (one place only, one side only) are not tested, and grey as well.",
                false => "",
            }
        ),
        groups,
        variants: names(others),
        data: Data::Change {
            baseline: baseline.name.clone(),
            rows: changes,
        },
        header: header(&[
            "Variant",
            "Group",
            "Mean",
            "95 % interval",
            "Significant in the whole table",
            "Slowest (percentile)",
        ]),
        rows,
    })
}

/// Change of the mean FCT by transfer size.
fn by_size(variants: &[&Variant]) -> Option<Chart> {
    let (baseline, others) = variants.split_first()?;
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    let mut groups = Vec::new();
    let mut classes: Vec<(u64, String)> = Vec::new();
    for group in baseline.groups.iter().filter(|group| group.latency_sensitive) {
        let versus = others.iter().filter_map(|variant| {
            let mut groups = variant.versus.as_ref()?.groups.iter();
            Some((*variant, groups.find(|own| own.name == group.name)?))
        });
        let mut found: Vec<(&Variant, &SizeVersus)> = versus
            .flat_map(|(variant, own)| own.by_size.iter().map(move |class| (variant, class)))
            .collect();
        found.sort_by_key(|(_, class)| class.from_bytes);
        for (variant, class) in found {
            let label = size_class(class.from_bytes, class.to_bytes);
            if !classes.iter().any(|(_, known)| *known == label) {
                classes.push((class.from_bytes, label.clone()));
            }
            if !groups.contains(&group.name) {
                groups.push(group.name.clone());
            }
            let change = class.mean_ratio - 1.0;
            let (before, after) = (seconds(class.baseline_mean_s), seconds(class.mean_s));
            cells.push(SizeChange {
                variant: variant.name.clone(),
                group: group.name.clone(),
                size: label.clone(),
                change: rounded(change * 100.0, 3),
                text: signed_percent(change).replace(" %", ""),
                n: class.n,
                before: before.clone(),
                after: after.clone(),
            });
            rows.push(vec![
                variant.name.clone(),
                group.name.clone(),
                label,
                class.n.to_string(),
                before,
                after,
                signed_percent(change),
                class.ci95.map_or_else(dash_text, ends_in_words),
            ]);
        }
    }
    classes.sort();
    groups.first()?;
    Some(Chart {
        id: "size",
        title: "Benefit by transfer size".to_owned(),
        text: format!(
            "Change of the mean completion time in per cent against \u{201c}{}\u{201d}, by payload size, over the seeds that both finished. Blue is sooner, orange is later.",
            baseline.name
        ),
        groups,
        variants: names(others),
        data: Data::Sizes {
            classes: classes.into_iter().map(|class| class.1).collect(),
            cells,
        },
        header: header(&[
            "Variant",
            "Group",
            "Payload",
            "Transfers",
            "Before",
            "After",
            "Change",
            "95 % interval",
        ]),
        rows,
    })
}

/// The ends of the interval of a ratio, as changes.
fn ends_in_words(ends: [f64; 2]) -> String {
    let [low, high] = ends.map(|end| signed_percent(end - 1.0));
    format!("{low} to {high}")
}

/// Every directed bottleneck link of a variant as a user calls it, the one with the longest wait in the baseline first.
pub(super) fn bottlenecks<'a>(comparison: &Comparison, variant: &'a Variant) -> Vec<(String, &'a Link)> {
    let standing = |link: &Link| {
        let mut queues = comparison.document.queues.iter();
        queues.find(|queue| queue.link == link.name && queue.direction == link.direction)
    };
    let mut links: Vec<(f64, String, &Link)> = variant
        .links
        .iter()
        .filter(|link| comparison.bottleneck.contains(&link.name))
        .map(|link| match standing(link) {
            Some(queue) => (queue.wait_mean_s, queue.place.clone(), link),
            None => (0.0, format!("{} {}", link.name, link.direction), link),
        })
        .collect();
    links.sort_by(|one, other| other.0.total_cmp(&one.0));
    links.into_iter().map(|(_, name, link)| (name, link)).collect()
}

fn queue_delay(comparison: &Comparison, variants: &[&Variant]) -> Option<Chart> {
    let mut waits = Vec::new();
    let mut rows = Vec::new();
    let mut groups: Vec<String> = Vec::new();
    for variant in variants {
        for (name, link) in bottlenecks(comparison, variant) {
            let Some(delay) = &link.queue_delay_s else {
                continue;
            };
            let ms = |value: f64| rounded(value * 1e3, 4);
            waits.push(Wait {
                variant: variant.name.clone(),
                group: name.clone(),
                p50: ms(delay.p50),
                p95: ms(delay.p95),
                p99: ms(delay.p99),
            });
            rows.push(vec![
                variant.name.clone(),
                name.clone(),
                seconds(delay.mean),
                seconds(delay.p50),
                seconds(delay.p95),
                seconds(delay.p99),
                seconds(delay.max),
            ]);
            if !groups.contains(&name) {
                groups.push(name);
            }
        }
    }
    groups.first()?;
    Some(Chart {
        id: "delay",
        title: "Waiting at the bottleneck".to_owned(),
        text: and(
            "Time that packets wait in the queue of the bottleneck: bar to the median, line to the 95th, tick at the 99th percentile. What is beyond the axis is drawn at its edge. With one queue for all packets this delay is added to everybody\u{2019}s round trip. Where each flow or host has a queue of its own (sfq, drr, fq-codel, cake), or some packets go first, mostly long transfers wait: short and quiet flows wait less than the bar shows.",
            own_seeds(variants),
        ),
        groups,
        variants: names(variants),
        data: Data::Waits(waits),
        header: header(&["Variant", "Link", "Mean", "Median", "95 %", "99 %", "Longest"]),
        rows,
    })
}

/// The longest wait that the axis shows (ms), where some are so much longer than the baseline's that they would hide the others.
pub(super) fn longest_wait_shown(waits: &[Wait]) -> Option<f64> {
    let limit = waits.first().map_or(0.0, |baseline| baseline.p99 * 4.0);
    (limit > 0.0 && waits.iter().any(|wait| wait.p99 > limit)).then_some(limit)
}

fn utilisation(comparison: &Comparison, variants: &[&Variant]) -> Option<Chart> {
    let mut uses = Vec::new();
    let mut rows = Vec::new();
    let mut groups: Vec<String> = Vec::new();
    for variant in variants {
        for (name, link) in bottlenecks(comparison, variant) {
            uses.push(Use {
                variant: variant.name.clone(),
                group: name.clone(),
                utilisation: rounded(link.utilisation * 100.0, 4),
                drops: link.drops.data + link.drops.ack + link.drops.other,
                marks: link.marks,
            });
            rows.push(vec![
                variant.name.clone(),
                name.clone(),
                percent(link.utilisation),
                link.drops.data.to_string(),
                link.drops.ack.to_string(),
                link.drops.other.to_string(),
                link.marks.to_string(),
                link.queue_packets
                    .as_ref()
                    .map_or_else(dash_text, |packets| short(packets.mean)),
            ]);
            if !groups.contains(&name) {
                groups.push(name);
            }
        }
    }
    groups.first()?;
    Some(Chart {
        id: "utilisation",
        title: "Use of the bottleneck".to_owned(),
        text: and(
            "Share of the time the bottleneck was sending. A cure that empties the line shows here.",
            own_seeds(variants),
        ),
        groups,
        variants: names(variants),
        data: Data::Use(uses),
        header: header(&[
            "Variant",
            "Link",
            "Utilisation",
            "Data drops",
            "ACK drops",
            "Other drops",
            "Marks",
            "Mean queue (packets)",
        ]),
        rows,
    })
}

fn header(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// That these variants have different numbers of seeds, where they have; each is shown over all of its own.
pub(super) fn own_seeds(variants: &[&Variant]) -> Option<String> {
    let runs = || variants.iter().map(|variant| variant.runs);
    let (fewest, most) = (runs().min()?, runs().max()?);
    (fewest < most).then(|| {
        format!(
            "Each variant is shown over all of its own seeds, {fewest} to {most}: what differs here can be other arrivals. What is compared is over the seeds that both finished."
        )
    })
}

/// A sentence behind a text, where there is one.
fn and(text: &str, more: Option<String>) -> String {
    let sentences = std::iter::once(text.to_owned()).chain(more);
    sentences.collect::<Vec<_>>().join(" ")
}

fn dash_text() -> String {
    "\u{2013}".to_owned()
}
