//! A capture as a whole: which packet belongs to which connection, and what all of them together say.

use super::clock::Rate;
use super::connection::Connection;
use super::link_layer::{self, Parsed, RST, SYN, Tcp};
use super::rate::{Basis, Meter, Place};
use super::reader::{self, Frame, Stop};
use super::summary::{Quantiles, Segments, Summary};
use super::table::{self, Entry, Key, Table};
use crate::workload::vectors::Vector;
use fleetfoot_sim::output::Histogram;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;

mod counts;
mod direction;
mod long;
mod measures;
mod nothing;
mod options;
mod samples;
mod standing_queue;
mod times;
mod waits;

pub use options::{Options, Over, Progress};

pub(super) use counts::counted;
pub(super) use waits::QUIET;

use counts::Counts;
use direction::{Directions, Passage, in_order, pair};
use long::Candidates;
use measures::Way;
use samples::Samples;
use times::Times;

/// Reads a capture. `take` gets every connection with data when it is over; `progress` is asked now and then whether to go on.
///
/// # Errors
/// Nothing usable was read: why, in words.
pub fn read(
    source: impl Read + Send,
    options: &Options,
    take: impl FnMut(Over),
    mut progress: impl FnMut(Progress) -> bool,
) -> Result<Summary, String> {
    let mut capture = Capture::new(*options, take);
    let stop = reader::read(source, |frame, bytes| {
        capture.on_frame(&frame, bytes);
        !capture.frames.is_multiple_of(PROGRESS_FRAMES)
            || progress(Progress {
                bytes,
                packets: capture.frames,
                connections: capture.written,
            })
    })?;
    capture.finish(&stop)
}

struct Capture<F> {
    options: Options,
    take: F,
    table: Table<Connection>,
    hosts: FxHashMap<IpAddr, u32>,
    addresses: Vec<IpAddr>,
    /// Hosts that opened connections: from the first side, and from the other.
    openers: [FxHashSet<u32>; 2],
    directions: Directions,
    /// Connections with data opened from the other side.
    back: u64,
    /// Connections with data between hosts of one side, and their bytes.
    sideless: (u64, u64),
    frames: u64,
    written: u64,
    concurrent: u64,
    times: Times,
    last_ns: u64,
    links: BTreeMap<&'static str, u64>,
    unknown_links: BTreeMap<i32, u64>,
    counts: Counts,
    samples: Samples,
    candidates: Candidates,
    /// Bytes, segments and retransmitted segments from the hosts that opened, and to them.
    segments: [(u64, u64, u64); 2],
    /// Packets that were looked for a second time, and found.
    sightings: [u64; 2],
    meters: [Meter; 2],
    /// Bytes of connections with this maximum segment size.
    mss: BTreeMap<u16, u64>,
    /// Small segments sent behind small ones that were not acknowledged.
    unheld: u64,
    /// Sums of the halves of round-trip times.
    halves: [f64; 2],
    /// Their smallest between two hosts, that with the smaller number first.
    least: FxHashMap<[u32; 2], [u64; 2]>,
    /// What the timestamps of hosts count.
    clocks: FxHashMap<u32, Rate>,
}

impl<F: FnMut(Over)> Capture<F> {
    fn new(options: Options, take: F) -> Capture<F> {
        Capture {
            options,
            take,
            table: Table::new(),
            hosts: FxHashMap::default(),
            addresses: Vec::new(),
            openers: Default::default(),
            directions: Directions::default(),
            back: 0,
            sideless: (0, 0),
            frames: 0,
            written: 0,
            concurrent: 0,
            times: Times::default(),
            last_ns: 0,
            links: BTreeMap::new(),
            unknown_links: BTreeMap::new(),
            counts: Counts::default(),
            samples: Samples::default(),
            candidates: Candidates::default(),
            segments: [(0, 0, 0); 2],
            sightings: [0; 2],
            meters: [Meter::default(), Meter::default()],
            mss: BTreeMap::new(),
            unheld: 0,
            halves: [0.0; 2],
            least: FxHashMap::default(),
            clocks: FxHashMap::default(),
        }
    }

    fn on_frame(&mut self, frame: &Frame<'_>, bytes: u64) {
        self.frames += 1;
        let now_ns = self
            .times
            .take(frame.time_ns, self.frames, bytes, frame.interface);
        self.last_ns = self.last_ns.max(now_ns);
        match link_layer::link_name(frame.link_type) {
            Some(name) => *self.links.entry(name).or_default() += 1,
            None => *self.unknown_links.entry(frame.link_type).or_default() += 1,
        }
        let counts = &mut self.counts;
        match link_layer::parse(frame.link_type, frame.data, frame.length) {
            Parsed::Tcp(tcp) => {
                let interface = link_layer::interface(frame.link_type, frame.data).unwrap_or(frame.interface);
                self.on_tcp(now_ns, interface, &tcp, frame);
            }
            Parsed::Fragment => counts.fragments += 1,
            Parsed::OtherProtocol(_) => counts.other(frame.length),
            Parsed::NotIp => counts.not_ip += 1,
            Parsed::Short => counts.short += 1,
            Parsed::Malformed => counts.malformed += 1,
            Parsed::UnknownLink => {}
        }
    }

    fn on_tcp(&mut self, now_ns: u64, interface: u32, tcp: &Tcp, frame: &Frame<'_>) {
        self.expire(now_ns);
        let (key, smaller_sent) = table::key(tcp.source, tcp.destination);
        let mut place = self.table.find(&key);
        if let Some(found) = place
            && let Some(entry) = self.table.entry(found)
            && entry
                .connection
                .is_reused_by(tcp, usize::from(entry.smaller_opened != smaller_sent))
        {
            self.give_up(found);
            place = None;
        }
        let passage = || Passage::of(frame.link_type, interface, frame.data);
        let place = match place {
            Some(place) => place,
            None if tcp.has(SYN) || tcp.payload > 0 && !tcp.has(RST) => {
                self.open(now_ns, key, smaller_sent, tcp, &passage())
            }
            None => {
                self.counts.stray += 1;
                return;
            }
        };
        let Some(entry) = self.table.entry(place) else {
            return;
        };
        let side = usize::from(entry.smaller_opened != smaller_sent);
        entry.connection.void_ns = self.times.void_ns();
        let seen = entry.connection.on_packet(now_ns, side, interface, tcp);
        let host = entry.connection.hosts[side];
        if let Some(rate) = entry.connection.new_rate(side)
            && host < MOST_HOSTS
        {
            // Several behind one address are not known by each other.
            let known = self.clocks.entry(host).or_insert(rate);
            *known = if *known == rate { rate } else { Rate::Other };
        }
        if let Some(back) = entry.connection.back
            && entry.connection.ends[side].packets == 1
            && !seen.duplicate
        {
            self.directions.passed((side == 1) != back, &passage());
        }
        let half = entry.connection.halves_ns()[side];
        let (pair, turned) = pair(entry.connection.hosts);
        let least = self
            .least
            .get(&pair)
            .map_or(half, |least| least[side ^ usize::from(turned)]);
        let always = half.saturating_sub(least);
        let back = entry.connection.back;
        self.table.touch(place);
        let way = Way {
            connection: place,
            side,
            back,
            always_ns: always,
        };
        self.count(now_ns, way, tcp, &seen);
    }

    /// A new connection.
    fn open(&mut self, now_ns: u64, key: Key, smaller_sent: bool, tcp: &Tcp, passage: &Passage) -> u32 {
        if self.table.len() >= self.options.most_open.max(1) {
            let oldest = self.table.oldest(true).or_else(|| self.table.oldest(false));
            if let Some((place, _)) = oldest {
                self.counts.evicted += 1;
                self.give_up(place);
            }
        }
        let sender_opened = tcp.sender_opened();
        let ends = match sender_opened {
            true => [tcp.source.0, tcp.destination.0],
            false => [tcp.destination.0, tcp.source.0],
        };
        let hosts = ends.map(|address| self.host(address));
        let quiet_ns = self.options.quiet.as_nanos();
        let mut connection = Connection::new(now_ns, hosts, quiet_ns);
        let proven = |host: &u32| {
            self.clocks
                .get(host)
                .copied()
                .filter(|rate| *rate == Rate::Milliseconds)
        };
        connection.know_clocks(hosts.map(|host| proven(&host).unwrap_or_default()));
        connection.back = self.directions.opened(hosts, passage, sender_opened);
        self.table.insert(key, sender_opened == smaller_sent, connection)
    }

    /// The number of a host, in the order in which they come; all later ones share the last.
    fn host(&mut self, address: IpAddr) -> u32 {
        let next = self.hosts.len() as u32;
        if next >= MOST_HOSTS {
            return self.hosts.get(&address).copied().unwrap_or(MOST_HOSTS);
        }
        let addresses = &mut self.addresses;
        *self.hosts.entry(address).or_insert_with(|| {
            addresses.push(address);
            next
        })
    }

    /// Connections that are over, or silent for long, are written.
    fn expire(&mut self, now_ns: u64) {
        while let Some((place, last_ns)) = self.table.oldest(true)
            && now_ns.saturating_sub(last_ns) > LINGER_NS
        {
            self.give_up(place);
        }
        while let Some((place, last_ns)) = self.table.oldest(false)
            && now_ns.saturating_sub(last_ns) > self.options.idle.as_nanos()
        {
            self.counts.idle += 1;
            self.give_up(place);
        }
    }

    fn give_up(&mut self, place: u32) {
        if let Some(mut entry) = self.table.remove(place) {
            entry.connection.conclude();
            self.conclude(&entry);
        }
    }

    /// A connection is over: it is counted, and written if anything was said.
    fn conclude(&mut self, Entry { connection, .. }: &Entry<Connection>) {
        let counts = &mut self.counts;
        let back = connection.back.unwrap_or(false);
        for (sum, more) in self.sightings.iter_mut().zip(connection.sightings()) {
            *sum += more;
        }
        for (side, end) in connection.ends.iter().enumerate() {
            let sum = &mut self.segments[side ^ usize::from(back)];
            sum.0 += end.next.min(1 << 50);
            sum.1 += end.segments;
            sum.2 += end.retransmitted;
            counts.missing += end.missing;
            if let Some(mss) = end.segment_size() {
                *self.mss.entry(mss).or_default() += end.next.min(1 << 50);
            }
        }
        if connection.units.is_empty() {
            match (connection.answered, connection.reset_by.is_some()) {
                (true, _) => counts.silent += 1,
                (false, true) => counts.refused += 1,
                (false, false) => counts.unanswered += 1,
            }
            return;
        }
        self.back += u64::from(back);
        if connection.back.is_none() {
            let said: u64 = connection.ends.iter().map(|end| end.next.min(1 << 50)).sum();
            self.sideless = (self.sideless.0 + 1, self.sideless.1 + said);
        }
        counts.take_begun_before(connection);
        counts.reset += u64::from(connection.reset_by.is_some());
        counts.cut += u64::from(connection.units.cut);
        self.unheld += connection.unheld;
        let one_way = connection.ends.iter().any(|end| end.packets == 0);
        counts.one_way += u64::from(one_way);
        let halves = connection.halves_ns();
        let base = match connection.rtt_ns() {
            None => halves,
            Some(_) => {
                let (pair, turned) = pair(connection.hosts);
                let of_pair = in_order(halves, turned);
                let least = self.least.entry(pair).or_insert(of_pair);
                *least = [0, 1].map(|side| least[side].min(of_pair[side]));
                in_order(*least, turned)
            }
        };
        // A SYN may have waited for other things than a queue, such as the address of its neighbour: no longer than data did.
        let longest = self.samples.waits.longest_before_ns(usize::from(back));
        let frame = connection.frame(base, longest);
        let timed = connection.units.timed(&frame);
        let start_ns = connection.opened_ns.unwrap_or(connection.first_ns);
        let samples = &mut self.samples;
        if let Some(rtt) = connection.handshake_ns() {
            samples.handshake.record(rtt);
        }
        match connection.rtt_ns() {
            Some(rtt) => {
                samples.rtt.record(rtt);
                // Of one direction nobody knows where on the path it was seen.
                let halves = self.halves.iter_mut().filter(|_| !one_way);
                for (sum, half) in halves.zip(in_order(frame.halves_ns, back)) {
                    *sum += half as f64 / rtt.max(1) as f64;
                }
            }
            None => counts.without_rtt += 1,
        }
        for unit in timed.units.iter().filter(|unit| unit.bytes > 0) {
            samples.units[usize::from(!unit.opener)].record(unit.bytes);
        }
        for (histogram, values) in [
            (&mut samples.answer, &timed.answer_waits_ns),
            (&mut samples.ask, &timed.ask_waits_ns),
            (&mut samples.pause, &timed.pauses_ns),
        ] {
            values.iter().for_each(|value| histogram.record(*value));
        }
        let may_be_long = self.candidates.take(self.written, back, &timed.exchanges);
        if !may_be_long {
            let exchanges = timed.exchanges.iter();
            exchanges.for_each(|exchange| samples.exchange.record(exchange.ns));
        }
        // From where the SYN left to where the last byte arrives, wherever on the path it was seen.
        let ways: u64 = [0, connection.last_listener()]
            .map(|far| frame.base_ns[far] / 2)
            .iter()
            .sum();
        let (last_ns, queued_ns) = connection.units.last_ns(&frame);
        let seen = last_ns.saturating_sub(start_ns);
        samples.connection.record(seen + ways + queued_ns + frame.late_ns);
        let loss = [0, 1].map(|side| {
            let end: &super::connection::End = &connection.ends[side];
            end.retransmitted.saturating_sub(end.needless) as f64 / end.segments.max(1) as f64
        });
        let vector = Vector {
            start_us: start_ns / 1000,
            host: u64::from(connection.hosts[0]),
            id: self.written,
            windows: connection.windows(),
            rtt_us: connection.rtt_ns().map_or(0, |rtt| (rtt / 1000).max(1)),
            loss,
            concurrent: connection.units.concurrent,
            units: timed.units,
        };
        samples.bytes.record(vector.bytes().iter().sum());
        samples.exchanges.record(vector.exchanges() as u64);
        self.openers[usize::from(back)].insert(connection.hosts[0]);
        self.concurrent += u64::from(vector.concurrent);
        self.written += 1;
        (self.take)(Over {
            vector,
            answerer: connection.hosts[1],
            back,
            may_be_long,
        });
    }

    fn finish(mut self, stop: &Stop) -> Result<Summary, String> {
        while let Some((place, _)) = self.table.oldest(true) {
            self.give_up(place);
        }
        while let Some((place, _)) = self.table.oldest(false) {
            let before = self.written;
            self.give_up(place);
            self.counts.open_after += self.written - before;
        }
        if let Some(refusal) = self.refusal(stop) {
            return Err(refusal);
        }
        let (left_out, mut notes) =
            self.counts
                .notes(self.unknown_links.values().sum(), self.samples.rtt.n() > 0, stop);
        notes.extend(self.times.notes(self.last_ns));
        notes.extend(self.directions.notes(self.sideless.0));
        let all: u64 = self.segments.iter().map(|segments| segments.0).sum();
        let crowd = self.counts.crowd(all);
        let crowded = crowd.is_some();
        notes.extend(crowd);
        let sideless_share = self.sideless.1 as f64 / all.max(1) as f64;
        let Capture {
            mut samples,
            candidates,
            meters,
            segments,
            halves,
            ..
        } = self;
        let [mut from, mut to] = meters;
        if self.times.went_back() {
            from.clock_went_back();
            to.clock_went_back();
        }
        let seconds = |histogram: &Histogram| Quantiles::of(histogram, 1e-9);
        let known = halves[0] + halves[1];
        let carried = segments.map(|segments| segments.0);
        let found = [0, 1].map(|direction| samples.waits.of(direction, carried, halves));
        notes.extend(waits::notes(&found));
        let bulk = [from.bulk(), to.bulk()];
        let back = |direction: usize| bulk[1 - direction] as f64 / segments[direction].0.max(1) as f64;
        // Shares of round-trip times to the receiver of a direction.
        let place = |receiver: usize| Place::of(halves[receiver] / known);
        let wait_s = found.map(|found| found.waits);
        let pairs = self.least.values().map(|halves| halves[0] + halves[1]);
        let pairs: Vec<u64> = pairs.collect();
        let nearest_ns = pairs.iter().min().copied();
        let standing = standing_queue::find(pairs, wait_s);
        notes.extend(standing.as_ref().map(standing_queue::note));
        let rate = [
            from.estimate(place(1), back(0), crowded),
            to.estimate(place(0), back(1), crowded),
        ];
        let busy = usize::from(segments[1].0 > segments[0].0);
        notes.extend(self.counts.begun_within(all, wait_s[busy]));
        // Where the rate is not known, what was certainly carried holds less.
        let bps = rate[busy].bps.filter(|_| rate[busy].basis != Basis::AtMost);
        let pipe = bps.unwrap_or(0.0) / 8.0 * nearest_ns.unwrap_or(0) as f64 * 1e-9;
        let long = candidates.decide(self.last_ns, pipe, &mut samples.exchange);
        notes.extend(long.note(self.written));
        let mss = self
            .mss
            .iter()
            .max_by_key(|(_, bytes)| **bytes)
            .map(|(mss, _)| *mss);
        Ok(Summary {
            source: "capture",
            packets: stop.frames,
            bytes: stop.bytes,
            span_s: self.last_ns as f64 / 1e9,
            links: self
                .links
                .iter()
                .map(|(name, count)| counted(*count, *name))
                .collect(),
            damage: stop.damage.clone(),
            interrupted: stop.interrupted,
            connections: self.written,
            concurrent: self.concurrent,
            openers: self.openers[0].len() as u64,
            back: self.back,
            back_openers: self.openers[1].len() as u64,
            left_out,
            notes,
            handshake_rtt_s: seconds(&samples.handshake),
            rtt_s: seconds(&samples.rtt),
            half_rtt_s: [seconds(&samples.half[0]), seconds(&samples.half[1])],
            beyond_rtt_s: seconds(&samples.beyond),
            queue_s: found.map(|found| found.most_s),
            wait_s,
            wait_at_loss_s: found.map(|found| found.at_loss),
            standing,
            capture_point: (known > 0.0).then_some(halves[0] / known),
            connection_bytes: Quantiles::of(&samples.bytes, 1.0),
            unit_bytes: [
                Quantiles::of(&samples.units[0], 1.0),
                Quantiles::of(&samples.units[1], 1.0),
            ],
            exchanges: Quantiles::of(&samples.exchanges, 1.0),
            exchange_s: seconds(&samples.exchange),
            connection_s: seconds(&samples.connection),
            long: long.counts,
            long_bytes: long.bytes,
            long_s: seconds(&long.exchange),
            exchange_counts: samples.exchange.counts(),
            long_counts: long.exchange.counts(),
            long_ids: long.ids,
            connection_counts: samples.connection.counts(),
            answer_wait_s: seconds(&samples.answer),
            ask_wait_s: seconds(&samples.ask),
            pause_s: seconds(&samples.pause),
            interarrival_s: None,
            unheld: self.unheld,
            one_way: self.counts.one_way,
            crowded,
            sideless_share,
            segments: segments.map(|(bytes, all, again)| Segments::of(bytes, all, again)),
            rate,
            mss,
            hosts: match self.options.keep_addresses {
                true => self.addresses.iter().map(IpAddr::to_string).collect(),
                false => Vec::new(),
            },
        })
    }
}

/// Frames between two questions whether to go on.
const PROGRESS_FRAMES: u64 = 4096;

/// Hosts with numbers of their own.
const MOST_HOSTS: u32 = 1 << 20;

/// How long stragglers of a connection that is over are awaited.
const LINGER_NS: u64 = 5_000_000_000;
