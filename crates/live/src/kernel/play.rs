//! The loop that plays the traffic: one thread with all sockets of both ends.

use super::connection::{Counted, End, Progress, Socket};
use super::hosts::{Hosts, Pairs};
use super::injector::Injector;
use super::ours::{News, Ours};
use super::place::Place;

use super::sockets::{self, failed, listen, port, watch};
use super::traffic::{Actor, actors};
use crate::frames::HostNumbers;
use crate::window::Measuring;
use crate::{Clock, Error, calls, host};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::output::{GroupOutput, RunOutput};
use fleetfoot_sim::spec::{Spec, Traffic};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Plays the traffic of `spec` from this thread, which is in the namespace of the senders. `ask` gets the time now and then and
/// says whether to end; `measuring` learns when the measured time is.
pub(super) fn play(
    spec: &Spec,
    place: &Place,
    hosts: &Hosts,
    attacked: &Attacked,
    clock: &Clock,
    measuring: &Measuring,
    ask: &dyn Fn(Instant) -> bool,
) -> Result<RunOutput, Error> {
    let mut play = Play::new(spec, place, hosts, attacked, clock)?;
    // Known to nobody before.
    let _ = measuring.set([spec.warmup, spec.duration].map(|after| play.zero.saturating_add(after)));
    play.run(ask)?;
    Ok(play.finish())
}

/// What attackers meet and know.
pub(super) struct Attacked {
    /// Senders' packets pass a marker.
    pub(super) marker: bool,
    /// The numbers of hosts at the bottleneck, where trains collide.
    pub(super) numbers: Option<HostNumbers>,
}

pub(super) struct Play<'a> {
    pub(super) spec: &'a Spec,
    pub(super) place: &'a Place,
    pub(super) hosts: &'a Hosts,
    pub(super) clock: &'a Clock,
    /// When the run began by the clock: everything else counts from here.
    pub(super) zero: Instant,
    pub(super) epoll: OwnedFd,
    pub(super) groups: Vec<Group>,
    pub(super) connections: Vec<Option<Connection>>,
    pub(super) free: Vec<usize>,
    /// Connections that were opened and not yet accepted, by the address of the end that opened.
    pub(super) opening: HashMap<SocketAddr, usize>,
    /// What is to be done when: group and actor.
    pub(super) agenda: BinaryHeap<Reverse<(Instant, u32, u32)>>,
    /// Flows that the end of the run waits for.
    pub(super) awaited: u64,
    /// Our TCP, where it is at one side.
    pub(super) ours: Option<Ours>,
    /// What sends raw packets, where a group does.
    pub(super) injector: Option<Injector>,
    pub(super) payload: Vec<u8>,
    pub(super) buffer: Vec<u8>,
}

pub(super) struct Group {
    pub(super) actors: Vec<Actor>,
    /// Where connections are accepted: at the receivers, or at the senders where the receiver asks.
    listener: Listener,
    /// The side that opens connections.
    pub(super) opener: usize,
    pub(super) pairs: Pairs,
    pub(super) stop: Instant,
    pub(super) output: GroupOutput,
    /// When writes began that did not arrive.
    cut_off: Vec<Instant>,
    pub(super) listed: usize,
}

enum Listener {
    Kernel(TcpListener),
    Ours(host::Handle),
}

pub(super) struct Connection {
    pub(super) group: u32,
    pub(super) actor: u32,
    pub(super) pair: u32,
    pub(super) ends: [End; 2],
    /// The flow, where the whole connection is one.
    pub(super) record: Option<usize>,
    /// What is on its way: end of the message in its stream, when it was written, its flow.
    pub(super) messages: VecDeque<Message>,
    /// Bytes of requests asked for so far.
    pub(super) asked: u64,
    /// What was counted when the last message of a dialogue was complete.
    pub(super) counted: Counted,
    /// Number of the connection in its group.
    pub(super) number: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Message {
    pub(super) end: u64,
    pub(super) written_at: Instant,
    pub(super) record: Option<usize>,
}

/// Data of an event: a listener of a group, or an end of a connection.
pub(super) const LISTENER: u64 = 1 << 62;
/// The device of our host.
const HOST: u64 = 1 << 61;
/// Raw packets have arrived.
const RAW: u64 = 1 << 60;

/// How often the caller is asked at least.
const BREATH: Duration = Duration::from_millis(50);

impl<'a> Play<'a> {
    fn new(
        spec: &'a Spec,
        place: &'a Place,
        hosts: &'a Hosts,
        attacked: &Attacked,
        clock: &'a Clock,
    ) -> Result<Play<'a>, Error> {
        let epoll = calls::epoll_create().map_err(|errno| failed("cannot make an epoll", errno.0))?;
        // SAFETY: the kernel has just given this descriptor to nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        let mut ours = None;
        if let Some(side) = spec.world.host_side()
            && let Some(group) = spec.groups.first()
        {
            crate::thread::prefer(); // as the kernel's TCP, which does not wait for its turn either
            let config = [&group.sender, &group.receiver][side];
            let made = Ours::make(place, side, config, spec.seed)?;
            watch(&epoll, made.host.as_fd().as_raw_fd(), HOST, libc::EPOLLIN)?;
            ours = Some(made);
        }
        let mut groups = Vec::new();
        let mut agenda = BinaryHeap::new();
        for (index, group) in spec.groups.iter().enumerate() {
            let asks = matches!(group.traffic, Traffic::RequestResponse { .. });
            let (opener, accepts) = if asks { (1, 0) } else { (0, 1) };
            let listener = match &mut ours {
                Some(ours) if ours.side == accepts => Listener::Ours(ours.listen(index, port(index))?),
                Some(_) | None => Listener::Kernel(listen(spec, place, &epoll, index, accepts)?),
            };
            let mut pairs = Pairs::new(spec, group, hosts.pairs(index));
            let actors = actors(spec, group, &mut pairs, attacked.numbers.as_ref());
            let stop = Instant::ZERO + group.stop.unwrap_or(spec.duration).min(spec.duration);
            for (number, actor) in actors.iter().enumerate() {
                if actor.start < stop {
                    agenda.push(Reverse((actor.start, index as u32, number as u32)));
                }
            }
            groups.push(Group {
                actors,
                listener,
                opener,
                pairs,
                stop,
                output: GroupOutput::default(),
                cut_off: Vec::new(),
                listed: 0,
            });
        }
        let raw = spec
            .groups
            .iter()
            .any(|group| matches!(group.traffic, Traffic::Raw(_)));
        let injector = match raw {
            true => {
                let injector = Injector::open(place, attacked.marker)?;
                watch(&epoll, injector.descriptor(), RAW, libc::EPOLLIN)?;
                Some(injector)
            }
            false => None,
        };
        Ok(Play {
            spec,
            place,
            hosts,
            clock,
            zero: clock.now() + SETTLING,
            epoll,
            groups,
            connections: Vec::new(),
            free: Vec::new(),
            opening: HashMap::new(),
            agenda,
            awaited: 0,
            ours,
            injector,
            payload: vec![0; LARGEST_WRITE],
            buffer: vec![0; 256 << 10],
        })
    }

    /// Time since the start of the run.
    pub(super) fn now(&self) -> Instant {
        Instant::ZERO + self.clock.now().since(self.zero)
    }

    fn run(&mut self, ask: &dyn Fn(Instant) -> bool) -> Result<(), Error> {
        let end = Instant::ZERO + self.spec.duration;
        let last = end.saturating_add(self.spec.drain);
        self.clock.sleep_until(self.zero);
        let mut asked = Instant::ZERO;
        loop {
            let now = self.now();
            if now.since(asked) >= BREATH {
                asked = now;
                if ask(now) {
                    return Ok(());
                }
            }
            // What was due before the end is done, however late this machine is.
            while let Some(&Reverse((at, group, actor))) = self.agenda.peek()
                && at <= now
            {
                self.agenda.pop();
                self.act(group, actor)?;
            }
            if now >= last || now >= end && self.awaited == 0 {
                return Ok(());
            }
            let until = self
                .agenda
                .peek()
                .map_or(last, |next| next.0.0)
                .min(asked + BREATH);
            let until = if now < end { until.min(end) } else { until };
            let mut span = until.since(self.now());
            if self.serve_host()? {
                span = Duration::ZERO; // packets may still wait there
            } else if let Some(patience) = self.ours.as_ref().and_then(Ours::patience) {
                span = span.min(patience);
            }
            self.wait(span)?;
        }
    }

    /// Waits for events, so long at most, and does what they ask for.
    fn wait(&mut self, span: Duration) -> Result<(), Error> {
        let nanos = span.as_nanos();
        let left = TimeSpec::new((nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64);
        // SAFETY: the descriptor is open as long as `self` is.
        let epoll = unsafe { BorrowedFd::borrow_raw(self.epoll.as_raw_fd()) };
        match ppoll(&mut [PollFd::new(epoll, PollFlags::POLLIN)], Some(left), None) {
            Ok(0) | Err(Errno::EINTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(Error::new("cannot wait for sockets", errno)),
        }
        let events = calls::epoll_wait(self.epoll.as_raw_fd(), 256, 0)
            .map_err(|errno| failed("cannot wait for sockets", errno.0))?;
        for (_, data) in events {
            if data & LISTENER != 0 {
                self.accept((data & !LISTENER) as usize)?;
            } else if data == RAW {
                self.count_raw()?;
            } else if data != HOST {
                self.advance((data >> 1) as usize, (data & 1) as usize)?;
            }
        }
        Ok(())
    }

    /// Lets our host work, and does what follows from what happened there. Whether packets may still wait.
    fn serve_host(&mut self) -> Result<bool, Error> {
        let Some(ours) = &mut self.ours else {
            return Ok(false);
        };
        let side = ours.side;
        let more = ours.host.work()?;
        while let Some(news) = self.ours.as_mut().and_then(Ours::news) {
            match news {
                News::Listener(group) => self.accept(group)?,
                News::Connection(index) => self.advance(index, side)?,
            }
        }
        if let Some(ours) = &mut self.ours {
            ours.host.flush()?;
        }
        Ok(more)
    }

    /// Takes connections of a group that wait.
    fn accept(&mut self, group: usize) -> Result<(), Error> {
        while let Some((socket, peer)) = self.accept_one(group)? {
            let Some(index) = self.opening.remove(&peer) else {
                if let (Socket::Ours(handle), Some(ours)) = (socket, &mut self.ours) {
                    ours.release(handle, true);
                }
                continue; // given up meanwhile
            };
            let side = 1 - self.groups[group].opener;
            match (&socket, &mut self.ours) {
                (Socket::Ours(handle), Some(ours)) => ours.watch(*handle, index),
                (Socket::Kernel(socket), _) => self.watch_end(index, side, socket)?,
                (Socket::Ours(_), None) => {}
            }
            if let Some(connection) = &mut self.connections[index] {
                connection.ends[side].socket = Some(socket);
            }
            self.advance(index, side)?;
        }
        Ok(())
    }

    /// The next connection that waits for a group, and the address of the end that opened it.
    fn accept_one(&mut self, group: usize) -> Result<Option<(Socket, SocketAddr)>, Error> {
        match (&self.groups[group].listener, &mut self.ours) {
            (Listener::Ours(listener), Some(ours)) => {
                let accepted = ours.accept(*listener)?;
                Ok(accepted.map(|(handle, peer)| (Socket::Ours(handle), peer)))
            }
            (Listener::Ours(_), None) => Ok(None),
            (Listener::Kernel(listener), _) => loop {
                let (socket, peer) = match listener.accept() {
                    Ok(accepted) => accepted,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                    Err(error) => return Err(Error::new("cannot accept a connection", error)),
                };
                let ready = socket.set_nonblocking(true);
                ready.map_err(|cause| Error::new("cannot accept a connection", cause))?;
                return Ok(Some((Socket::Kernel(socket), peer)));
            },
        }
    }

    fn watch_end(&self, index: usize, side: usize, socket: &TcpStream) -> Result<(), Error> {
        let events = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        watch(
            &self.epoll,
            socket.as_raw_fd(),
            (index as u64) << 1 | side as u64,
            events,
        )
    }

    /// Opens a connection for an actor, between the hosts of a pair.
    pub(super) fn open(
        &mut self,
        group: u32,
        actor: u32,
        pair: u32,
        record: Option<usize>,
    ) -> Result<usize, Error> {
        let of = &mut self.groups[group as usize];
        let (opener, accepts) = (of.opener, 1 - of.opener);
        let number = of.output.goodput_bytes_per_connection.len();
        of.output.goodput_bytes_per_connection.push(Bytes::ZERO);
        let mut connection = Connection {
            group,
            actor,
            pair,
            ends: Default::default(),
            record,
            messages: VecDeque::new(),
            asked: 0,
            counted: Counted::default(),
            number,
        };
        let index = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let to = SocketAddr::new(
            self.address_of(group as usize, pair, accepts),
            port(group as usize),
        );
        let (socket, own) = match &mut self.ours {
            Some(ours) if ours.side == opener => {
                let (handle, own) = ours.connect(index, to)?;
                (Socket::Ours(handle), own)
            }
            Some(_) | None => {
                let (socket, own) = self.connect(group as usize, pair, opener, to)?;
                self.watch_end(index, opener, &socket)?;
                (Socket::Kernel(socket), own)
            }
        };
        connection.ends[opener].socket = Some(socket);
        self.opening.insert(own, index);
        self.connections[index] = Some(connection);
        Ok(index)
    }

    /// A socket of the kernel at a side that connects, and its address.
    fn connect(
        &self,
        group: usize,
        pair: u32,
        side: usize,
        to: SocketAddr,
    ) -> Result<(TcpStream, SocketAddr), Error> {
        self.place.enter(side)?;
        let several = self.hosts.counts()[side] > 1;
        let own = several.then(|| SocketAddr::new(self.hosts.address(group, pair, side), 0));
        sockets::connect(self.spec, group, own, to)
    }

    /// Where connections of a pair to a side go.
    fn address_of(&self, group: usize, pair: u32, side: usize) -> IpAddr {
        match &self.ours {
            Some(ours) if ours.side == side => Ours::address(),
            Some(_) | None => self.hosts.address(group, pair, side),
        }
    }

    /// Reads and writes what can be read and written at one end, and does what follows.
    pub(super) fn advance(&mut self, index: usize, side: usize) -> Result<(), Error> {
        let Some(connection) = &mut self.connections[index] else {
            return Ok(());
        };
        let end = &mut connection.ends[side];
        let (read, mut progress) = end.read(&mut self.buffer, &mut self.ours);
        if progress == Progress::Done {
            progress = end.write(&self.payload, &mut self.ours);
        }
        let (group, number) = (connection.group as usize, connection.number);
        let now = Instant::ZERO + self.clock.now().since(self.zero);
        if side == 1 && read > 0 {
            let window = Instant::ZERO + self.spec.warmup..Instant::ZERO + self.spec.duration;
            let output = &mut self.groups[group].output;
            if window.contains(&now) {
                output.goodput_bytes += Bytes(read);
                output.goodput_bytes_per_connection[number] += Bytes(read);
                let pair = connection.pair as usize;
                if output.goodput_bytes_per_pair.len() <= pair {
                    output.goodput_bytes_per_pair.resize(pair + 1, Bytes::ZERO);
                }
                output.goodput_bytes_per_pair[pair] += Bytes(read);
            }
        }
        if read > 0 {
            self.on_arrival(index, side, now)?;
        }
        let Some(connection) = &mut self.connections[index] else {
            return Ok(());
        };
        if progress == Progress::Lost {
            return self.lose(index);
        }
        // Whoever is asked for nothing more ends its stream when the other has.
        if connection.ends[side].ended && !connection.ends[side].closing {
            connection.ends[side].closing = true;
            if connection.ends[side].write(&self.payload, &mut self.ours) == Progress::Lost {
                return self.lose(index);
            }
        }
        if connection.ends[side].is_over() {
            if side == 0 {
                self.count(index);
            }
            if let Some(connection) = &mut self.connections[index] {
                connection.ends[side].release(&mut self.ours);
            }
            self.forget_if_over(index);
        }
        Ok(())
    }

    /// What the sender's end counted belongs to the flow that its connection is.
    fn count(&mut self, index: usize) {
        let Some(connection) = &self.connections[index] else {
            return;
        };
        let (Some(record), Some(counted)) =
            (connection.record, connection.ends[0].counted(self.ours.as_ref()))
        else {
            return;
        };
        let flow = &mut self.groups[connection.group as usize].output.flows[record];
        flow.tally = counted.stats.into();
        flow.min_rtt = counted.min_rtt;
    }

    /// A connection was lost: its flows stay incomplete.
    pub(super) fn lose(&mut self, index: usize) -> Result<(), Error> {
        self.count(index);
        let now = self.now();
        let connection = self.connections[index].as_ref();
        let silent = connection.is_some_and(|connection| connection.messages.is_empty());
        self.awaited -= self.cut_off(index);
        if let Some(connection) = &mut self.connections[index] {
            let (group, number) = (connection.group, connection.actor);
            let transfer = silent
                && connection.ends[1].received < connection.ends[0].wanted
                && connection.ends[0].wanted != u64::MAX;
            if transfer {
                self.awaited -= u64::from(connection.record.is_some());
                self.round_over(group, number, now);
            }
        }
        self.give_up(index);
        Ok(())
    }

    /// Notes the measured writes of a connection that will not arrive any more. How many messages were waited for.
    fn cut_off(&mut self, index: usize) -> u64 {
        let Some(connection) = &mut self.connections[index] else {
            return 0;
        };
        let group = &mut self.groups[connection.group as usize];
        let mut waited_for = 0;
        for message in connection
            .messages
            .drain(..)
            .filter(|message| message.record.is_some())
        {
            waited_for += 1;
            // A request that arrived is noted.
            if message.written_at != Instant::FAR_FUTURE {
                group.cut_off.push(message.written_at);
            }
        }
        waited_for
    }

    /// Ends a connection with resets.
    pub(super) fn give_up(&mut self, index: usize) {
        self.count(index);
        if let Some(connection) = &mut self.connections[index] {
            let ours = &mut self.ours;
            connection.ends.iter_mut().for_each(|end| end.abort(ours));
        }
        self.forget_if_over(index);
    }

    /// A connection without sockets is forgotten.
    fn forget_if_over(&mut self, index: usize) {
        let Some(connection) = &self.connections[index] else {
            return;
        };
        if connection.ends.iter().any(|end| end.socket.is_some()) {
            return;
        }
        let actor = &mut self.groups[connection.group as usize].actors[connection.actor as usize];
        if actor.connection == Some(index) {
            actor.connection = None;
        }
        self.opening.retain(|_, other| *other != index);
        self.connections[index] = None;
        self.free.push(index);
    }

    /// The end of the run: what is open is ended.
    fn finish(mut self) -> RunOutput {
        let ended = self.now();
        for index in 0..self.connections.len() {
            self.cut_off(index);
            self.give_up(index);
        }
        let groups = self.groups.into_iter().map(|mut group| {
            let mut output = group.output;
            group.cut_off.sort_unstable();
            let ages = group.cut_off.iter().map(|at| ended.since(*at).as_secs_f64());
            output.delivery_censored = ages.collect();
            let measures = output.measures.len();
            debug_assert_eq!(measures, 0, "no kind that is played has measures of its own");
            output.requests = Vec::new();
            output
        });
        RunOutput {
            groups: groups.collect(),
            ended,
            ..RunOutput::default()
        }
    }
}

/// A message up to this size is handed over in one call, as programs do: the end of a shorter write could be a small segment, for whose
/// acknowledgment the end of the message then waits (Nagle's rule as Minshall has it).
const LARGEST_WRITE: usize = 1 << 20;

/// Time for the interfaces to come up before the first transfer.
const SETTLING: Duration = Duration::from_millis(50);
