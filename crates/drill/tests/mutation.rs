//! Whether the runner notices: every line of every public script that passes is made wrong, one thing at a time, and the
//! runner has to report a failure at exactly that line.

use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_drill::ast::{
    Action, Argument, Body, CallLine, Direction, Event, OptionList, Script, SeqForm, TcpLine, TcpOption, Time,
};
use fleetfoot_drill::backend::Setup;
use fleetfoot_drill::folder::{Options, Stack, find, play};
use fleetfoot_drill::virtual_time::Virtual;
use fleetfoot_drill::{Played, Rules, Verdict, run};
use fleetfoot_lab::scenario::set_switch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FIN: u16 = 1;
const SYN: u16 = 1 << 1;
const PSH: u16 = 1 << 3;
const ECE: u16 = 1 << 6;

/// What is made wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Flag,
    Number,
    Option,
    Time,
    Result,
    Output,
    Counter,
}

const KINDS: [Kind; 7] = [
    Kind::Flag,
    Kind::Number,
    Kind::Option,
    Kind::Time,
    Kind::Result,
    Kind::Output,
    Kind::Counter,
];

/// The event with one thing wrong, in every way there is.
fn mutants(event: &Event, rules: &Rules) -> Vec<(Kind, Event)> {
    let mut found = Vec::new();
    match &event.action {
        Action::Packet(line) if line.direction == Direction::Outbound => {
            if let Body::Tcp(tcp) = &line.body {
                for (kind, wrong) in segments(tcp, rules) {
                    let mut line = line.clone();
                    line.body = Body::Tcp(wrong);
                    found.push((
                        kind,
                        Event {
                            action: Action::Packet(line),
                            ..event.clone()
                        },
                    ));
                }
            }
            if let Body::Udp(len) = line.body {
                let mut line = line.clone();
                line.body = Body::Udp(len + 1);
                found.push((
                    Kind::Number,
                    Event {
                        action: Action::Packet(line),
                        ..event.clone()
                    },
                ));
            }
            found.extend(later(event).map(|event| (Kind::Time, event)));
        }
        Action::Call(line) => {
            for (kind, wrong) in calls(line, rules) {
                found.push((
                    kind,
                    Event {
                        action: Action::Call(wrong),
                        ..event.clone()
                    },
                ));
            }
            if let Some(end) = event.end {
                found.push((
                    Kind::Time,
                    Event {
                        end: Some(end + 2_000_000_000),
                        ..event.clone()
                    },
                ));
            }
        }
        Action::Code(code) => {
            for (at, _) in code.match_indices("==") {
                let wrong = format!("{}!={}", &code[..at], &code[at + 2..]);
                found.push((
                    Kind::Counter,
                    Event {
                        action: Action::Code(wrong),
                        ..event.clone()
                    },
                ));
            }
        }
        Action::Packet(_) | Action::Command(_) => {}
    }
    found
}

/// The time so much later that no tolerance of a script reaches it.
fn later(event: &Event) -> Option<Event> {
    const SECOND: i64 = 1_000_000_000;
    let time = match event.time {
        Time::Absolute(at) => Time::Absolute(at + at.abs() / 2 + SECOND),
        Time::Relative(after) => Time::Relative(after * 2 + SECOND),
        Time::AbsoluteRange(from, to) => {
            let by = to - from + to.abs() / 2 + SECOND;
            Time::AbsoluteRange(from + by, to + by)
        }
        Time::RelativeRange(from, to) => {
            let by = to * 2 + SECOND;
            Time::RelativeRange(from + by, to + by)
        }
        Time::Any => return None,
    };
    Some(Event {
        time,
        ..event.clone()
    })
}

fn segments(tcp: &TcpLine, rules: &Rules) -> Vec<(Kind, TcpLine)> {
    let mut found = Vec::new();
    for bit in [FIN, PSH, ECE] {
        found.push((
            Kind::Flag,
            TcpLine {
                flags: tcp.flags ^ bit,
                ..tcp.clone()
            },
        ));
    }
    // The number of a SYN says what the script calls its initial one.
    if tcp.flags & SYN == 0 && tcp.seq_form != SeqForm::Unsaid {
        for by in [1, u32::MAX] {
            found.push((
                Kind::Number,
                TcpLine {
                    seq: tcp.seq.wrapping_add(by),
                    ..tcp.clone()
                },
            ));
        }
    }
    found.push((
        Kind::Number,
        TcpLine {
            len: tcp.len + 1,
            ..tcp.clone()
        },
    ));
    if let Some(ack) = tcp.ack {
        found.push((
            Kind::Number,
            TcpLine {
                ack: Some(ack.wrapping_add(1)),
                ..tcp.clone()
            },
        ));
    }
    found.push((
        Kind::Number,
        TcpLine {
            urgent: tcp.urgent ^ 1,
            ..tcp.clone()
        },
    ));
    if let Some(window) = tcp.window
        && rules.neutral.is_none()
    {
        found.push((
            Kind::Number,
            TcpLine {
                window: Some(window ^ 1),
                ..tcp.clone()
            },
        ));
    }
    let looked_at = rules
        .neutral
        .is_none_or(|neutral| neutral.options && tcp.flags & SYN == 0);
    if let OptionList::These(options) = &tcp.options
        && looked_at
    {
        for wrong in option_lists(options) {
            found.push((
                Kind::Option,
                TcpLine {
                    options: OptionList::These(wrong),
                    ..tcp.clone()
                },
            ));
        }
    }
    found
}

fn option_lists(options: &[TcpOption]) -> Vec<Vec<TcpOption>> {
    let mut found = Vec::new();
    // One too many, one too few, two in the other order.
    found.push([options, &[TcpOption::Nop]].concat());
    if let Some((_, rest)) = options.split_last() {
        found.push(rest.to_vec());
    }
    for at in 1..options.len() {
        if options[at - 1] != options[at] {
            let mut swapped = options.to_vec();
            swapped.swap(at - 1, at);
            found.push(swapped);
        }
    }
    for (at, option) in options.iter().enumerate() {
        let wrong = match option {
            TcpOption::Mss(mss) => TcpOption::Mss(mss ^ 1),
            TcpOption::WindowScale(scale) => TcpOption::WindowScale(scale ^ 1),
            TcpOption::Sack(blocks) => {
                let mut blocks = blocks.clone();
                match blocks.first_mut() {
                    Some(block) => block.1 = block.1.wrapping_add(1),
                    None => continue,
                }
                TcpOption::Sack(blocks)
            }
            // The value is the stack's clock; what it echoes is the script's own.
            TcpOption::Timestamps { val, ecr } => TcpOption::Timestamps {
                val: *val,
                ecr: ecr ^ 1,
            },
            TcpOption::FastOpen(cookie) if !cookie.is_empty() => {
                let mut cookie = cookie.clone();
                cookie[0] ^= 1;
                TcpOption::FastOpen(cookie)
            }
            _ => continue,
        };
        let mut wrongly = options.to_vec();
        wrongly[at] = wrong;
        found.push(wrongly);
    }
    found
}

fn calls(line: &CallLine, rules: &Rules) -> Vec<(Kind, CallLine)> {
    let mut found = Vec::new();
    let skipped = rules.neutral.is_some() && line.name == "getsockopt"; // what FreeBSD's buffers are is not asked
    if let Some(result) = line.result
        && !skipped
    {
        let gives_number = matches!(
            line.name.as_str(),
            "socket" | "accept" | "accept4" | "epoll_create" | "epoll_create1"
        );
        found.push((
            Kind::Result,
            CallLine {
                result: Some(if gives_number && result >= 0 {
                    -1
                } else {
                    result + 1
                }),
                ..line.clone()
            },
        ));
    }
    if let Some(errno) = &line.errno {
        let other = if errno == "EIO" { "EPERM" } else { "EIO" };
        found.push((
            Kind::Result,
            CallLine {
                errno: Some(other.to_owned()),
                ..line.clone()
            },
        ));
    }
    let output = match line.name.as_str() {
        "getsockopt" if !skipped => 3,
        "ioctl" => 2,
        _ => return found,
    };
    if line.result == Some(0)
        && let Some(Argument::List(items)) = line.arguments.get(output)
        && let [Argument::Number(value)] = items.as_slice()
    {
        let mut wrong = line.clone();
        wrong.arguments[output] = Argument::List(vec![Argument::Number(value + 1)]);
        found.push((Kind::Output, wrong));
    }
    found
}

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("FLEETFOOT_PACKETDRILL").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/packetdrill"),
        PathBuf::from,
    );
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: {} is not there", folder.display());
    None
}

fn played(script: &Script, setup: &Setup, rules: &Rules) -> Played {
    let mut backend = Virtual::new(setup, Config::profile(Profile::Linux), set_switch);
    run(script, &mut backend, setup, rules)
}

#[test]
fn every_wrong_line_is_noticed() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")];
    folders.extend(folder());
    let items = find(&folders).expect("the folders can be read");
    let options = Options::new(Stack::Ours(Profile::Linux), set_switch);
    let mut table: BTreeMap<String, BTreeMap<Kind, usize>> = BTreeMap::new();
    let mut missed = Vec::new();
    for item in &items {
        play(item, &options, |script, setup, rules| {
            let right = played(script, setup, rules);
            if right.verdict != Verdict::Pass {
                return right;
            }
            for at in 0..script.events.len() {
                for (kind, wrong) in mutants(&script.events[at], rules) {
                    let mut mutant = script.clone();
                    mutant.events[at] = wrong;
                    let seen = played(&mutant, setup, rules);
                    *table
                        .entry(item.topic.clone())
                        .or_default()
                        .entry(kind)
                        .or_default() += 1;
                    if seen.verdict != Verdict::Fail || seen.line != Some(script.events[at].line) {
                        missed.push(format!(
                            "{}:{} {kind:?}: {:?} at {:?} {}\n  {:?}",
                            item.file,
                            script.events[at].line,
                            seen.verdict,
                            seen.line,
                            seen.reason,
                            mutant.events[at].action
                        ));
                    }
                }
            }
            right
        });
    }
    println!(
        "{:24}{}",
        "topic",
        KINDS.map(|kind| format!("{:>9}", format!("{kind:?}"))).concat()
    );
    for (topic, kinds) in &table {
        let row = KINDS.map(|kind| format!("{:>9}", kinds.get(&kind).copied().unwrap_or(0)));
        println!("{topic:24}{}", row.concat());
    }
    let all: usize = table.values().flat_map(BTreeMap::values).sum();
    println!("{all} wrong lines, {} not noticed", missed.len());
    assert!(all > 1000, "only {all}");
    assert!(
        missed.is_empty(),
        "{} missed:\n{}",
        missed.len(),
        missed[..missed.len().min(40)].join("\n")
    );
}
