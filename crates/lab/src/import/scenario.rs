//! The scenario that an import writes: a file like any other, with the measured numbers as comments.

use super::rate::Basis;
use super::summary::{Summary, rate};
use std::fmt::Write as _;

/// Connections that are replayed from a file of their own, as a group of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name of the group.
    pub name: &'static str,
    /// Opened from the other side than the first connection of all.
    pub back: bool,
    /// Long transfers.
    pub long: bool,
    /// How many.
    pub connections: u64,
}

/// The groups that connections are dealt to, those without any left out.
pub fn parts(summary: &Summary) -> Vec<Part> {
    let long = summary.long;
    let short = [
        summary.connections - summary.back - long[0],
        summary.back - long[1],
    ];
    let back = if short[0] > 0 { "recorded-back" } else { "recorded" };
    let part = |name, back, long, connections| Part {
        name,
        back,
        long,
        connections,
    };
    let mut parts = vec![
        part("recorded", false, false, short[0]),
        part(back, true, false, short[1]),
        part(LONG[0], false, true, long[0]),
        part(LONG[1], true, true, long[1]),
    ];
    parts.retain(|part| part.connections > 0);
    parts
}

/// Whether a group of this name has long transfers.
pub fn is_long(group: &str) -> bool {
    LONG.contains(&group)
}

/// Congestion controls that recording and replay were compared with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Controllers {
    /// That of all hosts; `None`: the profile's.
    pub all: Option<&'static str>,
    /// What groups have instead, by name.
    pub groups: Vec<(&'static str, &'static str)>,
    /// Scale of all round-trip times, where a queue that stood was in them.
    pub rtt_scale: Option<f64>,
    /// Whether the recorded shares of retransmissions are replayed as random losses.
    pub losses: bool,
    /// So many times the room of the queues that the recording shows, if not once: of a queue that was never full it shows the least only.
    pub room: Option<u32>,
    /// Why, in words, for the comment.
    pub why: String,
}

/// The text of a scenario that replays the files of connection vectors `vectors`, one for each part.
pub fn text(title: &str, vectors: &[String], summary: &Summary, controllers: &Controllers) -> String {
    let mut text = String::new();
    let title = title.replace(
        |letter: char| letter == '"' || letter == '\\' || letter.is_control(),
        "'",
    );
    // What a line can show of names.
    let shown: Vec<String> = vectors
        .iter()
        .map(|name| name.replace(char::is_control, " "))
        .collect();
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
    let queues = [&backward, &forward].map(|line| {
        let (packets, basis) = queue_packets(summary, line.like, line.bps);
        match controllers.room {
            None => (packets, basis.to_owned()),
            Some(times) => (
                u64::from(times) * packets,
                format!("{times} times {packets}: with less the replay loses packets, and the recording lost none ({packets}: {basis})"),
            ),
        }
    });
    let queue = &queues[1];
    let mtu = mtu(summary);
    let (link_mtu, line_mtu) = match mtu {
        DEFAULT_MTU => (String::new(), String::new()),
        mtu => (
            format!(", mtu = \"{mtu} B\""),
            format!(
                "mtu = \"{mtu} B\" # the largest packet: most of the data had segments of {} bytes at most\n",
                mtu - HEADERS as u32
            ),
        ),
    };
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
         access = {{ rate = \"10 Gbit/s\", delay = \"0 ms\"{link_mtu} }}\n\n\
         [network.bottleneck]\n\
         {}\n\
         delay = \"{:.3} ms\" # one way: {basis}\n\
         {line_mtu}\
         queue = {{ kind = \"drop-tail\", limit = \"{} packets\" }} # {}\n",
        summary.connections,
        shown.join(" and "),
        match whose(summary) {
            [true, false] => String::from("The hosts on the right opened them."),
            [true, true] => format!(
                "The hosts on the right opened them, those on the left {} of them.",
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
            "\n[network.bottleneck.reverse] # from the hosts on the right\n{}\n\
             queue = {{ kind = \"drop-tail\", limit = \"{} packets\" }} # {}\n",
            backward.text("rate"),
            queues[0].0,
            queues[0].1,
        );
    }
    let unseen = not_seen(summary);
    if let Some(direction) = unseen.filter(|_| !text.contains("[network.bottleneck.reverse]")) {
        let _ = write!(
            text,
            "# The other direction was not seen: {} too little was sent to show its rate. It is taken to be the same. Where it is\n\
             # another (most lines send slower than they receive), write [network.bottleneck.reverse] with its rate.\n",
            match direction {
                0 => "from the hosts on the right",
                _ => "to the hosts on the right",
            }
        );
    }
    let _ = write!(
        text,
        "\n[tcp]\n\
         profile = \"linux\" # of all hosts: a capture does not say what they run\n\
         {}{}\n\
         {}\n\
         # More traffic beside it, for example{}:\n\
         # [[traffic]]\n\
         # name = \"backup\"\n\
         # kind = \"bulk\"\n\
         # count = 1\n\n\
         [run]\n\
         duration = \"{duration_s:.0} s\" # the capture had {:.3} s{}\n\
         seeds = 10 # sizes are the same in all of them, starts but for their jitter\n",
        match controllers.all {
            Some(name) => format!("congestion_control = \"{name}\" # {}\n", controllers.why),
            None => String::new(),
        },
        if summary.unheld >= LEAST_UNHELD {
            "nagle = false # small segments left while others were not acknowledged: without it they would wait for each other\n"
        } else {
            ""
        },
        traffic(vectors, summary, controllers, forward.bps),
        match unseen {
            Some(0) => " (with direction = \"up\" it would fill the direction whose rate was not seen)",
            Some(_) => " (it fills the direction whose rate was not seen)",
            None => "",
        },
        summary.span_s,
        if summary.span_s + 1.0 > DAY_S {
            ": only its first day is replayed"
        } else {
            ""
        }
    );
    text
}

/// The groups that replay the files `vectors`, one for each part.
fn traffic(vectors: &[String], summary: &Summary, controllers: &Controllers, bps: f64) -> String {
    let jitter_us = libm::ceil((3.0 * packet_bits(summary) / bps).clamp(1e-6, 0.1) * 1e6);
    let parts = parts(summary);
    let groups = parts.iter().zip(vectors).enumerate();
    let groups = groups.map(|(number, (part, file))| {
        // What is explained once is not explained again.
        let first = |comment: &'static str| if number == 0 { comment } else { "" };
        let mut text = String::new();
        if part.long {
            text.push_str("# Long transfers: for 10 s or more, or half of the capture, and ten times what the line holds.\n");
        } else if number > 0 {
            text.push_str("# What the other side opened. Scale both alike.\n");
        }
        let file = serde_json::Value::from(file.as_str()).to_string();
        let _ = writeln!(
            text,
            "[[traffic]]\nname = \"{}\"\nkind = \"replay\"\nfile = {}{}",
            part.name,
            file.replace('\u{7f}', "\\u007f"),
            first(" # connection vectors, as tmix writes them"),
        );
        if part.long {
            let _ = writeln!(
                text,
                "latency_sensitive = {}",
                match parts.iter().all(|part| part.long) {
                    true => "true # there is nothing else: how soon these finish is all that can be asked",
                    false => "false # nobody waits for them",
                }
            );
        }
        if part.back {
            text.push_str("direction = \"up\" # the hosts on the left opened them\n");
        }
        if let Some((_, name)) = controllers.groups.iter().find(|(group, _)| *group == part.name) {
            let _ = writeln!(text, "tcp = {{ congestion_control = \"{name}\" }} # {}", controllers.why);
        }
        let _ = writeln!(text, "time_scale = 1{}", first(" # 0.5: twice the load"));
        let _ = write!(text, "rtt_scale = {}", controllers.rtt_scale.unwrap_or(1.0));
        if let Some(standing) = summary.standing.filter(|_| controllers.rtt_scale.is_some()) {
            let _ = write!(
                text,
                " # all hosts as near as the nearest, with which the replay fits better: {} of {} pairs seem farther only by a queue",
                standing.pairs, standing.of
            );
        } else if let Some(standing) = summary.standing {
            let _ = write!(
                text,
                " # {}: all hosts as near as the nearest; {} of {} pairs may be farther only by a queue",
                standing.scale(),
                standing.pairs,
                standing.of
            );
        }
        let _ = writeln!(
            text,
            "\nstart_jitter = \"{jitter_us} us\"{}",
            first(" # each connection starts up to a few packets' time later, drawn anew for each seed: else all seeds are one"),
        );
        text.push_str(match (summary.is_capture(), number) {
            (true, 0) if controllers.losses => {
                "windows = false # true: no more than the largest windows seen\n\
                 losses = true # the retransmitted shares as random losses, with which the replay fits clearly better\n"
            }
            (true, _) if controllers.losses => "windows = false\nlosses = true\n",
            // The losses and windows of a capture are in what is simulated: a queue, and the profile's own.
            (true, 0) => {
                "windows = false # true: no more than the largest windows seen\n\
                 losses = false # true: the retransmitted shares as random losses, beside those of the queue\n"
            }
            (true, _) => "windows = false\nlosses = false\n",
            // Of a file of vectors nothing else is known.
            (false, _) => {
                "windows = true # the windows of the file; false: those of the profile\n\
                 losses = true # the loss rates of the file, beside what the queue drops\n"
            }
        });
        text
    });
    groups.collect::<Vec<_>>().join("\n")
}

/// Whether connections were opened from the side of the first, and from the other.
pub(super) fn whose(summary: &Summary) -> [bool; 2] {
    [summary.back < summary.connections, summary.back > 0]
}

/// The largest packet of the scenario's links: that of the recorded segments (RFC 9293 3.7.1), as an Ethernet carries it where nothing else was seen.
fn mtu(summary: &Summary) -> u32 {
    match summary.mss {
        // Behind the headers of IPv4 and of IPv6.
        None | Some(1460 | 1440) => DEFAULT_MTU,
        Some(mss) => (u32::from(mss) + HEADERS as u32).max(LEAST_MTU),
    }
}

/// A full packet.
fn packet_bits(summary: &Summary) -> f64 {
    8.0 * f64::from(mtu(summary))
}

struct LineRate {
    bps: f64,
    why: String,
    /// The direction that it is taken from.
    like: usize,
    /// Whether the rate is no measurement of the line.
    doubted: bool,
}

impl LineRate {
    fn text(&self, key: &str) -> String {
        let wish = match self.doubted {
            true => ". Write what you know of it",
            false => "",
        };
        format!("{key} = \"{}\" # {}{wish}", rate(self.bps), self.why)
    }

    fn doubted(self) -> LineRate {
        LineRate {
            doubted: true,
            ..self
        }
    }
}

/// The rate of a direction: 0 from the hosts that opened, 1 to them.
fn line_rate(summary: &Summary, direction: usize) -> LineRate {
    let estimate = &summary.rate[direction];
    let payload = [direction, 1 - direction].map(|direction| summary.segments[direction].bytes);
    // Of a direction of which hardly more than ACKs were seen nothing is known. It gets the other's rate, unless it certainly has
    // more: there it matters little. A direction with data never gets its rate from one with ACKs.
    if (summary.rate[1 - direction].bps.is_some() || estimate.bps.is_none())
        && !estimate.basis.is_estimate()
        && payload[0] * 5 < payload[1]
    {
        let other = own_rate(summary, 1 - direction);
        if estimate.at_least_bps.is_none_or(|least| least < other.bps) {
            // With where it is from: where only this direction is written, that stands nowhere else.
            return LineRate {
                why: format!(
                    "not known, for too little was sent this way: as the other way, {}",
                    other.why
                ),
                ..other
            }
            .doubted();
        }
    }
    own_rate(summary, direction)
}

/// The direction of a capture that gets the rate of the other one, because too little was sent that way.
pub(super) fn not_seen(summary: &Summary) -> Option<usize> {
    let has_data = summary.segments.iter().any(|segments| segments.bytes > 0);
    let taken = |&direction: &usize| line_rate(summary, direction).like != direction;
    [0, 1]
        .into_iter()
        .find(|direction| summary.is_capture() && has_data && taken(direction))
}

/// The rate of a direction by what is known of it.
fn own_rate(summary: &Summary, direction: usize) -> LineRate {
    let estimate = &summary.rate[direction];
    // One packet in a thousand that is late does not show that they wait for the line.
    let waited = summary.wait_s[direction].is_some_and(|wait| wait.p99 > 0.001);
    let of = |bps: f64, why: &str| LineRate {
        bps,
        why: String::from(why),
        like: direction,
        doubted: false,
    };
    let quick = |bps: f64| {
        of(bps, "so much that a packet takes a hundredth of the smallest round-trip time: none was seen to wait for the line").doubted()
    };
    let unnoticed = unnoticed(summary, direction).unwrap_or(0.0);
    if let Some(bps) = estimate.guess_bps {
        return of(
            bps,
            match estimate.held_bps {
                Some(_) => {
                    "a guess: the line held this while packets had to wait, for it or among other traffic"
                }
                None if waited => "a guess from the spacing of packets",
                None => "a guess from the spacing of packets, none of which was seen to wait for the line",
            },
        )
        .doubted();
    }
    match (estimate.bps, estimate.basis) {
        (Some(bps), Basis::AtLeast) if !waited && MANIFOLD * bps >= unnoticed => of(
            MANIFOLD * bps,
            "20 times what certainly came, so that it adds no noticeable wait: no packet was seen to wait for the line",
        )
        .doubted(),
        (Some(_), Basis::AtLeast) if !waited => quick(unnoticed),
        (Some(bps), Basis::AtLeast) => {
            // A longer packet shows what its bytes take as a wait: half of them waited no longer. Of streams that are no thin ones
            // the smallest round-trip time may be that of long packets too, unless handshakes were seen.
            let median = summary.wait_s[direction].map_or(0.0, |wait| wait.p50);
            let median = if median > 0.0 { median } else { TICK_S };
            let payload = payload_of_segment(summary, direction);
            let shaken = summary.handshake_rtt_s.map_or(0, |rtt| rtt.n);
            let by_length = match payload < MOST_OF_THIN || 2 * shaken > summary.connections {
                true => 8.0 * payload / median,
                false => 0.0,
            };
            match by_length.min(unnoticed) {
                least if least > bps => of(least, "a guess: at less, packets would have taken longer than half of them did"),
                _ => of(bps, basis(estimate.basis)),
            }
            .doubted()
        }
        (Some(bps), Basis::AtMost | Basis::Unknown) => of(bps, basis(estimate.basis)).doubted(),
        (Some(bps), Basis::Held | Basis::Spacing) => of(bps, basis(estimate.basis)),
        (None, _) => {
            // A file of vectors, or data without their ACKs, say nothing about the line: one that is 70 % full, unless hardly anything
            // was sent.
            let bytes = summary.segments.iter().map(|segments| segments.bytes).max();
            let load = bytes.unwrap_or(0) as f64 * 8.0 / summary.span_s.max(1.0);
            match unnoticed > THIN * load && !waited {
                true => quick(unnoticed),
                false => of((load / 0.7).max(100_000.0), "not known: what was sent would fill 70 % of it").doubted(),
            }
        }
    }
}

/// The rate at which a packet of this direction takes so little time that nobody notices; `None`: no data or no round-trip time is known.
fn unnoticed(summary: &Summary, direction: usize) -> Option<f64> {
    let payload = payload_of_segment(summary, direction);
    let rtt = summary.rtt_s.filter(|rtt| rtt.min > 0.0 && payload > 0.0)?;
    Some((8.0 * (payload + HEADERS) / (UNNOTICED * rtt.min)).min(MOST_BPS))
}

/// Mean payload of a segment.
fn payload_of_segment(summary: &Summary, direction: usize) -> f64 {
    let segments = summary.segments[direction];
    segments.bytes as f64 / segments.segments.max(1) as f64
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
    let packets = |seconds: f64| (libm::ceil(seconds * bps / packet_bits(summary)) as u64).clamp(20, 10_000);
    let waited = summary.queue_s[direction].filter(|waited| *waited > 0.001);
    // Few packets are lost at a time where a line holds many; then the longest waits are all as long as the queue.
    let segments = summary.segments[direction];
    let full = summary.wait_s[direction].is_some_and(|waited| waited.p99 > FULL_SHARE * waited.max);
    let lost = segments.rate > 0.001 || segments.retransmitted >= LEAST_LOST && full;
    // A queue that always stood is no distance, nor is the one of the other direction that others found.
    let rtt_s = summary.rtt_s.map(|rtt| match summary.standing {
        Some(standing) => standing.least_s,
        None if direction == summary.busy() => rtt.p50,
        None => rtt.min,
    });
    match (waited, rtt_s) {
        (Some(waited), _) if lost => match full_s(summary, direction) {
            Some((full, true)) => (
                packets(full),
                "what packets waited when others were lost: an estimate. A few packets waited much longer, which is taken for a hiccup of something else",
            ),
            Some((full, false)) => (
                packets(full),
                "what packets waited when others were lost: an estimate. Many waited longer: the queue may serve its flows in turn, which drop-tail does not",
            ),
            None => (
                packets(waited),
                "hardly any packet waited longer (99.9th percentile): an estimate",
            ),
        },
        // It was never full: it has room for at least what was seen.
        (Some(waited), Some(rtt_s)) => (
            packets(waited.max(rtt_s)),
            "no less than was seen to wait, nor than a bandwidth-delay product: it was never seen full",
        ),
        (_, Some(rtt_s)) => (
            packets(rtt_s),
            "one bandwidth-delay product: queues were not seen",
        ),
        (_, None) => (100, "not known"),
    }
}

/// What packets waited when others were lost, where some waited much longer, and whether these are a few: a queue that drops is full, and a few
/// packets that are later than that were held up elsewhere, as by a host or a radio that paused.
pub(super) fn full_s(summary: &Summary, direction: usize) -> Option<(f64, bool)> {
    let (at_loss, wait) = summary.wait_at_loss_s[direction].zip(summary.wait_s[direction])?;
    // Random losses, and reordering that looks like them, come at any length of the queue.
    let alike = at_loss.p90 < ALIKE * at_loss.p50;
    let full = alike && at_loss.n >= LEAST_LOST && at_loss.p50 > 0.5 * wait.p99;
    let few = wait.p99 < HICCUP * at_loss.p50;
    let full_s = if few {
        at_loss.p50.max(wait.p99)
    } else {
        at_loss.p50
    };
    let most = summary.queue_s[direction].unwrap_or(0.0);
    (full && most > HICCUP * full_s).then_some((full_s, few))
}

/// Groups of long transfers.
const LONG: [&str; 2] = ["long", "long-back"];
/// Longest run unless options ask for more.
const DAY_S: f64 = 86_400.0;
/// Mean payload of a thin stream's segments is less (bytes).
const MOST_OF_THIN: f64 = 536.0;
/// Fewer may be chance: ACKs that the capture missed.
const LEAST_UNHELD: u64 = 3;
/// A queue that drops fewer may be a link that loses some.
const LEAST_LOST: u64 = 10;
/// One packet in a hundred waits longer than this share of the longest wait, where a queue was full.
const FULL_SHARE: f64 = 0.8;
/// Nearly all packets next to those that a full queue drops wait for no more than so many times what half of them do.
const ALIKE: f64 = 1.1;
/// Beyond so many times what packets waited when others were lost it is no wait in the same queue.
const HICCUP: f64 = 1.25;
/// A line that nothing waited for is as many times faster than what came.
const MANIFOLD: f64 = 20.0;
/// Share of a round-trip time that nobody notices.
const UNNOTICED: f64 = 0.01;
/// A line of which less than one part of so many is used holds a thin stream.
const THIN: f64 = 10.0;
/// No wait by timestamps is less than one of their ticks.
const TICK_S: f64 = 0.001;
/// Layer-3 bytes of headers.
const HEADERS: f64 = 40.0;
/// That of a link of which nothing else is said.
const DEFAULT_MTU: u32 = 1500;
/// The smallest that a link can have (RFC 791 3.2).
const LEAST_MTU: u32 = 68;
/// That of the hosts' own links.
const MOST_BPS: f64 = 1e10;
/// Pairs of hosts of a scenario.
const MOST_PAIRS: u64 = 64;

#[cfg(test)]
mod tests {
    use super::{Basis, Controllers, Summary, line_rate, queue_packets, text};
    use crate::import::rate::RateEstimate;
    use crate::import::summary::{Quantiles, Segments};
    use fleetfoot_sim::output::Histogram;

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

    #[test]
    fn a_direction_that_was_not_seen_is_said_to_be_taken_as_the_other() {
        let mut summary = Summary {
            source: "capture",
            connections: 3,
            openers: 1,
            rate: [RateEstimate::default(), estimate(8e6, Basis::Spacing)],
            segments: [Segments::of(1000, 10, 0), Segments::of(7_000_000, 5000, 0)],
            span_s: 8.0,
            ..Summary::default()
        };
        let written = |summary: &Summary| {
            text(
                "A capture",
                &[String::from("a.cvec")],
                summary,
                &Controllers::default(),
            )
        };
        let file = written(&summary);
        for part in [
            "# The other direction was not seen: from the hosts on the right too little was sent",
            "It is taken to be the same.",
            "for example (with direction = \"up\" it would fill the direction whose rate was not seen):",
        ] {
            assert!(file.contains(part), "{part}: {file}");
        }
        let said = summary.to_text();
        assert!(
            said.contains("not seen: too little was sent this way, so the scenario takes it to be as fast as the other way"),
            "{said}"
        );
        summary.rate[0] = estimate(1e6, Basis::Spacing);
        let file = written(&summary);
        assert!(
            file.contains("[network.bottleneck.reverse]") && !file.contains("not seen"),
            "{file}"
        );
        assert!(!summary.to_text().contains("not seen"));
    }

    /// A sample of so many times of so many seconds.
    fn times(parts: &[(u64, f64)]) -> Option<Quantiles> {
        let mut histogram = Histogram::new();
        for (count, seconds) in parts {
            (0..*count).for_each(|_| histogram.record((seconds * 1e9) as u64));
        }
        Quantiles::of(&histogram, 1e-9)
    }

    #[test]
    fn a_chatty_stream_is_not_held_by_a_line_that_its_own_packets_contradict() {
        // 1.2 kB each way, 20 ms away: at the 683 kbit/s that certainly came a packet takes 14.7 ms, and none waited for even one.
        let mut summary = Summary {
            rate: [RateEstimate::default(), estimate(683e3, Basis::AtLeast)],
            segments: [Segments::of(1_440_000, 1200, 0); 2],
            connections: 3,
            rtt_s: times(&[(3, 0.0203)]),
            handshake_rtt_s: times(&[(3, 0.0203)]),
            wait_s: [None, times(&[(1198, 0.0004), (2, 0.0043)])],
            queue_s: [None, Some(0.0043)],
            span_s: 17.7,
            ..Summary::default()
        };
        // One of a thousand was late: 20 times the load, or a packet in a hundredth of the round-trip time.
        let line = line_rate(&summary, 1);
        let known = 8.0 * 1240.0 / 0.000_203;
        assert!(
            (line.bps / known - 1.0).abs() < 0.01,
            "{}: {}",
            line.bps,
            line.why
        );
        // Some waited: half of the packets took no more than 2 ms longer than those of the handshakes.
        summary.wait_s[1] = times(&[(1000, 0.002), (200, 0.004)]);
        let line = line_rate(&summary, 1);
        assert!(
            (line.bps / 4.8e6 - 1.0).abs() < 0.01,
            "{}: {}",
            line.bps,
            line.why
        );
        assert!(line.text("rate").ends_with("Write what you know of it"));
        // Without handshakes the smallest round-trip time may be that of packets as long.
        summary.handshake_rtt_s = None;
        assert_eq!(line_rate(&summary, 1).bps, 683e3);
    }

    #[test]
    fn packets_are_as_long_as_the_recorded_segments_let_them_be() {
        let mut summary = Summary {
            source: "capture",
            connections: 3,
            openers: 1,
            rate: [RateEstimate::default(), estimate(50e6, Basis::Spacing)],
            segments: [Segments::of(1000, 10, 0), Segments::of(7_000_000, 5000, 0)],
            rtt_s: times(&[(3, 0.08)]),
            span_s: 20.0,
            ..Summary::default()
        };
        // A queue of a bandwidth-delay product: 500 kB.
        for (mss, mtu, packets, jitter_us) in [
            (None, 1500, 334, 720),
            (Some(1460), 1500, 334, 720),
            (Some(1440), 1500, 334, 720),
            (Some(536), 576, 869, 277),
            (Some(1380), 1420, 353, 682),
            (Some(8960), 9000, 56, 4320),
        ] {
            summary.mss = mss;
            let name = [String::from("a.cvec")];
            let written = text("A capture", &name, &summary, &Controllers::default());
            let line = format!("mtu = \"{mtu} B\" # the largest packet");
            assert_eq!(written.contains(&line), mtu != 1500, "{mss:?}: {written}");
            let access = format!("delay = \"0 ms\", mtu = \"{mtu} B\" }}");
            assert_eq!(written.contains(&access), mtu != 1500, "{mss:?}: {written}");
            for part in [
                format!("limit = \"{packets} packets\""),
                format!("start_jitter = \"{jitter_us} us\""),
            ] {
                assert!(written.contains(&part), "{mss:?}, {part}: {written}");
            }
        }
    }

    #[test]
    fn a_hiccup_is_no_room_of_the_queue() {
        // A queue of 80 ms at 50 Mbit/s that drops; six packets of a thousand came 100 to 180 ms late, in two bursts.
        let mut summary = Summary {
            rate: [RateEstimate::default(), estimate(50e6, Basis::Spacing)],
            segments: [Segments::of(500, 5, 0), Segments::of(118_000_000, 81_751, 113)],
            rtt_s: times(&[(56, 0.068)]),
            wait_s: [None, times(&[(900, 0.04), (94, 0.079), (6, 0.18)])],
            queue_s: [None, Some(0.18)],
            wait_at_loss_s: [None, times(&[(5, 0.01), (50, 0.0795), (3, 0.18)])],
            ..Summary::default()
        };
        let (packets, why) = queue_packets(&summary, 1, 50e6);
        assert!(
            (325..340).contains(&packets) && why.contains("hiccup"),
            "{packets}: {why}"
        );
        // Many that waited longer are no hiccup: a queue that serves its flows in turn.
        summary.wait_s[1] = times(&[(900, 0.04), (100, 0.12)]);
        let (packets, why) = queue_packets(&summary, 1, 50e6);
        assert!(
            (330..340).contains(&packets) && why.contains("in turn"),
            "{packets}: {why}"
        );
        // Without one, what hardly any packet waited longer than.
        (summary.wait_s[1], summary.queue_s[1]) = (times(&[(900, 0.04), (100, 0.08)]), Some(0.08));
        let (packets, why) = queue_packets(&summary, 1, 50e6);
        assert!(
            (330..340).contains(&packets) && why.contains("99.9th"),
            "{packets}: {why}"
        );
        // Losses that come at any length of the queue show no room.
        (summary.wait_s[1], summary.queue_s[1]) = (times(&[(900, 0.04), (94, 0.079), (6, 0.18)]), Some(0.18));
        for at_loss in [[(50, 0.02), (5, 0.079)], [(30, 0.06), (25, 0.079)]] {
            summary.wait_at_loss_s[1] = times(&at_loss);
            assert_eq!(queue_packets(&summary, 1, 50e6).0, 750);
        }
    }

    #[test]
    fn the_room_of_a_quiet_direction_is_not_that_of_the_other_one() {
        // An upload whose queue of 160 ms most connections found; what came back waited 4 ms at most.
        let summary = Summary {
            segments: [
                Segments::of(24_400_000, 16_900, 26),
                Segments::of(1_500_000, 1052, 0),
            ],
            rtt_s: times(&[(1, 0.0404), (38, 0.204)]),
            wait_s: [times(&[(5899, 0.165)]), times(&[(1052, 0.003)])],
            queue_s: [Some(0.2), Some(0.004)],
            ..Summary::default()
        };
        let (packets, _) = queue_packets(&summary, 1, 50e6);
        assert_eq!(packets, 169, "50 Mbit/s for 40.4 ms");
    }

    #[test]
    fn a_bound_is_never_the_rate_of_a_line_that_nobody_waited_for() {
        let rtt = |seconds: f64| times(&[(1, seconds)]);
        let mut summary = Summary {
            rate: [RateEstimate::default(), estimate(5e4, Basis::AtLeast)],
            segments: [Segments::of(100, 1, 0), Segments::of(24_000, 240, 0)],
            span_s: 60.0,
            ..Summary::default()
        };
        // Both directions get the manifold of what came, whether data went there or ACKs.
        assert_eq!([0, 1].map(|way| line_rate(&summary, way).bps), [1e6, 1e6]);
        // 140 bytes in a hundredth of 40 ms.
        summary.rtt_s = rtt(0.04);
        let known = 8.0 * 140.0 / 0.0004;
        for way in [0, 1] {
            let line = line_rate(&summary, way);
            assert!(
                (line.bps / known - 1.0).abs() < 0.01,
                "{}: {}",
                line.bps,
                line.why
            );
            assert!(
                line.text("rate").ends_with(". Write what you know of it"),
                "{}",
                line.text("rate")
            );
        }
        // The same where there is not even a bound, but hardly anything was sent.
        summary.rate[1] = RateEstimate::default();
        assert!((line_rate(&summary, 1).bps / known - 1.0).abs() < 0.01);
        summary.segments[1] = Segments::of(24_000_000, 240_000, 0);
        assert!((line_rate(&summary, 1).bps / (24e6 * 8.0 / 60.0 / 0.7) - 1.0).abs() < 0.01);
        // Packets waited, half of them for 2 ms at most: their 100 bytes did not take longer.
        summary.rate[1] = estimate(5e4, Basis::AtLeast);
        summary.segments[1] = Segments::of(24_000, 240, 0);
        (summary.queue_s[1], summary.wait_s[1]) = (Some(0.002), rtt(0.002));
        assert!(
            (line_rate(&summary, 1).bps / 4e5 - 1.0).abs() < 0.01,
            "{}",
            line_rate(&summary, 1).bps
        );
    }
}
