//! What connections learn about a path serves the next ones between the same two hosts (Initial Spreading from an
//! estimated rate): worked out by hand on a line of 8 Mbit/s and 10 ms each way, times in microseconds.

use crate::line;

use crate::common::random_spec;
use crate::line::{always, group, network, outcome};
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::tcp::{Config, InitialSpreading, InitialWindow, Profile};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::spec::{NodeId, Spec, Traffic};
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;
use std::sync::Arc;

/// When data segments left, and of which flow.
#[derive(Default)]
struct Departures(Vec<(FlowId, u64)>);

impl Observer for Departures {
    fn on_send(&mut self, now: Instant, flow: FlowId, segment: &Segment) {
        if segment.payload > 0 {
            self.0.push((flow, now.as_nanos() / 1_000));
        }
    }
}

fn config(change: impl Fn(&mut Config)) -> Arc<Config> {
    let mut config = Config {
        initial_spreading: InitialSpreading::Estimated,
        spreading_jiffy: Duration::ZERO,
        sack1_recovery: false,
        ..line::config()
    };
    change(&mut config);
    Arc::new(config)
}

/// Transfers of five segments from each of two hosts in turn, one every 500 ms, the first at 500 ms.
fn transfers(config: Arc<Config>) -> Spec {
    let mut spec = network(2, 3_300);
    let traffic = Traffic::Transfer {
        size: always(7_300.0),
        interarrival: always(0.5),
        count: Some(6),
    };
    spec.groups.push(group(2, traffic));
    spec.groups[0].sender = Arc::clone(&config);
    spec.groups[0].receiver = config;
    spec
}

/// When the data of each transfer left, from its first.
fn gaps(spec: &Spec) -> Vec<Vec<u64>> {
    outcome(spec); // in both modes
    let mut departures = Departures::default();
    run(spec, Mode::Fast, &mut departures, |_| ControlFlow::Continue(())).expect("a runnable scenario");
    let mut transfers: Vec<Vec<u64>> = Vec::new();
    let mut last = 0;
    for (_, at) in departures.0 {
        if transfers.is_empty() || at > last + 300_000 {
            transfers.push(Vec::new());
        }
        last = at;
        if let Some(transfer) = transfers.last_mut() {
            let first = transfer.first().copied().unwrap_or(at);
            transfer.push(if transfer.is_empty() { at } else { at - first });
        }
    }
    for transfer in &mut transfers {
        transfer[0] = 0;
    }
    transfers
}

#[test]
fn the_second_connection_between_two_hosts_knows_the_rate() {
    // The handshake of 20,104 us gives a tenth, 2,010 us, which is less than 4 ms; a packet takes 1,500.
    let bounded = [0, 0, 2_010, 4_020, 6_031];
    let known = [0, 0, 1_500, 3_000, 4_500];
    let spec = transfers(config(|_| {}));
    assert_eq!(
        gaps(&spec),
        [bounded, bounded, known, known, known, known],
        "each of two hosts learns for itself"
    );
    let forgetful = transfers(config(|config| config.spreading_memory = Duration::ZERO));
    assert_eq!(gaps(&forgetful), [bounded; 6]);
    // A second passes between two transfers of a host.
    let forgetful = transfers(config(|config| {
        config.spreading_memory = Duration::from_millis(900);
    }));
    assert_eq!(gaps(&forgetful), [bounded; 6]);
    let lone = transfers(config(|config| config.spreading_pair = false));
    assert_eq!(
        gaps(&lone),
        [[0, 2_010, 4_020, 6_031, 8_041]; 6],
        "nobody measures"
    );
}

#[test]
fn groups_share_what_they_learn_about_the_same_hosts() {
    let estimated = config(|_| {});
    let mut spec = transfers(Arc::clone(&estimated));
    spec.groups[0].pairs = vec![(NodeId(0), NodeId(2))];
    let mut second = group(
        2,
        Traffic::Transfer {
            size: always(7_300.0),
            interarrival: always(3.2),
            count: Some(1),
        },
    );
    second.name = "second".to_owned();
    second.pairs = vec![(NodeId(0), NodeId(2))];
    second.sender = Arc::clone(&estimated);
    second.receiver = estimated;
    spec.groups.push(second);
    spec.groups[0].stop = Some(Duration::from_millis(600));
    assert_eq!(
        gaps(&spec),
        [[0, 0, 2_010, 4_020, 6_031], [0, 0, 1_500, 3_000, 4_500]]
    );
}

#[test]
fn both_modes_of_the_engine_agree_whatever_is_learnt() {
    for seed in 0..60 {
        let mut spec = random_spec(seed);
        for (index, group) in spec.groups.iter_mut().enumerate() {
            let mut config = Config::profile(Profile::ALL[(seed as usize + index) % Profile::ALL.len()]);
            config.initial_spreading = InitialSpreading::Estimated;
            config.spreading_jiffy = Duration::ZERO;
            config.initial_window = InitialWindow::Segments(10);
            config.spreading_phase = index % 2 == 0;
            config.spreading_tail = seed % 2 == 0;
            config.spreading_jitter_percent = (seed % 3 * 50) as u8;
            if seed % 3 == 0 {
                config.spreading_memory = Duration::from_millis(700);
            }
            let config = Arc::new(config);
            group.sender = Arc::clone(&config);
            group.receiver = config;
        }
        let text = |mode| {
            let mut output = run(&spec, mode, &mut (), |_| ControlFlow::Continue(())).expect("runnable");
            output.events = 0;
            format!("{output:#?}")
        };
        let (fast, plain) = (text(Mode::Fast), text(Mode::Plain));
        let difference = fast.lines().zip(plain.lines()).find(|(one, other)| one != other);
        assert!(fast == plain, "seed {seed}: {difference:?}");
    }
}
