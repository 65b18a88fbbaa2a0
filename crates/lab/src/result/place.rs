//! Places in a result: where packets wait, whose senders a variant changes, and what to do where.

use serde::{Deserialize, Serialize};

/// What waits at a place in the baseline, all runs together; of several links alike, at the fullest of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// What a user calls it: `the uplink, 10 Mbit/s`.
    pub place: String,
    /// Name of the link, or of the first and last of several alike.
    pub link: String,
    /// `forward` or `reverse`.
    pub direction: String,
    /// Queue discipline as described.
    pub queue: String,
    /// Share of time the serialiser was busy, mean over runs.
    pub utilisation: f64,
    /// Mean waiting time of packets that left (s).
    pub wait_mean_s: f64,
    /// 99th percentile of the same (s).
    pub wait_p99_s: f64,
    /// Share of arriving packets that the queue dropped.
    pub drop_share: f64,
    /// Whether a queue stands here.
    pub stands: bool,
}

/// Which senders of data a variant changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Senders {
    /// Senders on the left of the network, where servers stand.
    Servers,
    /// Senders on the right, where clients stand.
    Clients,
    /// Senders on both sides.
    Both,
    /// Hosts of a network without sides.
    Hosts,
}

impl Senders {
    /// As it stands in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Senders::Servers => "servers",
            Senders::Clients => "clients",
            Senders::Both => "servers and clients",
            Senders::Hosts => "hosts",
        }
    }
}

/// One thing to do at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instruction {
    /// Where, in the user's words: `the uplink, 10 Mbit/s`, `servers`.
    pub place: String,
    /// The device: `your router, in front of the cable modem`.
    pub device: String,
    /// One line each, to be pasted into a shell of the device as root; empty if it cannot be had by a command.
    pub commands: Vec<String>,
    /// Why there and what it does, for someone who has never heard of it.
    pub why: String,
    /// From which kernel or package on, or that it is nowhere but in Fleetfoot, and what is nearest.
    pub needs: String,
    /// What to measure afterwards and the value expected; `null` where nothing was measured.
    pub check: Option<String>,
    /// The variant that the commands turn on, or that can be had here, where that is another one; `needs` and `check` give its results.
    #[serde(default)]
    pub nearest: Option<String>,
    /// By which share less full packets get through its shaper than on the line as simulated: what it leaves free, and what it counts beside
    /// packets that the scenario does not; `null` without a shaper.
    #[serde(default)]
    pub margin: Option<f64>,
}
