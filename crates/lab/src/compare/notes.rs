//! Notes under a comparison: what bears on how far its figures can be trusted.

mod directions;
mod interface;
mod sparse;
mod tls;

use super::place::Place;
use super::{Plan, buffers, crowded, numbers};
use crate::metrics::GroupMetric;
use crate::result::{Document, Group, Variant};
use crate::run::Batch;
use crate::scenario::Medium;
use crate::statistics::ENOUGH_SEEDS;
use fleetfoot_core::link::Loss;
use fleetfoot_core::tcp::EcnFeedback;
use fleetfoot_sim::spec::{Compared, LinkSpec, Losses, Traffic};

/// What a reader must know beside the figures, the most important first.
pub(super) fn notes(plan: &Plan, batch: &Batch, document: &Document) -> Vec<String> {
    let mut notes = Vec::new();
    let several = plan.variants.len() > 1;
    let finished = batch.runs.iter().map(Vec::len).min().unwrap_or(0);
    if batch.interrupted {
        notes.push(format!(
            "interrupted: {finished} of {} seeds finished for every variant",
            plan.seeds.len()
        ));
    }
    notes.extend(lateness(plan, batch));
    if let Some(fit) = &plan.described.fit {
        notes.push(fit.sentences());
    }
    notes.extend(buffers::notes(plan, document));
    notes.extend(many_lost(plan));
    // Of those that the answer rests on there may be more runs than of others.
    let finished = document.recommended.as_ref().map_or(finished, |setting| {
        let mut variants = document.variants.iter();
        let own = variants.find(|variant| variant.name == setting.variant);
        own.map_or(setting.seeds, |own| own.runs) as usize
    });
    let any = document.recommended.is_some() || !batch.interrupted;
    if several && any && finished < ENOUGH_SEEDS {
        notes.push(format!(
            "too few seeds ({finished}): with {ENOUGH_SEEDS} or more the intervals can be trusted"
        ));
    }
    if several {
        notes.extend(sparse::notes(plan, batch));
    }
    notes.extend((0..plan.described.groups.len()).filter_map(|group| rounds_left_out(plan, document, group)));
    notes.extend(super::asked::note(plan, document));
    notes.extend(super::sent::note(plan, batch, document));
    if several
        && batch
            .runs
            .first()
            .is_some_and(|runs| super::ranking::same_seeds(runs))
    {
        notes.push(String::from(
            "every seed of the network as described gave the same run: nothing in it is drawn at random, so nothing can be called \
             significant; with jitter of one packet time (network.access.jitter) seeds differ: docs/trust.md, Phase effects",
        ));
    }
    if let Some(jittered) = document.jittered.as_ref().filter(|jittered| jittered.holds) {
        notes.push(format!(
            "no link has jitter; with it ({}) the answer is the same: docs/trust.md, Phase effects",
            jittered.set
        ));
    } else if let Some(steps) = super::step::of(plan).filter(|_| several && document.jittered.is_none()) {
        notes.push(steps.note());
    }
    notes.extend(crowded::note(plan));
    let standing: Vec<usize> = plan.stands().collect();
    let untouched: Vec<String> = standing
        .iter()
        .filter(|place| !plan.chosen.contains(place))
        .map(|&place| plan.places[place].described())
        .collect();
    if several && !untouched.is_empty() {
        notes.push(format!(
            "queues also stand where queue mechanisms were not asked to act: {}",
            first_of(&untouched)
        ));
    }
    let measured_s = (plan.described.run.duration - plan.described.run.warmup).as_secs_f64();
    let bottleneck = &plan.described.run.bottleneck;
    let early = document
        .variants
        .iter()
        .filter(|variant| in_answer(document, &variant.name))
        .find_map(|variant| Some((variant, super::early(variant, bottleneck, measured_s)?)));
    notes.extend(early.map(|(variant, said)| format!("{}: {said}", variant.name)));
    notes.extend(interface::taken_for_own(plan));
    notes.extend(dsl_without_framing(plan));
    notes.extend(red_that_drops(plan));
    if several && !plan.standing.is_empty() && standing.is_empty() {
        notes.push(nothing_stands(plan, document));
    }
    notes.extend(several.then(|| too_short(plan, document)).flatten());
    notes.extend((0..plan.described.groups.len()).filter_map(|index| for_a_part(plan, index)));
    notes.extend(nagle(plan, document));
    notes.extend(tls::without_tls(&plan.described.spec.groups));
    for (index, info) in plan.described.groups.iter().enumerate() {
        if !info.kind.facts().both_ways {
            notes.extend(directions::one_of_two(&plan.described.spec.groups[index]));
        }
        let counted = |count: fn(&Group) -> u64| -> Vec<(&str, u64, u64)> {
            document
                .variants
                .iter()
                .map(|variant| (variant.name.as_str(), &variant.groups[index]))
                .map(|(name, group)| (name, count(group), group.flows))
                .collect()
        };
        // Of what counts as waiting anyway only what the answer names is reported.
        let lost: Vec<(&str, u64, u64)> = counted(|group| group.flows - group.completed)
            .into_iter()
            .filter(|(name, _, _)| in_answer(document, name))
            .collect();
        if info.kind.facts().losses == Losses::Flows
            && let Some(lost) = listed(&lost)
        {
            notes.push(format!(
                "{}: lost pings (until the next answer they count as waiting): {lost}",
                info.name
            ));
        }
        if let Some(rounds) = rounds(document, index).filter(|_| several) {
            notes.push(format!(
                "{}: who waits for all answers of a round waits for the last of them, on average and at the 99th percentile: {rounds}; \
                 the table is of single answers",
                info.name
            ));
        }
        let facts = info.kind.facts();
        if several
            && (facts.losses, facts.compared) == (Losses::Datagrams, Compared::Delivery)
            && let Some(lost) = shares(document, index, GroupMetric::LostShare.name_in_more())
        {
            notes.push(format!(
                "{}: share of the datagrams that never came, which its times leave out: {lost}",
                info.name
            ));
        }
        if several && let Some(still) = shares(document, index, facts.stood_still) {
            notes.push(format!(
                "{}: share of the time in which a player stood still: {still}",
                info.name
            ));
        }
        if let Some(late) = shares(document, index, GroupMetric::LateOrLost.name_in_more()) {
            notes.push(format!(
                "{}: frames that came after their deadline or never (until the next frame they count as waiting): {late}",
                info.name
            ));
        }
        if let Some(silent) = silent_way(document, index) {
            notes.push(format!(
                "{}: no frame arrived whole one way, and its times are of the other: {silent}",
                info.name
            ));
        }
        if let Some(times) = directions(document, index) {
            notes.push(format!(
                "{}: its times are of frames both ways together, and the ways differ; medians down and up: {times}",
                info.name
            ));
        }
        if let Some(open) = listed(&counted(|group| group.censored)) {
            notes.push(format!(
                "{}: flows that did not complete (means take their age, quantiles take them as the largest): {open}",
                info.name
            ));
        }
        // Of other kinds they are flows, or parts of such.
        let messages = info.kind.facts().is_message_stream().then(|| {
            let of = |variant: &Variant| messages(&variant.groups[index]);
            let variants = document.variants.iter();
            variants
                .map(|variant| (variant.name.as_str(), of(variant).0, of(variant).1))
                .collect()
        });
        if let Some(open) = messages.and_then(|counts: Vec<(&str, u64, u64)>| listed(&counts)) {
            notes.push(format!(
                "{}: messages that had not arrived when the runs ended (means take their age, quantiles take them as the largest): {open}",
                info.name
            ));
        }
    }
    notes
}

/// That no queue stands, and what follows for mechanisms of queues. One that saves time nevertheless shortens waits below the bounds.
fn nothing_stands(plan: &Plan, document: &Document) -> String {
    let setting = document.recommended.as_ref();
    let queue = setting.filter(|setting| {
        let mut planned = plan.variants.iter();
        planned.any(|planned| planned.name == setting.variant && !planned.places.is_empty())
    });
    match queue {
        Some(setting) => format!(
            "no queue stands in this network as described by the bounds of docs/trust.md (Tiers): what {} saves are shorter waits than those",
            setting.variant
        ),
        None => String::from(
            "no queue stands in this network as described, so queue mechanisms have little to shorten",
        ),
    }
}

/// That a link loses so many packets that per cent were probably meant.
fn many_lost(plan: &Plan) -> Option<String> {
    let mut links = plan.described.spec.links.iter();
    links.find_map(|link| {
        let Loss::Random(loss) = link.impairments.loss else {
            return None;
        };
        let share = loss.as_f64();
        let number = format!("{share:.3}");
        let number = number.trim_end_matches('0');
        (share >= MANY_LOST).then(|| {
            format!(
                "link {} loses {:.0} % of its packets: a `loss` without a unit is a share of one; {number} per cent is written \"{number} %\"",
                link.name,
                100.0 * share
            )
        })
    })
}

/// A link that loses this share of its packets at random or more is hardly meant.
const MANY_LOST: f64 = 0.1;

/// That lines of DSL count bytes that the scenario does not.
fn dsl_without_framing(plan: &Plan) -> Option<String> {
    let places: Vec<(String, Medium)> = plan
        .places
        .iter()
        .filter_map(|place| {
            let &index = place.links.first()?;
            let medium = plan.described.links_info.get(index)?.medium?;
            let counts = matches!(medium, Medium::Adsl | Medium::Vdsl);
            let link = &plan.described.spec.links[index];
            (counts && link.framing == 0).then(|| (place.described(), medium))
        })
        .collect();
    let medium = places.first()?.1;
    let names: Vec<String> = places.into_iter().map(|(name, _)| name).collect();
    let (adds, advice) = match medium {
        Medium::Adsl => (
            "headers and the cells of ATM: of a full packet 1749 bytes, not 1500",
            "`framing = \"40 B\"` and 48/53 of the rate, with `rate_is_net = true`,",
        ),
        _ => (
            "headers and PTM: of a full packet 1554 bytes, not 1500",
            "`framing = \"30 B\"` and 64/65 of the rate, with `rate_is_net = true`,",
        ),
    };
    Some(format!(
        "`medium` is {} and `framing` 0 at {}: if the rate there is that of the line, it carries {adds}; {advice} come near",
        medium.name(),
        first_of(&names)
    ))
}

/// That a queue of RED whose thresholds are one, the recipe of DCTCP's step, drops: it is to mark and nothing marks above, or senders would take marks and it
/// has no `ecn`.
fn red_that_drops(plan: &Plan) -> Option<String> {
    let one_threshold = |link: &LinkSpec| {
        let values = &link.queue_values;
        let thresholds = || Some((values.number("min_threshold")?, values.number("max_threshold")?));
        link.queue == "red" && thresholds().is_some_and(|(min, max)| max <= min + STEP)
    };
    let links = &plan.described.spec.links;
    let at = |drops: &dyn Fn(&LinkSpec) -> bool| {
        let places = plan.places.iter();
        let found = places.filter(|place| {
            let link = place.links.first().map(|&link| &links[link]);
            link.is_some_and(|link| one_threshold(link) && drops(link))
        });
        let names: Vec<String> = found.map(Place::described).collect();
        (!names.is_empty()).then(|| first_of(&names))
    };
    if let Some(places) = at(&|link| link.queue_values.flag("ecn") && link.queue_values.flag("hard_drop")) {
        return Some(format!(
            "{places}: RED has `ecn`, and from `max_threshold` on it drops nevertheless (RFC 3168 7); that is its `min_threshold`, so hardly anything is \
             marked. For one threshold from which everything is marked, as DCTCP wants it, write `hard_drop = false`, with which Linux's RED works too"
        ));
    }
    let mut groups = plan.described.spec.groups.iter();
    let takes_marks = groups.any(|group| group.sender.ecn != EcnFeedback::Off);
    let places = at(&|link| !link.queue_values.flag("ecn")).filter(|_| takes_marks)?;
    Some(format!(
        "{places}: senders here take marks (ECN), and RED has one threshold and no `ecn`, so it drops what it could mark; for one threshold from which \
         everything is marked, as DCTCP wants it, write `ecn = true, hard_drop = false`"
    ))
}

/// Thresholds that are no further apart are one.
const STEP: f64 = 1.0;

/// That a group whose rate is over the measured time is there for a part of it only.
fn for_a_part(plan: &Plan, index: usize) -> Option<String> {
    let spec = &plan.described.spec;
    let group = &spec.groups[index];
    if group.traffic.facts().flow_is_connection {
        return None; // Its rates are those of transfers while they ran.
    }
    let begin = group.start.max(spec.warmup);
    let end = group.stop.unwrap_or(spec.duration).min(spec.duration);
    let (there, measured) = (
        end.saturating_sub(begin),
        spec.duration.saturating_sub(spec.warmup),
    );
    (there < measured && group.stop.is_some()).then(|| {
        format!(
            "{}: it sends for {} of the {} that are measured; its rate is over all of that time",
            group.name,
            numbers::seconds(there.as_secs_f64()),
            numbers::seconds(measured.as_secs_f64())
        )
    })
}

/// That programs may switch Nagle's algorithm off themselves, where switching it off for small writes is advised.
fn nagle(plan: &Plan, document: &Document) -> Option<String> {
    let advised = document.recommended.as_ref()?;
    let advised = plan
        .variants
        .iter()
        .find(|planned| planned.name == advised.variant)?;
    let before = plan.described.spec.groups.iter();
    let names: Vec<String> = before
        .zip(&advised.resolved.spec.groups)
        .filter(|(before, _)| matches!(before.traffic, Traffic::Thin { .. }))
        .filter(|(before, after)| {
            before.sender.nagle && !after.sender.nagle || before.receiver.nagle && !after.receiver.nagle
        })
        .map(|(before, _)| before.name.clone())
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: programs that write little at a time, such as OpenSSH, remote desktops and games, often switch Nagle's algorithm off themselves \
             (TCP_NODELAY), and then there is nothing to gain; describe such traffic with `tcp = {{ nagle = false }}` and compare again",
            first_of(&names)
        )
    })
}

/// That fewer than half of the rounds of an incast began while it was measured, as described.
pub(super) fn rounds_left_out(plan: &Plan, document: &Document, group: usize) -> Option<String> {
    let Traffic::Incast { count, rounds, .. } = plan.described.spec.groups.get(group)?.traffic else {
        return None;
    };
    let described = document.variants.first()?;
    let found = described.groups.get(group)?;
    let (measured, wanted) = (
        found.flows / u64::from(count.max(1)),
        u64::from(rounds) * described.runs,
    );
    (2 * measured < wanted).then(|| {
        format!(
            "{}: {measured} of {wanted} rounds ({rounds} in each run) began in the time that is measured, so its times rest on {}; \
             a longer `run.duration` has more",
            found.name,
            match measured {
                1 => String::from("one burst"),
                bursts => format!("{bursts} bursts"),
            }
        )
    })
}

/// How many messages of a group had not arrived when the runs ended, and of how many.
fn messages(group: &Group) -> (u64, u64) {
    let all = group.delivery_latency_s.as_ref().map_or(0, |times| times.n);
    (group.undelivered, all)
}

/// That runs are too short for transfers or messages that come all the time: as described, many are under way at the end. Which those are differs
/// between variants, and variants that leave more of them so have no tier, which longer runs may show to be chance.
pub(super) fn too_short(plan: &Plan, document: &Document) -> Option<String> {
    let described = document.variants.first()?;
    let (mut open, mut times) = (Vec::new(), 1.0_f64);
    for (spec, group) in plan.described.spec.groups.iter().zip(&described.groups) {
        // A group of so many transfers has no more of them in a longer run.
        let go_on = match &spec.traffic {
            Traffic::Transfer { count, .. } => count.is_none(),
            Traffic::Web(_) | Traffic::ClosedLoop { .. } | Traffic::Thin { .. } => true,
            _ => false,
        };
        let ((left, all), what) = match spec.traffic.facts().is_message_stream() {
            true => (messages(group), " messages"),
            false => ((group.censored, group.flows), ""),
        };
        let most = MOST_UNFINISHED * all as f64;
        if go_on && all > 0 && left as f64 > most {
            open.push(format!("{}: {left} of {all}{what}", group.name));
            times = times.max(left as f64 / most);
        }
    }
    if open.is_empty() {
        return None;
    }
    // As many are under way at the end of a run of any length, if the network carries what is offered.
    let warmup_s = plan.described.run.warmup.as_secs_f64();
    let enough = longer(warmup_s + times * (document.duration_s - warmup_s))
        .map(|enough| format!("; try `run.duration = \"{enough}\"`"))
        .unwrap_or_default();
    Some(format!(
        "{} had not finished when the runs ended, as described: the runs are too short for them, and the answer may change with longer \
         ones{enough} (if the share stays, more is offered than the network carries)",
        open.join(", ")
    ))
}

/// A duration of at least so many seconds, in the smallest unit of which it takes fewer than 100 (of milliseconds 1000); `None`: longer than
/// the day that a run may take.
fn longer(seconds: f64) -> Option<String> {
    const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)];
    let count = |unit: f64| (seconds / unit - 1e-9).ceil();
    let (name, unit) = UNITS
        .into_iter()
        .find(|(name, unit)| count(*unit) < 100.0 || *name == "ms" && count(*unit) < 1000.0)?;
    let within = count(unit) * unit <= 86_400.0;
    within.then(|| format!("{} {name}", count(unit)))
}

/// Share of the flows or messages of a group that may be under way at the end of a run without being mentioned.
const MOST_UNFINISHED: f64 = 0.05;

/// How late this machine was with the packets of runs in real time.
fn lateness(plan: &Plan, batch: &Batch) -> Option<String> {
    let played = plan.variants.iter().zip(&batch.runs);
    let played = played.filter(|(variant, _)| variant.resolved.spec.world.is_real());
    let links = played
        .flat_map(|(_, runs)| runs)
        .flat_map(|run| &run.output.links);
    let (mut packets, mut late, mut longest) = (0, 0, 0);
    for lateness in links.filter_map(|link| link.lateness.as_ref()) {
        packets += lateness.times.n();
        late += lateness.late;
        longest = longest.max(lateness.times.max());
    }
    (packets > 0).then(|| {
        format!(
            "this machine delivered {:.2} % of the packets of runs by the kernel over 1 ms late, at most {:.1} ms: what is above \
             1 % was not the described link",
            late as f64 * 100.0 / packets as f64,
            longest as f64 / 1e6
        )
    })
}

/// How long rounds of a group take in the variants that the answer names; `None` without rounds.
fn rounds(document: &Document, group: usize) -> Option<String> {
    pairs_of_times(document, |variant| {
        let rounds = variant.groups[group].more(GroupMetric::Round)?;
        Some([rounds.mean, rounds.p99])
    })
}

/// Median times of a call's two directions in each variant, of variants in which one is more than half longer than the other.
fn directions(document: &Document, group: usize) -> Option<String> {
    pairs_of_times(document, |variant| {
        let median = |metric| Some(variant.groups[group].more(metric)?.p50);
        let (down, up) = (median(GroupMetric::FramesDown)?, median(GroupMetric::FramesUp)?);
        (down.max(up) > 1.5 * down.min(up)).then_some([down, up])
    })
}

/// The way of a call on which no frame arrived whole in each variant that the answer names; `None` without any.
pub(super) fn silent_way(document: &Document, group: usize) -> Option<String> {
    let variants = document.variants.iter();
    let named = variants.filter(|variant| in_answer(document, &variant.name));
    let silent: Vec<String> = named
        .filter_map(|variant| {
            let arrived = |metric| variant.groups[group].more(metric).is_some();
            match (arrived(GroupMetric::FramesDown), arrived(GroupMetric::FramesUp)) {
                (true, false) => Some(format!("{} up", variant.name)),
                (false, true) => Some(format!("{} down", variant.name)),
                _ => None,
            }
        })
        .collect();
    (!silent.is_empty()).then(|| first_of(&silent))
}

/// Two times (s) of each of the first variants that the answer names and that have them; `None` without any.
fn pairs_of_times(document: &Document, times: impl Fn(&Variant) -> Option<[f64; 2]>) -> Option<String> {
    let variants = document.variants.iter();
    let named = variants.filter(|variant| in_answer(document, &variant.name));
    let told: Vec<String> = named
        .filter_map(|variant| {
            let [one, other] = times(variant)?.map(numbers::seconds);
            Some(format!("{} {one} and {other}", variant.name))
        })
        .take(SHORT_LIST)
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// A share that every variant should keep small, as described and where it is smallest; `None` where it is nothing everywhere.
fn shares(document: &Document, group: usize, measure: Option<&'static str>) -> Option<String> {
    let measure = measure?;
    let shares = document.variants.iter().filter_map(|variant| {
        let share = variant.groups[group].more.get(measure)?;
        Some((variant.name.as_str(), share.mean))
    });
    let shares: Vec<(&str, f64)> = shares.collect();
    let (first, rest) = shares.split_first()?;
    // A share of which no digit is shown is none.
    let none = |share: f64| share < 0.0005;
    if shares.iter().all(|(_, share)| none(*share)) {
        return None;
    }
    let shown = |(name, share): &(&str, f64)| format!("{name} {:.1} %", 100.0 * share);
    if document.recommended.is_some() {
        let named = shares.iter().filter(|(name, _)| in_answer(document, name));
        let named: Vec<&(&str, f64)> = named.collect();
        let any = named.iter().any(|(_, share)| !none(*share));
        return any.then(|| named.into_iter().map(shown).collect::<Vec<_>>().join(", "));
    }
    let fewest = rest.iter().min_by(|one, other| one.1.total_cmp(&other.1));
    Some(match fewest.filter(|(_, share)| *share < first.1) {
        Some(fewest) => format!("{}; fewest {}", shown(first), shown(fewest)),
        None => shown(first),
    })
}

/// Whether the answer names this variant: the network as described, the setting to try and its equals; all without an answer.
fn in_answer(document: &Document, name: &str) -> bool {
    let first = document.variants.first().is_some_and(|first| first.name == name);
    document.recommended.as_ref().is_none_or(|setting| {
        first || setting.variant == name || setting.equals.iter().any(|equal| equal == name)
    })
}

/// Counts by variant as text, `None` if all are zero. Of many variants the first (as described), the fewest and the most.
fn listed(counts: &[(&str, u64, u64)]) -> Option<String> {
    let said = |&(name, count, of): &(&str, u64, u64)| format!("{name} {count} of {of}");
    let found: Vec<_> = counts.iter().filter(|entry| entry.1 > 0).collect();
    if found.is_empty() {
        return None;
    }
    if found.len() <= SHORT_LIST {
        return Some(found.into_iter().map(said).collect::<Vec<_>>().join(", "));
    }
    let (first, others) = counts.split_first()?;
    let fewest = others.iter().min_by_key(|entry| entry.1)?;
    let most = others.iter().rev().max_by_key(|entry| entry.1)?;
    if others
        .iter()
        .all(|entry| (entry.1, entry.2) == (first.1, first.2))
    {
        return Some(format!("{}, and so with every other variant", said(first)));
    }
    Some(format!(
        "{}; fewest {}, most {}",
        said(first),
        said(fewest),
        said(most)
    ))
}

/// Names one by one if they are few, else the first of them and how many there are beside.
pub(super) fn first_of(names: &[String]) -> String {
    match names.split_at_checked(SHORT_LIST) {
        Some((first, rest)) if !rest.is_empty() => format!("{} and {} more", first.join(", "), rest.len()),
        _ => names.join(", "),
    }
}

/// Most counts or names that are listed one by one.
const SHORT_LIST: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Choice;
    use crate::scenario::Scenario;

    #[test]
    fn many_queues_are_cut_to_the_first_and_their_number() {
        let names: Vec<String> = (1..=8).map(|number| format!("access {number}")).collect();
        assert_eq!(first_of(&names[..2]), "access 1, access 2");
        assert_eq!(first_of(&names[..5]), names[..5].join(", "));
        assert_eq!(
            first_of(&names),
            "access 1, access 2, access 3, access 4, access 5 and 3 more"
        );
    }

    #[test]
    fn counts_of_many_variants_are_cut_to_the_first_the_fewest_and_the_most() {
        let counts = [
            ("as described", 3, 9),
            ("b", 1, 9),
            ("c", 7, 9),
            ("d", 2, 9),
            ("e", 7, 9),
            ("f", 1, 9),
        ];
        let all = "as described 3 of 9; fewest b 1 of 9, most c 7 of 9";
        assert_eq!(listed(&counts).as_deref(), Some(all));
        let few = [("as described", 0, 9), ("b", 1, 9), ("c", 7, 9)];
        assert_eq!(listed(&few).as_deref(), Some("b 1 of 9, c 7 of 9"));
        assert_eq!(listed(&few[..1]), None);
        let alike = ["as described", "b", "c", "d", "e", "f"].map(|name| (name, 5, 5));
        let all = "as described 5 of 5, and so with every other variant";
        assert_eq!(listed(&alike).as_deref(), Some(all));
    }

    #[test]
    fn longer_runs_are_proposed_in_round_units() {
        let proposed = [0.16, 0.999, 1.0, 99.0, 99.5, 400.0, 5_941.0, 86_400.0, 86_401.0].map(longer);
        let expected = ["160 ms", "999 ms", "1 s", "99 s", "2 min", "7 min", "2 h", "24 h"];
        assert_eq!(proposed[..8], expected.map(|text| Some(text.to_owned())));
        assert_eq!(proposed[8], None, "a run takes a day at most");
    }

    #[test]
    fn a_step_of_red_that_drops_what_it_should_mark_is_reported() {
        let noted = |thresholds: &str| {
            let text = crate::testing::BUSY_LINE.replacen(
                "kind = \"drop-tail\"",
                &format!("kind = \"red\", {thresholds}"),
                1,
            );
            let scenario = Scenario::parse("home-line.toml", &text).expect("it is correct");
            red_that_drops(&Plan::compare(scenario, &Choice::default()).expect("it resolves"))
        };
        let step = "min_threshold = 20, max_threshold = 20";
        let note = noted(&format!("{step}, ecn = true")).expect("it drops everything");
        assert!(note.contains("write `hard_drop = false`"), "{note}");
        assert_eq!(noted(&format!("{step}, ecn = true, hard_drop = false")), None);
        assert_eq!(noted(step), None, "nobody takes marks");
        let marks = |ecn: &str| {
            let text = crate::testing::BUSY_LINE.replacen(
                "kind = \"drop-tail\"",
                &format!("kind = \"red\", {step}"),
                1,
            );
            let text = text.replacen("[tcp]", &format!("[tcp]\necn = {ecn}"), 1);
            let scenario = Scenario::parse("home-line.toml", &text);
            let scenario = scenario.expect("it is correct");
            red_that_drops(&Plan::compare(scenario, &Choice::default()).expect("it resolves"))
        };
        let note = marks("true").expect("it drops what it could mark");
        assert!(note.contains("write `ecn = true, hard_drop = false`"), "{note}");
        assert_eq!(marks("false"), None);
        assert_eq!(noted("min_threshold = 20, max_threshold = 60, ecn = true"), None);
    }

    #[test]
    fn where_nagle_off_is_advised_for_small_writes_it_is_said_that_programs_may_have_it() {
        let noted = |more: &str, name: &str| {
            let text = format!(
                "[network]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"100 Mbit/s\", delay = \"40 ms\", loss = 0.01 }}\n\
                 [[traffic]]\nname = \"terminals\"\nkind = \"thin\"\nmodel = \"ssh\"\n{more}\n[run]\nduration = \"5 s\"\n"
            );
            let scenario = Scenario::parse("vpn.toml", &text).expect("it is correct");
            let choice = Choice {
                only: ["nagle-off", "fq-codel"].map(str::to_owned).to_vec(),
                ..Choice::default()
            };
            let plan = Plan::compare(scenario, &choice).expect("it resolves");
            let document = Document {
                recommended: Some(crate::testing::recommended(name)),
                ..Document::default()
            };
            nagle(&plan, &document)
        };
        let note = noted("", "nagle-off").expect("it is advised");
        assert!(
            note.starts_with("terminals: programs that write little at a time, such as OpenSSH,")
                && note.contains("`tcp = { nagle = false }`"),
            "{note}"
        );
        assert_eq!(noted("", "fq-codel"), None);
        assert_eq!(noted("tcp = { nagle = false }", "fq-codel"), None);
    }

    #[test]
    fn that_no_queue_stands_does_not_speak_against_a_queue_that_is_recommended() {
        let scenario = Scenario::parse("home-line.toml", crate::testing::BUSY_LINE).expect("it is correct");
        let plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
        let mut document = Document::default();
        let note = nothing_stands(&plan, &document);
        assert!(
            note.ends_with("queue mechanisms have little to shorten"),
            "{note}"
        );
        let mut with = |name: &str| {
            document.recommended = Some(crate::testing::recommended(name));
            nothing_stands(&plan, &document)
        };
        let note = with("fq-codel");
        assert!(
            note.ends_with("what fq-codel saves are shorter waits than those"),
            "{note}"
        );
        let note = with("initial-window-20");
        assert!(
            note.ends_with("queue mechanisms have little to shorten"),
            "{note}"
        );
    }
}
