//! `Config`: every switch of the endpoint, and the six named profiles.
//!
//! A profile is a complete value. The table (switch x profile, with a source per cell) is made by `PROFILES` below and
//! is a page of the documents. No behaviour of a connection depends on anything outside this type.

use crate::cc::{CubicArithmetic, HyStart};
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};

/// Everything that decides how a connection behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Largest IP packet of the path's first link, bytes; the MSS offered is this less headers.
    pub mtu: u32,
    /// When [`Stats::congestion_events`](super::Stats::congestion_events) are counted: from the first up to the second.
    pub measured: [Instant; 2],
    /// Registered name of the congestion control.
    pub congestion_control: &'static str,
    /// Its parameters; `None`: the defaults of its table.
    pub congestion_control_values: Option<crate::parameter::Values>,
    /// Window at the start.
    pub initial_window: InitialWindow,
    /// SYN retransmissions that leave the initial window as it is (RFC 6928 2: one; RFC 5681 3.1: none).
    pub syn_losses_forgiven: u8,
    /// Upper bound of the congestion window (ns-2's `window_`), segments.
    pub max_window_segments: Option<u32>,
    /// Segments that one ACK may add in slow start (RFC 3465's L); `None`: all it acknowledged, as Linux does.
    pub abc_limit: Option<u32>,
    /// What window, pipe and growth count.
    pub window_unit: WindowUnit,
    /// Slow-start exit before a loss.
    pub hystart: HyStart,
    /// How CUBIC computes its window.
    pub cubic_arithmetic: CubicArithmetic,
    /// Which acknowledgments may let the window grow.
    pub growth: Growth,
    /// Take the reduced `ssthresh` from the window (Linux, ns-2) instead of FlightSize (RFC 5681).
    pub reduce_from_window: bool,
    /// What an idle or application-limited period does to the window.
    pub window_validation: WindowValidation,
    /// How far segments of a window stay apart.
    pub pacing: Pacing,
    /// Space the segments of the first window, and no others.
    pub initial_spreading: InitialSpreading,
    /// Initial Spreading does nothing where RTT / initial window is less.
    pub spreading_jiffy: Duration,
    /// Longest gap of Initial Spreading (`Bounded`, `Known`, `Estimated`).
    pub spreading_gap: Duration,
    /// The bottleneck's rate (`Known`).
    pub spreading_rate: Rate,
    /// The first two segments leave together, and the bottleneck's rate is measured (`Estimated`).
    pub spreading_pair: bool,
    /// How long its owner remembers what a connection measured, for others to the same host; zero: not (`Estimated`).
    pub spreading_memory: Duration,
    /// An acknowledgment whose round trip shows an empty queue ends the spreading (`Estimated`).
    pub spreading_stop: bool,
    /// The first segment waits for a random part of the gap (`Estimated`).
    pub spreading_phase: bool,
    /// The last two segments of the window leave together (`Estimated`).
    pub spreading_tail: bool,
    /// Each gap is drawn from so much less to so much more than the gap, per cent of it; at most 100.
    pub spreading_jitter_percent: u8,

    /// Negotiate and use SACK (RFC 2018, RFC 6675). Without it recovery is NewReno (RFC 6582).
    pub sack: bool,
    /// SACK blocks of an ACK, at most (RFC 2018 3: four, three with timestamps).
    pub sack_blocks: u8,
    /// Report duplicates (RFC 2883).
    pub dsack: bool,
    /// Negotiate and use timestamps (RFC 7323).
    pub timestamps: bool,
    /// Window scale offered; `None`: not offered (RFC 7323).
    pub window_scale: Option<u8>,
    /// Ask for ECN on connections opened here, and use it (RFC 3168).
    pub ecn: bool,
    /// Agree to ECN when the peer asks (Linux's default, `tcp_ecn = 2`). Implied by `ecn`.
    pub ecn_passive: bool,
    /// How the receiver echoes marks: RFC 3168's latch, or RFC 8257's exact state (DCTCP).
    pub ecn_echo: EcnEcho,
    /// Which codepoint data carries: ECT(0), or ECT(1) to be treated as L4S (RFC 9331).
    pub ecn_codepoint: EcnCodepoint,

    /// Duplicate ACKs or SACKed segments that show a loss.
    pub dup_thresh: u8,
    /// Send new data on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Lower threshold when few segments are out (RFC 5827).
    pub early_retransmit: EarlyRetransmit,
    /// Window during recovery.
    pub prr: Prr,
    /// Time-based loss detection (RFC 8985).
    pub rack: bool,
    /// Zero: RACK's timer and the probe's are exact. Else they wait 2 ms longer (the probe's where several segments are out),
    /// in whole ticks of this length (Linux).
    pub rack_timer_tick: Duration,
    /// Probe for a lost tail.
    pub tail_loss_probe: TailLossProbe,
    /// Forward acknowledgment as Linux had it until 2017: segments count as SACKed up to the highest SACKed one.
    pub fack: bool,
    /// With SACK, recover from losses as ns-2's Sack1 agent does and not as RFC 6675 has it. In recovery the pipe is what
    /// was out less `dup_thresh`, one less per ACK (two if it is partial), one more per segment sent, and every hole below
    /// the highest SACKed segment is sent again once. A timeout forgets SACKs and sends again from the first unacknowledged
    /// segment on; outside recovery SACKs only show which ACKs count as duplicates. Needs `rack`, `prr`, `fack`, probes and
    /// early retransmit off.
    pub sack1_recovery: bool,
    /// RTO restart when few segments are out (RFC 7765).
    pub rto_restart: bool,
    /// Fewer than so many outstanding and unsent segments are few (RFC 7765's `rrthresh`).
    pub rto_restart_threshold: u32,
    /// Count the probe timeout from the earliest outstanding segment, not from the last ACK.
    pub tail_loss_probe_restart: bool,
    /// That only while fewer than so many segments are out; `None`: always.
    pub probe_restart_threshold: Option<u32>,
    /// Delayed-ACK allowance of the probe timer.
    pub max_ack_delay: Duration,
    /// The allowance is at most four times RTTVAR: a peer that never delayed has shown none.
    pub learn_ack_delay: bool,
    /// Detect spurious timeouts without timestamps (RFC 5682, SACK variant where SACK is on).
    pub frto: bool,
    /// Undo reductions shown spurious by timestamps or D-SACK (RFC 3522, RFC 4015, RFC 3708).
    pub undo: bool,

    /// A thin stream takes one SACKed segment for the sign of a loss (Linux `tcp_thin_dupack`). Not with RACK.
    pub thin_dupack: bool,
    /// The first six timeouts of a thin stream do not back off (Linux `tcp_thin_linear_timeouts`).
    pub thin_linear: bool,
    /// Redundant data bundling; `None`: off.
    pub rdb: Option<super::Rdb>,
    /// Writes that wait for the window flow together into full segments. Otherwise each begins a segment of its own.
    pub coalesce_unsent: bool,

    /// Retransmission timer.
    pub rto: RtoConfig,
    /// SYN retransmissions before giving up.
    pub syn_retries: u8,
    /// Data retransmissions before giving up (RFC 1122's R2).
    pub retries: u8,

    /// When the receiver acknowledges.
    pub delayed_ack: DelayedAck,
    /// Receive buffer, bytes: bounds the window offered.
    pub receive_buffer: Bytes,
    /// The window follows a buffer that counts memory, as Linux's does; `None`: it is `receive_buffer`.
    pub receive_memory: Option<super::ReceiveMemory>,
    /// Send buffer, bytes: bounds what `write` takes.
    pub send_buffer: Bytes,
    /// Least time between answers to unacceptable segments without data; zero: only the budget of RFC 5961 7.
    pub challenge_interval: Duration,
    /// What asks a peer whose window is shut (RFC 9293 3.8.6.1).
    pub zero_window_probe: ZeroWindowProbe,
    /// Hold small segments while data is unacknowledged (RFC 896, RFC 9293 3.7.4).
    pub nagle: bool,
    /// Nagle holds a small segment only while another small one is unacknowledged (Minshall's variant; Linux).
    pub nagle_minshall: bool,
    /// Segments are handed to segmentation offload in groups of at least so many, if there are (Linux `tcp_min_tso_segs`);
    /// the last of a group carries PSH. `None`: one by one.
    pub offload_segments: Option<u8>,
    /// Keep-alive: idle time before the first probe; `None`: off (RFC 9293 3.8.4).
    pub keep_alive: Option<KeepAlive>,
    /// Maximum segment lifetime: TIME-WAIT lasts twice this.
    pub msl: Duration,
    /// The network layer: IP version, path MTU, ICMP, urgent pointer.
    pub path: PathConfig,
    /// How long to try before giving up.
    pub patience: Patience,
}

/// IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// IPv4: 20 bytes of header.
    V4,
    /// IPv6: 40 bytes of header.
    V6,
}

/// What the connection expects of the network layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// IP version.
    pub ip: IpVersion,
    /// Set DF and obey "too big" messages (RFC 1191, RFC 8201).
    pub pmtu_discovery: bool,
    /// Smallest IPv4 path MTU that is believed; below it segments may be fragmented.
    pub min_pmtu: u32,
    /// How long a learnt path MTU is believed (RFC 1191 6.3).
    pub pmtu_lifetime: Duration,
    /// Search for the path MTU without routers' help (RFC 4821).
    pub mtu_probing: MtuProbing,
    /// Payload the search begins with.
    pub base_mss: u32,
    /// Time after which a finished search begins anew.
    pub probe_interval: Duration,
    /// Smallest payload of a full segment, whatever the peer or a router says (CVE-2019-11479).
    pub min_mss: u32,
    /// Which ICMP errors end a connection that is not established.
    pub icmp_abort: IcmpAbort,
    /// An ICMP error that says a retransmission did not get through takes back one back-off (RFC 6069).
    pub icmp_reverts_backoff: bool,
    /// Which octet the urgent pointer names.
    pub urgent_pointer: UrgentPointer,
}

/// RFC 4821: whether and when to search for the path MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MtuProbing {
    /// Never.
    Off,
    /// After three timeouts in a row (Linux `tcp_mtu_probing = 1`).
    BlackHole,
    /// From the start (2).
    Always,
}

/// Which ICMP errors end a connection in SYN-SENT or SYN-RECEIVED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IcmpAbort {
    /// Any (Linux).
    Any,
    /// Protocol and port unreachable (RFC 1122 4.2.3.9).
    Hard,
}

/// Which octet the urgent pointer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrgentPointer {
    /// The one after the urgent data (RFC 6093, all systems).
    Following,
    /// The last one of the urgent data (RFC 1122; Linux `tcp_stdurg`).
    Last,
}

/// How long to try before giving up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// First SYN retransmissions without back-off (Linux 6.5, `tcp_syn_linear_timeouts`); they come on top of
    /// `syn_retries`.
    pub syn_linear_timeouts: u8,
    /// SYN-ACK retransmissions before giving up.
    pub synack_retries: u8,
    /// `retries` means the time that so many retransmissions would take from an RTO of 200 ms (Linux), not their number.
    pub retries_as_time: bool,
    /// Retransmissions after the owner closed both halves (Linux `tcp_orphan_retries`: 0 means 8); `None`: as many as before.
    pub orphan_retries: Option<u8>,
    /// Longest time data or probes may go unanswered (RFC 9293 MUST-21; `TCP_USER_TIMEOUT`); `None`: `retries` decides.
    pub user_timeout: Option<Duration>,
    /// Longest stay in FIN-WAIT-2 after both halves were closed; `None`: for ever.
    pub fin_wait2: Option<Duration>,
    /// Closing both halves with unread data, or data that comes later, resets (RFC 9293 SHLD-3).
    pub reset_on_unread: bool,
}

/// Window at the start of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InitialWindow {
    /// This many segments.
    Segments(u32),
    /// RFC 3390: min(4 MSS, max(2 MSS, 4380)).
    Rfc3390,
    /// RFC 6928: min(10 MSS, max(2 MSS, 14600)).
    Rfc6928,
}

/// What window, pipe and growth count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowUnit {
    /// Payload bytes.
    Bytes,
    /// Segments, whatever their size (Linux).
    Packets,
    /// Segments, whatever their size, and NewReno keeps a fraction of one: an ACK adds one segment in slow start and
    /// 1/window in congestion avoidance, a half is not rounded, `ssthresh` is cut to whole segments (ns-2).
    Fractions,
}

/// Which acknowledgments may let the window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Growth {
    /// All (ns-2).
    Always,
    /// Only if the window was in use when the data was sent (RFC 9293 3.8.2, RFC 7661 4.3).
    CwndLimited,
    /// As `CwndLimited`, but in slow start half of the window in use is enough (Linux `tcp_is_cwnd_limited`).
    Linux,
}

/// How the receiver echoes congestion marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnEcho {
    /// ECE until the sender answers with CWR (RFC 3168 6.1.3).
    Rfc3168,
    /// ECE is the state of the last packet; a change is acknowledged at once (RFC 8257 3.2).
    Rfc8257,
}

/// How data of an ECN connection is marked by its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnCodepoint {
    /// ECT(0) (RFC 3168, RFC 8311).
    Ect0,
    /// ECT(1): the sender reduces in proportion to the marks, as L4S wants (RFC 9331 4.1).
    Ect1,
}

/// What an idle or application-limited period does to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowValidation {
    /// Nothing.
    None,
    /// Idle longer than the RTO: back to the restart window (RFC 5681 4.1).
    Rfc5681,
    /// Halve per idle RTO, and drift to what is used when application-limited (RFC 2861; Linux).
    Rfc2861,
    /// Keep it, and answer losses by what was used; bursts are paced (RFC 7661).
    NewCwv,
    /// New-CWV without pacing.
    NewCwvUnpaced,
    /// New-CWV, and after a pause at the rate that was used before it, less if the RTT has grown.
    NewCwvProbing,
}

/// How far segments of a window stay apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pacing {
    /// Not at all: ACKs clock them. A controller that sets a rate is paced nevertheless.
    Off,
    /// Every window is spread over SRTT.
    Full,
    /// Twice as fast in slow start and 1.2 times after it, from the tenth segment on (Linux).
    Linux,
}

/// Initial Spreading: which gap between the segments of the first window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InitialSpreading {
    /// None.
    Off,
    /// RTT / initial window.
    Variable,
    /// RTT / window, at most `spreading_gap`.
    Bounded,
    /// As `Bounded`, at most a packet's time at `spreading_rate`.
    Known,
    /// As `Bounded`, at most a packet's time at the rate that this connection or earlier ones to the same host measured.
    Estimated,
}

/// RFC 5827 and Linux's variants of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EarlyRetransmit {
    /// Off.
    Off,
    /// Segment variant of RFC 5827.
    Rfc5827,
    /// Linux: as soon as one segment is SACKed with fewer than four out.
    Immediate,
    /// Linux: the same after max(RTT/4, 2 ms).
    Delayed,
}

/// What asks a peer whose window is shut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZeroWindowProbe {
    /// The next octet (RFC 9293 3.8.6.1).
    Byte,
    /// No data, with the sequence number before the first unacknowledged one (Linux `tcp_xmit_probe_skb`).
    Empty,
}

/// Proportional rate reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prr {
    /// Off: the window is `ssthresh`, as RFC 6675 has it.
    Off,
    /// RFC 6937 with the conservative reduction bound.
    Rfc6937Crb,
    /// RFC 6937 with the slow-start reduction bound.
    Rfc6937Ssrb,
    /// RFC 9937.
    Rfc9937,
    /// Linux since 4.3: RFC 9937's bound, but proportional to the window at the start, not to the flight.
    Linux,
}

/// Tail loss probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TailLossProbe {
    /// Off.
    Off,
    /// draft-dukkipati-tcpm-tcp-loss-probe-01, as Linux had it from 2013 to 2016.
    Draft,
    /// RFC 8985 section 7.
    Rfc8985,
}

/// Retransmission timer (RFC 6298 and Linux's variant).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// Where the floor applies.
    pub floor: RtoFloor,
    /// The floor.
    pub min: Duration,
    /// Before the first sample.
    pub initial: Duration,
    /// For data if the SYN was retransmitted (RFC 6298 5.7).
    pub after_syn_timeout: Duration,
    /// Cap.
    pub max: Duration,
    /// Clock granularity G.
    pub granularity: Duration,
    /// Which acknowledgments give samples.
    pub samples: RttSamples,
    /// Zero: exact. Else RTTs are counted in ticks of this length of a clock with a phase of its own (to the nearest with
    /// timestamps), and the estimator is BSD's in integers: SRTT in 1/8 and RTTVAR in 1/4 of a tick, each at least one
    /// such unit, started anew by the sample after a fourth doubling of the timeout (ns-2).
    pub tick: Duration,
    /// A timeout that was spurious because the RTT had grown starts the estimator from that RTT (RFC 4015 3.1 step 11).
    pub after_spurious: bool,
}

/// Where the floor of the RTO applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RtoFloor {
    /// On the sum: max(min, SRTT + max(G, 4 RTTVAR)) (RFC 6298 2.4).
    Rto,
    /// On the variance term: SRTT + max(min, 4 RTTVAR) (Linux).
    Variance,
}

/// Which acknowledgments give RTT samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RttSamples {
    /// One per round trip (RFC 6298 3).
    OncePerRtt,
    /// Every ACK of data never retransmitted.
    EveryAck,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes before the connection is aborted.
    pub probes: u8,
}

/// A named complete configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// ns-2.35's `Agent/TCP/Sack1` and `TCPSink/Sack1`.
    Ns2Sack,
    /// ns-2.35's `Agent/TCP/Newreno` and `TCPSink`.
    Ns2NewReno,
    /// Linux 3.2 (2012).
    Linux3_2,
    /// Linux of 2015, on which most of the papers measured.
    Linux2015,
    /// Linux today.
    Linux,
    /// What the RFCs recommend.
    Rfc,
}

impl Config {
    /// Bytes of IP and TCP headers without options.
    #[inline]
    pub const fn header(&self) -> u32 {
        match self.path.ip {
            IpVersion::V4 => 40,
            IpVersion::V6 => 60,
        }
    }

    /// Whether whoever opens connections gives them what is remembered of their path, and takes what they find.
    #[inline]
    pub fn remembers_paths(&self) -> bool {
        self.initial_spreading == InitialSpreading::Estimated && !self.spreading_memory.is_zero()
    }

    /// The MSS this end announces: the MTU less IP and TCP headers (RFC 9293 3.7.1).
    #[inline]
    pub const fn mss(&self) -> u32 {
        self.mtu.saturating_sub(self.header())
    }

    /// Send MSS if the peer sent no option (RFC 9293 MUST-15).
    pub const fn default_mss(&self) -> u32 {
        match self.path.ip {
            IpVersion::V4 => 536,
            IpVersion::V6 => 1220,
        }
    }

    /// The complete configuration of a profile.
    pub fn profile(profile: Profile) -> Config {
        super::profile::config(profile)
    }
}
