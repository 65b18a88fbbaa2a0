//! The capture of a run in real time, held to the simulator: what arrived at the bottleneck passes the simulated queue.
//!
//! Such a capture (`fleetfoot run FILE --pcap CAPTURE`, without `--pcap-at`) shows every frame at three points of each direction.
//! Comments say what frames do not: on the first what the clock of the link showed, on those that left how much later than the
//! link this machine was, on those that were dropped why.

use super::link_of_kernel;
use crate::import::reader::{Frame, read};
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_live::kernel::{links, playable};
use fleetfoot_live::{Event, Held, Recording, Refusal, Tapped};
use fleetfoot_sim::spec::Spec;
use fleetfoot_sim::world::Mode;
use std::io::Read;

/// The point of a capture to which an event belongs: three of the forward direction (in, out, drop), then three of the reverse one.
pub const fn point(direction: u8, event: Event) -> u32 {
    let place = match event {
        Event::Entered => IN,
        Event::Left { .. } => OUT,
        Event::Dropped(_) | Event::Refused(_) => DROP,
    };
    direction as u32 * POINTS + place
}

/// What a capture says beside a frame; `first`: it is the first of the capture.
pub fn remark(tapped: &Tapped, first: bool) -> Option<String> {
    let of_event = match tapped.event {
        Event::Entered => None,
        Event::Left { late, .. } => Some(format!("{LATE}{} ns", late.as_nanos())),
        Event::Dropped(reason) => Some(reason.name().to_owned()),
        Event::Refused(refusal) => Some(refusal.name().to_owned()),
    };
    if !first {
        return of_event;
    }
    let clock = format!("{CLOCK}{} ns", tapped.at.since(Instant::ZERO).as_nanos());
    Some(match of_event {
        Some(of_event) => format!("{of_event}, {clock}"),
        None => clock,
    })
}

/// Holds a capture of a run of `spec` to the simulator: both directions of the bottleneck, towards the receivers and back.
///
/// # Errors
/// Why this is no such capture, in one sentence, or why the kernel cannot play this run.
pub fn hold(spec: &Spec, capture: impl Read + Send) -> Result<[Held; 2], String> {
    let links = links(spec, playable(spec)?);
    let recordings = recordings(capture)?;
    let mut held = Vec::new();
    for (recording, link) in recordings.iter().zip(&links) {
        let one = recording.hold(spec, link, Mode::Fast);
        held.push(
            one.map_err(|error| format!("link `{}`: {error}", link_of_kernel(spec).unwrap_or_default()))?,
        );
    }
    held.try_into()
        .map_err(|_| String::from("a link has two directions"))
}

/// What a capture shows of both directions.
///
/// # Errors
/// Why it is no capture of a run in real time, in one sentence.
pub fn recordings(capture: impl Read + Send) -> Result<[Recording; 2], String> {
    let mut recordings = [Recording::new(), Recording::new()];
    let mut zero = None;
    let mut number = 0_u64;
    let mut problem = None;
    let stop = read(capture, |frame, _| {
        number += 1;
        let added = take(&mut recordings, &mut zero, &frame);
        problem = added.err().map(|why| format!("packet {number}: {why}"));
        problem.is_none()
    })?;
    if let Some(problem) = problem.or(stop.damage) {
        return Err(problem);
    }
    if stop.dropped > 0 {
        return Err(format!(
            "{} frames are not in it: writing was slower than the link, so it cannot be replayed",
            stop.dropped
        ));
    }
    if number == 0 {
        return Err(String::from("there is no packet in it"));
    }
    Ok(recordings)
}

/// Adds a frame of a capture. `zero` is the zero of the link's clock, in nanoseconds since 1970, once it is known.
fn take(recordings: &mut [Recording; 2], zero: &mut Option<u64>, frame: &Frame<'_>) -> Result<(), String> {
    let comment = frame.comment.unwrap_or_default();
    let number = |name: &str| {
        let digits = comment.split(", ").find_map(|part| part.strip_prefix(name))?;
        digits.strip_suffix(" ns")?.parse::<u64>().ok()
    };
    let zero = match *zero {
        Some(zero) => zero,
        None => {
            let clock = number(CLOCK).ok_or(
                "it does not say what the clock of the link showed: --pcap of a run in real time writes that, without --pcap-at",
            )?;
            *zero.insert(frame.time_ns.saturating_sub(clock))
        }
    };
    let reason = comment.split(", ").next().unwrap_or_default();
    let event = match frame.interface % POINTS {
        IN => Event::Entered,
        OUT => Event::Left {
            waited: Duration::ZERO,
            late: Duration::from_nanos(number(LATE).ok_or("it does not say how late it left")?),
        },
        _ => {
            let drop = DropReason::ALL.into_iter().find(|known| known.name() == reason);
            let refusal = || Refusal::ALL.into_iter().find(|known| known.name() == reason);
            match drop {
                Some(reason) => Event::Dropped(reason),
                None => Event::Refused(refusal().ok_or_else(|| {
                    let known = DropReason::ALL.map(DropReason::name).join(", ");
                    format!("it was dropped for a reason that is not known, \"{reason}\"; known are {known}")
                })?),
            }
        }
    };
    let at = Instant::from_nanos(frame.time_ns.saturating_sub(zero));
    let direction = frame.interface / POINTS;
    let recording = recordings
        .get_mut(direction as usize)
        .ok_or("it was captured at a seventh point; such a run has six: in, out and drop, each way")?;
    recording.add(at, event, frame.data, frame.length)
}

/// Points of a direction: before its queue, at its far end, where it drops packets.
const POINTS: u32 = 3;
const IN: u32 = 0;
const OUT: u32 = 1;
const DROP: u32 = 2;

/// What comments begin with.
const CLOCK: &str = "clock of the link ";
const LATE: &str = "late ";
