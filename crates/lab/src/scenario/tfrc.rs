//! Traffic of kind `tfrc`.

use super::distribution::{arrivals, distribution};
use super::error::Error;
use super::keys::Dimension;
use super::read::Section;
use super::traffic::finite;
use fleetfoot_core::tfrc::{Config, Variant};
use fleetfoot_sim::spec::Tfrc;

/// The streams in `section`, whose packets pass links of `path_mtu` bytes.
pub(super) fn tfrc(section: &Section, path_mtu: u32) -> Result<Tfrc, Error> {
    let packet = section.need("packet")?;
    let bytes = packet.bytes()?.get() as u32;
    if bytes > path_mtu {
        let message = format!("packets of {bytes} B do not fit through the path (mtu {path_mtu})");
        return Err(packet
            .fail(message)
            .help(packet.place(), format!("at most \"{path_mtu} B\"")));
    }
    let arrive = section.find("arrivals")?;
    let rate = section.find("rate")?;
    let size = section.find("size")?;
    if let (Some(_), Some(rate)) = (&arrive, &rate) {
        return Err(rate
            .fail("`rate` and `arrivals` exclude each other: streams that arrive have all their data at once")
            .help(
                rate.place(),
                "use `count` and `start_spacing` instead of `arrivals`",
            ));
    }
    if let (Some(arrive), None) = (&arrive, &size) {
        return Err(arrive
            .fail("streams that arrive need a `size`: without one they never leave")
            .help(arrive.place(), "add size = \"100 kB\""));
    }
    Ok(Tfrc {
        count: section
            .find("count")?
            .map(|field| field.integer())
            .transpose()?
            .map(|count| count as u32),
        size: size
            .map(|field| distribution(&field, Dimension::Bytes))
            .transpose()?,
        interarrival: arrive.map(|field| arrivals(&field)).transpose()?,
        rate: rate.map(|field| finite(&field)).transpose()?,
        config: Config {
            packet: bytes,
            variant: match section.need("variant")?.choice()? {
                "small-packets" => Variant::SmallPackets,
                _ => Variant::Standard,
            },
            history_discounting: section.need("history_discounting")?.flag()?,
            oscillation_prevention: section.need("oscillation_prevention")?.flag()?,
            initial_window: section
                .find("initial_window")?
                .map(|field| field.integer())
                .transpose()?
                .map(|packets| packets as u32),
            granularity: section.need("granularity")?.duration()?,
            timeout_floor: section.need("timeout_floor")?.duration()?,
            ecn: section.need("ecn")?.flag()?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Scenario, Setting};
    use fleetfoot_core::rng::Distribution;
    use fleetfoot_core::tfrc::{Config, Variant};
    use fleetfoot_core::time::Duration;
    use fleetfoot_core::units::Rate;
    use fleetfoot_sim::spec::{Tfrc, Traffic};

    fn read(keys: &str) -> Result<Tfrc, String> {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\" }}\n\
             [[traffic]]\nkind = \"tfrc\"\n{keys}\n"
        );
        let scenario = Scenario::parse("test.toml", &text).map_err(|error| error.to_string())?;
        let resolved = scenario
            .resolve(&Setting::none())
            .map_err(|error| error.to_string())?;
        match &resolved.spec.groups[0].traffic {
            Traffic::Tfrc(tfrc) => Ok(tfrc.as_ref().clone()),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn streams_can_be_written() {
        let plain = read("").expect("nothing is needed");
        assert_eq!((plain.count, plain.rate), (None, None));
        assert!(plain.size.is_none() && plain.interarrival.is_none());
        assert_eq!(plain.config, Config::default());
        let voice = read(
            "count = 3\nrate = \"64 kbit/s\"\npacket = \"200 B\"\nvariant = \"small-packets\"\n\
             history_discounting = false\noscillation_prevention = false\ninitial_window = 1\n\
             granularity = \"10 ms\"\ntimeout_floor = \"1 s\"\necn = true",
        )
        .expect("voice");
        assert_eq!((voice.count, voice.rate), (Some(3), Some(Rate::from_bps(64_000))));
        let expected = Config {
            packet: 200,
            variant: Variant::SmallPackets,
            history_discounting: false,
            oscillation_prevention: false,
            initial_window: Some(1),
            granularity: Duration::from_millis(10),
            timeout_floor: Duration::from_secs(1),
            ecn: true,
        };
        assert_eq!(voice.config, expected);
        let files = read("size = \"12 kB\"\narrivals = { dist = \"poisson\", rate = \"5 per second\" }");
        let files = files.expect("files");
        assert!(matches!(files.size, Some(Distribution::Constant(bytes)) if bytes == 12_000.0));
        assert!(files.interarrival.is_some());
    }

    #[test]
    fn mistakes_are_reported() {
        let arrivals = "arrivals = { dist = \"poisson\", rate = \"5 per second\" }";
        for (keys, said) in [
            ("packet = \"1501 B\"", "do not fit through the path"),
            ("packet = \"40 B\"", "41"),
            ("variant = \"small\"", "small-packets"),
            (arrivals, "need a `size`"),
            (
                &format!("size = \"1 kB\"\nrate = \"1 Mbit/s\"\n{arrivals}"),
                "exclude each other",
            ),
            ("data_unit = \"500 B\"", "have the size `packet`"),
            ("rate = \"unlimited\"", "unlimited rate"),
        ] {
            let error = read(keys).expect_err(keys);
            assert!(
                error.contains(said) && error.contains("test.toml:"),
                "{keys}: {error}"
            );
        }
    }
}
