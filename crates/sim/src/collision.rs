//! Super-packets whose places in a queue's table collide: what somebody can choose who knows the key of its hash.
//!
//! Whoever does not know the key, as everybody outside, can do no better than drawing (docs/design/sp-hardened.md#a8).

use crate::routing::Paths;
use crate::spec::{GroupSpec, Raw, RawPorts, Spec, Traffic};
use fleetfoot_core::flow::{FlowKey, HostId};
use fleetfoot_core::queue::{AnyQueue, QueueDiscipline};
use fleetfoot_core::rng::Rng;

/// The tables among which trains of a group collide, as they are when a run begins: those of the first queue on the way of its first
/// pair that has any. `None`: none has.
pub fn queue_with_table(spec: &Spec, group: &GroupSpec) -> Option<AnyQueue> {
    let &(from, to) = group.pairs.first()?;
    let mut paths = Paths::new(spec);
    let path = paths.find(spec, from, to)?;
    let nobody = HostId(0);
    let any = FlowKey {
        source: nobody,
        destination: nobody,
        source_port: 0,
        destination_port: 0,
        protocol: 0,
    };
    let mut queues = paths
        .links(path)
        .filter_map(|link| spec.links[link.0 as usize].discipline(spec).ok());
    queues.find(|queue| queue.places_of(any, 0).is_some())
}

/// Whether trains of a group collide.
pub fn collides(group: &GroupSpec) -> bool {
    matches!(&group.traffic, Traffic::Raw(raw) if raw.ports == RawPorts::Colliding)
}

impl Raw {
    /// A source port and an identifier with which a super-packet of the flow `key` stands in the first two groups of places of the table
    /// of `queue`; the last of many that were drawn if none does.
    pub fn collide(&self, queue: &AnyQueue, key: FlowKey, random: &mut Rng) -> (u16, u16) {
        let mut drawn = (key.source_port, 0);
        for _ in 0..MOST_DRAWN {
            let bits = random.next_u32();
            drawn = (bits as u16, (bits >> 16) as u16 & self.layout.max_id());
            let flow = FlowKey {
                source_port: drawn.0,
                ..key
            };
            let places = queue.places_of(flow, drawn.1);
            if places.is_some_and(|places| places.iter().all(|&place| place < 2)) {
                break;
            }
        }
        drawn
    }
}

/// Enough for a table of 1024 places, of whose 256 groups two are wanted twice: one of 16,384 is such.
const MOST_DRAWN: u32 = 1 << 17;
