//! Any bytes as a frame that a router reads: nothing panics, and what would be passed on is whole, is for another host, has a time to live
//! that is less by one and a right header checksum, and stays in its flow.

use fleetfoot_live::router::packet::try_frame;

/// One input of the fuzzer.
pub(crate) fn run(bytes: &[u8]) {
    if let Err(wrong) = try_frame(bytes) {
        panic!("{wrong}");
    }
}
