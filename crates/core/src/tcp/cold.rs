//! State that most connections never need, behind one pointer.
//!
//! Made when an ICMP error arrives, a path MTU is learnt, Fast Open or urgent data is used, or an option is set. The
//! common path asks at most whether it exists.

use super::fastopen::FastOpen;
use super::icmp::NetworkError;
use super::mtu::Mtu;
use super::urgent::Urgent;
use crate::packet::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::time::{Duration, Instant};

/// What is rarely needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Cold {
    /// Last ICMP error that did not end the connection.
    pub(super) soft_error: Option<NetworkError>,
    /// Sequence number of a reset that answers a stray segment.
    pub(super) reset_at: Option<SeqNumber>,
    pub(super) mtu: Mtu,
    pub(super) fast_open: FastOpen,
    pub(super) urgent: Urgent,
    /// `TCP_USER_TIMEOUT`.
    pub(super) user_timeout: Option<Duration>,
    /// `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`.
    pub(super) keep_alive: Option<super::KeepAlive>,
    /// `TCP_LINGER2`.
    pub(super) fin_wait2: Option<Duration>,
    /// `TCP_SYNCNT`.
    pub(super) syn_retries: Option<u8>,
    /// `TCP_MAXSEG`.
    pub(super) max_segment: Option<u32>,
    /// Type of service, with the ECN bits clear.
    pub(super) tos: Option<u8>,
    /// Time to live.
    pub(super) ttl: Option<u8>,
    /// When probing an unresponsive peer began (zero window).
    pub(super) probing_since: Option<Instant>,
    /// Challenge ACKs left in the second that ends at `challenge_until`.
    pub(super) challenge_budget: u16,
    pub(super) challenge_until: Instant,
    /// When the last one left.
    pub(super) challenged_at: Option<Instant>,
    /// ICMP errors that quoted nothing in flight.
    pub(super) icmp_ignored: u32,
    /// Data will be written as soon as the handshake is over.
    pub(super) writer_waits: bool,
    /// The owner has taken it from the listener.
    pub(super) accepted: bool,
}

impl Cold {
    /// Puts what was set per connection into the header of a segment of ours at offset `seq`.
    #[cold]
    pub(super) fn decorate(&self, seq: u64, segment: &mut Segment) {
        if let Some(tos) = self.tos {
            segment.tos = tos & !3 | segment.tos & 3;
        }
        if let Some(ttl) = self.ttl {
            segment.ttl = ttl;
        }
        if self.mtu.may_fragment {
            segment.flags = segment.flags.without(Flags::DF);
        }
        self.urgent.mark(seq, segment);
    }
}
