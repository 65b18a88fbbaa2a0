//! Recorded connections: each starts at its time, whatever becomes of the others, and its ends say what they said when it
//! was recorded, each unit a prescribed time after what came before it.
//!
//! A connection of which a unit waits for the one before it (sequential) is a series of exchanges: what the opener asks and
//! what it is answered, or what one end says without answer. Where both ends speak independently (concurrent) every unit
//! is an exchange of its own. The record of an exchange does not count the waiting that is prescribed within it: what is
//! left is what network and transport took.
//!
//! Packets of a recorded connection may take time beyond that of their links, each way, since no two connections of a capture
//! need have the same round-trip time: they wait at the host that they reached. A recorded connection has up to four events
//! of its own: one for each end that waits, one for each end where packets wait. It may offer windows of its own, and lose data
//! at random where they would be handed up.

mod starts;
mod windows;

use self::starts::Starts;
use super::Application;
use crate::endpoint::{Hosts, NONE};
use crate::event::{EventKey, EventKind};
use crate::observe::Observer;
use crate::output::Tally;
use crate::spec::{self, GroupSpec, Recorded, Unit};
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::rng::{Probability, Rng};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use std::collections::VecDeque;

/// The connections of a group. Actor 0 starts them; actors 1 + 2c and 2 + 2c are the ends of connection c.
pub(crate) struct Replay<'a> {
    group: u32,
    spec: &'a GroupSpec,
    replay: &'a spec::Replay,
    starts: Starts,
    /// By the number of its conversation, which is that of its start: a connection while it is played.
    players: Vec<Option<Box<Player>>>,
    /// Connections started.
    started: u32,
}

/// A recorded connection that is played.
struct Player {
    /// Its conversation.
    slot: u32,
    /// The connection began within the measured time.
    counts: bool,
    opened: Instant,
    /// Units of each end that it has not written, as the index of the next; a sequential connection uses the first only.
    next: [u32; 2],
    /// Stream offsets written so far by each end.
    written: [u64; 2],
    /// Until everything that this end wrote has been sent, so that the next unit may be timed.
    sending: [bool; 2],
    /// This end will write no more.
    finished: [bool; 2],
    /// Units on their way to each end, oldest first.
    under_way: [VecDeque<UnderWay>; 2],
    /// The exchange whose answer is to come.
    asked: Option<Exchange>,
    /// Records whose exchange is not complete.
    open: Vec<u32>,
    /// What each end counted that was given to a record.
    counted: [Tally; 2],
    /// Packets at each end that are still to take their time.
    waiting: [VecDeque<(Instant, u32)>; 2],
    /// The connection is over: nobody acts any more.
    over: bool,
    /// What is lost on the way, if anything is.
    losses: Option<Box<[Losses; 2]>>,
}

/// Random losses of what one end sends.
struct Losses {
    share: Probability,
    random: Rng,
}

/// A unit on its way.
struct UnderWay {
    /// Stream offset of its end.
    end: u64,
    written_at: Instant,
    /// What it is a part of, and whether that is complete with it.
    exchange: Exchange,
    completes: bool,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    /// `NONE`: it did not begin in the measured time.
    record: u32,
    /// The waiting that is prescribed within.
    waits: Duration,
}

impl<'a> Replay<'a> {
    pub(super) fn new<O: Observer>(
        hosts: &mut Hosts<'a, O>,
        group: u32,
        replay: &'a spec::Replay,
    ) -> Replay<'a> {
        let spec = &hosts.spec.groups[group as usize];
        hosts.delays |= replay
            .connections
            .iter()
            .any(|one| !one.delay.is_zero() || one.losses_ppm != [0; 2]);
        let starts = Starts::new(hosts.spec.seed, spec, replay, hosts.stop_of(group));
        if let Some(first) = starts.at(0) {
            hosts.act_at(group, 0, first);
        }
        Replay {
            group,
            spec,
            replay,
            players: (0..starts.len()).map(|_| None).collect(),
            starts,
            started: 0,
        }
    }

    /// What is played as the connection of this number.
    fn recorded(&self, connection: u32) -> &'a Recorded {
        &self.replay.connections[self.starts.recorded(connection)]
    }

    fn player(&mut self, connection: u32) -> Option<&mut Player> {
        self.players[connection as usize].as_deref_mut()
    }

    fn begin<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, connection: u32) {
        let recorded = self.recorded(connection);
        let of = |side: usize| {
            recorded
                .units
                .iter()
                .position(|unit| usize::from(unit.from) == side)
        };
        let mut player = Player {
            slot: NONE,
            counts: hosts.window.contains(now),
            opened: now,
            next: [0; 2],
            written: [0; 2],
            sending: [false; 2],
            finished: [false; 2],
            under_way: [VecDeque::new(), VecDeque::new()],
            asked: None,
            open: Vec::new(),
            counted: [Tally::NOTHING, Tally::NOTHING],
            waiting: [VecDeque::new(), VecDeque::new()],
            over: false,
            losses: self.losses(hosts.spec.seed, self.starts.recorded(connection), recorded),
        };
        let speaks = if recorded.concurrent {
            for side in 0..2 {
                match of(side) {
                    Some(first) => player.next[side] = first as u32,
                    None => player.finished[side] = true,
                }
            }
            [!player.finished[0], !player.finished[1]]
        } else {
            let first = recorded.units.first().map_or(1, |unit| unit.from);
            [first == 0, first == 1]
        };
        let first = player.next;
        let pairs = hosts.groups[self.group as usize].routes.len() as u32;
        let opening = hosts.opening(self.group, 0, recorded.pair % pairs.max(1), Some(1));
        let slot = hosts.open(now, &opening, windows::configs(self.spec, recorded));
        let place = &mut hosts.slots[slot as usize];
        place.recorded = true;
        debug_assert_eq!(place.number, connection, "numbered in order");
        player.slot = slot;
        self.players[connection as usize] = Some(Box::new(player));
        for side in [1, 0] {
            if !speaks[side] {
                continue;
            }
            let wait = recorded
                .units
                .get(first[side] as usize)
                .map_or(Duration::ZERO, |unit| unit.wait);
            if side == 1 && wait.is_zero() {
                self.say(hosts, now, connection, 1);
                continue;
            }
            // The opener is connected after one round-trip time, the other end half of one later.
            let half = Duration::from_nanos(recorded.rtt.as_nanos() / 2);
            let connected = if side == 1 {
                recorded.rtt
            } else {
                recorded.rtt + half
            };
            self.wait_to_speak(hosts, now.saturating_add(connected), connection, side, wait);
        }
        self.push(hosts, now, connection, 1);
    }

    /// Losses of the connection with this index in the recording.
    fn losses(&self, seed: u64, index: usize, recorded: &Recorded) -> Option<Box<[Losses; 2]>> {
        if recorded.losses_ppm == [0; 2] {
            return None;
        }
        let own = |side: usize| Losses {
            share: Probability::from_f64(f64::from(recorded.losses_ppm[side]) * 1e-6),
            random: Rng::for_element(seed, &self.spec.name, &format!("losses {index} {side}")),
        };
        Some(Box::new([own(0), own(1)]))
    }

    /// Lets an end speak after `wait`; time must pass, so that nobody speaks within the turn of another.
    fn wait_to_speak<O: Observer>(
        &self,
        hosts: &mut Hosts<'_, O>,
        from: Instant,
        connection: u32,
        side: usize,
        wait: Duration,
    ) {
        let at = from.saturating_add(wait.max(Duration::from_nanos(1)));
        hosts.remind(self.group, 1 + 2 * connection + side as u32, at);
    }

    /// An end writes its next unit, or closes.
    fn say<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, connection: u32, side: usize) {
        self.write_unit(hosts, now, connection, side);
        self.push(hosts, now, connection, side);
    }

    /// Lets an end write and send.
    fn push<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, connection: u32, side: usize) {
        let Some(slot) = self.player(connection).map(|player| player.slot) else {
            return;
        };
        if !hosts.push(now, slot, side) {
            self.on_pushed(hosts, now, slot, side);
        }
    }

    fn write_unit<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        connection: u32,
        side: usize,
    ) {
        let recorded = self.recorded(connection);
        let group = self.group;
        let Some(player) = self.player(connection) else {
            return;
        };
        let slot = player.slot;
        let turn = if recorded.concurrent { side } else { 0 };
        let number = player.next[turn] as usize;
        let Some(unit) = recorded.units.get(number).copied() else {
            return;
        };
        let following = |from: usize| {
            let rest = recorded.units.iter().enumerate().skip(from);
            let mut own = rest.filter(|(_, unit)| !recorded.concurrent || usize::from(unit.from) == side);
            own.next()
        };
        let next = following(number + 1);
        player.next[turn] = next.map_or(recorded.units.len(), |next| next.0) as u32;
        if unit.bytes == Bytes::ZERO {
            player.finish_speaking(hosts, side, recorded);
            return;
        }
        let next = next.map(|next| *next.1);
        let asked = player.asked.take();
        player.written[side] += unit.bytes.get();
        let end = player.written[side];
        player.sending[side] = next.is_some_and(|next| recorded.concurrent || usize::from(next.from) == side);
        // What the opener says first begins with its SYN.
        let begins = number == 0 || recorded.concurrent && side == 1 && end == unit.bytes.get();
        let (start, waits) = match begins {
            true => (player.opened, unit.wait),
            false => (now, Duration::ZERO),
        };
        let is_answered =
            |next: Unit| !recorded.concurrent && side == 1 && next.from == 0 && next.bytes > Bytes::ZERO;
        let answer = next.filter(|next| is_answered(*next));
        let exchange = asked.unwrap_or_else(|| {
            let (bytes, waits) = match answer {
                Some(answer) => (unit.bytes + answer.bytes, waits + answer.wait),
                None => (unit.bytes, waits),
            };
            let record = hosts.open_record(group, hosts.slots[slot as usize].pair, start, bytes);
            if record != NONE {
                player.open.push(record);
            }
            Exchange { record, waits }
        });
        let completes = asked.is_some() || answer.is_none();
        if !completes {
            player.asked = Some(exchange);
        }
        player.under_way[1 - side].push_back(UnderWay {
            end,
            written_at: now,
            exchange,
            completes,
        });
        let goal = player.under_way[1 - side].front().map_or(end, |front| front.end);
        hosts.slots[slot as usize].ends[1 - side].goal = goal;
        hosts.wake(slot, side);
        hosts.write(slot, side, unit.bytes.get());
        if side == 0 {
            hosts.stream_ends(now, slot, end);
        }
        if next.is_none() {
            player.finish_speaking(hosts, side, recorded);
        }
    }

    fn exchange_over<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        connection: u32,
        Exchange { record, waits }: Exchange,
    ) {
        if let Some(player) = self.player(connection) {
            player.count_for(hosts, now, record);
        }
        if record == NONE {
            return;
        }
        hosts.open -= 1;
        let mut record = hosts.groups[self.group as usize].records.edit(record);
        record.completed = Some(now);
        record.received = record.bytes;
        record.start = record.start.saturating_add(waits).min(now);
    }
}

impl Player {
    /// An end has said everything. It closes if the other has too: a FIN would be answered with one.
    fn finish_speaking<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, side: usize, recorded: &Recorded) {
        self.finished[side] = true;
        if !recorded.concurrent || self.finished[1 - side] {
            hosts.slots[self.slot as usize].ends[side].closing = true;
        }
    }

    /// Gives a record what both ends counted since the last time; what is of no record is not of the next one either.
    fn count_for<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, record: u32) {
        hosts.wake(self.slot, 0);
        hosts.wake(self.slot, 1);
        let place = &hosts.slots[self.slot as usize];
        let records = &mut hosts.groups[place.group as usize].records;
        for (end, counted) in place.ends.iter().zip(&mut self.counted) {
            let Some(connection) = &end.connection else {
                continue;
            };
            let stats = connection.stats();
            if record != NONE {
                let mut record = records.edit(record);
                record.add(&stats.since(&counted.stats()));
                let known = record.min_rtt.into_iter();
                record.min_rtt = known.chain(connection.info(now).min_rtt).min();
            }
            *counted = (*stats).into();
        }
    }
}

impl Application for Replay<'_> {
    /// The next connections start (actor 0), or an end of one has waited as long as it should.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        if let Some(end) = actor.checked_sub(1) {
            let (connection, side) = (end >> 1, (end & 1) as usize);
            if self.player(connection).is_some_and(|player| !player.over) {
                self.say(hosts, now, connection, side);
            }
            return;
        }
        while let Some(at) = self.starts.at(self.started) {
            if at > now {
                hosts.act_at(self.group, 0, at);
                return;
            }
            self.begin(hosts, now, self.started);
            self.started += 1;
        }
    }

    /// An end was let write and send: if everything is sent, its next unit can be timed.
    fn on_pushed<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        let place = &hosts.slots[slot as usize];
        let connection = place.number;
        let Some(player) = self.player(connection) else {
            return;
        };
        let end = &place.ends[side];
        if !player.sending[side] || player.over || end.to_write > 0 {
            return;
        }
        let sent = end.connection.as_ref();
        if sent.is_none_or(|connection| connection.info(now).unsent > Bytes::ZERO) {
            return;
        }
        player.sending[side] = false;
        let turn = player.next;
        let recorded = self.recorded(connection);
        let next = turn[if recorded.concurrent { side } else { 0 }];
        if let Some(unit) = recorded.units.get(next as usize) {
            self.wait_to_speak(hosts, now, connection, side, unit.wait);
        }
    }

    /// One unit or more have arrived at an end.
    fn on_message<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        let place = &mut hosts.slots[slot as usize];
        let (group, received, connection) = (self.group, place.ends[side].received, place.number);
        let recorded = self.recorded(connection);
        let Some(player) = self.player(connection) else {
            return;
        };
        let mut complete = Vec::new();
        while let Some(front) = player.under_way[side].front()
            && front.end <= received
        {
            if front.exchange.record != NONE {
                let latency = now.since(front.written_at).as_secs_f64();
                hosts.groups[group as usize].delivery_latency.push(latency);
            }
            complete.extend(front.completes.then_some(front.exchange));
            player.under_way[side].pop_front();
        }
        place.ends[side].goal = player.under_way[side].front().map_or(u64::MAX, |front| front.end);
        player
            .open
            .retain(|record| complete.iter().all(|done| done.record != *record));
        let drained = player.under_way.iter().all(VecDeque::is_empty);
        let said = if recorded.concurrent {
            player.finished == [true; 2] || (0..2).all(|side| silent_from(recorded, side, player.next[side]))
        } else {
            silent(recorded, player.next[0])
        };
        if drained && said && player.counts {
            let took = now.since(player.opened).as_secs_f64();
            hosts.groups[group as usize].connections.push(took);
            player.counts = false; // reported
        }
        let next = recorded.units.get(player.next[0] as usize);
        let speaks = next.filter(|next| !recorded.concurrent && drained && usize::from(next.from) == side);
        let wait = speaks.map(|unit| unit.wait);
        for exchange in complete {
            self.exchange_over(hosts, now, connection, exchange);
        }
        match wait {
            // The segment that brought the unit is answered after this.
            Some(wait) if wait.is_zero() => self.write_unit(hosts, now, connection, side),
            Some(wait) => self.wait_to_speak(hosts, now, connection, side, wait),
            None => {}
        }
    }

    fn on_end<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, _now: Instant, slot: u32) {
        let place = &mut hosts.slots[slot as usize];
        let Some(player) = self.player(place.number) else {
            return;
        };
        if std::mem::replace(&mut player.over, true) {
            return;
        }
        hosts.open -= player.open.len() as u64;
        for end in &mut place.ends {
            end.goal = u64::MAX;
        }
    }

    /// What was counted since the last complete exchange belongs to the one on its way.
    fn record<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) {
        let connection = hosts.slots[slot as usize].number;
        let Some(mut player) = self.players[connection as usize].take() else {
            return;
        };
        let cut_off = &mut hosts.groups[self.group as usize].cut_off;
        if player.counts {
            cut_off.connections.push(player.opened);
        }
        let units = player.under_way.iter().flatten();
        let units = units.filter(|unit| unit.exchange.record != NONE);
        cut_off.writes.extend(units.map(|unit| unit.written_at));
        if let Some(&record) = player.open.first() {
            let now = hosts.now;
            player.count_for(hosts, now, record);
        }
    }

    /// Keeps a packet that arrived for as long as its connection prescribes, or for good; `false`: for no time.
    fn delays<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, link: u32, now: Instant, id: u32) -> bool {
        let packet = hosts.packets.get(id);
        let (data, flow) = (packet.segment.is_data(), packet.flow.0);
        let side = 1 ^ flow & 1;
        let connection = hosts.slots[(flow >> 1) as usize].number;
        let span = self.recorded(connection).delay;
        let group = self.group;
        let Some(player) = self.player(connection) else {
            return false;
        };
        if let Some(losses) = &mut player.losses
            && let Losses { share, random } = &mut losses[1 - side as usize]
            && data
            && random.chance(*share)
        {
            hosts.discard(link, now, id, DropReason::RandomLoss);
            return true;
        }
        if span.is_zero() {
            return false;
        }
        let at = now.saturating_add(span);
        let waiting = &mut player.waiting[side as usize];
        waiting.push_back((at, id));
        if waiting.len() == 1 {
            delayed_at(hosts, at, group, 2 * connection + side);
        }
        true
    }

    /// A conversation with packets that were kept is not over: they are in the network.
    fn next_delayed<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        number: u32,
        now: Instant,
    ) -> Option<u32> {
        let group = self.group;
        let waiting = &mut self.player(number >> 1)?.waiting[(number & 1) as usize];
        let &(at, id) = waiting.front()?;
        if at > now {
            delayed_at(hosts, at, group, number);
            return None;
        }
        waiting.pop_front();
        Some(id)
    }
}

/// Schedules the end of a delay.
fn delayed_at<O: Observer>(hosts: &mut Hosts<'_, O>, at: Instant, group: u32, number: u32) {
    let key = EventKey::new(at, EventKind::Delayed, group, number);
    hosts.network.queue.push(key);
}

/// Whether what is left of a sequential connection from a unit on is only its end.
fn silent(recorded: &Recorded, next: u32) -> bool {
    let rest = recorded.units.get(next as usize..).unwrap_or(&[]);
    rest.iter().all(|unit| unit.bytes == Bytes::ZERO)
}

/// Whether one end of a concurrent connection says nothing more.
fn silent_from(recorded: &Recorded, side: usize, next: u32) -> bool {
    let rest = recorded.units.get(next as usize..).unwrap_or(&[]);
    let mut own = rest.iter().filter(|unit| usize::from(unit.from) == side);
    own.all(|unit| unit.bytes == Bytes::ZERO)
}
