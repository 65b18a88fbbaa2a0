//! CoDel and FQ-CoDel beside what other implementations did with the same packets, packet by packet.
//!
//! `specs/ns-3.37/*.txt` and `specs/linux-6.1-queues/*.txt` are what `CoDelQueueDisc` and `FqCoDelQueueDisc` of ns-3, and
//! `codel_impl.h` and `sch_fq_codel.c` of Linux, made of the schedules of arrivals in `queue_peers/schedules.rs`, in front of a
//! line of fixed rate (`bench/peers/ns3/queues.cc` has the format; `bench/peers/ns3/queues.sh` records them anew). With
//! `details = "ns-3"` or `"linux"` ours must drop, mark and send the same packets in the same order; what the default of the
//! RFCs does otherwise stands in a table. `FLEETFOOT_QUEUE_RECORDS` names a folder with other `ns-3.37` and `linux-6.1-queues`.

use fleetfoot_core::flow::{FlowId, FlowKey, FlowTable, HostId};
use fleetfoot_core::packet::{BufId, Ecn, Flags, Packet, Segment};
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{
    AnyQueue, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline as _, QueueEvent,
};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::{Bytes, Rate};
use std::fmt::Write as _;

#[path = "queue_peers/schedules.rs"]
mod schedules;

use schedules::{Arrival, LETTERS, Schedule};

fn build(schedule: &Schedule, details: &'static str) -> AnyQueue {
    let entry = AnyQueue::entry(schedule.queue).expect("a registered queue");
    let mut values = Values::defaults(entry.parameters);
    let mut set = |name: &str, value: Value| values.set(name, value).expect("a parameter and its value");
    set("limit", Value::Limit(Limit::Packets(schedule.limit_packets)));
    set(
        "target",
        Value::Duration(Duration::from_micros(schedule.target_us)),
    );
    set(
        "interval",
        Value::Duration(Duration::from_micros(schedule.interval_us)),
    );
    set("ecn", Value::Flag(schedule.ecn));
    if let Some(us) = schedule.ce_threshold_us {
        set("ce_threshold", Value::Duration(Duration::from_micros(us)));
    }
    set("details", Value::Choice(details));
    if schedule.queue == "fq-codel" {
        set("queues", Value::Integer(65_536));
        set("quantum", Value::Bytes(Bytes(schedule.quantum)));
        set("batch", Value::Integer(schedule.batch));
    }
    let link = LinkContext {
        mtu: schedule.mtu,
        rate: Rate(schedule.rate),
        framing: 0,
        delay: Duration::ZERO,
        seed: 1,
    };
    AnyQueue::build(schedule.queue, &values, &link).expect("a registered queue")
}

/// What became of the packets: numbers and the record.
#[derive(Default)]
struct Played {
    left: usize,
    marked: usize,
    dropped: usize,
    /// Sum of the waits of those that left, ns.
    waited: u64,
    record: Record,
}

fn play(schedule: &Schedule, details: &'static str) -> Played {
    let mut queue = build(schedule, details);
    let mut flows = FlowTable::new();
    for flow in 0..LETTERS.len() as u32 {
        flows.push(FlowKey {
            source: HostId(flow),
            destination: HostId(1000),
            source_port: 5000,
            destination_port: 80,
            protocol: 6,
        });
    }
    let mut played = Played::default();
    let (mut drops, mut events) = (Vec::<(Packet, DropReason)>::new(), Vec::<QueueEvent>::new());
    let (mut next, mut done) = (0, None);
    loop {
        let arrival = schedule.arrivals.get(next).map(|arrival| arrival.at);
        let Some(ns) = [arrival, done].into_iter().flatten().min() else {
            break;
        };
        let now = Instant::from_nanos(ns);
        if done == Some(ns) {
            done = None;
        }
        let mut context = QueueContext {
            flows: &flows,
            ingress: 0,
            drops: &mut drops,
            events: &mut events,
        };
        while let Some(arrival) = schedule.arrivals.get(next).filter(|arrival| arrival.at == ns) {
            queue.enqueue(now, packet(now, next, arrival), &mut context);
            next += 1;
        }
        let taken = if done.is_none() {
            queue.dequeue(now, &mut context)
        } else {
            None
        };
        for (packet, _) in drops.drain(..) {
            played.dropped += 1;
            played.record.note(ns, "-", packet.flow);
        }
        events.clear();
        if let Some(packet) = taken {
            let marked = packet.segment.ecn() == Ecn::Ce;
            played.record.note(ns, if marked { "+" } else { "" }, packet.flow);
            played.left += 1;
            played.marked += usize::from(marked);
            played.waited += now.since(packet.enqueued_at).as_nanos();
            done = Some(ns + u64::from(packet.segment.len()) * 8_000_000_000 / schedule.rate);
        }
    }
    played.record.flush();
    assert_eq!(played.left + played.dropped, schedule.arrivals.len());
    played
}

fn packet(now: Instant, number: usize, arrival: &Arrival) -> Packet {
    Packet {
        enqueued_at: now,
        flow: FlowId(arrival.flow),
        buf: BufId::NONE,
        segment: Segment {
            seq: SeqNumber(number as u32),
            payload: arrival.len - 40,
            overhead: 40,
            flags: Flags::ACK,
            tos: if arrival.capable { 2 } else { 0 },
            ..Segment::default()
        },
    }
}

/// The text of a record.
#[derive(Default)]
struct Record {
    lines: String,
    words: usize,
    word: String,
    count: u64,
    since: u64,
}

impl Record {
    fn note(&mut self, ns: u64, what: &str, flow: FlowId) {
        let word = format!("{what}{}", LETTERS[flow.0 as usize] as char);
        if word == self.word {
            self.count += 1;
            return;
        }
        self.flush();
        self.word = word;
        self.count = 1;
        self.since = ns;
    }

    fn flush(&mut self) {
        if self.count == 0 {
            return;
        }
        if self.words.is_multiple_of(100) {
            if self.words > 0 {
                self.lines.push('\n');
            }
            let _ = write!(self.lines, "{} ", self.since);
        }
        self.lines.push_str(&self.word);
        if self.count > 1 {
            let _ = write!(self.lines, "{}", self.count);
        }
        self.words += 1;
        self.count = 0;
    }
}

fn folder(peer: &str) -> String {
    let specs = std::env::var("FLEETFOOT_QUEUE_RECORDS")
        .unwrap_or_else(|_| format!("{}/../../specs", env!("CARGO_MANIFEST_DIR")));
    format!("{specs}/{peer}")
}

/// The record of `peer`, without its first line; that must describe the schedule.
fn recorded(peer: &str, schedule: &Schedule) -> String {
    let path = format!("{}/{}.txt", folder(peer), schedule.name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (first, rest) = text.split_once('\n').expect("a first line");
    assert_eq!(first, schedule.head(), "{path} is the record of another schedule");
    rest.trim_end().to_string()
}

fn agree(peer: &str, details: &'static str) {
    let mut packets = 0;
    for schedule in schedules::all() {
        let played = play(&schedule, details);
        let theirs = recorded(peer, &schedule);
        for (ours, theirs) in played.record.lines.lines().zip(theirs.lines()) {
            assert_eq!(ours, theirs, "{}", schedule.name);
        }
        assert_eq!(played.record.lines, theirs, "{}: one ends earlier", schedule.name);
        packets += schedule.arrivals.len();
    }
    assert!(packets > 100_000, "{packets}");
}

#[test]
fn codel_and_fq_codel_treat_every_packet_as_ns_3_does() {
    agree("ns-3.37", "ns-3");
}

#[test]
fn codel_and_fq_codel_treat_every_packet_as_linux_does() {
    agree("linux-6.1-queues", "linux");
}

/// Writes the schedules for the recorders; does nothing unless `FLEETFOOT_QUEUE_SCHEDULES` names a folder.
#[test]
fn schedules_for_the_recorders() {
    let Ok(folder) = std::env::var("FLEETFOOT_QUEUE_SCHEDULES") else {
        return;
    };
    for schedule in schedules::all() {
        let mut text = schedule.head() + "\n";
        for Arrival {
            at,
            flow,
            len,
            capable,
        } in &schedule.arrivals
        {
            let _ = writeln!(text, "{at} {flow} {len} {}", u8::from(*capable));
        }
        std::fs::write(format!("{folder}/{}.txt", schedule.name), text).expect("a folder to write to");
    }
}

/// What the RFCs' details change, beside Linux's and ns-3's: packets dropped (marked), mean wait of those that left.
#[test]
fn what_the_details_change() {
    let mut table = String::new();
    for schedule in schedules::all() {
        let _ = write!(table, "{:<20}{:>6}", schedule.name, schedule.arrivals.len());
        for details in ["rfc", "linux", "ns-3"] {
            let played = play(&schedule, details);
            let mut cell = played.dropped.to_string();
            if played.marked > 0 {
                let _ = write!(cell, " ({})", played.marked);
            }
            let wait_ms = played.waited as f64 / 1e6 / played.left as f64;
            let _ = write!(table, "{:>14}{wait_ms:>8.2} ms", cell);
        }
        table.push('\n');
    }
    assert_eq!(table, TABLE, "\n{table}");
}

//           packets, then dropped (marked) and mean wait by RFC 8289 and 8290, Linux, ns-3
const TABLE: &str = "\
codel-overload       17522          2093 1031.64 ms          2102 1029.95 ms          2102 1029.95 ms
codel-on-off         19666          1387  302.13 ms          1398  300.82 ms          1398  300.82 ms
codel-sizes          17986           679  183.08 ms           686  183.20 ms           686  183.20 ms
codel-other-target   14171          4176   29.76 ms          4171   28.87 ms          4171   28.87 ms
codel-full            6031          2641   34.01 ms          2640   33.98 ms          2640   33.98 ms
codel-ecn             8670      61 (581)  292.42 ms      63 (585)  291.74 ms      60 (547)  292.54 ms
codel-ce-threshold    8222     60 (6380)   73.51 ms     50 (6380)   75.91 ms     65 (6380)   73.32 ms
fq-bulk-and-sparse   15450          1944  403.43 ms          1958  400.29 ms          1958  400.29 ms
fq-bursts            14222          2566  166.46 ms          2584  162.23 ms          2582  162.22 ms
fq-overload          17418          9386   12.71 ms          9413   11.00 ms          9381   13.37 ms
fq-on-off            27188          3784  216.21 ms          3788  207.34 ms          3785  212.01 ms
fq-ecn                7840    243 (2051)  297.52 ms    234 (2101)  299.92 ms    193 (1687)  306.48 ms
fq-random-6          17643          1532  112.61 ms          1530  114.15 ms          1538  111.47 ms
fq-random-20         19443          3225  178.88 ms          3240  172.46 ms          3246  172.88 ms
fq-random-50         14945           106   30.58 ms           133   30.02 ms           113   30.46 ms
fq-run               11677           290   26.79 ms           312   26.31 ms           297   26.33 ms
";
