//! What the allocator keeps is given back. A program of its own: it looks at the memory of its process.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use fleetfoot_live::give_back_memory;

#[test]
fn what_was_freed_below_something_that_is_used_goes_back_to_the_kernel() {
    // Blocks too small to be pages of their own, and one behind them that stays.
    let blocks: Vec<Vec<u8>> = (0..4_000).map(|_| vec![1; 50_000]).collect();
    let last = vec![1_u8; 50_000];
    drop(blocks);
    let kept = resident_kb();
    give_back_memory();
    let left = resident_kb();
    assert!(
        kept > 150_000,
        "{kept} kB: the allocator keeps nothing, and this test shows nothing"
    );
    assert!(left < kept / 4, "{left} of {kept} kB are left");
    assert_eq!(last[49_999], 1);
}

fn resident_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("the kernel tells it");
    let line = text
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("it is there");
    line.split_whitespace()
        .nth(1)
        .and_then(|kb| kb.parse().ok())
        .expect("a number of kB")
}
