//! Finished runs on disk, one file each, named by a hash of all that determines them.

use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::output::{
    Datagrams, FlowRecord, GroupOutput, Histogram, LinkOutput, Repairs, RunOutput, StreamRecord, Watched,
};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Changes whenever the same scenario and seed may give other results, or the file format changes: the build script
/// makes it from the sources.
const ENGINE: &str = concat!(
    "fleetfoot ",
    env!("CARGO_PKG_VERSION"),
    " ",
    env!("FLEETFOOT_ENGINE")
);

const MAGIC: &[u8; 8] = b"ffrun\0\0\x06";

/// A folder of finished runs.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Keeps runs in `folder`, which is made if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn open(folder: &Path) -> io::Result<Store> {
        fs::create_dir_all(folder)?;
        let probe = folder.join(format!(".probe-{}", std::process::id()));
        fs::write(&probe, b"")?;
        fs::remove_file(&probe)?;
        Ok(Store {
            folder: folder.to_owned(),
        })
    }

    /// Key of a run: hash of the program's sources, resolved scenario and seed.
    pub fn key(identity: &str, seed: u64) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(ENGINE.as_bytes());
        hasher.update(&[0]);
        hasher.update(identity.as_bytes());
        hasher.update(&[0]);
        hasher.update(&seed.to_le_bytes());
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// Where the run with this key is kept.
    pub fn place(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.run"))
    }

    /// The run with this key, if it is there and whole.
    pub fn load(&self, key: &str) -> Option<RunOutput> {
        let bytes = fs::read(self.place(key)).ok()?;
        let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
        if blake3::hash(body).as_bytes() != sum {
            return None;
        }
        let mut reader = Reader {
            rest: body.strip_prefix(MAGIC)?,
        };
        let output = reader.run()?;
        reader.rest.is_empty().then_some(output)
    }

    /// Keeps a run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, key: &str, output: &RunOutput) -> io::Result<()> {
        let mut writer = Writer {
            bytes: MAGIC.to_vec(),
        };
        writer.run(output);
        let sum = blake3::hash(&writer.bytes);
        writer.bytes.extend_from_slice(sum.as_bytes());
        write_atomically(&self.place(key), &writer.bytes)
    }
}

/// Writes `bytes` to `path` by way of another name: the file is there whole or not at all.
///
/// # Errors
/// The file cannot be written or renamed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = fs::File::create(&part)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // The error that counts is the first one.
        let _ = fs::remove_file(&part);
    }
    written
}

struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Seven bits a byte, the lowest first (LEB128): most of what a run counts is small.
    fn u64(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn u32(&mut self, value: u32) {
        self.u64(u64::from(value));
    }

    fn f64(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_bits().to_le_bytes());
    }

    fn time(&mut self, value: Option<u64>) {
        self.u64(value.unwrap_or(u64::MAX).wrapping_add(1));
    }

    fn list<T>(&mut self, list: &[T], mut one: impl FnMut(&mut Writer, &T)) {
        self.u64(list.len() as u64);
        for element in list {
            one(self, element);
        }
    }

    fn run(&mut self, output: &RunOutput) {
        let RunOutput {
            groups,
            links,
            events,
            ended,
            interrupted: _,
        } = output;
        self.u64(*events);
        self.u64(ended.as_nanos());
        self.list(groups, Writer::group);
        self.list(links, Writer::link);
    }

    fn group(&mut self, group: &GroupOutput) {
        let GroupOutput {
            flows,
            delivery_latency,
            ack_latency,
            goodput_bytes,
            dropped,
            goodput_bytes_per_connection,
            goodput_bytes_per_pair,
            super_packet_length,
            streams,
            watched,
            connections,
            datagrams: Datagrams { arrived, lost },
            requests,
        } = group;
        self.u64(goodput_bytes.0);
        self.u64(*dropped);
        self.list(flows, Writer::flow);
        self.list(delivery_latency, |writer, value| writer.f64(*value));
        self.list(ack_latency, |writer, value| writer.f64(*value));
        self.list(goodput_bytes_per_connection, |writer, value| writer.u64(value.0));
        self.list(goodput_bytes_per_pair, |writer, value| writer.u64(value.0));
        self.histogram(super_packet_length);
        self.list(streams, |writer, stream| {
            let StreamRecord {
                number,
                lost,
                loss_events,
                loss_event_rate,
            } = stream;
            writer.u32(*number);
            writer.u64(*lost);
            writer.u64(*loss_events);
            writer.f64(*loss_event_rate);
        });
        self.list(connections, |writer, value| writer.f64(*value));
        self.list(watched, Writer::watched);
        self.u64(*arrived);
        self.u64(*lost);
        self.list(requests, |writer, count| writer.u32(*count));
    }

    fn watched(&mut self, watched: &Watched) {
        let Watched {
            opened,
            closed,
            received,
            lost,
            reductions,
            first_sent,
            first_lost,
            syn_again,
        } = watched;
        self.u64(opened.as_nanos());
        self.time(closed.map(Instant::as_nanos));
        for bins in [received, lost, reductions] {
            self.list(bins, |writer, count| writer.u32(*count));
        }
        self.u32(*first_sent);
        self.u32(*first_lost);
        self.u32(u32::from(*syn_again));
    }

    fn flow(&mut self, flow: &FlowRecord) {
        let FlowRecord {
            pair,
            bytes,
            start,
            completed,
            acked,
            received,
            segments_sent,
            bytes_sent,
            retransmits,
            timeouts,
            spurious_timeouts,
            probes,
            spurious_probes,
            repairs: _, // below
            redundant_bytes,
            min_rtt,
            ack_latency_sum,
            ack_latency_count,
        } = flow;
        let Repairs {
            congestion_events,
            new_probes,
            rdb_packets,
            rdb_losses,
            rdb_bytes,
            longest_recovery,
            given_up,
        } = flow.repairs();
        self.u32(*pair);
        self.u64(bytes.0);
        self.u64(start.as_nanos());
        self.time(completed.map(Instant::as_nanos));
        self.time(acked.map(Instant::as_nanos));
        self.u64(received.0);
        self.u32(*segments_sent);
        self.u64(bytes_sent.0);
        for count in [retransmits, timeouts, spurious_timeouts, probes, spurious_probes] {
            self.u32(*count);
        }
        self.u32(u32::from(flow.repairs.is_some()));
        if flow.repairs.is_some() {
            for count in [congestion_events, new_probes, rdb_packets, rdb_losses] {
                self.u32(count);
            }
            self.u64(rdb_bytes.0);
            self.u64(longest_recovery.as_nanos());
            self.time(given_up.map(Instant::as_nanos));
        }
        self.u64(redundant_bytes.0);
        self.time(min_rtt.map(Duration::as_nanos));
        self.f64(*ack_latency_sum);
        self.u32(*ack_latency_count);
    }

    fn link(&mut self, link: &LinkOutput) {
        let LinkOutput {
            busy,
            packets,
            data_packets,
            bytes,
            drops,
            events,
            queue_delay,
            queue_packets,
        } = link;
        for value in [busy.as_nanos(), *packets, *data_packets, bytes.0] {
            self.u64(value);
        }
        self.list(drops, |writer, kinds| {
            kinds.iter().for_each(|count| writer.u64(*count));
        });
        self.list(events, |writer, count| writer.u64(*count));
        self.histogram(queue_delay);
        self.histogram(queue_packets);
    }

    fn histogram(&mut self, histogram: &Histogram) {
        self.bytes.extend_from_slice(&histogram.sum().to_le_bytes());
        self.u64(histogram.max());
        self.list(&histogram.counts(), |writer, &(value, count)| {
            writer.u64(value);
            writer.u64(count);
        });
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    fn u64(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take()?;
            let bits = u64::from(byte & 0x7f);
            value |= bits << shift;
            if byte < 0x80 {
                return (bits << shift >> shift == bits).then_some(value);
            }
        }
        None
    }

    fn u32(&mut self) -> Option<u32> {
        self.u64()?.try_into().ok()
    }

    fn f64(&mut self) -> Option<f64> {
        self.take().map(|bytes| f64::from_bits(u64::from_le_bytes(bytes)))
    }

    fn time(&mut self) -> Option<Option<u64>> {
        self.u64().map(|value| value.checked_sub(1))
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = usize::try_from(self.u64()?).ok()?;
        // A damaged length must not reserve memory: no element is shorter than a byte.
        let mut list = Vec::with_capacity(length.min(self.rest.len()));
        for _ in 0..length {
            list.push(one(self)?);
        }
        Some(list)
    }

    fn run(&mut self) -> Option<RunOutput> {
        let (events, ended) = (self.u64()?, Instant::from_nanos(self.u64()?));
        Some(RunOutput {
            groups: self.list(Reader::group)?,
            links: self.list(Reader::link)?,
            events,
            ended,
            interrupted: false,
        })
    }

    fn group(&mut self) -> Option<GroupOutput> {
        let (goodput_bytes, dropped) = (Bytes(self.u64()?), self.u64()?);
        Some(GroupOutput {
            dropped,
            flows: self.list(Reader::flow)?,
            delivery_latency: self.list(Reader::f64)?,
            ack_latency: self.list(Reader::f64)?,
            goodput_bytes,
            goodput_bytes_per_connection: self.list(|reader| reader.u64().map(Bytes))?,
            goodput_bytes_per_pair: self.list(|reader| reader.u64().map(Bytes))?,
            super_packet_length: self.histogram()?,
            streams: self.list(|reader| {
                Some(StreamRecord {
                    number: reader.u32()?,
                    lost: reader.u64()?,
                    loss_events: reader.u64()?,
                    loss_event_rate: reader.f64()?,
                })
            })?,
            connections: self.list(Reader::f64)?,
            watched: self.list(Reader::watched)?,
            datagrams: Datagrams {
                arrived: self.u64()?,
                lost: self.u64()?,
            },
            requests: self.list(Reader::u32)?,
        })
    }

    fn watched(&mut self) -> Option<Watched> {
        Some(Watched {
            opened: Instant::from_nanos(self.u64()?),
            closed: self.time()?.map(Instant::from_nanos),
            received: self.list(Reader::u32)?,
            lost: self.list(Reader::u32)?,
            reductions: self.list(Reader::u32)?,
            first_sent: self.u32()?,
            first_lost: self.u32()?,
            syn_again: self.u32()? != 0,
        })
    }

    fn flow(&mut self) -> Option<FlowRecord> {
        Some(FlowRecord {
            pair: self.u32()?,
            bytes: Bytes(self.u64()?),
            start: Instant::from_nanos(self.u64()?),
            completed: self.time()?.map(Instant::from_nanos),
            acked: self.time()?.map(Instant::from_nanos),
            received: Bytes(self.u64()?),
            segments_sent: self.u32()?,
            bytes_sent: Bytes(self.u64()?),
            retransmits: self.u32()?,
            timeouts: self.u32()?,
            spurious_timeouts: self.u32()?,
            probes: self.u32()?,
            spurious_probes: self.u32()?,
            repairs: self.repairs()?,
            redundant_bytes: Bytes(self.u64()?),
            min_rtt: self.time()?.map(Duration::from_nanos),
            ack_latency_sum: self.f64()?,
            ack_latency_count: self.u32()?,
        })
    }

    fn repairs(&mut self) -> Option<Option<Box<Repairs>>> {
        if self.u32()? == 0 {
            return Some(None);
        }
        Some(Some(Box::new(Repairs {
            congestion_events: self.u32()?,
            new_probes: self.u32()?,
            rdb_packets: self.u32()?,
            rdb_losses: self.u32()?,
            rdb_bytes: Bytes(self.u64()?),
            longest_recovery: Duration::from_nanos(self.u64()?),
            given_up: self.time()?.map(Instant::from_nanos),
        })))
    }

    fn link(&mut self) -> Option<LinkOutput> {
        Some(LinkOutput {
            busy: Duration::from_nanos(self.u64()?),
            packets: self.u64()?,
            data_packets: self.u64()?,
            bytes: Bytes(self.u64()?),
            drops: self.list(|reader| Some([reader.u64()?, reader.u64()?, reader.u64()?]))?,
            events: self.list(Reader::u64)?,
            queue_delay: self.histogram()?,
            queue_packets: self.histogram()?,
        })
    }

    fn histogram(&mut self) -> Option<Histogram> {
        let sum = self.take().map(u128::from_le_bytes)?;
        let max = self.u64()?;
        let counts = self.list(|reader| Some((reader.u64()?, reader.u64()?)))?;
        Some(Histogram::from_counts(&counts, sum, max))
    }
}

#[cfg(test)]
mod tests {
    use super::{Reader, Writer};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in any::<u64>(), shift in 0_u32..64, rate in any::<f64>(), time in any::<Option<u64>>()) {
            let (wide, narrow) = (value >> shift, (value >> shift) as u32);
            // The largest time is not one.
            let time = time.filter(|&time| time < u64::MAX);
            let mut writer = Writer { bytes: Vec::new() };
            writer.u64(wide);
            writer.u32(narrow);
            writer.f64(rate);
            writer.time(time);
            let mut reader = Reader { rest: &writer.bytes };
            prop_assert_eq!(reader.u64(), Some(wide));
            prop_assert_eq!(reader.u32(), Some(narrow));
            prop_assert_eq!(reader.f64().map(f64::to_bits), Some(rate.to_bits()));
            prop_assert_eq!(reader.time(), Some(time));
            prop_assert_eq!(reader.rest.len(), 0);
        }
    }

    #[test]
    fn numbers_that_are_too_long_are_refused() {
        let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Reader { rest: &longest }.u64(), Some(u64::MAX));
        assert_eq!(Reader { rest: &longest }.u32(), None);
        let mut beyond = longest;
        beyond[9] = 0x02;
        assert_eq!(Reader { rest: &beyond }.u64(), None);
        beyond[9] = 0x81;
        assert_eq!(Reader { rest: &beyond }.u64(), None);
        assert_eq!(Reader { rest: &longest[..9] }.u64(), None);
    }
}
