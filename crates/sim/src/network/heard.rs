//! Sending over a link whose queue is in the host: the connection hears what of its data waits there (TCP Small Queues).

use super::{Body, Network, Notice, Slab};
use crate::observe::Observer;
use crate::routing::PathStart;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::tcp::Connection;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// So many segments at once are no long burst: Linux lets two groups for segmentation offload of up to 64 kB wait.
pub(crate) const BURST: u32 = 64;

/// What is known of a segment before it comes to the link.
pub(super) struct Coming {
    payload: u32,
    /// When its transmission can begin; `None`: the link is no FIFO link.
    begins: Option<Instant>,
    /// Notices there were.
    noticed: usize,
}

impl Network {
    /// As [`Network::send_all`], over a link whose queue is in the host.
    #[cold]
    #[inline(never)]
    pub(crate) fn send_heard<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        now: Instant,
        path: PathStart,
        flow: FlowId,
        connection: &mut Connection,
    ) -> u32 {
        self.send_all::<O, true>(packets, observer, now, path, flow, connection, u32::MAX)
    }

    /// As [`Network::send_all`], over a host's own link that is not the slowest of the path: beyond [`BURST`] segments at once the connection is
    /// told when the link will have come to each, as if nothing else waited there.
    #[inline(always)]
    pub(crate) fn send_burst<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        now: Instant,
        path: PathStart,
        flow: FlowId,
        connection: &mut Connection,
    ) -> u32 {
        let mut sent = 0;
        if connection.waits_at_host().is_none_or(|last| last <= now) {
            sent = self.send_all::<O, false>(packets, observer, now, path, flow, connection, BURST);
            if sent < BURST {
                return sent;
            }
        }
        sent + self.go_on_with_burst(packets, observer, now, path, flow, connection, sent)
    }

    /// Sends what a connection allows of a long burst, of which `before` segments were sent just now.
    #[cold]
    #[inline(never)]
    #[expect(
        clippy::too_many_arguments,
        reason = "parts of the world that are borrowed one by one"
    )]
    pub(crate) fn go_on_with_burst<O: Observer>(
        &mut self,
        packets: &mut Slab,
        observer: &mut O,
        now: Instant,
        path: PathStart,
        flow: FlowId,
        connection: &mut Connection,
        before: u32,
    ) -> u32 {
        let first = self.hops[path.0 as usize];
        let rate = self.links[first as usize].own_rate;
        let mut full = Duration::ZERO;
        let mut sent = 0;
        loop {
            let (packet, free) = packets.reserve();
            if connection.poll_segment(now, &mut packet.segment).is_none() {
                return sent;
            }
            sent += 1;
            let payload = packet.segment.payload;
            let takes = rate.time_for(Bytes(u64::from(packet.segment.len())));
            if sent == 1 {
                full = takes;
            }
            let id = std::mem::replace(free, packet.buf.0);
            packet.enqueued_at = now;
            packet.flow = flow;
            observer.on_send(now, flow, &packet.segment);
            if self.enter(observer, first, path.0 + 1, now, id, packet) {
                packets.free(id);
            }
            let last = connection.waits_at_host().filter(|&last| last > now);
            let begins = match last {
                Some(last) => last + takes,
                None => now + full.saturating_mul(u64::from(before)),
            };
            if payload > 0 && begins > now {
                connection.wait_at_host(payload, Some(begins));
            }
        }
    }

    /// Before a segment with `payload` bytes comes to a link.
    pub(super) fn coming(&self, link: u32, payload: u32) -> Coming {
        let begins = match &self.links[link as usize].body {
            Body::Fifo(fifo) => Some(fifo.free_at()),
            Body::Link(_) => None,
        };
        Coming {
            payload,
            begins,
            noticed: self.notices.len(),
        }
    }

    /// Tells a connection what waits in its host after a segment came to the link.
    pub(super) fn tell_what_waits(
        &mut self,
        now: Instant,
        flow: FlowId,
        coming: &Coming,
        connection: &mut Connection,
    ) {
        let Coming {
            payload,
            begins,
            noticed,
        } = *coming;
        if payload == 0 {
            return;
        }
        if let Some(begins) = begins {
            // A notice says that it was dropped.
            if begins > now && self.notices.len() == noticed {
                connection.wait_at_host(payload, Some(begins));
            }
            return;
        }
        let mut left = 0;
        let mut index = 0;
        self.notices.retain(|notice| {
            index += 1;
            match notice {
                Notice::Left(of, bytes) if index > noticed && *of == flow => {
                    left += bytes;
                    false
                }
                _ => true,
            }
        });
        if left < payload {
            connection.wait_at_host(payload - left, None);
        } else if left > payload {
            connection.left_host(now, left - payload);
        }
    }
}
