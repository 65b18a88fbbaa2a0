//! What acknowledgments of the first window say of the path: the rate of the bottleneck, and when to stop spreading.
//!
//! **Source.** As `spreading`.
//! **Deviations.** None known.

use crate::tcp::Shared;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::config::InitialSpreading;
use crate::tcp::send::spreading::full_packet;
use crate::tcp::send::tempo::Tempo;
use crate::tcp::state::error::Event;
use crate::tcp::window::path_memory::PathSample;
use crate::time::Instant;

impl Tempo {
    /// What an acknowledgment of `bytes` in order, or of none, says of the path. With `more`, segments are still out;
    /// `calm`: nothing is lost.
    pub(super) fn observe_path(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        delivery: &Delivery,
        bytes: u64,
        more: bool,
        calm: bool,
    ) {
        let config = &shared.config;
        if let Some(spread) = &self.spread
            && (now >= spread.until
                || config.initial_spreading == InitialSpreading::Estimated
                    && config.spreading_stop
                    && delivery.advanced
                    && delivery.rtt.is_some_and(|rtt| rtt <= spread.empty))
        {
            self.spread = None;
        }
        let Some(train) = &mut self.train else {
            return;
        };
        let in_order = delivery.advanced && delivery.sacked == 0 && !delivery.retransmitted && calm;
        let mut rate = None;
        if in_order
            && more
            && let Some(newest) = delivery.newest_tx
        {
            let segments = delivery.segments;
            let full = (bytes == u64::from(segments) * u64::from(shared.mss)).then_some(segments);
            rate = train.on_ack(now, newest, full, full_packet(shared));
            train.left = train.left.saturating_sub(segments);
        }
        if let Some(rate) = rate {
            if let Some(spread) = &mut self.spread {
                spread.shorten(rate.time_for(full_packet(shared)));
            }
            if let (Some(path), Some(min_rtt)) = (&mut shared.path, shared.rtt.min()) {
                path.found = Some(PathSample { rate, min_rtt });
                shared.raise(Event::PathFound);
            }
        }
        if rate.is_some() || !in_order || !more || train.left == 0 {
            self.train = None;
        }
    }
}
