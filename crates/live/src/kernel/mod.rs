//! The kernel's TCP in place of ours: plays the traffic of a [`Spec`] with sockets of this machine, through the described link.
//!
//! Two network namespaces are the two ends; the bottleneck between them is `core`'s [`Link`](fleetfoot_core::link::Link) with its
//! queue, the one that the simulator runs, with real frames in it ([`Emulator`]). The traffic is drawn from the same random
//! streams as in the simulator, so that both begin the same transfers at the same times; the result is a [`RunOutput`], so that
//! everything that measures a simulated run measures this one. Each host of the described network is an address of the kernel at
//! its side, so that queues that tell hosts apart do so here too.
//!
//! With [`World::HostSends`](fleetfoot_sim::spec::World) or `HostReceives` our own TCP stands at one end, as a
//! [`Host`](crate::host::Host) on a TUN device, and the kernel's at the other.
//!
//! Where senders make super-packets, what the kernel sends passes a marker on its way to the link, as behind `fleetfoot mark`.
//!
//! What cannot be played is refused by [`playable`] with its reason: other kinds of traffic, more than one bottleneck, switches
//! of TCP that this kernel does not have. Links at the edges add their delay, and no queue.

mod acts;
mod connection;
mod hosts;
mod injector;
mod marks;
mod ours;
mod place;
mod play;
mod raw;
mod sockets;
mod traffic;

use crate::frames::HostNumbers;
use crate::window::Measuring;
use crate::{Clock, Direction, Emulator, Error, Tap};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::tcp::{Config, EcnFeedback, Profile, WindowValidation};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::collision;
use fleetfoot_sim::output::{Histogram, Lateness, LinkOutput, RunOutput};
use fleetfoot_sim::routing::Paths;
use fleetfoot_sim::spec::{GroupSpec, LinkSpec, NodeId, Spec};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Runs a specification with the kernel's TCP, in real time. `stop` ends it early; `pulse` gets the time reached; `taps` are shown
/// every frame at the bottleneck, towards the receivers and back.
///
/// # Errors
/// What cannot be played, or what the machine does not give.
pub fn run(
    spec: &Spec,
    stop: &AtomicBool,
    pulse: &dyn Fn(Instant),
    taps: Option<[Tap; 2]>,
) -> Result<RunOutput, String> {
    let bottleneck = playable(spec)?;
    #[cfg(feature = "bpf")]
    let _known = known_for(spec).map_err(|error| refused(&error))?;
    let reached = AtomicU64::new(0);
    // A thread of its own: what it does to its namespace ends with it.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| in_namespaces(spec, bottleneck, stop, &reached, taps));
        while !thread.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(20));
            pulse(Instant::from_nanos(reached.load(Ordering::Relaxed)));
        }
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
    .map_err(|error| refused(&error))
}

fn refused(error: &Error) -> String {
    format!("the kernel cannot play this here: {error}; `fleetfoot doctor` says what is missing")
}

/// The congestion controls of `fleetfoot attach` that a run needs: the kernel knows them as long as they are held.
#[cfg(feature = "bpf")]
fn known_for(spec: &Spec) -> Result<Vec<Arc<crate::bpf::Known>>, Error> {
    use crate::bpf::{Program, make_known};
    if spec.world.host_side() == Some(0) {
        return Ok(Vec::new()); // the kernel only receives
    }
    let needs = |program: Program| {
        let control = program.control();
        control.is_some()
            && spec
                .groups
                .iter()
                .any(|group| controller(&group.sender) == control)
    };
    let needed = Program::ALL.into_iter().filter(|&program| needs(program));
    let known: Result<Vec<_>, Error> = needed.map(make_known).collect();
    Ok(known?.into_iter().flatten().collect())
}

fn in_namespaces(
    spec: &Spec,
    bottleneck: [usize; 2],
    stop: &AtomicBool,
    reached: &AtomicU64,
    taps: Option<[Tap; 2]>,
) -> Result<RunOutput, Error> {
    let links = links(spec, bottleneck);
    let mtu = links[0].mtu.min(links[1].mtu);
    let direction = |side: usize| {
        let link = links[side].link(spec).map(Direction::new);
        link.map_err(|error| Error::new(error.to_string(), std::io::ErrorKind::InvalidInput))
    };
    let mut directions = [direction(0)?, direction(1)?];
    for (direction, tap) in directions.iter_mut().zip(taps.into_iter().flatten()) {
        direction.observe(tap);
    }
    if spec.groups.iter().any(traffic::forges) {
        directions[0].count_forged();
    }
    let numbers = spec.groups.iter().any(collision::collides).then(|| {
        let numbers = HostNumbers::default();
        directions[0].tell_hosts(HostNumbers::clone(&numbers));
        numbers
    });
    let measuring = Measuring::default();
    for direction in &mut directions {
        direction.count_within(Measuring::clone(&measuring));
    }
    let rules = marks::rules(spec).map_err(|why| Error::new(why, std::io::ErrorKind::InvalidInput))?;
    let place = place::Place::make(mtu, rules.is_some())?;
    let near = if rules.is_some() {
        place::BEHIND_MARKER
    } else {
        place::INTERFACES[0]
    };
    let hosts = hosts::Hosts::of(spec);
    let (stop_reading, stop_writing) =
        std::io::pipe().map_err(|cause| Error::new("cannot make a pipe", cause))?;
    let clock = Clock::start();
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // It begins in the namespace of this thread, the one in the middle.
        let relay = scope.spawn(|| {
            crate::thread::prefer();
            let sides = [near, place::INTERFACES[1]];
            let result = Emulator::new(sides, mtu, directions).and_then(|mut emulator| {
                // The same zero as that of what is played, and exact sleeps of this thread.
                clock.for_this_thread();
                emulator.run(&clock, &stop_reading)?;
                let missed = emulator.missed();
                Ok((emulator.into_directions(), missed))
            });
            failed.store(result.is_err(), Ordering::Release);
            result
        });
        let marker = rules.map(|rules| {
            scope.spawn(|| {
                let sides = [place::INTERFACES[0], place::MARKER];
                let result = marks::mark(rules, sides, mtu, &stop_reading);
                failed.store(result.is_err(), Ordering::Release);
                result
            })
        });
        let played = place
            .furnish(
                mtu,
                spec.groups.iter().any(|group| group.sender.ecn.is_on()),
                hosts.counts(),
            )
            .and_then(|()| {
                let attacked = play::Attacked {
                    marker: near == place::BEHIND_MARKER,
                    numbers,
                };
                play::play(spec, &place, &hosts, &attacked, &clock, &measuring, &|now| {
                    reached.store(now.as_nanos(), Ordering::Relaxed);
                    stop.load(Ordering::Relaxed) || failed.load(Ordering::Acquire)
                })
            });
        drop(stop_writing);
        let relayed = relay
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let marked = marker.map(|marker| {
            marker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let (directions, missed) = relayed?;
        let marked = marked.transpose()?;
        let mut output = played?;
        if let Some(marked) = &marked {
            marks::count(spec, marked, &mut output);
        }
        output.interrupted |= stop.load(Ordering::Relaxed);
        output.links = vec![LinkOutput::default(); spec.links.len()];
        for (side, index) in bottleneck.into_iter().enumerate() {
            output.links[index] = of_link(&directions[side], missed);
            if let (Some(forged), Some(marked)) = (&mut output.links[index].forged, &marked) {
                forged.super_packets = marked.marked().groups[2..].iter().sum();
            }
        }
        Ok(output)
    })
}

/// The counters of a direction of the link within the measured time; lateness from the start of the run.
fn of_link(direction: &Direction, missed: u32) -> LinkOutput {
    let (measured, counted) = (direction.measured(), direction.counted());
    let (bit_errors, queue_delay, counted) = (counted.bit_errors, counted.queue_delay, counted.link);
    let mut drops = counted.drops.to_vec();
    // Damaged frames are thrown away where they arrive; the link counts them as passed.
    drops[DropReason::BitError as usize][0] += bit_errors;
    LinkOutput {
        busy: counted.busy,
        packets: counted.packets,
        data_packets: counted.data_packets,
        bytes: counted.bytes,
        drops,
        events: counted.events.to_vec(),
        queue_delay,
        queue_packets: Histogram::new(),
        lateness: Some(Lateness {
            times: measured.lateness.clone(),
            late: measured.late + u64::from(missed),
        }),
        most_probes: direction.most_probes(),
        forged: direction.forged(),
    }
}

/// Whether the kernel can play a specification: the bottleneck, towards the receivers and back, as indices of links.
///
/// # Errors
/// What it cannot play, in one sentence.
pub fn playable(spec: &Spec) -> Result<[usize; 2], String> {
    if spec.bins.is_some() {
        return Err(String::from(
            "the kernel cannot keep connections in bins (run.bins)",
        ));
    }
    let mut ends = None;
    for group in &spec.groups {
        let name = &group.name;
        if !traffic::is_playable(&group.traffic) {
            return Err(format!(
                "the kernel cannot play traffic `{name}` of kind `{}`; it can play {}",
                group.traffic.facts().name,
                traffic::PLAYABLE.map(|kind| kind.facts().name).join(", ")
            ));
        }
        if let Some(reason) = traffic::exception(spec, &group.traffic) {
            return Err(format!("the kernel cannot play traffic `{name}`: {reason}"));
        }
        let interface = group.interface;
        let simulated = !interface.coalesce.is_zero() || interface.fast_open;
        let added = group.relay.is_some() || group.tls.is_some() || group.most_requests.is_some();
        if simulated || added {
            return Err(format!(
                "the kernel cannot play traffic `{name}`: coalescing, Fast Open, relays, TLS and a demand of its own are the simulator's"
            ));
        }
        let kernel_sends = spec.world.host_side() != Some(0);
        if kernel_sends && let Some(key) = foreign_switch(&group.sender) {
            return Err(format!(
                "the kernel cannot play traffic `{name}`: its TCP is profile `linux`, of which only `ecn`, `nagle` and `congestion_control` can be chosen (reno, cubic, bbr, and with the feature bpf, or after `fleetfoot attach`, cdg, and cubic with window_validation = \"newcwv\"); `{key}` differs"
            ));
        }
        if let Some(side) = spec.world.host_side() {
            let of_ours = |group: &GroupSpec| Arc::clone([&group.sender, &group.receiver][side]);
            if *of_ours(group) != *of_ours(&spec.groups[0]) {
                return Err(format!(
                    "one host of ours is at that end: the [tcp] of traffic `{name}` must be that of `{}`",
                    spec.groups[0].name
                ));
            }
        }
        let listed = group.traffic.listed().iter();
        let pairs = group.pairs.iter().copied();
        for (from, to) in pairs.chain(listed.map(|line| (line.source, line.destination))) {
            let path = [
                bottleneck_between(spec, from, to)?,
                bottleneck_between(spec, to, from)?,
            ];
            if *ends.get_or_insert(path) != path {
                return Err(String::from(
                    "the kernel can play one bottleneck, which all traffic passes in the same direction",
                ));
            }
        }
    }
    marks::rules(spec)?;
    ends.ok_or_else(|| String::from("there is no traffic to play"))
}

/// The bottleneck as real packets pass it, towards the receivers and back: with the delay of the links beside it.
pub fn links(spec: &Spec, bottleneck: [usize; 2]) -> [LinkSpec; 2] {
    let extra = delays_beside(spec, bottleneck);
    [0, 1].map(|side| {
        let link = &spec.links[bottleneck[side]];
        LinkSpec {
            delay: link.delay + extra[side],
            ..link.clone()
        }
    })
}

/// The slowest link on the way from one host to another.
fn bottleneck_between(spec: &Spec, from: NodeId, to: NodeId) -> Result<usize, String> {
    let path = path(spec, from, to).ok_or_else(|| String::from("two hosts are not connected"))?;
    let slowest = path
        .iter()
        .copied()
        .min_by_key(|&link| spec.links[link].rate.mean());
    slowest.ok_or_else(|| String::from("two hosts are the same"))
}

/// Delay of the links beside `link`, by their indices towards the receivers and back, on the way of the first pair of hosts whose
/// packets pass it: real packets have one path. Zero if no packets do.
pub fn delays_beside(spec: &Spec, link: [usize; 2]) -> [Duration; 2] {
    let pairs = spec.groups.iter().flat_map(|group| {
        let listed = group.traffic.listed().iter();
        let listed = listed.map(|line| (line.source, line.destination));
        group.pairs.iter().copied().chain(listed)
    });
    for (from, to) in pairs {
        let there = path(spec, from, to).unwrap_or_default();
        if there.contains(&link[0]) {
            let back = path(spec, to, from).unwrap_or_default();
            return [(there, link[0]), (back, link[1])].map(|(path, link)| {
                let others = path.iter().filter(|&&other| other != link);
                others.fold(Duration::ZERO, |sum, &other| sum + spec.links[other].delay)
            });
        }
    }
    [Duration::ZERO; 2]
}

/// The links from one host to another.
fn path(spec: &Spec, from: NodeId, to: NodeId) -> Option<Vec<usize>> {
    let mut paths = Paths::new(spec);
    let start = paths.find(spec, from, to)?;
    Some(paths.links(start).map(|link| link.0 as usize).collect())
}

/// What the kernel calls a congestion control, if it can have it. Those of `fleetfoot attach` have names of their own there.
fn controller(config: &Config) -> Option<&'static str> {
    Some(match (config.congestion_control, config.window_validation) {
        ("cubic", WindowValidation::NewCwv) => "ff_newcwv",
        ("cdg", _) => "ff_cdg",
        (name @ ("reno" | "cubic" | "bbr"), _) => name,
        _ => return None,
    })
}

/// A switch of TCP that differs from profile `linux` and cannot be set in the kernel.
fn foreign_switch(config: &Config) -> Option<String> {
    let values = config.congestion_control_values.as_ref();
    let mut defaults = values.map(|values| Values::defaults(values.table()));
    let name = controller(config);
    if let (Some("ff_cdg"), Some((defaults, values))) = (name, defaults.as_mut().zip(values)) {
        // `core` can back off over a round trip, as Linux's CDG does, or at once, as a program in BPF has to.
        let _ = defaults.set("at_once", values.value("at_once"));
    }
    let Some(name) = name.filter(|_| defaults.as_ref() == values) else {
        return Some(String::from("congestion_control"));
    };
    let mut kernel = Config::profile(Profile::Linux);
    kernel.congestion_control = config.congestion_control;
    kernel.congestion_control_values = defaults;
    if name == "ff_newcwv" {
        kernel.window_validation = config.window_validation;
    }
    kernel.ecn = config.ecn.min(EcnFeedback::Classic); // kernels before 7.0 take no more
    kernel.nagle = config.nagle;
    kernel.mtu = config.mtu;
    kernel.measured = config.measured;
    kernel.plugins = config.plugins;
    if kernel == *config {
        return None;
    }
    let differs = Config::SWITCHES
        .iter()
        .find(|switch| switch.shown(&kernel) != switch.shown(config));
    Some(differs.map_or_else(
        || String::from("another switch"),
        |switch| switch.name().to_string(),
    ))
}
