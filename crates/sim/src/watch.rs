//! An observer that keeps what a run's results leave out: bulk connections in bins of time, and which of the first
//! segments of every connection were lost.

use crate::observe::{AppEvent, Observer};
use crate::output::{RunOutput, Watched};
use crate::spec::{LinkIndex, Spec, Traffic};
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::packet::{Flags, Packet, Segment};
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::Connection;
use fleetfoot_core::time::{Duration, Instant};
use std::ops::Range;

/// Watches a run; [`Watch::finish`] puts what was seen into the groups of its output.
#[derive(Debug)]
pub struct Watch {
    bin: Duration,
    warmup: Instant,
    end: Instant,
    /// By group: whether it has bins.
    binned: Vec<bool>,
    /// By group, in the order of opening.
    seen: Vec<Vec<Watched>>,
    /// By id of the data flow.
    holders: Vec<Option<Holder>>,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    group: usize,
    index: usize,
    /// Sequence number of the first byte, once the SYN left.
    first: Option<SeqNumber>,
    /// Payload of the first data segment.
    size: u32,
    /// First segments that were sent more than once.
    again: u32,
    window: u64,
}

impl Watch {
    /// Watches runs of `spec` in bins of `bin`.
    pub fn new(spec: &Spec, bin: Duration) -> Watch {
        let bulk = |traffic: &Traffic| traffic.facts().greedy;
        Watch {
            bin: bin.max(Duration::from_millis(1)),
            warmup: Instant::ZERO + spec.warmup,
            end: Instant::ZERO + spec.duration,
            binned: spec.groups.iter().map(|group| bulk(&group.traffic)).collect(),
            seen: vec![Vec::new(); spec.groups.len()],
            holders: Vec::new(),
        }
    }

    /// What was seen, into `output`.
    pub fn finish(self, output: &mut RunOutput) {
        for (group, watched) in output.groups.iter_mut().zip(self.seen) {
            group.watched = watched;
        }
    }

    fn holder(&mut self, flow: FlowId) -> Option<&mut Holder> {
        self.holders.get_mut(flow.0 as usize)?.as_mut()
    }

    /// The bin of `now` in a list of bins; `None` outside of the measured time.
    fn bin_of(&self, now: Instant) -> Option<usize> {
        (now < self.end).then(|| (now.as_nanos() / self.bin.as_nanos()) as usize)
    }

    fn count(&mut self, now: Instant, holder: Holder, amount: u32, of: fn(&mut Watched) -> &mut Vec<u32>) {
        if !self.binned[holder.group] {
            return;
        }
        let Some(bin) = self.bin_of(now) else {
            return;
        };
        let list = of(&mut self.seen[holder.group][holder.index]);
        if list.len() <= bin {
            list.resize(bin + 1, 0);
        }
        list[bin] += amount;
    }

    fn look(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        let Some(holder) = self.holder(flow) else {
            return;
        };
        let window = connection.info(now).cwnd.0;
        let fell = window * 20 < holder.window * 19;
        holder.window = window;
        let holder = *holder;
        if fell {
            self.count(now, holder, 1, |watched| &mut watched.reductions);
        }
    }
}

/// The place of a segment among the first 32, as a bit; zero beyond them.
fn place(holder: &Holder, segment: &Segment) -> u32 {
    match holder.first {
        Some(first) if holder.size > 0 => {
            let index = segment.seq.0.wrapping_sub(first.0) / holder.size;
            if index < 32 { 1 << index } else { 0 }
        }
        Some(_) | None => 0,
    }
}

impl Observer for Watch {
    fn on_send(&mut self, _now: Instant, flow: FlowId, segment: &Segment) {
        let Some(holder) = self.holder(flow) else {
            return;
        };
        if segment.flags.contains(Flags::SYN) {
            let again = holder.first.replace(segment.seq + 1).is_some();
            let (group, index) = (holder.group, holder.index);
            self.seen[group][index].syn_again |= again;
            return;
        }
        if segment.payload == 0 {
            return;
        }
        if holder.size == 0 {
            holder.size = segment.payload;
        }
        let bit = place(holder, segment);
        let (group, index) = (holder.group, holder.index);
        let watched = &mut self.seen[group][index];
        let known = watched.first_sent & bit != 0;
        watched.first_sent |= bit;
        if known && let Some(holder) = self.holder(flow) {
            holder.again |= bit;
        }
    }

    fn on_drop(&mut self, now: Instant, _at: LinkIndex, packet: &Packet, _reason: DropReason) {
        if packet.segment.payload == 0 {
            return;
        }
        let Some(holder) = self.holder(packet.flow) else {
            return;
        };
        let holder = *holder;
        let bit = place(&holder, &packet.segment) & !holder.again;
        self.seen[holder.group][holder.index].first_lost |= bit;
        self.count(now, holder, 1, |watched| &mut watched.lost);
    }

    fn on_ack(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        self.look(now, flow, connection);
    }

    fn on_timer(&mut self, now: Instant, flow: FlowId, connection: &Connection) {
        self.look(now, flow, connection);
    }

    fn on_receive(&mut self, now: Instant, flow: FlowId, in_order: Range<u64>) {
        if let Some(holder) = self.holder(flow) {
            let (holder, bytes) = (*holder, in_order.end - in_order.start);
            self.count(now, holder, bytes as u32, |watched| &mut watched.received);
        }
    }

    fn on_app(&mut self, now: Instant, event: &AppEvent) {
        match *event {
            AppEvent::Opened { group, data, .. } => {
                let slot = data.0 as usize;
                self.holders.resize(self.holders.len().max(slot + 1), None);
                let group = group as usize;
                let wanted = self.binned[group] || (now >= self.warmup && now < self.end);
                self.holders[slot] = wanted.then(|| {
                    self.seen[group].push(Watched {
                        opened: now,
                        ..Watched::default()
                    });
                    Holder {
                        group,
                        index: self.seen[group].len() - 1,
                        first: None,
                        size: 0,
                        again: 0,
                        window: 0,
                    }
                });
            }
            AppEvent::Relayed { .. } => {}
            AppEvent::Closed { data } => {
                if let Some(slot) = self.holders.get_mut(data.0 as usize)
                    && let Some(holder) = slot.take()
                {
                    self.seen[holder.group][holder.index].closed = Some(now);
                }
            }
        }
    }
}
