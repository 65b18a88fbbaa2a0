//! `fleetfoot router`: forwards between interfaces with a registered queue before each.

use crate::failure::Failure;
use crate::output::Common;
use clap::Args;
use std::path::PathBuf;

/// Flags of `router`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The router's file: interfaces, queues, routes.
    config: PathBuf,
    /// Read the file, say what it describes, and end.
    #[arg(long)]
    check: bool,
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn execute(arguments: &Arguments, _: &Common) -> Result<(), Failure> {
    let _ = (&arguments.config, arguments.check);
    Err(Failure::other("forwarding real packets needs Linux"))
}

#[cfg(target_os = "linux")]
pub(crate) use linux::execute;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Arguments, Common, Failure};
    use crate::output::print;
    use fleetfoot_core::queue::{DropReason, QueueEventKind};
    use fleetfoot_core::units::Rate;
    use fleetfoot_lab::scenario::{LogFormat, RouterFile, router};
    use fleetfoot_live::router::{
        Discard, Event, InterfaceConfig, InterfaceSnapshot, Mode, Router, SignalOrders, Snapshot, Spans,
        interfaces,
    };
    use fleetfoot_live::{Clock, Refusal};
    use serde_json::{Map, Value, json};
    use std::cell::Cell;
    use std::fmt::Write as _;
    use std::io::Write as _;
    use std::path::Path;
    use std::time::{SystemTime, UNIX_EPOCH};

    pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
        let file = read(&arguments.config)?;
        if arguments.check {
            return if common.json {
                print(&format!("{:#}\n", described(&file)))
            } else {
                print(&format!("{}\n", introduction(&file)))
            };
        }
        let (format, read_format) = (Cell::new(file.log), Cell::new(file.log));
        let mut log = |event: Event| {
            // A file that is refused changes nothing.
            if matches!(event, Event::Reloaded { .. }) {
                format.set(read_format.get());
            }
            if !common.quiet {
                write(format.get(), &file, &event);
            }
        };
        let other = |error: fleetfoot_live::Error| Failure::other(error.to_string());
        // Before any thread is started, which would take signals otherwise.
        let mut orders = SignalOrders::take(|| match read(&arguments.config) {
            Ok(file) => {
                read_format.set(file.log);
                Ok(file.config)
            }
            Err(failure) => Err(failure.text().to_owned()),
        })
        .map_err(other)?;
        let clock = Clock::start();
        let mut router = Router::open(file.config.clone(), &mut log).map_err(other)?;
        let ended = router.run(&clock, &mut orders, &mut log).map_err(other);
        let snapshot = router.finish();
        if !common.json {
            common.say(&summary(&snapshot));
            return ended;
        }
        ended?;
        print(&format!("{:#}\n", document(&snapshot)))
    }

    fn read(path: &Path) -> Result<RouterFile, Failure> {
        let there = interfaces().map_err(|error| Failure::other(error.to_string()))?;
        Ok(router(path, &there)?)
    }

    /// The speed of an interface, in words.
    fn speed(interface: &InterfaceConfig) -> String {
        match interface.rate {
            Some(rate) => format!("at {rate}"),
            None => String::from("at line rate"),
        }
    }

    fn introduction(file: &RouterFile) -> String {
        let config = &file.config;
        let outputs: Vec<String> = config
            .interfaces
            .iter()
            .map(|one| format!("{} ({} {})", one.name, one.queue.name, speed(one)))
            .collect();
        match config.mode {
            Mode::Bridge => format!("bridge between {}", outputs.join(" and ")),
            Mode::Route => {
                let routes = match config.routes.len() {
                    1 => String::from("1 route"),
                    count => format!("{count} routes"),
                };
                format!("router between {}, {routes}", outputs.join(", "))
            }
        }
    }

    fn described(file: &RouterFile) -> Value {
        let config = &file.config;
        let interfaces: Vec<Value> = config
            .interfaces
            .iter()
            .map(|one| {
                json!({ "name": one.name, "queue": one.queue.name, "rate_bps": one.rate.map(Rate::bps) })
            })
            .collect();
        let routes: Vec<Value> = config
            .routes
            .iter()
            .map(|route| {
                json!({
                    "to": format!("{}/{}", route.network, route.prefix),
                    "interface": config.interfaces[route.interface].name,
                    "via": route.via.map(|via| via.to_string()),
                })
            })
            .collect();
        json!({
            "schema": "fleetfoot-router", "version": 1,
            "mode": match config.mode { Mode::Bridge => "bridge", Mode::Route => "route" },
            "interfaces": interfaces, "routes": routes, "metrics": config.metrics.map(|address| address.to_string()),
        })
    }

    /// A line of the log.
    fn write(format: LogFormat, file: &RouterFile, event: &Event) {
        let (level, name, fields) = parts(file, event);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = match format {
            LogFormat::Json => {
                let mut object = Map::new();
                object.insert(String::from("time_s"), now.as_secs_f64().into());
                object.insert(String::from("level"), level.into());
                object.insert(String::from("event"), name.into());
                object.extend(
                    fields
                        .into_iter()
                        .map(|(name, text)| (String::from(name), text.into())),
                );
                Value::Object(object).to_string()
            }
            LogFormat::Text => {
                let mut line = format!("{:.3} {level} {name}", now.as_secs_f64());
                for (name, text) in fields {
                    // One line, whatever is quoted in it.
                    let _ = write!(line, " {name}={}", quoted(&text));
                }
                line
            }
        };
        // Nobody may be reading.
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    fn quoted(text: &str) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/,[]".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            text.to_owned()
        } else {
            Value::from(text).to_string()
        }
    }

    type Fields = Vec<(&'static str, String)>;

    fn parts(file: &RouterFile, event: &Event) -> (&'static str, &'static str, Fields) {
        match event {
            Event::Started => ("info", "started", vec![("message", introduction(file))]),
            Event::MetricsAt(address) => {
                let url = format!("http://{address}/metrics");
                ("info", "metrics", vec![("url", url)])
            }
            Event::Reloaded { queues } => {
                let message = "the file was read again; packets of the queues before leave first";
                (
                    "info",
                    "reloaded",
                    vec![("queues", queues.join(",")), ("message", message.into())],
                )
            }
            Event::ReloadRefused(why) => {
                let why = why.trim().trim_start_matches("error: ").to_owned();
                ("error", "reload_refused", vec![("message", why)])
            }
            Event::Interface { name, up } => {
                let state = if *up { "up" } else { "down" };
                (
                    "warning",
                    "interface",
                    vec![("interface", name.clone()), ("state", state.into())],
                )
            }
            Event::Mtu { name, mtu } => (
                "warning",
                "mtu",
                vec![("interface", name.clone()), ("mtu", mtu.to_string())],
            ),
            Event::Twice { name, by } => {
                let message = match by {
                    Some(_) => "the kernel forwards packets of this interface, too: each leaves twice",
                    None => "the kernel forwards packets of this interface no more",
                };
                let mut fields = vec![("interface", name.clone())];
                fields.extend(by.clone().map(|by| ("by", by)));
                fields.push(("message", message.into()));
                ("warning", "twice", fields)
            }
            Event::Aggregates { name } => {
                let message = "frames longer than the MTU come in and are discarded: switch offloads off where they are sent, \
                    ethtool -K IF gro off gso off tso off, or where this interface merges them (ethtool -k IF: rx-gro-hw)";
                (
                    "warning",
                    "aggregates",
                    vec![("interface", name.clone()), ("message", message.into())],
                )
            }
            Event::Xdp {
                name,
                in_driver,
                zero_copy,
                beside_kernel,
            } => {
                let place = if *in_driver {
                    "in the driver"
                } else {
                    "behind the driver"
                };
                let copy = if *zero_copy {
                    "no copy"
                } else {
                    "a copy of each frame"
                };
                let kernel = if *beside_kernel {
                    "only what is for this machine or for all hosts"
                } else {
                    "nothing"
                };
                let message = format!(
                    "AF_XDP: the kernel gets {kernel} of this interface; at the other end of a veth pair VLAN tags and checksums \
                    have to be put into frames, ethtool -K IF tx off txvlan off tx-vlan-stag-hw-insert off"
                );
                (
                    "info",
                    "xdp",
                    vec![
                        ("interface", name.clone()),
                        ("place", place.into()),
                        ("copy", copy.into()),
                        ("message", message),
                    ],
                )
            }
            Event::UnfinishedChecksums { name } => {
                let message = "frames without checksums come in, which are completed here: faster with them, ethtool -K IF tx off \
                    where they are sent";
                (
                    "warning",
                    "unfinished_checksums",
                    vec![("interface", name.clone()), ("message", message.into())],
                )
            }
        }
    }

    /// Counts that are not zero, with their names.
    fn counted(names: impl Iterator<Item = &'static str>, counts: &[u64]) -> Vec<(&'static str, u64)> {
        names
            .zip(counts.iter().copied())
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    fn discards(at: &InterfaceSnapshot) -> Vec<(&'static str, u64)> {
        counted(Discard::ALL.into_iter().map(Discard::name), &at.input.discards)
    }

    fn drops(at: &InterfaceSnapshot) -> Vec<(&'static str, u64)> {
        counted(
            DropReason::ALL.into_iter().map(DropReason::name),
            &at.output.drops,
        )
    }

    fn refusals(at: &InterfaceSnapshot) -> Vec<(&'static str, u64)> {
        counted(Refusal::ALL.into_iter().map(Refusal::name), &at.output.refused)
    }

    fn events(at: &InterfaceSnapshot) -> Vec<(&'static str, u64)> {
        counted(
            QueueEventKind::ALL.into_iter().map(QueueEventKind::name),
            &at.output.events,
        )
    }

    fn summary(snapshot: &Snapshot) -> String {
        let mut text = String::new();
        for at in &snapshot.interfaces {
            let _ = write!(
                text,
                "{}: {} frames in, {} out by {} ({} bytes)",
                at.name, at.input.received, at.output.sent, at.queue, at.output.bytes
            );
            let groups = [
                ("discarded", discards(at)),
                ("dropped", drops(at)),
                ("not taken", refusals(at)),
            ];
            for (what, counts) in groups {
                for (name, count) in counts {
                    let _ = write!(text, "; {what} {name} {count}");
                }
            }
            for (what, count) in [
                ("left to the kernel", at.input.kernel),
                ("not read in time", at.input.missed),
            ] {
                if count > 0 {
                    let _ = write!(text, "; {what} {count}");
                }
            }
            for (name, count) in events(at) {
                let _ = write!(text, "; {name} {count}");
            }
            for (what, spans) in [("read", &at.input.unread), ("handed over", &at.output.lateness)] {
                if let (Some(mean), Some(share)) = (spans.mean(), spans.late_share()) {
                    let _ = write!(
                        text,
                        "; {what} {:.1} us late on average, {:.2} ms at most, {:.2} % more than a millisecond",
                        mean * 1e6,
                        spans.longest_ns as f64 / 1e6,
                        share * 1e2
                    );
                }
            }
            text.push('\n');
        }
        for at in &snapshot.interfaces {
            if at
                .output
                .lateness
                .late_share()
                .is_some_and(|share| share > MOST_LATE)
            {
                let _ = writeln!(
                    text,
                    "warning: the described rate and queue of {} were not kept: this machine was late with more than one frame in a \
                    hundred. Other programs had its cores, or it is too slow; under `chrt --fifo 1` this program runs before ordinary ones",
                    at.name
                );
            }
        }
        let _ = write!(
            text,
            "{} reloads, {} refused; {} ICMP errors",
            snapshot.reloads, snapshot.refused_reloads, snapshot.icmp_errors
        );
        text
    }

    /// Times, and how many are up to 1, 2, 4, ... microseconds.
    fn spans(spans: &Spans) -> Value {
        let classes: Vec<Value> = spans
            .histogram()
            .filter(|(_, frames)| *frames > 0)
            .map(|(end, frames)| json!({ "up_to": end.is_finite().then_some(end), "frames": frames }))
            .collect();
        json!({
            "n": spans.n(), "mean": spans.mean(), "max": (spans.n() > 0).then(|| spans.longest_ns as f64 / 1e9),
            "late_share": spans.late_share(), "histogram": classes,
        })
    }

    fn document(snapshot: &Snapshot) -> Value {
        let object = |counts: Vec<(&'static str, u64)>| -> Value {
            counts
                .into_iter()
                .map(|(name, count)| (String::from(name), count.into()))
                .collect::<Map<_, _>>()
                .into()
        };
        let interfaces: Vec<Value> = snapshot
            .interfaces
            .iter()
            .map(|at| {
                json!({
                    "name": at.name, "queue": at.queue,
                    "received_frames": at.input.received, "received_bytes": at.input.bytes,
                    "kernel_frames": at.input.kernel, "missed_frames": at.input.missed, "discarded": object(discards(at)),
                    "queued_frames": at.output.queued, "sent_frames": at.output.sent, "sent_bytes": at.output.bytes,
                    "dropped": object(drops(at)), "refused": object(refusals(at)), "events": object(events(at)),
                    "waiting_packets": at.waiting_packets,
                    "read_delay_s": spans(&at.input.unread), "queue_delay_s": spans(&at.output.delay),
                    "lateness_s": spans(&at.output.lateness),
                })
            })
            .collect();
        json!({
            "schema": "fleetfoot-router", "version": 1, "interfaces": interfaces, "reloads": snapshot.reloads,
            "refused_reloads": snapshot.refused_reloads, "icmp_errors": snapshot.icmp_errors,
        })
    }

    /// With a larger share of frames that are more than a millisecond late the described rate was not kept.
    const MOST_LATE: f64 = 0.01;
}
