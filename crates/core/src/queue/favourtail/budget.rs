//! What favour costs: tokens for all together, a debt for each host, and the turns in which debts are paid back.
//!
//! T bytes of tokens are there, at first sigma. A favoured packet takes its size from them, and its host owes it. Of each byte
//! that leaves the queue phi come back: they are the earnings of one host, whose turn it is, and pay its debt. Turns go round
//! all hosts that are present, which have packets here or a debt; a host that owes nothing lets its turn pass, and what it
//! would have earned comes back to nobody. So no host is favoured with more than its equal part of phi for long, however many
//! flows it opens and however it times them, and tokens and debts together are always sigma.

use super::super::hash::HashKey;
use super::super::{Limit, QueueContext};
use super::tally::{NONE, Tally};
use super::{LARGEST_BURST, WHOLE};
use crate::packet::Packet;
use crate::parameter::Values;

/// Tokens, and who owes them.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// phi in thousandths: tokens for a byte that leaves.
    pub(super) share: u64,
    /// sigma in thousandths of a byte.
    pub(super) burst: u64,
    /// T in thousandths of a byte.
    pub(super) tokens: u64,
    /// Whose debts; `None`: hosts have none, and what leaves earns for all.
    pub(super) hosts: Option<Hosts>,
    pub(super) by_destination: bool,
}

/// Who sent a packet, as far as the budget knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payer {
    fingerprint: u64,
    entry: Option<u32>,
}

impl Budget {
    pub(super) fn new(values: &Values, limit: Limit, mtu: u32, packets: u32) -> Budget {
        let room = limit.bytes(mtu).map_or(0, |bytes| bytes.0);
        let burst = values
            .bytes("burst")
            .map_or((10 * u64::from(mtu)).max(room / 4), |burst| burst.0)
            .min(LARGEST_BURST)
            * WHOLE;
        let host = values.choice("host");
        Budget {
            share: libm::round(values.number("share").unwrap_or(0.5) * WHOLE as f64) as u64,
            burst,
            tokens: burst,
            hosts: (host != "none").then(|| Hosts::new(packets)),
            by_destination: host == "destination",
        }
    }

    /// The host of `packet`; `None`: hosts have no debts.
    #[inline]
    pub(super) fn payer(&self, key: HashKey, packet: &Packet, context: &QueueContext<'_>) -> Option<Payer> {
        let hosts = self.hosts.as_ref()?;
        let flow = context.flows.key(packet.flow);
        let host = if self.by_destination {
            flow.destination
        } else {
            flow.source
        };
        let fingerprint = key.host_id(host);
        Some(Payer {
            fingerprint,
            entry: hosts.present.find(fingerprint),
        })
    }

    /// Whether there are tokens for `len` bytes: of all, and as many as the host's debts would come to.
    #[inline]
    pub(super) fn affords(&self, payer: Option<Payer>, len: u32) -> bool {
        let cost = u64::from(len) * WHOLE;
        let owed = match (&self.hosts, payer) {
            (
                Some(hosts),
                Some(Payer {
                    entry: Some(entry), ..
                }),
            ) => hosts.present.kept(entry).debt,
            // A table without a limit could be filled with the small debts of hosts that nobody has.
            (Some(hosts), Some(_)) if hosts.len >= hosts.most => return false,
            _ => 0,
        };
        owed + cost <= self.tokens
    }

    /// A packet of `len` bytes begins to wait, favoured or not. The entry of its host; `NONE` if hosts have none.
    #[inline]
    pub(super) fn arrive(&mut self, payer: Option<Payer>, len: u32, favoured: bool) -> u32 {
        let cost = if favoured { u64::from(len) * WHOLE } else { 0 };
        self.tokens -= cost;
        match (&mut self.hosts, payer) {
            (Some(hosts), Some(payer)) => hosts.arrive(payer, cost),
            _ => NONE,
        }
    }

    /// A packet of `host` was pushed out.
    #[inline]
    pub(super) fn withdraw(&mut self, host: u32) {
        if let Some(hosts) = &mut self.hosts {
            hosts.leave(host);
        }
    }

    /// A packet of `len` bytes of `host` leaves.
    #[inline]
    pub(super) fn leave(&mut self, len: u32, host: u32) {
        let earned = u64::from(len) * self.share;
        self.tokens = match &mut self.hosts {
            None => (self.tokens + earned).min(self.burst),
            Some(hosts) => self.tokens + hosts.earn(earned),
        };
        self.withdraw(host);
    }
}

/// Hosts that are present, in a ring.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    /// Packets of each, and one more for a debt.
    pub(super) present: Tally<Account>,
    /// Whose turn it is; `NONE`: nobody is present.
    turn: u32,
    len: u32,
    /// Number of hosts present from which on no further host is favoured.
    most: u32,
}

/// 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// Thousandths of a byte.
    debt: u64,
    /// Neighbours in the ring.
    before: u32,
    after: u32,
}

const _: () = assert!(size_of::<Account>() == 16);

impl Hosts {
    /// Hosts of a queue that holds about `packets`.
    fn new(packets: u32) -> Hosts {
        Hosts {
            present: Tally::new(packets),
            turn: NONE,
            len: 0,
            most: packets.saturating_mul(2),
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.present.memory()
    }

    #[inline]
    fn arrive(&mut self, payer: Payer, cost: u64) -> u32 {
        let entry = self.present.add(payer.entry, payer.fingerprint, 1);
        if payer.entry.is_none() {
            self.join(entry);
        }
        if cost > 0 {
            let account = self.present.about(entry);
            account.debt += cost;
            if account.debt == cost {
                self.present.add(Some(entry), payer.fingerprint, 1);
            }
        }
        entry
    }

    /// One packet, or the debt, of `entry` is gone.
    #[inline]
    fn leave(&mut self, entry: u32) {
        if self.present.count(entry) == 1 {
            self.part(entry);
        }
        self.present.subtract(entry, 1);
    }

    /// The host whose turn it is earns. What of it paid a debt.
    #[inline]
    fn earn(&mut self, earned: u64) -> u64 {
        let host = self.turn;
        if host == NONE {
            return 0;
        }
        let account = self.present.about(host);
        self.turn = account.after;
        let paid = account.debt.min(earned);
        account.debt -= paid;
        if paid > 0 && account.debt == 0 {
            self.leave(host);
        }
        paid
    }

    /// A host takes the last place in the ring.
    fn join(&mut self, entry: u32) {
        self.len += 1;
        if self.turn == NONE {
            self.turn = entry;
            *self.present.about(entry) = Account {
                debt: 0,
                before: entry,
                after: entry,
            };
            return;
        }
        let next = self.turn;
        let before = core::mem::replace(&mut self.present.about(next).before, entry);
        self.present.about(before).after = entry;
        *self.present.about(entry) = Account {
            debt: 0,
            before,
            after: next,
        };
    }

    fn part(&mut self, entry: u32) {
        self.len -= 1;
        let Account { before, after, .. } = *self.present.about(entry);
        if after == entry {
            self.turn = NONE;
            return;
        }
        self.present.about(before).after = after;
        self.present.about(after).before = before;
        if self.turn == entry {
            self.turn = after;
        }
    }

    /// Sum of all debts in thousandths of a byte.
    #[cfg(test)]
    pub(super) fn debts(&self) -> u64 {
        let mut sum = 0;
        let mut at = self.turn;
        for _ in 0..self.len {
            let Account { debt, after, .. } = self.present.kept(at);
            sum += debt;
            at = after;
        }
        sum
    }
}
