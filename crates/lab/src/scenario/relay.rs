//! `relay` of a traffic group: who ends its connections on the way.

use super::document::Value;
use super::error::{Error, alternatives};
use super::keys;
use super::network::Network;
use super::read::{Field, Section};
use super::tcp::window_field;
use fleetfoot_core::tcp::Config;
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::spec::{Interface, NodeId, Relay, Traffic};
use std::sync::Arc;

/// The relay of a group with these pairs, this traffic and this configuration of its hosts.
pub(super) fn relay(
    field: &Field,
    network: &Network,
    (pairs, traffic): (&[(NodeId, NodeId)], &Traffic),
    interface: Interface,
    config: &Config,
) -> Result<Option<Relay>, Error> {
    if field.node.as_text() == Some("none") {
        return Ok(None);
    }
    let (node, buffer, said) = match &field.node.value {
        Value::Table(_) => {
            let section = Section::open(&field.node, keys::RELAY, &field.path)?;
            let said = section.need("buffer")?;
            (section.need("node")?, said.bytes()?, said)
        }
        _ => (field.clone(), BUFFER, field.clone()),
    };
    if buffer < Bytes(u64::from(config.mtu)) {
        return Err(said.fail(format!(
            "a relay that keeps {buffer} has no room for one data unit of {}",
            Bytes(u64::from(config.mtu))
        )));
    }
    if let Some(problem) = window_field(config, config.receive_buffer.min(buffer)) {
        return Err(said
            .fail(problem)
            .help(said.place(), "a larger `buffer`, or a smaller `tcp.window_scale`"));
    }
    if !traffic.facts().relayable {
        return Err(field
            .fail("a relay ends TCP connections, and here it would find none that it can end")
            .help(field.place(), "leave `relay` out for datagrams, TFRC and replay"));
    }
    if interface != Interface::default() {
        return Err(field
            .fail("`relay` does not go together with `super_packets`, `host_coalesce` and `fast_open`")
            .help(field.place(), "switch those off for this group"));
    }
    let name = node.text()?;
    let place = network.router(name, node.place(), &node.path)?;
    on_every_path(&node, place, network, pairs)?;
    let mut own = Config {
        receive_buffer: config.receive_buffer.min(buffer),
        send_buffer: config.send_buffer.min(buffer),
        ..config.clone()
    };
    own.fix_receive_buffer();
    Ok(Some(Relay {
        node: place,
        config: Arc::new(own),
    }))
}

/// Refuses a relay at `place` that a packet of one of `pairs` does not pass, either way.
fn on_every_path(
    node: &Field,
    place: NodeId,
    network: &Network,
    pairs: &[(NodeId, NodeId)],
) -> Result<(), Error> {
    let mut both_ways: Vec<(NodeId, NodeId)> = pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
    both_ways.sort_unstable();
    both_ways.dedup();
    let mut paths = network.paths();
    // Every pair is connected: that was checked before.
    let mut routers = |(from, to)| -> Vec<NodeId> {
        let links = paths.links(from, to).into_iter().flatten();
        links.map(|link| link.to).filter(|&node| node != to).collect()
    };
    let Some(&(from, to)) = both_ways.iter().find(|&&pair| !routers(pair).contains(&place)) else {
        return Ok(());
    };
    let called = |id: NodeId| network.nodes[id.0 as usize].name.clone();
    let passed: Vec<String> = routers((from, to)).into_iter().map(called).collect();
    let (name, from, to) = (called(place), called(from), called(to));
    Err(node
        .fail(format!("`{name}` is not on the path from `{from}` to `{to}`"))
        .help(
            node.place(),
            match passed.len() {
                0 => "there is no router between them".to_owned(),
                _ => format!("on that path: {}", alternatives(&passed)),
            },
        ))
}

/// What the key's default says.
const BUFFER: Bytes = Bytes(1_000_000);

#[cfg(test)]
mod tests {
    use super::super::{Scenario, Setting};
    use fleetfoot_core::units::Bytes;
    use fleetfoot_sim::spec::Spec;

    fn spec(traffic: &str) -> Result<Spec, String> {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\npairs = 2\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\" }}\n\
             [[traffic]]\nname = \"it\"\n{traffic}\n"
        );
        let scenario = Scenario::parse("test.toml", &text).map_err(|error| error.to_string())?;
        let resolved = scenario.resolve(&Setting::none());
        resolved
            .map(|resolved| resolved.spec)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_relay_is_a_name_or_a_table() {
        let named = spec("kind = \"bulk\"\nrelay = \"router-1\"").expect("correct");
        let relay = named.groups[0].relay.clone().expect("a relay");
        assert_eq!(named.nodes[relay.node.0 as usize].name, "router-1");
        assert_eq!(
            (relay.config.receive_buffer, relay.config.send_buffer),
            (Bytes(1_000_000), Bytes(1_000_000))
        );
        let table =
            spec("kind = \"bulk\"\nrelay = { node = \"router-0\", buffer = \"64 kB\" }").expect("correct");
        let relay = table.groups[0].relay.clone().expect("a relay");
        assert_eq!(table.nodes[relay.node.0 as usize].name, "router-0");
        assert_eq!(
            (relay.config.receive_buffer, relay.config.send_buffer),
            (Bytes(64_000), Bytes(64_000))
        );
        let without = spec("kind = \"bulk\"\nrelay = \"none\"").expect("correct");
        assert!(without.groups[0].relay.is_none());
    }

    /// Two paths around a ring: `router-a` or `router-b` in the middle, and a host that is reached at once.
    fn ring(relay: &str) -> Result<Spec, String> {
        let link = |name: &str, from: &str, to: &str, delay: u32| {
            format!("[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\ndelay = \"{delay} ms\"\n")
        };
        let text = format!(
            "[network]\nkind = \"graph\"\nhosts = [\"x\", \"y\", \"z\"]\nrouters = [\"in\", \"a\", \"b\", \"out\"]\n\
             groups = {{ all = [\"x\", \"y\", \"z\"] }}\n{}{}{}{}{}{}{}\
             [[traffic]]\nname = \"it\"\nkind = \"bulk\"\nfrom = \"all\"\nto = \"all\"\npairing = \"all\"\nrelay = \"{relay}\"\n",
            link("x", "x", "in", 1),
            link("y", "y", "out", 1),
            link("z", "z", "in", 1),
            link("in-a", "in", "a", 2),
            link("a-out", "a", "out", 2),
            link("in-b", "in", "b", 3),
            link("b-out", "b", "out", 3),
        );
        let scenario = Scenario::parse("test.toml", &text).map_err(|error| error.to_string())?;
        let resolved = scenario.resolve(&Setting::none());
        resolved
            .map(|resolved| resolved.spec)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_path_has_to_pass_the_relay() {
        assert!(ring("in").is_ok());
        for (relay, said) in [
            ("a", "`a` is not on the path from `x` to `z`"),
            ("b", "`b` is not on the path from `x` to `y`"),
            ("out", "`out` is not on the path from `x` to `z`"),
            ("b", "on that path: `in`, `a` or `out`"),
        ] {
            let error = ring(relay).expect_err(relay);
            assert!(error.contains(said), "{relay}: {error}");
        }
    }

    #[test]
    fn the_buffer_of_a_named_relay_is_set_by_its_path() {
        let text = "[network]\nkind = \"dumbbell\"\nbottleneck = { rate = \"10 Mbit/s\", delay = \"10 ms\" }\n\
             [[traffic]]\nname = \"it\"\nkind = \"bulk\"\nrelay = RELAY\n";
        let buffer = |relay: &str| {
            let text = text.replace("RELAY", relay);
            let scenario = Scenario::parse("test.toml", &text).map_err(|error| error.to_string())?;
            let set = Setting::from_origin("--set").with("traffic.it.relay.buffer", "70 kB");
            let resolved = scenario.resolve(&set).map_err(|error| error.to_string())?;
            let relay = resolved.spec.groups[0].relay.clone();
            Ok::<_, String>(relay.map(|relay| (relay.node, relay.config.receive_buffer)))
        };
        let named = buffer("\"router-1\"");
        assert_eq!(
            named.clone().map(|relay| relay.map(|relay| relay.1)),
            Ok(Some(Bytes(70_000)))
        );
        assert_eq!(named, buffer("{ node = \"router-1\", buffer = \"9 kB\" }"));
        let error = buffer("\"none\"").expect_err("there is no relay");
        assert!(error.contains("`relay` is \"none\", not a table"), "{error}");
    }

    #[test]
    fn what_cannot_be_relayed_is_refused_with_its_line() {
        for (traffic, line, said) in [
            (
                "kind = \"bulk\"\nrelay = \"router-9\"",
                "test.toml:8",
                "there is no router called `router-9`",
            ),
            (
                "kind = \"bulk\"\nrelay = \"router-9\"",
                "test.toml:8",
                "did you mean `router-",
            ),
            (
                "kind = \"bulk\"\nrelay = \"left-1\"",
                "test.toml:8",
                "`left-1` is a host, and a relay is a router on the path",
            ),
            (
                "kind = \"bulk\"\nrelay = \"left-1\"",
                "test.toml:8",
                "routers here: router-0 to router-1",
            ),
            ("kind = \"bulk\"\nrelay = true", "test.toml:8", "found true"),
            (
                "kind = \"bulk\"\nrelay = true",
                "test.toml:8",
                "text in quotes or a table of `node`, `buffer` is wanted",
            ),
            (
                "kind = \"bulk\"\nrelay = \"right-0\"",
                "test.toml:8",
                "`right-0` is a host",
            ),
            (
                "kind = \"bulk\"\nrelay = { node = \"router-0\", buffer = \"10 B\" }",
                "test.toml:8",
                "buffer",
            ),
            (
                "kind = \"bulk\"\nrelay = { buffer = \"64 kB\" }",
                "test.toml:8",
                "`node` is missing",
            ),
            (
                "kind = \"ping\"\nrelay = \"router-0\"",
                "test.toml:8",
                "a relay ends TCP connections",
            ),
            (
                "kind = \"bulk\"\nrelay = \"router-0\"\ntcp = { super_packets = \"burst\" }",
                "test.toml:8",
                "does not go together",
            ),
            (
                "kind = \"bulk\"\nrelay = \"router-0\"\ntcp = { fast_open = true }",
                "test.toml:8",
                "`fast_open`",
            ),
            (
                "kind = \"bulk\"\nrelay = \"router-0\"\ntcp = { host_coalesce = \"1 ms\" }",
                "test.toml:8",
                "does not go together",
            ),
        ] {
            let error = spec(traffic).expect_err(traffic);
            assert!(error.contains(line) && error.contains(said), "{traffic}: {error}");
        }
    }
}
