//! Queue disciplines as `tc` takes them, with what a variant's parameters change of its defaults.

mod beyond;
mod red;
mod turns;

use super::super::long_path;
use fleetfoot_core::parameter::Value;
use fleetfoot_core::queue::{DualPi2, Limit};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::spec::LinkSpec;

pub(in crate::compare) use beyond::beyond_tc;

/// A discipline with its parameters.
pub(super) struct Discipline {
    /// What follows `root` in `tc qdisc replace dev eth0 root`; `None`: Linux has no such discipline, and `fleetfoot router` does.
    pub arguments: Option<String>,
    /// The nearest that Linux has, where it is another one.
    pub nearest: Option<String>,
    /// The mechanism that `arguments` turn on, where it is another one with results of its own.
    pub stands_in: Option<&'static str>,
    /// What it does to waiting packets, as the end of a sentence.
    pub does: &'static str,
    /// From which kernel on.
    pub needs: String,
    /// Where `tc` counts packets and the scenario bytes: what the limit in `arguments` stands for.
    pub room: Option<String>,
    /// What to ask for on a device that does not run Linux.
    pub elsewhere: String,
    /// Whether flows have queues of their own.
    pub fair: bool,
    /// Whether it shapes by itself (cake).
    pub shapes: bool,
}

impl Discipline {
    /// Of a plain queue, what its room is for: `before` is the queue that it replaces. A shorter one is worth nothing behind the ring of
    /// a driver that has room for more; a longer one is there so that bursts find room.
    pub(super) fn instead_of(mut self, before: &LinkSpec, link: &LinkSpec, at_port: bool) -> Discipline {
        let packets = |link| Queue::plain(link).packets();
        if link.queue != "drop-tail" || before.queue != "drop-tail" {
            return self;
        }
        if packets(link) > packets(before) {
            self.does = "bursts find room to wait in instead of being dropped";
        } else if at_port {
            self.needs
                .push_str(" The driver's own ring must be short too (ethtool -G eth0 tx 64).");
        }
        self
    }

    /// The discipline of `link`, sent at `rate`, which a shaper may have lowered.
    pub(super) fn of(link: &LinkSpec, rate: Option<Rate>) -> Discipline {
        Discipline::new(Queue {
            link,
            rate,
            port: false,
        })
    }

    /// The discipline of `link` at the port itself, whose memory the limit is.
    pub(super) fn at_port(link: &LinkSpec, rate: Option<Rate>) -> Discipline {
        Discipline::new(Queue {
            link,
            rate,
            port: true,
        })
    }

    fn new(queue: Queue<'_>) -> Discipline {
        let link = queue.link;
        let mut discipline = match link.queue {
            "drop-tail" => queue.drop_tail(),
            "red" => queue.red(),
            "codel" => queue.codel(),
            "fq-codel" => queue.fq_codel(),
            "pie" => queue.pie("pie", 1000),
            "fq-pie" => queue.pie("fq_pie", 10_240),
            "cake" => queue.cake(),
            "dualpi2" => queue.dualpi2(),
            "drr" => queue.drr(),
            "sfq" => queue.sfq(),
            "favourtail" if queue.flag("budget") => only_here(
                "the first packets of flows go ahead, within a budget for each host",
                "cake besteffort triple-isolate",
            ),
            "favourtail" => only_here("packets whose flow has nothing waiting go ahead", "fq_codel"),
            _ => only_here("packets wait as the variant says", "fq_codel"),
        };
        let arguments = discipline.arguments.as_deref().unwrap_or_default();
        if !matches!(link.queue, "red" | "drop-tail") && arguments.contains(" limit ") {
            discipline.room = queue.room();
        }
        discipline.needs.push_str(&queue.said_beyond());
        discipline
    }
}

/// What is nowhere but in Fleetfoot.
fn only_here(does: &'static str, nearest: &str) -> Discipline {
    Discipline {
        arguments: None,
        nearest: Some(nearest.to_owned()),
        stands_in: None,
        does,
        needs: String::from(
            "Nowhere but in Fleetfoot: no kernel and no device has this queue. A Linux machine of yours on the way, a bridge between ports without addresses, has it while this command runs (docs/router.md; for good docs/data-path.md).",
        ),
        room: None,
        elsewhere: String::from("flow queueing, if the device has it"),
        fair: true,
        shapes: false,
    }
}

#[derive(Clone, Copy)]
struct Queue<'a> {
    link: &'a LinkSpec,
    rate: Option<Rate>,
    /// Whether it is at the port itself, not behind a shaper in a router that has memory to spare.
    port: bool,
}

/// What is added to `arguments` one after the other.
#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn new(kind: &str) -> Words {
        Words(vec![kind.to_owned()])
    }

    fn add(&mut self, words: impl Into<String>) {
        self.0.push(words.into());
    }

    fn text(self) -> Option<String> {
        Some(self.0.join(" "))
    }
}

impl<'a> Queue<'a> {
    fn plain(link: &'a LinkSpec) -> Queue<'a> {
        Queue {
            link,
            rate: None,
            port: false,
        }
    }

    /// The value of a parameter that was given, or is a default that `tc` does not share.
    fn value(&self, name: &str) -> Option<Value> {
        let values = &self.link.queue_values;
        let known = values.table().iter().any(|parameter| parameter.name == name);
        known.then(|| values.value(name))
    }

    fn flag(&self, name: &str) -> bool {
        self.value(name) == Some(Value::Flag(true))
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.value(name) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    fn mtu(&self) -> u64 {
        u64::from(self.link.mtu.max(1))
    }

    /// Room in packets of this many bytes.
    fn packets_of(&self, len: u64) -> u64 {
        match self.link.queue_values.limit("limit") {
            Limit::Packets(packets) => u64::from(packets),
            Limit::Bytes(bytes) => bytes.0.div_ceil(len).max(1),
            Limit::Unlimited => 1_000_000,
        }
    }

    /// Room in the largest packets.
    fn packets(&self) -> u64 {
        self.packets_of(self.mtu())
    }

    /// Room where `tc` counts packets and no bytes: the smallest packets find as much of it as in the simulation.
    fn smallest(&self) -> u64 {
        self.packets_of(SMALLEST.min(self.mtu()))
    }

    /// Room in packets where nothing but the limit ends a queue: at a port in the largest, of which its memory holds so many.
    fn whole(&self) -> u64 {
        match self.port {
            true => self.packets(),
            false => self.smallest(),
        }
    }

    /// What the limit in packets stands for, if that of the scenario is in bytes.
    fn room(&self) -> Option<String> {
        let Limit::Bytes(bytes) = self.link.queue_values.limit("limit") else {
            return None;
        };
        if self.port && matches!(self.link.queue, "drr" | "sfq") {
            return Some(format!(
                "The limit of the scenario is {bytes}, the memory of the port, and tc counts packets here: it is given in packets of {} bytes; of smaller ones fewer bytes find room than in the simulation.",
                self.mtu()
            ));
        }
        let smallest = SMALLEST.min(self.mtu());
        Some(format!(
            "The limit of the scenario is {bytes}, and tc counts packets here: it is given in packets of {smallest} bytes, the smallest that are usual, so that none is dropped earlier than in the simulation; of larger ones more wait, if the queue ever gets so long."
        ))
    }

    fn limit(&self, words: &mut Words, default: u64) {
        let room = match self.link.queue {
            "sfq" => self.whole(),
            _ => self.smallest(),
        };
        if room != default {
            words.add(format!("limit {room}"));
        }
    }

    /// Memory, where the kernel's default does not hold the largest packets for which there is room.
    fn memory_limit(&self, words: &mut Words) {
        let memory = self.packets().saturating_mul(memory_of(self.mtu()));
        if memory > DEFAULT_MEMORY && self.link.queue_values.limit("limit") != Limit::Unlimited {
            words.add(format!("memory_limit {}", memory.min(u64::from(u32::MAX))));
        }
    }

    fn duration(&self, words: &mut Words, name: &str, word: &str, default: Duration) {
        if let Some(Value::Duration(span)) = self.value(name)
            && span != default
        {
            words.add(format!("{word} {}", tc_time(span)));
        }
    }

    fn queues(&self, words: &mut Words) {
        match self.value("queues") {
            Some(Value::Integer(queues)) if queues != 1024 => words.add(format!("flows {queues}")),
            _ => {}
        }
    }

    fn quantum(&self, words: &mut Words) {
        if let Some(Value::Bytes(quantum)) = self.value("quantum") {
            words.add(format!("quantum {}", quantum.0));
        }
    }

    /// `default`: whether it marks unless configured otherwise.
    fn ecn(&self, words: &mut Words, default: bool) {
        match (self.flag("ecn"), default) {
            (true, false) => words.add("ecn"),
            (false, true) => words.add("noecn"),
            (true, true) | (false, false) => {}
        }
    }

    fn drop_tail(&self) -> Discipline {
        let less = u64::from(self.flag("ns2_compat"));
        let arguments = match self.link.queue_values.limit("limit") {
            Limit::Bytes(bytes) => format!("bfifo limit {}", bytes.0.saturating_sub(less).max(1)),
            Limit::Packets(_) | Limit::Unlimited => {
                format!("pfifo limit {}", self.packets().saturating_sub(less).max(1))
            }
        };
        Discipline {
            elsewhere: format!("a queue limit of {} packets", self.packets()),
            arguments: Some(arguments),
            nearest: None,
            stands_in: None,
            does: "no more packets wait than this plain queue has room for",
            needs: String::from("Any Linux, package iproute2."),
            room: None,
            fair: false,
            shapes: false,
        }
    }

    /// Why the interval is not the default, where a long path wants another.
    pub(super) fn long_interval(&self) -> String {
        match (self.value("interval"), self.value("target")) {
            (Some(Value::Duration(interval)), Some(Value::Duration(target)))
                if interval.as_nanos() >= 2 * long_path::DEFAULT.as_nanos() =>
            {
                format!(
                    " The interval of {interval} is about the longest round trip here and the target of {target} a small part of it, as RFC 8289 wants it (4.3, 4.4): with the default, {}, long transfers over such a path lose throughput.",
                    long_path::DEFAULT
                )
            }
            _ => String::new(),
        }
    }

    fn codel_times(&self, words: &mut Words) {
        self.duration(words, "target", "target", Duration::from_millis(5));
        self.duration(words, "interval", "interval", Duration::from_millis(100));
    }

    fn threshold(&self, words: &mut Words) {
        self.duration(words, "ce_threshold", "ce_threshold", Duration::ZERO);
    }

    /// The bytes after which a step marks, for devices that are configured in bytes.
    fn step(&self) -> Option<String> {
        let Some(Value::Duration(step)) = self.value("ce_threshold") else {
            return None;
        };
        let bytes = self.rate?.bps() as f64 / 8.0 * step.as_secs_f64();
        Some(format!(
            "ECN marking (not dropping) of every packet from a queue of K = {:.0} kB on, which is {:.0} packets of {} bytes or {step} at {}",
            (bytes / 1e3).max(1.0),
            (bytes / self.mtu() as f64).ceil().max(1.0),
            self.mtu(),
            self.rate?
        ))
    }

    fn codel(&self) -> Discipline {
        let mut words = Words::new("codel");
        self.limit(&mut words, 1000);
        self.codel_times(&mut words);
        self.ecn(&mut words, false);
        self.threshold(&mut words);
        let step = self.step();
        Discipline {
            arguments: words.text(),
            nearest: None,
            stands_in: None,
            does: if step.is_some() {
                "every packet that waited longer than the threshold is marked, so that senders slow down before the queue grows"
            } else {
                "packets are dropped one by one as soon as the wait stays too long, so that senders slow down before the queue grows"
            },
            needs: format!(
                "{}{}",
                if step.is_some() {
                    "Linux 4.2 or later, package iproute2."
                } else {
                    "Linux 3.5 or later, package iproute2."
                },
                self.long_interval()
            ),
            elsewhere: step
                .unwrap_or_else(|| String::from("CoDel, PIE or another queue management by delay")),
            room: None,
            fair: false,
            shapes: false,
        }
    }

    fn fq_codel(&self) -> Discipline {
        let mut words = Words::new("fq_codel");
        self.limit(&mut words, 10_240);
        self.memory_limit(&mut words);
        self.queues(&mut words);
        self.quantum(&mut words);
        self.codel_times(&mut words);
        self.ecn(&mut words, true);
        self.threshold(&mut words);
        match self.value("batch") {
            Some(Value::Integer(batch)) if batch != 64 => words.add(format!("drop_batch {batch}")),
            _ => {}
        }
        Discipline {
            arguments: words.text(),
            nearest: None,
            stands_in: None,
            does: "each connection waits in a queue of its own: short and quiet ones go ahead of long transfers, and those are kept from piling up",
            needs: format!("Linux 3.5 or later, package iproute2.{}", self.long_interval()),
            elsewhere: self.step().unwrap_or_else(|| {
                String::from("FQ-CoDel or another flow queueing; failing that, queue management by delay")
            }),
            room: None,
            fair: true,
            shapes: false,
        }
    }

    fn pie(&self, kind: &str, limit: u64) -> Discipline {
        let fair = kind == "fq_pie";
        let mut words = Words::new(kind);
        self.limit(&mut words, limit);
        if fair {
            self.memory_limit(&mut words);
        }
        self.queues(&mut words);
        self.quantum(&mut words);
        self.duration(&mut words, "target", "target", Duration::from_millis(15));
        self.duration(
            &mut words,
            "update_interval",
            "tupdate",
            Duration::from_millis(15),
        );
        // Linux counts them in sixteenths, from 0 to 32.
        for (name, default) in [("alpha", 2.0), ("beta", 20.0)] {
            let sixteenths = self.number(name).map(beyond::sixteenths);
            if let Some(sixteenths) = sixteenths.filter(|&value| value != default) {
                words.add(format!("{name} {sixteenths:.0}"));
            }
        }
        self.ecn(&mut words, false);
        if fair
            && self.flag("ecn")
            && let Some(threshold) = self.number("ecn_threshold").filter(|&share| share != 0.1)
        {
            words.add(format!("ecn_prob {:.0}", threshold * 100.0));
        }
        if self.value("delay") == Some(Value::Choice("rate")) {
            words.add("dq_rate_estimator");
        }
        Discipline {
            arguments: words.text(),
            nearest: None,
            stands_in: None,
            does: if fair {
                "each connection waits in a queue of its own: short and quiet ones go ahead of long transfers, and those are kept near a wait that is bearable"
            } else {
                "arriving packets are dropped with a probability that keeps the wait near its target"
            },
            needs: String::from(if fair {
                "Linux 5.6 or later, package iproute2."
            } else {
                "Linux 3.14 or later, package iproute2; cable modems of DOCSIS 3.1 have a relative of it that the provider switches on (RFC 8034)."
            }),
            elsewhere: String::from("PIE or another queue management by delay"),
            room: None,
            fair,
            shapes: false,
        }
    }

    fn dualpi2(&self) -> Discipline {
        let mut words = Words::new("dualpi2");
        self.limit(&mut words, 10_000);
        self.duration(&mut words, "target", "target", Duration::from_millis(15));
        self.duration(
            &mut words,
            "update_interval",
            "tupdate",
            Duration::from_millis(16),
        );
        // Linux counts them in parts of 256.
        for (name, default) in [("alpha", 0.16), ("beta", 3.2)] {
            if let Some(gain) = self.number(name).filter(|&gain| gain != default) {
                words.add(format!("{name} {}", (gain * 256.0).round() / 256.0));
            }
        }
        if let Some(coupling) = self.number("coupling").filter(|&k| k != 2.0) {
            words.add(format!("coupling_factor {:.0}", coupling.round().max(1.0)));
        }
        let step = match (self.value("step"), self.rate) {
            (Some(Value::Duration(step)), _) => step,
            (_, Some(rate)) => DualPi2::automatic_step(rate, self.link.mtu, self.link.framing),
            _ => Duration::from_millis(1),
        };
        if step != Duration::from_millis(1) {
            words.add(format!("step_thresh {}", tc_time(step)));
        }
        if self.value("drop_on_overload") == Some(Value::Flag(false)) {
            words.add("overflow");
        }
        if let Some(share) = self.number("classic_share").filter(|&share| share != 0.1) {
            words.add(format!("classic_protection {:.0}", share * 100.0));
        }
        Discipline {
            arguments: words.text(),
            nearest: None,
            stands_in: None,
            does: "senders that react to early marks wait in a very short queue of their own, beside a longer one for all others",
            needs: String::from(
                "Linux 6.17 or later with an iproute2 that knows dualpi2; cable lines with Low Latency DOCSIS have it when the provider switches it on.",
            ),
            elsewhere: String::from("L4S, a dual-queue coupled AQM (RFC 9332)"),
            room: None,
            fair: false,
            shapes: false,
        }
    }
}

/// Bytes of the largest packets for which the queue of `link` has room; `None`: no limit.
pub(super) fn room_of(link: &LinkSpec) -> Option<u64> {
    match link.queue_values.limit("limit") {
        Limit::Bytes(bytes) => Some(bytes.0),
        Limit::Packets(packets) => Some(u64::from(packets) * u64::from(link.mtu)),
        Limit::Unlimited => None,
    }
}

/// What the kernel counts for a packet that waits: a buffer of a power of two with what goes around the data, and its description; 2304
/// bytes for 1500.
fn memory_of(bytes: u64) -> u64 {
    (bytes + 390).next_power_of_two() + 256
}

/// From which kernel on there is cake, and at lines that a home router serves, where OpenWrt has it.
pub(super) fn cake_needs(rate: Option<Rate>) -> &'static str {
    match rate {
        Some(rate) if rate >= HOME_ROUTER => "Linux 4.19 or later, package iproute2.",
        _ => "Linux 4.19 or later, package iproute2 (OpenWrt: kmod-sched-cake).",
    }
}

/// From this rate on a line is hardly that of a home router.
const HOME_ROUTER: Rate = Rate::from_bps(1_000_000_000);
/// Bytes of an acknowledgment over IPv4 without options.
const SMALLEST: u64 = 40;
/// Bytes that `fq_codel` and `fq_pie` hold unless told otherwise.
const DEFAULT_MEMORY: u64 = 32 << 20;

/// A time as `tc` reads it, in whole microseconds: `5715us`, `20ms`, `1s`.
pub(super) fn tc_time(span: Duration) -> String {
    match span.as_nanos().div_ceil(1000).max(1) {
        us if us % 1_000_000 == 0 => format!("{}s", us / 1_000_000),
        us if us % 1000 == 0 => format!("{}ms", us / 1000),
        us => format!("{us}us"),
    }
}
