//! The described link between two interfaces: one loop that reads, delivers and sleeps.
//!
//! Every frame enters its direction at the time at which the kernel received it, not at which it is read here. A direction is
//! carried on only as far as everything that arrived before is known to it. So a wait in the socket never counts as time on the
//! link: the frame leaves later than the link would have delivered it, and that is recorded as lateness.
//! The loop sleeps while nothing is due.

use crate::clock::WallClock;
use crate::packet_socket::{BATCH, PacketSocket, Sent};
use crate::wake::{Wake, readable};
use crate::{Clock, Direction, Error};
use fleetfoot_core::time::{Duration, Instant};
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};

/// What becomes of frames in one direction: frames in with the time at which they came, frames out when they are due.
pub trait Way {
    /// The way begins, with this clock.
    fn start(&mut self, clock: &Clock);

    /// A frame came at `at`.
    fn on_frame(&mut self, at: Instant, frame: &[u8]);

    /// A frame came of which only a part is there, since it is longer than the MTU for which the emulator was made: it is refused.
    fn on_cut(&mut self);

    /// When [`Way::poll_frames`] is to be called next; `None`: nothing is under way.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Hands the frames that are due at `until` to `send`, in batches; `until` is the time up to which all arrivals are known.
    /// How late a frame is shows the clock `now` when its turn comes.
    ///
    /// # Errors
    /// Those of `send`.
    fn poll_frames<E>(
        &mut self,
        until: Instant,
        now: impl Fn() -> Instant,
        send: impl FnMut(&[IoSlice<'_>]) -> Result<Sent, E>,
    ) -> Result<(), E>;

    /// No more frames come. What is under way is lost, unless it is made due here.
    fn end(&mut self) {}

    /// What [`Emulator::run`] does: [`Emulator::work`]. A method of each way, so that the loop is compiled, and optimised, where the way is.
    ///
    /// # Errors
    /// As there.
    fn work(emulator: &mut Emulator<Self>, clock: &Clock, stop: BorrowedFd<'_>) -> Result<(), Error>
    where
        Self: Sized;
}

/// Two interfaces and what is between them: a described link, or another [`Way`] in each direction.
pub struct Emulator<W = Direction> {
    /// The interface on each side.
    sides: [PacketSocket; 2],
    /// What goes from the first to the second, and back.
    directions: [W; 2],
    wake: Wake,
    wall: WallClock,
    /// A frame with the VLAN tag that the kernel took out.
    tagged: Vec<u8>,
}

impl<W: Way> Emulator<W> {
    /// Frames from `sides[0]` to `sides[1]` go through `directions[0]`, those back through `directions[1]`. The interfaces are
    /// in the namespace of this thread and have the MTU `mtu`.
    ///
    /// # Errors
    /// An interface is not there, or packet sockets are not permitted.
    pub fn new(sides: [&str; 2], mtu: u32, directions: [W; 2]) -> Result<Emulator<W>, Error> {
        Ok(Emulator {
            sides: [
                PacketSocket::open(sides[0], mtu)?,
                PacketSocket::open(sides[1], mtu)?,
            ],
            directions,
            wake: Wake::default(),
            wall: WallClock::default(),
            tagged: Vec::new(),
        })
    }

    /// Takes in frames for other hosts, too, which a device would not hand up: what lies between two others has to see all.
    ///
    /// # Errors
    /// An interface does not do it.
    pub fn take_all(&self) -> Result<(), Error> {
        self.sides.iter().try_for_each(PacketSocket::take_all)
    }

    /// Works until `stop` can be read from (an event, a pipe whose other end is closed). Sleeps while nothing is due.
    ///
    /// # Errors
    /// An interface is gone.
    pub fn run(&mut self, clock: &Clock, stop: &impl AsFd) -> Result<(), Error> {
        W::work(self, clock, stop.as_fd())
    }

    /// See [`Emulator::run`].
    ///
    /// # Errors
    /// As there.
    pub fn work(&mut self, clock: &Clock, stop: BorrowedFd<'_>) -> Result<(), Error> {
        for direction in &mut self.directions {
            direction.start(clock);
        }
        loop {
            let [mut first, mut second] = [false; 2];
            for (index, more) in [(0, &mut first), (1, &mut second)] {
                self.carry(clock, index, more)?;
            }
            let due = self.directions.iter().filter_map(Way::poll_timeout).min();
            // Frames that wait already are read at once.
            let due = if first || second { Some(Instant::ZERO) } else { due };
            if self.wait(clock, due, &stop)? {
                self.finish(clock);
                return Ok(());
            }
        }
    }

    /// Reads what waits on a side and sends what is due at the other.
    fn carry(&mut self, clock: &Clock, index: usize, more: &mut bool) -> Result<(), Error> {
        let known = self.read(clock, index, more);
        let (direction, far) = (&mut self.directions[index], &self.sides[1 - index]);
        direction.poll_frames(known, || clock.now(), |frames| far.send(frames))
    }

    /// Carries what came before the end. An interface that is gone by now is no error.
    fn finish(&mut self, clock: &Clock) {
        for index in 0..2 {
            let mut more = true;
            let began = clock.now();
            while more && clock.now().since(began) < LONGEST_END {
                more = false;
                if self.carry(clock, index, &mut more).is_err() {
                    return;
                }
            }
            self.directions[index].end();
            let _ = self.carry(clock, index, &mut more);
        }
    }

    /// Reads what waits on a side, so many at once at most that the other direction need not wait for ever: until when
    /// everything that arrived is known then, and whether `more` may wait.
    fn read(&mut self, clock: &Clock, index: usize, more: &mut bool) -> Instant {
        let direction = &mut self.directions[index];
        // Before the ring is looked at: what comes while it is read is not known.
        let stamps = self.wall.read(clock);
        let mut last = stamps.now;
        for _ in 0..BATCH {
            let Some(frame) = self.sides[index].receive() else {
                return stamps.now;
            };
            last = stamps.arrival(frame.stamp);
            if !frame.whole {
                direction.on_cut();
                continue;
            }
            match (frame.tag, frame.bytes().split_at_checked(ADDRESSES)) {
                (Some(tag), Some((addresses, rest))) => {
                    self.tagged.clear();
                    for part in [addresses, &tag, rest] {
                        self.tagged.extend_from_slice(part);
                    }
                    direction.on_frame(last, &self.tagged);
                }
                _ => direction.on_frame(last, frame.bytes()),
            }
        }
        *more = true;
        last
    }

    /// Waits for a frame, until `due`, or for the end: whether that has come.
    fn wait(&mut self, clock: &Clock, due: Option<Instant>, stop: &BorrowedFd<'_>) -> Result<bool, Error> {
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
    pub fn into_directions(self) -> [W; 2] {
        self.directions
    }

    /// Frames that were lost because they were not read in time, on either side.
    pub fn missed(&self) -> u32 {
        self.sides.iter().map(PacketSocket::missed).sum()
    }
}

/// What came before the end is read for so long at most: frames may go on coming.
const LONGEST_END: Duration = Duration::from_millis(20);
/// Bytes of a frame before its VLAN tag.
const ADDRESSES: usize = 12;

#[cfg(test)]
mod tests {
    use super::Emulator;
    use crate::packet_socket::{PacketSocket, Refusal, Sent};
    use crate::{Clock, Namespace, Passage};
    use fleetfoot_core::time::Duration;
    use std::io::{IoSlice, Write};
    use std::os::unix::net::UnixStream;

    /// A frame for whoever takes it, of so many bytes.
    fn frame(length: usize) -> Vec<u8> {
        let mut frame = vec![0xff; length];
        frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
        frame
    }

    #[test]
    fn what_is_cut_since_the_mtu_grew_is_refused() {
        let done = Namespace::run(|place| {
            place.ip("link add a0 type veth peer name a1\nlink add b0 type veth peer name b1")?;
            for name in ["a0", "a1", "b0", "b1"] {
                place.sysctl(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1")?;
                place.ip(&format!("link set {name} up"))?;
            }
            let ways = [Passage::plain(), Passage::plain()];
            let mut emulator = Emulator::new(["a1", "b1"], 1500, ways)?;
            for name in ["a0", "a1", "b0", "b1"] {
                place.ip(&format!("link set {name} mtu 9000"))?;
            }
            let (near, mut far) = (PacketSocket::open("a0", 9000)?, PacketSocket::open("b0", 9000)?);
            let clock = Clock::start();
            for length in [1514, 4000, 60] {
                let sent = near.send(&[IoSlice::new(&frame(length))])?;
                assert_eq!(sent, Sent::Taken(1), "{length}");
            }
            clock.sleep_until(clock.now() + Duration::from_millis(20));
            let (stop, mut end) = UnixStream::pair().expect("a pair");
            end.write_all(&[0]).expect("written");
            emulator.run(&clock, &stop)?;
            clock.sleep_until(clock.now() + Duration::from_millis(20));
            let mut lengths = Vec::new();
            while let Some(frame) = far.receive() {
                lengths.push(frame.bytes().len());
            }
            assert_eq!(lengths, [1514, 60]);
            let [way, back] = emulator.into_directions();
            assert_eq!(way.measured().refused[Refusal::TooLong as usize], 1);
            assert_eq!(back.measured().refused[Refusal::TooLong as usize], 0);
            Ok(())
        });
        if let Err(cause) = done {
            println!("skipped: {cause}");
        }
    }
}
