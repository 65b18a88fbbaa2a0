//! When recorded connections start, and in which order.

use crate::spec::{GroupSpec, Replay};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::time::{Duration, Instant};

/// The connections of a replay in the order of their starts, which is not that of the recording where each starts later by a time
/// of its own.
pub(super) struct Starts {
    /// Start and index in the recording.
    in_order: Vec<(Instant, u32)>,
}

impl Starts {
    /// The connections that start before `stop`.
    pub(super) fn new(seed: u64, group: &GroupSpec, replay: &Replay, stop: Instant) -> Starts {
        let most = replay.start_jitter.as_secs_f64();
        let jitter = |index: usize| {
            if most == 0.0 {
                return Duration::ZERO;
            }
            let mut random = Rng::for_element(seed, &group.name, &format!("start {index}"));
            Duration::from_secs_f64(most * random.uniform())
        };
        let begin = Instant::ZERO + group.start;
        let recorded = replay.connections.iter().enumerate();
        let recorded = recorded.map(|(index, one)| (index, begin.saturating_add(one.start)));
        let mut in_order: Vec<(Instant, u32)> = recorded
            .take_while(|(_, start)| *start < stop)
            .map(|(index, start)| (start.saturating_add(jitter(index)), index as u32))
            .filter(|(start, _)| *start < stop)
            .collect();
        in_order.sort_unstable(); // those of one moment in the order of the recording
        Starts { in_order }
    }

    pub(super) fn len(&self) -> usize {
        self.in_order.len()
    }

    /// When the connection with this number starts, if there is one.
    pub(super) fn at(&self, number: u32) -> Option<Instant> {
        self.in_order.get(number as usize).map(|start| start.0)
    }

    /// Index in the recording of the connection with this number.
    pub(super) fn recorded(&self, number: u32) -> usize {
        self.in_order[number as usize].1 as usize
    }
}
