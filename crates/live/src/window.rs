//! The part of a run within which a direction of the link counts, as the simulator's links do: from the end of the warm-up to the end of
//! the measured time.

use fleetfoot_core::link::LinkStatistics;
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::output::Histogram;
use std::sync::{Arc, OnceLock};

/// Begin and end of the measured time by the clock of the directions, known when the run begins.
pub(crate) type Measuring = Arc<OnceLock<[Instant; 2]>>;

/// What a direction has counted.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) link: LinkStatistics,
    /// Damaged frames are thrown away where they arrive; the link counts them as passed.
    pub(crate) bit_errors: u64,
    /// Time in the queue of each frame that left it, nanoseconds.
    pub(crate) queue_delay: Histogram,
}

/// Counters of one direction at both ends of the measured time.
#[derive(Debug, Default)]
pub(crate) struct Window {
    measuring: Measuring,
    before: Option<LinkStatistics>,
    bit_errors_before: u64,
    after: Option<Counted>,
}

/// What a direction passes at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    Nothing,
    /// The warm-up ends: waits count from now on.
    Begin,
    /// What was counted up to now is what counts.
    End,
}

impl Window {
    pub(crate) fn new(measuring: Measuring) -> Window {
        Window {
            measuring,
            ..Window::default()
        }
    }

    /// What is passed at `now`, before anything that happens then is counted.
    pub(crate) fn passed(&self, now: Instant) -> Passed {
        match self.measuring.get() {
            Some([from, _]) if self.before.is_none() && now >= *from => Passed::Begin,
            Some([_, to]) if self.before.is_some() && self.after.is_none() && now >= *to => Passed::End,
            _ => Passed::Nothing,
        }
    }

    /// The measured time begins with these counters.
    pub(crate) fn begin(&mut self, link: &LinkStatistics, bit_errors: u64) {
        self.before = Some(*link);
        self.bit_errors_before = bit_errors;
    }

    /// It ends with these.
    pub(crate) fn end(&mut self, counted: Counted) {
        self.after = Some(counted);
    }

    /// What was counted within the measured time, where the counters are `now` these. A run that ended in its warm-up has counted nothing.
    pub(crate) fn within(&self, now: Counted) -> Counted {
        let Some(before) = &self.before else {
            return Counted {
                link: LinkStatistics::default(),
                bit_errors: 0,
                queue_delay: Histogram::new(),
            };
        };
        let mut counted = self.after.clone().unwrap_or(now);
        counted.bit_errors -= self.bit_errors_before;
        let link = &mut counted.link;
        link.packets -= before.packets;
        link.data_packets -= before.data_packets;
        link.bytes = Bytes(link.bytes.0 - before.bytes.0);
        link.busy = Duration::from_nanos(link.busy.as_nanos() - before.busy.as_nanos());
        for reason in DropReason::ALL {
            let (own, before) = (&mut link.drops[reason as usize], before.drops[reason as usize]);
            own.iter_mut()
                .zip(before)
                .for_each(|(own, before)| *own -= before);
        }
        let events = link.events.iter_mut().zip(before.events);
        events.for_each(|(own, before)| *own -= before);
        counted
    }
}
