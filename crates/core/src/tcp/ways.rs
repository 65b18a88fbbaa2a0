//! Which of the [short ways](super::short) are open, and when that is worked out anew.
//!
//! **Source.** None: nothing of it can be seen from outside.
//! **Deviations.** None.

use super::config::{DelayedAck, TailLossProbe};
use super::{Connection, Control, State};
use crate::packet::Flags;
use crate::tcp::send::half::CaState;

/// Which short ways are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ways {
    /// What a segment must have of [`LOOKED_AT`](super::short::LOOKED_AT).
    pub(super) arrivals: u16,
    /// New acknowledgments without SACK blocks are quiet.
    pub(super) acks: bool,
    /// They are as in ns-2.
    pub(super) ns2: bool,
    /// A recovery is as in ns-2, and there is nothing else to say.
    pub(super) recovers: bool,
    /// Of these, those whose timestamp is not from before a retransmission.
    pub(super) undo: bool,
    /// What there is to send is full new segments and acknowledgments.
    pub(super) segments: bool,
    /// Data that leaves soon after data came may be an answer.
    pub(super) answers: bool,
    /// What an acknowledgment sets the retransmission slot to.
    pub(super) slot: Slot,
    /// Header bytes of a segment without SACK blocks.
    pub(super) overhead: u8,
    /// The right edge of the window moves by at least so much (RFC 9293 3.8.6.2.2).
    pub(super) step: u32,
    /// `max_window_segments` in bytes.
    pub(super) most: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The RTO.
    Rto,
    /// RFC 8985's probe timeout.
    Probe,
    /// To be asked.
    Any,
}

impl Ways {
    /// None is open.
    pub(super) const SHUT: Ways = Ways {
        arrivals: u16::MAX,
        acks: false,
        ns2: false,
        recovers: false,
        undo: false,
        segments: false,
        answers: false,
        slot: Slot::Any,
        overhead: 0,
        step: 0,
        most: 0,
    };
}

impl Connection {
    /// Works out which ways are open.
    #[inline]
    pub(super) fn open_ways(&mut self) {
        if let Some(sender) = &self.sender
            && sender.state != CaState::Open
            && !sender.zero_probe_out
            && self.shared.ways != Ways::SHUT
        {
            // The rest is as it was, or something would have shut it.
            (self.shared.ways.acks, self.shared.ways.segments) = (false, false);
            return;
        }
        self.shared.ways = self.ways();
    }

    #[inline(never)]
    pub(super) fn ways(&self) -> Ways {
        let shared = &self.shared;
        if self.state != State::Established || !shared.predict {
            return Ways::SHUT;
        }
        let (mut acks, mut undo, mut probed) = (true, false, false);
        if let Some(sender) = &self.sender {
            acks = sender.is_calm(shared);
            undo = acks && sender.may_undo(shared);
            probed = sender.zero_probe_out;
        }
        let predicted = !self.keep_alive && !shared.ecn && !probed;
        let expected = Flags::ACK.0 | (u16::from(shared.timestamps) * Flags::TIMESTAMPS.0);
        let silent = self.control == Control::None
            && !self.keep_alive_due
            && !shared.ecn
            && shared.cold.is_none()
            && self.receive.room.is_none();
        let ns2 = self.sender.as_ref().is_some_and(|sender| sender.is_ns2(shared));
        let config = &shared.config;
        let probing = shared.sack && shared.config.tail_loss_probe != TailLossProbe::Off;
        Ways {
            arrivals: if predicted { expected } else { u16::MAX },
            acks,
            ns2,
            recovers: ns2 && silent && predicted,
            undo,
            segments: silent && acks,
            answers: matches!(shared.config.delayed_ack, DelayedAck::Linux { .. }),
            slot: match shared.config.tail_loss_probe {
                _ if shared.config.rto_restart || shared.cold.is_some() => Slot::Any,
                _ if !probing => Slot::Rto,
                TailLossProbe::Rfc8985 if !shared.config.tail_loss_probe_restart => Slot::Probe,
                TailLossProbe::Off | TailLossProbe::Draft | TailLossProbe::Rfc8985 => Slot::Any,
            },
            overhead: config.header() as u8 + if shared.timestamps { 12 } else { 0 },
            step: u64::from(shared.mss).min(config.receive_buffer.get() / 2) as u32,
            most: match config.max_window_segments {
                Some(segments) => u64::from(segments) * u64::from(shared.mss),
                None => u64::MAX,
            },
        }
    }

    /// A way that is open is one that may be taken.
    pub(super) fn check_ways(&self) {
        let (kept, found) = (self.shared.ways, self.ways());
        let as_kept = Ways {
            arrivals: kept.arrivals,
            acks: kept.acks,
            undo: kept.undo,
            segments: kept.segments,
            // Of use to segments only: the path's MTU may have changed.
            step: if kept.segments { found.step } else { kept.step },
            most: if kept.segments { found.most } else { kept.most },
            ..found
        };
        assert!(
            kept == Ways::SHUT
                || kept == as_kept
                    && (kept.arrivals == u16::MAX || kept.arrivals == found.arrivals)
                    && (!kept.acks || (found.acks && (kept.undo || !found.undo)))
                    && (!kept.segments || found.segments),
            "open: {kept:?}, may be: {found:?}"
        );
    }
}
