//! Data units: how many headers are looked at, where, and what that costs.
//!
//! A data unit is whatever has a header of its own: a packet or a larger frame, an acknowledgment, a handshake. A router
//! looks up each one that reaches it, and that is all its work here; hosts handle what they send and what they receive.
//! Everything is made from the counters of the links, so runs cost nothing more.
//!
//! **Energy.** [`LOOKUP_J`] per look-up, and [`LOOKUP_SOURCE`] says whose number that is. Divakaran et al. 2009 (section V-A) gives TCAMs more
//! than 10 W of a line card, most of it proportional to the number of searches; Panigrahy and Sharma (Hot Interconnects 2002)
//! give a system of four up to 60 W, 15 W each. **Assumed**: 100 million searches per second at that power. A modelled
//! or a small TCAM needs less, a whole router more per packet. Small differences mean nothing, ratios do.

use fleetfoot_core::queue::DropReason;
use fleetfoot_sim::output::{LinkOutput, RunOutput};
use fleetfoot_sim::spec::Spec;

/// Energy of one look-up (J): 10 W over 100 million searches per second.
pub const LOOKUP_J: f64 = 10.0 / 100e6;

/// Where that comes from, for every output.
pub const LOOKUP_SOURCE: &str = "100 nJ per look-up: 10 W of a line card for its TCAM (Divakaran et al. 2009, section V-A; Panigrahy and Sharma 2002: up to 15 W each) at 100 million searches per second, which is assumed";

/// What a node did in one run, between warm-up and end of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeCounts {
    /// Data units that reached it.
    pub received: u64,
    /// Data units that it put on its links.
    pub sent: u64,
}

/// What every node did, in the order of the network.
pub fn handled(spec: &Spec, run: &RunOutput) -> Vec<NodeCounts> {
    let mut nodes = vec![NodeCounts::default(); spec.nodes.len()];
    for (ends, link) in spec.links.iter().zip(&run.links) {
        nodes[ends.from.0 as usize].sent += link.packets;
        nodes[ends.to.0 as usize].received += link.packets.saturating_sub(lost_on_the_wire(link));
    }
    nodes
}

/// Data units that left the queue and did not reach the node at the far end: lost, or damaged, which its interface finds
/// before anything is looked up.
fn lost_on_the_wire(link: &LinkOutput) -> u64 {
    [DropReason::RandomLoss, DropReason::BitError]
        .iter()
        .filter_map(|&reason| link.drops.get(reason as usize))
        .flatten()
        .sum()
}

/// Look-ups of all routers in one run.
pub(crate) fn lookups(spec: &Spec, run: &RunOutput) -> u64 {
    let nodes = spec.nodes.iter().zip(handled(spec, run));
    nodes
        .filter(|(node, _)| !node.host)
        .map(|(_, handled)| handled.received)
        .sum()
}

/// Headers that hosts sent, acknowledgments included, per payload byte that arrived in order, over all flows.
pub(crate) fn headers_per_byte<'a>(spec: &Spec, runs: impl Iterator<Item = &'a RunOutput>) -> Option<f64> {
    let (mut headers, mut bytes) = (0, 0);
    for run in runs {
        let nodes = spec.nodes.iter().zip(handled(spec, run));
        headers += nodes
            .filter(|(node, _)| node.host)
            .map(|(_, handled)| handled.sent)
            .sum::<u64>();
        bytes += run.groups.iter().map(|group| group.goodput_bytes.0).sum::<u64>();
    }
    (bytes > 0).then(|| headers as f64 / bytes as f64)
}
