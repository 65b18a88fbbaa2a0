//! Keys of endpoints.

use super::Default::{Described, Value};
use super::{Key, Kind, KindKeys, KindTable, NANOSECOND, POSITIVE_TIME, TIME, key};
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::time::Duration;

/// `[tcp]`. Without a default in words: what the profile says.
pub(crate) static TCP: &[Key] = &[
    key(
        "profile",
        Kind::Choice(PROFILES),
        Value("\"linux\""),
        "A complete set of all switches.",
    ),
    switch(
        "congestion_control",
        Kind::CongestionControl,
        "The algorithm, by name or as a table with `kind` and its parameters.",
    ),
    switch(
        "initial_window",
        Kind::Either(&[Kind::Integer(1, 10_000), Kind::Choice(&["rfc3390", "rfc6928"])]),
        "Window at the start: segments, or the rule of an RFC.",
    ),
    switch(
        "max_window",
        Kind::Either(&[Kind::Integer(1, 10_000_000), Kind::Choice(&["unlimited"])]),
        "Largest congestion window, segments (`window_` in ns-2).",
    ),
    switch(
        "abc_limit",
        Kind::Either(&[Kind::Integer(1, 1000), Kind::Choice(&["unlimited"])]),
        "Segments that one ACK may add in slow start (RFC 3465).",
    ),
    switch(
        "window_unit",
        Kind::Choice(&["bytes", "packets", "packet-fractions"]),
        "What window, pipe and growth count; with fractions NewReno's window is not rounded to packets (ns-2).",
    ),
    switch(
        "hystart",
        Kind::Choice(&["off", "hystart", "hystart++"]),
        "How slow start ends before a loss.",
    ),
    switch(
        "cubic_arithmetic",
        Kind::Choice(&["rfc9438", "linux"]),
        "How CUBIC computes its window: RFC 9438 in real numbers, or Linux's whole segments and scaled integers.",
    ),
    switch(
        "growth",
        Kind::Choice(&["always", "cwnd-limited", "linux"]),
        "Which acknowledgments may let the window grow: all, those of data sent with the window in use, or Linux's rule.",
    ),
    switch(
        "reduce_from_window",
        Kind::Flag,
        "Take the reduced threshold from the window (Linux, ns-2) instead of FlightSize (RFC 5681).",
    ),
    switch(
        "window_validation",
        Kind::Choice(&[
            "none",
            "rfc5681",
            "rfc2861",
            "newcwv",
            "newcwv-unpaced",
            "newcwv-probing",
        ]),
        "What idle and application-limited periods do to the window.",
    ),
    switch(
        "pacing",
        Kind::Choice(&["off", "full", "linux"]),
        "How far segments of a window stay apart: not at all, spread over the RTT, or as Linux paces.",
    ),
    switch(
        "initial_spreading",
        Kind::Choice(&["off", "variable", "bounded", "known", "estimated"]),
        "Space the segments of the first window: by RTT / initial window; at most `spreading_gap`; at most a packet's time at `spreading_rate`; at most a packet's time at the rate that this connection or earlier ones to the same host measured.",
    ),
    switch(
        "spreading_jiffy",
        Kind::Duration(Duration::ZERO, Duration::from_secs(1)),
        "Initial Spreading does nothing where RTT / initial window is less.",
    ),
    switch(
        "spreading_gap",
        Kind::Duration(NANOSECOND, Duration::from_secs(1)),
        "Longest gap of bounded, known and estimated spreading.",
    ),
    switch(
        "spreading_rate",
        Kind::Rate,
        "The bottleneck's rate, for known spreading, which needs it written.",
    ),
    switch(
        "spreading_pair",
        Kind::Flag,
        "Estimated spreading sends its first two segments together and measures the bottleneck's rate; where no connection does, nothing is estimated, and that is refused.",
    ),
    switch(
        "spreading_memory",
        Kind::Duration(Duration::ZERO, Duration::from_secs(31_536_000)),
        "How long later connections between the same two hosts use what estimated spreading measured; 0 s: not.",
    ),
    switch(
        "spreading_stop",
        Kind::Flag,
        "Estimated spreading ends when an acknowledgment's round trip shows an empty queue.",
    ),
    switch(
        "spreading_phase",
        Kind::Flag,
        "Estimated spreading begins after a random part of its gap.",
    ),
    switch(
        "spreading_tail",
        Kind::Flag,
        "Estimated spreading sends the last two segments of the window together.",
    ),
    switch(
        "spreading_jitter_percent",
        Kind::Integer(0, 100),
        "Initial Spreading draws each gap at random from the gap less this share of it to the gap and this share: out of step with the departures of a full queue.",
    ),
    switch(
        "sack",
        Kind::Flag,
        "Selective acknowledgments (RFC 2018, RFC 6675).",
    ),
    switch(
        "sack_blocks",
        Kind::Integer(1, 4),
        "SACK blocks of an ACK, at most.",
    ),
    switch("dsack", Kind::Flag, "Report duplicates (RFC 2883)."),
    switch("timestamps", Kind::Flag, "Timestamps option (RFC 7323)."),
    switch(
        "window_scale",
        Kind::Either(&[Kind::Integer(0, 14), Kind::Choice(&["off"])]),
        "Shift offered for the receive window (RFC 7323).",
    ),
    switch("ecn", Kind::Flag, "Explicit congestion notification (RFC 3168)."),
    switch(
        "ecn_passive",
        Kind::Flag,
        "Agree to ECN when the peer asks; implied by `ecn`.",
    ),
    switch(
        "ecn_echo",
        Kind::Choice(&["rfc3168", "rfc8257"]),
        "How the receiver echoes marks; `rfc8257` with DCTCP and `prague` unless written, and `prague` takes nothing else.",
    ),
    switch(
        "ecn_codepoint",
        Kind::Choice(&["ect0", "ect1"]),
        "Codepoint of data with ECN; `ect1` with a DCTCP-like sender asks for L4S treatment (RFC 9331), as queue `dualpi2` gives; `ect1` with `prague` unless written, which takes nothing else.",
    ),
    switch(
        "dup_thresh",
        Kind::Integer(1, 255),
        "Duplicate ACKs or SACKed segments that show a loss.",
    ),
    switch(
        "limited_transmit",
        Kind::Flag,
        "New data on the first two duplicate ACKs (RFC 3042).",
    ),
    switch(
        "early_retransmit",
        Kind::Choice(&["off", "rfc5827", "immediate", "delayed"]),
        "A lower threshold when few segments are out.",
    ),
    switch(
        "prr",
        Kind::Choice(&["off", "rfc6937-crb", "rfc6937-ssrb", "rfc9937", "linux"]),
        "Window during recovery.",
    ),
    switch("rack", Kind::Flag, "Loss detection by time (RFC 8985)."),
    switch(
        "tail_loss_probe",
        Kind::Choice(&["off", "draft", "rfc8985"]),
        "A probe for a lost tail.",
    ),
    switch(
        "tail_loss_probe_restart",
        Kind::Flag,
        "Count the probe's timeout from the earliest outstanding segment, not from the last ACK.",
    ),
    switch(
        "rto_restart",
        Kind::Flag,
        "Count the retransmission timer from the earliest outstanding segment when fewer than four are out (RFC 7765).",
    ),
    switch(
        "rto_restart_threshold",
        Kind::Integer(1, 1_000_000),
        "Fewer outstanding and unsent segments than these are few for `rto_restart`.",
    ),
    switch(
        "probe_restart_threshold",
        Kind::Either(&[Kind::Choice(&["none"]), Kind::Integer(1, 1_000_000)]),
        "`tail_loss_probe_restart` only while fewer segments than these are out.",
    ),
    switch(
        "learn_ack_delay",
        Kind::Flag,
        "The allowance for delayed ACKs is at most four times RTTVAR: a peer that never delayed has shown none.",
    ),
    switch(
        "fack",
        Kind::Flag,
        "Forward acknowledgment, as Linux had it until 2017.",
    ),
    switch(
        "sack1_recovery",
        Kind::Flag,
        "With SACK, recover from losses as ns-2's Sack1 does: pipe counted by ACKs, each hole sent once, go-back-N after a timeout. Needs RACK, PRR, FACK, probes and early retransmit off.",
    ),
    switch(
        "max_ack_delay",
        TIME,
        "Allowance for delayed ACKs in the probe's timer.",
    ),
    switch("frto", Kind::Flag, "Detect spurious timeouts (RFC 5682)."),
    switch(
        "undo",
        Kind::Flag,
        "Undo reductions shown to be spurious (RFC 3522, RFC 4015, RFC 3708).",
    ),
    switch("min_rto", POSITIVE_TIME, "Floor of the retransmission timer."),
    switch(
        "initial_rto",
        POSITIVE_TIME,
        "Retransmission timer before the first sample.",
    ),
    switch("max_rto", POSITIVE_TIME, "Cap of the retransmission timer."),
    switch(
        "rto_floor",
        Kind::Choice(&["rto", "variance"]),
        "Whether the floor holds for the whole timer (RFC 6298) or for its variance term (Linux).",
    ),
    switch(
        "rtt_samples",
        Kind::Choice(&["once-per-rtt", "every-ack"]),
        "Which acknowledgments give samples.",
    ),
    switch(
        "tick",
        TIME,
        "Tick of the RTT clock: the estimator is BSD's in integers (`tcpTick_` in ns-2); zero: exact.",
    ),
    switch(
        "rto_after_spurious",
        Kind::Flag,
        "A timeout that was spurious because the RTT had grown starts the estimator from that RTT (RFC 4015).",
    ),
    switch(
        "syn_retries",
        Kind::Integer(0, 255),
        "SYN retransmissions before giving up.",
    ),
    switch(
        "retries",
        Kind::Integer(0, 255),
        "Data retransmissions before giving up.",
    ),
    switch(
        "delayed_ack",
        Kind::Either(&[
            Kind::Choice(&["off", "standard", "linux"]),
            Kind::KindTable(&DELAYED_ACK),
        ]),
        "When the receiver acknowledges.",
    ),
    switch(
        "receive_buffer",
        Kind::Bytes(1, u64::MAX),
        "Bounds the window offered.",
    ),
    switch(
        "send_buffer",
        Kind::Bytes(1, u64::MAX),
        "Bounds what an application may write ahead.",
    ),
    switch(
        "thin_dupack",
        Kind::Flag,
        "One SACKed segment shows a loss while fewer than four are out (Linux until 4.10); without effect under RACK.",
    ),
    switch(
        "thin_linear",
        Kind::Flag,
        "The first six timeouts of a stream with fewer than four segments out do not back off (Linux).",
    ),
    switch(
        "rdb",
        Kind::Either(&[Kind::Choice(&["off", "one", "all"]), Kind::Table(RDB)]),
        "Redundant data bundling: new segments of thin streams carry older ones along, one or as many as fit; or a table.",
    ),
    switch(
        "coalesce_unsent",
        Kind::Flag,
        "Writes that wait for the window flow together into full segments; else each is a segment of its own.",
    ),
    switch(
        "nagle",
        Kind::Flag,
        "Hold small segments while data is unacknowledged.",
    ),
    key(
        "super_packets",
        Kind::Either(&[
            Kind::Choice(&["off", "timer", "burst", "accumulate", "fixed"]),
            Kind::Table(SUPER_PACKETS),
        ]),
        Described("off"),
        "Mark outgoing packets as super-packets, which routers that know them admit or refuse as a whole: a mode, or a table.",
    ),
    key(
        "host_coalesce",
        Kind::Duration(Duration::ZERO, Duration::from_secs(1)),
        Described("0 s: each at once"),
        "Interrupt coalescing at both hosts: packets that arrive are handed up together, so long after the first of them.",
    ),
];

/// `super_packets`.
pub(crate) static SUPER_PACKETS: &[Key] = &[
    key(
        "mode",
        Kind::Choice(&["timer", "burst", "accumulate", "fixed"]),
        Value("\"timer\""),
        "When a group is complete: after a silence of `t_buffer`; at once, with what TCP sends at one moment; when `max` packets are there or an eighth of the smoothed RTT has passed; or without waiting, a fixed length of `max`.",
    ),
    key(
        "t_buffer",
        POSITIVE_TIME,
        Described("60 us"),
        "Mode `timer`: how long a packet waits for the next one. Mode `accumulate`: longest wait while there is no RTT.",
    ),
    key(
        "max",
        Kind::Integer(2, 255),
        Value("10"),
        "Most packets of a group; a layout may allow fewer.",
    ),
    key(
        "layout",
        Kind::Choice(Layout::NAMES),
        Value("\"B\""),
        "Where marks stand: type of service and identification (A), a codepoint and the identification (B), an IPv6 option (C, eight bytes).",
    ),
    key(
        "codepoint",
        Kind::Integer(1, 63),
        Described("3"),
        "Layout B: the codepoint that says that the identification carries a mark.",
    ),
    key(
        "declare",
        Kind::Either(&[Kind::Integer(1, 255), Kind::Text]),
        Value("\"true\""),
        "The length that packets announce: \"true\" (what it is), \"+5\" or \"-5\" (so many more or fewer), or always this number.",
    ),
];

/// `rdb`.
pub(crate) static RDB: &[Key] = &[
    key(
        "thin",
        Kind::Either(&[Kind::Choice(&["dynamic"]), Kind::Integer(1, 1_000_000)]),
        Value("\"dynamic\""),
        "When a stream is thin: with fewer segments in flight than this number; or `dynamic`, while segments in flight times `min_interval` are less than the RTT.",
    ),
    key(
        "min_interval",
        Kind::Duration(Duration::from_millis(10), super::DAY),
        Value("\"10 ms\""),
        "Least time between segments of a thin stream (RFC 4828: not below 10 ms).",
    ),
    key(
        "rtt",
        Kind::Choice(&["smallest", "smoothed"]),
        Value("\"smallest\""),
        "Which RTT `dynamic` compares with.",
    ),
    key(
        "in_flight",
        Kind::Choice(&["pipe", "out"]),
        Value("\"pipe\""),
        "What counts as in flight: without what is SACKed or lost, or all that is not acknowledged.",
    ),
    key(
        "max_segments",
        Kind::Integer(0, 255),
        Value("1"),
        "Older segments that a packet may carry along; 0: as many as fit.",
    ),
    key(
        "max_payload",
        Kind::Bytes(0, 65_535),
        Value("\"0 B\""),
        "Largest payload of such a packet; 0: the MSS.",
    ),
    key(
        "detect",
        Kind::Choice(&["ignored", "original", "dsack"]),
        Value("\"dsack\""),
        "How losses that a packet repaired are found: not at all, by the number of an ACK, or unless a D-SACK says that nothing was lost. They reduce the window.",
    ),
    key(
        "budget",
        Kind::Integer(1, 100),
        Value("100"),
        "Redundant bytes, at most so many per cent of the bytes on the wire within 16 round trips.",
    ),
    key(
        "charge",
        Kind::Flag,
        Value("false"),
        "Redundant bytes need room in the window too.",
    ),
    key(
        "spaced",
        Kind::Flag,
        Value("false"),
        "Only while everything written is sent and segments leave no faster than every `min_interval` on average.",
    ),
    key(
        "tfrc_bound",
        Kind::Flag,
        Value("false"),
        "Only while segments leave no faster than TFRC-SP permits at the loss seen.",
    ),
    key(
        "min_loss",
        Kind::Flag,
        Value("false"),
        "Only while more than one segment in 200 was lost lately.",
    ),
];

/// Names of the profiles.
pub(crate) const PROFILES: &[&str] = &fleetfoot_core::tcp::Profile::NAMES;

const fn switch(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    key(name, kind, Described("as the profile"), doc)
}

const HALF_SECOND: Duration = Duration::from_millis(500);

/// Rules for delayed ACKs.
pub(crate) static DELAYED_ACK: KindTable = KindTable {
    tag: "kind",
    what: "rule for delayed ACKs",
    common: &[],
    kinds: &[
        KindKeys {
            name: "off",
            doc: "Every segment is acknowledged at once.",
            keys: &[],
        },
        KindKeys {
            name: "standard",
            doc: "Every second full segment, or after a time.",
            keys: &[key(
                "timeout",
                Kind::Duration(NANOSECOND, HALF_SECOND),
                Value("\"100 ms\""),
                "Longest delay.",
            )],
        },
        KindKeys {
            name: "linux",
            doc: "Adaptive, after a phase of immediate ACKs.",
            keys: &[
                key(
                    "min",
                    Kind::Duration(NANOSECOND, HALF_SECOND),
                    Value("\"40 ms\""),
                    "Floor of the delay.",
                ),
                key(
                    "max",
                    Kind::Duration(NANOSECOND, HALF_SECOND),
                    Value("\"200 ms\""),
                    "Cap of the delay.",
                ),
                key(
                    "quick_acks",
                    Kind::Integer(0, 255),
                    Value("16"),
                    "Segments acknowledged at once at the start and after idle.",
                ),
            ],
        },
    ],
};
