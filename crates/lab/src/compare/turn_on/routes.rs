//! Properties of routes: which route the packets of a comparison take, and how it is changed.
//!
//! Over a line to a provider that is the default route. Hosts of one site may be of one subnet, whose own route is longer and comes first:
//! there the kernel is asked for the route to a peer (`ip route get fibmatch`, Linux 4.13), whichever it is.

use super::super::{Plan, place};
use super::endpoints::How;
use super::line;
use super::queues::tc_time;
use crate::scenario::LinkInfo;
use fleetfoot_core::time::Duration;

/// A route by which packets leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// The default route.
    Default,
    /// The one to a host of the same site.
    ToPeer,
}

impl Route {
    /// The route of the hosts of `plan`, whose network holds a line to a provider or not.
    pub(super) fn of(plan: &Plan, access_line: bool) -> Route {
        match !access_line && place::base_rtt(&plan.described) < ONE_SITE {
            true => Route::ToPeer,
            false => Route::Default,
        }
    }

    /// A property in place of the one that the route may have; `ip` prints `rto_min lock` and does not read it.
    pub(super) fn with(self, property: &str, pattern: &str, value: &str) -> How {
        let (peer, shown) = match self {
            Route::Default => ("", "ip route show default"),
            Route::ToPeer => (PEER, "ip route get fibmatch $PEER"),
        };
        How::Command(format!(
            "{peer}ip route change $({shown} | head -n 1 | sed 's/rto_min lock/rto_min/; s/ {property} {pattern}//') {property} {value}"
        ))
    }
}

/// Whether users stand at one end of a line and servers of others at the other: by its medium, or by rates that differ between the directions.
pub(super) fn is_access_line(plan: &Plan) -> bool {
    let medium = |info: &LinkInfo| info.medium.is_some_and(line::leads_to_others);
    let uneven = || {
        plan.places.iter().any(|place| {
            let way_back = plan
                .places
                .iter()
                .find(|other| other.link == place.link && other.forward != place.forward);
            way_back.is_some_and(|other| other.rate != place.rate)
        })
    };
    plan.described.links_info.iter().any(medium) || uneven()
}

/// What is said of `commands` that change a route.
pub(super) fn note(commands: &[String]) -> String {
    let has = |words: &str| commands.iter().any(|command| command.contains(words));
    let mut note = String::new();
    if has("ip route change") {
        note.push_str(" It holds for IPv4 until the route is set anew; for IPv6 the same with ip -6.");
    }
    if has(PEER) {
        note.push_str(
            " PEER is the address of a host at the other end: the command changes the route that leads there, which within a subnet is the subnet's own \
             and not the default route (Linux 4.13 or later); for hosts in several subnets it is repeated for each. Where `ip route get fibmatch $PEER` shows \
             the default route, the change holds for everything beyond it as well.",
        );
    }
    note
}

/// A time as `ip route` reads it: whole milliseconds or seconds.
pub(super) fn route_time(span: Duration) -> String {
    let rounded = Duration::from_millis(span.as_nanos().div_ceil(1_000_000).max(1));
    tc_time(rounded)
}

const PEER: &str = "PEER=10.0.0.3; ";

/// Hosts that are farther from each other (base RTT) are of no one subnet.
const ONE_SITE: Duration = Duration::from_millis(5);
