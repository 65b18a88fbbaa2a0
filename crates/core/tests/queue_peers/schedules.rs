//! Schedules of arrivals that are played through our queues and through other implementations.
//!
//! Arrivals are multiples of 1024 ns, Linux's tick of CoDel: so ns-3, which rounds a wait, and Linux, which rounds both its ends,
//! mean the same wait.

use fleetfoot_core::rng::Rng;

/// A packet comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Nanoseconds.
    pub(crate) at: u64,
    pub(crate) flow: u32,
    /// Bytes at layer 3.
    pub(crate) len: u32,
    /// Whether it can carry a mark.
    pub(crate) capable: bool,
}

/// A queue, a line and what arrives.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) name: &'static str,
    pub(crate) queue: &'static str,
    /// bit/s.
    pub(crate) rate: u64,
    pub(crate) mtu: u32,
    pub(crate) limit_packets: u32,
    pub(crate) target_us: u64,
    pub(crate) interval_us: u64,
    pub(crate) quantum: u64,
    pub(crate) batch: u64,
    pub(crate) ecn: bool,
    pub(crate) ce_threshold_us: Option<u64>,
    pub(crate) arrivals: Vec<Arrival>,
}

/// Letters of flows in records.
pub(crate) const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

const TICK: u64 = 1024;
const SECOND: u64 = 1_000_000_000;

impl Schedule {
    /// The first line of the schedule's file and of its records.
    pub(crate) fn head(&self) -> String {
        let threshold = self
            .ce_threshold_us
            .map_or(String::new(), |us| format!(" ce_threshold_us={us}"));
        format!(
            "# queue={} rate={} mtu={} limit_packets={} target_us={} interval_us={} quantum={} batch={} ecn={}{threshold} packets={}",
            self.queue,
            self.rate,
            self.mtu,
            self.limit_packets,
            self.target_us,
            self.interval_us,
            self.quantum,
            self.batch,
            u8::from(self.ecn),
            self.arrivals.len(),
        )
    }

    fn new(queue: &'static str) -> Schedule {
        Schedule {
            name: "",
            queue,
            rate: 20_000_000,
            mtu: 1500,
            limit_packets: 10_240,
            target_us: 5000,
            interval_us: 100_000,
            quantum: 1500,
            batch: 64,
            ecn: false,
            ce_threshold_us: None,
            arrivals: Vec::new(),
        }
    }

    /// Puts the arrivals in order of time on the clock of ticks.
    fn of(mut self, mut arrivals: Vec<Arrival>) -> Schedule {
        for arrival in &mut arrivals {
            arrival.at = arrival.at.div_ceil(TICK) * TICK;
        }
        arrivals.sort_by_key(|arrival| arrival.at);
        self.arrivals = arrivals;
        self
    }
}

/// Packets of one flow at `load` times 20 Mbit/s from `from` to `to`, in nanoseconds, with gaps that vary by `spread`.
fn stream(flow: u32, len: u32, load: f64, from: u64, to: u64, spread: f64, rng: &mut Rng) -> Vec<Arrival> {
    let gap = f64::from(len) * 400.0 / load;
    let mut at = from as f64;
    let mut arrivals = Vec::new();
    while at < to as f64 {
        arrivals.push(Arrival {
            at: at as u64,
            flow,
            len,
            capable: false,
        });
        at += gap * (1.0 + spread * (2.0 * rng.uniform() - 1.0));
    }
    arrivals
}

/// A window that comes as bursts, one per `rtt` from `from` to `to`: it grows by a packet a burst and is cut to 0.7 of itself
/// at random, as loss would.
fn sawtooth(flow: u32, rtt: u64, from: u64, to: u64, most: u64, rng: &mut Rng) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let (mut window, mut at) = (most / 2, from);
    while at < to {
        for number in 0..window {
            arrivals.push(Arrival {
                at: at + number * 300_000,
                flow,
                len: 1500,
                capable: false,
            });
        }
        window = if window > most || rng.below(40) == 0 {
            window * 7 / 10
        } else {
            window + 1
        };
        at += rtt + rng.below(2_000_000);
    }
    arrivals
}

fn capable(mut arrivals: Vec<Arrival>, share: f64, rng: &mut Rng) -> Vec<Arrival> {
    for arrival in &mut arrivals {
        arrival.capable = rng.uniform() < share;
    }
    arrivals
}

/// All of them: more than 10^5 packets.
pub(crate) fn all() -> Vec<Schedule> {
    type Make = fn(&mut Rng) -> Schedule;
    let random: [(&str, Make); 15] = [
        ("codel-overload", codel_overload),
        ("codel-on-off", codel_on_off),
        ("codel-sizes", codel_sizes),
        ("codel-other-target", codel_other_target),
        ("codel-full", codel_full),
        ("codel-ecn", codel_ecn),
        ("codel-ce-threshold", codel_ce_threshold),
        ("fq-bulk-and-sparse", fq_bulk_and_sparse),
        ("fq-bursts", fq_bursts),
        ("fq-overload", fq_overload),
        ("fq-on-off", fq_on_off),
        ("fq-ecn", fq_ecn),
        ("fq-random-6", |rng| fq_random(6, 1.1, rng)),
        ("fq-random-20", |rng| fq_random(20, 1.3, rng)),
        ("fq-random-50", |rng| fq_random(50, 0.97, rng)),
    ];
    let mut all: Vec<Schedule> = random
        .into_iter()
        .map(|(name, make)| Schedule {
            name,
            ..make(&mut Rng::for_element(1, name, "schedule"))
        })
        .collect();
    all.push(real());
    all
}

/// Twice the line's rate for three seconds, then calm, then twice again: the drop rate rises, and begins anew near its last.
fn codel_overload(rng: &mut Rng) -> Schedule {
    let mut arrivals = stream(0, 1500, 2.0, 0, 3 * SECOND, 0.2, rng);
    arrivals.extend(stream(0, 1500, 0.5, 5 * SECOND, 6 * SECOND, 0.2, rng));
    arrivals.extend(stream(0, 1500, 2.0, 6 * SECOND, 8 * SECOND, 0.2, rng));
    Schedule::new("codel").of(arrivals)
}

/// Bursts of 0.3 to 1.2 s at 1.05 to 1.6 times the rate, pauses between.
fn codel_on_off(rng: &mut Rng) -> Schedule {
    let (mut arrivals, mut at) = (Vec::new(), 0);
    while at < 12 * SECOND {
        let on = 300_000_000 + rng.below(900_000_000);
        let load = 1.05 + 0.55 * rng.uniform();
        arrivals.extend(stream(0, 1500, load, at, at + on, 0.5, rng));
        at += on + rng.below(600_000_000);
    }
    Schedule::new("codel").of(arrivals)
}

/// Packets of 40 to 1500 bytes, slightly more than the line carries.
fn codel_sizes(rng: &mut Rng) -> Schedule {
    let (mut arrivals, mut at) = (Vec::new(), 0_u64);
    while at < 5 * SECOND {
        let len = 40 + rng.below(1461) as u32;
        arrivals.push(Arrival {
            at,
            flow: 0,
            len,
            capable: false,
        });
        at += (f64::from(len) * 400.0 * rng.exponential(0.9)) as u64;
    }
    Schedule::new("codel").of(arrivals)
}

/// A target of 1 ms and an interval of 20 ms.
fn codel_other_target(rng: &mut Rng) -> Schedule {
    let schedule = Schedule {
        target_us: 1000,
        interval_us: 20_000,
        ..Schedule::new("codel")
    };
    schedule.of(sawtooth(0, 30_000_000, 0, 6 * SECOND, 90, rng))
}

/// A limit that is often reached.
fn codel_full(rng: &mut Rng) -> Schedule {
    let schedule = Schedule {
        limit_packets: 60,
        ..Schedule::new("codel")
    };
    schedule.of(stream(0, 1500, 1.8, 0, 2 * SECOND, 0.8, rng))
}

/// Nine of ten packets can carry a mark.
fn codel_ecn(rng: &mut Rng) -> Schedule {
    let mut arrivals = stream(0, 1500, 1.3, 0, 2 * SECOND, 0.4, rng);
    arrivals.extend(stream(0, 1500, 1.3, 3 * SECOND, 5 * SECOND, 0.4, rng));
    let arrivals = capable(arrivals, 0.9, rng);
    Schedule {
        ecn: true,
        ..Schedule::new("codel")
    }
    .of(arrivals)
}

/// Marks from 1 ms of wait on, as DCTCP wants them.
fn codel_ce_threshold(rng: &mut Rng) -> Schedule {
    let arrivals = capable(sawtooth(0, 25_000_000, 0, 5 * SECOND, 60, rng), 0.8, rng);
    Schedule {
        ecn: true,
        ce_threshold_us: Some(1000),
        ..Schedule::new("codel")
    }
    .of(arrivals)
}

/// Three greedy flows, four with a packet now and then, two with requests and small packets.
fn fq_bulk_and_sparse(rng: &mut Rng) -> Schedule {
    let mut arrivals = Vec::new();
    for flow in 0..3 {
        arrivals.extend(stream(
            flow,
            1500,
            0.5,
            u64::from(flow) * SECOND,
            5 * SECOND,
            0.3,
            rng,
        ));
    }
    for flow in 3..7 {
        arrivals.extend(stream(flow, 200, 0.004, 0, 6 * SECOND, 0.9, rng));
    }
    for flow in 7..9 {
        arrivals.extend(stream(flow, 700, 0.1, 0, 6 * SECOND, 0.9, rng));
    }
    Schedule::new("fq-codel").of(arrivals)
}

/// Windows that come as bursts, as from senders with an RTT of 24 ms.
fn fq_bursts(rng: &mut Rng) -> Schedule {
    let mut arrivals = Vec::new();
    for flow in 0..4 {
        arrivals.extend(sawtooth(
            flow,
            24_000_000,
            u64::from(flow) * SECOND,
            8 * SECOND,
            16,
            rng,
        ));
    }
    Schedule::new("fq-codel").of(arrivals)
}

/// One flow at twice the rate of the line beside one that also waits and small ones, in a queue of 100 packets: the fattest
/// loses batches of up to 16. (It never fills the queue alone: each flow of ns-3 has a limit of its own, as large as the
/// whole queue's, where arrivals are dropped. Sizes differ so that no two flows are equally fat.)
fn fq_overload(rng: &mut Rng) -> Schedule {
    let mut arrivals = stream(0, 1500, 2.0, 0, 3 * SECOND, 0.3, rng);
    arrivals.extend(stream(5, 1490, 0.7, 0, 3 * SECOND, 0.3, rng));
    for flow in 1..5 {
        arrivals.extend(stream(flow, 500, 0.05, 0, 4 * SECOND, 0.9, rng));
    }
    let schedule = Schedule {
        limit_packets: 100,
        batch: 16,
        ..Schedule::new("fq-codel")
    };
    schedule.of(arrivals)
}

/// Eight flows that are greedy for a while and silent for a while; a quantum of 300 bytes.
fn fq_on_off(rng: &mut Rng) -> Schedule {
    let mut arrivals = Vec::new();
    for flow in 0..8 {
        let mut at = rng.below(SECOND);
        while at < 8 * SECOND {
            let on = 100_000_000 + rng.below(800_000_000);
            let len = if flow % 2 == 0 { 1500 } else { 600 };
            arrivals.extend(stream(flow, len, 0.3, at, at + on, 0.6, rng));
            at += on + rng.below(SECOND);
        }
    }
    Schedule {
        quantum: 300,
        ..Schedule::new("fq-codel")
    }
    .of(arrivals)
}

/// Five greedy flows of which each packet but one in ten can carry a mark.
fn fq_ecn(rng: &mut Rng) -> Schedule {
    let mut arrivals = Vec::new();
    for flow in 0..5 {
        arrivals.extend(sawtooth(flow, 30_000_000, 0, 4 * SECOND, 14, rng));
    }
    let arrivals = capable(arrivals, 0.9, rng);
    Schedule {
        ecn: true,
        ..Schedule::new("fq-codel")
    }
    .of(arrivals)
}

/// Flows that send trains of 1 to 30 packets of random sizes at random times, `load` times what the line carries.
fn fq_random(flows: u64, load: f64, rng: &mut Rng) -> Schedule {
    let (mut arrivals, mut at) = (Vec::new(), 0_u64);
    while at < 6 * SECOND {
        let flow = rng.below(flows) as u32;
        let len = [1500, 1500, 1500, 576, 52, 40 + rng.below(1461) as u32][rng.below(6) as usize];
        let packets = 1 + rng.below(30);
        for number in 0..packets {
            arrivals.push(Arrival {
                at: at + number * 20_000,
                flow,
                len,
                capable: false,
            });
        }
        at += (f64::from(len) * packets as f64 * 400.0 / load * rng.exponential(1.0)) as u64;
    }
    Schedule::new("fq-codel").of(arrivals)
}

/// What arrived at the FQ-CoDel queue in a real run (a download and four users who fetch 300 kB each and think for 1 s, 20
/// Mbit/s, 24 ms, CUBIC): `specs/ns-3.37/run.arrivals`, ticks since the packet before, letter of the flow, bytes if not 1500.
fn real() -> Schedule {
    let mut arrivals = Vec::new();
    let mut at = 0;
    for word in include_str!("../../../../specs/ns-3.37/run.arrivals").split_whitespace() {
        let letter = word.find(|c: char| !c.is_ascii_digit()).expect("a letter");
        let (ticks, rest) = word.split_at(letter);
        at += ticks.parse::<u64>().unwrap_or(0) * TICK;
        let flow = LETTERS
            .iter()
            .position(|&letter| letter == rest.as_bytes()[0])
            .expect("a flow") as u32;
        let len = rest[1..].parse().unwrap_or(1500);
        arrivals.push(Arrival {
            at,
            flow,
            len,
            capable: false,
        });
    }
    Schedule {
        name: "fq-run",
        ..Schedule::new("fq-codel").of(arrivals)
    }
}
