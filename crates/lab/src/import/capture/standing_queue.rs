//! A queue that never empties looks like distance: hosts that spoke only while it was full have no smaller round-trip time to show.
//!
//! Such a queue is likely where most of the data waited, some hosts are nearer than that, and others are farther by no more than
//! the queue held.

use super::counts::counted;
use crate::import::summary::{Counted, Quantiles, Standing, time};

/// What the smallest round-trip times between pairs of hosts (ns) have of a queue, as data waited in either direction.
pub(super) fn find(mut pairs_ns: Vec<u64>, waits: [Option<Quantiles>; 2]) -> Option<Standing> {
    let waits = waits
        .into_iter()
        .flatten()
        .max_by(|one, other| one.p10.total_cmp(&other.p10))?;
    pairs_ns.sort_unstable();
    let least_s = *pairs_ns.first()? as f64 * 1e-9;
    if waits.p10 < LEAST_WAIT_S.max(LEAST_SHARE * least_s) {
        return None;
    }
    let rtts = pairs_ns.iter().map(|rtt| *rtt as f64 * 1e-9);
    let held = |rtt: &f64| (waits.p10..=MORE * waits.max).contains(&(rtt - least_s));
    let behind: Vec<f64> = rtts.filter(held).collect();
    Some(Standing {
        pairs: behind.len() as u64,
        of: pairs_ns.len() as u64,
        least_s,
        rtt_s: [*behind.first()?, *behind.last()?],
        wait_s: [waits.p10, waits.p99],
    })
}

/// The note on a standing queue.
pub(super) fn note(standing: &Standing) -> Counted {
    let [from, to] = standing.rtt_s.map(time);
    let [most, hardly] = standing.wait_s.map(time);
    counted(
        standing.pairs,
        format!(
            "pair[s] of hosts of {} [have smallest round-trip times|has a smallest round-trip time] of {}, the nearest of all {}, while nine \
             tenths of the data waited for {most} or more, one hundredth for {hardly}: probably [they|it] never saw the queue empty, and the \
             replay takes what it held for distance and adds a queue of its own. If all are equally far, rtt_scale = {} gives all of them the \
             smallest; else write what you know of a pair into its connections (`r` in the .cvec)",
            standing.of,
            if standing.pairs == 1 {
                from
            } else {
                format!("{from} to {to}")
            },
            time(standing.least_s),
            standing.scale(),
        ),
    )
}

/// Less than this, and this share of the smallest round-trip time, is no queue that stands.
const LEAST_WAIT_S: f64 = 0.002;
const LEAST_SHARE: f64 = 0.05;
/// Beyond this much of the longest wait it is distance.
const MORE: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::{find, note};
    use crate::import::summary::Quantiles;
    use fleetfoot_sim::output::Histogram;

    fn waits(ms: &[u64]) -> Option<Quantiles> {
        let mut histogram = Histogram::new();
        ms.iter().for_each(|ms| histogram.record(ms * 1_000_000));
        Quantiles::of(&histogram, 1e-9)
    }

    fn ms(rtts: &[u64]) -> Vec<u64> {
        rtts.iter().map(|rtt| rtt * 1_000_000).collect()
    }

    #[test]
    fn hosts_farther_by_what_the_queue_held_are_noted() {
        let full = [20, 40, 60, 80, 100];
        let found = find(ms(&[110, 40, 41, 86, 900]), [None, waits(&full)]).expect("a queue");
        // 41 ms saw it empty, 900 ms are distance.
        assert_eq!((found.pairs, found.of), (2, 5));
        assert!((found.rtt_s[0] - 0.086).abs() < 1e-9 && (found.rtt_s[1] - 0.11).abs() < 1e-9);
        let queue = note(&found);
        assert!(
            queue.count == 2
                && queue.what.starts_with("pairs of hosts of 5 have smallest round-trip times of 86.0 ms to 110 ms, the nearest of all 40.0 ms")
                && queue.what.contains("rtt_scale = 0.36 "),
            "{}",
            queue.what
        );
        let one = note(&find(ms(&[40, 90]), [waits(&full), None]).expect("a queue"));
        assert!(
            one.what
                .starts_with("pair of hosts of 2 has a smallest round-trip time of 90.0 ms,"),
            "{}",
            one.what
        );
    }

    #[test]
    fn distance_alone_is_no_queue() {
        let far = ms(&[40, 86, 110]);
        assert_eq!(find(far.clone(), [None, None]), None);
        assert_eq!(
            find(far.clone(), [waits(&[0, 0, 0, 50, 100]), None]),
            None,
            "it was empty at times"
        );
        assert_eq!(
            find(ms(&[40, 41, 42]), [waits(&[20, 40, 60]), None]),
            None,
            "all saw it empty"
        );
        assert!(find(far, [waits(&[20, 40, 60, 100]), None]).is_some());
    }
}
