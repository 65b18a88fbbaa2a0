//! Traffic of kind `replay`: a file of connection vectors becomes recorded connections of the simulator.

use super::error::Error;
use super::network::Network;
use super::read::{Field, Section};
use crate::workload::vectors::{self, Vector};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::spec::{NodeId, Recorded, Replay, Unit};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Files that were read, and what was made of them: every variant of a scenario uses the same, and they may be large.
#[derive(Debug, Default)]
pub(super) struct Files {
    read: Mutex<Vec<(PathBuf, Arc<Read>)>>,
    made: Mutex<Vec<Replay>>,
}

/// What was read says nothing about the text that names it.
impl PartialEq for Files {
    fn eq(&self, _: &Files) -> bool {
        true
    }
}

impl Eq for Files {}

#[derive(Debug)]
struct Read {
    vectors: Vec<Vector>,
    /// Hash of the file.
    hash: String,
    /// Median of the known round-trip times.
    median_rtt_us: u64,
}

/// The recorded connections that `section` describes, dealt to `pairs` by the host that opened them.
pub(super) fn replay(
    section: &Section,
    network: &Network,
    pairs: &[(NodeId, NodeId)],
) -> Result<Replay, Error> {
    let file = section.need("file")?;
    if let Some(field) = section.find("spread")?.filter(|field| field.given) {
        return Err(field.fail(
            "`spread` has no effect: connections of a recording go to pairs by the host that opened them",
        ));
    }
    let (time_scale, rtt_scale) = (
        section.need("time_scale")?.number()?,
        section.need("rtt_scale")?.number()?,
    );
    let start_jitter = section.need("start_jitter")?.duration()?;
    let count = section.find("count")?.map(|field| field.integer()).transpose()?;
    let (windows, losses) = (section.need("windows")?.flag()?, section.need("losses")?.flag()?);
    let files = &file.node.place.source.files;
    let read = read(files, &file)?;
    let mut paths = network.paths();
    let bases = pairs
        .iter()
        .map(|&(from, to)| paths.base_rtt(from, to).unwrap_or_default());
    let bases: Vec<Duration> = bases.collect();
    let identity = format!(
        "{} {time_scale} {rtt_scale} {start_jitter:?} {count:?} {windows} {losses} {bases:?}",
        read.hash
    );
    if let Ok(made) = files.made.lock()
        && let Some(known) = made.iter().find(|made| *made.identity == *identity)
    {
        return Ok(known.clone());
    }
    let mut hosts = Hosts::default();
    let mut connections: Vec<Recorded> = read
        .vectors
        .iter()
        .take(count.map_or(usize::MAX, |count| count as usize))
        .map(|vector| {
            let pair = hosts.number(vector.host) % pairs.len().max(1);
            let base = bases.get(pair).copied().unwrap_or(Duration::ZERO);
            let rtt_us = if vector.rtt_us > 0 {
                vector.rtt_us
            } else {
                read.median_rtt_us
            };
            let rtt = Duration::from_secs_f64(rtt_us as f64 * rtt_scale / 1e6);
            let delay = Duration::from_nanos(rtt.as_nanos().saturating_sub(base.as_nanos()) / 2);
            Recorded {
                start: Duration::from_secs_f64(vector.start_us as f64 * time_scale / 1e6),
                pair: pair as u32,
                delay,
                rtt: base + delay + delay,
                concurrent: vector.concurrent,
                windows: of_ends(windows, vector.windows, |window| {
                    u32::try_from(window).unwrap_or(u32::MAX)
                }),
                losses_ppm: of_ends(losses, vector.loss, |share| (share.clamp(0.0, 1.0) * 1e6) as u32),
                units: vector.units.iter().map(unit).collect(),
            }
        })
        .collect();
    connections.sort_by_key(|connection| connection.start); // stable
    let replay = Replay {
        connections: connections.into(),
        start_jitter,
        identity: identity.into(),
    };
    if let Ok(mut made) = files.made.lock() {
        made.push(replay.clone());
    }
    Ok(replay)
}

/// What a recording says of the end that opened and of the other, as ends are numbered; zeros unless it is `wanted`.
fn of_ends<T>(wanted: bool, [opener, other]: [T; 2], as_number: impl Fn(T) -> u32) -> [u32; 2] {
    match wanted {
        true => [as_number(other), as_number(opener)], // end 1 opens
        false => [0; 2],
    }
}

fn unit(unit: &vectors::Unit) -> Unit {
    Unit {
        from: u8::from(unit.opener), // end 1 opens
        wait: Duration::from_micros(unit.wait_us),
        bytes: Bytes(unit.bytes),
    }
}

fn read(files: &Files, field: &Field) -> Result<Arc<Read>, Error> {
    let path = field.file()?;
    if let Ok(read) = files.read.lock()
        && let Some((_, known)) = read.iter().find(|(known, _)| *known == path)
    {
        return Ok(Arc::clone(known));
    }
    let read = Arc::new(load(&path).map_err(|message| {
        field
            .fail(message)
            .help(field.place(), "`fleetfoot import CAPTURE.pcap` makes such a file")
    })?);
    if let Ok(mut files) = files.read.lock() {
        files.push((path, Arc::clone(&read)));
    }
    Ok(read)
}

fn load(path: &Path) -> Result<Read, String> {
    let vectors = vectors::read(path)?;
    let mut hasher = blake3::Hasher::new();
    for vector in &vectors {
        hasher.update(vector.to_string().as_bytes());
    }
    let mut rtts: Vec<u64> = vectors
        .iter()
        .map(|vector| vector.rtt_us)
        .filter(|rtt| *rtt > 0)
        .collect();
    rtts.sort_unstable();
    Ok(Read {
        hash: hasher.finalize().to_hex()[..32].to_owned(),
        median_rtt_us: rtts.get(rtts.len() / 2).copied().unwrap_or(0),
        vectors,
    })
}

/// Numbers hosts in the order in which they come.
#[derive(Default)]
struct Hosts(rustc_hash::FxHashMap<u64, usize>);

impl Hosts {
    fn number(&mut self, id: u64) -> usize {
        let next = self.0.len();
        *self.0.entry(id).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, Setting};
    use fleetfoot_core::time::Duration;
    use fleetfoot_sim::spec::{Replay, Traffic};
    use std::sync::Arc;

    const VECTORS: &str = "SEQ 1000 1 7 1\nw 8192 65535\nr 50000\nl 0.01 0.25\n> 100\nt 2000\n< 5000\n\
        SEQ 500 1 9 2\nr 0\n> 100\nt 2000\n< 5000\n\
        CONC 3000 1 1 7 3\nr 10000\nc> 100\nc< 50\nt< 100\nSEQ 3500 1 8 4\nr 90000\n> 1\n";

    fn scenario(more: &str) -> String {
        format!(
            "[network]\nkind = \"dumbbell\"\npairs = 2\naccess = {{ delay = \"1 ms\" }}\n\
             bottleneck = {{ rate = \"10 Mbit/s\", delay = \"8 ms\" }}\n\
             [[traffic]]\nkind = \"replay\"\nfile = \"some.cvec\"\n{more}\n[run]\nduration = \"5 s\"\n"
        )
    }

    fn replayed(folder: &str, more: &str, set: &Setting) -> Result<Replay, String> {
        let folder = std::env::temp_dir().join(format!("fleetfoot-{folder}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
        std::fs::write(folder.join("some.cvec"), VECTORS).expect("a temporary file can be written");
        let name = folder.join("test.toml");
        let scenario = Scenario::parse(&name.to_string_lossy(), &scenario(more));
        let resolved = scenario.and_then(|scenario| {
            let first = scenario.resolve(&Setting::none())?;
            let again = scenario.resolve(set)?;
            if let (Traffic::Replay(one), Traffic::Replay(other)) =
                (&first.spec.groups[0].traffic, &again.spec.groups[0].traffic)
            {
                let same = Arc::ptr_eq(&one.connections, &other.connections);
                assert_eq!(
                    same,
                    one.identity == other.identity,
                    "variants share what they can"
                );
            }
            Ok(again)
        });
        std::fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
        match &resolved.map_err(|error| error.to_string())?.spec.groups[0].traffic {
            Traffic::Replay(replay) => Ok((**replay).clone()),
            _ => unreachable!("the only group replays"),
        }
    }

    #[test]
    fn connections_start_in_order_at_their_hosts_with_their_round_trip_times() {
        let set = Setting::none().with("network.bottleneck.queue.kind", "codel");
        let replay = replayed("replay", "", &set).expect("a replay");
        let seen: Vec<_> = replay
            .connections
            .iter()
            .map(|one| {
                (
                    one.start.as_nanos() / 1000,
                    one.pair,
                    one.delay.as_nanos(),
                    one.rtt,
                )
            })
            .collect();
        let ms = Duration::from_millis;
        // The path takes 20 ms. Nothing is known of the second connection: it gets the median of 10, 50 and 90 ms.
        assert_eq!(
            seen,
            [
                (500, 1, 15_000_000, ms(50)),
                (1000, 0, 15_000_000, ms(50)),
                (3000, 0, 0, ms(20)),
                (3500, 0, 35_000_000, ms(90)),
            ]
        );
        assert!(replay.connections[2].concurrent);
        assert_eq!(replay.connections[0].units.len(), 2);
    }

    #[test]
    fn starts_and_round_trip_times_are_scaled() {
        let set = Setting::none()
            .with("traffic.replay.time_scale", 0.5)
            .with("traffic.replay.rtt_scale", 2)
            .with("traffic.replay.count", 1);
        let replay = replayed("replay-scaled", "", &set).expect("a replay");
        let [one] = &replay.connections[..] else {
            panic!("one connection")
        };
        assert_eq!(
            (one.start, one.rtt),
            (Duration::from_micros(500), Duration::from_millis(100))
        );
    }

    #[test]
    fn windows_and_losses_are_those_of_the_file_if_wanted() {
        let set = Setting::none()
            .with("traffic.replay.windows", true)
            .with("traffic.replay.losses", true);
        let of = |set: &Setting| {
            let replay = replayed("replay-windows", "", set).expect("a replay");
            let one = &replay.connections[1]; // w 8192 65535, l 0.01 0.25
            (one.windows, one.losses_ppm)
        };
        assert_eq!(of(&set), ([65_535, 8_192], [250_000, 10_000]), "end 1 opens");
        assert_eq!(of(&Setting::none()), ([0; 2], [0; 2]));
    }

    #[test]
    fn mistakes_are_reported() {
        let set = Setting::none();
        let message = replayed("replay-spread", "spread = \"random\"", &set).expect_err("no effect");
        assert!(message.contains("by the host that opened them"), "{message}");
        let message = replayed("replay-scale", "time_scale = 0", &set).expect_err("no time");
        assert!(message.contains("time_scale"), "{message}");
        let text = scenario("").replace("some.cvec", "no/such.cvec");
        let message = Scenario::parse("x.toml", &text).expect_err("no file").to_string();
        assert!(
            message.contains("there is no such file") && message.contains("fleetfoot import"),
            "{message}"
        );
    }
}
