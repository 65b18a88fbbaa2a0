//! What the programs in the kernel did on a real connection, hook by hook, repeated with the same rules on this machine.
//!
//! `attach_rules` shows that those rules are `core`'s.

use crate::rules::{
    Acked, State, Window, ff_cdg_avoid, ff_cdg_init, ff_cdg_recovered, ff_cdg_restart, ff_cdg_sample,
    ff_cdg_size, ff_cdg_threshold, ff_cdg_timed_out, ff_newcwv_acked, ff_newcwv_avoid,
    ff_newcwv_before_sending, ff_newcwv_first_out, ff_newcwv_init, ff_newcwv_recovered, ff_newcwv_size,
    ff_newcwv_threshold, ff_newcwv_timed_out, ff_newcwv_timeout_threshold, ff_newcwv_undone,
};
use libbpf_rs::{MapHandle, RingBufferBuilder};
use std::collections::HashMap;

/// `struct traced` of `bpf/trace.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced {
    socket: u64,
    hook: u32,
    value: u32,
    random: u32,
    flight: u32,
    retransmitted: u32,
    pad: u32,
    ack: Acked,
    before: Window,
    after: Window,
}

/// Everything that the program has reported; empties the ring.
pub(crate) fn traced(program: &str) -> Vec<Traced> {
    let map =
        MapHandle::from_pinned_path(format!("/sys/fs/bpf/fleetfoot/{program}/trace")).expect("it is pinned");
    let records = std::cell::RefCell::new(Vec::new());
    let mut builder = RingBufferBuilder::new();
    builder
        .add(&map, |bytes| {
            assert_eq!(bytes.len(), size_of::<Traced>());
            // SAFETY: the program wrote a value of this form, and every bit pattern is one.
            records
                .borrow_mut()
                .push(unsafe { bytes.as_ptr().cast::<Traced>().read_unaligned() });
            0
        })
        .expect("a ring buffer");
    builder
        .build()
        .expect("a ring buffer")
        .consume()
        .expect("it can be read");
    records.into_inner()
}

/// Hooks that were repeated: acknowledgments, changes of the window, answers to losses.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    pub(crate) hooks: u32,
    pub(crate) acks: u32,
    pub(crate) changed: u32,
    pub(crate) thresholds: u32,
}

impl Repeated {
    fn count(&mut self, record: &Traced) {
        self.hooks += 1;
        self.acks += u32::from(record.hook == ACKED);
        self.changed += u32::from(record.before != record.after);
        self.thresholds += u32::from(record.hook == THRESHOLD);
    }
}

pub(crate) fn repeat_cdg(records: &[Traced]) -> Repeated {
    let mut repeated = Repeated::default();
    let mut sockets: HashMap<u64, State> = HashMap::new();
    for (at, record) in records.iter().enumerate() {
        let state = sockets
            .entry(record.socket)
            .or_insert_with(|| State::new(ff_cdg_size()));
        let (mut window, mut value) = (record.before, record.value);
        match record.hook {
            INIT => {
                // An accepted socket, maybe at the address of one that has gone.
                *state = State::new(ff_cdg_size());
                ff_cdg_init(state, window.cwnd);
            }
            ACKED => ff_cdg_sample(state, &record.ack),
            AVOID => {
                ff_cdg_avoid(state, &mut window, &record.ack, record.value, record.random);
            }
            THRESHOLD => value = ff_cdg_threshold(state, window.cwnd),
            EVENT if record.value == COMPLETE_CWR => ff_cdg_recovered(state, &record.ack),
            EVENT if record.value == CWND_RESTART => ff_cdg_restart(state, window.cwnd, record.ack.delivered),
            STATE if record.value == LOSS => ff_cdg_timed_out(state),
            _ => {}
        }
        assert_eq!(
            (window, value),
            (record.after, record.value),
            "hook {at}: {record:?}"
        );
        repeated.count(record);
    }
    repeated
}

/// A socket of New-CWV, and what a pause must not change.
struct NewCwv {
    state: State,
    kept: Option<(u32, u32)>,
}

pub(crate) fn repeat_new_cwv(records: &[Traced]) -> Repeated {
    let mut repeated = Repeated::default();
    let mut sockets: HashMap<u64, NewCwv> = HashMap::new();
    for (at, record) in records.iter().enumerate() {
        let ack = &record.ack;
        if record.hook == INIT {
            let mut state = State::new(ff_newcwv_size());
            ff_newcwv_init(&mut state, ack.nxt);
            sockets.insert(record.socket, NewCwv { state, kept: None });
        }
        let Some(socket) = sockets.get_mut(&record.socket) else {
            continue;
        };
        let state = &mut socket.state;
        let (mut window, mut value) = (record.before, record.value);
        let full = ack.full as i32;
        let mut look = false;
        match record.hook {
            ACKED => {
                let (recovering, reducing) = (record.value >= 3, record.value == 2 || record.value == 3);
                ff_newcwv_acked(
                    state,
                    &mut window,
                    ack,
                    i32::from(recovering),
                    i32::from(reducing),
                );
                look = true;
            }
            AVOID => ff_newcwv_avoid(state, &mut window, ack, record.value),
            THRESHOLD => {
                value = ff_newcwv_threshold(
                    state,
                    &window,
                    ack.now_us,
                    ack.srtt_us8,
                    full,
                    record.flight,
                    record.retransmitted,
                );
            }
            EVENT if record.value == TX_START => {
                ff_newcwv_first_out(state, ack.now_us, ack.rtt_us as u64);
                if let Some((cwnd, ssthresh)) = socket.kept.take() {
                    window.cwnd = window.cwnd.max(cwnd);
                    window.ssthresh = ssthresh;
                }
                look = true;
            }
            EVENT if record.value == CWND_RESTART => socket.kept = Some((window.cwnd, window.ssthresh)),
            EVENT if record.value == COMPLETE_CWR => {
                let left = ff_newcwv_recovered(state, record.retransmitted);
                if left > 0 {
                    window.reduce(left, left);
                }
            }
            EVENT if record.value == EVENT_LOSS => {
                let threshold = ff_newcwv_timeout_threshold(state);
                if threshold > 0 {
                    window.ssthresh = threshold;
                }
            }
            STATE if record.value == LOSS => ff_newcwv_timed_out(state),
            UNDO => ff_newcwv_undone(state),
            _ => {}
        }
        if look && record.random <= 1 {
            ff_newcwv_before_sending(state, &mut window, ack.now_us, ack.srtt_us8, full, 10);
        }
        assert_eq!(
            (window, value),
            (record.after, record.value),
            "hook {at}: {record:?}"
        );
        repeated.count(record);
    }
    repeated
}

/// Hooks.
const INIT: u32 = 0;
const ACKED: u32 = 1;
const AVOID: u32 = 2;
const THRESHOLD: u32 = 3;
const EVENT: u32 = 4;
const STATE: u32 = 5;
const UNDO: u32 = 6;
/// Events.
const TX_START: u32 = 0;
const CWND_RESTART: u32 = 1;
const COMPLETE_CWR: u32 = 2;
const EVENT_LOSS: u32 = 3;
/// The state after a timeout.
const LOSS: u32 = 4;
