//! The one order of events: it does not depend on insertion, on the reuse of slots, or on the mode of the engine.

use crate::line::{always, config, group, network, outcome};
use fleetfoot_core::rng::{Probability, Rng};
use fleetfoot_core::tcp::{Config, RtoConfig};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Rate;
use fleetfoot_sim::event::{EventKey, EventKind, EventQueue};
use fleetfoot_sim::observe::{AppEvent, Observer};
use fleetfoot_sim::spec::{LinkRate, Loss, PairPolicy, Traffic};
use fleetfoot_sim::world::{Mode, run};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Keys of every kind at few moments, so that most are ties in time. One arrival per link, as in a run.
fn keys(rng: &mut Rng) -> BTreeSet<EventKey> {
    let mut keys = BTreeSet::new();
    for link in 0..20 {
        keys.insert(EventKey::new(
            Instant::from_nanos(rng.below(4)),
            EventKind::Arrival,
            link,
            0,
        ));
    }
    for _ in 0..200 {
        let at = Instant::from_nanos(rng.below(4));
        let (place, number) = (rng.below(20) as u32, rng.below(20) as u32);
        keys.insert(match rng.below(3) {
            0 => EventKey::new(at, EventKind::Departure, place, 0),
            1 => EventKey::new(at, EventKind::App, place, number),
            _ => EventKey::timer(at, place, number),
        });
    }
    keys
}

#[test]
fn events_come_out_in_order_however_they_went_in() {
    let mut rng = Rng::from_seed(5);
    for _ in 0..50 {
        let sorted = keys(&mut rng);
        for _ in 0..20 {
            let mut shuffled: Vec<EventKey> = sorted.iter().copied().collect();
            for last in (1..shuffled.len()).rev() {
                shuffled.swap(last, rng.below(last as u64 + 1) as usize);
            }
            let mut queue = EventQueue::new(20);
            for key in shuffled {
                if key.kind() == EventKind::Arrival {
                    queue.set_arrival(key.place(), key.at());
                } else {
                    queue.push(key);
                }
            }
            for &expected in &sorted {
                let key = queue.pop_until(Instant::FAR_FUTURE);
                assert_eq!(key, Some(expected));
                if expected.kind() == EventKind::Arrival {
                    queue.set_arrival(expected.place(), Instant::FAR_FUTURE);
                }
            }
            assert!(queue.is_empty());
        }
    }
}

/// Counts how often a slot is used again.
#[derive(Default)]
struct Reuse {
    opened: u32,
    highest: u32,
}

impl Observer for Reuse {
    fn on_app(&mut self, _now: Instant, event: &AppEvent) {
        if let AppEvent::Opened { data, .. } = event {
            self.opened += 1;
            self.highest = self.highest.max(data.0 / 2);
        }
    }
}

#[test]
fn ties_between_timers_do_not_depend_on_slots() {
    // Eight identical senders whose transfers begin at the same moments: nearly everything is a tie. Losses are noticed
    // at other times in the two modes, so slots are freed and used again in another order. `outcome` compares the modes.
    for seed in 0..40 {
        let mut spec = network(8, 5_000);
        spec.seed = seed;
        spec.groups.push(group(
            8,
            Traffic::Transfer {
                size: always(3_000.0),
                interarrival: always(0.05),
                count: None,
            },
        ));
        spec.groups[0].spread = PairPolicy::Each;
        let config = config();
        let config = Arc::new(Config {
            msl: Duration::from_millis(1),
            rto: RtoConfig {
                initial: Duration::from_millis(200),
                ..config.rto
            },
            ..config
        });
        spec.groups[0].sender = Arc::clone(&config);
        spec.groups[0].receiver = config;
        // Strays that are lost after their connection ended, behind others in a queue: there the modes notice differently.
        for link in &mut spec.links[..2] {
            link.impairments.loss = Loss::Random(Probability::from_f64(0.2));
            link.rate = LinkRate::Constant(Rate::from_bps(2_000_000));
        }
        for link in &mut spec.links[2..] {
            link.impairments.duplicate = Probability::from_f64(0.2);
        }
        outcome(&spec);
        let mut reuse = Reuse::default();
        run(&spec, Mode::Fast, &mut reuse, |_| ControlFlow::Continue(())).expect("a runnable scenario");
        assert!(
            reuse.opened > reuse.highest + 20,
            "{} {}",
            reuse.opened,
            reuse.highest
        );
    }
}
