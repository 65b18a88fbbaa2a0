//! Which of the many differences of a table can be called significant: Holm's correction over each of its columns.

use super::ranking::{GroupEstimates, Row};
use crate::result::Ratio;
use crate::statistics::{Estimate, LEVEL, holm};

/// Holm's correction over each column of the table.
pub(super) struct Significance {
    pub(super) wins: Vec<bool>,
    /// Mean, tail and goodput ratio of each variant and group.
    columns: [Vec<bool>; 3],
    groups: usize,
}

impl Significance {
    /// Significance of `rows`, without those that are `part` of another and were added after it had been found good.
    pub(super) fn of(rows: &[Row], part: &dyn Fn(usize) -> bool) -> Significance {
        let column = |which: &dyn Fn(&GroupEstimates) -> Option<Estimate>| {
            let p: Vec<Option<f64>> = rows
                .iter()
                .enumerate()
                .flat_map(|(index, row)| row.groups.iter().map(move |group| (index, group)))
                .map(|(index, group)| which(group).filter(|_| !part(index)).map(|estimate| estimate.p))
                .collect();
            holm(&p, LEVEL)
        };
        let wins: Vec<Option<f64>> = rows
            .iter()
            .enumerate()
            .map(|(index, row)| row.win.filter(|_| !part(index)).map(|win| win.p))
            .collect();
        Significance {
            wins: holm(&wins, LEVEL),
            columns: [
                column(&|group| group.mean),
                column(&|group| group.tail.map(|(_, ratio)| ratio)),
                column(&|group| group.goodput),
            ],
            groups: rows.first().map_or(0, |row| row.groups.len()),
        }
    }

    /// Where the baseline is one and the same run with every seed, chance was not asked.
    pub(super) fn nothing(&mut self) {
        self.wins.fill(false);
        self.columns.iter_mut().for_each(|column| column.fill(false));
    }

    pub(super) fn ratio(
        &self,
        column: usize,
        variant: usize,
        group: usize,
        estimate: Option<Estimate>,
    ) -> Option<Ratio> {
        estimate.map(|estimate| Ratio {
            value: estimate.value,
            ci95: estimate.ci95,
            significant: self.columns[column][variant * self.groups + group],
        })
    }
}
