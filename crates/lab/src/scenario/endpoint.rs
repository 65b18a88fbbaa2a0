//! The configuration of one endpoint on its own: `[tcp]` of a file, and settings, for what runs on real packets.

use super::error::Error;
use super::path::Setting;
use super::read::Section;
use super::{Scenario, interface, keys, tcp};
use crate::input;
use fleetfoot_core::tcp::Config;
use std::path::Path;

/// What an endpoint needs of a scenario that has nothing else.
const REST: &str = r#"
[network]
kind = "dumbbell"
pairs = 1
bottleneck = { rate = "1 Gbit/s", delay = "1 ms" }
[[traffic]]
name = "endpoint"
kind = "bulk"
"#;

/// The endpoint that `[tcp]` of a file, or of none, with `set` laid over it describes. The file is a scenario, or holds nothing but
/// `[tcp]`.
///
/// # Errors
/// The first mistake, with its place.
pub fn endpoint(file: Option<&Path>, set: &Setting) -> Result<Config, Error> {
    let mut scenario = match file {
        Some(path) => match input::text(path, input::MOST_SCENARIO) {
            Ok(text) if is_part(&text) => Scenario::parse(&path.display().to_string(), &(text + REST))?,
            Ok(_) | Err(_) => Scenario::load(path)?,
        },
        None => Scenario::parse("the flags", &format!("{REST}[tcp]\n"))?,
    };
    if !set.is_empty() {
        scenario = scenario.with(set)?;
        if let Some(problem) = scenario.effects(set) {
            return Err(problem);
        }
    }
    let Some(node) = scenario.document.get("tcp") else {
        return endpoint(None, &Setting::none()); // the defaults
    };
    let config = tcp::config(node, "tcp")?;
    let of_hosts = interface::interface(node, "tcp", &config)?;
    let section = Section::open(node, keys::TCP, "tcp")?;
    for (key, used) in [
        ("super_packets", of_hosts.super_packets.is_some()),
        ("host_coalesce", !of_hosts.coalesce.is_zero()),
        ("fast_open", of_hosts.fast_open),
    ] {
        if used {
            return Err(section
                .need_named(key)?
                .fail("it belongs to the interface of a simulated host, and has no effect here"));
        }
    }
    Ok(config)
}

/// Whether a file describes endpoints and nothing else.
fn is_part(text: &str) -> bool {
    toml::from_str::<toml::Table>(text).is_ok_and(|table| table.len() == 1 && table.contains_key("tcp"))
}

impl Scenario {
    /// Why a setting has no effect where it stands now, if it has none.
    fn effects(&self, set: &Setting) -> Option<Error> {
        self.resolve(&Setting::none())
            .and_then(|resolved| super::needs::effects_in_run(set, &resolved))
            .err()
    }
}

#[cfg(test)]
mod tests {
    use super::{REST, endpoint};
    use crate::scenario::{Scenario, Setting};
    use fleetfoot_core::tcp::{Config, Profile};

    fn with(arguments: &[&str]) -> Result<Config, String> {
        let mut set = Setting::from_origin("--set");
        for argument in arguments {
            set = set.with_argument(argument).map_err(|error| error.to_string())?;
        }
        endpoint(None, &set).map_err(|error| error.to_string())
    }

    #[test]
    fn no_file_is_the_default_of_scenarios() {
        let plain = with(&[]).expect("nothing is set");
        let scenario = Scenario::parse("rest", REST).expect("complete");
        let resolved = scenario.resolve(&Setting::none()).expect("complete");
        let sender = Config {
            measured: plain.measured, // a matter of the run
            ..Config::clone(&resolved.spec.groups[0].sender)
        };
        assert_eq!(plain, sender);
        assert_eq!(with(&["tcp.profile=linux"]).expect("the default"), plain);
    }

    #[test]
    fn switches_are_set_and_mistakes_have_their_place() {
        let config = with(&[
            "tcp.profile=rfc",
            "tcp.congestion_control=cubic",
            "tcp.initial_window=3",
        ]);
        assert_eq!(config.expect("correct").congestion_control, "cubic");
        for (argument, why) in [
            ("tcp.colour=red", "unknown key `colour`"),
            ("tcp.congestion_control=fast", "fast"),
            ("tcp.super_packets=burst", "no effect"),
            ("tcp.fast_open=true", "no effect"),
            ("tcp.spreading_gap=2 ms", "no effect"),
        ] {
            let error = with(&[argument]).expect_err(argument);
            assert!(error.contains(why), "{argument}: {error}");
        }
    }

    #[test]
    fn a_file_may_hold_nothing_but_tcp() {
        let path = std::env::temp_dir().join(format!("fleetfoot-endpoint-{}.toml", std::process::id()));
        std::fs::write(&path, "# ours\n[tcp]\nprofile = \"rfc\"\ncolour = 3\n").expect("written");
        let error = endpoint(Some(&path), &Setting::none()).expect_err("no such key");
        assert!(error.to_string().contains(":4:1"), "{error}");
        std::fs::write(&path, "[tcp]\nprofile = \"rfc\"\n").expect("written");
        let config = endpoint(Some(&path), &Setting::none()).expect("correct");
        assert_eq!(
            config.congestion_control,
            Config::profile(Profile::Rfc).congestion_control
        );
        std::fs::remove_file(&path).expect("it was there");
    }
}
