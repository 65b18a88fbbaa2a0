//! The table of switches: what each does, its value in every profile, and the source of that value. This part: windows,
//! acknowledgments and what is lost.

use super::profile::Switch;
use super::switches_network::NETWORK;
use super::switches_thin::THIN;
use super::switches_timers::TIMERS;

const PARTS: [&[Switch]; 4] = [FIRST, TIMERS, THIN, &NETWORK];

/// Every switch with its value and source in every profile.
pub const SWITCHES: &[Switch] = &{
    let mut all = [FIRST[0]; FIRST.len() + TIMERS.len() + THIN.len() + NETWORK.len()];
    let (mut part, mut place, mut index) = (0, 0, 0);
    while index < all.len() {
        if place == PARTS[part].len() {
            (part, place) = (part + 1, 0);
        } else {
            all[index] = PARTS[part][place];
            (place, index) = (place + 1, index + 1);
        }
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
];
