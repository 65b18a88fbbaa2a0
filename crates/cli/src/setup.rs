//! What is said while a network is set up, before anything is known of how long its runs will take: with many hosts that takes a while.

use crate::output::Common;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Does `work`; while it goes on, `common` says now and then that it does, and of what.
pub(crate) fn setting_up<T>(common: &Common, what: &str, work: impl FnOnce() -> T) -> T {
    saying(&|text| common.say(text), FIRST, what, work)
}

/// The same with the first word after `first`; each wait is twice as long as the one before.
fn saying<T>(say: &(dyn Fn(&str) + Sync), first: Duration, what: &str, work: impl FnOnce() -> T) -> T {
    let (working, done) = channel::<()>();
    std::thread::scope(|scope| {
        let speaking = move || {
            let (mut waited, mut wait) = (Duration::ZERO, first);
            while done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                waited += wait;
                say(&match waited == first {
                    true => format!("Setting up the network of {what}."),
                    false => format!(
                        "Still setting up the network of {what}, after {} s.",
                        waited.as_secs()
                    ),
                });
                wait = waited;
            }
        };
        // Where no thread can be had, nothing is said.
        let _ = std::thread::Builder::new().spawn_scoped(scope, speaking);
        let result = work();
        drop(working);
        result
    })
}

/// Nobody misses a word sooner.
const FIRST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::saying;
    use std::sync::Mutex;
    use std::time::Duration;

    #[test]
    fn a_network_that_takes_long_is_spoken_of_at_growing_intervals() {
        let said = Mutex::new(Vec::new());
        let say = |text: &str| said.lock().expect("nobody panicked").push(text.to_owned());
        let enough = || {
            for _ in 0..1000 {
                if said.lock().expect("nobody panicked").len() > 1 {
                    return 7;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            0
        };
        assert_eq!(saying(&say, Duration::from_millis(1), "a.toml", enough), 7);
        let said = said.into_inner().expect("nobody panicked");
        assert_eq!(said[0], "Setting up the network of a.toml.");
        assert!(said[1].starts_with("Still setting up the network of a.toml, after "));
    }

    #[test]
    fn nothing_is_said_of_one_that_is_there_at_once() {
        let say = |text: &str| panic!("{text}");
        assert_eq!(saying(&say, Duration::from_secs(60), "a.toml", || 7), 7);
    }
}
