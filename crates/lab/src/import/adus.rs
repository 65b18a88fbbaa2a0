//! What the ends of a connection said: stretches of data become the units of a connection vector.
//!
//! **Sequential or concurrent** (Hernandez-Campos: Tmix): a connection is concurrent when both ends had data under way at once:
//! a new segment that does not acknowledge data of the other end seen before it. Else each unit is all that one end said
//! until the other spoke.
//!
//! **One end pauses** when it had nothing to send: it was silent for long enough (`quiet`) after a segment that was not full;
//! after a full one, for half a second beyond a round-trip time after its last byte was acknowledged. A gap within a window,
//! or until a retransmission, is no pause.
//!
//! **Waits** are those of applications: what the packets took from the capture point to the end and back (the smallest that was
//! seen, and what the last byte waited in a queue) is taken off. What the first data took longer than the end of the handshake, by its
//! timestamps, is no wait (`connection/handshake.rs`).
//!
//! **Exchanges** last as the ends see them: the ways between them and the capture point are added, and what the first packet waited
//! before it (by its timestamp) and the last one behind it (by its ACK).

use crate::workload::vectors::Unit;

/// A stretch of data of one end.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// 0: the end that opened; 1: the other.
    side: u8,
    /// The end had paused before.
    pause: bool,
    bytes: u64,
    first_ns: u64,
    /// The last new byte.
    last_ns: u64,
    /// The last byte, retransmissions included.
    settled_ns: u64,
    /// Stream offset behind the last byte.
    end: u64,
    /// From the capture point to the other end and back, queues and all, as the ACK of the last byte shows; 0: not known.
    way_ns: u64,
}

/// The stretches of a connection, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    said: Vec<Said>,
    /// Index of the latest stretch of each side.
    latest: [Option<u32>; 2],
    /// Index of the first stretch of each side that may not be acknowledged.
    open: [u32; 2],
    pub(super) concurrent: bool,
    /// There was more than fits: what came later was added to the last stretches.
    pub(super) cut: bool,
}

/// When things happened that units are timed by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    /// The first SYN, if it was seen.
    pub(super) opened_ns: Option<u64>,
    /// The end of the handshake, as late as first data that followed at once, or the first packet.
    pub(super) established_ns: u64,
    /// The first FIN or reset, and whose it was.
    pub(super) closed: Option<(u64, u8)>,
    /// Smallest round-trip time between the capture point and each end.
    pub(super) halves_ns: [u64; 2],
    /// The smallest that any connection between the same hosts had: queues that this one always found are not in it.
    pub(super) base_ns: [u64; 2],
    /// What the first packet waited in queues before it was captured.
    pub(super) late_ns: u64,
}

impl Frame {
    /// What the last byte of a stretch waited in queues behind the capture point.
    fn queued_ns(&self, said: &Said) -> u64 {
        let listener = 1 - usize::from(said.side);
        // Captured at the listener: what its ACKs took is its own.
        if self.base_ns[listener] * 20 < self.base_ns[0] + self.base_ns[1] {
            return 0;
        }
        said.way_ns
            .max(self.halves_ns[listener])
            .saturating_sub(self.base_ns[listener])
    }
}

/// What a connection vector says, and what it was made from.
pub(super) struct Timed {
    pub(super) units: Vec<Unit>,
    /// Waits of the answering end, of the asking end, and of either after itself (ns).
    pub(super) answer_waits_ns: Vec<u64>,
    pub(super) ask_waits_ns: Vec<u64>,
    pub(super) pauses_ns: Vec<u64>,
    /// Exchanges, in order.
    pub(super) exchanges: Vec<Exchange>,
}

/// What an end asked and was answered, or said alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    /// How long it took, without the waiting within.
    pub(super) ns: u64,
    /// Bytes of the end that said more.
    pub(super) bytes: u64,
}

impl Units {
    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// New data of an end, up to this offset of its stream.
    pub(super) fn add(&mut self, side: u8, now_ns: u64, bytes: u64, pause: bool, end: u64) {
        let latest = self.latest[usize::from(side)];
        let last = self.said.len().checked_sub(1).map(|last| last as u32);
        let goes_on = match latest {
            None => false,
            Some(latest) if self.said.len() >= MOST_UNITS => {
                self.cut |= pause || Some(latest) != last;
                true
            }
            Some(latest) => !pause && (self.concurrent || Some(latest) == last),
        };
        if let Some(said) = latest
            .filter(|_| goes_on)
            .and_then(|latest| self.said.get_mut(latest as usize))
        {
            said.bytes = said.bytes.saturating_add(bytes);
            said.last_ns = said.last_ns.max(now_ns);
            said.settled_ns = said.settled_ns.max(now_ns);
            (said.end, said.way_ns) = (end, 0);
            if let Some(latest) = latest {
                let open = &mut self.open[usize::from(side)];
                *open = (*open).min(latest);
            }
            return;
        }
        self.latest[usize::from(side)] = Some(self.said.len() as u32);
        self.said.push(Said {
            side,
            pause,
            bytes,
            first_ns: now_ns,
            last_ns: now_ns,
            settled_ns: now_ns,
            end,
            way_ns: 0,
        });
    }

    /// Data of an end that was sent before, up to this offset of its stream.
    pub(super) fn repeat(&mut self, side: u8, now_ns: u64, end: u64) {
        let open = self.open[usize::from(side)] as usize;
        let mut later = self.said.iter_mut().skip(open);
        let whole = later.find(|said| said.side == side && said.end >= end);
        if let Some(said) = whole {
            said.settled_ns = now_ns;
        }
    }

    /// What an end said up to `acked` has arrived; the way of the last byte from the capture point, and of its ACK back to it.
    pub(super) fn settle(&mut self, side: u8, acked: u64, way_ns: u64) {
        let open = &mut self.open[usize::from(side)];
        for said in self.said.iter_mut().skip(*open as usize) {
            if said.side == side {
                if said.end > acked {
                    break;
                }
                said.way_ns = way_ns;
            }
            *open += 1;
        }
    }

    /// When the last byte of all was sent for the last time, and what it waited in queues behind the capture point then.
    pub(super) fn last_ns(&self, frame: &Frame) -> (u64, u64) {
        let last = self.said.iter().max_by_key(|said| said.settled_ns);
        last.map_or((0, 0), |said| (said.settled_ns, frame.queued_ns(said)))
    }

    /// The units and their waits.
    pub(super) fn timed(&self, frame: &Frame) -> Timed {
        let mut timed = Timed {
            units: Vec::with_capacity(self.said.len() + 1),
            answer_waits_ns: Vec::new(),
            ask_waits_ns: Vec::new(),
            pauses_ns: Vec::new(),
            exchanges: Vec::new(),
        };
        if self.concurrent {
            self.concurrent(frame, &mut timed);
        } else {
            self.sequential(frame, &mut timed);
        }
        timed
    }

    fn sequential(&self, frame: &Frame, timed: &mut Timed) {
        let mut before: Option<Said> = None;
        // Start and prescribed waiting of the exchange that is not answered yet, and what was asked.
        let mut asked: Option<(u64, u64, u64)> = None;
        for (number, said) in self.said.iter().enumerate() {
            let wait = match before {
                None => first_wait(said, frame),
                Some(before) if before.side == said.side => said.first_ns.saturating_sub(before.last_ns),
                Some(before) => said
                    .first_ns
                    .saturating_sub(before.settled_ns)
                    .saturating_sub(frame.base_ns[usize::from(said.side)] + frame.queued_ns(&before)),
            };
            match before {
                None => {}
                Some(before) if before.side == said.side => timed.pauses_ns.push(wait),
                Some(_) if said.side == 1 => timed.answer_waits_ns.push(wait),
                Some(_) => timed.ask_waits_ns.push(wait),
            }
            timed.units.push(unit(said, wait));
            let answered_next =
                said.side == 0 && self.said.get(number + 1).is_some_and(|next| next.side == 1);
            let begins = match (number, frame.opened_ns) {
                (0, Some(opened)) => (opened, wait),
                _ => (said.first_ns, 0),
            };
            let (start, waits, last_way, bytes) = match asked.take() {
                // The answer goes on from the capture point to the end that asked.
                Some((start, waits, bytes)) if said.side == 1 => {
                    (start, waits + wait, frame.base_ns[0], bytes.max(said.bytes))
                }
                _ => {
                    let way = frame.base_ns[0].midpoint(frame.base_ns[1]);
                    (begins.0, begins.1, way, said.bytes)
                }
            };
            if answered_next {
                asked = Some((begins.0, begins.1, said.bytes));
            } else {
                let seen = said.settled_ns.saturating_sub(start);
                let late = if number < 2 { frame.late_ns } else { 0 };
                let ways = last_way + frame.queued_ns(said) + late;
                timed.exchanges.push(Exchange {
                    ns: (seen + ways).saturating_sub(waits),
                    bytes,
                });
            }
            before = Some(*said);
        }
        if let (Some(last), Some((closed, by))) = (before, frame.closed) {
            let since = if by == last.side {
                last.last_ns
            } else {
                last.settled_ns + frame.halves_ns[usize::from(by)]
            };
            let wait_us = closed.saturating_sub(since) / 1000;
            timed.units.push(Unit {
                opener: last.side == 0,
                wait_us,
                bytes: 0,
            });
        }
    }

    fn concurrent(&self, frame: &Frame, timed: &mut Timed) {
        // Stretches of one end between which it did not pause are one.
        let mut ends = Vec::new();
        for side in [0, 1] {
            let mut joined: Vec<Said> = Vec::new();
            for said in self.said.iter().filter(|said| said.side == side) {
                match joined.last_mut() {
                    Some(last) if !said.pause => {
                        last.bytes = last.bytes.saturating_add(said.bytes);
                        (last.last_ns, last.settled_ns) = (said.last_ns, said.settled_ns);
                        last.way_ns = said.way_ns;
                    }
                    _ => joined.push(*said),
                }
            }
            let mut before: Option<Said> = None;
            for said in joined {
                let wait = match before {
                    None => first_wait(&said, frame),
                    Some(before) => {
                        let pause = said.first_ns.saturating_sub(before.last_ns);
                        timed.pauses_ns.push(pause);
                        pause
                    }
                };
                let way = frame.base_ns[0].midpoint(frame.base_ns[1]);
                let seen = said.settled_ns - said.first_ns;
                timed.exchanges.push(Exchange {
                    ns: seen + way + frame.queued_ns(&said),
                    bytes: said.bytes,
                });
                timed.units.push(unit(&said, wait));
                before = Some(said);
            }
            if let (Some(last), Some((closed, _))) = (before, frame.closed) {
                ends.push(Unit {
                    opener: side == 0,
                    wait_us: closed.saturating_sub(last.last_ns) / 1000,
                    bytes: 0,
                });
            }
        }
        // As files of vectors are read: at the end, the opener's last.
        timed.units.extend(ends.into_iter().rev());
    }
}

/// From the handshake to what is said first.
fn first_wait(said: &Said, frame: &Frame) -> u64 {
    if frame.opened_ns.is_none() {
        return 0;
    }
    let since = said.first_ns.saturating_sub(frame.established_ns);
    match said.side {
        0 => since,
        _ => since.saturating_sub(frame.halves_ns[1]),
    }
}

fn unit(said: &Said, wait_ns: u64) -> Unit {
    Unit {
        opener: said.side == 0,
        wait_us: (wait_ns + 500) / 1000,
        bytes: said.bytes,
    }
}

/// Stretches kept of one connection.
pub(super) const MOST_UNITS: usize = 1 << 16;
