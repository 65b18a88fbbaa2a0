//! Quantiles of resamples of pooled runs, without making a resample.

use super::Sample;

/// Pooled samples that know their run, sorted from the largest as far as was needed: a high quantile of a resample
/// needs only the top.
pub(super) struct Descending {
    members: Vec<(f64, u32)>,
    per_run: Vec<u64>,
    sorted: usize,
    /// For each block of what is sorted, by run: how many of its members there are up to the end of the block.
    counts: Vec<u32>,
}

impl Descending {
    /// Members of a block; the last one may have fewer.
    const BLOCK: usize = 256;

    pub(super) fn new(runs: &[Sample]) -> Descending {
        let mut members = Vec::with_capacity(runs.iter().map(Sample::len).sum());
        for (run, sample) in runs.iter().enumerate() {
            members.extend(sample.completed.iter().map(|&value| (value, run as u32)));
        }
        let floor = members.iter().map(|member| member.0).fold(0.0, f64::max);
        for (run, sample) in runs.iter().enumerate() {
            members.extend(sample.censored.iter().map(|&age| (age.max(floor), run as u32)));
        }
        Descending {
            members,
            per_run: runs.iter().map(|run| run.len() as u64).collect(),
            sorted: 0,
            counts: Vec::new(),
        }
    }

    /// Sorts the next part: at least as much again as is sorted. All parts but the last are whole blocks.
    fn sort_more(&mut self) {
        let rest = &mut self.members[self.sorted..];
        let part = self.sorted.max(4 * Self::BLOCK).min(rest.len());
        let descending = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if part < rest.len() {
            rest.select_nth_unstable_by(part - 1, descending);
        }
        rest[..part].sort_unstable_by(descending);
        for block in rest[..part].chunks(Self::BLOCK) {
            let before = self.counts.len().checked_sub(self.per_run.len());
            let mut upto = before.map_or_else(
                || vec![0; self.per_run.len()],
                |from| self.counts[from..].to_vec(),
            );
            for member in block {
                upto[member.1 as usize] += 1;
            }
            self.counts.extend(upto);
        }
        self.sorted += part;
    }

    /// Members up to the end of a block, of which run i stands `row[i]` times.
    fn weight(&self, row: &[u16], block: usize) -> u64 {
        let runs = self.per_run.len();
        let counts = &self.counts[block * runs..(block + 1) * runs];
        row.iter()
            .zip(counts)
            .map(|(&weight, &count)| u64::from(weight) * u64::from(count))
            .sum()
    }

    /// The values at these ranks from the top, counted from zero, of the multiset in which run i stands `row[i]` times; the second rank
    /// is not below the first.
    fn ranked(&mut self, row: &[u16], first: u64, second: u64) -> Option<(f64, f64)> {
        loop {
            let blocks = self.sorted.div_ceil(Self::BLOCK);
            if blocks > 0 && self.weight(row, blocks - 1) > second {
                break;
            }
            if self.sorted == self.members.len() {
                return None;
            }
            self.sort_more();
        }
        let (mut low, mut high) = (0, self.sorted.div_ceil(Self::BLOCK) - 1);
        while low < high {
            let middle = low.midpoint(high);
            match self.weight(row, middle) > first {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        let mut seen = low.checked_sub(1).map_or(0, |before| self.weight(row, before));
        let mut members = self.members[low * Self::BLOCK..self.sorted].iter();
        let mut beyond = |rank: u64, mut value: f64| {
            while seen <= rank {
                let &(next, run) = members.next()?;
                seen += u64::from(row[run as usize]);
                value = next;
            }
            Some(value)
        };
        let upper = beyond(first, f64::NAN)?;
        Some((upper, beyond(second, upper)?))
    }

    /// Quantile (type 7) of the multiset in which run i stands `row[i]` times.
    pub(super) fn quantile(&mut self, row: &[u16], level: f64) -> Option<f64> {
        let total: u64 = row
            .iter()
            .zip(&self.per_run)
            .map(|(&weight, &n)| u64::from(weight) * n)
            .sum();
        if total == 0 {
            return None;
        }
        let position = level * (total - 1) as f64;
        let lower = libm::floor(position) as u64;
        let share = position - lower as f64;
        // Ranks from the top of the upper and the lower neighbour.
        let (high, value) = self.ranked(row, total - 1 - (lower + 1).min(total - 1), total - 1 - lower)?;
        Some(value + share * (high - value))
    }
}
