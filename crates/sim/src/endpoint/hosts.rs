//! The hosts of a run: everything but the applications that use them.

use super::copies::Copies;
use super::interface::Interfaces;
use super::{Group, Slot};
use crate::error::RunError;
use crate::network::{Mode, Network, Notice, PacketOnWire, Slab, Window};
use crate::observe::Observer;
use crate::routing::{PathStart, Paths};
use crate::spec::{LinkIndex, NodeId, Spec};
use fleetfoot_core::packet::Segment;
use fleetfoot_core::queue::DropReason;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::tcp::{Models, PathMemory};
use fleetfoot_core::time::{Duration, Instant};

/// What endpoints report to the applications that use them.
pub(crate) trait Applications<O: Observer> {
    /// An end has every byte of the stream up to its goal.
    fn on_message(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize);

    /// Data of interest was acknowledged.
    fn on_acked(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32);

    /// A connection has no more to say at one end, in good or bad order.
    fn on_conversation_end(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32);

    /// A packet that is not TCP's reaches an end.
    fn on_packet(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        side: usize,
        segment: &Segment,
    );

    /// A datagram will not arrive.
    fn on_datagram_lost(&mut self, hosts: &mut Hosts<'_, O>, slot: u32, segment: &Segment);

    /// A datagram was doubled on the way.
    fn on_datagram_doubled(&mut self, hosts: &mut Hosts<'_, O>, slot: u32, segment: &Segment);

    /// The deadline of an end that has no connection has passed.
    fn on_deadline(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize);

    /// An end of a recorded connection was let write and send.
    fn on_pushed(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize);

    /// Nothing more happens in a conversation before the run is over, unless its application does something. Whether that does
    /// nothing, either: then all that it adds to results at the end is added.
    fn on_last_event(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) -> bool;

    /// A conversation is over: its flow record is filled.
    fn record(&mut self, hosts: &mut Hosts<'_, O>, slot: u32);
}

/// The hosts of a run, the network between them, and what is noted of both.
pub(crate) struct Hosts<'a, O> {
    pub(crate) spec: &'a Spec,
    pub(crate) observer: &'a mut O,
    pub(crate) network: Network,
    pub(crate) packets: Slab,
    /// What a run of packets made an endpoint send.
    pub(super) leaving: Vec<PacketOnWire>,
    pub(crate) paths: Paths,
    pub(crate) slots: Vec<Slot>,
    pub(crate) free: Vec<u32>,
    pub(crate) groups: Vec<Group>,
    /// Ends whose connections are over by what applications do now: with the moment.
    pub(crate) over: Vec<(Instant, u32, usize)>,
    /// By node: endpoints there whose connection has a deadline.
    pub(super) armed: Vec<u32>,
    /// What connections at rest are told from.
    pub(super) models: Models,
    /// The slot at which the search for those that wait goes on.
    pub(super) searched: usize,
    /// Timers after the end of the run keep no conversation, and flows no key: nobody watches, and no queue knows flows.
    pub(crate) frees_early: bool,
    /// What connections learnt, by the nodes of sender and receiver.
    pub(super) known_paths: PathMemory<(NodeId, NodeId)>,
    /// By node: how far its count of timer ticks is when the run begins.
    pub(super) ticks: Vec<Duration>,
    /// When things are counted.
    pub(crate) window: Window,
    /// Counted flows that are not complete.
    pub(crate) open: u64,
    /// Conversations made so far.
    pub(super) created: u32,
    /// Time of the last event.
    pub(crate) now: Instant,
    /// What interfaces do with packets that arrive.
    pub(crate) interfaces: Interfaces,
    /// Datagrams that were doubled on their way.
    pub(crate) copies: Copies,
    /// Packets of some connections take time beyond that of their links.
    pub(crate) delays: bool,
}

impl<'a, O: Observer> Hosts<'a, O> {
    /// Hosts without connections. Nothing happens after `horizon`.
    pub(crate) fn new(
        spec: &'a Spec,
        mode: Mode,
        observer: &'a mut O,
        window: Window,
        horizon: Instant,
    ) -> Result<Self, RunError> {
        Ok(Hosts {
            spec,
            observer,
            network: Network::new(spec, mode, window, horizon)?,
            packets: Slab::new(),
            leaving: Vec::new(),
            paths: Paths::new(spec),
            slots: Vec::new(),
            free: Vec::new(),
            groups: Vec::new(),
            over: Vec::new(),
            armed: vec![0; spec.nodes.len()],
            models: Models::default(),
            searched: 0,
            frees_early: false,
            known_paths: PathMemory::new(),
            ticks: spec
                .nodes
                .iter()
                .map(|node| ticks_of(spec.seed, &node.name))
                .collect(),
            window,
            open: 0,
            created: 0,
            now: Instant::ZERO,
            interfaces: Interfaces::default(),
            copies: Copies::default(),
            delays: false,
        })
    }

    /// A packet has reached the interface of its host.
    #[inline]
    pub(crate) fn hand_up<A: Applications<O>>(&mut self, apps: &mut A, now: Instant, packet: u32) {
        if self.interfaces.is_empty() || !self.hold(apps, now, packet) {
            self.deliver(apps, now, packet);
        }
    }

    /// A packet that came off a link goes no further.
    #[cold]
    pub(crate) fn discard(&mut self, link: u32, now: Instant, packet: u32, reason: DropReason) {
        let packet = self.packets.take(packet);
        self.observer.on_drop(now, LinkIndex(link), &packet, reason);
        self.network.notices.push(Notice::Dropped(packet, now));
    }

    /// Counts what left the network, or was added to it.
    pub(crate) fn take_notices<A: Applications<O>>(&mut self, apps: &mut A) {
        let now = self.now;
        while let Some(notice) = self.network.notices.pop() {
            match notice {
                Notice::Dropped(packet, at) => {
                    self.count_dropped(at, &packet);
                    self.left_network(apps, now, &packet);
                }
                Notice::Doubled(packet) => self.doubled(apps, &packet),
                Notice::Left(flow, bytes) => self.left_host(now, flow, bytes),
            }
        }
    }

    /// The path between two nodes.
    pub(crate) fn path(&mut self, group: usize, from: NodeId, to: NodeId) -> Result<PathStart, RunError> {
        self.paths
            .find(self.spec, from, to)
            .ok_or_else(|| RunError::Unreachable {
                group: self.spec.groups[group].name.clone(),
                from: self.spec.nodes[from.0 as usize].name.clone(),
                to: self.spec.nodes[to.0 as usize].name.clone(),
            })
    }
}

/// How far a host's count of timer ticks is when the run begins: hosts were not started together.
fn ticks_of(seed: u64, name: &str) -> Duration {
    let count = Rng::for_element(seed, name, "timer ticks").next_u32();
    Duration::from_micros(u64::from(count))
}
