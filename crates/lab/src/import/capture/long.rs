//! Long transfers: what nobody waits for in front of a screen, and no cure for latency is meant for.
//!
//! **The rule.** An exchange is long if it
//!
//! - took 10 s or more, or in a shorter capture half of it and at least 2 s: nobody keeps his attention on a task that gives no answer for
//!   10 s (Nielsen, Usability Engineering, 1993, 5.5: the third of his limits of 0.1, 1 and 10 s); and
//! - carried 1 MB or more, and ten times what the pipe holds (the line's rate times the smallest round-trip time of all pairs of hosts). Slow
//!   start has filled the pipe when it carried about twice that, so that nine tenths of the transfer are decided by its share of the
//!   line. A page of 300 kB that takes 12 s behind a full queue is short: it should not take so long.
//!
//! A connection is a long transfer if such exchanges have half of its bytes or more: its controls, and what a connection that is
//! kept asked before, go with it. What came before the capture began or after it ended counts no more than it was seen.

use super::counts::counted;
use crate::import::adus::Exchange;
use crate::import::summary::{Counted, size};
use fleetfoot_sim::output::Histogram;

/// Connections that may be long transfers: which are is known when the line's rate is.
#[derive(Debug, Default)]
pub(super) struct Candidates(Vec<Candidate>);

#[derive(Debug)]
struct Candidate {
    /// Number of the connection.
    id: u64,
    back: bool,
    exchanges: Vec<Exchange>,
}

/// What was decided.
#[derive(Debug, Default)]
pub(super) struct Decided {
    /// Numbers of the long transfers, in ascending order.
    pub(super) ids: Vec<u64>,
    /// How many were opened from the first side, and from the other.
    pub(super) counts: [u64; 2],
    /// Bytes of their exchanges.
    pub(super) bytes: u64,
    /// Times of their exchanges.
    pub(super) exchange: Histogram,
}

impl Candidates {
    /// Takes a connection whose exchanges may be long; `false`: they cannot.
    pub(super) fn take(&mut self, id: u64, back: bool, exchanges: &[Exchange]) -> bool {
        let may = exchanges
            .iter()
            .any(|one| one.ns >= LEAST_NS && one.bytes >= LEAST_BYTES);
        if may {
            self.0.push(Candidate {
                id,
                back,
                exchanges: exchanges.to_vec(),
            });
        }
        may
    }

    /// DropPoint; times of those that are no long transfers are added to `short`. `pipe`: bytes that the line holds.
    pub(super) fn decide(self, span_ns: u64, pipe: f64, short: &mut Histogram) -> Decided {
        let least_ns = LONG_NS.min(span_ns / 2).max(LEAST_NS);
        let least_bytes = LEAST_BYTES.max((PIPES * pipe) as u64);
        let mut decided = Decided::default();
        for candidate in self.0 {
            let bytes = |long: bool| {
                let of = candidate
                    .exchanges
                    .iter()
                    .filter(|one| !long || one.ns >= least_ns && one.bytes >= least_bytes);
                of.fold(0_u64, |sum, one| sum.saturating_add(one.bytes))
            };
            let (long, all) = (bytes(true), bytes(false));
            let is_long = long > 0 && long >= all / 2;
            let times = match is_long {
                true => &mut decided.exchange,
                false => &mut *short,
            };
            candidate
                .exchanges
                .iter()
                .for_each(|exchange| times.record(exchange.ns));
            if is_long {
                decided.ids.push(candidate.id);
                decided.counts[usize::from(candidate.back)] += 1;
                decided.bytes = decided.bytes.saturating_add(all);
            }
        }
        decided.ids.sort_unstable();
        decided
    }
}

impl Decided {
    /// What needs to be known of them, among `connections`.
    pub(super) fn note(&self, connections: u64) -> Option<Counted> {
        let count = self.ids.len() as u64;
        let sole = match count == connections {
            true => {
                ". There is nothing else in the capture, so that `compare` asks how soon these finish; capture while pages load to \
                 ask what makes those faster"
            }
            false => ", so that `compare` does not count [them|it] among what somebody waits for",
        };
        (count > 0).then(|| {
            counted(
                count,
                format!(
                    "connection[s are long transfers| is a long transfer] ({} in exchanges that took 10 s or more, or half of the capture, and carried ten \
                     times what the line holds): [they are groups of their|it is a group of its] own, latency_sensitive = {}{sole}",
                    size(self.bytes as f64),
                    count == connections
                ),
            )
        })
    }
}

/// Nobody waits longer.
const LONG_NS: u64 = 10_000_000_000;
/// In a short capture half of it is long, but never less than this.
const LEAST_NS: u64 = 2_000_000_000;
/// A smaller exchange is never long.
const LEAST_BYTES: u64 = 1_000_000;
/// A long transfer carries at least this multiple of what the pipe holds.
const PIPES: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::Candidates;
    use crate::import::adus::Exchange;
    use fleetfoot_sim::output::Histogram;

    const SECOND: u64 = 1_000_000_000;

    fn exchange(seconds: u64, bytes: u64) -> Exchange {
        Exchange {
            ns: seconds * SECOND,
            bytes,
        }
    }

    /// The numbers of those that are long, and how many times are with the short ones.
    fn long(span_s: u64, pipe: f64, connections: &[&[Exchange]]) -> (Vec<u64>, u64) {
        let (mut candidates, mut short) = (Candidates::default(), Histogram::new());
        for (id, exchanges) in connections.iter().enumerate() {
            if !candidates.take(id as u64, false, exchanges) {
                exchanges.iter().for_each(|one| short.record(one.ns));
            }
        }
        let decided = candidates.decide(span_s * SECOND, pipe, &mut short);
        let all: usize = connections.iter().map(|exchanges| exchanges.len()).sum();
        assert_eq!(decided.exchange.n() + short.n(), all as u64);
        assert_eq!(decided.counts, [decided.ids.len() as u64, 0]);
        (decided.ids, short.n())
    }

    #[test]
    fn a_long_transfer_takes_long_and_carries_much() {
        let connections: [&[Exchange]; 5] = [
            &[exchange(42, 40_000_000)],
            &[exchange(12, 300_000)],   // a page behind a full queue
            &[exchange(4, 5_000_000)],  // much, but somebody waits for it
            &[exchange(10, 1_000_000)], // at both limits
            &[exchange(9, 20_000_000)],
        ];
        assert_eq!(long(60, 50_000.0, &connections), (vec![0, 3], 3));
        // A line of 100 Mbit/s and 200 ms holds 2.5 MB.
        assert_eq!(long(60, 2_500_000.0, &connections), (vec![0], 4));
    }

    #[test]
    fn in_a_short_capture_half_of_it_is_long() {
        let connections: [&[Exchange]; 2] = [&[exchange(4, 5_000_000)], &[exchange(3, 5_000_000)]];
        assert_eq!(long(8, 50_000.0, &connections), (vec![0], 1));
        assert_eq!(long(1, 50_000.0, &connections), (vec![0, 1], 0));
        assert_eq!(long(60, 50_000.0, &connections), (vec![], 2));
    }

    #[test]
    fn a_connection_goes_where_most_of_its_bytes_are() {
        let page = exchange(1, 3_000_000);
        let connections: [&[Exchange]; 2] = [
            &[exchange(1, 400), exchange(20, 9_000_000)],
            &[page, page, page, page, exchange(20, 9_000_000), page],
        ];
        assert_eq!(long(60, 50_000.0, &connections), (vec![0], 6));
    }
}
