//! A second, naive transcription: the slides' form, one list and a pointer behind the last favoured packet, with the design's
//! options and budget. Who is present is found by looking through the lists.

use super::*;

/// What the variant is.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    limit: Limit,
    count_in_service: bool,
    push_out: bool,
    /// phi and sigma in thousandths, and whose share: 0 source, 1 destination, 2 none.
    budget: Option<(u64, u64, u8)>,
}

impl Rules {
    pub(super) fn of(queue: &FavourTail) -> Rules {
        Rules {
            limit: queue.limit,
            count_in_service: queue.count_in_service,
            push_out: queue.push_out,
            budget: queue.budget.as_ref().map(|budget| {
                let host = match (&budget.hosts, budget.by_destination) {
                    (None, _) => 2,
                    (Some(_), true) => 1,
                    (Some(_), false) => 0,
                };
                (budget.share, budget.burst, host)
            }),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Waiting {
    flow: u32,
    host: HostId,
    number: u32,
    len: u32,
}

pub(super) struct Oracle {
    rules: Rules,
    pub(super) list: Vec<Waiting>,
    /// Favoured packets are before this place.
    pointer: usize,
    in_service: Option<u32>,
    pub(super) tokens: u64,
    /// Hosts that have packets here or owe something, and what they owe; the first has the next turn.
    pub(super) debts: Vec<(HostId, u64)>,
}

impl Oracle {
    pub(super) fn new(rules: Rules) -> Oracle {
        Oracle {
            rules,
            list: Vec::new(),
            pointer: 0,
            in_service: None,
            tokens: rules.budget.map_or(0, |budget| budget.1),
            debts: Vec::new(),
        }
    }

    fn fits(&self, list: &[Waiting], len: u32) -> bool {
        let bytes = list.iter().map(|packet| u64::from(packet.len)).sum();
        let backlog = Backlog {
            packets: list.len() as u32,
            bytes: Bytes(bytes),
        };
        self.rules.limit.admits(backlog, len)
    }

    /// Whom it dropped, in order, and how many were overtaken if any.
    pub(super) fn enqueue(
        &mut self,
        flows: &FlowTable,
        flow: u32,
        number: u32,
        len: u32,
    ) -> (Vec<u32>, Option<u32>) {
        let full = !self.fits(&self.list, len);
        if full && !self.rules.push_out {
            return (vec![number], None);
        }
        let present = self.list.iter().any(|packet| packet.flow == flow) || self.in_service == Some(flow);
        let key = flows.key(FlowId(flow));
        let host = match self.rules.budget {
            Some((_, _, 1)) => key.destination,
            _ => key.source,
        };
        let favoured = &self.list[..self.pointer];
        let mut favour = !present && (!full || self.fits(favoured, len));
        let cost = u64::from(len) * 1000;
        if favour && let Some((_, _, whose)) = self.rules.budget {
            let known = self.debts.iter().find(|debt| debt.0 == host);
            let room = whose == 2 || known.is_some() || self.debts.len() < self.most_hosts();
            favour = room && known.map_or(0, |debt| debt.1) + cost <= self.tokens;
        }
        let mut dropped = Vec::new();
        if full && !favour {
            return (vec![number], None);
        }
        while !self.fits(&self.list, len) {
            dropped.extend(self.list.pop().map(|packet| packet.number));
        }
        if let Some((_, _, whose)) = self.rules.budget {
            self.tokens -= if favour { cost } else { 0 };
            if whose != 2 {
                if !self.debts.iter().any(|debt| debt.0 == host) {
                    self.debts.push((host, 0));
                }
                for debt in &mut self.debts {
                    debt.1 += if favour && debt.0 == host { cost } else { 0 };
                }
            }
        }
        let packet = Waiting {
            flow,
            host,
            number,
            len,
        };
        if !favour {
            self.list.push(packet);
            self.forget();
            return (dropped, None);
        }
        let overtaken = (self.list.len() - self.pointer) as u32;
        self.list.insert(self.pointer, packet);
        self.pointer += 1;
        self.forget();
        (dropped, (overtaken > 0).then_some(overtaken))
    }

    /// Hosts without packets and debts are gone.
    fn forget(&mut self) {
        let list = &self.list;
        self.debts
            .retain(|debt| debt.1 > 0 || list.iter().any(|packet| packet.host == debt.0));
    }

    fn most_hosts(&self) -> usize {
        match self.rules.limit {
            Limit::Packets(packets) => 2 * packets as usize,
            Limit::Bytes(bytes) => 2 * (bytes.0 / 64) as usize,
            Limit::Unlimited => usize::MAX,
        }
    }

    pub(super) fn dequeue(&mut self) -> Option<u32> {
        self.in_service = None;
        if self.list.is_empty() {
            return None;
        }
        let packet = self.list.remove(0);
        self.pointer = self.pointer.saturating_sub(1);
        if self.rules.count_in_service {
            self.in_service = Some(packet.flow);
        }
        if let Some((share, burst, whose)) = self.rules.budget {
            let earned = u64::from(packet.len) * share;
            if whose == 2 {
                self.tokens = (self.tokens + earned).min(burst);
            } else {
                // The packet that leaves is still its host's presence.
                let paid = earned.min(self.debts[0].1);
                self.debts[0].1 -= paid;
                self.tokens += paid;
                self.debts.rotate_left(1);
                self.forget();
            }
        }
        Some(packet.number)
    }
}
