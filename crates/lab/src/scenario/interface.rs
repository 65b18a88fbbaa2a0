//! `super_packets`, `host_coalesce` and `fast_open` under `[tcp]`: what a host does around its connections.

use super::document::{Node, Value};
use super::error::Error;
use super::keys;
use super::read::{Field, Section};
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::superpacket::group::{Declare, Grouping, Mode};
use fleetfoot_core::tcp::Config;
use fleetfoot_core::time::Duration;
use fleetfoot_sim::spec::Interface;

/// The interface that the table at `node` describes; `config` is the same table's.
pub(crate) fn interface(node: &Node, path: &str, config: &Config) -> Result<Interface, Error> {
    let section = Section::open(node, keys::TCP, path)?;
    let super_packets = match section.find("super_packets")? {
        Some(field) => grouping(&field)?.map(|grouping| (field, grouping)),
        None => None,
    };
    if let Some((field, grouping)) = &super_packets {
        combines(&section, field, grouping, config)?;
    }
    Ok(Interface {
        super_packets: super_packets.map(|(_, grouping)| grouping),
        coalesce: section
            .find("host_coalesce")?
            .map_or(Ok(Duration::ZERO), |field| field.duration())?,
        fast_open: section
            .find("fast_open")?
            .map_or(Ok(false), |field| field.flag())?,
    })
}

fn grouping(field: &Field) -> Result<Option<Grouping>, Error> {
    let Value::Table(_) = &field.node.value else {
        // A word is the table with this mode and its defaults.
        return match field.choice()? {
            "off" => Ok(None),
            word => Ok(Some(Grouping {
                mode: mode(field, word, Grouping::T_BUFFER, None)?,
                layout: Layout::LOCAL,
                max: Grouping::MAX,
                declare: Declare::Truth,
            })),
        };
    };
    let section = Section::open(&field.node, keys::SUPER_PACKETS, &field.path)?;
    let chosen = section.need("mode")?;
    let word = chosen.choice()?;
    let t_buffer = section.find("t_buffer")?;
    if let Some(field) = &t_buffer
        && matches!(word, "burst" | "fixed" | "segment")
    {
        return Err(field
            .fail(format!("`t_buffer` has no effect in mode `{word}`"))
            .help(
                field.place(),
                "it belongs to the modes `timer`, `accumulate` and `estimate`",
            ));
    }
    let t_buffer = t_buffer.map_or(Ok(Grouping::T_BUFFER), |field| field.duration())?;
    let hold = section.find("hold")?;
    if let Some(field) = &hold
        && word != "timer"
    {
        return Err(field
            .fail(format!("`hold` has no effect in mode `{word}`"))
            .help(field.place(), "it belongs to the mode `timer`"));
    }
    let hold = hold.map(|field| field.duration()).transpose()?;
    let layout = layout(&section)?;
    let max = section.need("max")?;
    let length = max.integer()?;
    if length > u64::from(layout.max_length()) {
        return Err(too_long(&max, layout));
    }
    let grouping = Grouping {
        mode: mode(&chosen, word, t_buffer, hold)?,
        layout,
        max: length as u8,
        declare: declare(&section.need("declare")?, layout)?,
    };
    let declares = match grouping.mode {
        Mode::Fixed => Some("mode `fixed` declares `max`, whatever comes"),
        Mode::Estimate { .. } => Some("mode `estimate` declares the length of the window before"),
        Mode::Segment { .. } => {
            Some("mode `segment` declares what a segment has, else it would never be whole")
        }
        Mode::Timer { .. } | Mode::BoundedTimer { .. } | Mode::Burst | Mode::Accumulate { .. } => None,
    };
    if let Some(problem) = declares
        && grouping.declare != Declare::Truth
    {
        let field = section.need("declare")?;
        return Err(field
            .fail(problem)
            .help(field.place(), "set `max`, or use another mode"));
    }
    Ok(Some(grouping))
}

/// Makes the data unit of a group, the `mtu` of `config`, that of the packets which a segment is cut into, and gives TCP segments of `max` packets.
///
/// # Errors
/// The largest segment, if it is larger than a data unit can be (bytes).
pub(super) fn enlarge(grouping: &mut Grouping, config: &mut Config) -> Result<(), u32> {
    let Mode::Segment { packet } = &mut grouping.mode else {
        return Ok(());
    };
    *packet = config.mtu;
    let headers = HEADERS + if config.timestamps { TIMESTAMPS } else { 0 };
    let larger = headers + u32::from(grouping.max) * config.mtu.saturating_sub(headers);
    if larger > LARGEST_UNIT {
        return Err(larger);
    }
    config.mtu = larger;
    Ok(())
}

/// IPv4 and TCP headers without options (bytes).
const HEADERS: u32 = 40;
/// The timestamps option with its padding (RFC 7323; bytes).
const TIMESTAMPS: u32 = 12;
/// Largest `data_unit` (bytes).
pub(super) const LARGEST_UNIT: u32 = 1_000_000;

fn mode(field: &Field, word: &str, t_buffer: Duration, hold: Option<Duration>) -> Result<Mode, Error> {
    match word {
        "timer" => Ok(match hold {
            Some(hold) => Mode::BoundedTimer { t_buffer, hold },
            None => Mode::Timer { t_buffer },
        }),
        "burst" => Ok(Mode::Burst),
        "accumulate" => Ok(Mode::Accumulate { t_buffer }),
        "fixed" => Ok(Mode::Fixed),
        "estimate" => Ok(Mode::Estimate { t_buffer }),
        "segment" => Ok(Mode::Segment { packet: 0 }), // known with the group's data unit: `enlarge`
        _ => Err(field.fail(format!("`{word}` is no mode of super-packets"))),
    }
}

/// `layout` and `codepoint` of a table.
pub(super) fn layout(section: &Section) -> Result<Layout, Error> {
    let word = section.need("layout")?.choice()?;
    let codepoint = section.find("codepoint")?;
    if let Some(field) = &codepoint
        && word != "B"
    {
        return Err(field.fail(format!("`codepoint` belongs to layout B, not to layout {word}")));
    }
    let dscp = codepoint.map_or(Ok(3), |field| field.integer())?;
    Ok(Layout::from_name(word, dscp as u8).unwrap_or(Layout::LOCAL))
}

/// The error for a length that the layout cannot say.
pub(super) fn too_long(field: &Field, layout: Layout) -> Error {
    let (name, most) = (layout.name(), layout.max_length());
    field
        .fail(format!("layout {name} announces at most {most} packets"))
        .help(field.place(), "layout C announces up to 255")
}

fn declare(field: &Field, layout: Layout) -> Result<Declare, Error> {
    if field.node.as_text().is_none() {
        let length = field.integer()?;
        if length > u64::from(layout.max_length()) {
            return Err(too_long(field, layout));
        }
        return Ok(Declare::Always(length as u8));
    }
    let word = field.text()?;
    let more = word.strip_prefix('+').map_or_else(
        || word.starts_with('-').then(|| word.parse::<i8>().ok()),
        |more| Some(more.parse::<u8>().ok().and_then(|more| i8::try_from(more).ok())),
    );
    match (word, more) {
        ("true", _) => Ok(Declare::Truth),
        (_, Some(Some(more))) => Ok(Declare::Beyond(more)),
        _ => Err(field.fail(format!("`{word}` is no length to declare")).help(
            field.place(),
            "valid choices: \"true\" (what it is), \"+5\" or \"-5\" (so many more or fewer, up to 127), or a whole number (always this)",
        )),
    }
}

/// Refuses what cannot go together with super-packets.
fn combines(section: &Section, field: &Field, grouping: &Grouping, config: &Config) -> Result<(), Error> {
    // docs/design/super-packets.md#pacing-excludes: spacing takes bursts apart that grouping needs; a segment is not taken apart.
    let whole = matches!(grouping.mode, Mode::Segment { .. });
    for spacing in ["pacing", "initial_spreading"] {
        if !whole
            && let Some(node) = section.table.get(spacing)
            && is_on(node)
        {
            return Err(Error::at(
                &node.place,
                &super::read::join(&section.path, spacing),
                format!("`{spacing}` and `super_packets` exclude each other: one spaces what the other sends back to back"),
            )
            .help(&node.place, format!("switch `{spacing}` off here, or write super_packets = \"off\" for this group")));
        }
    }
    // docs/design/super-packets.md#layout-a: its length takes the ECN field.
    if grouping.layout == Layout::A && config.ecn.is_on() {
        return Err(field
            .fail("layout A takes the bits of ECN, which is on here")
            .help(field.place(), "use layout B, or set ecn = false"));
    }
    Ok(())
}

fn is_on(node: &Node) -> bool {
    !matches!(&node.value, Value::Flag(false)) && node.as_text() != Some("off")
}

#[cfg(test)]
mod tests {
    use super::super::{Scenario, Setting};
    use super::{Section, combines, grouping};
    use crate::scenario::error::{Place, Source};
    use crate::scenario::{document, keys};
    use fleetfoot_core::superpacket::Layout;
    use fleetfoot_core::superpacket::group::{Declare, Grouping, Mode};
    use fleetfoot_core::tcp::{Config, Profile};
    use fleetfoot_core::time::Duration;
    use fleetfoot_sim::spec::Interface;
    use std::path::PathBuf;
    use std::sync::Arc;

    fn scenario(tcp: &str, own: &str) -> String {
        format!(
            "[network]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\" }}\n[tcp]\n{tcp}\n\
             [[traffic]]\nname = \"short\"\nkind = \"incast\"\nsize = \"15 kB\"\n{own}\n[[traffic]]\nname = \"long\"\nkind = \"bulk\"\n"
        )
    }

    fn interfaces(tcp: &str, own: &str) -> Result<Vec<Interface>, String> {
        let scenario =
            Scenario::parse("test.toml", &scenario(tcp, own)).map_err(|error| error.to_string())?;
        let resolved = scenario
            .resolve(&Setting::none())
            .map_err(|error| error.to_string())?;
        Ok(resolved.spec.groups.iter().map(|group| group.interface).collect())
    }

    const DEFAULT: Grouping = Grouping {
        mode: Mode::Timer {
            t_buffer: Grouping::T_BUFFER,
        },
        layout: Layout::LOCAL,
        max: Grouping::MAX,
        declare: Declare::Truth,
    };

    #[test]
    fn every_group_has_its_own_switch() {
        let both = interfaces(
            "super_packets = \"timer\"\nhost_coalesce = \"300 us\"",
            "tcp = { super_packets = \"off\" }",
        );
        let both = both.expect("correct");
        assert_eq!(
            (both[0].super_packets, both[1].super_packets),
            (None, Some(DEFAULT))
        );
        assert!(both.iter().all(|one| one.coalesce == Duration::from_micros(300)));
        let short = interfaces("", "tcp = { super_packets = \"burst\" }").expect("correct");
        let burst = Grouping {
            mode: Mode::Burst,
            ..DEFAULT
        };
        assert_eq!(
            (short[0].super_packets, short[1].super_packets),
            (Some(burst), None)
        );
    }

    #[test]
    fn tables_say_everything() {
        let one =
            |table: &str| interfaces(&format!("super_packets = {table}"), "").map(|all| all[0].super_packets);
        assert_eq!(one("{}"), Ok(Some(DEFAULT)));
        assert_eq!(
            one(
                "{ mode = \"accumulate\", t_buffer = \"600 us\", max = 6, layout = \"B\", codepoint = 11, declare = \"+5\" }"
            ),
            Ok(Some(Grouping {
                mode: Mode::Accumulate {
                    t_buffer: Duration::from_micros(600)
                },
                layout: Layout::B { dscp: 11 },
                max: 6,
                declare: Declare::Beyond(5),
            }))
        );
        assert_eq!(
            one("{ t_buffer = \"60 us\", hold = \"600 us\" }"),
            Ok(Some(Grouping {
                mode: Mode::BoundedTimer {
                    t_buffer: Duration::from_micros(60),
                    hold: Duration::from_micros(600)
                },
                ..DEFAULT
            }))
        );
        assert_eq!(
            one("{ mode = \"burst\", layout = \"C\", max = 200, declare = 63 }"),
            Ok(Some(Grouping {
                mode: Mode::Burst,
                layout: Layout::C,
                max: 200,
                declare: Declare::Always(63),
            }))
        );
    }

    /// docs/design/super-packets.md#segment: a segment of `max` packets of the data unit, whatever options each of them carries.
    #[test]
    fn a_segment_is_max_packets_of_the_data_unit() {
        let sizes = |tcp: &str, own: &str| {
            let text = scenario(tcp, own);
            let resolved = Scenario::parse("test.toml", &text)
                .and_then(|scenario| scenario.resolve(&Setting::none()))
                .map_err(|error| error.to_string())?;
            let group = &resolved.spec.groups[0];
            let mode = group.interface.super_packets.map(|grouping| grouping.mode);
            Ok::<_, String>((group.sender.mtu, mode))
        };
        let packet = |packet| Some(Mode::Segment { packet });
        let six = "super_packets = { mode = \"segment\", max = 6 }";
        // 6 * 1448 + 52 with timestamps, 6 * 1460 + 40 without, 6 * 948 + 52 for small packets, 6 * 1440 + 52 beside an option of eight bytes.
        assert_eq!(sizes(six, ""), Ok((8740, packet(1500))));
        let plain = format!("timestamps = false\n{six}");
        assert_eq!(sizes(&plain, ""), Ok((8800, packet(1500))));
        assert_eq!(sizes(six, "data_unit = \"1000 B\""), Ok((5740, packet(1000))));
        let option = "super_packets = { mode = \"segment\", max = 6, layout = \"C\" }";
        assert_eq!(sizes(option, ""), Ok((8692, packet(1492))));
        assert_eq!(
            sizes("super_packets = \"segment\"", ""),
            Ok((14_532, packet(1500)))
        );
        assert!(sizes("pacing = \"full\"\nsuper_packets = \"segment\"", "").is_ok());
        assert!(sizes("pacing = \"full\"\nsuper_packets = \"estimate\"", "").is_err());
    }

    #[test]
    fn layout_c_leaves_room_for_its_option() {
        let scenario = Scenario::parse("test.toml", &scenario("super_packets = { layout = \"C\" }", ""))
            .expect("correct");
        let resolved = scenario.resolve(&Setting::none()).expect("correct");
        assert!(
            resolved
                .spec
                .groups
                .iter()
                .all(|group| group.sender.mtu == 1492 && group.receiver.mtu == 1492)
        );
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_its_line() {
        for (tcp, line, said) in [
            (
                "super_packets = \"bursts\"",
                "test.toml:5",
                "valid choices: `off`, `timer`",
            ),
            (
                "super_packets = { mode = \"burst\", t_buffer = \"1 ms\" }",
                "test.toml:5",
                "no effect in mode `burst`",
            ),
            (
                "super_packets = { mode = \"segment\", t_buffer = \"1 ms\" }",
                "test.toml:5",
                "no effect in mode `segment`",
            ),
            (
                "super_packets = { mode = \"segment\", declare = \"+1\" }",
                "test.toml:5",
                "would never be whole",
            ),
            (
                "super_packets = { mode = \"estimate\", declare = 9 }",
                "test.toml:5",
                "the window before",
            ),
            (
                "super_packets = { mode = \"accumulate\", hold = \"1 ms\" }",
                "test.toml:5",
                "no effect in mode `accumulate`",
            ),
            (
                "super_packets = { max = 64 }",
                "test.toml:5",
                "at most 63 packets",
            ),
            ("super_packets = { max = 1 }", "test.toml:5", "2"),
            (
                "super_packets = { layout = \"A\", codepoint = 4 }",
                "test.toml:5",
                "belongs to layout B",
            ),
            (
                "super_packets = { mode = \"fixed\", declare = 9 }",
                "test.toml:5",
                "whatever comes",
            ),
            (
                "super_packets = { declare = \"lots\" }",
                "test.toml:5",
                "valid choices: \"true\"",
            ),
            (
                "super_packets = { declare = \"+-3\" }",
                "test.toml:5",
                "no length to declare",
            ),
            ("super_packets = { declare = 64 }", "test.toml:5", "at most 63"),
            (
                "super_packets = { length = 10 }",
                "test.toml:5",
                "valid keys here: mode, t_buffer",
            ),
            (
                "ecn = true\nsuper_packets = { layout = \"A\" }",
                "test.toml:6",
                "takes the bits of ECN",
            ),
        ] {
            let error = interfaces(tcp, "").expect_err(tcp);
            assert!(error.contains(line) && error.contains(said), "{tcp}: {error}");
        }
    }

    #[test]
    fn spacing_and_grouping_exclude_each_other() {
        let refused = |text: &str| {
            let source = Arc::new(Source {
                name: "test.toml".into(),
                text: text.into(),
                folder: PathBuf::new(),
                files: Default::default(),
            });
            let node = document::Node {
                value: document::Value::Table(document::parse(&source).expect("TOML")),
                place: Place::new(&source, 0..0),
            };
            let section = Section::open(&node, keys::TCP, "tcp").expect("a table");
            let field = section.need("super_packets").expect("written");
            let grouping = grouping(&field).expect("correct").expect("on");
            combines(&section, &field, &grouping, &Config::profile(Profile::Linux)).is_err()
        };
        assert!(refused("super_packets = \"burst\"\npacing = true"));
        assert!(refused(
            "super_packets = \"burst\"\ninitial_spreading = \"bounded\""
        ));
        assert!(!refused(
            "super_packets = \"burst\"\ninitial_spreading = \"off\"\npacing = false"
        ));
    }
}
