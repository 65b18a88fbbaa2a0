//! `fleetfoot host`: our TCP as a host on real packets, to serve and to fetch.

use crate::failure::Failure;
use crate::output::Common;
use clap::{Args, Subcommand};
use fleetfoot_core::tcp::Config;
use fleetfoot_lab::scenario::{Setting, endpoint};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

/// Flags of `host`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Serve a folder over HTTP, or one of the services echo, discard and chargen, until Ctrl-C or the command ends.
    Serve(Serve),
    /// Fetch a file over HTTP.
    Fetch(Fetch),
}

#[derive(Debug, Args)]
struct Serve {
    /// A folder (HTTP, port 80), echo (port 7), discard (port 9) or chargen (port 19). A folder with such a name: ./echo.
    what: PathBuf,
    /// Port to listen on.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    listen: Option<u16>,
    /// Connections that may wait to be accepted, 0 to 4096; when as many wait, SYNs are dropped, and when as many are half-open they
    /// are answered with cookies.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(0..=4096))]
    backlog: u16,
    #[command(flatten)]
    endpoint: Endpoint,
    /// A command to run beside the host, in a network of its own; $FLEETFOOT_URL, $FLEETFOOT_HOST and $FLEETFOOT_HOST6 say where the
    /// host is.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct Fetch {
    /// http://ADDRESS[:PORT]/PATH
    url: String,
    /// Write here; without it to standard output. The file appears when all of it has arrived.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write over a file that exists.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    endpoint: Endpoint,
}

/// The host itself.
#[derive(Debug, Args)]
struct Endpoint {
    /// Address of the host, with the length of the prefix that it shares with this machine: 10.9.0.2/24; once for each family. Without
    /// it $FLEETFOOT_ADDRESS, or addresses that belong to this process.
    #[arg(long, value_name = "ADDRESS/PREFIX", value_parser = address)]
    address: Vec<(IpAddr, u8)>,
    /// Name of the interface.
    #[arg(long, value_name = "NAME", value_parser = interface)]
    tun: Option<String>,
    /// A veth pair even where a TUN device could be made.
    #[arg(long)]
    veth: bool,
    /// MTU of the interface.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=65_535))]
    mtu: u32,
    /// A scenario file, or one with nothing but [tcp]: its [tcp] is the host's.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Change a switch, as in a scenario file: --set tcp.congestion_control=cubic.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Endpoint {
    fn tcp(&self) -> Result<Config, Failure> {
        let mut set = Setting::from_origin("--set");
        for argument in &self.set {
            set = set.with_argument(argument)?;
        }
        if let Some((path, _)) = set.iter().find(|(path, _)| !path.starts_with("tcp.")) {
            return Err(Failure::usage(format!(
                "--set {path}: a host has the switches under tcp, such as --set tcp.congestion_control=cubic"
            )));
        }
        let mut config = endpoint(self.config.as_deref(), &set)?;
        config.mtu = self.mtu;
        Ok(config)
    }
}

/// An address and the length of its prefix.
fn address(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || String::from("an address and the length of its prefix are wanted: 10.9.0.2/24");
    let (ip, length) = text.split_once('/').ok_or_else(wrong)?;
    let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
    let length: u8 = length.parse().map_err(|_| wrong())?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    if length == 0 || length > most {
        return Err(format!("the length of the prefix is 1 to {most}"));
    }
    if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
        return Err(String::from("this is not the address of one host on a network"));
    }
    if let IpAddr::V4(four) = ip
        && length < 31
    {
        let mask = u32::MAX >> length;
        if four.to_bits() & mask == 0 || four.to_bits() & mask == mask {
            return Err(String::from(
                "this is the address of a network, not of a host in it",
            ));
        }
    }
    Ok((ip, length))
}

fn interface(text: &str) -> Result<String, String> {
    let fits = (1..=15).contains(&text.len())
        && text != "."
        && text != ".."
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"/:%".contains(&byte));
    fits.then(|| text.to_owned())
        .ok_or_else(|| String::from("1 to 15 letters are wanted, without space, slash, colon and percent"))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn execute(arguments: &Arguments, _: &Common) -> Result<(), Failure> {
    let (Action::Serve(Serve { endpoint, .. }) | Action::Fetch(Fetch { endpoint, .. })) = &arguments.action;
    endpoint.tcp()?;
    Err(Failure::usage("host needs Linux: it is built on TUN devices"))
}

#[cfg(target_os = "linux")]
pub(crate) use linux::execute;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Action, Arguments, Common, Endpoint, Failure, Fetch, Serve};
    use crate::output::{counted, print};
    use crate::target::Targets;
    use fleetfoot_live::host::{Attached, Counters, Host, HostConfig, Place};
    use fleetfoot_live::service::fetch::{self, Fetched, Url, fetch};
    use fleetfoot_live::service::{Folder, Served, Server, Service};
    use fleetfoot_live::{Shell, beside};
    use std::io::Write as _;
    use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
    use std::os::fd::AsFd;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::Command;

    pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
        match &arguments.action {
            Action::Serve(arguments) => serve(arguments, common),
            Action::Fetch(arguments) => get(arguments, common),
        }
    }

    /// Takes the place of the host: who it is on the network.
    fn place(endpoint: &Endpoint) -> Result<Place, Failure> {
        let mut place = Place::numbered(unpredictable() as u32);
        place.mtu = endpoint.mtu;
        place.veth = endpoint.veth;
        if let Some(name) = &endpoint.tun {
            place.name.clone_from(name);
        }
        if !endpoint.address.is_empty() {
            place.addresses.clone_from(&endpoint.address);
        } else if let Ok(given) = std::env::var("FLEETFOOT_ADDRESS") {
            let read: Result<Vec<_>, _> = given.split_whitespace().map(super::address).collect();
            place.addresses =
                read.map_err(|why| Failure::usage(format!("$FLEETFOOT_ADDRESS {given:?}: {why}")))?;
        }
        let same = |four: bool| {
            place
                .addresses
                .iter()
                .filter(|(ip, _)| ip.is_ipv4() == four)
                .count()
        };
        if same(true) > 1 || same(false) > 1 {
            return Err(Failure::usage(
                "--address: one of each family is what a host has here",
            ));
        }
        Ok(place)
    }

    fn attach(place: &Place, alone: bool) -> Result<Attached, Failure> {
        place.attach().map_err(|error| {
            let denied = error.cause.kind() == std::io::ErrorKind::PermissionDenied;
            let hint = if denied || error.to_string().contains("not permitted") {
                if alone {
                    "\nwithout root a host needs a network of its own, with a command beside it: fleetfoot host serve ... -- COMMAND"
                } else {
                    "\n`fleetfoot shell` brings a network of its own, also without root"
                }
            } else {
                ""
            };
            Failure::other(format!("{error}{hint}"))
        })
    }

    fn host(endpoint: &Endpoint, place: &Place, attached: Attached) -> Result<Host, Failure> {
        let config = HostConfig {
            addresses: place.hosts(),
            tcp: endpoint.tcp()?,
            seed: unpredictable(),
        };
        Ok(Host::new(attached.device, config))
    }

    /// What others on the network cannot know: sequence numbers and ports come from it.
    fn unpredictable() -> u64 {
        use std::hash::{BuildHasher, Hasher};
        std::collections::hash_map::RandomState::new()
            .build_hasher()
            .finish()
    }

    fn service(what: &Path) -> Result<(Service, &'static str, u16), Failure> {
        Ok(match what.to_str() {
            Some("echo") => (Service::Echo, "echo", 7),
            Some("discard") => (Service::Discard, "discard", 9),
            Some("chargen") => (Service::Chargen, "chargen", 19),
            _ => {
                let folder = Folder::new(what).map_err(|error| {
                    let what = what.display();
                    Failure::usage(format!(
                        "{what} cannot be served: {}; what can be: a folder, echo, discard, chargen",
                        fleetfoot_lab::input::reason(&error)
                    ))
                })?;
                (Service::Files(folder), "http", 80)
            }
        })
    }

    fn serve(arguments: &Serve, common: &Common) -> Result<(), Failure> {
        let endpoint = &arguments.endpoint;
        endpoint.tcp()?;
        let place = place(endpoint)?;
        let (service, scheme, usual) = service(&arguments.what)?;
        let port = arguments.listen.unwrap_or(usual);
        let alone = arguments.command.is_empty();
        if !alone {
            Shell::isolate().map_err(|error| Failure::other(error.to_string()))?;
        }
        let attached = attach(&place, alone)?;
        let about = introduction(&place, &attached, scheme, port, usual);
        let host = host(endpoint, &place, attached)?;
        let any: IpAddr = if place.addresses.iter().any(|(ip, _)| ip.is_ipv6()) {
            std::net::Ipv6Addr::UNSPECIFIED.into()
        } else {
            std::net::Ipv4Addr::UNSPECIFIED.into()
        };
        let mut server = Server::new(
            host,
            SocketAddr::new(any, port),
            arguments.backlog.into(),
            service,
        )
        .map_err(|errno| Failure::other(format!("cannot listen on port {port}: {errno}")))?;
        common.say(&about);
        let status = if alone {
            let (reading, writing) = std::io::pipe().map_err(|error| Failure::other(error.to_string()))?;
            crate::session::tell_of_stop(writing);
            server.run(&reading).map(|()| None)
        } else {
            // The command gets Ctrl-C, and decides what becomes of it.
            command(arguments, &place, port, common.json)
                .and_then(|command| beside(command, |ended| server.run(ended)))
                .map(|((), status)| Some(status))
        };
        let ended = server.end();
        let status = status.map_err(|error| Failure::other(error.to_string()))?;
        ended.map_err(|error| Failure::other(error.to_string()))?;
        let code = status.map(|status| {
            status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
        });
        let counters = server.host().counters();
        if common.json {
            let document = serde_json::json!({
                "schema": "fleetfoot-host", "version": 1, "role": "serve", "interface": place.name,
                "addresses": place.hosts(), "port": port, "exit_code": code,
                "served": served_json(&server.served()), "counters": counters_json(&counters),
            });
            print(&format!("{document:#}\n"))?;
        } else {
            common.say(&summary(&server.served(), &counters));
        }
        match code {
            None | Some(0) => Ok(()),
            Some(code) => std::process::exit(code),
        }
    }

    /// The command that runs beside the host.
    fn command(
        arguments: &Serve,
        place: &Place,
        port: u16,
        to_stderr: bool,
    ) -> Result<Command, fleetfoot_live::Error> {
        let mut command = Command::new(&arguments.command[0]);
        command.args(&arguments.command[1..]);
        for (ip, _) in &place.addresses {
            let name = if ip.is_ipv4() {
                "FLEETFOOT_HOST"
            } else {
                "FLEETFOOT_HOST6"
            };
            command.env(name, ip.to_string());
        }
        command.env("FLEETFOOT_URL", url("http", place.hosts()[0], port, 80));
        if to_stderr {
            let stderr = std::io::stderr().as_fd().try_clone_to_owned();
            command.stdout(stderr.map_err(|cause| fleetfoot_live::Error {
                what: String::from("cannot use standard error"),
                cause,
            })?);
        }
        Ok(command)
    }

    fn get(arguments: &Fetch, common: &Common) -> Result<(), Failure> {
        let endpoint = &arguments.endpoint;
        endpoint.tcp()?;
        let place = place(endpoint)?;
        let url: Url = arguments.url.parse().map_err(Failure::usage)?;
        let to = resolved(&url, &place)?;
        if common.json && arguments.output.is_none() {
            return Err(Failure::usage(
                "--json needs --output FILE: standard output is the document's",
            ));
        }
        let mut targets = Targets::reading([], arguments.force);
        let target = arguments.output.as_deref();
        let target = target.map(|path| targets.file("--output", path)).transpose()?;
        let attached = attach(&place, false)?;
        let mut host = host(endpoint, &place, attached)?;
        let (reading, writing) = std::io::pipe().map_err(|error| Failure::other(error.to_string()))?;
        crate::session::tell_of_stop(writing);
        let (mut output, part): (Box<dyn std::io::Write>, _) = match target.as_ref() {
            Some(target) => {
                let (file, part) = target.begin()?;
                (Box::new(file), Some(part))
            }
            None => (Box::new(std::io::stdout().lock()), None),
        };
        let fetched = fetch(&mut host, to, &url, &mut output, &reading)
            .and_then(|fetched| output.flush().map(|()| fetched).map_err(fetch::Failure::Output));
        let counters = host.counters();
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(fetch::Failure::Stopped) => return Err(Failure::interrupted()),
            Err(fetch::Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                return Err(Failure::closed_pipe());
            }
            Err(error) => return Err(Failure::other(format!("{}: {error}", arguments.url))),
        };
        drop(output);
        if let Some(part) = part {
            part.keep()?;
        }
        if common.json {
            let document = serde_json::json!({
                "schema": "fleetfoot-host", "version": 1, "role": "fetch", "interface": place.name,
                "addresses": place.hosts(), "url": arguments.url, "status": fetched.status, "bytes": fetched.bytes,
                "connected_s": fetched.connected.as_secs_f64(), "first_byte_s": fetched.first_byte.as_secs_f64(),
                "took_s": fetched.took.as_secs_f64(), "goodput_bps": goodput(&fetched),
                "retransmits": fetched.retransmitted, "counters": counters_json(&counters),
            });
            print(&format!("{document:#}\n"))?;
        } else {
            common.say(&format!(
                "{} bytes in {:.3} s ({:.2} Mbit/s); connected after {:.1} ms, first byte after {:.1} ms\n{}",
                fetched.bytes,
                fetched.took.as_secs_f64(),
                goodput(&fetched) / 1e6,
                fetched.connected.as_secs_f64() * 1e3,
                fetched.first_byte.as_secs_f64() * 1e3,
                packets(&counters),
            ));
        }
        Ok(())
    }

    /// The address of a family that the host has.
    fn resolved(url: &Url, place: &Place) -> Result<SocketAddr, Failure> {
        let has = |ip: IpAddr| {
            place
                .addresses
                .iter()
                .any(|(own, _)| own.is_ipv4() == ip.is_ipv4())
        };
        let found = (url.host.as_str(), url.port)
            .to_socket_addrs()
            .map_err(|error| Failure::other(format!("{}: no address is known: {error}", url.host)))?;
        let found = found
            .into_iter()
            .find(|address| has(address.ip()))
            .ok_or_else(|| {
                Failure::other(format!("{}: no address of a family that the host has", url.host))
            })?;
        if found.ip().is_loopback() {
            let others = "an address of another interface of this machine can be (ip -brief address)";
            return Err(Failure::usage(format!(
                "{}: the host is a machine of its own, from which the loopback address of this one cannot be reached; {others}",
                url.host
            )));
        }
        Ok(found)
    }

    fn goodput(fetched: &Fetched) -> f64 {
        let seconds = fetched.took.as_secs_f64();
        if seconds > 0.0 {
            fetched.bytes as f64 * 8.0 / seconds
        } else {
            0.0
        }
    }

    fn url(scheme: &str, ip: IpAddr, port: u16, usual: u16) -> String {
        let ip = match ip {
            IpAddr::V4(four) => four.to_string(),
            IpAddr::V6(six) => format!("[{six}]"),
        };
        match (scheme, port == usual) {
            ("http", true) => format!("http://{ip}/"),
            ("http", false) => format!("http://{ip}:{port}/"),
            _ => format!("{ip} port {port}"),
        }
    }

    fn introduction(place: &Place, attached: &Attached, scheme: &str, port: u16, usual: u16) -> String {
        let list = |items: Vec<String>| items.join(" and ");
        let urls = place
            .hosts()
            .into_iter()
            .map(|ip| url(scheme, ip, port, usual))
            .collect();
        let device = if attached.tun { "TUN device" } else { "veth pair" };
        let kernel = attached.kernel.iter().map(ToString::to_string).collect();
        format!(
            "{scheme} at {} ({device} {}, MTU {}; the kernel there has {})",
            list(urls),
            place.name,
            place.mtu,
            list(kernel)
        )
    }

    fn summary(served: &Served, counters: &Counters) -> String {
        let mut text = format!(
            "{} ({} failed), {} bytes received, {} bytes sent",
            counted(served.connections, "connection"),
            served.failed,
            served.received,
            served.sent
        );
        if served.answered + served.refused > 0 {
            text += &format!(
                "; {} answered, {} refused",
                counted(served.answered, "request"),
                served.refused
            );
        }
        text + "\n" + &packets(counters)
    }

    /// Packets, and whatever else was counted.
    fn packets(counters: &Counters) -> String {
        let others: Vec<String> = counters
            .all()
            .filter(|(name, _, value)| {
                let usual = [
                    "packets_in",
                    "bytes_in",
                    "packets_out",
                    "bytes_out",
                    "accepted",
                    "opened",
                    "most_bytes_held",
                ];
                *value > 0 && !usual.contains(name)
            })
            .map(|(name, _, value)| format!("{name} {value}"))
            .collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            format!("; {}", others.join(", "))
        };
        format!(
            "packets: {} in, {} out{others}",
            counters.packets_in, counters.packets_out
        )
    }

    fn counters_json(counters: &Counters) -> serde_json::Value {
        counters
            .all()
            .map(|(name, _, value)| (name.to_owned(), value.into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    fn served_json(served: &Served) -> serde_json::Value {
        serde_json::json!({
            "connections": served.connections, "failed": served.failed, "received_bytes": served.received,
            "sent_bytes": served.sent, "answered": served.answered, "refused": served.refused,
        })
    }
}
