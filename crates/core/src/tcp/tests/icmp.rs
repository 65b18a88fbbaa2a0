//! ICMP errors in every state, worked by hand: RFC 5927, RFC 1122 4.2.3.9, RFC 6069.

use super::pair::{ISS_A, ISS_B};
use super::script::{Script, T0, bare};
use crate::packet::{Flags, Segment};
use crate::tcp::{Config, Connection, ConnectionError, Event, Icmp, IcmpKind, NetworkError, Profile, State};
use crate::time::{Duration, Instant};
use alloc::sync::Arc;
use alloc::vec::Vec;

fn message(kind: IcmpKind, offset: u32) -> Icmp {
    Icmp {
        kind,
        seq: ISS_A + offset,
    }
}

fn events(connection: &mut Connection) -> Vec<Event> {
    core::iter::from_fn(|| connection.poll_event()).collect()
}

fn connecting(profile: Profile) -> Connection {
    let mut connection = Connection::connect(T0, &Arc::new(Config::profile(profile)), ISS_A);
    while connection.poll_transmit(T0).is_some() {}
    connection
}

/// RFC 9293: SHLD-26
#[test]
fn in_syn_sent_linux_gives_up_at_any_error_and_the_rfc_at_hard_ones() {
    for (kind, error, hard) in [
        (IcmpKind::NetUnreachable, NetworkError::NetUnreachable, false),
        (IcmpKind::HostUnreachable, NetworkError::HostUnreachable, false),
        (IcmpKind::TimeExceeded, NetworkError::HostUnreachable, false),
        (IcmpKind::ParameterProblem, NetworkError::Protocol, false),
        (
            IcmpKind::SourceRouteFailed,
            NetworkError::SourceRouteFailed,
            false,
        ),
        (IcmpKind::Filtered, NetworkError::HostUnreachable, false),
        (
            IcmpKind::ProtocolUnreachable,
            NetworkError::ProtocolUnreachable,
            true,
        ),
        (IcmpKind::PortUnreachable, NetworkError::PortUnreachable, true),
    ] {
        for (profile, ends) in [(Profile::Linux, true), (Profile::Rfc, hard)] {
            let mut connection = connecting(profile);
            connection.on_icmp(T0, &message(kind, 0));
            if ends {
                assert_eq!(
                    events(&mut connection),
                    [Event::Failed(ConnectionError::Network(error))],
                    "{kind:?}"
                );
                assert_eq!(
                    (connection.state(), connection.poll_timeout()),
                    (State::Closed, None)
                );
            } else {
                assert_eq!(events(&mut connection), [Event::SoftError], "{kind:?}");
                assert_eq!(connection.take_soft_error(), Some(error));
                assert_eq!(connection.state(), State::SynSent);
            }
        }
    }
}

/// RFC 9293: MUST-54
#[test]
fn a_quote_outside_what_is_in_flight_is_ignored() {
    let mut connection = connecting(Profile::Linux);
    for offset in [u32::MAX, 2, 1 << 31] {
        connection.on_icmp(T0, &message(IcmpKind::PortUnreachable, offset));
    }
    assert_eq!(connection.state(), State::SynSent);
    assert_eq!(connection.icmp_ignored(), 3);

    // Established, bytes 0 to 2,999 in flight (offsets 1 to 3,000), the first thousand acknowledged.
    let mut script = Script::open(&bare(), 10);
    script.write(3);
    script.ack(1, &[]);
    script.events();
    for (offset, believed) in [
        (0, false),
        (1000, false),
        (1001, true),
        (3001, true),
        (3002, false),
    ] {
        script
            .connection
            .on_icmp(script.now, &message(IcmpKind::HostUnreachable, offset));
        let expected: &[Event] = if believed { &[Event::SoftError] } else { &[] };
        assert_eq!(script.events(), expected, "offset {offset}");
    }
    assert_eq!(script.connection.icmp_ignored(), 3);
}

/// RFC 9293: MUST-47, MUST-55, MUST-56
#[test]
fn every_error_is_soft_once_established_and_source_quench_is_nothing() {
    for kind in [
        IcmpKind::ProtocolUnreachable,
        IcmpKind::PortUnreachable,
        IcmpKind::NetUnreachable,
        IcmpKind::ParameterProblem,
    ] {
        let mut script = Script::open(&Config::profile(Profile::Linux), 10);
        script.write(1);
        script.events();
        script.connection.on_icmp(script.now, &message(kind, 1));
        assert_eq!(script.events(), [Event::SoftError]);
        assert_eq!(script.connection.state(), State::Established);
    }
    let mut script = Script::open(&bare(), 10);
    script.write(1);
    script.events();
    let before = script.cwnd();
    for kind in [IcmpKind::SourceQuench, IcmpKind::Redirect] {
        script.connection.on_icmp(script.now, &message(kind, 1));
    }
    assert_eq!((script.events().len(), script.cwnd()), (0, before)); // RFC 9293 MUST-55
    assert_eq!(script.connection.take_soft_error(), None);
}

/// RFC 9293: SHLD-25
#[test]
fn a_timeout_after_a_soft_error_tells_the_error() {
    let mut config = bare();
    config.retries = 3;
    let mut script = Script::open(&config, 10);
    script.write(1);
    script
        .connection
        .on_icmp(script.now, &message(IcmpKind::NetUnreachable, 1));
    script.events();
    while script.connection.poll_timeout().is_some() {
        script.timer();
    }
    let reason = ConnectionError::Network(NetworkError::NetUnreachable);
    assert!(script.events().contains(&Event::Failed(reason)));
}

#[test]
fn a_half_open_passive_connection_is_forgotten_as_linux_does() {
    for (kind, ends) in [
        (IcmpKind::HostUnreachable, true),
        (IcmpKind::TimeExceeded, true),
        (IcmpKind::PortUnreachable, false),
        (IcmpKind::NetProhibited, false),
    ] {
        let syn = Segment {
            seq: ISS_B,
            flags: Flags::SYN,
            window: 1000,
            ..Segment::default()
        };
        let config = Arc::new(Config::profile(Profile::Linux));
        let mut connection = Connection::accept(T0, &config, ISS_A, &syn);
        while connection.poll_transmit(T0).is_some() {}
        connection.on_icmp(T0, &message(kind, 0));
        assert_eq!(connection.state() == State::Closed, ends, "{kind:?}");
    }
}

#[test]
fn an_unreachable_network_takes_one_backoff_back() {
    // RTO 1 s: timeouts at 1, 3 and 7 s; the next is due 8 s later. At 8 s a message about the last copy halves that to
    // 4 s after the copy, 11 s; another at 10.5 s to 2 s after it, which is over, so it goes out at once.
    let mut config = bare();
    config.path.icmp_reverts_backoff = true;
    let mut script = Script::open(&config, 10);
    script.write(1);
    for expected in [1000, 3000, 7000] {
        assert_eq!(script.timer(), (expected, [0].to_vec()));
    }
    let due = |script: &Script| {
        let at: Instant = script.connection.poll_timeout().expect("a timer runs");
        at.since(T0).as_millis()
    };
    assert_eq!(due(&script), 15_000);
    let unreachable = message(IcmpKind::NetUnreachable, 1);
    script
        .at(8000)
        .connection
        .on_icmp(T0 + Duration::from_secs(8), &unreachable);
    assert_eq!(due(&script), 11_000);
    assert!(script.sent().is_empty());
    script
        .at(10_500)
        .connection
        .on_icmp(T0 + Duration::from_millis(10_500), &unreachable);
    assert_eq!(script.sent(), [0]);
    assert_eq!(due(&script), 14_500); // backed off again, from now
    // Off by default in the profile `rfc`.
    let mut script = Script::open(&bare(), 10);
    script.write(1);
    script.timer();
    script.connection.on_icmp(script.now, &unreachable);
    assert_eq!(due(&script), 3000);
}
