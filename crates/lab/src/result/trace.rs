//! What happened to one flow over time: the state of its sender and the segments that it sent.

use crate::downsample::downsample;
use serde::{Deserialize, Deserializer, Serialize};

/// What happened to one flow over time; of a long one, points enough for a drawing ([`FlowTrace::MOST_POINTS`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowTrace {
    /// Name of its group.
    pub group: String,
    /// Its number within the group, from 0 in order of start.
    pub number: u64,
    /// Sender's state at each acknowledgment and timer.
    pub states: Vec<StatePoint>,
    /// Data segments sent.
    pub sends: Vec<SendPoint>,
    /// How many data segments were sent.
    pub segments: u64,
    /// How many of them were sent before.
    pub retransmitted: u64,
}

impl FlowTrace {
    /// States, and segments, that are kept at most; beyond them every second one goes, but no peak.
    pub const MOST_POINTS: usize = 1 << 17;

    /// Adds the sender's state.
    pub fn on_state(&mut self, state: StatePoint) {
        self.states.push(state);
        if self.states.len() > Self::MOST_POINTS {
            let half = Self::MOST_POINTS / 2;
            self.states = downsample(
                &self.states,
                half,
                |state| state.t_s,
                |state| state.cwnd_bytes as f64,
            );
        }
    }

    /// Adds a data segment that was sent.
    pub fn on_send(&mut self, send: SendPoint) {
        self.segments += 1;
        self.retransmitted += u64::from(send.retransmission);
        self.sends.push(send);
        if self.sends.len() > Self::MOST_POINTS {
            let (again, first): (Vec<_>, Vec<_>) =
                self.sends.iter().copied().partition(|send| send.retransmission);
            let quarter = Self::MOST_POINTS / 4;
            let fewer = |sends: &[SendPoint]| {
                downsample(sends, quarter, |send| send.t_s, |send| send.from_byte as f64)
            };
            self.sends = fewer(&first);
            self.sends.extend(fewer(&again));
            self.sends.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
        }
    }
}

/// State of a sender at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatePoint {
    /// Time from the start of the run (s).
    pub t_s: f64,
    /// Congestion window (bytes).
    pub cwnd_bytes: u64,
    /// Slow-start threshold (bytes); `None` before the first congestion event.
    pub ssthresh_bytes: Option<u64>,
    /// Smoothed RTT (s).
    pub srtt_s: Option<f64>,
    /// Bytes in flight by the pipe estimate.
    pub pipe_bytes: u64,
    /// Stream bytes cumulatively acknowledged.
    pub acked_bytes: u64,
    /// `open`, `disorder`, `cwr`, `recovery`, `loss`.
    #[serde(deserialize_with = "state")]
    pub state: StateName,
}

/// By this name, since a field whose type is written as a reference would be borrowed from what is read.
type StateName = &'static str;

/// Names of the states of a sender.
const STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];

fn state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StateName, D::Error> {
    let name = String::deserialize(deserializer)?;
    let known = STATES.into_iter().find(|state| *state == name);
    known.ok_or_else(|| serde::de::Error::custom("there is no such state"))
}

/// A data segment that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendPoint {
    /// Time from the start of the run (s).
    pub t_s: f64,
    /// First stream byte.
    pub from_byte: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// Whether it was sent before.
    pub retransmission: bool,
}
