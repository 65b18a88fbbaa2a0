//! The named profiles, as values and as a table with a source per cell.
//!
//! **Source.** Per cell, in [`SWITCHES`]. ns-2 is version 2.35; Linux names are those of its source and its documents.
//! **Deviations.** Linux tunes its buffers while a connection runs; the profiles start with the maximum. The maximum
//! segment lifetime is one second everywhere, so that simulated connections leave TIME-WAIT soon.

use super::config::{
    Config, DelayedAck, EarlyRetransmit, EcnEcho, Growth, InitialWindow, Profile, Prr, RtoConfig, RtoFloor,
    RttSamples, TailLossProbe, WindowUnit, WindowValidation,
};
use crate::cc::HyStart;
use crate::time::Duration;
use crate::units::Bytes;
use alloc::format;
use alloc::string::{String, ToString};

impl Profile {
    /// Every profile, in the order of the table's columns.
    pub const ALL: [Profile; 6] = [
        Profile::Ns2Sack,
        Profile::Ns2NewReno,
        Profile::Linux3_2,
        Profile::Linux2015,
        Profile::Linux,
        Profile::Rfc,
    ];

    /// Their names in scenario files, in the same order.
    pub const NAMES: [&'static str; 6] = [
        "ns2-sack",
        "ns2-newreno",
        "linux-3.2",
        "linux-2015",
        "linux",
        "rfc",
    ];

    /// The profile called `name`.
    pub fn by_name(name: &str) -> Option<Profile> {
        let index = Profile::NAMES.iter().position(|&known| known == name)?;
        Some(Profile::ALL[index])
    }

    /// Its name in scenario files.
    pub const fn name(self) -> &'static str {
        Profile::NAMES[self as usize]
    }
}

/// One row of the table: a switch, what it does, and its value with the source for each profile of [`Profile::ALL`].
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Field of [`Config`].
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Value and source.
    pub cells: [(&'static str, &'static str); 6],
}

/// The value of a profile.
pub(super) fn config(profile: Profile) -> Config {
    match profile {
        Profile::Ns2Sack => Config {
            congestion_control: "reno",
            congestion_control_values: None,
            initial_window: InitialWindow::Segments(2),
            syn_losses_forgiven: 255,
            max_window_segments: Some(20),
            abc_limit: Some(1),
            window_unit: WindowUnit::Packets,
            hystart: HyStart::Off,
            growth: Growth::Always,
            reduce_from_window: true,
            window_validation: WindowValidation::None,
            sack: true,
            dsack: false,
            timestamps: false,
            window_scale: Some(14),
            ecn: false,
            ecn_passive: false,
            ecn_echo: EcnEcho::Rfc3168,
            dup_thresh: 3,
            limited_transmit: true,
            early_retransmit: EarlyRetransmit::Off,
            prr: Prr::Off,
            rack: false,
            tail_loss_probe: TailLossProbe::Off,
            fack: false,
            pipe_by_acks: true,
            rto_restart: false,
            tail_loss_probe_restart: false,
            max_ack_delay: Duration::from_millis(200),
            frto: false,
            undo: false,
            syn_retries: 255,
            retries: 255,
            delayed_ack: DelayedAck::Off,
            receive_buffer: Bytes(1073741824),
            send_buffer: Bytes::MAX,
            nagle: false,
            nagle_minshall: false,
            keep_alive: None,
            msl: Duration::from_secs(1),
            mtu: 1040,
            rto: RtoConfig {
                floor: RtoFloor::Rto,
                min: Duration::from_millis(200),
                initial: Duration::from_secs(3),
                after_syn_timeout: Duration::from_secs(3),
                max: Duration::from_secs(60),
                granularity: Duration::from_millis(10),
                samples: RttSamples::OncePerRtt,
                tick: Duration::from_millis(10),
            },
        },
        Profile::Ns2NewReno => {
            let mut config = config(Profile::Ns2Sack);
            config.sack = false;
            config
        }
        Profile::Linux3_2 => {
            let mut config = config(Profile::Linux);
            config.abc_limit = Some(1);
            config.growth = Growth::CwndLimited;
            config.prr = Prr::Rfc6937Crb;
            config.rack = false;
            config.tail_loss_probe = TailLossProbe::Off;
            config.fack = true;
            config.syn_retries = 5;
            config
        }
        Profile::Linux2015 => {
            let mut config = config(Profile::Linux);
            config.early_retransmit = EarlyRetransmit::Delayed;
            config.prr = Prr::Rfc6937Crb;
            config.rack = false;
            config.tail_loss_probe = TailLossProbe::Draft;
            config.fack = true;
            config
        }
        Profile::Linux => Config {
            congestion_control: "cubic",
            congestion_control_values: None,
            initial_window: InitialWindow::Segments(10),
            syn_losses_forgiven: 1,
            max_window_segments: None,
            abc_limit: None,
            window_unit: WindowUnit::Packets,
            hystart: HyStart::HyStart,
            growth: Growth::Linux,
            reduce_from_window: true,
            window_validation: WindowValidation::Rfc2861,
            sack: true,
            dsack: true,
            timestamps: true,
            window_scale: Some(7),
            ecn: false,
            ecn_passive: true,
            ecn_echo: EcnEcho::Rfc3168,
            dup_thresh: 3,
            limited_transmit: true,
            early_retransmit: EarlyRetransmit::Off,
            prr: Prr::Linux,
            rack: true,
            tail_loss_probe: TailLossProbe::Rfc8985,
            fack: false,
            pipe_by_acks: false,
            rto_restart: false,
            tail_loss_probe_restart: false,
            max_ack_delay: Duration::from_millis(200),
            frto: true,
            undo: true,
            syn_retries: 6,
            retries: 15,
            delayed_ack: DelayedAck::Linux {
                min: Duration::from_millis(40),
                max: Duration::from_millis(200),
                quick_acks: 16,
            },
            receive_buffer: Bytes(6291456),
            send_buffer: Bytes(4194304),
            nagle: true,
            nagle_minshall: true,
            keep_alive: None,
            msl: Duration::from_secs(1),
            mtu: 1500,
            rto: RtoConfig {
                floor: RtoFloor::Variance,
                min: Duration::from_millis(200),
                initial: Duration::from_secs(1),
                after_syn_timeout: Duration::from_secs(3),
                max: Duration::from_secs(120),
                granularity: Duration::from_millis(1),
                samples: RttSamples::EveryAck,
                tick: Duration::from_nanos(0),
            },
        },
        Profile::Rfc => Config {
            congestion_control: "reno",
            congestion_control_values: None,
            initial_window: InitialWindow::Rfc6928,
            syn_losses_forgiven: 1,
            max_window_segments: None,
            abc_limit: Some(1),
            window_unit: WindowUnit::Bytes,
            hystart: HyStart::Off,
            growth: Growth::CwndLimited,
            reduce_from_window: false,
            window_validation: WindowValidation::Rfc5681,
            sack: true,
            dsack: true,
            timestamps: true,
            window_scale: Some(7),
            ecn: false,
            ecn_passive: true,
            ecn_echo: EcnEcho::Rfc3168,
            dup_thresh: 3,
            limited_transmit: true,
            early_retransmit: EarlyRetransmit::Rfc5827,
            prr: Prr::Rfc9937,
            rack: true,
            tail_loss_probe: TailLossProbe::Rfc8985,
            fack: false,
            pipe_by_acks: false,
            rto_restart: false,
            tail_loss_probe_restart: false,
            max_ack_delay: Duration::from_millis(200),
            frto: true,
            undo: true,
            syn_retries: 8,
            retries: 15,
            delayed_ack: DelayedAck::Standard {
                timeout: Duration::from_millis(200),
            },
            receive_buffer: Bytes(6291456),
            send_buffer: Bytes(4194304),
            nagle: true,
            nagle_minshall: false,
            keep_alive: None,
            msl: Duration::from_secs(1),
            mtu: 1500,
            rto: RtoConfig {
                floor: RtoFloor::Rto,
                min: Duration::from_secs(1),
                initial: Duration::from_secs(1),
                after_syn_timeout: Duration::from_secs(3),
                max: Duration::from_secs(60),
                granularity: Duration::from_millis(1),
                samples: RttSamples::EveryAck,
                tick: Duration::from_nanos(0),
            },
        },
    }
}

/// The value of switch `name` in `config`, in the words of the table; `None` if there is no such switch.
pub fn describe(config: &Config, name: &str) -> Option<String> {
    let number = |value: Option<u32>| value.map_or_else(|| "none".to_string(), |value| value.to_string());
    let bytes = |value: Bytes| {
        if value == Bytes::MAX {
            "unlimited".to_string()
        } else {
            value.to_string()
        }
    };
    Some(match name {
        "congestion_control" => config.congestion_control.to_string(),
        "initial_window" => match config.initial_window {
            InitialWindow::Segments(segments) => format!("{segments} segments"),
            InitialWindow::Rfc3390 => "rfc3390".to_string(),
            InitialWindow::Rfc6928 => "rfc6928".to_string(),
        },
        "syn_losses_forgiven" => config.syn_losses_forgiven.to_string(),
        "max_window_segments" => number(config.max_window_segments),
        "abc_limit" => number(config.abc_limit),
        "window_unit" => match config.window_unit {
            WindowUnit::Bytes => "bytes".to_string(),
            WindowUnit::Packets => "packets".to_string(),
        },
        "hystart" => match config.hystart {
            HyStart::Off => "off".to_string(),
            HyStart::HyStart => "hystart".to_string(),
            HyStart::HyStartPlusPlus => "hystart++".to_string(),
        },
        "growth" => match config.growth {
            Growth::Always => "always".to_string(),
            Growth::CwndLimited => "cwnd-limited".to_string(),
            Growth::Linux => "linux".to_string(),
        },
        "reduce_from_window" => config.reduce_from_window.to_string(),
        "window_validation" => match config.window_validation {
            WindowValidation::None => "none".to_string(),
            WindowValidation::Rfc5681 => "rfc5681".to_string(),
            WindowValidation::Rfc2861 => "rfc2861".to_string(),
        },
        "sack" => config.sack.to_string(),
        "dsack" => config.dsack.to_string(),
        "timestamps" => config.timestamps.to_string(),
        "window_scale" => number(config.window_scale.map(u32::from)),
        "ecn" => config.ecn.to_string(),
        "ecn_passive" => config.ecn_passive.to_string(),
        "ecn_echo" => match config.ecn_echo {
            EcnEcho::Rfc3168 => "rfc3168".to_string(),
            EcnEcho::Rfc8257 => "rfc8257".to_string(),
        },
        "dup_thresh" => config.dup_thresh.to_string(),
        "limited_transmit" => config.limited_transmit.to_string(),
        "early_retransmit" => match config.early_retransmit {
            EarlyRetransmit::Off => "off".to_string(),
            EarlyRetransmit::Rfc5827 => "rfc5827".to_string(),
            EarlyRetransmit::Immediate => "immediate".to_string(),
            EarlyRetransmit::Delayed => "delayed".to_string(),
        },
        "prr" => match config.prr {
            Prr::Off => "off".to_string(),
            Prr::Rfc6937Crb => "rfc6937-crb".to_string(),
            Prr::Rfc6937Ssrb => "rfc6937-ssrb".to_string(),
            Prr::Rfc9937 => "rfc9937".to_string(),
            Prr::Linux => "linux".to_string(),
        },
        "rack" => config.rack.to_string(),
        "tail_loss_probe" => match config.tail_loss_probe {
            TailLossProbe::Off => "off".to_string(),
            TailLossProbe::Draft => "draft".to_string(),
            TailLossProbe::Rfc8985 => "rfc8985".to_string(),
        },
        "fack" => config.fack.to_string(),
        "pipe_by_acks" => config.pipe_by_acks.to_string(),
        "rto_restart" => config.rto_restart.to_string(),
        "tail_loss_probe_restart" => config.tail_loss_probe_restart.to_string(),
        "max_ack_delay" => config.max_ack_delay.to_string(),
        "frto" => config.frto.to_string(),
        "undo" => config.undo.to_string(),
        "rto.floor" => match config.rto.floor {
            RtoFloor::Rto => "rto".to_string(),
            RtoFloor::Variance => "variance".to_string(),
        },
        "rto.min" => config.rto.min.to_string(),
        "rto.initial" => config.rto.initial.to_string(),
        "rto.after_syn_timeout" => config.rto.after_syn_timeout.to_string(),
        "rto.max" => config.rto.max.to_string(),
        "rto.granularity" => config.rto.granularity.to_string(),
        "rto.samples" => match config.rto.samples {
            RttSamples::OncePerRtt => "once-per-rtt".to_string(),
            RttSamples::EveryAck => "every-ack".to_string(),
        },
        "rto.tick" => config.rto.tick.to_string(),
        "syn_retries" => config.syn_retries.to_string(),
        "retries" => config.retries.to_string(),
        "delayed_ack" => match config.delayed_ack {
            DelayedAck::Off => "off".to_string(),
            DelayedAck::Standard { timeout } => timeout.to_string(),
            DelayedAck::Linux { min, max, quick_acks } => format!("linux {min} to {max}, {quick_acks} quick"),
        },
        "receive_buffer" => bytes(config.receive_buffer),
        "send_buffer" => bytes(config.send_buffer),
        "nagle" => config.nagle.to_string(),
        "nagle_minshall" => config.nagle_minshall.to_string(),
        "keep_alive" => config
            .keep_alive
            .map_or_else(|| "off".to_string(), |keep_alive| keep_alive.idle.to_string()),
        "msl" => config.msl.to_string(),
        "mtu" => config.mtu.to_string(),
        _ => return None,
    })
}

/// Every switch with its value and source in every profile.
pub const SWITCHES: &[Switch] = &[
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
            ("255", "tcp.cc: a lost SYN leaves windowInit_"),
            ("255", "tcp.cc: a lost SYN leaves windowInit_"),
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
            ("packets", "tcp.cc counts packets"),
            ("packets", "tcp.cc counts packets"),
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
            ("off", "removed in 4.12"),
            ("rfc5827", "RFC 5827 3.2"),
        ],
    },
    Switch {
        name: "prr",
        doc: "Window during recovery.",
        cells: [
            ("off", "window() is ssthresh"),
            ("off", "window() is ssthresh"),
            ("rfc6937-crb", "tcp_cwnd_reduction (3.2)"),
            ("rfc6937-crb", "tcp_cwnd_reduction (3.2 to 4.2)"),
            ("linux", "tcp_cwnd_reduction (4.3): divides by prior_cwnd"),
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
        name: "pipe_by_acks",
        doc: "Pipe in SACK recovery: counted by ACKs, lost segments stay in it.",
        cells: [
            ("true", "tcp-sack1.cc: pipe_ in recv, partial_ack_ 0"),
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
            ("3 s", "ns-default.tcl: rtxcur_init_ 3.0"),
            ("3 s", "ns-default.tcl: rtxcur_init_ 3.0"),
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
        doc: "Samples are rounded to this.",
        cells: [
            ("10 ms", "ns-default.tcl: tcpTick_ 0.01"),
            ("10 ms", "ns-default.tcl: tcpTick_ 0.01"),
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

#[cfg(test)]
mod tests {
    use super::{SWITCHES, describe};
    use crate::tcp::{Config, Profile};
    extern crate std;

    #[test]
    fn the_table_says_what_the_profiles_are() {
        for (column, profile) in Profile::ALL.into_iter().enumerate() {
            assert_eq!(Profile::by_name(profile.name()), Some(profile));
            let config = Config::profile(profile);
            for switch in SWITCHES {
                let value = describe(&config, switch.name).expect("every switch of the table is described");
                assert_eq!(
                    value,
                    switch.cells[column].0,
                    "{} of {}",
                    switch.name,
                    profile.name()
                );
                assert!(!switch.cells[column].1.is_empty());
            }
        }
    }

    #[test]
    fn the_table_has_every_field() {
        // `Debug` lists the fields of `Config` in order: a field without a row is found here.
        let text = std::format!("{:#?}", Config::profile(Profile::Rfc));
        for line in text.lines() {
            let depth = line.len() - line.trim_start().len();
            let Some((field, _)) = line.trim().split_once(": ") else {
                continue;
            };
            if depth != 4 || field == "congestion_control_values" || field == "rto" {
                continue;
            }
            assert!(
                SWITCHES.iter().any(|switch| switch.name == field),
                "{field} has no row"
            );
        }
    }
}
