//! `fleetfoot run FILE --replay CAPTURE`: a run in real time held to the simulated queue, packet by packet.

use crate::failure::Failure;
use crate::output::{Common, counted, plain, print};
use fleetfoot_core::queue::DropReason;
use fleetfoot_lab::run::{link_of_kernel, replay};
use fleetfoot_live::Held;
use fleetfoot_sim::spec::Spec;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::path::Path;

/// Replays a capture of the run of `spec`. Fails if the simulator does something else with any packet.
pub(super) fn execute(capture: &Path, spec: &Spec, common: &Common) -> Result<(), Failure> {
    if !spec.world.is_real() {
        return Err(Failure::usage(
            "--replay is for a run in real time: run.world = \"kernel\", \"host-sends\" or \"host-receives\" in the file or in the variant",
        ));
    }
    let link = link_of_kernel(spec).map_err(Failure::usage)?;
    let name = capture.display();
    let cannot = |why: &dyn std::fmt::Display| Failure::usage(format!("--replay {name}: {why}"));
    if capture.is_dir() {
        return Err(cannot(&"it is a folder"));
    }
    let file = File::open(capture).map_err(|error| cannot(&error))?;
    let held = replay::hold(spec, file).map_err(|why| cannot(&plain(&why)))?;
    let same = held.iter().all(|held| held.difference.is_none());
    if common.json {
        let directions: Vec<Value> = NAMES
            .iter()
            .zip(&held)
            .map(|(name, held)| document(name, held))
            .collect();
        let document = json!({ "schema": "1.0", "link": link, "same": same, "directions": directions });
        print(&format!("{document:#}\n"))?;
    } else {
        let lines = NAMES
            .iter()
            .zip(&held)
            .map(|(name, held)| words(link, name, held));
        print(&lines.collect::<String>())?;
    }
    if same { Ok(()) } else { Err(Failure::reported()) }
}

fn document(name: &str, held: &Held) -> Value {
    let drops: Map<String, Value> = drops(held)
        .map(|(reason, count)| (reason.to_owned(), count.into()))
        .collect();
    json!({
        "direction": name,
        "arrived": held.arrived,
        "left": held.left,
        "marked": held.marked,
        "dropped": drops,
        "difference": held.difference,
    })
}

fn words(link: &str, name: &str, held: &Held) -> String {
    let dropped: Vec<String> = drops(held)
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    let dropped = match dropped.is_empty() {
        true => String::from("none was dropped"),
        false => format!("dropped: {}", dropped.join(", ")),
    };
    let verdict = match &held.difference {
        None => {
            String::from("the simulated queue drops, marks and delivers the same packets at the same times")
        }
        Some(difference) => format!("the simulated queue differs: {difference}"),
    };
    format!(
        "Link {link}, {name}: {} arrived, {} left, {} of them marked, {dropped}.\n  {verdict}.\n",
        counted(held.arrived, "packet"),
        held.left,
        held.marked,
    )
}

/// Packets that were dropped, by reason.
fn drops(held: &Held) -> impl Iterator<Item = (&'static str, u64)> {
    let counts = DropReason::ALL.into_iter().zip(held.dropped);
    counts
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| (reason.name(), count))
}

/// The directions of a link.
const NAMES: [&str; 2] = ["forward", "reverse"];
