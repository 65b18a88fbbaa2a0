//! Frames of an attacker who writes the addresses of somebody else into his packets: his hardware address tells them apart.
//!
//! Such a frame is a TCP segment whose checksum is wrong: queues, which do not look at it, take it for one of the connection whose
//! addresses and ports it has, and the receiver throws it away. So the connection meets the attack on the queue alone.

use fleetfoot_core::link::LinkStatistics;
use fleetfoot_core::queue::QueueEventKind;
use fleetfoot_sim::output::Forged;

/// Whose frame it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forger {
    /// The traffic group that sends it.
    pub(crate) group: u16,
    /// It claims to follow a first, and is none.
    pub(crate) follows: bool,
}

impl Forger {
    /// The hardware address of the sender: locally administered.
    pub(crate) const fn address(self) -> [u8; 6] {
        let [high, low] = self.group.to_be_bytes();
        let [a, b, c] = MAKERS;
        [a, b, c, self.follows as u8, high, low]
    }

    /// Whose frames have this address.
    pub(crate) fn of_address(address: &[u8]) -> Option<Forger> {
        match address.strip_prefix(&MAKERS)? {
            &[follows, high, low, ..] => Some(Forger {
                group: u16::from_be_bytes([high, low]),
                follows: follows != 0,
            }),
            _ => None,
        }
    }

    /// Whose frame this is; `None`: it claims nothing.
    pub(crate) fn of(frame: &[u8]) -> Option<Forger> {
        Forger::of_address(frame.get(6..12)?)
    }
}

/// What a queue has counted before a forged packet comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    orphans: u64,
    reused: u64,
}

impl Before {
    pub(crate) fn read(statistics: &LinkStatistics) -> Before {
        Before {
            orphans: statistics.count(QueueEventKind::Orphan),
            reused: statistics.count(QueueEventKind::IdReuse),
        }
    }

    /// Counts what the packet met: a follower that is no orphan took a place that was kept for one.
    pub(crate) fn count(self, forger: Forger, statistics: &LinkStatistics, forged: &mut Forged) {
        let after = Before::read(statistics);
        forged.places += u64::from(forger.follows && after.orphans == self.orphans);
        forged.restarted += after.reused - self.reused;
    }
}

/// First bytes of the hardware addresses of forgers.
pub(crate) const MAKERS: [u8; 3] = [0x02, 0x00, 0x01];

#[cfg(test)]
mod tests {
    use super::Forger;
    use crate::Direction;
    use fleetfoot_core::link::{Link, LinkConfig};
    use fleetfoot_core::packet::{Flags, Segment};
    use fleetfoot_core::parameter::Values;
    use fleetfoot_core::queue::AnyQueue;
    use fleetfoot_core::superpacket::{Layout, Mark};
    use fleetfoot_core::time::{Duration, Instant};
    use fleetfoot_core::units::Rate;
    use fleetfoot_core::wire;
    use fleetfoot_sim::output::Forged;
    use std::net::SocketAddr;

    fn direction(queue: &str) -> Direction {
        let config = LinkConfig::new(Rate::from_bps(10_000_000), Duration::ZERO);
        let entry = AnyQueue::entry_among(&[], queue).expect("a registered queue");
        let values = Values::defaults(entry.parameters);
        let queue = AnyQueue::build_among(&[], entry.name, &values, &config.link_context(1));
        let mut direction = Direction::new(Link::new(queue.expect("a queue"), &config, 1, "test"));
        direction.count_forged();
        direction
    }

    fn frame(port: u16, mark: Mark, forger: Option<Forger>) -> Vec<u8> {
        let mut segment = Segment {
            payload: 100,
            flags: Flags::ACK.with(Flags::DF),
            ttl: 64,
            ..Segment::default()
        };
        Layout::LOCAL.mark(&mut segment, mark).expect("it can be said");
        let mut frame = vec![0; 14 + 200];
        frame[12] = 8;
        if let Some(forger) = forger {
            frame[6..12].copy_from_slice(&forger.address());
        }
        let source = SocketAddr::from(([10, 0, 0, 1], port));
        let length = wire::encode(
            &mut frame[14..],
            &segment,
            source,
            ([10, 0, 0, 2], 80).into(),
            &[],
        );
        frame.truncate(14 + length.expect("it fits"));
        frame
    }

    /// A3 and A4 frame by frame: a place is stolen by who knows addresses, ports and identifier, and by nobody else.
    #[test]
    fn what_forged_packets_meet_is_counted() {
        let [follower, first] = [true, false].map(|follows| Forger { group: 3, follows });
        let mut direction = direction("sp-h");
        let mut at = Instant::ZERO;
        let mut met = |port, mark, forger| {
            at += Duration::from_micros(10);
            direction.on_frame(at, &frame(port, mark, forger));
            let Forged {
                places, restarted, ..
            } = direction.forged().expect("it is counted");
            (places, restarted)
        };
        assert_eq!(met(7, Mark::first(5, 9), None), (0, 0));
        assert_eq!(
            met(7, Mark::follower(5, 8), Some(follower)),
            (0, 0),
            "another identifier"
        );
        assert_eq!(
            met(8, Mark::follower(5, 9), Some(follower)),
            (0, 0),
            "another port"
        );
        assert_eq!(met(7, Mark::follower(5, 9), None), (0, 0), "the victim's own");
        assert_eq!(met(7, Mark::follower(5, 9), Some(follower)), (1, 0));
        assert_eq!(
            met(7, Mark::first(5, 10), Some(first)),
            (1, 0),
            "another identifier"
        );
        assert_eq!(met(7, Mark::first(5, 9), Some(first)), (1, 1));
        assert_eq!(met(7, Mark::REGULAR, Some(first)), (1, 1));
    }

    #[test]
    fn nothing_is_stolen_where_nothing_is_kept() {
        let mut direction = direction("drop-tail");
        let forger = Forger {
            group: 0,
            follows: true,
        };
        direction.on_frame(Instant::ZERO, &frame(7, Mark::follower(5, 9), Some(forger)));
        assert_eq!(direction.forged(), None);
    }

    #[test]
    fn a_forger_is_known_by_the_source_of_the_frame() {
        for (group, follows) in [(0, false), (7, true), (65_535, true)] {
            let forger = Forger { group, follows };
            let mut frame = [0; 14];
            frame[6..12].copy_from_slice(&forger.address());
            assert_eq!(Forger::of(&frame), Some(forger));
            assert_eq!(frame[6] & 3, 2, "locally administered, of one host");
            frame[8] = 0;
            assert_eq!(Forger::of(&frame), None);
        }
        assert_eq!(Forger::of(&[2; 9]), None);
    }
}
