//! Traces of senders: one row per event, as CSV and, with the feature `parquet`, as Parquet.

use super::csv;
use super::table::table;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// A row of a trace: the state of a sender after an event.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRow {
    /// Time from the start of the run (s).
    pub time_s: f64,
    /// The flow: group and number, `pages/3`.
    pub flow: String,
    /// What happened: `ack`, `timeout`, `probe` or `timer`.
    pub event: &'static str,
    /// Congestion window (bytes).
    pub cwnd_bytes: u64,
    /// Slow-start threshold (bytes); `None` before the first congestion event.
    pub ssthresh_bytes: Option<u64>,
    /// Smoothed RTT (s).
    pub srtt_s: Option<f64>,
    /// Retransmission timeout (s).
    pub rto_s: Option<f64>,
    /// Bytes in flight by the pipe estimate.
    pub pipe_bytes: u64,
    /// `open`, `disorder`, `cwr`, `recovery`, `loss`.
    pub state: &'static str,
}

table! { TraceRow, r, "trace", "one event at one sender, with the sender's state after it",
    "time_s" Number "s" "time from the start of the run" = r.time_s;
    "flow" Text "" "group and number of the connection, from 0 in order of start: `pages/3`; those that start within the warm-up count, so `samples` has other numbers where there is one" = r.flow.as_str();
    "event" Text "" "what happened: `ack` (a segment of the peer was processed), `timeout`, `probe` (a tail loss probe was sent) or `timer` (another timer)" = r.event;
    "cwnd_bytes" Integer "B" "congestion window" = r.cwnd_bytes;
    "ssthresh_bytes" Integer "B" "slow-start threshold; empty before the first congestion event" = r.ssthresh_bytes;
    "srtt_s" Number "s" "smoothed round-trip time" = r.srtt_s;
    "rto_s" Number "s" "retransmission timeout" = r.rto_s;
    "pipe_bytes" Integer "B" "bytes in flight as the sender estimates them" = r.pipe_bytes;
    "state" Text "" "`open`, `disorder`, `cwr`, `recovery` or `loss`" = r.state;
}

/// Writes `rows` as CSV.
///
/// # Errors
/// What the file system says.
pub fn write_csv(path: &Path, rows: impl IntoIterator<Item = TraceRow>) -> io::Result<()> {
    csv::write_rows(BufWriter::new(File::create(path)?), rows.into_iter())
}

/// Writes `rows` as Parquet, with `about` (key and value) as its metadata.
///
/// # Errors
/// What the file system says.
#[cfg(feature = "parquet")]
pub fn write_parquet(
    path: &Path,
    rows: impl IntoIterator<Item = TraceRow>,
    about: &[(String, String)],
) -> io::Result<()> {
    super::parquet::write_rows(File::create(path)?, rows.into_iter(), about)
}
