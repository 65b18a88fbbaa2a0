//! A router's file: read with the list of keys, the messages and the queues of scenario files.

use super::document::{Node, Value};
use super::error::{Error, Place};
use super::link::{Wire, queue};
use super::read::{Field, Section, check};
use super::value::unknown_word;
use super::{keys, path as paths};
use crate::{input, plugins};
use fleetfoot_core::units::Rate;
use fleetfoot_live::router::{Config, Interface, InterfaceConfig, Mode, Offloads, Queue, Route};
use fleetfoot_live::{Format, Network};
use fleetfoot_sim::spec::LinkRate;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// What a router's file says.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterFile {
    /// What the router is to do.
    pub config: Config,
    /// How its log is written.
    pub log: LogFormat,
}

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Words and key=value.
    Text,
    /// A JSON object on each line.
    Json,
}

/// Reads the file at `path` for a machine that has these interfaces.
///
/// # Errors
/// The first mistake, with its place.
pub fn router(path: &Path, interfaces: &[Interface]) -> Result<RouterFile, Error> {
    let shown = path.display().to_string();
    let text = input::text(path, input::MOST_SCENARIO).map_err(|error| {
        let message = match error.kind() {
            std::io::ErrorKind::InvalidData => format!("{shown} is not UTF-8 text"),
            _ => format!("cannot read {shown}: {}", input::reason(&error)),
        };
        Error::of_file(&shown, message)
    })?;
    parse(&shown, &text, interfaces)
}

fn parse(name: &str, text: &str, interfaces: &[Interface]) -> Result<RouterFile, Error> {
    let table = paths::read_text(name, text, std::path::PathBuf::new())?;
    let Some(first) = table.entries.first() else {
        let begin = "a router's file begins with mode = \"bridge\" or \"route\" and has [[interface]] tables";
        return Err(Error::of_file(name, format!("{name} describes nothing")).note(begin.into()));
    };
    let place = Place::new(&first.key_place.source, 0..0);
    let node = Node {
        value: Value::Table(table),
        place,
    };
    check(&node, &keys::Kind::Table(keys::ROUTER), "")?;
    let file = Section::open(&node, keys::ROUTER, "")?;
    let mode = match file.need("mode")?.choice()? {
        "bridge" => Mode::Bridge,
        _ => Mode::Route,
    };
    let wanted = read_interfaces(&file, mode, interfaces)?;
    let routes = read_routes(&file, mode, &wanted, interfaces)?;
    let metrics = match file.find("metrics")? {
        Some(field) => Some(listen(&Section::open(&field.node, keys::METRICS, &field.path)?)?),
        None => None,
    };
    let log = file.need("log")?;
    let log = Section::open(&log.node, keys::LOG, &log.path)?;
    Ok(RouterFile {
        config: Config {
            mode,
            interfaces: wanted,
            routes,
            metrics,
            offloads: match file.need("offloads")?.choice()? {
                "refuse" => Offloads::Refuse,
                _ => Offloads::SwitchOff,
            },
        },
        log: match log.need("format")?.choice()? {
            "json" => LogFormat::Json,
            _ => LogFormat::Text,
        },
    })
}

fn read_interfaces(file: &Section, mode: Mode, there: &[Interface]) -> Result<Vec<InterfaceConfig>, Error> {
    let list = file.need("interface")?;
    let mut wanted: Vec<InterfaceConfig> = Vec::new();
    for field in list.list()? {
        let section = Section::open(&field.node, keys::ROUTER_INTERFACE, &field.path)?;
        let name = section.need("name")?;
        let word = name.text()?;
        let Some(found) = there.iter().find(|one| one.name == word) else {
            let names: Vec<&str> = there.iter().map(|one| one.name.as_str()).collect();
            let message = format!("this machine has no interface `{word}`");
            return Err(unknown_word(&name.node, &name.path, &message, word, &names));
        };
        if found.hardware.is_none() {
            return Err(name.fail(format!("`{word}` is no Ethernet interface")));
        }
        if wanted.iter().any(|one| one.name == word) {
            return Err(name.fail(format!("the interface `{word}` stands here twice")));
        }
        wanted.push(read_interface(&section, word, found.mtu, mode)?);
    }
    let (count, message) = (wanted.len(), "a bridge has two interfaces");
    match mode {
        Mode::Bridge if count != 2 => Err(list.fail(format!("{message}, found {count}")).help(
            list.place(),
            "with more, routes say where packets go: mode = \"route\"",
        )),
        Mode::Route if count < 2 => Err(list.fail("a router has two interfaces at least, found 1")),
        Mode::Bridge | Mode::Route => Ok(wanted),
    }
}

fn read_interface(section: &Section, name: &str, mtu: u32, mode: Mode) -> Result<InterfaceConfig, Error> {
    let rate = match section.find("rate")? {
        Some(field) => Some(field.rate()?).filter(|rate| *rate != Rate::UNLIMITED),
        None => None,
    };
    let framing = section.need("framing")?;
    if framing.given && rate.is_none() {
        return Err(framing.fail("`framing` has nothing to do: this interface has no `rate`"));
    }
    let bytes = framing.bytes()?.get() as u32;
    let link_rate = LinkRate::Constant(rate.unwrap_or(Rate::UNLIMITED));
    let wire = Wire {
        rate: &link_rate,
        mtu,
        framing: bytes,
    };
    let (discipline, values) = queue(&section.need("queue")?, wire)?;
    let check_source = section.need("check_source")?;
    if check_source.given && mode == Mode::Bridge {
        return Err(
            check_source.fail("`check_source` has nothing to do in a bridge, which looks at no route")
        );
    }
    let ring = section.need("ring")?;
    let format = match ring.choice()? {
        "blocks" => Format::Blocks,
        "xdp" => Format::Xdp,
        _ => Format::Frames,
    };
    Ok(InterfaceConfig {
        name: name.to_owned(),
        rate,
        framing: bytes,
        queue: Queue {
            name: discipline,
            values,
            plugins: plugins::installed(),
        },
        ring: format,
        device_buffer: section.need("device_buffer")?.bytes()?.get() as u32,
        check_source: check_source.flag()?,
    })
}

fn read_routes(
    file: &Section,
    mode: Mode,
    interfaces: &[InterfaceConfig],
    there: &[Interface],
) -> Result<Vec<Route>, Error> {
    let list = file.need("route")?;
    let mut routes: Vec<Route> = Vec::new();
    let mut vias = Vec::new();
    for field in list.list()? {
        if mode == Mode::Bridge {
            return Err(field
                .fail("a bridge has no routes")
                .help(field.place(), "mode = \"route\""));
        }
        let section = Section::open(&field.node, keys::ROUTE, &field.path)?;
        let to = section.need("to")?;
        let (network, prefix) = network(&to)?;
        if routes
            .iter()
            .any(|other| (other.network, other.prefix) == (network, prefix))
        {
            return Err(to.fail(format!("there is a route to {network}/{prefix} already")));
        }
        let name = section.need("interface")?;
        let word = name.text()?;
        let Some(interface) = interfaces.iter().position(|one| one.name == word) else {
            let names: Vec<&str> = interfaces.iter().map(|one| one.name.as_str()).collect();
            let message = format!("no [[interface]] is called `{word}`");
            return Err(unknown_word(&name.node, &name.path, &message, word, &names));
        };
        let via = match section.find("via")? {
            Some(field) => {
                let via = next_router(&field, network)?;
                vias.push((field, interface, via));
                Some(via)
            }
            None => None,
        };
        routes.push(Route {
            network,
            prefix,
            interface,
            via,
        });
    }
    if mode == Mode::Route && routes.is_empty() {
        return Err(
            Error::at(&file.place, "route", "a router without a route forwards nothing").help(
                &file.place,
                "for example [[route]] with to = \"10.0.2.0/24\" and interface = \"eth1\"",
            ),
        );
    }
    for (field, interface, via) in vias {
        let name = &interfaces[interface].name;
        if let Some(found) = there.iter().find(|one| one.name == *name) {
            let on_link = |route: &Route| {
                let network = Network {
                    address: route.network,
                    prefix: route.prefix,
                };
                route.via.is_none() && route.interface == interface && network.contains(via)
            };
            on_link_of(&field, via, found, routes.iter().any(on_link))?;
        }
    }
    Ok(routes)
}

/// Refuses a next router that no host on the link of `interface` can be; `routed`: a route of the file says that it is there.
fn on_link_of(field: &Field, via: IpAddr, interface: &Interface, routed: bool) -> Result<(), Error> {
    let name = &interface.name;
    if interface.addresses.contains(&via) {
        return Err(field.fail(format!("{via} is this machine's own address, at `{name}`")));
    }
    let link_local = |address: IpAddr| matches!(address, IpAddr::V6(six) if six.is_unicast_link_local());
    let own: Vec<&Network> = interface
        .networks
        .iter()
        .filter(|one| one.address.is_ipv4() == via.is_ipv4() && !link_local(one.address))
        .collect();
    // An interface that is down has lost its IPv6 addresses.
    let unknown = own.is_empty() && !interface.up;
    if routed || unknown || link_local(via) || own.iter().any(|network| network.contains(via)) {
        return Ok(());
    }
    let has = own
        .iter()
        .map(|one| format!("{}/{}", one.address, one.prefix))
        .collect::<Vec<_>>()
        .join(", ");
    let (family, width) = if via.is_ipv4() {
        ("IPv4", 32)
    } else {
        ("IPv6", 128)
    };
    let message = if own.is_empty() {
        format!("{via} is on no network of `{name}`, which has no {family} address")
    } else {
        format!("{via} is on no network of `{name}`, which has {has}")
    };
    Err(field.fail(message).help(
        field.place(),
        format!(
            "the address of a router on that link; one that is there all the same needs a route of its own: [[route]] with \
            to = \"{via}/{width}\" and interface = \"{name}\""
        ),
    ))
}

/// The address of a network and the length of its prefix.
fn network(field: &Field) -> Result<(IpAddr, u8), Error> {
    let text = field.text()?;
    let wrong = || {
        field.fail(format!("a network is wanted, found \"{text}\"")).help(
            field.place(),
            "for example \"10.0.2.0/24\", \"fd00:2::/64\" or \"0.0.0.0/0\"",
        )
    };
    let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
    let (bits, width) = match address {
        IpAddr::V4(four) => (u128::from(four.to_bits()), 32),
        IpAddr::V6(six) => (six.to_bits(), 128),
    };
    if u32::from(prefix) > width {
        return Err(field.fail(format!(
            "the length of the prefix is 0 to {width}, found {prefix}"
        )));
    }
    let hosts = u128::MAX.checked_shl(width - u32::from(prefix)).unwrap_or(0);
    let base = bits & hosts;
    if base != bits {
        let base = if width == 32 {
            IpAddr::from((base as u32).to_be_bytes())
        } else {
            IpAddr::from(base.to_be_bytes())
        };
        return Err(field
            .fail(format!(
                "{address} is an address in a network, not a network of {prefix} bits"
            ))
            .help(field.place(), format!("did you mean `{base}/{prefix}`?")));
    }
    if address.is_multicast() || address.is_loopback() {
        return Err(field.fail(format!("packets to {text} are not forwarded")));
    }
    Ok((address, prefix))
}

fn next_router(field: &Field, network: IpAddr) -> Result<IpAddr, Error> {
    let text = field.text()?;
    let address: IpAddr = text.parse().map_err(|_| {
        let message = format!("the address of a router is wanted, found \"{text}\"");
        field
            .fail(message)
            .help(field.place(), "for example \"10.0.1.2\"")
    })?;
    if address.is_ipv4() != network.is_ipv4() {
        return Err(field.fail(format!(
            "{address} and {network} are of different address families"
        )));
    }
    if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
        return Err(field.fail(format!("{address} is not the address of a router")));
    }
    Ok(address)
}

/// Where metrics are to be fetched.
fn listen(section: &Section) -> Result<SocketAddr, Error> {
    let field = section.need("listen")?;
    let text = field.text()?;
    let address: SocketAddr = text.parse().map_err(|_| {
        let message = format!("an address and a port are wanted, found \"{text}\"");
        field
            .fail(message)
            .help(field.place(), "for example \"127.0.0.1:9105\" or \"[::1]:9105\"")
    })?;
    if !address.ip().is_loopback() {
        return Err(field
            .fail(format!(
                "{} is not a loopback address: metrics are for this machine",
                address.ip()
            ))
            .help(
                field.place(),
                "\"127.0.0.1:9105\"; a reverse proxy can carry them further",
            ));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::{LogFormat, RouterFile, parse};
    use crate::plugins;
    use crate::scenario::keys;
    use fleetfoot_core::units::Rate;
    use fleetfoot_live::router::{Interface, Mode};
    use fleetfoot_live::{Format, Network};

    fn there() -> Vec<Interface> {
        let interface = |name: &str, hardware| Interface {
            name: name.to_owned(),
            index: 1,
            mtu: 1500,
            hardware,
            addresses: Vec::new(),
            networks: Vec::new(),
            up: true,
        };
        let own = Some([2, 0, 0, 0, 0, 1]);
        let mut wan = interface("wan0", own);
        wan.addresses = vec!["192.0.2.7".parse().expect("an address")];
        wan.networks = vec![Network {
            address: wan.addresses[0],
            prefix: 24,
        }];
        vec![interface("lo", None), interface("lan0", own), wan]
    }

    fn read(text: &str) -> Result<RouterFile, String> {
        parse("router.toml", text, &there()).map_err(|error| error.to_string())
    }

    const GOOD: &str = r#"mode = "route"
offloads = "refuse"
[[interface]]
name = "lan0"
queue = { kind = "drop-tail", limit = "100 packets" }
[[interface]]
name = "wan0"
rate = "20 Mbit/s"
framing = "38 B"
ring = "blocks"
queue = { kind = "favourtail", limit = "50 ms" }
check_source = true
[[route]]
to = "10.0.1.0/24"
interface = "lan0"
[[route]]
to = "0.0.0.0/0"
interface = "wan0"
via = "192.0.2.1"
[metrics]
listen = "127.0.0.1:9105"
[log]
format = "json"
"#;

    #[test]
    fn a_file_says_what_a_router_does() {
        let file = read(GOOD).unwrap_or_else(|error| panic!("{error}"));
        let config = &file.config;
        assert_eq!((config.mode, file.log), (Mode::Route, LogFormat::Json));
        assert_eq!(config.interfaces[0].rate, None);
        assert_eq!(config.interfaces[1].rate, Some(Rate::from_bps(20_000_000)));
        assert_eq!(config.interfaces[1].queue.name, "favourtail");
        assert!(config.interfaces[1].check_source && !config.interfaces[0].check_source);
        assert_eq!((config.routes[1].interface, config.routes[1].prefix), (1, 0));
        assert_eq!(config.metrics.map(|address| address.port()), Some(9105));
    }

    #[test]
    fn every_ring_does_for_a_bridge_and_for_a_router() {
        let bridge = "mode = \"bridge\"\n[[interface]]\nname = \"lan0\"\nqueue = { kind = \"codel\" }\n\
            [[interface]]\nname = \"wan0\"\nring = \"blocks\"\nqueue = { kind = \"codel\" }\n";
        for text in [GOOD, bridge] {
            for (name, ring) in [
                ("frames", Format::Frames),
                ("blocks", Format::Blocks),
                ("xdp", Format::Xdp),
            ] {
                let text = text.replace("ring = \"blocks\"", &format!("ring = \"{name}\""));
                let file = read(&text).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(file.config.interfaces[1].ring, ring);
            }
        }
    }

    #[test]
    fn every_registered_queue_can_stand_before_an_interface() {
        for entry in plugins::queues() {
            let text = GOOD.replace(
                "kind = \"favourtail\", limit = \"50 ms\"",
                &format!("kind = \"{}\"", entry.name),
            );
            let file = read(&text).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            assert_eq!(file.config.interfaces[1].queue.name, entry.name);
        }
    }

    #[test]
    fn mistakes_have_their_place_and_what_would_be_right() {
        for (old, new, line, said) in [
            (
                "mode = \"route\"",
                "mode = \"router\"",
                1,
                "did you mean `route`?",
            ),
            ("mode = \"route\"\n", "", 1, "`mode` is missing"),
            ("name = \"wan0\"", "name = \"wan1\"", 7, "no interface `wan1`"),
            ("name = \"wan0\"", "name = \"wan1\"", 7, "did you mean `wan0`?"),
            ("name = \"wan0\"", "name = \"lan0\"", 7, "stands here twice"),
            ("name = \"wan0\"", "name = \"lo\"", 7, "no Ethernet interface"),
            ("rate = \"20 Mbit/s\"", "rate = 20", 8, "has no unit"),
            (
                "rate = \"20 Mbit/s\"",
                "rtae = \"20 Mbit/s\"",
                8,
                "did you mean `rate`?",
            ),
            ("rate = \"20 Mbit/s\"\n", "", 8, "`framing` has nothing to do"),
            ("ring = \"blocks\"", "ring = \"xpd\"", 10, "`blocks` or `xdp`"),
            (
                "kind = \"favourtail\"",
                "kind = \"favortail\"",
                11,
                "did you mean `favourtail`?",
            ),
            (
                "limit = \"100 packets\"",
                "limit = \"20 ms\"",
                5,
                "no meaning here",
            ),
            (
                "limit = \"100 packets\"",
                "limit = \"100 B\"",
                5,
                "smaller than one packet",
            ),
            (
                "limit = \"100 packets\"",
                "target = \"5 ms\"",
                5,
                "no parameter of queue discipline `drop-tail`",
            ),
            (
                "to = \"10.0.1.0/24\"",
                "to = \"10.0.1.7/24\"",
                14,
                "did you mean `10.0.1.0/24`?",
            ),
            ("to = \"10.0.1.0/24\"", "to = \"10.0.1.0/33\"", 14, "0 to 32"),
            (
                "to = \"10.0.1.0/24\"",
                "to = \"10.0.1.0\"",
                14,
                "a network is wanted",
            ),
            (
                "to = \"10.0.1.0/24\"",
                "to = \"0.0.0.0/0\"",
                17,
                "a route to 0.0.0.0/0 already",
            ),
            (
                "to = \"10.0.1.0/24\"",
                "to = \"224.0.0.0/4\"",
                14,
                "not forwarded",
            ),
            (
                "interface = \"lan0\"",
                "interface = \"lan\"",
                15,
                "did you mean `lan0`?",
            ),
            (
                "via = \"192.0.2.1\"",
                "via = \"fd00::1\"",
                19,
                "different address families",
            ),
            (
                "via = \"192.0.2.1\"",
                "via = \"gateway\"",
                19,
                "the address of a router is wanted",
            ),
            (
                "via = \"192.0.2.1\"",
                "via = \"192.0.3.1\"",
                19,
                "192.0.3.1 is on no network of `wan0`, which has 192.0.2.7/24",
            ),
            (
                "via = \"192.0.2.1\"",
                "via = \"192.0.2.7\"",
                19,
                "this machine's own address",
            ),
            (
                "to = \"0.0.0.0/0\"\ninterface = \"wan0\"\nvia = \"192.0.2.1\"",
                "to = \"::/0\"\ninterface = \"wan0\"\nvia = \"fd00::1\"",
                19,
                "fd00::1 is on no network of `wan0`, which has no IPv6 address",
            ),
            ("127.0.0.1:9105", "0.0.0.0:9105", 21, "not a loopback address"),
            ("127.0.0.1:9105", "9105", 21, "an address and a port are wanted"),
            (
                "format = \"json\"",
                "format = \"xml\"",
                23,
                "valid choices: `text` or `json`",
            ),
            ("[log]", "[logs]", 22, "did you mean `log`?"),
        ] {
            assert!(GOOD.contains(old), "{old}");
            let error = read(&GOOD.replacen(old, new, 1)).expect_err(new);
            assert!(error.contains(said), "{new}: {error}");
            assert!(
                error.contains(&format!("router.toml:{line}:")),
                "{new}, line {line}: {error}"
            );
        }
        let bridge = GOOD.replace("mode = \"route\"", "mode = \"bridge\"");
        assert!(
            read(&bridge)
                .expect_err("routes")
                .contains("nothing to do in a bridge")
        );
        let bridge = bridge.replace("check_source = true\n", "");
        assert!(
            read(&bridge)
                .expect_err("routes")
                .contains("a bridge has no routes")
        );
        let one = "mode = \"bridge\"\n[[interface]]\nname = \"lan0\"\nqueue = { kind = \"codel\" }\n";
        assert!(
            read(one)
                .expect_err("one")
                .contains("a bridge has two interfaces, found 1")
        );
        let none = format!(
            "{}\n[[interface]]\nname = \"wan0\"\nqueue = {{ kind = \"codel\" }}\n",
            one.replace("bridge", "route")
        );
        assert!(read(&none).expect_err("no route").contains("forwards nothing"));
        assert!(read("").expect_err("empty").contains("describes nothing"));
        assert!(read("mode = ").expect_err("no TOML").contains("this is not TOML"));
    }

    #[test]
    fn a_next_router_is_on_the_link_or_a_route_says_so() {
        let link_local = GOOD.replace(
            "to = \"0.0.0.0/0\"\ninterface = \"wan0\"\nvia = \"192.0.2.1\"",
            "to = \"::/0\"\ninterface = \"wan0\"\nvia = \"fe80::1\"",
        );
        assert!(read(&link_local).is_ok());
        let elsewhere = GOOD.replace("via = \"192.0.2.1\"", "via = \"192.0.3.1\"");
        assert!(read(&elsewhere).is_err());
        let route = "[[route]]\nto = \"192.0.3.1/32\"\ninterface = \"wan0\"\n[metrics]";
        assert!(read(&elsewhere.replace("[metrics]", route)).is_ok());
        let other = route.replace("wan0", "lan0");
        assert!(read(&elsewhere.replace("[metrics]", &other)).is_err());
        // What is down may have lost its addresses.
        let mut down = there();
        for one in &mut down {
            (one.up, one.addresses, one.networks) = (false, Vec::new(), Vec::new());
        }
        assert!(parse("router.toml", &elsewhere, &down).is_ok());
    }

    #[test]
    fn every_key_is_in_the_document() {
        let page = include_str!("../../../../docs/router.md");
        for list in [
            keys::ROUTER,
            keys::ROUTER_INTERFACE,
            keys::ROUTE,
            keys::METRICS,
            keys::LOG,
        ] {
            for key in list {
                assert!(page.contains(&format!("| `{}` |", key.name)), "{}", key.name);
            }
        }
    }
}
