//! RFC 9293's requirements on one connection, each test with the identifiers it stands for (appendix B of the RFC).
//!
//! The table of all requirements and where each is tested is `docs/rfc9293.md`.

use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{
    Config, Connection, ConnectionError, DelayedAck, EstablishedState, Event, Half, IpVersion, KeepAlive,
    Profile, Setting, State, WriteFlags,
};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_core::wire;
use fleetfoot_testkit::rig::{CloseWhen, EndSetup, Fate, Hop, Rig};
use std::net::SocketAddr;
use std::sync::Arc;

const ISS: SeqNumber = SeqNumber(u32::MAX - 999);
const IRS: SeqNumber = SeqNumber(u32::MAX - 4);
const T0: Instant = Instant::from_millis(1000);
const MSS: u32 = 1000;

/// A connection and a peer that the test plays.
struct Peer {
    connection: Connection,
    now: Instant,
    window: u16,
}

fn plain() -> Config {
    let mut config = Config::profile(Profile::Rfc);
    config.mtu = 1040;
    config.timestamps = false;
    config
}

fn at(ms: u64) -> Instant {
    T0 + Duration::from_millis(ms)
}

/// From the peer, in bytes after both initial numbers.
fn segment(seq: u32, ack: u32, payload: u32) -> Segment {
    Segment {
        seq: IRS + 1 + seq,
        ack: ISS + 1 + ack,
        payload,
        window: 60_000,
        flags: Flags::ACK,
        ttl: 64,
        overhead: 40,
        ..Segment::default()
    }
}

impl Peer {
    /// Established, with a window of ten segments.
    fn open(config: &Config) -> Peer {
        let mut config = config.clone();
        config.window_scale = config.window_scale.map(|_| 0);
        let state = EstablishedState {
            srtt: Duration::from_millis(100),
            rttvar: Duration::ZERO,
            cwnd: Bytes(u64::from(10 * MSS)),
            ssthresh: Bytes::MAX,
            mss: MSS,
            iss: ISS,
            irs: IRS,
            peer_window: Bytes(60_000),
        };
        Peer {
            connection: Connection::established(T0, &Arc::new(config), state),
            now: T0,
            window: 60_000,
        }
    }

    fn drain(&mut self) -> Vec<Segment> {
        let out = core::iter::from_fn(|| self.connection.poll_transmit(self.now))
            .map(|transmit| transmit.segment)
            .collect();
        self.connection.check(true);
        out
    }

    fn write(&mut self, bytes: u64) -> Vec<Segment> {
        assert_eq!(
            self.connection
                .write(self.now, Bytes(bytes), WriteFlags::default()),
            Bytes(bytes)
        );
        self.drain()
    }

    fn arrive(&mut self, segment: &Segment) -> Vec<Segment> {
        self.connection.on_segment(self.now, segment);
        self.drain()
    }

    fn ack(&mut self, to: u32) -> Vec<Segment> {
        let mut ack = segment(0, to, 0);
        ack.window = self.window;
        self.arrive(&ack)
    }

    /// The next timer: when, in ms after the start, and what leaves.
    fn timer(&mut self) -> (u64, Vec<Segment>) {
        self.now = self.connection.poll_timeout().expect("a timer runs");
        self.connection.on_timeout(self.now);
        (self.now.since(T0).as_millis(), self.drain())
    }

    fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.connection.poll_event()).collect()
    }
}

fn lengths(segments: &[Segment]) -> Vec<u32> {
    segments.iter().map(|segment| segment.payload).collect()
}

fn offset(segment: &Segment) -> u32 {
    segment.seq.0.wrapping_sub(ISS.0 + 1)
}

/// A handshake in which the peer's SYN-ACK carries `options` (as in [`Segment::options`]) and `flags`.
fn handshake(config: &Config, options: u32, flags: Flags) -> (Connection, Segment) {
    let mut connection = Connection::connect(T0, &Arc::new(config.clone()), ISS);
    let syn = connection.poll_transmit(T0).expect("a SYN").segment;
    let answer = Segment {
        seq: IRS,
        ack: ISS + 1,
        options: [options, 0, 0, 0, 0, 0],
        window: 60_000,
        flags: Flags::SYN.with(Flags::ACK).with(flags),
        overhead: 44,
        ..Segment::default()
    };
    connection.on_segment(at(10), &answer);
    assert_eq!(connection.state(), State::Established);
    (connection, syn)
}

/// RFC 9293: MUST-1, REC-1
#[test]
fn windows_are_unsigned_and_as_large_as_scaling_makes_them() {
    for (field, scale) in [
        (0x7fff_u16, 0),
        (0x8000, 0),
        (0xffff, 0),
        (0xffff, 7),
        (0xffff, 14),
    ] {
        let mut config = plain();
        config.window_scale = Some(14);
        let (mut connection, _) = handshake(&config, scale << 16, Flags::SCALE);
        let mut ack = segment(0, 0, 0);
        ack.window = field;
        connection.write(at(10), Bytes(1), WriteFlags::default());
        connection.on_segment(at(20), &ack);
        assert_eq!(
            connection.info(at(20)).peer_window,
            Bytes(u64::from(field) << scale)
        );
    }
}

fn addresses() -> (SocketAddr, SocketAddr) {
    (
        "10.0.0.1:1".parse().expect("an address"),
        "10.0.0.2:2".parse().expect("an address"),
    )
}

/// The bytes of `blank` with other option bytes, or with IP options, and right checksums.
fn packet(blank: &Segment, ip_options: &[u8], options: &[u8]) -> Vec<u8> {
    let (source, destination) = addresses();
    let mut bytes = vec![0; 300];
    let mut blank = *blank;
    blank.overhead = 40 + options.len() as u8;
    let len = wire::encode(&mut bytes, &blank, source, destination, &[]).expect("it fits");
    bytes.truncate(len);
    bytes[40..40 + options.len()].copy_from_slice(options);
    bytes[36..38].fill(0);
    let mut sum = wire::checksum::Sum::pseudo_header(source.ip(), destination.ip(), 6, len as u32 - 20);
    sum.add(&bytes[20..]);
    let sum = sum.finish();
    bytes[36..38].copy_from_slice(&sum.to_be_bytes());
    bytes.splice(20..20, ip_options.iter().copied());
    bytes[0] = 0x45 + (ip_options.len() / 4) as u8;
    let total = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    bytes[10..12].fill(0);
    let mut sum = wire::checksum::Sum::default();
    sum.add(&bytes[..20 + ip_options.len()]);
    let sum = sum.finish();
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// RFC 9293: MUST-4, MUST-5, MUST-6, MUST-7, MUST-64
#[test]
fn options_of_every_kind_and_place_are_read() {
    let mut syn = segment(0, 0, 0);
    syn.flags = Flags::SYN;
    // End, no-operation and MSS, at any octet; unknown ones are stepped over by their length.
    for options in [
        &[2, 4, 5, 180][..],
        &[1, 1, 1, 2, 4, 5, 180, 0],
        &[1, 2, 4, 5, 180, 0, 9, 9],
        &[253, 5, 1, 2, 3, 2, 4, 5, 180, 0, 0, 0],
        &[77, 2, 1, 2, 4, 5, 180, 0],
    ] {
        let read = wire::parse(&packet(&syn, &[], options)).expect("well formed");
        assert_eq!(read.segment.mss(), Some(1460), "{options:?}");
    }
    assert_eq!(
        wire::parse(&packet(&syn, &[], &[0, 2, 4, 5])).map(|p| p.segment.mss()),
        Ok(None)
    );
    // In segments that are not SYNs too: timestamps beside an unknown option; an MSS there means nothing.
    let data = segment(0, 0, 100);
    let options = [99, 3, 7, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6, 2, 4, 5, 180, 0, 0, 0];
    let read = wire::parse(&packet(&data, &[], &options))
        .expect("well formed")
        .segment;
    assert_eq!((read.tsval, read.tsecr, read.mss()), (5, 6, None));
    let mut peer = Peer::open(&plain());
    peer.arrive(&read);
    assert_eq!(peer.connection.received(), 100);
    // Illegal lengths.
    for options in [[2, 0, 0, 0], [2, 1, 0, 0], [2, 9, 0, 0], [1, 1, 1, 8]] {
        assert!(wire::parse(&packet(&data, &[], &options)).is_err(), "{options:?}");
    }
}

/// RFC 9293: MUST-50
#[test]
fn unknown_ip_options_are_stepped_over() {
    for options in [
        &[1, 1, 1, 0][..],
        &[200, 8, 1, 2, 3, 4, 5, 6],
        &[148, 4, 0, 0],
        &[0x44, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let read = wire::parse(&packet(&segment(7, 0, 33), options, &[])).expect("well formed");
        assert_eq!(
            (read.segment.seq, read.segment.payload),
            (IRS + 8, 33),
            "{options:?}"
        );
    }
}

/// RFC 9293: MUST-68, MUST-69, MUST-65, MUST-2, MUST-58
#[test]
fn what_is_sent_has_sound_options_checksums_and_an_mss_on_syns_only() {
    for profile in Profile::ALL {
        let config = Arc::new(Config::profile(profile));
        let setup = |bytes| EndSetup {
            config: Arc::clone(&config),
            iss: ISS,
            bytes,
            close: CloseWhen::Written,
            delay: Duration::from_millis(5),
            read_every: Duration::ZERO,
            read_bytes: 0,
        };
        let mut seen = [0; 2];
        let network = |hop: &Hop| {
            let (source, destination) = addresses();
            let mut bytes = vec![0; 70_000];
            let len = wire::encode(&mut bytes, &hop.segment, source, destination, &[]).expect("it fits");
            let parsed = wire::parse(&bytes[..len]).expect("with a right checksum");
            let mut options = &bytes[40..parsed.payload.start];
            let mut mss = false;
            while let [kind, rest @ ..] = options {
                match kind {
                    0 => {
                        assert!(rest.iter().all(|&byte| byte == 0), "zeros after the end");
                        break;
                    }
                    1 => options = rest,
                    _ => {
                        mss |= *kind == 2;
                        let len = usize::from(rest[0]);
                        assert!(len >= 2 && len <= options.len(), "kind {kind} has a length");
                        options = &options[len..];
                    }
                }
            }
            let syn = hop.segment.flags.contains(Flags::SYN);
            assert_eq!(mss, syn, "an MSS on each SYN and nowhere else");
            seen[usize::from(syn)] += 1;
            if hop.index % 17 == 5 {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        };
        let mut rig = Rig::new([setup(200_000), setup(20_000)], false, Duration::ZERO, network);
        while rig.step() {}
        assert!(rig.finished(), "{profile:?}");
        assert!(seen[0] > 100 && seen[1] >= 2, "{seen:?}");
    }
}

/// RFC 9293: MUST-12
#[test]
fn the_application_learns_how_the_connection_ended() {
    let mut peer = Peer::open(&plain());
    peer.connection.shutdown(T0, Half::Write);
    peer.drain();
    let mut fin = segment(0, 1, 0);
    fin.flags = fin.flags.with(Flags::FIN);
    peer.arrive(&fin);
    peer.timer();
    let events = peer.events();
    assert!(events.contains(&Event::Closed) && !events.iter().any(|event| matches!(event, Event::Failed(_))));
    let mut peer = Peer::open(&plain());
    let mut reset = segment(0, 0, 0);
    reset.flags = Flags::RST;
    peer.arrive(&reset);
    assert_eq!(peer.events(), [Event::Failed(ConnectionError::Reset)]);
}

/// RFC 9293: MUST-13
#[test]
fn the_active_closer_lingers_for_two_msl() {
    let mut config = plain();
    config.msl = Duration::from_secs(120);
    let mut peer = Peer::open(&config);
    peer.connection.close(T0);
    peer.drain();
    peer.now = at(50);
    let mut fin = segment(0, 1, 0);
    fin.flags = fin.flags.with(Flags::FIN);
    assert_eq!(peer.arrive(&fin).len(), 1);
    assert_eq!(peer.connection.state(), State::TimeWait);
    assert_eq!(peer.timer().0, 240_050);
    assert_eq!(peer.connection.state(), State::Closed);
}

/// RFC 9293: MUST-14, MUST-16, MUST-67, SHLD-5
#[test]
fn both_ends_say_their_mss_and_the_smaller_holds() {
    for (mtu, theirs, expected) in [
        (1500, 1400, 1400),
        (1500, 9000, 1460),
        (1500, 1460, 1460),
        (576, 1460, 536),
    ] {
        let mut config = plain();
        config.mtu = mtu;
        let (mut connection, syn) = handshake(&config, theirs, Flags::MSS);
        assert_eq!(
            u32::from(syn.mss().expect("an MSS option")),
            mtu - 40,
            "what can be received: MUST-67"
        );
        connection.write(at(10), Bytes(100_000), WriteFlags::default());
        let sent: Vec<_> = core::iter::from_fn(|| connection.poll_transmit(at(10))).collect();
        assert_eq!(
            sent.iter().map(|transmit| transmit.segment.payload).max(),
            Some(expected)
        );
        // The listener's side.
        let mut connection = Connection::accept(T0, &Arc::new(config), ISS, &syn);
        let answer = connection.poll_transmit(T0).expect("a SYN-ACK").segment;
        assert_eq!(answer.mss().map(u32::from), Some(mtu - 40));
    }
    // What options take comes off (RFC 6691).
    let mut config = plain();
    config.mtu = 1500;
    config.timestamps = true;
    let (connection, _) = handshake(&config, 1460, Flags::MSS.with(Flags::TIMESTAMPS));
    assert_eq!(connection.info(at(10)).mss, 1448);
}

/// RFC 9293: MUST-15
#[test]
fn without_an_mss_option_the_default_is_assumed() {
    let mut config = plain();
    config.mtu = 1500;
    let (connection, _) = handshake(&config, 0, Flags::default());
    assert_eq!(connection.info(at(10)).mss, 536);
    config.path.ip = IpVersion::V6;
    let (connection, syn) = handshake(&config, 0, Flags::default());
    assert_eq!((connection.info(at(10)).mss, syn.mss()), (1220, Some(1440)));
}

/// RFC 9293: SHLD-6
#[test]
fn the_smallest_of_what_an_interface_carries_is_announced() {
    // The owner of an interface whose packets are not all of one size says the smallest; the link's own MTU bounds it.
    for (smallest, announced) in [(500, 500), (1400, 1400), (5000, 1460)] {
        let mut config = plain();
        config.mtu = 1500;
        let mut connection = Connection::connect(T0, &Arc::new(config), ISS);
        connection.set(T0, Setting::MaxSegment(smallest));
        let syn = connection.poll_transmit(T0).expect("a SYN").segment;
        assert_eq!(syn.mss(), Some(announced));
    }
}

/// RFC 9293: MUST-31, MUST-33
#[test]
fn urgent_data_has_any_length() {
    let config = plain();
    let (mut sender, mut receiver) = (Peer::open(&config), Peer::open(&config));
    let total = 200_000;
    assert_eq!(sender.connection.write_urgent(T0, Bytes(total)), Bytes(total));
    let (mut moved, mut farthest) = (0, 0);
    while receiver.connection.received() < total {
        for mut segment in sender.drain() {
            // The peer's numbers are the sender's, moved.
            segment.seq = SeqNumber(segment.seq.0.wrapping_sub(ISS.0).wrapping_add(IRS.0));
            segment.ack = ISS + 1;
            receiver.connection.on_segment(T0, &segment);
        }
        moved += receiver
            .events()
            .iter()
            .filter(|&&event| event == Event::Urgent)
            .count();
        if let Some(mark) = receiver.connection.urgent_mark() {
            assert!(mark >= farthest, "the point does not move back");
            farthest = mark;
        }
        receiver.connection.read(T0, Bytes::MAX);
        receiver.drain();
        let acked = receiver.connection.received() as u32;
        sender.connection.on_segment(T0, &segment(0, acked, 0));
    }
    assert!(moved > 1, "it moved as the end came within reach of the pointer");
    assert_eq!(farthest, total - 1, "the last urgent octet");
    assert_eq!(receiver.connection.urgent_mark(), None, "nothing urgent is left");
}

/// RFC 9293: MUST-17, SHLD-7
#[test]
fn nagle_is_there_and_can_be_switched_off() {
    let mut peer = Peer::open(&plain());
    assert_eq!(lengths(&peer.write(100)), [100]);
    assert_eq!(lengths(&peer.write(100)), [], "held while data is out");
    peer.connection.set(T0, Setting::Nagle(false));
    assert_eq!(lengths(&peer.drain()), [100]);
    assert_eq!(lengths(&peer.write(70)), [70]);
    peer.connection.set(T0, Setting::Nagle(true));
    assert_eq!(lengths(&peer.write(50)), []);
    assert_eq!(lengths(&peer.ack(270)), [50]);
}

/// RFC 9293: MUST-18
#[test]
fn a_retransmitted_segment_gives_no_sample() {
    // RFC 6298 3, Karn: SRTT stays although the answer comes late; the next new segment gives a sample.
    let mut peer = Peer::open(&plain());
    peer.write(1000);
    while peer.connection.stats().timeouts == 0 {
        peer.timer();
    }
    peer.now += Duration::from_millis(700);
    peer.ack(1000);
    let info = peer.connection.info(peer.now);
    assert_eq!(
        (info.srtt, info.stats.retransmits > 0),
        (Some(Duration::from_millis(100)), true)
    );
    peer.write(1000);
    peer.now += Duration::from_millis(180);
    peer.ack(2000);
    assert_eq!(
        peer.connection.info(peer.now).srtt,
        Some(Duration::from_millis(110)),
        "7/8 of 100 and 1/8 of 180"
    );
}

/// RFC 9293: MUST-19
#[test]
fn slow_start_doubles_avoidance_adds_one_segment_and_timeouts_double() {
    let mut config = plain();
    config.congestion_control = "reno";
    config.delayed_ack = DelayedAck::Off;
    config.hystart = fleetfoot_core::cc::HyStart::Off;
    config.tail_loss_probe = fleetfoot_core::tcp::TailLossProbe::Off;
    config.frto = false; // the peer acknowledges originals, which shows each timeout to be spurious
    let mut peer = Peer::open(&config);
    let mut acked = 0;
    let mut round = |peer: &mut Peer| {
        peer.now += Duration::from_millis(100);
        let flight = peer.connection.info(peer.now).flight.get() as u32 / MSS;
        for _ in 0..flight {
            acked += MSS;
            peer.ack(acked);
        }
        peer.connection.info(peer.now).cwnd.get() / u64::from(MSS)
    };
    peer.write(3_000_000);
    assert_eq!([round(&mut peer), round(&mut peer)], [20, 40], "slow start");
    // Three timeouts in a row: 1, 2, 4 s apart (SRTT 100 ms, floor 1 s).
    let mut times = Vec::new();
    while times.len() < 4 {
        let before = peer.connection.stats().timeouts;
        let (ms, _) = peer.timer();
        if peer.connection.stats().timeouts > before {
            times.push(ms);
        }
    }
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [2000, 4000, 8000]);
    let info = peer.connection.info(peer.now);
    assert_eq!(
        (info.cwnd, info.ssthresh),
        (Bytes(1000), Bytes(20_000)),
        "half of what was out"
    );
    // Up to ssthresh by doubling, beyond it by one segment per round trip.
    for _ in 0..7 {
        round(&mut peer);
    }
    let base = round(&mut peer);
    assert!(base >= 20, "{base}");
    assert_eq!(
        [round(&mut peer), round(&mut peer)],
        [base + 1, base + 2],
        "congestion avoidance"
    );
}

/// RFC 9293: MUST-20, SHLD-9, SHLD-10, SHLD-11
#[test]
fn r1_is_three_retransmissions_and_r2_beyond_a_hundred_seconds() {
    for profile in [
        Profile::Linux3_2,
        Profile::Linux2015,
        Profile::Linux,
        Profile::Rfc,
    ] {
        let mut config = Config::profile(profile);
        config.timestamps = false;
        config.tail_loss_probe = fleetfoot_core::tcp::TailLossProbe::Off;
        let mut peer = Peer::open(&config);
        peer.write(1000);
        let mut trouble = None;
        while peer.connection.state() != State::Closed {
            peer.timer();
            if trouble.is_none() && peer.events().contains(&Event::Retransmitting) {
                trouble = Some(peer.connection.stats().retransmits);
            }
        }
        assert!(
            trouble.is_some_and(|count| (2..=3).contains(&count)),
            "{profile:?}: {trouble:?}"
        );
        assert!(peer.now > at(100_000), "{profile:?}: given up at {:?}", peer.now);
    }
}

/// RFC 9293: MUST-22, MUST-23
#[test]
fn a_syn_is_repeated_for_three_minutes_and_the_application_is_informed() {
    let mut connection = Connection::connect(T0, &Arc::new(plain()), ISS);
    assert!(connection.poll_transmit(T0).is_some());
    let (mut now, mut syns) = (T0, 1);
    while let Some(deadline) = connection.poll_timeout() {
        now = deadline;
        connection.on_timeout(now);
        syns += core::iter::from_fn(|| connection.poll_transmit(now)).count();
    }
    assert!(
        now.since(T0) >= Duration::from_secs(180),
        "{:?} after {syns} SYNs",
        now.since(T0)
    );
    let events: Vec<_> = core::iter::from_fn(|| connection.poll_event()).collect();
    assert!(events.contains(&Event::Failed(ConnectionError::TimedOut)));
}

/// RFC 9293: MUST-24, MUST-25, MUST-27, MUST-28, MAY-5
#[test]
fn keep_alive_is_off_until_asked_for_and_waits_two_hours() {
    for profile in Profile::ALL {
        assert_eq!(
            Config::profile(profile).keep_alive,
            None,
            "{profile:?}: off by default"
        );
    }
    let mut peer = Peer::open(&plain());
    assert_eq!(peer.connection.poll_timeout(), None);
    peer.connection.set(T0, Setting::KeepAlive(true));
    assert_eq!(peer.connection.poll_timeout(), Some(at(7_200_000)), "the default");
    peer.connection.set(T0, Setting::KeepAlive(false));
    assert_eq!(peer.connection.poll_timeout(), None);
    let mut config = plain();
    config.keep_alive = Some(KeepAlive {
        idle: Duration::from_secs(33),
        interval: Duration::from_secs(5),
        probes: 4,
    });
    let peer = Peer::open(&config);
    assert_eq!(peer.connection.poll_timeout(), Some(at(33_000)));
}

/// RFC 9293: MUST-26, MUST-29, SHLD-12
#[test]
fn keep_alive_probes_an_idle_connection_only_and_without_data() {
    let mut config = plain();
    config.keep_alive = Some(KeepAlive {
        idle: Duration::from_secs(10),
        interval: Duration::from_secs(1),
        probes: 3,
    });
    let mut peer = Peer::open(&config);
    // Something arrives at 4 s: the interval begins anew.
    peer.now = at(4000);
    peer.arrive(&segment(0, 0, 100));
    peer.drain();
    let first = loop {
        let (ms, out) = peer.timer();
        if ms >= 10_000 {
            break (ms, out);
        }
    };
    assert_eq!((first.0, lengths(&first.1)), (14_000, vec![0]));
    assert_eq!(first.1[0].seq, ISS, "one before SND.NXT");
    // Unanswered once, answered then: it lives.
    assert_eq!(peer.timer().0, 15_000);
    peer.now = at(15_100);
    peer.arrive(&segment(100, 0, 0));
    assert_eq!(peer.connection.poll_timeout(), Some(at(25_100)));
    // While data is out no probe is sent.
    peer.write(1000);
    while peer.now < at(60_000) {
        let (_, out) = peer.timer();
        assert!(
            out.iter().all(|segment| segment.payload == 1000),
            "retransmissions, not probes"
        );
    }
}

/// RFC 9293: MUST-34, MUST-35, SHLD-15, SHLD-16, SHLD-17, MAY-7
#[test]
fn a_window_that_shrinks_below_what_is_out() {
    let mut peer = Peer::open(&plain());
    assert_eq!(peer.write(20_000).len(), 10);
    // Down to nothing over nine segments that are out: no new data, the old is repeated, answers keep it alive.
    peer.window = 0;
    peer.now = at(100);
    assert_eq!(peer.ack(1000), []);
    for _ in 0..40 {
        let (_, out) = peer.timer();
        assert!(out.iter().all(|segment| offset(segment) < 10_000), "nothing new");
        peer.ack(1000);
    }
    assert!(peer.now > at(600_000));
    assert_eq!(peer.connection.state(), State::Established);
    // All of that is acknowledged, the window still shut: probes.
    peer.ack(10_000);
    let (_, probe) = peer.timer();
    assert_eq!((lengths(&probe), offset(&probe[0])), (vec![1], 10_000));
    peer.window = 60_000;
    assert!(lengths(&peer.ack(10_000)).iter().sum::<u32>() > 0);
}

/// RFC 9293: MUST-36, MUST-37, SHLD-29, SHLD-30, MAY-8
#[test]
fn a_shut_window_is_probed_after_an_rto_and_then_ever_more_rarely() {
    let mut peer = Peer::open(&plain());
    peer.write(1000);
    peer.window = 0;
    peer.now = at(100);
    peer.ack(1000);
    assert_eq!(peer.write(5000), []);
    let mut times = Vec::new();
    for _ in 0..30 {
        let (ms, out) = peer.timer();
        assert_eq!(lengths(&out), [1]);
        times.push(ms);
        peer.ack(1000);
    }
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(times[0], 100 + 1000, "an RTO after the window shut");
    assert_eq!(gaps[..6], [2000, 4000, 8000, 16_000, 32_000, 60_000]);
    assert!(
        gaps[6..].iter().all(|&gap| gap == 60_000),
        "up to the cap of the RTO"
    );
    assert_eq!(
        peer.events()
            .iter()
            .filter(|event| matches!(event, Event::Failed(_)))
            .count(),
        0,
        "for ever"
    );
}

/// RFC 9293: MUST-38, SHLD-28
#[test]
fn the_sender_avoids_silly_windows() {
    // A window that opens by drips: only full segments, half the largest window, or the override leave.
    let mut config = plain();
    config.nagle = false;
    let mut peer = Peer::open(&config);
    peer.write(8000);
    peer.window = 0;
    peer.now = at(100);
    peer.ack(8000);
    assert_eq!(peer.write(50_000), []);
    for window in [1, 10, 100, 999] {
        peer.window = window;
        peer.now += Duration::from_millis(10);
        assert_eq!(peer.ack(8000), [], "{window} bytes are not worth a segment");
    }
    peer.window = 1000;
    assert_eq!(lengths(&peer.ack(8000)), [1000]);
    peer.window = 2500;
    assert_eq!(
        lengths(&peer.ack(9000)),
        [1000, 1000],
        "not the 500 that are left of the window"
    );
}

/// RFC 9293: MUST-39, SHLD-14
#[test]
fn the_right_edge_of_the_window_moves_right_only_and_by_worthwhile_steps() {
    let mut config = plain();
    config.receive_buffer = Bytes(4000);
    config.delayed_ack = DelayedAck::Off;
    let mut peer = Peer::open(&config);
    let mut rng = fleetfoot_core::rng::Rng::from_seed(39);
    let (mut sent, mut edge) = (0_u32, 4000_u32);
    for _ in 0..3000 {
        let room = edge - sent;
        let payload = (1 + rng.below(600) as u32).min(room);
        let mut out = Vec::new();
        if payload > 0 {
            out = peer.arrive(&segment(sent, 0, payload));
            sent += payload;
        }
        peer.connection.read(peer.now, Bytes(rng.below(700)));
        out.extend(peer.drain());
        for ack in out {
            let now = ack.ack.0.wrapping_sub(IRS.0 + 1) + u32::from(ack.window);
            assert!(now == edge || now >= edge + 1000, "from {edge} to {now}");
            edge = now;
        }
    }
    assert!(sent > 100_000);
}

/// RFC 9293: MUST-40, SHLD-18, SHLD-19
#[test]
fn acknowledgments_are_delayed_by_less_than_half_a_second_and_by_one_segment() {
    for profile in Profile::ALL {
        let mut config = Config::profile(profile);
        config.timestamps = false;
        let mut peer = Peer::open(&config);
        let (mut owed, mut since) = (0, peer.now);
        for index in 0..200_u32 {
            peer.now += Duration::from_millis(u64::from(index % 7) * 100);
            while let Some(timeout) = peer.connection.poll_timeout()
                && timeout <= peer.now
            {
                assert!(timeout.since(since) < Duration::from_millis(500), "{profile:?}");
                peer.connection.on_timeout(timeout);
                let out = core::iter::from_fn(|| peer.connection.poll_transmit(timeout)).count();
                assert_eq!(out, 1, "{profile:?}: the delayed acknowledgment");
                owed = 0;
            }
            assert!(
                owed == 0 || peer.now.since(since) < Duration::from_millis(500),
                "{profile:?}"
            );
            if owed == 0 {
                since = peer.now;
            }
            let mut out = peer.arrive(&segment(index * 1000, 0, 1000));
            peer.connection.read(peer.now, Bytes::MAX);
            out.extend(peer.drain());
            owed = if out.is_empty() { owed + 1 } else { 0 };
            assert!(owed < 2, "{profile:?}: at least every second full segment");
        }
    }
    // SHLD-18: with the RFC's profile one of two is answered.
    let mut peer = Peer::open(&plain());
    let answers = (0..10)
        .filter(|index| !peer.arrive(&segment(index * 1000, 0, 1000)).is_empty())
        .count();
    assert_eq!(answers, 5);
}

/// RFC 9293: MUST-58, MUST-59, MAY-16
#[test]
fn a_batch_of_segments_is_acknowledged_once() {
    let mut peer = Peer::open(&plain());
    for index in 0..10 {
        peer.connection.on_segment(T0, &segment(index * 1000, 0, 1000));
    }
    let out = peer.drain();
    assert_eq!((out.len(), out[0].ack), (1, IRS + 10_001));
    // And with data to send, the acknowledgment rides on it.
    for index in 10..12 {
        peer.connection.on_segment(T0, &segment(index * 1000, 0, 1000));
    }
    let out = peer.write(500);
    assert_eq!((lengths(&out), out[0].ack), (vec![500], IRS + 12_001));
}

/// RFC 9293: MUST-60, MUST-61, SHLD-27
#[test]
fn without_a_push_call_data_flows_in_full_segments_and_the_last_is_pushed() {
    let mut config = plain();
    config.nagle = true;
    let mut peer = Peer::open(&config);
    // Small writes while data is out are merged.
    assert_eq!(lengths(&peer.write(10)), [10]);
    for _ in 0..36 {
        peer.write(70);
    }
    let out = peer.ack(10);
    let info = peer.connection.info(peer.now);
    assert_eq!(info.flight.get() + info.unsent.get(), 36 * 70);
    assert!(
        lengths(&out)
            .iter()
            .all(|&payload| payload == 1000 || payload == 520),
        "{:?}",
        lengths(&out)
    );
    // Everything leaves without another call, and what empties the queue carries PSH.
    peer.now = at(100);
    let rest = peer.ack(2010);
    let all: Vec<_> = out.iter().chain(&rest).collect();
    let last = all.iter().rfind(|segment| segment.payload > 0).expect("data");
    assert_eq!(offset(last) + last.payload, 10 + 36 * 70);
    assert!(last.flags.contains(Flags::PSH));
}

/// RFC 9293: MUST-66, SHLD-2
#[test]
fn a_reset_counts_with_a_shut_window_and_with_data() {
    let mut config = plain();
    config.receive_buffer = Bytes(2000);
    let mut peer = Peer::open(&config);
    let out = peer.arrive(&segment(0, 0, 2000));
    assert_eq!(out[0].window, 0);
    let mut reset = segment(2000, 0, 0);
    reset.flags = Flags::RST.with(Flags::ACK);
    peer.arrive(&reset);
    assert!(peer.events().contains(&Event::Failed(ConnectionError::Reset)));
    let mut peer = Peer::open(&plain());
    let mut reset = segment(0, 0, 40);
    reset.flags = Flags::RST;
    peer.arrive(&reset);
    assert_eq!(peer.events(), [Event::Failed(ConnectionError::Reset)]);
    assert_eq!(peer.connection.received(), 0);
}

/// RFC 9293: SHLD-31, MAY-13
#[test]
fn segments_out_of_order_are_kept() {
    let mut peer = Peer::open(&plain());
    for index in [3, 1, 2] {
        let out = peer.arrive(&segment(index * 1000, 0, 1000));
        assert_eq!((out.len(), out[0].ack), (1, IRS + 1), "acknowledged at once");
    }
    let out = peer.arrive(&segment(0, 0, 1000));
    assert_eq!(
        (out.len(), out[0].ack),
        (1, IRS + 4001),
        "nothing has to be sent again"
    );
}

/// RFC 9293: SHLD-8
#[test]
fn ecn_is_agreed_on_marked_and_answered() {
    let mut config = plain();
    config.ecn = true.into();
    let (mut connection, syn) = handshake(&config, 1460, Flags::MSS.with(Flags::ECE));
    assert!(syn.flags.contains(Flags::ECE.with(Flags::CWR)));
    connection.write(at(10), Bytes(20_000), WriteFlags::default());
    let sent: Vec<_> = core::iter::from_fn(|| connection.poll_transmit(at(10))).collect();
    assert!(
        sent.iter()
            .all(|transmit| transmit.segment.payload == 0 || transmit.segment.ecn_capable())
    );
    let before = connection.info(at(10)).cwnd;
    let mut echo = segment(0, 1000, 0);
    echo.flags = echo.flags.with(Flags::ECE);
    connection.on_segment(at(110), &echo);
    let mut all = echo;
    all.ack = ISS + 1 + 10_000;
    all.flags = Flags::ACK;
    connection.on_segment(at(111), &all);
    let next = core::iter::from_fn(|| connection.poll_transmit(at(111)))
        .next()
        .expect("more data")
        .segment;
    assert!(next.flags.contains(Flags::CWR), "the reduction is reported");
    assert!(connection.info(at(111)).cwnd < before);
}

/// RFC 9293: MUST-11
#[test]
fn an_active_open_that_is_refused_tells_its_owner() {
    let mut connection = Connection::connect(T0, &Arc::new(plain()), ISS);
    connection.poll_transmit(T0);
    let mut syn = segment(0, 0, 0);
    (syn.seq, syn.flags) = (IRS, Flags::SYN);
    connection.on_segment(T0, &syn); // crossed
    assert_eq!(connection.state(), State::SynReceived);
    connection.poll_transmit(T0);
    let mut reset = segment(0, 0, 0);
    reset.flags = Flags::RST;
    connection.on_segment(T0, &reset);
    let events: Vec<_> = core::iter::from_fn(|| connection.poll_event()).collect();
    assert_eq!(events, [Event::Failed(ConnectionError::Refused)]);
}
