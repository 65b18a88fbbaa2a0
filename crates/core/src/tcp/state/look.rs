//! Reading ahead: what the next segment will need of a connection, so that it comes from memory while others are worked on.
//!
//! A driver of many connections that knows which of them are next calls these for several, one function for all of them after the
//! other, because each function reads what the one before has led to. What they return means nothing; it is there so
//! that nothing is optimised away.

use crate::tcp::Connection;

impl Connection {
    /// Reads what every segment needs, once per line of the cache.
    #[inline]
    pub fn look_at(&self) -> u64 {
        let (shared, receive) = (&self.shared, &self.receive);
        let words = shared.last_ack_sent ^ self.written ^ receive.rcv_nxt ^ receive.edge ^ receive.fin_at;
        words
            ^ shared.timers.look_at()
            ^ shared.rtt.srtt().map_or(0, crate::time::Duration::as_nanos)
            ^ shared.peer.edge()
            ^ u64::from(shared.mss)
            ^ u64::from(receive.acking.unacked)
            ^ u64::from(shared.fast.sends())
            ^ u64::from(shared.events)
            ^ u64::from(self.auto_read)
            ^ u64::from(self.sender.is_some())
    }

    /// Reads what an acknowledgment needs of the sending half, after [`Connection::look_at`].
    #[inline]
    pub fn look_at_sender(&self) -> u64 {
        let Some(sender) = &self.sender else {
            return 0;
        };
        sender.una
            ^ sender.nxt
            ^ sender.full_at.as_nanos()
            ^ sender.board.out
            ^ u64::from(sender.board.mss)
            ^ sender.board.ring.len() as u64
            ^ sender.cc.window().get()
            ^ sender.recovery.delivered_total()
            ^ sender.recovery.high_seq()
            ^ sender.usage.look_at()
    }

    /// Reads what is acknowledged next, after [`Connection::look_at_sender`].
    #[inline]
    pub fn look_at_records(&self) -> u64 {
        let Some(sender) = &self.sender else {
            return self.receive.beyond.is_some().into();
        };
        sender.board.ring.front().map_or(0, |record| record.seq)
            ^ sender.board.ring.back().map_or(0, |record| record.seq)
            ^ sender.recovery.look_at()
    }
}
