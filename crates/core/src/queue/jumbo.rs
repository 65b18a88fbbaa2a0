//! Jumbo frames made at an edge: packets to one destination are collected into a frame, which is queued or dropped as a whole.
//!
//! The ingress of a domain holds packets until a frame to their destination has no room for the next one, or until the first of them
//! has waited for `hold`. A closed frame is queued as a unit, its packets leave in a row, and the other edge cuts it again. So a packet
//! waits up to `hold` longer, and a loss is one of a whole frame; in return the domain handles a frame where it had handled packets.
//!
//! **Source.** Salyers, Jiang, Striegel and Poellabauer, "JumboGen: dynamic jumbo frame generation for network performance
//! scalability" (CCR 37(5), 2007), as Divakaran et al., INFOCOM Workshops 2009, sections III and VIII, describe it: packets are
//! encapsulated at the ingress of a domain, a timer decides on their number, and the egress takes them out again. From memory. The rules:
//! docs/design/queues.md#jumbo.
//!
//! **Promises.** A flow keeps its order. No packet is held for longer than `hold`. With `hold` = 0 it is drop-tail.
//!
//! **Deviations.** The edge and the first queue of the domain are one queue here, so that the limit counts what is being
//! collected, too, and a packet that finds it full takes its whole frame with it, what would still have joined that frame included. The packets of a frame are sent one
//! after the other: the egress passes each on when it has come and does not wait for the end of the frame, which is earlier by at most the time
//! of a frame, and the header of the frame, 20 B of 19500, is not sent. A frame is for a destination host;
//! JumboGen's are for an egress. The size and the time are ours: a frame of Divakaran et al. (13 packets) and a millisecond. The counter
//! `assembled` has the frames, so that a line's `units` over it are the packets in a frame; the wait of the link includes the hold.

use super::hash::HashKey;
use super::store::{PacketList, PacketPool};
use super::{
    Backlog, DropPoint, DropReason, Limit, LinkContext, QueueContext, QueueDiscipline, QueueEventKind, work,
};
use crate::flow::{FlowId, HostId};
use crate::packet::Packet;
use crate::parameter;
use crate::parameter::{Parameter, Values};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Frames that can be collected at the same time.
const BUCKETS: u32 = 1024;

/// A queue of frames that are collected by destination.
#[derive(Clone, Debug)]
pub struct Jumbo {
    limit: Limit,
    size: u64,
    hold: Duration,
    key: HashKey,
    pool: PacketPool,
    /// Packets of closed frames, frame after frame.
    queue: PacketList,
    /// By bucket of the destination.
    frames: Vec<Frame>,
    /// Buckets whose frames are open, the oldest first, with the number of the frame: of one that was closed before the
    /// number is another. The first is always open.
    open: VecDeque<(u32, u64)>,
    /// Frames opened.
    opened: u64,
    latest: Instant,
}

/// A frame that is being collected, or what is left of one.
#[derive(Clone, Copy, Debug)]
struct Frame {
    state: State,
    destination: HostId,
    /// The flow of its first packet.
    flow: FlowId,
    packets: PacketList,
    /// Bytes of the packets that joined it, dropped or not.
    bytes: u64,
    /// Closed from here on.
    until: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is none.
    Closed,
    /// With its number.
    Open(u64),
    /// A packet found no room: the frame is lost, with what joins it until it would have been closed.
    Lost,
}

impl Frame {
    const NONE: Frame = Frame {
        state: State::Closed,
        destination: HostId(0),
        flow: FlowId(0),
        packets: PacketList::EMPTY,
        bytes: 0,
        until: Instant::ZERO,
    };
}

impl Jumbo {
    /// `limit`, `size` and `hold`.
    pub const PARAMETERS: &'static [Parameter] = &[
        parameter!("limit": Limit = Limit::Packets(1000),
            "What may wait, packets of open frames included, not counting the packet being sent (as drop-tail)"),
        parameter!("size": Bytes(Bytes(1), Bytes(1_000_000)) = Bytes(19_500),
            "Largest frame at layer 3 (Divakaran et al.: 13 packets of 1500 B)"),
        parameter!("hold": Duration(Duration::ZERO, Duration::from_secs(1)) = Duration::from_millis(1),
            "How long a frame is collected at most, from its first packet (ours)"),
    ];

    /// An empty queue.
    pub fn new(values: &Values, link: &LinkContext) -> Jumbo {
        Jumbo {
            limit: values.limit("limit"),
            size: values.bytes("size").map_or(19_500, |bytes| bytes.0),
            hold: values.duration("hold").unwrap_or(Duration::from_millis(1)),
            key: HashKey::new(link.seed),
            pool: PacketPool::new(),
            queue: PacketList::EMPTY,
            frames: vec![Frame::NONE; BUCKETS as usize],
            open: VecDeque::new(),
            opened: 0,
            latest: Instant::ZERO,
        }
    }

    /// Ends the collecting of a frame: its packets, if it has not lost them, are next but for those of earlier frames.
    fn close(&mut self, bucket: u32, context: &mut QueueContext<'_>) {
        work::step();
        let frame = &mut self.frames[bucket as usize];
        if frame.packets.packets > 0 {
            context.report(QueueEventKind::Assembled, frame.flow);
            self.pool.append(&mut self.queue, &mut frame.packets);
        }
        frame.state = State::Closed;
        self.forget();
    }

    /// Forgets the oldest of the open frames that are no longer open.
    fn forget(&mut self) {
        while let Some(&(bucket, number)) = self.open.front()
            && self.frames[bucket as usize].state != State::Open(number)
        {
            work::step();
            self.open.pop_front();
        }
    }

    /// Closes the frames whose time is over.
    fn expire(&mut self, now: Instant, context: &mut QueueContext<'_>) {
        while let Some(&(bucket, _)) = self.open.front()
            && self.frames[bucket as usize].until <= now
        {
            self.close(bucket, context);
        }
    }
}

impl QueueDiscipline for Jumbo {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: Packet, context: &mut QueueContext<'_>) {
        work::step();
        self.latest = self.latest.max(now);
        let now = self.latest;
        self.expire(now, context);
        let len = u64::from(packet.segment.len());
        let key = context.flows.key(packet.flow);
        let bucket = self.key.destination(key, BUCKETS);
        let frame = &self.frames[bucket as usize];
        let over = frame.until <= now
            || frame.destination != key.destination
            || frame.bytes.saturating_add(len) > self.size;
        if frame.state != State::Closed && over {
            self.close(bucket, context);
        }
        if self.frames[bucket as usize].state == State::Closed {
            self.opened += 1;
            self.open.push_back((bucket, self.opened));
            self.frames[bucket as usize] = Frame {
                state: State::Open(self.opened),
                destination: key.destination,
                flow: packet.flow,
                until: now.saturating_add(self.hold),
                ..Frame::NONE
            };
        }
        let fits = self.limit.admits(self.pool.total(), packet.segment.len());
        let frame = &mut self.frames[bucket as usize];
        frame.bytes = frame.bytes.saturating_add(len);
        if fits && frame.state != State::Lost {
            self.pool.push(&mut frame.packets, packet);
        } else {
            frame.state = State::Lost;
            while let Some(earlier) = self.pool.pop(&mut frame.packets) {
                work::step();
                context.drops.push((earlier, DropReason::Full));
            }
            context.drops.push((packet, DropReason::Full));
            self.forget();
        }
        if self.frames[bucket as usize].bytes >= self.size {
            self.close(bucket, context);
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, context: &mut QueueContext<'_>) -> Option<Packet> {
        self.latest = self.latest.max(now);
        self.expire(self.latest, context);
        // Asked before its time: the oldest frame is closed.
        if self.queue.packets == 0
            && let Some(&(bucket, _)) = self.open.front()
        {
            self.close(bucket, context);
        }
        self.pool.pop(&mut self.queue)
    }

    fn ready_at(&self) -> Option<Instant> {
        if self.queue.packets > 0 {
            return Some(Instant::ZERO);
        }
        let &(bucket, _) = self.open.front()?;
        Some(self.frames[bucket as usize].until)
    }

    fn backlog(&self) -> Backlog {
        self.pool.total()
    }

    fn drop_point(&self) -> DropPoint {
        // A packet that waits may still be dropped with its frame.
        DropPoint::Departure
    }
}
