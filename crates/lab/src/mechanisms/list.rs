//! The entries.

use super::Family::{Acknowledgments, BurstyFlows, GreedyFlows, Queues, StartUp, SuperPackets, TailLoss};
use super::Needs::{Controller, Queue, QueueAndTcp, Sack, Tcp};
use super::Preset::{BottleneckRate, Flag, Integer, RttShare, Text};
use super::{Effort, Family, Mechanism, Needs, Preset};

/// Keys of the queue at each place that a mechanism is applied to (`super::Sites`).
const QUEUE: &str = "queue.kind";
const SUPER: &str = "tcp.super_packets";
const QUEUE_ECN: &str = "queue.ecn";
/// Where an RFC or a paper and Linux differ, the queue is the one that the command of the entry turns on.
const QUEUE_DETAILS: (&str, Preset) = (super::QUEUE_DETAILS, Text("linux"));

const fn entry(
    name: &'static str,
    family: Family,
    needs: Needs,
    set: &'static [(&'static str, Preset)],
) -> Mechanism {
    Mechanism {
        name,
        family,
        set,
        needs,
        document: "",
        source: "",
        evidence: "",
        turn_on: "",
        effort: Effort::OneSetting,
    }
}

impl Mechanism {
    const fn document(mut self, document: &'static str, source: &'static str) -> Mechanism {
        self.document = document;
        self.source = source;
        self
    }

    const fn evidence(mut self, evidence: &'static str) -> Mechanism {
        self.evidence = evidence;
        self
    }

    const fn turn_on(mut self, turn_on: &'static str) -> Mechanism {
        self.turn_on = turn_on;
        self
    }

    const fn effort(mut self, effort: Effort) -> Mechanism {
        self.effort = effort;
        self
    }
}

/// Every mechanism, by family.
pub static ENTRIES: &[Mechanism] = &[
    entry("codel", Queues, Queue, &[(QUEUE, Text("codel")), QUEUE_DETAILS])
        .document("Measures how long packets wait and, when the smallest wait within 100 ms stays above 5 ms, drops from the head at a rising rate. It keeps one FIFO short without knowing the line's rate.", "RFC 8289")
        .evidence("Nichols and Jacobson, ACM Queue 2012: one setting keeps the wait near the target over a wide range of rates and RTTs.")
        .turn_on("Linux 3.5 and later: tc qdisc replace dev IF root codel"),
    entry("codel-ecn", Queues, QueueAndTcp, &[(QUEUE, Text("codel")), QUEUE_DETAILS, (QUEUE_ECN, Flag(true)), ("tcp.ecn", Flag(true))])
        .document("CoDel that marks packets of ECN-capable senders instead of dropping them, with ECN negotiated by the endpoints: the signal without the loss.", "RFC 8289, RFC 3168, RFC 8087")
        .evidence("RFC 8087 lists the benefits: no retransmission and no head-of-line wait for the signal.")
        .turn_on("Linux 3.5 and later: tc qdisc replace dev IF root codel ecn; on both hosts: sysctl net.ipv4.tcp_ecn=1")
        .effort(Effort::SeveralSettings),
    entry("fq-codel", Queues, Queue, &[(QUEUE, Text("fq-codel")), QUEUE_DETAILS])
        .document("Hashes flows into 1024 queues with CoDel in each, serves them by deficit round robin, and serves queues that just became busy first. Short and sparse flows pass the standing queue of the long ones.", "RFC 8290")
        .evidence("RFC 8290 section 7: in Linux since 3.5 and the default of OpenWrt, Arch Linux and Fedora, with much less delay than the FIFO before it in all trials.")
        .turn_on("Linux 3.5 and later: tc qdisc replace dev IF root fq_codel; for all interfaces: sysctl net.core.default_qdisc=fq_codel")
        .effort(Effort::Usual),
    entry("fq-codel-ecn", Queues, QueueAndTcp, &[(QUEUE, Text("fq-codel")), QUEUE_DETAILS, (QUEUE_ECN, Flag(true)), ("tcp.ecn", Flag(true))])
        .document("FQ-CoDel that marks instead of dropping, with ECN negotiated by the endpoints.", "RFC 8290, RFC 3168")
        .evidence("RFC 8290 5.2.6: marking is on unless switched off.")
        .turn_on("Linux 3.5 and later: tc qdisc replace dev IF root fq_codel ecn; on both hosts: sysctl net.ipv4.tcp_ecn=1")
        .effort(Effort::SeveralSettings),
    entry("pie", Queues, Queue, &[(QUEUE, Text("pie"))])
        .document("Drops arriving packets with a probability that a controller adjusts every 15 ms so that the wait stays near 15 ms. Bursts of up to 150 ms after a calm pass. One FIFO, no time stamp needed, nothing done on departure.", "RFC 8033")
        .evidence("Pan et al., HPSR 2013: holds the target over loads and RTTs; the basis of DOCSIS-PIE (RFC 8034), which cable modems run.")
        .turn_on("Linux 3.14 and later: tc qdisc replace dev IF root pie"),
    entry("fq-pie", Queues, Queue, &[(QUEUE, Text("fq-pie"))])
        .document("Hashes flows into 1024 queues with PIE in each, served in turns with new flows first: the isolation of FQ-CoDel with drops on arrival.", "Linux sch_fq_pie; RFC 8033, RFC 8290")
        .evidence("None of its own: what holds for FQ-CoDel's turns and for PIE.")
        .turn_on("Linux 5.6 and later: tc qdisc replace dev IF root fq_pie"),
    entry("cake", Queues, Queue, &[(QUEUE, Text("cake")), QUEUE_DETAILS])
        .document("Fair among hosts first and among each host's flows second, with CoDel and BLUE in each queue: a host gains nothing by opening many connections, and one that ignores marks and drops is held too. One class of service, no ACK filter here.", "Høiland-Jørgensen, Täht and Morton, LANMAN 2018")
        .evidence("The paper: host fairness and low delay on home lines at once; the usual choice for shaping on OpenWrt routers.")
        .turn_on("Linux 4.19 and later: tc qdisc replace dev IF root cake besteffort triple-isolate")
        .effort(Effort::Usual),
    entry("dualpi2-l4s", Queues, QueueAndTcp, &[
        (QUEUE, Text("dualpi2")),
        ("tcp.congestion_control", Text("prague")),
        ("tcp.ecn", Text("accurate")),
        ("tcp.ecn_codepoint", Text("ect1")),
    ])
        .document("TCP Prague: senders reduce in proportion to the marks and say so with ECT(1). They wait in a queue of their own, which is marked from 1 ms of wait on, or from two packet times on a slow line; others share the line with them through a coupled controller that holds 15 ms.", "RFC 9330, RFC 9331, RFC 9332; sender: draft-briscoe-iccrg-prague-congestion-control")
        .evidence("De Schepper et al., CoNEXT 2016 and RFC 9332: queueing below a millisecond for L4S traffic beside classic flows of about the same rate.")
        .turn_on("Linux 6.17 and later: tc qdisc replace dev IF root dualpi2; senders need TCP Prague (L4STeam kernels: net.ipv4.tcp_congestion_control=prague) or, in a network of one's own, DCTCP with ECT(1) by BPF. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.congestion_control=prague --set tcp.ecn=accurate --set tcp.ecn_codepoint=ect1 (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("drr", Queues, Queue, &[(QUEUE, Text("drr"))])
        .document("One queue per flow, each served a quantum of bytes per round: equal shares for backlogged flows whatever their packet sizes, and no waiting behind another flow's backlog.", "Shreedhar and Varghese, SIGCOMM 1995")
        .evidence("The paper proves that what two backlogged flows got never differs by more than a constant number of bytes.")
        .turn_on("Linux: tc qdisc replace dev IF root sfq is the nearest (the mechanism sfq: flows hashed into queues of at most 127 packets); the exact scheduler is sch_drr (2.6.29 and later), for which each class and a tc filter with flow hash must be set up")
        .effort(Effort::SeveralSettings),
    entry("sfq", Queues, Queue, &[(QUEUE, Text("sfq"))])
        .document("Linux's fair queue without classes: flows hashed into queues that take turns of a packet's bytes. When the buffer is full the queue with most packets loses its newest; at most 127 packets of one queue wait.", "McKenney, INFOCOM 1990; Linux sch_sfq")
        .evidence("McKenney compares it with fair queueing per flow: as fair where no two active flows share a value of the hash, at constant work for each packet.")
        .turn_on("Linux: tc qdisc replace dev IF root sfq; with perturb 10 the hash changes every ten seconds"),
    entry("favourtail", Queues, Queue, &[(QUEUE, Text("favourtail"))])
        .document("One queue in which a packet whose flow has nothing waiting is put before the packets of flows that have: first packets and sparse flows pass the standing queue, without queues per flow and without reordering within one.", "Dedu and Lochin, PDP 2009")
        .evidence("The slides report 8 % less transfer time and 35 % fewer lost packets summed over 500 transfers on an access network. Sources can cheat, and normal packets can starve: see favourtail-budget.")
        .turn_on("In no kernel. Before the outputs of a Linux machine on the way: fleetfoot router router.toml, a file with queue = { kind = \"favourtail\" } before an output (docs/router.md; compare writes it for your line). The nearest in Linux 3.5 and later is the list of new flows of fq_codel: tc qdisc replace dev IF root fq_codel")
        .effort(Effort::OnlyHere),
    entry("favourtail-budget", Queues, Queue, &[(QUEUE, Text("favourtail")), ("queue.budget", Flag(true))])
        .document("FavourTail in which favour costs tokens, earned by half of the bytes that leave; hosts owe what they spent and earn in turn, so that none is favoured with more than an equal part: many flows or paced packets cannot starve the others, and the longest wait has a bound.", "Fleetfoot's own, over Dedu and Lochin, PDP 2009; shares: Choudhury and Hahne 1998")
        .evidence("The bound is proved in the queue's own page and held by its tests. Under attack by one host short flows are as fast as with drop-tail or faster, and without one as fast as with plain FavourTail: docs/favourtail.md.")
        .turn_on("In no kernel. Before the outputs of a Linux machine on the way: fleetfoot router router.toml, a file with queue = { kind = \"favourtail\", budget = true } before an output (docs/router.md; compare writes it for your line). The nearest in Linux 4.19 and later, with shares for hosts: tc qdisc replace dev IF root cake bandwidth RATE")
        .effort(Effort::OnlyHere),
    entry("red", Queues, Queue, &[(QUEUE, Text("red"))])
        .document("Drops arriving packets with a probability that grows with the averaged queue length between two thresholds, before the queue is full.", "Floyd and Jacobson 1993; RFC 2309; gentle mode: Floyd 2000")
        .evidence("Needs tuning to rate and load: Christiansen et al., SIGCOMM 2000, found little gain for web response times over drop-tail below 90 % load.")
        .turn_on("Linux: tc qdisc replace dev IF root red limit 150000 min 7500 max 22500 avpkt 1500 burst 79 probability 0.1 bandwidth RATE (5 and 15 full packets; from 16 Mbit/s on 2.5 and 7.5 ms of the rate; tc makes the weight of the average of the burst, here 1/1024, for 10 Mbit/s: compare prints it for your line; Linux drops all above max)"),
    entry("red-ecn", Queues, QueueAndTcp, &[(QUEUE, Text("red")), (QUEUE_ECN, Flag(true)), ("queue.hard_drop", Flag(false)), ("queue.gentle", Flag(false)), ("tcp.ecn", Flag(true))])
        .document("RED that marks packets of ECN-capable senders where it would drop early, and as Linux does above the upper threshold, too: every one of them there.", "Floyd and Jacobson 1993, RFC 3168; above the threshold Linux, sch_red.c")
        .evidence("RFC 2884 (Salim and Ahmed): bulk and above all short transfers gain.")
        .turn_on("Linux: as for red, with ecn at the end (without harddrop Linux marks above max, too); on both hosts: sysctl net.ipv4.tcp_ecn=1")
        .effort(Effort::SeveralSettings),
    entry("short-buffer", Queues, Queue, &[(QUEUE, Text("drop-tail")), ("queue.limit", Text("16 packets"))])
        .document("The plain queue, but with room for 16 packets only: no packet waits long, long flows lose more often.", "Appenzeller, Keslassy and McKeown, SIGCOMM 2004; RFC 7567")
        .evidence("A buffer far below one bandwidth-delay product costs single long flows utilisation; with many flows it does not.")
        .turn_on("Linux: tc qdisc replace dev IF root pfifo limit 16 (and a small driver ring: ethtool -G IF tx 64)"),
    entry("long-buffer", Queues, Queue, &[(QUEUE, Text("drop-tail")), ("queue.limit", Text("1000 packets"))])
        .document("The plain queue with room for 1000 packets: fewer losses, longer waits.", "Gettys and Nichols, ACM Queue 2011 (bufferbloat)")
        .evidence("Included because it is what many devices ship with.")
        .turn_on("Linux: tc qdisc replace dev IF root pfifo limit 1000 (ip link set IF txqueuelen 1000)"),
    entry("initial-window-3", StartUp, Tcp, &[("tcp.initial_window", Integer(3))])
        .document("Starts with three segments, as before 2010: gentle on small buffers, more round trips for short transfers.", "RFC 3390")
        .evidence("Dukkipati et al., CCR 2010: ten segments instead of three shorten responses by about 10 % on average.")
        .turn_on("Linux, per route: ip route change default via GATEWAY dev IF initcwnd 3"),
    entry("initial-window-10", StartUp, Tcp, &[("tcp.initial_window", Integer(10))])
        .document("Starts with ten segments: most web objects fit into one or two round trips.", "RFC 6928")
        .evidence("Dukkipati et al., CCR 2010: about 10 % shorter responses on average.")
        .turn_on("Linux 2.6.39 and later: the default; per route: ip route change default via GATEWAY dev IF initcwnd 10"),
    entry("initial-window-20", StartUp, Tcp, &[("tcp.initial_window", Integer(20))])
        .document("Starts with twenty segments: one round trip less for transfers of 15 to 30 kB, a larger burst into the bottleneck.", "beyond RFC 6928, which stops at ten")
        .evidence("No measurement is cited here; on slow lines the burst overflows the queue.")
        .turn_on("Linux, on the sender per route: ip route change default via GATEWAY dev IF initcwnd 20"),
    entry("initial-window-40", StartUp, Tcp, &[("tcp.initial_window", Integer(40))])
        .document("Starts with forty segments.", "beyond RFC 6928, which stops at ten")
        .evidence("No measurement is cited here; on slow lines the burst overflows the queue.")
        .turn_on("Linux, on the sender per route: ip route change default via GATEWAY dev IF initcwnd 40"),
    entry("initial-spreading", StartUp, Tcp, &[("tcp.initial_spreading", Text("bounded"))])
        .document("Sends the segments of the first window at gaps of RTT / window, at most 4 ms, so that their losses do not depend on each other; everything after it is clocked by ACKs.", "draft-irtf-iccrg-sallantin-initial-spreading-00; Sallantin et al., LCN 2013")
        .evidence("Sallantin et al. 2013: an initial window of ten with the losses of a small one in full buffers. docs/start-up.md: on an empty path it costs up to 36 ms; on busy drop-tail lines of 1 to 20 Mbit/s ten segments take a fifth to almost a half less time; with CoDel and PIE nothing is gained, and windows of 20 and 40 can take longer.")
        .turn_on("In no kernel for the first ten segments, only a patch for Linux by its authors; segments 11 and later of a larger first window, Linux 6.4 and later, Fleetfoot built with the feature bpf: fleetfoot attach spread --default --initial-window 20. All of them over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.initial_spreading=bounded (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("initial-spreading-variable", StartUp, Tcp, &[("tcp.initial_spreading", Text("variable"))])
        .document("Initial Spreading over the whole first round trip, without a longest gap.", "draft-irtf-iccrg-sallantin-initial-spreading-00")
        .evidence("Over long paths it waits longer than the queue needs; the draft recommends the bound.")
        .turn_on("In no kernel; a patch for Linux by its authors. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.initial_spreading=variable (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("initial-spreading-known", StartUp, Tcp, &[
        ("tcp.initial_spreading", Text("known")),
        ("tcp.spreading_rate", BottleneckRate),
        ("tcp.spreading_jiffy", Text("0 ms")),
    ])
        .document("Initial Spreading with gaps of one packet's time at the bottleneck's rate, which senders know, and no longer than bounded.", "Fleetfoot's own, on draft-irtf-iccrg-sallantin-initial-spreading-00")
        .evidence("docs/start-up.md: nothing lost on an empty path; on a busy drop-tail line a gap of exactly a packet's time keeps step with the queue: with windows of 40 segments one shorter by a hundredth takes about a fifth less time in three of four settings.")
        .turn_on("In no kernel. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.initial_spreading=known --set 'tcp.spreading_rate=20 Mbit/s' --set 'tcp.spreading_jiffy=0 ms' (docs/proxy.md), with the rate of your bottleneck")
        .effort(Effort::OnlyHere),
    entry("initial-spreading-estimated", StartUp, Tcp, &[
        ("tcp.initial_spreading", Text("estimated")),
        ("tcp.spreading_jiffy", Text("0 ms")),
        ("tcp.spreading_jitter_percent", Integer(50)),
    ])
        .document("Initial Spreading with gaps of one packet's time at a rate that was measured: the first two segments leave together, their acknowledgments show the bottleneck's rate, and the next connections to the same host begin with it. The first one to a host spreads as bounded does. Each gap is drawn from half to one and a half of that.", "Fleetfoot's own, on draft-irtf-iccrg-sallantin-initial-spreading-00; packet pair: Keshav, SIGCOMM 1991; RFC 9040 6")
        .evidence("docs/start-up.md: from the second connection to a host on free on an empty path; on busy drop-tail lines of 1 to 50 Mbit/s a tenth less to a sixth more time than bounded, decided at two of five rates, once in either direction. The random gaps gain little over equal ones.")
        .turn_on("In no kernel; Linux has the place for it (ip tcp_metrics), but keeps no rate there. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.initial_spreading=estimated --set 'tcp.spreading_jiffy=0 ms' --set tcp.spreading_jitter_percent=50 (docs/proxy.md)")
        .effort(Effort::OnlyHere),
    entry("pacing", StartUp, Tcp, &[("tcp.pacing", Text("linux"))])
        .document("Sends the segments of a window at twice its rate in slow start and 1.2 times after it, from the tenth segment on, instead of as ACKs come.", "Linux tcp_update_pacing_rate")
        .evidence("Aggarwal, Savage and Anderson, INFOCOM 2000: fewer losses of bursts, but flows lose together and later.")
        .turn_on("Linux 3.12 and later: tc qdisc replace dev IF root fq; since 4.13 per socket: SO_MAX_PACING_RATE"),
    entry("pacing-full", StartUp, Tcp, &[("tcp.pacing", Text("full"))])
        .document("Spreads every window over a round trip, the first one too.", "Aggarwal, Savage and Anderson, INFOCOM 2000")
        .evidence("The same source: often less throughput than without, because a loss shows later.")
        .turn_on("In no kernel with this factor; Linux paces ahead of the window. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.pacing=full (docs/proxy.md)")
        .effort(Effort::OnlyHere),
    entry("hystart", StartUp, Controller("cubic"), &[("tcp.hystart", Text("linux"))])
        .document("Leaves slow start when ACKs of a burst span half the smallest RTT, or when the RTT rises, before the queue overflows.", "Ha and Rhee, PFLDnet 2008")
        .evidence("Made against the burst of losses at the end of slow start; RFC 9406 names leaving too early as its weakness.")
        .turn_on("Linux 2.6.29 and later: the default of cubic; echo 1 > /sys/module/tcp_cubic/parameters/hystart"),
    entry("hystart-plus-plus", StartUp, Controller("cubic"), &[("tcp.hystart", Text("hystart++"))])
        .document("On an RTT rise it grows four times slower for up to five rounds, and returns to slow start if the rise was jitter.", "RFC 9406")
        .evidence("RFC 9406 section 5: deployed in Windows, with fewer retransmissions and timeouts than plain slow start.")
        .turn_on("in no Linux kernel: on by default in Windows (RFC 9406, section 5). Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.hystart=hystart++ (docs/proxy.md)")
        .effort(Effort::OnlyHere),
    entry("hystart-off", StartUp, Controller("cubic"), &[("tcp.hystart", Text("off"))])
        .document("Slow start goes on until a loss or a mark.", "RFC 5681")
        .evidence("Faster where HyStart leaves too early, at the price of a burst of losses.")
        .turn_on("Linux: echo 0 > /sys/module/tcp_cubic/parameters/hystart"),
    entry("rack-tlp", TailLoss, Sack, &[("tcp.rack", Flag(true)), ("tcp.tail_loss_probe", Text("rfc8985"))])
        .document("Judges losses by the time since a segment was sent instead of counting duplicates, and probes a silent tail after two RTTs: lost tails and lost retransmissions need no timeout.", "RFC 8985")
        .evidence("RFC 8985: tail losses are repaired in fast recovery instead of by a timeout.")
        .turn_on("Linux 4.18 and later: the default (sysctl net.ipv4.tcp_recovery=1 net.ipv4.tcp_early_retrans=3)"),
    entry("no-rack-tlp", TailLoss, Tcp, &[("tcp.rack", Flag(false)), ("tcp.tail_loss_probe", Text("off"))])
        .document("Detects losses by duplicate ACKs and SACKed segments only and waits for the timer at the tail: what there was before.", "RFC 6675, RFC 6298")
        .evidence("Included to show what RACK-TLP is worth here.")
        .turn_on("Linux 4.4 to 6.16: sysctl net.ipv4.tcp_recovery=0 net.ipv4.tcp_early_retrans=0. From 6.17 on RACK is the only loss detection, and tcp_recovery=0 has no effect"),
    entry("tail-loss-probe-draft", TailLoss, Sack, &[("tcp.rack", Flag(false)), ("tcp.tail_loss_probe", Text("draft"))])
        .document("The first tail loss probe: after two RTTs of silence one segment is sent again so that its SACK starts fast recovery; one outstanding segment waits 1.5 RTT and the worst delayed ACK.", "draft-dukkipati-tcpm-tcp-loss-probe-01")
        .evidence("Its successor is in RFC 8985; no figure is cited here.")
        .turn_on("Linux 3.10 to 4.13: sysctl net.ipv4.tcp_early_retrans=3, from 4.4 on with net.ipv4.tcp_recovery=0 (no RACK), from 4.11 on with net.ipv4.tcp_fack=1; 4.14 has another timeout. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.rack=false --set tcp.tail_loss_probe=draft (docs/proxy.md)"),
    entry("tail-loss-probe", TailLoss, Sack, &[("tcp.tail_loss_probe", Text("rfc8985"))])
        .document("Only the probe half of RFC 8985, with whatever loss detection the scenario has.", "RFC 8985 section 7")
        .evidence("As for rack-tlp.")
        .turn_on("Linux 3.10 and later: sysctl net.ipv4.tcp_early_retrans=3 (the default)"),
    entry("early-retransmit", TailLoss, Tcp, &[("tcp.early_retransmit", Text("rfc5827"))])
        .document("With fewer than four segments out and nothing new to send, fewer duplicate ACKs start fast retransmit.", "RFC 5827")
        .evidence("Matters for windows below four segments; no measured gain is cited here. RACK's reordering window has replaced it in Linux.")
        .turn_on("Linux 3.5 to 4.10: sysctl net.ipv4.tcp_early_retrans=1; later kernels have RACK instead. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.early_retransmit=rfc5827 (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("early-retransmit-delayed", TailLoss, Tcp, &[("tcp.early_retransmit", Text("delayed"))])
        .document("Early retransmit that waits a quarter of an RTT first, so that reordering does not trigger it.", "RFC 5827; Linux 3.5's variant")
        .evidence("RFC 5827 section 3.2 names reordering as the risk; no figure for the delay is known here.")
        .turn_on("Linux 3.5 to 4.10: sysctl net.ipv4.tcp_early_retrans=2. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.early_retransmit=delayed (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("limited-transmit", TailLoss, Tcp, &[("tcp.limited_transmit", Flag(true))])
        .document("Sends new data on the first two duplicate ACKs, so that small windows still produce the third.", "RFC 3042")
        .evidence("RFC 3042 section 1 cites a trace of a web server in which it would have avoided about a quarter of the timeouts.")
        .turn_on("Linux: always on; FreeBSD: sysctl net.inet.tcp.rfc3042=1"),
    entry("prr", TailLoss, Sack, &[("tcp.prr", Text("rfc9937"))])
        .document("During recovery sends in proportion to what arrives, so that the window ends at ssthresh without a silent half round trip or a burst.", "RFC 9937 (RFC 6937)")
        .evidence("Dukkipati et al., IMC 2011: responses with losses 3 to 10 % shorter than with what Linux had before.")
        .turn_on("Linux 3.2 and later: always on (its older rules)"),
    entry("f-rto", TailLoss, Tcp, &[("tcp.frto", Flag(true)), ("tcp.undo", Flag(true))])
        .document("After a timeout sends new data first; if ACKs show that nothing was lost, the window comes back and nothing is sent twice.", "RFC 5682")
        .evidence("RFC 5682 section 1: for links with delay spikes; where the timeout was right it behaves as without.")
        .turn_on("Linux: on by default (sysctl net.ipv4.tcp_frto, any value but 0)"),
    entry("rto-restart", TailLoss, Tcp, &[("tcp.rto_restart", Flag(true))])
        .document("Counts the retransmission timer from when the earliest outstanding segment was sent, not from the last ACK, while fewer than four segments are out or wait: the timeout of a lost tail comes an RTT sooner.", "RFC 7765")
        .evidence("Rajiullah et al., CCR 2015: shorter flows where the tail is lost; ACKs that are late by more than the margin make it spurious (docs/tail-loss.md).")
        .turn_on("In no Linux release: patches were offered in 2014 and 2015 (sysctl net.ipv4.tcp_rto_restart there). Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.rto_restart=true (docs/proxy.md)")
        .effort(Effort::OnlyHere),
    entry("tlp-restart", TailLoss, Sack, &[("tcp.rack", Flag(false)), ("tcp.tail_loss_probe", Text("draft")), ("tcp.tail_loss_probe_restart", Flag(true))])
        .document("The first tail loss probe, its timer counted from when the earliest outstanding segment was sent: the probe of a lost tail leaves an RTT sooner, and writes of a thin stream do not put it off.", "Rajiullah, Hurtig, Brunstrom, Petlund, Welzl, CCR 45(1), 2015")
        .evidence("The paper ranks it first in most of its scenarios; it tolerates one RTT of extra ACK delay where the plain probe tolerates two (docs/tail-loss.md).")
        .turn_on("In no Linux release: a patch of 2015 to tcp_schedule_loss_probe. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.rack=false --set tcp.tail_loss_probe=draft --set tcp.tail_loss_probe_restart=true (docs/proxy.md)")
        .effort(Effort::OnlyHere),
    entry("rto-restart-with-probe", TailLoss, Sack, &[("tcp.rto_restart", Flag(true)), ("tcp.tail_loss_probe", Text("draft")), ("tcp.rack", Flag(false))])
        .document("RTO restart with the first tail loss probe: where the shortened timeout comes first, a probe is sent in its place, which costs no window.", "RFC 7765 section 5; draft-dukkipati-tcpm-tcp-loss-probe-01")
        .evidence("RFC 7765 recommends the pair; times are those of RTO restart, reactions those of the probe.")
        .turn_on("In no Linux release: the patches for RTO restart with net.ipv4.tcp_early_retrans=3. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.rto_restart=true --set tcp.tail_loss_probe=draft --set tcp.rack=false (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("rack-tlp-restart", TailLoss, Sack, &[("tcp.rack", Flag(true)), ("tcp.tail_loss_probe", Text("rfc8985")), ("tcp.tail_loss_probe_restart", Flag(true)), ("tcp.learn_ack_delay", Flag(true))])
        .document("RACK-TLP whose probe timer counts from when the earliest outstanding segment was sent, with an allowance for delayed ACKs that is learned: four times RTTVAR at most, the whole one after a probe in vain.", "Fleetfoot's own: RFC 8985 section 7.2 with the restart of Rajiullah et al., CCR 2015")
        .evidence("Measured here only (docs/tail-loss.md).")
        .turn_on("In no kernel: a change to tcp_schedule_loss_probe. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.rack=true --set tcp.tail_loss_probe=rfc8985 --set tcp.tail_loss_probe_restart=true --set tcp.learn_ack_delay=true (docs/proxy.md)")
        .effort(Effort::OnlyHere),
    entry("thin-linear-timeouts", TailLoss, Tcp, &[("tcp.thin_linear", Flag(true))])
        .document("The first six timeouts of a stream with fewer than four segments out do not double the timer.", "Linux, Documentation/networking/tcp-thin.txt; Petlund 2009")
        .evidence("For streams that can only be repaired by the timer; a congested path sees up to six copies of a small segment at equal distances.")
        .turn_on("Linux 2.6.34 and later: sysctl net.ipv4.tcp_thin_linear_timeouts=1, or the socket option TCP_THIN_LINEAR_TIMEOUTS"),
    entry("thin-dupack", TailLoss, Sack, &[("tcp.rack", Flag(false)), ("tcp.thin_dupack", Flag(true))])
        .document("With fewer than four segments out and nothing more to send, the first duplicate ACK repairs, without RACK.", "Linux, Documentation/networking/tcp-thin.txt; Petlund 2009")
        .evidence("RACK repairs a quarter of an RTT later and is not fooled by reordering; Linux removed the option in 4.11.")
        .turn_on("Linux 2.6.34 to 4.10: sysctl net.ipv4.tcp_thin_dupack=1, or the socket option TCP_THIN_DUPACK. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.rack=false --set tcp.thin_dupack=true (docs/proxy.md)"),
    entry("rdb", TailLoss, Tcp, &[("tcp.rdb", Text("one"))])
        .document("Redundant data bundling: a new segment of a thin stream carries the one before along, so that a single lost segment is repaired by the next packet. Never more packets, only larger ones; losses that bundles repaired reduce the window.", "Opstad et al., LCN 2015; Opstad, MSc thesis, Oslo 2015")
        .evidence("The slides of 2015: mean ACK latency of 154 instead of 270 ms at 10 % loss and 150 ms RTT, with as many segments as fit (docs/thin-streams.md).")
        .turn_on("In no Linux release: the patches of March 2016 (sysctl net.ipv4.tcp_rdb=1, or the socket option TCP_RDB). Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.rdb=one (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("rdb-unlimited", TailLoss, Tcp, &[("tcp.rdb", Text("all"))])
        .document("Redundant data bundling with as many older segments as fit: repairs losses in a row too, and sends several times the bytes.", "Opstad et al., LCN 2015")
        .evidence("As for rdb; the authors found added queueing delay for others and bound it to one segment.")
        .turn_on("In no Linux release: the patches of March 2016 with net.ipv4.tcp_rdb_max_packets=0. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.rdb=all (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("min-rto-20ms", TailLoss, Tcp, &[("tcp.min_rto", Text("20 ms"))])
        .document("Lets the retransmission timer fire 20 ms after the expected ACK instead of 200 ms or 1 s.", "RFC 6298 (which asks for 1 s); Vasudevan et al., SIGCOMM 2009")
        .evidence("Vasudevan et al.: removes the collapse of synchronised transfers; delayed ACKs of 40 ms and more make some timeouts spurious.")
        .turn_on("Linux, per route: ip route change default via GATEWAY dev IF rto_min 20ms; Linux 6.11 and later: sysctl net.ipv4.tcp_rto_min_us=20000"),
    entry("min-rto-1s", TailLoss, Tcp, &[("tcp.min_rto", Text("1 s"))])
        .document("The floor of the retransmission timer that the standard asks for.", "RFC 6298 section 2.4")
        .evidence("Allman and Paxson 1999: a lower floor trades spurious timeouts for faster recovery.")
        .turn_on("Linux, per route: ip route change default via GATEWAY dev IF rto_min 1s"),
    entry("sack", TailLoss, Tcp, &[("tcp.sack", Flag(true)), ("tcp.dsack", Flag(true))])
        .document("Selective acknowledgments: the sender knows which segments are missing and repairs several losses in one round trip.", "RFC 2018, RFC 6675, RFC 2883")
        .evidence("Fall and Floyd, CCR 1996: without it several losses in a window often need a timeout.")
        .turn_on("Linux: sysctl net.ipv4.tcp_sack=1 net.ipv4.tcp_dsack=1 (the default)"),
    entry("keep-window-when-idle", BurstyFlows, Tcp, &[("tcp.window_validation", Text("none"))])
        .document("Keeps the congestion window over pauses: the next burst on a kept-alive connection starts at full speed, into a network that may have changed.", "RFC 7661 discusses the risk")
        .evidence("What it gains and risks depends on what happened to the path meanwhile; compare shows the gain only.")
        .turn_on("Linux: sysctl net.ipv4.tcp_slow_start_after_idle=0"),
    entry("restart-window-rfc5681", BurstyFlows, Tcp, &[("tcp.window_validation", Text("rfc5681"))])
        .document("After a pause longer than the RTO the window is at most the initial one.", "RFC 5681 section 4.1")
        .evidence("The standard rule; a burst after a pause starts slowly.")
        .turn_on("FreeBSD: the default; in no Linux kernel (Linux decays: see decay-window-rfc2861). Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.window_validation=rfc5681 (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("decay-window-rfc2861", BurstyFlows, Tcp, &[("tcp.window_validation", Text("rfc2861"))])
        .document("Halves the window for each RTO of silence, as Linux does: little use alone lowers nothing while acknowledgments come.", "RFC 2861 (made historic by RFC 7661)")
        .evidence("Linux's default (ip-sysctl: tcp_slow_start_after_idle).")
        .turn_on("Linux: sysctl net.ipv4.tcp_slow_start_after_idle=1 (the default)"),
    entry("new-cwv", BurstyFlows, Tcp, &[("tcp.window_validation", Text("newcwv"))])
        .document("Keeps the window over pauses of up to five minutes and answers a loss by half of what was really used, less what was lost. While less than half of the window is used it grows only where it is full, and bursts are paced.", "RFC 7661; numbers of the pacing: Fleetfoot's")
        .evidence("A study of video streams (NOSSDAV 2022): fewer changes of quality with several clients on a slow line. A kept window may be stale when the path has changed.")
        .turn_on("Linux 6.4 and later, Fleetfoot built with the feature bpf: fleetfoot attach newcwv --default; in no kernel by itself, only a patch for Linux by its authors, and tcp_slow_start_after_idle=0 keeps the window without the rest")
        .effort(Effort::Patch),
    entry("new-cwv-unpaced", BurstyFlows, Tcp, &[("tcp.window_validation", Text("newcwv-unpaced"))])
        .document("New-CWV whose bursts after a pause leave at once, as far as the window goes.", "RFC 7661 (pacing is a SHOULD in 4.4.3)")
        .evidence("A burst of a whole window into a small buffer loses its end.")
        .turn_on("In no kernel; a patch for Linux by its authors. The nearest is New-CWV with pacing: fleetfoot attach newcwv --default. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.window_validation=newcwv-unpaced (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("new-cwv-probing", BurstyFlows, Tcp, &[("tcp.window_validation", Text("newcwv-probing"))])
        .document("New-CWV that sends after a pause at the rate it had used before, and at half of that for the first second if the RTT turns out a quarter above the smallest known.", "Fleetfoot's own, on RFC 7661")
        .evidence("It asks the path before it trusts a window from before the pause; what that costs where nothing changed is for experiments to say.")
        .turn_on("In no kernel. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.window_validation=newcwv-probing (docs/proxy.md)")
        .effort(Effort::OnlyHere),
    entry("reno", GreedyFlows, Tcp, &[("tcp.congestion_control", Text("reno"))])
        .document("One segment more per round trip, half on a loss.", "RFC 5681, RFC 6582")
        .evidence("The yardstick of all others; slow to fill large pipes.")
        .turn_on("Linux: sysctl net.ipv4.tcp_congestion_control=reno"),
    entry("cubic", GreedyFlows, Tcp, &[("tcp.congestion_control", Text("cubic"))])
        .document("The window grows as a cubic function of the time since the last loss, to 0.7 of it on a loss.", "RFC 9438")
        .evidence("RFC 9438 section 1: the default of Linux, Windows and Apple systems.")
        .turn_on("Linux 2.6.19 and later: the default; sysctl net.ipv4.tcp_congestion_control=cubic"),
    entry("dctcp", GreedyFlows, QueueAndTcp, &[
        ("tcp.congestion_control", Text("dctcp")),
        ("tcp.ecn", Text("accurate")),
        (QUEUE, Text("codel")),
        ("queue.target", Text("1 s")),
        ("queue.ce_threshold", RttShare(7)),
    ])
        .document("Reduces the window in proportion to the share of marked bytes. The queue marks every packet that waited longer than a seventh of the RTT, the least that keeps a line without jitter full, and twice the mean jitter of the links; it must not be shared with flows that halve.", "RFC 8257; the seventh: Alizadeh et al., SIGCOMM 2010 (K > C RTT / 7), whose K = 65 packets at 10 Gbit/s has room for bursts of hosts")
        .evidence("Alizadeh et al., SIGCOMM 2010: same throughput with a tenth of the buffer in data centres. Only for networks under one administration.")
        .turn_on("Linux 3.18 and later, on both hosts: sysctl net.ipv4.tcp_congestion_control=dctcp net.ipv4.tcp_ecn=1, from 7.0 on net.ipv4.tcp_ecn=3, which counts every mark (RFC 9768); marking at the bottleneck, Linux 4.2 and later: tc qdisc replace dev IF root codel target 1s ce_threshold T, where T is a seventh of the RTT and what the hosts' jitter spans")
        .effort(Effort::SeveralSettings),
    entry("cdg", GreedyFlows, Tcp, &[("tcp.congestion_control", Text("cdg"))])
        .document("Backs off with a probability that grows with the gradient of the RTT: the queue stays short without a threshold of delay. A shadow window takes back after a loss what was given up beside flows that react to losses alone.", "Hayes and Armitage, Networking 2011; Linux tcp_cdg")
        .evidence("Hayes and Armitage 2011: small queues and more goodput under losses that are not congestion's. It loses share to CUBIC in deep buffers, and jitter of the path looks like a gradient.")
        .turn_on("Linux 4.2 and later: modprobe tcp_cdg; sysctl net.ipv4.tcp_congestion_control=cdg; without that module, Linux 6.4 and later, Fleetfoot built with the feature bpf: fleetfoot attach cdg --default"),
    entry("cdg-freebsd", GreedyFlows, Tcp, &[("tcp.congestion_control", Text("cdg-freebsd"))])
        .document("CDG as its authors wrote it: a moving average of gradients in milliseconds, back-offs at once and at most every second round trip, losses ignored unless the queue is judged full.", "Hayes and Armitage, Networking 2011; FreeBSD cc_cdg")
        .evidence("Less queue and less throughput than the version of Linux with the same G.")
        .turn_on("FreeBSD: kldload cc_cdg; sysctl net.inet.tcp.cc.algorithm=cdg. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.congestion_control=cdg-freebsd (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("cdg-one-way", GreedyFlows, Tcp, &[
        ("tcp.congestion_control.kind", Text("cdg")),
        ("tcp.congestion_control.gradient", Text("one-way")),
        ("tcp.timestamps", Flag(true)),
    ])
        .document("CDG with the gradient of the data path's one-way delay, from timestamps: a queue that ACKs meet is no reason to send less.", "Fleetfoot's own; CDG: Hayes and Armitage, Networking 2011")
        .evidence("The clock of timestamps is milliseconds: smaller gradients are not seen, and a step of one looks like a whole one.")
        .turn_on("In no kernel. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.congestion_control.kind=cdg --set tcp.congestion_control.gradient=one-way --set tcp.timestamps=true (docs/proxy.md)")
        .effort(Effort::OnlyHere),
    entry("vegas", GreedyFlows, Tcp, &[("tcp.congestion_control", Text("vegas"))])
        .document("Holds the window where two to four segments wait in the path's queue, by the smallest RTT of each round trip and of the connection.", "Brakmo and Peterson, JSAC 13(8), 1995; Linux tcp_vegas")
        .evidence("A queue of a few packets for each flow as long as all do so; beside flows that fill the queue it gets little.")
        .turn_on("Linux, on every host that sends: modprobe tcp_vegas; sysctl net.ipv4.tcp_congestion_control=vegas")
        .effort(Effort::SeveralSettings),
    entry("westwood", GreedyFlows, Tcp, &[("tcp.congestion_control", Text("westwood"))])
        .document("NewReno that measures the rate of its acknowledgments and continues after a loss from that rate times the smallest RTT, not from half of the window.", "Mascolo et al., MobiCom 2001; Grieco and Mascolo, CCR 34(2), 2004; Linux tcp_westwood")
        .evidence("Mascolo et al. 2001: several times NewReno's throughput on a path that loses packets at random. Where the buffer is larger than the path holds it gives more than half away at each loss.")
        .turn_on("Linux: modprobe tcp_westwood; sysctl net.ipv4.tcp_congestion_control=westwood"),
    entry("bbr", GreedyFlows, Tcp, &[("tcp.congestion_control", Text("bbr"))])
        .document("Sends at the rate the path delivered at best in ten round trips, paced, with at most twice the product of rate and smallest RTT in flight. Losses do not lower the rate.", "draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell et al., ACM Queue 2016")
        .evidence("Cardwell et al. 2016: full lines at one per cent of random loss. In short buffers it loses much and leaves little to flows that halve.")
        .turn_on("Linux 4.9 and later: modprobe tcp_bbr; sysctl net.ipv4.tcp_congestion_control=bbr; before 4.13 also the queue fq at the port that sends: tc qdisc replace dev eth0 root fq"),
    entry("bbr3", GreedyFlows, Tcp, &[("tcp.congestion_control", Text("bbr3"))])
        .document("BBR with bounds on data in flight that losses above two per cent lower, and with probes far apart enough for others.", "draft-ietf-ccwg-bbr-04")
        .evidence("The draft's aims: less loss in short buffers than version 1 and a fairer share beside Reno and CUBIC.")
        .turn_on("In no released Linux; branch v3 of github.com/google/bbr. Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.congestion_control=bbr3 (docs/proxy.md)")
        .effort(Effort::Patch),
    entry("delayed-ack-off", Acknowledgments, Tcp, &[("tcp.delayed_ack", Text("off"))])
        .document("Acknowledges every segment at once: no wait for a second segment, finer clocking of the sender, twice as many ACKs.", "RFC 9293 3.8.6.3 allows it; Allman 1998")
        .evidence("Allman, CCR 1998: delayed ACKs slow slow start down where growth counts ACKs. Linux counts bytes and acknowledges the first segments at once, so less is left to gain.")
        .turn_on("Linux 3.11 and later, on the receiver, per route: ip route change default via GATEWAY dev IF quickack 1"),
    entry("delayed-ack-linux", Acknowledgments, Tcp, &[("tcp.delayed_ack", Text("linux"))])
        .document("Acknowledges the first segments of a connection at once, then every second one or after an adaptive delay of at least 40 ms.", "Linux net/ipv4/tcp_input.c")
        .evidence("The quick phase gives slow start its ACKs when they matter.")
        .turn_on("Linux: always on"),
    entry("timestamps", Acknowledgments, Tcp, &[("tcp.timestamps", Flag(true))])
        .document("A timestamp in every segment: an RTT sample with each ACK, also of retransmissions, and a way to see spurious ones; 12 bytes per segment.", "RFC 7323, RFC 3522")
        .evidence("12 of 1500 bytes are 0.8 %; what the samples are worth depends on the losses.")
        .turn_on("Linux: sysctl net.ipv4.tcp_timestamps=1 (the default)"),
    entry("no-timestamps", Acknowledgments, Tcp, &[("tcp.timestamps", Flag(false))])
        .document("No timestamps option: 12 bytes more payload per segment, fewer RTT samples, no Eifel detection.", "RFC 9293")
        .evidence("12 of 1500 bytes are 0.8 %.")
        .turn_on("Linux: sysctl net.ipv4.tcp_timestamps=0"),
    entry("nagle-off", Acknowledgments, Tcp, &[("tcp.nagle", Flag(false))])
        .document("Sends small segments at once instead of holding them while data is unacknowledged.", "RFC 896, RFC 9293 3.7.4")
        .evidence("Mogul and Minshall, CCR 2001: together with delayed ACKs holding costs up to a delayed-ACK time per write.")
        .turn_on("The program itself: setsockopt(TCP_NODELAY). Over Fleetfoot's TCP, for programs that stay as they are: fleetfoot proxy --masquerade --set tcp.nagle=false (docs/proxy.md)"),
    entry("super-packets", SuperPackets, QueueAndTcp, &[(QUEUE, Text("superpacket")), (SUPER, Text("burst"))])
        .document("Senders mark the packets of one burst as a super-packet, up to 10; the bottleneck admits the first only if there is room for the longest, keeps room for the others, and refuses them all if it refused the first. A short transfer's window is lost as a whole or not at all.", "Schinazi, UCB/EECS-2014-80 (2014)")
        .evidence("Its author measured lower mean completion times for 50 simultaneous transfers of 10 and of 100 packets, and judges the gains too small and the scheme unsafe for deployment: few first packets without followers shut the queue.")
        .turn_on("In no kernel. Senders, unmodified, on Linux: fleetfoot mark -- COMMAND for one program, or fleetfoot mark --between INSIDE,OUTSIDE for all hosts behind an interface (docs/mark.md); groups of a fixed length without holding: fleetfoot attach mark --interface IF. The bottleneck needs a queue that knows the marks: fleetfoot router router.toml, a file with queue = { kind = \"superpacket\" } before an output (docs/router.md; compare writes it for your line), or fleetfoot shell --queue superpacket")
        .effort(Effort::OnlyHere),
    entry("super-packets-hardened", SuperPackets, QueueAndTcp, &[(QUEUE, Text("sp-h")), (SUPER, Text("burst"))])
        .document("Super-packets with a queue that keeps every promise, reserves at most a part of its room, gives each source a share of that, takes a deposit of credit for room and returns it when the room is used, and treats what it cannot promise as regular packets.", "Fleetfoot's own (docs/superpackets.md); shares: Choudhury and Hahne 1998")
        .evidence("Without super-packets it is a drop-tail queue, packet for packet. In simulations of ours flows of ten packets beside five long ones take 43 ms on average instead of 61 with drop-tail, and firsts without followers, which shut the published queue, harm nobody (docs/superpackets.md).")
        .turn_on("In no kernel. Senders, unmodified, on Linux: fleetfoot mark -- COMMAND for one program, or fleetfoot mark --between INSIDE,OUTSIDE for all hosts behind an interface (docs/mark.md); groups of a fixed length without holding: fleetfoot attach mark --interface IF. The bottleneck needs a queue that knows the marks: fleetfoot router router.toml, a file with queue = { kind = \"sp-h\" } before an output (docs/router.md; compare writes it for your line), or fleetfoot shell --queue sp-h")
        .effort(Effort::OnlyHere),
];

/// Pairs that are sensible together: a queue that isolates or signals with a sender that profits from it.
pub static PAIRS: &[(&str, &str)] = &[
    ("fq-codel", "initial-window-20"),
    ("fq-codel", "keep-window-when-idle"),
    ("fq-codel", "hystart-plus-plus"),
    ("fq-codel", "delayed-ack-off"),
    ("fq-codel", "rack-tlp"),
    ("fq-codel-ecn", "initial-window-20"),
    ("codel", "initial-window-20"),
    ("codel-ecn", "hystart-plus-plus"),
    ("initial-window-20", "delayed-ack-off"),
    ("initial-window-3", "short-buffer"),
];
