//! Max-min fair shares by progressive filling.
//!
//! All rates grow together until a demand is met or a link is full; whoever is met or crosses a full link stays where it
//! is, the others go on.
//!
//! **Source.** Bertsekas and Gallager, Data Networks, second edition (1992), 6.5.2: max-min flow control.
//! **Deviations.** Demands are finite or without bound; alike units are counted instead of listed.

/// Alike users of the network: the same path and the same demand.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Class {
    /// How many there are.
    pub(super) units: f64,
    /// What each wants, in the unit of the capacities; infinite: whatever it can get.
    pub(super) demand: f64,
    /// Links that each crosses, as indices into the capacities.
    pub(super) path: Vec<usize>,
}

/// What each unit of each class gets. `capacities` are those of the links, in the unit of the demands.
///
/// A class that crosses no link gets its demand.
pub(super) fn shares(classes: &[Class], capacities: &[f64]) -> Vec<f64> {
    let mut share = vec![0.0; classes.len()];
    let mut left: Vec<f64> = capacities.iter().map(|capacity| capacity.max(0.0)).collect();
    let mut open: Vec<usize> = (0..classes.len())
        .filter(|&index| {
            let class = &classes[index];
            if class.path.is_empty() {
                share[index] = class.demand;
            }
            class.units > 0.0 && class.demand > 0.0 && !class.path.is_empty()
        })
        .collect();
    let mut users = vec![0.0; capacities.len()];
    for &index in &open {
        for &link in &classes[index].path {
            users[link] += classes[index].units;
        }
    }
    while !open.is_empty() {
        let by_demand = open.iter().map(|&index| classes[index].demand - share[index]);
        let by_link = (0..capacities.len())
            .filter(|&link| users[link] > HALF_UNIT)
            .map(|link| left[link] / users[link]);
        let step = by_demand.chain(by_link).fold(f64::INFINITY, f64::min).max(0.0);
        if !step.is_finite() {
            break; // Demands without bound over links without bound.
        }
        for &index in &open {
            share[index] += step;
        }
        for link in 0..capacities.len() {
            left[link] -= step * users[link];
        }
        open.retain(|&index| {
            let class = &classes[index];
            let met = share[index] >= class.demand * (1.0 - ROUNDING);
            let full = class
                .path
                .iter()
                .any(|&link| left[link] <= capacities[link] * ROUNDING);
            if met || full {
                for &link in &class.path {
                    users[link] -= class.units;
                }
            }
            !(met || full)
        });
    }
    share
}

/// Fewer units than this on a link are none: what is left of adding and subtracting counts.
const HALF_UNIT: f64 = 1e-9;

/// Relative error that floating point may leave.
const ROUNDING: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;

    fn class(units: f64, demand: f64, path: &[usize]) -> Class {
        Class {
            units,
            demand,
            path: path.to_vec(),
        }
    }

    const GREEDY: f64 = f64::INFINITY;

    fn close(got: &[f64], wanted: &[f64]) {
        assert_eq!(got.len(), wanted.len());
        for (got, wanted) in got.iter().zip(wanted) {
            assert!((got - wanted).abs() < 1e-9, "{got} for {wanted}");
        }
    }

    /// By hand: ten shared by two greedy ones is five each; one that wants two leaves eight to the other.
    #[test]
    fn one_link_is_shared_after_the_demands_are_met() {
        close(&shares(&[class(2.0, GREEDY, &[0])], &[10.0]), &[5.0]);
        close(
            &shares(&[class(1.0, 2.0, &[0]), class(1.0, GREEDY, &[0])], &[10.0]),
            &[2.0, 8.0],
        );
        // Three that want 2, 4 and all of 12: level 5 after the first two are met.
        close(
            &shares(
                &[
                    class(1.0, 2.0, &[0]),
                    class(1.0, 4.0, &[0]),
                    class(1.0, GREEDY, &[0]),
                ],
                &[12.0],
            ),
            &[2.0, 4.0, 6.0],
        );
        // Demands that do not fit are all cut to the level.
        close(
            &shares(&[class(1.0, 9.0, &[0]), class(1.0, 8.0, &[0])], &[10.0]),
            &[5.0, 5.0],
        );
    }

    /// Bertsekas and Gallager's form: a long flow over links of 6 and 10, each crossed by a short one: the long one
    /// gets 3, the short ones 3 and 7.
    #[test]
    fn a_long_flow_gets_the_level_of_its_tightest_link() {
        close(
            &shares(
                &[
                    class(1.0, GREEDY, &[0, 1]),
                    class(1.0, GREEDY, &[0]),
                    class(1.0, GREEDY, &[1]),
                ],
                &[6.0, 10.0],
            ),
            &[3.0, 3.0, 7.0],
        );
    }

    #[test]
    fn nobody_crosses_nothing_and_nothing_is_shared_by_nobody() {
        close(&shares(&[], &[10.0]), &[]);
        close(&shares(&[class(1.0, 7.0, &[])], &[10.0]), &[7.0]);
        close(&shares(&[class(0.0, GREEDY, &[0])], &[10.0]), &[0.0]);
        close(&shares(&[class(3.0, GREEDY, &[0])], &[0.0]), &[0.0]);
    }

    /// Max-min: no link is overfull, and whoever is short crosses a full link on which nobody gets more.
    #[test]
    fn shares_are_max_min_fair_on_random_networks() {
        use fleetfoot_core::rng::Rng;
        let mut rng = Rng::for_element(7, "test", "fair");
        for _ in 0..500 {
            let links = 1 + rng.below(5) as usize;
            let capacities: Vec<f64> = (0..links).map(|_| 1.0 + 9.0 * rng.uniform()).collect();
            let classes: Vec<Class> = (0..1 + rng.below(6))
                .map(|_| {
                    let first = rng.below(links as u64) as usize;
                    let last = first + rng.below((links - first) as u64) as usize;
                    let demand = if rng.below(2) == 0 {
                        GREEDY
                    } else {
                        4.0 * rng.uniform()
                    };
                    class(
                        1.0 + rng.below(3) as f64,
                        demand,
                        &(first..=last).collect::<Vec<_>>(),
                    )
                })
                .collect();
            let share = shares(&classes, &capacities);
            let load: Vec<f64> = (0..links)
                .map(|link| {
                    let crossing = classes
                        .iter()
                        .zip(&share)
                        .filter(|(class, _)| class.path.contains(&link));
                    crossing.map(|(class, share)| class.units * share).sum()
                })
                .collect();
            for link in 0..links {
                assert!(load[link] <= capacities[link] * (1.0 + 1e-9));
            }
            for (class, &own) in classes.iter().zip(&share) {
                let met = own >= class.demand * (1.0 - 1e-9);
                let held = class.path.iter().any(|&link| {
                    load[link] >= capacities[link] * (1.0 - 1e-9)
                        && classes
                            .iter()
                            .zip(&share)
                            .all(|(other, &share)| !other.path.contains(&link) || share <= own * (1.0 + 1e-9))
                });
                assert!(met || held, "{classes:?} over {capacities:?}: {share:?}");
            }
        }
    }
}
