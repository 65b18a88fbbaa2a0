//! What is left out of an import, and what needs to be known of it.

use crate::import::connection::{Connection, End};
use crate::import::reader::{Stop, kind_name};
use crate::import::summary::{Counted, Quantiles};

/// What is left out or needs to be known.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) not_ip: u64,
    other_protocol: u64,
    other_bytes: u64,
    pub(super) fragments: u64,
    pub(super) short: u64,
    pub(super) malformed: u64,
    pub(super) stray: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
    pub(super) probes: u64,
    pub(super) window_waits: u64,
    pub(super) aggregates: u64,
    pub(super) lost_track: u64,
    pub(super) missing: u64,
    pub(super) unanswered: u64,
    pub(super) refused: u64,
    pub(super) silent: u64,
    pub(super) open_before: u64,
    /// Bytes that were seen of these.
    pub(super) open_before_bytes: u64,
    /// Packets whose options were cut off, timestamps too if they had any.
    pub(super) optionless: u64,
    pub(super) open_after: u64,
    pub(super) one_way: u64,
    pub(super) evicted: u64,
    pub(super) idle: u64,
    pub(super) reset: u64,
    pub(super) cut: u64,
    pub(super) without_rtt: u64,
}

impl Counts {
    /// A packet of another protocol than TCP.
    pub(super) fn other(&mut self, length: u32) {
        self.other_protocol += 1;
        self.other_bytes += u64::from(length);
    }

    /// A connection that may have been open before the capture began.
    pub(super) fn take_begun_before(&mut self, connection: &Connection) {
        if connection.opened_ns.is_none() && !connection.answered {
            self.open_before += 1;
            self.open_before_bytes += connection.ends.iter().map(End::seen_bytes).sum::<u64>();
        }
    }

    /// Where most of the data is of connections that were open before, and packets waited: what is doubtful then, in words.
    pub(super) fn begun_within(&self, bytes: u64, waits: Option<Quantiles>) -> Option<Counted> {
        let most = self.open_before_bytes.saturating_mul(2) > bytes;
        let waited = waits.is_some_and(|waits| waits.p90 > WAITED_S);
        (most && waited).then(|| {
            counted(
                self.open_before,
                "connection[s] with most of the data [were|was] open before the capture began, and packets waited: the queue may have been full from the first \
                 packet on. What it held all the time is in the smallest round-trip times then, so that the `delay` of the bottleneck is too long and \
                 the `limit` of its queue too small: capture from before the line is full, or write the distance that `ping` shows on an idle line",
            )
        })
    }

    /// Whether other protocols took a part of the line beside so many bytes of TCP, in words.
    pub(super) fn crowd(&self, tcp_bytes: u64) -> Option<Counted> {
        (self.other_bytes as f64 > CROWD * tcp_bytes as f64).then(|| {
            counted(
                self.other_protocol,
                format!(
                    "packet[s] of other protocols than TCP (QUIC and other UDP, as a rule) had {} bytes, beside {tcp_bytes} of TCP's payload: they are not in the \
                     scenario, and the line's rate is only what TCP got. Write its rate, and a group of traffic for them, into the scenario",
                    self.other_bytes
                ),
            )
        })
    }

    /// What is left out, and what needs to be known; `unknown`: frames of links that are not read; `some_rtt`: there are known round-trip times.
    pub(super) fn notes(&self, unknown: u64, some_rtt: bool, stop: &Stop) -> (Vec<Counted>, Vec<Counted>) {
        let counts = self;
        let list = |entries: &[(u64, &str)]| {
            let some = entries.iter().filter(|entry| entry.0 > 0);
            some.map(|&(count, what)| counted(count, what)).collect()
        };
        let unread = stop.unread;
        let name = kind_name(unread.kind).map_or_else(String::new, |name| format!(" ({name})"));
        let unread_blocks = format!(
            "block[s] of [kinds that are|a kind that is] not read; the first, of type 0x{:08x}{name}, is at byte {} before packet {}",
            unread.kind, unread.at, unread.packet
        );
        let left_out = list(&[
            (counts.unanswered, "connection attempt[s] that nobody answered"),
            (counts.refused, "connection attempt[s] that were refused"),
            (counts.silent, "connection[s] on which nothing was said"),
            (counts.other_protocol, "packet[s] of other protocols than TCP"),
            (counts.not_ip, "frame[s that are| that is] not IP"),
            (counts.fragments, "fragment[s] of IP packets"),
            (
                counts.malformed,
                "packet[s] whose headers contradict [themselves|each other]",
            ),
            (
                counts.short,
                "packet[s] cut off within [their headers|its header]: capture more bytes of each",
            ),
            (counts.stray, "packet[s] of connections of which no data was seen"),
            (
                counts.duplicates,
                "packet[s that were| that was] captured twice, or at another place too",
            ),
            (unknown, "frame[s] of links that are not read"),
            (stop.timeless, "packet[s] without a time (simple packet blocks)"),
            (
                stop.homeless,
                "packet[s] of interfaces that the file does not describe",
            ),
            (unread.blocks, &unread_blocks),
        ]);
        let notes = list(&[
            (
                counts.open_before,
                "connection[s were| was] open before the capture began: [they begin|it begins] with what was seen first",
            ),
            (
                counts.open_after,
                "connection[s were| was] open when it ended: what came later is not there",
            ),
            (counts.reset, "connection[s] ended by a reset"),
            (
                counts.one_way,
                "connection[s were| was] seen in one direction only: what the other end said is known from acknowledgments, without its waits",
            ),
            (
                counts.without_rtt,
                match some_rtt {
                    true => {
                        "connection[s have| has] no known round-trip time: [they get|it gets] the median of the others"
                    }
                    false => {
                        "connection[s have| has] no known round-trip time, and there are no others: what is in the scenario is no measurement"
                    }
                },
            ),
            (
                counts.aggregates,
                "packet[s are| is] longer than a segment: taken at a host with segmentation offload, which hides single packets",
            ),
            (
                counts.optionless,
                "packet[s have| has] TCP options that the capture cut off: timestamps and selective ACKs in them are missed, and with them what tells queues from \
                 distance. Capture at least 96 bytes of each packet (tcpdump -s 96)",
            ),
            (
                counts.missing,
                "gap[s] in the data that [were|was] acknowledged: the capture missed packets",
            ),
            (
                stop.out_of_time,
                "packet[s have| has] a time before 1970 or after 2554: when [they|it] came is not known, nor what follows from it",
            ),
            (
                stop.dropped,
                "packet[s were| was] dropped by the capturing system, as it says itself",
            ),
            (
                counts.reordered,
                "segment[s] came out of order, not counted as retransmitted",
            ),
            (
                counts.probes,
                "[keep-alives and probes of closed windows|keep-alive or probe of a closed window], not counted as data",
            ),
            (
                counts.window_waits,
                "time[s] a receiver's window held its sender back for as long as a pause. Where the replay is faster than the recording, `windows = true` in the \
                 scenario keeps to the largest windows that were seen",
            ),
            (
                counts.idle,
                "connection[s were| was] silent for long and taken as over",
            ),
            (
                counts.evicted,
                "connection[s were| was] given up early: too many were open at once",
            ),
            (
                counts.cut,
                "connection[s] said more than is kept: the rest of each was added to its last units",
            ),
            (counts.lost_track, "sequence number[s] jumped out of all bounds"),
        ]);
        (left_out, notes)
    }
}

/// Less of other protocols, as a share of TCP's bytes, does not change what is reported of a line.
const CROWD: f64 = 0.05;

/// Packets that wait for less show no queue (s).
const WAITED_S: f64 = 0.001;

/// `what` has `[plural|singular]` where the words differ; `[s]` is a plural alone.
pub(in crate::import) fn counted(count: u64, what: impl Into<String>) -> Counted {
    let what: String = what.into();
    let mut text = String::new();
    let mut rest = what.as_str();
    while let Some((before, inner, after)) = bracketed(rest) {
        let (many, one) = inner.split_once('|').unwrap_or((inner, ""));
        text.push_str(before);
        text.push_str(if count == 1 { one } else { many });
        rest = after;
    }
    text.push_str(rest);
    Counted { count, what: text }
}

/// Before, within and after the first brackets.
fn bracketed(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('[')?;
    let (inner, after) = rest.split_once(']')?;
    Some((before, inner, after))
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_not_many() {
        let what = "connection[s were| was] open: [they begin|it begins] with segment[s]";
        assert_eq!(
            counted(1, what).what,
            "connection was open: it begins with segment"
        );
        assert_eq!(
            counted(2, what).what,
            "connections were open: they begin with segments"
        );
        assert_eq!(counted(1, "capture of 2 days").what, "capture of 2 days");
    }
}
