//! What this machine's clock and network are good for, measured.
//!
//! Forwarding is measured by a flood of datagrams from one namespace through a second into a third: once the kernel of the
//! second forwards them, once our link without a limit does. The kernel does all its work in the sender's thread, on one
//! core; our link has a thread of its own.

use crate::ip::{ip, ip_at};
use crate::member::{Member, Place};
use crate::router::{Config, Mode, Order, Orders, Router, Snapshot};
use crate::{Clock, Direction, Emulator, Error, Namespace, switch_off_offloads};
use fleetfoot_core::link::{Link, LinkConfig};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::queue::AnyQueue;
use fleetfoot_core::time::Duration;
use fleetfoot_core::units::Rate;
use fleetfoot_sim::output::Histogram;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// How late sleeping threads wake.
#[derive(Clone, Debug)]
pub struct Timers {
    /// By how much, nanoseconds.
    pub lateness: Histogram,
    /// Whether with the real-time priority that the link has as root.
    pub real_time: bool,
}

impl Timers {
    /// Sleeps `count` times for half a millisecond, as the link does.
    pub fn measure(count: u32) -> Timers {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let real_time = crate::thread::prefer();
                let _awake = crate::thread::stay_awake();
                let clock = Clock::start();
                let mut lateness = Histogram::new();
                for _ in 0..count {
                    let late = clock.sleep_until(clock.now() + Duration::from_micros(500));
                    lateness.record(late.as_nanos());
                }
                Timers { lateness, real_time }
            });
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Datagrams that came through in a second, by the kernel and by our link.
#[derive(Clone, Copy, Debug)]
pub struct Forwarded {
    /// Bytes of a packet at layer 3.
    pub bytes: u32,
    /// Forwarded by the kernel.
    pub kernel_per_s: f64,
    /// Carried by our link.
    pub link_per_s: f64,
}

impl Forwarded {
    /// Measures with packets of `bytes` (28 at least), by turns, `rounds` times each for `span`.
    ///
    /// # Errors
    /// What the machine does not give.
    pub fn measure(bytes: u32, rounds: u32, span: Duration) -> Result<Forwarded, Error> {
        let (mut kernel, mut link) = (0.0, 0.0);
        for _ in 0..rounds.max(1) {
            kernel += kernel_forwards(Offered::flood(bytes, span))?.per_s;
            link += row(|row| {
                row.relay()?;
                row.emulated(Rate::UNLIMITED, || {
                    row.offer("10.0.0.3", Offered::flood(bytes, span))
                })
                .map(|(carried, _)| carried.per_s)
            })?;
        }
        let mean = |sum: f64| sum / f64::from(rounds.max(1));
        Ok(Forwarded {
            bytes,
            kernel_per_s: mean(kernel),
            link_per_s: mean(link),
        })
    }

    /// Our link's rate as a share of the kernel's.
    pub fn ratio(&self) -> f64 {
        self.link_per_s / self.kernel_per_s
    }
}

/// Datagrams that are offered, by one thread.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    /// Bytes of a packet at layer 3 (28 at least).
    pub bytes: u32,
    /// How long.
    pub span: Duration,
    /// How many in a second; `None`: as many as the thread can send.
    pub per_s: Option<f64>,
}

impl Offered {
    /// As many as a thread can send.
    pub fn flood(bytes: u32, span: Duration) -> Offered {
        Offered {
            bytes,
            span,
            per_s: None,
        }
    }
}

/// What became of them.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// Packets that left the sender.
    pub sent: u64,
    /// Packets that came through.
    pub arrived: u64,
    /// Packets that came through in a second.
    pub per_s: f64,
}

impl Carried {
    /// Share of the packets that did not come through.
    pub fn lost(&self) -> f64 {
        1.0 - self.arrived as f64 / self.sent.max(1) as f64
    }
}

/// What comes through when the kernel forwards it.
///
/// # Errors
/// What the machine does not give.
pub fn kernel_forwards(offered: Offered) -> Result<Carried, Error> {
    row(|row| {
        row.forward()?;
        row.offer("10.0.1.1", offered)
    })
}

/// The same when a router forwards them, whose interfaces are `near` and `far`, and what it counted. Routes are to 10.0.0.0/24 at the
/// first, to 10.0.1.0/24 at the second.
///
/// # Errors
/// What the machine does not give.
pub fn router_forwards(config: &Config, offered: Offered) -> Result<(Carried, Snapshot), Error> {
    row(|row| {
        let to = match config.mode {
            Mode::Bridge => {
                row.relay()?;
                "10.0.0.3"
            }
            Mode::Route => {
                row.addresses()?;
                "10.0.1.1"
            }
        };
        let (stop_reading, stop_writing) =
            io::pipe().map_err(|cause| Error::new("cannot make a pipe", cause))?;
        std::thread::scope(|scope| {
            let router = scope.spawn(move || {
                within(Some(&row.middle), || {
                    let mut router = Router::open(config.clone(), &mut |_| {})?;
                    router.run(&Clock::start(), &mut UntilClosed(stop_reading), &mut |_| {})?;
                    Ok(router.finish())
                })
            });
            let result = row.offer(to, offered);
            drop(stop_writing);
            let snapshot = router
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((result?, snapshot))
        })
    })
}

/// The order to stop when the other end of a pipe is closed.
struct UntilClosed(io::PipeReader);

impl Orders for UntilClosed {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn next(&mut self) -> Option<Order> {
        let mut wanted = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        poll(&mut wanted, PollTimeout::ZERO)
            .is_ok_and(|count| count > 0)
            .then_some(Order::Stop)
    }
}

/// A link of 100 Mbit/s that is offered somewhat more in packets of 1500 bytes.
#[derive(Clone, Debug)]
pub struct Shaped {
    /// Bits of datagrams, without headers, delivered per second.
    pub goodput_bps: f64,
    /// How late packets were delivered, nanoseconds.
    pub lateness: Histogram,
    /// Frames that were not read in time.
    pub missed: u32,
}

impl Shaped {
    /// Measures for `span`.
    ///
    /// # Errors
    /// What the machine does not give.
    pub fn measure(span: Duration) -> Result<Shaped, Error> {
        row(|row| {
            row.relay()?;
            let (goodput_bps, (directions, missed)) = row.emulated(Rate::from_bps(100_000_000), || {
                row.pace("10.0.0.3", Duration::from_micros(115), span)
            })?;
            Ok(Shaped {
                goodput_bps,
                lateness: directions[0].measured().lateness.clone(),
                missed,
            })
        })
    }
}

/// Three namespaces in a row, joined by `source`-`near` and `far`-`sink`; the calling thread is in the first.
struct Row {
    middle: Place,
    last: Place,
}

/// Does `work` in the first of three namespaces.
fn row<T: Send>(work: impl FnOnce(&Row) -> Result<T, Error> + Send) -> Result<T, Error> {
    Namespace::run(|_| {
        std::thread::scope(|scope| {
            let (middle, last) = (Member::<()>::start(), Member::<()>::start());
            for seat in [middle.seat, last.seat] {
                scope.spawn(move || {
                    seat.take()?;
                    // Until the desk is left, which is no failure here.
                    seat.work(Ok)
                });
            }
            let row = Row {
                middle: middle.desk.place()?,
                last: last.desk.place()?,
            };
            ip(&format!(
                "link add source type veth peer name near netns {}",
                row.middle.thread
            ))?;
            let pair = format!("link add far type veth peer name sink netns {}", row.last.thread);
            ip_at(&row.middle.namespace, &pair)?;
            for (place, interface) in [(None, "source"), (Some(&row.last), "sink")]
                .into_iter()
                .chain([(Some(&row.middle), "near"), (Some(&row.middle), "far")])
            {
                within(place, || switch_off_offloads(interface))?;
            }
            let result = work(&row);
            drop((middle.desk, last.desk));
            result
        })
    })
}

/// Does `work` in a thread of another namespace, or of this one.
fn within<T: Send>(
    place: Option<&Place>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Some(place) = place {
                setns(&place.namespace, CloneFlags::CLONE_NEWNET)
                    .map_err(|errno| Error::new("cannot enter a network namespace", errno))?;
            }
            work()
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl Row {
    /// The kernel of the middle forwards.
    fn forward(&self) -> Result<(), Error> {
        self.addresses()?;
        within(Some(&self.middle), || {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")
                .map_err(|cause| Error::new("cannot switch forwarding on", cause))
        })
    }

    /// The middle is in the networks of both ends.
    fn addresses(&self) -> Result<(), Error> {
        ip_at(
            &self.middle.namespace,
            "address add 10.0.0.2/24 dev near\naddress add 10.0.1.2/24 dev far\nlink set near up\nlink set far up",
        )?;
        ip("address add 10.0.0.1/24 dev source\nlink set source up\nroute add default via 10.0.0.2")?;
        ip_at(
            &self.last.namespace,
            "address add 10.0.1.1/24 dev sink\nlink set sink up\nroute add default via 10.0.1.2",
        )
    }

    /// Something in the middle is to carry frames.
    fn relay(&self) -> Result<(), Error> {
        ip("address add 10.0.0.1/24 dev source\nlink set source up")?;
        ip_at(&self.middle.namespace, "link set near up\nlink set far up")?;
        ip_at(
            &self.last.namespace,
            "address add 10.0.0.3/24 dev sink\nlink set sink up",
        )
    }

    /// Does `work` while our link carries frames in the middle: what it came to, and what the link measured.
    fn emulated<T>(
        &self,
        rate: Rate,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<(T, ([Direction; 2], u32)), Error> {
        let (stop_reading, stop_writing) =
            io::pipe().map_err(|cause| Error::new("cannot make a pipe", cause))?;
        std::thread::scope(|scope| {
            let link = scope.spawn(move || {
                within(Some(&self.middle), || {
                    crate::thread::prefer();
                    let _awake = crate::thread::stay_awake();
                    let mut emulator =
                        Emulator::new(["near", "far"], 1500, [direction(rate)?, direction(rate)?])?;
                    emulator.run(&Clock::start(), &stop_reading)?;
                    let missed = emulator.missed();
                    Ok((emulator.into_directions(), missed))
                })
            });
            let result = work();
            drop(stop_writing);
            let measured = link
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((result?, measured))
        })
    }

    /// Sends packets, at once or in batches that are due: what arrives.
    fn offer(&self, to: &str, offered: Offered) -> Result<Carried, Error> {
        let socket = self.connected(to)?;
        let payload = vec![0_u8; offered.bytes.saturating_sub(28) as usize];
        let slice = io::IoSlice::new(&payload);
        // SAFETY: zeros are a valid message: no address, no data.
        let mut messages: [libc::mmsghdr; 64] = unsafe { std::mem::zeroed() };
        for message in &mut messages {
            // The kernel only reads what it is to send.
            message.msg_hdr.msg_iov = std::ptr::from_ref(&slice).cast_mut().cast();
            message.msg_hdr.msg_iovlen = 1;
        }
        // What is offered at a rate comes in bursts of a few packets, no longer than any ring.
        let (batch, interval) = match offered.per_s {
            None => (64, Duration::ZERO),
            Some(per_s) => (16, Duration::from_secs_f64(16.0 / per_s)),
        };
        let clock = Clock::start();
        let (before, began) = (self.arrived()?, clock.now());
        let (mut next, mut sent) = (began, 0);
        while clock.now() < began + offered.span {
            if offered.per_s.is_some() {
                clock.sleep_until(next);
                next += interval;
            }
            // SAFETY: each message names a live slice, which has the form of the kernel's `iovec`.
            let count = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), batch, 0) };
            sent += u64::try_from(count).unwrap_or(0);
        }
        let (after, ended) = (self.arrived()?, clock.now());
        // What is still on its way has come through, too, but in no time of this measurement.
        clock.sleep_until(ended + Duration::from_millis(50));
        Ok(Carried {
            sent,
            arrived: self.arrived()?.saturating_sub(before).min(sent),
            per_s: (after - before) as f64 / ended.since(began).as_secs_f64(),
        })
    }

    /// Sends a packet of 1500 bytes in every `interval`: bits of datagrams that arrive per second.
    fn pace(&self, to: &str, interval: Duration, span: Duration) -> Result<f64, Error> {
        let socket = self.connected(to)?;
        let payload = [0; 1472];
        let clock = Clock::start();
        let (before, began) = (self.arrived()?, clock.now());
        let mut next = began;
        while next < began + span {
            clock.sleep_until(next);
            // One that does not leave is one that does not arrive.
            let _ = socket.send(&payload);
            next += interval;
        }
        let (after, ended) = (self.arrived()?, clock.now());
        let bits = (after - before) as f64 * payload.len() as f64 * 8.0;
        Ok(bits / ended.since(began).as_secs_f64())
    }

    /// A socket from which the other end can be reached, with all neighbours known.
    fn connected(&self, to: &str) -> Result<UdpSocket, Error> {
        let fail = |cause| Error::new("cannot send datagrams", cause);
        let socket = UdpSocket::bind("0.0.0.0:0").map_err(fail)?;
        socket.connect((to, 9)).map_err(fail)?;
        let clock = Clock::start();
        let before = self.arrived()?;
        // The first packets find the neighbours; three arrive when that is done.
        let found = Namespace::wait(&clock, Duration::from_millis(3000), || {
            let _ = socket.send(b"neighbour?");
            self.arrived().is_ok_and(|now| now >= before + 8)
        });
        if !found {
            return Err(Error::new("packets do not arrive", io::ErrorKind::TimedOut));
        }
        Ok(socket)
    }

    /// Packets that arrived in the last namespace.
    fn arrived(&self) -> Result<u64, Error> {
        within(Some(&self.last), || {
            let text = std::fs::read_to_string("/proc/thread-self/net/dev")
                .map_err(|cause| Error::new("cannot read /proc/thread-self/net/dev", cause))?;
            let line = text.lines().find_map(|line| line.trim().strip_prefix("sink:"));
            let count = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
            count.ok_or_else(|| Error::new("no counter of the interface", io::ErrorKind::InvalidData))
        })
    }
}

/// A direction with the plainest queue.
fn direction(rate: Rate) -> Result<Direction, Error> {
    let fail = || Error::new("no queue", io::ErrorKind::InvalidInput);
    let config = LinkConfig::new(rate, Duration::ZERO);
    let entry = AnyQueue::entry_among(&[], "drop-tail").ok_or_else(fail)?;
    let values = Values::defaults(entry.parameters);
    let queue = AnyQueue::build_among(&[], entry.name, &values, &config.link_context(1)).ok_or_else(fail)?;
    Ok(Direction::new(Link::new(queue, &config, 1, "measured")))
}
