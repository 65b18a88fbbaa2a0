//! Counters of a connection. One table makes the fields, their sums and differences, and the list from which
//! results, checks and tables take the counters that they report.

use crate::tcp::state::lazy::Blank;
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// A counter of [`Stats`] with its name and definition.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// Name of the field.
    pub name: &'static str,
    /// Definition: a sentence.
    pub definition: &'static str,
    /// Whether results, checks and tables show it.
    pub reported: bool,
    /// Its value; times are in nanoseconds.
    pub value: fn(&Stats) -> u64,
}

/// Makes [`Stats`] from rows of name, type and use: `reported` in results, checks and tables; `kept` for other purposes;
/// `longest` for a maximum in place of a sum.
macro_rules! counters {
    ($($(#[doc = $definition:literal])+ $name:ident: $type:ty, $use:ident;)+) => {
        /// Counters of a connection.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Stats { $($(#[doc = $definition])+ pub $name: $type,)+ }

        impl Stats {
            /// All counters, in the order in which results show them.
            pub const COUNTERS: &[Counter] = &[$(Counter {
                name: stringify!($name),
                definition: concat!($($definition),+),
                reported: counters!(@reported $use),
                value: |stats| stats.$name.number(),
            },)+];

            /// Counters from their numbers, in the order of [`Stats::COUNTERS`].
            pub fn of_numbers(mut next: impl FnMut() -> u64) -> Stats {
                Stats { $($name: <$type as Count>::of(next()),)+ }
            }

            /// The counters of two connections together; of the longest recovery the longer.
            #[must_use]
            pub fn plus(&self, other: &Stats) -> Stats {
                Stats { $($name: counters!(@plus $use self.$name, other.$name),)+ }
            }

            /// What was counted after `before`, an earlier state of the same counters. The longest recovery is taken as it is, if
            /// anything was sent again since.
            #[must_use]
            pub fn since(&self, before: &Stats) -> Stats {
                let mut since = Stats { $($name: counters!(@since $use self.$name, before.$name),)+ };
                if since.retransmits == 0 {
                    since.longest_recovery = Duration::ZERO;
                }
                since
            }
        }

        impl Blank for Stats {
            fn blank() -> &'static Stats {
                static BLANK: Stats = Stats { $($name: <$type>::ZERO,)+ };
                &BLANK
            }
        }
    };
    (@reported reported) => { true };
    (@reported $use:ident) => { false };
    (@plus longest $one:expr, $other:expr) => { $one.max($other) };
    (@plus $use:ident $one:expr, $other:expr) => { Count::plus($one, $other) };
    (@since longest $now:expr, $before:expr) => { $now };
    (@since $use:ident $now:expr, $before:expr) => { $now - $before };
}

counters! {
    /// Payload bytes sent, retransmissions and probes included.
    bytes_sent: u64, kept;
    /// Time from the first transmission of each segment to the ACK of its last byte, summed.
    ack_latency_sum: Duration, kept;
    /// Segments in the sum of ACK latencies.
    ack_latency_count: u64, kept;
    /// Data segments sent, first transmissions and retransmissions.
    segments_sent: u64, kept;
    /// Retransmitted segments, probes included.
    retransmits: u32, reported;
    /// Expiries of the retransmission timer, SYNs included.
    timeouts: u32, reported;
    /// Expiries of the retransmission timer that the sender found to have been unnecessary.
    spurious_timeouts: u32, reported;
    /// Tail loss probes sent.
    probes: u32, reported;
    /// Tail loss probes that the sender found to have been unnecessary.
    spurious_probes: u32, reported;
    /// Zero-window probes sent: how often a sender asked whether the peer's closed window had opened.
    zero_window_probes: u32, reported;
    /// Payload bytes received more than once.
    redundant_bytes: u64, reported;
    /// Tail loss probes that carried new data.
    new_probes: u32, kept;
    /// Fast recoveries entered.
    recoveries: u32, kept;
    /// Window reductions without retransmission: ECN, delay, a probe that repaired a loss.
    window_reductions: u32, kept;
    /// Fast recoveries, timeouts and reductions without loss within `Config::measured`: loss events of the throughput formula.
    congestion_events: u32, kept;
    /// ACKs received that report marks: with ECE, or with more marked packets than before (Accurate ECN).
    ecn_echoes: u32, kept;
    /// Segments received with CE.
    ce_received: u32, kept;
    /// Window reductions taken back.
    undos: u32, kept;
    /// D-SACK blocks received.
    dsacks: u32, kept;
    /// Challenge ACKs sent (RFC 5961).
    challenge_acks: u32, kept;
    /// SACK blocks that name what cannot be: unsent, backwards, empty.
    bad_sacks: u32, kept;
    /// Longest time from the first transmission of a segment that was sent again to its ACK.
    longest_recovery: Duration, longest;
    /// Packets that carried older data along (redundant data bundling).
    rdb_packets: u32, kept;
    /// Payload bytes that bundles carried along.
    rdb_bytes: u64, kept;
    /// Losses that bundles repaired, as far as they were found.
    rdb_losses: u32, kept;
}

impl Stats {
    /// What a connection without losses counts; everything else is zero.
    #[must_use]
    pub fn without_losses(
        bytes_sent: u64,
        segments_sent: u64,
        ack_latency_sum: Duration,
        ack_latency_count: u64,
    ) -> Stats {
        Stats {
            bytes_sent,
            segments_sent,
            ack_latency_sum,
            ack_latency_count,
            ..Stats::default()
        }
    }

    /// Whether everything is zero but what [`Stats::without_losses`] takes.
    #[must_use]
    pub fn is_without_losses(&self) -> bool {
        *self
            == Stats::without_losses(
                self.bytes_sent,
                self.segments_sent,
                self.ack_latency_sum,
                self.ack_latency_count,
            )
    }
}

/// What a counter can be.
trait Count: Copy {
    const ZERO: Self;
    fn number(self) -> u64;
    /// The opposite; a number that does not fit becomes the largest.
    fn of(number: u64) -> Self;
    /// The sum; what does not fit stays the largest number.
    fn plus(self, other: Self) -> Self;
}

impl Count for u32 {
    const ZERO: u32 = 0;

    fn number(self) -> u64 {
        u64::from(self)
    }

    fn of(number: u64) -> u32 {
        number.try_into().unwrap_or(u32::MAX)
    }

    fn plus(self, other: u32) -> u32 {
        self.saturating_add(other)
    }
}

impl Count for u64 {
    const ZERO: u64 = 0;

    fn number(self) -> u64 {
        self
    }

    fn of(number: u64) -> u64 {
        number
    }

    fn plus(self, other: u64) -> u64 {
        self.saturating_add(other)
    }
}

impl Count for Duration {
    const ZERO: Duration = Duration::ZERO;

    fn number(self) -> u64 {
        self.as_nanos()
    }

    fn of(number: u64) -> Duration {
        Duration::from_nanos(number)
    }

    fn plus(self, other: Duration) -> Duration {
        Duration::from_nanos(self.as_nanos().saturating_add(other.as_nanos()))
    }
}
