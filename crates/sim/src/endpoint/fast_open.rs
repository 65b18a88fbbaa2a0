//! TCP Fast Open between simulated hosts.
//!
//! Whoever opens a connection holds a cookie of the other host from an earlier visit, and every cookie is valid: what is simulated is the
//! visit that gains, not the first one, which has an ordinary handshake. **Source.** RFC 7413; the protocol is the core's (`tcp/open/fast_open.rs`).

use super::hosts::{Applications, Hosts};
use crate::observe::Observer;
use crate::spec::Interface;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::superpacket::group::Mode;
use fleetfoot_core::tcp::{Cookie, FastOpenRequest};
use fleetfoot_core::time::Instant;
use fleetfoot_core::units::Bytes;

/// What a client knows of a server that it has visited before. A SYN is one packet: where segments are cut, it has room for one of theirs.
pub(super) fn request(interface: &Interface) -> FastOpenRequest {
    let mode = interface.super_packets.map(|grouping| grouping.mode);
    let mss = match mode {
        Some(Mode::Segment { packet }) => Some(
            packet
                .saturating_sub(u32::from(Segment::IPV4_TCP_HEADER))
                .min(65_535) as u16,
        ),
        _ => None, // its own: both ends of a group have the same
    };
    FastOpenRequest {
        option: Cookie::new(&COOKIE, false),
        mss,
    }
}

/// Whether a SYN brings a cookie of the host it reaches.
pub(super) fn is_valid(syn: &Segment) -> bool {
    syn.cookie().is_some_and(|cookie| cookie.bytes() == COOKIE)
}

/// As long as the cookies of Linux.
const COOKIE: [u8; 8] = *b"a visit!";

impl<O: Observer> Hosts<'_, O> {
    /// The SYN brought data up to stream offset `in_order`.
    #[cold]
    pub(super) fn take_early<A: Applications<O>>(
        &mut self,
        apps: &mut A,
        now: Instant,
        index: u32,
        side: usize,
        in_order: u64,
    ) {
        let slot = &mut self.slots[index as usize];
        slot.ends[side].received = in_order;
        let complete = slot.ends[side].goal <= in_order;
        let from = FlowId(2 * index + (1 ^ side as u32));
        self.observer.on_receive(now, from, 0..in_order);
        if (side == 1 || slot.recorded) && self.window.contains(now) {
            let group = &mut self.groups[slot.group as usize];
            group.goodput += Bytes(in_order);
            group.goodput_per_connection[slot.number as usize] += Bytes(in_order);
        }
        if complete {
            apps.on_message(self, now, index, side);
        }
    }
}
