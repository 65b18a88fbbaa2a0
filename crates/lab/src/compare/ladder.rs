//! Who belongs to the first tier, who may, and of whom more seeds could say it.

use super::ranking::{Row, WORTHWHILE};
use super::tiers::{Behind, Member, margin, tiers};

/// The estimates of a table, and how to make them of fewer seeds, so that two rows are compared over the same ones.
pub(super) struct Seen<'a> {
    /// Of every variant but the first.
    pub(super) rows: &'a [Row],
    /// The row of this index over its first seeds, so many.
    pub(super) over_fewer: &'a dyn Fn(usize, usize) -> Row,
}

/// The tiers of the significant wins.
pub(super) struct Ladder {
    /// The tier of each winner, from 1.
    pub(super) tiers: Vec<u64>,
    /// Rows that may be of the first tier.
    pub(super) contenders: Vec<usize>,
    /// Rows of which more seeds could say whether they are.
    pub(super) open: Vec<usize>,
}

impl Seen<'_> {
    /// Tiers of the `winners`. Those of which more seeds were run are compared over all of them, others over the seeds that
    /// both have.
    pub(super) fn ladder(&self, winners: &[usize]) -> Ladder {
        let rows = self.rows;
        let few = winners.iter().map(|&index| rows[index].seeds).min().unwrap_or(0);
        let short: Vec<Option<Row>> = winners
            .iter()
            .map(|&index| (rows[index].seeds > few).then(|| (self.over_fewer)(index, few)))
            .collect();
        let nets: Vec<f64> = winners.iter().map(|&index| rows[index].worth()).collect();
        let behind = |best: usize, other: usize| -> Behind {
            let (one, two) = (&rows[winners[best]], &rows[winners[other]]);
            let shortened = |position: usize| short[position].as_ref().unwrap_or(&rows[winners[position]]);
            let (one, two) = if one.seeds == two.seeds {
                (one, two)
            } else {
                (shortened(best), shortened(other))
            };
            match (&one.net, &two.net) {
                (Some(best), Some(other)) => other.behind(best),
                _ => Behind {
                    value: f64::INFINITY,
                    ci95: None,
                },
            }
        };
        let tiers = tiers(&nets, &behind);
        let best = (0..nets.len()).max_by(|&a, &b| nets[a].total_cmp(&nets[b]).then(b.cmp(&a)));
        let (mut contenders, mut open) = (Vec::new(), Vec::new());
        if let Some(best) = best {
            for (position, &index) in winners.iter().enumerate() {
                let member = match position == best {
                    true => None,
                    false => Some(behind(best, position).member(margin(nets[best]))),
                };
                if member.is_none_or(|member| member.is_in() || member.is_open()) {
                    contenders.push(index);
                }
                open.extend(member.filter(|member| member.is_open()).map(|_| index));
            }
        }
        Ladder {
            tiers,
            contenders,
            open,
        }
    }

    /// Those of the `undecided` rows that may belong to the first tier, the best first: too few seeds were run to say that they differ
    /// from the best of the `winners`, seed by seed, or to call what they seem to save more than chance.
    pub(super) fn hopefuls(&self, winners: &[usize], undecided: impl Iterator<Item = usize>) -> Vec<usize> {
        let rows = self.rows;
        let net = |index: usize| rows[index].worth();
        let best = winners
            .iter()
            .copied()
            .max_by(|&a, &b| net(a).total_cmp(&net(b)).then(b.cmp(&a)));
        let mut shortened: Option<(usize, Row)> = None;
        let mut hopeful = |index: usize| {
            let row = &rows[index];
            let ends = row.win.and_then(|win| win.ci95).unwrap_or([0.0, f64::INFINITY]);
            let Some(best) = best else {
                // Nothing is a win yet: what seems to be one.
                return ends[1] < 1.0 && net(index) >= WORTHWHILE;
            };
            if ends[0] > 1.0 - WORTHWHILE {
                return false; // It saves nothing that anybody notices.
            }
            let own = match rows[best].seeds > row.seeds {
                true => {
                    if shortened.as_ref().is_none_or(|(seeds, _)| *seeds != row.seeds) {
                        shortened = Some((row.seeds, (self.over_fewer)(best, row.seeds)));
                    }
                    shortened.as_ref().map_or(&rows[best], |(_, row)| row)
                }
                false => &rows[best],
            };
            let longer = (row.seeds > own.seeds).then(|| (self.over_fewer)(index, own.seeds));
            let other = longer.as_ref().unwrap_or(row);
            match (&own.net, &other.net) {
                (Some(best), Some(other)) => {
                    let behind = other.behind(best);
                    behind.member(margin(best.value)) != Member::SurelyNot
                }
                _ => false,
            }
        };
        let mut found: Vec<usize> = undecided.filter(|&index| hopeful(index)).collect();
        found.sort_by(|&a, &b| net(b).total_cmp(&net(a)).then(a.cmp(&b)));
        found
    }
}
