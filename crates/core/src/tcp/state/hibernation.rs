//! A connection that does nothing for now, in few bytes: [`Connection::rest`] and [`Resting::wake`].
//!
//! What wakes is what rested, to the last bit: the lists below name every field of the structures that make up a
//! connection, and the compiler knows if one is missing. It costs about a microsecond each way, so the driver rests
//! connections that were silent for some time.
//!
//! A connection does not rest while its sender is paced, its window is validated (new-CWV) or its controller takes rate samples (BBR,
//! Prague): these act on time that passes without a segment, and the state of the last two is large, so that little would be
//! saved.
//!
//! **Source.** None: nothing of it can be seen from outside.
//! **Deviations.** None.

use crate::pack::Pack;
use crate::seq::SeqNumber;
use crate::tcp::ack::scoreboard::{Marks, Scoreboard};
use crate::tcp::receive::half::Receive;
use crate::tcp::receive::reassembly::Beyond;
use crate::tcp::send::half::Sender;
use crate::tcp::state::shared::Shared;
use crate::tcp::window::controller::Controller;
use crate::tcp::window::path_memory::PathNotes;
use crate::tcp::{Config, Connection, Control, PathSample, State};
use crate::time::{Duration, Instant};
use crate::units::Rate;
use alloc::boxed::Box;
use alloc::sync::Arc;

/// A connection that does nothing until somebody writes or a segment comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resting(Box<[u8]>);

impl Connection {
    /// This connection in few bytes, if it is established, has nothing to do or to report, and no timer runs. Whoever
    /// keeps them drops the connection and wakes them before the next call.
    pub fn rest(&mut self) -> Option<Resting> {
        if !self.may_rest() {
            return None;
        }
        let mut pack = Pack::writer();
        let mut iss = self.shared.iss.0;
        pack.word(&mut iss);
        self.pack(Instant::ZERO, &mut pack);
        Some(Resting(pack.finish()))
    }

    fn may_rest(&self) -> bool {
        let shared = &self.shared;
        let calm = self.state == State::Established
            && self.control == Control::None
            && !self.keep_alive_due
            && !self.close_queued
            && shared.timers.next().is_none()
            && shared.events == 0
            && shared.failure.is_none()
            && shared.cold.is_none();
        let receive = &self.receive;
        let whole = |beyond: &Beyond| beyond.ranges.is_empty() && beyond.pieces.is_empty();
        let silent = |sender: &Sender| {
            let board = &sender.board;
            board.ring.is_empty()
                && board.marks.runs.is_empty()
                && board.marks.stale.is_empty()
                && sender.unsent() == 0
                && !sender.fin_queued
                && sender.thin.is_none()
                && sender.tempo.is_none()
                && !sender.cc.is_custom()
        };
        calm && !receive.acking.now
            && receive.room.is_none()
            && receive.beyond.as_deref().is_none_or(whole)
            && self.sender.as_deref().is_none_or(silent)
    }

    /// Writes everything but the configuration and `iss`, or reads it.
    fn pack(&mut self, now: Instant, pack: &mut Pack<'_>) {
        let Connection {
            shared,
            receive,
            sender,
            written,
            syn_sent_at,
            syn_attempts,
            keep_alive_probes,
            state: _, // established, and nothing is to be sent
            control: _,
            close_queued: _,
            read_shut,
            auto_read,
            passive,
            write_blocked,
            keep_alive_due: _,
            keep_alive,
        } = self;
        shared.pack(pack);
        receive.pack(pack);
        pack.number(written);
        pack.instant(syn_sent_at);
        pack.byte(syn_attempts);
        pack.byte(keep_alive_probes);
        pack.flags([read_shut, auto_read, passive, write_blocked, keep_alive]);
        pack.option(
            sender,
            || Box::new(Sender::new(now, shared, shared.controller(*passive))),
            |pack, sender| sender.pack(pack),
        );
    }
}

impl Resting {
    /// The connection as it was. `config` is the one it had.
    pub fn wake(&self, config: &Arc<Config>) -> Connection {
        let mut pack = Pack::reader(&self.0);
        let mut iss = 0;
        pack.word(&mut iss);
        let mut connection = Connection::new(config, SeqNumber(iss));
        connection.state = State::Established;
        connection.pack(Instant::ZERO, &mut pack);
        #[cfg(debug_assertions)]
        debug_assert!(pack.at_end(), "what was written is read");
        connection
    }

    /// Bytes it takes beside the value itself.
    pub const fn held(&self) -> usize {
        self.0.len()
    }
}

impl Shared {
    fn pack(&mut self, pack: &mut Pack<'_>) {
        let Shared {
            config: _, // the caller's
            rtt,
            timers,
            stats,
            peer,
            last_ack_sent,
            iss: _, // written first
            irs,
            ts_recent,
            ts_offset,
            mss,
            events: _, // there are none
            snd_scale,
            rcv_scale,
            failure: _, // there is none
            sack,
            timestamps,
            ecn,
            nagle,
            syn_lost,
            peer_scales,
            predict,
            orphan,
            latencies,
            fast: _, // to be worked out
            path,
            cold: _, // there is none
        } = self;
        rtt.pack(pack);
        timers.pack(pack);
        stats.pack(pack, |pack, stats| stats.pack(pack));
        peer.pack(pack);
        pack.number(last_ack_sent);
        pack.word(&mut irs.0);
        pack.word(ts_recent);
        pack.word(ts_offset);
        pack.word(mss);
        pack.byte(snd_scale);
        pack.byte(rcv_scale);
        pack.byte(syn_lost);
        pack.flags([
            sack,
            timestamps,
            ecn,
            nagle,
            peer_scales,
            predict,
            orphan,
            latencies,
        ]);
        pack.option(path, Box::default, |pack, path| path.pack(pack));
    }
}

impl PathNotes {
    fn pack(&mut self, pack: &mut Pack<'_>) {
        let PathNotes { began, given, found } = self;
        pack.instant(began);
        for sample in [given, found] {
            let blank = || PathSample {
                rate: Rate::default(),
                min_rtt: Duration::ZERO,
            };
            pack.option(sample, blank, |pack, sample| {
                pack.number(&mut sample.rate.0);
                pack.duration(&mut sample.min_rtt);
            });
        }
    }
}

impl Receive {
    fn pack(&mut self, pack: &mut Pack<'_>) {
        let Receive {
            rcv_nxt,
            edge,
            read,
            fin_at,
            beyond,
            acking,
            grown,
            room: _, // there is none
            echo,
        } = self;
        pack.number(rcv_nxt);
        pack.number(edge);
        pack.near(*rcv_nxt, read);
        pack.number(fin_at);
        pack.option(beyond, Box::default, |pack, beyond| beyond.pack(pack));
        acking.pack(pack);
        pack.word(grown);
        pack.flags([echo]);
    }
}

impl Beyond {
    fn pack(&mut self, pack: &mut Pack<'_>) {
        self.written = None; // it only saves work
        let Beyond {
            ranges: _, // empty
            recent,
            written: _, // none
            duplicate,
            pieces: _, // empty
            work,
        } = self;
        for (start, end) in recent {
            pack.number(start);
            pack.near(*start, end);
        }
        pack.option(duplicate, Default::default, |pack, duplicate| {
            pack.number(&mut duplicate.0);
            pack.number(&mut duplicate.1);
        });
        work.pack(pack);
    }
}

impl Sender {
    fn pack(&mut self, pack: &mut Pack<'_>) {
        self.tempo = None; // that of a first window is over
        let Sender {
            board,
            cc,
            recovery,
            usage,
            thin: _,  // there is none
            tempo: _, // none
            una,
            small_end,
            nxt,
            end,
            last_send,
            attempts,
            persist_backoff,
            fin_queued: _, // no
            fin_sent,
            probe_due,
            zero_probe_due,
            zero_probe_out,
            cwr_pending,
            sws_override,
            group_left,
            more,
            unpushed,
        } = self;
        board.pack(pack);
        Controller::pack(cc, pack);
        pack.number(una);
        let una = *una;
        recovery.pack(pack, una);
        usage.pack(pack, una);
        for offset in [small_end, nxt, end] {
            pack.near(una, offset);
        }
        pack.instant(last_send);
        attempts.pack(pack);
        pack.byte(persist_backoff);
        pack.byte(group_left);
        pack.flags([
            fin_sent,
            probe_due,
            zero_probe_due,
            zero_probe_out,
            cwr_pending,
            sws_override,
            more,
            unpushed,
        ]);
    }
}

impl Scoreboard {
    fn pack(&mut self, pack: &mut Pack<'_>) {
        let Scoreboard {
            ring: _, // empty
            out,
            marks,
            unit,
            mss,
            transmissions,
            work,
        } = self;
        pack.number(out);
        marks.pack(pack, |pack, marks| marks.pack(pack));
        pack.word(unit);
        pack.word(mss);
        pack.half(transmissions);
        work.pack(pack);
    }
}

impl Marks {
    fn pack(&mut self, pack: &mut Pack<'_>) {
        let Marks {
            runs: _,  // empty
            stale: _, // empty
            sacked,
            lost,
            retrans,
            sacked_segments,
            to_retransmit,
            duplicates,
            hint,
            judged,
            resent_end: _, // nothing is out
            known,
        } = self;
        pack.number(sacked);
        pack.number(lost);
        pack.number(retrans);
        pack.word(sacked_segments);
        pack.word(to_retransmit);
        pack.word(duplicates);
        pack.number(hint);
        pack.number(judged);
        for block in known {
            pack.number(block);
        }
    }
}
