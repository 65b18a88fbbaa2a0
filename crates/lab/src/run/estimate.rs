//! What a batch of runs needs, from its specifications alone: about how long a run takes, and at least so much memory, so that a batch
//! that cannot fit into it is refused before it begins. What is said of memory are lower bounds: what arrives, what is open from the
//! start, what is kept of each run.

use super::Job;
use crate::memory;
use fleetfoot_core::rng::Distribution;
use fleetfoot_sim::output::{FlowRecord, GroupOutput, LinkOutput};
use fleetfoot_sim::spec::{GroupSpec, LinkRate, PairPolicy, Spec, Traffic, World};
use fleetfoot_sim::world::CONVERSATION_BYTES;

/// Says why the runs of `jobs`, each with so many seeds, do not fit into the memory that the program may take.
///
/// # Errors
/// In words, with what takes most and what to change.
pub fn fits(jobs: &[Job], seeds: usize) -> Result<(), String> {
    let ceiling = memory::ceiling() as f64;
    let needed = |what: &str, bytes: f64, change: &str| {
        format!(
            "{what} would take at least {}, more than this program may take ({}; --memory changes it): {change}",
            memory::shown(bytes as u64),
            memory::shown(ceiling as u64)
        )
    };
    let mut kept = 0.0;
    for job in jobs {
        for group in &job.spec.groups {
            let held = Held::of(group, &job.spec);
            let bytes = held.open * CONVERSATION_BYTES as f64 + held.record_bytes();
            if bytes > ceiling {
                let what = format!("`{}`: {}", group.name, held.in_words());
                return Err(needed(&what, bytes, held.change()));
            }
            kept += held.record_bytes() * seeds as f64;
        }
        let fixed =
            job.spec.links.len() * size_of::<LinkOutput>() + job.spec.groups.len() * size_of::<GroupOutput>();
        kept += (fixed + RUN_BYTES) as f64 * seeds as f64;
    }
    if kept > ceiling {
        let runs = jobs.len() as f64 * seeds as f64;
        let what = format!(
            "the results of {runs:.0} runs ({} variants with {seeds} seeds)",
            jobs.len()
        );
        let change = "take fewer seeds or variants, a shorter duration, or fewer arrivals";
        return Err(needed(&what, kept, change));
    }
    Ok(())
}

/// About how long a run takes (s): one in real time as long as it says; else the data packets that the slowest link can carry, at a typical cost. Within a factor of
/// three of what the groups of experiments and the built-in line took on one machine.
pub fn expected_s(spec: &Spec) -> f64 {
    let seconds = spec.duration.as_secs_f64();
    if spec.world != World::Simulator {
        return seconds; // real time
    }
    let bottleneck = spec
        .links
        .iter()
        .filter_map(|link| match link.rate {
            LinkRate::Constant(rate) => Some(rate.bps() as f64),
            LinkRate::Trace { .. } => None,
        })
        .fold(f64::INFINITY, f64::min);
    let bulk = spec.groups.iter().any(|group| group.traffic.facts().greedy);
    // Long flows cost least for each packet; others leave the line idle, yet open and close connections.
    let packet_s = if bulk { 0.6e-6 } else { 1.2e-6 };
    // As if every group had the same share.
    let per_byte: f64 = spec
        .groups
        .iter()
        .map(|group| 1.0 / f64::from(group.sender.mtu.max(1)))
        .sum();
    let per_byte = per_byte / spec.groups.len().max(1) as f64;
    packet_s * (seconds * bottleneck / 8.0 * per_byte).min(1e9)
}

/// What a traffic group has at least.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Conversations open at the same time.
    open: f64,
    /// Flow records.
    records: f64,
    /// Samples of latencies.
    samples: f64,
}

impl Held {
    fn of(group: &GroupSpec, spec: &Spec) -> Held {
        let end = group.stop.map_or(spec.duration, |stop| stop.min(spec.duration));
        let seconds = (end.as_secs_f64() - group.start.as_secs_f64()).max(0.0);
        let measured = (end.as_secs_f64() - group.start.max(spec.warmup).as_secs_f64()).max(0.0);
        let each = match group.spread {
            PairPolicy::Each => group.pairs.len() as f64,
            PairPolicy::RoundRobin | PairPolicy::Random => 1.0,
        };
        let of_count = |count: u32| f64::from(count) * each;
        let times = |seconds: f64, gap: &Distribution| match gap.mean() {
            // Arrivals that are random may be fewer than expected.
            Some(mean) if mean > 0.0 => seconds / mean / 2.0,
            _ => 0.0,
        };
        match &group.traffic {
            Traffic::Bulk { count } | Traffic::Cbr { count, .. } | Traffic::Incast { count, .. } => Held {
                open: of_count(*count),
                ..Held::default()
            },
            Traffic::Transfer {
                interarrival, count, ..
            } => {
                let most = count.map_or(f64::INFINITY, |count| count as f64);
                Held {
                    records: times(measured, interarrival).min(most) * each,
                    ..Held::default()
                }
            }
            Traffic::ClosedLoop { count, .. } | Traffic::RequestResponse { count, .. } => Held {
                open: of_count(*count),
                ..Held::default()
            },
            Traffic::OnOff { count, interval, .. } => Held {
                open: of_count(*count),
                records: of_count(*count) * times(measured, interval),
                ..Held::default()
            },
            Traffic::Thin { count, interval, .. } => Held {
                open: of_count(*count),
                // Each write is delivered and acknowledged.
                samples: 2.0 * of_count(*count) * times(seconds, interval).min(times(measured, interval)),
                ..Held::default()
            },
            Traffic::Quic(quic) => {
                let most = quic.count.map_or(f64::INFINITY, |count| count as f64);
                Held {
                    records: times(measured, &quic.interarrival).min(most) * each,
                    ..Held::default()
                }
            }
            Traffic::Ping { interval, .. } => Held {
                records: times(measured, interval) * each,
                ..Held::default()
            },
            Traffic::Web(web) => Held {
                open: of_count(web.count),
                ..Held::default()
            },
            Traffic::QuicWeb(web) => Held {
                open: of_count(web.count),
                ..Held::default()
            },
            Traffic::Streaming(streaming) => Held {
                open: of_count(streaming.count),
                // Each segment is an exchange.
                records: of_count(streaming.count) * measured / streaming.segment.as_secs_f64().max(1e-3),
                ..Held::default()
            },
            // As many as their files list, or none.
            Traffic::Flows { .. }
            | Traffic::Video(_)
            | Traffic::Dns(_)
            | Traffic::Raw(_)
            | Traffic::Tfrc(_)
            | Traffic::Replay(_) => Held::default(),
        }
    }

    fn record_bytes(&self) -> f64 {
        self.records * size_of::<FlowRecord>() as f64 + self.samples * size_of::<f64>() as f64
    }

    fn in_words(&self) -> String {
        if self.open > self.records.max(self.samples) {
            format!("{:.0} conversations at a time", self.open)
        } else if self.records > self.samples {
            format!("about {:.0} flows in each run", 2.0 * self.records)
        } else {
            format!("about {:.0} samples in each run", 2.0 * self.samples)
        }
    }

    fn change(&self) -> &'static str {
        if self.open > self.records.max(self.samples) {
            "lower its `count`"
        } else {
            "lower its rate of arrivals or shorten `run.duration`"
        }
    }
}

/// What a finished run takes at least beyond its groups and links (bytes).
const RUN_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::Held;
    use crate::scenario::{Scenario, Setting};

    fn held(traffic: &str) -> Held {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\npairs = 2\nbottleneck = {{ rate = \"1 Mbit/s\", delay = \"1 ms\" }}\n\
             [[traffic]]\nname = \"a\"\n{traffic}\n[run]\nduration = \"10 s\"\nwarmup = \"2 s\"\n"
        );
        let scenario = Scenario::parse("held.toml", &text).unwrap_or_else(|error| panic!("{error}"));
        let resolved = scenario.resolve(&Setting::none()).expect("it resolved before");
        Held::of(&resolved.spec.groups[0], &resolved.spec)
    }

    #[test]
    fn what_a_group_holds_follows_from_its_rates_and_counts() {
        // Half of what is expected in the 8 s that count.
        let poisson = "kind = \"transfer\"\nsize = \"1 kB\"\narrivals = { dist = \"poisson\", rate = \"100 per second\" }";
        assert_eq!(held(poisson).records.round(), 400.0);
        assert_eq!(held(&format!("{poisson}\ncount = 7")).records, 7.0);
        let bulk = held("kind = \"bulk\"\ncount = 3\nspread = \"each\"");
        assert_eq!((bulk.open, bulk.records), (6.0, 0.0));
    }
}
