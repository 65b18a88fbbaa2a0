//! Hosts that take packets ahead of time.
//!
//! A packet's time may come early if it is the next thing that happens at its receiver, and concerns nobody else: nothing
//! can reach the host before it (its only link is a lane), no application acts, no deadline passes, and an established
//! connection without an end takes an ordinary segment. Packets of one flow that follow each other are taken together.

use super::network::{END_AT_ONCE, Waiting};
use super::{Slab, World};
use crate::endpoint::Application;
use crate::observe::Observer;
use crate::spec::LinkIndex;
use fleetfoot_core::flow::FlowId;
use fleetfoot_core::link::PacketSize;
use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::tcp::{Acknowledgments, Connection, Exchange, Mirror, State};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;

impl<O: Observer> World<'_, O> {
    /// Delivers packets ahead of time where nothing else can happen to the receiver before, and what they cause; lets the
    /// others wait for their turn.
    pub(super) fn run_ahead(&mut self) {
        while let Some(link) = self.network.early.pop() {
            while self.take_run(link) {}
            if let Some(first) = self.network.links[link as usize].wire.front() {
                self.network.queue.set_arrival(link, first.at);
            }
        }
    }

    /// Delivers the packets of one flow at the end of a lane as far as their time may come early. Whether those of
    /// another may follow.
    #[inline(never)]
    fn take_run(&mut self, link: u32) -> bool {
        let World {
            network,
            packets,
            slots,
            observer,
            groups,
            armed,
            window,
            leaving,
            ..
        } = self;
        let wire = &mut network.links[link as usize].wire;
        let Some(&Waiting {
            packet,
            at: first,
            place: end_of_path,
            ..
        }) = wire.front()
        else {
            return false;
        };
        let flow = packets.get(packet).flow;
        let (index, side) = (flow.0 >> 1, (1 ^ flow.0 & 1) as usize);
        let slot = &mut slots[index as usize];
        let end = &mut slot.ends[side];
        let lonely = armed[end.node.0 as usize] == u32::from(end.is_armed());
        let Some(connection) = end.connection.as_deref_mut() else {
            return false;
        };
        if !slot.endless || !lonely || network.hops[end_of_path as usize] != END_AT_ONCE {
            return false;
        }
        let mut silent = end.to_write == 0 && !end.closing;
        debug_assert!(
            connection
                .poll_timeout()
                .is_none_or(|timeout| timeout <= end.deadline),
            "armed after every change"
        );
        // What is taken counts as a whole, so it lies on one side of the beginning of the window.
        let counts = first >= window.from;
        let edge = if counts { window.to } else { window.from };
        let latest = network.queue.next_app().min(edge - Duration::from_nanos(1));
        // Nothing that the packets cause comes to the end of this lane.
        let mut wire = std::mem::take(wire);
        let number = flow.0 ^ 1;
        let received = end.received;
        let mut until = latest.min(end.deadline);
        let mut last = None;
        let (mut over, mut more) = (false, false);
        let mut taken = 0;
        leaving.clear();
        // Where what is sent goes after its first link.
        let onward = end.path.0 + 1;
        'pieces: for mut piece in wire.pieces() {
            while let Some(&Waiting { at, .. }) = piece.first() {
                if at > until {
                    break 'pieces;
                }
                let mut drains = false;
                let mut done = 0;
                if O::DEAF && silent {
                    let run = Run {
                        packets,
                        leaving,
                        flow,
                        onward,
                        until,
                    };
                    if connection.reflects() {
                        done = run.reflect(connection, piece);
                        end.received = end.received.max(connection.received());
                    } else if connection.has_sent() {
                        (done, drains) = run.progress(connection, piece, latest);
                    }
                }
                if done == 0 {
                    let Waiting {
                        packet: id, place, ..
                    } = piece[0];
                    let packet = packets.get_mut(id);
                    if packet.flow != flow {
                        more = last.is_some() && network.hops[place as usize] == END_AT_ONCE;
                        break 'pieces;
                    }
                    debug_assert_eq!(place, end_of_path, "a flow has one path");
                    if packet.segment.flags.intersects(EXTRAORDINARY)
                        || connection.state() != State::Established
                    {
                        break 'pieces;
                    }
                    done = 1;
                    observer.on_deliver(at, LinkIndex(link), packet, at.since(packet.enqueued_at));
                    let exchange = if !silent {
                        feed(connection, at, &packet.segment)
                    } else if O::DEAF {
                        connection.exchange_any(at, &mut packet.segment)
                    } else {
                        connection.exchange(at, &mut packet.segment)
                    };
                    if exchange.in_order > end.received {
                        let before = std::mem::replace(&mut end.received, exchange.in_order);
                        observer.on_receive(at, flow, before..exchange.in_order);
                    }
                    if exchange.answers {
                        packet.enqueued_at = at;
                        packet.flow = FlowId(number);
                        observer.on_send(at, packet.flow, &packet.segment);
                        leaving.push(Waiting {
                            at,
                            packet: id,
                            place: onward,
                            size: PacketSize::of(&packet.segment),
                        });
                    } else {
                        packets.free(id);
                    }
                    drains = exchange.more;
                }
                let at = piece[done - 1].at;
                piece = &piece[done..];
                taken += done;
                last = Some(at);
                if drains {
                    let mut application = Application {
                        to_write: &mut end.to_write,
                        closing: &mut end.closing,
                    };
                    let acted = application.act(at, connection);
                    debug_assert!(!acted.found, "flows that tell others run on time");
                    over = acted.over;
                    silent = application.is_silent();
                    drain(
                        packets,
                        *observer,
                        at,
                        FlowId(number),
                        connection,
                        leaving,
                        onward,
                    );
                    if over {
                        break 'pieces;
                    }
                }
                observer.on_ack(at, FlowId(number), connection);
                let deadline = connection.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
                until = latest.min(deadline.max(at));
            }
        }
        wire.forget(taken);
        let sent = leaving.len() as u32;
        network.send_run(packets, *observer, end.path, leaving);
        let place = &mut network.links[link as usize].wire;
        debug_assert!(place.is_empty(), "nothing was put here meanwhile");
        *place = wire;
        let Some(last) = last else { return false };
        slot.in_network += sent;
        slot.in_network -= taken as u32;
        if side == 1 && counts {
            let bytes = Bytes(end.received - received);
            let group = &mut groups[slot.group as usize];
            group.goodput += bytes;
            group.goodput_per_connection[slot.number as usize] += bytes;
        }
        // Events before this deadline are not needed: what has happened since moved it.
        end.arm(last, number, network, armed);
        if over {
            self.end_closed(last, index, side);
            self.tell_ack(last, index, side);
            return false;
        }
        more
    }
}

/// Where a run of packets goes, and how far.
struct Run<'r> {
    packets: &'r mut Slab,
    leaving: &'r mut Vec<Waiting>,
    /// Of the packets.
    flow: FlowId,
    /// Where what is sent goes after its first link.
    onward: u32,
    /// When something else happens to the connection.
    until: Instant,
}

impl Run<'_> {
    /// Gives packets to an end that only receives, as long as each is reflected ([`Connection::reflect`]): how many.
    #[inline(never)]
    fn reflect(mut self, connection: &mut Connection, piece: &[Waiting]) -> usize {
        let mut done = 0;
        while let Some(&Waiting { at, packet: id, .. }) = piece.get(done) {
            let packet = self.packets.get_mut(id);
            if at > self.until || packet.flow != self.flow {
                break;
            }
            let came = packet.segment;
            if !connection.reflect(at, &mut packet.segment) {
                break;
            }
            let mirror = connection.mirror(&came, &packet.segment);
            packet.flow = FlowId(self.flow.0 ^ 1);
            self.leaving.push(Waiting {
                at,
                packet: id,
                place: self.onward,
                size: PacketSize::of(&packet.segment),
            });
            done += 1;
            if let Some(mut mirror) = mirror {
                done += self.mirror(connection, &mut mirror, &piece[done..]);
            }
        }
        done
    }

    /// The same of those that follow and are like the one before.
    #[inline(never)]
    fn mirror(&mut self, connection: &mut Connection, mirror: &mut Mirror, piece: &[Waiting]) -> usize {
        let size = PacketSize::of(mirror.answer());
        let (mut done, mut last) = (0, Instant::ZERO);
        for &Waiting { at, packet: id, .. } in piece {
            let packet = self.packets.get_mut(id);
            if at > self.until || packet.flow != self.flow || !mirror.reflect(&mut packet.segment) {
                break;
            }
            packet.flow = FlowId(self.flow.0 ^ 1);
            self.leaving.push(Waiting {
                at,
                packet: id,
                place: self.onward,
                size,
            });
            last = at;
            done += 1;
        }
        if done > 0 {
            connection.take_mirror(mirror, last);
        }
        done
    }

    /// Gives packets to a sender as long as each is nothing but progress ([`Connection::progress`]) and raises no event, with
    /// what it sends then. How many, and whether the last is still to be drained.
    #[inline(never)]
    fn progress(mut self, connection: &mut Connection, piece: &[Waiting], latest: Instant) -> (usize, bool) {
        let mut done = 0;
        let number = FlowId(self.flow.0 ^ 1);
        while let Some(&Waiting { at, packet: id, .. }) = piece.get(done) {
            let packet = self.packets.get_mut(id);
            if at > self.until || packet.flow != self.flow {
                break;
            }
            let came = packet.segment;
            let Some(exchange) = connection.progress(at, &mut packet.segment) else {
                break;
            };
            done += 1;
            if exchange.answers {
                packet.flow = number;
                self.leaving.push(Waiting {
                    at,
                    packet: id,
                    place: self.onward,
                    size: PacketSize::of(&packet.segment),
                });
            } else {
                self.packets.free(id);
            }
            if exchange.more {
                if connection.has_events() {
                    return (done, true);
                }
                drain(
                    self.packets,
                    &mut (),
                    at,
                    number,
                    connection,
                    self.leaving,
                    self.onward,
                );
            }
            if exchange.more || !exchange.settled {
                let deadline = connection.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
                self.until = latest.min(deadline.max(at));
            }
            if exchange.answers
                && let Some(last) = self.leaving.last()
            {
                let sent = self.packets.get(last.packet).segment;
                done += self.stride(connection, &came, &sent, &piece[done..]);
            }
        }
        (done, false)
    }

    /// The same of those that follow and are like the one before.
    #[inline(never)]
    fn stride(
        &mut self,
        connection: &mut Connection,
        came: &Segment,
        sent: &Segment,
        piece: &[Waiting],
    ) -> usize {
        let mut acks = Acks {
            packets: self.packets,
            leaving: self.leaving,
            piece,
            flow: self.flow,
            onward: self.onward,
            until: self.until,
            size: PacketSize::of(sent),
        };
        connection.stride(came, sent, &mut acks)
    }
}

/// Acknowledgments for one connection, and where what it sends goes.
struct Acks<'r> {
    packets: &'r mut Slab,
    leaving: &'r mut Vec<Waiting>,
    piece: &'r [Waiting],
    flow: FlowId,
    onward: u32,
    until: Instant,
    size: PacketSize,
}

impl Acknowledgments for Acks<'_> {
    #[inline(always)]
    fn next(&mut self) -> Option<(Instant, &mut Segment)> {
        let first = self.piece.first()?;
        let packet = self.packets.get_mut(first.packet);
        (first.at <= self.until && packet.flow == self.flow).then_some((first.at, &mut packet.segment))
    }

    #[inline(always)]
    fn answered(&mut self) {
        if let Some((first, rest)) = self.piece.split_first() {
            self.packets.get_mut(first.packet).flow = FlowId(self.flow.0 ^ 1);
            self.leaving.push(Waiting {
                place: self.onward,
                size: self.size,
                ..*first
            });
            self.piece = rest;
        }
    }

    #[inline(always)]
    fn another(&mut self) -> &mut Segment {
        let (packet, free) = self.packets.reserve();
        let id = std::mem::replace(free, packet.buf.0);
        packet.flow = FlowId(self.flow.0 ^ 1);
        if let Some(&last) = self.leaving.last() {
            self.leaving.push(Waiting { packet: id, ..last });
        }
        &mut packet.segment
    }
}

/// What a connection sends now. Segments are written where they stay until they are delivered.
#[inline(always)]
fn drain<O: Observer>(
    packets: &mut Slab,
    observer: &mut O,
    now: Instant,
    flow: FlowId,
    connection: &mut Connection,
    leaving: &mut Vec<Waiting>,
    onward: u32,
) {
    loop {
        let (packet, free) = packets.reserve();
        let Some(more) = connection.poll_more(now, &mut packet.segment) else {
            return;
        };
        let id = std::mem::replace(free, packet.buf.0);
        if !O::DEAF {
            packet.enqueued_at = now;
        }
        packet.flow = flow;
        observer.on_send(now, flow, &packet.segment);
        leaving.push(Waiting {
            at: now,
            packet: id,
            place: onward,
            size: PacketSize::of(&packet.segment),
        });
        if !more {
            return;
        }
    }
}

/// [`Connection::exchange`] where the application has something to do before anything leaves.
#[inline(never)]
fn feed(connection: &mut Connection, now: Instant, segment: &Segment) -> Exchange {
    Exchange {
        in_order: connection.on_segment(now, segment).in_order,
        answers: false,
        more: true,
        settled: false,
    }
}

/// What an ordinary segment does not carry.
const EXTRAORDINARY: Flags = Flags(Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0);
