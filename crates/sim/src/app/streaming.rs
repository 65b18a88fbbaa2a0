//! Video players that fetch a stream segment by segment into a buffer. A flow record is a segment: it starts with its request
//! and is complete with its last byte.
//!
//! **Source.** The model of ISO/IEC 23009-1 (DASH) players as Akhshabi, Begen and Dovrolis (ACM MMSys 2011, section 4)
//! describe it: in the buffering state segments are fetched one after the other; once the buffer is full, the next is asked
//! for when there is room for it, so the connection is idle in between. What the sender's window is worth after such a
//! pause is the question of RFC 7661. **Deviations.** One bit rate: the player does not adapt. Segments are all of the same
//! size. Playing begins, and goes on after a stall, when `start` of playing time is there.

use super::Application;
use super::dialogue::Dialogue;
use super::group::Member;
use crate::endpoint::{Hosts, NONE};
use crate::network::Window;
use crate::observe::Observer;
use crate::spec;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// The players of a group.
pub(crate) struct Streaming<'a> {
    group: u32,
    spec: &'a spec::Streaming,
    /// The measured time, up to the end of the group.
    measured: Window,
    players: Vec<Player>,
}

struct Player {
    pair: u32,
    dialogue: Dialogue,
    begun: Instant,
    /// When the buffer runs dry, while it plays.
    dry: Option<Instant>,
    /// Playing time in the buffer, while it does not.
    buffered: Duration,
    /// When it stood still, unless it never played or does.
    stalled_at: Option<Instant>,
    /// Since when it has asked for nothing.
    idle_since: Option<Instant>,
    /// A pause comes before the next request.
    paused: bool,
    /// When the first picture was shown.
    shown: Option<Instant>,
    /// Stalls that reach into the measured time.
    stalls: u32,
    /// Their part of it.
    stalled: Duration,
    /// Measured time in which it had nothing to ask for.
    idle: Duration,
}

impl<'a> Streaming<'a> {
    pub(super) fn new<O: Observer>(
        hosts: &mut Hosts<'a, O>,
        group: u32,
        spec: &'a spec::Streaming,
    ) -> Streaming<'a> {
        let mut players = Vec::new();
        for Member { number, pair, start } in hosts.members(group) {
            players.push(Player {
                pair,
                dialogue: Dialogue::new(),
                begun: start,
                dry: None,
                buffered: Duration::ZERO,
                stalled_at: None,
                idle_since: None,
                paused: false,
                shown: None,
                stalls: 0,
                stalled: Duration::ZERO,
                idle: Duration::ZERO,
            });
            hosts.act_at(group, number, start);
        }
        Streaming {
            group,
            spec,
            measured: Window {
                from: hosts.window.from,
                to: hosts.stop_of(group).min(hosts.window.to),
            },
            players,
        }
    }

    /// Bytes of a segment.
    fn bytes(&self) -> u64 {
        let bits = u128::from(self.spec.bitrate.bps()) * u128::from(self.spec.segment.as_nanos());
        ((bits / 8_000_000_000) as u64).max(1)
    }
}

impl Player {
    /// A segment is there.
    fn take(&mut self, now: Instant, measured: Window, spec: &spec::Streaming) {
        match self.dry {
            Some(dry) if now <= dry => {
                self.dry = Some(dry.saturating_add(spec.segment));
                return;
            }
            Some(dry) => {
                self.dry = None;
                self.buffered = Duration::ZERO;
                self.stalled_at = Some(dry);
            }
            None => {}
        }
        self.buffered += spec.segment;
        if self.buffered < spec.start {
            return;
        }
        self.dry = Some(now.saturating_add(self.buffered));
        match self.stalled_at.take() {
            Some(dry) => self.count_stall(dry, now, measured),
            None => self.shown = Some(now),
        }
    }

    /// Counts a stall: the player stood still from `dry` to `until`.
    fn count_stall(&mut self, dry: Instant, until: Instant, measured: Window) {
        let part = measured.part(dry, until);
        self.stalls += u32::from(!part.is_zero());
        self.stalled += part;
    }

    /// When the buffer has room for another segment.
    fn room_at(&self, now: Instant, spec: &spec::Streaming) -> Instant {
        let others = spec.buffer.saturating_sub(spec.segment);
        let full = self
            .dry
            .map(|dry| dry.since(Instant::ZERO).saturating_sub(others));
        full.map_or(now, |full| (Instant::ZERO + full).max(now))
    }
}

impl Application for Streaming<'_> {
    /// A player asks for its next segment.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let bytes = self.bytes();
        let request = self.spec.request.get().max(1);
        let player = &mut self.players[actor as usize];
        if player.dialogue.slot == NONE {
            player.dialogue.slot = hosts.open_pair(now, self.group, actor, player.pair, Some(1));
            player.paused = false;
        }
        if let Some(since) = player.idle_since.take() {
            player.idle += self.measured.part(since, now);
        }
        let slot = player.dialogue.slot;
        let record = hosts.open_record(self.group, player.pair, now, Bytes(bytes));
        player.dialogue.begun += 1;
        let end = player.dialogue.ask(now, request, record);
        hosts.slots[slot as usize].ends[0].goal = end;
        hosts.write(slot, 1, request);
        hosts.push(now, slot, 1);
    }

    fn on_message<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        let bytes = self.bytes();
        let actor = hosts.slots[slot as usize].actor;
        let player = &mut self.players[actor as usize];
        if player.dialogue.slot != slot {
            // This connection was given up.
            hosts.slots[slot as usize].ends[side].goal = u64::MAX;
            return;
        }
        let window = |hosts: &Hosts<'_, O>| {
            let server = hosts.slots[slot as usize].ends[0].connection.as_deref();
            server.map(|server| server.info(now).cwnd)
        };
        if side == 0 {
            let paused = std::mem::take(&mut player.paused);
            let before = window(hosts);
            player.dialogue.respond(hosts, now, slot, bytes);
            if paused {
                // What the pause did to the window is known when the first segment has left.
                hosts.push(now, slot, 0);
                if let (Some(before), Some(after), true) = (before, window(hosts), hosts.window.contains(now))
                {
                    let kept = after.get() as f64 / before.get().max(1) as f64;
                    hosts.groups[self.group as usize].measures[WINDOW_AFTER_PAUSE].push(kept);
                }
            }
            return;
        }
        player.dialogue.arrived(hosts, now, slot, false);
        player.take(now, self.measured, self.spec);
        player.idle_since = Some(now);
        let next = player.room_at(now, self.spec);
        if next >= hosts.stop_of(self.group) {
            hosts.slots[slot as usize].ends[1].closing = true;
        } else if next > now {
            player.paused = true;
            hosts.act_at(self.group, actor, next);
        } else {
            self.act(hosts, actor, now);
        }
    }

    fn on_acked<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let actor = hosts.slots[slot as usize].actor;
        self.players[actor as usize].dialogue.acked(hosts, now, slot);
    }

    /// A player that was interrupted asks again on another connection.
    fn on_end<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let actor = hosts.slots[slot as usize].actor;
        if self.players[actor as usize].dialogue.ended(hosts, slot, false) {
            hosts.act_at(self.group, actor, now.saturating_add(Duration::from_nanos(1)));
        }
    }

    fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        let measured = self.measured;
        for player in &mut self.players {
            player.dialogue.finish(hosts, false);
            let whole = measured.part(player.begun, measured.to);
            if whole.is_zero() {
                continue;
            }
            let dry = player.dry.filter(|dry| *dry < measured.to);
            if let Some(dry) = player.stalled_at.or(dry) {
                player.count_stall(dry, measured.to, measured);
            }
            if let Some(since) = player.idle_since {
                player.idle += measured.part(since, measured.to);
            }
            let share = |part: Duration, whole: Duration| match whole.is_zero() {
                true => 0.0,
                false => part.as_secs_f64() / whole.as_secs_f64(),
            };
            let shown = player.shown.unwrap_or(measured.to);
            let measures = &mut hosts.groups[self.group as usize].measures;
            if measured.contains(player.begun) {
                // One that never played has waited for as long at least.
                measures[STARTUP_DELAY].push(shown.since(player.begun).as_secs_f64());
            }
            measures[STALLS].push(f64::from(player.stalls));
            // Who never sees a picture is worse off than those whose picture stands still.
            let never = shown >= measured.to;
            measures[STALLED_SHARE].push(match never {
                true => 1.0,
                false => share(player.stalled, measured.part(shown, measured.to)),
            });
            measures[IDLE_SHARE].push(share(player.idle, whole));
            measures[WITHOUT_PICTURE].push(f64::from(u8::from(never)));
        }
        Vec::new()
    }
}

// Places of the measures among those of the kind.
const STARTUP_DELAY: usize = 0;
const STALLS: usize = 1;
const STALLED_SHARE: usize = 2;
const IDLE_SHARE: usize = 3;
const WINDOW_AFTER_PAUSE: usize = 4;
const WITHOUT_PICTURE: usize = 5;
