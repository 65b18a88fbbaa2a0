//! The scenario that an import writes: a file like any other, with the measured numbers as comments.

use super::rate::{Basis, RateEstimate};
use super::summary::{Summary, rate};
use std::fmt::Write as _;

/// The text of a scenario that replays the file of connection vectors `vectors`.
pub fn text(title: &str, vectors: &str, summary: &Summary) -> String {
    let mut text = String::new();
    let title = title.replace(
        |letter: char| letter == '"' || letter == '\\' || letter.is_control(),
        "'",
    );
    // A basic string of TOML, quotes and all; the comment shows the name as far as a line can.
    let file = serde_json::Value::from(vectors)
        .to_string()
        .replace('\u{7f}', "\\u007f");
    let vectors = vectors.replace(char::is_control, " ");
    let (rtt_s, basis) = match &summary.rtt_s {
        Some(rtt) => (rtt.min, "the smallest round-trip time of all connections"),
        None => (0.02, "nothing is known of round-trip times"),
    };
    let pairs = summary.openers.clamp(1, MOST_PAIRS);
    let forward = line_rate(summary, 1);
    let backward = line_rate(summary, 0);
    let queue = queue_packets(summary, forward.bps);
    let duration_s = (summary.span_s + 1.0).ceil().min(86_400.0);
    let _ = write!(
        text,
        "# Made by `fleetfoot import`. Everything here can be changed.\n\
         #\n\
         # {} connections, replayed from {vectors}: their starts, round-trip times, sizes and waits are those of the\n\
         # recording; what network and TCP make of them is simulated. The hosts on the right opened them.\n\
         title = \"{title}\"\n\n\
         [network]\n\
         kind = \"dumbbell\"\n\
         pairs = {pairs} # {}\n\
         access = {{ rate = \"10 Gbit/s\", delay = \"0 ms\" }}\n\n\
         [network.bottleneck]\n\
         {}\n\
         delay = \"{:.3} ms\" # one way: half of {basis}; what others have beyond it is added to each\n\
         queue = {{ kind = \"drop-tail\", limit = \"{} packets\" }} # {}\n",
        summary.connections,
        if summary.openers > MOST_PAIRS {
            format!("of {} hosts that opened connections; they share", summary.openers)
        } else {
            String::from("one for each host that opened connections")
        },
        forward.text("rate"),
        rtt_s * 500.0,
        queue.0,
        queue.1,
    );
    if (forward.bps - backward.bps).abs() > 0.1 * forward.bps {
        let _ = write!(
            text,
            "\n[network.bottleneck.reverse] # from the hosts that opened\n{}\n",
            backward.text("rate")
        );
    }
    let _ = write!(
        text,
        "\n[tcp]\n\
         profile = \"linux\" # of all hosts: a capture does not say what they run\n\n\
         [[traffic]]\n\
         name = \"recorded\"\n\
         kind = \"replay\"\n\
         file = {file} # connection vectors, as tmix writes them\n\
         time_scale = 1 # 0.5: twice the load\n\
         rtt_scale = 1\n\
         {}\n\
         # More traffic beside it, for example:\n\
         # [[traffic]]\n\
         # name = \"backup\"\n\
         # kind = \"bulk\"\n\
         # count = 1\n\n\
         [run]\n\
         duration = \"{duration_s:.0} s\" # the capture had {:.3} s\n\
         seeds = 5 # starts and sizes are the same in all of them: few are enough\n",
        match summary.source {
            // The losses and windows of a capture are in what is simulated: a queue, and the profile's own.
            "capture" =>
                "windows = false # true: no more than the largest windows seen\n\
                 losses = false # true: the retransmitted shares as random losses, beside those of the queue\n",
            // Of a file of vectors nothing else is known.
            _ =>
                "windows = true # the windows of the file; false: those of the profile\n\
                 losses = true # the loss rates of the file, beside what the queue drops\n",
        },
        summary.span_s
    );
    text
}

struct LineRate {
    bps: f64,
    why: String,
}

impl LineRate {
    fn text(&self, key: &str) -> String {
        format!("{key} = \"{}\" # {}", rate(self.bps), self.why)
    }
}

/// The rate of a direction: 0 from the hosts that opened, 1 to them.
fn line_rate(summary: &Summary, direction: usize) -> LineRate {
    let estimate = &summary.rate[direction];
    let other = &summary.rate[1 - direction];
    let most = |estimate: &RateEstimate| estimate.bps.filter(|_| estimate.bytes > 0);
    match (most(estimate), most(other)) {
        // Little was sent this way: lines are mostly the same both ways.
        (own, Some(bps)) if estimate.bytes * 5 < other.bytes && own.is_none_or(|own| own < bps) => LineRate {
            bps,
            why: String::from("as the other way: too little was sent this way to tell"),
        },
        (Some(bps), _) => LineRate {
            bps,
            why: String::from(match estimate.basis {
                Basis::Held => "an estimate: the line held this for half seconds",
                Basis::Spacing => "an estimate from the spacing of packets",
                Basis::AtLeast => {
                    "only a lower bound: the line was never seen full. Write what you know of it"
                }
            }),
        },
        (None, _) => {
            // A file of vectors says nothing about the line: one that is 70 % full.
            let bytes = summary
                .segments
                .iter()
                .map(|segments| segments.bytes)
                .max()
                .unwrap_or(0);
            LineRate {
                bps: (bytes as f64 * 8.0 / summary.span_s.max(1.0) / 0.7).max(100_000.0),
                why: String::from(
                    "not known: what was sent would fill 70 % of it. Write what you know of it",
                ),
            }
        }
    }
}

/// Room of the queue, and where it comes from.
fn queue_packets(summary: &Summary, bps: f64) -> (u64, &'static str) {
    let packets = |seconds: f64| ((seconds * bps / 12_000.0) as u64).clamp(20, 10_000);
    let waited = summary
        .beyond_rtt_s
        .filter(|beyond| beyond.n >= 100 && beyond.p99 > 0.001);
    match (waited, summary.rtt_s) {
        (Some(waited), _) => (
            packets(waited.p99),
            "what round-trip times grew by, 99th percentile: an estimate",
        ),
        (None, Some(rtt)) => (
            packets(rtt.p90),
            "one bandwidth-delay product: queues were not seen",
        ),
        (None, None) => (100, "not known"),
    }
}

/// Pairs of hosts of a scenario.
const MOST_PAIRS: u64 = 64;
