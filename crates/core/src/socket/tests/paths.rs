//! What connections of a host learn about a path serves the next ones to the same other host (RFC 9040).

use super::{Pair, done};
use crate::tcp::InitialSpreading;
use crate::time::Duration;
use alloc::vec::Vec;

/// Microseconds between the first of a burst of five segments that the server writes at once, and each.
fn burst(pair: &mut Pair) -> Vec<u64> {
    let (client, server) = pair.connected();
    pair.data.clear();
    assert_eq!(done(pair.hosts[1].write(pair.now, server, 7_240)).len, 7_240);
    pair.run(Duration::from_millis(500));
    assert_eq!(done(pair.hosts[0].read(pair.now, client, 10_000)).len, 7_240);
    let from_server = pair.data.iter().filter(|sent| sent.1 == 1);
    let times: Vec<u64> = from_server.map(|sent| sent.0.as_nanos() / 1_000).collect();
    done(pair.hosts[0].close(pair.now, client));
    done(pair.hosts[1].close(pair.now, server));
    pair.run(Duration::from_secs(1));
    times.iter().map(|at| at - times[0]).collect()
}

/// The handshake takes 20 ms, so a tenth is 2; the way from the server passes a segment every 1.2 ms.
#[test]
fn the_second_connection_from_a_host_knows_the_rate() {
    let mut pair = Pair::with(|config| {
        config.tcp.initial_spreading = InitialSpreading::Estimated;
        config.tcp.spreading_jiffy = Duration::ZERO;
    });
    pair.packet_time = Duration::from_micros(1_200);
    let first = burst(&mut pair);
    assert_eq!(first, [0, 0, 2_000, 4_000, 6_000]);
    assert_eq!(burst(&mut pair), [0, 0, 1_200, 2_400, 3_600]);
    // Forgotten, it begins anew; a host that remembers nothing never begins.
    pair.hosts[1].forget_peers();
    assert_eq!(burst(&mut pair), first);
    let mut pair = Pair::with(|config| {
        config.tcp.initial_spreading = InitialSpreading::Estimated;
        config.tcp.spreading_jiffy = Duration::ZERO;
        config.tcp.spreading_memory = Duration::ZERO;
    });
    pair.packet_time = Duration::from_micros(1_200);
    assert_eq!([burst(&mut pair), burst(&mut pair)], [first.clone(), first]);
}
