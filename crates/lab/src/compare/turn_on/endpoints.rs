//! How hosts are configured: the sysctl, route or socket option behind each switch of TCP that a variant sets.
//!
//! A switch without a counterpart in Linux says so and names what is nearest.

use super::super::senders::{acts_at_both, changed_sender, data_side, switch};
use super::super::{Plan, Planned};
use super::controllers::controller;
use super::htb::at_root;
use super::one_port;
use super::routes::{self, Route, route_time};
use crate::result::{Instruction, Senders};
use fleetfoot_core::tcp::Config;
use std::collections::BTreeMap;

/// Which end of a connection a switch acts at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// Where data is sent from.
    Senders,
    /// Where data arrives.
    Receivers,
    /// Both.
    Both,
}

/// How a switch is set outside Fleetfoot.
pub(super) struct Step {
    end: End,
    pub(super) how: How,
    /// What it does, as a sentence.
    pub(super) why: String,
    /// From which kernel on, or what is nearest.
    pub(super) needs: String,
}

pub(super) enum How {
    /// `net.ipv4.tcp_ecn=1`, with others in one command.
    Sysctl(String),
    /// A line of its own.
    Command(String),
    /// By no kernel: by Fleetfoot's TCP, in a proxy that programs go through.
    Proxy,
    /// By no command.
    No,
    /// The hosts behave so without a command.
    Always,
}

/// Instructions for the hosts of `planned`; none if it leaves them as they are. `check` says what to measure.
pub(super) fn at_hosts(plan: &Plan, planned: &Planned, check: Option<&str>) -> Vec<Instruction> {
    let Some(senders) = data_side(&plan.described, &planned.resolved) else {
        return Vec::new();
    };
    let access_line = routes::is_access_line(plan);
    let mut ends: BTreeMap<End, Vec<Step>> = BTreeMap::new();
    for step in steps(plan, planned, Route::of(plan, access_line)) {
        ends.entry(step.end).or_default().push(step);
    }
    let relays = relays(plan, planned);
    let with_relays = |mut one: Instruction| {
        if !relays.is_empty() {
            let named = relays.join(" and ");
            one.device.push_str(&format!(", and the relay {named}"));
            one.needs.push_str(&format!(
                " The relay {named} ends their connections, so it needs the same."
            ));
        }
        one
    };
    let each = ends.iter().flat_map(|(end, steps)| {
        let hosts = hosts_at(*end, senders);
        // A server accepts and a client asks: a proxy for each.
        let sides = match hosts == Senders::Both && steps.iter().any(Step::is_proxied) {
            true => vec![Senders::Servers, Senders::Clients],
            false => vec![hosts],
        };
        sides.into_iter().map(move |hosts| (hosts, steps))
    });
    each.map(|(hosts, steps)| with_relays(instruction(planned, hosts, access_line, steps, check)))
        .collect()
}

/// The hosts that are set for a switch that acts at `end`, where `senders` send the data.
fn hosts_at(end: End, senders: Senders) -> Senders {
    match (end, senders) {
        (End::Senders, senders) => senders,
        (End::Receivers, Senders::Servers) => Senders::Clients,
        (End::Receivers, Senders::Clients) => Senders::Servers,
        (End::Both, Senders::Servers | Senders::Clients) => Senders::Both,
        (End::Receivers | End::Both, senders) => senders,
    }
}

/// Names of the relays whose TCP `planned` changes.
fn relays<'a>(plan: &'a Plan, planned: &Planned) -> Vec<&'a str> {
    let described = &plan.described.spec;
    let mut names: Vec<&str> = Vec::new();
    for (before, after) in described.groups.iter().zip(&planned.resolved.spec.groups) {
        let changed = format!("{:?}", before.relay) != format!("{:?}", after.relay);
        let node = before.relay.as_ref().filter(|_| changed);
        let node = node.and_then(|relay| described.nodes.get(relay.node.0 as usize));
        names.extend(
            node.map(|node| node.name.as_str())
                .filter(|name| !names.contains(name)),
        );
    }
    names
}

fn instruction(
    planned: &Planned,
    hosts: Senders,
    access_line: bool,
    steps: &[Step],
    check: Option<&str>,
) -> Instruction {
    let device = match (hosts, access_line) {
        (Senders::Servers, true) => {
            "every server at the other end: whoever runs it can do this, nothing at your end of the line can"
        }
        (Senders::Servers, false) => "every server",
        (Senders::Clients, true) => "every device of yours at this line",
        (Senders::Clients, false) => "every client",
        (Senders::Both, true) => {
            "every device of yours at this line, and every server at the other end (whoever runs it can do that)"
        }
        (Senders::Both, false) => "every server and every client",
        (Senders::Hosts, _) => "every host that takes part",
    };
    let proxied = steps.iter().any(Step::is_proxied);
    // A server accepts: programs that ask a proxy are on the other side.
    let served = hosts == Senders::Servers;
    let mut commands: Vec<String> = Vec::new();
    let mut sysctls: Vec<&str> = Vec::new();
    for step in steps {
        match &step.how {
            // The kernel's settings are nothing to our TCP, which gets all of them.
            How::Sysctl(_) | How::Command(_) if proxied => {}
            How::Sysctl(setting) => sysctls.push(setting),
            How::Command(command) => commands.push(command.clone()),
            How::Proxy | How::No | How::Always => {}
        }
    }
    if proxied {
        commands.push(format!(
            "{}{}",
            if served { SERVE } else { ASK },
            switches_of(planned)
        ));
    }
    if !sysctls.is_empty() {
        commands.push(format!("sysctl -w {}", sysctls.join(" ")));
    }
    let mut needs = match steps {
        [one] => one.needs.clone(),
        steps if proxied => distinct(
            steps
                .iter()
                .filter(|step| step.is_proxied())
                .map(|step| step.needs.clone()),
        ),
        // Of several, each says what it is about.
        steps => distinct(steps.iter().map(|step| match &step.how {
            How::Sysctl(setting) => format!("{setting}: {}", step.needs),
            How::No => format!("\"{}\" {}", step.why, step.needs),
            How::Command(_) | How::Proxy | How::Always => step.needs.clone(),
        })),
    };
    if proxied {
        needs.push_str(if served { SERVED } else { PROXY });
    }
    if !sysctls.is_empty() {
        needs.push_str(
            " To keep it after a restart, put the settings into a file such as /etc/sysctl.d/90-tcp.conf.",
        );
    }
    needs.push_str(&routes::note(&commands));
    Instruction {
        place: hosts.name().to_owned(),
        device: device.to_owned(),
        commands,
        why: distinct(steps.iter().map(|step| step.why.clone())),
        needs,
        check: check.map(str::to_owned),
        nearest: None,
        margin: None,
    }
}

/// Every switch of the variant, for the proxy whose TCP has it.
fn switches_of(planned: &Planned) -> String {
    let mut words = String::new();
    let mut add = |key: &str, value: &str| {
        let pair = format!("{key}={value}");
        let plain = pair
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-=+".contains(&byte));
        let word = match plain {
            true => format!(" --set {pair}"),
            false => format!(" --set '{pair}'"),
        };
        if !words.contains(&word) {
            words.push_str(&word);
        }
    };
    for (key, value) in planned
        .set
        .iter()
        .filter_map(|(path, value)| Some((switch(path)?, value)))
    {
        match value {
            toml::Value::Table(table) => {
                for (name, value) in table {
                    add(&format!("tcp.{key}.{name}"), &word(value));
                }
            }
            value => add(&format!("tcp.{key}"), &word(value)),
        }
    }
    words
}

/// Sentences one after the other, each once.
fn distinct(texts: impl Iterator<Item = String>) -> String {
    let mut kept: Vec<String> = Vec::new();
    for text in texts.filter(|text| !text.is_empty()) {
        if !kept.contains(&text) {
            kept.push(text);
        }
    }
    kept.join(" ")
}

/// One for each switch that the variant sets, in its order.
fn steps(plan: &Plan, planned: &Planned, route: Route) -> Vec<Step> {
    let mut switches: Vec<(String, String)> = Vec::new();
    for (path, value) in planned.set.iter() {
        let switch = switch(path).map(|key| (key.trim_end_matches(".kind").to_owned(), word(value)));
        switches.extend(switch.filter(|switch| !switches.contains(switch)));
    }
    let sender = changed_sender(&plan.described, &planned.resolved);
    let clash = one_port::clash(plan, planned);
    let has = |key: &str| switches.iter().any(|(other, _)| other == key);
    let steps = switches
        .iter()
        // What goes with another switch of the same variant has no step of its own.
        .filter(|(key, _)| match key.as_str() {
            "ecn_codepoint" | "ecn_echo" | "ecn_option" | "ecn_option_beacon" => !has("congestion_control"),
            // One command for all parameters of a congestion control that stays.
            key if key.starts_with(OF_CONTROLLER) => {
                let first = switches
                    .iter()
                    .find(|(other, _)| other.starts_with(OF_CONTROLLER));
                !has("congestion_control") && first.is_some_and(|(first, _)| first == key)
            }
            "spreading_rate" | "spreading_jiffy" | "spreading_jitter_percent" => !has("initial_spreading"),
            "undo" => !has("frto"),
            "dsack" => true,
            key => !key.contains('.') || !has(key.split('.').next().unwrap_or(key)),
        })
        .map(|(key, value)| {
            let mut step = match (&clash, key.as_str(), value.as_str()) {
                (Some(place), "pacing", "linux") => none(SPACES, &one_port::said(place)),
                _ => step(key, value, sender, route),
            };
            if acts_at_both(&plan.described, &planned.resolved, key) {
                step.end = End::Both;
            }
            step
        });
    steps.collect()
}

/// A value as a word; of a table its kind.
fn word(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Table(table) => table.get("kind").map_or_else(|| value.to_string(), word),
        other => other.to_string(),
    }
}

/// `sender`: how the variant has the senders that it changes; `route`: by which their packets leave.
fn step(key: &str, value: &str, sender: Option<&Config>, route: Route) -> Step {
    let command = |line: &str| How::Command(String::from(line));
    let on = u8::from(value == "true");
    let own = sender.map_or("", |sender| sender.congestion_control);
    let values = sender.and_then(|sender| sender.congestion_control_values.as_ref());
    match (key, value) {
        ("congestion_control", name) => controller(name, values),
        (key, _) if key.starts_with(OF_CONTROLLER) => controller(own, values),
        ("initial_window", window) => {
            let segments = match window {
                "rfc3390" => "3",
                "rfc6928" => "10",
                number => number,
            };
            Step::new(
                End::Senders,
                route.with("initcwnd", "[0-9]*", segments),
                &format!(
                    "A new connection may send {segments} packets before the first answer comes back, so that short transfers need fewer round trips or burst less."
                ),
                "Linux 2.6.39 or later, package iproute2.",
            )
        }
        ("min_rto", time) => {
            let floor = sender.map(|sender| sender.rto.min);
            let time = floor.map_or_else(|| time.replace(' ', ""), route_time);
            Step::new(
                End::Senders,
                route.with("rto_min", "[0-9a-z]*", &time),
                &format!(
                    "A sender that gets no answer sends again after {time} at the earliest, beyond the time an answer takes."
                ),
                "Any Linux with iproute2; from 6.11 on also sysctl net.ipv4.tcp_rto_min_us for all routes.",
            )
        }
        ("delayed_ack", "off") => Step::new(
            End::Receivers,
            route.with("quickack", "[01]", "1"),
            "The receiver answers every packet at once instead of waiting for a second one.",
            "Linux 3.11 or later, package iproute2.",
        ),
        ("delayed_ack", "linux") => always(
            "Answers come at once at the start of a connection and for every second packet later.",
            "Linux: always so, nothing to do.",
        ),
        ("hystart", "hystart++") => proxied(
            "Slow start ends softly when the round trip grows, before the queue overflows.",
            "In no Linux kernel; Windows has it by default (RFC 9406). The nearest in Linux is HyStart, on by default in cubic.",
        ),
        // HyStart is cubic's: of others Linux has none, but cdg's own (a parameter of it).
        ("hystart", "hystart") if own != "cubic" => proxied(
            "A new connection stops doubling its speed when the round trip grows, before the queue overflows.",
            "In Linux HyStart is part of cubic and of no other congestion control.",
        ),
        ("hystart", _) if own != "cubic" => always(
            "A new connection doubles its speed until a packet is lost.",
            "Linux: always so with another congestion control than cubic (cdg has its own HyStart), nothing to do.",
        ),
        ("hystart", how) => Step::new(
            End::Senders,
            How::Command(format!(
                "echo {} > /sys/module/tcp_cubic/parameters/hystart",
                u8::from(how != "off")
            )),
            if how == "off" {
                "A new connection doubles its speed until a packet is lost."
            } else {
                "A new connection stops doubling its speed when the round trip grows, before the queue overflows."
            },
            "Linux 2.6.29 or later with cubic.",
        ),
        ("window_validation", "none") => Step::new(
            End::Senders,
            sysctl("tcp_slow_start_after_idle=0"),
            "A connection that paused goes on at the speed it had.",
            "Any Linux.",
        ),
        ("window_validation", "rfc2861") => Step::new(
            End::Senders,
            sysctl("tcp_slow_start_after_idle=1"),
            "A connection that paused starts more slowly, the longer it paused.",
            "Any Linux; the default.",
        ),
        ("window_validation", "rfc5681") => proxied(
            "A connection that paused starts as slowly as a new one.",
            "FreeBSD: the default. In no Linux kernel; the nearest is sysctl net.ipv4.tcp_slow_start_after_idle=1, which slows down by degrees.",
        ),
        ("window_validation", "newcwv") => Step::new(
            End::Senders,
            command("fleetfoot attach newcwv --default"),
            "A connection that paused keeps its speed and answers a loss by what it really used (New-CWV).",
            "Linux 6.4 or later and Fleetfoot built with the feature bpf on the host itself; the congestion control is cubic then. In no kernel by itself; the nearest is sysctl net.ipv4.tcp_slow_start_after_idle=0.",
        ),
        ("window_validation", _) => proxied(
            "A connection that paused keeps its speed and answers a loss by what it really used (New-CWV).",
            "In no kernel in this form. The nearest is New-CWV with pacing: fleetfoot attach newcwv --default.",
        ),
        ("pacing", "linux") => Step::new(
            End::Senders,
            How::Command(at_root("DEV", "fq")),
            SPACES,
            "Linux 3.12 or later, package iproute2.",
        ),
        ("pacing", "off") => Step::new(
            End::Senders,
            How::Command(at_root("DEV", "pfifo_fast")),
            "Senders send their packets as answers come, without gaps of their own.",
            "Any Linux, with a congestion control that does not pace by itself (bbr does).",
        ),
        ("pacing", _) => proxied(
            "Senders space every window over a whole round trip, the first one too.",
            "In no kernel with this factor. The nearest is Linux's own pacing, ahead of the window: tc qdisc replace dev eth0 root fq.",
        ),
        ("initial_spreading", _) => proxied(
            "The packets of a new connection leave with gaps between them, so that they do not overflow a queue together.",
            "In no kernel (bounded and variable: a patch by their authors). Of a larger first window the packets from the eleventh on can be spread: fleetfoot attach spread --default --initial-window 20. The nearest for what follows is Linux's pacing after the first answer: tc qdisc replace dev eth0 root fq.",
        ),
        ("rack", _) => Step::new(
            End::Senders,
            sysctl(&format!("tcp_recovery={on}")),
            if on == 1 {
                "Losses are seen by the time that has passed, not by counting answers."
            } else {
                "Losses are seen by counting answers only."
            },
            if on == 1 {
                "Linux 4.4 or later; 1 is the default, and from 6.17 on it is so whatever the value."
            } else {
                "Linux 4.4 to 6.16. From 6.17 on the command has no effect, since that kernel sees losses by time alone; Fleetfoot's TCP counts answers: fleetfoot proxy --masquerade --set tcp.rack=false (docs/proxy.md)."
            },
        ),
        ("tail_loss_probe", "off") => Step::new(
            End::Senders,
            sysctl("tcp_early_retrans=0"),
            "A lost last packet is repaired by the timer alone.",
            "Linux 3.10 or later.",
        ),
        ("tail_loss_probe", how) => Step::new(
            End::Senders,
            sysctl("tcp_early_retrans=3"),
            "A sender that hears nothing probes after two round trips, so that a lost last packet is repaired without the timer.",
            if how == "draft" {
                "Linux 3.10 or later; the default. To 4.13 as simulated, from 4.11 on with sysctl net.ipv4.tcp_fack=1; from 4.14 on one packet waits for two round trips and 200 ms, as in RFC 8985."
            } else {
                "Linux 3.10 or later; the default."
            },
        ),
        ("tail_loss_probe_restart" | "rto_restart" | "learn_ack_delay", _) => proxied(
            "The timer of a lost tail counts from when its first packet was sent, and so fires a round trip sooner.",
            "In no kernel: patches were offered for Linux in 2014 and 2015 and not taken. The nearest is RACK-TLP, Linux's default: sysctl net.ipv4.tcp_recovery=1 net.ipv4.tcp_early_retrans=3.",
        ),
        ("early_retransmit", how) => proxied(
            "With few packets out, fewer repeated answers show a loss.",
            if how == "delayed" {
                "Linux 3.5 to 4.10: sysctl net.ipv4.tcp_early_retrans=2; later kernels have RACK instead, which is on by default."
            } else {
                "Linux 3.5 to 4.10: sysctl net.ipv4.tcp_early_retrans=1; later kernels have RACK instead, which is on by default."
            },
        ),
        ("limited_transmit", _) => always(
            "The first repeated answers let new packets out, so that small windows still see their losses.",
            "Linux: always so, nothing to do.",
        ),
        ("prr", _) => always(
            "While losses are repaired, packets leave at the pace at which others arrive.",
            "Linux 3.2 or later: always so, nothing to do.",
        ),
        ("frto", _) => Step::new(
            End::Senders,
            sysctl(&format!("tcp_frto={}", 2 * on)),
            "A timeout that was too early is seen and taken back.",
            "Any Linux; 2 is the default.",
        ),
        ("undo", _) => always(
            "Slowing down for a loss that was none is taken back.",
            "Linux: always so, nothing to do.",
        ),
        ("thin_linear", _) => Step::new(
            End::Senders,
            sysctl(&format!("tcp_thin_linear_timeouts={on}")),
            "A stream with few packets tries again at even times instead of waiting twice as long each time.",
            "Linux 2.6.34 or later; a program can ask for it alone with the socket option TCP_THIN_LINEAR_TIMEOUTS.",
        ),
        ("thin_dupack", _) => proxied(
            "A stream with few packets repairs a loss at the first repeated answer.",
            "Linux 2.6.34 to 4.10: sysctl net.ipv4.tcp_thin_dupack=1; later kernels have RACK instead, which is on by default.",
        ),
        ("rdb", _) => proxied(
            "A new packet of a thin stream carries older data along, so that a single loss needs no repair.",
            "In no Linux release, only patches of 2016 by its authors; no setting of a kernel comes near.",
        ),
        ("sack" | "dsack" | "timestamps", _) => Step::new(
            End::Both,
            sysctl(&format!("tcp_{key}={on}")),
            match key {
                "sack" => {
                    "Receivers say which packets are missing, so that several losses are repaired at once."
                }
                "dsack" => "",
                _ if on == 1 => "Packets carry a time, so that every answer measures the round trip.",
                _ => "Packets carry no time, which saves 12 bytes in each.",
            },
            "Any Linux; 1 is the default.",
        ),
        ("sack_compression", _) => Step::new(
            End::Receivers,
            sysctl(&format!("tcp_comp_sack_nr={}", 44 * on)),
            "While packets are missing, a receiver answers several of those behind the gap at once.",
            "Linux 4.18 or later; 44 is the default.",
        ),
        ("ecn", "true") => Step::new(
            End::Both,
            sysctl("tcp_ecn=1"),
            "Connections agree that routers may mark packets instead of dropping them: the sender slows down and nothing need be sent twice.",
            "Any Linux; Linux servers agree by default when they are asked (tcp_ecn=2).",
        ),
        ("ecn", "accurate") => Step::new(
            End::Both,
            command("sysctl -w net.ipv4.tcp_ecn=3 2>/dev/null || sysctl -w net.ipv4.tcp_ecn=1"),
            "Connections agree that routers may mark packets instead of dropping them, and every mark is counted, so that the sender slows down by as much as there are marks.",
            "Linux 7.0 or later (3); the command sets ordinary ECN (1) on earlier kernels, and with a host that does not know it connections fall back to that.",
        ),
        ("ecn", _) => Step::new(
            End::Both,
            sysctl("tcp_ecn=0"),
            "Connections do not use marks.",
            "Any Linux.",
        ),
        ("nagle", "false") => proxied(
            "A program's small writes are sent at once instead of waiting for an answer.",
            "A program of yours sets the socket option TCP_NODELAY on its connections, on any system.",
        ),
        ("fast_open", "true") => Step::new(
            End::Both,
            sysctl("tcp_fastopen=3"),
            "A client that has visited a server before sends its first data on the SYN, a round trip sooner; programs ask for it when they connect (TCP_FASTOPEN_CONNECT) and listen (TCP_FASTOPEN).",
            "Linux 3.13 or later for clients and servers, over IPv6 3.16; TCP_FASTOPEN_CONNECT from 4.11 on. Some middleboxes drop SYNs with data.",
        ),
        ("super_packets", _) => Step::new(
            End::Senders,
            command("INSIDE=eth1; OUTSIDE=eth0; fleetfoot mark --between $INSIDE,$OUTSIDE"),
            "What senders send in one burst is marked on its way, so that a queue that knows the marks admits all of it or none.",
            "Linux with Fleetfoot between the senders (INSIDE) and the rest (OUTSIDE); the senders stay as they are. For one program: fleetfoot mark -- COMMAND (docs/mark.md).",
        ),
        (other, _) => none(
            &format!("Fleetfoot's switch tcp.{other} is set to {value}."),
            "No setting of Linux that is known here does the same; the network as described is the nearest.",
        ),
    }
}

impl Step {
    pub(super) fn new(end: End, how: How, why: &str, needs: &str) -> Step {
        Step {
            end,
            how,
            why: why.to_owned(),
            needs: needs.to_owned(),
        }
    }

    fn is_proxied(&self) -> bool {
        matches!(self.how, How::Proxy)
    }
}

/// By no command.
fn none(why: &str, needs: &str) -> Step {
    Step::new(End::Senders, How::No, why, needs)
}

/// By our own TCP.
fn proxied(why: &str, needs: &str) -> Step {
    Step::new(End::Senders, How::Proxy, why, needs)
}

/// A step for what hosts do without a command.
fn always(why: &str, needs: &str) -> Step {
    Step::new(End::Senders, How::Always, why, needs)
}

const SPACES: &str = "Senders space their packets over the round trip instead of sending them in one burst.";

/// How the keys of a congestion control's parameters begin.
const OF_CONTROLLER: &str = "congestion_control.";

/// The proxy where connections begin.
const ASK: &str = "fleetfoot proxy --masquerade";
/// The proxy in front of a service.
const SERVE: &str =
    "PORT=80; fleetfoot proxy --accept 7000 --to 127.0.0.1:$PORT --address 10.9.0.2/24 --allow 0.0.0.0/0";

const PROXY: &str = " The command puts Fleetfoot's TCP in a proxy (Linux, root, package nftables) that programs of that machine go through as they are, \
by SOCKS5 or HTTP at 127.0.0.1:1080, while it runs. It acts on what they send; what a server answers needs a second proxy in front of the server \
(docs/proxy.md).";

const SERVED: &str = " The command puts Fleetfoot's TCP in front of the service at the port PORT of that machine (Linux, root), at an address of its own, while it runs. \
Clients stay as they are and connect to 10.9.0.2, port 7000, or to the machine as before where a rule sends them there (docs/proxy.md, \"In front of a server\"). \
It acts on what the server sends; what clients send is their own TCP's.";

fn sysctl(setting: &str) -> How {
    How::Sysctl(format!("net.ipv4.{setting}"))
}
