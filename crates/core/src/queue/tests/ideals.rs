//! The ideal schedulers against searches of all that waits, and what sets each apart.

use super::*;
use crate::flow::Stream;
use crate::time::Duration;

/// A flow of the naive model: packets (number, length), bytes sent, least remaining of what waits, turn.
#[derive(Clone, Default)]
struct Model {
    packets: VecDeque<(u32, u64)>,
    value: u64,
    turn: u64,
}

/// Index of the flow with the least (or greatest) value and turn among those that wait.
fn best(models: &[Model], greatest: bool) -> Option<usize> {
    let waiting = (0..models.len()).filter(|&i| !models[i].packets.is_empty());
    let key = |&i: &usize| (models[i].value, models[i].turn);
    if greatest {
        waiting.max_by_key(key)
    } else {
        waiting.min_by_key(key)
    }
}

/// A table in which flow `i` has a stream from number 0 to `ends[i]`.
fn streams(ends: &[u64]) -> FlowTable {
    let mut table = flows(ends.len() as u32);
    for (flow, &end) in ends.iter().enumerate() {
        let origin = SeqNumber(0);
        if end > 0 {
            table.set_stream(FlowId(flow as u32), Stream { origin, end });
        }
    }
    table
}

/// Distinct buckets for a few flows: with this many, the fixed key of the tests lets none collide.
fn ideal<Q>(
    table: &'static [crate::parameter::Parameter],
    make: impl Fn(&Values, &LinkContext) -> Q,
    limit: Limit,
) -> Q {
    let mut values = Values::defaults(table);
    values.set("limit", Value::Limit(limit)).expect("a limit");
    values.set("buckets", Value::Integer(50_000)).expect("a number");
    make(&values, &LINK)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn least_attained_agrees_with_a_search(
        limit in 5_u32..40,
        calls in prop::collection::vec(prop::option::weighted(0.6, (0_u32..8, 40_u32..1501)), 200..2000),
    ) {
        let limit = Limit::Packets(limit);
        let queue = ideal(LeastAttained::PARAMETERS, LeastAttained::new, limit);
        let mut bench = Bench::new(queue, flows(8), limit);
        let mut models = vec![Model::default(); 8];
        let mut turn = 0;
        for (number, call) in calls.into_iter().enumerate() {
            let now = Instant::from_micros(number as u64);
            if let Some((flow, len)) = call {
                bench.log.clear();
                bench.enqueue(now, packet(flow, number as u32, len, 0));
                let model = &mut models[flow as usize];
                if model.packets.is_empty() {
                    turn += 1;
                    model.turn = turn;
                }
                model.packets.push_back((number as u32, u64::from(len)));
                let waiting: usize = models.iter().map(|model| model.packets.len()).sum();
                let mut dropped = None;
                if waiting > bench.queue.backlog().packets as usize {
                    let worst = best(&models, true).expect("packets wait");
                    dropped = models[worst].packets.pop_back().map(|packet| packet.0);
                }
                prop_assert_eq!(bench.log.first().and_then(|entry| entry.0), dropped);
                prop_assert!(limit.holds(bench.queue.backlog()));
            } else {
                let out = bench.dequeue(now).map(|packet| packet.segment.seq.0);
                let expected = best(&models, false).map(|flow| {
                    let (number, len) = models[flow].packets.pop_front().expect("it waits");
                    models[flow].value += len;
                    turn += 1;
                    models[flow].turn = turn;
                    number
                });
                prop_assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn shortest_remaining_agrees_with_a_search(
        limit in prop_oneof![Just(Limit::Unlimited), (5_u32..40).prop_map(Limit::Packets)],
        ends in prop::collection::vec(prop_oneof![1 => Just(0_u64), 4 => 3000_u64..100_000], 8),
        calls in prop::collection::vec(step_of_streams(), 200..2000),
    ) {
        let queue = ideal(ShortestRemaining::PARAMETERS, ShortestRemaining::new, limit);
        let mut bench = Bench::new(queue, streams(&ends), limit);
        let mut models = vec![Model::default(); 8];
        let mut ends = [None; 8];
        let mut turn = 0;
        for (number, call) in calls.into_iter().enumerate() {
            let now = Instant::from_micros(number as u64);
            let flow = match call {
                StreamCall::Grows(flow, by) => {
                    if let Some(stream) = bench.flows.stream(FlowId(flow)) {
                        let end = stream.end + by;
                        bench.flows.set_stream(FlowId(flow), Stream { end, ..stream });
                    }
                    continue;
                }
                StreamCall::Arrives(flow, len) => {
                    bench.log.clear();
                    // The number of the call is the sequence number: streams advance by a byte per call.
                    bench.enqueue(now, packet(flow, number as u32, len, 0));
                    let model = &mut models[flow as usize];
                    if model.packets.is_empty() {
                        turn += 1;
                        model.turn = turn;
                    }
                    model.packets.push_back((number as u32, u64::from(len)));
                    if len > 40 {
                        // Where the stream ends is heard with data only.
                        ends[flow as usize] = bench.flows.stream(FlowId(flow)).map(|stream| stream.end);
                    }
                    Some(flow as usize)
                }
                StreamCall::Leaves => {
                    let out = bench.dequeue(now).map(|packet| packet.segment.seq.0);
                    let flow = best(&models, false);
                    let expected = flow.map(|flow| {
                        let (number, _) = models[flow].packets.pop_front().expect("it waits");
                        turn += 1;
                        models[flow].turn = turn;
                        number
                    });
                    prop_assert_eq!(out, expected);
                    flow
                }
            };
            let rank = |models: &mut [Model], flow: usize| {
                let remaining = |&(number, len): &(u32, u64)| match ends[flow] {
                    _ if len == 40 => 0,
                    Some(end) => end - u64::from(number),
                    None => u64::MAX,
                };
                models[flow].value = models[flow].packets.iter().map(remaining).min().unwrap_or(0);
            };
            if let Some(flow) = flow {
                rank(&mut models, flow);
            }
            if matches!(call, StreamCall::Arrives(..)) {
                let waiting: usize = models.iter().map(|model| model.packets.len()).sum();
                let mut dropped = None;
                if waiting > bench.queue.backlog().packets as usize {
                    let worst = best(&models, true).expect("packets wait");
                    dropped = models[worst].packets.pop_back().map(|packet| packet.0);
                    rank(&mut models, worst);
                }
                prop_assert_eq!(bench.log.first().and_then(|entry| entry.0), dropped);
            }
        }
    }

    #[test]
    fn low_ttl_agrees_with_a_stable_sort(
        limit in 5_usize..40,
        calls in prop::collection::vec(prop::option::weighted(0.6, any::<u8>()), 200..1000),
    ) {
        let mut values = Values::defaults(LowTtl::PARAMETERS);
        values.set("limit", Value::Limit(Limit::Packets(limit as u32))).expect("a limit");
        let mut bench = Bench::new(LowTtl::new(&values, &LINK), flows(256), Limit::Packets(limit as u32));
        let mut waiting: Vec<(u8, u32)> = Vec::new();
        for (number, call) in calls.into_iter().enumerate() {
            if let Some(ttl) = call {
                bench.log.clear();
                let mut arrival = packet(u32::from(ttl), number as u32, 1500, 0);
                arrival.segment.ttl = ttl;
                bench.enqueue(Instant::ZERO, arrival);
                waiting.push((ttl, number as u32));
                waiting.sort(); // numbers rise, so this is by TTL, then by arrival
                let dropped = if waiting.len() > limit { waiting.pop() } else { None };
                prop_assert_eq!(bench.log.first().and_then(|entry| entry.0), dropped.map(|dropped| dropped.1));
            } else {
                let out = bench.dequeue(Instant::ZERO);
                let expected = (!waiting.is_empty()).then(|| waiting.remove(0));
                prop_assert_eq!(out.map(|packet| packet.segment.seq.0), expected.map(|packet| packet.1));
                let ttl = expected.map(|packet| packet.0.saturating_sub(1));
                prop_assert_eq!(out.map(|packet| packet.segment.ttl), ttl, "a hop is counted");
            }
        }
    }

    /// An edge that counts and a core that reads its marks, against lists and a map of flows, call by call.
    #[test]
    fn two_queues_by_mark_agree_with_lists(
        limits in (5_u32..40, 5_u32..40),
        calls in prop::collection::vec(step_of_two_routers(), 200..2000),
    ) {
        let bench = |limit: Limit| {
            let mut queue = Values::defaults(TwoQueue::PARAMETERS);
            queue.set("limit", Value::Limit(limit)).expect("a limit");
            queue.set("by", Value::Choice("mark")).expect("a choice");
            queue.set("threshold", Value::Bytes(Bytes(6000))).expect("an amount");
            queue.set("buckets", Value::Integer(50_000)).expect("a number");
            Bench::new(TwoQueue::new(&queue, &LINK), flows(8), limit)
        };
        let (mut edge, mut core) = (bench(Limit::Packets(limits.0)), bench(Limit::Packets(limits.1)));
        core.class = |packet| packet.segment.tos >> 2;
        let mut model = TwoRouters::new(limits.0, limits.1);
        let mut now = 0;
        for (number, (step_ms, call)) in calls.into_iter().enumerate() {
            now += step_ms;
            let at = Instant::from_millis(now);
            edge.log.clear();
            core.log.clear();
            match call {
                Call::Arrives(flow, len, tos) => {
                    edge.enqueue(at, packet(flow, number as u32, len, tos));
                    let full = model.arrive(now, number as u32, flow, len, tos);
                    prop_assert_eq!(edge.log.len(), usize::from(full));
                }
                Call::EdgeSends => {
                    let out = edge.dequeue(at);
                    let passed = |packet: Packet| (packet.segment.seq.0, packet.segment.tos);
                    let (expected, full) = model.edge_sends();
                    prop_assert_eq!(out.map(passed), expected);
                    if let Some(packet) = out {
                        core.enqueue(at, packet);
                    }
                    prop_assert_eq!(core.log.len(), usize::from(full));
                }
                Call::CoreSends => {
                    let out = core.dequeue(at).map(|packet| (packet.segment.seq.0, packet.segment.tos));
                    prop_assert_eq!(out, model.core_sends());
                }
            }
        }
    }
}

/// What happens at a queue that looks at streams.
#[derive(Clone, Copy, Debug)]
enum StreamCall {
    /// A packet of this flow and length comes; without data if it has 40 bytes.
    Arrives(u32, u32),
    /// The application of this flow writes so many bytes more.
    Grows(u32, u64),
    Leaves,
}

fn step_of_streams() -> impl Strategy<Value = StreamCall> {
    let len = prop_oneof![1 => Just(40_u32), 3 => 41_u32..1501];
    prop_oneof![
        12 => (0_u32..8, len).prop_map(|(flow, len)| StreamCall::Arrives(flow, len)),
        8 => Just(StreamCall::Leaves),
        1 => (0_u32..8, 1_u64..50_000).prop_map(|(flow, by)| StreamCall::Grows(flow, by)),
    ]
}

/// What happens at two routers in a row.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// A packet of this flow, length and traffic class comes to the first.
    Arrives(u32, u32, u8),
    /// The first passes one on to the second.
    EdgeSends,
    /// The second sends one.
    CoreSends,
}

/// Milliseconds since the last call, now and then more than the ten seconds that a flow is remembered, and the call.
fn step_of_two_routers() -> impl Strategy<Value = (u64, Call)> {
    let tos = prop::sample::select(&[0_u8, 1, 2, 3, 46 << 2][..]);
    let call = prop_oneof![
        4 => (0_u32..8, 40_u32..1501, tos).prop_map(|(flow, len, tos)| Call::Arrives(flow, len, tos)),
        3 => Just(Call::EdgeSends),
        // Less than the edge sends, so that packets wait at both.
        2 => Just(Call::CoreSends),
    ];
    let step = prop_oneof![30 => 0_u64..20, 1 => 9_990_u64..10_010];
    (step, call)
}

/// The rules of [`TwoQueue`] by mark, with a list for each queue: number, flow and marked traffic class.
struct TwoRouters {
    limits: [usize; 2],
    /// Of each flow that the edge has seen: its bytes, and when it was seen last.
    flows: BTreeMap<u32, (u64, u64)>,
    edge: Vec<(u32, u32, u8)>,
    core: Vec<(u32, u8)>,
}

impl TwoRouters {
    fn new(edge: u32, core: u32) -> TwoRouters {
        TwoRouters {
            limits: [edge as usize, core as usize],
            flows: BTreeMap::new(),
            edge: Vec::new(),
            core: Vec::new(),
        }
    }

    /// Whether the edge was full.
    fn arrive(&mut self, now_ms: u64, number: u32, flow: u32, len: u32, tos: u8) -> bool {
        if self.edge.len() == self.limits[0] {
            return true;
        }
        let waits = self
            .edge
            .iter()
            .any(|packet| packet.1 == flow && packet.2 >> 2 == 15);
        let (mut bytes, seen) = self.flows.get(&flow).copied().unwrap_or((0, now_ms));
        if now_ms - seen >= 10_000 && !waits {
            bytes = 0;
        }
        let codepoint = if bytes < 6000 { 11 } else { 15 };
        self.flows.insert(flow, (bytes + u64::from(len), now_ms));
        self.edge.push((number, flow, codepoint << 2 | tos & 3));
        false
    }

    /// What the edge passes on, and whether the core had no place for it.
    fn edge_sends(&mut self) -> (Option<(u32, u8)>, bool) {
        if self.edge.is_empty() {
            return (None, false);
        }
        let next = self
            .edge
            .iter()
            .position(|packet| packet.2 >> 2 == 11)
            .unwrap_or(0);
        let (number, _, tos) = self.edge.remove(next);
        let full = self.core.len() == self.limits[1];
        if !full {
            self.core.push((number, tos));
        }
        (Some((number, tos)), full)
    }

    fn core_sends(&mut self) -> Option<(u32, u8)> {
        if self.core.is_empty() {
            return None;
        }
        let next = self
            .core
            .iter()
            .position(|packet| packet.1 >> 2 == 11)
            .unwrap_or(0);
        Some(self.core.remove(next))
    }
}

#[test]
fn shortest_remaining_finishes_the_short_flow_first() {
    // Flow 0 has 100 packets to come, flow 1 three, and nobody knows of flow 2.
    let queue = ideal(
        ShortestRemaining::PARAMETERS,
        ShortestRemaining::new,
        Limit::Unlimited,
    );
    let mut bench = Bench::new(queue, streams(&[146_000, 4380, 0]), Limit::Unlimited);
    for (number, flow) in [2, 0, 0, 1, 0, 1, 1, 2].into_iter().enumerate() {
        bench.enqueue(Instant::ZERO, packet(flow, number as u32, 1500, 0));
    }
    let mut order = Vec::new();
    while let Some(packet) = bench.dequeue(Instant::ZERO) {
        order.push(packet.flow.0);
    }
    assert_eq!(order, [1, 1, 1, 0, 0, 0, 2, 2]);
}

#[test]
fn a_handshake_puts_a_long_flow_first_only_while_it_waits() {
    let queue = ideal(
        ShortestRemaining::PARAMETERS,
        ShortestRemaining::new,
        Limit::Unlimited,
    );
    let mut bench = Bench::new(queue, streams(&[146_000, 14_600]), Limit::Unlimited);
    // Flow 0 sends the end of its handshake and six packets, then flow 1, which has less to come, three.
    bench.enqueue(Instant::ZERO, packet(0, 0, 40, 0));
    for (number, flow) in [0, 0, 0, 0, 0, 0, 1, 1, 1].into_iter().enumerate() {
        bench.enqueue(Instant::ZERO, packet(flow, number as u32 + 1, 1500, 0));
    }
    let mut order = Vec::new();
    while let Some(packet) = bench.dequeue(Instant::ZERO) {
        order.push(packet.flow.0);
    }
    assert_eq!(order, [0, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_flow_that_goes_on_writing_is_no_longer_short() {
    let queue = ideal(
        ShortestRemaining::PARAMETERS,
        ShortestRemaining::new,
        Limit::Unlimited,
    );
    let mut bench = Bench::new(queue, streams(&[1460, 14_600]), Limit::Unlimited);
    bench.enqueue(Instant::ZERO, packet(0, 0, 1500, 0));
    // Its packet still waits when the application of flow 0 has written 146000 bytes more.
    let stream = Stream {
        origin: SeqNumber(0),
        end: 147_460,
    };
    bench.flows.set_stream(FlowId(0), stream);
    bench.enqueue(Instant::ZERO, packet(0, 1460, 1500, 0));
    bench.enqueue(Instant::ZERO, packet(1, 1461, 1500, 0));
    let order: Vec<u32> = (0..3)
        .map(|_| bench.dequeue(Instant::ZERO).expect("packets wait").flow.0)
        .collect();
    assert_eq!(order, [1, 0, 0]);
}

#[test]
fn the_end_of_a_flow_that_was_pushed_out_does_not_rank_what_is_left() {
    let queue = ideal(
        ShortestRemaining::PARAMETERS,
        ShortestRemaining::new,
        Limit::Packets(3),
    );
    let mut bench = Bench::new(queue, streams(&[146_000, 100_000, 50_000]), Limit::Packets(3));
    // Flow 0 has its first packet waiting and its last one, whose start is 1460 bytes before the end.
    bench.enqueue(Instant::ZERO, packet(1, 99_999, 1500, 0));
    bench.enqueue(Instant::ZERO, packet(0, 0, 1500, 0));
    bench.enqueue(Instant::ZERO, packet(0, 144_540, 1500, 0));
    bench.enqueue(Instant::ZERO, packet(1, 100_000, 1500, 0));
    assert_eq!(bench.queue.backlog().packets, 3);
    // Its last packet was pushed out. From the start of its first one it has 146000 to come, more than flow 2.
    bench.enqueue(Instant::ZERO, packet(2, 1, 1500, 0));
    let order: Vec<u32> = (0..3)
        .map(|_| bench.dequeue(Instant::ZERO).expect("packets wait").flow.0)
        .collect();
    assert_eq!(order, [1, 1, 2]);
}

#[test]
fn least_attained_lets_a_newcomer_pass_until_it_has_sent_as_much() {
    let queue = ideal(LeastAttained::PARAMETERS, LeastAttained::new, Limit::Unlimited);
    let mut bench = Bench::new(queue, flows(2), Limit::Unlimited);
    for number in 0..20 {
        bench.enqueue(Instant::ZERO, packet(0, number, 1000, 0));
    }
    for _ in 0..3 {
        bench.dequeue(Instant::ZERO);
    }
    for number in 20..30 {
        bench.enqueue(Instant::ZERO, packet(1, number, 1000, 0));
    }
    let order: Vec<u32> = (0..8)
        .map(|_| bench.dequeue(Instant::ZERO).expect("packets wait").flow.0)
        .collect();
    // Three packets to draw level, then in turns; flow 0's turn is the older one.
    assert_eq!(order, [1, 1, 1, 0, 1, 0, 1, 0]);
    // After ten seconds of silence flow 0 is as new as any.
    while bench.dequeue(Instant::ZERO).is_some() {}
    let later = Instant::ZERO.saturating_add(Duration::from_secs(11));
    bench.enqueue(later, packet(1, 40, 1000, 0));
    bench.enqueue(later, packet(0, 41, 1000, 0));
    let order: Vec<u32> = (0..2)
        .map(|_| bench.dequeue(later).expect("packets wait").flow.0)
        .collect();
    assert_eq!(order, [1, 0]);
}

fn two_queue(by: &'static str, table: FlowTable) -> Bench<TwoQueue> {
    let mut values = Values::defaults(TwoQueue::PARAMETERS);
    values
        .set("limit", Value::Limit(Limit::Unlimited))
        .expect("a limit");
    values.set("by", Value::Choice(by)).expect("a choice");
    values
        .set("threshold", Value::Bytes(Bytes(3000)))
        .expect("an amount");
    Bench::new(TwoQueue::new(&values, &LINK), table, Limit::Unlimited)
}

#[test]
fn two_queues_let_the_first_bytes_of_a_flow_pass() {
    let mut bench = two_queue("bytes", flows(2));
    for (number, flow) in [0, 0, 0, 0, 1, 1, 1].into_iter().enumerate() {
        bench.enqueue(Instant::ZERO, packet(flow, number as u32, 1500, 0));
    }
    let mut order = Vec::new();
    while let Some(packet) = bench.dequeue(Instant::ZERO) {
        order.push(packet.segment.seq.0);
    }
    assert_eq!(order, [0, 1, 4, 5, 2, 3, 6]);
}

/// Packet 2 waits among the rest for longer than the count of its flow is kept: packet 3 does not pass it. When nothing of the flow waits,
/// silence makes its next packet a first one, which passes packet 7 of the other flow.
#[test]
fn two_queues_do_not_forget_a_flow_of_which_packets_wait() {
    let mut bench = two_queue("bytes", flows(2));
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    for number in 0..3 {
        bench.enqueue(at(0), packet(0, number, 1500, 0));
    }
    bench.enqueue(at(11), packet(0, 3, 1500, 0));
    let leave =
        |bench: &mut Bench<TwoQueue>, seconds| bench.dequeue(at(seconds)).map(|packet| packet.segment.seq.0);
    let order: Vec<_> = (0..5).map(|_| leave(&mut bench, 11)).collect();
    assert_eq!(order, [Some(0), Some(1), Some(2), Some(3), None]);
    for number in 5..8 {
        bench.enqueue(at(22), packet(1, number, 1500, 0));
    }
    bench.enqueue(at(22), packet(0, 8, 1500, 0));
    let order: Vec<_> = (0..4).map(|_| leave(&mut bench, 22)).collect();
    assert_eq!(order, [Some(5), Some(6), Some(8), Some(7)]);
}

#[test]
fn two_queues_by_sequence_number_keep_no_state() {
    let mut table = flows(3);
    let origin = SeqNumber(u32::MAX - 99);
    for flow in 0..2 {
        table.set_stream(FlowId(flow), Stream { origin, end: 50_000 });
    }
    let mut bench = two_queue("sequence", table);
    // Bytes 2999 and 3000 of flow 0 across the wrap, a retransmission of its first byte, a stream that nobody announced.
    let at = |place: u32| origin.0.wrapping_add(place);
    let arrivals = [(0, at(3000)), (0, at(2999)), (2, 7), (0, at(0))];
    for &(flow, number) in &arrivals {
        let mut context = QueueContext {
            flows: &bench.flows,
            ingress: 0,
            drops: &mut bench.drops,
            events: &mut bench.events,
        };
        bench
            .queue
            .enqueue(Instant::ZERO, packet(flow, number, 1500, 0), &mut context);
    }
    let mut order = Vec::new();
    let mut context = QueueContext {
        flows: &bench.flows,
        ingress: 0,
        drops: &mut bench.drops,
        events: &mut bench.events,
    };
    while let Some(packet) = bench.queue.dequeue(Instant::ZERO, &mut context) {
        order.push(packet.segment.seq.0);
    }
    assert_eq!(order, [at(2999), 7, at(0), at(3000)]);
}

/// Two flows of packets of 1500 bytes with a threshold of 3000, by hand. The edge counts and marks:
///
/// | packet | flow | bytes before | codepoint before | after | leaves the edge |
/// |---|---|---|---|---|---|
/// | 0 | 0 | 0 | 0 | 11 | 1st |
/// | 1 | 0 | 1500 | 46 | 11, ECT(0) stays | 2nd |
/// | 2 | 0 | 3000 | 0 | 15 | 5th |
/// | 3 | 1 | 0 | 0 | 11 | 3rd |
/// | 4 | 0 | 4500 | 0 | 15, ECT(1) stays | 6th |
/// | 5 | 1 | 1500 | 0 | 11 | 4th |
///
/// The core hears of nothing but marks: it gets them in the order 2, 0, 4, 1, 3, 5 and puts 0, 1, 3, 5 first, and packet 6 of flow 0, which
/// comes to it without a mark, is its first of that flow.
#[test]
fn the_first_of_two_queues_marks_and_the_next_reads_the_mark() {
    let mut edge = two_queue("mark", flows(2));
    for (number, (flow, tos)) in [(0, 0), (0, 46 << 2 | 2), (0, 0), (1, 0), (0, 1), (1, 0)]
        .into_iter()
        .enumerate()
    {
        edge.enqueue(Instant::ZERO, packet(flow, number as u32, 1500, tos));
    }
    let out: Vec<Packet> = core::iter::from_fn(|| edge.dequeue(Instant::ZERO)).collect();
    let seen: Vec<_> = out
        .iter()
        .map(|packet| {
            (
                packet.segment.seq.0,
                packet.segment.tos >> 2,
                packet.segment.tos & 3,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (0, 11, 0),
            (1, 11, 2),
            (3, 11, 0),
            (5, 11, 0),
            (2, 15, 0),
            (4, 15, 1)
        ]
    );

    let mut core = two_queue("mark", flows(2));
    core.class = |packet| packet.segment.tos >> 2;
    for number in [2, 0, 4, 1, 3, 5] {
        let found = out.iter().find(|packet| packet.segment.seq.0 == number);
        core.enqueue(Instant::ZERO, *found.expect("it left the edge"));
    }
    core.enqueue(Instant::ZERO, packet(0, 6, 1500, 0));
    let order: Vec<_> = core::iter::from_fn(|| core.dequeue(Instant::ZERO))
        .map(|packet| (packet.segment.seq.0, packet.segment.tos >> 2))
        .collect();
    assert_eq!(
        order,
        [(0, 11), (1, 11), (3, 11), (5, 11), (6, 11), (2, 15), (4, 15)]
    );
}

/// What leaves a queue in which packets of four flows wait, with or without their streams.
fn order(name: &str, by: Option<&'static str>, table: &FlowTable) -> (bool, Vec<u32>) {
    let entry = AnyQueue::entry(name).expect("an entry of the registry");
    let mut values = Values::defaults(entry.parameters);
    if let Some(by) = by {
        values.set("by", Value::Choice(by)).expect("a choice");
    }
    let mut queue = AnyQueue::build(name, &values, &LINK).expect("an entry of the registry");
    let (mut drops, mut events) = (Vec::new(), Vec::new());
    let mut context = QueueContext {
        flows: table,
        ingress: 0,
        drops: &mut drops,
        events: &mut events,
    };
    for number in 0..40 {
        let place = (9 - number / 4) * 14_600 + number;
        queue.enqueue(Instant::ZERO, packet(number % 4, place, 1500, 0), &mut context);
    }
    let later = Instant::from_millis(1);
    let out = core::iter::from_fn(|| queue.dequeue(later, &mut context));
    let order = out.map(|packet| packet.segment.seq.0).collect();
    (queue.asks_streams(), order)
}

#[test]
fn disciplines_that_look_at_streams_say_so() {
    let mut asking = 0;
    for entry in AnyQueue::ENTRIES {
        let by: &[Option<&'static str>] = if entry.name == "two-queue" {
            &[Some("bytes"), Some("sequence"), Some("mark")]
        } else {
            &[None]
        };
        for &by in by {
            let (asks, with) = order(entry.name, by, &streams(&[400_000, 250_000, 260_000, 215_000]));
            let (_, without) = order(entry.name, by, &flows(4));
            assert_eq!(asks, with != without, "{}", entry.name);
            asking += u32::from(asks);
        }
    }
    assert_eq!(asking, 2, "shortest-remaining, and two-queue by sequence number");
}
