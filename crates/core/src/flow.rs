//! Who talks to whom: `FlowId`, `FlowTable`.
//!
//! Addresses, ports and hosts of a flow live once here, not in every packet. A flow is one direction of a
//! conversation: the ACKs of a transfer are another flow, as a router sees them (docs/design/queues.md#flow).

use crate::seq::SeqNumber;
use alloc::vec::Vec;

/// One direction of one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId(pub u32);

/// A host, as queues that isolate hosts count them: an IPv4 address or an IPv6 /64 (docs/design/queues.md#host).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub u32);

/// Addresses and ports of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Sending host.
    pub source: HostId,
    /// Receiving host.
    pub destination: HostId,
    /// Port at the sending host.
    pub source_port: u16,
    /// Port at the receiving host.
    pub destination_port: u16,
    /// IP protocol number.
    pub protocol: u8,
}

/// What a driver knows of a stream that no header says, for ideal schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Sequence number of its first byte.
    pub origin: SeqNumber,
    /// Bytes of it so far: the application has said that it ends there, or writes more later.
    pub end: u64,
}

impl Stream {
    /// Bytes before `seq`.
    #[inline]
    pub const fn place(self, seq: SeqNumber) -> u64 {
        seq.0.wrapping_sub(self.origin.0) as u64
    }

    /// Bytes from `seq` to the end; `None` if 32 bits of sequence numbers do not reach so far.
    #[inline]
    pub const fn remaining(self, seq: SeqNumber) -> Option<u64> {
        if self.end > u32::MAX as u64 {
            return None;
        }
        self.end.checked_sub(self.place(seq))
    }
}

/// Every flow's key, indexed by `FlowId`. The driver allocates ids densely and may reuse them.
#[derive(Clone, Debug, Default)]
pub struct FlowTable {
    keys: Vec<FlowKey>,
    /// Streams of those flows that have one; not longer than needed.
    streams: Vec<Option<Stream>>,
}

impl FlowTable {
    /// An empty table.
    pub const fn new() -> FlowTable {
        FlowTable {
            keys: Vec::new(),
            streams: Vec::new(),
        }
    }

    /// Adds a flow.
    pub fn push(&mut self, key: FlowKey) -> FlowId {
        self.keys.push(key);
        FlowId((self.keys.len() - 1) as u32)
    }

    /// Gives `flow` another key, after its id has been reused.
    pub fn set(&mut self, flow: FlowId, key: FlowKey) {
        self.keys[flow.0 as usize] = key;
        if let Some(stream) = self.streams.get_mut(flow.0 as usize) {
            *stream = None;
        }
    }

    /// Sets where the stream of `flow` begins and ends.
    pub fn set_stream(&mut self, flow: FlowId, stream: Stream) {
        let index = flow.0 as usize;
        if self.streams.len() <= index {
            self.streams.resize(index + 1, None);
        }
        self.streams[index] = Some(stream);
    }

    /// The stream of `flow`, if the driver set it: it does where a discipline asks
    /// ([`crate::queue::QueueDiscipline::asks_streams`]).
    #[inline]
    pub fn stream(&self, flow: FlowId) -> Option<Stream> {
        self.streams.get(flow.0 as usize).copied().flatten()
    }

    /// The key of `flow`. Unknown ids get an all-zero key rather than a panic.
    #[inline]
    pub fn key(&self, flow: FlowId) -> FlowKey {
        self.keys.get(flow.0 as usize).copied().unwrap_or(FlowKey {
            source: HostId(0),
            destination: HostId(0),
            source_port: 0,
            destination_port: 0,
            protocol: 0,
        })
    }

    /// Number of ids given out.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no flow was added.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
