//! What the packets of redundant data bundling hold.
//!
//! Four writes leave at one moment, unlimited bundling, stream always thin; and a write of another size says what there is room for.
//! **Source.** Opstad et al., slides of 2015 (specs/published-endpoint.toml, rdb-vectors and rdb-header-budget). **Deviations.** None known.

use super::super::pair::{Pair, Sent};
use super::super::{Analysis, Measured, Outcome, Run, metric};
use super::{MSS, config};
use fleetfoot_core::parameter;
use fleetfoot_core::parameter::{Parameter, Values};
use fleetfoot_core::registry::Entry;
use fleetfoot_core::tcp::{Rdb, ThinRule};
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Bytes;

pub(in super::super) const ANALYSIS: Analysis = Analysis {
    entry: Entry::new("bundle-contents", OPTIONS, include_str!("bundles.rs")),
    metrics: &[
        metric("first_1", "First segment in packet 1."),
        metric("last_1", "Last segment in packet 1."),
        metric("first_2", "First segment in packet 2."),
        metric("last_2", "Last segment in packet 2."),
        metric("first_3", "First segment in packet 3."),
        metric("last_3", "Last segment in packet 3."),
        metric("first_4", "First segment in packet 4."),
        metric("last_4", "Last segment in packet 4."),
        metric("free_1", "Bytes free in packet 1."),
        metric("free_2", "Bytes free in packet 2."),
        metric("free_3", "Bytes free in packet 3."),
        metric("free_4", "Bytes free in packet 4."),
        metric("headers", "Bytes of Ethernet (14), IP and TCP headers."),
        metric("frame", "Bytes of a full frame, with its checksum (4)."),
    ],
    timed: false,
    run: Run::Alone(run),
};

const OPTIONS: &[Parameter] = &[parameter!("payload": Bytes(Bytes(1), Bytes(1460)) = Bytes(400),
    "Bytes of each write")];

fn run(options: &Values) -> Outcome {
    let payload = options.bytes("payload").unwrap_or(Bytes(400)).0;
    let rdb = Rdb {
        thin: ThinRule::Packets(1000),
        max_segments: 0,
        ..Rdb::STANDARD
    };
    let mut pair = Pair::new(config(rdb), Duration::from_millis(100), 20 * u64::from(MSS), MSS);
    for _ in 0..4 {
        pair.write(payload);
    }
    let packets: Vec<Sent> = pair.sent.iter().take(4).copied().collect();
    let segments = packets
        .iter()
        .flat_map(|sent| [sent.start / payload + 1, sent.end / payload]);
    let free = packets
        .iter()
        .map(|sent| u64::from(MSS) - (sent.end - sent.start));
    let headers = ETHERNET + packets.first().map_or(0, |sent| sent.headers);
    let frame = headers + u64::from(MSS) + CHECKSUM;
    Outcome {
        values: segments
            .chain(free)
            .chain([headers, frame])
            .map(|value| Measured::exact(value as f64))
            .collect(),
        curves: Vec::new(),
    }
}

/// Header and checksum of a frame, bytes.
const ETHERNET: u64 = 14;
const CHECKSUM: u64 = 4;
