//! The named profiles, as values and as a table with a source per cell.
//!
//! **Source.** Per cell, in [`SWITCHES`]. ns-2 is version 2.35; Linux names are those of its source and its documents.
//! **Deviations.** Linux tunes its buffers while a connection runs; the profiles start with the maximum. The maximum
//! segment lifetime is one second everywhere, so that simulated connections leave TIME-WAIT soon.

use super::config::{
    Config, DelayedAck, EarlyRetransmit, EcnCodepoint, EcnEcho, Growth, IcmpAbort, InitialSpreading,
    InitialWindow, IpVersion, MtuProbing, Pacing, PathConfig, Patience, Profile, Prr, RtoConfig, RtoFloor,
    RttSamples, TailLossProbe, UrgentPointer, WindowUnit, WindowValidation, ZeroWindowProbe,
};
pub use super::switches::SWITCHES;
use crate::cc::{CubicArithmetic, HyStart};
use crate::time::{Duration, Instant};
use crate::units::{Bytes, Rate};
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
            initial_window: InitialWindow::Segments(2),
            syn_losses_forgiven: 0,
            max_window_segments: Some(20),
            window_unit: WindowUnit::Fractions,
            growth: Growth::Always,
            reduce_from_window: true,
            window_validation: WindowValidation::None,
            sack_blocks: 3,
            dsack: false,
            timestamps: false,
            window_scale: Some(14),
            ecn_passive: false,
            early_retransmit: EarlyRetransmit::Off,
            prr: Prr::Off,
            rack: false,
            tail_loss_probe: TailLossProbe::Off,
            sack1_recovery: true,
            frto: false,
            undo: false,
            syn_retries: 255,
            retries: 255,
            delayed_ack: DelayedAck::Off,
            receive_buffer: Bytes(1073741824),
            send_buffer: Bytes::MAX,
            nagle: false,
            mtu: 1040,
            path: PathConfig {
                pmtu_discovery: false,
                ..config(Profile::Rfc).path
            },
            patience: Patience {
                syn_linear_timeouts: 0,
                synack_retries: 255,
                retries_as_time: false,
                orphan_retries: None,
                user_timeout: None,
                fin_wait2: None,
                reset_on_unread: false,
            },
            rto: RtoConfig {
                min: Duration::from_millis(200),
                initial: Duration::from_secs(3),
                after_syn_timeout: Duration::from_secs(6),
                granularity: Duration::from_millis(10),
                samples: RttSamples::OncePerRtt,
                tick: Duration::from_millis(10),
                after_spurious: false,
                ..config(Profile::Rfc).rto
            },
            ..config(Profile::Rfc)
        },
        Profile::Ns2NewReno => {
            let mut config = config(Profile::Ns2Sack);
            config.sack = false;
            config
        }
        Profile::Linux3_2 => {
            let mut config = config(Profile::Linux);
            config.offload_segments = None;
            config.abc_limit = Some(1);
            config.growth = Growth::CwndLimited;
            config.prr = Prr::Rfc6937Ssrb;
            config.rack = false;
            config.rack_timer_tick = Duration::ZERO;
            config.tail_loss_probe = TailLossProbe::Off;
            config.fack = true;
            config.syn_retries = 5;
            config.patience.syn_linear_timeouts = 0;
            config.challenge_interval = Duration::ZERO;
            config
        }
        Profile::Linux2015 => {
            let mut config = config(Profile::Linux);
            config.offload_segments = None;
            config.early_retransmit = EarlyRetransmit::Delayed;
            config.rack = false;
            config.rack_timer_tick = Duration::ZERO;
            config.tail_loss_probe = TailLossProbe::Draft;
            config.fack = true;
            config.patience.syn_linear_timeouts = 0;
            config
        }
        Profile::Linux => Config {
            congestion_control: "cubic",
            initial_window: InitialWindow::Segments(10),
            abc_limit: None,
            window_unit: WindowUnit::Packets,
            hystart: HyStart::HyStart,
            cubic_arithmetic: CubicArithmetic::Linux,
            growth: Growth::Linux,
            reduce_from_window: true,
            window_validation: WindowValidation::Rfc2861,
            early_retransmit: EarlyRetransmit::Off,
            prr: Prr::Linux,
            rack_timer_tick: Duration::from_millis(4),
            syn_retries: 6,
            delayed_ack: DelayedAck::Linux {
                min: Duration::from_millis(40),
                max: Duration::from_millis(200),
                quick_acks: 16,
            },
            challenge_interval: Duration::from_millis(500),
            zero_window_probe: ZeroWindowProbe::Empty,
            nagle_minshall: true,
            offload_segments: Some(2),
            path: PathConfig {
                min_pmtu: 552,
                icmp_abort: IcmpAbort::Any,
                icmp_reverts_backoff: true,
                ..config(Profile::Rfc).path
            },
            patience: Patience {
                syn_linear_timeouts: 4,
                synack_retries: 5,
                retries_as_time: true,
                orphan_retries: Some(0),
                user_timeout: None,
                fin_wait2: Some(Duration::from_secs(60)),
                reset_on_unread: true,
            },
            rto: RtoConfig {
                floor: RtoFloor::Variance,
                min: Duration::from_millis(200),
                max: Duration::from_secs(120),
                after_spurious: false,
                ..config(Profile::Rfc).rto
            },
            ..config(Profile::Rfc)
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
            cubic_arithmetic: CubicArithmetic::Rfc9438,
            growth: Growth::CwndLimited,
            reduce_from_window: false,
            window_validation: WindowValidation::Rfc5681,
            pacing: Pacing::Off,
            initial_spreading: InitialSpreading::Off,
            spreading_jiffy: Duration::from_millis(4),
            spreading_gap: Duration::from_millis(4),
            spreading_rate: Rate::from_bps(10_000_000),
            spreading_pair: true,
            spreading_memory: Duration::from_secs(3600),
            spreading_stop: true,
            spreading_phase: false,
            spreading_tail: false,
            spreading_jitter_percent: 0,
            sack: true,
            sack_blocks: 4,
            dsack: true,
            timestamps: true,
            window_scale: Some(7),
            ecn: false,
            ecn_passive: true,
            ecn_echo: EcnEcho::Rfc3168,
            ecn_codepoint: EcnCodepoint::Ect0,
            dup_thresh: 3,
            limited_transmit: true,
            early_retransmit: EarlyRetransmit::Rfc5827,
            prr: Prr::Rfc9937,
            rack: true,
            rack_timer_tick: Duration::ZERO,
            tail_loss_probe: TailLossProbe::Rfc8985,
            fack: false,
            sack1_recovery: false,
            rto_restart: false,
            rto_restart_threshold: 4,
            tail_loss_probe_restart: false,
            probe_restart_threshold: None,
            max_ack_delay: Duration::from_millis(200),
            learn_ack_delay: false,
            thin_dupack: false,
            thin_linear: false,
            rdb: None,
            coalesce_unsent: true,
            frto: true,
            undo: true,
            syn_retries: 8,
            retries: 15,
            delayed_ack: DelayedAck::Standard {
                timeout: Duration::from_millis(200),
            },
            receive_buffer: Bytes(6291456),
            receive_memory: None,
            send_buffer: Bytes(4194304),
            challenge_interval: Duration::ZERO,
            zero_window_probe: ZeroWindowProbe::Byte,
            nagle: true,
            nagle_minshall: false,
            offload_segments: None,
            keep_alive: None,
            msl: Duration::from_secs(1),
            mtu: 1500,
            measured: [Instant::ZERO, Instant::FAR_FUTURE],
            path: PathConfig {
                ip: IpVersion::V4,
                pmtu_discovery: true,
                min_pmtu: 68,
                pmtu_lifetime: Duration::from_secs(600),
                mtu_probing: MtuProbing::Off,
                base_mss: 1024,
                probe_interval: Duration::from_secs(600),
                min_mss: 48,
                icmp_abort: IcmpAbort::Hard,
                icmp_reverts_backoff: false,
                urgent_pointer: UrgentPointer::Following,
            },
            patience: Patience {
                syn_linear_timeouts: 0,
                synack_retries: 8,
                retries_as_time: false,
                orphan_retries: None,
                user_timeout: None,
                fin_wait2: None,
                reset_on_unread: true,
            },
            rto: RtoConfig {
                floor: RtoFloor::Rto,
                min: Duration::from_secs(1),
                initial: Duration::from_secs(1),
                after_syn_timeout: Duration::from_secs(3),
                max: Duration::from_secs(60),
                granularity: Duration::from_millis(1),
                samples: RttSamples::EveryAck,
                tick: Duration::from_nanos(0),
                after_spurious: true,
            },
        },
    }
}

/// The value of switch `name` in `config`, in the words of the table; `None` if there is no such switch.
pub fn describe(config: &Config, name: &str) -> Option<String> {
    let number = |value: Option<u32>| value.map_or_else(|| "none".to_string(), |value| value.to_string());
    let duration =
        |value: Option<Duration>| value.map_or_else(|| "none".to_string(), |value| value.to_string());
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
            WindowUnit::Fractions => "packet-fractions".to_string(),
        },
        "hystart" => match config.hystart {
            HyStart::Off => "off".to_string(),
            HyStart::HyStart => "hystart".to_string(),
            HyStart::HyStartPlusPlus => "hystart++".to_string(),
        },
        "cubic_arithmetic" => match config.cubic_arithmetic {
            CubicArithmetic::Rfc9438 => "rfc9438".to_string(),
            CubicArithmetic::Linux => "linux".to_string(),
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
            WindowValidation::NewCwv => "newcwv".to_string(),
            WindowValidation::NewCwvUnpaced => "newcwv-unpaced".to_string(),
            WindowValidation::NewCwvProbing => "newcwv-probing".to_string(),
        },
        "pacing" => match config.pacing {
            Pacing::Off => "off".to_string(),
            Pacing::Full => "full".to_string(),
            Pacing::Linux => "linux".to_string(),
        },
        "initial_spreading" => match config.initial_spreading {
            InitialSpreading::Off => "off".to_string(),
            InitialSpreading::Variable => "variable".to_string(),
            InitialSpreading::Bounded => "bounded".to_string(),
            InitialSpreading::Known => "known".to_string(),
            InitialSpreading::Estimated => "estimated".to_string(),
        },
        "spreading_jiffy" => config.spreading_jiffy.to_string(),
        "spreading_gap" => config.spreading_gap.to_string(),
        "spreading_rate" => config.spreading_rate.to_string(),
        "spreading_pair" => config.spreading_pair.to_string(),
        "spreading_memory" => config.spreading_memory.to_string(),
        "spreading_stop" => config.spreading_stop.to_string(),
        "spreading_phase" => config.spreading_phase.to_string(),
        "spreading_tail" => config.spreading_tail.to_string(),
        "spreading_jitter_percent" => config.spreading_jitter_percent.to_string(),
        "sack" => config.sack.to_string(),
        "sack_blocks" => config.sack_blocks.to_string(),
        "dsack" => config.dsack.to_string(),
        "timestamps" => config.timestamps.to_string(),
        "window_scale" => number(config.window_scale.map(u32::from)),
        "ecn" => config.ecn.to_string(),
        "ecn_passive" => config.ecn_passive.to_string(),
        "ecn_echo" => match config.ecn_echo {
            EcnEcho::Rfc3168 => "rfc3168".to_string(),
            EcnEcho::Rfc8257 => "rfc8257".to_string(),
        },
        "ecn_codepoint" => match config.ecn_codepoint {
            EcnCodepoint::Ect0 => "ect0".to_string(),
            EcnCodepoint::Ect1 => "ect1".to_string(),
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
        "rack_timer_tick" => config.rack_timer_tick.to_string(),
        "tail_loss_probe" => match config.tail_loss_probe {
            TailLossProbe::Off => "off".to_string(),
            TailLossProbe::Draft => "draft".to_string(),
            TailLossProbe::Rfc8985 => "rfc8985".to_string(),
        },
        "fack" => config.fack.to_string(),
        "sack1_recovery" => config.sack1_recovery.to_string(),
        "rto_restart" => config.rto_restart.to_string(),
        "rto_restart_threshold" => config.rto_restart_threshold.to_string(),
        "tail_loss_probe_restart" => config.tail_loss_probe_restart.to_string(),
        "probe_restart_threshold" => number(config.probe_restart_threshold),
        "learn_ack_delay" => config.learn_ack_delay.to_string(),
        "thin_dupack" => config.thin_dupack.to_string(),
        "thin_linear" => config.thin_linear.to_string(),
        "rdb" => config.rdb.map_or_else(|| "off".to_string(), |_| "on".to_string()),
        "coalesce_unsent" => config.coalesce_unsent.to_string(),
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
        "rto.after_spurious" => config.rto.after_spurious.to_string(),
        "syn_retries" => config.syn_retries.to_string(),
        "retries" => config.retries.to_string(),
        "delayed_ack" => match config.delayed_ack {
            DelayedAck::Off => "off".to_string(),
            DelayedAck::Standard { timeout } => timeout.to_string(),
            DelayedAck::Linux { min, max, quick_acks } => format!("linux {min} to {max}, {quick_acks} quick"),
        },
        "receive_buffer" => bytes(config.receive_buffer),
        "receive_memory" => match config.receive_memory {
            None => "off".to_string(),
            Some(memory) => format!("{} of {}", memory.buffer, memory.most),
        },
        "send_buffer" => bytes(config.send_buffer),
        "challenge_interval" => config.challenge_interval.to_string(),
        "zero_window_probe" => match config.zero_window_probe {
            ZeroWindowProbe::Byte => "byte".to_string(),
            ZeroWindowProbe::Empty => "empty".to_string(),
        },
        "nagle" => config.nagle.to_string(),
        "nagle_minshall" => config.nagle_minshall.to_string(),
        "offload_segments" => config
            .offload_segments
            .map_or_else(|| "off".into(), |segments| format!("{segments}")),
        "keep_alive" => config
            .keep_alive
            .map_or_else(|| "off".to_string(), |keep_alive| keep_alive.idle.to_string()),
        "msl" => config.msl.to_string(),
        "mtu" => config.mtu.to_string(),
        "path.ip" => match config.path.ip {
            IpVersion::V4 => "4".to_string(),
            IpVersion::V6 => "6".to_string(),
        },
        "path.pmtu_discovery" => config.path.pmtu_discovery.to_string(),
        "path.min_pmtu" => config.path.min_pmtu.to_string(),
        "path.pmtu_lifetime" => config.path.pmtu_lifetime.to_string(),
        "path.mtu_probing" => match config.path.mtu_probing {
            MtuProbing::Off => "off".to_string(),
            MtuProbing::BlackHole => "black-hole".to_string(),
            MtuProbing::Always => "always".to_string(),
        },
        "path.base_mss" => config.path.base_mss.to_string(),
        "path.probe_interval" => config.path.probe_interval.to_string(),
        "path.min_mss" => config.path.min_mss.to_string(),
        "path.icmp_abort" => match config.path.icmp_abort {
            IcmpAbort::Any => "any".to_string(),
            IcmpAbort::Hard => "hard".to_string(),
        },
        "path.icmp_reverts_backoff" => config.path.icmp_reverts_backoff.to_string(),
        "path.urgent_pointer" => match config.path.urgent_pointer {
            UrgentPointer::Following => "following".to_string(),
            UrgentPointer::Last => "last".to_string(),
        },
        "patience.syn_linear_timeouts" => config.patience.syn_linear_timeouts.to_string(),
        "patience.synack_retries" => config.patience.synack_retries.to_string(),
        "patience.retries_as_time" => config.patience.retries_as_time.to_string(),
        "patience.orphan_retries" => number(config.patience.orphan_retries.map(u32::from)),
        "patience.user_timeout" => duration(config.patience.user_timeout),
        "patience.fin_wait2" => duration(config.patience.fin_wait2),
        "patience.reset_on_unread" => config.patience.reset_on_unread.to_string(),
        _ => return None,
    })
}

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
            let grouped = ["rto", "path", "patience"].contains(&field);
            // Set by who measures, not a switch.
            let told = ["congestion_control_values", "measured"].contains(&field);
            if depth != 4 || told || grouped {
                continue;
            }
            assert!(
                SWITCHES.iter().any(|switch| switch.name == field),
                "{field} has no row"
            );
        }
    }
}
