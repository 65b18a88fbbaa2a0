//! Hosts whose own link is the slowest of a path: what waits there holds their connections back (TCP Small Queues).
//!
//! Where another link of the path is slower, hardly anything waits in the host but the rest of a long burst, as at the end of a recovery that
//! found most of a window lost: there connections look in long bursts only. So it is decided for each conversation, when it opens, by the
//! rates of its path.

use super::end::Heeds;
use super::hosts::Hosts;
use super::{Opening, Slot};
use crate::observe::Observer;
use crate::routing::PathStart;
use crate::spec::NodeId;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::link::LinkRate;
use fleetfoot_core::tcp::Config;
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

impl<O: Observer> Hosts<'_, O> {
    /// Lets the ends of a new conversation heed what waits in their hosts.
    pub(super) fn heed_hosts(&self, slot: &mut Slot, opening: &Opening) {
        let spec = &self.spec.groups[opening.group as usize];
        if spec.interface.super_packets.is_some() {
            return; // what they wait for is not the link
        }
        let heeds: [Heeds; 2] =
            std::array::from_fn(|side| self.heeds_host(slot.config(spec, side), opening.paths[side]));
        for (end, heeds) in slot.ends.iter_mut().zip(heeds) {
            end.heeds_host = heeds;
        }
    }

    /// Whether the first link of a path is the host's own, and whether none is slower.
    fn heeds_host(&self, config: &Config, path: PathStart) -> Heeds {
        if config.path.small_queues == Bytes::MAX {
            return Heeds::Never;
        }
        let mut links = self
            .paths
            .links(path)
            .map(|link| &self.spec.links[link.0 as usize]);
        let Some(own) = links.next().filter(|own| own.host) else {
            return Heeds::Never;
        };
        let LinkRate::Constant(rate) = own.rate else {
            return Heeds::Never;
        };
        if links.all(|link| matches!(link.rate, LinkRate::Constant(other) if other >= rate)) {
            return Heeds::Always;
        }
        Heeds::Bursts
    }

    /// Calls `see` with the hosts at which connections of some group heed what waits.
    pub(crate) fn each_held_at_host(&self, mut see: impl FnMut(NodeId)) {
        let configs = || {
            let groups = self.spec.groups.iter();
            groups.flat_map(|group| [&group.sender, &group.receiver])
        };
        for path in self.paths.starts() {
            let first = self.paths.links(path).next();
            if let Some(first) = first
                && configs().any(|config| self.heeds_host(config, path) == Heeds::Always)
            {
                see(self.spec.links[first.0 as usize].from);
            }
        }
    }

    /// Data of a flow left the queue of its host.
    pub(super) fn left_host(&mut self, now: Instant, flow: FlowId, bytes: u32) {
        let end = &mut self.slots[(flow.0 >> 1) as usize].ends[(flow.0 & 1) as usize];
        let Some(connection) = end
            .connection
            .as_mut()
            .filter(|_| end.heeds_host == Heeds::Always)
        else {
            return;
        };
        connection.left_host(now, bytes);
        end.arm(now, flow.0, &mut self.network, &mut self.armed);
    }
}
