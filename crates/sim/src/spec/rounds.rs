//! In which order the transfers of a round of `incast` begin.

use super::{GroupSpec, NodeId, PairPolicy};
use std::collections::BTreeMap;

/// A round of `incast`: its transfers begin in turns, all of a turn at the same moment and [`GroupSpec::start_spacing`] after those of the turn
/// before.
#[derive(Debug, Default)]
pub struct Round {
    /// Turn, pair and bytes of each transfer, in the order in which they begin.
    transfers: Vec<(u32, u32, u64)>,
    /// Transfers that have begun.
    begun: usize,
    turn: u32,
}

impl Round {
    /// Begins a round of `transfers`, each with the index of its pair and its bytes; the turn of the first is the current one.
    pub fn begin(&mut self, group: &GroupSpec, transfers: impl IntoIterator<Item = (u32, u64)>) {
        (self.begun, self.turn) = (0, 0);
        self.transfers.clear();
        let together = match group.spread {
            PairPolicy::Each => group.pairs.len() as u32,
            PairPolicy::RoundRobin | PairPolicy::Random => 1,
        };
        let mut of_host: BTreeMap<NodeId, u32> = BTreeMap::new();
        for (number, (pair, bytes)) in (0..).zip(transfers) {
            let turn = if group.start_spacing.is_zero() {
                0
            } else if group.spaced_by_host {
                let before = of_host.entry(group.pairs[pair as usize].0).or_default();
                *before += 1;
                *before - 1
            } else {
                number / together.max(1)
            };
            self.transfers.push((turn, pair, bytes));
        }
        self.transfers.sort_by_key(|transfer| transfer.0);
    }

    /// Pair and bytes of a transfer that begins now, each once; `None`: no other begins in this turn.
    pub fn next_now(&mut self) -> Option<(u32, u64)> {
        let &(turn, pair, bytes) = self.transfers.get(self.begun)?;
        (turn == self.turn).then(|| {
            self.begun += 1;
            (pair, bytes)
        })
    }

    /// Goes on to the next turn, when all of this one have begun; `false`: this was the last.
    pub fn next_turn(&mut self) -> bool {
        self.turn += 1;
        self.begun < self.transfers.len()
    }
}
