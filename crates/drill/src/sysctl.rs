//! Settings of a machine as switches of our stack.
//!
//! **Source.** `ip-sysctl` of the Linux documentation.
//! **Deviations.** Settings of what our stack never does (segmentation offload, pacing by the device) are taken without
//! effect; they are listed in `WITHOUT_EFFECT`. Any other that is not here is refused.

use super::backend::{BackendError, Setting};
use fleetfoot_core::cc::AnyController;
use fleetfoot_core::socket::{FastOpen, Memory, StackConfig, SynCookies};
use fleetfoot_core::tcp::{
    Config, DelayedAck, EarlyRetransmit, EcnFeedback, EcnOption, InitialWindow, MtuProbing, TailLossProbe,
    WindowValidation,
};
use fleetfoot_core::time::Duration;

/// Changes `config` as `setting` says; `set_switch` sets a switch of our stack by its key of `[tcp]`.
pub(super) fn apply(
    config: &mut StackConfig,
    setting: &Setting,
    set_switch: fn(&mut Config, &str, &str) -> Result<(), String>,
) -> Result<(), BackendError> {
    let refuse = |what: String| Err(BackendError::Unsupported(what));
    match setting {
        Setting::Sysctl { name, value } if name.starts_with(OWN) => {
            let key = &name[OWN.len()..];
            set_switch(&mut config.tcp, key, value)
                .map_err(|error| BackendError::Unsupported(format!("the setting {name}={value}: {error}")))
        }
        Setting::Sysctl { name, value } => sysctl(config, name, value)
            .ok_or_else(|| BackendError::Unsupported(format!("the setting {name}={value}"))),
        Setting::Module { module, name, value } => {
            match (module.as_str(), name.as_str(), value.as_str()) {
                // Both ways of leaving slow start early; that is what we do by default.
                ("tcp_cubic", "hystart_detect", "3") => Ok(()),
                _ => refuse(format!("the parameter {name}={value} of {module}")),
            }
        }
        Setting::Route {
            advmss: None,
            mtu,
            lock: _,
            initial_window,
            rto_min_ms,
        } => {
            if let Some(mtu) = mtu {
                config.tcp.mtu = *mtu;
            }
            if let Some(segments) = initial_window {
                config.tcp.initial_window = InitialWindow::Segments(*segments);
            }
            if let Some(rto_min) = rto_min_ms {
                config.tcp.rto.min = Duration::from_millis(u64::from(*rto_min));
            }
            Ok(())
        }
        Setting::Route { advmss: Some(_), .. } => refuse("advmss of a route".to_owned()),
        Setting::FirstWindow { segments } => {
            config.first_receive_segments = Some(*segments);
            Ok(())
        }
        Setting::ForgetPeers => Ok(()), // every script begins with a stack that knows nobody
        Setting::LinkQueue { .. } => Ok(()), // the backend's own
        Setting::QuickAcks(on) => {
            if let DelayedAck::Linux { min, max, .. } = config.tcp.delayed_ack {
                let quick_acks = if *on { 16 } else { 0 };
                config.tcp.delayed_ack = DelayedAck::Linux { min, max, quick_acks };
            }
            Ok(())
        }
    }
}

fn sysctl(config: &mut StackConfig, name: &str, value: &str) -> Option<()> {
    let number = || parse(value);
    let flag = || number().map(|number| number != 0);
    let millis = || number().map(Duration::from_millis);
    let seconds = || number().map(Duration::from_secs);
    let count = || number().and_then(|number| u8::try_from(number).ok());
    let tcp = &mut config.tcp;
    match name.strip_prefix("net.ipv4.").unwrap_or(name) {
        "net.core.rmem_max" => config.receive_memory_cap = number()?,
        "net.core.wmem_max" => config.send_memory_cap = number()?,
        "net.core.somaxconn" => config.somaxconn = u32::try_from(number()?).ok()?,
        "tcp_rmem" => config.receive_memory = memory(value)?,
        "tcp_wmem" => config.send_memory = memory(value)?,
        "tcp_timestamps" => tcp.timestamps = flag()?,
        "tcp_window_scaling" => tcp.window_scale = flag()?.then_some(tcp.window_scale.unwrap_or(7)),
        "tcp_sack" => tcp.sack = flag()?,
        "tcp_dsack" => tcp.dsack = flag()?,
        "tcp_fack" => tcp.fack = flag()?,
        "tcp_reordering" => tcp.dup_thresh = count()?,
        "tcp_congestion_control" => {
            tcp.congestion_control = AnyController::entry(value)?.name;
            tcp.congestion_control_values = None;
        }
        "tcp_slow_start_after_idle" => {
            tcp.window_validation = if flag()? {
                WindowValidation::Rfc2861
            } else {
                WindowValidation::None
            };
        }
        "tcp_recovery" => tcp.rack = number()? & 1 != 0,
        "tcp_early_retrans" => {
            let number = number()?;
            tcp.tail_loss_probe = if number >= 3 {
                TailLossProbe::Rfc8985
            } else {
                TailLossProbe::Off
            };
            // The values 1 to 3 chose early retransmit until RACK took its place.
            tcp.early_retransmit = match number {
                1 if !tcp.rack => EarlyRetransmit::Immediate,
                2 | 3 if !tcp.rack => EarlyRetransmit::Delayed,
                _ => EarlyRetransmit::Off,
            };
        }
        "tcp_ecn" => {
            let number = number()?;
            // What is asked for, and what is agreed to.
            (tcp.ecn, tcp.ecn_passive) = match number {
                0 => (EcnFeedback::Off, EcnFeedback::Off),
                1 => (EcnFeedback::Classic, EcnFeedback::Classic),
                2 => (EcnFeedback::Off, EcnFeedback::Classic),
                3 => (EcnFeedback::Accurate, EcnFeedback::Accurate),
                4 => (EcnFeedback::Classic, EcnFeedback::Accurate),
                5 => (EcnFeedback::Off, EcnFeedback::Accurate),
                _ => return None,
            };
        }
        "tcp_ecn_option" => {
            tcp.ecn_option = match number()? {
                0 => EcnOption::Never,
                1 => EcnOption::WhenUseful,
                2 => EcnOption::Always,
                3 => EcnOption::Persistent,
                _ => return None,
            };
        }
        "tcp_ecn_option_beacon" => tcp.ecn_option_beacon = count()?,
        "tcp_ecn_fallback" => tcp.ecn_fallback = flag()?,
        "tcp_frto" => tcp.frto = flag()?,
        "tcp_syn_retries" => tcp.syn_retries = count()?,
        "tcp_retries2" => tcp.retries = count()?,
        "tcp_rto_max_ms" => tcp.rto.max = millis()?,
        "tcp_rto_min_us" => tcp.rto.min = Duration::from_micros(number()?),
        "tcp_synack_retries" => config.syn_ack_retries = count()?,
        "tcp_orphan_retries" => config.orphan_retries = count()?,
        "tcp_fin_timeout" => config.fin_timeout = seconds()?,
        "tcp_keepalive_time" => config.keep_alive.idle = seconds()?,
        "tcp_keepalive_intvl" => config.keep_alive.interval = seconds()?,
        "tcp_keepalive_probes" => config.keep_alive.probes = count()?,
        "tcp_max_tw_buckets" => config.time_wait_limit = u32::try_from(number()?).ok()?,
        "tcp_rfc1337" => config.rfc1337 = flag()?,
        "tcp_max_syn_backlog" => config.syn_backlog = u32::try_from(number()?).ok()?,
        "tcp_abort_on_overflow" => config.abort_on_overflow = flag()?,
        "tcp_notsent_lowat" => config.notsent_lowat = number()?,
        "tcp_syncookies" => {
            config.syn_cookies = match number()? {
                0 => SynCookies::Off,
                1 => SynCookies::OnOverflow,
                2 => SynCookies::Always,
                _ => return None,
            };
        }
        "tcp_fastopen" => {
            config.fast_open = FastOpen::from_bits(u32::try_from(number()?).ok()?, config.fast_open.key);
        }
        "tcp_fastopen_key" => {
            let words: Vec<u32> = value
                .split(',')
                .next()?
                .split('-')
                .map(|word| u32::from_str_radix(word, 16).ok())
                .collect::<Option<_>>()?;
            config.fast_open.key = words.try_into().ok()?;
        }
        "tcp_min_tso_segs" => tcp.offload_segments = Some(count()?.max(1)),
        "ip_default_ttl" => config.ttl = count()?,
        "tcp_mtu_probing" => {
            tcp.path.mtu_probing = match number()? {
                0 => MtuProbing::Off,
                1 => MtuProbing::BlackHole,
                2 => MtuProbing::Always,
                _ => return None,
            };
        }
        "tcp_base_mss" => tcp.path.base_mss = u32::try_from(number()?).ok()?,
        "tcp_thin_linear_timeouts" => tcp.thin_linear = flag()?,
        "tcp_syn_linear_timeouts" => tcp.patience.syn_linear_timeouts = count()?,
        other if WITHOUT_EFFECT.contains(&other) => {
            parse(value)?;
        }
        _ => return None,
    }
    Some(())
}

/// Begin of the names of our own switches: `fleetfoot.rto_restart=true` is `rto_restart = true` under `[tcp]`.
const OWN: &str = "fleetfoot.";

/// A decimal or hexadecimal number.
fn parse(value: &str) -> Option<u64> {
    match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

fn memory(value: &str) -> Option<Memory> {
    let mut numbers = value.split_ascii_whitespace().map(parse);
    let memory = Memory {
        min: numbers.next()??,
        default: numbers.next()??,
        max: numbers.next()??,
    };
    numbers.next().is_none().then_some(memory)
}

/// What our stack never does, so that these change nothing.
const WITHOUT_EFFECT: [&str; 8] = [
    "tcp_autocorking",
    "tcp_limit_output_bytes",
    "tcp_no_metrics_save",
    "tcp_pacing_ca_ratio",
    "tcp_pacing_ss_ratio",
    "tcp_tso_rtt_log",
    "tcp_tso_win_divisor",
    "tcp_moderate_rcvbuf",
];

#[cfg(test)]
mod tests {
    use super::apply;
    use crate::backend::{BackendError, Setting};
    use crate::command::{DEFAULTS, OLD_LINUX};
    use fleetfoot_core::socket::StackConfig;
    use fleetfoot_core::tcp::{Config, EarlyRetransmit, Profile, TailLossProbe, ThinRule};
    use fleetfoot_core::time::Duration;
    use fleetfoot_lab::scenario::set_switch;

    fn sysctl(config: &mut StackConfig, name: &str, value: &str) -> Result<(), BackendError> {
        let (name, value) = (name.to_owned(), value.to_owned());
        apply(config, &Setting::Sysctl { name, value }, set_switch)
    }

    #[test]
    fn the_defaults_of_the_public_scripts_are_known() {
        let mut config = StackConfig::new(vec![], Config::profile(Profile::Linux));
        for (name, value) in DEFAULTS {
            assert_eq!(sysctl(&mut config, name, value), Ok(()), "{name}");
        }
        assert!(config.tcp.timestamps && !config.tcp.ecn.is_on() && config.tcp.rack);
        assert_eq!(config.tcp.tail_loss_probe, TailLossProbe::Rfc8985);
        assert_eq!(
            config.fast_open.key,
            [0xa1a1_a1a1, 0xb2b2_b2b2, 0xc3c3_c3c3, 0xd4d4_d4d4]
        );
    }

    #[test]
    fn a_repeated_syn_asks_for_ecn_again_without_the_fallback() {
        let mut config = StackConfig::new(vec![], Config::profile(Profile::Linux));
        assert!(config.tcp.ecn_fallback);
        assert_eq!(sysctl(&mut config, "net.ipv4.tcp_ecn_fallback", "0"), Ok(()));
        assert!(!config.tcp.ecn_fallback);
        assert_eq!(sysctl(&mut config, "net.ipv4.tcp_ecn_fallback", "1"), Ok(()));
        assert!(config.tcp.ecn_fallback);
    }

    #[test]
    fn thin_streams_are_asked_for_as_in_linux() {
        let mut config = StackConfig::new(vec![], Config::profile(Profile::Linux));
        assert!(!config.tcp.thin_linear);
        for (value, on) in [("1", true), ("0", false)] {
            assert_eq!(
                sysctl(&mut config, "net.ipv4.tcp_thin_linear_timeouts", value),
                Ok(())
            );
            assert_eq!(config.tcp.thin_linear, on);
        }
    }

    #[test]
    fn early_retransmit_is_chosen_where_rack_is_off() {
        let mut config = StackConfig::new(vec![], Config::profile(Profile::Linux));
        assert_eq!(sysctl(&mut config, "net.ipv4.tcp_early_retrans", "1"), Ok(()));
        assert_eq!(config.tcp.early_retransmit, EarlyRetransmit::Off);
        for (name, value) in OLD_LINUX {
            assert_eq!(sysctl(&mut config, name, value), Ok(()), "{name}");
        }
        assert!(!config.tcp.rack);
        for (value, kind) in [
            ("0", EarlyRetransmit::Off),
            ("1", EarlyRetransmit::Immediate),
            ("2", EarlyRetransmit::Delayed),
            ("3", EarlyRetransmit::Delayed),
            ("4", EarlyRetransmit::Off),
        ] {
            assert_eq!(sysctl(&mut config, "net.ipv4.tcp_early_retrans", value), Ok(()));
            assert_eq!(config.tcp.early_retransmit, kind, "{value}");
        }
    }

    #[test]
    fn our_own_switches_are_set_as_in_scenario_files() {
        let mut config = StackConfig::new(vec![], Config::profile(Profile::Linux));
        for (name, value) in [
            ("fleetfoot.profile", "linux-2015"),
            ("fleetfoot.rto_restart", "true"),
            ("fleetfoot.rto_restart_threshold", "5"),
            ("fleetfoot.tail_loss_probe", "draft"),
            ("fleetfoot.max_ack_delay", "25 ms"),
            ("fleetfoot.rdb", "{ thin = 8, max_segments = 2 }"),
        ] {
            assert_eq!(sysctl(&mut config, name, value), Ok(()), "{name}");
        }
        let tcp = &config.tcp;
        assert!(tcp.rto_restart && !tcp.rack && tcp.rto_restart_threshold == 5);
        assert_eq!(tcp.tail_loss_probe, TailLossProbe::Draft);
        assert_eq!(tcp.max_ack_delay, Some(Duration::from_millis(25)));
        let mut again = config.clone();
        assert_eq!(sysctl(&mut again, "fleetfoot.max_ack_delay", "min-rto"), Ok(()));
        assert_eq!(again.tcp.max_ack_delay, None);
        assert!(sysctl(&mut again, "fleetfoot.max_ack_delay", "max-rto").is_err());
        let rdb = tcp.rdb.expect("it is on");
        assert_eq!((rdb.thin, rdb.max_segments), (ThinRule::Packets(8), 2));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let mut config = StackConfig::new(vec![], Config::profile(Profile::Linux));
        for (name, value) in [
            ("net.ipv4.tcp_ecn", "6"),
            ("net.ipv4.tcp_ecn_option", "4"),
            ("net.ipv4.tcp_mtu_probing", "3"),
            ("net.ipv4.tcp_rmem", "1 2"),
            ("net.ipv4.unheard_of", "1"),
            ("fleetfoot.unheard_of", "1"),
            ("fleetfoot.rto_restart", "perhaps"),
            ("fleetfoot.rdb", "{ thin = 0 }"),
            ("fleetfoot.rdb", "{ thin"),
            ("net.ipv4.tcp_min_tso_segs", "x"),
        ] {
            assert!(
                matches!(
                    sysctl(&mut config, name, value),
                    Err(BackendError::Unsupported(_))
                ),
                "{name}"
            );
        }
    }
}
