//! Which senders of data a variant changes, and on which side of the network they stand.

use crate::result::Senders;
use crate::scenario::Resolved;
use fleetfoot_sim::spec::{GroupSpec, NodeId, Transport};

/// The side from which the data of a group is sent.
pub(super) fn group_side(described: &Resolved, group: &GroupSpec) -> Option<Senders> {
    let name = |node: NodeId| described.spec.nodes[node.0 as usize].name.as_str();
    let left = |node: NodeId| name(node).starts_with("left-") || name(node).starts_with("enter-");
    if !matches!(described.network, "dumbbell" | "chain" | "parking-lot") {
        return Some(Senders::Hosts);
    }
    let mut sides = group.pairs.iter().map(|&(from, _)| match left(from) {
        true => Senders::Servers,
        false => Senders::Clients,
    });
    let first = sides.next()?;
    Some(if sides.all(|side| side == first) {
        first
    } else {
        Senders::Both
    })
}

/// The senders whose configuration differs.
pub(super) fn senders(described: &Resolved, variant: &Resolved) -> Option<Senders> {
    let mut found: Option<Senders> = None;
    for (before, after) in described.spec.groups.iter().zip(&variant.spec.groups) {
        let same = format!("{:?} {:?}", before.sender, before.interface)
            == format!("{:?} {:?}", after.sender, after.interface);
        let transport = before.traffic.facts().transport;
        if same || matches!(transport, Transport::Datagrams | Transport::Quic) {
            continue;
        }
        let side = group_side(described, before);
        found = match (found, side) {
            (None, side) => side,
            (Some(found), Some(side)) if found != side => Some(Senders::Both),
            (found, _) => found,
        };
    }
    found
}
