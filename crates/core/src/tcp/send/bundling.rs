//! What thin-stream mechanisms do to the sender: bundles, hidden losses, linear timeouts, early retransmission.
//!
//! **Source.** As `rdb` and `thin`.
//! **Deviations.** See there.

use crate::cc::CongestionKind;
use crate::packet::Segment;
use crate::tcp::Shared;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::ack::records::{FIN, RETRANS, Record, SACKED};
use crate::tcp::send::half::Sender;
use crate::tcp::send::rdb::{Bundle, ENOUGH, HEADERS, Hidden, HiddenLoss, InFlight, Rdb, ThinRule};
use crate::tcp::state::types::{CaState, State};
use crate::time::Instant;
use crate::units::Bytes;

impl Sender {
    /// Too few segments are out for three duplicates, and the window was reduced before (Linux `tcp_stream_is_thin`).
    pub(in crate::tcp) fn is_thin(&self) -> bool {
        self.board.segments() < 4 && self.cc.ssthresh() != Bytes::MAX
    }

    /// `thin_dupack`: one SACKed segment is enough while the stream is thin and has nothing more to send.
    pub(in crate::tcp) fn thin_dupack_shows_loss(&self, shared: &Shared) -> bool {
        shared.config.thin_dupack
            && shared.sack
            && self.board.marks.sacked_segments > 0
            && self.unsent() == 0
            && self.is_thin()
    }

    /// `thin_linear`: this timeout of a connection in `state` does not back off (Linux `tcp_retransmit_timer`).
    pub(in crate::tcp) fn backs_off_linearly(&self, shared: &Shared, state: State) -> bool {
        shared.config.thin_linear
            && state == State::Established
            && self.attempts.count() <= LINEAR_TIMEOUTS
            && self.is_thin()
    }
}

impl Sender {
    /// First offset that the packet with the next `payload` new bytes carries.
    #[cold]
    pub(in crate::tcp) fn bundle(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        payload: u32,
        fin: bool,
    ) -> u64 {
        let Some(mut thin) = self.thin.take() else {
            return self.nxt;
        };
        let mut start = self.nxt;
        if let (Some(bundler), Some(rdb)) = (&mut thin.bundler, shared.config.rdb) {
            bundler.on_new_segment(now);
            if payload > 0 && !fin && !self.recovery.in_frto() {
                start = self.walk(&rdb, shared.mss, payload);
            }
            let carried = self.nxt - start;
            if carried > 0
                && !(self.may_bundle(&rdb, shared)
                    && bundler.permits(now, &rdb, self, shared, carried, payload))
            {
                start = self.nxt;
            }
            let carried = self.nxt - start;
            let srtt = shared.rtt.srtt().unwrap_or_default();
            bundler.on_wire(now, srtt, carried, u64::from(payload) + carried + HEADERS);
            if carried > 0 {
                bundler.remember(Bundle {
                    start,
                    seq: self.nxt,
                    end: self.nxt + u64::from(payload),
                    reported: false,
                });
                shared.stats.rdb_packets += 1;
                shared.stats.rdb_bytes += carried;
                shared.stats.bytes_sent += carried;
            }
        }
        self.thin = Some(thin);
        start
    }

    /// Backwards from the newest segment: whole segments, as many as fit and are permitted.
    fn walk(&self, rdb: &Rdb, mss: u32, payload: u32) -> u64 {
        let most = if rdb.max_payload == 0 {
            mss
        } else {
            rdb.max_payload.min(mss)
        };
        let mut room = u64::from(most.saturating_sub(payload));
        let (mut start, mut count) = (self.nxt, 0);
        for index in (0..self.board.ring.len()).rev() {
            let record = &self.board.ring[index];
            let full = rdb.max_segments > 0 && count == rdb.max_segments;
            if full || record.flags & (SACKED | RETRANS | FIN) != 0 || u64::from(record.len) > room {
                break;
            }
            room -= u64::from(record.len);
            start = record.seq;
            count = count.saturating_add(1);
        }
        start
    }

    /// Whether the stream is thin now.
    fn may_bundle(&self, rdb: &Rdb, shared: &Shared) -> bool {
        let in_flight = match rdb.in_flight {
            InFlight::Pipe => self.board.packets_in_flight(),
            InFlight::Out => self.board.segments(),
        };
        match rdb.thin {
            ThinRule::Packets(limit) => in_flight < limit,
            ThinRule::Interval { min, smoothed } => {
                let rtt = if smoothed {
                    shared.rtt.srtt()
                } else {
                    shared.rtt.min()
                };
                rtt.is_some_and(|rtt| min.saturating_mul(u64::from(in_flight)) < rtt)
            }
        }
    }

    /// What the acknowledgment of everything before `ack` says of bundles, before its records are removed.
    #[cold]
    pub(in crate::tcp) fn find_hidden(&mut self, shared: &Shared, segment: &Segment, ack: u64) -> Hidden {
        let (Some(rdb), Some(bundler)) = (
            shared.config.rdb,
            self.thin.as_mut().and_then(|thin| thin.bundler.as_mut()),
        ) else {
            return Hidden::default();
        };
        let covered = self.board.ring.iter().take_while(|record| record.end() <= ack);
        let single = covered.count() == 1;
        let mut hidden = Hidden::default();
        if let Some(bundle) = bundler.bundles.iter().rev().find(|bundle| bundle.end == ack) {
            hidden.bundled = true;
            hidden.seq = bundle.seq;
            let duplicate = (segment.sack_blocks() > 0 && shared.sack).then(|| {
                let (left, right) = segment.sack_block(0);
                (left.to_offset(shared.iss, ack), right.to_offset(shared.iss, ack))
            });
            let reported = duplicate.filter(|&(left, right)| left < right && right <= ack as i64);
            let trusted = match rdb.detect {
                HiddenLoss::Ignored => false,
                HiddenLoss::Original => true,
                HiddenLoss::Dsack => {
                    (shared.sack && (bundler.dsacks || reported.is_some())) || bundler.single >= ENOUGH
                }
            };
            let believed = rdb.detect == HiddenLoss::Dsack;
            let arrived = |record: &Record| {
                let reported = reported.filter(|_| believed);
                reported
                    .is_some_and(|(left, right)| left <= record.seq as i64 && record.end() as i64 <= right)
            };
            let carried = self.board.ring.iter();
            let carried = carried.skip_while(|record| record.seq < bundle.start);
            let unknown = carried
                .take_while(|record| record.end() <= bundle.seq)
                .filter(|record| !record.is(SACKED) && record.tx_count == 1 && !arrived(record));
            hidden.segments = if trusted { unknown.count() as u32 } else { 0 };
        }
        if single && hidden.bundled {
            // What arrives twice is acknowledged at once (RFC 5681 4.2), also by who would wait for a second segment.
        } else if single {
            bundler.single = bundler.single.saturating_add(1);
        } else if hidden.segments == 0 {
            bundler.single = 0; // it waits for a second segment
        }
        hidden
    }

    /// Losses were hidden: one reduction of the window per round trip.
    #[cold]
    pub(in crate::tcp) fn on_hidden(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        hidden: &Hidden,
        delivery: &Delivery,
    ) {
        shared.stats.rdb_losses += hidden.segments;
        self.note_loss(hidden.segments, true);
        // What was sent after the last reduction is lost after it; the original asks for the state alone, and finds it too early.
        let original = shared
            .config
            .rdb
            .is_none_or(|rdb| rdb.detect == HiddenLoss::Original);
        let open = matches!(self.recovery.state(), CaState::Open | CaState::Disorder);
        if hidden.seq >= self.recovery.high_seq() && (open || !original) {
            if !open {
                self.finish_episode(now, shared);
            }
            self.enter_cwr(now, shared, CongestionKind::Loss, delivery);
            // What was presumed lost was never sent again: its share of what was acknowledged (New-CWV's R).
            let lost = delivery.acked * u64::from(hidden.segments) / u64::from(delivery.segments.max(1));
            self.on_lost_again(Instant::ZERO, lost.min(delivery.acked));
        }
    }

    /// Segments were lost; `event`: it may be the first sign of it.
    pub(in crate::tcp) fn note_loss(&mut self, segments: u32, event: bool) {
        let (una, nxt) = (self.una, self.nxt);
        if let Some(bundler) = self.thin.as_mut().and_then(|thin| thin.bundler.as_mut()) {
            if event {
                bundler.on_loss_event(una, nxt);
            }
            bundler.lost(segments);
        }
    }

    /// Whether a D-SACK of these offsets comes from a bundle: RACK, undo and the probe must not see it.
    #[cold]
    pub(in crate::tcp) fn is_of_bundle(&mut self, left: u64, right: u64) -> bool {
        let Some(bundler) = self.thin.as_mut().and_then(|thin| thin.bundler.as_mut()) else {
            return false;
        };
        bundler.claim(left, right)
    }
}

/// Linux `TCP_THIN_LINEAR_RETRIES`.
const LINEAR_TIMEOUTS: u8 = 6;
