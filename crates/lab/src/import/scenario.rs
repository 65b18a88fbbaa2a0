//! The scenario that an import writes: a file like any other, with the measured numbers as comments.

use super::rate::Basis;
use super::summary::{Summary, rate};
use std::fmt::Write as _;

/// The text of a scenario that replays the files of connection vectors `vectors`: of connections opened from the side of the first, and
/// from the other.
pub fn text(title: &str, vectors: [&str; 2], summary: &Summary) -> String {
    let mut text = String::new();
    let title = title.replace(
        |letter: char| letter == '"' || letter == '\\' || letter.is_control(),
        "'",
    );
    // Basic strings of TOML, quotes and all; the comment shows the name as far as a line can.
    let files = vectors.map(|name| {
        let text = serde_json::Value::from(name).to_string();
        text.replace('\u{7f}', "\\u007f")
    });
    let shown = vectors.map(|name| name.replace(char::is_control, " "));
    let (rtt_s, basis) = match &summary.rtt_s {
        Some(rtt) => (
            rtt.min,
            "half of the smallest round-trip time of all connections; what others have beyond it is added to each",
        ),
        None => (
            0.02,
            "not known: no connection has a known round-trip time. Write what you know of it",
        ),
    };
    let openers = summary.openers.max(summary.back_openers);
    let pairs = openers.clamp(1, MOST_PAIRS);
    let both = whose(summary) == [true, true];
    let [backward, forward] = [0, 1].map(|direction| line_rate(summary, direction));
    let queues = [&backward, &forward].map(|line| queue_packets(summary, line.like, line.bps));
    let queue = queues[1];
    let duration_s = (summary.span_s + 1.0).ceil().min(DAY_S);
    let _ = write!(
        text,
        "# Made by `fleetfoot import`. Everything here can be changed.\n\
         #\n\
         # {} connections, replayed from {}: their starts, round-trip times, sizes and waits are those of the\n\
         # recording; what network and TCP make of them is simulated. {}\n\
         title = \"{title}\"\n\n\
         [network]\n\
         kind = \"dumbbell\"\n\
         pairs = {pairs} # {}\n\
         access = {{ rate = \"10 Gbit/s\", delay = \"0 ms\" }}\n\n\
         [network.bottleneck]\n\
         {}\n\
         delay = \"{:.3} ms\" # one way: {basis}\n\
         queue = {{ kind = \"drop-tail\", limit = \"{} packets\" }} # {}\n",
        summary.connections,
        match both {
            true => shown.join(" and "),
            false => shown[0].clone(),
        },
        match whose(summary) {
            [true, false] => String::from("The hosts on the right opened them."),
            [true, true] => format!(
                "The hosts on the right opened them, but {} those on the left.",
                summary.back
            ),
            [false, _] => String::from("The hosts on the left opened them."),
        },
        match (openers > MOST_PAIRS, both) {
            (true, _) => format!("of {openers} hosts that opened connections; they share"),
            (false, false) => String::from("one for each host that opened connections"),
            (false, true) =>
                String::from("one for each host that opened connections, on the side with more of them"),
        },
        forward.text("rate"),
        rtt_s * 500.0,
        queue.0,
        queue.1,
    );
    if (forward.bps - backward.bps).abs() > 0.01 * forward.bps || queues[0].0 != queue.0 {
        let _ = write!(
            text,
            "\n[network.bottleneck.reverse] # from the hosts that opened\n{}\n\
             queue = {{ kind = \"drop-tail\", limit = \"{} packets\" }} # {}\n",
            backward.text("rate"),
            queues[0].0,
            queues[0].1,
        );
    }
    let _ = write!(
        text,
        "\n[tcp]\n\
         profile = \"linux\" # of all hosts: a capture does not say what they run\n\
         {}\n\
         {}\n\
         # More traffic beside it, for example:\n\
         # [[traffic]]\n\
         # name = \"backup\"\n\
         # kind = \"bulk\"\n\
         # count = 1\n\n\
         [run]\n\
         duration = \"{duration_s:.0} s\" # the capture had {:.3} s{}\n\
         seeds = 10 # sizes are the same in all of them, starts but for their jitter\n",
        if summary.unheld >= LEAST_UNHELD {
            "nagle = false # small segments left while others were not acknowledged: without it they would wait for each other\n"
        } else {
            ""
        },
        traffic(&files, summary, forward.bps),
        summary.span_s,
        if summary.span_s + 1.0 > DAY_S {
            ": only its first day is replayed"
        } else {
            ""
        }
    );
    text
}

/// The groups that replay `files`.
fn traffic(files: &[String; 2], summary: &Summary, bps: f64) -> String {
    let jitter_us = libm::ceil((36_000.0 / bps).clamp(1e-6, 0.1) * 1e6);
    let known = match summary.source {
        // The losses and windows of a capture are in what is simulated: a queue, and the profile's own.
        "capture" => {
            "windows = false # true: no more than the largest windows seen\n\
             losses = false # true: the retransmitted shares as random losses, beside those of the queue\n"
        }
        // Of a file of vectors nothing else is known.
        _ => {
            "windows = true # the windows of the file; false: those of the profile\n\
             losses = true # the loss rates of the file, beside what the queue drops\n"
        }
    };
    let up = "direction = \"up\" # the hosts on the left opened them\n";
    let [opened, opened_back] = whose(summary);
    let mut text = format!(
        "[[traffic]]\n\
         name = \"recorded\"\n\
         kind = \"replay\"\n\
         file = {} # connection vectors, as tmix writes them\n\
         {}\
         time_scale = 1 # 0.5: twice the load\n\
         rtt_scale = 1\n\
         start_jitter = \"{jitter_us} us\" # each connection starts up to a few packets' time later, drawn anew for each seed: else all seeds are one\n\
         {known}",
        files[0],
        if opened { "" } else { up },
    );
    if opened && opened_back {
        let _ = write!(
            text,
            "\n# What the other side opened. Scale both alike.\n\
             [[traffic]]\n\
             name = \"recorded-back\"\n\
             kind = \"replay\"\n\
             file = {}\n\
             {up}\
             time_scale = 1\n\
             rtt_scale = 1\n\
             start_jitter = \"{jitter_us} us\"\n\
             windows = false\n\
             losses = false\n",
            files[1],
        );
    }
    text
}

/// Whether connections were opened from the side of the first, and from the other.
pub(super) fn whose(summary: &Summary) -> [bool; 2] {
    [summary.back < summary.connections, summary.back > 0]
}

struct LineRate {
    bps: f64,
    why: String,
    /// The direction that it is taken from.
    like: usize,
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
    let payload = [direction, 1 - direction].map(|direction| summary.segments[direction].bytes);
    // Of a direction of which hardly more than ACKs were seen nothing is known. It gets the other's rate, unless it certainly has
    // more: there it matters little. A direction with data never gets its rate from one with ACKs.
    if let Some(bps) = other.bps.filter(|_| !estimate.basis.is_estimate())
        && payload[0] * 5 < payload[1]
        && estimate.at_least_bps.is_none_or(|least| least < bps)
    {
        // With its basis: where only this direction is written, it stands nowhere else.
        return LineRate {
            bps,
            why: format!(
                "not known, for too little was sent this way: as the other way, of which it is {}. Write what you know of it",
                basis(other.basis)
            ),
            like: 1 - direction,
        };
    }
    if let Some(bps) = estimate.guess_bps {
        return LineRate {
            bps,
            why: String::from(
                "a guess from the spacing of packets, none of which was seen to wait for the line. Write what you know of it",
            ),
            like: direction,
        };
    }
    let waited = summary.queue_s[direction].is_some_and(|waited| waited > 0.001);
    if let Some(bps) = estimate
        .bps
        .filter(|_| estimate.basis == Basis::AtLeast && !waited)
    {
        return LineRate {
            bps: MANIFOLD * bps,
            why: String::from(
                "20 times what certainly came, so that it adds no noticeable wait: no packet was seen to wait for the line. Write what you know of it",
            ),
            like: direction,
        };
    }
    if let Some(bps) = estimate.bps {
        let more = if estimate.basis.is_estimate() {
            ""
        } else {
            ". Write what you know of it"
        };
        return LineRate {
            bps,
            why: format!("{}{more}", basis(estimate.basis)),
            like: direction,
        };
    }
    // A file of vectors, or data without their ACKs, say nothing about the line: one that is 70 % full.
    let bytes = payload[0].max(payload[1]);
    LineRate {
        bps: (bytes as f64 * 8.0 / summary.span_s.max(1.0) / 0.7).max(100_000.0),
        why: String::from("not known: what was sent would fill 70 % of it. Write what you know of it"),
        like: direction,
    }
}

/// What a rate is.
fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Held => "an estimate: the line held this while packets had to wait",
        Basis::Spacing => "an estimate from the spacing of packets that had to wait",
        Basis::AtLeast => "only a lower bound: nothing shows that the line was full",
        Basis::AtMost | Basis::Unknown => {
            "only an upper bound, that of the path up to where the capture was made"
        }
    }
}

/// Room of the queue in front of the line to the hosts that opened (1) or from them (0), and where it comes from.
fn queue_packets(summary: &Summary, direction: usize, bps: f64) -> (u64, &'static str) {
    let packets = |seconds: f64| (libm::ceil(seconds * bps / 12_000.0) as u64).clamp(20, 10_000);
    let waited = summary.queue_s[direction].filter(|waited| *waited > 0.001);
    let lost = summary.segments[direction].rate > 0.001;
    match (waited, summary.rtt_s) {
        (Some(waited), _) if lost => (
            packets(waited),
            "hardly any packet waited longer (99.9th percentile): an estimate",
        ),
        // It was never full: it has room for at least what was seen.
        (Some(waited), Some(rtt)) => (
            packets(waited.max(rtt.p50)),
            "no less than was seen to wait, nor than a bandwidth-delay product: it was never seen full",
        ),
        (_, Some(rtt)) => (
            packets(rtt.p50),
            "one bandwidth-delay product: queues were not seen",
        ),
        (_, None) => (100, "not known"),
    }
}

/// No longer than this without being told so.
const DAY_S: f64 = 86_400.0;
/// Fewer may be chance: ACKs that the capture missed.
const LEAST_UNHELD: u64 = 3;
/// A line that nothing waited for is as many times faster than what came.
const MANIFOLD: f64 = 20.0;
/// Pairs of hosts of a scenario.
const MOST_PAIRS: u64 = 64;

#[cfg(test)]
mod tests {
    use super::{Basis, Summary, line_rate};
    use crate::import::rate::RateEstimate;
    use crate::import::summary::Segments;

    fn estimate(bps: f64, basis: Basis) -> RateEstimate {
        RateEstimate {
            bps: Some(bps),
            basis,
            at_least_bps: Some(bps).filter(|_| basis == Basis::AtLeast),
            ..RateEstimate::default()
        }
    }

    #[test]
    fn data_never_get_the_rate_of_their_acks() {
        let summary = |rate: [RateEstimate; 2], bytes: [u64; 2]| Summary {
            rate,
            segments: bytes.map(|bytes| Segments::of(bytes, 1, 0)),
            span_s: 8.0,
            ..Summary::default()
        };
        // A download, of which nothing is known but its questions' rate.
        let unknown = summary(
            [estimate(5e6, Basis::Spacing), RateEstimate::default()],
            [1000, 7_000_000],
        );
        let line = line_rate(&unknown, 1);
        assert!(
            (line.bps - 1e7).abs() < 1.0 && line.why.starts_with("not known"),
            "{}",
            line.why
        );
        // Its own way back, with a bound of nothing, gets what the data had, and says so.
        let known = summary(
            [estimate(1e4, Basis::AtLeast), estimate(8e6, Basis::Spacing)],
            [1000, 7_000_000],
        );
        assert_eq!(line_rate(&known, 1).bps, 8e6);
        let back = line_rate(&known, 0);
        assert!(
            back.bps == 8e6 && back.why.starts_with("not known"),
            "{}",
            back.why
        );
        // What was measured stays, however little it was.
        let both = summary(
            [estimate(1e6, Basis::Spacing), estimate(8e6, Basis::Spacing)],
            [1000, 7_000_000],
        );
        assert_eq!(line_rate(&both, 0).bps, 1e6);
    }
}
