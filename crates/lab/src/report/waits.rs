//! How long packets wait at the bottleneck over the time of one run, and how many are dropped there.

use crate::scenario::Resolved;
use fleetfoot_core::packet::Packet;
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::spec::LinkIndex;
use serde_json::{Value, json};

/// Watches the bottleneck links of a run, both directions, in bins of time.
#[derive(Debug)]
pub struct Waits {
    bin: Duration,
    end: Instant,
    /// By link: its place in `links`.
    places: Vec<Option<usize>>,
    links: Vec<Link>,
}

#[derive(Debug)]
struct Link {
    index: usize,
    delay: Duration,
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    packets: u32,
    sum: f64,
    most: f64,
    dropped: u32,
}

impl Waits {
    /// Watches a run of `resolved` in so many bins.
    pub fn new(resolved: &Resolved, bins: usize) -> Waits {
        let bins = bins.max(1);
        let bottleneck: Vec<&str> = resolved
            .bottleneck_links()
            .map(|link| link.name.as_str())
            .collect();
        let mut places = vec![None; resolved.spec.links.len()];
        let mut links = Vec::new();
        for (index, link) in resolved.spec.links.iter().enumerate() {
            if bottleneck.contains(&link.name.as_str()) && links.len() < MOST_LINKS {
                places[index] = Some(links.len());
                links.push(Link {
                    index,
                    delay: link.delay,
                    bins: vec![Bin::default(); bins],
                });
            }
        }
        let nanos = resolved.run.duration.as_nanos().div_ceil(bins as u64);
        Waits {
            bin: Duration::from_nanos(nanos.max(1)),
            end: Instant::ZERO + resolved.run.duration,
            places,
            links,
        }
    }

    fn bin(&mut self, now: Instant, at: LinkIndex) -> Option<(&mut Bin, Duration)> {
        if now >= self.end {
            return None;
        }
        let place = (*self.places.get(at.0 as usize)?)?;
        let link = self.links.get_mut(place)?;
        let number = now.as_nanos() / self.bin.as_nanos();
        Some((link.bins.get_mut(number as usize)?, link.delay))
    }

    /// `[{name, direction, label, bin_s, mean_s, most_s, dropped}]`, lists by bin; no packet, no wait: `null`. A packet belongs to
    /// the bin in which it came; its wait includes its own transmission.
    pub fn to_json(&self, resolved: &Resolved) -> Value {
        let shown = |link: &Link| {
            let spec = &resolved.spec.links[link.index];
            let of = |read: &dyn Fn(&Bin) -> f64| -> Vec<Option<f64>> {
                let value = |bin: &Bin| (bin.packets > 0).then(|| rounded(read(bin)));
                link.bins.iter().map(value).collect()
            };
            json!({
                "name": spec.name,
                "direction": if spec.forward { "forward" } else { "reverse" },
                "label": resolved.links_info.get(link.index).and_then(|info| info.label.clone()),
                "bin_s": self.bin.as_secs_f64(),
                "mean_s": of(&|bin| bin.sum / f64::from(bin.packets)),
                "most_s": of(&|bin| bin.most),
                "dropped": link.bins.iter().map(|bin| bin.dropped).collect::<Vec<_>>(),
            })
        };
        self.links.iter().map(shown).collect()
    }
}

impl Observer for Waits {
    fn on_deliver(&mut self, now: Instant, at: LinkIndex, _packet: &Packet, sojourn: Duration) {
        let came = Instant::ZERO + now.since(Instant::ZERO + sojourn);
        if let Some((bin, delay)) = self.bin(came, at) {
            let wait = sojourn.as_secs_f64() - delay.as_secs_f64();
            bin.packets += 1;
            bin.sum += wait.max(0.0);
            bin.most = bin.most.max(wait);
        }
    }

    fn on_drop(&mut self, now: Instant, at: LinkIndex, _packet: &Packet, _reason: DropReason) {
        if let Some((bin, _)) = self.bin(now, at) {
            bin.dropped += 1;
        }
    }
}

/// To a microsecond.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Links that are watched.
const MOST_LINKS: usize = 6;

#[cfg(test)]
mod tests {
    use super::Waits;
    use crate::run::observe;
    use crate::scenario::{Scenario, Setting};
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_full_buffer_is_seen_with_its_length_and_its_drops() {
        let text = "[network]\nkind = \"dumbbell\"\npairs = 1\nbottleneck = { rate = \"8 Mbit/s\", delay = \"5 ms\", queue = { kind = \"drop-tail\", limit = \"30 packets\" } }\n[[traffic]]\nname = \"bulk\"\nkind = \"bulk\"\n[run]\nduration = \"4 s\"\n";
        let scenario = Scenario::parse("waits.toml", text).expect("it is correct");
        let resolved = scenario.resolve(&Setting::none()).expect("it is correct");
        let mut waits = Waits::new(&resolved, 40);
        observe(&resolved.spec(1), &AtomicBool::new(false), &mut waits).expect("it runs");
        let value = waits.to_json(&resolved);
        let forward = &value[0];
        assert_eq!(forward["direction"], "forward");
        let most = forward["most_s"].as_array().expect("a list").iter();
        let most = most.filter_map(serde_json::Value::as_f64).fold(0.0, f64::max);
        // 30 packets of 1500 bytes wait 45 ms at 8 Mbit/s, and the packet itself takes 1.5 ms.
        assert!((0.044..0.048).contains(&most), "{most}");
        let dropped: u64 = forward["dropped"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(serde_json::Value::as_u64)
            .sum();
        assert!(dropped > 0);
        assert_eq!(value.as_array().expect("a list").len(), 2, "and the way back");
    }
}
