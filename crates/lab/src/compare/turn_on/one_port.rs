//! A port has one queue. Linux spaces the packets of its TCP by the queue `fq` of the port that sends, unless the congestion control asks TCP to do it
//! (`tcp_pacing_status`; bbr does), so no other queue can be had there beside it.

use super::super::{Plan, Planned};
use crate::scenario::{Medium, Resolved};
use fleetfoot_core::tcp::Pacing;
use fleetfoot_sim::spec::{LinkSpec, NodeId};

/// The place where `planned` would need both at one port.
pub(in crate::compare) fn clash(plan: &Plan, planned: &Planned) -> Option<String> {
    let sending = senders(&planned.resolved);
    let at_port = |&index: &usize| {
        let link: Option<&LinkSpec> = planned.resolved.spec.links.get(index);
        let info = plan.described.links_info.get(index);
        let own = match info.and_then(|info| info.medium) {
            None | Some(Medium::Host | Medium::Ethernet | Medium::Switch) => true,
            // In the driver of a radio, or in the modem.
            Some(_) => false,
        };
        own && link.is_some_and(|link| sending.contains(&link.from))
    };
    let mut places = planned.places.iter().filter_map(|&place| plan.places.get(place));
    places
        .find(|place| place.links.iter().any(at_port))
        .map(super::super::place::Place::described)
}

/// Hosts whose `fq` spaces what they send.
fn senders(variant: &Resolved) -> Vec<NodeId> {
    let groups = variant.spec.groups.iter();
    let spaced = groups.filter(|group| {
        let own = group.sender.congestion_control;
        group.sender.pacing == Pacing::Linux && !own.starts_with("bbr")
    });
    spaced
        .flat_map(|group| group.pairs.iter().map(|&(from, _)| from))
        .collect()
}

/// Why both cannot be had.
pub(in crate::compare) fn said(place: &str) -> String {
    format!(
        "Cannot be had beside the queue at {place}: Linux spaces packets by the queue fq at the port that sends them, and a port has one queue."
    )
}
