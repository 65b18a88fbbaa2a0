//! That connections send what a socket buffer holds in a round trip and no more, so that no line and no queue is what they wait for.
//!
//! A sender keeps what is not acknowledged, and a receiver announces room for no more than its buffer has, which in Linux is of memory, headers
//! included: either bounds a connection to its size in a round trip. Twice the line's rate times the round trip lets it fill the line and repair a loss meanwhile.

use super::{Plan, numbers};
use crate::memory;
use crate::result::{Document, Group, Link};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::routing::Paths;
use fleetfoot_sim::spec::{GroupSpec, NodeId, Traffic, Transport};

/// For each group whose connections a buffer bounds, as described: by which, and what would do.
pub(super) fn notes(plan: &Plan, document: &Document) -> Vec<String> {
    let Some(variant) = document.variants.first() else {
        return Vec::new();
    };
    let specs = plan.described.spec.groups.iter();
    specs
        .zip(&variant.groups)
        .filter_map(|(spec, group)| note(plan, spec, group, &variant.links))
        .collect()
}

fn note(plan: &Plan, spec: &GroupSpec, group: &Group, links: &[Link]) -> Option<String> {
    if spec.traffic.facts().transport != Transport::Tcp || spec.relay.is_some() {
        return None;
    }
    let (rtt_s, line) = path(plan, spec)?;
    let line_bps = plan.described.spec.links[line].rate.mean().bps() as f64;
    if links.get(line).is_some_and(|link| link.utilisation >= FULL) {
        return None;
    }
    let mut ends = [End::sender(spec), End::receiver(spec)];
    ends.sort_by_key(|end| end.holds); // the sender, where both hold as much
    let [least, other] = ends;
    let bound = bits(least.holds) / rtt_s;
    let (reached, near) = reached(spec, group, least.holds)?;
    if reached < near * bound || line_bps < WIDER * bound {
        return None;
    }
    let enough = Bytes((2.0 * line_bps * rtt_s / 8.0).ceil() as u64);
    let mut note = format!(
        "{}: a connection sends no more than {} a round trip of {}, which is {} of the line's {} (`tcp.{}`): it waits for acknowledgments, not for \
         the line. Enough is twice rate x round trip, {}: {}",
        group.name,
        memory::shown(least.holds.get()),
        numbers::seconds(rtt_s),
        numbers::rate(bound),
        numbers::rate(line_bps),
        least.key,
        memory::shown(enough.get()),
        least.command(enough),
    );
    if other.holds < enough {
        note.push_str(&format!(
            "; and {}, since `tcp.{}` holds no more than {}",
            other.command(enough),
            other.key,
            memory::shown(other.holds.get())
        ));
    }
    Some(note)
}

/// What a buffer at one end of the connections of a group lets out in a round trip.
struct End {
    key: &'static str,
    holds: Bytes,
    name: &'static str,
    sysctl: &'static str,
    /// 256ths of what the sysctl counts that are data.
    share: u64,
}

impl End {
    fn sender(spec: &GroupSpec) -> End {
        End {
            key: "send_buffer",
            holds: spec.sender.send_buffer,
            name: "senders",
            sysctl: "tcp_wmem=\"4096 16384",
            share: 256,
        }
    }

    fn receiver(spec: &GroupSpec) -> End {
        End {
            key: "receive_buffer",
            holds: spec.receiver.largest_window(),
            name: "receivers",
            sysctl: "tcp_rmem=\"4096 131072",
            share: spec.receiver.window_share(),
        }
    }

    /// How Linux is given room for `enough` data. What it counts of a receiver is memory, which headers and rounding take a part of.
    fn command(&self, enough: Bytes) -> String {
        let memory = (u128::from(enough.get()) * 256).div_ceil(u128::from(self.share.max(1)));
        let of_it = match self.share {
            256 => String::new(),
            share => format!(" ({} % of that memory is data)", share * 100 / 256),
        };
        format!(
            "on the {} `sysctl -w net.ipv4.{} {memory}\"`{of_it}",
            self.name, self.sysctl
        )
    }
}

/// The smallest base RTT of a group (s), and the slowest link on that way.
fn path(plan: &Plan, group: &GroupSpec) -> Option<(f64, usize)> {
    let spec = &plan.described.spec;
    let name = |node: NodeId| spec.nodes[node.0 as usize].name.as_str();
    let rtts = plan.described.base_rtts();
    let own = group.pairs.iter().filter_map(|&(from, to)| {
        let rtt = rtts
            .iter()
            .find(|rtt| (name(from), name(to)) == (&rtt.from, &rtt.to))?;
        Some((rtt.rtt.as_secs_f64(), from, to))
    });
    let (rtt_s, from, to) = own
        .filter(|(rtt_s, ..)| *rtt_s > 0.0)
        .min_by(|one, other| one.0.total_cmp(&other.0))?;
    let mut paths = Paths::new(spec);
    let start = paths.find(spec, from, to)?;
    let links = paths.links(start).map(|link| link.0 as usize);
    let slowest = links.min_by_key(|&link| spec.links[link].rate.mean().bps())?;
    Some((rtt_s, slowest))
}

/// The rate that a connection reached (bit/s), and the share of the bound that shows that it was bounded; `None` where its times are
/// those of start-up.
fn reached(spec: &GroupSpec, group: &Group, buffer: Bytes) -> Option<(f64, f64)> {
    let size = match &spec.traffic {
        Traffic::Bulk { .. } => return Some((group.goodput_bps.as_ref()?.mean, NEAR_BOUND)),
        Traffic::Transfer { size, .. } | Traffic::ClosedLoop { size, .. } => size.mean()?,
        Traffic::RequestResponse {
            request, response, ..
        } => request.mean()? + response.mean()?,
        _ => return None,
    };
    let fct_s = group.fct_s.as_ref()?.mean;
    (size >= SEVERAL * buffer.get() as f64).then(|| (8.0 * size / fct_s, NEAR_BOUND_OF_TRANSFERS))
}

fn bits(bytes: Bytes) -> f64 {
    8.0 * bytes.get() as f64
}

/// A goodput from this share of what a buffer permits on shows that the buffer is what bounds it: start-up and headers take the rest.
const NEAR_BOUND: f64 = 0.85;

/// The same of transfers that come to an end, which include their start-up: ten buffers take ten round trips, and start-up as many as
/// windows double from ten segments to the buffer, less than five beyond those of their bytes.
const NEAR_BOUND_OF_TRANSFERS: f64 = 0.5;

/// Transfers of fewer buffers than this are mostly start-up.
const SEVERAL: f64 = 10.0;

/// A line that is no wider than this beside what the buffer permits is as good a reason.
const WIDER: f64 = 1.05;

/// A line that is busy for this share of the time is what its connections wait for, however many share it.
const FULL: f64 = 0.95;

#[cfg(test)]
mod tests {
    use crate::compare::{Choice, Plan, build};
    use crate::result::Document;
    use crate::run::{Options, execute, simulate};
    use crate::scenario::Scenario;
    use std::sync::atomic::AtomicBool;

    /// 200 Mbit/s over a round trip of 80 ms, and a send buffer of 500 kB, which is 50 Mbit/s.
    fn noted(buffer: &str, traffic: &str) -> Vec<String> {
        played(buffer, traffic).notes
    }

    fn played(buffer: &str, traffic: &str) -> Document {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\npairs = 1\naccess = {{ rate = \"1 Gbit/s\", delay = \"0 ms\" }}\nbottleneck = {{ rate = \"200 Mbit/s\", delay = \"40 ms\", queue = {{ kind = \"drop-tail\", limit = \
             \"20 ms\" }} }}\n[tcp]\n{buffer}\n[[traffic]]\nname = \"copies\"\n{traffic}\n[run]\nduration = \"8 s\"\nwarmup = \"2 s\"\nseeds = 1\n"
        );
        let scenario = Scenario::parse("wan.toml", &text).expect("it is correct");
        let plan = Plan::baseline(scenario, &Choice::default()).expect("it resolves");
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &simulate, &|_| ());
        build(&plan, &batch.expect("it runs"), "").document
    }

    #[test]
    fn what_a_buffer_bounds_is_noted_first_with_what_would_do() {
        let small = "send_buffer = \"500 kB\"";
        for traffic in [
            "kind = \"bulk\"",
            "kind = \"closed-loop\"\nsize = \"20 MB\"\nthink = \"100 ms\"",
            "kind = \"request-response\"\nrequest = \"200 B\"\nresponse = \"20 MB\"\nthink = \"100 ms\"",
        ] {
            let notes = noted(small, traffic);
            let first = notes.first().expect("it is bounded");
            // Twice 200 Mbit/s x 80 ms.
            assert!(
                first.starts_with("copies: a connection sends no more than 500 kB a round trip of 80 ms, which is ")
                    && first.contains("(`tcp.send_buffer`)")
                    && first.contains("Enough is twice rate x round trip, 4.0 MB: on the senders `sysctl -w net.ipv4.tcp_wmem=\"4096 16384 4000000"),
                "{traffic}: {first}"
            );
        }
        let receiver = noted("receive_buffer = \"500 kB\"", "kind = \"bulk\"");
        // Of the memory of packets of 1500 bytes 160 in 256 are data: 4 MB x 256 / 160.
        assert!(
            receiver[0].contains("(`tcp.receive_buffer`)")
                && receiver[0].contains("on the receivers `sysctl -w net.ipv4.tcp_rmem=\"4096 131072 6400000\"` (62 % of that memory is data)")
                && !receiver[0].contains("tcp_wmem"),
            "{receiver:?}"
        );
    }

    /// 10 Gbit/s over 80 ms carry 100 MB: of Linux' defaults neither the 4.2 MB of senders nor the window in the receivers' 33.6 MB of
    /// memory (x 160 / 256 = 21 MB) is enough.
    #[test]
    fn every_buffer_that_is_not_enough_is_named_and_the_window_counts() {
        let carried = played("", "kind = \"bulk\"").variants[0].groups[0].clone();
        let at = |buffer: &str, goodput: f64| {
            let text = format!(
                "[network]\nkind = \"dumbbell\"\npairs = 1\naccess = {{ rate = \"40 Gbit/s\", delay = \"0 ms\" }}\nbottleneck = {{ rate = \"10 Gbit/s\", \
                 delay = \"40 ms\" }}\n[tcp]\n{buffer}\n[[traffic]]\nname = \"replica\"\nkind = \"bulk\"\n[run]\nduration = \"2 s\"\nseeds = 1\n"
            );
            let scenario = Scenario::parse("far.toml", &text).expect("it is correct");
            let plan = Plan::baseline(scenario, &Choice::default()).expect("it resolves");
            let mut group = carried.clone();
            if let Some(all) = &mut group.goodput_bps {
                all.mean = goodput;
            }
            super::note(&plan, &plan.described.spec.groups[0], &group, &[])
        };
        let both = at("", 0.4e9).expect("the sender bounds it");
        for part in [
            "no more than 4.2 MB a round trip of 80 ms, which is 419.43 Mbit/s of the line's 10.00 Gbit/s (`tcp.send_buffer`)",
            "Enough is twice rate x round trip, 200 MB: on the senders `sysctl -w net.ipv4.tcp_wmem=\"4096 16384 200000000\"`; and on the receivers \
             `sysctl -w net.ipv4.tcp_rmem=\"4096 131072 320000000\"` (62 % of that memory is data), since `tcp.receive_buffer` holds no more than 21 MB",
        ] {
            assert!(both.contains(part), "{part}: {both}");
        }
        // As measured: 2.10 Gbit/s. 20.97 MB in 80 ms are 2.097.
        let window = at("send_buffer = \"200 MB\"", 2.08e9).expect("the window bounds it");
        assert!(
            window.contains("no more than 21 MB a round trip of 80 ms, which is 2.10 Gbit/s of the line's 10.00 Gbit/s (`tcp.receive_buffer`)")
                && !window.contains("tcp_wmem"),
            "{window}"
        );
        let enough = "send_buffer = \"200 MB\"\nreceive_buffer = \"200 MB\"";
        assert_eq!(at(enough, 7.15e9), None);
    }

    #[test]
    fn a_buffer_that_holds_what_the_line_carries_bounds_nothing() {
        let bounded = |notes: Vec<String>| {
            notes
                .iter()
                .any(|note| note.contains("waits for acknowledgments"))
        };
        assert!(!bounded(noted("send_buffer = \"8 MB\"", "kind = \"bulk\"")));
        // 20 kB are there after three round trips of start-up: no buffer has anything to do with it.
        let small = "kind = \"closed-loop\"\nsize = \"20 kB\"\nthink = \"100 ms\"";
        assert!(!bounded(noted("send_buffer = \"500 kB\"", small)));
        // Seven connections fill the line with what each may send.
        for (count, bounds) in [(2, true), (7, false)] {
            let several =
                format!("kind = \"closed-loop\"\nsize = \"20 MB\"\nthink = \"1 ms\"\ncount = {count}");
            let notes = noted("send_buffer = \"500 kB\"", &several);
            assert_eq!(bounded(notes), bounds, "{count}");
        }
    }
}
