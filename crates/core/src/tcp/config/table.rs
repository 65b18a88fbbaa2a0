//! The table of switches: [`Config`].
//!
//! To add a switch is to add a row here and to read its field where it has its effect. Profiles, keys of scenario files
//! with their reader, schema and reference, `explain` and the page of profiles follow from the row.
//!
//! **Source.** In every cell. ns-2 is version 2.35; Linux names are those of its source and its documents.
//! **Deviations.** Linux tunes its buffers while a connection runs: here send buffers start with the maximum, and so do the
//! receive buffers of the older profiles, whose kernels tuned them by other rules than today's. The maximum segment lifetime
//! is one second everywhere, so that simulated connections leave TIME-WAIT soon.
#![allow(
    unreachable_patterns,
    reason = "the first cell that names a profile holds for it"
)]

use super::choices::{
    DelayedAck, DsackRules, EarlyRetransmit, EcnCodepoint, EcnEcho, EcnFeedback, EcnOption, InitialSpreading,
    InitialWindow, KeepAlive, Pacing, Profile, Prr, TailLossProbe, TimeoutRules, TimerGrid, WindowGrowth,
    WindowUnit, WindowValidation, ZeroWindowProbe,
};
use super::groups::{PathConfig, RetryLimits, RtoConfig};
use super::switch::{Switch, SwitchForm, count, joined};
use super::{TIME, millis, secs};
use crate::cc::{CubicArithmetic, HyStart};
use crate::parameter::ParameterKind::{self, Choice, Integer};
use crate::parameter::{Values, Written};
use crate::plugin::Plugins;
use crate::tcp::{Rdb, ReceiveMemory};
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};

const UP_TO_A_SECOND: ParameterKind = ParameterKind::Duration(Duration::ZERO, secs(1));
const POSITIVE_SECOND: ParameterKind = ParameterKind::Duration(Duration::from_nanos(1), secs(1));
const ANY_BYTES: ParameterKind = ParameterKind::Bytes(Bytes(1), Bytes::MAX);
const UP_TO_A_YEAR: ParameterKind = ParameterKind::Duration(Duration::ZERO, secs(31_536_000));

switches! {
    /// Everything that decides how a connection behaves.
    #[derive(Clone, Debug, PartialEq, serde::Serialize)]
    pub struct Config at [] {
        /// Largest IP packet of the path's first link, bytes; the MSS offered is this less headers.
        mtu: u32 = {
            ns2 => 1040, "ns-default.tcl: packetSize_ 1000, tcpip_base_hdr_size_ 40";
            linux => 1500, "Ethernet";
            rfc => 1500, "Ethernet";
        }
        /// From when up to when [`Stats::congestion_events`](crate::tcp::Stats::congestion_events) are counted.
        measured: [Instant; 2] = ([Instant::ZERO, Instant::FAR_FUTURE])
        /// The algorithm, by name or as a table with `kind` and its parameters.
        congestion_control: &'static str as "congestion_control" by CongestionControl = {
            ns2 => "reno", "ns-2.35 tcp.cc: opencwnd";
            linux => "cubic", "net/ipv4/Kconfig: DEFAULT_CUBIC";
            rfc => "reno", "RFC 5681";
        }
        /// Its parameters; `None`: the defaults of its table.
        congestion_control_values: Option<Values> = (None)
        /// Implementations from outside the tree that `congestion_control` may name.
        plugins: Plugins = (Plugins::NONE)
        /// Window at the start: segments, or the rule of an RFC.
        initial_window: InitialWindow as "initial_window" = {
            ns2 => InitialWindow::Segments(2), "ns-default.tcl: windowInit_ 2";
            linux_3_2 => InitialWindow::Segments(10), "include/net/tcp.h: TCP_INIT_CWND (2.6.39)";
            linux => InitialWindow::Segments(10), "include/net/tcp.h: TCP_INIT_CWND";
            rfc => InitialWindow::Rfc6928, "RFC 6928 2";
        }
        /// SYN retransmissions that leave the initial window as it is (RFC 6928 2: one; RFC 5681 3.1: none).
        syn_losses_forgiven: u8 = {
            ns2 => 0, "tcp.cc: timeout sets wnd_init_ to 1; bugfix_ss_ 1";
            linux_3_2 => 1, "tcp_init_cwnd: total_retrans > 1 (3.1)";
            linux_2015 => 1, "tcp_init_cwnd: total_retrans > 1";
            linux => 1, "specs/linux-6.18/syn-lost.txt";
            rfc => 1, "RFC 6928 2";
        }
        /// Largest congestion window, segments (`window_` in ns-2).
        max_window_segments: Option<u32> [Integer(1, 10_000_000), Choice(&["unlimited"])] as "max_window" = {
            ns2 => Some(20), "ns-default.tcl: window_ 20";
            linux => None, "snd_cwnd_clamp is unlimited";
            rfc => None, "no such bound in RFC 5681";
        }
        /// Segments that one ACK may add in slow start (RFC 3465).
        abc_limit: Option<u32> [Integer(1, 1000), Choice(&["unlimited"])] as "abc_limit" = {
            ns2 => Some(1), "tcp.cc: opencwnd adds 1";
            linux_3_2 => Some(1), "tcp_slow_start: sysctl_tcp_abc 0";
            linux_2015 => None, "tcp_slow_start adds acked (3.13)";
            linux => None, "tcp_slow_start adds acked";
            rfc => Some(1), "RFC 5681 (2)";
        }
        /// What window, pipe and growth count; with fractions NewReno's window is not rounded to packets (ns-2).
        window_unit: WindowUnit as "window_unit" = {
            ns2 => WindowUnit::Fractions, "tcp.cc: opencwnd, slowdown; precisionReduce_ true";
            linux => WindowUnit::Packets, "snd_cwnd counts packets";
            rfc => WindowUnit::Bytes, "RFC 5681 2";
        }
        /// How slow start ends before a loss; `linux` is `hystart` under CUBIC and `off` under other controllers.
        hystart: HyStart as "hystart" = {
            ns2 => HyStart::Off, "not in ns-2.35's base class";
            linux => HyStart::Linux, "tcp_cubic.c: hystart 1; tcp_cong.c: tcp_slow_start has none; specs/linux-6.18/reno-queue-50.txt";
            rfc => HyStart::Off, "RFC 9406 is optional; Reno of RFC 5681 has none";
        }
        /// How CUBIC computes its window: RFC 9438 in real numbers, or Linux's whole segments and scaled integers.
        cubic_arithmetic: CubicArithmetic as "cubic_arithmetic" = {
            ns2 => CubicArithmetic::Rfc9438, "no CUBIC of its own";
            linux_3_2 => CubicArithmetic::LinuxBefore43, "tcp_cubic.c 3.2, whose count per ACK divided by the delayed-ACK ratio comes near";
            linux_2015 => CubicArithmetic::LinuxBefore43, "tcp_cubic.c 4.1: bictcp_update";
            linux => CubicArithmetic::Linux, "tcp_cubic.c: bictcp_update";
            rfc => CubicArithmetic::Rfc9438, "RFC 9438 4";
        }
        /// Which acknowledgments may let the window grow: all, those of data sent with the window in use, or
        /// Linux's rule.
        growth: WindowGrowth as "growth" = {
            ns2 => WindowGrowth::Always, "tcp.cc: recv_newack_helper";
            linux_3_2 => WindowGrowth::CwndLimited, "tcp_is_cwnd_limited (3.2)";
            linux_2015 => WindowGrowth::Linux, "tcp_is_cwnd_limited (3.16)";
            linux => WindowGrowth::Linux, "tcp_is_cwnd_limited";
            rfc => WindowGrowth::CwndLimited, "RFC 7661 4.3, RFC 9438 5.8";
        }
        /// Take the reduced threshold from the window (Linux, ns-2) instead of FlightSize (RFC 5681).
        reduce_from_window: bool as "reduce_from_window" = {
            ns2 => true, "tcp.cc: slowdown halves window()";
            linux_old => true, "tcp_reno_ssthresh, bictcp_recalc_ssthresh";
            linux => true, "tcp_reno_ssthresh, cubictcp_recalc_ssthresh";
            rfc => false, "RFC 5681 (4)";
        }
        /// What idle and application-limited periods do to the window.
        window_validation: WindowValidation as "window_validation" = {
            ns2 => WindowValidation::None, "tcp.cc: QOption_ 0";
            linux => WindowValidation::Rfc2861, "tcp_slow_start_after_idle 1";
            rfc => WindowValidation::Rfc5681, "RFC 5681 4.1";
        }
        /// How far segments of a window stay apart: not at all, spread over the RTT, or as Linux paces.
        pacing: Pacing as "pacing" = {
            ns2 => Pacing::Off, "ns-2.35 has no such thing";
            linux => Pacing::Off, "tcp_pacing_status: SK_PACING_NONE without fq or a controller that asks";
            rfc => Pacing::Off, "RFC 9293 has none";
        }
        /// Space the segments of the first window: by RTT / initial window; at most `spreading_gap`; at most a
        /// packet's time at `spreading_rate`; at most a packet's time at the rate that this connection or earlier
        /// ones to the same host measured.
        initial_spreading: InitialSpreading as "initial_spreading" = {
            ns2 => InitialSpreading::Off, "ns-2.35 has no such thing";
            linux => InitialSpreading::Off, "not in Linux: 335 lines outside it";
            rfc => InitialSpreading::Off, "draft-irtf-iccrg-sallantin-initial-spreading-00 became no RFC";
        }
        /// Initial Spreading does nothing where RTT / initial window is less.
        spreading_jiffy: Duration [UP_TO_A_SECOND] as "spreading_jiffy"
            with initial_spreading: ["variable", "bounded", "known", "estimated"] = {
            ns2 => millis(4), "ns-2.35 has no such thing";
            linux => millis(4), "HZ 250; of use with initial_spreading only";
            rfc => millis(4), "draft-irtf-iccrg-sallantin-initial-spreading-00; of use with initial_spreading only";
        }
        /// Longest gap of bounded, known and estimated spreading.
        spreading_gap: Duration [POSITIVE_SECOND] as "spreading_gap"
            with initial_spreading: ["bounded", "known", "estimated"] = {
            ns2 => millis(4), "ns-2.35 has no such thing";
            linux => millis(4), "T_max of the draft; of use with initial_spreading only";
            rfc => millis(4), "draft-irtf-iccrg-sallantin-initial-spreading-00; of use with initial_spreading only";
        }
        /// The bottleneck's rate, for known spreading, which needs it written.
        spreading_rate: Rate as "spreading_rate"
            with initial_spreading: ["known"] = {
            ns2 => Rate::from_bps(10_000_000), "ns-2.35 has no such thing";
            linux => Rate::from_bps(10_000_000), "of use with initial_spreading = known only";
            rfc => Rate::from_bps(10_000_000), "of use with initial_spreading = known only";
        }
        /// Estimated spreading sends its first two segments together and measures the bottleneck's rate; where no
        /// connection does, nothing is estimated, and that is refused.
        spreading_pair: bool as "spreading_pair"
            with initial_spreading: ["estimated"] = {
            ns2 => true, "ns-2.35 has no such thing";
            linux => true, "of use with initial_spreading = estimated only";
            rfc => true, "of use with initial_spreading = estimated only";
        }
        /// How long later connections between the same two hosts use what estimated spreading measured; 0 s: not.
        spreading_memory: Duration [UP_TO_A_YEAR] as "spreading_memory"
            with initial_spreading: ["estimated"] = {
            ns2 => secs(3600), "ns-2.35 has no such thing";
            linux => secs(3600), "as tcp_metrics (an hour); of use with initial_spreading = estimated only";
            rfc => secs(3600), "RFC 9040 6 names no time; of use with initial_spreading = estimated only";
        }
        /// Estimated spreading ends when an acknowledgment's round trip shows an empty queue.
        spreading_stop: bool as "spreading_stop"
            with initial_spreading: ["estimated"] = {
            ns2 => true, "ns-2.35 has no such thing";
            linux => true, "of use with initial_spreading = estimated only";
            rfc => true, "of use with initial_spreading = estimated only";
        }
        /// Estimated spreading begins after a random part of its gap.
        spreading_phase: bool as "spreading_phase"
            with initial_spreading: ["estimated"] = {
            ns2 => false, "ns-2.35 has no such thing";
            linux => false, "of use with initial_spreading = estimated only";
            rfc => false, "of use with initial_spreading = estimated only";
        }
        /// Estimated spreading sends the last two segments of the window together.
        spreading_tail: bool as "spreading_tail"
            with initial_spreading: ["estimated"] = {
            ns2 => false, "ns-2.35 has no such thing";
            linux => false, "of use with initial_spreading = estimated only";
            rfc => false, "of use with initial_spreading = estimated only";
        }
        /// Initial Spreading draws each gap at random from the gap less this share of it to the gap and this share:
        /// out of step with the departures of a full queue.
        spreading_jitter_percent: u8 [Integer(0, 100)] as "spreading_jitter_percent"
            with initial_spreading: ["variable", "bounded", "known", "estimated"] = {
            ns2 => 0, "ns-2.35 has no such thing";
            linux => 0, "of use with initial_spreading only";
            rfc => 0, "draft-irtf-iccrg-sallantin-initial-spreading-00 has equal gaps; of use with initial_spreading only";
        }
        /// Selective acknowledgments (RFC 2018, RFC 6675).
        sack: bool as "sack" = {
            ns2_sack => true, "Agent/TCP/Sack1, TCPSink/Sack1";
            ns2_newreno => false, "Agent/TCP/Newreno, TCPSink";
            linux => true, "tcp_sack 1";
            rfc => true, "RFC 2018, RFC 6675";
        }
        /// SACK blocks of an ACK, at most.
        sack_blocks: u8 [Integer(1, 4)] as "sack_blocks" = {
            ns2_sack => 3, "ns-default.tcl: maxSackBlocks_ 3";
            ns2_newreno => 3, "no SACK: nothing uses it";
            linux => 4, "TCP_NUM_SACKS";
            rfc => 4, "RFC 2018 3";
        }
        /// Report duplicates (RFC 2883).
        dsack: bool as "dsack" = {
            ns2 => false, "ns-default.tcl: generateDSacks_ false";
            linux => true, "tcp_dsack 1";
            rfc => true, "RFC 2883";
        }
        /// Hold acknowledgments of disorder back after the third, for a twentieth of the round trip and a millisecond at most;
        /// only with SACK, and where `delayed_ack` is Linux's.
        sack_compression: bool as "sack_compression" = {
            ns2 => false, "not in ns-2.35";
            linux_old => false, "came with 4.18";
            linux => true, "tcp_comp_sack_nr 44, tcp_comp_sack_delay_ns 1000000, tcp_comp_sack_slack_ns 100000";
            rfc => false, "RFC 5681 4.2: out-of-order data SHOULD be acknowledged at once";
        }
        /// Timestamps option (RFC 7323).
        timestamps: bool as "timestamps" = {
            ns2 => false, "ns-default.tcl: timestamps_ false";
            linux => true, "tcp_timestamps 1";
            rfc => true, "RFC 7323 3";
        }
        /// Shift offered for the receive window (RFC 7323).
        window_scale: Option<u8> [Integer(0, 14), Choice(&["off"])] as "window_scale" = {
            ns2 => Some(14), "ns-2 counts packets: no 16-bit window";
            linux_old => Some(7), "tcp_select_initial_window with rmem 6 MiB";
            linux => Some(10), "tcp_select_initial_window with rmem 32 MiB (6.17)";
            rfc => Some(7), "RFC 7323 2; covers the buffer";
        }
        /// Explicit congestion notification: `true` asks for that of RFC 3168, `"accurate"` for Accurate ECN, which counts every mark
        /// (RFC 9768) and falls back to RFC 3168 with an end that does not know it; set by itself with DCTCP and `prague` where nothing
        /// is written.
        ecn: EcnFeedback as "ecn" = {
            ns2 => EcnFeedback::Off, "ns-default.tcl: ecn_ 0";
            linux => EcnFeedback::Off, "tcp_ecn 2";
            rfc => EcnFeedback::Off, "RFC 3168 is optional";
        }
        /// Agree to ECN when the peer asks, up to that of RFC 3168 (`true`) or to Accurate ECN; implied by `ecn`.
        ecn_passive: EcnFeedback as "ecn_passive" = {
            ns2 => EcnFeedback::Off, "ns-default.tcl: ecn_ 0";
            linux => EcnFeedback::Classic, "tcp_ecn 2";
            rfc => EcnFeedback::Classic, "RFC 9293 SHLD-8";
        }
        /// With Accurate ECN: when its byte counters are sent as an option, if the peer was seen to send it.
        ecn_option: EcnOption as "ecn_option" with ecn: ["accurate"] = {
            ns2 => EcnOption::Always, "not in ns-2.35";
            linux => EcnOption::Always, "tcp_ecn_option 2 (6.18)";
            rfc => EcnOption::Always, "RFC 9768 3.2.3.3: on every ACK that reports more";
        }
        /// With Accurate ECN and `ecn_option = "when-useful"`: how often per round trip the option is sent at least; 0: only when useful.
        ecn_option_beacon: u8 [Integer(0, 255)] as "ecn_option_beacon" with ecn_option: ["when-useful"] = {
            ns2 => 3, "not in ns-2.35";
            linux => 3, "tcp_ecn_option_beacon 3 (6.18)";
            rfc => 3, "RFC 9768 3.2.3.3 leaves the number open; Linux's";
        }
        /// A retransmitted SYN does not ask for ECN again, which may be why the SYN before it was lost (RFC 3168 6.1.1.1); with Accurate
        /// ECN the second one does not (RFC 9768 3.1.4.1). Without it, connections whose first SYN meets a full queue keep ECN, and
        /// what the handshake shows of mangled marks is not heeded (RFC 9768 3.2.2.3).
        ecn_fallback: bool as "ecn_fallback" = {
            ns2 => true, "no SYN asks for ECN";
            linux_3_2 => false, "came in 2015 (commit 492135557dc0)";
            linux => true, "tcp_ecn_fallback 1";
            rfc => true, "RFC 3168 6.1.1.1";
        }
        /// How the receiver echoes marks; `rfc8257` with DCTCP and `prague` unless written, and `prague` takes
        /// nothing else.
        ecn_echo: EcnEcho as "ecn_echo" = {
            ns2 => EcnEcho::Rfc3168, "tcp-sink.cc";
            linux => EcnEcho::Rfc3168, "tcp_ecn_check_ce";
            rfc => EcnEcho::Rfc3168, "RFC 3168 6.1.3";
        }
        /// Codepoint of data with ECN; `ect1` with a DCTCP-like sender asks for L4S treatment (RFC 9331), as queue
        /// `dualpi2` gives; `ect1` with `prague` unless written, which takes nothing else.
        ecn_codepoint: EcnCodepoint as "ecn_codepoint" = {
            ns2 => EcnCodepoint::Ect0, "ns-2.35 knows one ECT bit";
            linux => EcnCodepoint::Ect0, "INET_ECN_xmit";
            rfc => EcnCodepoint::Ect0, "RFC 3168 5, RFC 8311 3.3";
        }
        /// Duplicate ACKs or SACKed segments that show a loss.
        dup_thresh: u8 [Integer(1, 255)] as "dup_thresh" = {
            ns2 => 3, "ns-default.tcl: numdupacks_ 3";
            linux => 3, "tcp_reordering 3";
            rfc => 3, "RFC 5681 3.2, RFC 6675 2";
        }
        /// New data on the first two duplicate ACKs (RFC 3042).
        limited_transmit: bool as "limited_transmit" = {
            ns2 => true, "ns-default.tcl: singledup_ 1";
            linux => true, "packets in flight leave out SACKed ones";
            rfc => true, "RFC 3042";
        }
        /// A lower threshold when few segments are out.
        early_retransmit: EarlyRetransmit as "early_retransmit" = {
            ns2 => EarlyRetransmit::Off, "not in ns-2.35";
            linux_3_2 => EarlyRetransmit::Off, "came with 3.5";
            linux_2015 => EarlyRetransmit::Delayed, "tcp_early_retrans 3";
            linux => EarlyRetransmit::Off, "removed in 4.11 (commit bec41a11dd3d)";
            rfc => EarlyRetransmit::Rfc5827, "RFC 5827 3.2";
        }
        /// Window during recovery.
        prr: Prr as "prr" = {
            ns2 => Prr::Off, "window() is ssthresh";
            linux_3_2 => Prr::Rfc6937Ssrb, "tcp_update_cwnd_in_recovery (3.2); its share is of prior_cwnd";
            linux_2015 => Prr::Linux, "tcp_cwnd_reduction (July 2015); until then rfc6937-ssrb";
            linux => Prr::Linux, "tcp_cwnd_reduction: divides by prior_cwnd";
            rfc => Prr::Rfc9937, "RFC 9937";
        }
        /// Loss detection by time (RFC 8985).
        rack: bool as "rack" = {
            ns2 => false, "not in ns-2.35";
            linux_old => false, "came with 4.4";
            linux => true, "tcp_recovery 1";
            rfc => true, "RFC 8985";
        }
        /// When timers fire, of which only pacing's are always exact; with `wheel` RACK's timer and the probe's (where
        /// several segments are out) wait 2 ms longer, too (Linux `TCP_TIMEOUT_MIN_US`).
        timer_grid: TimerGrid as "timer_grid" = {
            ns2 => TimerGrid::Exact, "ns-2's scheduler; tcpTick_ is that of the RTT";
            linux_old => TimerGrid::Jiffies, "kernel/timer.c, until 4.7: cascade, apply_slack; HZ 250";
            linux => TimerGrid::Wheel, "kernel/time/timer.c: calc_wheel_index (4.8); HZ 250";
            rfc => TimerGrid::Exact, "RFC 6298, RFC 8985 6.2 step 5 round nothing";
        }
        /// A probe for a lost tail.
        tail_loss_probe: TailLossProbe as "tail_loss_probe" = {
            ns2 => TailLossProbe::Off, "not in ns-2.35";
            linux_3_2 => TailLossProbe::Off, "came with 3.10";
            linux_2015 => TailLossProbe::Draft, "tcp_schedule_loss_probe (3.10)";
            linux => TailLossProbe::Rfc8985, "tcp_schedule_loss_probe";
            rfc => TailLossProbe::Rfc8985, "RFC 8985 7";
        }
        /// Forward acknowledgment, as Linux had it until 2017: what lies far enough below the highest SACK is lost, and so is
        /// a retransmission once new data sent after it is SACKed.
        fack: bool as "fack" = {
            ns2_sack => false, "Sack1 counts pipe";
            ns2_newreno => false, "no SACK";
            linux_old => true, "tcp_fack 1; tcp_mark_lost_retrans until 4.3";
            linux => false, "removed in 4.15";
            rfc => false, "RFC 6675";
        }
        /// With SACK, recover from losses as ns-2's Sack1 does: pipe counted by ACKs, each hole sent once,
        /// go-back-N after a timeout. Needs RACK, PRR, FACK, probes and early retransmit off.
        sack1_recovery: bool as "sack1_recovery" = {
            ns2_sack => true, "tcp-sack1.cc: recv, send_much, timeout; partial_ack_ 0";
            ns2_newreno => true, "no SACK: nothing uses it";
            linux => false, "RFC 6675 4";
            rfc => false, "RFC 6675 4";
        }
        /// Count the retransmission timer from the earliest outstanding segment when fewer than four are out (RFC
        /// 7765).
        rto_restart: bool as "rto_restart" = {
            ns2 => false, "not in ns-2.35";
            linux => false, "not in Linux";
            rfc => false, "RFC 7765 is experimental";
        }
        /// Fewer outstanding and unsent segments than these are few for `rto_restart`.
        rto_restart_threshold: u32 [Integer(1, 1_000_000)] as "rto_restart_threshold" = {
            ns2 => 4, "unused";
            linux => 4, "unused";
            rfc => 4, "RFC 7765 4: rrthresh";
        }
        /// What timeouts, tail loss probes and lost retransmissions change, and what shows that a timeout was spurious.
        timeout_rules: TimeoutRules as "timeout_rules" = {
            ns2 => TimeoutRules::Rfc, "its recoveries have rules of their own";
            linux_3_2 => TimeoutRules::Linux32, "tcp_enter_loss";
            linux_2015 => TimeoutRules::Linux, "tcp_enter_loss, tcp_process_loss";
            linux => TimeoutRules::Linux, "tcp_enter_loss, tcp_process_loss";
            rfc => TimeoutRules::Rfc, "RFC 5681 3.1, RFC 5682 3.1";
        }
        /// What reports of duplicates (D-SACK) mean.
        dsack_rules: DsackRules as "dsack_rules" = {
            ns2 => DsackRules::Rfc, "it reads none";
            linux_old => DsackRules::Rfc, "came with 5.9";
            linux => DsackRules::Linux, "tcp_dsack_seen (5.9)";
            rfc => DsackRules::Rfc, "RFC 8985 6.2 step 4";
        }
        /// A probe is sent only if an RTT sample was taken since the last one.
        probe_needs_sample: bool as "probe_needs_sample" = {
            ns2 => false, "unused";
            linux => false, "tcp_send_loss_probe does not ask";
            rfc => true, "RFC 8985 7.3";
        }
        /// Count the probe's timeout from the earliest outstanding segment, not from the last ACK.
        tail_loss_probe_restart: bool as "tail_loss_probe_restart" = {
            ns2 => false, "not in ns-2.35";
            linux => false, "not in Linux";
            rfc => false, "no RFC";
        }
        /// `tail_loss_probe_restart` only while fewer segments than these are out.
        probe_restart_threshold: Option<u32> [Choice(&["none"]), Integer(1, 1_000_000)] as "probe_restart_threshold" = {
            _ => None, "unused";
        }
        /// Allowance for delayed ACKs in the probe's timer: a time, or that of `min_rto`.
        max_ack_delay: Option<Duration> [Choice(&["min-rto"]), TIME] as "max_ack_delay" = {
            ns2 => Some(millis(200)), "unused";
            linux_3_2 => Some(millis(200)), "unused";
            linux_2015 => Some(millis(200)), "draft-dukkipati-tcpm-tcp-loss-probe-01 2: WCDelAckT";
            linux => None, "tcp_schedule_loss_probe: tcp_rto_min";
            rfc => Some(millis(200)), "RFC 8985 7.2; the delay a receiver of RFC 5681 may use";
        }
        /// The allowance for delayed ACKs is at most four times RTTVAR, until a probe was in vain: a peer that never delayed has shown none.
        learn_ack_delay: bool as "learn_ack_delay" = {
            ns2 => false, "unused";
            linux_3_2 => false, "unused";
            linux_2015 => false, "tcp_schedule_loss_probe: TCP_DELACK_MAX";
            linux => false, "tcp_schedule_loss_probe: tcp_rto_min";
            rfc => false, "RFC 8985 7.2";
        }
        /// Detect spurious timeouts (RFC 5682).
        frto: bool as "frto" = {
            ns2 => false, "ns-default.tcl: frto_enabled_ 0";
            linux => true, "tcp_frto 2";
            rfc => true, "RFC 5682";
        }
        /// Undo reductions shown to be spurious (RFC 3522, RFC 4015, RFC 3708).
        undo: bool as "undo" = {
            ns2 => false, "not in the base class";
            linux => true, "tcp_try_undo_recovery, tcp_try_undo_dsack";
            rfc => true, "RFC 3522, RFC 4015, RFC 3708";
        }
        /// One SACKed segment shows a loss while fewer than four are out (Linux until 4.10); without effect under
        /// RACK.
        thin_dupack: bool as "thin_dupack" = {
            ns2 => false, "not in ns-2.35";
            linux_old => false, "tcp_thin_dupack 0";
            linux => false, "removed in 4.11";
            rfc => false, "no RFC";
        }
        /// The first six timeouts of a stream with fewer than four segments out do not back off (Linux).
        thin_linear: bool as "thin_linear" = {
            ns2 => false, "not in ns-2.35";
            linux => false, "tcp_thin_linear_timeouts 0";
            rfc => false, "RFC 6298 5.5";
        }
        /// Redundant data bundling: new segments of thin streams carry older ones along, one or as many as fit; or
        /// a table.
        rdb: Option<Rdb> as "rdb" by Rdb = {
            ns2 => None, "not in ns-2.35";
            linux_2015 => None, "not in Linux: patches of March 2016";
            linux => None, "not in Linux";
            rfc => None, "no RFC";
        }
        /// Writes that wait for the window flow together into full segments; else each is a segment of its own.
        coalesce_unsent: bool as "coalesce_unsent" = {
            ns2 => true, "tcp.cc: sends whole segments";
            linux => true, "tcp_sendmsg fills the last segment of the queue";
            rfc => true, "RFC 9293 3.7.4";
        }
        /// A retransmission takes the short segments that follow along, up to a full one.
        collapse_retransmissions: bool as "collapse_retransmissions" = {
            ns2 => false, "tcp.cc: sends whole segments";
            linux => true, "tcp_retrans_try_collapse: tcp_retrans_collapse 1";
            rfc => false, "RFC 9293 3.8.1 leaves it open";
        }
        /// The FIN leaves in a segment of its own when the windows hold all that was written before it; else, or with
        /// `false` always, it goes along with the last data.
        lone_fin: bool as "lone_fin" = {
            ns2 => false, "tcp.cc has no FIN";
            linux_3_2 => true, "tcp_send_fin (3.2): the tail if there is a tcp_send_head";
            linux_2015 => true, "tcp_send_fin (4.1): the tail if there is a tcp_send_head";
            linux => true, "tcp_send_fin: the tail of what is unsent; specs/linux-6.18/one-byte.txt";
            rfc => false, "RFC 9293 3.10.4 leaves it open";
        }
        /// The segment with the FIN leaves even if the congestion window is full.
        fin_beyond_window: bool as "fin_beyond_window" = {
            ns2 => false, "tcp.cc has no FIN";
            linux_old => true, "tcp_cwnd_test: not strict about the final FIN";
            linux => false, "tcp_cwnd_test since 6.10; specs/linux-6.18/tail-10.txt";
            rfc => false, "RFC 5681 3.1";
        }
        /// Retransmission timer.
        rto: RtoConfig = [group]
        /// The end that opened acknowledges the SYN-ACK at once in a segment of its own; else data that is ready carries the
        /// acknowledgment.
        lone_handshake_ack: bool as "lone_handshake_ack" = {
            ns2 => false, "tcp.cc has no handshake";
            linux_old => true, "tcp_rcv_synsent_state_process: tcp_send_ack";
            linux => true, "tcp_rcv_synsent_state_process: tcp_send_ack; specs/linux-6.18/one-byte.txt";
            rfc => false, "RFC 9293 3.10.7.3: data that is queued may be included";
        }
        /// SYN retransmissions before giving up.
        syn_retries: u8 [Integer(0, 255)] as "syn_retries" = {
            ns2 => 255, "ns-2 never gives up";
            linux_3_2 => 5, "tcp_syn_retries 5";
            linux => 6, "tcp_syn_retries 6";
            rfc => 8, "RFC 9293 MUST-23: at least 3 minutes";
        }
        /// Data retransmissions before giving up.
        retries: u8 [Integer(0, 255)] as "retries" = {
            ns2 => 255, "ns-2 never gives up";
            linux => 15, "tcp_retries2 15";
            rfc => 15, "RFC 9293 SHLD-11: at least 100 s";
        }
        /// When the receiver acknowledges.
        delayed_ack: DelayedAck as "delayed_ack" by DelayedAck = {
            ns2 => DelayedAck::Off, "TCPSink, TCPSink/Sack1";
            linux => DelayedAck::LINUX, "TCP_DELACK_MIN, TCP_DELACK_MAX, TCP_MAX_QUICKACKS";
            rfc => DelayedAck::Standard { timeout: millis(200) }, "RFC 9293 MUST-40: less than 500 ms";
        }
        /// Bounds the window offered. Where it is written, the window is so large from the start and stays so, as after
        /// `SO_RCVBUF`; where not, that of `linux` follows the buffer's tuning.
        receive_buffer: Bytes [ANY_BYTES] as "receive_buffer" = {
            ns2 => Bytes(1_073_741_824), "ns-2 has no receive window";
            linux_old => Bytes(6_291_456), "tcp_rmem maximum; tuning taken as done";
            linux => Bytes(33_554_432), "tcp_rmem maximum (6.17), which tuning may reach";
            rfc => Bytes(6_291_456), "large enough not to matter";
        }
        /// The window follows a buffer that counts memory and is tuned, as Linux's does; `None`: it is `receive_buffer`.
        receive_memory: Option<ReceiveMemory> = {
            ns2 => None, "ns-2 has no receive window";
            linux_old => None, "tuned by other rules than today's; taken as done";
            linux => Some(ReceiveMemory::LINUX), "tcp_rmem 4096 131072 33554432, tcp_moderate_rcvbuf 1";
            rfc => None, "not in any RFC";
        }
        /// Bounds what an application may write ahead.
        send_buffer: Bytes [ANY_BYTES] as "send_buffer" = {
            ns2 => Bytes::MAX, "ns-2 has no send buffer";
            linux => Bytes(4_194_304), "tcp_wmem maximum; tuning taken as done";
            rfc => Bytes(4_194_304), "large enough not to matter";
        }
        /// Least time between answers to unacceptable segments without data; zero: only the budget of RFC 5961 7.
        challenge_interval: Duration = {
            ns2 => Duration::ZERO, "ns-2 answers everything";
            linux_3_2 => Duration::ZERO, "came with 4.0";
            linux_2015 => millis(500), "tcp_invalid_ratelimit (4.0)";
            linux => millis(500), "tcp_invalid_ratelimit";
            rfc => Duration::ZERO, "RFC 5961 7 limits a number per time";
        }
        /// What asks a peer whose window is shut (RFC 9293 3.8.6.1).
        zero_window_probe: ZeroWindowProbe = {
            ns2 => ZeroWindowProbe::Byte, "ns-2 has no windows that shut";
            linux => ZeroWindowProbe::Empty, "tcp_xmit_probe_skb";
            rfc => ZeroWindowProbe::Byte, "RFC 9293 3.8.6.1";
        }
        /// Hold small segments while data is unacknowledged.
        nagle: bool as "nagle" = {
            ns2 => false, "ns-2 sends whole packets";
            linux => true, "TCP_NODELAY off";
            rfc => true, "RFC 9293 SHLD-7";
        }
        /// Nagle holds a small segment only while another small one is unacknowledged (Minshall's variant; Linux).
        nagle_minshall: bool = {
            ns2 => false, "Nagle is off";
            linux_old => true, "tcp_minshall_check";
            linux => true, "tcp_minshall_check; specs/linux-6.18/idle-1s.txt";
            rfc => false, "RFC 9293 3.7.4";
        }
        /// Segments are handed to segmentation offload in groups of at least so many, if there are (Linux
        /// `tcp_min_tso_segs`); the last of a group carries PSH. `None`: one by one.
        offload_segments: Option<u8> [Integer(1, 255), Choice(&["off"])] = {
            ns2 => None, "not in ns-2.35";
            linux_old => None, "groups carry no PSH before 5.5";
            linux => Some(2), "tcp_min_tso_segs, tcp_tso_autosize; PSH since 5.5 (051ba67447de)";
            rfc => None, "not in the RFCs";
        }
        /// A sender whose window has room for less than a group waits for the next acknowledgment, if that is due within a
        /// millisecond (Linux). Without effect where segments are not handed over in groups.
        offload_deferral: bool as "offload_deferral" = {
            ns2 => false, "not in ns-2.35";
            linux_3_2 => false, "tcp_tso_should_defer waited up to two jiffies, for half a window or 64 kB";
            linux_2015 => false, "tcp_tso_should_defer waited where half a round trip or more of the head's was over (4.0)";
            linux => true, "tcp_tso_should_defer (295ce1eb36ae, 6.18); tcp_tso_win_divisor 3";
            rfc => false, "not in the RFCs";
        }
        /// Keep-alive: idle time before the first probe; `None`: off (RFC 9293 3.8.4).
        keep_alive: Option<KeepAlive> = {
            ns2 => None, "not in ns-2.35";
            linux => None, "SO_KEEPALIVE off";
            rfc => None, "RFC 9293 MUST-25";
        }
        /// Maximum segment lifetime: TIME-WAIT lasts twice this.
        msl: Duration = {
            ns2 => secs(1), "simulator's choice";
            linux => secs(1), "simulator's choice; TCP_TIMEWAIT_LEN is 60 s";
            rfc => secs(1), "simulator's choice; RFC 9293 3.4.2 has 2 min";
        }
        /// The network layer: IP version, path MTU, ICMP, urgent pointer.
        path: PathConfig = [group]
        /// How long to try before giving up.
        patience: RetryLimits = [group]
    }
}
