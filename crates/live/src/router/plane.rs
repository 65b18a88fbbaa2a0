//! Where a frame goes: decided by its interface in a bridge, by routes in a router.

use super::icmp::{self, Budget, Kind};
use super::interfaces::{self, Interface, interfaces};
use super::io::Ours;
use super::neighbours::{Held, Neighbours, News};
use super::output::Output;
use super::packet::{self, Discard, Fate};
use super::routes::{Hop, Routes};
use super::{Config, Event, Mode, Port};
use crate::Error;
use crate::frames::{self, HEADER, Seen, TAG};
use fleetfoot_core::time::Instant;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

/// What decides where frames go.
pub(super) struct Plane {
    mode: Mode,
    /// The interfaces, in the order of the file.
    facts: Vec<Interface>,
    /// Their MTUs at the start, for which rings and queues were made.
    mtus: Vec<u32>,
    /// What else forwards their packets, so that each leaves twice, if anything does.
    rivals: Vec<Option<String>>,
    /// Whether the source of a packet must be reached by the interface on which it came.
    check_source: Vec<bool>,
    /// The addresses of this machine.
    ours: Ours,
    routes: Routes,
    neighbours: Neighbours,
    errors: Errors,
    /// A frame without its priority tag.
    untagged: Vec<u8>,
}

/// ICMP errors that are sent.
struct Errors {
    budget: Budget,
    sent: u64,
    packet: Vec<u8>,
    frame: Vec<u8>,
}

impl Plane {
    /// What `config` describes, with the interfaces as they are now.
    ///
    /// # Errors
    /// An interface is not there, or is no Ethernet interface.
    pub(super) fn new(config: &Config) -> Result<Plane, Error> {
        // First, so that no change is missed between this and the list.
        let neighbours = Neighbours::follow()?;
        let mut all = interfaces()?;
        let ours = all.iter().flat_map(|one| one.addresses.clone()).collect();
        let mut facts = Vec::new();
        for wanted in &config.interfaces {
            let found = all.iter().position(|one| one.name == wanted.name);
            let found = found.map(|at| all.swap_remove(at)).ok_or_else(|| {
                Error::new(
                    format!("there is no interface {}", wanted.name),
                    io::ErrorKind::NotFound,
                )
            })?;
            if found.hardware.is_none() {
                return Err(Error::new(
                    format!("{} is no Ethernet interface", wanted.name),
                    io::ErrorKind::Unsupported,
                ));
            }
            facts.push(found);
        }
        Ok(Plane::with(config, facts, ours, neighbours))
    }

    fn with(config: &Config, facts: Vec<Interface>, ours: Ours, neighbours: Neighbours) -> Plane {
        let longest = facts.iter().map(|one| one.mtu as usize + HEADER).max();
        let mut plane = Plane {
            mode: config.mode,
            untagged: Vec::with_capacity(longest.unwrap_or(0)),
            mtus: facts.iter().map(|one| one.mtu).collect(),
            rivals: vec![None; facts.len()],
            facts,
            check_source: Vec::new(),
            ours,
            routes: Routes::default(),
            neighbours,
            errors: Errors {
                budget: Budget::full(),
                sent: 0,
                packet: Vec::new(),
                frame: Vec::new(),
            },
        };
        plane.configure(config);
        plane
    }

    /// A plane with interfaces that the kernel does not have.
    #[cfg(test)]
    pub(super) fn of(config: &Config, facts: Vec<Interface>) -> Result<Plane, Error> {
        Ok(Plane::with(config, facts, Ours::default(), Neighbours::follow()?))
    }

    /// As if the kernel had reported a neighbour.
    #[cfg(test)]
    pub(super) fn learn(&mut self, key: super::neighbours::Key, hardware: [u8; 6]) {
        self.neighbours.know(key, hardware);
    }

    /// Takes over what may change while frames pass.
    pub(super) fn configure(&mut self, config: &Config) {
        self.routes = Routes::new(&config.routes);
        self.check_source = config.interfaces.iter().map(|one| one.check_source).collect();
    }

    /// An interface as the kernel had it last.
    pub(super) fn facts(&self, index: usize) -> &Interface {
        &self.facts[index]
    }

    /// What an interface of a router leaves to the kernel: the interface, and the addresses of this machine.
    pub(super) fn own(&self, index: usize) -> Option<(&Interface, &Ours)> {
        (self.mode == Mode::Route).then(|| (&self.facts[index], &self.ours))
    }

    /// The MTU that an interface had at the start, for which its ring and its queue are made.
    pub(super) fn mtu_at_start(&self, index: usize) -> u32 {
        self.mtus[index]
    }

    pub(super) const fn icmp_errors(&self) -> u64 {
        self.errors.sent
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.neighbours.fd()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.neighbours.poll_timeout()
    }

    /// Hands a frame to the output by which it leaves. Otherwise `Err(None)`: it is left to the kernel; or why it goes no further.
    #[inline]
    pub(super) fn pass(
        &mut self,
        at: Instant,
        from: usize,
        frame: &[u8],
        tag: Option<[u8; TAG]>,
        unfinished: bool,
        outputs: &mut [Output],
    ) -> Result<(), Option<Discard>> {
        let seen = frames::read(frame, tag);
        match self.mode {
            Mode::Bridge => {
                if frame.len() < HEADER {
                    return Err(Some(Discard::Runt));
                }
                if frame.len() - seen.network.min(frame.len()) > self.facts[from].mtu as usize {
                    return Err(Some(Discard::Aggregate));
                }
                let output = outputs.get_mut(1 - from).ok_or(Some(Discard::NoRoute))?;
                let done = output.push(at, from as u16, frame, tag, &seen, |bytes, network| {
                    if unfinished {
                        finish(bytes, network);
                    }
                });
                if done {
                    Ok(())
                } else {
                    Err(Some(Discard::NoBuffer))
                }
            }
            Mode::Route => self.route(at, from, frame, tag, unfinished, seen, outputs),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what is known of one frame")]
    fn route(
        &mut self,
        at: Instant,
        from: usize,
        frame: &[u8],
        tag: Option<[u8; TAG]>,
        unfinished: bool,
        mut seen: Seen,
        outputs: &mut [Output],
    ) -> Result<(), Option<Discard>> {
        if tag.is_some_and(|tag| !frames::is_priority(tag)) {
            return Err(None); // of a VLAN, which is another interface
        }
        if seen.network > HEADER {
            return self.route_tagged(at, from, frame, unfinished, outputs);
        }
        let facts = &self.facts[from];
        let own = facts.hardware.unwrap_or_default();
        let to = match packet::fate(frame, &seen, own, facts.mtu, |address| {
            self.ours.contains(address)
        }) {
            Fate::Forward(to) => to,
            Fate::Kernel => return Err(None),
            Fate::Discard(reason) => {
                if reason == Discard::TtlExpired {
                    self.answer(at, from, frame, &seen, Kind::TimeExceeded, outputs);
                }
                return Err(Some(reason));
            }
        };
        // Ethernet pads short frames; what lies behind the packet is not passed on.
        let length = frame
            .get(HEADER..)
            .and_then(packet::total_length)
            .unwrap_or_default();
        let frame = frame.get(..HEADER + length).ok_or(Some(Discard::Truncated))?;
        if self.check_source[from] {
            let back = seen
                .ends
                .address(seen.ends.source)
                .and_then(|source| self.routes.find(source));
            if back.is_none_or(|hop| hop.interface != from) {
                return Err(Some(Discard::WrongInterface));
            }
        }
        let Some(Hop { interface, via }) = self.routes.find(to) else {
            self.answer(at, from, frame, &seen, Kind::NoRoute, outputs);
            return Err(Some(Discard::NoRoute));
        };
        let mtu = self.facts[interface].mtu;
        if length > mtu as usize {
            if packet::must_stay_whole(&frame[HEADER..]) {
                self.answer(at, from, frame, &seen, Kind::TooBig { mtu }, outputs);
            }
            return Err(Some(Discard::LongerThanMtu));
        }
        seen.segment.ttl = seen.segment.ttl.saturating_sub(1);
        let key = (self.facts[interface].index, via.unwrap_or(to));
        let Some(hardware) = self.neighbours.find(&key) else {
            // All hosts of a network are no neighbour (RFC 2644); the kernel knows their hardware address only where somebody has entered one.
            if via.is_none() && self.routes.is_broadcast(to) {
                return Err(Some(Discard::MartianDestination));
            }
            let held = self.neighbours.hold(key, at, || Held {
                from,
                to: interface,
                frame: frame.to_vec(),
                seen,
                unfinished,
            });
            return if held {
                Ok(())
            } else {
                Err(Some(Discard::NoNeighbour))
            };
        };
        self.send(at, from, interface, frame, &seen, unfinished, hardware, outputs)
    }

    /// A frame with a tag in it: one that is of no VLAN goes on without it.
    #[cold]
    fn route_tagged(
        &mut self,
        at: Instant,
        from: usize,
        frame: &[u8],
        unfinished: bool,
        outputs: &mut [Output],
    ) -> Result<(), Option<Discard>> {
        let mut untagged = std::mem::take(&mut self.untagged);
        let seen = frames::take_priority_off(frame, &mut untagged)
            .then(|| frames::read(&untagged, None))
            .filter(|seen| seen.network == HEADER);
        let done = match seen {
            Some(seen) => self.route(at, from, &untagged, None, unfinished, seen, outputs),
            None => Err(None),
        };
        self.untagged = untagged;
        done
    }

    #[expect(clippy::too_many_arguments, reason = "what is known of one frame")]
    #[inline]
    fn send(
        &self,
        at: Instant,
        from: usize,
        to: usize,
        frame: &[u8],
        seen: &Seen,
        unfinished: bool,
        hardware: [u8; 6],
        outputs: &mut [Output],
    ) -> Result<(), Option<Discard>> {
        let own = self.facts[to].hardware.unwrap_or_default();
        let output = outputs.get_mut(to).ok_or(Some(Discard::NoRoute))?;
        let done = output.push(at, from as u16, frame, None, seen, |bytes, network| {
            packet::forward(bytes, network, own, hardware);
            if unfinished {
                finish(bytes, network);
            }
        });
        if done {
            Ok(())
        } else {
            Err(Some(Discard::NoBuffer))
        }
    }

    /// Reports to the sender of a packet why it goes no further, if that may be done and the budget allows it.
    #[cold]
    fn answer(
        &mut self,
        at: Instant,
        from: usize,
        frame: &[u8],
        seen: &Seen,
        kind: Kind,
        outputs: &mut [Output],
    ) {
        let facts = &self.facts[from];
        let Some(packet) = frame.get(seen.network..) else {
            return;
        };
        let Some((source, destination)) = seen.ends.addresses() else {
            return;
        };
        // No answer to many, and none about a packet for many (RFC 1812 4.3.2.7, RFC 1122 3.2.2).
        let several = [source, destination].map(|address| self.is_broadcast(address));
        if frame.get(6).is_none_or(|first| first & 1 != 0) || several != [false; 2] {
            return;
        }
        let of_family = |address: &&IpAddr| address.is_ipv4() == source.is_ipv4() && !is_link_local(address);
        let Some(&own) = facts.addresses.iter().find(of_family) else {
            return;
        };
        // A sender that is this machine needs no report, and a packet's last hop is asked for no address: it is where the packet
        // came from.
        if self.ours.contains(&source) || !packet::may_be_answered(packet) || !self.errors.budget.take(at) {
            return;
        }
        let Errors {
            packet: error,
            frame: answer,
            sent,
            ..
        } = &mut self.errors;
        if !icmp::error(packet, kind, own, error) {
            return;
        }
        answer.clear();
        answer.extend_from_slice(frame.get(6..12).unwrap_or_default());
        answer.extend_from_slice(&facts.hardware.unwrap_or_default());
        answer.extend_from_slice(if own.is_ipv4() {
            &frames::IPV4
        } else {
            &frames::IPV6
        });
        answer.extend_from_slice(error);
        let seen = frames::read(answer, None);
        if let Some(output) = outputs.get_mut(from)
            && output.push(at, from as u16, answer, None, &seen, |_, _| {})
        {
            *sent += 1;
        }
    }

    /// Whether an address stands for all hosts of a network on a link, by the routes of the file or by the interfaces' own addresses.
    fn is_broadcast(&self, address: IpAddr) -> bool {
        let own = self.facts.iter().flat_map(|one| &one.networks);
        self.routes.is_broadcast(address) || own.into_iter().any(|network| network.is_broadcast(address))
    }

    /// Follows what the kernel reports: neighbours, and interfaces that changed.
    ///
    /// # Errors
    /// An interface is gone.
    pub(super) fn look(
        &mut self,
        now: Instant,
        ports: &mut [Port],
        outputs: &mut [Output],
        log: &mut dyn FnMut(Event),
    ) -> Result<(), Error> {
        let News {
            resolved,
            given_up,
            interfaces,
        } = self.neighbours.read(now);
        for (held, hardware) in resolved {
            let done = self.send(
                now,
                held.from,
                held.to,
                &held.frame,
                &held.seen,
                held.unfinished,
                hardware,
                outputs,
            );
            if let (Err(Some(reason)), Some(port)) = (done, ports.get_mut(held.from)) {
                port.counters.discard(reason);
            }
        }
        for held in given_up {
            if let Some(port) = ports.get_mut(held.from) {
                port.counters.discard(Discard::NoNeighbour);
            }
            self.answer(
                now,
                held.from,
                &held.frame,
                &held.seen,
                Kind::HostUnreachable,
                outputs,
            );
        }
        if interfaces {
            self.refresh(ports, log)?;
        }
        Ok(())
    }

    /// Reads again what may have changed of the interfaces.
    ///
    /// # Errors
    /// An interface is gone.
    pub(super) fn refresh(&mut self, ports: &mut [Port], log: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let Ok(all) = interfaces() else { return Ok(()) };
        self.ours = all.iter().flat_map(|one| one.addresses.clone()).collect();
        for (index, facts) in self.facts.iter_mut().enumerate() {
            let Some(now) = all
                .iter()
                .find(|one| one.name == facts.name && one.index == facts.index)
            else {
                // Gone, or with another name. A socket of AF_XDP whose interface is gone reports nothing by itself.
                if let Some(port) = ports.get(index) {
                    port.socket.check()?;
                }
                continue;
            };
            if now.up != facts.up {
                log(Event::Interface {
                    name: now.name.clone(),
                    up: now.up,
                });
            }
            // An MTU that shrinks counts at once; one that grows, up to that of the start.
            let mtu = now.mtu.min(self.mtus[index]);
            if mtu != facts.mtu {
                log(Event::Mtu {
                    name: now.name.clone(),
                    mtu,
                });
            }
            *facts = Interface { mtu, ..now.clone() };
            let rival = rival(self.mode, now, &all);
            if rival != self.rivals[index] {
                log(Event::Twice {
                    name: now.name.clone(),
                    by: rival.clone(),
                });
                self.rivals[index] = rival;
            }
        }
        for (index, port) in ports.iter_mut().enumerate() {
            if let Some((facts, ours)) = self.own(index) {
                port.socket.follow(facts, ours);
            }
        }
        Ok(())
    }
}

/// What of the kernel forwards the packets of an interface, too, so that each leaves twice.
fn rival(mode: Mode, of: &Interface, all: &[Interface]) -> Option<String> {
    // Where the kernel does not say, nothing is known.
    if let Ok(Some(master)) = interfaces::master(of.index) {
        let known = all.iter().find(|one| one.index == master);
        return Some(known.map_or_else(|| format!("interface {master}"), |one| one.name.clone()));
    }
    let on = match mode {
        Mode::Route => interfaces::forwarding(&of.name),
        // Frames for Ethernet addresses of others, which are all that a bridge is for, are nothing to the kernel.
        Mode::Bridge => Vec::new(),
    };
    (!on.is_empty()).then(|| on.join(" "))
}

fn finish(bytes: &mut [u8], network: usize) {
    if let Some(packet) = bytes.get_mut(network..) {
        // What cannot be completed leaves as it came, and the receiver finds it wrong.
        let _ = packet::finish_checksum(packet);
    }
}

fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}
