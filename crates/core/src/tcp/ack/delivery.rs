//! What an acknowledgment delivered: cumulatively, by SACK, by D-SACK; its RTT sample.
//!
//! **Source.** RFC 9293 3.10.7.4; RFC 2018 5; RFC 2883 5; RFC 6298 3; RFC 7323 4.1; RFC 6582 3.2 (duplicates without SACK).
//! **Deviations.** Without timestamps an acknowledgment that covers a retransmission gives no sample, also where part of
//! what it covers was never retransmitted: the hole it waited for would be in the sample. With `dsack_rules` of Linux a report of
//! what was never sent again takes nothing back (`tcp_sacktag_one`).

use crate::packet::{Flags, Segment};
use crate::tcp::Shared;
use crate::tcp::ack::delivered::Delivery;
use crate::tcp::ack::records::SACKED;
use crate::tcp::ack::sacked::Newly;
use crate::tcp::ack::undo::NONE_YET;
use crate::tcp::config::{DsackRules, RttEstimator, RttSamples, TimeoutRules};
use crate::tcp::send::half::Sender;
use crate::tcp::state::types::CaState;
use crate::time::{Duration, Instant};

impl Sender {
    /// The records that an acknowledgment up to `ack` covers. `QUIET`: each was sent once, and nothing is known of it.
    #[inline(always)]
    pub(in crate::tcp) fn take_acked<const QUIET: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        delivery: &mut Delivery,
    ) {
        let echo = (!QUIET && shared.timestamps && segment.flags.contains(Flags::TIMESTAMPS))
            .then_some(segment.tsecr);
        let min = shared.rtt.min();
        let (mut latency, mut count) = (Duration::ZERO, 0);
        // Linux's FLAG_RETRANS_DATA_ACKED counts what was SACKed before, too (`tcp_clean_rtx_queue`).
        let linux = !QUIET && shared.config.rto.estimator == RttEstimator::Linux;
        let mut resent = false;
        if !QUIET {
            self.board.clear_stale(ack);
        }
        while let Some(record) = self.board.pop_acked::<QUIET>(ack) {
            let weight = self.board.weight(record.len);
            delivery.acked += weight;
            let since_first = now.since(record.first_tx);
            latency += since_first;
            count += 1;
            if QUIET {
                delivery.rtt = delivery.rtt.or(Some(since_first));
                continue;
            }
            if record.tx_count > 1 {
                let longest = &mut shared.stats.longest_recovery;
                *longest = since_first.max(*longest);
            }
            if let Some(latencies) = self.thin.as_mut().and_then(|thin| thin.latencies.as_mut()) {
                latencies.push((record.first_tx, since_first));
            }
            if record.is(SACKED) {
                resent |= linux && record.tx_count > 1;
                continue;
            }
            delivery.delivered += weight;
            delivery.segments += 1;
            delivery.newest_tx = delivery.newest_tx.max(Some(record.last_tx));
            if record.tx_count == 1 {
                delivery.original |= record.end() <= self.recovery.high_seq;
                let rtt = now.since(record.last_tx);
                delivery.newest_rtt = Some(rtt);
                if delivery.rtt.is_none() {
                    delivery.rtt = Some(rtt);
                }
            } else {
                delivery.retransmitted = true;
            }
            if let Some(rack) = &mut self.recovery.rack {
                let proves = echo.map(|echo| shared.echo_reaches(echo, record.last_tx));
                rack.on_delivered(now, &record, false, min, proves);
            }
        }
        delivery.whole = QUIET || count > 0;
        if !QUIET && !self.board.marks.joined.is_empty() {
            for sent in self.board.take_joined(ack) {
                latency += now.since(sent);
                count += 1;
                if let Some(latencies) = self.thin.as_mut().and_then(|thin| thin.latencies.as_mut()) {
                    latencies.push((sent, now.since(sent)));
                }
            }
        }
        let stats = &mut *shared.stats;
        stats.ack_latency_sum += latency;
        stats.ack_latency_count += count;
        if QUIET && let Some(last) = self.board.ring.dropped() {
            delivery.delivered = delivery.acked;
            delivery.segments = count as u32;
            delivery.newest_rtt = Some(now.since(last.last_tx));
            if let Some(rack) = &mut self.recovery.rack {
                rack.on_newest(now, last);
            }
        }
        let part = self.board.trim_front(ack);
        if part > 0 {
            delivery.acked += part;
            delivery.delivered += part;
        }
        self.una = ack;
        if !QUIET {
            self.board.advance(ack);
        }
        self.recovery.dup_acks = 0;
        self.recovery.limited_sent = 0;
        self.attempts.forget();
        if delivery.retransmitted || resent {
            delivery.rtt = None; // RFC 6298 3 (Karn)
            delivery.newest_rtt = None;
        }
    }

    /// The SACK blocks of an acknowledgment. `COUNTED`: only the sums of what they newly report are asked for, not which
    /// records they are.
    #[inline(always)]
    pub(in crate::tcp) fn take_blocks<const COUNTED: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        delivery: &mut Delivery,
    ) {
        let blocks = segment.sack_blocks();
        let before = if shared.predict {
            self.board.marks.known
        } else {
            [0; 4]
        };
        let mut known = [0; 4];
        if blocks > 0 {
            known[0] = self.take_block::<COUNTED, true>(now, shared, segment, 0, ack, delivery);
        }
        for (index, noted) in known.iter_mut().enumerate().skip(1) {
            if index >= blocks {
                break;
            }
            let block = as_noted(segment.sack_block(index));
            *noted = if is_known(&before, index, block) {
                block // nothing new, and not a D-SACK
            } else {
                self.take_further::<COUNTED>(now, shared, segment, index, ack, delivery)
            };
        }
        self.board.set_known(known);
        delivery.delivered += delivery.sacked;
        if delivery.sacked > 0 && !delivery.advanced {
            self.recovery.dup_acks += 1; // RFC 6675 2: only what was not known counts
        }
    }

    /// [`Sender::take_blocks`] where the records are asked for.
    #[inline(never)]
    pub(in crate::tcp) fn take_all_blocks(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        ack: u64,
        delivery: &mut Delivery,
    ) {
        self.take_blocks::<false>(now, shared, segment, ack, delivery);
    }

    /// A block after the first that is not known.
    #[inline(always)]
    fn take_further<const COUNTED: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        index: usize,
        ack: u64,
        delivery: &mut Delivery,
    ) -> u64 {
        if COUNTED {
            // Apart from the rest, which stays in registers: see `Delivery`.
            let (noted, sums) = self.count_further(now, shared, segment, index, ack);
            delivery.segments += sums.segments;
            delivery.sacked += sums.sacked;
            return noted;
        }
        self.take_block::<false, false>(now, shared, segment, index, ack, delivery)
    }

    #[inline(never)]
    fn count_further(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        index: usize,
        ack: u64,
    ) -> (u64, Delivery) {
        let mut sums = Delivery::default();
        let noted = self.take_block::<true, false>(now, shared, segment, index, ack, &mut sums);
        (noted, sums)
    }

    /// Block `index` of an acknowledgment, which is the `FIRST` or not: what is noted of it, zero if no run holds all of it.
    #[inline(always)]
    fn take_block<const COUNTED: bool, const FIRST: bool>(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        index: usize,
        ack: u64,
        delivery: &mut Delivery,
    ) -> u64 {
        let iss = shared.iss;
        let offset = |edge: crate::seq::SeqNumber| edge.to_offset(iss, ack);
        let block = segment.sack_block(index);
        let (left, right) = (offset(block.0), offset(block.1));
        if left < 0 || right <= left || right as u64 > self.nxt {
            shared.stats.bad_sacks += 1;
            return 0;
        }
        let (left, right) = (left as u64, right as u64);
        let inside_next = FIRST && segment.sack_blocks() > 1 && {
            let (l, r) = segment.sack_block(1);
            offset(l) <= left as i64 && right as i64 <= offset(r)
        };
        if FIRST && (right <= ack || inside_next) {
            if self.thin.is_some() && self.is_of_bundle(left, right) {
                shared.stats.dsacks += 1;
                return 0;
            }
            self.take_dsack(shared, left, right, delivery);
            return 0;
        }
        if left <= self.una {
            // What lies there was not received, or the acknowledgment would cover it; or another has overtaken this one (Linux
            // `tcp_is_sackblock_valid`).
            return 0;
        }
        let newly = if COUNTED {
            self.board.sack(left, right, |_| ())
        } else {
            self.take_range(now, shared, left, right, delivery)
        };
        delivery.segments += newly.segments;
        delivery.sacked += newly.weight;
        if newly.held { as_noted(block) } else { 0 }
    }

    /// What a SACK block reports, and what the records show that is newly so.
    fn take_range(
        &mut self,
        now: Instant,
        shared: &Shared,
        left: u64,
        right: u64,
        delivery: &mut Delivery,
    ) -> Newly {
        let (high_seq, min) = (self.recovery.high_seq, shared.rtt.min());
        let rack = &mut self.recovery.rack;
        // In Linux a SACK gives the sample where the acknowledgment itself cannot (`tcp_ack_update_rtt`).
        let samples = !delivery.retransmitted || shared.config.rto.estimator == RttEstimator::Linux;
        if delivery.rtt.is_some() && delivery.first_sacked == 0 {
            delivery.first_sacked = 1; // the acknowledgment gave one: nothing lies below it
        }
        self.board.sack(left, right, |record| {
            delivery.beyond |= record.end() > high_seq;
            delivery.newest_tx = delivery.newest_tx.max(Some(record.last_tx));
            if record.tx_count == 1 {
                delivery.original |= record.end() <= high_seq;
                let rtt = samples.then(|| now.since(record.last_tx));
                // Whatever the order of the blocks (Linux sorts them).
                if samples && (delivery.first_sacked == 0 || record.seq < delivery.first_sacked) {
                    delivery.first_sacked = record.seq;
                    delivery.rtt = rtt;
                }
                if samples && record.end() > delivery.last_sacked {
                    delivery.last_sacked = record.end();
                    delivery.newest_rtt = rtt;
                }
            }
            if let Some(rack) = rack {
                // RFC 7323 4.3: what came out of order is not what an ACK echoes, so the echo says nothing of it.
                rack.on_delivered(now, record, true, min, None);
            }
        })
    }

    /// Whether what the first block reports, if it is a duplicate, was acknowledged before, or sent again. To be asked before the
    /// acknowledgment up to `ack` is taken.
    pub(in crate::tcp) fn reports_resent(&self, shared: &Shared, segment: &Segment, ack: u64) -> bool {
        let block = |index| {
            let (left, right) = segment.sack_block(index);
            (left.to_offset(shared.iss, ack), right.to_offset(shared.iss, ack))
        };
        let (left, right) = block(0);
        let inside_next = || {
            let (start, end) = block(1);
            start <= left && right <= end
        };
        if right > ack as i64 && !(segment.sack_blocks() > 1 && inside_next()) {
            return false; // no report of a duplicate
        }
        right <= self.una as i64 || left > 0 && self.board.was_resent(left as u64, right as u64)
    }

    /// A duplicate was received there: some transmission of ours was redundant (RFC 2883, RFC 3708).
    fn take_dsack(&mut self, shared: &mut Shared, left: u64, right: u64, delivery: &mut Delivery) {
        shared.stats.dsacks += 1;
        let as_linux = shared.config.dsack_rules == DsackRules::Linux;
        let copies = if as_linux {
            (right - left).div_ceil(u64::from(shared.mss)).max(1) as u32
        } else {
            1
        };
        let of_probe = self.recovery.tlp_end != 0 && right == self.recovery.tlp_end && copies == 1;
        if of_probe && self.recovery.tlp_is_retrans {
            self.recovery.on_redundant_probe(shared); // RFC 8985 7.4.2
        }
        if as_linux {
            // Linux `tcp_dsack_seen`: more than were sent again are copies that the network made.
            self.recovery.copies = self.recovery.copies.saturating_add(copies);
            if self.recovery.copies > shared.stats.retransmits {
                return;
            }
            delivery.segments += copies;
            delivery.delivered += u64::from(copies) * self.board.weight(shared.mss);
        }
        delivery.dsack = true;
        if let Some(rack) = &mut self.recovery.rack
            && !(as_linux && (rack.reorderings == 0 || of_probe))
        {
            rack.on_dsack(self.una, self.nxt);
        }
        // Linux: of what is not acknowledged only what was sent again; other copies are the network's (`tcp_sacktag_one`).
        if (delivery.resent || !as_linux)
            && self.recovery.episode.undo_marker != 0
            && right > self.recovery.episode.undo_marker
            && !matches!(self.recovery.episode.undo_retrans, 0 | NONE_YET)
        {
            let left = &mut self.recovery.episode.undo_retrans;
            *left = left.saturating_sub(copies); // at zero every retransmission was redundant
        }
    }

    /// The RTT sample of an acknowledgment, which is taken: `measured` by a record, or by its timestamp. The smallest RTT is that of the
    /// `newest` segment it reports (Linux `tcp_update_rtt_min`): the first may have waited for the others.
    #[inline(always)]
    pub(in crate::tcp) fn sample_rtt(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        segment: &Segment,
        (measured, newest): (Option<Duration>, Option<Duration>),
        advanced: bool,
    ) -> Option<Duration> {
        let mut rtt = measured;
        if rtt.is_none()
            && advanced
            && shared.timestamps
            && segment.flags.contains(Flags::TIMESTAMPS)
            && segment.tsecr != 0
        {
            // RFC 7323 4.1: the echo shows which transmission is meant.
            let elapsed = shared.timestamp(now).wrapping_sub(segment.tsecr);
            rtt = Some(Duration::from_millis(u64::from(elapsed.max(1))));
        }
        if let Some(rtt) = rtt {
            if let Some(newest) = newest {
                shared.rtt.note_least(newest);
            }
            match shared.config.rto.samples {
                RttSamples::EveryAck => {
                    let over = self.una > self.recovery.rtt_seq;
                    if over || shared.rtt.srtt().is_none() {
                        self.recovery.rtt_seq = self.nxt;
                    }
                    shared.sample(now, rtt, over);
                }
                RttSamples::OncePerRtt => {
                    if self.una >= self.recovery.rtt_seq {
                        self.recovery.rtt_seq = self.nxt;
                        shared.sample(now, rtt, true);
                    }
                }
            }
        }
        rtt
    }

    /// Whether a duplicate ACK while a timeout is repaired stands for new data that F-RTO sent (Linux `tcp_process_loss`).
    fn stands_for_new(&self, shared: &Shared) -> bool {
        shared.config.timeout_rules == TimeoutRules::Linux && self.nxt > self.recovery.high_seq
    }

    /// For how many segments duplicate ACKs may stand without SACK. RFC 5681 3.2 step 4 suggests as many as are outstanding; Linux
    /// leaves out the first, which is missing, and what is lost (`tcp_limit_reno_sacked`).
    fn most_duplicates(&self, shared: &Shared) -> u32 {
        let (all, not_lost) = (self.board.segments(), self.board.segments_not_lost());
        if shared.config.timeout_rules == TimeoutRules::Linux {
            not_lost.min(all.saturating_sub(1))
        } else if self.recovery.state == CaState::Loss {
            not_lost
        } else {
            all
        }
    }

    /// Without SACK duplicate ACKs stand for segments that arrived (RFC 6582 3.2).
    pub(in crate::tcp) fn count_duplicates(&mut self, shared: &Shared, delivery: &mut Delivery) {
        if delivery.advanced {
            if matches!(self.recovery.state, CaState::Recovery) {
                let gone = (delivery.acked / u64::from(shared.mss)).saturating_sub(1) as u32;
                let gone = gone.min(self.board.marks.duplicates);
                let left = self.board.marks.duplicates - gone;
                self.board.set_duplicates(left.min(self.most_duplicates(shared)));
                delivery.counted = u64::from(gone) * u64::from(shared.mss);
            } else {
                self.board.set_duplicates(0);
            }
        } else if delivery.duplicate && (self.recovery.state != CaState::Loss || self.stands_for_new(shared))
        {
            self.recovery.dup_acks += 1;
            let before = self.board.marks.duplicates;
            let most = self.most_duplicates(shared);
            self.board.set_duplicates((before + 1).min(most));
            // In Linux what stands for nothing delivers nothing (`tcp_add_reno_sack`).
            if before < most || shared.config.timeout_rules != TimeoutRules::Linux {
                delivery.emulated = u64::from(shared.mss);
            }
            let (board, nxt) = (&self.board, self.nxt);
            let missing = board.ring.front().map_or(0, |record| board.weight(record.len));
            let (each, most) = (board.weight(shared.mss), board.out.saturating_sub(missing));
            if let Some(rates) = self.rates() {
                delivery.credited = rates.on_duplicate(each, most, nxt);
            }
        }
    }
}

/// A block as it is noted: as on the wire.
#[inline(always)]
fn as_noted((left, right): (crate::seq::SeqNumber, crate::seq::SeqNumber)) -> u64 {
    u64::from(left.0) << 32 | u64::from(right.0)
}

/// Whether block `index` (as on the wire) is one that the last acknowledgment reported, there or one place further up, and that
/// lies within a run; `before` is what [`Scoreboard::set_known`](crate::tcp::ack::scoreboard::Scoreboard::set_known) noted of it.
#[inline(always)]
fn is_known(before: &[u64; 4], index: usize, block: u64) -> bool {
    block != 0 && (before[index - 1] == block || before[index] == block)
}
