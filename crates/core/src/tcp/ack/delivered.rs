//! What one acknowledgment delivered, as the parts of the sender are informed of it; `delivery` finds it out.
//!
//! **Source.** RFC 9293 3.10.7.4; RFC 2018 5; RFC 2883 5.
//! **Deviations.** None known.

use crate::cc::RateSample;
use crate::time::{Duration, Instant};

/// What one acknowledgment delivered.
///
/// The compiler keeps it in registers as long as nothing takes a reference to it: a function that wants a reference is given one to a copy.
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
    /// When the segment sent last among those delivered left.
    pub(in crate::tcp) newest_tx: Option<Instant>,
    /// The delivery rate that it shows, if the controller asks for rates.
    pub(in crate::tcp) rate: Option<RateSample>,
    /// Whether a segment that was sent before the timeout and never retransmitted was acknowledged or SACKed.
    pub(in crate::tcp) original: bool,
    /// Whether a segment sent after the timeout was SACKed.
    pub(in crate::tcp) beyond: bool,
    /// The part of `delivered` that duplicate ACKs without SACK stood for.
    pub(in crate::tcp) counted: u64,
    /// What this duplicate ACK without SACK stands for.
    pub(in crate::tcp) emulated: u64,
    /// First offset of the lowest segment that gave an RTT sample by SACK; 1 if the acknowledgment itself gave it, 0 without any.
    pub(in crate::tcp) first_sacked: u64,
    /// End of the highest segment that gave one by SACK.
    pub(in crate::tcp) last_sacked: u64,
    /// What a duplicate ACK without SACK stands for, if the controller asks for rates.
    pub(in crate::tcp) credited: u64,
    pub(in crate::tcp) retransmitted: bool,
    pub(in crate::tcp) dsack: bool,
    /// Whether what a D-SACK would report was acknowledged before, or sent again.
    pub(in crate::tcp) resent: bool,
    pub(in crate::tcp) advanced: bool,
    /// Whether it acknowledges a record whole, not only a part of the first.
    pub(in crate::tcp) whole: bool,
    pub(in crate::tcp) duplicate: bool,
    /// Whether it acknowledges a part of what a recovery of ns-2's agent waits for.
    pub(in crate::tcp) partial: bool,
}
