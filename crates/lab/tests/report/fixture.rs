//! A comparison made by hand, with everything that a report can show and names that try to break out of it.

use fleetfoot_core::rng::Rng;
use fleetfoot_core::tcp::Stats;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_lab::result::{
    Comparison, Document, Drops, FlowTrace, Group, GroupInfo, GroupVersus, Inapplicable, Instruction, Link,
    LinkInfo, Node, PairInfo, Ratio, RunData, SCHEMA, SendPoint, SensitivityPoint, SizeClass, SizeVersus,
    StatePoint, Summary, Tail, TailRatio, Variant, VariantData, Versus,
};
use fleetfoot_lab::statistics::{Resamples, Sample, summarize};
use fleetfoot_sim::output::{FlowRecord, GroupOutput, LinkOutput, RunOutput, Tally};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Ends a script element, opens another and closes an attribute, if it is not escaped.
pub(crate) const HOSTILE: &str =
    "</script><script>window.broken=1</script>\"'<img src=x onerror=window.broken=1>&{{ 7*6 }}";

/// Index of the variant that is one place of `fq-codel` only.
pub(crate) const PART: usize = 10;

/// Index of a variant that the table calls not significant, though its interval does not cross zero.
pub(crate) const UNSURE: usize = 5;

/// Names of the variants: the baseline, one that tries to break out, and ordinary ones.
pub(crate) fn variant_names(count: usize) -> Vec<String> {
    let known = [
        "as described",
        "fq-codel",
        HOSTILE,
        "codel",
        "rack",
        "tail-loss-probe",
        "pie",
        "drr",
        "hystart++",
        "prr",
        "early-retransmit",
        "rto-restart",
        "limited-transmit",
        "newreno",
        "dctcp",
        "red",
        "pacing",
        "initial-window-4",
        "frto",
        "slow-start-restart",
    ];
    (0..count)
        .map(|index| {
            known
                .get(index)
                .map_or_else(|| format!("variant {index}"), |name| (*name).to_owned())
        })
        .collect()
}

/// `variants` variants, `seeds` seeds and about `flows` transfers a run.
pub(crate) fn comparison(variants: usize, seeds: u64, flows: usize) -> Comparison {
    let names = variant_names(variants);
    let data = names
        .iter()
        .enumerate()
        .map(|(index, name)| VariantData {
            name: name.clone(),
            runs: (1..=seeds).map(|seed| run(index, seed, flows)).collect(),
            traces: vec![trace(index, 0), trace(index, 7)],
        })
        .collect::<Vec<_>>();
    let resamples = Resamples::new(1, seeds as usize, 400);
    let documents = names
        .iter()
        .enumerate()
        .map(|(index, name)| variant(index, name, &names[0], &data[index], &resamples))
        .collect();
    Comparison {
        document: Document {
            live: None,
            schema: SCHEMA.to_owned(),
            fleetfoot: "0.1.0".to_owned(),
            scenario: format!("A busy home line {HOSTILE}"),
            seeds: (1..=seeds).collect(),
            duration_s: 20.0,
            question: "What would make the short transfers on this network finish sooner, and what would it cost everyone else?".to_owned(),
            lookup_energy_source: fleetfoot_lab::metrics::units::LOOKUP_SOURCE.to_owned(),
            answer: format!("Try fq-codel at the uplink, 10.5 Mbit/s: pages and calls finish on average 41 % sooner, and nobody is harmed. Equal within error: drr. {HOSTILE}"),
            refuted: None,
            as_commanded: None,
            recommended: Some(fleetfoot_lab::result::Recommended {
                variant: "fq-codel".to_owned(),
                equals: vec!["drr".to_owned()],
                places: vec!["the uplink, 10 Mbit/s".to_owned()],
                matters: Some("the uplink, 10 Mbit/s".to_owned()),
                seeds,
                undecided: 0,
                open: Vec::new(),
                tier: 1,
            }),
            notes: vec![
                "The fit of this scenario to the recording it was made of is poor (worst: exchanges, 172 % apart).".to_owned(),
                "too few seeds (4): with 10 or more the intervals can be trusted".to_owned(),
                "pages: flows that did not complete: codel 3 of 9".to_owned(),
                format!("the fourth note {HOSTILE}"),
                "the fifth note".to_owned(),
            ],
            fit: Some(fleetfoot_lab::scenario::ReplayFit {
                verdict: fleetfoot_lab::scenario::Verdict::Fair,
                measure: Some("waits in the queue".to_owned()),
                difference: Some(0.21),
                reasons: vec!["waits in the queue differ by 21 %".to_owned()],
                advice: vec!["Capture both directions.".to_owned()],
                controllers: vec![fleetfoot_lab::scenario::ControllerFit {
                    name: "cubic".to_owned(),
                    difference: 0.08,
                }],
                changed: false,
            }),
            interrupted: false,
            commit: "0123456789ab".to_owned(),
            queues: vec![fleetfoot_lab::result::Standing {
                place: "the uplink, 10 Mbit/s".to_owned(),
                link: "bottleneck".to_owned(),
                direction: "reverse".to_owned(),
                queue: "drop-tail".to_owned(),
                utilisation: 0.99,
                wait_mean_s: 0.25,
                wait_p99_s: 0.3,
                drop_share: 0.004,
                stands: true,
            }],
            sensitivity: vec![
                SensitivityPoint {
                    first_tier: Vec::new(),
                    wins: Vec::new(),
                    harmless: Vec::new(),
                    places: Vec::new(),
                    change: "bottleneck rate x 0.5".to_owned(),
                    best: "fq-codel".to_owned(),
                    best_win: Some(0.38),
                    described_best_win: Some(0.38),
                    holds: true,
                },
                SensitivityPoint {
                    first_tier: Vec::new(),
                    wins: Vec::new(),
                    harmless: Vec::new(),
                    places: Vec::new(),
                    change: "load x 2".to_owned(),
                    best: "pie".to_owned(),
                    best_win: Some(0.44),
                    described_best_win: Some(0.27),
                    holds: false,
                },
            ],
            jittered: Some(fleetfoot_lab::result::Jittered {
                set: "network.access.jitter = { dist = \"uniform\", min = \"0 s\", max = \"1.2 ms\" }".to_owned(),
                recommended: Some("fq-codel".to_owned()),
                equals: vec!["drr".to_owned()],
                holds: true,
                open_with_seeds: None,
                possible: vec!["fq-codel".to_owned(), "drr".to_owned()],
                wins: vec!["fq-codel".to_owned(), "drr".to_owned()],
            }),
            variants: documents,
            timing: None,
        },
        hash: "0f3a9c51d2".to_owned(),
        scenario_toml: format!("title = '''{HOSTILE}'''\n[network]\nkind = \"dumbbell\"\n"),
        command: "fleetfoot compare examples/home-line.toml --seeds 10".to_owned(),
        groups: vec![
            GroupInfo { name: "pages".to_owned(), kind: "transfer".to_owned(), latency_sensitive: true },
            GroupInfo { name: "calls".to_owned(), kind: "request-response".to_owned(), latency_sensitive: true },
            GroupInfo { name: "backup".to_owned(), kind: "bulk".to_owned(), latency_sensitive: false },
        ],
        links: ["forward", "reverse"]
            .map(|direction| LinkInfo {
                name: "bottleneck".to_owned(),
                direction: direction.to_owned(),
                rate: "10 Mbit/s".to_owned(),
                delay_s: 0.018,
                queue: "drop-tail".to_owned(),
                parameters: vec![("limit".to_owned(), "50 packets".to_owned())],
            })
            .to_vec(),
        bottleneck: vec!["bottleneck".to_owned()],
        pairs: vec![PairInfo { from: "left-0".to_owned(), to: "right-0".to_owned(), base_rtt_s: 0.0441 }],
        warmup_s: 2.0,
        duration_s: 20.0,
        variants: data,
        inapplicable: vec![Inapplicable { name: "dctcp".to_owned(), reason: format!("no queue marks {HOSTILE}") }],
    }
}

fn factor(index: usize) -> f64 {
    if index == 0 {
        1.0
    } else {
        0.55 + 0.04 * index as f64
    }
}

fn run(index: usize, seed: u64, flows: usize) -> RunData {
    let mut rng = Rng::from_seed(seed);
    let mut records = |count: usize, mean_bytes: f64, open: bool| {
        (0..count)
            .map(|number| {
                let bytes = (mean_bytes * (0.05 - rng.uniform().ln())) as u64 + 400;
                let start = Instant::from_millis(2_000 + (number * 18_000 / count) as u64);
                let time =
                    (0.09 + bytes as f64 * 8.0 / 4e6) * factor(index) * (0.6 + 1.8 * rng.uniform().powi(3));
                let lost = rng.uniform() < 0.004;
                let end = Some(start + Duration::from_secs_f64(time)).filter(|_| !open && !lost);
                FlowRecord {
                    pair: (number % 3) as u32,
                    bytes: Bytes(bytes),
                    start,
                    completed: end,
                    acked: end.map(|end| end + Duration::from_millis(22)),
                    received: Bytes(bytes),
                    min_rtt: Some(Duration::from_millis(44)),
                    ack_latency_sum: 0.5,
                    tally: Tally::from(Stats {
                        segments_sent: bytes / 1448 + 1,
                        bytes_sent: bytes,
                        retransmits: u32::from(number % 9 == 0),
                        timeouts: u32::from(number % 40 == 0),
                        ack_latency_count: 10,
                        ..Stats::default()
                    }),
                    ..FlowRecord::default()
                }
            })
            .collect::<Vec<_>>()
    };
    let groups = vec![
        GroupOutput {
            flows: records(flows, 40e3, false),
            goodput_bytes: Bytes(3_000_000),
            ..GroupOutput::default()
        },
        GroupOutput {
            flows: records(flows / 3 + 1, 2e3, false),
            delivery_latency: vec![0.04, 0.05, 0.07],
            goodput_bytes: Bytes(90_000),
            ..GroupOutput::default()
        },
        GroupOutput {
            flows: records(2, 9e6, true),
            goodput_bytes: Bytes(17_000_000),
            goodput_bytes_per_connection: vec![Bytes(9_000_000), Bytes(8_000_000)],
            ..GroupOutput::default()
        },
    ];
    let link = |packets: u64| LinkOutput {
        busy: Duration::from_secs_f64(17.4),
        packets,
        data_packets: packets - 20,
        bytes: Bytes(packets * 1400),
        drops: vec![[31, 2, 0], [4, 0, 1], [0; 3], [5, 1, 0], [0; 3], [0; 3], [0; 3]],
        events: vec![3],
        ..LinkOutput::default()
    };
    RunData {
        seed,
        output: Arc::new(RunOutput {
            groups,
            links: vec![link(14_000), link(9_000)],
            events: 1_000,
            ended: Instant::from_millis(24_000),
            interrupted: false,
        }),
    }
}

fn variant(index: usize, name: &str, baseline: &str, data: &VariantData, resamples: &Resamples) -> Variant {
    let group = |position: usize, name: &str, kind: &str, sensitive: bool| {
        let samples = |lower: u64, upper: u64| {
            data.runs
                .iter()
                .map(|run| {
                    let mut sample = Sample::default();
                    for flow in &run.output.groups[position].flows {
                        if (lower..upper).contains(&flow.bytes.get()) {
                            match flow.completed {
                                Some(end) => sample.completed.push(end.since(flow.start).as_secs_f64()),
                                None => sample
                                    .censored
                                    .push(run.output.ended.since(flow.start).as_secs_f64()),
                            }
                        }
                    }
                    sample
                })
                .collect::<Vec<_>>()
        };
        let flows = data
            .runs
            .iter()
            .flat_map(|run| &run.output.groups[position].flows);
        let completed = flows.clone().filter(|flow| flow.completed.is_some()).count() as u64;
        let fct_s = if sensitive {
            summarize(&samples(0, u64::MAX), resamples)
        } else {
            None
        };
        let flows = flows.count() as u64;
        Group {
            name: name.to_owned(),
            kind: kind.to_owned(),
            latency_sensitive: sensitive,
            flows,
            completed,
            censored: if sensitive { flows - completed } else { 0 },
            undelivered: 0,
            acked_s: fct_s.clone(),
            delivery_latency_s: fct_s.clone().filter(|_| position == 1),
            ack_latency_s: fct_s.clone(),
            goodput_bps: Some(flat(4.1e6)),
            by_size: if sensitive {
                [(0, 10_000), (10_000, 100_000), (100_000, 1_000_000)]
                    .map(|(from_bytes, to_bytes)| SizeClass {
                        from_bytes,
                        to_bytes,
                        fct_s: summarize(&samples(from_bytes, to_bytes), resamples),
                    })
                    .to_vec()
            } else {
                Vec::new()
            },
            fct_s,
            counters: serde_json::from_value(serde_json::json!({
                "retransmits": 40, "timeouts": 5, "spurious_timeouts": 1, "probes": 9, "spurious_probes": 2,
                "redundant_bytes": 5_792,
            }))
            .expect("the reported counters"),
            dropped_units: 12,
            congestion_events: Some(3),
            more: BTreeMap::from([("answer_s".to_owned(), flat(0.2))]),
        }
    };
    let link = |direction: &str| {
        let mut delay = flat(0.031 * factor(index));
        delay.p95 *= 1.7;
        delay.p99 *= 2.1;
        delay.max *= 2.4;
        Link {
            name: "bottleneck".to_owned(),
            direction: direction.to_owned(),
            utilisation: 0.99 - 0.011 * index as f64,
            queue_delay_s: Some(delay),
            queue_packets: Some(flat(21.0)),
            drops: Drops {
                data: 350,
                ack: 20,
                other: 10,
            },
            marks: 30,
            data_units: 139_800,
            units: 139_900,
            bytes: 209_000_000,
            counters: BTreeMap::from([("drop_full".to_owned(), 330)]),
        }
    };
    let ratio = |value: f64, width: f64| {
        Some(Ratio {
            value,
            ci95: Some([value - width, value + width]),
            significant: (value - 1.0).abs() > width,
        })
    };
    let by_size = |name: &str| {
        let classes = [(0, 10_000), (10_000, 100_000), (100_000, 1_000_000)];
        let classes = classes.iter().filter(|_| name != "backup");
        classes
            .map(|&(from_bytes, to_bytes)| SizeVersus {
                from_bytes,
                to_bytes,
                n: 40,
                baseline_n: 40,
                mean_s: 0.2 * factor(index),
                baseline_mean_s: 0.2,
                mean_ratio: factor(index),
                ci95: Some([factor(index) - 0.1, factor(index) + 0.1]),
            })
            .collect()
    };
    let versus = (index > 0).then(|| Versus {
        baseline: baseline.to_owned(),
        rank: index as u64,
        // Equal to the first is one that stands further down; some are no significant win.
        tier: match index {
            1 | 7 => Some(1),
            2..=4 => Some(2),
            _ => None,
        },
        win: Some(1.0 - factor(index)),
        win_ci95: Some([0.93 - factor(index), 1.07 - factor(index)]),
        harm: ratio(0.01 * (index % 7) as f64, 0.01),
        pareto: [1, 5, PART].contains(&index),
        places: vec!["the uplink, 10 Mbit/s".to_owned()],
        senders: None,
        part_of: (index == PART).then(|| "fq-codel".to_owned()),
        remarks: if index == 9 {
            vec![format!(
                "never acted: its runs are those of the network as described {HOSTILE}"
            )]
        } else {
            Vec::new()
        },
        cost: Some(0.012 * (index % 7) as f64 - 0.01),
        worst_p99: Some(0.02 * index as f64 - 0.05),
        worst_tail: Some(Tail {
            level: 0.95,
            change: 0.02 * index as f64 - 0.05,
            ci95: None,
        }),
        significant: (factor(index) - 1.0).abs() > 0.07 && index != UNSURE,
        groups: ["pages", "calls", "backup"]
            .map(|name| GroupVersus {
                name: name.to_owned(),
                fct_mean_ratio: ratio(factor(index), 0.07).filter(|_| name != "backup"),
                fct_p99_ratio: ratio(factor(index) + 0.05, 0.15).filter(|_| name != "backup"),
                fct_tail_ratio: ratio(factor(index) + 0.05, 0.15)
                    .filter(|_| name != "backup")
                    .map(|ratio| TailRatio { level: 0.95, ratio }),
                goodput_ratio: ratio(1.0 - 0.01 * (index % 7) as f64, 0.02),
                harm: ratio(0.01 * (index % 7) as f64, 0.01),
                by_size: by_size(name),
            })
            .to_vec(),
    });
    let set = serde_json::json!({ "network.bottleneck.queue.kind": name });
    Variant {
        live: None,
        name: name.to_owned(),
        set: if index == 0 {
            serde_json::Map::new()
        } else {
            set.as_object().cloned().unwrap_or_default()
        },
        runs: data.runs.len() as u64,
        turn_on: (index % 3 != 2)
            .then(|| "tc qdisc replace dev eth0 root fq_codel (Linux 3.5 and later)".to_owned()),
        instructions: (index > 0)
            .then(|| Instruction {
                nearest: None,
                margin: None,
                place: "the uplink, 10 Mbit/s".to_owned(),
                device: "your router, in front of the cable modem".to_owned(),
                commands: vec![
                    "WAN=eth0; tc qdisc replace dev $WAN root cake bandwidth 9500kbit docsis".to_owned(),
                ],
                why: "Packets wait in the cable modem.".to_owned(),
                needs: "Linux 4.19 or later.".to_owned(),
                check: Some(
                    "Run: ping -c 60 ADDRESS. Average before: about 290 ms; afterwards: at most about 52 ms."
                        .to_owned(),
                ),
            })
            .into_iter()
            .collect(),
        groups: vec![
            group(0, "pages", "transfer", true),
            group(1, "calls", "request-response", true),
            group(2, "backup", "bulk", false),
        ],
        links: vec![link("forward"), link("reverse")],
        nodes: vec![Node {
            name: "router-0".into(),
            host: false,
            units_received: 279_000,
            units_sent: 278_000,
            lookups_per_s: Some(4_650.0),
            lookup_power_w: Some(0.000_465),
        }],
        headers_per_byte_delivered: Some(0.001_4),
        lookups_per_s: 9_300.0,
        lookup_power_w: 0.000_93,
        fairness_jain: Some(0.98),
        data_packets_delivered: 139_800,
        bytes_sent_per_byte_delivered: Some(1.013),
        versus,
    }
}

fn flat(value: f64) -> Summary {
    Summary {
        n: 1000,
        mean: value,
        p50: value * 0.9,
        p90: value * 1.3,
        p95: value * 1.4,
        p99: value * 1.6,
        max: value * 2.0,
        ci95: Some([value * 0.95, value * 1.05]),
        quantiles: BTreeMap::from([("0.999".to_owned(), value * 1.8)]),
    }
}

fn trace(index: usize, number: u64) -> FlowTrace {
    let rtt = 0.05 * factor(index);
    let mut trace = FlowTrace {
        group: "pages".to_owned(),
        number,
        ..FlowTrace::default()
    };
    let (mut time, mut cwnd, mut sent, mut threshold) = (2.0 + number as f64, 14_480.0, 0_u64, None);
    while sent < 3_000_000 {
        let segments = (cwnd / 1448.0) as u64;
        for segment in 0..segments {
            let t_s = time + rtt * segment as f64 / segments as f64;
            trace.on_send(SendPoint {
                t_s,
                from_byte: sent,
                bytes: 1448,
                retransmission: false,
            });
            sent += 1448;
            trace.on_state(StatePoint {
                t_s: t_s + rtt,
                cwnd_bytes: cwnd as u64,
                ssthresh_bytes: threshold,
                srtt_s: Some(rtt),
                pipe_bytes: (cwnd * 0.9) as u64,
                acked_bytes: sent,
                state: "open",
            });
        }
        time += rtt;
        if cwnd > 90_000.0 + 4_000.0 * index as f64 {
            trace.on_send(SendPoint {
                t_s: time,
                from_byte: sent - 1448,
                bytes: 1448,
                retransmission: true,
            });
            cwnd /= 2.0;
            threshold = Some(cwnd as u64);
        } else {
            cwnd = if threshold.is_some() {
                cwnd + 1448.0
            } else {
                cwnd * 2.0
            };
        }
    }
    trace
}
