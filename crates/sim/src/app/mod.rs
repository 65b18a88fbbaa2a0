//! Applications: what each traffic group does, one actor per arrival process, user, persistent connection or stream.
//!
//! Each kind of traffic is a file with a state of its own that implements [`Application`]; `group` holds what all have,
//! `transfers`, `dialogue`, `datagrams` and `tls` what several do. An actor has at most one pending event, unless its file says
//! otherwise. Sizes, gaps and choices of pair come from streams named after the group (and the user, where there are several),
//! so every variant of a scenario sees the same transfers at the same times. The first event of an open-loop process is
//! one gap after the group's start; a user thinks before the first transfer; bursts, pings and datagrams begin at the start.

use crate::endpoint::{Applications, Hosts};
use crate::error::RunError;
use crate::network::Slab;
use crate::observe::Observer;
use crate::output::GroupOutput;
use crate::spec::Traffic;
use fleetfoot_core::packet::Segment;
use fleetfoot_core::time::Instant;

mod compact;
mod datagrams;
mod dialogue;
mod group;
mod record;
mod transfers;

mod bulk;
mod bursts;
mod cbr;
mod closed_loop;
mod dns;
mod flows;
mod incast;
mod ping;
#[cfg(feature = "quic")]
mod quic;
mod raw;
mod replay;
mod request_response;
mod streaming;
mod tfrc;
mod tls;
mod transfer;
mod video;
mod web;

/// What the applications of a traffic group do when something happens to them. What they write and send leaves with
/// [`Hosts::push`]; if that ends a connection, it is reported by [`Application::on_end`] after the current call.
pub(crate) trait Application {
    /// The event of an actor is due.
    fn act<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, actor: u32, now: Instant);

    /// An end has every byte of the stream up to its goal.
    fn on_message<O: Observer>(
        &mut self,
        _hosts: &mut Hosts<'_, O>,
        _now: Instant,
        _slot: u32,
        _side: usize,
    ) {
    }

    /// Data up to the goal of the conversation was acknowledged.
    fn on_acked<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        hosts.transfer_acked(now, slot);
    }

    /// A connection has no more to say at one end, in good or bad order.
    fn on_end<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>, _now: Instant, _slot: u32) {}

    /// A packet that is not TCP's reaches an end.
    fn on_packet<O: Observer>(
        &mut self,
        _hosts: &mut Hosts<'_, O>,
        _now: Instant,
        _slot: u32,
        _side: usize,
        _segment: &Segment,
    ) {
    }

    /// A datagram will not arrive.
    fn on_datagram_lost<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>, _segment: &Segment) {}

    /// A datagram was doubled on the way.
    fn on_datagram_doubled<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>, _segment: &Segment) {}

    /// The deadline of an end that has no connection has passed.
    fn on_timer<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>, _now: Instant, _slot: u32, _side: usize) {}

    /// An end of a recorded connection was let write and send.
    fn on_pushed<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>, _now: Instant, _slot: u32, _side: usize) {
    }

    /// Whether it keeps a packet that came off `link` for a while, or for good, before its host gets it.
    fn delays<O: Observer>(
        &mut self,
        _hosts: &mut Hosts<'_, O>,
        _link: u32,
        _now: Instant,
        _id: u32,
    ) -> bool {
        false
    }

    /// The next packet that was kept at the end `number` and whose time has come.
    fn next_delayed<O: Observer>(
        &mut self,
        _hosts: &mut Hosts<'_, O>,
        _number: u32,
        _now: Instant,
    ) -> Option<u32> {
        None
    }

    /// Nothing more happens in a conversation before the run is over, unless this application does something. Whether it does
    /// nothing, either: then the conversation is recorded as it would be at the end of the run, and nobody asks for it again.
    fn on_last_event<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>, _slot: u32) -> bool {
        false
    }

    /// A conversation or the run is over: its flow record is filled.
    fn record<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) {
        hosts.record_connection(slot, false);
    }

    /// The run is over: what happened since the last complete message is added to its record. Returns the requests that each
    /// user of a closed loop made.
    fn finish<O: Observer>(&mut self, _hosts: &mut Hosts<'_, O>) -> Vec<u32> {
        Vec::new()
    }
}

macro_rules! applications {
    ($dollar:tt $($(#[$condition:meta])* $kind:ident($application:ty),)*) => {
        /// The applications of a traffic group.
        pub(crate) enum App<'a> {
            $($(#[$condition])* $kind($application),)*
        }

        /// Calls the applications of a group, whatever they are.
        macro_rules! call {
            ($dollar app:expr, $dollar one:ident => $dollar call:expr) => {
                match $dollar app {
                    $($(#[$condition])* App::$kind($dollar one) => $dollar call,)*
                }
            };
        }
    };
}

applications! { $
    Bulk(bulk::Bulk<'a>),
    Transfer(transfer::Transfer),
    Incast(incast::Incast<'a>),
    ClosedLoop(closed_loop::ClosedLoop),
    RequestResponse(request_response::RequestResponse),
    Bursts(bursts::Bursts),
    Web(web::Web<'a>),
    Multiplexed(web::Multiplexed<'a>),
    Streaming(streaming::Streaming<'a>),
    Cbr(cbr::Cbr),
    Flows(flows::Flows<'a>),
    Ping(ping::Ping),
    Video(video::Video<'a>),
    Dns(dns::Dns<'a>),
    Raw(raw::Raw<'a>),
    Tfrc(tfrc::Tfrc<'a>),
    Replay(replay::Replay<'a>),
    #[cfg(feature = "quic")]
    Quic(quic::Quic<quic::Transfers>),
    #[cfg(feature = "quic")]
    QuicWeb(quic::Quic<quic::Pages<'a>>),
}

impl<'a> App<'a> {
    /// The applications of traffic group `group`, whose first events are scheduled.
    pub(crate) fn new<O: Observer>(hosts: &mut Hosts<'a, O>, group: u32) -> App<'a> {
        let spec = hosts.spec;
        match &spec.groups[group as usize].traffic {
            Traffic::Bulk { .. } => App::Bulk(bulk::Bulk::new(hosts, group)),
            Traffic::Transfer {
                size,
                interarrival,
                count,
            } => App::Transfer(transfer::Transfer::new(hosts, group, size, interarrival, *count)),
            Traffic::Incast {
                size,
                count,
                rounds,
                pause,
            } => App::Incast(incast::Incast::new(hosts, group, size, pause, [*count, *rounds])),
            Traffic::ClosedLoop { size, think, .. } => {
                App::ClosedLoop(closed_loop::ClosedLoop::new(hosts, group, size, think))
            }
            Traffic::RequestResponse {
                request,
                response,
                think,
                server_time,
                exchanges,
                ..
            } => App::RequestResponse(request_response::RequestResponse::new(
                hosts,
                group,
                [request, response, think, server_time],
                *exchanges,
            )),
            Traffic::OnOff { burst, interval, .. } => {
                App::Bursts(bursts::Bursts::new(hosts, group, burst, interval, false))
            }
            Traffic::Thin {
                payload, interval, ..
            } => App::Bursts(bursts::Bursts::new(hosts, group, payload, interval, true)),
            Traffic::Web(web) if web.multiplex => App::Multiplexed(web::Multiplexed::new(hosts, group, web)),
            Traffic::Web(web) => App::Web(web::Web::new(hosts, group, web)),
            Traffic::Streaming(spec) => App::Streaming(streaming::Streaming::new(hosts, group, spec)),
            Traffic::Cbr { rate, packet, .. } => App::Cbr(cbr::Cbr::new(hosts, group, *rate, *packet)),
            Traffic::Flows { list } => App::Flows(flows::Flows::new(hosts, group, list)),
            Traffic::Ping { interval, packet } => App::Ping(ping::Ping::new(hosts, group, interval, *packet)),
            Traffic::Video(video) => App::Video(video::Video::new(hosts, group, video)),
            Traffic::Dns(dns) => App::Dns(dns::Dns::new(hosts, group, dns)),
            Traffic::Raw(raw) => App::Raw(raw::Raw::new(hosts, group, raw)),
            Traffic::Tfrc(tfrc) => App::Tfrc(tfrc::Tfrc::new(hosts, group, tfrc)),
            Traffic::Replay(replay) => App::Replay(replay::Replay::new(hosts, group, replay)),
            #[cfg(feature = "quic")]
            Traffic::Quic(quic) => App::Quic(quic::Quic::transfers(hosts, group, quic)),
            #[cfg(feature = "quic")]
            Traffic::QuicWeb(web) => App::QuicWeb(quic::Quic::pages(hosts, group, web)),
            #[cfg(not(feature = "quic"))]
            Traffic::Quic(_) | Traffic::QuicWeb(_) => unreachable!("`set_up_group` refused it"),
        }
    }
}

/// The applications of all traffic groups.
#[derive(Default)]
pub(crate) struct Apps<'a> {
    groups: Vec<App<'a>>,
}

impl<'a> Apps<'a> {
    /// Sets up every group of a run.
    pub(crate) fn new<O: Observer>(hosts: &mut Hosts<'a, O>) -> Result<Apps<'a>, RunError> {
        let mut groups = Vec::new();
        for (index, spec) in hosts.spec.groups.iter().enumerate() {
            hosts.set_up_group(index, spec)?;
            groups.push(App::new(hosts, index as u32));
        }
        Ok(Apps { groups })
    }

    /// The applications of a conversation.
    fn of<O>(&mut self, hosts: &Hosts<'_, O>, slot: u32) -> &mut App<'a> {
        &mut self.groups[hosts.slots[slot as usize].group as usize]
    }

    /// Reports the connections that are over by what applications did.
    fn settle<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) {
        while !hosts.over.is_empty() {
            for (now, slot, side) in std::mem::take(&mut hosts.over) {
                hosts.end_closed(self, now, slot, side);
            }
        }
    }

    /// An actor's event is due.
    pub(crate) fn on_actor<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        group: u32,
        actor: u32,
        now: Instant,
    ) {
        hosts.groups[group as usize].event_came(actor);
        call!(&mut self.groups[group as usize], app => app.act(hosts, actor, now));
        self.settle(hosts);
    }

    /// Whether the applications of a packet's conversation keep it before its host gets it.
    pub(crate) fn delay<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        link: u32,
        now: Instant,
        id: u32,
    ) -> bool {
        let slot = hosts.packets.get(id).flow.0 >> 1;
        call!(self.of(hosts, slot), app => app.delays(hosts, link, now, id))
    }

    /// The next packet that was kept at the end `number` of a group and whose time has come.
    pub(crate) fn next_delayed<O: Observer>(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        group: u32,
        number: u32,
        now: Instant,
    ) -> Option<u32> {
        call!(&mut self.groups[group as usize], app => app.next_delayed(hosts, number, now))
    }

    /// The results of every group.
    pub(crate) fn finish<O: Observer>(&mut self, hosts: &mut Hosts<'_, O>) -> Vec<GroupOutput> {
        for slot in 0..hosts.slots.len() as u32 {
            if hosts.slots[slot as usize].live {
                self.record(hosts, slot);
                if hosts.slots[slot as usize].endless {
                    // Many may have been packed.
                    for end in &mut hosts.slots[slot as usize].ends {
                        end.connection = None;
                    }
                }
            }
        }
        let groups = self.groups.iter_mut();
        let requests: Vec<Vec<u32>> = groups.map(|app| call!(app, app => app.finish(hosts))).collect();
        // Before the records take their place.
        self.groups.clear();
        hosts.slots = Vec::new();
        hosts.packets = Slab::new();
        hosts.network.forget_events();
        let ended = hosts.now;
        let groups = std::mem::take(&mut hosts.groups).into_iter().zip(requests);
        groups
            .map(|(group, requests)| record::output(group, requests, ended))
            .collect()
    }
}

impl<O: Observer> Applications<O> for Apps<'_> {
    fn on_message(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        hosts.wake(slot, 1 - side); // its counters are wanted
        call!(self.of(hosts, slot), app => app.on_message(hosts, now, slot, side));
        self.settle(hosts);
    }

    fn on_acked(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        call!(self.of(hosts, slot), app => app.on_acked(hosts, now, slot));
        self.settle(hosts);
    }

    fn on_conversation_end(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32) {
        let place = &mut hosts.slots[slot as usize];
        hosts.open -= u64::from(std::mem::take(&mut place.awaited));
        call!(self.of(hosts, slot), app => app.on_end(hosts, now, slot));
        self.settle(hosts);
    }

    fn on_packet(
        &mut self,
        hosts: &mut Hosts<'_, O>,
        now: Instant,
        slot: u32,
        side: usize,
        segment: &Segment,
    ) {
        call!(self.of(hosts, slot), app => app.on_packet(hosts, now, slot, side, segment));
        self.settle(hosts);
    }

    fn on_datagram_lost(&mut self, hosts: &mut Hosts<'_, O>, slot: u32, segment: &Segment) {
        call!(self.of(hosts, slot), app => app.on_datagram_lost(hosts, segment));
    }

    fn on_datagram_doubled(&mut self, hosts: &mut Hosts<'_, O>, slot: u32, segment: &Segment) {
        call!(self.of(hosts, slot), app => app.on_datagram_doubled(hosts, segment));
    }

    fn on_deadline(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        call!(self.of(hosts, slot), app => app.on_timer(hosts, now, slot, side));
        self.settle(hosts);
    }

    fn on_pushed(&mut self, hosts: &mut Hosts<'_, O>, now: Instant, slot: u32, side: usize) {
        call!(self.of(hosts, slot), app => app.on_pushed(hosts, now, slot, side));
        self.settle(hosts);
    }

    fn on_last_event(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) -> bool {
        call!(self.of(hosts, slot), app => app.on_last_event(hosts, slot))
    }

    fn record(&mut self, hosts: &mut Hosts<'_, O>, slot: u32) {
        call!(self.of(hosts, slot), app => app.record(hosts, slot));
    }
}
