//! Traffic of kind `raw`: a template of headers becomes trains of packets.

use super::distribution::arrivals;
use super::document::Node;
use super::error::Error;
use super::interface;
use super::network::Network;
use super::read::{Field, Section};
use super::value::unknown_word;
use fleetfoot_sim::spec::{Raw, RawMark, RawPorts, RawSource, TrafficKind};

/// The template in `section`; `groups` are all traffic groups of the file.
pub(super) fn raw(section: &Section, network: &Network, groups: &[Node]) -> Result<Raw, Error> {
    let mark = match section.need("mark")?.choice()? {
        "regular" => RawMark::Regular,
        "follower" => RawMark::Follower,
        "super-packet" => RawMark::SuperPacket,
        _ => RawMark::First,
    };
    if mark == RawMark::Regular {
        for key in ["length", "id", "last", "layout", "codepoint"] {
            if let Some(field) = section.find(key)?.filter(|field| field.given) {
                return Err(field.fail(format!("`{key}` has no effect: mark = \"regular\" says nothing")));
            }
        }
    }
    let layout = interface::layout(section)?;
    let length = section.need("length")?;
    if length.integer()? > u64::from(layout.max_length()) {
        return Err(interface::too_long(&length, layout));
    }
    let length = length.integer()? as u8;
    let id = match section.find("id")? {
        Some(field) if field.node.as_text().is_none() => {
            let (id, most) = (field.integer()?, layout.max_id());
            if id > u64::from(most) {
                return Err(field.fail(format!("layout {} has identifiers up to {most}", layout.name())));
            }
            Some(id as u16)
        }
        _ => None,
    };
    let members = match section.find("members")? {
        Some(field) => field.integer()? as u32,
        None if mark == RawMark::SuperPacket => u32::from(length),
        None => 1,
    };
    let interval = section.need("interval")?;
    if members == 1 && !interval.duration()?.is_zero() {
        return Err(interval
            .fail("`interval` has no effect: each train is one packet")
            .help(interval.place(), "set `members`"));
    }
    let (source, ports) = claims(section, network, groups)?;
    Ok(Raw {
        interarrival: arrivals(&section.need("arrivals")?)?,
        count: section.find("count")?.map(|field| field.integer()).transpose()?,
        members,
        interval: interval.duration()?,
        packet: section.need("packet")?.bytes()?,
        mark,
        layout,
        length,
        id,
        last: section.need("last")?.flag()?,
        source,
        ports,
    })
}

/// Whose packets they claim to be.
fn claims(section: &Section, network: &Network, groups: &[Node]) -> Result<(RawSource, RawPorts), Error> {
    let (source, victim) = (section.need("source")?, section.find("victim")?);
    let (addresses, ports) = (section.need("addresses")?, section.find("ports")?);
    if addresses.given && source.node.as_text() != Some("random") {
        return Err(addresses.fail("`addresses` has no effect without source = \"random\""));
    }
    if let Some(victim) = &victim
        && source.given
    {
        return Err(
            victim.fail("`victim` and `source` exclude each other: a victim's packets have its addresses")
        );
    }
    let claimed = match (&victim, source.text()?) {
        (Some(victim), _) => RawSource::Victim(victim_group(section, victim, groups)?),
        (None, "own") => RawSource::Own,
        (None, "random") => RawSource::Drawn(addresses.integer()? as u32),
        (None, name) => {
            let host = network.host(name, source.place(), &source.path);
            RawSource::Host(host.map_err(|error| error.help(source.place(), "or \"own\", or \"random\""))?)
        }
    };
    let word = match &ports {
        Some(field) => field.choice()?,
        None if victim.is_some() => "known",
        None => "new",
    };
    Ok((
        claimed,
        match word {
            "same" => RawPorts::Same,
            "random" => RawPorts::Drawn,
            "colliding" => {
                let given = section.find("id")?.filter(|id| id.node.as_text().is_none());
                let mark = section.need("mark")?;
                if !matches!(mark.choice()?, "first" | "super-packet") || victim.is_some() || given.is_some()
                {
                    let field = section.need("ports")?;
                    return Err(field.fail("only firsts of the attacker's own stand in a table where he likes: not with `victim`, `id`, nor mark = \"regular\" or \"follower\""));
                }
                RawPorts::Colliding
            }
            "known" if victim.is_some() => RawPorts::Known,
            "known" => {
                let field = section.need("ports")?;
                return Err(field.fail("whose ports are known? `victim` is missing"));
            }
            _ => RawPorts::New,
        },
    ))
}

fn victim_group(section: &Section, victim: &Field, groups: &[Node]) -> Result<u32, Error> {
    let name = victim.text()?;
    let kind = |node: &Node| {
        let table = node.as_table();
        table.and_then(|table| TrafficKind::by_name(table.text("kind")?))
    };
    let named = |node: &&Node| node.name().is_some() && kind(node) != Some(TrafficKind::Raw);
    let own = section.table.text("name");
    match groups.iter().position(|node| node.name() == Some(name)) {
        Some(index) if kind(&groups[index]) != Some(TrafficKind::Raw) => Ok(index as u32),
        Some(_) => Err(victim.fail(if own == Some(name) {
            format!("`{name}` cannot be its own victim")
        } else {
            format!("`{name}` is raw traffic itself: it has no connections")
        })),
        None => {
            let names: Vec<&str> = groups.iter().filter(named).filter_map(Node::name).collect();
            let message = format!("there is no traffic called `{name}`");
            Err(unknown_word(&victim.node, &victim.path, &message, name, &names))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Scenario, Setting};
    use fleetfoot_core::rng::Distribution;
    use fleetfoot_core::superpacket::Layout;
    use fleetfoot_core::time::Duration;
    use fleetfoot_core::units::Bytes;
    use fleetfoot_sim::spec::{NodeId, Raw, RawMark, RawPorts, RawSource, Traffic};

    fn read(keys: &str) -> Result<Raw, String> {
        read_behind("drop-tail", keys)
    }

    fn read_behind(queue: &str, keys: &str) -> Result<Raw, String> {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\npairs = 3\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\", queue = \"{queue}\" }}\n\
             [[traffic]]\nname = \"attack\"\nkind = \"raw\"\n\
             arrivals = {{ dist = \"constant\", rate = \"100 per second\" }}\n{keys}\n[[traffic]]\nname = \"long\"\nkind = \"bulk\"\n"
        );
        let scenario = Scenario::parse("test.toml", &text).map_err(|error| error.to_string())?;
        let resolved = scenario
            .resolve(&Setting::none())
            .map_err(|error| error.to_string())?;
        match &resolved.spec.groups[0].traffic {
            Traffic::Raw(raw) => Ok(raw.as_ref().clone()),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn attacks_of_the_protocol_can_be_written() {
        // A1: firsts never followed.
        let a1 = read("length = 63").expect("A1");
        assert!(matches!(a1.interarrival, Distribution::Constant(gap) if gap == 0.01));
        assert_eq!((a1.mark, a1.members, a1.length), (RawMark::First, 1, 63));
        assert_eq!(
            (a1.packet, a1.layout, a1.source),
            (Bytes(40), Layout::LOCAL, RawSource::Own)
        );
        // A2: the same from random sources.
        let a2 = read("source = \"random\"\naddresses = 1000").expect("A2");
        assert_eq!((a2.source, a2.ports), (RawSource::Drawn(1000), RawPorts::New));
        // A3: followers with guessed identifiers, ports known or not.
        let a3 = read("mark = \"follower\"\nvictim = \"long\"").expect("A3");
        assert_eq!(
            (a3.mark, a3.source, a3.ports),
            (RawMark::Follower, RawSource::Victim(1), RawPorts::Known)
        );
        let blind = read("mark = \"follower\"\nvictim = \"long\"\nports = \"random\"").expect("A3");
        assert_eq!(blind.ports, RawPorts::Drawn);
        // A8: identifiers and ports that collide, which needs a queue with a table.
        let a8 = read_behind("sp-h", "ports = \"colliding\"\nlength = 2").expect("A8");
        assert_eq!((a8.ports, a8.id), (RawPorts::Colliding, None));
        // A4: a duplicate first, of a known identifier or of a neighbour's address.
        let a4 = read("mark = \"first\"\nsource = \"left-2\"\nid = 7\nmembers = 2").expect("A4");
        assert!(matches!(a4.source, RawSource::Host(NodeId(_))));
        assert_eq!((a4.id, a4.members), (Some(7), 2));
        // A6 and A10: a drip.
        let a6 = read("mark = \"super-packet\"\ninterval = \"2.5 ms\"").expect("A6");
        assert_eq!((a6.members, a6.interval), (10, Duration::from_micros(2500)));
        // A9: more than announced.
        let a9 = read("mark = \"super-packet\"\npacket = \"1500 B\"\nmembers = 21\nlast = true").expect("A9");
        assert_eq!((a9.members, a9.length, a9.last), (21, 10, true));
    }

    #[test]
    fn mistakes_are_reported() {
        for (keys, said) in [
            ("mark = \"regular\"\nlength = 5", "`length` has no effect"),
            ("length = 64", "at most 63 packets"),
            ("id = 300", "identifiers up to 255"),
            ("interval = \"1 ms\"", "each train is one packet"),
            ("addresses = 5", "without source = \"random\""),
            ("victim = \"long\"\nsource = \"random\"", "exclude each other"),
            ("victim = \"lang\"", "there is no traffic called `lang`"),
            ("victim = \"attack\"", "its own victim"),
            ("ports = \"known\"", "`victim` is missing"),
            ("source = \"left-9\"", "left-9"),
            ("ports = \"colliding\"", "no queue on the way has a table"),
            (
                "ports = \"colliding\"\nvictim = \"long\"",
                "of the attacker's own",
            ),
            ("ports = \"colliding\"\nid = 7", "of the attacker's own"),
            (
                "ports = \"colliding\"\nmark = \"follower\"",
                "of the attacker's own",
            ),
            ("data_unit = \"100 B\"", "is for TCP"),
            ("layout = \"A\"\ncodepoint = 3", "belongs to layout B"),
        ] {
            let error = read(keys).expect_err(keys);
            assert!(
                error.contains(said) && error.contains("test.toml:"),
                "{keys}: {error}"
            );
        }
    }
}
