//! Pages of the web: a user opens a connection and asks for a document; when it is there, for its objects over several
//! connections, one after the other on each ([`Web`]), or all at once over the first ([`Multiplexed`]); then closes them and thinks.
//! A flow record is a page: its completion time is the page load time, with the handshakes of its connections.
//!
//! A server may need time for each answer; its host acknowledges the request meanwhile.

mod multiplexed;

use super::Application;
use super::compact::Draw;
use super::group::{Member, whole_bytes};
use super::tls::Session;
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::spec;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

pub(crate) use multiplexed::Multiplexed;

/// The users of a group.
pub(crate) struct Web<'a> {
    group: u32,
    web: &'a spec::Web,
    users: Vec<User<Page>>,
}

/// Someone who loads pages of type `P`.
struct User<P> {
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
    page: Option<Box<P>>,
}

/// Something of a page: drawn when the page begins, so that it is the same whatever is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) bytes: u64,
    /// What the server needs before it answers.
    pub(super) server: Duration,
}

impl Wanted {
    pub(super) fn draw(bytes: &mut Draw, server: &mut Draw) -> Wanted {
        Wanted {
            bytes: whole_bytes(bytes.sample()),
            server: Duration::from_secs_f64(server.sample()),
        }
    }
}

/// A page that is being loaded.
struct Page {
    record: u32,
    /// The document has not arrived.
    document: bool,
    /// Objects not asked for yet, last first.
    waiting: Vec<Wanted>,
    /// Objects, and the document, that have not arrived.
    missing: u32,
    lines: Vec<Line>,
    /// When the server answers on which connection.
    answers: Vec<(Instant, u32)>,
}

/// A connection of a page.
struct Line {
    slot: u32,
    session: Session,
    /// What was asked for and has not arrived.
    asked: Option<Wanted>,
}

impl<P> User<P> {
    /// The users of a group, each of whom thinks before the first page.
    fn all<O: Observer>(hosts: &mut Hosts<'_, O>, group: u32, web: &spec::Web) -> Vec<User<P>> {
        let mut users = Vec::new();
        for Member { number, pair, start } in hosts.members(group) {
            let draw =
                |distribution, purpose| Draw::new(distribution, || hosts.stream_of(group, number, purpose));
            let mut think = draw(&web.think, "gap");
            let at = start.saturating_add(Duration::from_secs_f64(think.sample()));
            users.push(User {
                pair,
                begun: 0,
                // Requests are constant: the stream of their sizes is that of documents.
                document: draw(&web.document, "request"),
                object: draw(&web.object, "size"),
                think,
                server: draw(&web.server_time, "server"),
                next: at,
                page: None,
            });
            hosts.act_at(group, number, at);
        }
        users
    }

    /// Whether the next page is wanted at `now`.
    fn wants_page(&mut self, now: Instant) -> bool {
        let wants = self.next <= now;
        if wants {
            self.next = Instant::FAR_FUTURE;
        }
        wants
    }

    /// Everything on the next page: its objects, the last first, and then the document, which is asked for first; and the bytes of all.
    fn next_page(&mut self, objects: u32) -> (Vec<Wanted>, Bytes) {
        self.begun += 1;
        let document = Wanted::draw(&mut self.document, &mut self.server);
        let objects = (0..objects).map(|_| Wanted::draw(&mut self.object, &mut self.server));
        let mut waiting: Vec<Wanted> = objects.collect();
        waiting.push(document);
        let total = waiting.iter().map(|wanted| wanted.bytes).sum();
        (waiting, Bytes(total))
    }

    /// All of the page `record` is there: its connections close, the user, `actor` of `group`, thinks.
    fn page_over<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        [group, actor, record]: [u32; 3],
        slots: impl Iterator<Item = u32> + Clone,
    ) {
        for slot in slots.clone() {
            hosts.wake(slot, 0);
            hosts.wake(slot, 1);
            hosts.slots[slot as usize].ends[1].closing = true;
            hosts.add_connection(slot, record);
        }
        if record != NONE {
            hosts.open -= 1;
            let mut record = hosts.groups[group as usize].records.edit(record);
            record.completed = Some(now);
            record.received = record.bytes;
        }
        let think = Duration::from_secs_f64(self.think.sample()).max(Duration::from_nanos(1));
        let next = now.saturating_add(think);
        if next < hosts.stop_of(group) {
            self.next = next;
            hosts.act_at(group, actor, next);
        }
        for slot in slots {
            hosts.push(now, slot, 1);
        }
    }
}

/// The run is over: what a connection of a page that is not did is added to it.
fn leave<O: Observer>(hosts: &mut Hosts<'_, O>, slot: u32, record: u32) {
    hosts.add_connection(slot, record);
    for end in &mut hosts.slots[slot as usize].ends {
        end.connection = None; // many may have been packed
    }
}

impl<'a> Web<'a> {
    pub(super) fn new<O: Observer>(hosts: &mut Hosts<'a, O>, group: u32, web: &'a spec::Web) -> Web<'a> {
        let users = User::all(hosts, group, web);
        Web { group, web, users }
    }

    fn page(&mut self, actor: u32) -> Option<&mut Page> {
        self.users[actor as usize].page.as_deref_mut()
    }

    /// Another connection for the page, and the next request on it.
    fn open_line<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32) {
        let pair = self.users[actor as usize].pair;
        let slot = hosts.open_pair(now, self.group, actor, pair, Some(1));
        let session = Session::begin(hosts, self.group, slot);
        let Some(page) = self.page(actor) else { return };
        page.lines.push(Line {
            slot,
            session,
            asked: None,
        });
        let line = page.lines.len() - 1;
        self.ask(hosts, now, actor, line);
    }

    /// The next request on a connection, if there is anything left to ask for.
    fn ask<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32, line: usize) {
        let request = self.web.request.get().max(1);
        let Some(page) = self.page(actor) else { return };
        let Some(wanted) = page.waiting.pop() else { return };
        let line = &mut page.lines[line];
        line.asked = Some(wanted);
        let slot = line.slot;
        hosts.wake(slot, 1);
        let end = line.session.request(hosts, slot, request);
        line.session.expect(hosts, slot, 0, end);
        hosts.push(now, slot, 1);
    }

    /// The server answers on a connection.
    fn answer<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32, slot: u32) {
        let Some(page) = self.page(actor) else { return };
        let line = page.lines.iter_mut().find(|line| line.slot == slot);
        let Some((line, wanted)) = line.and_then(|line| line.asked.map(|wanted| (line, wanted))) else {
            return;
        };
        let end = line.session.answer(hosts, slot, wanted.bytes);
        line.session.expect(hosts, slot, 1, end);
        hosts.stream_ends(now, slot, end);
    }

    /// The answers whose time has come.
    fn serve<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32) {
        let due = |answer: &(Instant, u32)| answer.0 <= now;
        while let Some(page) = self.page(actor)
            && let Some(at) = page.answers.iter().position(due)
        {
            let (_, slot) = page.answers.remove(at);
            hosts.wake(slot, 0);
            self.answer(hosts, now, actor, slot);
            hosts.push(now, slot, 0);
        }
    }

    /// Everything is there: the connections close, the user thinks.
    fn page_over<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32) {
        let user = &mut self.users[actor as usize];
        let Some(page) = user.page.take() else { return };
        let slots = page.lines.iter().map(|line| line.slot);
        user.page_over(hosts, now, [self.group, actor, page.record], slots);
    }
}

impl Application for Web<'_> {
    /// A user wants the next page, or the server answers.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        self.serve(hosts, now, actor);
        let user = &mut self.users[actor as usize];
        if !user.wants_page(now) {
            return;
        }
        if hosts.has_asked_enough(self.group, actor, user.begun) {
            return;
        }
        let (waiting, total) = user.next_page(self.web.objects);
        user.page = Some(Box::new(Page {
            record: hosts.open_record(self.group, user.pair, now, total),
            document: true,
            missing: waiting.len() as u32,
            waiting,
            lines: Vec::new(),
            answers: Vec::new(),
        }));
        self.open_line(hosts, now, actor);
    }

    /// A request has reached the server, or an answer the browser.
    fn on_message<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        let place = &mut hosts.slots[slot as usize];
        place.ends[side].goal = u64::MAX;
        let actor = place.actor;
        let (group, most) = (self.group, self.web.connections);
        let Some(page) = self.page(actor) else { return };
        let Some(number) = page.lines.iter().position(|line| line.slot == slot) else {
            return; // of a page that is over
        };
        let line = &mut page.lines[number];
        if !line.session.hear(hosts, slot, side) {
            return;
        }
        if side == 0 {
            let needs = line.asked.map_or(Duration::ZERO, |wanted| wanted.server);
            if needs.is_zero() {
                self.answer(hosts, now, actor, slot);
            } else {
                let at = now.saturating_add(needs);
                page.answers.push((at, slot));
                hosts.remind(group, actor, at);
            }
            return;
        }
        line.asked = None;
        page.missing -= 1;
        let first = std::mem::take(&mut page.document);
        let more = most.min(page.waiting.len() as u32);
        if page.missing == 0 {
            self.page_over(hosts, now, actor);
            return;
        }
        self.ask(hosts, now, actor, number);
        if first {
            for _ in 1..more {
                self.open_line(hosts, now, actor);
            }
        }
    }

    /// A connection is over. If something that was asked for on it did not come, another connection asks again.
    fn on_end<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let actor = hosts.slots[slot as usize].actor;
        let Some(page) = self.page(actor) else { return };
        let Some(number) = page.lines.iter().position(|line| line.slot == slot) else {
            return;
        };
        let line = page.lines.swap_remove(number);
        page.answers.retain(|answer| answer.1 != slot);
        hosts.add_connection(slot, page.record);
        if let Some(wanted) = line.asked {
            page.waiting.push(wanted);
            self.open_line(hosts, now, actor);
        }
    }

    /// The connections of pages that are not over belong to them.
    fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        for page in self.users.iter_mut().filter_map(|user| user.page.take()) {
            for line in &page.lines {
                leave(hosts, line.slot, page.record);
            }
        }
        self.users.iter().map(|user| user.begun).collect()
    }
}
