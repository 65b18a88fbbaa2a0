//! The rules of the programs of `fleetfoot attach`, compiled for this machine, beside the implementation in `core`: window by window,
//! acknowledgment by acknowledgment, packet by packet.
#![cfg(all(target_os = "linux", feature = "bpf"))]

mod cdg;
mod marks;
mod newcwv;
mod rules;
