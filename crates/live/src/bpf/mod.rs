//! Mechanisms in this machine's kernel, for programs that know nothing of it: congestion controls, socket options, marks.
//!
//! Three kinds of programs are loaded (C in `bpf/`, compiled by clang, loaded by libbpf): congestion controls (struct_ops), a program that
//! sets options of new connections (sockops), and one that marks packets on their way out (TCX). [`attach`] returns and they stay, as pins
//! below /sys/fs/bpf/fleetfoot; [`detach`] removes them and puts back what was there; [`attached`] lists them.
//!
//! **Source.** bpf(2), bpf-helpers(7); the rules of each program are those of `fleetfoot_core` and stand in its header.
//! **Deviations.** A congestion control of an existing connection cannot be changed from outside: a [`Place`] is a network
//! namespace, whose new connections take it. Linux 6.4 or later with BTF; marks need 6.6.

mod heirs;
mod hook;
mod known;
mod object;
mod pins;
mod place;

pub use known::{Known, make_known};
pub use place::Place;

use crate::Error;
use hook::{Hook, segments, set_segments};
use libbpf_rs::{Link, MapCore};
use nix::net::if_::if_nametoindex;
use object::told;
use pins::{Pins, Record};
use place::Found;
use std::io;
use std::path::Path;

/// What can be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// CAIA Delay-Gradient, a congestion control.
    Cdg,
    /// New-CWV over CUBIC, a congestion control.
    NewCwv,
    /// CUBIC with a larger first window whose segments from the eleventh on are spread, a congestion control.
    Spread,
    /// Initial window, RTO minimum and delayed ACK maximum of new connections.
    Options,
    /// Marks of super-packets on what leaves an interface.
    Mark,
}

impl Program {
    /// All of them.
    pub const ALL: [Program; 5] = [
        Program::Cdg,
        Program::NewCwv,
        Program::Spread,
        Program::Options,
        Program::Mark,
    ];

    /// Its name in `fleetfoot attach`.
    pub const fn name(self) -> &'static str {
        match self {
            Program::Cdg => "cdg",
            Program::NewCwv => "newcwv",
            Program::Spread => "spread",
            Program::Options => "options",
            Program::Mark => "mark",
        }
    }

    /// Its name as a congestion control of the kernel.
    pub const fn control(self) -> Option<&'static str> {
        match self {
            Program::Cdg => Some("ff_cdg"),
            Program::NewCwv => Some("ff_newcwv"),
            Program::Spread => Some("ff_spread"),
            Program::Options | Program::Mark => None,
        }
    }
}

/// Parameters of programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// First window, segments (`Spread`, `Options`).
    pub initial_window: Option<u32>,
    /// Least time before a retransmission, microseconds (`Options`).
    pub rto_min_us: Option<u32>,
    /// Longest wait of an acknowledgment, microseconds (`Options`).
    pub delayed_ack_max_us: Option<u32>,
    /// The interface whose packets are marked (`Mark`).
    pub interface: Option<String>,
    /// Packets that a group announces, 2 to 63 (`Mark`).
    pub length: u8,
    /// Codepoint of layout B, 1 to 63; 0: layout A (`Mark`).
    pub codepoint: u8,
    /// Hooks report what they were given and did, in a ring buffer that is pinned as `trace` (`Cdg`, `NewCwv`; for tests).
    pub trace: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            initial_window: None,
            rto_min_us: None,
            delayed_ack_max_us: None,
            interface: None,
            length: 10,
            codepoint: 3,
            trace: false,
        }
    }
}

impl Settings {
    /// The parameters of `program`, as a user would write them.
    fn words(&self, program: Program) -> String {
        let mut words = Vec::new();
        let time = |name: &str, us: Option<u32>| us.map(|us| format!("{name} {} ms", f64::from(us) / 1e3));
        if matches!(program, Program::Spread | Program::Options) {
            words.extend(
                self.initial_window
                    .map(|segments| format!("initial window {segments}")),
            );
        }
        if program == Program::Options {
            words.extend(time("RTO minimum", self.rto_min_us));
            words.extend(time("delayed ACK maximum", self.delayed_ack_max_us));
        }
        if program == Program::Mark {
            words.push(format!("groups of {}", self.length));
            words.push(match self.codepoint {
                0 => String::from("layout A"),
                codepoint => format!("layout B, codepoint {codepoint}"),
            });
        }
        words.join(", ")
    }
}

/// Something that is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Which program.
    pub program: Program,
    /// The namespace as it was named, with the interface; empty: a congestion control that connections may choose and no namespace has by default.
    pub place: String,
    /// Its parameters in words.
    pub settings: String,
    /// The default before it.
    pub previous: String,
    /// What is not as it was attached: the namespace has gone, another default was set, a kill left it incomplete. Empty: all is well.
    pub state: String,
    /// What its counters say, by name.
    pub counters: Vec<(&'static str, u64)>,
}

/// Loads `program` and attaches it. Without a place a congestion control is only made known, so that programs can choose it
/// (`TCP_CONGESTION`); the other programs then take this namespace. What is attached already in the same way is left as it is, and
/// completed where a kill left it incomplete.
///
/// # Errors
/// The kernel refuses, there is no such place or interface, or the program is attached with other settings.
pub fn attach(program: Program, place: Option<&Place>, settings: &Settings) -> Result<(), Error> {
    let found = place.map(Place::find).transpose()?;
    let words = settings.words(program);
    let Some(control) = program.control() else {
        let place = place.unwrap_or(&Place::Here);
        let found = place.find()?;
        let hook = Hook::find(program, &found, settings)?;
        let pins = Pins::make(program)?;
        let done = hook_up(program, &pins, (place, &found), settings, &words, &hook);
        return clean_up(done, pins, |pins| {
            let key = hook.key(&found);
            let [at, link, counters] = names(&key);
            if !pins.has(&link) {
                give_back(&key, &pins.read(&at).unwrap_or_default())?;
                pins.remove(&counters)?;
                pins.remove(&at)?;
            }
            Ok(())
        });
    };
    let pins = Pins::make(program)?;
    let done = register(program, &pins, settings, &words);
    let done = done.and_then(|()| match (place, &found) {
        (Some(place), Some(found)) => make_default(control, &pins, place, found),
        _ => Ok(()),
    });
    clean_up(done, pins, |pins| {
        if !pins.has(LINK) {
            pins.remove(SETTINGS)?;
            pins.remove(TRACE)?;
        }
        Ok(())
    })
}

/// What was refused leaves nothing behind.
fn clean_up(
    done: Result<(), Error>,
    pins: Pins,
    undo: impl FnOnce(&Pins) -> Result<(), Error>,
) -> Result<(), Error> {
    if done.is_err() {
        // The first error is the one that is reported.
        let _ = undo(&pins);
        pins.tidy();
    }
    done
}

/// Makes a congestion control known to the kernel.
fn register(program: Program, pins: &Pins, settings: &Settings, words: &str) -> Result<(), Error> {
    if pins.has(LINK) {
        let before = pins.read(SETTINGS).unwrap_or_default();
        return same(program, "", before.get("settings"), words);
    }
    pins.remove(SETTINGS)?;
    pins.remove(TRACE)?;
    pins.write(SETTINGS, &Record::default().with("settings", words))?;
    let mut object = object::load(program, settings, 0)?;
    if let Some(mut trace) = object
        .maps_mut()
        .find(|map| settings.trace && map.name() == TRACE)
    {
        pins.pin_map(TRACE, &mut trace)?;
    }
    let link = link_control(program, &mut object)?;
    pins.pin_link(LINK, link)
}

/// Hands a congestion control to the kernel, which knows it as long as the link lives.
fn link_control(program: Program, object: &mut libbpf_rs::Object) -> Result<Link, Error> {
    let mut map = object
        .maps_mut()
        .find(|map| map.map_type() == libbpf_rs::MapType::StructOps)
        .ok_or_else(|| missing(program))?;
    map.attach_struct_ops().map_err(|error| {
        if error.kind() == libbpf_rs::ErrorKind::AlreadyExists {
            return Error::new(
                format!(
                    "the kernel knows {} already",
                    program.control().unwrap_or_default()
                ),
                io::Error::new(io::ErrorKind::AlreadyExists, KNOWN),
            );
        }
        told(
            format!(
                "the kernel does not take the congestion control {} (Linux 6.4 or later does)",
                program.control().unwrap_or_default()
            ),
            &error,
        )
    })
}

/// Makes a registered congestion control the default of a namespace.
fn make_default(control: &str, pins: &Pins, place: &Place, found: &Found) -> Result<(), Error> {
    let name = format!("{PLACE}{}", found.cookie);
    let new = pins.read(&name).is_none();
    if new {
        pins.remove(&name)?;
        let previous = found.default_control()?;
        pins.write(&name, &record(place, found).with("previous", previous))?;
    }
    let done = found.set_default_control(control);
    if done.is_err() && new {
        pins.remove(&name)?;
    }
    done
}

fn record(place: &Place, found: &Found) -> Record {
    Record::default()
        .with("place", place.label())
        .with("path", found.path.to_string_lossy())
}

fn hook_up(
    program: Program,
    pins: &Pins,
    (place, found): (&Place, &Found),
    settings: &Settings,
    words: &str,
    hook: &Hook,
) -> Result<(), Error> {
    let key = hook.key(found);
    let [at, link, counters] = names(&key);
    if pins.has(&link) {
        let before = pins.read(&at).unwrap_or_default();
        return same(program, before.get("place"), before.get("settings"), words);
    }
    // What a kill left incomplete.
    give_back(&key, &pins.read(&at).unwrap_or_default())?;
    for name in [&at, &counters] {
        pins.remove(name)?;
    }
    let mut written = record(place, found).with("settings", words);
    if let Hook::Interface(interface, _) = hook {
        let before = found.run(|| segments(interface))?;
        written = written
            .with("interface", interface)
            .with("gso_max_segs", before.to_string());
    }
    pins.write(&at, &written)?;
    if let Hook::Interface(interface, _) = hook {
        found.run(|| set_segments(interface, 1))?;
    }
    let mut object = object::load(program, settings, found.cookie)?;
    if let Some(mut map) = object.maps_mut().find(|map| map.name() == "counters") {
        pins.pin_map(&counters, &mut map)?;
    }
    pins.pin_link(&link, hook.attach(program, found, &object)?)
}

fn same(program: Program, place: &str, before: &str, words: &str) -> Result<(), Error> {
    if before == words {
        return Ok(());
    }
    let (name, place) = (
        program.name(),
        if place.is_empty() { "" } else { " in " }.to_owned() + place,
    );
    Err(Error::new(
        format!("{name} is attached{place} with {before}: fleetfoot detach {name} first"),
        io::ErrorKind::InvalidInput,
    ))
}

fn missing(program: Program) -> Error {
    Error::new(
        format!("the program {} is incomplete", program.name()),
        io::ErrorKind::InvalidData,
    )
}

fn names(key: &str) -> [String; 3] {
    [
        format!("{PLACE}{key}"),
        format!("{LINK}-{key}"),
        format!("{COUNTERS}{key}"),
    ]
}

/// Takes `program` away: from `place` alone, where a congestion control stays known to the kernel, or from everywhere.
/// Namespaces get back the default that they had, unless it was changed since; from everywhere, those that have inherited it get what new ones
/// get. Returns what was taken away.
///
/// # Errors
/// The program is not attached there, or the kernel refuses; then what is left is still there and can be detached again.
pub fn detach(program: Program, place: Option<&Place>) -> Result<Vec<Attached>, Error> {
    let found = place.map(Place::find).transpose()?;
    let nothing = || {
        let place = place.map_or_else(String::new, |place| format!(" in {}", place.label()));
        Error::new(
            format!("{} is not attached{place}", program.name()),
            io::ErrorKind::InvalidInput,
        )
    };
    let pins = Pins::open(program)?.ok_or_else(nothing)?;
    let wanted = |key: &str| {
        let cookie = key.split('-').next().unwrap_or(key);
        found
            .as_ref()
            .is_none_or(|found| cookie == found.cookie.to_string())
    };
    let (mut taken, keys): (Vec<Attached>, Vec<String>) = looked_at(program, &pins)
        .into_iter()
        .filter(|(_, key)| key.as_deref().is_none_or(wanted) && (key.is_some() || found.is_none()))
        .map(|(attached, key)| (attached, key.unwrap_or_default()))
        .unzip();
    if taken.is_empty() && (found.is_some() || pins.keys("").is_empty()) {
        pins.tidy();
        return Err(nothing());
    }
    for key in keys.iter().filter(|key| !key.is_empty()) {
        let [at, link, counters] = names(key);
        let record = pins.read(&at).unwrap_or_default();
        match program.control() {
            Some(control) => {
                bequeath(program, control, &pins, &at, record.get("previous"))?;
                put_back(control, key, &record)?;
            }
            None => give_back(key, &record)?,
        }
        pins.remove_link(&link)?;
        for name in [counters, at] {
            pins.remove(&name)?;
        }
    }
    if let Some(control) = program.control().filter(|_| pins.has(LINK)) {
        // Those that have it from `attach` are not among them any more, or keep it.
        let heirs = Found::with_default(control, &pins.keys(PLACE));
        match (&found, taken.last_mut()) {
            (None, _) => {
                let more = heirs::put_back(program, control, heirs, &taken)?;
                // What is said of them while they have it.
                taken
                    .iter_mut()
                    .filter(|one| one.place.is_empty())
                    .for_each(|one| one.state.clear());
                taken.extend(more);
            }
            (Some(_), Some(last)) if last.state.is_empty() => last.state = heirs::told(heirs.len(), true),
            (Some(_), _) => {}
        }
    }
    if found.is_none() {
        pins.remove_link(LINK)?;
        for name in pins.keys("") {
            pins.remove(&name)?;
        }
    }
    pins.tidy();
    Ok(taken)
}

/// A congestion control that was made the default of the same namespace after this one, and has this one as what was before it, gets
/// what was before both.
fn bequeath(program: Program, control: &str, pins: &Pins, at: &str, previous: &str) -> Result<(), Error> {
    let others = Program::ALL.into_iter().filter(|&other| other != program);
    for (other, beside) in others.filter_map(|other| Some((other, pins.beside(other)?))) {
        let Some(record) = beside.read(at) else { continue };
        if record.get("previous") == control && !previous.is_empty() && other.control() != Some(previous) {
            beside.rewrite(at, &record.with("previous", previous))?;
        }
    }
    Ok(())
}

/// Gives a namespace the default that it had.
fn put_back(control: &str, key: &str, record: &Record) -> Result<(), Error> {
    let Some(found) = namespace(key, record) else {
        return Ok(());
    };
    let previous = record.get("previous");
    if previous.is_empty() || found.default_control()? != control {
        return Ok(());
    }
    found.set_default_control(previous).map_err(|error| {
        Error::new(
            format!(
                "{} cannot have its default {previous} back; set another one (sysctl net.ipv4.tcp_congestion_control) and detach again",
                record.get("place")
            ),
            error.cause,
        )
    })
}

/// Gives an interface back what it may hand out at once, if it is still there and nobody changed it since.
fn give_back(key: &str, record: &Record) -> Result<(), Error> {
    let (interface, before) = (record.get("interface"), record.get("gso_max_segs"));
    let Some((found, before)) = namespace(key, record).zip(before.parse().ok()) else {
        return Ok(());
    };
    found.run(|| {
        let index = if_nametoindex(interface).ok();
        if index.is_none_or(|index| key.rsplit('-').next() != Some(index.to_string().as_str())) {
            return Ok(());
        }
        match segments(interface)? {
            1 => set_segments(interface, before),
            _ => Ok(()),
        }
    })
}

fn namespace(key: &str, record: &Record) -> Option<Found> {
    let cookie = key.split('-').next()?.parse().ok()?;
    Found::by_cookie(cookie, Path::new(record.get("path")))
}

/// Everything that is attached.
///
/// # Errors
/// The pins cannot be read.
pub fn attached() -> Result<Vec<Attached>, Error> {
    let mut list = Vec::new();
    for program in Program::ALL {
        if let Some(pins) = Pins::open(program)? {
            list.extend(
                looked_at(program, &pins)
                    .into_iter()
                    .map(|(attached, _)| attached),
            );
        }
    }
    Ok(list)
}

/// What is pinned of a program, with the key of its place.
fn looked_at(program: Program, pins: &Pins) -> Vec<(Attached, Option<String>)> {
    let keys = pins.keys(PLACE);
    let of_program = pins.read(SETTINGS).unwrap_or_default();
    let half = |complete: bool| {
        if complete {
            String::new()
        } else {
            String::from("incomplete: attach it again, or detach it")
        }
    };
    let Some(control) = program.control() else {
        let one = |key: String| {
            let [at, link, counters] = names(&key);
            let record = pins.read(&at).unwrap_or_default();
            let (place, interface) = (record.get("place"), record.get("interface"));
            let counted = if program == Program::Mark {
                &MARKS[..]
            } else {
                &OPTIONS[..]
            };
            let attached = Attached {
                program,
                place: if interface.is_empty() {
                    place.to_owned()
                } else {
                    format!("{interface} in {place}")
                },
                settings: record.get("settings").to_owned(),
                previous: String::new(),
                state: match pins.has(&link).then(|| Link::open(pins.path(&link))) {
                    None | Some(Err(_)) => half(false),
                    Some(Ok(_)) if namespace(&key, &record).is_none() => String::from(GONE),
                    Some(Ok(_)) => String::new(),
                },
                counters: counted.iter().copied().zip(pins.counters(&counters)).collect(),
            };
            (attached, Some(key))
        };
        return keys.into_iter().map(one).collect();
    };
    let complete = pins.has(LINK);
    if keys.is_empty() && !complete && !pins.has(SETTINGS) {
        return Vec::new();
    }
    let settings = of_program.get("settings").to_owned();
    let heirs = match complete {
        true => Found::with_default(control, &keys).len(),
        false => 0,
    };
    let known = Attached {
        program,
        place: String::new(),
        settings: settings.clone(),
        previous: String::new(),
        state: half(complete) + &heirs::told(heirs, false),
        counters: Vec::new(),
    };
    let one = |key: String| {
        let record = pins.read(&format!("{PLACE}{key}")).unwrap_or_default();
        let state = match namespace(&key, &record).map(|found| found.default_control()) {
            _ if !complete => half(false),
            None => String::from(GONE),
            Some(Ok(now)) if now == control => String::new(),
            Some(Ok(now)) => format!("the default is {now} now"),
            Some(Err(error)) => error.to_string(),
        };
        let attached = Attached {
            program,
            place: record.get("place").to_owned(),
            settings: settings.clone(),
            previous: record.get("previous").to_owned(),
            state,
            counters: Vec::new(),
        };
        (attached, Some(key))
    };
    std::iter::once((known, None))
        .chain(keys.into_iter().map(one))
        .collect()
}

const KNOWN: &str = "File exists: another process has made it known and takes it away at its end (fleetfoot testbed), or another mount of bpf \
    holds it. Wait for that end, or detach it there";
const LINK: &str = "link";
const SETTINGS: &str = "settings";
const PLACE: &str = "place-";
const COUNTERS: &str = "counters-";
const TRACE: &str = "trace";
const GONE: &str = "the namespace has gone";
/// Names of the counters of `bpf/options.bpf.c`.
const OPTIONS: [&str; 2] = ["connections", "refused by the kernel"];
/// Names of the counters of `bpf/mark.bpf.c`.
const MARKS: [&str; 5] = [
    "marked",
    "aggregates left unmarked",
    "IPv6 left unmarked",
    "with a DSCP or ECN of their own left unmarked",
    "fragmentable left unmarked",
];
