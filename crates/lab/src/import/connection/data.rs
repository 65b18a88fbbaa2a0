//! A segment with data: what is new of it, whether it was sent again or overtaken, and whether its sender had paused before.

use super::{Connection, Hole, LOST_TRACK, Missed, Seen, Timed, offset};
use crate::import::link_layer::{ACK, FIN, PSH, SYN, Tcp};

impl Connection {
    pub(super) fn on_data(&mut self, now_ns: u64, side: usize, tcp: &Tcp, seen: &mut Seen) {
        let begins = tcp.seq.wrapping_add(u32::from(tcp.has(SYN)));
        let length = u64::from(tcp.payload);
        let other_closed = self.ends[1 - side].closed_window;
        let acked_other = self.ends[1 - side]
            .origin
            .and_then(|origin| offset(tcp.ack, origin, self.ends[1 - side].acked));
        let other_next = self.ends[1 - side].next;
        let end = &mut self.ends[side];
        let origin = *end.origin.get_or_insert(begins);
        let Some(start) = offset(begins, origin, end.next) else {
            return;
        };
        let stop = start + length;
        if tcp.has(FIN) {
            end.fin.get_or_insert(stop + 1);
            self.closed.get_or_insert((now_ns, side as u8));
        }
        if length == 0 {
            if tcp.has(FIN) {
                self.take_missed(side, start);
            }
            return;
        }
        if stop > end.next && tcp.has(ACK) {
            // The other end's turn is over.
            self.take_missed(1 - side, acked_other.unwrap_or(0));
        }
        if tcp.has(PSH) {
            self.ends.iter_mut().for_each(|end| end.cut.pushes = true);
        }
        let end = &mut self.ends[side];
        if start > end.next.saturating_add(LOST_TRACK) {
            // Not the sequence space that we knew: begin anew from here.
            seen.lost_track = true;
            end.missed = Missed::default();
            end.next = start;
            end.acked = start;
            end.holes.clear();
            end.repaired.clear();
            end.timed.clear();
        }
        end.stamps = tcp.timestamps.is_some();
        end.largest = end.largest.max(tcp.payload.min(65_535));
        end.headers = tcp.headers();
        let unpushed = end.cut.take(tcp.payload, tcp.has(PSH));
        let full = end.full();
        seen.aggregate = end
            .agreed()
            .is_some_and(|agreed| tcp.payload > full.max(agreed).max(536));
        let pieces = length.div_ceil(u64::from(full.max(1))).max(1);
        if stop <= end.next {
            // Nothing new.
            if length == 1 && (stop == end.next && end.acked >= end.next || other_closed) {
                seen.probe = true;
                return;
            }
            end.segments += pieces;
            self.units.repeat(side as u8, now_ns, stop);
            if end.is_late(start, stop) {
                seen.reordered = true;
                return;
            }
            let stamp = tcp.timestamps.map(|stamps| stamps.0);
            if end.is_overtaken(now_ns, (start, stop), stamp) {
                seen.reordered = true;
                return;
            }
            end.retransmitted += pieces;
            end.retransmitted_bytes += length;
            for timed in end.timed.iter_mut().filter(|timed| timed.end > start) {
                timed.again = true;
                if timed.end == stop {
                    (timed.last_ns, timed.stamp) = (now_ns, tcp.timestamps.map(|stamps| stamps.0));
                }
            }
            return;
        }
        end.segments += pieces;
        end.retransmitted_bytes += end.next.saturating_sub(start);
        if start > end.next && end.next > 0 && end.holes.len() < MOST_HOLES {
            end.holes.push(Hole {
                from: end.next,
                to: start,
                since_ns: now_ns,
                stamp: tcp.timestamps.map(|stamps| stamps.0),
            });
            seen.loss_waited_ns[1] = seen.queued_ns.map(|queued| queued.0);
        }
        // What came before the first byte that was seen is not there.
        let known = if end.next == 0 && self.opened_ns.is_none() {
            start
        } else {
            end.next
        };
        let new = stop - known;
        let since_acked = end.idle_since_ns.map(|idle| now_ns.saturating_sub(idle));
        let quiet = since_acked.filter(|_| end.acked >= known);
        // The window that ended there was open since then, at the sender. It is what was waited for if data came then.
        let half_ns = end.half_ns.unwrap_or(0);
        let opened_ns = match end.held {
            true => end
                .edges
                .opened(end.next, full)
                .map(|passed| passed.saturating_add(half_ns)),
            false => Some(end.last_data_ns),
        };
        let opened_ns = opened_ns.map_or(now_ns, |opened| opened.min(now_ns));
        let held = end.held && now_ns.saturating_sub(opened_ns) < self.quiet_ns;
        // One that was cut from more is no end of anything, however long it is.
        let short = !end.unpushed && !held && !end.last_length.is_multiple_of(full.max(1));
        // After a full segment the window may have been what held it back, or a loss before the capture point.
        let enough = if short {
            self.quiet_ns
        } else {
            self.quiet_ns.max(FULL_QUIET_NS)
        };
        let rested = quiet.is_some_and(|quiet| quiet.saturating_sub(end.half_ns.unwrap_or(0)) >= enough);
        let paused = short && now_ns.saturating_sub(end.last_data_ns) >= self.quiet_ns;
        seen.window_wait = held && opened_ns.saturating_sub(end.last_data_ns) >= self.quiet_ns;
        // Behind a hole a pause looks like a loss.
        let pause = end.next > 0 && (rested || paused) && start <= known;
        // RFC 1122 4.2.3.4, and as Minshall would have it: a second one would have waited.
        let small = |length: u32| !length.is_multiple_of(full.max(1));
        // An ACK that passed here has not reached the sender yet.
        let on_its_way = since_acked
            .zip(end.half_ns)
            .is_some_and(|(since, half)| since < half);
        let waits = end.next > end.acked || on_its_way;
        let follows = waits && start == end.next && small(end.last_length);
        self.unheld += u64::from(follows && small(tcp.payload) && !tcp.has(FIN));
        end.next = stop;
        end.idle_since_ns = None;
        (end.last_data_ns, end.last_length) = (now_ns, tcp.payload);
        end.held = end.edges.reach(stop, now_ns, half_ns);
        end.unpushed = unpushed;
        if end.timed.len() < MOST_TIMED {
            end.timed.push_back(Timed {
                start,
                end: stop,
                first_ns: now_ns,
                last_ns: now_ns,
                stamp: tcp.timestamps.map(|stamps| stamps.0),
                again: false,
            });
        }
        if tcp.has(ACK) && acked_other.is_some_and(|ack| ack < other_next) && !tcp.has(SYN) {
            self.units.concurrent = true;
        }
        self.units.add(side as u8, now_ns, new, pause, stop);
    }
}

/// After a full segment an end pauses if it is silent for this long beyond a round-trip time (Tmix takes half a second too).
const FULL_QUIET_NS: u64 = 500_000_000;
/// Holes that are remembered.
const MOST_HOLES: usize = 32;
/// Segments that are timed at once.
const MOST_TIMED: usize = 64;
