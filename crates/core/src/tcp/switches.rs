//! The table of switches: what each does, its value in every profile, and the source of that value.

use super::profile::Switch;
use super::switches_network::NETWORK;
use super::switches_thin::THIN;

/// Every switch with its value and source in every profile.
pub const SWITCHES: &[Switch] = &{
    let mut all = [FIRST[0]; FIRST.len() + THIN.len() + NETWORK.len()];
    let mut index = 0;
    while index < all.len() {
        all[index] = if index < FIRST.len() {
            FIRST[index]
        } else if index < FIRST.len() + THIN.len() {
            THIN[index - FIRST.len()]
        } else {
            NETWORK[index - FIRST.len() - THIN.len()]
        };
        index += 1;
    }
    all
};

const FIRST: &[Switch] = &[
    Switch {
        name: "congestion_control",
        doc: "Registered name of the congestion control.",
        cells: [
            ("reno", "ns-2.35 tcp.cc: opencwnd"),
            ("reno", "ns-2.35 tcp.cc: opencwnd"),
            ("cubic", "net/ipv4/Kconfig: DEFAULT_CUBIC"),
            ("cubic", "net/ipv4/Kconfig: DEFAULT_CUBIC"),
            ("cubic", "net/ipv4/Kconfig: DEFAULT_CUBIC"),
            ("reno", "RFC 5681"),
        ],
    },
    Switch {
        name: "initial_window",
        doc: "Window at the start.",
        cells: [
            ("2 segments", "ns-default.tcl: windowInit_ 2"),
            ("2 segments", "ns-default.tcl: windowInit_ 2"),
            ("10 segments", "include/net/tcp.h: TCP_INIT_CWND (2.6.39)"),
            ("10 segments", "include/net/tcp.h: TCP_INIT_CWND"),
            ("10 segments", "include/net/tcp.h: TCP_INIT_CWND"),
            ("rfc6928", "RFC 6928 2"),
        ],
    },
    Switch {
        name: "syn_losses_forgiven",
        doc: "SYN retransmissions that leave the initial window as it is.",
        cells: [
            ("0", "tcp.cc: timeout sets wnd_init_ to 1; bugfix_ss_ 1"),
            ("0", "tcp.cc: timeout sets wnd_init_ to 1; bugfix_ss_ 1"),
            ("1", "tcp_init_cwnd: total_retrans > 1 (3.1)"),
            ("1", "tcp_init_cwnd: total_retrans > 1"),
            ("1", "specs/linux-6.18/syn-lost.txt"),
            ("1", "RFC 6928 2"),
        ],
    },
    Switch {
        name: "max_window_segments",
        doc: "Upper bound of the window.",
        cells: [
            ("20", "ns-default.tcl: window_ 20"),
            ("20", "ns-default.tcl: window_ 20"),
            ("none", "snd_cwnd_clamp is unlimited"),
            ("none", "snd_cwnd_clamp is unlimited"),
            ("none", "snd_cwnd_clamp is unlimited"),
            ("none", "no such bound in RFC 5681"),
        ],
    },
    Switch {
        name: "abc_limit",
        doc: "Segments one ACK may add in slow start.",
        cells: [
            ("1", "tcp.cc: opencwnd adds 1"),
            ("1", "tcp.cc: opencwnd adds 1"),
            ("1", "tcp_slow_start: sysctl_tcp_abc 0"),
            ("none", "tcp_slow_start adds acked (3.13)"),
            ("none", "tcp_slow_start adds acked"),
            ("1", "RFC 5681 (2)"),
        ],
    },
    Switch {
        name: "window_unit",
        doc: "What window, pipe and growth count.",
        cells: [
            (
                "packet-fractions",
                "tcp.cc: opencwnd, slowdown; precisionReduce_ true",
            ),
            (
                "packet-fractions",
                "tcp.cc: opencwnd, slowdown; precisionReduce_ true",
            ),
            ("packets", "snd_cwnd counts packets"),
            ("packets", "snd_cwnd counts packets"),
            ("packets", "snd_cwnd counts packets"),
            ("bytes", "RFC 5681 2"),
        ],
    },
    Switch {
        name: "hystart",
        doc: "Slow-start exit before a loss.",
        cells: [
            ("off", "not in ns-2.35's base class"),
            ("off", "not in ns-2.35's base class"),
            ("hystart", "tcp_cubic.c: hystart 1"),
            ("hystart", "tcp_cubic.c: hystart 1"),
            ("hystart", "tcp_cubic.c: hystart 1"),
            ("off", "RFC 9406 is optional; Reno of RFC 5681 has none"),
        ],
    },
    Switch {
        name: "cubic_arithmetic",
        doc: "How CUBIC computes: in real numbers, or in Linux's whole segments and scaled integers.",
        cells: [
            ("rfc9438", "no CUBIC of its own"),
            ("rfc9438", "no CUBIC of its own"),
            (
                "linux",
                "tcp_cubic.c 3.2, whose count per ACK divided by the delayed-ACK ratio comes near",
            ),
            ("linux", "tcp_cubic.c 4.1: bictcp_update"),
            ("linux", "tcp_cubic.c: bictcp_update"),
            ("rfc9438", "RFC 9438 4"),
        ],
    },
    Switch {
        name: "growth",
        doc: "Which ACKs may let the window grow.",
        cells: [
            ("always", "tcp.cc: recv_newack_helper"),
            ("always", "tcp.cc: recv_newack_helper"),
            ("cwnd-limited", "tcp_is_cwnd_limited (3.2)"),
            ("linux", "tcp_is_cwnd_limited (3.16)"),
            ("linux", "tcp_is_cwnd_limited"),
            ("cwnd-limited", "RFC 7661 4.3, RFC 9438 5.8"),
        ],
    },
    Switch {
        name: "reduce_from_window",
        doc: "Reduced ssthresh from the window, not FlightSize.",
        cells: [
            ("true", "tcp.cc: slowdown halves window()"),
            ("true", "tcp.cc: slowdown halves window()"),
            ("true", "tcp_reno_ssthresh, bictcp_recalc_ssthresh"),
            ("true", "tcp_reno_ssthresh, bictcp_recalc_ssthresh"),
            ("true", "tcp_reno_ssthresh, cubictcp_recalc_ssthresh"),
            ("false", "RFC 5681 (4)"),
        ],
    },
    Switch {
        name: "window_validation",
        doc: "What idle time does to the window.",
        cells: [
            ("none", "tcp.cc: QOption_ 0"),
            ("none", "tcp.cc: QOption_ 0"),
            ("rfc2861", "tcp_slow_start_after_idle 1"),
            ("rfc2861", "tcp_slow_start_after_idle 1"),
            ("rfc2861", "tcp_slow_start_after_idle 1"),
            ("rfc5681", "RFC 5681 4.1"),
        ],
    },
    Switch {
        name: "sack",
        doc: "Selective acknowledgment.",
        cells: [
            ("true", "Agent/TCP/Sack1, TCPSink/Sack1"),
            ("false", "Agent/TCP/Newreno, TCPSink"),
            ("true", "tcp_sack 1"),
            ("true", "tcp_sack 1"),
            ("true", "tcp_sack 1"),
            ("true", "RFC 2018, RFC 6675"),
        ],
    },
    Switch {
        name: "sack_blocks",
        doc: "SACK blocks of an ACK, at most.",
        cells: [
            ("3", "ns-default.tcl: maxSackBlocks_ 3"),
            ("3", "no SACK: nothing uses it"),
            ("4", "TCP_NUM_SACKS"),
            ("4", "TCP_NUM_SACKS"),
            ("4", "TCP_NUM_SACKS"),
            ("4", "RFC 2018 3"),
        ],
    },
    Switch {
        name: "dsack",
        doc: "Report duplicates.",
        cells: [
            ("false", "ns-default.tcl: generateDSacks_ false"),
            ("false", "ns-default.tcl: generateDSacks_ false"),
            ("true", "tcp_dsack 1"),
            ("true", "tcp_dsack 1"),
            ("true", "tcp_dsack 1"),
            ("true", "RFC 2883"),
        ],
    },
    Switch {
        name: "timestamps",
        doc: "Timestamps option.",
        cells: [
            ("false", "ns-default.tcl: timestamps_ false"),
            ("false", "ns-default.tcl: timestamps_ false"),
            ("true", "tcp_timestamps 1"),
            ("true", "tcp_timestamps 1"),
            ("true", "tcp_timestamps 1"),
            ("true", "RFC 7323 3"),
        ],
    },
    Switch {
        name: "window_scale",
        doc: "Window scale offered.",
        cells: [
            ("14", "ns-2 counts packets: no 16-bit window"),
            ("14", "ns-2 counts packets: no 16-bit window"),
            ("7", "tcp_select_initial_window with rmem 6 MiB"),
            ("7", "tcp_select_initial_window with rmem 6 MiB"),
            ("7", "tcp_select_initial_window with rmem 6 MiB"),
            ("7", "RFC 7323 2; covers the buffer"),
        ],
    },
    Switch {
        name: "ecn",
        doc: "Ask for ECN.",
        cells: [
            ("false", "ns-default.tcl: ecn_ 0"),
            ("false", "ns-default.tcl: ecn_ 0"),
            ("false", "tcp_ecn 2"),
            ("false", "tcp_ecn 2"),
            ("false", "tcp_ecn 2"),
            ("false", "RFC 3168 is optional"),
        ],
    },
    Switch {
        name: "ecn_passive",
        doc: "Agree to ECN when asked.",
        cells: [
            ("false", "ns-default.tcl: ecn_ 0"),
            ("false", "ns-default.tcl: ecn_ 0"),
            ("true", "tcp_ecn 2"),
            ("true", "tcp_ecn 2"),
            ("true", "tcp_ecn 2"),
            ("true", "RFC 9293 SHLD-8"),
        ],
    },
    Switch {
        name: "ecn_echo",
        doc: "How marks are echoed.",
        cells: [
            ("rfc3168", "tcp-sink.cc"),
            ("rfc3168", "tcp-sink.cc"),
            ("rfc3168", "tcp_ecn_check_ce"),
            ("rfc3168", "tcp_ecn_check_ce"),
            ("rfc3168", "tcp_ecn_check_ce"),
            ("rfc3168", "RFC 3168 6.1.3"),
        ],
    },
    Switch {
        name: "ecn_codepoint",
        doc: "Codepoint of data with ECN; ect1 asks for L4S treatment.",
        cells: [
            ("ect0", "ns-2.35 knows one ECT bit"),
            ("ect0", "ns-2.35 knows one ECT bit"),
            ("ect0", "INET_ECN_xmit"),
            ("ect0", "INET_ECN_xmit"),
            ("ect0", "INET_ECN_xmit"),
            ("ect0", "RFC 3168 5, RFC 8311 3.3"),
        ],
    },
    Switch {
        name: "dup_thresh",
        doc: "Duplicate ACKs that show a loss.",
        cells: [
            ("3", "ns-default.tcl: numdupacks_ 3"),
            ("3", "ns-default.tcl: numdupacks_ 3"),
            ("3", "tcp_reordering 3"),
            ("3", "tcp_reordering 3"),
            ("3", "tcp_reordering 3"),
            ("3", "RFC 5681 3.2, RFC 6675 2"),
        ],
    },
    Switch {
        name: "limited_transmit",
        doc: "New data on the first two duplicate ACKs.",
        cells: [
            ("true", "ns-default.tcl: singledup_ 1"),
            ("true", "ns-default.tcl: singledup_ 1"),
            ("true", "packets in flight leave out SACKed ones"),
            ("true", "packets in flight leave out SACKed ones"),
            ("true", "packets in flight leave out SACKed ones"),
            ("true", "RFC 3042"),
        ],
    },
    Switch {
        name: "early_retransmit",
        doc: "Lower threshold when few segments are out.",
        cells: [
            ("off", "not in ns-2.35"),
            ("off", "not in ns-2.35"),
            ("off", "came with 3.5"),
            ("delayed", "tcp_early_retrans 3"),
            ("off", "removed in 4.11 (commit bec41a11dd3d)"),
            ("rfc5827", "RFC 5827 3.2"),
        ],
    },
    Switch {
        name: "prr",
        doc: "Window during recovery.",
        cells: [
            ("off", "window() is ssthresh"),
            ("off", "window() is ssthresh"),
            (
                "rfc6937-ssrb",
                "tcp_update_cwnd_in_recovery (3.2); its share is of prior_cwnd",
            ),
            ("linux", "tcp_cwnd_reduction (July 2015); until then rfc6937-ssrb"),
            ("linux", "tcp_cwnd_reduction: divides by prior_cwnd"),
            ("rfc9937", "RFC 9937"),
        ],
    },
    Switch {
        name: "rack",
        doc: "Time-based loss detection.",
        cells: [
            ("false", "not in ns-2.35"),
            ("false", "not in ns-2.35"),
            ("false", "came with 4.4"),
            ("false", "came with 4.4"),
            ("true", "tcp_recovery 1"),
            ("true", "RFC 8985"),
        ],
    },
    Switch {
        name: "rack_timer_tick",
        doc: "RACK's timer and the probe's wait 2 ms longer, in whole ticks of this length.",
        cells: [
            ("0 ns", "no RACK"),
            ("0 ns", "no RACK"),
            ("0 ns", "no RACK"),
            ("0 ns", "no RACK"),
            (
                "4 ms",
                "tcp_rack_mark_lost, tcp_schedule_loss_probe: TCP_TIMEOUT_MIN_US; HZ 250",
            ),
            ("0 ns", "RFC 8985 6.2 step 5"),
        ],
    },
    Switch {
        name: "tail_loss_probe",
        doc: "Probe for a lost tail.",
        cells: [
            ("off", "not in ns-2.35"),
            ("off", "not in ns-2.35"),
            ("off", "came with 3.10"),
            ("draft", "tcp_schedule_loss_probe (3.10)"),
            ("rfc8985", "tcp_schedule_loss_probe"),
            ("rfc8985", "RFC 8985 7"),
        ],
    },
    Switch {
        name: "fack",
        doc: "Forward acknowledgment.",
        cells: [
            ("false", "Sack1 counts pipe"),
            ("false", "no SACK"),
            ("true", "tcp_fack 1"),
            ("true", "tcp_fack 1"),
            ("false", "removed in 4.15"),
            ("false", "RFC 6675"),
        ],
    },
    Switch {
        name: "sack1_recovery",
        doc: "Loss recovery of ns-2's Sack1: pipe counted by ACKs, each hole sent once, go-back-N after a timeout.",
        cells: [
            ("true", "tcp-sack1.cc: recv, send_much, timeout; partial_ack_ 0"),
            ("true", "no SACK: nothing uses it"),
            ("false", "RFC 6675 4"),
            ("false", "RFC 6675 4"),
            ("false", "RFC 6675 4"),
            ("false", "RFC 6675 4"),
        ],
    },
    Switch {
        name: "rto_restart",
        doc: "RTO counted from the earliest segment when few are out.",
        cells: [
            ("false", "not in ns-2.35"),
            ("false", "not in ns-2.35"),
            ("false", "not in Linux"),
            ("false", "not in Linux"),
            ("false", "not in Linux"),
            ("false", "RFC 7765 is experimental"),
        ],
    },
    Switch {
        name: "tail_loss_probe_restart",
        doc: "Probe timeout counted from the earliest segment.",
        cells: [
            ("false", "not in ns-2.35"),
            ("false", "not in ns-2.35"),
            ("false", "not in Linux"),
            ("false", "not in Linux"),
            ("false", "not in Linux"),
            ("false", "no RFC"),
        ],
    },
    Switch {
        name: "max_ack_delay",
        doc: "Delayed-ACK allowance of the probe timer.",
        cells: [
            ("200 ms", "unused"),
            ("200 ms", "unused"),
            ("200 ms", "unused"),
            ("200 ms", "draft-dukkipati-tcpm-tcp-loss-probe-01 2: WCDelAckT"),
            ("200 ms", "tcp_schedule_loss_probe: TCP_RTO_MIN"),
            ("200 ms", "RFC 8985 7.2; the delay a receiver of RFC 5681 may use"),
        ],
    },
    Switch {
        name: "frto",
        doc: "Detect spurious timeouts.",
        cells: [
            ("false", "ns-default.tcl: frto_enabled_ 0"),
            ("false", "ns-default.tcl: frto_enabled_ 0"),
            ("true", "tcp_frto 2"),
            ("true", "tcp_frto 2"),
            ("true", "tcp_frto 2"),
            ("true", "RFC 5682"),
        ],
    },
    Switch {
        name: "undo",
        doc: "Undo reductions shown spurious.",
        cells: [
            ("false", "not in the base class"),
            ("false", "not in the base class"),
            ("true", "tcp_try_undo_recovery, tcp_try_undo_dsack"),
            ("true", "tcp_try_undo_recovery, tcp_try_undo_dsack"),
            ("true", "tcp_try_undo_recovery, tcp_try_undo_dsack"),
            ("true", "RFC 3522, RFC 4015, RFC 3708"),
        ],
    },
    Switch {
        name: "rto.floor",
        doc: "Where the floor of the RTO applies.",
        cells: [
            ("rto", "tcp.cc: rtt_timeout"),
            ("rto", "tcp.cc: rtt_timeout"),
            ("variance", "tcp_rtt_estimator: rttvar at least rto_min"),
            ("variance", "tcp_rtt_estimator: rttvar at least rto_min"),
            ("variance", "tcp_rtt_estimator: rttvar at least rto_min"),
            ("rto", "RFC 6298 2.4"),
        ],
    },
    Switch {
        name: "rto.min",
        doc: "The floor.",
        cells: [
            ("200 ms", "ns-default.tcl: minrto_ 0.2"),
            ("200 ms", "ns-default.tcl: minrto_ 0.2"),
            ("200 ms", "TCP_RTO_MIN"),
            ("200 ms", "TCP_RTO_MIN"),
            ("200 ms", "TCP_RTO_MIN"),
            ("1 s", "RFC 6298 2.4"),
        ],
    },
    Switch {
        name: "rto.initial",
        doc: "Before the first sample.",
        cells: [
            ("3 s", "ns-default.tcl: rtxcur_init_ 3.0"),
            ("3 s", "ns-default.tcl: rtxcur_init_ 3.0"),
            ("1 s", "TCP_TIMEOUT_INIT"),
            ("1 s", "TCP_TIMEOUT_INIT"),
            ("1 s", "TCP_TIMEOUT_INIT"),
            ("1 s", "RFC 6298 2.1"),
        ],
    },
    Switch {
        name: "rto.after_syn_timeout",
        doc: "For data if the SYN was retransmitted.",
        cells: [
            (
                "6 s",
                "ns-default.tcl: rtxcur_init_ 3.0; tcp.cc: t_backoff_ stays",
            ),
            (
                "6 s",
                "ns-default.tcl: rtxcur_init_ 3.0; tcp.cc: t_backoff_ stays",
            ),
            ("3 s", "TCP_TIMEOUT_FALLBACK"),
            ("3 s", "TCP_TIMEOUT_FALLBACK"),
            ("3 s", "TCP_TIMEOUT_FALLBACK"),
            ("3 s", "RFC 6298 5.7"),
        ],
    },
    Switch {
        name: "rto.max",
        doc: "Cap of the RTO.",
        cells: [
            ("60 s", "ns-default.tcl: maxrto_ 60"),
            ("60 s", "ns-default.tcl: maxrto_ 60"),
            ("120 s", "TCP_RTO_MAX"),
            ("120 s", "TCP_RTO_MAX"),
            ("120 s", "TCP_RTO_MAX"),
            ("60 s", "RFC 6298 2.5"),
        ],
    },
    Switch {
        name: "rto.granularity",
        doc: "Clock granularity G.",
        cells: [
            ("10 ms", "ns-default.tcl: tcpTick_ 0.01"),
            ("10 ms", "ns-default.tcl: tcpTick_ 0.01"),
            ("1 ms", "CONFIG_HZ 1000"),
            ("1 ms", "CONFIG_HZ 1000"),
            ("1 ms", "CONFIG_HZ 1000"),
            ("1 ms", "RFC 6298 4: 100 ms or finer"),
        ],
    },
    Switch {
        name: "rto.samples",
        doc: "Which ACKs give RTT samples.",
        cells: [
            ("once-per-rtt", "tcp.cc: rtt_active_"),
            ("once-per-rtt", "tcp.cc: rtt_active_"),
            ("every-ack", "tcp_ack_update_rtt"),
            ("every-ack", "tcp_ack_update_rtt"),
            ("every-ack", "tcp_ack_update_rtt"),
            ("every-ack", "RFC 6298 3: at least one per RTT; RFC 7323 4"),
        ],
    },
    Switch {
        name: "rto.tick",
        doc: "Unit of the estimator in integers; zero: exact.",
        cells: [
            (
                "10 ms",
                "ns-default.tcl: tcpTick_ 0.01; tcp.cc: rtt_update, rtt_backoff",
            ),
            (
                "10 ms",
                "ns-default.tcl: tcpTick_ 0.01; tcp.cc: rtt_update, rtt_backoff",
            ),
            ("0 ns", "microseconds; treated as exact"),
            ("0 ns", "microseconds; treated as exact"),
            ("0 ns", "microseconds; treated as exact"),
            ("0 ns", "no rounding in RFC 6298"),
        ],
    },
    Switch {
        name: "syn_retries",
        doc: "SYN retransmissions before giving up.",
        cells: [
            ("255", "ns-2 never gives up"),
            ("255", "ns-2 never gives up"),
            ("5", "tcp_syn_retries 5"),
            ("6", "tcp_syn_retries 6"),
            ("6", "tcp_syn_retries 6"),
            ("8", "RFC 9293 MUST-23: at least 3 minutes"),
        ],
    },
    Switch {
        name: "retries",
        doc: "Retransmissions of data before giving up.",
        cells: [
            ("255", "ns-2 never gives up"),
            ("255", "ns-2 never gives up"),
            ("15", "tcp_retries2 15"),
            ("15", "tcp_retries2 15"),
            ("15", "tcp_retries2 15"),
            ("15", "RFC 9293 SHLD-11: at least 100 s"),
        ],
    },
    Switch {
        name: "delayed_ack",
        doc: "When the receiver acknowledges.",
        cells: [
            ("off", "TCPSink, TCPSink/Sack1"),
            ("off", "TCPSink, TCPSink/Sack1"),
            (
                "linux 40 ms to 200 ms, 16 quick",
                "TCP_DELACK_MIN, TCP_DELACK_MAX, TCP_MAX_QUICKACKS",
            ),
            (
                "linux 40 ms to 200 ms, 16 quick",
                "TCP_DELACK_MIN, TCP_DELACK_MAX, TCP_MAX_QUICKACKS",
            ),
            (
                "linux 40 ms to 200 ms, 16 quick",
                "TCP_DELACK_MIN, TCP_DELACK_MAX, TCP_MAX_QUICKACKS",
            ),
            ("200 ms", "RFC 9293 MUST-40: less than 500 ms"),
        ],
    },
    Switch {
        name: "receive_buffer",
        doc: "Bounds the window offered.",
        cells: [
            ("1073741824 B", "ns-2 has no receive window"),
            ("1073741824 B", "ns-2 has no receive window"),
            ("6291456 B", "tcp_rmem maximum; tuning taken as done"),
            ("6291456 B", "tcp_rmem maximum; tuning taken as done"),
            ("6291456 B", "tcp_rmem maximum; tuning taken as done"),
            ("6291456 B", "large enough not to matter"),
        ],
    },
    Switch {
        name: "receive_memory",
        doc: "The window follows a buffer that counts what segments occupy.",
        cells: [
            ("off", "ns-2 has no receive window"),
            ("off", "ns-2 has no receive window"),
            ("off", "tuning taken as done; sockets turn it on"),
            ("off", "tuning taken as done; sockets turn it on"),
            ("off", "tuning taken as done; sockets turn it on"),
            ("off", "not in any RFC"),
        ],
    },
    Switch {
        name: "send_buffer",
        doc: "Bounds what write takes.",
        cells: [
            ("unlimited", "ns-2 has no send buffer"),
            ("unlimited", "ns-2 has no send buffer"),
            ("4194304 B", "tcp_wmem maximum; tuning taken as done"),
            ("4194304 B", "tcp_wmem maximum; tuning taken as done"),
            ("4194304 B", "tcp_wmem maximum; tuning taken as done"),
            ("4194304 B", "large enough not to matter"),
        ],
    },
    Switch {
        name: "challenge_interval",
        doc: "Least time between answers to unacceptable segments without data.",
        cells: [
            ("0 ns", "ns-2 answers everything"),
            ("0 ns", "ns-2 answers everything"),
            ("0 ns", "came with 4.0"),
            ("500 ms", "tcp_invalid_ratelimit (4.0)"),
            ("500 ms", "tcp_invalid_ratelimit"),
            ("0 ns", "RFC 5961 7 limits a number per time"),
        ],
    },
    Switch {
        name: "zero_window_probe",
        doc: "What asks a peer whose window is shut.",
        cells: [
            ("byte", "ns-2 has no windows that shut"),
            ("byte", "ns-2 has no windows that shut"),
            ("empty", "tcp_xmit_probe_skb"),
            ("empty", "tcp_xmit_probe_skb"),
            ("empty", "tcp_xmit_probe_skb"),
            ("byte", "RFC 9293 3.8.6.1"),
        ],
    },
    Switch {
        name: "nagle",
        doc: "Hold small segments while data is unacknowledged.",
        cells: [
            ("false", "ns-2 sends whole packets"),
            ("false", "ns-2 sends whole packets"),
            ("true", "TCP_NODELAY off"),
            ("true", "TCP_NODELAY off"),
            ("true", "TCP_NODELAY off"),
            ("true", "RFC 9293 SHLD-7"),
        ],
    },
    Switch {
        name: "nagle_minshall",
        doc: "Nagle holds a small segment only while another small one is unacknowledged.",
        cells: [
            ("false", "Nagle is off"),
            ("false", "Nagle is off"),
            ("true", "tcp_minshall_check"),
            ("true", "tcp_minshall_check"),
            ("true", "tcp_minshall_check; specs/linux-6.18/idle-1s.txt"),
            ("false", "RFC 9293 3.7.4"),
        ],
    },
    Switch {
        name: "offload_segments",
        doc: "Least group for segmentation offload; the last segment of a group carries PSH.",
        cells: [
            ("off", "not in ns-2.35"),
            ("off", "not in ns-2.35"),
            ("off", "groups carry no PSH before 5.5"),
            ("off", "groups carry no PSH before 5.5"),
            (
                "2",
                "tcp_min_tso_segs, tcp_tso_autosize; PSH since 5.5 (051ba67447de)",
            ),
            ("off", "not in the RFCs"),
        ],
    },
    Switch {
        name: "keep_alive",
        doc: "Keep-alive.",
        cells: [
            ("off", "not in ns-2.35"),
            ("off", "not in ns-2.35"),
            ("off", "SO_KEEPALIVE off"),
            ("off", "SO_KEEPALIVE off"),
            ("off", "SO_KEEPALIVE off"),
            ("off", "RFC 9293 MUST-25"),
        ],
    },
    Switch {
        name: "msl",
        doc: "Maximum segment lifetime.",
        cells: [
            ("1 s", "simulator's choice"),
            ("1 s", "simulator's choice"),
            ("1 s", "simulator's choice; TCP_TIMEWAIT_LEN is 60 s"),
            ("1 s", "simulator's choice; TCP_TIMEWAIT_LEN is 60 s"),
            ("1 s", "simulator's choice; TCP_TIMEWAIT_LEN is 60 s"),
            ("1 s", "simulator's choice; RFC 9293 3.4.2 has 2 min"),
        ],
    },
    Switch {
        name: "mtu",
        doc: "Largest IP packet.",
        cells: [
            (
                "1040",
                "ns-default.tcl: packetSize_ 1000, tcpip_base_hdr_size_ 40",
            ),
            (
                "1040",
                "ns-default.tcl: packetSize_ 1000, tcpip_base_hdr_size_ 40",
            ),
            ("1500", "Ethernet"),
            ("1500", "Ethernet"),
            ("1500", "Ethernet"),
            ("1500", "Ethernet"),
        ],
    },
];
