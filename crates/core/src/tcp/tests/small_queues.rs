//! TCP Small Queues: how long a connection keeps an account of what waits in its host.

use super::script::{MSS, Script, bare};
use crate::time::Duration;

/// Ten segments of 60 are out; of `told`, one after the other waits for another millisecond.
fn told(told: u64) -> Script {
    let mut script = Script::open(&bare(), 10);
    assert_eq!(script.write(60).len(), 10);
    for number in 1..=told {
        let begins = script.now + Duration::from_millis(number);
        script.connection.wait_at_host(MSS, Some(begins));
    }
    script
}

fn keeps_account(script: &Script) -> bool {
    let sender = script.connection.sender.as_ref().expect("it sends");
    assert_ne!(sender.una, sender.nxt, "data is out");
    assert_eq!(sender.is_calm(&script.connection.shared), sender.tempo.is_none());
    sender.tempo.is_some()
}

#[test]
fn a_burst_is_forgotten_when_all_of_it_is_acknowledged() {
    let (mut script, mut untold) = (told(3), told(0));
    for (at, upto, expected) in [(100, 5, true), (101, 9, true), (102, 10, false), (200, 15, false)] {
        let sent = script.at(at).ack(upto, &[]);
        assert_eq!(sent, untold.at(at).ack(upto, &[]));
        assert!(!sent.is_empty(), "{upto}");
        assert_eq!(keeps_account(&script), expected, "{upto}");
        assert!(!keeps_account(&untold));
    }
}

/// Not while some of it waits, nor where each round trip tells of something: what is forgotten has to be made again.
#[test]
fn what_waits_again_and_again_is_not_forgotten() {
    let mut script = told(150);
    script.at(102).ack(10, &[]);
    assert!(keeps_account(&script), "some waits until 150 ms");
    let mut script = told(1);
    for round in 1..4 {
        script.at(100 * round).ack(10 * round as u32 - 5, &[]);
        script
            .connection
            .wait_at_host(MSS, Some(script.now + Duration::from_millis(1)));
        script.at(100 * round + 10).ack(10 * round as u32, &[]);
        assert!(keeps_account(&script), "{round}");
    }
}
