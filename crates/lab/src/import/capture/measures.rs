//! What a packet adds to the measures over all connections.

use super::Capture;
use super::options::Over;
use super::waits::At;
use crate::import::connection::Seen;
use crate::import::link_layer::Tcp;
use crate::import::rate::Arrival;

/// Which way a packet went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) connection: u32,
    /// The sender's side of the connection.
    pub(super) side: usize,
    pub(super) back: Option<bool>,
    /// What the connection's packets always wait, beyond those of others between the same hosts.
    pub(super) always_ns: u64,
}

impl<F: FnMut(Over)> Capture<F> {
    /// Takes what a packet showed of its connection.
    pub(super) fn count(&mut self, now_ns: u64, way: Way, tcp: &Tcp, seen: &Seen) {
        let Way {
            connection,
            side,
            back,
            always_ns: always,
        } = way;
        let counts = &mut self.counts;
        for (count, happened) in [
            (&mut counts.duplicates, seen.duplicate),
            (&mut counts.reordered, seen.reordered),
            (&mut counts.probes, seen.probe),
            (&mut counts.window_waits, seen.window_wait),
            (&mut counts.aggregates, seen.aggregate),
            (&mut counts.lost_track, seen.lost_track),
            (&mut counts.optionless, tcp.cut && tcp.timestamps.is_none()),
        ] {
            *count += u64::from(happened);
        }
        if seen.duplicate {
            return;
        }
        // From here on by sides of the line.
        let side = side ^ usize::from(back == Some(true));
        if let Some((sample, beyond)) = seen.sample_ns {
            self.samples.half[side].record(sample);
            self.samples.beyond.record(beyond);
        }
        // Between hosts of one side nobody knows which way the packet went.
        if back.is_none() {
            return;
        }
        // What this connection always found counts, if another one between the same hosts did not.
        let timed = seen.queued_ns.is_some();
        let before = seen.queued_ns.filter(|_| tcp.payload > 0);
        let waited = [seen.waited_ns, before.map(|queued| queued.0)];
        for (place, direction) in [1 - side, side].into_iter().enumerate() {
            let at = At {
                direction,
                place,
                timed,
            };
            if let Some(waited) = waited[place] {
                self.samples.waits.record(at, waited, always);
            }
            if let Some(waited) = seen.loss_waited_ns[place] {
                self.samples.waits.record_at_loss(at, waited + always);
            }
        }
        if tcp.payload > 0 {
            let headers = u64::from(tcp.headers());
            let more = u64::from(tcp.payload).div_ceil(1460).saturating_sub(1) * headers;
            let arrival = Arrival {
                now_ns,
                bytes: u64::from(tcp.length) + more,
                full: tcp.payload >= FULL,
                connection,
            };
            self.meters[side].on_data(&arrival, seen.queued_ns);
        } else {
            self.meters[side].on_ack(now_ns, u64::from(tcp.length));
        }
        if let Some((delivered, bytes)) = &seen.delivered {
            let arrival = Arrival {
                now_ns,
                bytes: *bytes,
                full: delivered.bytes >= u64::from(FULL),
                connection,
            };
            self.meters[1 - side].on_delivered(&arrival, delivered);
        }
    }
}

/// Payload of a packet that counts as large.
const FULL: u32 = 1000;
