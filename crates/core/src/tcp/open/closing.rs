//! The end of a connection: closed by the application, aborted, or given up.
//!
//! **Source.** RFC 9293 3.10.4, 3.10.5, SHLD-3.
//! **Deviations.** None known.

use crate::tcp::fast::FastPath;
use crate::tcp::{Connection, ConnectionError, Control, Event, Half, State};
use crate::time::Instant;
use crate::units::Bytes;

impl Connection {
    /// Closes one half.
    pub fn shutdown(&mut self, now: Instant, half: Half) {
        match half {
            Half::Read => {
                self.read_shut = true;
                let _ = self.read(now, Bytes::MAX);
            }
            Half::Write => self.queue_fin(now),
        }
    }

    /// Closes: FIN after what was written. Unread data is thrown away.
    pub fn close(&mut self, now: Instant) {
        match self.state {
            State::SynSent => {
                self.enter_closed();
                self.shared.raise(Event::Closed);
            }
            State::Closed => {}
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => {
                let unread = self.receive.readable() > 0;
                self.read_shut = true;
                let _ = self.read(now, Bytes::MAX);
                if unread && self.shared.config.patience.reset_on_unread && self.state != State::TimeWait {
                    // RFC 9293 SHLD-3: the peer must not believe that its data was read.
                    self.enter_closed();
                    self.shared.raise(Event::Closed);
                    self.control = Control::Reset;
                    return;
                }
                self.queue_fin(now);
                self.become_orphan(now);
            }
        }
    }

    /// Aborts: RST if the peer knows the connection (RFC 9293 3.10.5).
    pub fn abort(&mut self, _now: Instant) {
        let resets = !matches!(self.state, State::Closed | State::SynSent | State::TimeWait);
        if self.state != State::Closed {
            self.fail(ConnectionError::Aborted);
            if resets {
                self.control = Control::Reset;
            }
        }
    }

    pub(in crate::tcp) fn queue_fin(&mut self, now: Instant) {
        self.shared.fast = FastPath::NONE;
        if self.close_queued {
            return;
        }
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            State::SynSent | State::SynReceived => {}
            State::Closed
            | State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait => return,
        }
        self.close_queued = true;
        self.feed_sender(now);
    }

    pub(in crate::tcp) fn enter_closed(&mut self) {
        self.shared.fast = FastPath::NONE;
        self.state = State::Closed;
        self.shared.timers.clear();
        self.sender_done();
        self.receive.acking.now = false;
        self.receive.beyond = None;
        self.control = Control::None;
        self.keep_alive_due = false;
    }

    /// Remembers what was acknowledged and frees the sending half's queues.
    pub(in crate::tcp) fn sender_done(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.stop();
        }
    }

    pub(in crate::tcp) fn fail(&mut self, mut error: ConnectionError) {
        if error == ConnectionError::TimedOut
            && let Some(soft) = self.take_soft_error()
        {
            error = ConnectionError::Network(soft); // RFC 1122 4.2.3.9: the better reason
        }
        self.enter_closed();
        self.shared.failure = Some(error);
        self.shared.raise(Event::Failed(error));
    }
}
