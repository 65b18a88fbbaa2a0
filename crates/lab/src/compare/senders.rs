//! Which senders of data a variant changes, and on which side of the network they stand.
//!
//! A switch of `[tcp]` holds for both ends of a group, as in the simulation. Where data is sent from one end only, the other end has
//! nothing that most switches act upon, so the side of the data is where they are set. Requests are data, too: what repairs losses acts at
//! their end as well, and where they are long everything does. So does a shorter least timeout, which also shortens the delay of
//! acknowledgments in profiles of Linux (`tcp_delack_max`): without it at the receivers, senders would time out before these answer.

use crate::result::Senders;
use crate::scenario::{Resolved, Setting};
use fleetfoot_core::tcp::{Config, DelayedAck};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::spec::{GroupSpec, NodeId, Traffic, Transport};

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

/// The senders that `set` changes in `variant`, those of requests among them where it acts there, too.
pub(super) fn senders(described: &Resolved, variant: &Resolved, set: &Setting) -> Option<Senders> {
    let side = data_side(described, variant)?;
    Some(match side {
        Senders::Servers | Senders::Clients if act_at_both(described, variant, set) => Senders::Both,
        side => side,
    })
}

/// The side of the data whose senders are configured otherwise.
pub(super) fn data_side(described: &Resolved, variant: &Resolved) -> Option<Senders> {
    let mut found: Option<Senders> = None;
    for (before, _) in changed(described, variant) {
        let side = group_side(described, before);
        found = match (found, side) {
            (None, side) => side,
            (Some(found), Some(side)) if found != side => Some(Senders::Both),
            (found, _) => found,
        };
    }
    found
}

/// Whether a switch of `set` acts at both ends of a group that `variant` changes.
pub(super) fn act_at_both(described: &Resolved, variant: &Resolved, set: &Setting) -> bool {
    let keys = || set.iter().filter_map(|(path, _)| switch(path));
    keys().any(|key| acts_at_both(described, variant, key))
}

/// Whether the switch `key` of `[tcp]` acts at both ends of a group that `variant` changes.
pub(super) fn acts_at_both(described: &Resolved, variant: &Resolved, key: &str) -> bool {
    let key = key.split('.').next().unwrap_or(key);
    changed(described, variant).any(|(before, after)| {
        let sends = match requests(&before.traffic) {
            Requests::None => false,
            Requests::Short => REPAIRS.contains(&key),
            Requests::Long => true,
        };
        sends || key == "min_rto" && answers_sooner(&before.receiver, &after.receiver)
    })
}

/// The key under `[tcp]` that a path of a variant sets, for all traffic or for some.
pub(super) fn switch(path: &str) -> Option<&str> {
    path.strip_prefix("tcp.").or_else(|| {
        let (_, key) = path.strip_prefix("traffic.")?.split_once(".tcp.")?;
        Some(key)
    })
}

/// How a variant has the senders that it changes: those of another congestion control, if it changes that, or the first.
pub(super) fn changed_sender<'a>(described: &'a Resolved, variant: &'a Resolved) -> Option<&'a Config> {
    let controller = |sender: &Config| {
        let values = sender.congestion_control_values.as_ref();
        (sender.congestion_control, format!("{values:?}"))
    };
    let mut groups = changed(described, variant);
    let mut others = changed(described, variant);
    let found = groups.find(|(before, after)| controller(&before.sender) != controller(&after.sender));
    found.or_else(|| others.next()).map(|(_, after)| &*after.sender)
}

/// The groups whose senders' configuration differs, as described and as the variant has them.
fn changed<'a>(
    described: &'a Resolved,
    variant: &'a Resolved,
) -> impl Iterator<Item = (&'a GroupSpec, &'a GroupSpec)> {
    let groups = described.spec.groups.iter().zip(&variant.spec.groups);
    groups.filter(|(before, after)| {
        let same = format!("{:?} {:?}", before.sender, before.interface)
            == format!("{:?} {:?}", after.sender, after.interface);
        let transport = before.traffic.facts().transport;
        !same && !matches!(transport, Transport::Datagrams | Transport::Quic)
    })
}

/// What the ends of a group that ask send.
enum Requests {
    None,
    Short,
    /// More than a first window holds.
    Long,
}

fn requests(traffic: &Traffic) -> Requests {
    let of = |bytes: f64| match bytes > FIRST_WINDOW {
        true => Requests::Long,
        false => Requests::Short,
    };
    let fixed = |bytes: Bytes| of(bytes.get() as f64);
    match traffic {
        Traffic::RequestResponse { request, .. } => of(request.mean().unwrap_or(f64::INFINITY)),
        Traffic::Web(web) => fixed(web.request),
        Traffic::Streaming(streaming) => fixed(streaming.request),
        Traffic::Replay(replay) => {
            let units = || replay.connections.iter().flat_map(|one| &one.units);
            let most = |end: u8| {
                let own = units().filter(|unit| unit.from == end).map(|unit| unit.bytes);
                own.max().unwrap_or(Bytes::ZERO)
            };
            // Whichever end says less.
            match most(0).min(most(1)) {
                Bytes::ZERO => Requests::None,
                most => fixed(most),
            }
        }
        _ => Requests::None,
    }
}

/// Whether acknowledgments of Linux are delayed less than `before`, because the least timeout bounds their delay.
fn answers_sooner(before: &Config, after: &Config) -> bool {
    let longest = match after.delayed_ack {
        DelayedAck::Linux { max, .. } => max,
        DelayedAck::Off | DelayedAck::Standard { .. } => return false,
    };
    after.rto.bounds_acks && after.rto.min < before.rto.min && after.rto.min < longest
}

/// Switches that act upon a single segment that is lost, or that waits to be sent.
const REPAIRS: [&str; 14] = [
    "min_rto",
    "rto_restart",
    "tail_loss_probe",
    "tail_loss_probe_restart",
    "max_ack_delay",
    "learn_ack_delay",
    "rack",
    "early_retransmit",
    "limited_transmit",
    "frto",
    "thin_linear",
    "thin_dupack",
    "rdb",
    "nagle",
];

/// Bytes of a first window of ten segments.
const FIRST_WINDOW: f64 = 14_600.0;
