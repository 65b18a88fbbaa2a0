//! Fast Open at both ends, worked by hand: RFC 7413.

use super::pair::{ISS_A, ISS_B};
use super::script::{T0, bare};
use crate::packet::{Flags, Segment};
use crate::tcp::{
    Config, Connection, Cookie, CookieKind, Event, FastOpenAnswer, FastOpenCache, FastOpenKey,
    FastOpenOutcome, FastOpenRequest, State, WriteFlags,
};
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

const CLIENT: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1));
const SERVER: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(192, 168, 0, 1));

fn cookie() -> Cookie {
    Cookie::new(&[0xab, 0xcd, 0x12, 0x34], false).expect("a legal length")
}

fn config() -> Arc<Config> {
    let mut config = bare();
    config.mtu = 1500;
    Arc::new(config)
}

fn drain(connection: &mut Connection, now: Instant) -> Vec<Segment> {
    core::iter::from_fn(|| connection.poll_transmit(now))
        .map(|transmit| transmit.segment)
        .collect()
}

fn opening(request: FastOpenRequest, write: u64) -> (Connection, Vec<Segment>) {
    let mut connection = Connection::connect_fast_open(T0, &config(), ISS_A, request);
    connection.write(T0, Bytes(write), WriteFlags::default());
    let sent = drain(&mut connection, T0);
    (connection, sent)
}

fn with_cookie(mss: Option<u16>) -> FastOpenRequest {
    FastOpenRequest {
        option: Some(cookie()),
        mss,
    }
}

/// SYN-ACK for our SYN and `data` bytes on it.
fn syn_ack(data: u32, option: Option<Cookie>) -> Segment {
    let mut segment = Segment {
        seq: ISS_B,
        ack: ISS_A + 1 + data,
        window: 60_000,
        flags: Flags::SYN.with(Flags::ACK).with(Flags::MSS),
        options: [1460, 0, 0, 0, 0, 0],
        ..Segment::default()
    };
    if let Some(cookie) = option {
        segment.set_cookie(&cookie);
    }
    segment
}

/// Offset, length and flags without DF of data segments.
fn data(sent: &[Segment]) -> Vec<(u32, u32)> {
    sent.iter()
        .filter(|segment| segment.payload > 0)
        .map(|segment| ((segment.seq - ISS_A.0).0.wrapping_sub(1), segment.payload))
        .collect()
}

#[test]
fn a_cookie_is_asked_for_and_learnt() {
    let request = FastOpenRequest {
        option: Some(Cookie::request(false)),
        mss: None,
    };
    let (mut connection, sent) = opening(request, 1000);
    assert_eq!((sent.len(), sent[0].payload), (1, 0)); // no data without a cookie
    assert_eq!(sent[0].cookie(), Some(Cookie::request(false)));
    connection.on_segment(T0, &syn_ack(0, Some(cookie())));
    let out = drain(&mut connection, T0);
    assert_eq!(data(&out), [(0, 1000)]);
    let outcome = connection.take_fast_open_outcome().expect("asked and answered");
    assert_eq!(
        outcome,
        FastOpenOutcome {
            mss: Some(1460),
            cookie: Some(cookie()),
            dropped: false,
            refused: None
        }
    );
    assert_eq!(connection.take_fast_open_outcome(), None);
}

#[test]
fn data_on_the_syn_is_done_when_the_syn_ack_says_so() {
    // The cached MSS of 940 leaves 900 bytes beside all options.
    let (mut connection, sent) = opening(with_cookie(Some(940)), 1900);
    assert_eq!((sent[0].payload, sent[0].seq), (900, ISS_A));
    assert_eq!(sent[0].cookie(), Some(cookie()));
    connection.on_segment(T0 + Duration::from_millis(20), &syn_ack(900, None));
    assert!(connection.detail(T0).syn_data);
    let out = drain(&mut connection, T0 + Duration::from_millis(20));
    assert_eq!((connection.acked(), data(&out)), (900, [(900, 1000)].to_vec()));
}

#[test]
fn what_the_syn_ack_leaves_out_is_sent_again_at_once_without_a_reduction() {
    let (mut connection, sent) = opening(with_cookie(None), 4000);
    assert_eq!(sent[0].payload, 1420);
    let mut answer = syn_ack(100, None);
    answer.options[0] = 1000;
    let window = connection.info(T0).cwnd;
    connection.on_segment(T0, &answer);
    let out = drain(&mut connection, T0);
    assert_eq!(
        data(&out),
        [(100, 1000), (1100, 320), (1420, 1000), (2420, 1000), (3420, 580)]
    );
    let info = connection.info(T0);
    assert_eq!(
        (
            info.stats.recoveries,
            info.stats.timeouts,
            connection.detail(T0).syn_data
        ),
        (0, 0, false)
    );
    assert!(info.cwnd >= Bytes(10 * 1000).min(window));
    // More than was sent is answered with a reset, and the attempt goes on.
    let (mut connection, _) = opening(with_cookie(None), 100);
    connection.on_segment(T0, &syn_ack(101, None));
    let out = drain(&mut connection, T0);
    assert_eq!(
        (out[0].flags.without(Flags::DF), out[0].seq),
        (Flags::RST, ISS_A + 102)
    );
    assert_eq!(connection.state(), State::SynSent);
}

#[test]
fn a_lost_syn_is_repeated_without_cookie_and_data() {
    let (mut connection, _) = opening(with_cookie(None), 1000);
    let at = connection.poll_timeout().expect("the SYN timer");
    connection.on_timeout(at);
    let again = drain(&mut connection, at);
    assert_eq!((again.len(), again[0].payload, again[0].cookie()), (1, 0, None));
    connection.on_segment(at, &syn_ack(0, None));
    assert_eq!(data(&drain(&mut connection, at)), [(0, 1000)]);
    assert!(connection.take_fast_open_outcome().expect("it was tried").dropped);
}

#[test]
fn a_server_delivers_and_answers_before_the_handshake_is_over() {
    let mut syn = Segment {
        seq: ISS_B,
        payload: 10,
        window: 32_792,
        flags: Flags::SYN.with(Flags::MSS),
        options: [1460, 0, 0, 0, 0, 0],
        ..Segment::default()
    };
    let key = FastOpenKey::new([0xa1a1_a1a1, 0xb2b2_b2b2, 0xc3c3_c3c3, 0xd4d4_d4d4]);
    // No option, a request, a wrong cookie, the right one.
    assert_eq!(key.judge(&syn, CLIENT, SERVER, true), FastOpenAnswer::Ordinary);
    let right = key.cookie(CLIENT, SERVER);
    for wrong in [Cookie::request(false), cookie()] {
        syn.set_cookie(&wrong);
        assert_eq!(
            key.judge(&syn, CLIENT, SERVER, true),
            FastOpenAnswer::Grant(right)
        );
    }
    syn.set_cookie(&right);
    assert_eq!(key.judge(&syn, CLIENT, SERVER, true), FastOpenAnswer::Open);
    assert_ne!(key.judge(&syn, SERVER, CLIENT, true), FastOpenAnswer::Open);

    let (mut connection, accepted) = Connection::accept_fast_open(T0, &config(), ISS_A, &syn);
    assert_eq!(
        (accepted.start, accepted.end, connection.readable()),
        (0, 10, Bytes(10))
    );
    assert_eq!(connection.poll_event(), Some(Event::Readable));
    let out = drain(&mut connection, T0);
    assert_eq!((out.len(), out[0].ack), (1, ISS_B + 11)); // the SYN-ACK acknowledges the data
    connection.write(T0, Bytes(2000), WriteFlags::default());
    assert_eq!(data(&drain(&mut connection, T0)), [(0, 1460), (1460, 540)]);
    // Only the SYN-ACK is repeated.
    let at = connection.poll_timeout().expect("the SYN-ACK timer");
    assert_eq!(at, T0 + Duration::from_secs(1));
    connection.on_timeout(at);
    let out = drain(&mut connection, at);
    assert_eq!(
        (out.len(), out[0].flags.contains(Flags::SYN), out[0].ack),
        (1, true, ISS_B + 11)
    );
    // The ACK of everything ends the handshake.
    let ack = Segment {
        seq: ISS_B + 11,
        ack: ISS_A + 2001,
        window: 1000,
        flags: Flags::ACK,
        ..Segment::default()
    };
    connection.on_segment(at, &ack);
    assert_eq!(
        (connection.state(), connection.acked()),
        (State::Established, 2000)
    );
}

#[test]
fn the_cookie_is_linuxs() {
    // Key and addresses of the public conformance scripts, and the cookie they expect.
    let key = FastOpenKey::new([0xa1a1_a1a1, 0xb2b2_b2b2, 0xc3c3_c3c3, 0xd4d4_d4d4]);
    let cookie = key.cookie(CLIENT, SERVER);
    assert_eq!(cookie.bytes(), 0x3021_b9d8_8901_7eeb_u64.to_be_bytes());
}

#[test]
fn a_cache_remembers_cookies_refusals_and_losses() {
    let mut cache = FastOpenCache::new();
    let asked = |cache: &FastOpenCache, now| {
        cache
            .request(now, SERVER, true)
            .and_then(|request| request.option)
    };
    assert_eq!(asked(&cache, T0), Some(Cookie::request(false)));
    let refused = |kind| FastOpenOutcome {
        mss: Some(1460),
        cookie: None,
        dropped: false,
        refused: Some(kind),
    };
    // No cookie for the standard option: once the experimental one, then the standard one for good.
    cache.learn(T0, SERVER, &refused(CookieKind::Standard));
    assert_eq!(asked(&cache, T0), Some(Cookie::request(true)));
    cache.learn(T0, SERVER, &refused(CookieKind::Experimental));
    cache.learn(T0, SERVER, &refused(CookieKind::Standard));
    assert_eq!(asked(&cache, T0), Some(Cookie::request(false)));
    // A cookie stays through a loss; after the second no data is risked for a while (RFC 7413 4.1.3.1).
    let mut outcome = refused(CookieKind::Standard);
    (outcome.cookie, outcome.refused) = (Some(cookie()), None);
    cache.learn(T0, SERVER, &outcome);
    assert_eq!(asked(&cache, T0), Some(cookie()));
    (outcome.cookie, outcome.dropped) = (None, true);
    cache.learn(T0, SERVER, &outcome);
    assert_eq!(asked(&cache, T0), Some(cookie()));
    cache.learn(T0, SERVER, &outcome);
    assert_eq!(asked(&cache, T0 + Duration::from_secs(239)), None);
    assert_eq!(asked(&cache, T0 + Duration::from_secs(240)), Some(cookie()));
    assert_eq!(
        cache.request(T0, CLIENT, false).map(|request| request.option),
        Some(None)
    );
    assert_eq!(cache.servers(), [SERVER]);
}
