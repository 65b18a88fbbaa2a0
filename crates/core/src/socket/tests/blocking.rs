//! A call that blocks is done, or fails, once the peer has answered, whatever is lost on the way.

use super::families::{CLIENT6, SERVER6, both_families};
use super::{
    CLIENT, Called, Duration, Errno, Family, Fd, How, Instant, OptionValue, Outcome, PORT, Pair, SERVER,
    SocketAddr, SocketOption,
};
use crate::socket::Stack;
use proptest::prelude::*;

/// The network: in the first 64 steps it loses everything that is sent in those whose bit is set.
#[derive(Clone, Copy, Debug)]
struct Weather {
    losses: u64,
    step: Duration,
}

/// Repeats a call until it is done, as a driver does; `peer` acts after each step. 600 s are enough for every timer here.
fn wait<T>(
    pair: &mut Pair,
    host: usize,
    weather: Weather,
    mut call: impl FnMut(&mut Stack, Instant) -> Called<T>,
    mut peer: impl FnMut(&mut Stack, Instant, u32),
) -> Result<T, Errno> {
    let until = pair.now + Duration::from_secs(600);
    let mut step = 0;
    while pair.now < until {
        match call(&mut pair.hosts[host], pair.now) {
            Ok(Outcome::Blocked) => {}
            Ok(Outcome::Done(value)) => return Ok(value),
            Err(errno) => return Err(errno),
        }
        peer(&mut pair.hosts[1 - host], pair.now, step);
        pair.cut = step < 64 && weather.losses >> step & 1 == 1;
        pair.run(weather.step);
        step += 1;
    }
    panic!("the call blocks for ever");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_blocked_call_completes_when_the_peer_answers(
        what in 0..5,
        answer in 0..3,
        len in 1..400_000_u64,
        losses in prop_oneof![Just(0), any::<u64>(), any::<u32>().prop_map(u64::from)],
        step_ms in 1..300_u64,
        later in 0..40_u32,
        v6 in any::<bool>(),
    ) {
        let mut pair = Pair::with(both_families);
        let weather = Weather { losses, step: Duration::from_millis(step_ms) };
        let (family, client_ip, server_ip) =
            if v6 { (Family::V6, CLIENT6, SERVER6) } else { (Family::V4, CLIENT, SERVER) };
        let to = SocketAddr::new(server_ip, PORT);
        let (now, listener) = (pair.now, pair.hosts[1].socket(pair.now, family).expect("a socket"));
        pair.hosts[1].bind(now, listener, to).expect("free");
        let listens = what != 0 || answer > 0;
        if listens {
            pair.hosts[1].listen(now, listener, 5).expect("bound");
        }
        let client = pair.hosts[0].socket(now, family).expect("a socket");
        if what == 0 {
            let opened = wait(&mut pair, 0, weather, |stack, now| stack.connect(now, client, to), |_, _, _| {});
            prop_assert_eq!(opened, if listens { Ok(()) } else { Err(Errno::ECONNREFUSED) });
            return Ok(());
        }
        // The accepting side waits; the other connects after a while.
        let accepted = wait(
            &mut pair, 1, if what == 1 { weather } else { Weather { losses: 0, ..weather } },
            |stack, now| stack.accept(now, listener),
            |stack, now, step| if step == later {
                let _ = stack.connect(now, client, to);
            },
        );
        let (server, peer) = accepted.expect("accept only waits");
        prop_assert_eq!(peer.ip(), client_ip);
        if what == 1 {
            return Ok(());
        }
        pair.run(Duration::from_secs(1));
        let _ = pair.hosts[0].connect(pair.now, client, to);
        match what {
            2 => {
                // A reset is sent once: it must not be lost.
                let weather = Weather { losses: if answer == 2 { 0 } else { losses }, ..weather };
                let got = wait(
                    &mut pair, 1, weather,
                    |stack, now| stack.read(now, server, len),
                    |stack, now, step| if step == later {
                        match answer {
                            0 => {
                                stack.set_nonblocking(client, true).expect("open");
                                let _ = stack.write(now, client, len);
                            }
                            1 => stack.shutdown(now, client, How::Write).expect("connected"),
                            _ => reset(stack, now, client),
                        }
                    },
                );
                match answer {
                    0 => prop_assert!(got.is_ok_and(|got| got.len > 0 && got.len <= len)),
                    1 => prop_assert_eq!(got.map(|got| got.len), Ok(0)),
                    _ => prop_assert_eq!(got.map(|got| got.len), Err(Errno::ECONNRESET)),
                }
            }
            3 => {
                pair.hosts[1].set_nonblocking(server, true).expect("open");
                let written = wait(
                    &mut pair, 0, weather,
                    |stack, now| stack.write(now, client, len),
                    |stack, now, step| if step >= later {
                        if answer < 2 {
                            let _ = stack.read(now, server, u64::MAX);
                        } else {
                            let _ = stack.close(now, server);
                        }
                    },
                );
                match written {
                    Ok(sent) => prop_assert!(sent.len == len || answer == 2 && sent.len <= len),
                    Err(errno) => {
                        prop_assert!(answer == 2 && [Errno::ECONNRESET, Errno::EPIPE].contains(&errno), "{errno:?}");
                    }
                }
            }
            _ => {
                let linger = OptionValue::Linger { on: true, seconds: 10_000 };
                pair.hosts[0].setsockopt(pair.now, client, SocketOption::Linger, &linger).expect("open");
                let _ = pair.hosts[0].write(pair.now, client, len.min(4000));
                let closed = wait(&mut pair, 0, weather, |stack, now| stack.close(now, client), |_, _, _| {});
                prop_assert_eq!(closed, Ok(()));
            }
        }
    }
}

fn reset(stack: &mut Stack, now: Instant, fd: Fd) {
    let linger = OptionValue::Linger { on: true, seconds: 0 };
    stack
        .setsockopt(now, fd, SocketOption::Linger, &linger)
        .expect("open");
    let _ = stack.close(now, fd);
}
