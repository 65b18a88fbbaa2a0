//! No allocation per packet in steady state, by a counting allocator.

use fleetfoot_core::tcp::Profile;
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_sim::bench::Workload;
use fleetfoot_sim::observe::Observer;
use fleetfoot_sim::spec::LinkIndex;
use fleetfoot_sim::world::{Mode, run};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Packets delivered over the bottleneck, and the counters at chosen times.
#[derive(Default)]
struct Marks {
    packets: u64,
    at: Vec<(Instant, usize, u64)>,
    next: usize,
    times: Vec<Instant>,
}

impl Observer for Marks {
    fn on_deliver(
        &mut self,
        now: Instant,
        at: LinkIndex,
        _packet: &fleetfoot_core::packet::Packet,
        _sojourn: Duration,
    ) {
        self.packets += u64::from(at.0 == 0);
        if self.next < self.times.len() && now >= self.times[self.next] {
            self.next += 1;
            self.at
                .push((now, ALLOCATIONS.load(Ordering::Relaxed), self.packets));
        }
    }
}

#[test]
fn packets_allocate_nothing_in_steady_state() {
    for profile in [Profile::Ns2Sack, Profile::Linux] {
        let workload = Workload::by_name("bench-xlf100m").expect("a workload");
        let spec = workload.spec(profile, Duration::from_secs(40));
        let mut marks = Marks {
            times: vec![Instant::from_millis(20_000), Instant::from_millis(39_000)],
            ..Marks::default()
        };
        run(&spec, Mode::Fast, &mut marks, |_| ControlFlow::Continue(())).expect("a runnable workload");
        let [(_, before, from), (_, after, to)] = marks.at[..] else {
            unreachable!("packets flow all the time")
        };
        println!(
            "{profile:?}: {} allocations for {} packets",
            after - before,
            to - from
        );
        // Rings may still double once in a long while; a packet never pays for it.
        assert!(to - from > 100_000);
        assert!(
            ((after - before) as u64) < (to - from) / 1000,
            "{} allocations",
            after - before
        );
    }
}
