//! What applications do when they are due, and when data has arrived.

use super::connection::{Counted, Progress};
use super::play::{Group, Message, Play};
use super::traffic::{Does, whole_bytes};
use crate::Error;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::output::FlowRecord;
use std::cmp::Reverse;

impl Play<'_> {
    /// A new flow, if it begins in the measured time.
    fn record(&mut self, group: u32, pair: u32, start: Instant, bytes: u64) -> Option<usize> {
        let window = Instant::ZERO + self.spec.warmup..Instant::ZERO + self.spec.duration;
        window.contains(&start).then(|| {
            self.awaited += 1;
            self.new_record(group, pair, start, bytes)
        })
    }

    pub(super) fn new_record(&mut self, group: u32, pair: u32, start: Instant, bytes: u64) -> usize {
        let flows = &mut self.groups[group as usize].output.flows;
        flows.push(FlowRecord {
            pair,
            bytes: Bytes(bytes),
            start,
            ..FlowRecord::default()
        });
        flows.len() - 1
    }

    /// One transfer on a connection of its own.
    fn transfer(&mut self, group: u32, actor: u32, pair: u32, bytes: u64) -> Result<(), Error> {
        let now = self.now();
        let record = self.record(group, pair, now, bytes);
        let index = self.open(group, actor, pair, record)?;
        if let Some(connection) = &mut self.connections[index] {
            connection.ends[0].wanted = bytes;
            connection.ends[0].closing = true;
        }
        Ok(())
    }

    /// An actor is due again.
    pub(super) fn act_at(&mut self, group: u32, actor: u32, at: Instant) {
        if at < self.groups[group as usize].stop {
            self.agenda.push(Reverse((at, group, actor)));
        }
    }

    /// An actor does what it does next.
    pub(super) fn act(&mut self, group: u32, number: u32) -> Result<(), Error> {
        let now = self.now();
        let Group { actors, pairs, .. } = &mut self.groups[group as usize];
        let actor = &mut actors[number as usize];
        match &mut actor.does {
            Does::Bulk => {
                if let Some(index) = actor.connection.take() {
                    self.give_up(index);
                    return Ok(());
                }
                let pair = actor.pair;
                let record = self.new_record(group, pair, now, 0);
                let index = self.open(group, number, pair, Some(record))?;
                self.groups[group as usize].actors[number as usize].connection = Some(index);
                if let Some(connection) = &mut self.connections[index] {
                    connection.ends[0].wanted = u64::MAX;
                }
                if let Some(stop) = self.spec.groups[group as usize].stop {
                    self.agenda.push(Reverse((Instant::ZERO + stop, group, number)));
                }
                Ok(())
            }
            Does::Transfers { draws, most } => {
                let (bytes, gap) = {
                    let mut draws = draws.borrow_mut();
                    let bytes = whole_bytes(draws.size.sample());
                    (bytes, Duration::from_secs_f64(draws.gap.sample()))
                };
                actor.begun += 1;
                let more = most.is_none_or(|most| u64::from(actor.begun) < most);
                // From when this one was due, not from now: lateness of this machine does not add up.
                actor.start = actor.start.saturating_add(gap);
                let (next, own) = (actor.start, actor.pair);
                let pair = self.groups[group as usize].pairs.pick(own);
                self.transfer(group, number, pair, bytes)?;
                if more {
                    self.act_at(group, number, next);
                }
                Ok(())
            }
            Does::List => {
                let list = self.spec.groups[group as usize].traffic.listed();
                while let Some(line) = list.get(self.groups[group as usize].listed) {
                    let at = Instant::ZERO + line.start;
                    if at > now {
                        self.act_at(group, number, at);
                        break;
                    }
                    self.groups[group as usize].listed += 1;
                    let pair = self.hosts.place_of(group as usize, line.source, line.destination);
                    self.transfer(group, number, pair, line.bytes.get())?;
                }
                Ok(())
            }
            Does::Rounds {
                size,
                count,
                round,
                remaining,
                ..
            } => {
                let of = &self.spec.groups[group as usize];
                if *remaining == 0 {
                    actor.begun += 1;
                    actor.start = now;
                    *remaining = *count;
                    let transfer = |number| (pairs.pick(number), whole_bytes(size.sample()));
                    round.begin(of, (0..*count).map(transfer));
                }
                let due: Vec<(u32, u64)> = std::iter::from_fn(|| round.next_now()).collect();
                if round.next_turn() {
                    // From when these were due, as above.
                    actor.start = actor.start.saturating_add(of.start_spacing);
                    self.agenda.push(Reverse((actor.start, group, number)));
                }
                for (pair, bytes) in due {
                    self.transfer(group, number, pair, bytes)?;
                }
                Ok(())
            }
            Does::Asks { request, .. } => {
                let bytes = whole_bytes(request.sample());
                actor.begun += 1;
                let pair = actor.pair;
                let kept = actor.connection;
                let record = self.record(group, pair, now, 0);
                let index = self.kept(group, number, kept, None)?;
                if let Some(connection) = &mut self.connections[index] {
                    connection.ends[1].wanted += bytes;
                    connection.asked += bytes;
                    connection.messages.push_back(Message {
                        end: connection.asked,
                        written_at: now,
                        record,
                    });
                }
                self.advance(index, 1)
            }
            Does::Writes { size, gap, thin } => {
                let (bytes, thin) = (whole_bytes(size.sample()), *thin);
                let gap = Duration::from_secs_f64(gap.sample()).max(Duration::from_nanos(1));
                actor.start = actor.start.saturating_add(gap);
                let (next, pair, kept) = (actor.start, actor.pair, actor.connection);
                let stream = (thin && kept.is_none()).then(|| self.new_record(group, pair, now, 0));
                let index = self.kept(group, number, kept, stream)?;
                let measured = now >= Instant::ZERO + self.spec.warmup;
                let record = match thin {
                    true => {
                        self.awaited += u64::from(measured);
                        self.connections[index]
                            .as_ref()
                            .and_then(|one| one.record)
                            .filter(|_| measured)
                    }
                    false => self.record(group, pair, now, bytes),
                };
                let last = next >= self.groups[group as usize].stop;
                if let Some(connection) = &mut self.connections[index] {
                    connection.ends[0].wanted += bytes;
                    connection.ends[0].closing = last;
                    connection.messages.push_back(Message {
                        end: connection.ends[0].wanted,
                        written_at: now,
                        record,
                    });
                }
                self.act_at(group, number, next);
                self.advance(index, 0)
            }
            Does::Trains(_) => self.send_trains(group, number, now),
        }
    }

    /// The connection that an actor keeps, or a new one.
    fn kept(
        &mut self,
        group: u32,
        actor: u32,
        kept: Option<usize>,
        record: Option<usize>,
    ) -> Result<usize, Error> {
        match kept {
            Some(index) => Ok(index),
            None => {
                let pair = self.groups[group as usize].actors[actor as usize].pair;
                let index = self.open(group, actor, pair, record)?;
                self.groups[group as usize].actors[actor as usize].connection = Some(index);
                Ok(index)
            }
        }
    }

    /// Data arrived in order at one end.
    pub(super) fn on_arrival(&mut self, index: usize, side: usize, now: Instant) -> Result<(), Error> {
        let Some(connection) = &mut self.connections[index] else {
            return Ok(());
        };
        let (group, number) = (connection.group, connection.actor);
        let received = connection.ends[side].received;
        let of = &mut self.groups[group as usize];
        let actor = &mut of.actors[number as usize];
        match (&mut actor.does, side) {
            (Does::Transfers { .. } | Does::List | Does::Rounds { .. }, 1)
                if received == connection.ends[0].wanted =>
            {
                if let Some(record) = connection.record {
                    let record = &mut of.output.flows[record];
                    record.completed = Some(now);
                    record.received = record.bytes;
                    self.awaited -= 1;
                }
                self.round_over(group, number, now);
            }
            (Does::Bulk, 1) => {
                if let Some(record) = connection.record {
                    of.output.flows[record].received = Bytes(received);
                    of.output.flows[record].bytes = Bytes(received);
                }
            }
            (Does::Writes { thin, .. }, 1) => {
                let thin = *thin;
                while connection
                    .messages
                    .front()
                    .is_some_and(|message| message.end <= received)
                {
                    let Some(message) = connection.messages.pop_front() else {
                        break;
                    };
                    if message.record.is_some() {
                        self.awaited -= 1;
                        of.output
                            .delivery_latency
                            .push(now.since(message.written_at).as_secs_f64());
                    }
                    let flow = message.record.map(|record| &mut of.output.flows[record]);
                    if !thin {
                        close(
                            flow,
                            connection.ends[0].counted(self.ours.as_ref()),
                            &mut connection.counted,
                            now,
                        );
                    } else if let Some(flow) = flow {
                        flow.received = Bytes(received);
                        flow.bytes = Bytes(received);
                    }
                }
            }
            (Does::Asks { response, .. }, 0) => {
                // The server has whole requests: each is answered at once.
                let mut answered = false;
                for message in &mut connection.messages {
                    if message.end <= received && message.written_at != Instant::FAR_FUTURE {
                        let bytes = whole_bytes(response.sample());
                        connection.ends[0].wanted += bytes;
                        if let Some(record) = message.record {
                            of.output.flows[record].bytes = Bytes(bytes);
                            of.output
                                .delivery_latency
                                .push(now.since(message.written_at).as_secs_f64());
                        }
                        message.written_at = Instant::FAR_FUTURE;
                        answered = true;
                    }
                }
                if answered && connection.ends[0].write(&self.payload, &mut self.ours) == Progress::Lost {
                    return self.lose(index);
                }
            }
            (Does::Asks { think, most, .. }, 1) if received == connection.ends[0].wanted && received > 0 => {
                let message = connection.messages.pop_front();
                let record = message.and_then(|message| message.record);
                self.awaited -= u64::from(record.is_some());
                close(
                    record.map(|record| &mut of.output.flows[record]),
                    connection.ends[0].counted(self.ours.as_ref()),
                    &mut connection.counted,
                    now,
                );
                let more = most.is_none_or(|most| actor.begun < most);
                let next = now.saturating_add(Duration::from_secs_f64(think.sample()));
                if more && next < of.stop {
                    self.agenda.push(Reverse((next, group, number)));
                } else {
                    connection.ends[1].closing = true;
                    if connection.ends[1].write(&self.payload, &mut self.ours) == Progress::Lost {
                        return self.lose(index);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A transfer is over: perhaps a round of incast is, too.
    pub(super) fn round_over(&mut self, group: u32, number: u32, now: Instant) {
        let actor = &mut self.groups[group as usize].actors[number as usize];
        if let Does::Rounds {
            pause,
            rounds,
            remaining,
            ..
        } = &mut actor.does
        {
            *remaining = remaining.saturating_sub(1);
            if *remaining == 0 && actor.begun < *rounds {
                let pause = Duration::from_secs_f64(pause.sample());
                self.act_at(group, number, now.saturating_add(pause));
            }
        }
    }
}

/// A message of a dialogue is complete: what was counted since the one before is of its flow, if it has one.
fn close(flow: Option<&mut FlowRecord>, counted: Option<Counted>, before: &mut Counted, now: Instant) {
    if let Some(flow) = flow {
        flow.completed = Some(now);
        flow.received = flow.bytes;
        if let Some(counted) = &counted {
            flow.tally = counted.since(before).into();
            flow.min_rtt = counted.min_rtt;
        }
    }
    if let Some(counted) = counted {
        *before = counted;
    }
}

#[cfg(test)]
mod tests {
    use super::{Counted, FlowRecord, close};
    use fleetfoot_core::tcp::Stats;
    use fleetfoot_core::time::Instant;

    #[test]
    fn what_a_message_of_the_warm_up_took_is_of_no_flow() {
        let counted = |bytes_sent, retransmits| {
            Some(Counted {
                stats: Stats {
                    bytes_sent,
                    retransmits,
                    ..Stats::default()
                },
                min_rtt: None,
            })
        };
        let (mut before, mut flow) = (Counted::default(), FlowRecord::default());
        close(None, counted(11_000, 1), &mut before, Instant::ZERO);
        close(Some(&mut flow), counted(21_000, 1), &mut before, Instant::ZERO);
        assert_eq!((flow.stats().bytes_sent, flow.stats().retransmits), (10_000, 0));
    }
}
