//! Data both ways at once on a path that loses, and what all connections counted.

use super::super::Stack;
use super::{Fd, Pair, done};
use crate::tcp::Stats;
use crate::time::Duration;

const BYTES: u64 = 400_000;

/// Both ends send at once; what each has sent is read at the other.
fn exchange(pair: &mut Pair, ends: [Fd; 2]) {
    let (mut written, mut read) = ([0; 2], [0; 2]);
    for (host, fd) in pair.hosts.iter_mut().zip(ends) {
        host.set_nonblocking(fd, true).expect("open");
    }
    for _ in 0..3000 {
        for (at, fd) in ends.into_iter().enumerate() {
            let host = &mut pair.hosts[at];
            if let Ok(called) = host.write(pair.now, fd, BYTES - written[at])
                && written[at] < BYTES
            {
                written[at] += done(Ok(called)).len;
            }
            if let Ok(called) = host.read(pair.now, fd, BYTES) {
                read[at] += done(Ok(called)).len;
            }
        }
        pair.run(Duration::from_millis(10));
        if read == [BYTES; 2] {
            return;
        }
    }
    panic!("{written:?} written, {read:?} read");
}

#[test]
fn no_segment_is_longer_than_the_mtu_while_both_directions_are_repaired() {
    for loss in [7, 20, 41] {
        let mut pair = Pair::new();
        let (client, server) = pair.connected();
        pair.loss = loss;
        exchange(&mut pair, [client, server]);
        let totals = pair.hosts.each_ref().map(Stack::totals);
        assert!(totals.iter().all(|totals| totals.recoveries > 0), "{totals:?}");
        assert!(pair.sacks > 0, "holes are reported, one of {loss} lost");
        assert_eq!(pair.longest, 1500, "one of {loss} lost");
    }
}

#[test]
fn counters_of_connections_that_have_ended_stay() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    exchange(&mut pair, [client, server]);
    let before = pair.hosts.each_ref().map(Stack::totals);
    assert!(
        before.iter().all(|totals| totals.bytes_sent == BYTES),
        "{before:?}"
    );
    for (at, fd) in [client, server].into_iter().enumerate() {
        done(pair.hosts[at].close(pair.now, fd));
        pair.run(Duration::from_millis(100));
    }
    // Their FINs are segments, too.
    let closed = pair.hosts.each_ref().map(Stack::totals);
    pair.run(Duration::from_secs(70));
    assert_eq!(pair.hosts.each_ref().map(Stack::slots_in_use), [0, 0]);
    let after: [Stats; 2] = pair.hosts.each_ref().map(Stack::totals);
    assert_eq!(after.map(|totals| totals.bytes_sent), [BYTES; 2]);
    assert_eq!(
        after.map(|totals| totals.segments_sent),
        closed.map(|totals| totals.segments_sent)
    );
}
