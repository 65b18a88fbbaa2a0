//! Counters of a router in Prometheus' text format (OpenMetrics), fetched over HTTP on a loopback address.
//!
//! The thread that forwards owns its counters and takes no lock. A request is passed to it and answered with a copy of them.

use super::packet::Discard;
use super::{InputCounters, OutputCounters, Spans};
use crate::{Error, Refusal};
use fleetfoot_core::queue::{DropReason, QueueEventKind};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::{Duration, Instant};

/// What a router has counted up to a moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Its interfaces, in the order of the file.
    pub interfaces: Vec<InterfaceSnapshot>,
    /// How often another file took over, and how often one was refused.
    pub reloads: u64,
    /// How often a file was refused.
    pub refused_reloads: u64,
    /// ICMP errors that were sent.
    pub icmp_errors: u64,
}

/// What was counted at one interface.
#[derive(Clone, Debug, Default)]
pub struct InterfaceSnapshot {
    /// Its name.
    pub name: String,
    /// The discipline of its queue.
    pub queue: &'static str,
    /// What came in.
    pub input: InputCounters,
    /// What went out.
    pub output: OutputCounters,
    /// Packets and bytes that wait in the queue.
    pub waiting_packets: u32,
    /// Bytes at layer 3 that wait in the queue.
    pub waiting_bytes: u64,
    /// Frames for which memory is in use.
    pub kept: usize,
    /// Most places of its tables that the queue looked at for one packet; `None`: it has no tables.
    pub most_probes: Option<u32>,
}

impl Snapshot {
    /// In Prometheus' text format.
    ///
    /// # Errors
    /// Never: text can be written to memory.
    pub fn text(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("fleetfoot_router");
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        text::encode(&mut text, &registry)?;
        Ok(text)
    }
}

/// A number of some interface and what distinguishes it from others of the same name.
type Sample<'a> = (&'a InterfaceSnapshot, Option<(&'static str, &'static str)>, u64);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let each = |value: fn(&InterfaceSnapshot) -> u64| -> Vec<Sample<'_>> {
            let all = self.interfaces.iter();
            all.map(|interface| (interface, None, value(interface))).collect()
        };
        counter(
            &mut encoder,
            "received_frames",
            "Frames that came in",
            &each(|at| at.input.received),
        )?;
        counter(
            &mut encoder,
            "received_bytes",
            "Bytes of frames that came in",
            &each(|at| at.input.bytes),
        )?;
        counter(
            &mut encoder,
            "missed_frames",
            "Frames that the kernel dropped because they were not read in time",
            &each(|at| at.input.missed),
        )?;
        counter(
            &mut encoder,
            "kernel_frames",
            "Frames that were left to the kernel",
            &each(|at| at.input.kernel),
        )?;
        let names = Discard::ALL.map(|reason| ("reason", reason.name()));
        let samples = labelled(&self.interfaces, &names, |at| &at.input.discards);
        counter(
            &mut encoder,
            "discarded_frames",
            "Frames that came in and went no further",
            &samples,
        )?;
        counter(
            &mut encoder,
            "queued_frames",
            "Frames that arrived at a queue",
            &each(|at| at.output.queued),
        )?;
        counter(
            &mut encoder,
            "sent_frames",
            "Frames that an interface took",
            &each(|at| at.output.sent),
        )?;
        counter(
            &mut encoder,
            "sent_bytes",
            "Layer-3 bytes of frames that an interface took",
            &each(|at| at.output.bytes),
        )?;
        let names = DropReason::ALL.map(|reason| ("reason", reason.name()));
        let samples = labelled(&self.interfaces, &names, |at| &at.output.drops);
        counter(
            &mut encoder,
            "dropped_frames",
            "Frames that a queue dropped",
            &samples,
        )?;
        let names = QueueEventKind::ALL.map(|kind| ("event", kind.name()));
        let samples = labelled(&self.interfaces, &names, |at| &at.output.events);
        counter(
            &mut encoder,
            "queue_events",
            "What queues reported beside drops",
            &samples,
        )?;
        let names = Refusal::ALL.map(|refusal| ("reason", refusal.name()));
        let samples = labelled(&self.interfaces, &names, |at| &at.output.refused);
        counter(
            &mut encoder,
            "refused_frames",
            "Frames that an interface did not take",
            &samples,
        )?;
        counter(
            &mut encoder,
            "interface_full",
            "Times that frames had to wait for an interface",
            &each(|at| at.output.full),
        )?;
        gauge(
            &mut encoder,
            "waiting_packets",
            "Packets in a queue",
            &each(|at| at.waiting_packets.into()),
        )?;
        gauge(
            &mut encoder,
            "waiting_bytes",
            "Layer-3 bytes in a queue",
            &each(|at| at.waiting_bytes),
        )?;
        gauge(
            &mut encoder,
            "kept_frames",
            "Frames for which memory is in use",
            &each(|at| at.kept as u64),
        )?;
        let mut samples: Vec<Sample<'_>> = Vec::new();
        for at in &self.interfaces {
            samples.extend(at.most_probes.map(|most| (at, None, u64::from(most))));
        }
        gauge(
            &mut encoder,
            "most_probes",
            "Most places of its tables that a queue looked at for one packet",
            &samples,
        )?;
        let help = "Time that frames were in a queue";
        self.spans(&mut encoder, "queue_delay_seconds", help, |at| &at.output.delay)?;
        let help = "Time from a frame's arrival until it was read";
        self.spans(&mut encoder, "read_delay_seconds", help, |at| &at.input.unread)?;
        let help = "How much later than its queue and rate say an interface was given a frame";
        self.spans(&mut encoder, "lateness_seconds", help, |at| &at.output.lateness)?;
        counter(
            &mut encoder,
            "late_frames",
            "Frames that an interface was given more than a millisecond late",
            &each(|at| at.output.lateness.late),
        )?;
        for (name, help, value) in [
            ("reloads", "Files that took over", self.reloads),
            ("refused_reloads", "Files that were refused", self.refused_reloads),
            ("icmp_errors", "ICMP errors that were sent", self.icmp_errors),
        ] {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }
}

/// Counts of each interface with their labels, which stand in the same order.
fn labelled<'a>(
    interfaces: &'a [InterfaceSnapshot],
    labels: &[(&'static str, &'static str)],
    counts: impl Fn(&'a InterfaceSnapshot) -> &'a [u64],
) -> Vec<Sample<'a>> {
    let of = |at| {
        labels
            .iter()
            .zip(counts(at))
            .map(move |(&label, &count)| (at, Some(label), count))
    };
    interfaces.iter().flat_map(of).collect()
}

impl Snapshot {
    fn spans(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        of: impl Fn(&InterfaceSnapshot) -> &Spans,
    ) -> Result<(), fmt::Error> {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for at in &self.interfaces {
            let spans = of(at);
            // It ends with infinity, for which the encoder writes `+Inf`, as a histogram must.
            let buckets: Vec<(f64, u64)> = spans.histogram().collect();
            let sum = spans.sum_ns as f64 / 1e9;
            let labels = [("interface", at.name.as_str()), ("queue", at.queue)];
            metric
                .encode_family(&labels)?
                .encode_histogram::<NoLabelSet>(sum, spans.n(), &buckets, None)?;
        }
        Ok(())
    }
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: &[Sample<'_>],
) -> Result<(), fmt::Error> {
    family(
        encoder,
        name,
        help,
        MetricType::Counter,
        samples,
        |mut metric, value| metric.encode_counter::<NoLabelSet, _, u64>(&value, None),
    )
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: &[Sample<'_>],
) -> Result<(), fmt::Error> {
    family(
        encoder,
        name,
        help,
        MetricType::Gauge,
        samples,
        |mut metric, value| metric.encode_gauge(&value),
    )
}

fn family(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    kind: MetricType,
    samples: &[Sample<'_>],
    encode: impl Fn(MetricEncoder<'_>, u64) -> Result<(), fmt::Error>,
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
    for (at, label, value) in samples {
        let mut labels = vec![("interface", at.name.as_str())];
        labels.extend(*label);
        encode(metric.encode_family(&labels.as_slice())?, *value)?;
    }
    Ok(())
}

/// Requests to the thread that forwards, as that has them.
pub(super) struct Requests {
    bell: PipeReader,
    requests: Receiver<Sender<Snapshot>>,
}

impl Requests {
    /// Who waits for an answer, if anybody does.
    pub(super) fn next(&mut self) -> Option<Sender<Snapshot>> {
        let request = self.requests.try_recv().ok()?;
        // One byte was written for it.
        let _ = self.bell.read(&mut [0]);
        Some(request)
    }
}

impl AsFd for Requests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Serves metrics at `address` in a thread that lives as long as the process.
///
/// # Errors
/// The address is taken.
pub(super) fn serve(address: SocketAddr) -> Result<(Requests, SocketAddr), Error> {
    let fail = |cause| Error::new(format!("cannot serve metrics at {address}"), cause);
    let listener = TcpListener::bind(address).map_err(fail)?;
    let address = listener.local_addr().map_err(fail)?;
    let (bell, ring) = io::pipe().map_err(fail)?;
    let (asks, requests) = channel();
    std::thread::Builder::new()
        .name(String::from("metrics"))
        .spawn(move || answer(&listener, &asks, &Arc::new(ring)))
        .map_err(fail)?;
    Ok((Requests { bell, requests }, address))
}

/// Answers each client in a thread of its own, so that one that says nothing keeps nobody waiting; beyond [`CLIENTS`] they wait.
fn answer(listener: &TcpListener, asks: &Sender<Sender<Snapshot>>, ring: &Arc<PipeWriter>) {
    let (done, free) = sync_channel(CLIENTS);
    for _ in 0..CLIENTS {
        // There is room for all of them.
        let _ = done.send(());
    }
    for stream in listener.incoming().flatten() {
        // The other end is held here.
        let _ = free.recv();
        let (asks, ring, ended) = (asks.clone(), Arc::clone(ring), done.clone());
        let thread = std::thread::Builder::new().name(String::from("metrics"));
        let begun = thread.spawn(move || {
            // A client that goes away concerns nobody else.
            let _ = exchange(stream, &asks, &ring);
            let _ = ended.send(());
        });
        if begun.is_err() {
            let _ = done.send(());
        }
    }
}

/// One request and its answer.
fn exchange(mut stream: TcpStream, asks: &Sender<Sender<Snapshot>>, ring: &PipeWriter) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    let (code, kind, body, is_wanted) = loop {
        // For the whole request, however many pieces it comes in.
        let left = until.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let length = stream.read(&mut buffer)?;
        if length == 0 || left.is_zero() {
            return Ok(());
        }
        head.extend_from_slice(&buffer[..length]);
        let mut room = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut room);
        match request.parse(&head) {
            Ok(httparse::Status::Partial) if head.len() < HEAD => {}
            Ok(httparse::Status::Complete(_)) => {
                let (method, path) = (
                    request.method.unwrap_or_default(),
                    request.path.unwrap_or_default(),
                );
                let path = path.split('?').next().unwrap_or_default();
                let (code, kind, body) = match (method, path) {
                    ("GET" | "HEAD", "/metrics") => {
                        let (answer, answers) = channel();
                        asks.send(answer).map_err(|_| io::ErrorKind::BrokenPipe)?;
                        { ring }.write_all(&[1])?;
                        let snapshot = answers.recv_timeout(PATIENCE);
                        match snapshot.map(Snapshot::text) {
                            Ok(Ok(text)) => ("200 OK", OPEN_METRICS, text),
                            Ok(Err(_)) | Err(_) => {
                                ("503 Service Unavailable", PLAIN, String::from("no answer\n"))
                            }
                        }
                    }
                    ("GET" | "HEAD", _) => {
                        ("404 Not Found", PLAIN, String::from("metrics are at /metrics\n"))
                    }
                    _ => ("405 Method Not Allowed", PLAIN, String::from("GET is wanted\n")),
                };
                // RFC 9110 9.3.2: the answer to HEAD is that to GET without its content.
                break (code, kind, body, method != "HEAD");
            }
            Ok(httparse::Status::Partial) | Err(_) => {
                break ("400 Bad Request", PLAIN, String::from("this is not HTTP\n"), true);
            }
        }
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if is_wanted {
        stream.write_all(body.as_bytes())?;
    }
    Ok(())
}

/// How long a request is waited for, and the thread that forwards.
const PATIENCE: Duration = Duration::from_secs(2);
/// Clients that are answered at once.
const CLIENTS: usize = 32;
/// The longest head of a request.
const HEAD: usize = 8192;
/// The most headers of a request.
const HEADERS: usize = 64;
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

#[cfg(test)]
mod tests {
    use super::{CLIENTS, InterfaceSnapshot, PATIENCE, Snapshot, serve};
    use fleetfoot_core::time::Duration;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::time::Instant;

    #[test]
    fn a_histogram_ends_with_the_bucket_that_holds_everything() {
        let mut interface = InterfaceSnapshot {
            name: String::from("lan0"),
            queue: "pie",
            ..InterfaceSnapshot::default()
        };
        interface.output.delay.classes[3] = 5;
        *interface.output.delay.classes.last_mut().expect("classes") = 2;
        interface.output.lateness.record(Duration::from_micros(3));
        interface.output.lateness.record(Duration::from_millis(2));
        let snapshot = Snapshot {
            interfaces: vec![interface],
            ..Snapshot::default()
        };
        let text = snapshot.text().expect("memory takes it");
        let buckets: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("fleetfoot_router_queue_delay_seconds_bucket{"))
            .collect();
        let bound = |line: &str| {
            line.split("le=\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next().map(str::to_owned))
        };
        let bounds: Vec<String> = buckets.iter().filter_map(|line| bound(line)).collect();
        assert_eq!(bounds.len(), buckets.len());
        assert_eq!(bounds.last().map(String::as_str), Some("+Inf"), "{text}");
        assert!(buckets.last().is_some_and(|line| line.ends_with(" 7")), "{text}");
        let finite: Vec<f64> = bounds[..bounds.len() - 1]
            .iter()
            .map(|bound| bound.parse().expect("seconds"))
            .collect();
        assert!(
            finite.is_sorted() && finite.last().is_some_and(|&longest| longest < 5.0),
            "{finite:?}"
        );
        for line in [
            "fleetfoot_router_lateness_seconds_count{interface=\"lan0\",queue=\"pie\"} 2",
            "fleetfoot_router_lateness_seconds_sum{interface=\"lan0\",queue=\"pie\"} 0.002003",
            "fleetfoot_router_late_frames_total{interface=\"lan0\"} 1",
            "fleetfoot_router_read_delay_seconds_count{interface=\"lan0\",queue=\"pie\"} 0",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
    }

    #[test]
    fn only_queues_with_tables_say_how_far_they_looked() {
        let [with, without] = [Some(40), None].map(|most_probes| InterfaceSnapshot {
            name: format!("lan{}", most_probes.unwrap_or(0)),
            most_probes,
            ..InterfaceSnapshot::default()
        });
        let snapshot = Snapshot {
            interfaces: vec![with, without],
            ..Snapshot::default()
        };
        let text = snapshot.text().expect("memory takes it");
        let lines = text.lines();
        let lines: Vec<&str> = lines
            .filter(|line| line.starts_with("fleetfoot_router_most_probes{"))
            .collect();
        assert_eq!(lines, ["fleetfoot_router_most_probes{interface=\"lan40\"} 40"]);
    }

    #[test]
    fn silent_clients_keep_nobody_waiting_and_head_is_get_without_content() {
        let (mut requests, address) = serve(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        std::thread::spawn(move || {
            loop {
                match requests.next() {
                    // Who asked may have gone.
                    Some(answer) => drop(answer.send(Snapshot::default())),
                    None => std::thread::yield_now(),
                }
            }
        });
        let ask = |method: &str| {
            let mut stream = TcpStream::connect(address).expect("it listens");
            write!(stream, "{method} /metrics HTTP/1.1\r\n\r\n").expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            (head.to_owned(), body.to_owned())
        };
        let began = Instant::now();
        let silent: Vec<TcpStream> = (1..CLIENTS)
            .map(|_| TcpStream::connect(address).expect("it listens"))
            .collect();
        let got = ask("GET");
        // One after another they would have taken this long.
        let in_turn = PATIENCE * silent.len() as u32;
        assert!(began.elapsed() < in_turn, "{:?}", began.elapsed());
        assert!(got.1.ends_with("# EOF\n"), "{}", got.1);
        let head = ask("HEAD");
        assert_eq!((head.0, head.1.as_str()), (got.0, ""));
        drop(silent);
    }
}
