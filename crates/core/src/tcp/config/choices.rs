//! The types of switches that are more than a number, a time or a flag.

use crate::parameter::{ParameterKind, Value, Written, choice};
use crate::tcp::{Rdb, ReceiveMemory};
use crate::time::Duration;
use alloc::format;
use alloc::string::{String, ToString};

choice! {
    /// A named complete configuration.
    pub enum Profile {
        /// ns-2.35's `Agent/TCP/Sack1` and `TCPSink/Sack1`.
        Ns2Sack = "ns2-sack",
        /// ns-2.35's `Agent/TCP/Newreno` and `TCPSink`.
        Ns2NewReno = "ns2-newreno",
        /// Linux 3.2 (2012).
        Linux3_2 = "linux-3.2",
        /// Linux of 2015, on which most of the papers measured.
        Linux2015 = "linux-2015",
        /// Linux today.
        Linux = "linux",
        /// What the RFCs recommend.
        Rfc = "rfc",
    }

    /// Version of IP.
    pub enum IpVersion {
        /// IPv4: 20 bytes of header.
        V4 = "4",
        /// IPv6: 40 bytes of header.
        V6 = "6",
    }

    /// RFC 4821: whether and when to search for the path MTU.
    pub enum MtuProbing {
        /// Never.
        Off = "off",
        /// After three timeouts in a row (Linux `tcp_mtu_probing = 1`).
        BlackHole = "black-hole",
        /// From the start (Linux `tcp_mtu_probing = 2`).
        Always = "always",
    }

    /// Which ICMP errors end a connection in SYN-SENT or SYN-RECEIVED.
    pub enum IcmpAbort {
        /// Any error (Linux).
        Any = "any",
        /// Protocol and port unreachable (RFC 1122 4.2.3.9).
        Hard = "hard",
    }

    /// Which octet the urgent pointer names.
    pub enum UrgentPointer {
        /// The octet after the urgent data (RFC 6093, all systems).
        Following = "following",
        /// The last octet of the urgent data (RFC 1122; Linux `tcp_stdurg`).
        Last = "last",
    }

    /// How samples of the round-trip time make the retransmission timeout.
    pub enum RttEstimator {
        /// RFC 6298 2: every sample moves the variation by a quarter; with a tick BSD's integers.
        Rfc6298 = "rfc6298",
        /// Linux `tcp_rtt_estimator`: the variation is its peak of a round trip, and falls by a quarter of the excess per
        /// round trip.
        Linux = "linux",
    }

    /// When timers fire (pacing apart).
    pub enum TimerGrid {
        /// At the very moment.
        Exact = "exact",
        /// At the tick of 4 ms before (Linux until 4.7, HZ 250).
        Jiffies = "jiffies",
        /// At the tick of 4 ms after, timers of 252 ms and more at the next multiple of 32 ms, of 2.016 s and more of
        /// 256 ms, and so on (Linux since 4.8, HZ 250).
        Wheel = "wheel",
    }

    /// What window, pipe and growth count.
    pub enum WindowUnit {
        /// Payload bytes.
        Bytes = "bytes",
        /// Segments, whatever their size (Linux).
        Packets = "packets",
        /// Segments, whatever their size, and NewReno keeps a fraction of one: an ACK adds one segment in slow start
        /// and 1/window in congestion avoidance, a half is not rounded, `ssthresh` is cut to whole segments (ns-2).
        Fractions = "packet-fractions",
    }

    /// Which acknowledgments may let the window grow.
    pub enum WindowGrowth {
        /// All acknowledgments (ns-2).
        Always = "always",
        /// Only if the window was in use when the data was sent (RFC 9293 3.8.2, RFC 7661 4.3).
        CwndLimited = "cwnd-limited",
        /// Only if the window was in use when the data was sent, in slow start half of it (Linux
        /// `tcp_is_cwnd_limited`).
        Linux = "linux",
    }

    /// When the byte counters of Accurate ECN are sent as an option of their own (RFC 9768 3.2.3.3).
    pub enum EcnOption {
        /// Never: only the three bits of the header count marks (Linux `tcp_ecn_option = 0`).
        Never = "never",
        /// After a change, after a mark, and `ecn_option_beacon` times per round trip (Linux `tcp_ecn_option = 1`).
        WhenUseful = "when-useful",
        /// Wherever there is room (Linux `tcp_ecn_option = 2`).
        Always = "always",
        /// Wherever there is room, also where acknowledgments with it seem not to arrive (Linux 7.0 `tcp_ecn_option = 3`).
        Persistent = "persistent",
    }

    /// How the receiver echoes congestion marks.
    pub enum EcnEcho {
        /// ECE until the sender answers with CWR (RFC 3168 6.1.3).
        Rfc3168 = "rfc3168",
        /// ECE is the state of the last packet; a change is acknowledged at once (RFC 8257 3.2).
        Rfc8257 = "rfc8257",
    }

    /// How data of an ECN connection is marked by its sender.
    pub enum EcnCodepoint {
        /// ECT(0) (RFC 3168, RFC 8311).
        Ect0 = "ect0",
        /// ECT(1): the sender reduces in proportion to the marks, as L4S wants (RFC 9331 4.1).
        Ect1 = "ect1",
    }

    /// What an idle or application-limited period does to the window.
    pub enum WindowValidation {
        /// The window stays as it is.
        None = "none",
        /// Idle longer than the RTO: back to the restart window (RFC 5681 4.1).
        Rfc5681 = "rfc5681",
        /// Halve per idle RTO; little use lowers it only where no acknowledgment comes for an RTO (RFC 2861 as in Linux).
        Rfc2861 = "rfc2861",
        /// The window stays, losses are answered by what was used of it, bursts are paced (RFC 7661).
        NewCwv = "newcwv",
        /// RFC 7661 without pacing.
        NewCwvUnpaced = "newcwv-unpaced",
        /// RFC 7661, and after a pause the rate that was used before it, less if the RTT has grown.
        NewCwvProbing = "newcwv-probing",
    }

    /// How far segments of a window stay apart.
    pub enum Pacing {
        /// Not at all: ACKs clock them. A controller that sets a rate is paced nevertheless.
        Off = "off",
        /// Every window is spread over SRTT.
        Full = "full",
        /// Twice as fast in slow start and 1.2 times after it, from the tenth segment on (Linux).
        Linux = "linux",
    }

    /// Initial Spreading: which gap between the segments of the first window.
    pub enum InitialSpreading {
        /// No gap.
        Off = "off",
        /// RTT / initial window.
        Variable = "variable",
        /// RTT / initial window, at most `spreading_gap`.
        Bounded = "bounded",
        /// RTT / initial window, at most a packet's time at `spreading_rate`.
        Known = "known",
        /// RTT / initial window, at most a packet's time at the rate that this connection or earlier ones to the
        /// same host measured.
        Estimated = "estimated",
    }

    /// RFC 5827 and Linux's variants of it.
    pub enum EarlyRetransmit {
        /// Never.
        Off = "off",
        /// Segment variant of RFC 5827.
        Rfc5827 = "rfc5827",
        /// Linux: as soon as one segment is SACKed with fewer than four out.
        Immediate = "immediate",
        /// Linux: max(RTT/4, 2 ms) after one segment is SACKed with fewer than four out.
        Delayed = "delayed",
    }

    /// What asks a peer whose window is shut.
    pub enum ZeroWindowProbe {
        /// The next octet (RFC 9293 3.8.6.1).
        Byte = "byte",
        /// No data, with the sequence number before the first unacknowledged one (Linux `tcp_xmit_probe_skb`); the next one counts from its
        /// answer (`tcp_ack_probe`).
        Empty = "empty",
    }

    /// What timeouts, tail loss probes and lost retransmissions change, and what shows that a timeout was spurious.
    pub enum TimeoutRules {
        /// Each first timeout of some data reduces the window, to one segment (RFC 5681 3.1); F-RTO waits for what the retransmission
        /// brings about (RFC 5682 3.1); the loss of a retransmission, which RACK finds, reduces the window once more (RFC 5681 4.3).
        Rfc = "rfc",
        /// As `linux`, but F-RTO is that of RFC 5682; SACKs do not set the timer, and an acknowledgment of a part of a segment does;
        /// without SACK duplicates count without the bound of `tcp_limit_reno_sacked`; and a recovery that ends leaves no Disorder behind
        /// (`tcp_try_keep_open`).
        Linux32 = "linux-3.2",
        /// A timeout during a fast recovery, or while the window is reduced, does not reduce it once more, and the window begins above
        /// what may still be in flight (`tcp_enter_loss`); an original that is acknowledged or SACKed shows that the timeout was
        /// spurious (`tcp_process_loss`); a lost retransmission begins a recovery (`tcp_fastretrans_alert`); a SACK of what was sent
        /// before the first outstanding segment sets the timer anew (`tcp_clean_rtx_queue`). A loss that a tail loss probe repaired lowers
        /// the window at once, and no more follows (`tcp_process_tlp_ack`); the probe does not count as in flight. A recovery that begins
        /// while the window is reduced goes on with that reduction (`tcp_enter_recovery`).
        Linux = "linux",
    }

    /// What reports of duplicates (D-SACK) mean.
    pub enum DsackRules {
        /// Each report widens RACK's window for reordering, at most once per round trip (RFC 8985 6.2 step 4).
        Rfc = "rfc",
        /// They widen it only after reordering was seen, and not for a tail loss probe; a duplicate counts as delivered; more duplicates
        /// than were sent again are copies that the network made, and mean nothing (`tcp_dsack_seen`, 5.9).
        Linux = "linux",
    }

    /// Proportional rate reduction.
    pub enum Prr {
        /// Off: the window is `ssthresh`, as RFC 6675 has it.
        Off = "off",
        /// RFC 6937 with the conservative reduction bound.
        Rfc6937Crb = "rfc6937-crb",
        /// RFC 6937 with the slow-start reduction bound.
        Rfc6937Ssrb = "rfc6937-ssrb",
        /// RFC 9937.
        Rfc9937 = "rfc9937",
        /// Linux since 4.3: RFC 9937's bound, but proportional to the window at the start, not to the flight.
        Linux = "linux",
    }

    /// Tail loss probe.
    pub enum TailLossProbe {
        /// No probe.
        Off = "off",
        /// draft-dukkipati-tcpm-tcp-loss-probe-01, as Linux had it from 2013 to 2016.
        Draft = "draft",
        /// RFC 8985 section 7.
        Rfc8985 = "rfc8985",
    }

    /// Where the floor of the RTO applies.
    pub enum RtoFloor {
        /// On the sum: max(min, SRTT + max(G, 4 RTTVAR)) (RFC 6298 2.4).
        Rto = "rto",
        /// On the variance term: SRTT + max(min, 4 RTTVAR) (Linux).
        Variance = "variance",
    }

    /// Which acknowledgments give RTT samples.
    pub enum RttSamples {
        /// One per round trip (RFC 6298 3).
        OncePerRtt = "once-per-rtt",
        /// Every ACK of data never retransmitted.
        EveryAck = "every-ack",
    }
}

/// Window at the start of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub enum InitialWindow {
    /// This many segments.
    Segments(u32),
    /// RFC 3390: min(4 MSS, max(2 MSS, 4380)).
    Rfc3390,
    /// RFC 6928: min(10 MSS, max(2 MSS, 14600)).
    Rfc6928,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum DelayedAck {
    /// Every segment.
    Off,
    /// Every second full segment, or after `timeout` (RFC 9293 3.8.6.3).
    Standard {
        /// Longest delay, at most 500 ms.
        timeout: Duration,
    },
    /// Linux: adaptive between `min` and `max`, after a phase of immediate ACKs.
    Linux {
        /// Floor of the adaptive delay.
        min: Duration,
        /// Cap of the adaptive delay.
        max: Duration,
        /// Segments acknowledged at once at the start and after idle.
        quick_acks: u8,
    },
}

/// Keep-alive parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct KeepAlive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes before the connection is aborted.
    pub probes: u8,
}

impl Written for InitialWindow {
    const KINDS: &[ParameterKind] = &[
        ParameterKind::Integer(1, 10_000),
        ParameterKind::Choice(&["rfc3390", "rfc6928"]),
    ];

    fn read(value: Value) -> Option<InitialWindow> {
        match value {
            Value::Choice("rfc3390") => Some(InitialWindow::Rfc3390),
            Value::Choice("rfc6928") => Some(InitialWindow::Rfc6928),
            value => u32::read(value).map(InitialWindow::Segments),
        }
    }

    fn shown(&self, _: &[ParameterKind]) -> String {
        match self {
            InitialWindow::Segments(segments) => format!("{segments} segments"),
            InitialWindow::Rfc3390 => String::from("rfc3390"),
            InitialWindow::Rfc6928 => String::from("rfc6928"),
        }
    }
}

impl DelayedAck {
    /// What Linux does.
    pub const LINUX: DelayedAck = DelayedAck::Linux {
        min: Duration::from_millis(40),
        max: Duration::from_millis(200),
        quick_acks: 16,
    };
}

/// Explicit congestion notification, and how its marks are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EcnFeedback {
    /// None.
    #[default]
    Off,
    /// One echo per round trip, or as `ecn_echo` says (RFC 3168).
    Classic,
    /// Accurate ECN: every mark is counted (RFC 9768); with an end that does not know it, RFC 3168.
    Accurate,
}

impl EcnFeedback {
    /// Whether marks are reported at all.
    pub const fn is_on(self) -> bool {
        !matches!(self, EcnFeedback::Off)
    }
}

impl From<bool> for EcnFeedback {
    fn from(on: bool) -> EcnFeedback {
        if on {
            EcnFeedback::Classic
        } else {
            EcnFeedback::Off
        }
    }
}

impl Written for EcnFeedback {
    const KINDS: &[ParameterKind] = &[ParameterKind::Flag, ParameterKind::Choice(&[ACCURATE])];

    fn read(value: Value) -> Option<EcnFeedback> {
        match value {
            Value::Flag(on) => Some(on.into()),
            Value::Choice(ACCURATE) => Some(EcnFeedback::Accurate),
            _ => None,
        }
    }

    fn shown(&self, _: &[ParameterKind]) -> String {
        match self {
            EcnFeedback::Off => String::from("false"),
            EcnFeedback::Classic => String::from("true"),
            EcnFeedback::Accurate => String::from(ACCURATE),
        }
    }
}

/// Written as in scenario files.
impl serde::Serialize for EcnFeedback {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            EcnFeedback::Off => serializer.serialize_bool(false),
            EcnFeedback::Classic => serializer.serialize_bool(true),
            EcnFeedback::Accurate => serializer.serialize_str(ACCURATE),
        }
    }
}

/// The word for Accurate ECN.
const ACCURATE: &str = "accurate";

impl Written for DelayedAck {
    fn shown(&self, _: &[ParameterKind]) -> String {
        match self {
            DelayedAck::Off => String::from("off"),
            DelayedAck::Standard { timeout } => timeout.to_string(),
            DelayedAck::Linux { min, max, quick_acks } => format!("linux {min} to {max}, {quick_acks} quick"),
        }
    }
}

impl Written for KeepAlive {
    const NONE: &str = "off";

    fn shown(&self, _: &[ParameterKind]) -> String {
        self.idle.to_string()
    }
}

impl Written for Rdb {
    const NONE: &str = "off";

    fn shown(&self, _: &[ParameterKind]) -> String {
        String::from("on")
    }
}

impl Written for ReceiveMemory {
    const NONE: &str = "off";

    fn shown(&self, _: &[ParameterKind]) -> String {
        format!("{} of {}", self.buffer, self.most)
    }
}
