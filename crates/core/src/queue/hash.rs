//! Keyed hash of flows: SipHash-1-3, so that nobody outside can choose headers that collide.
//!
//! **Source.** Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), with one compression and three finalisation
//! rounds. The message is sixteen bytes: addresses, then ports and protocol.

use super::QueueContext;
use crate::flow::{FlowKey, HostId};
use crate::packet::Packet;
use crate::rng::Rng;

/// A key of one instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashKey(u64, u64);

impl HashKey {
    pub(super) fn new(seed: u64) -> HashKey {
        let mut rng = Rng::for_element(seed, "queue", "hash key");
        HashKey(rng.next_u64(), rng.next_u64())
    }

    /// Bucket of a flow among `buckets`.
    pub(super) fn flow(self, key: FlowKey, buckets: u32) -> u32 {
        let (addresses, ports) = Self::words(key);
        self.bucket(addresses, ports, buckets)
    }

    /// Bucket of a flow's source host among `buckets`.
    pub(super) fn source(self, key: FlowKey, buckets: u32) -> u32 {
        self.bucket(u64::from(key.source.0), 0, buckets)
    }

    /// Bucket of a flow's destination host among `buckets`.
    pub(super) fn destination(self, key: FlowKey, buckets: u32) -> u32 {
        self.bucket(u64::from(key.destination.0), 0, buckets)
    }

    /// Bucket of a packet's flow, or of its source, among `buckets`.
    pub(super) fn bucket_of(
        self,
        packet: &Packet,
        context: &QueueContext<'_>,
        by_source: bool,
        buckets: u32,
    ) -> u32 {
        let key = context.flows.key(packet.flow);
        if by_source {
            self.source(key, buckets)
        } else {
            self.flow(key, buckets)
        }
    }

    /// Fingerprint of super-packet `id` of a flow, or of a pair of hosts if `ports` do not count.
    pub(super) fn super_packet(self, key: FlowKey, id: u16, ports: bool) -> u64 {
        let addresses = u64::from(key.source.0) | u64::from(key.destination.0) << 32;
        let flow = if ports {
            u64::from(key.source_port) | u64::from(key.destination_port) << 16 | u64::from(key.protocol) << 32
        } else {
            0
        };
        self.hash(addresses, flow | u64::from(id) << 48)
    }

    /// Fingerprint of a flow's source host.
    pub(super) fn host(self, key: FlowKey) -> u64 {
        self.host_id(key.source)
    }

    /// Fingerprint of a host.
    pub(super) fn host_id(self, host: HostId) -> u64 {
        self.hash(u64::from(host.0), 1 << 47)
    }

    /// Fingerprint of a flow.
    pub(super) fn flow_fingerprint(self, key: FlowKey) -> u64 {
        let (addresses, ports) = Self::words(key);
        self.hash(addresses, ports)
    }

    fn words(key: FlowKey) -> (u64, u64) {
        let addresses = u64::from(key.source.0) | u64::from(key.destination.0) << 32;
        let ports = u64::from(key.source_port)
            | u64::from(key.destination_port) << 16
            | u64::from(key.protocol) << 32;
        (addresses, ports)
    }

    fn bucket(self, first: u64, second: u64, buckets: u32) -> u32 {
        ((u128::from(self.hash(first, second)) * u128::from(buckets)) >> 64) as u32
    }

    fn hash(self, first: u64, second: u64) -> u64 {
        let mut v = [
            self.0 ^ 0x736f_6d65_7073_6575,
            self.1 ^ 0x646f_7261_6e64_6f6d,
            self.0 ^ 0x6c79_6765_6e65_7261,
            self.1 ^ 0x7465_6462_7974_6573,
        ];
        // The last block holds the length, sixteen.
        for block in [first, second, 16 << 56] {
            v[3] ^= block;
            round(&mut v);
            v[0] ^= block;
        }
        v[2] ^= 0xff;
        for _ in 0..3 {
            round(&mut v);
        }
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::HashKey;
    use core::hash::Hasher as _;

    #[test]
    fn agrees_with_the_standard_library_for_the_zero_key() {
        for (first, second) in [(0, 0), (1, 2), (u64::MAX, 0x0123_4567_89ab_cdef)] {
            let mut hasher = std::hash::DefaultHasher::new();
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&u64::to_le_bytes(first));
            bytes[8..].copy_from_slice(&u64::to_le_bytes(second));
            hasher.write(&bytes);
            assert_eq!(HashKey(0, 0).hash(first, second), hasher.finish());
        }
    }
}
