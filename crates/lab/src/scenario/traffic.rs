//! `[[traffic]]`: who sends what to whom and when; distributions and arrivals.

use super::distribution::{arrivals, distribution, positive};
use super::document::{Node, Table, Value};
use super::error::Error;
use super::keys::{self, Dimension};
use super::network::Network;
use super::read::{Field, Section, join};
use super::{interface, mtu, pace, quic, raw, relay, replay, spreading, tcp, tfrc, tls};
use crate::workload::{APPLICATION_NAMES, ThinApplication, flows};
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::spec::{
    Dns, FlowLine, GroupSpec, NodeId, PairPolicy, Streaming, Traffic, TrafficKind, Video, Web,
};
use std::collections::HashSet;
use std::sync::Arc;

/// A traffic group as results speak of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: TrafficKind,
    /// Whether completion time, not goodput, is what counts.
    pub latency_sensitive: bool,
    /// What arrives later than this after it was sent is late; of kinds that have such a deadline.
    pub deadline: Option<Duration>,
    /// Users make no more requests in a variant than in the file as it stands.
    pub equal_demand: bool,
}

/// Reads all groups.
pub(crate) fn read(document: &Table, network: &Network) -> Result<(Vec<Group>, Vec<GroupSpec>), Error> {
    let tcp_node = document.get("tcp");
    if let Some(node) = tcp_node {
        let config = tcp::config(node, "tcp")?;
        interface::interface(node, "tcp", &config)?;
    }
    let Some(list) = document.get("traffic") else {
        unreachable!("the file was checked against the list of keys")
    };
    let Value::List(nodes) = &list.value else {
        unreachable!("the file was checked against the list of keys")
    };
    if nodes.is_empty() {
        return Err(Error::at(&list.place, "traffic", "there is no traffic"));
    }
    let (mut groups, mut specs) = (Vec::<Group>::new(), Vec::new());
    for node in nodes {
        let name = node.name().unwrap_or("").to_owned();
        let path = join("traffic", &name);
        if groups.iter().any(|group| group.name == name) {
            return Err(Error::at(
                &node.place,
                &join(&path, "name"),
                format!("two traffic groups are called `{name}`"),
            )
            .help(&node.place, "give each a `name` of its own"));
        }
        let (kind, section) = Section::open_tagged(node, &keys::TRAFFIC, &path)?;
        let Some(kind) = TrafficKind::by_name(kind) else {
            unreachable!("the file was checked against the list of kinds")
        };
        groups.push(Group {
            name: name.clone(),
            kind,
            latency_sensitive: section
                .find("latency_sensitive")?
                .map_or(Ok(kind.facts().latency_sensitive), |field| field.flag())?,
            deadline: section
                .find("deadline")?
                .map(|field| field.duration())
                .transpose()?,
            equal_demand: match section.find("demand")? {
                Some(field) => field.choice()? == "as baseline",
                None => false,
            },
        });
        specs.push(group(name, kind, &section, tcp_node, network, nodes)?);
    }
    spreading::groups(&specs, nodes, tcp_node)?;
    Ok((groups, specs))
}

fn group(
    name: String,
    kind: TrafficKind,
    section: &Section,
    tcp_node: Option<&Node>,
    network: &Network,
    groups: &[Node],
) -> Result<GroupSpec, Error> {
    let listed = match kind.facts().lists_hosts {
        true => Some(flow_list(&section.need("file")?, network)?),
        false => None,
    };
    let pairs = match &listed {
        Some(list) => pairs_of(list),
        None => pairs(kind, section, network)?,
    };
    let own = section.need("tcp")?;
    let mut merged = own.node.clone();
    let mut tcp_path = own.path.as_str();
    if let Some(node) = tcp_node {
        if !own.given {
            tcp_path = "tcp";
        }
        merged = node.clone();
        if let (Value::Table(base), Value::Table(over)) = (&mut merged.value, own.node.value.clone()) {
            base.merge(over);
        }
    }
    let mut config = tcp::config(&merged, tcp_path)?;
    let mut interface = interface::interface(&merged, tcp_path, &config)?;
    let narrowest = mtu::narrowest(&pairs, section, network)?;
    config.mtu = mtu::data_unit(kind, section, &narrowest)?;
    mtu::datagrams_fit(kind, section, &narrowest)?;
    if let Some(grouping) = &mut interface.super_packets {
        config.mtu -= u32::from(grouping.layout.overhead()); // marks need room in full packets
        interface::enlarge(grouping, &mut config).map_err(|size| {
            let most = interface::LARGEST_UNIT;
            own.fail(format!("segments of {size} B are too large: at most {most} B"))
                .help(own.place(), "lower `max` of `super_packets`, or `data_unit`")
        })?;
    }
    let config = Arc::new(config);
    let (start, stop) = (section.need("start")?.duration()?, section.find("stop")?);
    if let Some(field) = &stop
        && field.duration()? <= start
    {
        return Err(field.fail(format!("`stop` is not after `start` ({start})")));
    }
    let traffic = match listed {
        Some(list) => Traffic::Flows { list },
        None => traffic(kind, section, network, (&pairs, config.mtu), groups)?,
    };
    let spread = match section.need("spread")?.choice()? {
        "random" => PairPolicy::Random,
        "each" => PairPolicy::Each,
        _ => PairPolicy::RoundRobin,
    };
    let (start_spacing, spaced_by_host) = match section.find("start_spacing")? {
        Some(field) => (field.duration()?, false),
        None => opening_time(&traffic, spread, &pairs),
    };
    let relay = match section.find("relay")? {
        Some(field) => relay::relay(&field, network, (&pairs, &traffic), interface, &config)?,
        None => None,
    };
    pace::moves(&traffic, &pairs, section, network)?;
    Ok(GroupSpec {
        draws: drawn_from(&name, section, groups)?,
        name,
        traffic,
        spread,
        pairs,
        start,
        start_spacing,
        spaced_by_host,
        stop: stop.map(|field| field.duration()).transpose()?,
        sender: Arc::clone(&config),
        receiver: config,
        interface,
        relay,
        tls: tls::tls(kind, section)?,
        most_requests: None,
    })
}

/// The group whose random numbers a group draws, if they are not its own.
fn drawn_from(name: &str, section: &Section, groups: &[Node]) -> Result<Option<Arc<str>>, Error> {
    let Some(field) = section.find("draws")? else {
        return Ok(None);
    };
    let wanted = field.text()?;
    let named = groups.iter().find(|group| group.name() == Some(wanted));
    let Some(table) = named.and_then(Node::as_table) else {
        return Err(field
            .fail(format!(
                "there is no traffic group `{wanted}` whose random numbers could be drawn"
            ))
            .help(field.place(), "the `name` of another group"));
    };
    if let Some(other) = table.get("draws").and_then(Node::as_text)
        && wanted != name
        && other != wanted
    {
        return Err(field
            .fail(format!("`{wanted}` itself draws the random numbers of `{other}`"))
            .help(field.place(), format!("draws = \"{other}\"")));
    }
    Ok((wanted != name).then(|| wanted.into()))
}

/// Time between the starts of members that the file does not give, and whether it is between those of a host: one that sends several answers in
/// a round of incast opens their connections one after the other, as a program does (40 us apart, measured with Linux 6.18: docs/trust.md,
/// Phase effects), and other hosts do so at the same time.
fn opening_time(traffic: &Traffic, spread: PairPolicy, pairs: &[(NodeId, NodeId)]) -> (Duration, bool) {
    let Traffic::Incast { count, .. } = *traffic else {
        return (Duration::ZERO, false);
    };
    let senders: HashSet<NodeId> = pairs.iter().map(|pair| pair.0).collect();
    let pairs_share_hosts = senders.len() < pairs.len();
    let several = match spread {
        PairPolicy::Each => count > 1 || pairs_share_hosts,
        PairPolicy::RoundRobin => count as usize > pairs.len() || count > 1 && pairs_share_hosts,
        PairPolicy::Random => count > 1,
    };
    // Where transfers of a pair, or of all, are those of a host, nothing else need be said.
    let by_host = match spread {
        PairPolicy::Each => pairs_share_hosts,
        PairPolicy::RoundRobin | PairPolicy::Random => senders.len() > 1,
    };
    match several {
        true => (Duration::from_micros(40), by_host),
        false => (Duration::ZERO, false),
    }
}

/// Pairs of data sender and data receiver, all of them connected both ways.
fn pairs(kind: TrafficKind, section: &Section, network: &Network) -> Result<Vec<(NodeId, NodeId)>, Error> {
    let default = |group: &str| network.groups.get(group).cloned();
    let from = match section.find("from")? {
        Some(field) => hosts(&field, "left", network)?,
        None => default("left")
            .or_else(|| default("from"))
            .or_else(|| default("hosts"))
            .unwrap_or_default(),
    };
    let to_field = section.find("to")?;
    let to = match &to_field {
        Some(field) => hosts(field, "right", network)?,
        None => match default("right").or_else(|| default("to")) {
            Some(hosts) => hosts,
            None => {
                return Err(
                    Error::at(&section.place, &join(&section.path, "to"), "`to` is missing").help(
                        &section.place,
                        "in a graph say who sends and who receives: from = \"a\", to = \"b\"",
                    ),
                );
            }
        },
    };
    let all = section.need("pairing")?.choice()? == "all";
    let mut pairs: Vec<(NodeId, NodeId)> = match (from.len(), to.len()) {
        _ if all => every_pair(&from, &to, section)?,
        (1, _) => to.iter().map(|to| (from[0], *to)).collect(),
        (_, 1) => from.iter().map(|from| (*from, to[0])).collect(),
        (senders, receivers) if senders == receivers => from.into_iter().zip(to).collect(),
        (senders, receivers) => {
            let place = to_field.as_ref().map_or(&section.place, Field::place);
            return Err(Error::at(
                place,
                &join(&section.path, "to"),
                format!("{senders} senders cannot be paired with {receivers} receivers"),
            )
            .help(
                place,
                "give as many of both, a single one on one side, or pairing = \"all\"",
            ));
        }
    };
    match direction(kind, section)? {
        "up" => pairs.iter_mut().for_each(|pair| *pair = (pair.1, pair.0)),
        "both" => pairs = pairs.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]).collect(),
        _ => {}
    }
    Ok(pairs)
}

/// Which way data flows.
fn direction(kind: TrafficKind, section: &Section) -> Result<&'static str, Error> {
    match section.find("direction")? {
        Some(field) => field.choice(),
        None if kind.facts().both_ways => Ok("both"),
        None => Ok("down"),
    }
}

/// Every sender with every receiver but itself.
fn every_pair(from: &[NodeId], to: &[NodeId], section: &Section) -> Result<Vec<(NodeId, NodeId)>, Error> {
    let field = section.need("pairing")?;
    if from.len().saturating_mul(to.len()) > MOST_PAIRS {
        return Err(field.fail(format!(
            "{} senders and {} receivers make more than {MOST_PAIRS} pairs",
            from.len(),
            to.len()
        )));
    }
    let of = |&sender: &NodeId| to.iter().map(move |&receiver| (sender, receiver));
    let pairs: Vec<(NodeId, NodeId)> = from.iter().flat_map(of).filter(|(a, b)| a != b).collect();
    if pairs.is_empty() {
        return Err(field.fail("the only sender is the only receiver"));
    }
    Ok(pairs)
}

/// Most pairs that `pairing = "all"` makes.
const MOST_PAIRS: usize = 1_000_000;

fn hosts(field: &Field, side: &str, network: &Network) -> Result<Vec<NodeId>, Error> {
    let mut all = Vec::new();
    for element in field.list()? {
        if element.node.as_text().is_some() {
            all.extend(network.select(element.text()?, element.place(), &element.path)?);
            continue;
        }
        let index = element.integer()? as usize;
        let group = network.groups.get(side).or_else(|| network.groups.get("hosts"));
        let members = group.map_or(&[][..], Vec::as_slice);
        all.push(*members.get(index).ok_or_else(|| {
            element
                .fail(format!(
                    "there is no pair {index}: this network has {}",
                    members.len()
                ))
                .help(element.place(), "indices begin at 0")
        })?);
    }
    if all.is_empty() {
        return Err(field.fail("at least one host is wanted"));
    }
    Ok(all)
}

fn traffic(
    kind: TrafficKind,
    section: &Section,
    network: &Network,
    (pairs, path_mtu): (&[(NodeId, NodeId)], u32),
    groups: &[Node],
) -> Result<Traffic, Error> {
    let sizes = |key| distribution(&section.need(key)?, Dimension::Bytes);
    let times = |key| distribution(&section.need(key)?, Dimension::Time);
    let count = || -> Result<u32, Error> { Ok(section.need("count")?.integer()? as u32) };
    Ok(match kind {
        TrafficKind::Bulk => Traffic::Bulk { count: count()? },
        TrafficKind::Transfer => Traffic::Transfer {
            size: sizes("size")?,
            interarrival: arrivals(&section.need("arrivals")?)?,
            count: section.find("count")?.map(|field| field.integer()).transpose()?,
        },
        TrafficKind::Incast => Traffic::Incast {
            size: sizes("size")?,
            count: match section.find("count")? {
                Some(field) => field.integer()? as u32,
                None => pairs.len() as u32,
            },
            rounds: section.need("rounds")?.integer()? as u32,
            pause: times("pause")?,
        },
        TrafficKind::ClosedLoop => Traffic::ClosedLoop {
            count: count()?,
            size: sizes("size")?,
            think: times("think")?,
        },
        TrafficKind::RequestResponse => Traffic::RequestResponse {
            count: count()?,
            request: sizes("request")?,
            response: sizes("response")?,
            think: times("think")?,
            server_time: times("server_time")?,
            exchanges: section
                .find("exchanges")?
                .map(|field| field.integer())
                .transpose()?
                .map(|n| n as u32),
        },
        TrafficKind::OnOff => Traffic::OnOff {
            count: count()?,
            burst: sizes("burst")?,
            interval: positive(&section.need("interval")?)?,
        },
        TrafficKind::Thin => thin(section, count()?)?,
        TrafficKind::Web => Traffic::Web(Box::new(Web {
            count: count()?,
            document: sizes("document")?,
            objects: section.need("objects")?.integer()? as u32,
            object: sizes("object")?,
            request: section.need("request")?.bytes()?,
            connections: section.need("connections")?.integer()? as u32,
            multiplex: section.need("multiplex")?.flag()?,
            think: times("think")?,
            server_time: times("server_time")?,
        })),
        TrafficKind::Streaming => Traffic::Streaming(Box::new(streaming(section, count()?)?)),
        TrafficKind::Cbr => Traffic::Cbr {
            count: count()?,
            rate: finite(&section.need("rate")?)?,
            packet: section.need("packet")?.bytes()?,
        },
        TrafficKind::Flows => unreachable!("its list was read before"),
        TrafficKind::Video => Traffic::Video(Box::new(Video {
            count: count()?,
            both_ways: direction(kind, section)? == "both",
            frame_rate: section.need("frame_rate")?.frequency()?,
            frame: sizes("frame")?,
            key_every: section
                .find("key_frame_every")?
                .map(|field| field.integer())
                .transpose()?
                .map(|n| n as u32),
            key_frame: sizes("key_frame")?,
            packet: section.need("packet")?.bytes()?,
        })),
        TrafficKind::Dns => Traffic::Dns(Box::new(Dns {
            interarrival: arrivals(&section.need("arrivals")?)?,
            request: sizes("request")?,
            response: sizes("response")?,
            most: Bytes(MOST_DNS.min(u64::from(path_mtu.saturating_sub(UDP_HEADERS)).max(1))),
            server_time: times("server_time")?,
            timeout: section.need("timeout")?.duration()?,
            attempts: section.need("attempts")?.integer()? as u32,
        })),
        TrafficKind::Tfrc => Traffic::Tfrc(Box::new(tfrc::tfrc(section, path_mtu)?)),
        TrafficKind::Quic => Traffic::Quic(Box::new(quic::transfers(section, path_mtu)?)),
        TrafficKind::QuicWeb => Traffic::QuicWeb(Box::new(quic::pages(section, path_mtu)?)),
        TrafficKind::Replay => Traffic::Replay(Box::new(replay::replay(section, network, pairs)?)),
        TrafficKind::Raw => Traffic::Raw(Box::new(raw::raw(section, network, groups)?)),
        TrafficKind::Ping => Traffic::Ping {
            interval: positive(&section.need("interval")?)?,
            packet: section.need("packet")?.bytes()?,
        },
    })
}

/// Payload of a DNS message over UDP at most: the buffer that resolvers announce since the DNS flag day of 2020.
const MOST_DNS: u64 = 1232;

/// IPv4 and UDP headers.
const UDP_HEADERS: u32 = 28;

fn thin(section: &Section, count: u32) -> Result<Traffic, Error> {
    let model = section.find("model")?.map(|field| field.choice()).transpose()?;
    let model = model.and_then(ThinApplication::find);
    let (payload, interval) = (section.find("payload")?, section.find("interval")?);
    let missing = |key: &str| {
        Error::at(
            &section.place,
            &join(&section.path, key),
            format!("`{key}` is missing"),
        )
        .help(
            &section.place,
            format!(
                "write it, or name an application: model = \"{}\"",
                APPLICATION_NAMES[4]
            ),
        )
    };
    Ok(Traffic::Thin {
        count,
        payload: match (payload, model) {
            (Some(field), _) => distribution(&field, Dimension::Bytes)?,
            (None, Some(model)) => Distribution::Empirical(model.payload()),
            (None, None) => return Err(missing("payload")),
        },
        interval: match (interval, model) {
            (Some(field), _) => positive(&field)?,
            (None, Some(model)) => Distribution::Empirical(model.interval()),
            (None, None) => return Err(missing("interval")),
        },
    })
}

fn streaming(section: &Section, count: u32) -> Result<Streaming, Error> {
    let time = |key| section.need(key)?.duration();
    let (segment, buffer, start) = (time("segment")?, time("buffer")?, time("buffer_to_start")?);
    if buffer.saturating_sub(segment) < start {
        let field = section.need("buffer")?;
        return Err(field
            .fail(format!("a buffer of {buffer} is never played from: {start} must be there and have room for one segment of {segment} more"))
            .help(field.place(), "a larger `buffer`, or a smaller `buffer_to_start`"));
    }
    Ok(Streaming {
        count,
        bitrate: finite(&section.need("bitrate")?)?,
        segment,
        buffer,
        start,
        request: section.need("request")?.bytes()?,
    })
}

pub(super) fn finite(field: &Field) -> Result<fleetfoot_core::units::Rate, Error> {
    let rate = field.rate()?;
    if rate == fleetfoot_core::units::Rate::UNLIMITED {
        return Err(field.fail("a stream cannot have an unlimited rate"));
    }
    Ok(rate)
}

/// The pairs of hosts of a list, each once.
fn pairs_of(list: &[FlowLine]) -> Vec<(NodeId, NodeId)> {
    let mut known = HashSet::new();
    let pairs = list.iter().map(|line| (line.source, line.destination));
    pairs.filter(|pair| known.insert(*pair)).collect()
}

fn flow_list(field: &Field, network: &Network) -> Result<Arc<[FlowLine]>, Error> {
    let lines = flows::read(&field.file()?).map_err(|message| field.fail(message))?;
    let mut list = Vec::with_capacity(lines.len());
    let mut paths = network.paths();
    for line in lines {
        let host = |name: &str| {
            network.host(name, field.place(), &field.path).map_err(|error| {
                field
                    .fail(format!(
                        "{} (in {})",
                        error.message,
                        field.node.as_text().unwrap_or("the file")
                    ))
                    .help(field.place(), error.help.last().cloned().unwrap_or_default())
            })
        };
        let (source, destination) = (host(&line.source)?, host(&line.destination)?);
        if paths.links(source, destination).is_none() {
            return Err(field.fail(format!(
                "no path leads from `{}` to `{}`",
                line.source, line.destination
            )));
        }
        list.push(FlowLine {
            start: Duration::from_secs_f64(line.start),
            source,
            destination,
            bytes: Bytes(line.bytes),
        });
    }
    list.sort_by_key(|line| line.start);
    Ok(list.into())
}
