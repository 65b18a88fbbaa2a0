//! Which units CoDel drops where packets of 1500 bytes and frames of 19500 share a line.
//!
//! A drop of CoDel is due at a time. It strikes the unit that begins to be sent first after that, hence the one behind the unit
//! that was being sent then: one chosen in proportion to its time. So the share of frames among the drops is
//! sum over kinds k of (share of the time that k takes) * P(a frame comes next | k is sent), which is their share by number if
//! what comes next does not depend on what is sent, and more where frames travel in rows.

use crate::line;

use crate::line::{group, limit, network};
use fleetfoot_core::packet::Packet;
use fleetfoot_core::queue::{DropReason, Limit};
use fleetfoot_core::rng::Distribution;
use fleetfoot_core::superpacket::Layout;
use fleetfoot_core::tcp::Config;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::spec::{LinkIndex, LinkRate, Raw, RawMark, RawPorts, RawSource, Spec, Traffic};
use fleetfoot_sim::world::{Mode, run};
use std::ops::ControlFlow;
use std::sync::Arc;

const RATE: u64 = 1_000_000_000;
const PACKET: u32 = 1_500;
const FRAME: u32 = 19_500;

/// What passes the line from `from` on.
#[derive(Default)]
struct Passing {
    from: Instant,
    /// Propagation delay of the line.
    delay: Duration,
    before: Option<bool>,
    /// Units, packets before frames.
    all: [f64; 2],
    /// Pairs of which the second waited for longer than the target: by the first, by the second.
    follow: [[f64; 2]; 2],
    dropped: [f64; 2],
}

impl Observer for Passing {
    fn on_deliver(&mut self, now: Instant, at: LinkIndex, packet: &Packet, sojourn: Duration) {
        if at != LinkIndex(0) || now < self.from {
            return;
        }
        let frame = packet.segment.len() > PACKET;
        self.all[usize::from(frame)] += 1.0;
        // The line's delay and the target: only such units can be dropped.
        let late = sojourn > self.delay + Duration::from_millis(5);
        if let Some(before) = self.before.replace(frame)
            && late
        {
            self.follow[usize::from(before)][usize::from(frame)] += 1.0;
        }
    }

    fn on_drop(&mut self, now: Instant, at: LinkIndex, packet: &Packet, reason: DropReason) {
        if at == LinkIndex(0) && now >= self.from {
            assert_eq!(reason, DropReason::Early, "the buffer is large enough");
            self.dropped[usize::from(packet.segment.len() > PACKET)] += 1.0;
        }
    }
}

impl Passing {
    fn watch(spec: &Spec, seeds: u64) -> Passing {
        let mut all = Passing {
            from: Instant::from_millis(15_000),
            delay: spec.links[0].delay,
            ..Passing::default()
        };
        for seed in 0..seeds {
            let mut spec = spec.clone();
            spec.seed = seed;
            all.before = None;
            run(&spec, Mode::Fast, &mut all, |_| ControlFlow::Continue(())).expect("a runnable scenario");
        }
        all
    }

    /// Units that others follow which waited for longer than the target.
    fn sent(&self) -> [f64; 2] {
        self.follow.map(|next| next[0] + next[1])
    }

    /// Share of frames among all units.
    fn by_number(&self) -> f64 {
        self.all[1] / (self.all[0] + self.all[1])
    }

    /// Share of frames among those that waited for longer than the target.
    fn late(&self) -> f64 {
        let late = |kind: usize| self.follow[0][kind] + self.follow[1][kind];
        late(1) / (late(0) + late(1))
    }

    /// Share of frames among the drops.
    fn struck(&self) -> f64 {
        self.dropped[1] / (self.dropped[0] + self.dropped[1])
    }

    /// What it would be for a drop that strikes the unit behind the one being sent.
    fn behind(&self) -> f64 {
        let time = [
            self.sent()[0] * f64::from(PACKET),
            self.sent()[1] * f64::from(FRAME),
        ];
        let next = |kind: usize| self.follow[kind][1] / self.sent()[kind];
        (time[0] * next(0) + time[1] * next(1)) / (time[0] + time[1])
    }

    /// The exponent of the size in the share of units dropped.
    fn exponent(&self) -> f64 {
        let [packets, frames] = [0, 1].map(|kind| self.dropped[kind] / (self.all[kind] + self.dropped[kind]));
        (frames / packets).ln() / f64::from(FRAME / PACKET).ln()
    }

    fn print(&self, what: &str) {
        println!(
            "{what}: {} and {} sent, {} and {} dropped; frames by number {:.3}, among late units {:.3}, behind what is sent {:.3}, among drops {:.3}; g {:.3}",
            self.all[0],
            self.all[1],
            self.dropped[0],
            self.dropped[1],
            self.by_number(),
            self.late(),
            self.behind(),
            self.struck(),
            self.exponent()
        );
    }
}

/// Ten senders, sources of 1 Gbit/s, a line of 1 Gbit/s with CoDel.
fn shared(duration_ms: u64, delay_ms: u64) -> Spec {
    let mut spec = network(10, duration_ms);
    for link in &mut spec.links {
        link.rate = LinkRate::Constant(Rate::from_bps(RATE));
        link.mtu = 20_000;
    }
    for link in &mut spec.links[..2] {
        link.delay = Duration::from_millis(delay_ms);
    }
    spec.links[0].queue = "codel";
    spec.links[0].queue_values = limit("codel", Limit::Unlimited);
    spec.drain = Duration::ZERO;
    spec
}

#[test]
fn where_units_are_mixed_by_chance_codel_is_blind_to_their_size() {
    let mut spec = shared(60_000, 50);
    // 1.03 times what the line carries, five sources each; units arrive by chance.
    for (number, (bytes, share)) in [(PACKET, 0.15), (FRAME, 0.88)].into_iter().enumerate() {
        let rate = RATE as f64 / 8.0 * share / f64::from(bytes) / 5.0;
        let mut units = group(
            10,
            Traffic::Raw(Box::new(Raw {
                interarrival: Distribution::Exponential { mean: 1.0 / rate },
                count: None,
                members: 1,
                interval: Duration::ZERO,
                packet: Bytes(u64::from(bytes)),
                mark: RawMark::Regular,
                layout: Layout::LOCAL,
                length: 2,
                id: None,
                last: false,
                source: RawSource::Own,
                ports: RawPorts::New,
            })),
        );
        units.name = format!("units-{bytes}");
        units.pairs = units.pairs[5 * number..5 * number + 5].to_vec();
        units.spread = fleetfoot_sim::spec::PairPolicy::Each;
        spec.groups.push(units);
    }
    let seen = Passing::watch(&spec, 1);
    seen.print("by chance");
    assert!(seen.dropped[0] + seen.dropped[1] > 10_000.0);
    assert!(seen.exponent().abs() < 0.05, "g {}", seen.exponent());
    assert!((seen.struck() - seen.behind()).abs() < 0.03);
}

#[test]
fn where_frames_travel_in_rows_codel_drops_them_more_often() {
    // Up to 160 us of jitter at each source: otherwise bursts come back exactly one RTT later, and where that is CoDel's
    // interval the row that began the wait is struck (0.71 of the drops are frames then, where this says 0.59).
    for delay_ms in [35, 50] {
        let mut spec = shared(60_000, delay_ms);
        for link in spec.links[2..].iter_mut().filter(|link| link.forward) {
            link.impairments.jitter = Some(Distribution::Uniform {
                min: 0.0,
                max: 160e-6,
            });
        }
        for (number, bytes) in [PACKET, FRAME].into_iter().enumerate() {
            let mut flows = group(10, Traffic::Bulk { count: 5 });
            flows.name = format!("flows-{bytes}");
            let config = Arc::new(Config {
                mtu: bytes,
                ..line::config()
            });
            flows.sender = Arc::clone(&config);
            flows.receiver = config;
            flows.pairs = flows.pairs[5 * number..5 * number + 5].to_vec();
            flows.start_spacing = Duration::from_millis(310);
            flows.start = Duration::from_millis(150 * number as u64);
            spec.groups.push(flows);
        }
        let seen = Passing::watch(&spec, 5);
        seen.print(&format!("TCP, {delay_ms} ms"));
        let drops = seen.dropped[0] + seen.dropped[1];
        assert!(drops > 200.0);
        assert!(seen.struck() > seen.by_number() + 0.1, "not blind");
        // Within four deviations of a binomial draw.
        let deviation = (seen.behind() * (1.0 - seen.behind()) / drops).sqrt();
        assert!(
            (seen.struck() - seen.behind()).abs() < 4.0 * deviation,
            "{} dropped, {} behind what is sent",
            seen.struck(),
            seen.behind()
        );
    }
}
