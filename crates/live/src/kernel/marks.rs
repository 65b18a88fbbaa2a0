//! Super-packets of the kernel's senders: what they send passes the marker of `fleetfoot mark` on its way to the link. A group that is
//! to lie about lengths (`declare`) lies by its port.
//!
//! **Deviations.** Groups are made of what arrives at the marker, a hop behind the sender, and only by silence: the marker cannot see
//! what a connection sends at one moment, nor its round-trip time.

use super::sockets::port;
use crate::{Clock, Emulator, Error, MarkRules, Passage};
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::superpacket::group::{Declare, Grouping, Mode};
use fleetfoot_core::superpacket::marker::Marking;
use fleetfoot_core::time::Duration;
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{GroupSpec, Spec};
use std::io::PipeReader;

/// How packets are marked; `None`: no traffic is.
///
/// # Errors
/// What the marker cannot do, in one sentence.
pub(super) fn rules(spec: &Spec) -> Result<Option<MarkRules>, String> {
    let mut found: Option<(&str, Grouping)> = None;
    let (mut ports, mut lies) = (Vec::new(), Vec::new());
    for (index, group) in marked(spec) {
        let Some(grouping) = group.interface.super_packets else {
            continue;
        };
        let cannot = |why: &str| {
            Err(format!(
                "the kernel cannot play traffic `{}`: its super-packets are made by the marker of `fleetfoot mark`, {why}",
                group.name
            ))
        };
        if spec.world.host_side().is_some() {
            return cannot("which is for two kernels (run.world = \"kernel\")");
        }
        if !matches!(grouping.mode, Mode::Timer { .. } | Mode::BoundedTimer { .. }) {
            return cannot("which knows the mode `timer` alone");
        }
        if matches!(grouping.layout, Layout::C) {
            return cannot("which has layouts A and B for IPv4");
        }
        if grouping.declare != Declare::Truth {
            lies.push((port(index)..=port(index), grouping.declare));
        }
        let grouping = Grouping {
            declare: Declare::Truth,
            ..grouping
        };
        match &found {
            Some((name, other)) if *other != grouping => {
                return cannot(&format!("which makes them as those of `{name}` are made"));
            }
            Some(_) => {}
            None => found = Some((&group.name, grouping)),
        }
        ports.push(port(index)..=port(index));
    }
    Ok(found.map(|(_, grouping)| {
        let (t_buffer, hold) = match grouping.mode {
            Mode::BoundedTimer { t_buffer, hold } => (t_buffer, hold),
            // A group is complete after `max` packets in any case.
            Mode::Timer { t_buffer } => (t_buffer, t_buffer.saturating_mul(u64::from(grouping.max))),
            Mode::Burst
            | Mode::Accumulate { .. }
            | Mode::Fixed
            | Mode::Estimate { .. }
            | Mode::Segment { .. } => (Duration::ZERO, Duration::ZERO),
        };
        MarkRules {
            marking: Marking {
                t_buffer,
                hold,
                max: grouping.max,
                by_write: false,
            },
            four: Some(grouping.layout),
            six: None,
            udp: false,
            ports,
            networks: Vec::new(),
            mtu: spec.links.iter().map(|link| link.mtu).min().unwrap_or(1500),
            seed: spec.seed,
            lies,
        }
    }))
}

/// The groups whose packets are those of connections.
fn marked(spec: &Spec) -> impl Iterator<Item = (usize, &GroupSpec)> {
    let groups = spec.groups.iter().enumerate();
    groups.filter(|(_, group)| group.traffic.facts().name != "raw")
}

/// Marks what passes from the first interface to the second until `stop` can be read from: the direction with what it marked.
///
/// # Errors
/// An interface is gone.
pub(super) fn mark(
    rules: MarkRules,
    sides: [&str; 2],
    mtu: u32,
    stop: &PipeReader,
) -> Result<Passage, Error> {
    crate::thread::prefer();
    let clock = Clock::start();
    let mut emulator = Emulator::new(sides, mtu, [Passage::marking(rules), Passage::plain()])?;
    emulator.run(&clock, stop)?;
    let [forward, _] = emulator.into_directions();
    Ok(forward)
}

/// Enters the lengths of the super-packets that were made. The marker does not tell groups apart: they are those of the first.
pub(super) fn count(spec: &Spec, passage: &Passage, output: &mut RunOutput) {
    let first = marked(spec).find(|(_, group)| group.interface.super_packets.is_some());
    let Some(of) = first.and_then(|(index, _)| output.groups.get_mut(index)) else {
        return;
    };
    for (length, &count) in passage.marked().groups.iter().enumerate() {
        (0..count).for_each(|_| of.super_packet_length.record(length as u64));
    }
}
