//! What an import found, for people and as JSON.

use super::rate::{Basis, RateEstimate};
use fleetfoot_sim::output::Histogram;
use serde::Serialize;
use std::fmt::Write as _;

/// A sample in words: quantiles have three digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// Sample size.
    pub n: u64,
    /// Mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// 10th percentile.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Quantiles {
    /// Quantiles of a histogram, its values times `unit`; `None` without values.
    pub fn of(histogram: &Histogram, unit: f64) -> Option<Quantiles> {
        let at = |quantile| Some(histogram.quantile(quantile)? as f64 * unit);
        Some(Quantiles {
            n: histogram.n(),
            mean: histogram.mean()? * unit,
            min: at(0.0)?,
            p10: at(0.1)?,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p99: at(0.99)?,
            max: histogram.max() as f64 * unit,
        })
    }
}

/// Something that was left out, or needs to be known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// How often.
    pub count: u64,
    /// What.
    pub what: String,
}

/// Data segments of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Segments {
    /// Payload bytes, each once.
    pub bytes: u64,
    /// Segments with payload.
    pub segments: u64,
    /// Segments with payload but without a new byte.
    pub retransmitted: u64,
    /// Share of the segments that `retransmitted` counts.
    pub rate: f64,
}

impl Segments {
    pub(super) fn of(bytes: u64, segments: u64, retransmitted: u64) -> Segments {
        Segments {
            bytes,
            segments,
            retransmitted,
            rate: if segments > 0 {
                retransmitted as f64 / segments as f64
            } else {
                0.0
            },
        }
    }
}

/// Pairs of hosts whose round-trip time probably holds a queue that they never saw empty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Pairs of hosts that this is true of.
    pub pairs: u64,
    /// All that were looked at.
    pub of: u64,
    /// The smallest round-trip time of all pairs.
    pub least_s: f64,
    /// The smallest ones of these pairs: from, to.
    pub rtt_s: [f64; 2],
    /// What nine tenths, and one hundredth, of the data waited at least.
    pub wait_s: [f64; 2],
}

impl Standing {
    /// What makes them no farther than the nearest.
    pub(super) fn scale(&self) -> f64 {
        ((self.least_s / self.rtt_s[1] * 100.0).floor() / 100.0).max(0.01)
    }
}

/// What an import found. Times are in seconds, sizes in bytes; the first of two directions is that from the hosts that opened, where
/// hosts of both sides did from the side of the first of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// `capture`, or `vectors` for a file of connection vectors.
    pub source: &'static str,
    /// Frames read.
    pub packets: u64,
    /// Bytes of the file that were read.
    pub bytes: u64,
    /// From the first packet to the last.
    pub span_s: f64,
    /// Frames by kind of link.
    pub links: Vec<Counted>,
    /// Where and why reading ended before the end of the file.
    pub damage: Option<String>,
    /// Reading was stopped.
    pub interrupted: bool,
    /// Connections with data: what is replayed.
    pub connections: u64,
    /// Connections whose ends spoke independently of each other.
    pub concurrent: u64,
    /// Hosts that opened connections, on the side of the first of them.
    pub openers: u64,
    /// Connections with data that were opened from the other side.
    pub back: u64,
    /// Hosts of the other side that opened them.
    pub back_openers: u64,
    /// What was left out.
    pub left_out: Vec<Counted>,
    /// What needs to be known.
    pub notes: Vec<Counted>,
    /// Round-trip time of handshakes.
    pub handshake_rtt_s: Option<Quantiles>,
    /// Smallest round-trip time of each connection.
    pub rtt_s: Option<Quantiles>,
    /// Every sample between the capture point and the hosts that opened, and the others.
    pub half_rtt_s: [Option<Quantiles>; 2],
    /// Every sample beyond the smallest of its connection: mostly queues and delayed ACKs.
    pub beyond_rtt_s: Option<Quantiles>,
    /// What hardly any data waited longer than in queues (99.9th percentile), by direction.
    pub queue_s: [Option<f64>; 2],
    /// What data waited in queues.
    pub wait_s: [Option<Quantiles>; 2],
    /// What packets waited that came next to lost ones: as long as the queue is, where it was full.
    pub wait_at_loss_s: [Option<Quantiles>; 2],
    /// A queue that stood while they spoke is probably in the round-trip times of some hosts.
    pub standing: Option<Standing>,
    /// Share of the round-trip time between the capture point and the hosts that opened: 0 at these, 1 at the others.
    pub capture_point: Option<f64>,
    /// Payload bytes of connections.
    pub connection_bytes: Option<Quantiles>,
    /// Units of the ends that opened, and of the others.
    pub unit_bytes: [Option<Quantiles>; 2],
    /// Exchanges of connections.
    pub exchanges: Option<Quantiles>,
    /// Time of exchanges, without what applications waited, as the hosts that opened see it. Not those of long transfers.
    pub exchange_s: Option<Quantiles>,
    /// Connections that are long transfers: opened from the side of the first, and from the other.
    pub long: [u64; 2],
    /// Bytes of their exchanges, counting the end that said more.
    pub long_bytes: u64,
    /// Time of their exchanges.
    pub long_s: Option<Quantiles>,
    /// From the first SYN to the last payload byte, as the hosts at the ends see it.
    pub connection_s: Option<Quantiles>,
    /// The samples of exchanges, in nanoseconds: values in ascending order and how often each came.
    #[serde(skip)]
    pub exchange_counts: Vec<(u64, u64)>,
    /// Samples of connection times in nanoseconds: values in ascending order and how often each came.
    #[serde(skip)]
    pub connection_counts: Vec<(u64, u64)>,
    /// Samples of exchanges of long transfers in nanoseconds: values in ascending order and how often each came.
    #[serde(skip)]
    pub long_counts: Vec<(u64, u64)>,
    /// Numbers of the long transfers among the connections, in ascending order.
    #[serde(skip)]
    pub long_ids: Vec<u64>,
    /// What the other ends waited before they answered.
    pub answer_wait_s: Option<Quantiles>,
    /// What the ends that opened waited before they asked again.
    pub ask_wait_s: Option<Quantiles>,
    /// What an end waited before it went on.
    pub pause_s: Option<Quantiles>,
    /// Between the starts of connections.
    pub interarrival_s: Option<Quantiles>,
    /// Small segments that were sent while a small one was not acknowledged: Nagle's algorithm was off.
    pub unheld: u64,
    /// Connections of which the capture shows one direction only.
    pub one_way: u64,
    /// Much of what went over the line beside them was no TCP.
    pub crowded: bool,
    /// Share of the payload on connections between hosts of one side: which way it went nobody knows.
    pub sideless_share: f64,
    /// Data and retransmissions, by direction.
    pub segments: [Segments; 2],
    /// The bottleneck's rate, by direction.
    pub rate: [RateEstimate; 2],
    /// Maximum segment size of the connections that carried most of the data, as both ends and the path agree (bytes).
    pub mss: Option<u16>,
    /// Addresses by the number of the host, if they are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

impl Summary {
    /// Whether it is of a capture, not of a file of connection vectors.
    pub fn is_capture(&self) -> bool {
        self.source == "capture"
    }

    /// The direction that most data took: 0 from the hosts that opened, 1 to them.
    pub fn busy(&self) -> usize {
        usize::from(self.segments[1].bytes > self.segments[0].bytes)
    }

    /// The text that is printed.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<22}{value}");
        };
        let links: Vec<String> = self
            .links
            .iter()
            .map(|link| format!("{} {}", count(link.count), link.what))
            .collect();
        if self.is_capture() {
            line(
                "Capture",
                format!(
                    "{} packets ({}) in {}, {}",
                    count(self.packets),
                    links.join(", "),
                    time(self.span_s),
                    size(self.bytes as f64)
                ),
            );
        }
        if let Some(point) = self.capture_point {
            line("Taken", place(point));
        }
        line(
            "Connections",
            format!(
                "{} with data, {} of them concurrent, opened by {} host{}",
                count(self.connections),
                count(self.concurrent),
                count(self.openers + self.back_openers),
                if self.openers + self.back_openers == 1 {
                    ""
                } else {
                    "s"
                }
            ),
        );
        if self.back > 0 {
            line(
                "From the other side",
                format!(
                    "{} of them, opened by {} host{}; below, \"them\" is the side that opened first",
                    count(self.back),
                    count(self.back_openers),
                    if self.back_openers == 1 { "" } else { "s" }
                ),
            );
        }
        let [up, down] = self.segments;
        line(
            "Payload",
            format!(
                "{} from {}, {} to them",
                size(up.bytes as f64),
                if self.back > 0 {
                    "them"
                } else {
                    "the hosts that opened"
                },
                size(down.bytes as f64)
            ),
        );
        if self.is_capture() {
            let rate = |segments: Segments| match segments.segments {
                0 => String::from("-"),
                all => format!("{:.2} % of {}", segments.rate * 100.0, count(all)),
            };
            line(
                "Retransmitted",
                format!("{} segments from, {} to them", rate(up), rate(down)),
            );
            let unseen = super::scenario::not_seen(self);
            let names = ["Rate from them", "Rate to them"].iter().zip(&self.rate);
            for (direction, (name, estimate)) in names.enumerate() {
                line(
                    name,
                    match (unseen == Some(direction), estimate.bps) {
                        (false, _) => rate_text(estimate),
                        (true, None) => format!("not seen: {UNSEEN}"),
                        (true, Some(_)) => format!("{}; {UNSEEN}", rate_text(estimate)),
                    },
                );
            }
        }
        let mut table = Table::new(["", "n", "min", "p10", "p50", "p90", "p99", "max"]);
        let mut row = |name: &str, sample: &Option<Quantiles>, show: fn(f64) -> String| {
            if let Some(s) = sample {
                let values = [s.min, s.p10, s.p50, s.p90, s.p99, s.max].map(show);
                let head = [String::from(name), count(s.n)];
                table.row(head.into_iter().chain(values));
            }
        };
        row("RTT, handshakes", &self.handshake_rtt_s, time);
        row("RTT, smallest", &self.rtt_s, time);
        row("  to those who opened", &self.half_rtt_s[0], time);
        row("  to the others", &self.half_rtt_s[1], time);
        row("  beyond the smallest", &self.beyond_rtt_s, time);
        row("Queues from them", &self.wait_s[0], time);
        row("Queues to them", &self.wait_s[1], time);
        row("Bytes asked", &self.unit_bytes[0], size);
        row("Bytes answered", &self.unit_bytes[1], size);
        row("Bytes per connection", &self.connection_bytes, size);
        row("Exchanges each", &self.exchanges, plain);
        row("Exchange", &self.exchange_s, time);
        row("Long transfer", &self.long_s, time);
        row("Connection", &self.connection_s, time);
        row("Wait before answer", &self.answer_wait_s, time);
        row("Wait before next", &self.ask_wait_s, time);
        row("Pause of one end", &self.pause_s, time);
        row("Between starts", &self.interarrival_s, time);
        text.push('\n');
        text.push_str(&table.to_text());
        for (title, list) in [("Left out", &self.left_out), ("To know", &self.notes)] {
            if !list.is_empty() {
                let _ = writeln!(text, "\n{title}:");
            }
            for entry in list {
                let _ = writeln!(text, "{:>11}  {}", count(entry.count), entry.what);
            }
        }
        if !self.hosts.is_empty() {
            let _ = writeln!(text, "\nHosts:");
            for (number, host) in self.hosts.iter().enumerate() {
                let _ = writeln!(text, "{number:>11}  {host}");
            }
        }
        text
    }
}

/// Of a direction whose rate is not known.
const UNSEEN: &str = "too little was sent this way, so the scenario takes it to be as fast as the other way";

/// Lines of a name and numbers; columns are as wide as they need to be.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new<const N: usize>(head: [&str; N]) -> Table {
        Table {
            rows: vec![head.map(String::from).to_vec()],
        }
    }

    pub(super) fn row(&mut self, cells: impl Iterator<Item = String>) {
        self.rows.push(cells.collect());
    }

    pub(super) fn to_text(&self) -> String {
        let width = |column: usize, least: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
                .max(least)
        };
        let mut text = String::new();
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                let _ = match column {
                    0 => write!(text, "{cell:<0$}", width(0, 22)),
                    1 => write!(text, "  {cell:>0$}", width(1, 7)),
                    _ => write!(text, "  {cell:>0$}", width(column, 8)),
                };
            }
            text.push('\n');
        }
        text
    }
}

fn place(share: f64) -> String {
    match share {
        s if s < 0.1 => String::from("at or near the hosts that opened"),
        s if s > 0.9 => String::from("at or near the hosts that were asked"),
        s => format!(
            "on the way: {:.0} % of the RTT lies on the side of the hosts that opened",
            s * 100.0
        ),
    }
}

fn rate_text(estimate: &RateEstimate) -> String {
    let Some(bps) = estimate.bps else {
        return String::from("-");
    };
    let rate = rate(bps);
    match estimate.basis {
        Basis::Held => format!("about {rate} (estimate: held while packets had to wait)"),
        Basis::Spacing => format!(
            "about {rate} (estimate: spacing of {} pairs of packets, {:.0} % agree)",
            count(estimate.pairs),
            estimate.spacing_share * 100.0
        ),
        Basis::AtLeast => format!(
            "at least {rate} (what came in some tenths of a second; nothing shows that the line was full)"
        ),
        Basis::AtMost => format!(
            "at most {rate} (up to the capture point; without ACKs nothing shows what comes behind it)"
        ),
        Basis::Unknown => String::from("not known: nothing in the capture shows it"),
    }
}

/// A rate with three digits.
pub(super) fn rate(bps: f64) -> String {
    scaled(bps, &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")])
}

pub(super) fn time(seconds: f64) -> String {
    if seconds == 0.0 {
        return String::from("0");
    }
    scaled(seconds, &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us")])
}

pub(super) fn size(bytes: f64) -> String {
    match bytes {
        b if b < 1000.0 => format!("{b:.0} B"),
        b => scaled(b, &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")]),
    }
}

fn plain(value: f64) -> String {
    format!("{value:.0}")
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fits = units.iter().find(|(unit, _)| value >= 0.9995 * unit);
    let (unit, name) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
    let value = value / unit;
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {name}")
}

/// A number with its thousands apart.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
