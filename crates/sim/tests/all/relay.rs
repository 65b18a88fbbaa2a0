//! Split connections: a relay in the middle of two lines of 8 Mbit/s (1 us per byte) and 10 ms each.

use crate::line;

use crate::common::random_spec;
use crate::line::{always, config, group, network, outcome, times};
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::rng::{Distribution, Probability};
use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{LinkRate, Loss, NodeId, NodeSpec, Relay, Spec, Traffic};
use fleetfoot_sim::world::{Mode, run};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Nodes: the sender, the receiver, the relay. Links 0 and 1 are those between sender and relay, 2 and 3 those beyond.
pub(crate) fn two_lines(duration_ms: u64, traffic: Traffic, config: Config, buffer: u64) -> Spec {
    let mut spec = network(1, duration_ms);
    spec.nodes.push(NodeSpec {
        name: "relay".to_owned(),
        host: false,
    });
    spec.links = vec![
        line::link("near", true, 0, 2),
        line::link("near", false, 2, 0),
        line::link("far", true, 2, 1),
        line::link("far", false, 1, 2),
    ];
    let mut all = group(1, traffic);
    all.sender = Arc::new(config.clone());
    all.receiver = Arc::new(config.clone());
    let mut own = Config {
        receive_buffer: Bytes(buffer),
        send_buffer: Bytes(buffer),
        ..config
    };
    own.fix_receive_buffer();
    all.relay = Some(Relay {
        node: NodeId(2),
        config: Arc::new(own),
    });
    spec.groups.push(all);
    spec
}

fn transfers(bytes: f64, count: u64) -> Traffic {
    Traffic::Transfer {
        size: always(bytes),
        interarrival: always(0.1),
        count: Some(count),
    }
}

fn at_once(bytes: f64) -> Traffic {
    Traffic::Transfer {
        size: always(bytes),
        interarrival: always(0.0),
        count: Some(1),
    }
}

#[test]
fn three_packets_by_hand() {
    let spec = two_lines(10, at_once(3.0 * 1460.0), config(), 1_000_000);
    // SYN (52 B) at the relay at 10,052, at the receiver at 20,104; the relay's answer at the sender at 20,104, which sends
    // three packets of 1500 B: at the relay at 31,604, 33,104 and 34,604. The second connection is open since 30,156, so each
    // goes on at once and the last is there at 46,104, its ACK (40 B) at the relay at 56,144.
    assert_eq!(times(&outcome(&spec), 0), [(0, Some(46_104), Some(56_144))]);
    // End to end the SYN takes 20,104 and its answer 40,208; the last packet is there 4500 + 10,000 + 1500 + 10,000 later.
    let mut whole = spec;
    whole.groups[0].relay = None;
    assert_eq!(times(&outcome(&whole), 0), [(0, Some(66_208), Some(86_288))]);
}

/// What arrives where, and what a relay announces.
#[derive(Default)]
struct Seen {
    opened: usize,
    relayed: usize,
    closed: usize,
    /// By data flow: bytes that arrived in order.
    received: BTreeMap<u32, u64>,
    data: Option<FlowId>,
    onward: Option<FlowId>,
    back: Option<FlowId>,
    /// Most that the relay had and the receiver had not.
    held: u64,
    windows_shut: u32,
    resets_onward: u32,
    resets_back: u32,
}

impl Seen {
    /// The flows of a slot are used again.
    fn forget(&mut self, data: FlowId) {
        self.received.retain(|flow, _| flow >> 1 != data.0 >> 1);
    }

    fn of(&self, flow: Option<FlowId>) -> u64 {
        flow.and_then(|flow| self.received.get(&flow.0).copied())
            .unwrap_or(0)
    }
}

impl Observer for Seen {
    fn on_app(&mut self, _now: Instant, event: &AppEvent) {
        match *event {
            AppEvent::Opened { data, .. } => {
                self.opened += 1;
                self.data = Some(data);
                self.forget(data);
            }
            AppEvent::Relayed { data, acks, .. } => {
                self.relayed += 1;
                self.forget(data);
                self.onward = Some(data);
                self.back = Some(acks);
            }
            AppEvent::Closed { .. } => self.closed += 1,
        }
    }

    fn on_send(&mut self, _now: Instant, flow: FlowId, segment: &Segment) {
        let reset = segment.flags.contains(Flags::RST);
        self.resets_onward += u32::from(reset && Some(flow) == self.onward);
        self.resets_back += u32::from(reset && Some(flow) == self.back);
        let shut = segment.window == 0 && !segment.flags.intersects(Flags::SYN.with(Flags::RST));
        self.windows_shut += u32::from(shut && Some(flow) == self.back);
    }

    fn on_receive(&mut self, _now: Instant, flow: FlowId, in_order: Range<u64>) {
        let received = self.received.entry(flow.0).or_default();
        assert_eq!(*received, in_order.start, "nothing twice, nothing left out");
        *received = in_order.end;
        self.held = self
            .held
            .max(self.of(self.data).saturating_sub(self.of(self.onward)));
    }
}

fn seen(spec: &Spec) -> (Seen, RunOutput) {
    let mut seen = Seen::default();
    let output =
        run(spec, Mode::Fast, &mut seen, |_| ControlFlow::Continue(())).expect("a runnable scenario");
    (seen, output)
}

#[test]
fn a_slow_second_line_shuts_the_window_of_the_first() {
    let buffer = 20_000;
    for config in [config(), Config::profile(Profile::Linux)] {
        let mut spec = two_lines(10, at_once(400_000.0), config, buffer);
        for link in &mut spec.links[2..] {
            link.rate = LinkRate::Constant(Rate::from_bps(800_000));
        }
        let (seen, output) = seen(&spec);
        outcome(&spec);
        assert_eq!(output.groups[0].flows[0].received, Bytes(400_000));
        assert!(output.groups[0].flows[0].completed.is_some());
        assert_eq!(
            (seen.of(seen.data), seen.of(seen.onward)),
            (400_000, 400_000),
            "every byte over both"
        );
        // A receive buffer and a send buffer, and never much less: the first line waits for the second.
        assert!(
            (buffer..=2 * buffer).contains(&seen.held),
            "{} bytes held",
            seen.held
        );
        assert!(
            seen.windows_shut > 0,
            "the relay offers no more than it has room for"
        );
        assert_eq!(output.groups[0].dropped, 0);
    }
    // With room for everything it takes everything.
    let mut spec = two_lines(10, at_once(400_000.0), config(), 1_000_000);
    for link in &mut spec.links[2..] {
        link.rate = LinkRate::Constant(Rate::from_bps(800_000));
    }
    let (seen, _) = seen(&spec);
    assert!(seen.held > 300_000, "{} bytes held", seen.held);
    assert_eq!(seen.windows_shut, 0);
}

#[test]
fn losses_on_both_lines_are_repaired_where_they_happen() {
    for (seed, profile) in Profile::ALL.into_iter().enumerate() {
        let mut spec = two_lines(4000, transfers(60_000.0, 30), Config::profile(profile), 30_000);
        spec.seed = seed as u64;
        spec.drain = Duration::from_secs(300);
        for link in &mut spec.links {
            link.impairments.loss = Loss::Random(Probability::from_f64(0.03));
        }
        let (seen, output) = seen(&spec);
        outcome(&spec);
        let flows = &output.groups[0].flows;
        assert_eq!(flows.len(), 30);
        for flow in flows {
            assert_eq!(flow.received, Bytes(60_000), "{profile:?}");
            let (completed, acked) = (flow.completed.expect("arrived"), flow.acked.expect("known"));
            assert!(
                completed < acked,
                "{profile:?}: the ACK comes back from the receiver"
            );
            // Both senders count: 60,000 bytes twice, and what was lost.
            assert!(Bytes(flow.stats().bytes_sent) >= Bytes(120_000), "{profile:?}");
        }
        let retransmits: u32 = flows.iter().map(|flow| flow.stats().retransmits).sum();
        assert!(retransmits > 30, "{profile:?}: {retransmits}");
        // What was sent is what arrived or was dropped, and repetitions that arrived twice.
        let sent: u64 = flows.iter().map(|flow| flow.stats().segments_sent).sum();
        assert!(sent > output.groups[0].dropped && output.groups[0].dropped > 0);
        assert_eq!((seen.opened, seen.relayed), (30, 30));
    }
}

#[test]
fn closes_are_carried_on_and_slots_freed() {
    let mut spec = two_lines(8000, transfers(20_000.0, 20), config(), 1_000_000);
    // Somebody else keeps the run going until all have closed.
    spec.groups.push(group(1, transfers(1_000.0, 70)));
    spec.groups[1].name = "other".to_owned();
    let (seen, output) = seen(&spec);
    outcome(&spec);
    assert_eq!((seen.opened, seen.relayed), (90, 20));
    println!("{} closed", seen.closed);
    assert!(seen.closed >= 2 * 20 + 45, "{} closed", seen.closed);
    assert_eq!(seen.resets_onward + seen.resets_back, 0);
    assert!(output.groups[0].flows.iter().all(|flow| flow.completed.is_some()));
}

#[test]
fn an_abort_reaches_the_far_end() {
    let mut spec = two_lines(1000, Traffic::Bulk { count: 1 }, config(), 50_000);
    spec.groups[0].stop = Some(Duration::from_millis(500));
    // Somebody else keeps the run going.
    spec.groups.push(group(1, transfers(1_000.0, 9)));
    spec.groups[1].name = "other".to_owned();
    spec.groups[1].start = Duration::from_millis(1);
    let mut at_far_end = Far::default();
    let output = run(&spec, Mode::Fast, &mut at_far_end, |_| ControlFlow::Continue(()));
    let output = output.expect("a runnable scenario");
    outcome(&spec);
    assert!(
        at_far_end.resets > 0,
        "the relay tells the receiver what the sender did"
    );
    assert!(at_far_end.closed, "and the conversation is over");
    assert!(output.groups[0].goodput_bytes > Bytes(300_000));
}

/// What the first conversation of a run comes to.
#[derive(Default)]
struct Far {
    data: Option<FlowId>,
    onward: Option<FlowId>,
    resets: u32,
    closed: bool,
}

impl Observer for Far {
    fn on_app(&mut self, _now: Instant, event: &AppEvent) {
        match *event {
            AppEvent::Opened { data, .. } if self.data.is_none() => self.data = Some(data),
            AppEvent::Relayed { data, .. } if self.onward.is_none() => self.onward = Some(data),
            AppEvent::Closed { data } => self.closed |= Some(data) == self.data,
            AppEvent::Opened { .. } | AppEvent::Relayed { .. } => {}
        }
    }

    fn on_send(&mut self, _now: Instant, flow: FlowId, segment: &Segment) {
        self.resets +=
            u32::from(!self.closed && Some(flow) == self.onward && segment.flags.contains(Flags::RST));
    }
}

#[test]
fn a_receiver_that_cannot_be_reached_is_a_reset_for_the_sender() {
    let mut patient = config();
    patient.syn_retries = 2;
    let mut spec = two_lines(2000, at_once(5_000.0), patient, 1_000_000);
    spec.drain = Duration::from_secs(100);
    spec.links[2].impairments.loss = Loss::Random(Probability::from_f64(1.0));
    let (seen, output) = seen(&spec);
    outcome(&spec);
    assert_eq!(seen.resets_back, 1);
    assert_eq!(output.groups[0].flows[0].completed, None);
    assert!(
        output.ended < Instant::from_millis(60_000),
        "nobody waits any longer: {:?}",
        output.ended
    );
}

#[test]
fn questions_go_one_way_and_answers_the_other() {
    for server_time in [0.0, 0.02] {
        questions_and_answers(server_time);
    }
}

fn questions_and_answers(server_time: f64) {
    let traffic = Traffic::RequestResponse {
        count: 3,
        request: always(300.0),
        response: Distribution::Uniform {
            min: 1_000.0,
            max: 50_000.0,
        },
        think: always(0.05),
        server_time: always(server_time),
        exchanges: Some(10),
    };
    let mut spec = two_lines(10_000, traffic, config(), 40_000);
    spec.links[2].impairments.loss = Loss::Random(Probability::from_f64(0.02));
    let output = outcome(&spec);
    let flows = &output.groups[0].flows;
    assert_eq!(flows.len(), 30);
    for flow in flows {
        assert!(
            flow.completed.is_some() && flow.acked >= flow.completed,
            "{flow:?}"
        );
        assert!(
            Bytes(flow.stats().bytes_sent) >= flow.bytes + flow.bytes,
            "two senders"
        );
    }
    let sum: u64 = flows.iter().map(|flow| flow.bytes.get()).sum();
    assert_eq!(output.groups[0].goodput_bytes, Bytes(sum), "counted once");
}

/// Random networks, all whose connections pass the router in the middle.
#[test]
fn the_modes_agree_with_relays_everywhere() {
    let mut complete = 0;
    for seed in 0..120 {
        let mut spec = random_spec(seed);
        for (number, group) in spec.groups.iter_mut().enumerate() {
            let bytes = [3_000, 30_000, 1_000_000][(seed as usize + number) % 3];
            let mut own = Config {
                receive_buffer: group.sender.receive_buffer.min(Bytes(bytes)),
                send_buffer: Bytes(bytes),
                ..(*group.sender).clone()
            };
            own.fix_receive_buffer();
            group.relay = Some(Relay {
                node: NodeId(1),
                config: Arc::new(own),
            });
        }
        let output = outcome(&spec);
        let relayed = spec.groups.iter().map(|group| group.traffic.facts().relayable);
        for (group, _) in output.groups.iter().zip(relayed).filter(|(_, relayed)| *relayed) {
            for flow in &group.flows {
                assert!(
                    flow.completed.is_none() || flow.received >= flow.bytes,
                    "seed {seed}"
                );
                complete += u32::from(flow.completed.is_some());
            }
        }
    }
    println!("{complete} flows complete");
    assert!(complete > 5000);
}
