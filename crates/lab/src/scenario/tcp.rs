//! `[tcp]`: a profile and switches become the configuration of an endpoint.

use super::document::{self, Node};
use super::error::{Error, Place, Source};
use super::keys;
use super::needs;
use super::read::{Field, Section};
use super::reference::type_of;
use super::spreading;
use super::value;
use crate::plugins;
use fleetfoot_core::parameter::Values;
use fleetfoot_core::tcp::{
    Config, DelayedAck, HiddenLoss, InFlight, OnlyWith, Profile, Rdb, Switch, SwitchForm, ThinRule,
};
use fleetfoot_core::units::Bytes;
use std::path::PathBuf;
use std::sync::Arc;

/// The configuration that the table at `node` describes.
pub(crate) fn config(node: &Node, path: &str) -> Result<Config, Error> {
    let section = Section::open(node, keys::TCP, path)?;
    let mut config = profile(word(&section.need("profile")?, Profile::by_name)?);
    for (key, switch) in switches() {
        if let Some(field) = section.find(key)? {
            apply(&mut config, switch, &field)?;
        }
    }
    if section.find("receive_buffer")?.is_some() {
        let scale = config.window_scale;
        config.fix_receive_buffer();
        if section.find("window_scale")?.is_some() {
            config.window_scale = scale;
        }
    }
    if config.congestion_control_values.is_none() {
        config.congestion_control_values =
            plugins::controller(config.congestion_control).map(|entry| Values::defaults(entry.parameters));
    }
    needs::controller(&mut config, &section)?;
    spreading::rate(&config, &section)?;
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
        *config = profile(word(&field, Profile::by_name)?);
        return Ok(());
    }
    match switches().find(|(name, _)| *name == key) {
        Some((_, switch)) => {
            apply(config, switch, &field)?;
            if key == "receive_buffer" {
                config.fix_receive_buffer();
            }
            Ok(())
        }
        None => Err(field.fail(format!("`{key}` is no switch of an endpoint"))),
    }
}

/// Sets one switch.
fn apply(config: &mut Config, switch: &Switch, field: &Field) -> Result<(), Error> {
    match switch.form {
        SwitchForm::Values(kinds) => {
            let value = field.parameter(kinds)?;
            switch
                .set(config, value)
                .map_err(|error| field.fail(error.to_string()))?;
        }
        SwitchForm::CongestionControl => {
            let (algorithm, values) = value::congestion_control(&field.node, &field.path)?;
            config.congestion_control = algorithm;
            // All at their defaults is the same as none given: naming the profile's own algorithm changes nothing.
            let defaults = Values::defaults(values.table());
            config.congestion_control_values = (values != defaults).then_some(values);
        }
        SwitchForm::DelayedAck => config.delayed_ack = delayed_ack(field)?,
        SwitchForm::Rdb => config.rdb = rdb(field)?,
    }
    Ok(())
}

/// The switches that have keys, with these.
pub(crate) fn switches() -> impl Iterator<Item = (&'static str, &'static Switch)> {
    Config::SWITCHES
        .iter()
        .filter_map(|switch| Some((switch.key?, switch)))
}

/// The switches that have an effect only with another one.
pub(super) fn conditional() -> impl Iterator<Item = (&'static str, OnlyWith)> {
    switches().filter_map(|(key, switch)| Some((key, switch.only_with?)))
}

/// A switch of `[tcp]`, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchInfo {
    /// Its key under `[tcp]`.
    pub name: &'static str,
    /// What may be written.
    pub values: String,
    /// What it does.
    pub doc: &'static str,
    /// Its value in every profile, with the source.
    pub profiles: Vec<(&'static str, String, &'static str)>,
}

/// The switch called `name`, with or without `tcp.` before it.
pub fn switch(name: &str) -> Option<SwitchInfo> {
    let name = name.strip_prefix("tcp.").unwrap_or(name);
    let key = keys::TCP.iter().find(|key| key.name == name)?;
    let switch = Config::SWITCHES.iter().find(|switch| switch.key == Some(name));
    let cell = |switch: &Switch, profile: Profile| {
        let (value, source) = switch.cell(profile);
        (profile.name(), value, source)
    };
    Some(SwitchInfo {
        name: key.name,
        values: type_of(&key.kind),
        doc: key.doc,
        profiles: switch.map_or_else(Vec::new, |switch| {
            Profile::ALL.map(|profile| cell(switch, profile)).to_vec()
        }),
    })
}

/// Names of all switches of `[tcp]`.
pub fn switch_names() -> impl Iterator<Item = &'static str> {
    keys::TCP.iter().map(|key| key.name)
}

/// Switches that have an effect only where the switch `key` is one of some words, `word` among them.
pub fn switches_only_with(key: &str, word: &str) -> impl Iterator<Item = &'static str> {
    conditional()
        .filter(move |(_, with)| with.key == key && with.words.contains(&word))
        .map(|(name, _)| name)
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
    match kind {
        "off" => Ok(DelayedAck::Off),
        "standard" => Ok(DelayedAck::Standard {
            timeout: section.need("timeout")?.duration()?,
        }),
        "linux" => {
            let (min, max) = (section.need("min")?, section.need("max")?);
            if min.duration()? > max.duration()? {
                return Err(min.fail("`min` is above `max`"));
            }
            Ok(DelayedAck::Linux {
                min: min.duration()?,
                max: max.duration()?,
                quick_acks: section.need("quick_acks")?.integer()? as u8,
            })
        }
        other => Err(field.fail(format!("`{other}` is no rule for delayed ACKs"))),
    }
}

fn rdb(field: &Field) -> Result<Option<Rdb>, Error> {
    if field.node.as_text().is_some() {
        return match field.choice()? {
            "off" => Ok(None),
            "one" => Ok(Some(Rdb::STANDARD)),
            "all" => Ok(Some(Rdb {
                max_segments: 0,
                ..Rdb::STANDARD
            })),
            other => Err(field.fail(format!("`{other}` is no redundant data bundling"))),
        };
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
        in_flight: word(&section.need("in_flight")?, InFlight::by_name)?,
        max_segments: section.need("max_segments")?.integer()? as u8,
        max_payload: section.need("max_payload")?.bytes()?.0 as u32,
        detect: word(&section.need("detect")?, HiddenLoss::by_name)?,
        budget: section.need("budget")?.integer()? as u8,
        charge: flag("charge")?,
        spaced: flag("spaced")?,
        tfrc_bound: flag("tfrc_bound")?,
        min_loss: flag("min_loss")?,
    }))
}

/// The configuration of a profile, with the congestion controls that this program knows.
fn profile(profile: Profile) -> Config {
    let mut config = Config::profile(profile);
    config.plugins = plugins::installed();
    config
}

/// The choice that is written as the word of `field`.
fn word<T>(field: &Field, by_name: fn(&str) -> Option<T>) -> Result<T, Error> {
    let word = field.choice()?;
    by_name(word).ok_or_else(|| field.fail(format!("`{word}` is unknown here")))
}

#[cfg(test)]
mod tests {
    use super::{conditional, set, switch, switches, switches_only_with};
    use crate::scenario::keys;
    use fleetfoot_core::tcp::{Config, Profile};

    /// What is in the core's table and is no plain value is read too, and a word that nobody knows is an error for every key.
    #[test]
    fn every_switch_is_read_and_no_other_word_is() {
        for (key, switch) in switches() {
            let mut config = Config::profile(Profile::Linux);
            let shown = switch.shown(&config);
            let error = set(&mut config, key, "nonsense").expect_err(key);
            assert!(error.key.starts_with(&format!("tcp.{key}")), "{error}");
            assert_eq!(switch.shown(&config), shown, "{key}");
        }
        for (key, value) in [
            ("congestion_control", "vegas"),
            ("delayed_ack", "off"),
            ("rdb", "one"),
        ] {
            let mut config = Config::profile(Profile::Linux);
            set(&mut config, key, value).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(config, Config::profile(Profile::Linux), "{key}");
        }
        let others: Vec<&str> = keys::TCP
            .iter()
            .map(|key| key.name)
            .filter(|name| switches().all(|(key, _)| key != *name))
            .collect();
        assert_eq!(others, ["profile", "super_packets", "host_coalesce", "fast_open"]);
    }

    #[test]
    fn switches_that_need_another_one_name_its_key_and_words() {
        for (name, with) in conditional() {
            let other = switch(with.key).expect(name);
            for word in with.words {
                assert!(other.values.contains(&format!("`{word}`")), "{name}: {word}");
            }
        }
        assert_eq!(
            switches_only_with("initial_spreading", "known").collect::<Vec<_>>(),
            [
                "spreading_jiffy",
                "spreading_gap",
                "spreading_rate",
                "spreading_jitter_percent"
            ]
        );
        assert_eq!(switch("tcp.pacing"), switch("pacing"));
        assert_eq!(switch("nothing"), None);
    }

    /// Every switch of the core's table has its sources here, so that `explain` can print them.
    #[test]
    fn a_switch_tells_its_value_in_every_profile() {
        let pacing = switch("pacing").expect("a switch");
        assert_eq!(pacing.profiles.len(), 6);
        assert!(pacing.values.contains("`full`"), "{}", pacing.values);
        assert_eq!(pacing.profiles[4].0, "linux");
    }
}
