//! The described link between two interfaces: one loop that reads, delivers and sleeps.
//!
//! Every frame enters its direction at the time at which the kernel received it, not at which it is read here. A direction is
//! carried on only as far as everything that arrived before is known to it. So a wait in the socket never counts as time on the
//! link: the frame leaves later than the link would have delivered it, and that is recorded as lateness.
//! The loop sleeps while nothing is due.

use crate::packet_socket::{BATCH, PacketSocket};
use crate::wake::{Wake, readable};
use crate::{Clock, Direction, Error};
use fleetfoot_core::time::Instant;
use std::os::fd::AsFd;

/// Two interfaces and the described link between them.
pub struct Emulator {
    /// The interface on each side.
    sides: [PacketSocket; 2],
    /// What goes from the first to the second, and back.
    directions: [Direction; 2],
    wake: Wake,
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
            wake: Wake::default(),
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
        let sides = &self.sides;
        let mut wanted = [readable(stop), readable(&sides[0]), readable(&sides[1])];
        let comes = || sides.iter().any(PacketSocket::has_frame);
        let ready = self.wake.wait(clock, due, &mut wanted, comes)?;
        for (side, polled) in sides.iter().zip(&wanted[1..]) {
            if polled.revents & libc::POLLERR != 0 {
                side.check()?;
            }
        }
        Ok(ready && wanted[0].revents != 0)
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
