//! A link of the network under packets whose arrivals are known, such as those of a capture: what the simulator does with them.
//!
//! The link is that of a run, with its queue, its random streams and the same events; in place of hosts a list says which packet
//! comes when. So a queue that worked on real packets can be held to the simulated one, packet by packet.

use crate::error::RunError;
use crate::event::{EventKind, EventQueue};
use crate::network::{Mode, Network, Slab, Window};
use crate::observe::Observer;
use crate::output::LinkOutput;
use crate::routing::{PathStart, Paths};
use crate::spec::{LinkSpec, NodeId, NodeSpec, Spec, World};
use fleetfoot_core::flow::{FlowId, FlowTable};
use fleetfoot_core::packet::Segment;
use fleetfoot_core::time::{Duration, Instant};

/// A packet that comes to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// Whose it is.
    pub flow: FlowId,
    /// Its headers.
    pub segment: Segment,
}

/// Sends packets over `link`, a direction of a link of `spec`, each at its time and in their order, and carries the link on to `until`.
/// `flows` has the keys of their flows. The observer hears of link 0; the counters are those up to `until`.
///
/// # Errors
/// No queue discipline has the name, or the time is longer than a run can be.
///
/// # Panics
/// In debug builds, if the packets are not in order of time.
pub fn forward<O: Observer>(
    spec: &Spec,
    link: &LinkSpec,
    flows: FlowTable,
    arrivals: &[Arrival],
    until: Instant,
    mode: Mode,
    observer: &mut O,
) -> Result<LinkOutput, RunError> {
    let node = |name: &str| NodeSpec {
        name: name.to_owned(),
        host: true,
    };
    let spec = Spec {
        nodes: vec![node("near"), node("far")],
        links: vec![LinkSpec {
            from: NodeId(0),
            to: NodeId(1),
            ..link.clone()
        }],
        groups: Vec::new(),
        duration: until.since(Instant::ZERO),
        warmup: Duration::ZERO,
        drain: Duration::ZERO,
        plugins: spec.plugins,
        seed: spec.seed,
        bins: None,
        world: World::Simulator,
    };
    let end = until.saturating_add(TICK);
    let longest = EventQueue::longest(1);
    if end > longest {
        return Err(RunError::TooLong(longest.since(Instant::ZERO)));
    }
    let window = Window {
        from: Instant::ZERO,
        to: end,
    };
    let mut paths = Paths::new(&spec);
    let path = paths.find(&spec, NodeId(0), NodeId(1)).unwrap_or(PathStart(0));
    let mut network = Network::new(&spec, mode, window, end)?;
    network.set_paths(&paths, &[false]);
    network.flows = flows;
    network.inside = end;
    let mut driven = Driven {
        network,
        packets: Slab::new(),
        observer,
    };
    for arrival in arrivals.iter().take_while(|arrival| arrival.at <= until) {
        // What happens at the same moment comes later: the link itself lets packets leave before others come.
        if arrival.at > Instant::ZERO {
            driven.run_until(arrival.at - TICK);
        }
        let Driven {
            network,
            packets,
            observer,
        } = &mut driven;
        network.send(
            packets,
            *observer,
            arrival.at,
            path,
            arrival.flow,
            arrival.segment,
        );
        network.notices.clear();
    }
    driven.run_until(until);
    let Driven {
        mut network,
        observer,
        ..
    } = driven;
    network.mark(observer, end, |meter, statistics, busy| {
        meter.rest.after = *statistics;
        meter.busy = busy;
    });
    network.weigh_busy(window.from, end);
    let output = network.into_meters().next().map(crate::network::Meter::output);
    Ok(output.unwrap_or_default())
}

/// The network and what goes on in it.
struct Driven<'o, O> {
    network: Network,
    packets: Slab,
    observer: &'o mut O,
}

impl<O: Observer> Driven<'_, O> {
    /// Processes every event up to `last`. What reaches the far end is gone.
    fn run_until(&mut self, last: Instant) {
        loop {
            if self.network.next_arrival().is_some() {
                let most = match self.network.mode {
                    Mode::Fast => MOST_PASSED,
                    Mode::Plain => 1,
                };
                let passed = self
                    .network
                    .pass(&mut self.packets, self.observer, most, Instant::FAR_FUTURE);
                if let Some((_, id)) = passed.at_end {
                    self.packets.free(id);
                }
            } else if let Some(key) = self.network.pop_until(last) {
                if key.kind() == EventKind::Departure {
                    self.network.on_departure(self.observer, key.place(), key.at());
                }
            } else {
                return;
            }
            self.network.notices.clear();
        }
    }
}

/// The smallest time.
const TICK: Duration = Duration::from_nanos(1);

/// Arrivals at a time.
const MOST_PASSED: u64 = 1024;
