//! Values of runs that kept their connections in bins (`run.bins`).

use crate::statistics::{Sample, jain};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::output::{RunOutput, Watched};

/// Jain's index of the bulk connections that are open, for every bin the mean over it and the four after it. Bins begin
/// [`SETTLING`] after a connection came or went and end before the next one does.
pub(super) fn settled_fairness(run: &RunOutput, bin: Duration, duration: Duration) -> Sample {
    let all: Vec<&Watched> = run
        .groups
        .iter()
        .flat_map(|group| &group.watched)
        .filter(|watched| !watched.received.is_empty())
        .collect();
    let changes: Vec<Instant> = all
        .iter()
        .flat_map(|watched| [Some(watched.opened), watched.closed])
        .flatten()
        .collect();
    let bins = duration.as_nanos() / bin.as_nanos().max(1);
    let mut values = Vec::new();
    for first in 0..bins.saturating_sub(SMOOTHED - 1) {
        let begin = Instant::ZERO + bin.saturating_mul(first);
        let end = begin + bin.saturating_mul(SMOOTHED);
        if changes.iter().any(|&at| at < end && at + SETTLING > begin) {
            continue;
        }
        let open: Vec<&&Watched> = all
            .iter()
            .filter(|watched| watched.opened <= begin && watched.closed.is_none_or(|at| at >= end))
            .collect();
        if open.len() < 2 {
            continue;
        }
        let indices = (first..first + SMOOTHED).filter_map(|bin| {
            let shares: Vec<f64> = open
                .iter()
                .map(|watched| in_bin(&watched.received, bin))
                .collect();
            jain(&shares)
        });
        values.push(indices.sum::<f64>() / SMOOTHED as f64);
    }
    Sample::of(values)
}

/// For every bin in which any of the connections lost a packet: the share of them that did.
pub(super) fn loss_synchronisation(watched: &[Watched], bin: Duration, warmup: Duration) -> Sample {
    let first = (warmup.as_nanos() / bin.as_nanos().max(1)) as usize;
    let longest = watched.iter().map(|one| one.lost.len()).max().unwrap_or(0);
    let share = |bin: usize| {
        let hit = watched
            .iter()
            .filter(|one| in_bin(&one.lost, bin as u64) > 0.0)
            .count();
        (hit > 0).then(|| hit as f64 / watched.len() as f64)
    };
    Sample::of((first..longest).filter_map(share).collect())
}

/// Reductions of the window from `warmup` on.
pub(super) fn reductions(watched: &[Watched], bin: Duration, warmup: Duration) -> f64 {
    let first = (warmup.as_nanos() / bin.as_nanos().max(1)) as usize;
    let after = watched
        .iter()
        .map(|one| one.reductions.get(first..).unwrap_or(&[]));
    after.flatten().map(|count| f64::from(*count)).sum()
}

/// Connections whose first window left as it should: not those whose SYN was lost, which begin with one segment.
fn whole(watched: &[Watched]) -> impl Iterator<Item = &Watched> {
    watched.iter().filter(|one| !one.syn_again)
}

/// Whether the first segment of each connection was lost: 1 or 0.
pub(super) fn first_segments(watched: &[Watched]) -> Sample {
    let sent = whole(watched).filter(|one| one.first_sent & 1 != 0);
    Sample::of(sent.map(|one| f64::from(one.first_lost & 1)).collect())
}

/// Whether segments 2 to 10 of each connection were lost: 1 or 0. With `after_loss` only those whose predecessor was.
pub(super) fn first_losses(watched: &[Watched], after_loss: bool) -> Sample {
    Sample::of(first_window(watched, after_loss).map(f64::from).collect())
}

/// Whether they got through.
pub(super) fn first_arrivals(watched: &[Watched], after_loss: bool) -> Sample {
    Sample::of(
        first_window(watched, after_loss)
            .map(|lost| f64::from(1 - lost))
            .collect(),
    )
}

fn first_window(watched: &[Watched], after_loss: bool) -> impl Iterator<Item = u8> {
    whole(watched).flat_map(move |one| {
        (1..FIRST_WINDOW).filter_map(move |place| {
            let (own, before) = (1_u32 << place, 1_u32 << (place - 1));
            let counts = one.first_sent & own != 0 && (!after_loss || one.first_lost & before != 0);
            counts.then(|| u8::from(one.first_lost & own != 0))
        })
    })
}

fn in_bin(bins: &[u32], bin: u64) -> f64 {
    f64::from(bins.get(bin as usize).copied().unwrap_or(0))
}

/// After a flow came or went (docs/design/delay-gradient.md#convergence: 8 s).
const SETTLING: Duration = Duration::from_secs(8);
/// Bins that an index is averaged over.
const SMOOTHED: u64 = 5;
/// Segments of a first window.
const FIRST_WINDOW: u32 = 10;

#[cfg(test)]
mod tests {
    use super::{
        first_arrivals, first_losses, first_segments, loss_synchronisation, reductions, settled_fairness,
    };
    use fleetfoot_core::time::{Duration, Instant};
    use fleetfoot_sim::output::{GroupOutput, RunOutput, Watched};

    const SECOND: Duration = Duration::from_secs(1);

    fn flow(from: u64, to: u64, rate: u32) -> Watched {
        let mut received = vec![0; to as usize];
        received[from as usize..].fill(rate);
        Watched {
            opened: Instant::ZERO + SECOND.saturating_mul(from),
            closed: Some(Instant::ZERO + SECOND.saturating_mul(to)),
            received,
            ..Watched::default()
        }
    }

    #[test]
    fn fairness_is_looked_at_where_flows_have_settled() {
        let run = RunOutput {
            groups: vec![GroupOutput {
                watched: vec![flow(0, 30, 1), flow(10, 40, 3)],
                ..GroupOutput::default()
            }],
            ..RunOutput::default()
        };
        let found = settled_fairness(&run, SECOND, SECOND.saturating_mul(40));
        // Both are open from 10 to 30: windows of five begin at 18 to 25. (1 + 3)^2 / (2 (1 + 9)).
        assert_eq!(found.completed, [0.8; 8]);
    }

    #[test]
    fn synchronisation_is_the_share_that_loses_together() {
        let losing = |lost: &[u32]| Watched {
            lost: lost.to_vec(),
            reductions: lost.to_vec(),
            ..Watched::default()
        };
        let watched = [losing(&[1, 0, 2]), losing(&[0, 0, 1]), losing(&[5])];
        assert_eq!(
            loss_synchronisation(&watched, SECOND, Duration::ZERO).completed,
            [2.0 / 3.0, 2.0 / 3.0]
        );
        assert_eq!(
            loss_synchronisation(&watched, SECOND, SECOND).completed,
            [2.0 / 3.0]
        );
        assert!((reductions(&watched, SECOND, SECOND) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn losses_of_a_first_window_are_counted_from_its_second_segment() {
        let one = Watched {
            first_sent: 0b11111,
            first_lost: 0b01101,
            ..Watched::default()
        };
        let all = first_losses(std::slice::from_ref(&one), false);
        assert_eq!(all.completed, [0.0, 1.0, 1.0, 0.0]);
        let late = Watched {
            syn_again: true,
            ..one.clone()
        };
        let both = [one, late];
        assert_eq!(first_losses(&both, true).completed, [0.0, 1.0, 0.0]);
        assert_eq!(first_arrivals(&both, true).completed, [1.0, 0.0, 1.0]);
        assert_eq!(first_segments(&both).completed, [1.0]);
    }
}
