//! Pages over QUIC: a user opens a connection and asks for a document; when it is there, for all its objects at once, each on a
//! stream of its own, as HTTP/3 does; then closes the connection and thinks.
//!
//! The counterpart of `web`, with the same sizes at the same times. A flow record is a page: its completion time is the page load
//! time, from the first packet of the handshake to the last byte. A connection that fails is opened again for what is missing.

use super::{Lines, Load, Place, Quic};
use crate::app::compact::Draw;
use crate::app::group::Member;
use crate::app::web::Wanted;
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::quic::Heard;
use crate::spec;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use quinn_proto::{Dir, StreamId};
use std::collections::BTreeMap;

/// The users of a group.
pub(crate) struct Pages<'a> {
    web: &'a spec::QuicWeb,
    users: Vec<User>,
}

struct User {
    pair: u32,
    /// Pages begun.
    begun: u32,
    document: Draw,
    object: Draw,
    think: Draw,
    /// Time that the server needs for an answer.
    server: Draw,
    /// When the next page is wanted. A user's other events are those of answers.
    next: Instant,
    /// What is being loaded.
    page: Option<Box<Page>>,
}

/// A page that is being loaded.
struct Page {
    record: u32,
    slot: u32,
    /// The document has not arrived.
    document: bool,
    /// Objects not asked for yet, last first.
    waiting: Vec<Wanted>,
    /// What was asked for and has not arrived, by stream.
    asked: BTreeMap<StreamId, Asked>,
    /// When the server answers on which stream.
    answers: Vec<(Instant, StreamId)>,
}

/// Something that was asked for.
#[derive(Clone, Copy)]
struct Asked {
    wanted: Wanted,
    /// What the server has not written of it; `None`: it does not answer yet.
    left: Option<u64>,
}

impl<'a> Quic<Pages<'a>> {
    pub(crate) fn pages<O: Observer>(
        hosts: &mut Hosts<'a, O>,
        group: u32,
        web: &'a spec::QuicWeb,
    ) -> Quic<Pages<'a>> {
        let mut users = Vec::new();
        for Member { number, pair, start } in hosts.members(group) {
            let draw =
                |distribution, purpose| Draw::new(distribution, || hosts.stream_of(group, number, purpose));
            let mut think = draw(&web.think, "gap");
            let at = start.saturating_add(Duration::from_secs_f64(think.sample()));
            users.push(User {
                pair,
                begun: 0,
                document: draw(&web.document, "request"), // the streams of `web`
                object: draw(&web.object, "size"),
                think,
                server: draw(&web.server_time, "server"),
                next: at,
                page: None,
            });
            hosts.act_at(group, number, at);
        }
        Quic {
            lines: Lines::new(hosts, group, 1, &web.transport),
            load: Pages { web, users },
        }
    }
}

impl Pages<'_> {
    /// The page that is loaded over a connection.
    fn page<O>(&mut self, hosts: &Hosts<'_, O>, slot: u32) -> Option<&mut Page> {
        let actor = hosts.slots[slot as usize].actor;
        let page = self.users[actor as usize].page.as_deref_mut();
        page.filter(|page| page.slot == slot)
    }

    /// Opens a connection for the page of a user.
    fn connect<O: Observer>(
        &mut self,
        lines: &mut Lines,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        actor: u32,
    ) {
        let slot = lines.open(hosts, now, actor, self.users[actor as usize].pair);
        if let Some(page) = &mut self.users[actor as usize].page {
            page.slot = slot;
        }
        if lines.pair(hosts, slot).is_some_and(|pair| pair.sends_early(1)) {
            self.ask(lines, hosts, slot);
        }
    }

    /// Asks for the document, or for as much of the rest as the server allows at a time.
    fn ask<O: Observer>(&mut self, lines: &mut Lines, hosts: &Hosts<'_, O>, slot: u32) {
        let request = self.web.request.get().max(1);
        let (Some(page), Some(pair)) = (self.page(hosts, slot), lines.pair(hosts, slot)) else {
            return;
        };
        while !page.waiting.is_empty() && (!page.document || page.asked.is_empty()) {
            let Some(stream) = pair.open(1, Dir::Bi) else {
                return;
            };
            // Less than what any peer takes at once.
            pair.write(1, stream, request);
            if let Some(wanted) = page.waiting.pop() {
                page.asked.insert(stream, Asked { wanted, left: None });
            }
        }
    }

    /// The server begins to answer on a stream.
    fn begin_answer<O: Observer>(
        &mut self,
        lines: &mut Lines,
        hosts: &Hosts<'_, O>,
        slot: u32,
        stream: StreamId,
    ) {
        let page = self.page(hosts, slot);
        if let Some(asked) = page.and_then(|page| page.asked.get_mut(&stream)) {
            asked.left = Some(asked.wanted.bytes);
        }
        self.answer(lines, hosts, slot, stream);
    }

    /// The answers whose time has come.
    fn serve<O: Observer>(&mut self, lines: &mut Lines, hosts: &Hosts<'_, O>, now: Instant, actor: u32) {
        let due = |answer: &(Instant, StreamId)| answer.0 <= now;
        while let Some(page) = self.users[actor as usize].page.as_deref_mut()
            && let Some(at) = page.answers.iter().position(due)
        {
            let (slot, (_, stream)) = (page.slot, page.answers.remove(at));
            self.begin_answer(lines, hosts, slot, stream);
            lines.touch(Place { slot, side: 0 });
        }
    }

    /// The server writes what the connection takes of an answer.
    fn answer<O: Observer>(&mut self, lines: &mut Lines, hosts: &Hosts<'_, O>, slot: u32, stream: StreamId) {
        let (Some(page), Some(pair)) = (self.page(hosts, slot), lines.pair(hosts, slot)) else {
            return;
        };
        if let Some(Asked { left: Some(left), .. }) = page.asked.get_mut(&stream)
            && *left > 0
        {
            *left -= pair.write(0, stream, *left);
        }
    }

    /// All of something is there.
    fn arrived<O: Observer>(
        &mut self,
        lines: &mut Lines,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        stream: StreamId,
    ) {
        let Some(page) = self.page(hosts, slot) else {
            return;
        };
        page.asked.remove(&stream);
        page.document = false;
        if !page.asked.is_empty() || !page.waiting.is_empty() {
            self.ask(lines, hosts, slot);
            return;
        }
        let record = page.record;
        add(lines, hosts, slot, record);
        if record != NONE {
            hosts.open -= 1;
            let mut record = hosts.groups[lines.group as usize].records.edit(record);
            record.completed = Some(now);
            record.received = record.bytes;
        }
        if let Some(pair) = lines.pair(hosts, slot) {
            pair.close(now, 1);
        }
        let actor = hosts.slots[slot as usize].actor;
        let user = &mut self.users[actor as usize];
        user.page = None;
        let think = Duration::from_secs_f64(user.think.sample()).max(Duration::from_nanos(1));
        let next = now.saturating_add(think);
        if next < hosts.stop_of(lines.group) {
            user.next = next;
            hosts.act_at(lines.group, actor, next);
        }
    }
}

impl Load for Pages<'_> {
    /// A user wants the next page, or the server answers.
    fn act<O: Observer>(&mut self, lines: &mut Lines, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        self.serve(lines, hosts, now, actor);
        let user = &mut self.users[actor as usize];
        if user.next > now {
            return;
        }
        user.next = Instant::FAR_FUTURE;
        if hosts.has_asked_enough(lines.group, actor, user.begun) {
            return;
        }
        user.begun += 1;
        let document = Wanted::draw(&mut user.document, &mut user.server);
        let mut waiting: Vec<Wanted> = (0..self.web.objects)
            .map(|_| Wanted::draw(&mut user.object, &mut user.server))
            .collect();
        let total = document.bytes + waiting.iter().map(|wanted| wanted.bytes).sum::<u64>();
        waiting.push(document); // what is asked for first
        user.page = Some(Box::new(Page {
            record: hosts.open_record(lines.group, user.pair, now, Bytes(total)),
            slot: NONE,
            document: true,
            waiting,
            asked: BTreeMap::new(),
            answers: Vec::new(),
        }));
        self.connect(lines, hosts, now, actor);
    }

    fn hear<O: Observer>(
        &mut self,
        lines: &mut Lines,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        place: Place,
        heard: Heard,
    ) {
        let Place { slot, side } = place;
        match heard {
            Heard::Connected | Heard::Available if side == 1 => self.ask(lines, hosts, slot),
            Heard::Writable(stream) if side == 0 => self.answer(lines, hosts, slot, stream),
            Heard::Stream => {
                while let Some(stream) = lines.pair(hosts, slot).and_then(|pair| pair.accept(side)) {
                    self.hear(lines, hosts, now, place, Heard::Readable(stream));
                }
            }
            Heard::Readable(stream) => {
                let (_, ended) = lines.read(hosts, now, place, stream);
                if ended && side == 1 {
                    self.arrived(lines, hosts, now, slot, stream);
                } else if ended {
                    let Some(page) = self.page(hosts, slot) else {
                        return; // of a page that is over
                    };
                    let asked = page.asked.get(&stream);
                    let needs = asked.map_or(Duration::ZERO, |asked| asked.wanted.server);
                    if needs.is_zero() {
                        self.begin_answer(lines, hosts, slot, stream);
                        return;
                    }
                    let at = now.saturating_add(needs);
                    page.answers.push((at, stream));
                    hosts.remind(lines.group, hosts.slots[slot as usize].actor, at);
                }
            }
            Heard::Lost if side == 1 => {
                let Some(page) = self.page(hosts, slot) else {
                    return; // of a page that is over
                };
                // What came first is asked for first again.
                let missing = std::mem::take(&mut page.asked);
                page.answers.clear();
                page.waiting
                    .extend(missing.values().rev().map(|asked| asked.wanted));
                let record = page.record;
                add(lines, hosts, slot, record);
                let actor = hosts.slots[slot as usize].actor;
                self.connect(lines, hosts, now, actor);
            }
            Heard::Connected
            | Heard::Available
            | Heard::Writable(_)
            | Heard::Acknowledged(_)
            | Heard::Lost => {}
        }
    }

    /// Pages are recorded when they are over. One that is not yet has what its connection did until the end of the run.
    fn record<O: Observer>(&mut self, lines: &mut Lines, hosts: &mut Hosts<'_, O>, slot: u32) {
        if let Some(page) = self.page(hosts, slot) {
            let record = page.record;
            add(lines, hosts, slot, record);
        }
    }

    fn requests(&self) -> Vec<u32> {
        self.users.iter().map(|user| user.begun).collect()
    }
}

/// Adds what the connection of a page counted and brought to the page's record.
fn add<O>(lines: &mut Lines, hosts: &mut Hosts<'_, O>, slot: u32, record: u32) {
    lines.count(hosts, slot, record);
    if record != NONE {
        let received = Bytes(hosts.slots[slot as usize].ends[1].received);
        let mut record = hosts.groups[lines.group as usize].records.edit(record);
        record.received += received;
    }
}
