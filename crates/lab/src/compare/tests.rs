//! Ranking and document from made-up runs.

use super::{BASELINE, Choice, Plan, build, ranked};
use crate::metrics::counters::reported;
use crate::result::{Comparison, Document, Group, Variant};
use crate::run::{Options, execute, simulate};
use crate::scenario::{ReplayFit, Scenario, Setting, Verdict};
use crate::testing::{TEXT, engine, scenario};
use std::sync::atomic::AtomicBool;

mod cut_off;
mod fewer_seeds;
mod missing;

fn compare(scenario: Scenario, threads: usize) -> Comparison {
    let plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
    let options = Options {
        jobs: threads,
        ..Options::default()
    };
    let batch = execute(
        &plan.jobs(),
        &plan.seeds,
        &options,
        &AtomicBool::new(false),
        &engine,
        &|_| (),
    );
    build(&plan, &batch.expect("it runs"), "fleetfoot compare test.toml")
}

fn with_window(segments: u32) -> Scenario {
    let text = TEXT.replace("initial_window\" = 40", &format!("initial_window\" = {segments}"));
    Scenario::parse("test.toml", &text).expect("it is correct")
}

#[test]
fn a_variant_that_is_another_here_says_so() {
    let again = "[[variant]]\nname = \"again\"\nset = { \"tcp.initial_window\" = 20 }\n[run]";
    let scenario = Scenario::parse("test.toml", &TEXT.replace("[run]", again)).expect("it is correct");
    let document = compare(scenario, 8).document;
    let remarks = |variant: usize| {
        let row = &document.variants[variant];
        let versus = row.versus.as_ref().expect("it was compared");
        (row.name.as_str(), versus.remarks.clone())
    };
    assert_eq!(remarks(1), ("better", Vec::new()));
    assert_eq!(remarks(2), ("costly", Vec::new()));
    let same = "the same as better here: with what else is set, both change the same";
    assert_eq!(remarks(3), ("again", vec![String::from(same)]));
}

/// What saves 50 % for a harm of 20 % is on the front beside 30 % for none also where it is what another does at one place only. What saves
/// 50 % for none at one place leaves no room on it for the 30 %.
#[test]
fn what_acts_at_one_place_only_takes_part_in_the_front_and_is_not_tested() {
    let front = |scenario: Scenario, part: usize, whole: &str| {
        let mut plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
        plan.variants[part].part_of = Some(whole.to_owned());
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &engine, &|_| ());
        let document = build(&plan, &batch.expect("it runs"), "").document;
        let versus = document.variants.into_iter().filter_map(|variant| variant.versus);
        versus
            .map(|versus| (versus.pareto, versus.significant))
            .collect::<Vec<_>>()
    };
    assert_eq!(front(scenario(), 2, "better"), [(true, true), (true, false)]);
    assert_eq!(front(scenario(), 1, "costly"), [(true, false), (true, true)]);
    assert_eq!(front(with_window(7), 2, "better"), [(false, true), (true, false)]);
}

#[test]
fn what_is_won_counts_against_what_is_harmed() {
    let document = compare(scenario(), 2).document;
    assert_eq!(document.variants[0].name, BASELINE);
    assert!(document.variants[0].versus.is_none());
    let better = document.variants[1].versus.as_ref().expect("it was compared");
    let costly = document.variants[2].versus.as_ref().expect("it was compared");
    // 30 % for nothing is a net of 30; 50 % for a harm of 20 % as well: one tier, and within it less harm is first.
    assert_eq!((better.rank, costly.rank), (1, 2));
    assert_eq!((better.tier, costly.tier), (Some(1), Some(1)));
    assert!(better.pareto && costly.pareto);
    assert!(better.harm.expect("there are others").value < 0.01);
    // The backups lost 30 % of what they had, which was more than the line has room for beside the pages.
    let harm = costly.harm.expect("there are others");
    assert!((0.15..0.25).contains(&harm.value) && harm.significant, "{harm:?}");
    assert!((better.win.expect("there are transfers") - 0.3).abs() < 0.01);
    assert!((costly.win.expect("there are transfers") - 0.5).abs() < 0.01);
    assert!((costly.cost.expect("there are others") - 0.3).abs() < 0.01);
    assert!(better.significant && costly.significant);
    let ratio = better.groups[0].fct_p99_ratio.expect("there are transfers");
    assert!((ratio.value - 0.7).abs() < 0.01 && ratio.significant);
    assert!(
        document
            .answer
            .starts_with("Try better on the servers: the times of pages are 30 % shorter (95 % interval 30 to 30 %), and nobody is harmed. Equal within error in time saved less harm: costly (saves 50 % and harms by 20 %), over 12 seeds."),
        "{}",
        document.answer
    );
    let turn_on = document.variants[1]
        .turn_on
        .as_deref()
        .expect("it is a mechanism");
    assert!(turn_on.contains("initcwnd 20"), "{turn_on}");
}

#[test]
fn a_poor_fit_to_a_recording_gives_no_answer() {
    let identity = scenario()
        .resolve(&Setting::none())
        .expect("it resolves")
        .identity;
    let with = |verdict: Verdict| {
        let fit = ReplayFit {
            verdict,
            measure: Some(String::from("exchanges")),
            difference: Some(1.72),
            reasons: vec![String::from("exchanges differ by 172 %")],
            advice: vec![String::from("Capture both directions.")],
            controllers: Vec::new(),
            changed: false,
        };
        let text = format!("{TEXT}\n{}", fit.to_toml(&identity));
        let scenario = Scenario::parse("test.toml", &text).expect("it is correct");
        (compare(scenario, 2).document, fit)
    };
    let (poor, fit) = with(Verdict::Poor);
    let missing = "The fit of this scenario to the recording it was made of is poor (worst: exchanges, 172 % apart). Capture both directions.";
    assert_eq!(
        poor.answer,
        format!("No answer can be given for this recording. {missing}")
    );
    assert_eq!(
        (poor.recommended, poor.fit, poor.notes[0].as_str()),
        (None, Some(fit), missing)
    );
    let (fair, fit) = with(Verdict::Fair);
    assert!(fair.answer.starts_with("Try better"), "{}", fair.answer);
    assert!(
        fair.recommended.is_some() && fair.notes[0].contains("is fair (worst"),
        "{:?}",
        fair.notes
    );
    assert_eq!(fair.fit, Some(fit));
}

#[test]
fn noise_is_not_called_a_win() {
    let document = compare(with_window(5), 2).document;
    let versus = document.variants[2].versus.as_ref().expect("it was compared");
    assert!(!versus.significant);
    assert_eq!(versus.rank, 2);
}

#[test]
fn what_may_be_as_good_as_the_best_is_named_and_gets_more_seeds() {
    let document = compare(with_window(8), 2).document;
    let [better, other] =
        [1, 2].map(|index| document.variants[index].versus.as_ref().expect("it was compared"));
    assert!(better.significant && !other.significant);
    assert!(other.win_ci95.is_some_and(|[low, _]| low < 0.0), "{other:?}");
    let recommended = document.recommended.expect("better is a win");
    assert_eq!(
        (
            recommended.variant.as_str(),
            recommended.equals.len(),
            recommended.undecided
        ),
        ("better", 0, 1)
    );
    assert_eq!(recommended.open, ["costly"]);
    let known = " 12 seeds cannot tell whether costly is equally good; more seeds can.";
    assert!(document.answer.contains(known), "{}", document.answer);
    let plan = Plan::compare(with_window(8), &Choice::default()).expect("it resolves");
    let (options, never) = (Options::default(), AtomicBool::new(false));
    let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &engine, &|_| ());
    let rows = ranked(&plan, &batch.expect("it runs")).rows;
    assert_eq!(
        (rows.contenders, rows.open, rows.hopeful),
        (vec![1, 2], vec![2], vec![2])
    );
    // What surely saves nothing is not open.
    let noise = compare(with_window(5), 2).document;
    assert!(
        noise
            .recommended
            .is_some_and(|own| own.undecided == 0 && own.open.is_empty())
    );
    assert!(
        noise
            .answer
            .contains(" Nothing else is equal to it, over 12 seeds."),
        "{}",
        noise.answer
    );
}

#[test]
fn more_censored_flows_are_never_better() {
    let document = compare(with_window(6), 2).document;
    let group = &document.variants[2].groups[0];
    assert_eq!((group.flows, group.completed, group.censored), (2400, 2160, 240));
    // Means take ages, so this variant looks bad anyway; p99 is an age as well.
    let fct = group.fct_s.as_ref().expect("there are transfers");
    assert!(fct.p99 > 60.0 && fct.p50 < 0.2);
    let versus = document.variants[2].versus.as_ref().expect("it was compared");
    assert!(versus.win.expect("there are transfers") < 0.0);
}

#[test]
fn a_faster_variant_that_leaves_flows_open_is_not_called_better() {
    let document = compare(with_window(7), 2).document;
    assert_eq!(document.variants[2].groups[0].censored, 12);
    let versus = document.variants[2].versus.as_ref().expect("it was compared");
    // The estimate alone would be a win, and a significant one.
    assert!(versus.win.expect("there are transfers") > 0.4);
    let ratio = versus.groups[0].fct_mean_ratio.expect("there are transfers");
    assert!(ratio.significant);
    assert!(!versus.significant);
    assert_eq!(versus.rank, 2);
    assert!(document.answer.starts_with("Try better "), "{}", document.answer);
}

#[test]
fn one_run_says_of_how_many_transfers_its_mean_is_an_age() {
    let mut variant = compare(with_window(6), 2).document.variants.remove(2);
    assert_eq!(
        super::groups::answer(&variant),
        format!(
            "2160 of 2400 transfers of pages completed; all took at least {:.3} s on average, those that did not complete counted with their age.",
            variant.groups[0]
                .fct_s
                .as_ref()
                .expect("there are transfers")
                .mean
        )
    );
    variant.groups[0].completed = 0;
    assert!(
        super::groups::answer(&variant)
            .starts_with("None of the 2400 transfers of pages completed; they were ")
    );
    variant.groups[0].censored = 0;
    assert!(super::groups::answer(&variant).starts_with("2400 transfers of pages took "));
}

#[test]
fn streams_and_connections_are_those_of_one_run() {
    // Over 12 seeds.
    let variant = compare(scenario(), 2).document.variants.remove(0);
    let words = |group: &Group| super::words::group(group, variant.runs);
    let mut streams = variant.groups[0].clone();
    (streams.kind, streams.flows) = (String::from("thin"), 24);
    streams.delivery_latency_s = streams.fct_s.take();
    assert!(words(&streams).starts_with("pages (thin, waits): 2 streams, messages mean "));
    streams.flows = 12;
    assert!(words(&streams).starts_with("pages (thin, waits): 1 stream, messages mean "));
    let backup = &variant.groups[1];
    assert_eq!(backup.goodput_bps.as_ref().map(|goodput| goodput.n), Some(24));
    assert!(words(backup).starts_with("backup (bulk): 2 connections, "));
}

#[test]
fn players_without_a_picture_are_counted_and_not_praised() {
    let mut group = compare(scenario(), 2)
        .document
        .variants
        .remove(0)
        .groups
        .remove(0);
    let of = |mean: f64, group: &Group| {
        let summary = group.fct_s.clone().expect("there are transfers");
        crate::statistics::Summary {
            mean,
            n: 20,
            ..summary
        }
    };
    let mut said = |never: f64, stalls: f64| {
        let more = [("without_picture", never), ("stalls", stalls)];
        group.more = more
            .map(|(name, mean)| (name.to_owned(), of(mean, &group)))
            .into();
        group.kind = String::from("streaming");
        super::felt::felt(&group)
    };
    assert_eq!(
        said(0.15, 0.0).as_deref(),
        Some("3 of 20 players showed no picture before the end")
    );
    assert_eq!(said(0.0, 0.0).as_deref(), Some("no stalls"));
}

#[test]
fn rounds_that_do_not_fit_are_noted_with_the_bursts_that_are_left() {
    let text = TEXT.replace(
        "kind = \"transfer\"\nsize = \"20 kB\"\narrivals = { dist = \"poisson\", rate = \"20 per second\" }",
        "kind = \"incast\"\nsize = \"20 kB\"\ncount = 40\nrounds = 3",
    );
    assert_ne!(text, TEXT);
    let scenario = Scenario::parse("test.toml", &text).expect("it is correct");
    let plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
    let mut document = compare(self::scenario(), 2).document;
    let mut note = |flows: u64| {
        document.variants[0].groups[0].flows = flows;
        super::notes::rounds_left_out(&plan, &document, 0)
    };
    // Of 36 rounds in 12 runs 18 are half of them.
    assert_eq!(note(18 * 40), None);
    assert_eq!(
        note(5 * 40).as_deref(),
        Some(
            "pages: 5 of 36 rounds (3 in each run) began in the time that is measured, so its times rest on 5 bursts; \
             a longer `run.duration` has more"
        )
    );
    assert_eq!(super::notes::rounds_left_out(&plan, &document, 1), None);
}

#[test]
fn runs_that_are_too_short_for_transfers_say_which_length_to_try() {
    let plan = Plan::compare(scenario(), &Choice::default()).expect("it resolves");
    let mut document = compare(scenario(), 2).document;
    let warmup_s = plan.described.run.warmup.as_secs_f64();
    document.duration_s = warmup_s + 60.0;
    // A connection without an end is never done.
    document.variants[0].groups[1].censored = document.variants[0].groups[1].flows;
    let mut note = |plan: &Plan, open: u64| {
        let pages = &mut document.variants[0].groups[0];
        (pages.censored, pages.flows) = (open, 120);
        super::notes::too_short(plan, &document)
    };
    // A twentieth may be left.
    assert_eq!(note(&plan, 6), None);
    // A third: the measured minute seven times, and 6 min 45 s are 7 min.
    assert_eq!(
        note(&plan, 40).as_deref(),
        Some(
            "pages: 40 of 120 had not finished when the runs ended, as described: the runs are too short for them, and the answer may \
             change with longer ones; try `run.duration = \"7 min\"` (if the share stays, more is offered than the network carries)"
        )
    );
    // So many transfers and no more: a longer run has as many.
    let text = TEXT.replace(
        "rate = \"20 per second\" }",
        "rate = \"20 per second\" }\ncount = 9",
    );
    assert_ne!(text, TEXT);
    let few = Scenario::parse("test.toml", &text).expect("it is correct");
    let few = Plan::compare(few, &Choice::default()).expect("it resolves");
    assert_eq!(note(&few, 40), None);
}

#[test]
fn one_run_without_transfers_says_how_long_messages_and_datagrams_took() {
    let mut variant = compare(scenario(), 2).document.variants.remove(0);
    let pages = variant.groups[0].clone();
    let waiting = |name: &str, kind: &str| {
        let mut group = pages.clone();
        (group.name, group.kind) = (name.to_owned(), kind.to_owned());
        let mut times = group.fct_s.take().expect("there are transfers");
        (times.mean, times.p50, times.p99) = (0.642, 0.66, 0.842);
        group.delivery_latency_s = Some(times);
        group
    };
    variant.groups = vec![waiting("updates", "cbr"), waiting("moves", "thin")];
    assert_eq!(
        super::groups::answer(&variant),
        "Datagrams of updates took 0.642 s on average to arrive (median 0.660 s, 99th percentile 0.842 s). \
         Messages of moves took 0.642 s on average to arrive (median 0.660 s, 99th percentile 0.842 s)."
    );
    variant.groups.remove(0);
    let all = variant.groups[0]
        .delivery_latency_s
        .as_ref()
        .map_or(0, |times| times.n);
    variant.groups[0].undelivered = 5;
    assert_eq!(
        super::groups::answer(&variant),
        format!(
            "{} of {all} messages of moves arrived; all took at least 0.642 s on average, those that did not arrive counted with their age.",
            all - 5
        )
    );
    variant.groups.truncate(1);
    variant.groups[0].delivery_latency_s = None;
    assert_eq!(
        super::groups::answer(&variant),
        "No transfer of a group that waits was measured."
    );
    // Where nobody waits it is what was carried.
    variant.groups[0].latency_sensitive = false;
    let answer = super::groups::answer(&variant);
    assert!(
        answer.starts_with("No group waits; goodput on average: moves ") && answer.ends_with("bit/s."),
        "{answer}"
    );
    variant.groups.clear();
    let answer = super::groups::answer(&variant);
    assert_eq!(
        answer,
        "No group waits for anything, and no goodput was measured."
    );
}

#[test]
fn a_call_of_which_one_way_carries_no_frame_is_named() {
    let mut document = compare(scenario(), 2).document;
    document.recommended = None;
    document.variants.truncate(2);
    assert_eq!(super::notes::silent_way(&document, 0), None, "no call");
    let times = document.variants[0].groups[0]
        .fct_s
        .clone()
        .expect("there are transfers");
    let arrived = |variant: &mut Variant, way: &str| {
        variant.groups[0].more.insert(way.to_owned(), times.clone());
    };
    for variant in &mut document.variants {
        arrived(variant, "frames_down_s");
    }
    arrived(&mut document.variants[1], "frames_up_s");
    let name = document.variants[0].name.clone();
    assert_eq!(super::notes::silent_way(&document, 0), Some(format!("{name} up")));
}

#[test]
fn the_document_does_not_depend_on_threads_and_reads_back() {
    let one = compare(scenario(), 1);
    let text = one.document.to_file_text();
    assert_eq!(text, compare(scenario(), 2).document.to_file_text());
    let back: Document = serde_json::from_str(&text).expect("it is its own format");
    assert_eq!(back.to_file_text(), text);
    assert!(!text.contains("timing"));
    assert!(one.document.to_json_text().contains("\"timing\""));
}

#[test]
fn the_document_has_exactly_the_documented_fields() {
    let document = serde_json::to_value(compare(scenario(), 1).document).expect("it is JSON");
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().expect("a table").keys().cloned().collect()
    };
    let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    assert_eq!(
        keys(&document),
        words(
            "schema fleetfoot scenario seeds duration_s question answer recommended notes fit interrupted commit queues \
             sensitivity jittered lookup_energy_source variants timing"
        )
    );
    assert_eq!(document["schema"], "1.3");
    let variant = &document["variants"][1];
    assert_eq!(
        keys(variant),
        words(
            "name set runs turn_on instructions groups links nodes headers_per_byte_delivered lookups_per_s lookup_power_w fairness_jain data_packets_delivered bytes_sent_per_byte_delivered versus"
        )
    );
    let group = &variant["groups"][0];
    let counters: Vec<&str> = reported().map(|counter| counter.name).collect();
    assert_eq!(
        keys(group),
        words(&format!(
            "name kind latency_sensitive flows completed censored undelivered fct_s acked_s delivery_latency_s ack_latency_s \
                 goodput_bps by_size {} dropped_units congestion_events more",
            counters.join(" ")
        ))
    );
    assert_eq!(
        keys(&group["fct_s"]),
        words("n mean p50 p90 p95 p99 max ci95 quantiles")
    );
    assert!(group["fct_s"]["quantiles"]["0.999"].is_number());
    assert!(group["delivery_latency_s"].is_null());
    assert_eq!(keys(&group["by_size"][0]), words("from_bytes to_bytes fct_s"));
    assert_eq!(
        keys(&variant["links"][0]),
        words(
            "name direction utilisation queue_delay_s queue_packets drops marks data_units units bytes counters"
        )
    );
    assert_eq!(
        keys(&variant["nodes"][0]),
        words("name host units_received units_sent lookups_per_s lookup_power_w")
    );
    assert_eq!(keys(&variant["links"][0]["drops"]), words("data ack other"));
    let versus = &variant["versus"];
    assert_eq!(
        keys(versus),
        words(
            "baseline rank tier win win_ci95 cost harm pareto worst_p99 worst_tail significant places senders part_of remarks groups"
        )
    );
    assert_eq!(
        keys(&versus["groups"][0]),
        words("name fct_mean_ratio fct_p99_ratio fct_tail_ratio goodput_ratio harm by_size")
    );
    assert_eq!(
        keys(&versus["groups"][0]["by_size"][0]),
        words("from_bytes to_bytes n baseline_n mean_s baseline_mean_s mean_ratio ci95")
    );
    assert_eq!(keys(&versus["worst_tail"]), words("level change ci95"));
    assert_eq!(keys(&versus["groups"][0]["fct_tail_ratio"]), words("level ratio"));
    assert_eq!(
        keys(&versus["groups"][0]["fct_mean_ratio"]),
        words("value ci95 significant")
    );
    assert_eq!(
        keys(&document["timing"]),
        words("cpu_s wall_s events simulated_s")
    );
}

#[test]
fn few_seeds_are_said_to_be_few() {
    let choice = Choice {
        seeds: Some(3),
        ..Choice::default()
    };
    let plan = Plan::compare(scenario(), &choice).expect("it resolves");
    let options = Options::default();
    let batch = execute(
        &plan.jobs(),
        &plan.seeds,
        &options,
        &AtomicBool::new(false),
        &engine,
        &|_| (),
    );
    let comparison = build(&plan, &batch.expect("it runs"), "");
    assert!(
        comparison
            .document
            .notes
            .iter()
            .any(|note| note.starts_with("too few seeds (3)")),
        "{:?}",
        comparison.document.notes
    );
}

#[test]
fn without_variants_every_mechanism_is_tried_or_has_a_reason() {
    let text = TEXT.split("[[variant]]").next().expect("there is a first part");
    let scenario = Scenario::parse("test.toml", text).expect("it is correct");
    let plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
    let entries = crate::mechanisms::ENTRIES.len();
    assert_eq!(plan.variants.len() - 1 + plan.inapplicable.len(), entries);
    assert!(plan.variants.len() > 10, "{}", plan.variants.len());
    let reason = |name: &str| {
        plan.inapplicable
            .iter()
            .find(|entry| entry.name == name)
            .map(|entry| entry.reason.as_str())
    };
    assert_eq!(reason("initial-window-10"), Some("already so in this scenario"));
    assert_eq!(reason("cubic"), Some("already so in this scenario"));
}

#[test]
fn a_single_variant_is_shown_with_its_own_queue() {
    let text = crate::testing::BUSY_LINE.replace("duration = \"20 s\"", "duration = \"4 s\"");
    let comparison = played(&text, "dctcp");
    let bottleneck = comparison.links.iter().find(|link| link.name == "bottleneck");
    let bottleneck = bottleneck.expect("it has a bottleneck");
    assert_eq!(bottleneck.queue, "codel");
    // A seventh of 40 ms, and twice the mean jitter of 0.6 ms, rounded up to microseconds.
    let step = bottleneck
        .parameters
        .iter()
        .find(|parameter| parameter.0 == "ce_threshold");
    assert_eq!(step.map(|step| step.1.as_str()), Some("6.915 ms"));
}

/// The comparison of a plan with a single variant.
fn played(text: &str, variant: &str) -> Comparison {
    let scenario = Scenario::parse("line.toml", text).expect("it is correct");
    let choice = Choice {
        single: Some(String::from(variant)),
        seeds: Some(1),
        ..Choice::default()
    };
    let plan = Plan::single(scenario, &choice)
        .expect("it resolves")
        .expect("there is such a variant");
    let batch = execute(
        &plan.jobs(),
        &plan.seeds,
        &Options::default(),
        &AtomicBool::new(false),
        &simulate,
        &|_| (),
    );
    build(&plan, &batch.expect("it runs"), "")
}

#[test]
fn a_connection_that_waits_for_its_buffer_is_reported() {
    let text = |buffer: &str| {
        format!(
            "title = \"a long line\"\n[network]\nkind = \"dumbbell\"\npairs = 1\naccess = {{ rate = \"1 Gbit/s\", delay = \"0 ms\" }}\n\
             bottleneck = {{ rate = \"50 Mbit/s\", delay = \"50 ms\" }}\n[tcp]\nsend_buffer = \"{buffer}\"\n\
             [[traffic]]\nname = \"copy\"\nkind = \"bulk\"\ncount = 1\n[run]\nduration = \"10 s\"\nwarmup = \"2 s\"\n"
        )
    };
    let notes = |buffer: &str| played(&text(buffer), "as described").document.notes;
    // Twice 50 Mbit/s x 100 ms is 1.25 MB.
    let bound = "copy: a connection sends no more than 125 kB a round trip of 100 ms, which is 10.00 Mbit/s of the line's 50.00 Mbit/s \
                 (`tcp.send_buffer`): it waits for acknowledgments, not for the line. Enough is twice rate x round trip, 1.2 MB: on the senders \
                 `sysctl -w net.ipv4.tcp_wmem=\"4096 16384 1250000\"`";
    let found = notes("125 kB");
    assert!(found.iter().any(|note| note == bound), "{found:?}");
    // Three times what the line carries.
    let found = notes("2 MB");
    assert!(
        !found.iter().any(|note| note.contains("send_buffer")),
        "{found:?}"
    );
}

#[test]
fn an_interrupted_answer_counts_the_seeds_that_finished() {
    for (segments, start) in [(40, "Try better"), (5, "Nothing tried")] {
        let text = TEXT.replace("initial_window\" = 40", "initial_window\" = 5");
        let text = if segments == 5 {
            text.replace("initial_window\" = 20", "initial_window\" = 5")
        } else {
            text
        };
        let scenario = Scenario::parse("test.toml", &text).expect("it is correct");
        let plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let batch = execute(&plan.jobs(), &plan.seeds[..3], &options, &never, &engine, &|_| ());
        let mut batch = batch.expect("it runs");
        let answer = build(&plan, &batch, "").document.answer;
        assert!(
            answer.starts_with(start) && answer.contains("over 3 seeds"),
            "{answer}"
        );
        // Stopped before any variant: that seeds are few says nothing.
        batch.interrupted = true;
        batch.runs.iter_mut().skip(1).for_each(Vec::clear);
        let notes = build(&plan, &batch, "").document.notes;
        assert!(
            notes.iter().all(|note| !note.starts_with("too few seeds")),
            "{notes:?}"
        );
    }
}

#[test]
fn of_a_call_the_times_that_are_compared_are_given_beside_those_of_frames_that_came() {
    let mut group = compare(scenario(), 1)
        .document
        .variants
        .swap_remove(0)
        .groups
        .swap_remove(0);
    group.kind = String::from("video-call");
    let came = group.fct_s.clone().expect("there are times");
    let mut counted = came.clone();
    (counted.mean, counted.p99) = (0.45, 2.5);
    group.more.insert(String::from("until_next_s"), counted);
    let felt = super::words::felt(&group);
    assert_eq!(
        felt.as_deref(),
        Some("with lost frames, which count until the next one came, mean 450 ms, p99 2.50 s")
    );
    group.more.insert(String::from("until_next_s"), came);
    assert_eq!(super::words::felt(&group), None, "nothing was lost");
}

#[test]
fn a_group_that_sends_for_a_part_of_the_time_is_noted() {
    let noted = |stop: &str| {
        let text = TEXT.replace("count = 2\n", &format!("count = 2\n{stop}"));
        let scenario = Scenario::parse("test.toml", &text).expect("it is correct");
        let notes = compare(scenario, 1).document.notes;
        notes
            .into_iter()
            .find(|note| note.starts_with("backup: it sends"))
    };
    assert_eq!(noted(""), None);
    assert_eq!(
        noted("start = \"1 s\"\nstop = \"4 s\"\n").as_deref(),
        Some(
            "backup: it sends for 3.00 s of the 10.0 s that are measured; its rate is over all of that time"
        )
    );
}

#[test]
fn normalised_times_are_multiples_of_the_same_flows_times() {
    let text = TEXT.replace("seeds = 12", "seeds = 12\nloss_free = \"better\"");
    let document = compare(Scenario::parse("test.toml", &text).expect("it is correct"), 2).document;
    let of = |variant: usize| document.variants[variant].groups[0].more.get("normalised_fct");
    // Made up: 1, 0.7 and 0.5 times as long, with two per cent of noise.
    for (variant, expected) in [(0, 1.0 / 0.7), (1, 1.0), (2, 0.5 / 0.7)] {
        let times = of(variant).expect("there are transfers");
        assert_eq!(times.n, 2400);
        assert!(
            (times.mean / expected - 1.0).abs() < 0.001,
            "{variant}: {times:?}"
        );
        assert!(
            (times.max / times.p50 - 1.0).abs() < 0.04,
            "flow by flow: {times:?}"
        );
    }
    let backup = &document.variants[0].groups[1];
    assert!(!backup.more.contains_key("normalised_fct"), "it has no end");
    // A flow that stays open counts with its age, and as larger than all others.
    let text = text.replace("initial_window\" = 40", "initial_window\" = 6");
    let document = compare(Scenario::parse("test.toml", &text).expect("it is correct"), 2).document;
    let times = document.variants[2].groups[0]
        .more
        .get("normalised_fct")
        .expect("there are transfers");
    assert!(times.p50 < 0.5 && times.p99 > 50.0, "{times:?}");
    // Without a variant to divide by there is nothing to report.
    assert!(document.variants[2].versus.is_some());
    let plain = compare(scenario(), 2).document;
    assert!(
        plain
            .variants
            .iter()
            .all(|variant| !variant.groups[0].more.contains_key("normalised_fct"))
    );
    let missing = TEXT.replace("seeds = 12", "loss_free = \"no loss\"");
    let error = Scenario::parse("test.toml", &missing)
        .and_then(|scenario| scenario.resolve(&Setting::none()))
        .expect_err("there is no such variant");
    assert!(
        error.message.contains("no variant called `no loss`"),
        "{}",
        error.message
    );
}

#[test]
fn a_line_that_fades_after_the_measured_time_harms_as_one_of_a_constant_rate() {
    let folder = crate::testing::folder("fade");
    std::fs::create_dir_all(&folder).expect("a folder");
    // 20 Mbit/s for 8 s, then nothing until 60 s: a mean of 2.7 Mbit/s.
    let opportunities = (1..=13_298).map(|number| number * 8000 / 13_298).chain([60_000]);
    let trace: String = opportunities.map(|at| format!("{at}\n")).collect();
    std::fs::write(folder.join("fade.trace"), trace).expect("a trace");
    let of = |rate: &str| {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\npairs = 2\naccess = {{ rate = \"1 Gbit/s\", delay = \"5 ms\", \
             jitter = {{ dist = \"uniform\", min = \"0 ms\", max = \"1 ms\" }} }}\n\
             [network.bottleneck]\nrate = {rate}\nframing = \"4 B\"\ndelay = \"20 ms\"\n\
             queue = {{ kind = \"drop-tail\", limit = \"100 packets\" }}\n\
             [[traffic]]\nname = \"pages\"\nkind = \"transfer\"\nsize = \"20 kB\"\n\
             arrivals = {{ dist = \"poisson\", rate = \"5 per second\" }}\n\
             [[traffic]]\nname = \"update\"\nkind = \"bulk\"\n\
             [[variant]]\nname = \"short\"\nset = {{ \"network.bottleneck.queue.limit\" = \"3 packets\" }}\n\
             [run]\nduration = \"7 s\"\nwarmup = \"2 s\"\ndrain = \"1 s\"\nseeds = 2\n"
        );
        let file = folder.join("line.toml");
        std::fs::write(&file, text).expect("a scenario");
        let scenario = Scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
        let plan = Plan::compare(scenario, &Choice::default()).expect("it resolves");
        let (options, stop) = (Options::default(), AtomicBool::new(false));
        let batch = execute(&plan.jobs(), &plan.seeds, &options, &stop, &simulate, &|_| ());
        let document = build(&plan, &batch.expect("it runs"), "").document;
        let link = document.variants[0]
            .links
            .iter()
            .find(|link| link.name == "bottleneck");
        let versus = document.variants[1].versus.as_ref().expect("it was compared");
        (
            versus.groups[1].harm.expect("it carries something").value,
            versus.cost.expect("it carries something"),
            link.expect("it is there").utilisation,
        )
    };
    let (constant, lost, used) = of("\"20 Mbit/s\"");
    let (trace, lost_of_trace, used_of_trace) = of("{ trace = \"fade.trace\" }");
    let _ = std::fs::remove_dir_all(&folder);
    assert!(lost > 0.3 && constant > 0.3, "{lost} {constant}");
    assert!((lost_of_trace - lost).abs() < 0.1, "{lost_of_trace} {lost}");
    assert!((trace - constant).abs() < 0.1, "{trace} {constant}");
    assert!((used_of_trace - used).abs() < 0.02, "{used_of_trace} {used}");
    assert!((0.9..=1.0).contains(&used_of_trace), "{used_of_trace}");
}

#[test]
fn a_variant_has_the_groups_of_the_file() {
    let text = |set: &str| {
        format!(
            "[network]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\" }}\n[[traffic]]\nname = \"calls\"\nkind = \"transfer\"\n\
             size = \"3 kB\"\narrivals = {{ dist = \"poisson\", rate = \"10 per second\" }}\n[[variant]]\nname = \"other\"\nset = {{ {set} }}\n[run]\nduration = \"1 s\"\nseeds = 2\n"
        )
    };
    let plan = |set: &str| {
        let scenario = Scenario::parse("calls.toml", &text(set)).expect("each is correct alone");
        Plan::compare(scenario, &Choice::default())
    };
    for set in [
        "\"traffic.calls.kind\" = \"bulk\"",
        "\"traffic.calls.name\" = \"queries\"",
    ] {
        let error = plan(set).expect_err("it has nothing to be held against");
        assert!(error.message.contains("has the groups of the file"), "{error}");
        assert_eq!(error.line, 11, "{error}");
    }
    assert!(plan("\"traffic.calls.size\" = \"9 kB\"").is_ok());
}

/// Long flows fill a line whatever the seed, and nothing that ends is measured: seeds differ all the same, by the jitter that the file has.
#[test]
fn seeds_with_jitter_of_the_file_are_not_called_the_same() {
    let text = |jitter: &str| {
        format!(
            "[network]\nkind = \"dumbbell\"\npairs = 2\naccess = {{ rate = \"100 Mbit/s\", delay = \"1 ms\"{jitter} }}\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"5 ms\" }}\n\
             [[traffic]]\nname = \"copies\"\nkind = \"bulk\"\ncount = 2\n[run]\nduration = \"3 s\"\nwarmup = \"1 s\"\nseeds = 2\n"
        )
    };
    let same = |jitter: &str| {
        let scenario = Scenario::parse("copies.toml", &text(jitter)).expect("it is correct");
        let plan = Plan::baseline(scenario, &Choice::default()).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &simulate, &|_| ());
        super::ranking::same_seeds(&batch.expect("it runs").runs[0])
    };
    assert!(same(""));
    assert!(!same(
        ", jitter = { dist = \"uniform\", min = \"0 s\", max = \"1 ms\" }"
    ));
}
