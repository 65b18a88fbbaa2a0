//! A router: frames in by one interface, out by another, with a registered queue discipline before each.
//!
//! One thread reads rings of packet sockets or of AF_XDP ([`Format`](crate::Format)), decides where each frame goes, hands it to the queue of
//! that output (`output`) and sends in batches what is due; it sleeps while nothing is. A frame is read once (`frames`);
//! of its bytes only what a router or a queue changes is written. Frames of one input keep their order up to the queue.
//!
//! In [`Mode::Bridge`] what enters one of two interfaces leaves by the other as it was. In [`Mode::Route`] packets that are
//! addressed to an interface's Ethernet address and to no IP address of this machine leave by the route with the longest prefix;
//! everything else is left to the kernel, which owns the addresses and answers ARP and neighbour discovery (`neighbours`).
//!
//! Nothing is configured that outlives the process but offloads: rings, sockets and promiscuous mode are the kernel's to put away.

mod config;
mod control;
mod icmp;
mod interfaces;
mod io;
mod metrics;
mod neighbours;
mod output;
pub mod packet;
mod plane;
mod routes;
mod spans;

pub use config::{Config, InterfaceConfig, Mode, Offloads, Queue, Route};
pub use control::{Order, Orders, SignalOrders};
pub use interfaces::{Interface, interfaces, missing_capabilities};
pub use metrics::{InterfaceSnapshot, Snapshot};
pub use output::OutputCounters;
pub use packet::Discard;
pub use spans::{LATE, SPANS, Spans};

use crate::claim::Claim;
use crate::clock::WallClock;
use crate::packet_socket::{BATCH, Setup};
use crate::wake::{Wake, readable};
use crate::{Clock, Error, frames, offload};
use fleetfoot_core::time::Instant;
use io::Io;
use metrics::Requests;
use output::Output;
use plane::Plane;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

/// What was counted of frames that came in by an interface.
#[derive(Clone, Debug, Default)]
pub struct InputCounters {
    /// Frames.
    pub received: u64,
    /// Their bytes, Ethernet headers included.
    pub bytes: u64,
    /// Frames that were left to the kernel.
    pub kernel: u64,
    /// Frames that went no further, by reason ([`Discard::ALL`]).
    pub discards: [u64; Discard::ALL.len()],
    /// Frames that were lost because they were not read in time.
    pub missed: u64,
    /// How long after the kernel had received them frames were read; of rings that give frames no time (AF_XDP) none.
    pub unread: Spans,
}

impl InputCounters {
    /// Frames that went no further.
    pub fn discarded(&self) -> u64 {
        self.discards.iter().sum()
    }

    fn discard(&mut self, reason: Discard) {
        self.discards[reason as usize] += 1;
    }
}

/// Something worth a line in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Frames are forwarded from now on.
    Started,
    /// Metrics can be fetched there.
    MetricsAt(SocketAddr),
    /// Another file took over; the names of the interfaces whose queue or rate changed.
    Reloaded {
        /// Their names.
        queues: Vec<String>,
    },
    /// A file was refused, and the one before stays; why.
    ReloadRefused(String),
    /// An interface went down or came up.
    Interface {
        /// Its name.
        name: String,
        /// Whether it is up.
        up: bool,
    },
    /// Another MTU of an interface counts from now on: that which it has, or that which it had at the start if that is smaller.
    Mtu {
        /// Its name.
        name: String,
        /// Bytes at layer 3.
        mtu: u32,
    },
    /// The kernel forwards the packets of an interface, too, so that each leaves twice; or it does so no more.
    Twice {
        /// Its name.
        name: String,
        /// The settings by which, or the bridge that the interface belongs to.
        by: Option<String>,
    },
    /// Frames longer than the MTU come in by an interface: somebody puts segments together.
    Aggregates {
        /// Its name.
        name: String,
    },
    /// Frames without a checksum come in by an interface, which are completed here.
    UnfinishedChecksums {
        /// Its name.
        name: String,
    },
    /// Frames of an interface pass by AF_XDP.
    Xdp {
        /// Its name.
        name: String,
        /// Whether in the driver, or behind it.
        in_driver: bool,
        /// Whether the device and this process share the memory of frames.
        zero_copy: bool,
        /// Whether the kernel gets what is for this machine, as it does in a router.
        beside_kernel: bool,
    },
}

/// A router that is ready to run.
pub struct Router {
    ports: Vec<Port>,
    outputs: Vec<Output>,
    plane: Plane,
    config: Config,
    requests: Option<Requests>,
    wake: Wake,
    wall: WallClock,
    seeds: RandomState,
    built: u64,
    reloads: u64,
    refused_reloads: u64,
}

/// Where frames come in.
struct Port {
    socket: Io,
    counters: InputCounters,
    /// Whether aggregates, and unfinished checksums, have been reported.
    reported: [bool; 2],
    _claim: Claim,
}

impl Router {
    /// Opens the interfaces of `config` in the network namespace of this thread.
    ///
    /// # Errors
    /// A capability is missing, an interface is not there or no Ethernet interface, an offload stays on, the kernel or
    /// another process forwards the same frames, or the address for metrics is taken.
    pub fn open(config: Config, log: &mut dyn FnMut(Event)) -> Result<Router, Error> {
        let missing = missing_capabilities();
        if !missing.is_empty() {
            return Err(Error::new(
                format!(
                    "a router needs {}, which this process does not have",
                    missing.join(" and ")
                ),
                std::io::Error::other(CAPABILITIES),
            ));
        }
        let mut router = Router {
            ports: Vec::new(),
            outputs: Vec::new(),
            plane: Plane::new(&config)?,
            config,
            requests: None,
            wake: Wake::default(),
            wall: WallClock::default(),
            seeds: RandomState::new(),
            built: 0,
            reloads: 0,
            refused_reloads: 0,
        };
        for index in 0..router.config.interfaces.len() {
            router.open_interface(index, log)?;
        }
        if let Some(address) = router.config.metrics {
            let (requests, address) = metrics::serve(address)?;
            router.requests = Some(requests);
            log(Event::MetricsAt(address));
        }
        Ok(router)
    }

    fn open_interface(&mut self, index: usize, log: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let seed = self.seed();
        let config = &self.config.interfaces[index];
        let name = &config.name;
        let number = self.plane.facts(index).index;
        let claim = Claim::take(name, number)?;
        let fail = |cause| Error::new(format!("cannot look at the interface {name}"), cause);
        if let Some(master) = interfaces::master(number).map_err(fail)? {
            let there = interfaces()?.into_iter();
            let master = there.filter(|one| one.index == master).map(|one| one.name).next();
            return Err(Error::new(
                format!(
                    "{name} belongs to {}, so every frame would leave twice",
                    master.unwrap_or_default()
                ),
                std::io::Error::other(format!("ip link set {name} nomaster takes it out")),
            ));
        }
        if self.config.mode == Mode::Route {
            let on = interfaces::forwarding(name);
            if !on.is_empty() {
                let set: Vec<String> = on.iter().map(|name| format!("{name}=0")).collect();
                return Err(Error::new(
                    format!(
                        "the kernel forwards what comes by {name} itself, so every packet would leave twice"
                    ),
                    std::io::Error::other(format!("set sysctl -w {}", set.join(" "))),
                ));
            }
        }
        match self.config.offloads {
            Offloads::SwitchOff => offload::switch_off_offloads(name)?,
            Offloads::Refuse => offload::refuse_offloads(name)?,
        }
        let mtu = self.plane.mtu_at_start(index);
        let setup = Setup {
            ring: config.ring,
            // The kernel doubles it.
            waiting: Some(config.device_buffer.min(1 << 30) as i32 / 2),
            promiscuous: self.config.mode == Mode::Bridge,
            bypass: true,
        };
        // Room for two tags that the kernel leaves in the frame.
        let longest = mtu + 2 * frames::TAG as u32;
        let socket = Io::open(name, longest, setup, self.plane.own(index), log)?;
        let output = Output::new(config, mtu, seed).ok_or_else(|| {
            Error::new(
                format!("no queue {}", config.queue.name),
                std::io::ErrorKind::NotFound,
            )
        })?;
        self.ports.push(Port {
            socket,
            counters: InputCounters::default(),
            reported: [false; 2],
            _claim: claim,
        });
        self.outputs.push(output);
        Ok(())
    }

    /// A number that nobody outside can guess, another one each time.
    fn seed(&mut self) -> u64 {
        self.built += 1;
        self.seeds.hash_one(self.built)
    }

    /// Forwards until `orders` say that it is to stop.
    ///
    /// # Errors
    /// An interface is gone.
    pub fn run(
        &mut self,
        clock: &Clock,
        orders: &mut dyn Orders,
        log: &mut dyn FnMut(Event),
    ) -> Result<(), Error> {
        log(Event::Started);
        let mut wanted: Vec<libc::pollfd> = self.ports.iter().map(|port| readable(&port.socket)).collect();
        wanted.extend([readable(&orders.fd()), readable(&self.plane.fd())]);
        wanted.extend(self.requests.as_ref().map(readable));
        let mut busy = 0_u32;
        loop {
            let mut more = false;
            for index in 0..self.ports.len() {
                more |= self.read(clock, index, log);
            }
            self.flush(clock)?;
            if more && busy < BUSY {
                busy += 1;
                continue;
            }
            busy = 0;
            let due = if more {
                Some(Instant::ZERO)
            } else {
                self.poll_timeout()
            };
            if self.wait(clock, due, &mut wanted, orders, log)? {
                return Ok(());
            }
        }
    }

    /// Reads what waits at an interface, so many at once at most that the others need not wait for ever: whether more may wait.
    fn read(&mut self, clock: &Clock, index: usize, log: &mut dyn FnMut(Event)) -> bool {
        let port = &mut self.ports[index];
        if !port.socket.has_frame() {
            return false;
        }
        let stamps = self.wall.read(clock);
        for _ in 0..BATCH {
            let Some(frame) = port.socket.receive() else {
                return false;
            };
            let at = match frame.stamp {
                Some(stamp) => {
                    let at = stamps.arrival(stamp);
                    port.counters.unread.record(stamps.now.since(at));
                    at
                }
                None => stamps.now,
            };
            let bytes = frame.bytes();
            port.counters.received += 1;
            port.counters.bytes += bytes.len() as u64;
            let whole = frame.whole;
            let unfinished = frame.unfinished;
            let fate = if whole {
                self.plane
                    .pass(at, index, bytes, frame.tag, unfinished, &mut self.outputs)
            } else {
                Err(Some(Discard::Aggregate))
            };
            drop(frame);
            match fate {
                Ok(()) => {}
                Err(None) if port.socket.shares() => port.counters.kernel += 1,
                Err(None) => port.counters.discard(Discard::OwnDestination),
                Err(Some(reason)) => port.counters.discard(reason),
            }
            let strange = [fate == Err(Some(Discard::Aggregate)), unfinished];
            if strange[0] && !port.reported[0] || strange[1] && !port.reported[1] {
                report(port, strange, log);
            }
        }
        true
    }

    /// Sends what is due.
    fn flush(&mut self, clock: &Clock) -> Result<(), Error> {
        for (output, port) in self.outputs.iter_mut().zip(&mut self.ports) {
            let now = clock.now();
            output.flush(now, |frames| port.socket.send(frames))?;
            port.socket.push(now);
        }
        Ok(())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let outputs = self.outputs.iter().filter_map(Output::poll_timeout);
        let ports = self.ports.iter().filter_map(|port| port.socket.poll_timeout());
        outputs.chain(ports).chain(self.plane.poll_timeout()).min()
    }

    /// Waits for a frame, until `due`, or for something else to do: whether the end has come.
    fn wait(
        &mut self,
        clock: &Clock,
        due: Option<Instant>,
        wanted: &mut [libc::pollfd],
        orders: &mut dyn Orders,
        log: &mut dyn FnMut(Event),
    ) -> Result<bool, Error> {
        let ports = &self.ports;
        let comes = || ports.iter().any(|port| port.socket.has_frame());
        self.wake.wait(clock, due, wanted, comes)?;
        // Those of the interfaces come first.
        for (port, polled) in self.ports.iter().zip(&*wanted) {
            if polled.revents & libc::POLLERR != 0 {
                port.socket.check()?;
            }
        }
        self.plane
            .look(clock.now(), &mut self.ports, &mut self.outputs, log)?;
        while let Some(answer) = self.requests.as_mut().and_then(Requests::next) {
            // Who asked may have gone.
            let _ = answer.send(self.count());
        }
        while let Some(order) = orders.next() {
            match order {
                Order::Stop => return Ok(true),
                Order::Report(answer) => drop(answer.send(self.count())),
                Order::Reload(Ok(config)) => match self.reload(*config) {
                    Ok(queues) => {
                        self.reloads += 1;
                        log(Event::Reloaded { queues });
                        self.plane.refresh(&mut self.ports, log)?;
                    }
                    Err(why) => {
                        self.refused_reloads += 1;
                        log(Event::ReloadRefused(why));
                    }
                },
                Order::Reload(Err(why)) => {
                    self.refused_reloads += 1;
                    log(Event::ReloadRefused(why));
                }
            }
        }
        Ok(false)
    }

    /// Another file takes over: queues, rates and routes. Which interfaces have another queue or rate now.
    fn reload(&mut self, config: Config) -> Result<Vec<String>, String> {
        let shape = |config: &Config| {
            let interfaces = config.interfaces.iter();
            let interfaces: Vec<_> = interfaces
                .map(|one| (one.name.clone(), one.ring, one.device_buffer))
                .collect();
            (config.mode, config.metrics, config.offloads, interfaces)
        };
        if shape(&config) != shape(&self.config) {
            return Err(String::from(
                "mode, interfaces and their order, `ring`, `device_buffer`, `offloads` and [metrics] take effect only at a start: restart the router",
            ));
        }
        let mut changed = Vec::new();
        for (index, new) in config.interfaces.iter().enumerate() {
            let old = &self.config.interfaces[index];
            if (&new.queue, new.rate, new.framing) == (&old.queue, old.rate, old.framing) {
                continue;
            }
            let (seed, mtu) = (self.seed(), self.plane.mtu_at_start(index));
            self.outputs[index]
                .replace(&new.queue, new.rate, new.framing, mtu, seed)
                .ok_or_else(|| format!("no queue {}", new.queue.name))?;
            changed.push(new.name.clone());
        }
        self.plane.configure(&config);
        self.config = config;
        Ok(changed)
    }

    /// What was counted so far, frames that were not read, or not given to this process, included, after which the kernel is asked.
    fn count(&mut self) -> Snapshot {
        for Port { socket, counters, .. } in &mut self.ports {
            counters.missed += socket.missed();
            let [frames, bytes] = socket.passed();
            counters.received += frames;
            counters.bytes += bytes;
            counters.kernel += frames;
        }
        self.snapshot()
    }

    fn snapshot(&self) -> Snapshot {
        let interfaces = self.ports.iter().zip(&self.outputs).zip(&self.config.interfaces);
        let interfaces = interfaces.map(|((port, output), config)| {
            let waiting = output.backlog();
            InterfaceSnapshot {
                name: config.name.clone(),
                queue: config.queue.name,
                input: port.counters.clone(),
                output: output.counters().clone(),
                waiting_packets: waiting.packets,
                waiting_bytes: waiting.bytes.get(),
                kept: output.kept(),
                most_probes: output.most_probes(),
            }
        });
        Snapshot {
            interfaces: interfaces.collect(),
            reloads: self.reloads,
            refused_reloads: self.refused_reloads,
            icmp_errors: self.plane.icmp_errors(),
        }
    }

    /// Closes the interfaces: what was counted.
    pub fn finish(mut self) -> Snapshot {
        self.count()
    }
}

#[cold]
fn report(port: &mut Port, [aggregate, unfinished]: [bool; 2], log: &mut dyn FnMut(Event)) {
    let name = port.socket.name().to_owned();
    if aggregate && !port.reported[0] {
        port.reported[0] = true;
        log(Event::Aggregates { name });
    } else if unfinished && !port.reported[1] {
        port.reported[1] = true;
        log(Event::UnfinishedChecksums { name });
    }
}

/// What to do about a missing capability.
const CAPABILITIES: &str = "start it as root, or from a systemd unit with AmbientCapabilities=CAP_NET_RAW CAP_NET_ADMIN \
    (contrib/fleetfoot-router.service), or give them to the program once: \
    setcap cap_net_raw,cap_net_admin+ep $(command -v fleetfoot)";
/// So often is read without a look at anything else while frames wait.
const BUSY: u32 = 15;

#[cfg(test)]
mod tests;
