//! Pages over HTTP/2: everything of a page goes over one connection, first the document, then all objects at once, each a stream.
//!
//! The server divides what it has to send among the streams that it knows, in turns of one frame: no request here says that it is more
//! urgent than another, and turns are what RFC 9218 (10) advises for answers of the same urgency that a browser can use piece by piece,
//! as pictures. It keeps in its own hands what the connection has not sent (as with TCP_NOTSENT_LOWAT), so a request that comes
//! later takes part in the next turn. Bytes reach the browser in the order of the connection: a lost packet keeps everything
//! behind it waiting, whichever stream it belongs to.
//!
//! **Source.** RFC 9113: frames of 9 bytes and at most 16,384 of data (4.1, SETTINGS_MAX_FRAME_SIZE), 100 streams at a time (6.5.2), as
//! over QUIC here. A frame is written by itself, so with TLS a full one is two records.
//! **Deviations.** No preface, no SETTINGS and their acknowledgments, no PING; flow control as large as it needs to be. Headers have the
//! bytes that the scenario gives to requests, and those of answers are in the answers, as without streams.

use super::{Application, User, Wanted, leave};
use crate::app::tls::Session;
use crate::endpoint::{Hosts, NONE};
use crate::observe::Observer;
use crate::spec;
use fleetfoot_core::time::Instant;
use std::collections::VecDeque;

/// The users of a group.
pub(crate) struct Multiplexed<'a> {
    group: u32,
    web: &'a spec::Web,
    users: Vec<User<Page>>,
}

/// A page that is being loaded.
struct Page {
    record: u32,
    slot: u32,
    session: Session,
    /// The document has not arrived.
    document: bool,
    /// What was not asked for on this connection, what is next last; with when it was asked for on an earlier one.
    waiting: Vec<(Wanted, Option<Instant>)>,
    /// Streams of the connection, in the order of their requests.
    streams: Vec<Stream>,
    /// Streams whose request the server has.
    heard: usize,
    /// Streams whose answer the browser has.
    arrived: usize,
    /// What the server wrote and means to write, in order; what has arrived is not in it any more.
    frames: VecDeque<Frame>,
    /// Streams of which the server has more to put into frames.
    turns: VecDeque<u32>,
    /// When the server has the answer of which stream, where that takes time.
    answers: Vec<(Instant, u32)>,
}

/// Something that was asked for.
#[derive(Clone, Copy, Debug)]
struct Stream {
    wanted: Wanted,
    /// Where its request ends in the stream of the browser.
    request_end: u64,
    /// When it was asked for first.
    asked_at: Instant,
    /// What is in no frame yet.
    left: u64,
    arrived: bool,
}

/// A part of an answer.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Where it begins and ends in the stream of the server.
    begin: u64,
    end: u64,
    stream: u32,
    data: u64,
    /// It ends its stream.
    last: bool,
}

impl<'a> Multiplexed<'a> {
    pub(in crate::app) fn new<O: Observer>(
        hosts: &mut Hosts<'a, O>,
        group: u32,
        web: &'a spec::Web,
    ) -> Multiplexed<'a> {
        let users = User::all(hosts, group, web);
        Multiplexed { group, web, users }
    }

    /// The page that is loaded over a connection.
    fn page<O>(&mut self, hosts: &Hosts<'_, O>, slot: u32) -> Option<&mut Page> {
        let actor = hosts.slots[slot as usize].actor;
        let page = self.users[actor as usize].page.as_deref_mut();
        page.filter(|page| page.slot == slot)
    }

    /// Opens a connection for the page of a user and asks for what is missing.
    fn connect<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, actor: u32) {
        let user = &mut self.users[actor as usize];
        let slot = hosts.open_pair(now, self.group, actor, user.pair, Some(1));
        let session = Session::begin(hosts, self.group, slot);
        let Some(page) = &mut user.page else { return };
        (page.slot, page.session) = (slot, session);
        page.ask(hosts, now, self.web);
    }
}

impl Page {
    /// Asks for the document, or for as much of the rest as may be under way.
    fn ask<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, web: &spec::Web) {
        let request = FRAME_HEADER + web.request.get().max(1);
        let (slot, first) = (self.slot, self.streams.len());
        hosts.wake(slot, 1);
        let most = if self.document { 1 } else { MOST_STREAMS };
        while self.streams.len() - self.arrived < most
            && let Some((wanted, asked_before)) = self.waiting.pop()
        {
            let request_end = self.session.request(hosts, slot, request);
            self.streams.push(Stream {
                wanted,
                request_end,
                asked_at: asked_before.unwrap_or(now),
                left: 0,
                arrived: false,
            });
        }
        if first == self.streams.len() {
            return;
        }
        if self.heard == first {
            self.expect_request(hosts);
        }
        hosts.push(now, slot, 1);
    }

    /// The server waits for the next request.
    fn expect_request<O>(&mut self, hosts: &mut Hosts<'_, O>) {
        let next = self.streams.get(self.heard);
        let goal = next.map_or(u64::MAX, |next| next.request_end);
        self.session.expect(hosts, self.slot, 0, goal);
    }

    /// The browser waits for the next end of an answer.
    fn expect_answer<O>(&mut self, hosts: &mut Hosts<'_, O>) {
        let next = self.frames.iter().find(|frame| frame.last);
        let goal = next.map_or(u64::MAX, |next| next.end);
        self.session.expect(hosts, self.slot, 1, goal);
    }

    /// The server has requests: it answers those that take it no time at once, and is reminded of the others, which `remind` does.
    fn hear_requests<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        mut remind: impl FnMut(&mut Hosts<'_, O>, Instant),
    ) {
        let received = hosts.slots[self.slot as usize].ends[0].received;
        let mut ready = Vec::new();
        while let Some(stream) = self.streams.get(self.heard)
            && stream.request_end <= received
        {
            let number = self.heard as u32;
            self.heard += 1;
            if stream.wanted.server.is_zero() {
                ready.push(number);
            } else {
                let at = now.saturating_add(stream.wanted.server);
                self.answers.push((at, number));
                remind(hosts, at);
            }
        }
        if !ready.is_empty() {
            self.serve(hosts, now, &ready);
        }
        self.expect_request(hosts);
    }

    /// The streams whose answers the server has by now.
    fn due(&mut self, now: Instant) -> Vec<u32> {
        let due = self.answers.extract_if(.., |answer| answer.0 <= now);
        due.map(|(_, number)| number).collect()
    }

    /// The server has the answers of the streams `ready` and shares the connection among all that it has.
    fn serve<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, ready: &[u32]) {
        let slot = self.slot;
        let server = &hosts.slots[slot as usize].ends[0];
        let unsent = server
            .connection
            .as_ref()
            .map_or(0, |connection| connection.info(now).unsent.get());
        let sent = self.session.written(0).saturating_sub(server.to_write + unsent);
        let mut at = self.take_back(sent).unwrap_or(u64::MAX);
        for &number in ready {
            let stream = &mut self.streams[number as usize];
            stream.left = stream.wanted.bytes;
            self.turns.push_back(number);
            // What the new frames need is written here; where each of them stands is settled below.
            let mut left = stream.left;
            while left > 0 {
                let data = left.min(LARGEST_FRAME);
                let end = self.session.answer(hosts, slot, FRAME_HEADER + data);
                at = at.min(end - self.session.on_wire(FRAME_HEADER + data));
                left -= data;
            }
        }
        while let Some(number) = self.turns.pop_front() {
            let stream = &mut self.streams[number as usize];
            let data = stream.left.min(LARGEST_FRAME);
            stream.left -= data;
            let last = stream.left == 0;
            let end = at + self.session.on_wire(FRAME_HEADER + data);
            self.frames.push_back(Frame {
                begin: at,
                end,
                stream: number,
                data,
                last,
            });
            at = end;
            if !last {
                self.turns.push_back(number);
            }
        }
        hosts.stream_ends(now, slot, self.session.written(0));
        self.expect_answer(hosts);
    }

    /// Takes the frames back of which nothing was sent; their streams have the next turns in the order of these frames. Where the first
    /// of them began.
    fn take_back(&mut self, sent: u64) -> Option<u64> {
        let kept = self.frames.partition_point(|frame| frame.begin < sent);
        let begin = self.frames.get(kept).map(|frame| frame.begin);
        for frame in self.frames.drain(kept..) {
            let stream = &mut self.streams[frame.stream as usize];
            if stream.left == 0 {
                self.turns.push_back(frame.stream);
            }
            stream.left += frame.data;
        }
        begin
    }
}

impl Application for Multiplexed<'_> {
    /// A user wants the next page, or the server has answers.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant) {
        let user = &mut self.users[actor as usize];
        if let Some(page) = &mut user.page {
            let ready = page.due(now);
            if !ready.is_empty() {
                let slot = page.slot;
                hosts.wake(slot, 0);
                page.serve(hosts, now, &ready);
                hosts.push(now, slot, 0);
            }
        }
        if !user.wants_page(now) {
            return;
        }
        if hosts.has_asked_enough(self.group, actor, user.begun) {
            return;
        }
        let (waiting, total) = user.next_page(self.web.objects);
        user.page = Some(Box::new(Page {
            record: hosts.open_record(self.group, user.pair, now, total),
            slot: NONE,
            session: Session::PLAIN,
            document: true,
            streams: Vec::with_capacity(waiting.len()),
            waiting: waiting.into_iter().map(|wanted| (wanted, None)).collect(),
            heard: 0,
            arrived: 0,
            frames: VecDeque::new(),
            turns: VecDeque::new(),
            answers: Vec::new(),
        }));
        self.connect(hosts, now, actor);
    }

    /// Requests have reached the server, or answers the browser.
    fn on_message<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        let place = &mut hosts.slots[slot as usize];
        place.ends[side].goal = u64::MAX;
        let (actor, received) = (place.actor, place.ends[side].received);
        let (group, web) = (self.group, self.web);
        let Some(page) = self.page(hosts, slot) else {
            return; // of a page that is over
        };
        if !page.session.hear(hosts, slot, side) {
            return;
        }
        if side == 0 {
            page.hear_requests(hosts, now, |hosts, at| hosts.remind(group, actor, at));
            return;
        }
        while let Some(frame) = page.frames.pop_front_if(|frame| frame.end <= received) {
            if frame.last {
                let stream = &mut page.streams[frame.stream as usize];
                stream.arrived = true;
                page.arrived += 1;
                page.document = false;
                if page.record != NONE {
                    let latency = now.since(stream.asked_at).as_secs_f64();
                    hosts.groups[group as usize].delivery_latency.push(latency);
                }
            }
        }
        if page.arrived == page.streams.len() && page.waiting.is_empty() {
            let user = &mut self.users[actor as usize];
            let Some(page) = user.page.take() else { return };
            user.page_over(hosts, now, [group, actor, page.record], std::iter::once(slot));
            return;
        }
        page.expect_answer(hosts);
        page.ask(hosts, now, web);
    }

    /// The connection is over. What did not come is asked for again over another.
    fn on_end<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let actor = hosts.slots[slot as usize].actor;
        let Some(page) = self.page(hosts, slot) else {
            return;
        };
        hosts.add_connection(slot, page.record);
        let missing = page.streams.drain(..).rev().filter(|stream| !stream.arrived);
        page.waiting
            .extend(missing.map(|stream| (stream.wanted, Some(stream.asked_at))));
        page.answers.clear();
        (page.heard, page.arrived) = (0, 0);
        page.frames.clear();
        self.connect(hosts, now, actor);
    }

    /// The connections of pages that are not over belong to them. What was asked for and has not arrived does not any more.
    fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        for page in self.users.iter_mut().filter_map(|user| user.page.take()) {
            leave(hosts, page.slot, page.record);
            if page.record != NONE {
                let missing = page.streams.iter().filter(|stream| !stream.arrived);
                let again = page.waiting.iter().filter_map(|(_, asked_before)| *asked_before);
                let cut_off = &mut hosts.groups[self.group as usize].cut_off;
                cut_off.writes.extend(missing.map(|stream| stream.asked_at));
                cut_off.writes.extend(again);
            }
        }
        self.users.iter().map(|user| user.begun).collect()
    }
}

/// Length, type, flags and stream of a frame.
const FRAME_HEADER: u64 = 9;

/// Data of a frame at most.
const LARGEST_FRAME: u64 = 16_384;

/// Streams under way at most.
const MOST_STREAMS: usize = 100;
