//! TCP Small Queues: hosts whose own link is the slowest of a path.

use crate::common::random_spec;
use crate::line::*;
use fleetfoot_core::parameter::{Value, Values};
use fleetfoot_core::queue::{AnyQueue, Limit};
use fleetfoot_core::rng::Probability;
use fleetfoot_core::tcp::{Config, InitialWindow, Profile, Prr};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::{Bytes, Rate};
use fleetfoot_sim::output::RunOutput;
use fleetfoot_sim::spec::{GroupSpec, LinkRate, Loss, NodeId, NodeSpec, Spec, Traffic};
use std::sync::Arc;

/// A greedy sender with the TCP of Linux on a link of 8 Mbit/s whose queue of `packets` is the host's or not, 20 ms there and back, for 5 s.
fn greedy(host: bool, queue: &'static str, packets: u32) -> Spec {
    let mut spec = one(5_000, Traffic::Bulk { count: 1 });
    let config = Arc::new(Config::profile(Profile::Linux));
    for link in &mut spec.links {
        link.host = host;
        link.queue = queue;
        link.queue_values = limit(queue, Limit::Packets(packets));
    }
    spec.groups[0].sender = Arc::clone(&config);
    spec.groups[0].receiver = config;
    spec
}

fn drops(output: &RunOutput) -> u64 {
    output
        .links
        .iter()
        .flat_map(|link| link.drops.iter().flatten())
        .sum()
}

/// A packet takes 1.5 ms. The pacing rate gives groups of two segments, so what waits is at most two groups and a segment beside the one in
/// service; the link is busy all the time.
#[test]
fn a_sender_keeps_the_queue_of_its_own_link_short() {
    let output = outcome(&greedy(true, "drop-tail", 100));
    let line = &output.links[0];
    assert!(
        (3..=4).contains(&line.queue_packets.max()),
        "{}",
        line.queue_packets.max()
    );
    assert_eq!(drops(&output), 0);
    let busy = line.busy.as_secs_f64() / 5.0;
    assert!(busy > 0.98, "{busy}");
    // The network's queue is filled, and drops.
    let output = outcome(&greedy(false, "drop-tail", 100));
    assert_eq!(output.links[0].queue_packets.max(), 100);
    assert!(drops(&output) > 0);
}

/// As much waits as in Linux between two namespaces behind HTB (`bench/peers/linux/small-queues.py`): towards a near peer groups are of 64 kB.
#[test]
fn as_much_waits_as_in_a_linux_host() {
    let record = include_str!("../../../../specs/linux-6.18/small-queues.txt");
    let mut rates = 0;
    for line in record.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split(' ');
        let rate = fields
            .next()
            .and_then(|rate| rate.strip_suffix("mbit"))
            .expect("a rate");
        let numbers: Vec<u64> = fields.map(|field| field.parse().expect("a count")).collect();
        let [least, _, most, dropped, ..] = numbers[..] else {
            panic!("six counts: {line}")
        };
        let mut spec = greedy(true, "drop-tail", 1_000);
        for link in &mut spec.links {
            link.rate = LinkRate::Constant(Rate::from_bps(1_000_000 * rate.parse::<u64>().expect("Mbit/s")));
            link.delay = Duration::from_micros(10);
        }
        spec.warmup = Duration::from_secs(2);
        let output = outcome(&spec);
        let waiting = &output.links[0].queue_packets;
        let median = waiting.quantile(0.5).expect("packets wait");
        assert!((least..=most).contains(&median), "{line}: {median}");
        assert!(waiting.max() <= most, "{line}: {}", waiting.max());
        assert_eq!(drops(&output), dropped, "{line}");
        rates += 1;
    }
    assert_eq!(rates, 3);
}

/// What waits is told from what is sent whatever the discipline, and whether it forgets packets that wait.
#[test]
fn any_discipline_at_the_host_stays_short() {
    for queue in ["fq-codel", "codel", "sfq", "drr", "pie", "cake"] {
        let output = outcome(&greedy(true, queue, 100));
        let most = output.links[0].queue_packets.max();
        assert!((3..=4).contains(&most), "{queue}: {most}");
        assert!(output.links[0].busy.as_secs_f64() / 5.0 > 0.98, "{queue}");
    }
}

/// A packet that is lost on the wire has left the queue once: as many packets wait as without losses.
#[test]
fn losses_on_the_wire_let_no_more_wait() {
    for queue in ["drop-tail", "fq-codel", "cake"] {
        let mut spec = greedy(true, queue, 100);
        (spec.duration, spec.links[0].impairments.loss) = (
            Duration::from_secs(60),
            Loss::Random(Probability::from_f64(0.002)),
        );
        let output = outcome(&spec);
        let most = output.links[0].queue_packets.max();
        assert!((3..=4).contains(&most), "{queue}: {most}");
        assert!(output.groups[0].flows[0].stats().retransmits > 20, "{queue}");
    }
}

/// Three hundred segments at once over a link of 80 Mbit/s with room for 200 packets, and on over one of 40. Over a round trip of 20 ms slow
/// start has twice 300 segments: a millisecond of that is 29, two groups of which Linux lets wait, behind the first 64.
#[test]
fn a_long_burst_leaves_no_faster_than_its_host_sends() {
    let run = |host: bool, small_queues: Bytes| {
        let mut spec = network(2, 3_000);
        let whole = Traffic::Transfer {
            size: always(300.0 * 1_448.0),
            interarrival: always(1.0),
            count: Some(1),
        };
        spec.groups.push(group(1, whole));
        spec.groups[0].pairs = vec![(NodeId(0), NodeId(2))];
        let mut config = Config::profile(Profile::Linux);
        config.initial_window = InitialWindow::Segments(300);
        config.path.small_queues = small_queues;
        // What is offered at once.
        config.receive_buffer = Bytes(4_000_000);
        config.fix_receive_buffer();
        spec.groups[0].sender = Arc::new(config);
        spec.groups[0].receiver = Arc::clone(&spec.groups[0].sender);
        for link in &mut spec.links[..2] {
            link.rate = LinkRate::Constant(Rate::from_bps(40_000_000));
        }
        for link in &mut spec.links[2..] {
            link.host = host && link.from.0 < 2;
            link.rate = LinkRate::Constant(Rate::from_bps(80_000_000));
            link.queue_values = limit("drop-tail", Limit::Packets(200));
        }
        let output = outcome(&spec);
        (output.links[2].queue_packets.max(), drops(&output))
    };
    let linux = Config::profile(Profile::Linux).path.small_queues;
    let (waiting, dropped) = run(true, linux);
    assert!((64..=64 + 2 * 29 + 1).contains(&waiting), "{waiting}");
    assert_eq!(dropped, 0);
    // Neither without the rule nor in front of a queue of the network.
    for (host, small_queues) in [(true, Bytes::MAX), (false, linux)] {
        let (waiting, dropped) = run(host, small_queues);
        assert_eq!(waiting, 200);
        assert!(dropped > 50, "{dropped}");
    }
}

/// A sender that is not held back has its window in the queue of another link; where that is slower, its own holds nothing back.
#[test]
fn a_slower_link_behind_makes_it_a_matter_of_that_queue() {
    let run = |host: bool| {
        let mut spec = network(2, 3_000);
        spec.groups.push(group(1, Traffic::Bulk { count: 1 }));
        spec.groups[0].pairs = vec![(NodeId(0), NodeId(2))];
        let config = Arc::new(Config::profile(Profile::Linux));
        spec.groups[0].sender = Arc::clone(&config);
        spec.groups[0].receiver = config;
        for link in &mut spec.links[2..] {
            link.host = host && link.from.0 < 2;
            link.rate = LinkRate::Constant(Rate::from_bps(80_000_000));
        }
        format!("{:?}", outcome(&spec))
    };
    assert_eq!(run(true), run(false));
}

/// Two greedy senders at one host, of which each knows of its own, and answers of 3 kB beside them: they wait for two short queues.
#[test]
fn an_answer_beside_greedy_senders_of_its_host_waits_for_what_they_may_have_there() {
    let slowest = |host: bool| {
        let mut spec = greedy(host, "drop-tail", 200);
        spec.groups[0].traffic = Traffic::Bulk { count: 2 };
        let answers = Traffic::Transfer {
            size: always(3_000.0),
            interarrival: always(0.1),
            count: Some(30),
        };
        spec.groups.push(GroupSpec {
            name: String::from("answers"),
            traffic: answers,
            start: Duration::from_millis(1_000),
            ..spec.groups[0].clone()
        });
        let output = outcome(&spec);
        let times = times(&output, 1);
        times
            .iter()
            .map(|(start, completed, _)| completed.expect("it ends") - start)
            .max()
    };
    // 40 ms for two round trips, and for each of three packets two queues of at most six packets.
    let (held, free) = (slowest(true).expect("some"), slowest(false).expect("some"));
    assert!(held < 40_000 + 3 * 2 * 6 * 1_500, "{held}");
    assert!(free > 150_000, "{free}");
}

/// Both modes of the engine agree whatever stands at the hosts and whatever the sender does.
#[test]
fn both_modes_agree_with_any_queue_at_the_hosts() {
    for seed in 0..80 {
        let mut spec = random_spec(seed);
        let entry = &AnyQueue::ENTRIES[seed as usize % AnyQueue::ENTRIES.len()];
        for link in &mut spec.links {
            if link.host {
                // The slowest of the path, and faster ones that long bursts come to.
                let mbps = if seed % 2 == 0 { 1 + seed / 2 % 3 } else { 100 };
                link.rate = LinkRate::Constant(Rate::from_bps(1_000_000 * mbps));
                link.queue = if seed % 4 == 3 { "drop-tail" } else { entry.name };
                let parameters = AnyQueue::entry(link.queue).expect("registered").parameters;
                link.queue_values = Values::defaults(parameters);
                let _ = link
                    .queue_values
                    .set("limit", Value::Limit(Limit::Packets(5 + seed as u32)));
            }
        }
        for group in &mut spec.groups {
            let mut config = Config::clone(&group.sender);
            config.path.small_queues = Bytes(6_000 + 2_000 * seed);
            if seed % 2 == 1 {
                config.initial_window = InitialWindow::Segments(200);
                config.prr = Prr::Off;
            }
            group.sender = Arc::new(config);
            group.receiver = Arc::clone(&group.sender);
        }
        outcome(&spec);
    }
}

/// A greedy sender that finds most of its window lost has room for a long burst when the repair is acknowledged; its host takes packets
/// ahead of time.
#[test]
fn both_modes_agree_on_long_bursts_of_greedy_senders() {
    for seed in 0..12u32 {
        let mut spec = greedy(true, "drop-tail", 1_000);
        let line = |rate: u64| LinkRate::Constant(Rate::from_bps(rate));
        let mut config = Config::profile(Profile::Linux);
        config.prr = Prr::Off;
        config.frto = false;
        config.initial_window = InitialWindow::Segments(4);
        spec.groups[0].sender = Arc::new(config);
        // The host's own link, and a slower one behind a router.
        spec.nodes.push(NodeSpec {
            name: String::from("router"),
            host: false,
        });
        let (mut there, mut back) = (spec.links[0].clone(), spec.links[1].clone());
        (there.from, there.host, there.name) = (NodeId(2), false, String::from("slow"));
        (back.to, back.host, back.name) = (NodeId(2), false, String::from("slow"));
        (there.rate, there.queue_values) = (
            line(20_000_000 + 1_000_000 * u64::from(seed)),
            limit("drop-tail", Limit::Packets(200 + 40 * seed)),
        );
        spec.links[0].to = NodeId(2);
        spec.links[1].from = NodeId(2);
        for link in &mut spec.links {
            link.rate = line(100_000_000);
        }
        spec.links.extend([there, back]);
        outcome(&spec);
    }
}
