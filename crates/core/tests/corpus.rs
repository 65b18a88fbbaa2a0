//! The kept inputs of the fuzz targets for core, played by the targets' own code without a fuzzer.

#[path = "../../../fuzz/inputs/endpoint.rs"]
mod endpoint;
#[path = "../../../fuzz/inputs/queues.rs"]
mod queues;
#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;
#[path = "../../../fuzz/inputs/wire.rs"]
mod wire;

use replay::replay;

#[test]
fn endpoint_inputs() {
    replay("endpoint", 4, endpoint::run);
}

#[test]
fn queue_inputs() {
    replay("queues", 3, queues::run);
}

#[test]
fn wire_inputs() {
    replay("wire", 4, wire::run);
}
