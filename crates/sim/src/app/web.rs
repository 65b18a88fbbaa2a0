//! Pages of the web: a user opens a connection and asks for a document; when it is there, for its objects over several
//! connections, one after the other on each; then closes them and thinks. A flow record is a page: its completion time is the
//! page load time.

use super::Application;
use super::compact::Draw;
use super::group::{Member, whole_bytes};
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::spec;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// The users of a group.
pub(crate) struct Web<'a> {
    group: u32,
    web: &'a spec::Web,
    users: Vec<User>,
}

struct User {
    pair: u32,
    /// Pages begun.
    begun: u32,
    document: Draw,
    object: Draw,
    think: Draw,
    /// What is being loaded.
    page: Option<Box<Page>>,
}

/// A page that is being loaded.
struct Page {
    record: u32,
    /// The document has not arrived.
    document: bool,
    /// Sizes of objects not asked for yet, last first.
    waiting: Vec<u64>,
    /// Objects, and the document, that have not arrived.
    missing: u32,
    lines: Vec<Line>,
}

/// A connection of a page.
#[derive(Clone, Copy)]
struct Line {
    slot: u32,
    /// Stream offsets written so far by the server and the browser.
    written: [u64; 2],
    /// Bytes of what was asked for; 0: nothing.
    asked: u64,
}

impl<'a> Web<'a> {
    pub(super) fn new<O: Observer>(hosts: &mut Hosts<'a, O>, group: u32, web: &'a spec::Web) -> Web<'a> {
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
                page: None,
            });
            hosts.act_at(group, number, at);
        }
        Web { group, web, users }
    }

    fn page(&mut self, actor: u32) -> Option<&mut Page> {
        self.users[actor as usize].page.as_deref_mut()
    }

    /// Another connection for the page, and the next request on it.
    fn open_line<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32) {
        let pair = self.users[actor as usize].pair;
        let slot = hosts.open_pair(now, self.group, actor, pair, Some(1));
        let Some(page) = self.page(actor) else { return };
        page.lines.push(Line {
            slot,
            written: [0; 2],
            asked: 0,
        });
        let line = page.lines.len() - 1;
        self.ask(hosts, now, actor, line);
    }

    /// The next request on a connection, if there is anything left to ask for.
    fn ask<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32, line: usize) {
        let request = self.web.request.get().max(1);
        let Some(page) = self.page(actor) else { return };
        let Some(bytes) = page.waiting.pop() else { return };
        let line = &mut page.lines[line];
        line.asked = bytes;
        line.written[1] += request;
        let (slot, end) = (line.slot, line.written[1]);
        hosts.wake(slot, 1);
        hosts.write(slot, 1, request);
        hosts.slots[slot as usize].ends[0].goal = end;
        hosts.push(now, slot, 1);
    }

    /// Everything is there: the connections close, the user thinks.
    fn page_over<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32) {
        let user = &mut self.users[actor as usize];
        let Some(page) = user.page.take() else { return };
        for line in &page.lines {
            hosts.wake(line.slot, 0);
            hosts.wake(line.slot, 1);
            hosts.slots[line.slot as usize].ends[1].closing = true;
            hosts.add_connection(line.slot, page.record);
        }
        if page.record != NONE {
            hosts.open -= 1;
            let mut record = hosts.groups[self.group as usize].records.edit(page.record);
            record.completed = Some(now);
            record.received = record.bytes;
        }
        let think = Duration::from_secs_f64(user.think.sample()).max(Duration::from_nanos(1));
        hosts.act_at(self.group, actor, now.saturating_add(think));
        for line in &page.lines {
            hosts.push(now, line.slot, 1);
        }
    }
}

impl Application for Web<'_> {
    /// A user wants the next page.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let user = &mut self.users[actor as usize];
        if hosts.has_asked_enough(self.group, actor, user.begun) {
            return;
        }
        user.begun += 1;
        let document = whole_bytes(user.document.sample());
        let mut waiting: Vec<u64> = (0..self.web.objects)
            .map(|_| whole_bytes(user.object.sample()))
            .collect();
        let total = document + waiting.iter().sum::<u64>();
        waiting.push(document); // what is asked for first
        user.page = Some(Box::new(Page {
            record: hosts.open_record(self.group, user.pair, now, Bytes(total)),
            document: true,
            missing: waiting.len() as u32,
            waiting,
            lines: Vec::new(),
        }));
        self.open_line(hosts, now, actor);
    }

    /// A request has reached the server, or an answer the browser.
    fn on_message<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        let place = &mut hosts.slots[slot as usize];
        place.ends[side].goal = u64::MAX;
        let actor = place.actor;
        let most = self.web.connections;
        let Some(page) = self.page(actor) else { return };
        let Some(number) = page.lines.iter().position(|line| line.slot == slot) else {
            return; // of a page that is over
        };
        let line = &mut page.lines[number];
        if side == 0 {
            let bytes = line.asked;
            line.written[0] += bytes;
            let end = line.written[0];
            hosts.slots[slot as usize].ends[1].goal = end;
            hosts.write(slot, 0, bytes);
            hosts.stream_ends(now, slot, end);
            return;
        }
        line.asked = 0;
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
        hosts.add_connection(slot, page.record);
        if line.asked > 0 {
            page.waiting.push(line.asked);
            self.open_line(hosts, now, actor);
        }
    }

    /// The connections of pages that are not over belong to them.
    fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        for page in self.users.iter_mut().filter_map(|user| user.page.take()) {
            for line in &page.lines {
                hosts.add_connection(line.slot, page.record);
                for end in &mut hosts.slots[line.slot as usize].ends {
                    end.connection = None; // many may have been packed
                }
            }
        }
        self.users.iter().map(|user| user.begun).collect()
    }
}
