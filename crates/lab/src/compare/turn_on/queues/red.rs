//! RED, of which `tc` wants a burst and makes the weight of the average.

use super::super::line::tc_rate;
use super::{Discipline, Queue, Words};
use fleetfoot_core::parameter::Value;
use fleetfoot_core::units::Rate;

impl Queue<'_> {
    /// Thresholds are in packets here and in bytes there: of the largest packets.
    pub(super) fn red(&self) -> Discipline {
        let rate = self.rate.unwrap_or(Rate::from_bps(10_000_000));
        let mean = match self.value("mean_packet") {
            Some(Value::Bytes(bytes)) => bytes.0.max(1) as f64,
            _ => 1000.0,
        };
        let packets_per_second = rate.bps() as f64 / 8.0 / mean;
        // As queue `red` derives them: 5 packets, or 2.5 ms of the rate; ten RTTs, each of them 100 ms or three times delay and packet.
        let automatic = (packets_per_second * 0.0025).max(5.0);
        let rtt = (3.0 * (self.link.delay.as_secs_f64() + 1.0 / packets_per_second)).max(0.1);
        let weight = self
            .number("weight")
            .unwrap_or_else(|| -libm::expm1(-1.0 / (10.0 * rtt * packets_per_second)));
        let mtu = self.mtu() as f64;
        let unit = if self.flag("byte_mode") { mean } else { mtu };
        let min = self.number("min_threshold").unwrap_or(automatic);
        let max = self.number("max_threshold").unwrap_or(3.0 * min);
        // Linux holds average and weight in 32 bits together: more than this it refuses.
        let scale = (600_000.0 / (min * unit)).min(1.0);
        let [min, max] = [min, max].map(|threshold| (threshold * unit * scale).max(mtu).round());
        // Of thresholds that are the same tc makes no probability (tc_red_eval_P).
        let max = max.max(min + 1.0);
        let average = Average::of(weight, min / mtu, max);
        let limit = (self.packets() as f64 * mtu).clamp(mtu, 4e9);
        let probability = self.number("max_probability").unwrap_or(0.1);
        let mut words = Words::new("red");
        words.add(format!(
            "limit {limit:.0} min {min:.0} max {max:.0} avpkt {mtu:.0} burst {} probability {probability} bandwidth {}",
            average.burst,
            tc_rate(rate)
        ));
        self.ecn(&mut words, false);
        let marks = self.flag("ecn") && !self.flag("hard_drop");
        if self.flag("ecn") && !marks {
            words.add("harddrop");
        }
        let above = match marks {
            true => "marks every ECN-capable packet and drops the others",
            false => "drops every packet",
        };
        let gentle = match (self.flag("gentle"), marks) {
            (false, _) => "",
            (true, true) => " (the simulation marks more and more of them up to twice max)",
            (true, false) => " (the simulation drops more and more of them up to twice max)",
        };
        let scaled = match scale < 1.0 {
            true => format!(
                " Linux holds thresholds and average in 32 bits together: the thresholds are {scale:.2} times those of the simulation."
            ),
            false => String::new(),
        };
        Discipline {
            arguments: words.text(),
            nearest: None,
            stands_in: None,
            does: "packets are dropped at random before the queue is full, more of them the longer it is on average",
            needs: format!(
                "Any Linux, package iproute2; above max Linux {above} at once{gentle}.{scaled}{}",
                average.remark(weight)
            ),
            elsewhere: format!(
                "WRED from {:.0} kB to {:.0} kB with a probability of {probability}",
                min / 1e3,
                max / 1e3
            ),
            room: None,
            fair: false,
            shapes: false,
        }
    }
}

/// The weight of a new sample in Linux's average, one over a power of two, and the burst that `tc` makes it of.
struct Average {
    burst: u64,
    log: u32,
    wanted: u32,
}

impl Average {
    /// The power of two next to `weight` that the kernel takes beside a threshold of `max` bytes, and the middle of the bursts that give it.
    fn of(weight: f64, min_packets: f64, max: f64) -> Average {
        let wanted = (-libm::log2(weight)).round().clamp(1.0, 31.0) as u32;
        // red_check_params: the bits of the threshold and of the weight are fewer than 32 together.
        let bits = libm::floor(libm::log2(max)) as u32 + 1;
        let most = 31_u32.saturating_sub(bits).max(1);
        let least = libm::ceil(min_packets).max(1.0) as u64;
        let beyond = |log: u32| {
            (least..)
                .find(|&burst| !is_for(log, burst, min_packets))
                .unwrap_or(least)
        };
        let log = wanted.min(most);
        let (first, end) = (beyond(log - 1), beyond(log));
        // With a lower threshold of little more than one packet bursts skip powers of two, with one packet all but the first.
        let of = |burst: u64| {
            let log = (1..=most).find(|&log| is_for(log, burst, min_packets))?;
            Some(Average { burst, log, wanted })
        };
        let middle = (first + end.max(first + 1) - 1) / 2;
        of(middle).or_else(|| of(least)).unwrap_or(Average {
            burst: least,
            log: 1,
            wanted,
        })
    }

    fn remark(&self, weight: f64) -> String {
        let mut text = String::new();
        if self.log != self.wanted {
            text.push_str(&format!(
                " Its average gives a new packet a weight of 1/{}: for that of the simulation, {:.2e}, tc has no burst with these thresholds.",
                1_u64 << self.log,
                weight
            ));
        }
        if self.log >= WARNED {
            text.push_str(
                " That the burst seems to be too large, as tc says, is meant so: the average is to follow the queue as slowly as in the simulation.",
            );
        }
        text
    }
}

/// Whether a weight of `2^-log` is enough for this burst, in packets as the lower threshold: tc_red_eval_ewma of iproute2, which takes the least `log`.
/// A larger burst wants a larger one.
fn is_for(log: u32, burst: u64, min_packets: f64) -> bool {
    let weight = libm::exp2(-f64::from(log));
    let burst = burst as f64;
    log > 0 && burst + 1.0 - min_packets <= (1.0 - libm::pow(1.0 - weight, burst)) / weight
}

/// From this power of two on `tc` warns that the burst seems to be too large.
const WARNED: u32 = 10;

#[cfg(test)]
mod tests {
    use super::Average;

    /// What tc_red_eval_ewma gives for a lower threshold of 5 packets: with a burst of 8 or 9 it is 3 (for 9 and 1/8: 5 <= 5.6, and for 1/4 only 3.7), and
    /// from 66 to 92 it is 10 (for 66 and 1/1024: 62 <= 63.9, and for 1/512 61.98; for 93: 89 > 88.9).
    #[test]
    fn a_burst_is_what_makes_tc_average_as_the_simulation_does() {
        let of = |weight: f64, min: f64, max: f64| {
            let Average { burst, log, wanted } = Average::of(weight, min, max);
            (burst, log, wanted)
        };
        assert_eq!(of(0.0008, 5.0, 22_500.0), (79, 10, 10));
        assert_eq!(of(0.125, 5.0, 22_500.0), (8, 3, 3));
        assert_eq!(
            Average::of(0.0008, 5.0, 22_500.0)
                .remark(0.0008)
                .matches("1/")
                .count(),
            0
        );
        // With a lower threshold of one packet only a burst of one is for any weight.
        assert_eq!(of(0.0008, 1.0, 4500.0), (1, 1, 10));
        let remark = Average::of(0.0008, 1.0, 4500.0).remark(0.0008);
        assert!(
            remark.contains("a weight of 1/2: for that of the simulation, 8.00e-4,"),
            "{remark}"
        );
        // 1 Gbit/s: 2.5 ms are 312.5 packets, the upper threshold of 1,406,250 bytes has 21 bits.
        let (_, log, wanted) = of(8e-6, 312.5, 1_406_250.0);
        assert_eq!((log, wanted), (10, 17));
    }
}
