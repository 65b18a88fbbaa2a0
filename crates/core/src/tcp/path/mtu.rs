//! Path MTU: what routers say, what probes find, and what it does to the segments in flight.
//!
//! A "too big" message that quotes data in flight lowers the MTU of the path; segments that are now too long are cut and
//! sent again at once, and this is not a sign of congestion. The value is forgotten after ten minutes. With
//! `mtu_probing` the connection also searches for the largest size that passes by sending a longer segment now and then
//! (a binary search), and shrinks when nothing passes any more although no router complains (a black hole).
//!
//! **Source.** RFC 1191 3, 6.3, 6.4, 7.1; RFC 8201 4, 5.3; RFC 5927 7; RFC 4821 7; the floor of 552 bytes, the conditions of
//! a probe, its effect on the window and the reaction to three timeouts are Linux's (`tcp_v4_mtu_reduced`,
//! `tcp_simple_retransmit`, `tcp_bound_to_half_wnd`, `tcp_mtu_probe`, `tcp_mtup_probe_success`, `tcp_mtu_probing`).
//! **Deviations.** RFC 5927 7.2's delay before a message is believed is not done: a sequence number in flight is enough, as
//! in Linux. A controller keeps counting in the segment size it began with; with `WindowUnit::Packets` that is exact, as
//! one segment stays one segment, with bytes its growth per round trip is up to one old segment. The MTU belongs to the
//! connection: there is no cache per destination. Below `min_pmtu` segments may be fragmented (no DF) instead of shrunk.
//!
//! Parameters: [`PathConfig`](crate::tcp::PathConfig).

use crate::tcp::config::{IpVersion, MtuProbing, PathConfig, TimeoutRules};
use crate::tcp::{Connection, Control, Shared, State};
use crate::time::Instant;

/// Plateaus of RFC 1191 7.1, for routers that do not report the MTU.
const PLATEAUS: [u32; 10] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296, 68];
/// RFC 8200 5.
const IPV6_MIN: u32 = 1280;
/// The interval that ends the search (Linux).
const PROBE_THRESHOLD: u32 = 8;
/// Smallest MSS a black hole makes us try (`tcp_mtu_probe_floor`).
const PROBE_FLOOR: u32 = 48;
/// A peer that offers no more than this gets segments of its whole window (`TCP_MSS_DEFAULT`).
const SMALL_WINDOW: u64 = 536;

/// What is known of the path's MTU; part of the cold state.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Mtu {
    /// MTU in force when lower than the link's; 0: the link's.
    limit: u32,
    /// Payload of a full segment before it was lowered.
    full: u32,
    /// Payload of a full segment before it was fitted to the peer's window; 0: it was not.
    unhalved: u32,
    /// When it was lowered.
    lowered_at: Option<Instant>,
    /// Lower than we care to go: let routers fragment.
    may_fragment: bool,
    /// Searching for the largest size (RFC 4821).
    search: Option<Search>,
}

/// Binary search for the largest packet that passes.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Known to pass, bytes at layer 3.
    low: u32,
    /// Not known to fail.
    high: u32,
    /// Size of the probe in flight; 0: none.
    probe: u32,
    /// Offsets of its payload.
    start: u64,
    end: u64,
    /// When the search last narrowed down.
    since: Instant,
}

impl Mtu {
    /// Whether routers may fragment our packets.
    pub(in crate::tcp) const fn may_fragment(&self) -> bool {
        self.may_fragment
    }
}

impl Shared {
    /// Payload that fits an IP packet of `mtu` bytes, what options take of it already off.
    pub(in crate::tcp) fn payload_of(&self, mtu: u32) -> u32 {
        let options = if self.timestamps { 12 } else { 0 };
        mtu.saturating_sub(self.config.header() + options)
            .max(self.config.path.min_mss)
    }

    /// Where the largest window so far holds less than two full segments, segments of half of it leave, so that two are under way and
    /// the receiver does not delay its acknowledgment (Linux `tcp_bound_to_half_wnd`).
    pub(in crate::tcp) fn fit_segments_to_window(&mut self) {
        if self.config.timeout_rules != TimeoutRules::Linux {
            return;
        }
        let whole = self.cold.as_ref().map_or(0, |cold| cold.mtu.unhalved);
        let full = if whole > 0 {
            whole.min(self.payload_of(self.path_mtu()))
        } else {
            self.mss
        };
        let largest = self.peer.largest();
        let cutoff = if largest > SMALL_WINDOW {
            largest / 2
        } else {
            largest
        };
        if cutoff > 0 && cutoff < u64::from(full) {
            let options = if self.timestamps { 12 } else { 0 };
            self.cold_mut().mtu.unhalved = full;
            self.mss = (cutoff as u32).max(PROBE_FLOOR - options);
        } else if whole > 0 {
            self.cold_mut().mtu.unhalved = 0;
            self.mss = full;
        }
    }

    fn packet_of(&self, payload: u32) -> u32 {
        let options = if self.timestamps { 12 } else { 0 };
        payload + self.config.header() + options
    }

    /// The MSS this end announces and sends at most: the link's or the path's, at most what the owner set.
    pub(in crate::tcp) fn own_mss(&self) -> u32 {
        let mss = self.config.mss();
        let Some(cold) = &self.cold else { return mss };
        let path = match cold.mtu.limit {
            0 => mss,
            limit => limit.saturating_sub(self.config.header()),
        };
        path.min(cold.max_segment.unwrap_or(u32::MAX))
            .max(self.config.path.min_mss)
    }

    /// The path's MTU as far as known.
    pub(in crate::tcp) fn path_mtu(&self) -> u32 {
        match self.cold.as_ref().map_or(0, |cold| cold.mtu.limit) {
            0 => self.config.mtu,
            limit => limit,
        }
    }
}

impl Connection {
    /// A router says that a packet was too big; its sequence number is in flight.
    pub(in crate::tcp) fn on_too_big(&mut self, now: Instant, reported: u32) {
        if !self.shared.config.path.pmtu_discovery {
            return;
        }
        let current = self.shared.path_mtu();
        let path = self.shared.config.path;
        let mut mtu = reported;
        if mtu == 0 {
            // RFC 1191 5: an old router. The next plateau below.
            mtu = PLATEAUS
                .into_iter()
                .find(|&plateau| plateau < current)
                .unwrap_or(68);
        }
        let mut may_fragment = false;
        match path.ip {
            IpVersion::V4 if mtu < path.min_pmtu => {
                mtu = path.min_pmtu.min(current);
                may_fragment = true;
            }
            IpVersion::V6 if mtu < IPV6_MIN => return, // RFC 8201 4
            IpVersion::V4 | IpVersion::V6 => {}
        }
        let full = self.shared.mss;
        let known = self.shared.cold_mut();
        known.mtu.may_fragment |= may_fragment;
        if mtu >= current {
            return; // RFC 5927 7.1: never raised by a message
        }
        if known.mtu.limit == 0 {
            known.mtu.full = full;
        }
        known.mtu.limit = mtu;
        known.mtu.lowered_at = Some(now);
        if let Some(search) = &mut known.mtu.search {
            search.high = search.high.min(mtu);
            search.low = search.low.min(mtu);
        }
        if matches!(self.state, State::SynSent | State::SynReceived) {
            if self.shared.cold_mut().fast_open.forget_data() {
                self.control = Control::Syn; // without data it fits
            }
            return;
        }
        self.shared.mss = self.shared.mss.min(self.shared.payload_of(mtu));
        if let Some(sender) = &mut self.sender {
            sender.cut_long_segments(now, &self.shared);
        }
    }

    /// What was learnt long ago is forgotten (RFC 1191 6.3, RFC 8201 5.3), and a search begins anew.
    #[cold]
    pub(in crate::tcp) fn refresh_mtu(&mut self, now: Instant) {
        let path = self.shared.config.path;
        let Some(cold) = &mut self.shared.cold else { return };
        if let Some(at) = cold.mtu.lowered_at
            && now.since(at) >= path.pmtu_lifetime
        {
            self.shared.mss = cold.mtu.full;
            cold.mtu.limit = 0;
            cold.mtu.lowered_at = None;
            cold.mtu.may_fragment = false;
        }
        let link = self.shared.config.mtu;
        if let Some(search) = &mut cold.mtu.search
            && search.probe == 0
            && now.since(search.since) >= path.probe_interval
            && search.high < link
        {
            search.high = link; // RFC 4821 7.5 (Linux `tcp_mtu_check_reprobe`)
            search.since = now;
        }
    }

    /// The handshake is over: begin to search if that is wanted from the start.
    pub(in crate::tcp) fn start_mtu_search(&mut self, now: Instant) {
        if self.shared.config.path.mtu_probing == MtuProbing::Always {
            self.shared.begin_search(now);
        }
    }

    /// Size of IP packets that the path takes, as far as known (`IP_MTU`).
    pub fn path_mtu(&self) -> u32 {
        self.shared.path_mtu()
    }
}

impl Shared {
    fn begin_search(&mut self, now: Instant) {
        let config = &self.config;
        let low = (config.path.base_mss + config.header()).min(self.path_mtu());
        let high = self.packet_of(self.mss);
        if low >= high {
            return;
        }
        let (full, mss) = (self.mss, self.payload_of(low));
        let mtu = &mut self.cold_mut().mtu;
        if mtu.full == 0 {
            mtu.full = full;
        }
        mtu.search = Some(Search {
            low,
            high,
            probe: 0,
            start: 0,
            end: 0,
            since: now,
        });
        self.mss = mss;
    }

    /// Three timeouts in a row: perhaps full segments vanish without a message (RFC 4821 7.7).
    pub(in crate::tcp) fn suspect_black_hole(&mut self, now: Instant) {
        let path: PathConfig = self.config.path;
        if path.mtu_probing == MtuProbing::Off {
            return;
        }
        let header = self.config.header();
        match self.cold.as_mut().and_then(|cold| cold.mtu.search.as_mut()) {
            None => self.begin_search(now),
            Some(search) => {
                let half = search.low.saturating_sub(header) / 2;
                let mss = half.min(path.base_mss).max(PROBE_FLOOR).max(path.min_mss);
                search.low = mss + header;
                search.probe = 0;
                let low = search.low;
                self.mss = self.payload_of(low);
            }
        }
    }

    fn search(&mut self) -> Option<&mut Search> {
        self.cold.as_mut()?.mtu.search.as_mut()
    }

    /// Size of the packet that is to be probed next, if the search goes on and no probe is out (RFC 4821 7.3).
    pub(in crate::tcp) fn next_mtu_probe(&self) -> Option<u32> {
        let search = self.cold.as_ref()?.mtu.search.as_ref()?;
        let narrow = search.high.saturating_sub(search.low) < PROBE_THRESHOLD; // a refused size may have passed
        (search.probe == 0 && !narrow).then(|| (search.high + search.low) / 2)
    }

    /// A probe of `size` left with these offsets.
    pub(in crate::tcp) fn on_mtu_probe(&mut self, size: u32, start: u64, end: u64) {
        if let Some(search) = self.search() {
            search.probe = size;
            search.start = start;
            search.end = end;
        }
    }

    /// Everything before `una` is acknowledged. If that covers the probe, the segment size is its size from now on: the sizes
    /// of packets before and now.
    pub(in crate::tcp) fn mtu_probe_passed(&mut self, now: Instant, una: u64) -> Option<(u32, u32)> {
        let search = self.search()?;
        if search.probe == 0 || una < search.end {
            return None;
        }
        let passed = search.probe;
        let before = search.low;
        search.low = passed;
        search.probe = 0;
        search.since = now;
        self.mss = self.payload_of(passed);
        Some((before, passed))
    }

    /// What begins at `una` is lost. True if it is the probe: the size does not pass.
    pub(in crate::tcp) fn mtu_probe_failed(&mut self, now: Instant, una: u64) -> bool {
        let Some(search) = self.search() else {
            return false;
        };
        if search.probe == 0 || search.start != una {
            return false;
        }
        search.high = search.probe - 1;
        search.probe = 0;
        search.since = now;
        true
    }

    /// A timeout leaves open what became of the probe.
    pub(in crate::tcp) fn mtu_probe_unclear(&mut self) {
        if let Some(search) = self.search() {
            search.probe = 0;
        }
    }
}
