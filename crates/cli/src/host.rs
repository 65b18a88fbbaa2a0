//! `fleetfoot host`: our TCP as a host on real packets, to serve and to fetch.

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::output::Common;
use clap::{Args, Subcommand};
use std::ffi::OsString;
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
    use super::{Action, Arguments, Common, Failure, Fetch, Serve};
    use crate::endpoint::{attach, counters_json, list, packets};
    use crate::output::{counted, print};
    use crate::target::Targets;
    use fleetfoot_live::host::{Attached, Counters, Place};
    use fleetfoot_live::service::fetch::{self, Fetched, Url, fetch};
    use fleetfoot_live::service::{Folder, Served, Server, Service};
    use fleetfoot_live::{Shell, beside};
    use std::io::Write as _;
    use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
    use std::os::fd::AsFd;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::Command;

    /// What helps where devices are not permitted.
    const OWN_NETWORK: &str = "`fleetfoot shell` brings a network of its own, also without root";

    pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
        match &arguments.action {
            Action::Serve(arguments) => serve(arguments, common),
            Action::Fetch(arguments) => get(arguments, common),
        }
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
        let place = endpoint.place()?;
        let (service, scheme, usual) = service(&arguments.what)?;
        let port = arguments.listen.unwrap_or(usual);
        let alone = arguments.command.is_empty();
        if !alone {
            Shell::isolate().map_err(|error| Failure::other(error.to_string()))?;
        }
        let hint = if alone {
            "without root a host needs a network of its own, with a command beside it: fleetfoot host serve ... -- COMMAND"
        } else {
            OWN_NETWORK
        };
        let attached = attach(&place, hint)?;
        let about = introduction(&place, &attached, scheme, port, usual);
        let host = endpoint.host(&place, attached)?;
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
            command.stdout(
                stderr.map_err(|cause| fleetfoot_live::Error::new("cannot use standard error", cause))?,
            );
        }
        Ok(command)
    }

    fn get(arguments: &Fetch, common: &Common) -> Result<(), Failure> {
        let endpoint = &arguments.endpoint;
        endpoint.tcp()?;
        let place = endpoint.place()?;
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
        let attached = attach(&place, OWN_NETWORK)?;
        let mut host = endpoint.host(&place, attached)?;
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
        let urls: Vec<String> = place
            .hosts()
            .into_iter()
            .map(|ip| url(scheme, ip, port, usual))
            .collect();
        let device = if attached.tun { "TUN device" } else { "veth pair" };
        let kernel: Vec<String> = attached.kernel.iter().map(ToString::to_string).collect();
        format!(
            "{scheme} at {} ({device} {}, MTU {}; the kernel there has {})",
            list(&urls),
            place.name,
            place.mtu,
            list(&kernel)
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

    fn served_json(served: &Served) -> serde_json::Value {
        serde_json::json!({
            "connections": served.connections, "failed": served.failed, "received_bytes": served.received,
            "sent_bytes": served.sent, "answered": served.answered, "refused": served.refused,
        })
    }
}
