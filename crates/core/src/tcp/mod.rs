//! The TCP endpoint.

mod config;

pub use config::{
    Config, DelayedAck, EarlyRetransmit, InitialWindow, KeepAlive, Profile, Prr, RtoConfig, RtoFloor,
    RttSamples, TailLossProbe, WindowUnit, WindowValidation,
};
