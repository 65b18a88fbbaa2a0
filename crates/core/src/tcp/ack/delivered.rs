//! What one acknowledgment delivered, as the parts of the sender are informed of it; `delivery` finds it out.
//!
//! **Source.** RFC 9293 3.10.7.4; RFC 2018 5; RFC 2883 5.
//! **Deviations.** None known.

use crate::cc::RateSample;
use crate::time::{Duration, Instant};

/// What one acknowledgment delivered.
///
/// It stays in registers as long as nothing refers to it: who calls a function that wants it in memory gives it a copy.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Delivery {
    /// Newly cumulatively acknowledged, whether SACKed before or not.
    pub(in crate::tcp) acked: u64,
    /// Newly SACKed.
    pub(in crate::tcp) sacked: u64,
    /// Newly delivered: `sacked` and what `acked` had not been SACKed.
    pub(in crate::tcp) delivered: u64,
    /// Segments newly delivered.
    pub(in crate::tcp) segments: u32,
    pub(in crate::tcp) rtt: Option<Duration>,
    /// RTT of the segment sent last among those delivered.
    pub(in crate::tcp) newest_rtt: Option<Duration>,
    /// When that left which was sent last of those delivered.
    pub(in crate::tcp) newest_tx: Option<Instant>,
    /// What it says of the path's rate, if the controller asks.
    pub(in crate::tcp) rate: Option<RateSample>,
    /// A segment never retransmitted was acknowledged or SACKed that was sent before the timeout.
    pub(in crate::tcp) original: bool,
    /// A segment sent after the timeout was SACKed.
    pub(in crate::tcp) beyond: bool,
    /// The part of `delivered` that duplicate ACKs without SACK stood for.
    pub(in crate::tcp) counted: u64,
    pub(in crate::tcp) retransmitted: bool,
    pub(in crate::tcp) dsack: bool,
    pub(in crate::tcp) advanced: bool,
    pub(in crate::tcp) duplicate: bool,
    /// It acknowledges a part of what a recovery of ns-2's agent waits for.
    pub(in crate::tcp) partial: bool,
}
