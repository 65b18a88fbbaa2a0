//! The kept inputs of the fuzz targets for files, played by the targets' own code without a fuzzer.

#[path = "../../../fuzz/inputs/capture.rs"]
mod capture;
#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;
#[path = "../../../fuzz/inputs/scenario.rs"]
mod scenario;

use replay::replay;

#[test]
fn scenario_inputs() {
    replay("scenario", 5, scenario::run);
}

#[test]
fn capture_inputs() {
    replay("capture", 3, capture::run);
}
