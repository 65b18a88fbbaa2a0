//! The kept inputs of the fuzz target for pairs of connections, played by the target's own code without a fuzzer.

#[path = "../../../fuzz/inputs/pair.rs"]
mod pair;
#[path = "../../../fuzz/inputs/replay.rs"]
mod replay;

#[test]
fn pair_inputs() {
    replay::replay("pair", 8, pair::run);
}
