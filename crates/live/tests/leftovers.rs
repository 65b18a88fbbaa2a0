//! A process that runs many commands behind links keeps nothing of them. Alone in its file: descriptors and threads are those of
//! the process. Needs namespaces; says so and skips without.
#![cfg(target_os = "linux")]

use fleetfoot_core::link::{Link, LinkConfig};
use fleetfoot_core::parameter::Values;
use fleetfoot_core::queue::AnyQueue;
use fleetfoot_core::time;
use fleetfoot_core::units::Rate;
use fleetfoot_live::{Direction, Namespace, Shell};
use std::time::{Duration, Instant};

fn direction() -> Direction {
    let config = LinkConfig::new(Rate::from_bps(100_000_000), time::Duration::ZERO);
    let entry = AnyQueue::entry_among(&[], "drop-tail").expect("a registered queue");
    let values = Values::defaults(entry.parameters);
    let queue = AnyQueue::build_among(&[], entry.name, &values, &config.link_context(1)).expect("a queue");
    Direction::new(Link::new(queue, &config, 1, "test"))
}

fn entries(of: &str) -> usize {
    std::fs::read_dir(of).expect("there is /proc").count()
}

#[test]
fn no_descriptor_no_thread_and_no_child_is_left() {
    if let Err(reason) = Namespace::available() {
        println!("skipped: {reason}");
        return;
    }
    let run = |program: &str| {
        let shell = Shell {
            command: vec![program.into()],
            far: Some("sleep 1000".into()),
            mtu: 1500,
            ..Shell::default()
        };
        shell.run([direction(), direction()])
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            Shell::isolate().expect("root may");
            let state = || (entries("/proc/self/fd"), entries("/proc/self/task"));
            let mut before = None;
            for _ in 0..4 {
                assert!(run("true").expect("it runs").status.success());
                assert!(run("no-such-program").is_err());
                // A thread that was waited for is listed a moment longer. The first run opens what stays for the next.
                let began = Instant::now();
                while began.elapsed() < Duration::from_secs(if before.is_none() { 1 } else { 10 })
                    && before != Some(state())
                {
                    std::thread::sleep(Duration::from_millis(10));
                }
                assert_eq!(state(), *before.get_or_insert_with(state));
            }
            let own = std::process::id();
            let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
            assert_eq!(children.unwrap_or_default(), "");
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
