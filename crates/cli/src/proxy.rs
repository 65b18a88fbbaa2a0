//! `fleetfoot proxy`: connections between the kernel's TCP and ours.

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::output::Common;
use clap::Args;

/// Flags of `proxy`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where clients connect to: ADDRESS:PORT, or a port of 127.0.0.1; several times for several. Without it 127.0.0.1:1080. Targets
    /// are reached by our TCP. Other addresses than loopback need --allow.
    #[arg(long, value_name = "[ADDRESS:]PORT", conflicts_with = "accept")]
    listen: Vec<String>,
    /// The other side of a pair: our TCP takes connections at this port, and targets are reached by this machine's. Needs --allow.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    accept: Option<u16>,
    /// Where all connections go. Without it each client asks, by SOCKS5 or HTTP CONNECT.
    #[arg(long, value_name = "HOST:PORT")]
    to: Option<String>,
    /// Who may connect, addresses or networks: 192.0.2.0/24,2001:db8::7. Nobody else may; without it loopback addresses.
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    allow: Vec<String>,
    /// The most connections at once; others wait to be accepted.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    connections: u32,
    /// Our TCP reaches the networks that this machine reaches (root only; needs nft). It is undone at the end.
    #[arg(long)]
    masquerade: bool,
    #[command(flatten)]
    endpoint: Endpoint,
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn execute(arguments: &Arguments, _: &Common) -> Result<(), Failure> {
    arguments.endpoint.tcp()?;
    let _ = (
        &arguments.listen,
        arguments.accept,
        &arguments.to,
        &arguments.allow,
        arguments.connections,
        arguments.masquerade,
        arguments.endpoint.sets("tcp.nagle"),
    );
    Err(Failure::usage("proxy needs Linux: it is built on TUN devices"))
}

#[cfg(target_os = "linux")]
pub(crate) use linux::execute;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Arguments, Common, Failure};
    use crate::endpoint::{attach, counters_json, host, list, packets};
    use crate::masquerade::masquerade;
    use crate::output::{counted, print};
    use fleetfoot_core::tcp::Stats;
    use fleetfoot_live::host::{Attached, Place};
    use fleetfoot_live::proxy::{
        Counters, Front, Limits, Prefix, Proxy, ProxyConfig, Target, descriptors, system_lookup,
    };
    use fleetfoot_live::{Order, Signals};
    use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

    pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
        let endpoint = &arguments.endpoint;
        let mut tcp = endpoint.tcp()?;
        // Whether a client wants small writes to wait does not show in what arrives here.
        tcp.nagle &= endpoint.sets("tcp.nagle");
        let mut config = config(arguments)?;
        let place = endpoint.place()?;
        check_names(arguments, &place)?;
        let masquerade = match arguments.masquerade {
            true => Some(masquerade(
                common,
                "Without it, inside of `fleetfoot shell`, a proxy reaches the other end",
            )?),
            false => None,
        };
        // From here on signals wait until the proxy asks for them, and whatever they end is put away.
        let signals = Signals::take_orders().map_err(|error| Failure::other(error.to_string()))?;
        let most = usable(arguments.connections, common)?;
        config.most = most;
        let attached = attach(
            &place,
            "`fleetfoot shell` brings a network of its own, also without root",
        )?;
        let address = |four: bool| {
            let hosts = place.hosts();
            let found = hosts.into_iter().find(|ip| ip.is_ipv4() == four);
            found.map(|ip| ip.to_string())
        };
        let masqueraded = match &masquerade {
            Some(masquerade) => {
                let (four, six) = (address(true), address(false));
                let begun = masquerade.begin(&place.name, four.as_deref(), six.as_deref());
                Some(begun.map_err(|error| Failure::other(error.to_string()))?)
            }
            None => None,
        };
        let about = Introduction {
            arguments,
            place: &place,
            attached: &attached,
        };
        let (interface, known) = (about.interface(), about.how_far());
        let host = host(&place, attached, tcp);
        let target = config.target.clone();
        let mut proxy = Proxy::new(host, config).map_err(|error| Failure::other(error.to_string()))?;
        let clients = clients(arguments, &proxy, &place);
        let what = match &target {
            Some(target) => format!("to {target}"),
            None => String::from("SOCKS5 and HTTP CONNECT"),
        };
        common.say(&format!(
            "proxy at {} ({what}); {interface}{known}",
            list(&clients)
        ));
        let ran = proxy.run(&signals, |proxy| {
            let mut goes_on = true;
            while let Some(order) = signals.next_order() {
                match order {
                    Order::Report => common.say(&summary(proxy)),
                    Order::End => goes_on = false,
                }
            }
            goes_on
        });
        let ended = proxy.end();
        drop(masqueraded);
        ran.and(ended)
            .map_err(|error| Failure::other(error.to_string()))?;
        if common.json {
            let document = serde_json::json!({
                "schema": "fleetfoot-proxy", "version": 1, "role": if arguments.accept.is_some() { "accept" } else { "listen" },
                "interface": place.name, "addresses": place.hosts(), "clients": clients, "to": arguments.to,
                "proxy": proxy_json(&proxy.counters()), "tcp": tcp_json(&proxy.host().stack().totals()),
                "counters": counters_json(&proxy.host().counters()),
            });
            print(&format!("{document:#}\n"))?;
        } else {
            common.say(&summary(&proxy));
        }
        Ok(())
    }

    fn config(arguments: &Arguments) -> Result<ProxyConfig, Failure> {
        let front = match arguments.accept {
            Some(port) => Front::Ours(port),
            None if arguments.listen.is_empty() => {
                Front::Kernel(vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)])
            }
            None => Front::Kernel(
                arguments
                    .listen
                    .iter()
                    .map(|text| listen(text))
                    .collect::<Result<_, _>>()?,
            ),
        };
        let mut allow = Vec::new();
        for text in &arguments.allow {
            let prefix: Result<Prefix, String> = text.parse();
            allow.push(prefix.map_err(|why| Failure::usage(format!("--allow {text:?}: {why}")))?);
        }
        let open_to_others = match &front {
            Front::Ours(port) => Some(format!("--accept {port}")),
            Front::Kernel(addresses) => {
                let other = addresses.iter().find(|address| !address.ip().is_loopback());
                other.map(|address| format!("--listen {address}"))
            }
        };
        if allow.is_empty() {
            if let Some(flag) = open_to_others {
                return Err(Failure::usage(format!(
                    "{flag} can be reached by others: --allow says who may connect, such as --allow 192.0.2.0/24,2001:db8::/64"
                )));
            }
            allow.extend(Prefix::LOOPBACK);
        }
        let target = match &arguments.to {
            None => None,
            Some(text) => Some(Target::of_authority(text).ok_or_else(|| {
                Failure::usage(format!(
                    "--to {text:?}: a name or address and a port are wanted: example.org:22, 192.0.2.1:80, [2001:db8::1]:80"
                ))
            })?),
        };
        Ok(ProxyConfig {
            front,
            target,
            allow,
            most: arguments.connections as usize,
            limits: Limits::default(),
            lookup: system_lookup(),
        })
    }

    fn listen(text: &str) -> Result<SocketAddr, Failure> {
        let local = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        let port = text.parse::<u16>().map(local);
        port.or_else(|_| text.parse::<SocketAddr>()).map_err(|_| {
            Failure::usage(format!(
                "--listen {text:?}: a port, or an address and a port are wanted: 1080, 127.0.0.1:1080, [::1]:1080"
            ))
        })
    }

    /// What cannot be with these addresses and this name.
    fn check_names(arguments: &Arguments, place: &Place) -> Result<(), Failure> {
        if arguments.masquerade && !place.name.starts_with("ff") {
            let name = &place.name;
            return Err(Failure::usage(format!(
                "--tun {name}: with --masquerade the name begins with ff, by which a later start finds what was left"
            )));
        }
        let Some(target) = &arguments.to else {
            return Ok(());
        };
        let addresses: Vec<IpAddr> = match Target::of_authority(target) {
            None => return Ok(()),
            Some(Target::Address(address)) => vec![address.ip()],
            // A name that nobody knows now may be known when a client comes.
            Some(Target::Name(name, port)) => (name.as_str(), port)
                .to_socket_addrs()
                .map(|found| found.map(|address| address.ip()).collect())
                .unwrap_or_default(),
        };
        let why = |ip: IpAddr| {
            let ip = ip.to_canonical();
            if place.hosts().contains(&ip) {
                return Some("this is the proxy itself");
            }
            let is_local = ip.is_loopback() || ip.is_unspecified();
            (arguments.accept.is_none() && is_local).then_some(LOCAL)
        };
        let refusals: Vec<&str> = addresses.iter().filter_map(|&ip| why(ip)).collect();
        // Of several addresses one that can be reached is enough.
        match refusals.first() {
            Some(why) if refusals.len() == addresses.len() => {
                Err(Failure::usage(format!("--to {target}: {why}")))
            }
            _ => Ok(()),
        }
    }

    /// As many connections as the process may have descriptors for.
    fn usable(wanted: u32, common: &Common) -> Result<usize, Failure> {
        let needed = u64::from(wanted) + SPARE;
        let permitted = descriptors(needed).map_err(|error| Failure::other(error.to_string()))?;
        if permitted >= needed {
            return Ok(wanted as usize);
        }
        let most = permitted.saturating_sub(SPARE).max(1);
        common.say(&format!(
            "--connections {wanted}: this process may have {permitted} descriptors (ulimit -Hn), enough for {most} connections"
        ));
        Ok(most as usize)
    }

    /// Where clients connect to.
    fn clients(arguments: &Arguments, proxy: &Proxy, place: &Place) -> Vec<String> {
        match arguments.accept {
            Some(port) => {
                let hosts = place.hosts().into_iter();
                hosts.map(|ip| SocketAddr::new(ip, port).to_string()).collect()
            }
            None => proxy.listening_at().iter().map(ToString::to_string).collect(),
        }
    }

    struct Introduction<'a> {
        arguments: &'a Arguments,
        place: &'a Place,
        attached: &'a Attached,
    }

    impl Introduction<'_> {
        fn interface(&self) -> String {
            let text = |all: &[IpAddr]| list(&all.iter().map(ToString::to_string).collect::<Vec<_>>());
            let device = if self.attached.tun {
                "TUN device"
            } else {
                "veth pair"
            };
            format!(
                "our TCP has {} ({device} {}, MTU {}; the kernel there has {})",
                text(&self.place.hosts()),
                self.place.name,
                self.place.mtu,
                text(&self.attached.kernel)
            )
        }

        /// A word about who knows these addresses, where it is likely that nobody else does.
        fn how_far(&self) -> &'static str {
            let given = self.arguments.endpoint.has_address();
            if given || self.arguments.masquerade || self.arguments.accept.is_some() {
                return "";
            }
            "\nOnly this machine knows these addresses; with --masquerade they reach what it reaches"
        }
    }

    fn summary(proxy: &Proxy) -> String {
        let counters = proxy.counters();
        let said = [
            "accepted",
            "open",
            "finished",
            "reset_by_client",
            "reset_by_target",
            "bytes_to_target",
            "bytes_to_client",
        ];
        let others: Vec<String> = counters
            .all()
            .filter(|(name, _, value)| *value > 0 && !said.contains(name))
            .map(|(name, _, value)| format!("{name} {value}"))
            .collect();
        let totals = proxy.host().stack().totals();
        let sent: Vec<String> = sender_counters(&totals)
            .filter(|&(_, value)| value > 0)
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let latency = mean_ack_latency_s(&totals).map_or_else(String::new, |mean| {
            format!(
                "; a segment is acknowledged after {:.1} ms on average",
                mean * 1e3
            )
        });
        let nothing = |items: &[String]| match items {
            [] => String::from("nothing"),
            items => items.join(", "),
        };
        format!(
            "{} ({} open): {} finished, {} reset by the client, {} reset by the target; {} bytes to targets, {} bytes to clients\n\
             clients and targets: {}\nour TCP: {}{latency}\n{}",
            counted(counters.accepted, "connection"),
            counters.open,
            counters.finished,
            counters.reset_by_client,
            counters.reset_by_target,
            counters.bytes_to_target,
            counters.bytes_to_client,
            nothing(&others),
            nothing(&sent),
            packets(&proxy.host().counters()),
        )
    }

    /// Counts of our senders and receivers; times are apart.
    fn sender_counters(totals: &Stats) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let times = ["ack_latency_sum", "ack_latency_count", "longest_recovery"];
        let counters = Stats::COUNTERS.iter();
        counters
            .filter(move |counter| !times.contains(&counter.name))
            .map(|counter| (counter.name, (counter.value)(totals)))
    }

    fn mean_ack_latency_s(totals: &Stats) -> Option<f64> {
        let count = totals.ack_latency_count;
        (count > 0).then(|| totals.ack_latency_sum.as_secs_f64() / count as f64)
    }

    fn tcp_json(totals: &Stats) -> serde_json::Value {
        let mut document: serde_json::Map<_, _> = sender_counters(totals)
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        document.insert("ack_latency_mean_s".into(), mean_ack_latency_s(totals).into());
        document.insert(
            "longest_recovery_s".into(),
            totals.longest_recovery.as_secs_f64().into(),
        );
        document.into()
    }

    fn proxy_json(counters: &Counters) -> serde_json::Value {
        counters
            .all()
            .map(|(name, _, value)| (name.to_owned(), value.into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    const LOCAL: &str = "our TCP is a machine of its own, from which the loopback address of this one cannot be reached; an address of \
        another interface of this machine can be (ip -brief address)";
    /// Where SOCKS proxies usually listen (IANA's port of SOCKS).
    const PORT: u16 = 1080;
    /// Descriptors of the process that are no connections.
    const SPARE: u64 = 64;
}
