//! Header prediction: where the usual case is recognised.
//!
//! Each step of the data path is written once, generic over `QUIET` (for segments that arrive, `PREDICTED`). Where the answers
//! here are yes, an established connection has nothing to do but to take the data expected next or an acknowledgment of new
//! data, or to send full new segments; the compiler then leaves the branches out that cannot be taken. What does not depend on
//! the segment is kept ([`FastPath`]): it is worked out at the end of every unusual step, and forgotten at its beginning.
//! Where an end only receives (`RECEIVES`), data is acknowledged at once (`ANSWERED`), or more than a full segment waits (`FULL`), the
//! same steps leave out more.
//! The calls of a driver that handles runs of like segments are here, too ([`Connection::alike`], [`Connection::poll_alike`],
//! [`Connection::settle`]). Tests step pairs of connections side by side, one of which never takes the usual case
//! ([`Setting::HeaderPrediction`](super::Setting)).
//!
//! **Source.** Van Jacobson, "4BSD header prediction", ACM Computer Communication Review 20(2), 1990.
//! **Deviations.** None: a peer cannot observe any of it.

use super::{Accepted, Connection, Control, State, TimerGrid};
use crate::packet::{Ecn, Flags, Segment};
use crate::tcp::receive::ack_policy::Acking;
use crate::tcp::send::half::Sender;
use crate::time::Instant;

/// Which steps are the usual ones, whatever the next segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FastPath {
    /// What a segment must have of [`LOOKED_AT`]; `u16::MAX`: none is usual.
    arrivals: u16,
    /// Whether an acknowledgment of new data without SACK blocks is nothing but progress.
    acks: bool,
    /// Whether that holds only of acknowledgments that were not sent before a retransmission.
    undo: bool,
    /// Whether such an acknowledgment may put off the retransmission slot until the run of acknowledgments is over, and data the
    /// delay of its acknowledgment: they are set to the same then, whatever was sent meanwhile.
    defers: bool,
    /// Whether data is read at once and acknowledged at once, in order or not, and no receive memory bounds the window.
    answers: bool,
    /// Whether full new segments and acknowledgments are all there is to send.
    sends: bool,
    /// Whether they may leave in groups for offload.
    groups: bool,
    /// Whether what the sender chooses and acknowledgments are all there is to send.
    silent: bool,
    /// Bytes of the headers of what is sent, but for SACK blocks.
    overhead: u8,
}

impl Default for FastPath {
    fn default() -> FastPath {
        FastPath::NONE
    }
}

impl FastPath {
    /// Nothing is usual.
    pub(super) const NONE: FastPath = FastPath {
        arrivals: u16::MAX,
        acks: false,
        undo: false,
        defers: false,
        answers: false,
        sends: false,
        groups: false,
        silent: false,
        overhead: 0,
    };

    /// Whether an acknowledgment of new data without SACK blocks is nothing but progress.
    #[inline(always)]
    pub(super) const fn acks(self) -> bool {
        self.acks
    }

    /// Whether an acknowledgment that was sent before a retransmission is more than progress.
    #[inline(always)]
    pub(super) const fn undo(self) -> bool {
        self.undo
    }

    /// Whether such an acknowledgment may put off the retransmission slot, and data the delay of its acknowledgment.
    #[inline(always)]
    pub(super) const fn defers(self) -> bool {
        self.defers
    }

    /// Whether data is read at once and acknowledged at once, in order or not, and no receive memory bounds the window.
    #[inline(always)]
    pub(super) const fn answers(self) -> bool {
        self.answers
    }

    /// Whether full new segments and acknowledgments are all there is to send.
    #[inline(always)]
    pub(super) const fn sends(self) -> bool {
        self.sends
    }

    /// Whether full new segments and acknowledgments are all there is to send, and the segments may leave in groups for offload.
    #[inline(always)]
    pub(super) const fn groups(self) -> bool {
        self.groups
    }

    /// Whether what the sender chooses and acknowledgments are all there is to send.
    #[inline(always)]
    pub(super) const fn silent(self) -> bool {
        self.silent
    }

    /// Bytes of the headers of what is sent where this [`sends`](FastPath::sends), but for SACK blocks.
    #[inline(always)]
    pub(super) const fn overhead(self) -> u8 {
        self.overhead
    }

    /// Whether a segment carries nothing but data, an acknowledgment and timestamps, and there is nothing else to look at.
    #[inline(always)]
    pub(super) fn predicts(self, segment: &Segment) -> bool {
        segment.flags.0 & LOOKED_AT.0 == self.arrivals && segment.ecn() != Ecn::Ce
    }
}

impl Connection {
    /// Whether a segment is a usual one of an established connection: it carries nothing but data, an acknowledgment and
    /// timestamps, and there is nothing else to look at.
    #[inline(always)]
    pub fn predicts(&self, segment: &Segment) -> bool {
        self.shared.fast.predicts(segment)
    }

    /// Whether this end is established, has sent no data and has none to send: then what it does is to take data and to acknowledge it.
    #[inline(always)]
    pub fn only_receives(&self) -> bool {
        self.sender.is_none() && self.state == State::Established
    }

    /// [`Connection::on_segment`] of a segment that the connection [`predicts`](Connection::predicts), or does not, in a run of
    /// segments: when it is over, and before anything else is asked than what is called here, the connection is to
    /// [`settle`](Connection::settle). `RECEIVES`: it [only receives](Connection::only_receives).
    #[inline(always)]
    pub fn on_segment_as<const RECEIVES: bool>(
        &mut self,
        now: Instant,
        segment: &Segment,
        predicted: bool,
    ) -> Accepted {
        debug_assert_eq!(predicted, self.predicts(segment));
        debug_assert!(!RECEIVES || self.only_receives());
        let accepted = if predicted {
            self.on_synchronised::<true, RECEIVES>(now, segment)
        } else {
            // A copy: what the usual case returns stays in registers.
            let Accepted { start, end, in_order } = self.arrive(now, segment);
            Accepted { start, end, in_order }
        };
        self.checked(false);
        accepted
    }

    /// [`Connection::poll_segment`] of an end that [only receives](Connection::only_receives). Says whether what it sends is surely all that
    /// it has to send now; `None`: nothing is sent.
    #[inline(always)]
    pub fn poll_answer(&mut self, now: Instant, segment: &mut Segment) -> Option<bool> {
        let usual = self.shared.fast.sends();
        self.poll_segment_as::<true>(now, segment)?;
        debug_assert!(
            !usual || self.is_drained::<true>(now),
            "one acknowledgment is all"
        );
        Some(usual)
    }

    /// Whether no deadline of [`Connection::poll_timeout`] lies before `at`, also in a run of segments. `RECEIVES`: it
    /// [only receives](Connection::only_receives).
    #[inline(always)]
    pub fn is_silent_before<const RECEIVES: bool>(&mut self, at: Instant) -> bool {
        if self.shared.timers.must_settle_before(at) {
            self.settle();
        }
        self.shared.timers.is_silent_before::<RECEIVES>(at)
    }

    /// How many segments follow the one that just left, `segment`, which differ from it in nothing but the sequence number: full
    /// segments of a group for offload, none of which is the last of it or fills the window.
    #[inline(always)]
    pub fn alike(&self, now: Instant, segment: &Segment) -> u32 {
        let shared = &self.shared;
        if !shared.fast.groups() {
            return 0;
        }
        let Some(sender) = self.sender.as_deref().filter(|sender| sender.is_in_group(now)) else {
            return 0;
        };
        let full = segment.payload == shared.mss && !segment.flags.contains(Flags::PSH);
        if full && self.receive.standing.is_some() {
            return sender.alike(shared);
        }
        0
    }

    /// Sends the next of the segments that are [alike](Connection::alike); `segment` is the one before it.
    #[inline(always)]
    pub fn poll_alike(&mut self, now: Instant, segment: &mut Segment) {
        let Some(sender) = &mut self.sender else { return };
        let mss = self.shared.mss;
        let outgoing = sender.transmit::<true, true>(now, &mut self.shared, mss, false);
        segment.seq += mss;
        if cfg!(debug_assertions) {
            let mut anew = Segment::default();
            self.data_segment::<true, true>(now, outgoing, &mut anew);
            assert_eq!(*segment, anew, "only the sequence number differs");
        }
        self.checked(false);
    }

    /// Whether so much waits to be sent that what the application writes during a run of segments may be written at its end: no
    /// drain shows a difference.
    #[inline(always)]
    pub fn has_plenty(&self) -> bool {
        let fast = &self.shared.fast;
        let sender = self.sender.as_deref();
        fast.defers() && fast.sends() && sender.is_some_and(Sender::has_plenty)
    }

    /// The end of a run of segments: sets the timers that were put off.
    #[inline(always)]
    pub fn settle(&mut self) {
        self.settle_delay();
        if let Some(sender) = &mut self.sender {
            sender.settle_timer(&mut self.shared);
        }
    }

    /// Works out what is usual from now on.
    pub(super) fn fast_path(&self) -> FastPath {
        let shared = &self.shared;
        if self.state != State::Established || !shared.predict {
            return FastPath::NONE;
        }
        let (mut acks, mut undo, mut watched) = (true, false, false);
        if let Some(sender) = &self.sender {
            acks = sender.is_calm(shared);
            undo = acks && sender.recovery.may_undo(shared);
            watched = sender.watches_arrivals();
        }
        let ends = shared.orphan || self.receive.fin_at != u64::MAX;
        let predicts = !(self.keep_alive || shared.ecn || watched || ends);
        let silent =
            self.control == Control::None && !self.keep_alive_due && !shared.ecn && shared.cold.is_none();
        let config = &shared.config;
        // Neither what is sent later nor a timer that may fire early makes a difference.
        let defers = !config.rto_restart
            && !config.tail_loss_probe_restart
            && config.timer_grid != TimerGrid::Jiffies
            && Acking::delays_long(config);
        FastPath {
            arrivals: if predicts {
                Flags::ACK.0 | (u16::from(shared.timestamps) * Flags::TIMESTAMPS.0)
            } else {
                u16::MAX
            },
            acks,
            undo,
            defers: acks && defers,
            answers: self.auto_read && self.receive.answers(config),
            sends: acks && silent,
            groups: acks && silent && config.offload_segments.is_some(),
            silent,
            overhead: shared.overhead(),
        }
    }

    /// Asserts that what is kept still holds.
    pub(super) fn check_fast_path(&self) {
        let (kept, now) = (self.shared.fast, self.fast_path());
        let holds = (kept.arrivals == u16::MAX || kept.arrivals == now.arrivals)
            && (!kept.acks || now.acks && (kept.undo || !now.undo))
            && (!kept.defers || now.defers)
            && (!kept.answers || now.answers)
            && (!kept.sends || now.sends)
            && (!kept.groups || now.groups)
            && (!kept.silent || now.silent);
        assert!(holds, "usual: {kept:?}, by what is so now: {now:?}");
    }
}

/// Bits of which any but the expected ones makes a segment unusual.
const LOOKED_AT: Flags = Flags::SYN
    .with(Flags::FIN)
    .with(Flags::RST)
    .with(Flags::URG)
    .with(Flags::ACK)
    .with(Flags::ECE)
    .with(Flags::TIMESTAMPS)
    .with(Flags::CORRUPT);
