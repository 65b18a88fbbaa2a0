//! `fleetfoot mark`: super-packets for hosts that know nothing of them.

use crate::failure::Failure;
use clap::Args;
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::superpacket::group::Grouping;
use fleetfoot_core::superpacket::marker::Marking;
use fleetfoot_core::time::Duration;
use std::ffi::OsString;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Flags of `mark`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Mark what passes from INSIDE to OUTSIDE, two interfaces that are there, until Ctrl-C; the other way passes unchanged. Root only.
    #[arg(long, value_name = "INSIDE,OUTSIDE", value_parser = pair, conflicts_with_all = ["command", "far", "masquerade"])]
    between: Option<(String, String)>,
    /// Where marks stand: A or B for IPv4, C for IPv6; one of each version, separated by a comma: B,C. What has no layout is not
    /// marked.
    #[arg(long, value_name = "NAMES", value_parser = layouts, default_value = "B")]
    layout: Layouts,
    /// Layout B: the DSCP that says that the identification carries a mark.
    #[arg(long, value_name = "DSCP", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=63))]
    codepoint: u8,
    /// A super-packet is complete when its flow was silent for this long: 60us by default, not longer than --hold.
    #[arg(long, value_name = "TIME", value_parser = time)]
    t_buffer: Option<Duration>,
    /// Longest time that a packet is held, from 1us to 100ms; by default --t-buffer.
    #[arg(long, value_name = "TIME", value_parser = time)]
    hold: Option<Duration>,
    /// Most packets of a super-packet, 2 to 63, with layout C alone to 255.
    #[arg(long, value_name = "N", default_value_t = Grouping::MAX, value_parser = clap::value_parser!(u8).range(2..))]
    max_packets: u8,
    /// What a program writes at once is complete with its last segment (PSH), which is then not held.
    #[arg(long)]
    by_write: bool,
    /// Mark UDP, too.
    #[arg(long)]
    udp: bool,
    /// Mark only packets from or to this port, or one of a range: 443, 8000-8080; may be given several times.
    #[arg(long, value_name = "PORT[-PORT]", value_parser = ports)]
    port: Vec<RangeInclusive<u16>>,
    /// Mark only packets to addresses of this network: 10.0.0.0/8, fd00::/8; may be given several times.
    #[arg(long, value_name = "ADDRESS/PREFIX", value_parser = network)]
    to: Vec<(IpAddr, u8)>,
    /// MTU of the command's interface.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1280..=65_535), conflicts_with = "between")]
    mtu: Option<u32>,
    /// A command to start first at the far end, which is then a network of its own: --far "python3 -m http.server 80".
    #[arg(long, value_name = "COMMAND")]
    far: Option<String>,
    /// The command reaches the networks that this machine reaches (root only; needs nft). It is undone when the command ends.
    #[arg(long, conflicts_with = "far")]
    masquerade: bool,
    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Where marks stand in each version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layouts {
    four: Option<Layout>,
    six: Option<Layout>,
}

impl Arguments {
    /// How packets are grouped.
    fn marking(&self) -> Result<Marking, Failure> {
        let (t_buffer, hold) = match (self.t_buffer, self.hold) {
            (Some(t_buffer), Some(hold)) if hold < t_buffer => {
                return Err(Failure::usage(
                    "--hold is shorter than --t-buffer, which then has no effect: leave --t-buffer out",
                ));
            }
            (Some(t_buffer), hold) => (t_buffer, hold.unwrap_or(t_buffer)),
            (None, Some(hold)) => (Grouping::T_BUFFER.min(hold), hold),
            (None, None) => (Grouping::T_BUFFER, Grouping::T_BUFFER),
        };
        let layouts = [self.layout.four, self.layout.six].into_iter().flatten();
        let longest = layouts.map(|layout| (layout.max_length(), layout.name())).min();
        if let Some((longest, name)) = longest
            && self.max_packets > longest
        {
            return Err(Failure::usage(format!(
                "--max-packets {}: layout {name} announces at most {longest} packets",
                self.max_packets
            )));
        }
        Ok(Marking {
            t_buffer,
            hold,
            max: self.max_packets,
            by_write: self.by_write,
        })
    }

    /// The layouts with the codepoint.
    fn layouts(&self) -> Result<Layouts, Failure> {
        let Layouts { four, six } = self.layout;
        if self.codepoint != 3 && four != Some(Layout::LOCAL) {
            return Err(Failure::usage(
                "--codepoint is of layout B, which is not among --layout",
            ));
        }
        if six.is_some() && self.mtu.is_some_and(|mtu| mtu < LEAST_SIX) {
            return Err(Failure::usage(format!(
                "--mtu: layout C needs {LEAST_SIX} bytes at least: IPv6 does not work below 1280, and its option takes 8"
            )));
        }
        let four = four.map(|layout| match layout {
            Layout::B { .. } => Layout::B { dscp: self.codepoint },
            Layout::A | Layout::C => layout,
        });
        Ok(Layouts { four, six })
    }
}

/// Least MTU with layout C (RFC 8200 5).
const LEAST_SIX: u32 = 1288;

/// `B,C`
fn layouts(text: &str) -> Result<Layouts, String> {
    let mut chosen = Layouts {
        four: None,
        six: None,
    };
    for name in text.split(',') {
        let layout = Layout::from_name(name.trim(), 3).ok_or_else(|| {
            format!(
                "`{}` is no layout; layouts: {}",
                name.trim(),
                Layout::NAMES.join(", ")
            )
        })?;
        let slot = match layout {
            Layout::A | Layout::B { .. } => &mut chosen.four,
            Layout::C => &mut chosen.six,
        };
        if slot.replace(layout).is_some() {
            return Err(String::from(
                "one layout for IPv4 (A or B) and one for IPv6 (C) are wanted at most",
            ));
        }
    }
    Ok(chosen)
}

/// A time from a microsecond to 100 ms.
fn time(text: &str) -> Result<Duration, String> {
    let (least, most) = (Duration::from_micros(1), Duration::from_millis(100));
    let time = fleetfoot_lab::scenario::duration(&crate::shell::spaced(text))
        .ok_or("a time with its unit is wanted, such as 60us or 1ms (ns, us, ms)")?;
    if time < least || time > most {
        return Err(String::from("1 us to 100 ms are possible"));
    }
    Ok(time)
}

/// `443` or `8000-8080`.
fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|&port| port > 0);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err(String::from(
            "a port from 1 to 65535 is wanted, or a range of them: 8000-8080",
        )),
    }
}

/// `10.0.0.0/8`; an address alone is the network of this address alone.
fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || String::from("an address, or a network such as 10.0.0.0/8, is wanted");
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        Some(prefix) => prefix.parse().map_err(|_| wrong())?,
        None => most,
    };
    if prefix > most {
        return Err(format!("the length of the prefix is 0 to {most}"));
    }
    Ok((address, prefix))
}

/// `eth1,eth0`
fn pair(text: &str) -> Result<(String, String), String> {
    let wrong = || {
        String::from("two interfaces are wanted: the one that hosts are behind, and the other one: eth1,eth0")
    };
    let (inside, outside) = text.split_once(',').ok_or_else(wrong)?;
    if inside.is_empty() || outside.is_empty() || inside == outside || outside.contains(',') {
        return Err(wrong());
    }
    Ok((inside.to_owned(), outside.to_owned()))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn execute(arguments: &Arguments, _: &crate::output::Common) -> Result<(), Failure> {
    arguments.marking()?;
    arguments.layouts()?;
    Err(Failure::usage("mark needs Linux: it is built on packet sockets"))
}

#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod words;

#[cfg(target_os = "linux")]
pub(crate) use live::execute;
