//! `[tcp]`: a profile and switches become the configuration of an endpoint.

use super::combinations;
use super::document::{self, Node};
use super::error::{Error, Place, Source};
use super::keys;
use super::read::{Field, Section};
use super::value;
use fleetfoot_core::cc::{AnyController, CubicArithmetic, HyStart};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::tcp::{
    Config, DelayedAck, EarlyRetransmit, EcnCodepoint, EcnEcho, Growth, HiddenLoss, InFlight,
    InitialSpreading, InitialWindow, Pacing, Profile, Prr, Rdb, RtoFloor, RttSamples, TailLossProbe,
    ThinRule, WindowUnit, WindowValidation,
};
use fleetfoot_core::units::Bytes;
use std::path::PathBuf;
use std::sync::Arc;

/// The configuration that the table at `node` describes.
pub(crate) fn config(node: &Node, path: &str) -> Result<Config, Error> {
    let section = Section::open(node, keys::TCP, path)?;
    let mut config = profile(section.need("profile")?.choice()?);
    for key in keys::TCP {
        if key.name != "profile"
            && let Some(field) = section.find(key.name)?
        {
            apply(&mut config, key.name, &field)?;
        }
    }
    if matches!(config.congestion_control, "dctcp" | "prague") && section.table.get("ecn_echo").is_none() {
        config.ecn_echo = EcnEcho::Rfc8257; // its receiver reports every mark
    }
    if config.congestion_control == "prague" && section.table.get("ecn_codepoint").is_none() {
        config.ecn_codepoint = EcnCodepoint::Ect1; // what asks for the queue of L4S (RFC 9331 4.1)
    }
    if config.congestion_control_values.is_none() {
        config.congestion_control_values =
            AnyController::entry(config.congestion_control).map(|entry| Values::defaults(entry.parameters));
    }
    combinations::controller(&config, &section)?;
    combinations::spreading_rate(&config, &section)?;
    if config.rto.min > config.rto.max {
        let field = section
            .find("min_rto")?
            .map_or_else(|| section.need("max_rto"), Ok)?;
        return Err(field.fail(format!(
            "the floor of the retransmission timer ({}) is above its cap ({})",
            config.rto.min, config.rto.max
        )));
    }
    if let Some(problem) = window_field(&config, config.receive_buffer) {
        let field = section
            .find("receive_buffer")?
            .map_or_else(|| section.need("window_scale"), Ok)?;
        return Err(field.fail(problem).help(
            field.place(),
            "a larger `receive_buffer`, or a smaller `window_scale`",
        ));
    }
    Ok(config)
}

/// Why a window field cannot tell of a receive buffer, if it cannot.
pub(super) fn window_field(config: &Config, buffer: Bytes) -> Option<String> {
    let shift = config.window_scale.unwrap_or(0);
    (buffer < Bytes(1 << shift)).then(|| {
        format!(
            "a receive buffer of {buffer} is less than one unit of the window field, {} with `window_scale` {shift}",
            Bytes(1 << shift)
        )
    })
}

/// Sets the switch `key` of `config` to `value`, as `key = value` under `[tcp]` would; a word without quotes is text.
///
/// # Errors
/// There is no such switch, or it does not take this value.
pub(crate) fn set(config: &mut Config, key: &str, value: &str) -> Result<(), Error> {
    let line = format!("{key} = {value}");
    let source = |text: String| {
        Arc::new(Source {
            name: String::from("setting"),
            text,
            folder: PathBuf::new(),
            files: Default::default(),
        })
    };
    let table =
        document::parse(&source(line)).or_else(|_| document::parse(&source(format!("{key} = {value:?}"))))?;
    let place = table.entries.first().map_or_else(
        || Place::new(&source(String::new()), 0..0),
        |entry| entry.key_place.clone(),
    );
    let node = Node {
        value: document::Value::Table(table),
        place,
    };
    let section = Section::open(&node, keys::TCP, "tcp")?;
    let field = section.need_named(key)?;
    if key == "profile" {
        *config = profile(field.choice()?);
        return Ok(());
    }
    apply(config, key, &field)
}

/// Sets one switch. Every key of [`keys::TCP`] is here, as a test shows.
fn apply(config: &mut Config, name: &str, field: &Field) -> Result<(), Error> {
    let limited = |field: &Field| match field.node.as_text() {
        Some(_) => field.choice().map(|_| None),
        None => field.integer().map(|number| Some(number as u32)),
    };
    match name {
        "congestion_control" => {
            let (algorithm, values) = value::congestion_control(&field.node, &field.path)?;
            config.congestion_control = algorithm;
            // All at their defaults is the same as none given: naming the profile's own algorithm changes nothing.
            let defaults = Values::defaults(values.table());
            config.congestion_control_values = (values != defaults).then_some(values);
        }
        "initial_window" => {
            config.initial_window = match field.node.as_text() {
                None => InitialWindow::Segments(field.integer()? as u32),
                Some(_) => match field.choice()? {
                    "rfc3390" => InitialWindow::Rfc3390,
                    _ => InitialWindow::Rfc6928,
                },
            }
        }
        "max_window" => config.max_window_segments = limited(field)?,
        "abc_limit" => config.abc_limit = limited(field)?,
        "window_unit" => {
            config.window_unit = match field.choice()? {
                "bytes" => WindowUnit::Bytes,
                "packet-fractions" => WindowUnit::Fractions,
                _ => WindowUnit::Packets,
            }
        }
        "hystart" => {
            config.hystart = match field.choice()? {
                "off" => HyStart::Off,
                "hystart" => HyStart::HyStart,
                _ => HyStart::HyStartPlusPlus,
            }
        }
        "growth" => {
            config.growth = match field.choice()? {
                "always" => Growth::Always,
                "cwnd-limited" => Growth::CwndLimited,
                _ => Growth::Linux,
            }
        }
        "cubic_arithmetic" => {
            config.cubic_arithmetic = match field.choice()? {
                "rfc9438" => CubicArithmetic::Rfc9438,
                _ => CubicArithmetic::Linux,
            }
        }
        "reduce_from_window" => config.reduce_from_window = field.flag()?,
        "ecn_passive" => config.ecn_passive = field.flag()?,
        "ecn_echo" => {
            config.ecn_echo = match field.choice()? {
                "rfc3168" => EcnEcho::Rfc3168,
                _ => EcnEcho::Rfc8257,
            }
        }
        "ecn_codepoint" => {
            config.ecn_codepoint = match field.choice()? {
                "ect0" => EcnCodepoint::Ect0,
                _ => EcnCodepoint::Ect1,
            }
        }
        "tail_loss_probe_restart" => config.tail_loss_probe_restart = field.flag()?,
        "rto_restart" => config.rto_restart = field.flag()?,
        "rto_restart_threshold" => config.rto_restart_threshold = field.integer()? as u32,
        "probe_restart_threshold" => config.probe_restart_threshold = limited(field)?,
        "learn_ack_delay" => config.learn_ack_delay = field.flag()?,
        "thin_dupack" => config.thin_dupack = field.flag()?,
        "thin_linear" => config.thin_linear = field.flag()?,
        "rdb" => config.rdb = rdb(field)?,
        "coalesce_unsent" => config.coalesce_unsent = field.flag()?,
        "fack" => config.fack = field.flag()?,
        "sack1_recovery" => config.sack1_recovery = field.flag()?,
        "window_validation" => {
            config.window_validation = match field.choice()? {
                "none" => WindowValidation::None,
                "rfc5681" => WindowValidation::Rfc5681,
                "rfc2861" => WindowValidation::Rfc2861,
                "newcwv" => WindowValidation::NewCwv,
                "newcwv-unpaced" => WindowValidation::NewCwvUnpaced,
                _ => WindowValidation::NewCwvProbing,
            }
        }
        "pacing" => {
            config.pacing = match field.choice()? {
                "off" => Pacing::Off,
                "full" => Pacing::Full,
                _ => Pacing::Linux,
            }
        }
        "initial_spreading" => {
            config.initial_spreading = match field.choice()? {
                "off" => InitialSpreading::Off,
                "variable" => InitialSpreading::Variable,
                "bounded" => InitialSpreading::Bounded,
                "known" => InitialSpreading::Known,
                _ => InitialSpreading::Estimated,
            }
        }
        "spreading_jiffy" => config.spreading_jiffy = field.duration()?,
        "spreading_gap" => config.spreading_gap = field.duration()?,
        "spreading_rate" => config.spreading_rate = field.rate()?,
        "spreading_pair" => config.spreading_pair = field.flag()?,
        "spreading_memory" => config.spreading_memory = field.duration()?,
        "spreading_stop" => config.spreading_stop = field.flag()?,
        "spreading_phase" => config.spreading_phase = field.flag()?,
        "spreading_tail" => config.spreading_tail = field.flag()?,
        "spreading_jitter_percent" => config.spreading_jitter_percent = field.integer()? as u8,
        "sack" => config.sack = field.flag()?,
        "sack_blocks" => config.sack_blocks = field.integer()? as u8,
        "dsack" => config.dsack = field.flag()?,
        "timestamps" => config.timestamps = field.flag()?,
        "window_scale" => config.window_scale = limited(field)?.map(|shift| shift as u8),
        "ecn" => config.ecn = field.flag()?,
        "dup_thresh" => config.dup_thresh = field.integer()? as u8,
        "limited_transmit" => config.limited_transmit = field.flag()?,
        "early_retransmit" => {
            config.early_retransmit = match field.choice()? {
                "off" => EarlyRetransmit::Off,
                "rfc5827" => EarlyRetransmit::Rfc5827,
                "immediate" => EarlyRetransmit::Immediate,
                _ => EarlyRetransmit::Delayed,
            }
        }
        "prr" => {
            config.prr = match field.choice()? {
                "off" => Prr::Off,
                "rfc6937-crb" => Prr::Rfc6937Crb,
                "rfc6937-ssrb" => Prr::Rfc6937Ssrb,
                "linux" => Prr::Linux,
                _ => Prr::Rfc9937,
            }
        }
        "rack" => config.rack = field.flag()?,
        "tail_loss_probe" => {
            config.tail_loss_probe = match field.choice()? {
                "off" => TailLossProbe::Off,
                "draft" => TailLossProbe::Draft,
                _ => TailLossProbe::Rfc8985,
            }
        }
        "max_ack_delay" => config.max_ack_delay = field.duration()?,
        "frto" => config.frto = field.flag()?,
        "undo" => config.undo = field.flag()?,
        "min_rto" => config.rto.min = field.duration()?,
        "initial_rto" => config.rto.initial = field.duration()?,
        "max_rto" => config.rto.max = field.duration()?,
        "rto_floor" => {
            config.rto.floor = match field.choice()? {
                "rto" => RtoFloor::Rto,
                _ => RtoFloor::Variance,
            }
        }
        "tick" => config.rto.tick = field.duration()?,
        "rto_after_spurious" => config.rto.after_spurious = field.flag()?,
        "rtt_samples" => {
            config.rto.samples = match field.choice()? {
                "once-per-rtt" => RttSamples::OncePerRtt,
                _ => RttSamples::EveryAck,
            }
        }
        "syn_retries" => config.syn_retries = field.integer()? as u8,
        "retries" => config.retries = field.integer()? as u8,
        "delayed_ack" => config.delayed_ack = delayed_ack(field)?,
        "receive_buffer" => config.receive_buffer = field.bytes()?,
        "send_buffer" => config.send_buffer = field.bytes()?,
        "nagle" => config.nagle = field.flag()?,
        // Not of the endpoint: `super::interface` reads them.
        "super_packets" | "host_coalesce" => {}
        _ => return Err(field.fail(format!("`{name}` has no effect yet"))),
    }
    Ok(())
}

fn delayed_ack(field: &Field) -> Result<DelayedAck, Error> {
    let table = match field.node.as_text() {
        None => field.node.clone(),
        // A word is the table with this kind and its defaults.
        Some(_) => Node::from_toml(
            &toml::Value::Table(toml::Table::from_iter([(
                String::from("kind"),
                field.node.to_toml(),
            )])),
            field.place(),
        ),
    };
    let (kind, section) = Section::open_tagged(&table, &keys::DELAYED_ACK, &field.path)?;
    Ok(match kind {
        "off" => DelayedAck::Off,
        "standard" => DelayedAck::Standard {
            timeout: section.need("timeout")?.duration()?,
        },
        _ => {
            let (min, max) = (section.need("min")?, section.need("max")?);
            if min.duration()? > max.duration()? {
                return Err(min.fail("`min` is above `max`"));
            }
            DelayedAck::Linux {
                min: min.duration()?,
                max: max.duration()?,
                quick_acks: section.need("quick_acks")?.integer()? as u8,
            }
        }
    })
}

fn rdb(field: &Field) -> Result<Option<Rdb>, Error> {
    if field.node.as_text().is_some() {
        return Ok(match field.choice()? {
            "off" => None,
            "all" => Some(Rdb {
                max_segments: 0,
                ..Rdb::STANDARD
            }),
            _ => Some(Rdb::STANDARD),
        });
    }
    let section = Section::open(&field.node, keys::RDB, &field.path)?;
    let flag = |key| section.need(key)?.flag();
    let thin = section.need("thin")?;
    Ok(Some(Rdb {
        thin: match thin.node.as_text() {
            Some(_) => ThinRule::Interval {
                min: section.need("min_interval")?.duration()?,
                smoothed: section.need("rtt")?.choice()? == "smoothed",
            },
            None => ThinRule::Packets(thin.integer()? as u32),
        },
        in_flight: match section.need("in_flight")?.choice()? {
            "out" => InFlight::Out,
            _ => InFlight::Pipe,
        },
        max_segments: section.need("max_segments")?.integer()? as u8,
        max_payload: section.need("max_payload")?.bytes()?.0 as u32,
        detect: match section.need("detect")?.choice()? {
            "ignored" => HiddenLoss::Ignored,
            "original" => HiddenLoss::Original,
            _ => HiddenLoss::Dsack,
        },
        budget: section.need("budget")?.integer()? as u8,
        charge: flag("charge")?,
        spaced: flag("spaced")?,
        tfrc_bound: flag("tfrc_bound")?,
        min_loss: flag("min_loss")?,
    }))
}

fn profile(name: &str) -> Config {
    Config::profile(Profile::by_name(name).unwrap_or(Profile::Linux))
}

#[cfg(test)]
mod tests {
    use super::{apply, profile};
    use crate::scenario::document::{Node, Value};
    use crate::scenario::error::{Place, Source};
    use crate::scenario::keys::{self, Kind};
    use crate::scenario::read::Field;
    use std::path::PathBuf;
    use std::sync::Arc;

    /// Some value of this type.
    fn sample(kind: &Kind) -> Value {
        match kind {
            Kind::Flag => Value::Flag(true),
            Kind::Integer(low, _) => Value::Integer(*low as i64),
            Kind::Duration(..) => Value::Text("100 ms".into()),
            Kind::Rate => Value::Text("1 Mbit/s".into()),
            Kind::Bytes(..) => Value::Text("64 kB".into()),
            Kind::Choice(words) => Value::Text(words[0].into()),
            Kind::CongestionControl => Value::Text("reno".into()),
            Kind::Either(forms) => sample(&forms[0]),
            other => unreachable!("no switch is of type {other:?}"),
        }
    }

    #[test]
    fn every_switch_of_the_list_of_keys_is_applied() {
        let source = Arc::new(Source {
            name: "test".into(),
            text: String::new(),
            folder: PathBuf::new(),
            files: Default::default(),
        });
        for key in keys::TCP.iter().filter(|key| key.name != "profile") {
            let field = Field {
                node: Node {
                    value: sample(&key.kind),
                    place: Place::new(&source, 0..0),
                },
                path: key.name.into(),
                kind: key.kind,
                given: true,
            };
            let applied = apply(&mut profile("linux"), key.name, &field);
            assert!(applied.is_ok(), "{}: {applied:?}", key.name);
        }
    }

    #[test]
    fn every_name_of_a_profile_is_a_profile_of_its_own() {
        let debugged: std::collections::BTreeSet<String> = keys::PROFILES
            .iter()
            .map(|name| format!("{:?}", profile(name)))
            .collect();
        assert_eq!(debugged.len(), keys::PROFILES.len());
    }
}
