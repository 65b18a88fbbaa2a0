//! Thin streams: what a sender of few small segments does differently.
//!
//! Without `coalesce_unsent` each write is a segment of its own, also if it had to wait for the window. With `thin_dupack`
//! one SACKed segment shows a loss while fewer than four are out, with `thin_linear` the first six timeouts of such a stream
//! do not back off. Redundant data bundling is in `rdb`.
//!
//! **Source.** Linux 2.6.34 to 4.10, `tcp_stream_is_thin`, `tcp_time_to_recover`, and `tcp_retransmit_timer`
//! (Documentation/networking/tcp-thin.txt); Petlund, "Improving latency for interactive, thin-stream applications over
//! reliable transport", 2009.
//! **Deviations.** `thin_dupack` needs SACK and does nothing under RACK, which was its successor.

use crate::tcp::config::Config;
use crate::tcp::send::rdb::Bundler;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// State of a sender that bundles, keeps writes apart, or is watched.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Thin {
    /// Ends of the writes that are not wholly sent; `None`: writes flow together.
    writes: Option<VecDeque<u64>>,
    pub(in crate::tcp) bundler: Option<Bundler>,
    /// First transmission and time to the ACK of each segment, if somebody asked.
    pub(in crate::tcp) latencies: Option<Vec<(Instant, Duration)>>,
    /// First transmissions of the segments that were not acknowledged when the connection ended, if somebody asked for latencies.
    pub(in crate::tcp) given_up: Vec<Instant>,
}

impl Thin {
    /// What `config` needs, if it needs anything.
    pub(in crate::tcp) fn new(config: &Config, latencies: bool) -> Option<Box<Thin>> {
        let apart = !config.coalesce_unsent;
        (apart || latencies || config.rdb.is_some()).then(|| {
            Box::new(Thin {
                writes: apart.then(VecDeque::new),
                bundler: config.rdb.map(|_| Bundler::default()),
                latencies: latencies.then(Vec::new),
                given_up: Vec::new(),
            })
        })
    }

    /// Whether each write is a segment of its own.
    pub(in crate::tcp) fn keeps_writes_apart(&self) -> bool {
        self.writes.is_some()
    }

    /// The application wrote up to offset `end`.
    pub(in crate::tcp) fn on_write(&mut self, end: u64) {
        if let Some(writes) = &mut self.writes {
            writes.push_back(end);
        }
    }

    /// Everything below `nxt` was sent.
    pub(in crate::tcp) fn on_sent(&mut self, nxt: u64) {
        if let Some(writes) = &mut self.writes {
            while writes.front().is_some_and(|end| *end <= nxt) {
                writes.pop_front();
            }
        }
    }

    /// Where the write ends that begins at or continues from `nxt`; `end` if that is not known.
    pub(in crate::tcp) fn boundary(&self, nxt: u64, end: u64) -> u64 {
        let next = |writes: &VecDeque<u64>| writes.iter().copied().find(|end| *end > nxt);
        self.writes
            .as_ref()
            .and_then(next)
            .map_or(end, |next| next.min(end))
    }

    /// Segments that what lies from `nxt` to `end` would make.
    pub(in crate::tcp) fn segments(&self, nxt: u64, end: u64, mss: u32) -> u64 {
        let (mut from, mut count) = (nxt, 0);
        while from < end {
            let to = self.boundary(from, end);
            count += (to - from).div_ceil(u64::from(mss));
            from = to;
        }
        count
    }
}
