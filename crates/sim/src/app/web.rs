//! Pages of the web: a user opens a connection and asks for a document; when it is there, for its objects over several
//! connections, one after the other on each; then closes them and thinks. A flow record is a page: its completion time is the
//! page load time.

use super::record::add_difference;
use super::{NONE, whole_bytes};
use crate::observe::Observer;
use crate::spec::Web;
use crate::world::World;
use fleetfoot_core::tcp::Stats;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

/// A page that is being loaded.
pub(super) struct Page {
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

impl<O: Observer> World<'_, O> {
    /// A user wants the next page.
    pub(super) fn act_page(&mut self, index: u32, actor: u32, now: Instant, web: &Web) {
        let counts = self.window.contains(now);
        let place = &mut self.groups[index as usize].actors[actor as usize];
        let (pair, Some(dialogue)) = (place.pair, &mut place.dialogue) else {
            return;
        };
        dialogue.begun += 1;
        let document = dialogue
            .request
            .as_mut()
            .map_or(1, |size| whole_bytes(size.sample()));
        let mut waiting: Vec<u64> = (0..web.objects)
            .map(|_| whole_bytes(dialogue.size.sample()))
            .collect();
        let total = document + waiting.iter().sum::<u64>();
        waiting.push(document); // what is asked for first
        let record = if counts {
            self.open += 1;
            self.new_record(index, pair, now, Bytes(total))
        } else {
            NONE
        };
        let page = Page {
            record,
            document: true,
            missing: waiting.len() as u32,
            waiting,
            lines: Vec::new(),
        };
        let pages = &mut self.groups[index as usize].pages;
        if pages.len() <= actor as usize {
            pages.resize_with(actor as usize + 1, || None);
        }
        pages[actor as usize] = Some(Box::new(page));
        self.open_line(now, index, actor, web);
    }

    fn page(&mut self, index: u32, actor: u32) -> Option<&mut Page> {
        self.groups[index as usize]
            .pages
            .get_mut(actor as usize)?
            .as_deref_mut()
    }

    /// Another connection for the page, and the next request on it.
    fn open_line(&mut self, now: Instant, index: u32, actor: u32, web: &Web) {
        let pair = self.groups[index as usize].actors[actor as usize].pair;
        let slot = self.open_pair(now, index, actor, pair, Some(1));
        let Some(page) = self.page(index, actor) else {
            return;
        };
        page.lines.push(Line {
            slot,
            written: [0; 2],
            asked: 0,
        });
        let line = page.lines.len() - 1;
        self.ask(now, index, actor, line, web);
    }

    /// The next request on a connection, if there is anything left to ask for.
    fn ask(&mut self, now: Instant, index: u32, actor: u32, line: usize, web: &Web) {
        let Some(page) = self.page(index, actor) else {
            return;
        };
        let Some(bytes) = page.waiting.pop() else { return };
        let line = &mut page.lines[line];
        line.asked = bytes;
        line.written[1] += web.request.get().max(1);
        let (slot, end) = (line.slot, line.written[1]);
        self.wake(slot, 1);
        self.write(slot, 1, web.request.get().max(1));
        self.slots[slot as usize].ends[0].goal = end;
        self.pump(now, slot, 1);
    }

    /// A request has reached the server, or an answer the browser.
    pub(super) fn on_web_message(&mut self, now: Instant, slot: u32, side: usize, web: &Web) {
        let place = &mut self.slots[slot as usize];
        place.ends[side].goal = u64::MAX;
        let (index, actor) = (place.group, place.actor);
        let Some(page) = self.page(index, actor) else {
            return;
        };
        let Some(number) = page.lines.iter().position(|line| line.slot == slot) else {
            return; // of a page that is over
        };
        let line = &mut page.lines[number];
        if side == 0 {
            let bytes = line.asked;
            line.written[0] += bytes;
            let end = line.written[0];
            self.slots[slot as usize].ends[1].goal = end;
            self.write(slot, 0, bytes);
            self.stream_ends(now, slot, end);
            return;
        }
        line.asked = 0;
        page.missing -= 1;
        let first = std::mem::take(&mut page.document);
        let more = web.connections.min(page.waiting.len() as u32);
        if page.missing == 0 {
            self.page_over(now, index, actor, web);
            return;
        }
        self.ask(now, index, actor, number, web);
        if first {
            for _ in 1..more {
                self.open_line(now, index, actor, web);
            }
        }
    }

    /// Everything is there: the connections close, the user thinks.
    fn page_over(&mut self, now: Instant, index: u32, actor: u32, _web: &Web) {
        let Some(page) = self.groups[index as usize]
            .pages
            .get_mut(actor as usize)
            .and_then(Option::take)
        else {
            return;
        };
        for line in &page.lines {
            self.wake(line.slot, 0);
            self.wake(line.slot, 1);
            self.slots[line.slot as usize].ends[1].closing = true;
            if page.record == NONE {
                continue;
            }
            let (sent, taken) = (self.sent(line.slot), self.taken(line.slot));
            let place = &mut self.slots[line.slot as usize];
            let record = &mut self.groups[index as usize].records[page.record as usize];
            if let Some(sender) = &place.ends[0].connection
                && let Some(sent) = &sent
            {
                add_difference(record, sent, &Stats::default());
                let rtt = sender.info(now).min_rtt;
                record.min_rtt = record.min_rtt.into_iter().chain(rtt).min();
            }
            if let Some(taken) = &taken {
                record.redundant_bytes += Bytes(taken.redundant_bytes);
            }
        }
        if page.record != NONE {
            self.open -= 1;
            let record = &mut self.groups[index as usize].records[page.record as usize];
            record.completed = Some(now);
            record.received = record.bytes;
        }
        let place = &mut self.groups[index as usize].actors[actor as usize];
        if let Some(dialogue) = &mut place.dialogue {
            let think = Duration::from_secs_f64(dialogue.gap.sample()).max(Duration::from_nanos(1));
            self.act_at(index, actor, now.saturating_add(think));
        }
        for line in &page.lines {
            self.pump(now, line.slot, 1);
        }
    }

    /// A connection is over. If something that was asked for on it did not come, another connection asks again.
    pub(super) fn on_web_end(&mut self, now: Instant, slot: u32, web: &Web) {
        let place = &self.slots[slot as usize];
        let (index, actor) = (place.group, place.actor);
        let Some(page) = self.page(index, actor) else {
            return;
        };
        let Some(number) = page.lines.iter().position(|line| line.slot == slot) else {
            return;
        };
        let line = page.lines.swap_remove(number);
        if line.asked > 0 {
            page.waiting.push(line.asked);
            self.open_line(now, index, actor, web);
        }
    }
}
