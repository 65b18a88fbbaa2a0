//! What is left out of an import, and what needs to be known of it.

use crate::import::reader::Stop;
use crate::import::summary::Counted;

/// What is left out or needs to be known.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) not_ip: u64,
    pub(super) other_protocol: u64,
    pub(super) fragments: u64,
    pub(super) short: u64,
    pub(super) malformed: u64,
    pub(super) stray: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
    pub(super) probes: u64,
    pub(super) aggregates: u64,
    pub(super) lost_track: u64,
    pub(super) missing: u64,
    pub(super) unanswered: u64,
    pub(super) refused: u64,
    pub(super) silent: u64,
    pub(super) open_before: u64,
    pub(super) open_after: u64,
    pub(super) one_way: u64,
    pub(super) evicted: u64,
    pub(super) idle: u64,
    pub(super) reset: u64,
    pub(super) cut: u64,
    pub(super) without_rtt: u64,
}

impl Counts {
    /// What is left out, and what needs to be known; `unknown`: frames of links that are not read.
    pub(super) fn told(&self, unknown: u64, stop: &Stop) -> (Vec<Counted>, Vec<Counted>) {
        let counts = self;
        let list = |entries: &[(u64, &str)]| {
            let some = entries.iter().filter(|entry| entry.0 > 0);
            some.map(|&(count, what)| counted(count, what)).collect()
        };
        let left_out = list(&[
            (counts.unanswered, "connection attempts that nobody answered"),
            (counts.refused, "connection attempts that were refused"),
            (counts.silent, "connections on which nothing was said"),
            (counts.other_protocol, "packets of other protocols than TCP"),
            (counts.not_ip, "frames that are not IP"),
            (counts.fragments, "fragments of IP packets"),
            (counts.malformed, "packets whose headers contradict themselves"),
            (
                counts.short,
                "packets cut off within their headers: capture more bytes of each",
            ),
            (counts.stray, "packets of connections of which no data was seen"),
            (
                counts.duplicates,
                "packets that were captured twice, or at another place too",
            ),
            (unknown, "frames of links that are not read"),
            (stop.timeless, "packets without a time (simple packet blocks)"),
            (
                stop.homeless,
                "packets of interfaces that the file does not describe",
            ),
        ]);
        let notes = list(&[
            (
                counts.open_before,
                "connections were open before the capture began: they begin with what was seen first",
            ),
            (
                counts.open_after,
                "connections were open when it ended: what came later is not there",
            ),
            (counts.reset, "connections ended by a reset"),
            (
                counts.one_way,
                "connections were seen in one direction only: what the other end said is known from acknowledgments, without its waits",
            ),
            (
                counts.without_rtt,
                "connections have no known round-trip time: they get the median of the others",
            ),
            (
                counts.aggregates,
                "packets are longer than a segment: taken at a host with segmentation offload, which hides single packets",
            ),
            (
                counts.missing,
                "gaps in the data that were acknowledged: the capture missed packets",
            ),
            (
                stop.dropped,
                "packets were dropped by the capturing system, as it says itself",
            ),
            (
                counts.reordered,
                "segments came out of order, not counted as retransmitted",
            ),
            (
                counts.probes,
                "keep-alives and probes of closed windows, not counted as data",
            ),
            (counts.idle, "connections were silent for long and taken as over"),
            (
                counts.evicted,
                "connections were given up early: too many were open at once",
            ),
            (
                counts.cut,
                "connections said more than is kept: the rest of each was added to its last units",
            ),
            (counts.lost_track, "sequence numbers jumped out of all bounds"),
        ]);
        (left_out, notes)
    }
}

pub(super) fn counted(count: u64, what: impl Into<String>) -> Counted {
    Counted {
        count,
        what: what.into(),
    }
}
