use super::*;
use crate::flow::{FlowKey, HostId};
use crate::packet::{BufId, Flags, Segment};
use crate::parameter::{Value, Values};
use crate::queue::{DropTail, Limit};
use crate::rng::{Distribution, Probability};
use crate::seq::SeqNumber;
use proptest::prelude::*;

fn packet(flow: u32, seq: u32, len: u32) -> Packet {
    Packet {
        enqueued_at: Instant::ZERO,
        flow: FlowId(flow),
        buf: BufId::NONE,
        segment: Segment {
            seq: SeqNumber(seq),
            payload: len.saturating_sub(40),
            overhead: len.min(40) as u8,
            flags: Flags::ACK,
            tos: 2,
            ..Segment::default()
        },
    }
}

fn drop_tail(limit: Limit) -> DropTail {
    let mut values = Values::defaults(DropTail::PARAMETERS);
    values.set("limit", Value::Limit(limit)).expect("a limit");
    DropTail::new(
        &values,
        &LinkContext {
            mtu: 1500,
            rate: Rate(1),
            framing: 0,
            delay: Duration::ZERO,
            seed: 1,
        },
    )
}

fn link(config: &LinkConfig) -> Link<DropTail> {
    Link::new(drop_tail(Limit::Unlimited), config, 1, "test")
}

/// Delivers everything; times are those at which the link asked to be called.
fn drain<Q: QueueDiscipline>(link: &mut Link<Q>) -> Vec<(u64, Packet)> {
    let flows = FlowTable::new();
    let mut out = Vec::new();
    while let Some(at) = link.poll_timeout() {
        while let Some(packet) = link.poll_delivery(at, &flows, &mut ()) {
            out.push((at.as_nanos(), packet));
        }
        assert!(
            link.poll_timeout().is_none_or(|next| next > at),
            "a drain leaves a later deadline"
        );
    }
    out
}

fn send<Q: QueueDiscipline>(link: &mut Link<Q>, at: u64, packets: impl IntoIterator<Item = Packet>) {
    let flows = FlowTable::new();
    for packet in packets {
        link.on_packet(Instant::from_nanos(at), packet, &flows, &mut ());
    }
}

#[test]
fn a_packet_arrives_after_serialisation_and_propagation() {
    let mut link = link(&LinkConfig::new(Rate(1_000_000), Duration::from_millis(10)));
    assert_eq!(link.poll_timeout(), None);
    send(&mut link, 5, [packet(0, 0, 1500), packet(0, 1, 500)]);
    let times: Vec<u64> = drain(&mut link).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [5 + 12_000_000 + 10_000_000, 5 + 16_000_000 + 10_000_000]);
    assert_eq!(link.poll_timeout(), None, "an idle link needs no deadline");
    assert_eq!(link.statistics().busy, Duration::from_millis(16));
}

#[test]
fn a_link_taken_apart_has_everything_that_was_on_its_way() {
    let mut link = link(&LinkConfig::new(Rate(1_000_000), Duration::from_millis(10)));
    send(&mut link, 0, (0..5).map(|seq| packet(0, seq, 1500)));
    // Twelve milliseconds each: two were sent by then, the third is being sent.
    link.on_timeout(Instant::from_millis(25), &FlowTable::new(), &mut ());
    let arrived = link.poll_delivery(Instant::from_millis(25), &FlowTable::new(), &mut ());
    assert_eq!(arrived.map(|packet| packet.segment.seq), Some(SeqNumber(0)));
    let (under_way, queue) = link.into_parts();
    let seqs: Vec<u32> = under_way.iter().map(|packet| packet.segment.seq.0).collect();
    assert_eq!((seqs, queue.backlog().packets), (alloc::vec![1, 2], 2));
}

#[test]
fn the_long_run_rate_is_exact() {
    // 1500 bytes at 7 Mb/s take 1714285.714... ns: after 7 packets exactly 12 ms have passed, and again and again.
    let mut link = link(&LinkConfig::new(Rate(7_000_000), Duration::ZERO));
    send(&mut link, 0, (0..7_000).map(|i| packet(0, i, 1500)));
    let arrivals = drain(&mut link);
    for (i, (at, _)) in arrivals.iter().enumerate() {
        assert_eq!(*at, (i as u64 + 1) * 12_000_000_000 / 7_000);
    }
    assert_eq!(arrivals.len(), 7_000);
}

#[test]
fn late_calls_lose_nothing() {
    let mut link = link(&LinkConfig::new(Rate(8_000_000), Duration::from_nanos(7)));
    send(&mut link, 0, (0..10).map(|i| packet(0, i, 1000)));
    // Nobody calls for 5 ms, in which five packets were sent.
    let flows = FlowTable::new();
    let now = Instant::from_nanos(5_000_007);
    let mut delivered = 0;
    while link.poll_delivery(now, &flows, &mut ()).is_some() {
        delivered += 1;
    }
    assert_eq!(delivered, 5);
    assert_eq!(link.poll_timeout(), Some(Instant::from_nanos(6_000_007)));
}

/// The order in which flows' packets leave a link where `(microseconds, flow, bytes)` arrive.
fn order(name: &str, set: &[(&str, Value)], rate: LinkRate, arrivals: &[(u64, u32, u32)]) -> Vec<u32> {
    let config = LinkConfig {
        rate,
        ..LinkConfig::new(Rate(1), Duration::ZERO)
    };
    let entry = AnyQueue::entry(name).expect("an entry of the registry");
    let mut values = Values::defaults(entry.parameters);
    for (key, value) in set {
        values.set(key, *value).expect("a parameter and its value");
    }
    let queue = AnyQueue::build(name, &values, &config.link_context(3)).expect("an entry of the registry");
    let (mut link, flows, mut left) = (Link::new(queue, &config, 1, "test"), table(), Vec::new());
    for &(us, flow, len) in arrivals {
        link.on_packet(Instant::from_micros(us), packet(flow, 0, len), &flows, &mut ());
    }
    while let Some(at) = link.poll_timeout() {
        while let Some(packet) = link.poll_delivery(at, &flows, &mut ()) {
            left.push(packet.flow.0);
        }
    }
    left
}

/// Who sent a packet a second ago and found the line idle since is new, as in Linux and ns-3, whose devices ask until there is
/// nothing. CAKE in Linux looks at no list while nothing waits: who has spent its deficit goes among the old queues when the next one comes.
#[test]
fn lists_of_queues_end_when_the_line_falls_idle() {
    let second = 1_000_000;
    let arrivals = |first| {
        [
            (second, 0, first),
            (2 * second, 1, 1500),
            (2 * second + 500, 0, 100),
            (2 * second + 500, 2, 1500),
            (2 * second + 500, 3, 1500),
        ]
    };
    for (name, first, expected) in [
        ("fq-codel", 100, [0, 1, 0, 2, 3]),
        ("fq-pie", 100, [0, 1, 0, 2, 3]),
        ("cake", 100, [0, 1, 0, 2, 3]),
        ("fq-codel", 1500, [0, 1, 0, 2, 3]),
        ("cake", 1500, [0, 1, 2, 3, 0]),
    ] {
        let rate = LinkRate::Constant(Rate(1_000_000));
        assert_eq!(
            order(name, &[], rate, &arrivals(first)),
            expected,
            "{name}, {first} B"
        );
    }
}

/// One packet each 30 ms. What flow 0 sent left at the first opportunity, long before flow 1 came.
#[test]
fn a_flow_is_in_service_no_longer_when_the_line_is_idle() {
    let rate = LinkRate::Trace {
        opportunities: alloc::vec![Duration::ZERO].into(),
        period: Duration::from_millis(30),
    };
    let arrivals = [
        (1_000, 0, 1500),
        (41_000, 1, 1500),
        (41_000, 1, 1500),
        (41_000, 0, 1500),
    ];
    let set = [("count_in_service", Value::Flag(true))];
    assert_eq!(order("favourtail", &set, rate.clone(), &arrivals), [0, 1, 0, 1]);

    // The same while packets wait for the next opportunity: two left at 60 ms, flow 2's the last; at 70 ms it is present no more.
    let arrivals = [
        (41_000, 1, 752),
        (41_000, 2, 752),
        (41_000, 1, 1500),
        (70_000, 2, 100),
    ];
    assert_eq!(order("favourtail", &set, rate, &arrivals), [1, 2, 2, 1]);
}

/// Everything a link does, with the time at which it happens.
#[derive(Default)]
struct Recorder(Vec<(u64, &'static str, u32, u64)>);

impl LinkObserver for Recorder {
    fn on_arrival(&mut self, now: Instant, packet: &Packet, waiting: Backlog) {
        let waiting = u64::from(waiting.packets);
        self.0
            .push((now.as_nanos(), "arrival", packet.segment.seq.0, waiting));
    }
    fn on_departure(&mut self, now: Instant, packet: &Packet, waited: Duration) {
        self.0.push((
            now.as_nanos(),
            "departure",
            packet.segment.seq.0,
            waited.as_nanos(),
        ));
    }
    fn on_drop(&mut self, now: Instant, packet: &Packet, reason: DropReason) {
        self.0
            .push((now.as_nanos(), reason.name(), packet.segment.seq.0, 0));
    }
    fn on_event(&mut self, now: Instant, event: QueueEvent) {
        self.0.push((now.as_nanos(), event.kind.name(), event.flow.0, 0));
    }
}

/// Runs arrivals through a link; `plain` runs every departure as an event of its own, as late as the order of events
/// (departures, then arrivals) allows. Returns what was recorded, the deliveries and the counters.
#[expect(clippy::type_complexity, reason = "a test's record of a run")]
fn run(
    name: &str,
    config: &LinkConfig,
    arrivals: &[(u64, Packet)],
    plain: bool,
) -> (
    Vec<(u64, &'static str, u32, u64)>,
    Vec<(u64, u32, u16)>,
    LinkStatistics,
) {
    let entry = AnyQueue::entry(name).expect("an entry of the registry");
    let mut values = Values::defaults(entry.parameters);
    values
        .set("limit", Value::Limit(Limit::Packets(30)))
        .expect("every discipline has a limit");
    let queue = AnyQueue::build(name, &values, &config.link_context(3)).expect("an entry of the registry");
    let mut link = Link::new(queue, config, 11, "bottleneck");
    let flows = table();
    for flow in 0..4 {
        let origin = SeqNumber(0);
        link.on_stream_end(
            FlowId(flow),
            StreamEnd {
                origin,
                end: 400,
                segment: 1,
            },
        );
    }
    let mut recorder = Recorder::default();
    let mut deliveries = Vec::new();
    let mut arrivals = arrivals.iter().peekable();
    loop {
        let arrival = arrivals.peek().map(|(at, _)| *at);
        let delivery = link.poll_timeout().map(Instant::as_nanos);
        let departure = link.next_departure().map(Instant::as_nanos).filter(|_| plain);
        let Some(at) = [arrival, delivery, departure].into_iter().flatten().min() else {
            break;
        };
        let now = Instant::from_nanos(at);
        if departure == Some(at) {
            link.on_timeout(now, &flows, &mut recorder);
        } else if arrival == Some(at) {
            let (_, packet) = arrivals.next().expect("it was peeked at");
            link.on_packet(now, *packet, &flows, &mut recorder);
        } else {
            while let Some(packet) = link.poll_delivery(now, &flows, &mut recorder) {
                deliveries.push((at, packet.segment.seq.0, packet.segment.flags.0));
            }
            assert!(
                link.poll_timeout().is_none_or(|next| next > now),
                "after a drain the deadline is later"
            );
        }
    }
    assert_eq!((link.in_flight(), link.backlog().packets), (0, 0));
    (recorder.0, deliveries, *link.statistics())
}

fn table() -> FlowTable {
    let mut table = FlowTable::new();
    for i in 0..4 {
        table.push(FlowKey {
            source: HostId(i),
            destination: HostId(9),
            source_port: 1000 + i as u16,
            destination_port: 80,
            protocol: 6,
        });
    }
    table
}

fn rate() -> impl Strategy<Value = LinkRate> {
    prop_oneof![
        2 => (100_000_u64..100_000_000).prop_map(|bps| LinkRate::Constant(Rate(bps))),
        1 => Just(LinkRate::Constant(Rate::UNLIMITED)),
        1 => prop::collection::vec(0_u64..30, 1..40).prop_map(|mut milliseconds| {
            milliseconds.sort_unstable();
            LinkRate::Trace {
                opportunities: milliseconds.into_iter().map(Duration::from_millis).collect(),
                period: Duration::from_millis(30),
            }
        }),
    ]
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let p = || (0.0_f64..0.3).prop_map(Probability::from_f64);
    let loss = prop_oneof![
        Just(Loss::None),
        p().prop_map(Loss::Random),
        (p(), p(), p(), p()).prop_map(|(enter, leave, good, bad)| Loss::Burst {
            enter,
            leave,
            good,
            bad
        }),
        prop::collection::btree_set(0_u32..60, 0..8).prop_map(|set| Loss::Script(set.into_iter().collect())),
        (0_u32..40).prop_map(Loss::Tail),
    ];
    let jitter = prop::option::of((0.0_f64..0.01).prop_map(|mean| Distribution::Exponential { mean }));
    let reorder = prop::option::of((p(), (1_u64..20_000_000).prop_map(Duration::from_nanos)));
    let some = (loss, any::<bool>(), jitter, reorder, p(), 0.0_f64..1e-4).prop_map(
        |(loss, loss_data_only, jitter, reorder, duplicate, bit_error_rate)| Impairments {
            loss,
            loss_data_only,
            jitter,
            reorder,
            duplicate,
            bit_error_rate,
            arq: None,
        },
    );
    prop_oneof![1 => Just(Impairments::default()), 2 => some]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn lazy_departures_equal_departures_as_events(
        rate in rate(),
        delay_us in prop_oneof![Just(0_u64), 1_u64..50_000],
        processing_us in prop_oneof![Just(0_u64), 1_u64..500],
        framing in 0_u32..40,
        impairments in impairments(),
        steps in prop::collection::vec(
            (prop_oneof![3 => Just(0_u64), 4 => 0_u64..1_000, 2 => 0_u64..40_000], 0_u32..4, 40_u32..1600),
            1..400,
        ),
    ) {
        let mut at = 0;
        let arrivals: Vec<(u64, Packet)> = steps.into_iter().enumerate().map(|(number, (step, flow, len))| {
            at += step * 1_000;
            (at, packet(flow, number as u32, len))
        }).collect();
        let config = LinkConfig {
            rate,
            delay: Duration::from_micros(delay_us),
            mtu: 1500,
            framing,
            processing: Duration::from_micros(processing_us),
            overlap: processing_us % 2 == 1,
            impairments,
        };
        for entry in AnyQueue::ENTRIES {
            let plain = run(entry.name, &config, &arrivals, true);
            let lazy = run(entry.name, &config, &arrivals, false);
            prop_assert_eq!(&plain, &lazy, "{}", entry.name);
            // Nothing is lost or made without being counted.
            let (_, deliveries, statistics) = lazy;
            let duplicates = {
                let mut numbers: Vec<u32> = deliveries.iter().map(|delivery| delivery.1).collect();
                numbers.sort_unstable();
                numbers.windows(2).filter(|pair| pair[0] == pair[1]).count()
            };
            let delivered = deliveries.len() - duplicates;
            prop_assert_eq!(delivered as u64 + statistics.dropped(), arrivals.len() as u64);
        }
    }
}

#[test]
fn processing_and_sending_overlap_as_two_stages_do() {
    // 12 Mbit/s: 1500 B take 1 ms, 150 B 0.1 ms. A unit is processed for 0.4 ms while the one before is sent; none waits
    // between the two.
    let config = LinkConfig {
        processing: Duration::from_micros(400),
        overlap: true,
        ..LinkConfig::new(Rate(12_000_000), Duration::from_millis(1))
    };
    let arrivals = |lens: &[u32]| -> Vec<u64> {
        let mut link: Link<DropTail> = link(&config);
        send(&mut link, 0, (0..).zip(lens).map(|(i, &len)| packet(0, i, len)));
        let out = drain(&mut link);
        out.iter().map(|(at, _)| at / 1_000 - 1_000).collect()
    };
    // Sending is the longer: out at 0.4 + 1, then one each millisecond.
    assert_eq!(arrivals(&[1500, 1500, 1500]), [1_400, 2_400, 3_400]);
    // Processing is the longer: out at 0.4 + 0.1, then one each 0.4 ms.
    assert_eq!(arrivals(&[150, 150, 150]), [500, 900, 1_300]);
    // Mixed: 0.5; processed at 0.8, out at 1.8; processed meanwhile, out at 1.9; processed from 1.8 to 2.2, out at 2.3; 2.6
    // and 3.6.
    assert_eq!(
        arrivals(&[150, 1500, 150, 150, 1500]),
        [500, 1_800, 1_900, 2_300, 3_600]
    );
    // A unit alone is processed and sent.
    assert_eq!(arrivals(&[150]), [500]);
}

fn impaired(impairments: Impairments) -> Link<DropTail> {
    link(&LinkConfig {
        impairments,
        ..LinkConfig::new(Rate(12_000_000), Duration::from_millis(1))
    })
}

#[test]
fn random_loss_takes_its_share() {
    let mut link = impaired(Impairments {
        loss: Loss::Random(Probability::from_f64(0.1)),
        ..Impairments::default()
    });
    send(&mut link, 0, (0..100_000).map(|i| packet(0, i, 1500)));
    drain(&mut link);
    let lost = link.statistics().dropped_for(DropReason::RandomLoss) as f64;
    // Four deviations of a binomial draw: 4 * sqrt(100000 * 0.1 * 0.9).
    assert!((lost - 10_000.0).abs() < 380.0, "{lost}");
}

#[test]
fn burst_loss_has_the_mean_and_the_run_length_of_the_chain() {
    let mut link = impaired(Impairments {
        loss: Loss::Burst {
            enter: Probability::from_f64(0.01),
            leave: Probability::from_f64(0.25),
            good: Probability::ZERO,
            bad: Probability::ONE,
        },
        ..Impairments::default()
    });
    send(&mut link, 0, (0..200_000).map(|i| packet(0, i, 1500)));
    let arrived: Vec<u32> = drain(&mut link).iter().map(|(_, p)| p.segment.seq.0).collect();
    let lost = 200_000 - arrived.len();
    let bursts = arrived.windows(2).filter(|pair| pair[1] > pair[0] + 1).count();
    // Stationary share of the bad state: 0.01 / 0.26; mean stay 1 / 0.25 packets.
    assert!((lost as f64 / 200_000.0 - 0.01 / 0.26).abs() < 0.003, "{lost}");
    assert!(
        (lost as f64 / bursts as f64 - 4.0).abs() < 0.25,
        "{lost} in {bursts} bursts"
    );
}

#[test]
fn scripted_loss_takes_the_named_packets_of_each_flow() {
    let mut link = impaired(Impairments {
        loss: Loss::Script([1, 3].into()),
        loss_data_only: true,
        ..Impairments::default()
    });
    let packets = [
        (0, 0, 1500),
        (1, 10, 1500),
        (0, 1, 40),
        (0, 2, 1500),
        (1, 11, 1500),
        (0, 3, 1500),
    ];
    send(
        &mut link,
        0,
        packets.map(|(flow, seq, len)| packet(flow, seq, len)),
    );
    let arrived: Vec<u32> = drain(&mut link).iter().map(|(_, p)| p.segment.seq.0).collect();
    // Data packet 1 of flow 0 is number 2, of flow 1 number 11; the ACK (1) is not counted.
    assert_eq!(arrived, [0, 10, 1, 3]);
}

#[test]
fn tail_loss_takes_the_last_segments_once() {
    let mut link = impaired(Impairments {
        loss: Loss::Tail(2),
        ..Impairments::default()
    });
    let origin = SeqNumber(u32::MAX - 2_000);
    let end = StreamEnd {
        origin,
        end: 4_100,
        segment: 1_000,
    };
    link.on_stream_end(FlowId(0), end);
    let data = |offset: u32, payload: u32| packet(0, (origin + offset).0, payload + 40);
    // Segments at 0, 1000, 2000, 3000, 4000 (100 bytes): the last two are lost, their retransmissions are not.
    let first = [(0, 1000), (1000, 1000), (2000, 1000), (3000, 1000), (4000, 100)];
    send(&mut link, 0, first.map(|(offset, payload)| data(offset, payload)));
    assert_eq!(drain(&mut link).len(), 3);
    send(&mut link, 100_000_000, [data(3000, 1000), data(4000, 100)]);
    assert_eq!(drain(&mut link).len(), 2);
    // The next transfer of the same connection has its own tail.
    link.on_stream_end(FlowId(0), StreamEnd { end: 5_100, ..end });
    send(&mut link, 200_000_000, [data(4_100, 1000)]);
    assert_eq!(drain(&mut link).len(), 0);
}

#[test]
fn jitter_keeps_order_and_reordering_does_not() {
    let jitter = Impairments {
        jitter: Some(Distribution::Exponential { mean: 0.01 }),
        ..Impairments::default()
    };
    let reorder = Impairments {
        reorder: Some((Probability::from_f64(0.1), Duration::from_millis(5))),
        ..jitter.clone()
    };
    for (impairments, kept) in [(jitter, true), (reorder, false)] {
        let mut link = impaired(impairments);
        send(&mut link, 0, (0..1000).map(|i| packet(0, i, 1500)));
        let order: Vec<u32> = drain(&mut link).iter().map(|(_, p)| p.segment.seq.0).collect();
        assert_eq!(order.is_sorted(), kept);
        assert_eq!(order.len(), 1000);
    }
}

#[test]
fn bit_errors_mark_packets_as_corrupt() {
    let mut link = impaired(Impairments {
        bit_error_rate: 1e-5,
        ..Impairments::default()
    });
    send(&mut link, 0, (0..50_000).map(|i| packet(0, i, 1250)));
    let arrivals = drain(&mut link);
    let damaged = arrivals
        .iter()
        .filter(|(_, p)| p.segment.flags.contains(Flags::CORRUPT))
        .count() as f64;
    // 1 - (1 - 1e-5)^10000 = 0.09516; four deviations are 262.
    assert!((damaged - 4758.1).abs() < 262.0, "{damaged}");
    assert_eq!(arrivals.len(), 50_000);
}

#[test]
fn packets_beyond_the_mtu_are_dropped_and_counted() {
    let mut link = link(&LinkConfig::new(Rate(12_000_000), Duration::ZERO));
    send(&mut link, 0, [packet(0, 0, 1500), packet(0, 1, 1501)]);
    assert_eq!(drain(&mut link).len(), 1);
    assert_eq!(link.statistics().drops[DropReason::TooBig as usize], [1, 0, 0]);
}

#[test]
fn a_trace_serves_packets_at_its_opportunities() {
    // Opportunities at 1, 1 and 4 ms of every 4 ms.
    let rate = LinkRate::Trace {
        opportunities: [1, 1, 4].map(Duration::from_millis).into(),
        period: Duration::from_millis(4),
    };
    assert_eq!(rate.mean(), Rate(9_024_000));
    let config = LinkConfig {
        rate,
        ..LinkConfig::new(Rate(1), Duration::ZERO)
    };
    let mut link = link(&config);
    // 1500 + 4 of the next in the first opportunity, the rest of it and the third in part in the second, and so on.
    send(&mut link, 0, (0..5).map(|i| packet(0, i, 1500)));
    let times: Vec<u64> = drain(&mut link).iter().map(|(at, _)| *at / 1_000_000).collect();
    assert_eq!(times, [1, 1, 4, 5, 5]);
    // What an idle link did not use is lost; the one at 8 ms serves who comes at that moment.
    send(&mut link, 8_000_000, [packet(0, 5, 1500), packet(0, 6, 1500)]);
    let times: Vec<u64> = drain(&mut link).iter().map(|(at, _)| *at / 1_000_000).collect();
    assert_eq!(times, [8, 9]);
}

#[test]
fn what_a_trace_offers_in_a_span_is_counted_at_its_opportunities() {
    // Four at 0, 1, 1 and 4 ms of every 4 ms: the last falls on the first moment of the next period.
    let rate = LinkRate::Trace {
        opportunities: [0, 1, 1, 4].map(Duration::from_millis).into(),
        period: Duration::from_millis(4),
    };
    let of = |from, to| rate.bytes_between(Instant::from_millis(from), Instant::from_millis(to)) / 1504;
    assert_eq!([of(0, 1), of(0, 2), of(0, 4), of(0, 5)], [1, 3, 3, 5]);
    assert_eq!(
        [of(4, 8), of(2, 4), of(0, 4_000_000), of(3, 2)],
        [4, 0, 3_999_999, 0]
    );
    let constant = LinkRate::Constant(Rate(12_000_000));
    assert_eq!(
        constant.bytes_between(Instant::from_millis(1), Instant::from_millis(3)),
        3000
    );
}

#[test]
fn a_link_that_follows_a_trace_is_busy_for_the_share_of_its_opportunities_that_it_used() {
    // One packet per millisecond for 10 ms, then one after 90 ms: a tenth of that on average.
    let opportunities: Vec<Duration> = (1..=10).chain([100]).map(Duration::from_millis).collect();
    let config = LinkConfig {
        rate: LinkRate::Trace {
            opportunities: opportunities.into(),
            period: Duration::from_millis(100),
        },
        framing: 4,
        ..LinkConfig::new(Rate(1), Duration::ZERO)
    };
    let mut link = link(&config);
    send(&mut link, 0, (0..10).map(|i| packet(0, i, 1500)));
    drain(&mut link);
    let at = Instant::from_millis;
    let within = |link: &Link<DropTail>, from, to| {
        let busy = link.busy(at(to)).saturating_sub(link.busy(at(from)));
        link.busy_within(at(from), at(to), busy).as_nanos()
    };
    let close = |found: u64, wanted: u64| found.abs_diff(wanted) < 100;
    assert!(
        close(within(&link, 0, 11), 11_000_000),
        "full: {}",
        within(&link, 0, 11)
    );
    assert!(
        close(within(&link, 3, 8), 5_000_000),
        "full: {}",
        within(&link, 3, 8)
    );
    // Ten of eleven.
    assert!(
        close(within(&link, 0, 101), 91_818_181),
        "{}",
        within(&link, 0, 101)
    );
    assert_eq!(within(&link, 20, 90), 0, "nothing was offered");
}

#[test]
fn busy_time_counts_the_packet_being_sent_in_part() {
    let mut link = link(&LinkConfig::new(Rate(12_000_000), Duration::ZERO));
    send(&mut link, 0, [packet(0, 0, 1500)]);
    assert_eq!(
        link.busy(Instant::from_nanos(250_000)),
        Duration::from_nanos(250_000)
    );
    assert_eq!(link.busy(Instant::from_millis(5)), Duration::from_millis(1));
}

#[test]
fn a_link_repairs_what_bit_errors_damage_in_order_and_pays_with_time() {
    let mut config = LinkConfig::new(Rate::from_bps(12_000_000), Duration::from_millis(1));
    config.impairments.bit_error_rate = 5e-5; // a packet of 1500 B is damaged with probability 0.45
    config.impairments.arq = Some(Arq {
        retransmissions: 60,
        delay: Duration::from_micros(500),
    });
    let mut link = link(&config);
    send(&mut link, 0, (0..2000).map(|number| packet(0, number, 1500)));
    let arrived = drain(&mut link);
    let numbers: Vec<u32> = arrived.iter().map(|(_, packet)| packet.segment.seq.0).collect();
    assert_eq!(numbers, (0..2000).collect::<Vec<u32>>(), "all, in order");
    let damaged = arrived
        .iter()
        .filter(|(_, packet)| packet.segment.flags.contains(Flags::CORRUPT));
    assert_eq!(damaged.count(), 0, "and whole");
    // Each attempt takes 1 ms, each but the first 0.5 ms more; 1 / (1 - 0.45) attempts per packet.
    let damage = -libm::expm1(12_000.0 * libm::log1p(-5e-5));
    let expected = 2000.0 * (1e6 + damage / (1.0 - damage) * 1.5e6);
    let last = arrived[1999].0 as f64;
    assert!((last / expected - 1.0).abs() < 0.05, "{last} {expected}");
    let busy = link.busy(Instant::from_nanos(arrived[1999].0)).as_nanos() as f64;
    assert!(
        (busy / last - 1.0).abs() < 0.001,
        "every attempt keeps the line busy"
    );
}

/// One opportunity each millisecond, which carries a packet of 1500 bytes.
fn opportunities_each_millisecond() -> LinkConfig {
    LinkConfig {
        rate: LinkRate::Trace {
            opportunities: [Duration::from_millis(1)].into(),
            period: Duration::from_millis(1),
        },
        framing: 4,
        ..LinkConfig::new(Rate(1), Duration::ZERO)
    }
}

#[test]
fn every_attempt_of_a_repair_takes_an_opportunity_of_a_trace() {
    // Every bit is wrong, so each packet takes its three attempts and arrives damaged after the last.
    let arrivals = |delay_us| {
        let mut config = opportunities_each_millisecond();
        config.impairments.bit_error_rate = 1.0;
        config.impairments.arq = Some(Arq {
            retransmissions: 2,
            delay: Duration::from_micros(delay_us),
        });
        let mut link = link(&config);
        send(&mut link, 0, (0..3).map(|i| packet(0, i, 1500)));
        let arrived = drain(&mut link);
        let times: Vec<u64> = arrived.iter().map(|(at, _)| at / 1_000_000).collect();
        let end = Instant::from_millis(times[2] + 1);
        (times, link.busy(end).as_nanos())
    };
    let (times, busy) = arrivals(0);
    assert_eq!(times, [3, 6, 9]);
    assert_eq!(busy, 9_000_000, "every attempt keeps the line busy");
    // With 1.5 ms from one attempt to the next each leaves an opportunity out: 1, 3 and 5; 6, 8 and 10; 11, 13 and 15.
    let (times, busy) = arrivals(1_500);
    assert_eq!(times, [5, 10, 15]);
    assert_eq!(busy, 15_000_000, "so do the waits, as at a constant rate");
}

#[test]
fn processing_that_overlaps_with_sending_holds_a_trace_up_where_it_is_the_longer() {
    let arrivals = |processing_us| -> Vec<u64> {
        let mut link = link(&LinkConfig {
            processing: Duration::from_micros(processing_us),
            overlap: true,
            ..opportunities_each_millisecond()
        });
        send(&mut link, 0, (0..3).map(|i| packet(0, i, 1500)));
        drain(&mut link).iter().map(|(at, _)| at / 1_000).collect()
    };
    // Sending is the longer: the opportunities at 1, 2 and 3 ms, each arrival 0.4 ms later.
    assert_eq!(arrivals(400), [1_400, 2_400, 3_400]);
    // Processing is the longer: the opportunities at 1, 4 and 7 ms, each arrival 3 ms later.
    assert_eq!(arrivals(3_000), [4_000, 7_000, 10_000]);
}
