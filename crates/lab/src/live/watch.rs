//! What is made of the packets that pass: flows, the link over time, and one line for a terminal.

use super::timeline::{Bins, Timeline};
use crate::import::flows::{Flows, Passage, Seen};
use crate::import::link_layer::{self, Parsed};
use crate::result::Drops;

/// What happened to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The frame arrived at the queue.
    Entered,
    /// The frame was delivered after so long in the queue, so much later than the described link (ns).
    Left {
        /// Time in the queue.
        waited_ns: u64,
        /// How late this machine was.
        late_ns: u64,
    },
    /// The frame was dropped.
    Dropped,
}

/// Watches a link.
#[derive(Debug, Default)]
pub struct Watch {
    flows: Flows,
    bins: Bins,
    dropped: [Drops; 2],
    /// Since the last line.
    recent: Recent,
}

#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    bytes: [u64; 2],
    waited_ns: [u64; 2],
    dropped: u64,
    late_ns: u64,
}

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// The flows.
    pub seen: Seen,
    /// The link over time.
    pub timeline: Timeline,
    /// Packets dropped by kind: of what the command sent, and of what it received.
    pub dropped: [Drops; 2],
}

impl Watch {
    /// A frame was seen. `by_command`: the command's side sent it; of the frame's `length` bytes `data` was kept.
    pub fn on_frame(&mut self, now_ns: u64, by_command: bool, happened: Happened, data: &[u8], length: u32) {
        let way = usize::from(!by_command);
        let passage = match happened {
            Happened::Entered => Passage::Entered,
            Happened::Left { waited_ns, late_ns } => {
                let bytes = u64::from(length).saturating_sub(ETHERNET_HEADER);
                self.bins.delivered(now_ns, way, bytes, waited_ns, late_ns);
                self.recent.bytes[way] += bytes;
                self.recent.waited_ns[way] = self.recent.waited_ns[way].max(waited_ns);
                self.recent.late_ns = self.recent.late_ns.max(late_ns);
                Passage::Left
            }
            Happened::Dropped => {
                self.bins.dropped(now_ns, way);
                self.recent.dropped += 1;
                let drops = &mut self.dropped[way];
                match link_layer::parse(link_layer::ETHERNET, data, length) {
                    Parsed::Tcp(tcp) if tcp.payload > 0 => drops.data += 1,
                    Parsed::Tcp(tcp) if tcp.flags & (link_layer::SYN | link_layer::FIN) == 0 => {
                        drops.ack += 1;
                    }
                    Parsed::OtherProtocol(other) if other.protocol == UDP => drops.data += 1,
                    _ => drops.other += 1,
                }
                Passage::Dropped
            }
        };
        self.flows.on_frame(now_ns, by_command, passage, data, length);
    }

    /// One line on what happened since the last one, `elapsed_s` ago: rate and longest wait of each direction, drops, lateness of this
    /// machine. It fits in 80 columns.
    pub fn line(&mut self, elapsed_s: f64) -> String {
        let recent = std::mem::take(&mut self.recent);
        let rate = |way: usize| recent.bytes[way] as f64 * 8.0 / elapsed_s.max(1e-3) / 1e6;
        let ms = |ns: u64| ns as f64 / 1e6;
        // Three digits are as good as more, and fit.
        let short = |value: f64| {
            let digits = if value < 10.0 {
                2
            } else {
                usize::from(value < 100.0)
            };
            format!("{value:.digits$}")
        };
        format!(
            "down {} Mbit/s {} ms | up {} Mbit/s {} ms | drops {} | late {} ms",
            short(rate(1)),
            short(ms(recent.waited_ns[1])),
            short(rate(0)),
            short(ms(recent.waited_ns[0])),
            recent.dropped,
            short(ms(recent.late_ns)),
        )
    }

    /// Everything that was seen.
    pub fn finish(self) -> Watched {
        Watched {
            seen: self.flows.finish(),
            timeline: self.bins.timeline(),
            dropped: self.dropped,
        }
    }
}

const ETHERNET_HEADER: u64 = 14;
/// Number of UDP.
const UDP: u8 = 17;

#[cfg(test)]
mod tests {
    use super::{Happened, Watch};

    #[test]
    fn a_line_is_about_the_time_since_the_last_one() {
        let mut watch = Watch::default();
        let left = Happened::Left {
            waited_ns: 2_500_000,
            late_ns: 40_000,
        };
        for _ in 0..100 {
            watch.on_frame(0, false, left, &[0; 60], 1264);
        }
        watch.on_frame(0, true, Happened::Dropped, &[0; 60], 60);
        assert_eq!(
            watch.line(0.5),
            "down 2.00 Mbit/s 2.50 ms | up 0.00 Mbit/s 0.00 ms | drops 1 | late 0.04 ms"
        );
        assert!(watch.line(0.5).contains("drops 0"));
        // The longest that is likely fits, too.
        let late = Happened::Left {
            waited_ns: 1_234_000_000,
            late_ns: 1_060_000,
        };
        for _ in 0..50_000 {
            watch.on_frame(0, false, late, &[0; 60], 1264);
            watch.on_frame(0, true, late, &[0; 60], 1264);
        }
        let line = watch.line(0.5);
        assert_eq!(
            line,
            "down 1000 Mbit/s 1234 ms | up 1000 Mbit/s 1234 ms | drops 0 | late 1.06 ms"
        );
        assert!(line.len() < 80);
        let watched = watch.finish();
        assert_eq!((watched.dropped[0].other, watched.dropped[1].data), (1, 0));
    }
}
