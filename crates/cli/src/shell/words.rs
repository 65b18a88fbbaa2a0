//! What is printed at the end of a run.

use crate::output::counted;
use fleetfoot_core::link::Loss;
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::rng::Distribution;
use fleetfoot_lab::compare::link_info;
use fleetfoot_lab::compare::words::seconds;
use fleetfoot_lab::import::flows::{Flow, Incomplete, Sent};
use fleetfoot_lab::live::Run;
use fleetfoot_live::{Direction, Finished, Refusal, SenderSwitches};
use fleetfoot_sim::output::Histogram;
use fleetfoot_sim::spec::{LinkRate, LinkSpec};

const NAMES: [&str; 2] = ["sent", "received"];

/// Both directions, the flows, and how late this machine was.
pub(super) fn summary(finished: &Finished, run: &Run) -> String {
    let mut lines = Vec::new();
    for ((name, direction), record) in NAMES
        .iter()
        .zip(&finished.directions)
        .zip([&run.sent, &run.received])
    {
        let measured = direction.measured();
        let drops: Vec<String> = DropReason::ALL
            .iter()
            .filter(|&&reason| measured.drops[reason as usize] > 0)
            .map(|&reason| format!("{} {}", measured.drops[reason as usize], reason.name()))
            .collect();
        let drops = if drops.is_empty() {
            String::from("none")
        } else {
            drops.join(", ")
        };
        let gone = measured.delivered
            + measured.refused_packets()
            + measured
                .drops
                .iter()
                .sum::<u64>()
                .saturating_sub(measured.drops[DropReason::BitError as usize]);
        let left = match measured.arrived.saturating_sub(gone) {
            0 => String::new(),
            left => format!("; {left} still on the link at the end"),
        };
        lines.push(format!(
            "{name}: {}, {:.2} Mbit/s; in the queue {} (median), {} (95 %), {} (longest); dropped: {drops}; marked: {}{left}",
            counted(measured.delivered, "packet"),
            record.throughput_bps / 1e6,
            ms(&measured.queue_delay, 0.5),
            ms(&measured.queue_delay, 0.95),
            ms(&measured.queue_delay, 1.0),
            direction.marks()
        ));
    }
    lines.extend(not_carried(finished));
    lines.extend(flows(run));
    let late = &run.lateness;
    lines.push(format!(
        "own lateness: {:.0} us on average, {:.2} ms (99 %), {:.2} ms (longest), {:.2} % of packets more than 1 ms",
        late.mean_s * 1e6,
        late.p99_s * 1e3,
        late.max_s * 1e3,
        late.share_above_1ms * 100.0
    ));
    if !run.kept {
        let missed = match run.missed_packets {
            0 => String::new(),
            missed => format!(" {missed} packets were lost because they were not read in time."),
        };
        lines.push(format!(
            "The described link was not kept: this machine was late.{missed}"
        ));
    }
    if let Some(share) = run.waited_for_cores.filter(|_| run.is_starved()) {
        lines.push(format!(
            "Programs waited for a core during {:.0} % of the time: the command's own times are those of a busy machine.",
            share * 100.0
        ));
    }
    if run.unobserved > 0 {
        lines.push(format!(
            "The analysis was slower than the link and lost {}: flows and capture lack them.",
            counted(run.unobserved, "record")
        ));
    }
    lines.join("\n")
}

/// A direction of the link.
pub(super) fn link(link: &LinkSpec) -> String {
    let info = link_info(link);
    let limit = info.parameters.iter().find(|(name, _)| name == "limit");
    let limit = limit.map_or_else(String::new, |(_, limit)| {
        // How long a full queue takes, where it is known.
        let rate = match &link.rate {
            LinkRate::Constant(rate) => rate.bps() as f64,
            LinkRate::Trace { .. } => 0.0,
        };
        let amount = limit.split_once(' ');
        let bytes = amount.and_then(|(number, unit)| match unit {
            "packets" => Some(number.parse::<f64>().ok()? * f64::from(link.mtu)),
            "B" => number.parse::<f64>().ok(),
            _ => None,
        });
        match bytes.filter(|_| rate > 0.0).map(|bytes| bytes * 8.0 / rate) {
            Some(time) => format!(", limit {limit} ({} when full)", seconds(time)),
            None => format!(", limit {limit}"),
        }
    });
    format!(
        "{}, {} one way, {}{}{}{limit}",
        info.rate,
        seconds(info.delay_s),
        jitter(link.impairments.jitter.as_ref()),
        loss(&link.impairments.loss),
        info.queue
    )
}

/// What is added to the delay of single packets, before the queue: `up to 5.0 ms of jitter, `.
fn jitter(jitter: Option<&Distribution>) -> String {
    match jitter {
        None => String::new(),
        Some(Distribution::Uniform { min, max }) if *min == 0.0 => {
            format!("up to {} of jitter, ", seconds(*max))
        }
        Some(other) => match other.mean() {
            Some(mean) => format!("jitter of {} on average, ", seconds(mean)),
            None => String::from("jitter, "),
        },
    }
}

/// What the wire loses, before the queue: `1 % lost, `.
fn loss(loss: &Loss) -> String {
    let per_cent = |share: f64| ((share * 1e6).round() / 1e4).to_string();
    match loss {
        Loss::None => String::new(),
        Loss::Random(probability) => format!("{} % lost, ", per_cent(probability.as_f64())),
        Loss::Burst {
            enter,
            leave,
            good,
            bad,
        } => {
            let [enter, leave, good, bad] = [enter, leave, good, bad].map(|chance| chance.as_f64());
            // The share of packets that meet the bad state; without transitions it is the good one.
            let share = if enter > 0.0 { enter / (enter + leave) } else { 0.0 };
            let lost = per_cent(share * bad + (1.0 - share) * good);
            format!("{lost} % lost in bursts, ")
        }
        Loss::Script(_) | Loss::Tail(_) => String::from("chosen packets lost, "),
    }
}

/// What sends at both ends.
pub(super) fn senders(switches: &SenderSwitches) -> String {
    if switches.is_none() {
        return format!(
            "senders: {}, as this machine has it; --sender cc=NAME sets another",
            SenderSwitches::usual_congestion_control()
        );
    }
    format!("senders: {}", switches.commands().join("; "))
}

/// How many flows there were, and the longest: first those of TCP that carried data.
fn flows(run: &Run) -> Vec<String> {
    if run.flows_seen == 0 {
        return Vec::new();
    }
    let mut longest: Vec<&Flow> = run.flows.iter().collect();
    let length = |flow: &Flow| match flow.completion_s {
        Some(time) if flow.completed == Some(true) => time,
        Some(_) | None => flow.end_s - flow.start_s,
    };
    longest.sort_by(|a, b| {
        let carried = b.completion_s.is_some().cmp(&a.completion_s.is_some());
        carried.then(length(b).total_cmp(&length(a)))
    });
    let more = match longest.len() > SHOWN {
        true => format!(", the {SHOWN} longest"),
        false => String::new(),
    };
    let mut lines = vec![format!("{}{more}:", counted(run.flows_seen, "flow"))];
    lines.extend(longest.iter().take(SHOWN).map(|flow| format!("  {}", line(flow))));
    lines
}

fn line(flow: &Flow) -> String {
    let ends = format!("{} > {}", flow.source, flow.destination);
    let mut parts = Vec::new();
    match (flow.completion_s, flow.completed) {
        (Some(time), Some(true)) => parts.push(format!("complete after {}", seconds(time))),
        (Some(_), _) => {
            let why = flow.incomplete.map(|why| format!(" ({})", why.words()));
            parts.push(format!(
                "not complete after {}{}",
                seconds(flow.end_s - flow.start_s),
                why.unwrap_or_default()
            ));
        }
        (None, _)
            if matches!(
                flow.incomplete,
                Some(Incomplete::Refused | Incomplete::Unanswered)
            ) =>
        {
            let why = flow.incomplete.map_or("", Incomplete::words);
            parts.push(format!("{why}; {} in all", seconds(flow.end_s - flow.start_s)));
        }
        (None, _) => parts.push(format!("lasted {}", seconds(flow.end_s - flow.start_s))),
    }
    let amount = |sent: &Sent| match flow.protocol.as_str() {
        "tcp" => bytes(sent.payload_bytes),
        _ => format!("{} ({})", bytes(sent.bytes), counted(sent.packets, "packet")),
    };
    parts.push(format!(
        "sent {}, received {}",
        amount(&flow.sent),
        amount(&flow.received)
    ));
    if let Some(rtt) = flow.handshake_rtt_s {
        parts.push(format!("RTT of the handshake {}", seconds(rtt)));
    }
    if let Some(rtt) = flow.rtt {
        parts.push(format!(
            "of data {} (least) {} (mean) {} (most)",
            seconds(rtt.min_s),
            seconds(rtt.mean_s),
            seconds(rtt.max_s)
        ));
    }
    let again = flow.sent.retransmits + flow.received.retransmits;
    let dropped = flow.sent.dropped + flow.received.dropped;
    if again > 0 {
        parts.push(counted(again, "retransmission"));
    }
    if dropped > 0 {
        parts.push(format!("{dropped} dropped"));
    }
    format!("{} {ends}: {}", flow.protocol, parts.join("; "))
}

/// What did not fit through, in sentences: longer frames than the link takes, and those that an interface refused.
fn not_carried(finished: &Finished) -> Vec<String> {
    let mut lines = Vec::new();
    let total = |count: fn(&Direction) -> u64| finished.directions.iter().map(count).sum::<u64>();
    let long = total(|direction| direction.measured().drops[DropReason::TooBig as usize]);
    if long > 0 {
        lines.push(format!(
            "{long} packets were longer than the link's MTU and were dropped: something sends aggregates or has a larger MTU"
        ));
    }
    for refusal in Refusal::ALL {
        let refused: u64 = finished
            .directions
            .iter()
            .map(|direction| direction.measured().refused[refusal as usize])
            .sum();
        if refused > 0 {
            let place = match refusal {
                Refusal::NoRoom => "before the queue",
                Refusal::Full | Refusal::Down | Refusal::TooLong => "at the end of the link",
            };
            lines.push(format!(
                "{refused} packets were refused {place}: {}",
                refusal.words()
            ));
        }
    }
    for (whose, count) in ["the command's", "the far end's"].iter().zip(finished.untaken) {
        if count > 0 {
            lines.push(format!(
                "{count} packets never came to the link: {whose} interface did not take them, mostly because they were longer than its MTU"
            ));
        }
    }
    lines
}

fn ms(values: &Histogram, quantile: f64) -> String {
    values.quantile(quantile).map_or_else(
        || String::from("-"),
        |value| format!("{:.2} ms", value as f64 / 1e6),
    )
}

/// An amount: 64.0 kB.
fn bytes(value: u64) -> String {
    match value {
        0..1_000 => format!("{value} B"),
        1_000..1_000_000 => format!("{:.1} kB", value as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value as f64 / 1e6),
        _ => format!("{:.2} GB", value as f64 / 1e9),
    }
}

/// Flows that are shown.
const SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::{jitter, loss};
    use fleetfoot_core::link::Loss;
    use fleetfoot_core::rng::{Distribution, Probability};

    #[test]
    fn jitter_and_loss_are_said_where_there_are_any() {
        assert_eq!(jitter(None), "");
        let uniform = |min: f64| Distribution::Uniform { min, max: 0.005 };
        assert_eq!(jitter(Some(&uniform(0.0))), "up to 5.0 ms of jitter, ");
        assert_eq!(jitter(Some(&uniform(0.003))), "jitter of 4.0 ms on average, ");
        let chance = Probability::from_f64;
        assert_eq!(loss(&Loss::None), "");
        assert_eq!(loss(&Loss::Random(chance(0.01))), "1 % lost, ");
        assert_eq!(loss(&Loss::Random(chance(0.0005))), "0.05 % lost, ");
        // One packet of five meets the bad state, in which half are lost.
        let burst = Loss::Burst {
            enter: chance(0.1),
            leave: chance(0.4),
            good: chance(0.0),
            bad: chance(0.5),
        };
        assert_eq!(loss(&burst), "10 % lost in bursts, ");
    }
}
