//! The described link between two interfaces: one loop that reads, delivers and sleeps.
//!
//! Every frame enters its direction at the time at which the kernel received it, not at which it is read here. A direction is
//! carried on only as far as everything that arrived before is known to it. So a wait in the socket never counts as time on the
//! link: the frame leaves later than the link would have delivered it, and that is recorded as lateness.
//!
//! The loop sleeps while nothing is due. It asks to be woken as much earlier as this machine has woken it late on average, 50 us
//! at most, and stays awake for what is then left, an eighth of the time at most.

use crate::packet_socket::{BATCH, PacketSocket};
use crate::{Clock, Direction, Error};
use fleetfoot_core::time::{Duration, Instant};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;

/// Two interfaces and the described link between them.
pub struct Emulator {
    /// The interface on each side.
    sides: [PacketSocket; 2],
    /// What goes from the first to the second, and back.
    directions: [Direction; 2],
    wake: Wake,
}

/// How late sleeps end, and how long may be waited awake.
struct Wake {
    /// How much later than asked for sleeps have ended, on average (ns).
    lead: u64,
    /// Time that may be spent awake (ns), as of `at`.
    allowance: u64,
    at: Instant,
}

impl Emulator {
    /// Frames from `sides[0]` to `sides[1]` go through `directions[0]`, those back through `directions[1]`. The interfaces are
    /// in the namespace of this thread and have the MTU `mtu`.
    ///
    /// # Errors
    /// An interface is not there, or packet sockets are not permitted.
    pub fn new(sides: [&str; 2], mtu: u32, directions: [Direction; 2]) -> Result<Emulator, Error> {
        Ok(Emulator {
            sides: [
                PacketSocket::open(sides[0], mtu)?,
                PacketSocket::open(sides[1], mtu)?,
            ],
            directions,
            wake: Wake {
                lead: 0,
                allowance: 0,
                at: Instant::ZERO,
            },
        })
    }

    /// Works until `stop` can be read from (an event, a pipe whose other end is closed). Sleeps while nothing is due.
    ///
    /// # Errors
    /// An interface is gone.
    pub fn run(&mut self, clock: &Clock, stop: &impl AsFd) -> Result<(), Error> {
        for direction in &mut self.directions {
            direction.start(clock);
        }
        loop {
            let [mut first, mut second] = [false; 2];
            for (index, more) in [(0, &mut first), (1, &mut second)] {
                let known = self.read(clock, index, more);
                let (direction, far) = (&mut self.directions[index], &self.sides[1 - index]);
                direction.poll_frames(known, || clock.now(), |frames| far.send(frames))?;
            }
            let due = self.directions.iter().filter_map(Direction::poll_timeout).min();
            // Frames that wait already are read at once.
            let due = if first || second { Some(Instant::ZERO) } else { due };
            if self.wait(clock, due, stop)? {
                return Ok(());
            }
        }
    }

    /// Reads what waits on a side, so many at once at most that the other direction need not wait for ever: until when
    /// everything that arrived is known then, and whether `more` may wait.
    fn read(&mut self, clock: &Clock, index: usize, more: &mut bool) -> Instant {
        let direction = &mut self.directions[index];
        // Before the ring is looked at: what comes while it is read is not known.
        let stamps = clock.stamps();
        let mut last = stamps.now;
        for _ in 0..BATCH {
            let Some(frame) = self.sides[index].receive() else {
                return stamps.now;
            };
            last = stamps.arrival(frame.stamp);
            direction.on_frame(last, frame.bytes());
        }
        *more = true;
        last
    }

    /// Waits for a frame, until `due`, or for the end: whether that has come.
    fn wait(&mut self, clock: &Clock, due: Option<Instant>, stop: &impl AsFd) -> Result<bool, Error> {
        let began = clock.now();
        let earlier = self.wake.earlier(began);
        let asked = due.map(|due| due.since(began).saturating_sub(earlier));
        let mut wanted = [
            PollFd::new(stop.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.sides[0].as_fd(), PollFlags::POLLIN),
            PollFd::new(self.sides[1].as_fd(), PollFlags::POLLIN),
        ];
        let left = asked.map(|left| {
            let left = left.as_nanos();
            TimeSpec::new((left / 1_000_000_000) as i64, (left % 1_000_000_000) as i64)
        });
        let count = match ppoll(&mut wanted, left, None) {
            Ok(count) => count,
            Err(Errno::EINTR) => return Ok(false),
            Err(errno) => return Err(Error::new("cannot wait for frames", errno)),
        };
        for (side, polled) in self.sides.iter().zip(&wanted[1..]) {
            if polled
                .revents()
                .is_some_and(|events| events.contains(PollFlags::POLLERR))
            {
                side.check()?;
            }
        }
        if count > 0 {
            return Ok(wanted[0].revents().is_some_and(|events| !events.is_empty()));
        }
        if let (Some(due), Some(asked)) = (due, asked) {
            let mut now = clock.now();
            if asked > Duration::ZERO {
                self.wake.woke(now.since(began + asked));
            }
            let woke = now;
            while now < due && !self.sides.iter().any(PacketSocket::has_frame) {
                std::hint::spin_loop();
                now = clock.now();
            }
            self.wake.spent(now.since(woke));
        }
        Ok(false)
    }

    /// The directions with what they measured; the interfaces are closed.
    pub fn into_directions(self) -> [Direction; 2] {
        self.directions
    }

    /// Frames that were lost because they were not read in time, on either side.
    pub fn missed(&self) -> u32 {
        self.sides.iter().map(PacketSocket::missed).sum()
    }
}

impl Wake {
    /// How much earlier than what is due a sleep is to end that begins at `now`.
    fn earlier(&mut self, now: Instant) -> Duration {
        let passed = now.since(self.at).as_nanos();
        self.at = now;
        self.allowance = (self.allowance + passed / AWAKE).min(LONGEST_AWAKE);
        if self.allowance < self.lead {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.lead)
    }

    /// A sleep ended so late.
    fn woke(&mut self, late: Duration) {
        let late = late.as_nanos().min(LONGEST_LEAD);
        self.lead = (self.lead * 15 + late) / 16;
    }

    /// So much time was spent awake.
    fn spent(&mut self, span: Duration) {
        self.allowance = self.allowance.saturating_sub(span.as_nanos());
    }
}

/// A sleep is asked to end this much earlier at most (ns).
const LONGEST_LEAD: u64 = 50_000;
/// One part in so many of the time may be spent awake.
const AWAKE: u64 = 8;
/// Time awake that is saved up at most (ns).
const LONGEST_AWAKE: u64 = 5_000_000;
