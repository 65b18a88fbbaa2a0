//! Traffic that would go round without time passing: refused, since such a run never ends.

use super::distribution::largest_hint;
use super::error::Error;
use super::network::Network;
use super::read::Section;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::spec::{LinkRate, LinkSpec, NodeId, Pace, Traffic};

/// Checks that a group which goes on by itself needs time for each of its rounds.
pub(super) fn moves(
    traffic: &Traffic,
    pairs: &[(NodeId, NodeId)],
    section: &Section,
    network: &Network,
) -> Result<(), Error> {
    let pause = match traffic.pace() {
        Pace::Prescribed => return Ok(()),
        Pace::Pause(pause) => Some(pause),
        Pace::Ceaseless => None,
    };
    if pause.is_some_and(|pause| largest_hint(pause).is_none_or(|largest| largest > 0.0)) {
        return Ok(());
    }
    let mut paths = network.paths();
    let mut timeless = |from, to| paths.links(from, to).into_iter().flatten().all(takes_no_time);
    let Some(&(from, to)) = pairs
        .iter()
        .find(|&&(from, to)| timeless(from, to) && timeless(to, from))
    else {
        return Ok(());
    };
    let name = |id: NodeId| network.nodes[id.0 as usize].name.as_str();
    let (field, what) = match pause {
        Some(_) => ("think", ", and `think` is 0"),
        None => ("kind", ""),
    };
    let place = section
        .table
        .get(field)
        .map_or(&section.place, |node| &node.place);
    let path = super::read::join(&section.path, field);
    let message = format!(
        "time would stand still: the way from `{}` to `{}` and back takes none{what}",
        name(from),
        name(to)
    );
    let help = "give a link on the way a `delay`, or a `rate` other than \"unlimited\"";
    let or = if pause.is_some() {
        "; or `think` a time"
    } else {
        ""
    };
    Err(Error::at(place, &path, message).help(place, format!("{help}{or}")))
}

fn takes_no_time(link: &LinkSpec) -> bool {
    matches!(link.rate, LinkRate::Constant(Rate::UNLIMITED))
        && link.delay == Duration::ZERO
        && link.processing == Duration::ZERO
        && link.impairments.jitter.is_none()
}
