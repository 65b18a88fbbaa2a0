//! Queues that only Fleetfoot has: `fleetfoot router` with its file, in one line for a shell.

use super::line::Framing;
use fleetfoot_core::parameter::Value;
use fleetfoot_core::queue::Limit;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::spec::LinkSpec;

/// The queue of `link` in a bridge between the rest of the network (LAN) and the line (WAN), before what leaves to the line (`out`) or
/// comes from it. Where the bridge holds the line to a rate, `shaped` has that and what the line adds to packets.
pub(super) fn bridge(link: &LinkSpec, shaped: Option<(Rate, &Framing)>, out: bool) -> String {
    let speed = shaped.map_or_else(String::new, |(rate, framing)| {
        let rate = match framing {
            // Of 53 bytes of a cell 48 carry packets (ITU-T I.361), of PTM's 65 bytes 64 (IEEE 802.3, 61.3.3).
            Framing { atm: true, .. } => Rate::from_bps(rate.bps() / 53 * 48),
            Framing { ptm: true, .. } => Rate::from_bps(rate.bps() / 65 * 64),
            _ => rate,
        };
        // The last cell of a packet is half empty on average.
        let bytes = framing.overhead + if framing.atm { 24 } else { 0 };
        // Kilobits: what is left of one would only be digits.
        format!(
            "rate = \"{} kbit/s\"\\nframing = {bytes}\\n",
            (rate.bps() / 1000).max(1)
        )
    });
    let ours = format!("{speed}queue = {{ {} }}\\n", queue(link));
    command(if out {
        [OTHER, &ours]
    } else {
        [ours.as_str(), OTHER]
    })
}

/// The command that writes what is said of each interface, LAN and WAN, and starts the router.
fn command([lan, wan]: [&str; 2]) -> String {
    format!("{BEGIN}{INTERFACE}{lan}{INTERFACE}{wan}{END}")
}

/// Of two commands of [`bridge`], one for each direction of a line, the one that does both: a second router between the same interfaces
/// would not start. `None`: they are no such commands.
pub(super) fn both_ways(first: &str, second: &str) -> Option<String> {
    let interfaces = |text: &str| -> Option<[String; 2]> {
        let text = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
        let (lan, wan) = text.strip_prefix(INTERFACE)?.split_once(INTERFACE)?;
        Some([lan.to_owned(), wan.to_owned()])
    };
    match [interfaces(first)?, interfaces(second)?] {
        [[lan, other], [same, wan]] | [[same, wan], [lan, other]]
            if other == OTHER && same == OTHER && lan != OTHER && wan != OTHER =>
        {
            Some(command([&lan, &wan]))
        }
        _ => None,
    }
}

const BEGIN: &str = "LAN=eth1; WAN=eth0; printf 'mode = \"bridge\"\\n";
const INTERFACE: &str = "[[interface]]\\nname = \"%s\"\\n";
/// What stands before the interface that is not asked for.
const OTHER: &str = "queue = { kind = \"fq-codel\" }\\n";
const END: &str = "' $LAN $WAN > router.toml && fleetfoot router router.toml";

/// The discipline with what differs from its defaults.
fn queue(link: &LinkSpec) -> String {
    let values = &link.queue_values;
    let mut words = vec![format!("kind = \"{}\"", link.queue)];
    for parameter in values.table() {
        let name = parameter.name;
        let value = values.value(name);
        if value == parameter.default && name != "limit" {
            continue;
        }
        let written = match value {
            Value::Auto => continue,
            Value::Limit(Limit::Packets(packets)) => format!("\"{packets} packets\""),
            Value::Limit(Limit::Bytes(bytes)) => format!("\"{bytes}\""),
            Value::Limit(Limit::Unlimited) => String::from("\"unlimited\""),
            Value::Duration(span) => format!("\"{span}\""),
            Value::Bytes(bytes) => format!("\"{bytes}\""),
            Value::Rate(rate) => format!("\"{rate}\""),
            Value::Number(number) => number.to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::Choice(word) => format!("\"{word}\""),
        };
        words.push(format!("{name} = {written}"));
    }
    words.join(", ")
}
