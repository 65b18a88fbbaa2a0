//! The end of the handshake, and what was said first behind it.
//!
//! The end that opened acknowledges the SYN-ACK either with its first data or, as Linux does (switch `lone_handshake_ack`), in a
//! segment of its own, and sends data right behind it. Where the capture point is behind a queue, the data comes later than that
//! acknowledgment by what it took the line to send it, and by what came between them: that is no wait of the application.
//! Timestamps tell the two apart.

use crate::import::clock::TICK_NS;

/// What was seen of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    /// Its last packet, by the clock of the capture, and that of its sender against it (see `Clock::difference`).
    end: Option<(u64, Option<i64>)>,
    /// From that to the first data of the end that opened, and by how much more that waited by the clock of its sender.
    first_data: Option<(u64, Option<i64>)>,
}

impl Handshake {
    /// Whether its last packet was seen.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Its last packet. `difference`: of the clocks, where there are timestamps.
    pub(super) fn ends(&mut self, now_ns: u64, difference: Option<i64>) {
        self.end = Some((now_ns, difference));
    }

    /// Data of the end that opened: what comes first counts.
    pub(super) fn data(&mut self, now_ns: u64, difference: Option<i64>) {
        if let (Some((end_ns, before)), None) = (self.end, self.first_data) {
            let apart = now_ns.saturating_sub(end_ns);
            let later = before.zip(difference).map(|(before, now)| now - before);
            self.first_data = Some((apart, later));
        }
    }

    /// When the end that opened was ready to speak, as far as its first data shows; without any, when the handshake ended. `believed`: its clock seems to count
    /// milliseconds.
    pub(super) fn ready_ns(&self, believed: bool) -> Option<u64> {
        let (apart, later) = self.first_data.unwrap_or_default();
        let later = later.filter(|_| believed);
        let waited = later.map_or(apart, |later| waited(apart, later));
        self.end.map(|(end_ns, _)| end_ns + (apart - waited))
    }

    /// By how much more than the first packet of the connection its last one waited, by their timestamps.
    pub(super) fn waited_more_ns(&self, believed: bool) -> i64 {
        let difference = self.end.and_then(|(_, difference)| difference);
        difference.filter(|_| believed).unwrap_or(0)
    }
}

/// What an end waited between two packets that were captured `apart` ns from each other, the second `later` by its timestamps, which
/// count milliseconds.
fn waited(apart: u64, later: i64) -> u64 {
    let ticks = apart.saturating_add_signed(-later);
    match ticks {
        // Most likely one behind the other.
        0 => 0,
        ticks if apart <= ticks + TICK_NS => apart,
        ticks => ticks,
    }
}

#[cfg(test)]
mod tests {
    use super::Handshake;

    /// What the end that opened seems to wait (us) where data comes so long after the handshake, by the capture and by its clock.
    fn wait_us(apart_us: u64, ticks_ms: Option<u64>, believed: bool) -> u64 {
        let mut handshake = Handshake::default();
        assert_eq!(handshake.ready_ns(believed), None);
        handshake.ends(5_000_000, ticks_ms.map(|_| 70_000));
        assert_eq!(handshake.ready_ns(believed), Some(5_000_000));
        let later = |ticks: u64| 70_000 + apart_us as i64 * 1000 - ticks as i64 * 1_000_000;
        let now_ns = 5_000_000 + apart_us * 1000;
        handshake.data(now_ns, ticks_ms.map(later));
        handshake.data(now_ns + 77_000_000, ticks_ms.map(|_| 0)); // what comes later says nothing
        (now_ns - handshake.ready_ns(believed).expect("it is over")) / 1000
    }

    #[test]
    fn what_the_line_took_is_no_wait_of_the_application() {
        assert_eq!(wait_us(0, Some(0), true), 0);
        assert_eq!(wait_us(1200, Some(0), true), 0, "a full packet at 10 Mbit/s");
        assert_eq!(
            wait_us(30_000, Some(0), true),
            0,
            "behind a queue that others filled meanwhile"
        );
        assert_eq!(wait_us(25_000, Some(25), true), 25_000);
        assert_eq!(
            wait_us(25_400, Some(25), true),
            25_400,
            "more exact than a clock of milliseconds"
        );
        assert_eq!(wait_us(25_400, Some(26), true), 25_400);
        assert_eq!(
            wait_us(45_000, Some(25), true),
            25_000,
            "the rest waited on the way"
        );
        assert_eq!(wait_us(1200, None, true), 1200, "without timestamps nobody knows");
        assert_eq!(
            wait_us(25_400, Some(2), false),
            25_400,
            "nor by a clock of other ticks"
        );
    }
}
