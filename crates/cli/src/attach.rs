//! `fleetfoot attach`, `detach`, `list --attached`: mechanisms in this machine's kernel.

use crate::failure::Failure;
use crate::output::Common;
use clap::{Args, ValueEnum};
use fleetfoot_core::time::Duration;

/// Flags of `attach`.
#[derive(Debug, Args)]
#[command(after_help = ATTACH_HELP)]
pub(crate) struct Attach {
    /// What to attach.
    name: Name,
    #[command(flatten)]
    place: PlaceFlags,
    /// First window of new connections: spread (11 or more, without which nothing is spread), options.
    #[arg(long, value_name = "SEGMENTS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    initial_window: Option<u32>,
    /// Options: least time before a sender sends again. The kernel takes two of its ticks to 200 ms.
    #[arg(long, value_name = "TIME", value_parser = time)]
    rto_min: Option<Duration>,
    /// Options: longest time for which an acknowledgment is held back. The kernel takes two of its ticks to 200 ms.
    #[arg(long, value_name = "TIME", value_parser = time)]
    delayed_ack_max: Option<Duration>,
    /// Mark: the interface whose outgoing packets are marked.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Mark: packets that a group announces, 2 to 63 [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=63))]
    length: Option<u8>,
    /// Mark: where marks stand in the header of IPv4 [default: b].
    #[arg(long)]
    layout: Option<Layout>,
    /// Mark: codepoint of layout b, 1 to 63 [default: 3].
    #[arg(long, value_name = "DSCP", value_parser = clap::value_parser!(u8).range(1..=63))]
    codepoint: Option<u8>,
}

/// Flags of `detach`.
#[derive(Debug, Args)]
pub(crate) struct Detach {
    /// What to take away; without a place from everywhere.
    name: Name,
    #[command(flatten)]
    place: PlaceFlags,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct PlaceFlags {
    /// New connections of this network namespace (ip netns).
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// New connections of the network namespace that this process is in.
    #[arg(long)]
    default: bool,
    /// New connections of the network namespace of a process; sockets that exist keep what they have.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// CAIA Delay-Gradient, as congestion control ff_cdg.
    Cdg,
    /// New-CWV (RFC 7661) over CUBIC, as congestion control ff_newcwv.
    Newcwv,
    /// CUBIC with a larger first window, whose segments from the eleventh on are spread, as congestion control ff_spread.
    Spread,
    /// Initial window, RTO minimum and delayed ACK maximum of new connections.
    Options,
    /// Marks of super-packets on outgoing packets, without holding them.
    Mark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Layout {
    /// Type of service and identification, as published: for closed testbeds.
    A,
    /// A local codepoint and the identification.
    B,
}

const ATTACH_HELP: &str = "\
Without a place a congestion control is only made known: programs choose it with setsockopt(TCP_CONGESTION),
and options and mark take the namespace that this process is in. What is attached stays until detach or a
restart of the machine.";

fn time(text: &str) -> Result<Duration, String> {
    let span = fleetfoot_lab::scenario::duration(text)
        .ok_or_else(|| String::from("a time with its unit is wanted: 10ms"))?;
    if (Duration::from_millis(2)..=Duration::from_millis(200)).contains(&span) {
        Ok(span)
    } else {
        Err(String::from("the kernel takes 2ms to 200ms"))
    }
}

impl Attach {
    /// Flags that say nothing to this program are refused.
    fn check(&self) -> Result<(), Failure> {
        use Name::{Mark, Options, Spread};
        let given: [(&str, bool, &[Name]); 7] = [
            (
                "--initial-window",
                self.initial_window.is_some(),
                &[Spread, Options],
            ),
            ("--rto-min", self.rto_min.is_some(), &[Options]),
            ("--delayed-ack-max", self.delayed_ack_max.is_some(), &[Options]),
            ("--interface", self.interface.is_some(), &[Mark]),
            ("--length", self.length.is_some(), &[Mark]),
            ("--layout", self.layout.is_some(), &[Mark]),
            ("--codepoint", self.codepoint.is_some(), &[Mark]),
        ];
        let idle = given
            .iter()
            .find(|(_, given, names)| *given && !names.contains(&self.name));
        if let Some((flag, _, names)) = idle {
            let names: Vec<&str> = names.iter().map(|name| name.word()).collect();
            return Err(Failure::usage(format!(
                "{flag} says nothing to {}; it is for {}",
                self.name.word(),
                names.join(" and ")
            )));
        }
        let given = |flags: &[&str]| {
            given
                .iter()
                .any(|(flag, given, _)| *given && flags.contains(flag))
        };
        match self.name {
            Spread if self.initial_window.is_none_or(|segments| segments < 11) => Err(Failure::usage(
                "spread needs --initial-window of 11 or more: the kernel never spreads the first ten segments",
            )),
            Options if !given(&["--initial-window", "--rto-min", "--delayed-ack-max"]) => {
                Err(Failure::usage(
                    "options needs at least one of --initial-window, --rto-min, --delayed-ack-max",
                ))
            }
            Mark if self.interface.is_none() => Err(Failure::usage("mark needs --interface")),
            Mark if self.layout == Some(Layout::A) && self.codepoint.is_some() => {
                Err(Failure::usage("--codepoint is for --layout b"))
            }
            _ => Ok(()),
        }
    }
}

impl Name {
    fn word(self) -> &'static str {
        match self {
            Name::Cdg => "cdg",
            Name::Newcwv => "newcwv",
            Name::Spread => "spread",
            Name::Options => "options",
            Name::Mark => "mark",
        }
    }
}

pub(crate) fn attach(arguments: &Attach, common: &Common) -> Result<(), Failure> {
    arguments.check()?;
    kernel::attach(arguments, common)
}

pub(crate) use kernel::{detach, list};

#[cfg(not(all(target_os = "linux", feature = "bpf")))]
mod kernel {
    use super::{Attach, Common, Detach, Failure};

    pub(crate) fn attach(arguments: &Attach, _: &Common) -> Result<(), Failure> {
        let _ = (
            &arguments.place.namespace,
            arguments.place.default,
            arguments.place.pid,
        );
        Err(unavailable())
    }

    pub(crate) fn detach(arguments: &Detach, _: &Common) -> Result<(), Failure> {
        let _ = (arguments.name, &arguments.place);
        Err(unavailable())
    }

    pub(crate) fn list(_: &Common) -> Result<(), Failure> {
        Err(unavailable())
    }

    fn unavailable() -> Failure {
        Failure::other(if cfg!(target_os = "linux") {
            "this program was built without programs for the kernel: cargo build --release --locked --features bpf -p fleetfoot-cli \
             (Debian packages: clang libbpf-dev libelf-dev zlib1g-dev pkg-config make)"
        } else {
            "programs for the kernel need Linux; simulation works here"
        })
    }
}

#[cfg(all(target_os = "linux", feature = "bpf"))]
mod kernel {
    use super::{Attach, Common, Detach, Failure, Layout, Name, PlaceFlags};
    use crate::output::print;
    use fleetfoot_core::time::Duration;
    use fleetfoot_live::bpf::{self, Attached, Place, Program, Settings};
    use serde_json::{Value, json};
    use std::fmt::Write;

    pub(crate) fn attach(arguments: &Attach, common: &Common) -> Result<(), Failure> {
        let program = arguments.name.program();
        let place = arguments.place.place();
        let us = |span: Option<Duration>| span.map(|span| span.as_micros().min(u64::from(u32::MAX)) as u32);
        let ours = Settings::default();
        let settings = Settings {
            initial_window: arguments.initial_window,
            rto_min_us: us(arguments.rto_min),
            delayed_ack_max_us: us(arguments.delayed_ack_max),
            interface: arguments.interface.clone(),
            length: arguments.length.unwrap_or(ours.length),
            codepoint: match arguments.layout {
                Some(Layout::A) => 0,
                Some(Layout::B) | None => arguments.codepoint.unwrap_or(ours.codepoint),
            },
            trace: false,
        };
        bpf::attach(program, place.as_ref(), &settings).map_err(|error| failure(&error))?;
        let mut list = bpf::attached().map_err(|error| failure(&error))?;
        list.retain(|attached| attached.program == program);
        show("attached", &list, common)
    }

    pub(crate) fn detach(arguments: &Detach, common: &Common) -> Result<(), Failure> {
        let place = arguments.place.place();
        let taken = bpf::detach(arguments.name.program(), place.as_ref()).map_err(|error| failure(&error))?;
        show("detached", &taken, common)
    }

    pub(crate) fn list(common: &Common) -> Result<(), Failure> {
        let list = bpf::attached().map_err(|error| failure(&error))?;
        show("attached", &list, common)
    }

    fn show(what: &str, list: &[Attached], common: &Common) -> Result<(), Failure> {
        if common.json {
            let rows: Vec<Value> = list.iter().map(document).collect();
            let document = json!({ "schema": "fleetfoot-attached", "version": 1, what: rows });
            return print(&format!("{document:#}\n"));
        }
        let mut text = String::new();
        for attached in list {
            line(&mut text, what, attached);
        }
        if list.is_empty() {
            let _ = writeln!(
                text,
                "nothing {}",
                if what == "attached" {
                    "is attached"
                } else {
                    "was complete"
                }
            );
        }
        print(&text)
    }

    fn line(text: &mut String, what: &str, attached: &Attached) {
        let program = attached.program;
        let name = match program.control() {
            Some(control) => format!("{} ({control})", program.name()),
            None => program.name().to_owned(),
        };
        let place = match (attached.place.as_str(), program.control()) {
            ("", Some(_)) if what == "detached" => String::from("no longer known to the kernel"),
            ("", Some(_)) => String::from("known to the kernel"),
            (place, Some(_)) => format!("default of {place}"),
            (place, None) => place.to_owned(),
        };
        let mut parts = vec![place];
        parts.extend(Some(attached.settings.clone()).filter(|settings| !settings.is_empty()));
        if !attached.previous.is_empty() {
            let before = if what == "attached" { "before" } else { "again" };
            parts.push(format!("{before} {}", attached.previous));
        }
        parts.extend(
            attached
                .counters
                .iter()
                .map(|(name, count)| format!("{count} {name}")),
        );
        parts.extend(Some(attached.state.clone()).filter(|state| !state.is_empty()));
        let _ = writeln!(text, "{name:20} {}", parts.join("; "));
    }

    fn document(attached: &Attached) -> Value {
        let counters = attached
            .counters
            .iter()
            .map(|(name, count)| ((*name).to_owned(), json!(count)));
        json!({
            "name": attached.program.name(), "congestion_control": attached.program.control(),
            "place": attached.place, "settings": attached.settings, "previous": attached.previous,
            "state": attached.state, "counters": counters.collect::<serde_json::Map<_, _>>(),
        })
    }

    /// What the user can mend is usage.
    fn failure(error: &fleetfoot_live::Error) -> Failure {
        if error.cause.kind() == std::io::ErrorKind::InvalidInput {
            return Failure::usage(error.what.clone());
        }
        Failure::other(error.to_string())
    }

    impl Name {
        fn program(self) -> Program {
            match self {
                Name::Cdg => Program::Cdg,
                Name::Newcwv => Program::NewCwv,
                Name::Spread => Program::Spread,
                Name::Options => Program::Options,
                Name::Mark => Program::Mark,
            }
        }
    }

    impl PlaceFlags {
        fn place(&self) -> Option<Place> {
            match (&self.namespace, self.pid) {
                (Some(name), _) => Some(Place::Named(name.clone())),
                (None, Some(id)) => Some(Place::Process(id)),
                (None, None) => self.default.then_some(Place::Here),
            }
        }
    }
}
