//! Real packets on Linux.
//!
//! [`Namespace`] is a network namespace that lives as long as the closure that runs in it; [`Tun`] a device whose packets are
//! read and written here; [`Clock`] the one clock; [`calls`] the socket calls of the kernel by number, for the script
//! runner. [`Emulator`] puts a described link between two interfaces, [`Shell`] runs a command behind it, [`SenderSwitches`] are
//! settings of the kernel's TCP at both ends, and a [`Tap`] shows an observer what passes; a [`Recording`] of that is held to the simulated queue. A [`Passage`] marks super-packets, in a
//! shell or [`Between`] two interfaces that are there. [`host`] is our TCP as a host on real
//! packets, [`service`] what it serves and fetches, [`proxy`] what passes connections between it and the kernel. [`router`] forwards
//! between interfaces with a queue before each. With the feature `bpf`, `bpf` attaches mechanisms to this machine's kernel. This is
//! the only crate that may use `unsafe`, and it does so only to call the kernel and the C library.
//!
//! On other systems the crate is empty: the verbs that need it say so.
#![cfg(target_os = "linux")]

#[macro_use]
mod counted;

mod beside;
mod between;
#[cfg(feature = "bpf")]
pub mod bpf;
pub mod calls;
mod claim;
mod clock;
mod contained;
mod direction;
pub mod doctor;
mod emulator;
mod error;
mod forged;
mod frames;
pub mod host;
mod ip;
pub mod kernel;
mod masquerade;
mod measure;
mod member;
mod memory;
mod namespace;
mod netlink;
mod offload;
mod outlet;
mod packet_socket;
mod passage;
pub mod proxy;
mod replay;
mod ring;
pub mod router;
mod sender;
pub mod service;
mod shell;
mod signals;
mod tap;
mod thread;
mod tun;
mod wake;
mod window;
#[cfg(all(target_os = "linux", feature = "xdp"))]
mod xdp;

pub use beside::beside;
pub use between::{Between, Passed, interfaces};
pub use clock::Clock;
pub use direction::Direction;
pub use emulator::{Emulator, Way};
pub use error::Error;
pub use masquerade::{Masquerade, Masqueraded};
pub use measure::{Carried, Forwarded, Offered, Shaped, Timers, kernel_forwards, router_forwards};
pub use memory::give_back_memory;
pub use namespace::Namespace;
pub use offload::switch_off_offloads;
pub use outlet::Measured;
pub use packet_socket::{PacketSocket, Refusal, Sent};
pub use passage::{MarkRules, Marked, Network, Passage, Unmarked};
pub use replay::{Held, Recording};
pub use ring::Format;
pub use sender::SenderSwitches;
pub use shell::{Finished, Shell};
pub use signals::{HeldSignals, Ignored, Order, Signals, hold_signals};
pub use tap::{Event, RING, SNAP_LENGTH, Tap, TapReader, Tapped, tap};
pub use thread::{sleeps, thread_id, waited_for_cores};
pub use tun::Tun;
