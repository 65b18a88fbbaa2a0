//! State that most connections never need, behind one pointer.
//!
//! Made when an ICMP error arrives, a path MTU is learnt, Fast Open or urgent data is used, or an option is set. The
//! common path asks at most whether it exists.

use crate::packet::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::tcp::open::fast_open::FastOpen;
use crate::tcp::path::mtu::Mtu;
use crate::tcp::receive::urgent::Urgent;
use crate::tcp::state::error::NetworkError;
use crate::time::{Duration, Instant};

/// What is rarely needed.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Cold {
    /// Last ICMP error that did not end the connection.
    pub(in crate::tcp) soft_error: Option<NetworkError>,
    /// Sequence number of a reset that answers a stray segment.
    pub(in crate::tcp) reset_at: Option<SeqNumber>,
    pub(in crate::tcp) mtu: Mtu,
    pub(in crate::tcp) fast_open: FastOpen,
    pub(in crate::tcp) urgent: Urgent,
    /// `TCP_USER_TIMEOUT`.
    pub(in crate::tcp) user_timeout: Option<Duration>,
    /// `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`.
    pub(in crate::tcp) keep_alive: Option<crate::tcp::KeepAlive>,
    /// `TCP_LINGER2`.
    pub(in crate::tcp) fin_wait2: Option<Duration>,
    /// `TCP_SYNCNT`.
    pub(in crate::tcp) syn_retries: Option<u8>,
    /// `TCP_MAXSEG`.
    pub(in crate::tcp) max_segment: Option<u32>,
    /// Type of service, with the ECN bits clear.
    pub(in crate::tcp) tos: Option<u8>,
    /// Time to live.
    pub(in crate::tcp) ttl: Option<u8>,
    /// When probing an unresponsive peer began (zero window).
    pub(in crate::tcp) probing_since: Option<Instant>,
    /// Challenge ACKs left in the second that ends at `challenge_until`.
    pub(in crate::tcp) challenge_budget: u16,
    pub(in crate::tcp) challenge_until: Instant,
    /// When the last one left.
    pub(in crate::tcp) challenged_at: Option<Instant>,
    /// ICMP errors that quoted nothing in flight.
    pub(in crate::tcp) icmp_ignored: u32,
    /// Data will be written as soon as the handshake is over.
    pub(in crate::tcp) writer_waits: bool,
    /// `TCP_DEFER_ACCEPT`: after how many timeouts an acknowledged SYN-ACK is sent again; 0: it is not deferred.
    pub(in crate::tcp) deferral: u8,
    /// The owner has taken it from the listener.
    pub(in crate::tcp) accepted: bool,
}

impl Cold {
    /// Puts what was set per connection into the header of a segment of ours at offset `seq`.
    #[cold]
    pub(in crate::tcp) fn decorate(&self, seq: u64, segment: &mut Segment) {
        if let Some(tos) = self.tos {
            segment.tos = tos & !3 | segment.tos & 3;
        }
        if let Some(ttl) = self.ttl {
            segment.ttl = ttl;
        }
        if self.mtu.may_fragment() {
            segment.flags = segment.flags.without(Flags::DF);
        }
        self.urgent.mark(seq, segment);
    }
}
