//! The kept inputs of the fuzz target for scripts, played by the target's own code without a fuzzer.

#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;
#[path = "../../../fuzz/inputs/script.rs"]
mod script;

#[test]
fn script_inputs() {
    replay::replay("script", 1, script::run);
}
