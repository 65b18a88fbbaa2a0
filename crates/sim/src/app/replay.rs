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

use super::NONE;
use super::compact::Counted;
use super::record::add_difference;
use crate::event::{EventKey, EventKind};
use crate::observe::Observer;
use crate::spec::{GroupSpec, Recorded, Replay, Traffic, Unit};
use crate::world::World;
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::rng::{Probability, Rng};
use fleetfoot_core::tcp::Config;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// A recorded connection that is played.
pub(crate) struct Player {
    /// Its index in the recording.
    connection: u32,
    /// It began within what is measured.
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
    /// Record and prescribed waiting of the exchange whose answer is to come; `NONE`: there is none.
    asked: (u32, Duration),
    /// Records whose exchange is not complete.
    open: Vec<u32>,
    /// What each end counted that was given to a record.
    counted: [Counted; 2],
    /// Packets at each end that are still to take their time.
    waiting: [VecDeque<(Instant, u32)>; 2],
    /// The connection is over: nobody acts any more.
    over: bool,
    /// Configurations of its ends, if its windows are those of the recording.
    pub(crate) configs: Option<Box<[Arc<Config>; 2]>>,
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
    /// What is complete with it.
    record: u32,
    /// The waiting that is prescribed within.
    waits: Duration,
}

impl<O: Observer> World<'_, O> {
    /// The next connections start (actor 0), or an end of one has waited as long as it should.
    pub(super) fn act_replay(
        &mut self,
        index: u32,
        actor: u32,
        now: Instant,
        spec: &GroupSpec,
        replay: &Replay,
    ) {
        if actor > 0 {
            let (connection, side) = (((actor - 1) >> 1) as usize, ((actor - 1) & 1) as usize);
            let slot = self.groups[index as usize].playing[connection];
            if self.plays(slot, connection as u32) {
                self.say(now, slot, side, &replay.connections[connection]);
            }
            return;
        }
        self.groups[index as usize].actors[0].pending = false;
        let mut next = self.groups[index as usize].started as usize;
        while let Some(recorded) = replay.connections.get(next) {
            let at = (Instant::ZERO + spec.start)
                .saturating_add(recorded.start)
                .saturating_add(self.start_jitter(spec, replay, next));
            // Those after one that is late wait for it.
            if at > now {
                self.act_at(index, 0, at);
                break;
            }
            self.begin_recorded(now, index, next as u32, recorded);
            next += 1;
        }
        self.groups[index as usize].started = next as u64;
    }

    /// By how much this connection starts later than recorded.
    fn start_jitter(&self, spec: &GroupSpec, replay: &Replay, connection: usize) -> Duration {
        if replay.start_jitter == Duration::ZERO {
            return Duration::ZERO;
        }
        let mut random = Rng::for_element(self.spec.seed, &spec.name, &format!("start {connection}"));
        Duration::from_secs_f64(replay.start_jitter.as_secs_f64() * random.uniform())
    }

    /// Whether this conversation is still that of this recorded connection.
    fn plays(&self, slot: u32, connection: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|place| {
            let player = place.replay.as_ref();
            place.live && player.is_some_and(|player| player.connection == connection && !player.over)
        })
    }

    fn begin_recorded(&mut self, now: Instant, index: u32, connection: u32, recorded: &Recorded) {
        let of = |side: usize| {
            recorded
                .units
                .iter()
                .position(|unit| usize::from(unit.from) == side)
        };
        let mut player = Player {
            connection,
            counts: self.window.contains(now),
            opened: now,
            next: [0; 2],
            written: [0; 2],
            sending: [false; 2],
            finished: [false; 2],
            under_way: [VecDeque::new(), VecDeque::new()],
            asked: (NONE, Duration::ZERO),
            open: Vec::new(),
            counted: [Counted::default(), Counted::default()],
            waiting: [VecDeque::new(), VecDeque::new()],
            over: false,
            configs: self.configs(index, recorded),
            losses: self.losses(index, connection, recorded),
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
        let pairs = self.groups[index as usize].routes.len() as u32;
        let opening = self.opening(index, 0, recorded.pair % pairs.max(1), Some(1));
        let slot = self.open_recorded(now, &opening, Some(Box::new(player)));
        self.groups[index as usize].playing[connection as usize] = slot;
        for side in [1, 0] {
            if !speaks[side] {
                continue;
            }
            let wait = recorded
                .units
                .get(first[side] as usize)
                .map_or(Duration::ZERO, |unit| unit.wait);
            if side == 1 && wait.is_zero() {
                self.say(now, slot, 1, recorded);
                continue;
            }
            // The opener is connected after one round-trip time, the other end half of one later.
            let half = Duration::from_nanos(recorded.rtt.as_nanos() / 2);
            let connected = if side == 1 {
                recorded.rtt
            } else {
                recorded.rtt + half
            };
            self.wait_to_speak(now.saturating_add(connected), index, connection, side, wait);
        }
        self.pump(now, slot, 1);
    }

    /// The group's configurations with the windows of the recording, if it has any.
    fn configs(&self, index: u32, recorded: &Recorded) -> Option<Box<[Arc<Config>; 2]>> {
        if recorded.windows == [0; 2] {
            return None;
        }
        let spec = &self.spec.groups[index as usize];
        let own = |config: &Arc<Config>, window: u32| match window {
            0 => Arc::clone(config),
            window => Arc::new(Config {
                receive_buffer: Bytes(u64::from(window.max(LEAST_WINDOW))),
                receive_memory: None, // it would grow on its own
                window_scale: config.window_scale.map(|_| least_scale(window)),
                ..(**config).clone()
            }),
        };
        let [sender, receiver] = recorded.windows;
        Some(Box::new([
            own(&spec.sender, sender),
            own(&spec.receiver, receiver),
        ]))
    }

    fn losses(&self, index: u32, connection: u32, recorded: &Recorded) -> Option<Box<[Losses; 2]>> {
        if recorded.losses_ppm == [0; 2] {
            return None;
        }
        let name = &self.spec.groups[index as usize].name;
        let own = |side: usize| Losses {
            share: Probability::from_f64(f64::from(recorded.losses_ppm[side]) * 1e-6),
            random: Rng::for_element(self.spec.seed, name, &format!("losses {connection} {side}")),
        };
        Some(Box::new([own(0), own(1)]))
    }

    /// Lets an end speak after `wait`; time must pass, so that nobody speaks within the turn of another.
    fn wait_to_speak(&mut self, from: Instant, index: u32, connection: u32, side: usize, wait: Duration) {
        let at = from.saturating_add(wait.max(Duration::from_nanos(1)));
        let actor = 1 + 2 * connection + side as u32;
        self.network
            .queue
            .push(EventKey::new(at, EventKind::App, index, actor));
    }

    /// An end writes its next unit, or closes.
    fn say(&mut self, now: Instant, slot: u32, side: usize, recorded: &Recorded) {
        self.write_unit(now, slot, side, recorded);
        self.pump(now, slot, side);
    }

    fn write_unit(&mut self, now: Instant, slot: u32, side: usize, recorded: &Recorded) {
        let place = &mut self.slots[slot as usize];
        let (index, pair) = (place.group, place.pair);
        let Some(player) = &mut place.replay else { return };
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
            self.finish_speaking(slot, side, recorded);
            return;
        }
        let next = next.map(|next| *next.1);
        let (counts, opened, first) = (player.counts, player.opened, number == 0);
        let asked = std::mem::replace(&mut player.asked, (NONE, Duration::ZERO));
        player.written[side] += unit.bytes.get();
        let end = player.written[side];
        player.sending[side] = next.is_some_and(|next| recorded.concurrent || usize::from(next.from) == side);
        let answered = asked.0 != NONE;
        // What the opener says first begins with its SYN.
        let begins = first || recorded.concurrent && side == 1 && end == unit.bytes.get();
        let (start, waits) = match begins {
            true => (opened, unit.wait),
            false => (now, Duration::ZERO),
        };
        let mut complete = asked;
        let mut bytes = unit.bytes;
        let is_answered =
            |next: Unit| !recorded.concurrent && side == 1 && next.from == 0 && next.bytes > Bytes::ZERO;
        let answer = next.filter(|next| is_answered(*next));
        if !answered {
            complete = (NONE, waits);
            if let Some(answer) = answer {
                bytes += answer.bytes;
                complete.1 += answer.wait;
            }
            if counts && self.window.contains(start) {
                complete.0 = self.new_record(index, pair, start, bytes);
                self.open += 1;
            }
        }
        let place = &mut self.slots[slot as usize];
        let Some(player) = &mut place.replay else { return };
        if !answered && complete.0 != NONE {
            player.open.push(complete.0);
        }
        if answer.is_some() && !answered {
            player.asked = complete;
            complete = (NONE, Duration::ZERO);
        }
        player.under_way[1 - side].push_back(UnderWay {
            end,
            written_at: now,
            record: complete.0,
            waits: complete.1,
        });
        let goal = player.under_way[1 - side].front().map_or(end, |front| front.end);
        place.ends[1 - side].goal = goal;
        self.wake(slot, side);
        self.write(slot, side, unit.bytes.get());
        if side == 0 {
            self.stream_ends(now, slot, end);
        }
        if next.is_none() {
            self.finish_speaking(slot, side, recorded);
        }
    }

    /// An end has said everything. It closes if the other has too: a FIN would be answered with one.
    fn finish_speaking(&mut self, slot: u32, side: usize, recorded: &Recorded) {
        let place = &mut self.slots[slot as usize];
        let Some(player) = &mut place.replay else { return };
        player.finished[side] = true;
        if !recorded.concurrent || player.finished[1 - side] {
            place.ends[side].closing = true;
        }
    }

    /// An end was let write and send: if everything is sent, its next unit can be timed.
    pub(crate) fn on_replay_pumped(&mut self, now: Instant, slot: u32, side: usize) {
        let place = &mut self.slots[slot as usize];
        let Some(player) = &mut place.replay else { return };
        let end = &place.ends[side];
        if !player.sending[side] || player.over || end.to_write > 0 {
            return;
        }
        let sent = end.connection.as_ref();
        if sent.is_none_or(|connection| connection.info(now).unsent > Bytes::ZERO) {
            return;
        }
        player.sending[side] = false;
        let (index, connection) = (place.group, player.connection);
        let turn = player.next;
        let Traffic::Replay(replay) = &self.spec.groups[index as usize].traffic else {
            return;
        };
        let recorded = &replay.connections[connection as usize];
        let next = turn[if recorded.concurrent { side } else { 0 }];
        if let Some(unit) = recorded.units.get(next as usize) {
            self.wait_to_speak(now, index, connection, side, unit.wait);
        }
    }

    /// One unit or more have arrived at an end.
    pub(super) fn on_replay_message(&mut self, now: Instant, slot: u32, side: usize, replay: &Replay) {
        let place = &mut self.slots[slot as usize];
        let (index, received) = (place.group, place.ends[side].received);
        let Some(player) = &mut place.replay else { return };
        let connection = player.connection;
        let recorded = &replay.connections[connection as usize];
        let mut complete = Vec::new();
        while let Some(front) = player.under_way[side].front()
            && front.end <= received
        {
            if player.counts {
                let latency = now.since(front.written_at).as_secs_f64();
                self.groups[index as usize].delivery_latency.push(latency);
            }
            if front.record != NONE {
                complete.push((front.record, front.waits));
            }
            player.under_way[side].pop_front();
        }
        place.ends[side].goal = player.under_way[side].front().map_or(u64::MAX, |front| front.end);
        player
            .open
            .retain(|record| complete.iter().all(|(done, _)| done != record));
        let drained = player.under_way.iter().all(VecDeque::is_empty);
        let said = if recorded.concurrent {
            player.finished == [true; 2] || (0..2).all(|side| silent_from(recorded, side, player.next[side]))
        } else {
            silent(recorded, player.next[0])
        };
        if drained && said && player.counts {
            let took = now.since(player.opened).as_secs_f64();
            self.groups[index as usize].connections.push(took);
            player.counts = false; // told
        }
        let next = recorded.units.get(player.next[0] as usize);
        let speaks = next.filter(|next| !recorded.concurrent && drained && usize::from(next.from) == side);
        let wait = speaks.map(|unit| unit.wait);
        for (record, waits) in complete {
            self.exchange_over(now, slot, record, waits);
        }
        match wait {
            // The segment that brought the unit is answered after this.
            Some(wait) if wait.is_zero() => self.write_unit(now, slot, side, recorded),
            Some(wait) => self.wait_to_speak(now, index, connection, side, wait),
            None => {}
        }
    }

    fn exchange_over(&mut self, now: Instant, slot: u32, record: u32, waits: Duration) {
        self.open -= 1;
        self.count_for(now, slot, record);
        let group = &mut self.groups[self.slots[slot as usize].group as usize];
        let record = &mut group.records[record as usize];
        record.completed = Some(now);
        record.received = record.bytes;
        record.start = record.start.saturating_add(waits).min(now);
    }

    /// Gives a record what both ends counted since the last time.
    fn count_for(&mut self, now: Instant, slot: u32, record: u32) {
        self.wake(slot, 0);
        self.wake(slot, 1);
        let place = &mut self.slots[slot as usize];
        let Some(player) = &mut place.replay else { return };
        let record = &mut self.groups[place.group as usize].records[record as usize];
        for (end, counted) in place.ends.iter().zip(&mut player.counted) {
            let Some(connection) = &end.connection else {
                continue;
            };
            let before = counted.stats();
            let stats = connection.stats();
            add_difference(record, stats, &before);
            record.redundant_bytes += Bytes(stats.redundant_bytes - before.redundant_bytes);
            record.min_rtt = record
                .min_rtt
                .into_iter()
                .chain(connection.info(now).min_rtt)
                .min();
            *counted = Counted::new(stats, stats.redundant_bytes);
        }
    }

    /// A conversation has no more to say at one end, in good or bad order.
    pub(super) fn on_replay_end(&mut self, slot: u32) {
        let place = &mut self.slots[slot as usize];
        let Some(player) = &mut place.replay else { return };
        if std::mem::replace(&mut player.over, true) {
            return;
        }
        self.open -= player.open.len() as u64;
        for end in &mut place.ends {
            end.goal = u64::MAX;
        }
    }

    /// What was counted since the last complete exchange belongs to the one on its way.
    pub(super) fn record_replay(&mut self, slot: u32) {
        let open = self.slots[slot as usize].replay.as_ref();
        if let Some(record) = open.and_then(|player| player.open.first().copied()) {
            self.count_for(self.now, slot, record);
        }
    }

    /// Keeps a packet that arrived for as long as its connection prescribes, or for good; `false`: for no time.
    pub(crate) fn delay(&mut self, link: u32, now: Instant, id: u32) -> bool {
        let data = self.packets.get(id).segment.is_data();
        let flow = self.packets.get(id).flow.0;
        let side = 1 ^ flow & 1;
        let place = &mut self.slots[(flow >> 1) as usize];
        let Some(player) = &mut place.replay else {
            return false;
        };
        let Traffic::Replay(replay) = &self.spec.groups[place.group as usize].traffic else {
            return false;
        };
        if let Some(losses) = &mut player.losses
            && let Losses { share, random } = &mut losses[1 - side as usize]
            && data
            && random.chance(*share)
        {
            self.discard(link, now, id, DropReason::RandomLoss);
            return true;
        }
        let span = replay.connections[player.connection as usize].delay;
        if span.is_zero() {
            return false;
        }
        let at = now.saturating_add(span);
        let waiting = &mut player.waiting[side as usize];
        waiting.push_back((at, id));
        if waiting.len() == 1 {
            let number = 2 * player.connection + side;
            self.network
                .queue
                .push(EventKey::new(at, EventKind::Delayed, place.group, number));
        }
        true
    }

    /// The first packets that wait at an end of a recorded connection have taken their time.
    pub(crate) fn on_delayed(&mut self, index: u32, number: u32, now: Instant) {
        let (connection, side) = (number >> 1, (number & 1) as usize);
        let slot = self.groups[index as usize].playing[connection as usize];
        loop {
            // A conversation with packets under way is not used again.
            let Some(place) = self.slots.get_mut(slot as usize) else {
                return;
            };
            let Some(player) = &mut place.replay else { return };
            if player.connection != connection {
                return;
            }
            let Some(&(at, id)) = player.waiting[side].front() else {
                return;
            };
            if at > now {
                self.network
                    .queue
                    .push(EventKey::new(at, EventKind::Delayed, index, number));
                return;
            }
            player.waiting[side].pop_front();
            self.hand_up(now, id);
        }
    }
}

/// The smallest shift with which a window fits its field: a larger one would cut it.
fn least_scale(window: u32) -> u8 {
    (window >> 16).checked_ilog2().map_or(0, |bits| bits as u8 + 1)
}

/// Smaller windows hold no segment.
const LEAST_WINDOW: u32 = 536;

/// Whether what is left of a sequential connection from a unit on is only its end.
fn silent(recorded: &Recorded, next: u32) -> bool {
    let rest = recorded.units.get(next as usize..).unwrap_or(&[]);
    rest.iter().all(|unit| unit.bytes == Bytes::ZERO)
}

/// The same of one end of a concurrent connection.
fn silent_from(recorded: &Recorded, side: usize, next: u32) -> bool {
    let rest = recorded.units.get(next as usize..).unwrap_or(&[]);
    let mut own = rest.iter().filter(|unit| usize::from(unit.from) == side);
    own.all(|unit| unit.bytes == Bytes::ZERO)
}
