//! The state of ns-2's Sack1 agent; what it does is in `ns2_sack1`.
//!
//! **Source.** ns-2.35: `tcp/tcp-sack1.cc`, `tcp/tcp.cc`.
//! **Deviations.** None known.

use crate::tcp::Shared;
use crate::tcp::config::{Config, EarlyRetransmit, Prr, TailLossProbe};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use serde::{Deserialize, Serialize};

/// The agent's own state; the names in brackets are ns-2's.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(in crate::tcp) struct Sack1 {
    /// Next offset to send, below SND.NXT after a timeout (`t_seqno_`).
    pub(super) next: u64,
    /// No hole below it is sent again (`h_seqno_`).
    pub(super) high_rxt: u64,
    /// End of the segment that is timed and when it left (`rtt_seq_`, `rtt_ts_`).
    pub(super) timed: Option<(u64, Instant)>,
    /// Duplicates since SND.UNA moved (`dupacks_`).
    pub(super) dup_acks: u32,
    /// Segments in flight by the agent's count, also below zero (`pipe_`).
    pub(super) pipe: i32,
    /// A timeout happened and nothing was acknowledged since (`timeout_`).
    pub(super) timeout: bool,
    /// The fast retransmit is to be sent.
    pub(super) first_due: bool,
    /// Limited transmit may send one segment (`send_one`).
    pub(super) one_due: bool,
}

impl Sack1 {
    /// The agent if `config` asks for it and nothing it does not know is on.
    pub(super) fn new(config: &Config, sack: bool) -> Option<Box<Sack1>> {
        let alone = !config.rack
            && !config.fack
            && config.prr == Prr::Off
            && config.tail_loss_probe == TailLossProbe::Off
            && config.early_retransmit == EarlyRetransmit::Off;
        (config.sack1_recovery && sack && alone).then(|| {
            Box::new(Sack1 {
                next: 1,
                ..Sack1::default()
            })
        })
    }
}

impl Sack1 {
    /// New data is what is to be sent next, if anything.
    pub(super) const fn is_calm(&self, nxt: u64) -> bool {
        self.next == nxt && self.dup_acks == 0 && !self.first_due
    }

    /// A new segment that ends at `end` left.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, end: u64) {
        self.next = end;
        if self.timed.is_none() {
            self.timed = Some((end, now));
        }
    }

    /// The RTT, if what is timed is acknowledged.
    #[inline(always)]
    pub(super) fn sample(&mut self, now: Instant, una: u64, shared: &mut Shared) -> Option<Duration> {
        let (_, at) = self.timed.filter(|&(end, _)| una >= end)?;
        self.timed = None;
        let rtt = now.since(at);
        shared.sample(now, rtt, true);
        Some(rtt)
    }
}
