//! No allocation per packet in steady state, and the memory of an idle flow, by a counting allocator.

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
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract is the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
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
fn packets_allocate_nothing_and_idle_flows_are_small() {
    // One test: the counters are the process's.
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

    let few = idle_bytes(10_000);
    let many = idle_bytes(40_000);
    let per_flow = (many - few) / 30_000;
    println!("{per_flow} bytes per idle flow, both ends");
    assert!(per_flow <= 1024, "{per_flow} bytes per idle flow");
}

/// Bytes alive at the end of a run with this many connections that sent one segment each and then nothing.
fn idle_bytes(flows: u32) -> usize {
    let workload = Workload::idle(flows);
    let spec = workload.spec(Profile::Ns2Sack, Duration::from_secs(3));
    let before = LIVE_BYTES.load(Ordering::Relaxed);
    let mut peak = 0;
    let mut at_end = Live { at: 0 };
    run(&spec, Mode::Fast, &mut at_end, |_| ControlFlow::Continue(())).expect("a runnable workload");
    peak = peak.max(at_end.at);
    peak - before
}

/// Bytes alive at the last timer or delivery.
struct Live {
    at: usize,
}

impl Observer for Live {
    fn on_deliver(
        &mut self,
        _now: Instant,
        _at: LinkIndex,
        _packet: &fleetfoot_core::packet::Packet,
        _sojourn: Duration,
    ) {
        self.at = LIVE_BYTES.load(Ordering::Relaxed);
    }
}
