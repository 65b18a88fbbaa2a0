//! A sample of what `make soak` runs: random transfers over random bad paths, through the wire codec.

use fleetfoot_testkit::soak::Draw;

#[test]
fn random_transfers_over_bad_paths_arrive_whole() {
    let mut bytes = 0;
    for seed in 0..120 {
        let draw = Draw::new(seed, false, 300_000);
        println!("{draw:?}"); // seen when it fails
        bytes += draw.run(|_| true).bytes;
    }
    assert!(bytes > 1_000_000, "{bytes}");
}

#[test]
#[ignore = "long: two streams of more than 5 GiB"]
fn streams_beyond_both_wraps_arrive_whole() {
    for seed in 1..=2 {
        let draw = Draw::new(seed, true, 0);
        println!("{draw:?}"); // seen when it fails
        let outcome = draw.run(|_| true);
        assert!(outcome.bytes > 5 << 30);
    }
}
