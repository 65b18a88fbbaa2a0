//! The functions of `bpf/rules.c`.

/// `struct window`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    pub(crate) count: u32,
    pub(crate) clamp: u32,
}

/// What the kernel has before the first congestion event.
pub(crate) const INFINITE: u32 = 0x7fff_ffff;

impl Window {
    pub(crate) fn new(cwnd: u32) -> Window {
        Window {
            cwnd,
            ssthresh: INFINITE,
            count: 0,
            clamp: u32::MAX,
        }
    }

    /// A recovery begins or a timeout: the kernel clears the count.
    pub(crate) fn reduce(&mut self, cwnd: u32, ssthresh: u32) {
        (self.cwnd, self.ssthresh, self.count) = (cwnd, ssthresh, 0);
    }

    /// Window and threshold; `None`: there was no congestion yet.
    pub(crate) fn seen(&self) -> (u64, Option<u64>) {
        let known = (self.ssthresh < INFINITE).then_some(u64::from(self.ssthresh));
        (u64::from(self.cwnd), known)
    }
}

/// `struct ack`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acked {
    pub(crate) now_us: u64,
    pub(crate) rtt_us: i32,
    pub(crate) acked: u32,
    pub(crate) sacked: u32,
    pub(crate) delivered: u32,
    pub(crate) in_flight: u32,
    pub(crate) una: u32,
    pub(crate) nxt: u32,
    pub(crate) srtt_us8: u32,
    pub(crate) mss: u32,
    pub(crate) max_out: u32,
    pub(crate) full: u32,
    pub(crate) paced: u32,
}

/// State of a program, whose fields only C knows.
#[repr(C, align(8))]
#[derive(Clone)]
pub(crate) struct State([u64; 64]);

impl State {
    pub(crate) fn new(size: u32) -> State {
        assert!(size as usize <= size_of::<State>());
        State([0; 64])
    }

    /// A 32-bit field.
    pub(crate) fn word(&self, offset: usize) -> u32 {
        let pair = self.0[offset / 8];
        (if offset.is_multiple_of(8) {
            pair
        } else {
            pair >> 32
        }) as u32
    }
}

unsafe extern "C" {
    pub(crate) safe fn ff_cdg_survival(gradient_us: u64) -> u64;
    pub(crate) safe fn ff_cdg_size() -> u32;
    pub(crate) safe fn ff_cdg_init(cdg: &mut State, cwnd: u32);
    pub(crate) safe fn ff_cdg_sample(cdg: &mut State, ack: &Acked);
    pub(crate) safe fn ff_cdg_recovered(cdg: &mut State, ack: &Acked);
    pub(crate) safe fn ff_cdg_restart(cdg: &mut State, cwnd: u32, delivered: u32);
    pub(crate) safe fn ff_cdg_timed_out(cdg: &mut State);
    pub(crate) safe fn ff_cdg_avoid(
        cdg: &mut State,
        window: &mut Window,
        ack: &Acked,
        delivered_now: u32,
        random: u32,
    ) -> i32;
    pub(crate) safe fn ff_cdg_threshold(cdg: &mut State, cwnd: u32) -> u32;

    pub(crate) safe fn ff_newcwv_size() -> u32;
    pub(crate) safe fn ff_newcwv_init(cwv: &mut State, nxt: u32);
    pub(crate) safe fn ff_newcwv_acked(
        cwv: &mut State,
        window: &mut Window,
        ack: &Acked,
        recovering: i32,
        reducing: i32,
    );
    pub(crate) safe fn ff_newcwv_avoid(cwv: &mut State, window: &mut Window, ack: &Acked, delivered_now: u32);
    pub(crate) safe fn ff_newcwv_before_sending(
        cwv: &mut State,
        window: &mut Window,
        now_us: u64,
        srtt_us8: u32,
        full: i32,
        initial: u32,
    ) -> i32;
    pub(crate) safe fn ff_newcwv_threshold(
        cwv: &mut State,
        window: &Window,
        now_us: u64,
        srtt_us8: u32,
        full: i32,
        flight: u32,
        retransmitted: u32,
    ) -> u32;
    pub(crate) safe fn ff_newcwv_recovered(cwv: &mut State, retransmitted: u32) -> u32;
    pub(crate) safe fn ff_newcwv_undone(cwv: &mut State);
    pub(crate) safe fn ff_newcwv_timeout_threshold(cwv: &mut State) -> u32;
    pub(crate) safe fn ff_newcwv_timed_out(cwv: &mut State);
    pub(crate) safe fn ff_newcwv_first_out(cwv: &mut State, now_us: u64, idle_us: u64);
    pub(crate) safe fn ff_newcwv_nonvalidated(cwv: &State) -> u32;

    pub(crate) safe fn ff_spread_gap_ns(srtt_us8: u32, segments: u32) -> u64;
    pub(crate) safe fn ff_marker_size() -> u32;
    pub(crate) safe fn ff_marker_next(
        marker: &mut State,
        length: u8,
        fin: i32,
        random: u32,
        highest: u16,
    ) -> u32;
    pub(crate) safe fn ff_marker_obstacle(tos: u8, df: i32, dscp: u8) -> i32;
    pub(crate) safe fn ff_marker_write(mark: u8, id: u16, tos: u8, dscp: u8) -> u32;
}
